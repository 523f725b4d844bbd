"""Labels of one private column, each read from its own value, in a kind that is declared.

What is published has the kind that was asked for, whatever else the column holds. A value is a
label if it equals one of that kind, as keys do: 1, 1.0 and True are the integer 1. Anything else
(missing, of another kind, too long, beyond the range) is no label; nothing is raised or warned of.
Which of several equal values comes first does not matter: all give the same label.
"""

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.columns import times, values
from dpframe.columns.contained import contained
from dpframe.columns.lookup import is_arrow_text, native, native_dtype
from dpframe.queries.tasks import LabelAxis, LabelKind

_BLOCK = 1 << 16
_LIMIT = 2**63
_NONE = -1
_DTYPES: dict[LabelKind, str] = {
    "string": "O",
    "int64": "i8",
    "bool": "?",
    "date": "O",
    "datetime": "M8[us]",
}
_FIRST = np.datetime64("0001-01-01", "us").view(np.int64)
_LAST = np.datetime64("9999-12-31T23:59:59.999999", "us").view(np.int64)

Read = tuple[np.ndarray, np.ndarray]
"""A label for every row, and whether it is one."""


class CodedLabels(NamedTuple):
    """The labels of a column.

    Parameters
    ----------
    labels
        Distinct labels; some may be of no row.
    codes
        int64 positions of the rows' labels, -1 where there is none.
    """

    labels: np.ndarray
    codes: np.ndarray


def coded_labels(column: pd.Series, axis: LabelAxis) -> CodedLabels:
    """Read the labels of a column of any dtype.

    Examples
    --------
    >>> whole = LabelAxis("n", "int64")
    >>> found = coded_labels(pd.Series([7, 7.0, "7", None, True, 7.5], dtype=object), whole)
    >>> found.labels, found.codes
    (array([7, 1]), array([ 0,  0, -1, -1,  1, -1]))
    """
    parts = values.coded(column)
    if parts is not None:
        labels, codes = coded_labels(parts.values, axis)
        return CodedLabels(labels, values.spread(codes, parts.codes, _NONE))
    column = values.dense(column)
    if axis.kind == "string" and is_arrow_text(column.dtype):
        return _of_arrow(column, axis)
    return _coded(*_READERS[axis.kind](column, axis))


def no_labels(axis: LabelAxis) -> np.ndarray:
    """Return an array of no labels, of the dtype that labels of a column have."""
    return np.empty(0, _DTYPES[axis.kind])


def _coded(found: np.ndarray, valid: np.ndarray) -> CodedLabels:
    """Tell labels apart; those that are none are never hashed."""
    if valid.all():
        codes, labels = pd.factorize(found)
        return CodedLabels(np.asarray(labels), codes)
    codes = np.full(len(found), _NONE, np.int64)
    codes[valid], labels = pd.factorize(found[valid])
    return CodedLabels(np.asarray(labels), codes)


def _of_arrow(column: pd.Series, axis: LabelAxis) -> CodedLabels:
    """Tell Arrow texts apart as Arrow does, by their bytes, and look at each once."""
    codes, distinct = pd.factorize(column)
    found, valid = _texts(pd.Series(distinct), axis)
    places = np.where(valid, np.cumsum(valid) - 1, _NONE)
    return CodedLabels(found[valid], values.spread(places, codes, _NONE))


def _texts(column: pd.Series, axis: LabelAxis) -> Read:
    """Read texts that are not too long, and that files can hold: UTF-8 without NUL."""
    found = values.texts(column)
    valid = np.empty(len(found), bool)
    longest = axis.longest
    for start in range(0, len(found), _BLOCK):
        block = found[start : start + _BLOCK].tolist()
        short = [text is not None and len(text) <= longest for text in block]
        if not _is_plain("".join([text for text, fits in zip(block, short, strict=True) if fits])):
            short = [fits and _is_plain(text) for text, fits in zip(block, short, strict=True)]
        valid[start : start + _BLOCK] = short
    return found, valid


