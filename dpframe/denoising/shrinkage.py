"""James and Stein's estimator: shrinkage of all values by one factor.

An estimate of the form `h(y) = c + (1 - p) (y - c)` pulls the values y toward a center c, by a
share p of their offsets. Where the noise in y is Gaussian, Stein's identity tells the mean squared
error of h from y alone: see `stein_risk`.
"""

import math
from typing import Literal, get_args

import numpy as np

from dpframe.arguments import check_flag
from dpframe.denoising.base import Denoised, check_sigma, check_values
from dpframe.errors import QueryError

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


@np.errstate(over="ignore", under="ignore")
def stein_risk(changes: np.ndarray, sigma: float, slope: float) -> float:
    """Return Stein's unbiased estimate of the mean squared error of denoised values.

    It is `|h(y) - y|^2 / d + s^2 (2 q - 1)`, where h maps the d values y to denoised ones, s is
    `sigma` and q the slope. Where the result fits in a float, no step on the way overflows. An
    infinite change makes it infinite.

    Parameters
    ----------
    changes
        `h(y) - y`, of either sign, shape (d,), not empty.
    sigma
        Standard deviation of the noise in a value; the noise is independent.
    slope
        `q`, the divergence of h at y divided by d: the mean of the derivatives `d h_i / d y_i`. For
        a law of noise other than the Gaussian, a number with the same expectation as
        `W . h(y) / (d s^2)`, W the noise.

    References
    ----------
    C. Stein, "Estimation of the mean of a multivariate normal distribution", Annals of Statistics
    9, 1981.

    Examples
    --------
    >>> stein_risk(np.array([-1.0, 1.0]), 2.0, 0.75)
    3.0
    """
    unit = max(float(np.abs(changes).max()), sigma)
    if math.isinf(unit):
        return math.inf
    relative = float(np.mean(np.square(changes / unit))) + (sigma / unit) ** 2 * (2 * slope - 1)
    return unit * (unit * relative)
