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
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import TypeVar

from dpframe.errors import LedgerBusyError, LedgerError
from dpframe.ledger import platform
from dpframe.ledger.platform import Deadline


def check_names(path: Path, place: Path, handle: int) -> None:
    """Refuse a file that others may find by another name: they would not see its journal.

    Parameters
    ----------
    path
        The file as it was given.
    place
        The same, without symbolic links: all of them lead to one journal.
    handle
        The file itself, open and locked.

    Raises
    ------
    LedgerError
        If it has another name, is a mount of its own, or was replaced.
    """
    if os.fstat(handle).st_nlink > 1:
        reason = f"the ledger {path} has more than one name (a hard link): nothing was charged."
        remedy = "Remove the other names, and use symbolic links instead."
        raise LedgerError(f"{reason} {remedy}")
    if _mounted_alone(place, handle):
        reason = f"the ledger {path} is mounted as a single file: nothing was charged."
        remedy = "Mount the folder that it is in, so that what belongs to it is seen everywhere."
        raise LedgerError(f"{reason} {remedy}")
    if not os.path.samestat(os.fstat(handle), os.stat(place)):
        raise LedgerError(
            f"the ledger {path} was replaced while it was opened: nothing was charged. Try again."
        )


def remove_drafts(place: Path) -> None:
    """Remove the first name of a new file, left by a process that was killed while creating it.

    While the file is not open here: Windows removes no name of one that is.
    """
    with contextlib.suppress(OSError):
        status = os.stat(place)
        drafts = place.parent.glob("*.new") if status.st_nlink > 1 else ()
        for draft in drafts:
            if draft != place and os.path.samestat(os.lstat(draft), status):
                os.unlink(draft)


def _mounted_alone(place: Path, handle: int) -> bool:
    """Whether a file is mounted without its folder, as far as the system tells: on Linux."""
    if platform.HERE.name != "linux":
        return False
    folder = os.open(place.parent, os.O_PATH)
    try:
        return _mount_of(handle) != _mount_of(folder)
    finally:
        os.close(folder)


def _mount_of(handle: int) -> str:
    """Give the number of the mount that an open file was reached through, if it is told."""
    try:
        lines = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith("mnt_id:")), "")


T = TypeVar("T")

_PAUSE = 0.001  # seconds between two attempts
_NUMBERS = itertools.count()
_HELD: dict[int, "_Hold"] = {}  # by number of the lock
_FORKING: dict[str, int] = {}  # the thread that forks
KEEPERS: dict[tuple[object, ...], object] = {}
"""What is in use, by its place and the thread, which alone uses it."""


def freed_surely(act: Callable[[], T], free: Callable[[], object]) -> T:
    """Act, and free what was taken, though an interrupt may arrive anywhere.

    An interrupt can cut short `free`, or what leads to it: then it is run once more. A context
    manager would not do, for its exit is a call that an interrupt can stop as it begins.

    Parameters
    ----------
    act
        What takes something, and uses it.
    free
        Frees it if it was taken, and does nothing if it was not, or is free already.
    """
    try:
        try:
            return act()
        finally:
            free()
    finally:
        free()


