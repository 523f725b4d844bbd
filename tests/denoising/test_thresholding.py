"""Soft thresholds: definitions, risks by quadrature, brute force and Monte Carlo, odd values."""

import math

import numpy as np
import pytest
from support.raising import raises

from dpframe.denoising.shrinkage import soft_threshold
from dpframe.errors import QueryError
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

LAWS = [GAUSSIAN, LAPLACE]
VALUES = np.array([0.4, -0.9, 7.3, 1.6, -3.1, 0.05, -0.7, 12.9, 1.1])


def sparse(rng, d):
    """Asymmetric true values, nine of ten of them 0."""
    return np.where(rng.random(d) < 0.1, rng.normal(1.0, 6.0, size=d), 0.0)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("t", [0.3, 1.1, 7.3, 40.0])
def test_values_minimize_the_penalized_squares(law, t):
    # sign(y) (|y| - t)_+ is the minimizer of (x - y)^2 / 2 + t |x|
    x = np.linspace(-15, 15, 300_001)
    for y, value in zip(VALUES, soft_threshold(VALUES, 1.0, t, law=law).values, strict=True):
        assert value == pytest.approx(x[np.argmin((x - y) ** 2 / 2 + t * np.abs(x))], abs=6e-5)


def risk_by_differences(y, sigma, t):
    """Stein's estimate for a threshold t that is none of the sizes."""
    step = 1e-9 * sigma

    def soft(v):
        return np.sign(v) * np.maximum(np.abs(v) - t, 0)

    slopes = (soft(y + step) - soft(y - step)) / (2 * step)
    return np.mean((soft(y) - y) ** 2 + sigma**2 * (2 * slopes - 1))


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.5])
@pytest.mark.parametrize("t", [0.2, 1.3, 5.0, 20.0])
def test_the_gaussian_risk_is_steins_estimate(sigma, t):
    risk = soft_threshold(VALUES, sigma, t).risk
    expected = risk_by_differences(VALUES, sigma, t)
    assert risk == pytest.approx(expected, rel=1e-6, abs=1e-6 * sigma**2)


@pytest.mark.parametrize("sigma", [0.1, 0.8, 1.5, 4.0, 30.0])
@pytest.mark.parametrize("d", [1, 2, 9, 60])
def test_the_gaussian_minimum_is_that_of_brute_force(sigma, d):
    rng = np.random.default_rng(d)
    y = VALUES[:d] if d <= VALUES.size else sparse(rng, d) + rng.normal(size=d)
    # just above each size: at it, the derivative does not exist
    thresholds = np.r_[1e-6, np.abs(y) * (1 + 1e-7), np.linspace(1e-5, 40, 2_000)]
    least = min(risk_by_differences(y, sigma, t) for t in thresholds)
    found = soft_threshold(y, sigma, "sure")
    assert found.risk == pytest.approx(min(least, sigma**2), rel=1e-6)
    assert found.chosen["threshold"] in np.r_[0, np.abs(y)]


def test_the_risk_of_rounded_values_is_near_the_real_error():
    # whole numbers are often equal: if none of those at the threshold counted, the Gaussian
    # estimate would be a third too small here
    rng = np.random.default_rng(8)
    truth = np.round(4 * sparse(rng, 60_000))
    y = np.round(truth + 4 * rng.normal(size=truth.size))
    found = soft_threshold(y, math.sqrt(16 + 1 / 12), "sure")
    assert found.risk == pytest.approx(np.mean((found.values - truth) ** 2), rel=0.05)


@pytest.mark.parametrize("counts", [(3, 2, 3, 0, 1), (9, 3, 1, 1, 2, 0, 1), (2, 11, 1), (20, 1)])
@pytest.mark.parametrize("sigma", [0.6, 1.0, 1.7])
def test_the_minimum_of_whole_numbers_is_that_of_brute_force(counts, sigma):
    y = np.repeat(np.arange(len(counts)), counts) * np.resize([1, -1, 1], sum(counts))
    # of those at the threshold half count, except for the one it is taken from
    risks = {
        t: soft_threshold(y, sigma, t).risk - sigma**2 / y.size for t in set(np.abs(y[y != 0]))
    }
    found = soft_threshold(y, sigma, "sure")
    assert found.risk == pytest.approx(min([*risks.values(), sigma**2]), rel=1e-12)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("d", [8, 1_000])
