"""What is on disk when, and what is made of a file that a crash left half written."""

import contextlib
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from support.charging import ONE, entry, pure
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import LedgerError

EXTRA = 3  # the folder is flushed, too, when the journal is gone


@pytest.fixture
def path(tmp_path) -> Path:
    """A ledger of five entries."""
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    for _ in range(5):
        ledger.charge(entry(pure(0.1)))
    return ledger.path


@pytest.fixture
def settings(monkeypatch) -> list[tuple[object, ...]]:
    """How SQLite writes, at each commit."""
    found, connect = [], sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, statement, *given):
            if statement == "COMMIT":
                asked = ("synchronous", "fullfsync", "journal_mode")
                ask = super().execute
                found.append(tuple(ask(f"PRAGMA {name}").fetchone()[0] for name in asked))
            return super().execute(statement, *given)

    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: connect(*given, **named, factory=Watched)
    )
    return found


def test_a_spend_is_on_disk_in_the_file_itself_when_it_is_committed(path, settings):
    Ledger(path).charge(entry(pure(0.1)))
    Ledger.create(path.with_name("y.ledger"), budget=ONE)
    assert len(settings) == 4
    assert set(settings) == {(EXTRA, 1, "delete")}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps names by itself")
def test_the_name_of_a_new_ledger_is_on_disk(tmp_path, monkeypatch):
    flushed, fsync = [], os.fsync
    path = tmp_path / "x.ledger"

    def watched(handle):
        flushed.append((os.fstat(handle).st_ino, path.exists(), len(os.listdir(tmp_path))))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    Ledger.create(path, budget=ONE)
    assert flushed == [(tmp_path.stat().st_ino, True, 1)]


def crashed(path: Path) -> tuple[Path, Path]:
    """Copy file and journal in the middle of a spend that is being written."""
    folder = path.parent / "crashed"
    folder.mkdir()
    copies = folder / path.name, folder / f"{path.name}-journal"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        connection.execute("BEGIN")
        first = connection.execute("SELECT max(number) + 1 FROM chain").fetchone()[0]
        for number in range(first, first + 100):
            connection.execute("INSERT INTO chain VALUES (?, ?, '')", [number, "x" * 1000])
        shutil.copy(path, copies[0])
        shutil.copy(f"{path}-journal", copies[1])
        connection.execute("ROLLBACK")
    return copies


def test_a_spend_that_a_crash_interrupted_is_taken_back(path):
    file, journal = crashed(path)
    assert file.read_bytes()[: path.stat().st_size] != path.read_bytes()
    assert len(Ledger(file).entries) == 5
    assert not journal.exists()
    Ledger(file).charge(entry(pure(0.1)))
    assert len(Ledger(file).entries) == 6


def test_a_file_that_was_moved_away_from_its_journal_is_refused(path):
    file, journal = crashed(path)
    journal.unlink()
    with raises(LedgerError, "Restore"):
        Ledger(file)


@pytest.mark.parametrize("later", [1, 2, 10])
def test_an_old_journal_takes_no_spend_back(path, later):
    _, journal = crashed(path)
    ledger = Ledger(path)
    for _ in range(later):
        ledger.charge(entry(pure(1e-4)))
    shutil.copy(journal, f"{path}-journal")
    assert len(ledger.entries) == 5 + later
    assert len(Ledger(path).entries) == 5 + later
    assert os.listdir(path.parent / "crashed") == [path.name, journal.name]
    assert not Path(f"{path}-journal").exists()


def test_that_journal_would_take_spends_back(path):
    _, journal = crashed(path)
    Ledger(path).charge(entry(pure(0.1)))
    shutil.copy(journal, f"{path}-journal")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT max(number) FROM chain").fetchone() == (5,)


def test_a_folder_in_the_place_of_the_journal_is_named(path):
    Path(f"{path}-journal").mkdir()
    with raises(LedgerError, "Move it away"):
        Ledger(path)


def test_a_copy_put_back_beside_a_journal_is_used_as_it_is(path):
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    Ledger(path).charge(entry(pure(0.1)))
    _, journal = crashed(path)
    shutil.copy(journal, f"{path}-journal")
    shutil.copy(copy, path)
    assert len(Ledger(path).entries) == 5


def test_a_ledger_that_another_program_gave_a_log_of_its_own_is_given_none(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    Ledger(path).charge(entry(pure(0.1)))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert len(Ledger(path).entries) == 6
