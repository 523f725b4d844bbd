"""What a law of noise does to the blocks of a design: deviations, group by group."""

import math
from collections.abc import Sequence

from dpframe.privacy.law import Law
from dpframe.strategies.base import Design


def members_of(design: Design, cells: int) -> dict[int, int]:
    """Return with how many coordinates, itself among them, one of each block is drawn.

    The first group of a joined design has one in every cell, or a single one for a common block.
    """
    members = {k: len(group) for group in design.groups for k in group}
    if design.joined:
        first = design.groups[0]
        members |= dict.fromkeys(first, sum(1 if k in design.common else cells for k in first))
    return members


def widest(design: Design, scales: Sequence[float]) -> float:
    """Return the largest scale of all integers that are measured, at these scales of blocks."""
    factor = 1.0 if design.layers is None else float(design.layers.profile.max(initial=0.0))
    return max(scales) * factor


def narrowest(design: Design, scales: Sequence[float]) -> float:
    """Return the smallest scale above 0 of all integers that are measured; infinite if none is."""
    factors = [1.0] if design.layers is None else design.layers.profile
    least = min((factor for factor in factors if factor), default=math.inf)
    return min((scale for scale in scales if scale), default=math.inf) * float(least)


def deviations_of(
    law: Law, design: Design, scales: Sequence[float], cells: int
) -> tuple[float, ...]:
    """Return the standard deviation of the rounded noise of every block.

    Where blocks have layers, these say what noise of a scale does: then it is the scale.
    """
    if design.layers is not None:
        return tuple(scales)
    members = map(members_of(design, cells).__getitem__, range(len(scales)))
    kinds = list(zip(scales, members, strict=True))
    found = {kind: law.deviation_among(*kind) for kind in dict.fromkeys(kinds)}
    return tuple(map(found.__getitem__, kinds))
