"""The embedded engine: exact totals of a `pandas.DataFrame`, in one pass over blocks of rows."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from dpframe.columns.identity import silent
from dpframe.columns.lookup import CellLookup, wants_many_rows
from dpframe.columns.values import public_type
from dpframe.context import Context
from dpframe.engines.base import Engine, check_labels
from dpframe.engines.blocks import Finders, FrameReader, RowBlock, cells_name
from dpframe.engines.labels import LabelCounts, label_counts
from dpframe.engines.sums import Prepared, Sums, sums_of
from dpframe.engines.threads import in_threads, thread_count
from dpframe.engines.units import Units
from dpframe.provenance import is_marked, mark_frame
from dpframe.queries.tasks import LabelTask, Task
from dpframe.sources.manifest import Manifest

_BLOCK = 1 << 17  # rows; what is made of a block stays in the processor's cache
_LARGE_BLOCK = 1 << 20  # rows, where a column has labels that are dear to look up
_FEW_AMOUNTS = 1 << 23  # of a block in which all sums are needed at once

_Asked = Sequence[tuple[Task, CellLookup]]
"""What to add up, with what finds the cells."""


class PandasEngine(Engine):
    """Engine of `pandas.DataFrame`."""

    def handles(self, frame: object) -> bool:
        """Tell whether the frame is a `pandas.DataFrame`."""
        return isinstance(frame, pd.DataFrame)

    def check(self, frame: pd.DataFrame, columns: Iterable[Hashable]) -> None:
        """Check that every label names exactly one column of the frame."""
        check_labels(self.columns(frame), columns, list(frame.index.names))

    def manifest(self, frame: pd.DataFrame) -> Manifest:
        """Name the types of columns that no cell can change."""
        return Manifest("pandas", types_of(frame))

    def mark(self, frame: pd.DataFrame) -> None:
        """Put a mark in `attrs`."""
        mark_frame(frame)

    def is_derived(self, frame: pd.DataFrame) -> bool:
        """Tell whether the frame bears the mark of another one."""
        return is_marked(frame.attrs)

    def attrs(self, frame: pd.DataFrame) -> Mapping[Any, Any]:
        """Return the `attrs` of the frame."""
        return dict(frame.attrs)

    def gather(self, frame: pd.DataFrame, labels: Sequence[Hashable]) -> pd.DataFrame:
        """Return the frame as it is."""
        self.check(frame, labels)
        return frame

    def totals(
        self, frame: pd.DataFrame, tasks: Sequence[Task], context: Context
    ) -> list[np.ndarray]:
        """Add up all terms of the tasks in every cell: int64 of shape (terms, cells) per task."""
        self.check(frame, labels_of(tasks))
        return totals_of([frame], tasks, context)

    def labels(self, frame: pd.DataFrame, task: LabelTask, context: Context) -> LabelCounts:
        """Count units by label."""
        self.check(frame, task.columns)
        return label_counts([frame], [task], context)[0]


def types_of(frame: pd.DataFrame) -> dict[Hashable, str | None]:
    """Name the public types of all columns."""
    return dict(zip(frame.columns, map(public_type, frame.dtypes.tolist()), strict=True))


def totals_of(
    parts: Iterable[pd.DataFrame],
    tasks: Sequence[Task],
    context: Context,
    threads: int | None = None,
) -> list[np.ndarray]:
    """Add up the terms of tasks over the parts of a frame; all rows of a unit are in one part.

    Parameters
    ----------
    parts
        Frames with the columns of the tasks, read one after the other.
    tasks
        What to add up.
    context
        Where random words come from, by which caps choose rows.
    threads
        How many to use; `None` for as many as are worth starting.

    Returns
    -------
    list of numpy.ndarray
        The totals of all parts by task, modulo 2**64: int64 of shape (terms, cells).
    """
    asked = [(task, CellLookup(task.groups)) for task in tasks]
    finders: Finders = {}
    totals: list[np.ndarray] | None = None
    for part in parts:
        found = _totals_of_part(part, finders, asked, context, threads)
        totals = found if totals is None else list(map(np.add, totals, found))
    if totals is None:
        return [np.zeros((len(task.terms), task.cells.size), np.int64) for task in tasks]
    return totals


@silent
def _totals_of_part(
    part: pd.DataFrame, finders: Finders, asked: _Asked, context: Context, threads: int | None
) -> list[np.ndarray]:
    axes = [axis for task, _ in asked for axis in task.groups.axes]
    with np.errstate(all="ignore"):
        source = FrameReader(part, axes, finders)
        return _Pass(source, asked, context, threads or thread_count(len(part))).totals()


def labels_of(tasks: Sequence[Task] | Sequence[LabelTask]) -> list[Hashable]:
    """List every column that some tasks name, once."""
    return list(dict.fromkeys(label for task in tasks for label in task.columns))


def group_by_unit(tasks: Sequence[Task]) -> dict[tuple[Hashable, ...], list[Task]]:
    """Group tasks by their privacy unit."""
    grouped: dict[tuple[Hashable, ...], list[Task]] = {}
    for task in tasks:
        grouped.setdefault(task.unit, []).append(task)
    return grouped


class _Pass:
    """One pass of some tasks over a frame."""

    def __init__(self, source: FrameReader, asked: _Asked, context: Context, threads: int) -> None:
        self._source = source
        self._context = context
        self._rows = len(source.frame)
        self._threads = threads
        most = max((len(sums_of(task)) for task, _ in asked if task.most is not None), default=0)
        large = any(
            wants_many_rows(axis, source.column(axis.column).dtype)
            for task, _ in asked
            for axis in task.groups.axes
        )
        size = min(_LARGE_BLOCK, max(_BLOCK, -(-self._rows // threads))) if large else _BLOCK
        self._size = min(size, 1 + _FEW_AMOUNTS // max(most, 1))
        self._tasks = [Prepared(task, find, context) for task, find in asked]

    def totals(self) -> list[np.ndarray]:
        """Add up the terms of the tasks."""
        self._cap([prepared for prepared in self._tasks if prepared.task.unit])
        tasks = [prepared.task for prepared in self._tasks]
        amounts = sum(len(task.terms) * task.cells.size for task in tasks)
        # every thread has totals of its own
        threads = self._threads if amounts <= self._rows else 1
        blocks = iter(self._blocks())
        found = in_threads(lambda _: self._some(blocks), range(threads), threads)
        return [reduce(np.add, parts) for parts in zip(*found, strict=True)]

    def _some(self, blocks: Iterator[slice]) -> list[np.ndarray]:
        """Add up the blocks that no other thread takes."""
        totals = [Sums(self._source, prepared) for prepared in self._tasks]
        for rows in blocks:
            block = RowBlock(self._source, rows)
            for sums in totals:
                sums.add(block)
        return [sums.totals() for sums in totals]

    def _blocks(self) -> list[slice]:
        """Cut the rows into blocks."""
        starts = range(0, self._rows, self._size)
        return [slice(start, min(start + self._size, self._rows)) for start in starts]

    def _cap(self, capped: list[Prepared]) -> None:
        """Choose the rows to keep of every unit, for tasks with units."""
        units: dict[tuple[Hashable, ...], Units] = {}

        def find_cells() -> None:
            in_threads(lambda rows: self._find(capped, rows), self._blocks(), self._threads)

        def find_units() -> None:
            for unit in dict.fromkeys(prepared.task.unit for prepared in capped):
                units[unit] = Units(list(map(self._source.column, unit)), self._threads)

        for prepared in capped:
            prepared.capped = np.empty(self._rows, np.min_scalar_type(prepared.ungrouped))
        work = [find_units, find_cells] if capped else []
        in_threads(lambda find: find(), work, min(self._threads, 2))
        chosen: dict[Hashable, np.ndarray] = {}
        for prepared in capped:
            task = prepared.task
            if task.sizes is not None:
                prepared.capped = units[task.unit].cells_of_sizes(prepared.capped, task.sizes)
                prepared.first = prepared.capped != prepared.outside
                continue
            # tables that ask the same of a unit get the same of its rows: public facts decide
            rows = task.where, task.valued, cells_name(task.cells)
            same = task.unit, task.caps, task.inner, rows
            if same not in chosen:
                chosen[same] = units[task.unit].choose(
                    prepared.capped, prepared.outside, task.caps, self._context, task.inner
                )
            prepared.chosen = chosen[same]
            if any(term.kind == "units" for term in task.terms):
                prepared.first = units[task.unit].first(chosen[same])

    def _find(self, capped: list[Prepared], rows: slice) -> None:
        """Find the cells of a block for some tasks."""
        block = RowBlock(self._source, rows)
        for prepared in capped:
            prepared.capped[rows] = prepared.find(block)
