"""How the arguments of a query are read: labels, conditions, keys, bounds and caps."""

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeGuard

import pandas as pd

from dpframe.arguments import is_label
from dpframe.errors import DeclarationError, QueryError, a_type, is_data, quote
from dpframe.options import By, ChosenRows, Columns, GivenBounds, Keys
from dpframe.privacy.amounts import WRITTEN, as_float, as_number
from dpframe.privacy.neighbors import Caps
from dpframe.queries.groups import check_column, check_other, split_groups
from dpframe.queries.query import Query, Search
from dpframe.queries.where import Condition
from dpframe.statistics.table import STATISTICS

_ANY_WHOLE = "must be a whole number >= 1"
_GROUPERS: tuple[Any, ...] = (Callable, pd.Grouper)
"""What pandas groups by, and no column is called."""
_MOST_WEIGHT = 1e6
"""Of one query in units of another: with parts below a millionth, there is nothing to see."""


def limits_of(rows: ChosenRows) -> Caps:
    """Read the caps of a query."""
    try:
        return Caps(rows.max_rows, rows.max_groups, rows.max_rows_per_group)
    except DeclarationError as error:
        raise QueryError(str(error), parameter=error.parameter, value=error.value) from None


def groups_of(by: By, rows: ChosenRows) -> dict[str, Any]:
    """Read what every query has: groups, a condition, keys, caps and a weight."""
    named, cuts = split_groups(by)
    labels = labels_of("by", named)
    return {
        "by": labels,
        "cuts": cuts,
        "other": check_other(labels, cuts, rows.other),
        "where": None if rows.where is None else Condition.parse(rows.where),
        "keys": materialized_keys(rows.keys),
        "limits": limits_of(rows),
        "weight": read_weight(rows.weight),
    }


def check_number(
    name: str, value: object, rule: str, way_out: str = "", *,
    least: float = math.ulp(0.0), most: float = sys.float_info.max, label: Hashable = None,
) -> float:  # fmt: skip
    """Read a finite number, of any size above 0 unless ends are named.

    Parameters
    ----------
    name, value
        The public argument.
    rule, way_out
        What it must be, and what to do where it is not.
    least, most
        The ends, which it may be.
    label
        The column that it is about.

    Raises
    ------
    QueryError
        If it is none.
    """
    number = as_float(value)
    if least <= number <= most:
        return number
    raise QueryError.about(name, rule, value, way_out, label=label)


def read_weight(value: object) -> float:
    """Read how much the error of something counts."""
    least, most = 1 / _MOST_WEIGHT, _MOST_WEIGHT
    rule = f"must be a number from {least:g} to {most:g}"
    remedy = "Queries share an amount in proportion to it."
    return check_number("weight", value, rule, remedy, least=least, most=most)


def binned_groups_of(
    column: Hashable, by: By, rows: ChosenRows, use: str = "be binned and"
) -> dict[str, Any]:
    """Read the same where the values of one column are groups, too."""
    groups = groups_of(by, rows)
    check_column("column", column)
    if column in groups["by"]:
        rule = f"cannot {use} grouped by at once"
        raise QueryError.about("column", rule, column, "Drop it from by=.")
    return groups


def weights_of(label: Hashable) -> Hashable:
    """Read the label of the column of weights, if there is one."""
    if label is None or (is_label(label) and not isinstance(label, (frozenset, *_GROUPERS))):
        return label
    rule = "must be the label of one column, which holds what each row counts for"
    raise QueryError.about("weights", rule, label)


def materialized_keys(keys: Keys) -> Keys:
    """Return keys that can be read again and again: a query may be previewed, and then released."""
    return list(keys) if isinstance(keys, Iterator) else keys


def labels_of(name: str, columns: Columns | None) -> tuple[Hashable, ...]:
    """Read a label or a list of them."""
    if columns is None:
        return ()
    if _is_one_label(columns):
        return (columns,)
    held = columns if isinstance(columns, list | tuple) else []
    strange = next((value for value in held if not _is_one_label(value)), None)
    shown = a_type(columns) + ("" if strange is None else f" that holds {a_type(strange)}")
    rule = f"{name} must be a column label or a list of labels, got {shown}."
    way_out = _way_of_labels(name, columns if strange is None else strange)
    wrong = QueryError(f"{rule}{way_out}", parameter=name)
    # sets have no order, and a column of the frame is private; other arrays may hold labels
    if isinstance(columns, set | frozenset | Mapping | pd.Series | pd.DataFrame):
        raise wrong
    try:
        labels = tuple(columns)  # type: ignore[arg-type]  # a TypeError if it is not iterable
        repeated = len(set(labels)) != len(labels)
    except TypeError:
        raise wrong from None
    if strange is not None or any(map(is_data, labels)):
        raise wrong
    if repeated:
        raise QueryError.about(name, "must not name a column twice", list(labels))
    return labels


