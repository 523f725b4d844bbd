"""Gaussian noise: its law, its curve of privacy, and what it takes to spend an (epsilon, delta).

The noise is `round(scale * Z)`, Z standard normal. On a total that moves by at most Delta, a scale
sigma has mu = Delta / sigma. Let x = epsilon/mu - mu/2, phi the normal density, Phi its integral
and R(s) = Phi(-s)/phi(s). Then

    delta(epsilon, mu) = phi(x) [R(x) - R(x + mu)],  1 - delta = phi(x) [R(-x) + R(x + mu)]

is the curve of Balle and Wang (2018, Theorem 8). Its roots are found by Newton steps, and kept only
once `gaussian_delta`, an upper bound of the curve without cancellation, finds them private.
"""

import math
import sys
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.errors import CalibrationError, quote
from dpframe.privacy import normal
from dpframe.privacy.amounts import (
    Amount,
    as_float,
    check_delta,
    check_epsilon,
    exact,
    float_below,
    round_up,
)
from dpframe.privacy.half_widths import half_step, normal_quantile
from dpframe.privacy.law import Law
from dpframe.privacy.noise import Curve, half
from dpframe.privacy.noise_sum import NoiseSum

# from this scale on, rounding a normal adds 1/12 to its variance, to the last bit
_WIDE = 2.0
GAUSSIAN_CURVE = Curve(peak=400, reach=5, energy=lambda z: z * z / 2, offset=half)


class Gaussian(Law):
    """The rounded Gaussian: `round(scale * Z)`, Z standard normal."""

    __slots__ = ()
    name = "gaussian"
    title = "Gaussian"
    norm = 2
    needs_delta = True
    curve = GAUSSIAN_CURVE

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return `Phi(-(m - 1/2) / scale)`: the half is the rounding."""
        # slow to import, and not always needed
        from scipy import special

        return np.asarray(special.erfc((np.asarray(m) - 0.5) / scale / math.sqrt(2)) / 2)

    def quantile(self, level: float) -> float:
        """Return the quantile of a normal, `Phi^-1((1 + level) / 2)`."""
        return normal_quantile(level)

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return `q sd`, with q the quantile, and half of the largest `|c_b|` where it may matter.

        By so much a sum of rounded noises moves with one integer. Its steps can lie so that the
        normal quantile alone misses a little more than it says.
        """
        width = self.quantile(level) * noise.deviation
        return width if noise.smooth else width + half_step(noise, self)

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return this law: a sum of normals is normal."""
        return self

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return `-z^2 / 2`."""
        return z**2 / -2

    def distance(self, exponent: float) -> float:
        """Return `sqrt(2 exponent)`."""
        return math.sqrt(2 * exponent)

    def continuous_deviation(self, sigma: float) -> float:
        """Return sigma: rounding adds next to nothing."""
        return sigma

    def _deviation(self, scale: float) -> float:
        """Return the root of `sum_k (2 k - 1) P(|Z| > (k - 1/2) / scale)`, k = 1, 2, ...

        From scale 2 on, that sum is `scale**2 + 1/12` to more digits than a float has: by Poisson
        summation, the difference is of the order of `4 scale**2 exp(-2 pi**2 scale**2)`.
        """
        if scale >= _WIDE:
            return math.sqrt(scale**2 + 1 / 12)
        tails = (math.erfc((k - 0.5) / scale / math.sqrt(2)) for k in range(1, 40))
        return math.sqrt(sum((2 * k - 1) * tail for k, tail in enumerate(tails, 1)))

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        return math.erfc((a + 0.5) / scale / math.sqrt(2))

    def _missed_by_each(self, level: float, cells: int) -> float:
        """Return `1 - level^(1 / d)`, which is enough under any correlation (Sidak 1967)."""
        return -math.expm1(math.log(level) / cells)


GAUSSIAN = Gaussian()
"""The rounded Gaussian, whose scale is that of the Gaussian."""

# bound on the relative error of delta and 1 - delta as computed here
_DELTA_ERROR = 2.0**-44
# deltas are computed times 2**1000: no digit is lost to underflow
_SHIFT = 1000
# this many standard deviations away, delta or 1 - delta is zero to any float
_FAR = 60
# of delta and 1 - delta, the one below it is the smaller
HALF = 0.5
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
    delta, others = _masses(abs(epsilon), mu) if mu > 0 else (0.0, 1.0)
    if epsilon < 0:
        delta = math.ldexp(-math.expm1(epsilon), _SHIFT) + math.exp(epsilon) * delta
        others *= math.exp(epsilon)
    return _mass_above(delta, others)


