"""Pure and Gaussian noise in one charge: the exact curve of privacy of both together.

Nothing with a pure epsilon_0 is easier to tell apart than randomized response (Kairouz, Oh and
Viswanath 2015), nothing with a mu than a normal that moves by mu. Both together have the delta

    p delta(epsilon - epsilon_0, mu) + (1 - p) delta(epsilon + epsilon_0, mu) ,

with p = 1 / (1 + exp(-epsilon_0)) and delta(epsilon, mu) as of Gaussian noise alone.
"""

import math
from fractions import Fraction
from functools import lru_cache

from dpframe.privacy.amounts import (
    PrivacyLoss,
    exact,
    float_above,
    float_below,
    root_below,
    round_up,
)
from dpframe.privacy.gaussian import gaussian_delta, gaussian_epsilon, mu_of_pure

_SLACK = 2.0**-44  # far more than the rounding of the few operations on deltas
_NEAR = 2.0**-40  # how much more than the least epsilon is returned


def delta_of_loss(epsilon: Fraction, loss: PrivacyLoss) -> float:
    """Bound the delta at an epsilon of the pure and Gaussian parts of a loss from above.

    Examples
    --------
    >>> loss = PrivacyLoss(epsilon=Fraction(2, 5), mu_squared=Fraction(1, 25))
    >>> round(delta_of_loss(Fraction(1), loss), 9)
    6.15e-05
    """
    mu = loss.mu
    nearer, farther = (
        gaussian_delta(float_below(epsilon + moved), mu) for moved in (-loss.epsilon, loss.epsilon)
    )
    likely = 1 / (1 + math.exp(-float(loss.epsilon)))
    delta = likely * nearer + (1 - likely) * farther
    return min(math.nextafter(delta * (1 + _SLACK), math.inf), 1.0)


@lru_cache(maxsize=256)  # the tables of a release, and its certificates, ask for the same
def epsilon_of_loss(delta: float, loss: PrivacyLoss) -> float:
    """Return an epsilon at a delta of the pure and Gaussian parts of a loss, next to the least.

    Examples
    --------
    >>> loss = PrivacyLoss(epsilon=Fraction(2, 5), mu_squared=Fraction(1, 25))
    >>> round(epsilon_of_loss(6.15e-5, loss), 5)
    1.0
    """
    alone = gaussian_epsilon(delta, loss.mu)
    if not loss.epsilon or math.isinf(alone):
        return alone

    def is_enough(candidate: float) -> bool:
        return delta_of_loss(exact(candidate), loss) <= delta

    low, high = 0.0, round_up(alone + float_above(loss.epsilon), is_enough)
    if is_enough(low):
        return low
    while high - low > high * _NEAR:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def hides_as_well(loss: PrivacyLoss, epsilon: Fraction, mu_squared: Fraction) -> bool:
    """Tell whether a loss has at an epsilon no more delta than Gaussian noise alone of some mu."""
    return delta_of_loss(epsilon, loss) <= _delta_alone(epsilon, mu_squared)


@lru_cache(maxsize=64)  # one search asks it of many losses
def _delta_alone(epsilon: Fraction, mu_squared: Fraction) -> float:
    return gaussian_delta(float_below(epsilon), root_below(mu_squared))


def gaussian_price(loss: PrivacyLoss) -> Fraction:
    """Return the square of the mu that the pure and Gaussian parts of a loss have together."""
    if not loss.epsilon:
        return loss.mu_squared
    return loss.mu_squared + _mu_squared_of_pure(loss.epsilon)


def mu_of_loss(loss: PrivacyLoss) -> float:
    """Return the mu that the pure and Gaussian parts of a loss have together, rounded up."""
    return PrivacyLoss(mu_squared=gaussian_price(loss)).mu


@lru_cache(maxsize=2**16)
def _mu_squared_of_pure(epsilon: Fraction) -> Fraction:
    return Fraction(mu_of_pure(epsilon)) ** 2
