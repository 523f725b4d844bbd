"""Neighbors, enumerated, where noise is shared: nothing moves further than claimed, and as far.

As in `test_neighbors`: the engine totals every neighbor, the design encodes the totals, and the
movements are compared to the plan's claim in exact rational arithmetic.
"""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.neighbors import ALL_CAPS, by_g, farthest, reached, within
from support.plans import parts_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import CalibrationError
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import Caps

ENGINE = PandasEngine()
COLUMNS = ["g", "h", "x", "k", "f", "b0", "b1", "b2", "b3", "u"]
BITS = ["b0", "b1", "b2", "b3"]
RELATIONS = ["add_remove", "replace"]


def row(g="A", h=0, x=1.0, k=1, *, f=1, bits=(0, 0, 0, 0), unit="new"):
    return (g, h, x, k, f, *bits, unit)


BASE = [
    row(unit="p"),
    row("B", 1, -1.0, 2, f=0, bits=(0, 1, 0, 0), unit="q"),
    row("A", 1, unit="q"),
]
# values beyond the bounds, on them, between and missing
NUMBERS = [
    row(g, 0, x, k, f=f)
    for g in ("A", "B", None)
    for x, k in itertools.product((-9.0, 3.0, np.nan), (-9, 5, np.nan))
    for f in (0, 1)
] + [row(x=0.5, k=1), row(x=-np.inf, k=np.inf)]
# more true columns than a limit allows, too
TRUTHS = [
    row(g, bits=bits, f=f)
    for g, f in (("A", 1), ("B", 1), ("A", 0), (None, 1))
    for bits in itertools.product((0, 1), repeat=4)
]


def planned(query, mechanism, neighboring, *, bounds=(-2, 3), missing=None, caps=None):
    columns = {
        "g": Column(keys=pd.Index(["A", "B", "C"], name="g")),
        "h": Column(keys=pd.Index([0, 1], name="h")),
        "x": Column(bounds=bounds),
        "k": Column(bounds=(-3, 5), integer=True),
        **{name: Column(bounds=(0, 1), integer=True) for name in BITS},
    }
    unit = None if caps is None else ("u",)
    declaration = Declaration(
        columns, privacy_unit=unit, caps=caps or Caps(), neighboring=neighboring
    ).with_facts(missing=missing)
    queries = query if isinstance(query, dict) else {None: query}
    return plan_release(declaration, queries, Spend.of(epsilon=0.7, delta=1e-5), mechanism)


@cache  # the same neighbors under many plans
def frame_of(rows):
    return pd.DataFrame(rows, columns=COLUMNS).astype({"g": object, "x": float, "k": float})


def measured(plan, rows):
    """Every measured integer of a frame, one array for each block of each table."""
    frame, blocks = frame_of(tuple(rows)), []
    for part in parts_of(plan):
        needs = sorted(part.design.needs)
        totals = ENGINE.totals(frame, [part.table.task(needs)], SYSTEM)[0]
        blocks += part.design.encode(dict(zip(needs, totals, strict=True)))
    return blocks


