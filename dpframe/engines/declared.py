"""What is declared about a private frame of any kind, as its engine knows the frame."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from dpframe.arguments import is_unicode
from dpframe.certificates.verify import ATTRIBUTE
from dpframe.declaration.facts import (
    Column,
    Declaration,
    is_copied,
    is_of_another_test,
    kept_declaration,
)
from dpframe.declaration.kinds import (
    DATE,
    FOLDERS,
    NUMBER,
    TEXT,
    TIME,
    ZONED,
    can_hold,
    kind_of_type,
    kind_of_value,
    kinds_of,
)
from dpframe.engines import Engine, Frame, engine_for
from dpframe.errors import DeclarationError, QueryError, of_query
from dpframe.ledger.parts import number_of
from dpframe.privacy import seam
from dpframe.provenance import is_made_up, is_private
from dpframe.queries.query import Query, Request
from dpframe.queries.reading import check_query
from dpframe.queries.tasks import Axis, KeyAxis

_EXAMPLES = {
    TEXT: "texts, such as '1'",
    DATE: "dates, such as datetime.date(2026, 1, 31)",
    TIME: "times, such as pd.Timestamp('2026-01-31')",
    ZONED: "times, such as pd.Timestamp('2026-01-31', tz='UTC')",
}
"""How keys are written that values of a kind can equal."""


def check_keys_match(engine: Engine, frame: Frame, axes: Iterable[Axis]) -> None:
    """Check that values of each column can equal some of its keys, as far as its type is public."""
    for axis in axes:
        name = engine.type_of(frame, axis.column) if isinstance(axis, KeyAxis) else None
        kind = None if name is None else kind_of_type(name)
        if kind is not None:
            _check_keys(axis, kind, f"{kind} ({name})")


def _check_keys(axis: Axis, kind: str, held: str) -> None:
    """Check that keys are not all of one kind, and the column of another.

    Keys of several kinds are made for columns that hold anything. The last one may stand for all
    others. Keys are not shown: they may have been taken from cells.
    """
    keys = axis.keys[:-1] if isinstance(axis, KeyAxis) and axis.rest else axis.keys
    first = keys[0] if len(keys) else None
    if kind_of_value(first) in (None, kind):  # of many keys, one is enough
        return
    kinds = kinds_of(keys)
    if len(kinds) == 1:
        text = f"keys of {axis.column!r} are {min(kinds)}, but the column holds {held}"
        way_out = f"Give {_EXAMPLES.get(kind, kind)}, or convert the column before the declaration."
        text = f"{text}: no row can match. {way_out}"
        raise QueryError(text, parameter="keys", label=axis.column)


def check_part_held(engine: Engine, frame: Frame, declaration: Declaration) -> None:
    """Check that the column of parts can hold the one that is asked of, from public facts alone.

    Where one cell may have decided on its dtype, what is declared says what it holds. Where nothing
    does, numbers alone are parts: a text would match no row of a column of numbers, and whether it
    is one must not decide on what is refused. The engine has checked the columns before.
    """
    condition = declaration.part_condition
    if condition is None:
        return
    (label,), part = condition.columns, str(declaration.part)
    number = number_of(part)
    facts = declaration.column(label)
    names = filter(None, (engine.type_of(frame, label), facts.type, _declared_type(facts)))
    name = next((one for one in names if not one.startswith(_UNTOLD)), None)
    if can_hold(name or "float64", part, number):
        return
    rule = f"must be a value of the column {label!r}"
    kind = NUMBER if name == FOLDERS else kind_of_type(name or "")
    way = "A part is a number or a text: dates are parts in a column of texts."
    if name is None:
        rule = f"must be a number where nothing says that the column {label!r} holds texts"
        way = (
            f'Declare keys={{{label!r}: ["2024-03", ...]}} or a schema, or first make the column '
            'one of dtype "string".'
        )
    else:
        rule = f"{rule}, which holds {kind or 'other values'} ({name})"
    if kind == NUMBER:
        way = "Write a number that it can hold, such as part=3."
    raise DeclarationError.about("part", rule, declaration.part, way)


_UNTOLD = ("null", "object", "extension")  # types of columns that may hold texts, or numbers


def _declared_type(facts: Column) -> str | None:
    """Name a type of what is declared about a column; of several kinds of keys, that of texts."""
    if facts.integer:
        return "int64"
    if facts.keys is not None:
        kind = kind_of_type(str(facts.keys.dtype))
        kinds = kinds_of(facts.keys) if kind is None else {kind}
        return next((name for kind, name in _TYPES.items() if kind in kinds), None)
    if facts.bounds is not None:
        return _TYPES.get(kind_of_value(facts.bounds[0]) or "", "timedelta")
    return None


_TYPES = {TEXT: "string", NUMBER: "float64", DATE: "date", TIME: "datetime", ZONED: "datetime-utc"}


SINGLE = None
"""The name of a query that was given by itself."""


def check_queries(frame: Frame, queries: Request) -> tuple[Engine, Mapping[Hashable, Query]]:
    """Check what is asked of a frame, whatever it may cost.

    Returns
    -------
    engine, queries
        The engine that can read the frame, and what is measured for each query, by name.
    """
    engine = engine_for(frame)
    named: Mapping[Any, object] = queries if isinstance(queries, Mapping) else {SINGLE: queries}
    if not named:
        way_out = "Write queries={name: dpf.count(...)}."
        raise QueryError.about("queries", "must be one query or more", queries, way_out)
    measured: dict[Hashable, Query] = {}
    for name, query in named.items():
        if not is_unicode(name):
            text = f"queries must be named by valid Unicode texts, got {name!a}."
            raise QueryError(text, parameter="queries", label=name)
        with of_query(name):
            checked = check_query(query, name)
            # a misspelled label would otherwise be taken for one without keys or bounds
            engine.check(frame, checked.labels)
            measured[name] = checked.to_measure
    return engine, measured


def check_private(frame: Frame) -> None:
    """Check that a frame was not released, and is no diagnosis.

    Raises
    ------
    DeclarationError
        If it carries a certificate, the mark of a diagnosis or that of made-up rows outside of
        tests, or no engine can read it.
    """
    attrs = engine_for(frame).attrs(frame)
    if is_private(attrs):
        raise DeclarationError(
            "this frame is a diagnosis, or was made of one: exact numbers about a private frame. "
            "Declare and release the private frame itself."
        )
    if is_made_up(attrs) and seam.seen() is None:
        raise DeclarationError(
            "the rows of this frame are made up, or some are: a release would look real. Declare "
            "and release it inside a testing block, such as dpframe.testing.seeded_noise(1)."
        )
    if ATTRIBUTE in attrs:
        raise DeclarationError(
            "this frame carries a certificate: it was released by dpframe, no row is private. "
            "Work on it with .dp.interval, .dp.combine, .dp.select and other steps, at no cost. If "
            f"it is private and got that in a join, del frame.attrs[{ATTRIBUTE!r}], and declare it."
        )


def declaration_of(frame: Frame) -> Declaration:
    """Return the declaration of a frame, an empty one where nothing was declared.

    Raises
    ------
    DeclarationError
        If the frame was released, or derived from a declared one, or no engine can read it.
    """
    check_private(frame)
    if is_of_another_test(frame):
        why = "this frame was declared inside a testing block, and is used outside of it:"
        raise DeclarationError(f"{why} declare it here. .dp.declare(...)")
    declaration = kept_declaration(frame)
    if declaration is None and (is_copied(frame) or engine_for(frame).is_derived(frame)):
        raise DeclarationError(
            "this frame was derived from a declared frame (a filter, a copy, a merge, a file), and "
            "its rows may differ. Query the declared frame, with where='...' for some rows; or "
            "declare this one anew: .dp.declare(..., ledger=...), with the first one's ledger to "
            "share its budget."
        )
    return Declaration() if declaration is None else declaration
