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

    With y the d values and s = `sigma`, in their units:

        h(y) = (1 - (d - 2) s^2 / |y|^2)_+ y                    toward zero, for d >= 3
        h(y) = m + (1 - (d - 3) s^2 / |r|^2)_+ r, r = y - m     toward the mean m, for d >= 4

    For Gaussian noise and any true values, the expected total squared error is below the `d s^2` of
    the values themselves; a negative factor is replaced by 0 unless `positive_part=False`. Fewer
    values come back as they are. Where values share a noise term, only their differences count.

    `risk` is Stein's estimate: `s^2 - (k s^2)^2 / (d |r|^2)`, where k is d - 2 or d - 3; where the
    factor is replaced by 0, `|r|^2 / d - s^2` toward zero, and `(|r|^2 - (d - 2) s^2) / d` toward
    the mean. It can be negative. `chosen` holds the factor, "weight".

    References
    ----------
    W. James and C. Stein, "Estimation with quadratic loss", Berkeley Symposium 1961. B. Efron and
    C. Morris, "Stein's estimation rule and its competitors", JASA 68, 1973 (toward the mean).
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

    With y the d values, s = `sigma` and t the threshold, `h(y_i) = sign(y_i) (|y_i| - t)_+`. t is
    a number in the units of the values, or

    - "universal": `s sqrt(2 ln d)` for Gaussian noise and `s / sqrt(2) ln d` for Laplace noise,
      about the largest of d values of pure noise. Where noise is small beside the true values, it
      costs many times more than it gains;
    - "sure", for Gaussian noise: the t in [0, inf] with the least estimate of the risk.

    `risk` is unbiased for Gaussian noise and a given t: `|h(y) - y|^2 / d + s^2 (2 q - 1)`, with q
    the share of values with `|y_i| > t` (Stein's identity); of values at t, half count, and not
    the one that "sure" takes t from. It is `nan` for other laws, and `s^2` where t is 0. `chosen`
    has "threshold".

    References
    ----------
    D. L. Donoho and I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika
    81, 1994, and "Adapting to unknown smoothness via wavelet shrinkage", JASA 90, 1995.

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
