"""Queries for several outputs by the same groups, checked to fit together."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias, TypeVar

import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.context import cached_property
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.options import By, ChosenRows, Keys, Objective, Other
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.public import nearest, no_such_keyword, public_call
from dpframe.queries import reading
from dpframe.queries.binned import Quantile
from dpframe.queries.conditions import equals_itself
from dpframe.queries.of_columns import (
    Count,
    OfColumns,
    Rate,
    UnitCount,
    mean,
    read_options,
    std,
    var,
)
from dpframe.queries.of_columns import sum as sum_of
from dpframe.queries.query import NO_OPTIONS, OutputSpec, Query, QueryOptions
from dpframe.queries.where import Condition

_Key = TypeVar("_Key")
_Value_co = TypeVar("_Value_co", covariant=True)


class View(Mapping[_Key, _Value_co]):
    """A mapping that cannot be written to; `types.MappingProxyType` cannot be pickled.

    Parameters
    ----------
    of
        What is in it.

    Examples
    --------
    >>> import copy
    >>> copy.deepcopy(View({"a": 1}))
    {'a': 1}
    """

    def __init__(self, of: Mapping[_Key, _Value_co]) -> None:
        self._of = dict(of)

    def __getitem__(self, key: _Key) -> _Value_co:
        return self._of[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __repr__(self) -> str:
        return repr(self._of)


@frozen(eq=False)
class Aggregate(Query):
    """Several outputs by the same groups, measured together."""

    queries: Mapping[str, Query] = field(default_factory=dict)
    options: QueryOptions = NO_OPTIONS

    @cached_property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column per query, under its own condition unless all have the same."""
        shared = self._shared_condition
        specs = [
            replace(
                specs,
                name=name,
                where=None if shared is not None else part.where,
                weight=part.weight,
            )
            for name, part in self.queries.items()
            for specs in part.outputs
        ]
        means = {
            (spec.column, spec.where) for spec in specs if spec.form.is_mean and spec.of_column
        }
        # sums stay whole numbers; means alone are read off the integers of the variance
        summed = {spec.column for spec in specs if spec.is_sum}
        fine = {spec.column for spec in specs if spec.form.is_fine} - summed
        return tuple(
            replace(
                spec,
                averaged=spec.is_sum and (spec.column, spec.where) in means,
                fine=spec.column in fine and not spec.others,
            )
            for spec in specs
        )

    @property
    def subject(self) -> str:
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


@frozen(eq=False)
class Joint(Query):
    """Queries of the same groups that are measured as one, though their answers are apart."""

    parts: tuple[Query, ...] = field(kw_only=True)

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """The columns of all queries, under the conditions of these unless all have the same."""
        shared = len(self._conditions) == 1
        return tuple(
            spec if shared else replace(spec, where=Condition.all_of(part.condition, spec.where))
            for part in self.parts
            for spec in part.outputs
        )

    @property
    def subject(self) -> str:
        """What is computed."""
        return "; ".join(part.subject for part in self.parts)

    @property
    def condition(self) -> Condition | None:
        """The condition that all queries have, or that of the part alone."""
        (condition, *others) = self._conditions
        return self.where if others else condition

    @property
    def binning(self) -> Query:
        """The query whose bins are groups: all queries have these."""
        return self.parts[0].binning

    def caps(self, declared: Caps) -> Caps:
        """Return what is kept of a unit: the same for all queries."""
        return self.parts[0].caps(declared)

    @property
    def _conditions(self) -> set[Condition | None]:
        return {part.condition for part in self.parts}


AggregatePart: TypeAlias = Count | Rate | OfColumns
"""A query that can be one output of several."""

AskedPart: TypeAlias = AggregatePart | tuple[Hashable, str]
"""The same, also as pandas names it: a column, and what is asked of it."""

NOT_OUTPUTS = tuple(
    "by where keys other max_rows max_groups max_rows_per_group epsilon delta mu rho share "
    "mechanism denoise graph name note part privacy_unit weight n_weight objective".split()
)
"""Names that outputs of `aggregate` cannot have: its own keywords and those of a release."""

_MARGIN_KINDS = "dpf.count(), dpf.rate(condition), dpf.sum(column)"
_KINDS = {
    "aggregate": f"{_MARGIN_KINDS}, dpf.mean(column), dpf.var(column), dpf.std(column), "
    "dpf.cov(x, y), dpf.corr(x, y) or dpf.slope(x, y)",
    "margins": f"{_MARGIN_KINDS} or dpf.mean(column)",
}
_OPTIONS = {
    "aggregate": "in aggregate, n_weight= and objective= are given once for all",
    "margins": "margins have weights= of tables in place of n_weight= and objective=",
}

_NOT_NAMES = f"{', '.join(NOT_OUTPUTS)} are keywords and cannot be names"


