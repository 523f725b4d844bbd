"""Counting queries of which a row has at most a few, lifted by the number of rows.

With d queries, of which a row has at most k, let `k* = (d + sqrt d) / 2`. For `k >= k*` take
`r = sqrt(d) / 2`, `t = 1 / 2` (Lebeda 2024); else `r = sqrt(k (d - k) / (d - 1))`, `t = (k - r) /
d` (Joseph and Yu 2024, the Count problem). Measure `f - t n` with noise of variance `s^2 = r (r +
t)` and `n` with `s^2 / gamma^2`, `gamma^2 = r t`, all relative to mu^2. In integers, with `t` near
`p / q`: `q f - p n`.
"""

import math
from fractions import Fraction

from dpframe.privacy.laws import Law
from dpframe.strategies.base import EVERYONE, Output, Workload
from dpframe.strategies.linear import Block, LinearDesign, Reading

_FINEST = 1000


def design(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan sparse counting queries; `None` without a limit on them or where nothing is gained."""
    asked = [output.source for output in workload.outputs if output.kind == "value"]
    others = [output for output in workload.outputs if output.kind != "value"]
    d, k = len(asked), workload.most
    if law.norm != 2 or k is None or workload.neighboring != "add_remove":  # noqa: PLR2004
        return None
    if any(output != Output("rows", EVERYONE) for output in others) or d < 2:  # noqa: PLR2004
        return None
    radius, shift = lift(d, k)
    if shift == 0:
        return None
    p, q = shift.numerator, shift.denominator
    blocks = (Block(EVERYONE, 0, 1), *(Block(source, q, 0, -p) for source in asked))
    spread, of_rows = scales_of(radius, float(shift))
    rows = Reading({0: 1.0})
    readings = [
        Reading({1 + asked.index(output.source): 1 / q, 0: p / q}, step=q)
        if output.kind == "value"
        else rows
        for output in workload.outputs
    ]
    readings += [] if others else [rows]
    return LinearDesign(workload, blocks, (of_rows, *(q * spread for _ in asked)), tuple(readings))


def scales_of(radius: float, shift: float) -> tuple[float, float]:
    """Return the scales of the lifted queries, s, and of what they are lifted by, s / gamma."""
    spread = math.sqrt(radius * (radius + shift))
    return spread, spread / math.sqrt(radius * shift)


def lift(d: int, k: int) -> tuple[float, Fraction]:
    """Return the radius r and the shift t of d queries of which a row has at most k.

    Examples
    --------
    >>> lift(100, 100)
    (5.0, Fraction(1, 2))
    """
    if k >= (d + math.sqrt(d)) / 2:
        return math.sqrt(d) / 2, Fraction(1, 2)
    radius = math.sqrt(k * (d - k) / (d - 1))
    return radius, Fraction((k - radius) / d).limit_denominator(_FINEST)
