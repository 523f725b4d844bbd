"""Rows of a ledger in an SQLite file that processes, threads and notebooks share.

A connection is opened for every reading and every spend, and closed after it, under our own lock on
the file. So none is ever carried over a fork, which SQLite does not survive, and a file that was
moved away is noticed; between uses the file is complete, without a journal beside it.

What SQLite writes beside a file is found by name, and a file may have several locks. Spends are
kept in the file itself (no write-ahead log), a journal left by a crash is used only where the file
is broken without it, and files with a second name are refused.
"""

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

from dpframe.errors import (
    LedgerAlteredError,
    LedgerBusyError,
    LedgerDiskError,
    LedgerError,
    ReleaseError,
)
from dpframe.ledger import locks, platform
from dpframe.ledger.chain import (
    FORMAT,
    Chain,
    Row,
    broken,
    form_was_changed,
    news_after,
    other_format,
)
from dpframe.ledger.leases import LASTS, Lease
from dpframe.ledger.platform import Deadline

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
_DAMAGE = (LedgerAlteredError, "Restore the file from a copy.")
_RESTORE = "Nothing is charged to it. Restore the file from a copy."


def of_sqlite(path: Path, place: Path, error: Exception) -> LedgerError:
    """Say what SQLite said of a file, and the way out; `place` is the file without links."""
    code = _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return LedgerError(foreign(path))
    kind, way_out = _KINDS.get(code, _DAMAGE)
    places = (place, place.parent)
    if code == sqlite3.SQLITE_CANTOPEN and all(os.access(p, os.R_OK | os.W_OK) for p in places):
        kind, way_out = LedgerDiskError, _ROOM  # for the journal
    return kind(f"the ledger {path} cannot be used ({error}): nothing was charged. {way_out}")


def of_system(path: Path, error: OSError) -> LedgerError:
    """Say what the system said of a file, and the way out."""
    kind, way_out = _OF_SYSTEM.get(error.errno, (LedgerError, _RIGHTS))
    reason = f"the ledger {path} cannot be used ({error.strerror})"
    return kind(f"{reason}: nothing was charged. {way_out}")


def charged_perhaps(where: str) -> ReleaseError:
    """Say that a disk failed when a charge was on it, or may have been."""
    return ReleaseError(
        f"{where} cannot be used: its disk, or the way to it, failed at the end of a charge. Take "
        "the amount as spent, unless ledger.entries shows that it is not; nothing was released."
    )


def noise_not_noted(where: str) -> ReleaseError:
    """Say that a run ends before its noise, which is drawn only where that is on disk."""
    return ReleaseError(f"{where} cannot be used to note that noise is about to be drawn")


def foreign(path: Path) -> str:
    """Say that a file is none of ours."""
    return (
        f"{path} is not a ledger of dpframe, or its beginning is lost. Choose another "
        "path, or restore the ledger from a copy."
    )


def _code(error: Exception) -> int:
    """Give what SQLite calls an error, without the details."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


T = TypeVar("T")
Mark: TypeAlias = tuple[int | bytes, ...]
"""What changes in a file with every transaction: SQLite counts them in its header."""

_APPLICATION = int.from_bytes(b"dpfL", "big")  # tells SQLite files of ledgers from others
_SIDECARS = ("-wal", "-shm", "-journal")
_HEADER, _LONGEST_ROW = 100, 1 << 22  # bytes; parsed JSON takes thirty times as many
_NO_LOG = b"\x01\x01"  # bytes 18 and 19 of the header where spends are kept in the file itself
_SCHEMA = (
    "CREATE TABLE chain (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, "
    "hash TEXT NOT NULL)",
    "CREATE TRIGGER no_update BEFORE UPDATE ON chain BEGIN "
    "SELECT RAISE(ABORT, 'a ledger can only grow'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON chain BEGIN "
    "SELECT RAISE(ABORT, 'a ledger can only grow'); END",
    # INSERT OR REPLACE would delete without asking the trigger above
    "CREATE TRIGGER in_order BEFORE INSERT ON chain "
    "WHEN NEW.number IS NOT (SELECT coalesce(max(number), -1) + 1 FROM chain) BEGIN "
    "SELECT RAISE(ABORT, 'a ledger grows at its end'); END",
    "CREATE TABLE lease (release_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, "
    "beat REAL NOT NULL, expires REAL NOT NULL) WITHOUT ROWID",
)
_LEASE = "SELECT release_id, epoch, owner, beat, expires FROM lease WHERE release_id = ?"
_RENEW = "UPDATE lease SET beat = ?, expires = ? WHERE release_id = ? AND epoch = ?"


def is_ledger(path: Path) -> bool:
    """Whether a file begins as ledgers of this format do: as SQLite's, with version and mark."""
    with path.open("rb") as file:
        head = file.read(72)
    marks = int.from_bytes(head[60:64]), int.from_bytes(head[68:])
    return head.startswith(b"SQLite format 3\0") and marks == (FORMAT, _APPLICATION)


