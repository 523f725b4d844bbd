"""Empirical Bayes: the likeliest prior, posterior means, and a risk that is not too small."""

import math

import numpy as np
import pytest
from scipy import optimize

import dpframe.denoising.empirical_bayes as module
from dpframe.denoising.empirical_bayes import (
    Prior,
    PriorGrid,
    empirical_bayes,
    fit_prior,
    posterior,
)
from dpframe.errors import QueryError
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

LEARNED = {GAUSSIAN: 2, LAPLACE: 1}  # times sigma^2 e is what an estimated prior costs
LAWS = [GAUSSIAN, LAPLACE]
COUNTS = np.array([-3, -1, 0, 0, 1, 2, 2, 2, 5, 7, 8, 12, 13, 13, 21], np.float64)


def likelihoods(values, points, law):
    """Densities by value and point, computed densely, at distances in standard deviations."""
    distances = values[:, None] - points
    if law is GAUSSIAN:
        return np.exp(-(distances**2) / 2) / math.sqrt(2 * math.pi)
    return np.exp(-math.sqrt(2) * abs(distances)) / math.sqrt(2)


def log_likelihood(values, prior, law):
    return np.log(likelihoods(values, prior.points, law) @ prior.weights).mean()


def dense_posterior(values, points, weights, law):
    shares = likelihoods(values, points, law) * weights
    shares /= shares.sum(1, keepdims=True)
    means = shares @ points
    return means, (shares * (points - means[:, None]) ** 2).sum(1)


def noisy(law, truth, sigma, rng):
    if law is GAUSSIAN:
        return truth + np.rint(rng.normal(0, sigma, len(truth)))
    # the difference of two geometric numbers: q^|k| has this standard deviation
    q = math.exp(-2 * math.asinh(1 / (math.sqrt(2) * sigma)))
    return truth + rng.geometric(1 - q, len(truth)) - rng.geometric(1 - q, len(truth))


def sparse(n, rng):
    return np.where(rng.random(n) < 0.8, 0, rng.geometric(0.02, n)).astype(np.float64)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_prior_is_the_likeliest_on_its_grid(law):
    sigma, step = 4.0, 2.0
    values = COUNTS / sigma
    grid = PriorGrid(law, step / sigma, bounded=True)
    prior = fit_prior(values, grid, int(step), gain=0.0, most_steps=20_000)

    # without the constraint sum w = 1, which `sum w` in the objective makes true at the optimum
    points = np.arange(0, 13) * step / sigma
    table = likelihoods(values, points, law)

    def objective(w):
        f = table @ w
        return w.sum() - np.log(f).mean(), 1 - (table / f[:, None]).mean(0)

    start = np.full(len(points), 1 / len(points))
    best = optimize.minimize(
        objective,
        start,
        jac=True,
        bounds=[(1e-30, None)] * len(points),
        options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 10_000},
    ).x
    assert best.sum() == pytest.approx(1, abs=1e-6)
    attained = log_likelihood(values, prior, law)
    assert attained == pytest.approx(np.log(table @ best).mean() - best.sum() + 1, abs=1e-7)
    means = posterior(values, prior, law)
    np.testing.assert_allclose(means, dense_posterior(values, points, best, law)[0], atol=2e-4)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_no_prior_is_likelier_by_more_than_the_duality_gap(law):
    values = noisy(law, sparse(300, np.random.default_rng(3)), 5, np.random.default_rng(4)) / 5
    values = np.maximum(values, 0 if law is LAPLACE else -5)  # as the fit has it
    prior = fit_prior(values, PriorGrid(law, 0.4, bounded=True), 2, gain=1e-4, most_steps=5_000)
    everywhere = np.arange(0, values.max() + 0.4, 0.4)
    f = likelihoods(values, prior.points, law) @ prior.weights
    # of all points of the grid, as the dual of the likelihood has it (Lindsay 1983)
    gap = (likelihoods(values, everywhere, law) / f[:, None]).mean(0).max() - 1
    assert -1e-9 < gap < 0.01
    early = fit_prior(values, PriorGrid(law, 0.4, bounded=True), 2, most_steps=2)
    f = likelihoods(values, early.points, law) @ early.weights
    assert (likelihoods(values, everywhere, law) / f[:, None]).mean(0).max() - 1 > 0.1


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_step_raises_the_likelihood(law):
    rng = np.random.default_rng(5)
    values = noisy(law, sparse(200, rng), 5, rng) / 5
    values = np.maximum(values, 0 if law is LAPLACE else -5)
    grid = PriorGrid(law, 0.4, bounded=True)
    found = [
        log_likelihood(values, fit_prior(values, grid, 2, gain=0.0, most_steps=k), law)
        for k in range(1, 40)
    ]
    assert (np.diff(found) > 0).all()
    assert found[-1] > found[0] + 0.1


