"""The curve of Gaussian differential privacy: delta at every epsilon, without cancellation.

Let x = epsilon/mu - mu/2, phi the normal density, Phi its integral and R(s) = Phi(-s)/phi(s). Then

    delta(epsilon, mu) = phi(x) [R(x) - R(x + mu)],  1 - delta = phi(x) [R(-x) + R(x + mu)]

is the curve of Balle and Wang (2018, Theorem 8). What is returned is an upper bound of it.
"""

import math
from fractions import Fraction

import numpy as np

from dpframe.errors import CalibrationError
from dpframe.privacy.amounts import as_float

_DELTA_ERROR = 2.0**-44  # bound on the relative error of delta and 1 - delta as computed here
_SHIFT = 1000  # deltas are computed times 2**1000: no digit is lost to underflow
_FAR = 60  # this many standard deviations away, delta or 1 - delta is zero to any float
HALF = 0.5  # of delta and 1 - delta, the one below it is the smaller
SQRT_2PI = math.sqrt(2 * math.pi)

# double-exponential rule for smooth integrands that decay on (0, inf)
_GRID = np.arange(-48, 65) / 16
_NODES = np.exp(_GRID - np.exp(-_GRID))
_WEIGHTS = _NODES * (1 + np.exp(-_GRID)) / 16


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Bound the delta of mu-GDP at epsilon from above.

    ``delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``, with Phi the normal
    distribution function (Balle and Wang 2018, Theorem 8). What is returned lies in [0, 1]; the
    smaller of delta and 1 - delta is off by less than 1.2e-13 of itself and an ulp of the result,
    which is above 0 wherever delta is.

    Parameters
    ----------
    epsilon
        Any finite number. Below 0, ``1 - delta(-e, mu) = exp(-e) (1 - delta(e, mu))``.
    mu
        Gaussian differential privacy parameter, finite and >= 0.

    Raises
    ------
    CalibrationError
        If a parameter is out of range.

    Examples
    --------
    >>> round(gaussian_delta(1, 0.5), 9)
    0.006829595
    """
    epsilon, mu = check_finite("epsilon", epsilon), check_finite("mu", mu, least=0)
    if mu == 0 and epsilon >= 0:
        return 0.0
    delta, rest = _masses(abs(epsilon), mu) if mu > 0 else (0.0, 1.0)
    if epsilon < 0:
        delta = math.ldexp(-math.expm1(epsilon), _SHIFT) + math.exp(epsilon) * delta
        rest *= math.exp(epsilon)
    return _mass_above(delta, rest)


def check_finite(name: str, value: float, least: float = -math.inf) -> float:
    """Validate a finite number that is not below a least one, which is 0 or next to it."""
    number = as_float(value)
    if not math.isfinite(number) or number < least:
        rule = {0: " >= 0", -math.inf: ""}.get(least, " > 0")
        raise CalibrationError.about(name, f"must be a finite number{rule}", value)
    return number


def mills(s: float) -> float:
    """Mills ratio R(s) = Phi(-s) / phi(s); infinite for s below -37."""
    from scipy import special  # slow to import, and not always needed

    return math.sqrt(math.pi / 2) * float(special.erfcx(s / math.sqrt(2)))


def mills_slope(x: float, mu: float) -> float:
    """Evaluate (R(x) - R(x + mu)) / mu without cancellation, for x >= -1 and mu > 0."""
    if mu >= max(1.0, x) / 2:
        return (mills(x) - mills(x + mu)) / mu
    rise = max(mu, 1e-20)  # the slope does not change below
    # R(x) - R(x + mu) is the integral of exp(-t^2/2 - x t) (1 - exp(-mu t)) over t > 0
    scale = 1 / (2 + max(x, 0.0))
    t = scale * _NODES
    return float(_WEIGHTS @ (np.exp(-t * (x + t / 2)) * -np.expm1(-rise * t))) * scale / rise


def _scaled_density(x: Fraction) -> float:
    """Evaluate phi(x) times 2**1000."""
    exponent = x * x / 2
    leading = float(exponent)
    root = math.ldexp(math.exp(-leading / 2), _SHIFT // 2)
    return root * root * (1 - float(exponent - Fraction(leading))) / SQRT_2PI


def _masses(epsilon: float, mu: float) -> tuple[float, float]:
    """Compute delta times 2**1000, and 1 - delta, for epsilon >= 0; the smaller is accurate."""
    # exact: phi(x) turns an error in x into a relative error |x| times as large
    offset = Fraction(epsilon) / Fraction(mu) - Fraction(mu) / 2
    if abs(offset) > _FAR:
        return (0.0, 1.0) if offset > 0 else (math.ldexp(1.0, _SHIFT), 0.0)
    x, density = float(offset), _scaled_density(offset)
    if x > -1:
        delta = density * mills_slope(x, mu) * mu
        if delta <= math.ldexp(HALF, _SHIFT):
            return delta, 1 - math.ldexp(delta, -_SHIFT)
    rest = math.ldexp(density * (mills(-x) + mills(x + mu)), -_SHIFT)
    return math.ldexp(1 - rest, _SHIFT), rest


def _mass_above(delta: float, rest: float) -> float:
    """Round a mass up, given 2**1000 times itself and its complement, as computed."""
    if rest < HALF:
        kept = math.floor(math.ldexp(rest * (1 - _DELTA_ERROR), 53))
        return math.ldexp(2**53 - kept, -53)
    raised = delta * (1 + _DELTA_ERROR)
    mass = math.ldexp(raised, -_SHIFT)
    # a subnormal mass may have been rounded down, to 0 even
    return mass if math.ldexp(mass, _SHIFT) >= raised > 0 else math.nextafter(mass, 1.0)
