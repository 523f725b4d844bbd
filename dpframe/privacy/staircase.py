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

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from dpframe.context import Context
from dpframe.errors import CalibrationError
from dpframe.privacy import half_widths
from dpframe.privacy.gaussian import GAUSSIAN
from dpframe.privacy.half_widths import Noises, ShareSteps, is_share_quick
from dpframe.privacy.laplace import LAPLACE
from dpframe.privacy.law import IntegerLaw, Law
from dpframe.privacy.noise import WORD, check_scale, check_size, exact_decimals, random_words
from dpframe.privacy.noise_sum import NoiseSum, Steps

MOST_MOVED = 2**40
"""Largest D: beyond, a float has too few digits left for b."""

# of exponentials and logarithms that decide on scales and costs
_DIGITS = 60
# of exponentials and logarithms, relative and absolute
_SLACK = Decimal(f"1e{10 - _DIGITS}")
# steps; integers of 64 bits hold them
_FARTHEST = 2.0**62
# with D = 1 noise is not to look better than that of Laplace
_NOT_LESS = 1 + 1e-13
# draws take 1 / epsilon rounds; Laplace noise does as well
_LEAST_EPSILON = 1 / 64


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
    with exact_decimals(_DIGITS):
        least = (-Decimal(moved) / Decimal(wide)).exp() * (1 + _SLACK)
        # e^-epsilon may be 0
        return moved + max(1, math.ceil(least / Decimal(unit))) * unit


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


@lru_cache(1024)
def _logarithm(numerator: int, bits: int) -> Fraction:
    """Return `log(2**bits / numerator)`, rounded up."""
    with exact_decimals(_DIGITS):
        return Fraction((Decimal(2**bits) / Decimal(numerator)).ln() + _SLACK)


def _ratio_of_sines(turn: np.ndarray, n: int) -> np.ndarray:
    """Return `sin(n t / 2) / sin(t / 2)`, n at 0."""
    return np.asarray(n * np.sinc(n / (2 * math.pi) * turn) / np.sinc(turn / (2 * math.pi)))


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
    # below 2**53
    total = upper + (stairs.period - stairs.width) * stairs.numerator
    words = random_words(size, context)
    point = words >> np.uint64(WORD - total.bit_length())
    lower = np.uint64(stairs.width) + (point - np.uint64(upper)) // np.uint64(stairs.numerator)
    place = np.where(point < upper, point >> np.uint64(stairs.bits), lower).astype(np.int64)
    drawn = place + stairs.period * _periods(stairs, size, context)
    # a bit that tells nothing of the place
    minus = (words & np.uint64(1)).astype(bool)
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


_NODES = 32  # ratios of two noises whose half-widths are found
_NO_MORE = 1e-12  # what rounding adds to a ratio
_FEW_ROWS = 100  # in which they are found by tails


