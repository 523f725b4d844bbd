"""The door of all public calls: what they refuse, and what their errors show."""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from dpframe.errors import (
    CallError,
    DeclarationError,
    DPFrameError,
    QueryError,
    is_column,
    is_data,
    quote,
)
from dpframe.provenance import origin_of, parts_of

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)

_OWNERS = ("self", "cls")
_CATCH_ALLS = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_HOLDERS = (list, tuple, set, frozenset, Mapping, pd.DataFrame, pd.Series, pd.Index)
_OF_QUERIES = frozenset({"by", "column", "columns", "condition"})
"""What functions take first that describe a query."""
_FRAMES = frozenset(
    {*_OWNERS, *"against along frame of queries query released releases source table".split()}
    | {"tables"}
)
"""What holds private or released cells by its nature, or none, and has a check of its own."""
_TAKE_DATA = frozenset(
    "ax bins bounds by candidates color column columns coords edges graph keys n parents".split()
) | frozenset(
    "path population prior q schema weights delta discovery epsilon mu name note rho share".split()
)
"""What may be, or hold, an array of public values, or has a check of its own that shows none."""

_ELSEWHERE = {
    "bounds": {"clip", "limits", "range"},
    "by": {"group", "group_by", "groupby"},
    "epsilon": {"eps"},
    "keys": {"groups", "values"},
    "level": {"alpha", "confidence"},
    "mechanism": {"noise"},
    "privacy_unit": {"unit", "user"},
    "where": {"filter", "query"},
    "column": {"y"},
}
"""What keywords are called in other libraries."""

_CONDITION = "Write the condition as text, as in where='fare > 0'."
_LABELS = "Name columns of the frame. Make groups in pandas before the frame is declared."
_WAYS_OUT = {
    "where": _CONDITION,
    "condition": _CONDITION.replace("where=", ""),
    "by": _LABELS,
    "keys": "Write down the groups there can be, or find those that may be published with "
    ".dp.discover.",
    "bounds": "Write down what values can be, or find bounds with .dp.suggest_bounds.",
    "bins": "Write down the edges, or find bounds with .dp.suggest_bounds.",
} | dict.fromkeys(
    ("max_rows", "max_groups", "max_rows_per_group"),
    "Write down a cap, or find one with .dp.suggest_caps.",
)
"""What to do in place of taking a public argument from the data."""

_OF_ROWS = "bins bounds by column columns keys max_groups max_rows max_rows_per_group where".split()
_OF_RELEASE = ("mu", "rho", "graph", "within", "rows", "useful")
_OF_SUMS = ("n_weight", "objective", "weight")
_NOT_THERE = {
    ("rename", "index"): "Name the level, too: keys={'zone': {'A': 'Alpha'}}.",
    ("declare", "epsilon"): "Give a budget, budget=dpf.Budget(epsilon=...).",
    ("plot", "x"): "The groups are on the x axis. It takes column, kind and others.",
} | {
    (call, name): "Give it to the query, as in dpf.count(where=...)."
    for call in ("diagnose", "plan", "release")
    for name in _OF_ROWS
}
"""What to do in place of keywords that other calls have, by call."""

_ROWS = "Rows are the declared keys, in their order, whatever the data hold."
_OF_PANDAS = {
    "axis": "Columns are named.",
    "dropna": "Missing values have no row; other='missing' counts them, with all that are no key.",
    "margins": "Use dpf.margins(columns), or .dp.total(margins=True) of what is released.",
    "normalize": "Use .dp.percent() of what is released.",
    "numeric_only": "Columns are named.",
    "observed": _ROWS,
    "sort": _ROWS,
}
"""What to do in place of keywords that pandas has, or one call alone."""


