"""What one row can add to the measured integers of its cell, and what rows of cells share."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Corners = tuple[tuple[int, ...], ...]
"""Corners of the convex set of what a row adds to some coordinates."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Kernel:
    """What rows have in common whose cells are measured together.

    Let C be the integer matrix of what is measured of the cells of a total, with one noise scale
    `f_r` per row, relative to one scale of them all. For Gaussian noise rows in cells x and y share
    `K(x, y) = sum_r C_rx C_ry / f_r^2`; for Laplace noise on counts of disjoint groups, several
    times over, the sum of `1 / f_r` over the groups with both cells.

    Parameters
    ----------
    whole
        What a row shares with itself, the same for all cells.
    least
        What rows share that are in the two cells farthest apart.
    """

    whole: Fraction
    least: Fraction
