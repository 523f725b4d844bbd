"""Neighbors, enumerated: what is measured never moves further than a plan claims, and as far.

The integers of a frame and of each of its neighbors are totaled by the engine and encoded by the
design. With the plan's own scales, as exact fractions, `sum (Delta w)^2 / sigma^2 <= mu^2` for
Gaussian noise and `sum |Delta w| / b <= epsilon` for Laplace noise.
"""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.designing import keep_no_plans
from support.neighbors import ALL_CAPS, allowed, apart, by_g, farthest, reached, within
from support.plans import law_of, parts_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.engines.pandas import PandasEngine
from dpframe.plan import tables
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.sensitivity import Reach

ENGINE = PandasEngine()
COLUMNS = ["g", "h", "x", "k", "f", "u"]
BASE = [("A", 0, 1.0, 1, 1, "p"), ("B", 1, -1.0, 2, 0, "q"), ("A", 1, 0.5, -1, 1, "q")]
# one row each: keys declared and not, values beyond the bounds, on them, between and missing
ROWS = [
    (g, h, x, k, f)
    for g, h in (("A", 0), ("B", 0), ("B", 1), ("Z", 0), (None, 1))
    for x, k in ((-9.0, -9), (-2.0, -3), (3.0, 5), (3.0, -3), (np.nan, np.nan), (np.inf, 9))
    for f in (0, 1)
]

MISSING = {"x": 1.0}
DROP = {"x": "drop"}


def declared(bounds=(-2, 3), *, caps=None, neighboring="add_remove", missing=None):
    columns = {
        "g": Column(keys=pd.Index(["A", "B", "C"], name="g")),
        "h": Column(keys=pd.Index([0, 1], name="h")),
        "x": Column(bounds=bounds),
        "k": Column(bounds=(-3, 5), integer=True),
    }
    unit = None if caps is None else ("u",)
    declaration = Declaration(
        columns, privacy_unit=unit, caps=caps or Caps(), neighboring=neighboring
    )
    return declaration.with_facts(missing=missing)


@cache  # the same neighbors under many plans
def frame_of(rows):
    rows = [(*row, "new")[:6] for row in rows]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"g": object, "x": float, "k": float})


def measured(plan, rows):
    """Every measured integer of a frame, one array for each block of each table."""
    return encoded(plan, totals_of(plan, rows))


def totals_of(plan, rows):
    """Every total that some design can ask for, by table."""
    found, frame = [], frame_of(tuple(rows))
    for part in parts_of(plan):
        needs = sorted(part.table.terms)
        totals = ENGINE.totals(frame, [part.table.task(needs)], SYSTEM)[0]
        found.append(dict(zip(needs, totals, strict=True)))
    return found


def encoded(plan, totals):
    """What the designs of a plan measure."""
    parts = zip(parts_of(plan), totals, strict=True)
    return [block for part, own in parts for block in apart(part, part.design.encode(own))]


