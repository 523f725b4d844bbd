"""Released frames as CSV files, with a sidecar that keeps what CSV loses.

CSV keeps neither dtypes nor `attrs`. Beside `name.csv` stands `name.csv.certificate.json` with the
certificate and the dtypes of the table, so that what is read back is what was released, to the bit.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from errno import EINVAL, ENOENT
from hashlib import sha256
from os import PathLike, fspath
from os.path import islink, realpath
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import check_place
from dpframe.certificates import json_records
from dpframe.certificates.certificate import UNSEALED, Certificate, Release
from dpframe.certificates.diagnosis import mark_test
from dpframe.certificates.mechanism_parts import SetPart, ThresholdPart
from dpframe.certificates.verify import ATTRIBUTE, refuse_test, verify
from dpframe.context import at_the_door
from dpframe.errors import CertificateError, QueryError, UnreadableCertificateError
from dpframe.public import public_call

INSTEAD = (
    "Write Parquet or pickle, or declare texts, numbers or timestamps as keys and texts as labels."
)
"""What to do with what has no form in a CSV file."""


def _no_form(what: str) -> CertificateError:
    """Make the error about what cannot be written."""
    return CertificateError(f"{what} no form in a CSV file. {INSTEAD}")


_KNOWN = re.compile(
    r"object|str|string(\[(python|pyarrow)\])?"
    r"|[Uu]?[Ii]nt(8|16|32|64)|[Ff]loat(32|64)|bool(ean)?"
    r"|(datetime64|timedelta64|period)\[[^\]]*\]"
    r"|(u?int(8|16|32|64)|float|double|bool|(large_)?string|(timestamp|duration)\[[^\]]*\])"
    r"\[pyarrow\]"
)
"""The dtypes that are read: another, from a file, may ask for any amount of memory."""


class PlainKind(json_records.Record):
    """A dtype whose name says how its texts are read."""

    dtype: str

    def __post_init__(self) -> None:
        known = _KNOWN.fullmatch(self.dtype) is not None
        json_records.require(known, "no dtype that dpf.write_csv writes")


class IntervalKind(json_records.Record):
    """A dtype of intervals, by that of their ends."""

    dtype: Literal["interval"]
    closed: Literal["left", "right", "both", "neither"]
    ends: PlainKind


class CategoryKind(json_records.Record):
    """A dtype of categories: what they are, and their texts in order."""

    dtype: Literal["category"]
    ordered: bool
    categories: PlainKind | IntervalKind
    texts: tuple[str, ...]


LevelKind: TypeAlias = PlainKind | IntervalKind | CategoryKind


def kind_of(values: pd.Index) -> LevelKind:
    """Describe a dtype, so that its texts can be read back."""
    if isinstance(values, pd.CategoricalIndex):
        of = values.categories
        texts = tuple(texts_of(of))
        return CategoryKind("category", bool(values.ordered), _kind_of_keys(of), texts)
    return _kind_of_keys(values)


def _kind_of_keys(values: pd.Index) -> PlainKind | IntervalKind:
    if isinstance(values, pd.IntervalIndex):
        return IntervalKind("interval", values.closed, _plain_kind(values.left))
    return _plain_kind(values)


def _plain_kind(values: pd.Index) -> PlainKind:
    dtype = values.dtype
    several = dtype.kind not in "iufbmM" and not isinstance(dtype, pd.PeriodDtype)
    texts = not several or all(isinstance(value, str) for value in values)
    if texts and _KNOWN.fullmatch(str(dtype)):
        return PlainKind(str(dtype))
    raise _no_form(f"keys of dtype {dtype} that are not all texts have")


def texts_of(values: pd.Index) -> list[str]:
    """Write values so that they can be read back to the bit."""
    dtype = values.dtype
    if isinstance(values, pd.CategoricalIndex):
        texts = texts_of(values.categories)
        return [texts[code] for code in values.codes]
    if isinstance(values, pd.IntervalIndex):
        opening = "[" if values.closed in ("left", "both") else "("
        closing = "]" if values.closed in ("right", "both") else ")"
        ends = zip(texts_of(values.left), texts_of(values.right), strict=True)
        return [f"{opening}{low}, {high}{closing}" for low, high in ends]
    absent = values.hasnans and dtype.kind in "iufmM"
    gone = values.isna() if absent else np.zeros(len(values), bool)
    shown: Callable[[Any], str] = (lambda value: repr(float(value))) if dtype.kind == "f" else str
    # what was suppressed is an empty cell
    return ["" if empty else shown(value) for value, empty in zip(values, gone, strict=True)]


def parse_texts(texts: Sequence[str], kind: LevelKind) -> pd.Index:
    """Read texts back."""
    if isinstance(kind, CategoryKind):
        known = {text: code for code, text in enumerate(kind.texts)}
        categories = parse_texts(kind.texts, kind.categories)
        codes = [known[text] for text in texts]
        cells = pd.Categorical.from_codes(codes, categories=categories, ordered=kind.ordered)
        return pd.CategoricalIndex(cells)
    if isinstance(kind, IntervalKind):
        ends = [text[1:-1].split(", ") for text in texts]
        left, right = (parse_texts([pair[end] for pair in ends], kind.ends) for end in (0, 1))
        return pd.IntervalIndex.from_arrays(left, right, closed=kind.closed)
    return _parsed_plain(texts, kind.dtype)


_TRUTHS = {"True": True, "False": False}
_NUMBERS: Mapping[str, Callable[[str], object]] = {
    **{f"{sign}{bits}": int for sign in ("int", "uint", "Int", "UInt") for bits in (8, 16, 32, 64)},
    **{name: float for name in ("float32", "float64", "Float32", "Float64")},
    **{name: _TRUTHS.__getitem__ for name in ("bool", "boolean")},
}
"""How a text is read that stands for a number of a dtype."""


def _parsed_plain(texts: Sequence[str], dtype: str) -> pd.Index:
    if dtype in _NUMBERS:
        absent = np.nan if dtype.startswith("float") else pd.NA
        numbers = [_NUMBERS[dtype](text) if text else absent for text in texts]
        return pd.Index(numbers, dtype=dtype)
    if dtype.startswith("datetime64"):
        zone = dtype.partition(", ")[2].rstrip("]")
        known = pd.Index([text or None for text in texts], dtype=object)
        times = pd.DatetimeIndex(pd.to_datetime(known, format="ISO8601", utc=bool(zone)))
        return (times.tz_convert(zone) if zone else times).astype(dtype)
    if dtype.startswith("timedelta64"):
        return pd.to_timedelta([text or None for text in texts]).astype(dtype)
    if dtype.startswith("period"):
        return pd.PeriodIndex(list(texts), dtype=dtype)
    # texts of the dtype of pandas itself, which has another name in other versions
    return pd.Index(list(texts), dtype=str if dtype == "str" else dtype)


Place: TypeAlias = str | PathLike[str]
TextRows: TypeAlias = list[list[str]]
Label: TypeAlias = str | bool | int | float | None

_FORMAT: Final = 2
_SUFFIX = ".certificate.json"
_FILE = "a CSV file"
_COMPRESSED = frozenset({".bz2", ".gz", ".tar", ".tgz", ".xz", ".zip", ".zst"})
_ANEW = "Write both files anew from the released frame with dpf.write_csv."
# what parsing a file that somebody changed can end in
_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_BROKEN = (csv.Error, *_FAULTS)


class Sidecar(json_records.Record):
    """What CSV loses: labels and their name, dtypes of keys and columns, and the certificate.

    It says, too, whether texts that a spreadsheet would take for formulas were escaped.

    The digest covers the rest of it: that of the certificate takes kinds that files may exchange
    for one, such as int64 and int64[pyarrow].
    """

    format: Literal[2]
    levels: tuple[Label, ...]
    columns: tuple[Label, ...]
    heading: Label
    kinds: tuple[LevelKind, ...]
    escaped_formulas: bool
    certificate: Certificate
    digest: json_records.Digest

    def seal(self) -> "Sidecar":
        """Return it with the digest that its other parts have."""
        record = json_records.plain(replace(self, digest=UNSEALED))
        parts = json.dumps(record, sort_keys=True)
        return replace(self, digest=f"sha256:{sha256(parts.encode()).hexdigest()}")


def sidecar_of(path: Place) -> Path:
    """Return where the certificate of a CSV file is kept: beside the file that a link leads to.

    Examples
    --------
    >>> sidecar_of("zones.csv").name
    'zones.csv.certificate.json'
    """
    place = realpath(path) if islink(path) else fspath(path)
    return Path(place + _SUFFIX)


@public_call
def write_csv(released: pd.DataFrame, path: Place, *, escape_formulas: bool = False) -> None:
    """Write a released frame to a CSV file, and its certificate to a file beside it.

    The index comes first, then the columns, under one header. Numbers read back to the bit.

    Parameters
    ----------
    released
        A released frame, denoised or not. Keys are texts, numbers, booleans, dates, times, periods,
        intervals or categories of these; labels are texts or numbers.
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
        If the frame is not what was released, or its keys or labels have no form in CSV; no file is
        written then.
    OSError
        If a file cannot be written.
    QueryError
        If the path is none, that of a compressed file, or in a missing folder.

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
    shape = _shape_of(released, verify(released), escape_formulas=escape_formulas)
    try:
        table = _text_of(released, shape).encode()
        beside = json.dumps(json_records.plain(shape), indent=1).encode()
        back = json_records.read(Sidecar, json.loads(beside), "the certificate")
        _table_of(table.decode(), back)
    except (*_BROKEN, CertificateError):  # a key or a label that does not read back as it was
        raise _no_form("a key or a label of this release has") from None
    place = at_the_door(looking=True).place(place)
    place.write_bytes(table)
    sidecar_of(place).write_bytes(beside)


