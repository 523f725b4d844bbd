"""The engine of Parquet files: exact totals in a bounded amount of memory.

Without a privacy unit, rows are added up batch by batch. With one, caps need all rows of a unit at
once: one pass splits the rows by unit into temporary files, and these are added up one at a time.
"""

import operator
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from dpframe.columns import filters, lookup, values
from dpframe.columns.arrow import pa
from dpframe.columns.buckets import unit_buckets
from dpframe.columns.suppress_warnings import silent
from dpframe.declaration.kinds import FOLDERS
from dpframe.engines.base import check_gathered
from dpframe.engines.batches import Begun, decoded_bytes, put_together, split_tables
from dpframe.engines.labels import LabelCounts, label_counts
from dpframe.engines.pandas import group_by_unit, labels_of, totals_of
from dpframe.engines.parquet_files import MOST_BYTES, ParquetFiles
from dpframe.engines.threads import dealt_to_threads, one_ahead, thread_count
from dpframe.progress import show_progress
from dpframe.provenance import is_marked
from dpframe.queries.tasks import LabelTask, Task
from dpframe.queries.where import Condition

_Task = TypeVar("_Task", Task, LabelTask)
_Found = TypeVar("_Found")
_Adder: TypeAlias = Callable[[Iterable[pd.DataFrame], Sequence[_Task], int | None], list[_Found]]

_BLOCK = 1 << 16  # rows; what is made of them stays in the processor's cache
_BUCKET_ROWS = 1 << 21
_SMALL_BUCKET_ROWS = 1 << 19  # where every thread has a bucket
_ROWS_AT_ONCE = 1 << 22  # in buckets that threads add up at the same time, about
_MOST_BUCKETS = 500  # a bucket is an open file
_SLICE_ROWS = 1 << 12  # rows that a bucket is to get at once, or more
_BYTES_IN_MEMORY = 1 << 29  # of rows that are added up at once, about


class ParquetEngine:
    """Engine of `ParquetFiles`."""

    def handles(self, frame: object) -> bool:
        """Tell whether the frame is made of Parquet files."""
        return isinstance(frame, ParquetFiles)

    def columns(self, frame: ParquetFiles) -> list[Hashable]:
        """List the column labels, in order."""
        return list(frame.columns)

    def check(self, frame: ParquetFiles, columns: Iterable[Hashable]) -> None:
        """Check that every label names exactly one column, which every file has as it is now."""
        frame.refresh()
        frame.check(columns)

    def type_of(self, frame: ParquetFiles, label: Hashable) -> str | None:
        """Name the type of a column of files; what folders say is read value by value."""
        kind = frame.types.get(str(label))
        return FOLDERS if kind is None else values.arrow_type(kind)

    def mark(self, frame: ParquetFiles) -> None:
        """Leave no mark: nothing is written to the files."""

    def is_derived(self, frame: ParquetFiles) -> bool:
        """Tell whether a file was written from a declared frame of pandas."""
        return is_marked(frame.attrs)

    def attrs(self, frame: ParquetFiles) -> Mapping[Any, Any]:
        """Return the `attrs` that pandas has written to the files."""
        return frame.attrs

    def gather(self, frame: ParquetFiles, labels: Sequence[Hashable]) -> pd.DataFrame:
        """Read all rows of some columns."""
        self.check(frame, labels)
        check_gathered(sum(file.rows for file in frame._files))
        named = [str(label) for label in labels] or frame.columns[:1]  # rows of none get lost
        tables = list(frame.tables(named))
        return frame.view(pa.concat_tables(tables)) if tables else pd.DataFrame(columns=named)

    def totals(self, frame: ParquetFiles, tasks: Sequence[Task]) -> list[np.ndarray]:
        """Add up all terms of the tasks in every cell: int64 of shape (terms, cells) per task."""
        self.check(frame, labels_of(tasks))
        grouped = group_by_unit(tasks).items()
        totals = {unit: iter(_added_up(frame, some, totals_of)) for unit, some in grouped}
        return [next(totals[task.unit]) for task in tasks]

    def labels(self, frame: ParquetFiles, task: LabelTask) -> LabelCounts:
        """Count units by label."""
        self.check(frame, task.columns)
        return _added_up(frame, [task], label_counts)[0]


def _added_up(frame: ParquetFiles, tasks: list[_Task], add: _Adder[_Task, _Found]) -> list[_Found]:
    """Add up tasks of one privacy unit, batch by batch where every row is one.

    Where all are of one part of the data, files whose folders say another one are left out.
    """
    parts = {None if task.where is None else task.where.part for task in tasks}
    if len(parts) == 1 and (part := parts.pop()) is not None:
        frame = frame.in_folders(part)
    if tasks[0].unit:
        return _added_up_by_unit(frame, tasks, add)
    tables = frame.tables(_texts_of(tasks), frame.batch_rows)
    return add(map(frame.view, tables), tasks, None)


