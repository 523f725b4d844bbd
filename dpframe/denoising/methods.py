"""Every denoiser under its name, with what it takes and what it needs to know."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpframe.denoising.graphs import tree_wavelets, trend_filter
from dpframe.denoising.posterior import posterior
from dpframe.denoising.projection import (
    Denoised,
    check_values,
    consistent,
    monotone,
    nonnegative,
    whole,
)
from dpframe.denoising.shrinkage import james_stein, soft_threshold
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.privacy.law import Law

DenoiserName: TypeAlias = Literal[
    "auto",
    "posterior",
    "james_stein",
    "soft_threshold",
    "tree_wavelets",
    "trend_filter",
    "nonnegative",
    "monotone",
    "consistent",
    "whole",
]
"""What a column may be denoised with: what is best for it, or one of `METHODS`."""


class Facts(NamedTuple):
    """What is public about values to denoise."""

    law: Law  # of the noise
    individual: float  # deviation of the noise that a value has for itself
    common: float = 0.0  # deviation of the noise that all values share
    nonnegative: bool = False  # whether no truth is below 0
    integer: bool = False  # whether the truth is whole
    edges: np.ndarray | None = None  # pairs of positions that are neighbors; None: not known

    @property
    def sigma(self) -> float:
        """Standard deviation of all the noise in a value."""
        return math.hypot(self.individual, self.common)

    @property
    def variance(self) -> float:
        """Variance of all the noise in a value, infinite where it leaves the range of floats."""
        return self.sigma * self.sigma


Options: TypeAlias = Mapping[str, Any]


@frozen(slots=True)
class Method:
    """A denoiser as it is called for a column: values, deviation of their noise, facts, options.

    One that `drifts` moves along when all values are moved by the same amount. It then knows
    nothing of noise that all values share: it is given the noise of differences, and leaves the
    rest. The result of one that `projects` satisfies a constraint, which nothing after it may
    break.
    """

    denoise: Callable[..., Denoised]
    options: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    facts: tuple[str, ...] = ()
    drifts: bool = False
    projects: bool = False

    @property
    def needs_graph(self) -> bool:
        """Whether it needs to know which values are neighbors."""
        return "edges" in self.facts

    def run(self, values: np.ndarray, sigma: float, facts: Facts, options: Options) -> Denoised:
        """Denoise values with some options."""
        arguments = {name: getattr(facts, name) for name in self.facts}
        return self.denoise(values, sigma, **arguments, **options)


def _posterior(
    values: np.ndarray, sigma: float, *, common: float, nonnegative: bool, **others: Any
) -> Denoised:
    # a truth of 0 stands at the noise that all values share, wherever that is
    return posterior(values, sigma, nonnegative=nonnegative and not common, **others)


_GRAPH = ("edges",)
_PRIOR = frozenset({"total", "prior", "loss"})
_TREES, _TREND = frozenset({"trees", "threshold", "seed"}), frozenset({"order", "penalty"})
_PARENTS, _TOTAL = frozenset({"parents"}), frozenset({"total"})

METHODS: Mapping[str, Method] = {
    "posterior": Method(
        _posterior, _PRIOR, facts=("law", "integer", "nonnegative", "common"), drifts=True
    ),
    "james_stein": Method(james_stein, frozenset({"toward", "positive_part"}), drifts=True),
    "soft_threshold": Method(soft_threshold, frozenset({"threshold"}), facts=("law",)),
    "tree_wavelets": Method(tree_wavelets, _TREES, facts=_GRAPH, drifts=True),
    "trend_filter": Method(trend_filter, _TREND, facts=_GRAPH, drifts=True),
    "nonnegative": Method(nonnegative, projects=True),
    "monotone": Method(monotone, frozenset({"increasing"}), drifts=True, projects=True),
    "consistent": Method(consistent, _PARENTS, _PARENTS, projects=True),
    "whole": Method(lambda values, _, **options: whole(values, **options), _TOTAL, projects=True),
}
"""Denoisers by the name that a release is denoised with."""


def denoise_array(values: object, method: str, facts: Facts, options: Options) -> Denoised:
    """Denoise values by the name of a method.

    Results below the smallest possible truth are raised to it, except those of projections: this
    can only make them better.
    """
    entry = METHODS[method]
    array = check_values(values)
    if entry.needs_graph and facts.edges is None:
        need = "this method needs to know which values are neighbors"
        way_out = 'give graph=, for instance "ordered" where the keys follow each other'
        raise QueryError(f"{need}: {way_out}.", parameter="graph")
    # these say where values are, which the noise that all share hides
    placed = options.get("toward") == "zero" or bool({"prior", "total"} & options.keys())
    if entry.drifts and facts.common and not placed:
        denoised = entry.run(array, facts.individual, facts, options)
        denoised = denoised._replace(risk=denoised.risk + facts.common**2, gain=math.nan)
    else:
        denoised = entry.run(array, facts.sigma, facts._replace(common=0.0), options)
    if facts.nonnegative and not entry.projects:
        return denoised._replace(values=np.maximum(denoised.values, 0.0))
    return denoised


_TUNED = {"tree_wavelets": 2.0, "trend_filter": 0.5}
"""Squares of the largest of n noises by which the risk of a method seems smaller than it is."""

_TEMPERATURE = 4.0
"""Of the weights, in variances of the noise (Leung and Barron 2006)."""

_LEAST_WEIGHT = 0.01
"""A method of less weight is left out."""

_LEAST_ERRORS = 2.0
"""Standard errors by which the estimated gain over nothing must exceed zero."""

_LEAST_GAIN = 0.01
"""Part of the variance of the noise that must be expected to go."""

_FEWEST = 8
"""With fewer values, neighbors are not compared."""

_WITH_NEIGHBORS: tuple[tuple[str, Options], ...] = (
    ("posterior", {"loss": "squared"}),
    ("tree_wavelets", {}),
    ("trend_filter", {"order": 0}),
    ("trend_filter", {"order": 1}),
)


class Choice(NamedTuple):
    """What was chosen, and what it was compared with."""

    methods: tuple[str, ...]  # whose results are averaged; none: nothing is expected to help
    denoised: Denoised  # the values as they are where nothing is expected to help
    tried: dict[str, Denoised]  # all results, by method and options in words

    @property
    def name(self) -> str:
        """The method chosen, "average" for several, "none" where the values are left alone."""
        if len(self.methods) > 1:
            return "average"
        return self.methods[0] if self.methods else "none"


def choose(values: object, facts: Facts) -> Choice:
    """Denoise by the posterior median, or, with neighbors, by an average of what applies to them.

    The risk of a denoiser x(y) is estimated without bias (Stein 1981), or nearly so. Where the
    estimate itself chose a threshold, it is raised by two times the square of the largest of d
    noises, over d, and by half of that square for trend filtering, as measured. Results have
    weights in proportion to `exp(-d R / (4 sigma^2))` for estimated risks R of d values (Leung and
    Barron 2006); those below 1 % are left out. The loss of an average is the average loss less the
    variance between its members. It is taken only for 8 values or more, and if its gain over doing
    nothing exceeds 1 % and two standard errors, `2 sigma |x - y| / d` each. Otherwise values below
    0 are raised to it where the truth cannot be negative, which makes none of them worse.

    References
    ----------
    G. Leung and A. R. Barron, "Information theory and mixing least-squares regressions", IEEE
    Transactions on Information Theory 52(8), 2006.
    """
    array = check_values(values)
    if facts.edges is None:
        return posterior_choice(array, facts, {})
    tried = {
        " ".join([method, *(f"{name}={value}" for name, value in options.items())]): (
            _with_tuning_risk(array, method, facts, options)
        )
        for method, options in _WITH_NEIGHBORS
    }
    usable = {name: result for name, result in tried.items() if math.isfinite(result.risk)}
    if usable and len(array) >= _FEWEST:
        weights = _weights(usable, facts)
        average = _average(usable, weights)
        gain = facts.variance - average.risk
        # the standard error of the difference between their estimated risks
        error = 2 * facts.sigma * float(np.linalg.norm(average.values - array)) / len(array)
        if gain > max(_LEAST_ERRORS * error, _LEAST_GAIN * facts.variance):
            return Choice(tuple(weights), average, tried)
    return _as_released(Denoised(array, math.nan, {}), array, facts, tried)


def posterior_choice(values: np.ndarray, facts: Facts, options: Options) -> Choice:
    """Return what the posterior says, or that it leaves values as they are."""
    denoised = denoise_array(values, "posterior", facts, options)
    if denoised.chosen:
        return Choice(("posterior",), denoised, {})
    return _as_released(denoised, values, facts, {"posterior": denoised})


def _as_released(
    denoised: Denoised, values: np.ndarray, facts: Facts, tried: dict[str, Denoised]
) -> Choice:
    if facts.nonnegative and (values < 0).any():
        raised = denoised._replace(values=np.maximum(values, 0.0))
        return Choice(("nonnegative",), raised, tried)
    return Choice((), Denoised(values, facts.variance, {}, 0.0), tried)


def _with_tuning_risk(values: np.ndarray, method: str, facts: Facts, options: Options) -> Denoised:
    """Denoise, and raise the risk if the method was tuned on the values that it is judged by."""
    denoised = denoise_array(values, method, facts, options)
    d = max(len(denoised.values), 2)
    largest = facts.variance * facts.law.distance(math.log(d)) ** 2
    return denoised._replace(risk=denoised.risk + _TUNED.get(method, 0.0) * largest / d)


def _weights(usable: dict[str, Denoised], facts: Facts) -> dict[str, float]:
    risks = np.array([result.risk for result in usable.values()]) / facts.variance
    n = len(next(iter(usable.values())).values)
    # relative to the least risk: the largest weight is 1, and none overflows
    weights = np.exp((risks.min() - risks) * n / _TEMPERATURE)
    weights = np.where(weights >= _LEAST_WEIGHT * weights.sum(), weights, 0.0)
    kept = zip(usable, (weights / weights.sum()).tolist(), strict=True)
    return {name: weight for name, weight in kept if weight}


def _average(usable: dict[str, Denoised], weights: dict[str, float]) -> Denoised:
    if len(weights) == 1:
        return usable[next(iter(weights))]
    values = sum(weight * usable[name].values for name, weight in weights.items())
    parts = [
        weight * (usable[name].risk - float(np.mean((usable[name].values - values) ** 2)))
        for name, weight in weights.items()
    ]
    chosen = {f"{name}: weight": weight for name, weight in weights.items()}
    return Denoised(np.asarray(values), sum(parts), chosen)
