"""Bins of a histogram, of numbers or times: increasing edges, or intervals without overlaps."""

import itertools
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from dpframe.arguments import check_size
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_number
from dpframe.queries.timescale import Moment, as_moment, in_use, index_of

_PLAIN = {int, float, np.int64, np.float64}  # arrays of them hold the same numbers


def check_bins(column: Hashable, bins: object) -> pd.IntervalIndex:
    """Validate bins: increasing edges or intervals that do not overlap, in increasing order."""
    intervals = bins if isinstance(bins, pd.IntervalIndex) else _from_edges(column, bins)
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
        way = "Sort them, and merge those that overlap."
        raise QueryError.about(
            "bins", "must not overlap and must increase", bins, way, label=column
        )
    return intervals.rename(column)


def _follow(intervals: pd.IntervalIndex) -> bool:
    """Whether each interval is after the one before, with no point in both."""
    left, right = intervals.left, intervals.right
    apart = left[1:] > right[:-1] if intervals.closed == "both" else left[1:] >= right[:-1]
    same = (left[1:] == left[:-1]) & (right[1:] == right[:-1])  # of those without a point
    return bool(left.is_monotonic_increasing and apart.all() and not same.any())


def _from_edges(column: Hashable, bins: object) -> pd.IntervalIndex:
    if isinstance(bins, int | float | str | bytes) or not isinstance(bins, Iterable):
        rule = "must be edges or a pandas.IntervalIndex: edges taken from the data would leak"
        way = "For equal widths, use numpy.linspace(lower, upper, n + 1)."
        raise QueryError.about("bins", rule, bins, way, label=column)
    if isinstance(bins, set | frozenset):
        raise QueryError.about("bins", "must have an order", bins, "Sort the set.", label=column)
    check_size(f"bins of {column!r}", bins)
    given = list(bins)
    plain = {*map(type, given)} <= _PLAIN
    moments = [] if plain else [as_moment(edge) for edge in given]
    if any(moment is not None for moment in moments):
        return _from_moments(column, moments, bins)
    try:
        edges = np.asarray(given if plain else [as_number(edge) for edge in given])
        if edges.dtype.kind not in "iu":
            edges = edges.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise QueryError.about("bins", "must be numbers", bins, label=column) from None
    if len(edges) < 2 or not (edges[1:] > edges[:-1]).all():  # noqa: PLR2004
        rule = "must be at least two edges, each above the one before"
        raise QueryError.about("bins", rule, bins, label=column)
    return pd.IntervalIndex.from_breaks(edges)


def _from_moments(column: Hashable, moments: list[Any], bins: object) -> pd.IntervalIndex:
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
    return pd.IntervalIndex.from_breaks(index_of(moments))


def _check_moment(column: Hashable, edge: Moment) -> None:
    """Refuse an edge between microseconds, which is what engines count."""
    rest = edge.nanosecond if isinstance(edge, pd.Timestamp) else edge.nanoseconds
    if rest or not in_use(edge):
        rule = "must have edges of whole microseconds in the years 1 to 9999"
        raise QueryError.about("bins", rule, edge, label=column)
