"""How far a neighbor can move the measured integers, in exact rational arithmetic.

One row adds an integer vector to the measured coordinates of its cell, taken from a convex set
given by its corners; sets that do not share coordinates are independent of each other. With `a`
rows of one unit and `b` rows of the unit that replaces it in the same cell, the weighted distance
is at most

    F(a, b) = sum over footprints of max over corners v, w of sum_k (|a v_k - b w_k| / sigma_k)^p ,

with p = 2 for Gaussian and p = 1 for Laplace noise. F is convex in (a, b), so the worst pair of
units fills its caps at a corner of the polytope of caps: whole cells of `c` rows, and at most one
cell with what remains.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal, NamedTuple

from dpframe.privacy.neighbors import Caps, Neighboring

__all__ = ["Footprint", "Norm", "Reach", "Sparse", "movement", "reach_of"]

Norm = Literal[1, 2]

_MOST_ROWS = 2**60


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one row can add to some of the measured coordinates of its cell.

    Parameters
    ----------
    coordinates
        Positions of the coordinates.
    corners
        Corners of the convex set of what a row adds to them.
    """

    coordinates: tuple[int, ...]
    corners: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Sparse:
    """What one row can add to coordinates of one kind, of which it has at most a few.

    Parameters
    ----------
    coordinate
        Position of one of the coordinates; all have its scale.
    size
        How many coordinates there are.
    absent, present
        What a row adds to a coordinate that it does not have, and to one that it has.
    most
        How many coordinates a row can have.
    """

    coordinate: int
    size: int
    absent: int
    present: int
    most: int


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
    """

    full: int
    rows: int
    rest: int
    cells: int
    always: bool = False

    @property
    def total(self) -> int:
        """Most rows of one unit over all cells: min(m, g c)."""
        return self.full * self.rows + self.rest

    @property
    def whole(self) -> "Reach":
        """Reach of a unit that is measured as one record over all cells."""
        return Reach(1, 1, 0, 1)


def reach_of(caps: Caps, cells: int, *, always: bool = False) -> Reach | None:
    """Derive what a unit can fill from its caps; `None` if they leave it unbounded.

    More than 2**60 rows are as good as unbounded: no noise hides them.

    With at most m rows, g groups and c rows in a group: `full = min(g, floor(m / c))` cells with c
    rows, and `rest = m - full c` rows in one more cell if `full < g`.

    Examples
    --------
    >>> reach_of(Caps(rows=7, groups=5, rows_per_group=2), cells=100)
    Reach(full=3, rows=2, rest=1, cells=100, always=False)
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
    return Reach(full, per_group, rest, cells, always)


def movement(
    footprints: Sequence[Footprint | Sparse],
    scales: Sequence[Fraction],
    norm: Norm,
    reach: Reach,
    neighboring: Neighboring,
) -> Fraction:
    """Return the largest weighted distance between neighbors, to the power `norm`.

    It is the maximum over neighbors of `sum_k (|Delta w_k| / scale_k)^norm`, over the coordinates
    of all cells.

    Parameters
    ----------
    footprints
        What one row can add; together they name a coordinate at most once.
    scales
        One noise scale per coordinate. A scale of 0 marks a coordinate that no neighbor moves.
    norm
        2 for Gaussian noise, 1 for Laplace noise.
    reach
        How much one unit can fill.
    neighboring
        Whether a neighbor has one unit more or fewer, or one unit replaced.

    Returns
    -------
    Fraction
        The exact maximum, 0 if nothing can move.

    Raises
    ------
    ZeroDivisionError
        If a coordinate with scale 0 can move.

    Notes
    -----
    For one count under add/remove this is `K = full * rows^2 + rest^2` with norm 2, and min(m, g c)
    with norm 1.
    """
    if neighboring == "add_remove":
        one = _distance(footprints, scales, norm, 1, 0)
        weight: int = reach.full * reach.rows**norm + reach.rest**norm
        return one * weight
    if reach.always:
        return _distance(footprints, scales, norm, 1, 1)
    return _replaced(footprints, scales, norm, reach)


