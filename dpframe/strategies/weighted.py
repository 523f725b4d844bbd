"""Designs of rows that count for weights, measured as those of rows that count for 1.

A row adds w times what a row of weight 1 adds to the measured integers, where w is a whole number
from 0 to W. What the rows of a unit add is thus W times a point between vectors that rows of weight
1 can add, rows that are not there among them; the distance between two units is convex in these
points, so that the worst ones are rows of weight W, or none. All integers move by W times as much,
and need noise of W times the scale. Of staircase noise, stairs are W times as wide: a row of weight
w crosses no more of them than one of weight W.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Scale
from dpframe.strategies.base import Design, Estimate, Layers, Need, Prediction


@dataclass(frozen=True, eq=False)
class WeightedDesign:
    """A design for rows that count for 0 to W, in place of 1.

    Parameters
    ----------
    design
        The design for rows that count for 1, where a unit may have none.
    weight
        The largest weight W.
    """

    design: Design
    weight: int

    @property
    def scales(self) -> tuple[float, ...]:
        """Relative noise scales of the blocks."""
        return tuple(self.weight * scale for scale in self.design.scales)

    def movement(self, scales: Sequence[Scale], law: Law) -> Scale:
        """Return the largest weighted distance between neighbors, exact for fractions."""
        found = {scale: scale / self.weight for scale in set(scales)}  # of equal ones, one object
        return self.design.movement([found[scale] for scale in scales], law)

    @property
    def common(self) -> frozenset[int]:
        """Blocks of a single integer, whose noise all cells share."""
        return self.design.common

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Groups that partition the blocks."""
        return self.design.groups

    @property
    def joined(self) -> bool:
        """Whether a group reaches over all cells."""
        return self.design.joined

    @property
    def extra(self) -> int:
        """How many weighted totals come after the outputs wanted, free of charge."""
        return self.design.extra

    @property
    def needs(self) -> frozenset[Need]:
        """Totals to compute."""
        return self.design.needs

    @property
    def layers(self) -> Layers | None:
        """What is measured of many cells at once."""
        return self.design.layers

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals into the integers to measure."""
        return self.design.encode(totals)

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the errors of the outputs, in steps of the weights."""
        return self.design.predict(deviations)

    def errors(self, deviations: Sequence[float]) -> list[float]:
        """Return the standard errors by which plans are compared."""
        return self.design.errors(deviations)

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[float]) -> list[Estimate]:
        """Turn the measured blocks into estimates of the outputs."""
        return self.design.decode(measured, deviations)
