"""Points in time and durations as numbers: how bounded columns of them are counted, and shown."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.queries.grid import Ticks

Moment: TypeAlias = pd.Timestamp | pd.Timedelta
"""A point in time or a duration."""

_UNITS = {1: "us", 1_000: "ms", 1_000_000: "s"}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MOST_TICKS = 2**32  # as many as whole numbers on a grid
_EPOCH = datetime(1970, 1, 1)
_FIRST = (datetime.min - _EPOCH) // timedelta(microseconds=1)
_LAST = (datetime.max - _EPOCH) // timedelta(microseconds=1)
_FARTHEST = 2**62  # room for the sum of two


def moment_of(text: str) -> datetime | None:
    """Read the point in time that a text in ISO form stands for; `None`: it is none.

    Examples
    --------
    >>> moment_of("2020-01"), moment_of("2020-01-31")
    (None, datetime.datetime(2020, 1, 31, 0, 0))
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def as_moment(value: object) -> Moment | None:
    """Read a point in time (a date is its midnight) or a duration; `None` for anything else.

    Examples
    --------
    >>> as_moment(timedelta(hours=1)) == pd.Timedelta("1h"), as_moment("2020-01-01")
    (True, None)
    """
    try:
        if isinstance(value, date | np.datetime64):
            moment: Moment = pd.Timestamp(value)
        elif isinstance(value, pd.Timedelta | np.timedelta64):
            moment = pd.Timedelta(value)
        elif isinstance(value, timedelta):
            moment = pd.Timedelta(np.timedelta64(value))  # pandas 2 would count nanoseconds
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return moment if isinstance(moment, pd.Timestamp | pd.Timedelta) else None  # it may be NaT


def microseconds(moment: Moment) -> int:
    """Count the microseconds of a duration, or from 1970 to a point in time, rounded down."""
    ticks = int(moment.asm8.view(np.int64))
    return ticks * 10**6 // _PER_SECOND[moment.unit]


def index_of(moments_given: Sequence[Moment]) -> pd.Index:
    """Put moments of one kind in an index, to the microsecond, in the time zone of the first."""
    counted = np.array([microseconds(moment) for moment in moments_given], np.int64)
    if isinstance(moments_given[0], pd.Timedelta):
        return pd.TimedeltaIndex(counted.view("m8[us]"))
    return pd.DatetimeIndex(_in_zone(counted, moments_given[0].tzinfo))


def in_use(moment: Moment) -> bool:
    """Whether a moment lies in the years 1 to 9999, or is a duration of at most as much."""
    return _FIRST <= microseconds(moment) <= _LAST


def ticks_of(lower: Moment, upper: Moment) -> Ticks:
    """Choose how a column within two bounds of one kind is counted.

    Durations are counted from 0, points in time from the lower bound, in the finest of
    microseconds, milliseconds and seconds of which `2**32` are enough.
    """
    low, high = microseconds(lower), microseconds(upper)
    points = isinstance(lower, pd.Timestamp)
    origin, zone = (low, lower.tzinfo) if isinstance(lower, pd.Timestamp) else (0, None)
    farthest = max(abs(low - origin), abs(high - origin))
    tick = next((tick for tick in _UNITS if farthest <= _MOST_TICKS * tick), 1_000_000)
    return Ticks(tick, origin, points, zone)


def durations(numbers: np.ndarray, ticks: Ticks) -> np.ndarray:
    """Turn numbers of ticks into durations in a unit of ticks: no sum of ticks leaves its range."""
    return _whole(numbers).view(f"m8[{_UNITS[ticks.tick]}]")


def moments(numbers: np.ndarray, ticks: Ticks) -> np.ndarray | ExtensionArray:
    """Turn numbers of ticks from the origin into durations or points in time, in microseconds."""
    rounded = _whole(np.asarray(numbers, np.float64) * ticks.tick)
    if not ticks.points:
        return rounded.view("m8[us]")
    return _in_zone(rounded + ticks.origin, ticks.zone)


