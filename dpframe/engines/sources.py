"""Sources of batches of Arrow that can be read again: datasets, tables, streams, lazy frames."""

import copy
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain, compress, starmap
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd

from dpframe.columns import filters
from dpframe.columns.arrow import pa
from dpframe.engines.batches import fitted_tables, is_kept, plain_array, plain_type
from dpframe.engines.threads import handed_over
from dpframe.errors import (
    STOPS,
    DeclarationError,
    DPFrameError,
    UnknownColumnError,
    a_type,
    pip_install,
)
from dpframe.ledger.deadline import Deadline
from dpframe.queries.where import Condition
from dpframe.sources.dialect import Dialect
from dpframe.sources.manifest import FileId, check_read_once, identify_file
from dpframe.sources.text import Tally, TextReader, type_from_arrow

_FRAGMENTS_AHEAD = 8  # files whose reading has begun, beside the one whose rows are added up


class RowSource(Protocol):
    """Where the rows of a scan come from; it gives them anew whenever it is asked."""

    @property
    def door(self) -> str:
        """What reads it."""

    @property
    def files(self) -> tuple[FileId, ...] | None:
        """The files that it reads; `None`: rows in memory, or nobody can tell."""

    @property
    def opaque(self) -> bool:
        """Whether nobody can tell what it reads."""

    @property
    def text(self) -> str | None:
        """How cells of text are read; `None`: it holds values."""

    @property
    def folders(self) -> frozenset[str]:
        """Columns that names of folders say: a number or a text, value by value."""

    @property
    def schema(self) -> Any:
        """Labels and Arrow types of the columns, in order."""

    @property
    def attrs(self) -> dict[str, Any]:
        """What pandas kept about the frames that the rows were written from."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known; private, it decides on ways of reading."""

    @property
    def tally(self) -> Tally:
        """What the last reading left out; private."""

    def refresh(self) -> None:
        """Look again what columns there are. Raise a DeclarationError where it cannot be read."""

    def check(self, labels: Sequence[str]) -> None:
        """Check that every part of the source has some columns, in types that can be joined."""

    def where(self, conditions: Sequence[Condition | None]) -> "RowSource":
        """Leave out what is known to have no row that satisfies any of some conditions."""

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns, as `pyarrow.Table`s of no more than some rows, or bytes."""


def source_of(given: Any) -> RowSource:
    """Return what reads an object that a scan was made of.

    Raises
    ------
    DeclarationError
        If it cannot be read, or only once.
    DPFrameError
        If pyarrow is not installed.
    """
    if pa is None:
        raise DPFrameError(f"dpf.scan needs pyarrow: {pip_install('parquet')}.")
    import pyarrow.dataset as ds  # slow to import, and not always needed

    _refuse_others(given)
    if isinstance(given, ds.Dataset):
        is_csv = isinstance(getattr(given, "format", None), ds.CsvFileFormat)
        return _CsvDataset(given) if is_csv else _Dataset(given)
    if isinstance(given, pa.Table | pa.RecordBatch):
        return _Table(given, lambda: given.schema, lambda labels, _: _columns_of(given, labels))
    if _is_of(given, "polars", "LazyFrame"):
        return _LazyFrame(given, lambda: _lazy_schema(given), _lazy_batches(given))
    if _is_of(given, "duckdb", "DuckDBPyRelation"):
        return _Stream(given, lambda: _relation_schema(given), _relation_batches(given))
    if hasattr(given, "__arrow_c_stream__"):
        kind = _Table if _is_of(given, "polars", "DataFrame") else _Stream
        return _readers(kind, given, lambda: pa.RecordBatchReader.from_stream(given))
    if callable(given):
        return _readers(_Stream, given, lambda: _reader(given()))
    raise _refusal(given)


def _refuse_others(given: object) -> None:
    """Refuse what has a better way to be read, and what can be read once only."""
    if isinstance(given, str | os.PathLike):
        rule = "must hold rows, not name them"
        way = "dpf.scan_parquet(path) opens Parquet files, pyarrow.dataset.dataset(path) others."
    elif isinstance(given, pd.DataFrame):
        rule, way = "must be no frame of pandas", "It has .dp of its own."
    elif hasattr(type(given), "__dask_graph__"):
        rule = "must be no collection of Dask"
        way = "It has .dp of its own, after `import dpframe.dask`."
    elif _is_read_once(given):
        rule = "must give its rows again for every release"
        way = "It can be read only once: pass a function that makes one, such as lambda: reader()."
    else:
        return
    raise _refusal(given, rule, way)


def _is_read_once(given: object) -> bool:
    return isinstance(given, pa.RecordBatchReader) or hasattr(type(given), "__next__")


_KINDS = (
    "must be a pyarrow dataset or table, a frame of Polars, a relation of DuckDB, a function that "
    "makes a RecordBatchReader, or have __arrow_c_stream__"
)


def _refusal(given: object, rule: str = _KINDS, way: str = "") -> DeclarationError:
    text = f"source {rule}, got {a_type(given)}. {way}".rstrip()
    return DeclarationError(text, parameter="source")


def _is_of(given: object, package: str, name: str) -> bool:
    """Whether an object is of a class of a package, which is imported where that is so."""
    kind = getattr(sys.modules.get(package), name, None)
    return isinstance(kind, type) and isinstance(given, kind)


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


def check_readable(read: Callable[[], Any], given: object) -> Any:
    """Look at a source before anything is charged; what it raises is the cause of a refusal."""
    try:
        return read()
    except (*STOPS, DPFrameError):
        raise
    except BaseException as error:  # Rust's panics are no exceptions
        raise _refusal(given, "must be readable", "Its own error is above.") from error


def folder_values(column: Any) -> pd.Categorical:
    """View the values in names of folders as numbers where they are, and else as texts."""
    encoded = column.combine_chunks().dictionary_encode()
    found = [_number_or_text(text) for text in encoded.dictionary.to_pylist()]
    places = {value: place for place, value in enumerate(dict.fromkeys(found))}
    table = np.array([*map(places.__getitem__, found), -1])
    codes = table[encoded.indices.fill_null(len(found)).to_numpy()]
    return pd.Categorical.from_codes(codes, pd.Index(list(places), dtype=object))


def possible_files(
    conditions: Sequence[Condition | None], folders: Collection[str], said: Callable[[str], Any]
) -> np.ndarray | None:
    """Mask of the files of which a row may satisfy one of some conditions, as far as folders say.

    Parameters
    ----------
    conditions
        Conditions on rows; `None` is always satisfied.
    folders
        Columns that names of folders say.
    said
        Returns what they say of each file, given the column.

    Returns
    -------
    array or None
        `None` for all files, whatever folders say.
    """
    demands = [None if one is None else one.within(folders) for one in conditions]
    needed = [demand for demand in demands if demand is not None]
    if len(needed) < len(demands):
        return None
    labels = {label for demand in needed for label in demand.columns}
    frame = pd.DataFrame({label: said(label) for label in labels})
    kept: np.ndarray = np.logical_or.reduce([filters.keep(demand, frame) for demand in needed])
    return kept


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


# Streams --------------------------------------------------------------------------------------


class _Stream:
    """An object of which every reading gives the same columns.

    Parameters
    ----------
    given
        The object.
    look
        Returns the schema.
    read
        Reads some columns, as batches of about some rows.
    """

    folders: frozenset[str] = frozenset()
    files: tuple[FileId, ...] | None = None
    opaque: bool = True
    text: str | None = None
    tally = Tally()

    def __init__(
        self,
        given: Any,
        look: Callable[[], Any],
        read: Callable[[Sequence[str], int], Iterable[Any]],
    ) -> None:
        self._given, self._look, self._read = given, look, read
        self._cells: Callable[[Any, Any], Any] = plain_array

    def refresh(self) -> None:
        """Look at the schema."""
        found = check_readable(self._look, self._given)
        self.attrs = check_readable(lambda: attrs_of(found.metadata), self._given)
        self.schema = pa.schema([(field.name, plain_type(field.type)) for field in found])

    @property
    def door(self) -> str:
        """The class of the object."""
        return f"{type(self._given).__module__}.{type(self._given).__qualname__}"

    @property
    def rows(self) -> int | None:
        """How many rows a table has; of others it is not known before all rows are read."""
        known = isinstance(self._given, pa.Table | pa.RecordBatch)
        return self._given.num_rows if known else None

    def check(self, labels: Sequence[str]) -> None:
        """Every batch of a stream has the columns of its schema."""

    def where(self, conditions: Sequence[Condition | None]) -> Self:
        """Every batch may have a row of any kind."""
        return self

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns; of none, the first, so that rows are counted."""
        labels = labels or self.schema.names[:1]
        wanted = pa.schema([self.schema.field(label) for label in labels])
        yield from fitted_tables(self._read(labels, rows), wanted, rows, self._cells)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for."""
        return source_of, (self._given,)

    def __repr__(self) -> str:
        """Show of what kind it is; neither rows nor how many there are."""
        return self.door


class _Table(_Stream):
    """Rows in memory."""

    opaque = False


class _LazyFrame(_Stream):
    """A lazy frame of Polars, whose plan lists files, of which two at once are shown."""

    def refresh(self) -> None:
        """Look at the schema, and at the files."""
        super().refresh()
        listed, whole = _scanned_files(check_readable(self._plan, self._given))
        for files in listed:
            check_read_once(files, "source")
        self.files = tuple(chain(*listed)) if whole else None
        self.opaque = not whole

    def _plan(self) -> str:
        plan: str = self._given.explain(optimized=False)
        return plan


def _scanned_files(plan: str) -> tuple[list[list[FileId]], bool]:
    """Read the files that a plan of Polars names, and tell whether it names all.

    Each node begins a line. A file may be joined with itself; what is put together may have it
    once. What is no file is not looked at: a text with lines of its own may look like a node.
    """
    begun = re.findall(r"^ *\w+ SCAN\b.*", plan, re.MULTILINE)
    shown = [_CUT.sub("]", node) for node in begun]
    listed = [_named_files(node.partition("SCAN ")[2]) for node in shown]
    named = [files for files in listed if files is not None]
    whole = shown == begun and len(named) == len(begun) > 0
    joins = re.search(r"^ *[A-Z ]*\bJOIN\b.*:$", plan, re.MULTILINE)
    return (named if joins else [list(chain(*named))]), whole


_CUT = re.compile(r", \.\.\. \d+ other sources?\]$")
"""How Polars ends a list of three files or more, of which it shows the first."""


def _named_files(listed: str) -> list[FileId] | None:
    """Read the one or two files that Polars shows; a comma may be in a name."""
    inner = listed.removeprefix("[").removesuffix("]")
    cut = inner.split(", ")
    ways = [[inner], *([", ".join(cut[:n]), ", ".join(cut[n:])] for n in range(1, len(cut)))]
    found = [paths for paths in ways if all(map(os.path.isfile, paths))]
    return [*map(identify_file, found[0])] if len(found) == 1 else None


def _columns_of(table: Any, labels: Sequence[str]) -> Iterable[Any]:
    """Take columns of a table, or of a batch."""
    selected = table.select(labels)
    return [selected] if isinstance(selected, pa.RecordBatch) else selected.to_batches()


def _readers(kind: type[_Stream], given: object, make: Callable[[], Any]) -> _Stream:
    """Read by a new reader each time; two are made to see that they are."""
    first, second = (check_readable(make, given) for _ in range(2))
    if first is second or first.schema != second.schema:
        raise _refusal(given, "must give a new reader of the same columns at each call")
    first.close()
    second.close()

    def look() -> Any:
        with closing(make()) as reader:
            return reader.schema

    def read(labels: Sequence[str], _: int) -> Iterator[Any]:
        with closing(make()) as reader:
            for batch in reader:
                yield batch.select(labels)

    return kind(given, look, read)


def _reader(made: Any) -> Any:
    """Return a reader of what a function has made."""
    if isinstance(made, pa.RecordBatchReader):
        return made
    if hasattr(made, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(made)
    raise _refusal(made, "must be a function that returns a pyarrow.RecordBatchReader")


def _lazy_schema(frame: Any) -> Any:
    """Return the columns of a lazy frame of Polars; no row is computed."""
    polars: Any = sys.modules["polars"]  # it has made the frame
    return polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema


def _lazy_batches(frame: Any) -> Callable[[Sequence[str], int], Iterator[Any]]:
    """Read a lazy frame by the streaming engine of Polars."""

    def read(labels: Sequence[str], rows: int) -> Iterator[Any]:
        polars: Any = sys.modules["polars"]
        wanted = frame.select(polars.selectors.by_name(*labels))
        # `collect_batches` takes a crash of a thread of Polars for the end of the rows
        sink = partial(wanted.sink_batches, chunk_size=rows, engine="streaming")
        for batch in handed_over(sink):
            yield from batch.to_arrow().to_batches()

    return read


_IN_USE = "ResourceInUseException"  # of DuckDB from 2.0 on; earlier ones run several queries
_PAUSE = 0.05  # seconds between two attempts


def _relation_schema(relation: Any) -> Any:
    """Return the columns of a relation of DuckDB."""
    with closing(_opened_stream(relation.limit(0))) as reader:
        return reader.schema


def _relation_batches(relation: Any) -> Callable[[Sequence[str], int], Iterator[Any]]:
    """Read a relation of DuckDB, which runs its query anew."""

    def read(labels: Sequence[str], _: int) -> Iterator[Any]:
        quoted = (label.replace('"', '""') for label in labels)
        wanted = relation.project(", ".join(f'"{label}"' for label in quoted))

        def hand_over(take: Callable[[Any], bool]) -> None:
            with closing(_opened_stream(wanted)) as reader:
                for batch in reader:
                    if take(batch):
                        return

        yield from handed_over(hand_over)

    return read


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


class _Dataset(_Stream):
    """A dataset of pyarrow, read by its scanner, several files ahead; its schema never changes."""

    opaque = False
    _formats = frozenset({"arrow", "feather", "orc", "parquet"})
    """Of files that hold their types."""

    def __init__(self, given: Any) -> None:
        import pyarrow.dataset as ds  # slow to import, and not always needed

        super().__init__(given, lambda: given.schema, self._scan)
        self._scanned = given
        try:
            fragments = list(given.get_fragments())
        except ValueError:  # pyarrow lists none of a filtered dataset
            way = "Scan the whole dataset, and pass where= to the queries."
            raise _refusal(given, "must be no filtered dataset", way) from None
        formats = {part.format.default_extname for part in fragments if _is_file(part)}
        if formats - self._formats:
            rule = (
                "must be no dataset of files whose types are guessed from cells, or are not known"
            )
            way = "Make a dataset of Parquet, Feather, ORC or CSV files alone."
            raise _refusal(given, rule, way)
        self._fragments = fragments
        self._paths = [(part.path, part.filesystem) for part in fragments if hasattr(part, "path")]
        self._seen = _state_of(given)
        self._said = [ds.get_partition_keys(part.partition_expression) for part in fragments]

    def refresh(self) -> None:
        """Look at the schema, at the names of folders, and whether files are as they were."""
        super().refresh()
        if check_readable(partial(_state_of, self._given), self._given) != self._seen:
            rule = "must hold the files that it was scanned with, which have changed since"
            raise _refusal(self._given, rule, "Make the dataset and the scan anew.")
        named = check_readable(lambda: list(starmap(identify_file, self._paths)), self._given)
        self.files = check_read_once(named, "source")
        self._folders = check_readable(self._said_of_all, self._given)

    def check(self, labels: Sequence[str]) -> None:
        """Check that every file has some columns, in types of which every value is kept."""
        for fragment, folders in zip(self._fragments, self._said, strict=True):
            inside = check_readable(partial(getattr, fragment, "physical_schema"), self._given)
            path = getattr(fragment, "path", "a part of the dataset")
            for label in labels:
                places = inside.get_all_field_indices(label)
                if label in folders:
                    if places:
                        raise named_twice(path, label)
                    continue
                if not places:
                    raise missing_column(path, label)
                if len(places) > 1:
                    raise repeated_column(path, label)
                held = plain_type(inside.field(places[0]).type)
                wanted = self.schema.field(label).type
                if not is_kept(held, wanted):
                    raise other_type(path, label, held, f"{wanted} in the schema of the dataset")

    def where(self, conditions: Sequence[Condition | None]) -> Self:
        """Leave out files whose folders say that no row satisfies any of some conditions."""
        import pyarrow.dataset as ds  # slow to import, and not always needed

        if not isinstance(self._scanned, ds.FileSystemDataset):
            return self
        kept = possible_files(conditions, self._folders, self._folders.__getitem__)
        if kept is None:
            return self
        chosen = object.__new__(type(self))
        files = [*compress(self._fragments, kept)]
        given = self._scanned
        vars(chosen).update(
            vars(self),
            _fragments=files,
            _said=[*compress(self._said, kept)],
            _folders={label: column[kept] for label, column in self._folders.items()},
            _scanned=ds.FileSystemDataset(files, given.schema, given.format, given.filesystem),
            _read=chosen._scan,
        )
        return chosen

    def _said_of_all(self) -> dict[str, Any]:
        """List what folders say of every file, as it is read in its rows."""
        said = [set(one) for one in self._said]  # other columns may be in files
        fields = [one for one in self.schema if said and one.name in set.intersection(*said)]
        cells = {one.name: [of[one.name] for of in self._said] for one in fields}
        return {
            one.name: pd.arrays.ArrowExtensionArray(pa.chunked_array([cells[one.name]], one.type))
            for one in fields
        }

    def _scan(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns of all files, in their order."""
        scanner = self._scanned.scanner(
            columns=labels,
            batch_size=rows,
            fragment_readahead=_FRAGMENTS_AHEAD,
            batch_readahead=4,
            fragment_scan_options=_with_checksums(self._scanned),
        )
        with closing(scanner.to_reader()) as reader:
            yield from reader

    def __repr__(self) -> str:
        """Show of what kind it is; neither rows nor how many there are."""
        return f"pyarrow.dataset.{type(self._given).__name__}"


