"""Measure one total of every cell with staircase noise.

Let a neighbor move the total of a cell by up to D, and m cells. Noise of period D and ratio b then
costs m log(1 / b), whatever the movement in each cell is. Where a unit is replaced by another one,
a cell with rows of both may move by up to E, D <= E <= 2 D. Then noise of period D costs up to
2 m log(1 / b), where m cells have rows of one unit; and noise of period E costs that of all cells
that move. The one with the smaller product of period and cells is taken.
"""

import math
from collections.abc import Sequence

from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Reach, Scale
from dpframe.privacy.staircase import MOST_MOVED
from dpframe.strategies.base import Workload
from dpframe.strategies.layout import separate
from dpframe.strategies.linear import Block, LinearDesign, move_in


@frozen
class StaircaseDesign(LinearDesign):
    """Blocks of which a neighbor moves one: no proof covers two that move in one cell.

    Parameters
    ----------
    stairs
        How many stairs a neighbor crosses at most, over all cells. The relative scale of the block
        is the most that it moves by in a cell on one stair.
    """

    stairs: int = 1

    def __post_init__(self) -> None:
        """Refuse two blocks that move: their worst rows need not be the ones that move each."""
        if sum(map(bool, self.scales)) != 1:
            raise ValueError("staircase noise is for one block that moves")

    def movement(self, scales: Sequence[Scale], law: Law) -> Scale:
        """Return stairs times `D / scale`, before the scales are settled."""
        pairs = zip(self.scales, scales, strict=True)
        zero = 0 * scales[0]
        return sum((self.stairs * int(moved) / s for moved, s in pairs if moved), start=zero)


def design(workload: Workload, law: Law) -> StaircaseDesign | None:
    """Plan one total of every cell; `None` where others move, too, or a stair is of one integer.

    Parameters
    ----------
    workload
        The outputs wanted.
    law
        Law of the noise.
    """
    rows_alone = all(output.kind.is_whole for output in workload.outputs)
    if rows_alone and workload.reach.rows == workload.weight == 1:  # most counts
        return None
    staircase = design_beside(workload, law)
    if staircase is None or max(staircase.scales) * workload.weight == 1:
        return None
    return staircase


def design_beside(workload: Workload, law: Law) -> StaircaseDesign | None:
    """Plan one total of every cell beside other tables, whatever the stairs."""
    if workload.is_layered or len(workload.outputs_and_rows) != 1:
        return None
    layout = separate(workload)
    steps = _steps(workload, layout.blocks)
    if sum(map(bool, steps)) != 1:
        return None
    period, stairs = next(filter(None, steps))
    if period > MOST_MOVED:
        return None
    scales = tuple(float(step[0]) if step else 0.0 for step in steps)
    return StaircaseDesign(workload, layout.blocks, scales, layout.readings, stairs=stairs)


def _steps(workload: Workload, blocks: Sequence[Block]) -> list[tuple[int, int] | None]:
    """Return the best period of every block and the stairs crossed; `None`: it does not move."""
    reach, both = workload.reach, workload.neighboring == "replace"
    cell = Reach(1, reach.rows, 0, 1, reach.always)
    alone = move_in(workload.sources, blocks, 1, cell, "add_remove")
    farthest = move_in(workload.sources, blocks, 1, cell, "replace", joined=True) if both else alone
    return [
        _best_step(reach, math.ceil(single), math.ceil(far), both=both) if far else None
        for single, far in zip(alone, farthest, strict=True)
    ]


def _best_step(reach: Reach, alone: int, farthest: int, *, both: bool) -> tuple[int, int]:
    """Return a period, and how many stairs a neighbor crosses at most."""
    if reach.always:
        return farthest, 1
    if not both:
        return alone, reach.touched
    steps = [(farthest, min(2 * reach.touched, reach.cells))]
    if alone:
        steps.append((alone, 2 * reach.touched))
    return min(steps, key=lambda step: (step[0] * step[1], step[1]))
