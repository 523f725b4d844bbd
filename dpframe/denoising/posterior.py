"""Posterior medians and means of true values, under a discrete prior: fitted by EM, or given."""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, assert_never, get_args

import numpy as np

from dpframe.denoising.projection import (
    Denoised,
    check_amount,
    check_law,
    check_sigma,
    check_values,
    noise_unit,
)
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN

Loss: TypeAlias = Literal["absolute", "squared"]
"""The error that estimates keep small: medians the absolute, means the squared."""

# Found on 48 synthetic and real tables of 20 values or more, at four scales of two laws: none that
# has 60 loses 1 %; with .85 and .91, some lose 4 %, and gains are as expected in 89 %, not 92 %
_CLEAR = 0.8  # part of the variance of the noise that may be left
_CLEAR_SIZE = 0.88  # and of its mean size
_LEARNED = 1.5  # variances of the noise that a value costs which makes its own prior
_LEARNED_SIZE = 3.0  # the same in the square of its mean error
_SEEN = 5.0  # log-likelihood by which a prior must exceed "all are zero"; at 2.5, noise does
_PROBE = 0.25  # deviations of the noise by which values move, to see how estimates do
_PROBED = 900  # values that move, if three times each
_MOST_PROBES = 3  # fits of the prior beside the first
# With fewer, zeros for values that gain less than _SEEN err more than normal noise: n z^2 / 2 < 5
# at z = sqrt(2 / pi)
_FEWEST = 16

_HALF = 0.5 - 1e-12  # sums of shares are rounded
_LEAST = 1e-300  # stands for 0
_NARROW = 0.6  # deviations of rounded normal noise that are not like a normal density at integers
_MOST_BINS = 1 << 13  # distinct values: more are fitted in pieces, to save memory
_RESOLVED = 2.0**45  # deviations of the noise: from there on, float64 places no value to 1/256
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

    spacing: float = 0.35  # of the grid, in standard deviations of the noise
    parts: int = 16  # bins of the values in a standard deviation: they add 1/3,072 to the variance
    farthest: float = 32.0  # exponent of the least likelihood that counts, as a share of its peak
    gain: float = 0.02  # of the log-likelihood: a step of EM that gains less follows the noise
    gain_per_value: float = 1e-6  # the same, for more than 20,000 values
    most_steps: int = 500  # of EM
    work: float = 3e7  # likelihoods of all steps
    most_points: int = 1 << 20  # of a prior that is given
    tail: float = 1e-12  # probability beyond the points of a prior that is given


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
        # where the long step loses likelihood, the two plain ones never do
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


class _Fit(NamedTuple):
    """Estimates of distinct values, and sums of errors expected of all: squared, and absolute."""

    estimates: np.ndarray
    of_estimates: np.ndarray
    of_released: np.ndarray


