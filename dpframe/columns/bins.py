"""From numbers and times to bins: the positions that `numpy.searchsorted` finds, in less time.

For numbers, a table guesses. Slots part the line by a function that never decreases, of floats or
of their bits, and each slot has at most one edge. A comparison with that edge tells the bin of a
value, whatever the function rounds. Widths that are equal need as many slots as bins; those that
grow by a factor need as many bits.
"""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.columns import times, values

Finder: TypeAlias = Callable[[pd.Series], np.ndarray]
"""From a block of a column to the int64 positions of its rows, in a new array."""

_Slots: TypeAlias = Callable[[np.ndarray, np.ndarray], None]
"""Writes the slots of some numbers into an array of integers."""

_SIZES = 1 << 6, 1 << 9, 1 << 12, 1 << 15
"""Slots; tables of the first sizes fit into the processor's cache, and the last is 0.8 MB."""

# slots without an edge, at both ends together
_MARGIN = 4
# rows; what is made of them stays in the processor's cache
_PIECE = 1 << 13


def bin_finder(bins: pd.IntervalIndex, *, clipped: bool) -> Finder:
    """Search the bin of each value; `len(bins)` stands for none.

    Parameters
    ----------
    bins
        Increasing intervals that do not overlap.
    clipped
        Whether what is below all bins is in the first, and what is above in the last.
    """
    if bins.left.dtype.kind not in "mM":
        find = _table_finder(bins, clipped=clipped)
        if find is not None:
            return find
    return _ordered_finder(bins, clipped=clipped)


def _ordered_finder(bins: pd.IntervalIndex, *, clipped: bool) -> Finder:
    """Search the one interval that can hold a value: the first whose right edge is not passed."""
    view: Callable[[pd.Series], tuple[np.ndarray, np.ndarray]]
    if bins.left.dtype.kind in "mM":
        left, right = (pd.Index(ends).as_unit("us").asi8 for ends in (bins.left, bins.right))
        # above all times
        left = np.append(left, np.iinfo(np.int64).max)
        if isinstance(bins.left.dtype, pd.DatetimeTZDtype):
            view = times.instants
        elif bins.left.dtype.kind == "M":
            view = times.naive_times
        else:
            view = times.durations
    else:
        left, right = (ends.to_numpy(np.float64) for ends in (bins.left, bins.right))
        # comparisons with NaN are false
        left, view = np.append(left, np.nan), _valid_numbers
    side: Literal["left", "right"] = "left" if bins.closed_right else "right"
    above = np.less_equal if bins.closed_left else np.less

    def find(block: pd.Series) -> np.ndarray:
        ticks, valid = view(block)
        place: np.ndarray = np.searchsorted(right, ticks, side=side)
        inside = above(left[place], ticks) & valid
        if clipped:
            inside |= valid & ((place == 0) | (place == len(right)))
            np.minimum(place, len(right) - 1, out=place)
        place[~inside] = len(right)
        return place

    return find