def check_finite(name: str, value: float, least: float = -math.inf) -> float:
    """Validate a finite number that is not below a least one, which is 0 or next to it."""
    number = as_float(value)
    if not math.isfinite(number) or number < least:
        rule = {0: " >= 0", -math.inf: ""}.get(least, " > 0")
        raise CalibrationError.about(name, f"must be a finite number{rule}", value)
    return number


def mills(s: float) -> float:
    """Mills ratio R(s) = Phi(-s) / phi(s); infinite for s below -37."""
    return math.sqrt(math.pi / 2) * normal.scaled_erfc(s / math.sqrt(2))


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
    others = math.ldexp(density * (mills(-x) + mills(x + mu)), -_SHIFT)
    return math.ldexp(1 - others, _SHIFT), others


def _mass_above(delta: float, others: float) -> float:
    """Round a mass up, given 2**1000 times itself and its complement, as computed."""
    if others < HALF:
        kept = math.floor(math.ldexp(others * (1 - _DELTA_ERROR), 53))
        return math.ldexp(2**53 - kept, -53)
    raised = delta * (1 + _DELTA_ERROR)
    mass = math.ldexp(raised, -_SHIFT)
    # a subnormal mass may have been rounded down, to 0 even
    return mass if math.ldexp(mass, _SHIFT) >= raised > 0 else math.nextafter(mass, 1.0)


# the constant of the classical formula (Dwork and Roth 2014)
STANDARD = 1.25
TIGHT = math.sqrt(2 * math.exp(8 / 9) / math.pi)
"""The constant in place of 1.25 in the accuracy note of 2020; about 1.2443."""
# far more than the rounding of the few operations below
_SLACK = 2.0**-40


def classical_mu(epsilon: float, delta: float, *, constant: float = STANDARD) -> float:
    """Return the Gaussian parameter of the classical mechanism, rounded down.

    It is `mu = epsilon / sqrt(2 ln(c / delta))`, with c = 1.25 or the tightened constant `TIGHT`,
    so that `sigma = Delta / mu` is (epsilon, delta)-DP for epsilon in (0, 1).

    Parameters
    ----------
    epsilon, delta
        Privacy parameters, epsilon in (0, 1) and delta in (0, 1).
    constant
        The constant c.

    Raises
    ------
    CalibrationError
        If epsilon is not in (0, 1), where the proof fails and noise can be too small, or delta is
        0.

    Examples
    --------
    >>> round(1 / classical_mu(0.5, 1e-6), 4)
    10.5976
    """
    level, mass = _floats_below(epsilon, delta)
    if not 0 < level < 1:
        rule = f'mechanism="classical" needs epsilon in (0, 1), got epsilon={quote(epsilon)}'
        cause = (
            "Elsewhere its noise can be too small (at (10, 1e-6) it is 0.979 of what is needed)."
        )
        text = f'{rule}. {cause} Use mechanism="gaussian".'
        raise CalibrationError(text, parameter="epsilon", value=epsilon)
    if mass == 0:
        raise CalibrationError.about("delta", 'for mechanism="classical" must be > 0', delta)
    return level / math.sqrt(2 * math.log(constant / mass)) * (1 - _SLACK)


def classical_sigma(
    epsilon: float, delta: float, sensitivity: float = 1.0, *, constant: float = STANDARD
) -> float:
    """Return the classical noise scale `Delta sqrt(2 ln(c / delta)) / epsilon`, rounded up.

    Raises
    ------
    CalibrationError
        As `classical_mu`.

    Examples
    --------
    >>> round(classical_sigma(0.999999, 1e-6), 3)
    5.299
    """
    return sensitivity / classical_mu(epsilon, delta, constant=constant)


