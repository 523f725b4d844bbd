"""How methods of `.dp` are made of functions, and what `help` says of them."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache, wraps
from itertools import groupby
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import pandas as pd

from dpframe.options import Aim, ChosenRows, Memo, Spending
from dpframe.public import wrong_call

if TYPE_CHECKING:
    from dpframe.accessors.frames import DPAccessor

    class DataFrame(pd.DataFrame):
        """A frame of pandas, with the accessor that the package registers."""

        @property
        def dp(self) -> DPAccessor:
            """Differentially private releases of the frame."""

else:
    DataFrame = pd.DataFrame
"""The frame whose `.dp` type checkers and editors know; at run time it is that of pandas."""

_P = ParamSpec("_P")
_Result = TypeVar("_Result")

_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)
_REFERRED = re.compile(r"see `dpframe\.(\w+)`")
_NEXT_SECTION = re.compile(r"\n(?=\w+\n-+\n)")
_ELSEWHERE = re.compile(r"As (?:in|for) `(?:dpframe\.)?(\w+)`")
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z\"`])")
_SHARED = (ChosenRows, Spending, Memo, Aim)
_WIDTH = 96  # characters of a line, with what `help` puts before it


def describe_methods(accessor: type, functions: Mapping[str, Any]) -> None:
    """Add to each method that refers to a function what its keywords are.

    Parameters
    ----------
    accessor
        A class of methods, whose docstrings are changed.
    functions
        The functions of the same names.
    """
    for cls in accessor.__mro__:
        for name, method in vars(cls).items():
            referred = (
                _REFERRED.search(method.__doc__ or "") if inspect.isfunction(method) else None
            )
            if referred is not None and name[0] != "_":
                method.__doc__ = _described(method, functions[referred[1]], functions)


def _described(
    method: Callable[..., Any], function: Callable[..., Any], functions: Mapping[str, Any]
) -> str:
    """Write the docstring of a method with a line for each keyword."""
    shared = {name: line for options in _SHARED for name, line in _lines(options).items()}
    lines_of_function = {
        name: line for name, line in _lines(function).items() if not line.startswith("See ")
    }
    lines = {**shared, **lines_of_function}
    names = [name for name in inspect.signature(method).parameters if name != "self"]
    rows = [(name, _resolved(name, lines.get(name, ""), functions)) for name in names]
    before, *after = _NEXT_SECTION.split(inspect.getdoc(method) or "", maxsplit=1)
    text = [before.rstrip(), "", "Parameters", "----------"]
    for line, group in groupby(rows, key=lambda row: row[1]):
        text.append(", ".join(name for name, _ in group))
        text.append(_filled("   ", line, 4))
    return "\n".join([*text, "", *after]).rstrip()


@cache
def _lines(described: Any) -> dict[str, str]:
    """Return the first sentence that a docstring says of each parameter."""
    section = _SECTION.search(inspect.getdoc(described) or "")
    lines: dict[str, str] = {}
    for paragraph in re.split(r"^(?=\S)", section[1] if section else "", flags=re.MULTILINE):
        names, _, body = paragraph.partition("\n")
        sentence = _SENTENCE.split(" ".join(body.split()))[0]
        lines |= {name.strip(" *"): sentence for name in names.split(",")}
    if "queries" in lines:
        lines["query"] = lines["queries"]  # as methods call it
    return lines


def _resolved(name: str, line: str, functions: Mapping[str, Any]) -> str:
    """Follow a line that refers to another function to what is said there."""
    elsewhere = _ELSEWHERE.match(line)
    if elsewhere is None or elsewhere[1] not in functions:
        return line
    line_there = _lines(functions[elsewhere[1]]).get(name)
    return line if line_there is None else _resolved(name, line_there, functions)


def _filled(start: str, text: str, indent: int) -> str:
    """Break a text into lines; `textwrap` takes ten times as long."""
    lines = [start]
    for word in text.split():
        if len(lines[-1]) + len(word) >= _WIDTH:
            lines.append(" " * (indent - 1))
        lines[-1] += f" {word}"
    return "\n".join(lines)


def frame_method_of(
    function: Callable[Concatenate[pd.DataFrame, _P], pd.DataFrame],
) -> Callable[Concatenate[Any, _P], DataFrame]:
    """Return the method of a function that makes frames: type checkers know `.dp` of these."""
    method: Any = method_of(function)
    return cast(Callable[Concatenate[Any, _P], DataFrame], method)


def method_of(
    function: Callable[Concatenate[pd.DataFrame, _P], _Result],
) -> Callable[Concatenate[Any, _P], _Result]:
    """Return the method of `.dp` that gives its frame to a function of released frames.

    Parameters
    ----------
    function
        Any function whose first parameter is the frame.
    """
    signature = inspect.signature(function)
    frame, *others = signature.parameters.values()
    owner = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = signature.replace(parameters=[owner, *others])

    @wraps(function)
    def method(self: Any, /, *args: _P.args, **keywords: _P.kwargs) -> _Result:
        try:
            signature.bind(self, *args, **keywords)
        except TypeError:
            raise wrong_call(function.__name__, method, (self, *args), keywords) from None
        return function(self._frame, *args, **keywords)

    method.__signature__ = signature  # type: ignore[attr-defined]
    text = inspect.getdoc(function) or ""
    method.__doc__ = re.sub(rf"^{frame.name}\n(?: .*\n)+", "", text, flags=re.MULTILINE)
    return method


def module_text(summary: str, public: Mapping[str, Any]) -> str:
    """Write what the package says of itself: a line for each public name."""
    lines = [
        summary.strip(),
        "",
        "`help(df.dp.mean)` and `help(dpf.mean)` say more. Public names:",
        "",
    ]
    for name, value in public.items():
        first, *_ = (inspect.getdoc(value) or "").split("\n\n")
        lines.append(_filled(f"{name:19}", first, 20))
    return "\n".join(lines)
