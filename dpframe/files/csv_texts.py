"""Keys and values as texts in a CSV file, and back to the dtypes that they had."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.certificates.json_records import Part, require
from dpframe.errors import CertificateError

INSTEAD = (
    "Write Parquet or pickle, or declare texts, numbers or timestamps as keys and texts as labels."
)
"""What to do with what has no form in a CSV file."""

_KNOWN = re.compile(
    r"object|str|string(\[(python|pyarrow)\])?"
    r"|[Uu]?[Ii]nt(8|16|32|64)|[Ff]loat(32|64)|bool(ean)?"
    r"|(datetime64|timedelta64|period)\[[^\]]*\]"
    r"|(u?int(8|16|32|64)|float|double|bool|(large_)?string|(timestamp|duration)\[[^\]]*\])"
    r"\[pyarrow\]"
)
"""The dtypes that are read: another, from a file, may ask for any amount of memory."""


@dataclass(frozen=True)
class PlainKind(Part):
    """A dtype whose name says how its texts are read."""

    dtype: str

    def __post_init__(self) -> None:
        require(_KNOWN.fullmatch(self.dtype) is not None, "no dtype that dpf.write_csv writes")


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


def kind_of(values: pd.Index) -> LevelKind:
    """Describe a dtype, so that its texts can be read back."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        of = dtype.categories
        return CategoryKind("category", bool(dtype.ordered), _kind_of_keys(of), tuple(texts_of(of)))
    return _kind_of_keys(values)


def _kind_of_keys(values: pd.Index) -> PlainKind | IntervalKind:
    if isinstance(values.dtype, pd.IntervalDtype):
        return IntervalKind("interval", values.closed, _plain_kind(values.left))
    return _plain_kind(values)


def _plain_kind(values: pd.Index) -> PlainKind:
    dtype = values.dtype
    several = dtype.kind not in "iufbmM" and not isinstance(dtype, pd.PeriodDtype)
    texts = not several or all(isinstance(value, str) for value in values)
    if texts and _KNOWN.fullmatch(str(dtype)):
        return PlainKind(str(dtype))
    raise CertificateError(
        f"keys of dtype {dtype} that are not all texts have no form in a CSV file. {INSTEAD}"
    )


def is_quoted(kind: LevelKind) -> bool:
    """Whether texts of a kind stand in quotes."""
    return kind.dtype not in _NUMBERS


def texts_of(values: pd.Index) -> list[str]:
    """Write values so that they can be read back to the bit."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        texts = texts_of(dtype.categories)
        return [texts[code] for code in values.codes]
    if isinstance(dtype, pd.IntervalDtype):
        opening = "[" if values.closed in ("left", "both") else "("
        closing = "]" if values.closed in ("right", "both") else ")"
        ends = zip(texts_of(values.left), texts_of(values.right), strict=True)
        return [f"{opening}{low}, {high}{closing}" for low, high in ends]
    gone = (
        values.isna() if values.hasnans and dtype.kind in "iufmM" else np.zeros(len(values), bool)
    )
    shown: Callable[[Any], str] = (lambda value: repr(float(value))) if dtype.kind == "f" else str
    # what was suppressed is an empty cell
    return ["" if empty else shown(value) for value, empty in zip(values, gone, strict=True)]


def parsed(texts: Sequence[str], kind: LevelKind) -> pd.Index:
    """Read texts back."""
    if isinstance(kind, CategoryKind):
        codes = {text: code for code, text in enumerate(kind.texts)}
        categories = parsed(kind.texts, kind.categories)
        return pd.CategoricalIndex(
            pd.Categorical.from_codes(
                [codes[text] for text in texts], categories=categories, ordered=kind.ordered
            )
        )
    if isinstance(kind, IntervalKind):
        ends = [text[1:-1].split(", ") for text in texts]
        left, right = (parsed([pair[end] for pair in ends], kind.ends) for end in (0, 1))
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
        absent = np.nan if dtype.startswith("float") else pd.NA
        numbers = [_NUMBERS[dtype](text) if text else absent for text in texts]
        return pd.Index(numbers, dtype=dtype)
    if dtype.startswith("datetime64"):
        zone = dtype.partition(", ")[2].rstrip("]")
        times = pd.to_datetime([text or None for text in texts], format="ISO8601", utc=bool(zone))
        return (times.tz_convert(zone) if zone else times).astype(dtype)
    if dtype.startswith("timedelta64"):
        return pd.to_timedelta([text or None for text in texts]).astype(dtype)
    if dtype.startswith("period"):
        return pd.PeriodIndex(texts, dtype=dtype)
    # texts of the dtype of pandas itself, which has another name in other versions
    return pd.Index(list(texts), dtype=str if dtype == "str" else dtype)
