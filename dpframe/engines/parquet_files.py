"""Parquet files: where they are, what their folders and footers say, and how they are read."""

import os
import re
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

from dpframe.columns.arrow import pa
from dpframe.engines.batches import batches_of, plain_type
from dpframe.engines.sources import attrs_of, missing_column
from dpframe.errors import DeclarationError, DPFrameError, ReleaseError, a_type

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, or files."""

_FOOTERS = 16  # read at once: what takes long is to wait for a distant file
_LOCAL = ("local", "py::fsspec+file", "py::fsspec+local", "py::fsspec+('file', 'local')")
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class File:
    """A Parquet file: where it is, what its folders say of its rows, and what is in its footer."""

    path: str
    partitions: dict[str, str | None]
    schema: Any
    rows: int
    attrs: dict[str, Any]


def _files_at(path: str | list[str], filesystem: Any) -> tuple[Any, list[File]]:
    """Find files and read their footers."""
    import pyarrow.dataset as ds  # slow to import, and not always needed
    import pyarrow.parquet as pq

    nothing = pa.schema([])
    found = ds.dataset(path, nothing, "parquet", filesystem=filesystem)

    def read(name: str) -> File:
        try:
            with found.filesystem.open_input_file(name) as source:
                footer = pq.ParquetFile(source)
                rows = footer.metadata.num_rows
                return File(
                    name,
                    _folders(name),
                    _schema_of(footer),
                    rows,
                    attrs_of(footer.schema_arrow.metadata),
                )
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            text = f"path must name Parquet files, got {name}, which cannot be read as one."
            raise DeclarationError(text, parameter="path") from error

    with ThreadPoolExecutor(_FOOTERS) as pool:
        return found.filesystem, list(pool.map(read, found.files))


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


def _checked_path(path: Any, filesystem: Any) -> str | list[str]:
    """Check that a path is one, or a list of some, and note where it leads to from here."""
    if isinstance(path, str | os.PathLike):
        named = os.fspath(path)
        return named if filesystem is not None or "://" in named else os.path.abspath(named)
    if isinstance(path, list | tuple) and all(isinstance(one, str | os.PathLike) for one in path):
        return [str(_checked_path(one, filesystem)) for one in path]
    rule = "must be a file, a folder or a list of files"
    raise DeclarationError(f"path {rule}, got {a_type(path)}.", parameter="path")


class ParquetFiles:
    """Parquet files, read anew whenever they are asked for rows.

    Parameters
    ----------
    path
        A file, a folder (whose folders may be named `name=value`, in Hive's manner), or files.
    filesystem
        A file system of pyarrow or fsspec; `None`: the one that the path implies.

    Raises
    ------
    DeclarationError
        If there are no such files, or their columns cannot be read or differ in type.
    DPFrameError
        If pyarrow is not installed.
    """

    def __init__(self, path: Paths, filesystem: Any = None) -> None:
        if pa is None:
            raise DPFrameError("Parquet files need pyarrow: pip install 'dpframe[parquet]'.")
        self._path = _checked_path(path, filesystem)
        self._asked = filesystem

    def refresh(self) -> None:
        """Look again which files there are, and what columns they have."""
        try:
            self._filesystem, self._files = _files_at(self._path, self._asked)
            self._schema, self.folders = _joined_schema(self._files)
        except DeclarationError:
            raise
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            rule = "Parquet files with the same types of columns"
            raise self._refusal(rule, ": they cannot be read as such") from error
        places = {_place_of(self._filesystem, file.path) for file in self._files}
        if len(places) < len(self._files):
            raise self._refusal("each file once", ", which names a file twice: remove links to it")
        if not self._files:
            raise self._refusal("Parquet files", ", where there are none")

    def _refusal(self, rule: str, why: str) -> DeclarationError:
        text = f"path must name {rule}, got {self}{why}."
        return DeclarationError(text, parameter="path")

    def check(self, labels: Sequence[str]) -> None:
        """Check that every file has some columns.

        Rows of a file without it would be lost without a word. What folders alone say is missing
        where no folder says it.
        """
        texts = {label for label in labels if self._schema.field(label).type == pa.string()}
        for file in self._files:
            known = {*file.schema.names, *self.folders, *texts.intersection(file.partitions)}
            for label in labels:
                if label not in known:
                    raise missing_column(file.path, label)

    @property
    def attrs(self) -> dict[str, Any]:
        """What pandas kept in the files about the frames that they were written from."""
        return {key: value for file in self._files for key, value in file.attrs.items()}

    @property
    def schema(self) -> Any:
        """Labels and Arrow types of the columns of files and folders, in order."""
        return self._schema

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self._files)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for."""
        return type(self), (self._path, self._asked)

    def __repr__(self) -> str:
        """Show the path, without a password that it may hold."""
        return re.sub(r"//[^/@]*@", "//...@", repr(self._path))

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns of every file, as tables of no more than some rows."""
        import pyarrow.parquet as pq  # slow to import, and not always needed

        wanted = pa.schema(
            [(label, plain_type(self._schema.field(label).type)) for label in labels]
        )
        for file in self._files:
            names = set(file.schema.names)
            inside = [label for label in labels if label in names]
            with self._filesystem.open_input_file(file.path) as source:
                reader = pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True)
                if (_schema_of(reader), reader.metadata.num_rows) != (file.schema, file.rows):
                    raise ReleaseError("a file changed while it was read")
                for batch in batches_of(source, reader, inside, rows):
                    yield _complete_columns(batch, file, wanted)