def _with_checksums(given: Any) -> Any:
    """Return how Parquet files of a dataset are read, but with checksums of pages verified."""
    form = getattr(given, "format", None)  # several datasets as one have none
    if form is None or form.default_extname != "parquet":
        return None
    asked = form.default_fragment_scan_options
    options = copy.copy(asked)
    options.page_checksum_verification = True
    for name in ("decryption_properties", "parquet_decryption_config"):  # which no copy has
        if getattr(asked, name, None) is not None:
            setattr(options, name, getattr(asked, name))
    return options


def _state_of(given: Any) -> list[tuple[int | None, int | None]]:
    """Return sizes of the files of which a dataset remembers something, and when they were written.

    Not of several datasets as one, nor through file systems that are asked file by file.
    """
    form = getattr(given, "format", None)
    if form is None or form.default_extname == "csv":
        return []
    filesystem = given.filesystem
    asked = not filesystem.type_name.startswith("py::")
    infos = filesystem.get_file_info(given.files) if asked else []
    return [(info.size, info.mtime_ns) for info in infos]


def _is_file(fragment: Any) -> bool:
    return hasattr(fragment, "format")


def missing_column(path: str, label: str) -> UnknownColumnError:
    """Refuse a file that has not all columns that are needed."""
    return UnknownColumnError(
        f"{path} has no column {label!r}, which other files have: its rows would be lost. Write "
        "the column there (null where it is not known), or leave the file out.",
        label=label,
    )


