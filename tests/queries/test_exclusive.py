"""Conditions that exclude each other: what is found holds for rows of any kind."""

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dpframe.columns.filters import keep
from dpframe.queries.conditions import exclusive_sets
from dpframe.queries.where import Condition

FOUND = [
    (["x > 0", "not x > 0"], ((0, 1),)),
    (["x <= 0", "0 < x <= 1", "1 < x", "x == 2"], ((0, 1, 2),)),
    (["x in [1, 2]", "x in [3, 'a']", "x == 'b'", "x not in [1, 2, 3, 'a', 'b']"], ((0, 1, 2, 3),)),
    (["x", "not x"], ((0, 1),)),
    (["x and y > 1", "x == 0 or y == 7 and not x"], ((0, 1),)),
    (["x > 1", "y > 1", "x < 1", "y < 1"], ((0, 2), (1, 3))),
    (["0 > x", "0 < x", "0 == x"], ((0, 1, 2),)),
    (["-1 < x < 0", "x >= 0", "x == -1"], ((0, 1, 2),)),
    (["True", "False and x > 0", "x > 0"], ((1, 2),)),
]
NOT_FOUND = [
    ["x > 0", "x > 1", "x >= 1"],
    ["x >= 0", "x <= 0"],
    ["x == x", "not x == x"],  # what equals itself is not a cell
    ["x + 1 > 0", "x + 1 <= 0"],
    ["x > y", "x <= y"],
    ["x > 'a'", "x <= 'a'"],  # an order of texts
    ["x > 'a'", "x == 'b'"],
    ["x == '2024-01-01'", "x == '2024-01-01 00:00'"],  # one point in time
    ["x > 0", "y <= 0"],
    ["x > 0 or y > 0", "x <= 0"],
]
VALUES = [
    0,
    -0.0,
    1,
    1.5,
    2,
    3,
    True,
    False,
    np.nan,
    None,
    np.inf,
    -np.inf,
    "a",
    "b",
    "0",
    "",
    2**53,
]
VALUES += [2**53 + 1, -(2**70), 10**400, Decimal("0.1"), 0.1, np.float32(0.1), pd.NA, pd.NaT]
VALUES += [[1], datetime.date(2024, 1, 1), pd.Timestamp("2024-01-01"), pd.Timestamp(0, tz="UTC")]


def parsed(texts):
    return [Condition.parse(text) for text in texts]


def test_sets_that_are_found():
    found = [(texts, exclusive_sets(parsed(texts))) for texts, _ in FOUND]
    assert found == list(FOUND)


def test_what_may_hold_at_once_is_in_no_set():
    found = {str(texts): exclusive_sets([None, *parsed(texts)]) for texts in NOT_FOUND}
    assert set(found.values()) == {()}, found


def frames():
    """Frames with each kind of value, as objects and in the dtypes that hold some of them."""
    pairs = pd.DataFrame(
        list(itertools.product(VALUES, repeat=2)), columns=["x", "y"], dtype=object
    )
    yield pairs
    numbers = [0, 1, 2, 3, 7, 2**53, 2**53 + 1, -1]
    for dtype in ("int64", "float32", "float64", "Int64", "Float64", "int64[pyarrow]", "category"):
        column = pd.Series(numbers).astype(dtype)
        yield pd.DataFrame({"x": column, "y": column[::-1].to_numpy()})
    yield pd.DataFrame({"x": [True, False], "y": [False, True]})
    texts = pd.Series(["a", "b", None, "2024-01-01", "c", ""])
    for dtype in ("str", "category"):
        yield pd.DataFrame({"x": texts.astype(dtype), "y": texts[::-1].to_numpy()})
    times = pd.Series([pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01 00:00:01"), pd.NaT])
    yield pd.DataFrame({"x": times, "y": times.dt.tz_localize("UTC")})


LARGE = ["x == 9007199254740992", "x > 9007199254740992", "x < 9007199254740992"]
LARGE += ["x in [9007199254740993]", "9007199254740991 < x < 9007199254740992", "x == 0.1"]
LARGE += ["0.1 < x <= 0.10000000149", "x > 0.10000000149", "x == 1e400"]


@pytest.mark.parametrize("texts", [*(texts for texts, _ in FOUND), *NOT_FOUND, LARGE])
def test_no_row_satisfies_two_conditions_of_a_set(texts):
    conditions = parsed(texts)
    for frame in frames():
        held = np.stack([keep(one, frame) for one in conditions])
        for own in exclusive_sets(conditions):
            assert (held[list(own)].sum(axis=0) <= 1).all()


def test_a_wrong_cell_would_be_noticed():
    frame = pd.DataFrame({"x": [0, 1]})
    held = [keep(one, frame) for one in parsed(["x >= 0", "x <= 0"])]
    assert (np.sum(held, axis=0) > 1).any()  # so these must be in no set


def test_many_conditions_are_compared_with_few_sets():
    apart = parsed(f"{k} <= x < {k + 1}" for k in range(300))
    assert exclusive_sets(apart) == (tuple(range(300)),)
    assert exclusive_sets(parsed(f"x > {k}" for k in range(300))) == ()
