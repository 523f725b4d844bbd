"""Released tables as CSV files, with a certificate beside them.

CSV keeps neither dtypes nor `attrs`. Beside `name.csv` stands `name.csv.certificate.json` with the
layout of the table and its certificate, in which keys have their types.
"""

import codecs
import csv
import io
import json
from collections.abc import Mapping, Sequence
from errno import EINVAL, ENOENT
from os import PathLike, fspath
from os.path import islink, realpath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import check_place
from dpframe.cells.locate import CELLS, ROWS
from dpframe.cells.record import RECORD, Opened, carry, opened_of
from dpframe.cells.reduce import reduced
from dpframe.cells.verify import Shown, look
from dpframe.certificates import json_records
from dpframe.context import at_the_door
from dpframe.errors import CertificateError, QueryError, UnreadableCertificateError
from dpframe.files.layout import (
    FORMAT,
    FORMULA,
    ChangedFileError,
    Sidecar,
    TableReader,
    TableWriter,
    another_header,
    changed_cell,
)
from dpframe.public import public_call

_Path: TypeAlias = str | PathLike[str]
_SUFFIX = ".certificate.json"
_FILE = "a CSV file"
_COMPRESSED = frozenset({".bz2", ".gz", ".tar", ".tgz", ".xz", ".zip", ".zst"})
_ANEW = "Write both files anew from the released frame with dpf.write_csv."
# what parsing a file that somebody changed can end in
_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_BROKEN = (csv.Error, *_FAULTS)
_ZERO = "\0"
_CERTIFICATE = ', "certificate": '


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
    table = _CsvWriter(shown, escape_formulas)
    text = table.encoded()
    layout = json.dumps(json_records.plain(table.sidecar(escaped=escape_formulas)))
    beside = f"{layout[:-1]}{_CERTIFICATE}{record}}}".encode()
    place = at_the_door(looking=True).place(place)
    place.write_bytes(text)
    sidecar_of(place).write_bytes(beside)


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
        frame = _CsvReader(sidecar, opened).parse(place.read_bytes())
        carry(frame, opened)
        look(frame)
    except ChangedFileError as error:
        changed = str(error)
    except CertificateError:
        changed = changed_cell(frame, opened)
    except _BROKEN:
        changed = _SOMETHING
    else:
        return frame
    rule = f"{place.name!r} is not what was written with the certificate beside it"
    raise CertificateError(f"{rule}: {changed}. {_ANEW}")


_SOMETHING = "header, rows or values were changed"


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
        layout, record = _split(beside.read_bytes().decode())
    except ValueError as error:
        reason = f"is damaged, or no certificate of a CSV file: {error}"
        raise _unreadable(beside, reason) from None
    version = layout.get("format") if isinstance(layout, dict) else None
    if type(version) is not int or version != FORMAT:  # True is no format
        reason = f"is not a certificate of a CSV file in format {FORMAT}, which this version reads"
        raise _unreadable(beside, f"{reason}; its format is {version!r:.40}")
    sidecar = json_records.read(Sidecar, layout, f"{beside.name!r}")
    try:
        return sidecar, opened_of({RECORD: record})
    except UnreadableCertificateError as error:
        raise UnreadableCertificateError(f"{beside.name!r} is of no use: {error}") from None


def _unreadable(beside: Path, reason: str) -> UnreadableCertificateError:
    return UnreadableCertificateError(f"{beside.name!r} {reason}. {_ANEW}")


def _split(text: str) -> tuple[Any, str]:
    """Return what is said of the layout, and the text of the certificate, which comes last."""
    end = text.find(_CERTIFICATE)
    if end >= 0:
        layout = json_records.parse_json(text[:end] + "}")
        return layout, text[end + len(_CERTIFICATE) : text.rfind("}")]
    layout = json_records.parse_json(text)  # written anew by another program
    certificate = layout.pop("certificate", None) if isinstance(layout, dict) else None
    return layout, json.dumps(certificate)


def _escaped(text: str) -> str:
    """Keep a spreadsheet from running a text.

    Examples
    --------
    >>> [_escaped(text) for text in ("=1+1", "'=1+1", "A=1", "'A")]
    ["'=1+1", "''=1+1", 'A=1', "'A"]
    """
    return f"'{text}" if FORMULA.match(text) else text


