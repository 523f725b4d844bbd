"""The parts of a certificate about columns, a record for each kind.

As in `parts`, docstrings are the descriptions of the JSON Schema.
"""

import math
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeAlias, get_args

import numpy as np

from dpframe.certificates import json_records as records
from dpframe.certificates.json_records import Packed, pack, unpack
from dpframe.errors import QueryError
from dpframe.queries.query import Statistic
from dpframe.strategies.association import Association, unit_of
from dpframe.strategies.base import JointMoments, Moments, Ratio

Loadings: TypeAlias = Mapping[int, float | np.ndarray]


def packed_loadings(by_block: Loadings, step: float) -> dict[str, float | Packed]:
    """Write what the noise of the blocks does to something counted in steps, in its units."""
    return {str(block): pack(np.multiply(own, step)) for block, own in by_block.items()}


class RatioPart(records.Record):
    """What a mean was read off, so that it can be checked for bias, and denoised.

    Parameters
    ----------
    centered
        The noisy sum of values, each less the middle of the bounds, in the units of the column.
    rows
        The noisy number of rows, or the one that was given; with weights, the noisy total weight in
        steps of the weights, and the sum likewise.
    of_centered
        By how much one standard deviation of each measured block moves the sum.
    of_rows
        By how much it moves the number of rows.
    """

    centered: float | Packed
    rows: float | Packed
    of_centered: records.ByBlock[float | Packed]
    of_rows: records.ByBlock[float | Packed]


def ratio_part(ratio: Ratio, step: float) -> RatioPart:
    """Write what a mean was read off, sums in its units."""
    return RatioPart(
        centered=pack(np.multiply(ratio.centered, step)),
        rows=pack(ratio.rows),
        of_centered=packed_loadings(ratio.of_centered, step),
        of_rows=packed_loadings(ratio.of_rows, 1.0),
    )


class MomentsPart(records.Record):
    """What a variance or a standard deviation was read off, so that intervals can be made.

    Values count as y: how far they are off the middle of the bounds, in halves of their width.

    Parameters
    ----------
    rows
        The noisy number of rows.
    first
        The noisy sum of y.
    rest
        The noisy sum of y^2 - 1/2.
    of_rows
        By how much one standard deviation of each measured block moves the number of rows.
    of_first
        By how much it moves the sum of y.
    of_rest
        By how much it moves that of y^2 - 1/2.
    half_width
        Half the width of the bounds, in the units of the column.
    """

    rows: Packed
    first: Packed
    rest: Packed
    of_rows: records.ByBlock[float]
    of_first: records.ByBlock[float]
    of_rest: records.ByBlock[float]
    half_width: records.NotNegative

    @property
    def numbers(self) -> Moments:
        """The noisy numbers, by numbers of blocks."""
        rows, first, rest = (np.asarray(unpack(one)) for one in (self.rows, self.first, self.rest))
        moved = (self.of_rows, self.of_first, self.of_rest)
        of_rows, of_first, of_rest = ({int(block): by[block] for block in by} for by in moved)
        return Moments(rows, first, rest, of_rows, of_first, of_rest, self.half_width)


def moments_part(moments: Moments, step: float) -> MomentsPart:
    """Write what a variance was read off."""
    rows, first, rest = map(Packed.of, (moments.rows, moments.first, moments.rest))
    moved = (moments.of_rows, moments.of_first, moments.of_rest)
    of_rows, of_first, of_rest = ({str(block): by[block] for block in by} for by in moved)
    half_width = moments.half_width * step
    return MomentsPart(rows, first, rest, of_rows, of_first, of_rest, half_width)


class JointMomentsPart(records.Record):
    """What a covariance, a correlation or a slope was read off, so that intervals can be made.

    Values count as x and y: how far they are off the middle of their bounds, in halves of their
    width. With degree d, the blocks are, in order, for i and j from 0 to d, the sum of B_i(x)
    B_j(y), where B_i(x) = C(d, i) ((1 + x) / 2)^i ((1 - x) / 2)^(d - i).

    Parameters
    ----------
    parts
        The noisy sums, by block: nine of degree 2, or 25 of degree 4.
    deviations
        By block, the standard deviation of its noise.
    half_widths
        Half the widths of the bounds, in the units of the columns.
    """

    parts: records.ByBlock[Packed]
    deviations: records.ByBlock[float]
    half_widths: tuple[records.NotNegative, records.NotNegative]

    def __post_init__(self) -> None:
        known = {len(self.parts), len(self.deviations)}
        records.require(known <= {9} or known <= {25}, "there are 9 or 25 parts")

    @property
    def numbers(self) -> JointMoments:
        """The noisy numbers, by numbers of blocks."""
        order = sorted(self.parts, key=int)
        parts = {int(block): np.asarray(unpack(self.parts[block])) for block in order}
        noise = {int(block): self.deviations[block] for block in order}
        return JointMoments(parts, noise, self.half_widths)


