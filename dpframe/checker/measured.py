"""What the check is told of a measurement: how it is probed, and what one unit can fill."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from dpframe.checker.noise import BlockNoise
from dpframe.forks import cached_property
from dpframe.privacy.neighbors import Caps, Neighboring

OddRows: TypeAlias = Mapping[Hashable, tuple[Sequence[object], np.ndarray]]
"""Rows of a frame: by column, some values, and which of them each row has."""


@dataclass(frozen=True)
class OddColumn:
    """A column that totals read.

    Parameters
    ----------
    ends
        Values at the ends of its grid, and between them where squares or products are added up.
    constants
        What conditions compare it with.
    """

    ends: tuple[object, ...] = ()
    constants: tuple[float | str, ...] = ()


@dataclass(frozen=True)
class ProbedTotal:
    """An integer that rows add to a cell.

    Parameters
    ----------
    values
        Columns of whose values it is made.
    given
        Columns of the condition and of the weight of a row.
    units
        Whether one row of a unit alone is counted.
    few
        Whether a row adds to a few of these totals at most.
    known
        Whether odd values of its columns stand for all others. They do not where squares, products
        or arithmetic are added up, and where columns are compared with each other.
    """

    values: tuple[Hashable, ...] = ()
    given: tuple[Hashable, ...] = ()
    units: bool = False
    few: bool = False
    known: bool = True


@dataclass(frozen=True)
class RowPlaces:
    """Where a row can be counted.

    Parameters
    ----------
    sizes
        Numbers of cells of the axes, the last varying fastest.
    tables
        Axes of the tables that a row is counted in, one cell in each; none: one of all axes.
    cells
        Number of all cells.
    inner
        How many neighboring cells are one group for the caps.
    everywhere
        Whether every row is in some cell.
    """

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    cells: int
    inner: int
    everywhere: bool

    @property
    def groups(self) -> int:
        """Number of groups for the caps; all cells of tables are one."""
        return 1 if self.tables else self.cells // self.inner

    @property
    def shape(self) -> tuple[int, ...]:
        """Where a row can be within a group."""
        return self.sizes if self.tables else (self.inner,)

    @cached_property
    def _strides(self) -> tuple[np.ndarray, np.ndarray]:
        """By table, how far apart neighbors along each axis are, and where the table begins."""
        strides = np.zeros((len(self.tables), len(self.sizes)), np.int64)
        starts = np.zeros(len(self.tables), np.int64)
        start = 0
        for table, axes in enumerate(self.tables):
            starts[table] = start
            size = 1
            for axis in reversed(axes):
                strides[table, axis] = size
                size *= self.sizes[axis]
            start += size
        return strides, starts

    def cells_at(self, places: np.ndarray) -> np.ndarray:
        """Return by place, one a row, the cells that a row of the first group is counted in."""
        if not self.tables:
            return places
        strides, starts = self._strides
        cells: np.ndarray = places @ strides.T + starts
        return cells


@dataclass(frozen=True, eq=False)
class Measured:
    """A measurement, ready to be checked.

    Parameters
    ----------
    noise
        The noise that is drawn.
    totals, columns
        What is added up, and the columns that are read.
    probe
        Tells which rows count, and what each adds to every total: booleans, and one row of integers
        for each total.
    encode
        Turns totals, one integer for each cell, into the integers that noise is added to.
    most
        To how many of the few totals a row adds; `None`: to all.
    caps, has_unit
        What one unit can fill, and whether columns say whose a row is.
    neighboring
        The relation of neighbors.
    places
        Where a row is counted.
    mixed
        Whether a measured integer may depend on several cells.
    filtered
        Whether some rows are left out of all totals.
    content
        What decides on `probe`, to be compared.
    """

    noise: BlockNoise
    totals: tuple[ProbedTotal, ...]
    columns: Mapping[Hashable, OddColumn]
    probe: Callable[[OddRows, int], tuple[np.ndarray, np.ndarray]]
    encode: Callable[[Sequence[np.ndarray]], list[np.ndarray]]
    most: int | None
    caps: Caps
    has_unit: bool
    neighboring: Neighboring
    places: RowPlaces
    mixed: bool
    filtered: bool
    content: Hashable


class Recognized(NamedTuple):
    """A measurement that a check may know already.

    Parameters
    ----------
    key
        All that is read of it, to be compared. What it names by identity stays alive with what
        `prepare` returns.
    prepare
        Makes it ready, if it is not known.
    """

    key: Hashable
    prepare: Callable[[], Measured]
