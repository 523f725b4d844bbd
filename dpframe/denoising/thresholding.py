"""Soft thresholding, with thresholds for Gaussian and for Laplace noise."""

import math
from typing import Literal, TypeAlias

import numpy as np

from dpframe.denoising.base import (
    Denoised,
    check_law,
    check_sigma,
    check_values,
    noise_unit,
    passing,
)
from dpframe.denoising.shrinkage import stein_risk
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_float
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN

Threshold: TypeAlias = Literal["sure", "universal"] | float
"""How a threshold is chosen, or the threshold itself."""

_HUGE = 1e150  # multiples of sigma beyond it are alike, and below it their squares fit in a float
_CANDIDATES = 1024  # thresholds whose risk is compared
_AS_INFINITY = 40.0  # scales of noise: exp(-40) is negligible next to 1


@np.errstate(over="ignore", under="ignore")
def soft_threshold(
    values: object,
    sigma: float,
    threshold: Threshold = "sure",
    *,
    law: Law = GAUSSIAN,
    integer: bool = False,
) -> Denoised:
    """Move values toward zero by a threshold, and those below it to zero.

    With y the d values, s = `sigma` and t the threshold, `h(y_i) = sign(y_i) (|y_i| - t)_+`.

    Parameters
    ----------
    values
        The noisy values, shape (d,), most of them with a true value near zero.
    sigma
        Standard deviation of the noise in a value, in the units of the values, whatever its law.
        The scale of Laplace noise is `b = s / sqrt(2)`.
    threshold
        A number >= 0 in the units of the values, or how to choose it:

        - "sure" takes a t in [0, inf] that minimizes the unbiased estimate of the risk. For
          Gaussian noise the minimum is exact: it lies at 0 or at one of the `|y_i|`. For Laplace
          noise there is no closed form, and t is the best of 1,024 thresholds from 0 on, at most
          `(2 ln d + 20) b / 1023` apart, and one far beyond all `|y_i|` that acts as infinity.
        - "universal" takes `s sqrt(2 ln d)` for Gaussian noise and `b ln d` for Laplace noise: the
          largest of d values of pure noise is about as large. Where noise is small beside the true
          values, it costs many times more than it gains.
    law
        Law of the noise.
    integer
        Whether the truth is whole. Where all values are whole as well, so is the noise, and "sure"
        takes a whole t under Laplace noise.

    Returns
    -------
    Denoised
        `risk` is unbiased, per value, for independent noise and a given t:
        `|h(y) - y|^2 / d + s^2 (2 q - 1)`. For Gaussian noise q is the share of values with
        `|y_i| > t` (Stein's identity); of values at t, which only rounding makes, half count, and
        none for the one that "sure" takes t from. For Laplace noise W, integrating by parts gives
        `E[W h(y)] = 2 b^2 E[h'(y + V)]`, with V independent of W and of the same law, so q is the
        mean of `P(|y_i + V| > t)`, which is `exp(-t / b) cosh(y_i / b)` where `|y_i| <= t` and
        `1 - exp(-|y_i| / b) sinh(t / b)` elsewhere; the same is exact for whole values and a whole
        t, see Notes. With t = 0 nothing changes and the risk is `s^2`, as for an empty array. The
        minimum that "sure" finds is, on average, a little below the risk of what it returns.
        `chosen` has "threshold".

    Raises
    ------
    QueryError
        If the values are not finite numbers in one dimension, sigma is not positive, the threshold
        is negative or unknown, or the law is unknown.

    Notes
    -----
    For discrete Laplace noise W of scale b, `q = exp(-1 / b)`, generating functions show that
    `z p'(z) / (z - 1) = p(z)^2 q (1 + 1/z) / (1 - q)^2` for the law p of W. So
    `E[W h(y)] = s^2 E[(h(y + V + 1) - h(y + V - 1)) / 2]` with V another draw: the derivative above
    becomes a difference. For a whole t the mean over V is the same in closed form as for continuous
    noise of scale b, and between whole t it is linear.

    References
    ----------
    D. L. Donoho and I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika
    81, 1994, and "Adapting to unknown smoothness via wavelet shrinkage", JASA 90, 1995.
    B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
    section 4 (the universal threshold).

    Examples
    --------
    >>> soft_threshold([0.5, -1.0, 9.0, 0.0, -6.0], 1.0, 2.0).values
    array([ 0.,  0.,  7.,  0., -4.])
    >>> soft_threshold([0.5, -1.1, 9.0, 0.3, -0.9], 1.0).chosen
    {'threshold': 1.1}
    """
    y, s, law = check_values(values), check_sigma(sigma), check_law(law)
    unit = noise_unit(y, s, law, integer=integer)
    t = _threshold(y, s, threshold, law, unit)
    if t == 0 or y.size == 0:
        return Denoised(y.copy(), s * s, {"threshold": t})
    removed = np.clip(y, -t, t)
    sizes = np.abs(y)
    above = passing(sizes, t, s, law, integer=integer) + passing(-sizes, t, s, law, integer=integer)
    if threshold == "sure" and _at_values(law):
        above -= 0.5  # the value that t comes from does not count
    return Denoised(y - removed, stein_risk(removed, s, above / y.size), {"threshold": t})


