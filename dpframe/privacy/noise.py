"""Exact draws of integer noise: the rounded Gaussian and the discrete Laplace.

Noise in a box is drawn in `box` with the parts of this module.

A rounded Gaussian `round(scale * Z)`, added to an integer, gives `round(integer + scale * Z)`: a
rounding of the ideal, continuous mechanism, so its guarantee holds to the letter. The discrete
Laplace, `P(k) = (1 - q) / (1 + q) q**|k|` with `q = exp(-1 / scale)`, has the guarantee of the
continuous one on integers, and less variance than a rounding of it (Ghosh, Roughgarden and
Sundararajan 2012): 1.84 in place of 2.08 at scale 1. A float added to a float has no guarantee at
all (Mironov 2012): the low bits of the sum tell the data apart.

How Z is drawn
    A point is drawn uniformly in the region under a multiple of the density; Z is its abscissa.
    Sixteen random bits pick a cell of `StripTable`: a strip of 1/64 of the z axis, and a
    height. A free cell lies under the curve and is accepted as it is. In a tested cell 64 more bits
    tell the height, and points above the curve are rejected and drawn again. One cell, of the same
    area as the others, stands for the tails: blocks of 64 strips, each block half as likely as the
    one before and half as high. Inside its strip Z is uniform, and 64 of its bits are drawn
    at once. (Rejection with a table as in Marsaglia and Tsang 2000; bits of a real number drawn
    only as needed as in Karney 2016.)

What a draw is
    The whole part of scale * |Z| + d, with the sign of Z. With d = 1/2 it is round(scale * Z). It
    is k or more in size with probability `P(|Z| >= (k - d) / scale)`: for the Laplace, `q**k` times
    `exp(d / scale)`. So `d = scale log(2 / (1 + q))`, between 0 and 1/2, makes the discrete law.

Why it is exact
    Z is never a float. It is an interval [n, n + 1) / 2**bits, drawn with exactly its probability,
    any point of which is still possible. Two questions are asked: which is the whole part of scale
    * |Z| + d, and is the point above or below the curve. Floats answer them only when the answer is
    clear by more than `MARGIN` = 2**-16, for their errors stay below 2**-18:

    - scale * Z, for the top 30 and the next 40 bits of Z after the point, is the sum of two
      products of exact numbers, once the whole part of scale / 2**30 is taken out, in int64 modulo
      2**64. The products are below 2**34 and 2**30, so rounding them and their sum to 53 bits costs
      at most 2**-20 + 2**-24 + 2**-20. For the Laplace, the sum is moved toward 0 by 1/2 - d, but
      not beyond, before it is rounded: 2**-20 more. (If a whole part was taken out, the sum may lie
      on the other side of 0 than Z. But then the scale is 2**30 or more, and 1/2 - d < 2**-32.)
      What is unknown of Z moves scale * Z by up to scale / 2**70, which is added to the margin.
    - Up to scale 2**26, scale * Z is one product: Z as a float, with 52 bits of the place, is right
      to 2**-48, which makes 2**-22, and a product below 2**30 is rounded by at most 2**-24, as is
      what the pull leaves.
    - The height of the curve f has slope below 512, and Z is known to 2**-48: 2**-39. The value of
      f, below 512, is right to 2**-40 with an `exp` that is off by some units in the last place.

    Otherwise integers, and decimals known to be close enough, answer them, on 64 more bits at a
    time until they can. Given uniform bits, it is exact. Very few draws ask integers alone.

The time it takes depends on the noise that is drawn, never on the data it is added to.
"""

import decimal
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dpframe.context import Context
from dpframe.errors import CalibrationError
from dpframe.frozen import frozen

STRIP_BITS = 6
"""A strip is 2**-6 wide."""
MARGIN = 2.0**-16
"""No float decides a comparison closer than this: their errors stay below 2**-18."""
_CELLS = 1 << 16  # of the table that a draw looks up first


