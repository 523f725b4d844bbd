"""Of which type a column of a plan is, where neither files nor the plan say it."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dpframe.columns import pa
from dpframe.declaration.facts import Declaration
from dpframe.errors import DPFrameError, pip_install
from dpframe.ledger.parts import is_text
from dpframe.queries import where
from dpframe.queries.binned import bounds_of_bins
from dpframe.queries.edges import edges_of
from dpframe.queries.query import Query
from dpframe.queries.timescale import moment_of
from dpframe.sources.cells import STRING
from dpframe.sources.text import type_from_arrow

_TIMES = ("datetime", "datetime-utc")
# a column, and the type of what it is compared with
_Typed: TypeAlias = tuple[Hashable, str | None]


def kinds_of_columns(
    labels: Iterable[Hashable],
    declared: Declaration,
    queries: Collection[Query],
    given: Mapping[str, str],
) -> dict[str, str | None]:
    """Say which types of cells columns have; a part that is a text stands in a column of texts.

    Parameters
    ----------
    labels
        The columns.
    declared
        What is declared.
    queries
        What is asked.
    given
        The types that a plan names.
    """
    kinds: dict[str, str | None] = {}
    for label in labels:
        if isinstance(label, str):  # as all columns of files are
            kinds[label] = given.get(label) or kind_from_plan(label, declared, queries)
    if declared.ledger is not None and is_text(declared.part):
        part = str(declared.ledger.part)
        kinds[part] = kinds.get(part) or STRING
    return kinds


def kind_from_plan(
    label: Hashable, declared: Declaration, queries: Iterable[Query], *, guess: bool = False
) -> str | None:
    """Say which type of cells a column has; `None` if nothing says so, or in several ways.

    The privacy unit is a text. Else declared keys say it, then a schema, bounds, what queries name:
    keys, bins and bounds of their own, and constants that a condition compares the column with. Of
    a unit of several columns, those of which nothing says it are texts. A text that is a time in
    ISO form may stand for either: a guess takes it for a time.
    """
    if declared.unit_columns == (label,):
        return "string"
    facts = declared.column(label)
    if facts.keys is not None:
        return _kind_of(facts.keys)
    if facts.integer or facts.type is not None:
        return facts.type or "int64"
    if facts.bounds is not None:
        return _kind_of(facts.bounds, "float64")
    queries = list(queries)
    for said in (_named_by, _compared_by):
        found = {kind for query in queries for column, kind in said(query) if column == label}
        if found:
            kind = _one_of(found)
            is_open = said is _compared_by and kind in _TIMES
            return None if is_open and not guess else kind
    return "string" if label in declared.unit_columns else None


def _kind_of(values: Iterable[object], numbers: str = "int64") -> str | None:
    """Say what holds such values."""
    if pa is None:
        raise DPFrameError(f"reading files needs pyarrow: {pip_install('parquet')}.")
    try:
        kind = type_from_arrow(pa.array(list(values)).type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):  # they are of several kinds
        return None
    return numbers if kind == "int64" else kind


def _one_of(types: set[str | None]) -> str | None:
    if types == {"int64", "float64"}:
        return "float64"
    return next(iter(types)) if len(types) == 1 else None


def _named_by(query: Query) -> Iterator[_Typed]:
    """Give the types of keys, bins and bounds that a query has itself."""
    for fact, label, values in facts_of_query(query):
        yield label, _kind_of(values, "int64" if fact == "keys" else "float64")


def facts_of_query(query: Query) -> Iterator[tuple[str, Hashable, Any]]:
    """Give the keys and the bounds that a query has itself, by column."""
    if isinstance(query.keys, Mapping):
        for label, keys in query.keys.items():
            yield "keys", label, keys
    elif query.keys is not None and len(query.by) == 1:
        yield "keys", query.by[0], query.keys
    for axis in query.bin_axes:
        yield "bounds", axis.column, tuple(edges_of(axis.keys)[[0, -1]])
    for given in (bounds_of_bins(query), *(asked.bounds for asked in query.outputs)):
        for label, bounds in given.items():
            yield "bounds", label, bounds


def _compared_by(query: Query) -> Iterator[_Typed]:
    """Give the types of constants that columns are compared with in conditions."""
    for condition in conditions_of(query):
        for found in where.leaves(condition.root):
            if isinstance(found, where.Compare):
                yield from _of_values([found.left, found.right])
            elif isinstance(found, where.Membership):
                yield from _of_values([found.operand, *map(where.Constant, found.items)])


def _of_values(values: Sequence[where.Value]) -> Iterator[_Typed]:
    """Give the type that columns have if they can equal the other values."""
    types = {_kind_of_side(value) for value in values if not isinstance(value, where.Name)}
    for value in values:
        if isinstance(value, where.Name):
            yield from ((value.label, kind) for kind in types)
        elif isinstance(value, where.Arithmetic | where.Negative):
            yield from ((label, "float64") for label in where.names_in(value))


def _kind_of_side(value: where.Value) -> str | None:
    """Say what equals a value."""
    if not isinstance(value, where.Constant) or not isinstance(value.value, str):
        return "float64"
    moment = moment_of(value.value)
    return "string" if moment is None else _kind_of([moment])


def conditions_of(query: Query) -> Iterator[where.Condition]:
    """Give the conditions of a query."""
    conditions = [query.condition]
    for output in query.outputs:
        conditions += [output.where, output.condition]
    return filter(None, conditions)
