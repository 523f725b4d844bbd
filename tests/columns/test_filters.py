"""Conditions on frames: whether a row satisfies one depends on its own values alone."""

import math
import operator
import zoneinfo
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.columns.filters import keep
from dpframe.queries.where import Condition

pa = pytest.importorskip("pyarrow")


def verdict(text, **columns):
    return keep(Condition.parse(text), pd.DataFrame(columns)).tolist()


def listed(values):
    """An object column of exactly these."""
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        column[row] = value
    return pd.Series(column, dtype=object)


FARES = [4, 10, 0, -3, 12]
NUMERIC = ["int8", "float32", "float64", "object", "Int32", "Float64", "category", "Sparse[int64]"]
NUMERIC += ["int16[pyarrow]", "double[pyarrow]", pd.ArrowDtype(pa.decimal128(30, 1))]


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("fare > 0", lambda x: x > 0),
        ("0 < fare <= 10", lambda x: 0 < x <= 10),
        ("fare == 4.0", lambda x: x == 4),
        ("fare != 4", lambda x: x != 4),
        ("fare < 3.5 or fare >= 12", lambda x: x < 3.5 or x >= 12),
        ("not fare > 0", lambda x: x <= 0),
        ("(fare > 0) & ~(fare == 4) | (fare < 0)", lambda x: x not in (0, 4)),
        ("fare in [4, 12.0, 'a']", lambda x: x in (4, 12)),
        ("fare not in (4, -3)", lambda x: x not in (4, -3)),
        ("fare in []", lambda _: False),
        ("fare in ['4']", lambda _: False),
        ("fare", bool),
        ("fare % 4 == 0 and fare // 4 * 4 == fare", lambda x: x % 4 == 0),
        ("-fare + 2 ** 3 > fare - +1 / 2", lambda x: 8.5 > 2 * x),
        ("fare > 300", lambda _: False),
        ("fare > -1e300", lambda _: True),
        ("fare == '4'", lambda _: False),
        ("fare != 'a'", lambda _: True),
        ("1 < 2", lambda _: True),
        ("True and fare > 0", lambda x: x > 0),
        ("False", lambda _: False),
    ],
)
def test_numbers(dtype, text, holds):
    fares = pd.Series(FARES).astype(dtype)
    mask = keep(Condition.parse(text), pd.DataFrame({"fare": fares}))
    assert mask.dtype == bool
    assert mask.tolist() == [holds(fare) for fare in FARES]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x == x", [True, True, False, False]),
        ("x != x", [False, False, True, True]),
        ("x < 5", [True, False, False, False]),
        ("x >= 5", [False, False, False, False]),
        ("x != 1", [False, True, True, True]),
        ("x not in [1]", [False, True, True, True]),
        ("x", [True, False, False, False]),
        ("not x", [False, True, True, True]),
        ("x + 1 == 2", [True, False, False, False]),
        ("x + 1 != 2", [False, True, True, True]),
        ("x == 'a'", [False, True, False, False]),
        ("x in ['a', 1]", [True, True, False, False]),
        ("'a' <= x", [False, True, False, False]),
    ],
)
def test_other_kinds_and_missing_values_equal_nothing(text, kept):
    assert verdict(text, x=listed([1, "a", None, math.nan])) == kept


def test_true_is_one():
    flags = listed([True, False, 1, 0.0, Decimal(1), "True"])
    assert verdict("flag == True", flag=flags) == [True, False, True, False, True, False]
    assert verdict("flag == 1", flag=pd.Series([True, False])) == [True, False]
    assert verdict("flag", flag=pd.Series([True, None], dtype="boolean")) == [True, False]


def test_arithmetic_never_warns_and_comparisons_with_nan_are_false():
    x = pd.Series([0.0, -8.0, math.inf, 1e308])
    assert verdict("1 / x > 0", x=x) == [True, False, False, True]
    assert verdict("x ** (1 / 3) >= 0", x=x) == [True, False, True, True]
    assert verdict("x - x == 0", x=x) == [True, True, False, True]
    assert verdict("x * 10 > 1e308", x=x) == [False, False, True, True]
    assert verdict("x % 0 == x // 0", x=x) == [False] * 4


def test_large_integers_compare_as_floats_in_every_dtype():
    large = [2**53 + 1, 2**53, 2**64 - 1]
    for dtype in ("uint64", "object", "UInt64", "category", "uint64[pyarrow]"):
        x = pd.Series(large, dtype=object).astype(dtype)
        assert verdict(f"x == {2**53}", x=x) == [True, True, False]
        assert verdict(f"x >= {2**64}", x=x) == [False, False, True]