@frozen(eq=False)
class Curve:
    """A multiple of the density of Z, `f(z) = peak * exp(-energy(z))`, even and falling in |z|.

    Parameters
    ----------
    peak
        Height at 0, in cells.
    reach
        The table covers |z| < reach. Beyond, `f(z) <= 2**-(8 + i)` for |z| >= reach + i, i >= 0.
    energy
        Minus the log-density of Z up to a constant; takes arrays and `Decimal` numbers alike.
    offset
        What is added to scale * |Z| before the whole part is taken, d: takes the scale and a number
        of bits, and returns integers below and above 2**bits d, at most 3 apart.
    pull
        1/2 - d in floats, right to 2**-50, of an array of scales; `None` if it is 0.
    """

    peak: int
    reach: int
    energy: Callable[[Any], Any]
    offset: Callable[[float, int], tuple[int, int]]
    pull: Callable[[np.ndarray], np.ndarray] | None = None

    def heights(self, z: np.ndarray) -> np.ndarray:
        """Return f(z) in floats, right to 2**-40 for exact |z| <= reach."""
        return np.asarray(self.peak * np.exp(-self.energy(z)))

    def bracket(self, start: int, bits: int) -> tuple[Fraction, Fraction]:
        """Return numbers below and above every f(z) with z in [start, start + 1] / 2**bits.

        `decimal` rounds each of six steps to a relative 10**-precision. The energy is below
        4**extra and known to two of those, f therefore to 2 * 4**extra + 3 of them: less than the
        slack, wherever z lies. The slack itself is small beside the change of f over the interval.
        """
        nearest, farthest = sorted((abs(start), abs(start + 1)))
        digits = bits // 3 + 10  # 10**-(bits / 3) < 2**-bits
        extra = max(0, farthest.bit_length() - bits)
        with exact_decimals(digits + extra + 4):
            low = self.peak * (-self.energy(Decimal(farthest) / 2**bits)).exp()
            high = self.peak * (-self.energy(Decimal(nearest) / 2**bits)).exp()
        slack = Fraction(1, 10**digits)
        return Fraction(low) * (1 - slack), Fraction(high) * (1 + slack)


def exact_decimals(digits: int) -> AbstractContextManager[object]:
    """Compute with so many digits, whatever the caller has set."""
    rounding, ends = decimal.ROUND_HALF_EVEN, (decimal.MIN_EMIN, decimal.MAX_EMAX)
    return decimal.localcontext(decimal.Context(digits, rounding, *ends, traps=[]))


def half(_: float, bits: int) -> tuple[int, int]:
    """Bracket 1/2, which rounds to the nearest integer."""
    return (1 << bits) // 2, ((1 << bits) + 1) // 2


@frozen(eq=False)
class StripTable:
    """The cells of a curve: free ones first, then tested ones, then spare ones, then the tail's.

    Parameters
    ----------
    curve
        The curve that the cells cover.
    free
        Number of free cells.
    strip
        Strips of the 2**16 cells, int16.
    bottom
        Lower edges of the cells that are not free, float64: infinite for a spare cell, which is
        above any curve, and NaN for the last cell, which stands for |z| >= reach.
    """

    curve: Curve
    free: int
    strip: np.ndarray
    bottom: np.ndarray


@cache
def strip_table(curve: Curve) -> StripTable:
    """Cut the region under a curve into cells.

    The number of free cells of a strip is rounded down, from the lowest height of the curve minus
    the margin; the number of all its cells is rounded up, from the highest plus the margin. So
    whatever the last bits of `exp`, free cells lie under the curve and all of it is covered.
    """
    width = 2.0**-STRIP_BITS
    strips = np.arange(curve.reach << STRIP_BITS)
    free = np.floor(curve.heights((strips + 1) * width) - MARGIN).clip(0).astype(np.int64)
    cells = np.ceil(curve.heights(strips * width) + MARGIN).astype(np.int64)
    # the strips of -z: ~k is -k - 1
    strips, free, cells = np.r_[strips, ~strips], np.tile(free, 2), np.tile(cells, 2)
    tested = cells - free

    strip = np.zeros(_CELLS, np.int16)
    strip[: cells.sum()] = np.r_[np.repeat(strips, free), np.repeat(strips, tested)]
    bottom = np.full(_CELLS - free.sum(), np.inf)
    first = np.cumsum(tested) - tested
    bottom[: tested.sum()] = np.arange(tested.sum()) + np.repeat(free - first, tested)
    bottom[-1] = np.nan
    return StripTable(curve, int(free.sum()), strip, bottom)


