"""The sampler of noise in a box, against exact arithmetic on the very same bits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.raising import raises
from support.randomness import SYSTEM
from support.streams import Stream

from dpframe.errors import CalibrationError
from dpframe.privacy import box, noise
from dpframe.privacy.laws import BOX, LAPLACE


def drawn_from(monkeypatch, seed, scales, size):
    monkeypatch.setattr("dpframe.context._system_bytes", Stream(seed))
    return np.array(box.box_noise(scales, size, SYSTEM))


def test_all_randomness_comes_from_one_function(monkeypatch):
    for members in (2, 9, 200):
        scales = [1e3] * members
        first = drawn_from(monkeypatch, 1, scales, 500)
        assert (first == drawn_from(monkeypatch, 1, scales, 500)).all()
        assert (first != drawn_from(monkeypatch, 2, scales, 500)).any()


@pytest.mark.parametrize("members", [2, 3, 8, 9, 40, 101])
@pytest.mark.parametrize("size", [0, 1, 5, 3000])
def test_draws_are_int64_of_the_shape_asked(members, size):
    drawn = box.box_noise([2.5] * members, size, SYSTEM)
    assert len(drawn) == members
    assert all(x.dtype == np.int64 and x.shape == (size,) for x in drawn)
    assert size < 5 or all(x.any() for x in drawn)


def test_a_coordinate_that_does_not_move_is_in_no_group(monkeypatch):
    three = drawn_from(monkeypatch, 3, [0.0, 7.0, 0, 2.0, -0.0], 4000)
    two = drawn_from(monkeypatch, 3, [7.0, 2.0], 4000)
    assert (three[[1, 3]] == two).all()
    assert not three[[0, 2, 4]].any()
    assert not np.array(box.box_noise([0.0, 0.0], 10, SYSTEM)).any()
    assert box.box_noise([], 10, SYSTEM) == []


def test_one_coordinate_has_the_discrete_laplace_noise(monkeypatch):
    one = drawn_from(monkeypatch, 4, [0.0, 3.5], 4000)[1]
    monkeypatch.setattr("dpframe.context._system_bytes", Stream(4))
    assert (one == noise.integer_noise(LAPLACE.curve, 3.5, 4000, SYSTEM)).all()
    assert BOX.deviation_among(3.5, 1) == LAPLACE.standard_deviation(3.5)
    assert BOX.half_width(3.5, 0.9) == LAPLACE.half_width(3.5, 0.9)


def test_wrong_arguments_are_refused():
    with raises(CalibrationError, ">= 0", parameter="size"):
        box.box_noise([1.0, 2.0], -1, SYSTEM)
    for scale in (-1.0, math.nan, math.inf, 2.0**61):
        for call in (lambda s: box.box_noise([1.0, s], 3, SYSTEM), BOX.standard_deviation):
            with raises(CalibrationError, "between", parameter="scale"):
                call(scale)


def test_the_widest_noise_wraps():
    drawn = np.array(box.box_noise([2.0**60] * 3, 100_000, SYSTEM)).astype(float)
    assert np.abs(drawn).max() <= 2.0**63
    # 3 % are at least 8 standard deviations of this estimate
    assert np.median(np.abs(drawn)) == pytest.approx(1.6 * 2.0**60, rel=0.1)


def test_numpy_error_state_does_not_matter():
    with np.errstate(all="raise"):
        assert not np.array(box.box_noise([1e-310, 5e-324], 40_000, SYSTEM)).any()
        assert np.array(box.box_noise([2.0**60, 1.0], 40_000, SYSTEM)).any()


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
    drawn = box.box_noise(scales, cells, SYSTEM)
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
    parts = [noise.Interval(0, 0, SYSTEM), noise.Interval(0, 0, SYSTEM)]
    for seed in range(200):
        monkeypatch.setattr("dpframe.context._system_bytes", Stream(seed))
        one, other = box._round_exactly([(1000.0, 1), (2000.0, 1)], parts)
        assert abs(other - 2 * one) <= 1
        assert 0 <= one <= 2000
        monkeypatch.setattr("dpframe.context._system_bytes", Stream(seed))
        first, total = box._round_exactly([(1000.0, 0), (1000.0, 1)], parts)
        assert total == one
        assert 0 <= first <= total + 1


def test_an_exponential_keeps_the_bits_that_its_acceptance_took(monkeypatch):
    settled, draw = [], box.try_strips

    def tries(*given):
        drawn = draw(*given)
        settled.append(dict(drawn[-1]))
        return drawn

    monkeypatch.setattr(box, "try_strips", tries)
    size = 2_000_000  # about 12 of them need bits beyond their words; none, in 6 runs of 1,000,000
    found = box._exponentials(size, SYSTEM)
    assert found.refined
    # draws that are spare may not be needed, and those of other rounds have other places
    for place, drawn in settled[0].items():
        if place < size:
            start = drawn.start if drawn.start >= 0 else ~drawn.start
            known = found.refined[place]
            shared = min(known.bits, drawn.bits)
            assert known.start >> known.bits - shared == start >> drawn.bits - shared
    for place, known in found.refined.items():
        assert known.bits >= noise.KNOWN_BITS
        high, low = int(found.high[place]), int(found.low[place])
        assert high << noise.LOW_BITS | low == known.start >> known.bits - noise.KNOWN_BITS
    assert found.high.size == size
    assert found.high.min() >= 0


@pytest.mark.parametrize("members", [3, 20, 150])
def test_equal_words_are_drawn_again(members, monkeypatch):
    real, asked = box.random_words, []

    def tied(n, context, dtype=np.uint64):
        asked.append(n)
        words = real(n, context, dtype).copy()
        if len(asked) == 1:
            words[:] = 5
        return words

    monkeypatch.setattr(box, "random_words", tied)
    places = box._places(members, 7, SYSTEM)
    assert asked[:2] == [7 * members, 7 * members]
    assert (np.sort(places // 7, axis=0) == np.arange(members)[:, None]).all()
    assert (places % 7 == np.arange(7)).all()


@pytest.mark.parametrize("draw", [box._rank_by_comparing, box._order_by_sorting])
def test_all_orders_are_as_likely(draw):
    orders = draw(4, 240_000, SYSTEM).astype(int)
    counts = np.bincount(orders[0] * 64 + orders[1] * 16 + orders[2] * 4 + orders[3], minlength=256)
    counts = counts[counts > 0]
    assert counts.size == 24
    # 10,000 each, known to 1 %: six deviations, 5e-8 for all of them
    assert np.abs(counts / 10_000 - 1).max() < 0.06


def block_of(monkeypatch, scales, parts, refined=None):
    """Noise of a block of given exponentials, in 2**-70; the k-th coordinate has the k-th sum."""
    high, low = (parts >> noise.LOW_BITS, parts & box._LOW_MASK)
    drawn = box._Exponentials(
        high.ravel().astype(np.int64),
        low.ravel().astype(np.int64),
        np.zeros(parts.size, int),
        {},
        SYSTEM,
    )
    drawn.refined.update(refined or {})
    places = np.arange(parts.size).reshape(parts.shape)
    monkeypatch.setattr(box, "_exponentials", lambda *_: drawn)
    monkeypatch.setattr(box, "_places", lambda *_: places)
    out = np.empty(parts.shape, np.int64)
    box._draw_block(np.array(scales), out, SYSTEM)
    return out


def borders(rng, scale, members, number):
    """Where a last sum, in 2**-70, is half way between integers; with earlier parts, and k."""
    for _ in range(number):
        least = max(0, math.ceil(scale * members * 0.4))
        k = int(rng.integers(least, least + max(4, int(scale * 4))))
        border = Fraction(2 * k + 1, 2) / Fraction(scale) * 2**noise.KNOWN_BITS
        each = int(border) // (2 * members)
        yield border, [int(each * share) for share in rng.uniform(0.2, 1.6, members - 1)], k


def parts_of(earlier, total):
    return [*earlier, total - sum(earlier)]


SCALES = [0.7, 1.3 * 2.0**20, 3.0 * 2**30, 1.1 * 2.0**40]


@pytest.mark.parametrize("members", [2, 3, 7])
@pytest.mark.parametrize("scale", SCALES)
def test_a_sum_that_floats_cannot_tell_from_a_border_is_rounded_exactly(
    scale, members, monkeypatch
):
    # no unknown bit matters, and floats of 53 bits cannot see on which side a sum is
    rng, wanted, cells = np.random.default_rng(members), [], []
    for border, earlier, k in borders(rng, scale, members, 100):
        for total, answer in ((math.ceil(border), k + 1), (math.floor(border) - members, k)):
            cells.append(parts_of(earlier, total))
            wanted.append(answer)
    # a cell of small sums: the error allowed is that of the largest product
    parts = np.array([*cells, [1] * members], object).T
    found = block_of(monkeypatch, [scale] * members, parts)
    assert found[-1, :-1].tolist() == wanted
    naive = np.rint(np.array(cells, float).sum(axis=1) * scale / 2.0**70)
    assert (naive != np.array(wanted, float)).mean() > 0.1


@pytest.mark.parametrize("members", [2, 3, 7])
@pytest.mark.parametrize("scale", SCALES)
def test_a_sum_is_known_no_better_than_all_of_its_parts(scale, members, monkeypatch):
    # all bits yet unknown are ones: together they lift the sum over a border, one alone would not
    rng, wanted, cells, refined = np.random.default_rng(members), [], [], {}
    for border, earlier, k in borders(rng, scale, members, 100):
        total = math.ceil(border) - members
        if border - total < members * (1 - Fraction(1, 2**60)):
            cells.append(parts_of(earlier, total))
            wanted.append(k + 1)
    parts = np.array(cells, object).T
    for place, start in enumerate(parts.ravel()):
        refined[place] = noise.Interval((start << 64) | (2**64 - 1), 134, SYSTEM)
    found = block_of(monkeypatch, [scale] * members, parts, refined)
    assert len(wanted) > 50
    assert found[-1].tolist() == wanted


def test_exponentials_are_the_sizes_of_what_was_drawn(monkeypatch):
    drawn, draw = [], box.try_strips
    monkeypatch.setattr(box, "try_strips", lambda *given: drawn.append(draw(*given)) or drawn[-1])
    size = 20_000
    found = box._exponentials(size, SYSTEM)
    strip, place, rejected, refined = drawn[0]
    kept = np.setdiff1d(np.arange(size), [*rejected, *refined])  # refined: some are of the tail
    for i in kept[:3000].tolist():
        whole = int(strip[i]) << 64 | int(place[i])
        assert found.sign[i] == (-1 if whole < 0 else 0)
        own = int(found.high[i]) << noise.LOW_BITS | int(found.low[i])
        assert own == (~whole if whole < 0 else whole)


def numbered(values):
    return np.array(values, np.int64)


def test_what_is_known_of_a_spare_exponential_goes_where_it_is_put(monkeypatch):
    known = {at: noise.Interval(at << 64, 134, SYSTEM) for at in (0, 1, 3, 4, 5)}
    columns = [numbered(range(6)) * factor for factor in (1, 10, 0)]
    # 1 and 2 are rejected, and so is the first spare one, 4; 5 is put at 1, and 2 is drawn again
    refined = {0: noise.Interval(7 << 64, 134, SYSTEM)}
    more = box._Exponentials(*(numbered([at]) for at in (7, 70, -1)), refined, SYSTEM)
    monkeypatch.setattr(box, "_exponentials", lambda size, _: more if size == 1 else None)
    del known[1]  # what is rejected is not known better
    drawn = box._Exponentials(*columns, known, SYSTEM)
    found = box._fill_rejected(drawn, numbered([1, 2, 4]), 4)
    assert found.high.tolist() == [0, 5, 7, 3]
    assert found.low.tolist() == [0, 50, 70, 30]
    assert found.sign.tolist() == [0, 0, -1, 0]
    starts = {at: one.start >> 64 for at, one in found.refined.items()}
    assert starts == {0: 0, 1: 5, 2: 7, 3: 3}
