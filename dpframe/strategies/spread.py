"""Histograms in which a unit has one row in each of at most g bins, lifted by the number of units.

It is the Count problem across the bins (Joseph and Yu 2024): with d bins and k = g, `r` and `t` as
for sparse queries, measure `f - t u` in every bin and the number of units `u` once. The error of
`u` is common to all bins.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe.privacy.sensitivity import Footprint, Norm, Sparse, movement
from dpframe.strategies.base import Estimate, Need, Output, Prediction, Workload
from dpframe.strategies.linear import EVERYONE
from dpframe.strategies.sparse import lift

__all__ = ["SpreadDesign", "design"]

_ONE_ROW = 1


def design(workload: Workload, norm: Norm) -> "SpreadDesign | None":
    """Plan counts over bins; `None` where a unit is in one bin only, or has more rows in a bin."""
    reach = workload.reach
    counted = workload.outputs == (Output("rows", EVERYONE),)
    apt = norm != 1 and counted and workload.neighboring == "add_remove" and workload.has_units
    if not apt or reach.rows != _ONE_ROW or reach.full <= 1:
        return None
    radius, shift = lift(workload.cells, reach.full)
    if shift == 0:
        return None
    spread = math.sqrt(radius * (radius + float(shift)))
    of_units = spread / math.sqrt(radius * float(shift))
    return SpreadDesign(workload, shift, (shift.denominator * spread, of_units))


@dataclass(frozen=True)
class SpreadDesign:
    """Block 0 is `q f - p u` in every bin, with t = p / q; block 1 is the number of units u."""

    workload: Workload
    shift: Fraction
    scales: tuple[float, ...]

    @property
    def common(self) -> frozenset[int]:
        """The number of units is one integer for all bins."""
        return frozenset({1})

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Both blocks are drawn on their own."""
        return (0,), (1,)

    @property
    def extra(self) -> int:
        """No number of rows comes for free."""
        return 0

    @property
    def needs(self) -> frozenset[Need]:
        """Totals to compute."""
        return frozenset({(EVERYONE, "rows"), (EVERYONE, "units")})

    def movement(self, scales: Sequence[Fraction], norm: Norm) -> Fraction:
        """Return the exact largest weighted distance between neighbors."""
        p, q = self.shift.numerator, self.shift.denominator
        bins = Sparse(0, self.workload.cells, -p, q - p, self.workload.reach.full)
        units = Footprint((1,), ((1,),))
        once = self.workload.reach.whole
        return movement([bins, units], scales, norm, once, self.workload.neighboring)

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals into the integers to measure."""
        rows, units = totals[EVERYONE, "rows"], totals[EVERYONE, "units"].sum(keepdims=True)
        p, q = np.int64(self.shift.numerator), np.int64(self.shift.denominator)
        return [q * rows - p * units, units]

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the error of a bin."""
        return [Prediction(math.hypot(*self._loadings(deviations).values()))]

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[float]) -> list[Estimate]:
        """Read the counts of the bins."""
        values = measured[0] / self.shift.denominator + float(self.shift) * measured[1]
        return [Estimate(values, self._loadings(deviations))]

    def _loadings(self, deviations: Sequence[float]) -> dict[int, float]:
        return {0: deviations[0] / self.shift.denominator, 1: float(self.shift) * deviations[1]}