def test_it_stops_when_the_likelihood_gains_little():
    rng = np.random.default_rng(6)
    values = noisy(GAUSSIAN, sparse(500, rng), 5, rng) / 5
    grid = PriorGrid(GAUSSIAN, 0.4, bounded=True)
    prior = fit_prior(values, grid, 2)
    assert 5 < prior.steps < 300
    before = fit_prior(values, grid, 2, gain=0.0, most_steps=prior.steps - 2)
    last = fit_prior(values, grid, 2, gain=0.0, most_steps=prior.steps - 1)
    gains = log_likelihood(values, last, GAUSSIAN) - log_likelihood(values, before, GAUSSIAN)
    assert 0 < gains * len(values) < 0.02


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_posterior_means_are_those_of_the_dense_formula(law):
    rng = np.random.default_rng(7)
    points = np.sort(rng.choice(np.arange(0, 400), 250, replace=False)) * 0.35
    weights = rng.dirichlet(np.full(len(points), 0.3)) + 1e-6
    weights /= weights.sum()
    values = rng.uniform(-4, points[-1] + 4, 500)
    # the reach leaves out exp(-32) = 1e-14 of the peak; the weights here are at least 1e-6
    means = posterior(values, Prior(points, weights, 0), law)
    dense = dense_posterior(values, points, weights, law)[0]
    np.testing.assert_allclose(means, dense, rtol=0, atol=1e-6)
    even = np.full(len(points), 1 / len(points))
    means = posterior(values, Prior(points, even, 0), law)
    dense = dense_posterior(values, points, even, law)[0]
    np.testing.assert_allclose(means, dense, rtol=0, atol=1e-9)


def test_a_value_between_points_out_of_reach_sees_both():
    prior = Prior(np.array([0.0, 30.0]), np.array([0.25, 0.75]), 0)
    means = posterior(np.array([15.0, 14.9, 15.1]), prior, GAUSSIAN)
    odds = 3 * np.exp(30 * np.array([0, -0.1, 0.1]))
    np.testing.assert_allclose(means, 30 * odds / (1 + odds), rtol=1e-12)


def dense_weights(values, points, steps, law):
    weights = np.full(len(points), 1 / len(points))
    table = likelihoods(values, points, law)
    for _ in range(steps):
        shares = table * weights
        weights = (shares / shares.sum(1, keepdims=True)).mean(0)
    return weights


def dense_estimates(values, fitted, points, steps, law):
    """Posterior means after some steps of EM on other values, without bins."""
    weights = dense_weights(fitted, points, steps, law)
    return dense_posterior(values, points, weights, law)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("many", [True, False])
