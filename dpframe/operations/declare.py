"""Declare what is public about a frame, from a schema and from keywords."""

import functools
import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, replace
from os import PathLike
from typing import Any, ParamSpec, TypeVar

import pandas as pd

from dpframe.arguments import check_text, is_label, no_ledger
from dpframe.context import at_the_door
from dpframe.declaration import from_pandera
from dpframe.declaration.facts import (
    Declaration,
    given_unit,
    keep_declaration,
    kept_ledger,
    warn_of_budget,
    warn_of_memory,
)
from dpframe.engines import Engine, Frame, engine_for
from dpframe.engines.declared import check_private
from dpframe.errors import DeclarationError
from dpframe.ledger.ledger import Ledger, check_budget, open_or_create
from dpframe.ledger.locks import OneAtATime
from dpframe.ledger.log import Protected
from dpframe.privacy.amounts import Budget
from dpframe.privacy.neighbors import Caps, EachRow, Neighboring, check_neighboring
from dpframe.public import public_call

_DECLARING = OneAtATime()


@public_call
def declare(
    frame: Frame, schema: object = None, *,
    bounds: Mapping[Hashable, object] | None = None, keys: Mapping[Hashable, object] | None = None,
    privacy_unit: Hashable | list[Hashable] | EachRow | None = None, unit: str | None = None,
    max_rows: int | None = None, max_groups: int | None = None,
    max_rows_per_group: int | None = None, neighboring: Neighboring = "add_remove",
    missing: Mapping[Hashable, object] | None = None, budget: Budget | None = None,
    ledger: Ledger | str | PathLike[str] | None = None, name: str | None = None,
    validate: bool = False, confirmed_public: bool = False,
    types: Mapping[Hashable, str] | None = None,
) -> None:  # fmt: skip
    """Declare public facts about a frame; keywords take the place of the schema's facts.

    Choose facts without looking at the data: bounds and keys read off the data leak it.

    Parameters
    ----------
    frame
        The private frame. The declaration belongs to this object: not to copies, filters or merges.
    schema
        A pandera `DataFrameModel` or `DataFrameSchema`, for pandas, Polars or Ibis: checks become
        bounds and keys, `unique=True` of the unit a cap of one row. `df.dp.declaration` lists what
        is not used. Facts of an index hold for the columns that `reset_index` makes of it.
    bounds
        `{column: (lower, upper)}`, finite. Values beyond are clipped before they are summed.
    keys
        `{column: [groups]}`. A release by that column has exactly these rows, in this order. Groups
        that are nested, `{("country", "region"): frame}`: a release by both columns has the
        combinations of the frame alone, whose rows are all that there can be.
    privacy_unit
        Column that says whom a row belongs to; rows without it are left out. A list of columns,
        `["aircraft", "week"]`: a unit is one combination of their values, one aircraft in one week,
        and whoever is in k of them is protected as k units. `dpf.EACH_ROW`: every row is a person
        of its own. `None`: the same, but releases warn.
    unit
        Name of the privacy unit; by default that of the column, as a text; for several columns
        "aircraft in one week". Frames that share a ledger must have one unit: name it if their
        columns have different names, or one name for different things.
    max_rows, max_groups, max_rows_per_group
        Caps on one unit in one query: rows in all, groups, rows per group. Rows beyond are
        dropped at random. With a `privacy_unit`, `max_rows` or `max_rows_per_group` is required.
    neighboring
        "add_remove": neighbors have one unit more or fewer. "replace": one unit is another one.
        Frames that share a ledger must have the same.
    missing
        `{column: number}`: takes the place of a missing value. `{column: "drop"}`: a query of the
        column leaves out rows without a usable value, from all of its outputs. Otherwise missing
        values contribute nothing.
    budget
        The total budget, of the file that `ledger` names. Alone it starts a ledger in memory, which
        is forgotten when Python ends. Declaring the frame again keeps its ledger.
    ledger
        What remembers charges, for all frames about the same people: the path of a file, which is
        made where it is missing and a budget is given, or a `Ledger`, which has its budget. It
        protects the unit and the relation of the first frame declared with it. If it has a budget
        for every part of the data, its column must be one of the `privacy_unit`, or every row a
        unit.
    name
        Name of this frame in the ledger: at most 200 printed characters.
    validate
        Run the schema on the frame as pandera would. Its errors show private values: they are
        for the curator only. A schema that changes rows (`coerce`, `default`, parsers, ...) is
        refused: validate first, and declare what comes out.
    confirmed_public
        Whether the bounds of a schema that looks like one of `pandera.infer_schema` are public all
        the same: that function reads the least and the largest private values off the data.
    types
        `{column: type}`, where the dtype does not say what a column holds: "string", "int64",
        "float64", "bool", "date", "datetime", "datetime-utc" or "timedelta". What no value of the
        type can match is refused before any charge.

    Raises
    ------
    DeclarationError
        If the facts are contradictory or not usable, the frame was released, or the ledger protects
        another unit, or under another relation.
    LedgerError
        If the file of the ledger cannot be used, or is missing and no budget is given.
    QueryError
        If several columns of the frame have a label that is named by keyword, or it is no valid
        Unicode text.
    UnknownColumnError
        If a column named by keyword is not in the frame.

    Warns
    -----
    DPFrameWarning
        If the budget has an epsilon above 10, or a delta of 1e-3 or more; if it is kept in memory,
        where no ledger is named. Once per frame.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B"], "fare": [9.5, 20.0]})
    >>> declare(
    ...     trips,
    ...     keys={"zone": ["A", "B"]},
    ...     bounds={"fare": (0, 100)},
    ...     privacy_unit=dpf.EACH_ROW,
    ...     budget=dpf.Budget(epsilon=1),
    ... )
    >>> trips.dp.budget.remaining_epsilon
    1.0
    """
    facts = locals()
    context = at_the_door()  # before a ledger is told of a unit
    check_private(frame, context)
    engine = engine_for(frame)
    if schema is not None:
        check_schema(schema, validate=validate, confirmed_public=confirmed_public)
    declaration = facts_of(schema, facts)
    by_name = {"bounds": bounds, "keys": keys, "missing": missing, "types": types}
    named = {
        column: fact
        for fact, by_label in by_name.items()
        for label, value in (by_label or {}).items()
        for column in (value.columns if isinstance(value, pd.DataFrame) else (label,))
    }
    unit_columns = declaration.unit_columns
    engine.check(frame, named | dict.fromkeys(unit_columns, "privacy_unit"))
    if validate:
        if schema is None:
            raise DeclarationError("validate=True needs a schema to run.", parameter="validate")
        if not isinstance(frame, pd.DataFrame):
            rule = "runs a schema on a pandas.DataFrame in memory"
            remedy = "Validate its parts first, with pandera."
            text = f"validate=True {rule}, got a {type(frame).__name__}. {remedy}"
            raise DeclarationError(text, parameter="validate", value=True)
        from_pandera.validate(schema, frame)
    protected = Protected.of(unit_columns, declaration.neighboring, unit)
    _check_ledger(budget, ledger)
    warn_of_budget(frame, ledger.budget if isinstance(ledger, Ledger) else budget, context)
    if ledger is None and budget is not None:
        warn_of_memory(frame, context)
    if isinstance(ledger, str | PathLike):
        ledger = open_or_create(ledger, budget)
    if ledger is not None:  # before the lock, as its file may be busy
        _check_part(engine, frame, ledger, declaration)
        ledger.protect(protected)

    def keep(again: bool) -> None:
        if again:
            reason = "a frame is being declared by this thread, which a signal has interrupted."
            remedy = "Declare this one after the signal was handled."
            raise DeclarationError(f"{reason} {remedy}")
        charged = ledger or _kept_or_new(budget, kept_ledger(frame, context), protected)
        if charged is not None:
            _check_part(engine, frame, charged, declaration)
        engine.mark(frame)
        keep_declaration(frame, replace(declaration, ledger=charged), context)

    _DECLARING.hold(keep)


