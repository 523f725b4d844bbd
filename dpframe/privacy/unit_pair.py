"""How far rows of two units are apart in one measured coordinate."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

from dpframe.privacy.footprints import Kernel

Scale = TypeVar("Scale", Fraction, float)
"""Exact, for what is promised, or a float, to compare designs with."""

Norm = Literal[1, 2]


@dataclass(frozen=True, slots=True, eq=False)
class UnitPair:
    """Rows of two units in one cell, or in two cells that are measured together.

    Parameters
    ----------
    norm
        That of the noise.
    mine, theirs
        How many rows each of them has.
    shared, apart
        What a row shares with one of the other unit, and what it moves beyond that, in whole parts.
    parts
        How many parts make what a row moves in one cell, measured by itself; 0: it is that cell.
    """

    norm: Norm
    mine: int
    theirs: int
    shared: int = 1
    apart: int = 0
    parts: int = 0

    def step(self, v: int, w: int) -> int:
        """Return how far apart rows are that count v and w each, for `length`."""
        mine, theirs = self.mine * v, self.theirs * w
        if not self.parts:
            return abs(mine - theirs)
        together: int = abs(mine - theirs) ** self.norm
        alone: int = abs(mine) ** self.norm + abs(theirs) ** self.norm
        return together * self.shared + alone * self.apart

    def length(self, step: int, scale: Scale) -> Scale:
        """Return the weighted length of a step, to the power `norm`."""
        if step == 0:
            return 0 * scale  # a coordinate that does not move needs no noise
        if self.parts:
            return Fraction(step, self.parts) / scale**self.norm
        length = step / scale
        return length if self.norm == 1 else length * length


def pairs_of_units(norm: Norm, a: int, b: int, kernel: Kernel | None) -> list[UnitPair]:
    """Return what rows of two units can share: one of the ends is the worst."""
    if kernel is None:
        return [UnitPair(norm, a, b)]
    parts = math.lcm(kernel.whole.denominator, kernel.least.denominator)
    whole, least = int(kernel.whole * parts), int(kernel.least * parts)
    return [UnitPair(norm, a, b, shared, whole - shared, parts) for shared in {least, whole}]
