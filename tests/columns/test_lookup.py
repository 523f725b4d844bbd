"""Rows find their keys and bins as in a dict, whatever the column's dtype and the other rows."""

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.columns.lookup import CellLookup, finder
from dpframe.engines.blocks import FrameReader, RowBlock
from dpframe.queries.tasks import BinAxis, Cells, KeyAxis

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


@given(st.data())
@settings(max_examples=60)
def test_sparse_keys_of_any_spread_are_found(data):
    low = data.draw(st.sampled_from([-(2**63), -5, 0, 2**62, 2**63 - 2000]))
    width = data.draw(st.sampled_from([3, 1999, 2**40]))
    inside = st.integers(low, min(low + width, 2**63 - 1))
    keys = data.draw(st.lists(inside, unique=True, min_size=1, max_size=20))
    limits = [-(2**63), 2**63 - 1, 0]
    values = data.draw(st.lists(st.sampled_from(keys) | inside, max_size=20)) + limits
    assert found(keys, pd.Series(values, dtype="int64")) == expected(keys, values)


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


INFINITY = float("inf")


@pytest.mark.parametrize("closed", ["left", "right", "both", "neither"])
@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2), (2, 5)],
        [(0, 1), (3, 4), (4, 4.5)],
        [(-INFINITY, 0), (0, 10), (10, INFINITY)],
        [(5, 7)],
        [],
    ],
)
def test_bins_hold_what_their_intervals_hold(edges, closed):
    if closed == "both":  # then neighbors that touch overlap
        edges = edges[::2]
    bins = pd.IntervalIndex.from_tuples(edges, closed=closed, dtype=f"interval[float64, {closed}]")
    numbers = [-1, 0, 0.5, 1, 2, 3, 3.5, 4, 4.25, 4.5, 5, 6, 7, 10, 11, INFINITY, -INFINITY]
    column = pd.Series([*numbers, np.nan])
    inside = [[i for i, bin_ in enumerate(bins) if x in bin_] for x in numbers]
    answers = [places[0] if places else len(bins) for places in inside]
    find = finder(BinAxis("x", bins), column)
    assert find(column).tolist() == [*answers, len(bins)]
    objects = pd.Series([*numbers, "1", None, [1]], dtype=object)
    assert find(objects).tolist() == [*answers, *[len(bins)] * 3]


HOUR = pd.Timedelta("1h")
DAYS = [DAY + n * 24 * HOUR for n in range(4)]
ZONED = [day.tz_localize("UTC") for day in DAYS]
TOKYO = pd.Timestamp(0, tz="Asia/Tokyo")
KINDS = {  # edges, values below, above, and of other kinds
    "float64": ([0, 1, 2, 4], [-1e300, -1, -INFINITY], [5, INFINITY], [np.nan, "1", None, DAY]),
    "M8[s]": (DAYS, [np.datetime64("-20000-01-01", "s")], [DAYS[-1] + HOUR], [pd.NaT, 1, TOKYO]),
    "M8[ns, Asia/Tokyo]": (ZONED, [TOKYO], [ZONED[-1] + HOUR], [None, DAY, 1.0]),
    "m8[s]": ([-HOUR, 0 * HOUR, 2 * HOUR], [-2 * HOUR], [10**5 * HOUR], [pd.NaT, 0, "1h"]),
}


@pytest.mark.parametrize("closed", ["left", "right", "neither"])
@pytest.mark.parametrize("dtype", KINDS)
def test_clipped_bins_hold_all_values_of_their_kind(dtype, closed):
    edges, below, above, others = KINDS[dtype]
    bins = pd.IntervalIndex.from_breaks(edges, closed=closed)
    held = [*below, *edges, *above]
    column = pd.Series(np.empty(len(held) + len(others), object))
    column[:] = [*held, *others]
    plain = finder(BinAxis("x", bins), column)(column).tolist()
    between = plain[len(below) + 1 : len(below) + len(edges) - 1]
    last = len(bins) - 1
    expected = [*[0] * len(below), 0, *between, last, *[last] * len(above)]
    axis = BinAxis("x", bins, clipped=True)
    assert finder(axis, column)(column).tolist() == expected + [len(bins)] * len(others)
    native = pd.Series(held).astype(dtype)
    assert finder(axis, native)(native).tolist() == expected
    coded = native.astype("category")
    assert finder(axis, coded)(coded).tolist() == expected
    alone = BinAxis("x", bins[:1], clipped=True)
    assert finder(alone, column)(column).tolist() == [0] * len(held) + [1] * len(others)


