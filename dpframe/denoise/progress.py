"""A progress bar for what takes long, where there is something to draw one."""

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["DELAY", "show_progress"]

T = TypeVar("T")

DELAY = 2.0
"""Seconds before a bar appears: shorter work shows none."""


def show_progress(items: Iterable[T], description: str, total: int, *, shown: bool) -> Iterable[T]:
    """Return the items, with a bar that follows them in a terminal once they take long.

    Without tqdm, or where standard error goes to a file, there is no bar.

    Parameters
    ----------
    items
        What is gone through.
    description
        What the bar is called.
    total
        How many items are expected. More may come.
    shown
        Whether a bar is wanted.

    Examples
    --------
    >>> list(show_progress("abc", "letters", 3, shown=True))
    ['a', 'b', 'c']
    """
    if not shown:
        return items
    try:
        import tqdm  # optional
    except ImportError:
        return items
    # None: no bar but in a terminal
    bar: Iterable[T] = tqdm.tqdm(items, description, total, leave=False, delay=DELAY, disable=None)
    return bar