QUERIES = {
    "count": (dpf.count(), {}),
    "count of some": (dpf.count(where="f == 1"), {}),
    "count by": (dpf.count(by="g"), {}),
    "count by two": (dpf.count(by=["g", "h"]), {}),
    "count by pairs": (
        dpf.count(by=["g", "h"], keys=pd.DataFrame({"g": ["B", "A"], "h": [1, 0]})),
        {},
    ),
    "sum": (dpf.sum("x"), {}),
    "sum by": (dpf.sum("x", by="g"), {}),
    "sum of a non-negative column": (dpf.sum("x", by="g"), {"bounds": (0, 3)}),
    "sum of a positive column": (dpf.sum("x"), {"bounds": (1, 3)}),
    "sum of a negative column": (dpf.sum("x", by="g"), {"bounds": (-3, -1)}),
    "sum of a constant": (dpf.sum("x", by="g"), {"bounds": (2, 2)}),
    "sum of nothing": (dpf.sum("x", by="g"), {"bounds": (0, 0)}),
    "sum off the grid": (dpf.sum("x", by="g"), {"bounds": (0.1, 0.3)}),
    "sum of integers": (dpf.sum("k", by="h"), {}),
    "sum of two": (dpf.sum(["x", "k"], by="g"), {}),
    "sum with a replacement": (dpf.sum("x"), {"missing": MISSING}),
    "sum of positives with a replacement": (dpf.sum("x"), {"missing": MISSING, "bounds": (1, 3)}),
    "mean": (dpf.mean("x", by="g"), {}),
    "mean with a replacement": (dpf.mean("x"), {"missing": MISSING}),
    "mean of a constant": (dpf.mean("x"), {"bounds": (2, 2)}),
    "mean of two": (dpf.mean(["x", "k"]), {}),
    "histogram": (dpf.histogram("x", [-3, 0, 4]), {}),
    "open histogram": (dpf.histogram("x", [-np.inf, 0, np.inf], by="h"), {}),
    "units": (dpf.units(), {}),
    "units by": (dpf.units(by="g", where="f == 1"), {}),
    "rate": (dpf.rate("x > 0", where="f == 1"), {}),
    "rate by": (dpf.rate("not (x > 0 and k > 0)", by="g"), {}),
    "rate beside counts": (
        dpf.aggregate(by="g", n=dpf.count(), m=dpf.count(where="x > 0"), r=dpf.rate("x > 0")),
        {},
    ),
    "mean that drops": (dpf.mean("x"), {"missing": DROP, "bounds": (1, 3)}),
    "aggregate that drops": (
        dpf.aggregate(by="g", n=dpf.count(), s=dpf.sum("x"), m=dpf.mean("x"), t=dpf.sum("k")),
        {"missing": DROP},
    ),
    "margins that drop": (
        dpf.margins(["g", "h"], 1, n=dpf.count(), m=dpf.mean("x")),
        {"missing": DROP},
    ),
    "release of which one drops": (
        {"n": dpf.count(by="g"), "s": dpf.sum("x", by="g"), "v": dpf.var("x", by="h")},
        {"missing": DROP},
    ),
    "variance": (dpf.var("x", by="g"), {}),
    "variance of integers": (dpf.var("k", where="f == 1"), {}),
    "deviation with a replacement": (dpf.std("x", by="g"), {"missing": MISSING}),
    "variance of a constant": (dpf.var("x"), {"bounds": (2, 2)}),
    "variance beside others": (
        dpf.aggregate(by="g", n=dpf.count(), s=dpf.sum("k"), m=dpf.mean("k"), v=dpf.var("k")),
        {},
    ),
    "covariance": (dpf.cov("x", "k", by="g"), {}),
    "correlation with a replacement": (dpf.corr("x", "k"), {"missing": MISSING}),
    "slope that drops": (dpf.slope("x", "k", where="f == 1"), {"missing": DROP}),
    "sampled slope": (dpf.slope("x", "k", sampling=True), {}),
    "sampled correlation beside others": (
        dpf.aggregate("g", n=dpf.count(), r=dpf.corr("x", "k", sampling=True), c=dpf.cov("x", "k")),
        {"missing": MISSING},
    ),
    "regression": (dpf.regression("x", ["k"], by="g"), {}),
    "regression with a replacement": (dpf.regression("k", "x"), {"missing": MISSING}),
    "regression that drops": (dpf.regression("x", "k", where="f == 1"), {"missing": DROP}),
    "regression beside others": (
        {"n": dpf.count(by="g"), "r": dpf.regression("x", ["k"], by="g"), "m": dpf.mean("x", "g")},
        {},
    ),
    "slope of a constant": (dpf.slope("k", "x"), {"bounds": (2, 2)}),
    "covariance beside a count": (
        dpf.aggregate(by="g", n=dpf.count(), c=dpf.cov("x", "k"), r=dpf.corr("x", "k")),
        {},
    ),
    "covariance beside others": (
        dpf.aggregate(n=dpf.count(), c=dpf.cov("k", "x"), m=dpf.mean("k", where="f == 1")),
        {},
    ),
    "aggregate": (
        dpf.aggregate(by="g", n=dpf.count(), s=dpf.sum("x"), m=dpf.mean("x"), t=dpf.sum("k")),
        {},
    ),
    "aggregate of some": (
        dpf.aggregate(
            where="h == 0", n=dpf.count(where="f == 1"), s=dpf.sum("x"), m=dpf.mean("k", where="f")
        ),
        {},
    ),
    "aggregate of some with a replacement": (
        dpf.aggregate(n=dpf.count(), s=dpf.sum("x", where="f == 1")),
        {"missing": MISSING, "bounds": (1, 3)},
    ),
    "aggregate under a shared condition": (
        dpf.aggregate(n=dpf.count(where="f == 1"), s=dpf.sum("x", where="f == 1")),
        {},
    ),
    "margins": (dpf.margins(["g", "h"]), {}),
    "margins of some": (dpf.margins([["g", "h"], ["h"]], where="f == 1", weights={"h": 3}), {}),
    "margins with bins and a key for the rest": (
        dpf.margins(["g", dpf.cut("x", [-3, 0, 4])], keys={"g": ["A", "B"]}, other={"g": "C"}),
        {},
    ),
    "margins of several": (
        dpf.margins(["g", "h"], 1, n=dpf.count(), m=dpf.mean("x"), r=dpf.rate("k > 0")),
        {},
    ),
    "margins beside others": ({"by": dpf.margins(["g"]), "n": dpf.count(by="h")}, {}),
    "conditions that exclude each other": (
        {
            "low": dpf.count(by="g", where="x < 0"),
            "high": dpf.sum("k", by="g", where="x >= 0"),
            "none": dpf.count(by="g", where="not (x < 0 or x >= 0)"),
        },
        {},
    ),
    "release of several": (
        {"n": dpf.count(), "s": dpf.sum("x", by="g"), "b": dpf.histogram("k", [-4, 0, 5])},
        {},
    ),
}
MECHANISMS = ["gaussian", "laplace"]
RELATIONS = ["add_remove", "replace"]


