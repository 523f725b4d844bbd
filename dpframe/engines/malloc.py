"""Memory that is freed within a call and asked for again, where glibc hands it back at once.

Dask starts its workers with `MALLOC_TRIM_THRESHOLD_`, by which every array beyond 128 kB is made of
pages that the system has to clear, and is given back page by page: half of the time of a release.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt
_KEPT = 1 << 30
_MOST_MMAP = 1 << 25  # glibc takes no more
_DEFAULT = 1 << 17

_lock = Lock()
_calls = 0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep memory that is freed until no call needs it; then hand it back and set what was set.

    Nothing changes where the environment does not ask for memory to be handed back, or where the
    system's library is not glibc.
    """
    library = None if _asked("MALLOC_TRIM_THRESHOLD_", _KEPT) >= _KEPT else _library()
    if library is None:
        yield
        return
    _count(library, 1)
    try:
        yield
    finally:
        _count(library, -1)


def _count(library: Any, change: int) -> None:
    """Count the calls that run now; the first and the last set what is kept."""
    global _calls  # the allocator is one for the process
    with _lock:
        before, _calls = _calls, _calls + change
        if not before:
            library.mallopt(_TRIM, _KEPT)
            library.mallopt(_MMAP, _MOST_MMAP)
        elif not _calls:
            library.mallopt(_TRIM, _asked("MALLOC_TRIM_THRESHOLD_", _DEFAULT))
            library.mallopt(_MMAP, _asked("MALLOC_MMAP_THRESHOLD_", _DEFAULT))
            library.malloc_trim(0)


def _start_anew() -> None:
    """Forget, in a forked process, the calls of threads that it does not have."""
    global _lock, _calls  # a lock that was held would stay so
    _lock, _calls = Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def _asked(name: str, otherwise: int) -> int:
    """Read a number of bytes that the environment asks for."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise


def _library() -> Any:
    """Load the system's library, if it is glibc."""
    try:
        library = ctypes.CDLL(None)
        known = library.mallopt and library.malloc_trim
    except (OSError, TypeError, AttributeError):
        return None
    return library if known else None