class _Hold:
    """One use of a lock, by a thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class OneAtATime:
    """A lock that tells the thread that holds it already, as in a signal handler, from others.

    It is taken and freed by one operation each on a dict, which no interrupt divides. While a
    process forks, no other thread holds one: the child finds all of them free.
    """

    def __init__(self) -> None:
        self._number = next(_NUMBERS)

    def hold(self, act: Callable[[bool], T]) -> T:
        """Hold the lock while a function runs, and tell it if this thread does so already."""
        mine = _Hold()
        return freed_surely(lambda: act(self._take(mine)), lambda: self._free(mine))

    def _take(self, mine: _Hold) -> bool:
        """Wait for the lock, but not for this thread itself; say whether it was held by that."""
        while True:
            holder = _HELD.setdefault(self._number, mine)
            if holder is mine and _must_wait(mine):
                self._free(mine)
            elif holder.thread == mine.thread:
                return holder is not mine
            time.sleep(_PAUSE)

    def _free(self, mine: _Hold) -> None:
        if _HELD.get(self._number) is mine:
            del _HELD[self._number]


def _must_wait(mine: _Hold) -> bool:
    """Whether another thread forks; who holds a lock already is waited for, and takes others."""
    if not _FORKING or _FORKING.get("thread") == mine.thread:
        return False
    return not any(hold is not mine and hold.thread == mine.thread for hold in list(_HELD.values()))


def _begin_to_fork() -> None:
    """Wait until no other thread holds a lock, or forks."""
    thread = threading.get_ident()
    while _FORKING.setdefault("thread", thread) != thread:
        time.sleep(_PAUSE)
    while any(hold.thread != thread for hold in list(_HELD.values())):
        time.sleep(_PAUSE)


if hasattr(os, "register_at_fork"):
    # what runs afterwards is not Python code, which an interrupt could stop as it begins
    os.register_at_fork(
        before=_begin_to_fork, after_in_parent=_FORKING.clear, after_in_child=_FORKING.clear
    )
    os.register_at_fork(after_in_child=KEEPERS.clear)  # no thread of the child holds a file


def in_use_here(where: str) -> LedgerError:
    """Say that a signal handler asks for what its own thread was at when the signal came."""
    return LedgerError(
        f"{where} is in use by this very thread, which a signal has interrupted: nothing was "
        "charged. Ask for it after the signal was handled."
    )


class _Opening:
    """A file that is opened and locked for one use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._key = (-1, -1, -1)

    def lock(self, *, new: bool, patience: float | None) -> int:
        """Open the file and wait for its lock."""
        # a pipe must not be waited for
        flags = getattr(os, "O_NONBLOCK", 0) | (os.O_RDWR | os.O_CREAT | os.O_EXCL if new else 0)
        self._file = open(
            self.path, "rb", buffering=0, opener=lambda name, _: os.open(name, flags, 0o644)
        )
        handle = self._file.fileno()
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            reason = f"{self.path} is not a file, so it cannot be a ledger."
            raise LedgerError(f"{reason} Choose another path.")
        self._key = status.st_dev, status.st_ino, threading.get_ident()
        _wait(handle, self._key, self.path, patience)
        KEEPERS[self._key] = self
        return handle

    def close(self) -> None:
        """Give the lock back, and close the file: once more does nothing."""
        if self._file is None:
            return
        try:
            if not self._file.closed:  # else an interrupt came before it was forgotten here
                platform.HERE.unlock(self._file.fileno())
            if KEEPERS.get(self._key) is self:
                KEEPERS.pop(self._key, None)  # a signal handler may have used the file just now
        finally:
            self._file.close()


def with_locked_file(
    path: Path, act: Callable[[int], T], *, new: bool = False, patience: float | None = None
) -> T:
    """Open a file, which is made if it is `new`, and hold its lock while a function runs.

    Raises
    ------
    LedgerBusyError
        If others keep it for long.
    LedgerError
        If this thread keeps it, or the system has no such locks.
    OSError
        If it cannot be opened, or made.
    """
    if not platform.HERE.has_locks:
        reason = f"the ledger {path} cannot be used: this system has no locks on files."
        remedy = "Keep the ledger in memory, dpf.Ledger(budget=...)."
        raise LedgerError(f"{reason} {remedy}")
    opening = _Opening(path)
    return freed_surely(lambda: act(opening.lock(new=new, patience=patience)), opening.close)


def _wait(handle: int, key: tuple[int, int, int], path: Path, patience: float | None) -> None:
    """Ask for the lock until it is given: nobody is served before others by right."""
    deadline = Deadline.begin(patience)
    while not platform.HERE.try_to_lock(handle):
        if key in KEEPERS:
            raise in_use_here(f"the ledger {path}")
        if deadline.is_over:
            reason = f"the ledger {path} cannot be used (it is locked): nothing was charged."
            remedy = f"Another process has kept it for {deadline}: try again."
            raise LedgerBusyError(f"{reason} {remedy}")
        time.sleep(_PAUSE)
