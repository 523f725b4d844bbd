"""Designs in which measured integers and outputs are linear in the totals of a cell.

A block measures, in every cell, an integer combination of the values, their squares and the rows of
one source, and of all rows of the cell. An output reads a linear combination of blocks, or several
of them: the totals of the features of a quotient.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from dpframe.context import cached_property
from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Neighboring
from dpframe.privacy.sensitivity import (
    Exclusive,
    Footprint,
    Norm,
    Parts,
    Reach,
    Scale,
    Sparse,
    movement,
)
from dpframe.statistics.form import Statistic, Totals
from dpframe.statistics.moments import moments, parts_of_pair
from dpframe.strategies.base import (
    EVERYONE,
    HALF,
    WHOLE,
    Estimate,
    Need,
    Prediction,
    Source,
    Workload,
)

KNOWN = -1
"""Stands for the block that a public number of rows is: nothing is measured for it."""

ROUNDED = -2
"""Stands for the rounding of the first output, -3 for that of the second, and so on."""

_Deviations: TypeAlias = Mapping[int, Any]
"""By block, the standard deviation of its noise."""

_Measured: TypeAlias = Mapping[int, np.ndarray]
"""By block, what was measured, noise included."""

_LARGEST = 2.0**62  # integers of 64 bits hold it


@frozen(slots=True)
class Reading:
    """A linear combination of measured blocks.

    Parameters
    ----------
    weights
        Weight by position of the block.
    step
        The combination is a multiple of 1 / step, to be rounded to a whole number; 0: it is left
        as it is.
    """

    weights: Mapping[int, float]
    step: int = 0

    @property
    def block(self) -> int | None:
        """The block that this reading is, if it is one."""
        return next(iter(self.weights)) if list(self.weights.values()) == [1.0] else None

    def times(self, factor: float) -> "Reading":
        """Scale the reading."""
        return Reading({k: factor * weight for k, weight in self.weights.items() if factor})

    def add(self, other: "Reading", factor: float) -> "Reading":
        """Add a multiple of another reading."""
        weights = dict(self.weights)
        for k, weight in other.weights.items():
            weights[k] = weights.get(k, 0.0) + factor * weight
        return Reading({k: weight for k, weight in weights.items() if weight})

    def plus(self, block: int, weight: float) -> "Reading":
        """Add a multiple of one more block."""
        return Reading({**self.weights, block: weight})

    def with_step(self, step: int) -> "Reading":
        """Round to whole numbers what is a multiple of 1 / step."""
        return Reading(self.weights, step)

    def loadings(self, deviations: _Deviations) -> dict[int, float]:
        """Return what the noise of the blocks does to the reading."""
        return {k: weight * deviations[k] for k, weight in self.weights.items()}

    def noise(self, deviations: _Deviations, rounded: int) -> dict[int, float]:
        """Return the loadings, and under a name of its own what rounding does."""
        noisy = self.rounding and any(deviations[k] for k in self.weights)
        return self.loadings(deviations) | ({rounded: self.rounding} if noisy else {})

    @property
    def rounding(self) -> float:
        """Deviation that rounding adds to noise, which leaves any multiple of the step as likely.

        The variance is `(1 - 1 / s^2) / 12` for steps of 1 / s if s is odd, `(1 + 2 / s^2) / 12` if
        it is even.
        """
        if self.step <= 1:
            return 0.0
        return math.sqrt((1 + (-1 if self.step % 2 else 2) / self.step**2) / 12)

    def of(self, measured: _Measured) -> np.ndarray:
        """Read the measured blocks."""
        if self.block is not None:
            return measured[self.block]
        read = sum((weight * measured[k] for k, weight in self.weights.items()), start=np.zeros(1))
        return round_whole(read) if self.step else read

    def predict(self, deviations: _Deviations, rounded: int) -> Prediction:
        """Return the error of the reading."""
        noise = self.noise(deviations, rounded)
        return Prediction(math.hypot(*noise.values()), block=self.block, loadings=noise)

    def decode(self, measured: _Measured, deviations: _Deviations, rounded: int) -> Estimate:
        """Estimate what is read."""
        return Estimate(self.of(measured), self.noise(deviations, rounded))


def round_whole(read: np.ndarray) -> np.ndarray:
    """Round to int64; what is beyond, after a sum that wrapped, goes to the largest."""
    rounded: np.ndarray = np.rint(np.clip(read, -_LARGEST, _LARGEST)).astype(np.int64)
    return rounded


@frozen(slots=True)
class QuotientReading:
    """A quotient, with how the totals of its features are read off the blocks."""

    statistic: Statistic
    features: Mapping[str, Reading]

    def loadings(self, deviations: _Deviations) -> dict[str, dict[int, float]]:
        """Return what the noise of the blocks does to the totals."""
        return {name: reading.loadings(deviations) for name, reading in self.features.items()}

    def predict(self, deviations: _Deviations, _: int) -> Prediction:
        """Return the largest error there can be."""
        noise = self.statistic.predict(self.loadings(deviations))
        return Prediction(math.hypot(*noise.values()), per_row=True, loadings=noise)

    def decode(self, measured: _Measured, deviations: _Deviations, _: int) -> Estimate:
        """Estimate the quotient."""
        values = {name: reading.of(measured) for name, reading in self.features.items()}
        totals = Totals(values, self.loadings(deviations))
        return Estimate(*self.statistic.estimate(totals), totals)


AnyReading: TypeAlias = Reading | QuotientReading
"""What an output can be read off."""


class Block(NamedTuple):
    """The measured integer `value * values + row * rows` of a source, in every cell.

    `everyone` times all rows of the cell and `square` times the squares are added to it. One of
    several columns is a moment, or one of the parts of a pair.
    """

    source: int
    value: int
    row: int
    everyone: int = 0
    square: int = 0
    part: str | None = None

    @property
    def parts(self) -> list[tuple[Need, int]]:
        """Totals with their integer weights."""
        terms: list[tuple[Need, int]] = [
            ((self.source, "value"), self.value),
            ((self.source, "rows"), self.row),
            ((EVERYONE, "rows"), self.everyone),
            ((self.source, "square"), self.square),
        ]
        if self.part is not None:
            terms.append(((self.source, self.part), 1))
        return [(need, weight) for need, weight in terms if weight]

    def of(self, totals: Mapping[Need, np.ndarray]) -> np.ndarray:
        """Combine totals, modulo 2**64."""
        parts = [
            totals[need] if weight == 1 else np.int64(weight) * totals[need]
            for need, weight in self.parts
        ]
        return reduce(np.add, parts)


@frozen
class LinearDesign:
    """Blocks to measure in every cell, their relative scales, and how to read the outputs.

    Parameters
    ----------
    workload
        The outputs wanted.
    blocks
        What is measured.
    scales
        Relative noise scales of the blocks.
    readings
        One for each output, and one for each extra output.
    together
        Blocks whose noise is drawn together; all others are drawn on their own.
    joined
        Whether what is drawn together is so over all cells, in place of each cell.
    """

    workload: Workload
    blocks: tuple[Block, ...]
    scales: tuple[float, ...]
    readings: tuple[AnyReading, ...]
    together: tuple[tuple[int, ...], ...] = ()
    joined: bool = False
    common: ClassVar[frozenset[int]] = frozenset()  # the noise of every cell is its own
    layers: ClassVar[None] = None  # a block has one integer per cell

    @cached_property
    def footprints(self) -> Parts:
        """What one row adds to the blocks of its cell."""
        blocks, most = self.blocks, self.workload.most
        parts: list[Footprint | Sparse | Exclusive] = []
        few = [k for k, block in enumerate(blocks) if block.value and most]
        if few and most:
            absent, present = self._kind_of_few([blocks[k] for k in few])
            parts.append(Sparse(few[0], len(few), absent, present, most))
        # blocks of one source move together, other sources on their own
        together: dict[int, list[int]] = {}
        for k in sorted({*range(len(blocks))} - {*few}):
            together.setdefault(blocks[k].source, []).append(k)
        of_source = {
            position: _footprint(self.workload.sources[position], [blocks[k] for k in mine], mine)
            for position, mine in together.items()
        }
        for sources in self.workload.exclusive:
            members = [of_source.pop(position) for position in sources if position in of_source]
            gone = [
                tuple(blocks[k].everyone * member.parts for k in member.coordinates)
                for member in members
            ]
            if members:
                parts.append(Exclusive(tuple(members), tuple(gone)))
        return (*parts, *of_source.values())

    def _kind_of_few(self, blocks: Sequence[Block]) -> tuple[int, int]:
        """Return what a row adds to queries of values 0 and 1 that it does not have, and has.

        Raises
        ------
        ValueError
            If they are not of one kind, or a row without a value adds something else.
        """
        kinds = {(block.row + block.everyone, block.value) for block in blocks}
        kinds |= {
            (block.everyone, block.value)
            for block in blocks
            if self.workload.sources[block.source].optional
        }
        if len(kinds) > 1:
            raise ValueError("queries of which a row has a few must be of one kind")
        ((absent, value),) = kinds
        return absent, absent + value

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Blocks that are drawn together, and those that are drawn on their own."""
        shared = {k for group in self.together for k in group}
        return (*self.together, *((k,) for k in range(len(self.blocks)) if k not in shared))

    @property
    def extra(self) -> int:
        """How many numbers of rows come after the outputs wanted."""
        return len(self.readings) - len(self.workload.outputs)

    @cached_property
    def needs(self) -> frozenset[Need]:
        """Totals to compute."""
        return frozenset(need for block in self.blocks for need, _ in block.parts)

    def movement(self, scales: Sequence[Scale], law: Law) -> Scale:
        """Return the largest weighted distance between neighbors, exact for fractions."""
        reach, neighboring = self.workload.reach, self.workload.neighboring
        # noise that is no box adds up over all blocks, however they are grouped
        groups = self.groups if law.inside == "max" else None
        return movement(
            self.footprints, scales, law.norm, reach, neighboring, groups=groups, joined=self.joined
        )

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals into the integers to measure."""
        return [block.of(totals) for block in self.blocks]

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the errors of the outputs, for the worst mean there can be."""
        by_block = self._deviations(deviations)
        return [reading.predict(by_block, ROUNDED - k) for k, reading in enumerate(self.readings)]

    def errors(self, deviations: Sequence[float]) -> list[float]:
        """Return the errors by which plans are compared: those predicted."""
        return [prediction.std_error for prediction in self.predict(deviations)]

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[Any]) -> list[Estimate]:
        """Read the outputs off the measured blocks."""
        blocks = dict(enumerate(measured))
        if self.workload.known_rows is not None:
            blocks[KNOWN] = self.workload.known_rows.rows
        by_block = self._deviations(deviations)
        readings = enumerate(self.readings)
        return [reading.decode(blocks, by_block, ROUNDED - k) for k, reading in readings]

    def _deviations(self, deviations: Sequence[Any]) -> dict[int, Any]:
        """Return the noise deviations of the blocks, and that of a public number of rows."""
        public_rows = self.workload.known_rows
        of_rows = 0.0 if public_rows is None else math.sqrt(public_rows.variance)
        return {KNOWN: of_rows} | dict(enumerate(deviations))


