"""Renyi divergences and their limits, checked against mpmath with 200 digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpframe.privacy.renyi import (
    best_order,
    divergence_of_pure,
    few_digits,
    pure_of_divergence,
    renyi_limit,
)

mp = mpmath.mp.clone()
mp.dps = 200

ORDERS = [Fraction(101, 100), Fraction(21, 20), Fraction(261, 50), Fraction("28.4"), Fraction(451)]
ORDERS.append(Fraction(10**7))
CURVES = [(1, 1e-6), (3, 1e-6), (1, 1e-9), (0.5, 1e-5), (8, 1e-6), (0.01, 1e-12), (100, 0.1)]


def real(value):
    return mp.mpf(Fraction(value).numerator) / Fraction(value).denominator


def divergence(epsilon, order):
    """Renyi divergence of randomized response, as it is defined."""
    likely = 1 / (1 + mp.exp(-real(epsilon)))
    other, a = 1 - likely, real(order)
    moment = likely**a * other ** (1 - a) + other**a * likely ** (1 - a)
    return mp.log(moment) / (a - 1)


def log_delta(epsilon, divergence, order):
    """Canonne, Kamath and Steinke 2020, Proposition 12, as it is written."""
    a, e = real(order), real(epsilon)
    return (a - 1) * (real(divergence) - e) - mp.log(a - 1) + a * mp.log(1 - 1 / a)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_divergences_of_pure_losses_are_bounded_from_above_and_tightly(order):
    for x in np.geomspace(1e-12, 300, 90):
        epsilon = Fraction(float(x))
        price, true = divergence_of_pure(epsilon, order), divergence(epsilon, order)
        assert true <= real(price) <= true * (1 + mp.mpf(10) ** -9)
        assert price <= epsilon


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_divergences_beyond_the_range_of_the_formula(order):
    for epsilon in (Fraction(1, 10**400), Fraction(2) ** -301, Fraction(2**30), Fraction(10**400)):
        assert divergence_of_pure(epsilon, order) <= epsilon
    tiny = Fraction(1, 10**200)
    assert 0 <= divergence_of_pure(tiny, order) / (order * tiny**2 / 2) - 1 < Fraction(1, 2**62)
    edge = [Fraction(2) ** -300 * Fraction(n, 10**6) for n in (999_999, 1_000_001)]
    assert divergence_of_pure(edge[0], order) < divergence_of_pure(edge[1], order)
    assert divergence_of_pure(Fraction(0), order) == 0


@pytest.mark.parametrize(("epsilon", "delta"), CURVES)
def test_limits_keep_their_delta_and_hardly_more_would(epsilon, delta):
    for order in (*ORDERS, best_order(epsilon, delta)):
        limit = renyi_limit(epsilon, delta, order)
        if limit > 0:
            assert log_delta(epsilon, limit, order) <= mp.log(delta)
            more = limit + Fraction(1, 10**7) * max(1, limit)
            assert log_delta(epsilon, more, order) > mp.log(delta)


@pytest.mark.parametrize(("epsilon", "delta"), CURVES)
def test_the_order_chosen_has_nearly_the_most_room(epsilon, delta):
    """The largest rho of concentrated privacy is the largest limit / order."""
    room = lambda order: renyi_limit(epsilon, delta, order) / order  # noqa: E731
    others = [Fraction(1 + float(x)) for x in np.geomspace(0.01, 1e6, 400)]
    assert room(best_order(epsilon, delta)) > max(map(room, others)) * (1 - Fraction(1, 1000))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_inverse_fits_and_hardly_more_would(order):
    for x in np.geomspace(1e-15, 1e4, 60):
        limit = Fraction(float(x))
        epsilon = pure_of_divergence(limit, order)
        assert divergence_of_pure(epsilon, order) <= limit
        assert divergence_of_pure(epsilon * (1 + Fraction(1, 2**30)), order) > limit
    for odd in (Fraction(0), Fraction(-1), Fraction(1, 10**400), Fraction(10**200)):
        assert divergence_of_pure(pure_of_divergence(odd, order), order) <= max(odd, 0)


def test_few_digits_are_enough_and_never_too_small():
    for value in (Fraction(1, 3), Fraction(10**400, 7), Fraction(1, 7**900), Fraction(2**90 + 1)):
        rounded = few_digits(value)
        assert 0 <= rounded / value - 1 < Fraction(1, 2**62)
        assert rounded.numerator.bit_length() <= 66 or rounded.denominator == 1
    assert few_digits(Fraction(0)) == 0