def in_seconds(column: pd.Series, origin: int | None) -> np.ndarray:
    """View a released column as numbers: durations in seconds, times in seconds from the origin.

    The origin is in microseconds since 1970, and `None` for a column of numbers.
    """
    if origin is None:
        numbers: np.ndarray = column.to_numpy(np.float64, na_value=np.nan)
        return numbers
    counted, per_second = _count_times(column)
    start = origin * per_second // 10**6 if column.dtype.kind == "M" else 0
    return np.where(column.isna(), np.nan, (counted - start) / per_second)


def seconds(numbers: np.ndarray) -> np.ndarray:
    """Turn seconds into durations, to the microsecond; `nan` into missing ones."""
    unknown = np.isnan(numbers)
    counted = _whole(np.multiply(np.where(unknown, 0.0, numbers), 1e6)).view("m8[us]")
    return np.where(unknown, np.timedelta64("NaT", "us"), counted)


def times_like(column: pd.Series, numbers: np.ndarray, origin: int) -> np.ndarray | ExtensionArray:
    """Turn seconds, from the origin for points in time, into times like those of a column.

    `nan` becomes a missing one.
    """
    _, per_second = _count_times(column)
    start = origin * per_second // 10**6 if column.dtype.kind == "M" else 0
    unknown = np.isnan(numbers)
    counted = _whole(np.multiply(np.where(unknown, 0.0, numbers), per_second)) + start
    made = _like(column, counted)
    return pd.Series(made).mask(unknown).array if unknown.any() else made


def times_around(
    column: pd.Series, seconds: float | np.ndarray
) -> tuple[np.ndarray | ExtensionArray, np.ndarray | ExtensionArray]:
    """Go some seconds back and forth from released times."""
    counted, per_second = _count_times(column)
    # a width is often a whole number of units, except for the rounding of its product
    width = _whole(np.ceil(np.round(np.multiply(seconds, per_second), 6)))
    near = np.clip(counted, -_FARTHEST, _FARTHEST)
    return _like(column, near - width), _like(column, near + width)


def times_between(
    column: pd.Series, ends: tuple[np.ndarray, np.ndarray], origin: int, span: tuple[int, int]
) -> tuple[np.ndarray | ExtensionArray, np.ndarray | ExtensionArray]:
    """Turn ends in seconds from the origin into times like those of a column, outwards.

    Origin and span, which holds them, are in microseconds.
    """
    _, per_second = _count_times(column)
    start = origin * per_second // 10**6 if column.dtype.kind == "M" else 0
    low, high = (np.round(np.multiply(end, per_second), 6) for end in ends)
    first, last = (bound * per_second // 10**6 for bound in span)
    within = (np.clip(_whole(end) + start, first, last) for end in (np.floor(low), np.ceil(high)))
    below, above = (_like(column, end) for end in within)
    return below, above


def _whole(numbers: np.ndarray | float) -> np.ndarray:
    """Round to whole numbers, those that are too large to 2**62, with a sign."""
    rounded = np.asarray(numbers)
    if rounded.dtype.kind != "i":
        rounded = np.rint(rounded)
    return np.asarray(np.clip(rounded, -_FARTHEST, _FARTHEST).astype(np.int64))


def _count_times(column: pd.Series) -> tuple[np.ndarray, int]:
    """Integers that stand for times, and how many of their units a second has."""
    unit = str(column.array.unit)
    return np.asarray(column.array.asi8), _PER_SECOND[unit]


def _like(column: pd.Series, counted: np.ndarray) -> np.ndarray | ExtensionArray:
    """Turn integers into times of the dtype of others."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "m":
        return counted.view(column.dtype)
    return _in_zone(counted, column.dt.tz)


def _in_zone(since: np.ndarray, zone: tzinfo | None) -> np.ndarray | ExtensionArray:
    """Points in time from microseconds since 1970."""
    naive = since.view("M8[us]")
    if zone is None:
        return naive
    return pd.Series(naive).dt.tz_localize("UTC").dt.tz_convert(zone).array