FILLED = {"x": 1.0, "k": 0.0}
COUNTED = {"n": dpf.count(), "s": dpf.sum("x"), "m": dpf.mean("x")}
QUERIES = {
    "counts": (dpf.sum(BITS), TRUTHS, {}),
    "counts by": (dpf.sum(BITS, by="g"), TRUTHS, {}),
    "counts of some": (dpf.sum(BITS, by="g", where="f == 1"), TRUTHS, {}),
    "counts that are never missing": (
        dpf.sum(BITS, by="g"),
        TRUTHS,
        {"missing": dict.fromkeys(BITS, 1)},
    ),
    "counts and an accurate n": (dpf.sum(BITS, by="g", n_weight=4), TRUTHS, {}),
    "counts with n known": (dpf.sum(BITS, by="g", n=9), TRUTHS, {}),
    "counts with n known roughly": (dpf.sum(BITS, n=(9, 4)), TRUTHS, {}),
    "two true columns at most": (dpf.sum(BITS, by="g", max_true=2), TRUTHS, {}),
    "three true columns at most": (dpf.sum(BITS, max_true=3), TRUTHS, {}),
    "one true column at most": (dpf.sum(BITS, by="g", max_true=1), TRUTHS, {}),
    "two of some": (dpf.sum(BITS[:3], max_true=2, where="f == 1"), TRUTHS, {}),
    "sums": (dpf.sum(["x", "k"]), NUMBERS, {}),
    "sums by": (dpf.sum(["x", "k"], by="g"), NUMBERS, {}),
    "sums of some": (dpf.sum(["x", "k"], where="f == 1"), NUMBERS, {}),
    "sums that are never missing": (dpf.sum(["x", "k"], by="g"), NUMBERS, {"missing": FILLED}),
    "sums of positives": (dpf.sum(["x", "k"], by="g"), NUMBERS, {"bounds": (1, 3)}),
    "sums of positives, never missing": (
        dpf.sum(["x", "k"], by="g"),
        NUMBERS,
        {"bounds": (1, 3), "missing": FILLED},
    ),
    "sums of negatives": (dpf.sum(["x", "k"], by="g"), NUMBERS, {"bounds": (-3, -1)}),
    "sums with a constant": (
        dpf.sum(["x", "k"], by="g"),
        NUMBERS,
        {"bounds": (2, 2), "missing": FILLED},
    ),
    "sums of present constants": (dpf.sum(["x", "k"], by="g"), NUMBERS, {"bounds": (2, 2)}),
    "sums off the grid": (dpf.sum(["x", "k"], by="g"), NUMBERS, {"bounds": (0.1, 0.3)}),
    "the worst sum": (dpf.sum(["x", "k"], by="g", objective="worst"), NUMBERS, {}),
    "the worst sum with a constant": (
        dpf.sum(["x", "k"], by="g", objective="worst", n_weight=2),
        NUMBERS,
        {"bounds": (2, 2), "missing": FILLED},
    ),
    "sums with n known": (dpf.sum(["x", "k"], by="g", n=9), NUMBERS, {"missing": FILLED}),
    "means": (dpf.mean(["x", "k"]), NUMBERS, {"missing": {"k": 2}}),
    "means by": (dpf.mean(["x", "k"], by="g"), NUMBERS, {}),
    "means that are never missing": (dpf.mean(["x", "k"], by="g"), NUMBERS, {"missing": FILLED}),
    "means with a constant": (dpf.mean(["x", "k"], by="g"), NUMBERS, {"bounds": (2, 2)}),
    "mean and an accurate n": (dpf.aggregate(by="g", m=dpf.mean("x"), n_weight=1), NUMBERS, {}),
    "one sum with n known": (dpf.sum("k", by="g", n=9), NUMBERS, {}),
    "aggregate": (dpf.aggregate(by="g", **COUNTED, t=dpf.sum("k")), NUMBERS, {}),
    "aggregate, never missing": (dpf.aggregate(by="g", **COUNTED), NUMBERS, {"missing": FILLED}),
    "the worst of an aggregate": (
        dpf.aggregate(by="g", **COUNTED, t=dpf.mean("k"), objective="worst", n_weight=1),
        NUMBERS,
        {},
    ),
    "aggregate under one condition": (
        dpf.aggregate(by="g", n=dpf.count(where="f == 1"), s=dpf.sum("x", where="f == 1")),
        NUMBERS,
        {},
    ),
    "aggregate of a filtered count": (
        dpf.aggregate(by="g", where="h == 0", n=dpf.count(where="f == 1"), s=dpf.sum("k")),
        NUMBERS,
        {},
    ),
    "aggregate of filtered columns": (
        dpf.aggregate(s=dpf.sum("x", where="f == 1"), m=dpf.mean("k")),
        NUMBERS,
        {},
    ),
    "release of several": (
        {"n": dpf.count(by="g"), "s": dpf.sum(BITS, by="g"), "t": dpf.sum(BITS, max_true=2)},
        TRUTHS,
        {},
    ),
}
# a mean of a nullable column and its sum, or a condition and a column that it also reads, cannot
# all be farthest in one row
BOUNDED = {"aggregate", "the worst of an aggregate"}


LIMITED = [
    name
    for name, (query, *_) in QUERIES.items()
    if isinstance(query, dpf.Query) and query.options.max_true
]
CASES = [("correlated", name) for name in QUERIES]
CASES += [(mechanism, name) for mechanism in ("gaussian", "laplace") for name in LIMITED]
# without groups, the number of rows that are only replaced is public
PUBLIC = {"counts", "counts with n known roughly", "sums", "means", "aggregate of filtered columns"}
UNSHARED = {"add_remove": {"one true column at most"}, "replace": {*PUBLIC, *LIMITED}}


@pytest.mark.sampled(every=22, full=10)
@pytest.mark.parametrize(("mechanism", "name"), CASES)
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_one_row_moves_measurements_as_far_as_claimed(name, mechanism, neighboring):
    query, rows, facts = QUERIES[name]
    if mechanism == "correlated" and name in UNSHARED[neighboring]:
        with pytest.raises(CalibrationError, match="does not apply to these queries"):
            planned(query, mechanism, neighboring, **facts)
        return
    plan = planned(query, mechanism, neighboring, **facts)
    with_row = [measured(plan, [*BASE, one]) for one in rows]
    others = with_row if neighboring == "replace" else [measured(plan, BASE)]
    worst = farthest(plan, with_row, others)
    assert reached(plan, worst) or name in BOUNDED