def test_float32_compares_as_the_float_it_is():
    for dtype in ("float32", "object", "Float32", "float[pyarrow]", "Sparse[float32]"):
        x = pd.Series(np.array([0.1], dtype=np.float32)).astype(dtype)
        assert verdict("x == 0.1", x=x) == [False]
        assert verdict("x == 0.10000000149011612", x=x) == [True]


ZONES = ["B", "", "é", None, "ﬀ", "a\0"]
TEXTUAL = ["object", "category", "string[python]", "string[pyarrow]", "str"]
TEXTUAL += [pd.ArrowDtype(kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
TEXTUAL += [pd.ArrowDtype(pa.dictionary(pa.uint8(), pa.string()))]


@pytest.mark.parametrize("dtype", TEXTUAL, ids=str)
@pytest.mark.parametrize("relation", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("constant", ["B", "", "ﬀ", "é", "2013-01-01", "a\0"])
def test_texts(dtype, relation, constant):
    if isinstance(dtype, pd.ArrowDtype):
        encoded = pa.array(ZONES).cast(dtype.pyarrow_dtype)
        zones = pd.Series(pd.arrays.ArrowExtensionArray(encoded))
    else:
        zones = pd.Series(ZONES[:3] + ZONES[4:], dtype=object).astype(dtype)
    frame = pd.DataFrame({"zone": zones})
    compare = {"==": operator.eq, "!=": operator.ne, "<": operator.lt}
    compare |= {"<=": operator.le, ">": operator.gt, ">=": operator.ge}
    sought = [None if pd.isna(zone) else zone for zone in zones]
    expected = [
        relation == "!=" if zone is None else compare[relation](zone, constant) for zone in sought
    ]
    assert keep(Condition.parse(f"zone {relation} {constant!r}"), frame).tolist() == expected
    among = keep(Condition.parse(f"zone in [{constant!r}, 'nowhere', 3]"), frame).tolist()
    assert among == [zone == constant for zone in sought]
    assert keep(Condition.parse("zone > 0 or zone"), frame).tolist() == [False] * len(zones)


PICKUPS = pd.DatetimeIndex(["2013-01-01", "2013-01-01 00:45", None, "2013-06-30 12:00"])
TIMED = ["s", "ms", "us", "ns", "object", "category", "arrow"]


def timed(kind, zone=None):
    column = pd.Series(PICKUPS).dt.tz_localize(zone)
    if kind == "arrow":
        return column.astype(pd.ArrowDtype(pa.timestamp("us", zone)))
    return column.astype(kind) if kind in ("object", "category") else column.dt.as_unit(kind)


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("zone", [None, "America/New_York"])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("t == '2013-01-01'", [True, False, False, False]),
        ("t > '2013-01-01'", [False, True, False, True]),
        ("'2013-01-01 00:45' <= t < '2013-07-01T00:00'", [False, True, False, True]),
        ("t != '2013-01-01 00:45'", [True, False, True, True]),
        ("t in ['2013-01-01', '2013-06-30 12:00', 'x']", [True, False, False, True]),
        ("t not in ['2013-01-01']", [False, True, True, True]),
        ("t < 'tomorrow'", [False] * 4),
        ("t > 0", [False] * 4),
        ("t == t", [True, True, False, True]),
    ],
)
def test_times_on_the_wall(kind, zone, text, kept):
    assert verdict(text, t=timed(kind, zone)) == kept


@pytest.mark.parametrize("kind", TIMED)
def test_instants(kind):
    aware = timed(kind, "America/New_York")
    assert verdict("t == '2013-01-01T05:00Z'", t=aware) == [True, False, False, False]
    assert verdict("t >= '2013-06-30T18:00+02:00'", t=aware) == [False, False, False, True]
    assert verdict("t != '2013-01-01T05:00Z'", t=aware) == [False, True, True, True]
    assert verdict("t > '1900-01-01T05:00Z'", t=timed(kind)) == [False] * 4


def test_columns_compare_by_kind():
    left = listed([1, "a", date(2013, 1, 1), 1, None, datetime(2013, 1, 1, tzinfo=UTC), "b"])
    right = listed([1.0, "a", datetime(2013, 1, 1), "1", None, datetime(2013, 1, 1), "a"])
    assert verdict("left == right", left=left, right=right) == [True] * 3 + [False] * 4
    assert verdict("left > right", left=left, right=right) == [False] * 6 + [True]
    zoned = datetime(2013, 1, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))
    utc = pd.Series(pd.DatetimeIndex(["2013-01-01"], tz="UTC"))
    assert verdict("left == right", left=utc, right=listed([zoned])) == [True]
    words = pd.Series(["a", "b"], dtype="category")
    assert verdict("x < y", x=words, y=pd.Series(["b", "b"], dtype="string")) == [True, False]
    assert verdict("t < u", t=timed("ns"), u=timed("arrow") + pd.Timedelta("1s")) == [
        True,
        True,
        False,
        True,
    ]


