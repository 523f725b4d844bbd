"""Labels that are found, and quantiles that are selected: formulas, with tails of their own."""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby

from dpframe.checker.witness import (
    FilledCaps,
    Found,
    LoneLabels,
    WitnessCells,
    count,
    words_of,
    worst_cells,
)
from dpframe.errors import PlanCheckError
from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Caps, Neighboring

# counts of which one after the other is looked at
_MOST_MOVED = 2_000
# both are computed in floats
_NEAR = 1 + Fraction(1, 2**30)
# a label that is always published
_ALMOST = 1 - 2.0**-53
# of a float; what it is multiplied by is 0 there
_LARGEST_EXPONENT = 700.0


@frozen
class LabelRound:
    """One round in which labels are found.

    Parameters
    ----------
    law, scale
        The noise on the number of units of a label.
    least
        The least noisy number that is published.
    weights
        What each label of a unit counts for, by how many it has.
    """

    law: Law
    scale: float
    least: int
    weights: Mapping[int, int]


def worst_labels(rounds: Iterable[LabelRound], neighboring: Neighboring) -> tuple[Found, ...]:
    """Find the worst unit of each round."""
    sides = 2 if neighboring == "replace" else 1
    return tuple(_worst_of_round(label_round, sides) for label_round in rounds)


def _worst_of_round(label_round: LabelRound, sides: int) -> Found:
    norm = label_round.law.norm
    pairs = [*label_round.weights.items()]
    labels, weight = max(pairs, key=lambda pair: pair[0] * pair[1] ** norm)
    alone = [LoneLabels(*pair, label_round.least) for pair in pairs]
    shown = {lone: chance_shown(label_round.law, label_round.scale, lone) for lone in alone}
    lone = max(alone, key=lambda lone: shown[lone])
    words = f"a unit with {count(labels, 'label')}"
    if sides > 1:
        words = f"{words}, in place of one with as many others"
    return Found(
        label_round.law.name,
        {0: label_round.scale},
        (WitnessCells(sides * labels, (1, 0), {0: (weight, 0)}),),
        words,
        lone=(lone, shown[lone]),
    )


def chance_shown(law: Law, scale: float, lone: LoneLabels) -> Fraction:
    """Return the chance that noise shows one of some labels of a unit alone: `1 - (1 - t)^m`."""
    tail = min(_tail(law, scale, lone.least - lone.weight), 1.0)
    if tail == 1:
        return Fraction(1)
    return Fraction(-math.expm1(lone.labels * math.log1p(-tail)))


def require_together(
    label_round: LabelRound, neighboring: Neighboring, epsilon: Fraction, delta: Fraction
) -> None:
    """Refuse numbers and labels that together keep less than an epsilon and a delta.

    Raises
    ------
    PlanCheckError
        If they do.
    """
    ((labels, weight),) = label_round.weights.items()
    moved = (2 if neighboring == "replace" else 1) * labels
    some = range(moved + 1) if moved <= _MOST_MOVED else (0, moved)
    # a label that is always published would have no finite logarithm
    hidden = math.log1p(
        -min(_tail(label_round.law, label_round.scale, label_round.least - weight), _ALMOST)
    )
    deltas = [
        -math.expm1(min(alone, labels) * hidden)
        + _noise_delta(label_round, moved - alone, float(epsilon) + min(alone, labels) * hidden)
        for alone in some
    ]
    kept = max(deltas) if moved <= _MOST_MOVED else sum(deltas)
    if kept > delta * _NEAR:
        wrong = f"numbers and labels keep delta = {kept:.6g} at epsilon = {float(epsilon):.6g}"
        raise PlanCheckError.of(f"{wrong}, promised is {float(delta):.6g}")


def _noise_delta(label_round: LabelRound, moved: int, epsilon: float) -> float:
    """Return the delta of so many counts that move, by complementary error functions."""
    (weight,) = label_round.weights.values()
    if label_round.law.norm == 1:
        return 0.0 if moved * weight / label_round.scale <= epsilon * float(_NEAR) else 1.0
    if not moved:
        return -math.expm1(min(epsilon, 0.0))
    mu = math.sqrt(moved) * weight / label_round.scale
    near, far = ((epsilon / mu + sign * mu / 2) / math.sqrt(2) for sign in (-1, 1))
    return (math.erfc(near) - math.exp(min(epsilon, _LARGEST_EXPONENT)) * math.erfc(far)) / 2


def _tail(law: Law, scale: float, m: int) -> float:
    """Return P(Y >= m) of the noise: a rounded normal, or the discrete Laplace law."""
    if law.norm == 2:  # noqa: PLR2004
        return math.erfc((m - 0.5) / scale / math.sqrt(2)) / 2
    ratio = math.exp(-1 / scale)
    if m >= 1:
        return math.exp(-m / scale) / (1 + ratio)
    return 1 - math.exp((m - 1) / scale) / (1 + ratio)


@frozen
class Selected:
    """The selection of one quantile.

    Parameters
    ----------
    a, b
        It is the a/b quantile of the rows that it is selected among.
    level
        How many selections come before it, one after the other.
    scale
        The scale of its noise.
    """

    a: int
    b: int
    level: int
    scale: float

    @property
    def step(self) -> int:
        """By how much one row more or fewer moves a utility at most."""
        return max(self.a, self.b - self.a)


def worst_selection(
    law: str,
    steps: Sequence[Selected],
    caps: Caps,
    groups: int,
    neighboring: Neighboring,
    *,
    always: bool,
) -> Found:
    """Find the worst unit of quantiles that are selected.

    Its rows lie on one side of a quantile at worst. On later levels, each row counts in the range
    that it lies in.
    """
    (first,), *later = ([*group] for _, group in groupby(steps, key=lambda step: step.level))
    farthest = [max(level, key=lambda step: step.step / step.scale) for level in later]

    def moves(a: int, b: int) -> dict[int, tuple[int, int]]:
        """Return by how much utilities are moved, of one selection for each level."""
        over, under = first.b - first.a, first.a
        by_step = {first: max(over * a + under * b, under * a + over * b)}
        by_step |= {step: step.step * (a + b) for step in farthest}
        return {steps.index(step): (2 * moved, 0) for step, moved in by_step.items()}

    def distance(a: int, b: int) -> float:
        return sum(moved / steps[at].scale for at, (moved, _) in moves(a, b).items())

    filled = worst_cells(distance, FilledCaps.of(caps, groups), neighboring, always=always)
    cells = tuple(WitnessCells(times, (1, 0), moves(a, b)) for times, a, b in filled)
    scales = {at: steps[at].scale for group in cells for at in group.moves}
    return Found(law, scales, cells, words_of(filled, neighboring))
