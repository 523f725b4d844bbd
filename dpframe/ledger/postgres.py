"""Rows of a ledger in a table of PostgreSQL, which many machines share.

A connection is opened for every reading and every spend, and closed after it, so that none is
carried over a fork. Every transaction begins with a lock on the ledger that ends with it: whoever
holds it sees what became of all spends before, also of one whose connection was cut while it was
committed. Spends are serializable transactions, so that without the lock, too, none is lost.

Who may only read and insert cannot edit: triggers of the owner of the table refuse all but a row
that continues the chain.
"""

import math
import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from sqlalchemy import URL, Connection, TextClause, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, ProgrammingError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpframe.arguments import visible
from dpframe.errors import (
    LedgerAlteredError,
    LedgerBusyError,
    LedgerDiskError,
    LedgerError,
    TemporaryError,
)
from dpframe.ledger.chain import Row, broken, form_was_changed, news_after
from dpframe.ledger.leases import LASTS, Lease
from dpframe.ledger.locks import KEEPERS, freed_surely, in_use_here
from dpframe.ledger.platform import Deadline
from dpframe.ledger.table_form import MARK, source_of, statements_to_make

T = TypeVar("T")

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_PAUSE = 0.003  # seconds between two attempts
_LOOK = 5.0  # seconds that there are at least to look up a commit that was cut
# what the system tells of a network that is gone comes after hours otherwise
_CONNECT = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
    "application_name": "dpframe",
}
_CONNECTING = 10  # seconds that a host may take to answer, whatever the patience
# What the server limits is set in each transaction: poolers refuse options of a connection. It does
# so for what it waits for; `_Cutter` ends the wait for the server itself.
_LIMITS = (
    "set_config('lock_timeout', :patience, true), set_config('statement_timeout', :patience, true)"
)
# the lock, which a client that is gone does not keep; and a commit that returns is on disk
_BEGIN = text(
    "SELECT pg_try_advisory_xact_lock((1685087820::bigint << 32) | :name ::regclass::oid::bigint), "
    f"{_LIMITS}, "
    "set_config('idle_in_transaction_session_timeout', '30000', true), "
    "set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN "
    "('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
)
_FORM = text(
    "SELECT obj_description(c.oid, 'pg_class') = :mark, "
    "c.relkind = 'r' AND NOT (c.relrowsecurity OR c.relhasrules OR c.relhassubclass) "
    "AND 2 = (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) "
    "AND 2 = (SELECT count(*) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
    "WHERE t.tgrelid = c.oid AND t.tgenabled = 'O' AND p.prosrc = :source AND "
    "(t.tgname, t.tgtype) IN (('only_grows', 31), ('is_never_emptied', 34))) "
    "FROM pg_class c WHERE c.oid = :name ::regclass"
)
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_LEASE = (
    "SELECT release_id, epoch, owner, beat, expires, {now} FROM {leases} "
    "WHERE release_id = :release_id"
)
_CLAIM = (
    "INSERT INTO {leases} VALUES (:release_id, :epoch, :owner, {now}, {now} + :seconds) "
    "ON CONFLICT (release_id) DO UPDATE SET epoch = excluded.epoch, owner = excluded.owner, "
    "beat = excluded.beat, expires = excluded.expires"
)
_RENEW = (
    "UPDATE {leases} SET beat = {now}, "
    "expires = CASE WHEN CAST(:seconds AS float8) = 0 THEN 0 ELSE {now} + :seconds END "
    "WHERE release_id = :release_id AND epoch = :epoch"
)
# where the commit waits for a standby, a limit would let it return before that has the row
_INSERT = (
    "INSERT INTO {table} VALUES (:number, :body, :hash) "
    "RETURNING set_config('statement_timeout', '0', true)"
)
_SELECT = "SELECT number, body, hash FROM {table} WHERE number >= :first ORDER BY number"

