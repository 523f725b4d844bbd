"""The one reader of text files: lines, cut into cells, each read as its column's public kind."""

import codecs
import csv
import gzip
import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpframe.columns.arrow import pa
from dpframe.errors import DeclarationError
from dpframe.sources.cells import FLOAT, INTEGER, KINDS, STRING, read_cells
from dpframe.sources.dialect import Dialect
from dpframe.sources.lines import LONGEST_LINE, ByteStream, Lines

ID = "id"
"""The kind of ids: their bytes as they are, of any encoding."""

TYPES = (*KINDS, ID)
"""What columns of text files may hold."""

_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK = 2 * LONGEST_LINE  # bytes that are cut into cells by one thread


@dataclass(slots=True)
class Tally:
    """What of a text file was not read; private, for the curator alone."""

    lines: int = 0  # lines that are no rows
    cells: dict[str, int] = field(default_factory=dict)  # not of the kind of their column, by label

    def __str__(self) -> str:
        """Say it in words; empty if there is nothing.

        Examples
        --------
        >>> print(Tally(2, {"zone": 0, "fare": 3}))
        2 lines are no rows and left out; cells not of their type: 3 of 'fare'
        """
        odd = ", ".join(f"{count:,} of {label!r}" for label, count in self.cells.items() if count)
        lines = f"{self.lines:,} lines are no rows and left out" if self.lines else ""
        cells = f"cells not of their type: {odd}" if odd else ""
        return "; ".join(filter(None, [lines, cells]))


def type_of(kind: str | None) -> Any:
    """Return the Arrow type that holds one of `TYPES`; of `None`, that of nothing."""
    if kind is None:
        return pa.null()
    return pa.binary() if kind == ID else KINDS[kind].type


def type_from_arrow(kind: Any) -> str | None:
    """Find which of `TYPES` the values of an Arrow type are read as; `None`: as none.

    Examples
    --------
    >>> type_from_arrow(pa.int8()), type_from_arrow(pa.large_string()), type_from_arrow(pa.null())
    ('int64', 'string', None)
    """
    types = pa.types
    if types.is_timestamp(kind):
        return "datetime" if kind.tz is None else "datetime-utc"
    if kind == pa.uint64() or kind == pa.float16():  # which are wider than int64, or rounded twice
        return None
    named = {
        "bool": (types.is_boolean,),
        INTEGER: (types.is_integer,),
        FLOAT: (types.is_floating,),
        "date": (types.is_date,),
        STRING: (types.is_string, types.is_large_string, types.is_string_view),
        ID: (types.is_binary, types.is_large_binary, types.is_binary_view),
    }
    return next((name for name, tests in named.items() if any(test(kind) for test in tests)), None)


@contextmanager
def open_text(path: Path) -> Iterator[ByteStream]:
    """Open a file, which may be compressed.

    Raises
    ------
    DeclarationError
        If it is an archive of several files.
    """
    with ExitStack() as stack:
        file: Any = stack.enter_context(path.open("rb"))
        if path.suffix.lower() == ".gz":
            file = stack.enter_context(gzip.open(file))
        elif path.suffix.lower() == ".zip":
            archive = stack.enter_context(zipfile.ZipFile(file))
            names = [name for name in archive.namelist() if _is_file(name)]
            if len(names) != 1:
                text = f"{path} holds {len(names)} files, where one is read: unpack it."
                raise DeclarationError(text, parameter="source")
            file = stack.enter_context(archive.open(names[0]))
        yield file


def _is_file(name: str) -> bool:
    """Tell whether something in an archive is neither a folder nor what macOS adds."""
    return not name.endswith("/") and not name.startswith("__MACOSX/")


class TextReader:
    """Reads an open text file.

    Parameters
    ----------
    file
        The file.
    dialect
        How it is written.
    name
        What errors call it.

    Raises
    ------
    DeclarationError
        If its first line is no header. It is not shown, since it may be a row.
    """

    def __init__(self, file: ByteStream, dialect: Dialect, name: object) -> None:
        self._dialect, self._name = dialect, name
        self._lines = Lines(file, dialect.separator_byte, newlines=dialect.newlines)
        self.labels = self._read_header()
        """The labels of the columns."""

    def _read_header(self) -> list[str]:
        dialect = self._dialect
        header = self._lines.header.removeprefix(_BYTE_ORDER_MARK)
        if not header:
            empty = f"{self._name} is empty: it has no header."
            raise DeclarationError(empty, parameter="source")
        if header.startswith(_WIDE_MARKS):
            raise self._refusal("is in UTF-16, which is not read by lines: convert it to UTF-8.")
        text = dialect.decode(header)
        if text is None:
            such = 'say what it is, for instance encoding = "cp1252"'
            raise self._refusal(f"has a first line that is no {dialect.encoding}: {such}.")
        try:
            (labels,) = csv.reader(
                io.StringIO(text, newline=""), delimiter=dialect.separator, strict=True
            )
        except (csv.Error, ValueError):
            labels = []
        if not labels or not self._lines.is_row(header, len(labels)):
            rule = "has a first line that is no header, since a quote in it is not closed"
            raise self._refusal(f"{rule}, or lines that end in \\r alone.")
        return labels

    def _refusal(self, rule: str) -> DeclarationError:
        shown = "(The line is not shown: it may be a private row.)"
        return DeclarationError(f"{self._name} {rule} {shown}", parameter="source")

    def batches(self, types: Mapping[str, str], tally: Tally) -> Iterator[Any]:
        """Read columns, each as one of `TYPES`, in batches; of none, the first as bytes.

        They stand in the header once.
        """
        columns_read = types or {self.labels[0]: ID}
        places = [self.labels.index(label) for label in columns_read]
        for block in self._lines.blocks(len(self.labels)):
            for batch in self._cut(block, places).to_batches():
                columns = [
                    cells if kind == ID else read_cells(kind, cells, self._dialect)
                    for kind, cells in zip(columns_read.values(), batch.columns, strict=True)
                ]
                for label, cells, column in zip(columns_read, batch.columns, columns, strict=True):
                    odd = column.null_count - cells.null_count
                    tally.cells[label] = tally.cells.get(label, 0) + odd
                yield pa.RecordBatch.from_arrays(columns, names=list(columns_read))
        tally.lines += self._lines.left_out

    def _cut(self, rows: bytes, places: list[int]) -> Any:
        """Cut rows into cells, which are bytes or missing."""
        from pyarrow import csv as pa_csv  # slow to import, and not always needed

        names = [str(place) for place in range(len(self.labels))]
        chosen = [names[place] for place in places]
        if rows.startswith(_BYTE_ORDER_MARK):  # of a cell: pyarrow takes one for the file's
            rows = _BYTE_ORDER_MARK + rows
        return pa_csv.read_csv(
            pa.BufferReader(rows),
            read_options=pa_csv.ReadOptions(column_names=names, block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(
                delimiter=self._dialect.separator, newlines_in_values=self._dialect.newlines
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=chosen,
                column_types=dict.fromkeys(chosen, pa.binary()),
                null_values=self._dialect.missing_cells,
                strings_can_be_null=True,
            ),
        )
