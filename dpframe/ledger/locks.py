"""Locks: one for each ledger object, which survives forks and signals, and one on its file.

The locks of SQLite on POSIX systems belong to a process: they are gone as soon as any thread of it
has opened and closed the file, as a backup does. `flock` belongs to the file itself, under all its
names, and to one opening of it.
"""

import contextlib
import itertools
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from dpframe.errors import LedgerError

try:
    import fcntl
except ImportError:  # Windows, and systems without locks
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everywhere else
    msvcrt = None  # type: ignore[assignment]

__all__ = ["BUSY_SECONDS", "OneAtATime", "locked_file"]

BUSY_SECONDS = 60.0
"""How long others may keep a file before it is said to be busy."""

_PAUSE = 0.001  # seconds between two attempts
_BEYOND = 1 << 40  # a place behind the end of every file: Windows forbids to read what is locked
_ADDING = threading.RLock()
_NUMBERS = itertools.count()
_ALL: weakref.WeakSet["OneAtATime"] = weakref.WeakSet()
_KEEPERS: dict[tuple[int, int], int] = {}  # threads of this process that hold a file


class OneAtATime:
    """A lock that tells the thread that holds it already, as in a signal handler, from others.

    While a process forks, nobody else holds one: the child finds all of them free. Who holds one
    may take another that was made later, not one that was made before.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = False
        with _ADDING:
            self.number = next(_NUMBERS)
            _ALL.add(self)

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the lock, and say whether this thread does so a second time."""
        with self._lock:
            again = self._taken
            try:
                self._taken = True
                yield again
            finally:
                self._taken = again


class _Fork:
    """All locks at once, while a process forks."""

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()

    def begin(self) -> None:
        with _ADDING:
            locks = sorted(_ALL, key=lambda one: one.number)
        held = contextlib.ExitStack()
        for lock in locks:
            held.enter_context(lock._lock)
        held.enter_context(_ADDING)  # last: who holds a ledger may make another
        self._held = held

    def end(self) -> None:
        self._held.close()

    def end_in_child(self) -> None:
        _KEEPERS.clear()  # no thread of the child holds a file
        self.end()


if hasattr(os, "register_at_fork"):
    _FORK = _Fork()
    os.register_at_fork(
        before=_FORK.begin, after_in_parent=_FORK.end, after_in_child=_FORK.end_in_child
    )


@contextlib.contextmanager
def locked_file(path: Path, *, new: bool = False) -> Iterator[int]:
    """Open a file, which is made if it is `new`, and hold its lock as long as the context lasts.

    Raises
    ------
    LedgerError
        If others keep it, or the system has no such locks.
    OSError
        If it cannot be opened, or made.
    """
    if fcntl is None and msvcrt is None:
        raise LedgerError(
            f"the ledger {path} cannot be used: this system has no locks on files. Keep the ledger "
            "in memory, dpf.Ledger(budget=...)."
        )
    # a pipe must not be waited for
    flags = getattr(os, "O_NONBLOCK", 0) | (os.O_RDWR | os.O_CREAT | os.O_EXCL if new else 0)
    with open(path, "rb", buffering=0, opener=lambda name, _: os.open(name, flags, 0o644)) as file:
        handle = file.fileno()
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise LedgerError(
                f"{path} is not a file, so it cannot be a ledger. Choose another path."
            )
        inode = os.fstat(handle).st_dev, os.fstat(handle).st_ino
        _wait(handle, inode, path)
        try:
            _KEEPERS[inode] = threading.get_ident()
            yield handle
        finally:
            _KEEPERS.pop(inode, None)
            _unlock(handle)


def _wait(handle: int, inode: tuple[int, int], path: Path) -> None:
    """Ask for the lock until it is given: nobody is served before others by right."""
    deadline = time.monotonic() + BUSY_SECONDS
    while not _locked(handle):
        if _KEEPERS.get(inode) == threading.get_ident():
            raise LedgerError(
                f"the ledger {path} is in use by this very thread, which a signal has interrupted: "
                "nothing was released. Ask for it after the signal was handled."
            )
        if time.monotonic() > deadline:
            raise LedgerError(
                f"the ledger {path} cannot be used (it is locked): nothing was released. Another "
                f"process has kept it for {BUSY_SECONDS:g} s: try again."
            )
        time.sleep(_PAUSE)


def _locked(handle: int) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(handle, _BEYOND, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _unlock(handle: int) -> None:
    """Give the lock back: a process started meanwhile may keep the handle a little longer."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        os.lseek(handle, _BEYOND, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
