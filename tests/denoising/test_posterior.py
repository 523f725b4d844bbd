"""Posteriors against closed formulas and bounds, and the errors that they realize."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.raising import raises

from dpframe.denoising import posterior as posteriors
from dpframe.denoising.posterior import ValueNoise, fit_prior, grid_near, posterior, see
from dpframe.errors import QueryError
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

VALUES = np.array([4.0, -1.3, 30.2, 7.7, -12.4])
LOOSE = {"nonnegative": False, "integer": False}


def sparse(seed, d=400, sigma=6.0, people=300):
    """True counts, most of them 0, and noisy ones; fixed draws, so that nothing fails by chance."""
    rng = np.random.default_rng(seed)
    truth = np.bincount(rng.choice(d, people, p=rng.dirichlet(np.full(d, 0.02))), minlength=d)
    return truth, truth + np.rint(rng.normal(0, sigma, d))


def error(values, truth, power):
    return float(np.mean(np.abs(values - truth) ** power))


@pytest.mark.parametrize("variance", [0.01, 5.2, 400.0])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_a_gaussian_prior_has_the_closed_form_of_theorem_10(variance, loss):
    # Balle and Wang 2018: m + w^2 / (w^2 + s^2) (y - m), the median as well as the mean
    mean, sigma = -1.3, 2.2
    prior = stats.norm(mean, math.sqrt(variance))
    found = posterior(VALUES, sigma, prior=prior, loss=loss, **LOOSE)
    share = variance / (variance + sigma**2)
    # medians are points of the grid; values are put in bins
    width = 0.36 * sigma if loss == "absolute" else 0.06 * sigma
    assert found.values == pytest.approx(mean + share * (VALUES - mean), abs=width)
    assert found.risk == pytest.approx(share * sigma**2, rel=0.05)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=str)
def test_weights_and_distributions_give_the_posterior_by_definition(law):
    points, y, sigma = np.arange(60), np.array([0, 3, 11, 25]), 3.0
    chances = stats.nbinom(2, 0.2).pmf(points)
    unit = law.continuous_deviation(sigma)
    weights = np.exp(law.log_density((y[:, None] - points) / unit)) * chances
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ points
    median = (np.cumsum(weights, axis=1) < 0.5).sum(axis=1)
    counted = pd.Series(chances, index=points)
    for prior in (stats.nbinom(2, 0.2), counted, counted.to_dict(), counted * 7):
        means = posterior(y, sigma, law=law, prior=prior, loss="squared").values
        assert means == pytest.approx(mean, rel=1e-4)
        assert posterior(y, sigma, law=law, prior=prior).values.tolist() == median.tolist()


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=str)
def test_no_prior_is_likelier_by_more_than_the_duality_gap(law, monkeypatch):
    # the log-likelihood is concave: it gains at most the largest slope toward a point
    patient = replace(posteriors.TUNING, gain=1e-9, most_steps=3000)
    monkeypatch.setattr(posteriors, "TUNING", patient)
    _, y = sparse(3)
    noise = ValueNoise(law, 6.0, law.continuous_deviation(6.0), is_whole=True)
    values, counts = np.unique(y, return_counts=True)
    points = grid_near(values, noise, nonnegative=True)
    seen = see(values, counts, points, noise)
    weights = fit_prior(seen, points, nonnegative=True).weights
    assert weights.sum() == pytest.approx(1)
    kernel = np.exp(noise.log_likelihood(values[:, None] - points))
    slopes = (counts / (kernel @ weights)) @ kernel - len(y)
    assert slopes.max() < 3.0
    assert noise.step == 2
    assert points.min() == 0
    assert grid_near(values, noise, nonnegative=False)[0] == 2 * round(values[0] / 2) - 2


def test_a_public_total_is_that_of_the_prior():
    _, y = sparse(3, sigma=9.0)
    noise = ValueNoise(GAUSSIAN, 9.0, 9.0, is_whole=True)
    values, counts = np.unique(y, return_counts=True)
    points = grid_near(values, noise, nonnegative=True)
    seen = see(values, counts, points, noise)
    for total in (300, 1000):
        fitted = fit_prior(seen, points, nonnegative=True, mean=total / len(y))
        assert fitted.weights @ points == pytest.approx(total / len(y), rel=1e-6)
    fewer, more = (posterior(y, 9.0, total=total, loss="squared") for total in (150, 1000))
    assert more.values.sum() > fewer.values.sum() + 50


@pytest.mark.parametrize("seed", range(6))
def test_sparse_counts_err_less_than_thresholds_and_zeros(seed):
    truth, y = sparse(seed)
    universal = np.maximum(y - 6 * math.sqrt(2 * math.log(len(y))), 0)
    found = posterior(y, 6.0)
    assert (found.values == np.rint(found.values)).all()
    for power in (1, 2):
        rivals = [error(made, truth, power) for made in (y, universal, 0 * y)]
        assert error(found.values, truth, power) < min(rivals)
    assert 0.7 < found.gain / (1 - error(found.values, truth, 1) / 4.79) < 1.4
    assert 0.7 < (1 - found.risk / 36) / (1 - error(found.values, truth, 2) / 36) < 1.4


def test_means_of_many_zeros_add_up_to_little():
    # EM that begins with half of its weight beside 0 leaves some there: means then add up to 60,000
    rng = np.random.default_rng(4)
    truth = np.zeros(30_000)
    truth[:3] = [300, 150, 80]
    y = truth + np.rint(rng.normal(0, 35, len(truth)))
    universal = np.maximum(y - 35 * math.sqrt(2 * math.log(len(y))), 0)
    found = posterior(y, 35.0, loss="squared").values
    assert abs(found.sum() - 530) < 400
    assert error(found, truth, 2) < min(error(universal, truth, 2), error(0 * y, truth, 2))


DENSE = {
    "scattered": (300, lambda rng, n: rng.integers(0, 7_500, n), 50.0),
    "even": (400, lambda rng, n: rng.integers(0, 250, n), 5.0),
    "alike": (800, lambda rng, n: rng.poisson(80, n), 1.0),
    "few": (60, lambda rng, n: rng.integers(0, 500, n), 14.0),
}


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("name", DENSE)
def test_dense_counts_err_no_more_than_released_ones(name, law):
    # a prior that follows its own values promises much here: those scattered lost 27 % in squares
    n, draw, sigma = DENSE[name]
    rng = np.random.default_rng(11)
    noise = (
        rng.normal if law is GAUSSIAN else lambda at, scale, n: rng.laplace(at, scale / 2**0.5, n)
    )
    made, released = np.zeros(2), np.zeros(2)
    for _ in range(4):
        truth = draw(rng, n)
        y = truth + np.rint(noise(0, sigma, n))
        values = posterior(y, sigma, law=law).values
        made += [error(values, truth, power) for power in (1, 2)]
        released += [error(y, truth, power) for power in (1, 2)]
    assert (made <= 1.02 * released).all()


def test_noise_alone_becomes_zeros():
    for seed in range(20):
        y = np.rint(np.random.default_rng(seed).normal(0, 40, 1000))
        assert not posterior(y, 40.0).values.any()


def test_values_far_apart_stay_and_negative_ones_become_0():
    y = 1000.0 * (np.arange(50) * 37 % 50) - 3
    found = posterior(y, 8.0)
    assert found.chosen == {}
    assert found.values.tolist() == np.maximum(y, 0).tolist()
    assert 0 <= found.gain < 0.05
    assert posterior(y, 8.0, nonnegative=False).values.tolist() == y.tolist()


def test_values_that_may_be_negative_are_drawn_together():
    rng = np.random.default_rng(4)
    truth = rng.normal(-70, 2.0, 600)
    y = truth + rng.normal(0, 9, 600)
    found = posterior(y, 9.0, loss="squared", **LOOSE)
    assert error(found.values, truth, 2) < 0.12 * 81
    moved = posterior(y + 500, 9.0, loss="squared", **LOOSE)
    assert moved.values - 500 == pytest.approx(found.values, abs=0.5)


def test_fewer_than_16_values_say_nothing_of_each_other():
    y = np.array([-3.0, 5, 0] * 5)
    assert posterior(y, 30.0).values.tolist() == np.maximum(y, 0).tolist()
    assert not posterior(np.append(y, 1), 30.0).values.any()


@pytest.mark.full
def test_many_distinct_values_are_fitted_in_pieces():
    rng = np.random.default_rng(8)
    truth = np.repeat(np.arange(0, 1e6, 100), 2) + 0.25
    y = truth + rng.normal(0, 3, len(truth))
    found = posterior(y, 3.0, integer=False, loss="squared")
    assert error(found.values, truth, 2) <= 1.02 * error(y, truth, 2)


@pytest.mark.parametrize(
    "prior",
    [3, "poisson", {}, {1: -1}, {1: 0}, {"a": 1}, np.ones(3), stats.norm(0, -1), stats.poisson],
)
def test_priors_are_checked(prior):
    with raises(QueryError, "frozen distribution", parameter="prior"):
        posterior(VALUES, 1.0, prior=prior)


def test_other_arguments_are_checked():
    for total in (-1, math.nan, math.inf, "1", True):
        with raises(QueryError, "not negative", parameter="total"):
            posterior(VALUES, 1.0, total=total)
    with raises(QueryError, '"absolute" or "squared"', parameter="loss"):
        posterior(VALUES, 1.0, loss="huber")
    with raises(QueryError, "law must be", parameter="law"):
        posterior(VALUES, 1.0, law="cauchy")
