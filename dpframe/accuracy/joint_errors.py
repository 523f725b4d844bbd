"""Errors of what is computed from several cells that were measured together."""

from collections.abc import Sequence
from functools import reduce
from typing import cast

import numpy as np

from dpframe.certificates.certificate import Certificate, Release
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.parts import LayersPart, MarginsPart, NoiseRecord, SignsPart, TreePart
from dpframe.certificates.steps import ALL_ROWS, CELLS_AS_RELEASED, StepKinds
from dpframe.errors import QueryError

_OF_MARGINS = MarginsPart, SignsPart

TOGETHER = (
    "Counts by different columns are measured apart with denoise= in the call of their release. "
    "Margins of at most two columns each are made whole numbers that add up by "
    'denoise="consistent" there, or by dpframe.consistent afterwards.'
)
"""What to do in place of denoising tables that were measured together."""


def steps_before(certificate: Certificate) -> StepKinds:
    """Say after which steps rows can be combined: cells that were measured together have places."""
    together = isinstance(certificate.releases[0].mechanism, LayersPart)
    return ALL_ROWS if together else CELLS_AS_RELEASED


def weights_of_blocks(
    release: Release, structure: LayersPart, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the weights of the totals of every block in a weighted sum of cells.

    Parameters
    ----------
    release
        What is said about the table.
    structure
        How its cells were measured.
    weights
        Weights of the cells, by row and column.

    Returns
    -------
    dict
        By block, one weight per row; for a tree, by tree and bin.
    """
    found: dict[str, np.ndarray] = {}
    for weight, column in zip(weights.T, release.columns, strict=True):
        for block, own in loading_weights(column, structure).items():
            found[block] = found.get(block, 0.0) + weight * own
    if not isinstance(structure, TreePart):
        return found
    bins = release.query.by[-1].groups
    return {block: part.reshape(-1, bins) for block, part in found.items()}


def errors_over_tables(
    tables: Sequence[tuple[Release, np.ndarray]],
) -> tuple[NoiseRecord, dict[str, np.ndarray]]:
    """Return where the noise of margins comes from, and what each block adds to a weighted sum.

    Parameters
    ----------
    tables
        What is said about each, and the weights of cells by row and column.

    Returns
    -------
    noise, parts
        The noise of all of them, and by block the deviation of the sum, as arrays of one.

    Raises
    ------
    QueryError
        If the tables were not measured together.
    """
    first, _ = tables[0]
    if not all(of_one_query(release, first) for release, _ in tables):
        rule = "tables are combined where they are margins of one query, measured together"
        way_out = "Combine the cells of each of these by itself."
        raise QueryError(f"{rule}. {way_out}", parameter="released")
    if isinstance(first.mechanism, SignsPart):
        return _errors_of_sums(tables)
    return first.noise, _errors_of_layers(tables)


def _errors_of_sums(
    tables: Sequence[tuple[Release, np.ndarray]],
) -> tuple[NoiseRecord, dict[str, np.ndarray]]:
    """Add up by sum of signs: all tables read the same ones."""
    noises = [release.mechanism for release, _ in tables]
    whole = reduce(SignsPart.beside, (one for one in noises if isinstance(one, SignsPart)))
    found: dict[str, np.ndarray] = {}
    for release, weights in tables:
        for weight, column in zip(weights.T, release.columns, strict=True):
            for block, loading in column.deviations.items():
                part = np.sum(weight * loading, keepdims=True)
                found[block] = found.get(block, np.zeros(1)) + part
    return whole, found


def _errors_of_layers(tables: Sequence[tuple[Release, np.ndarray]]) -> dict[str, np.ndarray]:
    """Add up by layer: tables share those of the columns that they share."""
    sums: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
    variances: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
    for release, weights in tables:
        structure = cast(MarginsPart, release.mechanism)
        columns = [grouping.column for grouping in release.query.by]
        for block, own in weights_of_blocks(release, structure, weights).items():
            described = structure.by_block[block]
            named = [(block, tuple(columns[at] for at in layer)) for layer in structure.layers]
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


def loading_weights(column: ColumnPart, structure: LayersPart) -> dict[str, float | np.ndarray]:
    """Return how often a column counts the totals of each block."""
    return {
        block: loading / structure.by_block[block].deviation
        for block, loading in column.deviations.items()
        if block in structure.by_block
    }


def errors_of_shares(
    column: ColumnPart,
    structure: LayersPart,
    a: np.ndarray,
    b: np.ndarray,
    levels: Sequence[int] = (),
) -> dict[str, float | np.ndarray]:
    """Return by block the deviation of `a x_i - b sum_j x_j`, over all cells j of a group.

    With V the variance of a cell and T that of the sum of the n cells of its group, the covariance
    of the two is `T / n` for every cell: `a^2 V - 2 a b T / n + b^2 T`. V and T are those of the
    first cell and group: others are smaller, by rounding alone, and so is all of this.

    Parameters
    ----------
    column
        A count or a sum.
    structure
        How cells were measured; of margins.
    a, b
        One per cell.
    levels
        Positions of the levels of the index whose keys make groups; none: all cells are one.
    """
    found: dict[str, float | np.ndarray] = {}
    group = np.zeros(structure.sizes)
    group[tuple(0 if k in levels else slice(None) for k in range(group.ndim))] = 1
    cells = np.count_nonzero(group)
    for block, weight in loading_weights(column, structure).items():
        described = structure.by_block[block]
        total = described.variance(group)
        own = described.deviation**2
        variance = a * a * own - 2 * a * b * total / cells + b * b * total
        found[block] = np.abs(weight) * np.sqrt(np.maximum(variance, 0))
    return found


def check_apart(release: Release, what: str, instead: str) -> None:
    """Refuse what takes the errors of cells for independent."""
    if isinstance(release.mechanism, LayersPart | SignsPart):
        rule = f"{what} takes errors of cells for independent, and these were measured together"
        raise QueryError(f"{rule}. {instead}")