def public_call(function: _Function) -> _Function:
    """Open a function to all callers.

    While it runs, NumPy neither warns nor raises because of a float, whatever `np.seterr` says.

    Parameters
    ----------
    function
        Any function, with all of its keywords in its signature.

    Raises
    ------
    CallError
        By the function, if it is called with a keyword, or by position with an argument, that it
        does not have, or without one that it needs.
    DeclarationError
        By the function, if a public argument is known to hold something private.

    Examples
    --------
    >>> @public_call
    ... def count(by=None, *, epsilon=None): ...
    >>> count(epsilom=1)
    Traceback (most recent call last):
        ...
    dpframe.errors.CallError: count() has no keyword 'epsilom'; did you mean 'epsilon'?
    """
    # what is written to call it: a class for its `__init__`
    name = function.__qualname__.removesuffix(".__init__").split(".")[-1]
    code = function.__code__
    places = code.co_varnames[: code.co_argcount]
    describes = _describes(name, places)

    @functools.wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        try:
            if describes and any(map(_is_frame, args)):
                raise takes_no_frame(name)
            for label, value in (*zip(places, args, strict=False), *keywords.items()):
                if not _is_plain(type(value)):  # type: ignore[arg-type]  # mypy: types have a hash
                    _check_public(label, value)
            with np.errstate(all="ignore"):  # no error may depend on private values, or on settings
                return function(*args, **keywords)
        except (DPFrameError, FileNotFoundError) as error:
            raise _shorten(error) from error.__cause__
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # by the function itself: it was called as it can be
        raise wrong_call(name, function, args, keywords)

    return cast(_Function, checked)


