"""Odd rows, and what is kept of them."""

import numpy as np
import pandas as pd
import pytest
from support.random_plans import random_plan, seeded

import dpframe as dpf
from dpframe.checker import check
from dpframe.checker.check import KeptVerdicts
from dpframe.checker.rows import row_vectors
from dpframe.engines.declared import declaration_of
from dpframe.errors import PlanCheckError
from dpframe.operations.probing import measured_of
from dpframe.operations.release import plan_operation
from dpframe.privacy.amounts import Spend


def planned(query, facts=None, **spend):
    frame = pd.DataFrame({"g": ["a"], "x": [1.0], "t": [pd.Timestamp("2024-01-01")]})
    known = {"keys": {"g": ["a", "b"]}, "bounds": {"x": (0, 10)}, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**{**known, **(facts or {})})
    declaration = declaration_of(frame)
    return plan_operation(frame, declaration, query, Spend.of(**spend), "laplace")


def test_verdicts_are_kept_by_all_that_was_read():
    """A plan that follows others has the verdict that it has alone."""
    dice = seeded(5)
    plans = [plan for plan in (random_plan(dice) for _ in range(60)) if plan is not None]
    beside = [operation.witness() for _, operation in plans]
    assert [operation.witness() for _, operation in plans] == beside
    alone = []
    for _, operation in plans:
        check._VERDICTS.cache_clear()
        check._ROWS.cache_clear()
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
    measured = measured_of(plan.measurements[0], plan.noises[0], "add_remove")
    totals = np.eye(len(measured.totals), dtype=np.int64)
    found = row_vectors(measured, totals, np.random.default_rng(0))
    vectors = [group.vectors for part in found.components for group in part.groups]
    assert found.sampled == sampled
    assert max(int(one.max()) for one in vectors) == most << 28


def test_rows_of_other_units_and_out_of_the_part_are_refused(monkeypatch):
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=3), part="g")
    operation = planned(dpf.count(), {"ledger": ledger, "budget": None}, epsilon=1)
    declaration = operation.declaration.in_part("a")
    for changed, why in ((declaration, "not in the part"),):
        object.__setattr__(operation, "declaration", changed)
        with pytest.raises(PlanCheckError, match=why):
            operation.witness()
