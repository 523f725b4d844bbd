"""Neighbors, enumerated, whose rows count for weights: nothing moves further than claimed.

As in `test_neighbors`: the engine totals every neighbor, the design encodes the totals, and the
movements are compared to the plan's claim in exact rational arithmetic.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support.designing import keep_no_plans
from support.neighbors import ALL_CAPS, apart, by_g, farthest, reached, within
from support.plans import parts_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.engines import sums
from dpframe.engines.blocks import RowBlock
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import CalibrationError
from dpframe.plan import tables
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.staircase import STAIRCASE
from dpframe.strategies.independent import WeightedDesign

ENGINE = PandasEngine()
MECHANISMS = ["gaussian", "laplace", "box", "correlated"]
RELATIONS = ["add_remove", "replace"]
BASE = [("A", 0, 1.0, 0.7, 1, "p"), ("B", 1, -1.0, 2.5, 0, "q"), ("A", 1, 0.5, 0.1, 1, "q")]
# values and weights beyond the bounds, on them, between, missing and no numbers
ROWS = [
    (g, 0, x, w, f)
    for g in ("A", "B")
    for x in (-9.0, 3.0, np.nan)
    for w, f in ((-1.0, 1), (0.3, 0), (math.inf, 0), (math.inf, 1), ("heavy", 1))
]
QUERIES = {
    "count": (dpf.count(weights="w"), (-2, 3)),
    "count by": (dpf.count("g", weights="w", where="f == 1"), (-2, 3)),
    "sum": (dpf.sum("x", weights="w"), (-2, 3)),
    "sum of positives": (dpf.sum("x", "g", weights="w"), (1, 3)),
    "sum of negatives": (dpf.sum("x", "g", weights="w"), (-3, -1)),
    "sum of a constant": (dpf.sum("x", weights="w"), (2, 2)),
    "sum of nothing": (dpf.sum("x", weights="w"), (0, 0)),
    "mean": (dpf.mean("x", "g", weights="w"), (-2, 3)),
    "mean of all": (dpf.mean("x", weights="w"), (0.1, 0.3)),
    "mean of a constant": (dpf.mean("x", weights="w"), (2, 2)),
    "rate": (dpf.rate("not (x > 0)", "g", weights="w"), (-2, 3)),
    "histogram": (dpf.histogram("x", [-3, 0, 4], "h", weights="w"), (-2, 3)),
    "aggregate": (
        dpf.aggregate(
            "g",
            n=dpf.count(weights="w"),
            s=dpf.sum("x", weights="w"),
            m=dpf.mean("x", weights="w", where="f == 1"),
            r=dpf.rate("f > 0", weights="w"),
        ),
        (0, 3),
    ),
    "total beside its mean": (
        dpf.aggregate("g", s=dpf.sum("x", weights="w"), m=dpf.mean("x", weights="w")),
        (1, 3),
    ),
    "margins": (
        dpf.margins(["g", "h"], n=dpf.count(weights="w"), m=dpf.mean("x", weights="w")),
        (-2, 3),
    ),
    "margins of counts": (dpf.margins(["g", "h"], n=dpf.count(weights="w")), (-2, 3)),
    "release": (
        {"n": dpf.count("g"), "w": dpf.count("g", weights="w"), "h": dpf.count(weights="w")},
        (-2, 3),
    ),
}


def declared(bounds, caps=None, *, neighboring="add_remove", missing=None, most=2.5):
    columns = {
        "g": Column(keys=pd.Index(["A", "B", "C"], name="g")),
        "h": Column(keys=pd.Index([0, 1], name="h")),
        "x": Column(bounds=bounds),
        "w": Column(bounds=(0.1, most)),
    }
    unit = None if caps is None else ("u",)
    found = Declaration(columns, privacy_unit=unit, caps=caps or Caps(), neighboring=neighboring)
    return found.with_facts(missing=missing)


def planned(query, mechanism, bounds, **facts):
    queries = query if isinstance(query, dict) else {None: query}
    spend = Spend.of(epsilon=0.7, delta=1e-5)
    return plan_release(declared(bounds, **facts), queries, spend, mechanism)


def measured(plan, rows):
    """Every measured integer of a frame, one array for each block of each table."""
    columns = [*zip(*[(*row, "new")[:6] for row in rows], strict=True)] or [[]] * 6
    frame = pd.DataFrame(dict(zip("ghxwfu", map(list, columns), strict=True)))
    frame = frame.astype({"g": object, "x": float, "w": object})
    found = []
    for part in parts_of(plan):
        needs = sorted(part.design.needs)
        totals = ENGINE.totals(frame, [part.table.task(needs)], SYSTEM)[0]
        found += apart(part, part.design.encode(dict(zip(needs, totals, strict=True))))
    return found


def farthest_row(plan, neighboring, rows=ROWS):
    ones = [measured(plan, [*BASE, row]) for row in rows]
    return farthest(plan, ones, ones if neighboring == "replace" else [measured(plan, BASE)])


def plan_or_skip(*given, **facts):
    try:
        return planned(*given, **facts)
    except CalibrationError as error:
        if "does not apply" in str(error):
            pytest.skip("no such noise")
        raise


@pytest.mark.sampled(every=25, full=16)
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", QUERIES)
def test_one_row_moves_measurements_no_further_than_claimed(name, mechanism, neighboring):
    query, bounds = QUERIES[name]
    plan = plan_or_skip(query, mechanism, bounds, neighboring=neighboring)
    worst = farthest_row(plan, neighboring)
    if neighboring == "add_remove" and name in ("count", "count by", "sum", "mean", "histogram"):
        assert reached(plan, worst)


@pytest.mark.parametrize("missing", [{"w": 0.4}, {"w": "drop"}, {"w": "drop", "x": 1.0}])
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_missing_weights_and_values_may_count_or_be_dropped(neighboring, missing):
    plan = planned(
        dpf.mean("x", weights="w"), "laplace", (-2, 3), neighboring=neighboring, missing=missing
    )
    assert reached(plan, farthest_row(plan, neighboring))


UNIT_ROWS = [(g, 0, x, 2.5, 1) for g in "ABC" for x in (-2.0, 3.0)] + [("A", 0, 3.0, 0.9, 1)]
CONTENTS = [
    rows for n in range(4) for rows in itertools.combinations_with_replacement(UNIT_ROWS, n)
]


@pytest.mark.sampled(every=20, full=12)
@pytest.mark.parametrize("caps", ALL_CAPS, ids=str)
@pytest.mark.parametrize("query", [QUERIES["mean"][0], QUERIES["count by"][0]], ids=["mean", "n"])
def test_one_unit_moves_measurements_no_further_than_claimed(query, caps):
    kept = [rows for rows in CONTENTS if within(rows, caps, by_g)]
    for mechanism, neighboring in itertools.product(["gaussian", "laplace"], RELATIONS):
        plan = planned(query, mechanism, (-2, 3), caps=caps, neighboring=neighboring)
        mine = [measured(plan, rows) for rows in kept]
        others = mine if neighboring == "replace" else [measured(plan, [])]
        worst = farthest(plan, mine, others)
        assert parts_of(plan)[0].table.workload.reach.total > 3 or reached(plan, worst)


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_one_row_crosses_no_more_stairs_than_claimed(neighboring):
    query = dpf.sum("x", "g", weights="w")
    declaration = declared((-2, 3), neighboring=neighboring)
    plan = plan_release(declaration, {None: query}, Spend.of(epsilon=3), "staircase")
    (scale,) = filter(None, parts_of(plan)[0].scales)
    ones = [np.concatenate(measured(plan, [*BASE, row])) for row in ROWS]
    others = ones if neighboring == "replace" else [np.concatenate(measured(plan, BASE))]
    moves = {tuple(np.abs(one - other).tolist()) for one in ones for other in others}
    worst = max(sum(STAIRCASE.loss(part, scale) for part in move) for move in moves)
    assert 3 * (1 - 1e-5) < worst <= 3


def test_less_noise_than_the_largest_weight_needs_is_seen(monkeypatch):
    query, bounds = QUERIES["mean"]
    keep_no_plans(monkeypatch)
    monkeypatch.setattr(
        WeightedDesign,
        "movement",
        lambda self, scales, law: self.design.movement(
            [scale / (self.weight * Fraction(9, 10)) for scale in scales], law
        ),
    )
    with pytest.raises(AssertionError):
        farthest_row(planned(query, "laplace", bounds), "add_remove")


def test_weights_that_are_not_clipped_are_seen(monkeypatch):
    plan = planned(dpf.count(weights="w"), "laplace", (-2, 3))
    rows = [("A", 0, 1.0, 9.0, 1)]
    farthest_row(plan, "add_remove", rows)
    snap = RowBlock.snap
    monkeypatch.setattr(
        RowBlock, "snap", lambda self, label, grid: snap(self, label, replace(grid, upper=2**40))
    )
    with pytest.raises(AssertionError):
        farthest_row(plan, "add_remove", rows)


def test_parts_that_do_not_add_up_to_the_weight_are_seen(monkeypatch):
    plan = planned(dpf.mean("x", weights="w"), "laplace", (-2, 3))
    exact = sums.weigh_integers
    monkeypatch.setattr(sums, "weigh_integers", lambda *given: exact(*given) + 1)
    with pytest.raises(AssertionError):
        farthest_row(plan, "add_remove")


def test_a_weight_of_nothing_is_a_row_that_leaves(monkeypatch):
    query = dpf.mean("x", weights="w")
    facts = {"neighboring": "replace", "missing": {"x": 1.0}}
    assert farthest_row(planned(query, "laplace", (-2, 3), **facts), "replace")
    reach = tables.reach_in
    monkeypatch.setattr(tables, "reach_in", lambda *given, always: reach(*given, always=True))
    with pytest.raises((AssertionError, ZeroDivisionError)):
        farthest_row(planned(query, "laplace", (-2, 3), **facts), "replace")
