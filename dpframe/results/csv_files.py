"""Released frames as CSV files, with a sidecar that keeps what CSV loses.

CSV keeps neither dtypes nor `attrs`. Beside `name.csv` stands `name.csv.certificate.json` with the
certificate and the dtypes of the table, so that what is read back is what was released, to the bit.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.errors import CertificateError, UnreadableCertificateError
from dpframe.results.certificate import ATTRIBUTE, Certificate, verify
from dpframe.results.reading import Part, plain, read

__all__ = ["read_csv", "sidecar_of", "write_csv"]

Place: TypeAlias = str | PathLike[str]
TextRows: TypeAlias = list[list[str]]
Label: TypeAlias = str | bool | int | float | None

_FORMAT: Final = 1
_SUFFIX = ".certificate.json"
_INSTEAD = (
    "Write Parquet or pickle, or declare texts, numbers or timestamps as keys and texts as labels."
)
_BROKEN = (  # what parsing a file that somebody changed can end in
    csv.Error,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class PlainKind(Part):
    """A dtype whose name says how its texts are read."""

    dtype: str


@dataclass(frozen=True)
class IntervalKind(Part):
    """A dtype of intervals, by that of their ends."""

    dtype: Literal["interval"]
    closed: Literal["left", "right", "both", "neither"]
    ends: PlainKind


@dataclass(frozen=True)
class CategoryKind(Part):
    """A dtype of categories: what they are, and their texts in order."""

    dtype: Literal["category"]
    ordered: bool
    categories: PlainKind | IntervalKind
    texts: tuple[str, ...]


LevelKind: TypeAlias = PlainKind | IntervalKind | CategoryKind


@dataclass(frozen=True)
class Sidecar(Part):
    """What CSV loses: labels, dtypes of keys and columns, and the certificate."""

    format: Literal[1]
    levels: tuple[Label, ...]
    columns: tuple[Label, ...]
    kinds: tuple[LevelKind, ...]
    certificate: Certificate


def sidecar_of(path: Place) -> Path:
    """Return where the certificate of a CSV file is kept.

    Examples
    --------
    >>> sidecar_of("zones.csv").name
    'zones.csv.certificate.json'
    """
    return Path(fspath(path) + _SUFFIX)


def write_csv(released: pd.DataFrame, path: Place) -> None:
    """Write a released frame to a CSV file, and its certificate to a file beside it.

    The index comes first, then the columns, under one header. Numbers have as many digits as it
    takes to read them back to the bit.

    Parameters
    ----------
    released
        A released frame, denoised or not. Keys are texts, numbers, booleans, dates, times, periods,
        intervals or categories of these; labels are texts or numbers.
    path
        The CSV file; the certificate goes to `sidecar_of(path)`. Files that are there are replaced.

    Raises
    ------
    CertificateError
        If the frame is not what was released, or its keys or labels have no form in CSV; no file is
        written then.

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
    shape = _shape_of(released, verify(released))
    try:
        table = _text_of(released, shape).encode()
        beside = json.dumps(plain(shape), indent=1).encode()
        _table_of(table.decode(), read(Sidecar, json.loads(beside), "the certificate"))
    except (*_BROKEN, CertificateError):  # a key or a label that does not read back as it was
        raise CertificateError(
            f"a key or a label of this release has no form in a CSV file. {_INSTEAD}"
        ) from None
    Path(path).write_bytes(table)
    sidecar_of(path).write_bytes(beside)


