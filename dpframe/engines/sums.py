"""The totals of one task, added up block by block."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpframe.columns.lookup import CellLookup
from dpframe.context import Context, cached_property
from dpframe.engines import blocks
from dpframe.engines.blocks import FrameReader, RowBlock
from dpframe.engines.capping import larger_where
from dpframe.privacy import noise
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, RowWeights, Task, Term
from dpframe.queries.where import Condition

_Amounts = Mapping[int, np.ndarray | int]
# rows; their cells in a few tables stay in the processor's cache
_PART = 1 << 13
# cells of a table off which several are read; they stay there, too
_MOST_JOINT = 1 << 13
# of such a table, so that reading it off is quick beside the rows
_ROWS_A_CELL = 8
# rows for a cell of a set of conditions that they satisfy
_ROWS_A_SET = 2
# of fewer, each is quicker on its own
_FEWEST_CONDITIONS = 4
# conditions of which a row's truths are one number
_BYTE_BITS, _BITS = 8, 64


class _JointTable(NamedTuple):
    """Cells by some axes, off which several tables are read.

    Parameters
    ----------
    axes
        Positions of the axes.
    margins
        The tables that are read off it, by position.
    """

    axes: list[int]
    margins: list[int]


class Spread:
    """Adds rows to one cell of every table.

    Tables whose axes together have few cells are read off one by all these axes.

    Parameters
    ----------
    cells
        The tables, as margins.
    terms
        The number of terms.
    rows
        The number of rows of the frame.
    """

    def __init__(self, cells: Cells, terms: int, rows: int) -> None:
        self._axes = cells.axes
        self._margins = cells.margins
        self._sizes = list(map(len, cells.axes))
        self._joint: list[_JointTable] = []
        for place, margin in enumerate(cells.margins):
            self._join(place, margin, min(_MOST_JOINT, rows // _ROWS_A_CELL))
        self._totals = [
            np.zeros((terms, self._size(table.axes)), np.int64) for table in self._joint
        ]

    def _join(self, place: int, margin: Sequence[int], most: int) -> None:
        """Read a table off one that needs the fewest further cells for it, or off its own."""
        wider = [sorted({*table.axes, *margin}) for table in self._joint]
        pairs = zip(wider, self._joint, strict=True)
        growth = [self._size(axes) / self._size(table.axes) for axes, table in pairs]
        fits = [at for at, axes in enumerate(wider) if self._size(axes) <= most]
        if fits:
            at = min(fits, key=growth.__getitem__)
            self._joint[at] = _JointTable(wider[at], [*self._joint[at].margins, place])
        else:
            self._joint.append(_JointTable([*margin], [place]))

    def _size(self, axes: Iterable[int]) -> int:
        return math.prod(self._sizes[at] for at in axes)

    def add(self, block: RowBlock, inside: np.ndarray, amounts: _Amounts) -> None:
        """Add up a block.

        Parameters
        ----------
        block
            The rows.
        inside
            Mask of the rows that count: these have a place on every axis.
        amounts
            What the rows add to terms, by position; one number if all add the same.
        """
        rows = np.flatnonzero(inside)
        everyone = len(rows) == len(inside)
        places = [block.position(axis) for axis in self._axes]
        for start in range(0, len(rows), _PART):
            part = slice(start, start + _PART) if everyone else rows[start : start + _PART]
            part_amounts = {
                at: amount if isinstance(amount, int) else amount[part]
                for at, amount in amounts.items()
            }
            placed = [place[part] for place in places]
            for table, totals in zip(self._joint, self._totals, strict=True):
                cells = self._cells(len(inside[part]), table.axes, placed)
                for at, amount in part_amounts.items():
                    np.add.at(totals[at], cells, amount)

    def _cells(self, length: int, axes: Sequence[int], places: Sequence[np.ndarray]) -> np.ndarray:
        """Return the cells of rows in a table, row-major."""
        cells = np.zeros(length, np.int64)
        for at in axes:
            cells *= self._sizes[at]
            cells += places[at]
        return cells

    def totals(self) -> np.ndarray:
        """Return the totals of all tables, one after the other: one row per term."""
        by_place: dict[int, np.ndarray] = {}
        for table, totals in zip(self._joint, self._totals, strict=True):
            cells = totals.reshape(len(totals), *(self._sizes[at] for at in table.axes))
            for place in table.margins:
                margin = self._margins[place]
                others = [1 + k for k, at in enumerate(table.axes) if at not in margin]
                kept = [at for at in table.axes if at in margin]
                order = [1 + kept.index(at) for at in margin]
                margin_cells = cells.sum(axis=tuple(others)).transpose(0, *order)
                by_place[place] = margin_cells.reshape(len(totals), -1)
        return np.concatenate([by_place[place] for place in range(len(self._margins))], axis=1)


# columns whose rows lie together are best counted at once, if there are as many
_WIDE = 16
# as many rows can be counted in one byte
_BYTE = 255


class Flags:
    """Sums of boolean columns in a single cell: the True of all of them are counted at once."""

    def __init__(self, frame: pd.DataFrame, places: Iterable[int]) -> None:
        self._frame = frame
        self._columns = np.unique(np.fromiter(places, np.int64))
        starts = np.flatnonzero(np.diff(self._columns, prepend=-2) != 1)
        runs = np.split(np.arange(len(self._columns)), starts[1:])
        # of adjacent columns
        self._runs = [run for run in runs if len(run)]
        self._true = np.zeros(len(self._columns), np.int64)
        self._rows = 0

    def add(self, rows: slice, kept: np.ndarray) -> None:
        """Count in those rows of a block that are kept."""
        count = int(np.count_nonzero(kept))
        self._rows += count
        chosen = None if count == len(kept) else kept
        for run in self._runs:
            first, last = self._columns[run[[0, -1]]]
            table = self._frame.iloc[rows, first : last + 1].to_numpy()
            self._true[run] += _count_true(table, chosen)

    def total(self, place: int, low: np.int64, high: np.int64) -> int:
        """Return the sum of a column, of grid integers for False and True, modulo 2**64."""
        true = int(self._true[np.searchsorted(self._columns, place)])
        return noise.wrap_integer(int(low) * (self._rows - true) + int(high) * true)


def _count_true(table: np.ndarray, kept: np.ndarray | None) -> np.ndarray:
    """Count the True per column of a table, in all rows or in those kept."""
    if table.strides[0] == table.itemsize or table.shape[1] < _WIDE:
        chosen = table.T if kept is None else (column & kept for column in table.T)
        return np.array([np.count_nonzero(column) for column in chosen], np.int64)
    counts = np.zeros(table.shape[1], np.int64)
    for start in range(0, len(table), _BYTE):
        rows = slice(start, start + _BYTE)
        # any other byte is True, and to be counted once
        true = table[rows].view(np.uint8) != 0
        if kept is not None:
            true &= kept[rows, None]
        counts += np.add.reduce(true.view(np.uint8), axis=0, dtype=np.uint8)
    return counts


class Prepared:
    """What all blocks share about a task.

    Parameters
    ----------
    task
        What to add up.
    context
        Where random words come from, by which rows are chosen.
    """

    def __init__(self, task: Task, context: Context) -> None:
        self.task = task
        self.context = context
        self.ungrouped = task.groups.places
        """The extra group of rows that are left out before caps; groups are cells, most often."""
        self.outside = task.cells.places
        """The extra cell of rows that are left out."""
        self.capped = np.empty(0, np.int8)
        """Cells of all rows, where caps drop some."""
        self.chosen: np.ndarray | None = None
        """Mask of the rows that caps keep; the others are outside, whatever their cells are."""
        self.first = np.empty(0, bool)
        """One kept row per unit, where units are counted."""
        self._lookup = CellLookup(task.groups)

    def find(self, block: RowBlock) -> np.ndarray:
        """Find the groups of a block, before caps; not to be written to."""
        cells = self._lookup(block.position, len(block))
        if self.task.where is not None:
            cells = np.where(block.rows_where(self.task.where), cells, self.ungrouped)
        for column, grid in self.task.valued:
            _, missing = block.snap(column, grid)
            cells = np.where(missing, self.ungrouped, cells)
        return cells

    def cells_kept(self, block: RowBlock) -> np.ndarray:
        """Return the cells of a block; rows that caps drop are outside."""
        if not self.task.unit:
            return self.find(block)
        cells = self.capped[block.rows]
        if self.chosen is not None:
            cells = larger_where(~self.chosen[block.rows], cells, self.outside)
        cells = cells.astype(np.int64)
        # places are looked for anew, and what values are may change
        if self.task.cells.margins:
            cells |= self._lookup(block.position, len(block))
        return cells


class Sums:
    """Totals of a task over some blocks.

    Parameters
    ----------
    source
        The frame.
    prepared
        The task.
    """

    def __init__(self, source: FrameReader, prepared: Prepared) -> None:
        self._prepared = prepared
        self._task = prepared.task
        terms = prepared.task.terms
        self._totals = np.zeros((len(terms), prepared.task.cells.size + 1), np.int64)
        self._spread = Spread(prepared.task.cells, len(terms), len(source.frame))
        flagged = _flag_sums(source, prepared.task)
        self._others = [(at, term) for at, term in enumerate(terms) if at not in flagged]
        self._places = {at: source.places[term.column] for at, term in flagged.items()}
        self._flags = Flags(source.frame, self._places.values())

    def add(self, block: RowBlock) -> None:
        """Add up a block."""
        cells = self._prepared.cells_kept(block)
        terms = _BlockTerms(self._prepared, block, cells)
        if self._task.cells.margins:
            amounts = {at: terms.amounts_everywhere(term) for at, term in self._others}
            self._spread.add(block, cells == 0, amounts)
        else:
            terms.add(self._totals, self._others)
        self._flags.add(block.rows, cells != self._prepared.outside)

    def totals(self) -> np.ndarray:
        """Return the totals so far: int64 of shape (terms, cells)."""
        if self._task.cells.margins:
            self._totals[:, :-1] = self._spread.totals()
        for at, place in self._places.items():
            grid = self._task.terms[at].grid
            if grid is not None:
                self._totals[at, 0] = self._flags.total(place, *blocks.ends(grid))
        return self._totals[:, :-1]


class _BlockTerms:
    """What the terms of one task share in one block."""

    def __init__(self, prepared: Prepared, block: RowBlock, cells: np.ndarray) -> None:
        self._prepared = prepared
        self._task = prepared.task
        self._block = block
        self._whole = cells
        self._last: tuple[Condition | None, np.ndarray] = (None, cells)
        self._few: dict[Term, np.ndarray] = {}
        self._split: dict[tuple[Hashable, Grid, str, int], list[np.ndarray]] = {}

    @cached_property
    def _inside(self) -> np.ndarray:
        """Mask of the rows in the only cell."""
        return np.asarray(self._whole == 0)

    def add(self, totals: np.ndarray, terms: Sequence[tuple[int, Term]]) -> None:
        """Add up terms, by position; those of many conditions off the truths that rows have."""
        conditions = {term.where for _, term in terms if term.where is not None}
        if self._task.most is None and len(conditions) >= _FEWEST_CONDITIONS:
            ordered = sorted(conditions, key=lambda condition: condition.text)
            for start in range(0, len(ordered), _BITS):
                some = ordered[start : start + _BITS]
                with_these = [(at, term) for at, term in terms if term.where in some]
                if self._add_by_truths(totals, with_these, some):
                    added = {at for at, _ in with_these}
                    terms = [(at, term) for at, term in terms if at not in added]
        for at, term in terms:
            self._add_term(totals[at], term)

    def _add_by_truths(
        self, totals: np.ndarray, terms: Sequence[tuple[int, Term]], conditions: Sequence[Condition]
    ) -> bool:
        """Add up rows by cell and by which conditions they satisfy, if there are few such sets.

        What satisfies a condition is then the sum over the sets with it.
        """
        width, rows = self._prepared.outside + 1, len(self._whole)
        most = rows // _ROWS_A_SET // width
        if most < 2:  # noqa: PLR2004
            return False
        truths = _truths([self._block.rows_where(condition) for condition in conditions])
        if len(pd.unique(truths[:_PART])) > most:
            return False
        codes, sets = pd.factorize(truths)
        if len(sets) > most:
            return False
        places = codes * width + self._whole
        bits = np.arange(len(conditions), dtype=np.uint64)
        holds = (sets >> bits[:, None] & np.uint64(1)).astype(np.int64)
        sums: dict[Term, dict[Condition, np.ndarray]] = {}
        for at, term in terms:
            if term.where is not None:
                alike = replace(term, where=None)
                if alike not in sums:
                    of_sets = np.zeros(len(sets) * width, np.int64)
                    np.add.at(of_sets, places, self.amounts(alike))
                    by_condition = holds @ of_sets.reshape(len(sets), width)
                    sums[alike] = dict(zip(conditions, by_condition, strict=True))
                totals[at] += sums[alike][term.where]
        return True

    def _add_term(self, totals: np.ndarray, term: Term) -> None:
        """Add up a term."""
        amounts = self.amounts(term)
        if self._prepared.outside == 1 and isinstance(amounts, int):
            totals[0] += amounts * self._rows(term.where)
        else:
            np.add.at(totals, self.cells(term.where), amounts)

    def _rows(self, where: Condition | None) -> int:
        """Count the rows in the only cell that satisfy the condition of a term."""
        inside = self._inside if where is None else self._inside & self._block.rows_where(where)
        return int(np.count_nonzero(inside))

    def cells(self, where: Condition | None) -> np.ndarray:
        """Cells of the rows; those that fail the condition of a term are outside."""
        if where is None:
            return self._whole
        # terms of one condition follow each other
        if self._last[0] != where:
            kept = self._block.rows_where(where)
            self._last = where, np.where(kept, self._whole, self._prepared.outside)
        return self._last[1]

    def amounts(self, term: Term) -> np.ndarray | int:
        """Return what the rows add to a term, one number if all add the same."""
        if term.weights is not None:
            return self._weighted(term, term.weights)
        if term.grid is None:
            if term.kind != "units" or not self._task.unit:
                return 1  # every row is a unit
            return self._prepared.first[self._block.rows].astype(np.int64)
        if term.kind == "sum" and self._task.most is not None:
            return self._choose_ones(self._task.most)[term]
        if term.others:
            return self._amounts_of_several(term)
        return self._amounts_of_column(term, term.grid)

    def _amounts_of_column(self, term: Term, grid: Grid) -> np.ndarray | int:
        """Return what the rows add to a term of one column."""
        integers, missing = self._block.snap(term.column, grid)
        if term.kind == "sum":
            return integers
        everyone = grid.fill is not None or not missing.any()
        if term.kind == "square":
            squares = blocks.square_integers(integers, grid)
            return squares if everyone else np.where(missing, 0, squares)
        return 1 if everyone else (~missing).astype(np.int64)

    def _amounts_of_several(self, term: Term) -> np.ndarray | int:
        """Return what the rows add to a term of several columns; 0 where a value is missing."""
        factors = []
        for column, grid in term.valued:
            _, missing = self._block.snap(column, grid)
            if grid.fill is None and missing.any():
                factors.append((~missing).astype(np.int64))
        # rows have no parts
        for (column, grid), part in zip(term.valued, term.part, strict=False):
            if part or term.kind == "part":
                factors.append(self._split_column(column, grid, term)[part])
        return reduce(np.multiply, factors) if factors else 1

    def _split_column(self, column: Hashable, grid: Grid, term: Term) -> list[np.ndarray]:
        """Return the parts of a column, or its powers: all are wanted."""
        key = column, grid, term.kind, term.degree
        if key not in self._split:
            integers, _ = self._block.snap(column, grid)
            if term.kind == "part":
                self._split[key] = blocks.bernstein_parts(integers, grid, term.degree)
            else:
                self._split[key] = blocks.powers(integers, grid)
        return self._split[key]

    def _weighted(self, term: Term, weights: RowWeights) -> np.ndarray:
        """Return what the rows add to a term where each counts for its weight."""
        # 0 where it is missing
        amounts, _ = self._block.snap(weights.column, weights.grid)
        if term.grid is None:
            return amounts
        integers, missing = self._block.snap(term.column, term.grid)
        if term.kind == "sum":
            amounts = blocks.weigh_integers(amounts, integers, term.origin, term.span)
        everyone = term.grid.fill is not None or not missing.any()
        return amounts if everyone else np.where(missing, 0, amounts)

    def amounts_everywhere(self, term: Term) -> np.ndarray | int:
        """Return what the rows add to a term, 0 where they fail its condition."""
        amounts = self.amounts(term)
        if term.where is None:
            return amounts
        return np.where(self.cells(term.where) == self._prepared.outside, 0, amounts)

    def _choose_ones(self, most: int) -> dict[Term, np.ndarray]:
        """Return what every row adds to the sums, few of which are 1 for a row."""
        if not self._few:
            for term in sums_of(self._task):
                if term.grid is not None:
                    integers, _ = self._block.snap(term.column, term.grid)
                    absent = self.cells(term.where) == self._prepared.outside
                    self._few[term] = np.where(absent, 0, integers)
            keep_few(list(self._few.values()), most, self._prepared.context)
        return self._few


def _truths(masks: Sequence[np.ndarray]) -> np.ndarray:
    """Write the masks of conditions as the bits of one number per row."""
    numbers = np.zeros(len(masks[0]), np.uint64)
    for start in range(0, len(masks), _BYTE_BITS):
        byte = np.zeros(len(numbers), np.uint8)
        for bit, mask in enumerate(masks[start : start + _BYTE_BITS]):
            byte |= mask.view(np.uint8) << np.uint8(bit)
        numbers |= byte.astype(np.uint64) << np.uint64(start)
    return numbers


def sums_of(task: Task) -> list[Term]:
    """List the sums of a task."""
    return [term for term in task.terms if term.kind == "sum"]


def _flag_sums(source: FrameReader, task: Task) -> dict[int, Term]:
    """Find the sums, by position, that need only the number of True in a column."""
    if task.cells.size != 1 or task.most is not None:
        return {}
    dtypes = source.frame.dtypes.array
    return {
        at: term
        for at, term in enumerate(task.terms)
        if term.kind == "sum" and term.where is None and term.weights is None
        if term.grid is not None and term.grid.ticks is None
        if isinstance(dtypes[source.places[term.column]], np.dtypes.BoolDType)
    }


def keep_few(columns: Sequence[np.ndarray], most: int, context: Context) -> None:
    """Set ones to zero, in place, until every row has at most so many over all columns.

    Which ones stay is a uniformly random choice in every row.

    Parameters
    ----------
    columns
        Integers 0 and 1, one array per column.
    most
        How many ones a row may have.
    context
        Where random words come from.
    """
    total = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        total += column
    over = np.flatnonzero(total > most)
    if not len(over):
        return
    ones = np.stack([column[over] for column in columns], axis=1)
    # zeros come last; 63 random bits order the ones, and a tie only makes the choice less random
    order = noise.row_words(ones.size, context).reshape(ones.shape) >> np.uint64(1)
    order = order | (ones == 0).astype(np.uint64) << np.uint64(63)
    dropped = np.argpartition(order, most, axis=1)[:, most:]
    np.put_along_axis(ones, dropped, 0, axis=1)
    for place, column in enumerate(columns):
        column[over] = ones[:, place]
