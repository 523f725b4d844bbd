"""Whether what is asked of a column can match any of its values, by what is public about it.

A condition that compares numbers with a text matches no row, and a mean of texts is the middle of
its bounds: nothing fails, and it would be charged. Every public argument claims that a column holds
values of some kind; its type or its declaration must allow each. No row is looked at.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn, TypeAlias, assert_never, cast

import numpy as np
import pandas as pd

from dpframe.columns.times import instants, wall_times
from dpframe.columns.values import numbers, public_type, texts
from dpframe.declaration import kinds
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import DeclarationError, QueryError
from dpframe.queries import where
from dpframe.queries.edges import moment_of
from dpframe.queries.query import OutputSpec, Query
from dpframe.queries.searches import BoundSearch, CapSearch, Discovery
from dpframe.queries.tasks import Axis, BinAxis, KeyAxis
from dpframe.queries.where import Condition
from dpframe.sources.cells import FLOAT, INTEGER, STRING

Types: TypeAlias = Callable[[Hashable], str | None]
"""Names the public type of a column; `None` where one cell may have decided on it."""

_NUMBERS = frozenset([kinds.NUMBER])
# values with an order and a difference
_ORDERED = kinds.POINTS | {kinds.NUMBER, kinds.DURATION}
# types of columns that may hold texts, or numbers
_UNTOLD = ("null", "object", "extension")
# what pandas makes of cells, where none is odd
_GUESSED = ("period", "interval")
_INFERRED = {
    "string": kinds.TEXT,
    "integer": kinds.NUMBER,
    "floating": kinds.NUMBER,
    "mixed-integer-float": kinds.NUMBER,
    "boolean": kinds.NUMBER,
    "date": kinds.DATE,
    "bytes": kinds.BYTES,
}
_EXAMPLES = {
    kinds.TEXT: "texts, such as '1'",
    kinds.NUMBER: "numbers",
    kinds.DATE: "dates, such as datetime.date(2026, 1, 31) (in a plan 2026-01-31)",
    kinds.TIME: "times, such as pd.Timestamp('2026-01-31') (in a plan 2026-01-31T00:00:00)",
    kinds.ZONED: (
        "times, such as pd.Timestamp('2026-01-31', tz='UTC') (in a plan 2026-01-31T00:00:00Z)"
    ),
    kinds.DURATION: "durations, such as pd.Timedelta('1h')",
    kinds.BYTES: "bytes, such as b'1' (a column of type id holds them)",
    kinds.MONTHS: "other keys (cast such intervals to seconds)",
    kinds.OTHER: "values that it can hold",
}
"""How values of a kind are written."""

_LABELS = {kinds.TEXT: STRING, kinds.NUMBER: INTEGER, kinds.DATE: "date", kinds.TIME: "datetime"}
"""The dtype of labels that a column of a kind has."""

_CELLS = {**_LABELS, kinds.ZONED: "datetime-utc", kinds.DURATION: "timedelta", kinds.BYTES: "id"}
"""The type of cells that hold a kind."""


class Claim(NamedTuple):
    """What an argument takes a column to hold.

    Parameters
    ----------
    label
        The column.
    parameter
        The argument.
    kinds
        The kinds of values that it can match.
    words
        What is asked of the column, with a place for `value`.
    value
        What stands in the words, and in the way out; of bounds and bins, both ends.
    values
        Values of which each is to equal one of the column; `None`: whatever is in the column.
    other
        Another column, of whose kinds values are to be.
    """

    label: Hashable
    parameter: str
    kinds: kinds.Kinds
    words: str
    value: object = None
    values: Sequence[Any] | pd.Index | None = None
    other: Hashable = None

    @property
    def of_rows(self) -> bool:
        """Whether it is one of a condition."""
        return self.parameter in ("where", "condition")

    @property
    def constant(self) -> float | str | None:
        """What a condition compares the column with, if it is a constant."""
        if self.of_rows and self.other is None and isinstance(self.value, float | str):
            return self.value
        return None

    def cells(self, *, guess: bool) -> set[str]:
        """Say how cells of a text file are read that meet it; empty if it does not say so.

        A text that is a time in ISO form may stand for either: a guess takes it for a time.
        """
        if self.parameter == "keys":
            return _cells_of(self.values)
        if self.parameter in ("bounds", "bins"):
            return _cells_of(self.value, FLOAT)
        # a condition by itself may be a bool as well
        if self.kinds == _NUMBERS:
            return set() if self.value is True else {FLOAT}
        if self.constant is None:
            return set()
        if kinds.POINTS.isdisjoint(self.kinds):
            return {STRING}
        time = _CELLS[kinds.TIME if kinds.TIME in self.kinds else kinds.ZONED]
        return {time} if guess else {time, STRING}


class Known(NamedTuple):
    """What is public about the values of a column.

    Parameters
    ----------
    kinds
        Of which kinds they are; `None`: of any.
    words
        What says so.
    type
        The type that says so, if one does.
    """

    kinds: kinds.Kinds | None
    words: str = ""
    type: str | None = None


def check_match(
    types: Types, declaration: Declaration, query: Any, axes: Iterable[Axis] = ()
) -> None:
    """Refuse the first argument that no value of its column can match.

    Parameters
    ----------
    types
        Names the public type of a column.
    declaration
        What is declared.
    query
        A query, or what is looked for.
    axes
        The groups that are planned for it.

    Raises
    ------
    QueryError
        If an argument can match nothing.
    DeclarationError
        If the column of parts cannot hold the part.
    """
    columns: dict[Hashable, Known] = {}

    def known(label: Hashable) -> Known:
        if label not in columns:
            columns[label] = known_of(types(label), declaration.column(label))
        return columns[label]

    of_groups = (claim for axis in axes for claim in _of_axis(axis))
    for claim in (*claims(declaration, query), *of_groups):
        if claim.other is None:
            _check(known(claim.label), claim)
            continue
        other = known(claim.other)
        if other.kinds is not None:
            words = f"{claim.words}, which {other.words}"
            alike = claim._replace(kinds=_with_midnights(other.kinds), words=words)
            _check(known(claim.label), alike)


def known_of(type_name: str | None, facts: Column) -> Known:
    """Say what is public about a column: its type says it, or else what is declared."""
    for name in (type_name, facts.type):
        if name is not None and not name.startswith(_UNTOLD):
            return _of_type(name)
    if facts.integer:
        return Known(_NUMBERS, "is declared to hold integers", "int64")
    if facts.keys is not None:
        held = _kinds_of_keys(facts.keys)
        if kinds.OTHER not in held:
            return Known(held, f"has {_listed(held)} as declared keys")
    if facts.bounds is not None:
        held = frozenset(map(kinds.kind_of_value, facts.bounds))
        return Known(_with_midnights(held), f"is declared with bounds that are {_listed(held)}")
    return Known(None)


def _of_type(name: str) -> Known:
    """Say what a type says of values."""
    if name == kinds.FOLDERS:
        both = frozenset([kinds.NUMBER, kinds.TEXT])
        return Known(both, "holds names of folders, integers or texts", name)
    kind = kinds.kind_of_type(name) or kinds.OTHER
    if name.startswith(_GUESSED):
        return Known(None, f"holds {kind} ({name})", name)
    return Known(frozenset([kind]), f"holds {kind} ({name})", name)


def _check(public: Known, claim: Claim) -> None:
    """Refuse a claim that is true of no value of a column."""
    if claim.parameter == "part":
        _check_part(public, claim)
    elif public.kinds is not None:
        if claim.kinds and public.kinds.isdisjoint(claim.kinds):
            _refuse(public, claim, claim.words.format(claim.value))
        if public.type is not None and not _holds(public.type, claim):
            _refuse(public, claim, f"{claim.words.format(claim.value)} that it cannot hold")


def _holds(name: str, claim: Claim) -> bool:
    """Tell whether a type can hold the texts or the numbers that a column is to equal."""
    if claim.values is None:
        return True
    if name == kinds.FOLDERS:  # where 03 is 3
        texts = (value for value in claim.values if isinstance(value, str))
        return not any(text.removeprefix("-").isdecimal() for text in texts)
    if kinds.kind_of_type(name) != kinds.NUMBER:
        return True
    return kinds.can_hold(name, _numbers_of(claim.values))


def _check_part(public: Known, claim: Claim) -> None:
    """Check that a column can hold a part.

    Where nothing says what it holds, numbers alone are parts: a text would match no row of a column
    of numbers, and whether it is one must not decide on what is refused.
    """
    is_told = public.kinds is not None or public.type is not None
    held = public.kinds if is_told else _NUMBERS
    if held is not None and not held.isdisjoint(claim.kinds):
        if public.type is None or _holds(public.type, claim):
            return
    rule = f"must be a value of the column {claim.label!r}, which {public.words}"
    hint = "A part is a number or a text: dates are parts in a column of texts."
    if not is_told:
        rule = f"must be a number where nothing says that the column {claim.label!r} holds texts"
        hint = (
            f'Declare keys={{{claim.label!r}: ["2024-03", ...]}} or a schema, or first make the '
            'column one of dtype "string".'
        )
    elif held is not None and kinds.NUMBER in held:
        hint = "Write a number that it can hold, such as part=3."
    raise DeclarationError.about("part", rule, claim.value, hint)


def _refuse(public: Known, claim: Claim, words: str) -> NoReturn:
    """Refuse a claim; keys are not shown, since they may have been taken from cells."""
    # `x != 1` is true of all texts
    end = "it is the same for every value" if claim.of_rows else "no row can match"
    said = f"{claim.label!r} {public.words}, but {words}: {end}."
    text = " ".join([said, *_way_out(public.kinds or frozenset(), claim), "Nothing was charged."])
    raise QueryError(text, parameter=claim.parameter, label=claim.label)


def _way_out(held: kinds.Kinds, claim: Claim) -> Iterator[str]:
    """Say how to ask for what the column holds."""
    match claim.parameter:
        case "keys" | "bounds" | "bins" if claim.parameter == "keys" or held != {kinds.TEXT}:
            examples = [_EXAMPLES[kind] for kind in sorted(held)]
            yield f"Give {' or '.join(examples)}, or convert the column before it is declared."
        case "dtype":
            yield from (f'Write dtype="{_LABELS[kind]}".' for kind in held if kind in _LABELS)
        case "where" | "condition":
            yield from _way_of_condition(held, claim)
        case _ if held == {kinds.TEXT}:
            hint = "Convert it to numbers before it is declared, or read the file with its type"
            yield f'{hint} (thousands="," for 1,234.50).'


def _way_of_condition(held: kinds.Kinds, claim: Claim) -> Iterator[str]:
    """Say how a condition is written that a column can meet."""
    if not isinstance(claim.value, str | float):
        if held == {kinds.TEXT}:
            yield f"""Compare it with a text, such as "{claim.label} == 'Yes'"."""
    elif held == {kinds.TEXT}:
        yield "Write texts in quotes."
    elif held == _NUMBERS:
        yield "Write numbers without quotes."
    elif held <= kinds.POINTS:
        offset = "+00:00" if held == {kinds.ZONED} else ""
        yield f"Write a time in full, such as '2026-01-31T00:00:00{offset}'."


# Claims ---------------------------------------------------------------------------------------


def claims(declaration: Declaration, query: Any) -> Iterator[Claim]:
    """Give all that is asked of columns, but of groups."""
    match query:
        case Discovery():
            for axis in query.axes:
                kind = kinds.kind_of_type(axis.kind)
                assert kind is not None  # noqa: S101  # every kind of labels has one
                words = f"dtype= looks for {kind}"
                yield Claim(axis.column, "dtype", frozenset([kind]), words)
            yield from _of_condition(query.where, "where")
        case CapSearch():
            yield from claims(declaration, query.query)
        case BoundSearch():
            yield Claim(query.column, "column", _NUMBERS, "bounds are looked for that are numbers")
            yield from claims(declaration, query.query)
        case Query():
            for output in query.outputs:
                yield from _of_output(declaration, output)
            yield from _of_condition(query.condition, "where")
        case _:
            assert_never(query)


def _of_output(declaration: Declaration, output: OutputSpec) -> Iterator[Claim]:
    """Ask for values with an order, and bounds of their kind."""
    parameter = "columns" if output.form.family else "column"
    for label in output.columns:
        yield Claim(label, parameter, _ORDERED, "its {} is asked for", output.form.name)
        bounds: Any = output.bounds.get(label, declaration.column(label).bounds)
        if bounds is not None:
            yield _of_ends(label, "bounds", bounds)
    if output.weights is not None:
        yield Claim(output.weights, "weights", _NUMBERS, "it is asked for as weights")
    yield from _of_condition(output.where, "where")
    yield from _of_condition(output.condition, "condition")


def _of_ends(label: Hashable, parameter: str, ends: Iterable[object]) -> Claim:
    """Ask for values of the kind of some ends; a date is its midnight."""
    both = (*ends,)
    held = {kinds.kind_of_value(end) for end in both}
    words = f"its {parameter} are {_listed(held)}"
    return Claim(label, parameter, _with_midnights(held), words, both)


def _of_axis(axis: Axis) -> Iterator[Claim]:
    """Ask that each kind of keys is among the values, and that bins are of their kind."""
    match axis:
        case BinAxis(column, keys):
            yield _of_ends(column, "bins", (keys.left[0], keys.right[-1]))
        case KeyAxis(column, keys):
            yield from _of_keys(column, keys[:-1] if axis.rest else keys)
        case _:
            assert_never(axis)


def _of_keys(label: Hashable, keys: pd.Index) -> Iterator[Claim]:
    held = _kinds_of_keys(keys)
    some = "its keys are {}" if len(held) == 1 else "some of its keys are {}"
    for kind in sorted(held):
        yield Claim(label, "keys", frozenset([kind]), some, kind, keys)


def _of_condition(condition: where.Condition | None, parameter: str) -> Iterator[Claim]:
    for leaf in () if condition is None else where.leaves(condition.root):
        match leaf:
            case where.Name(label):
                words = "it is a condition by itself, as numbers are"
                yield Claim(label, parameter, _NUMBERS, words, value=True)
            case where.InPart(label, text, number):
                yield _of_part(label, text, number)
            case where.Membership(operand, items):
                yield from _of_values(operand, map(where.Constant, items), parameter, equal=True)
            case where.Compare(operator, left, right):
                equal = operator == "=="
                yield from _of_values(left, [right], parameter, equal=equal)
                yield from _of_values(right, [left], parameter, equal=equal)
            case _:
                assert_never(leaf)


def _of_values(
    value: where.Value, others: Iterable[where.Value], parameter: str, *, equal: bool
) -> Iterator[Claim]:
    """Say what a comparison asks of a column that is the other, or computed with."""
    match value:
        case where.Name(label):
            for other in others:
                yield _of_comparison(label, other, parameter, equal=equal)
        case where.Arithmetic() | where.Negative():
            for label in where.names_in(value):
                yield Claim(label, parameter, _NUMBERS, "a condition computes with it")
        case where.Constant():
            pass
        case _:
            assert_never(value)


def _of_comparison(label: str, other: where.Value, parameter: str, *, equal: bool) -> Claim:
    """Ask for values that can be in a relation to another value."""
    match other:
        case where.Constant(value):
            return _of_constant(label, value, parameter, equal=equal)
        case where.Name(column):
            words = "a condition compares it with {!r}"
            return Claim(label, parameter, frozenset(), words, column, other=column)
        case where.Arithmetic() | where.Negative():
            return Claim(label, parameter, _NUMBERS, "a condition compares it with numbers")
        case _:
            assert_never(other)


def _of_constant(label: str, constant: float | str, parameter: str, *, equal: bool) -> Claim:
    """Ask for values that a constant equals; a text in ISO form is a point in time as well.

    An order with a number that the column cannot hold has a meaning.
    """
    if not isinstance(constant, str):
        words = "a condition compares it with the number {:g}"
        values = [constant] if equal else None
        return Claim(label, parameter, _NUMBERS, words, constant, values)
    matched = {kinds.TEXT}
    moment = moment_of(constant)
    # without an offset it is compared with clocks on the wall
    if moment is not None:
        matched |= kinds.POINTS if moment.tzinfo is None else {kinds.ZONED}
    words = "a condition compares it with the text {!r:.100}"
    return Claim(label, parameter, frozenset(matched), words, constant, [constant])


def _of_part(label: str, text: str, number: float | None) -> Claim:
    """Ask that a part is a text, or the number that it is the form of."""
    if number is None:
        return Claim(label, "part", frozenset([kinds.TEXT]), "", text, [text])
    both = frozenset([kinds.TEXT, kinds.NUMBER])
    return Claim(label, "part", both, "", text, [number])


def claims_of_query(declaration: Declaration, query: Query) -> Iterator[Claim]:
    """Give all that a query itself asks of columns, before groups are planned for it."""
    match query.keys:
        case Mapping():
            keys: Iterable[tuple[Hashable, Any]] = query.keys.items()
        case pd.DataFrame():
            keys = ((label, column.drop_duplicates()) for label, column in query.keys.items())
        case _:
            single = query.keys is not None and len(query.by) == 1
            keys = [(query.by[0], query.keys)] if single else []
    for label, values in keys:
        yield from _of_keys(label, _as_index(values))
    for axis in query.bin_axes:
        yield from _of_axis(axis)
    for label, bounds in query.bins.bounds.items() if query.bins is not None else ():
        yield _of_ends(label, "bounds", cast(Iterable[object], bounds))
    yield from claims(declaration, query)


def type_of_cells(
    label: Hashable, declaration: Declaration, claims_made: Sequence[Claim], *, guess: bool = False
) -> str | None:
    """Say how cells of a column of a text file are read; `None` if nothing says so, or in two ways.

    The privacy unit is a text. Else what is declared says it, then keys, bins and bounds that
    queries ask for, then their conditions. Of a unit of several columns, others are texts.
    """
    if declaration.unit_columns == (label,):
        return STRING
    declared = cells_of_facts(declaration.column(label))
    if declared is not None:
        return declared
    for of_rows in (False, True):
        same = (claim for claim in claims_made if claim.label == label and claim.of_rows == of_rows)
        if types := set().union(*(claim.cells(guess=guess) for claim in same)):
            return _type_among(types)
    return STRING if label in declaration.unit_columns else None


# Kinds -----------------------------------------------------------------------------------------


def _kinds_of_keys(keys: pd.Index) -> kinds.Kinds:
    """Say of which kinds keys are; keys of a typed index claim no look at each of them."""
    if isinstance(keys, pd.CategoricalIndex):
        keys = keys.categories
    kind = kinds.kind_of_type(public_type(keys.dtype) or str(keys.dtype))
    kind = kind or _INFERRED.get(pd.api.types.infer_dtype(keys, skipna=False))
    if kind is not None:
        return frozenset([kind])
    examples = {type(key): key for key in keys}
    # with an offset, or without
    if any(issubclass(cls, datetime) for cls in examples):
        return frozenset(map(kinds.kind_of_value, keys))
    return frozenset(map(kinds.kind_of_value, examples.values()))


def cells_of_facts(facts: Column) -> str | None:
    """Say what cells of a column hold by what is declared; `None` if nothing says so."""
    if facts.keys is not None:
        return _type_among(_cells_of(facts.keys))
    if facts.integer or facts.type is not None:
        return facts.type or INTEGER
    ends = facts.bounds if facts.missing in (None, "drop") else (facts.missing,)
    return None if ends is None else _type_among(_cells_of(ends, FLOAT))


def _as_index(values: Any) -> pd.Index:
    if isinstance(values, pd.Index | pd.Series):
        return pd.Index(values)
    index: pd.Index = pd.Index(list(values), tupleize_cols=False)
    return index


def _cells_of(values: Any, numbers: str | None = None) -> set[str]:
    """Say how cells are read that equal some values, numbers by the type of all if not told."""
    index = _as_index(values)
    held = _kinds_of_keys(index)
    types = {_CELLS[kind] for kind in held - _NUMBERS if kind in _CELLS}
    if kinds.NUMBER in held:
        by_dtype = {"b": "bool", "i": INTEGER, "f": FLOAT}
        types.add(numbers or by_dtype.get(index.dtype.kind, kinds.OTHER))
    return types


def _type_among(types: set[str]) -> str | None:
    """Return the type of cells that is said, whole numbers among others; `None` if several are."""
    if types == {INTEGER, FLOAT}:
        return FLOAT
    (name, *others) = types or {kinds.OTHER}
    return None if others or name == kinds.OTHER else name


def _numbers_of(values: Sequence[Any] | pd.Index) -> np.ndarray:
    """Return those values that are numbers."""
    if isinstance(values, pd.Index) and values.dtype.kind in "iufb":
        return np.asarray(values)
    return np.asarray([value for value in values if kinds.kind_of_value(value) == kinds.NUMBER])


def _with_midnights(held: Iterable[str]) -> kinds.Kinds:
    """Add times to dates, and dates to times: a date is its midnight."""
    all_kinds = frozenset(held)
    return all_kinds if all_kinds.isdisjoint(kinds.LOCAL) else all_kinds | kinds.LOCAL


def _listed(held: Iterable[str]) -> str:
    return " and ".join(sorted(held))


def constants_compared(condition: Condition) -> Iterator[tuple[str, float | str]]:
    """Find the constants that a condition compares with a name."""
    for claim in _of_condition(condition, "where"):
        if claim.constant is not None:
            yield str(claim.label), claim.constant


def may_match(values: pd.Series, constant: float | str) -> bool:
    """Tell whether a value is of a kind that conditions compare with a constant."""
    if not isinstance(constant, str):
        return not np.isnan(numbers(values)).all()
    return any(text is not None for text in texts(values)) or _may_be_time(values, constant)


def _may_be_time(values: pd.Series, constant: str) -> bool:
    moment = moment_of(constant)
    if moment is None:
        return False
    _, valid = wall_times(values) if moment.tzinfo is None else instants(values)
    return bool(valid.any())
