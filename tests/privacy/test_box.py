"""The sampler of noise in a box, against exact arithmetic on the very same bits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.streams import Stream

from dpframe.errors import CalibrationError
from dpframe.privacy import box, noise, noise_floats
from dpframe.privacy.laws import BOX, LAPLACE


def drawn_from(monkeypatch, seed, scales, size):
    monkeypatch.setattr(noise, "random_bytes", Stream(seed))
    return np.array(box.box_noise(scales, size))


def test_all_randomness_comes_from_one_function(monkeypatch):
    for members in (2, 9, 200):
        scales = [1e3] * members
        first = drawn_from(monkeypatch, 1, scales, 500)
        assert (first == drawn_from(monkeypatch, 1, scales, 500)).all()
        assert (first != drawn_from(monkeypatch, 2, scales, 500)).any()


@pytest.mark.parametrize("members", [2, 3, 8, 9, 40, 101])
@pytest.mark.parametrize("size", [0, 1, 5, 3000])
def test_draws_are_int64_of_the_shape_asked(members, size):
    drawn = box.box_noise([2.5] * members, size)
    assert len(drawn) == members
    assert all(x.dtype == np.int64 and x.shape == (size,) for x in drawn)
    assert size < 5 or all(x.any() for x in drawn)


def test_a_coordinate_that_does_not_move_is_in_no_group(monkeypatch):
    three = drawn_from(monkeypatch, 3, [0.0, 7.0, 0, 2.0, -0.0], 4000)
    two = drawn_from(monkeypatch, 3, [7.0, 2.0], 4000)
    assert (three[[1, 3]] == two).all()
    assert not three[[0, 2, 4]].any()
    assert not np.array(box.box_noise([0.0, 0.0], 10)).any()
    assert box.box_noise([], 10) == []


def test_one_coordinate_has_the_discrete_laplace_noise(monkeypatch):
    one = drawn_from(monkeypatch, 4, [0.0, 3.5], 4000)[1]
    monkeypatch.setattr(noise, "random_bytes", Stream(4))
    assert (one == noise.integer_noise(LAPLACE.curve, 3.5, 4000)).all()
    assert BOX.deviations([0, 3.5]) == [0, LAPLACE.standard_deviation(3.5)]
    assert BOX.half_width(3.5, 0.9) == LAPLACE.half_width(3.5, 0.9)


def test_wrong_arguments_are_refused():
    with pytest.raises(CalibrationError, match="size must be >= 0, got size=-1"):
        box.box_noise([1.0, 2.0], -1)
    for scale in (-1.0, math.nan, math.inf, 2.0**61):
        for call in (box.box_noise, lambda scales, size: BOX.deviations(scales)):
            with pytest.raises(CalibrationError, match="scale must be between 0 and 2"):
                call([1.0, scale], 3)


def test_the_widest_noise_wraps():
    drawn = np.array(box.box_noise([2.0**60] * 3, 100_000)).astype(float)
    assert np.abs(drawn).max() <= 2.0**63
    # 3 % are at least 8 standard deviations of this estimate
    assert np.median(np.abs(drawn)) == pytest.approx(1.6 * 2.0**60, rel=0.1)


def test_numpy_error_state_does_not_matter():
    with np.errstate(all="raise"):
        assert not np.array(box.box_noise([1e-310, 5e-324], 40_000)).any()
        assert np.array(box.box_noise([2.0**60, 1.0], 40_000)).any()


def recorded(monkeypatch, name):
    """What a function of the sampler returned, call by call."""
    made, seen = getattr(box, name), []

    def record(*arguments):
        seen.append(made(*arguments))
        return seen[-1]

    monkeypatch.setattr(box, name, record)
    return seen


def exact_ends(scale, parts):
    """The draws, without a sign, at both ends of what is known of the parts."""
    ends = (
        sum((Fraction(part.start + end, 1 << part.bits) for part in parts), start=Fraction(0))
        for end in (0, 1)
    )
    low, high = (Fraction(scale) * end + Fraction(1, 2) for end in ends)
    return math.floor(low), math.ceil(high) - 1


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("exponents", [(0.8, -3.0), (34.7, 20.0, 30.0), (44, 44.4), (52, 0.0)])
@pytest.mark.parametrize("margin", [box._ERROR, 1e9], ids=["floats first", "all exact"])
def test_draws_are_those_of_exact_arithmetic_on_the_same_bits(exponents, margin, monkeypatch):
    scales, cells = [2.0**exponent for exponent in exponents], 2000
    monkeypatch.setattr(box, "_ERROR", margin)
    exponentials, places = recorded(monkeypatch, "_exponentials"), recorded(monkeypatch, "_places")
    drawn = box.box_noise(scales, cells)
    # inner calls, which draw again what was rejected, come first
    found, where = exponentials[-1], places[-1]
    members, undecided = len(scales), 0
    for k, cell in np.ndindex(members, cells):
        last = where[k, cell] // cells
        parts = [found.interval(place) for place in range(cell, (last + 1) * cells, cells)]
        low, high = exact_ends(scales[k], parts)
        sign = -1 if found.sign[k * cells + cell] else 1
        undecided += low != high
        assert low <= sign * int(drawn[k][cell]) <= high
    # more bits decide two in a thousand at most, at 2**52
    assert undecided < 0.002 * members * cells
    orders = np.sort(where // cells, axis=0)
    assert (orders == np.arange(members)[:, None]).all()


def test_coordinates_of_a_cell_are_settled_on_the_same_bits(monkeypatch):
    # nothing is known: both coordinates hang on bits drawn later, and must agree on them
    parts = [noise.Interval(0, 0), noise.Interval(0, 0)]
    for seed in range(200):
        monkeypatch.setattr(noise, "random_bytes", Stream(seed))
        one, other = box._round_exactly([(1000.0, 1), (2000.0, 1)], parts)
        assert abs(other - 2 * one) <= 1
        assert 0 <= one <= 2000
        monkeypatch.setattr(noise, "random_bytes", Stream(seed))
        first, total = box._round_exactly([(1000.0, 0), (1000.0, 1)], parts)
        assert total == one
        assert 0 <= first <= total + 1


def test_an_exponential_keeps_the_bits_that_its_acceptance_took(monkeypatch):
    settled, draw = [], box.try_strips

    def tries(table, size):
        drawn = draw(table, size)
        settled.append(dict(drawn[-1]))
        return drawn

    monkeypatch.setattr(box, "try_strips", tries)
    size = 2_000_000  # about 12 of them need bits beyond their words; none, in 6 runs of 1,000,000
    found = box._exponentials(size)
    assert found.refined
    # draws that are spare may not be needed, and those of other rounds have other places
    for place, drawn in settled[0].items():
        if place < size:
            start = drawn.start if drawn.start >= 0 else ~drawn.start
            known = found.refined[place]
            shared = min(known.bits, drawn.bits)
            assert known.start >> known.bits - shared == start >> drawn.bits - shared
    for place, known in found.refined.items():
        assert known.bits >= noise_floats.KNOWN_BITS
        high, low = int(found.high[place]), int(found.low[place])
        assert (
            high << noise_floats.LOW_BITS | low
            == known.start >> known.bits - noise_floats.KNOWN_BITS
        )
    assert found.high.size == size
    assert found.high.min() >= 0


@pytest.mark.parametrize("members", [3, 20, 150])
def test_equal_words_are_drawn_again(members, monkeypatch):
    real, asked = box.random_words, []

    def tied(n, dtype=np.uint64):
        asked.append(n)
        words = real(n, dtype).copy()
        if len(asked) == 1:
            words[:] = 5
        return words

    monkeypatch.setattr(box, "random_words", tied)
    places = box._places(members, 7)
    assert asked[:2] == [7 * members, 7 * members]
    assert (np.sort(places // 7, axis=0) == np.arange(members)[:, None]).all()
    assert (places % 7 == np.arange(7)).all()


@pytest.mark.parametrize("draw", [box._compared, box._sorted])
def test_all_orders_are_as_likely(draw):
    orders = draw(4, 240_000).astype(int)
    counts = np.bincount(orders[0] * 64 + orders[1] * 16 + orders[2] * 4 + orders[3], minlength=256)
    counts = counts[counts > 0]
    assert counts.size == 24
    # 10,000 each, known to 1 %: six deviations, 5e-8 for all of them
    assert np.abs(counts / 10_000 - 1).max() < 0.06
