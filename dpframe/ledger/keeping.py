"""What only the keeper of a ledger does: void a row that nobody can read, protect its table."""

import os

from dpframe.context import at_the_door
from dpframe.errors import DeclarationError, LedgerError
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.store import Store, store_at


def void_row(path: str | os.PathLike[str], number: int) -> None:
    """Let a row that cannot be read count for nothing; that it was voided is kept for ever.

    Parameters
    ----------
    path
        The file or the URL of the ledger.
    number
        The number of the row.

    Raises
    ------
    DeclarationError
        If the row can be read, or may be a charge.
    LedgerError
        If the ledger cannot be used, or the table is of another owner.
    """
    store = _store_of(path)
    header, *_ = store.all_rows()

    def decide(news: list[Row], _: object) -> tuple[None, Row | None]:
        seen = Chain.of_rows([header, *news], store.place, voiding=True)
        marks = {mark.what for mark in seen.log.marks_of(str(number))}
        if "voided" not in marks:
            raise DeclarationError.about("void", "must be a row that cannot be read", number)
        if "void" in marks:
            return None, None
        return None, seen.with_text("void", str(number))[1]

    store.append(0, header.hash, decide)


def upgrade_table(url: str) -> None:
    """Protect a table in PostgreSQL as those that are made now; only its owner can.

    Raises
    ------
    LedgerError
        If it is a file, no ledger, or of another owner.
    """
    _store_of(url).upgrade()


def _store_of(path: str | os.PathLike[str]) -> Store:
    """Find a ledger; in a test there is none to keep."""
    if at_the_door().is_test:
        raise LedgerError("a ledger that a test has is kept by nobody.")
    return store_at(path)
