"""Where the rows of a ledger are kept: what a store must do, and which one a path names."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from dpframe.errors import DeclarationError, DPFrameError, LedgerError, pip_install
from dpframe.ledger.chain import Row
from dpframe.ledger.file import LedgerFile
from dpframe.ledger.leases import Lease

T = TypeVar("T")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a letter alone is a disk of Windows
_KINDS = ("postgresql", "postgres", "postgresql+psycopg")


class Store(Protocol):
    """Rows that only grow, which threads and processes share.

    What is appended is lasting when `append` returns. A store whose rows are not those that were
    seen raises `LedgerAlteredError`; one that cannot be used, `LedgerError`.
    """

    @property
    def path(self) -> Path | None:
        """Where the file is, if it is one."""

    @property
    def place(self) -> str:
        """What messages call it."""

    @property
    def address(self) -> str:
        """The path that opens it again, which no message shows."""

    @property
    def patience(self) -> float | None:
        """Seconds that a wait for others may last; `None`: the usual ones."""

    @property
    def left(self) -> object:
        """How it looked after it was last used; `None` where that does not tell."""

    def looks_like(self, left: object) -> bool:
        """Whether nobody appended since it looked so; `False` where that cannot be told."""

    def exists(self) -> bool:
        """Whether something is there."""

    def check_new(self, *, taken: bool = False) -> None:
        """Refuse a place where something is already, or where nothing can be."""

    def create(self, rows: Sequence[Row]) -> None:
        """Create it with its first rows, the header before others: all at once, or not at all."""

    def all_rows(self) -> list[Row]:
        """Read everything, after checking that it is a ledger of this format."""

    def rows_after(self, number: int, head: str) -> list[Row]:
        """Read what follows a row that was seen, of which number and hash are given."""

    def append(
        self,
        number: int,
        head: str,
        decide: Callable[[list[Row], Lease | None], tuple[T, Row | None]],
        claim: Lease | None = None,
    ) -> T:
        """Append the row that is decided on in view of those after one that was seen.

        Nobody else appends meanwhile. What `decide` raises leaves the rows as they were. With a
        `claim`, it is decided in view of the lease on that release, too, which the claim replaces
        as the row is appended.
        """

    def lease_of(self, release_id: str) -> Lease | None:
        """Read the lease on a release, and the time of the store; `None`: it has none."""

    def renew(self, lease: Lease, seconds: float) -> bool:
        """Let a lease last so many seconds from now; 0: it has ended. `False`: it was taken."""


def store_at(path: object, patience: float | None = None) -> Store:
    """Return the store that a path names, which waits for others so long; nothing is opened yet.

    Raises
    ------
    DeclarationError
        If it is no path.
    DPFrameError
        If it is a URL, and what speaks to databases is not installed.
    LedgerError
        If this system cannot write it, or it is a URL of no database that can be used.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        remedy = "For a ledger in memory, give budget= alone."
        raise DeclarationError.about("path", "must be the path of a file", path, remedy)
    if is_url(text):
        return _table_at(text, patience)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        rule = f"path must be one that this system can write, got path={text!a}."
        raise LedgerError(rule, parameter="path", value=text) from None
    return LedgerFile(Path(text), patience)


def is_url(path: object) -> bool:
    """Whether a path is a URL, which may hold a password: messages show none.

    Examples
    --------
    >>> is_url("postgresql://clinic/visits"), is_url("C:/visits.ledger")
    (True, False)
    """
    return isinstance(path, str | os.PathLike) and bool(_URL.match(str(os.fspath(path))))


def _table_at(url: str, patience: float | None) -> Store:
    kind, mark, _ = url.partition("://")
    if not mark or kind not in _KINDS:
        rule = "path must be that of a file, or a URL that begins with postgresql://, as a text"
        raise LedgerError(f"{rule}; the one given is not shown.", parameter="path")
    try:
        from dpframe.ledger.postgres import LedgerTable  # optional, and slow to import

        return LedgerTable(url, patience)
    except ImportError as error:
        reason = "ledgers in PostgreSQL need SQLAlchemy and psycopg, which are not installed"
        raise DPFrameError(f"{reason}: {pip_install('postgres')}.") from error
