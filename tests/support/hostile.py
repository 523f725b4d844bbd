"""Columns of every dtype that pandas offers, filled with the oddest values that the dtype can hold.

A dtype is public, and so is what a kind of column is made with: its categories, its time zone, the
type of its dictionary. Values are drawn from pools, so that neighbors agree in all but them.
"""

import datetime
import math
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa

NEW_YORK = "America/New_York"
DAY = datetime.date(2020, 2, 1)
NOON = pd.Timestamp("2020-02-01 12:00")
MIDNIGHT = pd.Timestamp("2020-02-01")
ZONED = pd.Timestamp("2020-02-01 12:00", tz="UTC")
NAT = np.iinfo(np.int64).min


def _refuse(*_):
    raise RuntimeError


class Hostile:
    """A value that answers nothing, not even what its class is."""

    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __hash__ = __bool__ = _refuse
    __float__ = __int__ = __index__ = __len__ = __iter__ = __str__ = __array__ = _refuse
    __reduce__ = __sub__ = __add__ = __mul__ = __contains__ = __getitem__ = _refuse
    __class__ = property(_refuse)

    def __repr__(self):
        return "hostile"  # hypothesis shows what it found


class Unhashable:
    """A value that equals everything, in no dict."""

    __hash__ = None

    def __eq__(self, _):
        return True


class Unequal:
    """A value that hashes like 1, and refuses to be compared."""

    __eq__ = _refuse

    def __hash__(self):
        return hash(1)


class HostileText(str):
    __slots__ = ()
    __eq__ = __ne__ = __lt__ = __hash__ = __str__ = _refuse


class HostileInt(int):
    __float__ = __index__ = __eq__ = __ne__ = __lt__ = __hash__ = _refuse


class HostileFloat(float):
    __float__ = __eq__ = __ne__ = __lt__ = __hash__ = __mul__ = _refuse


class HostileTime(datetime.datetime):
    __sub__ = __eq__ = __hash__ = utcoffset = replace = _refuse


class HostileZone(datetime.tzinfo):
    utcoffset = dst = tzname = _refuse


class HostileMeta(type):
    __eq__ = __hash__ = _refuse


class OfHostileType(metaclass=HostileMeta):
    pass


class Level(IntEnum):
    HIGH = 2


