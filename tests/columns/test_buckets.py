"""Equal units share a bucket, whatever their dtype and in any process; buckets are even."""

import subprocess
import sys
import warnings
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hostile import KINDS, objects

from dpframe.columns import buckets
from dpframe.columns.buckets import unit_buckets
from dpframe.columns.times import wall_times
from dpframe.columns.values import is_dictionary, missing, split_dictionary
from dpframe.columns.values import objects as boxed

MANY = 1 << 40  # so many buckets that units share one by equality alone
FAR = 10**17  # microseconds; pandas 2.3 crashes where times with a zone lie farther
NEW_YORK = zoneinfo.ZoneInfo("America/New_York")
TWICE = datetime(2020, 11, 1, 1, 30, tzinfo=NEW_YORK)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = [*INTEGERS, "bool", "float16", "float32", "float64", "complex128"]
NULLABLE = ["Int64", "UInt64", "Float64", "int64[pyarrow]", "uint64[pyarrow]", "double[pyarrow]"]
SPARSE = ["Sparse[int64]", "Sparse[float64]", "Sparse[bool]"]


class Color(StrEnum):
    RED = "red"


class Caseless(str):
    """A text that equals others in any case."""

    __slots__ = ()

    def __eq__(self, other):
        return self.lower() == other.lower()

    def __hash__(self):
        return hash(self.lower())


class FarZone(zoneinfo.ZoneInfo):
    def utcoffset(self, _):
        raise RuntimeError("private")


ODD = [
    *[Color.RED, "red", np.str_("red"), "RED", "\ud800", "\udfff"],
    *[b"red", np.bytes_(b"red"), (), (1, "a"), (True, np.str_("a")), (1.0, "a"), ("a", 1)],
    *[(1, (2, (3, (4, (5, (6,)))))), (1, (2, (3, (4, (5, (7,)))))), (None, float("nan"))],
    *[TWICE, TWICE.replace(fold=1), pd.Timestamp(TWICE), pd.Timestamp(TWICE.replace(fold=1))],
    *[TWICE.astimezone(UTC), TWICE.replace(fold=1).astimezone(UTC), datetime(2020, 1, 1, fold=1)],
    *[datetime(2020, 1, 1, tzinfo=FarZone("UTC")), datetime(2020, 1, 1, tzinfo=UTC)],
    *[
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        np.datetime64("2020-01-01"),
        pd.Timestamp(2020, 1, 1),
    ],
    *[
        np.datetime64("2020"),
        np.datetime64("2020-01-01T00", "ns"),
        pd.Timestamp(5),
        pd.Timestamp(7),
    ],
    *[timedelta(days=-1), pd.Timedelta("-1D"), np.timedelta64(-24, "h"), np.timedelta64(5, "ns")],
    *[12, -1],
    *[UUID(int=5), UUID(int=2**64 + 5), np.longdouble(2**53), float(2**53), np.clongdouble(3), 3],
    *[
        Fraction(1, 3),
        1 / 3,
        Decimal("1e999999"),
        Decimal("-1e30"),
        -(10**30),
        -1e30,
        2**64,
        2.0**64,
    ],
]


def equal(value, other):
    """Whether a dict takes the two for one."""
    try:
        return {value: 1}.get(other) == 1
    except Exception:
        return False


def cells(column, count=MANY):
    """Pairs of a value and its bucket, without missing values and those Python cannot hold."""
    if column.dtype.kind == "M":
        column = column[np.abs(wall_times(column)[0]) < FAR]
    if is_dictionary(column.dtype):
        parts = split_dictionary(column)
        values = [None if code < 0 else boxed(parts.values)[code] for code in parts.codes]
    else:
        values = boxed(column).tolist()
    found = zip(values, unit_buckets([column], count).tolist(), missing(column), strict=True)
    return [(value, bucket) for value, bucket, gone in found if not gone and value is not None]


def holding(value, dtypes):
    """Columns of some dtypes that hold a number exactly."""
    for dtype in dtypes:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                column = pd.Series([value], dtype=object).astype(dtype)
        except (OverflowError, ValueError, TypeError, pa.ArrowException):
            continue
        if equal(boxed(column)[0], value):
            yield column


def one_bucket(columns):
    """The only bucket that any row of some columns is in."""
    found = {bucket for column in columns for bucket in unit_buckets([column], MANY).tolist()}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("block", [3, 1 << 20])
def test_units_that_a_dict_takes_for_one_share_a_bucket_in_columns_of_any_dtype(block, monkeypatch):
    monkeypatch.setattr(buckets, "_BLOCK", block)
    kinds = {kind.name: kind for kind in KINDS}.values()
    columns = [kind.column(kind.pool) for kind in kinds] + [objects(ODD)]
    found = [cell for column in columns for cell in cells(column)]
    matched = 0
    for (value, bucket), (other, second) in combinations(found, 2):
        if equal(value, other):
            matched += 1
            assert bucket == second, (value, other)
    assert matched > 5_000


