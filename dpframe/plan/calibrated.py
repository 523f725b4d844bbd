"""Designs of a mechanism with the noise that an allowance demands; equal ones are kept.

A preview and its release, or releases made again and again, ask for the same. What is kept depends
on public facts alone.
"""

import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from dpframe.errors import CalibrationError
from dpframe.privacy.amounts import round_up
from dpframe.privacy.law import Law
from dpframe.privacy.noise import MAX_SCALE
from dpframe.privacy.sensitivity import Norm
from dpframe.strategies import Mechanism, Planner
from dpframe.strategies.base import Design, Prediction, Workload
from dpframe.strategies.noise import deviations_of, widest
from dpframe.strategies.weighted import WeightedDesign

_ORDINARY = 2**20, 2.0**39  # with factors and scales up to these, no product is near the limit
_WIDE = 2.0**50  # of noise so wide, rounding adds nothing that shows


def scale_designs(
    designs: Sequence[tuple[Workload, Design]], law: Law, allowed: Fraction
) -> list[tuple[float, ...]]:
    """Return noise scales for every block of every design.

    They are the relative scales of the designs, times a factor per design that shares the
    allowance, times the smallest common factor, up to a few ulps, for which the total movement is
    at most the allowance.

    Parameters
    ----------
    designs
        Designs with the workloads that they are for.
    law
        Law of the noise.
    allowed
        mu^2 for Gaussian and epsilon for Laplace noise.

    Raises
    ------
    CalibrationError
        If a scale would be above 2**60.
    """
    norm = law.norm
    balanced = _balance_scales(designs, law)
    pairs = [(design, own) for (_, design), own in zip(designs, balanced, strict=True)]
    times = Counter(id(design) for design, _ in pairs)  # equal tables share a design
    each = {id(design): (design, own) for design, own in pairs}

    def loss(factor: float) -> Fraction:
        moved = (
            times[at] * design.movement(_fractions(factor, own), law)
            for at, (design, own) in each.items()
        )
        return sum(moved, start=Fraction(0))

    moves = {at: design.movement(own, law) for at, (design, own) in each.items()}
    moved = Fraction(math.fsum(moves[at] for at in times.elements()))
    if moved == 0:
        return balanced
    least = moved / allowed
    if _is_too_wide(least, max(widest(design, own) for design, own in each.values()), norm):
        raise _too_wide()
    # floats say where to start, and fractions judge
    start = float(least) ** (1 / norm)
    factor = round_up(start, lambda factor: loss(factor) <= allowed)
    scaled = [(design, tuple(factor * scale for scale in own)) for design, own in pairs]
    # products are rounded: the last digit may be above the limit, which draws would refuse
    if max(widest(design, own) for design, own in scaled) > MAX_SCALE:
        raise _too_wide()
    return [tuple(map(law.settle, own, design.scales)) for design, own in scaled]


def _fractions(factor: float, scales: Sequence[float]) -> list[Fraction]:
    """Return the scales times a factor; of equal ones, the same object."""
    found = {scale: Fraction(factor * scale) for scale in set(scales)}
    return [found[scale] for scale in scales]


def _is_too_wide(least: Fraction, largest: float, norm: Norm) -> bool:
    """Whether a scale is above the limit, times a factor to the power `norm`."""
    if least <= _ORDINARY[0] and largest <= _ORDINARY[1]:  # no large powers of fractions
        return False
    return least * Fraction(largest) ** norm > Fraction(MAX_SCALE) ** norm


def _too_wide() -> CalibrationError:
    return CalibrationError(
        "the noise needed has a scale above the limit of 2**60 on the integers measured. Spend "
        "more, or declare tighter bounds or caps.",
        parameter="epsilon",
    )