@public_call
def aggregate(
    by: By = None, *, where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    n_weight: float = 0.0, objective: Objective = "total", other: Other = None,
    **queries: AskedPart,
) -> Aggregate:  # fmt: skip
    """Describe several outputs by the same groups, one column each.

    Parameters
    ----------
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        As in `count`; `where` holds for all of them, beside their own.
    n_weight, objective
        As in `sum`.
    **queries
        Output columns: `flights=count(), total=sum("distance"), delay=mean("dep_delay")`, or as in
        pandas, `flights=("distance", "size"), delay=("dep_delay", "mean")`: "size" counts rows,
        "count" those with a value; "sum", "mean", "var" and "std" are as here. Keywords of
        `release` cannot be their names. All have the same survey weights, or none has any.

    Raises
    ------
    QueryError
        If there is nothing to compute, a name is a keyword of `release`, or a query does not fit.

    Examples
    --------
    >>> import dpframe as dpf
    >>> sorted(aggregate(by="zone", n=dpf.count(), fare=dpf.sum("fare")).queries)
    ['fare', 'n']
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups = reading.groups_of(by, rows)
    if not queries:
        raise QueryError(
            f"aggregate needs at least one named query, for instance n=dpf.count(); {_NOT_NAMES}."
        )
    outputs = read_outputs(queries)
    for name, query in outputs.items():
        check_part(name, query, groups["by"])
    check_weights(outputs, "aggregate")
    options = read_options(None, None, n_weight, objective)
    return Aggregate(**groups, queries=View(outputs), options=options)


_NAMED: Mapping[str, Callable[[Hashable], Query]] = {
    "size": lambda _: Count(),
    "count": lambda column: Count(where=equals_itself(str(column))),
    "sum": sum_of,
    "mean": mean,
    "var": var,
    "std": std,
}
"""What outputs of a column are called in pandas."""

_NAMED_ELSEWHERE = {
    "nunique": "Privacy units are counted by dpf.units(by=...), beside it in release({...}).",
    **dict.fromkeys(
        ("median", "quantile"), "Quantiles are dpf.quantile(column, 0.5, by=...), beside it."
    ),
}


def read_outputs(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read outputs, which are queries, or a column and a name as pandas has it: ("cost", "mean").

    Raises
    ------
    QueryError
        If a name says what is not released so.
    """
    outputs = {}
    for name, part in given.items():
        match part:
            case pd.NamedAgg():  # a tuple in pandas 2
                outputs[name] = _read_pair(name, part.column, part.aggfunc)
            case (column, called):
                outputs[name] = _read_pair(name, column, called)
            case _:
                outputs[name] = part
    return outputs


def _read_pair(name: str, column: Hashable, called: object) -> Query:
    """Read a column and what is asked of it."""
    if not isinstance(called, str) or called not in _NAMED:
        known = ", ".join(map(repr, _NAMED))
        remedy = _NAMED_ELSEWHERE.get(called, "") if isinstance(called, str) else ""
        raise QueryError.about(name, f"must name one of {known}", called, remedy)
    if called == "count" and not isinstance(column, str):
        remedy = "Rows are counted by 'size'."
        raise QueryError.about(name, "counts values of a column named by a text", column, remedy)
    return _NAMED[called](column)


def check_part(
    name: str, query: object, by: tuple[Hashable, ...], called: str = "aggregate"
) -> None:
    """Check one of several outputs, of `aggregate` or what else is called.

    Raises
    ------
    QueryError
        If it is not the query of a single column without groups, caps and options of its own.
    """
    if name in NOT_OUTPUTS:
        reason = f"{name}= cannot name an output of {called}: {_NOT_NAMES}."
        remedy = "Choose another name; amounts and options go to release(...)."
        raise QueryError(f"{reason} {remedy}", parameter=name)
    of_pandas = isinstance(query, tuple) or reading.is_aggregation(query)
    if not (isinstance(query, Query) or of_pandas) and nearest(name, NOT_OUTPUTS):
        raise no_such_keyword(called, name, NOT_OUTPUTS)
    if not is_unicode(name):
        raise QueryError.about("name", "of an output must be a valid Unicode text", name)
    if isinstance(query, UnitCount):
        reason = f"counts units, and the outputs of {called} add up rows that caps may drop."
        both = f"release({{{name!r}: dpf.units(by=...), 'rows': dpf.{called}(...)}})"
        raise QueryError(f"{name}= {reason} Ask for both at once: {both}.", parameter=name)
    if name == "bounds" and not isinstance(query, Query):
        reason = f"bounds= goes to each output of {called}:"
        remedy = "dpf.mean('column', bounds=(low, high)); or declare the bounds, for all queries."
        raise QueryError(f"{reason} {remedy}", parameter="bounds")
    if not isinstance(query, AggregatePart):
        others = "Several queries by different groups go through release({...})."
        if isinstance(query, Quantile):
            both = f"{{{name!r}: dpf.quantile('column', 0.5, by=...), 'rows': dpf.{called}(...)}}"
            others = f"Ask for both at once: release({both})."
        raise QueryError.about(name, f"must be {_KINDS[called]}", query, others)
    columns = [spec.column for spec in query.outputs]
    if reason := _why_not(query, by, called):
        raise QueryError(f"{name}= {reason}", parameter=name)
    if len(columns) != 1:
        raise QueryError.about(name, "must be of a single column", columns, "Name each by itself.")


def check_weights(queries: Mapping[str, Query], called: str) -> None:
    """Check that the rows of all outputs count for the same: all are measured together.

    Raises
    ------
    QueryError
        If outputs have different weights, or some have none.
    """
    used = {query.weighted_by: name for name, query in queries.items()}
    if len(used) > 1:
        (_, first), (weights, other), *_ = used.items()
        rule = f"must be the same for all outputs of {called}, and {first!r} and {other!r} differ"
        remedy = f"Release several at once: release({{'a': dpf.{called}(...), 'b': ...}})."
        raise QueryError.about("weights", rule, weights, remedy)


def _why_not(query: AggregatePart, by: tuple[Hashable, ...], called: str) -> str:
    """Say what a query has that is given once for all outputs; empty if nothing."""
    once = f"of its own; give them once, as keywords of {called}"
    if query.by not in ((), by) or query.keys is not None:
        return f"has groups {once}."
    if query.limits != NO_CAPS:
        return f"has caps {once}. Queries with other caps go through release({{...}})."
    if query.options.names_given:
        return (
            f"has options for several outputs; {_OPTIONS[called]}, and max_true= and n= belong to "
            "dpf.sum([...]) on its own."
        )
    return ""
