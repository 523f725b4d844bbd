"""The automatic choice of a denoiser: the smallest estimated risk, or none."""

import math
from typing import NamedTuple

import numpy as np

from dpframe.denoise.base import Denoised, check_values
from dpframe.denoise.methods import METHODS, Facts, Options, denoise_array

__all__ = ["Choice", "choose"]

_TUNED: dict[str, float] = {
    "soft_threshold": 2.0,
    "simplex": 2.0,
    "tree_wavelets": 2.0,
    "trend_filter": 0.5,
}
"""Squares of the largest of n noises by which the risk of a method seems smaller than it is."""

_FEWEST = 8
"""Values below which nothing can be learned from the others."""

_ALIKE = 0.5
"""Standard errors up to which two estimated risks do not tell their methods apart."""

_CLEARLY = 2.0
"""Standard errors by which the estimated gain over nothing must exceed zero."""

_WORTH = 0.01
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
    """Try the denoisers that apply and average those with the smallest estimated risk.

    The risk of a denoiser x(y) is estimated without bias (Stein 1981), or nearly so. Where the
    estimate itself chose something, such as a threshold, it is raised by two times the square of
    the largest of d noises, over d, and by half of that square for trend filtering, as measured.
    The estimated difference of two has a standard error of about `2 sigma |x - x'| / d`. Denoisers
    that are no more than half of it worse than the best are not told apart, and are averaged: the
    loss of an average is the average loss minus the variance between its members. The result is
    taken only if its gain over doing nothing exceeds 1 % and two standard errors, and fewer than 8
    values are left alone.

    Parameters
    ----------
    values
        Finite values, one-dimensional.
    facts
        What is public about them.
    """
    array = check_values(values)
    tried = {
        _in_words(method, options): _soberly(
            denoise_array(array, method, facts, options), method, facts
        )
        for method, options in _VARIANTS
        if _applies(method, facts)
    }
    usable = {name: each for name, each in tried.items() if math.isfinite(each.risk)}
    if usable and len(array) >= _FEWEST:
        best = min(usable.values(), key=lambda each: each.risk)
        alike = {
            name: each
            for name, each in usable.items()
            if each.risk - best.risk <= _ALIKE * _doubt(each.values, best.values, facts)
        }
        average = _average(list(alike.values()))
        gain = facts.variance - average.risk
        if gain > max(_CLEARLY * _doubt(average.values, array, facts), _WORTH * facts.variance):
            return Choice(tuple(alike), average, tried)
    return Choice((), Denoised(array, facts.variance, {}), tried)


def _soberly(found: Denoised, method: str, facts: Facts) -> Denoised:
    """Raise the risk of a method that was tuned on the values that it is judged by."""
    d = max(len(found.values), 2)
    log = math.log(d)
    largest = facts.variance * (2 * log if facts.law == "gaussian" else log * log / 2)
    return found._replace(risk=found.risk + _TUNED.get(method, 0.0) * largest / d)


def _in_words(method: str, options: Options) -> str:
    return " ".join([method, *(f"{name}={value}" for name, value in options.items())])


def _applies(method: str, facts: Facts) -> bool:
    if method in _OF_COUNTS:
        return facts.lower == 0
    return facts.edges is not None or not METHODS[method].needs_graph


def _doubt(one: np.ndarray, other: np.ndarray, facts: Facts) -> float:
    """Return the standard error of the difference between the estimated risks of two results."""
    return 2 * facts.sigma * float(np.linalg.norm(one - other)) / len(one)


def _average(alike: list[Denoised]) -> Denoised:
    """Average results, with the risk that the average has."""
    if len(alike) == 1:
        return alike[0]
    values = np.mean([each.values for each in alike], axis=0)
    spread = np.mean([np.mean((each.values - values) ** 2) for each in alike])
    return Denoised(values, float(np.mean([each.risk for each in alike]) - spread), {})