def joint_part(joint: JointMoments, steps: tuple[float, float]) -> JointMomentsPart:
    """Write what a covariance was read off; steps are those of the grids of both columns."""
    parts = {str(block): Packed.of(part) for block, part in joint.parts.items()}
    deviations = {str(block): one for block, one in joint.noise.items()}
    x, y = (half * step for half, step in zip(joint.half_widths, steps, strict=True))
    return JointMomentsPart(parts, deviations, (x, y))


WrittenBounds: TypeAlias = tuple[int | float, int | float]
Microseconds: TypeAlias = Annotated[int, records.Limits(ge=-(2**63), lt=2**63)]


class TimesPart(records.Record):
    """WrittenBounds of a column of durations or points in time, and how it is counted.

    Parameters
    ----------
    written
        The bounds as they were declared.
    counted
        What the numbers of the column stand for.
    origin
        Where points in time are counted from, in microseconds since 1970; 0 for durations.
    bounds
        WrittenBounds in microseconds, of durations or since 1970.
    zone
        The time zone, if the points in time have one.
    """

    written: tuple[str, str]
    counted: Literal["in seconds", "from the lower bound, in seconds"]
    origin: Microseconds
    bounds: tuple[Microseconds, Microseconds]
    zone: str | None


class NoisePart(records.Record):
    """Noise of one measured block.

    Parameters
    ----------
    scale
        Scale of the noise on the integers: sigma of a Gaussian before rounding, b of a discrete
        Laplace. 0: the relation of neighbors makes the number public.
    step
        Size of one integer in the units of the column: real values were rounded to this grid.
    members
        How many coordinates were drawn together with this one, itself included.
    """

    scale: records.NotNegative
    step: Annotated[float, records.Limits(gt=0)]
    members: records.AtLeastOne


class WeightsPart(records.Record):
    """What rows count for in a weighted total, mean or rate.

    Parameters
    ----------
    column
        Label of the private column of weights.
    bounds
        Bounded contribution: weights were clipped to [lower, upper], declared without looking at
        the data. A missing weight counts as 0.
    step
        Size of one integer of the weights: they were rounded to this grid, and what means and rates
        were read off is in these steps.
    """

    column: str
    bounds: WrittenBounds
    step: Annotated[float, records.Limits(gt=0)]


