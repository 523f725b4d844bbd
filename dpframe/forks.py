"""What a process that is forked while threads work must not find half done.

In the child the other threads are gone, and what they held stays held: a lock is never given back.
"""

import functools
import os
import sys
import threading
import time
from types import FrameType
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")

_PAUSE = 0.001  # seconds between two looks
_LONGEST = 10.0  # seconds that a fork waits for imports
_SLOW = frozenset({"importlib._bootstrap", "pydantic.type_adapter"})  # they hold locks


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


def _finish_imports() -> None:
    """Wait until no other thread is importing something for this package."""
    deadline = time.monotonic() + _LONGEST
    while _others_import() and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _others_import() -> bool:
    this_thread = threading.get_ident()
    frames = sys._current_frames().items()  # of CPython alone, as are the locks
    return any(_is_importing(frame) for thread, frame in frames if thread != this_thread)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a thread is in an import, or in what takes as long, that this package asked for."""
    slow = False
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if slow and name.startswith(f"{__package__}."):
            return True
        slow = slow or name in _SLOW
        frame = frame.f_back
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_imports)
