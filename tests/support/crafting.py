"""Ledgers that nobody wrote with dpframe: hashes that fit, and anything else in the rows."""

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.charging import ONE, entry, pure

from dpframe import Ledger

START = "0" * 64


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger so that all of it can be written."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in schema:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in schema:
            connection.execute(sql)


def ledger_of(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """Make a ledger of which the bodies of rows were changed, and chain them anew."""
    Ledger.create(path, budget=ONE).charge(entry(pure(0.25), name="first"))
    with opened(path) as connection:
        bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM chain")]
        change(bodies)
        rewrite(connection, [json.dumps(body) for body in bodies])
    return path


def rewrite(connection: sqlite3.Connection, bodies: list[str]) -> None:
    """Write other rows, whose hashes fit."""
    connection.execute("DELETE FROM chain")
    connection.execute("DELETE FROM sqlite_sequence")
    head = START
    for number, body in enumerate(bodies):
        head = hashlib.sha256(f"{head}\n{body}".encode()).hexdigest()
        connection.execute("INSERT INTO chain VALUES (?, ?, ?)", (number, body, head))
