"""Shrunken means: the parts by other routes, the limits one by one, and errors on known truths."""

import math

import numpy as np
import pytest
from scipy import optimize, stats
from support.raising import raises

from dpframe.denoising import means
from dpframe.denoising.means import (
    SHARES,
    NoisyRatio,
    Posterior,
    ScalePrior,
    fit_prior,
    likely_rows,
    posterior,
    raw_risks,
    shrunken_means,
)
from dpframe.errors import QueryError

# fixed draws: nothing here can fail by chance
RNG = np.random.default_rng(11)
ROWS = np.array([1.0, 2, 3, 5, 8, 20, 60, 300] * 60)
TRUTH = np.clip(0.3 + 0.1 * RNG.standard_normal(len(ROWS)), -1, 1)
NOISE = RNG.standard_normal((2, len(ROWS)))
ONE = (-1.0, 1.0)


def measured(truth=TRUTH, rows=ROWS, deviation=2.0, covariance=0.0):
    """Add noise of one deviation to sums and rows, correlated if asked for."""
    lean = covariance / deviation**2
    both = np.stack([NOISE[0], lean * NOISE[0] + math.sqrt(1 - lean**2) * NOISE[1]])
    sums, counted = np.stack([truth * rows, rows]) + deviation * both[:, : len(rows)]
    return NoisyRatio(sums, counted, deviation**2, deviation**2, covariance, ONE)


def raw(noisy):
    return np.clip(noisy.centered / np.maximum(noisy.rows, 1), -1, 1)


def error(values, truth=TRUTH):
    return float(np.mean((values - truth) ** 2))


@pytest.mark.parametrize("deviation", [0.3, 2.0, 40.0])
def test_expected_rows_are_posterior_means_under_the_distribution_of_all_groups(deviation):
    # half the groups have 3 rows, half 60: Bayes knows both numbers, the fit does not
    truth = np.tile([3.0, 60.0], 2_000)
    noisy = truth + deviation * np.random.default_rng(2).standard_normal(len(truth))
    found = likely_rows(noisy, deviation**2)
    odds = np.exp(np.clip(((noisy - 3) ** 2 - (noisy - 60) ** 2) / (2 * deviation**2), -600, 600))
    known = 3 + 57 * odds / (1 + odds)
    assert np.mean((found.rows - truth) ** 2) < np.mean((known - truth) ** 2) + (0.2 * 30) ** 2
    assert np.mean((found.rows - truth) ** 2) < np.mean((noisy - truth) ** 2)
    assert (found.rows >= 1).all() and (found.inverse * found.rows >= 1 - 1e-9).all()


def by_quadrature(noisy, rows, prior, at):
    """Mean and variance of theta given `T - M N`, by sums over a fine grid."""
    offsets = np.linspace(-6, 6, 240_001)
    density = np.zeros_like(offsets)
    widest = 1 - prior.center**2
    for weight, share in zip(prior.weights, SHARES, strict=True):
        spread = widest * min(share + prior.within * rows.inverse[at], 1)
        density += weight * stats.norm.pdf(offsets, scale=math.sqrt(spread)) * 5e-5
    residual = noisy.centered[at] - prior.center * noisy.rows[at]
    error = math.sqrt(
        noisy.centered_variance
        - 2 * prior.center * noisy.covariance
        + prior.center**2 * noisy.rows_variance
    )
    weights = density * stats.norm.pdf(residual, rows.rows[at] * offsets, error)
    mean = weights @ offsets / weights.sum()
    return prior.center + mean, weights @ (offsets - mean) ** 2 / weights.sum()


def close_to_quadrature():
    noisy = measured(covariance=2.5)
    rows = likely_rows(noisy.rows, 4.0)
    weights = np.linspace(1, 3, len(SHARES))
    prior = ScalePrior(0.4, weights / weights.sum(), 0.3)
    found = posterior(noisy, rows, prior)
    for at in (0, 5, 7):
        mean, variance = by_quadrature(noisy, rows, prior, at)
        if not math.isclose(found.means[at], min(mean, 1), abs_tol=1e-7):
            return False
        if not math.isclose(found.variances[at], variance, rel_tol=1e-4):
            return False
    return True


def test_posteriors_are_those_of_quadrature():
    assert close_to_quadrature()


def penalized(weights, noisy, rows, prior):
    """Log-likelihood with one more group, which has small spreads more often than large ones."""
    residual = noisy.centered - prior.center * noisy.rows
    parts = np.minimum(SHARES + prior.within * rows.inverse[:, None], 1)
    spread = np.sqrt(
        noisy.noise_at(prior.center) + rows.rows[:, None] ** 2 * (1 - prior.center**2) * parts
    )
    density = stats.norm.pdf(residual[:, None], scale=spread)
    likely = np.array([2.0**k for k in (7, 6, 5, 4, 3, 2, 1, 0)])
    return np.log(density @ weights).sum() + likely @ np.log(weights) / likely.sum()