def relative_variance(workload: Workload, errors: Sequence[float]) -> float:
    """Return the variance of all outputs wanted, relative to the ranges of what a row adds.

    The number of rows counts with its weight, once more where it is an output itself. Of several
    tables of a query, it is the mean, by their weights; those of several queries add up.
    """
    domain, size = workload.domain, len(workload.outputs)
    outputs = (*workload.outputs, workload.everyone)
    widths = [workload.width(output) * workload.weight for output in outputs]
    rows = outputs.index(workload.everyone)

    def of_table(own: Sequence[float]) -> float:
        squares = [(error / width) ** 2 for error, width in zip(own, widths, strict=False)]
        return sum(squares[:size]) + workload.rows_weight * sum(squares[rows : rows + 1])

    if domain.margins:
        weights = domain.weights or (1.0,) * len(domain.margins)
        variances = [of_table(errors[at : at + size]) for at in range(0, len(errors), size)]
        whole = 1.0 if domain.apart else math.fsum(weights)
        return math.fsum(map(operator.mul, weights, variances)) / whole
    return of_table(errors)


def _balance_scales(
    designs: Sequence[tuple[Workload, Design]], law: Law
) -> list[tuple[float, ...]]:
    """Relative scales at which every design moves in proportion to its best share."""
    if len(designs) == 1:
        return [designs[0][1].scales]
    works = {id(design): work for work, design in designs}
    each = {id(design): design for _, design in designs}
    balanced = {at: _balance(works[at], design, law) for at, design in each.items()}
    return [balanced[id(design)] for _, design in designs]


def _balance(workload: Workload, design: Design, law: Law) -> tuple[float, ...]:
    """Relative scales at which a design moves in proportion to its best share."""
    moved, norm = design.movement(design.scales, law), law.norm
    if moved == 0:
        return design.scales
    variance = _unit_variance(workload, design, law, moved)
    factor = (moved / variance ** (norm / (norm + 2))) ** (1 / norm) if variance else 1.0
    return tuple(factor * scale for scale in design.scales)


def _unit_variance(workload: Workload, design: Design, law: Law, moved: float) -> float:
    """Relative variance of a design when its movement is 1, but for rounding."""
    wide = _WIDE / widest(design, design.scales)
    own = tuple(wide * scale for scale in design.scales)
    unit: float = moved ** (1 / law.norm) / wide
    return _predict(law.limit, workload, design, own).variance * unit * unit


def choose_designs(
    how: Mechanism, workloads: Sequence[Workload], allowed: Fraction
) -> list[Design] | None:
    """Choose a design for every table; `None` where the mechanism fits none of them, or not all.

    Each candidate is given the same part of the allowance, alone; that with the least relative
    variance is taken, the first among equals. Beside other tables, one may do as well or better
    with the plain designs of the law. Tables share a design if their workloads are equal.

    Parameters
    ----------
    how
        The mechanism.
    workloads
        What is wanted of each table.
    allowed
        What movement may add up to, over all tables.
    """
    own = {work: _fitting(how.planners(work), work, how.law) for work in dict.fromkeys(workloads)}
    if not any(own.values()):
        return None
    if len(workloads) > 1:
        for work in own:
            own[work] += _fitting(how.plain_planners(work), work, how.law)
    if not all(own.values()):
        return None
    part = allowed / len(workloads)
    best = {work: _least(designs, work, how.law, part) for work, designs in own.items()}
    return [best[work] for work in workloads]


def _fitting(planners: Sequence[Planner], workload: Workload, law: Law) -> list[Design]:
    """Designs of the strategies that apply."""
    made = [planner(workload, law) for planner in planners]
    designs = [design for design in made if design is not None]
    if workload.weight == 1:
        return designs
    return [WeightedDesign(design, workload.weight) for design in designs]


def _least(designs: Sequence[Design], workload: Workload, law: Law, part: Fraction) -> Design:
    """Return the first design of the least relative variance."""
    if len(designs) == 1:
        return designs[0]
    return min(designs, key=lambda design: _variance(design, workload, law, part))


def _variance(design: Design, workload: Workload, law: Law, part: Fraction) -> float:
    """Predict the relative variance of a design that may move so far; infinite if it cannot."""
    moved = Fraction(design.movement(design.scales, law)) / part
    if _is_too_wide(moved, widest(design, design.scales), law.norm):
        return math.inf
    factor = float(moved) ** (1 / law.norm)
    wide = (min(factor * scale, MAX_SCALE) for scale in design.scales)
    try:
        scales = tuple(map(law.settle, wide, design.scales))
    except CalibrationError:  # the amount is too small for the law
        return math.inf
    return _predict(law, workload, design, scales).variance


