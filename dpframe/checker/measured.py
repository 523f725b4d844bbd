"""What the check is told of a measurement: how it is probed, what one unit can fill, its noise."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from dpframe.context import Context, cached_property
from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Caps, Neighboring

NEVER = Fraction(10**30)
"""The cost of what no noise hides."""


@frozen(eq=False)
class BlockNoise:
    """Noise on blocks of integers.

    Parameters
    ----------
    law
        Law of the noise.
    scales
        Scale by block; 0 for a block without noise.
    groups
        Blocks whose noise is drawn together in a cell. Each block is in one group.
    over_cells
        Whether the first group is drawn together over all cells, and once.
    profile
        By what the scales of a block are multiplied, integer by integer; `None`: by 1.
    """

    law: Law
    scales: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]
    over_cells: bool = False
    profile: np.ndarray | None = None

    def draw(self, sizes: Sequence[int], context: Context) -> list[np.ndarray]:
        """Draw the noise of every block, a block of so many integers each."""
        # a profile scales integers one by one: none are drawn together
        if self.profile is not None:
            return [self.law.draw_each(scale * self.profile, context) for scale in self.scales]
        noise: dict[int, np.ndarray] = {}
        for position, group in enumerate(self.groups):
            if self.over_cells and position == 0:
                noise |= self._draw_over_cells(group, sizes, context)
                continue
            drawn = self.law.draw([self.scales[k] for k in group], sizes[group[0]], context)
            noise |= dict(zip(group, drawn, strict=True))
        return [noise[k] for k in range(len(self.scales))]

    def _draw_over_cells(
        self, group: Sequence[int], sizes: Sequence[int], context: Context
    ) -> dict[int, np.ndarray]:
        """Draw the noise of a group that reaches over all cells: all coordinates together."""
        scales = [self.scales[k] for k in group for _ in range(sizes[k])]
        drawn = self.law.draw(scales, 1, context)
        ends = np.cumsum([sizes[k] for k in group])[:-1]
        return dict(zip(group, np.split(np.concatenate(drawn), ends), strict=True))

    def cost(self, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> Fraction:
        """Return what it costs that blocks hold some integers in place of others, mod 2**64.

        It is exact: the sum over groups and cells of `(|moved| / scale)^p`, with p the norm of the
        law; of a group of a box, the largest counts.
        """
        blocks = [
            self._lengths(k, a.astype(np.int64) - b.astype(np.int64))
            for k, (a, b) in enumerate(zip(before, after, strict=True))
        ]
        if self.law.inside == "sum" or self.profile is not None:
            return sum((length for block in blocks for length in block.values()), Fraction(0))
        total = Fraction(0)
        for position, group in enumerate(self.groups):
            in_group = [blocks[k] for k in group]
            if self.over_cells and position == 0:
                lengths = [length for block in in_group for length in block.values()]
                total += max(lengths, default=Fraction(0))
                continue
            for place in {place for block in in_group for place in block}:
                total += max(block.get(place, Fraction(0)) for block in in_group)
        return total

    def _lengths(self, block: int, moved: np.ndarray) -> dict[int, Fraction]:
        """Return by place what it costs that integers of a block move."""
        scale = self.scales[block]
        lengths = {}
        for place in np.flatnonzero(moved).tolist():
            step = abs(int(moved[place]))
            own_scale = scale if self.profile is None else scale * float(self.profile[place])
            lengths[place] = self.law.loss(step, own_scale) if own_scale else NEVER
        return lengths


OddRows: TypeAlias = Mapping[Hashable, tuple[Sequence[object], np.ndarray]]
"""Rows of a frame: by column, some values, and which of them each row has."""


@frozen
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


@frozen
class ProbedTotal:
    """An integer that rows add to a cell.

    Parameters
    ----------
    values
        Columns of whose values it is made.
    conditions
        Columns of the condition and of the weight of a row.
    units
        Whether one row of a unit alone is counted.
    few
        Whether a row adds to a few of these totals at most.
    is_exact
        Whether odd values of its columns stand for all others. They do not where squares, products
        or arithmetic are added up, and where columns are compared with each other.
    """

    values: tuple[Hashable, ...] = ()
    conditions: tuple[Hashable, ...] = ()
    units: bool = False
    few: bool = False
    is_exact: bool = True


@frozen
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


@frozen(eq=False)
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
