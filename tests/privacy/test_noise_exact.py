"""The parts of the sampler, one by one, against exact arithmetic on the very same bits."""

import random

import mpmath as mp
import numpy as np
import pytest
from support.randomness import SYSTEM

from dpframe.privacy import noise
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.noise import MARGIN, NARROW, ROWS, strip_table

LAWS = [GAUSSIAN, LAPLACE]


def mp_height(law, z):
    """Height of the curve at the precision of mpmath, from the definition of the law."""
    z = mp.mpf(z)
    return law.curve.peak * mp.exp(-(z * z / 2 if law is GAUSSIAN else abs(z)))


def cells_by_strip(table):
    """Number of free cells and the bottoms of the tested cells of each strip."""
    free, tested = {}, {}
    for strip in table.strip[: table.free].tolist():
        free[strip] = free.get(strip, 0) + 1
    for strip, bottom in zip(table.strip[table.free :].tolist(), table.bottom, strict=True):
        if np.isfinite(bottom):
            tested.setdefault(strip, []).append(float(bottom))
    return free, tested


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_cells_cover_the_curve_and_free_ones_lie_under_it(law):
    table = strip_table(law.curve)
    strips = range(-64 * table.curve.reach, 64 * table.curve.reach)
    free, tested = cells_by_strip(table)
    assert set(tested) == set(strips)
    with mp.workdps(50):
        for strip in strips:
            near, far = sorted((abs(strip), abs(strip + 1)))
            below = free.get(strip, 0)
            top = below + len(tested[strip])
            assert sorted(tested[strip]) == list(range(below, top))
            assert below == 0 or below <= mp_height(law, mp.mpf(far) / 64)
            assert top >= mp_height(law, mp.mpf(near) / 64)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_tail_has_a_cell_and_an_envelope(law):
    table = strip_table(law.curve)
    assert np.isnan(table.bottom[-1])
    assert np.isnan(table.bottom[:-1]).sum() == 0
    spare = np.isinf(table.bottom).sum()
    assert 0 < spare < 1500
    with mp.workdps(50):
        for block in range(300):
            envelope = mp.mpf(2) ** (-8 - block)
            assert mp_height(law, table.curve.reach + block) <= envelope
            # both signs of a block have 1 / 2**(block + 1) of the area of a cell
            assert 2 * 64 * envelope == mp.mpf(2) ** -(block + 1)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_tail_is_drawn_block_by_block(law, monkeypatch):
    """Coins name the block; its envelope halves with each of them, on both sides alike."""
    monkeypatch.setattr(noise, "_accept", lambda *drawn: drawn)
    place, height = 0x3A5A5A5A5A5A5A, 0xC3C3C3C3C3C3C3C3
    for block in (0, 1, 2, 7):
        for side in (0, 1):
            words = iter([*[(1, 1)] * block, (1, 0), (54, place), (1, side), (64, height)])

            def scripted(n, _, words=words):
                size, word = next(words)
                assert n == size
                return word

            monkeypatch.setattr(noise, "_random_bits", scripted)
            found = noise._settle(law.curve, noise.Interval(0, 70, SYSTEM), np.nan, 0)
            size = (law.curve.reach + block << 54) + place
            drawn = noise.Interval(size if side else ~size, 54, SYSTEM)
            assert found == (law.curve, drawn, noise.Interval(height, 64 + 8 + block, SYSTEM))
            assert next(words, None) is None
    assert noise._settle(law.curve, noise.Interval(0, 70, SYSTEM), np.inf, 0) is None


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_brackets_hold_the_curve_and_are_tight(law):
    rng = random.Random(5)
    curve = law.curve
    with mp.workdps(120):
        for _ in range(300):
            bits = rng.choice([0, 3, 54, 70, 134])
            start = int(rng.uniform(-40, 40) * 2**20) << bits >> 20
            low, high = (mp.mpf(v.numerator) / v.denominator for v in curve.bracket(start, bits))
            ends = [mp_height(law, mp.mpf(start + end) / 2**bits) for end in (0, 1)]
            assert low <= min(ends)
            assert max(ends) <= high
            assert low >= min(ends) * (1 - mp.mpf(2) ** -bits)
            assert high <= max(ends) * (1 + mp.mpf(2) ** -bits)


def test_brackets_do_not_underflow():
    low, high = GAUSSIAN.curve.bracket(2200, 0)
    assert 0 < low < high


