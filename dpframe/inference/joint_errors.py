"""Errors of what is computed from several cells, and those of rows that are a sample."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import ColumnPart, no_errors
from dpframe.certificates.mechanism_parts import (
    LayersPart,
    MarginsPart,
    NoiseRecord,
    SelectionPart,
    SignsPart,
    ThresholdPart,
    TreePart,
)
from dpframe.errors import QueryError, quote
from dpframe.frozen import frozen
from dpframe.inference.sums import IndependentSum, Linear
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise_sum import Value, norm
from dpframe.queries.of_columns import several_rows
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
    return [_source(group) for group in by_release.values()]


def _source(tables: Sequence[Weighed]) -> NoiseSource:
    first = tables[0].release
    noise, rows = first.noise, first.query.cells
    if not all(of_one_query(table.release, first) for table in tables[1:]):
        rule = f"several tables here are of one release, {first.release_id}, and may share noise"
        way_out = (
            "Of one release, margins of one query are combined, or cells of one table: ask for "
            "columns in one dpf.aggregate, and leave out copies and selections of a table."
        )
        raise QueryError(f"{rule}. {way_out}", parameter="released")
    if isinstance(noise, LayersPart):
        if len(tables) > 1:
            return noise, rows, _errors_of_layers(tables)
        layers = weights_of_blocks(tables[0], noise)
        errors = {b: np.sqrt([noise.by_block[b].variance(part)]) for b, part in layers.items()}
        return noise, rows, errors
    if isinstance(noise, SignsPart):  # all tables read the same sums
        others = (table.release.noise for table in tables[1:])
        noise = reduce(
            SignsPart.beside, (other for other in others if isinstance(other, SignsPart)), noise
        )
    common = set(noise.shared_blocks)
    moved: dict[str, np.ndarray] = {}
    for table in tables:
        for weight, column in table.parts():
            for block, loading in column.deviations.items():
                part = weight * loading
                # rows that share a noise move together: weights add up before they are squared
                part = np.sum(part, keepdims=True) if block in common else part
                moved[block] = moved.get(block, np.zeros(1)) + part
    return noise, rows, moved


def check_no_given_rows(release: Release) -> None:
    """Refuse rows that were given with an error: another release may have the same one."""
    errors = [column.deviations.get(str(KNOWN), 0.0) for column in release.columns]
    if any(map(np.any, errors)):
        rule = "numbers of rows were given with an error, n=(values, variance), which may be that"
        way_out = "Compare releases that count their rows, or are given them without an error."
        raise QueryError(f"{rule} of another release. {way_out}", parameter="released")


def weights_of_blocks(table: Weighed, structure: LayersPart) -> dict[str, np.ndarray]:
    """Return the weights of the totals of every block in a weighted sum of cells."""
    weights: dict[str, np.ndarray] = {}
    for weight, column in table.parts():
        for block, loading in column.deviations.items():
            if block in structure.by_block:
                totals = loading / structure.by_block[block].deviations
                weights[block] = weights.get(block, 0.0) + weight * totals
    if not isinstance(structure, TreePart):
        return weights
    bins = table.release.query.by[-1].groups
    return {block: part.reshape(-1, bins) for block, part in weights.items()}


def _errors_of_layers(tables: Sequence[Weighed]) -> dict[str, np.ndarray]:
    sums: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
    variances: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
    for table in tables:
        structure = cast(MarginsPart, table.release.mechanism)
        columns = [grouping.column for grouping in table.release.query.by]
        for block, weights in weights_of_blocks(table, structure).items():
            described = structure.by_block[block]
            named = [(block, name) for name in structure.names_of_layers(columns)]
            for name, part in zip(named, described.coefficients(weights), strict=True):
                sums[name] = sums.get(name, 0.0) + part
            variances |= zip(named, described.variances(), strict=True)
    variance_by_block: dict[str, float] = {}
    for name, part in sums.items():
        variance = float((part * part * variances[name]).sum())
        variance_by_block[name[0]] = variance_by_block.get(name[0], 0.0) + variance
    return {block: np.sqrt([variance]) for block, variance in variance_by_block.items()}


def of_one_query(release: Release, other: Release) -> bool:
    """Whether two tables are margins of one query of a release."""
    pair = release, other
    queries = [(table.release_id, table.query.name, table.query.words) for table in pair]
    margins = any(all(isinstance(table.mechanism, kind) for table in pair) for kind in _OF_MARGINS)
    return margins and queries[0] == queries[1]


def check_apart(release: Release, call: str, instead: str) -> None:
    """Refuse what takes the errors of cells for independent."""
    if isinstance(release.mechanism, LayersPart | SignsPart):
        rule = f"{call} takes errors of cells for independent, and these were measured together"
        raise QueryError(f"{rule}. {instead}")


def check_sampled(release: Release, columns: list[ColumnPart], *, across: bool = False) -> None:
    """Check that rows can be a sample of independent ones, and that their error is known."""
    if isinstance(release.mechanism, SelectionPart):
        raise no_errors()
    if isinstance(release.mechanism, ThresholdPart):
        rule = "is for groups that were known, and these were published for their size"
        way_out = "Use released counts of the groups found, .dp.count(by=..., keys=found.index)."
        raise QueryError.about("sampling", rule, True, way_out)
    for column in columns:
        if column.weights is not None:
            rule = f"is not known of {quote(column.name)}, whose rows count for their weights"
            way_out = "Leave sampling out: intervals are then about the weighted sample."
            raise QueryError.about("sampling", rule, True, way_out)
        if column.statistic.knows_sampling:
            continue
        rule = f"takes what was not measured for {column.kind} {quote(column.name)}"
        choose = "Leave sampling out, or choose other columns, released[[...]]."
        raise QueryError.about("sampling", rule, True, f"{column.form.to_sample} {choose}")
    caps = release.privacy_unit.caps
    of_all_groups = across or isinstance(release.mechanism, MarginsPart | SignsPart)
    if not caps.single_row and (caps.max_rows_per_group != 1 or of_all_groups):
        raise several_rows(release.privacy_unit.columns, of_all_groups=of_all_groups)


_LEAST_FREEDOM = 20  # below that, the estimate is too unsure to tell how unsure it is


def widen(
    width: Value, deviation: Value, variance: Value, level: float, error: Value = 0.0
) -> np.ndarray:
    """Return the half-width for noise and an independent normal error together.

    With s the deviation of the noise, v the variance of the normal error, z the normal quantile and
    `h = w / s` the half-width of the noise in its deviations, it is `f sqrt(s^2 + v)` with `f = z +
    (h - z) (s^2 / (s^2 + v))^2`: to first order in the excess kurtosis, which sums have by these
    squares (Cornish and Fisher 1938). Of Laplace and normal errors it holds, at every ratio of
    them, within .005 of the levels .8, .9 and .95, and within .0015 of .99. A v below 0 counts as
    0.

    Where noise gives v a standard error e, `T = s^2 + v` has that of a variance with `n = 2 T^2 /
    e^2` degrees of freedom, and counts as one with 20 at least: the half-width is multiplied by `1
    + (z^2 + 1) / (4 n)`, as a quantile of Student is to first order (Satterthwaite 1946).

    Examples
    --------
    >>> widen(3.0, 1.0, 0.0, 0.95).item(), widen(3.0, 1.0, 1e4, 0.95).round(1).item()
    (3.0, 196.0)
    """
    noise = np.square(np.asarray(deviation, np.float64))
    both = noise + np.maximum(variance, 0)
    z = GAUSSIAN.quantile(level)
    shape = np.broadcast_shapes(np.shape(width), np.shape(both))
    share = np.divide(noise, both, out=np.ones(np.shape(both)), where=both > 0)
    wide = np.broadcast_to(np.asarray(deviation, np.float64), shape)
    alone = np.divide(width, wide, out=np.full(shape, z), where=wide > 0)
    relative = np.divide(
        error, both, out=np.zeros(np.broadcast_shapes(np.shape(error), shape)), where=both > 0
    )
    unsure = 1 + (z**2 + 1) / 4 * np.minimum(np.square(relative) / 2, 1 / _LEAST_FREEDOM)
    widened: np.ndarray = (z + (alone - z) * share**2) * unsure * np.sqrt(both)
    return np.asarray(np.maximum(widened, width))


@frozen(slots=True, eq=False)
class WithSampling:
    """The error of a sum of two released numbers, in every row: of noise, and of sampled rows."""

    noise: IndependentSum
    variance: np.ndarray
    error: Value = 0.0

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the sum."""
        return np.asarray(np.hypot(self.noise.deviation, np.sqrt(np.maximum(self.variance, 0))))

    def half_width(self, level: float) -> np.ndarray:
        """Return the half-width for the sum."""
        noise, sampled = self.noise, (self.variance, level, self.error)
        return widen(noise.half_width(level), noise.deviation, *sampled)

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say by how much distances are larger than the half-width."""
        return np.asarray(distance - self.half_width(level))


def count_ends(
    values: tuple[np.ndarray, np.ndarray], width: Value, deviation: Value, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals for expected counts, by which rows are drawn.

    With X the noisy count, they are those of the counts m, the mean and variance of a Poisson law,
    with `|X - m| <= f sqrt(s^2 + m)`, where f is as for `widen` and X; and of the noise alone. X is
    the smallest and the largest that counts may have been before they were rounded.
    """
    low, high = (value - width if at == 0 else value + width for at, value in enumerate(values))
    ends = []
    for value, sign in zip(values, (-1, 1), strict=True):
        rows = np.maximum(value, 1.0)
        both = np.square(deviation) + rows
        wide = widen(width, deviation, rows, level)
        factor = wide / np.sqrt(both)
        root = np.sqrt(np.maximum(np.square(deviation) + value + factor**2 / 4, 0))
        ends.append(value + factor**2 / 2 + sign * factor * root)
    return np.where(low > 0, np.clip(ends[0], 0, low), low), np.maximum(ends[1], high)


def sampling_variance(column: ColumnPart, values: np.ndarray) -> np.ndarray:
    """Return the variance that sampling gives the values of a column, to first order."""
    return column.statistic.sampling_variance(column.totals, values)