SMALL = [0, 1, 2, 3]
TEXTS = ["A", "B", "", "1", "2020-02-01", "a\x00", "é", "z" * 40]
FLOATS = [
    *[0.0, -0.0, 1.0, 2.0, 0.5, -1.0, 2.5, 1e-300, -5e-324, 1e300, -1.7e308],
    *[math.inf, -math.inf, math.nan, 2.0**53, 2.0**63, 4e9],
]
MISSING = [None, math.nan, pd.NA, pd.NaT]
DECIMALS = [Decimal(1), Decimal("2.50"), Decimal("-0"), Decimal("1e20"), Decimal("0.1")]
OBJECTS = [
    *[None, math.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s"), np.timedelta64("NaT", "s")],
    *[Decimal("NaN"), Decimal("sNaN"), np.float32("nan"), complex(math.nan, 1)],
    HostileFloat("nan"),
    *[0, 1, 2, True, False, np.True_, 1.0, 2.5, -1, 10**400, -(10**400), 2**63 - 1, -(2**63)],
    *[2**64 - 1, 5e-324, 1e300, math.inf, -math.inf, np.int8(1), np.uint64(2**64 - 1)],
    *[np.float16(1), np.longdouble("1e4000"), Fraction(10**400, 3), Fraction(1, 1), Level.HIGH],
    *[Decimal(1), Decimal("Infinity"), Decimal("1e999999"), 1j, 1 + 0j, np.complex64(2)],
    *["A", "B", "1", "", "\ud800", "A\x00", "2020-02-01", np.str_("A"), b"A", bytearray(b"A")],
    *[HostileText("A"), HostileInt(1), HostileFloat(1), HostileTime(2020, 2, 1), Hostile()],
    *[Unhashable(), Unequal(), OfHostileType(), OfHostileType, object(), float, len],
    *[(1, 2), (1, [2]), [1], [], {}, {1}, frozenset({1}), range(3), np.ones(2), np.array(1.0)],
    *[pd.Series([1]), pd.DataFrame({"a": [1]}), pd.Index([1]), slice(1), Ellipsis],
    *[DAY, NOON, MIDNIGHT, ZONED, NOON.to_pydatetime(), datetime.time(1), pd.Timedelta("1h")],
    *[datetime.timedelta(hours=1), np.datetime64("2020-02-01"), np.timedelta64(1, "h")],
    *[np.datetime64("-290000000", "Y"), np.datetime64(5, ("s", 25)), np.timedelta64(1, "Y")],
    *[datetime.datetime(2020, 2, 1, tzinfo=HostileZone()), datetime.date(1, 1, 1)],
    *[datetime.datetime(1, 1, 1, tzinfo=zoneinfo.ZoneInfo(NEW_YORK)), datetime.datetime.max],
    *[pd.Timestamp.max, pd.Timestamp(10**9, unit="s"), pd.Period("2020-02"), pd.Interval(0, 1)],
]
HOSTILE = [
    *[None, math.nan, pd.NA, "A", "B", 1, Hostile(), Hostile(), HostileText("A"), HostileText("B")],
    *[HostileInt(1), HostileFloat(1), Unhashable(), Unequal(), OfHostileType(), Decimal("sNaN")],
]


@dataclass(frozen=True)
class Kind:
    """A way to make columns: all made by one kind have one dtype.

    Parameters
    ----------
    name
        What the columns are.
    pool
        Values they may hold.
    make
        From a list of these to a column.
    keys
        Keys that such values may equal.
    """

    name: str
    pool: list
    make: Callable[[list], object]
    keys: list

    def __repr__(self):
        return self.name

    def narrowed(self, places):
        """The same kind with a few of its values."""
        return replace(self, pool=self.chosen(places))

    def chosen(self, places):
        """Values at some places of the pool."""
        return [self.pool[place % len(self.pool)] for place in places]

    def column(self, values):
        """Make a column, as a series on an index of places."""
        with np.errstate(all="ignore"):
            made = self.make(values)
        column = made if isinstance(made, pd.Series) else pd.Series(made)
        assert len(column) == len(values)
        return column


def objects(values):
    """An array of Python objects, taken as they are."""
    cells = np.empty(len(values), object)
    for row, value in enumerate(values):
        cells[row] = value
    return pd.Series(cells, dtype=object)


def _numpy(dtype, pool, keys=SMALL):
    return Kind(dtype, pool, lambda values: pd.Series(np.array(values, dtype=dtype)), keys)


def _integers(dtype):
    ends = np.iinfo(dtype.lower())
    return [0, 1, 2, 3, 127, int(ends.min), int(ends.max)]


def _array(dtype, pool, keys=SMALL):
    return Kind(str(dtype), pool, lambda values: pd.Series(pd.array(values, dtype=dtype)), keys)


def _objects(name, pool, keys):
    return Kind(f"objects: {name}", pool, objects, keys)


def _ticks(unit, zone=None):
    """Times as their integers, which reach as far as 64 bits do."""
    hour = {"s": 3600, "ms": 3_600_000, "us": 3_600_000_000, "ns": 3_600_000_000_000}[unit]
    noon = int((NOON - pd.Timestamp(0)) // pd.Timedelta("1h")) * hour
    pool = [noon, noon - 12 * hour, 0, -1, NAT, NAT + 1, 2**63 - 1, noon + 1]

    def make(values):
        times = pd.Series(np.array(values, np.int64).view(f"M8[{unit}]"))
        return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)

    keys = [NOON, MIDNIGHT, DAY] if zone is None else [ZONED, ZONED.tz_convert(NEW_YORK), NOON]
    return Kind(f"datetime64[{unit}, {zone}]", pool, make, keys)


def _durations(unit):
    pool = [0, 1, 3600, 3_600_000, NAT, NAT + 1, 2**63 - 1]
    keys = [pd.Timedelta("1h"), pd.Timedelta(0), 1]
    return Kind(
        f"timedelta64[{unit}]",
        pool,
        lambda values: pd.Series(np.array(values, np.int64).view(f"m8[{unit}]")),
        keys,
    )


def _arrow(kind, pool, keys=SMALL, rows=100):
    """Arrow columns in chunks of a few rows."""

    def make(values):
        starts = range(0, len(values), rows)
        chunks = [pa.array(values[start : start + rows], kind) for start in starts]
        return pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks, kind))

    return Kind(f"{kind}[pyarrow] by {rows}", pool, make, keys)


def _dictionary(index, values_kind, pool, keys, rows):
    kind = pa.dictionary(index, values_kind)

    def make(values):
        starts = range(0, len(values), rows)
        parts = [pa.array(values[start : start + rows], values_kind) for start in starts]
        chunks = [part.dictionary_encode().cast(kind) for part in parts]
        return pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks, kind))

    return Kind(f"{kind}[pyarrow] by {rows}", pool, make, keys)


