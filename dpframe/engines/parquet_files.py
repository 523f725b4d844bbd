"""Parquet files: where they are, what their folders and footers say, and how they are read."""

import os
import re
import time
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias
from urllib.parse import unquote

import pandas as pd

from dpframe.columns import pa, require_arrow
from dpframe.engines import batches
from dpframe.engines.pandas import FileSource, attrs_of, check_columns, folder_values
from dpframe.engines.threads import begun_ahead
from dpframe.errors import DeclarationError, ReleaseError, a_type
from dpframe.frozen import frozen
from dpframe.sources import manifest

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, or files."""

# files: what takes long is to wait for distant ones
_AT_ONCE = 16
# distant files, whatever their size
_LEAST_AT_ONCE = 4
# of files on this machine, as they are stored
_BYTES_TOGETHER = 1 << 20
# of files that are read at once, as they are stored
_BYTES_AHEAD = 1 << 26
# of a file that are decoded before its turn comes
_BYTES_BEGUN = 1 << 24
# files
_ASKED_FOR_SIZES = 64
# of a footer that is kept; there may be many files
_FOOTER_BYTES = 1 << 15
_TEXTS = () if pa is None else (pa.string(), pa.large_string())
# nanoseconds by which a file system may round when it was written to
_MOST_COARSE = 2_000_000_000
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@frozen(slots=True, eq=False)
class File:
    """A Parquet file: where it is, what its folders say of its rows, and what is in its footer."""

    path: str
    size: int
    identity: manifest.FileId
    folders: dict[str, str | None]
    layout: batches.FileLayout
    # pyarrow's metadata; None where they would take too much memory
    footer: Any
    rows: int
    attrs: dict[str, Any]

    @property
    def schema(self) -> Any:
        """Labels and Arrow types of its columns."""
        return self.layout.schema


def _key_of(info: Any, now: int) -> Hashable:
    """Tell a file from what it was before it changed; `None` where that cannot be told."""
    if info.mtime_ns is None or info.mtime_ns >= now - _MOST_COARSE:
        return None
    return info.path, info.size, info.mtime_ns


def _folders(path: str) -> dict[str, str | None]:
    """Read what folders named `name=value` say of a file."""
    pairs = [part.split("=", 1) for part in path.split("/")[:-1] if "=" in part]
    said = {unquote(name): value for name, value in pairs}
    return {name: None if v == _NO_PARTITION else unquote(v) for name, v in said.items()}


class _Kinds:
    """The columns of files, which are alike but for a few kinds of them.

    Parameters
    ----------
    files
        The files; those with equal columns share a schema.
    """

    def __init__(self, files: Sequence[File]) -> None:
        kinds = {(id(file.schema), *file.folders): file for file in reversed(files)}
        self._examples = list(reversed(kinds.values()))
        types: dict[str, Any] = {}
        for file in self._examples:
            for name, kind in zip(file.schema.names, file.schema.types, strict=True):
                plain = batches.plain_type(kind)
                before = types.get(name, plain)
                joined = batches.common_type(before, plain)
                types[name] = before if joined is None else joined
        named = dict.fromkeys(name for file in self._examples for name in file.folders)
        self.folders = frozenset(name for name in named if name not in types)
        # repeated labels of a file stay so
        stored = [name for file in self._examples[:1] for name in file.schema.names]
        stored += [name for name in types if name not in {*stored}]
        fields = [(name, types[name]) for name in stored]
        fields += [(name, pa.string()) for name in named if name in self.folders]
        self.schema = pa.schema(fields)

    def check(self, labels: Sequence[str]) -> None:
        """Check that every file has some columns; what folders alone say may be missing."""
        texts = {label for label in labels if self.schema.field(label).type in _TEXTS}
        for file in self._examples:
            folders = self.folders | file.folders.keys() & {*texts, *file.schema.names}
            check_columns(file.path, file.schema, folders, labels, self.schema)


def _complete_columns(batch: Any, file: File, schema: Any) -> Any:
    """Make a table of a batch, with the columns that the file does not have."""
    read = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = []
    for label, kind in zip(schema.names, schema.types, strict=True):
        column, text = read.get(label), file.folders.get(label)
        if column is not None:
            columns.append(batches.plain_array(column, kind))
        elif text is not None and kind in _TEXTS:
            columns.append(pa.repeat(pa.scalar(text, kind), batch.num_rows))
        else:
            columns.append(pa.nulls(batch.num_rows, kind))
    if not columns:
        return pa.Table.from_batches([batch])
    return pa.Table.from_arrays(columns, schema=schema)


def _checked_path(path: Any, filesystem: Any) -> str | list[str]:
    """Check that a path is one, or a list of some, and note where it leads to from here."""
    if isinstance(path, str | os.PathLike):
        named = os.fspath(path)
        return named if filesystem is not None or "://" in named else os.path.abspath(named)
    if isinstance(path, list | tuple) and all(isinstance(part, str | os.PathLike) for part in path):
        return [str(_checked_path(part, filesystem)) for part in path]
    rule = "must be a file, a folder or a list of files"
    raise DeclarationError(f"path {rule}, got {a_type(path)}.", parameter="path")


class ParquetFiles(FileSource):
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

    door = "parquet"

    def __init__(self, path: Paths, filesystem: Any = None) -> None:
        require_arrow("reading Parquet files")
        self._path = _checked_path(path, filesystem)
        self._asked = filesystem
        self.parts: list[File] = []
        self._kinds = _Kinds([])
        self._seen: dict[Hashable, File] = {}
        self._layouts: dict[tuple[Any, int], batches.FileLayout] = {}

    def refresh(self) -> None:
        """Look again which files there are, and read the footers of those that are new."""
        try:
            filesystem, path = manifest.resolve(self._path, self._asked)
            infos = manifest.list_files(filesystem, path)
            self.partsystem = filesystem
            self._is_distant = filesystem.type_name not in manifest.LOCAL
            files = self._read_footers(infos)
            if files != self.parts:
                self.parts, self._kinds = files, _Kinds(files)
        except DeclarationError:
            raise
        except FileNotFoundError:
            raise self._refusal("Parquet files", ", where there is no such file") from None
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            raise self._refusal("Parquet files", ": they cannot be read as such") from error
        self.files = manifest.check_read_once(file.identity for file in self.parts)
        if not self.parts:
            raise self._refusal("Parquet files", ", where there are none")
        self.schema, self.folders = self._kinds.schema, self._kinds.folders
        self.attrs = {key: value for file in self.parts for key, value in file.attrs.items()}

    def _read_footers(self, infos: Sequence[Any]) -> list[File]:
        """Return all files; read footers of those that were not seen before, or have changed."""
        now = time.time_ns()
        keys = [_key_of(info, now) for info in infos]
        new = [info for info, key in zip(infos, keys, strict=True) if key not in self._seen]
        if self._is_distant:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                read = pool.map(self._read_footer, new)
        else:
            read = map(self._read_footer, new)
        files = [self._seen[key] if key in self._seen else next(read) for key in keys]
        self._seen = {key: file for key, file in zip(keys, files, strict=True) if key is not None}
        return files

    def _read_footer(self, info: Any) -> File:
        """Read the footer of a file."""
        # slow to import, and not always needed
        import pyarrow.parquet as pq

        path = info.path
        try:
            with self.partsystem.open_input_file(path) as source:
                reader = pq.ParquetFile(source)
                schema = reader.schema_arrow
                attrs = attrs_of(schema.metadata)
                identity = manifest.identify_file(path, self.partsystem)
                footer = reader.metadata
                rows, size = footer.num_rows, footer.serialized_size
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            state = "cannot be read as one" if info.size else "is empty"
            text = f"path must name Parquet files, got {path}, which {state}."
            raise DeclarationError(text, parameter="path") from error
        kept = footer if size <= _FOOTER_BYTES else None
        # that of fields is not compared
        schema = schema.remove_metadata()
        # files with equal columns share a layout
        key = schema, footer.num_columns
        layout = self._layouts.get(key) or batches.FileLayout.of_footer(footer, schema)
        layout = self._layouts.setdefault(key, layout)
        return File(path, info.size, identity, _folders(path), layout, kept, rows, attrs)

    def _refusal(self, rule: str, reason: str) -> DeclarationError:
        text = f"path must name {rule}, got {self}{reason}."
        return DeclarationError(text, parameter="path")

    def check(self, labels: Sequence[str]) -> None:
        """Check that every file has some columns, in types that can be joined."""
        self._kinds.check(labels)

    @property
    def named(self) -> frozenset[str]:
        """Columns that folders alone say."""
        return self.folders

    def said(self, label: str) -> pd.Categorical:
        """List what folders say of the files."""
        texts = pa.array([file.folders.get(label) for file in self.parts], pa.string())
        return folder_values(pa.chunked_array([texts]))

    def stored_bytes(self, labels: Sequence[str]) -> int:
        """Estimate how many bytes some columns have, as they are stored, by some of the files."""
        sample = self.parts[:: -(-len(self.parts) // _ASKED_FOR_SIZES)]
        # of a footer that is too long to keep, all columns are taken for alike
        stored = [
            file.size * len(labels) / max(len(file.schema), 1)
            if file.footer is None
            else batches.stored_bytes(file.footer, file.layout, labels)
            for file in sample
        ]
        part = sum(stored) / sum(file.size for file in sample)
        return int(part * sum(file.size for file in self.parts))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for."""
        return type(self), (self._path, self._asked)

    def __repr__(self) -> str:
        """Show the path, without a password that it may hold."""
        return re.sub(r"//[^/@]*@", "//...@", repr(self._path))

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns of every file, several at once, as tables of no more than some rows."""
        fields = [self.schema.field(label) for label in labels]
        coded = self._coded([field.name for field in fields if field.type in _TEXTS])
        for place, field in enumerate(fields):
            if field.name in coded:
                fields[place] = field.with_type(pa.dictionary(pa.int32(), field.type))
        schema = pa.schema(fields)
        yield from begun_ahead(
            (
                ((table for file in files for table in self._read(file, schema, rows)), size)
                for files, size in self._parts()
            ),
            enough=lambda tables: sum(table.nbytes for table in tables) >= _BYTES_BEGUN,
            limits=(_LEAST_AT_ONCE, _AT_ONCE, _BYTES_AHEAD) if self._is_distant else (2, 1, 0),
        )

    def _coded(self, labels: list[str]) -> set[str]:
        """Return those columns of texts that all files store as codes, which need no decoding."""
        left = {*labels}
        for file in self.parts:
            if left and file.rows:
                candidates = left if file.footer is not None else ()
                left &= {*file.layout.coded_columns(file.footer, candidates)}
        return left

    def _parts(self) -> Iterator[tuple[list[File], int]]:
        """Put small files together, whose reading is not worth a task; with their size."""
        files: list[File] = []
        size = 0
        for file in self.parts:
            files.append(file)
            size += file.size
            if self._is_distant or size >= _BYTES_TOGETHER:
                yield files, size
                files, size = [], 0
        if files:
            yield files, size

    def _read(self, file: File, schema: Any, rows: int) -> Iterator[Any]:
        """Read some columns of a file."""
        # slow to import, and not always needed
        import pyarrow.parquet as pq

        names = {*file.schema.names}
        inside = [label for label in schema.names if label in names]
        with self.partsystem.open_input_file(file.path) as source:
            footer = file.footer
            as_seen = source.size() == file.size
            if footer is None:
                reader = pq.ParquetFile(source)
                footer = reader.metadata
                stored = reader.schema_arrow.remove_metadata(), footer.num_rows
                as_seen = as_seen and stored == (file.schema, file.rows)
            if not as_seen:
                raise ReleaseError("a file changed while it was read")
            distant = self._is_distant
            read = batches.batches_of(source, footer, file.layout, inside, rows, distant=distant)
            for batch in read:
                yield _complete_columns(batch, file, schema)
