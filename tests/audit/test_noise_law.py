"""The law of the noise: chi-square tests that accept the true scale and reject one 2 % off.

Each assertion raises a false alarm with probability `FALSE_ALARM`. Fewer than 100 of them run in an
audit: fewer than one audit in 10,000 fails by chance.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats
from support.randomness import SYSTEM

from dpframe.privacy import noise
from dpframe.privacy.laws import GAUSSIAN, LAPLACE, STAIRCASE
from dpframe.privacy.noise import strip_table
from dpframe.privacy.staircase import scale_for

FALSE_ALARM = 1e-6
FEWEST = 50  # expected draws in the tails that are counted together
LAWS = [GAUSSIAN, LAPLACE]
audit = pytest.mark.audit


def beyond(law, z):
    """P(Z > z) for z >= 0."""
    return special.ndtr(-z) if law is GAUSSIAN else 0.5 * np.exp(-z)


def reaching(law, scale, k):
    """P(Y >= k) of a draw for k >= 1."""
    if law is GAUSSIAN:
        return beyond(law, (k - 0.5) / scale)
    return np.exp(-k / scale) / (1 + np.exp(-1 / scale))


def below(law, scale, k):
    """P(Y < k) of a draw."""
    tail = reaching(law, scale, np.where(k > 0, k, 1 - k))
    return np.where(k > 0, 1 - tail, tail)


def between(law, scale, edges):
    """P(Y < e[0]), P(e[i] <= Y < e[i + 1]) and P(Y >= e[-1]), without cancellation in the tails."""
    lower = np.r_[0, below(law, scale, edges), 1]
    upper = np.r_[1, below(law, scale, 1 - edges), 0]
    return np.where(np.r_[True, edges <= 0], np.diff(lower), -np.diff(upper))


def edges_of(law, scale, draws, most):
    """First integer of each cell but the leftmost: about so many cells, of an integer or more."""
    rare = 2 * FEWEST / draws
    reach = -special.ndtri(rare / 2) if law is GAUSSIAN else -np.log(rare)
    last = max(0, int(reach * scale - 0.5))
    step = max(1, 2 * last // most)
    half = np.arange(step - step // 2, last + 2, step)
    return np.r_[1 - half[::-1], half]


def chi_square(counts, probabilities):
    """P-value of Pearson's test."""
    probabilities = probabilities / probabilities.sum()
    if len(counts) == 1:
        return 1.0
    return stats.chisquare(counts, counts.sum() * probabilities).pvalue


def law_test(law, scale, draws, most=500, *, true_scale=None, size=10**6):
    """P-value of the hypothesis that the draws have this scale; they are made so many at once."""
    edges = edges_of(law, scale, draws, most)
    counts = np.zeros(len(edges) + 1)
    size = min(draws, size)
    for _ in range(0, draws, size):
        values = noise.integer_noise(law.curve, true_scale or scale, size, SYSTEM)
        cells = np.searchsorted(edges, values, side="right")
        counts += np.bincount(cells, minlength=len(counts))
    return chi_square(counts, between(law, scale, edges))


QUICK = [0.3, 1.0, 4.2, 1000.0, 2.0**20, 2.0**40]


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", QUICK)
def test_two_million_draws_have_the_law(law, scale):
    assert law_test(law, scale, 2 * 10**6) > FALSE_ALARM


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", QUICK)
@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_two_million_draws_of_another_scale_are_rejected(law, scale, factor):
    p_value = law_test(law, scale, 2 * 10**6, most=100, true_scale=factor * scale)
    assert p_value < FALSE_ALARM


FEW = [(1, 40_000, 0.1), (8, 40_000, 0.1), (9, 90_000, 0.05), (1_000, 2 * 10**6, 0.02)]


@pytest.mark.full
@pytest.mark.sampled(every=5, full=3)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [1.0, 37.5])
@pytest.mark.parametrize(("size", "draws", "off"), FEW)
def test_few_draws_at_once_have_the_law_and_no_other_scale(law, scale, size, draws, off):
    assert law_test(law, scale, draws, size=size) > FALSE_ALARM
    for factor in (1 - off, 1 + off):
        p_value = law_test(law, scale, draws, most=50, true_scale=factor * scale, size=size)
        assert p_value < FALSE_ALARM


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [0.3, 4.2, 2.0**20, 2.0**40])
@pytest.mark.parametrize("size", [1, 1_000])
def test_millions_of_draws_made_few_at_once_have_the_law(law, scale, size):
    p_value = law_test(law, scale, 2 * 10**6, size=size)
    print(f"{law} scale {scale:g}, {size} at once: p = {p_value:.3f}")
    assert p_value > FALSE_ALARM