def _is_plain(text: str) -> bool:
    return "\0" not in text and (text.isascii() or is_unicode(text))


def _integers(column: pd.Series, axis: LabelAxis) -> Read:
    """Read whole numbers of 64 bits, whatever their type."""
    dtype = native_dtype(column.dtype)
    if dtype is None:
        return _of_objects(column, _whole, np.int64)
    if dtype.kind not in "biuf":
        return _nothing(column, np.int64)
    found, absent = native(column, dtype)
    valid = np.ones(len(found), bool) if absent is None else ~absent
    if dtype.kind == "f":
        found = found.astype(np.float64)
        valid &= (np.rint(found) == found) & (found >= -_LIMIT) & (found < _LIMIT)
        found = np.where(valid, found, 0)
    elif dtype.kind == "u":
        valid &= found < _LIMIT
    return found.astype(np.int64), valid


def _truths(column: pd.Series, axis: LabelAxis) -> Read:
    """Read what equals False or True."""
    found, valid = _integers(column, axis)
    return found == 1, valid & ((found == 0) | (found == 1))


def _dates(column: pd.Series, axis: LabelAxis) -> Read:
    """Read dates; points in time, which equal none, are of another kind."""
    if native_dtype(column.dtype) is not None:
        return _nothing(column, object)
    return _of_objects(column, _date, object)


def _moments(column: pd.Series, axis: LabelAxis) -> Read:
    """Read points in time without a zone, in microseconds; dates, which equal none, are not."""
    found, valid = times.naive_times(column)
    if native_dtype(column.dtype) is None:
        objects = values.objects(column)
        valid &= np.fromiter(map(_is_moment, objects), bool, len(objects))
    return found.view("M8[us]"), valid & (found >= _FIRST) & (found <= _LAST)


_READERS: dict[LabelKind, Callable[[pd.Series, LabelAxis], Read]] = {
    "string": _texts,
    "int64": _integers,
    "bool": _truths,
    "date": _dates,
    "datetime": _moments,
}


def _nothing(column: pd.Series, dtype: Any) -> Read:
    """Find no label at all: the dtype of the column holds none of this kind."""
    return np.zeros(len(column), dtype), np.zeros(len(column), bool)


def _of_objects(column: pd.Series, read: Callable[[object], Any], dtype: Any) -> Read:
    """Read objects one by one; what raises is no label."""
    read_all = [contained(read, value, otherwise=None) for value in values.objects(column)]
    valid = np.fromiter((label is not None for label in read_all), bool, len(read_all))
    found = np.zeros(len(read_all), dtype)
    found[valid] = [label for label in read_all if label is not None]
    return found, valid


# Methods of built-in types are called on the type: a subclass may override them, to raise or lie.


def _whole(value: Any) -> int | None:
    """Return a number that is whole as an integer, anything else as None."""
    kind = type(value)
    if issubclass(kind, np.generic) and not issubclass(kind, np.timedelta64 | float):
        value = value.item()
        kind = type(value)
    if issubclass(kind, values.COMPLEX):
        value = values.real_part(value)
        kind = type(value)
    if issubclass(kind, int):
        number = int.__index__(value)
    elif issubclass(kind, float):
        number = _integer(float.__float__(value))
    elif kind in (Decimal, Fraction, np.longdouble):
        number = _integer(value)
    else:
        return None
    return number if -_LIMIT <= number < _LIMIT else None


def _integer(value: Any) -> int:
    """Return a number as an integer that equals it; raise, or leave the range, if there is none."""
    if not -_LIMIT <= value < _LIMIT:
        return _LIMIT
    number = int(value)
    return number if number == value else _LIMIT


def _date(value: Any) -> datetime.date | None:
    """Return a date as a plain one, anything else as None."""
    kind = type(value)
    if not issubclass(kind, datetime.date) or issubclass(kind, datetime.datetime):
        return None
    return datetime.date.fromordinal(datetime.date.toordinal(value))


def _is_moment(value: object) -> bool:
    return issubclass(type(value), datetime.datetime | np.datetime64)