def planned(query, mechanism, neighboring, caps=None, **facts):
    declaration = declared(**facts, caps=caps, neighboring=neighboring)
    queries = query if isinstance(query, dict) else {None: query}
    return plan_release(declaration, queries, Spend.of(epsilon=0.7, delta=1e-5), mechanism)


@pytest.mark.sampled(every=46, full=14)
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", QUERIES)
def test_one_row_moves_measurements_as_far_as_claimed(name, mechanism, neighboring):
    query, facts = QUERIES[name]
    plan = planned(query, mechanism, neighboring, **facts)
    with_row = [measured(plan, [*BASE, row]) for row in ROWS]
    others = with_row if neighboring == "replace" else [measured(plan, BASE)]
    worst = farthest(plan, with_row, others)
    # columns under one condition count as if each had its own: the claim may be more than needed
    # a polygon stands for a parabola where values and squares are replaced under Gaussian noise
    assert reached(plan, worst) or name == "aggregate of some" or is_polygon(plan)


def test_dropped_rows_move_a_number_of_rows_that_is_not_public(monkeypatch):
    rows = [("A", 0, x, 1, 1) for x in (3.0, np.nan)]
    facts = {"neighboring": "replace", "missing": DROP}

    def farthest_of(plan):
        frames = [measured(plan, [*BASE, row]) for row in rows]
        return farthest(plan, frames, frames)

    query = dpf.aggregate(n=dpf.count(), m=dpf.mean("x"))
    assert farthest_of(planned(query, "laplace", **facts)) > 0
    reach = tables.reach_in
    monkeypatch.setattr(tables, "reach_in", lambda *given, always: reach(*given, always=True))
    with pytest.raises(ZeroDivisionError):  # the number of rows has no noise, and moves
        farthest_of(planned(query, "laplace", **facts))


def is_polygon(plan):
    """Whether what is claimed is a little more than needed."""
    needs = {what for part in parts_of(plan) for _, what in part.design.needs}
    relations = {part.table.workload.neighboring for part in parts_of(plan)}
    return "square" in needs and relations == {"replace"} and law_of(plan).norm == 2


UNIT_QUERIES = {
    "count": dpf.count(),
    "count by": dpf.count(by="g"),
    "sum by": dpf.sum("k", by="g"),
    "sum of a non-negative column": dpf.sum("k", by="g", bounds=(0, 5)),
    "mean": dpf.mean("k", by="g"),
    "mean of all": dpf.mean("k"),
    "histogram": dpf.histogram("k", [-4, 0, 5]),
    "units": dpf.units(),
    "units by": dpf.units(by="g"),
    "variance": dpf.var("k", by="g"),
    "variance of all": dpf.aggregate(n=dpf.count(), m=dpf.mean("k"), v=dpf.std("k")),
    "correlation": dpf.corr("x", "k", by="g", bounds={"x": (0, 1), "k": (-3, 5)}),
    "sampled slope": dpf.slope("x", "k", by="g", bounds={"x": (0, 1), "k": (-3, 5)}, sampling=True),
    "rate by": dpf.rate("k > 0", by="g"),
    "rate and count": dpf.aggregate(by="g", n=dpf.count(), r=dpf.rate("k > 0")),
    "aggregate": dpf.aggregate(by="g", n=dpf.count(), s=dpf.sum("k")),
    "aggregate that drops": dpf.aggregate(n=dpf.count(), s=dpf.sum("k")),
    "release of two": {"n": dpf.count(), "s": dpf.sum("k", by="g")},
}
UNIT_ROWS = [(g, 0, 0.0, k, 1) for g in "ABC" for k in (-3, 5)] + [("A", 0, 0.0, np.nan, 0)]


