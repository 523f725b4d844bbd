"""Released tables as CSV files, with a certificate beside them.

CSV keeps neither dtypes nor `attrs`. Beside `name.csv` stands `name.csv.certificate.json` with the
layout of the table and its certificate, in which keys have their types.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from errno import EINVAL, ENOENT
from os import PathLike, fspath
from os.path import islink, realpath
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import check_place
from dpframe.cells.keys import (
    Numbers,
    are_whole,
    factored,
    label_of,
    listed,
    numbers_of,
    series_of,
    texts_of_times,
    token,
)
from dpframe.cells.locate import Place
from dpframe.cells.record import RECORD, Opened, carry, opened_of
from dpframe.cells.reduce import reduced
from dpframe.cells.verify import Shown, look
from dpframe.certificates import json_records
from dpframe.certificates.parts import Dtype, Token
from dpframe.context import at_the_door
from dpframe.errors import CertificateError, QueryError, UnreadableCertificateError
from dpframe.public import public_call

INSTEAD = "Write Parquet or pickle, or rename one of them by .dp.rename."
"""What to do with what has no form in a CSV file."""

_Path: TypeAlias = str | PathLike[str]
_FORMAT: Final = 3  # of the certificate beside a file: the only one that is read
_SUFFIX = ".certificate.json"
_FILE = "a CSV file"
_COMPRESSED = frozenset({".bz2", ".gz", ".tar", ".tgz", ".xz", ".zip", ".zst"})
_ANEW = "Write both files anew from the released frame with dpf.write_csv."
# what parsing a file that somebody changed can end in
_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_BROKEN = (csv.Error, *_FAULTS)
_ROWS, _COLUMNS, _CELLS = range(3)
_ZERO = "\0"
_CERTIFICATE = ', "certificate": '


class Sidecar(json_records.Record):
    """What CSV loses, but for the certificate.

    Parameters
    ----------
    format
        Version of this form.
    index
        Names of the levels of the index, as JSON.
    header
        Names of the levels of the columns, as JSON; there is a line of labels for each.
    rows
        Number of rows.
    cells
        Number of cells that are not missing, but for keys.
    levels
        Where each released level is: 0 in the index, 1 in the header, 2 among the columns, and its
        number there.
    dtypes
        Dtypes of the columns; null for those that hold keys.
    escaped_formulas
        Whether texts that a spreadsheet would take for formulas were escaped.
    """

    format: Literal[3]
    index: tuple[Token, ...]
    header: tuple[Token, ...]
    rows: json_records.AtLeastNone
    cells: json_records.AtLeastNone
    levels: tuple[tuple[int, int], ...]
    dtypes: tuple[Dtype | None, ...]
    escaped_formulas: bool


def sidecar_of(path: _Path) -> Path:
    """Return where the certificate of a CSV file is kept: beside the file that a link leads to.

    Examples
    --------
    >>> sidecar_of("zones.csv").name
    'zones.csv.certificate.json'
    """
    place = realpath(path) if islink(path) else fspath(path)
    return Path(place + _SUFFIX)


@public_call
def write_csv(released: pd.DataFrame, path: _Path, *, escape_formulas: bool = False) -> None:
    """Write what a table shows to a CSV file, and its certificate to a file beside it.

    The index comes first, then the columns. Numbers read back to the bit. The certificate holds
    what the table shows, see `publish`.

    Parameters
    ----------
    released
        A released frame, in any layout.
    path
        The CSV file; the certificate goes to `sidecar_of(path)`. Existing files are replaced. If
        the path is a link, the certificate goes beside the real file.
    escape_formulas
        Write an apostrophe before keys and labels that a spreadsheet would run as formulas, such as
        ``=HYPERLINK(...)``: those that begin with one of ``= + - @``, a tab or a carriage return.
        `read_csv` takes it away again. Commands of `dpframe` do so.

    Raises
    ------
    CertificateError
        If the frame is not what was released, or two of its keys or labels read alike; no file is
        written then.
    OSError
        If a file cannot be written.
    QueryError
        If the path is none, that of a compressed file, or in a missing folder; or an interval tells
        a hidden cell, see `publish`.

    Examples
    --------
    >>> import tempfile
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(released, f"{folder}/zones.csv")
    ...     read_csv(f"{folder}/zones.csv").equals(released)
    True
    """
    place = check_place(_check_path(path), _FILE)
    if not isinstance(escape_formulas, bool):
        raise QueryError.about("escape_formulas", "must be True or False", escape_formulas)
    shown = look(released)
    record = reduced(shown).text
    table = _Table(shown, escape_formulas)
    try:
        text = table.text().encode()
    except UnicodeEncodeError:
        raise _no_form("a key or a label that is no valid Unicode") from None
    layout = json.dumps(json_records.plain(table.sidecar()))
    beside = f"{layout[:-1]}{_CERTIFICATE}{record}}}".encode()
    place = at_the_door(looking=True).place(place)
    place.write_bytes(text)
    sidecar_of(place).write_bytes(beside)


def _no_form(what: str) -> CertificateError:
    """Make the error about what cannot be written."""
    return CertificateError(f"{what} has no form in a CSV file. {INSTEAD}")


@public_call
def read_csv(path: _Path) -> pd.DataFrame:
    """Read a released frame written by `write_csv`, and check it against its certificate.

    Keys and labels are those that were released, whatever they read like. Every row must be there.

    Parameters
    ----------
    path
        The CSV file, with `sidecar_of(path)` beside it.

    Returns
    -------
    DataFrame
        The table: the same keys, labels and values.

    Raises
    ------
    CertificateError
        If there is no certificate beside the file, or table or certificate were changed or cut.
    UnreadableCertificateError
        If the file beside it is not a certificate in a format of this version.
    FileNotFoundError, OSError
        If there is no such file, or it cannot be read.
    QueryError
        If the path is none, or that of a compressed file.

    Examples
    --------
    >>> import tempfile
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(released, f"{folder}/zones.csv")
    ...     back = read_csv(f"{folder}/zones.csv")
    >>> back.dp.certificate == released.dp.certificate
    True
    """
    place = at_the_door(looking=True).written(_check_path(path))
    beside = sidecar_of(place)
    if not place.exists():
        alone = f", but for its certificate {beside.name!r}" if beside.exists() else ""
        raise FileNotFoundError(ENOENT, f"There is no such file{alone}", str(place))
    if not place.is_file():
        raise OSError(EINVAL, "It is a folder, a device or a pipe, not a file", str(place))
    sidecar, opened = _read_sidecar(beside)
    try:
        frame = _Reader(sidecar, opened).table(place.read_bytes())
        carry(frame, opened)
        look(frame)
    except (*_BROKEN, CertificateError):
        what = "header, rows or values, or the certificate beside it, were changed"
        raise CertificateError(f"{place.name!r} is not what was written: {what}. {_ANEW}") from None
    return frame


def _check_path(path: _Path) -> Path:
    """Check that a path is that of a file."""
    text = fspath(path) if isinstance(path, str | PathLike) else path
    if not isinstance(text, str) or not text:
        raise QueryError.about("path", f"must be the path of {_FILE}", path)
    place = Path(text)
    if place.suffix.lower() in _COMPRESSED:
        way_out = f"Use {place.stem!r}, or .dp.write_parquet, whose files are compressed."
        raise QueryError.about("path", "must be that of a file without compression", text, way_out)
    return place


def _read_sidecar(beside: Path) -> tuple[Sidecar, Opened]:
    """Read what stands beside a file, and check its format."""
    if not beside.exists():
        way_out = "Keep the two files that dpf.write_csv makes together."
        message = f"there is no {beside.name!r} beside the file. {way_out}"
        raise CertificateError(message, parameter="path")
    if not beside.is_file():
        raise _unreadable(beside, "is a folder, a device or a pipe, not a file")
    try:
        found, record = _split(beside.read_bytes().decode())
    except ValueError as error:
        what = f"is damaged, or no certificate of a CSV file: {error}"
        raise _unreadable(beside, what) from None
    version = found.get("format") if isinstance(found, dict) else None
    if type(version) is not int or version != _FORMAT:  # True is no format
        known = f"is not a certificate of a CSV file in format {_FORMAT}, which this version reads"
        raise _unreadable(beside, f"{known}; its format is {version!r:.40}")
    sidecar = json_records.read(Sidecar, found, f"{beside.name!r}")
    try:
        return sidecar, opened_of({RECORD: record})
    except UnreadableCertificateError as error:
        raise UnreadableCertificateError(f"{beside.name!r} is of no use: {error}") from None


def _unreadable(beside: Path, what: str) -> UnreadableCertificateError:
    return UnreadableCertificateError(f"{beside.name!r} {what}. {_ANEW}")


def _split(text: str) -> tuple[Any, str]:
    """Return what is said of the layout, and the text of the certificate, which comes last."""
    end = text.find(_CERTIFICATE)
    if end >= 0:
        layout = json_records.parse_json(text[:end] + "}")
        return layout, text[end + len(_CERTIFICATE) : text.rfind("}")]
    found = json_records.parse_json(text)  # written anew by another program
    certificate = found.pop("certificate", None) if isinstance(found, dict) else None
    return found, json.dumps(certificate)


def _texts(values: Iterable[Any]) -> list[str]:
    """Write keys or labels; a missing one is empty."""
    if isinstance(values, pd.DatetimeIndex):
        return texts_of_times(values)
    texts = listed(values) if isinstance(values, pd.Index) else [*values]
    if {*map(type, texts)} != {str}:
        texts = ["" if value is None else str(value) for value in texts]
    longest = max(map(len, texts), default=0)
    if longest > csv.field_size_limit() or _ZERO in "".join(texts):
        raise _no_form("a key or a label that is too long, or has a zero byte,")
    return texts


def _apart(texts: Sequence[str], what: str) -> None:
    """Refuse keys or labels that read alike."""
    if len({*texts}) < len(texts):
        raise _no_form(f"{what}, of which two read alike,")


_FORMULA = re.compile(r"'*[=+\-@\t\r]")  # also what is escaped already: it is to read back


def _escaped(text: str) -> str:
    """Keep a spreadsheet from running a text.

    Examples
    --------
    >>> [_escaped(text) for text in ("=1+1", "'=1+1", "A=1", "'A")]
    ["'=1+1", "''=1+1", 'A=1', "'A"]
    """
    return f"'{text}" if _FORMULA.match(text) else text


def _plain(text: str) -> str:
    """Give back what was escaped."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _quote(texts: Sequence[str]) -> list[str]:
    """Quote texts, so that commas, quotes and the ends of lines within them are part of them."""
    joined = _ZERO.join(texts).replace('"', '""').replace(_ZERO, f'"{_ZERO}"')
    return f'"{joined}"'.split(_ZERO)  # all at once: no text holds a zero byte


