"""What every strategy is given, and what it answers.

A workload names sources of rows and the outputs wanted from them. A design measures integer
combinations of their totals, one noise scale per block, and turns the measured integers into
estimates. Neither knows frames.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Neighboring
from dpframe.privacy.sensitivity import Kernel, Reach, Scale
from dpframe.statistics.form import Statistic, Totals
from dpframe.statistics.table import STATISTICS, StatisticName, statistic_of
from dpframe.strategies.domain import Domain, Structure
from dpframe.strategies.ordered import Window


class Layers(Protocol):
    """Integers that are measured of many cells at once, with noise scales in fixed proportions.

    A block measures the same integers of its totals as all others. Tables are what is released: one
    of all cells, or several margins.
    """

    @property
    def kernel(self) -> Kernel:
        """What rows of different cells share, exactly, at scale 1 of a block."""

    @property
    def profile(self) -> np.ndarray:
        """The noise scale of every measured integer at scale 1 of a block, rounded up."""

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the integers that are measured of totals, one per cell, mod 2**64."""

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return estimates of the totals of every table, one float per cell of it."""

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of a cell of every table, or the largest there is."""

    def deviations_of_cells(self, scale: float) -> Sequence[float | np.ndarray]:
        """Return the standard deviations of the cells of every table, where they differ."""
        return self.deviations(scale)

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the error of every table by which plans are compared."""
        return self.deviations(scale)

    def describe(self, table: int, scale: float) -> Structure:
        """Say what the covariance of the cells of a table is."""


EVERYONE = 0
"""The source of all rows of a cell."""

Need: TypeAlias = tuple[int, str]
"""A total to compute: the position of a source, and which of its totals.

It is "value", "rows", "square" or "units", or one of `statistics.moments`: of `parts_of_pair`, or
of `moments`, of which a row adds `HALF` to a power at most.
"""

HALF = 1 << 15
"""Half a width, where several columns are multiplied."""

WHOLE = (2 * HALF) ** 2
"""What the parts of a pair of values add up to."""


@frozen(slots=True)
class Source:
    """Rows that contribute together: a present row adds 1 to `rows` and an integer to `value`.

    With a value x in [l, u] it adds `ceil((2 x - l - u)^2 / (u - l))` to `square`.

    Parameters
    ----------
    lower, upper
        Integer bounds of the value of a present row; both 0 where only rows are counted.
    optional
        Whether a row of the cell may be absent: filtered out, or with a missing value.
    others
        Of several columns, the integer bounds of all but the first: a present row adds moments, or
        parts, which are not negative and add up to `WHOLE`.
    degree
        Of several columns, that of the moments; of a pair, that of the Bernstein polynomials of
        either column, whose products the parts are.
    """

    lower: int
    upper: int
    optional: bool
    others: tuple[tuple[int, int], ...] = ()
    degree: int = 2

    @property
    def bounds(self) -> tuple[tuple[int, int], ...]:
        """The bounds of the columns of values."""
        return ((self.lower, self.upper), *self.others)

    @property
    def hull(self) -> tuple[int, int]:
        """Bounds of what a row of the cell adds to the value, absent ones adding 0."""
        lower, upper = self.lower, self.upper
        return (min(lower, 0), max(upper, 0)) if self.optional else (lower, upper)


@frozen(slots=True)
class Output:
    """A released column.

    Parameters
    ----------
    name
        What it says about the rows of the source.
    source
        Position of the source in the workload.
    sampled
        Whether a mean is to say how far values are apart, too, for its sampling error. Moments of
        several columns say it by their degree.
    of_rows
        How many times the rows are added to a sum of values. With weights, values are counted from
        the lower bound where their mean is an output, too.
    weight
        How much its variance counts beside those of other outputs.
    mirrored
        Whether values of a mean count from the upper bound down.
    among
        The position of a source of several columns that tells as much, and which of them it is
        about.
    """

    name: StatisticName
    source: int
    sampled: bool = False
    of_rows: float = 0.0
    weight: float = 1.0
    mirrored: bool = False
    among: tuple[int, int] | None = None

    @property
    def kind(self) -> type[Statistic]:
        """What it says about the rows of the source."""
        return STATISTICS[self.name]

    @property
    def sign(self) -> int:
        """What the values of a mean are multiplied by, counted from the middle."""
        return -1 if self.mirrored else 1

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum of values."""
        return self.kind.is_total and not self.kind.is_whole

    @property
    def is_everyone(self) -> bool:
        """Whether it is the number of all rows of the cell."""
        return self.kind.is_whole and self.source == EVERYONE


@frozen(slots=True, eq=False)
class PublicRows:
    """Public numbers of rows, equal to themselves alone.

    Parameters
    ----------
    rows
        One per cell.
    variance
        That of each number.
    """

    rows: np.ndarray
    variance: float


