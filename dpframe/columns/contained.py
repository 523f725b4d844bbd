"""Calls of functions on private values: what they raise is contained."""

from collections.abc import Callable
from typing import Any

from dpframe.errors import STOPS


def contained(function: Callable[..., Any], *arguments: Any, otherwise: Any) -> Any:
    """Call a function on a private value; where it raises, return what is to be used otherwise.

    Cells can raise anything, also what does not derive from `Exception`: the panic of a library
    written in Rust, or the `CancelledError` of asyncio. Only what stops a program passes.

    Examples
    --------
    >>> contained(int, "7", otherwise=0), contained(int, "seven", otherwise=0)
    (7, 0)
    """
    try:
        return function(*arguments)
    except STOPS:
        raise
    except BaseException:
        return otherwise
