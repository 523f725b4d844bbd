"""The public power-of-two grid on which a real-valued column becomes exact integers.

A value `x` of a column bounded by [l, u] is measured as the integer nearest to `x / step`, clipped
*as an integer* to `[ceil(l / step), floor(u / step)]`. Integer sums have no rounding, so
sensitivity is exact (Casacuberta et al. 2022 show what happens to sums of floats).
"""

import math
from dataclasses import dataclass, field
from datetime import tzinfo
from fractions import Fraction

BITS = 32
"""How fine grids are: bounds are at most `2 ** BITS` steps away from 0."""

_LEAST_EXPONENT = -1074  # of the smallest float: all floats are multiples of it


@dataclass(frozen=True, slots=True)
class Ticks:
    """How times become numbers.

    Parameters
    ----------
    tick
        Microseconds that count as 1.
    origin
        Where points in time are counted from, in microseconds since 1970; 0 for durations.
    points
        Whether they are points in time, not durations.
    zone
        The time zone of the points in time that count; `None`: those without one.
    """

    tick: int
    origin: int
    points: bool
    zone: tzinfo | None


@dataclass(frozen=True, slots=True)
class Grid:
    """Integers that stand for the values of one bounded column.

    Parameters
    ----------
    exponent
        The step between neighboring grid points is `2 ** exponent`.
    lower, upper
        Integer bounds: what one present value can be after clipping.
    fill
        Integer that stands for a missing value; `None`: a missing value contributes nothing.
    ticks
        How the times of the column become numbers; `None` for a column of numbers.
    drop
        Whether rows with a missing value are left out of the whole query.
    """

    exponent: int
    lower: int
    upper: int
    fill: int | None = None
    ticks: Ticks | None = None
    drop: bool = field(default=False, repr=False)

    @classmethod
    def for_bounds(
        cls,
        lower: float | Fraction,
        upper: float | Fraction,
        *,
        integer: bool = False,
        missing: float | Fraction | None = None,
        ticks: Ticks | None = None,
        bits: int = BITS,
    ) -> "Grid":
        """Choose the grid from public bounds only.

        The step is `2 ** (ceil(log2(max(|lower|, |upper|))) - bits)`, but not below the smallest
        float; and 1 for a column declared to hold integers up to 2**bits in magnitude. Bounds move
        inwards, to the grid, by less than one step; where no grid point lies between them, both
        move to the one nearest to their middle.

        Parameters
        ----------
        lower, upper
            Finite bounds of the column, `lower <= upper`.
        integer
            Whether the column is declared to hold integers.
        missing
            Declared replacement of a missing value; clipped to the bounds.
        ticks
            What bounds and replacement are counted in, for a column of times.
        bits
            How fine the grid is.

        Examples
        --------
        >>> Grid.for_bounds(0, 100, integer=True)
        Grid(exponent=0, lower=0, upper=100, fill=None, ticks=None)
        >>> Grid.for_bounds(0.0, 100.0).exponent
        -25
        """
        largest = max(abs(Fraction(lower)), abs(Fraction(upper)))
        exponent = max(_ceil_log2(largest) - bits, _LEAST_EXPONENT)
        if integer and largest <= 2**bits:
            exponent = 0
        step = Fraction(2) ** exponent
        low, high = math.ceil(Fraction(lower) / step), math.floor(Fraction(upper) / step)
        if low > high:
            low = high = round((Fraction(lower) + Fraction(upper)) / 2 / step)
        fill = None if missing is None else min(max(round(Fraction(missing) / step), low), high)
        return cls(exponent, low, high, fill, ticks)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds on the grid, in the units of the column, or in seconds from the origin."""
        ends = math.ldexp(self.lower, self.exponent), math.ldexp(self.upper, self.exponent)
        if self.ticks is None:
            return ends
        lower, upper = (end * self.ticks.tick / 10**6 for end in ends)
        return lower, upper

    @property
    def step(self) -> float:
        """Distance between neighboring grid points, in the units of the column, or in seconds."""
        step = math.ldexp(1.0, self.exponent)
        return step if self.ticks is None else step * self.ticks.tick / 10**6


def _ceil_log2(value: Fraction) -> int:
    """Smallest e with value <= 2**e; 0 for zero."""
    if value == 0:
        return 0
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    while Fraction(2) ** guess >= value:
        guess -= 1
    while Fraction(2) ** guess < value:
        guess += 1
    return guess