def parts_of(blocks: Sequence[Block]) -> int:
    """Return in what part of 1 the corners of some blocks count."""
    return 16 if any(block.square for block in blocks) else 1


def corners(source: Source, blocks: Sequence[Block]) -> tuple[tuple[int, ...], ...]:
    """Return the corners of what a row of the cell adds to some blocks of one source.

    Where squares are measured, they are those of a polygon around all values with their squares,
    as whole numbers of 1 / 16.
    """
    parts = parts_of(blocks)
    if source.others:
        return _around_several(source, blocks)
    values = [(source.lower, 0), (source.upper, 0)] if parts == 1 else _around(source)
    points = {
        tuple(
            block.value * value + (block.row + block.everyone) * parts + block.square * square
            for block in blocks
        )
        for value, square in values
    }
    if source.optional:
        points.add(tuple(block.everyone * parts for block in blocks))
    return tuple(sorted(points))


def _around_several(source: Source, blocks: Sequence[Block]) -> tuple[tuple[int, ...], ...]:
    """Return the corners of several columns: one part is all of it, or a row has no values.

    Moments are all the largest, or all the least: no rows are farther apart in any of them.
    """
    parts = parts_of_pair(source.degree)
    if any(block.part in parts for block in blocks):
        present = [[WHOLE * (block.part == part) for block in blocks] for part in parts]
    else:
        largest = [_largest(source, block.part) for block in blocks]
        present = [largest, [-most for most in largest]]
    rows = [block.row + block.everyone for block in blocks]
    points = {tuple(map(operator.add, corner, rows)) for corner in present}
    if source.optional:
        points.add(tuple(block.everyone for block in blocks))
    return tuple(sorted(points))


