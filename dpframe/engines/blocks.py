"""Blocks of rows of a private frame, and what the terms of all tasks share in one block."""

from collections.abc import Hashable
from itertools import accumulate, pairwise

import numpy as np
import pandas as pd

from dpframe.columns import filters, lookup, times, values
from dpframe.columns.bins import Finder
from dpframe.context import cached_property
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import PART_OF_ONE, Axis, Cells
from dpframe.queries.where import Condition

# of a power of two that a float can hold
_MOST_EXPONENT = 1023
# masks of a block: thousands of conditions must not fill the memory
_MOST_KEPT = 64
# dtypes that hold values
_OWN = (pd.CategoricalDtype, pd.SparseDtype)

Finders = dict[tuple[Hashable, ...], Finder]
"""Prepared searches, by axis and dtype of its column."""


class FrameReader:
    """A private frame, read by blocks.

    Parameters
    ----------
    frame
        The frame.
    axes
        The axes on which rows are looked for; prepared here, since threads must not do it twice.
    finders
        Searches that were prepared for earlier frames; new ones are added.
    """

    def __init__(self, frame: pd.DataFrame, axes: list[Axis], finders: Finders) -> None:
        self.frame = frame
        self.places = values.places_of(frame)
        """The position of every column."""
        self._columns: dict[Hashable, pd.Series] = {}
        self._finders = {_name(axis): self._prepare_search(axis, finders) for axis in axes}

    def column(self, label: Hashable) -> pd.Series:
        """Return a column."""
        if label not in self._columns:
            self._columns[label] = self.frame.iloc[:, self.places[label]]
        return self._columns[label]

    def cells(self, label: Hashable, rows: slice) -> pd.Series:
        """Return some rows of a column."""
        column = self.column(label)
        return column if range(len(column))[rows] == range(len(column)) else column.iloc[rows]

    def positions(self, axis: Axis, rows: slice) -> np.ndarray:
        """Return the positions of a block's rows on an axis, in a new array."""
        return self._finders[_name(axis)](self.cells(axis.column, rows))

    def _prepare_search(self, axis: Axis, finders: Finders) -> Finder:
        """Prepare a search, or use one prepared for an equal dtype."""
        column = self.column(axis.column)
        if isinstance(column.dtype, _OWN):
            return lookup.finder(axis, column)
        key = *_name(axis), column.dtype
        if key not in finders:
            finders[key] = lookup.finder(axis, column)
        return finders[key]


