"""Text files as a source of rows: where they are, and what is public about their columns."""

import os
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dpframe.columns import pa, require_arrow
from dpframe.declaration.from_pandera import is_schema, kinds_of_cells, optional_columns
from dpframe.engines.batches import plain_array, plain_type
from dpframe.engines.pandas import FileSource, check_columns, check_readable, fragments_of, refusal
from dpframe.errors import DeclarationError, UnknownColumnError
from dpframe.sources.cells import Dialect
from dpframe.sources.text import ID, TYPES, Tally, TextReader, open_text, type_from_arrow, type_of

_NO_TEXT = {*".parquet .pq .feather .arrow .ipc .orc .xlsx .xls .gz .zip".split(), ""}
"""Suffixes of files that are not lines of text; a folder has none."""


class TextFile(NamedTuple):
    """A text file.

    Parameters
    ----------
    path
        Where it is.
    filesystem
        A file system of pyarrow; `None`: the disks of this machine.
    folders
        What folders say of it, as scalars of Arrow by label.
    """

    path: str
    filesystem: Any = None
    folders: Mapping[str, Any] = {}

    @contextmanager
    def opened(self, dialect: Dialect) -> Iterator[TextReader]:
        """Read the header."""
        stream = self.filesystem and self.filesystem.open_input_stream(self.path)
        with stream or open_text(Path(self.path)) as file:
            yield TextReader(file, dialect, self.path)


