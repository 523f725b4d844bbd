"""Which design measures each table of a release: the one with the least predicted error."""

import math
from collections.abc import Sequence
from fractions import Fraction

from dpframe.plan.allocation import relative_variance
from dpframe.privacy.law import Law
from dpframe.privacy.noise_scales import MAX_SCALE
from dpframe.strategies import Design, Mechanism, Planner, Workload
from dpframe.strategies.noise import deviations_of, widest


def choose_designs(
    how: Mechanism, workloads: Sequence[Workload], allowed: Fraction
) -> list[Design] | None:
    """Choose a design for every table; `None` where the mechanism fits none of them, or not all.

    Each candidate is given the same part of the allowance, alone; that with the least relative
    variance is taken, the first among equals. Beside other tables, one may do as well or better
    with the plain designs of the law.

    Parameters
    ----------
    how
        The mechanism.
    workloads
        What is wanted of each table.
    allowed
        What movement may add up to, over all tables.
    """
    own = [_fitting(how.planners(work), work, how.law) for work in workloads]
    if not any(own):
        return None
    if len(workloads) > 1:
        own = [
            [*designs, *_fitting(how.plain_planners(work), work, how.law)]
            for designs, work in zip(own, workloads, strict=True)
        ]
    if not all(own):
        return None
    part = allowed / len(workloads)
    return [
        _least(designs, work, how.law, part) for designs, work in zip(own, workloads, strict=True)
    ]


def _fitting(planners: Sequence[Planner], workload: Workload, law: Law) -> list[Design]:
    """Designs of the strategies that apply."""
    made = [planner(workload, law) for planner in planners]
    return [design for design in made if design is not None]


def _least(designs: Sequence[Design], workload: Workload, law: Law, part: Fraction) -> Design:
    """Return the first design of the least relative variance."""
    if len(designs) == 1:
        return designs[0]
    return min(designs, key=lambda design: _variance(design, workload, law, part))


def _variance(design: Design, workload: Workload, law: Law, part: Fraction) -> float:
    """Predict the relative variance of a design that may move so far; infinite if it cannot."""
    moved = Fraction(design.movement(design.scales, law)) / part
    if (
        moved * Fraction(widest(design, design.scales)) ** law.norm
        > Fraction(MAX_SCALE) ** law.norm
    ):
        return math.inf
    factor = float(moved) ** (1 / law.norm)
    scales = [min(factor * scale, MAX_SCALE) for scale in design.scales]
    deviations = deviations_of(law, design, scales, workload.cells)
    return relative_variance(workload, design.predict(deviations))