@np.errstate(over="ignore", under="ignore")
def posterior(
    values: object,
    sigma: float,
    *,
    law: Law = GAUSSIAN,
    nonnegative: bool = True,
    integer: bool = True,
    total: float | None = None,
    prior: object = None,
    loss: Loss = "absolute",
) -> Denoised:
    """Return posterior medians, or means, of the true values.

    With p the law of the noise, independent and of deviation sigma, and w_j the prior probability
    of the point g_j of a grid, the values y_i have the log-likelihood `sum_i log f_i`, `f_i = sum_j
    w_j p(y_i - g_j)`, which EM raises. Given what was released, a true value is g_j with
    probability `p_ij = w_j p(y_i - g_j) / f_i`.

    Parameters
    ----------
    values, sigma, law, nonnegative
        The noisy values, their noise, and whether no true value is below 0.
    integer
        Whether the true values are whole. Medians are then whole.
    total
        Sum of the true values, if it is public: weights become `w_j exp(t g_j)`, with the mean
        `total / n`.
    prior
        The prior, if it is known: a frozen distribution of scipy.stats, such as
        `scipy.stats.poisson(3)`, or weights by value: a mapping, or a series such as the
        `value_counts()` of an earlier table. `None`: fitted to the values.
    loss
        "absolute" for medians, "squared" for means.

    Returns
    -------
    Denoised
        `risk` is `(sum_ij p_ij (g_j - x_i)^2 + 1.5 sigma^2 sum_i k_i) / n` for estimates x_i, with
        k_i the part of its own prior that a value makes: in proportion to `sum_j p_ij^2 / sum_k
        p_kj` without points 0, with the mean by which estimates move with their values if the prior
        is fitted anew; 0 for a prior that is given. `gain` goes by absolute errors `((sum_j p_ij
        |g_j - x_i|)^2 + 3 k_i E|noise|^2)^(1/2)`. `chosen` holds the share of "zeros".

        Under a fitted prior, all become 0 unless the log-likelihood is 5 above that of "all are 0".
        Where the risk is above .8 sigma^2, the absolute error above .88 of that of the noise, or
        there are fewer than 16 values, values stay as they are, but for those below 0, and `chosen`
        is empty.

    References
    ----------
    J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of
    infinitely many incidental parameters", Annals of Mathematical Statistics 27(4), 1956.
    B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
    Theorem 10 (means under a Gaussian prior).

    Examples
    --------
    >>> values = [-6, 4, 1, -2, 97, 3, 0, -3, 5, -1, 2, -4, 1, 93, -2, 3]
    >>> posterior(values, 4.0).values[:6].tolist()
    [0.0, 0.0, 0.0, 0.0, 95.0, 0.0]
    >>> posterior([2, 7], 2.0, prior={0: 0.9, 5: 0.1}).values.tolist()
    [0.0, 5.0]
    """
    y, deviation, law = check_values(values), check_sigma(sigma), check_law(law)
    amount = None if total is None else check_amount("total", total)
    if not isinstance(loss, str) or loss not in get_args(Loss):
        raise QueryError.about("loss", 'must be "absolute" or "squared"', loss)
    unit = noise_unit(y, deviation, law, integer=integer)
    is_whole = integer and bool((y == np.rint(y)).all())
    noise = ValueNoise(law, deviation, unit, is_whole)
    near = np.abs(y) < _RESOLVED * unit
    binned = np.floor(y[near] / noise.width + 0.5) * noise.width
    distinct, inverse, counts = np.unique(binned, return_inverse=True, return_counts=True)
    shown = np.maximum(y, 0.0) if nonnegative else y.copy()
    narrow = is_whole and law is GAUSSIAN and deviation < _NARROW
    if not near.any() or (prior is None and (narrow or len(y) < _FEWEST)):
        return Denoised(shown, deviation**2, {}, 0.0)
    public_prior = None if prior is None else prior_given(prior, distinct, noise)
    pieces = np.array_split(np.arange(len(distinct)), math.ceil(len(distinct) / _MOST_BINS))
    mean = None if amount is None or len(pieces) > 1 else amount / len(y)
    beside_zero = 0.5
    if loss == "squared":
        # EM leaves some weight where it begins, next to 0, and means of all values add it up
        beside_zero = min(beside_zero, _FEWEST / len(y))
    facts = _Facts(noise, nonnegative, public_prior, mean, loss, beside_zero)
    fits = [_fit(distinct[piece], counts[piece], facts) for piece in pieces]
    n, size = len(inverse), noise.mean_size
    risk, absolute = np.sum([fit.of_estimates for fit in fits], axis=0) / n
    doubtful = risk > _CLEAR * deviation**2 or absolute > _CLEAR_SIZE * size
    chosen = {}
    if public_prior is None and doubtful:
        risk, absolute = np.sum([fit.of_released for fit in fits], axis=0) / n
    else:
        shown[near] = np.concatenate([fit.estimates for fit in fits])[inverse]
        chosen["zeros"] = float(np.mean(shown == 0))
    return Denoised(shown, float(risk), chosen, 1 - float(absolute) / size)


class _Facts(NamedTuple):
    """What is known of values, and wanted."""

    noise: ValueNoise
    nonnegative: bool
    prior: Prior | None
    mean: float | None
    loss: Loss
    beside_zero: float

    def fit_prior(self, seen: GridLikelihoods, points: np.ndarray) -> Prior:
        """Return the prior of values, if it is not known."""
        return fit_prior(
            seen, points, nonnegative=self.nonnegative, mean=self.mean, beside_zero=self.beside_zero
        )


