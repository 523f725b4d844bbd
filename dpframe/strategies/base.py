"""What every strategy is given, and what it answers.

A workload names sources of rows and the outputs wanted from them. A design measures integer
combinations of their totals, one noise scale per block, and turns the measured integers into
estimates. Neither knows frames.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import numpy as np

from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Neighboring
from dpframe.privacy.sensitivity import Kernel, Reach, Scale
from dpframe.strategies.domain import Domain
from dpframe.strategies.structure import Structure


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

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the error of every table by which plans are compared."""
        return self.deviations(scale)

    def describe(self, table: int, scale: float) -> Structure:
        """Say what the covariance of the cells of a table is."""


EVERYONE = 0
"""The source of all rows of a cell."""

Total: TypeAlias = Literal[
    "rows", "value", "mean", "variance", "deviation", "covariance", "correlation", "slope"
]
"""What is read off a source: how many rows, the sum of their values, their mean, and so on."""

Need: TypeAlias = tuple[int, str]
"""A total to compute: the position of a source, and which of its totals.

It is "value", "rows", "square" or "units", or one of `parts_of_pair`.
"""

WHOLE = 1 << 32
"""What the parts of a pair of values add up to."""


def parts_of_pair(degree: int) -> dict[str, tuple[int, int]]:
    """Return which part of the first column and which of the second one each part of a pair is.

    Examples
    --------
    >>> [*parts_of_pair(1)]
    ['part 0 0', 'part 0 1', 'part 1 0', 'part 1 1']
    """
    each = range(degree + 1)
    return {f"part {i} {j}": (i, j) for i in each for j in each}


@dataclass(frozen=True, slots=True)
class Source:
    """Rows that contribute together: a present row adds 1 to `rows` and an integer to `value`.

    With a value x in [l, u] it adds `ceil((2 x - l - u)^2 / (u - l))` to `square`.

    Parameters
    ----------
    lower, upper
        Integer bounds of the value of a present row; both 0 where only rows are counted.
    optional
        Whether a row of the cell may be absent: filtered out, or with a missing value.
    other
        Of a pair of columns, the integer bounds of the second one: a present row adds non-negative
        integers that add up to `WHOLE`.
    degree
        Of a pair, that of the Bernstein polynomials of either column, whose products these are.
    """

    lower: int
    upper: int
    optional: bool
    other: tuple[int, int] | None = None
    degree: int = 2

    @property
    def half_widths(self) -> tuple[float, float]:
        """Half the widths of the bounds of both columns of a pair."""
        low, high = self.other or (0, 0)
        return (self.upper - self.lower) / 2, (high - low) / 2

    @property
    def hull(self) -> tuple[int, int]:
        """Bounds of what a row of the cell adds to the value, absent ones adding 0."""
        lower, upper = self.lower, self.upper
        return (min(lower, 0), max(upper, 0)) if self.optional else (lower, upper)


