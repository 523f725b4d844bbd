"""Whether what is public about a column agrees with what is asked of it: texts, numbers or times.

A condition that compares numbers with a text matches no row, and neither does a date that is a key
of a column of times: nothing fails, and it would be released, and charged. What is looked at here
are a plan and types of columns, and no row.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeAlias, assert_never

import numpy as np

from dpframe.declaration import kinds
from dpframe.declaration.facts import Declaration
from dpframe.errors import QueryError
from dpframe.queries import where
from dpframe.queries.binned import bounds_of_bins
from dpframe.queries.discovery import Discovery
from dpframe.queries.query import Query

# a column, and the type of what it is compared with
_Typed: TypeAlias = tuple[Hashable, str | None]

_NO_TEXT = kinds.POINTS | {kinds.NUMBER}
_DTYPE = ("dtype",)
_LABELS = {
    kinds.TEXT: "string", kinds.NUMBER: "int64", kinds.DATE: "date", kinds.TIME: "datetime",
}  # fmt: skip


def kind_from_plan(label: Hashable, declared: Declaration, queries: Iterable[Query]) -> str | None:
    """Say which type of cells a column has; `None` if nothing says so, or in several ways.

    The privacy unit is a text. Else declared keys say it, then a schema, bounds, what queries name:
    keys, bins and bounds of their own, and constants that a condition compares the column with. Of
    a unit of several columns, those of which nothing says it are texts.
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
            return _one_of(found)
    return "string" if label in declared.unit_columns else None


def _kind_of(values: Iterable[object], numbers: str = "int64") -> str | None:
    """Say what holds such values."""
    return _one_of({_kind_of_value(value, numbers) for value in values})


def _one_of(types: set[str | None]) -> str | None:
    if types == {"int64", "float64"}:
        return "float64"
    return next(iter(types)) if len(types) == 1 else None


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


def _named_by(query: Query) -> Iterator[_Typed]:
    """Give the types of keys, bins and bounds that a query has itself."""
    for label, keys in keys_of_query(query):
        yield label, _kind_of(keys)
    for axis in query.bin_axes:
        yield axis.column, _kind_of(axis.keys.left[:1], "float64")
    for given in (bounds_of_bins(query), *(asked.bounds for asked in query.outputs)):
        for label, bounds in given.items():
            yield label, _kind_of(bounds, "float64")  # type: ignore[arg-type]  # two ends


def keys_of_query(query: Query) -> Iterator[tuple[Hashable, Any]]:
    """Give the keys that a query has itself, by column."""
    if isinstance(query.keys, Mapping):
        yield from query.keys.items()
    elif query.keys is not None and len(query.by) == 1:
        yield query.by[0], query.keys


def _compared_by(query: Query) -> Iterator[_Typed]:
    """Give the types of constants that columns are compared with in conditions."""
    for condition, _ in _conditions_of(query):
        for found in where.comparisons(condition):
            match found:
                case where.Compare():
                    yield from _of_values([found.left, found.right])
                case where.Membership():
                    yield from _of_values([found.operand, *map(where.Constant, found.items)])
                case where.InPart():
                    pass  # it compares with the identity of a value, of any type
                case _:
                    assert_never(found)


def _of_values(values: Sequence[where.Value]) -> Iterator[_Typed]:
    """Give the type that columns have if they can equal the other values."""
    types = {kind for value in values for kind in _kinds_of_side(value)}
    for value in values:
        match value:
            case where.Name(label):
                yield from ((label, kind) for kind in types)
            case where.Arithmetic() | where.Negative():
                yield from ((label, "float64") for label in where.names_in(value))
            case where.Constant():
                pass
            case _:
                assert_never(value)


