"""Staircase noise: its law by enumeration in rational arithmetic, its draws, its half-widths."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from scipy import stats
from support.raising import raises
from support.randomness import SYSTEM

from dpframe.errors import CalibrationError
from dpframe.inference.sums import IndependentSum
from dpframe.privacy import staircase
from dpframe.privacy.laws import GAUSSIAN, LAPLACE, STAIRCASE
from dpframe.privacy.noise_sum import NoiseSum, Shares
from dpframe.privacy.staircase import scale_for, staircase_noise, stairs_of

FALSE_ALARM = 1e-6
CASES = [(moved, epsilon) for moved in (1, 2, 7, 20, 61) for epsilon in (0.25, 1.5, 8.0)]
SCALES = [scale_for(moved, moved / epsilon) for moved, epsilon in CASES]
every_scale = pytest.mark.parametrize("scale", SCALES)


def exponents(stairs, periods=4):
    """The power of b in the chance of every integer within some periods, by the definition."""
    at = np.arange(-periods * stairs.period, periods * stairs.period)
    k, j = np.divmod(np.abs(at), stairs.period)
    return k + (j >= stairs.width)


def law_of(scale, periods=None):
    """Integers and their chances, added up one by one, as far as floats hear of them."""
    stairs = stairs_of(scale)
    periods = periods or math.ceil(42 / -math.log(stairs.ratio)) + 2
    at = np.arange(-periods * stairs.period, periods * stairs.period + 1)
    k, j = np.divmod(np.abs(at), stairs.period)
    chances = stairs.ratio ** (k + (j >= stairs.width)).astype(float)
    return at, chances / chances.sum()


@every_scale
def test_moving_by_up_to_d_costs_one_stair_and_beyond_it_two(scale):
    # chances are powers of one fraction; beyond four periods, all is b times what it was
    stairs = stairs_of(scale)
    b = Fraction(stairs.numerator, 2**stairs.bits)
    assert stairs.period + b == Fraction(scale)
    powers = exponents(stairs)
    for moved in range(1, 3 * stairs.period + 1):
        crossed = np.abs(powers[moved:] - powers[:-moved]).max()
        assert crossed == -(-moved // stairs.period)
        claimed = STAIRCASE.loss(moved, scale)
        with mp.workdps(70):
            exact = crossed * -mp.log(mp.mpf(b.numerator) / b.denominator)
            assert 0 <= mp.mpf(claimed.numerator) / claimed.denominator - exact < 1e-40
    # planted: a wider first stair on one side alone is crossed twice by a move of D
    shifted = np.where(np.arange(len(powers)) >= len(powers) // 2 + stairs.width, 1, 0)
    moved = stairs.period
    assert np.abs((powers + shifted)[moved:] - (powers + shifted)[:-moved]).max() == 2


@pytest.mark.parametrize(("moved", "epsilon"), [*CASES, (2**40, 2.0), (999_999_937, 4.0)])
def test_the_ratio_is_the_least_float_that_keeps_the_promise(moved, epsilon):
    wide = moved / epsilon
    scale = scale_for(moved, wide)
    stairs = stairs_of(scale)
    with mp.workdps(60):
        least = mp.exp(-mp.mpf(moved) / mp.mpf(wide))
        b = mp.mpf(stairs.numerator) / 2**stairs.bits
        assert stairs.period == moved
        assert b - mp.mpf(math.ulp(scale)) < least <= b
    assert STAIRCASE.loss(moved, scale) <= Fraction(moved) / Fraction(wide)
    below = math.nextafter(scale, 0)  # planted: one unit in the last place less
    assert STAIRCASE.loss(moved, below) > Fraction(moved) / Fraction(wide)


@every_scale
def test_closed_forms_are_sums_over_the_law(scale):
    at, chances = law_of(scale)
    assert STAIRCASE.standard_deviation(scale) == pytest.approx(
        math.sqrt(chances @ at**2), rel=1e-12
    )
    assert stairs_of(scale).peak == pytest.approx(chances[at == 0][0], rel=1e-12)
    tails = np.cumsum(chances[::-1])[::-1]
    near = np.abs(at) < len(at) // 8
    assert STAIRCASE.at_least(scale, at[near]) == pytest.approx(tails[near], rel=2e-12)
    t = np.array([0.0, 1e-9, 0.03, 0.7, 3.1, 2 * math.pi, 40.0])
    found = STAIRCASE.characteristic(scale, t)
    assert found == pytest.approx(np.cos(np.outer(t, at)) @ chances, abs=1e-12)
    h = np.array([0.0, 1e-6, 0.3, 0.7]) * STAIRCASE.largest_tilt(scale)
    expected = np.log(np.exp(np.outer(h, at)) @ chances)
    assert STAIRCASE.log_moment(scale, h) == pytest.approx(expected, rel=1e-3, abs=1e-9)


def test_the_deviation_is_that_of_mpmath_where_numbers_are_large():
    for moved, epsilon in [(10**6 + 3, 0.5), (2**30, 2.0), (2**40, 6.0)]:
        scale = scale_for(moved, moved / epsilon)
        stairs = stairs_of(scale)
        with mp.workdps(60):
            b = mp.mpf(stairs.numerator) / 2**stairs.bits
            period, width = stairs.period, stairs.width

            def below(n, power):
                return mp.mpf([n, n * (n - 1) // 2, n * (n - 1) * (2 * n - 1) // 6][power])

            w = [below(width, p) + b * (below(period, p) - below(width, p)) for p in range(3)]
            sums = [1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3]
            squares = period**2 * w[0] * sums[2] + 2 * period * w[1] * sums[1] + w[2] * sums[0]
            exact = mp.sqrt(2 * squares / (2 * w[0] * sums[0] - 1))
        assert STAIRCASE.standard_deviation(scale) == pytest.approx(float(exact), rel=1e-12)


@every_scale
def test_no_other_width_has_a_smaller_variance(scale):
    stairs = stairs_of(scale)
    b, k = stairs.ratio, np.arange(math.ceil(42 / -math.log(stairs.ratio)) + 2)[:, None]
    at = k * stairs.period + np.arange(stairs.period)
    variances = []
    for width in range(1, stairs.period + 1):
        chances = b ** (k + (np.arange(stairs.period) >= width)).astype(float)
        variances.append(2 * (chances * at**2).sum() / (2 * chances.sum() - 1))
    assert STAIRCASE.standard_deviation(scale) ** 2 <= min(variances) * (1 + 1e-11)


# standard deviations of Laplace noise over those of staircase noise, D = 20
GAINS = [(1, 1.02), (2, 1.09), (3, 1.21), (4, 1.38), (5, 1.63), (8, 2.97)]


@pytest.mark.parametrize(("epsilon", "gain"), GAINS)
def test_it_is_narrower_than_laplace_noise(epsilon, gain):
    laplace = LAPLACE.standard_deviation(20 / epsilon)
    stairs = STAIRCASE.standard_deviation(scale_for(20, 20 / epsilon))
    assert laplace / stairs == pytest.approx(gain, abs=0.006)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_one_step_is_the_discrete_laplace_law(epsilon):
    scale, m = scale_for(1, 1 / epsilon), np.arange(-9, 30)
    assert STAIRCASE.at_least(scale, m) == pytest.approx(LAPLACE.at_least(1 / epsilon, m))
    ours = STAIRCASE.standard_deviation(scale)
    assert LAPLACE.standard_deviation(1 / epsilon) <= ours <= 1.000001 * ours


@pytest.mark.parametrize("scale", [0.5, 1.0, 20.0, 2.0**40 + 2**20, 2.0**41 + 0.5])
def test_scales_of_no_law_are_refused(scale):
    for call in (STAIRCASE.standard_deviation, lambda s: STAIRCASE.draw([s], 3, SYSTEM)):
        with raises(CalibrationError, "D + b", parameter="scale", value=scale):
            call(scale)


def test_a_cost_that_takes_too_long_to_draw_is_refused():
    with raises(CalibrationError, "Laplace", parameter="epsilon"):
        scale_for(20, 20 * 65.0)
    assert stairs_of(scale_for(3, 1e-30)).numerator == 1  # e^-epsilon is 0 in any decimal
    assert STAIRCASE.standard_deviation(0) == 0 == STAIRCASE.half_width(0, 0.9)
    assert STAIRCASE.draw_each(np.array([0.0, 3.25]), SYSTEM).shape == (2,)


@pytest.mark.parametrize(("scale", "periods"), [(1.5, 0), (2.5, 1), (3.25, 2), (7.375, 1)])
def test_every_word_gives_the_draw_that_is_its_share(scale, periods, monkeypatch):
    # all points below the total, with both signs: chances are whole numbers of the total
    stairs = stairs_of(scale)
    total = stairs.width * 2**stairs.bits + (stairs.period - stairs.width) * stairs.numerator
    shift = 64 - total.bit_length()
    points = np.arange(2 ** total.bit_length(), dtype=np.uint64)
    words = np.concatenate([points << np.uint64(shift), points << np.uint64(shift) | np.uint64(1)])
    monkeypatch.setattr(staircase, "random_words", lambda *_: words)
    monkeypatch.setattr(staircase, "_periods", lambda _, size, context: np.full(size, periods))
    drawn, kept = staircase._try_draws(stairs, len(words), SYSTEM)
    values, counts = np.unique(drawn[kept], return_counts=True)
    parts = [
        2**stairs.bits if abs(v) % stairs.period < stairs.width else stairs.numerator
        for v in values.tolist()
    ]
    assert counts.tolist() == parts
    low = periods * stairs.period
    expected = {sign * (low + j) for sign in (1, -1) for j in range(stairs.period)}
    assert set(values.tolist()) == expected
    assert kept.sum() == 2 * total - (0 if periods else 2**stairs.bits)  # no minus zero


def test_periods_are_counted_by_the_bits_of_the_ratio(monkeypatch):
    stairs = stairs_of(5.375)  # b = 3/8: words below 3/8 of their range go on
    rounds = iter(
        [np.array([0, 3, 2, 7], np.uint64) << np.uint64(61), np.array([2, 5], np.uint64) << 61]
    )
    rounds = itertools.chain(rounds, [np.array([3], np.uint64) << np.uint64(61)])
    monkeypatch.setattr(staircase, "random_words", lambda *_: next(rounds))
    assert staircase._periods(stairs, 4, SYSTEM).tolist() == [2, 0, 1, 0]


def p_value(drawn, scale):
    """P-value of Pearson's test of draws, with tails of fewer than 50 draws in one cell."""
    at, chances = law_of(scale)
    expected = chances * len(drawn)
    inner = expected > 50
    low, high = at[inner][0], at[inner][-1]
    counts = np.bincount(np.clip(drawn, low - 1, high + 1) - low + 1, minlength=high - low + 3)
    parts = np.r_[expected[at < low].sum(), expected[(at >= low) & (at <= high)]]
    parts = np.r_[parts, expected[at > high].sum()]
    heard = parts > 5
    return stats.chisquare(counts[heard], parts[heard] * counts[heard].sum() / parts[heard].sum())[
        1
    ]


