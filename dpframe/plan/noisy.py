"""A design with its noise: what the law of the noise does to the blocks, group by group."""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.checker.noise import BlockNoise
from dpframe.forks import cached_property
from dpframe.privacy.law import Law
from dpframe.strategies.base import Design, Estimate, Need, Prediction, Workload


@dataclass(frozen=True, eq=False)
class NoisyDesign:
    """Integers that are measured together, with their noise; equal to itself alone.

    Parameters
    ----------
    workload
        What is wanted.
    design
        What is measured and how it is decoded.
    law
        The law of the noise.
    scales
        Noise scales of the measured blocks: sigma of a Gaussian, b of a Laplace.
    """

    workload: Workload
    design: Design
    law: Law
    scales: tuple[float, ...]

    @cached_property
    def needs(self) -> list[Need]:
        """What engines are asked for, in order."""
        return sorted(self.design.needs)

    def encode(self, totals: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Turn totals into the integers that noise is added to."""
        return self.design.encode(dict(zip(self.needs, totals, strict=True)))

    def decode(self, measured: Sequence[np.ndarray]) -> list[Estimate]:
        """Turn noisy integers into estimates of the outputs."""
        return self.design.decode(measured, self.deviations)

    @cached_property
    def members(self) -> dict[int, int]:
        """With how many coordinates, itself among them, one of each block is drawn.

        The first group of a joined design has one in every cell, or a single one for a common
        block.
        """
        design = self.design
        members = {k: len(group) for group in design.groups for k in group}
        if design.joined:
            first = design.groups[0]
            number = sum(1 if k in design.common else self.workload.cells for k in first)
            members |= dict.fromkeys(first, number)
        return members

    @cached_property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation of the rounded noise of every block.

        Where blocks have layers, these say what noise of a scale does: then it is the scale.
        """
        if self.design.layers is not None:
            return tuple(self.scales)
        kinds = [(scale, self.members[k]) for k, scale in enumerate(self.scales)]
        deviations = {kind: self.law.deviation_among(*kind) for kind in dict.fromkeys(kinds)}
        return tuple(deviations[kind] for kind in kinds)

    @cached_property
    def variance(self) -> float:
        """Variance of all outputs wanted, relative to the ranges of what a row adds."""
        return relative_variance(self.workload, self.design.errors(self.deviations))

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """The errors of all outputs."""
        return tuple(self.design.predict(self.deviations))

    @cached_property
    def noise(self) -> BlockNoise:
        """The noise of the blocks: what is checked is drawn."""
        design = self.design
        profile = None if design.layers is None else design.layers.profile
        return BlockNoise(self.law, self.scales, design.groups, design.joined, profile)

    @property
    def is_over_cells(self) -> bool:
        """Whether all that is measured is so over many cells, which then err together."""
        design = self.design
        return design.layers is not None or len(design.common) == len(self.scales)

    @cached_property
    def shared(self) -> list[tuple[int, ...]]:
        """Blocks whose noise is drawn together: of several, or over all cells."""
        return [
            group
            for position, group in enumerate(self.design.groups)
            if len(group) > 1 or (position == 0 and self.design.joined)
        ]


def widest(design: Design, scales: Sequence[float]) -> float:
    """Return the largest scale of all integers that are measured, at these scales of blocks."""
    factor = 1.0 if design.layers is None else float(design.layers.profile.max(initial=0.0))
    return max(scales) * factor


def narrowest(design: Design, scales: Sequence[float]) -> float:
    """Return the smallest scale above 0 of all integers that are measured; infinite if none is."""
    factors = [1.0] if design.layers is None else design.layers.profile
    least = min((factor for factor in factors if factor), default=math.inf)
    return min((scale for scale in scales if scale), default=math.inf) * float(least)


def relative_variance(workload: Workload, errors: Sequence[float]) -> float:
    """Return the variance of all outputs wanted, relative to the ranges of what a row adds.

    The number of rows counts with its weight, once more where it is an output itself. Of several
    tables of a query, it is the mean, by their weights; those of several queries add up.
    """
    domain, size = workload.domain, len(workload.outputs)
    outputs = (*workload.outputs, workload.everyone)
    widths = [workload.width(output) * workload.weight for output in outputs]
    rows = outputs.index(workload.everyone)

    def of_table(own: Sequence[float]) -> float:
        squares = [(error / width) ** 2 for error, width in zip(own, widths, strict=False)]
        return sum(squares[:size]) + workload.rows_weight * sum(squares[rows : rows + 1])

    if domain.margins:
        weights = domain.weights or (1.0,) * len(domain.margins)
        variances = [of_table(errors[at : at + size]) for at in range(0, len(errors), size)]
        whole = 1.0 if domain.apart else math.fsum(weights)
        return math.fsum(map(operator.mul, weights, variances)) / whole
    return of_table(errors)
