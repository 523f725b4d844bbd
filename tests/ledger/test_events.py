"""Events of dp_accounting: what they say is what noise really loses, or more."""

import importlib
import logging
import math
import sys
from fractions import Fraction

import pandas as pd
import pytest
from support.charging import ONE, affords, gaussian, pure
from support.raising import raises

import dpframe as dpf
from dpframe.errors import DPFrameError, pip_install
from dpframe.ledger.log import dp_event
from dpframe.privacy.amounts import Budget, PrivacyLoss

STEP = 1e-3  # of the discretization of dp_accounting


@pytest.fixture(scope="module", autouse=True)
def events():
    """The events of dp_accounting, whose accountants log what they choose."""
    logging.getLogger().addFilter(lambda record: "Connect-the-Dots" not in record.getMessage())
    return pytest.importorskip("dp_accounting.dp_event")


def accountant(event, step=STEP):
    module = importlib.import_module("dp_accounting.pld.pld_privacy_accountant")
    return module.PLDAccountant(value_discretization_interval=step).compose(event)


def delta_of_counts(epsilon, number, at):
    """Delta of some counts with discrete Laplace noise, whose loss is epsilon or -epsilon."""
    likely = 1 / (1 + math.exp(-epsilon))
    return math.fsum(
        math.comb(number, ups)
        * likely**ups
        * (1 - likely) ** (number - ups)
        * max(0.0, -math.expm1(at - epsilon * (2 * ups - number)))
        for ups in range(number + 1)
    )


def delta_of_noise(scale, moved, at):
    """Delta of one total with discrete Laplace noise, summed over its integers."""
    reach = round(60 * scale) + moved
    mass = [math.exp(-abs(k) / scale) for k in range(-reach, reach + 1)]
    whole = math.fsum(mass)
    pairs = zip(mass[moved:], mass[:-moved], strict=True)
    return math.fsum(max(0.0, p - math.exp(at) * q) for p, q in pairs) / whole


def test_ten_counts_are_not_taken_for_less_than_they_lose():
    exact = delta_of_counts(1, 10, 6)
    assert exact == pytest.approx(0.1815, abs=5e-5)
    said = accountant(dp_event([pure(1)] * 10)).get_delta(6)
    assert exact <= said <= exact * 1.01


@pytest.mark.parametrize(("epsilon", "number"), [(0.1, 1), (0.5, 3), (1.0, 7), (2.5, 2)])
def test_pure_losses_are_never_less_than_the_noise_that_is_drawn(epsilon, number):
    event = dp_event([pure(epsilon)] * number)
    for part in (0.0, 0.3, 0.7):
        at = part * epsilon * number
        exact = delta_of_counts(epsilon, number, at)
        assert exact * (1 - 1e-9) <= accountant(event).get_delta(at) <= exact * 1.02 + 1e-9
    one = accountant(dp_event([pure(epsilon)]))
    for moved in (1, 2, 5):  # totals that move by more lose less of their epsilon
        for at in (0.0, epsilon / 2):
            assert delta_of_noise(moved / epsilon, moved, at) <= one.get_delta(at) * (1 + 1e-9)
    assert delta_of_noise(1 / epsilon, 1, 0.0) == pytest.approx(one.get_delta(0.0), rel=0.02)


def test_events_of_a_ledger(events):
    trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    trips.dp.declare(budget=ONE)
    assert trips.dp.ledger.to_dp_event() == events.NoOpDpEvent()
    trips.dp.release(dpf.count(), mu=0.125, mechanism="gaussian")
    trips.dp.count(epsilon=0.25, mechanism="laplace")
    assert trips.dp.ledger.to_dp_event() == events.ComposedDpEvent(
        [events.GaussianDpEvent(8.0), events.DiscreteLaplaceDpEvent(0.25, 1)]
    )


def test_equal_losses_are_grouped_and_amounts_rounded_to_the_private_side(events):
    found = dp_event([gaussian(0.25), pure(0.125), gaussian(0.25), gaussian(0.25) + pure(0.5)])
    assert found == events.ComposedDpEvent(
        [
            events.SelfComposedDpEvent(events.GaussianDpEvent(4.0), 2),
            events.DiscreteLaplaceDpEvent(0.125, 1),
            events.GaussianDpEvent(4.0),
            events.DiscreteLaplaceDpEvent(0.5, 1),
        ]
    )
    (third,) = dp_event([pure(Fraction(1, 3))]).events
    assert Fraction(third.noise_parameter) > Fraction(1, 3)
    for mu in (0.3, *(n / 7 for n in range(1, 30))):
        (odd,) = dp_event([gaussian(mu)]).events
        assert Fraction(odd.noise_multiplier) ** 2 <= 1 / gaussian(mu).mu_squared


def test_an_extra_delta_is_never_forgotten(events):
    found = dp_event([PrivacyLoss(delta=Fraction(1, 10**7)) + gaussian(0.5)])
    if hasattr(events, "EpsilonDeltaDpEvent"):
        _, plain = found.events
        assert plain == events.EpsilonDeltaDpEvent(0.0, math.nextafter(1e-7, 1))
        assert 1e-7 < Fraction(1, 10**7) < Fraction(plain.delta)
    else:
        with pytest.raises(Exception, match="Unsupported"):
            accountant(found)


def test_without_dp_accounting_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with raises(DPFrameError, pip_install("accounting")):
        dp_event([gaussian(1)])


MIXTURES = {
    "one Laplace": ([(0.7, 1)], []),
    "many small Laplace": ([(0.01, 100)], []),
    "few Laplace": ([(0.5, 10)], []),
    "unequal Laplace": ([(1.3, 1), (0.2, 7), (0.03, 20)], []),
    "one each": ([(1.0, 1)], [(0.2367, 1)]),
    "few each": ([(0.3, 1), (0.1, 2), (0.03, 5)], [(0.1, 1), (0.05, 2)]),
    "mostly Gaussian": ([(0.02, 5)], [(0.2, 1)]),
    "large": ([(1.0, 3)], [(1.0, 1)]),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_what_fits_is_within_the_budget_by_privacy_loss_distributions(name):
    """An independent route, for amounts that were settled beforehand, as these here."""
    laplace, gaussians = MIXTURES[name]
    losses = [pure(epsilon) for epsilon, count in laplace for _ in range(count)]
    losses += [gaussian(mu) for mu, count in gaussians for _ in range(count)]
    for delta in (1e-3, 1e-6):
        least = next(e / 20 for e in range(1, 400) if affords(Budget(e / 20, delta), losses))
        theirs = accountant(dp_event(losses)).get_epsilon(delta)
        assert theirs <= least
        assert least <= theirs * 1.6 + 0.05  # what was measured, and some
