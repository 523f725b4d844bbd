"""James and Stein: closed forms, and risks by differences and Monte Carlo."""

import math

import numpy as np
import pytest
from support.raising import raises

from dpframe.denoising.projection import stein_risk
from dpframe.denoising.shrinkage import james_stein
from dpframe.errors import QueryError

FALSE_ALARM = 4.9  # standard errors: chance goes beyond one time in a million
VALUES = np.array([9.3, -2.1, 4.7, 0.4, 6.6, -1.5, 14.2])

ESTIMATORS = {
    "to the mean": james_stein,
    "to zero": lambda y, s: james_stein(y, s, toward="zero"),
    "to the mean, plain": lambda y, s: james_stein(y, s, positive_part=False),
    "to zero, plain": lambda y, s: james_stein(y, s, toward="zero", positive_part=False),
}
each = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)


def helmert(d):
    """An orthonormal basis whose first vector is constant."""
    rows = [np.full(d, 1 / math.sqrt(d))]
    for j in range(1, d):
        row = np.r_[np.ones(j), -j, np.zeros(d - j - 1)]
        rows.append(row / math.sqrt(j * (j + 1)))
    return np.array(rows)


@pytest.mark.parametrize("sigma", [0.3, 4.1, 30.0])
def test_toward_zero_in_closed_form(sigma):
    norm2 = float(VALUES @ VALUES)
    pull = 5 * sigma**2 / norm2
    plain = james_stein(VALUES, sigma, toward="zero", positive_part=False)
    assert plain.values == pytest.approx((1 - pull) * VALUES, rel=1e-12)
    assert plain.risk == pytest.approx(sigma**2 - 25 * sigma**4 / (7 * norm2), rel=1e-12)
    cut = james_stein(VALUES, sigma, toward="zero")
    assert cut.values == pytest.approx(max(0, 1 - pull) * VALUES, rel=1e-12)
    assert cut.risk == pytest.approx(plain.risk if pull < 1 else norm2 / 7 - sigma**2, rel=1e-12)
    assert cut.chosen == {"weight": pytest.approx(max(0, 1 - pull))}


@pytest.mark.parametrize("positive_part", [True, False])
@pytest.mark.parametrize("sigma", [0.3, 4.1, 30.0])
def test_toward_the_mean_is_toward_zero_for_the_other_contrasts(sigma, positive_part):
    # one coordinate of an orthonormal basis is the mean and stays; its share of the risk is sigma^2
    basis = helmert(VALUES.size)
    turned = basis @ VALUES
    contrasts = james_stein(turned[1:], sigma, toward="zero", positive_part=positive_part)
    found = james_stein(VALUES, sigma, toward="mean", positive_part=positive_part)
    expected = basis.T @ np.r_[turned[0], contrasts.values]
    assert found.values == pytest.approx(expected, rel=1e-10)
    assert found.risk == pytest.approx((6 * contrasts.risk + sigma**2) / 7, rel=1e-10)


def losses(d, prior_variance, draws=20_000):
    """Total squared errors of plain James-Stein toward zero, true values and noise both drawn."""
    rng = np.random.default_rng(11)
    truth = rng.normal(scale=math.sqrt(prior_variance), size=(draws, d))
    noisy = truth + rng.normal(size=(draws, d))
    return np.array(
        [
            np.sum((james_stein(y, 1.0, toward="zero", positive_part=False).values - f) ** 2)
            for y, f in zip(noisy, truth, strict=True)
        ]
    )


@pytest.mark.full
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(("d", "variance"), [(5, 1.0), (9, 0.4)])
def test_the_mean_squared_error_under_a_prior_is_that_of_balle_and_wang(d, variance):
    # Theorem 11 with (d - 2) / d in place of its square: d (1 - ((d - 2) / d) / (1 + w^2))
    found = losses(d, variance)
    error = found.std() / math.sqrt(found.size)
    ratio = (d - 2) / d
    assert abs(found.mean() - d * (1 - ratio / (1 + variance))) < FALSE_ALARM * error
    # what is printed there, 4.1 for d = 5 and w = 1, is refuted
    assert abs(found.mean() - d * (1 - ratio**2 / (1 + variance))) > 3 * FALSE_ALARM * error
    if d == 5:
        assert found.mean() == pytest.approx(3.5, abs=0.1)


@pytest.mark.parametrize(("toward", "fewest"), [("zero", 3), ("mean", 4)])
def test_too_few_values_come_back_as_they_are(toward, fewest):
    for d in range(fewest):
        found = james_stein(VALUES[:d], 4.1, toward=toward)
        assert (found.values == VALUES[:d]).all()
        assert found.values is not VALUES
        assert found.risk == 4.1 * 4.1
    assert (james_stein(VALUES[:fewest], 4.1, toward=toward).values != VALUES[:fewest]).any()


@pytest.mark.parametrize("positive_part", [True, False])
@pytest.mark.parametrize("value", [0.1, -7e300, 5e-324])
def test_equal_values_come_back_from_their_mean(value, positive_part):
    for d in (4, 7, 10):
        found = james_stein(np.full(d, value), 2.0, positive_part=positive_part)
        assert (found.values == value).all()
        assert found.risk == pytest.approx(-(d - 2) / d * 4)


@each
@pytest.mark.parametrize("sigma", [5e-324, 1e-200, 1.0])
def test_huge_values_do_not_overflow(estimator, sigma):
    with np.errstate(all="raise"):  # the caller's settings do not matter
        found = estimator(VALUES * 1e306, sigma)
    assert np.isfinite(found.values).all()
    assert not math.isnan(found.risk)


@each
@pytest.mark.parametrize("scale", [1e306, 1e200, 1.0, 1e-200, 1e-320])
def test_huge_noise_gives_no_missing_number(estimator, scale):
    found = estimator(VALUES * scale, 1e300)
    assert not np.isnan(found.values).any()
    assert not math.isnan(found.risk)


def test_steins_estimate_does_not_overflow_on_the_way():
    assert stein_risk(np.array([3e-200, 4e-200]), 1e-200, 0.5) == 0.0
    assert stein_risk(np.array([2e153, 0.0]), 1e153, 0.25) == pytest.approx(1.5e306)
    # infinite terms of either sign, whose sum is not: 1.25e308
    assert stein_risk(np.array([1.5e154]), 1e154, 0.0) == pytest.approx(1.25e308)
    assert stein_risk(np.array([1e300]), 5e-324, 1.0) == math.inf
    assert stein_risk(np.array([math.inf, 1.0]), 1.0, -math.inf) == math.inf


@pytest.mark.parametrize("sigma", [0, -1.0, math.nan, math.inf, "1", None])
def test_sigma_is_checked(sigma):
    with raises(QueryError, "deviation", parameter="sigma"):
        james_stein(VALUES, sigma)


def test_other_arguments_are_checked():
    with raises(QueryError, "got toward='median'", parameter="toward"):
        james_stein(VALUES, 1.0, toward="median")