@dataclass(frozen=True, slots=True)
class Output:
    """A released column.

    Parameters
    ----------
    kind
        "rows": how many rows of the source are present; "value": the sum of their values; "mean":
        the ratio of the two; "variance": that of the values, divided by rows; "deviation": its
        root; "covariance", "correlation" and "slope": those of a pair of values.
    source
        Position of the source in the workload.
    sampled
        Whether a mean is to say how far values are apart, too, for its sampling error. The parts of
        a pair say it by their degree.
    of_rows
        How many times the rows are added to a sum of values. With weights, values are counted from
        the lower bound where their mean is an output, too.
    """

    kind: Total
    source: int
    sampled: bool = False
    of_rows: float = 0.0

    @property
    def needs_squares(self) -> bool:
        """Whether it is read off squares of values, too."""
        return self.sampled or self.is_dispersion

    @property
    def is_association(self) -> bool:
        """Whether it says how two columns go together."""
        return self.kind in ("covariance", "correlation", "slope")

    @property
    def is_dispersion(self) -> bool:
        """Whether it says how far values are apart."""
        return self.kind in ("variance", "deviation")


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True)
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
    exclusive: tuple[tuple[int, ...], ...] = ()
    weight: int = 1

    @property
    def is_layered(self) -> bool:
        """Whether what is wanted is measured over many cells at once."""
        return self.ranges or bool(self.domain.margins)

    @property
    def is_paired(self) -> bool:
        """Whether something is wanted of a pair of columns."""
        return any(output.is_association for output in self.outputs)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.domain.size

    @property
    def everyone(self) -> Output:
        """The number of all rows of the cell."""
        return Output("rows", EVERYONE)

    @property
    def outputs_and_rows(self) -> tuple[Output, ...]:
        """The outputs wanted, and the number of rows where it only matters."""
        added = self.rows_weight and self.everyone not in self.outputs
        return (*self.outputs, self.everyone) if added else self.outputs

    @property
    def rows_public(self) -> bool:
        """Whether rows are always there and only replaced, so that their number is public."""
        return self.reach.always and self.neighboring == "replace"

    def width(self, output: Output) -> float:
        """Return the range of what a row adds to an output, to which its error is compared.

        It is 1 for rows, and `u - l` for values and means, or the largest value where that is 0.
        For variances, deviations and what is about pairs it is the largest value there can be, or
        1; for slopes, the ratio of the widths.
        """
        if output.kind == "rows":
            return 1
        if output.is_association:
            x, y = self.sources[output.source].half_widths
            largest = {"covariance": x * y, "correlation": 1.0, "slope": y / x if x else 1.0}
            return largest[output.kind] or 1
        if output.is_dispersion:
            half = (self.sources[output.source].upper - self.sources[output.source].lower) / 2
            return (half**2 if output.kind == "variance" else half) or 1
        source = self.sources[output.source]
        lower, upper = source.hull if output.kind == "value" else (source.lower, source.upper)
        if output.of_rows:
            ends = (0.0, source.lower + output.of_rows, source.upper + output.of_rows)
            return max(ends) - min(ends)
        return upper - lower or abs(upper) or 1


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """The noisy numbers that a mean is read off.

    Parameters
    ----------
    centered, rows
        The sum of values, each less the middle of the bounds, and the number of rows, per cell.
    of_centered, of_rows
        By block, the standard deviation that its noise gives them, with a sign.
    """

    centered: np.ndarray
    rows: np.ndarray
    of_centered: Mapping[int, float]
    of_rows: Mapping[int, float]


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The noisy numbers that variances are read off.

    Parameters
    ----------
    rows, first, rest
        The number of rows, the sum of y and that of `y^2 - 1 / 2`, per cell, where y is how far a
        value is off the center of its bounds, in half widths.
    of_rows, of_first, of_rest
        By block, the standard deviation that its noise gives them, with a sign.
    half_width
        Half the width of the bounds.
    """

    rows: np.ndarray
    first: np.ndarray
    rest: np.ndarray
    of_rows: Mapping[int, float]
    of_first: Mapping[int, float]
    of_rest: Mapping[int, float]
    half_width: float


@dataclass(frozen=True, slots=True, eq=False)
class JointMoments:
    """The noisy parts of a pair of columns that covariances are read off.

    With x and y how far values are off the centers of their bounds, in half widths, and d the
    degree, part (d + 1) i + j is the sum of `B_i(x) B_j(y)`, where `B_i(x) = C(d, i) ((1 + x) /
    2)^i ((1 - x) / 2)^(d - i)`.

    Parameters
    ----------
    parts
        By block, the sum, per cell; blocks are in the order of the parts.
    noise
        By block, the standard deviation of its noise.
    half_widths
        Half the widths of the bounds of both columns.
    """

    parts: Mapping[int, np.ndarray]
    noise: Mapping[int, float]
    half_widths: tuple[float, float]

    @property
    def degree(self) -> int:
        """The degree d."""
        return math.isqrt(len(self.parts)) - 1


@dataclass(frozen=True, slots=True, eq=False)
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
    ratio
        What means are read off; `None` for other outputs.
    moments
        What variances and deviations are read off, and those of sampled means; `None` for other
        outputs.
    joint
        What covariances, correlations and slopes are read off; `None` for other outputs.
    """

    values: np.ndarray
    loadings: Mapping[int, float | np.ndarray]
    ratio: Ratio | None = None
    moments: Moments | None = None
    joint: JointMoments | None = None


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
