"""Views of one private column as points in time, under the same promise as the views as numbers.

Times are counted in microseconds since 1970-01-01, rounded down; those more than 146,000 years away
are moved to that distance. A date is its midnight.
"""

from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from dpframe.columns import pa, values
from dpframe.queries.edges import Ticks

EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)

# seconds
_DAY = 86_400
_NOT_A_TIME = np.iinfo(np.int64).min
# microseconds; leaves room to add an offset
_FARTHEST = 2**62
# over, under
_PER_TICK = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
# Zones are asked about years 2 to 9998 only: they are built on `datetime`, which knows few others.
_FIRST_ZONED = (datetime(2, 1, 1) - EPOCH) // MICROSECOND
_LAST_ZONED = (datetime(9998, 12, 31) - EPOCH) // MICROSECOND


def wall_times(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """View a column as what a clock on the wall showed, in the time zones of the values.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    times, valid : numpy.ndarray
        int64 microseconds since 1970-01-01 00:00, and whether the value is a point in time; 0 where
        it is not.

    Examples
    --------
    >>> wall_times(pd.Series(["1970-01-02", pd.Timestamp("1970-01-02")], dtype=object))
    (array([          0, 86400000000]), array([False,  True]))
    """
    clock = _clock(column)
    return clock.wall, clock.valid


def instants(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """View a column as instants, for values with a time zone.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    times, valid : numpy.ndarray
        int64 microseconds since 1970-01-01 00:00 UTC, and whether the value is a point in time with
        a time zone; 0 where it is not.
    """
    clock = _clock(column)
    return np.where(clock.aware, clock.utc, 0), clock.aware


def naive_times(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """View a column as what a clock on the wall showed, for values without a time zone.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    times, valid : numpy.ndarray
        int64 microseconds since 1970-01-01 00:00, and whether the value is a date or a point in
        time without a time zone.
    """
    clock = _clock(column)
    return clock.wall, clock.valid & ~clock.aware


def durations(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """View a column as durations.

    Parameters
    ----------
    column
        Any series.

    Returns
    -------
    lengths, valid : numpy.ndarray
        int64 microseconds, rounded down, and whether the value is a duration; those of more than
        146,000 years are as long as that.

    Examples
    --------
    >>> durations(pd.Series([pd.Timedelta("1s"), 1], dtype=object))
    (array([1000000,       0]), array([ True, False]))
    """
    parts = values.split_categories(column)
    if parts is not None:
        lengths, valid = (values.spread(view, parts.codes, 0) for view in durations(parts.values))
        return lengths, valid
    column = values.dense(column)
    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind == "m":
        ticks = column.array.__arrow_array__().cast("int64").fill_null(_NOT_A_TIME).to_numpy()
        return _lengths(ticks, dtype.pyarrow_dtype.unit)
    if isinstance(dtype, np.dtype) and dtype.kind == "m":
        return _lengths(column.to_numpy().view(np.int64), np.datetime_data(dtype.str)[0])
    lengths, valid = np.zeros(len(column), np.int64), np.zeros(len(column), bool)
    if values.holds_objects(column):
        for row, value in enumerate(values.objects(column)):
            length = values.contain_errors(_count_microseconds, value, otherwise=None)
            if length is not None:
                lengths[row], valid[row] = length, True
    return lengths, valid


def ticks(column: pd.Series, scale: Ticks) -> np.ndarray:
    """View a column as numbers of ticks, of the kind of times that count.

    Parameters
    ----------
    column
        Any series.
    scale
        What counts, and how.

    Returns
    -------
    numpy.ndarray
        float64, one per row; NaN for everything else.
    """
    if not scale.points:
        view = durations
    elif scale.zone is None:
        view = naive_times
    else:
        view = instants
    values, valid = view(column)
    return np.where(valid, (values - scale.origin) / scale.tick, np.nan)


def _lengths(ticks: np.ndarray, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Turn ticks of a unit into microseconds."""
    utc, _, valid, _ = _clock_of_ticks(ticks, unit, None)
    return utc, valid


def _count_microseconds(value: Any) -> int | None:
    """Count the microseconds of a duration, `None` for others; may raise what the value raises."""
    kind = type(value)
    if issubclass(kind, timedelta):
        value = np.timedelta64(value.asm8 if issubclass(kind, pd.Timedelta) else value)
    elif not issubclass(kind, np.timedelta64):
        return None
    if np.datetime_data(value.dtype)[0] in ("Y", "M", "generic"):
        return None  # of no certain length
    ticks, unit = _ticks_of(value)
    lengths, valid = _lengths(np.array([ticks]), unit)
    return int(lengths[0]) if valid[0] else None


def _ticks_of(value: Any) -> tuple[int, str]:
    """Count a time of NumPy in a unit that columns have."""
    unit, multiple = np.datetime_data(value.dtype)
    if unit in ("ps", "fs", "as"):
        unit = "ns"
    elif unit not in _PER_TICK or multiple != 1:
        unit = "s"
    return int(value.astype(f"{value.dtype.kind}8[{unit}]").view(np.int64)), unit


class _Clock(NamedTuple):
    """Points in time on the wall and at UTC; which values are any, which know their zone."""

    wall: np.ndarray
    utc: np.ndarray
    valid: np.ndarray
    aware: np.ndarray


class _Tick(NamedTuple):
    """A point in time as ticks of a unit since 1970, at UTC if there is a zone."""

    ticks: int
    unit: str
    zone: tzinfo | None


def _clock(column: pd.Series) -> _Clock:
    """View a column of any dtype as points in time."""
    parts = values.split_categories(column)
    if parts is not None:
        return _Clock(*(values.spread(view, parts.codes, 0) for view in _clock(parts.values)))
    column = values.dense(column)
    dtype = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        ticks = column.array.to_numpy(dtype=f"M8[{dtype.unit}]").view(np.int64)
        return _clock_of_ticks(ticks, dtype.unit, dtype.tz)
    if isinstance(dtype, pd.ArrowDtype):
        return _arrow_clock(column)
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        ticks = column.to_numpy().view(np.int64)
        return _clock_of_ticks(ticks, np.datetime_data(dtype.str)[0], None)
    if values.holds_objects(column):
        return _object_clock(values.objects(column))
    return _no_times(len(column))


def _no_times(length: int) -> _Clock:
    """Return the view of values none of which is a point in time."""
    return _clock_of_ticks(np.full(length, _NOT_A_TIME), "us", None)


def _arrow_clock(column: pd.Series) -> _Clock:
    """View Arrow timestamps and dates as points in time."""
    kind, array = cast(pd.ArrowDtype, column.dtype).pyarrow_dtype, column.array.__arrow_array__()
    if pa.types.is_date(kind):
        # days, or milliseconds that may lie within a day
        per_day = 1 if pa.types.is_date32(kind) else _DAY * 1000
        numbers = array.cast("int32" if per_day == 1 else "int64").cast("int64")
        days = numbers.fill_null(0).to_numpy() // per_day
        ticks = np.where(column.isna().to_numpy(), _NOT_A_TIME, days * _DAY)
        return _clock_of_ticks(ticks, "s", None)
    if not pa.types.is_timestamp(kind):
        return _no_times(len(column))
    ticks = array.cast("int64").fill_null(_NOT_A_TIME).to_numpy()
    return _clock_of_ticks(ticks, kind.unit, kind.tz)


def _object_clock(items: np.ndarray) -> _Clock:
    """View objects as points in time, those of one unit and zone together."""
    clock = _no_times(len(items))
    groups: dict[object, list[tuple[int, _Tick]]] = {}
    for row, value in enumerate(items):
        tick = _tick(value)
        if tick is not None:
            # Fixed offsets may be one object per value; other zones are shared, not all hashable.
            zone = tick.zone if type(tick.zone) is timezone else id(tick.zone)
            groups.setdefault((tick.unit, zone), []).append((row, tick))
    for group in groups.values():
        rows, (_, first) = [row for row, _ in group], group[0]
        ticks = np.array([tick.ticks for _, tick in group], dtype=np.int64)
        for column, part in zip(clock, _clock_of_ticks(ticks, first.unit, first.zone), strict=True):
            column[rows] = part
    return clock


def _tick(value: object) -> _Tick | None:
    """Return a date or datetime as ticks since 1970, anything else as None."""
    if value is None or value is pd.NaT or type(value) is str or type(value) is float:
        return None
    return values.contain_errors(_count_ticks, value, otherwise=None)


def _count_ticks(value: Any) -> _Tick | None:
    """Count the ticks from 1970 to a date or datetime; may raise what the value raises."""
    kind = type(value)
    if issubclass(kind, np.datetime64):
        return _Tick(*_ticks_of(value), None)
    if issubclass(kind, pd.Timestamp):
        return _Tick(int(value.asm8.view(np.int64)), value.unit, value.tzinfo)
    if issubclass(kind, datetime):
        offset = value.utcoffset()
        since = value.replace(tzinfo=None) - EPOCH - (offset or timedelta(0))
        return _Tick(since // MICROSECOND, "us", None if offset is None else value.tzinfo)
    if issubclass(kind, date):
        days = date.toordinal(value) - EPOCH.toordinal()
        return _Tick(days * 86_400, "s", None)
    return None


def _clock_of_ticks(ticks: np.ndarray, unit: str, zone: tzinfo | str | None) -> _Clock:
    """Turn ticks of a unit since 1970, at UTC if there is a zone, into points in time."""
    valid = ticks != _NOT_A_TIME
    over, under = _PER_TICK[unit]
    near = np.where(valid, ticks // under, 0)
    utc = np.clip(near, -(_FARTHEST // over), _FARTHEST // over) * over
    if zone is None:
        return _Clock(utc, utc.copy(), valid, np.zeros(len(ticks), dtype=bool))
    return _Clock(np.where(valid, utc + _offsets(utc, zone), 0), utc, valid, valid.copy())


def first_instants(wall: np.ndarray, zone: Any) -> np.ndarray:
    """Count the microseconds at UTC of what a clock showed, the first time it did, if it can."""
    clipped = np.clip(wall, _FIRST_ZONED, _LAST_ZONED)

    def first() -> np.ndarray:
        local, summer = pd.DatetimeIndex(clipped.view("M8[us]")), np.ones(len(clipped), bool)
        aware = local.tz_localize(zone, ambiguous=summer, nonexistent="shift_forward")
        return _microseconds(aware.tz_convert("UTC"))

    return np.asarray(wall - clipped + values.contain_errors(first, otherwise=clipped))


def _offsets(utc: np.ndarray, zone: tzinfo | str) -> np.ndarray:
    """Microseconds to add to UTC in a time zone; 0 in an unknown zone."""
    clipped = np.clip(utc, _FIRST_ZONED, _LAST_ZONED)

    def wall_clock() -> np.ndarray:
        instants = pd.DatetimeIndex(clipped.view("M8[us]")).tz_localize("UTC")
        return _microseconds(instants.tz_convert(zone))

    return np.asarray(values.contain_errors(wall_clock, otherwise=clipped) - clipped)


def _microseconds(times: pd.DatetimeIndex) -> np.ndarray:
    """Count what a clock showed, without its zone."""
    return np.asarray(times.tz_localize(None).to_numpy().astype("M8[us]").view(np.int64))
