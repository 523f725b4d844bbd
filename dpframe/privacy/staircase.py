"""Staircase noise: the least variance for an integer that a neighbor moves by up to D.

With a ratio b in (0, 1) and a width r, 1 <= r <= D, the chance of an integer i is

    P(i) = a b^k      for |i| in [k D, k D + r),
    P(i) = a b^(k+1)  for |i| in [k D + r, (k + 1) D),        k = 0, 1, ...

Moving by up to D crosses at most one stair, so noise of b >= exp(-epsilon) is epsilon-DP for it,
and j epsilon for up to j D. Moving by less than D may cost as much. D = 1 is the discrete Laplace.
With `w = r + b (D - r)`, all chances add up to 1 at `1 / a = 2 w / (1 - b) - 1`. The variance is
least near `r = D ((b (1 + b) / 2)^(1/3) - b) / (1 - b)`, which is rounded up.

The scale of the noise is `D + b`: its whole part is D, and its fraction is b. A float holds both,
and b is exact: what is drawn is what is promised.

References
----------
Q. Geng and P. Viswanath, "The optimal noise-adding mechanism in differential privacy", IEEE
Transactions on Information Theory 62(2), 2016 (Theorem 7 has r for the least variance).
"""

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpframe.context import Context
from dpframe.errors import CalibrationError
from dpframe.privacy.noise import random_words
from dpframe.privacy.noise_floats import WORD, check_size

MOST_MOVED = 2**40
"""Largest D: beyond, a float has too few digits left for b."""

_DIGITS = 60
# whatever the caller has set
_EXACT = decimal.Context(
    _DIGITS, decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[]
)
_SLACK = Decimal(f"1e{10 - _DIGITS}")  # of exponentials and logarithms, relative and absolute
_FARTHEST = 2.0**62
_NOT_LESS = 1 + 1e-13  # with D = 1 noise is not to look better than that of Laplace
_LEAST_EPSILON = 1 / 64  # draws take 1 / epsilon rounds; Laplace noise does as well


class Stairs(NamedTuple):
    """The law of a scale: `ratio` is `numerator / 2**bits`."""

    period: int
    width: int
    numerator: int
    bits: int

    @property
    def ratio(self) -> float:
        """b, without rounding."""
        return math.ldexp(self.numerator, -self.bits)

    @property
    def first(self) -> float:
        """w, the chances of the integers from 0 to D - 1, in those of 0."""
        return self.width + self.ratio * (self.period - self.width)

    @property
    def peak(self) -> float:
        """a, the chance of 0."""
        left = 1 - self.ratio
        return left / (2 * self.first - left)


def scale_for(moved: int, wide: float) -> float:
    """Return the scale of noise that costs no more than D / wide to move by up to D.

    It is the least one: `D + b` with `b >= exp(-D / wide)`.

    Parameters
    ----------
    moved
        D, at least 1.
    wide
        Scale of Laplace noise with the same cost.

    Raises
    ------
    CalibrationError
        If the cost is below 1 / 64.

    Examples
    --------
    >>> scale_for(20, 20 / 3)
    20.049787068367866
    """
    if moved < _LEAST_EPSILON * wide:
        text = (
            f"staircase noise needs an epsilon of {_LEAST_EPSILON} or more for each number, after "
            "caps. Spend more, or take Laplace noise, which is as good there."
        )
        raise CalibrationError(text, parameter="epsilon")
    unit = math.ulp(float(moved))
    with decimal.localcontext(_EXACT):
        least = (-Decimal(moved) / Decimal(wide)).exp() * (1 + _SLACK)
        return moved + max(1, math.ceil(least / Decimal(unit))) * unit  # e^-epsilon may be 0


