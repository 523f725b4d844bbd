"""Sources of batches of Arrow that can be read again: datasets, tables, streams, lazy frames."""

import copy
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeAlias

import pandas as pd

from dpframe.columns import pa, require_arrow
from dpframe.engines.batches import plain_type
from dpframe.engines.pandas import (
    FileSource,
    RowSource,
    attrs_of,
    check_columns,
    check_readable,
    fragments_of,
    refusal,
)
from dpframe.engines.text_files import text_dataset
from dpframe.engines.threads import handed_over
from dpframe.ledger.platform import Deadline
from dpframe.sources.manifest import FileId, check_read_once, identify_file

# files whose reading has begun, beside the one whose rows are added up
_FRAGMENTS_AHEAD = 8
# formats of files that hold their types
_TYPED = frozenset({"arrow", "feather", "orc", "parquet"})


def source_of(source: Any) -> RowSource:
    """Return what reads an object that a scan was made of.

    Raises
    ------
    DeclarationError
        If it cannot be read, or only once.
    DPFrameError
        If pyarrow is not installed.
    """
    require_arrow("dpf.scan")
    # slow to import, and not always needed
    import pyarrow.dataset as ds

    _refuse_others(source)
    if isinstance(source, ds.Dataset):
        is_csv = isinstance(getattr(source, "format", None), ds.CsvFileFormat)
        return text_dataset(source) if is_csv else _Dataset(source)
    if isinstance(source, pa.Table | pa.RecordBatch):
        table = source if isinstance(source, pa.Table) else pa.Table.from_batches([source])
        return _readers(source, table.to_reader)
    if _is_of(source, "polars", "LazyFrame"):
        return _LazyFrame(source, *_of_lazy_frame(source))
    if _is_of(source, "duckdb", "DuckDBPyRelation"):
        return _Stream(source, *_of_relation(source))
    if hasattr(source, "__arrow_c_stream__"):
        return _readers(source, lambda: pa.RecordBatchReader.from_stream(source))
    if callable(source):
        return _readers(source, lambda: _reader(source()))
    raise refusal(source, _KINDS)


def _refuse_others(source: object) -> None:
    """Refuse what has a better way to be read, and what can be read once only."""
    if isinstance(source, str | os.PathLike):
        rule = "must hold rows, not name them"
        hint = "dpf.scan_parquet(path) opens Parquet files, pyarrow.dataset.dataset(path) others."
    elif isinstance(source, pd.DataFrame):
        rule, hint = "must be no frame of pandas", "It has .dp of its own."
    elif hasattr(type(source), "__dask_graph__"):
        rule = "must be no collection of Dask"
        hint = "It has .dp of its own, after `import dpframe.dask`."
    elif isinstance(source, pa.RecordBatchReader) or hasattr(type(source), "__next__"):
        rule = "must give its rows again for every release"
        hint = "It can be read only once: pass a function that makes one, such as lambda: reader()."
    else:
        return
    raise refusal(source, rule, hint)


_KINDS = (
    "must be a pyarrow dataset or table, a frame of Polars, a relation of DuckDB, a function that "
    "makes a RecordBatchReader, or have __arrow_c_stream__"
)


def _is_of(thing: object, package: str, name: str) -> bool:
    """Whether an object is of a class of a package, which is imported where that is so."""
    kind = getattr(sys.modules.get(package), name, None)
    return isinstance(kind, type) and isinstance(thing, kind)


# Streams --------------------------------------------------------------------------------------


_Look: TypeAlias = Callable[[], Any]
"""Returns the schema."""
_Read: TypeAlias = Callable[[Sequence[str], int], Iterable[Any]]
"""Reads some columns, as batches of about some rows."""


class _Stream(RowSource):
    """An object of which every reading gives the same columns.

    Parameters
    ----------
    source
        The object.
    look
        Returns the schema.
    read
        Reads some columns, as batches of about some rows.
    """

    def __init__(self, source: Any, look: _Look, read: _Read) -> None:
        self._given, self._look, self._read = source, look, read
        self.door = f"{type(source).__module__}.{type(source).__qualname__}"
        in_memory = isinstance(source, pa.Table | pa.RecordBatch)
        self.opaque = not (in_memory or _is_of(source, "polars", "DataFrame"))

    def refresh(self) -> None:
        """Look at the schema."""
        self.schema, self.attrs = _looked_at(self._look, self._given)

    @property
    def rows(self) -> int | None:
        """How many rows a table has; of others it is not known before all rows are read."""
        in_memory = isinstance(self._given, pa.Table | pa.RecordBatch)
        return self._given.num_rows if in_memory else None

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns."""
        return self.fitted(lambda names: self._read(names, rows), labels, rows)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for."""
        return source_of, (self._given,)

    def __repr__(self) -> str:
        """Show of what kind it is; neither rows nor how many there are."""
        return self.door


