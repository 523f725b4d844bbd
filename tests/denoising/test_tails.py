"""Tails of histograms of sizes: kept where they stand out, guessed behind, and gone far away."""

import numpy as np
import pytest

from dpframe.denoising.tails import log_widths, mean_sizes, support_counts, tail_counts
from dpframe.queries.sizes import candidate_caps

MOST = candidate_caps("rows", 2**20).to_numpy()
WIDTHS = log_widths(MOST)
TRUTH = np.zeros(len(MOST))
TRUTH[:11] = 900, 700, 500, 300, 300, 200, 160, 120, 100, 25, 12


def test_typical_sizes_are_means_under_weights_that_fall_as_one_over_x():
    most = np.array([1, 2, 3, 6, 8, 24, 1000])
    below = [0, *most[:-1]]
    for low, high, mean in zip(below, most, mean_sizes(most), strict=True):
        sizes = np.arange(low + 1, high + 1)
        expected = np.average(sizes, weights=1 / sizes)
        assert mean == pytest.approx(expected, rel=0.01)
        assert low < mean <= high


@pytest.mark.parametrize("seed", range(9))
def test_what_stands_out_is_kept_and_what_is_far_away_goes(seed):
    noisy = TRUTH + np.random.default_rng(seed).laplace(0, 10, len(MOST)).round()
    counts = tail_counts(noisy, 10.0, WIDTHS)
    assert (counts >= 0).all()
    np.testing.assert_array_equal(counts[:8], noisy[:8])
    far = counts[16:] @ mean_sizes(MOST)[16:]
    assert far < 0.1 * (counts @ mean_sizes(MOST))  # the noise there stands for 30 times all rows
    assert np.abs(noisy[16:]) @ mean_sizes(MOST)[16:] > 100 * (TRUTH @ mean_sizes(MOST))


def test_behind_the_end_less_is_left_of_a_steeper_tail():
    flat, steep = TRUTH.copy(), TRUTH.copy()
    flat[5:9] = 200, 190, 180, 170
    steep[5:9] = 400, 200, 100, 50
    flat[9:] = steep[9:] = 0
    left = [tail_counts(noisy, 12.0, WIDTHS)[9:].sum() for noisy in (flat, steep)]
    assert 0 < left[1] < 30
    assert left[0] < 60  # zeros behind say that it stops


def test_a_bin_is_believed_sooner_beside_others():
    near, far = TRUTH.copy(), TRUTH.copy()
    near[9:], far[9:] = 0, 0
    near[9] = far[30] = 45
    assert tail_counts(near, 10.0, WIDTHS)[9] == 45
    assert tail_counts(far, 10.0, WIDTHS)[30] < 1
    far[30] = 4000
    assert tail_counts(far, 10.0, WIDTHS)[30] == 4000


def test_without_noise_all_is_kept():
    counts = tail_counts(np.where(TRUTH == 700, -2, TRUTH), 0.0, WIDTHS)
    np.testing.assert_array_equal(counts, np.where(TRUTH == 700, 0, TRUTH))


@pytest.mark.parametrize("bins", [1, 2, 3])
def test_few_bins_are_no_hindrance(bins):
    for values in ([0, 0, 0], [-5, -9, -1], [70, 3, -9], [1, 2, 900]):
        counts = tail_counts(np.array(values[:bins], float), 10.0, WIDTHS[:bins])
        assert counts.shape == (bins,) and np.isfinite(counts).all() and (counts >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_empty_bins_in_front_are_left_out(seed):
    truth = np.concatenate([np.zeros(30), TRUTH])
    noisy = truth + np.random.default_rng(seed).laplace(0, 10, len(truth)).round()
    counts = support_counts(noisy, 10.0, np.ones(len(truth)))
    assert (counts[:29] == 0).all()
    np.testing.assert_array_equal(counts[30:38], noisy[30:38])
    nothing = support_counts(noisy[:30], 10.0, np.ones(30))
    assert not nothing.any()