_AGAIN = ("40001", "40P01", "23505")  # another spend was quicker
_TAKEN = ("42P07", "42710", "42723", "23505")  # a table, a function of that name; two at once
_ABSENT = ("42P01", "3F000")
_DAMAGE = ("XX001", "XX002")
_TEMPORARY = ("08", "25P03", "53", "55", "57")  # connections, resources, an operator
_DISK = ("53100", "58")
_LATER = "Try again when the server answers."
_REFUSED = ("authentication", "does not exist", "pg_hba.conf", "permission", "not permitted")
_RIGHTS = (
    "Releases need USAGE on the schema dpframe, SELECT and INSERT on the table, and plans "
    "UPDATE on its leases."
)


class _Kind(NamedTuple):
    """How a transaction sees others, and whether it writes."""

    isolation: Literal["READ COMMITTED", "SERIALIZABLE"]
    writes: bool


# each statement that reads sees what was committed before the lock was had
_READ = _Kind("READ COMMITTED", writes=False)
_MAKING = _Kind("READ COMMITTED", writes=True)
_SPEND = _Kind("SERIALIZABLE", writes=True)


class _Busy(Exception):  # noqa: N818  # it is caught here
    """Another transaction has the lock, or was quicker: this one came to nothing."""


class _Cut(Exception):  # noqa: N818
    """The connection ended while a transaction was committed."""