def test_narrow_noise_is_nearly_always_zero():
    # one Gaussian draw in 10**22 is not zero; for Laplace one in 40,000 at .1
    assert not noise.integer_noise(GAUSSIAN.curve, 0.05, 2 * 10**6, SYSTEM).any()
    assert law_test(LAPLACE, 0.1, 2 * 10**6) > FALSE_ALARM


# the law is that of geometric sizes for an offset of its own, of which these are the ends
OTHERS = {
    "a rounded Laplace": replace(GAUSSIAN.curve, peak=496, reach=12, energy=abs),
    "0 of both signs": replace(
        LAPLACE.curve, offset=lambda scale, bits: (0, 0), pull=lambda scales: 0.5 + 0 * scales
    ),
}


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.2])
@pytest.mark.parametrize("curve", OTHERS.values(), ids=list(OTHERS))
def test_two_million_draws_of_another_law_are_rejected(scale, curve, monkeypatch):
    table = replace(strip_table(LAPLACE.curve), curve=curve)
    monkeypatch.setattr(noise, "strip_table", lambda law: table)
    assert law_test(LAPLACE, scale, 2 * 10**6) < FALSE_ALARM


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.2, 1000.0])
def test_ten_million_draws_have_the_law_integer_by_integer(law, scale):
    p_value = law_test(law, scale, 10**7, most=10**6)
    print(f"{law} scale {scale:g}: p = {p_value:.3f}")
    assert p_value > FALSE_ALARM
    for factor in (0.98, 1.02):
        p_value = law_test(law, scale, 10**7, most=200, true_scale=factor * scale)
        print(f"    drawn at {factor} of it: p = {p_value:.1e}")
        assert p_value < FALSE_ALARM


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [1.37 * 2.0**20, 2.0**40, 2.0**50, 2.0**56])
def test_quantiles_of_wide_noise(law, scale):
    p_value = law_test(law, scale, 10**7, most=2000)
    print(f"{law} scale 2**{np.log2(scale):.2f}: p = {p_value:.3f}")
    assert p_value > FALSE_ALARM


def forced_test(law, scale, draws, monkeypatch):
    """P-value with no decision left to floats, and few bits of Z and of the height at first."""
    round_exactly, accept = noise._round_exactly, noise._accept
    asked = {"rounding": 0, "height": 0}

    def fewer(interval, bits):
        return noise.Interval(
            interval.start >> max(0, interval.bits - bits), min(interval.bits, bits), SYSTEM
        )

    def coarse_round(curve, scale, drawn):
        asked["rounding"] += 1
        return round_exactly(curve, scale, fewer(drawn, 8))

    def coarse_accept(curve, drawn, height):
        asked["height"] += 1
        return accept(curve, fewer(drawn, 8), fewer(height, 2) if height.bits == 64 else height)

    monkeypatch.setattr(noise, "MARGIN", 1e6)
    monkeypatch.setattr(noise, "_round_exactly", coarse_round)
    monkeypatch.setattr(noise, "_accept", coarse_accept)
    p_value = law_test(law, scale, draws)
    assert asked["rounding"] > draws
    assert asked["height"] > 0.01 * draws
    return p_value


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [0.3, 4.2, 2.0**40])
def test_settling_everything_exactly_gives_the_same_law(law, scale, monkeypatch):
    assert forced_test(law, scale, 50_000, monkeypatch) > FALSE_ALARM


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.2, 1000.0, 2.0**40])
def test_settling_everything_exactly_gives_the_same_law_at_length(law, scale, monkeypatch):
    p_value = forced_test(law, scale, 10**6, monkeypatch)
    print(f"{law} scale {scale:g}, all exact: p = {p_value:.3f}")
    assert p_value > FALSE_ALARM


