"""Edges of bins, and where a value on an edge belongs: this is the only place that says so.

Every edge belongs to a bin. Bins from edges are closed on the right, and the first edge belongs to
the first bin; of bins closed on the left, the last edge to the last one. Intervals say so as those
of `pandas.cut(..., include_lowest=True)` do: the first one begins a little below its edge.
"""

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from datetime import date, datetime, timedelta, tzinfo
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.arguments import check_size
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import as_number

BITS = 32
"""How fine grids are: bounds are at most `2 ** BITS` steps away from 0."""

_LEAST_EXPONENT = -1074  # of the smallest float: all floats are multiples of it


@frozen(slots=True)
class Ticks:
    """How times become numbers.

    Parameters
    ----------
    tick
        Microseconds that count as 1.
    origin
        Where points in time are counted from, in microseconds since 1970; 0 for durations.
    points
        Whether they are points in time, not durations.
    zone
        The time zone of the points in time that count; `None`: those without one.
    """

    tick: int
    origin: int
    points: bool
    zone: tzinfo | None


@frozen(slots=True)
class Grid:
    """Integers that stand for the values of one bounded column.

    Parameters
    ----------
    exponent
        The step between neighboring grid points is `2 ** exponent`.
    lower, upper
        Integer bounds: what one present value can be after clipping.
    fill
        Integer that stands for a missing value; `None`: a missing value contributes nothing.
    ticks
        How the times of the column become numbers; `None` for a column of numbers.
    drop
        Whether rows with a missing value are left out of the whole query.
    """

    exponent: int
    lower: int
    upper: int
    fill: int | None = None
    ticks: Ticks | None = None
    drop: bool = field(default=False, repr=False)

    @classmethod
    @lru_cache(1024)
    def for_bounds(
        cls,
        lower: float | Fraction,
        upper: float | Fraction,
        *,
        integer: bool = False,
        missing: float | Fraction | None = None,
        ticks: Ticks | None = None,
        bits: int = BITS,
    ) -> "Grid":
        """Choose the grid from public bounds only.

        The step is `2 ** (ceil(log2(max(|lower|, |upper|))) - bits)`, but not below the smallest
        float; and 1 for a column declared to hold integers up to 2**bits in magnitude. Bounds move
        inwards, to the grid, by less than one step; where no grid point lies between them, both
        move to the one nearest to their middle.

        Parameters
        ----------
        lower, upper
            Finite bounds of the column, `lower <= upper`.
        integer
            Whether the column is declared to hold integers.
        missing
            Declared replacement of a missing value; clipped to the bounds.
        ticks
            What bounds and replacement are counted in, for a column of times.
        bits
            How fine the grid is.

        Examples
        --------
        >>> Grid.for_bounds(0, 100, integer=True)
        Grid(exponent=0, lower=0, upper=100, fill=None, ticks=None)
        >>> Grid.for_bounds(0.0, 100.0).exponent
        -25
        """
        largest = max(abs(Fraction(lower)), abs(Fraction(upper)))
        exponent = max(_ceil_log2(largest) - bits, _LEAST_EXPONENT)
        if integer and largest <= 2**bits:
            exponent = 0
        step = Fraction(2) ** exponent
        low, high = math.ceil(Fraction(lower) / step), math.floor(Fraction(upper) / step)
        if low > high:
            low = high = round((Fraction(lower) + Fraction(upper)) / 2 / step)
        fill = None if missing is None else min(max(round(Fraction(missing) / step), low), high)
        return cls(exponent, low, high, fill, ticks)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds on the grid, in the units of the column, or in seconds from the origin."""
        ends = math.ldexp(self.lower, self.exponent), math.ldexp(self.upper, self.exponent)
        if self.ticks is None:
            return ends
        lower, upper = (end * self.ticks.tick / 10**6 for end in ends)
        return lower, upper

    @property
    def step(self) -> float:
        """Distance between neighboring grid points, in the units of the column, or in seconds."""
        step = math.ldexp(1.0, self.exponent)
        return step if self.ticks is None else step * self.ticks.tick / 10**6


def _ceil_log2(value: Fraction) -> int:
    """Smallest e with value <= 2**e; 0 for zero."""
    if value == 0:
        return 0
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    while Fraction(2) ** guess >= value:
        guess -= 1
    while Fraction(2) ** guess < value:
        guess += 1
    return guess


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
    times = _like(column, counted)
    return pd.Series(times).mask(unknown).array if unknown.any() else times


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


_DIGITS = 3  # decimals of the difference, as in pandas.cut; more for narrow bins
_MOST_DIGITS = 20  # decimals, beyond those of floats near 1
_PART = 10  # the difference is at most one part in so many of the first bin
_EXACT = Context(prec=400, traps=[])  # sums of any two floats, whatever a program has set
_TICK = pd.Timedelta(1, "us").as_unit("us")  # in nanoseconds, pandas 2 knows few years
_LEAST = -(2**63)  # of integers of 64 bits
_FAR = 2**53  # whole numbers up to here are floats
_PLAIN = {int, float, np.int64, np.float64}  # arrays of them hold the same numbers

ClosedSide: TypeAlias = Literal["right", "left"]
"""The edge that bins hold."""


def bins_between(edges: np.ndarray | pd.Index, closed: ClosedSide = "right") -> pd.IntervalIndex:
    """Return the bins between increasing edges, of which the one at the end holds both of its own.

    Examples
    --------
    >>> list(map(str, bins_between(np.array([0, 1, 2]))))
    ['(-0.001, 1.0]', '(1.0, 2.0]']
    >>> list(map(str, bins_between(np.array([-np.inf, 0.5]))))
    ['(-inf, 0.5]']
    """
    end, direction = (0, -1) if closed == "right" else (-1, 1)  # which edge moves, and where
    if isinstance(edges, pd.Index):
        moments = list(edges)
        moments[end] += direction * _TICK
        breaks = index_of(moments) if in_use(moments[end]) else edges
        return pd.IntervalIndex.from_breaks(breaks, closed=closed)
    numbers = edges.astype(np.float64)
    if not (numbers[1:] > numbers[:-1]).all():  # integers that floats do not tell apart
        integers = edges.tolist()
        integers[end] = max(integers[end] + direction, _LEAST)
        return pd.IntervalIndex.from_breaks(np.array(integers), closed=closed)
    if closed == "right":
        numbers[0] = _below(float(numbers[0]), float(numbers[1]))
    else:
        numbers[-1] = math.nextafter(numbers[-1], math.inf)
    return pd.IntervalIndex.from_breaks(numbers, closed=closed)


def edge_text(edge: Any) -> str:
    """Write an edge: a whole number without decimals, a midnight as its date.

    Examples
    --------
    >>> [edge_text(edge) for edge in (18, 18.0, 0.1, pd.Timestamp("2024-01-31"))]
    ['18', '18', '0.1', '2024-01-31']
    """
    moment = as_moment(edge)
    if isinstance(moment, pd.Timestamp):
        return str(moment).removesuffix(" 00:00:00")
    if moment is not None:
        return str(moment)
    number = as_number(edge)
    if isinstance(number, float) and number.is_integer() and abs(number) < _FAR:
        number = int(number)
    return str(number)


def whole_bins(bins: pd.IntervalIndex) -> pd.IntervalIndex:
    """Return the same bins of whole numbers, where their edges are whole: (-1, 1] of 0 and 1."""
    edges = edges_of(bins)
    if edges.dtype.kind != "f" or edges[0] == bins.left[0]:
        return bins
    if not (np.abs(edges) < _FAR).all() or (edges % 1 != 0).any():
        return bins
    first, *others = map(int, edges)
    return pd.IntervalIndex.from_breaks(np.array([first - 1, *others]), name=bins.name)


def edges_of(bins: pd.IntervalIndex) -> pd.Index:
    """Return the edges of adjacent bins, the first one as it was given.

    Examples
    --------
    >>> edges_of(bins_between(np.array([0.0, 0.01]))).tolist()
    [0.0, 0.01]
    """
    edges = bins.left.append(bins.right[-1:])
    first = first_edge(bins[0])
    if edges.dtype.kind in "iu" and bins.closed == "right" and (edges[1:] - edges[:-1] > 1).any():
        first += 1  # the least whole number in the first bin
    return edges if first == edges[0] else pd.Index([first]).append(edges[1:])


def first_edge(interval: pd.Interval) -> Any:
    """Return where a bin begins: at a round number, or time, a little above its left end, if any.

    Examples
    --------
    >>> first_edge(pd.Interval(-0.001, 10.0)), first_edge(pd.Interval(0.0, 10.0))
    (0.0, 0.0)
    """
    left = interval.left
    if not interval.open_left:
        return left
    match left:
        case float():
            return _above(float(left), float(interval.right))
        case pd.Timestamp() | pd.Timedelta():
            above = left + _TICK
            return above if above.floor("s") == above else left
    return left


def _below(edge: float, right: float) -> float:
    """Return a number below an edge from which the edge can be told; infinity has none."""
    if not math.isfinite(edge):
        return edge
    for digits in range(_DIGITS, _MOST_DIGITS):
        step = Decimal(1).scaleb(-digits, _EXACT)
        lower = _add(edge, step.copy_negate())
        narrow = not math.isfinite(right) or float(step) * _PART <= right - edge
        if lower < edge and narrow and _add(lower, step) == edge:
            return lower
    return math.nextafter(edge, -math.inf)


def _above(lower: float, right: float) -> float:
    """Return the edge, with fewer digits, that such a number stands for; itself if for none."""
    if not math.isfinite(lower):
        return lower
    steps = (Decimal(1).scaleb(-digits, _EXACT) for digits in range(_DIGITS, _MOST_DIGITS))
    for edge in (*(_add(lower, step) for step in steps), math.nextafter(lower, math.inf)):
        shorter = len(repr(edge)) < len(repr(lower))
        if shorter and edge < right and _below(edge, right) == lower:
            return edge
    return lower


def _add(number: float, step: Decimal) -> float:
    """Add to a number as it is written."""
    return float(_EXACT.add(Decimal(repr(number)), step))


def check_bins(column: Hashable, bins: object, closed: ClosedSide = "right") -> pd.IntervalIndex:
    """Validate bins: increasing edges or intervals that do not overlap, in increasing order."""
    intervals = bins if isinstance(bins, pd.IntervalIndex) else _from_edges(column, bins, closed)
    if not len(intervals):
        raise QueryError.about("bins", "must be at least one interval", [], label=column)
    kind = intervals.left.dtype.kind
    if kind not in "iufmM" or intervals.hasnans:
        rule = "must have edges that are numbers, times or durations, none missing"
        raise QueryError.about("bins", rule, bins, label=column)
    if kind in "mM":
        for edge in (*intervals.left, *intervals.right):
            _check_moment(column, edge)
    if not _follow(intervals):
        remedy = "Sort them, and merge those that overlap."
        raise QueryError.about(
            "bins", "must not overlap and must increase", bins, remedy, label=column
        )
    return intervals.rename(column)


def _follow(intervals: pd.IntervalIndex) -> bool:
    """Whether each interval is after the one before, with no point in both."""
    left, right = intervals.left, intervals.right
    apart = left[1:] > right[:-1] if intervals.closed == "both" else left[1:] >= right[:-1]
    same = (left[1:] == left[:-1]) & (right[1:] == right[:-1])  # of those without a point
    return bool(left.is_monotonic_increasing and apart.all() and not same.any())


def _from_edges(column: Hashable, bins: object, closed: ClosedSide) -> pd.IntervalIndex:
    if isinstance(bins, int | float | str | bytes) or not isinstance(bins, Iterable):
        rule = "must be edges or a pandas.IntervalIndex: edges taken from the data would leak"
        remedy = "For equal widths, use numpy.linspace(lower, upper, n + 1)."
        raise QueryError.about("bins", rule, bins, remedy, label=column)
    if isinstance(bins, set | frozenset):
        raise QueryError.about("bins", "must have an order", bins, "Sort the set.", label=column)
    check_size(f"bins of {column!r}", bins)
    listed = list(bins)
    plain = {*map(type, listed)} <= _PLAIN
    moments = [] if plain else [as_moment(edge) for edge in listed]
    if any(moment is not None for moment in moments):
        return _from_moments(column, moments, bins, closed)
    try:
        edges = np.asarray(listed if plain else [as_number(edge) for edge in listed])
        if edges.dtype.kind not in "iu":
            edges = edges.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise QueryError.about("bins", "must be numbers", bins, label=column) from None
    if len(edges) < 2 or not (edges[1:] > edges[:-1]).all():  # noqa: PLR2004
        rule = "must be at least two edges, each above the one before"
        raise QueryError.about("bins", rule, bins, label=column)
    return bins_between(edges, closed)


def _from_moments(
    column: Hashable, moments: list[Any], bins: object, closed: ClosedSide
) -> pd.IntervalIndex:
    """Make bins of points in time, or of durations."""
    try:
        increase = all(
            low < high and in_use(low) and in_use(high) for low, high in itertools.pairwise(moments)
        )
    except TypeError:  # of several kinds, or with a time zone and without
        increase = False
    if len(moments) < 2 or not increase:  # noqa: PLR2004
        rule = (
            "must be at least two times, in the years 1 to 9999, or durations, all of one kind, "
            "each above the one before"
        )
        raise QueryError.about("bins", rule, bins, label=column)
    for moment in moments:
        _check_moment(column, moment)
    return bins_between(index_of(moments), closed)


def _check_moment(column: Hashable, edge: Moment) -> None:
    """Refuse an edge between microseconds, which is what engines count."""
    nanoseconds = edge.nanosecond if isinstance(edge, pd.Timestamp) else edge.nanoseconds
    if nanoseconds or not in_use(edge):
        rule = "must have edges of whole microseconds in the years 1 to 9999"
        raise QueryError.about("bins", rule, edge, label=column)
