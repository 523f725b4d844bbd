"""Deviations and half-widths of noise in a box, against mpmath, convolutions and the joint law."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special
from support.boxes import chances, deviations
from support.randomness import SYSTEM

from dpframe.privacy import box
from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE
from dpframe.privacy.noise_sum import NoiseSum

LEVELS = [0.5, 0.8, 0.95, 0.999]


def mp_beyond(x, members):
    """P(|z| > x) at scale 1, for a size that is a sum of 1, ..., D exponentials, each as often."""
    terms = (mp.gammainc(j, x, regularized=True) for j in range(1, members + 1))
    return mp.fsum(terms) / members


@pytest.mark.parametrize("members", [1, 2, 4, 10, 33])
def test_tails_are_those_of_sums_of_exponentials(members):
    with mp.workdps(40):
        for x in (0.01, 0.7, 3.0, 11.0, 30.0):
            found = float(box.beyond(x, members))
            assert found == pytest.approx(float(mp_beyond(mp.mpf(x), members)), rel=1e-11)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("members", [2, 3, 4, 10])
@pytest.mark.parametrize("scale", [0.05, 0.2, 0.5, 1.0, 3.0, 17.0])
def test_deviations_are_those_of_the_probabilities(members, scale):
    with mp.workdps(30):
        most = int(scale * (70 + 2 * members)) + 3
        variance = mp.fsum(
            (2 * k - 1) * mp_beyond((k - mp.mpf("0.5")) / scale, members) for k in range(1, most)
        )
        assert abs(BOX.deviation_among(scale, members) / mp.sqrt(variance) - 1) < 1e-12


def test_wide_noise_has_the_deviation_of_the_closed_form_from_where_it_is_exact():
    for members in (2, 3, 4, 10, 1000):
        scale = 2.0**-8
        while not box._is_wide(scale, members):
            scale *= 1.05
        k = np.arange(1, math.ceil(scale * (members + 90 + 12 * members**0.5)) + 2)
        direct = np.sum((2 * k - 1) * box.beyond((k - 0.5) / scale, members))
        closed = box.spread(members) * scale**2 + 1 / 12
        assert closed == pytest.approx(direct, rel=1e-12)
    assert BOX.deviation_among(2.0**60, 4) == pytest.approx(math.sqrt(10) * 2.0**60, rel=1e-15)
    # narrow noise is not uniform within an integer
    assert BOX.deviation_among(0.2, 2) ** 2 - 0.16 == pytest.approx(0.0327, abs=1e-4)
    assert BOX.deviation_among(5e-324, 2) == 0


@pytest.mark.parametrize("members", [2, 4, 10])
@pytest.mark.parametrize("level", [0.01, *LEVELS, 1 - 1e-9])
@pytest.mark.parametrize("scale", [0.1, 1.0, 7.3, 2.0**20, 2.0**60])
def test_a_half_width_is_the_smallest_that_covers(scale, level, members):
    width = BOX.half_width(scale, level, members)
    with mp.workdps(40):
        allowed = 1 - mp.mpf(level)
        assert mp_beyond((width + mp.mpf("0.5")) / scale, members) <= allowed * (1 + 1e-10)
        if width:
            assert mp_beyond((width - mp.mpf("0.5")) / scale, members) > allowed * (1 - 1e-10)
    assert BOX.half_width(scale, level, 1) == LAPLACE.half_width(scale, level)
    assert GAUSSIAN.half_width(scale, level, members) == GAUSSIAN.half_width(scale, level)


@pytest.mark.parametrize("members", [2, 3, 5, 10])
@pytest.mark.parametrize("ratio", [0.004, 0.3, 1.0])
def test_tails_of_two_terms_are_those_of_the_trapezoid(ratio, members):
    def trapezoid(x):
        """P(|U + r V| > x), for uniform U and V on [-1, 1]."""
        if x >= 1 + ratio:
            return mp.mpf(0)
        if x <= 1 - ratio:
            return 1 - x
        return (1 + ratio - x) ** 2 / (4 * ratio)

    with mp.workdps(25):
        ratio = mp.mpf(ratio)
        for t in (0.5, 4.0, 15.0):
            cuts = [t / (1 + ratio), *([t / (1 - ratio)] if ratio < 1 else []), 200]

            def given(r, t=t):
                return r**members * mp.exp(-r) / mp.factorial(members) * trapezoid(t / r)

            tail = mp.quad(given, cuts)
            found = box.pair_beyond(np.array(t), np.array(float(ratio)), members)
            assert float(found) == pytest.approx(float(tail), rel=1e-8)


@pytest.mark.parametrize("members", [2, 3, 10, 200])
@pytest.mark.parametrize("level", [*LEVELS, 1 - 1e-9])
def test_half_widths_of_two_terms_are_safe_between_the_nodes(members, level):
    ratios = np.linspace(0.003, 1, 1234)
    widths = box.sum_half_width([np.ones(1234), ratios], members, level)
    tails = box.pair_beyond(widths, ratios, members)
    assert (tails <= (1 - level) * (1 + 1e-7)).all()
    # and next to exact
    assert tails.min() > (1 - level) * 0.99
    # the maximum of the normal and of the single quantile is not
    one, two = (box.sum_half_width([1.0] * n, members, level) for n in (1, 2))
    if level == 0.95 and members == 10:
        spread = math.sqrt(box.spread(members))
        assert two / spread / math.sqrt(2) > max(one / spread, GAUSSIAN.quantile(level))


def exact_coverage(width, weights, scales, last):
    """P(|sum_j c_j Y_j| <= width), from the joint law of the integers."""
    law = chances(scales, last)
    sums = np.zeros(())
    for c, most in zip(weights, last, strict=True):
        sums = np.add.outer(sums, c * np.arange(-most, most + 1))
    return law[np.abs(sums) <= width * (1 + 1e-12)].sum()


TWO = [((0.3, 0.3), (9, 9)), ((1.0, 3.0), (30, 90)), ((0.5, 8.0), (15, 230))]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("scales", "last"), TWO)
def test_half_widths_of_one_and_two_coordinates_cover(scales, last, level):
    named, groups = {"0": scales[0], "1": scales[1]}, [("0", "1")]
    own = deviations(scales)
    bare = []
    for weights in [(1, 0), (0, 2.5), (1, 1), (1, 0.1), (0.2, 1), (3, -1)]:
        loadings = {str(k): c * own[k] for k, c in enumerate(weights)}
        width = BOX.sum_half_width(NoiseSum(loadings, named, groups), level)
        assert exact_coverage(width, weights, scales, last) >= level - 1e-12
        rounding = sum(map(abs, weights)) / 2
        bare.append(exact_coverage(width - rounding, weights, scales, last))
        # not far too wide: in several cells at once, and for one coordinate as the exact one
        packed = {block: np.full(3, loading) for block, loading in loadings.items()}
        many = BOX.sum_half_width(NoiseSum(packed, named, groups), level)
        assert many == pytest.approx(np.full(3, width), rel=1e-12)
    # what rounding adds is needed somewhere
    assert min(bare) < level
    half = BOX.half_width(scales[0], level, 2)
    one = BOX.sum_half_width(NoiseSum({"0": own[0]}, named, groups), level)
    assert one == pytest.approx(half)


@pytest.mark.parametrize("level", LEVELS)
def test_half_widths_of_more_coordinates_cover(level):
    scales, last = (0.6, 0.3, 0.5), (18, 9, 15)
    named = {str(k): s for k, s in enumerate(scales)}
    for weights in [(1, 1, 1), (1, 2, 0.3), (0.1, 1, -1)]:
        loadings = {
            str(k): c * d for k, (c, d) in enumerate(zip(weights, deviations(scales), strict=True))
        }
        width = BOX.sum_half_width(NoiseSum(loadings, named, [("0", "1", "2")]), level)
        assert exact_coverage(width, weights, scales, last) >= level - 1e-6


def test_blocks_of_scale_0_and_groups_of_one_are_as_without_groups():
    scales, loadings = {"0": 3.0, "1": 0.0, "2": 5.0}, {"0": 4.0, "2": 7.0}
    plain = LAPLACE.sum_half_width(NoiseSum(loadings, scales), 0.9)
    assert BOX.sum_half_width(NoiseSum(loadings, scales), 0.9) == plain
    assert BOX.sum_half_width(NoiseSum(loadings, scales, [("0", "1")]), 0.9) == plain
    assert BOX.sum_half_width(NoiseSum({"1": 0.0}, scales, [("0", "1")]), 0.9) == 0
    together = BOX.sum_half_width(NoiseSum(loadings, scales, [("0", "1", "2")]), 0.9)
    assert together == BOX.sum_half_width(NoiseSum(loadings, scales, [("0", "2")]), 0.9)
    assert together != plain


H, FAR = 0.004, 6000
GRID = np.arange(-FAR, FAR + 1) * H  # standard deviations


def density(members, ratio):
    """Density of z_1 + r z_2 in its standard deviations, as a difference of tails."""
    sd = math.sqrt(box.spread(members) * (1 + ratio**2))
    edges = np.abs(np.r_[GRID - H / 2, GRID[-1] + H / 2])

    def scaled(share):
        at = edges * sd / math.sqrt(share)
        if ratio == 0:
            tails = box.beyond(at, members)
        else:
            tails = box.pair_beyond(at, np.full(at.shape, ratio), members)
        reached = np.sign(np.r_[GRID - H / 2, GRID[-1] + H / 2]) * (1 - tails) / 2
        return np.diff(reached)

    return scaled


def convolved(parts):
    """Law of a sum on the grid."""
    size = 1 << 15
    padded = (np.roll(np.pad(part, (0, size - part.size)), -FAR) for part in parts)
    product = np.prod([np.fft.rfft(part) for part in padded], axis=0)
    whole = np.fft.irfft(product, size)
    return np.r_[whole[-FAR:], whole[: FAR + 1]]


def quantile(law, level):
    """The half-width that holds the level, to a part of the grid."""
    inside = law[FAR] + np.r_[0, np.cumsum(law[FAR + 1 :] + law[FAR - 1 :: -1])]
    return float(np.interp(level, inside, GRID[FAR:] + H / 2))


TERMS = [(1, 0.0), (2, 0.0), (2, 1.0), (3, 0.3), (4, 0.0), (6, 0.3), (8, 1.0), (10, 0.0), (10, 0.3)]
LARGE = [(1000, 0.0), (1000, 0.15), (50, 0.0)]
FINE = [0.5, 0.7, 0.8, 0.82, 0.85, 0.87, 0.9, 0.925, 0.935, 0.95, 0.96, 0.97, 0.99, 0.999]


def worst_shortage(pairs):
    """Largest quantile of a sum of two, over the larger one of both and of a normal, by level."""
    laws = {term: density(*term) for term in {term for pair in pairs for term in pair}}
    own = {term: [quantile(law(1.0), level) for level in FINE] for term, law in laws.items()}
    normal = special.ndtri((1 + np.array(FINE)) / 2)
    worst = np.zeros(len(FINE))
    for one, other in pairs:
        for share in (0.05, 0.2, 0.35, 0.5, 0.7, 0.9, 0.98):
            law = convolved([laws[one](share), laws[other](1 - share)])
            found = np.array([quantile(law, level) for level in FINE])
            worst = np.maximum(worst, found / np.max([own[one], own[other], normal], axis=0))
    return worst


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("terms", "members"), [(LARGE, 1000), (TERMS, 10)], ids=["any", "up to ten"]
)
def test_sums_of_groups_are_raised_by_enough(terms, members):
    worst = worst_shortage(list(itertools.combinations_with_replacement(terms, 2)))
    raised = np.array([box.raise_quantile(level, members) for level in FINE])
    assert (worst <= raised).all()
    # without it, intervals would be too short
    assert worst.max() > 1.01
    assert worst.max() > raised.max() - 0.007


@pytest.mark.parametrize("terms", [1, 2, 3, 6])
def test_no_sum_of_so_many_is_wider_in_its_deviations(terms):
    rng = np.random.default_rng(1)
    for members, level in [(2, 0.95), (6, 0.8), (10, 0.99)]:
        weights = np.abs(rng.normal(size=(terms, 4000)))
        weights /= np.linalg.norm(weights, axis=0)
        widths = box.sum_half_width(list(weights), members, level)
        ratio = box.largest_ratio(terms, members, level)
        assert widths.max() / math.sqrt(box.spread(members)) <= ratio
        # what several boxes count with is that of two terms in place of all
        assert widths.max() / math.sqrt(box.spread(members)) > (0.8 if terms < 4 else 0.6) * ratio


@pytest.mark.parametrize(("terms", "members"), [(3, 3), (5, 6), (14, 15), (27, 28), (40, 40)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_many_terms_are_given_no_less_than_they_need_and_little_more(terms, members, level):
    rng = np.random.default_rng(terms)
    for power in (0.1, 0.5, 1, 2, 4):
        weights = np.abs(rng.normal(size=terms)) ** power
        needed = box.box_half_width(tuple(weights.tolist()), members, level)
        given = float(box.sum_half_width(list(weights), members, level))
        assert needed * (1 - 1e-3) <= given <= needed * 1.6


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_half_widths_of_several_groups_cover(level):
    # two boxes and a coordinate on its own, in one reading; then the same over four cells
    scales = {"0": 3.0, "1": 40.0, "2": 5.0, "3": 9.0, "4": 6.0}
    groups, size = [("0", "1"), ("2", "3")], 200_000
    drawn = [
        x
        for group in (*groups, ("4",))
        for x in BOX.draw([scales[b] for b in group], 4 * size, SYSTEM)
    ]
    own = [d for g in (*groups, ("4",)) for d in deviations([scales[b] for b in g])]
    weights = (1.0, 0.1, 0.7, -0.5, 0.3)
    loadings = {str(k): c * d for k, (c, d) in enumerate(zip(weights, own, strict=True))}
    read = sum(c * x for c, x in zip(weights, drawn, strict=True))
    width = BOX.sum_half_width(NoiseSum(loadings, scales, groups), level)
    # five deviations of a share of 200,000 or more: 6e-7 for each side
    error = 5 * math.sqrt(level * (1 - level) / size)
    assert level - error < np.mean(np.abs(read) <= width) < level + 0.06
    over = {block: 2 * loading for block, loading in loadings.items()}
    width = BOX.sum_half_width(NoiseSum(over, scales, groups, loadings), level)
    total = read.reshape(4, size).sum(axis=0)
    assert level - error < np.mean(np.abs(total) <= width)


def test_the_quantile_without_a_group_is_that_of_any():
    for level in (0.5, 0.8, 0.95, 0.99):
        spread = {d: math.sqrt(box.spread(d)) for d in (2, 4, 20, 1000)}
        single = max(float(box.sum_half_width([1.0], d, level)) / s for d, s in spread.items())
        assert single <= BOX.quantile(level)
        assert BOX.quantile(level) >= max(LAPLACE.quantile(level), GAUSSIAN.quantile(level))


def test_levels_of_single_intervals_are_those_of_bonferroni():
    assert BOX.level_of_each(0.95, 10) == LAPLACE.level_of_each(0.95, 10)
    assert 1 - BOX.level_of_each(0.95, 10) == pytest.approx(0.005)


def sum_beyond(t, parts, members):
    """P(|sum_j a_j z_j| > t) at scale 1, by the piecewise polynomial of a sum of uniforms."""
    parts = [mp.mpf(part) for part in parts]

    def below(x):
        n = len(parts)
        corners = itertools.product((1, -1), repeat=n)
        powers = (
            math.prod(signs)
            * max(x + mp.fsum(s * a for s, a in zip(signs, parts, strict=True)), 0) ** n
            for signs in corners
        )
        return mp.fsum(powers) / (mp.factorial(n) * 2**n * mp.fprod(parts))

    def given(r):
        return r**members * mp.exp(-r) / mp.factorial(members) * 2 * (1 - below(t / r))

    cuts = sorted(
        {
            t / abs(mp.fsum(s * a for s, a in zip(signs, parts, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(parts))
        }
    )
    return mp.quad(given, [*cuts, 60, 150])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("parts", "members"), [((1.0, 0.62, 0.17), 4), ((0.9, 1.0, 0.81), 3)])
def test_the_law_of_three_terms_is_that_of_the_polynomial(parts, members, level):
    width = box.box_half_width(parts, members, level)
    with mp.workdps(20):
        missed = float(sum_beyond(mp.mpf(width), parts, members))
    assert 0.995 * (1 - level) < missed <= 1 - level


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("members", [5, 24])
def test_sums_of_many_of_one_box_are_covered_and_hardly_more(members, level):
    size, names = 200_000, [str(k) for k in range(members)]
    scales = dict.fromkeys(names, 40.0)
    weights = np.linspace(0.3, 1.4, members) * np.resize([1, -1, 1], members)
    read = weights @ np.array(BOX.draw(list(scales.values()), size, SYSTEM))
    loadings = dict(zip(names, weights * deviations([40.0] * members), strict=True))
    noise = NoiseSum(loadings, scales, [tuple(names)])
    share = np.mean(np.abs(read) <= BOX.sum_half_width(noise, level))
    # five deviations of a share of 200,000 or more: 6e-7 for each side
    error = 5 * math.sqrt(level * (1 - level) / size)
    assert level - error < share < level + 0.012 + error
    narrow = 0.95 * BOX.sum_half_width(noise, level)
    assert np.mean(np.abs(read) <= narrow) < level - error
    assert not box.is_box_quick((1.0,) * 5, 1 - 1e-12)


def test_one_box_over_all_rows_counts_each_cell_once():
    cells = {"0": np.full(6, 2.0)}
    together = NoiseSum({"0": 24**0.5}, {"0": 40.0}, [("0",) * 6], {"0": 2.0}, terms=cells)
    step = 2 / BOX.deviation_among(40.0, 6)
    law = box.box_half_width((1.0,) * 6, 6, 0.9) * 40 * step
    assert BOX.sum_half_width(together, 0.9) == pytest.approx(law + 3 * step)
    one = NoiseSum({"0": 2.0}, {"0": 40.0}, [("0",) * 6])
    assert BOX.sum_half_width(one, 0.9) == pytest.approx(step * BOX.half_width(40.0, 0.9, 6))
    # where every row has a box of its own, they are several
    apart = [("0", "1")], {"0": 2.0}
    bound = NoiseSum({"0": 24**0.5}, {"0": 40.0, "1": 9.0}, *apart)
    rows = NoiseSum({"0": 24**0.5}, {"0": 40.0, "1": 9.0}, *apart, terms=cells)
    assert BOX.sum_half_width(rows, 0.9) == BOX.sum_half_width(bound, 0.9)
