"""Means of many groups, shrunk toward each other: empirical Bayes with a mixture of scales.

A released mean is the ratio of a noisy centered sum T and a noisy number of rows N. In small groups
that is a poor estimate, and the other groups say more. Inside, all lengths are in half widths of
the bounds, so that offsets from their middle lie in [-1, 1].
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from dpframe.denoising.projection import Denoised, check_values
from dpframe.errors import QueryError

SHARES = np.array([0.0, *(4.0 ** np.arange(-6, 1))])
"""Variances of true means around their center, of which the prior is a mixture, as parts of the
largest that there is: `1 - M^2` around M in [-1, 1]."""

MOST_LAPLACE = 2
"""The most Laplace noises in a number of rows of whose sum the density is used."""

WITHIN = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Variances of single values around the mean of their group, in the same unit."""

_LIKELY = np.append(2.0 ** np.arange(len(SHARES) - 1, 0, -1), 1.0)
_LIKELY = _LIKELY / _LIKELY.sum()  # weights of SHARES in the eyes of one more group
_FEWEST = 20  # groups: fewer say too little about each other
_STEPS = 100  # of EM
_STILL = 1e-3  # a step that moves no weight, nor the center, by more is the last
_FITTED = 5_000  # groups: what more of them say of the prior is not worth the time
_BLOCK = 1_000  # groups: what is computed of so many stays in the cache
_NARROW = 0.01  # least of `1 - M^2`
_RATIO = 1.2  # of one number of rows to the next, in their distribution
_REACH = 1.5  # standard errors by which a mean moves at most (Efron and Morris 1972)
_ALIKE = 4.0  # ratio of squared errors within a tier
_DOUBT = 2.5  # standard errors by which the distances in a tier may be larger than they seem
_PEAKED = 5.0  # variance of the square of Laplace noise of variance 1; normal noise has 2
_CLEAR = 0.9  # part of the squared error of a tier that moving must leave at most
_WORTH = 0.2  # part of all squared error that must be expected to go
_MOST = 0.8  # part of all squared error from which on a group has nothing to learn from others
_LEAST = 1e-300  # stands for a sum of 0


class NoisyRatio(NamedTuple):
    """What means were read off, and the noise in it, the same in all groups."""

    centered: np.ndarray  # T by group: the sum of values, each less the middle of the bounds
    rows: np.ndarray  # N by group
    centered_variance: float  # of the noise in T
    rows_variance: float  # of the noise in N
    covariance: float  # of both
    bounds: tuple[float, float]  # (l, u), what a value can be
    laplace: int = 0  # of how many Laplace noises of one scale that in N is the sum; 0: normal

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

    def noise_at(self, offset: float | np.ndarray) -> np.ndarray:
        """Return the variance of the noise in `T - m N` for a mean of m above the middle."""
        of_both = 2 * offset * self.covariance
        return np.asarray(self.centered_variance - of_both + offset**2 * self.rows_variance)

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
    """A prior for true means: around a center, with one of several variances."""

    center: float
    weights: np.ndarray  # probability of each of `SHARES`
    within: float
    """Variance of single values, one of `WITHIN`: it adds to that of means of few rows."""


class LikelyRows(NamedTuple):
    """What noisy numbers of rows say of the true ones: posterior means of n and of 1 / n."""

    rows: np.ndarray
    inverse: np.ndarray


class ShrunkenMeans(NamedTuple):
    """Shrunken means, and the error of those that were released."""

    denoised: Denoised
    raw_risk: float
    """Expected mean squared error of the released means, in squared units; `nan` if not known."""


class Posterior(NamedTuple):
    """What the prior and the measurements say of each true mean, as an offset from the middle."""

    means: np.ndarray
    variances: np.ndarray
    pulls: np.ndarray  # part of the way to the center that T / n goes
    spreads: np.ndarray  # variance around the center that the prior expects


