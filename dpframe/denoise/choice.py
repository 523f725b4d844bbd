"""The automatic choice of a denoiser: the smallest estimated risk, or none."""

import math
from typing import NamedTuple

import numpy as np

from dpframe.denoise.base import Denoised, check_values
from dpframe.denoise.methods import METHODS, Facts, Options, denoise_array

_TUNED: dict[str, float] = {
    "soft_threshold": 2.0,
    "simplex": 2.0,
    "tree_wavelets": 2.0,
    "trend_filter": 0.5,
}
"""Squares of the largest of n noises by which the risk of a method seems smaller than it is."""

_FEWEST = 8
"""With fewer values, nothing can be learned from the others."""

_TEMPERATURE = 4.0
"""Of the weights, in variances of the noise (Leung and Barron 2006)."""

_LEAST_WEIGHT = 0.01
"""A method of less weight is left out."""

_LEAST_ERRORS = 2.0
"""Standard errors by which the estimated gain over nothing must exceed zero."""

_LEAST_GAIN = 0.01
"""Part of the variance of the noise that must be expected to go."""

_VARIANTS: tuple[tuple[str, Options], ...] = (
    ("empirical_bayes", {}),
    ("james_stein", {"toward": "mean"}),
    ("james_stein", {"toward": "zero"}),
    ("soft_threshold", {}),
    ("nonnegative", {}),
    ("simplex", {}),
    ("tree_wavelets", {}),
    ("trend_filter", {"order": 0}),
    ("trend_filter", {"order": 1}),
)
_OF_COUNTS = ("nonnegative", "simplex")


class Choice(NamedTuple):
    """What was chosen, and what it was compared with.

    Parameters
    ----------
    methods
        Names of the methods chosen, whose results are averaged; none where none is expected to
        help.
    denoised
        The result; the values as they are where none is expected to help.
    tried
        The result of everything tried, by method and options in words.
    """

    methods: tuple[str, ...]
    denoised: Denoised
    tried: dict[str, Denoised]

    @property
    def name(self) -> str:
        """The method chosen, "average" for several, "none" where the values are left alone."""
        if len(self.methods) > 1:
            return "average"
        return self.methods[0] if self.methods else "none"


def choose(values: object, facts: Facts) -> Choice:
    """Try the denoisers that apply, and average them by their estimated risk.

    The risk of a denoiser x(y) is estimated without bias (Stein 1981), or nearly so. Where the
    estimate itself chose something, such as a threshold, it is raised by two times the square of
    the largest of d noises, over d, and by half of that square for trend filtering, as measured.
    Results are averaged with weights in proportion to `exp(-d R / (4 sigma^2))` for estimated risks
    R of d values (Leung and Barron 2006), so that the best stands alone where it is clear; weights
    below 1 % are left out. The loss of an average is the average loss less the variance between
    its members. The result is taken only if its gain over doing nothing exceeds 1 % and two
    standard errors, `2 sigma |x - y| / d` each, and there are 8 values or more. Otherwise values
    below 0 are raised to it where the truth cannot be negative, which makes none of them worse,
    though it makes totals too high; and all others are left alone.

    References
    ----------
    G. Leung and A. R. Barron, "Information theory and mixing least-squares regressions", IEEE
    Transactions on Information Theory 52(8), 2006.

    Parameters
    ----------
    values
        Finite values, one-dimensional.
    facts
        What is public about them.
    """
    array = check_values(values)
    tried = {
        _in_words(method, options): _with_tuning_risk(
            denoise_array(array, method, facts, options), method, facts
        )
        for method, options in _VARIANTS
        if _applies(method, facts)
    }
    usable = {name: result for name, result in tried.items() if math.isfinite(result.risk)}
    if usable and len(array) >= _FEWEST:
        weights = _weights(usable, facts)
        average = _average(usable, weights)
        gain = facts.variance - average.risk
        if gain > max(
            _LEAST_ERRORS * _risk_error(average.values, array, facts),
            _LEAST_GAIN * facts.variance,
        ):
            return Choice(tuple(weights), average, tried)
    if facts.lower == 0 and (array < 0).any():
        return Choice(("nonnegative",), tried["nonnegative"], tried)
    return Choice((), Denoised(array, facts.variance, {}), tried)


def _with_tuning_risk(found: Denoised, method: str, facts: Facts) -> Denoised:
    """Raise the risk of a method that was tuned on the values that it is judged by."""
    d = max(len(found.values), 2)
    largest = facts.variance * facts.law.distance(math.log(d)) ** 2
    return found._replace(risk=found.risk + _TUNED.get(method, 0.0) * largest / d)


def _in_words(method: str, options: Options) -> str:
    return " ".join([method, *(f"{name}={value}" for name, value in options.items())])


def _applies(method: str, facts: Facts) -> bool:
    if method in _OF_COUNTS:
        return facts.lower == 0
    return facts.edges is not None or not METHODS[method].needs_graph


def _risk_error(one: np.ndarray, other: np.ndarray, facts: Facts) -> float:
    """Return the standard error of the difference between the estimated risks of two results."""
    return 2 * facts.sigma * float(np.linalg.norm(one - other)) / len(one)


def _weights(usable: dict[str, Denoised], facts: Facts) -> dict[str, float]:
    """Weigh results by their estimated risks, those of little weight left out."""
    risks = np.array([result.risk for result in usable.values()]) / facts.variance
    n = len(next(iter(usable.values())).values)
    weights = np.exp((risks.min() - risks) * n / _TEMPERATURE)
    weights = np.where(weights >= _LEAST_WEIGHT * weights.sum(), weights, 0.0)
    kept = zip(usable, (weights / weights.sum()).tolist(), strict=True)
    return {name: weight for name, weight in kept if weight}


def _average(usable: dict[str, Denoised], weights: dict[str, float]) -> Denoised:
    """Average results, with the risk that the average has."""
    if len(weights) == 1:
        return usable[next(iter(weights))]
    values = sum(weight * usable[name].values for name, weight in weights.items())
    parts = [
        weight * (usable[name].risk - float(np.mean((usable[name].values - values) ** 2)))
        for name, weight in weights.items()
    ]
    return Denoised(
        np.asarray(values),
        sum(parts),
        {f"{name}: weight": weight for name, weight in weights.items()},
    )