@public_call
def read_csv(path: Place) -> pd.DataFrame:
    """Read a released frame written by `write_csv`, and check it against its certificate.

    Every cell of the file, the header included, must be as it was written. Other quotes, ends of
    lines, a byte order mark and empty lines at the end change no cell, and are read.

    Parameters
    ----------
    path
        The CSV file, with `sidecar_of(path)` beside it.

    Returns
    -------
    DataFrame
        What was released: the same values, dtypes, keys and certificate.

    Raises
    ------
    CertificateError
        If there is no certificate beside the file, or table or certificate were changed.
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
    shape = _sidecar(beside)
    refuse_test(shape.certificate)
    try:
        return _table_of(place.read_bytes().decode("utf-8-sig"), shape)
    except _BROKEN:
        what = "header, rows or values, or the certificate beside it, were changed"
        raise CertificateError(f"{place.name!r} is not what was written: {what}. {_ANEW}") from None


def _check_path(path: Place) -> Path:
    """Check that a path is that of a file."""
    text = fspath(path) if isinstance(path, str | PathLike) else path
    if not isinstance(text, str) or not text:
        raise QueryError.about("path", f"must be the path of {_FILE}", path)
    place = Path(text)
    if place.suffix.lower() in _COMPRESSED:
        way_out = f"Use {place.stem!r}, or .dp.write_parquet, whose files are compressed."
        raise QueryError.about("path", "must be that of a file without compression", text, way_out)
    return place


def _sidecar(beside: Path) -> Sidecar:
    """Read a sidecar and check its format."""
    if not beside.exists():
        way_out = "Keep the two files that dpf.write_csv makes together."
        message = f"there is no {beside.name!r} beside the file. {way_out}"
        raise CertificateError(message, parameter="path")
    if not beside.is_file():
        raise _unreadable(beside, "is a folder, a device or a pipe, not a file")
    try:
        text = beside.read_bytes()
        json_records.check_json(text)
        shape = json.loads(text, object_pairs_hook=_once)
    except json_records.ExcessError as error:
        raise _unreadable(beside, f"is no certificate: {error}") from None
    except _BROKEN:
        what = "is damaged, or no certificate of a CSV file: it is not JSON in which each name"
        raise _unreadable(beside, f"{what} comes once") from None
    found = shape.get("format") if isinstance(shape, dict) else None
    if type(found) is not int or found != _FORMAT:  # True is no format
        known = f"is not a certificate of a CSV file in format {_FORMAT}, which this version reads"
        raise _unreadable(beside, f"{known}; its format is {found!r:.40}")
    return json_records.read(Sidecar, shape, f"{beside.name!r}")


def _unreadable(beside: Path, what: str) -> UnreadableCertificateError:
    return UnreadableCertificateError(f"{beside.name!r} {what}. {_ANEW}")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that says something twice: readers of JSON differ in which they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _shape_of(
    released: pd.DataFrame, certificate: Certificate, *, escape_formulas: bool
) -> Sidecar:
    """Describe what CSV loses: dtypes, labels, and which columns are keys."""
    if any(map(_finds_dates, certificate.releases)):  # also where none was found
        raise _no_form("groups that are dates have")
    levels, columns = (
        tuple(map(_plain_label, labels)) for labels in (released.index.names, released.columns)
    )
    heading, kinds = _plain_label(released.columns.name), tuple(map(kind_of, _parts(released)))
    known = levels, columns, heading, kinds, escape_formulas, certificate
    return Sidecar(_FORMAT, *known, UNSEALED).seal()


def _finds_dates(release: Release) -> bool:
    found = release.mechanism
    return isinstance(found, SetPart | ThresholdPart) and "date" in found.dtypes


def _parts(frame: pd.DataFrame) -> list[pd.Index]:
    """Return the levels of the index and the columns, in the order of the file."""
    index = frame.index
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    bare = pd.DataFrame(frame)  # pandas copies all attrs for each column that is looked at
    return [*levels, *(pd.Index(bare.iloc[:, at]) for at in range(frame.shape[1]))]


def _plain_label(label: object) -> Label:
    """Return a label that JSON keeps as it is."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, str | int):
        return label
    if isinstance(label, float) and math.isfinite(label):
        return label
    raise _no_form(f"the label {label!r} has")


