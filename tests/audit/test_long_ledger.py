"""A ledger of very many entries opens and charges quickly."""

import contextlib
import sqlite3
import time
from fractions import Fraction

import pytest
from support.charging import entry

from dpframe import Ledger
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.log import Log
from dpframe.privacy.amounts import Budget, PrivacyLoss

ENTRIES = 100_000
SECONDS_TO_OPEN = 10
SECONDS_TO_CHARGE = 0.03


def mixed_losses(number: int, distinct: int) -> list[PrivacyLoss]:
    """Give losses of both kinds, so small that they all fit."""
    parts = [Fraction(1, 10**7 + 17 * (at % distinct)) for at in range(number)]
    return [
        PrivacyLoss(epsilon=part) if at % 2 else PrivacyLoss(mu_squared=part / 100)
        for at, part in enumerate(parts)
    ]


def write(ledger: Ledger, losses: list[PrivacyLoss]) -> None:
    """Append entries in one transaction, for a hundred thousand would take long."""
    assert ledger.path is not None
    rows, head, pots = [], ledger.head, ledger.status().pots
    for number, loss in enumerate(losses, start=1):
        # a chain of one entry writes its row; only the hash of the one before is needed
        before = Chain(ledger.ledger_id, ledger.budget, Log().plus([head], []), pots, pots)
        _, row = before.with_entry(entry(loss, name=str(number)))
        rows.append(Row(number, row.body, row.hash))
        head = row.hash
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.executemany("INSERT INTO chain VALUES (?, ?, ?)", rows)


@pytest.mark.audit
@pytest.mark.parametrize("distinct", [10, ENTRIES])
def test_a_ledger_of_a_hundred_thousand_entries(tmp_path, distinct):
    ledger = Ledger.create(tmp_path / "long.ledger", budget=Budget(1, 1e-6))
    losses = mixed_losses(ENTRIES, distinct)
    write(ledger, losses)
    start = time.process_time()
    opened = Ledger(ledger.path)
    opening = time.process_time() - start  # the machine may have other work
    assert len(opened.entries) == ENTRIES
    assert opened.status().pots == ledger.status().pots  # read all at once, or as news
    took = []
    for number in range(20):
        start = time.process_time()
        opened.charge(entry(losses[number], name=f"new {number}"))
        took.append(time.process_time() - start)
    print(f"{distinct} amounts: opened in {opening:.2f} s, charged in {max(took) * 1e3:.1f} ms")
    assert opening < SECONDS_TO_OPEN
    assert sorted(took)[len(took) // 2] < SECONDS_TO_CHARGE
