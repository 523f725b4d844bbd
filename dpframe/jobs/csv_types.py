"""What the columns of CSV files hold, from what a plan says of them: public facts alone."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TypeAlias

import numpy as np

from dpframe.declaration.facts import Declaration
from dpframe.queries.binned import bounds_of_bins
from dpframe.queries.comparisons import comparisons, names_in
from dpframe.queries.kinds import Query
from dpframe.queries.where import Arithmetic, Compare, Constant, Name, Negative, Value

_Said: TypeAlias = tuple[Hashable, str | None]  # a column, and the type of what it is compared with


def kind_from_plan(label: Hashable, declared: Declaration, queries: Iterable[Query]) -> str | None:
    """Say which type of cells a column has; `None` if nothing says so, or in several ways.

    The privacy unit is a text. Else declared keys say it, then bounds, then what queries name:
    keys, bins and bounds of their own, and constants that a condition compares the column with.
    """
    if label == declared.unit_column:
        return "string"
    facts = declared.column(label)
    if facts.keys is not None:
        return _kind_of(facts.keys)
    if facts.integer:
        return "int64"
    if facts.bounds is not None:
        return _kind_of(facts.bounds, "float64")
    queries = list(queries)
    for said in (_named_by, _compared_by):
        found = {kind for query in queries for column, kind in said(query) if column == label}
        if found:
            return _one_of(found)
    return None


def _kind_of(values: Iterable[object], numbers: str = "int64") -> str | None:
    """Say what holds such values."""
    return _one_of({_kind_of_value(value, numbers) for value in values})


def _one_of(kinds: set[str | None]) -> str | None:
    if kinds == {"int64", "float64"}:
        return "float64"
    return next(iter(kinds)) if len(kinds) == 1 else None


def _kind_of_value(value: object, numbers: str) -> str | None:
    """Say which kind of cells can equal a value."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, datetime):
        return "datetime" if value.tzinfo is None else "datetime-utc"
    if isinstance(value, date):
        return "date"
    if isinstance(value, int | np.integer):
        return numbers
    return "float64" if isinstance(value, float) else None


def _named_by(query: Query) -> Iterator[_Said]:
    """Give the types of keys, bins and bounds that a query has itself."""
    if isinstance(query.keys, Mapping):
        for label, keys in query.keys.items():
            yield label, _kind_of(keys)
    elif query.keys is not None and len(query.by) == 1:
        yield query.by[0], _kind_of(query.keys)
    for axis in query.bin_axes:
        yield axis.column, _kind_of(axis.keys.left[:1], "float64")
    of_outputs = (asked.bounds for asked in query.outputs)
    for given in (bounds_of_bins(query), *of_outputs):
        for label, bounds in given.items():
            yield label, _kind_of(bounds, "float64")  # type: ignore[arg-type]  # two ends


def _compared_by(query: Query) -> Iterator[_Said]:
    """Give the types of constants that columns are compared with in conditions."""
    conditions = [query.condition]
    for asked in query.outputs:
        conditions += [asked.where, asked.condition]
    for condition in filter(None, conditions):
        for found in comparisons(condition):
            if isinstance(found, Compare):
                yield from _compared([found.left, found.right])
            else:
                yield from _compared([found.operand, *map(Constant, found.items)])


def _compared(values: Sequence[Value]) -> Iterator[_Said]:
    """Give the type that columns have if they can equal the other values."""
    kinds = {_kind_of_side(value) for value in values if not isinstance(value, Name)}
    for value in values:
        if isinstance(value, Name):
            yield from ((value.label, kind) for kind in kinds)
        elif isinstance(value, Arithmetic | Negative):
            yield from ((label, "float64") for label in names_in(value))


def _kind_of_side(value: Value) -> str | None:
    """Say what equals a value; a text that is a time as well may stand for either."""
    if isinstance(value, Constant) and isinstance(value.value, str):
        return None if _is_time(value.value) else "string"
    return "float64"


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