def _threshold(y: np.ndarray, sigma: float, threshold: Threshold, law: Law, unit: float) -> float:
    """Return the threshold itself, in the units of the values."""
    if isinstance(threshold, str) and threshold in ("sure", "universal"):
        if y.size == 0:
            return 0.0
        if threshold == "universal":
            return sigma * law.distance(math.log(y.size))
        return _sure_at_values(y, sigma) if _at_values(law) else _sure_on_grid(y, sigma, law, unit)
    number = as_float(threshold)
    if number >= 0:
        return number
    raise QueryError.about("threshold", 'must be "sure", "universal" or a number >= 0', threshold)


def _at_values(law: Law) -> bool:
    """Whether the estimated risk is least at 0 or one of the |y_i|: elsewhere it only rises."""
    return law.companion == 0


def _sure_at_values(y: np.ndarray, sigma: float) -> float:
    """Return the threshold with the least Stein estimate; between two sizes, that only rises."""
    sizes, counts = np.unique(np.abs(y), return_counts=True)
    squares = np.square(np.minimum(sizes / sigma, _HUGE))
    above = y.size - np.cumsum(counts)
    # in units of sigma^2 / d: changes, and 2 q - 1 with half of the other values of the same size
    risks = np.cumsum(counts * squares) + above * (squares + 2) + (counts - 1) - y.size
    risks[sizes == 0] = y.size
    best = int(np.argmin(risks))
    return float(sizes[best]) if risks[best] < y.size else 0.0


def _sure_on_grid(y: np.ndarray, sigma: float, law: Law, unit: float) -> float:
    """Return the best of many thresholds, from sums over sorted sizes, all in scales b of V."""
    scale = unit * law.companion
    sizes = np.sort(np.minimum(np.abs(y) / unit, _HUGE)) / law.companion
    d, largest = y.size, float(sizes[-1])
    # thresholds above twice the universal one and below the largest size cost more than they gain
    grid = np.linspace(0, min(largest, 2 * math.log(d) + 20), _CANDIDATES)
    t = np.append(grid, largest + _AS_INFINITY)
    if unit != sigma:  # all is whole
        t = np.unique(np.rint(t * scale)) / scale
    k = np.searchsorted(sizes, t)  # how many are below t
    squares = np.append(0.0, np.cumsum(np.square(sizes)))[k] + (d - k) * np.square(t)
    # exp(size - t) is summed below t, exp(t - size) above it: by logarithms, which do not overflow
    below = np.append(-np.inf, np.logaddexp.accumulate(sizes))[k]
    above = np.append(np.logaddexp.accumulate(-sizes[::-1])[::-1], -np.inf)[k]
    twice = np.exp(below - t) - np.exp(above + t) + np.exp(-t) * np.sum(np.exp(-sizes))
    variance = (sigma / scale) ** 2
    best = float(t[np.argmin(squares + 2 * variance * (d - k + twice / 2))])
    return best * scale if unit == sigma else round(best * scale)