class Script:
    """Random bits that are remembered."""

    def __init__(self, rng):
        self.rng, self.words = rng, []

    def __call__(self, n, context):
        self.words.append(self.rng.getrandbits(n))
        return self.words[-1]


def extended(start, words):
    """The first bits of a real number followed by more of them."""
    for word in words:
        start = start << 64 | word
    return start


def mp_offset(law, scale):
    """What is added to scale * |Z| before its whole part is taken, from the definition."""
    scale = mp.mpf(scale)
    return mp.mpf("0.5") if law is GAUSSIAN else -scale * mp.log1p(mp.expm1(-1 / scale) / 2)


def mp_draws(law, scale, start, bits):
    """The draws at both ends of an interval of Z, smaller one first, not wrapped."""
    sizes = (start, start + 1) if start >= 0 else (~start, -start)
    ends = [mp.mpf(scale) * size / 2**bits + mp_offset(law, scale) for size in sizes]
    near, far = int(mp.floor(ends[0])), int(mp.ceil(ends[1])) - 1
    return (near, far) if start >= 0 else (-far, -near)


SCALES = [2.0**-1060, 1e-9, 0.01, 0.3, 1.0, 3.7, 1000.0, 2.0**30, 1.1 * 2.0**45, 2.0**60]


@pytest.mark.parametrize("scale", SCALES)
def test_the_offset_makes_the_discrete_laplace(scale):
    """P(|Y| >= k) is P(|Z| >= (k - d) / scale) with the offset d: it must be 2 q^k / (1 + q)."""
    with mp.workdps(120):
        q = mp.exp(-1 / mp.mpf(scale))
        low, high = (mp.mpf(end) / 2**200 for end in LAPLACE.curve.offset(scale, 200))
        for k in (1, 2, 5):
            beyond = [mp.exp((end - k) / mp.mpf(scale)) for end in (low, high)]
            assert beyond[0] <= 2 * q**k / (1 + q) <= beyond[1]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_brackets_of_the_offset_are_tight(law, scale):
    with mp.workdps(150):
        for bits in (0, 1, 2, 54, 70, 134, 390):
            low, high = law.curve.offset(scale, bits)
            assert 0 <= low <= mp_offset(law, scale) * 2**bits <= high <= low + 3


def test_floats_know_how_far_the_laplace_is_pulled():
    scales = np.r_[SCALES, 2.0 ** np.random.default_rng(4).uniform(-20, 60, 500)]
    with mp.workdps(60), np.errstate(all="ignore"):
        for scale, pull in zip(scales, LAPLACE.curve.pull(scales), strict=True):
            assert abs(mp.mpf(float(pull)) - (0.5 - mp_offset(LAPLACE, scale))) < 2.0**-50


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300])
def test_noise_next_to_none_needs_no_more_bits(law, scale, monkeypatch):
    monkeypatch.setattr(noise, "_random_bits", no_more_bits)
    for start in (0, -1, 40 << 54, -40 << 54):
        assert noise._round_exactly(law.curve, scale, noise.Interval(start, 54, SYSTEM)) == 0


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_exact_rounding_agrees_with_mpmath(law, monkeypatch):
    rng, refinements = random.Random(1), 0
    for case in range(3000):
        bits = rng.choice([0, 3, 8, 54, 70])
        scale = 2.0 ** rng.uniform(-4, 60)
        start = rng.randrange(-(6 << bits), 6 << bits)
        with mp.workdps(100):
            if case % 2:  # next to where the draw changes
                border = (rng.randint(1, 10**6) - mp_offset(law, scale)) / mp.mpf(scale)
                start = int(mp.floor(rng.choice([-1, 1]) * border * 2**bits))
            script = Script(rng)
            monkeypatch.setattr(noise, "_random_bits", script)
            answer = noise._round_exactly(law.curve, scale, noise.Interval(start, bits, SYSTEM))
            refinements += len(script.words)
            # more bits of the size are drawn, whatever the sign
            size = extended(start if start >= 0 else ~start, script.words)
            drawn = size if start >= 0 else ~size
            low, high = mp_draws(law, scale, drawn, bits + 64 * len(script.words))
        assert low == high
        assert (answer - low) % 2**64 == 0
        assert -(2**63) <= answer < 2**63
    assert refinements > 700


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_exact_acceptance_agrees_with_mpmath(law, monkeypatch):
    rng, curve, refinements, accepted = random.Random(2), law.curve, 0, 0
    with mp.workdps(150):
        for _ in range(1500):
            bits, height_bits = rng.choice([0, 3, 8, 54, 70]), rng.choice([0, 2, 64])
            start = int(rng.uniform(-1, 1) * 1.2 * curve.reach * 2**53) << bits >> 53
            height = int(mp_height(law, mp.mpf(start) / 2**bits) * 2**height_bits)
            height = max(0, height + rng.choice([-1, 0, 0, 1]))
            script = Script(rng)
            monkeypatch.setattr(noise, "_random_bits", script)
            drawn = noise.Interval(start, bits, SYSTEM)
            answer = noise._accept(curve, drawn, noise.Interval(height, height_bits, SYSTEM))
            rounds = len(script.words) // 2
            refinements += rounds
            start, bits = extended(start, script.words[::2]), bits + 64 * rounds
            height = extended(height, script.words[1::2])
            ends = [mp_height(law, mp.mpf(start + end) / 2**bits) for end in (0, 1)]
            unit = mp.mpf(2) ** -(height_bits + 64 * rounds)
            if answer is None:
                assert height * unit >= max(ends)
            else:
                accepted += 1
                assert answer[:2] == (start, bits)
                assert (height + 1) * unit <= min(ends)
    assert refinements > 500
    assert 300 < accepted < 1200


