"""Means of many groups, shrunk toward each other: empirical Bayes with a mixture of scales.

A released mean is the ratio of a noisy centered sum T and a noisy number of rows N. In small groups
that is a poor estimate, and the other groups say more. Inside, all lengths are in half widths of
the bounds, so that offsets from their middle lie in [-1, 1].
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dpframe.denoising.base import Denoised, check_values
from dpframe.errors import QueryError

SCALES = np.array([0.0, *(2.0 ** np.arange(-8, 1))])
"""Deviations of true means from their center, of which the prior is a mixture."""

_FEWEST = 20  # groups: fewer say too little about each other
_STEPS = 60  # of EM
_STILL = 1e-4  # a step that moves no weight, nor the center, by more is the last
_REACH = 1.5  # standard errors by which a mean moves at most (Efron and Morris 1972)
_ALIKE = 4.0  # ratio of squared errors within a tier
_LOSING = 0.5  # standard errors below 0 at which the estimated gain of a tier keeps it as it is
_WORTH = 0.2  # part of all squared error that must be expected to go
_LEAST = 1e-300  # stands for a sum of 0, of groups without rows
_AT_CENTER = 1e-9  # half widths
_MOST = 0.8  # part of all squared error from which on a group has nothing to learn from others


class NoisyRatio(NamedTuple):
    """What means were read off, and the noise in it.

    Parameters
    ----------
    centered
        T by group: the noisy sum of values, each less the middle of the bounds.
    rows
        N by group: the noisy number of rows.
    centered_variance, rows_variance, covariance
        Of the noise in T and N, the same in all groups.
    bounds
        `(l, u)`, what a value can be.
    """

    centered: np.ndarray
    rows: np.ndarray
    centered_variance: float
    rows_variance: float
    covariance: float
    bounds: tuple[float, float]

    @property
    def half_width(self) -> float:
        """Half of `u - l`."""
        return self.bounds[1] / 2 - self.bounds[0] / 2

    @property
    def middle(self) -> float:
        """Middle of the bounds."""
        return self.bounds[0] / 2 + self.bounds[1] / 2

    def in_half_widths(self) -> "NoisyRatio":
        """Return the same with sums in half widths."""
        h = self.half_width
        return self._replace(
            centered=self.centered / h,
            centered_variance=self.centered_variance / h / h,
            covariance=self.covariance / h,
            bounds=(-1.0, 1.0),
        )

    def noise_at(self, offset: float) -> float:
        """Return the variance of the noise in `T - m N` for a mean of m above the middle."""
        of_both = 2 * offset * self.covariance
        return self.centered_variance - of_both + offset**2 * self.rows_variance

    @property
    def usable(self) -> bool:
        """Whether there is noise in T whatever the mean, and all is in the range of floats."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(self.centered / (self.half_width or 1)).all()
            finite &= np.isfinite(self.rows).all()
        rows = self.rows_variance
        least = self.centered_variance - (self.covariance**2 / rows if rows else 0.0)
        return bool(finite) and self.half_width > 0 and 0 < least < math.inf


class ScalePrior(NamedTuple):
    """A prior for true means: normal around a center, with one of several deviations."""

    center: float
    weights: np.ndarray
    """Probability of each of `SCALES`."""


class ShrunkenMeans(NamedTuple):
    """Shrunken means, and the error of those that were released."""

    denoised: Denoised
    raw_risk: float
    """Expected mean squared error of the released means, in squared units; `nan` if not known."""


class Posterior(NamedTuple):
    """What the prior and the measurements say of each true mean, as an offset from the middle."""

    means: np.ndarray
    variances: np.ndarray


class _Judged(NamedTuple):
    """Raw and shrunken means, and the squared error that Stein's estimate says is saved."""

    raw: np.ndarray
    shrunk: np.ndarray
    squared_error: np.ndarray  # of the raw mean
    gain: np.ndarray
    variance: np.ndarray  # of the gain


