"""The embedded engine: exact totals of a `pandas.DataFrame`, in one pass over blocks of rows."""

import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import compress, starmap
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from dpframe.columns import filters, pa
from dpframe.columns.identity import silent
from dpframe.columns.lookup import wants_many_rows
from dpframe.columns.values import public_type
from dpframe.context import Context
from dpframe.engines.base import Engine, check_labels
from dpframe.engines.batches import fitted_tables, is_kept, plain_array, plain_type
from dpframe.engines.blocks import Finders, FrameReader, RowBlock, cells_name
from dpframe.engines.labels import LabelCounts, label_counts
from dpframe.engines.sums import Prepared, Sums, sums_of
from dpframe.engines.threads import in_threads, keep_memory, thread_count
from dpframe.engines.units import Units
from dpframe.errors import STOPS, DeclarationError, DPFrameError, UnknownColumnError, a_type
from dpframe.provenance import is_marked, mark_frame
from dpframe.queries.tasks import LabelTask, Task
from dpframe.queries.where import Condition
from dpframe.sources.manifest import FileId, Manifest, check_read_once, identify_file
from dpframe.sources.text import Tally

# rows; what is made of a block stays in the processor's cache
_BLOCK = 1 << 17
# rows, where a column has labels that are dear to look up
_LARGE_BLOCK = 1 << 20
# of a block in which all sums are needed at once
_FEW_AMOUNTS = 1 << 23


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
    keep_memory()
    prepared = [Prepared(task, context) for task in tasks]
    finders: Finders = {}
    totals: list[np.ndarray] = []
    for part in parts:
        of_part = _totals_of_part(part, finders, prepared, threads)
        totals = list(map(np.add, totals, of_part)) if totals else of_part
    return totals or [np.zeros((len(task.terms), task.cells.size), np.int64) for task in tasks]


