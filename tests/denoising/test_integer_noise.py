"""Estimated risks under discrete Laplace noise, by brute force over its law."""

import numpy as np
import pytest

from dpframe.denoising.projection import nonnegative, simplex
from dpframe.denoising.thresholding import soft_threshold
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

SCALES = [0.4, 1.0, 3.0]
TRUTHS = [-4, 0, 1, 7]


def law_of(scale):
    """Integers and their probabilities, all but 1e-17 of them."""
    drawn = np.arange(-int(40 * scale) - 3, int(40 * scale) + 4)
    weights = np.exp(-np.abs(drawn) / scale)
    return drawn, weights / weights.sum()


def bias(denoise, truth, scale):
    """Mean of the estimated risk less that of the squared error, in variances of the noise."""
    noise, weights = law_of(scale)
    sigma = LAPLACE.standard_deviation(scale)
    found = [denoise([float(truth + w)], sigma) for w in noise]
    excess = [each.risk - (each.values[0] - truth) ** 2 for each in found]
    return weights @ excess / sigma**2


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("t", [0.3, 1, 2, 3.7, 9])
def test_the_risk_of_soft_thresholding_is_exact(truth, scale, t):
    def denoise(y, sigma, integer=True):
        return soft_threshold(y, sigma, t, law=LAPLACE, integer=integer)

    assert bias(denoise, truth, scale) == pytest.approx(0, abs=1e-12)
    if scale <= 1 and t in (1, 2) and truth == 0:  # the formula of continuous noise is not
        assert abs(bias(lambda y, s: denoise(y, s, integer=False), truth, scale)) > 0.01


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("truth", [0, 1, 2, 7])
def test_the_risk_of_clipping_is_exact(truth, scale):
    def denoise(y, sigma, integer=True):
        return nonnegative(y, sigma, law=LAPLACE, integer=integer)

    assert bias(denoise, truth, scale) == pytest.approx(0, abs=1e-12)
    if truth == 1 and scale <= 1:
        assert abs(bias(lambda y, s: denoise(y, s, integer=False), truth, scale)) > 0.001


@pytest.mark.parametrize("scale", SCALES)
def test_the_threshold_is_the_best_whole_one(scale):
    rng = np.random.default_rng(3)
    truth = np.where(np.arange(300) % 10 == 0, 12, 0)
    y = truth + rng.choice(law_of(scale)[0], 300, p=law_of(scale)[1])
    sigma = LAPLACE.standard_deviation(scale)
    found = soft_threshold(y, sigma, law=LAPLACE, integer=True)
    risks = [soft_threshold(y, sigma, t, law=LAPLACE, integer=True).risk for t in range(200)]
    assert found.chosen["threshold"] == np.argmin(risks)
    assert found.risk == pytest.approx(min(risks), rel=1e-12)


def test_the_threshold_that_removes_all_is_found_among_whole_ones():
    y = np.array([1, -1, 0, 2, 0, 0, -2, 1.0])
    found = soft_threshold(y, 30.0, law=LAPLACE, integer=True)
    assert found.values.tolist() == [0] * 8
    assert float(found.chosen["threshold"]).is_integer()


def test_values_off_integers_and_gaussian_noise_are_as_before():
    y = np.array([0.5, -3, 12, 1, 0, -7, 2, 4])
    for denoise in (soft_threshold, nonnegative, simplex):
        plain = denoise(y, 2.0, law=LAPLACE).risk
        assert denoise(y, 2.0, law=LAPLACE, integer=True).risk == plain
        rounded = denoise(np.rint(y), 2.0, law=GAUSSIAN).risk
        assert denoise(np.rint(y), 2.0, law=GAUSSIAN, integer=True).risk == rounded


@pytest.mark.parametrize("scale", [0.7, 3.0, 30.0])
@pytest.mark.parametrize("given", [True, False])
def test_the_risk_on_a_simplex_is_nearly_right_for_the_law_it_is_told(scale, given):
    rng = np.random.default_rng(12)
    noise, weights = law_of(scale)
    sigma = LAPLACE.standard_deviation(scale)
    truth = np.where(np.arange(400) % 8 == 0, 20.0, 0.0)
    total = truth.sum() if given else None
    off = {LAPLACE: [], GAUSSIAN: []}
    for _ in range(60):
        y = truth + rng.choice(noise, 400, p=weights)
        for law, found in off.items():
            made = simplex(y, sigma, total=total, law=law, integer=True)
            found.append((made.risk - np.mean((made.values - truth) ** 2)) / sigma**2)
    # the error of these means is below .01
    assert abs(np.mean(off[LAPLACE])) < 0.03
    assert abs(np.mean(off[GAUSSIAN])) > 0.05
