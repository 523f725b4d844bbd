"""What becomes of every row of a frame in a release, step by step, by the engine's own means.

It is what `totals` does before it adds up, on all rows at once, and with a note of where each row
is left out. A release does not look at it.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.columns import values
from dpframe.columns.lookup import CellLookup
from dpframe.context import Context
from dpframe.engines.blocks import FrameReader, RowBlock
from dpframe.engines.capping import binding
from dpframe.engines.labels import coded_labels, combine_codes
from dpframe.engines.sums import Prepared, keep_few, sums_of
from dpframe.engines.units import Units, unit_codes
from dpframe.frozen import frozen
from dpframe.privacy.neighbors import Caps
from dpframe.queries.conditions import surely
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Axis, BinAxis, Cells, LabelAxis, LabelTask, RowWeights, Task
from dpframe.queries.where import Condition

StepKind: TypeAlias = Literal[
    "part",
    "unknown",
    "where",
    "missing value",
    "unusable value",
    "unit",
    "missing key",
    "undeclared key",
    "moved key",
    "combination",
    "max_rows_per_group",
    "max_groups",
    "max_rows",
    "further rows",
]
"""Why a row is left out; "unknown": a value is missing that could have met the condition."""


@frozen(eq=False)
class Step:
    """A step of a release, and the rows that it leaves out, or counts in another group.

    Parameters
    ----------
    kind
        What is done: a `StepKind`. By "moved key", rows count as if they had another key, and none
        is left out.
    rows
        Mask of the rows that no step before has left out, and this one does or moves.
    axis
        The grouping column, for keys.
    column
        The column that is looked at, for keys and for values.
    grid
        What its values are to be, for values.
    """

    kind: StepKind
    rows: np.ndarray
    axis: Axis | LabelAxis | None = None
    column: Hashable = None
    grid: Grid | None = None


class Trace:
    """The rows of a frame on their way into what is counted.

    Parameters
    ----------
    frame
        The frame; it has the columns that are named once each.
    axes
        The axes on which rows are looked for.
    unit
        Columns that together say whose row it is.
    """

    def __init__(
        self, frame: pd.DataFrame, axes: Sequence[Axis], unit: tuple[Hashable, ...]
    ) -> None:
        self.rows = len(frame)
        self._source = FrameReader(frame, list(axes), {})
        self._block = RowBlock(self._source, slice(0, self.rows))
        self._unit_columns = list(map(self.column, unit))
        self._units, self._none = np.arange(self.rows), self.rows
        if unit:
            self._units, self._none = unit_codes(self._unit_columns)
        self._left = np.ones(self.rows, bool)
        self.steps: list[Step] = []

    @property
    def kept(self) -> np.ndarray:
        """Mask of the rows that are counted."""
        return self._left

    def units(self, rows: np.ndarray) -> int:
        """Return the number of units that have some of the rows of a mask."""
        seen = np.zeros(self._none + 1, bool)
        seen[self._units[rows]] = True
        return int(np.count_nonzero(seen[:-1]))

    def column(self, label: Hashable) -> pd.Series:
        """Return a column."""
        return self._source.column(label)

    def most_often(self, label: Hashable, rows: np.ndarray, most: int) -> list[tuple[object, int]]:
        """Return the values that most rows of a mask have, with their numbers of rows."""
        column = values.dense(self.column(label)).iloc[np.flatnonzero(rows)]
        codes, count = unit_codes([column])
        numbers = np.bincount(codes, minlength=count + 1)[:count]
        commonest = np.argsort(-numbers, kind="stable")[:most]
        first = [(int(np.argmax(codes == code)), int(numbers[code])) for code in commonest]
        return [(values.objects(column.iloc[[row]])[0], n) for row, n in first if n]

    def failing(self, where: Condition, rows: np.ndarray) -> Iterator[Step]:
        """Tell which rows of a mask do not meet a condition: for lack of a value, or otherwise."""
        failing = rows & ~self._block.rows_where(where)
        present = [~values.missing(self.column(label)) for label in where.columns]
        complete = np.logical_and.reduce(present) if present else True
        certain = complete | self._block.rows_where(surely(where, holds=False))
        yield Step("unknown", failing & ~certain)
        yield Step("where", failing & certain)

    def _where(self, where: Condition | None) -> Iterator[Step]:
        """Leave out the rows that are not in the part, or do not meet a condition."""
        part, others = (None, None) if where is None else where.split_part()
        if part is not None:
            yield self._without(Step("part", ~self._block.rows_where(part)))
        if others is not None:
            yield from map(self._without, self.failing(others, self._left))

    def _without(self, step: Step) -> Step:
        """Leave out the rows of a step that none before has left out."""
        left_out = self._left & step.rows
        self._left = self._left & ~step.rows
        return replace(step, rows=left_out)


class RowTrace(Trace):
    """The rows of a frame on their way into the totals of a task.

    Parameters
    ----------
    frame
        The frame; it has the columns of the task once each.
    task
        What would be added up.
    context
        Where random words come from, by which caps choose rows.
    """

    def __init__(self, frame: pd.DataFrame, task: Task, context: Context) -> None:
        axes = task.groups.axes
        super().__init__(frame, [*axes, *map(_strict, axes)], task.unit)
        self.inner = task.inner
        """How many cells are one group for the caps."""
        self._task = task
        self._prepared = Prepared(task, context)
        self.cells = self._prepared.find(self._block)
        self.grouped = self._left
        """Mask of the rows that have a group and a unit, before caps."""
        self.steps = list(self._steps())

    def cells_in(self, table: Cells) -> np.ndarray:
        """Return the cells of the rows in a table by some of the axes."""
        return CellLookup(table)(self._block.position, self.rows)

    def units_by_cell(self, rows: np.ndarray, table: Cells) -> np.ndarray:
        """Return the number of units with some of the rows of a mask, for every cell."""
        cells = self.cells_in(table)[rows]
        pairs = np.unique(cells * (self._none + 1) + self._units[rows])
        return np.bincount(pairs // (self._none + 1), minlength=table.size)

    def rows_by_cell(self, rows: np.ndarray, table: Cells) -> np.ndarray:
        """Return the number of rows of a mask for every cell; all of them are in one."""
        return np.bincount(self.cells_in(table)[rows], minlength=table.size)

    def has_rows_on(self, axis: Axis) -> bool:
        """Tell whether any row of the frame has one of the keys, or lies in one of the bins."""
        return bool((self._block.position(_strict(axis)) < len(axis)).any())

    def satisfying(self, where: Condition | None, among: np.ndarray) -> np.ndarray:
        """Mask of the rows, among those of another, that satisfy a condition."""
        return among if where is None else among & self._block.rows_where(where)

    def beyond(self, label: Hashable, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """Tell which values are below and above the bounds of a column."""
        numbers = self._block.round_column(label, grid)
        return numbers < grid.lower, numbers > grid.upper

    def lacking(self, label: Hashable, grid: Grid, rows: np.ndarray) -> Iterator[Step]:
        """Tell which rows of a mask have no value, and which have one that is of another kind."""
        missing = values.missing(self.column(label))
        unusable = np.isnan(self._block.round_column(label, grid)) & ~missing
        yield Step("missing value", rows & missing, column=label, grid=grid)
        yield Step("unusable value", rows & unusable, column=label, grid=grid)

    def clipped_weight(self, weights: RowWeights, rows: np.ndarray) -> tuple[float, float]:
        """Return what clipping adds to the total of weights, and what it takes off, in parts of it.

        The total is that of the finite weights above 0 in the rows of a mask, before clipping.
        """
        numbers = self._block.round_column(weights.column, weights.grid)[rows]
        finite = numbers[np.isfinite(numbers)]
        total = float(np.maximum(finite, 0).sum())
        added = float(np.maximum(weights.grid.lower - finite, 0).sum())
        taken = float(np.maximum(finite - weights.grid.upper, 0).sum())
        return (added / total, taken / total) if total else (0.0, 0.0)

    def dropped_true(self, most: int) -> tuple[int, int]:
        """Return how many true values there are in all sums of a task, and how many count."""
        columns = []
        for term in sums_of(self._task):
            if term.grid is not None:
                integers, _ = self._block.snap(term.column, term.grid)
                columns.append(np.where(self.satisfying(term.where, self.kept), integers, 0))
        before = sum(int(column.sum()) for column in columns)
        keep_few(columns, most, self._prepared.context)
        return before, sum(int(column.sum()) for column in columns)

    def _steps(self) -> Iterator[Step]:
        """Leave rows out, in the order in which a release does."""
        task = self._task
        yield from self._where(task.where)
        for column, grid in task.valued:
            yield from map(self._without, self.lacking(column, grid, self._left))
        if task.unit:
            yield self._without(Step("unit", self._units == self._none))
        for axis in task.groups.axes:
            yield from self._look_on(axis)
        if task.groups.chosen is not None:
            yield self._without(Step("combination", self.cells == self._prepared.ungrouped))
        self.grouped = self._left
        if task.sizes is not None:
            cells = np.where(self._left, self.cells, self._prepared.ungrouped)
            sized = Units(self._unit_columns).cells_of_sizes(cells, task.sizes)
            yield self._without(Step("further rows", sized == self._prepared.outside))
        elif task.unit:
            yield from self._apply_caps(Units(self._unit_columns))

    def _look_on(self, axis: Axis) -> Iterator[Step]:
        """Look for the rows on an axis, and for those that count although they are not on it."""
        outside, beyond = (self._block.position(on) == len(axis) for on in (axis, _strict(axis)))
        if isinstance(axis, BinAxis) or not axis.rest:
            missing = values.missing(self.column(axis.column))
            yield self._without(Step("missing key", outside & missing, axis, axis.column))
            yield self._without(Step("undeclared key", outside, axis, axis.column))
        if _strict(axis) is not axis:
            yield Step("moved key", self._left & beyond, axis, axis.column)

    def _apply_caps(self, units: Units) -> Iterator[Step]:
        """Apply the caps of the task one by one: together they do the same, to the same law."""
        size, inner, caps = self._task.cells.places, self._task.inner, self._task.caps
        bound = binding(caps, size // inner)
        # in a single group, a cap on the rows of a group is one on rows
        single = bound.rows is not None and bound.rows != caps.rows
        stages: dict[StepKind, Caps] = {
            "max_rows_per_group": Caps(bound.rows if single else None, None, bound.rows_per_group),
            "max_groups": Caps(groups=bound.groups),
            "max_rows": Caps(rows=None if single else bound.rows),
        }
        declared = dict(zip(stages, (caps.rows_per_group, caps.groups, caps.rows), strict=True))
        for name, stage in stages.items():
            if declared[name] is not None:
                cells = np.where(self._left, self.cells, size)
                kept = units.choose(cells, size, stage, self._prepared.context, inner)
                yield self._without(Step(name, ~kept))


def _strict(axis: Axis) -> Axis:
    """Return an axis on which nothing counts that has none of its keys, or is in no bin."""
    if isinstance(axis, BinAxis):
        return replace(axis, clipped=False) if axis.clipped else axis
    return replace(axis, rest=False) if axis.rest else axis


class LabelTrace(Trace):
    """The rows of a frame on their way into the numbers of units by label.

    Parameters
    ----------
    frame
        The frame; it has the columns of the task once each.
    task
        What would be looked for.
    context
        As for `RowTrace`.
    """

    def __init__(self, frame: pd.DataFrame, task: LabelTask, context: Context) -> None:
        super().__init__(frame, (), task.unit)
        self.labels = 0
        """How many labels the counted rows have."""
        self._coded = [coded_labels(self.column(axis.column), axis) for axis in task.axes]
        self.steps = list(self._steps(task, context))

    def _steps(self, task: LabelTask, context: Context) -> Iterator[Step]:
        """Leave rows out; which of them caps keep does not depend on the order of the steps."""
        yield from self._where(task.where)
        if task.unit:
            yield self._without(Step("unit", self._units == self._none))
        for axis, coded in zip(task.axes, self._coded, strict=True):
            missing = values.missing(self.column(axis.column)) & (coded.codes < 0)
            yield self._without(Step("missing key", missing, axis, axis.column))
            yield self._without(Step("undeclared key", coded.codes < 0, axis, axis.column))
        if task.unit:
            units = Units(self._unit_columns)
            stages: dict[StepKind, Caps] = {
                "max_groups": Caps(groups=task.most),
                "further rows": Caps(rows_per_group=1),
            }
            for kind, caps in stages.items():
                cells, first = combine_codes(self._coded, self._left)
                kept = units.choose(cells, len(first), caps, context)
                yield self._without(Step(kind, ~kept))
        _, first = combine_codes(self._coded, self._left)
        self.labels = len(first)