@pytest.mark.parametrize("terms", [1, 2])
def test_laplace_noise_does_not_pass_for_rows(terms):
    # groups of 3 rows and of 60: given N, what is expected of n has a closed form
    rng = np.random.default_rng(terms)
    scale = 30 / math.sqrt(2 * terms)
    rows = np.where(rng.random(20_000) < 0.02, 60.0, 3.0)
    noisy = rows + rng.laplace(0, scale, (terms, 20_000)).sum(0)
    away = np.abs(noisy - np.array([[3.0], [60.0]])) / scale
    few, many = np.array([[0.98], [0.02]]) * (1 + (terms - 1) * away) * np.exp(-away)
    expected = (3 * few + 60 * many) / (few + many)

    def misses(laplace):
        return ((likely_rows(noisy, 900.0, laplace).rows - expected) ** 2).mean()

    assert misses(terms) < 6
    assert misses(0) > 15


def test_tiny_groups_have_the_center_of_all_rows(laplace=1):
    centers = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.integers(1, 7, 8_000).astype(float)
        sums, counted = np.stack([-0.6 * rows, rows]) + rng.laplace(0, 20, (2, 8_000))
        noisy = NoisyRatio(sums, counted, 800.0, 800.0, 0.0, ONE, laplace)
        centers.append(fit_prior(noisy, likely_rows(counted, 800.0, laplace)).center)
    assert np.mean(centers) == pytest.approx(-0.6, abs=0.3)


def test_em_reaches_the_optimum_of_a_general_solver(monkeypatch):
    monkeypatch.setattr(means, "_STEPS", 2_000)
    monkeypatch.setattr(means, "_STILL", 1e-7)
    truth = np.clip(0.3 + 3 * (TRUTH - 0.3), -1, 1)
    noisy = measured(truth)
    rows = likely_rows(noisy.rows, 4.0)
    prior = fit_prior(noisy, rows)

    def loss(logits):
        weights = np.exp(logits - logits.max())
        return -penalized(weights / weights.sum(), noisy, rows, prior)

    best = optimize.minimize(loss, np.zeros(len(SHARES)), method="BFGS", options={"gtol": 1e-6})
    assert penalized(prior.weights, noisy, rows, prior) == pytest.approx(-best.fun, abs=1e-3)
    for within in means.WITHIN:  # no other is likelier
        other = means._fit_weights(noisy, rows, prior._replace(within=within))
        likely = penalized(other.weights, noisy, rows, other)
        assert likely <= penalized(prior.weights, noisy, rows, prior) + 1e-3


def risk_by_draws(theta, n, deviations, draws=100_000, covariance=0.0):
    rng = np.random.default_rng(5)
    both = [[deviations[0] ** 2, covariance], [covariance, deviations[1] ** 2]]
    e, f = rng.multivariate_normal([0, 0], both, draws).T
    return np.mean((np.clip((n * theta + e) / np.maximum(n + f, 1), -1, 1) - theta) ** 2)


@pytest.mark.parametrize("deviations", [(0.3, 0.2), (3.0, 2.0), (30.0, 20.0)])
@pytest.mark.parametrize("n", [1.0, 5.0, 200.0])
def test_the_risk_of_clipped_ratios_is_that_of_draws(n, deviations):
    of_sum, of_rows = deviations
    covariance = of_sum * of_rows / 2
    noisy = NoisyRatio(np.zeros(1), np.zeros(1), of_sum**2, of_rows**2, covariance, ONE)
    for theta in (-0.9, 0.0, 0.6):
        at = Posterior(np.array([theta]), np.zeros(1), np.zeros(1), np.zeros(1))
        found = raw_risks(noisy, np.array([n]), at)[0]
        drawn = risk_by_draws(theta, n, deviations, covariance=covariance)
        assert found == pytest.approx(drawn, rel=0.05)


def test_units_of_the_column_do_not_matter():
    noisy = measured(covariance=1.5)
    base = shrunken_means(raw(noisy), noisy)
    wide = NoisyRatio(50 * noisy.centered, noisy.rows, 1e4, 4.0, 75.0, (0.0, 100.0))
    made = shrunken_means(50 + 50 * raw(noisy), wide)
    assert made.denoised.values == pytest.approx(50 + 50 * base.denoised.values)
    assert made.denoised.risk == pytest.approx(2500 * base.denoised.risk)
    assert made.raw_risk == pytest.approx(2500 * base.raw_risk)
    assert made.denoised.chosen["spread"] == pytest.approx(50 * base.denoised.chosen["spread"])
    assert made.denoised.chosen["center"] == pytest.approx(50 + 50 * base.denoised.chosen["center"])


def test_a_group_unlike_all_others_keeps_most_of_its_distance():
    rows = np.full(400, 2.0)
    truth = np.where(np.arange(400) == 7, 1.0, -0.97)
    noisy = measured(truth, rows, 1.0)
    made = shrunken_means(raw(noisy), noisy).denoised
    assert made.chosen["moved"] == 400
    assert made.values[7] > -0.5
    assert error(made.values, truth) < 0.5 * error(raw(noisy), truth)


