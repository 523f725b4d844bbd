"""What differs among Linux, macOS and Windows: locks, flushes, files; and when waits end."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

try:
    import fcntl
except ImportError:  # Windows, and systems without locks
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everywhere else
    msvcrt = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # Windows, which counts files of a process otherwise
    resource = None  # type: ignore[assignment]

_BEYOND = 1 << 40  # a place behind the end of every file: Windows forbids to read what is locked
_HANDLES = "/proc/self/fd", "/dev/fd"  # of Linux, and of macOS
_USUALLY_OPEN = 32  # files of a process, where the system does not list them


class Platform:
    """A system, as this package uses it; tests put another one in its place.

    Parameters
    ----------
    name
        What Python calls it.
    posix_locks, windows_locks
        The modules that lock files, of which one is there, or none.
    """

    def __init__(
        self, name: str = sys.platform, posix_locks: Any = fcntl, windows_locks: Any = msvcrt
    ) -> None:
        self.name, self._fcntl, self._msvcrt = name, posix_locks, windows_locks

    @property
    def has_locks(self) -> bool:
        """Whether files can be locked at all."""
        return self._fcntl is not None or self._msvcrt is not None

    @property
    def options_of_sqlite(self) -> str:
        """What a connection of SQLite is asked for beside our own lock on the file."""
        # where both locks are of one kind, those of SQLite would wait for our own
        return "" if self.name in ("linux", "win32") else "&vfs=unix-none"

    @property
    def process_space(self) -> str:
        """The space that numbers of processes are of; empty where nobody knows."""
        if self.name == "win32":
            return ""
        if self.name != "linux":
            return self.name
        try:
            return " ".join(os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "mnt"))
        except OSError:
            return ""

    def try_to_lock(self, handle: int) -> bool:
        """Lock an open file as long as it is open, unless another opening of it has the lock.

        Raises
        ------
        OSError
            If there are no locks, here or on this disk.
        """
        try:
            if self._fcntl is not None:
                self._fcntl.flock(handle, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB)
            elif self._msvcrt is None:
                raise OSError("this system has no locks on files")
            else:
                os.lseek(handle, _BEYOND, os.SEEK_SET)
                self._msvcrt.locking(handle, self._msvcrt.LK_NBLCK, 1)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(self, handle: int) -> None:
        """Give a lock back: a process started meanwhile may keep the handle a little longer."""
        try:
            if self._fcntl is not None:
                self._fcntl.flock(handle, self._fcntl.LOCK_UN)
            else:
                os.lseek(handle, _BEYOND, os.SEEK_SET)
                self._msvcrt.locking(handle, self._msvcrt.LK_UNLCK, 1)
        except OSError:
            return  # Windows complains if it was not locked; closing the file frees it in any case

    def flush(self, handle: int) -> None:
        """Make sure that what was written outlives a power cut: on macOS, the disk is told, too."""
        full_sync = getattr(self._fcntl, "F_FULLFSYNC", None)
        if full_sync is not None:
            with suppress(OSError):  # no disk of this computer
                self._fcntl.fcntl(handle, full_sync)
                return
        os.fsync(handle)

    def flush_folder(self, folder: Path) -> None:
        """Make sure that the name of a new file outlives a power cut."""
        if self.name == "win32":  # which cannot open folders, and keeps names by itself
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            self.flush(handle)
        finally:
            os.close(handle)

    def files_left(self) -> int | None:
        """Say how many more files this process may open; `None`: many."""
        if resource is None:
            return None
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most == resource.RLIM_INFINITY:
            return None
        return max(0, most - self._files_open())

    def _files_open(self) -> int:
        for folder in _HANDLES:
            try:
                return len(os.listdir(folder))
            except OSError:  # not on every system
                continue
        return _USUALLY_OPEN


HERE = Platform()
"""The system that this process runs on."""


USUAL_PATIENCE = 60.0
"""Seconds that a wait may last where nobody says how many."""


class Deadline:
    """The end of one wait.

    Parameters
    ----------
    seconds
        How long the wait may last.
    """

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @classmethod
    def begin(cls, patience: float | None = None) -> Self:
        """Begin a wait of so many seconds; `None`: the usual ones."""
        return cls(USUAL_PATIENCE if patience is None else patience)

    @property
    def left(self) -> float:
        """Seconds that are left; 0 once it is over."""
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the wait has to end."""
        return self.left == 0

    def pause(self, seconds: float) -> None:
        """Sleep for a while, but not beyond the end."""
        time.sleep(min(seconds, self.left))

    def __str__(self) -> str:
        """Say how long the wait lasted."""
        return f"{self.seconds:g} s"