def _distance(
    footprints: Sequence[Footprint | Sparse],
    scales: Sequence[Fraction],
    norm: Norm,
    a: int,
    b: int,
) -> Fraction:
    """F(a, b): `a` rows of one unit against `b` rows of another in the same cell."""
    # columns of one kind look the same: a kind is worked out once
    kinds = Counter(
        (part.corners, tuple(scales[k] for k in part.coordinates))
        for part in footprints
        if isinstance(part, Footprint)
    )
    dense = (times * _dense(*kind, norm, (a, b)) for kind, times in kinds.items())
    sparse = (
        _sparse(part, scales[part.coordinate], norm, (a, b))
        for part in footprints
        if isinstance(part, Sparse)
    )
    return sum(itertools.chain(dense, sparse), start=Fraction(0))


def _dense(
    corners: Sequence[tuple[int, ...]],
    scales: Sequence[Fraction],
    norm: Norm,
    rows: tuple[int, int],
) -> Fraction:
    """Share of a footprint in F: the worst pair of corners."""
    a, b = rows
    return max(
        sum(
            (_length(a * v - b * w, s, norm) for v, w, s in zip(one, other, scales, strict=True)),
            start=Fraction(0),
        )
        for one, other in itertools.product(corners, repeat=2)
    )


def _sparse(part: Sparse, scale: Fraction, norm: Norm, rows: tuple[int, int]) -> Fraction:
    """Share of a sparse footprint in F: the worst numbers of coordinates that units have.

    It is linear in how many coordinates both units have and how many one alone has, so its
    maximum is at a corner of what these numbers can be.
    """
    a, b = rows
    both, mine, theirs, none = (
        _length(a * v - b * w, scale, norm)
        for v, w in (
            (part.present, part.present),
            (part.present, part.absent),
            (part.absent, part.present),
            (part.absent, part.absent),
        )
    )
    d, most = part.size, min(part.most, part.size)
    far = Fraction(0)
    for shared in {0, max(0, 2 * most - d), most}:
        for left, right in itertools.product({0, most - shared, d - shared - most}, repeat=2):
            if min(left, right) >= 0 and max(left, right) <= most - shared:
                rest = d - shared - left - right
                if rest >= 0:
                    far = max(far, shared * both + left * mine + right * theirs + rest * none)
    return far


def _length(moved: int, scale: Fraction, norm: Norm) -> Fraction:
    """Weighted length of a difference of one coordinate, to the power `norm`."""
    if moved == 0:
        return Fraction(0)  # a coordinate that does not move needs no noise
    length = abs(moved) / scale
    return length if norm == 1 else length * length


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

    def moved(self, reach: Reach, distance: Callable[[int, int], Fraction]) -> Fraction:
        """Return the sum of F over the cells, given F."""
        rows, rest = reach.rows, reach.rest
        kinds = (
            (self.full, rows, rows),
            (self.full_alone, rows, 0),
            (self.full_and_rest, rows, rest),
            (self.rests, rest, rest),
            (self.rest_alone, rest, 0),
        )
        return sum((cells * distance(a, b) for cells, a, b in kinds if cells), start=Fraction(0))


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


def _replaced(
    footprints: Sequence[Footprint | Sparse], scales: Sequence[Fraction], norm: Norm, reach: Reach
) -> Fraction:
    """Maximum of the sum of F over all ways in which two units can fill the cells."""

    @cache
    def distance(a: int, b: int) -> Fraction:
        return _distance(footprints, scales, norm, a, b)

    return max(filling.moved(reach, distance) for filling in _fillings(reach))


def _fillings(reach: Reach) -> Iterator[Filling]:
    """Ways to fill the cells, among them that of a worst pair of units."""
    flags = range(2 if reach.rest else 1)
    for numbers in itertools.product(flags, repeat=len(Rests._fields)):
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
            yield Filling(
                full=both,
                full_alone=min(mine + theirs - 2 * both, room - both),
                full_and_rest=rests.on_theirs + rests.on_mine,
                rests=rests.together,
                rest_alone=rests.alone,
            )
