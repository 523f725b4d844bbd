"""Measure every total on its own, with independent noise.

With `q_k` the weight of the variance of total k in the sum of all outputs' variances, each relative
to the squared width of its output, and `h_k` how far a neighbor moves it, the best scales are
`sigma_k ~ (h_k / q_k)^(1/3)` for Laplace and `sigma_k ~ sqrt(h_k / sqrt(q_k))` for Gaussian noise.
Totals of rows that exclude each other cost as much as one of them. So do the parts of a pair of
columns, which add up to 1: a row moves them by 1 in all, and by no more under Gaussian noise; a
replaced row by 2, or by the root of 2.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Scale
from dpframe.statistics.moments import parts_of_pair
from dpframe.strategies.base import Design, Estimate, Layers, Need, Prediction, Workload
from dpframe.strategies.layout import Layout, has_parts, separate, share_in_sets, weights
from dpframe.strategies.linear import LinearDesign, move_alone


def design(workload: Workload, law: Law) -> LinearDesign:
    """Plan independent measurements of a workload.

    Parameters
    ----------
    workload
        The outputs wanted.
    law
        Law of the noise.
    """
    return _share(workload, separate(workload), law)


def plan_parts(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan the same with pairs of columns in parts; `None` where there are none."""
    if not any(has_parts(source, in_parts=True) for source in workload.sources):
        return None
    return _share(workload, separate(workload, in_parts=True), law)


def _share(workload: Workload, layout: Layout, law: Law) -> LinearDesign:
    reach = move_alone(workload, layout.blocks, law.norm)
    block_weights = weights(workload, layout)
    shares = _count_together(workload, layout, reach, [block_weights[k] for k in range(len(reach))])
    scales = share_in_sets(workload, layout.blocks, reach, shares, law.norm)
    return LinearDesign(workload, layout.blocks, scales, layout.readings)


def _count_together(
    workload: Workload, layout: Layout, reach: Sequence[float], shares: Sequence[float]
) -> list[float]:
    """Let each block of a source in parts count for all of them."""
    of_source: dict[int, float] = {}
    together = {
        block.source
        for block in layout.blocks
        if block.part in parts_of_pair(workload.sources[block.source].degree)
    }
    for block, far, share in zip(layout.blocks, reach, shares, strict=True):
        of_source[block.source] = of_source.get(block.source, 0.0) + share * far**2
    return [
        of_source[block.source] / far**2 if block.source in together else share
        for block, far, share in zip(layout.blocks, reach, shares, strict=True)
    ]


@frozen(eq=False)
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
        # equal scales stay one object, which designs with many of them rely on to be fast
        by_scale = {scale: scale / self.weight for scale in set(scales)}
        return self.design.movement([by_scale[scale] for scale in scales], law)

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
