"""The embedded engine: exact totals of a `pandas.DataFrame`, in one pass over blocks of rows."""

import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from dpframe.conditions import Condition
from dpframe.engines import filters, times, values
from dpframe.engines.base import check_labels
from dpframe.engines.capping import kept_rows
from dpframe.engines.lookup import CellLookup
from dpframe.engines.picking import keep_few, one_row_each
from dpframe.grid import Grid
from dpframe.totals import Task, Term

__all__ = ["PandasEngine", "labels_of", "totals_of"]

_BLOCK = 1 << 16  # rows; what is made of a block stays in the processor's cache
_MOST_EXPONENT = 1023  # of a power of two that a float can hold
_FEW_AMOUNTS = 1 << 23  # of a block in which all sums are needed at once
_WIDE = 16  # columns whose rows lie together are best counted at once, if there are as many
_BYTE = 255  # as many rows can be counted in one byte


class PandasEngine:
    """Engine of `pandas.DataFrame`."""

    def handles(self, frame: object) -> bool:
        """Tell whether the frame is a `pandas.DataFrame`."""
        return isinstance(frame, pd.DataFrame)

    def columns(self, frame: pd.DataFrame) -> list[Hashable]:
        """List the column labels, in order."""
        return list(frame.columns)

    def check(self, frame: pd.DataFrame, columns: Iterable[Hashable]) -> None:
        """Check that each label names exactly one column of the frame."""
        check_labels(self.columns(frame), columns)

    def totals(self, frame: pd.DataFrame, tasks: Sequence[Task]) -> list[np.ndarray]:
        """Add up every term of the tasks in every cell: int64 of shape (terms, cells) each."""
        self.check(frame, labels_of(tasks))
        return totals_of([frame], tasks)


def totals_of(parts: Iterable[pd.DataFrame], tasks: Sequence[Task]) -> list[np.ndarray]:
    """Add up the terms of tasks over the parts of a frame; all rows of a unit are in one part.

    Parameters
    ----------
    parts
        Frames with the columns of the tasks, read one after the other.
    tasks
        What to add up.

    Returns
    -------
    list of numpy.ndarray
        For each task the totals of all parts, modulo 2**64: int64 of shape (terms, cells).
    """
    totals = [np.zeros((len(task.terms), task.cells.size), np.int64) for task in tasks]
    for part in parts:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what private values make pandas warn of
            for total, task in zip(totals, tasks, strict=True):
                np.add(total, _Pass(part, task).totals(), out=total)
    return totals


def labels_of(tasks: Sequence[Task]) -> list[Hashable]:
    """List every column that some tasks name, once."""
    return list(dict.fromkeys(label for task in tasks for label in _labels(task)))


