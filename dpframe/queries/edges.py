"""Edges of bins, and where a value on an edge belongs: this is the only place that says so.

Bins from edges are closed on the right, and the first edge belongs to the first bin. Labels say so
as those of `pandas.cut(..., include_lowest=True)` do: the first one begins a little below it.
"""

import math
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pandas as pd

from dpframe.queries.timescale import in_use, index_of

_DIGITS = 3  # decimals of the difference, as in pandas.cut; more for narrow bins
_MOST_DIGITS = 20  # decimals, beyond those of floats near 1
_PART = 10  # the difference is at most one part in so many of the first bin
_EXACT = Context(prec=400, traps=[])  # sums of any two floats, whatever a program has set
_TICK = pd.Timedelta(1, "us").as_unit("us")  # in nanoseconds, pandas 2 knows few years
_LEAST = -(2**63)  # of integers of 64 bits
_FAR = 2**53  # whole numbers up to here are floats


def bins_between(edges: np.ndarray | pd.Index) -> pd.IntervalIndex:
    """Return the bins between increasing edges.

    Examples
    --------
    >>> list(map(str, bins_between(np.array([0, 1, 2]))))
    ['(-0.001, 1.0]', '(1.0, 2.0]']
    >>> list(map(str, bins_between(np.array([-np.inf, 0.5]))))
    ['(-inf, 0.5]']
    """
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
