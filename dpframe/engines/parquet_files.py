"""Parquet files: where they are, what their folders say of their rows, what is in their footers."""

import json
import os
import re
from collections.abc import Collection, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd

from dpframe.columns.arrow import pa
from dpframe.errors import DeclarationError, UnknownColumnError, a_type

_FOOTERS = 16  # read at once: what takes long is to wait for a distant file
_LOCAL = ("local", "py::fsspec+file", "py::fsspec+local", "py::fsspec+('file', 'local')")
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


def files_at(path: str | list[str], filesystem: Any) -> tuple[Any, list[File]]:
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
                return File(name, _folders(name), schema_of(footer), rows, _attrs_of(footer))
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            raise DeclarationError(
                f"path must name Parquet files, got {name}, which cannot be read as one.",
                parameter="path",
            ) from error

    with ThreadPoolExecutor(_FOOTERS) as pool:
        return found.filesystem, list(pool.map(read, found.files))


def _attrs_of(footer: Any) -> dict[str, Any]:
    """Return the attrs that pandas wrote; a ValueError if they are damaged."""
    try:
        attrs = json.loads((footer.schema_arrow.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
    except RecursionError:
        raise ValueError("attrs are nested too deeply") from None
    if not isinstance(attrs, dict):
        raise ValueError("attrs are not an object")  # noqa: TRY004  # of a file, not an argument
    return attrs


def schema_of(footer: Any) -> Any:
    """Return names and types of the columns of a file."""
    return pa.schema([field.remove_metadata() for field in footer.schema_arrow])


def place_of(filesystem: Any, path: str) -> Hashable:
    """Tell where a file is: on a local disk, links to it are at the same place."""
    if filesystem.type_name == "subtree":
        return place_of(filesystem.base_fs, filesystem.base_path + path)
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


def joined_schema(files: Sequence[File]) -> tuple[Any, frozenset[str]]:
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


def check_present(
    files: Sequence[File], schema: Any, partitions: Collection[str], labels: Iterable[Hashable]
) -> None:
    """Check that every file has some columns, whose rows would be lost without a word.

    What folders alone say is missing where no folder says it.

    Parameters
    ----------
    files, schema, partitions
        The files, and their columns as `joined_schema` gives them.
    labels
        The columns, each of which some file has.

    Raises
    ------
    UnknownColumnError
        If a file does not have one of them.
    """
    inside = [label for label in labels if label not in partitions]
    for file in files:
        names = set(file.schema.names)
        for label in inside:
            in_folder = label in file.partitions and schema.field(label).type == pa.string()
            if label not in names and not in_folder:
                raise UnknownColumnError(
                    f"{file.path} has no column {label!r}, which other files have: its rows would "
                    "be lost. Write the column there (null where it is not known), or leave the "
                    "file out."
                )


def plain(kind: Any) -> Any:
    """Choose the type that a column is read as."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type)
    known = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return known.get(kind, kind)  # few functions know views


def complete_columns(batch: Any, file: File, wanted: Any) -> Any:
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


def of_folders(column: Any) -> pd.Categorical:
    """View the values in names of folders as numbers where they are, and else as texts."""
    encoded = column.combine_chunks().dictionary_encode()
    found = [_number_or_text(text) for text in encoded.dictionary.to_pylist()]
    places = {value: place for place, value in enumerate(dict.fromkeys(found))}
    table = np.array([*map(places.__getitem__, found), -1])
    codes = table[encoded.indices.fill_null(len(found)).to_numpy()]
    return pd.Categorical.from_codes(codes, pd.Index(list(places), dtype=object))


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def checked_path(path: Any, filesystem: Any) -> str | list[str]:
    """Check that a path is one, or a list of some, and note where it leads to from here."""
    if isinstance(path, str | os.PathLike):
        named = os.fspath(path)
        return named if filesystem is not None or "://" in named else os.path.abspath(named)
    if isinstance(path, list | tuple) and all(isinstance(one, str | os.PathLike) for one in path):
        return [str(checked_path(one, filesystem)) for one in path]
    raise DeclarationError(
        f"path must be a file, a folder or a list of files, got {a_type(path)}.", parameter="path"
    )


def checked_rows(rows: Any) -> int:
    """Check a number of rows."""
    whole = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
    if not whole or not 1 <= rows <= _MOST_ROWS:
        raise DeclarationError.about("batch_rows", "must be an integer from 1 to 2**31 - 1", rows)
    return int(rows)


def checked_folder(folder: Any) -> str | None:
    """Check that a folder is there and can be written to."""
    if folder is None:
        return None
    if isinstance(folder, str | os.PathLike) and os.path.isdir(folder):
        if os.access(folder, os.W_OK | os.X_OK):
            return os.path.abspath(folder)
    raise DeclarationError.about(
        "spill_folder", "must be a folder that exists and can be written to", folder
    )
