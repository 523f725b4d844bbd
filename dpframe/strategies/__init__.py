"""Strategies: which integers to measure for a workload, and how to decode them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE, STAIRCASE
from dpframe.strategies import (
    box,
    characters,
    correlated,
    independent,
    margins,
    pair,
    sparse,
    staircase,
    tree,
)
from dpframe.strategies.base import Design, Workload

MechanismName: TypeAlias = Literal[
    "auto", "gaussian", "correlated", "laplace", "box", "staircase", "classical", "select"
]
"""What a release may be asked for: the best of them, one of `MECHANISMS`, or to select."""

Planner: TypeAlias = Callable[[Workload, Law], Design | None]
"""A strategy: plans a workload for a law of noise, or answers that it does not apply."""


@frozen(slots=True)
class Mechanism:
    """A law of noise together with a strategy.

    Parameters
    ----------
    law
        Law of the noise on every measured integer.
    designs
        Ways to plan a workload, of which the one with the least error is taken, the first among
        equals; each answers `None` where it does not apply.
    title
        The name of the mechanism in words.
    plain
        Ways to plan the tables of a release that `designs` do not fit, or not as well.
    layered, layered_plain
        The same for what is measured over many cells at once, for which no other ways are.
    across
        Whether tables by different columns can share noise.
    automatic
        Whether "auto" may take it.
    least_epsilon
        The epsilon from which "auto" compares it: below, it gains next to nothing.
    classical
        Whether the noise is calibrated in the classical way, for comparison.
    """

    law: Law
    designs: tuple[Planner, ...]
    title: str
    plain: tuple[Planner, ...] = (independent.design,)
    layered: tuple[Planner, ...] = ()
    layered_plain: tuple[Planner, ...] = ()
    across: bool = False
    automatic: bool = True
    least_epsilon: float = 0.0
    classical: bool = False

    def planners(self, workload: Workload) -> tuple[Planner, ...]:
        """Return the ways to plan a workload; several columns together have their own."""
        if workload.is_of_several:  # several integers move, which not every law charges for in sum
            sums = independent.design in (*self.designs, *self.plain)
            boxes = _BOXES_OF_SEVERAL if self.law.inside == "max" else ()
            return (*_OF_SEVERAL, *boxes) if sums else ()
        return self.layered if workload.is_layered else self.designs

    def plain_planners(self, workload: Workload) -> tuple[Planner, ...]:
        """Return the other ways to plan it beside other tables."""
        if workload.is_of_several:
            return ()
        plain = self.layered_plain if workload.is_layered else self.plain
        return tuple(planner for planner in plain if planner not in self.planners(workload))


_ALONE = (independent.design,)
_PLAIN = (independent.design, pair.design)
_SINGLE = (*_PLAIN, pair.plan_bernstein, correlated.design)
_OF_SEVERAL = (independent.plan_parts, independent.design)
_BOXES_OF_SEVERAL = (box.runs, box.plan_over_cells)
_LAYERED = (margins.apart, margins.plan_paired, tree.design)
_SHARED = (sparse.design, sparse.plan_bins, correlated.design)
_BOXES = (box.runs_lifted, box.runs, sparse.plan_bins, box.joined_lifted, box.plan_over_cells)
_MECHANISMS = {
    "gaussian": Mechanism(GAUSSIAN, _PLAIN, "analytic Gaussian", layered=_LAYERED),
    "correlated": Mechanism(
        GAUSSIAN, _SHARED, "correlated analytic Gaussian", layered_plain=_LAYERED
    ),
    "laplace": Mechanism(LAPLACE, _SINGLE, "Laplace", layered=_LAYERED),
    "box": Mechanism(
        BOX,
        _BOXES,
        "box",
        plain=_SINGLE,
        layered=(characters.design,),
        layered_plain=_LAYERED,
        across=True,
    ),
    "staircase": Mechanism(
        STAIRCASE,
        (staircase.design,),
        "staircase",
        plain=(staircase.design_beside,),
        least_epsilon=1.5,
    ),
    "classical": Mechanism(
        GAUSSIAN, _ALONE, "classical Gaussian", layered=_LAYERED, automatic=False, classical=True
    ),
}

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(_MECHANISMS)
