"""What a process that is forked while threads work must not find half done.

In the child the other threads are gone, and what they held stays held: a lock is never given back.
"""

import functools
import os
import threading
import time
from importlib import _bootstrap
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")

_PAUSE = 0.001  # seconds between two looks
_LONGEST = 10.0  # seconds that a fork waits

MAKING = threading.RLock()  # held while something is made that holds locks of other packages
_held: list[bool] = []  # whether each fork under way got that lock


class cached_property(functools.cached_property[T]):  # noqa: N801  # called as that of Python
    """A property that is computed once, without the lock of Python 3.11, which a fork may catch.

    At worst, two threads compute it; both get the same object.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        """Return what was computed first."""
        if instance is None:
            return self
        value: T = vars(instance).setdefault(str(self.attrname), self.func(instance))
        return value


def _finish_work() -> None:
    """Wait until no other thread imports something, or makes what holds locks for as long."""
    deadline = time.monotonic() + _LONGEST
    _held.append(MAKING.acquire(timeout=_LONGEST))
    while _others_import() and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _go_on() -> None:
    """Let other threads make such things again."""
    if _held.pop():
        MAKING.release()


def _others_import() -> bool:
    """Whether another thread holds the lock of a module.

    Frames of other threads would tell who asked for it, but reading them while those threads run
    is not safe in Python 3.11.
    """
    this_thread = threading.get_ident()
    locks = [reference() for reference in list(vars(_bootstrap)["_module_locks"].values())]
    return any(getattr(lock, "owner", None) not in {None, this_thread} for lock in locks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_work, after_in_parent=_go_on, after_in_child=_go_on)
