import itertools
import math

import mpmath
import numpy as np
import pytest

from dpframe.errors import CalibrationError
from dpframe.privacy.gaussian import gaussian_delta
from dpframe.privacy.interpretation import Guarantee

MUS = [0.03, 0.4, 1.0, 2.7]
CHANCES = [0.2, 0.001, 1e-9]


def worst(epsilon, delta):
    """Return the two laws that are furthest apart under (epsilon, delta)."""
    rest, e = 1 - delta, math.exp(epsilon)
    return np.array([delta, rest * e / (1 + e), rest / (1 + e), 0.0])


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("mu", MUS)
def test_odds_of_a_gaussian_grow_by_no_more_but_for_the_chance(mu, chance):
    x = Guarantee(mu=mu).growth(chance)
    # the privacy loss is normal, with mean mu^2 / 2 and standard deviation mu
    assert mpmath.ncdf(mu / 2 - x / mu) <= chance
    exact = mu * mu / 2 + mu * float(mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(chance)))
    assert x <= max(exact, 0) + mu  # not much more than for a Gaussian itself


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_odds_of_the_worst_law_grow_by_no_more_but_for_the_chance(epsilon, delta, chance):
    p, q = worst(epsilon, delta), worst(epsilon, delta)[::-1]
    x = Guarantee(epsilon, delta).growth(chance)
    if x < math.inf:
        assert p[p > q * math.exp(x) * (1 + 1e-12)].sum() <= chance
    assert (x == math.inf) == (delta >= chance)
    assert delta or x == epsilon


@pytest.mark.parametrize("prior", [0.0, 0.01, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 2.0, 800.0])
def test_belief_is_that_of_bayes(prior, epsilon):
    odds = mpmath.mpf(prior) * mpmath.exp(epsilon)
    exact = odds / (odds + 1 - mpmath.mpf(prior))
    found = Guarantee(epsilon).belief(prior)
    assert exact * (1 - mpmath.mpf(10) ** -15) <= found <= min(exact * (1 + 1e-11), 1)


def test_the_stronger_promise_counts():
    both = Guarantee(1.0, 1e-6, mu=0.2)
    assert both.belief(0.1) == Guarantee(mu=0.2).belief(0.1) < Guarantee(1.0, 1e-6).belief(0.1)
    assert both.power(0.05) == Guarantee(mu=0.2).power(0.05) < Guarantee(1.0, 1e-6).power(0.05)
    assert Guarantee().belief(0.1) == Guarantee().power(0.1) == 1
    assert Guarantee(mu=0.2, extra_delta=0.01).growth() == math.inf


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.3, 0.0), (1.2, 0.01), (4.0, 1e-6)])
def test_no_test_of_the_worst_law_is_better_and_the_best_is_as_good(epsilon, delta):
    p, q = worst(epsilon, delta), worst(epsilon, delta)[::-1]
    for events in map(np.array, itertools.product([0, 1], repeat=4)):
        assert p @ events <= Guarantee(epsilon, delta).power(min(q @ events, 1.0)) + 1e-12
    first = np.array([1, 1, 0, 0])
    assert p @ first == pytest.approx(Guarantee(epsilon, delta).power(q @ first), rel=1e-9)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.05, 0.7, 1.0])
@pytest.mark.parametrize("mu", MUS)
def test_power_against_a_gaussian(mu, rate):
    exact = rate
    if 0 < rate < 1:
        with mpmath.workdps(40):
            quantile = -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(rate))
            exact = float(mpmath.ncdf(quantile + mu))
    found = Guarantee(mu=mu, extra_delta=1e-9).power(rate)
    assert found == pytest.approx(min(exact + 1e-9, 1), rel=1e-9)
    epsilon = 1.5 * mu
    weaker = Guarantee(epsilon, gaussian_delta(epsilon, mu)).power(rate)
    assert exact <= weaker * (1 + 1e-9)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, math.inf, "half", None, True])
def test_what_is_no_probability_is_refused(wrong):
    for ask in (Guarantee(1.0).belief, Guarantee(1.0).power, Guarantee(1.0).growth):
        with pytest.raises(CalibrationError):
            ask(wrong)


def most_believed(epsilon, question, n=40):
    """Enumerate two counts with Laplace noise: what a belief of 50 % becomes at most."""
    law = np.exp(-epsilon * np.abs(np.arange(-n, n + 1)))
    absent = np.outer(law, law)
    first, second = np.roll(absent, 1, axis=0), np.roll(absent, 1, axis=1)
    other = {"present": absent, "which": second}[question]
    inner = slice(1, -1)  # away from the edges, where rolling wraps
    return (first / (first + other))[inner, inner].max()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_beliefs_of_presence_and_of_rows_are_those_of_one_change_and_of_two(epsilon):
    one = Guarantee(epsilon)
    assert most_believed(epsilon, "present") == pytest.approx(one.belief(0.5), rel=1e-9)
    assert most_believed(epsilon, "which") == pytest.approx(one.twice().belief(0.5), rel=1e-9)
    assert most_believed(epsilon, "which") > one.belief(0.5) * 1.01  # epsilon in place of two


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.2, 0.01), (4.0, 1e-6)])
@pytest.mark.parametrize(("mu", "extra"), [(0.3, 0.0), (1.0, 1e-4)])
@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.05, 0.7, 1.0])
def test_no_test_between_two_changes_is_better(epsilon, delta, mu, extra, rate):
    for one in (Guarantee(epsilon, delta), Guarantee(mu=mu, extra_delta=extra)):
        assert one.power(one.power(rate)) <= one.twice().power(rate) * (1 + 1e-9)
    plain = Guarantee(mu=mu)
    assert plain.power(plain.power(rate)) == pytest.approx(plain.twice().power(rate), rel=1e-9)
    if 0 < rate < 1:
        assert plain.power(plain.power(rate)) > plain.power(rate) * (1 + 1e-12)


def test_what_tells_nothing_moves_nothing():
    nothing = Guarantee(0.0)
    for p in (0.01, 0.05, 0.1, 0.5):
        assert nothing.belief(p) == nothing.least(p) == nothing.power(p) == p