def test_fewer_than_twenty_groups_stay():
    for n, stays in ((19, True), (20, False)):
        rows = np.full(n, 1.0)
        noisy = measured(np.full(n, 0.9), rows, 20.0)  # any mean is better than these
        made = shrunken_means(raw(noisy), noisy).denoised
        assert np.array_equal(made.values, raw(noisy)) == stays
        assert (made.chosen["moved"] == 0) == stays


def test_a_group_that_has_nearly_all_the_error_stays():
    rows = np.full(400, 5000.0)
    rows[0] = 6.0
    truth = np.full(400, 0.2)
    noisy = measured(truth, rows)
    made = shrunken_means(raw(noisy), noisy).denoised
    assert made.values[0] == raw(noisy)[0]
    rows[1:200] = 6.0  # many more like it: each has a part
    noisy = measured(truth, rows)
    assert shrunken_means(raw(noisy), noisy).denoised.chosen["moved"] >= 200


def test_where_there_is_little_to_gain_all_stay():
    truth = np.where(np.arange(len(ROWS)) % 2, 0.9, -0.9)
    noisy = measured(truth, np.full(len(ROWS), 400.0))
    made = shrunken_means(raw(noisy), noisy)
    assert made.denoised.values.tolist() == raw(noisy).tolist()
    assert made.denoised.risk == made.raw_risk > 0


def test_the_distance_of_a_tier_has_no_bias_and_its_doubt_is_that_of_laplace_noise():
    rng = np.random.default_rng(8)
    rows, spread, found, doubtful = np.full(40, 12.0), 0.05, [], []
    for _ in range(1_000):
        far = math.sqrt(spread) * rng.standard_normal(40)
        squares = (rows * far + rng.laplace(0, 2, 40)) ** 2
        bound = means._largest_distance(squares, rows, 8.0, np.full(40, spread))
        found.append(np.mean(squares - 8.0) / 144)
        doubtful.append(bound - max(found[-1], 0))
    assert np.mean(found) == pytest.approx(spread, abs=6 * np.std(found) / math.sqrt(1_000))
    assert np.mean(doubtful) / 2.5 == pytest.approx(np.std(found), rel=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_small_groups_that_are_all_different_are_left_alone(seed):
    # groups of ten rows are not as the others are: all at the lower bound
    rng = np.random.default_rng(seed)
    small = np.arange(len(ROWS)) % 8 == 0
    rows = np.where(small, 10.0, 300.0)
    truth = np.where(small, -0.98, -0.3 + 2 * (TRUTH - 0.3))
    sums, counted = np.stack([truth * rows, rows]) + 4 * rng.standard_normal((2, len(ROWS)))
    noisy = NoisyRatio(sums, counted, 16.0, 16.0, 0.0, ONE)
    made = shrunken_means(raw(noisy), noisy).denoised
    assert error(made.values, truth) < 1.02 * error(raw(noisy), truth)


@pytest.mark.parametrize(
    "change",
    [
        {"centered_variance": 0.0},
        {"centered_variance": math.inf},
        {"covariance": 4.0},
        {"bounds": (2.0, 2.0)},
        {"centered": np.full(len(ROWS), math.inf)},
        {"rows": np.full(len(ROWS), math.nan)},
    ],
)
def test_what_cannot_be_used_is_left_alone(change):
    noisy = measured()
    made = shrunken_means(raw(noisy), noisy._replace(**change))
    assert made.denoised.values.tolist() == raw(noisy).tolist()
    assert math.isnan(made.raw_risk)
    assert made.denoised.chosen == {}


def test_rows_that_are_public_have_no_noise():
    noisy = measured()._replace(rows=ROWS, rows_variance=0.0)
    made = shrunken_means(raw(noisy), noisy).denoised
    assert error(made.values) < 0.2 * error(raw(noisy))


def test_no_groups_and_groups_that_do_not_fit():
    empty = NoisyRatio(np.empty(0), np.empty(0), 1.0, 1.0, 0.0, ONE)
    assert shrunken_means([], empty).denoised.values.shape == (0,)
    with raises(QueryError, "a number of rows each"):
        shrunken_means([1.0], empty)
    with raises(QueryError, "finite", parameter="values"):
        shrunken_means([math.nan], empty)


def test_the_largest_numbers_raise_no_warning():
    noisy = measured()
    h = 1e305
    wide = NoisyRatio(noisy.centered * h, noisy.rows, 4 * h * h, 4.0, 0.0, (-h, h))
    values = raw(noisy) * h
    assert shrunken_means(values, wide).denoised.values.tolist() == values.tolist()


def test_most_of_the_error_of_small_groups_goes():
    noisy = measured()
    made = shrunken_means(raw(noisy), noisy)
    assert error(made.denoised.values) < 0.15 * error(raw(noisy))
    assert made.denoised.risk / made.raw_risk < 0.2
    assert made.raw_risk == pytest.approx(error(raw(noisy)), rel=0.5)
    assert made.denoised.chosen["center"] == pytest.approx(0.3, abs=0.05)
    assert made.denoised.chosen["moved"] > 80
    large = ROWS == 300
    assert np.abs(made.denoised.values - raw(noisy))[large].max() < 0.02
