"""Labels that the rows of a frame have, with the number of units on each; never noise.

Of every unit at most k labels count, a random choice of its own. Whether and how a row counts
depends on it, on the rows of its unit and on fresh randomness.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpframe.columns import filters
from dpframe.columns.labels import CodedLabels, coded_labels, no_labels
from dpframe.columns.suppress_warnings import silent
from dpframe.engines.threads import thread_count
from dpframe.engines.units import Units
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import LabelTask

_MOST_CELLS = 2**62


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Labels, each once and in any order, and how many units have them.

    Parameters
    ----------
    labels
        One array per column of the labels.
    units
        int64 numbers of units, 1 or more.
    """

    labels: tuple[np.ndarray, ...]
    units: np.ndarray

    def __add__(self, other: LabelCounts) -> LabelCounts:
        """Add up what was counted in two parts of a frame that share no unit."""
        return _merged([self, other])


def label_counts(
    parts: Iterable[pd.DataFrame], tasks: Sequence[LabelTask], threads: int | None = None
) -> list[LabelCounts]:
    """Count units by label in the parts of a frame; all rows of a unit are in one part.

    Parameters
    ----------
    parts
        Frames with the columns of the tasks, read one after the other.
    tasks
        What to count.
    threads
        How many to use; `None` for as many as are worth starting.
    """
    none = [LabelCounts(tuple(map(no_labels, task.axes)), np.zeros(0, int)) for task in tasks]
    pieces = [[counts] for counts in none]
    for part in parts:
        found = _of_part(part, tasks, threads or thread_count(len(part)))
        pieces = [_few([*had, more]) for had, more in zip(pieces, found, strict=True)]
    return list(map(_merged, pieces))


@silent
def _of_part(part: pd.DataFrame, tasks: Sequence[LabelTask], threads: int) -> list[LabelCounts]:
    with np.errstate(all="ignore"):
        return [_counted(part, task, threads) for task in tasks]


def _few(pieces: list[LabelCounts]) -> list[LabelCounts]:
    """Merge pieces once they outgrow the first, so that no label is merged again and again."""
    first, *others = (len(piece.units) for piece in pieces)
    return [_merged(pieces)] if sum(others) > first else pieces


def _merged(pieces: Sequence[LabelCounts]) -> LabelCounts:
    """Add up what was counted in parts of a frame that share no unit."""
    pieces = [piece for piece in pieces if len(piece.units)] or pieces[:1]
    if len(pieces) == 1:
        return pieces[0]
    columns = zip(*(piece.labels for piece in pieces), strict=True)
    together = [np.concatenate(parts) for parts in columns]
    coded = [CodedLabels(*_distinct(column)) for column in together]
    cells, first = _combined(coded, np.ones(len(together[0]), bool))
    units = np.zeros(len(first), np.int64)
    np.add.at(units, cells, np.concatenate([piece.units for piece in pieces]))
    return LabelCounts(tuple(column[first] for column in together), units)


def _counted(part: pd.DataFrame, task: LabelTask, threads: int) -> LabelCounts:
    places = {label: place for place, label in enumerate(part.columns)}
    columns = [part.iloc[:, places[axis.column]] for axis in task.axes]
    coded = [coded_labels(column, axis) for column, axis in zip(columns, task.axes, strict=True)]
    usable = np.ones(len(part), bool) if task.where is None else filters.keep(task.where, part)
    cells, first = _combined(coded, usable)
    if task.unit is not None:
        units = Units(part.iloc[:, places[task.unit]], threads)
        cells = cells[units.kept(cells, len(first), Caps(None, task.most, 1))]
    numbers = np.bincount(cells, minlength=len(first) + 1)[:-1]
    had = first[numbers > 0]
    labels = tuple(column.labels[column.codes[had]] for column in coded)
    return LabelCounts(labels, numbers[numbers > 0].astype(np.int64))


def _combined(coded: Sequence[CodedLabels], usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give numbers to the combinations of the labels of several columns.

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
            cells, distinct = pd.factorize(cells)
            size = len(distinct)
        cells = cells * len(labels) + codes
        size *= len(labels)
    rows = np.flatnonzero(usable)
    numbers, distinct = cells[rows], range(size)
    if len(coded) > 1:
        numbers, distinct = pd.factorize(numbers)
    found = np.full(len(usable), len(distinct), np.int64)
    found[rows] = numbers
    first = np.zeros(len(distinct), np.int64)  # of one that no row has, any
    first[numbers[::-1]] = rows[::-1]
    return found, first


def _distinct(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes, labels = pd.factorize(column)
    return np.asarray(labels), codes
