"""A row that nobody can read closes a ledger until its keeper voids it; a charge is never void."""

import json

import pytest
from support.charging import ONE, entry, pure
from support.raising import raises
from support.terminal import main

from dpframe import Ledger
from dpframe.errors import DeclarationError, LedgerError
from dpframe.ledger.chain import Row, _hash
from dpframe.ledger.store import store_at
from dpframe.ledger.transactions import void_row


@pytest.fixture
def path(tmp_path) -> str:
    path = str(tmp_path / "x.ledger")
    Ledger.create(path, budget=ONE).charge(entry(pure(0.25)))
    return path


def appended(path: str, body: str) -> None:
    last = store_at(path).all_rows()[-1]
    row = Row(last.number + 1, body, _hash(last.hash, body))
    store_at(path).append(last.number, last.hash, lambda *_: (None, row))


def test_rows_that_nobody_can_read_are_voided_one_by_one(path):
    seen = Ledger(path)
    for body in ("x", '{"zz":1}', '{"protected":{}}'):
        appended(path, body)
    for number in (2, 3, 4):
        with raises(LedgerError, f"--void {number}"):
            Ledger(path)
        with raises(LedgerError, f"entry {number} "):
            seen.status()
        void_row(path, number)
    void_row(path, 3)
    seen.charge(entry(pure(0.1)))
    assert Ledger(path).status() == seen.status()
    assert seen.to_frame()["hash"].tolist() == [
        row.hash for row in store_at(path).all_rows() if "loss" in row.body
    ]
    with raises(DeclarationError, "must be a row that cannot be read"):
        void_row(path, 1)


def test_what_may_be_a_charge_is_not_voided(path):
    read = json.loads(store_at(path).all_rows()[-1].body)
    appended(path, json.dumps({**read, "loss": {"epsilon": "1"}}))
    with raises(LedgerError, "entry 2 ") as caught:
        void_row(path, 2)
    assert "--void" not in str(caught.value)


def test_an_amount_beyond_floats_is_not_read(path):
    body = store_at(path).all_rows()[-1].body
    appended(path, body.replace('"epsilon":"1/4"', f'"epsilon":"1{400 * "0"}"'))
    with raises(LedgerError, "entry 2 "):
        Ledger(path)


def test_the_command_names_void_rows(path, capsys):
    appended(path, "x")
    assert main(["ledger", path]) == 2
    assert main(["ledger", path, "--void", "2"]) == 0
    assert "Void       entry 2" in capsys.readouterr().out
    assert main(["ledger", path, "--void", "2", "--lost", "x"]) == 2
    assert "give one of --create, --void and --lost" in capsys.readouterr().err
