"""The parts of the sampler, one by one, against exact arithmetic on the very same bits."""

import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dpframe import noise
from dpframe.noise_tables import CURVES, MARGIN, strip_table

LAWS = ["gaussian", "laplace"]


def mp_height(law, z):
    """Height of the curve at the precision of mpmath, from the definition of the law."""
    z = mp.mpf(z)
    return CURVES[law].peak * mp.exp(-(z * z / 2 if law == "gaussian" else abs(z)))


def cells_by_strip(table):
    """Number of free cells and the bottoms of the tested cells of each strip."""
    free, tested = {}, {}
    for strip in table.strip[: table.free].tolist():
        free[strip] = free.get(strip, 0) + 1
    for strip, bottom in zip(table.strip[table.free :].tolist(), table.bottom, strict=True):
        if np.isfinite(bottom):
            tested.setdefault(strip, []).append(float(bottom))
    return free, tested


@pytest.mark.parametrize("law", LAWS)
def test_cells_cover_the_curve_and_free_ones_lie_under_it(law):
    table = strip_table(law)
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


@pytest.mark.parametrize("law", LAWS)
def test_the_tail_has_a_cell_and_an_envelope(law):
    table = strip_table(law)
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


@pytest.mark.parametrize("law", LAWS)
def test_brackets_hold_the_curve_and_are_tight(law):
    rng = random.Random(5)
    curve = CURVES[law]
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
    low, high = CURVES["gaussian"].bracket(2200, 0)
    assert 0 < low < high


class Script:
    """Random bits that are remembered."""

    def __init__(self, rng):
        self.rng, self.words = rng, []

    def __call__(self, n):
        self.words.append(self.rng.getrandbits(n))
        return self.words[-1]


def extended(start, words):
    """The first bits of a real number followed by more of them."""
    for word in words:
        start = start << 64 | word
    return start


def test_exact_rounding_agrees_with_fractions(monkeypatch):
    rng, refinements = random.Random(1), 0
    for case in range(4000):
        bits = rng.choice([0, 3, 8, 54, 70])
        scale = 2.0 ** rng.uniform(-4, 60)
        start = rng.randrange(-(6 << bits), 6 << bits)
        if case % 2:  # next to a half-integer
            half = Fraction(2 * rng.randint(-(10**6), 10**6) + 1, 2)
            start = half / Fraction(scale) * 2**bits // 1
        script = Script(rng)
        monkeypatch.setattr(noise, "_random_bits", script)
        answer = noise._round_exactly(scale, noise.Interval(start, bits))
        refinements += len(script.words)
        start, bits = extended(start, script.words), bits + 64 * len(script.words)
        low, high = (Fraction(scale) * (start + end) / 2**bits for end in (0, 1))
        exact = (low + Fraction(1, 2)) // 1
        assert high <= exact + Fraction(1, 2)
        assert (answer - exact) % 2**64 == 0
        assert -(2**63) <= answer < 2**63
    assert refinements > 1000


@pytest.mark.parametrize("law", LAWS)
def test_exact_acceptance_agrees_with_mpmath(law, monkeypatch):
    rng, curve, refinements, accepted = random.Random(2), CURVES[law], 0, 0
    with mp.workdps(150):
        for _ in range(1500):
            bits, height_bits = rng.choice([0, 3, 8, 54, 70]), rng.choice([0, 2, 64])
            start = int(rng.uniform(-1, 1) * 1.2 * curve.reach * 2**53) << bits >> 53
            height = int(mp_height(law, mp.mpf(start) / 2**bits) * 2**height_bits)
            height = max(0, height + rng.choice([-1, 0, 0, 1]))
            script = Script(rng)
            monkeypatch.setattr(noise, "_random_bits", script)
            drawn = noise.Interval(start, bits)
            answer = noise._accept(curve, drawn, noise.Interval(height, height_bits))
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
                assert answer == (start, bits)
                assert (height + 1) * unit <= min(ends)
    assert refinements > 500
    assert 300 < accepted < 1200


class MoreBitsError(Exception):
    """Raised in place of drawing bits beyond the first ones."""


def no_more_bits(n):
    raise MoreBitsError


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("powers", [False, True], ids=["any scale", "powers of two"])
def test_floats_round_as_exact_arithmetic_does(law, powers, monkeypatch):
    rng, size, real = np.random.default_rng(7), 60_000, noise.random_words
    exponents = rng.integers(-5, 61, size) if powers else rng.uniform(-5, 60, size)
    scale, drawn = 2.0**exponents, []

    def recorded(n, dtype=np.uint64):
        drawn.append(real(n, dtype))
        return drawn[-1]

    monkeypatch.setattr(noise, "random_words", recorded)
    table, out = strip_table(law), np.empty(size, np.int64)
    with np.errstate(all="ignore"):
        noise._try_block(table, scale, out)
    cell, place = drawn[:2]
    monkeypatch.setattr(noise, "_random_bits", no_more_bits)
    undecided = 0
    free = np.flatnonzero(cell < table.free)
    for i in free:
        start = int(table.strip[cell[i]]) << 64 | int(place[i])
        try:
            exact = noise._round_exactly(float(scale[i]), noise.Interval(start, 70))
            assert exact == out[i]
        except MoreBitsError:
            undecided += 1
    # 2**-10 of the draws at the widest scale
    assert undecided < 0.001 * free.size


def test_floats_round_right_at_a_quarter_of_the_margin(monkeypatch):
    """Next to half-integers, where float errors show, and with a margin that leaves no slack."""
    monkeypatch.setattr(noise, "MARGIN", MARGIN / 4)
    monkeypatch.setattr(noise, "_random_bits", no_more_bits)
    rng, size, clear = random.Random(3), 40_000, 0
    scale = np.array([2.0 ** rng.uniform(2, 48) for _ in range(size)])
    near = np.array([rng.uniform(-11.9, 11.9) for _ in range(size)])
    starts = []
    for s, z in zip(scale.tolist(), near.tolist(), strict=True):
        half = Fraction(2 * int(s * z) + 1, 2) + rng.choice([-1, 1]) * Fraction(
            MARGIN * rng.uniform(0.25, 0.5)
        )
        starts.append(half / Fraction(s) * 2**70 // 1)
    strip = np.array([start >> 64 for start in starts])
    place = np.array([start & 2**64 - 1 for start in starts], np.uint64)
    out = np.empty(1, np.int64)
    for i, start in enumerate(starts):
        here = slice(i, i + 1)
        try:
            noise._round_block(scale[here], strip[here], place[here], out)
        except MoreBitsError:
            continue
        clear += 1
        assert out[0] == noise._round_exactly(float(scale[i]), noise.Interval(start, 70))
    assert clear > 0.9 * size


@pytest.mark.parametrize("law", LAWS)
def test_heights_are_right_to_far_less_than_the_margin(law):
    rng, curve = np.random.default_rng(3), CURVES[law]
    z = np.r_[rng.uniform(-1, 1, 20_000) * curve.reach, 0.0, curve.reach]
    with mp.workdps(40):
        pairs = zip(curve.heights(z).tolist(), z.tolist(), strict=True)
        assert max(abs(mp.mpf(f) - mp_height(law, x)) for f, x in pairs) < 2.0**-40
