"""Whether what is public about a column agrees with what is asked of it: texts, numbers or times.

A condition that compares numbers with a text matches no row, and nothing fails: it would be
released, and charged. What is looked at here are a plan and types of columns, and no row.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

import numpy as np

from dpframe.declaration.facts import Declaration
from dpframe.queries.comparisons import comparisons, names_in
from dpframe.queries.kinds import Query
from dpframe.queries.where import (
    Arithmetic,
    Compare,
    Condition,
    Constant,
    Membership,
    Name,
    Negative,
    Value,
)

__all__ = ["Disagreement", "disagreement"]

_NUMBER, _TEXT, _TIME = "numbers", "texts", "times"
_NUMERIC = ("int", "uint", "float", "double", "halffloat", "decimal", "bool")
_TEXTUAL = ("string", "large_string", "string_view")
_TEMPORAL = ("date", "timestamp")
_Kinds: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What does not go together.

    Parameters
    ----------
    query
        Name of the query; `None`: what is declared.
    words
        What is said of the column, in two ways.
    """

    query: str | None
    words: str


@dataclass(frozen=True, slots=True)
class _Said:
    """What some words say of a column: of which kinds its values may be."""

    label: Hashable
    kinds: _Kinds
    words: str


def disagreement(
    types: Mapping[str, str], declared: Declaration, queries: Mapping[str, Query]
) -> Disagreement | None:
    """Find a column of which a plan and its types say what no value can satisfy.

    Parameters
    ----------
    types
        What columns hold, by label, as Arrow or a plan calls it; columns may be left out.
    declared
        The declaration.
    queries
        What is asked, by name.
    """
    known: dict[Hashable, _Said] = {}
    said = [(None, one) for one in (*_typed(types), *_declared(declared))]
    asked = ((name, one) for name, query in queries.items() for one in _asked(query))
    for name, one in (*said, *asked):
        first = known.setdefault(one.label, one) if name is None else known.get(one.label)
        if first is not None and first.kinds.isdisjoint(one.kinds):
            return Disagreement(
                name, f"{one.label!r} {first.words}, but {one.words}: no row can match."
            )
    return None


def _typed(types: Mapping[str, str]) -> Iterator[_Said]:
    for label, name in types.items():
        kind = _kind_of_type(name)
        if kind is not None:
            yield _Said(label, frozenset([kind]), f"holds {kind} ({name})")


def _kind_of_type(name: str) -> str | None:
    """Say what a type holds, as Arrow or a plan calls it; `None`: something else."""
    if name in _TEXTUAL:
        return _TEXT
    if name.startswith(_NUMERIC):
        return _NUMBER
    return _TIME if name.startswith(_TEMPORAL) else None


def _declared(declared: Declaration) -> Iterator[_Said]:
    for label, facts in declared.columns.items():
        if facts.keys is not None:
            yield from _of_values(label, facts.keys, "has {} as declared keys")
        if facts.integer:
            yield _Said(label, frozenset([_NUMBER]), "is declared to hold integers")
        elif facts.bounds is not None:
            yield from _of_values(label, facts.bounds, "is declared with bounds that are {}")


def _asked(query: Query) -> Iterator[_Said]:
    if isinstance(query.keys, Mapping):
        for label, keys in query.keys.items():
            yield from _of_values(label, keys, "its keys in the query are {}")
    elif query.keys is not None and len(query.by) == 1:
        yield from _of_values(query.by[0], query.keys, "its keys in the query are {}")
    for axis in query.bin_axes:
        yield from _of_values(axis.column, axis.keys.left, "its bins are of {}")
    for one in query.outputs:
        if one.of_column and one.column is not None:
            what = f"its {one.statistic} is asked for"
            yield _Said(one.column, frozenset([_NUMBER, _TIME]), what)
        for condition in (one.where, one.condition):
            yield from _compared(condition)
    yield from _compared(query.condition)


def _of_values(label: Hashable, values: object, words: str) -> Iterator[_Said]:
    """Say what a column holds if it can equal each of some values."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        return
    kinds = {_kind_of_value(value) for value in values}
    if len(kinds) == 1 and (kind := kinds.pop()) is not None:
        yield _Said(label, frozenset([kind]), words.format(kind))


def _kind_of_value(value: object) -> str | None:
    if isinstance(value, str):
        return _TEXT
    if isinstance(value, date | np.datetime64):  # points in time are dates, too
        return _TIME
    return _NUMBER if isinstance(value, int | float | np.number | np.bool_) else None


def _compared(condition: Condition | None) -> Iterator[_Said]:
    for found in () if condition is None else comparisons(condition):
        match found:
            case Compare(_, Name(label), Constant(value)) | Compare(
                _, Constant(value), Name(label)
            ):
                yield _with_constants(label, [value])
            case Compare(_, left, right):
                yield from (*_computed(left), *_computed(right))
            case Membership(Name(label), items) if items:
                yield _with_constants(label, items)


def _with_constants(label: Hashable, values: Iterable[float | str]) -> _Said:
    """Say which kinds can equal one of some constants; a text with digits may stand for a time."""
    kinds: set[str] = set()
    for value in values:
        kinds.add(_TEXT if isinstance(value, str) else _NUMBER)
        if isinstance(value, str) and any(map(str.isdigit, value)):
            kinds.add(_TIME)
    shown = ", ".join(map(_shown, values))
    return _Said(label, frozenset(kinds), f"a condition compares it with {shown:.200}")


def _shown(value: float | str) -> str:
    return f"the text {value!r}" if isinstance(value, str) else f"the number {value:g}"


def _computed(value: Value) -> Iterator[_Said]:
    """Say what is computed with, which is no text."""
    if isinstance(value, Arithmetic | Negative):
        for label in names_in(value):
            words = "a condition computes with it"
            yield _Said(label, frozenset([_NUMBER, _TIME]), words)
