"""Parquet files: where they are, what their folders say of their rows, what is in their footers."""

import json
import os
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

try:
    import pyarrow as pa
except ImportError:  # an optional dependency
    pa = None

__all__ = ["File", "files_at", "joined_schema", "place_of", "schema_of"]

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


def files_at(path: str | list[str], filesystem: Any) -> tuple[Any, list[File]]:
    """Find files and read their footers."""
    import pyarrow.dataset as ds  # slow to import, and not always needed
    import pyarrow.parquet as pq

    nothing = pa.schema([])
    found = ds.dataset(path, nothing, "parquet", filesystem=filesystem)

    def read(name: str) -> File:
        with found.filesystem.open_input_file(name) as source:
            footer = pq.ParquetFile(source)
            rows = footer.metadata.num_rows
            return File(name, _folders(name), schema_of(footer), rows, _attrs_of(footer))

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
    schema = pa.unify_schemas([first, *different]) if different else first
    named = dict.fromkeys(name for file in files for name in file.partitions)
    partitions = [name for name in named if name not in schema.names]
    for name in partitions:
        schema = schema.append(pa.field(name, pa.string()))
    return schema, frozenset(partitions)
