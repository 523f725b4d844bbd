"""Shrunken means: the parts by other routes, the limits one by one, and errors on known truths."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from support.raising import raises

from dpframe.denoising import means
from dpframe.denoising.means import (
    SCALES,
    NoisyRatio,
    ScalePrior,
    expected_rows,
    fit_prior,
    posterior,
    shrunken_means,
)
from dpframe.errors import QueryError

# fixed draws: nothing here can fail by chance
RNG = np.random.default_rng(11)
ROWS = np.array([1.0, 2, 3, 5, 8, 20, 60, 300] * 12)
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
@pytest.mark.parametrize("rows", [-30.0, -2.0, 0.0, 1.0, 7.0, 500.0])
def test_expected_rows_are_a_posterior_mean(rows, deviation):
    # in units of the deviation, the density relative to its peak
    z = rows / deviation
    peak = max(z, 0.0)

    def density(x):
        return math.exp(-((x - z) ** 2) / 2 + (peak - z) ** 2 / 2)

    far = peak + 40 / max(1.0, -z)
    places = [peak] if peak else None
    mass = integrate.quad(density, 0, far, points=places, limit=400)[0]
    mean = integrate.quad(lambda x: x * density(x), 0, far, points=places, limit=400)[0] / mass
    found = expected_rows(np.array([rows]), deviation)[0]
    assert found == pytest.approx(deviation * mean, rel=1e-6)
    assert found > 0


def test_expected_rows_are_never_negative_however_far_below():
    found = expected_rows(np.array([-1e300, -1e9, -1e3]), 1.0)
    assert (found >= 0).all()
    assert (found < 0.01).all()
    assert expected_rows(np.array([-3.0, 4.0]), 0.0).tolist() == [0, 4]


def by_quadrature(noisy, rows, prior, at):
    """Mean and variance of theta given `T - M N`, by sums over a fine grid."""
    offsets = np.linspace(-6, 6, 1_200_001)
    density = np.zeros_like(offsets)
    for weight, scale in zip(prior.weights[1:], SCALES[1:], strict=True):
        density += weight * stats.norm.pdf(offsets, scale=scale) * 1e-5
    density[600_000] += prior.weights[0]
    residual = noisy.centered[at] - prior.center * noisy.rows[at]
    error = math.sqrt(
        noisy.centered_variance
        - 2 * prior.center * noisy.covariance
        + prior.center**2 * noisy.rows_variance
    )
    weights = density * stats.norm.pdf(residual, rows[at] * offsets, error)
    mean = weights @ offsets / weights.sum()
    return prior.center + mean, weights @ (offsets - mean) ** 2 / weights.sum()


def close_to_quadrature():
    noisy = measured(covariance=2.5)
    rows = expected_rows(noisy.rows, 2.0)
    weights = np.linspace(1, 3, len(SCALES))
    prior = ScalePrior(0.4, weights / weights.sum())
    found = posterior(noisy, rows, prior)
    for at in (0, 3, 5, 6, 7):
        mean, variance = by_quadrature(noisy, rows, prior, at)
        if not math.isclose(found.means[at], mean, abs_tol=1e-7):
            return False
        if not math.isclose(found.variances[at], variance, rel_tol=1e-4):
            return False
    return True


def test_posteriors_are_those_of_quadrature():
    assert close_to_quadrature()


def test_a_covariance_of_the_wrong_sign_is_found(monkeypatch):
    planted = NoisyRatio.noise_at
    monkeypatch.setattr(
        NoisyRatio,
        "noise_at",
        lambda noisy, offset: planted(noisy._replace(covariance=-noisy.covariance), offset),
    )
    assert not close_to_quadrature()


def penalized(weights, noisy, rows, center):
    """Log-likelihood with one more group, spread evenly over the scales."""
    residual = noisy.centered - center * noisy.rows
    spread = np.sqrt(noisy.noise_at(center) + np.square(np.outer(rows, SCALES)))
    density = stats.norm.pdf(residual[:, None], scale=spread)
    return np.log(density @ weights).sum() + np.log(weights).mean()


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_em_reaches_the_optimum_of_a_general_solver(spread, monkeypatch):
    monkeypatch.setattr(means, "_STEPS", 20_000)
    monkeypatch.setattr(means, "_STILL", 1e-9)
    truth = np.clip(0.3 + spread * (TRUTH - 0.3) / 0.1, -1, 1)
    noisy = measured(truth)
    rows = expected_rows(noisy.rows, 2.0)
    prior = fit_prior(noisy, rows)

    def loss(logits):
        weights = np.exp(logits - logits.max())
        return -penalized(weights / weights.sum(), noisy, rows, prior.center)

    best = optimize.minimize(loss, np.zeros(len(SCALES)), method="BFGS", options={"gtol": 1e-7})
    assert penalized(prior.weights, noisy, rows, prior.center) == pytest.approx(-best.fun, abs=1e-5)
    # the center is the weighted least squares fit under these weights
    variances = noisy.noise_at(prior.center) + np.square(np.outer(rows, SCALES))
    residual = noisy.centered - prior.center * noisy.rows
    shares = prior.weights * stats.norm.pdf(residual[:, None], scale=np.sqrt(variances))
    shares /= shares.sum(1, keepdims=True)
    precision = (shares / variances).sum(1)
    slope = np.sum(precision * rows * (noisy.centered - rows * prior.center))
    assert slope == pytest.approx(0, abs=1e-5 * np.sum(precision * rows**2))


def test_few_steps_come_close_to_that_optimum(monkeypatch):
    noisy = measured()
    rows = expected_rows(noisy.rows, 2.0)
    quick = fit_prior(noisy, rows)
    monkeypatch.setattr(means, "_STEPS", 20_000)
    monkeypatch.setattr(means, "_STILL", 1e-9)
    slow = fit_prior(noisy, rows)
    gained = penalized(slow.weights, noisy, rows, slow.center)
    assert penalized(quick.weights, noisy, rows, quick.center) > gained - 0.5
    assert quick.center == pytest.approx(slow.center, abs=0.01)


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


def test_nothing_moves_far_or_out_of_bounds():
    noisy = measured(np.full(len(ROWS), 0.3))
    made = shrunken_means(raw(noisy), noisy).denoised
    rows = np.maximum(expected_rows(noisy.rows, 2.0), 1)
    reach = 1.5 * np.sqrt(noisy.noise_at(made.chosen["center"])) / rows
    moved = np.abs(made.values - raw(noisy))
    assert (moved <= reach + 1e-12).all()
    assert np.isclose(moved, reach).sum() >= 5  # noise of more than 1.5 deviations
    assert np.abs(made.values).max() <= 1


def test_fewer_than_twenty_groups_stay():
    for n, stays in ((19, True), (20, False)):
        rows = np.full(n, 3.0)
        noisy = measured(np.full(n, 0.2), rows)
        made = shrunken_means(raw(noisy), noisy).denoised
        assert np.array_equal(made.values, raw(noisy)) == stays
        assert (made.chosen["moved"] == 0) == stays


def test_a_group_that_has_nearly_all_the_error_stays():
    rows = np.full(40, 5000.0)
    rows[0] = 6.0
    truth = np.full(40, 0.2)
    noisy = measured(truth, rows)
    made = shrunken_means(raw(noisy), noisy).denoised
    assert made.values[0] == raw(noisy)[0]
    assert made.chosen["moved"] == 39
    rows[1:4] = 6.0  # three more like it: each has a quarter
    noisy = measured(truth, rows)
    assert shrunken_means(raw(noisy), noisy).denoised.chosen["moved"] == 40


def test_where_there_is_little_to_gain_all_stay():
    truth = np.where(np.arange(len(ROWS)) % 2, 0.9, -0.9)
    noisy = measured(truth, np.full(len(ROWS), 400.0))
    made = shrunken_means(raw(noisy), noisy)
    assert made.denoised.values.tolist() == raw(noisy).tolist()
    assert made.denoised.risk == made.raw_risk > 0


def test_a_tier_that_loses_stays(monkeypatch):
    errors = np.repeat([1.0, 0.9, 0.3, 0.24, 0.01], 10)
    tiers = list(means._tiers(errors))
    assert [len(tier) for tier in tiers] == [30, 10, 10]
    assert sorted(np.concatenate(tiers)) == list(range(50))
    gain = np.where(errors == 0.24, -0.1, 0.9)
    found = means._Judged(errors, errors, errors, gain, np.full(50, 0.16))
    # -1 against a deviation of sqrt(1.6): below half of it
    assert means._to_move(found).tolist() == (errors != 0.24).tolist()
    monkeypatch.setattr(means, "_LOSING", 0.8)
    assert means._to_move(found).all()


def test_small_groups_that_are_all_different_can_lose():
    # no rule can know that groups of ten rows are not as the others are: all at the lower bound
    small = np.arange(len(ROWS)) % 8 == 0
    rows = np.where(small, 10.0, 300.0)
    truth = np.where(small, -0.98, -0.3 + 2 * (TRUTH - 0.3))
    noisy = measured(truth, rows, 4.0)
    made = shrunken_means(raw(noisy), noisy).denoised
    assert error(made.values, truth) > 2 * error(raw(noisy), truth)


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