def shrunken_means(values: object, noisy: NoisyRatio) -> ShrunkenMeans:
    """Move means toward their center, small groups most: posterior means under a fitted prior.

    With T, N the noisy centered sum and number of rows of a group, M the center and h half the
    width of the bounds:

    1. The number of rows is taken as `n = N + s f(N / s) / F(N / s)`, s the standard deviation of
       the noise in N and f, F density and distribution of a standard normal: its posterior mean
       where all `n >= 0` are alike. It is above 0, and N where N is large.
    2. `T - M N` has mean `n (theta - M)` and noise of variance `V = VT - 2 M C + M^2 VN`. The prior
       of `theta - M` is a mixture of normals of deviations `0, h/256, h/128, ..., h`, its weights
       fitted by EM with one more group that is spread evenly; M is fitted along, by least squares.
       The estimate is the posterior mean of theta.
    3. Nothing moves by more than 1.5 of its raw standard errors `sqrt(V) / n` (Efron and Morris
       1972). In tiers of groups whose errors are alike within a factor 2, all stay where Stein's
       estimate of the gain is below -1/2 of its own deviation; all groups stay where it is below
       20 % of all squared error; and a group that has above 80 % of all squared error stays.

    Parameters
    ----------
    values
        The released means, shape (n,). Those that do not move come back as they are.
    noisy
        What they were read off.

    Returns
    -------
    ShrunkenMeans
        Values within the bounds; with fewer than 20 groups, all as they are. Both risks are the
        mean of `Var(theta) + (E theta - x)^2` under the posterior, for values x: a single group
        that is not as the prior has it makes them too small. `chosen` holds the "center", the
        "spread", which is the standard deviation of the prior, and how many groups were "moved".

    Raises
    ------
    QueryError
        If values are not finite, or sums and numbers of rows are not as many.

    Notes
    -----
    It is not safe for any data: where small groups differ from large ones all alike, they are moved
    to the wrong place, and nothing that is released can tell.

    References
    ----------
    B. Efron and C. Morris, "Limiting the risk of Bayes and empirical Bayes estimators, part II",
    JASA 67, 1972.
    M. Stephens, "False discovery rates: a new deal", Biostatistics 18(2), 2017 (mixtures of
    scales).

    Examples
    --------
    >>> rows = np.array([400.0] * 20 + [2.0] * 20)
    >>> sums = rows * 0.1 + np.tile([1.0, -1.0], 20)
    >>> raw = sums / rows
    >>> made = shrunken_means(raw, NoisyRatio(sums, rows, 1.0, 1.0, 0.0, (-1.0, 1.0)))
    >>> raw[[0, 20, 21]].round(3).tolist(), made.denoised.values[[0, 20, 21]].round(3).tolist()
    ([0.102, 0.6, -0.4], [0.1, 0.103, 0.097])
    """
    released = check_values(values)
    if not len(released) == len(noisy.centered) == len(noisy.rows):
        raise QueryError("means need a centered sum and a number of rows each.")
    if not noisy.usable:
        return ShrunkenMeans(Denoised(released.copy(), math.nan, {}), math.nan)
    own = noisy.in_half_widths()
    rows = expected_rows(own.rows, math.sqrt(own.rows_variance))
    prior = fit_prior(own, rows)
    known = posterior(own, rows, prior)
    found = _judge_pull(own, rows, prior.center, known.means)
    moved = _to_move(found) if len(released) >= _FEWEST else np.zeros(len(released), np.bool_)
    h, middle = noisy.half_width, noisy.middle
    chosen = {
        "center": middle + h * prior.center,
        "spread": h * math.sqrt(float(prior.weights @ SCALES**2)),
        "moved": float(np.count_nonzero(moved)),
    }
    estimates = np.clip(middle + h * found.shrunk, *noisy.bounds)
    risk = _risk(known, np.where(moved, found.shrunk, found.raw)) * h * h
    made = Denoised(np.where(moved, estimates, released), risk, chosen)
    return ShrunkenMeans(made, _risk(known, found.raw) * h * h)


def expected_rows(rows: np.ndarray, deviation: float) -> np.ndarray:
    """Return the posterior mean of numbers of rows that are not negative, under a flat prior."""
    from scipy import special  # slow to import, and not always needed

    if deviation == 0:
        return np.asarray(np.maximum(rows, 0.0))
    z = np.maximum(rows / deviation, -1e9)  # from there on it is 0
    ratio = math.sqrt(2 / math.pi) / special.erfcx(-z / math.sqrt(2))  # f / F, without overflow
    return np.asarray(np.maximum(deviation * (z + ratio), 0.0))