def _kinds_of_side(value: where.Value) -> list[str | None]:
    """Say what equals a value; a text that is a time as well may stand for either."""
    match value:
        case where.Name():
            return []
        case where.Constant(str(text)):
            return ["string" if kinds.moment_of(text) is None else None]
        case where.Constant() | where.Arithmetic() | where.Negative():
            return ["float64"]
        case _:
            assert_never(value)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What does not go together."""

    query: str | None  # name of the query; `None`: what is declared
    # what is said of the column, in two ways, and the way out where there is a plain one
    words: str
    # the keys of the plan that lead to what is wrong, in the query or the declaration
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """What some words say of a column: of which kinds its values may be."""

    label: Hashable
    kinds: frozenset[str]
    words: str
    keys: tuple[str, ...] = ()
    example: object = None


def disagreement(
    types: Mapping[str, str],
    declared: Declaration,
    queries: Mapping[str, Query],
    search: Discovery | None = None,
) -> Disagreement | None:
    """Find a column of which a plan and its types say what no value can satisfy.

    Groups to be found stand for the one query, which then says what is read.
    """
    known: dict[Hashable, _Said] = {}
    said = [(None, one) for one in (*_said_by_types(types), *_said_by_declaration(declared))]
    asked = [(name, one) for name, query in queries.items() for one in _said_by_query(query)]
    if search is not None:
        asked += [(name, one) for name in queries for one in _said_by_search(search)]
    for name, one in (*said, *asked):
        first = known.setdefault(one.label, one) if name is None else known.get(one.label)
        if first is not None and first.kinds.isdisjoint(one.kinds):
            said_twice = f"{one.label!r} {first.words}, but {one.words}: no row can match"
            return Disagreement(name, f"{said_twice}{_way_out(first, one)}.", one.keys)
    return None


def check_conditions(declared: Declaration, query: Query) -> None:
    """Refuse a condition that compares a column with what no declared key of it can equal."""
    for condition, key in _conditions_of(query):
        if not any(declared.column(label).keys is not None for label in condition.columns):
            continue
        for said in _said_by_condition(condition, key):
            keys = declared.column(said.label).keys
            held = frozenset() if keys is None else _kinds_until(keys, said.kinds)
            if held and held.isdisjoint(said.kinds):
                told = f"{said.label!r} has {' and '.join(sorted(held))} as declared keys"
                text = f"{key}: {told}, but {said.words}: they are never equal."
                raise QueryError(text, parameter=key, label=said.label, value=condition.text)


def _kinds_until(values: Iterable[object], enough: frozenset[str]) -> kinds.Kinds:
    """Say of which kinds values are, as far as the first that is unknown or one of some kinds."""
    seen: set[str] = set()
    for value in values:
        kind = kinds.kind_of_value(value)
        if kind is None:
            return frozenset()
        seen.add(kind)
        if kind in enough:
            break
    return frozenset(seen)


def _conditions_of(query: Query) -> Iterator[tuple[where.Condition, str]]:
    """Give the conditions of a query, with the keyword that gives each."""
    given = [(query.condition, "where")]
    for one in query.outputs:
        given += [(one.where, "where"), (one.condition, "condition")]
    yield from ((condition, key) for condition, key in given if condition is not None)


def _way_out(first: _Said, one: _Said) -> str:
    """Say how a key is written that equals values of a column, or which labels it has."""
    value = one.example
    if one.keys == _DTYPE:
        return "".join(f'; write {value} = "{_LABELS[kind]}"' for kind in first.kinds & {*_LABELS})
    if isinstance(value, str):
        value = kinds.moment_of(value)
    if not isinstance(value, date) or not first.kinds <= kinds.POINTS:
        return ""
    day, clock = f"{value:%Y-%m-%d}", f"{value:%H:%M:%S}"
    if first.kinds == {kinds.DATE}:
        return f"; write {day}, without quotes"
    offset = "Z" if first.kinds == {kinds.ZONED} else ""
    within = " (times within a day need bins)" if clock == "00:00:00" else ""
    return f"; write {day}T{clock}{offset}, without quotes{within}"


def _said_by_types(types: Mapping[str, str]) -> Iterator[_Said]:
    for label, name in types.items():
        if kind := kinds.kind_of_type(name):
            yield _Said(label, frozenset([kind]), f"holds {kind} ({name})")


def _said_by_declaration(declared: Declaration) -> Iterator[_Said]:
    for label, facts in declared.columns.items():
        if facts.keys is not None:
            yield from _of_keys(label, facts.keys, "has {} as declared keys")
        if facts.integer:
            yield _Said(label, frozenset([kinds.NUMBER]), "is declared to hold integers")
        elif facts.bounds is not None:
            bounds = "is declared with bounds that are {}"
            yield from _of_ends(label, facts.bounds, bounds, "bounds", str(label))


def _said_by_query(query: Query) -> Iterator[_Said]:
    for label, keys in keys_of_query(query):
        yield from _of_keys(label, keys, "its keys in the query are {}")
    for axis in query.bin_axes:
        yield from _of_ends(axis.column, axis.keys.left, "its bins are of {}", "bins")
    for label in query.binned:
        yield _Said(label, _NO_TEXT, "it is binned")
    for one in query.outputs:
        if one.of_column and one.column is not None:
            yield _Said(one.column, _NO_TEXT, f"its {one.statistic} is asked for")
        if one.of_pair:
            yield _Said(one.other, _NO_TEXT, f"its {one.statistic} is asked for")
        if one.weights is not None:
            yield _Said(one.weights, _NO_TEXT, "it holds weights")
    for condition, key in _conditions_of(query):
        yield from _said_by_condition(condition, key)


def _said_by_search(search: Discovery) -> Iterator[_Said]:
    for axis in search.axes:
        if kind := kinds.kind_of_type(axis.kind):
            key = f"dtype.{axis.column}" if len(search.axes) > 1 else "dtype"
            yield _Said(axis.column, frozenset([kind]), f"{kind} are looked for", _DTYPE, key)


def _of_keys(label: Hashable, values: object, words: str) -> Iterator[_Said]:
    """Say what a column holds if it can equal one of some keys: dates equal no times."""
    listed = _as_list(values)
    if found := kinds.kinds_of(listed):
        said = words.format(" and ".join(sorted(found)))
        yield _Said(label, found, said, ("keys", str(label)), listed[0])


def _of_ends(label: Hashable, values: object, words: str, *keys: str) -> Iterator[_Said]:
    """Say what a column holds if it can lie between some values: a date is its midnight."""
    if found := kinds.kinds_of(_as_list(values)):
        wide = found | kinds.LOCAL if found & kinds.LOCAL else found
        yield _Said(label, wide, words.format(" and ".join(sorted(found))), keys)


def _as_list(values: object) -> list[object]:
    return [] if isinstance(values, str) or not isinstance(values, Iterable) else [*values]


def _said_by_condition(condition: where.Condition, key: str) -> Iterator[_Said]:
    for found in where.comparisons(condition):
        match found:
            case where.Compare(_, where.Name(label), where.Constant(value)) | where.Compare(
                _, where.Constant(value), where.Name(label)
            ):
                yield _with_constants(label, [value], key)
            case where.Compare(_, left, right):
                yield from (*_said_by_arithmetic(left, key), *_said_by_arithmetic(right, key))
            case where.Membership(where.Name(label), items) if items:
                yield _with_constants(label, items, key)
            case where.Membership() | where.InPart():
                pass  # of no constants, of arithmetic, or of the identity of a value
            case _:
                assert_never(found)


def _with_constants(label: Hashable, values: Iterable[float | str], key: str) -> _Said:
    """Say which kinds can equal one of some constants; a text may stand for a time."""
    found: set[str] = set()
    for value in values:
        found.add(kinds.TEXT if isinstance(value, str) else kinds.NUMBER)
        moment = kinds.moment_of(value) if isinstance(value, str) else None
        if moment is not None:  # without an offset it is compared with clocks on the wall
            found |= kinds.POINTS if moment.tzinfo is None else {kinds.ZONED}
    shown = ", ".join(map(_show_constant, values))
    return _Said(label, frozenset(found), f"a condition compares it with {shown:.200}", (key,))


def _show_constant(value: float | str) -> str:
    return f"the text {value!r}" if isinstance(value, str) else f"the number {value:g}"


def _said_by_arithmetic(value: where.Value, key: str) -> Iterator[_Said]:
    """Say what is computed with, which is no text."""
    match value:
        case where.Arithmetic() | where.Negative():
            for label in where.names_in(value):
                yield _Said(label, _NO_TEXT, "a condition computes with it", (key,))
        case where.Name() | where.Constant():
            pass
        case _:
            assert_never(value)
