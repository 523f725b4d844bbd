"""Which integers outputs are read off: totals on their own, or lifted by the rows of the cell.

Either way nothing is measured twice: rows are counted once for all columns that cannot be missing,
and a sum beside the mean of its column is read off the integers of the mean.

A mean is read off the sum of values centered between the bounds, `2 x - (l + u)`, and the number of
rows. Centering halves the reach of the sum at least. A variance is read off these two and the sum
of the squares, less the middle of what these can be.

Moments of several columns are measured one by one, squares less the middle of what they can be. Or
those of a pair are read off its parts, which together move by 1: nine of degree 2, 25 of degree 4.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never

from dpframe.privacy.sensitivity import Norm
from dpframe.statistics.form import ROWS, SQUARES, Y
from dpframe.statistics.moments import (
    PAIR,
    SECOND,
    Powers,
    moments,
    name_of,
    of_parts,
    parts_of_pair,
)
from dpframe.strategies.base import EVERYONE, HALF, WHOLE, Output, Source, Workload
from dpframe.strategies.linear import KNOWN, AnyReading, Block, QuotientReading, Reading

_Blocks = dict[Block, int]  # with the position of each


class Layout(NamedTuple):
    """Blocks to measure, and how each output is read off them.

    Parameters
    ----------
    blocks
        What is measured in every cell.
    readings
        One for each output, and one for the number of rows where it comes for free.
    """

    blocks: tuple[Block, ...]
    readings: tuple[AnyReading, ...]


def separate(workload: Workload, *, in_parts: bool = False) -> Layout:
    """Measure totals on their own; the number of rows also where it only matters.

    Parameters
    ----------
    workload
        The outputs wanted.
    in_parts
        Whether moments of pairs are read off parts. Those of degree 4 are in any case.
    """
    blocks: _Blocks = {}
    readings = tuple(
        _separately(workload, out, blocks, in_parts=in_parts) for out in workload.outputs_and_rows
    )
    return Layout(tuple(blocks), readings)


def _separately(
    workload: Workload, output: Output, blocks: _Blocks, *, in_parts: bool
) -> AnyReading:
    """Read an output off totals, adding those it needs."""
    if output.kind.is_whole:
        pair = _only_pair(workload) if in_parts and output.is_everyone else None
        if pair is None:
            return _plain_rows(workload, output.source, blocks)
        return _rows_of_parts(workload.sources[pair], pair, blocks)
    if output.kind.is_total:
        return _plain_value(workload, output, blocks)
    if output.kind.of_several or output.among is not None:
        return _read_moments(workload, output, blocks, in_parts=in_parts)
    if Y in output.kind.family:
        _place(blocks, _center_sum(workload, output.source))
    return _read_quotient(workload, output, blocks, _plain_rows)


def has_parts(source: Source, *, in_parts: bool) -> bool:
    """Whether moments of a source are read off parts."""
    return len(source.bounds) == PAIR and (in_parts or source.degree > SECOND)


def _only_pair(workload: Workload) -> int | None:
    """Return the pair of columns that all but the number of rows is about, if there is one."""
    sources = set()
    for output in workload.outputs:
        if not output.is_everyone:
            sources.add(output.source if output.among is None else output.among[0])
    (first, *others) = sources or {EVERYONE}
    return None if others or not has_parts(workload.sources[first], in_parts=True) else first


def _rows_of_parts(source: Source, position: int, blocks: _Blocks) -> Reading:
    """Read all rows of the cell off the parts, and off the rows that have none."""
    rows = _read_parts(source, position, (0, 0), blocks)
    if source.optional:
        rows = rows.plus(_place(blocks, Block(position, 0, -1, everyone=1)), 1.0)
    return rows.with_step(WHOLE)


def _read_moments(
    workload: Workload, output: Output, blocks: _Blocks, *, in_parts: bool
) -> QuotientReading:
    """Read a statistic of several columns, or of one among them, off their moments."""
    statistic = workload.statistic(output)
    at, axis = (output.source, 0) if output.among is None else output.among
    source = workload.sources[at]

    def read(powers: Powers) -> Reading:
        if has_parts(source, in_parts=in_parts):
            return _read_parts(source, at, powers, blocks)
        return _read_moment(workload, at, powers, blocks)

    by_name = moments(len(source.bounds), source.degree)
    if output.among is None:
        return QuotientReading(
            statistic, {name: read(by_name[name]) for name in statistic.features}
        )
    rows, first, second = (
        read(tuple(power * (k == axis) for k in range(len(source.bounds)))) for power in range(3)
    )
    read_off = {ROWS: rows, Y: first.times(output.sign), SQUARES: second.add(rows, -0.5)}
    return QuotientReading(statistic, {name: read_off[name] for name in statistic.features})


def _read_parts(source: Source, at: int, powers: Powers, blocks: _Blocks) -> Reading:
    """Read a moment of a pair off its parts."""
    weights = zip(parts_of_pair(source.degree), of_parts(powers, source.degree), strict=True)
    read = {_place(blocks, Block(at, 0, 0, part=name)): w / WHOLE for name, w in weights}
    return Reading({k: weight for k, weight in read.items() if weight})


def _read_moment(workload: Workload, at: int, powers: Powers, blocks: _Blocks) -> Reading:
    """Read a moment as it is measured; of a square, twice that less the rows is."""
    degree = sum(powers)
    if degree == 0:
        return _plain_rows(workload, at, blocks)
    block = _place(blocks, Block(at, 0, 0, part=name_of(powers)))
    if max(powers) < SECOND:
        return Reading({block: 1 / HALF**degree})
    return Reading({block: 0.5 / HALF**degree}).add(_plain_rows(workload, at, blocks), 0.5)


def _plain_rows(workload: Workload, position: int, blocks: _Blocks) -> Reading:
    """Rows of a source, counted as they are."""
    source = position if workload.sources[position].optional else EVERYONE
    return Reading({_place(blocks, Block(source, 0, 1)): 1.0})


def _plain_value(workload: Workload, output: Output, blocks: _Blocks) -> Reading:
    """Sum of a source's values: by itself, or from the integers of their mean."""
    position = output.source
    if not (output.of_rows or _is_averaged(workload, position)):
        return Reading({_place(blocks, Block(position, 1, 0)): 1.0})
    at = _place(blocks, _center_sum(workload, position))
    rows = _plain_rows(workload, position, blocks)
    source = workload.sources[position]
    center = (source.lower + source.upper) / 2
    total = rows.times(center + output.of_rows).plus(at, 0.5)
    return total if output.of_rows else total.with_step(2)


