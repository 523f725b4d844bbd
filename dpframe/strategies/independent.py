"""Measure every total on its own, with independent noise.

With `q_k` the weight of the variance of total k in the sum of all outputs' variances, each relative
to the squared width of its output, and `h_k` how far a neighbor moves it, the best scales are
`sigma_k ~ (h_k / q_k)^(1/3)` for Laplace and `sigma_k ~ sqrt(h_k / sqrt(q_k))` for Gaussian noise.
Totals of rows that exclude each other cost as much as one of them.
"""

from dpframe.privacy.law import Law
from dpframe.strategies.base import Workload
from dpframe.strategies.layout import separate, share_in_sets, weights
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
    layout = separate(workload)
    found = weights(workload, layout)
    shares = [found[k] for k in range(len(layout.blocks))]
    reach = move_alone(workload, layout.blocks, law.norm)
    scales = share_in_sets(workload, layout.blocks, reach, shares, law.norm)
    return LinearDesign(workload, layout.blocks, scales, layout.readings)
