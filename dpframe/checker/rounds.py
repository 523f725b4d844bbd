"""Labels that are found, and quantiles that are selected: formulas, with tails of their own."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from dpframe.checker.units import Filling, worst_cells
from dpframe.checker.witness import Found, LoneLabels, WitnessCells
from dpframe.checker.words import count, words_of
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Caps, Neighboring
from dpframe.privacy.selection import GEOMETRIC, Pick

@dataclass(frozen=True)
class LabelRound:
    """One round in which labels are found.

    Parameters
    ----------
    law, scale
        The noise on the number of units of a label.
    least
        The least noisy number that is published.
    weights
        What each label of a unit counts for, by how many it has; 1 for numbers of units.
    """

    law: Law
    scale: float
    least: int
    weights: Sequence[int]


def worst_labels(rounds: Iterable[LabelRound], neighboring: Neighboring) -> tuple[Found, ...]:
    """Find the worst unit of each round."""
    return tuple(_worst_of_round(one, 2 if neighboring == "replace" else 1) for one in rounds)


def _worst_of_round(one: LabelRound, sides: int) -> Found:
    norm = one.law.norm
    pairs = [*enumerate(one.weights, 1)]
    labels, weight = max(pairs, key=lambda pair: pair[0] * pair[1] ** norm)
    shown = {
        pair: -math.expm1(pair[0] * math.log1p(-_tail(one, one.least - pair[1]))) for pair in pairs
    }
    lone = max(pairs, key=lambda pair: shown[pair])
    words = f"a unit with {count(labels, 'label')}"
    if sides > 1:
        words = f"{words}, in place of one with as many others"
    return Found(
        one.law.name,
        {0: one.scale},
        (WitnessCells(sides * labels, (1, 0), {0: (weight, 0)}),),
        words,
        lone=(LoneLabels(*lone, one.least), Fraction(shown[lone])),
    )


def _tail(one: LabelRound, m: int) -> float:
    """Return P(Y >= m) of the noise: a rounded normal, or the discrete Laplace law."""
    if one.law.norm == 2:  # noqa: PLR2004
        return math.erfc((m - 0.5) / one.scale / math.sqrt(2)) / 2
    ratio = math.exp(-1 / one.scale)
    if m >= 1:
        return math.exp(-m / one.scale) / (1 + ratio)
    return 1 - math.exp((m - 1) / one.scale) / (1 + ratio)


def worst_selection(
    steps: Sequence[Pick],
    scales: Sequence[float],
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
    inverse = {step: 1 / scale for step, scale in zip(steps, scales, strict=True)}
    levels = [[*own] for _, own in groupby(steps, key=lambda step: step.level)]
    (first,), *later = levels

    def moves(a: int, b: int) -> dict[int, int]:
        """Return by selection how far utilities are moved, of one selection for each level."""
        over, under = first.b - first.a, first.a
        found = {steps.index(first): 2 * max(over * a + under * b, under * a + over * b)}
        for level in later:
            worst = max(level, key=lambda step: max(step.a, step.b - step.a) * inverse[step])
            found[steps.index(worst)] = 2 * max(worst.a, worst.b - worst.a) * (a + b)
        return found

    def distance(a: int, b: int) -> float:
        return sum(moved * inverse[steps[at]] for at, moved in moves(a, b).items())

    filled = worst_cells(distance, Filling.of(caps, groups), neighboring, always=always)
    cells = tuple(
        WitnessCells(times, (1, 0), {at: (moved, 0) for at, moved in moves(a, b).items()})
        for times, a, b in filled
    )
    used = {at: scales[at] for own in cells for at in own.moves}
    return Found(GEOMETRIC, used, cells, words_of(filled, neighboring))