class ColumnPart(records.Record):
    """One released column.

    Parameters
    ----------
    kind
        What it estimates.
    name
        Its label.
    where
        A condition of its own, beside that of the query.
    weights
        What rows count for; null: each counts for 1.
    """

    kind: Statistic
    name: str
    where: str | None
    weights: WeightsPart | None

    @property
    def about(self) -> str | None:
        """The private column, or the condition, that it is about; `None` for rows."""
        return None

    @property
    def declared(self) -> tuple[object, object] | None:
        """The bounds that were declared, if it is about a column."""
        return None

    @property
    def span(self) -> tuple[float, float]:
        """What a row can add at least and at most: numbers, or microseconds from the origin.

        With weights, it is what one of weight 1 can add.
        """
        return 0.0, 1.0

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows or units, which is whole."""
        return self.kind == "count" and self.weights is None

    @property
    def times(self) -> TimesPart | None:
        """How times are counted; `None` for a column of numbers."""
        return None

    @property
    def origin(self) -> int | None:
        """Where times are counted from, in microseconds; `None` for a column of numbers."""
        return None if self.times is None else self.times.origin

    @property
    def deviations(self) -> dict[str, float | np.ndarray]:
        """By block, what its noise does to the values: one number, or one for each row.

        Raises
        ------
        QueryError
            If these are quantiles.
        """
        raise no_errors()


class ValuePart(ColumnPart):
    """One released column about the values of a private one.

    Parameters
    ----------
    column
        Label of the private column it is about.
    bounds
        Bounded contribution: values were clipped to [lower, upper], declared without looking at the
        data; of times, see there. Clipping is a bias that no error bar shows.
    """

    column: str
    bounds: WrittenBounds | TimesPart

    def __post_init__(self) -> None:
        if isinstance(self.bounds, tuple):
            within = all(abs(bound) <= sys.float_info.max for bound in self.bounds)
            records.require(within, "bounds are in the range of floats")

    @property
    def about(self) -> str:
        """The private column."""
        return self.column

    @property
    def declared(self) -> tuple[object, object]:
        """The bounds that were declared: numbers, or texts of times."""
        return self.bounds if isinstance(self.bounds, tuple) else self.bounds.written

    @property
    def span(self) -> tuple[float, float]:
        """What a row can add at least and at most: numbers, or microseconds from the origin."""
        if isinstance(self.bounds, TimesPart):
            first, last = self.bounds.bounds
            return first - self.bounds.origin, last - self.bounds.origin
        lower, upper = self.bounds
        return float(lower), float(upper)

    @property
    def times(self) -> TimesPart | None:
        """How times are counted; `None` for a column of numbers."""
        return None if isinstance(self.bounds, tuple) else self.bounds


class NoisyPart(ColumnPart):
    """One released column with noise.

    Parameters
    ----------
    loadings
        By how much one standard deviation of each measured block moves this column: utility of
        whatever is computed from several columns. Names of blocks are whole numbers; -1 stands for
        the error of rows that were given, and those below it for rounding a column to whole
        numbers. Of times, in seconds.
    """

    loadings: records.SomeByBlock[float | Packed]

    @property
    def deviations(self) -> dict[str, float | np.ndarray]:
        """By block, what its noise does to the values: one number, or one for each row."""
        return {block: unpack(loading) for block, loading in self.loadings.items()}


class TotalPart(NoisyPart):
    """A count or a sum: a measured integer, with noise around the truth.

    Parameters
    ----------
    integer
        Whether the truth is a whole number.
    noise
        The noise of a column that is measured as it is; null where it is read off several
        measurements.
    std_error
        Utility: the standard deviation of the noise in the units of the column, for times in
        seconds; null where it differs from row to row.
    """

    integer: bool
    noise: NoisePart | None
    std_error: records.NotNegative | None


class CountPart(TotalPart):
    """A number of rows, or of units; with weights, their total."""

    kind: Literal["count"]


class SumPart(ValuePart, TotalPart):
    """A sum of values."""

    kind: Literal["sum"]


class QuotientPart(NoisyPart):
    """A ratio of two totals, which SP 800-226 would have you check for bias.

    Its error differs from row to row.

    Parameters
    ----------
    ratio
        What it was read off.
    """

    ratio: RatioPart


class MeanPart(ValuePart, QuotientPart):
    """A mean of values.

    Parameters
    ----------
    moments
        What the variance of its values is read off, for its sampling error; null: not measured.
    """

    kind: Literal["mean"]
    moments: MomentsPart | None


class RatePart(QuotientPart):
    """A share of the rows, or of their weights.

    Parameters
    ----------
    condition
        The condition whose share of the rows it is.
    """

    kind: Literal["rate"]
    condition: str

    @property
    def about(self) -> str:
        """The condition."""
        return self.condition


class DispersionPart(ValuePart, NoisyPart):
    """A variance or a standard deviation of numbers.

    Parameters
    ----------
    moments
        What it was read off.
    """

    kind: Literal["var", "std"]
    bounds: WrittenBounds
    moments: MomentsPart

    @property
    def root(self) -> bool:
        """Whether it is a standard deviation."""
        return self.kind == "std"


class AssociationPart(NoisyPart):
    """A covariance, a correlation, or the slope of the second column on the first one.

    Parameters
    ----------
    pair
        Labels of the two private columns.
    bounds
        Bounded contribution: values were clipped to [lower, upper] of their column. Clipping is a
        bias that no error bar shows.
    joint
        What it was read off.
    """

    kind: Literal["cov", "corr", "slope"]
    pair: tuple[str, str]
    bounds: tuple[WrittenBounds, WrittenBounds]
    joint: JointMomentsPart

    @property
    def about(self) -> str:
        """The two columns."""
        return ", ".join(self.pair)

    @property
    def sampled(self) -> bool:
        """Whether its sampling error can be read off, too."""
        return len(self.joint.parts) > 9  # noqa: PLR2004 - of degree 2

    @property
    def measure(self) -> Association:
        """What it is of the two."""
        named: dict[str, Association]
        named = {"cov": "covariance", "corr": "correlation", "slope": "slope"}
        return named[self.kind]

    @property
    def span(self) -> tuple[float, float]:
        """What is possible."""
        if self.kind == "slope":
            return -math.inf, math.inf
        largest = unit_of(self.measure, self.joint.half_widths)
        return -largest, largest


class QuantilePart(ValuePart):
    """Quantiles, selected or read off many numbers: no noise of their own is known of them."""

    kind: Literal["quantile"]


_QuotientColumn: TypeAlias = MeanPart | RatePart | DispersionPart | AssociationPart
ReleasedColumn: TypeAlias = CountPart | SumPart | _QuotientColumn | QuantilePart

PARTS: Mapping[str, Callable[..., ReleasedColumn]] = {
    kind: part
    for part in get_args(ReleasedColumn)
    for kind in get_args(part.__annotations__["kind"])
}
"""The records of columns, by what these estimate."""


def no_errors() -> QueryError:
    """Make the error about quantiles that have no error bars."""
    return QueryError(
        "quantiles that were selected have no error bars: no noise was added to them. For "
        "intervals, release the distribution, .dp.ranges(...), and read quantiles off that; "
        ".dp.preview says by how many rows selected ones may be off."
    )


def no_numbers() -> QueryError:
    """Make the error about groups that were found without numbers."""
    return QueryError(
        "these groups were found without numbers (counts=False). Release numbers of them, "
        ".dp.count(by=..., keys=found), and call this on those."
    )
