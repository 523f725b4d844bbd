"""Strategies: which integers to measure for a workload, and how to decode them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE, Law
from dpframe.strategies import bernstein, box, correlated, independent, pair, sparse, spread
from dpframe.strategies.base import (
    Design,
    Estimate,
    Moments,
    Output,
    Prediction,
    Ratio,
    Source,
    Workload,
)

__all__ = [
    "MECHANISMS",
    "Design",
    "Estimate",
    "Mechanism",
    "MechanismName",
    "Moments",
    "Output",
    "Planner",
    "Prediction",
    "Ratio",
    "Source",
    "Workload",
    "independently",
]

MechanismName: TypeAlias = Literal[
    "auto", "gaussian", "correlated", "laplace", "box", "classical", "select"
]
"""What a release may be asked for: the best of them, one of `MECHANISMS`, or to select."""

Planner: TypeAlias = Callable[[Workload, Law], Design | None]
"""A strategy: plans a workload for a law of noise, or answers that it does not apply."""

independently = independent.design
"""Plans any workload, with independent noise on every total."""


@dataclass(frozen=True, slots=True)
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
    automatic
        Whether "auto" may take it.
    classical
        Whether the noise is calibrated in the classical way, for comparison.
    """

    law: Law
    designs: tuple[Planner, ...]
    title: str
    plain: tuple[Planner, ...] = (independent.design,)
    automatic: bool = True
    classical: bool = False


_SINGLE = (independent.design, pair.design, bernstein.design, correlated.design)

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {
        "gaussian": Mechanism(GAUSSIAN, (independent.design, pair.design), "analytic Gaussian"),
        "correlated": Mechanism(
            GAUSSIAN,
            (sparse.design, spread.design, correlated.design),
            "correlated analytic Gaussian",
        ),
        "laplace": Mechanism(LAPLACE, _SINGLE, "Laplace"),
        "box": Mechanism(
            BOX,
            (box.runs_lifted, box.runs, spread.design, box.joined_lifted, box.joined),
            "box",
            plain=_SINGLE,
        ),
        "classical": Mechanism(
            GAUSSIAN, (independent.design,), "classical Gaussian", automatic=False, classical=True
        ),
    }
)
