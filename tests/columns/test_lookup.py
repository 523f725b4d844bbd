"""Rows find their keys and bins as in a dict, whatever the column's dtype and the other rows."""

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.columns.lookup import CellLookup, finder
from dpframe.queries.tasks import KeyAxis

BIG = 2**53 + 1  # no float is equal to it
DAY = pd.Timestamp("2024-02-29")


class Unhashable:
    """Raises when it is hashed, as lists do, and with another error."""

    def __hash__(self):
        raise RuntimeError("private")


class Incomparable:
    """Has the hash of a key, and raises when it is compared with it."""

    def __init__(self, key):
        self.key = key

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        raise RuntimeError("private")


HOSTILE = [
    None,
    np.nan,
    pd.NA,
    pd.NaT,
    [1],
    {1: 1},
    {1},
    (1, [2]),
    (1, 2),
    np.array([1, 2]),
    np.array(1),
    Unhashable(),
    Incomparable(1),
    Incomparable("a"),
    Decimal("sNaN"),
    Decimal("NaN"),
    complex(1, 1),
    dt.date(2024, 2, 29),
    pd.Timestamp(DAY, tz="UTC"),
    pd.Period("2024-02", "M"),
    pd.Interval(0, 1),
    float("inf"),
    10**400,
    "1",
    b"a",
]


def axis(keys, dtype=None):
    return KeyAxis("k", pd.Index(keys, dtype=dtype, name="k"))


def found(keys, column):
    answers = finder(axis(keys, object), column)(column).tolist()
    if keys:  # the last key may stand for all other values, missing ones too
        rest = KeyAxis("k", pd.Index(keys, dtype=object, name="k"), rest=True)
        assert finder(rest, column)(column).tolist() == [min(at, len(keys) - 1) for at in answers]
    return answers


def expected(keys, values):
    """What a dict says of each value by itself."""
    places = {key: place for place, key in enumerate(keys)}
    answers = []
    for value in values:
        try:
            answers.append(places.get(value, len(keys)))
        except Exception:
            answers.append(len(keys))
    return answers


KEYS = [3, "a", 1.5, DAY, "1", 1, -0.0, BIG, "é", 2**64 - 1, -7, pd.Timedelta("1h"), 2**40]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 3, -7, 100, 0], "int8"),
        ([1, 3, 65535, 0], "uint16"),
        ([1, 3, BIG, BIG - 1, 2**63 - 1, -(2**63)], "int64"),
        ([2**64 - 1, 2**63, 3, 0, BIG], "uint64"),
        ([True, False], "bool"),
        ([1.0, 1.5, np.nan, np.inf, float(BIG), -0.0, 0.0], "float64"),
        ([1.0, 1.5, np.nan, 2.0**40], "float32"),
        ([1.0, 1.5, np.nan], "float16"),
        ([1.0, 1.5, np.nan], "longdouble"),
        ([1, 1 + 1j, 1.5], "complex128"),
        ([1, None, BIG, 0], "Int64"),
        ([1, None, 3], "UInt8"),
        ([1.5, None, 3], "Float64"),
        ([True, None, False], "boolean"),
        ([1, None, BIG], "int64[pyarrow]"),
        ([1.5, None, 3.0], "double[pyarrow]"),
        ([True, None], "bool[pyarrow]"),
        ([1.5, None], "float[pyarrow]"),
        ([1.5, None], "halffloat[pyarrow]"),
        ([1, None, 3], "uint8[pyarrow]"),
        (["a", None, "1", "é", "b", ""], "string[pyarrow]"),
        (["a", None, "1", "é", "b"], "string[python]"),
        (["a", None, "1", "é", "b"], pd.StringDtype("pyarrow", na_value=np.nan)),
        (["a", None, "1", "é", "b"], pd.StringDtype("python", na_value=np.nan)),
        (["a", None, "b"], "large_string[pyarrow]"),
        ([DAY, pd.NaT, pd.Timestamp("2024-02-29 00:00:01")], "datetime64[ns]"),
        ([DAY, pd.NaT, pd.Timestamp("2024-03-01")], "datetime64[s]"),
        ([DAY, pd.NaT], "datetime64[ns, UTC]"),
        ([DAY, None], "timestamp[us][pyarrow]"),
        ([pd.Timedelta("1h"), pd.NaT, pd.Timedelta("2h")], "timedelta64[ns]"),
        ([pd.Timedelta("1h"), pd.NaT], "timedelta64[s]"),
        (["a", None, "b", "1"], "category"),
        ([1, 3, None, 2], "category"),
        ([1, 0, 0, 3], "Sparse[int]"),
        ([1.5, np.nan, 0], "Sparse[float]"),
        ([DAY, None], "period[D]"),
        ([1, "1", 1.0, True, "a", DAY, None, Decimal(3), Fraction(3, 2), [1]], "object"),
    ],
)
def test_every_dtype_gives_the_answers_of_a_dict(values, dtype):
    column = pd.Series(values, dtype=dtype)
    boxed = list(column.astype(object))
    assert found(KEYS, column) == expected(KEYS, boxed)
    assert found(KEYS, column.iloc[:0]) == []