def facts_of(schema: object, facts: Mapping[str, Any]) -> Declaration:
    """Read what is declared about any frame, by a schema and by keywords of `declare`."""
    privacy_unit = _read_unit(facts["privacy_unit"])
    caps = Caps(facts["max_rows"], facts["max_groups"], facts["max_rows_per_group"])
    unit = privacy_unit if isinstance(privacy_unit, tuple) else ()
    if schema is not None and caps.rows is None and from_pandera.has_unique(schema, unit):
        caps = replace(caps, rows=1)
    return Declaration(
        columns={} if schema is None else from_pandera.facts(schema),
        privacy_unit=privacy_unit,
        caps=_caps(privacy_unit, caps),
        neighboring=check_neighboring(facts["neighboring"]),
        name=check_text("name", facts["name"]),
        unused=() if schema is None else from_pandera.unused(schema),
    ).with_facts(
        bounds=facts["bounds"],
        keys=facts["keys"],
        missing=facts["missing"],
        types=facts.get("types"),
    )


def check_schema(schema: object, *, validate: bool, confirmed_public: bool) -> None:
    """Refuse a schema that may be read off private values, or whose rows would be others.

    Raises
    ------
    DeclarationError
        If it has the form of an inferred one, or would change rows that it validates.
    """
    if not confirmed_public and from_pandera.looks_inferred(schema):
        reason = "schema has the form of pandera.infer_schema, whose checks are private extremes:"
        remedy = "write down what values can be. If they are public, give confirmed_public=True."
        raise DeclarationError(f"{reason} {remedy}", parameter="schema")
    changes = from_pandera.changes_rows(schema)
    if validate and changes:
        reason = f"validate=True needs a schema that changes no row, and this one has {changes}:"
        remedy = "validate first, clean = schema.validate(frame), and declare what comes out."
        raise DeclarationError(f"{reason} {remedy}", parameter="validate", value=True)