def _looked_at(look: Callable[[], Any], source: object) -> tuple[Any, dict[str, Any]]:
    """Look at the schema of a source, and at the attrs in it."""
    schema = check_readable(look, source)
    attrs = check_readable(lambda: attrs_of(schema.metadata), source)
    return pa.schema([(field.name, plain_type(field.type)) for field in schema]), attrs


class _LazyFrame(_Stream):
    """A lazy frame of Polars, whose plan lists files, of which two at once are shown."""

    def refresh(self) -> None:
        """Look at the schema, and at the files."""
        super().refresh()
        plan = check_readable(lambda: self._given.explain(optimized=False), self._given)
        listed, complete = _scanned_files(plan)
        for files in listed:
            check_read_once(files, "source")
        self.files = tuple(chain(*listed)) if complete else None
        self.opaque = not complete


def _scanned_files(plan: str) -> tuple[list[list[FileId]], bool]:
    """Read the files that a plan of Polars names, and tell whether it names all.

    Each node begins a line. A file may be joined with itself; what is put together may have it
    once. What is no file is not looked at: a text with lines of its own may look like a node.
    """
    named: dict[int, list[FileId]] = {}
    complete = bool(_SCAN.search(plan))
    for node in _SCAN.finditer(plan):
        shown = _CUT.sub("]", node[0])
        files = _named_files(shown.partition("SCAN ")[2])
        complete = complete and files is not None and shown == node[0]
        named[node.start()] = files or []
    if not re.search(r"^ *[A-Z ]*\bJOIN\b.*:$", plan, re.MULTILINE):
        return [[*chain(*named.values())]], complete
    listed = [*named.values()]
    for union in _UNION.finditer(plan):
        ends = [part.start() for part in re.finditer(rf"^{union[1]}  PLAN", union[0], re.MULTILINE)]
        parts = pairwise([*(union.start() + end for end in ends), union.end()])
        files_of = ({f.place: f for at in named if a < at < b for f in named[at]} for a, b in parts)
        listed.append([file for files in files_of for file in files.values()])
    return listed, complete


_SCAN = re.compile(r"^ *\w+ SCAN\b.*", re.MULTILINE)
_UNION = re.compile(r"^( *)UNION\b.*\n(?:\1 .*\n)*", re.MULTILINE)
_CUT = re.compile(r", \.\.\. \d+ other sources?\]$")
"""How Polars ends a list of three files or more, of which it shows the first."""


def _named_files(listed: str) -> list[FileId] | None:
    """Read the one or two files that Polars shows; a comma may be in a name."""
    inner = listed.removeprefix("[").removesuffix("]")
    cut = inner.split(", ")
    ways = [[inner], *([", ".join(cut[:n]), ", ".join(cut[n:])] for n in range(1, len(cut)))]
    readings = [paths for paths in ways if all(map(os.path.isfile, paths))]
    return [*map(identify_file, readings[0])] if len(readings) == 1 else None


def _readers(source: object, make: Callable[[], Any]) -> _Stream:
    """Read by a new reader each time; two are made to see that they are."""
    first, second = (check_readable(make, source) for _ in range(2))
    if first is second or first.schema != second.schema:
        raise refusal(source, "must give a new reader of the same columns at each call")
    first.close()
    second.close()

    def look() -> Any:
        with closing(make()) as reader:
            return reader.schema

    def read(labels: Sequence[str], _: int) -> Iterator[Any]:
        with closing(make()) as reader:
            for batch in reader:
                yield batch.select(labels)

    return _Stream(source, look, read)


