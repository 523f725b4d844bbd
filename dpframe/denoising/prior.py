"""Discrete priors of true values: fitted to noisy ones by EM, or read off what is given."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.privacy.law import Law

_LEAST = 1e-300  # stands for a likelihood of 0
_LEAST_WEIGHT = 1e-14  # of a point of a fitted prior: EM brings none back from 0
_ALL_AT_ONCE = 1e6  # likelihoods: where there are more, values see near points alone
_LONGEST = 256.0  # step of EM that is accelerated, in plain ones
_ROUNDS = 3  # of EM at least: the first gain little where all weight starts next to 0
_HALVINGS = 60  # of the range of exponents, exp(-60) to exp(60) from end to end


@frozen(slots=True)
class Tuning:
    """Constants of the fit, chosen on five tables of `benchmarks/real_tables.py`.

    Half and twice a value without a remark change errors by less than 2 % there.
    """

    spacing: float = 0.35
    """Of the grid, in standard deviations of the noise."""
    parts: int = 16
    """Bins of the values in a standard deviation: they add 1/3,072 to the variance."""
    farthest: float = 32.0
    """Exponent of the least likelihood that counts, as a share of its peak."""
    gain: float = 0.02
    """Of the log-likelihood: a step of EM that gains less follows the noise."""
    gain_per_value: float = 1e-6
    """The same, for more than 20,000 values."""
    most_steps: int = 500
    """Of EM."""
    work: float = 3e7
    """Likelihoods of all steps."""
    most_points: int = 1 << 20
    """Of a prior that is given."""
    tail: float = 1e-12
    """Probability beyond the points of a prior that is given."""


TUNING = Tuning()


class Prior(NamedTuple):
    """Points in increasing order, and their probabilities."""

    points: np.ndarray
    weights: np.ndarray


@frozen(slots=True)
class ValueNoise:
    """The noise in a value, and the deviation of the continuous law by which likelihoods go."""

    law: Law
    sigma: float
    unit: float
    is_whole: bool

    def log_likelihood(self, distances: np.ndarray) -> np.ndarray:
        """Return the logarithm of the likelihood, up to a constant."""
        return np.asarray(self.law.log_density(distances / self.unit))

    @property
    def reach(self) -> float:
        """The distance from which on likelihoods do not count."""
        return self.unit * self.law.distance(TUNING.farthest)

    @property
    def step(self) -> float:
        """The spacing of the grid."""
        step = TUNING.spacing * self.unit
        return max(1.0, float(round(step))) if self.is_whole else step

    @property
    def width(self) -> float:
        """The width of a bin of values."""
        width = self.unit / TUNING.parts
        return max(1.0, math.floor(width)) if self.is_whole else width

    def draws(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what the noise can be, and how likely."""
        count = math.ceil(self.reach / self.width)
        places = np.arange(-count, count + 1) * self.width
        chances = np.exp(self.log_likelihood(places))
        return places, chances / chances.sum()

    @property
    def mean_size(self) -> float:
        """The mean absolute error."""
        places, chances = self.draws()
        return float(np.abs(places) @ chances)


class GridLikelihoods(NamedTuple):
    """Distinct values, and the places of the points of a grid in the window of each.

    Logs are those of likelihoods, less the one of the best point, and the kernel their
    exponentials.
    """

    counts: np.ndarray
    places: np.ndarray
    peaks: np.ndarray
    logs: np.ndarray
    kernel: np.ndarray

    def likelihoods(self, weights: np.ndarray) -> np.ndarray:
        """Return by value how likely it is, as a share of its best point."""
        sums = np.einsum("vp,vp->v", self.kernel, weights[self.places])
        return np.asarray(np.maximum(sums, _LEAST))

    def gather(self, parts: np.ndarray, points: int) -> np.ndarray:
        """Add up by point what values give to the points that they see."""
        return np.asarray(np.bincount(self.places.ravel(), parts.ravel(), minlength=points))


def see(
    values: np.ndarray, counts: np.ndarray, points: np.ndarray, noise: ValueNoise
) -> GridLikelihoods:
    """Compute likelihoods of points within reach of distinct, rising values, and of the next."""
    everything = len(values) * len(points) <= _ALL_AT_ONCE
    reach = math.inf if everything else noise.reach
    first = np.maximum(np.searchsorted(points, values - reach) - 1, 0)
    last = np.searchsorted(points, values + reach) + 1
    width = min(int((last - first).max()), len(points))
    places = np.minimum(first, len(points) - width)[:, None] + np.arange(width)
    logs = noise.log_likelihood(values[:, None] - points[places])
    peaks = logs.max(axis=1)
    logs -= peaks[:, None]
    return GridLikelihoods(counts, places, peaks, logs, np.exp(logs))


def grid_near(values: np.ndarray, noise: ValueNoise, *, nonnegative: bool) -> np.ndarray:
    """Return the multiples of the step within reach of values; 0 if nothing is below it."""
    step = noise.step
    half = math.ceil(noise.reach / step)
    rows = np.unique(np.rint(values / step))
    near = np.unique(rows[:, None] + np.arange(-half, half + 1))
    first = max(rows[0] - 1, 0) if nonnegative else rows[0] - 1
    near = near[(near >= first) & (near <= max(rows[-1] + 1, first))]
    return np.union1d(near, 0.0) * step if nonnegative else near * step


