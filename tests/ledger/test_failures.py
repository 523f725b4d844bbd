"""Disks that are full or fail: never taken for damage, and what is charged is never denied."""

import contextlib
import os
import sqlite3
import subprocess
import sys

import pytest
from support.charging import ONE, entry, pure
from support.disks import RLIMIT, failing, small_disk
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import (
    LedgerAlteredError,
    LedgerBusyError,
    LedgerDiskError,
    LedgerError,
    ReleaseError,
    TemporaryError,
)


@pytest.fixture
def path(tmp_path):
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    ledger.charge(entry(pure(0.1)))
    return ledger.path


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR | 3 << 8])
def test_a_spend_that_fails_may_be_asked_again(path, monkeypatch, code):
    ledger = Ledger(path)
    with monkeypatch.context() as patch:
        failing(patch, code, after=False)
        with raises(LedgerDiskError, "nothing was charged") as caught:
            ledger.charge(entry(pure(0.1)))
    assert isinstance(caught.value, TemporaryError)
    assert not isinstance(caught.value, LedgerAlteredError)
    assert len(Ledger(path).entries) == 1
    ledger.charge(entry(pure(0.1)))
    assert len(Ledger(path).entries) == 2


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_spend_that_is_on_the_disk_is_never_denied(path, monkeypatch, after, forever):
    ledger = Ledger(path)
    expected = ReleaseError if after or forever else LedgerDiskError
    with monkeypatch.context() as patch:
        failing(patch, sqlite3.SQLITE_IOERR | 22 << 8, after=after, forever=forever)
        with pytest.raises(expected):
            ledger.charge(entry(pure(0.1)))
    assert len(ledger.entries) == len(Ledger(path).entries) == 1 + after


def test_a_file_that_cannot_be_marked_was_charged_nevertheless(path, monkeypatch):
    ledger = Ledger(path)
    with monkeypatch.context() as patch:
        patch.setattr("dpframe.ledger.file.os.lseek", lambda *_: os.stat(path / "no"))
        ledger.charge(entry(pure(0.1)))
    assert len(Ledger(path).entries) == 2


@pytest.mark.skipif(not RLIMIT, reason="files have no limit there")
def test_a_limit_on_files_is_no_damage(path):
    code = """
import resource, sys
from support.charging import entry, pure
from dpframe.errors import LedgerDiskError
from dpframe.ledger.ledger import Ledger

ledger = Ledger(sys.argv[1])
size = ledger.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
try:
    for _ in range(1000):
        ledger.charge(entry(pure(1e-4)))
except LedgerDiskError as error:
    print(len(ledger.entries))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, "tests"])}
    line = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(line, capture_output=True, check=False, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(Ledger(path).entries) == int(done.stdout)


@pytest.mark.parametrize("options", ["size=96k", "nr_inodes=3"])
def test_a_full_disk_is_no_damage(tmp_path, options):
    with small_disk(tmp_path / "disk", options) as disk:
        ledger = Ledger.create(disk / "x.ledger", budget=ONE)
        with (disk / "filled").open("wb", buffering=0) as filled, contextlib.suppress(OSError):
            while filled.write(b"x" * 512):
                if "inodes" in options:
                    break
        with raises(LedgerDiskError, "Make"):
            ledger.charge(entry(pure(0.1)))
        with raises(LedgerDiskError, "Make"):
            Ledger.create(disk / "y.ledger", budget=ONE)
        before = len(ledger.entries)
        (disk / "filled").unlink()
        ledger.charge(entry(pure(0.1)))
        assert len(Ledger(disk / "x.ledger").entries) == before + 1


def test_damage_has_an_error_of_its_own(path):
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"epsilon":"1/10"', b'"epsilon":"1/90"'))
    with pytest.raises(LedgerAlteredError):
        Ledger(path)
    path.write_bytes(whole)
    ledger = Ledger(path)
    other = Ledger.create(path.with_name("other"), budget=ONE)
    os.replace(other.path, path)
    with raises(LedgerAlteredError, "replaced"):
        ledger.charge(entry(pure(0.1)))


@pytest.mark.parametrize("code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM])
def test_rights_that_lack_are_no_damage(path, monkeypatch, code):
    ledger = Ledger(path)
    failing(monkeypatch, code, after=False)
    with pytest.raises(LedgerError) as caught:
        ledger.charge(entry(pure(0.1)))
    assert type(caught.value) is LedgerError


def test_what_may_be_asked_again_is_called_so():
    for kind in (LedgerBusyError, LedgerDiskError):
        assert issubclass(kind, TemporaryError) and issubclass(kind, LedgerError)
    assert not issubclass(LedgerAlteredError, TemporaryError)
