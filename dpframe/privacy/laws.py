"""Laws of noise: their standard deviations and quantiles."""

import math

from dpframe.errors import CalibrationError
from dpframe.privacy.noise import check_scale
from dpframe.privacy.noise_tables import Law

__all__ = ["half_width", "standard_deviation"]

_WIDE = 2.0  # from this scale on, rounding a Gaussian adds 1/12 to its variance, to the last bit


def _beyond(law: Law, scale: float, a: int) -> float:
    """Return P(|Y| > a) of a draw, for a >= 0."""
    if law == "gaussian":
        return math.erfc((a + 0.5) / scale / math.sqrt(2))
    return 2 * math.exp(-(a + 1) / scale) / (1 + math.exp(-1 / scale))


def standard_deviation(law: Law, scale: float) -> float:
    """Return the standard deviation of a draw, before any wrapping.

    Laplace: with `h = 1 / (2 scale)`, it is `1 / (sqrt(2) sinh(h))`. Gaussian: it is the root
    of `sum_k (2 k - 1) P(|Z| > (k - 1/2) / scale)`, k = 1, 2, ... From scale 2 on, that sum is
    `scale**2 + 1/12` to more digits than a float has: by Poisson summation, the difference is of
    the order of `4 scale**2 exp(-2 pi**2 scale**2)`.

    Parameters
    ----------
    law, scale
        As for `integer_noise`; one scale.

    Returns
    -------
    float
        With a relative error below 1e-12.

    Raises
    ------
    CalibrationError
        If the law is unknown or the scale is out of range.

    Examples
    --------
    >>> round(standard_deviation("gaussian", 4.2), 4), round(standard_deviation("laplace", 1), 4)
    (4.2099, 1.357)
    """
    sigma = float(check_scale(law, scale))
    if sigma == 0:
        return 0.0
    if law == "laplace":
        return math.sqrt(2) * math.exp(-0.5 / sigma) / -math.expm1(-1 / sigma)  # no overflow
    if sigma >= _WIDE:
        return math.sqrt(sigma**2 + 1 / 12)
    return math.sqrt(sum((2 * k - 1) * _beyond(law, sigma, k - 1) for k in range(1, 40)))


def half_width(law: Law, scale: float, level: float) -> int:
    """Return the smallest integer a with P(|Y| <= a) >= level, before any wrapping.

    `P(|Y| <= a)` is `P(|Z| < (a + 1/2) / scale)` for the rounded Gaussian, and
    `1 - 2 q**(a + 1) / (1 + q)` with `q = exp(-1 / scale)` for the discrete Laplace, in floats good
    to a relative 1e-14 of 1 - level.

    Parameters
    ----------
    law, scale
        As for `integer_noise`; one scale.
    level
        Coverage, strictly between 0 and 1.

    Raises
    ------
    CalibrationError
        If the law is unknown, or the scale or the level is out of range.

    Examples
    --------
    >>> half_width("gaussian", 4.2247, 0.95), half_width("gaussian", 0.05, 0.95)
    (8, 0)
    """
    sigma = float(check_scale(law, scale))
    if not 0 < level < 1:
        raise CalibrationError(f"level must be strictly between 0 and 1, got level={level!r}.")
    if sigma == 0:
        return 0
    below, enough = -1, 1
    while _beyond(law, sigma, enough) > 1 - level:
        below, enough = enough, 2 * enough
    while enough - below > 1:
        middle = (below + enough) // 2
        if _beyond(law, sigma, middle) > 1 - level:
            below = middle
        else:
            enough = middle
    return enough