def _categories(name, categories, ordered, keys=None):
    index = categories if isinstance(categories, pd.Index) else pd.Index(categories)
    pool = [-1, *range(len(index))]

    def make(values):
        codes = np.array(values, np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, index, ordered=ordered))

    keys = list(index[:3]) if keys is None else keys
    return Kind(f"category: {name}", pool, make, keys or SMALL)


def _sparse(subtype, fill, pool, keys=SMALL):
    dtype = pd.SparseDtype(subtype, fill)

    def make(values):
        return pd.Series(pd.arrays.SparseArray(np.array(values, dtype=dtype.subtype), dtype=dtype))

    return Kind(f"Sparse[{subtype}, {fill}]", pool, make, keys)


def _intervals(subtype, closed):
    ends = [(0, 1), (1, 2), (2, 2)]
    kind = {"int64": int, "float64": float}[subtype]

    def make(values):
        left = np.array([kind(ends[value][0]) for value in values], subtype)
        right = np.array([kind(ends[value][1]) for value in values], subtype)
        return pd.Series(pd.arrays.IntervalArray.from_arrays(left, right, closed))

    return Kind(f"interval[{subtype}, {closed}]", [0, 1, 2], make, [pd.Interval(0, 1, closed)])


def _periods(frequency):
    def make(values):
        codes = np.array(values, np.int64)
        return pd.Series(pd.arrays.PeriodArray(codes, dtype=pd.PeriodDtype(frequency)))

    first = pd.Period(ordinal=600, freq=frequency)
    return Kind(f"period[{frequency}]", [600, 601, NAT, 0], make, [first, MIDNIGHT])