_MOST_KEPT, _LEAST_KEPT = 2**20, 2**10
"""Cells of all plans that are kept, and what fewer cells of one count as."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A design with its noise and errors.

    Parameters
    ----------
    design
        What is measured and how it is decoded.
    scales
        Noise scales of the measured blocks: sigma of a Gaussian, b of a Laplace.
    deviations
        Standard deviations of the rounded noise of the blocks.
    variance
        The predicted variance of all outputs, relative to the ranges of what a row adds.
    predict
        Returns the errors of all outputs, which few of the plans compared need.
    """

    design: Design
    scales: tuple[float, ...]
    deviations: tuple[float, ...]
    variance: float
    predict: Callable[[], tuple[Prediction, ...]]

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """The errors of all outputs."""
        return self.predict()


def calibrate_designs(
    how: Mechanism, workloads: Sequence[Workload], allowed: Fraction
) -> tuple[Calibrated, ...] | None:
    """Choose a design for every workload, and scale its noise.

    Parameters
    ----------
    how
        The mechanism.
    workloads
        What is wanted of each table.
    allowed
        What movement may add up to, over all tables.

    Returns
    -------
    tuple or None
        One for each workload, in their order; `None` where the mechanism fits none of them.

    Raises
    ------
    CalibrationError
        If a scale would be above 2**60.
    """
    plain = all(work.known_rows is None for work in workloads)  # arrays are not kept
    make = _calibrate_once if plain else _calibrate_anew
    return make(how, tuple(workloads), allowed)


_Made: TypeAlias = tuple[Calibrated, ...] | None


class Kept:
    """What was made last. Suggestions plan hundreds, every time."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, tuple[_Made, int]] = {}
        self._cells = 0

    def get(self, asked: Hashable) -> tuple[_Made, int] | None:
        """Return what was made, and the number of its cells, if it is kept."""
        return self._plans.get(asked)

    def add(self, asked: Hashable, made: _Made, cells: int) -> None:
        """Keep one more; with too many cells, the last ones stay that have half of them."""
        self._plans[asked] = made, max(cells, _LEAST_KEPT)
        self._cells += max(cells, _LEAST_KEPT)
        if self._cells > _MOST_KEPT:
            known = list(self._plans.items())  # at once: other threads may add to it
            left = sum(own for _, (_, own) in known)
            for oldest, (_, own) in known[:-1]:
                if left <= _MOST_KEPT // 2:
                    break
                self._plans.pop(oldest, None)
                left -= own
            self._cells = left


KEPT = Kept()


def _calibrate_once(
    how: Mechanism, workloads: tuple[Workload, ...], allowed: Fraction
) -> tuple[Calibrated, ...] | None:
    """Return what is kept, or make it and keep it."""
    asked = how, workloads, allowed
    known = KEPT.get(asked)
    if known is not None:
        return known[0]
    made = _calibrate_anew(*asked)
    KEPT.add(asked, made, sum(work.cells for work in workloads))
    return made


def _calibrate_anew(
    how: Mechanism, workloads: tuple[Workload, ...], allowed: Fraction
) -> tuple[Calibrated, ...] | None:
    designs = choose_designs(how, workloads, allowed)
    if designs is None:
        return None
    pairs = list(zip(workloads, designs, strict=True))
    scaled = scale_designs(pairs, how.law, allowed)
    made = {}
    for (work, design), scales in zip(pairs, scaled, strict=True):
        if id(design) not in made:
            made[id(design)] = _predict(how.law, work, design, scales)
    return tuple(made[id(design)] for design in designs)


def _predict(law: Law, work: Workload, design: Design, scales: tuple[float, ...]) -> Calibrated:
    """Say how far off a design is with some noise."""
    deviations = deviations_of(law, design, scales, work.cells)
    variance = relative_variance(work, design.errors(deviations))
    predict = cache(lambda: tuple(design.predict(deviations)))
    return Calibrated(design, scales, deviations, variance, predict)