def shrunken_means(values: object, noisy: NoisyRatio) -> ShrunkenMeans:
    """Move means toward their center, small groups most: posterior means under a fitted prior.

    With T, N the noisy centered sum and number of rows of a group, M the center, and all lengths in
    half widths h of the bounds:

    1. Numbers of rows n come from a mixture of narrow normals around 1, 1.2, 1.44 and so on, its
       weights fitted by EM. n is replaced by its posterior mean, and 1 / n by its own. Noise of one
       or two Laplace noises has its own density there.
    2. `T - M N` has mean `n (theta - M)` and noise of variance `V = VT - 2 M C + M^2 VN`. The prior
       of `theta - M` is a mixture of normals of variances `(1 - M^2) min(S + s / n, 1)`: S is one
       of 0, 4^-6, ..., 1/4, 1, with weights fitted by EM; s, the spread of single values, is the
       likeliest of six; M is fitted along, by least squares. The estimate is the posterior mean.
    3. The risk of the released mean, `E (min(max((n theta + e) / max(n + f, 1), -1), 1) - theta)^2`
       over normal noise e and f, comes from quadrature, as if theta were where the posterior is.
    4. No mean moves by more than 1.5 raw standard errors `sqrt(V) / n` (Efron and Morris 1972), so
       that a group that is unlike all others loses little.
    5. In tiers of groups whose risks are alike within a factor 4, the mean of `(theta - M)^2` is
       estimated without bias from `(T - M N)^2 - V`. A tier moves only where moving still gains
       10 % if that mean is 2.5 standard errors larger, or `1 - M^2`. All groups stay where less
       than 20 % of all squared error is expected to go; so does a group that has above 80 % of it.

    Means that do not move come back as they are: all, with fewer than 20 groups. The risk of those
    that moved is that under the posterior: a group that is not as the prior has it makes it too
    small. `chosen` holds the "center", the "spread" of the prior for large groups, and how many
    "moved". It is not safe for any data: where small groups differ from large ones all alike, and
    noise hides it, they are moved to the wrong place.

    References
    ----------
    B. Efron and C. Morris, "Limiting the risk of Bayes and empirical Bayes estimators, part II",
    JASA 67, 1972. M. Stephens, "False discovery rates: a new deal", Biostatistics 18(2), 2017.

    Examples
    --------
    >>> rows = np.array([400.0] * 20 + [2.0] * 200)
    >>> sums = rows * 0.1 + np.tile([1.0, -1.0], 110)
    >>> raw = sums / rows
    >>> shrunken = shrunken_means(raw, NoisyRatio(sums, rows, 1.0, 1.0, 0.0, (-1.0, 1.0)))
    >>> raw[[0, 20, 21]].round(3).tolist(), shrunken.denoised.values[[0, 20, 21]].round(3).tolist()
    ([0.102, 0.6, -0.4], [0.102, 0.1, 0.1])
    """
    released = check_values(values)
    if not len(released) == len(noisy.centered) == len(noisy.rows):
        raise QueryError("means need a centered sum and a number of rows each.")
    if not noisy.usable:
        return ShrunkenMeans(Denoised(released.copy(), math.nan, {}), math.nan)
    in_widths = noisy.in_half_widths()
    rows = likely_rows(in_widths.rows, in_widths.rows_variance, in_widths.laplace)
    prior = fit_prior(in_widths, rows)
    beliefs = posterior(in_widths, rows, prior)
    risks = raw_risks(in_widths, rows.rows, beliefs)
    raw = np.clip(in_widths.centered / np.maximum(in_widths.rows, 1.0), -1, 1)
    at_center = in_widths.noise_at(prior.center)
    reach = _REACH * np.sqrt(at_center) / rows.rows
    means = np.clip(beliefs.means, raw - reach, raw + reach)
    # the noise is that where the mean is
    more = (1 - beliefs.pulls) / rows.rows**2 * (in_widths.noise_at(beliefs.means) - at_center)
    shrunk = beliefs.variances + more + (beliefs.means - means) ** 2
    moved = _to_move(in_widths, rows.rows, prior.center, beliefs, (risks, shrunk))
    moved &= len(released) >= _FEWEST
    left = np.where(moved, shrunk, risks)
    if left.sum() > (1 - _WORTH) * risks.sum():
        moved, left = np.zeros_like(moved), risks
    h, middle = noisy.half_width, noisy.middle
    spread = math.sqrt(_widest(prior.center) * float(prior.weights @ SHARES))
    estimates = np.clip(middle + h * means, *noisy.bounds)
    shown = np.where(moved, estimates, released)
    chosen = {
        "center": middle + h * prior.center,
        "spread": h * spread,
        "moved": float(np.count_nonzero(shown != released)),  # a mean at a bound may stay there
    }
    factor = h * h / max(len(risks), 1)
    denoised = Denoised(shown, float(left.sum()) * factor, chosen)
    return ShrunkenMeans(denoised, float(risks.sum()) * factor)


