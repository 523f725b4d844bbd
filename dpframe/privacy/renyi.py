"""Renyi divergences: of pure losses, rounded up; the largest that keep (epsilon, delta), down."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.privacy.amounts import below, exact

_LOG_ORDERS = np.linspace(-5, 30, 3501)  # log(a - 1)

# Float formulas below err by less than 2**-47 of the terms that they add or subtract (at worst
# where 1 - 1/a is taken at a = 1.01): margins of 2**-40 of each term cover that 100 times over.
_MARGIN = 2.0**-40
# beyond, the divergence is bounded without its formula
_SMALL, _LARGE = 2.0**-300, 2**30
# squares of what has a smaller divergence would vanish
_TINY = 2.0**-900
# the order is 1 + beyond: its first term is of beyond + 1 / 2
_HALF = 0.5
# more than the bits of a float
_HALVINGS = 80
# bits kept of a price that need not be exact
_DIGITS = 64


def renyi_limit(epsilon: float, delta: float, order: Fraction) -> Fraction:
    """Find the largest Renyi divergence of an order that implies (epsilon, delta)-DP.

    ``R = epsilon - log(1 - 1/a) + log(a delta) / (a - 1)``, rounded down (Canonne, Kamath and
    Steinke 2020, Proposition 12).

    Parameters
    ----------
    epsilon, delta
        Finite and > 0; in (0, 1).
    order
        The order a, above 1.

    Examples
    --------
    >>> round(float(renyi_limit(1, 1e-6, Fraction(28))), 6)
    0.648097
    """
    first = -math.log1p(-float(1 / order))
    beyond, logs = _beyond(order), (math.log(delta), math.log(order))
    sizes = epsilon + first + sum(map(abs, logs)) / beyond
    return Fraction(epsilon + first + sum(logs) / beyond - _MARGIN * sizes)


@lru_cache(maxsize=1024)
def best_order(epsilon: float, delta: float) -> Fraction:
    """Find the order with the most room for Gaussian losses, 2 R / a, to three digits."""
    beyond = np.exp(_LOG_ORDERS)
    limit = epsilon + np.log1p(1 / beyond) + (math.log(delta) + np.log1p(beyond)) / beyond
    return Fraction(f"{1 + beyond[np.argmax(limit / (1 + beyond))]:.3g}")


def divergence_of_pure(epsilon: Fraction, order: Fraction) -> Fraction:
    """Bound the Renyi divergence of an epsilon-DP mechanism, rounded up.

    ``D = [log cosh((a - 1/2) epsilon) - log cosh(epsilon / 2)] / (a - 1)``, that of randomized
    response, which dominates every epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015).

    Parameters
    ----------
    epsilon
        >= 0.
    order
        The order a, above 1.

    Examples
    --------
    >>> round(float(divergence_of_pure(Fraction(1, 10), Fraction(28))), 6)
    0.076285
    """
    if epsilon.numerator >= _LARGE * epsilon.denominator:
        return epsilon
    number = float(epsilon)
    if number <= _SMALL:  # squares of floats would vanish
        return min(epsilon, few_digits(order * epsilon**2 / 2))
    divergence = _divergence(number, _beyond(order))
    # either is a bound
    return Fraction(*divergence.as_integer_ratio()) if divergence < number else epsilon


def _beyond(order: Fraction) -> float:
    """Return order - 1, by a division of integers: quick, and exact except for one rounding."""
    return (order.numerator - order.denominator) / order.denominator


def _divergence(epsilon: float, beyond: float) -> float:
    """Evaluate the divergence of order 1 + beyond, with margins."""
    x = epsilon * (1 + _MARGIN)
    # the bound of Bun and Steinke 2016, Proposition 1.4, is tight there
    if epsilon <= _SMALL:
        return (1 + beyond) * x**2 / 2
    first = _log_cosh((beyond + _HALF) * x) * (1 + _MARGIN)
    second = _log_cosh(x / 2) * (1 - _MARGIN)
    return (first - second) / beyond * (1 + _MARGIN)


def _log_cosh(y: float) -> float:
    if y < 1:
        return math.log1p(2 * math.sinh(y / 2) ** 2)
    return y - math.log(2) + math.log1p(math.exp(-2 * y))


def pure_of_divergence(divergence: Fraction, order: Fraction) -> Fraction:
    """Find the largest epsilon for which `divergence_of_pure` is at most a divergence."""
    low, beyond = below(max(divergence, Fraction(0))), _beyond(order)
    # as D(e) <= e and, of randomized response, D(e) >= e - log(2) / (a - 1)
    most, high = low, low + math.log(2) / beyond
    for _ in range(_HALVINGS if _TINY < low < _LARGE else 0):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _divergence(middle, beyond) <= most:
            low = middle
        else:
            high = middle
    # it stands for more
    while low and divergence_of_pure(exact(low), order) > divergence:
        low *= 1 - 2.0**-45
    return exact(low)


def divergence_of_gaussian(mu_squared: Fraction, order: Fraction) -> Fraction:
    """Return the Renyi divergence of Gaussian noise, ``a mu^2 / 2``, up to 64 binary digits."""
    return _few_digits(
        order.numerator * mu_squared.numerator, 2 * order.denominator * mu_squared.denominator
    )


def few_digits(value: Fraction) -> Fraction:
    """Round a fraction > 0 up to 64 binary digits, and 0 to 0."""
    return _few_digits(value.numerator, value.denominator)


def _few_digits(above: int, below: int) -> Fraction:
    shift = below.bit_length() - above.bit_length() + _DIGITS
    if shift >= 0:
        return Fraction(-((-above << shift) // below), 1 << shift)
    return Fraction(-(-above // (below << -shift)) << -shift)
