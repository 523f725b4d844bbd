"""The totals of one task, added up block by block."""

import numpy as np

from dpframe.columns.lookup import CellLookup
from dpframe.engines.blocks import FrameReader, RowBlock, ends, squared
from dpframe.engines.capping import larger_where
from dpframe.engines.flags import Flags
from dpframe.engines.margins import Spread
from dpframe.engines.picking import keep_few
from dpframe.forks import cached_property
from dpframe.queries.tasks import Task, Term
from dpframe.queries.where import Condition


class Prepared:
    """What all blocks share about a task.

    Parameters
    ----------
    task
        What to add up.
    lookup
        Finds its cells.
    """

    def __init__(self, task: Task, lookup: CellLookup) -> None:
        self.task = task
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
        self._lookup = lookup

    def find(self, block: RowBlock) -> np.ndarray:
        """Find the groups of a block, before caps; not to be written to."""
        cells = self._lookup(block.position, len(block))
        if self.task.where is None:
            return cells
        return np.where(block.kept(self.task.where), cells, self.ungrouped)

    def kept(self, block: RowBlock) -> np.ndarray:
        """Return the cells of a block; rows that caps drop are outside."""
        if self.task.unit is None:
            return self.find(block)
        cells = self.capped[block.rows]
        if self.chosen is not None:
            cells = larger_where(~self.chosen[block.rows], cells, self.outside)
        cells = cells.astype(np.int64)
        if self.task.cells.margins:  # places are looked for anew, and what values are may change
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
        self._spread = Spread(prepared.task.cells)
        flagged = _flagged(source, prepared.task)
        self._others = [(at, term) for at, term in enumerate(terms) if at not in flagged]
        self._places = {at: source.place(term.column) for at, term in flagged.items()}
        self._flags = Flags(source.frame, self._places.values())

    def add(self, block: RowBlock) -> None:
        """Add up a block."""
        cells = self._prepared.kept(block)
        terms = _BlockTerms(self._prepared, block, cells)
        if self._task.cells.margins:
            amounts = {at: terms.amounts_everywhere(term) for at, term in self._others}
            self._spread.add(self._totals, block, cells == 0, amounts)
        else:
            for at, term in self._others:
                terms.add(self._totals[at], term)
        self._flags.add(block.rows, cells != self._prepared.outside)

    def totals(self) -> np.ndarray:
        """Return the totals so far: int64 of shape (terms, cells)."""
        for at, place in self._places.items():
            grid = self._task.terms[at].grid
            if grid is not None:
                self._totals[at, 0] = self._flags.total(place, *ends(grid))
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

    @cached_property
    def _inside(self) -> np.ndarray:
        """Mask of the rows in the only cell."""
        inside: np.ndarray = self._whole == 0
        return inside

    def add(self, totals: np.ndarray, term: Term) -> None:
        """Add up a term."""
        amounts = self.amounts(term)
        if self._prepared.outside == 1 and isinstance(amounts, int):
            totals[0] += amounts * self._rows(term.where)
        else:
            np.add.at(totals, self.cells(term.where), amounts)

    def _rows(self, where: Condition | None) -> int:
        """Count the rows in the only cell that satisfy the condition of a term."""
        inside = self._inside
        return int(np.count_nonzero(inside if where is None else inside & self._block.kept(where)))

    def cells(self, where: Condition | None) -> np.ndarray:
        """Cells of the rows; those that fail the condition of a term are outside."""
        if where is None:
            return self._whole
        if self._last[0] != where:  # terms of one condition follow each other
            kept = self._block.kept(where)
            self._last = where, np.where(kept, self._whole, self._prepared.outside)
        return self._last[1]

    def amounts(self, term: Term) -> np.ndarray | int:
        """Return what the rows add to a term, one number if all add the same."""
        if term.grid is None:
            if term.kind != "units" or self._task.unit is None:
                return 1  # every row is a unit
            return self._prepared.first[self._block.rows].astype(np.int64)
        if term.kind == "sum" and self._task.most is not None:
            return self._chosen(self._task.most)[term]
        integers, missing = self._block.snapped(term.column, term.grid)
        if term.kind == "sum":
            return integers
        everyone = term.grid.fill is not None or not missing.any()
        if term.kind == "square":
            squares = squared(integers, term.grid)
            return squares if everyone else np.where(missing, 0, squares)
        return 1 if everyone else (~missing).astype(np.int64)

    def amounts_everywhere(self, term: Term) -> np.ndarray | int:
        """Return what the rows add to a term, 0 where they fail its condition."""
        amounts = self.amounts(term)
        if term.where is None:
            return amounts
        return np.where(self.cells(term.where) == self._prepared.outside, 0, amounts)

    def _chosen(self, most: int) -> dict[Term, np.ndarray]:
        """Return what every row adds to the sums, few of which are 1 for a row."""
        if not self._few:
            for term in sums_of(self._task):
                if term.grid is not None:
                    integers, _ = self._block.snapped(term.column, term.grid)
                    absent = self.cells(term.where) == self._prepared.outside
                    self._few[term] = np.where(absent, 0, integers)
            keep_few(list(self._few.values()), most)
        return self._few


def sums_of(task: Task) -> list[Term]:
    """List the sums of a task."""
    return [term for term in task.terms if term.kind == "sum"]


def _flagged(source: FrameReader, task: Task) -> dict[int, Term]:
    """Find the sums, by position, that need only the number of True in a column."""
    if task.cells.size != 1 or task.most is not None:
        return {}
    dtypes = source.frame.dtypes.array
    return {
        at: term
        for at, term in enumerate(task.terms)
        if term.kind == "sum" and term.where is None
        if term.grid is not None and term.grid.ticks is None
        if isinstance(dtypes[source.place(term.column)], np.dtypes.BoolDType)
    }
