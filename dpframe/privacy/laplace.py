"""Laplace noise: its discrete law, sums of a few noises, and what it takes to spend a rho.

The discrete Laplace has `P(k) = (1 - q) / (1 + q) q^|k|`, `q = exp(-1 / scale)`.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations
from types import EllipsisType

import numpy as np

from dpframe.privacy import half_widths
from dpframe.privacy.amounts import rho_of_laplace, rho_of_pure
from dpframe.privacy.gaussian import GAUSSIAN
from dpframe.privacy.half_widths import Noises, Tails
from dpframe.privacy.law import IntegerLaw, Law
from dpframe.privacy.noise import Curve, exact_decimals
from dpframe.privacy.noise_sum import NoiseSum, Steps, norm

_ROOT2 = math.sqrt(2)
# noises whose law is summed up in every row, and for which bounds are near
_FEW = 4
# a scale, up to which integers of two noises are added up one by one
_WIDEST_ADDED = 12.0
# rows times the scale, up to which they are
_MOST_ADDED = 1000.0
# less is lost in differences of floats
_LEAST_MISSED = 1e-6
# stands for a scale of 0
_NARROW = 1e-12
# of the width, up to which an integer is small: sums over more of them lose digits
_FLUID = 1e-9
# of two scales, whose ends are limits
_RATIOS = (1e-8, 1 - 1e-8)
# of a tail, so that nothing is left
_NARROWEST = 60 * _NARROW
# beyond it, exponentials leave the range of floats
_FARTHEST = 700.0
# what differences of products of floats may lose
_LOST = 2e-9
# scales that are nearer are taken for larger ones: products stay below 1e7
_APART = 1.002
# relative; what is found moves to the private side by it
_MARGIN = 2.0**-40
# of Newton; fewer than ten are needed
_MAX_STEPS = 60
# quadratic convergence: the step after one this small is lost in rounding
_CONVERGED = 1e-12


@lru_cache(1000)
def _laplace_offset(scale: float, bits: int) -> tuple[int, int]:
    """Bracket `scale log(2 / (1 + exp(-1 / scale)))`, which makes the discrete Laplace law.

    `decimal` rounds each of six steps: the logarithm is off by less than 40 units of the last
    digit. The scale is at most 2**60, so their product is known to 10**-10 / 2**bits.
    """
    with exact_decimals(bits // 3 + 32):
        exact = Decimal(scale)
        product = -exact * ((1 + (-1 / exact).exp()) / 2).ln()
    low = math.floor(Fraction(product) * 2**bits)
    return max(0, low - 1), low + 2


def _laplace_pull(scales: np.ndarray) -> np.ndarray:
    """Return 1/2 minus the offset, in floats."""
    return 0.5 + scales * np.log1p(np.expm1(-1 / scales) / 2)


LAPLACE_CURVE = Curve(peak=496, reach=12, energy=abs, offset=_laplace_offset, pull=_laplace_pull)
"""Of the discrete Laplace."""


class Laplace(IntegerLaw):
    """The discrete Laplace law."""

    __slots__ = ()
    name = "laplace"
    title = "Laplace"
    curve = LAPLACE_CURVE

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return `q^m / (1 + q)` for m >= 1, and `1 - q^(1 - m) / (1 + q)` below."""
        above = np.greater_equal(m, 1)
        tail = np.exp(np.where(above, np.negative(m), np.subtract(m, 1)) / scale)
        tail /= 1 + math.exp(-1 / scale)
        return np.asarray(np.where(above, tail, 1 - tail))

    def characteristic(self, scale: float, t: np.ndarray) -> np.ndarray:
        """Return `1 / (1 + (sin(t / 2) / sinh(h))^2)`, with `h = 1 / (2 scale)`."""
        return np.asarray(1 / (1 + np.square(np.sin(t / 2) * _over_sinh(1 / (2 * scale)))))

    def log_moment(self, scale: float, tilt: np.ndarray) -> np.ndarray:
        """Return `-log(1 - (sinh(t / 2) / sinh(h))^2)`, without overflow."""
        half, tilts = 1 / (2 * scale), tilt / 2
        ratio = np.exp(tilts - half) * np.expm1(-2 * tilts) / math.expm1(-2 * half)
        return np.asarray(-np.log1p(-(ratio**2)))

    def largest_tilt(self, scale: float) -> float:
        """Return the inverse of the scale."""
        return 1 / scale

    def quantile(self, level: float) -> float:
        """Return the larger quantile of a Laplace and of a normal, between which a sum lies."""
        return max(GAUSSIAN.quantile(level), -math.log1p(-level) / _ROOT2)

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return the half-width for a sum of discrete Laplace noises of scales s_b.

        It is that of the exact law where the noises are known one by one, see `half_widths`; for
        two, three and four of different blocks, bounds are near. Else, a continuous Laplace noise
        of the same scale is Y_b plus independent noise of size below 1, so the half-width is that
        of `sum_b c_b s_b Z_b`, plus half of the largest `|c_b|`: by so much the sum moves with one
        integer. For two noises, `integer_pair_half_width` takes the integers of the coarser one as
        they are.

        Examples
        --------
        >>> noise = NoiseSum({"0": LAPLACE.standard_deviation(1)}, {"0": 1})
        >>> LAPLACE.sum_half_width(noise, 0.95)
        3.0
        """
        match half_widths.form_of(noise, level, self, _FEW):
            case half_widths.KnownNoises(width):
                return width
            case half_widths.TwoNoises(steps, scales):
                return integer_pair_half_width(steps, scales, level)
            case half_widths.Others():
                rounding = half_widths.half_step(noise, self)
                wide: np.ndarray = rounding + self._continuous_half_width(noise, level)
                return wide

    def sum_excess(
        self, distance: np.ndarray, noise: NoiseSum, level: float, rows: int = 0
    ) -> np.ndarray:
        """Compare a distance with the half-width: of a few noises, by their tails alone.

        In few rows, all integers of two noises of one scale are added up.
        """
        holds = partial(half_widths.share_holds, level=level, law=self)
        shares = half_widths.ShareSteps.of(noise, self)
        if shares is not None and shares.are_quick(level, self):
            return np.where(shares.hold(distance, holds), -1.0, 1.0)
        pair = None if noise.drawn_together() else noise.pair(self.standard_deviation)
        if pair is not None:
            (first, second), (scale, its) = pair
            few = (rows or np.size(distance)) * scale <= _MOST_ADDED
            others, size = Noises(its), np.size(distance)
            few = few and scale == its <= _WIDEST_ADDED
            if few and half_widths.is_share_quick(others, size, level, self):
                steps = np.maximum(first, second), np.minimum(first, second)
                return np.where(holds(distance, steps, scale, others), -1.0, 1.0)
            return integer_pair_excess(distance, *pair, level)
        by_row = any(np.ndim(part) for part in noise.loadings.values())
        if by_row and not noise.drawn_together() and self._is_summed(noise, level):
            off = distance - half_widths.half_step(noise, self)
            return laplace_sum_excess(off, self._continuous(noise), level)
        return np.asarray(distance - self.sum_half_width(noise, level))

    def _continuous_half_width(self, noise: NoiseSum, level: float) -> np.ndarray:
        """Half-width for continuous noises of the same scales; some may not be of integers."""
        wide = self._continuous(noise)
        moving = any(noise.scales.get(block, 0.0) for block in noise.loadings)
        match wide:
            case [alone] if moving and noise.largest is None:
                return pair_half_width(alone, 0.0, level)
            case [first, other] if noise.largest is None:
                return pair_half_width(first, other, level)
        if self._is_summed(noise, level):
            return laplace_sum_half_width(wide, level)
        width: np.ndarray = self.quantile(level) * norm(wide)
        return width

    def _continuous(self, noise: NoiseSum) -> list[np.ndarray]:
        """Deviations of continuous noises of the same scales."""
        wide = []
        for block, loading in noise.loadings.items():
            scale = noise.scales.get(block, 0.0)
            deviation = self.standard_deviation(scale)
            part = np.abs(loading)
            if deviation:
                part = part / deviation * (_ROOT2 * scale)
            wide.append(part)
        return wide

    def _is_summed(self, noise: NoiseSum, level: float) -> bool:
        """Whether the law of three or four noises is summed up, row by row."""
        several = 2 < len(noise.loadings) <= _FEW and noise.largest is None  # noqa: PLR2004
        return several and 1 - level > _LEAST_MISSED

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return this law for one noise, and the normal law for more."""
        return self if terms == 1 else GAUSSIAN

    def _deviation(self, scale: float) -> float:
        """Return `1 / (sqrt(2) sinh(h))`, with `h = 1 / (2 scale)`."""
        # no overflow
        return _ROOT2 * math.exp(-0.5 / scale) / -math.expm1(-1 / scale)

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        return 2 * math.exp(-(a + 1) / scale) / (1 + math.exp(-1 / scale))


