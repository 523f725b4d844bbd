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
`least <= shared <= whole` of what they move are apart, in each coordinate, by

    (|a v - b w|^p shared + (|a v|^p + |b w|^p) (whole - shared)) / sigma^p .

The sum is convex in where the rows of a unit are and in what they count, so that all rows of a unit
in one cell, counting the same, are the worst. It is linear in what is shared, so that one of the
two ends is.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, assert_never

from dpframe.privacy.footprints import Corners, Exclusive, Footprint, Kernel, Parts, Sparse
from dpframe.privacy.neighbors import Neighboring
from dpframe.privacy.unit_pair import Norm, Scale, UnitPair, pairs_of_units
from dpframe.privacy.unit_reach import Reach, fillings

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
    >>> kernel = Kernel(whole=Fraction(1), least=Fraction(1, 2))
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
    zero, known = 0 * distance(1, 0), cache(distance)
    return max(
        sum((cells * known(a, b) for cells, a, b in filling.pairs(reach)), start=zero)
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
    if not larger and not sparse:  # footprints share no coordinate
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
    largest: defaultdict[int, Scale] = defaultdict(lambda: zero)  # of each shared group
    # columns of one kind look the same: each kind is worked out once
    dense = cache(_dense) if len(footprints) > 1 else _dense
    for part in footprints:
        match part:
            case Footprint():
                for group, places in _divide_footprint(part, grouping):
                    moved = dense(*_kind(part, places, scales, grouping), units)
                    if group is None:
                        far += moved
                    else:
                        largest[group] = max(largest[group], moved)
            case Exclusive():
                steps, also = cache(_steps), cache(_dense_or_absent)
                own: list[tuple[Any, Any, Any, Any]] = []
                for box, gone, kind in _divide_exclusive(part, scales, grouping):
                    if box is None:
                        own.append(steps(gone, *kind, units))
                    else:
                        largest[box] = max(largest[box], also(gone, *kind, units))
                far += _exclusive(own, zero)
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
    coordinates = [part.coordinates[place] for place in places]
    groups = [grouping.of[k] for k in coordinates]
    moved = dict.fromkeys(tuple(corner[place] for place in places) for corner in part.corners)
    of_corners = tuple(scales[k] * part.parts for k in coordinates)
    return tuple(moved), of_corners, tuple(map(groups.index, groups))


def _dense(
    corners: Corners, scales: Sequence[Scale], groups: Sequence[int], units: UnitPair
) -> Scale:
    """Share of a footprint in F: the worst pair of corners."""
    return _worst((corners, corners), scales, groups, units)


def _dense_or_absent(absent: tuple[int, ...], corners: Corners, *how: Any) -> Any:
    """Share of a part in F that excludes others, by itself."""
    return _dense((absent, *corners), *how)


def _steps(absent: tuple[int, ...], corners: Corners, *how: Any) -> tuple[Any, Any, Any, Any]:
    """Return F of a part that excludes others where no row is in it, and what comes to it.

    That is where rows of both units are in it, of the first one alone, or of the other one.
    """
    gone = (absent,)
    none = _worst((gone, gone), *how)
    pairs = ((corners, corners), (corners, gone), (gone, corners))
    both, mine, theirs = (_worst(pair, *how) - none for pair in pairs)
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
    pairs = itertools.product(*(sorted(own, reverse=True)[:2] for own in (mine, theirs)))
    gains += [one + other for (one, k), (other, j) in pairs if k != j]
    return base + max(gains)


def _worst(
    pair: tuple[Corners, Corners], scales: Sequence[Scale], groups: Sequence[int], units: UnitPair
) -> Scale:
    """Return the farthest movement between two sets of corners."""
    # many pairs move by the same: each is weighed once
    moves = {tuple(map(units.step, one, other)) for one, other in itertools.product(*pair)}
    zero = 0 * scales[0]
    if len(scales) == 1:
        return units.length(max(step for (step,) in moves), scales[0])
    far = zero
    for moved in moves:
        largest: defaultdict[int, Scale] = defaultdict(lambda: zero)
        for step, s, group in zip(moved, scales, groups, strict=True):
            largest[group] = max(largest[group], units.length(step, s))
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
            rest = d - shared - left - right
            if min(left, right, rest) >= 0 and max(left, right) <= most - shared:
                far = max(far, shared * both + left * mine + right * theirs + rest * none)
    return far