MAX_SCALE = 2.0**60
"""Largest scale: beyond, a draw would often not fit in an int64."""


def check_size(size: int) -> None:
    """Validate a number of draws."""
    if size < 0:
        raise CalibrationError.about("size", "must be >= 0", size)


def check_scale(scale: float | np.ndarray) -> np.ndarray:
    """Validate a scale or scales; return them as float64."""
    if type(scale) is float and 0 <= scale <= MAX_SCALE:
        # faster than an array of no axes
        return np.asarray(scale + 0.0)[()]
    # -0.0 is 0.0, whose inverse is positive
    scales = np.asarray(np.add(scale, 0.0), np.float64)
    valid = (scales >= 0) & (scales <= MAX_SCALE)
    if not valid.all():
        way_out = "Wider noise does not fit in 64 bits: give a larger epsilon or narrower bounds."
        value = scales[~valid].flat[0].item()
        raise CalibrationError.about("scale", "must be between 0 and 2**60", value, way_out)
    return scales


WORD = 64
"""Bits are drawn by the word."""
KNOWN_BITS = WORD + STRIP_BITS
"""Bits of Z after the point that are drawn at once."""
# arrays of no axes: faster than numbers where there are few draws
# of a place: the fraction of a float has 52
_UNUSED_BITS = np.array(WORD - 52, np.uint64)
_ONE = np.array(1.0).view(np.uint64)
_ONE_STRIP = np.array(1, np.int16)
# of Z after the point in the first product
_HIGH_BITS = 30
LOW_BITS = KNOWN_BITS - _HIGH_BITS
"""Of a 64-bit place, left for the second product."""
NARROW = 2.0**26
"""Up to this scale, one product of floats is close enough."""


