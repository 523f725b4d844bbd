"""What SQLite and the system say of a ledger's file, as errors: a full disk is no damage."""

import errno
import os
import sqlite3
from pathlib import Path

from dpframe import errors
from dpframe.errors import LedgerBusyError, LedgerDiskError, LedgerError, ReleaseError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where nothing more can be written: also of a quota, or of a limit."""

_KEPT = "Another program keeps it for long: try again."
_RIGHTS = "It must be a file that you can read and write, in a folder in which you can write."
_ROOM = "Make room on the disk, and try again."
_FAILS = "The disk fails, or a quota or a limit on the size of files is reached: try again."
_KINDS: dict[int, tuple[type[LedgerError], str]] = {
    sqlite3.SQLITE_BUSY: (LedgerBusyError, _KEPT),
    sqlite3.SQLITE_FULL: (LedgerDiskError, _ROOM),
    sqlite3.SQLITE_IOERR: (LedgerDiskError, _FAILS),
    sqlite3.SQLITE_READONLY: (LedgerError, "Get permission to write the file and its folder."),
    sqlite3.SQLITE_PERM: (LedgerError, _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: (LedgerError, _RIGHTS),
}
_OF_SYSTEM: dict[int | None, tuple[type[LedgerError], str]] = {
    **dict.fromkeys(NO_ROOM, (LedgerDiskError, _ROOM)),
    errno.EIO: (LedgerDiskError, _FAILS),
}
_DAMAGE = (errors.LedgerAlteredError, "Restore the file from a copy.")


def of_sqlite(path: Path, place: Path, error: Exception) -> LedgerError:
    """Say what SQLite said of a file, and the way out; `place` is the file without links."""
    code = _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return LedgerError(foreign(path))
    kind, way_out = _KINDS.get(code, _DAMAGE)
    if code == sqlite3.SQLITE_CANTOPEN and _may_write(place):
        kind, way_out = LedgerDiskError, _ROOM  # for the journal
    return kind(f"the ledger {path} cannot be used ({error}): nothing was charged. {way_out}")


def of_system(path: Path, error: OSError) -> LedgerError:
    """Say what the system said of a file, and the way out."""
    kind, way_out = _OF_SYSTEM.get(error.errno, (LedgerError, _RIGHTS))
    return kind(
        f"the ledger {path} cannot be used ({error.strerror}): nothing was charged. {way_out}"
    )


def charged_perhaps(where: str) -> ReleaseError:
    """Say that a disk failed when a charge was on it, or may have been."""
    return ReleaseError(
        f"{where} cannot be used: its disk, or the way to it, failed at the end of a charge. Take "
        "the amount as spent, unless ledger.entries shows that it is not; nothing was released."
    )


def noise_not_noted(where: str) -> ReleaseError:
    """Say that a run ends before its noise, which is drawn only where that is on disk."""
    return ReleaseError(f"{where} cannot be used to note that noise is about to be drawn")


def is_damage(error: Exception) -> bool:
    """Whether SQLite says that what is in the file is wrong, not that it cannot work now."""
    return _code(error) not in _KINDS


def foreign(path: Path) -> str:
    """Say that a file is none of ours."""
    return (
        f"{path} is not a ledger of dpframe, or its beginning is lost. Choose another "
        "path, or restore the ledger from a copy."
    )


def _may_write(place: Path) -> bool:
    return all(os.access(one, os.R_OK | os.W_OK) for one in (place, place.parent))


def _code(error: Exception) -> int:
    """Give what SQLite calls an error, without the details."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