def _is_one_label(value: object) -> TypeGuard[Hashable]:
    """Whether a value names one column."""
    return is_label(value) and not isinstance(value, (Iterator, frozenset, *_GROUPERS))


def _way_of_labels(name: str, columns: object) -> str:
    """Say how what pandas takes as an array, in a dict, or as a function, is written here."""
    if isinstance(columns, _GROUPERS) or is_data(columns):
        cut = " Cut a column in the call, by=dpf.cut(column, edges) or dpf.period(column, ...);"
        return f"{cut} or make one of groups before the frame is declared, and name that."
    if not isinstance(columns, Mapping) or not columns:
        return ""
    column, aggregation = next(iter(columns.items()))
    aggregation = aggregation[0] if isinstance(aggregation, list) and aggregation else aggregation
    if is_aggregation(aggregation):
        of_one = [name for name, form in STATISTICS.items() if form.arity == 1 and form.family]
        statistic = aggregation if aggregation in of_one else "mean"
        return f" Outputs are keywords: aggregate(by=..., name=dpf.{statistic}({quote(column)}))."
    return f" Name the columns, {name}={quote([*columns])}, and give their groups as keys={{...}}."


def is_aggregation(value: object) -> bool:
    """Whether pandas would aggregate by it: a name of a method, or a function."""
    return callable(value) or (isinstance(value, str) and hasattr(pd.Series, value))


def bounds_of(columns: tuple[Hashable, ...], bounds: GivenBounds) -> Mapping[Hashable, object]:
    """Read bounds by column: those of all columns asked for, or of some."""
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        return dict.fromkeys(columns, bounds)
    refuse_unknown("bounds", bounds, columns)
    return dict(bounds)


def refuse_unknown(name: str, labels: Iterable[Hashable], columns: tuple[Hashable, ...]) -> None:
    """Refuse labels that are not among those of the columns."""
    unknown = [label for label in labels if label not in columns]
    if unknown:
        reason = (
            f"{name} names {quote(unknown)}, which is not among columns={quote(list(columns))}."
        )
        raise QueryError(reason, parameter=name, label=unknown[0])


def check_whole(name: str, value: object, most: int, way_out: str = "") -> int:
    """Read a whole number from 1 to a largest one."""
    try:
        number = as_number(value)
    except (TypeError, ValueError, OverflowError):
        number = 0
    if isinstance(number, int) and 1 <= number <= most:
        return number
    rule = f"must be a whole number from 1 to {most:,}" if most < WRITTEN - 1 else _ANY_WHOLE
    raise QueryError.about(name, rule, value, way_out)


def check_query(query: object, name: Hashable = None) -> Query:
    """Return what is asked for, if it is a query; one of several has a name."""
    if isinstance(query, Query):
        return query
    called = "" if name is None else f" under {name!r}"
    if isinstance(query, Search):
        searches = (
            "what dpf.discover(...), dpf.suggest_caps(...) and dpf.suggest_bounds(...) look for"
        )
        remedy = f"is released on its own, in a call of .dp.release(...); got one{called}."
        raise QueryError(f"{searches} {remedy}", parameter="queries", label=name)
    raise QueryError(
        "a query must be dpf.count(...), dpf.rate(...), dpf.sum(...), dpf.mean(...), dpf.var(...), "
        "dpf.std(...), dpf.cov(...), dpf.corr(...), dpf.slope(...), "
        "dpf.regression(...), dpf.histogram(...), dpf.ranges(...), dpf.quantile(...), "
        "dpf.units(...), "
        f"dpf.aggregate(...) or dpf.margins(...), got {a_type(query)}{called}. Several go in a "
        "dict by name.",
        parameter="queries",
        label=name,
    )
