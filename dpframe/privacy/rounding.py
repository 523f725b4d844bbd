"""Rounding to the private side: numbers that are certainly large enough, or small enough."""

import math
from collections.abc import Callable
from fractions import Fraction

from dpframe.errors import CalibrationError
from dpframe.privacy.amounts import PrivacyLoss


def round_up(value: float, holds: Callable[[float], bool]) -> float:
    """Increase a number, by an ulp and then by doubling steps, until a predicate holds.

    Parameters
    ----------
    value
        Where to start, >= 0. The result is at most about twice as far above it as needed.
    holds
        Exact test, in rational arithmetic for instance, that is true of all large enough numbers.

    Raises
    ------
    CalibrationError
        If no finite number will do.

    Examples
    --------
    >>> round_up(1.0, lambda side: side > 1)
    1.0000000000000002
    """
    step = 1
    while math.isfinite(value) and not holds(value):
        value += step * math.ulp(value)
        step *= 2
    if not math.isfinite(value):
        raise CalibrationError(
            "epsilon, delta or mu is so small that no float is enough noise. Give a larger one."
        )
    return value


def root_below(square: Fraction) -> float:
    """Root of a fraction >= 0, rounded down."""
    root = PrivacyLoss(mu_squared=square).mu
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root