def _valid_numbers(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """View a column as numbers, with a mask of those that are some."""
    numbers = values.numbers(column)
    return numbers, ~np.isnan(numbers)


def _table_finder(bins: pd.IntervalIndex, *, clipped: bool) -> Finder | None:
    """Prepare a table, if bins touch, hold one of their edges, and slots can tell edges apart."""
    left, right = (ends.to_numpy(np.float64) for ends in (bins.left, bins.right))
    touching = len(bins) > 0 and (left[1:] == right[:-1]).all()
    if not touching or bins.closed not in ("left", "right"):
        return None
    size = len(right)
    edges = np.append(left[:1], right)
    # by the number of edges that are passed
    positions = np.array([size, *range(size), size])
    if clipped:
        positions[[0, -1]] = 0, size - 1
    open_end = left[0] if bins.closed_right else right[-1]
    unheld = open_end if np.isinf(open_end) and not clipped else np.nan
    first = int(np.isneginf(left[0]))
    edges = edges[np.isfinite(edges)]
    positions = positions[first : first + len(edges) + 1]
    slots = _slots(edges)
    if slots is None:
        return None
    search = _Table(edges, positions, slots, size, closed_right=bins.closed_right).search

    def find(block: pd.Series) -> np.ndarray:
        numbers = values.numbers(block)
        places = search(numbers)
        if not np.isnan(unheld):
            places[numbers == unheld] = size
        return places

    return find


class _Table:
    """The positions of values in a slot, on either side of its edge.

    Parameters
    ----------
    edges
        Finite and increasing.
    positions
        The position of a value by the number of edges that it passed: one more than edges.
    slots
        What writes slots of numbers, and how many there are.
    missing
        The position of NaN.
    closed_right
        Whether a value on an edge has not passed it.
    """

    def __init__(
        self,
        edges: np.ndarray,
        positions: np.ndarray,
        slots: tuple[_Slots, int],
        missing: int,
        *,
        closed_right: bool,
    ) -> None:
        self._slots, number = slots
        places = np.empty(len(edges), np.int64)
        self._slots(edges, places)
        # edges of lower slots
        passed = np.searchsorted(places, np.arange(number))
        # comparisons with NaN are false: its position is the first of a slot without an edge
        pairs = np.stack([np.full(number, missing), positions[passed]], axis=1)
        below, above = positions[:-1], positions[1:]
        if closed_right:
            self._compare: np.ufunc = np.less_equal
            never = np.inf
            pairs[places] = np.stack([above, below], axis=1)
        else:
            self._compare = np.greater_equal
            never = -np.inf
            pairs[places] = np.stack([below, above], axis=1)
        self._edges = np.full(number, never)
        self._edges[places] = edges
        self._positions = pairs.ravel()

    def search(self, numbers: np.ndarray) -> np.ndarray:
        """Find the positions of some numbers, piece by piece."""
        places = np.empty(len(numbers), np.int64)
        piece = min(_PIECE, len(numbers))
        slots, edges, true = np.empty(piece, np.int64), np.empty(piece), np.empty(piece, bool)
        for start in range(0, len(numbers), _PIECE):
            part = numbers[start : start + _PIECE]
            here = slice(len(part))
            self._slots(part, slots[here])
            self._edges.take(slots[here], out=edges[here], mode="clip")
            self._compare(part, edges[here], out=true[here])
            slots[here] <<= 1
            slots[here] += true[here]
            self._positions.take(slots[here], out=places[start : start + _PIECE], mode="clip")
        return places


def _slots(edges: np.ndarray) -> tuple[_Slots, int] | None:
    """Choose the fewest slots, at least one for each edge."""
    if not len(edges):
        return None
    places = np.empty(len(edges) + 1, np.int64)
    for number in _SIZES:
        if number < len(edges) + _MARGIN:
            continue
        for slots in (_slots_of_floats(edges, number), _slots_of_bits(edges, number)):
            if slots is None:
                continue
            slots(np.append(edges, np.inf), places)
            if places[0] > 0 and (places[1:] > places[:-1]).all():
                return slots, number
    return None


def _slots_of_floats(edges: np.ndarray, number: int) -> _Slots | None:
    """Slots of equal widths; the last one has NaN, too."""
    first, *_, last = edges.tolist() * 2
    scale = (number - _MARGIN) / ((last - first) or 1.0)
    if scale == 0 or math.isinf(scale):
        return None
    origin = first - _MARGIN / 2 / scale

    def write(numbers: np.ndarray, slots: np.ndarray) -> None:
        scaled = numbers - origin
        scaled *= scale
        np.fmin(scaled, number - 1, out=scaled)
        np.fmax(scaled, 0, out=scaled)
        np.copyto(slots, scaled, casting="unsafe")

    return write


def _slots_of_bits(edges: np.ndarray, number: int) -> _Slots | None:
    """Slots whose widths double from one power of two to the next, for edges above 0.

    Bits of floats above 0, read as an integer, increase, NaN last; with a sign they are below 0.
    """
    if edges[0] <= 0:
        return None
    first, *_, last = edges.view(np.int64).tolist() * 2
    shift = ((last - first) // (number - _MARGIN)).bit_length()
    lowest = first - (1 << shift)

    def write(numbers: np.ndarray, slots: np.ndarray) -> None:
        np.maximum(numbers.view(np.int64), lowest, out=slots)
        slots -= lowest
        slots >>= shift
        np.minimum(slots, number - 1, out=slots)

    return write
