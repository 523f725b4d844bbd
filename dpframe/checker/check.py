"""The check of a charge: the worst unit of every measurement, compared with what is charged."""

import zlib
from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from dpframe.checker.cell import ONE_CELL, Cell
from dpframe.checker.encoding import EncodingProbe, layers_of
from dpframe.checker.measured import BlockNoise, Measured, Recognized
from dpframe.checker.mixed import worst_over_cells, worst_with_units
from dpframe.checker.rows import RowVectors, row_vectors
from dpframe.checker.units import FilledCaps, FilledCells, words_of, worst_cells, worst_stairs
from dpframe.checker.witness import Found, Witness, WitnessCells, compare
from dpframe.errors import PlanCheckError
from dpframe.privacy.amounts import PrivacyLoss

_MOST_KEPT, _LEAST_KEPT = 2**20, 2**12
"""Cells of all verdicts, or probes, that are kept, and what fewer cells of one count as."""

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