def least_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return a lower bound on the scale of any (epsilon, delta)-DP Gaussian noise.

    It is `Delta / sqrt(2 epsilon)` where `0 < delta < 1/2 - 1 / sqrt(4 pi epsilon)`, and 0
    elsewhere (Balle and Wang 2018, Theorem 4, whose range of delta is corrected here).

    Examples
    --------
    >>> least_sigma(8, 1e-6)
    0.25
    """
    level, mass = float(check_epsilon(epsilon)), check_delta(delta)
    if level == 0 or not 0 < mass < 0.5 - 1 / math.sqrt(4 * math.pi * level):
        return 0.0
    return sensitivity / math.sqrt(2 * level)


def _floats_below(epsilon: Amount, delta: Amount) -> tuple[float, float]:
    """Round both down: a float names a fraction, and most floats are a little off it."""
    return float_below(check_epsilon(epsilon)), float_below(exact(check_delta(delta)))


# roots move to the private side by this part; they err by less than 1e-13
_MARGIN = 2.0**-40
# the conversions of pure epsilon are linear to the last bit below this
_SMALL = 1e-9
# of Newton; fewer than ten are needed
_MAX_STEPS = 60
# quadratic convergence: the step after one this small is lost in rounding
_CONVERGED = 1e-12


def gaussian_mu(epsilon: Amount, delta: Amount) -> float:
    """Find the largest mu such that mu-GDP implies (epsilon, delta)-DP.

    The root of ``delta(epsilon, mu) = delta`` (Balle and Wang 2018, Theorem 8), over 1 + 2**-40:
    ``gaussian_delta(epsilon, mu) <= delta`` holds for both amounts rounded down to floats. Answers
    are remembered: asking again is cheap.

    Parameters
    ----------
    epsilon, delta
        Finite and >= 0; in [0, 1). With delta = 0 no Gaussian noise is enough, and mu is 0.

    Raises
    ------
    CalibrationError
        If a parameter is out of range.

    Examples
    --------
    >>> round(gaussian_mu(1, 1e-6), 7)
    0.2367044
    """
    return _largest_mu(*_floats_below(epsilon, delta))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Find the smallest epsilon >= 0 such that mu-GDP implies (epsilon, delta)-DP.

    The root of ``delta(epsilon, mu) = delta (1 - 2**-41)``, or above 1/2 of the same for 1 - delta
    (Balle and Wang 2018, Theorem 8), rounded up: ``gaussian_delta(epsilon, mu) <= delta`` holds.
    Infinite if delta is 0 and mu is not, or near the largest float.

    Parameters
    ----------
    delta
        In [0, 1).
    mu
        Gaussian differential privacy parameter, finite and >= 0.

    Raises
    ------
    CalibrationError
        If a parameter is out of range.

    Examples
    --------
    >>> round(gaussian_epsilon(1e-6, 0.5), 6)
    2.254085
    """
    delta, mu = float_below(exact(check_delta(delta))), check_finite("mu", mu, least=0)
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    epsilon = _solve_epsilon(delta, mu) if delta > 0 else math.inf
    if epsilon > sys.float_info.max / 2:
        return math.inf

    def holds(candidate: float) -> bool:
        return gaussian_delta(float_below(exact(candidate)), mu) <= delta

    return round_up(epsilon, holds)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Find the least standard deviation of Gaussian noise that gives (epsilon, delta)-DP.

    ``sigma = sensitivity / gaussian_mu(epsilon, delta)``, rounded up until it holds exactly that
    ``sensitivity / sigma <= mu`` (Balle and Wang 2018, Algorithm 1). In the units of the totals.

    Parameters
    ----------
    epsilon, delta
        Finite and >= 0; in (0, 1).
    sensitivity
        Euclidean distance by which a privacy unit can move the totals, in their units; > 0.

    Raises
    ------
    CalibrationError
        If a parameter is out of range, delta is 0, or sigma would exceed the floats.

    Examples
    --------
    >>> round(gaussian_sigma(1, 1e-6), 6)
    4.224679
    """
    moved = check_finite("sensitivity", sensitivity, least=math.ulp(0.0))
    mu = gaussian_mu(epsilon, delta)
    if delta == 0:
        way_out = 'Give delta, or mechanism="laplace".'
        raise CalibrationError.about("delta", "must be > 0 for Gaussian noise", delta, way_out)
    start = moved / mu if mu > 0 else math.inf
    return round_up(start, lambda sigma: Fraction(moved) <= Fraction(mu) * Fraction(sigma))


def mu_of_pure(epsilon: float | Fraction) -> float:
    """Find the smallest mu such that every epsilon-DP mechanism is mu-GDP.

    ``mu = 2 Phi^-1(exp(epsilon) / (1 + exp(epsilon)))``, rounded up by a factor 1 + 2**-40: the
    trade-off curve of mu-GDP, convex, touches the kink of that of epsilon-DP and lies below it
    (Dong, Roth and Su 2022).

    Parameters
    ----------
    epsilon
        Finite and >= 0.

    Raises
    ------
    CalibrationError
        If epsilon is out of range.

    Examples
    --------
    >>> round(mu_of_pure(1), 6)
    1.232035
    """
    # what a ledger has may be below all floats
    charged = isinstance(epsilon, Fraction) and 0 <= epsilon.numerator <= epsilon.denominator
    fraction = epsilon if charged else check_epsilon(epsilon)
    if fraction == 0:
        return 0.0
    number = round_up(float(fraction), lambda candidate: candidate >= fraction)
    if number < _SMALL:
        mu = math.sqrt(math.pi / 2) * number
    elif number < 1:
        mu = _mu_without_epsilon(math.tanh(number / 2))
    else:
        mu = 2 * normal.end_of_log_tail(-number - math.log1p(math.exp(-number)))
    return math.nextafter(mu * (1 + _MARGIN), math.inf)


def pure_of_mu(mu: float) -> float:
    """Find the largest epsilon such that every epsilon-DP mechanism is mu-GDP.

    ``epsilon = log(Phi(mu/2) / Phi(-mu/2))``, the inverse of `mu_of_pure`, rounded down by a factor
    1 + 2**-40 and at most the largest float (Dong, Roth and Su 2022).

    Parameters
    ----------
    mu
        Gaussian differential privacy parameter, finite and >= 0.

    Raises
    ------
    CalibrationError
        If mu is out of range.

    Examples
    --------
    >>> round(pure_of_mu(1), 6)
    0.806965
    """
    mu = check_finite("mu", mu, least=0)
    if mu < _SMALL:
        epsilon = mu / math.sqrt(math.pi / 2)
    elif mu < 1:
        epsilon = 2 * math.atanh(math.erf(mu / math.sqrt(8)))
    else:
        log_tail = normal.log_normal_tail(mu / 2)
        epsilon = math.log1p(-math.exp(log_tail)) - log_tail
    return math.nextafter(min(epsilon, sys.float_info.max) / (1 + _MARGIN), 0.0)


@lru_cache(maxsize=4096)
def _largest_mu(epsilon: float, delta: float) -> float:
    """Solve for mu and make sure that it is private."""
    root = _solve_mu(epsilon, delta) if epsilon > 0 and delta > 0 else _mu_without_epsilon(delta)
    mu, margin = root / (1 + _MARGIN), _MARGIN
    # among subnormal numbers the margin is lost
    while gaussian_delta(epsilon, mu) > delta:
        margin *= 2
        mu = math.nextafter(root / (1 + margin), 0.0)
    return mu


def _mu_without_epsilon(delta: float) -> float:
    """Evaluate the root in mu at epsilon = 0, where delta = erf(mu / sqrt(8))."""
    return 2 * math.sqrt(2) * normal.inverse_erf(delta)


def _mu_below(epsilon: float, delta: float) -> float:
    """Bound the root in mu from below: delta < Phi(-x), and delta decreases in epsilon."""
    x = -normal.normal_end(delta)
    reach = math.hypot(x, math.sqrt(2) * math.sqrt(epsilon))
    return max(epsilon / (reach + x) * 2 if x > 0 else reach - x, _mu_without_epsilon(delta))


def _log_mass(x: float, mu: float, of_rest: bool) -> tuple[float, float]:
    """Return log delta, or log(1 - delta), and the derivative of log mu with respect to it."""
    log_density = -x * x / 2 - math.log(SQRT_2PI)
    if of_rest:
        ratio = mills(-x) + mills(x + mu)
        return log_density + math.log(ratio), -ratio / mu
    slope = mills_slope(x, mu)
    return log_density + math.log(slope) + math.log(mu), slope


def _solve_mu(epsilon: float, delta: float) -> float:
    """Solve for log mu on log delta, or on log(1 - delta) from delta = 1/2 on."""
    of_rest = delta >= HALF
    target = math.log1p(-delta) if of_rest else math.log(delta)
    mu = _mu_below(epsilon, delta)
    for _ in range(_MAX_STEPS):
        x = epsilon / mu - mu / 2
        # the root has x < 1 (x > -1 below 1/2); elsewhere only the direction of the step matters
        x = min(x, 1.0) if of_rest else max(x, -1.0)
        log_mass, derivative = _log_mass(x, mu, of_rest)
        step = max(-2.0, min(2.0, (target - log_mass) * derivative))
        mu *= math.exp(step)
        if abs(step) < _CONVERGED:
            break
    return mu


def _solve_epsilon(delta: float, mu: float) -> float:
    """Solve for an x that gives slightly less than delta; then epsilon = mu (x + mu / 2)."""
    of_rest = delta >= HALF
    target = math.log1p(-delta) + 2.0**-41 if of_rest else math.log(delta) - 2.0**-41
    # Newton steps from above converge: log delta and log(1 - delta) are concave in x
    x = max(-normal.normal_end(delta), -mu / 2)
    for _ in range(_MAX_STEPS):
        log_mass, derivative = _log_mass(x, mu, of_rest)
        step = (log_mass - target) * derivative / mills(x + mu)
        x = max(x + step, -mu / 2)
        if abs(step) < _CONVERGED:
            break
    return mu * (x + mu / 2)
