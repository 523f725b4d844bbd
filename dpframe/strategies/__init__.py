"""Strategies: which integers to measure for a workload, and how to decode them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dpframe.privacy.laws import GAUSSIAN, LAPLACE, Law
from dpframe.privacy.sensitivity import Norm
from dpframe.strategies import correlated, independent, sparse, spread
from dpframe.strategies.base import (
    Design,
    Dimension,
    Domain,
    Estimate,
    Output,
    Prediction,
    Source,
    Workload,
)

__all__ = [
    "MECHANISMS",
    "Design",
    "Dimension",
    "Domain",
    "Estimate",
    "Mechanism",
    "Output",
    "Prediction",
    "Source",
    "Workload",
    "independently",
]

independently = independent.design
"""Plans any workload, with independent noise on every total."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A law of noise together with a strategy.

    Parameters
    ----------
    law
        Law of the noise on every measured integer.
    design
        Plans a workload; answers `None` where the strategy does not apply to it.
    title
        The name of the mechanism in words.
    automatic
        Whether "auto" may take it.
    classical
        Whether the noise is calibrated in the classical way, for comparison.
    """

    law: Law
    design: Callable[[Workload, Norm], Design | None]
    title: str
    automatic: bool = True
    classical: bool = False

    @property
    def norm(self) -> Norm:
        """The norm in which the noise hides movement."""
        return self.law.norm


def _correlated(workload: Workload, norm: Norm) -> Design | None:
    """Take the strategy with shared noise that fits the workload, if one does."""
    sparsely: Design | None = sparse.design(workload, norm)
    return sparsely or spread.design(workload, norm) or correlated.design(workload, norm)


MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {
        "gaussian": Mechanism(GAUSSIAN, independent.design, "analytic Gaussian"),
        "correlated": Mechanism(GAUSSIAN, _correlated, "correlated analytic Gaussian"),
        "laplace": Mechanism(LAPLACE, independent.design, "Laplace"),
        "classical": Mechanism(
            GAUSSIAN, independent.design, "classical Gaussian", automatic=False, classical=True
        ),
    }
)