def _read_unit(privacy_unit: object) -> tuple[Hashable, ...] | EachRow | None:
    """Read the label of a column, or a list of them."""
    if privacy_unit is None or isinstance(privacy_unit, EachRow):
        return privacy_unit
    columns = tuple(privacy_unit) if isinstance(privacy_unit, list) else (privacy_unit,)
    if not columns or not all(map(is_label, columns)):
        rule = "must be the label of a column, or a list of labels"
        raise DeclarationError.about("privacy_unit", rule, privacy_unit)
    if len(set(columns)) < len(columns):
        raise DeclarationError.about("privacy_unit", "must not name a column twice", privacy_unit)
    return columns


def _caps(privacy_unit: tuple[Hashable, ...] | EachRow | None, caps: Caps) -> Caps:
    if not isinstance(privacy_unit, tuple) and caps != Caps():
        wrong = "max_rows, max_groups and max_rows_per_group cap a privacy unit"
        remedy = "name its column with privacy_unit=."
        parameter = next(f"max_{name}" for name, cap in asdict(caps).items() if cap)
        raise DeclarationError(f"{wrong}, and none is declared: {remedy}", parameter=parameter)
    if isinstance(privacy_unit, tuple) and caps.rows is None and caps.rows_per_group is None:
        remedy = "Declare max_rows=, or max_rows_per_group= (with max_groups= to spend less)."
        rule = "needs a cap on its rows"
        raise DeclarationError.about("privacy_unit", rule, given_unit(privacy_unit), remedy)
    return caps


def _check_ledger(budget: Budget | None, ledger: object) -> None:
    if budget is not None:
        check_budget(budget)
    if isinstance(ledger, str | PathLike):
        return
    if isinstance(ledger, Budget):
        text = "ledger must be a dpf.Ledger or a path, got a Budget. Give it as budget=."
        raise DeclarationError(text, parameter="ledger")
    if ledger is not None and not isinstance(ledger, Ledger):
        raise no_ledger(ledger)
    if budget is not None and ledger is not None:
        reason = "an open ledger has a budget of its own: leave budget= out, or name the file in"
        raise DeclarationError(f"{reason} ledger=.", parameter="budget", value=budget)