class _Cutter:
    """Ends a connection at a deadline, though its server is stopped and the network well.

    It shuts down a duplicate of the socket: the number of the socket itself may be given to another
    file at any time. Then libpq reads an end of file.
    """

    def __init__(self, handle: int, deadline: Deadline) -> None:
        self._socket = socket.socket(fileno=socket.dup(handle))
        self._timer = threading.Timer(deadline.left, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def _cut(self) -> None:
        with suppress(OSError):  # it ended meanwhile
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut nothing any more; once more does nothing."""
        self._timer.cancel()
        self._socket.close()


class LedgerTable:
    """The rows of one ledger in a database.

    Parameters
    ----------
    url
        `postgresql://host/database?ledger=name`, with what else a connection needs.
    patience
        Seconds that a wait for others may last; `None`: the usual ones.

    Raises
    ------
    LedgerError
        If it is no such URL. No message shows it as a whole: it may hold a password.
    """

    def __init__(self, url: str, patience: float | None = None) -> None:
        self.path: Path | None = None
        self.patience = patience
        self.address = url
        self.left: object = None
        read = _read(url)
        name = read.query.get("ledger", "ledger")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            rule = "must be of small letters, digits and _, and of at most 48"
            raise LedgerError(f"ledger= in the URL of a ledger {rule}.", parameter="path")
        query = {key: value for key, value in read.query.items() if key != "ledger"}
        hosts = read.host or query.get("host", "")
        host = hosts if isinstance(hosts, str) else ",".join(hosts)
        port = f":{read.port}" if read.port else ""
        self.place = f"postgresql://{host}{port}/{read.database or ''}?ledger={name}"
        self._table, self._name = f'"dpframe"."{name}"', name
        self._leases = f'"dpframe"."{name}_leases"'
        self._engine = create_engine(
            read.set(drivername="postgresql+psycopg", query={**_CONNECT, **query}),
            poolclass=NullPool,
            hide_parameters=True,
            pool_reset_on_return=None,
        )
        # when an attempt ends, and what cuts its connection then: the event below tells neither
        self._attempts = threading.local()
        event.listen(self._engine, "do_connect", self._connected)

    def looks_like(self, left: object) -> bool:
        """Answer no: to look takes as long as to read what is new."""
        return False

    def exists(self) -> bool:
        """Whether there is a table of its name."""
        query, name = text("SELECT to_regclass(:name) IS NOT NULL"), {"name": self._table}
        ends = Deadline.begin(self.patience)
        return self._attempt(_READ, lambda on: bool(on.execute(query, name).scalar_one()), ends)

    def check_new(self, *, taken: bool = False) -> None:
        """Refuse a name that is taken, and a database that cannot be used."""
        if self.exists() or taken:
            raise self._taken_error()

    def create(self, rows: Sequence[Row]) -> None:
        """Create the table, with what protects it and its first rows: all at once, or not at all.

        Raises
        ------
        LedgerError
            If there is one of that name already, or it cannot be created.
        """
        deadline = Deadline.begin(self.patience)

        def make(connection: Connection) -> None:
            connection.execute(text(f"SELECT {_LIMITS}"), {"patience": _milliseconds(deadline)})
            has = text("SELECT to_regnamespace('dpframe') IS NOT NULL")
            if not connection.execute(has).scalar_one():
                connection.exec_driver_sql("CREATE SCHEMA dpframe")
            for statement in statements_to_make(self._table, self._function, self._leases):
                connection.exec_driver_sql(statement)
            self._insert(connection, rows)

        self.check_new()
        try:
            self._attempt(_MAKING, make, deadline)
        except _Busy:
            raise self._taken_error() from None
        except _Cut as cut:
            reason = f"whether the ledger {self.place} was made is not known: {cut}."
            raise LedgerDiskError(f"{reason} Open it: dpf.Ledger(path).") from None

    def all_rows(self) -> list[Row]:
        """Read everything, after checking that the table is a ledger, and protected.

        Raises
        ------
        LedgerError
            If it is not, or cannot be read.
        """

        def everything(connection: Connection) -> list[Row]:
            if not self._is_protected(connection):
                raise LedgerAlteredError(form_was_changed(self.place))
            return self._rows(connection, 0)

        return self._transact(_READ, everything)

    def rows_after(self, number: int, head: str) -> list[Row]:
        """Read what follows a row that was seen.

        Raises
        ------
        LedgerError
            If that row is not there any more, or the table cannot be read.
        """
        return self._transact(_READ, lambda on: self._news(on, number, head))

    def append(
        self,
        number: int,
        head: str,
        decide: Callable[[list[Row], Lease | None], tuple[T, Row | None]],
        claim: Lease | None = None,
    ) -> T:
        """Append the row that is decided on in view of those after one that was seen.

        The row is on the server's disk when this returns, and if it raises, then not at all, but
        for an interrupt that comes after the row is sent, and a server that cannot be asked after
        it: what became of a commit that was cut is read once the lock is free again.

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
            If the row that was seen is not there any more, or the table cannot be written.
        """
        last: list[tuple[T, Row | None]] = []
        deadline = Deadline.begin(self.patience)

        def appended(connection: Connection) -> None:
            held = None if claim is None else self._lease(connection, claim.release_id)
            last[:] = [decide(self._news(connection, number, head), held)]
            row = last[0][1]
            if row is not None:
                self._insert(connection, [row])
            if row is not None and claim is not None:
                values = {**claim._asdict(), "seconds": LASTS}
                connection.execute(self._about_leases(_CLAIM), values)

        try:
            self._transact(_SPEND, appended, deadline)
        except _Cut as cut:
            row = last[0][1]
            if row is not None and not self._holds(row, Deadline(max(deadline.left, _LOOK))):
                raise self._unusable(LedgerBusyError, cut, _LATER) from None
        return last[0][0]

    def lease_of(self, release_id: str) -> Lease | None:
        """Read the lease on a release, and the time of the server; `None`: it has none.

        Raises
        ------
        LedgerError
            If the table cannot be read.
        """
        return self._transact(_READ, lambda on: self._lease(on, release_id))

    def renew(self, lease: Lease, seconds: float) -> bool:
        """Let a lease last so many seconds from now; 0: it has ended. `False`: it was taken.

        Raises
        ------
        LedgerError
            If the table cannot be written.
        """
        statement = self._about_leases(_RENEW)
        values = {**lease._asdict(), "seconds": seconds}
        try:
            done = self._transact(_MAKING, lambda on: on.execute(statement, values).rowcount)
        except _Cut as cut:
            raise self._unusable(LedgerBusyError, cut, _LATER) from None
        return done > 0

    def _lease(self, connection: Connection, release_id: str) -> Lease | None:
        values = {"release_id": release_id}
        row = connection.execute(self._about_leases(_LEASE), values).one_or_none()
        return None if row is None else Lease(*row)

    def _about_leases(self, statement: str) -> TextClause:
        return text(statement.format(leases=self._leases, now=_NOW))

    def _holds(self, row: Row, deadline: Deadline) -> bool:
        """Whether a row was committed, once that is settled.

        Raises
        ------
        LedgerDiskError
            If nobody can tell.
        """
        query = text(f"SELECT hash FROM {self._table} WHERE number = :number")  # noqa: S608
        values = {"number": row.number}
        while True:
            try:
                rows = self._transact(_READ, lambda on: on.execute(query, values).all(), deadline)
                return list(map(tuple, rows)) == [(row.hash,)]
            except LedgerError as error:
                if deadline.is_over or not isinstance(error, TemporaryError):
                    reason = f"what became of a charge to {self.place} is not known: {error}"
                    raise LedgerDiskError(reason) from None
            deadline.pause(100 * _PAUSE)

    @property
    def _function(self) -> str:
        return f'"dpframe"."{self._name}_grows"'

    def _is_protected(self, connection: Connection) -> bool:
        """Whether a ledger has the triggers that are made with one; refuse another table."""
        values = {"name": self._table, "mark": MARK, "source": source_of(self._table)}
        is_ours, is_protected = connection.execute(_FORM, values).one()
        if not is_ours:
            raise LedgerError(f"{self.place} is not a ledger of dpframe. Choose another name.")
        return bool(is_protected)

    def _insert(self, connection: Connection, rows: Sequence[Row]) -> None:
        statement = text(_INSERT.format(table=self._table))
        connection.execute(statement, [row._asdict() for row in rows])

    def _news(self, connection: Connection, number: int, head: str) -> list[Row]:
        return news_after(self._rows(connection, number), number, head, self.place, "table")

    def _rows(self, connection: Connection, first: int) -> list[Row]:
        query = text(_SELECT.format(table=self._table))
        rows = [Row(*row) for row in connection.execute(query, {"first": first})]
        for number, row in enumerate(rows, start=first):
            if row.number != number:
                raise LedgerAlteredError(broken(self.place, number))
        return rows

    def _transact(
        self, kind: _Kind, act: Callable[[Connection], T], deadline: Deadline | None = None
    ) -> T:
        """Act within a transaction that has the lock; once more where others were quicker."""
        ends = Deadline.begin(self.patience) if deadline is None else deadline
        key = (self.place, threading.get_ident())

        def locked(connection: Connection) -> T:
            values = {"name": self._table, "patience": _milliseconds(ends)}
            if not connection.execute(_BEGIN, values).scalar_one():
                raise _Busy
            return act(connection)

        if key in KEEPERS:
            raise in_use_here(f"the ledger {self.place}")

        def kept() -> T:
            KEEPERS[key] = self
            while True:
                try:
                    return self._attempt(kind, locked, ends)
                except _Busy:
                    if ends.is_over:
                        remedy = f"Others have kept it for {ends}: try again."
                        raise self._unusable(LedgerBusyError, "it is locked", remedy) from None
                ends.pause(_PAUSE)

        return freed_surely(kept, lambda: KEEPERS.pop(key, None))

    def _attempt(self, kind: _Kind, act: Callable[[Connection], T], deadline: Deadline) -> T:
        """Open a connection, act, and commit what is written; whatever is raised takes all back."""
        opened: list[Connection] = []
        cutters: list[_Cutter] = []
        committing = False

        def committed() -> T:
            nonlocal committing
            opened.append(self._engine.connect())
            opened[0].execution_options(isolation_level=kind.isolation)
            done = act(opened[0])
            if kind.writes:
                committing = True
                opened[0].commit()
            else:
                with suppress(DBAPIError):  # what was read is here
                    opened[0].rollback()
            return done

        def free() -> None:
            for connection in opened:
                if not connection.closed:
                    connection.invalidate()  # ends it, and takes back what was not committed
                    connection.close()
            for cutter in cutters:
                cutter.close()

        outer = getattr(self._attempts, "last", None)  # which a signal may have interrupted
        self._attempts.last = deadline, cutters
        try:
            return freed_surely(committed, free)
        except DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state in _AGAIN:
                raise _Busy from None
            reason = f"no answer in {deadline}" if deadline.is_over else _first_line(error)
            if committing:
                raise _Cut(reason) from None
            raise self._failure(error, state, reason) from None
        except SQLAlchemyError as error:
            raise self._unusable(LedgerError, type(error).__name__, _RIGHTS) from None
        finally:
            self._attempts.last = outer

    def _connected(self, dialect: Any, _: object, args: Any, options: dict[str, Any]) -> Any:
        """Connect, and cut the connection at the end of the attempt that needs it."""
        deadline, cutters = self._attempts.last
        seconds = min(int(options.get("connect_timeout", _CONNECTING)), math.ceil(deadline.left))
        connection = dialect.connect(*args, **{**options, "connect_timeout": max(1, seconds)})
        cutters.append(_Cutter(connection.fileno(), deadline))
        return connection

    def _failure(self, error: DBAPIError, state: str | None, reason: str) -> LedgerError:
        """Say what the server, or the driver, said; what it was given is not shown."""
        if state in _ABSENT:
            question = f"there is no ledger at {self.place}. Is this the right database?"
            remedy = "To start a new ledger, dpf.Ledger.create(path, budget=dpf.Budget(...))."
            return LedgerError(f"{question} {remedy}", parameter="path")
        if state in _TAKEN:
            return self._taken_error()
        if state in _DAMAGE:
            return self._unusable(LedgerAlteredError, reason, "Restore it from a copy.")
        kind: type[LedgerError] = LedgerError
        remedy = _RIGHTS
        if state is None:  # libpq gives no code to a connection that is not made
            refused = any(words in reason for words in _REFUSED)
            if not refused and not isinstance(error, ProgrammingError):
                kind, remedy = LedgerBusyError, _LATER
            if "authentication" in reason:
                remedy = "Check the user and the password."
        elif state.startswith(_DISK):
            kind, remedy = LedgerDiskError, "Make room on the server, and try again."
        elif state.startswith(_TEMPORARY):
            kind, remedy = LedgerBusyError, _LATER
        return self._unusable(kind, reason, remedy)

    def _unusable(self, kind: type[LedgerError], reason: object, remedy: str) -> LedgerError:
        unusable = f"the ledger {self.place} cannot be used ({reason})"
        return kind(f"{unusable}: nothing was charged. {remedy}")

    def _taken_error(self) -> LedgerError:
        reason = f"there is a ledger at {self.place} already, or a table of its name."
        remedy = "To use the ledger in it, open it: dpf.Ledger(path); or choose another name."
        return LedgerError(f"{reason} {remedy}", parameter="path")


def _read(url: str) -> URL:
    """Read a URL, and show nothing of one that cannot be read: it may be its password."""
    try:
        read = make_url(url)
        shown = f"{read.host}{read.database}{read.query.get('host', '')}"
        if "@" not in shown and ":" not in f"{read.database}":
            return read
    except (SQLAlchemyError, ValueError):
        pass
    rule = "path must be a URL such as postgresql://user@host/database?ledger=visits"
    remedy = "In a password, write all but letters and digits as %, and two hexadecimal digits."
    raise LedgerError(f"{rule}; the one given is not shown. {remedy}", parameter="path") from None


def _milliseconds(deadline: Deadline) -> str:
    """Say what is left for the server; 0 would be no limit."""
    return str(max(1, round(1000 * deadline.left)))


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return visible(lines[0]) if lines else type(error.orig).__name__
