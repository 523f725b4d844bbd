"""The parts of a certificate about what was done with the release afterwards, in order.

As in `record`, docstrings are the descriptions of the JSON Schema. A step says all that it takes to
do it again: post-processing of a release sees nothing but the release.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeAlias

from dpframe.certificates import json_records as records
from dpframe.certificates.column_parts import Decimals
from dpframe.denoising.methods import METHODS

_Level: TypeAlias = Annotated[float, records.Limits(gt=0, lt=1)]


class QuantilesStep(records.Record):
    """Quantiles were read off the numbers of rows in bins, which they replace.

    A value is where the number of rows below, made non-negative and increasing by least squares,
    crosses its part of all rows; straight inside a bin. Its interval holds all values that a test
    of the noise does not reject.

    Parameters
    ----------
    step
        What kind of step it was.
    column
        The column whose bins these were.
    quantiles
        The quantiles, in the order of the rows of a group.
    level
        Confidence level of the intervals.
    simultaneous
        Whether it is that of all intervals of the table at once.
    of
        Digest of the table before the step.
    """

    step: Literal["quantile"]
    column: str
    quantiles: records.Some[_Level]
    level: _Level
    simultaneous: bool
    of: records.Digest


class IntervalsStep(records.Record):
    """The ends of intervals were put beside all released columns, `<column>_low` and `_high`.

    Parameters
    ----------
    step
        What kind of step it was.
    level
        Confidence level.
    simultaneous
        Whether it is that of all intervals of the release at once.
    sampling
        Whether intervals are about a population, of which the rows are a sample.
    of
        Digest of the table before the step.
    """

    step: Literal["interval"]
    level: _Level
    simultaneous: bool
    sampling: bool
    of: records.Digest


class PercentStep(records.Record):
    """Percentages of the total of a column were put beside it, `<column>_percent`, with intervals.

    Parameters
    ----------
    step
        What kind of step it was.
    column
        The column, a count or a sum.
    by
        Levels of the index: the total is that of the rows with the same keys there; null: of all
        rows.
    level
        Confidence level of `<column>_percent_low` and `<column>_percent_high`.
    sampling
        Whether they are about a population, of which the rows are a sample.
    of
        Digest of the table before the step.
    """

    step: Literal["percent"]
    column: str
    by: records.Some[str] | None
    level: _Level
    sampling: bool
    of: records.Digest


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


class DenoiseStep(records.Record):
    """A column that was denoised: computed after the release, beside the released one.

    Parameters
    ----------
    step
        What kind of step it was. Post-processing of a release costs no privacy, SP 800-226 reminds,
        as long as it sees nothing but the release.
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
    of
        Digest of the release before the step.
    """

    step: Literal["denoise"]
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
    of: records.Digest


class SuggestionPart(records.Record):
    """One column that predicts errors of a later release, by candidates for its caps or bounds.

    Parameters
    ----------
    step
        What kind of step it was. It saw nothing but the release, so that it cost no privacy.
    column
        The released column it was computed from.
    into
        The column it was written to. lost: what a candidate cuts off; noise: what it takes to hide
        a unit under it; error: both together; error_high: what they are below in most cases.
    query
        The query whose errors are predicted.
    planned
        How much that query is to spend.
    best
        The candidate with the smallest error, by the keyword that it is for.
    of
        Digest of the release before the step.
    """

    step: Literal["suggest"]
    column: str
    into: str
    query: records.Text
    planned: Annotated[Mapping[str, float], records.Limits(min_length=1)]
    best: Annotated[Mapping[str, Suggested], records.Limits(min_length=1)]
    of: records.Digest


class SortStep(records.Record):
    """Rows were sorted; those that are alike stay in order, and missing values come last.

    Parameters
    ----------
    step
        What kind of step it was.
    by
        The columns and levels of the index that they were sorted by.
    ascending
        For each of them, whether small values come first.
    of
        Digest of the table before the step.
    """

    step: Literal["sort_values"]
    by: records.Some[str]
    ascending: tuple[bool, ...]
    of: records.Digest

    def __post_init__(self) -> None:
        records.require(len(self.by) == len(self.ascending), "each column has a direction")


class HeadStep(records.Record):
    """The first or last rows were kept.

    Parameters
    ----------
    step
        What kind of step it was.
    rows
        How many were kept, or all where there were fewer.
    of
        Digest of the table before the step.
    """

    step: Literal["head", "tail"]
    rows: records.AtLeastNone
    of: records.Digest


class SelectStep(records.Record):
    """Some rows and columns were kept.

    Which ones may depend on released values: intervals then hold less often than they say for what
    was kept, but for those that hold all at once.

    Parameters
    ----------
    step
        What kind of step it was.
    where
        A condition on released values and keys, which the rows kept satisfy; null: none.
    rows
        Positions of the rows whose keys were asked for, among those before; null: all.
    columns
        The columns kept, in order; null: all.
    of
        Digest of the table before the step.
    """

    step: Literal["select"]
    where: str | None
    rows: records.Packed | None
    columns: tuple[str, ...] | None
    of: records.Digest

    def __post_init__(self) -> None:
        if self.rows is not None:
            records.places_of(self.rows)


class RoundStep(records.Record):
    """Values were rounded, halves to even.

    Parameters
    ----------
    step
        What kind of step it was.
    decimals
        Number of decimals by column.
    of
        Digest of the table before the step.
    """

    step: Literal["round"]
    decimals: Mapping[str, Decimals]
    of: records.Digest


class SuppressStep(records.Record):
    """Cells were made missing that say too little. It protects nobody: the noise does.

    Parameters
    ----------
    step
        What kind of step it was.
    below
        Cells with smaller values were suppressed; null: no such limit.
    relative_error
        Cells with a larger standard error, as a part of their value, were suppressed; null: no such
        limit.
    by
        The column whose values and errors decide for all cells of a row; null: each cell for
        itself.
    of
        Digest of the table before the step.
    """

    step: Literal["suppress"]
    below: float | None
    relative_error: records.NotNegative | None
    by: str | None
    of: records.Digest

    def __post_init__(self) -> None:
        limited = self.below is not None or self.relative_error is not None
        records.require(limited, "one of below and relative_error is a number")


class RenameStep(records.Record):
    """Columns or levels of the index got other names.

    Parameters
    ----------
    step
        What kind of step it was.
    columns
        New labels by old ones; denoised columns follow those that they were computed from.
    levels
        New names of levels by old ones.
    of
        Digest of the table before the step.
    """

    step: Literal["rename"]
    columns: Mapping[str, str]
    levels: Mapping[str, str]
    of: records.Digest


class UnstackStep(records.Record):
    """The keys of a level became columns.

    Parameters
    ----------
    step
        What kind of step it was.
    level
        The level.
    column
        The column whose cells are shown.
    of
        Digest of the table before the step.
    """

    step: Literal["unstack"]
    level: str
    column: str
    of: records.Digest


class ConcatStep(records.Record):
    """Several releases were put into one table.

    Parameters
    ----------
    step
        What kind of step it was.
    name
        Name of the level that tells them apart; null: their own keys do.
    keys
        The keys of the releases in it, in order; null without such a level.
    of
        Digests of the tables, in order.
    """

    step: Literal["concat"]
    name: str | None
    keys: tuple[str, ...] | None
    of: tuple[records.Digest, ...]


class UnstackedPart(records.Record):
    """Where the cells of a column are that stand side by side.

    Parameters
    ----------
    level
        The level whose keys the columns are.
    column
        The column whose cells are shown.
    places
        For each cell, in the order of what is said about the column: its position in the table,
        counted row by row; null: all cells are there, row by row.
    """

    level: str
    column: str
    places: records.Packed | None

    def __post_init__(self) -> None:
        if self.places is not None:
            records.places_of(self.places)


_EditStep: TypeAlias = SortStep | HeadStep | SelectStep | RoundStep | SuppressStep | RenameStep
_TableStep: TypeAlias = UnstackStep | ConcatStep | IntervalsStep | PercentStep | QuantilesStep
StepPart: TypeAlias = DenoiseStep | SuggestionPart | _EditStep | _TableStep


def divide_steps(taken: Iterable[StepPart]) -> tuple[list[DenoiseStep], list[StepPart]]:
    """Divide what was denoised and what else was done."""
    denoised: list[DenoiseStep] = []
    others: list[StepPart] = []
    for step in taken:
        match step:
            case DenoiseStep():
                denoised.append(step)
            case other:
                others.append(other)
    return denoised, others


StepKinds: TypeAlias = frozenset[type[StepPart]]

COMPUTED: StepKinds = frozenset({DenoiseStep, SuggestionPart})
"""Steps that name the digest of the release, however many of them there are."""

_ADDED: StepKinds = COMPUTED | {IntervalsStep, PercentStep}
"""Steps that put columns beside those released."""

ADDED_OR_RENAMED: StepKinds = _ADDED | {RenameStep}
"""Steps after which all cells are where they were."""

FEWER_ROWS: StepKinds = frozenset({HeadStep, SelectStep})
"""Steps after which rows may be missing."""

CELLS_AS_RELEASED: StepKinds = _ADDED | FEWER_ROWS | {SortStep, RenameStep}
"""Steps after which every cell there is holds what was released."""

ROW_BY_ROW: StepKinds = CELLS_AS_RELEASED | {RoundStep, SuppressStep}
"""Steps after which the columns are those that were released, or some of them."""

ALL_ROWS: StepKinds = CELLS_AS_RELEASED - FEWER_ROWS - {SortStep}
"""Steps after which every row is where it was released."""
