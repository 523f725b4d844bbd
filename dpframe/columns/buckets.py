"""Buckets of privacy units: rows of one unit share a bucket, in every part of a frame.

Units are equal as in a dict: 1, 1.0 and True are one unit; so is the text "1". Equal units fall in
one bucket whatever the dtype of their column, in every process; units that differ may share one,
too. So a frame can be split into parts that hold all rows of their units without ever being in
memory as a whole.
"""

import datetime
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from dpframe.columns import compute, pa, times, values
from dpframe.columns.identity import KNOWN, known_base, text_of_number

# rows; what is made of them on the way stays in the processor's cache
_BLOCK = 1 << 16
# bytes
_WORD = 8
# integers below this size are told apart
_LIMIT = 2.0**63
# of the text of a float
_MOST_LETTERS = 25


def unit_buckets(columns: Sequence[pd.Series], count: int) -> np.ndarray:
    """Give every row the bucket of its privacy unit.

    Parameters
    ----------
    columns
        What together says whose row it is, of any dtypes.
    count
        Number of buckets.

    Returns
    -------
    numpy.ndarray
        int64 in `0..count - 1`, one per row, that depends on the unit alone. Values that are
        missing, tuples, durations and objects of other classes are as the integer 0.

    Examples
    --------
    >>> unit_buckets([pd.Series([7, 8, 7])], 100)
    array([ 4, 20,  4])
    >>> unit_buckets([pd.Series([7.0, None, "7", "seven"], dtype=object)], 100)
    array([ 4,  0,  4, 24])
    """
    buckets = np.empty(len(columns[0]), np.int64)
    for start in range(0, len(buckets), _BLOCK):
        mixed = np.zeros(1, np.uint64)
        for column in columns:
            block = column.iloc[start : start + _BLOCK]
            with np.errstate(all="ignore"):
                marks = _marks(block)
            marks[values.missing(block)] = 0
            mixed = _mix_bits(mixed * np.uint64(31) + marks)
        # quicker than a remainder
        mixed -= mixed // np.uint64(count) * np.uint64(count)
        buckets[start : start + _BLOCK] = mixed
    return buckets


