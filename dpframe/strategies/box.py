"""Share the noise of a box among the blocks of a cell, or among all cells.

Noise in a box of D blocks with scales `s_k` has variance `s_k^2 c(D)`, `c(D) = (D + 1)(D + 2) / 3`,
and a movement costs the largest `|moved_k| / s_k`, where noise of D single blocks costs their sum.
Let `q_k` be the weight of the variance of block k, and `h_k` how far a neighbor moves it. Boxes g
with `Q_g = sum_{k in g} q_k h_k^2` have the least weighted sum of variances,

    V = (sum_g (Q_g c(D_g))^(1/3))^3 / epsilon^2,   at   s_k = h_k / (Q_g c(D_g))^(1/3),

up to a common factor. V is concave in what two boxes of given sizes exchange. So the best boxes are
runs of the blocks in the order of `q_k h_k^2`, found by dynamic programming, and blocks that are
alike are never torn apart. A box of one block is the discrete Laplace law: singles are a case, too.
"""

import math
from collections.abc import Sequence

import numpy as np

from dpframe.privacy.box import spread
from dpframe.privacy.law import Law
from dpframe.strategies.base import Workload
from dpframe.strategies.layout import Layout, depend_on_rows, lift_totals, separate, weights
from dpframe.strategies.linear import LinearDesign, move_alone

MOST_JOINED = 10_000
"""Most coordinates that share one draw over all cells, which is made one by one."""

_ALIKE = 1e-9  # relative: costs that close are one


def runs(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan boxes of totals on their own; `None` where every box would be of one block."""
    return None if _alone(workload) else _in_runs(workload, separate(workload))


def runs_lifted(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan boxes of totals lifted by the rows of the cell; `None` where that gains nothing."""
    layout = None if _alone(workload) else _lift_totals(workload)
    return None if layout is None else _in_runs(workload, layout)


def plan_over_cells(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan one box over all cells; `None` where a unit moves one cell only."""
    return _in_one(workload, separate(workload)) if _over_cells(workload) else None


def joined_lifted(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan one box over all cells, of totals lifted by the rows of their cell."""
    layout = _lift_totals(workload) if _over_cells(workload) else None
    return None if layout is None else _in_one(workload, layout)


def best_boxes(squares: Sequence[float] | np.ndarray) -> list[tuple[int, ...]]:
    """Return the best boxes of blocks with `q_k h_k^2` in `squares`, all positive.

    Examples
    --------
    >>> best_boxes([1, 1, 1, 1000])
    [(3,), (0, 1, 2)]
    """
    # stable: blocks that are alike keep their order, so that a workload has one plan
    order = np.argsort(-np.asarray(squares, np.float64), kind="stable")
    falling = np.asarray(squares, np.float64)[order]
    ends = [0, *_kinds(falling)]
    sizes = np.array(ends, np.float64)
    sums = np.concatenate([[0.0], np.cumsum(falling)])[ends]
    best = np.zeros(len(ends))
    starts = np.zeros(len(ends), np.intp)
    for j in range(1, len(ends)):
        size = sizes[j] - sizes[:j]
        costs = best[:j] + np.cbrt((sums[j] - sums[:j]) * spread(size))
        starts[j] = costs.argmin()
        best[j] = costs[starts[j]]
    boxes, j = [], len(ends) - 1
    while j:
        boxes.append(tuple(np.sort(order[ends[starts[j]] : ends[j]]).tolist()))
        j = starts[j]
    return boxes[::-1]


def boxes_of(
    reach: Sequence[float], weights: Sequence[float]
) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """Return the best boxes of two blocks or more, and the best relative scales of all blocks.

    Parameters
    ----------
    reach, weights
        `h_k` and `q_k` of every block; one that no neighbor moves is in no box, at scale 0.
    """
    far = np.asarray(reach, np.float64)
    (moving,) = far.nonzero()
    squares = np.asarray(weights, np.float64)[moving] * far[moving] ** 2
    boxes, scales = [], np.zeros(len(far))
    for places in map(list, best_boxes(squares)):
        box = moving[places]
        boxes.append(tuple(box.tolist()))
        scales[box] = far[box] / np.cbrt(spread(len(box)) * math.fsum(squares[places].tolist()))
    return tuple(box for box in boxes if len(box) > 1), tuple(scales.tolist())


def _kinds(falling: np.ndarray) -> list[int]:
    """Where each run of blocks that are alike ends, in a falling order."""
    apart = np.flatnonzero(falling[1:] < falling[:-1] * (1 - _ALIKE)) + 1
    return [*apart.tolist(), *([len(falling)] if len(falling) else [])]


def _alone(workload: Workload) -> bool:
    """Whether there is a single output: single blocks, or a pair of them, do as well for it."""
    single = len(workload.outputs) == 1 and not workload.rows_weight
    return single and not workload.is_of_several


def _lift_totals(workload: Workload) -> Layout | None:
    """Totals lifted by the rows of the cell, where something but the rows depends on them."""
    if workload.rows_public:
        return None
    layout = lift_totals(workload, as_asked=True)
    return layout if depend_on_rows(workload, weights(workload, layout)) else None


def _in_runs(workload: Workload, layout: Layout) -> LinearDesign | None:
    """Measure the blocks of a layout in the best boxes."""
    reach = move_alone(workload, layout.blocks, 1)
    block_weights = weights(workload, layout)
    together, scales = boxes_of(reach, [block_weights.get(k, 0.0) for k in range(len(reach))])
    if not together:
        return None
    return LinearDesign(workload, layout.blocks, scales, layout.readings, together)


def _over_cells(workload: Workload) -> bool:
    """Whether a neighbor can move several cells."""
    reach = workload.reach
    most = reach.full + (reach.rest > 0)
    return reach.cells > 1 and (most > 1 or workload.neighboring == "replace")


def _in_one(workload: Workload, layout: Layout) -> LinearDesign | None:
    """Measure the blocks of a layout in one box over all cells."""
    reach = move_alone(workload, layout.blocks, 1, joined=True)
    moving = tuple(k for k, h in enumerate(reach) if h)
    if not moving or len(moving) * workload.cells > MOST_JOINED:
        return None
    return LinearDesign(workload, layout.blocks, reach, layout.readings, (moving,), joined=True)
