"""How a call shows its keywords, and what it refuses: unknown ones, and private arguments."""

import functools
import inspect
import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, Unpack, cast, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from dpframe import errors
from dpframe.errors import CallError, DPFrameError, QueryError, is_column, is_data, quote
from dpframe.provenance import origin_of, parts_of

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_OWNERS = ("self", "cls")
_CATCH_ALLS = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_OF_QUERIES = frozenset({"by", "column", "columns", "condition"})
"""What functions take first that describe a query."""
_FRAMES = frozenset(
    {*_OWNERS, *"against before frame of queries query released releases source table".split()}
    | {"tables"}
)
"""What holds private or released cells by its nature, or none, and has a check of its own."""
_OF_ROWS = "bins bounds by column columns keys max_groups max_rows max_rows_per_group where".split()
_TAKE_DATA = frozenset(
    "ax bins bounds by candidates color column columns coords edges graph keys n parents".split()
) | frozenset("path q schema weights delta discovery epsilon mu name note rho share".split())
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

_WAYS_OUT = {
    "keys": "Write down the groups there can be, or find those that may be published with "
    ".dp.discover.",
    "bounds": "Write down what values can be, or find bounds with .dp.suggest_bounds.",
    "bins": "Write down the edges, or find bounds with .dp.suggest_bounds.",
} | dict.fromkeys(
    ("max_rows", "max_groups", "max_rows_per_group"),
    "Write down a cap, or find one with .dp.suggest_caps.",
)
"""What to do in place of taking a public argument from the data."""

_NOT_THERE = {
    ("rename", "index"): "Name the level, too: keys={'zone': {'A': 'Alpha'}}.",
    ("plot", "x"): "The groups are on the x axis. It takes column, kind and others.",
} | {
    (called, name): "Give it to the query, as in dpf.count(where=...)."
    for called in ("diagnose", "preview", "release")
    for name in _OF_ROWS
}
"""What to do in place of keywords that pandas has, by call."""


def with_keywords(function: _Function) -> _Function:
    """Show the keywords that a function takes as options in its signature, and refuse all others.

    While it runs, NumPy neither warns nor raises because of a float, whatever `np.seterr` says.

    What a type checker sees of the function stays as it is: `**spend: Unpack[SpendOptions]`.

    Parameters
    ----------
    function
        Any function. An option that a `TypedDict` lists as `Annotated[int, 64]` has the default 64,
        another one `None`; the function is given all of them.

    Raises
    ------
    CallError
        By the function, if it is called with a keyword, or by position with an argument, that it
        does not have, or without one that it needs.
    DeclarationError
        By the function, if a public argument is known to hold something private.

    Examples
    --------
    >>> @with_keywords
    ... def count(by=None, *, epsilon=None): ...
    >>> count(epsilom=1)
    Traceback (most recent call last):
        ...
    dpframe.errors.CallError: count() has no keyword 'epsilom'; did you mean 'epsilon'?
    """
    return _check_calls(function, fill=True)