def read_csv(path: Place) -> pd.DataFrame:
    """Read a released frame written by `write_csv`, and check it against its certificate.

    Every cell of the file, the header included, must be as it was written.

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
    FileNotFoundError
        If there is no such file.

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
    table = Path(path).read_bytes()
    shape = _sidecar(sidecar_of(path))
    try:
        return _table_of(table.decode(), shape)
    except _BROKEN:
        raise CertificateError(
            f"{Path(path).name!r} is not what was written: header, rows or values, or the "
            "certificate beside it, were changed. Write both files anew from the released frame "
            "with dpf.write_csv."
        ) from None


def _sidecar(beside: Path) -> Sidecar:
    """Read a sidecar and check its format."""
    if not beside.exists():
        raise CertificateError(
            f"there is no {beside.name!r} beside the file, so nothing says what was promised "
            "about it. Keep the two files that dpf.write_csv makes together."
        )
    try:
        shape = json.loads(beside.read_bytes())
    except _BROKEN:
        shape = None
    found = shape.get("format") if isinstance(shape, dict) else None
    if found != _FORMAT:
        raise UnreadableCertificateError(
            f"{beside.name!r} is not a certificate of a CSV file in format {_FORMAT}, which this "
            f"version reads; its format is {found!r}. Write both files anew from the released "
            "frame with dpf.write_csv."
        )
    return read(Sidecar, shape, f"{beside.name!r}")


def _shape_of(released: pd.DataFrame, certificate: Certificate) -> Sidecar:
    """Describe what CSV loses: dtypes, labels, and which columns are keys."""
    return Sidecar(
        format=_FORMAT,
        levels=tuple(_plain_label(name) for name in released.index.names),
        columns=tuple(_plain_label(name) for name in released.columns),
        kinds=tuple(_kind(part) for part in _parts(released)),
        certificate=certificate,
    )


def _parts(frame: pd.DataFrame) -> list[pd.Index]:
    """Return the levels of the index and the columns, in the order of the file."""
    index = frame.index
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    return [*levels, *(pd.Index(frame.iloc[:, at]) for at in range(frame.shape[1]))]


def _plain_label(label: object) -> Label:
    """Return a label that JSON keeps as it is."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, str | int):
        return label
    if isinstance(label, float) and math.isfinite(label):
        return label
    raise CertificateError(f"the label {label!r} has no form in a CSV file. {_INSTEAD}")


def _header(shape: Sidecar) -> list[str]:
    return ["" if label is None else str(label) for label in shape.levels + shape.columns]


def _cells(frame: pd.DataFrame) -> TextRows:
    """Return the texts of a table, row by row."""
    return [list(row) for row in zip(*map(_texts, _parts(frame)), strict=True)]


def _text_of(released: pd.DataFrame, shape: Sidecar) -> str:
    """Write a table as CSV."""
    quoted = [kind.dtype not in _NUMBERS for kind in shape.kinds]
    lines = [",".join(map(_quoted, _header(shape)))]
    for row in _cells(released):
        texts = (_quoted(text) if quote else text for text, quote in zip(row, quoted, strict=True))
        lines.append(",".join(texts))
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Quote a text, so that commas, quotes and the ends of lines within it are part of it."""
    return '"' + text.replace('"', '""') + '"'


def _table_of(text: str, shape: Sidecar) -> pd.DataFrame:
    """Read a table and check it; anything can be raised if it was changed."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    if header != _header(shape):
        raise ValueError("another header")
    frame = _frame_of(rows, shape)
    frame.attrs[ATTRIBUTE] = shape.certificate.to_dict()
    verify(frame)
    # several texts can stand for one value, and a bracket of an interval for none
    if _cells(frame) != rows:
        raise ValueError("other texts")
    return frame


def _frame_of(rows: TextRows, shape: Sidecar) -> pd.DataFrame:
    """Build a frame of the dtypes it had."""
    levels, columns, kinds = shape.levels, shape.columns, shape.kinds
    texts = zip(*rows, strict=True) if rows else [()] * len(kinds)
    parts = [_parsed(cells, kind) for cells, kind in zip(texts, kinds, strict=True)]
    keys, values = parts[: len(levels)], parts[len(levels) :]
    index = (
        keys[0].rename(levels[0])
        if len(keys) == 1
        else pd.MultiIndex.from_arrays(keys, names=levels)
    )
    frame = pd.DataFrame({at: part.to_numpy() for at, part in enumerate(values)}, index=index)
    return frame.set_axis(pd.Index(list(columns), tupleize_cols=False), axis=1)