LAPLACE = Laplace()
"""The discrete Laplace law."""


def _over_sinh(half: float) -> float:
    """Return `1 / sinh(h)`, without overflow."""
    return 2 * math.exp(-half) / -math.expm1(-2 * half)


def pair_half_width(
    first: float | np.ndarray, second: float | np.ndarray, level: float
) -> np.ndarray:
    """Return the half-width for the sum of two independent, continuous Laplace noises.

    With scales `a > b` it is the t that solves
    `P(|a X + b Y| > t) = (a^2 e^(-t/a) - b^2 e^(-t/b)) / (a^2 - b^2) = 1 - level`, found by
    tries and rounded up; the limit `(1 + t / (2 a)) e^(-t/a)` counts where `a = b`.

    Parameters
    ----------
    first, second
        Standard deviations of the two noises, of shapes that fit together.
    level
        Confidence level.

    Examples
    --------
    >>> pair_half_width(np.array([2**0.5]), 0.0, 0.95).round(4)  # a single Laplace: ln 20
    array([2.9957])
    """
    tops = np.maximum(np.abs(first), np.abs(second)) / math.sqrt(2)
    lows = np.minimum(np.abs(first), np.abs(second)) / math.sqrt(2)
    ratio = np.divide(lows, tops, out=np.zeros(np.shape(tops)), where=tops > 0)
    ratio = np.clip(ratio, *_RATIOS)
    most = np.full_like(ratio, 2 * (1 - math.log1p(-level)))
    return half_widths.solve_tails(lambda t: _pair_beyond(t, ratio), most, level) * tops


