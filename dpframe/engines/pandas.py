"""The embedded engine: exact totals of a `pandas.DataFrame`, in one pass over blocks of rows."""

import warnings
from collections.abc import Hashable, Iterable, Iterator

import numpy as np
import pandas as pd

from dpframe.conditions import Condition
from dpframe.engines import filters, values
from dpframe.engines.base import check_labels
from dpframe.engines.capping import kept_rows
from dpframe.engines.lookup import CellLookup
from dpframe.grid import Grid
from dpframe.totals import Task, Term

__all__ = ["PandasEngine"]

_BLOCK = 1 << 16  # rows; what is made of a block stays in the processor's cache
_MOST_EXPONENT = 1023  # of a power of two that a float can hold


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

    def totals(self, frame: pd.DataFrame, task: Task) -> np.ndarray:
        """Add up every term of the task in every cell: int64 of shape (terms, cells)."""
        self.check(frame, _labels(task))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what private values make pandas warn of
            return _Pass(frame, task).totals()


class _Pass:
    """One pass of a task over a frame."""

    def __init__(self, frame: pd.DataFrame, task: Task) -> None:
        self._frame = frame
        self._task = task
        self._places = {label: place for place, label in enumerate(frame.columns)}
        axes = [self._column(axis.column) for axis in task.cells.axes]
        self._lookup = CellLookup(task.cells, axes)
        self._outside = task.cells.size  # the extra cell of rows that are left out

    def totals(self) -> np.ndarray:
        """Add up the terms."""
        totals = np.zeros((len(self._task.terms), self._outside + 1), np.int64)
        capped = None if self._task.unit is None else self._capped_cells(self._task.unit)
        for rows in self._blocks():
            cells = self._cells(rows) if capped is None else capped[rows].astype(np.int64)
            block = _Block(self, rows, cells)
            for total, term in zip(totals, self._task.terms, strict=True):
                np.add.at(total, block.cells(term.where), block.amounts(term))
        return totals[:, :-1]

    def kept(self, condition: Condition, rows: slice) -> np.ndarray:
        """Mask of the rows of a block that satisfy a condition."""
        return filters.keep(condition, self._frame.iloc[rows])

    def snapped(self, label: Hashable, grid: Grid, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Grid integers of a column's block, and a mask of what is missing."""
        return _snapped(values.raw_numbers(self._column(label).iloc[rows]), grid)

    @property
    def outside(self) -> int:
        """Cell of the rows that are left out."""
        return self._outside

    def _column(self, label: Hashable) -> pd.Series:
        column: pd.Series = self._frame.iloc[:, self._places[label]]
        return column

    def _blocks(self) -> Iterator[slice]:
        n = len(self._frame)
        return (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))

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

    def cells(self, where: Condition | None) -> np.ndarray:
        """Cells of the rows; those that fail the condition of a term are outside."""
        if where is not None and where not in self._cells:
            kept = self._source.kept(where, self._rows)
            self._cells[where] = np.where(kept, self._cells[None], self._source.outside)
        return self._cells[where]

    def amounts(self, term: Term) -> np.ndarray | int:
        """Return what each row adds to a term, one number if all add the same."""
        if term.grid is None:
            return 1
        key = (term.column, term.grid)
        if key not in self._snapped:
            self._snapped[key] = self._source.snapped(*key, self._rows)
        integers, missing = self._snapped[key]
        if term.kind == "sum":
            return integers
        if term.grid.fill is not None or not missing.any():
            return 1
        return (~missing).astype(np.int64)


def _labels(task: Task) -> Iterator[Hashable]:
    """Every column that a task names."""
    yield from (axis.column for axis in task.cells.axes)
    yield from (term.column for term in task.terms if term.kind != "rows")
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