def _widest(center: float) -> float:
    """Return the largest variance in [-1, 1] around a mean (Bhatia and Davis 2000)."""
    return max(1 - center**2, _NARROW)


def likely_rows(rows: np.ndarray, variance: float, laplace: int = 0) -> LikelyRows:
    """Return posterior means of numbers of rows of at least 1, under a distribution fitted by EM.

    Laplace noise has its own density: if it were taken as normal, its tails would pass for rows.

    Examples
    --------
    >>> likely_rows(np.array([-3.0, 1, 2, 4, 500] * 9), 4.0).rows[[0, 4]].round().tolist()
    [1.0, 500.0]
    """
    top = max(float(rows.max(initial=1.0)), 1.0) + 3 * math.sqrt(variance)
    centers = _RATIO ** np.arange(math.ceil(math.log(top, _RATIO)) + 1)[:, None]
    spreads = (centers * (_RATIO - 1) / 2) ** 2
    variances = spreads + variance

    def likelihoods(rows: np.ndarray) -> np.ndarray:
        away = np.abs(rows - centers) / np.sqrt(variances)
        misfit = away**2 / 2 + math.log(2 * math.pi) / 2
        if laplace:
            away *= math.sqrt(2 * laplace)
            peaked = away - (laplace - 1) * np.log1p(away) + math.log(2 * laplace) / 2
            misfit = np.where(spreads < variance / 2, peaked, misfit)
        misfit += np.log(variances) / 2
        return np.asarray(np.exp(misfit.min(0) - misfit))

    flat = 1 / len(centers)
    weights, fitted = np.full(len(centers), flat), likelihoods(rows[_some(len(rows))])
    for _ in range(_STEPS):
        shares = weights * (fitted @ (1 / (weights @ fitted)))
        weights = (shares + flat) / (fitted.shape[1] + 1)
    means = np.empty((2, len(rows)))
    for begin in range(0, len(rows), _FITTED):  # blocks, for memory
        some = slice(begin, begin + _FITTED)
        likely = likelihoods(rows[some])
        shares = weights[:, None] * likely / (weights @ likely)
        inside = np.maximum(centers + spreads / variances * (rows[some] - centers), 1.0)
        means[:, some] = (shares * inside).sum(0), (shares / inside).sum(0)
    return LikelyRows(*means)


