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
  `1 / sigma_n^2 = A max(1, sqrt(q_n) / P)`, with `P = sum_{k != n} h_k sqrt(q_k)`.

For d counting queries these are gamma^2 = sqrt(d) / 4 (Lebeda 2024, Theorem 6) and gamma^2 = d / 4
(Algorithm 2, for replacement in disjoint groups). Where `n` is public it is not measured (Lemma
12).
"""

import math
from collections.abc import Sequence

from dpframe.privacy.sensitivity import Norm
from dpframe.strategies.base import Output, Workload
from dpframe.strategies.linear import (
    EVERYONE,
    KNOWN,
    Block,
    LinearDesign,
    Quotient,
    Reading,
    corners,
)
from dpframe.strategies.minimax import Demand, worst_scales

__all__ = ["design"]


def design(workload: Workload, norm: Norm) -> LinearDesign | None:
    """Plan correlated measurements; `None` where sharing noise cannot help.

    Parameters
    ----------
    workload
        The outputs wanted.
    norm
        2: the gain is one of Euclidean geometry, so only Gaussian noise has it.
    """
    # rows that are always there, and only replaced, are of a public number
    public = workload.reach.always and workload.neighboring == "replace"
    if norm == 1 or public or workload.most is not None:
        return None
    alone = len(workload.outputs) == 1 and not workload.rows_weight
    if alone and workload.known_rows is None:
        return None  # a single output has nothing to share its noise with
    blocks: list[Block] = [] if workload.known_rows else [Block(EVERYONE, 0, 1)]
    readings = [_reading(workload, output, blocks) for output in workload.outputs]
    weights = _weights(workload, readings)
    everyone = _everyone(workload)
    (n,) = everyone.weights
    if not weights.get(n) or len(weights) == 1:
        return None  # nothing depends on the number of rows, or nothing else does
    weights[n] += workload.rows_weight
    if Output("rows", EVERYONE) not in workload.outputs and n != KNOWN:
        readings.append(everyone)
    reach = [
        max(abs(corner) for (corner,) in corners(workload.sources[block.source], [block]))
        for block in blocks
    ]
    if workload.worst and n != KNOWN:
        scales = worst_scales(reach, _demands(workload, readings), n, workload.neighboring)
    else:
        scales = _scales(workload, reach, [weights[k] for k in range(len(blocks))])
    return LinearDesign(workload, tuple(blocks), scales, tuple(readings))


def _place(blocks: list[Block], block: Block) -> int:
    """Position of a block, added if it is new."""
    if block not in blocks:
        blocks.append(block)
    return blocks.index(block)


def _everyone(workload: Workload) -> Reading:
    """All rows of the cell: measured first, or known."""
    return Reading({KNOWN if workload.known_rows else 0: 1.0})


def _reading(workload: Workload, output: Output, blocks: list[Block]) -> Reading | Quotient:
    """Read an output off blocks, adding those it needs."""
    if output.kind == "rows":
        return _rows(workload, output.source, blocks)
    if output.kind == "value":
        return _value(workload, output.source, blocks)
    source = workload.sources[output.source]
    centered = Reading({_place(blocks, _centered(workload, output.source)): 0.5})
    rows = _rows(workload, output.source, blocks)
    return Quotient(centered, rows, (source.lower, source.upper))


def _centered(workload: Workload, position: int) -> Block:
    """Sum of a source's values minus the center of its bounds, doubled."""
    source = workload.sources[position]
    return Block(position, 2, -(source.lower + source.upper))


def _rows(workload: Workload, position: int, blocks: list[Block]) -> Reading:
    """Rows of a source: all of the cell, or a query of its own in [0, 1]."""
    everyone = _everyone(workload)
    if not workload.sources[position].optional:
        return everyone
    return everyone.times(0.5).plus(_place(blocks, Block(position, 0, 2, everyone=-1)), 0.5)


def _value(workload: Workload, position: int, blocks: list[Block]) -> Reading:
    """Sum of a source's values, from the rows of the source if they are measured anyway."""
    source = workload.sources[position]
    averaged = Output("mean", position) in workload.outputs
    if averaged or not source.optional:
        rows = _rows(workload, position, blocks)
        center = (source.lower + source.upper) / 2
        return rows.times(center).plus(_place(blocks, _centered(workload, position)), 0.5)
    lower, upper = source.hull
    lifted = _place(blocks, Block(position, 2, 0, everyone=-(lower + upper)))
    return _everyone(workload).times((lower + upper) / 2).plus(lifted, 0.5)


def _parts(
    workload: Workload, readings: Sequence[Reading | Quotient]
) -> list[tuple[Reading, float]]:
    """Linear parts of the outputs, with the weight of their variance."""
    parts = []
    for output, reading in zip(workload.outputs, readings, strict=False):
        weight = 1 / workload.width(output) ** 2
        if isinstance(reading, Quotient):
            # the worst mean is half a width away from the center
            parts += [(reading.centered, weight), (reading.rows, 0.25)]
        else:
            parts.append((reading, weight))
    return parts


def _weights(workload: Workload, readings: Sequence[Reading | Quotient]) -> dict[int, float]:
    """Return the weights of the blocks' variances in the sum of the outputs' relative variances."""
    weights: dict[int, float] = {}
    for reading, factor in _parts(workload, readings):
        for k, weight in reading.weights.items():
            weights[k] = weights.get(k, 0.0) + factor * weight**2
    return weights


def _demands(workload: Workload, readings: Sequence[Reading | Quotient]) -> list[Demand]:
    """Say what every linear part of an output asks of the blocks, relative to its width."""
    demands: list[Demand] = [
        {k: factor * weight**2 for k, weight in reading.weights.items()}
        for reading, factor in _parts(workload, readings)
    ]
    return [*demands, {0: workload.rows_weight}] if workload.rows_weight else demands


def _scales(
    workload: Workload, reach: Sequence[int], weights: Sequence[float]
) -> tuple[float, ...]:
    """Relative scales that minimize the weighted sum of variances."""
    squares = [h / math.sqrt(weight) for h, weight in zip(reach, weights, strict=True)]
    if workload.neighboring == "replace" and not workload.known_rows:
        shared = math.fsum(
            h * math.sqrt(weight) for h, weight in zip(reach[1:], weights[1:], strict=True)
        )
        squares[0] = 1 / max(shared, math.sqrt(weights[0]))
    return tuple(math.sqrt(square) for square in squares)
