"""Soft thresholding, with thresholds for Gaussian and for Laplace noise."""

import math
from typing import Literal, TypeAlias

import numpy as np

from dpframe.denoising.base import Denoised, check_law, check_sigma, check_values
from dpframe.denoising.shrinkage import stein_risk
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_float
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN

Threshold: TypeAlias = Literal["sure", "universal"] | float
"""How a threshold is chosen, or the threshold itself."""

_HUGE = 1e150  # multiples of sigma beyond it are alike, and below it their squares fit in a float


@np.errstate(over="ignore", under="ignore")
def soft_threshold(
    values: object, sigma: float, threshold: Threshold = "universal", *, law: Law = GAUSSIAN
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

        - "universal" takes `s sqrt(2 ln d)` for Gaussian noise and `b ln d` for Laplace noise: the
          largest of d values of pure noise is about as large. Where noise is small beside the true
          values, it costs many times more than it gains.
        - "sure", for Gaussian noise, takes a t in [0, inf] that minimizes the unbiased estimate of
          the risk: it lies at 0 or at one of the `|y_i|`.
    law
        Law of the noise.

    Returns
    -------
    Denoised
        `risk` is unbiased, per value, for independent Gaussian noise and a given t:
        `|h(y) - y|^2 / d + s^2 (2 q - 1)`, with q the share of values with `|y_i| > t` (Stein's
        identity); of values at t, which only rounding makes, half count, and none for the one that
        "sure" takes t from. It is `nan` for other laws, and `s^2` where t is 0 or nothing is there.
        `chosen` has "threshold".

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
    >>> soft_threshold([0.5, -1.1, 9.0, 0.3, -0.9], 1.0, "sure").chosen
    {'threshold': 1.1}
    """
    y, s, law = check_values(values), check_sigma(sigma), check_law(law)
    t = _threshold(y, s, threshold, law)
    if t == 0 or y.size == 0:
        return Denoised(y.copy(), s * s, {"threshold": t})
    removed = np.clip(y, -t, t)
    if law is not GAUSSIAN:
        return Denoised(y - removed, math.nan, {"threshold": t})
    above = float(np.heaviside(np.abs(y) - t, 0.5).sum())
    if threshold == "sure":
        above -= 0.5  # the value that t comes from does not count
    return Denoised(y - removed, stein_risk(removed, s, above / y.size), {"threshold": t})


def _threshold(y: np.ndarray, sigma: float, threshold: Threshold, law: Law) -> float:
    """Return the threshold itself, in the units of the values."""
    if isinstance(threshold, str) and threshold == "universal":
        return sigma * law.distance(math.log(y.size)) if y.size else 0.0
    if isinstance(threshold, str) and threshold == "sure":
        if law is GAUSSIAN:
            return _sure_at_values(y, sigma) if y.size else 0.0
        rule = 'can be "sure" for Gaussian noise alone'
        raise QueryError.about("threshold", rule, threshold, 'Use "universal" or a number.')
    number = as_float(threshold)
    if number >= 0:
        return number
    raise QueryError.about("threshold", 'must be "sure", "universal" or a number >= 0', threshold)


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
