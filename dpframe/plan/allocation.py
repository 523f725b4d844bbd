"""Share an allowance among several designs, and scale their noise to it in exact arithmetic.

A design whose relative variance is v when its movement is 1 has variance `v / m^(2 / p)` when its
movement is m, with p = 2 for Gaussian and p = 1 for Laplace noise. The sum over designs is
smallest, for a given total of the movements, where m is proportional to `v^(p / (p + 2))`.
"""

import math
import operator
from collections.abc import Sequence
from fractions import Fraction

from dpframe.errors import CalibrationError
from dpframe.privacy.law import Law
from dpframe.privacy.noise_scales import MAX_SCALE
from dpframe.privacy.rounding import round_up
from dpframe.strategies.base import Design, Prediction, Workload
from dpframe.strategies.noise import deviations_of, widest

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
    balanced = _balanced(designs, law)

    def scaled(factor: float) -> list[tuple[float, ...]]:
        return [tuple(factor * scale for scale in own) for own in balanced]

    def loss(scales: Sequence[tuple[float, ...]]) -> Fraction:
        moved = (
            design.movement([Fraction(scale) for scale in own], law)
            for (_, design), own in zip(designs, scales, strict=True)
        )
        return sum(moved, start=Fraction(0))

    moved = Fraction(
        math.fsum(
            design.movement(own, law) for (_, design), own in zip(designs, balanced, strict=True)
        )
    )
    if moved == 0:
        return balanced
    largest = Fraction(
        max(widest(design, own) for (_, design), own in zip(designs, balanced, strict=True))
    )
    if moved / allowed * largest**norm > Fraction(MAX_SCALE) ** norm:
        raise CalibrationError(
            "the noise needed has a scale above the limit of 2**60 on the integers measured. "
            "Spend more, or declare tighter bounds or caps."
        )
    # floats say where to start, and fractions judge
    start = float(moved / allowed) ** (1 / norm)
    return scaled(round_up(start, lambda factor: loss(scaled(factor)) <= allowed))


def relative_variance(workload: Workload, predictions: Sequence[Prediction]) -> float:
    """Return the variance of all outputs wanted, relative to the ranges of what a row adds.

    The number of rows counts with its weight, once more where it is an output itself. Of several
    tables, it is the mean, by their weights.
    """
    domain = workload.domain
    if domain.margins:
        weights = domain.weights or (1.0,) * len(domain.margins)
        size = len(workload.outputs)
        starts = range(0, len(predictions), size)
        variances = [_variance(workload, predictions[at : at + size]) for at in starts]
        return math.fsum(map(operator.mul, weights, variances)) / math.fsum(weights)
    return _variance(workload, predictions)


def _variance(workload: Workload, predictions: Sequence[Prediction]) -> float:
    """Return the relative variance of one table."""
    outputs = (*workload.outputs, workload.everyone)
    errors = {
        output: prediction.error_compared / workload.width(output)
        for output, prediction in zip(outputs, predictions, strict=False)
    }
    wanted = sum(errors[output] ** 2 for output in workload.outputs)
    return wanted + workload.rows_weight * errors.get(workload.everyone, 0.0) ** 2


def _balanced(designs: Sequence[tuple[Workload, Design]], law: Law) -> list[tuple[float, ...]]:
    """Relative scales at which every design moves in proportion to its best share."""
    balanced, norm = [], law.norm
    if len(designs) == 1:
        return [designs[0][1].scales]
    for workload, design in designs:
        moved = design.movement(design.scales, law)
        if moved == 0:
            balanced.append(design.scales)
            continue
        variance = _unit_variance(workload, design, law, moved)
        factor = (moved / variance ** (norm / (norm + 2))) ** (1 / norm) if variance else 1.0
        balanced.append(tuple(factor * scale for scale in design.scales))
    return balanced


def _unit_variance(workload: Workload, design: Design, law: Law, moved: float) -> float:
    """Relative variance of a design when its movement is 1, but for rounding."""
    wide = _WIDE / widest(design, design.scales)
    own = [wide * scale for scale in design.scales]
    deviations = deviations_of(law, design, own, workload.cells)
    unit: float = moved ** (1 / law.norm) / wide
    variance = relative_variance(workload, design.predict(deviations))
    return variance * unit * unit
