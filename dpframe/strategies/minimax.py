"""Noise scales that make the worst relative variance of several outputs as small as it can be."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from dpframe.privacy.neighbors import Neighboring

Demand: TypeAlias = Mapping[int, float]
"""By block, the factor of its variance in the relative variance of an output."""

_LEAST = 1e-9


def worst_scales(
    reach: Sequence[float],
    demands: Sequence[Demand],
    n: int,
    neighboring: Neighboring,
    apart: int = 2,
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
        `h_k`, how far one row moves a block.
    demands
        What the outputs ask. An output reads block n and at most one other.
    n
        The block of the number of rows.
    neighboring
        The neighboring relation.
    apart
        a: how many cells two units fill that could share one, 2 or 1.
    """
    from scipy import optimize  # slow to import, and few releases need it

    replaced = neighboring == "replace"

    def squares(g: float, v: float) -> list[float]:
        found = [math.inf if h else 0.0 for h in reach]
        for demand in demands:
            for k, factor in demand.items():
                if k != n:
                    found[k] = min(found[k], (v - demand.get(n, 0.0) / g) / factor)
        found[n] = 1 / g
        return found

    def excess(v: float, g: float) -> float:
        moved = (
            h * h / s
            for k, (h, s) in enumerate(zip(reach, squares(g, v), strict=True))
            if h and k != n
        )
        return math.fsum(moved) - (min(0.25, 1 / apart - g) if replaced else 1 - g)

    def smallest(g: float) -> float:
        least = max(demand.get(n, 0.0) for demand in demands) / g
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