BITS_BY = dpf.sum(BITS[:2], by="g")
UNIT_QUERIES = {
    "counts by": BITS_BY,
    "counts and an accurate n": dpf.sum(BITS[:2], by="g", n_weight=9),
    "counts with n known": dpf.sum(BITS[:2], by="g", n=9),
    "two true columns at most": dpf.sum(BITS[:3], by="g", max_true=2),
    "sums": dpf.sum(["x", "k"], by="g", bounds={"x": (0, 2)}),
    "the worst sum": dpf.sum(["x", "k"], by="g", bounds={"x": (0, 2)}, objective="worst"),
    "aggregate": dpf.aggregate(by="g", n=dpf.count(), s=dpf.sum("x"), t=dpf.sum("k")),
}
UNIT_ROWS = {
    name: [row(g, bits=bits) for g in "ABC" for bits in ((0, 0, 0, 0), (1, 1, 0, 0))]
    if "co" in name
    else [row(g, x=x, k=k) for g in "ABC" for x, k in ((-2.0, -3), (3.0, 5))]
    for name in UNIT_QUERIES
}
# two of three columns: rows that differ in all that they can
UNIT_ROWS["two true columns at most"] = [
    row(g, bits=bits) for g in "AB" for bits in ((0, 0, 0, 0), (1, 1, 0, 0), (0, 1, 1, 0))
]


@pytest.mark.sampled(every=7, full=3)
@pytest.mark.parametrize("name", UNIT_QUERIES)
def test_one_unit_moves_measurements_as_far_as_claimed(name):
    query = UNIT_QUERIES[name]
    contents = [
        rows
        for n in range(5)
        for rows in itertools.combinations_with_replacement(UNIT_ROWS[name], n)
    ]
    for neighboring in RELATIONS:
        units = base = None
        if (name, neighboring) == ("two true columns at most", "replace"):
            continue  # shares nothing
        for caps in ALL_CAPS:
            plan = planned(query, "correlated", neighboring, caps=caps)
            if units is None:  # what is measured depends on no cap
                free = planned(query, "correlated", neighboring, caps=Caps(9, 9, 9))
                base = measured(free, BASE)
                units = [measured(free, [*BASE, *rows]) for rows in contents]
            ones = [
                unit for unit, rows in zip(units, contents, strict=True) if within(rows, caps, by_g)
            ]
            worst = farthest(plan, ones, ones if neighboring == "replace" else [base])
            # two cells are not enough to fill all caps with
            assert reached(plan, worst) or name == "two true columns at most", (caps, neighboring)


SPREAD = [Caps(None, 2, 1), Caps(3, None, 1), Caps(None, 4, 1), Caps(5, 5, 1), Caps(9, 6, 1)]
CELLS = list(itertools.product("ABC", (0, 1)))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("caps", SPREAD, ids=str)
def test_units_with_one_row_in_some_bins_move_them_as_far_as_claimed(caps):
    plan = planned(dpf.count(["g", "h"]), "correlated", "add_remove", caps=caps)
    assert plan.of(plan.tables[None]).design.common == {1}
    most = min(caps.rows or 9, caps.groups or 9)
    outside = [row("Z"), row(None)]
    units = [
        measured(plan, [*BASE, *(row(g, h) for g, h in filled), *rest])
        for n in range(most + 1)
        for filled in itertools.combinations(CELLS, n)
        for rest in ([], outside)
    ]
    assert reached(plan, farthest(plan, units, [measured(plan, BASE)]))


@st.composite
def crowds(draw):
    """Rows of several units, often beyond their caps, with one unit added or replaced."""
    rows = st.lists(st.sampled_from([*NUMBERS, *TRUTHS]), max_size=6)
    crowd = [(*one[:-1], unit) for unit in "pqr" for one in draw(rows)]
    crowd = draw(st.permutations(crowd))
    frames = []
    for unit in ("new", draw(st.sampled_from(["new", "other"]))):
        frame = list(crowd)
        for one in draw(rows):
            frame.insert(draw(st.integers(0, len(frame))), (*one[:-1], unit))
        frames.append(frame)
    return crowd, *frames


CAPPED = [
    *((query, caps) for query in UNIT_QUERIES.values() for caps in ALL_CAPS),
    *((dpf.count(["g", "h"]), caps) for caps in SPREAD),
]


@pytest.mark.full
@given(crowds(), st.sampled_from(CAPPED), st.integers(0, 2**64 - 1))
@settings(max_examples=120, derandomize=True)
def test_capping_one_unit_leaves_the_rows_of_others_alone(frames, case, word):
    # each unit draws the same words whoever else is there: the coupling under which capping is
    # stable
    crowd, one, other = frames
    query, caps = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dpframe.context._system_bytes", lambda n: (word.to_bytes(8, "little") * n)[:n]
        )
        for neighboring, reference in (("add_remove", crowd), ("replace", other)):
            try:
                plan = planned(query, "correlated", neighboring, caps=caps)
            except CalibrationError:
                continue  # where units are replaced, these share nothing
            farthest(plan, [measured(plan, one)], [measured(plan, reference)])
