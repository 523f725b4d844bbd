"""Measure every total on its own, with independent noise.

With `q_k` the weight of the variance of total k in the sum of all outputs' variances, each relative
to the squared width of its output, and `h_k` how far a neighbor moves it, the best scales are
`sigma_k ~ (h_k / q_k)^(1/3)` for Laplace and `sigma_k ~ sqrt(h_k / sqrt(q_k))` for Gaussian noise.
Totals of rows that exclude each other cost as much as one of them. So do the parts of a pair of
columns, which add up to 1: a row moves them by 1 in all, and by no more under Gaussian noise; a
replaced row by 2, or by the root of 2.
"""

from collections.abc import Sequence

from dpframe.privacy.law import Law
from dpframe.statistics.moments import parts_of_pair
from dpframe.strategies.base import Workload
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
    found = weights(workload, layout)
    shares = _count_together(workload, layout, reach, [found[k] for k in range(len(reach))])
    scales = share_in_sets(workload, layout.blocks, reach, shares, law.norm)
    return LinearDesign(workload, layout.blocks, scales, layout.readings)


def _count_together(
    workload: Workload, layout: Layout, reach: Sequence[float], shares: Sequence[float]
) -> list[float]:
    """Let each block of a source in parts count for all of them."""
    whole: dict[int, float] = {}
    together = {
        block.source
        for block in layout.blocks
        if block.part in parts_of_pair(workload.sources[block.source].degree)
    }
    for block, far, share in zip(layout.blocks, reach, shares, strict=True):
        whole[block.source] = whole.get(block.source, 0.0) + share * far**2
    return [
        whole[block.source] / far**2 if block.source in together else share
        for block, far, share in zip(layout.blocks, reach, shares, strict=True)
    ]