@silent
def _totals_of_part(
    part: pd.DataFrame, finders: Finders, tasks: Sequence[Prepared], threads: int | None
) -> list[np.ndarray]:
    axes = [axis for prepared in tasks for axis in prepared.task.groups.axes]
    with np.errstate(all="ignore"):
        source = FrameReader(part, axes, finders)
        return _Pass(source, tasks, threads or thread_count(len(part))).totals()


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

    def __init__(self, source: FrameReader, tasks: Sequence[Prepared], threads: int) -> None:
        self._source = source
        self._prepared = tasks
        self._tasks = [prepared.task for prepared in tasks]
        self._rows = len(source.frame)
        self._threads = threads
        self._size = self._block_size()

    def _block_size(self) -> int:
        """Choose how many rows a block has."""
        axes = [axis for task in self._tasks for axis in task.groups.axes]
        size = _BLOCK
        if any(wants_many_rows(axis, self._source.column(axis.column).dtype) for axis in axes):
            size = min(_LARGE_BLOCK, max(_BLOCK, -(-self._rows // self._threads)))
        sums = [len(sums_of(task)) for task in self._tasks if task.most is not None]
        return min(size, 1 + _FEW_AMOUNTS // max(sums, default=1))

    def totals(self) -> list[np.ndarray]:
        """Add up the terms of the tasks."""
        capped = [prepared for prepared in self._prepared if prepared.task.unit]
        if capped:
            self._cap(capped)
        amounts = sum(len(task.terms) * task.cells.size for task in self._tasks)
        # every thread has totals of its own
        threads = self._threads if amounts <= self._rows else 1
        blocks = iter(self._blocks())
        by_thread = in_threads(lambda _: self._some(blocks), range(threads), threads)
        return [reduce(np.add, parts) for parts in zip(*by_thread, strict=True)]

    def _some(self, blocks: Iterator[slice]) -> list[np.ndarray]:
        """Add up the blocks that no other thread takes."""
        totals = [Sums(self._source, prepared) for prepared in self._prepared]
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
        work = [find_units, find_cells]
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
                    prepared.capped, prepared.outside, task.caps, prepared.context, task.inner
                )
            prepared.chosen = chosen[same]
            if any(term.kind == "units" for term in task.terms):
                prepared.first = units[task.unit].first(chosen[same])

    def _find(self, capped: list[Prepared], rows: slice) -> None:
        """Find the cells of a block for some tasks."""
        block = RowBlock(self._source, rows)
        for prepared in capped:
            prepared.capped[rows] = prepared.find(block)


class RowSource:
    """Where the rows of a scan come from; it gives them anew whenever it is asked."""

    door: str
    """What reads it."""
    schema: Any
    """Labels and plain Arrow types of the columns, in order."""
    attrs: dict[str, Any]
    """What pandas kept about the frames that the rows were written from."""
    files: tuple[FileId, ...] | None = None
    """The files that it reads; `None`: rows in memory, or nobody can tell."""
    opaque = False
    """Whether nobody can tell what it reads."""
    text: str | None = None
    """How cells of text are read; `None`: it holds values."""
    folders: frozenset[str] = frozenset()
    """Columns that names of folders say: a number or a text, value by value."""
    tally = Tally()
    """What the last reading left out; private."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known; private, it decides on ways of reading."""
        return None

    def refresh(self) -> None:
        """Look again what columns there are. Raise a DeclarationError where it cannot be read."""

    def check(self, labels: Sequence[str]) -> None:
        """Check that every part of the source has some columns, in types that can be joined."""

    def where(self, conditions: Sequence[Condition | None]) -> Self:
        """Leave out what is known to have no row that satisfies any of some conditions."""
        return self

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns, as `pyarrow.Table`s of no more than some rows, or bytes."""
        raise NotImplementedError

    def fitted(
        self,
        read: Callable[[Sequence[str]], Iterable[Any]],
        labels: Sequence[str],
        rows: int,
        cast: Callable[[Any, Any], Any] = plain_array,
    ) -> Iterator[Any]:
        """Fit record batches of some columns; of none, of the first, so that rows are counted."""
        labels = labels or self.schema.names[:1]
        schema = pa.schema([self.schema.field(label) for label in labels])
        yield from fitted_tables(read(labels), schema, rows, cast)


class RowsInMemory(RowSource):
    """Rows of a source that were read before: nothing fails where they are read again.

    Parameters
    ----------
    source
        Where they are from.
    table
        The rows.
    """

    def __init__(self, source: RowSource, table: Any) -> None:
        self.door, self.files, self.opaque = source.door, source.files, source.opaque
        self.text, self.folders, self.attrs = source.text, source.folders, source.attrs
        self.schema, self.tally, self._table = table.schema, source.tally, table

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._table.num_rows)

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Take some columns."""
        yield from self.fitted(lambda names: self._table.select(names).to_batches(), labels, rows)


class FileSource(RowSource):
    """Files, which folders may say something of; those that no row can be of are not read."""

    parts: Sequence[Any]
    """The files that are read: their paths, file systems, and what folders say of them."""

    def refresh(self) -> None:
        """Look whether every file is there once."""
        places = [(part.path, part.filesystem) for part in self.parts if part.path]
        named = check_readable(lambda: list(starmap(identify_file, places)), self)
        self.files = check_read_once(named, "source")

    @property
    def named(self) -> Collection[str]:
        """Columns that folders say of every file."""
        said = [{*part.folders} for part in self.parts]
        return {*self.schema.names}.intersection(*said) if said else ()

    def said(self, label: str) -> Any:
        """List what folders say of each file, as it is read in its rows."""
        cells = [part.folders[label] for part in self.parts]
        column = pa.chunked_array([cells], self.schema.field(label).type)
        return pd.arrays.ArrowExtensionArray(column)

    def where(self, conditions: Sequence[Condition | None]) -> Self:
        """Leave out files whose folders say that no row satisfies any of some conditions."""
        demands = [None if where is None else where.within(self.named) for where in conditions]
        needed = [demand for demand in demands if demand is not None]
        if len(needed) < len(demands):
            return self
        labels = {label for demand in needed for label in demand.columns}
        frame = pd.DataFrame({label: self.said(label) for label in labels})
        kept = np.logical_or.reduce([filters.keep(demand, frame) for demand in needed])
        chosen = object.__new__(type(self))
        vars(chosen).update(vars(self), parts=[*compress(self.parts, kept)])
        return chosen


class Fragment(NamedTuple):
    """A part of a dataset of pyarrow.

    Parameters
    ----------
    fragment
        The part.
    folders
        What folders say of it, as scalars of Arrow by label.
    """

    fragment: Any
    folders: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Where it is; empty: in memory."""
        return getattr(self.fragment, "path", "")

    @property
    def filesystem(self) -> Any:
        """The file system of a file."""
        return self.fragment.filesystem


def fragments_of(dataset: Any, formats: Collection[str]) -> list[Fragment]:
    """List the parts of a dataset whose files are of some formats, if they are files."""
    # slow to import, and not always needed
    import pyarrow.dataset as ds

    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # pyarrow lists none of a filtered dataset
        way_out = "Scan the whole dataset, and pass where= to the queries."
        raise refusal(dataset, "must be no filtered dataset", way_out) from None
    formats_there = {part.format.default_extname for part in fragments if hasattr(part, "format")}
    if formats_there - {*formats}:
        rule = "must be no dataset of files whose types are guessed from cells, or are not known"
        raise refusal(dataset, rule, "Make a dataset of Parquet, Feather, ORC or CSV files alone.")
    return [Fragment(part, ds.get_partition_keys(part.partition_expression)) for part in fragments]


def check_columns(
    path: str, held: Any, folders: Collection[str], labels: Iterable[str], schema: Any
) -> None:
    """Check that a file has some columns once each, in types of which every value is kept.

    Parameters
    ----------
    path
        The file.
    held
        Labels and types in the file.
    folders
        What its folders say.
    labels
        The columns.
    schema
        The types that they are read as.

    Raises
    ------
    UnknownColumnError
        If it lacks a column: its rows would be lost without a word. Or if it has two of a label.
    DeclarationError
        If a type differs, or the file holds a column that its folder names, too.
    """
    for label in labels:
        places = held.get_all_field_indices(label)
        if places and label in folders:
            text = f"{label!r} is in {path}, and its folder names it, too: readers follow one or"
            hint = "the other. Write files without the column, or folders of other names."
            raise DeclarationError(f"{text} {hint}", label=label)
        if not places and label not in folders:
            text = (
                f"{path} has no column {label!r}, which other files have: its rows would be lost."
            )
            hint = "Write the column there (null where it is not known), or leave the file out."
            raise UnknownColumnError(f"{text} {hint}", label=label)
        if len(places) > 1:
            text = f"{path} has {label!r} more than once."
            hint = "Write each column under a label of its own."
            raise UnknownColumnError(f"{text} {hint}", label=label)
        kind = schema.field(label).type
        if places and not is_kept(plain_type(held.field(places[0]).type), kind):
            rule = "all files must have the same types of columns"
            differ = f"{label!r} is {held.field(places[0]).type} in {path}, and {kind} in others"
            raise DeclarationError(f"{rule}: {differ}. Write them with one schema.", label=label)


def refusal(source: object, rule: str, hint: str = "") -> DeclarationError:
    """Refuse a source."""
    text = f"source {rule}, got {a_type(source)}. {hint}".rstrip()
    return DeclarationError(text, parameter="source")


def check_readable(read: Callable[[], Any], source: object) -> Any:
    """Look at a source before anything is charged; what it raises is the cause of a refusal."""
    try:
        return read()
    except (*STOPS, DPFrameError):
        raise
    except BaseException as error:  # Rust's panics are no exceptions
        raise refusal(source, "must be readable", "Its own error is above.") from error


def attrs_of(metadata: Any) -> dict[str, Any]:
    """Return the attrs that pandas or pyarrow wrote into a schema; a ValueError if damaged."""
    metadata = metadata or {}
    try:
        attrs = json.loads(metadata.get(b"PANDAS_ATTRS", b"{}"))
        written = json.loads(metadata.get(b"pandas", b"{}"))
    except RecursionError:
        raise ValueError("attrs are nested too deeply") from None
    more = written.get("attributes") if isinstance(written, dict) else None
    if not isinstance(attrs, dict):
        raise ValueError("attrs are not an object")  # noqa: TRY004  # of a file, not an argument
    return {**(more if isinstance(more, dict) else {}), **attrs}


def folder_values(column: Any) -> pd.Categorical:
    """View the values in names of folders as numbers where they are, and else as texts."""
    encoded = column.combine_chunks().dictionary_encode()
    cells = [_number_or_text(text) for text in encoded.dictionary.to_pylist()]
    places = {value: place for place, value in enumerate(dict.fromkeys(cells))}
    table = np.array([*map(places.__getitem__, cells), -1])
    codes = table[encoded.indices.fill_null(len(cells)).to_numpy()]
    return pd.Categorical.from_codes(codes, pd.Index(list(places), dtype=object))


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text
