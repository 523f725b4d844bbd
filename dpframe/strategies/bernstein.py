"""Measure rows, mean and variance of one column together, each with the whole epsilon.

A row with y in [-1, 1] adds `(1 - y)^2 / 4`, `(1 - y^2) / 2` and `(1 + y)^2 / 4` to P, Q and R (the
Bernstein polynomials of degree 2): all are at least 0, and add up to 1. So under Laplace noise they
cost no more than one number: a row moves them by exactly 1 in all. The number of rows is `P + Q +
R`, the sum of y is `R - P`, that of `y^2` is `P - Q + R`.

On integers, `t = 2 x - (l + u)` is y times the width h, and `U = ceil(t^2 / h)` is `y^2` times h:
the parts `h + U - 2 t`, `2 (h - U)` and `h + U + 2 t` add up to 4 h, and none is below 0 as long as
`2 |t| - h <= U <= h`. A row whose value is missing adds 1 to M in their place.
"""

from dpframe.privacy.laws import Law
from dpframe.strategies.base import EVERYONE, Output, Source, Workload
from dpframe.strategies.linear import AnyReading, Block, Dispersion, LinearDesign, Quotient, Reading


def design(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan the measurements; `None` unless all is about one column, its variance included.

    Parameters
    ----------
    workload
        The outputs wanted.
    law
        Law of the noise.
    """
    outputs = workload.outputs_and_rows
    about = {output.source for output in outputs} - {EVERYONE}
    if law.norm != 1 or len(about) != 1 or workload.most is not None or workload.known_rows:
        return None
    (position,) = about
    source = workload.sources[position]
    width = source.upper - source.lower
    if width == 0 or not any(output.is_dispersion for output in outputs):
        return None
    ends = source.lower + source.upper
    blocks = [
        Block(position, -4, width + 2 * ends, square=1),
        Block(position, 0, 2 * width, square=-2),
        Block(position, 4, width - 2 * ends, square=1),
    ]
    scales = [4.0 * width] * 3
    if source.optional and workload.everyone in outputs:
        blocks.append(Block(position, 0, -1, everyone=1))
        scales.append(1.0)
    readings = tuple(_reading(source, output) for output in outputs)
    return LinearDesign(workload, tuple(blocks), tuple(scales), readings)


def _reading(source: Source, output: Output) -> AnyReading:
    """Read an output off P, Q, R and M."""
    lower, upper = source.lower, source.upper
    whole = 4 * (upper - lower)
    rows = Reading({0: 1 / whole, 1: 1 / whole, 2: 1 / whole})
    if output.kind == "rows":
        missing = source.optional and output.source == EVERYONE
        return (rows.plus(3, 1.0) if missing else rows).whole(whole)
    if output.kind == "mean":
        return Quotient(Reading({0: -0.125, 2: 0.125}), rows, (lower, upper))
    if output.kind == "value":
        center = (lower + upper) / 2 / whole
        weights = {0: center - 0.125, 1: center, 2: center + 0.125}
        return Reading({k: weight for k, weight in weights.items() if weight}).whole(2 * whole)
    first = Reading({0: -1 / whole, 2: 1 / whole})
    rest = Reading({0: 0.5 / whole, 1: -1.5 / whole, 2: 0.5 / whole})
    return Dispersion(rows, first, rest, upper - lower, root=output.kind == "deviation")