def fit_prior(noisy: NoisyRatio, rows: np.ndarray) -> ScalePrior:
    """Fit the prior by EM: it raises the likelihood of all `T - M N`, one step for each of M and w.

    Parameters
    ----------
    noisy
        Sums in half widths.
    rows
        Expected numbers of rows.
    """
    flat = 1 / len(SCALES)
    total = float(np.maximum(noisy.rows.sum(), 1.0))
    center = float(np.clip(noisy.centered.sum() / total, -1, 1))
    prior = ScalePrior(center, np.full(len(SCALES), flat))
    for _ in range(_STEPS):
        last = prior
        variances, shares = _shares(noisy, rows, prior)
        weights = (shares.sum(0) + flat) / (len(rows) + 1)
        prior = ScalePrior(_center(noisy, rows, (shares / variances).sum(1)), weights)
        moved = max(np.abs(weights - last.weights).max(), abs(prior.center - last.center))
        if moved < _STILL:
            break
    return prior


def _center(noisy: NoisyRatio, rows: np.ndarray, precisions: np.ndarray) -> float:
    """Return the offset M that fits `T = M n` best, by weighted least squares."""
    weights = precisions * rows
    found = (weights * noisy.centered).sum() / max(float((weights * rows).sum()), _LEAST)
    return float(np.clip(found, -1, 1))


def _shares(
    noisy: NoisyRatio, rows: np.ndarray, prior: ScalePrior
) -> tuple[np.ndarray, np.ndarray]:
    """Return by group and scale the variance of `T - M N`, and the posterior of the scale."""
    residual = noisy.centered - prior.center * noisy.rows
    variances = noisy.noise_at(prior.center) + np.square(np.outer(rows, SCALES))
    exponents = np.log(prior.weights) - (residual[:, None] ** 2 / variances + np.log(variances)) / 2
    likelihoods = np.exp(exponents - exponents.max(1, keepdims=True))
    return variances, likelihoods / likelihoods.sum(1, keepdims=True)


def posterior(noisy: NoisyRatio, rows: np.ndarray, prior: ScalePrior) -> Posterior:
    """Return the posterior of the offsets from the middle, before any limits."""
    variances, shares = _shares(noisy, rows, prior)
    residual = noisy.centered - prior.center * noisy.rows
    parts = SCALES**2 / variances
    means = parts * (rows * residual)[:, None]
    mean = (shares * means).sum(1)
    within = (shares * parts).sum(1) * noisy.noise_at(prior.center)
    between = (shares * (means - mean[:, None]) ** 2).sum(1)
    return Posterior(prior.center + mean, within + between)


def _risk(known: Posterior, values: np.ndarray) -> float:
    """Return the expected mean squared error of values."""
    return float(np.mean(known.variances + (known.means - values) ** 2)) if len(values) else 0.0


def _judge_pull(noisy: NoisyRatio, rows: np.ndarray, center: float, means: np.ndarray) -> _Judged:
    """Shrink toward the posterior means, within limits, and estimate what it gains.

    With b the part of the way to the center that a mean goes, and s its standard error, Stein's
    estimate of the gain is `2 b s^2 - (moved)^2`, as if b were given.
    """
    raw = np.clip(noisy.centered / np.maximum(noisy.rows, 1.0), -1, 1)
    error = math.sqrt(noisy.noise_at(center)) / np.maximum(rows, 1.0)
    reach = _REACH * error
    shrunk = np.clip(np.clip(means, raw - reach, raw + reach), -1, 1)
    squares = np.minimum(error**2, 1.0)
    far = raw - center
    way = np.divide(raw - shrunk, far, out=np.ones_like(far), where=np.abs(far) > _AT_CENTER)
    way = np.clip(way, 0, 1)
    gain = 2 * way * squares - (shrunk - raw) ** 2
    beyond = np.maximum(far**2 - squares, 0)
    variance = way**4 * (2 * squares**2 + 4 * squares * beyond)
    return _Judged(raw, shrunk, squares, gain, variance)


def _to_move(found: _Judged) -> np.ndarray:
    """Say which groups move: none of a tier that loses, or where there is little to gain."""
    errors = found.squared_error
    moved = np.asarray(errors <= _MOST * errors.sum())
    if found.gain.sum() < _WORTH * errors.sum():
        return np.zeros_like(moved)
    for tier in _tiers(errors):
        if found.gain[tier].sum() <= -_LOSING * math.sqrt(found.variance[tier].sum()):
            moved[tier] = False
    return moved


def _tiers(squared_errors: np.ndarray) -> Iterator[np.ndarray]:
    """Split groups by their errors, the largest first, so that those in a tier are alike."""
    order = np.argsort(-squared_errors, kind="stable")
    falling = squared_errors[order]
    begin = 0
    while begin < len(order):
        size = int(np.count_nonzero(falling[begin:] >= falling[begin] / _ALIKE))
        yield order[begin : begin + size]
        begin += size
