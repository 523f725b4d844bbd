"""Functions of the normal law, of single numbers: `scipy.special` takes long to import."""

import math
from statistics import NormalDist

# from here on, six terms of the series are all that a float can tell
_FAR = 25.0
# of the asymptotic series
_TERMS = 6
# squares of numbers below 32 on it are floats
_GRID = 2.0**20
# y is its erf, times a constant, to the last bit below this
_TINY = 1e-9
# of Newton; fewer than ten are needed
_MOST_STEPS = 60
# quadratic convergence: the step after one this small is lost in rounding
_CONVERGED = 1e-12
# of Newton, from a start that is right to 7 digits
_STEPS = 2
# the mass below the median
_HALF = 0.5


def scaled_erfc(x: float) -> float:
    """Return `exp(x**2) erfc(x)`, off by less than 2e-15 of itself; infinite where that is.

    Beyond 25, by its asymptotic series `1 - 1/(2 x^2) + 1 3/(2 x^2)^2 - ...`, over `x sqrt(pi)`.

    Examples
    --------
    >>> scaled_erfc(0), round(scaled_erfc(1e3) * 1e3 * math.sqrt(math.pi), 6)
    (1.0, 1.0)
    """
    if x > _FAR:
        part = total = 1.0
        for term in range(_TERMS):
            part *= -(2 * term + 1) / (2 * x) / x
            total += part
        return total / x / math.sqrt(math.pi)
    near = round(x * _GRID) / _GRID
    try:
        square = math.exp(near * near)
    except OverflowError:
        return math.inf
    return square * math.exp((x - near) * (x + near)) * math.erfc(x)


def normal_end(mass: float) -> float:
    """Return the number below which a normal has this mass, in (0, 1].

    Examples
    --------
    >>> round(normal_end(0.975), 6)
    1.959964
    """
    return NormalDist().inv_cdf(mass) if mass < 1 else math.inf


def log_normal_tail(x: float) -> float:
    """Return the logarithm of the mass of a normal above x >= 0.

    Examples
    --------
    >>> round(log_normal_tail(0), 6), round(log_normal_tail(100), 3)
    (-0.693147, -5005.524)
    """
    return math.log(scaled_erfc(x / math.sqrt(2)) / 2) - x / 2 * x


def end_of_log_tail(log_mass: float) -> float:
    """Return the x with `log_normal_tail(x) = log_mass`, at most log(1/2), by Newton steps.

    Examples
    --------
    >>> round(end_of_log_tail(math.log(0.025)), 6), round(end_of_log_tail(-5005.524), 3)
    (1.959964, 100.0)
    """
    # the tail is lighter, and its logarithm concave: steps go down
    x = math.sqrt(2) * math.sqrt(-log_mass)
    for _ in range(_MOST_STEPS):
        mills = math.sqrt(math.pi / 2) * scaled_erfc(x / math.sqrt(2))
        step = mills * (log_normal_tail(x) - log_mass)
        x = max(x + step, 0.0)
        if abs(step) <= _CONVERGED * x:
            break
    return x


def inverse_erf(mass: float) -> float:
    """Return the y with `erf(y) = mass`, in [0, 1).

    Examples
    --------
    >>> inverse_erf(0), round(math.erf(inverse_erf(0.3)), 12)
    (0.0, 0.3)
    """
    if mass < _TINY:
        return mass * math.sqrt(math.pi) / 2
    y = -normal_end((1 - mass) / 2) / math.sqrt(2)
    if mass < _HALF:  # the start lost digits
        for _ in range(_STEPS):
            y += (mass - math.erf(y)) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y
