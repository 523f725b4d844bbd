"""Tails of histograms of sizes: kept where they stand out, guessed behind, and gone far away."""

import itertools
from functools import cache

import numpy as np
import pytest

from dpframe.denoising import tails
from dpframe.denoising.tails import (
    likely_counts,
    log_widths,
    mean_sizes,
    support_counts,
    tail_counts,
)
from dpframe.queries.searches import candidate_caps

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


@pytest.mark.parametrize("seed", range(5))
def test_empty_bins_in_front_are_left_out(seed):
    truth = np.concatenate([np.zeros(30), TRUTH])
    noisy = truth + np.random.default_rng(seed).laplace(0, 10, len(truth)).round()
    counts = support_counts(noisy, 10.0, np.ones(len(truth)))
    assert (counts[:29] == 0).all()
    np.testing.assert_array_equal(counts[30:38], noisy[30:38])
    nothing = support_counts(noisy[:30], 10.0, np.ones(30))
    assert not nothing.any()


@cache
def by_enumeration(noisy, noise, widths):
    """Mean numbers under the posterior, by all paths of numbers and slopes, in plain words."""
    top = max(noisy) + 5 * noise
    ends = [0.5]
    while ends[-1] < top:
        ends.append(ends[-1] * np.exp(0.4))
    levels, slopes = list(itertools.pairwise(ends)), tails._TURNS
    count, each = len(levels), 1 / (len(levels) * len(slopes))
    full = list(itertools.product(range(len(slopes)), range(count)))
    states = ["ended", "empty", *full]

    def gone(slope, level, rise):
        """Part of the moves that leave the levels, half of which ends."""
        return 1 - moved(slope, level, rise).sum()

    def moved(slope, level, rise):
        steps = 0.4 * (np.arange(count) - level) - rise
        found = np.exp(-np.abs(steps - slopes[slope]) / 0.25) * 0.4 / 0.5
        return found / max(found.sum(), 1)

    def turned(slope, other):
        near = 0.15 * (np.abs(np.arange(len(slopes)) - slope) == 1) + 0.1 / len(slopes)
        near[slope] += 1 - near.sum()
        return near[other]

    def going(state, other, rise):
        if state == "ended":
            return float(other == "ended")
        if state == "empty":
            return {"ended": 0.5, "empty": 0.4}.get(other, 0.1 * each)
        left = 0.84 * gone(*state, rise) / 2
        if other in ("ended", "empty"):
            return {"ended": 0.1, "empty": 0.03}[other] + left
        step = moved(*state, rise)[other[1]]
        return 0.84 * turned(state[0], other[0]) * step + 0.03 * each

    def likely(state, h):
        low, high = (0, 0) if isinstance(state, str) else levels[state[1]]
        numbers = np.linspace(low, high, 801)
        middle = (numbers[1:] + numbers[:-1]) / 2
        return np.exp(-np.abs(h - middle) / noise).mean() / (2 * noise)

    start = np.array([0, 0.1] + [0.9 * each] * len(full))
    seen = np.array([[likely(state, h) for state in states] for h in noisy])
    rises = np.diff(np.log(widths))
    steps = [[[going(a, b, rise) for b in states] for a in states] for rise in rises]
    joint = start * seen[0]
    for at, step in enumerate(steps):  # the sum over all paths, as one array
        joint = joint[..., :, None] * np.array(step) * seen[at + 1]
    joint /= joint.sum()
    axes = range(len(noisy))
    return [joint.sum(axis=tuple(set(axes) - {axis})) for axis in axes], states, levels


def test_drawn_histograms_have_the_posterior_of_all_paths():
    noisy, widths = np.array([3.0, -1.0, 2.0]), np.array([1.0, 0.5, 0.7])
    expected, states, levels = by_enumeration(tuple(noisy), 4.0, tuple(widths))
    drawn = likely_counts(noisy, 4.0, widths, draws=20_000)
    for at, marginal in enumerate(expected):
        none = (drawn[:, at] == 0).mean()
        assert none == pytest.approx(marginal[:2].sum(), abs=0.02)  # six standard errors
        for n, (low, high) in enumerate(levels):
            found = ((drawn[:, at] >= low) & (drawn[:, at] < high)).mean()
            share = sum(p for p, state in zip(marginal, states, strict=True) if state[1] == n)
            assert found == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("values", [[0], [-5, -9], [1e15, 2.0, -1e15], [2.0**60] * 3])
def test_any_numbers_have_histograms(values):
    drawn = likely_counts(np.array(values, float), 3.0, np.ones(len(values)))
    assert drawn.shape == (300, len(values)) and np.isfinite(drawn).all() and (drawn >= 0).all()
    certain = likely_counts(np.array(values, float), 0.0, np.ones(len(values)))
    assert certain.tolist() == [np.maximum(values, 0.0).tolist()]


@pytest.mark.parametrize("seed", range(4))
def test_what_stands_out_is_in_all_drawn_histograms(seed):
    noisy = TRUTH + np.random.default_rng(seed).laplace(0, 10, len(MOST)).round()
    drawn = likely_counts(noisy, 10.0, WIDTHS)
    assert drawn.shape == (300, len(MOST)) and (drawn >= 0).all()
    assert np.abs(np.median(drawn, axis=0) - TRUTH)[:8].max() < 60
    assert (drawn[:, 25:] > 0).mean() < 0.05
    np.testing.assert_array_equal(drawn, likely_counts(noisy, 10.0, WIDTHS))
