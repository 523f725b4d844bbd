"""Confidence levels, and the half-width for the sum of two Laplace noises."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from dpframe.errors import QueryError

_NARROW = 1e-12  # stands for a scale of 0
_NARROWEST = 60 * _NARROW
_FARTHEST = 700.0  # beyond it, exponentials leave the range of floats
_LEAST_TAIL = 1e-300  # in place of 0
_PARTS = 2.0**32
_TRIES = 40  # so that an end is off by no more than 1 part in 10^12
Rows: TypeAlias = slice | np.ndarray
"""Some rows of a table, or all of them."""

_Tails = Callable[[np.ndarray], np.ndarray]
_Steps = tuple[float | np.ndarray, float | np.ndarray]


def check_level(level: object) -> float:
    """Validate a confidence level: a number in (0, 1).

    Raises
    ------
    QueryError
        If it is not.
    """
    if isinstance(level, int | float | np.floating) and 0 < level < 1:
        return float(level)
    raise QueryError.about("level", "must be a number in (0, 1)", level, "0.95 is usual.")


def solve_tails(tails: _Tails, most: np.ndarray, level: float) -> np.ndarray:
    """Return where falling tails are `1 - level`, in parts of 2**-32 of `most`, rounded up."""
    ends, missed = np.atleast_1d(most), math.log(1 - level)

    def excess(t: np.ndarray, _: Rows) -> np.ndarray:  # logarithms of tails are nearly lines
        logs = np.log(np.maximum(tails(t), _LEAST_TAIL))
        return np.asarray(missed - np.where(t > 0, logs, 0.0))

    found = narrow(excess, ends, np.zeros_like(ends)).reshape(np.shape(most))
    return np.asarray(np.ceil(found / most * _PARTS) / _PARTS * most)


def narrow(
    excess: Callable[[np.ndarray, Rows], np.ndarray],
    rejected: np.ndarray,
    kept: np.ndarray,
    *,
    by_row: bool = False,
) -> np.ndarray:
    """Return the last place that is rejected on the way to one that is kept, by tries in between.

    Where a line through both ends is 0, moved a little to the middle, is tried in place of the
    middle, so that both ends come closer (Oliveira and Takahashi 2020). The way is as short as if
    it were halved 40 times, after 41 tries at most; for most it takes ten.

    Parameters
    ----------
    excess
        How far places are from being kept, in some rows: those up to 0 are kept.
    rejected, kept
        Where the ways begin and end, one of each for every interval.
    by_row
        Whether rows can be tried without others.

    References
    ----------
    I. F. D. Oliveira and R. H. C. Takahashi, "An enhancement of the bisection method average
    performance preserving minmax optimality", ACM Transactions on Mathematical Software 47(1),
    2020.

    Examples
    --------
    >>> round(float(narrow(lambda x, _: 0.0625 - x**2, np.zeros(1), np.ones(1))[0]), 11)
    0.25
    """
    found, rows = rejected.copy(), np.arange(len(rejected))
    some: Rows = slice(None)
    ulps = 4 * np.spacing(np.maximum(np.abs(rejected), np.abs(kept)))
    whole = np.abs(kept - rejected)
    enough = np.maximum(whole * 2.0**-_TRIES, ulps)
    ends = np.stack([rejected, kept, excess(rejected, some), excess(kept, some), whole, enough])
    for tried in range(_TRIES + 1):
        rejected, kept, far, near, whole, enough = ends
        apart = (far > 0) & (near <= 0) & (np.abs(kept - rejected) > enough)
        if not apart.any():
            break
        if by_row and 2 * np.count_nonzero(apart) < len(rows):
            found[rows] = rejected
            some = rows = rows[apart]
            rejected, kept, far, near, whole, enough = ends = ends[:, apart]
            apart = apart[apart]
        middle = np.where(apart, _between(ends, tried), rejected)
        value = excess(middle, some)
        within = value <= 0
        rejected, far = np.where(within, rejected, middle), np.where(within, far, value)
        kept, near = np.where(within, middle, kept), np.where(within, value, near)
        ends = np.stack([rejected, kept, far, near, whole, enough])
    found[rows] = ends[0]
    return found


def _between(ends: np.ndarray, tried: int) -> np.ndarray:
    """Return the next place to try: near where a line is 0, but further inwards."""
    rejected, kept, far, near, whole, enough = ends
    way, part = kept - rejected, far / (far - near)
    left = np.abs(way)
    at = np.where(np.isfinite(part), part, 0.5) - 0.5  # from the middle
    inwards = np.maximum(0.2 * left / whole, 0.7 * enough / left)
    at -= np.copysign(np.minimum(np.abs(at), inwards), at)
    most = np.maximum(whole * 2.0**-tried / left - 0.5, 0)  # so that no try is lost
    middle: np.ndarray = rejected + (np.clip(at, -most, most) + 0.5) * way
    return middle


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
    ratio = np.clip(ratio, 1e-8, 1 - 1e-8)  # both ends are limits
    most = np.full_like(ratio, 2 * (1 - math.log1p(-level)))
    return solve_tails(lambda t: _pair_beyond(t, ratio), most, level) * tops


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
    width: np.ndarray = solve_tails(tails, most, level) * unit
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


_LOST = 2e-9  # what differences of products of floats may lose
_APART = 1.002  # scales that are nearer are taken for larger ones: products stay below 1e7


def _sum_tails(parts: Sequence[float | np.ndarray]) -> tuple[np.ndarray, _Tails]:
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


def integer_pair_half_width(steps: _Steps, scales: tuple[float, float], level: float) -> np.ndarray:
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
    high = solve_tails(tails, np.full(fine.shape, 2 * (1 - math.log1p(-level))), level)
    # a scale that stands for 0 is not to lead below an integer of the coarse noise
    width: np.ndarray = (high + _NARROWEST) * unit + fine / 2
    return width


def integer_pair_excess(
    distance: np.ndarray, steps: _Steps, scales: tuple[float, float], level: float
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
    steps: _Steps, scales: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, _Tails]:
    """Return the finer step, the unit of t, and the tails of two noises at t."""
    one, other = np.broadcast_arrays(*(np.abs(step) for step in steps))
    fine, coarse = np.minimum(one, other), np.maximum(one, other)
    of_fine = np.where(one <= other, *scales)
    of_coarse = np.where(one <= other, *scales[::-1])
    less = 1 / np.cosh(np.minimum(1 / (2 * of_fine), _FARTHEST))
    unit = np.maximum(fine * of_fine, coarse * of_coarse)  # as an upper end for t
    unit = np.where(unit > 0, unit, 1.0)
    a, h = np.maximum(fine * of_fine / unit, _NARROW), coarse / unit

    return fine, unit, _integer_tails(a, h, of_coarse, less)


def _integer_tails(a: np.ndarray, h: np.ndarray, s: np.ndarray, less: np.ndarray) -> _Tails:
    """Return `sum_k P(Y = k) b(h |k|)` for Y discrete Laplace of scale s, by t."""
    q, wide = np.exp(-1 / s), np.maximum(h, _NARROW)
    falling, ratio = np.exp(-h / a - 1 / s), h / a - 1 / s
    rising, alone = np.exp(-np.abs(ratio)), (1 - q) / (1 + q)

    def tails(t: np.ndarray) -> np.ndarray:
        within = np.floor(t / wide)  # integers that alone do not lead beyond t
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