def public_calls(cls: _Class) -> _Class:
    """Do the same for all that is public in a class."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(cls, name, public_call(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(public_call(member.fget)))
    return cls


def _describes(called: str, places: Sequence[str]) -> bool:
    """Tell whether a function describes a query, and takes no frame."""
    return called != "quantile" and not _OF_QUERIES.isdisjoint(places[:1])


def _is_frame(value: object) -> bool:
    return hasattr(value, "dp")


@functools.lru_cache(maxsize=256)
def _is_plain(kind: type) -> bool:
    """Whether values of a type neither hold others nor are data: nothing private is in them."""
    return not (is_column(kind) or hasattr(kind, "__dask_graph__") or issubclass(kind, _HOLDERS))


def _check_public(name: str, value: object) -> None:
    """Refuse an argument that is known to be private, or data where none belong."""
    if name in _FRAMES:
        return
    refuse_private(name, value)
    if name not in _TAKE_DATA and any(map(is_data, parts_of(value))):
        # its cells may be private
        rule = "must be a plain value, no array or frame"
        raise QueryError.about(name, rule, value, _WAYS_OUT.get(name, ""))


def refuse_private(name: str, value: object) -> None:
    """Refuse a public argument that is, or holds, what is known to be private.

    Raises
    ------
    DeclarationError
        If it was taken from a declared frame, from a diagnosis or from a collection of Dask.
    """
    origin = origin_of(value)
    if origin is not None:
        way_out = _WAYS_OUT.get(name, "Write down a value that does not depend on the data.")
        rule = f"{name} must be public, and was taken from {origin}:"
        reason = f"what it holds is private, and would be published. {way_out}"
        raise DeclarationError(f"{rule} {reason}", parameter=name)


def _shorten(error: DPFrameError | FileNotFoundError) -> DPFrameError | FileNotFoundError:
    """Leave the frames inside the package out of the traceback; where they were stays as text."""
    if isinstance(error, DPFrameError):
        codes = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        places = (f"{code.co_filename}:{line} in {code.co_name}" for code, line in codes)
        error.places = (*places, *error.places)
    error.__context__ = None  # what is not shown may quote an argument
    if error.__cause__ is not None:
        error.__cause__.with_traceback(None).__context__ = None
    return error.with_traceback(None)


def wrong_call(
    called: str, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> CallError:
    """Make the error about arguments that a signature does not take."""
    signature = inspect.signature(function).parameters.values()
    parameters = [p for p in signature if p.name not in _OWNERS and p.kind not in _CATCH_ALLS]
    names = [parameter.name for parameter in parameters]
    places = [p.name for p in parameters if p.kind is not Parameter.KEYWORD_ONLY]
    needed = [p.name for p in parameters if p.default is Parameter.empty]
    if any(parameter.name in _OWNERS for parameter in signature):
        args = args[1:]
    unknown = [name for name in keywords if name not in names]
    if unknown and not any(p.kind is Parameter.VAR_KEYWORD for p in signature):
        if _describes(called, places) and any(_is_frame(keywords[name]) for name in unknown):
            return takes_no_frame(called)
        return no_such_keyword(called, unknown[0], names, unknown[1:])
    if len(args) > len(places):
        return _too_many(called, args, places, names)
    by_position = places[: len(args)]
    missing = [name for name in needed if name not in keywords and name not in by_position]
    if missing:
        return _too_few(called, missing, needed, places)
    (name, *_) = [name for name in by_position if name in keywords]
    text = f"{called}() has {name} twice, by position and by keyword. Give it once."
    return CallError(text, parameter=name)


def no_such_keyword(
    called: str, name: str, keywords: Sequence[str], others: Sequence[str] = ()
) -> CallError:
    """Make the error about keywords that a call does not have.

    Parameters
    ----------
    called
        The function or method called.
    name
        The keyword given.
    keywords
        The keywords that there are, in order.
    others
        Further keywords given that there are not.
    """
    also = f" Nor has it {', '.join(map(repr, others))}." if others else ""
    if (called, name) in _NOT_THERE:
        hint = f". {_NOT_THERE[called, name]}"
    elif name in _OF_PANDAS:
        hint = f". {_OF_PANDAS[name]}"
    elif (
        name in _OF_RELEASE and called != "plan" and not {"where", "mechanism"}.isdisjoint(keywords)
    ):
        hint = f". Give it to the release: .dp.release(dpf.{called}(...), {name}=...)."
    elif name in _OF_SUMS and "epsilon" in keywords:
        hint = f". Give it to the query: .dp.release(dpf.{called}(..., {name}=...), epsilon=...)."
    elif close := nearest(name, keywords):
        hint = f"; did you mean {close!r}?"
    else:
        hint = f". It takes {', '.join(keywords)}."
    return CallError(f"{called}() has no keyword {name!r}{hint}{also}", parameter=name)


def nearest(name: str, known_names: Iterable[str]) -> str | None:
    """Return the name that was most likely meant, whatever its case, if there is one.

    Examples
    --------
    >>> nearest("epsilom", ["epsilon", "delta"]), nearest("eps", ["epsilon"]), nearest("a", ["by"])
    ('epsilon', 'epsilon', None)
    """
    names = list(known_names)
    for ours, elsewhere in _ELSEWHERE.items():
        if name.lower() in elsewhere and ours in names:
            return ours
    lowered = {label.lower(): label for label in reversed(names)}
    close = get_close_matches(name.lower(), list(lowered), 1)
    return lowered[close[0]] if close else None


def did_you_mean(name: object, names: Iterable[object]) -> str:
    """Say which of some names was most likely meant, as a sentence; nothing where none is near.

    Examples
    --------
    >>> did_you_mean("Fares", ["fare", 7])
    " Did you mean 'fare'?"
    """
    if not isinstance(name, str):
        return ""
    close = nearest(name, (label for label in names if isinstance(label, str)))
    return "" if close in (None, name) else f" Did you mean {close!r}?"


def takes_no_frame(called: str) -> CallError:
    """Make the error about a frame where a query is described."""
    rule = f"{called}() describes a query, and takes no frame:"
    remedy = f"use frame.dp.{called}(...), or dpf.release(frame, dpf.{called}(...), epsilon=...)."
    return CallError(f"{rule} {remedy}")


def _too_many(
    called: str, args: Sequence[object], places: Sequence[str], names: Sequence[str]
) -> CallError:
    """Make the error about arguments that are not given by keyword."""
    groups = list(args[max(len(places) - 1, 0) :])
    if places[-1:] == ["by"] and all(isinstance(label, str) for label in groups):
        rule = f"{called}() takes one label or a list to group by, got {len(groups)} labels"
        remedy = f"Write by={quote(groups)}."
        return CallError(f"{rule}. {remedy}", parameter="by", value=groups)
    by_keyword = [f"{name}=" for name in names if name not in places]
    rule = f"{called}() takes {' and '.join(places) or 'nothing'} alone by position"
    (amount, *_) = args[len(places) :]
    if "epsilon" in names and isinstance(amount, int | float):
        remedy = f"Give the amount by keyword: epsilon={amount!r}, or share= of the budget."
        return CallError(f"{rule}. {remedy}", parameter="epsilon", value=amount)
    remedy = f": give {', '.join(by_keyword)} by keyword" if by_keyword else ""
    return CallError(f"{rule}{remedy}.")


def _too_few(
    called: str, missing: Sequence[str], needed: Sequence[str], places: Sequence[str]
) -> CallError:
    """Make the error about arguments that are needed and not given."""
    call = ", ".join(name if name in places else f"{name}=..." for name in needed)
    way_out = _WAYS_OUT.get(missing[0], "")
    text = f"{called}() needs {' and '.join(missing)}: {called}({call}). {way_out}".rstrip()
    return CallError(text, parameter=missing[0])