def _added_up_by_unit(
    frame: ParquetFiles, tasks: list[_Task], add: _Adder[_Task, _Found]
) -> list[_Found]:
    """Add up tasks that need all rows of a unit at once, one bucket of units after the other."""
    rows = sum(file.rows for file in frame._files)  # private: it decides on the way of reading only
    tables = frame.tables(_texts_of(tasks))
    begun = Begun(tables, _BYTES_IN_MEMORY if rows <= _BUCKET_ROWS else 0)
    if begun.whole:
        whole = [pa.concat_tables(begun.read)] if begun.read else []
        return add(map(frame.view, whole), tasks, None)
    first, *others = (task.where for task in tasks)
    where = first if all(other == first for other in others) else None
    remaining = tasks if where is None else [replace(task, where=None) for task in tasks]
    count, at_once = _plan(rows, rows * begun.row_bytes, tasks)
    parts = _read_buckets(frame, begun, tasks, where, count)
    ahead = parts if thread_count(rows) == 1 else one_ahead(parts)
    with split_tables(ahead, count, frame.spill_folder) as tables_of_units:
        shown = show_progress(tables_of_units, "adding up", count, shown=frame.progress)
        if at_once == 1:
            return add(map(frame.view, shown), remaining, None)
        found = dealt_to_threads(
            lambda tables: add(map(frame.view, tables), remaining, 1), shown, at_once
        )
        return [reduce(operator.add, totals) for totals in zip(*found, strict=True)]


def _plan(rows: int, size_of_all: float, tasks: list[_Task]) -> tuple[int, int]:
    """Choose how many buckets there are, and how many are added up at once, one per thread.

    Every thread has totals of its own: where these are large, all work on one bucket.
    """
    totals = sum(len(task.terms) * task.cells.size for task in tasks if isinstance(task, Task))
    few = totals <= _SMALL_BUCKET_ROWS
    size = min(_BUCKET_ROWS, _SMALL_BUCKET_ROWS) if few else _BUCKET_ROWS
    count = min(max(-(-rows // size), int(size_of_all / MOST_BYTES)), _MOST_BUCKETS)
    at_once = min(thread_count(rows), count * _ROWS_AT_ONCE // rows) if few else 1
    at_once = min(at_once, int(count * _BYTES_IN_MEMORY / max(size_of_all, 1)))
    return count, max(at_once, 1)


def _read_buckets(
    frame: ParquetFiles, begun: Begun, tasks: list[_Task], where: Condition | None, count: int
) -> Generator[tuple[Any, np.ndarray], None, None]:
    """Read tables with the buckets of their rows, -1 if it fails the condition or has no unit.

    Units that are integers get other numbers, if nothing but a unit is in their column: they are
    close together in a bucket, where they need not be looked for in a hash table.
    """
    unit, *others = map(str, tasks[0].unit)
    named = [label for task in tasks for label in task.columns]
    number = not others and named.count(unit) == len(tasks)
    without = tasks if where is None else [replace(task, where=None) for task in tasks]
    needed = _texts_of(without)
    rows = max(frame.batch_rows, count * _SLICE_ROWS)
    for table in put_together(begun.tables(), rows, MOST_BYTES):
        view = frame.view(table)
        dtype = lookup.native_dtype(view[unit].dtype)
        written = table.select(needed)
        if number and dtype is not None and dtype.kind in "iu":
            buckets, numbers = _dealt(*lookup.native(view[unit], dtype), count)
            written = written.set_column(needed.index(unit), unit, pa.array(numbers))
        else:
            columns = [view[label] for label in (unit, *others)]
            buckets = silent(unit_buckets)(columns, count)
            for column in columns:
                buckets[silent(values.missing)(column)] = -1
        if where is not None:
            buckets[~silent(filters.keep)(where, view)] = -1
        step = max(1, len(buckets) * MOST_BYTES // max(decoded_bytes(written), MOST_BYTES))
        for start in range(0, len(buckets), step):  # dictionaries are decoded where it is split
            yield written.slice(start, step), buckets[start : start + step]


def _dealt(
    units: np.ndarray, missing: np.ndarray | None, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Deal units to buckets, -1 if it is missing, with numbers that differ in a bucket.

    Units from a multiple of the count up to the next are each in another bucket: where the first
    is depends on a hash of the number that they have in common.
    """
    buckets, numbers = np.empty(len(units), np.uint64), np.empty(len(units), np.int64)
    for start in range(0, len(units), _BLOCK):
        rows = slice(start, start + _BLOCK)
        words = units[rows].astype(np.int64, copy=False).view(np.uint64)
        common = words // np.uint64(count)
        numbers[rows] = common
        places = unit_buckets([pd.Series(numbers[rows], copy=False)], count).view(np.uint64)
        places += words - common * np.uint64(count)
        np.minimum(places, places - np.uint64(count), out=buckets[rows])  # below zero is large
    found = buckets.view(np.int64)
    if missing is not None:
        found[missing] = -1
    return found, numbers


def _texts_of(tasks: Sequence[Task] | Sequence[LabelTask]) -> list[str]:
    """List the columns that tasks name; those of Parquet files are named by texts."""
    return [str(label) for label in labels_of(tasks)]
