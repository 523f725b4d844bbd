"""The region under a bell curve, cut into strips and cells: what `noise` draws Z from.

Strip `k` holds the reals `z` of `[k, k + 1) / 64`. Above it stand cells of height 1, enough of them
to cover the curve `f(z) = peak * exp(-energy(z))`. A cell is *free* if all of it lies under the
curve, and *tested* if the curve may cross it. The peak is chosen so that all cells, those of both
signs, fit in 2**16: sixteen random bits then name one of them, uniformly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

STRIP_BITS = 6
"""A strip is 2**-6 wide."""

MARGIN = 2.0**-16
"""No float decides a comparison closer than this: their errors stay below 2**-18."""

_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
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
        with localcontext(Context(digits + extra + 4, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
            low = self.peak * (-self.energy(Decimal(farthest) / 2**bits)).exp()
            high = self.peak * (-self.energy(Decimal(nearest) / 2**bits)).exp()
        slack = Fraction(1, 10**digits)
        return Fraction(low) * (1 - slack), Fraction(high) * (1 + slack)


def half(_: float, bits: int) -> tuple[int, int]:
    """Bracket 1/2, which rounds to the nearest integer."""
    return (1 << bits) // 2, ((1 << bits) + 1) // 2


@lru_cache(1000)
def _laplace_offset(scale: float, bits: int) -> tuple[int, int]:
    """Bracket `scale log(2 / (1 + exp(-1 / scale)))`, which makes the discrete Laplace law.

    `decimal` rounds each of six steps: the logarithm is off by less than 40 units of the last
    digit. The scale is at most 2**60, so their product is known to 10**-10 / 2**bits.
    """
    with localcontext(Context(bits // 3 + 32, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
        exact = Decimal(scale)
        product = -exact * ((1 + (-1 / exact).exp()) / 2).ln()
    low = math.floor(Fraction(product) * 2**bits)
    return max(0, low - 1), low + 2


def _laplace_pull(scales: np.ndarray) -> np.ndarray:
    """Return 1/2 minus the offset, in floats."""
    return 0.5 + scales * np.log1p(np.expm1(-1 / scales) / 2)


GAUSSIAN_CURVE = Curve(peak=400, reach=5, energy=lambda z: z * z / 2, offset=half)
"""Of the rounded Gaussian."""

LAPLACE_CURVE = Curve(peak=496, reach=12, energy=abs, offset=_laplace_offset, pull=_laplace_pull)
"""Of the discrete Laplace."""


@dataclass(frozen=True, eq=False)
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