def test_integers_beyond_all_floats_are_clipped_to_the_last_bin():
    column = pd.Series([10**400, -(10**400), 1], dtype=object)
    axis = BinAxis("x", pd.IntervalIndex.from_breaks([0, 1, 2]), clipped=True)
    assert finder(axis, column)(column).tolist() == [1, 0, 0]


def test_two_axes_of_the_same_keys_are_told_apart():
    keys, bins = pd.Index(["a", "b"], name="k"), pd.IntervalIndex.from_breaks([0, 1, 2])
    column = pd.Series(["a", None, "c"])
    axes = [KeyAxis("k", keys), KeyAxis("k", keys, rest=True)]
    axes += [BinAxis("x", bins), BinAxis("x", bins, clipped=True)]
    source = FrameReader(pd.DataFrame({"k": column, "x": [-1, 1.5, np.nan]}), axes, {})
    block = RowBlock(source, slice(0, 3))
    expected = [[0, 2, 2], [0, 1, 1], [2, 1, 2], [0, 1, 2]]
    assert [block.position(one).tolist() for one in axes] == expected


@pytest.mark.parametrize("width", [3, 2000])  # a table of 54 positions; hashing among 1.6 * 10**10
@pytest.mark.parametrize("choose", [False, True])
def test_cells_are_row_major_and_chosen_ones_in_order(width, choose):
    axes = [axis(["x", "y"]), *(KeyAxis(i, pd.RangeIndex(width)) for i in range(3))]
    chosen = [width**3 + 2 * width + 1, 0, width**2]
    cells = Cells(tuple(axes), np.array(chosen) if choose else None)
    frame = pd.DataFrame(
        [["y", 0, 2, 1], ["x", 1, 0, 0], ["x", 0, 0, 0], ["y", 0, 0, 0], ["z", 0, 0, 0]]
    )
    frame[2] = [2.0, 0, 0, np.nan, 0]
    answers = [chosen[0], chosen[2], 0, 2 * width**3, 2 * width**3]
    if choose:
        answers = [0, 2, 1, 3, 3]
    frame.columns = [axis.column for axis in axes]
    assert find(cells, frame) == answers
    assert find(cells, frame[2:4]) == answers[2:4]


def find(cells, frame):
    """Cells of all rows of a frame."""
    found = CellLookup(cells)(
        lambda axis: finder(axis, frame[axis.column])(frame[axis.column]), len(frame)
    )
    return found.tolist()


def test_without_axes_every_row_is_in_the_one_cell():
    frame = pd.DataFrame({"k": ["a", "b", "c"]})
    assert find(Cells(), frame) == [0, 0, 0]
    assert find(Cells((axis(["a", "b"]),), np.array([1])), frame) == [1, 0, 1]


LONG = [np.longdouble(2**53) + 1, np.longdouble(0.5), np.longdouble("inf"), np.longdouble("nan")]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no longer than a float")
@pytest.mark.parametrize("dtype", ["longdouble", "clongdouble", object])
def test_long_numbers_are_the_integers_that_they_equal(dtype):
    column = pd.Series(np.array([*LONG, np.longdouble(2**53)]).astype(dtype))
    assert found([BIG, 0.5, 7], column) == [0, 1, 3, 3, 3]
    assert found([2**53], column) == [1, 1, 1, 1, 0]


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
