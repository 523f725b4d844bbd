"""Queries for several outputs by the same groups, checked to fit together."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.errors import QueryError
from dpframe.options import By, ChosenRows, Keys, Objective, Other
from dpframe.privacy.neighbors import NO_CAPS
from dpframe.public import nearest, no_such_keyword, public_call
from dpframe.queries import reading
from dpframe.queries.binned import Quantile
from dpframe.queries.conditions import equals_itself
from dpframe.queries.of_columns import count, mean, read_options, std, var
from dpframe.queries.of_columns import sum as sum_of
from dpframe.queries.query import AggregatePart, Query
from dpframe.queries.where import Condition


def outputs_of(queries: Mapping[str, Query]) -> dict[str, Any]:
    """Return one column per query, and the condition that all queries have, if they have one."""
    conditions = {part.where for part in queries.values()}
    alike = len(conditions) == 1
    specs = [
        replace(spec, name=name, where=None if alike else part.where, weight=part.weight)
        for name, part in queries.items()
        for spec in part.outputs
    ]
    means = {(spec.column, spec.where) for spec in specs if spec.form.is_mean and spec.of_column}
    # sums stay whole numbers; means alone are read off the integers of the variance
    summed = {spec.column for spec in specs if spec.is_sum}
    fine = {spec.column for spec in specs if spec.form.is_fine} - summed
    outputs = tuple(
        replace(
            spec,
            averaged=spec.is_sum and (spec.column, spec.where) in means,
            fine=spec.column in fine and not spec.others,
        )
        for spec in specs
    )
    return {"outputs": outputs, "shared": conditions.pop() if alike else None}


def join_queries(parts: Sequence[Query], part: Condition | None) -> Query:
    """Ask for queries of the same groups as one, though their answers are apart.

    Parameters
    ----------
    parts
        The queries.
    part
        The condition on the part of the data, where that is all that their conditions share.
    """
    first = parts[0]
    condition, *others = {query.condition for query in parts}
    outputs = tuple(
        replace(spec, where=Condition.all_of(query.condition, spec.where)) if others else spec
        for query in parts
        for spec in query.outputs
    )
    subject = "; ".join(query.subject for query in parts)
    where = part if others else condition
    return replace(first, where=where, shared=None, outputs=outputs, subject=subject, weight=1.0)


AskedPart: TypeAlias = AggregatePart | tuple[Hashable, str]
"""One output of several, also as pandas names it: a column, and what is asked of it."""

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
) -> Query:  # fmt: skip
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
    >>> aggregate(by="zone", n=dpf.count(), fare=dpf.sum("fare")).words
    'n: count, fare: sum of fare by zone'
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
    subject = ", ".join(f"{name}: {part.words}" for name, part in outputs.items())
    return Query(**groups, **outputs_of(outputs), subject=subject, options=options)


_NAMED: Mapping[str, Callable[[Hashable], Query]] = {
    "size": lambda _: count(),
    "count": lambda column: replace(count(), where=equals_itself(str(column))),
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


def read_outputs(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Read outputs, which are queries, or a column and a name as pandas has it: ("cost", "mean").

    Raises
    ------
    QueryError
        If a name says what is not released so.
    """
    outputs = {}
    for name, part in parts.items():
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
        names = ", ".join(map(repr, _NAMED))
        remedy = _NAMED_ELSEWHERE.get(called, "") if isinstance(called, str) else ""
        raise QueryError.about(name, f"must name one of {names}", called, remedy)
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
    if isinstance(query, Query) and query.counts_units:
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
        shown = query.words if isinstance(query, Query) else query
        raise QueryError.about(name, f"must be {_KINDS[called]}", shown, others)
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
