"""Calibration: reference values, directions, inverses, limits and wrong input."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from dpframe.errors import CalibrationError
from dpframe.privacy.amounts import round_up
from dpframe.privacy.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_sigma,
    mu_of_pure,
    pure_of_mu,
)


def test_reference_values() -> None:
    assert gaussian_mu(1, 1e-6) == pytest.approx(0.2367044, abs=5e-8)
    assert gaussian_sigma(1, 1e-6) == pytest.approx(4.224679, abs=5e-7)


def test_mu_at_delta_zero_is_zero() -> None:
    assert gaussian_mu(3, 0) == 0
    assert gaussian_mu(0, 0) == 0


def test_epsilon_at_the_limits() -> None:
    assert gaussian_epsilon(0, 0) == 0
    assert gaussian_epsilon(1e-6, 0) == 0
    assert gaussian_epsilon(0, 1e-9) == math.inf
    assert gaussian_epsilon(1e-6, 1e150) == pytest.approx(5e299, rel=1e-12)  # about mu^2 / 2
    assert gaussian_epsilon(1e-6, 1e155) == math.inf
    assert 1e154 < gaussian_mu(1.7e308, 1e-6) < 1.9e154
    assert gaussian_epsilon(0.39, 1.0) == 0  # the distance of the two normals is 0.3829
    assert gaussian_epsilon(0.38, 1.0) > 0


def test_delta_at_the_limits() -> None:
    assert gaussian_delta(2, 0) == 0
    assert gaussian_delta(-2, 0) == pytest.approx(1 - math.exp(-2), rel=1e-12)
    assert 0 < gaussian_delta(1e6, 1.0) == 5e-324  # a Gaussian never has delta = 0
    assert gaussian_delta(1.0, 1e6) == 1
    assert gaussian_delta(-1e6, 1e-9) == 1


@pytest.mark.parametrize("sensitivity", [1.0, 0.37, 5.0, 1e-200, 7e150])
def test_sigma_is_the_first_float_that_is_private(sensitivity: float) -> None:
    for epsilon, delta in [(0.0, 0.01), (0.3, 1e-9), (7.1, 1e-5), (1.0, 0.7)]:
        sigma, mu = gaussian_sigma(epsilon, delta, sensitivity), gaussian_mu(epsilon, delta)
        assert Fraction(sensitivity) / Fraction(sigma) <= Fraction(mu)
        assert Fraction(sensitivity) / Fraction(math.nextafter(sigma, 0)) > Fraction(mu)


def test_corrected_lower_bound_on_sigma() -> None:
    # for delta < 1/2 - 1/sqrt(4 pi epsilon), any private sigma is >= 1 / sqrt(2 epsilon)
    for epsilon in [0.4, 1.0, 6.0, 80.0, 5e3]:
        bound = 1 / math.sqrt(2 * epsilon)
        largest_delta = 0.5 - 1 / math.sqrt(4 * math.pi * epsilon)
        for share in [1e-6, 0.3, 0.999]:
            assert gaussian_sigma(epsilon, share * largest_delta) >= bound


def test_published_lower_bound_on_sigma_does_not_hold() -> None:
    # as printed, Theorem 4 of Balle and Wang (2018) has a factor exp(-3 epsilon) in it
    epsilon, delta = 1.0, 0.4
    assert delta < 0.5 - math.exp(-3 * epsilon) / math.sqrt(4 * math.pi * epsilon)
    sigma = gaussian_sigma(epsilon, delta)
    assert sigma == pytest.approx(0.587, abs=5e-4)
    assert sigma < 1 / math.sqrt(2 * epsilon)
    textbook = norm.cdf(0.5 / sigma - sigma) - math.e * norm.cdf(-0.5 / sigma - sigma)
    assert textbook == pytest.approx(delta, rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.02, 0.7, 3.3, 9.0])
def test_pure_curve_lies_above_the_gaussian_one(epsilon: float) -> None:
    # trade-off functions: epsilon-DP forbids less type II error than `pure`, mu-GDP than `gaussian`
    level = np.append(np.linspace(1e-6, 1 - 1e-6, 2001), 1 / (1 + math.exp(epsilon)))
    pure = np.maximum(1 - math.exp(epsilon) * level, math.exp(-epsilon) * (1 - level))

    def gaussian(mu: float) -> np.ndarray:
        return np.asarray(norm.cdf(norm.isf(level) - mu))

    mu = mu_of_pure(epsilon)
    assert (gaussian(mu) <= pure + 1e-15).all()
    assert not (gaussian(mu * 0.999) <= pure + 1e-15).all()


def test_conversions_are_inverse_and_meet_their_limits() -> None:
    for epsilon in [1e-300, 1e-7, 0.4, 1.0, 26.0, 5e3, 1e6, 1e300]:
        assert pure_of_mu(mu_of_pure(epsilon)) == pytest.approx(epsilon, rel=3e-12)
    assert mu_of_pure(0) == pure_of_mu(0) == 0
    assert mu_of_pure(Fraction(1, 3)) == pytest.approx(mu_of_pure(1 / 3), rel=1e-15)
    assert mu_of_pure(Fraction(1, 10**400)) > 0
    assert math.isfinite(pure_of_mu(1e200))


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-9, 1.0, 1e6, 1e100, 1e300])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-6, 0.5, 1 - 2**-53])
def test_extreme_values_fail_nowhere(epsilon: float, delta: float) -> None:
    with np.errstate(all="raise"):
        mu = gaussian_mu(epsilon, delta)
        assert 0 < mu < math.inf
        assert gaussian_delta(epsilon, mu) <= delta
        assert gaussian_epsilon(delta, mu) <= epsilon
        assert 0 <= gaussian_delta(-epsilon, mu) <= 1
        assert gaussian_epsilon(delta, max(epsilon, 5e-324)) >= 0
        assert 0 <= pure_of_mu(epsilon) <= 1.8e308
        assert mu_of_pure(epsilon) >= 0


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1.8023017878917913e69, 0.9912105544129626),
        (1.1892637857796449e268, 0.9999999906654443),
        (6.835797088542622e141, 2.850853655167275e-204),
        (5.495915410825059e210, 6.105539810232699e-228),
    ],
)
def test_mu_is_tight_where_x_is_lost_in_rounding(epsilon: float, delta: float) -> None:
    # mu = sqrt(2 epsilon + x^2) - x with |x| < 40; these budgets make unguarded steps wander
    root = gaussian_mu(epsilon, delta) * (1 + 2**-40)
    assert root == pytest.approx(math.sqrt(2 * epsilon), rel=2e-14)


def test_round_up_starts_at_the_value_and_stops_early() -> None:
    assert round_up(3.0, lambda side: side * side >= 9) == 3.0
    third = round_up(1 / 3, lambda side: 3 * Fraction(side) >= 1)
    assert third == math.nextafter(1 / 3, 1)
    far = round_up(1.0, lambda side: side >= 1 + 1e-6)
    assert 1 + 1e-6 <= far < 1 + 2e-6
    for ulps in range(1, 200):
        needed = 1 + ulps * math.ulp(1.0)
        found = round_up(1.0, lambda side, needed=needed: side >= needed)
        assert needed - 1 <= found - 1 < 2 * (needed - 1)
    assert round_up(0.0, lambda side: side > 0) == 5e-324


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (gaussian_mu, (-1, 1e-6), r"epsilon must be a finite number >= 0, got epsilon=-1"),
        (gaussian_mu, (math.nan, 1e-6), "epsilon must be .* got epsilon=nan"),
        (gaussian_mu, (math.inf, 1e-6), "epsilon must be .* got epsilon=inf"),
        (gaussian_mu, (1, 1), r"delta must be in \[0, 1\), got delta=1"),
        (gaussian_mu, (1, -1e-9), "delta must be .* got delta=-1e-09"),
        (gaussian_mu, (1, math.nan), "delta must be .* got delta=nan"),
        (gaussian_mu, ("one", 1e-6), "epsilon must be a number, or a text"),
        (gaussian_epsilon, (1.5, 1), "delta must be .* got delta=1.5"),
        (gaussian_epsilon, (1e-6, -0.5), "mu must be a finite number >= 0, got mu=-0.5"),
        (gaussian_epsilon, (1e-6, math.inf), "mu must be .* got mu=inf"),
        (gaussian_delta, (math.nan, 1), "epsilon must be a finite number, got epsilon=nan"),
        (gaussian_delta, (10**400, 1), "epsilon must be a finite number"),
        (gaussian_delta, (1, True), "mu must be .* got mu=True"),
        (gaussian_delta, (1, "x"), "mu must be .* got mu='x'"),
        (gaussian_sigma, (1, 0), 'got delta=0. Give delta, or mechanism="laplace"'),
        (
            gaussian_sigma,
            (1, 1e-6, 0),
            "sensitivity must be a finite number > 0, got sensitivity=0",
        ),
        (gaussian_sigma, (1, 1e-6, -2), "sensitivity must be .* got sensitivity=-2"),
        (gaussian_sigma, (0, 5e-324), "no float is enough noise. Give a larger one"),
        (gaussian_sigma, (1, 1e-6, 1e308), "no float is enough noise"),
        (mu_of_pure, (-0.1,), "epsilon must be .* got epsilon=-0.1"),
        (mu_of_pure, (math.nan,), "epsilon must be .* got epsilon=nan"),
        (pure_of_mu, (-3.0,), "mu must be .* got mu=-3.0"),
        (pure_of_mu, (math.nan,), "mu must be .* got mu=nan"),
        (round_up, (1.0, lambda side: False), "no float is enough noise"),
    ],
)
def test_wrong_input_is_named(
    function: Callable[..., float], arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(CalibrationError, match=message):
        function(*arguments)
