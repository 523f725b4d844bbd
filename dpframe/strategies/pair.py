"""Measure one column of values in parts that together take the whole allowance once.

From both of its bounds (`design`)
    A row with value x in [l, u] adds `x - l` to A and `u - x` to B, which together are the width
    `w = u - l`. A row whose value is missing adds 1 to M in their place. So under Laplace noise all
    of them cost no more than one: `|dA| / w + |dB| / w + |dM| <= 1` for one row. With noise of
    scale `w / epsilon` on A and B and `1 / epsilon` on M, the rows with a value are `(A + B) / w`,
    all rows `(A + B) / w + M`, and the sum of the values is `(u A + l B) / w`. The squares add up
    to no more than one, either: Gaussian noise has `1 / mu` in place of `1 / epsilon`.

    It is the two-dimensional case of noise in a box, turned by 45 degrees (Kulesza, Suresh and Wang
    2023, "transformed noise"), on the integers.

With its squares (`plan_bernstein`)
    A row with y in [-1, 1] adds `(1 - y)^2 / 4`, `(1 - y^2) / 2` and `(1 + y)^2 / 4` to P, Q and R
    (the Bernstein polynomials of degree 2): all are at least 0, and add up to 1. So under Laplace
    noise they cost no more than one number: a row moves them by exactly 1 in all. The number of
    rows is `P + Q + R`, the sum of y is `R - P`, that of `y^2` is `P - Q + R`.

    On integers, `t = 2 x - (l + u)` is y times the width h, and `U = ceil(t^2 / h)` is `y^2` times
    h: the parts `h + U - 2 t`, `2 (h - U)` and `h + U + 2 t` add up to 4 h, and none is below 0 as
    long as `2 |t| - h <= U <= h`. A row whose value is missing adds 1 to M in their place.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dpframe.privacy.law import Law
from dpframe.statistics.form import ROWS, SQUARES, Statistic, Y
from dpframe.strategies.base import EVERYONE, Output, Source, Workload
from dpframe.strategies.linear import AnyReading, Block, LinearDesign, QuotientReading, Reading

_Read: TypeAlias = Callable[[Source, Output, Statistic], AnyReading]


def design(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan the measurements; `None` unless everything asked is about one column of values.

    Parameters
    ----------
    workload
        The outputs wanted.
    law
        Law of the noise.
    """
    outputs, at = workload.outputs_and_rows, _only_column(workload)
    # a sum alone has nothing to share: it is measured as it is
    if at is None or _is_sum_alone(outputs) or _squared(workload):
        return None
    source = workload.sources[at]
    blocks = [Block(at, 1, -source.lower), Block(at, -1, source.upper)]
    return _plan(workload, blocks, float(source.upper - source.lower), _read_pair)


def _is_sum_alone(outputs: Sequence[Output]) -> bool:
    return len(outputs) == 1 and outputs[0].is_sum and not outputs[0].of_rows


def plan_bernstein(workload: Workload, law: Law) -> LinearDesign | None:
    """Plan the measurements; `None` unless all is about one column, its squares included.

    Parameters
    ----------
    workload
        The outputs wanted.
    law
        Law of the noise.
    """
    at = _only_column(workload)
    if law.norm != 1 or at is None or not _squared(workload):
        return None
    source = workload.sources[at]
    width, ends = source.upper - source.lower, source.lower + source.upper
    blocks = [
        Block(at, -4, width + 2 * ends, square=1),
        Block(at, 0, 2 * width, square=-2),
        Block(at, 4, width - 2 * ends, square=1),
    ]
    return _plan(workload, blocks, 4.0 * width, _read_bernstein)


def _squared(workload: Workload) -> bool:
    """Whether something is read off squares of values, too."""
    return any(SQUARES in workload.statistic(output).features for output in workload.outputs)


def _only_column(workload: Workload) -> int | None:
    """Position of the one source that all outputs are about, if its values can differ."""
    sources = {output.source for output in workload.outputs_and_rows} - {EVERYONE}
    if len(sources) != 1 or workload.most is not None or workload.known_rows:
        return None
    (position,) = sources
    source = workload.sources[position]
    return position if source.upper > source.lower else None


def _plan(workload: Workload, blocks: list[Block], scale: float, read: _Read) -> LinearDesign:
    """Measure blocks of one scale, and M where all rows are wanted."""
    outputs, at = workload.outputs_and_rows, blocks[0].source
    source, scales = workload.sources[at], [scale] * len(blocks)
    if source.optional and any(output.is_everyone for output in outputs):
        blocks.append(Block(at, 0, -1, everyone=1))
        scales.append(1.0)
    readings = tuple(read(source, out, workload.statistic(out)) for out in outputs)
    return LinearDesign(workload, tuple(blocks), tuple(scales), readings)


def _read_pair(source: Source, output: Output, statistic: Statistic) -> AnyReading:
    """Read an output off A, B and M."""
    lower, upper = source.lower, source.upper
    width = upper - lower
    rows = Reading({0: 1 / width, 1: 1 / width})
    if output.kind.is_whole:
        missing = source.optional and output.source == EVERYONE
        return (rows.plus(2, 1.0) if missing else rows).with_step(width)
    if not output.kind.is_total:
        part = output.sign / width
        return QuotientReading(statistic, {ROWS: rows, Y: Reading({0: part, 1: -part})})
    shares = {0: (upper + output.of_rows) / width, 1: (lower + output.of_rows) / width}
    total = Reading({k: share for k, share in shares.items() if share})
    return total if output.of_rows else total.with_step(width // math.gcd(width, lower))


def _read_bernstein(source: Source, output: Output, statistic: Statistic) -> AnyReading:
    """Read an output off P, Q, R and M."""
    step = 4 * (source.upper - source.lower)
    rows = Reading({0: 1 / step, 1: 1 / step, 2: 1 / step})
    if output.kind.is_whole:
        missing = source.optional and output.source == EVERYONE
        return (rows.plus(3, 1.0) if missing else rows).with_step(step)
    if output.kind.is_total:
        center = (source.lower + source.upper) / 2 / step
        weights = {0: center - 0.125, 1: center, 2: center + 0.125}
        return Reading({k: weight for k, weight in weights.items() if weight}).with_step(2 * step)
    first = Reading({0: -1 / step, 2: 1 / step})
    squares = Reading({0: 0.5 / step, 1: -1.5 / step, 2: 0.5 / step})
    read = {ROWS: rows, Y: first, SQUARES: squares}
    return QuotientReading(statistic, {feature: read[feature] for feature in statistic.features})