def _plain(text: str) -> str:
    """Give back what was escaped."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def _quote(texts: Sequence[str]) -> list[str]:
    """Quote texts, so that commas, quotes and the ends of lines within them are part of them."""
    if not texts:
        return []
    joined = _ZERO.join(texts).replace('"', '""').replace(_ZERO, f'"{_ZERO}"')
    return f'"{joined}"'.split(_ZERO)  # all at once: no text holds a zero byte


class _CsvWriter(TableWriter):
    """A table that is written to a CSV file."""

    file = _FILE

    def __init__(self, shown: Shown, escaped: bool) -> None:
        super().__init__(shown)
        self.escaped = escaped

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse texts that the file cannot hold."""
        longest = max(map(len, texts), default=0)
        if longest > csv.field_size_limit() or _ZERO in "".join(texts):
            raise self.no_form("a key or a label that is too long, or has a zero byte,")

    def encoded(self) -> bytes:
        """Write all lines."""
        index = self.frame.index
        parts = [
            *(self._keys(index, ROWS, number) for number in range(index.nlevels)),
            *(self._cells(at) for at in range(self.frame.shape[1])),
        ]
        lines = map(",".join, zip(*parts, strict=True))
        header = (",".join(self._written(line)) for line in self.header)
        text = "\n".join([*header, *lines]) + "\n"
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise self.no_form("a key or a label that is no valid Unicode") from None

    def _written(self, texts: Sequence[str]) -> list[str]:
        return _quote([*map(_escaped, texts)] if self.escaped else texts)

    def _keys(self, values: Any, axis: int, number: int) -> list[str]:
        """Write the values of a level, or of a column of keys: each key once."""
        codes, keys, texts = self.keys(values, axis, number)
        plain = axis == ROWS and getattr(keys.dtype, "kind", "O") in "iuf"
        # a missing key has the code -1
        written = [*texts, *_quote([""])] if plain else self._written([*texts, ""])
        return [*map(written.__getitem__, codes.tolist())]

    def _cells(self, at: int) -> list[str]:
        """Write the cells of a column: numbers so that they read back to the bit."""
        if at not in self.numbers:
            return self._keys(self.frame.iloc[:, at].array, CELLS, at)
        values, missing = self.numbers[at]
        dtype = self.dtype(at)
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


class _CsvReader(TableReader):
    """What reads a table of a CSV file back."""

    def written(self, texts: list[str]) -> list[str]:
        """Return texts as the file has them."""
        return [*map(_escaped, texts)] if self.sidecar.escaped_formulas else texts

    def given_back(self, texts: list[str]) -> list[str]:
        """Return texts of the file as they were."""
        return [*map(_plain, texts)] if self.sidecar.escaped_formulas else texts

    def parse(self, content: bytes) -> pd.DataFrame:
        """Read a table; anything can be raised if it was changed."""
        sidecar = self.sidecar
        lines_alone = content.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n") + b"\n"
        # half the time of a `StringIO`, which holds four bytes a character
        stream = io.TextIOWrapper(io.BytesIO(lines_alone), "utf-8", newline="")
        lines = csv.reader(iter(stream.readline, ""), strict=True)
        try:
            header = [next(lines) for _ in sidecar.header]
        except (csv.Error, StopIteration):
            raise another_header() from None
        self.check_header(header)
        return self.table(header, self._cells(stream, len(sidecar.index) + len(sidecar.dtypes)))

    def _cells(self, stream: io.TextIOBase, width: int) -> pd.DataFrame:
        """Read the lines below the header: keys as texts, numbers as numbers."""
        by_column = self.dtypes()
        dtypes: dict[Any, Any] = {at: dtype for at, dtype in by_column.items() if dtype is not None}
        texts = dict.fromkeys({*range(width)} - dtypes.keys(), object)
        if not self.sidecar.rows:
            if stream.read().strip():
                raise _other_rows(self.sidecar)
            all_dtypes = {**texts, **dtypes}
            return pd.DataFrame({at: pd.Series(dtype=all_dtypes[at]) for at in range(width)})
        start = stream.tell()

        def read(types: Mapping[Any, Any]) -> pd.DataFrame:
            stream.seek(start)
            parsed: pd.DataFrame = pd.read_csv(
                stream,
                header=None,
                names=range(width),
                index_col=False,
                dtype=types,
                keep_default_na=False,
                na_values={at: [""] for at in dtypes},
                skip_blank_lines=False,
                nrows=self.sidecar.rows + 1,  # no more of what is not the release's
                low_memory=False,
                **_EXACT,
            )
            return parsed

        try:
            cells = read(dtypes)  # found out by pandas, texts take half the time
            if not all(pd.api.types.is_string_dtype(cells[at]) for at in texts):
                cells = read({**dtypes, **texts})
        except pd.errors.ParserError:
            raise ChangedFileError("a row has more or fewer values") from None
        except (TypeError, ValueError, OverflowError):
            lines = read(dict.fromkeys(range(width), object))
            if len(lines) != self.sidecar.rows:
                raise _other_rows(self.sidecar) from None
            raise _no_number(lines, dtypes, len(self.sidecar.index)) from None
        if len(cells) != self.sidecar.rows:
            raise _other_rows(self.sidecar)
        return cells


def _other_rows(sidecar: Sidecar) -> ChangedFileError:
    return ChangedFileError(f"it has more or fewer than {sidecar.rows:,} rows")


def _no_number(lines: pd.DataFrame, dtypes: Mapping[int, str], depth: int) -> ChangedFileError:
    """Say which value is no number where one must be; the first columns are keys."""
    for at, dtype in dtypes.items():
        numbers = pd.to_numeric(lines[at], errors="coerce").to_numpy(np.float64)
        wrong = np.isnan(numbers)
        if dtype == "int64":
            wrong |= numbers % 1 != 0
        else:
            wrong &= lines[at].notna().to_numpy()
        if wrong.any():
            place = f"column {at - depth + 1}" if at >= depth else f"level {at + 1}"
            value = f"the value in row {wrong.argmax() + 1:,} of {place}"
            kind = "whole number" if dtype == "int64" else "number"
            return ChangedFileError(f"{value} is no {kind}")
    return ChangedFileError("values were changed")


_EXACT: Any = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}
"""What makes pandas 2 read floats to the bit, as pandas 3 does."""
