"""Errors of what is computed from several cells that were measured together."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from dpframe.certificates.certificate import Release
from dpframe.certificates.mechanism_parts import (
    LayersPart,
    MarginsPart,
    NoiseRecord,
    SignsPart,
    TreePart,
)
from dpframe.errors import QueryError
from dpframe.inference.orthogonal import Linear
from dpframe.privacy.noise_sum import Value, norm
from dpframe.strategies.linear import KNOWN

_OF_MARGINS = MarginsPart, SignsPart

TOGETHER = (
    "Counts by different columns are measured apart with denoise= in the call of their release. "
    "Margins of at most two columns each are made whole numbers that add up by "
    'denoise="consistent" there, or by dpframe.consistent afterwards.'
)
"""What to do in place of denoising tables that were measured together."""


class Side(NamedTuple):
    """How far a sum may be off on one side, from how far each of its terms may be.

    Distances to the ends of the intervals of the terms are added as squares, times the half-width
    for the sum over the root of the sum of the squared half-widths (Zou and Donner 2008); as they
    are where one of these ends is all that is possible.
    """

    root: np.ndarray
    plain: np.ndarray
    possible: np.ndarray

    @classmethod
    def of(cls, off: Sequence[np.ndarray], possible: Sequence[np.ndarray]) -> "Side":
        """Put distances together, with whether each is to an end of what is possible."""
        return cls(norm(off), np.asarray(sum(off)), np.any(possible, axis=0))

    def width(self, width: Value, alone: Value) -> np.ndarray:
        """Return the distance for a half-width of the sum, and the root of the squares of all."""
        factor = np.divide(width, alone, out=np.ones(np.shape(alone)), where=np.asarray(alone) > 0)
        return np.where(self.possible, self.plain, factor * self.root)


class Weighed(NamedTuple):
    """A table whose cells are weighed."""

    release: Release
    weights: np.ndarray
    columns: Sequence[Linear]

    def parts(self) -> Iterator[tuple[np.ndarray, Linear]]:
        """Iterate over columns with the weights of their cells."""
        return zip(self.weights.T, self.columns, strict=True)


NoiseSource: TypeAlias = tuple[NoiseRecord, int, dict[str, np.ndarray]]
"""Noise that one release drew, the rows of its query, and by block what it adds to a sum."""


def independent_sources(tables: Sequence[Weighed]) -> list[NoiseSource]:
    """Return where the noise of a weighted sum over tables comes from, one source per release.

    Different releases drew noise of their own. What tables of one release share is known within a
    table, and of margins of one query.
    """
    by_release: dict[str, list[Weighed]] = {}
    for table in tables:
        by_release.setdefault(table.release.release_id, []).append(table)
    if len(by_release) > 1:
        for table in tables:
            check_no_given_rows(table.release)
    return [_source(own) for own in by_release.values()]


def _source(tables: Sequence[Weighed]) -> NoiseSource:
    """Return what the noise of one release adds to a sum, as deviations by block."""
    table, *others = tables
    release = table.release
    rows = release.query.cells
    if others:
        noise, parts = _errors_over_tables(tables)
        return noise, rows, parts
    noise = release.noise
    if isinstance(noise, LayersPart):
        layers = weights_of_blocks(table, noise)
        found = {b: np.sqrt([noise.by_block[b].variance(part)]) for b, part in layers.items()}
        return noise, rows, found
    common = set(noise.shared_blocks)
    moved: dict[str, np.ndarray] = {}
    for weight, column in table.parts():
        for block, loading in column.deviations.items():
            moved[block] = moved.get(block, np.zeros(1)) + weight * loading
    return noise, rows, {b: p.sum(keepdims=True) if b in common else p for b, p in moved.items()}


def check_no_given_rows(release: Release) -> None:
    """Refuse rows that were given with an error: another release may have the same one."""
    errors = [column.deviations.get(str(KNOWN), 0.0) for column in release.columns]
    if any(map(np.any, errors)):
        rule = "numbers of rows were given with an error, n=(values, variance), which may be that"
        way_out = "Compare releases that count their rows, or are given them without an error."
        raise QueryError(f"{rule} of another release. {way_out}", parameter="released")


def weights_of_blocks(table: Weighed, structure: LayersPart) -> dict[str, np.ndarray]:
    """Return the weights of the totals of every block in a weighted sum of cells."""
    found: dict[str, np.ndarray] = {}
    for weight, column in table.parts():
        for block, own in loading_weights(column.deviations, structure).items():
            found[block] = found.get(block, 0.0) + weight * own
    if not isinstance(structure, TreePart):
        return found
    bins = table.release.query.by[-1].groups
    return {block: part.reshape(-1, bins) for block, part in found.items()}


def _errors_over_tables(tables: Sequence[Weighed]) -> tuple[NoiseRecord, dict[str, np.ndarray]]:
    """Return where the noise of margins comes from, and by block the deviation of a sum."""
    first = tables[0].release
    if not all(of_one_query(table.release, first) for table in tables):
        raise shared_noise(first)
    if isinstance(first.mechanism, SignsPart):
        return _errors_of_sums(tables)
    return first.noise, _errors_of_layers(tables)


def shared_noise(release: Release) -> QueryError:
    """Make the error about several tables of one release."""
    rule = f"several tables here are of one release, {release.release_id}, and may share noise"
    way_out = (
        "Of one release, margins of one query are combined, or cells of one table: ask for columns "
        "in one dpf.aggregate, and leave out copies and selections of a table."
    )
    return QueryError(f"{rule}. {way_out}", parameter="released")


def _errors_of_sums(tables: Sequence[Weighed]) -> tuple[NoiseRecord, dict[str, np.ndarray]]:
    """Add up by sum of signs: all tables read the same ones."""
    noises = [table.release.mechanism for table in tables]
    whole = reduce(SignsPart.beside, (one for one in noises if isinstance(one, SignsPart)))
    found: dict[str, np.ndarray] = {}
    for table in tables:
        for weight, column in table.parts():
            for block, loading in column.deviations.items():
                part = np.sum(weight * loading, keepdims=True)
                found[block] = found.get(block, np.zeros(1)) + part
    return whole, found


def _errors_of_layers(tables: Sequence[Weighed]) -> dict[str, np.ndarray]:
    """Add up by layer: tables share those of the columns that they share."""
    sums: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
    variances: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
    for table in tables:
        structure = cast(MarginsPart, table.release.mechanism)
        columns = [grouping.column for grouping in table.release.query.by]
        for block, own in weights_of_blocks(table, structure).items():
            described = structure.by_block[block]
            named = [(block, name) for name in structure.names_of_layers(columns)]
            for name, part in zip(named, described.coefficients(own), strict=True):
                sums[name] = sums.get(name, 0.0) + part
            variances |= zip(named, described.variances(), strict=True)
    found: dict[str, float] = {}
    for name, part in sums.items():
        variance = float((part * part * variances[name]).sum())
        found[name[0]] = found.get(name[0], 0.0) + variance
    return {block: np.sqrt([variance]) for block, variance in found.items()}


def of_one_query(one: Release, other: Release) -> bool:
    """Whether two tables are margins of one query of a release."""
    asked = [(table.release_id, table.query.name, table.query.words) for table in (one, other)]
    together = one.mechanism, other.mechanism
    margins = any(all(isinstance(own, kind) for own in together) for kind in _OF_MARGINS)
    return margins and asked[0] == asked[1]


def loading_weights(
    deviations: Mapping[str, Value], structure: LayersPart
) -> dict[str, float | np.ndarray]:
    """Return how often a column counts the totals of each block."""
    return {
        block: loading / structure.by_block[block].deviations
        for block, loading in deviations.items()
        if block in structure.by_block
    }


def check_apart(release: Release, what: str, instead: str) -> None:
    """Refuse what takes the errors of cells for independent."""
    if isinstance(release.mechanism, LayersPart | SignsPart):
        rule = f"{what} takes errors of cells for independent, and these were measured together"
        raise QueryError(f"{rule}. {instead}")