def _largest(source: Source, moment: str | None) -> int:
    """Return the largest that a row adds to a moment."""
    by_name = moments(len(source.bounds), source.degree)
    return 0 if moment is None else HALF ** sum(by_name[moment])


def _around(source: Source) -> list[tuple[int, int]]:
    """Sixteenths of values and squares: corners of a polygon around the curve `U = t^2 / h`.

    Its sides are the chord from end to end and the tangents at t = k h / 4, k from -4 to 4, which
    lie below: two of them meet at `t = (2 k + 1) h / 8, U = k (k + 1) h / 16`.
    """
    width, ends = source.upper - source.lower, source.upper + source.lower
    inner = [((2 * k + 1) * width + 8 * ends, k * (k + 1) * width) for k in range(-4, 4)]
    return [(16 * source.lower, 16 * width), *inner, (16 * source.upper, 16 * width)]


def _footprint(source: Source, blocks: Sequence[Block], places: Sequence[int]) -> Footprint:
    """Say what one row adds to blocks of one source, at these places."""
    return Footprint(tuple(places), corners(source, blocks), parts_of(blocks))


def move_alone(
    workload: Workload, blocks: Sequence[Block], norm: Norm, *, joined: bool = False
) -> tuple[float, ...]:
    """Return how far a neighbor can move each block, in the norm, where only that block counts.

    Where it is joined, over all cells, the cell that is moved the farthest counts.
    """
    reach, neighboring = workload.reach, workload.neighboring
    return move_in(workload.sources, blocks, norm, reach, neighboring, joined=joined)


def move_in(
    sources: Sequence[Source],
    blocks: Sequence[Block],
    norm: Norm,
    reach: Reach,
    neighboring: Neighboring,
    *,
    joined: bool = False,
) -> tuple[float, ...]:
    """Return the same for neighbors of which a unit fills so much."""
    setting = norm, reach, neighboring, joined
    return tuple(_single_movement(sources[block.source], block, *setting) for block in blocks)


@lru_cache  # many designs that are compared have the same blocks
def _single_movement(source: Source, block: Block, *setting: Any) -> float:
    return _block_movement(_footprint(source, [block], [0]), *setting)


@lru_cache  # many blocks have the same corners
def _block_movement(
    footprint: Footprint, norm: Norm, reach: Reach, neighboring: Neighboring, joined: bool
) -> float:
    """Return how far a neighbor can move a block of which one row adds a corner."""
    far = movement([footprint], (Fraction(1),), norm, reach, neighboring, joined=joined)
    return float(far) if norm == 1 else math.sqrt(far)