def with_keywords_of_methods(cls: _Class) -> _Class:
    """Do the same for all that is public in a class; its methods are given no defaults."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(cls, name, _check_calls(member, fill=False))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(_check_calls(member.fget, fill=False)))
    return cls


def with_keywords_of_init(cls: _Class) -> _Class:
    """Do the same for what makes an object of a class, such as a dataclass."""
    cls.__init__ = with_keywords(cls.__init__)  # type: ignore[misc]
    return cls


def _check_calls(function: _Function, *, fill: bool) -> _Function:
    """Wrap a function so that it has the whole signature, and checks what it is given."""
    own = inspect.signature(function)
    options = [option for one in own.parameters.values() for option in _options(one)]
    # what is written to call it: a class for its `__init__`
    name = function.__qualname__.removesuffix(".__init__").split(".")[-1]
    call = _Call(name, _with_options(own, options))
    filled = {one.name: one.default for one in options} if fill else {}

    @functools.wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        try:
            call.check(args, keywords)
            with np.errstate(all="ignore"):  # no error may depend on private values, or on settings
                return function(*args, **(filled | keywords))
        except (DPFrameError, FileNotFoundError) as error:
            raise _shorten(error) from error.__cause__

    checked.__signature__ = call.signature  # type: ignore[attr-defined]
    return cast(_Function, checked)


class _Call:
    """What a call is written as, and takes."""

    def __init__(self, name: str, signature: Signature) -> None:
        every = [one for one in signature.parameters.values() if one.name not in _OWNERS]
        named = [one for one in every if one.kind not in _CATCH_ALLS]
        kinds = {one.kind for one in every}
        self.name, self.signature = name, signature
        self.known = [one.name for one in named]
        self.order = [one.name for one in signature.parameters.values() if one.kind in _BY_POSITION]
        self.only_known = Parameter.VAR_KEYWORD not in kinds
        self.most = math.inf if Parameter.VAR_POSITIONAL in kinds else len(self.order)
        self.needed = {one.name for one in named if one.default is Parameter.empty}
        self.either = {one.name for one in named if one.kind is Parameter.POSITIONAL_OR_KEYWORD}
        self.describes = not _OF_QUERIES.isdisjoint(self.order[:1]) and name != "quantile"

    def check(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """Refuse arguments that there are not, that are missing or given twice, or private."""
        unknown = [value for name, value in keywords.items() if name not in self.known]
        if self.describes and any(hasattr(one, "dp") for one in (*args, *unknown)):
            raise takes_no_frame(self.name)
        if self.only_known and not keywords.keys() <= {*self.known}:
            names = [name for name in keywords if name not in self.known]
            raise no_such_keyword(self.name, names[0], self.known, names[1:])
        if len(args) > self.most:
            raise _too_many(self.name, args, self.order, self.known)
        by_position = self.order[: len(args)]
        twice = [name for name in by_position if name in keywords and name in self.either]
        if twice:
            why = f"{self.name}() has {twice[0]} twice, by position and by keyword. Give it once."
            raise CallError(why, parameter=twice[0])
        missing = self.needed - keywords.keys() - {*by_position}
        if missing:
            names = [name for name in self.known if name in missing]
            every = [name for name in self.known if name in self.needed]
            raise _too_few(self.name, names, every, self.order)
        for name, value in (*zip(by_position, args, strict=False), *keywords.items()):
            if name not in _FRAMES and not _is_plain(type(value)):  # type: ignore[arg-type]  # mypy
                refuse_private(name, value)
                if name not in _TAKE_DATA and any(map(is_data, parts_of(value))):
                    # its cells may be private
                    raise QueryError.about(name, "must be a plain value, no array or frame", value)


def _shorten(error: DPFrameError | FileNotFoundError) -> DPFrameError | FileNotFoundError:
    """Leave the frames inside the package out of the traceback; where they were stays as text."""
    if isinstance(error, DPFrameError):
        frames = traceback.walk_tb(error.__traceback__)
        error.places = (
            *(f"{one.f_code.co_filename}:{line} in {one.f_code.co_name}" for one, line in frames),
            *error.places,
        )
    error.__context__ = None  # what is not shown may quote an argument
    if error.__cause__ is not None:
        error.__cause__.with_traceback(None).__context__ = None
    return error.with_traceback(None)


def _with_options(signature: Signature, options: Sequence[Parameter]) -> Signature:
    """Replace what takes options by a parameter for each of them."""
    own = [one for one in signature.parameters.values() if get_origin(one.annotation) is not Unpack]
    last = [one for one in own if one.kind is Parameter.VAR_KEYWORD]
    return signature.replace(parameters=[*own[: len(own) - len(last)], *options, *last])


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """List the options that a parameter takes, with their defaults."""
    if get_origin(parameter.annotation) is not Unpack:
        return
    (options,) = get_args(parameter.annotation)
    for name, kind in get_type_hints(options, include_extras=True).items():
        (hint, default) = get_args(kind) if get_origin(kind) is Annotated else (kind, None)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


_HOLDING = (list, tuple, set, frozenset, Mapping, pd.DataFrame, pd.Series, pd.Index)


@functools.lru_cache(maxsize=256)
def _is_plain(kind: type) -> bool:
    """Whether values of a type neither hold others nor are data: nothing private is in them."""
    return not (is_column(kind) or hasattr(kind, "__dask_graph__") or issubclass(kind, _HOLDING))


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
        why = f"{name} must be public, and was taken from {origin}:"
        way = f"what it holds is private, and would be published. {way_out}"
        raise errors.DeclarationError(f"{why} {way}", parameter=name)


def no_such_keyword(
    called: str, name: str, known: Sequence[str], others: Sequence[str] = ()
) -> CallError:
    """Make the error about keywords that a call does not have.

    Parameters
    ----------
    called
        The function or method called.
    name
        The keyword given.
    known
        The keywords that there are, in order.
    others
        Further keywords given that there are not.
    """
    also = f" Nor has it {', '.join(map(repr, others))}." if others else ""
    if (called, name) in _NOT_THERE:
        hint = f". {_NOT_THERE[called, name]}"
    elif close := nearest(name, known):
        hint = f"; did you mean {close!r}?"
    else:
        hint = f". It takes {', '.join(known)}."
    return CallError(f"{called}() has no keyword {name!r}{hint}{also}", parameter=name)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that was most likely meant, whatever its case, if there is one.

    Examples
    --------
    >>> nearest("epsilom", ["epsilon", "delta"]), nearest("eps", ["epsilon"]), nearest("a", ["by"])
    ('epsilon', 'epsilon', None)
    """
    names = list(known)
    for ours, elsewhere in _ELSEWHERE.items():
        if name.lower() in elsewhere and ours in names:
            return ours
    lowered = {one.lower(): one for one in reversed(names)}
    found = get_close_matches(name.lower(), list(lowered), 1)
    return lowered[found[0]] if found else None