class RowBlock:
    """Views of one block of rows, none computed twice.

    Parameters
    ----------
    source
        The frame.
    rows
        Which of its rows.
    """

    def __init__(self, source: FrameReader, rows: slice) -> None:
        self.rows = rows
        self._source = source
        self._positions: dict[Hashable, np.ndarray] = {}
        self._kept: dict[Condition, np.ndarray] = {}
        self._snapped: dict[tuple[Hashable, Grid], tuple[np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        return len(range(self.rows.start, self.rows.stop))

    def position(self, axis: Axis) -> np.ndarray:
        """Return the positions of the rows on an axis: int64, not to be written to."""
        name = _name(axis)
        if name not in self._positions:
            self._positions[name] = self._source.positions(axis, self.rows)
        return self._positions[name]

    def rows_where(self, condition: Condition) -> np.ndarray:
        """Return the mask of the rows that satisfy a condition."""
        mask = self._kept.get(condition)
        if mask is None:
            mask = filters.keep(condition, self._frame)
            if len(self._kept) == _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[condition] = mask
        return mask

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return self._source.frame.iloc[self.rows]

    def snap(self, label: Hashable, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """Return the grid integers of a column, and a mask of what is missing."""
        key = label, grid
        if key not in self._snapped:
            self._snapped[key] = _on_grid(self._source.cells(label, self.rows), grid)
        return self._snapped[key]

    def round_column(self, label: Hashable, grid: Grid) -> np.ndarray:
        """Return a column in steps of a grid, not clipped yet: float64, NaN for what is missing."""
        return _round_to_grid(_numbers(self._source.cells(label, self.rows), grid), grid)


class _Same:
    """An object that is equal to itself alone; it is held, so that no other takes its place."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def _name(axis: Axis) -> tuple[Hashable, ...]:
    """Name an axis: several queries may look for the same keys in the same column."""
    return axis.column, _Same(axis.keys), axis.counts_all, axis.hidden


def cells_name(cells: Cells) -> Hashable:
    """Name the cells of a task: two tasks may have the same.

    Of margins, name where rows have a place at all: that alone decides which of them caps keep.
    """
    if cells.margins:
        return frozenset(map(_name, cells.axes))
    chosen = None if cells.chosen is None else cells.chosen.tobytes()
    return *map(_name, cells.axes), chosen


def ends(grid: Grid) -> tuple[np.int64, np.int64]:
    """Return the grid integers of False and True."""
    low, high = _snap_to_grid(np.array([False, True]), grid)[0]
    return low, high


def square_integers(integers: np.ndarray, grid: Grid) -> np.ndarray:
    """Return `ceil(t^2 / h)` for grid integers x, `t = 2 x - (l + u)` and `h = u - l`.

    Examples
    --------
    >>> square_integers(np.array([0, 1, 2, 3]), Grid(0, 0, 3))
    array([3, 1, 1, 3])
    """
    width = grid.upper - grid.lower
    if width == 0:
        return np.zeros_like(integers)
    t = 2 * integers - (grid.lower + grid.upper)
    # t^2 can leave 64 bits; a float is off by less than 1, and what it lacks is exact modulo 2^64
    near = np.floor(np.abs(t) * (np.abs(t) / width)).astype(np.int64)
    short = t * t - near * width
    return np.asarray(near - (-short) // width)


def bernstein_parts(integers: np.ndarray, grid: Grid, degree: int) -> list[np.ndarray]:
    """Return non-negative integers that add up to `K = 2**16` for every grid integer x.

    With p the integer nearest to K (x - l) / (u - l), and q that nearest to p^2 / K, those of
    degree 2 are `K - 2 p + q`, `2 (p - q)` and q: the Bernstein polynomials, rounded. Those of
    degree 4 are what their products add up to by the sum of both places, divided by K: the sums up
    to each place are rounded, so that the last one stays K.

    Examples
    --------
    >>> [part.tolist() for part in bernstein_parts(np.array([0, 1, 2]), Grid(0, 0, 2), 2)]
    [[65536, 16384, 0], [0, 32768, 0], [0, 16384, 65536]]
    >>> [part.tolist() for part in bernstein_parts(np.array([1, 2]), Grid(0, 0, 2), 4)]
    [[4096, 0], [16384, 0], [24576, 0], [16384, 0], [4096, 65536]]
    """
    p = _places(integers, grid)
    q = (2 * p * p + PART_OF_ONE) // (2 * PART_OF_ONE)
    a, b, c = PART_OF_ONE - 2 * p + q, 2 * (p - q), q
    if degree == 2:  # noqa: PLR2004
        return [a, b, c]
    products = (a * a, 2 * a * b, 2 * a * c + b * b, 2 * b * c, c * c)
    up_to = [(2 * total + PART_OF_ONE) // (2 * PART_OF_ONE) for total in accumulate(products)]
    return [up_to[0], *(after - before for before, after in pairwise(up_to))]


def powers(integers: np.ndarray, grid: Grid) -> list[np.ndarray]:
    """Return 1, s and `2 s^2 - H^2` for every grid integer x, with `H = 2**15`.

    s is the integer nearest to `2 H (x - l) / (u - l)`, less H: all are between `-H^d` and `H^d`,
    where d is the degree.

    Examples
    --------
    >>> [power.tolist() for power in powers(np.array([0, 1, 2]), Grid(0, 0, 2))]
    [[1, 1, 1], [-32768, 0, 32768], [1073741824, -1073741824, 1073741824]]
    """
    half = PART_OF_ONE // 2
    s = _places(integers, grid) - half
    return [np.ones_like(s), s, 2 * s * s - half * half]


def _places(integers: np.ndarray, grid: Grid) -> np.ndarray:
    """Return the integers nearest to `2**16 (x - l) / (u - l)`."""
    width = grid.upper - grid.lower
    up = 2 * (integers - grid.lower) * PART_OF_ONE + width
    return np.asarray(up // (2 * width) if width else np.zeros_like(integers))


def weigh_integers(weights: np.ndarray, integers: np.ndarray, origin: int, span: int) -> np.ndarray:
    """Return the integers nearest to `w (x - origin) / span`, halves away from 0.

    None is larger than its weight as long as `|x - origin| <= span`. Weights are below 2**30, and
    spans at most 2**33: products stay below 2**64.

    Examples
    --------
    >>> weigh_integers(np.array([4, 4, 3, 0]), np.array([7, 9, -1, 9]), 5, 8)
    array([ 1,  2, -2,  0])
    """
    if span == 0:
        return np.zeros_like(integers)
    off = integers - origin
    product = weights.astype(np.uint64) * np.abs(off).astype(np.uint64)
    near = ((product + np.uint64(span // 2)) // np.uint64(span)).astype(np.int64)
    return np.asarray(np.where(off < 0, -near, near))


def _on_grid(column: pd.Series, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Snap a block of a column of any dtype."""
    numbers = _numbers(column, grid)
    if numbers.dtype != np.bool_:
        return _snap_to_grid(numbers, grid)
    low, high = ends(grid)
    return np.where(numbers, high, low), np.zeros(len(numbers), bool)


def _numbers(column: pd.Series, grid: Grid) -> np.ndarray:
    """View a column as numbers, or as numbers of ticks where the grid is one of times."""
    return values.raw_numbers(column) if grid.ticks is None else times.ticks(column, grid.ticks)


def _round_to_grid(numbers: np.ndarray, grid: Grid) -> np.ndarray:
    """Round numbers to steps of a grid."""
    shift = -grid.exponent
    if shift > _MOST_EXPONENT:
        scaled = np.ldexp(numbers.astype(np.float64), shift)
    else:
        scaled = np.multiply(numbers, 2.0**shift, dtype=np.float64)
    return np.asarray(np.rint(scaled, out=scaled))


def _snap_to_grid(numbers: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Round numbers to a grid and clip them, with a mask of NaN: these are the fill or 0."""
    scaled = _round_to_grid(numbers, grid)
    np.clip(scaled, grid.lower, grid.upper, out=scaled)
    missing = np.isnan(scaled)
    if missing.any():
        scaled[missing] = grid.fill or 0
    return scaled.astype(np.int64), missing
