"""The one reader of text files: lines, cut into cells, each read as its column's public kind."""

import codecs
import csv
import gzip
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpframe.columns import pa
from dpframe.errors import DeclarationError
from dpframe.sources.cells import FLOAT, INTEGER, KINDS, STRING, Dialect, read_cells

LONGEST_LINE = 1 << 19
"""Bytes of the longest line that is a row: it is cut into cells within one block of memory."""

# bytes read at once
_LINES_BLOCK = 1 << 22
# bytes: a preview reads the header, and few rows
_FIRST_BLOCK = 1 << 13
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'


class ByteStream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Read as many bytes, fewer at the end, and then none."""


class Lines:
    """The lines of a file that are rows.

    A row has as many cells as the first line. A cell in quotes may hold separators, and quotes
    that are doubled. Empty lines are no rows, and are not counted.

    Parameters
    ----------
    file
        The file, from its first line on.
    separator
        The byte between two cells.
    newlines
        Whether a cell in quotes may hold line ends. The writer is trusted then: a quote that is
        not closed swallows rows.
    """

    def __init__(self, file: ByteStream, separator: bytes, *, newlines: bool = False) -> None:
        self._file, self._separator, self._newlines = file, separator, newlines
        self.left_out = 0
        """How many lines were left out so far; private."""
        self._rest = b""  # what is read, and no whole line yet
        self._block = _FIRST_BLOCK
        self._first = self._read()
        while self._first.startswith((b"\n", b"\r\n")):
            self._first = self._first.partition(b"\n")[2] or self._read()
        ends = self._row_ends(self._first)
        size = ends[0] + 1 if len(ends) else 0
        self.header = self._first[:size].rstrip(b"\r\n")
        """The first line that is not empty."""
        self._first = self._first[size:]

    def is_row(self, line: bytes, width: int) -> bool:
        """Tell whether a line by itself is a row of some number of cells."""
        return _row_pattern(self._separator, width).fullmatch(line) is not None

    def blocks(self, width: int) -> Iterator[bytes]:
        """Give the lines behind the header that are rows of some number of cells."""
        self._block = _LINES_BLOCK
        piece, self._first = self._first or self._read(), b""
        while piece:
            if rows := self._rows_of(piece, width):
                yield rows
            piece = self._read()

    def _read(self) -> bytes:
        """Read whole lines; at the end of the file there are none."""
        while data := self._file.read(self._block):
            data = self._rest + data
            size = self._last_end(data)
            self._rest = data[size:]
            if len(self._rest) > LONGEST_LINE:
                self._skip_line()
            if size:
                return data[:size]
        last, self._rest = self._rest and self._rest + b"\n", b""
        size = self._last_end(last)
        self.left_out += size < len(last)  # a quote is not closed
        return last[:size]

    def _skip_line(self) -> None:
        """Leave out the line that was read in part."""
        self.left_out += 1
        quotes = self._rest.count(b'"')
        self._rest = b""
        while data := self._file.read(_LINES_BLOCK):
            ends = self._row_ends(data, quotes)
            if len(ends):
                self._rest = data[ends[0] + 1 :]
                return
            quotes += data.count(b'"')

    def _last_end(self, data: bytes) -> int:
        """Count the bytes up to the last line end."""
        ends = self._row_ends(data)
        return int(ends[-1]) + 1 if len(ends) else 0

    def _row_ends(self, data: bytes, quotes: int = 0) -> np.ndarray:
        """Find line ends behind some number of quotes, but for those within a cell."""
        array = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(array == _NEWLINE)
        if not self._newlines:
            return ends
        before = np.searchsorted(np.flatnonzero(array == _QUOTE), ends)
        rows: np.ndarray = ends[(before + quotes) % 2 == 0]
        return rows

    def _rows_of(self, data: bytes, width: int) -> bytes:
        """Leave out the lines that are no rows."""
        marks = _Marks(data, self._row_ends(data), ord(self._separator))
        starts, ends = marks.starts, marks.ends
        long = ends - starts > LONGEST_LINE
        odd = long | (marks.count_cells() != width)
        doubtful = marks.in_doubt()
        for place in np.flatnonzero(doubtful & ~long):
            line = data[starts[place] : ends[place]].removesuffix(b"\r")
            odd[place] = not self.is_row(line, width)
        returns = marks.lone_returns()
        if self._newlines:  # in a cell in quotes they are text
            line_of = marks.line_of(returns)
            returns = returns[~marks.in_quotes(returns) | doubtful[line_of]]
        odd[marks.line_of(returns)] = True
        empty = (starts == ends) | ((starts + 1 == ends) & (marks.array[starts] == _RETURN))
        self.left_out += int((odd & ~empty).sum())
        kept = ~(odd | empty)
        if kept.all():
            return data
        return bytes(marks.array[np.repeat(kept, ends + 1 - starts)])


class _Marks:
    """Where lines, cells and quotes begin and end in some lines.

    Parameters
    ----------
    data
        The lines, each with its end.
    ends
        Where they end.
    separator
        The byte between two cells.
    """

    def __init__(self, data: bytes, ends: np.ndarray, separator: int) -> None:
        self.array = np.frombuffer(data, np.uint8)
        self.starts, self.ends = np.concatenate([[0], ends[:-1] + 1]), ends
        self._separator = separator
        self._quotes = np.flatnonzero(self.array == _QUOTE)
        bounds = np.append(np.searchsorted(self._quotes, self.starts), len(self._quotes))
        counts = np.diff(bounds)
        places = np.arange(len(self._quotes)) - np.repeat(bounds[:-1], counts)
        self._opens = places % 2 == 0
        self._unclosed = counts % 2 == 1
        # each line begins outside of quotes
        self._opens[bounds[1:][self._unclosed] - 1] = False

    def line_of(self, places: np.ndarray) -> np.ndarray:
        """Tell which lines some places are in."""
        return np.searchsorted(self.ends, places)

    def in_quotes(self, places: np.ndarray) -> np.ndarray:
        """Tell which places are behind a quote that opens."""
        last = np.searchsorted(self._quotes, places) - 1
        opened: np.ndarray = np.append(self._opens, False)[last]
        return opened

    def count_cells(self) -> np.ndarray:
        """Count the cells of each line."""
        separators = np.flatnonzero(self.array == self._separator)
        if len(self._quotes):
            separators = separators[~self.in_quotes(separators)]
        bounds = np.searchsorted(separators, np.append(self.starts, len(self.array)))
        return np.diff(bounds) + 1

    def in_doubt(self) -> np.ndarray:
        """Tell which lines have a quote that neither begins nor ends a cell, or one not closed."""
        # before the first byte is the last one, which ends a line
        beside = self.array[self._quotes + np.where(self._opens, -1, 1)]
        plain = np.zeros(256, bool)
        plain[[self._separator, _QUOTE, _NEWLINE, _RETURN]] = True
        doubtful: np.ndarray = self._unclosed.copy()
        doubtful[self.line_of(self._quotes[~plain[beside]])] = True
        return doubtful

    def lone_returns(self) -> np.ndarray:
        """Find the carriage returns that are no part of a line end: pyarrow ends a row there."""
        returns = np.flatnonzero(self.array == _RETURN)
        lone: np.ndarray = returns[self.array[returns + 1] != _NEWLINE]
        return lone


@lru_cache(maxsize=64)
def _row_pattern(separator: bytes, width: int) -> re.Pattern[bytes]:
    """Describe a row: quotes are closed, and count at the begin of a cell alone."""
    mark = re.escape(separator)
    cell = rb'(?:"(?:[^"]|"")*+"[^%b\n]*+|[^"%b\n][^%b\n]*+|)' % (mark, mark, mark)
    return re.compile(rb"%b(?:%b%b){%d}" % (cell, mark, cell, width - 1))


ID = "id"
"""The kind of ids: their bytes as they are, of any encoding."""

TYPES = (*KINDS, ID)
"""What columns of text files may hold."""

_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# bytes that are cut into cells by one thread
_BLOCK = 2 * LONGEST_LINE


@dataclass(slots=True)
class Tally:
    """What of a text file was not read; private, for the curator alone."""

    lines: int = 0  # lines that are no rows
    # not of the kind of their column, by label
    cells: dict[str, int] = field(default_factory=dict)

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
    # which are wider than int64, or rounded twice
    if kind == pa.uint64() or kind == pa.float16():
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
        # slow to import, and not always needed
        from pyarrow import csv as pa_csv

        names = [str(place) for place in range(len(self.labels))]
        chosen = [names[place] for place in places]
        # of a cell: pyarrow takes one for the file's
        if rows.startswith(_BYTE_ORDER_MARK):
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