class _Pass:
    """One pass of a task over a frame."""

    def __init__(self, frame: pd.DataFrame, task: Task) -> None:
        self._frame = frame
        self._task = task
        self._places = {label: place for place, label in enumerate(frame.columns)}
        self._columns: dict[Hashable, pd.Series] = {}
        axes = [self._column(axis.column) for axis in task.cells.axes]
        self._lookup = CellLookup(task.cells, axes)
        self._outside = task.cells.size  # the extra cell of rows that are left out
        self._first: np.ndarray | None = None  # one kept row of each unit
        self._flagged = self._flagged_terms()
        self._flags = _Flags(frame, (self._places[term.column] for term in self._flagged.values()))

    def totals(self) -> np.ndarray:
        """Add up the terms."""
        terms = self._task.terms
        totals = np.zeros((len(terms), self._outside + 1), np.int64)
        others = [at for at in range(len(terms)) if at not in self._flagged]
        capped = None if self._task.unit is None else self._capped_cells(self._task.unit)
        if capped is not None and any(term.kind == "units" for term in self._task.terms):
            self._first = one_row_each(self._column(self._task.unit), capped != self._outside)
        for rows in self._blocks():
            cells = self._cells(rows) if capped is None else capped[rows].astype(np.int64)
            block = _Block(self, rows, cells)
            for at in others:
                np.add.at(totals[at], block.cells(terms[at].where), block.amounts(terms[at]))
            self._flags.add(rows, cells != self._outside)
        for at, term in self._flagged.items():
            if term.grid is not None:
                totals[at, 0] = self._flags.total(self._places[term.column], term.grid)
        return totals[:, :-1]

    def kept(self, condition: Condition, rows: slice) -> np.ndarray:
        """Mask of the rows of a block that satisfy a condition."""
        return filters.keep(condition, self._frame.iloc[rows])

    def snapped(self, label: Hashable, grid: Grid, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Grid integers of a column's block, and a mask of what is missing."""
        if grid.ticks is not None:
            return _snapped(times.ticks(self._column(label).iloc[rows], grid.ticks), grid)
        numbers = values.raw_numbers(self._column(label).iloc[rows])
        if numbers.dtype != np.bool_:
            return _snapped(numbers, grid)
        low, high = _ends(grid)
        return np.where(numbers, high, low), np.zeros(len(numbers), bool)

    def first(self, rows: slice) -> np.ndarray | int:
        """Tell which rows of a block stand for their unit: all where each row is a unit."""
        return 1 if self._first is None else self._first[rows].astype(np.int64)

    @property
    def most(self) -> int | None:
        """How many sums a row may add to."""
        return self._task.most

    @property
    def sums(self) -> list[Term]:
        """The sums, of which equal ones are one."""
        return [term for term in self._task.terms if term.kind == "sum"]

    @property
    def outside(self) -> int:
        """Cell of the rows that are left out."""
        return self._outside

    def _column(self, label: Hashable) -> pd.Series:
        if label not in self._columns:
            self._columns[label] = self._frame.iloc[:, self._places[label]]
        return self._columns[label]

    def _flagged_terms(self) -> dict[int, Term]:
        """Find the sums, by position, that need only the number of True in a column."""
        if self._outside != 1 or self.most is not None:
            return {}
        dtypes = self._frame.dtypes.array
        return {
            at: term
            for at, term in enumerate(self._task.terms)
            if term.kind == "sum" and term.where is None
            if term.grid is not None and term.grid.ticks is None
            if isinstance(dtypes[self._places[term.column]], np.dtypes.BoolDType)
        }

    def _blocks(self) -> Iterator[slice]:
        n, size = len(self._frame), _BLOCK
        if self.most is not None:
            size = min(size, 1 + _FEW_AMOUNTS // max(len(self.sums), 1))
        return (slice(start, min(start + size, n)) for start in range(0, n, size))

    def _cells(self, rows: slice) -> np.ndarray:
        """Cells of the rows of a block; those that fail the condition are outside."""
        cells = self._lookup(rows)
        if self._task.where is not None:
            cells[~self.kept(self._task.where, rows)] = self._outside
        return cells

    def _capped_cells(self, unit: Hashable) -> np.ndarray:
        """Cells of all rows; those that a cap drops are outside."""
        cells = np.empty(len(self._frame), np.min_scalar_type(self._outside))
        for rows in self._blocks():
            cells[rows] = self._cells(rows)
        kept = kept_rows(self._column(unit), cells, self._outside, self._task.caps)
        cells[~kept] = self._outside
        return cells


class _Block:
    """What the terms of a task share in one block of rows."""

    def __init__(self, source: _Pass, rows: slice, cells: np.ndarray) -> None:
        self._source = source
        self._rows = rows
        self._cells: dict[Condition | None, np.ndarray] = {None: cells}
        self._snapped: dict[tuple[Hashable, Grid], tuple[np.ndarray, np.ndarray]] = {}
        self._few: dict[Term, np.ndarray] = {}

    def cells(self, where: Condition | None) -> np.ndarray:
        """Cells of the rows; those that fail the condition of a term are outside."""
        if where is not None and where not in self._cells:
            kept = self._source.kept(where, self._rows)
            self._cells[where] = np.where(kept, self._cells[None], self._source.outside)
        return self._cells[where]

    def amounts(self, term: Term) -> np.ndarray | int:
        """Return what each row adds to a term, one number if all add the same."""
        if term.grid is None:
            return self._source.first(self._rows) if term.kind == "units" else 1
        if term.kind == "sum" and self._source.most is not None:
            return self._chosen()[term]
        integers, missing = self._snap(term.column, term.grid)
        if term.kind == "sum":
            return integers
        if term.grid.fill is not None or not missing.any():
            return 1
        return (~missing).astype(np.int64)

    def _chosen(self) -> dict[Term, np.ndarray]:
        """Return what each row adds to each sum, with few ones in a row over all of them."""
        if not self._few:
            for term in self._source.sums:
                if term.grid is not None:
                    integers, _ = self._snap(term.column, term.grid)
                    absent = self.cells(term.where) == self._source.outside
                    self._few[term] = np.where(absent, 0, integers)
            keep_few(list(self._few.values()), self._source.most or 0)
        return self._few

    def _snap(self, label: Hashable, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """Snap a column once."""
        key = label, grid
        if key not in self._snapped:
            self._snapped[key] = self._source.snapped(label, grid, self._rows)
        return self._snapped[key]


class _Flags:
    """Sums of boolean columns in a single cell: the True of all of them are counted at once."""

    def __init__(self, frame: pd.DataFrame, places: Iterable[int]) -> None:
        self._frame = frame
        self._columns = np.unique(np.fromiter(places, np.int64))
        starts = np.flatnonzero(np.diff(self._columns, prepend=-2) != 1)
        self._runs = np.split(np.arange(len(self._columns)), starts[1:])  # of adjacent columns
        self._true = np.zeros(len(self._columns), np.int64)
        self._rows = 0

    def add(self, rows: slice, kept: np.ndarray) -> None:
        """Count in those rows of a block that are kept."""
        count = int(np.count_nonzero(kept))
        self._rows += count
        chosen = None if count == len(kept) else kept
        for run in self._runs if len(self._columns) else []:
            first, last = self._columns[run[[0, -1]]]
            table = self._frame.iloc[rows, first : last + 1].to_numpy()
            self._true[run] += _count_true(table, chosen)

    def total(self, place: int, grid: Grid) -> int:
        """Return the sum of a column on a grid, modulo 2**64."""
        low, high = _ends(grid)
        true = self._true[np.searchsorted(self._columns, place)]
        return int(low * np.int64(self._rows) + (high - low) * true)


def _count_true(table: np.ndarray, kept: np.ndarray | None) -> np.ndarray:
    """Count the True in each column of a table, in all rows or in those kept."""
    if table.strides[0] == table.itemsize or table.shape[1] < _WIDE:
        chosen = table.T if kept is None else (column & kept for column in table.T)
        return np.array([np.count_nonzero(column) for column in chosen], np.int64)
    counts = np.zeros(table.shape[1], np.int64)
    for start in range(0, len(table), _BYTE):
        rows = slice(start, start + _BYTE)
        true = table[rows].view(np.uint8) != 0  # any other byte is True, and to be counted once
        if kept is not None:
            true &= kept[rows, None]
        counts += np.add.reduce(true.view(np.uint8), axis=0, dtype=np.uint8)
    return counts


def _labels(task: Task) -> Iterator[Hashable]:
    """Every column that a task names."""
    yield from (axis.column for axis in task.cells.axes)
    yield from (term.column for term in task.terms if term.grid is not None)
    for condition in (task.where, *(term.where for term in task.terms)):
        if condition is not None:
            yield from condition.columns
    if task.unit is not None:
        yield task.unit


def _snapped(numbers: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Round numbers to a grid and clip them, with a mask of NaN: these are the fill or 0."""
    shift = -grid.exponent
    if shift > _MOST_EXPONENT:
        scaled = np.ldexp(numbers.astype(np.float64), shift)
    else:
        scaled = np.multiply(numbers, 2.0**shift, dtype=np.float64)
    np.rint(scaled, out=scaled)
    np.clip(scaled, grid.lower, grid.upper, out=scaled)
    missing = np.isnan(scaled)
    if missing.any():
        scaled[missing] = grid.fill or 0
    return scaled.astype(np.int64), missing


def _ends(grid: Grid) -> np.ndarray:
    """Grid integers of False and True."""
    return _snapped(np.array([False, True]), grid)[0]
