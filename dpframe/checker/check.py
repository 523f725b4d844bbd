"""The check of a charge: the worst unit of every measurement, compared with what is charged."""

import itertools
import zlib
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

import numpy as np

from dpframe.checker.cell import ONE_CELL, Cell
from dpframe.checker.encoding import EncodingProbe, layers_of, places_to_try
from dpframe.checker.measured import BlockNoise, Measured, Recognized
from dpframe.checker.rows import Component, Group, RowVectors, combinations, row_vectors
from dpframe.checker.witness import (
    FilledCaps,
    FilledCells,
    Found,
    Witness,
    WitnessCells,
    compare,
    count,
    words_of,
    worst_cells,
    worst_stairs,
)
from dpframe.errors import PlanCheckError
from dpframe.privacy.amounts import PrivacyLoss

_MOST_KEPT, _LEAST_KEPT = 2**20, 2**12
"""Cells of all verdicts, or probes, that are kept, and what fewer cells of one count as."""

_MOST_VECTORS = 256  # combinations of the parts of a row

_Value = TypeVar("_Value")


class KeptVerdicts(Generic[_Value]):
    """What was found last, by all that was read for it."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[_Value, int]] = {}

    def get(self, key: Hashable) -> _Value | None:
        """Return what was found, if it is kept."""
        kept = self._found.get(key)
        return None if kept is None else kept[0]

    def add(self, key: Hashable, value: _Value, cells: int = 0) -> _Value:
        """Keep one more, and return it; with too many cells, the last ones stay that have half."""
        self._found[key] = value, max(cells, _LEAST_KEPT)
        # at once: other threads may add to it
        kept = list(self._found.items())
        left = sum(size for _, (_, size) in kept)
        if left > _MOST_KEPT:
            for old, (_, size) in kept[:-1]:
                if left <= _MOST_KEPT // 2:
                    break
                self._found.pop(old, None)
                left -= size
        return value

    def cache_clear(self) -> None:
        """Forget all."""
        self._found.clear()


# keys may name what is only kept alive here
_WITNESSES: KeptVerdicts[tuple[Witness, Sequence[Measured]]] = KeptVerdicts()
_VERDICTS: KeptVerdicts[tuple[Found, Measured]] = KeptVerdicts()
_ROWS: KeptVerdicts[RowVectors] = KeptVerdicts()
_CELLS: KeptVerdicts[Cell] = KeptVerdicts()


class Chargeable(Protocol):
    """What can be charged: a release that was planned."""

    def witness(self) -> Witness:
        """Find the worst units."""


def check_charge(operation: Chargeable, loss: PrivacyLoss) -> Witness:
    """Compare a charge with what a unit can lose, and return the worst units.

    Raises
    ------
    PlanCheckError
        If a unit can lose more.
    """
    witness = operation.witness()
    compare(witness, loss)
    return witness


def witness_of(measurements: Sequence[Recognized]) -> Witness:
    """Find the worst unit of every measurement of a release: what all cost adds up."""
    key = tuple([key for key, _ in measurements])
    kept = _WITNESSES.get(key)
    if kept is None:
        verdicts = [_verdict(measurement) for measurement in measurements]
        witness = Witness(tuple(worst for worst, _ in verdicts))
        measured = [measurement for _, measurement in verdicts]
        cells = sum(measurement.places.cells for measurement in measured)
        kept = _WITNESSES.add(key, (witness, measured), cells)
    return kept[0]


def _verdict(measurement: Recognized) -> tuple[Found, Measured]:
    kept = _VERDICTS.get(measurement.key)
    if kept is None:
        measured = measurement.prepare()
        verdict = find_worst(measured), measured
        kept = _VERDICTS.add(measurement.key, verdict, measured.places.cells)
    return kept


def forget_verdicts() -> None:
    """Forget all that is kept of checks."""
    for kept in (_WITNESSES, _VERDICTS, _ROWS, _CELLS):
        kept.cache_clear()


def find_worst(measured: Measured) -> Found:
    """Find the worst unit of one measurement."""
    # a plan that was accepted once is accepted again: its sample does not change
    seed = zlib.crc32(repr((measured.noise.scales, measured.caps, measured.places)).encode())
    # no noise: a sample of rows and places to try
    dice = np.random.default_rng(seed)
    probe = EncodingProbe(measured, dice)
    if any(total.units for total in measured.totals):
        return worst_with_units(measured)
    if measured.mixed and measured.noise.profile is None:
        weights = np.eye(len(measured.totals), dtype=np.int64)
        return worst_over_cells(measured, probe, _vectors(measured, weights, dice), dice)
    sampled = False
    if measured.noise.profile is None:
        vectors = _vectors(measured, probe.weights_of_cells(), dice)
        cell = _cell(vectors, measured.noise)
    else:
        weights, kernels, sampled = layers_of(measured, probe, dice)
        vectors = _vectors(measured, weights, dice)
        cell = Cell(vectors, measured.noise, kernels)
    filled, cells = _worst(measured, cell, always=_is_always(measured, vectors))
    return Found(
        measured.noise.law.name,
        {k: measured.noise.scales[k] for filled_cells in cells for k in filled_cells.moves},
        tuple(cells),
        words_of(filled, measured.neighboring),
        sampled or vectors.sampled,
    )


def _vectors(measured: Measured, weights: np.ndarray, dice: np.random.Generator) -> RowVectors:
    places = np.nonzero(weights)
    parts = *places, weights[places]
    key = measured.content, weights.shape, *(part.tobytes() for part in parts)
    kept = _ROWS.get(key)
    return kept or _ROWS.add(key, row_vectors(measured, weights, dice))


def _cell(vectors: RowVectors, noise: BlockNoise) -> Cell:
    key = vectors, noise.law, noise.scales, noise.groups
    return _CELLS.get(key) or _CELLS.add(key, Cell(vectors, noise, [ONE_CELL]))


def _is_always(measured: Measured, vectors: RowVectors) -> bool:
    """Whether a unit is one row that nothing leaves out."""
    filtered = measured.filtered or not vectors.all_count
    return measured.places.everywhere and not measured.has_unit and not filtered


def _worst(
    measured: Measured, cell: Cell, *, always: bool
) -> tuple[FilledCells, list[WitnessCells]]:
    """Find how the worst unit fills cells, and what it moves there."""
    noise = measured.noise
    filling = FilledCaps.of(measured.caps, measured.places.groups)
    if noise.law.shape == "stairs":
        return _worst_stairs(measured, cell, filling, always=always)
    drawn = {k for k, scale in enumerate(noise.scales) if scale}
    # noise that is drawn once for all cells has to hide the largest of them, not their sum
    if noise.over_cells and drawn <= {*noise.groups[0]}:
        rows = [(filling.rows, 0)] * (not always)
        rows += [(filling.rows, filling.rows)] * (measured.neighboring == "replace")
        a, b = max(rows, key=lambda pair: cell.distance(*pair))
        filled = [(1, a, b)]
    else:
        filled = worst_cells(cell.distance, filling, measured.neighboring, always=always)
    witnesses = []
    for times, a, b in filled:
        moved = cell.moved(a, b)
        witnesses.append(WitnessCells(times, (a, b), moved.rows, moved.kernel))
    return filled, witnesses


def _worst_stairs(
    measured: Measured, cell: Cell, filling: FilledCaps, *, always: bool
) -> tuple[FilledCells, list[WitnessCells]]:
    """Find how many stairs the worst unit crosses."""
    still = always and measured.neighboring == "replace" and filling.cells == 1
    moving = cell.replaced if still else cell.moving
    # stairs are not convex: the worst row for two of them need not be a corner of what rows add
    if len(moving) > 1:
        raise PlanCheckError.of("two integers with staircase noise move in one cell")
    if not moving:
        return [], []
    (block,) = moving
    width = int(measured.noise.scales[block])
    if not width:
        raise PlanCheckError.of("an integer that moves has no noise")

    def stairs(a: int, b: int) -> int:
        return -(-cell.farthest(block, a, b)[0] // width)

    filled = worst_stairs(stairs, filling, measured.neighboring, always=always)
    witnesses = []
    for times, a, b in filled:
        _, x, y = cell.farthest(block, a, b)
        witnesses.append(WitnessCells(times, (a, b), {block: (x, y)}))
    return filled, witnesses


# Integers that depend on many cells ------------------------------------------------------------


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
    most = filling.full * filling.rows + filling.remainder
    always = _is_always(measured, vectors)
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
    if any(total.values or total.conditions for total in measured.totals):
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
    if filling.remainder:
        yield [filling.rows] * filling.full + [filling.remainder]


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
