"""Labels that the rows of a frame have, with the number of units on each; never noise.

Of every unit at most k labels count, a random choice of its own. Whether and how a row counts
depends on it, on the rows of its unit and on fresh randomness: labels are numbered in their order,
so that the same random words keep the same labels of a unit, whatever others have.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpframe.columns import filters, lookup, times, values
from dpframe.columns.identity import silent
from dpframe.columns.values import is_plain
from dpframe.context import Context
from dpframe.engines.threads import thread_count
from dpframe.engines.units import Units
from dpframe.frozen import frozen
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import LabelAxis, LabelTask

_BLOCK = 1 << 16  # labels: what is made of them stays in cache
_LIMIT = 2**63  # integers of 64 bits end here
_NONE = -1  # the place of a value that is no key
_DTYPES = {"string": "O", "int64": "i8", "bool": "?", "date": "O", "datetime": "M8[us]"}
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
    parts = values.split_categories(column)
    if parts is not None:
        labels, codes = coded_labels(parts.values, axis)
        return CodedLabels(labels, values.spread(codes, parts.codes, _NONE))
    column = values.dense(column)
    if axis.kind == "string" and lookup.is_arrow_text(column.dtype):
        return _of_arrow(column, axis)
    return _code_labels(*_READERS[axis.kind](column, axis))


def no_labels(axis: LabelAxis) -> np.ndarray:
    """Return an array of no labels, of the dtype that labels of a column have."""
    return np.empty(0, _DTYPES[axis.kind])


def _code_labels(read: np.ndarray, valid: np.ndarray) -> CodedLabels:
    """Tell labels apart; those that are none are never hashed."""
    if valid.all():
        return _distinct(read)
    codes = np.full(len(read), _NONE, np.int64)
    labels, codes[valid] = _distinct(read[valid])
    return CodedLabels(labels, codes)


def _distinct(read: np.ndarray) -> CodedLabels:
    codes, labels = pd.factorize(read)
    return CodedLabels(np.asarray(labels), codes)


def _of_arrow(column: pd.Series, axis: LabelAxis) -> CodedLabels:
    """Tell Arrow texts apart as Arrow does, by their bytes, and look at each once."""
    codes, distinct = pd.factorize(column)
    labels, valid = _texts(pd.Series(distinct), axis)
    places = np.where(valid, np.cumsum(valid) - 1, _NONE)
    return CodedLabels(labels[valid], values.spread(places, codes, _NONE))


def _texts(column: pd.Series, axis: LabelAxis) -> Read:
    """Read texts that are not too long, and that files can hold: UTF-8 without NUL."""
    texts = values.texts(column)
    valid = np.empty(len(texts), bool)
    longest = axis.longest
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK].tolist()
        short = [text is not None and len(text) <= longest for text in block]
        if not is_plain("".join([text for text, fits in zip(block, short, strict=True) if fits])):
            short = [fits and is_plain(text) for text, fits in zip(block, short, strict=True)]
        valid[start : start + _BLOCK] = short
    return texts, valid


def _integers(column: pd.Series, axis: LabelAxis) -> Read:
    """Read whole numbers of 64 bits, whatever their type."""
    dtype = lookup.native_dtype(column.dtype)
    if dtype is None:
        return _of_objects(column, _whole, np.int64)
    if dtype.kind not in "biuf":
        return _nothing(column, np.int64)
    numbers, absent = lookup.native(column, dtype)
    valid = np.ones(len(numbers), bool) if absent is None else ~absent
    if dtype.kind == "f":
        numbers = numbers.astype(np.float64)
        valid &= (np.rint(numbers) == numbers) & (numbers >= -_LIMIT) & (numbers < _LIMIT)
        numbers = np.where(valid, numbers, 0)
    elif dtype.kind == "u":
        valid &= numbers < _LIMIT
    return numbers.astype(np.int64), valid


def _truths(column: pd.Series, axis: LabelAxis) -> Read:
    """Read what equals False or True."""
    numbers, valid = _integers(column, axis)
    return numbers == 1, valid & ((numbers == 0) | (numbers == 1))


def _dates(column: pd.Series, axis: LabelAxis) -> Read:
    """Read dates; points in time, which equal none, are of another kind."""
    if lookup.native_dtype(column.dtype) is not None:
        return _nothing(column, object)
    return _of_objects(column, _date, object)


def _moments(column: pd.Series, axis: LabelAxis) -> Read:
    """Read points in time without a zone, in microseconds; dates, which equal none, are not."""
    moments, valid = times.naive_times(column)
    if lookup.native_dtype(column.dtype) is None:
        objects = values.objects(column)
        kinds = (type(value) for value in objects)
        is_moment = (issubclass(kind, datetime.datetime | np.datetime64) for kind in kinds)
        valid &= np.fromiter(is_moment, bool, len(objects))
    return moments.view("M8[us]"), valid & (moments >= _FIRST) & (moments <= _LAST)


_READERS = dict(string=_texts, int64=_integers, bool=_truths, date=_dates, datetime=_moments)


def _nothing(column: pd.Series, dtype: Any) -> Read:
    """Find no label at all: the dtype of the column holds none of this kind."""
    return np.zeros(len(column), dtype), np.zeros(len(column), bool)


def _of_objects(column: pd.Series, read: Callable[[object], Any], dtype: Any) -> Read:
    """Read objects one by one; what raises is no label."""
    read_all = [
        values.contain_errors(read, cell, otherwise=None) for cell in values.objects(column)
    ]
    valid = np.fromiter((label is not None for label in read_all), bool, len(read_all))
    labels = np.zeros(len(read_all), dtype)
    labels[valid] = [label for label in read_all if label is not None]
    return labels, valid


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


_MOST_CELLS = 2**62  # numbers of cells are integers of 64 bits


@frozen(eq=False)
class LabelCounts:
    """Labels, each once and in any order, and how many units have them.

    Parameters
    ----------
    labels
        One array per column of the labels.
    units
        int64 numbers of units, 1 or more; or sums of their weights.
    """

    labels: tuple[np.ndarray, ...]
    units: np.ndarray

    def __add__(self, other: LabelCounts) -> LabelCounts:
        """Add up what was counted in two parts of a frame that share no unit."""
        return _merge_counts([self, other])


def label_counts(
    parts: Iterable[pd.DataFrame],
    tasks: Sequence[LabelTask],
    context: Context,
    threads: int | None = None,
) -> list[LabelCounts]:
    """Count units by label in the parts of a frame; all rows of a unit are in one part.

    Parameters
    ----------
    parts
        Frames with the columns of the tasks, read one after the other.
    tasks
        What to count.
    context
        Where random words come from, by which caps choose rows.
    threads
        How many to use; `None` for as many as are worth starting.
    """
    pieces = [[LabelCounts(tuple(map(no_labels, task.axes)), np.zeros(0, int))] for task in tasks]
    for part in parts:
        counts = _of_part(part, tasks, context, threads or thread_count(len(part)))
        pieces = [_few([*had, more]) for had, more in zip(pieces, counts, strict=True)]
    return list(map(_merge_counts, pieces))


@silent
def _of_part(
    part: pd.DataFrame, tasks: Sequence[LabelTask], context: Context, threads: int
) -> list[LabelCounts]:
    with np.errstate(all="ignore"):
        return [_count_labels(part, task, context, threads) for task in tasks]


def _few(pieces: list[LabelCounts]) -> list[LabelCounts]:
    """Merge pieces once they outgrow the first, so that no label is merged again and again."""
    first, *others = (len(piece.units) for piece in pieces)
    return [_merge_counts(pieces)] if sum(others) > first else pieces


def _merge_counts(pieces: Sequence[LabelCounts]) -> LabelCounts:
    """Add up what was counted in parts of a frame that share no unit."""
    pieces = [piece for piece in pieces if len(piece.units)] or pieces[:1]
    if len(pieces) == 1:
        return pieces[0]
    columns = zip(*(piece.labels for piece in pieces), strict=True)
    together = [np.concatenate(parts) for parts in columns]
    cells, first = combine_codes(list(map(_distinct, together)), np.ones(len(together[0]), bool))
    units = np.zeros(len(first), np.int64)
    np.add.at(units, cells, np.concatenate([piece.units for piece in pieces]))
    return LabelCounts(tuple(column[first] for column in together), units)


def _count_labels(
    part: pd.DataFrame, task: LabelTask, context: Context, threads: int
) -> LabelCounts:
    places = values.places_of(part)
    coded = [coded_labels(part.iloc[:, places[axis.column]], axis) for axis in task.axes]
    if task.unit:
        coded = list(map(_in_order, coded))
    usable = np.ones(len(part), bool) if task.where is None else filters.keep(task.where, part)
    cells, first = combine_codes(coded, usable)
    size = len(first)
    if task.without:
        cells = np.where(_known(coded, first, task.without)[cells], size, cells)
    # how many labels of a row's unit count
    sizes = np.ones(len(part), np.int64)
    if task.unit:
        named = [part.iloc[:, places[label]] for label in task.unit]
        units = Units(named, threads)
        kept = units.choose(cells, size, Caps(None, task.most, 1), context)
        cells = cells[kept]
        if task.weights:
            sizes = units.kept_of_unit(kept)[kept]
    if task.weights:
        numbers = np.zeros(size + 1, np.int64)
        np.add.at(numbers, cells, np.array(task.weights, np.int64)[sizes - 1])
        numbers = numbers[:-1]
    else:
        numbers = np.bincount(cells, minlength=size + 1)[:-1]
    had = first[numbers > 0]
    labels = tuple(column.labels[column.codes[had]] for column in coded)
    return LabelCounts(labels, numbers[numbers > 0].astype(np.int64))


def _known(
    coded: Sequence[CodedLabels], first: np.ndarray, without: Sequence[np.ndarray]
) -> np.ndarray:
    """Say which combinations of labels are among some known ones; that of none is not."""
    indexes = [
        pd.Index(part.labels, dtype=part.labels.dtype, tupleize_cols=False) for part in coded
    ]
    here = pd.MultiIndex.from_arrays([part.codes[first] for part in coded])
    pairs = zip(indexes, without, strict=True)
    these = pd.MultiIndex.from_arrays([index.get_indexer(labels) for index, labels in pairs])
    return np.append(here.isin(these), False)


def _in_order(coded: CodedLabels) -> CodedLabels:
    """Give labels their numbers in their own order."""
    labels = coded.labels
    # Python compares its objects several times as fast as NumPy does
    if labels.dtype == object:
        items = labels.tolist()
        order = np.fromiter(sorted(range(len(items)), key=items.__getitem__), np.intp, len(items))
    else:
        order = np.argsort(labels)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return CodedLabels(labels[order], values.spread(ranks, coded.codes, _NONE))


def combine_codes(
    coded: Sequence[CodedLabels], usable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give numbers to the combinations of the labels of several columns, in their order.

    Returns
    -------
    cells, first
        The numbers of the rows, those without a label have the number of combinations; and a row
        that each combination is of.
    """
    usable = usable.copy()
    cells, size = np.zeros(len(usable), np.int64), 1
    for labels, codes in coded:
        usable &= codes >= 0
        if size * max(len(labels), 1) >= _MOST_CELLS:
            cells, distinct = pd.factorize(cells, sort=True)
            size = len(distinct)
        cells = cells * len(labels) + codes
        size *= len(labels)
    rows = np.flatnonzero(usable)
    numbers = cells[rows]
    if len(coded) > 1:
        numbers, distinct = pd.factorize(numbers, sort=True)
        size = len(distinct)
    numbered = np.full(len(usable), size, np.int64)
    numbered[rows] = numbers
    # of one that no row has, any
    first = np.zeros(size, np.int64)
    first[numbers[::-1]] = rows[::-1]
    return numbered, first
