"""No warning about private values is shown while they are being looked at."""

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

_SILENT = ContextVar("dpframe_silent", default=False)


class _OfSilentThreads:
    """Stands where a filter has a regular expression: matches what a silent thread warns of."""

    def match(self, _: str) -> bool:
        """Tell whether the thread that warns is silent."""
        return _SILENT.get()


# Filters as `warnings` keeps them. They are added directly: adding one by its functions would make
# Python forget which warnings were shown before.
_FILTER = ("ignore", _OfSilentThreads(), Warning, None, 0)
_CALL_FILTER = ("ignore", _OfSilentThreads(), Warning, None, 0)  # where others came before ours


def silent(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Make a function hide the warnings of its thread until it returns, and those of no other.

    `warnings.catch_warnings` swaps the filters of all threads. Here one filter asks whether the
    thread that warns is silent. The answer stands in a context that ends with the call, so that
    there is nothing to undo, even after Ctrl-C. Where other threads are alive, one filter stays:
    they may restore filters from before the call.

    Parameters
    ----------
    function
        Looks at private values. Threads that it starts must run in a copy of its context.

    Returns
    -------
    function
        The same, in silence.

    Examples
    --------
    >>> silent(warnings.warn)("the cell holds 42")
    """

    @wraps(function)
    def quiet(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        if _SILENT.get():
            return function(*args, **kwargs)
        context = copy_context()
        context.run(_SILENT.set, True)
        if len(sys._current_frames()) > 1:
            _keep_filter()
        filters = _filters()
        if filters and filters[0] == _FILTER:
            return context.run(function, *args, **kwargs)
        filters.insert(0, _CALL_FILTER)  # every call adds one of its own
        try:
            return context.run(function, *args, **kwargs)
        finally:
            with suppress(ValueError):  # they were reset meanwhile
                filters.remove(_CALL_FILTER)

    return quiet


def silence_thread() -> None:
    """Hide the warnings of this thread as long as it lives, since it works for a silent one."""
    _SILENT.set(True)


def _filters() -> Any:
    """Return the list of filters that Python reads; from 3.14 on, a context may have its own."""
    of_context = getattr(warnings, "_get_filters", None)
    return warnings.filters if of_context is None else of_context()


@cache
def _keep_filter() -> None:
    """Add a filter that stays, once: copies of the filters have it, too."""
    _filters().insert(0, _FILTER)
