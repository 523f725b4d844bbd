"""The parts of a certificate about noise: columns and mechanism.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from dpframe.certificates.json_records import Limits, NotNegative, OneOf, Part, Text, require
from dpframe.certificates.packed import BlockName, Packed, unpack
from dpframe.certificates.ratio_parts import MomentsPart, RatioPart, StructurePart
from dpframe.errors import QueryError
from dpframe.privacy.law import Law
from dpframe.privacy.laws import LAWS, law_named
from dpframe.privacy.selection import GEOMETRIC, SELECT
from dpframe.queries.outputs import Statistic
from dpframe.strategies import MECHANISMS

Bound: TypeAlias = int | float | str
MOST_DECIMALS = 15  # floats have no more
Decimals: TypeAlias = Annotated[int, Limits(ge=-MOST_DECIMALS, le=MOST_DECIMALS)]
Microseconds: TypeAlias = Annotated[int, Limits(ge=-(2**63), lt=2**63)]


@dataclass(frozen=True)
class TimesPart(Part):
    """How a column of durations or points in time is counted.

    Parameters
    ----------
    counted
        What the numbers of the column stand for.
    origin
        Where points in time are counted from, in microseconds since 1970; 0 for durations.
    bounds
        Bounds in microseconds, of durations or since 1970.
    zone
        The time zone, if the points in time have one.
    """

    counted: Literal["in seconds", "from the lower bound, in seconds"]
    origin: Microseconds
    bounds: tuple[Microseconds, Microseconds]
    zone: str | None


@dataclass(frozen=True)
class NoisePart(Part):
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

    scale: NotNegative
    step: Annotated[float, Limits(gt=0)]
    members: Annotated[int, Limits(ge=1)]


@dataclass(frozen=True)
class RoundedPart(Part):
    """How the values of a column were rounded after the release.

    Parameters
    ----------
    decimals
        Number of decimals; -2: to hundreds.
    most
        By how much a value may differ from the one released.
    """

    decimals: Decimals
    most: NotNegative


def _is_in_range(bound: Bound) -> bool:
    """Whether a bound that is a number, perhaps a whole one, is no larger than all floats."""
    return isinstance(bound, str) or abs(bound) <= sys.float_info.max


@dataclass(frozen=True)
class ColumnPart(Part):
    """One released column and its noise.

    Parameters
    ----------
    name
        Its label.
    kind
        What it estimates. Counts and sums have noise around the truth; a mean is a ratio of two of
        them, which SP 800-226 would have you check for bias, and so is a rate: a share of the rows.
    column
        Label of the private column it is about; null for counts and rates.
    where
        A condition of its own, beside that of the query.
    condition
        The condition whose share of the rows a rate is; null for other columns.
    bounds
        Bounded contribution: values were clipped to [lower, upper], declared without looking at the
        data; null for counts and rates. Clipping is a bias that no error bar shows.
    times
        How a column of durations or points in time is counted; null for other columns. Bounds are
        then texts, and errors and loadings in seconds.
    integer
        Whether the truth is a whole number.
    noise
        The noise of a column that is measured as it is; null where it is read off several
        measurements.
    std_error
        Utility: the standard deviation of the noise in the units of the column, the same in all
        rows; null where it differs from row to row, as for means.
    loadings
        By how much one standard deviation of each measured block moves this column: utility of
        whatever is computed from several columns. Names of blocks are whole numbers; -1 stands for
        the error of rows that were given, and those below it for rounding a column to whole
        numbers. Null for quantiles, which were selected or read off many numbers.
    ratio
        What a mean or a rate was read off; null for other columns.
    moments
        What a variance or a standard deviation was read off; null for other columns.
    rounded
        How the values were rounded after the release; null: they were not.
    """

    name: str
    kind: Statistic
    column: str | None
    where: str | None
    condition: str | None
    bounds: tuple[Bound, Bound] | None
    times: TimesPart | None
    integer: bool
    noise: NoisePart | None
    std_error: NotNegative | None
    loadings: Annotated[Mapping[BlockName, float | Packed], Limits(min_length=1)] | None
    ratio: RatioPart | None
    moments: MomentsPart | None
    rounded: RoundedPart | None

    def __post_init__(self) -> None:
        counts = self.kind in ("count", "rate")
        about = {self.column is None, self.bounds is None, counts}
        require(len(about) == 1, "counts and rates alone have neither a column nor bounds")
        require((self.kind == "rate") == (self.condition is not None), "rates have a condition")
        require(not (counts and self.times), "counts are not times")
        in_words = {isinstance(bound, str) for bound in self.bounds or ()}
        require(in_words <= {self.times is not None}, "bounds are texts for times alone")
        require(all(map(_is_in_range, self.bounds or ())), "bounds are in the range of floats")
        exact = self.noise is not None or self.std_error is not None or self.integer
        require(self.is_total or not exact, "counts and sums alone are measured integers")
        require(self.is_mean or self.ratio is None, "means and rates alone are ratios")
        spread = self.kind in ("var", "std")
        require(spread or self.moments is None, "variances alone are read off moments")
        quantile = self.kind == "quantile"
        require(quantile == (self.loadings is None), "quantiles alone have no loadings")
        require(not (spread and self.times), "variances are not times")

    @classmethod
    def of_quantiles(
        cls, name: str, column: str, bounds: tuple[Bound, Bound], times: TimesPart | None = None
    ) -> "ColumnPart":
        """Describe a column of quantiles: no noise of its own is known of it."""
        return cls(
            name=name,
            kind="quantile",
            column=column,
            where=None,
            condition=None,
            bounds=bounds,
            times=times,
            integer=False,
            noise=None,
            std_error=None,
            loadings=None,
            ratio=None,
            moments=None,
            rounded=None,
        )

    @property
    def is_mean(self) -> bool:
        """Whether it is a ratio, whose error differs from row to row: a rate is a mean, too."""
        return self.kind in ("mean", "rate")

    @property
    def is_total(self) -> bool:
        """Whether it is a count or a sum, with an error that is the same in all rows."""
        return self.kind in ("count", "sum")

    @property
    def span(self) -> tuple[float, float]:
        """What a row can add at least and at most: numbers, or microseconds from the origin."""
        if self.times is not None:
            first, last = self.times.bounds
            return first - self.times.origin, last - self.times.origin
        lower, upper = self.bounds or (0, 1)
        return float(lower), float(upper)

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
        if self.loadings is None:
            raise _no_errors()
        return {block: unpack(loading) for block, loading in self.loadings.items()}


def _no_errors() -> QueryError:
    return QueryError(
        "quantiles that were selected have no error bars: no noise was added to them, and how far "
        "off they are depends on rows that are not released. For intervals, release the "
        "distribution, .dp.ranges(...), and read quantiles off that; .dp.preview says by how "
        "many rows selected ones may be off."
    )


@dataclass(frozen=True)
class MechanismPart(Part):
    """The mechanism: where the noise comes from.

    It is added by the trusted holder of the data (central model), to exact integers and as
    integers, drawn exactly, so that no low bits of floating-point numbers tell the truth.

    Parameters
    ----------
    name
        Name of the mechanism.
    title
        The mechanism in words.
    law
        Law of the noise on every measured integer: a Gaussian, rounded, the discrete Laplace law,
        or that of a box, which is the discrete Laplace law for a block that is drawn on its own.
        Geometric: of the utilities of bins, of which one was selected.
    scales
        Scale of the noise of each measured block that the table reads, or that is drawn together
        with one, by its number, on its integers. 0: the relation of neighbors makes it public.
    groups
        Blocks whose noise is drawn together in a row: it is uncorrelated, but not independent.
    joined
        Whether it is drawn together over all rows, in place of each.
    structure
        How errors of several rows go together, where they were measured over many cells at once;
        its blocks have no scale of their own. Null: rows were measured one by one.
    """

    name: Annotated[str, OneOf((*MECHANISMS, SELECT))]
    title: Text
    law: Annotated[str, OneOf((*LAWS, GEOMETRIC))]
    scales: Mapping[BlockName, NotNegative]
    groups: tuple[tuple[BlockName, ...], ...]
    joined: bool
    structure: StructurePart | None

    def __post_init__(self) -> None:
        law = GEOMETRIC if self.selects else MECHANISMS[self.name].law.name
        require(self.law == law, "the law is that of the mechanism")
        require(not (self.selects and self.scales), "what is selected has no noise")
        grouped = [block for group in self.groups for block in group]
        require(len(set(grouped)) == len(grouped), "a block is in one group")
        require({*grouped} <= self.scales.keys(), "blocks of groups have a scale")
        require(not self.joined or len(self.groups) == 1, "one group reaches over all rows")

    @property
    def selects(self) -> bool:
        """Whether it selects values, in place of adding noise to them."""
        return self.name == SELECT

    def check_noise(self) -> None:
        """Refuse what is about noise, where values were selected.

        Raises
        ------
        QueryError
            If they were.
        """
        if self.selects:
            raise _no_errors()

    def drawn_together(self, rows: int, common: Collection[str]) -> list[tuple[str, ...]]:
        """Return the groups, with each block as often as it has coordinates in them.

        Parameters
        ----------
        rows
            Number of rows.
        common
            Blocks of a single integer.
        """
        if not self.joined:
            return list(self.groups)
        return [
            tuple(block for block in group for _ in range(1 if block in common else rows))
            for group in self.groups
        ]

    @property
    def distribution(self) -> Law:
        """The law of the noise, by which intervals are made.

        Raises
        ------
        QueryError
            If values were selected.
        """
        self.check_noise()
        return law_named(self.law)
