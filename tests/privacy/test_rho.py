"""Zero-concentrated privacy of pure noise, against the divergences of randomized response."""

from fractions import Fraction

import mpmath as mp
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plans import parts_of

import dpframe as dpf
from dpframe.plan import plan as planning
from dpframe.privacy.amounts import PrivacyLoss, Spend, rho_of_laplace, rho_of_pure
from dpframe.privacy.gaussian import pure_of_mu
from dpframe.privacy.laplace import laplace_of_rho, pure_of_rho

ORDERS = ("1.0000001", "1.001", "1.1", "1.5", "2", "3", "7", "30", "1000")


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


def divergence_of_steps(t, moved, order):
    """Renyi divergence of discrete Laplace noise of scale 1 / t that moves by so many steps."""
    ends = mp.exp((order - 1) * t * moved) + mp.exp(-order * t * moved)
    inner = mp.fsum(mp.exp(-t * (order * i + (1 - order) * (moved - i))) for i in range(1, moved))
    whole = mp.tanh(t / 2) * (ends / -mp.expm1(-t) + inner)
    return mp.log(whole) / (order - 1)


def largest_rho(t, moved):
    """The largest of all divergences, each divided by its order."""
    return max(divergence_of_steps(t, moved, mp.mpf(order)) / mp.mpf(order) for order in ORDERS)


def rho_of_continuous(epsilon, _):
    """What the continuous law costs, for which integers are too coarse."""
    return epsilon + mp.exp(-epsilon) - 1


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("moved", [1, 2, 3, 5, 10, 25, 50])
@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "0.5", "1", "2", "4"])
def test_laplace_noise_is_rho_zcdp_of_all_orders_and_no_less(epsilon, moved):
    with mp.workdps(50):
        e = mp.mpf(epsilon)
        true = largest_rho(e / moved, moved)
        found = as_mp(rho_of_laplace(Fraction(epsilon), float(e / moved)))
        assert true <= found <= true * (1 + mp.mpf("1e-6"))
        assert rho_of_continuous(e, moved) < true  # a fault that is caught


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 12), st.floats(0.01, 3)), min_size=1, max_size=3))
def test_several_integers_cost_no_more_than_one_that_moves_as_far(moves):
    """Each is moved by some steps of its own size: all noises but the narrowest cost less."""
    with mp.workdps(30):
        rho = mp.fsum(largest_rho(mp.mpf(t), moved) for moved, t in moves if moved)
        epsilon = sum((moved * Fraction(t) for moved, t in moves), start=Fraction(0))
        assert rho <= as_mp(rho_of_laplace(epsilon, max(t for _, t in moves)))


@given(st.floats(1e-300, 1e6), st.floats(1, 1e12))
def test_the_epsilon_of_noise_of_a_rho_is_rounded_down_and_close(rho, steps):
    with mp.workdps(60):
        epsilon = mp.mpf(laplace_of_rho(Fraction(rho), steps))
        assert epsilon >= pure_of_rho(Fraction(rho))

        def cost(e):
            t = e / mp.mpf(steps)
            return e - t / mp.sinh(t) * -mp.expm1(-e)

        if 0.01 < epsilon < 99:
            assert cost(epsilon) <= rho < cost(epsilon * (1 + mp.mpf(2) ** -30))


def declared(**facts):
    frame = pd.DataFrame({"g": ["a"], "x": [1], "u": [1]})
    given = {"keys": {"g": ["a", "b"]}, "bounds": {"x": (0, 3)}, "privacy_unit": "u"} | facts
    frame.dp.declare(**given)
    return frame


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(("rho", "most"), [(0.05, 5), (0.5, 2), (0.5, 3), (2.0, 4)])
def test_planned_noise_costs_the_rho_between_all_neighbors(rho, most, neighboring):
    frame = declared(max_rows=most, neighboring=neighboring)
    asked = frame.dp.declaration, {None: dpf.count()}, Spend.of(rho=rho), "laplace"
    plan = planning.plan_release(*asked)
    ((scale,),) = (measured.scales for measured in parts_of(plan))
    assert plan.loss.epsilon > Fraction(pure_of_rho(Fraction(rho)))
    counts = range(most + 1)
    others = counts if neighboring == "replace" else [0]
    moves = {abs(one - other) for one in counts for other in others} - {0}
    with mp.workdps(40):
        costs = [largest_rho(1 / mp.mpf(scale), moved) for moved in moves]
        assert rho * (1 - 1e-5) < max(costs) <= rho
        assert largest_rho(1 / (mp.mpf(scale) * mp.mpf("0.999")), most) > rho


def test_one_count_costs_what_randomized_response_does():
    frame = declared(privacy_unit=dpf.EACH_ROW)
    plan = planning.plan_release(
        frame.dp.declaration, {None: dpf.count()}, Spend.of(rho=0.5), "laplace"
    )
    assert plan.loss.epsilon == Fraction(pure_of_rho(Fraction(1, 2)))


@pytest.mark.parametrize("rho", [0.25, "1/3"])
def test_certificates_and_ledgers_say_the_rho_and_the_larger_epsilon(rho, tmp_path):
    ledger = dpf.Ledger.create(tmp_path / "sums.ledger", budget=dpf.Budget(epsilon=3))
    frame = declared(max_rows=2, ledger=ledger)
    released = frame.dp.release(dpf.sum("x", by="g"), rho=rho, mechanism="laplace")
    loss = dpf.verify(released, ledger=dpf.Ledger(tmp_path / "sums.ledger")).privacy_loss
    assert Fraction(loss.rho) >= Fraction(rho) > Fraction(loss.rho) * (1 - Fraction(1, 2**50))
    (entry,) = ledger.entries
    assert float(entry.loss.epsilon) == loss.epsilon > pure_of_rho(Fraction(rho))
    assert entry.loss.rho > loss.rho  # what any mechanism of that epsilon may cost