def named_twice(path: str, label: str) -> DeclarationError:
    """Refuse a column that a file holds and its folder names: readers follow one or the other."""
    return DeclarationError(
        f"{label!r} is in {path}, and its folder names it, too: readers follow one or the other. "
        "Write files without the column, or folders of other names.",
        label=label,
    )


def repeated_column(path: str, label: str) -> UnknownColumnError:
    """Refuse a file that has two columns of one label."""
    return UnknownColumnError(
        f"{path} has {label!r} more than once. Write each column under a label of its own.",
        label=label,
    )


def other_type(path: str, label: str, held: Any, others: str) -> DeclarationError:
    """Refuse a file that has a column in a type that cannot be joined with that of others."""
    return DeclarationError(
        f"all files must have the same types of columns: {label!r} is {held} in {path}, and "
        f"{others}. Write them with one schema.",
        label=label,
    )


class _CsvDataset(_Dataset):
    """A dataset of CSV files, of which every cell is read by itself, whatever is in others."""

    _formats = frozenset({"csv"})

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        self._dialect = _dialect_of(given)
        self.text = repr(self._dialect)
        folders = {label for said in self._said for label in said}
        fields = [field for field in given.schema if field.name not in folders]
        self._types = {field.name: _type_of_cells(given, field) for field in fields}
        self._cells = _cast_cells

    def check(self, labels: Sequence[str]) -> None:
        """Check that every file has some columns, each once."""
        for fragment, folders in zip(self._fragments, self._said, strict=True):
            present = check_readable(partial(self._labels, fragment), self._given)
            for label in labels:
                if label not in folders and label not in present:
                    raise missing_column(fragment.path, label)
                if label in folders and label in present:
                    raise named_twice(fragment.path, label)
                if present.count(label) > 1:
                    raise repeated_column(fragment.path, label)

    def _labels(self, fragment: Any) -> list[str]:
        with self._opened(fragment) as reader:
            return reader.labels

    @contextmanager
    def _opened(self, fragment: Any) -> Iterator[TextReader]:
        with self._given.filesystem.open_input_stream(fragment.path) as file:
            yield TextReader(file, self._dialect, fragment.path)

    def _scan(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns of all files, in their order."""
        types = {label: self._types[label] for label in labels if label in self._types}
        self.tally = Tally()
        for fragment, said in zip(self._fragments, self._said, strict=True):
            with self._opened(fragment) as reader:
                for batch in reader.batches(types, self.tally):
                    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                    for label in set(labels) - set(types):
                        columns[label] = pa.repeat(said.get(label), batch.num_rows)
                    yield pa.RecordBatch.from_pydict(columns)


_DEFAULTS_OF_CSV = {
    "parse_options": ("quote_char", "double_quote", "escape_char", "ignore_empty_lines"),
    "read_options": (
        "skip_rows", "skip_rows_after_names", "column_names", "autogenerate_column_names",
    ),
    "convert_options": ("quoted_strings_can_be_null",),
}  # fmt: skip
"""Options of pyarrow that the reader of text files has not, by what holds them."""


def _dialect_of(given: Any) -> Dialect:
    """Return how the files of a CSV dataset are written."""
    import pyarrow.csv as pa_csv  # slow to import, and not always needed

    scanned = given.format.default_fragment_scan_options
    split, read, convert = given.format.parse_options, scanned.read_options, scanned.convert_options
    asked = {"parse_options": split, "read_options": read, "convert_options": convert}
    plain = {
        "parse_options": pa_csv.ParseOptions(),
        "read_options": pa_csv.ReadOptions(),
        "convert_options": pa_csv.ConvertOptions(),
    }
    for options, names in _DEFAULTS_OF_CSV.items():
        for name in names:
            if getattr(asked[options], name) != getattr(plain[options], name):
                way = "Write the files with a header, and with quotes that are doubled in quotes."
                raise _refusal(given, f"must be CSV with the default of {name} in {options}", way)
    words = convert.null_values if convert.strings_can_be_null else []
    if not words and convert.null_values != plain["convert_options"].null_values:
        rule = "must be CSV with strings_can_be_null=True beside null_values"
        raise _refusal(given, rule, "They are missing in all columns, or in none.")
    return Dialect.of(
        separator=split.delimiter,
        encoding=read.encoding,
        na_values=words,
        decimal=convert.decimal_point,
        true=convert.true_values,
        false=convert.false_values,
        dates=[form for form in convert.timestamp_parsers if isinstance(form, str)],
        newlines=split.newlines_in_values,
    )


def _type_of_cells(given: Any, field: Any) -> str:
    """Say how the cells of a column of a CSV dataset are read."""
    options = given.format.default_fragment_scan_options.convert_options
    kind = type_from_arrow(plain_type(field.type))
    if field.name in options.column_types and kind is not None:
        return kind
    why = "has none" if kind else f"is {field.type}, which is not read from text"
    way = "CsvFileFormat(convert_options=pyarrow.csv.ConvertOptions(column_types={...}))"
    raise _refusal(
        given,
        "must have a type for every column of CSV files, or one cell decides on others",
        f"{field.name!r} {why}. Make the dataset with schema= and format=pyarrow.dataset.{way}, or "
        "pass the paths to dpf.scan with types=.",
    )


def _cast_cells(cells: Any, kind: Any) -> Any:
    """Cast cells one by one: one that cannot be cast is missing, and changes no other."""
    try:
        return plain_array(cells, kind)
    except pa.ArrowInvalid:
        if len(cells) == 1:
            return pa.nulls(1, kind)
        half = len(cells) // 2
        return pa.concat_arrays([_cast_cells(cells[:half], kind), _cast_cells(cells[half:], kind)])
