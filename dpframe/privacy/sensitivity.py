"""How far a neighbor can move the measured integers: exact where the scales are fractions.

One row adds an integer vector to the measured coordinates of its cell, taken from a convex set
given by its corners; sets that do not share coordinates are independent of each other. With `a`
rows of one unit and `b` rows of the unit that replaces it in the same cell, the weighted distance
is at most

    F(a, b) = sum over footprints of max over corners v, w of sum_k (|a v_k - b w_k| / sigma_k)^p ,

with p = 2 for Gaussian and p = 1 for Laplace noise. Parts of which a row is in one at most are one
such set. For noise in boxes, the sum over coordinates is one over groups of them, and of a group
the largest coordinate counts. F is convex in (a, b), so the worst pair of units is among those of
`reach`.

Where totals of many cells are measured together, rows of the two units in cells that share
`least <= shared <= most` of what they move are apart, in each coordinate, by

    (|a v - b w|^p shared + (|a v|^p + |b w|^p) (most - shared)) / sigma^p .

The sum is convex in where the rows of a unit are and in what they count, so that all rows of a unit
in one cell, counting the same, are the worst. It is linear in what is shared, so that one of the
two ends is.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, assert_never

from dpframe.frozen import frozen
from dpframe.privacy.neighbors import Caps, Neighboring

Corners = tuple[tuple[int, ...], ...]
"""Corners of the convex set of what a row adds to some coordinates."""


@frozen(slots=True)
class Footprint:
    """What one row can add to some of the measured coordinates of its cell.

    Parameters
    ----------
    coordinates
        Positions of the coordinates.
    corners
        Corners of the convex set of what a row adds to them.
    parts
        In what part of 1 the corners count: they are whole numbers of 1 / parts.
    """

    coordinates: tuple[int, ...]
    corners: Corners
    parts: int = 1


@frozen(slots=True)
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


@frozen(slots=True)
class Exclusive:
    """What one row can add to parts that exclude each other: it is in one of them at most.

    Parameters
    ----------
    members
        What a row in a part adds to the coordinates of that part.
    absent
        What a row that is not in a part adds to them, by part.
    """

    members: tuple[Footprint, ...]
    absent: tuple[tuple[int, ...], ...]


Parts = Sequence[Footprint | Sparse | Exclusive]
"""What one row can add to all measured coordinates, in parts that share none of them."""


@frozen(slots=True)
class Kernel:
    """What rows have in common whose cells are measured together.

    Let C be the integer matrix of what is measured of the cells of a total, with one noise scale
    `f_r` per row, relative to one scale of them all. For Gaussian noise rows in cells x and y share
    `K(x, y) = sum_r C_rx C_ry / f_r^2`; for Laplace noise on counts of disjoint groups, several
    times over, the sum of `1 / f_r` over the groups with both cells.

    Parameters
    ----------
    most
        What a row shares with itself, the same for all cells.
    least
        What rows share that are in the two cells farthest apart.
    """

    most: Fraction
    least: Fraction


Scale = TypeVar("Scale", Fraction, float)
"""Exact, for what is promised, or a float, to compare designs with."""
Norm = Literal[1, 2]


@frozen(slots=True, eq=False)
class UnitPair:
    """Rows of two units in one cell, or in two cells that are measured together.

    Parameters
    ----------
    norm
        That of the noise.
    mine, theirs
        How many rows each of them has.
    shared, apart
        What a row shares with one of the other unit, and what it moves beyond that, in whole parts.
    parts
        How many parts make what a row moves in one cell, measured by itself; 0: it is that cell.
    """

    norm: Norm
    mine: int
    theirs: int
    shared: int = 1
    apart: int = 0
    parts: int = 0

    def step(self, v: int, w: int) -> int:
        """Return how far apart rows are that count v and w each, for `length`."""
        mine, theirs = self.mine * v, self.theirs * w
        if not self.parts:
            return abs(mine - theirs)
        together: int = abs(mine - theirs) ** self.norm
        alone: int = abs(mine) ** self.norm + abs(theirs) ** self.norm
        return together * self.shared + alone * self.apart

    def length(self, step: int, scale: Scale) -> Scale:
        """Return the weighted length of a step, to the power `norm`."""
        if step == 0:
            # a coordinate that does not move needs no noise
            return 0 * scale
        if self.parts:
            return Fraction(step, self.parts) / scale**self.norm
        length = step / scale
        return length if self.norm == 1 else length * length


def pairs_of_units(norm: Norm, a: int, b: int, kernel: Kernel | None) -> list[UnitPair]:
    """Return what rows of two units can share: one of the ends is the worst."""
    if kernel is None:
        return [UnitPair(norm, a, b)]
    parts = math.lcm(kernel.most.denominator, kernel.least.denominator)
    most, least = int(kernel.most * parts), int(kernel.least * parts)
    return [UnitPair(norm, a, b, shared, most - shared, parts) for shared in {least, most}]


_MOST_ROWS = 2**60  # of a unit: what they add stays in 64 bits


@frozen(slots=True)
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
    remainder = rows - full * per_group if full < groups else 0
    least = groups if groups < min(full * per_group + remainder, cells) else None
    return Reach(full, per_group, remainder, cells, always, least)


Filling: TypeAlias = list[tuple[int, int, int]]
"""How many cells hold so many rows of one unit, and so many of the other."""


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
    # cells without a rest
    room = reach.cells - rests.mine - rests.theirs + rests.together
    # my full cells that do not hold the other's rest
    mine = reach.full - rests.on_mine
    theirs = reach.full - rests.on_theirs
    for both in {0, mine + theirs - room, mine, theirs, room}:
        needed = rests.mine * (mine - both) + rests.theirs * (theirs - both)
        if 0 <= both <= min(mine, theirs, room) and needed <= room - both:
            full_alone = min(mine + theirs - 2 * both, room - both)
            kinds = [
                (both, reach.rows, reach.rows),
                (full_alone, reach.rows, 0),
                (rests.on_theirs + rests.on_mine, reach.rows, reach.rest),
                (rests.together, reach.rest, reach.rest),
                (rests.alone, reach.rest, 0),
            ]
            yield [kind for kind in kinds if kind[0]]


Inside = Literal["sum", "max"]
"""How coordinates count whose noise is drawn together: all of them, or the largest."""
Groups = Sequence[tuple[int, ...]]
"""Positions of coordinates whose noise is drawn together."""


def movement(
    footprints: Parts,
    scales: Sequence[Scale],
    norm: Norm,
    reach: Reach,
    neighboring: Neighboring,
    *,
    groups: Groups | None = None,
    joined: bool = False,
    kernel: Kernel | None = None,
) -> Scale:
    """Return the largest weighted distance between neighbors, to the power `norm`.

    It is the maximum over neighbors of `sum_k (|Delta w_k| / scale_k)^norm`, over the coordinates
    of all cells; or, with groups, of `sum_g max_(k in g) (|Delta w_k| / scale_k)^norm`, over the
    groups of all cells.

    Parameters
    ----------
    footprints
        What one row can add; together they name a coordinate at most once.
    scales
        One noise scale per coordinate. A scale of 0 marks a coordinate that no neighbor moves.
    norm
        2 for Gaussian noise, 1 for Laplace noise and for noise in boxes.
    reach
        How much one unit can fill.
    neighboring
        Whether a neighbor has one unit more or fewer, or one unit replaced.
    groups
        Coordinates of which the largest counts; one in no group counts on its own. `None`: each
        does. Coordinates that no footprint names are those of the sparse ones.
    joined
        Whether the largest of all cells counts in place of their sum, as where the noise of one
        group is drawn together for all cells. It has to be the group of all coordinates of scales
        above 0; else the sum counts, which is an upper bound.
    kernel
        What rows of different cells share, the same for all coordinates, which are drawn on their
        own; the cells of `reach` are groups of cells with a kernel each. `None`: every cell is
        measured by itself.

    Returns
    -------
    Fraction or float
        The maximum, 0 if nothing can move; exact for fractions. It is an upper bound where a
        footprint has coordinates in several groups, one of them with coordinates of another
        footprint, too: then each such group counts with the most that its coordinates can move by
        themselves.

    Raises
    ------
    ZeroDivisionError
        If a coordinate with scale 0 can move.

    Notes
    -----
    For one count under add/remove this is `K = full * rows^2 + rest^2` with norm 2, and min(m, g c)
    with norm 1.

    Examples
    --------
    A row adds 1 to a count and 3 or -3 to a sum:

    >>> from fractions import Fraction
    >>> parts = Footprint((0,), ((1,),)), Footprint((1,), ((-3,), (3,)))
    >>> rest = [Fraction(1, 2), Fraction(3)], 1, Reach(1, 1, 0, 1), "add_remove"
    >>> movement(parts, *rest), movement(parts, *rest, groups=[(0, 1)])
    (Fraction(3, 1), Fraction(2, 1))

    Two rows of a unit, counted in all and by three groups, at half of the cost each:

    >>> one = [Footprint((0,), ((1,),))], [Fraction(1)], 1, Reach(1, 2, 0, 1)
    >>> kernel = Kernel(most=Fraction(1), least=Fraction(1, 2))
    >>> [movement(*one, how, kernel=kernel) for how in ("add_remove", "replace")]
    [Fraction(2, 1), Fraction(2, 1)]
    """
    grouping = _grouping(footprints, len(scales), groups)

    def distance(a: int, b: int) -> Scale:
        pairs = pairs_of_units(norm, a, b, kernel)
        return max(_distance(footprints, scales, grouping, units) for units in pairs)

    zero = 0 * scales[0]
    if joined and len({of for of, s in zip(grouping.of, scales, strict=True) if s}) == 1:
        both = neighboring == "replace"
        alone = zero if reach.always else distance(reach.rows, 0)
        return max(alone, distance(reach.rows, reach.rows)) if both else alone
    return over_units(distance, norm, reach, neighboring)


def over_units(
    distance: Callable[[int, int], Scale], norm: Norm, reach: Reach, neighboring: Neighboring
) -> Scale:
    """Return the most that distances add up to over the cells that a pair of units fills.

    Parameters
    ----------
    distance
        F(a, b), convex: how far `a` rows of one unit are from `b` rows of the other in one cell.
    norm, reach, neighboring
        As in `movement`; `F(a, 0) = a^norm F(1, 0)`.
    """
    if neighboring == "add_remove":
        weight: int = reach.full * reach.rows**norm + reach.rest**norm
        return distance(1, 0) * weight
    if reach.always:
        return distance(1, 1)
    zero, cached = 0 * distance(1, 0), cache(distance)
    return max(
        sum((cells * cached(a, b) for cells, a, b in filling), start=zero)
        for filling in fillings(reach)
    )


class _Grouping(NamedTuple):
    """Which coordinates count together.

    Parameters
    ----------
    of
        The number of the group of each coordinate.
    shared
        Groups with coordinates of several footprints, or of a sparse one that has others in it.
    sparse
        Shared groups with coordinates of sparse footprints.
    """

    of: tuple[int, ...]
    shared: frozenset[int]
    sparse: frozenset[int]


def _grouping(footprints: Parts, size: int, groups: Groups | None) -> _Grouping:
    """Give each coordinate the number of its group, and find the groups of several footprints."""
    dense, sparse = _take_apart(footprints)
    larger = [group for group in groups or () if len(group) > 1]
    # footprints share no coordinate
    if not larger and not sparse:
        return _Grouping(tuple(range(size)), frozenset(), frozenset())
    of = list(range(size))
    for group in larger:
        for k in group:
            of[k] = group[0]
    named = {k for part in dense for k in part.coordinates}
    few = {of[k] for k in range(size) if k not in named} if sparse else set()
    members = Counter(of if few else ())
    alone = all(members[group] == 1 for group in few)
    touched = Counter(group for part in dense for group in {of[k] for k in part.coordinates})
    shared = {group for group, parts in touched.items() if parts > 1}
    together = frozenset() if alone else frozenset(few)
    return _Grouping(tuple(of), frozenset(shared | together), together)


def _take_apart(footprints: Parts) -> tuple[list[Footprint], list[Sparse]]:
    """Return all footprints, those that exclude each other among them, and the sparse parts."""
    dense: list[Footprint] = []
    sparse: list[Sparse] = []
    for part in footprints:
        match part:
            case Footprint():
                dense.append(part)
            case Exclusive():
                dense += part.members
            case Sparse():
                sparse.append(part)
            case _:
                assert_never(part)
    return dense, sparse


def _distance(
    footprints: Parts, scales: Sequence[Scale], grouping: _Grouping, units: UnitPair
) -> Scale:
    """F(a, b): rows of one unit against those of another."""
    far = zero = 0 * scales[0]
    # of each shared group
    largest: defaultdict[int, Scale] = defaultdict(lambda: zero)
    # columns of one kind look the same: each kind is worked out once
    worst = cache(_worst) if len(footprints) > 1 else _worst
    for part in footprints:
        match part:
            case Footprint():
                for group, places in _divide_footprint(part, grouping):
                    corners, wide, alike = _kind(part, places, scales, grouping)
                    moved = worst(corners, corners, wide, alike, units)
                    if group is None:
                        far += moved
                    else:
                        largest[group] = max(largest[group], moved)
            case Exclusive():
                steps, either = cache(_steps), cache(_either)
                steps_of_parts: list[tuple[Any, Any, Any, Any]] = []
                for box, gone, kind in _divide_exclusive(part, scales, grouping):
                    if box is None:
                        steps_of_parts.append(steps(gone, *kind, units))
                    else:
                        largest[box] = max(largest[box], either(gone, *kind, units))
                far += _exclusive(steps_of_parts, zero)
            case Sparse() if grouping.sparse:
                moved = _largest(part, scales[part.coordinate], units)
                largest |= {group: max(largest[group], moved) for group in grouping.sparse}
            case Sparse():
                far += _sparse(part, scales[part.coordinate], units)
            case _:
                assert_never(part)
    return sum(largest.values(), start=far)


def _divide_exclusive(
    part: Exclusive, scales: Sequence[Any], grouping: _Grouping
) -> Iterator[tuple[int | None, tuple[int, ...], tuple[Any, Any, Any]]]:
    """Divide the places of every member as those of a footprint; say what absent rows add there."""
    for member, absent in zip(part.members, part.absent, strict=True):
        for group, places in _divide_footprint(member, grouping):
            gone = tuple(absent[place] for place in places)
            yield group, gone, _kind(member, places, scales, grouping)


def _divide_footprint(part: Footprint, grouping: _Grouping) -> list[tuple[int | None, list[int]]]:
    """Divide the places of a footprint: in groups of its own, and in each shared one."""
    places: dict[int | None, list[int]] = {}
    for place, k in enumerate(part.coordinates):
        group = grouping.of[k]
        places.setdefault(group if group in grouping.shared else None, []).append(place)
    return list(places.items())


def _kind(
    part: Footprint, places: Sequence[int], scales: Sequence[Scale], grouping: _Grouping
) -> tuple[Corners, tuple[Scale, ...], tuple[int, ...]]:
    """Return the corners, scales and groups of some places of a footprint."""
    coordinates, corners = part.coordinates, part.corners
    if len(places) < len(coordinates):
        coordinates = tuple(coordinates[place] for place in places)
        corners = tuple(dict.fromkeys(tuple(corner[at] for at in places) for corner in corners))
    groups = [grouping.of[k] for k in coordinates]
    of_corners = tuple(scales[k] * part.parts for k in coordinates)
    return corners, of_corners, tuple(map(groups.index, groups))


def _either(absent: tuple[int, ...], corners: Corners, *kind: Any) -> Any:
    """Share of a part in F that excludes others, by itself."""
    return _worst((absent, *corners), (absent, *corners), *kind)


def _steps(absent: tuple[int, ...], corners: Corners, *kind: Any) -> tuple[Any, Any, Any, Any]:
    """Return F of a part that excludes others where no row is in it, and what comes to it.

    That is where rows of both units are in it, of the first one alone, or of the other one.
    """
    gone = (absent,)
    none = _worst(gone, gone, *kind)
    pairs = ((corners, corners), (corners, gone), (gone, corners))
    both, mine, theirs = (_worst(*pair, *kind) - none for pair in pairs)
    return none, both, mine, theirs


def _exclusive(parts: Sequence[tuple[Scale, Scale, Scale, Scale]], zero: Scale) -> Scale:
    """Share of parts that exclude each other in F: the rows of a unit are in one, or in none.

    By convexity, rows of one unit in several parts move them no farther. So what comes to the sum
    of what moves without them is that of one part for both units, or of one for each.
    """
    base, gains = zero, [zero]
    mine: list[tuple[Scale, int]] = []
    theirs: list[tuple[Scale, int]] = []
    for k, (none, both, first, second) in enumerate(parts):
        base += none
        gains += [both, first, second]
        mine.append((first, k))
        theirs.append((second, k))
    pairs = itertools.product(*(sorted(steps, reverse=True)[:2] for steps in (mine, theirs)))
    gains += [first + second for (first, k), (second, j) in pairs if k != j]
    return base + max(gains)


def _worst(
    mine: Corners, theirs: Corners, scales: Sequence[Scale], groups: Sequence[int], units: UnitPair
) -> Scale:
    """Return the farthest movement between two sets of corners: their share in F."""
    # many pairs move by the same: each is weighed once; where a unit has no row, any corner is it
    if not units.mine:
        mine = mine[:1]
    if not units.theirs:
        theirs = theirs[:1]
    moves = {tuple(map(units.step, v, w)) for v, w in itertools.product(mine, theirs)}
    zero = 0 * scales[0]
    if len(scales) == 1:
        return units.length(max(step for (step,) in moves), scales[0])
    lengths = [
        {step: units.length(step, scale) for step in {moved[place] for moved in moves} if step}
        for place, scale in enumerate(scales)
    ]
    far = zero
    for moved in moves:
        largest: dict[int, Scale] = {}
        for length_by_step, step, group in zip(lengths, moved, groups, strict=True):
            if step:  # many corners move one coordinate alone
                length = length_by_step[step]
                largest[group] = max(largest[group], length) if group in largest else length
        far = max(far, sum(largest.values(), start=zero))
    return far


def _largest(part: Sparse, scale: Scale, units: UnitPair) -> Scale:
    """Most that one coordinate of a sparse footprint moves."""
    can = (part.absent, part.present) if part.most else (part.absent,)
    return max(units.length(units.step(v, w), scale) for v, w in itertools.product(can, repeat=2))


def _sparse(part: Sparse, scale: Scale, units: UnitPair) -> Scale:
    """Share of a sparse footprint in F: the worst numbers of coordinates that units have.

    It is linear in how many coordinates both units have and how many one alone has, so its
    maximum is at a corner of what these numbers can be.
    """
    both, mine, theirs, none = (
        units.length(units.step(v, w), scale)
        for v, w in itertools.product((part.present, part.absent), repeat=2)
    )
    d, most = part.size, min(part.most, part.size)
    far = 0 * scale
    for shared in {0, max(0, 2 * most - d), most}:
        for left, right in itertools.product({0, most - shared, d - shared - most}, repeat=2):
            neither = d - shared - left - right
            if min(left, right, neither) >= 0 and max(left, right) <= most - shared:
                far = max(far, shared * both + left * mine + right * theirs + neither * none)
    return far
