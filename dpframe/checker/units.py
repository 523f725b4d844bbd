"""The worst unit, or pair of units: how its rows lie in cells.

With F(a, b) what it costs that a cell has a rows of one unit in place of b rows of another, convex
and 0 at (0, 0), what all cells cost is convex in their rows. So units fill their caps at worst: as
many cells as can be with c rows, and one cell with what remains.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

from dpframe.errors import PlanCheckError
from dpframe.frozen import frozen
from dpframe.privacy.neighbors import Caps, Neighboring

FilledCells: TypeAlias = list[tuple[int, int, int]]
"""How many cells have so many rows of one unit, and so many of the other."""

Distance: TypeAlias = Callable[[int, int], float]
"""F(a, b)."""


@frozen
class FilledCaps:
    """How one unit fills its caps.

    Parameters
    ----------
    full, rows, rest
        Cells with `rows` rows each, and the rows of one further cell.
    touched
        Most cells with rows of it.
    cells
        Cells that there are.
    """

    full: int
    rows: int
    rest: int
    touched: int
    cells: int

    @classmethod
    def of(cls, caps: Caps, cells: int) -> "FilledCaps":
        """Fill caps.

        Examples
        --------
        >>> FilledCaps.of(Caps(rows=7, groups=5, rows_per_group=2), 100)
        FilledCaps(full=3, rows=2, rest=1, touched=5, cells=100)
        """
        groups = cells if caps.groups is None else min(caps.groups, cells)
        in_cell = caps.rows_per_group or caps.rows
        if in_cell is None:
            raise PlanCheckError.of("no cap bounds the rows of a unit")
        total = groups * in_cell if caps.rows is None else min(caps.rows, groups * in_cell)
        in_cell = min(in_cell, total)
        full = total // in_cell
        return cls(full, in_cell, total - full * in_cell, min(groups, total), cells)


def worst_cells(
    distance: Distance, filling: FilledCaps, neighboring: Neighboring, *, always: bool
) -> FilledCells:
    """Return the rows of the worst unit, or of the worst pair of units, by cells.

    Parameters
    ----------
    distance
        F.
    filling
        How a unit fills its caps.
    neighboring
        The relation of neighbors.
    always
        Whether a unit is one row that is in some cell, whatever it holds.
    """
    if neighboring == "add_remove":
        ways: Iterator[FilledCells] = iter([_alone(filling)])
    elif always:
        apart: list[FilledCells] = [[(2, 1, 0)]] if filling.cells > 1 else []
        ways = iter([[(1, 1, 1)], *apart])
    else:
        ways = _pairs(filling)
    cached = cache(distance)

    def total(filled: FilledCells) -> float:
        return sum(times * cached(a, b) for times, a, b in filled)

    return max(ways, key=total)


def _alone(filling: FilledCaps) -> FilledCells:
    cells = [(filling.full, filling.rows, 0), (1, filling.rest, 0)]
    return [(times, a, b) for times, a, b in cells if times and a]


def _pairs(filling: FilledCaps) -> Iterator[FilledCells]:
    """Yield how a pair of units can lie.

    A rest is nowhere, in a cell of its own, or in a full cell of the other; or both are in one
    cell. What full cells cost is linear in how many have rows of both, between three ends.
    """
    rows, rest = filling.rows, filling.rest
    nowhere, alone, inside = 0, 1, 2
    kinds = (nowhere, alone, inside) if rest else (nowhere,)
    ways = [(*pair, 0) for pair in itertools.product(kinds, repeat=2)]
    if rest:
        ways.append((nowhere, nowhere, 1))
    for mine, theirs, together in ways:
        inside_full = (mine == inside) + (theirs == inside)
        rests_alone = (mine == alone) + (theirs == alone)
        my_full = filling.full - (theirs == inside)
        their_full = filling.full - (mine == inside)
        room = filling.cells - inside_full - rests_alone - together
        for both in {0, min(my_full, their_full), my_full + their_full - room}:
            if not 0 <= both <= min(my_full, their_full, room):
                continue
            full_alone = min(my_full + their_full - 2 * both, room - both)
            cells = [
                (both, rows, rows),
                (full_alone, rows, 0),
                (inside_full, rows, rest),
                (rests_alone, rest, 0),
                (together, rest, rest),
            ]
            yield [(times, a, b) for times, a, b in cells if times]


def worst_stairs(
    stairs: Callable[[int, int], int],
    filling: FilledCaps,
    neighboring: Neighboring,
    *,
    always: bool,
) -> FilledCells:
    """Return the rows of the unit, or pair of units, that crosses most stairs over all cells.

    Stairs are not convex: many cells with a row each count, as many as caps allow. Where one row
    crosses fewer stairs than all that a cell may have, rows are not counted against the caps, which
    is an upper bound.
    """

    def cells(times: int, both: int) -> tuple[int, int, int]:
        rows = filling.rows
        as_many = stairs(1, both) == stairs(rows, rows * both)
        rows = 1 if as_many else rows
        return times, rows, rows * both

    most = filling.touched
    if neighboring == "add_remove":
        ways = [[cells(most, 0)]]
    elif always:
        ways = [[cells(1, 1)], *([[cells(2, 0)]] if filling.cells > 1 else [])]
    else:
        ways = [
            [cells(shared, 1), cells(min(2 * (most - shared), filling.cells - shared), 0)]
            for shared in {0, most, max(0, 2 * most - filling.cells)}
        ]
    worst = max(ways, key=lambda filled: sum(times * stairs(a, b) for times, a, b in filled))
    return [cell for cell in worst if cell[0] and stairs(*cell[1:])]


def words_of(filled: FilledCells, neighboring: Neighboring) -> str:
    """Say how rows of a unit, or of two units, lie in cells.

    Examples
    --------
    >>> words_of([(2, 3, 0), (1, 1, 0)], "add_remove")
    'a unit with 3 rows in each of 2 cells, and 1 row in 1 cell'
    >>> words_of([(1, 2, 2)], "replace")
    'a unit in place of another, with 2 rows, in place of 2 rows, in 1 cell'
    """
    if not filled:
        return "no unit moves anything"
    who = "a unit" if neighboring == "add_remove" else "a unit in place of another,"
    return f"{who} with {', and '.join(_in_cells(*cell) for cell in filled)}"


def _in_cells(times: int, a: int, b: int) -> str:
    rows = count(a, "row") if not b else f"{count(a, 'row')}, in place of {count(b, 'row')},"
    where = "1 cell" if times == 1 else f"each of {times:,} cells"
    return f"{rows} in {where}"


def count(number: int, noun: str) -> str:
    """Say how many there are.

    Examples
    --------
    >>> count(1, "row"), count(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
