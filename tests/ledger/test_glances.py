"""What a release knows of a ledger's file while it is planned, before the charge decides."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from support.charging import ONE, entry, gaussian, in_processes, pure
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import LedgerError
from dpframe.ledger.file import LedgerFile
from dpframe.privacy.law import Law


@pytest.fixture
def path(tmp_path) -> Path:
    Ledger.create(tmp_path / "x.ledger", budget=ONE)
    return tmp_path / "x.ledger"


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """How files were opened."""
    found, acts = [], LedgerFile._transact

    def watched(file, kind, act):
        found.append(kind)
        return acts(file, kind, act)

    monkeypatch.setattr(LedgerFile, "_transact", watched)
    return found


def trips(ledger: Ledger) -> pd.DataFrame:
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, bounds={"fare": (0, 9)}, ledger=ledger)
    return frame


def released(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.dp.aggregate("zone", n=dpf.count(), mean=dpf.mean("fare"), epsilon=0.1)


def spend_here(path: Path) -> None:
    Ledger(path).charge(entry(gaussian(0.01)))


def spend_elsewhere(path: Path) -> None:
    assert in_processes([lambda: spend_here(path) or 0]) == [0]


def turn_to_a_log(path: Path) -> None:
    """Let another program keep what is new outside of the file."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("act", [spend_here, spend_elsewhere, turn_to_a_log])
def test_a_release_looks_where_somebody_else_wrote(path, opened, act):
    if act is spend_elsewhere and not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    ledger = Ledger(path)
    frame = trips(ledger)
    released(frame)
    act(path)
    expected = Ledger(path).status()
    opened.clear()
    assert ledger.glance() == expected
    assert opened == ["DEFERRED"]
    released(frame)
    assert opened[-1] == "EXCLUSIVE"


def mechanism(frame: pd.DataFrame, epsilon: float) -> str:
    return frame.dp.count(epsilon=epsilon, delta=1e-7).dp.certificate.mechanism.name


def test_the_mechanism_is_one_that_fits_beside_what_others_spent(path):
    frame = trips(Ledger(path))
    assert mechanism(frame, 0.01) == "laplace"
    Ledger(path).charge(entry(gaussian(0.2)))  # leaves less than epsilon=0.1
    assert mechanism(frame, 0.1) == "gaussian"


def cut(path: Path) -> None:
    """Cut off the last entry, and put back the header and the time."""
    before = path.stat()
    header = path.read_bytes()[:100]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER no_delete")
        connection.execute("DELETE FROM chain WHERE number = (SELECT max(number) FROM chain)")
    with path.open("r+b") as file:
        file.write(header)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_cut_that_hides_from_glances_is_found_by_the_charge(path, monkeypatch):
    def drawn(*_):
        pytest.fail("noise was drawn")

    ledger = Ledger(path)
    frame = trips(ledger)
    ledger.charge(entry(pure(0.1)))
    cut(path)
    before = path.read_bytes()
    monkeypatch.setattr(Law, "draw", drawn)
    with raises(LedgerError, "missing"):
        released(frame)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lost", [True, False])
def test_a_file_that_is_lost_or_replaced_is_looked_at(path, opened, lost):
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    ledger = Ledger(path)
    ledger.charge(entry(pure(0.1)))
    if lost:
        path.unlink()
    else:
        copy.replace(path)
    opened.clear()
    with pytest.raises(LedgerError, match="there is no ledger at" if lost else "was replaced"):
        ledger.glance()
    assert opened == ["DEFERRED"]