def in_one(row):
    return "all"


def in_one_with_a_value(row):
    return None if np.isnan(row[3]) else "all"


def by_bin(row):
    return None if np.isnan(row[3]) else row[3] > 0


CELLS = {
    "count": [in_one],
    "units": [in_one],
    "mean of all": [in_one],
    "variance of all": [in_one],
    "histogram": [by_bin],
    "aggregate that drops": [in_one_with_a_value],
    "release of two": [in_one, by_g],
}
UNIT_FACTS = {"aggregate that drops": {"missing": {"k": "drop"}}}
CONTENTS = [
    rows for n in range(5) for rows in itertools.combinations_with_replacement(UNIT_ROWS, n)
]


@pytest.mark.sampled(every=7, full=6)
@pytest.mark.parametrize("name", UNIT_QUERIES)
def test_one_unit_moves_measurements_as_far_as_claimed(name):
    query, tables, facts = UNIT_QUERIES[name], CELLS.get(name, [by_g]), UNIT_FACTS.get(name, {})
    free = planned(query, "laplace", "add_remove", Caps(9, 9, 9), **facts)  # caps drop nothing
    base = totals_of(free, BASE)
    units = [totals_of(free, [*BASE, *rows]) for rows in CONTENTS]
    for caps in ALL_CAPS:
        keeps = [all(within(rows, caps, cell_of) for cell_of in tables) for rows in CONTENTS]
        ones = list(itertools.compress(units, keeps))
        for mechanism, neighboring in itertools.product(MECHANISMS, RELATIONS):
            plan = planned(query, mechanism, neighboring, caps, **facts)
            mine = [encoded(plan, one) for one in ones]
            others = mine if neighboring == "replace" else [encoded(plan, base)]
            worst = farthest(plan, mine, others)
            # tables of a release keep rows of their own: not everything they keep is here
            if len(tables) == 1 and not is_polygon(plan):
                assert reached(plan, worst), (caps, mechanism, neighboring)


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("caps", ALL_CAPS, ids=str)
def test_one_unit_moves_a_query_with_caps_of_its_own_as_far_as_claimed(caps):
    own = {
        "max_rows": caps.rows or 9,
        "max_groups": caps.groups,
        "max_rows_per_group": caps.rows_per_group,
    }
    query, wide = dpf.sum("k", by="g", **own), Caps(9, 9, 9)
    kept = [rows for rows in CONTENTS if within(rows, caps, by_g)]
    for mechanism, neighboring in itertools.product(MECHANISMS, RELATIONS):
        plan = planned(query, mechanism, neighboring, wide)
        mine = [measured(plan, rows) for rows in kept]
        others = mine if neighboring == "replace" else [measured(plan, [])]
        assert reached(plan, farthest(plan, mine, others)), (mechanism, neighboring)


ONE_TOTAL = {"count": dpf.count(), "count by g": dpf.count(by="g"), "sum": dpf.sum("k", by="g")}


@pytest.mark.parametrize("name", ONE_TOTAL)
def test_one_unit_crosses_no_more_stairs_than_claimed(name, monkeypatch):
    query, table = ONE_TOTAL[name], in_one if name == "count" else by_g
    free = planned(query, "laplace", "add_remove", Caps(9, 9, 9))  # caps drop nothing
    base = totals_of(free, BASE)
    units = {rows: totals_of(free, [*BASE, *rows]) for rows in CONTENTS[::3]}

    def check(caps, neighboring):
        plan = planned(query, "staircase", neighboring, caps)
        kept = [encoded(plan, one) for rows, one in units.items() if within(rows, caps, table)]
        ones = list({tuple(np.ravel(own)): own for own in kept}.values())
        others = ones if neighboring == "replace" else [encoded(plan, base)]
        return reached(plan, farthest(plan, ones, others))

    most = [caps for caps in ALL_CAPS if name == "sum" or 1 not in (caps.rows, caps.rows_per_group)]
    for caps in most:
        assert check(caps, "add_remove"), caps
        check(caps, "replace")
    if name != "count":  # planted: all rows of a unit are taken to be in as few groups as fit
        keep_no_plans(monkeypatch)
        monkeypatch.setattr(Reach, "touched", property(lambda reach: reach.full))
        with pytest.raises(AssertionError):
            check(Caps(3, None, None), "add_remove")