class _Table:
    """A table that is written by columns."""

    def __init__(self, shown: Shown, escaped: bool) -> None:
        self.shown, self.escaped = shown, escaped
        self.frame = shown.layout.frame
        self.levels: Mapping[Place, int] = {
            place: at for at, place in enumerate(shown.layout.levels)
        }
        opened = shown.opened
        _apart(_texts(opened.shown_label(label) for label in opened.columns), "labels")
        self._numbers = {
            at: numbers_of(self.frame.iloc[:, at], opened.kind)
            for at in range(self.frame.shape[1])
            if (_CELLS, at) not in self.levels
        }

    def sidecar(self) -> Sidecar:
        """Describe the layout."""
        index, columns = self.frame.index, self.frame.columns
        width = self.frame.shape[1]
        return Sidecar(
            format=_FORMAT,
            index=tuple(token(name) for name in index.names),
            header=tuple(token(name) for name in columns.names),
            rows=len(index),
            cells=sum(int((~one.missing).sum()) for one in self._numbers.values()),
            levels=tuple(self.shown.layout.levels),
            dtypes=tuple(self._dtype(at) for at in range(width)),
            escaped_formulas=self.escaped,
        )

    def _dtype(self, at: int) -> str | None:
        if at not in self._numbers:
            return None
        column, numbers = self.frame.dtypes.iloc[at], self._numbers[at]
        if getattr(column, "kind", "O") in "mM":
            return str(column)
        if numbers.values.dtype == np.float32:
            return "float32"
        whole = numbers.values.dtype.kind == "i" or str(column) == "Int64"
        if whole:
            return "Int64" if numbers.missing.any() else "int64"
        return "float64"

    def text(self) -> str:
        """Write all lines."""
        index = self.frame.index
        parts = [
            *(self._keys(index, _ROWS, number) for number in range(index.nlevels)),
            *(self._cells(at) for at in range(self.frame.shape[1])),
        ]
        lines = map(",".join, zip(*parts, strict=True))
        return "\n".join([*self._header(), *lines]) + "\n"

    def _header(self) -> list[str]:
        """Write a line of labels for each level of the columns, after the names of the index."""
        columns, names = self.frame.columns, self.frame.index.names
        lines = []
        for number in range(columns.nlevels):
            first = _texts(names) if number == columns.nlevels - 1 else [""] * len(names)
            labels = [*self._written(first), *self._keys(columns, _COLUMNS, number)]
            lines.append(",".join(labels))
        return lines

    def _written(self, texts: Sequence[str]) -> list[str]:
        return _quote([*map(_escaped, texts)] if self.escaped else texts)

    def _keys(self, values: Any, axis: int, number: int) -> list[str]:
        """Write the values of a level, or of a column of keys: each key once."""
        codes, keys = known = factored(values, number if axis != _CELLS else 0)
        level = self.levels.get((axis, number))
        opened = self.shown.opened
        if level is not None:  # as they were released: a table may hold floats for integers
            codes, keys = opened.places(level, known), opened.shown_keys(level)
        texts = _texts(keys)
        if level is not None and not are_whole(keys):
            _apart(texts, "keys")
        plain = axis == _ROWS and getattr(keys.dtype, "kind", "O") in "iuf"
        # a missing key has the code -1
        written = [*texts, *_quote([""])] if plain else self._written([*texts, ""])
        return [*map(written.__getitem__, codes.tolist())]

    def _cells(self, at: int) -> list[str]:
        """Write the cells of a column: numbers so that they read back to the bit."""
        if at not in self._numbers:
            return self._keys(self.frame.iloc[:, at].array, _CELLS, at)
        values, missing = self._numbers[at]
        dtype = self._dtype(at)
        if dtype in ("int64", "Int64"):
            values = np.where(missing, 0, values).astype(np.int64)
        if getattr(self.frame.dtypes.iloc[at], "kind", "O") in "mM":
            texts = _quote([*map(str, self.frame.iloc[:, at])])
        elif values.dtype == np.float32:
            texts = list(map(str, values))
        else:
            texts = list(map(repr, values.tolist()))
        if not missing.any():
            return texts
        return ["" if gone else text for text, gone in zip(texts, missing, strict=True)]