@frozen(slots=True)
class Workload:
    """Outputs wanted for several disjoint cells: all that a design is told.

    Whatever is shared or kept for a workload is so for equal ones: every field is compared.

    Parameters
    ----------
    sources, outputs
        The rows there are, and what to release about them. The first source is all rows of the
        cell.
    domain
        Where the cells lie.
    reach
        How much of the cells one privacy unit can fill.
    neighboring
        The neighboring relation.
    most
        How many of the value sources, all with values 0 and 1, a row has at most; `None`: all of
        them.
    rows_weight
        Importance of the variance of the number of rows, even if it is not an output.
    worst
        Whether to minimize the worst relative variance of all outputs, instead of their sum.
    known_rows
        The number of rows of every cell, if it is public.
    has_units
        Whether units are declared, so that they can be counted.
    ranges
        Whether numbers of rows below each edge of the last dimension, which is ordered, are what
        matters, in place of single cells.
    window
        Which sums over adjacent cells along it matter.
    exclusive
        Sources that exclude each other: a row of the cell is present in one of a set at most.
    weight
        What a row counts for at most: it adds any part of so many times what is said of it.
    """

    sources: tuple[Source, ...]
    outputs: tuple[Output, ...]
    domain: Domain
    reach: Reach
    neighboring: Neighboring
    most: int | None = None
    rows_weight: float = 0.0
    worst: bool = False
    known_rows: PublicRows | None = None
    has_units: bool = False
    ranges: bool = False
    window: Window = None
    exclusive: tuple[tuple[int, ...], ...] = ()
    weight: int = 1

    @property
    def is_layered(self) -> bool:
        """Whether what is wanted is measured over many cells at once."""
        return self.ranges or bool(self.domain.margins)

    @property
    def is_of_several(self) -> bool:
        """Whether something is wanted of several columns together."""
        return any(output.kind.of_several for output in self.outputs)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.domain.size

    @property
    def everyone(self) -> Output:
        """The number of all rows of the cell."""
        return Output("count", EVERYONE)

    @property
    def outputs_and_rows(self) -> tuple[Output, ...]:
        """The outputs wanted, and the number of rows where it only matters."""
        added = self.rows_weight and not self.counts_everyone
        return (*self.outputs, self.everyone) if added else self.outputs

    @property
    def counts_everyone(self) -> bool:
        """Whether the number of all rows of the cell is an output."""
        return any(output.is_everyone for output in self.outputs)

    @property
    def rows_public(self) -> bool:
        """Whether rows are always there and only replaced, so that their number is public."""
        return self.reach.always and self.neighboring == "replace"

    def statistic(self, output: Output) -> Statistic:
        """Return what an output says, in grid units."""
        return _statistic_of(output.name, self.sources[output.source].bounds, output.sampled)

    def width(self, output: Output) -> float:
        """Return the range of what a row adds to an output, to which its error is compared."""
        statistic, source = self.statistic(output), self.sources[output.source]
        if not output.is_sum:
            return statistic.width
        lower, upper = source.hull
        if output.of_rows:
            ends = (0.0, source.lower + output.of_rows, source.upper + output.of_rows)
            return max(ends) - min(ends)
        return upper - lower or abs(upper) or 1


@lru_cache  # every design of a workload asks for those of its outputs
def _statistic_of(
    name: StatisticName, bounds: tuple[tuple[int, int], ...], sampled: bool
) -> Statistic:
    return statistic_of(name, bounds, sampled=sampled)


@frozen(slots=True)
class Prediction:
    """Error of one output, known before any data is read.

    Parameters
    ----------
    std_error
        Standard error in grid units, per cell. For a mean or a variance, the largest it can be in a
        cell of one row; for a deviation, the largest where it is a quarter of the width.
    per_row
        Whether `std_error` is to be divided by the number of rows in the cell.
    block
        The measured block that *is* this output, if it is one, so that exact quantiles of its noise
        apply.
    loadings
        By block, the standard deviation that its noise gives the output, with a sign; for a mean,
        where the error is largest.
    """

    std_error: float
    per_row: bool = False
    block: int | None = None
    loadings: Mapping[int, float] = field(default_factory=dict)


@frozen(slots=True, eq=False)
class Estimate:
    """Values of one output in grid units, and what the noise of the blocks does to them.

    Parameters
    ----------
    values
        One per cell.
    loadings
        By block, the standard deviation that its noise gives the values, with a sign, one for all
        cells or one for each. Blocks are uncorrelated, so the covariance of two outputs in a cell
        is the sum of the products of their loadings.
    totals
        What quotients are read off; `None` for totals.
    """

    values: np.ndarray
    loadings: Mapping[int, float | np.ndarray]
    totals: Totals[int] | None = None


class Design(Protocol):
    """A choice of integers to measure, ready to be calibrated."""

    @property
    def scales(self) -> tuple[float, ...]:
        """Relative noise scales of the blocks; 0 for a block that no neighbor moves."""

    @property
    def common(self) -> frozenset[int]:
        """Blocks of a single integer, whose noise all cells share."""

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Groups that partition the blocks, by position; the noise of a group is drawn together."""

    @property
    def joined(self) -> bool:
        """Whether a group reaches over all cells, common blocks once, and is drawn once."""

    @property
    def extra(self) -> int:
        """How many numbers of rows come after the outputs wanted, free of charge: 0 or 1."""

    @property
    def needs(self) -> frozenset["Need"]:
        """Totals to compute."""

    @property
    def layers(self) -> Layers | None:
        """What is measured of many cells at once; `None`: a block has one integer per cell."""

    def movement(self, scales: Sequence[Scale], law: Law) -> Scale:
        """Return the most that a neighbor can move the blocks, as the law adds it up.

        It is exact where the scales are fractions.
        """

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals, one integer per cell, into the int64 blocks to measure, mod 2**64."""

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the errors of the outputs from the noise deviations of the blocks.

        Where there are layers, these are scales in place of deviations; and the outputs come once
        for each table, table by table.
        """

    def errors(self, deviations: Sequence[float]) -> list[float]:
        """Return the standard errors by which plans are compared, of outputs as in `predict`.

        Of a table whose cells err differently, it is the root of their mean variance.
        """

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[float]) -> list[Estimate]:
        """Turn the measured blocks into estimates of the outputs, as `predict` lists them."""
