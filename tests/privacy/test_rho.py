"""Zero-concentrated privacy of pure noise, against the divergences of randomized response."""

from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.plan import plan as planning
from dpframe.privacy.amounts import PrivacyLoss, Spend, rho_of_pure
from dpframe.privacy.calibration import pure_of_mu, pure_of_rho


def as_mp(value):
    return mp.mpf(value.numerator) / value.denominator


def rho_of(epsilon):
    return epsilon * mp.tanh(epsilon / 2)


@pytest.mark.parametrize("epsilon", [0.001, 0.3, 1.0, 2.5, 6.0, 20.0])
def test_randomized_response_is_rho_zcdp(epsilon):
    """Its Renyi divergence of order a is at most a times rho, and a rho a little less is short."""
    with mp.workdps(60):
        e = mp.mpf(epsilon)
        p, q = 1 / (1 + mp.exp(-e)), 1 / (1 + mp.exp(e))
        for order in ("1.0000001", "1.01", "1.5", "2", "7", "100", "10000"):
            a = mp.mpf(order)
            divergence = mp.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
            assert divergence <= a * rho_of(e)
            if order == "1.0000001":
                assert divergence > a * rho_of(e) * (1 - mp.mpf("1e-5"))


@given(st.floats(1e-150, 1e30))
def test_rho_of_pure_noise_is_rounded_up_and_close(epsilon):
    with mp.workdps(120):
        found, true = as_mp(rho_of_pure(Fraction(epsilon))), rho_of(mp.mpf(epsilon))
        assert true <= found <= true * (1 + mp.mpf(2) ** -45)
        shown = mp.mpf(PrivacyLoss(epsilon=Fraction(epsilon)).rho)
        assert true <= shown <= true * (1 + mp.mpf(2) ** -44)


@given(st.floats(1e-300, 1e30))
def test_the_epsilon_of_a_rho_is_rounded_down_and_close(rho):
    with mp.workdps(400):
        epsilon = mp.mpf(pure_of_rho(Fraction(rho)))
        assert rho_of(epsilon) <= rho
        assert rho_of(epsilon * (1 + mp.mpf(2) ** -40)) > rho


@pytest.mark.parametrize("rho", [5e-324, 2.0**-1040, 2.0**99])
def test_epsilons_of_rhos_at_the_ends(rho):
    assert rho_of_pure(Fraction(pure_of_rho(Fraction(rho)))) <= Fraction(rho)
    assert pure_of_rho(Fraction(2.0**99)) > 2.0**98


@pytest.mark.parametrize("rho", [2.0**-8, 0.125, 1.0, 3.0])
def test_a_rho_allows_more_pure_noise_than_the_mu_of_it(rho):
    declaration = type("Declaration", (), {"ledger": None})
    allowed = planning.allowance_of(Spend.of(rho=rho), declaration)
    assert allowed.mu_squared == 2 * Fraction(rho)
    assert allowed.epsilon == Fraction(pure_of_rho(Fraction(rho)))
    assert rho_of_pure(allowed.epsilon) <= Fraction(rho)
    assert allowed.epsilon > 1.2 * pure_of_mu((2 * rho) ** 0.5)
    of_mu = planning.allowance_of(Spend.of(mu=0.7), declaration).epsilon
    assert of_mu <= pure_of_mu(0.7)
    assert of_mu == pytest.approx(pure_of_mu(0.7))