def laplace_sum_half_width(parts: Sequence[float | np.ndarray], level: float) -> np.ndarray:
    """Return the half-width for a sum of a few independent, continuous Laplace noises.

    With scales `a_j`, all different, it is the t that solves
    `sum_j exp(-t / a_j) prod_(k != j) a_j^2 / (a_j^2 - a_k^2) = 1 - level`. Of scales that are less
    than 0.2 % apart, larger ones are raised: a wider noise is never less spread.

    Parameters
    ----------
    parts
        Standard deviations of the noises, of shapes that fit together.
    level
        Confidence level.

    Examples
    --------
    >>> laplace_sum_half_width([2.0, 1.0, np.array([0.5, 0.0])], 0.95).round(2)
    array([4.72, 4.63])
    """
    unit, tails = _sum_tails(parts)
    most = np.full(unit.shape, len(parts) * (1 - math.log1p(-level)) * 1.1)
    width: np.ndarray = half_widths.solve_tails(tails, most, level) * unit
    return width


def laplace_sum_excess(
    distance: np.ndarray, parts: Sequence[float | np.ndarray], level: float
) -> np.ndarray:
    """Say by how much a tail is too small: at most 0 up to `laplace_sum_half_width`.

    Examples
    --------
    >>> laplace_sum_excess(np.array([4.71, 4.73]), [2.0, 1.0, 0.5], 0.95) <= 0
    array([ True, False])
    """
    unit, tails = _sum_tails(parts)
    t = np.divide(distance, unit, out=np.zeros(np.shape(distance)), where=unit > 0)
    beyond = 1 - level - tails(np.maximum(t, 0))
    return np.asarray(np.where(unit > 0, np.where(distance <= 0, -level, beyond), distance))


def _sum_tails(parts: Sequence[float | np.ndarray]) -> tuple[np.ndarray, Tails]:
    """Return the largest scale, and the tails of the sum in its units."""
    *_, top = ordered = _in_order([np.abs(part) for part in np.broadcast_arrays(*parts)])
    unit = top / math.sqrt(2)
    over = np.divide(1, top, out=np.zeros(top.shape), where=top > 0)
    scales, least = [], _NARROW**0.5
    for part in ordered:
        scales.append(np.maximum(part * over, least))
        least = scales[-1] * _APART
    squares = [scale**2 for scale in scales]
    weights = [np.ones(())] * len(scales)
    for j, k in combinations(range(len(scales)), 2):
        gap = squares[j] - squares[k]
        weights[j] = weights[j] * (squares[j] / gap)
        weights[k] = weights[k] * (squares[k] / -gap)

    def tails(t: np.ndarray) -> np.ndarray:
        sums = np.full(np.broadcast_shapes(unit.shape, np.shape(t)), _LOST)
        for weight, scale in zip(weights, scales, strict=True):
            sums += weight * np.exp(-t / scale)
        return sums

    return unit, tails


