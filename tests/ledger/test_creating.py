"""Ledger files are made once and on purpose, and opened where they are."""

import os
from pathlib import Path

import pytest
from support.charging import ONE, entry, pure
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import DeclarationError, LedgerError


@pytest.fixture
def path(tmp_path) -> Path:
    ledger = Ledger.create(tmp_path / "flights.ledger", budget=ONE)
    ledger.charge(entry(pure(0.1)))
    return ledger.path


@pytest.mark.parametrize("budget", [None, ONE])
def test_a_missing_ledger_is_not_made_anew(tmp_path, budget):
    with raises(LedgerError, "nowhere"):
        Ledger(tmp_path / "nowhere", budget=budget)
    assert not os.listdir(tmp_path)


def test_a_ledger_is_made_once(path):
    before = path.read_bytes()
    with raises(LedgerError, "flights.ledger already"):
        Ledger.create(path, budget=ONE)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("taken", ["a folder", "a link to nothing", "an empty file"])
def test_nothing_is_overwritten_by_a_new_ledger(tmp_path, taken):
    path = tmp_path / "x.ledger"
    if taken == "a folder":
        path.mkdir()
    elif taken == "a link to nothing":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.touch()
    with raises(LedgerError, "there is a file at"):
        Ledger.create(path, budget=ONE)
    assert os.listdir(tmp_path) == ["x.ledger"]


@pytest.mark.parametrize("budget", [None, 1, (1, 0)])
def test_a_new_ledger_needs_a_budget(tmp_path, budget):
    with raises(DeclarationError, "Budget, got", parameter="budget"):
        Ledger.create(tmp_path / "x", budget=budget)
    assert not os.listdir(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with raises(LedgerError, "the folder of"):
        Ledger.create(tmp_path / "nowhere" / "x.ledger", budget=ONE)
    with raises(LedgerError, "there is no ledger"):
        Ledger(tmp_path / "nowhere" / "x.ledger")