class Staircase(IntegerLaw):
    """Staircase noise: its scale is `D + b`.

    What is stated of a density is that of the Laplace law, which very wide noise is next to.
    """

    __slots__ = ()
    name = "staircase"
    title = "staircase"
    shape = "stairs"

    def _draw(self, scales: Sequence[float], size: int, context: Context) -> list[np.ndarray]:
        """Draw each coordinate on its own."""
        checked = (float(check_scale(scale)) for scale in scales)
        return [staircase_noise(scale, size, context) for scale in checked]

    def draw_each(self, scales: np.ndarray, context: Context) -> np.ndarray:
        """Draw independent noise of so many scales."""
        out = np.zeros(len(scales), np.int64)
        for scale in np.unique(check_scale(scales)).tolist():
            these = np.flatnonzero(scales == scale)
            out[these] = staircase_noise(scale, these.size, context)
        return out

    def loss(self, moved: int, scale: float) -> Fraction:
        """Return `ceil(|moved| / D) log(1 / b)`, at most 1e-50 above.

        Examples
        --------
        >>> scale = scale_for(20, 20 / 3)
        >>> [round(float(STAIRCASE.loss(moved, scale)), 9) for moved in (0, 1, 20, 21)]
        [0.0, 3.0, 3.0, 6.0]
        """
        stairs = stairs_of(scale)
        return -(-abs(moved) // stairs.period) * _logarithm(stairs.numerator, stairs.bits)

    def settle(self, wide: float, reach: float) -> float:
        """Return `D + b` of D, the reach, and the least b >= exp(-D / wide)."""
        return scale_for(int(reach), wide) if wide else 0.0

    def knows(self, scale: float) -> bool:
        """Tell whether a scale is `D + b`."""
        try:
            return bool(stairs_of(scale))
        except CalibrationError:
            return False

    @property
    def limit(self) -> Law:
        """The Laplace law."""
        return LAPLACE

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return P(Y >= m)."""
        stairs = stairs_of(scale)
        # may be infinite
        places = np.asarray(np.clip(m, -_FARTHEST, _FARTHEST), np.int64)
        above = places >= 1
        k, j = np.divmod(np.where(above, places, 1 - places), stairs.period)
        above_place = np.maximum(stairs.width - j, 0) + stairs.ratio * np.minimum(
            stairs.period - j, stairs.period - stairs.width
        )
        above_place = above_place + stairs.first * stairs.ratio / (1 - stairs.ratio)
        tail = stairs.peak * above_place * np.exp(k * math.log(stairs.ratio))
        return np.asarray(np.where(above, tail, 1 - tail))

    def characteristic(self, scale: float, t: np.ndarray) -> np.ndarray:
        """Return `E cos(t Y)`, in closed form: sums of powers of `z = exp(i t)` are geometric."""
        stairs = stairs_of(scale)
        period, width, b = stairs.period, stairs.width, stairs.ratio
        # of whole turns nothing is left
        turn = t - 2 * math.pi * np.rint(t / (2 * math.pi))
        near = np.exp(0.5j * (width - 1) * turn) * _ratio_of_sines(turn, width)
        far = np.exp(0.5j * (period + width - 1) * turn) * _ratio_of_sines(turn, period - width)
        upward = (near + b * far) / (1 - b * np.exp(1j * period * turn))
        return np.asarray(stairs.peak * (2 * upward.real - 1))

    def log_moment(self, scale: float, tilt: np.ndarray) -> np.ndarray:
        """Return `log E exp(h Y)`, for tilts h of size below `log(1 / b) / D`."""
        stairs = stairs_of(scale)
        sides = [_upward(stairs, sign * np.asarray(tilt)) for sign in (1, -1)]
        return np.asarray(np.log(stairs.peak * (sides[0] + sides[1] - 1)))

    def largest_tilt(self, scale: float) -> float:
        """Return `log(1 / b) / D`, where moments end."""
        stairs = stairs_of(scale)
        return -math.log(stairs.ratio) / stairs.period

    def quantile(self, level: float) -> float:
        """Return what is enough for every sum of symmetric noises with one peak.

        Of deviation 1, one is beyond t at most `4 / (9 t^2)` of the time, and where that is above a
        third, `1 - t / sqrt(3)` (Gauss 1823).
        """
        missed = 1 - level
        return 2 / (3 * math.sqrt(missed)) if missed <= 1 / 3 else math.sqrt(3) * level

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return the half-width for a sum of staircase noises.

        It is that of the exact law where the noises are known one by one, see `half_widths`, or
        where it is of a single one. Of two that differ from row to row, and of a share of a total,
        it is that of the next larger ratio of 32, plus all steps: wider noise is never less spread
        if it has one peak, as noises have after half a step of rounding. For others it is
        `quantile` deviations, and half of all steps.

        Examples
        --------
        >>> scale = STAIRCASE.settle(20 / 3, 20)
        >>> noise = NoiseSum({"0": STAIRCASE.standard_deviation(scale)}, {"0": scale})
        >>> STAIRCASE.half_width(scale, 0.95), STAIRCASE.sum_half_width(noise, 0.95)
        (20, 20.0)
        """
        match half_widths.form_of(noise, level, self, 0):
            case half_widths.KnownNoises(width):
                return width
            case half_widths.TwoNoises(steps, scales) if 1 - level >= half_widths.LEAST_MISSED:
                return self._of_two_kinds(steps, [*map(Noises, scales)], level)
            case half_widths.TwoNoises() | half_widths.Others():
                return self._of_others(noise, level)

    def _of_others(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Half-width where the law of the sum is not known, or takes too long."""
        steps = noise.steps(lambda _, scale: self.standard_deviation(scale))
        if noise.largest is None and len(steps) == len(noise.loadings) == 1:
            ((block, step),) = steps.items()
            return step * self.half_width(noise.scales[block], level)
        width: np.ndarray = self.quantile(level) * noise.deviation + sum(steps.values()) / 2
        return width

    def sum_excess(
        self, distance: np.ndarray, noise: NoiseSum, level: float, rows: int = 0
    ) -> np.ndarray:
        """Compare a distance with the half-width: in few rows, of two noises by their tails."""
        if 1 - level >= half_widths.LEAST_MISSED:
            shares = ShareSteps.of(noise, self)
            holds = partial(self._holds, level=level)
            if shares is not None:
                return np.where(shares.hold(distance, holds), -1.0, 1.0)
            pair = noise.pair(self.standard_deviation)
            if pair is not None and (rows or np.size(distance)) <= _FEW_ROWS:
                (first, second), (scale, its) = pair
                both = np.abs(first), np.abs(second)
                return np.where(holds(distance, both, scale, Noises(its)), -1.0, 1.0)
        return np.asarray(distance - self.sum_half_width(noise, level))

    def _holds(
        self, distance: np.ndarray, steps: Steps, scale: float, others: Noises, level: float
    ) -> np.ndarray:
        """Tell where noise of a scale and others may lead that far, by tails or a half-width."""
        if is_share_quick(others, np.size(distance), level, self):
            return half_widths.share_holds(distance, steps, scale, others, level, law=self)
        return np.asarray(distance <= self._of_two_kinds(steps, [Noises(scale), others], level))

    def _of_two_kinds(self, steps: Steps, noises: Sequence[Noises], level: float) -> np.ndarray:
        """Half-width for noises of two kinds, of steps that differ from row to row."""
        x, y = np.broadcast_arrays(*steps)
        units = [self.standard_deviation(s) * math.sqrt(number) for s, number in noises]
        first = x * units[0] >= y * units[1]
        large, small = np.where(first, x, y), np.where(first, y, x)
        ratio = np.divide(small, large, out=np.zeros(large.shape), where=large > 0)
        ratio *= np.where(first, units[1], units[0]) / np.where(first, units[0], units[1])
        node = np.ceil(ratio * _NODES * (1 - _NO_MORE)).clip(0, _NODES).astype(np.int64)
        width = np.zeros(large.shape)
        for mine, a, b in ((first, 0, 1), (~first, 1, 0)):
            numbers = [noises[a].number, noises[b].number]
            scales = np.repeat([noises[a].scale, noises[b].scale], numbers)
            for at in np.unique(node[mine]).tolist():
                parts = np.repeat([1.0, at / _NODES * units[a] / (units[b] or 1.0)], numbers)
                wide = half_widths.Terms.of(parts, scales).half_width(level, self)
                these = mine & (node == at)
                width[these] = (wide + parts.sum()) * large[these]
        return width

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return the Laplace law for one noise, and the normal law for more."""
        return LAPLACE if terms == 1 else GAUSSIAN

    def _deviation(self, scale: float) -> float:
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

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        """Return P(|Y| > a) for one whole a >= 0: half-widths ask for it dozens of times.

        Examples
        --------
        >>> scale = scale_for(20, 20 / 3)
        >>> tails = STAIRCASE._beyond(scale, 24), 2 * STAIRCASE.at_least(scale, 25)
        >>> bool(np.isclose(*tails, rtol=1e-14))
        True
        """
        stairs = stairs_of(scale)
        b = stairs.ratio
        k, j = divmod(a + 1, stairs.period)
        beyond = max(stairs.width - j, 0) + b * min(stairs.period - j, stairs.period - stairs.width)
        beyond += stairs.first * b / (1 - b)
        return 2 * stairs.peak * beyond * math.exp(k * math.log(b))


STAIRCASE = Staircase()
"""Staircase noise."""