def _mix_bits(marks: np.ndarray) -> np.ndarray:
    """Mix the bits of marks, 0 to 0: the finalizer of SplitMix64 (Steele et al. 2014)."""
    marks = (marks ^ (marks >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    marks = (marks ^ (marks >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(marks ^ (marks >> np.uint64(31)))


Family = Callable[[np.ndarray], np.ndarray]
"""From objects of one class to their marks."""


# A mark is 64 bits that equal units share. An integer of up to 64 bits is its own mark.


def _marks(column: pd.Series) -> np.ndarray:
    """Mark the rows of a column, uint64 in a new array; in any way where the unit is missing."""
    parts = values.split_categories(column)
    if parts is not None:
        return values.spread(_marks(parts.values), parts.codes, 0)
    column = values.dense(column)
    kind = column.dtype.kind
    if kind == "M" or _is_arrow_date(column.dtype):
        return _marks_of_times(column)
    if kind in "biufc" and column.dtype.type not in (np.longdouble, np.clongdouble):
        return _marks_of_numbers(_numbers(column))
    return _marks_of_objects(_objects(column))


def _objects(column: pd.Series) -> np.ndarray:
    """View a column as Python objects, quickest where all of them are of one class."""
    if column.dtype.kind == "U" or isinstance(column.dtype, pd.StringDtype):
        texts = values.contain_errors(
            lambda: column.array.to_numpy(dtype=object, na_value=""), otherwise=None
        )
        if texts is not None:  # Arrow takes any bytes for a text
            return np.asarray(texts)
    return values.objects(column)


def _numbers(column: pd.Series) -> np.ndarray:
    """View a column of numbers as NumPy's, 0 where they are missing."""
    array: Any = column.array
    if isinstance(column.dtype, np.dtype):
        return np.asarray(array)
    dtype = array.dtype.numpy_dtype
    return np.asarray(array.to_numpy(dtype=dtype, na_value=dtype.type(0).item()))


def _marks_of_numbers(numbers: np.ndarray) -> np.ndarray:
    """Mark NumPy's numbers: a float that is an integer as that integer."""
    kind = numbers.dtype.kind
    if kind == "c":
        numbers = numbers.real
    elif kind != "f" and not (kind == "u" and numbers.dtype.itemsize == _WORD):
        return numbers.astype(np.int64).view(np.uint64)
    floats = numbers.astype(np.float64)
    if kind == "u":
        return np.where(numbers < 2**63, numbers, floats.view(np.uint64))
    is_whole = (np.rint(floats) == floats) & (floats >= -_LIMIT) & (floats < _LIMIT)
    integers = np.where(is_whole, floats, 0).astype(np.int64)
    return np.where(is_whole, integers.view(np.uint64), floats.view(np.uint64))


def _is_arrow_date(dtype: object) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and bool(pa.types.is_date(dtype.pyarrow_dtype))


def _marks_of_times(column: pd.Series) -> np.ndarray:
    """Mark points in time: microseconds at UTC, or on the wall where there is no zone.

    Of the two times at which a clock shows the same in autumn, the first stands for both: so does
    Python when it hashes them.
    """
    wall, _ = times.wall_times(column)
    zone = getattr(getattr(column.dtype, "pyarrow_dtype", column.dtype), "tz", None)
    if zone is not None:
        wall = times.first_instants(wall, zone)
    return wall.view(np.uint64)


def _marks_of_objects(items: np.ndarray) -> np.ndarray:
    """Mark Python objects, with 0 those of classes that are not known here."""
    marks = np.zeros(len(items), np.uint64)
    kinds = np.fromiter(map(id, map(type, items)), np.int64, len(items))
    if not len(items):
        return marks
    order = np.arange(len(items))
    if (kinds != kinds[0]).any():
        order = np.argsort(kinds, kind="stable")
    for rows in np.split(order, 1 + np.flatnonzero(np.diff(kinds[order]))):
        # how objects of a class are marked, if it compares and hashes like one known here
        base = known_base(type(items[rows[0]]))
        if base in _FAMILIES:
            marks[rows] = _FAMILIES[base](items[rows])
    return marks


def _texts(items: np.ndarray) -> np.ndarray:
    """Hash texts and bytes, with a fixed key; texts of numbers are marked as these."""
    if len(items) and type(items[0]) not in (str, bytes):
        items = np.fromiter(map(_plain, items), object, len(items))
    try:
        marks = np.asarray(pd.util.hash_array(items, categorize=False))
    except UnicodeEncodeError:  # a lone surrogate
        marks = np.fromiter(map(_hash_of_text, items), np.uint64, len(items))
    if len(items) and isinstance(items[0], str):
        _mark_texts_of_numbers(items, marks)
    return marks


def _mark_texts_of_numbers(items: np.ndarray, marks: np.ndarray) -> None:
    """Give texts that are the form of a number its mark: most integers at once, where Arrow can."""
    left = np.flatnonzero(
        [text[-1:] in _ENDS and (text[:1] in _STARTS or text == "inf") for text in items]
    )
    with suppress(*_NO_ARROW):
        texts = pa.array(items[left], pa.string())
        is_whole = compute.match_substring_regex(texts, _WHOLE).to_numpy(zero_copy_only=False)
        integers = texts.filter(pa.array(is_whole)).cast(pa.int64())
        marks[left[is_whole]] = integers.to_numpy().view(np.uint64)
        left = left[~is_whole]
    for row in left:
        number = _number_of(items[row])
        if number is not None:
            marks[row] = _mark_of_number(number)


_NO_ARROW = (AttributeError,) if pa is None else (pa.ArrowException, UnicodeEncodeError)
# -inf ends so, too
_ENDS, _STARTS = frozenset("0123456789f"), frozenset("-0123456789")
# in 64 bits whatever the digits are
_WHOLE = "^(0|-?[1-9][0-9]{0,17})$"


def _number_of(text: str) -> int | float | None:
    """Return the number whose one form a text is."""
    if len(text) > _MOST_LETTERS:
        return None
    try:
        number = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return None
    return number if text_of_number(number) == text else None


def _plain(text: str | bytes) -> str | bytes:
    """Return a text of a subclass as one of the class itself."""
    return str.__str__(text) if isinstance(text, str) else b"".join([text])


def _hash_of_text(text: str | bytes) -> int:
    """Hash one text: as NumPy's hash of all, 0 if UTF-8 cannot hold it."""
    try:
        return int(pd.util.hash_array(np.array([text], object), categorize=False)[0])
    except UnicodeEncodeError:
        return 0


def _each(mark: Callable[[Any], int], items: np.ndarray) -> np.ndarray:
    """Mark objects one by one, with 0 those that raise."""
    marks = (values.contain_errors(mark, item, otherwise=0) for item in items)
    return np.fromiter(marks, np.uint64, len(items))


def _mark_of_number(value: Any) -> int:
    """Mark of a real number: of an integer of 64 bits itself, of others the nearest float's."""
    if isinstance(value, complex | np.generic):
        value = np.asarray(value).real.item()
    if isinstance(value, float):
        value = float(value)
    nearest = values.nearest_float(value)
    if -_LIMIT <= nearest <= _LIMIT:
        integer = int(value)
        if integer == value and -(2**63) <= integer < 2**63:
            return integer % 2**64
    return int(struct.unpack("<Q", struct.pack("<d", nearest))[0])


def _points_in_time(items: np.ndarray) -> np.ndarray:
    folded = (values.contain_errors(_first_fold, item, otherwise=None) for item in items)
    first = np.fromiter(folded, object, len(items))
    column = pd.Series(first, dtype=object)
    utc, aware = times.instants(column)
    wall, _valid = times.wall_times(column)
    return np.where(aware, utc, wall).view(np.uint64)


def _first_fold(value: Any) -> Any:
    """Choose the first of two times at which a clock shows the same."""
    return value.replace(fold=0) if getattr(value, "fold", 0) else value


def _is_of_numbers(kind: type) -> bool:
    numbers = (int, float, complex, Decimal, Fraction, np.number, np.bool_)
    return issubclass(kind, numbers) and not issubclass(kind, np.timedelta64)


_FAMILIES: dict[type, Family] = {
    **{kind: partial(_each, _mark_of_number) for kind in KNOWN if _is_of_numbers(kind)},
    **dict.fromkeys((str, bytes, np.str_, np.bytes_), _texts),
    **dict.fromkeys((pd.Timestamp, datetime.datetime, datetime.date), _points_in_time),
    np.datetime64: _points_in_time,
    UUID: partial(_each, lambda item: item.int % 2**64),
}
"""How ids of some classes are told apart; tuples and durations, which are no usual ids, are not."""
