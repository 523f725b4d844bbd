"""How far neighbors can move the blocks of a design, by brute force over all their rows."""

import itertools
import math
from fractions import Fraction

import numpy as np

from dpframe.privacy.neighbors import Caps


def rows_of(workload, *, every=False):
    """What one row can be: for each source an end of its values, or any, or `None` where absent."""
    kinds = []
    for source in workload.sources[1:]:
        values = sorted({source.lower, source.upper})
        if every:
            values = list(range(source.lower, source.upper + 1))
        kinds.append([*values, None] if source.optional else values)
    rows = itertools.product(*kinds)
    if workload.most is not None:
        rows = (row for row in rows if sum(map(bool, row)) <= workload.most)
    for sources in workload.exclusive:
        rows = [row for row in rows if sum(row[k - 1] is not None for k in sources) <= 1]
    return list(rows)


def units_of(workload, caps, *, every=False):
    """All sets of rows of one unit that its caps leave, by cell: numbers of rows of each kind."""
    kinds = rows_of(workload, every=every)
    most = workload.reach.total
    places = list(itertools.product(range(workload.cells), range(len(kinds))))
    for number in range(most + 1):
        for filled in itertools.combinations_with_replacement(places, number):
            if within(filled, caps):
                yield [(cell, kinds[kind]) for cell, kind in filled]


def within(filled, caps: Caps):
    cells = [cell for cell, _ in filled]
    return (
        (caps.groups is None or len(set(cells)) <= caps.groups)
        and (caps.rows is None or len(cells) <= caps.rows)
        and all(cells.count(cell) <= (caps.rows_per_group or len(cells)) for cell in set(cells))
    )


def blocks_of(design, unit):
    """Blocks of a frame that holds the rows of one unit."""
    work = design.workload
    totals = {
        (0, "rows"): np.zeros(work.cells, np.int64),
        (0, "units"): np.zeros(work.cells, np.int64),
    }
    totals[0, "units"][0] = bool(unit)
    for position in range(1, len(work.sources)):
        for what in ("rows", "value", "square"):
            totals[position, what] = np.zeros(work.cells, np.int64)
    for cell, row in unit:
        totals[0, "rows"][cell] += 1
        for position, value in enumerate(row, start=1):
            if value is not None:
                totals[position, "rows"][cell] += 1
                totals[position, "value"][cell] += value
                totals[position, "square"][cell] += square_of(value, work.sources[position])
    return design.encode({need: totals[need] for need in design.needs})


def square_of(value, source):
    """The square of a value, on the grid of squares, by rational arithmetic."""
    width = source.upper - source.lower
    return math.ceil(Fraction((2 * value - source.lower - source.upper) ** 2, width or 1))


def cost(design, moved, scales, law):
    """What one movement costs, in rational arithmetic: sums over groups and cells, or maxima."""
    lengths = [
        [Fraction(abs(int(part))) / scale if part else Fraction(0) for part in block]
        for block, scale in zip(moved, scales, strict=True)
    ]
    if law.inside != "max":
        return sum((length**law.norm for block in lengths for length in block), start=Fraction(0))
    if design.joined:
        return max(itertools.chain(*lengths))
    return sum(
        (
            max(lengths[k][cell] for k in group)
            for group in design.groups
            for cell in range(len(lengths[group[0]]))
        ),
        start=Fraction(0),
    )


def farthest(design, scales, law, caps):
    """Largest cost over all neighbors: one unit more or fewer, or one unit replaced."""
    squared = any(what == "square" for _, what in design.needs)
    vectors = {
        tuple(tuple(int(x) for x in block) for block in blocks_of(design, unit))
        for unit in units_of(design.workload, caps, every=squared)
        if unit or not design.workload.reach.always
    }
    empty = tuple((0,) * len(block) for block in next(iter(vectors)))
    others = [empty] if design.workload.neighboring == "add_remove" else vectors
    moves = {
        tuple(
            tuple(a - b for a, b in zip(mine, yours, strict=True))
            for mine, yours in zip(one, other, strict=True)
        )
        for one in vectors
        for other in others
    }
    return max(cost(design, move, scales, law) for move in moves)