def tail_test(law, tries):
    """P-values of the number of accepted tail draws, of their law and of their sign."""
    curve = law.curve
    drawn = [noise._try_tail(curve, SYSTEM) for _ in range(tries)]
    z = np.array([t.start / 2.0**t.bits for t in drawn if t is not None])
    # the tail's cell has area 1 in units of which the table has 64 * peak * integral(exp(-energy))
    total = 64 * curve.peak * (np.sqrt(2 * np.pi) if law is GAUSSIAN else 2)
    chance = total * 2 * beyond(law, curve.reach)
    accepted = stats.binomtest(z.size, tries, chance).pvalue
    uniform = beyond(law, np.abs(z)) / beyond(law, curve.reach)
    sign = stats.binomtest(int((z > 0).sum()), z.size).pvalue
    return accepted, stats.kstest(uniform, "uniform").pvalue, sign


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tail_draws_have_the_law_of_the_tail(law):
    assert min(tail_test(law, 10_000)) > FALSE_ALARM


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tail_draws_have_the_law_of_the_tail_at_length(law):
    p_values = tail_test(law, 200_000)
    print(f"{law} tail: p = {np.round(p_values, 3)}")
    assert min(p_values) > FALSE_ALARM


def transformed_counts(law, draws):
    """Counts of P(Y < y) + U P(Y = y), uniform for every scale, U uniform; one scale per draw."""
    rng = np.random.default_rng()
    scale = 2.0 ** rng.uniform(-2, 58, draws)
    values = noise.integer_noise(law.curve, scale, draws, SYSTEM)
    start, end = (below(law, scale, values + shift) for shift in (0, 1))
    uniform = start + rng.random(draws) * (end - start)
    odd = np.bincount(values[scale > 2.0**20] & 63, minlength=64)
    return np.bincount((uniform * 1024).astype(int).clip(0, 1023), minlength=1024), odd


def scales_test(law, millions):
    """P-values of evenness: of the transformed draws, and of the low six bits of wide ones."""
    totals = [np.zeros(1024), np.zeros(64)]
    for _ in range(millions):
        totals = [t + c for t, c in zip(totals, transformed_counts(law, 10**6), strict=True)]
    return [chi_square(total, np.ones(total.size)) for total in totals]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_as_many_scales_as_draws(law):
    assert min(scales_test(law, 1)) > FALSE_ALARM


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_as_many_scales_as_draws_at_length(law):
    p_values = scales_test(law, 20)
    print(f"{law}, 2e7 scales: p = {np.round(p_values, 3)}")
    assert min(p_values) > FALSE_ALARM


def stairs_test(scale, draws, true_scale=None):
    """P-value of the hypothesis that staircase noise of some scale has that of another."""
    at = np.arange(1, 60 * int(scale))
    tails = STAIRCASE.at_least(scale, at)
    last = int((draws * tails > FEWEST).sum())
    edges = np.r_[1 - at[:last][::-1], at[:last]]
    upper = tails[:last]
    chances = np.r_[upper[::-1], 1 - upper[0] * 2, upper]  # of tails, and the middle
    between_ends = np.r_[
        upper[-1], -np.diff(upper)[::-1], chances[last], -np.diff(upper), upper[-1]
    ]
    counts = np.zeros(len(edges) + 1)
    for _ in range(0, draws, 10**6):
        values = STAIRCASE.draw([true_scale or scale], min(draws, 10**6), SYSTEM)[0]
        counts += np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(counts))
    return chi_square(counts, between_ends)


@audit
@pytest.mark.parametrize("moved", [1, 3, 20, 200])
@pytest.mark.parametrize("epsilon", [1.5, 3.0, 6.0])
def test_staircase_noise_has_the_law_integer_by_integer(moved, epsilon):
    scale = scale_for(moved, moved / epsilon)
    p_value = stairs_test(scale, 10**7)
    print(f"staircase {scale:g}: p = {p_value:.3f}")
    assert p_value > FALSE_ALARM
    for factor in (0.98, 1.02):
        other = scale_for(moved, moved / epsilon / factor)
        p_value = stairs_test(scale, 10**7, other)
        print(f"    drawn at {factor} of its epsilon: p = {p_value:.1e}")
        assert p_value < FALSE_ALARM
