"""What every query is: a frozen value that says what it asks for; facts come later."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import field
from typing import ClassVar, TypeAlias

import pandas as pd

from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.options import Keys, KnownRows, Objective
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.groups import Cuts, with_rest
from dpframe.queries.tasks import Axis, BinAxis, Cells, KeyAxis, Sizes
from dpframe.queries.where import Condition
from dpframe.statistics.form import Statistic
from dpframe.statistics.table import STATISTICS, StatisticName
from dpframe.strategies.ordered import Window


@frozen(slots=True, eq=False)
class OutputSpec:
    """One output column that a query asks for.

    Parameters
    ----------
    name
        Its label.
    statistic
        What it says about its rows.
    column
        The private column that it is about; `None` for counts and rates.
    where
        A condition of its own, beside the query's.
    bounds
        Bounds that were given in the call, by column: those of this column, or none.
    condition
        For a rate, the condition whose share of the rows is asked for.
    blanks_fail
        Whether rows with something missing in it count as rows that do not meet it.
    sampled
        Whether its sampling error is to be known, for which squares of values are measured.
    fine
        Whether whole numbers are read as real ones, beside a variance of the same column.
    others
        All further private columns, where it is about several together.
    weights
        The private column of what each row counts for; `None`: 1.
    weight
        How much its variance counts beside those of other outputs.
    """

    name: Hashable
    statistic: StatisticName
    column: Hashable = None
    where: Condition | None = None
    bounds: Mapping[Hashable, object] = field(default_factory=dict)
    condition: Condition | None = None
    blanks_fail: bool = False
    sampled: bool = False
    others: tuple[Hashable, ...] = ()
    weights: Hashable = None
    weight: float = 1.0
    averaged: bool = False
    fine: bool = False

    @property
    def form(self) -> type[Statistic]:
        """What it says about its rows."""
        return STATISTICS[self.statistic]

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The private columns whose values it is about."""
        return (self.column, *self.others) if self.of_column else ()

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum of values."""
        return self.form.is_total and self.of_column

    @property
    def of_column(self) -> bool:
        """Whether it is about the values of a column."""
        return self.form.of_values


@frozen(slots=True, eq=False)
class QueryOptions:
    """Options for all outputs of a query together; see `dpframe.sum`."""

    max_true: int | None = None
    n: KnownRows = None
    n_weight: float = 0.0
    objective: Objective = "total"

    @property
    def names_given(self) -> list[str]:
        """The names of the options that are given."""
        changed = {
            "max_true": self.max_true is not None,
            "n": self.n is not None,
            "n_weight": self.n_weight != 0,
            "objective": self.objective != "total",
        }
        return [name for name, is_given in changed.items() if is_given]

    @property
    def words(self) -> str:
        """What changes what is measured, in words."""
        words = "" if self.max_true is None else f", at most {self.max_true} true in a row"
        if self.n is None:
            return words
        knowledge = (
            "an estimate of the rows" if isinstance(self.n, tuple) else "the rows of each group"
        )
        return f"{words}, given {knowledge}"


NO_OPTIONS = QueryOptions()
"""No option is given."""


@frozen(slots=True)
class ReadOff:
    """Quantiles that are read off numbers of rows in ranges.

    Parameters
    ----------
    quantiles
        The quantiles, in increasing order.
    level, simultaneous
        Confidence level of their intervals, and whether it is that of all at once.
    scalar
        Whether there is one, and no level that says which.
    """

    quantiles: tuple[float, ...]
    level: float
    simultaneous: bool
    scalar: bool


@frozen(slots=True, eq=False)
class Bins:
    """Bins of a column, which are groups inside those of `by`.

    Parameters
    ----------
    column
        The column.
    edges
        The bins; or how many of equal width there are to be between the bounds.
    bounds
        Bounds that were given in the call, by column.
    clipped
        Whether values beyond the bins count in the first and the last one: numbers of rows in
        ranges of bins matter then, and bins are no groups for the caps.
    """

    column: Hashable
    edges: pd.IntervalIndex | int
    bounds: Mapping[Hashable, object] = field(default_factory=dict)
    clipped: bool = False


@frozen(eq=False)
class Query:
    """A query: groups, a condition, keys and caps given in the call, and outputs.

    Parameters
    ----------
    by, where, keys
        The groups, the condition on rows, and the keys that were given in the call.
    outputs
        The output columns, in order.
    subject
        What is computed per group, in words.
    shared
        A condition that all outputs have, beside `where`.
    limits, weight
        Caps, and how much its error counts beside those of other queries.
    cuts, other
        Columns of `by` that are cut, and the key of all other rows, by column.
    bins
        The bins that are groups inside those of `by`, if there are any.
    window
        Which ranges of bins matter.
    read
        Quantiles that are read off what is released, in place of it.
    options
        Options for all outputs together.
    counts_units
        Whether a unit counts once in a group, however many rows it has there.
    margin_weights
        How much the variance of a cell of each of its tables counts; none: all the same.
    """

    by: tuple[Hashable, ...] = ()
    where: Condition | None = None
    keys: Keys = None
    outputs: tuple[OutputSpec, ...] = field(kw_only=True)
    subject: str = field(kw_only=True)
    shared: Condition | None = field(default=None, kw_only=True)
    limits: Caps = field(default=NO_CAPS, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)
    cuts: Cuts = field(default_factory=dict, kw_only=True)
    other: Mapping[Hashable, Hashable] = field(default_factory=dict, kw_only=True)
    bins: Bins | None = field(default=None, kw_only=True)
    window: Window = field(default=None, kw_only=True)
    read: ReadOff | None = field(default=None, kw_only=True)
    options: QueryOptions = field(default=NO_OPTIONS, kw_only=True)
    counts_units: bool = field(default=False, kw_only=True)
    margin_weights: tuple[float, ...] = field(default=(), kw_only=True)

    groups_named_by: ClassVar[str] = "by"

    def __post_init__(self) -> None:
        taken = [output.name for output in self.outputs if output.name in self.levels]
        if taken:
            fixed = self.binned or self.counts_units  # in no aggregate
            naming = "" if fixed else "name outputs with dpf.aggregate(by=..., name=...), or "
            wrong = f"the groups are in a level {taken[0]!r} of the index"
            rule = "and an output cannot have that name, too:"
            remedy = f"{rule} {naming}rename the column in the frame before it is declared."
            raise QueryError(f"{wrong}, {remedy}", parameter="by", label=taken[0])

    @property
    def to_measure(self) -> "Query":
        """The query whose outputs are measured for this one."""
        return self

    @property
    def condition(self) -> Condition | None:
        """The condition on all rows: those that no output counts are left out as a whole."""
        return Condition.all_of(self.where, self.shared)

    @property
    def binned(self) -> tuple[Hashable, ...]:
        """The column whose bins are groups, if there is one: known before the bins are."""
        return () if self.bins is None else (self.bins.column,)

    @property
    def ranges(self) -> bool:
        """Whether numbers of rows in ranges of bins matter."""
        return self.bins is not None and self.bins.clipped

    def axis(self, column: Hashable, keys: pd.Index | None) -> Axis | None:
        """Return the groups of a column of `by`, from its public keys; `None` if there are none."""
        if column in self.cuts:
            return self.cuts[column].axis
        if keys is None:
            return None
        if column not in self.other:
            return KeyAxis(column, keys)
        return KeyAxis(column, with_rest(column, keys, self.other[column]), rest=True)

    @property
    def bin_axes(self) -> tuple[BinAxis, ...]:
        """All columns whose bins were given."""
        axes = [cut.axis for cut in self.cuts.values()]
        bins = self.bins
        if bins is not None and not isinstance(bins.edges, int):
            axes.insert(0, BinAxis(bins.column, bins.edges.rename(bins.column), bins.clipped))
        return tuple(axes)

    def sizes(self, groups: Cells) -> Sizes | None:  # most queries count in groups
        """Return by what units fall in cells of their own, in place of the groups, if they do."""
        return None

    @property
    def levels(self) -> set[Hashable]:
        """The levels of the index of what is released."""
        return {*self.by, *self.binned}

    def caps(self, declared: Caps) -> Caps:
        """Return what is kept of a unit, under the caps that are declared."""
        limits = self.limits
        rows, groups = limits.rows or declared.rows, limits.groups or declared.groups
        if not self.counts_units:
            return Caps(rows, groups, limits.rows_per_group or declared.rows_per_group)
        # one row of a unit per group: it is in no more groups than it may have rows
        most = [cap for cap in (groups, rows) if cap is not None]
        return Caps(groups=min(most, default=None), rows_per_group=1)

    @property
    def weighted_by(self) -> Hashable:
        """The private column of what each row counts for; `None`: 1."""
        return self.outputs[0].weights

    @property
    def margins(self) -> Mapping[tuple[Hashable, ...], "Query"]:
        """The tables that are asked for, by their columns, where it is several of some columns."""
        return {}

    @property
    def words(self) -> str:
        """The query in words.

        Examples
        --------
        >>> import dpframe as dpf
        >>> dpf.sum(["fare", "tip"], by="zone", where="fare > 0").words
        'sum of fare, tip by zone where fare > 0'
        """
        tables = f" in {len(self.margins)} margins" if self.margins else ""
        groups = f" by {', '.join(map(str, self.by))}" if self.by else ""
        condition = "" if self.where is None else f" where {self.where.text}"
        options = self.options.words + self.limits.words
        return self.subject + tables + groups + options + condition

    @property
    def labels(self) -> Mapping[Hashable, str]:
        """The labels of the columns that the query names, with the parameter that names them."""
        named = [(label, self.groups_named_by) for label in self.by]
        conditions = [(self.condition, "where")]
        for output in self.outputs:
            by_name = "columns" if output.form.family else "column"
            named += [(label, by_name) for label in output.columns]
            if output.weights is not None:
                named.append((output.weights, "weights"))
            conditions += [(output.where, "where"), (output.condition, "condition")]
        named += [(label, "column") for label in self.binned]
        named += [(label, name) for part, name in conditions if part for label in part.columns]
        return {**dict(named), **dict(reversed(named))}  # in order, and as they are named first


class AggregatePart(Query):
    """A query that can be one output of several."""


class Search(ABC):
    """What is looked for so that queries can be asked: groups, caps or bounds.

    It is released on its own, as a query is.
    """

    @property
    @abstractmethod
    def labels(self) -> Mapping[Hashable, str]:
        """The labels of the columns that it names, with the parameter that names them."""


Request: TypeAlias = Query | Search | Mapping[str, Query]
"""What may be released: a query, several by name, or what is looked for."""


def weighted_words(words: str, weights: Hashable) -> str:
    """Say what is computed where rows count for their weights.

    Examples
    --------
    >>> weighted_words("mean of income", "w"), weighted_words("mean of income", None)
    ('weighted mean of income (weights w)', 'mean of income')
    """
    return words if weights is None else f"weighted {words} (weights {weights})"
