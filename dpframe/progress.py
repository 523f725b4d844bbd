"""A progress bar for what takes long, where there is something to draw one."""

import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from weakref import WeakSet

from dpframe.errors import DPFrameError, pip_install

T = TypeVar("T")

DELAY = 2.0
"""Seconds before a bar appears by itself: shorter work shows none."""

_FORMAT = "{l_bar}{bar}| {elapsed}<{remaining}"
"""A part and a time: how many rows there are is private."""


def check_progress(shown: bool | None) -> None:
    """Check that a bar can be drawn, if one is asked for.

    Raises
    ------
    DPFrameError
        If tqdm is not installed.
    """
    if shown:
        try:
            import tqdm  # noqa: F401  # optional
        except ImportError:
            raise DPFrameError(
                f"progress=True needs tqdm: {pip_install('progress')}.", parameter="progress"
            ) from None


def show_progress(
    items: Iterable[T],
    description: str,
    total: int,
    *,
    shown: bool | None = None,
    size: Callable[[T], int] | None = None,
) -> Iterable[T]:
    """Return the items, with a bar that follows them.

    It shows what part is done, and times, but no numbers: these may be private. A bar that cannot
    be drawn is left out, whatever the reason, since a release may have been charged by then.

    Parameters
    ----------
    items
        What is gone through.
    description
        What the bar is called.
    total
        How many items are expected, or their size. More may come.
    shown
        `None`: once it takes long, in a terminal or a notebook, if tqdm is installed; or whether a
        bar is wanted from the start.
    size
        How large an item is; `None`: all are alike.

    Examples
    --------
    >>> list(show_progress("abc", "letters", 3))
    ['a', 'b', 'c']
    """
    # a single item is done when the bar would move
    none = total <= 1 if shown is None else not shown
    bar = None if none else _bar(description, total, at_once=bool(shown))
    return items if bar is None else _follow_items(items, bar, size)


def _bar(description: str, total: int, *, at_once: bool) -> Any:
    """Make a bar; `None` where there is none."""
    options = {"leave": False, "bar_format": _FORMAT}
    # disable=None: no bar but in a terminal or a notebook
    when = {"disable": False} if at_once else {"disable": None, "delay": DELAY}
    try:
        return _bars()(desc=description, total=total, **options, **when)
    except Exception:  # not installed, or nowhere to draw
        return None


@functools.lru_cache(1)
def _bars() -> Any:
    """Make bars that share neither lock nor thread with others, which a fork may catch."""
    with warnings.catch_warnings():  # of tqdm, about notebooks that cannot draw widgets
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm  # optional

    settings = {"monitor_interval": 0, "_instances": WeakSet(), "_lock": threading.RLock()}
    bars: Any = type("Bar", (tqdm,), settings)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: bars.set_lock(threading.RLock()))
    return bars


def _follow_items(items: Iterable[T], bar: Any, size: Callable[[T], int] | None) -> Iterator[T]:
    """Move the bar behind the items."""
    try:
        for item in items:
            yield item
            _quietly(bar.update, 1 if size is None else size(item))
    finally:
        _quietly(bar.close)


def _quietly(draw: Callable[..., object], *amount: int) -> None:
    """Draw; a terminal that is gone stops nothing."""
    try:
        draw(*amount)
    except Exception:  # noqa: S110  # of whatever kind
        pass