ALL_ROWS = [(g, h, x, k, f) for g, h, x, k, f in ROWS if f]


@st.composite
def neighbors(draw):
    """Rows of several units, often beyond their caps, with one unit added, removed or replaced."""
    rows = st.lists(st.sampled_from(ALL_ROWS), max_size=6)
    crowd = [(*row, unit) for unit in "pqr" for row in draw(rows)]
    crowd = draw(st.permutations(crowd))
    frames = []
    for unit in ("new", draw(st.sampled_from(["new", "other"]))):
        frame = list(crowd)
        for row in draw(rows):
            frame.insert(draw(st.integers(0, len(frame))), (*row, unit))
        frames.append(frame)
    return crowd, *frames


@pytest.mark.full
@given(
    neighbors(),
    st.sampled_from(list(UNIT_QUERIES)),
    st.sampled_from(ALL_CAPS),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=150, derandomize=True)
def test_capping_one_unit_leaves_the_rows_of_others_alone(frames, name, caps, word):
    # each unit draws the same words whoever else is there: the coupling under which capping is
    # stable; frames keep the rows of the crowd in the same order
    crowd, one, other = frames
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dpframe.context._system_bytes", lambda n: (word.to_bytes(8, "little") * n)[:n]
        )
        plan = planned(UNIT_QUERIES[name], "gaussian", "add_remove", caps)
        totals = {id(rows): totals_of(plan, rows) for rows in (crowd, one, other)}

        def blocks(plan, rows):
            return [encoded(plan, totals[id(rows)])]

        farthest(plan, blocks(plan, one), blocks(plan, crowd))
        for mechanism in MECHANISMS:
            plan = planned(UNIT_QUERIES[name], mechanism, "replace", caps)
            farthest(plan, blocks(plan, one), blocks(plan, other))


def choices(rows, caps):
    """Every set of rows that may be left once caps drop rows, in the order of the engine's caps."""
    groups = {g: [row for row in rows if row[0] == g] for g in "ABC"}
    groups = {g: mine for g, mine in groups.items() if mine}
    most = caps.rows_per_group or len(rows)
    samples = [list(itertools.combinations(mine, min(most, len(mine)))) for mine in groups.values()]
    kept = set()
    for sampled in itertools.product(*samples):
        for chosen in itertools.combinations(sampled, min(caps.groups or 9, len(sampled))):
            left = [row for group in chosen for row in group]
            kept |= set(itertools.combinations(sorted(left), min(caps.rows or 9, len(left))))
    return kept


@pytest.mark.sampled(every=20, full=14)
@pytest.mark.parametrize("caps", ALL_CAPS, ids=str)
def test_a_capped_unit_keeps_any_of_the_sets_of_rows_that_its_caps_allow(caps):
    rows = [("A", 0, 0.0, 1, 1), ("A", 0, 0.0, 2, 1), ("B", 0, 0.0, 4, 1), ("C", 0, 0.0, 8, 1)]
    plan = planned(dpf.sum("k", by="g", bounds=(0, 8)), "laplace", "add_remove", caps)
    sums = {
        tuple(sum(row[3] for row in kept if row[0] == g) for g in "ABC")
        for kept in choices(rows, caps)
    }
    assert all(within(kept, caps, by_g) for kept in choices(rows, caps))
    # 12 sets at most, each with a probability of 1/12 or more: one stays unseen in
    # 400 draws with probability below 12 (11/12)^400 = 1e-14
    seen = {tuple(measured(plan, rows)[0].tolist()) for _ in range(400)}
    assert seen == sums


CLOSED_FORMS = [
    # caps, K = q c^2 + rem^2
    (Caps(5, 5, 5), 25),
    (Caps(5, 5, 1), 5),
    (Caps(4, 3, 2), 8),
    (Caps(3, 2, 2), 5),
    (Caps(None, 2, 3), 18),
    (Caps(4, 1, None), 16),
]
MANY = {"g": list(range(12))}


