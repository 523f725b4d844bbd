"""Totals of several tables at once, in each of which a row has a cell."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from dpframe.engines.blocks import RowBlock
from dpframe.queries.tasks import Cells

_PART = 1 << 13  # rows; their cells in a few tables stay in the processor's cache


class Spread:
    """Adds rows to one cell of every table.

    Parameters
    ----------
    cells
        The tables, as margins.
    """

    def __init__(self, cells: Cells) -> None:
        self._axes = cells.axes
        self._margins = cells.margins
        sizes = (cells.of_margin(margin).size for margin in cells.margins)
        self._starts = list(accumulate(sizes, initial=0))[:-1]

    def add(
        self,
        totals: np.ndarray,
        block: RowBlock,
        inside: np.ndarray,
        amounts: Mapping[int, np.ndarray | int],
    ) -> None:
        """Add up a block, in place.

        Parameters
        ----------
        totals
            int64, one row per term; the cells of a table come after those of the one before.
        block
            The rows.
        inside
            Mask of the rows that count: these have a place on every axis.
        amounts
            What the rows add to terms, by position; one number if all add the same.
        """
        rows = np.flatnonzero(inside)
        everyone = len(rows) == len(inside)
        places = [block.position(axis) for axis in self._axes]
        for start in range(0, len(rows), _PART):
            part = slice(start, start + _PART) if everyone else rows[start : start + _PART]
            self._add(
                totals,
                len(inside[part]),
                [place[part] for place in places],
                {at: one if isinstance(one, int) else one[part] for at, one in amounts.items()},
            )

    def _add(
        self,
        totals: np.ndarray,
        length: int,
        places: Sequence[np.ndarray],
        amounts: Mapping[int, np.ndarray | int],
    ) -> None:
        for start, cells in zip(self._starts, self._cells(length, places), strict=True):
            for at, amount in amounts.items():
                np.add.at(totals[at, start:], cells, amount)

    def _cells(self, length: int, places: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the cells of rows in every table, row-major; what tables begin with is shared."""
        before: tuple[int, ...] = ()
        cells = [np.zeros(length, np.int64)]
        for margin in self._margins:
            shared = sum(accumulate(map(operator.eq, before, margin), operator.and_))
            del cells[shared + 1 :]
            for at in margin[shared:]:
                cells.append(cells[-1] * len(self._axes[at]))
                cells[-1] += places[at]
            before = margin
            yield cells[-1]