def _check_part(engine: Engine, frame: Frame, ledger: Ledger, declaration: Declaration) -> None:
    """Refuse a ledger by part where one unit may be in two of them."""
    column, units = ledger.part, declaration.unit_columns
    if column is None:
        return
    if units and column not in units:
        rule = f"has a budget for every {column}, and one unit may be in several"
        shown = f"privacy_unit={[*units, column]!r}"
        remedy = (
            f"Declare {shown}, which protects one unit in one {column}; or use a ledger without"
        )
        message = f"the ledger {rule}. {remedy} part=."
        raise DeclarationError(message, parameter="privacy_unit", value=given_unit(units))
    engine.check(frame, {column: "part"})


def _kept_or_new(
    budget: Budget | None, ledger: Ledger | None, protected: Protected
) -> Ledger | None:
    """Choose the ledger to charge: what was spent is not forgotten by declaring again."""
    if ledger is None and budget is not None:
        ledger = Ledger(budget=budget)
    if ledger is None:
        return None
    if budget is not None and budget != ledger.budget:
        reason = f"this frame has a ledger of {ledger.budget} already, got budget={budget}."
        remedy = "To start anew, pass ledger=dpf.Ledger(budget=...): both budgets add up."
        raise DeclarationError(f"{reason} {remedy}", parameter="budget", value=budget)
    ledger.protect(protected)
    return ledger


P = ParamSpec("P")
R = TypeVar("R")


@public_call
def declares(
    schema: object = None, *, argument: str | None = None,
    bounds: Mapping[Hashable, object] | None = None, keys: Mapping[Hashable, object] | None = None,
    privacy_unit: Hashable | list[Hashable] | EachRow | None = None, unit: str | None = None,
    max_rows: int | None = None, max_groups: int | None = None,
    max_rows_per_group: int | None = None, neighboring: Neighboring = "add_remove",
    missing: Mapping[Hashable, object] | None = None, budget: Budget | None = None,
    ledger: Ledger | str | PathLike[str] | None = None, name: str | None = None,
    validate: bool = False, confirmed_public: bool = False,
    types: Mapping[Hashable, str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:  # fmt: skip
    """Decorate a function so that the frame that it returns, or is given, is declared.

    A declaration stays on one frame object. Steps that return another one, as `Model.validate` and
    `@pa.check_types` of pandera do, lose it: decorate the last of them.

    Parameters
    ----------
    argument
        Name of the parameter whose frame is declared before each call; `None`: what the function
        returns is declared.
    budget
        One budget for all the frames that the function makes, however often it is called.
    schema, bounds, keys, privacy_unit, unit, max_rows, max_groups, max_rows_per_group
        As in `declare`.
    neighboring, missing, ledger, name, validate, confirmed_public, types
        As in `declare`.

    Raises
    ------
    DeclarationError
        If the function has no such parameter; when it is called, as `declare`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> facts = {"keys": {"zone": ["A", "B"]}, "privacy_unit": dpf.EACH_ROW}
    >>> @declares(**facts, budget=dpf.Budget(epsilon=1))
    ... def load() -> pd.DataFrame:
    ...     return pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = load().dp.count("zone", epsilon=0.25)
    >>> load().dp.budget.remaining_epsilon
    0.75
    """
    facts = {key: value for key, value in locals().items() if key != "argument"}
    common = Ledger(budget=budget) if budget is not None and ledger is None else None

    def declare_made(frame: Frame) -> None:
        if common is not None:
            warn_of_memory(frame, at_the_door())
        if common is None or kept_ledger(frame, at_the_door()) is not None:
            declare(frame, **facts)  # a ledger stays
        else:
            declare(frame, **(facts | {"budget": None, "ledger": common}))

    return lambda function: _declaring(function, declare_made, argument)


def _declaring(
    function: Callable[P, R], declared: Callable[[Frame], None], argument: str | None
) -> Callable[P, R]:
    """Wrap a function so that a frame is declared before or after each call."""
    signature = inspect.signature(function)
    if argument is not None and argument not in signature.parameters:
        has = ", ".join(signature.parameters) or "none"
        raise DeclarationError.about(
            "argument", f"must name a parameter of {function.__name__}(), which has {has}", argument
        )

    @functools.wraps(function)
    def declaring(*args: P.args, **keywords: P.kwargs) -> R:
        if argument is None:
            frame = function(*args, **keywords)
            declared(frame)
            return frame
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        declared(bound.arguments[argument])
        return function(*args, **keywords)

    return declaring