def _reader(rows: Any) -> Any:
    """Return a reader of what a function has made."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    raise refusal(rows, "must be a function that returns a pyarrow.RecordBatchReader")


def _of_lazy_frame(frame: Any) -> tuple[_Look, _Read]:
    """Look at a lazy frame of Polars, computing no row, and read it by the streaming engine."""
    polars: Any = sys.modules["polars"]  # it has made the frame

    def look() -> Any:
        return polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def read(labels: Sequence[str], rows: int) -> Iterator[Any]:
        columns = frame.select(polars.selectors.by_name(*labels))
        # `collect_batches` takes a crash of a thread of Polars for the end of the rows
        sink = partial(columns.sink_batches, chunk_size=rows, engine="streaming")
        for batch in handed_over(sink):
            yield from batch.to_arrow().to_batches()

    return look, read


# of DuckDB from 2.0 on; earlier ones run several queries
_IN_USE = "ResourceInUseException"
# seconds between two attempts
_PAUSE = 0.05


def _of_relation(relation: Any) -> tuple[_Look, _Read]:
    """Look at a relation of DuckDB, and read it, which runs its query anew."""

    def look() -> Any:
        with closing(_opened_stream(relation.limit(0))) as reader:
            return reader.schema

    def read(labels: Sequence[str], _: int) -> Iterator[Any]:
        quoted = (label.replace('"', '""') for label in labels)
        columns = relation.project(", ".join(f'"{label}"' for label in quoted))

        def hand_over(take: Callable[[Any], bool]) -> None:
            with closing(_opened_stream(columns)) as reader:
                for batch in reader:
                    if take(batch):
                        return

        yield from handed_over(hand_over)

    return look, read


def _opened_stream(relation: Any) -> Any:
    """Run a query of DuckDB, once no other one is open on its connection, which it cannot leave.

    A cursor of our own would not see temporary tables, or frames that the relation is made of.
    """
    deadline = Deadline.begin()
    while True:
        try:
            return pa.RecordBatchReader.from_stream(relation)
        except Exception as error:
            if type(error).__name__ != _IN_USE or deadline.is_over:
                raise
        deadline.pause(_PAUSE)


# Datasets -------------------------------------------------------------------------------------


class _Dataset(FileSource):
    """A dataset of pyarrow, read by its scanner, several files ahead; its schema never changes."""

    def __init__(self, dataset: Any) -> None:
        self._given = dataset
        self.parts = fragments_of(dataset, _TYPED)
        self.door = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
        self._seen = _state_of(dataset)

    def refresh(self) -> None:
        """Look at the schema, at the names of folders, and whether files are as they were."""
        self.schema, self.attrs = _looked_at(lambda: self._given.schema, self._given)
        if check_readable(partial(_state_of, self._given), self._given) != self._seen:
            rule = "must hold the files that it was scanned with, which have changed since"
            raise refusal(self._given, rule, "Make the dataset and the scan anew.")
        super().refresh()

    def check(self, labels: Sequence[str]) -> None:
        """Check that every file has some columns, in types of which every value is kept."""
        for part in self.parts:
            inside = check_readable(partial(getattr, part.fragment, "physical_schema"), self._given)
            path = part.path or "a part of the dataset"
            check_columns(path, inside, part.folders, labels, self.schema)

    @property
    def named(self) -> Collection[str]:
        """Columns that folders say of every file, where the files can be chosen."""
        # slow to import, and not always needed
        import pyarrow.dataset as ds

        return super().named if isinstance(self._given, ds.FileSystemDataset) else ()

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns of all files, in their order."""
        yield from self.fitted(lambda names: self._scan(names, rows), labels, rows)

    def _scan(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        dataset = self._given
        if self.named:
            files = [part.fragment for part in self.parts]
            dataset = type(dataset)(files, dataset.schema, dataset.format, dataset.filesystem)
        scanner = dataset.scanner(
            columns=labels,
            batch_size=rows,
            fragment_readahead=_FRAGMENTS_AHEAD,
            batch_readahead=4,
            fragment_scan_options=_with_checksums(dataset),
        )
        with closing(scanner.to_reader()) as reader:
            yield from reader

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for."""
        return source_of, (self._given,)

    def __repr__(self) -> str:
        """Show of what kind it is; neither rows nor how many there are."""
        return f"pyarrow.dataset.{type(self._given).__name__}"


def _with_checksums(dataset: Any) -> Any:
    """Return how Parquet files of a dataset are read, but with checksums of pages verified."""
    # several datasets as one have none
    form = getattr(dataset, "format", None)
    if form is None or form.default_extname != "parquet":
        return None
    default = form.default_fragment_scan_options
    options = copy.copy(default)
    options.page_checksum_verification = True
    # which no copy has
    for name in ("decryption_properties", "parquet_decryption_config"):
        if getattr(default, name, None) is not None:
            setattr(options, name, getattr(default, name))
    return options


def _state_of(dataset: Any) -> list[tuple[int | None, int | None]]:
    """Return sizes of the files of which a dataset remembers something, and when they were written.

    Not of several datasets as one, nor through file systems that are asked file by file.
    """
    form = getattr(dataset, "format", None)
    if form is None or form.default_extname == "csv":
        return []
    filesystem = dataset.filesystem
    answers = not filesystem.type_name.startswith("py::")
    infos = filesystem.get_file_info(dataset.files) if answers else []
    return [(info.size, info.mtime_ns) for info in infos]