def lift_totals(workload: Workload, *, as_asked: bool) -> Layout:
    """Measure `2 f - (l + u) n` for every total f, and the number of rows n, once, or known.

    Counts and sums are read in halves, and rounded to whole numbers.

    Parameters
    ----------
    workload
        The outputs wanted.
    as_asked
        Whether the columns are those of plain totals, and the number of rows is not released where
        it was not asked for. A release then looks the same whether its totals are lifted or not.
    """
    blocks: _Blocks = {} if workload.known_rows else {Block(EVERYONE, 0, 1): 0}
    readings = [_lift_output(workload, output, blocks) for output in workload.outputs]
    free = not as_asked or workload.rows_weight
    if free and not workload.known_rows and not workload.counts_everyone:
        readings.append(_everyone(workload))
    return Layout(tuple(blocks), tuple(readings))


def _lift_output(workload: Workload, output: Output, blocks: _Blocks) -> AnyReading:
    """Read an output off lifted totals, adding those it needs."""
    if output.kind.is_whole:
        rows = _rows(workload, output.source, blocks)
        return rows if rows.block is not None else rows.with_step(2)
    if output.kind.is_total:
        total = _value(workload, output, blocks)
        return total if output.of_rows else total.with_step(2)
    if output.kind.of_several:
        raise TypeError("what is about several columns is read off its moments alone")
    return _read_quotient(workload, output, blocks, _rows)


def _read_quotient(
    workload: Workload, output: Output, blocks: _Blocks, rows: Callable[..., Reading]
) -> QuotientReading:
    """Read a quotient off the totals of its features, adding those it needs."""
    statistic, at = workload.statistic(output), output.source
    source = workload.sources[at]
    width = source.upper - source.lower  # 0 where the bounds are equal

    def read(feature: str) -> Reading:
        if feature == ROWS:
            return rows(workload, at, blocks)
        if feature == Y:
            return Reading({_place(blocks, _center_sum(workload, at)): output.sign / (width or 1)})
        squares = Block(at, 0, -width, square=2)
        return Reading({_place(blocks, squares): 1 / (width or 1) / 2})

    return QuotientReading(statistic, {feature: read(feature) for feature in statistic.features})


def _is_averaged(workload: Workload, position: int) -> bool:
    """Whether the centered sum of a source and its rows are measured for another output."""
    return any(output.source == position and Y in output.kind.family for output in workload.outputs)


def _place(blocks: _Blocks, block: Block) -> int:
    """Position of a block, added if it is new."""
    return blocks.setdefault(block, len(blocks))


def _everyone(workload: Workload) -> Reading:
    """All rows of the cell: measured first, or known."""
    return Reading({KNOWN if workload.known_rows else 0: 1.0})


def _center_sum(workload: Workload, position: int) -> Block:
    """Sum of a source's values minus the center of its bounds, doubled."""
    source = workload.sources[position]
    return Block(position, 2, -(source.lower + source.upper))


def _rows(workload: Workload, position: int, blocks: _Blocks) -> Reading:
    """Rows of a source: all of the cell, or a query of its own in [0, 1]."""
    everyone = _everyone(workload)
    if not workload.sources[position].optional:
        return everyone
    return everyone.times(0.5).plus(_place(blocks, Block(position, 0, 2, everyone=-1)), 0.5)


def _value(workload: Workload, output: Output, blocks: _Blocks) -> Reading:
    """Sum of a source's values, from the rows of the source if they are measured anyway."""
    position = output.source
    source = workload.sources[position]
    if output.of_rows or _is_averaged(workload, position) or not source.optional:
        rows = _rows(workload, position, blocks)
        center = (source.lower + source.upper) / 2
        at = _place(blocks, _center_sum(workload, position))
        return rows.times(center + output.of_rows).plus(at, 0.5)
    lower, upper = source.hull
    at = _place(blocks, Block(position, 2, 0, everyone=-(lower + upper)))
    return _everyone(workload).times((lower + upper) / 2).plus(at, 0.5)