def test_no_rows():
    empty = pd.DataFrame({"fare": pd.Series([], dtype=float), "zone": pd.Series([], dtype="str")})
    for text in ("fare > 0 and zone == 'A'", "True", "zone in ['A']", "fare == zone"):
        assert keep(Condition.parse(text), empty).shape == (0,)


def test_any_index_and_label():
    frame = pd.DataFrame({"it's a fare": [1, 2], "class": ["A", "B"]}, index=[7, 7])
    assert keep(Condition.parse("`it's a fare` > 1 and `class` == 'B'"), frame).tolist() == [
        False,
        True,
    ]


class Hostile:
    """Answers nothing."""

    def _refuse(self, *_):
        raise RuntimeError

    __eq__ = __ne__ = __lt__ = __float__ = __index__ = __bool__ = __hash__ = _refuse


OBJECTS = [Hostile(), [1], {"a": 1}, (1, 2), np.array([1, 2]), 1j, b"a", object, "\ud800"]
OBJECTS += [10**400, -(10**400), Decimal("sNaN"), Decimal("1.5"), Fraction(1, 3), "a", "", "2013"]
OBJECTS += [True, 0, 1, 2.5, math.nan, math.inf, None, pd.NA, pd.NaT, np.float32(0.1)]
OBJECTS += [np.datetime64("2013"), pd.Timestamp("2013-01-01", tz="UTC"), date(2013, 1, 1)]
OBJECTS += [datetime(2013, 1, 1, tzinfo=UTC), pd.Timedelta(1), pd.Period("2013")]
OBJECTS += [np.timedelta64(1, "ns")]

CONDITIONS = [
    "x > 1",
    "x != 1",
    "x",
    "x == 'a' or x < 'B'",
    "x in ['a', 1, 2.5, '2013-01-01']",
    "x >= '2013-01-01'",
    "x >= '2013-01-01T00:00Z'",
    "x == y",
    "x <= y",
    "x * 2 - y < 3",
    "not x ** y > 1",
]

cells = st.integers(0, len(OBJECTS) - 1)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6), st.sampled_from(CONDITIONS))
def test_no_row_sees_the_others(rows, text):
    left, right = ([OBJECTS[row[side]] for row in rows] for side in (0, 1))
    together = verdict(text, x=listed(left), y=listed(right))
    alone = [
        verdict(text, x=listed([x]), y=listed([y]))[0] for x, y in zip(left, right, strict=True)
    ]
    assert together == alone


COLUMNS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.integers(0, 2**64 - 1), min_size=1),
    st.lists(st.floats(), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.one_of(st.integers(-3, 3), st.none()), min_size=1),
    st.lists(st.one_of(st.text(st.characters(codec="utf-8")), st.none()), min_size=1),
    st.lists(st.sampled_from(["a", "B", "2013-01-01"]), min_size=1),
    st.lists(st.datetimes(), min_size=1),
    st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1),
    st.lists(
        st.datetimes(datetime(1700, 1, 1), timezones=st.just(zoneinfo.ZoneInfo("Europe/Paris"))),
        min_size=1,
    ),
)


@given(COLUMNS, cells, st.sampled_from(CONDITIONS), st.booleans())
@settings(max_examples=20)
def test_a_hostile_row_changes_dtypes_but_no_other_answer(values, hostile, text, categorical):
    clean = pd.Series(values)
    if categorical:
        clean = clean.astype("category")
    mixed = listed([*values, OBJECTS[hostile]])
    before = verdict(text, x=clean, y=clean.iloc[::-1].reset_index(drop=True))
    after = verdict(text, x=mixed, y=listed([*values[::-1], OBJECTS[hostile]]))
    assert after[:-1] == before
