"""Private frames that are read in batches, and their engine: exact totals in bounded memory.

Without a privacy unit, rows are added up batch by batch. With one, caps need all rows of a unit at
once: one pass splits the rows by unit into temporary files, and these are added up one at a time.
"""

import operator
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from dpframe.columns import filters, lookup, pa, values
from dpframe.columns.buckets import unit_buckets
from dpframe.columns.identity import silent
from dpframe.context import Context
from dpframe.declaration.kinds import FOLDERS
from dpframe.engines.base import UNREAD, Engine, check_gathered, check_labels
from dpframe.engines.batches import Begun, decoded_bytes, put_together, split_tables
from dpframe.engines.labels import LabelCounts, label_counts
from dpframe.engines.pandas import (
    RowsInMemory,
    RowSource,
    folder_values,
    group_by_unit,
    labels_of,
    totals_of,
)
from dpframe.engines.parquet_files import ParquetFiles
from dpframe.engines.threads import dealt_to_threads, keep_memory, one_ahead, thread_count
from dpframe.errors import DeclarationError, TemporaryError
from dpframe.ledger import platform
from dpframe.progress import check_progress, show_progress
from dpframe.provenance import is_marked
from dpframe.queries.tasks import LabelTask, Task
from dpframe.queries.where import Condition
from dpframe.sources.manifest import Manifest

_Task = TypeVar("_Task", Task, LabelTask)
_Found = TypeVar("_Found")
_Adder: TypeAlias = Callable[
    [Iterable[pd.DataFrame], Sequence[_Task], Context, int | None], list[_Found]
]

BATCH_ROWS = 1 << 19
"""Rows that are read at once."""

MOST_BYTES = 1 << 28
"""Of what is put together at once."""

_OPTIONS = ("batch_rows", "spill_folder", "progress")
# of a batch
_MOST_ROWS = 2**31 - 1
# rows; what is made of them stays in the processor's cache
_BLOCK = 1 << 16
# rows whose units are capped at once in memory
_BUCKET_ROWS = 1 << 21
# where every thread has a bucket
_SMALL_BUCKET_ROWS = 1 << 19
# where it is not known how many there are
_ASSUMED_ROWS = 1 << 26
# in buckets that threads add up at the same time, about
_ROWS_AT_ONCE = 1 << 22
# a bucket is an open file
_MOST_BUCKETS = 500
# one file in so many of those that may be opened is that of a bucket
_OTHER_FILES = 2
# rows that a bucket is to get at once, or more
_SLICE_ROWS = 1 << 12
# of rows that are added up at once, about
_BYTES_IN_MEMORY = 1 << 29