def _too_many(
    called: str, given: Sequence[object], order: Sequence[str], known: Sequence[str]
) -> CallError:
    """Make the error about arguments that are not given by keyword."""
    places = [name for name in order if name not in _OWNERS]
    groups = list(given[len(order) - 1 :])
    if places[-1:] == ["by"] and all(isinstance(one, str) for one in groups):
        by = quote(groups)
        rule = f"{called}() takes one label or a list to group by, got {len(groups)} labels"
        return CallError(f"{rule}. Write by={by}.", parameter="by", value=groups)
    named = [f"{name}=" for name in known if name not in places]
    first = f"{' and '.join(places)} alone" if places else "nothing"
    rest = f": give {', '.join(named)} by keyword" if named else ""
    return CallError(f"{called}() takes {first} by position{rest}.")


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """Say which of some names was most likely meant, as a sentence; nothing where none is near.

    Examples
    --------
    >>> did_you_mean("Fares", ["fare", 7])
    " Did you mean 'fare'?"
    """
    names = (one for one in known if isinstance(one, str))
    close = nearest(given, names) if isinstance(given, str) else None
    return "" if close in (None, given) else f" Did you mean {close!r}?"


def takes_no_frame(called: str) -> CallError:
    """Make the error about a frame where a query is described."""
    why = f"{called}() describes a query, and takes no frame:"
    way = f"use frame.dp.{called}(...), or dpf.release(frame, dpf.{called}(...), epsilon=...)."
    return CallError(f"{why} {way}")


def _too_few(
    called: str, missing: Sequence[str], needed: Sequence[str], order: Sequence[str]
) -> CallError:
    """Make the error about arguments that are needed and not given."""
    call = ", ".join(name if name in order else f"{name}=..." for name in needed)
    way_out = _WAYS_OUT.get(missing[0], "")
    text = f"{called}() needs {' and '.join(missing)}: {called}({call}). {way_out}".rstrip()
    return CallError(text, parameter=missing[0])
