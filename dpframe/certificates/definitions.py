"""Parts of a certificate about columns that were computed from a release, one for each column.

As in `record`, docstrings are the descriptions of the JSON Schema. A definition says all that it
takes to compute the column again: post-processing of a release sees nothing but the release.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeAlias, assert_never

from dpframe.certificates import json_records as records
from dpframe.denoising.methods import METHODS

_Level: TypeAlias = Annotated[float, records.Limits(gt=0, lt=1)]
End: TypeAlias = Literal["low", "high"]


class QuantileDefinition(records.Record):
    """Quantiles that were read off the numbers of rows in bins, or an end of their intervals.

    A value is where the number of rows below, made non-negative and increasing by least squares,
    crosses its part of all rows; straight inside a bin. Its interval holds all values that a test
    of the noise does not reject.

    Parameters
    ----------
    call
        The call that computed the column.
    column
        The column whose bins these were.
    quantiles
        The quantiles, in the order of the rows of a group.
    level
        Confidence level of the intervals.
    simultaneous
        Whether it is that of all intervals of the table at once.
    scalar
        Whether there is one quantile, and no level of the table that says which.
    end
        Which end of the interval this is; null: the value.
    of
        Origin of the table with the numbers of rows.
    """

    call: Literal["quantile"]
    column: str
    quantiles: records.Some[_Level]
    level: _Level
    simultaneous: bool
    scalar: bool
    end: End | None
    of: records.Digest


class CutPart(records.Record):
    """Cells were chosen by their values, in a way that is known.

    Parameters
    ----------
    call
        The call that chose them.
    column
        The column whose values decided, as JSON; null: each cell for itself.
    at
        nlargest: the largest value that is not shown; nsmallest: the smallest one; null: all are.
        suppress: smaller values are not shown; null: no such limit.
    relative_error
        Cells with a larger standard error, as a part of their value, are not shown; null: no such
        limit.
    """

    call: Literal["nlargest", "nsmallest", "suppress"]
    column: str | None
    at: float | None
    relative_error: records.NotNegative | None


class IntervalDefinition(records.Record):
    """One end of the intervals of a released column.

    Parameters
    ----------
    call
        The call that computed the column.
    column
        The released column.
    end
        Which end it is.
    level
        Confidence level.
    simultaneous
        Whether it is that of all intervals of the release at once.
    sampling
        Whether intervals are about a population, of which the rows are a sample.
    cells
        How many cells the table showed, if their noise had a part in the choice; null: it had none.
    given
        By which cuts they were chosen: intervals are then those of the law of a cell, given that it
        is shown. None: that is not known; with R of m cells, the level of each interval is 1 - (1 -
        level) R / m (Benjamini and Yekutieli 2005).
    """

    call: Literal["interval"]
    column: str
    end: End
    level: _Level
    simultaneous: bool
    sampling: bool
    cells: records.AtLeastOne | None
    given: tuple[CutPart, ...]


class TotalLink(records.Record):
    """Rows are added up to fewer groups; what was measured is added, and columns are read off that.

    Parameters
    ----------
    f
        The function.
    by
        The levels that are kept.
    mapping
        By level and key, as JSON, the key of the group that it is part of; others stay as they are.
    margins
        The key, as JSON, of rows that hold all keys of a level; null: there are none.
    """

    f: Literal["total"]
    by: tuple[str, ...]
    mapping: Mapping[str, Mapping[str, str]]
    margins: str | None


class ChangeLink(records.Record):
    """Each row less an earlier one, or in percent of it.

    Parameters
    ----------
    f
        The function.
    along
        The level along which rows are compared, in the order of its keys.
    percent
        Whether changes are in percent of the earlier row.
    lag
        How many keys earlier.
    dropped
        Whether the level is left out: its keys are two releases.
    """

    f: Literal["change"]
    along: str
    percent: bool
    lag: records.AtLeastOne
    dropped: bool


class PercentLink(records.Record):
    """Percentages of the total of a group of rows, or of something else.

    Parameters
    ----------
    f
        The function.
    by
        Levels: the total is that of the rows with the same keys there; none: of all rows.
    of
        The number, or the origin of the release, that they are percentages of; null: the total.
    of_column
        The column of that release; null: there is none.
    """

    f: Literal["percent"]
    by: tuple[str, ...]
    of: float | records.Digest | None
    of_column: str | None


class PerLink(records.Record):
    """Numbers for so many members of a public population.

    Parameters
    ----------
    f
        The function.
    population
        The population of each row.
    unit
        For how many of it.
    """

    f: Literal["per"]
    population: records.Packed
    unit: Annotated[float, records.Limits(gt=0)]


class StandardizeLink(records.Record):
    """Directly standardized rates: weighted means of those of the keys of a level.

    Of released means and rates, sums are computed as by `combine`.

    Parameters
    ----------
    f
        The function.
    over
        The level.
    weights
        By row, the weight of its key, of which the sum is 1.
    population
        The population of each row; null: the cells are means or rates already.
    unit
        For how many of it.
    """

    f: Literal["standardize"]
    over: str
    weights: records.Packed
    population: records.Packed | None
    unit: Annotated[float, records.Limits(gt=0)]


class RelativeLink(records.Record):
    """Quotients of each row and the one with another key of a level.

    Parameters
    ----------
    f
        The function.
    along
        The level.
    to
        The key, as JSON.
    """

    f: Literal["relative"]
    along: str
    to: str


class RatioLink(records.Record):
    """Quotients of two columns.

    Parameters
    ----------
    f
        The function.
    to
        The column that is divided by.
    """

    f: Literal["ratio"]
    to: str


Link: TypeAlias = (
    TotalLink | ChangeLink | PercentLink | PerLink | StandardizeLink | RelativeLink | RatioLink
)
"""A function by which numbers were computed from others, with its public arguments."""


class DerivedDefinition(records.Record):
    """Weighted sums of released numbers, their quotients, or an end of their intervals.

    All are `scale (w . x) / (v . y) + shift`, with released numbers x and y and public w and v.

    Parameters
    ----------
    call
        The call that computed the column.
    column
        The released column.
    chain
        The functions, in order.
    end
        Which end of the interval this is; null: the number.
    level
        Confidence level of the interval.
    sampling
        Whether it is about a population, of which the rows are a sample.
    """

    call: Literal["derive"]
    column: str
    chain: records.Some[Annotated[Link, records.TaggedBy("f")]]
    end: End | None
    level: _Level
    sampling: bool


Setting: TypeAlias = str | bool | int | float | None
Suggested: TypeAlias = int | tuple[float, float]
"""What is suggested for a keyword: a cap, or bounds."""


class GraphPart(records.Record):
    """Which rows were taken for neighbors.

    Parameters
    ----------
    edges
        Number of pairs of neighbors.
    digest
        SHA-256 over the positions of the rows that are neighbors, pairs of little-endian int64 in
        increasing order.
    """

    edges: records.AtLeastNone
    digest: records.Digest


class DenoiseDefinition(records.Record):
    """A column that was denoised: computed after the release, beside the released one.

    Parameters
    ----------
    call
        The call that computed the column. Post-processing of a release costs no privacy, SP 800-226
        reminds, as long as it sees nothing but the release.
    column
        The released column it was computed from.
    into
        The column it was written to, beside the released one.
    method
        The method used: its name, "average" of several, "none" where the values were left alone;
        several names where rows were denoised apart.
    members
        The methods that were used, or averaged.
    asked
        The method asked for.
    options
        Options of the method; "given" stands for a table or a graph.
    across
        What was denoised together: the rows of a column, or the columns of a row.
    graph
        Which rows were taken for neighbors; null where the method was given no graph.
    noise_variance
        Variance of the noise that was to be removed; null if it has no finite one.
    chosen
        What the method chose from the released values, such as a threshold.
    tried
        Utility: by method, the part of the squared error that was expected to go; null where that
        is not estimated. A choice made by looking at the release is post-processing, too.
    tried_absolute
        Utility: the same part of the absolute error.
    """

    call: Literal["denoise"]
    column: str
    into: str
    method: records.Text
    members: records.Some[records.Text]
    asked: Annotated[str, records.OneOf(["auto", *METHODS])]
    options: Mapping[str, Setting]
    across: Literal["rows", "columns"]
    graph: GraphPart | None
    noise_variance: records.NotNegative | None
    chosen: Mapping[str, float | None]
    tried: Mapping[str, float | None]
    tried_absolute: Mapping[str, float | None]


class SuggestDefinition(records.Record):
    """One column that predicts errors of a later release, by candidates for its caps or bounds.

    Parameters
    ----------
    call
        The call that computed the column. It saw nothing but the release, so it cost no privacy.
    column
        The released column it was computed from.
    into
        The column it was written to. lost: what a candidate cuts off; noise: what it takes to hide
        a unit under it; error: both together; unseen: how many units may be beyond it.
    query
        The query whose errors are predicted.
    planned
        How much that query is to spend.
    best
        The candidate with the smallest error, by the keyword that it is for.
    seen
        How many units or rows were counted, with noise.
    needed
        How many must be, so that they tell the best candidate.
    """

    call: Literal["suggest"]
    column: str
    into: str
    query: records.Text
    planned: Annotated[Mapping[str, float], records.Limits(min_length=1)]
    best: Annotated[Mapping[str, Suggested], records.Limits(min_length=1)]
    seen: float
    needed: records.NotNegative


Definition: TypeAlias = (
    DenoiseDefinition
    | SuggestDefinition
    | IntervalDefinition
    | DerivedDefinition
    | QuantileDefinition
)


def denoised_of(definitions: Iterable[Definition]) -> list[DenoiseDefinition]:
    """Return what was denoised."""
    denoised = []
    for definition in definitions:
        match definition:
            case DenoiseDefinition():
                denoised.append(definition)
            case SuggestDefinition() | IntervalDefinition() | DerivedDefinition():
                continue
            case QuantileDefinition():
                continue
            case _:
                assert_never(definition)
    return denoised