class ScannedFrame:
    """A private frame whose rows are read anew, in batches, whenever it is totaled.

    Parameters
    ----------
    source
        Where the rows come from.
    batch_rows
        How many rows are read at once.
    spill_folder
        Where rows are kept for a while if there is a privacy unit; `None`: where the system keeps
        temporary files.
    progress
        Whether to show a bar while rows are read; `None`: where it takes long.

    Raises
    ------
    DeclarationError
        If the source cannot be read.
    DPFrameError
        If tqdm is not installed for `progress=True`.
    """

    def __init__(
        self,
        source: RowSource,
        *,
        batch_rows: int = BATCH_ROWS,
        spill_folder: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> None:
        self.source = source
        self.batch_rows = _checked_rows(batch_rows)
        self.spill_folder = _checked_folder(spill_folder)
        check_progress(progress)
        self.progress = progress
        self.refresh()

    def refresh(self) -> None:
        """Look again what columns there are, and whether rows can be written."""
        self.source.refresh()
        _checked_folder(self.spill_folder)

    def check(self, labels: Iterable[Hashable]) -> None:
        """Check that every label names exactly one column, which every part of the source has."""
        named = labels if isinstance(labels, Mapping) else list(labels)
        check_labels(self.columns, named)
        self.source.check([str(label) for label in named])

    def check_room(self, labels: Iterable[str], conditions: Sequence[Condition | None]) -> None:
        """Check that the disk has room for the rows of a release with a privacy unit.

        What is compared is how many bytes the columns have in the files, rounded down to a power of
        two: one row more or less decides on that in the rarest cases. Files that are compressed
        well need more.

        Raises
        ------
        TemporaryError
            If it has not.
        """
        source = self.source.where(conditions)
        if (source.rows or 0) <= _BUCKET_ROWS or not isinstance(source, ParquetFiles):
            return
        folder = self.spill_folder or tempfile.gettempdir()
        needed = source.stored_bytes([str(label) for label in labels])
        if shutil.disk_usage(folder).free < 1 << max(needed.bit_length() - 1, 0):
            text = f"the disk of {folder} has too little room for rows that a release keeps there:"
            raise TemporaryError(f"{text} make room, or name another folder with spill_folder.")

    @property
    def columns(self) -> list[str]:
        """The labels of the columns, in order."""
        return list(self.source.schema.names)

    @property
    def types(self) -> dict[str, Any]:
        """The Arrow types of the columns, by label, but for those of folders."""
        named = zip(self.columns, self.source.schema.types, strict=True)
        return {name: kind for name, kind in named if name not in self.source.folders}

    def where(self, conditions: Sequence[Condition | None]) -> Self:
        """Return the same without files in which no row can satisfy any of some conditions."""
        return self._of(self.source.where(conditions))

    def in_memory(self, labels: Sequence[str]) -> Self:
        """Read all rows of some columns now: what is damaged is known before a charge."""
        schema = pa.schema([self.source.schema.field(label) for label in labels])
        table = pa.concat_tables([schema.empty_table(), *self._batches(labels)])
        table.validate(full=True)
        return self._of(RowsInMemory(self.source, table))

    def without_rows(self) -> Self:
        """Return the same without any row, on which a release can be tried."""
        return self._of(RowsInMemory(self.source, self.source.schema.empty_table()))

    def _of(self, source: RowSource) -> Self:
        """Return the same of another source, which is not declared."""
        frame = object.__new__(type(self))
        vars(frame).update({name: getattr(self, name) for name in _OPTIONS}, source=source)
        return frame

    def tables(self, labels: Sequence[str], rows: int = 1) -> Iterator[Any]:
        """Read some columns, as `pyarrow.Table`s of some number of rows or more where possible."""
        read = self._batches(labels)
        # of no labels nothing but a number of rows, that is lost when tables are put together
        yield from put_together(read, rows, MOST_BYTES) if labels else read

    def view(self, table: Any) -> pd.DataFrame:
        """View a table as a frame, whose dtypes depend on the types of the columns alone."""
        columns = {
            name: folder_values(column)
            if name in self.source.folders
            else pd.arrays.ArrowExtensionArray(column)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for: like a copy of a frame, what comes out is not declared."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return partial(type(self), **options), (self.source,)

    def __repr__(self) -> str:
        """Show source and columns; neither rows nor how many there are."""
        return f"{type(self).__name__}({self.source}, columns={self.columns})"

    def _batches(self, labels: Sequence[str]) -> Iterator[Any]:
        """Read tables of no more than so many rows, and show how far that is, where it is known."""
        batches, rows = self.source.batches(labels, self.batch_rows), self.source.rows
        shown = self.progress if rows is not None else False
        size = operator.attrgetter("num_rows")
        yield from show_progress(batches, "reading", rows or 0, shown=shown, size=size)


def _checked_rows(rows: Any) -> int:
    """Check a number of rows."""
    is_whole = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
    if not is_whole or not 1 <= rows <= _MOST_ROWS:
        raise DeclarationError.about("batch_rows", "must be an integer from 1 to 2**31 - 1", rows)
    return int(rows)


def _checked_folder(folder: Any) -> str | None:
    """Check that a folder is there and can be written to."""
    if folder is None:
        return None
    if isinstance(folder, str | os.PathLike) and os.path.isdir(folder):
        if os.access(folder, os.W_OK | os.X_OK):
            return os.path.abspath(folder)
    rule = "must be a folder that exists and can be written to"
    raise DeclarationError.about("spill_folder", rule, folder)


class ScanEngine(Engine):
    """Engine of `ScannedFrame`."""

    def handles(self, frame: object) -> bool:
        """Tell whether the frame is read in batches."""
        return isinstance(frame, ScannedFrame)

    def check(self, frame: ScannedFrame, columns: Iterable[Hashable]) -> None:
        """Check that every label names exactly one column of the source as it is now."""
        frame.refresh()
        frame.check(columns)

    def manifest(self, frame: ScannedFrame) -> Manifest:
        """Say which files are read, and name all types; what folders say is read value by value."""
        source = frame.source
        types: dict[Hashable, str | None] = dict.fromkeys(frame.columns, FOLDERS)
        types |= {label: values.arrow_type(kind) for label, kind in frame.types.items()}
        return Manifest(source.door, types, source.files, source.opaque, source.text)

    def mark(self, frame: ScannedFrame) -> None:
        """Leave no mark: nothing is written to a source."""

    def is_derived(self, frame: ScannedFrame) -> bool:
        """Tell whether rows were written from a declared frame of pandas."""
        return is_marked(frame.source.attrs)

    def attrs(self, frame: ScannedFrame) -> Mapping[Any, Any]:
        """Return the `attrs` that pandas has written beside the rows."""
        return frame.source.attrs

    def gather(self, frame: ScannedFrame, labels: Sequence[Hashable]) -> pd.DataFrame:
        """Read all rows of some columns."""
        self.check(frame, labels)
        check_gathered(frame.source.rows or 0)
        # rows of none get lost
        named = [str(label) for label in labels] or frame.columns[:1]
        tables: list[Any] = []
        for table in frame.tables(named):
            tables.append(table)
            check_gathered(sum(read.num_rows for read in tables))
        rows = frame.view(pa.concat_tables(tables)) if tables else pd.DataFrame(columns=named)
        rows.attrs[UNREAD] = str(frame.source.tally)
        return rows

    def totals(
        self, frame: ScannedFrame, tasks: Sequence[Task], context: Context
    ) -> list[np.ndarray]:
        """Add up all terms of the tasks in every cell: int64 of shape (terms, cells) per task."""
        self.check(frame, labels_of(tasks))
        grouped = group_by_unit(tasks).items()
        totals = {unit: iter(_added_up(frame, some, totals_of, context)) for unit, some in grouped}
        return [next(totals[task.unit]) for task in tasks]

    def labels(self, frame: ScannedFrame, task: LabelTask, context: Context) -> LabelCounts:
        """Count units by label."""
        self.check(frame, task.columns)
        return _added_up(frame, [task], label_counts, context)[0]


def _added_up(
    frame: ScannedFrame, tasks: list[_Task], add: _Adder[_Task, _Found], context: Context
) -> list[_Found]:
    """Add up tasks of one privacy unit, batch by batch where every row is one."""
    keep_memory()
    frame = frame.where([condition for task in tasks for condition in _conditions_of(task)])
    if tasks[0].unit:
        return _added_up_by_unit(frame, tasks, add, context)
    tables = frame.tables(_texts_of(tasks), frame.batch_rows)
    return add(map(frame.view, tables), tasks, context, None)


def _conditions_of(task: Task | LabelTask) -> list[Condition | None]:
    """List conditions of which every row that matters satisfies one; `None` is always satisfied.

    A cap keeps some rows of a unit, also in place of those that a term leaves out.
    """
    if task.where is None and isinstance(task, Task) and not task.unit:
        return [term.where for term in task.terms]
    return [task.where]


def _added_up_by_unit(
    frame: ScannedFrame, tasks: list[_Task], add: _Adder[_Task, _Found], context: Context
) -> list[_Found]:
    """Add up tasks that need all rows of a unit at once, one bucket of units after the other."""
    # private: it decides on the way of reading only
    rows = frame.source.rows
    tables = frame.tables(_texts_of(tasks))
    some = rows is None or rows <= _BUCKET_ROWS
    begun = Begun(tables, _BYTES_IN_MEMORY if some else 0, _BUCKET_ROWS)
    if begun.whole:
        together = [pa.concat_tables(begun.read)] if begun.read else []
        return add(map(frame.view, together), tasks, context, None)
    remaining, where = tasks, None
    if len({task.where for task in tasks}) == 1:
        # rows that fail the only condition are not written
        where = tasks[0].where
        remaining = [replace(task, where=None) for task in tasks]
    rows = _ASSUMED_ROWS if rows is None else rows
    row_bytes = begun.row_bytes
    count = _count_buckets(rows, rows * row_bytes, tasks)
    parts = _read_buckets(frame, begun, remaining, where, count)
    ahead = parts if thread_count(rows) == 1 else one_ahead(parts)
    with split_tables(ahead, count, frame.spill_folder) as tables_of_units:
        at_once = _count_threads(begun.rows, begun.rows * row_bytes, tasks, count)
        shown = show_progress(tables_of_units, "adding up", count, shown=frame.progress)
        if at_once == 1:
            return add(map(frame.view, shown), remaining, context, None)
        by_thread = dealt_to_threads(
            lambda tables: add(map(frame.view, tables), remaining, context, 1), shown, at_once
        )
        return [reduce(operator.add, totals) for totals in zip(*by_thread, strict=True)]


def _has_few_totals(tasks: list[_Task]) -> bool:
    """Whether every thread can have totals of its own; else all work on one bucket."""
    totals = sum(len(task.terms) * task.cells.size for task in tasks if isinstance(task, Task))
    return totals <= _SMALL_BUCKET_ROWS


def _count_buckets(rows: int, size_of_all: float, tasks: list[_Task]) -> int:
    """Choose how many buckets there are."""
    few = _has_few_totals(tasks)
    size = min(_BUCKET_ROWS, _SMALL_BUCKET_ROWS) if few else _BUCKET_ROWS
    needed = max(-(-rows // size), int(size_of_all / MOST_BYTES))
    left = platform.HERE.files_left()
    most = _MOST_BUCKETS if left is None else min(_MOST_BUCKETS, left // _OTHER_FILES)
    return max(1, min(needed, most))


def _count_threads(rows: int, size_of_all: float, tasks: list[_Task], count: int) -> int:
    """Choose how many buckets are added up at once, one per thread."""
    if not _has_few_totals(tasks):
        return 1
    at_once = min(thread_count(rows), count * _ROWS_AT_ONCE // rows)
    return max(min(at_once, int(count * _BYTES_IN_MEMORY / max(size_of_all, 1))), 1)


def _read_buckets(
    frame: ScannedFrame, begun: Begun, tasks: list[_Task], where: Condition | None, count: int
) -> Generator[tuple[Any, np.ndarray], None, None]:
    """Read tables with the buckets of their rows, -1 if it fails the condition or has no unit.

    Units that are integers get other numbers, if nothing but a unit is in their column: they are
    close together in a bucket, where they need not be looked for in a hash table.
    """
    unit, *others = map(str, tasks[0].unit)
    named = [label for task in tasks for label in task.columns]
    number = not others and named.count(unit) == len(tasks)
    needed = _texts_of(tasks)
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
        # dictionaries are decoded where it is split
        for start in range(0, len(buckets), step):
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
        # below zero is large
        np.minimum(places, places - np.uint64(count), out=buckets[rows])
    dealt = buckets.view(np.int64)
    if missing is not None:
        dealt[missing] = -1
    return dealt, numbers


def _texts_of(tasks: Sequence[Task] | Sequence[LabelTask]) -> list[str]:
    """List the columns that tasks name; those of Arrow are named by texts."""
    return [str(label) for label in labels_of(tasks)]
