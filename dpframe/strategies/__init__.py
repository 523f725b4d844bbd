"""Strategies: which integers to measure for a workload, and how to decode them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dpframe.noise import Law
from dpframe.sensitivity import Norm
from dpframe.strategies import independent
from dpframe.strategies.base import Design, Estimate, Output, Prediction, Source, Workload

__all__ = [
    "MECHANISMS",
    "Design",
    "Estimate",
    "Mechanism",
    "Output",
    "Prediction",
    "Source",
    "Workload",
]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A law of noise together with a strategy.

    Parameters
    ----------
    law
        Law of the noise on every measured integer.
    norm
        The norm in which that noise hides movement: 2 for Gaussian, 1 for Laplace.
    design
        Plans a workload; answers `None` where the strategy does not apply to it.
    title
        The name of the mechanism in words.
    """

    law: Law
    norm: Norm
    design: Callable[[Workload, Norm], Design | None]
    title: str


MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {
        "gaussian": Mechanism("gaussian", 2, independent.design, "analytic Gaussian"),
        "laplace": Mechanism("laplace", 1, independent.design, "Laplace"),
    }
)