@given(
    st.lists(st.integers(-4, 4) | st.integers(2**53 - 2, 2**53 + 2), max_size=8),
    st.lists(
        st.integers(-4, 4) | st.floats(-4, 4) | st.integers(2**53 - 2, 2**53 + 2) | st.text("ab1"),
        unique=True,
    ),
)
def test_a_row_that_changes_the_dtype_changes_no_other_row(values, keys):
    """Beside a NaN integers become floats, beside a text they become objects."""
    whole = pd.Series(values, dtype="int64")
    assert found(keys, whole) == expected(keys, values)
    beside_nan = pd.Series([*values, np.nan], dtype="float64")
    assert found(keys, beside_nan) == expected(keys, [*map(float, values), np.nan])
    beside_text = pd.Series([*values, "text", True], dtype=object)
    assert found(keys, beside_text)[: len(values)] == found(keys, whole)


@pytest.mark.parametrize("keys", [["a", 1], [1, 2], [DAY], [(1, 2), "a"], [True, "a"]])
def test_hostile_values_are_dropped_silently(keys):
    values = [*HOSTILE, "a", 1, DAY]
    column = pd.Series(np.empty(len(values), object))
    column[:] = values
    answers = found(keys, column)
    assert answers == expected(keys, values)
    for i in range(len(values)):  # beside nothing else, a row is found where it was
        assert found(keys, column.iloc[i : i + 1]) == [answers[i]]


@pytest.mark.parametrize("value", [np.timedelta64(12, "M"), (12, np.timedelta64(12, "M"))])
def test_months_are_no_integers_and_nothing_is_said_of_them(value):
    column = pd.Series([None, 12], dtype=object)
    column.array[0] = value
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert found([12, (12, 12)], column) == [2, 0]
    assert not said


def test_keys_of_every_index_type():
    stamps = pd.Series([DAY, DAY + pd.Timedelta("1D"), None])
    for keys in (pd.DatetimeIndex([DAY]), pd.Index([DAY.to_datetime64()], dtype=object)):
        assert finder(KeyAxis("k", keys), stamps)(stamps).tolist() == [0, 1, 1]
    zoned = stamps.dt.tz_localize("UTC")
    keys = pd.DatetimeIndex([DAY]).tz_localize("UTC").tz_convert("Asia/Tokyo")
    assert finder(KeyAxis("k", keys), zoned)(zoned).tolist() == [0, 1, 1]
    assert finder(KeyAxis("k", keys), stamps)(stamps).tolist() == [1, 1, 1]
    labels = pd.Series(["b", "a", None])
    assert finder(KeyAxis("k", pd.CategoricalIndex(["a", "b"])), labels)(labels).tolist() == [
        1,
        0,
        2,
    ]
    assert found([], labels) == [0, 0, 0]
    assert found([], pd.Series([1, 2])) == [0, 0]
    assert found(["\ud800", "a"], labels) == [2, 1, 2]


def find(cells, frame):
    """Cells of all rows of a frame."""
    found = CellLookup(cells)(
        lambda axis: finder(axis, frame[axis.column])(frame[axis.column]), len(frame)
    )
    return found.tolist()


def deep(kind, layers):
    value = kind()
    for _ in range(layers):
        value = kind((value,))
    return value


def wide(layers):
    value = (1,)
    for _ in range(layers):
        value = (value, value)
    return value


@pytest.mark.parametrize(
    "cell",
    [deep(tuple, 100_000), deep(frozenset, 1_000), wide(60), (1, deep(tuple, 20))],
    ids=["deep", "sets", "wide", "just too deep"],
)
def test_cells_that_nest_deeply_match_nothing(cell):
    column = pd.Series([None, "a", (1, 2), (deep(tuple, 10),)], dtype=object)
    column[0] = cell
    keys = pd.Index(["a", (1, 2), (deep(tuple, 10),)], dtype=object, tupleize_cols=False)
    assert finder(KeyAxis("k", keys), column)(column).tolist() == [3, 0, 1, 2]
