"""Designs whose blocks are measured over many cells at once, as layers say.

What is added up in a cell, and how outputs are read off it, is that of a linear design: a block of
it is a total, and every total is measured in the same layers, with noise of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, assert_never

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Scale, movement
from dpframe.strategies.base import Estimate, Layers, Need, Prediction, Workload
from dpframe.strategies.linear import AnyReading, LinearDesign, QuotientReading, Reading


@frozen(eq=False)
class LayeredDesign:
    """Totals of every cell, measured in layers.

    Parameters
    ----------
    workload
        The outputs wanted.
    totals
        What is added up in a cell, and how outputs are read off that.
    layers
        What is measured of each of these totals.
    """

    workload: Workload
    totals: LinearDesign
    layers: Layers
    common: ClassVar[frozenset[int]] = frozenset()  # no block has a single integer
    joined: ClassVar[bool] = False  # nothing is drawn together over all cells
    extra: ClassVar[int] = 0  # no output comes for free

    @property
    def scales(self) -> tuple[float, ...]:
        """Relative noise scales of the blocks."""
        return self.totals.scales

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Every block is drawn on its own."""
        return tuple((k,) for k in range(len(self.scales)))

    @property
    def needs(self) -> frozenset[Need]:
        """Totals to compute."""
        return self.totals.needs

    def movement(self, scales: Sequence[Scale], law: Law) -> Scale:
        """Return the largest weighted distance between neighbors, exact for fractions."""
        footprints, kernel = self.totals.footprints, self.layers.kernel
        reach, neighboring = self.workload.reach, self.workload.neighboring
        return movement(footprints, scales, law.norm, reach, neighboring, kernel=kernel)

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals into the integers to measure."""
        return [self.layers.encode(block) for block in self.totals.encode(totals)]

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the errors of the outputs of every table, from the scales of the blocks."""
        tables = list(zip(*map(self.layers.deviations, deviations), strict=True))
        # many tables err alike: every kind is predicted once
        predictions = {table: self._predict(table) for table in dict.fromkeys(tables)}
        return [prediction for table in tables for prediction in predictions[table]]

    def _predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the errors of the outputs of a table."""
        # a cell is read off many integers: the noise of no block is its own
        return [replace(prediction, block=None) for prediction in self.totals.predict(deviations)]

    def errors(self, deviations: Sequence[float]) -> list[float]:
        """Return the errors by which plans are compared, of the outputs of every table."""
        tables = list(zip(*map(self.layers.errors_to_compare, deviations), strict=True))
        errors = {table: self.totals.errors(table) for table in dict.fromkeys(tables)}
        return [error for table in tables for error in errors[table]]

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[float]) -> list[Estimate]:
        """Read the outputs of every table off the measured blocks."""
        tables = zip(*map(self.layers.decode, measured, deviations), strict=True)
        errors = zip(*map(self.layers.deviations_of_cells, deviations), strict=True)
        pairs = zip(tables, errors, strict=True)
        return [estimate for pair in pairs for estimate in self.totals.decode(*pair)]


def measure_in_layers(workload: Workload, totals: LinearDesign, layers: Layers) -> LayeredDesign:
    """Measure the totals of a design in layers; outputs are left as they are, not rounded.

    Whole numbers would not add up to those of other tables.
    """
    readings = tuple(map(_without_rounding, totals.readings[: len(workload.outputs)]))
    return LayeredDesign(workload, replace(totals, readings=readings), layers)


def _without_rounding(reading: AnyReading) -> AnyReading:
    match reading:
        case Reading():
            return replace(reading, step=0)
        case QuotientReading():
            return reading  # it is not rounded
        case _:
            assert_never(reading)
