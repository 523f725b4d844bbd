"""Edges of bins, and where a value on an edge belongs: this is the only place that says so.

Every edge belongs to a bin. Bins from edges are closed on the right, and the first edge belongs to
the first bin; of bins closed on the left, the last edge to the last one. Intervals say so as those
of `pandas.cut(..., include_lowest=True)` do: the first one begins a little below its edge.
"""

import itertools
import math
from collections.abc import Hashable, Iterable
from decimal import Context, Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import check_size
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_number
from dpframe.queries.timescale import Moment, as_moment, in_use, index_of

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
    if closed == "left":
        return _closed_on_the_left(edges)
    if isinstance(edges, pd.Index):
        first = edges[0] - _TICK
        return pd.IntervalIndex.from_breaks(
            index_of([first, *edges[1:]]) if in_use(first) else edges
        )
    numbers = edges.astype(np.float64)
    if not (numbers[1:] > numbers[:-1]).all():  # integers that floats do not tell apart
        first, *others = edges.tolist()
        return pd.IntervalIndex.from_breaks(np.array([max(first - 1, _LEAST), *others]))
    numbers[0] = _below(float(numbers[0]), float(numbers[1]))
    return pd.IntervalIndex.from_breaks(numbers)


def _closed_on_the_left(edges: np.ndarray | pd.Index) -> pd.IntervalIndex:
    """Return bins of which the last one ends next to its edge, and holds it."""
    if isinstance(edges, pd.Index):
        last = edges[-1] + _TICK
        moved = index_of([*edges[:-1], last]) if in_use(last) else edges
        return pd.IntervalIndex.from_breaks(moved, closed="left")
    numbers = edges.astype(np.float64)
    if not (numbers[1:] > numbers[:-1]).all():  # integers that floats do not tell apart
        *others, final = edges.tolist()
        return pd.IntervalIndex.from_breaks(np.array([*others, final + 1]), closed="left")
    numbers[-1] = math.nextafter(numbers[-1], math.inf)
    return pd.IntervalIndex.from_breaks(numbers, closed="left")


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