class _Reader:
    """What reads a table back."""

    def __init__(self, sidecar: Sidecar, opened: Opened) -> None:
        self.sidecar, self.opened = sidecar, opened
        self.levels = {place: at for at, place in enumerate(sidecar.levels)}
        labels = [opened.shown_label(label) for label in opened.columns]
        labels += [name for name in opened.index.names if name is not None]
        self.labels = dict(zip(_texts(labels), labels, strict=True))

    def table(self, written: bytes) -> pd.DataFrame:
        """Read a table; anything can be raised if it was changed."""
        sidecar = self.sidecar
        lines_alone = written.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n") + b"\n"
        # half the time of a `StringIO`, which holds four bytes a character
        stream = io.TextIOWrapper(io.BytesIO(lines_alone), "utf-8", newline="")
        lines = csv.reader(iter(stream.readline, ""), strict=True)
        header = [next(lines) for _ in sidecar.header]
        depth, width = len(sidecar.index), len(sidecar.dtypes)
        names = [self._name(name) for name in sidecar.index]
        if any(len(line) != depth + width for line in header) or header[-1][:depth] != names:
            raise ValueError("another header")
        cells = self._cells(stream, depth + width)
        keys = [
            self._keys(cells[number], (_ROWS, number), label_of(name))
            for number, name in enumerate(sidecar.index)
        ]
        index = keys[0] if depth == 1 else pd.MultiIndex.from_arrays(keys)
        columns = {at: self._column(cells[depth + at], at) for at in range(width)}
        frame = pd.DataFrame(columns, index=index, copy=False)
        numbers = [at for at, dtype in enumerate(sidecar.dtypes) if dtype is not None]
        if sum(int(frame[at].count()) for at in numbers) != sidecar.cells:
            raise ValueError("another number of cells")
        labels = [
            self._keys(pd.Series(line[depth:], dtype=object), (_COLUMNS, number), label_of(name))
            for number, (line, name) in enumerate(zip(header, sidecar.header, strict=True))
        ]
        frame.columns = labels[0] if len(labels) == 1 else pd.MultiIndex.from_arrays(labels)
        return frame

    def _name(self, name: Token) -> str:
        (text,) = _texts([label_of(name)])
        return _escaped(text) if self.sidecar.escaped_formulas else text

    def _cells(self, stream: io.TextIOBase, width: int) -> pd.DataFrame:
        """Read the lines below the header: keys as texts, numbers as numbers."""
        depth = width - len(self.sidecar.dtypes)
        plain = dict(enumerate(self.sidecar.dtypes, depth))
        of_keys = {number: self._dtype_of_keys((_ROWS, number)) for number in range(depth)}
        dtypes: dict[Any, Any] = {
            at: dtype for at, dtype in {**of_keys, **plain}.items() if dtype in _NUMBERS
        }
        texts = dict.fromkeys({*range(width)} - dtypes.keys(), object)
        if not self.sidecar.rows:
            if stream.read().strip():
                raise ValueError("another number of rows")
            all_dtypes = {**texts, **dtypes}
            return pd.DataFrame({at: pd.Series(dtype=all_dtypes[at]) for at in range(width)})
        start = stream.tell()
        found: pd.DataFrame
        for of_texts in ({}, texts):  # found out by pandas, texts take half the time
            stream.seek(start)
            found = pd.read_csv(
                stream,
                header=None,
                names=range(width),
                index_col=False,
                dtype={**dtypes, **of_texts},
                keep_default_na=False,
                na_values={at: [""] for at in dtypes},
                skip_blank_lines=False,
                low_memory=False,
                **_EXACT,
            )
            if all(pd.api.types.is_string_dtype(found[at]) for at in texts):
                break
        if len(found) != self.sidecar.rows:
            raise ValueError("another number of rows")
        return found

    def _dtype_of_keys(self, place: Place) -> str | None:
        """Return the dtype of integers among the keys in the index."""
        level = self.levels.get(place)
        keys = None if level is None else self.opened.shown_keys(level)
        return str(keys.dtype) if keys is not None and are_whole(keys) else None

    def _column(self, cells: pd.Series, at: int) -> Any:
        dtype = self.sidecar.dtypes[at]
        if dtype is None:
            return self._keys(cells, (_CELLS, at), None).array
        if dtype in _NUMBERS:
            return cells.array
        if dtype.startswith(("timedelta64", "datetime64")):
            kind = "m" if dtype.startswith("timedelta64") else "M"
            texts = pd.Series([None if text in _GONE else text for text in cells], dtype=object)
            return series_of(Numbers(*numbers_of(texts, kind)), dtype).array
        raise ValueError("a dtype that is not written")

    def _keys(self, texts: pd.Series, place: Place, name: Any) -> pd.Index:
        """Return the keys of a level, or labels, or numbers of rows."""
        level = self.levels.get(place)
        if texts.dtype.kind in "iu":
            keys = self.opened.shown_keys(self.levels[place])
            if not np.array_equal(keys, texts):  # not in the order that was released
                found = keys.get_indexer(texts.array)
                if (found < 0).any():
                    raise ValueError("another key")
                keys = keys.take(found)
            return keys.rename(name)
        keys = pd.Index([]) if level is None else self.opened.shown_keys(level)
        plain = not self.sidecar.escaped_formulas
        if plain and keys.equals(pd.Index(texts)):  # as released
            return keys.rename(name)
        written = _texts(keys)
        if plain and texts.tolist() == written:
            return keys.rename(name)
        codes, known = pd.factorize(texts)
        unique: list[str] = [*known]
        if self.sidecar.escaped_formulas:
            unique = [*map(_plain, unique)]
        if level is not None:
            places = dict(zip(written, range(len(written)), strict=True))
            found = np.fromiter(map(places.__getitem__, unique), np.intp, len(unique))
            return keys.take(found[codes]).rename(name)
        numbered = all(text.isdecimal() and text not in self.labels for text in unique)
        if unique and numbered:
            return pd.Index([int(text) for text in unique], dtype=np.int64).take(codes).rename(name)
        labels = [self.labels.get(text, text) for text in unique]
        known_labels = pd.Index(labels, tupleize_cols=False, dtype=None if labels else object)
        made: pd.Index = known_labels.take(codes).rename(name)
        return made


_EXACT: Any = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}
"""What makes pandas 2 read floats to the bit, as pandas 3 does."""
_NUMBERS = frozenset({"int64", "Int64", "float64", "float32"})
_GONE = frozenset({"", "NaT"})
