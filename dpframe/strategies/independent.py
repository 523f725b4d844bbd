"""Measure every total on its own, with independent noise.

A mean is measured as two integers, the sum of values centered between the bounds, `2 x - (l + u)`,
and the number of rows. Centering halves the reach of the sum at least; the two together cost as
much as two totals. The scales make every measured integer equally accurate relative to how far one
unit can move it.
"""

from dpframe.privacy.sensitivity import Norm
from dpframe.strategies.base import Output, Workload
from dpframe.strategies.linear import Block, LinearDesign, Quotient, Reading, move_alone

__all__ = ["design"]


def design(workload: Workload, norm: Norm) -> LinearDesign:
    """Plan independent measurements of a workload.

    Parameters
    ----------
    workload
        The outputs wanted.
    norm
        2 for Gaussian noise, 1 for Laplace noise.
    """
    outputs = workload.outputs
    if workload.rows_weight and workload.everyone not in outputs:
        outputs += (workload.everyone,)  # where it matters, the number of rows is released
    needed = [_blocks(workload, output) for output in outputs]
    blocks = tuple(dict.fromkeys(block for some in needed for block in some))
    readings = tuple(
        _reading(workload, output, [blocks.index(block) for block in some])
        for output, some in zip(outputs, needed, strict=True)
    )
    return LinearDesign(workload, blocks, move_alone(workload, blocks, norm), readings)


def _blocks(workload: Workload, output: Output) -> tuple[Block, ...]:
    """Integers that one output needs."""
    rows = Block(output.source, 0, 1)
    if output.kind == "rows":
        return (rows,)
    if output.kind == "value":
        return (Block(output.source, 1, 0),)
    source = workload.sources[output.source]
    return (Block(output.source, 2, -(source.lower + source.upper)), rows)


def _reading(workload: Workload, output: Output, at: list[int]) -> Reading | Quotient:
    """Read an output off its blocks."""
    if output.kind != "mean":
        return Reading({at[0]: 1.0})
    source = workload.sources[output.source]
    return Quotient(Reading({at[0]: 0.5}), Reading({at[1]: 1.0}), (source.lower, source.upper))