def _in_order(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Put a few arrays in rising order, place by place: much faster than to sort many rows."""
    for last in range(len(parts) - 1, 0, -1):
        for at in range(last):
            pair = parts[at], parts[at + 1]
            parts[at], parts[at + 1] = np.minimum(*pair), np.maximum(*pair)
    return parts


def _pair_beyond(t: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return P(|X + r Y| > t) for independent Laplace X, Y of scale 1 and 0 < r < 1."""
    apart = np.log(ratio) * 2
    return np.asarray(np.exp(-t) * np.expm1(apart - t * (1 - ratio) / ratio) / np.expm1(apart))


def integer_pair_half_width(steps: Steps, scales: tuple[float, float], level: float) -> np.ndarray:
    """Return the half-width for `g X + h Y`, discrete Laplace X and Y of scales r and s.

    It is `t + g / 2`, with g the smaller step, and t rounded up so that
    `sum_k P(Y = k) b(h |k|)` is `1 - level`. Here `b(u) >= P(|g X + u| > t + g / 2)` is
    `c exp(-t / a) cosh(u / a)` where `u <= t` and `1 - c exp(-u / a) sinh(t / a)` elsewhere, with
    `a = g r` and `c = 1 / cosh(1 / (2 r))`: for a continuous Laplace of scale a, c is 1, and it is
    what the tails `q^j / (1 + q)` of X lack of `q^(j - 1/2) / 2`. The sums over k are geometric.

    Parameters
    ----------
    steps
        By how much the sum moves with one integer of X and of Y, of shapes that fit together.
    scales
        r and s, both above 0.
    level
        Confidence level.

    Examples
    --------
    Next to wide noise, one of scale 1/5 is nearly always 0:

    >>> steps = np.array([1e-6]), np.array([1.0])
    >>> integer_pair_half_width(steps, (2e5, 0.2), 0.95).round(3)
    array([0.652])
    """
    fine, unit, tails = _integer_pair(steps, scales)
    most = np.full(fine.shape, 2 * (1 - math.log1p(-level)))
    high = half_widths.solve_tails(tails, most, level, by_row=fine.ndim == 1)
    # a scale that stands for 0 is not to lead below an integer of the coarse noise
    width: np.ndarray = (high + _NARROWEST) * unit + fine / 2
    return width


def integer_pair_excess(
    distance: np.ndarray, steps: Steps, scales: tuple[float, float], level: float
) -> np.ndarray:
    """Say by how much a tail is too small: at most 0 up to `integer_pair_half_width`.

    Examples
    --------
    >>> steps, scales = (np.array([0.4]), np.array([0.6])), (1.0, 3.0)
    >>> width = integer_pair_half_width(steps, scales, 0.95)
    >>> [integer_pair_excess(off * width, steps, scales, 0.95)[0] <= 0 for off in (0.999, 1.001)]
    [np.True_, np.False_]
    """
    fine, unit, tails = _integer_pair(steps, scales)
    t = (distance - fine / 2) / unit - _NARROWEST
    return np.asarray(np.where(t <= 0, -level, 1 - level - tails(np.maximum(t, 0))))


def _integer_pair(
    steps: Steps, scales: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, Tails]:
    """Return the finer step, the unit of t, and the tails of two noises at t."""
    first, second = np.broadcast_arrays(*(np.abs(step) for step in steps))
    fine, coarse = np.minimum(first, second), np.maximum(first, second)
    of_fine = np.where(first <= second, *scales)
    of_coarse = np.where(first <= second, *scales[::-1])
    less = 1 / np.cosh(np.minimum(1 / (2 * of_fine), _FARTHEST))
    # as an upper end for t
    unit = np.maximum(fine * of_fine, coarse * of_coarse)
    unit = np.where(unit > 0, unit, 1.0)
    a, h = np.maximum(fine * of_fine / unit, _NARROW), coarse / unit
    tails = _integer_tails(a, h, np.minimum(of_coarse, 1 / _FLUID), less)
    fluid = (h > 0) & (h < _FLUID)
    if not fluid.any():
        return fine, unit, tails
    # of the scales, the larger is the unit
    ratio = np.clip(np.minimum(a, h * of_coarse), *_RATIOS)

    def either(t: np.ndarray, rows: half_widths.Rows | EllipsisType = ...) -> np.ndarray:
        beyond = _pair_beyond(t, ratio[rows])
        return np.where(fluid[rows], beyond, tails(t, rows))

    # a continuous noise, and half of an integer of the discrete one
    return np.where(fluid, coarse, fine), unit, either


def _integer_tails(a: np.ndarray, h: np.ndarray, s: np.ndarray, less: np.ndarray) -> Tails:
    """Return `sum_k P(Y = k) b(h |k|)` for Y discrete Laplace of scale s, by t."""
    q, wide = np.exp(-1 / s), np.maximum(h, _NARROW)
    falling, ratio = np.exp(-h / a - 1 / s), h / a - 1 / s
    rising, alone = np.exp(-np.abs(ratio)), (1 - q) / (1 + q)
    parts = np.stack([a, h, s, less, q, wide, falling, ratio, rising, alone])

    def tails(t: np.ndarray, rows: half_widths.Rows | EllipsisType = ...) -> np.ndarray:
        a, h, s, less, q, wide, falling, ratio, rising, alone = parts[:, rows]
        # integers that alone do not lead beyond t
        within = np.floor(t / wide)
        near = np.exp(-t / a) * (1 + falling * _geometric_from_one(falling, within))
        # exp(-t / a) (q exp(h / a))^k for k = 1 .. m, from the larger end on
        last = np.exp(-np.maximum(t - h * within, 0) / a - within / s)
        first = np.exp(np.minimum((h - t) / a, 0) - 1 / s)
        terms = _geometric_from_one(rising, within)
        near = near + np.where(within > 0, np.where(ratio > 0, last, first) * terms, 0.0)
        jumps = np.exp(-(within + 1) / s)
        # exp(-h k / a) sinh(t / a) for k = m + 1 and on
        beyond = np.maximum(h * (within + 1) - t, 0)
        back = np.exp(-beyond / a) - np.exp(-(beyond + 2 * t) / a)
        far = 2 * jumps / (1 - q) - less * jumps * back / (1 - falling)
        return np.asarray(alone * (less * near + far))

    return tails


def _geometric_from_one(ratio: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """Return `1 + ratio + ...`, so many terms; ratio is at most 1."""
    near_one = ratio > 1 - _NARROW
    total = np.divide(1 - ratio**terms, 1 - ratio, out=np.array(terms), where=~near_one)
    return np.where(near_one, terms, total)


def pure_of_rho(rho: Fraction) -> float:
    """Find the largest epsilon such that every epsilon-DP mechanism is rho-zCDP.

    It solves `epsilon tanh(epsilon / 2) = rho`, rounded down: an epsilon-DP mechanism is no easier
    to tell apart than randomized response, whose Renyi divergences of order alpha are at most alpha
    times the one of order 1 (Bun and Steinke 2016, Definition 1.1, with a tighter constant than
    their Proposition 1.4, `epsilon^2 / 2`).

    Parameters
    ----------
    rho
        Zero-concentrated parameter, > 0.

    Examples
    --------
    >>> round(pure_of_rho(Fraction(1, 2)), 6)
    1.043627
    """
    target = float(rho)
    # tanh(x / 2) is below x / 2 and below 1
    epsilon = max(math.sqrt(2 * target), target)
    for _ in range(_MAX_STEPS):
        half = math.tanh(epsilon / 2)
        step = (epsilon * half - target) / (half + epsilon * (1 - half * half) / 2)
        epsilon -= step
        if abs(step) <= _CONVERGED * epsilon:
            break
    margin = 2.0**-52
    while rho_of_pure(Fraction(epsilon)) > rho:
        epsilon = math.nextafter(epsilon * (1 - margin), 0.0)
        margin *= 2
    return epsilon


def laplace_of_rho(rho: Fraction, steps: float) -> float:
    """Find an epsilon for which discrete Laplace noise costs a rho, rounded down.

    It solves `rho_of_laplace(epsilon, epsilon / steps) = rho`, and is no less than `pure_of_rho`.

    Parameters
    ----------
    rho
        Zero-concentrated parameter, > 0.
    steps
        How many steps of the noise of the least scale cost epsilon, at least 1.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> round(laplace_of_rho(half, 1), 6), round(laplace_of_rho(half, 50), 6)
    (1.043627, 1.198195)
    """
    low = pure_of_rho(rho)
    high = 2 * low  # costs more, however fine the steps are
    while low < high * (1 - _MARGIN):
        middle = (low + high) / 2
        if rho_of_laplace(Fraction(middle), middle / steps * (1 + _MARGIN)) <= rho:
            low = middle
        else:
            high = middle
    return low
