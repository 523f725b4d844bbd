"""Text files as a source of rows: where they are, and what is public about their columns."""

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self

from dpframe.columns.arrow import pa
from dpframe.declaration.from_pandera import is_schema, kinds_of_cells, optional_columns
from dpframe.engines.batches import fitted_tables
from dpframe.engines.sources import check_readable, repeated_column
from dpframe.errors import DeclarationError, DPFrameError, UnknownColumnError, pip_install
from dpframe.queries.where import Condition
from dpframe.sources.dialect import Dialect
from dpframe.sources.manifest import FileId, check_read_once, identify_file
from dpframe.sources.text import TYPES, Tally, TextReader, open_text, type_of

_NO_TEXT = {
    ".parquet",
    ".pq",
    ".feather",
    ".arrow",
    ".ipc",
    ".orc",
    ".xlsx",
    ".xls",
    ".gz",
    ".zip",
    "",
}
"""Suffixes of files that are not lines of text; a folder has none."""


class TextFiles:
    """Text files that are written alike, and have the same columns.

    Parameters
    ----------
    paths
        Where they are.
    types
        What columns hold, by label: one of `TYPES`. Other columns are not read.
    dialect
        How the files are written.

    """

    door = "text"
    opaque = False
    folders: frozenset[str] = frozenset()

    def __init__(self, paths: Sequence[Path], types: Mapping[str, str], dialect: Dialect) -> None:
        if pa is None:
            raise DPFrameError(f"Text files need pyarrow: {pip_install('parquet')}.")
        self.paths, self.types, self.dialect = tuple(paths), dict(types), dialect
        self.attrs: dict[str, Any] = {}
        self.schema = pa.schema([(label, type_of(kind)) for label, kind in types.items()])
        self.files: tuple[FileId, ...] | None = None
        self.text: str | None = repr(dialect)
        self.tally = Tally()
        """What the last reading left out; private."""
        self._loaded: Any = None

    @property
    def rows(self) -> int | None:
        """How many rows there are, where they are in memory."""
        return None if self._loaded is None else self._loaded.num_rows

    def refresh(self) -> None:
        """Look whether every file is there once, and has the columns, each once."""
        named = check_readable(lambda: [identify_file(str(path)) for path in self.paths], self)
        self.files = check_read_once(named, "source")
        for path, present in check_readable(self.headers, self).items():
            for label in self.types:
                if label not in present:
                    mark = self.dialect.separator
                    rule = f"its first line must be names, with {mark!r} between them"
                    text = f"{path} has no column {label!r}: {rule}."
                    raise UnknownColumnError(text, label=label)
                if present.count(label) > 1:
                    raise repeated_column(str(path), label)

    def headers(self) -> dict[Path, list[Hashable]]:
        """Return the labels in each file; where there is no header, they are private cells."""
        return {path: [*self._labels(path)] for path in self.paths}

    def check(self, labels: Sequence[str]) -> None:
        """Every file has the columns, or could not be opened."""

    def where(self, conditions: Sequence[Condition | None]) -> Self:
        """Every file may have a row of any kind."""
        return self

    def load(self) -> None:
        """Read the rows into memory, so that no damaged file ends a release."""
        self._loaded = pa.Table.from_batches(self._read(list(self.types)), self.schema)

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns; of none, the first, so that rows are counted."""
        labels = labels or list(self.types)[:1]
        schema = pa.schema([self.schema.field(label) for label in labels])
        if self._loaded is None:
            batches = self._read(labels)
        else:
            batches = iter(self._loaded.select(labels).to_batches())
        yield from fitted_tables(batches, schema, rows)

    def _read(self, labels: Sequence[str]) -> Iterator[Any]:
        self.tally = Tally()
        types = {label: self.types[label] for label in labels}
        for path in self.paths:
            with self._opened(path) as reader:
                yield from reader.batches(types, self.tally)

    def _labels(self, path: Path) -> list[str]:
        with self._opened(path) as reader:
            return reader.labels

    @contextmanager
    def _opened(self, path: Path) -> Iterator[TextReader]:
        with open_text(path) as file:
            yield TextReader(file, self.dialect, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for, and no row."""
        return type(self), (self.paths, self.types, self.dialect)

    def __repr__(self) -> str:
        """Show the paths."""
        return ", ".join(map(str, self.paths))


def text_files(source: Any, types: Any, dialect: Dialect) -> TextFiles:
    """Open text files.

    Parameters
    ----------
    source
        A path, or a list of paths.
    types
        What columns hold: one of `TYPES` by label, or a pandera schema.
    dialect
        How the files are written.

    Raises
    ------
    DeclarationError
        If there are no such files, or it is not said what their columns hold.
    """
    sources = source if isinstance(source, list | tuple) else [source]
    if not sources or not all(isinstance(path, str | os.PathLike) for path in sources):
        raise DeclarationError.about("source", "must be a path or a list of paths", source)
    paths = [Path(path) for path in sources]
    if types is None:
        raise _no_types(paths)
    for path in paths:
        if not path.is_file():
            raise DeclarationError.about("source", "must name a file that exists", str(path))
    files = TextFiles(paths, _checked(types), dialect)
    optional = frozenset() if isinstance(types, Mapping) else optional_columns(types)
    if optional.isdisjoint(files.types):
        return files
    present = {*chain(*check_readable(files.headers, files).values())}
    kept = {label: kind for label, kind in files.types.items() if label not in optional - present}
    return TextFiles(paths, kept, dialect)


def _no_types(paths: Sequence[Path]) -> DeclarationError:
    """Say that types are missing, or that others open such files."""
    if any(path.suffix.lower() in _NO_TEXT or path.is_dir() for path in paths):
        way = "dpf.scan_parquet(path) opens Parquet files, pyarrow.dataset.dataset(path) others."
        text = f"source must hold rows, not name them, unless they are in text files. {way}"
        return DeclarationError(text, parameter="source")
    such = 'types={"zone": "string", "fare": "float64"}'
    rule = "types must say what the columns of a text file hold, or one cell decides on others"
    return DeclarationError(f"{rule}: {such}, or a pandera schema.", parameter="types")


def _of_schema(schema: Any) -> Mapping[Any, Any]:
    """Say what a pandera schema says of cells."""
    if not is_schema(schema):
        rule = "must be a dict of types by label, or a pandera schema"
        raise DeclarationError.about("types", rule, schema, 'Such as types={"fare": "float64"}.')
    return kinds_of_cells(schema)


def _checked(types: Any) -> Mapping[str, str]:
    """Check what columns hold."""
    kinds: Mapping[Any, Any] = types if isinstance(types, Mapping) else _of_schema(types)
    if not kinds:
        raise DeclarationError.about("types", "must name a column", types)
    for label, kind in kinds.items():
        if not isinstance(label, str):
            raise DeclarationError.about("types", "must have texts as labels", label)
        if not isinstance(kind, str) or kind not in TYPES:
            rule = f"must be one of {', '.join(TYPES)}"
            raise DeclarationError.about("types", rule, kind, label=label)
    return kinds
