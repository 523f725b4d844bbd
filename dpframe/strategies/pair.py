"""Measure one column of values from both of its bounds, each time with the whole allowance.

A row with value x in [l, u] adds `x - l` to A and `u - x` to B, which together are the width
`w = u - l`. A row whose value is missing adds 1 to M in their place. So under Laplace noise all of
them cost no more than one: `|dA| / w + |dB| / w + |dM| <= 1` for one row. With noise of scale `w /
epsilon` on A and B and `1 / epsilon` on M, the rows with a value are `(A + B) / w`, all rows `(A +
B) / w + M`, and the sum of the values is `(u A + l B) / w`. The squares add up to no more than one,
either: Gaussian noise has `1 / mu` in place of `1 / epsilon`.

It is the two-dimensional case of noise in a box, turned by 45 degrees (Kulesza, Suresh and Wang
2023, "transformed noise"), on the integers.
"""

import math

from dpframe.privacy.laws import Law
from dpframe.strategies.base import EVERYONE, Output, Source, Workload
from dpframe.strategies.linear import Block, LinearDesign, Quotient, Reading


def design(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan the measurements; `None` unless everything asked is about one column of values.

    Parameters
    ----------
    workload
        The outputs wanted.
    law
        Law of the noise.
    """
    outputs = workload.outputs_and_rows
    about = {output.source for output in outputs} - {EVERYONE}
    if len(about) != 1 or workload.most is not None or workload.known_rows:
        return None
    (position,) = about
    source = workload.sources[position]
    width = source.upper - source.lower
    # there is nothing to share, or a sum alone, which is measured as it is
    alone = width == 0 or outputs == (Output("value", position),)
    if alone or any(output.is_dispersion for output in outputs):
        return None
    blocks = [Block(position, 1, -source.lower), Block(position, -1, source.upper)]
    if source.optional and workload.everyone in outputs:
        blocks.append(Block(position, 0, -1, everyone=1))
    scales = (float(width), float(width), 1.0)[: len(blocks)]
    readings = tuple(_reading(source, output) for output in outputs)
    return LinearDesign(workload, tuple(blocks), scales, readings)


def _reading(source: Source, output: Output) -> Reading | Quotient:
    """Read an output off A, B and M."""
    lower, upper = source.lower, source.upper
    width = upper - lower
    rows = Reading({0: 1 / width, 1: 1 / width})
    if output.kind == "rows":
        missing = source.optional and output.source == EVERYONE
        return (rows.plus(2, 1.0) if missing else rows).whole(width)
    if output.kind == "mean":
        return Quotient(Reading({0: 0.5, 1: -0.5}), rows, (lower, upper))
    shares = {0: upper / width, 1: lower / width}
    total = Reading({k: share for k, share in shares.items() if share})
    return total.whole(width // math.gcd(width, lower))