class TextFiles(FileSource):
    """Text files that are written alike, and have the same columns.

    Parameters
    ----------
    files
        The files.
    types
        What columns hold, by label: one of `TYPES`. Other columns are not read.
    dialect
        How the files are written.
    schema
        The types that cells are cast to; `None`: those that hold them.
    """

    door = "text"

    def __init__(
        self,
        files: Sequence[TextFile],
        types: Mapping[str, str | None],
        dialect: Dialect,
        schema: Any = None,
    ) -> None:
        require_arrow("reading text files")
        self.parts, self.types, self.dialect = list(files), {**types}, dialect
        self.attrs, self.text = {}, repr(dialect)
        typed = [(label, type_of(kind)) for label, kind in types.items()]
        self.schema = pa.schema(typed) if schema is None else schema

    def check(self, labels: Sequence[str]) -> None:
        """Check that every file has some columns, each once."""
        for file in self.parts:
            header = check_readable(partial(self._header, file), self)
            lacking = [name for name in labels if name not in header and name not in file.folders]
            if lacking:
                raise self._lacks(file.path, header, lacking[0])
            held = pa.schema([(name, pa.null()) for name in header])
            check_columns(file.path, held, file.folders, labels, self.schema)

    def headers(self) -> list[str]:
        """Return the labels in all files; where there is no header, they are private cells."""
        return [label for file in self.parts for label in self._header(file)]

    def _header(self, file: TextFile) -> list[str]:
        with file.opened(self.dialect) as reader:
            return reader.labels

    def _lacks(self, path: str, header: Sequence[str], label: Hashable) -> UnknownColumnError:
        """Say that a file has no column; of a line without any known one no cell is quoted."""
        if self.types.keys().isdisjoint(header):
            hint = f"The first line has {len(header)} cells: is it the header, with"
            hint = f"{hint} {self.dialect.separator!r} between the names? It is not shown, since it"
            hint = f"{hint} may be a private row."
        elif near := get_close_matches(str(label), header, n=1):
            hint = f"Did you mean {near[0]!r}?"
        else:
            hint = "Each file must have all columns."
        return UnknownColumnError(f"{path} has no column {label!r}. {hint}", label=label)

    def batches(self, labels: Sequence[str], rows: int) -> Iterator[Any]:
        """Read some columns of all files, in their order."""
        yield from self.fitted(self._read, labels, rows, _cast_cells)

    def _read(self, labels: Sequence[str]) -> Iterator[Any]:
        self.tally = Tally()
        for file in self.parts:
            types = {label: self.types[label] for label in labels if label not in file.folders}
            with file.opened(self.dialect) as reader:
                for batch in reader.batches(types, self.tally):
                    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                    for label in set(labels) - set(types):
                        columns[label] = pa.repeat(file.folders[label], batch.num_rows)
                    yield pa.RecordBatch.from_pydict(columns)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was asked for."""
        return type(self), (self.parts, self.types, self.dialect, self.schema)

    def __repr__(self) -> str:
        """Show the paths."""
        return ", ".join(file.path for file in self.parts)


def _cast_cells(cells: Any, kind: Any) -> Any:
    """Cast cells one by one: one that cannot be cast is missing, and changes no other."""
    try:
        return plain_array(cells, kind)
    except pa.ArrowInvalid:
        if len(cells) == 1:
            return pa.nulls(1, kind)
        half = len(cells) // 2
        return pa.concat_arrays([_cast_cells(cells[:half], kind), _cast_cells(cells[half:], kind)])


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
    UnknownColumnError
        If a file lacks one of the columns, or has two of a label.
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
    kinds = _checked(types)
    optional = frozenset() if isinstance(types, Mapping) else optional_columns(types)
    return open_columns(paths, kinds, dialect, optional)


def open_columns(
    paths: Sequence[Path],
    types: Mapping[str, str | None],
    dialect: Dialect,
    optional: Collection[Hashable],
) -> TextFiles:
    """Open text files that have some columns, and may have others; of none, the first is read."""
    named = [TextFile(str(path)) for path in paths]
    files = TextFiles(named, types, dialect)
    if not types or not types.keys().isdisjoint(optional):
        present = check_readable(files.headers, files)
        kept = {
            name: kind for name, kind in types.items() if name in present or name not in optional
        }
        files = TextFiles(named, kept or {present[0]: ID}, dialect)
    files.refresh()
    files.check([*files.types])
    return files


def _no_types(paths: Sequence[Path]) -> DeclarationError:
    """Say that types are missing, or that others open such files."""
    if any(path.suffix.lower() in _NO_TEXT or path.is_dir() for path in paths):
        hint = "dpf.scan_parquet(path) opens Parquet files, pyarrow.dataset.dataset(path) others."
        text = f"source must hold rows, not name them, unless they are in text files. {hint}"
        return DeclarationError(text, parameter="source")
    such = 'types={"zone": "string", "fare": "float64"}'
    rule = "types must say what the columns of a text file hold, or one cell decides on others"
    return DeclarationError(f"{rule}: {such}, or a pandera schema.", parameter="types")


def _checked(types: Any) -> Mapping[str, str]:
    """Check what columns hold."""
    if not (isinstance(types, Mapping) or is_schema(types)):
        rule = "must be a dict of types by label, or a pandera schema"
        raise DeclarationError.about("types", rule, types, 'Such as types={"fare": "float64"}.')
    kinds: Mapping[Any, Any] = types if isinstance(types, Mapping) else kinds_of_cells(types)
    if not kinds:
        raise DeclarationError.about("types", "must name a column", types)
    for label, kind in kinds.items():
        if not isinstance(label, str):
            raise DeclarationError.about("types", "must have texts as labels", label)
        if not isinstance(kind, str) or kind not in TYPES:
            rule = f"must be one of {', '.join(TYPES)}"
            raise DeclarationError.about("types", rule, kind, label=label)
    return kinds


def text_dataset(dataset: Any) -> TextFiles:
    """Open the files of a CSV dataset of pyarrow, of which every cell is read by itself."""
    parts = fragments_of(dataset, ["csv"])
    files = [TextFile(part.path, dataset.filesystem, part.folders) for part in parts]
    folders = {label for part in parts for label in part.folders}
    fields = [field for field in dataset.schema if field.name not in folders]
    types = {field.name: _type_of_cells(dataset, field) for field in fields}
    schema = pa.schema([(field.name, plain_type(field.type)) for field in dataset.schema])
    return TextFiles(files, types, _dialect_of(dataset), schema)


_DEFAULTS_OF_CSV = {
    "parse_options": ("quote_char", "double_quote", "escape_char", "ignore_empty_lines"),
    "read_options": (
        "skip_rows", "skip_rows_after_names", "column_names", "autogenerate_column_names",
    ),
    "convert_options": ("quoted_strings_can_be_null",),
}  # fmt: skip
"""Options of pyarrow that the reader of text files has not, by what holds them."""


def _dialect_of(source: Any) -> Dialect:
    """Return how the files of a CSV dataset are written."""
    # slow to import, and not always needed
    import pyarrow.csv as pa_csv

    scanned = source.format.default_fragment_scan_options
    split, read, convert = (
        source.format.parse_options,
        scanned.read_options,
        scanned.convert_options,
    )
    options_read = {"parse_options": split, "read_options": read, "convert_options": convert}
    plain = {
        "parse_options": pa_csv.ParseOptions(),
        "read_options": pa_csv.ReadOptions(),
        "convert_options": pa_csv.ConvertOptions(),
    }
    for options, names in _DEFAULTS_OF_CSV.items():
        for name in names:
            if getattr(options_read[options], name) != getattr(plain[options], name):
                hint = "Write the files with a header, and with quotes that are doubled in quotes."
                raise refusal(source, f"must be CSV with the default of {name} in {options}", hint)
    words = convert.null_values if convert.strings_can_be_null else []
    if not words and convert.null_values != plain["convert_options"].null_values:
        rule = "must be CSV with strings_can_be_null=True beside null_values"
        raise refusal(source, rule, "They are missing in all columns, or in none.")
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


def _type_of_cells(dataset: Any, field: Any) -> str:
    """Say how the cells of a column of a CSV dataset are read."""
    options = dataset.format.default_fragment_scan_options.convert_options
    kind = type_from_arrow(plain_type(field.type))
    if field.name in options.column_types and kind is not None:
        return kind
    state = "has none" if kind else f"is {field.type}, which is not read from text"
    raise refusal(
        dataset,
        "must have a type for every column of CSV files, or one cell decides on others",
        f"{field.name!r} {state}. Make the dataset with schema= and format=pyarrow.dataset."
        "CsvFileFormat(convert_options=pyarrow.csv.ConvertOptions(column_types={...})), or "
        "pass the paths to dpf.scan with types=.",
    )