def _some(groups: int) -> slice:
    return slice(None, None, max(groups // _FITTED, 1))


def fit_prior(noisy: NoisyRatio, rows: LikelyRows) -> ScalePrior:
    """Fit the prior by EM to all `T - M N`, one step for each of M and w."""
    some = _some(len(noisy.rows))
    noisy = noisy._replace(centered=noisy.centered[some], rows=noisy.rows[some])
    rows = LikelyRows(rows.rows[some], rows.inverse[some])
    total = float(np.maximum(noisy.rows.sum(), 1.0))
    center = float(np.clip(noisy.centered.sum() / total, -1, 1))
    prior, best = ScalePrior(center, _LIKELY, 0.0), (-math.inf, ScalePrior(center, _LIKELY, 0.0))
    for within in WITHIN:
        prior = _fit_weights(noisy, rows, prior._replace(within=within))
        spreads = rows.rows**2 * _spreads(rows, within)
        _, densities, logs = _densities(noisy, spreads, prior)
        logs += np.log(prior.weights @ densities)
        likelihood = float(logs.sum() + _LIKELY @ np.log(prior.weights))
        best = max(best, (likelihood, prior), key=lambda fit: fit[0])
    return best[1]


def _fit_weights(noisy: NoisyRatio, rows: LikelyRows, prior: ScalePrior) -> ScalePrior:
    """Fit center and weights for one spread of single values."""
    spreads = rows.rows**2 * _spreads(rows, prior.within)
    for _ in range(_STEPS):
        last = prior
        precisions, densities, _ = _densities(noisy, spreads, prior)
        over = 1 / (prior.weights @ densities)
        shares = prior.weights * (densities @ over)
        weights = (shares + _LIKELY) / (len(rows.rows) + 1)
        precise = prior.weights @ (densities * precisions)
        fits = over * precise * rows.rows  # least squares, T = M n
        center = float(fits @ noisy.centered) / max(float(fits @ rows.rows), _LEAST)
        center = min(max(center, -1.0), 1.0)
        prior = prior._replace(center=center, weights=weights)
        moved = max(np.abs(weights - last.weights).max(), abs(center - last.center))
        if moved < _STILL:
            break
    return prior


def _spreads(rows: LikelyRows, within: float) -> np.ndarray:
    return np.asarray(np.minimum(SHARES[:, None] + within * rows.inverse, 1.0))


def _densities(
    noisy: NoisyRatio, spreads: np.ndarray, prior: ScalePrior
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by share and group precisions and densities of `T - M N`, and logs left out."""
    precisions = 1 / (spreads * _widest(prior.center) + noisy.noise_at(prior.center))
    halves = (noisy.centered - prior.center * noisy.rows) ** 2 / 2
    densities = np.exp((precisions[-1] - precisions) * halves) * np.sqrt(precisions)
    return precisions, densities, -halves * precisions[-1]


def posterior(noisy: NoisyRatio, rows: LikelyRows, prior: ScalePrior) -> Posterior:
    """Return the posterior of the offsets from the middle; means are within the bounds."""
    spreads = _spreads(rows, prior.within)
    precisions, densities, _ = _densities(noisy, rows.rows**2 * spreads, prior)
    spreads *= _widest(prior.center)
    shares = prior.weights[:, None] * densities / (prior.weights @ densities)
    residual = noisy.centered - prior.center * noisy.rows
    parts = spreads * precisions
    means = parts * (rows.rows * residual)
    mean = (shares * means).sum(0)
    part = (shares * parts).sum(0)
    between = (shares * (means - mean) ** 2).sum(0)
    offsets = np.clip(prior.center + mean, -1, 1)
    variances = part * noisy.noise_at(prior.center) + between
    return Posterior(offsets, variances, 1 - part * rows.rows**2, prior.weights @ spreads)


_THREE = ((-math.sqrt(3), 1 / 6), (0.0, 2 / 3), (math.sqrt(3), 1 / 6))  # normal, by quadrature


def raw_risks(noisy: NoisyRatio, rows: np.ndarray, beliefs: Posterior) -> np.ndarray:
    """Return the expected squared error of each released mean, where posteriors put the true one.

    Examples
    --------
    >>> known = Posterior(np.array([0.2]), np.array([0.0]), np.array([0.0]), np.array([0.0]))
    >>> noisy = NoisyRatio(np.array([20.0]), np.array([100.0]), 2.0, 2.0, 0.0, (-1.0, 1.0))
    >>> raw_risks(noisy, np.array([100.0]), known).round(6).tolist()  # (2 + 2 * .2**2) / 100**2
    [0.000208]
    """
    risks = np.zeros(len(rows))
    for begin in range(0, len(rows), _BLOCK):
        some = slice(begin, begin + _BLOCK)
        deviations = np.sqrt(beliefs.variances[some])
        for step, weight in _THREE:
            truth = np.clip(beliefs.means[some] + step * deviations, -1, 1)
            risks[some] += weight * _risk_at(noisy, rows[some], truth)
    return risks


def _risk_at(noisy: NoisyRatio, rows: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return `E (min(max((n theta + e) / max(n + f, 1), -1), 1) - theta)^2` for normal e and f."""
    from scipy import special  # slow to import, and not always needed

    deviation = math.sqrt(noisy.rows_variance)
    slope = noisy.covariance / deviation if deviation else 0.0
    spread = math.sqrt(noisy.centered_variance - slope**2)
    places, weights = _normal_nodes()
    low, high = -1 - truth, 1 - truth
    divisor = np.maximum(rows + deviation * places, 1.0)
    bias, scale = (rows * truth + slope * places) / divisor - truth, spread / divisor
    begin, end = (low - bias) / scale, (high - bias) / scale
    below, above = special.ndtr(begin), special.ndtr(-end)
    first, last = (np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for z in (begin, end))
    inside = (bias**2 + scale**2) * (1 - above - below)
    inside += 2 * bias * scale * (first - last) + scale**2 * (begin * first - end * last)
    return np.asarray(weights @ (low**2 * below + high**2 * above + inside))


@cache
def _normal_nodes() -> tuple[np.ndarray, np.ndarray]:
    places, weights = np.polynomial.hermite_e.hermegauss(15)
    return places[:, None], weights / weights.sum()


def _to_move(
    noisy: NoisyRatio,
    rows: np.ndarray,
    center: float,
    beliefs: Posterior,
    expected: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Say which groups move: none of a tier where it is not clear that this gains.

    Expected are the squared errors of released and of shrunken means.
    """
    noise, noise_there = float(noisy.noise_at(center)), noisy.noise_at(beliefs.means)
    risks, shrunk = expected
    squares = (noisy.centered - center * noisy.rows) ** 2
    moved = np.asarray(risks <= _MOST * risks.sum())
    for tier in _tiers(risks):
        far = _largest_distance(squares[tier], rows[tier], noise, beliefs.spreads[tier])
        pull, variance = beliefs.pulls[tier], noise_there[tier] / rows[tier] ** 2
        worst = pull**2 * min(far, _widest(center)) + (1 - pull) ** 2 * variance
        least = max(float(worst.sum()), float(shrunk[tier].sum()))
        moved[tier] &= least < _CLEAR * risks[tier].sum()
    return moved


def _largest_distance(
    squares: np.ndarray, rows: np.ndarray, noise: float, spreads: np.ndarray
) -> float:
    """Return the largest mean of `(theta - M)^2` that is not far from what a tier says.

    The estimate `sum w (r^2 - V) / sum w n^2`, with r = T - M N, has no bias; weights w are best
    where the prior holds.
    """
    signal = rows**2 * spreads
    weights = rows**2 / (noise + signal) ** 2
    total = float((weights * rows**2).sum())
    square = float((weights * (squares - noise)).sum()) / total
    variances = _PEAKED * noise**2 + 4 * noise * signal + 2 * signal**2
    return max(square, 0.0) + _DOUBT * math.sqrt(float((weights**2 * variances).sum())) / total


def _tiers(risks: np.ndarray) -> Iterator[np.ndarray]:
    """Split groups by their risks, the largest first, so that those in a tier are alike."""
    order = np.argsort(-risks, kind="stable")
    falling = risks[order]
    begin = 0
    while begin < len(order):
        size = int(np.count_nonzero(falling[begin:] >= falling[begin] / _ALIKE))
        yield order[begin : begin + size]
        begin += size
