"""The kinds of queries, as frozen values. A query says what it asks for; facts come later.

A new kind is one class here; Python refuses one that leaves out what a query must say.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias

import pandas as pd

from dpframe.errors import QueryError
from dpframe.forks import cached_property
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.tasks import Axis, BinAxis, Cells, KeyAxis, Sizes
from dpframe.queries.where import Condition

KnownRows: TypeAlias = float | pd.Series | tuple[float | pd.Series, float] | None
Objective: TypeAlias = Literal["total", "worst"]
Statistic: TypeAlias = Literal["count", "sum", "mean", "rate", "var", "std", "quantile"]
"""What an output says about its rows: their number, something of their values, or a share."""


@dataclass(frozen=True, slots=True, eq=False)
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
    """

    name: Hashable
    statistic: Statistic
    column: Hashable = None
    where: Condition | None = None
    bounds: Mapping[Hashable, object] = field(default_factory=dict)
    condition: Condition | None = None

    @property
    def of_column(self) -> bool:
        """Whether it is about the values of a column."""
        return self.statistic not in ("count", "rate")


@dataclass(frozen=True, slots=True, eq=False)
class QueryOptions:
    """Options for all outputs of a query together; see `dpframe.sum`."""

    max_true: int | None = None
    n: KnownRows = None
    n_weight: float = 0.0
    objective: Objective = "total"

    @property
    def names_given(self) -> list[str]:
        """The names of the options that are given."""
        given = {
            "max_true": self.max_true is not None,
            "n": self.n is not None,
            "n_weight": self.n_weight != 0,
            "objective": self.objective != "total",
        }
        return [name for name, is_given in given.items() if is_given]

    @property
    def words(self) -> str:
        """What changes what is measured, in words."""
        words = "" if self.max_true is None else f", at most {self.max_true} true in a row"
        if self.n is None:
            return words
        known = "an estimate of the rows" if isinstance(self.n, tuple) else "the rows of each group"
        return f"{words}, given {known}"


NO_OPTIONS = QueryOptions()
"""No option is given."""


By: TypeAlias = Hashable | Iterable[Hashable] | None
Columns: TypeAlias = Hashable | Iterable[Hashable]
Keys: TypeAlias = Mapping[Hashable, object] | Iterable[object] | pd.DataFrame | pd.MultiIndex | None
GivenBounds: TypeAlias = tuple[float, float] | Mapping[Hashable, object] | None


@dataclass(frozen=True, eq=False)
class Query(ABC):
    """What every query is: groups, a condition, keys and caps given in the call, and outputs."""

    by: tuple[Hashable, ...] = ()
    where: Condition | None = None
    keys: Keys = None
    limits: Caps = field(default=NO_CAPS, kw_only=True)

    def __post_init__(self) -> None:
        taken = [asked.name for asked in self.outputs if asked.name in self.levels]
        if taken:
            naming = "" if self.binned else "name outputs with dpf.aggregate(by=..., name=...), or "
            raise QueryError(
                f"the groups are in a level {taken[0]!r} of the index, and an output cannot have "
                f"that name, too: {naming}rename the column in the frame before it is declared."
            )

    @property
    @abstractmethod
    def outputs(self) -> tuple[OutputSpec, ...]:
        """The output columns, in order."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What is computed per group, in words."""

    @property
    def condition(self) -> Condition | None:
        """The condition on all rows."""
        return self.where

    @property
    def bin_axis(self) -> BinAxis | None:
        """Groups that the query itself makes, inside those of `by`."""
        return None

    @property
    def binned(self) -> tuple[Hashable, ...]:
        """The column whose bins these are, if there are any: known before the bins are."""
        return () if self.bin_axis is None else (self.bin_axis.column,)

    def axis(self, column: Hashable, keys: pd.Index | None) -> Axis | None:
        """Return the groups of a column of `by`, from its public keys; `None` if there are none."""
        return None if keys is None else KeyAxis(column, keys)

    @property
    def bin_axes(self) -> tuple[BinAxis, ...]:
        """All columns that the query itself bins."""
        own = (self.bin_axis, *(self.axis(column, None) for column in self.by))
        return tuple(axis for axis in own if isinstance(axis, BinAxis))

    def sizes(self, groups: Cells) -> Sizes | None:  # most queries count in groups
        """Return by what units fall in cells of their own, in place of the groups, if they do."""
        return None

    @property
    def levels(self) -> set[Hashable]:
        """The levels of the index of what is released."""
        return {*self.by, *self.binned}

    @property
    def options(self) -> QueryOptions:
        """Options for all outputs together."""
        return NO_OPTIONS

    def caps(self, declared: Caps) -> Caps:
        """Return what is kept of a unit, under the caps that are declared."""
        own = self.limits
        rows, groups = own.rows or declared.rows, own.groups or declared.groups
        return Caps(rows, groups, own.rows_per_group or declared.rows_per_group)

    @property
    def counts_units(self) -> bool:
        """Whether a unit counts once in a group, however many rows it has there."""
        return False

    @property
    def ranges(self) -> bool:
        """Whether the numbers of rows in ranges of bins matter, and bins are no groups of caps."""
        return False

    @property
    def margins(self) -> Mapping[tuple[Hashable, ...], "Query"]:
        """The tables that are asked for, by their columns, where it is several of some columns."""
        return {}

    @property
    def margin_weights(self) -> tuple[float, ...]:
        """How much the variance of a cell of each of these tables counts; none: all the same."""
        return ()

    @property
    def words(self) -> str:
        """The query in words.

        Examples
        --------
        >>> import dpframe as dpf
        >>> dpf.sum(["fare", "tip"], by="zone", where="fare > 0").words
        'sum of fare, tip by zone where fare > 0'
        """
        groups = f" by {_list_labels(self.by)}" if self.by else ""
        condition = "" if self.where is None else f" where {self.where.text}"
        return self.what + groups + self.options.words + self.limits.words + condition

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The labels of the columns that the query names."""
        outputs = self.outputs
        conditions = [self.condition, *(asked.where for asked in outputs)]
        conditions += [asked.condition for asked in outputs]
        columns = (asked.column for asked in outputs if asked.of_column)
        labels = [*self.by, *columns, *self.binned]
        labels += [name for condition in conditions if condition for name in condition.columns]
        return tuple(dict.fromkeys(labels))


@dataclass(frozen=True, eq=False)
class Count(Query):
    """The number of rows per group."""

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column."""
        return (OutputSpec("count", "count"),)

    @property
    def what(self) -> str:
        """What is computed."""
        return "count"