def _header(shape: Sidecar) -> list[str]:
    labels = ["" if label is None else str(label) for label in shape.levels + shape.columns]
    return [*map(_escaped, labels)] if shape.escaped_formulas else labels


def _cells(frame: pd.DataFrame, shape: Sidecar) -> TextRows:
    """Return the texts of a table, row by row."""
    columns: Iterable[Sequence[str]] = map(texts_of, _parts(frame))
    if shape.escaped_formulas:
        columns = _among_texts(_escaped, columns, shape)
    return [list(row) for row in zip(*columns, strict=True)]


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


def _among_texts(
    change: Callable[[str], str], columns: Iterable[Sequence[str]], shape: Sidecar
) -> Iterator[Sequence[str]]:
    """Change the columns of texts, and leave those of numbers, whose sign is none."""
    for cells, kind in zip(columns, shape.kinds, strict=True):
        yield cells if kind.dtype in _NUMBERS else [*map(change, cells)]


def _text_of(released: pd.DataFrame, shape: Sidecar) -> str:
    """Write a table as CSV."""
    quoted = [kind.dtype not in _NUMBERS for kind in shape.kinds]
    lines = [",".join(map(_quote, _header(shape)))]
    for row in _cells(released, shape):
        texts = (_quote(text) if quote else text for text, quote in zip(row, quoted, strict=True))
        lines.append(",".join(texts))
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Quote a text, so that commas, quotes and the ends of lines within it are part of it."""
    return '"' + text.replace('"', '""') + '"'


def _table_of(text: str, shape: Sidecar) -> pd.DataFrame:
    """Read a table and check it; anything can be raised if it was changed."""
    if shape != shape.seal():
        raise ValueError("another sidecar")
    lines = csv.reader(io.StringIO(text.rstrip("\r\n"), newline=""), strict=True)
    if next(lines, None) != _header(shape):
        raise ValueError("another header")
    rows = _rows(lines, len(shape.kinds), shape.certificate.content.rows)
    frame = _frame_of(rows, shape)
    frame.attrs[ATTRIBUTE] = shape.certificate.to_dict()
    verify(frame)
    # several texts can stand for one value, and a bracket of an interval for none
    if _cells(frame, shape) != rows:
        raise ValueError("other texts")
    mark_test(frame, shape.certificate)
    return frame


def _rows(lines: Iterable[list[str]], width: int, most: int) -> TextRows:
    """Read no more rows than were written: a line of nothing takes sixty times its memory."""
    rows: TextRows = []
    for row in lines:
        if len(row) != width or len(rows) == most:
            raise ValueError("other rows")
        rows.append(row)
    return rows


def _frame_of(rows: TextRows, shape: Sidecar) -> pd.DataFrame:
    """Build a frame of the dtypes it had."""
    levels, columns, kinds = shape.levels, shape.columns, shape.kinds
    texts: Iterable[Sequence[str]] = zip(*rows, strict=True) if rows else [()] * len(kinds)
    if shape.escaped_formulas:
        texts = _among_texts(_plain, texts, shape)
    parts = [parse_texts(cells, kind) for cells, kind in zip(texts, kinds, strict=True)]
    keys, values = parts[: len(levels)], parts[len(levels) :]
    if len(keys) == 1:
        index = keys[0].rename(levels[0])
    else:
        index = pd.MultiIndex.from_arrays(keys, names=levels)
    frame = pd.DataFrame({at: part.array for at, part in enumerate(values)}, index=index)
    labels = pd.Index(list(columns), tupleize_cols=False, name=shape.heading)
    return frame.set_axis(labels, axis=1)
