"""How the arguments of a query are read: labels, conditions, keys, bounds and caps."""

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import TypedDict

import pandas as pd

from dpframe.arguments import is_label
from dpframe.errors import DeclarationError, QueryError, a_type, is_data, quote
from dpframe.privacy.amounts import as_number
from dpframe.privacy.neighbors import Caps
from dpframe.queries.query import By, Columns, GivenBounds, Keys, Query, Search
from dpframe.queries.where import Condition


class RowOptions(TypedDict, total=False):
    """Which rows are looked at, and in which groups; see `dpframe.count`."""

    where: str | None
    keys: Keys


class CapOptions(TypedDict, total=False):
    """Caps on one unit in one query, in place of those that are declared."""

    max_rows: int | None
    max_groups: int | None
    max_rows_per_group: int | None


class CountOptions(RowOptions, CapOptions, total=False):
    """The same, and caps on one unit; see `dpframe.count`."""


class ColumnOptions(CountOptions, total=False):
    """The same, and bounds of columns; see `dpframe.mean`."""

    bounds: GivenBounds


def limits_of(caps: CapOptions) -> Caps:
    """Read the caps of a query."""
    try:
        return Caps(caps.get("max_rows"), caps.get("max_groups"), caps.get("max_rows_per_group"))
    except DeclarationError as error:
        raise QueryError(str(error)) from None


def groups_of(by: By, options: RowOptions) -> tuple[tuple[Hashable, ...], Condition | None, Keys]:
    """Read labels to group by, a condition and keys."""
    keys = materialized_keys(options.get("keys"))
    return labels_of("by", by), condition_of(options.get("where")), keys


def binned_groups_of(
    column: object, by: By, options: RowOptions, what: str = "be binned and"
) -> tuple[tuple[Hashable, ...], Condition | None, Keys]:
    """Read the same where the values of one column are groups, too."""
    groups = groups_of(by, options)
    if not is_label(column):
        raise QueryError(f"column must be the label of one column, got {quote(column)}.")
    if column in groups[0]:
        raise QueryError(f"column {column!r} cannot {what} grouped by at once; drop it from by=.")
    return groups


def condition_of(where: str | None) -> Condition | None:
    """Read a condition, if there is one."""
    return None if where is None else Condition.parse(where)


def materialized_keys(keys: Keys) -> Keys:
    """Return keys that can be read again and again: a query may be previewed, and then released."""
    return list(keys) if isinstance(keys, Iterator) else keys


def labels_of(name: str, given: Columns | None) -> tuple[Hashable, ...]:
    """Read a label or a list of them."""
    if given is None:
        return ()
    if is_label(given) and not isinstance(given, Iterator | frozenset):
        return (given,)
    wrong = QueryError(f"{name} must be a column label or a list of labels, got {a_type(given)}.")
    # sets have no order, and a column of the frame is private; other arrays may hold labels
    if isinstance(given, set | frozenset | pd.Series | pd.DataFrame):
        raise wrong
    try:
        labels = tuple(given)  # type: ignore[arg-type]  # a TypeError if it is not iterable
        repeated = len(set(labels)) != len(labels)
    except TypeError:
        raise wrong from None
    if any(map(is_data, labels)):
        raise wrong
    if repeated:
        raise QueryError(f"{name} must not name a column twice, got {name}={quote(list(labels))}.")
    return labels


def bounds_of(columns: tuple[Hashable, ...], bounds: GivenBounds) -> GivenBounds:
    """Check that bounds are of the columns that are asked for."""
    named = bounds if isinstance(bounds, Mapping) else ()
    unknown = [label for label in named if label not in columns]
    if unknown:
        raise QueryError(
            f"bounds names {quote(unknown)}, which is not among columns={quote(list(columns))}."
        )
    return bounds


def as_float(given: object) -> float:
    """Read a number; what is none, or too large, is not a number."""
    try:
        return float(as_number(given))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def check_query(query: object, name: Hashable = None) -> Query:
    """Return what is asked for, if it is a query; one of several has a name."""
    if isinstance(query, Query):
        return query
    called = "" if name is None else f" under {name!r}"
    if isinstance(query, Search):
        raise QueryError(
            "what dpf.discover(...), dpf.suggest_caps(...) and dpf.suggest_bounds(...) look for is "
            f"released on its own, in a call of .dp.release(...); got one{called}.",
            parameter="queries",
            label=name,
        )
    raise QueryError(
        "a query must be dpf.count(...), dpf.rate(...), dpf.sum(...), dpf.mean(...), dpf.var(...), "
        "dpf.std(...), dpf.histogram(...), dpf.ranges(...), dpf.quantile(...), dpf.units(...), "
        f"dpf.aggregate(...) or dpf.margins(...); got {type(query).__name__}{called}.",
        parameter="queries",
        label=name,
    )
