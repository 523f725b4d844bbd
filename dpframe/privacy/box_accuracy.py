"""How wide noise in a box is: tails of one coordinate, of sums of several, and deviations.

In units of the scales, a vector of noise is R U: R has the density `r^D e^-r / D!`, and the D
coordinates of U are independent and uniform on [-1, 1]. So a sum of coordinates is a sum of uniform
variables times R. Tails are combinations of a few Q(n, x), the chance that a sum of n standard
exponentials is above x.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from dpframe.privacy.accuracy import bisect_tails

_NODES = 257
_BETWEEN = 1.0001  # what the largest of so many may miss between them
_HIGH, _SMALL = 0.93, 10
_VAST = 1e100  # tails are 0 long before, and products stay finite
_ROUNDING = 1e-14

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

    A size is distributed as a sum of J standard exponentials, J uniform on 1, ..., D.

    Examples
    --------
    >>> float(beyond(3.0, 1).round(6)), float(beyond(3.0, 2).round(6))
    (0.049787, 0.124468)
    """
    from scipy import special  # slow to import, and not always needed

    x = np.minimum(x, _VAST)
    tail: np.ndarray = np.asarray(special.gammaincc(members, x))
    if members > 1:
        tail = np.maximum(tail - x / members * special.gammaincc(members - 1, x), 0)
    return tail


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
        with np.errstate(over="ignore"):  # tails of nearly no noise are 0
            return math.sqrt(float(np.sum((2 * k - 1) * beyond((k - 0.5) / scale, members))))
    return math.sqrt(variance + 1 / 12)


def _is_wide(scale: float, members: int) -> bool:
    """Whether what rounding adds to the variance is 1/12 to the last digits."""
    t = 2 * math.pi * scale
    size = math.exp(-members / 2 * math.log1p(t * t)) / t
    slope = (size / members + size / math.sqrt(1 + t * t) * t) / t
    rest = 2 * (size / members / math.pi**2 + 2 * scale * slope / math.pi)
    return rest < _ROUNDING * spread(members) * scale**2


def _farthest(members: int) -> float:
    """Scales beyond which all tails together are below 1e-20 or so."""
    return members + 60 + 12 * math.sqrt(members)


@lru_cache(1024)
def _half_widths(members: int, level: float) -> np.ndarray:
    """Half-widths of z_1 + r z_2 at r = 0, ..., 1, by bisection, rounded up."""
    ratios = np.linspace(0, 1, _NODES)

    def tails(t: np.ndarray) -> np.ndarray:
        return np.concatenate([beyond(t[:1], members), pair_beyond(t[1:], ratios[1:], members)])

    return bisect_tails(tails, (1 + ratios) * _farthest(members), level)


def sum_half_width(parts: Sequence[float | np.ndarray], members: int, level: float) -> np.ndarray:
    """Return a half-width for `sum_j a_j z_j` over some of D >= 2 coordinates at scale 1.

    It is that of one or two terms, linear between 257 ratios of them: the half-width is convex in
    the ratio, so never below. Three terms or more are less spread than the two `A = max(a_1, S /
    2)` and `S - A`, where a_1 is the largest of them and S their sum: given R, a sum of uniform
    variables is the more peaked the more equal its weights are (Proschan 1965).

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
    largest: np.ndarray = total / 2
    for part in parts:
        largest = np.maximum(largest, part)
    ratio = np.divide(total - largest, largest, out=np.zeros_like(total), where=largest > 0)
    table = _half_widths(members, level)
    width: np.ndarray = largest * np.interp(ratio, np.linspace(0, 1, _NODES), table)
    return width


@lru_cache(1024)
def largest_ratio(terms: int, members: int, level: float) -> float:
    """Return the largest half-width, in standard deviations, of so many of D >= 2 coordinates.

    It is the largest of what `sum_half_width` gives where the largest part is a and the others are
    equal: of all with the same sum of squares, they add up to most.
    """
    largest = np.linspace(0, 1, _NODES)
    others = np.sqrt((terms - 1) * (1 - largest**2))
    widths = sum_half_width([largest, others / 2, others / 2], members, level)
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
    from scipy import special  # slow to import, and not always needed

    def moment(k: int, x: np.ndarray) -> np.ndarray:
        """E[R^-k; R > x]."""
        rest = special.gammaincc(members + 1 - k, x)
        found: np.ndarray = rest / math.prod(range(members + 1 - k, members + 1))
        return found

    outer = t / (1 + ratio)
    inner = np.divide(t, 1 - ratio, out=np.full(np.shape(ratio), np.inf), where=ratio < 1)
    whole, once, twice = (moment(k, outer) - moment(k, inner) for k in range(3))
    flat = moment(0, inner) - t * moment(1, inner)
    slope = (1 + ratio) ** 2 * whole - 2 * (1 + ratio) * t * once + t * t * twice
    tail: np.ndarray = flat + slope / (4 * ratio)
    return tail
