"""Ledgers in files: what is kept, what is found to be wrong, and what is said about it."""

import contextlib
import hashlib
import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from support.charging import ONE, entry, gaussian, pure
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import DeclarationError, LedgerError
from dpframe.ledger import platform
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend

LOSSES = [pure(0.1), gaussian(0.05), pure(Fraction(1, 3)), gaussian(0.01), pure(0.01)]


@pytest.fixture
def path(tmp_path) -> Path:
    """A ledger of five entries."""
    ledger = Ledger.create(tmp_path / "flights.ledger", budget=ONE)
    for loss in LOSSES:
        ledger.charge(entry(loss))
    return ledger.path


@contextlib.contextmanager
def editing(path):
    """Open the file as somebody would who wants to change it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        query = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        triggers = connection.execute(query).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, text in triggers:
            connection.execute(text)


def test_a_ledger_reopened_is_what_it_was(path):
    first, again = Ledger(path, budget=ONE), Ledger(path)
    assert again.entries == first.entries
    assert [one.loss for one in again.entries] == list(LOSSES)
    assert again.status() == first.status()
    assert again.status().spent == sum(LOSSES, start=PrivacyLoss())
    assert again.status().pots == first.status().pots
    assert (again.ledger_id, again.head, again.budget) == (first.ledger_id, first.head, ONE)
    assert again.to_frame().equals(first.to_frame())
    assert repr(again) == f"<Ledger in {path}: {ONE}, 5 releases>"


AMOUNTS = [
    Budget(0.1, 1e-7),
    Budget(1 / 7, 0),
    Budget(5e-324, 5e-324),
    Budget(1e300, 1 - 2**-53),
    Budget(0, 1e-3),
]


@pytest.mark.parametrize("budget", AMOUNTS)
def test_budgets_are_kept_exactly(tmp_path, budget):
    Ledger.create(tmp_path / "x", budget=budget)
    assert Ledger(tmp_path / "x").budget == budget


def test_entries_are_kept_exactly(tmp_path):
    odd = Entry(
        "id",
        "2026-01-01T00:00:00+00:00",
        "count where zone == 'Zürich \ud800 \"quoted\"\n'",
        "gaussian",
        Spend("epsilon", Fraction(1, 7 * 10**5000), 1e-9),
        PrivacyLoss(Fraction(1, 10**9000), Fraction(2**-537) ** 2, Fraction(1, 10**400)),
        name="März \udfff",
        note="a\nb",
        user="\0",
        frame="'; DROP TABLE chain; --",
        unit="Ω",
        columns=("a, b", ""),
    )
    ledger = Ledger.create(tmp_path / "x", budget=Budget(1, 1e-6, discovery=1e-7))
    ledger.charge(odd)
    assert Ledger(tmp_path / "x").entries == (odd,)
    assert Ledger(tmp_path / "x").head == ledger.head


def test_another_budget_is_refused(path):
    with raises(DeclarationError, "epsilon=1.0, delta=1e-06", parameter="budget") as e:
        Ledger(path, budget=Budget(2, 1e-6))
    assert "Leave budget= out" in str(e.value)


def test_data_given_for_a_path_are_not_shown():
    with raises(DeclarationError, "a DataFrame", parameter="path", value=None) as caught:
        Ledger(pd.DataFrame({"x": [123456]}), budget=ONE)
    assert "123456" not in str(caught.value)


def test_a_ledger_stays_where_it_is_when_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("x.ledger", budget=ONE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.charge(entry(pure(0.5)))
    assert len(Ledger(tmp_path / "x.ledger").entries) == 1


FOREIGN = {"empty": b"", "text": b"zone,fare\nA,3\n" * 100, "another database": None}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("budget", [None, ONE])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path, kind, budget):
    path = tmp_path / "x.ledger"
    if kind == "another database":
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE chain (number, body, hash)")
    else:
        path.write_bytes(FOREIGN[kind])
    before = path.read_bytes()
    with raises(LedgerError, "dpframe"):
        Ledger(path, budget=budget)
    assert path.read_bytes() == before


@pytest.mark.parametrize("length", [50, 4096, 5000, 10_000])
def test_a_cut_file_is_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with raises(LedgerError, "Restore"):
        Ledger(path, budget=ONE)


def test_a_folder_is_no_ledger(tmp_path):
    with raises(LedgerError, "write"):
        Ledger(tmp_path, budget=ONE)


def test_a_ledger_of_another_format_is_refused(path):
    copied = path.with_name("other.ledger")
    shutil.copy(path, copied)
    with contextlib.closing(sqlite3.connect(copied)) as connection:
        connection.execute("PRAGMA user_version = 1")
    with raises(LedgerError, "reads format 5"):
        Ledger(copied)
    with editing(path) as connection:
        body = json.dumps({"format": 99})
        digest = hashlib.sha256(f"{'0' * 64}\n{body}".encode()).hexdigest()
        connection.execute("UPDATE chain SET body = ?, hash = ? WHERE number = 0", [body, digest])
    with raises(LedgerError, "is of format 99"):
        Ledger(path)


EDITS = {
    "an amount": (["UPDATE chain SET body = replace(body, '1/3', '1/9') WHERE number = 3"], 3),
    "a time": (["UPDATE chain SET body = replace(body, '2026', '2025') WHERE number = 2"], 2),
    "a hash": (
        [
            "UPDATE chain SET hash = CASE substr(hash, 1, 1) WHEN '0' THEN '1' ELSE '0' END "
            "|| substr(hash, 2) WHERE number = 4"
        ],
        4,
    ),
    "the budget": (["UPDATE chain SET body = replace(body, '0', '') WHERE number = 0"], 0),
    "no header": (["DELETE FROM chain WHERE number = 0"], 0),
    "an entry left out": (["DELETE FROM chain WHERE number = 2"], 2),
    "the last one left out": (["DELETE FROM chain WHERE number = 5"], "after 4"),
    "none left": (["DELETE FROM chain WHERE number > 0"], "after 0"),
    "entries exchanged": (
        [
            "UPDATE chain SET number = -1 WHERE number = 2",
            "UPDATE chain SET number = 2 WHERE number = 3",
            "UPDATE chain SET number = 3 WHERE number = -1",
        ],
        2,
    ),
    "one twice": (["INSERT INTO chain SELECT 6, body, hash FROM chain WHERE number = 5"], 6),
    "bytes": (["UPDATE chain SET body = x'ff00' WHERE number = 1"], 1),
    "no text": (["UPDATE chain SET body = CAST(x'ff00' AS TEXT) WHERE number = 1"], 1),
}


@pytest.mark.parametrize("what", EDITS)
def test_edits_are_found_and_named(path, what):
    statements, place = EDITS[what]
    with editing(path) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0
    with pytest.raises(LedgerError, match=rf"entr(y|ies) {place}\b") as caught:
        Ledger(path)
    assert str(path) in str(caught.value)
    assert "Restore the file from a copy" in str(caught.value)


@pytest.mark.parametrize("body", ["[]", "{}", "nothing", '{"spend": 1, "loss": 2}', "3"])
def test_an_entry_of_unknown_form_is_refused(path, body):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (head,) = connection.execute("SELECT hash FROM chain WHERE number = 5").fetchone()
        digest = hashlib.sha256(f"{head}\n{body}".encode()).hexdigest()
        connection.execute("INSERT INTO chain VALUES (6, ?, ?)", [body, digest])
    with raises(LedgerError, "written"):
        Ledger(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chain SET body = ''",
        "DELETE FROM chain",
        "INSERT OR REPLACE INTO chain VALUES (5, '', '')",
        "REPLACE INTO chain VALUES (0, '', '')",
        "INSERT INTO chain VALUES (7, '', '')",
        "INSERT INTO chain VALUES (NULL, '', '')",
    ],
)
def test_the_file_itself_refuses_to_change_or_forget(path, statement):
    before = Ledger(path).to_frame()
    with (
        contextlib.closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match=r"a ledger (can only grow|grows at its end)"),
    ):
        connection.execute(statement)
    assert Ledger(path).to_frame().equals(before)


def test_triggers_taken_away_are_missed(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER no_delete")
    with raises(LedgerError, "triggers"):
        Ledger(path)


def test_a_ledger_at_work_notices_that_it_was_replaced(path):
    ledger, older = Ledger(path), path.with_name("older")
    shutil.copy(path, older)
    ledger.charge(entry(pure(0.02)))
    shutil.copy(older, path)
    for found in ("is missing", "is not the one read before"):
        for use in (
            ledger.status,
            lambda: ledger.charge(entry(pure(0.03))),
            lambda: ledger.entries,
        ):
            with pytest.raises(LedgerError, match=f"was replaced or changed: entry 6 {found}"):
                use()
        Ledger(older).charge(entry(pure(0.04)))
        shutil.copy(older, path)
    assert len(Ledger(path).entries) == 7
    path.unlink()
    with raises(LedgerError, "there is no ledger at"):
        ledger.charge(entry(pure(0.03)))
    assert not path.exists()


def test_what_is_left_of_an_earlier_ledger_is_not_mixed_in(path):
    path.rename(path.with_name("moved"))
    journal = path.with_name("flights.ledger-journal")
    journal.write_bytes(b"left")
    with raises(LedgerError, "ledger-journal"):
        Ledger.create(path, budget=ONE)
    assert journal.read_bytes() == b"left"
    assert not path.exists()


def test_the_head_can_be_looked_up_later(path):
    ledger = Ledger(path)
    noted = ledger.head
    ledger.charge(entry(pure(0.02)))
    assert ledger.head != noted
    assert noted in Ledger(path).to_frame()["hash"].tolist()


def test_a_disk_that_fails_leaves_a_ledger_that_works(path, monkeypatch):
    ledger = Ledger(path)
    with monkeypatch.context() as patched:
        patched.setattr(platform, "USUAL_PATIENCE", 0.05)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with raises(LedgerError, "Another program"):
                ledger.charge(entry(pure(0.02)))
            assert len(ledger.entries) == 5
            other.execute("ROLLBACK")
    ledger.charge(entry(pure(0.02)))
    assert len(ledger.entries) == len(Ledger(path).entries) == 6
