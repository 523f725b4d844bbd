"""Parquet files: where they are, what their folders and footers say, and how they are read."""

import json
import operator
import os
import re
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, Self, TypeAlias
from urllib.parse import unquote

import numpy as np
import pandas as pd

from dpframe.columns import filters
from dpframe.columns.arrow import pa
from dpframe.engines.base import check_labels
from dpframe.engines.batches import batches_of, put_together
from dpframe.errors import DeclarationError, DPFrameError, ReleaseError, UnknownColumnError, a_type
from dpframe.progress import check_progress, show_progress
from dpframe.queries.where import Condition

BATCH_ROWS = 1 << 19
"""Rows that are read at once."""

MOST_BYTES = 1 << 28
"""Of what is put together at once."""

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, or files."""

_FOOTERS = 16  # read at once: what takes long is to wait for a distant file
_LOCAL = ("local", "py::fsspec+file", "py::fsspec+local", "py::fsspec+('file', 'local')")
_MOST_COARSE = 2_000_000_000  # nanoseconds by which a file system may round when it was written to
_MOST_ROWS = 2**31 - 1  # of a batch
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class File:
    """A Parquet file: where it is, what its folders say of its rows, and what is in its footer."""

    path: str
    partitions: dict[str, str | None]
    schema: Any
    rows: int
    attrs: dict[str, Any]
    written: Hashable  # its size and when it was last written to; `None`: that does not tell


def _files_at(
    path: str | list[str], filesystem: Any, known: Mapping[str, File]
) -> tuple[Any, list[File]]:
    """Find files and read their footers, but of those that are known and were not written to."""
    import pyarrow.dataset as ds  # slow to import, and not always needed
    import pyarrow.parquet as pq

    nothing, read_at = pa.schema([]), time.time_ns()
    found = ds.dataset(path, nothing, "parquet", filesystem=filesystem)

    def read(status: Any) -> File:
        name, written = status.path, None
        if status.mtime_ns and status.mtime_ns < read_at - _MOST_COARSE:
            written = status.size, status.mtime_ns
        if written and name in known and known[name].written == written:
            return known[name]
        try:
            with found.filesystem.open_input_file(name) as source:
                footer = pq.ParquetFile(source)
                rows = footer.metadata.num_rows
                attrs = _attrs_of(footer)
                return File(name, _folders(name), _schema_of(footer), rows, attrs, written)
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            text = f"path must name Parquet files, got {name}, which cannot be read as one."
            raise DeclarationError(text, parameter="path") from error

    with ThreadPoolExecutor(_FOOTERS) as pool:
        statuses = found.filesystem.get_file_info(found.files)
        return found.filesystem, list(pool.map(read, statuses))


def _attrs_of(footer: Any) -> dict[str, Any]:
    """Return the attrs that pandas wrote; a ValueError if they are damaged."""
    try:
        attrs = json.loads((footer.schema_arrow.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
    except RecursionError:
        raise ValueError("attrs are nested too deeply") from None
    if not isinstance(attrs, dict):
        raise ValueError("attrs are not an object")  # noqa: TRY004  # of a file, not an argument
    return attrs


def _schema_of(footer: Any) -> Any:
    """Return names and types of the columns of a file."""
    return pa.schema([field.remove_metadata() for field in footer.schema_arrow])


def _place_of(filesystem: Any, path: str) -> Hashable:
    """Tell where a file is: on a local disk, links to it are at the same place."""
    if filesystem.type_name == "subtree":
        return _place_of(filesystem.base_fs, filesystem.base_path + path)
    if filesystem.type_name in _LOCAL:
        status = os.stat(path)
        if status.st_ino:  # not known on all systems
            return status.st_dev, status.st_ino
    return path


def _folders(path: str) -> dict[str, str | None]:
    """Read what folders named `name=value` say of a file."""
    pairs = (part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return {
        unquote(name): None if value == _NO_PARTITION else unquote(value) for name, value in pairs
    }


def _joined_schema(files: Sequence[File]) -> tuple[Any, frozenset[str]]:
    """Join the columns of files and folders, with the names of those of folders alone."""
    first, *others = [file.schema for file in files] or [pa.schema([])]
    different = [other for other in others if other != first]
    if different:
        _check_types(files)
    schema = pa.unify_schemas([first, *different]) if different else first
    named = dict.fromkeys(name for file in files for name in file.partitions)
    partitions = [name for name in named if name not in schema.names]
    for name in partitions:
        schema = schema.append(pa.field(name, pa.string()))
    return schema, frozenset(partitions)


def _check_types(files: Sequence[File]) -> None:
    """Check that no column is of two types; a column without any value has none."""
    known: dict[str, tuple[Any, str]] = {}
    for file in files:
        for name, kind in zip(file.schema.names, file.schema.types, strict=True):
            if pa.types.is_null(kind):
                continue
            first, path = known.setdefault(name, (kind, file.path))
            if kind != first:
                raise DeclarationError(
                    f"all files must have the same types of columns: {name!r} is {kind} in "
                    f"{file.path}, and {first} in {path}. Write them with one schema."
                )


def _plain(kind: Any) -> Any:
    """Choose the type that a column is read as."""
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    known = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return known.get(kind, kind)  # few functions know views


def _complete_columns(batch: Any, file: File, wanted: Any) -> Any:
    """Make a table of a batch, with the columns that the file does not have."""
    read = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = []
    for label, kind in zip(wanted.names, wanted.types, strict=True):
        column, text = read.get(label), file.partitions.get(label)
        if column is not None and not pa.types.is_null(column.type):
            column = column.storage if isinstance(column, pa.ExtensionArray) else column
            columns.append(column if column.type == kind else column.cast(kind))
        elif column is None and text is not None and kind == pa.string():
            columns.append(pa.repeat(text, batch.num_rows))
        else:
            columns.append(pa.nulls(batch.num_rows, kind))
    if not columns:
        return pa.Table.from_batches([batch])
    return pa.Table.from_arrays(columns, schema=wanted)


def _of_folders(column: Any) -> pd.Categorical:
    """View the values in names of folders as numbers where they are, and else as texts."""
    encoded = column.combine_chunks().dictionary_encode()
    found = [_number_or_text(text) for text in encoded.dictionary.to_pylist()]
    places = {value: place for place, value in enumerate(dict.fromkeys(found))}
    table = np.array([*map(places.__getitem__, found), -1])
    codes = table[encoded.indices.fill_null(len(found)).to_numpy()]
    return pd.Categorical.from_codes(codes, pd.Index(list(places), dtype=object))


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def _checked_path(path: Any, filesystem: Any) -> str | list[str]:
    """Check that a path is one, or a list of some, and note where it leads to from here."""
    if isinstance(path, str | os.PathLike):
        named = os.fspath(path)
        return named if filesystem is not None or "://" in named else os.path.abspath(named)
    if isinstance(path, list | tuple) and all(isinstance(one, str | os.PathLike) for one in path):
        return [str(_checked_path(one, filesystem)) for one in path]
    rule = "must be a file, a folder or a list of files"
    raise DeclarationError(f"path {rule}, got {a_type(path)}.", parameter="path")


def _checked_rows(rows: Any) -> int:
    """Check a number of rows."""
    whole = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
    if not whole or not 1 <= rows <= _MOST_ROWS:
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


class ParquetFiles:
    """Parquet files that together are one private frame, read anew whenever it is totaled.

    Parameters
    ----------
    path
        A file, a folder (whose folders may be named `name=value`, in Hive's manner), or files.
    filesystem
        A file system of pyarrow or fsspec; `None`: the one that the path implies.
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
        If there are no such files, or their columns cannot be read or differ in type.
    DPFrameError
        If pyarrow is not installed.
    """

    def __init__(
        self,
        path: Paths,
        *,
        filesystem: Any = None,
        batch_rows: int = BATCH_ROWS,
        spill_folder: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> None:
        if pa is None:
            raise DPFrameError("Parquet files need pyarrow: pip install 'dpframe[parquet]'.")
        self._path = _checked_path(path, filesystem)
        self._asked = filesystem
        self.batch_rows = _checked_rows(batch_rows)
        self.spill_folder = _checked_folder(spill_folder)
        check_progress(progress)
        self.progress = progress
        self._files: list[File] = []
        self.refresh()

    def refresh(self) -> None:
        """Look again which files there are, and what columns they have."""
        try:
            known = {file.path: file for file in self._files}
            self._filesystem, self._files = _files_at(self._path, self._asked, known)
            self._schema, self._partitions = _joined_schema(self._files)
        except DeclarationError:
            raise
        except FileNotFoundError:
            raise self._refusal("Parquet files", ", where there is no such file") from None
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            rule = "Parquet files with the same types of columns"
            raise self._refusal(rule, ": they cannot be read as such") from error
        _checked_folder(self.spill_folder)
        places = {_place_of(self._filesystem, file.path) for file in self._files}
        if len(places) < len(self._files):
            raise self._refusal("each file once", ", which names a file twice: remove links to it")
        if not self._files:
            raise self._refusal("Parquet files", ", where there are none")

    def _refusal(self, rule: str, why: str) -> DeclarationError:
        text = f"path must name {rule}, got {self._quote_path()}{why}."
        return DeclarationError(text, parameter="path")

    def check(self, labels: Iterable[Hashable]) -> None:
        """Check that every label names exactly one column, which every file has.

        Rows of a file without it would be lost without a word. What folders alone say is missing
        where no folder says it.
        """
        wanted = labels if isinstance(labels, Mapping) else list(labels)
        check_labels(self.columns, wanted)
        texts = {label for label in wanted if self._schema.field(label).type == pa.string()}
        for file in self._files:
            known = {*file.schema.names, *self._partitions, *texts.intersection(file.partitions)}
            for label in wanted:
                if label not in known:
                    raise UnknownColumnError(
                        f"{file.path} has no column {label!r}, which other files have: its rows "
                        "would be lost. Write the column there (null where it is not known), or "
                        "leave the file out."
                    )

    @property
    def attrs(self) -> dict[str, Any]:
        """What pandas kept in the files about the frames that they were written from."""
        return {key: value for file in self._files for key, value in file.attrs.items()}

    @property
    def columns(self) -> list[str]:
        """The labels of the columns, in order."""
        return list(self._schema.names)

    @property
    def types(self) -> dict[str, Any]:
        """The Arrow types of the columns of files, by label, but for those of folders."""
        named = zip(self._schema.names, self._schema.types, strict=True)
        return {name: kind for name, kind in named if name not in self._partitions}

    def in_folders(self, condition: Condition) -> Self:
        """Return the files of which some rows may be in a part of the data, by names of folders."""
        (label,) = condition.columns
        if label not in self._partitions:
            return self
        texts = pa.chunked_array([pa.array([file.partitions.get(label) for file in self._files])])
        kept = filters.keep(condition, pd.DataFrame({label: _of_folders(texts.cast("string"))}))
        chosen = object.__new__(type(self))
        vars(chosen).update(vars(self), _files=[*compress(self._files, kept)])
        return chosen

    def tables(self, labels: Sequence[str], rows: int = 1) -> Iterator[Any]:
        """Read some columns, as `pyarrow.Table`s of some number of rows or more where possible."""
        batches = self._batches(labels)
        # of no labels nothing but a number of rows, that is lost when tables are put together
        yield from put_together(batches, rows, MOST_BYTES) if labels else batches

    def view(self, table: Any) -> pd.DataFrame:
        """View a table as a frame, whose dtypes depend on the types of the columns alone."""
        columns = {
            name: _of_folders(column)
            if name in self._partitions
            else pd.arrays.ArrowExtensionArray(column)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for: like a copy of a frame, what comes out is not declared."""
        options = {name: getattr(self, name) for name in ("batch_rows", "spill_folder", "progress")}
        return partial(type(self), filesystem=self._asked, **options), (self._path,)

    def __repr__(self) -> str:
        """Show path and columns; neither rows nor how many there are."""
        return f"{type(self).__name__}({self._quote_path()}, columns={self.columns})"

    def _quote_path(self) -> str:
        """Show the path, without a password that it may hold."""
        return re.sub(r"//[^/@]*@", "//...@", repr(self._path))

    def _batches(self, labels: Sequence[str]) -> Iterator[Any]:
        """Read every file, in batches of no more than so many rows, and show how far that is."""
        rows = sum(file.rows for file in self._files)
        shown, size = self.progress, operator.attrgetter("num_rows")
        yield from show_progress(self._read(labels), "reading", rows, shown=shown, size=size)

    def _read(self, labels: Sequence[str]) -> Iterator[Any]:
        import pyarrow.parquet as pq  # slow to import, and not always needed

        wanted = pa.schema([(label, _plain(self._schema.field(label).type)) for label in labels])
        for file in self._files:
            names = set(file.schema.names)
            inside = [label for label in labels if label in names]
            with self._filesystem.open_input_file(file.path) as source:
                reader = pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True)
                if (_schema_of(reader), reader.metadata.num_rows) != (file.schema, file.rows):
                    raise ReleaseError("a file changed while it was read")
                for batch in batches_of(source, reader, inside, self.batch_rows):
                    yield _complete_columns(batch, file, wanted)
