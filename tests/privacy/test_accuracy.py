"""Half-widths against their definitions, and the coverage of intervals."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from mpmath import mp
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError
from dpframe.privacy import half_widths, laplace
from dpframe.privacy.half_widths import check_level
from dpframe.privacy.laplace import (
    integer_pair_excess,
    integer_pair_half_width,
    laplace_sum_half_width,
    pair_half_width,
)
from dpframe.privacy.laws import GAUSSIAN, LAPLACE, LAWS
from dpframe.privacy.noise_sum import NoiseSum


def beyond(law, scale, a):
    """P(|Y| > a) of the noise on an integer, a >= 0."""
    if law is GAUSSIAN:
        return mp.erfc((a + mp.mpf("0.5")) / scale / mp.sqrt(2))
    q = mp.exp(-1 / mp.mpf(scale))
    return 2 * q ** (a + 1) / (1 + q)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("scale", [0.1, 1, 4.224679, 1e6])
def test_an_exact_half_width_is_the_smallest_that_covers(law, scale, level):
    width = law.half_width(scale, level)
    assert isinstance(width, int)
    with mp.workdps(30):
        assert 1 - beyond(law, scale, width) >= level - mp.mpf("1e-13")
        assert width == 0 or 1 - beyond(law, scale, width - 1) < level


def test_the_reference_of_one_count():
    # analytic Gaussian noise for (1, 1e-6): 8.28 before rounding, 8 after it
    assert GAUSSIAN.half_width(4.224679, 0.95) == 8
    assert GAUSSIAN.quantile(0.95) * 4.224679 == pytest.approx(8.280, abs=1e-3)


@pytest.mark.parametrize("level", [0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999])
def test_an_approximate_half_width_covers_sums_of_laplace_noise(level):
    # P(|a X + b Y| > t) for independent Laplace X, Y of scale 1: (a^2 e^(-t/a) - b^2 e^(-t/b)) /
    # (a^2 - b^2)
    for ratio in (1e-6, 0.3, 0.7, 0.999):
        error = np.sqrt(2 * (1 + ratio**2))
        t = LAPLACE.quantile(level) * error
        missed = (np.exp(-t) - ratio**2 * np.exp(-t / ratio)) / (1 - ratio**2)
        assert 1 - missed >= level - 1e-12


def test_half_widths_have_the_shape_of_the_errors():
    widths = GAUSSIAN.sum_half_width(NoiseSum({"0": np.array([1.0, 2.0])}, {}), 0.95)
    assert widths == pytest.approx([1.959964, 3.919928])


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, np.nan, np.inf, "0.9", None, True, [0.9]])
def test_levels_are_checked(level):
    with raises(QueryError, "number", parameter="level"):
        check_level(level)


@pytest.mark.parametrize("level", [0.5, np.float64(0.9), np.float32(0.25), 1e-9])
def test_levels_between_0_and_1_are_fine(level):
    assert check_level(level) == level


N = 20_000


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_intervals_of_counts_and_sums_cover_as_often_as_they_say(mechanism, level):
    # the share of 20,000 cells that are covered is known to 0.35 % at most: 2 % is 5.6 deviations,
    # chance fails once in 10^7 runs; an error 10 % too small loses 2 % or more
    frame = pd.DataFrame({"zone": np.repeat(np.arange(N), 2), "fare": 2.5})
    query = dpf.aggregate("zone", keys=range(N), n=dpf.count(), s=dpf.sum("fare", bounds=(-1, 9)))
    released = dpf.release(frame, query, epsilon=0.5, delta=1e-6, mechanism=mechanism)
    bars = released.dp.interval(level)
    for column, answer in (("n", 2), ("s", 5)):
        covered = bars[f"{column}_low"].le(answer) & bars[f"{column}_high"].ge(answer)
        width = (bars[f"{column}_high"] - released[column])[released[column] >= 0]
        scale = released.dp.std_error[column].iloc[0]
        # whole numbers cover more than asked, by one step of the noise at most
        step = 1 if column == "n" else 0
        assert -0.02 < covered.mean() - level < 0.02 + step / scale
        assert width.to_numpy() == pytest.approx(width.iloc[0])
        narrower = width.iloc[0] * 0.4 - step
        missed = (released[column] - answer).abs() > narrower
        assert 1 - missed.mean() < level - 0.02


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_intervals_of_means_cover_as_often_as_they_say(mechanism):
    # 10,000 cells of 60 rows: 0.2 % of sampling error, and the first order is off by a percent
    n, rows = 10_000, 60
    zone = np.repeat(np.arange(n), rows)
    frame = pd.DataFrame({"zone": zone, "fare": np.tile([1.0, 4, 7, 7, 9, 2], n * 10)})
    released = frame.dp.mean(
        "fare", "zone", keys=range(n), bounds=(-10, 20), epsilon=4, delta=1e-3, mechanism=mechanism
    )
    bars = released.dp.interval(0.95)
    covered = bars["fare_low"].le(5) & bars["fare_high"].ge(5)
    assert 0.94 < covered.mean() < 0.98


@pytest.mark.parametrize("level", [0.2, 0.5, 0.95, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("ratio", [0, 1e-6, 0.3, 0.7, 0.999, 1])
def test_a_half_width_of_two_laplace_noises_is_where_their_tail_is(level, ratio):
    a, b = mp.mpf(3), mp.mpf(3) * ratio
    widths = pair_half_width(float(a) * 2**0.5, np.array([1, -1]) * float(b) * 2**0.5, level)
    assert widths[0] == widths[1] == pair_half_width(float(b) * 2**0.5, float(a) * 2**0.5, level)
    with mp.workdps(40):
        t = mp.mpf(float(widths[0]))
        if ratio in (0, 1):
            tail = mp.exp(-t / a) * (1 + ratio * t / (2 * a))
        else:
            tail = (a**2 * mp.exp(-t / a) - b**2 * mp.exp(-t / b)) / (a**2 - b**2)
        assert tail == pytest.approx(1 - level, rel=1e-6)


def discrete_laplace(scale):
    """Integers, their probabilities and their standard deviation, from the definition."""
    k = np.arange(-int(45 * scale) - 3, int(45 * scale) + 4)
    p = np.exp(-np.abs(k) / scale) * np.tanh(0.5 / scale)
    return k, p, np.sqrt((k * k * p).sum())


def covered(width, *noises):
    """P(|sum_b c_b Y_b| <= width), exactly, for pairs of c_b and the law of Y_b."""
    sums, chances = np.zeros(1), np.ones(1)
    for c, (k, p, _) in noises:
        sums = np.add.outer(sums, c * k).ravel()
        chances = np.multiply.outer(chances, p).ravel()
    return chances[np.abs(sums) <= width * (1 + 1e-12)].sum()


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99, 0.999])
def test_half_widths_of_discrete_laplace_noises_cover_at_least_the_level(level):
    shares, without = [], []
    for a, b in [(0.2, 0.2), (0.5, 0.5), (1, 1), (2, 2), (5, 5), (0.5, 2), (5, 0.5), (8, 2)]:
        one, other = discrete_laplace(a), discrete_laplace(b)
        for c in (0, 0.01, 0.25, 0.4, 0.7071, 0.9, 1, 1.5, 3.3):
            loadings = {"0": one[2], "1": c * other[2]}
            width = LAPLACE.sum_half_width(NoiseSum(loadings, {"0": a, "1": b}), level)
            shares.append(covered(width, (1, one), (c, other)))
            bare = pair_half_width(one[2], c * other[2], level)
            without.append(covered(bare, (1, one), (c, other)))
    assert min(shares) >= level
    # standard deviations alone do not tell how coarse the noise is
    assert min(without) < level - 1e-4


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("level", [0.8, 1 - 1e-5])
@pytest.mark.parametrize("ratios", [(0.83, 0.31), (1.0, 1.0)])
def test_a_half_width_of_three_laplace_noises_is_where_their_tail_is(ratios, level):
    scales = [mp.mpf(3), *(mp.mpf(3 * ratio) for ratio in ratios)]
    parts = [float(scale) * 2**0.5 for scale in scales]
    width = laplace_sum_half_width([parts[0], np.array([parts[1]]), parts[2]], level)

    def beyond(t):
        # the density of |S| is the mean of cos(u t) over the characteristic function
        def f(u):
            return mp.sin(u * t) / u / mp.fprod(1 + (u * s) ** 2 for s in scales)

        return 1 - 2 / mp.pi * mp.quadosc(f, [0, mp.inf], omega=t)

    with mp.workdps(20):
        tail = float(beyond(mp.mpf(float(width[0]))))
        narrow = float(beyond(mp.mpf(0.95 * float(width[0]))))
    assert (1 - level) * (0.98 if level < 0.9 else 0.95) < tail <= 1 - level < narrow


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("scale", [0.25, 0.6, 2])
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 0.5, 0.25), (1, 0.71, 0.03)])
def test_half_widths_of_three_noises_by_row_cover_at_least_the_level(weights, scale, level):
    law = discrete_laplace(scale)
    loadings = {str(k): np.array([c * law[2]]) for k, c in enumerate(weights)}
    noise = NoiseSum(loadings, dict.fromkeys(loadings, scale))
    width = LAPLACE.sum_half_width(noise, level)[0]
    assert covered(width, *((c, law) for c in weights)) >= level


@pytest.mark.sampled(every=4, full=3)
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("weights", [(1,), (1, 1, 1), (1, 0.5, 0.25), (1, 1, 2, 0.3)])
def test_half_widths_of_combinations_cover_at_least_the_level(weights, level):
    for scale in (0.25, 0.5, 0.8) if len(weights) > 3 else (0.25, 0.5, 1, 2):
        law = discrete_laplace(scale)
        loading, largest = np.linalg.norm(weights) * law[2], max(weights) * law[2]
        noise = NoiseSum({"0": loading}, {"0": scale}, largest={"0": largest})
        width = LAPLACE.sum_half_width(noise, level)
        assert covered(width, *((c, law) for c in weights)) >= level


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("coarse", [0.15, 0.5, 1, 3])
def test_half_widths_of_a_fine_and_a_coarse_noise_are_tight(coarse, level):
    # a mean: its sum is measured in fine steps, its number of rows in whole ones
    noise = discrete_laplace(coarse)
    for offset in (0.0, 0.2, 0.9, 1.0):
        fine = (coarse / 30, discrete_laplace(30.0))
        width = integer_pair_half_width((fine[0], offset), (30.0, coarse), level)
        share = covered(width, fine, (offset, noise))
        assert level <= share <= level + 0.03 * (1 - level) + 0.01 * (level < 0.9)
        # half a step of the coarse noise is what was added before
        if offset == 1 and coarse <= 1:
            bare = pair_half_width(fine[0] * 30 * 2**0.5, offset * coarse * 2**0.5, level)
            assert covered(bare + offset / 2, fine, (offset, noise)) > level + 0.1 * (1 - level)


def test_every_pair_of_integer_noises_is_covered_at_least_as_often_as_said():
    worst = 0.0
    for one, other in itertools.product((0.2, 0.7, 2, 8), (0.15, 0.5, 1, 3)):
        laws = discrete_laplace(one), discrete_laplace(other)
        for g, h in ((1, 1), (1, 0.5), (0.3, 1), (1, 0.01), (0.01, 1), (1, 3.7), (0.1, 0.13)):
            for level in (0.5, 0.8, 0.95, 0.999):
                width = integer_pair_half_width((g, h), (one, other), level)
                missed = 1 - covered(width, (g, laws[0]), (h, laws[1]))
                worst = max(worst, missed / (1 - level))
    assert 0.99 < worst <= 1 + 1e-9


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e9, 1e12, 1e15, 1e18])
def test_two_wide_noises_are_as_wide_as_continuous_ones(scale):
    steps, scales = (np.array([1.0, 0.5]), np.array([0.3, 2.0])), (scale, 3 * scale)
    deviations = [step * of * 2**0.5 for step, of in zip(steps, scales, strict=True)]
    width = integer_pair_half_width(steps, scales, 0.95)
    assert width == pytest.approx(pair_half_width(*deviations, 0.95), rel=1 / scale + 1e-7)
    swapped = integer_pair_half_width(steps[::-1], scales[::-1], 0.95)
    assert swapped == pytest.approx(width, rel=1e-7)
    for beyond in (0.9999, 1.0001):
        excess = integer_pair_excess(beyond * width, steps, scales, 0.95)
        assert ((excess <= 0) == (beyond < 1)).all()


def test_no_noise_has_no_width():
    assert pair_half_width(0.0, 0.0, 0.9) == 0
    nothing = NoiseSum({"0": 0.0, "1": 0.0}, {"0": 0.0, "1": 5e-324})
    assert LAPLACE.sum_half_width(nothing, 0.9) == 0
    # a public number comes with a deviation of its own, and no scale
    public = NoiseSum({"-1": 2.0}, {"0": 3.0})
    assert LAPLACE.sum_half_width(public, 0.9) == pytest.approx(LAPLACE.quantile(0.9) * 2)


@pytest.mark.parametrize("cells", [1, 2, 37, 10**6])
def test_single_levels_hold_together(cells):
    alone = GAUSSIAN.level_of_each(0.95, cells)
    assert alone**cells == pytest.approx(0.95, rel=1e-9)
    beside = 1 - LAPLACE.level_of_each(0.95, cells)
    assert beside * cells == pytest.approx(0.05, rel=1e-9)
    assert 1 - beside >= alone  # Bonferroni is never narrower


def test_single_levels_stay_below_one():
    assert GAUSSIAN.level_of_each(1 - 1e-15, 10**6) < 1
    assert LAPLACE.level_of_each(0.5, 0) == 0.5


@pytest.mark.parametrize("flag", ["no", None, 1])
def test_simultaneous_is_a_flag(flag):
    made = dpf.release(pd.DataFrame({"x": [1]}), dpf.count(), epsilon=1)
    with raises(QueryError, "False", parameter="simultaneous"):
        made.dp.interval(simultaneous=flag)


def test_simultaneous_intervals_use_the_level_of_all_cells():
    frame = pd.DataFrame({"zone": ["A", "B"], "fare": [1.0, 2]})
    query = dpf.aggregate(
        "zone", keys=["A", "B", "C"], n=dpf.count(), s=dpf.sum("fare", bounds=(0, 3))
    )
    for mechanism in ("gaussian", "laplace"):
        made = dpf.release(frame, query, epsilon=0.1, delta=1e-6, mechanism=mechanism)
        each = LAWS[mechanism].level_of_each(0.9, 6)
        pd.testing.assert_frame_equal(
            made.dp.interval(0.9, simultaneous=True), dpf.interval(made, each)
        )


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-9])
def test_tails_are_solved_to_the_part_that_halving_ends_in(level):
    ratio, most = np.linspace(0.01, 0.99, 99), np.linspace(30.0, 60, 99)
    tails = partial(laplace._pair_beyond, ratio=ratio)
    low, high = np.zeros(99), most
    for _ in range(32):
        middle = (low + high) / 2
        beyond = tails(middle) > 1 - level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    found = half_widths.solve_tails(tails, most, level)
    parts = (found - high) / most * 2**32  # one more where the end of a part is as good as 0
    assert set(np.rint(parts)) <= {0, 1} and np.abs(parts - np.rint(parts)).max() < 1e-4
    assert np.mean(parts > 0.5) < 0.05 and (tails(found) <= 1 - level).all()
    # a tail that is smaller from the start on has the first part
    assert half_widths.solve_tails(lambda t: 0 * t, np.array(8.0), level) == 8 * 2.0**-32
