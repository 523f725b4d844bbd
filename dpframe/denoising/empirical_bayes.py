"""Nonparametric empirical Bayes: posterior means under the maximum-likelihood prior.

Inside, distances are in units from the origin of a regular grid: standard deviations of the noise,
or sqrt(2) scales of a Laplace law, the same but on integers. A row of the histogram of the values
is one step of the grid, in `parts` bins. Then one small table, the kernel, holds all likelihoods.
Only points of the grid within reach of a value are stored.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dpframe.denoising.base import Denoised, check_law, check_sigma, check_values, noise_unit
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_float
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN

_SPACING = 0.35  # of the grid: finer grids, near the smallest truth or everywhere, gain nothing
_COARSE = 0.5  # on coarser grids points cannot follow the values, and risks seem smaller than truly
_PARTS = 16  # bins to a standard deviation: they add 1/3,072 to the variance of the noise

# Farther apart, a likelihood is below exp(-32) of its peak. The prior of largest likelihood gives
# every value at least 1/n of the density at the peak, so what is left out is below n exp(-32) of a
# posterior.
_FARTHEST = 32.0
# How far below the smallest truth a value counts as it is, where the noise is not memoryless.
# Gaussian noise goes farther once in 3,000,000 values.
_BELOW = 5.0
_FAR_BELOW = 30.0  # the same for posterior means: no value is, and nothing overflows
_RESOLVED = 2.0**45  # from here on, float64 places a value to no better than 1/256

_GAIN = 0.02  # in the log-likelihood of all values: a step that gains less follows the noise
_GAIN_PER_VALUE = 1e-6  # the same, where there are more than 20,000 values
_MOST_STEPS = 300  # of EM
_WORK = 1e8  # likelihoods of all steps
_SPREAD = 1 << 15  # steps of the grid with values: more are denoised in pieces, to save memory
_FEW_STEPS = 10  # in pieces: values so far apart share little

_LEARNED, _LEARNED_SHARPLY = 2.0, 1.0  # the factor a of `risk`: see Notes

_ROWS = 1 << 14  # values at a time: bounds the memory
_PRODUCT = 1 << 18  # multiplications in a product of matrices: threads slow larger ones down
_EXACT = 32  # up to so many values the trace is taken value by value
_PROBED = 1024  # random signs in all where values are many, at least one for every value
_LEAST = 1e-300  # stands for a likelihood of 0, of bins without values


class PriorGrid(NamedTuple):
    """Where truths can be, and the noise around them."""

    law: Law
    step: float
    """Spacing of the points, in units."""
    bounded: bool
    """Whether the origin is the smallest truth."""


class Prior(NamedTuple):
    """A discrete prior."""

    points: np.ndarray
    """Points in increasing order, in units from the origin."""
    weights: np.ndarray
    """Their probabilities."""
    steps: int
    """Steps of EM that led to it."""


class _Bins(NamedTuple):
    """The histogram of the values, and the part of the grid that it sees."""

    counts: np.ndarray  # values by row and part
    flat: np.ndarray  # of a value: its bin in the raveled counts
    start: np.ndarray  # of a row: where its window begins among the stored points
    place: np.ndarray  # of a stored point: the multiple of the step
    allowed: np.ndarray  # stored points that may have weight
    offsets: np.ndarray  # of the points of a window from their row
    kernel: np.ndarray  # likelihood by point of the window and part, as a share of its peak
    slope: np.ndarray  # its derivative by the value


class _State(NamedTuple):
    weights: np.ndarray  # of the stored points
    tangents: np.ndarray  # how they move with the values in some directions


def empirical_bayes(
    values: object,
    sigma: float,
    *,
    law: Law = GAUSSIAN,
    lower: float | None = 0.0,
    integer: bool = True,
) -> Denoised:
    """Return posterior means under the maximum-likelihood prior on a grid.

    With p the density of the noise and w_j the prior probability of the grid point g_j, the values
    y_i have the log-likelihood `sum_i log sum_j w_j p(y_i - g_j)`. EM raises it, starting from a
    flat prior, and the estimates are

        x_i = sum_j w_j p(y_i - g_j) g_j / sum_j w_j p(y_i - g_j)

    Parameters
    ----------
    values
        The noisy values, shape (n,).
    sigma
        Standard deviation of the noise in a value, in the units of the values.
    law
        Law of the noise. The scale of Laplace noise is `sigma / sqrt(2)`, or that of the discrete
        law, `1 / (2 asinh(1 / (sqrt(2) sigma)))`, where truths and values are whole.
    lower
        The smallest value that the truth can have, from which the grid starts; `None`: there is
        none, and the grid starts at the smallest value.
    integer
        Whether the truth is whole. The grid then has integers only.

    Returns
    -------
    Denoised
        `risk` is `(sum_i Var(g | y_i) + a sigma^2 e) / n`, with e the share of the prior in
        `sum_i dx_i / dy_i`, and a = 2 for Gaussian and 1 for Laplace noise; see Notes. It errs on
        the side of too much. `chosen` holds the
        "spacing" of the grid, in the units of the values, its "grid_points", and the "steps" of EM.

    Raises
    ------
    QueryError
        If values or lower are not finite, sigma is not positive, or the law is unknown.

    Notes
    -----
    The grid has a spacing of .35 sigma, rounded to an integer of at least 1 where truths are whole.
    EM stops at a step that gains less than .02 in all, or 1e-6 per value: the maximum itself
    follows the noise, and its estimates are worse. Values 2^45 sigma or more from the origin come
    back as they are. If values take up more than 2^15 steps, pieces are denoised, in 10 steps.

    The mean posterior variance is too small as a risk, for two reasons. By Tweedie's formula
    `x_i = y_i + sigma^2 d log f(y_i) / dy_i`, so a prior whose parameters are estimated with
    information H adds `sigma^4 sum_i v_i' H^-1 v_i` to the squared error, where v_i is the mixed
    second derivative of `log f(y_i)`; that is `sigma^2 e`. And the prior is too narrow by what it
    learned from the noise, which is about as much. Under Laplace noise, whose score jumps, both
    together are about `sigma^2 e`, as measured on tables. Here e is the derivative of EM as far as
    it went; beyond 32 values its trace is estimated from random directions, always the same
    (Hutchinson 1989). It is at least `sum_i p(0) / (n f(y_i))`, what values contribute to their own
    likelihood, for a value that stands alone moves in jumps from point to point; and at most n.

    References
    ----------
    H. Robbins, "An empirical Bayes approach to statistics", Berkeley Symposium 1956.
    J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of
    infinitely many incidental parameters", Annals of Mathematical Statistics 27(4), 1956.
    B. Efron, "Tweedie's formula and selection bias", JASA 106(496), 2011.
    M. F. Hutchinson, "A stochastic estimator of the trace of the influence matrix for Laplacian
    smoothing splines", Communications in Statistics 18(3), 1989.

    Examples
    --------
    >>> values = [-6, 4, 1, -2, 97, 3, 0, -3, 5, -1]
    >>> empirical_bayes(values, 4.0).values.round(1)
    array([ 0.4,  0.7,  0.6,  0.5, 96.9,  0.7,  0.6,  0.5,  0.8,  0.5])
    """
    y, sigma, law = check_values(values), check_sigma(sigma), check_law(law)
    origin = _check_origin(lower, integer)
    step = max(1.0, float(round(_SPACING * sigma))) if integer else _SPACING * sigma
    chosen = {"spacing": step, "grid_points": 0.0, "steps": 0.0}
    is_whole = integer and bool((y == np.rint(y)).all())
    unit = noise_unit(y, sigma, law, integer=integer)
    variance = (sigma / unit) ** 2  # in squared units
    with np.errstate(over="ignore", under="ignore"):  # of values too far away to be resolved
        z = (y - origin) / unit
        z = z if lower is None else np.maximum(z, -_FAR_BELOW)
        near = np.abs(z) < _RESOLVED
        if not near.any():
            return Denoised(y.copy(), sigma * sigma, chosen)
        z = z[near]
        # where the noise is next to nothing, so is what a farther point has to say
        grid = PriorGrid(law, min(step / unit, _RESOLVED), bounded=lower is not None)
        parts = int(step) if is_whole and step <= _PARTS else None
        pieces = _pieces(z, grid.step)
        most_steps = _MOST_STEPS if len(pieces) == 1 else _FEW_STEPS
        means, risk = np.empty(len(z)), variance * (len(y) - len(z))
        for piece in pieces:
            prior = fit_prior(z[piece], grid, parts, most_steps=most_steps)
            unique, inverse = np.unique(z[piece], return_inverse=True)
            means[piece] = posterior(unique, prior, law)[inverse]
            risk += len(piece) * _risk(z[piece], grid, most_steps, variance)
            chosen["grid_points"] += len(prior.points)
            chosen["steps"] = max(chosen["steps"], float(prior.steps))
        estimates = y.copy()
        estimates[near] = origin + unit * means
    return Denoised(estimates, risk / len(y) * unit * unit, chosen)


def _pieces(z: np.ndarray, step: float) -> list[np.ndarray]:
    """Positions of values, cut at distances where they take up too many steps of the grid."""
    if len(z) <= _SPREAD:
        return [np.arange(len(z))]
    order = np.argsort(z, kind="stable")
    rows = np.flatnonzero(np.diff(np.floor(z[order] / step))) + 1
    return np.split(order, rows[_SPREAD - 1 :: _SPREAD])


def fit_prior(
    values: np.ndarray,
    grid: PriorGrid,
    parts: int | None = None,
    *,
    gain: float | None = None,
    most_steps: int = _MOST_STEPS,
) -> Prior:
    """Return the prior to which EM leads from a flat one.

    Parameters
    ----------
    values
        At least one value, in units from the origin.
    grid
        The grid.
    parts
        Bins of the histogram in one step of the grid; `None`: 16 in a standard deviation.
    gain
        In the log-likelihood of all values: EM stops at a step that gains less. `None`: .02, or
        1e-6 per value.
    most_steps
        Steps after which EM stops anyway.
    """
    bins = _bins(values, grid, parts)
    state, steps = _run_em(bins, np.zeros((0, *bins.counts.shape)), gain, most_steps)
    positive = state.weights > 0
    return Prior(bins.place[positive] * grid.step, state.weights[positive], steps)


def posterior(values: np.ndarray, prior: Prior, law: Law) -> np.ndarray:
    """Return posterior means, shape (n,), in units.

    They take in the points within 8 standard deviations or 32 scales of a Laplace law, and the next
    ones to both sides, so that there are some.
    """
    reach = law.distance(_FARTHEST)
    first = np.searchsorted(prior.points, values - reach) - 1
    width = int((np.searchsorted(prior.points, values + reach) - first).max()) + 1
    width = min(width, len(prior.points))
    first = np.clip(first, 0, len(prior.points) - width)
    points = sliding_window_view(prior.points, width)
    weights = sliding_window_view(prior.weights, width)
    means = np.empty(len(values))
    for rows in _blocks(len(values)):
        near = points[first[rows]]
        exponents = law.log_density(values[rows, None] - near)
        shares = weights[first[rows]] * np.exp(exponents - exponents.max(1, keepdims=True))
        means[rows] = (shares * near).sum(1) / shares.sum(1)
    return means


def _check_origin(lower: float | None, integer: bool) -> float:
    """Return the origin of the grid, which is its smallest point if lower is given."""
    number = 0.0 if lower is None else as_float(lower)
    if not math.isfinite(number):
        rule = "must be the smallest possible truth, a finite number, or None"
        raise QueryError.about("lower", rule, lower)
    return float(math.ceil(number)) if integer else number


def _blocks(n: int, size: int = _ROWS) -> Iterator[slice]:
    return (slice(begin, begin + size) for begin in range(0, n, size))


def _row_blocks(bins: _Bins) -> Iterator[slice]:
    return _blocks(len(bins.start), max(_PRODUCT // bins.kernel.size, 1))


def _bins(values: np.ndarray, grid: PriorGrid, parts: int | None) -> _Bins:
    """Count values in bins, and find the points of the grid that they see."""
    parts = parts or math.ceil(_PARTS * min(grid.step, 2))
    if grid.bounded:
        values = np.maximum(values, 0.0 if grid.law.memoryless else -_BELOW)
    fine = np.rint(values * (parts / grid.step)).astype(np.int64)
    rows, row = np.unique(fine // parts, return_inverse=True)
    flat = row * parts + fine % parts
    counts = np.bincount(flat, minlength=len(rows) * parts).reshape(-1, parts)
    half = math.ceil(grid.law.distance(_FARTHEST) / grid.step)
    window = np.arange(-half, half + 2)
    # windows of rows that lie apart stand side by side
    start = np.concatenate([[0], np.cumsum(np.minimum(np.diff(rows), len(window)))])
    place = np.zeros(start[-1] + len(window), np.int64)
    for k, offset in enumerate(window):
        place[start + k] = rows + offset
    first = max(rows[0], 0) if grid.bounded else rows[0]
    allowed = (place >= first) & (place <= max(rows[-1] + 1, first))
    distances = (np.arange(parts) / parts - window[:, None]) * grid.step
    exponents = grid.law.log_density(distances)
    kernel = np.exp(exponents - exponents.max(0))
    slope = grid.law.score(distances)
    return _Bins(counts, flat, start, place, allowed, window * grid.step, kernel, kernel * slope)


def _run_em(
    bins: _Bins, directions: np.ndarray, gain: float | None, most_steps: int
) -> tuple[_State, int]:
    """Take steps of EM from flat weights, and say how many."""
    if gain is None:
        gain = max(_GAIN, _GAIN_PER_VALUE * len(bins.flat))
    affordable = int(_WORK / (len(bins.start) * len(bins.kernel)))
    most_steps = min(most_steps, max(affordable, 1))
    flat = bins.allowed / bins.allowed.sum()
    state = _State(flat, np.zeros((len(directions), len(flat))))
    last = -math.inf
    for step in range(1, most_steps + 1):
        state, likelihood = _em_step(bins, state, directions)
        if likelihood - last < gain:
            return state, step
        last = likelihood
    return state, most_steps


def _em_step(bins: _Bins, state: _State, directions: np.ndarray) -> tuple[_State, float]:
    """Take a step of EM, differentiated; also return the log-likelihood that it started from.

    The new weight is `w_j / n sum_b c_b k_jb / f_b`, for counts c, kernel k and likelihoods
    `f_b = sum_j w_j k_jb`. A direction moves some values of a bin up and others down.
    """
    raised, bent = np.zeros_like(state.weights), np.zeros_like(state.tangents)
    likelihood = 0.0
    for rows in _row_blocks(bins):
        start, counts, moved = bins.start[rows], bins.counts[rows], directions[:, rows]
        seen = _windows(state.weights, bins, rows)
        f = np.maximum(seen @ bins.kernel, _LEAST)
        likelihood += float((counts * np.log(f)).sum())
        _scatter(raised, start, bins.kernel @ (counts / f).T)
        if len(directions):
            change = counts * (_windows(state.tangents, bins, rows) @ bins.kernel)
            change += moved * (seen @ bins.slope)
            pull = bins.slope @ (moved / f).swapaxes(1, 2)
            _scatter(bent, start, pull - bins.kernel @ (change / f / f).swapaxes(1, 2))
    n = len(bins.flat)
    tangents = (state.tangents * raised + state.weights * bent) / n
    return _State(state.weights * raised / n, tangents), likelihood


def _windows(weights: np.ndarray, bins: _Bins, rows: slice) -> np.ndarray:
    """Weights that the rows see, along a new last axis."""
    return sliding_window_view(weights, len(bins.kernel), axis=-1)[..., bins.start[rows], :]


def _scatter(totals: np.ndarray, start: np.ndarray, parts: np.ndarray) -> None:
    """Add what the points of the windows get, shape (..., window, rows), to the stored points."""
    for k in range(parts.shape[-2]):
        totals[..., start + k] += parts[..., k, :]


def _risk(values: np.ndarray, grid: PriorGrid, most_steps: int, variance: float) -> float:
    """Mean squared error that posterior means are expected to have, in squared units."""
    grid = grid._replace(step=grid.step if grid.step <= _COARSE else _SPACING)
    bins = _bins(np.sort(values), grid, None)
    directions = _directions(bins)
    state, _ = _run_em(bins, directions, None, most_steps)
    n, spread, alone, through = len(values), 0.0, 0.0, np.zeros(len(directions))
    first = bins.kernel * bins.offsets[:, None]
    second = first * bins.offsets[:, None]
    for rows in _row_blocks(bins):
        seen, tangents = (_windows(part, bins, rows) for part in state)
        f = np.maximum(seen @ bins.kernel, _LEAST)
        alone += float((bins.counts[rows] * np.minimum(1 / (n * f), 1.0)).sum())
        mean = seen @ first / f
        spread += float((bins.counts[rows] * (seen @ second / f - mean * mean)).sum())
        slope = (tangents @ first - mean * (tangents @ bins.kernel)) / f
        through += (directions[:, rows] * slope).sum((1, 2))
    trace = float(through.sum() if n <= _EXACT else through.mean())
    learned = _LEARNED_SHARPLY if grid.law.memoryless else _LEARNED
    return (max(spread, 0.0) + learned * variance * min(max(trace, alone), n)) / n


def _directions(bins: _Bins) -> np.ndarray:
    """Directions in which values move, summed in bins: every value, or random signs."""
    n = len(bins.flat)
    rows = max(_PROBED // n, 1)
    # pseudorandom and always the same: the risk is a function of the values
    pool = np.frombuffer(hashlib.shake_128(b"").digest(rows * n), np.uint8)
    signs: np.ndarray = np.eye(n) if n <= _EXACT else 1.0 - 2.0 * (pool.reshape(rows, n) & 1)
    binned = [np.bincount(bins.flat, row, minlength=bins.counts.size) for row in signs]
    return np.stack(binned).reshape(-1, *bins.counts.shape)
