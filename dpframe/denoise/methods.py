"""Every denoiser under its name, with what it takes and what it needs to know."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpframe.denoise.base import Denoised, check_values
from dpframe.denoise.empirical_bayes import empirical_bayes
from dpframe.denoise.projection import consistent, l1_ball, monotone, nonnegative, simplex, whole
from dpframe.denoise.shrinkage import gaussian_prior, james_stein
from dpframe.denoise.thresholding import soft_threshold
from dpframe.denoise.trend import trend_filter
from dpframe.denoise.wavelets import tree_wavelets
from dpframe.errors import QueryError, shown
from dpframe.privacy.law import Law

DenoiserName: TypeAlias = Literal[
    "auto",
    "empirical_bayes",
    "james_stein",
    "gaussian_prior",
    "soft_threshold",
    "tree_wavelets",
    "trend_filter",
    "nonnegative",
    "simplex",
    "l1_ball",
    "monotone",
    "consistent",
    "whole",
]
"""What a column may be denoised with: the best of them, or one of `METHODS`."""


class Facts(NamedTuple):
    """What is public about values to denoise.

    Parameters
    ----------
    law
        The law of the noise.
    own
        Standard deviation of the noise that a value has for itself.
    common
        Standard deviation of the noise that all values share.
    lower
        The smallest value that the truth can have; `None`: there is none.
    integer
        Whether the truth is whole.
    edges
        Pairs of positions that are neighbors; `None`: not known.
    """

    law: Law
    own: float
    common: float = 0.0
    lower: float | None = None
    integer: bool = False
    edges: np.ndarray | None = None

    @property
    def sigma(self) -> float:
        """Standard deviation of all the noise in a value."""
        return math.hypot(self.own, self.common)

    @property
    def variance(self) -> float:
        """Variance of all the noise in a value, infinite where it leaves the range of floats."""
        return self.sigma * self.sigma


Options: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Method:
    """A denoiser as it is called for a column of a release.

    Parameters
    ----------
    run
        From values, their noise and options to denoised values.
    options
        Names of the options it takes.
    required
        Those that must be given.
    drifts
        Whether it moves along when all values are moved by the same amount. It then knows nothing
        of noise that all values share: it is given the noise of differences, and leaves the rest.
    needs_graph
        Whether it needs to know which values are neighbors.
    projects
        Whether its result satisfies a constraint, which nothing after it may break.
    """

    run: Callable[[np.ndarray, float, Facts, Options], Denoised]
    options: frozenset[str] = field(default=frozenset())
    required: frozenset[str] = field(default=frozenset())
    drifts: bool = False
    needs_graph: bool = False
    projects: bool = False


def _empirical_bayes(values: np.ndarray, sigma: float, facts: Facts, _: Options) -> Denoised:
    # a truth of 0 stands at the noise that all values share, wherever that is
    lower = None if facts.common else facts.lower
    return empirical_bayes(values, sigma, law=facts.law, lower=lower, integer=facts.integer)


def _soft_threshold(values: np.ndarray, sigma: float, facts: Facts, given: Options) -> Denoised:
    return soft_threshold(values, sigma, law=facts.law, integer=facts.integer, **given)


def _nonnegative(values: np.ndarray, sigma: float, facts: Facts, _: Options) -> Denoised:
    return nonnegative(values, sigma, law=facts.law, integer=facts.integer)


def _simplex(values: np.ndarray, sigma: float, facts: Facts, given: Options) -> Denoised:
    return simplex(values, sigma, law=facts.law, integer=facts.integer, **given)


def _tree_wavelets(values: np.ndarray, sigma: float, facts: Facts, given: Options) -> Denoised:
    return tree_wavelets(values, sigma, _edges(facts), **given)


def _trend_filter(values: np.ndarray, sigma: float, facts: Facts, given: Options) -> Denoised:
    return trend_filter(values, sigma, _edges(facts), **given)


def _edges(facts: Facts) -> np.ndarray:
    if facts.edges is None:
        raise QueryError(
            "this method needs to know which values are neighbors: give graph=, for instance "
            '"ordered" where the keys follow each other.'
        )
    return facts.edges


METHODS: Mapping[str, Method] = {
    "empirical_bayes": Method(_empirical_bayes),
    "james_stein": Method(
        lambda values, sigma, _, given: james_stein(values, sigma, **given),
        options=frozenset({"toward", "positive_part"}),
        drifts=True,
    ),
    "gaussian_prior": Method(
        lambda values, sigma, _, given: gaussian_prior(values, sigma, **given),
        options=frozenset({"mean", "variance"}),
        drifts=True,
    ),
    "soft_threshold": Method(_soft_threshold, options=frozenset({"threshold"})),
    "tree_wavelets": Method(
        _tree_wavelets,
        options=frozenset({"trees", "threshold", "seed"}),
        drifts=True,
        needs_graph=True,
    ),
    "trend_filter": Method(
        _trend_filter, options=frozenset({"order", "penalty"}), drifts=True, needs_graph=True
    ),
    "nonnegative": Method(_nonnegative, projects=True),
    "simplex": Method(_simplex, options=frozenset({"total"}), projects=True),
    "l1_ball": Method(
        lambda values, sigma, _, given: l1_ball(values, sigma, **given),
        options=frozenset({"radius"}),
        required=frozenset({"radius"}),
        projects=True,
    ),
    "monotone": Method(
        lambda values, sigma, _, given: monotone(values, sigma, **given),
        options=frozenset({"increasing"}),
        drifts=True,
        projects=True,
    ),
    "consistent": Method(
        lambda values, sigma, _, given: consistent(values, sigma, **given),
        options=frozenset({"parents"}),
        required=frozenset({"parents"}),
        projects=True,
    ),
    "whole": Method(
        lambda values, _, __, given: whole(values, **given),
        options=frozenset({"total"}),
        projects=True,
    ),
}
"""Denoisers by the name that a release is denoised with."""


def denoise_array(values: object, method: str, facts: Facts, options: Options) -> Denoised:
    """Denoise values by the name of a method.

    Results below the smallest possible truth are raised to it, except those of projections: this
    can only make them better.

    Raises
    ------
    QueryError
        If the values are not finite, or an option is not usable.
    """
    known = METHODS[method]
    array = check_values(values)
    drifts = known.drifts and not _fixes_place(options)
    try:
        found = known.run(array, facts.own if drifts else facts.sigma, facts, options)
    except OverflowError:
        raise QueryError(
            f"an option of method={shown(method)} is beyond the range of floats; give a smaller "
            "number."
        ) from None
    risk = found.risk + facts.common * facts.common if drifts else found.risk
    estimates: np.ndarray = found.values
    if facts.lower is not None and not known.projects:
        estimates = np.maximum(estimates, facts.lower)
    return Denoised(estimates, risk, found.chosen)


def _fixes_place(options: Options) -> bool:
    """Whether options fix the place of a method that would drift."""
    return options.get("toward") == "zero" or options.get("mean") is not None
