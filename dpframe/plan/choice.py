"""Which design measures each table of a release: the one with the least predicted error."""

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from dpframe.plan.allocation import relative_variance
from dpframe.privacy.laws import Law
from dpframe.privacy.noise import MAX_SCALE
from dpframe.strategies import Design, Mechanism, Planner, Workload
from dpframe.strategies.noise import deviations_of

__all__ = ["choose_designs"]

_Key = TypeVar("_Key", bound=Hashable)


def choose_designs(
    how: Mechanism, workloads: Mapping[_Key, Workload], allowed: Fraction
) -> dict[_Key, Design] | None:
    """Choose a design for every table; `None` where the mechanism fits none of them.

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
    own = {key: _fitting(how.designs, work, how.law) for key, work in workloads.items()}
    if not any(own.values()):
        return None
    if len(workloads) > 1:
        for key, work in workloads.items():
            own[key] += _fitting(
                [one for one in how.plain if one not in how.designs], work, how.law
            )
    part = allowed / len(workloads)
    return {key: _least(own[key], work, how.law, part) for key, work in workloads.items()}


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
    moved = design.movement([Fraction(scale) for scale in design.scales], law)
    largest = Fraction(max(design.scales))
    if moved / part * largest**law.norm > Fraction(MAX_SCALE) ** law.norm:
        return math.inf
    factor = float(moved / part) ** (1 / law.norm)
    scales = [min(factor * scale, MAX_SCALE) for scale in design.scales]
    deviations = deviations_of(law, design, scales, workload.cells)
    return relative_variance(workload, design.predict(deviations))
