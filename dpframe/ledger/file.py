"""Rows of a ledger in an SQLite file that processes, threads and notebooks share.

A connection is opened for each look and each spend, and closed after it. So none is ever carried
over a fork, which SQLite does not survive, and a file that was moved away is noticed; between uses
the file is complete, without a journal beside it.
"""

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from dpframe.errors import LedgerError
from dpframe.ledger.chain import FORMAT, Row, other_format

__all__ = ["LedgerFile"]

_APPLICATION = int.from_bytes(b"dpfL", "big")  # tells SQLite files of ledgers from others
_BUSY_SECONDS = 60
_PATIENCE = 0.001  # seconds between two attempts
_SIDECARS = ("-wal", "-shm", "-journal")
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
)


class LedgerFile:
    """The rows of one ledger on disk.

    Parameters
    ----------
    path
        Where the file is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))  # a later chdir must not change the ledger

    def create(self, header: Row) -> None:
        """Create the file with its header, unless there is one: all at once, or not at all.

        Raises
        ------
        LedgerError
            If it cannot be created.
        """
        if os.path.exists(self.path):
            return
        if not os.path.isdir(self.path.parent):
            raise LedgerError(
                f"the folder of the ledger {self.path} does not exist. Create it first."
            )
        self._refuse_sidecars()
        draft = self.path.with_name(f"{uuid4().hex}.new")
        try:
            with self._transaction(draft, "EXCLUSIVE", mode="rwc") as connection:
                _write_form(connection, header)
            os.link(draft, self.path)  # fails where another process was quicker
            _flush_folder(self.path.parent)
        except FileExistsError:
            return
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.path} cannot be created ({error.strerror}). Choose a folder on "
                "a local disk in which you can write."
            ) from error
        finally:
            for ending in ("", *_SIDECARS):
                with contextlib.suppress(OSError):
                    os.unlink(f"{draft}{ending}")

    def _refuse_sidecars(self) -> None:
        """Refuse to start beside what SQLite would take for unfinished spends of this ledger."""
        left = [f"{self.path}{ending}" for ending in _SIDECARS]
        left = [name for name in left if os.path.exists(name)]
        if left and not os.path.exists(self.path):
            raise LedgerError(
                f"{left[0]} is left from a ledger that is gone, and may hold its last spends. "
                "Restore that ledger beside it, or move it away."
            )

    def all_rows(self) -> list[Row]:
        """Read everything, after checking that the file is a ledger of this format.

        Raises
        ------
        LedgerError
            If it is not, or cannot be read.
        """
        with self._transaction(self.path, "DEFERRED") as connection:
            self._check_form(connection)
            rows = self._rows(connection, 0)
            # SQLite remembers the largest number ever used
            query = "SELECT seq FROM sqlite_sequence WHERE name = 'chain'"
            last = connection.execute(query).fetchone()
        if not rows or last != (rows[-1].number,):
            raise LedgerError(
                f"the ledger {self.path} was changed: entries after {len(rows) - 1} are missing. "
                "Nothing is charged to it. Restore the file from a copy."
            )
        return rows

    def rows_after(self, number: int, head: str) -> list[Row]:
        """Read what follows a row that was seen.

        Raises
        ------
        LedgerError
            If that row is not there any more, or the file cannot be read.
        """
        with self._transaction(self.path, "DEFERRED") as connection:
            return self._news(connection, number, head)

    @contextlib.contextmanager
    def appending(
        self, number: int, head: str
    ) -> Iterator[tuple[list[Row], Callable[[Row], object]]]:
        """Give the rows after one that was seen, and a function that appends one.

        While the context lasts, nobody else appends. What was appended is on disk when the context
        has ended, and not at all if it ends with an error.

        Raises
        ------
        LedgerError
            If the row that was seen is not there any more, or the file cannot be written.
        """
        with self._transaction(self.path, "IMMEDIATE") as connection:
            yield (
                self._news(connection, number, head),
                lambda row: connection.execute("INSERT INTO chain VALUES (?, ?, ?)", row),
            )

    def _news(self, connection: sqlite3.Connection, number: int, head: str) -> list[Row]:
        rows = self._rows(connection, number)
        if not rows or (rows[0].number, rows[0].hash) != (number, head):
            raise LedgerError(
                f"the ledger {self.path} was replaced or changed: entry {number} is not the one "
                "read before. Nothing is charged to it. Put back the file with the latest entries."
            )
        return rows[1:]

    def _rows(self, connection: sqlite3.Connection, first: int) -> list[Row]:
        query = "SELECT number, body, hash FROM chain WHERE number >= ? ORDER BY number"
        rows: list[Row] = []
        try:
            rows.extend(map(Row._make, connection.execute(query, (first,))))
        except sqlite3.Error as error:
            raise LedgerError(
                f"entry {first + len(rows)} of the ledger {self.path} cannot be read ({error}). "
                "Nothing is charged to it. Restore the file from a copy."
            ) from error
        return rows

    def _check_form(self, connection: sqlite3.Connection) -> None:
        pragmas = [f"PRAGMA {name}" for name in ("application_id", "user_version")]
        application, version = (connection.execute(pragma).fetchone()[0] for pragma in pragmas)
        if application != _APPLICATION:
            raise LedgerError(self._foreign())
        if version != FORMAT:
            raise LedgerError(other_format(str(self.path), version))
        query = "SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        if sorted(sql for (sql,) in connection.execute(query)) != sorted(_SCHEMA):
            raise LedgerError(
                f"the ledger {self.path} was changed: its table or the triggers that protect "
                "entry 0 and all after it are not as they were made. Restore the file from a copy."
            )

    @contextlib.contextmanager
    def _transaction(self, path: Path, kind: str, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        """Open a connection, and commit at the end."""
        try:
            with contextlib.closing(_connect(path, mode)) as connection:
                # on disk before the commit returns, on macOS, too
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA fullfsync = ON")
                if mode == "rwc":
                    connection.execute("PRAGMA journal_mode = WAL")
                _begin(connection, kind)
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(self._said(error, path)) from error

    def _foreign(self) -> str:
        return (
            f"{self.path} is not a ledger of dpframe, or its beginning is lost. Choose another "
            "path, or restore the ledger from a copy."
        )

    def _said(self, error: sqlite3.Error, path: Path) -> str:
        """Say what SQLite said, and the way out."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return self._foreign()
        if code == sqlite3.SQLITE_CANTOPEN and path == self.path and not os.path.exists(path):
            return (
                f"there is no ledger at {self.path}. To start one, give its budget: "
                "dpf.Ledger(path, budget=dpf.Budget(...))."
            )
        ways_out = {
            sqlite3.SQLITE_BUSY: f"Another process has kept it for {_BUSY_SECONDS} s: try again.",
            sqlite3.SQLITE_READONLY: "Get permission to write the file and its folder.",
            sqlite3.SQLITE_CANTOPEN: "It must be a file that you can read and write, in a folder "
            "in which you can write.",
            sqlite3.SQLITE_FULL: "Make room on the disk.",
        }
        way_out = ways_out.get(code, "Restore the file from a copy.")
        return f"the ledger {self.path} cannot be used ({error}): nothing was released. {way_out}"


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a file; only "rwc" creates one."""
    place = quote(os.fsencode(path.as_posix()))
    slash = "" if place.startswith("/") else "/"  # C:/ on Windows
    uri = f"file://{slash}{place}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)


def _begin(connection: sqlite3.Connection, kind: str) -> None:
    """Wait for one's turn, asking often: SQLite by itself asks so rarely that others get ahead."""
    deadline = time.monotonic() + _BUSY_SECONDS
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute(f"BEGIN {kind}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PATIENCE)
        else:
            break
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * _BUSY_SECONDS)}")


def _write_form(connection: sqlite3.Connection, header: Row) -> None:
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO chain VALUES (?, ?, ?)", header)


def _flush_folder(folder: Path) -> None:
    """Make sure that the name of a new file outlives a power cut."""
    if sys.platform == "win32":  # which cannot open folders, and keeps names by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
