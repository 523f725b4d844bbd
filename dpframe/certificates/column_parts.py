"""The part of a certificate about a column: one record for all statistics.

As in `parts`, docstrings are the descriptions of the JSON Schema.
"""

import sys
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np
import pandas as pd

from dpframe.certificates import json_records as records
from dpframe.certificates.json_records import Packed, unpack
from dpframe.declaration.kinds import Bounds
from dpframe.errors import QueryError
from dpframe.queries.edges import Moment, microseconds
from dpframe.statistics.form import Statistic, Totals
from dpframe.statistics.table import STATISTICS, StatisticName, statistic_of

WrittenBounds: TypeAlias = tuple[int | float, int | float]
Microseconds: TypeAlias = Annotated[int, records.Limits(ge=-(2**63), lt=2**63)]


class TimesPart(records.Record):
    """Bounds of a column of durations or points in time, and how it is counted.

    Parameters
    ----------
    written
        The bounds as they were declared.
    counted
        What the numbers of the column stand for.
    origin
        Where points in time are counted from, in microseconds since 1970; 0 for durations.
    bounds
        Bounds in microseconds, of durations or since 1970.
    zone
        The time zone, if the points in time have one.
    """

    written: tuple[str, str]
    counted: Literal["in seconds", "from the lower bound, in seconds"]
    origin: Microseconds
    bounds: tuple[Microseconds, Microseconds]
    zone: str | None

    @classmethod
    def of(cls, lower: Moment, upper: Moment) -> "TimesPart":
        """Say what the times between two bounds are."""
        bounds = microseconds(lower), microseconds(upper)
        written = str(lower), str(upper)
        if not isinstance(lower, pd.Timestamp):
            return cls(written, "in seconds", 0, bounds, None)
        zone = None if lower.tzinfo is None else str(lower.tzinfo)
        return cls(written, "from the lower bound, in seconds", bounds[0], bounds, zone)


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


class ValuesPart(records.Record):
    """A private column whose values were looked at.

    Parameters
    ----------
    label
        Its label.
    bounds
        Bounded contribution: values were clipped to [lower, upper], declared without looking at the
        data; of times, see there. Clipping is a bias that no error bar shows.
    clipped
        The bounds on the grid of the values, by less than one step inside; of times, in seconds
        from the origin.
    """

    label: str
    bounds: WrittenBounds | TimesPart
    clipped: tuple[float, float]

    def __post_init__(self) -> None:
        if isinstance(self.bounds, tuple):
            within = all(abs(bound) <= sys.float_info.max for bound in self.bounds)
            records.require(within, "bounds are in the range of floats")
        lower, upper = self.clipped
        records.require(lower <= upper, "a lower bound is not above the upper one")

    @property
    def times(self) -> TimesPart | None:
        """How times are counted; `None` for a column of numbers."""
        return self.bounds if isinstance(self.bounds, TimesPart) else None

    @property
    def declared(self) -> tuple[object, object]:
        """The bounds that were declared: numbers, or texts of times."""
        return self.bounds if isinstance(self.bounds, tuple) else self.bounds.written


class FeaturePart(records.Record):
    """The noisy total of what rows add, which a column was read off.

    Parameters
    ----------
    total
        The total of each row; null where it is the column itself. With weights, in steps of these.
    loadings
        By how much one standard deviation of each measured block moves the total: utility of
        whatever is computed from it. Names of blocks are whole numbers; -1 stands for the error of
        rows that were given, and those below it for rounding a column to whole numbers. Of times,
        in seconds.
    """

    total: float | Packed | None
    loadings: records.SomeByBlock[float | Packed]


FeatureName: TypeAlias = Annotated[
    str, records.Limits(pattern="^(rows|value|y|squares|moment( [0-4]){2,6})$")
]