def parts(workload: Workload, layout: Layout) -> Iterator[tuple[Reading, float]]:
    """Yield the linear parts of the outputs, with the weight of their variance."""
    for output, reading in zip(workload.outputs, layout.readings, strict=False):
        match reading:
            case QuotientReading():
                importance = reading.statistic.importance
                for feature, total in reading.features.items():
                    yield total, output.weight * importance[feature]
            case Reading():
                yield reading, output.weight / workload.width(output) ** 2
            case _:
                assert_never(reading)


def weights(workload: Workload, layout: Layout) -> dict[int, float]:
    """Weight of each block's variance in the sum of the outputs' relative variances."""
    block_weights: dict[int, float] = {}
    for reading, factor in (*parts(workload, layout), *_number_of_rows(workload, layout)):
        for k, weight in reading.weights.items():
            block_weights[k] = block_weights.get(k, 0.0) + factor * weight**2
    return block_weights


def _number_of_rows(workload: Workload, layout: Layout) -> list[tuple[Reading, float]]:
    """Return how the number of rows is read, if it is, with its own weight."""
    outputs = (*workload.outputs, workload.everyone)
    pairs = zip(outputs, layout.readings, strict=False)
    reading = next((reading for output, reading in pairs if output.is_everyone), None)
    match reading:
        case Reading():
            return [(reading, workload.rows_weight)]
        case None:
            return []
        case QuotientReading():
            raise TypeError("a number of rows is read off blocks as it is")
        case _:
            assert_never(reading)


def depend_on_rows(workload: Workload, block_weights: Mapping[int, float]) -> bool:
    """Whether something depends on the number of rows, and something else is measured, too.

    Parameters
    ----------
    workload
        The outputs wanted.
    block_weights
        The weights of a lifted layout.
    """
    n = KNOWN if workload.known_rows else 0
    return bool(block_weights.get(n)) and len(block_weights) > 1


def best_scales(reach: Sequence[float], weights: Sequence[float], norm: Norm) -> tuple[float, ...]:
    """Return relative scales that minimize a weighted sum of variances.

    With `q_k` the weight of the variance of block k and `h_k` how far it moves, the least
    `sum_k q_k sigma_k^2` for a given `sum_k (h_k / sigma_k)^p` has
    `sigma_k ~ (h_k^p / q_k)^(1 / (p + 2))`.

    Examples
    --------
    >>> best_scales([1, 8], [1, 1], 1)
    (1.0, 2.0)
    """
    blocks = zip(reach, weights, strict=True)
    return tuple((h**norm / weight) ** (1 / (norm + 2)) for h, weight in blocks)


def share_in_sets(
    workload: Workload,
    blocks: Sequence[Block],
    reach: Sequence[float],
    weights: Sequence[float],
    norm: Norm,
) -> tuple[float, ...]:
    """Return the best relative scales where some sources exclude each other.

    With its best scales, a source has the weighted variance `V = (sum_k (q_k h_k^2)^(p / (p + 2)))
    ^((p + 2) / p)` at movement 1. A row moves the blocks of one source of a set alone, so that all
    of them may move as far as one may, and V of a set is the sum of those of its sources. Scales of
    a source with V_j in a set with V are thus those of `best_scales`, times `(V_j / V)^(1 / (p +
    2))`.

    Examples
    --------
    >>> from dpframe.strategies.base import Source
    >>> from dpframe.strategies.domain import Domain
    >>> from dpframe.privacy.sensitivity import Reach
    >>> two = Source(0, 0, optional=True), Source(0, 0, optional=True)
    >>> facts = {"domain": Domain(), "reach": Reach(1, 1, 0, 1), "neighboring": "add_remove"}
    >>> work = Workload((Source(0, 0, optional=False), *two), (), **facts, exclusive=((1, 2),))
    >>> scales = share_in_sets(work, [Block(1, 0, 1), Block(2, 0, 1)], [1, 1], [1, 1], 1)
    >>> [round(scale, 4) for scale in scales]
    [0.7937, 0.7937]
    """
    scales = best_scales(reach, weights, norm)
    parts = [(q * h * h) ** (norm / (norm + 2)) for h, q in zip(reach, weights, strict=True)]
    of_source: dict[int, float] = {}
    for block, part in zip(blocks, parts, strict=True):
        of_source[block.source] = of_source.get(block.source, 0.0) + part
    factors: dict[int, float] = {}
    for sources in workload.exclusive:
        variances = {j: of_source.get(j, 0.0) ** ((norm + 2) / norm) for j in sources}
        total = math.fsum(variances.values())
        for j, variance in variances.items():
            factors[j] = (variance / total) ** (1 / (norm + 2)) if variance else 1.0
    pairs = zip(scales, blocks, strict=True)
    return tuple(scale * factors.get(block.source, 1.0) for scale, block in pairs)
