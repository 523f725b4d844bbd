"""The classical calibration of Gaussian noise, kept for comparison.

It holds for epsilon in (0, 1) only (Balle and Wang 2018, Theorem 1 and section 2.3), and it never
needs less noise than the analytic calibration.
"""

import math

from dpframe.errors import CalibrationError, shown
from dpframe.privacy.amounts import check_delta, check_epsilon

STANDARD = 1.25
TIGHT = math.sqrt(2 * math.exp(8 / 9) / math.pi)
"""The constant in place of 1.25 in the accuracy note of 2020; about 1.2443."""

_SLACK = 2.0**-40  # far more than the rounding of the few operations below


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
    level, mass = float(check_epsilon(epsilon)), check_delta(delta)
    if not 0 < level < 1:
        raise CalibrationError(
            f'mechanism="classical" needs epsilon in (0, 1), got epsilon={shown(epsilon)}: '
            "elsewhere "
            "its noise can be too small (at (10, 1e-6) it is 0.979 of what is needed). Use "
            'mechanism="gaussian".'
        )
    if mass == 0:
        raise CalibrationError('mechanism="classical" needs delta > 0, got delta=0. Give delta.')
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


def sigma_without_epsilon(delta: float, sensitivity: float = 1.0) -> float:
    """Return `Delta / (2 delta)`, which is (0, delta)-DP (Balle and Wang 2018, Theorem 2).

    The analytic calibration at epsilon 0, `sigma = Delta / (2 Phi^-1((1 + delta) / 2))`, needs
    less.

    Raises
    ------
    CalibrationError
        If delta is not in (0, 1).
    """
    mass = check_delta(delta)
    if mass == 0:
        raise CalibrationError("delta must be > 0 where epsilon is 0, got delta=0.")
    return sensitivity / (2 * mass) * (1 + _SLACK)


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
