"""Declare what a function returns, or what it is given: for pipelines that make frames anew."""

import functools
import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ParamSpec, TypeVar

from dpframe.calls import with_keywords
from dpframe.declaration.kept import kept_declaration
from dpframe.engines import Frame
from dpframe.errors import DeclarationError, shown
from dpframe.ledger.ledger import Ledger
from dpframe.operations.declare import declare
from dpframe.privacy.amounts import Budget
from dpframe.privacy.neighbors import EachRow, Neighboring

P = ParamSpec("P")
R = TypeVar("R")


@with_keywords
def declares(
    schema: object = None,
    *,
    argument: str | None = None,
    bounds: Mapping[Hashable, object] | None = None,
    keys: Mapping[Hashable, object] | None = None,
    privacy_unit: Hashable | EachRow | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    max_groups: int | None = None,
    max_rows_per_group: int | None = None,
    neighboring: Neighboring = "add_remove",
    missing: Mapping[Hashable, object] | None = None,
    budget: Budget | None = None,
    ledger: Ledger | None = None,
    name: str | None = None,
    validate: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
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
    neighboring, missing, ledger, name, validate
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
    facts: dict[str, Any] = {
        "bounds": bounds,
        "keys": keys,
        "privacy_unit": privacy_unit,
        "unit": unit,
        "max_rows": max_rows,
        "max_groups": max_groups,
        "max_rows_per_group": max_rows_per_group,
        "neighboring": neighboring,
        "missing": missing,
        "name": name,
        "validate": validate,
    }
    common = Ledger(budget=budget) if budget is not None and ledger is None else None

    def declared(frame: Frame) -> None:
        known = kept_declaration(frame)
        if common is None or (known is not None and known.ledger is not None):
            declare(frame, schema, **facts, budget=budget, ledger=ledger)  # a ledger stays
        else:
            declare(frame, schema, **facts, ledger=common)

    return lambda function: _declaring(function, declared, argument)


def _declaring(
    function: Callable[P, R], declared: Callable[[Frame], None], argument: str | None
) -> Callable[P, R]:
    """Wrap a function so that a frame is declared before or after each call."""
    signature = inspect.signature(function)
    if argument is not None and argument not in signature.parameters:
        raise DeclarationError(
            f"argument must name a parameter of {function.__name__}(), which has "
            f"{', '.join(signature.parameters) or 'none'}; got argument={shown(argument)}."
        )

    @functools.wraps(function)
    def declaring(*args: P.args, **keywords: P.kwargs) -> R:
        if argument is None:
            made = function(*args, **keywords)
            declared(made)
            return made
        given = signature.bind(*args, **keywords)
        given.apply_defaults()
        declared(given.arguments[argument])
        return function(*args, **keywords)

    return declaring