@given(st.integers(-(2**64), 2**65) | st.integers(-300, 300) | st.floats(allow_nan=False))
def test_a_number_has_one_bucket_in_every_dtype(number):
    columns = list(holding(number, [*NUMBERS, *NULLABLE, *SPARSE]))
    items = [number, Fraction(number), Decimal(number)] if abs(number) < np.inf else [number]
    columns += [objects(items), pd.Series([number, None], dtype="category").iloc[:1]]
    one_bucket(columns)


@given(st.text(st.characters(), max_size=20))
def test_a_text_has_one_bucket_in_every_dtype(text):
    category = pd.Categorical.from_codes([0], pd.Index([text], dtype=object))
    columns = [objects([text, np.str_(text)]), pd.Series(category)]
    if text.encode(errors="replace").decode() == text:
        kinds = [pa.string(), pa.large_string(), pa.string_view()]
        arrow = [pa.chunked_array([pa.array([text], kind)]) for kind in kinds]
        arrow.append(pa.chunked_array([pa.array([text]).dictionary_encode()]))
        columns += [pd.Series(pd.arrays.ArrowExtensionArray(array)) for array in arrow]
        columns += [pd.Series([text], dtype=pd.StringDtype(kind)) for kind in ("python", "pyarrow")]
    one_bucket(columns)


@given(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)), st.sampled_from([0, 1]))
def test_a_point_in_time_has_one_bucket_in_every_dtype(moment, fold):
    naive = pd.Series([moment, None], dtype="M8[us]")
    arrow = [pd.ArrowDtype(pa.timestamp(unit)) for unit in ("us", "ns")]
    ticks = [naive.astype(dtype).iloc[:1] for dtype in ("M8[us]", "M8[ns]", *arrow, "category")]
    stamps = [moment, pd.Timestamp(moment), np.datetime64(moment, "us")]
    one_bucket([*ticks, objects(stamps)])
    zoned = moment.replace(tzinfo=NEW_YORK, fold=fold)
    shown = pd.Series([zoned]).astype("M8[us, America/New_York]")
    if fold == 0 and shown.iloc[0].replace(tzinfo=None) == moment:  # not skipped in spring
        instant = zoned.astimezone(UTC)
        zones = [shown, shown.dt.tz_convert("UTC"), shown.dt.tz_convert("Asia/Kathmandu")]
        arrow = shown.astype(pd.ArrowDtype(pa.timestamp("us", "America/New_York")))
        one_bucket([*zones, arrow, objects([zoned, instant, pd.Timestamp(zoned)])])
    else:
        one_bucket([shown, objects([zoned, pd.Timestamp(zoned)])])


def test_the_hour_that_a_clock_shows_twice():
    both = [TWICE, TWICE.replace(fold=1)]
    column = pd.Series(pd.DatetimeIndex(both, tz=NEW_YORK))
    assert equal(*both)
    assert column[0] != column[1]
    one_bucket([column, objects(both), column.astype(object)])


@given(st.timedeltas(timedelta(-(10**5)), timedelta(10**5)))
def test_a_duration_has_one_bucket_in_every_dtype(length):
    kinds = ["m8[us]", "m8[ns]", pd.ArrowDtype(pa.duration("us")), "category"]
    columns = [pd.Series([length], dtype="m8[us]").astype(kind) for kind in kinds]
    one_bucket([*columns, objects([length, pd.Timedelta(length), np.timedelta64(length)])])


def test_a_bucket_depends_on_the_unit_alone():
    column = objects(["a", 1, None, "\ud800", TWICE, ("a",), 2.5, b"x", UUID(int=9)])
    alone = [int(unit_buckets([column.iloc[[row]]], 1000)[0]) for row in range(len(column))]
    assert unit_buckets([column], 1000).tolist() == alone
    assert len(set(alone)) > 5
    assert unit_buckets([column.iloc[::-1]], 1000).tolist() == alone[::-1]


def test_missing_unreadable_and_unknown_units_are_in_bucket_0():
    gone = [None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT", "s")]
    odd = [[1], {}, object(), Caseless("x"), Caseless("X"), Ellipsis, "\ud800"]
    assert not unit_buckets([objects([*gone, *odd])], 1000).any()
    for dtype in ("Int64", "string", "M8[ns, UTC]", "category", "float64"):
        assert not unit_buckets([pd.Series([None, None], dtype=dtype)], 1000).any()
    assert unit_buckets([pd.Series([], dtype="int64")], 3).shape == (0,)


def test_texts_that_are_no_utf_8():
    texts = pa.array([b"a", b"\xff", None, b"b"]).cast(pa.string(), safe=False)
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([texts])))
    alone = unit_buckets([pd.Series(["a", None, None, "b"], dtype=object)], 1000)
    assert unit_buckets([column], 1000).tolist() == alone.tolist()


@pytest.mark.full
def test_other_processes_find_the_same_buckets():
    code = (
        "import pandas as pd; from dpframe.columns.buckets import unit_buckets;"
        "print(unit_buckets([pd.Series([1, 'a', 'b', b'c', pd.Timestamp(0), pd.Timedelta(10**9),"
        "('a', 2.5)], dtype=object)], 10**6).tolist())"
    )
    run = [sys.executable, "-c", code]
    found = {
        subprocess.run(
            run, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
