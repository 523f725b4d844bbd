"""What one unit can fill of the cells, and how a pair of units can fill them at worst.

With `F(a, b)` the weighted distance that `a` rows of one unit and `b` rows of another can make in a
cell, convex in (a, b), the worst pair of units fills its caps at a corner of the polytope of caps:
whole cells of `c` rows, and at most one cell with what remains.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dpframe.privacy.neighbors import Caps

_MOST_ROWS = 2**60


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of the cells one unit can fill.

    Parameters
    ----------
    full
        Number of cells that a unit can fill with `rows` rows each.
    rows
        Rows in a full cell.
    rest
        Rows left for one further cell, possibly 0.
    cells
        Number of cells there are.
    always
        Whether a unit always has exactly one row in the only cell, so that none ever leaves it.
    groups
        How many cells a unit has rows in at most, where caps leave fewer than rows and cells do.
    """

    full: int
    rows: int
    rest: int
    cells: int
    always: bool = False
    groups: int | None = None

    @property
    def total(self) -> int:
        """Most rows of one unit over all cells: min(m, g c)."""
        return self.full * self.rows + self.rest

    @property
    def touched(self) -> int:
        """Most cells that one unit has rows in."""
        return min(self.total, self.cells) if self.groups is None else self.groups


def reach_of(caps: Caps, cells: int, *, always: bool = False) -> Reach | None:
    """Derive what a unit can fill from its caps; `None` if they leave it unbounded.

    More than 2**60 rows are as good as unbounded: no noise hides them.

    With at most m rows, g groups and c rows in a group: `full = min(g, floor(m / c))` cells with c
    rows, and `rest = m - full c` rows in one more cell if `full < g`.

    Examples
    --------
    >>> reach_of(Caps(rows=7, groups=5, rows_per_group=2), cells=100)
    Reach(full=3, rows=2, rest=1, cells=100, always=False, groups=5)
    """
    groups = cells if caps.groups is None else min(caps.groups, cells)
    per_group = caps.rows if caps.rows_per_group is None else caps.rows_per_group
    if per_group is None:
        return None
    rows = groups * per_group if caps.rows is None else caps.rows
    if min(rows, groups * per_group) > _MOST_ROWS:
        return None
    per_group = min(per_group, rows)
    full = min(groups, rows // per_group)
    rest = rows - full * per_group if full < groups else 0
    least = groups if groups < min(full * per_group + rest, cells) else None
    return Reach(full, per_group, rest, cells, always, least)


class Filling(NamedTuple):
    """How many cells of every kind a pair of units fills.

    Parameters
    ----------
    full
        Full of rows of both units.
    full_alone
        Full of one unit, without the other.
    full_and_rest
        Full of one unit, with the rest of the other.
    rests
        With the rests of both.
    rest_alone
        With the rest of one unit, without the other.
    """

    full: int
    full_alone: int
    full_and_rest: int
    rests: int
    rest_alone: int

    def pairs(self, reach: Reach) -> list[tuple[int, int, int]]:
        """Return how many cells hold so many rows of one unit and of the other."""
        rows, rest = reach.rows, reach.rest
        kinds = (
            (self.full, rows, rows),
            (self.full_alone, rows, 0),
            (self.full_and_rest, rows, rest),
            (self.rests, rest, rest),
            (self.rest_alone, rest, 0),
        )
        return [kind for kind in kinds if kind[0]]


class Rests(NamedTuple):
    """Where the rests of a pair of units lie; the numbers are 0 or 1.

    Parameters
    ----------
    mine, theirs
        Whether a unit has a rest at all.
    on_theirs, on_mine
        Whether it lies in a cell that is full of the other.
    together
        Whether both lie in one cell.
    """

    mine: int
    theirs: int
    on_theirs: int
    on_mine: int
    together: int

    @property
    def possible(self) -> bool:
        """Whether every rest there is lies in one place, and no other does."""
        mine, theirs = self.on_theirs + self.together, self.on_mine + self.together
        return mine <= self.mine and theirs <= self.theirs

    @property
    def alone(self) -> int:
        """How many lie in a cell without the other unit."""
        return self.mine + self.theirs - self.on_theirs - self.on_mine - 2 * self.together


def fillings(reach: Reach) -> Iterator[Filling]:
    """Ways to fill the cells, among them that of a worst pair of units."""
    for numbers in itertools.product(range(2 if reach.rest else 1), repeat=len(Rests._fields)):
        rests = Rests(*numbers)
        if rests.possible:
            yield from _fillings_around(rests, reach)


def _fillings_around(rests: Rests, reach: Reach) -> Iterator[Filling]:
    """Ways to fill the cells where the rests lie somewhere.

    A unit has a rest only beside all its full cells. The total is concave and piecewise linear in
    the number of cells that are full for both: trying its ends and its one bend is enough.
    """
    room = reach.cells - rests.mine - rests.theirs + rests.together  # cells without a rest
    mine = reach.full - rests.on_mine  # my full cells that do not hold the other's rest
    theirs = reach.full - rests.on_theirs
    for both in {0, mine + theirs - room, mine, theirs, room}:
        needed = rests.mine * (mine - both) + rests.theirs * (theirs - both)
        if 0 <= both <= min(mine, theirs, room) and needed <= room - both:
            full_alone = min(mine + theirs - 2 * both, room - both)
            full_and_rest = rests.on_theirs + rests.on_mine
            yield Filling(both, full_alone, full_and_rest, rests.together, rests.alone)
