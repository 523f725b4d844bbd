"""Noise in a box: vectors whose density is an exponential of the largest coordinate.

The noise of D coordinates with scales s_1 .. s_D has the density

    exp(-max_k |z_k| / s_k) / (2**D D! s_1 ... s_D) ,

that of the K-norm mechanism whose body is the box of half-sides s_k. Rounded, and added to
integers, it is a rounding of that continuous mechanism, as in `noise`.

How it is drawn
    Sort the sizes |z_k| / s_k: the smallest is x_1, the largest x_D. Each of the 2**D D! ways to
    give them signs and to hand them to the coordinates is as likely, and the density of the sorted
    sizes is exp(-x_D) on 0 < x_1 < ... < x_D. It is the density of sums: x_j = E_1 + ... + E_j, for
    independent standard exponentials. So D exponentials are added up one by one, and the sums are
    handed out in an order that is uniform among all D!. An exponential is |Z| for the Z that
    `noise` draws for the discrete Laplace, and the sign of that Z is a sign for a coordinate. One
    coordinate alone has the discrete Laplace noise itself, which varies less than a rounding.

    The order is that of D random words. If any two of a cell are equal, all D are drawn again:
    what decides that treats all orders alike.

Why it is exact
    Two tiers answer the one question, which integer is nearest to s_k x_j.

    - Floats, where the answer is clear. Each E is known to 70 bits after the point, so a sum is
      (high + (low + [0, j)) / 2**40) / 2**30 with exact integers >= 0. As in `noise`, the whole
      part of s / 2**30 is taken out of the product in int64, modulo 2**64. What remains is
      (u - whole) * high + u * low / 2**40, u = s / 2**30, two terms >= 0. Each integer becomes a
      float, each term is a product, and they are added: three roundings of 2**-53 of it, less than
      2**-51. What is unknown of the sum moves it by less than s D / 2**70. An answer counts if it
      is clear by more than that and 2**-50 of the largest product of its coordinate. The comparison
      itself is off by 2**-54 at most, which the other half of 2**-50 covers, for near a half the
      product is 1/2 or more. (Products of scales below 2**-900 may lose digits; they are far below
      1/2.)
    - Integers otherwise, on 64 more bits of each E at a time until they can. All doubtful
      coordinates of a cell are settled on the same bits, so they share its exponentials. An E whose
      acceptance took more bits keeps them.

The time it takes depends on the noise that is drawn, never on the data it is added to.

How wide it is
    In units of the scales, a vector of noise is R U: R has the density `r^D e^-r / D!`, and the D
    coordinates of U are independent and uniform on [-1, 1]. So a sum of coordinates is a sum of
    uniform variables times R. Tails are combinations of a few Q(n, x), the chance that a sum of n
    standard exponentials is above x. The tail `g(x) = P(|sum_j a_j U_j| > x)` of three or more is
    taken as in `half_widths`, without a V, at some nodes. It is convex, as the density falls on
    both sides: a chord is never below. `E g(t / R)` of a chord is a sum of two tails of Gamma laws.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from dpframe.context import Context
from dpframe.privacy import half_widths
from dpframe.privacy.gaussian import GAUSSIAN
from dpframe.privacy.laplace import LAPLACE, LAPLACE_CURVE
from dpframe.privacy.law import Law, PureLaw
from dpframe.privacy.noise import (
    KNOWN_BITS,
    LOW_BITS,
    WORD,
    Interval,
    check_scale,
    check_size,
    half,
    halves,
    integer_noise,
    random_words,
    round_halves,
    strip_table,
    try_strips,
    whole_part,
    wrap_integer,
)
from dpframe.privacy.noise_sum import NoiseSum, Shares, norm

# coordinates of a block: few calls, and their sums stay in the cache
_BLOCK = 1 << 16
# one draw more for so many: 3 % are rejected
_SPARE = 20
# so many words are compared faster than sorted; ranks add up to less than 256
_FEW = 16
# so many words of 32 bits are too often tied
_MANY = 100
# twice a bound on the relative error of a product
_ERROR = 2.0**-50
# the low bits of a word
_LOW_MASK = (1 << LOW_BITS) - 1


def box_noise(scales: Sequence[float], size: int, context: Context) -> list[np.ndarray]:
    """Draw rounded noise in a box for `size` cells, independent of one another.

    The vector of a cell is `round(z)`, where z has a density proportional to
    `exp(-max_k |z_k| / s_k)`, exactly (Hardt and Talwar 2010, with a box for K). If one coordinate
    alone has a scale above 0, its noise is that of the discrete Laplace law. What does not fit in
    an int64, with scales near 2**60, wraps modulo 2**64.

    Parameters
    ----------
    scales
        Scale of each coordinate, s_k, from 0 to 2**60. A coordinate of scale 0 gets 0, and does not
        count among the others.
    size
        Number of cells, >= 0.
    context
        Where random bits come from.

    Returns
    -------
    list of numpy.ndarray
        An int64 array of shape (size,) for each coordinate.

    Raises
    ------
    CalibrationError
        If a scale is out of range or the size is negative.

    References
    ----------
    M. Hardt and K. Talwar, "On the geometry of differential privacy", STOC 2010.

    Examples
    --------
    >>> from dpframe.context import SYSTEM
    >>> rows, total, public = box_noise([1.0, 200.0, 0.0], 1000, SYSTEM)
    >>> rows.dtype, total.shape, public.any()
    (dtype('int64'), (1000,), np.False_)
    """
    check_size(size)
    checked = check_scale(np.array(scales, np.float64))
    (moving,) = checked.nonzero()
    if moving.size == checked.size > 1:
        return list(_draw(checked, size, context))
    out = np.zeros((checked.size, size), np.int64)
    if moving.size == 1:
        alone = float(checked[moving[0]])
        out[moving[0]] = integer_noise(LAPLACE_CURVE, alone, size, context)
    elif moving.size:
        out[moving] = _draw(checked[moving], size, context)
    return list(out)


def _draw(scales: np.ndarray, size: int, context: Context) -> np.ndarray:
    """Draw the noise of cells, one a column, in blocks."""
    out = np.empty((scales.size, size), np.int64)
    cells = max(1, _BLOCK // scales.size)
    # infinite and NaN heights, underflow, wrapping: all intended
    with np.errstate(all="ignore"):
        for start in range(0, size, cells):
            _draw_block(scales, out[:, start : start + cells], context)
    return out


def _draw_block(scales: np.ndarray, out: np.ndarray, context: Context) -> None:
    """Write the noise of some cells, one a column, to `out`."""
    members, cells = out.shape
    drawn = _exponentials(out.size, context)
    high, low = (_added_up(part.reshape(out.shape)) for part in (drawn.high, drawn.low))
    places = _places(members, cells, context)
    sizes = scales[:, None]
    left, product = round_halves(sizes, high.take(places), low.take(places), out)
    margin = _ERROR * product.max(axis=1, keepdims=True) + sizes * members * 2.0**-KNOWN_BITS
    doubtful: dict[int, list[int]] = {}
    # flat: found faster
    (unclear,) = (np.abs(left, out=left) > 0.5 - margin).ravel().nonzero()
    for place in unclear.tolist():
        doubtful.setdefault(place % cells, []).append(place // cells)
    for cell, rows in doubtful.items():
        parts = [drawn.interval(place) for place in range(cell, out.size, cells)]
        unclear_here = [(float(scales[k]), int(places[k, cell]) // cells) for k in rows]
        out[rows, cell] = _round_exactly(unclear_here, parts)
    sign = drawn.sign.reshape(out.shape)
    out ^= sign
    out -= sign


def _added_up(parts: np.ndarray) -> np.ndarray:
    """Return the sums of the first rows, in the fastest of two ways."""
    if len(parts) > parts.shape[1]:
        return parts.cumsum(axis=0)
    sums = parts.copy()
    for before, row in pairwise(sums):
        np.add(row, before, out=row)
    return sums


class _Exponentials(NamedTuple):
    """Standard exponentials E = (high + (low + [0, 1)) / 2**40) / 2**30, and signs.

    Parameters
    ----------
    high, low
        int64 arrays.
    sign
        0 or -1.
    refined
        E where more is known of it, by its place.
    """

    high: np.ndarray
    low: np.ndarray
    sign: np.ndarray
    refined: dict[int, Interval]
    context: Context

    def interval(self, place: int) -> Interval:
        """All that is known of one of them."""
        start = int(self.high[place]) << LOW_BITS | int(self.low[place])
        return self.refined.get(place) or Interval(start, KNOWN_BITS, self.context)


def _exponentials(size: int, context: Context) -> _Exponentials:
    """Draw |Z| and the sign of Z of a Laplace law, so many times."""
    table, most = strip_table(LAPLACE_CURVE), size + size // _SPARE + 1
    strip, place, rejected, refined = try_strips(table, most, context)
    sign = strip.astype(np.int64) >> WORD - 1
    high, low = halves(strip, place)
    high ^= sign  # -[a, a + 1) is [~a, ~a + 1) but for an end
    low ^= sign & _LOW_MASK
    for i, drawn in refined.items():
        sign[i] = -1 if drawn.start < 0 else 0
        size_of_z = Interval(drawn.start ^ int(sign[i]), drawn.bits, context)
        refined[i] = size_of_z.known_to(KNOWN_BITS)
        top = refined[i].start >> refined[i].bits - KNOWN_BITS
        high[i], low[i] = top >> LOW_BITS, top & _LOW_MASK
    return _fill_rejected(_Exponentials(high, low, sign, refined, context), rejected, size)


def _fill_rejected(drawn: _Exponentials, rejected: np.ndarray, size: int) -> _Exponentials:
    """Put spare draws, from place `size` on, where others were rejected; draw what is missing."""
    accepted = np.ones(drawn.high.size - size, bool)
    within = int(rejected.searchsorted(size))
    accepted[rejected[within:] - size] = False
    spare = size + accepted.nonzero()[0][:within]
    filled, again = rejected[: spare.size], rejected[spare.size : within]
    parts = (drawn.high, drawn.low, drawn.sign)
    for part in parts:
        part[filled] = part[spare]
    refined = {i: interval for i, interval in drawn.refined.items() if i < size}
    for i in drawn.refined.keys() - refined.keys():
        refined |= {int(to): drawn.refined[i] for to in filled[spare == i]}
    if again.size:
        more = _exponentials(again.size, drawn.context)
        for part, other in zip(parts, more[:3], strict=True):
            part[again] = other
        refined |= {int(again[i]): interval for i, interval in more.refined.items()}
    high, low, sign = (part[:size] for part in parts)
    return _Exponentials(high, low, sign, refined, drawn.context)


def _places(members: int, cells: int, context: Context) -> np.ndarray:
    """Return, for each coordinate of each cell, the place of its sum: a uniform order per cell."""
    draw = _rank_by_comparing if members <= _FEW else _order_by_sorting
    order = draw(members, cells, context)
    places: np.ndarray = np.multiply(order, cells, dtype=np.int64, order="C")
    places += np.arange(cells)
    return places


def _rank_by_comparing(members: int, cells: int, context: Context) -> np.ndarray:
    """Return the ranks of random words: how many words of the cell are smaller."""
    keys = random_words(members * cells, context, np.uint16).reshape(members, cells)
    ranks, smaller = np.empty((members, cells), np.uint8), np.empty((members, cells), bool)
    for key, rank in zip(keys, ranks, strict=True):
        np.less(keys, key, out=smaller)
        np.add.reduce(smaller.view(np.uint8), axis=0, out=rank)
    # equal words share the smaller rank, and nothing else lowers the sum of the ranks
    tied = np.add.reduce(ranks, axis=0, dtype=np.uint8) != members * (members - 1) // 2
    return _settle_ties(ranks, tied, partial(_rank_by_comparing, context=context))


def _order_by_sorting(members: int, cells: int, context: Context) -> np.ndarray:
    """Return the order of random words that bear the numbers of coordinates, by sorting them."""
    word: type[np.uint32 | np.uint64] = np.uint32 if members < _MANY else np.uint64
    bits = (members - 1).bit_length()
    words = random_words(members * cells, context, word)
    keys = words.reshape(cells, members) >> bits << bits
    keys |= np.arange(members).astype(word)
    keys.sort(axis=1)
    keys = np.ascontiguousarray(keys.T)
    tied = ((keys[1:] ^ keys[:-1]) >> bits == 0).any(axis=0)
    return _settle_ties(keys & (1 << bits) - 1, tied, partial(_order_by_sorting, context=context))


def _settle_ties(
    ranks: np.ndarray, tied: np.ndarray, draw: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """Draw the orders of cells with equal words again."""
    if tied.any():
        ranks[:, tied] = draw(len(ranks), int(tied.sum()))
    return ranks


def _round_exactly(pairs: Sequence[tuple[float, int]], parts: Sequence[Interval]) -> list[int]:
    """Round coordinates of one cell, modulo 2**64, on as many bits of its parts as it takes.

    Each is a scale times the sum of the first parts, those up to a position.
    """
    integers: dict[int, int] = {}
    bits = KNOWN_BITS
    while True:
        parts = [part.known_to(bits) for part in parts]
        sums = list(accumulate(part.start >> part.bits - bits for part in parts))
        for i, (scale, last) in enumerate(pairs):
            if i not in integers:
                total = Interval(sums[last], bits, parts[0].context)
                size = whole_part(scale, total, last + 1, half(scale, bits))
                if size is not None:
                    integers[i] = wrap_integer(size)
        if len(integers) == len(pairs):
            return [integers[i] for i in range(len(pairs))]
        bits += WORD


# of a table of tails, evenly spread
_NODES = 257
# what the largest of so many may miss between them
_BETWEEN = 1.0001
# a level, and members of a group: between them errors are less
_HIGH, _SMALL = 0.93, 10
# tails are 0 long before, and products stay finite
_VAST = 1e100
# of a variance, what the last digits are
_RELATIVE = 1e-14
# of a tail that is added up; SciPy takes 80 ms to import
_FEW_TERMS = 32
# in place of 0
_LEAST_TAIL = 1e-300
# of tails of sums of uniform variables
_TAIL_NODES = 193
# terms of such a tail; more of them take too long
_LONGEST = 20_000
# of a number of terms
_LARGEST_LOG = 50.0
# of fewer, tables know the half-width
_FEWEST_TERMS = 3
# of the largest term, between which the half-width of repeated ones is a line
_QUARTERS = 4
# terms: 121 half-widths, in a tenth of a second
_MOST_REPEATED = 32

_Size = TypeVar("_Size", float, np.ndarray)


def spread(members: _Size) -> _Size:
    """Variance of one of D coordinates at scale 1, c(D) = (D + 1) (D + 2) / 3.

    Examples
    --------
    >>> spread(1), spread(4)
    (2.0, 10.0)
    """
    variance: _Size = (members + 1) * (members + 2) / 3
    return variance


def beyond(x: float | np.ndarray, members: int) -> np.ndarray:
    """Return P(|z| > x) of one coordinate at scale 1, Q(D, x) - x / D Q(D - 1, x).

    That is `exp(-x) sum_(k < D) (1 - k / D) x^k / k!`, which is added up where D is small. A size
    is distributed as a sum of J standard exponentials, J uniform on 1, ..., D.

    Examples
    --------
    >>> float(beyond(3.0, 1).round(6)), float(beyond(3.0, 2).round(6))
    (0.049787, 0.124468)
    """
    x = np.minimum(x, _VAST)
    if members <= _FEW_TERMS:
        term = np.exp(-x)
        total: np.ndarray = np.zeros_like(term)
        for k in range(members):
            total += (1 - k / members) * term
            term = term * x / (k + 1)
        return total
    # slow to import, and not always needed
    from scipy import special

    tail: np.ndarray = np.asarray(special.gammaincc(members, x))
    if members > 1:
        tail = np.maximum(tail - x / members * special.gammaincc(members - 1, x), 0)
    return tail


# plans, their tables and previews ask for the same
@lru_cache(1024)
def box_deviation(scale: float, members: int) -> float:
    """Return the standard deviation of a rounded coordinate, for a scale above 0 and D >= 2.

    It is the root of `sum_k (2 k - 1) P(|z| > k - 1/2)`, k = 1, 2, ... By Poisson summation that is
    `c(D) s^2 + 1/12` plus a sum over m >= 1 of
    `(-1)^m (f(2 pi m) / (pi m)^2 - 2 f'(2 pi m) / (pi m))`, where f is the characteristic function
    of z: the imaginary part of `(1 - i t s)^-D / (D t s)`.
    """
    variance = spread(members) * scale**2
    if not _is_wide(scale, members):
        k = np.arange(1, math.ceil(scale * _farthest(members)) + 2)
        # tails of nearly no noise are 0
        with np.errstate(over="ignore"):
            return math.sqrt(float(np.sum((2 * k - 1) * beyond((k - 0.5) / scale, members))))
    return math.sqrt(variance + 1 / 12)


def _is_wide(scale: float, members: int) -> bool:
    """Whether what rounding adds to the variance is 1/12 to the last digits."""
    t = 2 * math.pi * scale
    size = math.exp(-members / 2 * math.log1p(t * t)) / t
    slope = (size / members + size / math.sqrt(1 + t * t) * t) / t
    beside = 2 * (size / members / math.pi**2 + 2 * scale * slope / math.pi)
    return beside < _RELATIVE * spread(members) * scale**2


def _farthest(members: int) -> float:
    """Scales beyond which all tails together are below 1e-20 or so."""
    return members + 60 + 12 * math.sqrt(members)


@lru_cache(1024)
def _half_widths(members: int, level: float) -> np.ndarray:
    """Half-widths of z_1 + r z_2 at r = 0, ..., 1, rounded up."""
    ratios = np.linspace(0, 1, _NODES)

    def tails(t: np.ndarray) -> np.ndarray:
        return np.concatenate([beyond(t[:1], members), pair_beyond(t[1:], ratios[1:], members)])

    return half_widths.solve_tails(tails, (1 + ratios) * _farthest(members), level)


def sum_half_width(parts: Sequence[float | np.ndarray], members: int, level: float) -> np.ndarray:
    """Return a half-width for `sum_j a_j z_j` over some of D >= 2 coordinates at scale 1.

    It is that of one or two terms, linear between 257 ratios of them: the half-width is convex in
    the ratio, so never below. Given R, a sum of uniform variables is the more peaked the more equal
    its weights are (Proschan 1965). So three terms or more, with a_1 the largest of them and S
    their sum, are less spread than the two `A = max(a_1, S / 2)` and `S - A`; and than as many of
    a_1 as fit in S, with what is left, linear between quarters of a_1.

    Parameters
    ----------
    parts
        The a_j >= 0, of shapes that fit together.
    members
        How many coordinates are drawn together, D.
    level
        Confidence level.

    References
    ----------
    F. Proschan, "Peakedness of distributions of convex combinations", Annals of Mathematical
    Statistics 36(6), 1965.

    Examples
    --------
    >>> [float(sum_half_width(parts, 4, 0.95).round(3)) for parts in ([1.0], [1.0, 1.0])]
    [6.234, 9.247]
    """
    total: np.ndarray = np.add.reduce(np.broadcast_arrays(*parts))
    largest: np.ndarray = np.maximum.reduce(np.broadcast_arrays(*parts))
    of_two = _two_half_width(np.maximum(largest, total / 2), total, members, level)
    terms = min(len(parts), _MOST_REPEATED)
    table = _repeated_half_widths(terms, members, level)
    if not len(table):
        return of_two
    times = np.divide(total, largest, out=np.zeros_like(total), where=largest > 0)
    # a half-width is a norm: no more than in proportion
    more = np.maximum(times / terms, 1.0)
    return np.asarray(np.fmin(of_two, largest * more * np.interp(times, _times(terms), table)))


def _two_half_width(
    largest: np.ndarray, total: np.ndarray, members: int, level: float
) -> np.ndarray:
    """Return the half-width of two terms, of the larger one and their sum."""
    ratio = np.divide(total - largest, largest, out=np.zeros_like(total), where=largest > 0)
    table = _half_widths(members, level)
    width: np.ndarray = largest * np.interp(ratio, np.linspace(0, 1, _NODES), table)
    return width


@lru_cache(1024)
def _repeated_half_widths(terms: int, members: int, level: float) -> np.ndarray:
    """Return half-widths of z_1 + ... + z_k + r z_(k + 1) at k + r in `_times`.

    There are none of fewer than three terms, nor where one of them takes too long.
    """
    widths = []
    for times in _times(terms).tolist():
        full = int(times)
        parts = (1.0,) * full + ((times - full,) if times > full else ())
        if not is_box_quick(parts, level):
            return np.zeros(0)
        widths.append(box_half_width(parts, members, level))
    return np.array(widths)


def _times(terms: int) -> np.ndarray:
    if terms < _FEWEST_TERMS:
        return np.zeros(0)
    return np.arange(2 * _QUARTERS, terms * _QUARTERS + 1) / _QUARTERS


@lru_cache(1024)
def largest_ratio(terms: int, members: int, level: float) -> float:
    """Return the largest half-width, in standard deviations, of so many of D >= 2 coordinates.

    It is the largest of what two terms in their place have, where the largest part is a and the
    others are equal: of all with the same sum of squares, they add up to most.
    """
    largest = np.linspace(0, 1, _NODES)
    others = np.sqrt((terms - 1) * (1 - largest**2))
    total = largest + others
    widths = _two_half_width(np.maximum(largest, total / 2), total, members, level)
    return float(widths.max()) / math.sqrt(spread(members)) * _BETWEEN


def raise_quantile(level: float, members: int) -> float:
    """Return by how much the largest quantile of several groups and of the normal may be short.

    By convolution of two and of three of one or two terms each, the quantile of their sum is at
    most 1.0011 of it for levels from 0.93 on, and below at most 1.0114 for groups of up to ten, at
    0.85, and 1.0352 for any, at 0.86, where the law of a term is nearly uniform.
    """
    if level >= _HIGH:
        return 1.002
    return 1.0125 if members <= _SMALL else 1.04


def pair_beyond(t: np.ndarray, ratio: np.ndarray, members: int) -> np.ndarray:
    """Return P(|z_1 + r z_2| > t) of two of D coordinates at scale 1, for 0 < r <= 1.

    Given R, it is the tail of a trapezoid: with a flat top on |t| < (1 - r) R, and 0 from (1 + r) R
    on.
    """
    # slow to import, and not always needed
    from scipy import special

    def moments(x: np.ndarray) -> list[np.ndarray]:
        """E[R^-k; R > x] for k = 0, 1, 2."""
        # Q(n + 1, x) = Q(n, x) + x^n e^-x / n!
        least, n = special.gammaincc(members - 1, x), members
        with np.errstate(divide="ignore", invalid="ignore"):
            term = np.exp((n - 1) * np.log(x) - x - special.gammaln(n))
        term = np.where(x < _VAST, term, 0.0)
        once = least + term
        return [once + term * x / n, once / n, least / (n * (n - 1))]

    outer = t / (1 + ratio)
    inner = np.divide(t, 1 - ratio, out=np.full(np.shape(ratio), _VAST), where=ratio < 1)
    beyond_inner = moments(inner)
    always, once, twice = map(np.subtract, moments(outer), beyond_inner)
    flat = beyond_inner[0] - t * beyond_inner[1]
    slope = (1 + ratio) ** 2 * always - 2 * (1 + ratio) * t * once + t * t * twice
    return np.asarray(flat + slope / (4 * ratio))


def is_box_quick(parts: tuple[float, ...], level: float) -> bool:
    """Whether `box_half_width` takes no long time: parts are alike, the level not next to 1."""
    return 1 - level >= half_widths.LEAST_MISSED and _terms_of(parts, level)[2] <= _LONGEST


def _terms_of(parts: tuple[float, ...], level: float) -> tuple[np.ndarray, float, int]:
    """Return falling parts of the largest one, how far they lead, and how many terms it takes."""
    a = np.sort(parts)[::-1] / max(parts)
    spared = half_widths.SPARED * (1 - level)
    # E e^(b U) = sinh(b) / b is at most e^(b^2 / 6), as of a normal variable of the same variance
    far = min(float(a.sum()), math.sqrt(2 / 3 * (a @ a) * math.log(2 / spared)))
    return a, far, _cut(2 * far / (2 * math.pi * a), spared)


@lru_cache(1024)
def box_half_width(parts: tuple[float, ...], members: int, level: float) -> float:
    """Return a half-width for `sum_j a_j z_j` over some of D >= 2 coordinates of a box, scale 1.

    Parameters
    ----------
    parts
        The a_j, above 0.
    members
        How many coordinates are drawn together, D.
    level
        Confidence level; for which `is_box_quick` holds.

    Examples
    --------
    >>> round(box_half_width((1.0, 1.0, 1.0), 4, 0.95), 2)
    11.34
    """
    # slow to import, and not always needed
    from scipy import special

    missed, largest = 1 - level, max(parts)
    a, far, last = _terms_of(parts, level)
    spared, period = half_widths.SPARED * missed, 2 * far
    x = far * np.linspace(0, 1, _TAIL_NODES)
    tails = np.minimum(1 - _within(x, a, period, last) + 2 * spared + half_widths.ROUNDING, 1)
    tails[0] = 1.0
    slopes = np.diff(tails) / np.diff(x)
    starts = tails[:-1] - slopes * x[:-1]

    logs = special.gammaln(members + 1)

    # the logarithm of a tail is nearly a line
    def excess(t: float) -> float:
        with np.errstate(all="ignore"):
            ends = t / x
            term = np.exp(members * np.log(ends) - ends - logs)
        below = special.gammainc(members, ends)
        # of members + 1
        below_next = below - np.where(ends < _VAST, term, 0.0)
        always, once = -np.diff(below_next), -np.diff(below) * t / members
        tail = float(starts @ always + slopes @ once + tails[-1] * below_next[-1])
        return math.log(max(tail, _LEAST_TAIL) / missed)

    most = far * _farthest(members)
    return half_widths.solve_sum(excess, most, -math.log(missed)) * largest


def _cut(ratios: np.ndarray, spared: float) -> int:
    """Return M such that `sum_(m > M) 2 / (pi m) prod_j min(1, r_j / m)` is spared, rising r_j."""
    k = np.arange(1, len(ratios) + 1)
    logs = (np.cumsum(np.log(ratios)) + np.log(2 / (math.pi * k * spared))) / k
    return math.ceil(math.exp(min(float(logs.min()), _LARGEST_LOG)))


def _within(x: np.ndarray, a: np.ndarray, period: float, last: int) -> np.ndarray:
    """Return the sum over m <= M for `P(|sum_j a_j U_j| <= x)`."""
    m = np.arange(1, last + 1)
    weights = 2 / (math.pi * m)
    for part in a:
        weights = weights * np.sinc(2 * m * part / period)
    heard = np.abs(weights) > half_widths.ROUNDING / last
    at = 2 * math.pi * m[heard] / period
    sums: np.ndarray = 2 * x / period + np.sin(np.outer(x, at)) @ weights[heard]
    return sums


SHARES_AT = np.linspace(0, 1, 41) ** 2
"""Weights u of a total where half-widths are tabled; they are convex in u, as a norm."""


@lru_cache(64)
def box_shares(
    cells: int, apart: tuple[float, ...], common: tuple[float, ...], members: int, level: float
) -> np.ndarray:
    """Return half-widths for `(1 - u) x_i - u sum_j x_j` of cells of one box, at some u.

    There are none where one of them takes too long.

    Parameters
    ----------
    cells
        Number of cells of the total.
    apart, common
        What the coordinates of each cell add to it, and those that all cells share, at scale 1.
    members
        How many coordinates are drawn together.
    level
        Confidence level.
    """
    widths = []
    for u in SHARES_AT.tolist():
        alone = [abs(1 - 2 * u) * part for part in apart]
        alone += [abs(1 - u - cells * u) * part for part in common]
        beside = [u * part for part in apart for _ in range(cells - 1)]
        parts = sorted(part for part in (*alone, *beside) if part > 0)
        scale = parts[-1]
        relative = tuple(part / scale for part in parts)
        if not is_box_quick(relative, level):
            return np.zeros(0)
        widths.append(box_half_width(relative, members, level) * scale)
    return np.array(widths)


class Box(PureLaw):
    """Noise in a box: vectors of density `exp(-max_k |z_k| / s_k)`, up to a constant, rounded.

    A group of one is the discrete Laplace law, whose density and what follows from it are stated
    here, too. Coordinates of larger groups are uncorrelated, not independent.
    """

    __slots__ = ()
    name = "box"
    title = "box"
    inside = "max"

    def _draw(self, scales: Sequence[float], size: int, context: Context) -> list[np.ndarray]:
        """Draw the noise of a group: all of its coordinates together."""
        return box_noise(scales, size, context)

    def draw_each(self, scales: np.ndarray, context: Context) -> np.ndarray:
        """Draw independent noise of so many scales: each is a group of one."""
        return LAPLACE.draw_each(scales, context)

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return the tail of a group of one."""
        return LAPLACE.at_least(scale, m)

    def quantile(self, level: float) -> float:
        """Return the largest of a Laplace, a normal and a uniform law, between which a sum lies."""
        return max(LAPLACE.quantile(level), math.sqrt(3) * level)

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return the half-width for a sum of noises, some of them drawn together.

        One coordinate: its own half-width, times the loading. Of one group: that of the continuous
        noises, as `sum_half_width` says or, for three and more that are the same for all rows,
        `box_half_width`; plus half of every `|c_b|`, by so much rounding moves the sum. Of several
        groups, that is the larger quantile of a normal and of each group, times the standard
        deviation, a little raised; and the sum of all `|c_b| / 2`.

        Examples
        --------
        >>> scales, together = {"0": 5.0, "1": 7.0}, [("0", "1")]
        >>> BOX.sum_half_width(NoiseSum({"0": 10.0, "1": 14.0}, scales, together), 0.95).round(4)
        np.float64(37.2762)
        """
        together = noise.drawn_together()
        if not together:
            return LAPLACE.sum_half_width(noise, level)
        (group, members), *others = together.items()
        if others:
            return self._of_groups(noise, level, together)
        steps, roundings = self._terms(noise, group, members)
        parts = np.sort([part for scale, step in steps for part in step * scale if part > 0])
        if len(parts) >= _FEWEST_TERMS and np.isfinite(parts).all():
            relative = tuple((parts / parts[-1]).tolist())
            if is_box_quick(relative, level):
                width = box_half_width(relative, members, level) * float(parts[-1])
                rounding = sum(float(step.sum()) for _, step in steps) / 2
                return width + rounding + half_widths.rounded_width(roundings, level)
        beside = any(np.any(part) for block, part in noise.loadings.items() if block not in group)
        if beside or noise.largest is not None:
            return self._of_groups(noise, level, together)
        return self._of_group(noise, level, group, members)

    def sum_excess(
        self, distance: np.ndarray, noise: NoiseSum, level: float, rows: int = 0
    ) -> np.ndarray:
        """Compare a distance with the half-width: of shares of a box over all cells, by a table."""
        together = noise.drawn_together()
        if not together:
            return LAPLACE.sum_excess(distance, noise, level, rows)
        (group, members), *others = together.items()
        shares = noise.shares
        if shares is not None and not others:
            over_rows = len(group) > len(set(group)) and set(shares.loadings) <= set(group)
            if over_rows and len(np.unique(shares.cells)) == 1:
                widths = self._widths_of_shares(noise, shares, level, members)
                if len(widths):
                    return np.where(distance <= widths, -1.0, 1.0)
        return np.asarray(distance - self.sum_half_width(noise, level))

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return the discrete Laplace law for one noise on its own, and the normal law for more.

        One of several that are drawn together is not normal: its kurtosis is 4.5 for D = 3 and 3
        for D = 10.
        """
        return LAPLACE if terms == members == 1 else GAUSSIAN

    def _of_group(
        self, noise: NoiseSum, level: float, group: Sequence[str], members: int
    ) -> float | np.ndarray:
        """Half-width for a sum of noises of one group of two or more, one of each block."""
        group = list(dict.fromkeys(group))
        steps = noise.steps(lambda _, scale: self.deviation_among(scale, members))
        if len(group) == 1:
            return steps[group[0]] * self.half_width(noise.scales[group[0]], level, members)
        parts = [steps[block] * noise.scales[block] for block in group]
        rounding = sum((steps[block] for block in group), start=np.zeros(()))
        return sum_half_width(parts, members, level) + rounding / 2

    def _terms(
        self, noise: NoiseSum, group: Sequence[str], members: int
    ) -> tuple[list[tuple[float, np.ndarray]], np.ndarray]:
        """Return scales and steps of noises of one group that are the same for all rows.

        None, where they are not known one by one, or others are among them; and roundings beside.
        """
        terms, roundings = noise.single_terms()
        if not all(block in group for block in terms):
            return [], roundings
        over_rows = len(set(group)) < len(group)
        if not over_rows and len({at for part in terms.values() for at in part.nonzero()[0]}) > 1:
            return [], roundings  # each row has noise of its own
        scales = {block: noise.scales[block] for block in terms}
        deviations = {
            block: self.deviation_among(scale, members) for block, scale in scales.items()
        }
        steps = [(scales[block], np.abs(part) / deviations[block]) for block, part in terms.items()]
        return steps, roundings

    def _widths_of_shares(
        self, noise: NoiseSum, shares: Shares, level: float, members: int
    ) -> np.ndarray:
        """Return half-widths of shares of a total, if one box is over all cells; or none."""
        cells = int(shares.cells[0])
        steps = {
            block: loading / self.deviation_among(noise.scales[block], members)
            for block, loading in shares.loadings.items()
        }
        sizes = {block: step * noise.scales[block] for block, step in steps.items()}
        apart = tuple(size for block, size in sizes.items() if block not in shares.common)
        common = tuple(size for block, size in sizes.items() if block in shares.common)
        table = box_shares(cells, apart, common, members, level)
        if not len(table):
            return table
        a, b = shares.a, shares.b
        width = (a + b) * np.interp(b / (a + b), SHARES_AT, table)
        for block, step in steps.items():
            alone = np.abs(a - cells * b)
            parts = np.abs(a - b) + (cells - 1) * b
            width = width + step / 2 * (alone if block in shares.common else parts)
        rounded = [part for block, part in noise.loadings.items() if block not in steps]
        widths: np.ndarray = width + GAUSSIAN.quantile(level) * norm(rounded)
        return widths

    def _of_groups(
        self, noise: NoiseSum, level: float, together: Mapping[tuple[str, ...], int]
    ) -> float | np.ndarray:
        """Half-width for a sum of noises of several groups, or of several cells."""
        members_of = {block: members for group, members in together.items() for block in group}
        lonely = any(
            noise.scales.get(block, 0.0) > 0 for block in noise.loadings.keys() - members_of.keys()
        )

        def deviation_of(block: str, scale: float) -> float:
            return self.deviation_among(scale, members_of.get(block, 1))

        steps = noise.steps(deviation_of)
        factor = np.asarray(LAPLACE.quantile(level) if lonely else GAUSSIAN.quantile(level))
        for group, members in together.items():
            factor = np.maximum(factor, self._ratio_of(noise, group, members, level))
        factor = factor * raise_quantile(level, max(members_of.values()))
        width: np.ndarray = factor * noise.deviation + sum(steps.values()) / 2
        return width

    def _ratio_of(
        self, noise: NoiseSum, group: tuple[str, ...], members: int, level: float
    ) -> float | np.ndarray:
        """Half-width of what a group adds, in its standard deviations, or the largest there is."""
        if noise.largest is not None or len(set(group)) < len(group):
            return largest_ratio(len(group), members, level)
        parts = []
        for block in group:
            scale = noise.scales[block]
            step = np.abs(noise.loadings[block]) / self.deviation_among(scale, members)
            parts.append(step * scale)
        width = sum_half_width(parts, members, level)
        deviation = norm([noise.loadings[block] for block in group])
        ratio: np.ndarray = np.divide(
            width, deviation, out=np.zeros_like(width), where=deviation > 0
        )
        return ratio

    def deviation_among(self, scale: float, members: int) -> float:
        """Return the root of (D + 1) (D + 2) s^2 / 3 and rounding, for one of D coordinates."""
        if members <= 1 or not scale:
            return self.standard_deviation(scale)
        return box_deviation(scale, members)

    def _deviation(self, scale: float) -> float:
        """Return that of a group of one."""
        return LAPLACE._deviation(scale)

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        if members <= 1:
            return LAPLACE._beyond(scale, a)
        return float(beyond((a + 0.5) / scale, members))


BOX = Box()
"""Noise in a box, of groups of coordinates."""