def test_the_risk_counts_how_the_prior_moves_with_the_values(many, law):
    places = [1 + 8 * i + i * i % 7 for i in range(30)] if many else [2, 5, 9, 20, 33, 130, 151]
    values = np.array(places) * 0.35 / 6  # all in the middle of a bin
    found = empirical_bayes(values, 1.0, law=law, integer=False)
    steps = int(found.chosen["steps"])
    points = np.arange(0, max(places) // 6 + 2) * 0.35
    means, variances = dense_estimates(values, values, points, steps, law)
    np.testing.assert_allclose(found.values, means, atol=1e-9)
    through, tiny = 0.0, 1e-5
    for i in range(len(values)):
        up, down = values.copy(), values.copy()
        up[i] += tiny
        down[i] -= tiny
        rise = dense_estimates(values, up, points, steps, law)[0][i]
        rise -= dense_estimates(values, down, points, steps, law)[0][i]
        through += rise / (2 * tiny)
    # what values contribute to their own likelihood, as seen from the nearest point
    table = likelihoods(values, points, law)
    own = table.max(1) / (table @ dense_weights(values, points, steps, law)) / len(values)
    assert (own.sum() < through) == many
    expected = variances.mean() + LEARNED[law] * max(through, own.sum()) / len(values)
    assert found.risk == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_whole_values_have_the_likelihood_of_the_discrete_laplace(scale):
    """P(k) is q^|k| up to a constant, q = exp(-1 / scale); its variance is 2 q / (1 - q)^2."""
    q = math.exp(-1 / scale)
    values = np.array([0, 0, 0, 1, 1, 3, 2, 7, 4, 6, 5, 8.0])
    found = empirical_bayes(values, math.sqrt(2 * q) / (1 - q), law=LAPLACE)
    points, table = np.arange(10), q ** abs(values[:, None] - np.arange(10))
    weights = np.full(10, 0.1)
    for _ in range(int(found.chosen["steps"])):
        shares = table * weights
        weights = (shares / shares.sum(1, keepdims=True)).mean(0)
    shares = table * weights
    np.testing.assert_allclose(found.values, shares @ points / shares.sum(1), atol=1e-8)


@pytest.mark.full
def test_the_likelihood_of_the_discrete_laplace_gains():
    """At scale 1/2, by a fifth over that of the continuous law, which values off integers get."""
    rng, errors = np.random.default_rng(21), []
    sigma = 1 / (math.sqrt(2) * math.sinh(1))
    for _ in range(20):
        truth = np.where(rng.random(2000) < 0.9, 0, rng.poisson(8, 2000))
        values = noisy(LAPLACE, truth, sigma, rng)
        found = [empirical_bayes(values + off, sigma, law=LAPLACE).values for off in (0, 1e-9)]
        errors.append([((one - truth) ** 2).mean() for one in found])
    discrete, continuous = np.mean(errors, axis=0)
    # each is known to 3 %
    assert discrete < 0.9 * continuous


@pytest.mark.parametrize("n", [20, 200])
def test_signs_estimate_what_the_values_tell_one_by_one(monkeypatch, n):
    rng = np.random.default_rng(8)
    values = noisy(GAUSSIAN, sparse(n, rng), 5, rng)
    monkeypatch.setattr(module, "_EXACT", n)
    exact = empirical_bayes(values, 5.0).risk
    monkeypatch.setattr(module, "_EXACT", 0)
    assert empirical_bayes(values, 5.0).risk == pytest.approx(exact, rel=0.3)
    monkeypatch.setattr(module, "_PROBED", 400 * n)
    assert empirical_bayes(values, 5.0).risk == pytest.approx(exact, rel=0.05)


@pytest.mark.full
@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("n", "sigma"), [(10, 5), (30, 1), (100, 25)])
def test_the_risk_is_not_too_small_where_values_are_few(law, n, sigma):
    rng = np.random.default_rng([9, n, sigma])
    errors, risks = [], []
    for _ in range(500 // n):
        truth = np.floor(rng.lognormal(3, 1.5, n))
        values = noisy(law, truth, sigma, rng)
        found = empirical_bayes(values, sigma, law=law)
        errors.append(((found.values - truth) ** 2).mean() / sigma**2)
        risks.append(found.risk / sigma**2)
    error = np.std(np.subtract(errors, risks)) / math.sqrt(len(errors))
    assert np.mean(risks) > np.mean(errors) - 2 * error
    assert np.mean(risks) < 2.5 * np.mean(errors)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_risk_is_right_where_values_are_many(law):
    rng = np.random.default_rng(10)
    truth = np.floor(rng.lognormal(2, 1.2, 4_000))
    found = empirical_bayes(noisy(law, truth, 10, rng), 10.0, law=law)
    error = ((found.values - truth) ** 2).mean()
    assert found.risk == pytest.approx(error, rel=0.15)
    assert error < 60


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0, 20.0])
def test_values_that_stand_alone_never_seem_to_gain(sigma, law):
    values = np.random.default_rng(17).integers(0, 10**7, 50).astype(np.float64)
    found = empirical_bayes(values, sigma, law=law)
    np.testing.assert_allclose(found.values, values, atol=0.6 * sigma)
    assert found.risk == pytest.approx(LEARNED[law] * sigma**2, rel=0.1)


