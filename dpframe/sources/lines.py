"""Lines of a text file, each of them a row by itself.

A reader of CSV that meets a quote takes all that follows for text, up to the next quote: one cell
of one person swallows rows of others. Here a line that is no row by itself is left out and counted,
and moves no other line.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

import numpy as np

LONGEST_LINE = 1 << 19
"""Bytes of the longest line that is a row: it is cut into cells within one block of memory."""

_BLOCK = 1 << 22  # bytes read at once
_FIRST_BLOCK = 1 << 13  # bytes: a preview reads the header, and few rows
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
        self._block = _BLOCK
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
        while data := self._file.read(_BLOCK):
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
        self._opens[bounds[1:][self._unclosed] - 1] = False  # each line begins outside of quotes

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
