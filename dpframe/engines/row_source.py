"""What the rows of a scan come from, and what is checked of files, whoever reads them."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, starmap
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from dpframe.columns import filters, pa
from dpframe.engines.batches import fitted_tables, is_kept, plain_array, plain_type
from dpframe.errors import STOPS, DeclarationError, DPFrameError, UnknownColumnError, a_type
from dpframe.queries.where import Condition
from dpframe.sources.manifest import FileId, check_read_once, identify_file
from dpframe.sources.text import Tally


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
        wanted = pa.schema([self.schema.field(label) for label in labels])
        yield from fitted_tables(read(labels), wanted, rows, cast)


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
        demands = [None if one is None else one.within(self.named) for one in conditions]
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


def fragments_of(given: Any, formats: Collection[str]) -> list[Fragment]:
    """List the parts of a dataset whose files are of some formats, if they are files."""
    import pyarrow.dataset as ds  # slow to import, and not always needed

    try:
        fragments = list(given.get_fragments())
    except ValueError:  # pyarrow lists none of a filtered dataset
        way = "Scan the whole dataset, and pass where= to the queries."
        raise refusal(given, "must be no filtered dataset", way) from None
    found = {part.format.default_extname for part in fragments if hasattr(part, "format")}
    if found - {*formats}:
        rule = "must be no dataset of files whose types are guessed from cells, or are not known"
        raise refusal(given, rule, "Make a dataset of Parquet, Feather, ORC or CSV files alone.")
    return [Fragment(part, ds.get_partition_keys(part.partition_expression)) for part in fragments]


def check_columns(
    path: str, held: Any, folders: Collection[str], labels: Iterable[str], wanted: Any
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
    wanted
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
            why = f"{label!r} is in {path}, and its folder names it, too: readers follow one or"
            way = "the other. Write files without the column, or folders of other names."
            raise DeclarationError(f"{why} {way}", label=label)
        if not places and label not in folders:
            why = f"{path} has no column {label!r}, which other files have: its rows would be lost."
            way = "Write the column there (null where it is not known), or leave the file out."
            raise UnknownColumnError(f"{why} {way}", label=label)
        if len(places) > 1:
            why = f"{path} has {label!r} more than once."
            way = "Write each column under a label of its own."
            raise UnknownColumnError(f"{why} {way}", label=label)
        kind = wanted.field(label).type
        if places and not is_kept(plain_type(held.field(places[0]).type), kind):
            rule = "all files must have the same types of columns"
            differ = f"{label!r} is {held.field(places[0]).type} in {path}, and {kind} in others"
            raise DeclarationError(f"{rule}: {differ}. Write them with one schema.", label=label)


def refusal(given: object, rule: str, way: str = "") -> DeclarationError:
    """Refuse a source."""
    text = f"source {rule}, got {a_type(given)}. {way}".rstrip()
    return DeclarationError(text, parameter="source")


def check_readable(read: Callable[[], Any], given: object) -> Any:
    """Look at a source before anything is charged; what it raises is the cause of a refusal."""
    try:
        return read()
    except (*STOPS, DPFrameError):
        raise
    except BaseException as error:  # Rust's panics are no exceptions
        raise refusal(given, "must be readable", "Its own error is above.") from error


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
    found = [_number_or_text(text) for text in encoded.dictionary.to_pylist()]
    places = {value: place for place, value in enumerate(dict.fromkeys(found))}
    table = np.array([*map(places.__getitem__, found), -1])
    codes = table[encoded.indices.fill_null(len(found)).to_numpy()]
    return pd.Categorical.from_codes(codes, pd.Index(list(places), dtype=object))


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text
