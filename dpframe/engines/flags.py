"""Sums of boolean columns in a single cell, which need only the number of True per column."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

_WIDE = 16  # columns whose rows lie together are best counted at once, if there are as many
_BYTE = 255  # as many rows can be counted in one byte


class Flags:
    """Sums of boolean columns in a single cell: the True of all of them are counted at once."""

    def __init__(self, frame: pd.DataFrame, places: Iterable[int]) -> None:
        self._frame = frame
        self._columns = np.unique(np.fromiter(places, np.int64))
        starts = np.flatnonzero(np.diff(self._columns, prepend=-2) != 1)
        self._runs = np.split(np.arange(len(self._columns)), starts[1:])  # of adjacent columns
        self._true = np.zeros(len(self._columns), np.int64)
        self._rows = 0

    def add(self, rows: slice, kept: np.ndarray) -> None:
        """Count in those rows of a block that are kept."""
        count = int(np.count_nonzero(kept))
        self._rows += count
        chosen = None if count == len(kept) else kept
        for run in self._runs if len(self._columns) else []:
            first, last = self._columns[run[[0, -1]]]
            table = self._frame.iloc[rows, first : last + 1].to_numpy()
            self._true[run] += _count_true(table, chosen)

    def total(self, place: int, low: np.int64, high: np.int64) -> int:
        """Return the sum of a column, of grid integers for False and True, modulo 2**64."""
        true = self._true[np.searchsorted(self._columns, place)]
        return int(low * np.int64(self._rows) + (high - low) * true)


def _count_true(table: np.ndarray, kept: np.ndarray | None) -> np.ndarray:
    """Count the True per column of a table, in all rows or in those kept."""
    if table.strides[0] == table.itemsize or table.shape[1] < _WIDE:
        chosen = table.T if kept is None else (column & kept for column in table.T)
        return np.array([np.count_nonzero(column) for column in chosen], np.int64)
    counts = np.zeros(table.shape[1], np.int64)
    for start in range(0, len(table), _BYTE):
        rows = slice(start, start + _BYTE)
        true = table[rows].view(np.uint8) != 0  # any other byte is True, and to be counted once
        if kept is not None:
            true &= kept[rows, None]
        counts += np.add.reduce(true.view(np.uint8), axis=0, dtype=np.uint8)
    return counts
