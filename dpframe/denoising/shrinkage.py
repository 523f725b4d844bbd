"""Shrinkage of all values: by one factor (James and Stein), or toward 0 by a threshold.

An estimate of the form `h(y) = c + (1 - p) (y - c)` pulls the values y toward a center c, by a
share p of their offsets. Where the noise in y is Gaussian, Stein's identity tells the mean squared
error of h from y alone: see `stein_risk`.
"""

import math
from typing import Literal, TypeAlias, get_args

import numpy as np

from dpframe.arguments import check_flag
from dpframe.denoising.projection import Denoised, check_law, check_sigma, check_values, stein_risk
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_float
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN

Center = Literal["mean", "zero"]


@np.errstate(over="ignore", under="ignore")
def james_stein(
    values: object, sigma: float, *, toward: Center = "mean", positive_part: bool = True
) -> Denoised:
    """Shrink values toward their mean or zero by the James-Stein factor.

    With y the d values, s = `sigma` and r = y:

        h(y) = (1 - (d - 2) s^2 / |r|^2)_+ r                    toward zero, for d >= 3
        h(y) = m + (1 - (d - 3) s^2 / |r|^2)_+ r                toward the mean m, for d >= 4

    where r = y - m in the second. For Gaussian noise and any true values, the expected total
    squared error is below the `d s^2` of the values themselves. Fewer values come back as they are,
    with risk `s^2`. Where `|r|^2` is 0 the center comes back.

    Parameters
    ----------
    values
        The noisy values, shape (d,).
    sigma
        Standard deviation of the noise in a value, in the units of the values. Where values share a
        common noise term, only that of their differences counts, and only `toward="mean"` makes
        sense.
    toward
        "mean" or "zero".
    positive_part
        Whether a negative factor is replaced by 0, which never has a larger expected error.

    Returns
    -------
    Denoised
        `risk` is Stein's unbiased estimate per value for independent Gaussian noise:
        `s^2 - (k s^2)^2 / (d |r|^2)`, where k is d - 2 or d - 3. Where the factor is replaced by 0,
        it is `|r|^2 / d - s^2` toward zero, and `(|r|^2 - (d - 2) s^2) / d` toward the mean. It can
        be negative. `chosen` holds the factor, "weight".

    References
    ----------
    W. James and C. Stein, "Estimation with quadratic loss", Berkeley Symposium 1961.
    B. Efron and C. Morris, "Stein's estimation rule and its competitors", JASA 68, 1973 (Lindley's
    version, toward the mean).
    B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
    section 4.

    Examples
    --------
    >>> denoised = james_stein([4.0, 1.0, 0.0, 3.0, 7.0], 2.0)
    >>> denoised.values
    array([3.73333333, 1.53333333, 0.8       , 3.        , 5.93333333])
    >>> round(denoised.risk, 4), round(denoised.chosen["weight"], 4)
    (3.5733, 0.7333)
    """
    y, s = check_values(values), check_sigma(sigma)
    if not isinstance(toward, str) or toward not in get_args(Center):
        raise QueryError.about("toward", 'must be "mean" or "zero"', toward)
    check_flag("positive_part", positive_part)
    d = y.size
    free = d - 1 if toward == "mean" else d
    if free - 2 < 1:
        return Denoised(y.copy(), s * s, {"weight": 1.0})
    largest = float(np.abs(y).max())
    # a power of two: dividing by it is exact, and nothing overflows
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
    scaled = y / unit
    # rounding must not give equal values a mean that differs from them
    center = np.clip(scaled.mean(), scaled.min(), scaled.max()) if toward == "mean" else 0.0
    offsets = scaled - center
    deviation = math.sqrt(float(np.mean(np.square(offsets))))
    ratio = s / unit / deviation if deviation else math.inf
    share = (free - 2) / d * (ratio * ratio)
    adaptive = not (math.isinf(share) or (positive_part and share >= 1))
    share = share if adaptive else 1.0
    # a share a / |r|^2 adds -r . grad(share) = 2 share to the divergence
    divergence = (d - free) + free * (1 - share) + (2 * share if adaptive else 0)
    shrunk = (center + (1 - share) * offsets) * unit
    risk = stein_risk(share * offsets * unit, s, divergence / d)
    return Denoised(shrunk, risk, {"weight": 1 - share})


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