class LedgerFile:
    """The rows of one ledger on disk.

    Parameters
    ----------
    path
        Where the file is, or will be.
    patience
        Seconds that a wait for others may last; `None`: the usual ones.
    """

    def __init__(self, path: Path, patience: float | None = None) -> None:
        self.patience = patience
        self.path = Path(os.path.abspath(path))  # a later chdir must not change the ledger
        self.left: Mark | None = None
        """How the file looked after it was last used; `None` where that does not tell."""

    @property
    def place(self) -> str:
        """What messages call it."""
        return str(self.path)

    @property
    def address(self) -> str:
        """The path that opens it again."""
        return self.place

    def looks_like(self, left: object) -> bool:
        """Whether nobody wrote to the file since it looked so, as writers count who mean no harm.

        What else was done to it is found by whoever reads it.

        Raises
        ------
        LedgerError
            If others keep it for long, or it is no file.
        """
        try:
            return left is not None and self._locked(self.path, _mark) == left
        except OSError:  # whoever reads it says what is wrong
            return False

    def exists(self) -> bool:
        """Whether something is there."""
        return os.path.lexists(self.path)

    def check_new(self, *, taken: bool = False) -> None:
        """Refuse a path where something is already, or in no folder."""
        if taken or self.exists():
            raise self._taken_error()
        if not os.path.isdir(self.path.parent):
            reason = f"the folder of the ledger {self.path} does not exist. Create it first."
            raise LedgerError(reason, parameter="path")

    def create(self, rows: Sequence[Row]) -> None:
        """Create the file with its first rows: all at once, or not at all.

        Raises
        ------
        LedgerError
            If there is something of that name already, or the file cannot be created.
        """
        self.check_new()
        self._refuse_sidecars()
        draft = self.path.with_name(f"{uuid4().hex}.new")

        def write(_: int) -> None:
            self._transaction(draft, "EXCLUSIVE", lambda opened: _write_form(opened, rows))

        try:
            self._locked(draft, write, new=True)
            os.link(draft, self.path)  # fails where another process was quicker
            with contextlib.suppress(FileNotFoundError):  # others remove it, too
                os.unlink(draft)
            platform.HERE.flush_folder(self.path.parent)
        except FileExistsError:
            raise self._taken_error() from None
        except OSError as error:
            if error.errno in NO_ROOM:
                raise of_system(self.path, error) from error
            reason = f"the ledger {self.path} cannot be created ({error.strerror})."
            remedy = "Choose a folder on a local disk in which you can write."
            raise LedgerError(f"{reason} {remedy}") from error
        finally:
            for ending in ("", *_SIDECARS):
                with contextlib.suppress(OSError):
                    os.unlink(f"{draft}{ending}")

    def _refuse_sidecars(self) -> None:
        """Refuse to start beside what SQLite would take for unfinished spends of this ledger."""
        for sidecar in (f"{self.path}{ending}" for ending in _SIDECARS):
            if os.path.exists(sidecar):
                reason = f"{sidecar} is left from a ledger that is gone, and may hold its last"
                remedy = "spends. Restore that ledger beside it, or move it away."
                raise LedgerError(f"{reason} {remedy}")

    def all_rows(self) -> list[Row]:
        """Read everything, after checking that the file is a ledger of this format.

        Raises
        ------
        LedgerError
            If it is not, or cannot be read.
        """
        return self._transact("DEFERRED", self._everything)

    def rows_after(self, number: int, head: str) -> list[Row]:
        """Read what follows a row that was seen.

        Raises
        ------
        LedgerError
            If that row is not there any more, or the file cannot be read.
        """
        return self._transact("DEFERRED", lambda connection: self._news(connection, number, head))

    def append(
        self,
        number: int,
        head: str,
        decide: Callable[[list[Row], Lease | None], tuple[T, Row | None]],
        claim: Lease | None = None,
    ) -> T:
        """Append the row that is decided on in view of those after one that was seen.

        Nobody else appends meanwhile. The row is on disk when this returns, and if it raises, then
        not at all, but for an interrupt that comes after the row is written, and a disk that fails
        at its end.

        Parameters
        ----------
        number, head
            Number and hash of the row that was seen.
        decide
            Takes the rows after it, and the lease on the release of the claim; gives what to
            return, and the row to append, if any.
        claim
            The lease that goes with the row.

        Raises
        ------
        LedgerError
            If the row that was seen is not there any more, or the file cannot be written.
        """

        def appended(connection: sqlite3.Connection) -> T:
            held = None if claim is None else _lease(connection, claim.release_id)
            decided, row = decide(self._news(connection, number, head), held)
            if row is not None:
                connection.execute("INSERT INTO chain VALUES (?, ?, ?)", row)
            if row is not None and claim is not None:
                beat = time.time()
                lease = (*claim[:3], beat, beat + LASTS)
                connection.execute("REPLACE INTO lease VALUES (?, ?, ?, ?, ?)", lease)
            return decided

        return self._transact("EXCLUSIVE", appended)

    def lease_of(self, release_id: str) -> Lease | None:
        """Read the lease on a release, and the time; `None`: it has none.

        Raises
        ------
        LedgerError
            If the file cannot be read.
        """
        return self._transact("DEFERRED", lambda connection: _lease(connection, release_id))

    def renew(self, lease: Lease, seconds: float) -> bool:
        """Let a lease last so many seconds from now; 0: it has ended. `False`: it was taken.

        Raises
        ------
        LedgerError
            If the file cannot be written.
        """
        beat = time.time()
        expires = beat + seconds if seconds else 0.0
        values = (beat, expires, lease.release_id, lease.epoch)
        return self._transact("EXCLUSIVE", lambda on: on.execute(_RENEW, values).rowcount > 0)

    def _everything(self, connection: sqlite3.Connection) -> list[Row]:
        self._check_form(connection)
        rows = self._rows(connection, 0)
        self._check_end(connection, rows)
        return rows

    def _news(self, connection: sqlite3.Connection, number: int, head: str) -> list[Row]:
        rows = self._rows(connection, number)
        news = news_after(rows, number, head, str(self.path), "file")
        self._check_end(connection, rows)
        return news

    def _rows(self, connection: sqlite3.Connection, first: int) -> list[Row]:
        query = "SELECT number, body, hash FROM chain WHERE number >= ? ORDER BY number"
        rows: list[Row] = []
        try:
            for row in map(Row._make, connection.execute(query, (first,))):
                rows.append(row)
                if row[0] != rows[0][0] + len(rows) - 1:  # pages may lead back to others
                    raise LedgerAlteredError(broken(str(self.path), first + len(rows) - 1))
        except (sqlite3.Error, UnicodeError) as error:
            if _code(error) in _KINDS:  # it cannot work now: nothing in the file is wrong
                raise
            reason = (
                f"entry {first + len(rows)} of the ledger {self.path} cannot be read ({error})."
            )
            raise LedgerAlteredError(f"{reason} {_RESTORE}") from error
        return rows

    def _check_end(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Compare the last row with the largest number ever used, which SQLite remembers."""
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chain'").fetchone()
        if not rows or last != (rows[-1].number,):
            number = rows[-1].number if rows else -1
            reason = f"the ledger {self.path} was changed: entries after {number} are missing."
            raise LedgerAlteredError(f"{reason} {_RESTORE}")

    def _check_form(self, connection: sqlite3.Connection) -> None:
        pragmas = [f"PRAGMA {name}" for name in ("application_id", "user_version")]
        application, version = (connection.execute(pragma).fetchone()[0] for pragma in pragmas)
        if application != _APPLICATION:
            raise LedgerError(foreign(self.path))
        if version != FORMAT:
            raise LedgerError(other_format(str(self.path), version))
        query = "SELECT sql FROM sqlite_schema WHERE type != 'table' OR name NOT GLOB 'sqlite_*'"
        form = [sql for (sql,) in connection.execute(query).fetchmany(len(_SCHEMA) + 1)]
        if len(form) != len(_SCHEMA) or set(form) != set(_SCHEMA):
            raise LedgerAlteredError(form_was_changed(str(self.path)))

    def _transact(self, kind: str, act: Callable[[sqlite3.Connection], T]) -> T:
        """Act within a transaction in the file, which nobody else uses meanwhile."""
        place = Path(os.path.realpath(self.path))  # SQLite, too, looks for journals there

        def checked(handle: int) -> T:
            locks.check_names(self.path, place, handle)
            self._check_journal(place)
            done = self._transaction(place, kind, act)
            self.left = _mark(handle)
            return done

        try:
            locks.remove_drafts(place)
            return self._locked(place, checked)
        except FileNotFoundError:
            raise LedgerError(
                f"there is no ledger at {self.path}. Is this the right folder, and is its disk "
                "mounted? To start one, dpf.Ledger.create(path, budget=dpf.Budget(...)), or "
                "budget= beside ledger= in a declaration.",
                parameter="path",
            ) from None
        except OSError as error:
            raise of_system(self.path, error) from error

    def _check_journal(self, place: Path) -> None:
        """Remove a journal left by a crash where the file is whole without it.

        SQLite would write it back over all that was spent since under another name, or over a copy
        that was put back. A whole file holds every spend that was ever reported.
        """
        journal = f"{place}-journal"
        if os.path.isdir(journal):
            reason = f"{journal} is a folder, and must be free for the journal of the ledger:"
            raise LedgerError(f"{reason} nothing was charged. Move it away.")
        if os.path.exists(journal) and self._is_whole(place):
            os.unlink(journal)
            platform.HERE.flush_folder(place.parent)

    def _is_whole(self, place: Path) -> bool:
        def read(connection: sqlite3.Connection) -> bool:
            Chain.of_rows(self._everything(connection), str(self.path))
            faults: list[tuple[str]] = connection.execute("PRAGMA integrity_check").fetchall()
            return faults == [("ok",)]

        try:
            return _connect(place, "ro&immutable=1", read, self.patience)
        except (sqlite3.Error, LedgerError, UnicodeError):
            return False

    def _transaction(self, place: Path, kind: str, act: Callable[[sqlite3.Connection], T]) -> T:
        """Open a connection, act, and commit; whatever is raised takes all back."""

        def committed(connection: sqlite3.Connection) -> T:
            if kind == "EXCLUSIVE":  # to read must change nothing: it may be no ledger
                connection.execute("PRAGMA journal_mode = DELETE")
            # on disk before the commit returns, as is the end of its journal; on macOS, too. Of the
            # five flushes none can be spared: without those of the journal, of its name or of the
            # file, a power cut breaks the file; without that of the journal's length, or of its
            # end, another program that opens the file first does so, or takes back a spend
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute(f"BEGIN {kind}")
            done = act(connection)
            connection.execute("COMMIT")
            return done

        try:
            return _connect(place, "rw", committed, self.patience)
        except (sqlite3.Error, UnicodeError) as error:  # the latter from messages of the former
            raise of_sqlite(self.path, place, error) from error

    def _locked(self, place: Path, act: Callable[[int], T], *, new: bool = False) -> T:
        return locks.with_locked_file(place, act, new=new, patience=self.patience)

    def _taken_error(self) -> LedgerError:
        reason = f"there is a file at {self.path} already."
        remedy = "To use the ledger in it, open it: dpf.Ledger(path); or choose another path."
        return LedgerError(f"{reason} {remedy}", parameter="path")


def _connect(
    place: Path, mode: str, act: Callable[[sqlite3.Connection], T], patience: float | None
) -> T:
    """Connect to a file that exists, and act."""
    quoted = quote(os.fsencode(place.as_posix()))
    slash = "" if quoted.startswith("/") else "/"  # C:/ on Windows
    uri = f"file://{slash}{quoted}?mode={mode}{platform.HERE.options_of_sqlite}"
    opened: list[sqlite3.Connection] = []

    def connected() -> T:
        seconds = Deadline.begin(patience).seconds
        opened.append(sqlite3.connect(uri, uri=True, timeout=seconds, isolation_level=None))
        opened[0].text_factory = _text
        opened[0].setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
        return act(opened[0])

    def free() -> None:  # the locks of SQLite, too, and what was not committed
        for connection in opened:
            connection.close()

    return locks.freed_surely(connected, free)


def _lease(connection: sqlite3.Connection, release_id: str) -> Lease | None:
    """Read a lease; one that was not written here is none."""
    row = connection.execute(_LEASE, (release_id,)).fetchone()
    kinds = (str, int, str, float, float)
    if row is None or tuple(map(type, row)) != kinds:
        return None
    release_id, epoch, owner, beat, expires = row
    return Lease(release_id, epoch, owner, beat, expires, time.time())


def _mark(handle: int) -> Mark | None:
    """Mark what an open file looks like; `None` where that cannot be told."""
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        header, status = os.read(handle, _HEADER), os.fstat(handle)
    except OSError:  # a spend may be on disk by now, which must not look like one that failed
        return None
    if header[18:20] != _NO_LOG:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, header


def _text(raw: bytes) -> str:
    """Read a text whatever its bytes: a changed one does not continue the chain."""
    return raw.decode("utf-8", "replace")


def _write_form(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    pragmas = f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {FORMAT}"
    for statement in (*pragmas, *_SCHEMA):
        connection.execute(statement)
    connection.executemany("INSERT INTO chain VALUES (?, ?, ?)", rows)