def _kind(values: pd.Index) -> LevelKind:
    """Describe a dtype, so that its texts can be read back."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        of = dtype.categories
        return CategoryKind("category", bool(dtype.ordered), _kind_of_keys(of), tuple(_texts(of)))
    return _kind_of_keys(values)


def _kind_of_keys(values: pd.Index) -> PlainKind | IntervalKind:
    if isinstance(values.dtype, pd.IntervalDtype):
        return IntervalKind("interval", values.closed, _plain_kind(values.left))
    return _plain_kind(values)


def _plain_kind(values: pd.Index) -> PlainKind:
    dtype = values.dtype
    if dtype.kind in "iufbmM" or isinstance(dtype, pd.PeriodDtype):
        return PlainKind(str(dtype))
    if all(isinstance(value, str) for value in values):
        return PlainKind(str(dtype))
    raise CertificateError(
        f"keys of dtype {dtype} that are not all texts have no form in a CSV file. {_INSTEAD}"
    )


def _texts(values: pd.Index) -> list[str]:
    """Write values so that they can be read back to the bit."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        texts = _texts(dtype.categories)
        return [texts[code] for code in values.codes]
    if isinstance(dtype, pd.IntervalDtype):
        opening = "[" if values.closed in ("left", "both") else "("
        closing = "]" if values.closed in ("right", "both") else ")"
        ends = zip(_texts(values.left), _texts(values.right), strict=True)
        return [f"{opening}{low}, {high}{closing}" for low, high in ends]
    if dtype.kind == "f":
        return [repr(float(value)) for value in values]
    return [str(value) for value in values]


def _parsed(texts: Sequence[str], kind: LevelKind) -> pd.Index:
    """Read texts back."""
    if isinstance(kind, CategoryKind):
        codes = {text: code for code, text in enumerate(kind.texts)}
        categories = _parsed(kind.texts, kind.categories)
        return pd.CategoricalIndex(
            pd.Categorical.from_codes(
                [codes[text] for text in texts], categories=categories, ordered=kind.ordered
            )
        )
    if isinstance(kind, IntervalKind):
        ends = [text[1:-1].split(", ") for text in texts]
        left, right = (_parsed([pair[end] for pair in ends], kind.ends) for end in (0, 1))
        return pd.IntervalIndex.from_arrays(left, right, closed=kind.closed)
    return _parsed_plain(texts, kind.dtype)


_TRUTHS = {"True": True, "False": False}
_NUMBERS: Mapping[str, Callable[[str], object]] = {
    **{f"{sign}{bits}": int for sign in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"{sign}{bits}": int for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)},
    **{name: float for name in ("float32", "float64", "Float32", "Float64")},
    **{name: _TRUTHS.__getitem__ for name in ("bool", "boolean")},
}
"""How a text is read that stands for a number of a dtype."""


def _parsed_plain(texts: Sequence[str], dtype: str) -> pd.Index:
    if dtype in _NUMBERS:
        return pd.Index([_NUMBERS[dtype](text) for text in texts], dtype=dtype)
    if dtype.startswith("datetime64"):
        zone = dtype.partition(", ")[2].rstrip("]")
        times = pd.to_datetime(list(texts), format="ISO8601", utc=bool(zone))
        return (times.tz_convert(zone) if zone else times).astype(dtype)
    if dtype.startswith("timedelta64"):
        return pd.to_timedelta(list(texts)).astype(dtype)
    if dtype.startswith("period"):
        return pd.PeriodIndex(texts, dtype=dtype)
    # texts of pandas' own dtype, which has another name in other versions
    return pd.Index(list(texts), dtype=None if dtype == "str" else dtype)
