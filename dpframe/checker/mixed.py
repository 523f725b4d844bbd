"""Measurements whose integers depend on many cells: sums over all of them, and numbers of units."""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from dpframe.checker.cell import ONE_CELL, Cell
from dpframe.checker.encoding import EncodingProbe, places_to_try
from dpframe.checker.measured import Measured
from dpframe.checker.rows import Component, Group, RowVectors, combinations
from dpframe.checker.units import FilledCaps, count, words_of
from dpframe.checker.witness import Found, WitnessCells
from dpframe.errors import PlanCheckError

_MOST_VECTORS = 256  # combinations of the parts of a row


def worst_over_cells(
    measured: Measured, probe: EncodingProbe, vectors: RowVectors, dice: np.random.Generator
) -> Found:
    """Find the worst unit where each measured integer is a sum over all cells.

    Rows of a unit add up to as many times a point of the hull of what one row adds, wherever they
    lie. So all of them are alike at worst, and in one place.
    """
    noise = measured.noise
    added, of_rows = _added_to_totals(vectors, len(measured.totals), dice)
    places, of_places = places_to_try(measured.places, dice, two=True)
    of_totals = [probe.whole_at_places(n, places)[0] for n in range(len(measured.totals))]
    moved = [added @ np.array([of_total[place] for of_total in of_totals]) for place in places]
    different = np.unique(np.concatenate(moved), axis=0)
    group = Group(np.arange(different.shape[1]), different, np.zeros(1, np.intp))
    rows = RowVectors((Component((group,), np.zeros((1, 1), np.intp)),), (), 0, True, False)
    cell = Cell(rows, noise, [ONE_CELL], apart=True)
    filling = FilledCaps.of(measured.caps, measured.places.groups)
    most = filling.full * filling.rows + filling.rest
    filtered = measured.filtered or not vectors.all_count
    always = measured.places.everywhere and not measured.has_unit and not filtered
    replaced = measured.neighboring == "replace"
    pairs = [(most, 0)] * (not (always and replaced)) + [(most, most)] * replaced
    a, b = max(pairs, key=lambda pair: cell.distance(*pair))
    worst = cell.moved(a, b)
    return Found(
        noise.law.name,
        {k: noise.scales[k] for k in worst.rows},
        (WitnessCells(1, (a, b), worst.rows),),
        words_of([(1, a, b)], measured.neighboring),
        of_rows or of_places or vectors.sampled,
    )


def _added_to_totals(
    vectors: RowVectors, totals: int, dice: np.random.Generator
) -> tuple[np.ndarray, bool]:
    """Return what one row can add to all totals, one vector a row; tell whether it is a sample."""
    parts = [[*_of_component(part)] for part in vectors.components]
    chosen, sampled = combinations([len(part) for part in parts], dice, _MOST_VECTORS)
    added = np.zeros((len(chosen), totals), np.int64)
    for at, row in enumerate(chosen.tolist()):
        for part, place in zip(parts, row, strict=True):
            for blocks, vector in part[place]:
                added[at, blocks] = vector
    return np.unique(added, axis=0), sampled


def _of_component(part: Component) -> Iterator[Sequence[tuple[np.ndarray, np.ndarray]]]:
    for kinds in part.classes.tolist():
        ends = [[*group.starts.tolist(), len(group.vectors)] for group in part.groups]
        sets = [
            group.vectors[bounds[kind] : bounds[kind + 1]]
            for group, bounds, kind in zip(part.groups, ends, kinds, strict=True)
        ]
        for vectors in itertools.islice(itertools.product(*sets), _MOST_VECTORS):
            yield [(group.blocks, x) for group, x in zip(part.groups, vectors, strict=True)]


def worst_with_units(measured: Measured) -> Found:
    """Find the worst unit where rows are measured beside the number of units, over all cells.

    Between cells that are full and cells without rows, what all cells cost is linear in how many
    are full: one, or as many as caps allow.
    """
    if any(total.values or total.given for total in measured.totals):
        raise PlanCheckError.of("units are counted beside more than rows")
    size = measured.places.cells
    filling = FilledCaps.of(measured.caps, measured.places.groups)
    units = [*_fillings(filling)]
    pairs: list[tuple[list[int], list[int]]] = [(unit, []) for unit in units]
    if measured.neighboring == "replace":
        for mine, theirs in itertools.product(units, units):
            starts = {0, len(mine), size - len(theirs)}
            shifted = [[0] * at + theirs for at in starts if at + len(theirs) <= size]
            pairs += [(mine, rows) for rows in shifted]
    cases = [(_cells_of(measured, mine, theirs), mine, theirs) for mine, theirs in pairs]
    scales = dict(enumerate(measured.noise.scales))
    law = measured.noise.law.name

    def cost(cells: tuple[WitnessCells, ...]) -> Fraction:
        return Found(law, scales, cells, "").cost

    cells, mine, theirs = max(cases, key=lambda case: cost(case[0]))
    words = f"a unit with {count(sum(mine), 'row')} in {count(len(mine), 'cell')}"
    if any(theirs):
        words = f"{words}, in place of one with {count(sum(theirs), 'row')}"
    return Found(law, scales, cells, words)


def _fillings(filling: FilledCaps) -> Iterator[list[int]]:
    """Yield rows by cell: of a unit that fills one cell, or all it can, or has a row in many."""
    yield [1]
    yield [1] * filling.touched
    for full in {1, filling.full}:
        yield [filling.rows] * full
    if filling.rest:
        yield [filling.rows] * filling.full + [filling.rest]


def _cells_of(
    measured: Measured, mine: Sequence[int], theirs: Sequence[int]
) -> tuple[WitnessCells, ...]:
    """Return which integers move by how much, where a unit stands in place of another."""
    pairs = zip(_encode_unit(measured, mine), _encode_unit(measured, theirs), strict=True)
    moved = [np.unique(np.abs(a - b), return_counts=True) for a, b in pairs]
    steps = [
        (int(times), block, int(step))
        for block, counted in enumerate(moved)
        for step, times in zip(*counted, strict=True)
        if step
    ]
    if measured.noise.over_cells:
        scales = measured.noise.scales
        steps = [max(steps, key=lambda step: step[2] / scales[step[1]])]
        steps = [(1, block, step) for _, block, step in steps]
    return tuple(WitnessCells(times, (1, 0), {block: (step, 0)}) for times, block, step in steps)


def _encode_unit(measured: Measured, rows: Sequence[int]) -> list[np.ndarray]:
    totals = np.zeros((len(measured.totals), measured.places.cells), np.int64)
    for at, total in enumerate(measured.totals):
        if not total.units:
            totals[at, : len(rows)] = rows
        elif any(rows):
            totals[at, 0] = 1
    return measured.encode(list(totals))
