"""Rows without a value in the condition of a rate are in neither of its counts."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dpframe.columns.filters import keep
from dpframe.queries.conditions import met, present, surely
from dpframe.queries.where import Condition

FRAME = pd.DataFrame(
    list(itertools.product([1.0, 0.0, 20.0, np.nan], [2.0, -3.0, None], ["A", "B", None])),
    columns=["a", "b", "late at"],
)
CONDITIONS = [
    "a > 15",
    "not a > 15",
    "a != 0",
    "a",
    "not a",
    "a > 15 and b > 0",
    "a > 15 or b > 0",
    "a > 15 or a < 0.5",
    "a > b",
    "a ** b > 0.5",
    "b ** 0 == 1",
    "a + b > 3 or a - b > 3",
    "-a < -15",
    "`late at` in ['A']",
    "`late at` not in ['A']",
    "`late at` == 'A' or a == 1",
    "0 < a <= 15",
    "not (a > 15 or b > 0)",
    "True",
    "a > 0 and False",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_rows_are_met_or_not_where_all_columns_hold_something(text):
    condition = Condition.parse(text)
    there = FRAME[list(condition.columns)].notna().all(axis=1).to_numpy()
    looked_at = present(condition)
    kept = np.ones(len(FRAME), bool) if looked_at is None else keep(looked_at, FRAME)
    assert kept.tolist() == there.tolist()
    assert keep(met(condition), FRAME).tolist() == (there & keep(condition, FRAME)).tolist()


@pytest.mark.parametrize("text", CONDITIONS)
def test_what_is_sure_holds_whatever_the_missing_values_are(text):
    """Compared with all ways to fill the missing values of a row."""
    condition = Condition.parse(text)
    for holds in (True, False):
        found = keep(surely(condition, holds=holds), FRAME)
        if "**" in text:
            continue  # a power may not depend on what is missing
        fillings = [
            keep(condition, FRAME.fillna({"a": a, "b": b, "late at": zone})) == holds
            for a in (-1e9, 0.0, 0.3, 1.0, 1e9)
            for b in (-1e9, 0.5, 1e9)
            for zone in ("A", "B")
        ]
        assert not (found & ~np.all(fillings, axis=0)).any()
        if condition.root.__class__.__name__ not in ("Any", "All", "Not"):
            assert found.tolist() == np.all(fillings, axis=0).tolist()
