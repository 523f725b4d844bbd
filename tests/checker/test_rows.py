"""Odd rows, and what is kept of them."""

import numpy as np
import pandas as pd
import pytest
from support.random_plans import random_plan, seeded

import dpframe as dpf
from dpframe.checker import check
from dpframe.checker.check import KeptVerdicts
from dpframe.checker.rows import row_vectors
from dpframe.errors import PlanCheckError
from dpframe.operations.planning import plan_operation
from dpframe.operations.probing import recognized
from dpframe.privacy.amounts import Spend


def planned(query, facts=None, **spend):
    frame = pd.DataFrame({"g": ["a"], "x": [1.0], "t": [pd.Timestamp("2024-01-01")]})
    known = {"keys": {"g": ["a", "b"]}, "bounds": {"x": (0, 10)}, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**{**known, **(facts or {})})
    declaration = frame.dp.declaration
    return plan_operation(frame, declaration, query, Spend.of(**spend), "laplace")


def test_verdicts_are_kept_by_all_that_was_read():
    """A plan that follows others has the verdict that it has alone."""
    dice = seeded(5)
    plans = [plan for plan in (random_plan(dice) for _ in range(60)) if plan is not None]
    beside = [operation.witness() for _, operation in plans]
    assert [operation.witness() for _, operation in plans] == beside
    alone = []
    for _, operation in plans:
        check.forget_verdicts()
        alone.append(operation.witness())
    assert alone == beside


def test_few_verdicts_are_kept():
    kept = KeptVerdicts()
    for key in range(1_000):
        assert kept.add(key, -key) == kept.get(key) == -key
    assert sum(kept.get(key) is not None for key in range(1_000)) <= 256
    assert kept.get(999) == -999


@pytest.mark.parametrize(
    ("where", "most", "sampled"),
    [
        ("x > 3", 10, False),
        ("x <= 3", 3, False),
        ("x < 3", 3, False),
        ("t > '2024-01-05'", 10, False),
        ("x * 2 > 5", 10, True),
    ],
)
def test_conditions_are_seen_in_what_rows_add(where, most, sampled):
    """Of rows that meet a condition, sums move by no more than these rows have."""
    query = dpf.aggregate("g", s=dpf.sum("x", where=where), n=dpf.count())
    plan = planned(query, epsilon=1).plan
    ((table, noisy),) = plan.designs.items()
    measured = recognized(table.task(noisy.needs), noisy, "add_remove").prepare()
    totals = np.eye(len(measured.totals), dtype=np.int64)
    found = row_vectors(measured, totals, np.random.default_rng(0))
    vectors = [group.vectors for part in found.components for group in part.groups]
    assert found.sampled == sampled
    assert max(int(one.max()) for one in vectors) == most << 28


BESIDE = {
    "a later text": (["x > 'm'"], "z"),
    "an earlier text": (["x < 'm'"], "a"),
    "a text on the left": (["'m' < x"], "z"),
    "between texts": (["x > 'a' and x < 'c'"], "b"),
    "not that text": (["x >= 'm' and x != 'm'"], "z"),
    "no float beside it": (["x > 1e17"], 1e300),
    "an even float": (["x > 9007199254740992"], 1e300),
    "below": (["x < -1e17"], -1e300),
    "a sum that overflows": (["1e308 < x < 1.7e308"], 1.5e308),
    "below infinity": (["5 < x < 1e999"], 6.0),
    "infinity": (["x >= 1e999"], float("inf")),
    "within a second": (["'2020-01-01' < x < '2020-01-01T00:00:00.5'"], "2020-01-01T00:00:00.25"),
    "a day of a week": (["x == '2020-W01-3'"], "2020-01-01"),
    "a comma": (["x > '2020-01-01T00:00:00,5'"], "2021-01-01"),
    "the first moment": (["x == '0001-01-01'"], "0001-01-01"),
    "before the first": (["x > '0001-01-01T00:00+05:00'"], "2021-01-01T00:00Z"),
    "the last moment": (["x >= '9999-12-31T23:59:59.999999'"], "9999-12-31T23:59:59.999999"),
    "a clock and UTC": (
        ["x == '2020-01-01'", "x == '2020-01-01T01:00+01:00'"],
        "2020-01-01T00:00Z",
    ),
    "a clock elsewhere": (
        ["x == '2020-01-01'", "x == '2020-01-01T05:00Z'"],
        "2020-01-01T00:00-05:00",
    ),
    "clocks of two": (
        ["x == '2020-01-01'", "x == '2020-01-01T05:00Z'", "x < '2020-01-02T00:00Z'"],
        "2020-01-01T00:00-05:00",
    ),
    "a clock after an instant": (
        ["x > '2020-01-01'", "x > '2020-01-01T00:00Z'"],
        "2021-01-01T00:00Z",
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_no_row_that_conditions_tell_apart_costs_more_than_the_witness(name):
    """A row that meets all conditions and has the largest value moves all that is measured."""
    conditions, value = BESIDE[name]
    value = pd.Timestamp(value) if isinstance(value, str) and value[0] in "0129" else value
    frame = pd.DataFrame({"x": pd.Series([value], dtype=object), "y": [2.0]})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, bounds={"y": (-2, 2)})
    counts = {f"n{at}": dpf.count(where=where) for at, where in enumerate(conditions)}
    query = dpf.aggregate(s=dpf.sum("y"), **counts)
    plan = plan_operation(frame, frame.dp.declaration, query, Spend.of(epsilon=1), "laplace").plan
    measurements = [
        recognized(table.task(noisy.needs), noisy, "add_remove")
        for table, noisy in plan.designs.items()
    ]
    found = check.witness_of(measurements)
    assert not any(part.sampled for part in found.found)
    places = {"x": ([value], np.zeros(1, int)), "y": ([2.0], np.zeros(1, int))}
    cost = 0
    for one in [measurement.prepare() for measurement in measurements]:
        rows = {label: places[label] for label in one.columns}
        _, totals = one.probe(rows, 1)
        moved = one.encode([np.array([int(total)]) for total in totals[:, 0]])
        cost += one.noise.cost(moved, [np.zeros_like(own) for own in moved])
    assert cost > 0.9
    assert sum(part.cost for part in found.found) >= cost


def test_a_condition_on_times_that_are_added_up_is_sampled():
    bounds = {"t": (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-02-01"))}
    late = "t > '2024-01-05'"
    for wanted, sampled in ((dpf.mean("t", where=late), True), (dpf.count(where=late), False)):
        query = dpf.aggregate(n=dpf.count(), late=wanted)
        found = planned(query, {"bounds": bounds}, epsilon=1).witness().found
        assert any(part.sampled for part in found) == sampled


def test_rows_of_other_units_and_out_of_the_part_are_refused(monkeypatch):
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=3), part="g")
    operation = planned(dpf.count(), {"ledger": ledger, "budget": None}, epsilon=1)
    declaration = operation.declaration.in_part("a")
    for changed, why in ((declaration, "not in the part"),):
        object.__setattr__(operation, "declaration", changed)
        with pytest.raises(PlanCheckError, match=why):
            operation.witness()