class MoreBitsError(Exception):
    """Raised in place of drawing bits beyond the first ones."""


def no_more_bits(n, context):
    raise MoreBitsError


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scales", ["any scale", "powers of two", "narrow"])
def test_draws_are_those_of_exact_arithmetic_on_the_same_bits(law, scales, monkeypatch):
    rng, size, real = np.random.default_rng(7), 12_000, noise.random_words
    exponents = {
        "any scale": rng.uniform(-20, 60, size),
        "powers of two": rng.integers(-20, 61, size),
        "narrow": rng.uniform(-20, np.log2(NARROW), size),
    }[scales]
    scale, drawn = 2.0**exponents, []

    def recorded(*given):
        drawn.append(real(*given))
        return drawn[-1]

    monkeypatch.setattr(noise, "random_words", recorded)
    table, out = strip_table(law.curve), np.empty(size, np.int64)
    with np.errstate(all="ignore"):
        noise._try_block(table, scale, out, SYSTEM)
    cell, place = drawn[:2]
    undecided = 0
    free = np.flatnonzero(cell < table.free)
    with mp.workdps(60):
        for i in free:
            start = int(table.strip[cell[i]]) << 64 | int(place[i])
            low, high = mp_draws(law, scale[i], start, 70)
            undecided += low != high
            assert (int(out[i]) - low) % 2**64 <= high - low
    # 2**-10 of the draws at the widest scale
    assert undecided < 0.001 * free.size


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_single_draw_is_that_of_exact_arithmetic_on_the_same_bits(law, monkeypatch):
    """A draw by itself, and in a block: the same cells, places and heights are accepted alike."""
    table, size, rng = strip_table(law.curve), 3_000, np.random.default_rng(9)
    near = np.r_[0, table.free - 1, table.free, 2**16 - 1500 : 2**16 - 1]  # the last is the tail's
    cell = np.r_[near, rng.integers(0, 2**16 - 1, size - near.size)].astype(np.uint16)
    place, height = rng.integers(0, 2**64, (2, size), dtype=np.uint64)
    height[rng.random(size) < 0.1] = 0
    heights = height[cell >= table.free]
    words = iter([cell, place, heights])
    monkeypatch.setattr(noise, "random_words", lambda *_: next(words))
    out, scale = np.empty(size, np.int64), np.float64(37.5)
    with np.errstate(all="ignore"):
        rejected = set(noise._try_block(table, scale, out, SYSTEM).tolist())
    assert len(rejected) > 300

    taken = []  # of the pairs of cell and place, in order
    left = iter(heights.tolist())

    def scripted(n, context):
        if n == 64:
            return next(left)
        taken.append(len(taken))
        return int(place[taken[-1]]) << 16 | int(cell[taken[-1]])

    monkeypatch.setattr(noise, "_random_bits", scripted)
    accepted = [i for i in range(size) if i not in rejected]
    for i in accepted:
        assert noise._draw_one(table, float(scale), SYSTEM) == out[i]
        assert taken[-1] == i


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_floats_round_right_at_a_quarter_of_the_margin(law, monkeypatch):
    """Next to where the draw changes, where float errors show, and with no slack in the margin."""
    monkeypatch.setattr(noise, "MARGIN", MARGIN / 4)
    monkeypatch.setattr(noise, "_random_bits", no_more_bits)
    rng, size, clear, out = random.Random(3), 10_000, 0, np.empty(1, np.int64)
    for _ in range(size):
        scale, sign = 2.0 ** rng.uniform(0, 48), rng.choice([-1, 1])
        with mp.workdps(60):
            k = int(scale * rng.uniform(0, 11.9)) + 1
            away = rng.choice([-1, 1]) * MARGIN * rng.uniform(0.25, 0.5)
            border = (k - mp_offset(law, scale) + away) / mp.mpf(scale)
            start = int(mp.floor(sign * border * 2**70))
            low, high = mp_draws(law, scale, start, 70)
        strip, place = np.array([start >> 64]), np.array([start & 2**64 - 1], np.uint64)
        scales, room = np.array([scale]), np.empty((ROWS, 1))
        points = noise._with_floats(room, scales, noise.Points(strip, place, None, SYSTEM))
        try:
            noise._round_block(room, law.curve, scales, points, out)
        except MoreBitsError:
            continue
        clear += 1
        assert low == out[0] == high
    assert clear > 0.9 * size


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_integers_decide_whatever_is_within_the_margin_of_a_border(law, monkeypatch):
    asked, rng, room, out = [], random.Random(4), np.empty((ROWS, 1)), np.empty(1, np.int64)
    monkeypatch.setattr(noise, "_round_exactly", lambda *drawn: asked.append(drawn) or 0)
    for case in range(400):
        scale = 2.0 ** rng.uniform(0, 60)
        # floats are off by a quarter of the margin at most, and of Z 2**-70 is unknown
        away = rng.uniform(-0.7, 0.7) * MARGIN
        with mp.workdps(60):
            k = int(scale * rng.uniform(0, 4.9)) + 1
            border = (k - mp_offset(law, scale) + away) / mp.mpf(scale)
            start = int(mp.floor(rng.choice([-1, 1]) * border * 2**70))
        scales = np.array([scale])
        strip, place = np.array([start >> 64]), np.array([start & 2**64 - 1], np.uint64)
        points = noise._with_floats(room, scales, noise.Points(strip, place, None, SYSTEM))
        noise._round_block(room, law.curve, scales, points, out)
        assert len(asked) == case + 1


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_integers_decide_whatever_height_is_within_the_margin_of_the_curve(law, monkeypatch):
    rng, table, asked = np.random.default_rng(6), strip_table(law.curve), []
    known = {
        pair: table.free + at
        for at, pair in enumerate(
            zip(table.strip[table.free :].tolist(), table.bottom, strict=True)
        )
    }
    cells, places, fractions = [], [], []
    while len(cells) < 200:
        strip = int(rng.integers(-64 * law.curve.reach, 64 * law.curve.reach))
        place = int(rng.integers(0, 2**64, dtype=np.uint64))
        with mp.workdps(40):
            z = (strip + mp.mpf(place) / 2**64) / 64
            height = mp_height(law, z) + rng.uniform(-0.7, 0.7) * MARGIN
            bottom = int(mp.floor(height))
            if height > 0 and (strip, float(bottom)) in known:
                cells.append(known[strip, float(bottom)])
                places.append(place)
                fractions.append(int((height - bottom) * 2**64))
    answers = [None, noise.Interval(5, 70, SYSTEM)]  # rejected, and Z

    def settled(*drawn):
        asked.append(drawn)
        return answers[len(asked) % 2]

    monkeypatch.setattr(noise, "_settle", settled)
    monkeypatch.setattr(noise, "random_words", lambda *_: np.array(fractions, np.uint64))
    cell = np.array(cells, np.uint16)
    points = noise.Points(table.strip[cell], np.array(places, np.uint64), None, SYSTEM)
    rejected, refined = noise._test_heights(table, cell, points)
    assert len(asked) == len(cells)
    assert rejected.tolist() == list(range(1, len(cells), 2))
    assert refined == dict.fromkeys(range(0, len(cells), 2), answers[1])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_heights_are_right_to_far_less_than_the_margin(law):
    rng, curve = np.random.default_rng(3), law.curve
    z = np.r_[rng.uniform(-1, 1, 20_000) * curve.reach, 0.0, curve.reach]
    with mp.workdps(40):
        pairs = zip(curve.heights(z).tolist(), z.tolist(), strict=True)
        assert max(abs(mp.mpf(f) - mp_height(law, x)) for f, x in pairs) < 2.0**-40
