"""Lift all totals of a cell by its number of rows, so that they share noise.

Lebeda (2024), generalized. A column whose rows lie in [l, u] is measured as `2 f - (l + u) n`,
which one row moves by at most its width `w = u - l` either way, and the number of rows `n` is
measured once. Then `f = (Z + (l + u) n) / 2`: the error of `n` is common to all outputs of the
cell.

With `q_k` the weight of the variance of block k in the sum of all outputs' variances, each relative
to the squared width of its output, and `h_k` how far one row moves the block (1 for `n`):

- Adding or removing a unit moves the blocks by at most `K sum_k h_k^2 / sigma_k^2`. The best scales
  are `sigma_k^2 ~ h_k / sqrt(q_k)`.
- Replacing a unit moves them by at most K times `max(4 A, 2 A + 2 / sigma_n^2)`, with
  `A = sum_{k != n} h_k^2 / sigma_k^2`. The best scales are the same except for `n`:
  `1 / sigma_n^2 = A max(1, sqrt(q_n) / P)`, with `P = sum_{k != n} h_k sqrt(q_k)`. Where both units
  fill the same cells, there being no others, it is `max(4 A, A + 1 / sigma_n^2)`, and 3 takes the
  place of 1.

For Laplace noise lengths add up in place of squares: `sigma_k ~ (h_k / q_k)^(1/3)`, and 1 and 0
take the places of 3 and 1.

For d counting queries these are gamma^2 = sqrt(d) / 4 (Lebeda 2024, Lemma 6) and gamma^2 = d / 4
(Algorithm 2, for replacement in disjoint groups). Where `n` is public it is not measured (Lemma
12).
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Neighboring
from dpframe.privacy.sensitivity import Norm
from dpframe.strategies.base import Workload
from dpframe.strategies.layout import best_scales, depend_on_rows, lift_totals, parts, weights
from dpframe.strategies.linear import LinearDesign, corners, parts_of

Demand: TypeAlias = Mapping[int, float]
"""By block, the factor of its variance in the relative variance of an output."""

_LEAST = 1e-9  # distance of a weight from where it means nothing


def worst_scales(
    reach: Sequence[float], demands: Sequence[Demand], neighboring: Neighboring, apart: int
) -> tuple[float, ...]:
    """Return relative scales that minimize the worst relative variance.

    With `g = 1 / sigma_n^2`, the smallest V such that every output has variance at most V solves
    `sum_{k != n} h_k^2 / sigma_k^2 = A(g)`, where `sigma_k^2` is the largest that the outputs that
    read block k allow, and A(g) is the largest for which no unit moves farther than 1: `1 - g`
    where it is added or removed, `min(1/4, 1 / a - g)` where it is replaced. V is then minimized
    over g.

    Parameters
    ----------
    reach
        `h_k`, how far one row moves a block; block n, the number of rows, is the first.
    demands
        What the outputs ask. An output reads block n and at most one other.
    neighboring
        The neighboring relation.
    apart
        a: how many cells two units fill that could share one, 2 or 1.
    """
    from scipy import optimize  # slow to import, and few releases need it

    replaced = neighboring == "replace"

    def squares(g: float, v: float) -> list[float]:
        largest = [math.inf if h else 0.0 for h in reach]
        for demand in demands:
            for k, factor in demand.items():
                if k:
                    largest[k] = min(largest[k], (v - demand.get(0, 0.0) / g) / factor)
        largest[0] = 1 / g
        return largest

    def excess(v: float, g: float) -> float:
        moved = (h * h / s for h, s in zip(reach[1:], squares(g, v)[1:], strict=True) if h)
        return math.fsum(moved) - (min(0.25, 1 / apart - g) if replaced else 1 - g)

    def smallest(g: float) -> float:
        least = max(demand.get(0, 0.0) for demand in demands) / g
        # at the least itself, an output would leave no variance for its other block
        low = least * (1 + 1e-12) + 1e-300
        high = max(1.0, 2 * least)
        while excess(high, g) > 0:
            high *= 2
        if excess(low, g) <= 0:
            return low
        return float(optimize.brentq(excess, low, high, args=(g,), xtol=1e-300, rtol=1e-14))

    most = (1 / apart if replaced else 1) - _LEAST
    best = optimize.minimize_scalar(
        smallest, bounds=(_LEAST, most), method="bounded", options={"xatol": 1e-10}
    )
    g = float(best.x)
    return tuple(math.sqrt(square) for square in squares(g, smallest(g)))


def design(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan correlated measurements; `None` where sharing noise cannot help.

    Parameters
    ----------
    workload
        The outputs wanted.
    law
        Law of the noise.
    """
    if workload.rows_public or workload.most is not None or _alone(workload):
        return None
    layout = lift_totals(workload, as_asked=law.norm == 1)
    block_weights = weights(workload, layout)
    if not depend_on_rows(workload, block_weights):
        return None
    reach = [
        max(abs(corner) for (corner,) in corners(workload.sources[block.source], [block]))
        / parts_of([block])
        for block in layout.blocks
    ]
    if workload.worst and law.norm != 1 and not workload.known_rows:
        # what each linear part of an output asks of the blocks, relative to its width
        demands = [
            {k: factor * weight**2 for k, weight in reading.weights.items()}
            for reading, factor in parts(workload, layout)
        ]
        demands += [{0: workload.rows_weight}] if workload.rows_weight else []
        scales = worst_scales(reach, demands, workload.neighboring, _units_apart(workload))
    else:
        shares = [block_weights[k] for k in range(len(layout.blocks))]
        scales = _scales(workload, reach, shares, law.norm)
    return LinearDesign(workload, layout.blocks, scales, layout.readings)


def _alone(workload: Workload) -> bool:
    """Whether there is a single output, which has nothing to share its noise with.

    Where a unit is replaced, the two integers of a mean still gain from not moving together.
    """
    if len(workload.outputs) > 1 or workload.rows_weight or workload.known_rows:
        return False
    return workload.neighboring == "add_remove" or not workload.outputs[0].kind.is_mean


def _units_apart(workload: Workload) -> int:
    """How many cells two units fill that could share one: 2, unless there are no others."""
    return 2 if workload.reach.cells > workload.reach.full else 1


def _scales(
    workload: Workload, reach: Sequence[float], shares: Sequence[float], norm: Norm
) -> tuple[float, ...]:
    """Relative scales that minimize the weighted sum of variances."""
    scales = best_scales(reach, shares, norm)
    if workload.neighboring == "add_remove" or workload.known_rows:
        return scales
    moved = [(h / s) ** norm if h else 0.0 for h, s in zip(reach, scales, strict=True)]
    free = (2**norm / _units_apart(workload) - 1) * math.fsum(moved[1:])
    return (max(moved[0], free) ** (-1 / norm), *scales[1:])
