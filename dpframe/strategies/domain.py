"""Where the cells of a workload lie: along which axes, and in which tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Dimension:
    """One grouping column, in numbers.

    Parameters
    ----------
    size
        Number of its groups.
    ordered
        Whether they are bins in increasing order, so that adjacent positions are neighbors.
        The groups of a column of keys are all alike.
    hidden
        Whether the last one is of all rows that are in none of the others, and is not released.
    """

    size: int
    ordered: bool
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    """Where the cells lie: a product of dimensions, or some cells of it.

    Without dimensions there is one cell.

    Parameters
    ----------
    dimensions
        The grouping columns, the last one varying fastest.
    chosen
        How many cells of the product there are; `None`: all of them.
    margins
        Tables wanted in place of all cells: by which dimensions each is, in increasing order.
    weights
        How much the variance of a cell of each of these tables counts; none: all the same.
    possible
        Positions of the cells of margins that can hold rows, row-major, as int64; `None`: all.

    Examples
    --------
    >>> Domain((Dimension(3, ordered=False), Dimension(4, ordered=True))).size
    12
    """

    dimensions: tuple[Dimension, ...] = ()
    chosen: int | None = None
    margins: tuple[tuple[int, ...], ...] = ()
    weights: tuple[float, ...] = ()
    possible: bytes | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def apart(self) -> bool:
        """Whether margins are tables of several queries, which need not add up."""
        return any(dimension.hidden for dimension in self.dimensions)

    @property
    def size(self) -> int:
        """Number of cells; of margins, that of all cells that rows are counted in."""
        if self.margins and self.possible is None:
            return sum(map(self.size_of, largest_sets(self.margins)))
        if self.chosen is not None:
            return self.chosen
        return math.prod(self.sizes)

    def size_of(self, margin: Sequence[int]) -> int:
        """Return the number of cells of a table by some dimensions."""
        return math.prod(self.dimensions[at].size for at in margin)


@lru_cache(64)  # sizes of domains ask again and again
def largest_sets(sets: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Return the sets that are in no other one, in their order: all others are sums of them.

    Examples
    --------
    >>> largest_sets(((), (0,), (1,), (0, 2)))
    ((1,), (0, 2))
    """
    whole = [frozenset(one) for one in sets]
    pairs = zip(sets, whole, strict=True)
    return tuple(one for one, own in pairs if not any(own < other for other in whole))
