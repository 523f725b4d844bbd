"""Counts of which a row, or a unit, has at most a few, lifted by the number of rows or of units.

Queries (`design`)
    With d queries, of which a row has at most k, let `k* = (d + sqrt d) / 2`. For `k >= k*` take
    `r = sqrt(d) / 2`, `t = 1 / 2` (Lebeda 2024); else `r = sqrt(k (d - k) / (d - 1))`, `t = (k - r)
    / d` (Joseph and Yu 2024, the Count problem). Measure `f - t n` with noise of variance `s^2 = r
    (r + t)` and `n` with `s^2 / gamma^2`, `gamma^2 = r t`, all relative to mu^2. In integers, with
    `t` near `p / q`: `q f - p n`.

Histograms in which a unit has c rows in each of at most g bins (`plan_bins`)
    It is the Count problem across the bins: with d bins and k = g, `r` and `t` as above, measure
    `f - t c u` in every bin, with c times the noise of one row, and the number of units `u` once.
    The error of `u` is common to all bins. A bin in which a unit has fewer than c rows moves no
    farther than one with c rows or with none.

    Noise in one box over all bins has `t = 1 / 2`: then no bin moves by more than c / 2, and how
    many bins a unit is in does not matter.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Footprint, Reach, Scale, Sparse, movement
from dpframe.strategies.base import EVERYONE, Estimate, Need, Prediction, Workload
from dpframe.strategies.box import MOST_JOINED
from dpframe.strategies.linear import ROUNDED, Block, LinearDesign, Reading

_FINEST = 1000  # denominator of a weight; finer ones gain nothing
_WIDEST = 2**32  # what a unit adds to a bin, as wide as values: with more, few units leave 64 bits


def design(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan sparse counting queries; `None` without a limit on them or where nothing is gained."""
    others = [output for output in workload.outputs if not output.is_sum]
    sums = [output.source for output in workload.outputs if output not in others]
    d, k = len(sums), workload.most
    if law.norm != 2 or k is None or workload.neighboring != "add_remove":  # noqa: PLR2004
        return None
    if any(not output.is_everyone for output in others) or d < 2:  # noqa: PLR2004
        return None
    radius, shift = lift(d, k)
    if shift == 0:
        return None
    p, q = shift.numerator, shift.denominator
    blocks = (Block(EVERYONE, 0, 1), *(Block(source, q, 0, -p) for source in sums))
    spread, of_rows = scales_of(radius, float(shift))
    rows = Reading({0: 1.0})
    readings = [
        Reading({1 + sums.index(output.source): 1 / q, 0: p / q}, step=q) if output.is_sum else rows
        for output in workload.outputs
    ]
    readings += [] if others else [rows]
    return LinearDesign(workload, blocks, (of_rows, *(q * spread for _ in sums)), tuple(readings))


def scales_of(radius: float, shift: float) -> tuple[float, float]:
    """Return the scales of the lifted queries, s, and of what they are lifted by, s / gamma."""
    spread = math.sqrt(radius * (radius + shift))
    return spread, spread / math.sqrt(radius * shift)


def lift(d: int, k: int) -> tuple[float, Fraction]:
    """Return the radius r and the shift t of d queries of which a row has at most k.

    Examples
    --------
    >>> lift(100, 100)
    (5.0, Fraction(1, 2))
    """
    if k >= (d + math.sqrt(d)) / 2:
        return math.sqrt(d) / 2, Fraction(1, 2)
    radius = math.sqrt(k * (d - k) / (d - 1))
    return radius, Fraction((k - radius) / d).limit_denominator(_FINEST)


def plan_bins(workload: Workload, law: Law) -> "SpreadDesign | None":
    """Plan counts over bins; `None` where a unit is in one bin only, or nothing is gained."""
    reach = workload.reach
    counted = len(workload.outputs) == 1 and workload.counts_everyone
    if not counted or workload.neighboring != "add_remove" or not workload.has_units:
        return None
    if law.inside == "max":
        return _plan_over_bins(workload)
    if law.norm == 1 or reach.rest or reach.full <= 1:
        return None
    radius, shift = lift(workload.cells, reach.full)
    if shift == 0 or reach.rows * shift.denominator > _WIDEST:
        return None
    spread, of_units = scales_of(radius, float(shift))
    return SpreadDesign(workload, shift, (reach.rows * shift.denominator * spread, of_units))


def _plan_over_bins(workload: Workload) -> "SpreadDesign | None":
    """Plan one box over all bins."""
    reach = workload.reach
    if reach.full + (reach.rest > 0) <= 1 or workload.cells >= MOST_JOINED:
        return None
    if 2 * reach.rows > _WIDEST:
        return None
    return SpreadDesign(workload, Fraction(1, 2), (float(reach.rows), 1.0), joined=True)


@frozen
class SpreadDesign:
    """Block 0 is `q f - p c u` in every bin, with t = p / q; block 1 is the number of units u.

    Parameters
    ----------
    workload
        Counts over bins.
    shift
        The part of the units that is taken from every bin, t.
    scales
        Relative noise scale of each block.
    joined
        Whether both blocks are drawn together over all bins.
    """

    workload: Workload
    shift: Fraction
    scales: tuple[float, ...]
    joined: bool = False
    common: ClassVar[frozenset[int]] = frozenset({1})  # the number of units: one for all bins
    layers: ClassVar[None] = None  # a block has one integer per cell, or a single one
    extra: ClassVar[int] = 0  # no number of rows comes for free

    @property
    def _lift(self) -> int:
        """What a unit takes from every bin: p c."""
        return self.shift.numerator * self.workload.reach.rows

    @property
    def _reading(self) -> Reading:
        """How the count of a bin is read off the blocks."""
        q = self.shift.denominator
        return Reading({0: 1 / q, 1: self._lift / q}, step=q)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Both blocks are drawn on their own, or all of them together."""
        return ((0, 1),) if self.joined else ((0,), (1,))

    @property
    def needs(self) -> frozenset[Need]:
        """Totals to compute."""
        return frozenset({(EVERYONE, "rows"), (EVERYONE, "units")})

    def movement(self, scales: Sequence[Scale], law: Law) -> Scale:
        """Return the largest weighted distance between neighbors, exact for fractions."""
        reach, q = self.workload.reach, self.shift.denominator
        absent, present = -self._lift, q * reach.rows - self._lift
        bins = Sparse(0, self.workload.cells, absent, present, reach.full)
        units = Footprint((1,), ((1,),))
        groups = self.groups if law.inside == "max" else None
        record = Reach(1, 1, 0, 1)  # a unit is one record: its rows are in the footprints
        neighboring = self.workload.neighboring
        return movement([bins, units], scales, law.norm, record, neighboring, groups=groups)

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals into the integers to measure."""
        rows, units = totals[EVERYONE, "rows"], totals[EVERYONE, "units"].sum(keepdims=True)
        return [np.int64(self.shift.denominator) * rows - np.int64(self._lift) * units, units]

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the error of a bin."""
        return [self._reading.predict(dict(enumerate(deviations)), ROUNDED)]

    def errors(self, deviations: Sequence[float]) -> list[float]:
        """Return the error by which plans are compared: that of a bin."""
        return [prediction.std_error for prediction in self.predict(deviations)]

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[float]) -> list[Estimate]:
        """Read the counts of the bins."""
        blocks, noise = dict(enumerate(measured)), dict(enumerate(deviations))
        return [self._reading.decode(blocks, noise, ROUNDED)]