@pytest.mark.parametrize(("caps", "k"), CLOSED_FORMS)
@pytest.mark.parametrize(
    ("query", "scale", "replaced"),
    [
        (dpf.count(by="g", keys=MANY), 1, 2),
        (dpf.sum("k", by="g", keys=MANY, bounds=(0, 7)), 49, 2),
        (dpf.sum("k", by="g", keys=MANY, bounds=(-7, 0)), 49, 2),
        (dpf.sum("k", by="g", keys=MANY, bounds=(-7, 7)), 49, 4),
        (dpf.sum("k", by="g", keys=MANY, bounds=(-2, 7)), 49, None),
    ],
)
def test_sigma_is_the_closed_form_of_the_caps(query, scale, replaced, caps, k):
    # Delta^2 = B^2 K when a unit is added, 2 B^2 K when one with values of one sign is
    # replaced, (2 B)^2 K with symmetric bounds, and in between with asymmetric ones
    plan = planned(query, "gaussian", "add_remove", caps)
    moved = Fraction(plan.of(plan.tables[None]).scales[0]) ** 2 * allowed(plan)
    assert 0 <= moved / (scale * k) - 1 < Fraction(1, 10**9)
    plan = planned(query, "gaussian", "replace", caps)
    moved = Fraction(plan.of(plan.tables[None]).scales[0]) ** 2 * allowed(plan) / (scale * k)
    if replaced is None:
        assert 2 <= moved < 4
    else:
        assert 0 <= moved / replaced - 1 < Fraction(1, 10**9)


def test_a_total_count_is_public_where_rows_are_replaced():
    plan = planned(dpf.count(), "gaussian", "replace")
    assert plan.of(plan.tables[None]).scales == (0.0,)
    assert allowed(plan) == 0


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_one_unit_moves_margins_as_far_as_claimed(rows, mechanism, neighboring):
    query = dpf.margins(["g", "h"], n=dpf.count(), s=dpf.sum("k"), max_rows=rows)
    plan = planned(query, mechanism, neighboring, Caps(9, 3, 9))
    kinds = [(g, h, 0.0, k, 1) for g, h in (("A", 0), ("B", 1), ("A", 1)) for k in (-3, 5)]
    units = [
        measured(plan, unit)
        for number in range(rows + 1)
        for unit in itertools.combinations_with_replacement(kinds, number)
    ]
    others = units if neighboring == "replace" else units[:1]
    assert reached(plan, farthest(plan, units, others))


SIGNS = {
    "counts by several columns": {
        "n": dpf.count(),
        "g": dpf.count(by="g"),
        "h": dpf.count(by="h"),
        "bins": dpf.histogram("k", [-3, 0, 5]),
    },
    "counts of some": {
        "g": dpf.count(by="g", where="f == 1", weight=1.8),
        "h": dpf.count(by="h", where="f == 1"),
    },
    "counts beside others": {
        "g": dpf.count(by="g", weight=1.8),
        "h": dpf.count(by="h"),
        "s": dpf.sum(["x", "k"]),
    },
    "margins": {None: dpf.margins(["g", "h"], n=dpf.count(), s=dpf.sum("x"))},
}


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", SIGNS)
def test_one_row_moves_sums_of_signs_as_far_as_claimed(name, neighboring):
    plan = planned(SIGNS[name], "box", neighboring)
    assert any(part.is_over_cells for part in parts_of(plan))
    with_row = [measured(plan, [*BASE, row]) for row in ROWS]
    others = with_row if neighboring == "replace" else [measured(plan, BASE)]
    worst = farthest(plan, with_row, others)
    # two rows that are replaced cannot differ in all signs of several columns at once
    assert reached(plan, worst) or neighboring == "replace"


@pytest.mark.parametrize("rows", [1, 3])
def test_one_unit_moves_margins_by_signs_as_far_as_claimed(rows):
    query = dpf.margins(["g", "h"], n=dpf.count(), s=dpf.sum("k"), max_rows=rows)
    plan = planned(query, "box", "add_remove", Caps(9, 3, 9))
    kinds = [(g, h, 0.0, k, 1) for g, h in (("A", 0), ("B", 1), ("A", 1)) for k in (-3, 5)]
    units = [
        measured(plan, unit)
        for number in range(rows + 1)
        for unit in itertools.combinations_with_replacement(kinds, number)
    ]
    assert reached(plan, farthest(plan, units, units[:1]))


def test_counts_with_a_unit_of_their_own_stay_apart():
    plan = planned({name: dpf.count(by=name) for name in "gh"}, "auto", "add_remove", Caps(1))
    assert not any(part.is_over_cells for part in parts_of(plan))