def _fit(values: np.ndarray, counts: np.ndarray, facts: _Facts) -> _Fit:
    noise, nonnegative, public_prior, mean, loss, _ = facts
    if public_prior is None:
        points = grid_near(values, noise, nonnegative=nonnegative)
        seen = see(values, counts, points, noise)
        prior = facts.fit_prior(seen, points)
        if nonnegative and not _is_clear(values, seen, prior, noise):
            prior = Prior(np.zeros(1), np.ones(1))
            seen = see(values, counts, prior.points, noise)
    else:
        prior = Prior(public_prior.points, tilt(public_prior.weights, public_prior.points, mean))
        seen = see(values, counts, prior.points, noise)
    shares, around = _shares(seen, prior)
    estimates = _estimates(shares, around, loss)
    parts = np.zeros(len(values))
    if public_prior is None:
        parts = _own_parts(values, seen, (shares, around), facts, prior.points)
    away = np.abs(around - estimates[:, None])
    squares = (shares * away**2).sum(axis=1) + _LEARNED * parts * noise.sigma**2
    learned = np.sqrt(_LEARNED_SIZE * parts) * noise.mean_size
    absolute = np.hypot((shares * away).sum(axis=1), learned)
    expected = np.array([counts @ squares, counts @ absolute])
    released = _errors_of_released(prior, noise, counts.sum(), nonnegative=nonnegative)
    return _Fit(estimates, expected, released)


def _shares(seen: GridLikelihoods, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    """Return by value the probabilities of the points in its window, and these points."""
    logs = seen.logs + np.log(np.maximum(prior.weights, _LEAST))[seen.places]
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares, prior.points[seen.places]


def _own_parts(
    values: np.ndarray,
    seen: GridLikelihoods,
    windows: tuple[np.ndarray, np.ndarray],
    facts: _Facts,
    points: np.ndarray,
) -> np.ndarray:
    """Return which part of its own prior each value makes.

    Values move up or down by chance, and a prior is fitted again. With signs s_i and means x'_i of
    the values as they were, the mean part is `sum_i s_i (x'_i - x_i)` over the sum of all moves.

    References
    ----------
    S. Ramani, T. Blu and M. Unser, "Monte-Carlo SURE", IEEE Transactions on Image Processing 17(9),
    2008.
    """
    noise, counts, (shares, around) = facts.noise, seen.counts, windows
    if len(points) == 1:
        return np.zeros(len(values))
    n = int(counts.sum())
    step = max(_PROBE * noise.unit, noise.step / 2)
    ends = np.concatenate([values - step, values + step])
    order = np.argsort(ends, kind="stable")
    rng = np.random.default_rng(0)  # no noise that protects: the same in every run
    probes = min(math.ceil(_PROBED / n), _MOST_PROBES)
    before = _estimates(shares, around, "squared")
    moved = 0.0
    for _ in range(probes):
        up = rng.binomial(counts, 0.5)
        parts = np.concatenate([counts - up, up])[order]
        some = parts > 0
        near = see(ends[order][some], parts[some], points, noise)
        again = facts.fit_prior(near, points)
        after = _estimates(*_shares(seen, again), "squared")
        moved += float((2 * up - counts) @ (after - before))
    masses = seen.gather(counts[:, None] * shares, len(points))[seen.places]
    free = around > points[0] if facts.nonnegative else True  # 0 does not follow its values
    influence = (shares**2 * free / np.maximum(masses, _LEAST)).sum(axis=1)
    total = max(float(counts @ influence), _LEAST)
    return np.asarray(influence * max(moved / (probes * step), 0.0) / total)


def _is_clear(values: np.ndarray, seen: GridLikelihoods, prior: Prior, noise: ValueNoise) -> bool:
    """Whether a prior says more of the values than that all are 0."""
    logs = seen.peaks + np.log(seen.likelihoods(prior.weights))
    return bool(seen.counts @ (logs - noise.log_likelihood(values)) >= _SEEN)


def _estimates(shares: np.ndarray, around: np.ndarray, loss: Loss) -> np.ndarray:
    match loss:
        case "squared":
            return np.asarray((shares * around).sum(axis=1))
        case "absolute":
            below = np.cumsum(shares, axis=1) < _HALF
            places = np.minimum(below.sum(axis=1), around.shape[1] - 1)
            return np.asarray(around[np.arange(len(around)), places])
        case _:
            assert_never(loss)


def _errors_of_released(
    prior: Prior, noise: ValueNoise, n: int, *, nonnegative: bool
) -> np.ndarray:
    """Return errors of n values, raised to 0 if nothing is below it."""
    places, chances = noise.draws()
    errors = np.array([noise.sigma**2, noise.mean_size])
    if nonnegative:
        near = prior.points < noise.reach
        kept = np.maximum(places, -prior.points[near, None])
        gained = errors - np.stack([kept**2 @ chances, np.abs(kept) @ chances], axis=1)
        errors = errors - prior.weights[near] @ gained
    return np.asarray(n * errors)