@pytest.mark.parametrize(("moved", "epsilon"), [(1, 1.0), (3, 2.0), (20, 3.0), (20, 5.0)])
def test_draws_have_the_law_and_no_other(moved, epsilon):
    scale = scale_for(moved, moved / epsilon)
    drawn = staircase_noise(scale, 400_000, SYSTEM)
    assert p_value(drawn, scale) > FALSE_ALARM
    others = [scale_for(moved, moved / (epsilon * factor)) for factor in (0.96, 1.04)]
    assert all(
        p_value(staircase_noise(other, 400_000, SYSTEM), scale) < FALSE_ALARM for other in others
    )


def convolved(steps, scales):
    """The law of a sum of noises, with whole steps: places and chances."""
    law = np.ones(1)
    for step, scale in zip(steps, scales, strict=True):
        at, own = law_of(scale)
        spread = np.zeros(2 * abs(step) * at[-1] + 1)
        spread[step * at + abs(step) * at[-1]] = own
        law = np.convolve(law, spread)
    return np.arange(len(law)) - len(law) // 2, law


LEVELS = [0.5, 0.8, 0.95, 0.999]
NARROW = [scale_for(3, 1.0), scale_for(5, 1.0), scale_for(2, 1.0)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("steps", [(1,), (1, -1), (3, 2, -1), (1, 1, 1, 1, 1)])
def test_a_half_width_is_the_smallest_that_covers(steps, level):
    scales = (NARROW * 2)[: len(steps)]
    at, law = convolved(steps, scales)
    sizes = [abs(c) * STAIRCASE.standard_deviation(s) for c, s in zip(steps, scales, strict=True)]
    names = [str(k) for k in range(len(steps))]
    noise = NoiseSum(dict(zip(names, sizes, strict=True)), dict(zip(names, scales, strict=True)))
    width = STAIRCASE.sum_half_width(noise, level)
    assert law[np.abs(at) <= width].sum() >= level
    assert law[np.abs(at) < width].sum() < level + 2e-3 * (1 - level)
    if len(steps) == 1:
        assert width == STAIRCASE.half_width(scales[0], level)


@pytest.mark.parametrize("level", LEVELS)
def test_two_noises_that_differ_by_row_are_covered(level):
    scales = [scale_for(20, 20 / 3), scale_for(33, 33 / 5)]
    sizes = [STAIRCASE.standard_deviation(s) for s in scales]
    steps = [(1, 1), (3, 1), (1, 4), (7, 5), (1, 0)]
    noise = NoiseSum(
        {str(k): np.array([row[k] for row in steps]) * sizes[k] for k in (0, 1)},
        {str(k): scales[k] for k in (0, 1)},
    )
    widths = STAIRCASE.sum_half_width(noise, level)
    bound = STAIRCASE.quantile(level) * noise.deviation
    held = STAIRCASE.sum_excess(widths * (1 + 1e-9), noise, level)
    for row, width, most, excess in zip(steps, widths, bound, held, strict=True):
        at, law = convolved(
            [c for c in row if c], [s for c, s in zip(row, scales, strict=True) if c]
        )
        assert law[np.abs(at) <= width].sum() >= level
        exact = np.abs(at)[
            np.searchsorted(
                np.cumsum(np.r_[law[len(law) // 2], 2 * law[len(law) // 2 + 1 :]]), level
            )
            + len(law) // 2
        ]
        assert width <= 1.06 * exact + 2 * sum(row)
        assert most >= exact - sum(row)  # by Gauss's inequality, looser
        assert excess > 0  # the width is no less than what tails tell


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_shares_of_a_total_are_covered(level):
    scale, cells = scale_for(4, 4 / 2), 6
    own = STAIRCASE.standard_deviation(scale)
    a, b = np.array([1.0]), np.array([0.25])
    shares = Shares(a, b, np.array([cells]), {"0": own}, ())
    part = np.hypot((a - b) * own, b * own * math.sqrt(cells - 1))
    noise = NoiseSum({"0": part}, {"0": scale}, largest={"0": part}, shares=shares)
    at, law = convolved((3,) + (1,) * (cells - 1), [scale] * cells)  # in quarters
    tails = {d: law[np.abs(at) >= 4 * d].sum() for d in np.arange(0.25, 30, 0.25)}
    for distance, beyond in tails.items():
        held = STAIRCASE.sum_excess(np.array([distance]), noise, level)[0] <= 0
        assert held == (beyond > 1 - level) or abs(beyond / (1 - level) - 1) < 2e-3


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_shares_of_a_total_of_wide_noise_are_covered_by_its_half_widths(level, monkeypatch):
    monkeypatch.setattr(staircase, "is_share_quick", lambda *_: False)  # as for very wide noise
    scale, cells = scale_for(40, 40 / 3), 6
    own = STAIRCASE.standard_deviation(scale)
    for times in (3, 1):  # the cell, and then the total, counts more
        b = np.array([1.0])
        shares = Shares(b + times, b, np.array([cells]), {"0": own}, ())
        part = np.hypot(times * own, own * math.sqrt(cells - 1))
        noise = NoiseSum({"0": b * part}, {"0": scale}, largest={"0": b * part}, shares=shares)
        at, law = convolved((times,) + (1,) * (cells - 1), [scale] * cells)
        tails = np.array([law[np.abs(at) > d].sum() for d in range(200)])
        least = int(np.argmax(tails <= 1 - level))
        held = [STAIRCASE.sum_excess(np.array([d]), noise, level)[0] <= 0 for d in (least, 400)]
        assert held == [True, False]
        most = np.array([1.06 * least + times + cells - 1 + 2])
        assert STAIRCASE.sum_excess(most, noise, level)[0] > 0


def test_beside_noise_of_another_law_it_is_covered():
    scale, wide, level = scale_for(20, 20 / 6), 3.0, 0.95
    _, law = law_of(scale)
    other = np.arange(-200, 201)
    both = np.convolve(law, np.exp(-np.abs(other) / wide) * np.tanh(0.5 / wide))
    sums = [
        (STAIRCASE, NoiseSum({"0": STAIRCASE.standard_deviation(scale)}, {"0": scale})),
        (LAPLACE, NoiseSum({"0": LAPLACE.standard_deviation(wide)}, {"0": wide})),
    ]
    width = float(IndependentSum.of(sums).half_width(level))
    places = np.arange(len(both)) - len(both) // 2
    assert both[np.abs(places) <= width].sum() >= level
    assert both[np.abs(places) <= width / 2].sum() < level
    assert STAIRCASE.quantile(level) > GAUSSIAN.quantile(level)


@pytest.mark.parametrize("level", LEVELS)
def test_the_quantile_is_enough_for_every_sum(level):
    for scale in SCALES[3:]:  # of period 1 alone, steps are as large as all there is
        at, law = law_of(scale)
        deviation = STAIRCASE.standard_deviation(scale)
        width = STAIRCASE.quantile(level) * deviation + 0.5
        assert law[np.abs(at) <= width].sum() >= level
