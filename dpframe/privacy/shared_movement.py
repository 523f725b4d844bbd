"""How far a neighbor moves integers that are measured of many cells at once.

Let C be the integer matrix of what is measured, with one noise scale `f_r` per row, relative to one
scale s of them all. For Gaussian noise the kernel is `K(x, y) = sum_r C_rx C_ry / f_r^2`, and rows
of a unit in cell x against those of another in cell y move the measured integers by

    ((a v)^2 + (b w)^2) K(x, x) - 2 a b v w K(x, y),    all over s^2,

where each of `a` rows counts v, and each of `b` rows counts w. If `K(x, x) = whole` for all cells
and `least` is the smallest of all `K(x, y)`, that is

    (a v - b w)^2 shared + ((a v)^2 + (b w)^2) (whole - shared),    least <= shared <= whole .

It is linear in what is shared, so one of the two ends is the worst. For Laplace noise on counts of
disjoint groups, several times over, the same holds with absolute values in place of squares: whole
is the sum of all `1 / f_r` that one row moves, and shared the part in which two rows fall into one
group. All is convex in where the rows of a unit are and in what they count, so that all rows of a
unit in one cell, counting the same, are the worst.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from dpframe.privacy.neighbors import Neighboring
from dpframe.privacy.sensitivity import Footprint, Norm, Scale, over_units
from dpframe.privacy.unit_reach import Reach


@dataclass(frozen=True, slots=True)
class Kernel:
    """What rows have in common that are measured together.

    Parameters
    ----------
    whole
        What a row shares with itself, the same for all cells.
    least
        What rows share that are in the two cells farthest apart.
    """

    whole: Fraction
    least: Fraction


def shared_movement(
    footprints: Sequence[Footprint],
    scales: Sequence[Scale],
    norm: Norm,
    reach: Reach,
    neighboring: Neighboring,
    *,
    kernel: Kernel,
) -> Scale:
    """Return the largest weighted distance between neighbors, to the power `norm`.

    Parameters
    ----------
    footprints
        What one row can add to the totals that are measured.
    scales
        One noise scale per total, the s above.
    norm
        2 for Gaussian noise, 1 for Laplace noise.
    reach
        How much one unit can fill; its cells are groups of cells with a kernel each.
    neighboring
        Whether a neighbor has one unit more or fewer, or one unit replaced.
    kernel
        What rows of different cells share, the same for all totals.

    Returns
    -------
    Fraction or float
        The maximum; exact for fractions, and reached where cells are as far apart as `least` says.

    Raises
    ------
    ZeroDivisionError
        If a total with scale 0 can move.

    Examples
    --------
    Two rows of a unit, counted in all and by three groups, at half of the cost each:

    >>> one = [Footprint((0,), ((1,),))], [Fraction(1)], 1, Reach(1, 2, 0, 1)
    >>> kernel = Kernel(whole=Fraction(1), least=Fraction(1, 2))
    >>> [shared_movement(*one, how, kernel=kernel) for how in ("add_remove", "replace")]
    [Fraction(2, 1), Fraction(2, 1)]
    """

    @cache
    def distance(a: int, b: int) -> Scale:
        pairs = [_Pair(a, b, kernel.whole, shared) for shared in {kernel.least, kernel.whole}]
        return max(_distance(footprints, scales, norm, pair) for pair in pairs)

    return over_units(distance, norm, reach, neighboring)


class _Pair(NamedTuple):
    """Rows of two units, and what a row of one shares with itself and with one of the other."""

    mine: int
    theirs: int
    whole: Fraction
    shared: Fraction


def _distance(
    footprints: Sequence[Footprint], scales: Sequence[Scale], norm: Norm, pair: _Pair
) -> Scale:
    """F(a, b): the worst corners of every footprint."""
    far = 0 * scales[0]
    for part in footprints:
        own = [scales[k] * part.parts for k in part.coordinates]
        pairs = itertools.product(part.corners, repeat=2)
        far += max(_corner_movement(own, norm, pair, corners) for corners in pairs)
    return far


def _corner_movement(
    scales: Sequence[Scale], norm: Norm, pair: _Pair, corners: Sequence[tuple[int, ...]]
) -> Scale:
    """How far rows at two corners move the totals of a footprint."""
    far = 0 * scales[0]
    shared, apart = pair.shared, pair.whole - pair.shared
    for scale, v, w in zip(scales, *corners, strict=True):
        mine, theirs = pair.mine * v, pair.theirs * w
        alone = abs(mine) ** norm + abs(theirs) ** norm
        moved = abs(mine - theirs) ** norm * shared + alone * apart
        if moved:
            far += moved / scale**norm
    return far