def fit_prior(
    seen: GridLikelihoods,
    points: np.ndarray,
    *,
    nonnegative: bool,
    mean: float | None = None,
    beside_zero: float = 0.5,
) -> Prior:
    """Return the prior to which EM leads, accelerated by squaring its steps.

    It begins with the weight `beside_zero` on all points but 0, if nothing is below it.

    References
    ----------
    R. Varadhan and C. Roland, "Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm", Scandinavian Journal of Statistics 35(2), 2008.
    """
    n, size = seen.counts.sum(), len(points)

    def step(weights: np.ndarray) -> tuple[np.ndarray, float]:
        likelihoods = seen.likelihoods(weights)
        ratios = (seen.counts / n / likelihoods)[:, None]
        raised = weights * seen.gather(seen.kernel * ratios, size)
        return tilt(raised, points, mean), float(seen.counts @ np.log(likelihoods))

    weights = np.full(size, 1 / size)
    if nonnegative and size > 1:
        weights[:] = beside_zero / (size - 1)
        weights[0] = 1 - beside_zero
    weights = tilt(weights, points, mean)
    least = max(TUNING.gain, TUNING.gain_per_value * n)
    rounds = min(TUNING.most_steps, math.ceil(TUNING.work / seen.kernel.size)) // 3 + 1
    last = -math.inf
    for done in range(rounds):
        first, likelihood = step(weights)
        if likelihood - last < least and done > _ROUNDS:
            break
        last = likelihood
        second, _ = step(first)
        move = first - weights
        turn = second - first - move
        length = math.sqrt((move @ move) / max(turn @ turn, _LEAST))
        length = min(max(length, 1.0), _LONGEST)
        far = np.maximum(weights + 2 * length * move + length**2 * turn, _LEAST_WEIGHT)
        far, reached = step(far / far.sum())
        weights = far if reached >= likelihood else second
    return Prior(points, weights)


def tilt(weights: np.ndarray, points: np.ndarray, mean: float | None) -> np.ndarray:
    """Return weights in proportion to `w exp(t g)`, so that points g have a mean."""
    if mean is None or len(points) == 1:
        return weights
    places = (points - points[0]) / (points[-1] - points[0])
    target = (mean - points[0]) / (points[-1] - points[0])
    logs = np.log(np.maximum(weights, _LEAST_WEIGHT))
    low, high = -float(_HALVINGS), float(_HALVINGS)
    for _ in range(_HALVINGS):
        t = (low + high) / 2
        tilted = logs + t * places
        tilted = np.exp(tilted - tilted.max())
        tilted /= tilted.sum()
        if tilted @ places < target:
            low = t
        else:
            high = t
    return np.asarray(tilted)


def prior_given(prior: Any, values: np.ndarray, noise: ValueNoise) -> Prior:
    """Return a prior that is known, on points where values can be."""
    if hasattr(prior, "to_dict"):  # a series of pandas, which nothing here imports
        prior = prior.to_dict()
    if isinstance(prior, Mapping):
        return _weighted(prior)
    if not all(callable(getattr(prior, name, None)) for name in ("cdf", "sf", "ppf", "std")):
        raise _no_prior(prior)
    try:
        ends = float(prior.ppf(TUNING.tail)), float(prior.ppf(1 - TUNING.tail))
    except TypeError:  # not frozen
        raise _no_prior(prior) from None
    if not ends[0] <= ends[1]:  # parameters out of range
        raise _no_prior(prior)
    reach = noise.reach
    # from the prior to the values, but no farther than noise goes
    low = min(max(min(ends[0], values[0]), values[0] - reach), ends[1])
    high = max(min(max(ends[1], values[-1]), values[-1] + reach), ends[0])
    spread = float(prior.std())
    narrow = spread / 8 if 0 < spread < math.inf else math.inf
    step = min(noise.step, max(narrow, 1.0) if noise.is_whole else narrow)
    step = max(step, (high - low) / TUNING.most_points)
    points = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    edges = np.append(points, points[-1] + step) - step / 2
    # differences of small numbers: cdf below, sf above
    weights = np.maximum(np.diff(prior.cdf(edges)), -np.diff(prior.sf(edges)))
    kept = weights > 0
    return Prior(points[kept], weights[kept] / weights.sum())


def _weighted(prior: Mapping[Any, Any]) -> Prior:
    try:
        points = np.array(list(prior.keys()), dtype=np.float64)
        weights = np.array(list(prior.values()), dtype=np.float64)
    except (TypeError, ValueError):
        raise _no_prior(prior) from None
    usable = np.isfinite(points).all() and np.isfinite(weights).all()
    if not usable or not len(points) or weights.min() < 0 or not weights.any():
        raise _no_prior(prior)
    order = np.argsort(points)
    order = order[weights[order] > 0]
    return Prior(points[order], weights[order] / weights.sum())


def _no_prior(prior: object) -> QueryError:
    rule = "must be a frozen distribution of scipy.stats, or a dict or series of weights by value"
    return QueryError.about("prior", rule, prior, "For instance prior=scipy.stats.poisson(3).")
