"""Work on parts of a frame in threads: NumPy and Arrow let several run at once."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import numpy as np

__all__ = ["in_threads", "thread_count"]

_MOST = 8  # memory, not the processor, is the limit beyond
_FEW_ROWS = 1 << 18  # of which a thread of its own is not worth its start

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def thread_count(rows: int) -> int:
    """Return how many threads are worth starting for a number of rows, on this machine."""
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        available = os.cpu_count() or 1
    return max(1, min(available, _MOST, rows // _FEW_ROWS))


def in_threads(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int
) -> list[_Result]:
    """Apply a function to items, several at once, without warnings of floating-point numbers.

    Parameters
    ----------
    function
        Called once per item.
    items
        What to work on, in a copy of the caller's context: silent if it is.
    threads
        How many calls may run at once.

    Returns
    -------
    list
        The results in the order of the items.

    Examples
    --------
    >>> in_threads(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    context = copy_context()

    def quiet(item: _Item) -> _Result:
        with np.errstate(all="ignore"):  # a thread has a state of its own
            return function(item)

    if threads == 1:
        return [quiet(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda item: context.copy().run(quiet, item), items))