def in_strips(strip: np.ndarray, place: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write 64 Z to `out`, in floats, with the first 52 bits of the place; return `out`."""
    bits = out.view(np.uint64)
    np.right_shift(place, _UNUSED_BITS, out=bits)
    bits |= _ONE  # now the bits of the float 1 + place / 2**64
    out += strip - _ONE_STRIP
    return out


class Points(NamedTuple):
    """Z of a block: strips, places, and 64 Z in floats, or `None` if floats do not say enough.

    The context is where more bits come from.
    """

    strip: np.ndarray
    place: np.ndarray
    floats: np.ndarray | None
    context: Context

    def near(self, chosen: np.ndarray) -> np.ndarray:
        """Return 64 Z of some of them in floats."""
        if self.floats is not None:
            return self.floats.take(chosen)
        return in_strips(self.strip[chosen], self.place[chosen], np.empty(chosen.size))


def round_whole(
    scales: np.ndarray, left: np.ndarray, out: np.ndarray, pull: np.ndarray | None, room: np.ndarray
) -> np.ndarray:
    """Write the integers nearest to scale * Z to `out`, for scales of at most `NARROW`.

    Takes 64 Z in floats. Works in their memory, and in `room` of the same size.

    Returns
    -------
    numpy.ndarray
        What is left over, in floats between -1/2 and 1/2.
    """
    left *= scales * 2.0**-STRIP_BITS
    if pull is not None:
        left -= left.clip(-pull, pull, out=room)
    nearest = np.rint(left, out=room)
    out[:] = nearest
    left -= nearest
    return left


def halves(
    strip: np.ndarray, place: np.ndarray, room: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Split Z into (high + (low + [0, 1)) / 2**40) / 2**30; works in `room`, of two rows."""
    high, low = np.empty((2, place.size), np.int64) if room is None else room.view(np.int64)
    np.right_shift(place, LOW_BITS, out=high.view(np.uint64))
    high += np.multiply(strip, 1 << _HIGH_BITS - STRIP_BITS, out=low, dtype=np.int64)
    np.bitwise_and(place, (1 << LOW_BITS) - 1, out=low.view(np.uint64))
    return high, low


def round_halves(
    scales: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    out: np.ndarray,
    *,
    pull: np.ndarray | None = None,
    room: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Write the integers nearest to scale * Z to `out`, for Z = (high + low / 2**40) / 2**30.

    Works in the memory of `low`, and in `room`, of two rows.

    Returns
    -------
    tuple
        In floats: what is left over, between -1/2 and 1/2, and the product it is left over of,
        scale * Z less the whole part of scale / 2**30 times `high`, and less the pull.
    """
    product, nearest = np.empty((2, *high.shape)) if room is None else room
    unit = scales * 2.0**-_HIGH_BITS
    units = np.floor(unit)
    np.multiply(high, unit - units, out=product)
    product += np.multiply(low, unit * 2.0**-LOW_BITS, out=nearest)
    if pull is not None:
        product -= product.clip(-pull, pull, out=nearest)
    np.rint(product, out=nearest)
    out[:] = nearest
    if units.any():
        out += np.multiply(high, units.astype(np.int64), out=low)
    return np.subtract(product, nearest, out=nearest), product


BLOCK = 1 << 16
"""Draws of a block: many enough for few calls, few enough for the processor's cache."""
ROWS = 4
"""Of a room: as many arrays of 64-bit numbers are needed at once."""
_MOST = 4  # rooms of two megabytes that are kept
_shelf: deque[np.ndarray] = deque(maxlen=_MOST)


@contextmanager
def lend(size: int) -> Iterator[np.ndarray]:
    """Lend rows of so many floats, at most `BLOCK`; clear them afterwards."""
    try:
        room = _shelf.pop()
    except IndexError:
        room = np.empty((ROWS, BLOCK))
        room[:] = 0
    try:
        yield room[:, :size]
    finally:
        room[:, :size] = 0
        _shelf.append(room)


# so many draws are quicker one by one
_SINGLE = 8
# of a random word, which choose a cell
_CELL_BITS = 16
# so many draws are copied faster than they are mended
_FEW = 1 << 13
# for so many draws fresh memory is quick
_FEWER = 1 << 11
# so many draws more, and one for so many: 3 % are rejected
_SPARE, _SHARE = 32, 28
# arrays of no axes: faster than numbers where there are few draws
_WORD_UNIT, _STRIP_UNIT = np.array(2.0**-WORD), np.array(2.0**-STRIP_BITS)


def random_words(
    n: int, context: Context, dtype: type[np.unsignedinteger[Any]] = np.uint64
) -> np.ndarray:
    """Return n uniform random words of an unsigned integer type, as a read-only array."""
    return np.frombuffer(context.bits(n * np.dtype(dtype).itemsize), dtype)


def row_words(n: int, context: Context) -> np.ndarray:
    """Return n random words by which rows are chosen; in a test, the word of the test."""
    word = context.row_word
    return random_words(n, context) if word is None else np.full(n, word, np.uint64)


def _random_bits(n: int, context: Context) -> int:
    """Return a uniform integer of n bits."""
    return int.from_bytes(context.bits(-(-n // 8)), "little") >> (-n % 8)


def integer_noise(
    curve: Curve, scale: float | np.ndarray, size: int, context: Context
) -> np.ndarray:
    """Draw `size` independent integers of the rounded Gaussian or the discrete Laplace law.

    The laws are exact. Gaussian: `P(Y = k) = P(k - 1/2 <= scale * Z < k + 1/2)` for integers k,
    where Z has density `exp(-z**2 / 2) / sqrt(2 pi)`. Laplace: `P(Y = k)` is proportional to
    `exp(-|k| / scale)`. What does not fit in an int64, with scales near 2**60, wraps modulo 2**64:
    a post-processing like any other.

    Parameters
    ----------
    curve
        That of the Gaussian or of the Laplace law.
    scale
        From 0 to 2**60: one number, or an array of shape (size,) with one scale per draw. For the
        Gaussian it is the standard deviation before rounding. Scale 0 gives 0.
    size
        Number of draws, >= 0.
    context
        Where random bits come from.

    Returns
    -------
    numpy.ndarray
        int64 array of shape (size,).

    Raises
    ------
    CalibrationError
        If a scale is out of range, the size is negative or the shapes differ.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally utility-maximizing privacy
    mechanisms", SIAM Journal on Computing 41(6), 2012.
    C. F. F. Karney, "Sampling exactly from the normal distribution", ACM TOMS 42(1), 2016.
    G. Marsaglia and W. W. Tsang, "The ziggurat method for generating random variables", Journal of
    Statistical Software 5(8), 2000.
    I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.

    Examples
    --------
    >>> from dpframe.context import SYSTEM
    >>> from dpframe.privacy.laws import GAUSSIAN, LAPLACE
    >>> noise = integer_noise(GAUSSIAN.curve, 4.2, 1000, SYSTEM)
    >>> noise.dtype, noise.shape
    (dtype('int64'), (1000,))
    >>> integer_noise(LAPLACE.curve, 0, 3, SYSTEM)
    array([0, 0, 0])
    """
    check_size(size)
    scales = check_scale(scale)
    if scales.ndim and scales.shape != (size,):
        text = f"scale must be one number or one per draw, got shape {scales.shape} for {size=}."
        raise CalibrationError(text, parameter="scale")
    # infinite and NaN heights, underflow, wrapping: all intended
    with np.errstate(all="ignore"):
        return _draw(strip_table(curve), scales, size, context)


def _part(scales: np.ndarray, places: Any) -> np.ndarray:
    """Return the scales of some of the draws."""
    return scales[places] if scales.ndim else scales


def _draw(table: StripTable, scales: np.ndarray, size: int, context: Context) -> np.ndarray:
    """Draw in blocks; replace rejected draws by spare ones, or draw again."""
    if not scales.ndim and size <= _SINGLE:
        number = float(scales)
        return np.array([_draw_one(table, number, context) for _ in range(size)], np.int64)
    # draws of one scale are alike: a few too many cost less than a second round
    spare = 0 if scales.ndim else _SPARE + size // _SHARE
    out = np.empty(size + spare, np.int64)
    if spare and out.size <= _FEW:
        return _draw_accepted(table, scales, out, size, context)
    blocks = [np.empty(0, np.intp)]
    for start in range(0, out.size, BLOCK):
        block = slice(start, start + BLOCK)
        rejected = _try_block(table, _part(scales, block), out[block], context)
        blocks.append(start + rejected)
    rejected = np.concatenate(blocks)
    within = int(rejected.searchsorted(size))
    accepted = np.ones(spare, bool)
    accepted[rejected[within:] - size] = False
    usable = out[size:][accepted][:within]
    out[rejected[: usable.size]] = usable
    again = rejected[usable.size : within]
    if again.size:
        out[again] = _draw(table, _part(scales, again), again.size, context)
    return out[:size]


def _draw_accepted(
    table: StripTable, scales: np.ndarray, out: np.ndarray, size: int, context: Context
) -> np.ndarray:
    """Draw once per place of `out`; return the first ones that are accepted, or draw the rest."""
    kept = np.ones(out.size, bool)
    kept[_try_block(table, scales, out, context)] = False
    drawn = out[kept]
    if drawn.size >= size:
        return drawn[:size]
    return np.concatenate([drawn, _draw(table, scales, size - drawn.size, context)])


def _draw_one(table: StripTable, scale: float, context: Context) -> int:
    """Draw a single integer, all of it in exact arithmetic: arrays of one cost more."""
    while True:
        bits = _random_bits(_CELL_BITS + WORD, context)
        cell, place = bits % (1 << _CELL_BITS), bits >> _CELL_BITS
        z = Interval(int(table.strip[cell]) << WORD | place, KNOWN_BITS, context)
        if cell < table.free:
            return _round_exactly(table.curve, scale, z)
        bottom, fraction = float(table.bottom[cell - table.free]), _random_bits(WORD, context)
        drawn = _settle(table.curve, z, bottom, fraction)
        if drawn is not None:
            return _round_exactly(table.curve, scale, drawn)


def _try_block(
    table: StripTable, scales: np.ndarray, out: np.ndarray, context: Context
) -> np.ndarray:
    """Draw once per place of `out`; return the places where the draw was rejected."""
    if out.size <= _FEWER:
        return _try_in(np.empty((ROWS, out.size)), table, scales, out, context)
    with lend(out.size) as room:
        return _try_in(room, table, scales, out, context)


def _try_in(
    room: np.ndarray, table: StripTable, scales: np.ndarray, out: np.ndarray, context: Context
) -> np.ndarray:
    """Draw once per place of `out`, in some memory; return where the draw was rejected."""
    cell, points = _draw_points(table, out.size, context)
    points = _with_floats(room, scales, points)
    rejected, refined = _test_heights(table, cell, points)
    _round_block(room, table.curve, scales, points, out)
    for i, drawn in refined.items():
        out[i] = _round_exactly(table.curve, float(_part(scales, i)), drawn)
    return rejected


def try_strips(
    table: StripTable, size: int, context: Context
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, "Interval"]]:
    """Draw Z = (strip + (place + [0, 1)) / 2**64) / 64 once for each of so many places.

    Returns strips, places, where the draw was rejected, and Z where it was settled exactly.
    """
    cell, points = _draw_points(table, size, context)
    rejected, refined = _test_heights(table, cell, points)
    return points.strip.astype(np.int64), points.place, rejected, refined


def _draw_points(table: StripTable, size: int, context: Context) -> tuple[np.ndarray, Points]:
    """Draw cells, and Z in their strips."""
    cell, place = random_words(size, context, np.uint16), random_words(size, context)
    return cell, Points(table.strip.take(cell), place, None, context)


def _with_floats(room: np.ndarray, scales: np.ndarray, points: Points) -> Points:
    """Add Z in floats, in the first row of the room, if these say enough for the scales."""
    if (scales.max(initial=0.0) if scales.ndim else scales) > NARROW:
        return points
    return points._replace(floats=in_strips(points.strip, points.place, room[0]))


def _round_block(
    room: np.ndarray, curve: Curve, scales: np.ndarray, points: Points, out: np.ndarray
) -> None:
    """Write the draws to `out` that Z gives."""
    pull = None if curve.pull is None else curve.pull(scales)
    if points.floats is not None:
        left = round_whole(scales, points.floats, out, pull, room[1])
    else:
        high, low = halves(points.strip, points.place, room[:2])
        left, _ = round_halves(scales, high, low, out, pull=pull, room=room[2:])
    unknown = scales * 2.0**-KNOWN_BITS
    for i in (np.abs(left, out=left) > 0.5 - MARGIN - unknown).nonzero()[0].tolist():
        drawn = _interval(points, i)
        out[i] = _round_exactly(curve, float(_part(scales, i)), drawn)


class Interval(NamedTuple):
    """What is known of a random real number: it lies in [start, start + 1) / 2**bits, uniformly."""

    start: int
    bits: int
    context: Context

    def refine(self) -> "Interval":
        """Draw the next 64 bits."""
        start = self.start << WORD | _random_bits(WORD, self.context)
        return Interval(start, self.bits + WORD, self.context)

    def known_to(self, bits: int) -> "Interval":
        """Draw until so many bits are known, or more."""
        drawn = self
        while drawn.bits < bits:
            drawn = drawn.refine()
        return drawn


def _interval(points: Points, i: int) -> Interval:
    """Return all that is known of a point of a block."""
    start = int(points.strip[i]) << WORD | int(points.place[i])
    return Interval(start, KNOWN_BITS, points.context)


def _round_exactly(curve: Curve, scale: float, drawn: Interval) -> int:
    """Return the draw that Z gives, modulo 2**64, on as many more bits of Z as it takes."""
    sign = -1 if drawn.start < 0 else 1
    if sign < 0:
        drawn = Interval(~drawn.start, drawn.bits, drawn.context)
    while True:
        size = whole_part(scale, drawn, 1, curve.offset(scale, drawn.bits))
        if size is not None:
            return wrap_integer(sign * size)
        drawn = drawn.refine()


def wrap_integer(value: int) -> int:
    """Return an integer modulo 2**64, as an int64."""
    return (value + 2**63) % 2**64 - 2**63


def whole_part(scale: float, drawn: Interval, terms: int, offset: tuple[int, int]) -> int | None:
    """Return the whole part of scale * S + d if it is the same for all of an interval, else `None`.

    Parameters
    ----------
    scale
        The scale, >= 0.
    drawn
        S lies in [start, start + terms) / 2**bits, with start >= 0.
    terms
        How many numbers S is the sum of, each of them known to 2**-bits.
    offset
        Integers below and above 2**bits d.
    """
    p, q = scale.as_integer_ratio()
    low, high = offset
    # scale S = p S / q; everything is multiplied by q 2**bits
    unit = q << drawn.bits
    answer = (p * drawn.start + q * low) // unit
    certain = p * (drawn.start + terms) + q * high <= (answer + 1) * unit
    return answer if certain else None


def _test_heights(
    table: StripTable, cell: np.ndarray, points: Points
) -> tuple[np.ndarray, dict[int, Interval]]:
    """Draw heights in tested cells; return who is rejected, and Z where it was settled exactly."""
    tested = (cell >= table.free).nonzero()[0]
    bottom = table.bottom.take(cell[tested] - table.free)
    fraction = random_words(tested.size, points.context)
    z = points.near(tested)
    z *= _STRIP_UNIT
    excess = fraction * _WORD_UNIT
    excess += bottom
    excess -= table.curve.heights(z)
    rejected = excess > MARGIN
    refined = {}
    for i in (~(np.abs(excess, out=excess) > MARGIN)).nonzero()[0]:
        where = int(tested[i])
        point = _interval(points, where)
        drawn = _settle(table.curve, point, float(bottom[i]), int(fraction[i]))
        if drawn is None:
            rejected[i] = True
        else:
            refined[where] = drawn
    return tested[rejected], refined


def _settle(curve: Curve, z: Interval, bottom: float, fraction: int) -> Interval | None:
    """Test a height exactly; return Z, refined as needed, or `None` if it is rejected."""
    if math.isnan(bottom):  # of the tail's cell
        return _try_tail(curve, z.context)
    if math.isinf(bottom):  # of a spare cell
        return None
    return _accept(curve, z, Interval(int(bottom) << WORD | fraction, WORD, z.context))


def _accept(curve: Curve, drawn: Interval, height: Interval) -> Interval | None:
    """Return Z, refined as needed, if the point is under the curve, else None."""
    while True:
        low, high = (value * 2**height.bits for value in curve.bracket(drawn.start, drawn.bits))
        if height.start + 1 <= low:
            return drawn
        if height.start >= high:
            return None
        drawn, height = drawn.refine(), height.refine()


def _try_tail(curve: Curve, context: Context) -> Interval | None:
    """Draw once beyond the table: |Z| is in [reach + i, reach + i + 1) one time in 2**(i + 1)."""
    block = 0
    while _random_bits(1, context):
        block += 1
    bits = WORD - STRIP_BITS - 4
    start = (curve.reach + block << bits) + _random_bits(bits, context)
    drawn = Interval(start if _random_bits(1, context) else ~start, bits, context)
    height = Interval(_random_bits(WORD, context), WORD + 8 + block, context)
    return _accept(curve, drawn, height)
