"""Bins of a histogram: increasing edges, or intervals that do not overlap."""

from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd

from dpframe.declaration import check_size, shown
from dpframe.errors import QueryError
from dpframe.privacy import as_number

__all__ = ["check_bins"]


def check_bins(column: Hashable, bins: object) -> pd.IntervalIndex:
    """Validate bins: increasing edges or intervals that do not overlap, in increasing order."""
    intervals = bins if isinstance(bins, pd.IntervalIndex) else _from_edges(column, bins)
    if not len(intervals):
        raise QueryError(f"bins of {column!r} must be at least one interval, got none.")
    edges = np.asarray([intervals.left, intervals.right])
    if edges.dtype.kind not in "iuf" or np.isnan(edges.astype(np.float64)).any():
        raise QueryError(
            f"bins of {column!r} must have numeric edges, none missing, got {shown(bins)}."
        )
    if intervals.is_overlapping or not intervals.is_monotonic_increasing or not intervals.is_unique:
        raise QueryError(
            f"bins of {column!r} must not overlap and must increase, got {shown(bins)}; sort "
            "them, and merge those that overlap."
        )
    return intervals.rename(column)


def _from_edges(column: Hashable, bins: object) -> pd.IntervalIndex:
    if isinstance(bins, int | float | str | bytes) or not isinstance(bins, Iterable):
        raise QueryError(
            f"bins of {column!r} must be edges or a pandas.IntervalIndex, got {shown(bins)}: edges "
            "taken from the data would leak. For equal widths, use "
            "numpy.linspace(lower, upper, n + 1)."
        )
    if isinstance(bins, set | frozenset):
        raise QueryError(
            f"bins of {column!r} must have an order, and a set has none. Pass sorted(...) of it."
        )
    check_size(f"bins of {column!r}", bins)
    try:
        edges = np.asarray([as_number(edge) for edge in bins])
        if edges.dtype.kind not in "iu":
            edges = edges.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise QueryError(f"bins of {column!r} must be numbers, got {shown(bins)}.") from None
    if len(edges) < 2 or not (edges[1:] > edges[:-1]).all():  # noqa: PLR2004
        raise QueryError(
            f"bins of {column!r} must be at least two edges, each above the one before, got "
            f"{shown(bins)}."
        )
    return pd.IntervalIndex.from_breaks(edges)