NUMPY = [
    *[
        _numpy(kind, _integers(kind))
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    ],
    *[_numpy(kind, FLOATS) for kind in ("float16", "float32", "float64", "longdouble")],
    *[_numpy(kind, [0, 1, 2, complex(math.nan, 0), 1j]) for kind in ("complex64", "complex128")],
    _numpy("bool", [True, False], [True, False]),
]
OF_OBJECTS = [
    _objects("any", OBJECTS, [1, "A", True, DAY, ZONED, (1, 2)]),
    _objects("hostile", HOSTILE, [1, "A", "B"]),
    _objects("texts", [*TEXTS, "\ud800", None, math.nan, pd.NA], ["A", "1", ""]),
    _objects("odd texts", [*TEXTS, HostileText("A"), np.str_("A"), pd.NaT], ["A", "1", ""]),
    _objects("integers", [0, 1, 2, 2**70, -(10**400), None], SMALL),
    _objects("numbers", [*FLOATS, *DECIMALS, *SMALL, True, pd.NA], SMALL),
    _objects("decimals", [*DECIMALS, Decimal("NaN"), Decimal("-Infinity")], [Decimal(1), 1]),
    _objects("times", [NOON, ZONED, MIDNIGHT, DAY, pd.NaT, pd.Timedelta("1h")], [NOON, ZONED, DAY]),
    _objects("booleans", [True, False, None, np.True_], [True, False]),
]
NULLABLE = [
    *[
        _array(kind, [*_integers(kind), None])
        for kind in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    ],
    *[_array(kind, [None, *FLOATS[:-1]]) for kind in ("Float32", "Float64")],
    _array("boolean", [True, False, None], [True, False]),
    *[
        _array(pd.StringDtype(storage, na_value=na), [*TEXTS, None], ["A", "1", ""])
        for storage in ("python", "pyarrow")
        for na in (pd.NA, math.nan)
    ],
]
_SECONDS = [0, 1_580_558_400, -1, None, 2**62]
ARROW = [
    *[_arrow(kind, [*SMALL, 127, None]) for kind in (pa.int8(), pa.uint8(), pa.int16())],
    *[_arrow(pa.int64(), [*SMALL, 2**63 - 1, -(2**63), None], rows=rows) for rows in (100, 2)],
    _arrow(pa.uint64(), [*SMALL, 2**64 - 1, None]),
    *[_arrow(kind, [*FLOATS, None], rows=3) for kind in (pa.float32(), pa.float64())],
    _arrow(pa.float16(), [np.float16(x) for x in (0, 1, 2.5, math.nan, math.inf)]),
    _arrow(pa.bool_(), [True, False, None], [True, False]),
    *[_arrow(kind, [*TEXTS, None], ["A", "1", ""], 2) for kind in (pa.string(), pa.large_string())],
    _arrow(pa.string_view(), [*TEXTS, None], ["A", "1", ""]),
    _arrow(pa.binary(), [b"A", b"", None], [b"A", "A"]),
    _arrow(pa.decimal128(38, 2), [Decimal("1.00"), Decimal("2.50"), None], [Decimal(1), 1]),
    _arrow(pa.decimal256(70, 0), [Decimal(1), Decimal(10) ** 60, None], [Decimal(1), 1]),
    *[_arrow(pa.timestamp(unit), _SECONDS, [NOON, DAY], 2) for unit in ("s", "ms", "us", "ns")],
    *[_arrow(pa.timestamp("us", zone), _SECONDS[:-1], [ZONED]) for zone in ("UTC", NEW_YORK)],
    _arrow(pa.timestamp("s", "+07:00"), _SECONDS, [ZONED]),
    _arrow(pa.date32(), [0, 18_293, 2**31 - 1, -(2**31), None], [DAY, MIDNIGHT]),
    _arrow(pa.date64(), [0, 18_293 * 86_400_000, 1, 2**62, None], [DAY, MIDNIGHT]),
    _arrow(pa.time64("us"), [0, 1, None], [datetime.time(0)]),
    _arrow(pa.duration("us"), [0, 3_600_000_000, 2**62, None], [pd.Timedelta("1h"), 1]),
    _arrow(pa.list_(pa.int64()), [[1], [], [None], None], ["A", 1]),
    _arrow(pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": None}, None], ["A", 1]),
    _arrow(pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], None], ["A", 1]),
    _arrow(pa.null(), [None], ["A", 1]),
    *[_dictionary(pa.int8(), pa.string(), [*TEXTS, None], ["A", "1"], rows) for rows in (2, 100)],
    _dictionary(pa.int8(), pa.int64(), [*SMALL, None], SMALL, 2),
    _dictionary(pa.int32(), pa.float64(), [*FLOATS, None], SMALL, 3),
    _dictionary(pa.int8(), pa.timestamp("ns"), [0, 1_580_558_400 * 10**9, None], [NOON], 2),
]
CATEGORIES = [
    _categories("integers", [3, 1, 2], ordered=True),
    _categories("texts", ["A", "B", "unused"], ordered=False),
    _categories("floats", [1.0, 0.5, math.inf], ordered=False),
    _categories("booleans", [True, False], ordered=False),
    _categories("mixed", pd.Index([1, "A", DAY, 10**400, (1, 2)], tupleize_cols=False), False),
    _categories("intervals", pd.interval_range(0, 3), ordered=True),
    _categories("times", pd.DatetimeIndex([MIDNIGHT, NOON]), ordered=False),
    _categories("zoned times", pd.DatetimeIndex([ZONED]).tz_convert(NEW_YORK), ordered=True),
    _categories("durations", pd.TimedeltaIndex(["1h", "0h"]), ordered=False),
    _categories("periods", pd.period_range("2020-02", periods=2, freq="M"), ordered=False),
    _categories("nullable", pd.Index([1, 2], dtype="Int64"), ordered=False),
    _categories("Arrow", pd.Index(["A", "B"], dtype="string[pyarrow]"), ordered=False),
    _categories("hostile", pd.Index([OfHostileType(), Level.HIGH, "A"]), False, keys=[2, "A"]),
    _categories("many", list(range(300)), ordered=False),
    _categories("none", [], ordered=False),
]
TIMES = [
    *[_ticks(unit) for unit in ("s", "ms", "us", "ns")],
    *[_ticks(unit, zone) for unit in ("s", "ns") for zone in ("UTC", NEW_YORK)],
    *[_durations(unit) for unit in ("s", "ms", "us", "ns")],
    *[_periods(frequency) for frequency in ("D", "M", "s")],
    *[_intervals(subtype, closed) for subtype in ("int64", "float64") for closed in ("left",)],
]
SPARSE = [
    _sparse("float64", math.nan, FLOATS),
    _sparse("float64", 0.0, FLOATS),
    _sparse("float32", 1.0, FLOATS),
    _sparse("int64", 0, [*SMALL, 2**63 - 1]),
    _sparse("int8", 1, SMALL),
    _sparse("bool", False, [True, False], [True, False]),
    _sparse("object", math.nan, ["A", "B", math.nan, 1], ["A", 1]),
    _sparse("datetime64[ns]", pd.NaT, [0, NAT, 1_580_558_400 * 10**9], [NOON]),
]
KINDS = [*NUMPY, *OF_OBJECTS * 5, *NULLABLE, *ARROW, *CATEGORIES, *TIMES, *SPARSE]
"""Columns of objects come five times: they can hold the most."""
