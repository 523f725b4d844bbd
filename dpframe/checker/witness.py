"""What a check found: the worst unit, block by block, and the noise that hides it."""

from collections.abc import Mapping
from fractions import Fraction

from dpframe.checker.cell import ONE_CELL, Moved, Moves, PlaceKernel
from dpframe.checker.measured import NEVER, BlockNoise
from dpframe.context import cached_property
from dpframe.errors import PlanCheckError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import PrivacyLoss, is_above
from dpframe.privacy.laws import LAPLACE, LAWS


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
