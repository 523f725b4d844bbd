"""Names of a ledger's file: it must have one alone, because SQLite finds journals by name."""

import contextlib
import os
import sys
from pathlib import Path

from dpframe.errors import LedgerError

_SHORT_FILE = 1 << 12


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
        _remove_drafts(place, handle)
    if os.fstat(handle).st_nlink > 1:
        raise LedgerError(
            f"the ledger {path} has more than one name (a hard link): nothing was charged. Remove "
            "the other names, and use symbolic links instead."
        )
    if _mounted_alone(place, handle):
        raise LedgerError(
            f"the ledger {path} is mounted as a single file: nothing was charged. Mount the "
            "folder that it is in, so that what belongs to it is seen everywhere."
        )
    if not os.path.samestat(os.fstat(handle), os.stat(place)):
        raise LedgerError(
            f"the ledger {path} was replaced while it was opened: nothing was charged. Try again."
        )


def _remove_drafts(place: Path, handle: int) -> None:
    """Remove the first name of a new file, left by a process that was killed while creating it."""
    for draft in place.parent.glob("*.new"):
        with contextlib.suppress(OSError):
            if draft != place and os.path.samestat(os.lstat(draft), os.fstat(handle)):
                os.unlink(draft)


def _mounted_alone(place: Path, handle: int) -> bool:
    """Whether a file is mounted without its folder, as far as the system tells: on Linux."""
    if sys.platform != "linux":
        return False
    folder = os.open(place.parent, os.O_PATH)
    try:
        return _mount_of(handle) != _mount_of(folder)
    finally:
        os.close(folder)


def _mount_of(handle: int) -> str:
    """Give the number of the mount that an open file was reached through, if it is told."""
    try:
        told = _read(f"/proc/self/fdinfo/{handle}")
    except OSError:
        return ""
    return next((line.decode() for line in told.splitlines() if line.startswith(b"mnt_id:")), "")


def _read(path: str) -> bytes:
    """Read the start of a short file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, _SHORT_FILE)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Make sure that the name of a new file outlives a power cut."""
    if sys.platform == "win32":  # which cannot open folders, and keeps names by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
