"""The worst unit, or pair of units: how its rows lie in cells, block by block, and what hides it.

With F(a, b) what it costs that a cell has a rows of one unit in place of b rows of another, convex
and 0 at (0, 0), what all cells cost is convex in their rows. So units fill their caps at worst: as
many cells as can be with c rows, and one cell with what remains.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from dpframe.checker.cell import ONE_CELL, Moved, Moves, PlaceKernel
from dpframe.checker.measured import NEVER, BlockNoise
from dpframe.context import cached_property
from dpframe.errors import PlanCheckError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import PrivacyLoss, is_above
from dpframe.privacy.laws import LAPLACE, LAWS
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
    full, rows, remainder
        Cells with `rows` rows each, and the rows of one further cell.
    touched
        Most cells with rows of it.
    cells
        Cells that there are.
    """

    full: int
    rows: int
    remainder: int
    touched: int
    cells: int

    @classmethod
    def of(cls, caps: Caps, cells: int) -> "FilledCaps":
        """Fill caps.

        Examples
        --------
        >>> FilledCaps.of(Caps(rows=7, groups=5, rows_per_group=2), 100)
        FilledCaps(full=3, rows=2, remainder=1, touched=5, cells=100)
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
        ways = [_alone(filling)]
    elif always:
        ways = [[(1, 1, 1)]]
        if filling.cells > 1:
            ways.append([(2, 1, 0)])
    else:
        ways = [*_pairs(filling)]
    cached = cache(distance)

    def total(filled: FilledCells) -> float:
        return sum(times * cached(a, b) for times, a, b in filled)

    return max(ways, key=total)


def _alone(filling: FilledCaps) -> FilledCells:
    cells = [(filling.full, filling.rows, 0), (1, filling.remainder, 0)]
    return [(times, a, b) for times, a, b in cells if times and a]


def _pairs(filling: FilledCaps) -> Iterator[FilledCells]:
    """Yield how a pair of units can lie.

    A rest is nowhere, in a cell of its own, or in a full cell of the other; or both are in one
    cell. What full cells cost is linear in how many have rows of both, between three ends.
    """
    rows, remainder = filling.rows, filling.remainder
    nowhere, alone, inside = 0, 1, 2
    kinds = (nowhere, alone, inside) if remainder else (nowhere,)
    ways = [(*pair, 0) for pair in itertools.product(kinds, repeat=2)]
    if remainder:
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
                (inside_full, rows, remainder),
                (rests_alone, remainder, 0),
                (together, remainder, remainder),
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
        if stairs(1, both) == stairs(rows, rows * both):
            rows = 1
        return times, rows, rows * both

    most = filling.touched
    if neighboring == "add_remove":
        ways = [[cells(most, 0)]]
    elif always:
        ways = [[cells(1, 1)]]
        if filling.cells > 1:
            ways.append([cells(2, 0)])
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


@frozen
class WitnessCells:
    """Cells in which the worst unit moves integers alike.

    Parameters
    ----------
    times
        How many there are.
    rows
        OddRows of the unit in such a cell, and of the unit in its place.
    moves
        By block, what one row of either adds to it.
    kernel
        Of (u, v, f): `f |u x - v y|^p` is measured of a row that adds x and one that adds y.
    """

    times: int
    rows: tuple[int, int]
    moves: Moves
    kernel: PlaceKernel = ONE_CELL


@frozen
class LoneLabels:
    """Labels that one unit alone has, and that a threshold hides.

    Parameters
    ----------
    labels
        How many.
    weight
        What the unit counts for on each.
    least
        The least noisy number that is published.
    """

    labels: int
    weight: int
    least: int


@frozen
class Found:
    """The worst unit of one measurement.

    Parameters
    ----------
    law
        Name of the law of the noise.
    scales
        Scales of the blocks that move.
    cells
        Where they move.
    words
        The unit in words.
    sampled
        Whether there are units that no tried one stands for.
    lone
        Labels of a unit alone, and the probability that one is published.
    """

    law: str
    scales: Mapping[int, float]
    cells: tuple[WitnessCells, ...]
    words: str
    sampled: bool = False
    lone: tuple[LoneLabels, Fraction] | None = None

    @cached_property
    def cost(self) -> Fraction:
        """What the unit costs: mu squared of Gaussian noise, epsilon of other."""
        total = Fraction(0)
        # noise of selections costs as Laplace noise does
        law = LAWS.get(self.law, LAPLACE)
        size = max(self.scales, default=-1) + 1
        noise = BlockNoise(law, tuple(self.scales.get(k, 0.0) for k in range(size)), ())
        for cells in self.cells:
            a, b = cells.rows
            total += cells.times * Moved(a, b, cells.moves, cells.kernel).cost(noise)
        return total

    @cached_property
    def loss(self) -> PrivacyLoss:
        """What the unit loses."""
        delta = Fraction(0) if self.lone is None else self.lone[1]
        if self.law in LAWS and LAWS[self.law].needs_delta:
            return PrivacyLoss(mu_squared=self.cost, delta=delta)
        return PrivacyLoss(epsilon=self.cost, delta=delta)


@frozen
class Witness:
    """The worst units of all measurements of a release.

    Parameters
    ----------
    found
        One for each measurement.
    """

    found: tuple[Found, ...]

    @cached_property
    def loss(self) -> PrivacyLoss:
        """What the release loses at most."""
        # kinds of loss are compared one by one: none pays for another
        parts = zip(*(worst.loss.parts for worst in self.found), strict=True)
        return PrivacyLoss(*(sum(filter(None, part), Fraction(0)) for part in parts))


def compare(witness: Witness, charged: PrivacyLoss) -> None:
    """Refuse a release that could lose more than is charged.

    Raises
    ------
    PlanCheckError
        If it could.
    """
    names = ("epsilon", "mu squared", "delta")
    for name, lost, paid in zip(names, witness.loss.parts, charged.parts, strict=True):
        if is_above(lost, paid):
            raise PlanCheckError.of(
                f"a unit could cost {name} = {cost_words(lost)}, charged are {float(paid):.6g}"
            )


def cost_words(cost: Fraction) -> str:
    """Say how much something costs.

    Examples
    --------
    >>> cost_words(Fraction(1, 3)), cost_words(NEVER)
    ('0.333333', 'more than any noise hides')
    """
    return f"{float(cost):.6g}" if cost < NEVER else "more than any noise hides"