def test_the_chosen_threshold_is_nearly_as_good_as_the_best(d):
    rng = np.random.default_rng(3)
    real, best, raw = 0.0, 0.0, 0.0
    for _ in range(4_000 // d):
        truth = sparse(rng, d)
        y = truth + rng.normal(size=d)
        found = soft_threshold(y, 1.0, "sure").values
        real += np.sum((found - truth) ** 2)
        raw += np.sum((y - truth) ** 2)
        best += min(
            np.sum((soft_threshold(y, 1.0, t).values - truth) ** 2)
            for t in np.r_[np.linspace(0, 5, 26), 40]
        )
    assert best <= real < (1.1 if d == 1_000 else 2.5) * best
    assert real < 0.7 * raw


def test_the_universal_thresholds():
    y = np.resize(VALUES, 400)
    gaussian = soft_threshold(y, 2.5, "universal").chosen["threshold"]
    assert gaussian == pytest.approx(2.5 * math.sqrt(2 * math.log(400)), rel=1e-14)
    laplace = soft_threshold(y, 2.5, "universal", law=LAPLACE).chosen["threshold"]
    # one of 400 values of pure noise is beyond it on average; fewer than one of Gaussian noise
    assert 400 * math.exp(-laplace / (2.5 / math.sqrt(2))) == pytest.approx(1)
    assert 0.1 < 400 * math.erfc(gaussian / 2.5 / math.sqrt(2)) < 1
    assert (
        soft_threshold(y, 2.5, "universal").values == soft_threshold(y, 2.5, gaussian).values
    ).all()


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("threshold", ["universal", 0, 1.5, math.inf])
def test_an_empty_array_comes_back(law, threshold):
    found = soft_threshold([], 3.0, threshold, law=law)
    assert found.values.shape == (0,)
    assert found.values.dtype == np.float64
    assert found.risk == 9


def test_the_extreme_thresholds():
    nothing = soft_threshold(VALUES, 2.0, 0)
    assert (nothing.values == VALUES).all()
    assert nothing.values is not VALUES
    assert nothing.risk == 4
    everything = soft_threshold(VALUES, 2.0, math.inf)
    assert (everything.values == 0).all()
    assert everything.risk == pytest.approx(np.mean(VALUES**2) - 4)
    # the Gaussian estimate sees no difference once all values are zero
    assert soft_threshold(VALUES, 2.0, 13.0).risk == pytest.approx(np.mean(VALUES**2) - 4)


@pytest.mark.parametrize("threshold", ["sure", "universal", 1.0])
@pytest.mark.parametrize("sigma", [5e-324, 1e-200, 1.0, 1e300])
@pytest.mark.parametrize("unit", [0.0, 1e-323, 1.0, 1e200, 1e306])
def test_no_size_of_values_is_a_problem(threshold, sigma, unit):
    for pattern in (VALUES[:1], VALUES[:2], VALUES[:3], VALUES, np.full(7, 0.1)):
        y = pattern * unit
        with np.errstate(all="raise"):  # the caller's settings do not matter
            found = soft_threshold(y, sigma, threshold)
        assert np.isfinite(found.values).all()
        assert (np.abs(found.values) <= np.abs(y)).all()
        assert not math.isnan(found.risk)
        assert not math.isnan(found.chosen["threshold"])


def test_one_huge_value_changes_no_choice():
    rng = np.random.default_rng(4)
    y = np.r_[sparse(rng, 500) + rng.normal(size=500), 1e3]
    t = soft_threshold(y, 1.0, "sure").chosen["threshold"]
    for huge in (1e6, 1e160, 1e300):
        y[-1] = huge
        assert soft_threshold(y, 1.0, "sure").chosen["threshold"] == pytest.approx(t, rel=1e-12)


@pytest.mark.parametrize("threshold", ["best", -1, -0.1, math.nan, None, True, "1", [1.0]])
def test_the_threshold_is_checked(threshold):
    with raises(QueryError, "universal", parameter="threshold"):
        soft_threshold(VALUES, 1.0, threshold)


def test_other_arguments_are_checked():
    with raises(QueryError, "Gaussian noise alone", parameter="threshold"):
        soft_threshold(VALUES, 1.0, "sure", law=LAPLACE)
    with raises(QueryError, "got law='cauchy'", parameter="law"):
        soft_threshold(VALUES, 1.0, law="cauchy")
    with raises(QueryError, "deviation", parameter="sigma"):
        soft_threshold(VALUES, 0.0)
    with raises(QueryError, "denoise", parameter="values"):
        soft_threshold([1.0, math.nan], 1.0, "sure")