class ColumnPart(records.Record):
    """One released column: a statistic, and the totals that it was read off.

    Values count as x and y: how far they are off the middle of their bounds, in halves of their
    width. A mean is the middle plus half the width times y by rows; a variance is read off squares,
    too.

    Parameters
    ----------
    kind
        What it estimates; of "slope", the second column on the first one; of regressions, the last
        column on all others.
    name
        Its label.
    columns
        The private columns that it is about.
    condition
        The condition whose share of the rows it is; null: it is no rate.
    where
        A condition of its own, beside that of the query.
    weights
        What rows count for; null: each counts for 1.
    integer
        Whether the truth is a whole number.
    noise
        The noise of a column that is measured as it is; null where it is read off several
        measurements.
    std_error
        Utility: the standard deviation of the noise of a count or a sum in the units of the column,
        for times in seconds; null where it differs from row to row.
    features
        What it was read off: "rows", the noisy number of rows; "value", the sum of values; "y" and
        "squares", the sums of y and of y^2 - 1/2; "moment i j", the sum of x^i y^j, and so on
        for more columns.
        Quantiles have none: no noise of their own is known.
    """

    kind: StatisticName
    name: str
    columns: tuple[ValuesPart, ...]
    condition: str | None
    where: str | None
    weights: WeightsPart | None
    integer: bool
    noise: NoisePart | None
    std_error: records.NotNegative | None
    features: Mapping[FeatureName, FeaturePart]

    def __post_init__(self) -> None:
        kind, number = STATISTICS[self.kind], len(self.columns)
        records.require(kind.is_about(number), f"{self.kind} is not about {number} columns")
        met = self.condition is not None
        records.require(met == (kind.is_mean and not kind.of_values), "a rate has a condition")
        names = self.features.keys()
        bounds = [part.clipped for part in self.columns]
        ways = (
            statistic_of(self.kind, bounds, sampled=sampled).features for sampled in (False, True)
        )
        fits = any(names == {*features} for features in ways)
        records.require(fits, f"features are those of {self.kind}")
        totals = [part.total is None for part in self.features.values()]
        records.require({kind.is_total}.issuperset(totals), "quotients have totals")
        timed = any(part.times for part in self.columns)
        records.require(not (timed and kind.of_numbers), f"{self.kind} is of numbers")

    @property
    def form(self) -> type[Statistic]:
        """What it estimates."""
        return STATISTICS[self.kind]

    @property
    def statistic(self) -> Statistic:
        """What it estimates, of its columns."""
        bounds = [part.clipped for part in self.columns]
        plain = statistic_of(self.kind, bounds)
        # only statistics that are ready for sampling measure more features
        sampled = len(self.features) > len(plain.features)
        return replace(plain, sampled=sampled)

    @property
    def base(self) -> float:
        """Where bars of it start: at 0, or the end of what it can be that is next to 0."""
        if self.form.is_total or self.times is not None:
            return 0.0
        least, most = self.statistic.span
        return min(max(least, 0.0), most)

    @property
    def totals(self) -> Totals[str]:
        """What it was read off."""
        return Totals(
            {
                name: np.asarray(unpack(part.total))
                for name, part in self.features.items()
                if part.total is not None
            },
            {
                name: {block: unpack(loading) for block, loading in part.loadings.items()}
                for name, part in self.features.items()
            },
        )

    @property
    def deviations(self) -> dict[str, float | np.ndarray]:
        """By block, what its noise does to the values: one number, or one for each row.

        Raises
        ------
        QueryError
            If these are quantiles.
        """
        if not self.features:
            raise no_errors()
        statistic, totals = self.statistic, self.totals
        if not statistic.is_total:
            return statistic.estimate(totals)[1]
        (loadings,) = totals.loadings.values()
        return dict(loadings)

    @property
    def about(self) -> str | None:
        """The private columns, or the condition, that it is about; `None` for rows."""
        labels = ", ".join(part.label for part in self.columns)
        return labels or self.condition

    @property
    def span(self) -> tuple[float, float]:
        """What is possible, or of totals, what a row of weight 1 can add; of times, in seconds."""
        return self.statistic.span

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows or units, which is whole."""
        return self.form.is_whole and self.weights is None

    @property
    def declared(self) -> tuple[object, object] | None:
        """The bounds that were declared, if it is about one column: numbers, or texts of times."""
        if self.form.of_several:
            return None
        return next((part.declared for part in self.columns), None)

    @property
    def times(self) -> TimesPart | None:
        """How times are counted; `None` for a column of numbers."""
        return next((part.times for part in self.columns), None)

    @property
    def origin(self) -> int | None:
        """Where times are counted from, in microseconds; `None` for a column of numbers."""
        return None if self.times is None else self.times.origin


def values_part(
    label: Hashable, bounds: Bounds, clipped: tuple[float, float] | None = None
) -> ValuesPart:
    """Describe a column by its bounds, those on the grid among them if they are others."""
    lower, upper = bounds
    if not isinstance(lower, pd.Timestamp | pd.Timedelta):
        return ValuesPart(
            str(label), cast(WrittenBounds, bounds), clipped or cast(tuple[float, float], bounds)
        )
    times = TimesPart.of(lower, cast(Moment, upper))
    first, last = times.bounds
    within = (first - times.origin) / 10**6, (last - times.origin) / 10**6
    return ValuesPart(str(label), times, clipped or within)


def quantile_part(name: str, values: ValuesPart) -> ColumnPart:
    """Describe quantiles of a column."""
    absent: dict[str, Any] = dict.fromkeys(("condition", "where", "weights", "noise", "std_error"))
    return ColumnPart("quantile", name, (values,), integer=False, features={}, **absent)


def no_errors() -> QueryError:
    """Make the error about quantiles that have no error bars."""
    return QueryError(
        "quantiles that were selected have no error bars: no noise was added to them. For "
        "intervals, release the distribution, .dp.ranges(...), and read quantiles off that; "
        ".dp.plan says by how many rows selected ones may be off."
    )


def no_numbers() -> QueryError:
    """Make the error about groups that were found without numbers."""
    return QueryError(
        "these groups were found without numbers (counts=False). Release numbers of them, "
        ".dp.count(by=..., keys=found), and call this on those."
    )