@lru_cache(1024)
def stairs_of(scale: float) -> Stairs:
    """Return the law that a scale stands for.

    Raises
    ------
    CalibrationError
        If there is none: the scale is below 1, above 2**40 or a whole number.
    """
    numerator, denominator = float(scale).as_integer_ratio()
    period, fraction = divmod(numerator, denominator)
    if not (fraction and 1 <= period <= MOST_MOVED):
        rule = "of staircase noise is D + b, with a whole D from 1 to 2**40 and 0 < b < 1"
        raise CalibrationError.about("scale", rule, scale)
    b = fraction / denominator
    part = (math.cbrt(b * (1 + b) / 2) - b) / (1 - b)
    width = min(max(math.ceil(part * period), 1), period)
    return Stairs(period, width, fraction, denominator.bit_length() - 1)


def cost(scale: float, moved: int) -> Fraction:
    """Return what it costs to move by so much, at most 1e-50 above `ceil(|moved| / D) log(1 / b)`.

    Examples
    --------
    >>> [round(float(cost(scale_for(20, 20 / 3), moved)), 9) for moved in (0, 1, 20, 21)]
    [0.0, 3.0, 3.0, 6.0]
    """
    stairs = stairs_of(scale)
    return -(-abs(moved) // stairs.period) * _logarithm(stairs.numerator, stairs.bits)


@lru_cache(1024)
def _logarithm(numerator: int, bits: int) -> Fraction:
    """Return `log(2**bits / numerator)`, rounded up."""
    with decimal.localcontext(_EXACT):
        return Fraction((Decimal(2**bits) / Decimal(numerator)).ln() + _SLACK)


def deviation(scale: float) -> float:
    """Return the standard deviation.

    With `w_p` the sum of `i^p` times the chance of i, in that of 0, over i from 0 to D - 1, the
    variance is `2 a (D^2 w b (1 + b) / (1 - b)^3 + 2 D w_1 b / (1 - b)^2 + w_2 / (1 - b))`.
    """
    stairs = stairs_of(scale)
    period, width, b = stairs.period, stairs.width, stairs.ratio
    left = 1 - b
    ones = [n * (n - 1) // 2 for n in (width, period)]
    squares = [n * (n - 1) * (2 * n - 1) // 6 for n in (width, period)]
    first, second = (below + b * (all_ - below) for below, all_ in (ones, squares))
    sums = period * stairs.first * b * (1 + b) / left**3 * period
    sums += 2 * period * first * b / left**2 + second / left
    return math.sqrt(2 * stairs.peak * sums) * _NOT_LESS


def at_least(scale: float, m: np.ndarray | int) -> np.ndarray:
    """Return P(Y >= m)."""
    stairs = stairs_of(scale)
    places = np.asarray(np.clip(m, -_FARTHEST, _FARTHEST), np.int64)  # may be infinite
    above = places >= 1
    k, j = np.divmod(np.where(above, places, 1 - places), stairs.period)
    rest = np.maximum(stairs.width - j, 0) + stairs.ratio * np.minimum(
        stairs.period - j, stairs.period - stairs.width
    )
    rest = rest + stairs.first * stairs.ratio / (1 - stairs.ratio)
    tail = stairs.peak * rest * np.exp(k * math.log(stairs.ratio))
    return np.asarray(np.where(above, tail, 1 - tail))


def beyond(scale: float, a: int) -> float:
    """Return P(|Y| > a) for one whole a >= 0: half-widths ask for it dozens of times.

    Examples
    --------
    >>> scale = scale_for(20, 20 / 3)
    >>> bool(np.isclose(beyond(scale, 24), 2 * at_least(scale, 25), rtol=1e-14))
    True
    """
    stairs = stairs_of(scale)
    b = stairs.ratio
    k, j = divmod(a + 1, stairs.period)
    rest = max(stairs.width - j, 0) + b * min(stairs.period - j, stairs.period - stairs.width)
    rest += stairs.first * b / (1 - b)
    return 2 * stairs.peak * rest * math.exp(k * math.log(b))


def characteristic(scale: float, t: np.ndarray) -> np.ndarray:
    """Return `E cos(t Y)`, in closed form: sums of powers of `z = exp(i t)` are geometric."""
    stairs = stairs_of(scale)
    period, width, b = stairs.period, stairs.width, stairs.ratio
    turn = t - 2 * math.pi * np.rint(t / (2 * math.pi))  # of whole turns nothing is left
    near = np.exp(0.5j * (width - 1) * turn) * _ratio_of_sines(turn, width)
    far = np.exp(0.5j * (period + width - 1) * turn) * _ratio_of_sines(turn, period - width)
    upward = (near + b * far) / (1 - b * np.exp(1j * period * turn))
    return np.asarray(stairs.peak * (2 * upward.real - 1))


def _ratio_of_sines(turn: np.ndarray, n: int) -> np.ndarray:
    """Return `sin(n t / 2) / sin(t / 2)`, n at 0."""
    return np.asarray(n * np.sinc(n / (2 * math.pi) * turn) / np.sinc(turn / (2 * math.pi)))


def largest_tilt(scale: float) -> float:
    """Return `log(1 / b) / D`."""
    stairs = stairs_of(scale)
    return -math.log(stairs.ratio) / stairs.period


def log_moment(scale: float, tilt: np.ndarray) -> np.ndarray:
    """Return `log E exp(h Y)`, for tilts h of size below `log(1 / b) / D`."""
    stairs = stairs_of(scale)
    sides = [_upward(stairs, sign * np.asarray(tilt)) for sign in (1, -1)]
    return np.asarray(np.log(stairs.peak * (sides[0] + sides[1] - 1)))


def _upward(stairs: Stairs, tilt: np.ndarray) -> np.ndarray:
    """Return the sum of `exp(h i)` times the chance of i, in that of 0, over i >= 0."""
    period, width, b = stairs.period, stairs.width, stairs.ratio
    ends = np.expm1(width * tilt), np.expm1(period * tilt)
    step = np.where(tilt == 0, 1.0, np.expm1(tilt))
    near = np.where(tilt == 0, width, ends[0] / step)
    all_ = np.where(tilt == 0, period, ends[1] / step)
    return np.asarray((near + b * (all_ - near)) / (1 - b * np.exp(period * tilt)))


def staircase_noise(scale: float, size: int, context: Context) -> np.ndarray:
    """Draw independent integers of a staircase law, exactly.

    One uniform integer below `2**bits w` tells the place in a period, and uniform bits, compared
    with those of b, how many periods there are; 0 with a minus is drawn again. So every draw has
    its chance to the letter. What does not fit in an int64 wraps modulo 2**64.

    Parameters
    ----------
    scale
        `D + b`; 0 gives 0.
    size
        Number of draws.
    context
        Where random bits come from.

    Raises
    ------
    CalibrationError
        If there is no such law, or the size is negative.
    """
    check_size(size)
    out = np.zeros(size, np.int64)
    if scale:
        stairs, left = stairs_of(scale), np.arange(size)
        while left.size:
            drawn, kept = _try_draws(stairs, left.size, context)
            out[left[kept]] = drawn[kept]
            left = left[~kept]
    return out


def _try_draws(stairs: Stairs, size: int, context: Context) -> tuple[np.ndarray, np.ndarray]:
    """Draw so many times; say which draws are kept."""
    upper = stairs.width << stairs.bits
    total = upper + (stairs.period - stairs.width) * stairs.numerator  # below 2**53
    words = random_words(size, context)
    point = words >> np.uint64(WORD - total.bit_length())
    lower = np.uint64(stairs.width) + (point - np.uint64(upper)) // np.uint64(stairs.numerator)
    place = np.where(point < upper, point >> np.uint64(stairs.bits), lower).astype(np.int64)
    drawn = place + stairs.period * _periods(stairs, size, context)
    minus = (words & np.uint64(1)).astype(bool)  # a bit that tells nothing of the place
    kept = (point < total) & ~(minus & (drawn == 0))
    return np.where(minus, -drawn, drawn), kept


def _periods(stairs: Stairs, size: int, context: Context) -> np.ndarray:
    """Draw numbers k of the law `(1 - b) b^k`."""
    periods, going = np.zeros(size, np.int64), np.arange(size)
    while going.size:
        words = random_words(going.size, context) >> np.uint64(WORD - stairs.bits)
        going = going[words < stairs.numerator]
        periods[going] += 1
    return periods
