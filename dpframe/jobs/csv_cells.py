"""Rows and cells of a CSV file, each read by itself.

A reader that guesses what a column holds looks at all of its cells: one odd cell of one person
would change how the cells of all others are read. Here the type of a column is public, and a cell
that is not of it is missing.
"""

import codecs
import csv
import gzip
import io
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, TextIO, cast

import numpy as np
import pandas as pd

_FIRST = range(128, 256)  # of the bytes of a character
# ASCII as other encodings do not read it: escapes, shifts, two bytes a character
_SAMPLES = (b"\\u0041", b"xn--4ca", b"\x1b$B,,\x1b(B", bytes(range(128)))


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding that has ASCII as it is, and needs nothing of other cells to decode one."""

    name: str  # as Python calls it
    opened: str  # how the file is opened, to be taken apart

    @classmethod
    def of(cls, name: str) -> "Encoding":
        """Find an encoding."""
        try:
            found = codecs.lookup(name).name
            plain = all(sample.decode(found) == sample.decode("ascii") for sample in _SAMPLES)
        except ValueError:
            plain = False
        if not plain:
            raise LookupError(name)
        # UTF-8 can be taken apart as it is; others byte by byte
        return UTF8 if found.startswith("utf-8") else cls(found, "latin-1")

    def text(self, cell: str) -> str | bytes:
        r"""Decode a cell of the file as it was opened.

        Examples
        --------
        >>> cyrillic = Encoding.of("cp1251")
        >>> cyrillic.text("\xc4\xe0"), cyrillic.text("\x98")
        ('Да', b'\x98')
        """
        if cell.isascii():
            return cell
        data = cell.encode(self.opened, "surrogateescape")
        try:
            found = data.decode(self.name)
            # some encodings read two sequences of bytes as one text: one of them stays bytes
            return found if self == UTF8 or found.encode(self.name) == data else data
        except ValueError:
            return data

    def texts(self, cells: list[str]) -> Iterable[str | bytes]:
        """Decode cells."""
        return cells if "".join(cells).isascii() else map(self.text, cells)

    def separator(self, character: str) -> str:
        """Return what stands between cells of the file as it is opened."""
        if self == UTF8:
            return character
        data = character.encode(self.name)
        if len(data) > 1 or any(self._is_one(bytes([first]) + data) for first in _FIRST):
            raise ValueError(character)
        return data.decode(self.opened)

    def _is_one(self, data: bytes) -> bool:
        try:
            return len(data.decode(self.name)) == 1
        except ValueError:
            return False


UTF8 = Encoding("utf-8", "utf-8")
"""What files are in where nothing else is said."""


_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_INT64 = range(-(2**63), 2**63)
_LONGEST_CELL = 2**31 - 1


@contextmanager
def csv_rows(path: Path, separator: str, encoding: Encoding) -> Iterator[Iterator[list[str]]]:
    """Open a CSV file, which may be compressed, for its rows; no cell in it is refused.

    Cells are to be decoded, by `Encoding.text`.
    """
    delimiter = encoding.separator(separator)
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        with _text_of(path, encoding) as lines:
            yield (row for row in csv.reader(lines, delimiter=delimiter) if row)
    finally:
        csv.field_size_limit(before)


@contextmanager
def _text_of(path: Path, encoding: Encoding) -> Iterator[TextIO]:
    with ExitStack() as opened:
        data: IO[bytes]
        if path.suffix.lower() == ".zip":
            archive = opened.enter_context(zipfile.ZipFile(path))
            data = opened.enter_context(archive.open(files_in(path)[0]))
        else:
            data = opened.enter_context(path.open("rb"))
        if path.suffix.lower() == ".gz":
            data = cast(IO[bytes], opened.enter_context(gzip.open(data)))
        form = "utf-8-sig" if encoding == UTF8 else encoding.opened  # without a mark of it
        yield io.TextIOWrapper(data, encoding=form, errors="surrogateescape", newline="")


def files_in(path: Path) -> list[str]:
    """Name the files of a ZIP archive, without folders and what macOS adds."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return [name for name in names if not name.endswith("/") and not name.startswith("__MACOSX/")]


def cells_as(kind: str, texts: Sequence[Any]) -> pd.Series:
    """Read cells as one of `KINDS`; what is no text, or not of the kind, is missing.

    Bytes, of which no text can be made, are "string" cells as they are.

    Examples
    --------
    >>> cells_as("int64", ["1", "2.0", "x", "1e3"]).tolist()
    [1, 2, <NA>, 1000]
    """
    return KINDS[kind](texts)


def _each(read: Callable[[str], Any], texts: Sequence[Any]) -> list[Any]:
    """Read each text; what is none, or cannot be read, is None."""
    return [_or_none(read, text) if isinstance(text, str) else None for text in texts]


def _or_none(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except (ValueError, OverflowError, KeyError):
        return None


def _whole(text: str) -> int | None:
    """Read a whole number of 64 bits, which may be written as a float."""
    try:
        number = int(text)
    except ValueError:
        real = float(text)
        if not math.isfinite(real) or real != int(real):
            return None
        number = int(real)
    return number if number in _INT64 else None


def _wall(text: str) -> datetime | None:
    """Read a point in time without an offset."""
    moment = datetime.fromisoformat(text.strip())
    return None if moment.tzinfo is not None else moment


def _instant(text: str) -> datetime | None:
    """Read a point in time with an offset, as that of UTC."""
    moment = datetime.fromisoformat(text.strip())
    return None if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _strings(texts: Sequence[Any]) -> pd.Series:
    kept = [text if isinstance(text, (str, bytes)) else None for text in texts]
    return pd.Series(kept, dtype=object)


def _masked(kind: Any, read: Callable[[str], Any], texts: Sequence[Any]) -> pd.Series:
    """Read cells into a kind of array of pandas that knows which are missing."""
    found = _each(read, texts)
    missing = np.array([one is None for one in found], dtype=bool)
    dtype = np.bool_ if kind is pd.arrays.BooleanArray else np.int64
    return pd.Series(kind(np.array([one or 0 for one in found], dtype=dtype), missing))


def _floats(texts: Sequence[Any]) -> pd.Series:
    return pd.Series(np.array(_each(float, texts), np.float64))  # NaN where there is None


def _truth(text: str) -> bool:
    return _TRUTHS[text.strip().lower()]


def _dates(texts: Sequence[Any]) -> pd.Series:
    return pd.Series(_each(lambda text: date.fromisoformat(text.strip()), texts), dtype=object)


def _moments(read: Callable[[str], datetime | None], texts: Sequence[Any]) -> pd.Series:
    found = pd.Series(np.array(_each(read, texts), dtype="datetime64[us]"))
    return found if read is _wall else found.dt.tz_localize("UTC")


KINDS: dict[str, Callable[[Sequence[Any]], pd.Series]] = {
    "string": _strings,
    "int64": partial(_masked, pd.arrays.IntegerArray, _whole),
    "float64": _floats,
    "bool": partial(_masked, pd.arrays.BooleanArray, _truth),
    "date": _dates,
    "datetime": partial(_moments, _wall),
    "datetime-utc": partial(_moments, _instant),
}
"""How cells of each type are read."""
