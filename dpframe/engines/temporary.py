"""Temporary folders that do not outlive their process for long, even if it is killed.

A signal that ends the process removes them first.

Each holds a file that its process keeps locked. The system frees the lock when the process ends, in
whatever way, and then the next one that makes such folders removes what is left. Numbers of
processes would not do: they are given to others.
"""

import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from types import FrameType

from dpframe.ledger import platform

_NAME = re.compile(r"\.?dpframe-(rows|trial|ledger)-[a-z0-9_]{8}")
_KEEPER = "in-use"
_ATTEMPTS = 100  # at a name that nobody has taken
_ENDING = ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGBREAK")
_BY_SIGNAL = 128  # what shells add to the number of a signal


@contextmanager
def temporary_folder(prefix: str, place: str | Path | None = None) -> Iterator[Path]:
    """Make a folder that only its owner may open, and remove it with all it holds.

    Parameters
    ----------
    prefix
        What its name begins with: one of those that `remove_leftovers` looks for.
    place
        The folder in which it is made; `None`: where the system keeps temporary files.
    """
    with ExitStack() as stack:
        stack.enter_context(_ended_afterwards())
        for _ in range(_ATTEMPTS):
            name = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True)
            )
            keeper = _lock_file(Path(name, _KEEPER))
            if keeper is not None:
                stack.enter_context(keeper)
                break
        yield Path(name)


class _Ended(SystemExit):
    """A signal ends the process, as soon as its folders are removed."""


@contextmanager
def _ended_afterwards() -> Iterator[None]:
    """Let signals that would end the process at once unwind it first, then do so.

    Only the main thread can say what signals do; what others leave is removed at the next start.
    """
    came: list[int] = []

    def unwind(number: int, _: FrameType | None) -> None:
        came.append(number)
        if came[1:]:
            return  # what was begun goes on
        raise _Ended(_BY_SIGNAL + number)

    in_main = threading.current_thread() is threading.main_thread()
    known = [getattr(signal, name) for name in _ENDING if in_main and hasattr(signal, name)]
    heard = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    for number in heard:
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])


def _lock_file(path: Path) -> FileIO | None:
    """Lock a file in a new folder; `None` where another process takes it for a leftover."""
    try:
        keeper = open(path, "xb", buffering=0)
    except FileNotFoundError:
        return None
    try:
        if platform.HERE.try_to_lock(keeper.fileno()) and path.exists():
            return keeper
    except OSError:  # no locks here: without the file, nobody takes the folder for a leftover
        with suppress(OSError):
            path.unlink()
        return keeper
    keeper.close()
    return None


def remove_leftovers(place: str | Path | None = None) -> None:
    """Remove what killed processes of this user left in a folder; nothing that is in use.

    Parameters
    ----------
    place
        The folder; `None`: where the system keeps temporary files.
    """
    with suppress(OSError), os.scandir(place or tempfile.gettempdir()) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and _is_own(entry):
                _remove(Path(entry.path))


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, not a link to one, of the user who asks."""
    if not entry.is_dir(follow_symlinks=False):
        return False
    return platform.HERE.name == "win32" or entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _remove(folder: Path) -> None:
    """Remove a folder that nobody keeps any more."""
    # what may be no file is opened without following links, or waiting for pipes
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with suppress(OSError):
        folder.rmdir()  # if its process was killed before it made anything
    try:
        with open(os.open(folder / _KEEPER, os.O_RDONLY | careful), "rb", buffering=0) as keeper:
            if not platform.HERE.try_to_lock(keeper.fileno()):
                return
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # no leftover, or no locks here
        return
    shutil.rmtree(folder, ignore_errors=True)  # Windows removes no file that is open
