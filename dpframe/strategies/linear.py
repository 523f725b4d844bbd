"""Designs in which measured integers and outputs are linear in the totals of a cell.

A block measures, in every cell, an integer combination of the values and the rows of one source. An
output reads a linear combination of blocks, or the ratio of two of them for a mean.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpframe.sensitivity import Footprint, Norm, movement
from dpframe.strategies.base import Estimate, Need, Prediction, Source, Workload
from dpframe.strategies.ratio import ratio

__all__ = ["Block", "LinearDesign", "Quotient", "Reading", "move_alone"]


@dataclass(frozen=True, slots=True)
class Block:
    """The measured integer `value * values + row * rows` of a source, in every cell."""

    source: int
    value: int
    row: int

    @property
    def parts(self) -> list[tuple[Need, int]]:
        """Totals with their integer weights."""
        whole: list[tuple[Need, int]] = [
            ((self.source, "value"), self.value),
            ((self.source, "rows"), self.row),
        ]
        return [(need, weight) for need, weight in whole if weight]

    def of(self, totals: Mapping[Need, np.ndarray]) -> np.ndarray:
        """Combine totals, modulo 2**64."""
        combined: np.ndarray = np.zeros(1, np.int64)
        for need, weight in self.parts:
            combined = combined + np.int64(weight) * totals[need]
        return combined


@dataclass(frozen=True, slots=True)
class Reading:
    """A linear combination of measured blocks: weight by position of the block."""

    weights: Mapping[int, float]

    @property
    def block(self) -> int | None:
        """The block that this reading is, if it is one."""
        return next(iter(self.weights)) if list(self.weights.values()) == [1.0] else None

    def loadings(self, deviations: Sequence[float]) -> dict[int, float]:
        """Return what the noise of each block does to the reading."""
        return {k: weight * deviations[k] for k, weight in self.weights.items()}

    def of(self, measured: Sequence[np.ndarray]) -> np.ndarray:
        """Read the measured blocks."""
        if self.block is not None:
            return measured[self.block]
        read: np.ndarray = np.zeros(1)
        for k, weight in self.weights.items():
            read = read + weight * measured[k]
        return read


@dataclass(frozen=True, slots=True)
class Quotient:
    """A mean: the center of the bounds plus the ratio of a centered sum and a number of rows."""

    centered: Reading
    rows: Reading
    bounds: tuple[int, int]

    def loadings(
        self, deviations: Sequence[float]
    ) -> tuple[Mapping[int, float], Mapping[int, float]]:
        """Return what the noise of each block does to the sum and to the number of rows."""
        return self.centered.loadings(deviations), self.rows.loadings(deviations)


@dataclass(frozen=True)
class LinearDesign:
    """Blocks to measure in every cell, their relative scales, and how to read the outputs.

    Parameters
    ----------
    workload
        The outputs wanted.
    blocks
        What is measured.
    scales
        Relative noise scale of each block.
    readings
        One for each output.
    """

    workload: Workload
    blocks: tuple[Block, ...]
    scales: tuple[float, ...]
    readings: tuple[Reading | Quotient, ...]

    @cached_property
    def footprints(self) -> tuple[Footprint, ...]:
        """What one row adds to the blocks of its cell."""
        return _footprints(self.workload.sources, self.blocks)

    @property
    def needs(self) -> frozenset[Need]:
        """Totals to compute."""
        return frozenset(need for block in self.blocks for need, _ in block.parts)

    def movement(self, scales: Sequence[Fraction], norm: Norm) -> Fraction:
        """Return the exact largest weighted distance between neighbors."""
        work = self.workload
        return movement(self.footprints, scales, norm, work.reach, work.neighboring)

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals into the integers to measure."""
        return [block.of(totals) for block in self.blocks]

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the error of each output, for the worst mean there can be."""
        return [_predict(reading, deviations) for reading in self.readings]

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[float]) -> list[Estimate]:
        """Read the outputs off the measured blocks."""
        return [_decode(reading, measured, deviations) for reading in self.readings]


def _predict(reading: Reading | Quotient, deviations: Sequence[float]) -> Prediction:
    if isinstance(reading, Reading):
        error = math.hypot(*reading.loadings(deviations).values())
        return Prediction(error, block=reading.block)
    half_width = (reading.bounds[1] - reading.bounds[0]) / 2
    of_sum, of_rows = reading.loadings(deviations)
    worst = max(
        math.hypot(*(of_sum.get(k, 0) - far * of_rows.get(k, 0) for k in {**of_sum, **of_rows}))
        for far in (-half_width, half_width)
    )
    return Prediction(worst, per_row=True)


def _decode(
    reading: Reading | Quotient, measured: Sequence[np.ndarray], deviations: Sequence[float]
) -> Estimate:
    if isinstance(reading, Reading):
        return Estimate(reading.of(measured), reading.loadings(deviations))
    centered, rows = reading.centered.of(measured), reading.rows.of(measured)
    return ratio(centered, rows, reading.loadings(deviations), reading.bounds)


def _footprints(sources: Sequence[Source], blocks: Sequence[Block]) -> tuple[Footprint, ...]:
    """Say what one row adds: blocks of one source move together, other sources on their own."""
    parts = []
    for position, source in enumerate(sources):
        mine = [k for k, block in enumerate(blocks) if block.source == position]
        corners = {
            tuple(blocks[k].value * value + blocks[k].row for k in mine)
            for value in (source.lower, source.upper)
        }
        if source.optional:
            corners.add((0,) * len(mine))
        if mine:
            parts.append(Footprint(tuple(mine), tuple(sorted(corners))))
    return tuple(parts)


def move_alone(workload: Workload, blocks: Sequence[Block], norm: Norm) -> tuple[float, ...]:
    """Return how far a neighbor can move each block, in the norm, where only that block counts."""
    unit = tuple(Fraction(1) for _ in blocks)
    far = [Fraction(0)] * len(blocks)
    for part in _footprints(workload.sources, blocks):
        for at, k in enumerate(part.coordinates):
            only = Footprint((k,), tuple(sorted({(corner[at],) for corner in part.corners})))
            far[k] = movement([only], unit, norm, workload.reach, workload.neighboring)
    return tuple(float(moved) if norm == 1 else math.sqrt(moved) for moved in far)