def test_sparse_counts_gain_much_over_clipping():
    rng = np.random.default_rng(11)
    truth = sparse(3_000, rng)
    values = noisy(GAUSSIAN, truth, 10, rng)
    error = ((empirical_bayes(values, 10.0).values - truth) ** 2).mean()
    assert error < 0.6 * ((np.maximum(values, 0) - truth) ** 2).mean()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_order_unit_and_origin_do_not_matter(law):
    rng = np.random.default_rng(12)
    values = rng.lognormal(2, 1, 60) + rng.normal(0, 3, 60)
    found = empirical_bayes(values, 3.0, law=law, integer=False)
    order = rng.permutation(60)
    shuffled = empirical_bayes(values[order], 3.0, law=law, integer=False)
    np.testing.assert_allclose(shuffled.values, found.values[order], rtol=1e-12)
    assert shuffled.risk == pytest.approx(found.risk, rel=1e-12)
    moved = empirical_bayes(values * 0.5 - 7, 1.5, law=law, lower=-7, integer=False)
    np.testing.assert_allclose(moved.values, found.values * 0.5 - 7, rtol=1e-9)
    assert moved.risk == pytest.approx(found.risk / 4, rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_estimates_keep_to_the_smallest_truth(law):
    values = np.array([-900.0, -1e300, -9, 4, 6, 7, 9, 30])
    for lower, smallest in ((0, 0), (5.5, 6), (-20, -20)):
        found = empirical_bayes(values, 10.0, law=law, lower=lower).values
        assert (found >= smallest).all()
        assert (np.diff(found[[0, 2, 3, 4, 5, 6, 7]]) >= -1e-12).all()
        assert found[0] == found[1]
        assert found[0] < smallest + 5
    free = empirical_bayes(values, 10.0, law=law, lower=None)
    assert free.values[0] == pytest.approx(-900, abs=10)
    assert free.values[1] == -1e300


def test_truths_that_are_whole_have_a_grid_of_integers():
    rng = np.random.default_rng(13)
    values = noisy(GAUSSIAN, rng.poisson(4, 200), 0.3, rng)
    found = empirical_bayes(values, 0.3)
    assert found.chosen["spacing"] == 1
    assert (abs(found.values - np.rint(found.values)) < 0.02).mean() > 0.9
    assert empirical_bayes(values, 10.0).chosen["spacing"] == 4
    assert empirical_bayes(values, 10.0, integer=False).chosen["spacing"] == 3.5


def test_only_points_near_a_value_are_kept():
    rng = np.random.default_rng(14)
    values = rng.integers(0, 10**9, 500).astype(np.float64)
    found = empirical_bayes(values, 1.0)
    assert found.chosen["grid_points"] <= 18 * len(values)
    assert abs(found.values - values).max() <= 2
    small = np.r_[values, np.zeros(500)]
    assert empirical_bayes(small, 1.0).values[-1] < 0.3


@pytest.mark.sampled(every=14, full=6)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("lower", [0.0, None])
@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        [],
        [7],
        [-7],
        [3, 3],
        [-1, 0, 12],
        [0] * 40,
        [7.25] * 40,
        [1e300, -1e300, 1.7e308, -1.7e308],
        [1e15, 1e15 + 2, 5],
        [0, 1e-300, 3],
    ],
)
def test_odd_values_give_finite_estimates(values, integer, lower, law):
    given = np.array(values, np.float64)
    for sigma in (1e-300, 1e-6, 0.5, 3, 1e9, 1e200):
        found = empirical_bayes(given, sigma, law=law, lower=lower, integer=integer)
        assert found.values.shape == given.shape
        assert found.values.dtype == np.float64
        assert np.isfinite(found.values).all()
        assert found.risk >= 0
        assert given.tolist() == [float(value) for value in values]


@pytest.mark.parametrize("value", [7.0, 500.0])
def test_equal_values_stay_where_they_are(value):
    found = empirical_bayes([value] * 200, 4.0)
    np.testing.assert_allclose(found.values, value, atol=0.3)


def test_what_float64_does_not_resolve_comes_back():
    values = np.array([1e17, 3.0, 5.0])
    found = empirical_bayes(values, 1.0)
    assert found.values[0] == 1e17
    alone = empirical_bayes(values[1:], 1.0)
    np.testing.assert_array_equal(found.values[1:], alone.values)
    assert found.risk == pytest.approx((1 + 2 * alone.risk) / 3)
    assert empirical_bayes(values[:1], 2.0).risk == 4


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_values_that_are_spread_out_are_denoised_in_pieces(monkeypatch, law):
    rng = np.random.default_rng(15)
    truth = np.r_[np.zeros(300), rng.uniform(0, 50_000, 300)]
    values = rng.permutation(noisy(law, truth, 5, rng))
    whole = empirical_bayes(values, 5.0, law=law)
    monkeypatch.setattr(module, "_SPREAD", 100)
    assert len(module._pieces(values, 2.0)) == 4
    pieces = empirical_bayes(values, 5.0, law=law)
    assert pieces.chosen["steps"] == 10 < whole.chosen["steps"]
    np.testing.assert_allclose(pieces.values, whole.values, atol=15)
    assert np.abs(pieces.values - whole.values).mean() < 1
    assert pieces.risk == pytest.approx(whole.risk, rel=0.2)


def test_steps_are_few_where_they_are_long(monkeypatch):
    values = np.random.default_rng(16).uniform(0, 500, 300)
    assert empirical_bayes(values, 5.0).chosen["steps"] > 5
    monkeypatch.setattr(module, "_WORK", 1)
    assert empirical_bayes(values, 5.0).chosen["steps"] == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"law": "uniform"}, "law='uniform'"),
        ({"lower": math.inf}, "lower=inf"),
        ({"lower": "zero"}, "lower='zero'"),
        ({"sigma": 0.0}, "sigma=0.0"),
    ],
)
def test_wrong_arguments_are_named(options, named):
    with pytest.raises(QueryError, match=named):
        empirical_bayes([1.0, 2.0], **{"sigma": 1.0, **options})