@dataclass(frozen=True, eq=False)
class Rate(Query):
    """The share of the rows per group that satisfy a condition."""

    met: Condition = field(kw_only=True)

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column."""
        return (OutputSpec("rate", "rate", condition=self.met),)

    @property
    def what(self) -> str:
        """What is computed."""
        return f"rate of {self.met.text}"


@dataclass(frozen=True, eq=False)
class _OfColumns(Query):
    """One statistic of several bounded columns."""

    _statistic: ClassVar[Statistic]
    _called: ClassVar[str]

    columns: tuple[Hashable, ...] = ()
    bounds: GivenBounds = None

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One output per column."""
        asked, bounds = self._statistic, self._bounds
        return tuple(
            OutputSpec(label, asked, label, bounds=bounds(label)) for label in self.columns
        )

    @property
    def what(self) -> str:
        """What is computed."""
        return f"{self._called} of {_list_labels(self.columns)}"

    def _bounds(self, label: Hashable) -> Mapping[Hashable, object]:
        """Bounds of a column that were given in the call, if they were."""
        if isinstance(self.bounds, Mapping):
            return {label: self.bounds[label]} if label in self.bounds else {}
        return {} if self.bounds is None else {label: self.bounds}


@dataclass(frozen=True, eq=False)
class Sum(_OfColumns):
    """Sums of several columns per group."""

    options: QueryOptions = NO_OPTIONS

    _statistic = "sum"
    _called = "sum"


@dataclass(frozen=True, eq=False)
class Mean(_OfColumns):
    """Means of several columns per group, over the rows where the column is present."""

    _statistic = "mean"
    _called = "mean"


@dataclass(frozen=True, eq=False)
class Variance(_OfColumns):
    """Variances of several columns per group, over the rows where the column is present."""

    _statistic = "var"
    _called = "variance"


@dataclass(frozen=True, eq=False)
class Deviation(_OfColumns):
    """Standard deviations of several columns per group, as `Variance`."""

    _statistic = "std"
    _called = "standard deviation"


@dataclass(frozen=True, eq=False)
class UnitCount(Query):
    """The number of distinct privacy units per group."""

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column."""
        return (OutputSpec("units", "count"),)

    @property
    def what(self) -> str:
        """What is computed."""
        return "units"

    @property
    def counts_units(self) -> bool:
        """Units are what is counted."""
        return True

    def caps(self, declared: Caps) -> Caps:
        """Keep one row of a unit per group: it is in no more groups than it may have rows."""
        caps = super().caps(declared)
        limits = [cap for cap in (caps.groups, caps.rows) if cap is not None]
        return Caps(groups=min(limits, default=None), rows_per_group=1)


@dataclass(frozen=True, eq=False)
class Aggregate(Query):
    """Several outputs by the same groups, measured together."""

    queries: Mapping[str, Query] = field(default_factory=dict)
    options: QueryOptions = NO_OPTIONS

    @cached_property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column per query, under its own condition unless all have the same."""
        shared = self._shared_condition
        return tuple(
            replace(asked, name=name, where=None if shared is not None else part.where)
            for name, part in self.queries.items()
            for asked in part.outputs
        )

    @property
    def what(self) -> str:
        """What is computed."""
        return ", ".join(f"{name}: {part.words}" for name, part in self.queries.items())

    @property
    def condition(self) -> Condition | None:
        """The condition on all rows: a row that no output counts is left out as a whole."""
        return Condition.all_of(self.where, self._shared_condition)

    @property
    def _shared_condition(self) -> Condition | None:
        """The condition that all queries have."""
        conditions = {part.where for part in self.queries.values()}
        return conditions.pop() if len(conditions) == 1 else None


@dataclass(frozen=True, eq=False)
class Joint(Query):
    """Queries of the same groups that are measured as one, though their answers are apart."""

    parts: tuple[Query, ...] = field(kw_only=True)

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """The columns of all queries, under the conditions of these unless all have the same."""
        shared = len(self._conditions) == 1
        return tuple(
            asked if shared else replace(asked, where=Condition.all_of(part.condition, asked.where))
            for part in self.parts
            for asked in part.outputs
        )

    @property
    def what(self) -> str:
        """What is computed."""
        return "; ".join(part.what for part in self.parts)

    @property
    def condition(self) -> Condition | None:
        """The condition that all queries have."""
        (condition, *others) = self._conditions
        return None if others else condition

    @property
    def bin_axis(self) -> BinAxis | None:
        """The bins, which all queries have."""
        return self.parts[0].bin_axis

    def caps(self, declared: Caps) -> Caps:
        """Return what is kept of a unit: the same for all queries."""
        return self.parts[0].caps(declared)

    @property
    def _conditions(self) -> set[Condition | None]:
        return {part.condition for part in self.parts}


def _list_labels(labels: Iterable[Hashable]) -> str:
    return ", ".join(str(label) for label in labels)
