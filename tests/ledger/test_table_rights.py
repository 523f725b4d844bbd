"""Who may only add rows to a ledger in PostgreSQL cannot close it for others; its keeper can."""

import json
import os
from dataclasses import replace
from hashlib import sha256

import pandas as pd
import pytest
from support.charging import ONE, entry, pure
from support.databases import URL_OF_KEEPER, table_of
from support.raising import raises
from support.terminal import main

from dpframe import Ledger
from dpframe.errors import LedgerError
from dpframe.ledger.store import store_at

pytestmark = [pytest.mark.full, pytest.mark.server]


@pytest.fixture
def url(server) -> str:
    made = server.url()
    Ledger.create(made, budget=ONE)
    return made


def with_rights(server, url: str) -> str:
    """Let a new role read and insert; return the URL with which it does."""
    name = f"releaser_{os.urandom(4).hex()}"
    server.run(
        f"CREATE ROLE {name} LOGIN PASSWORD 'weak'",
        f"GRANT USAGE ON SCHEMA dpframe TO {name}",
        f"GRANT SELECT, INSERT ON {table_of(url)} TO {name}",
    )
    return url.replace(URL_OF_KEEPER, f"{name}:weak")


@pytest.fixture
def releaser(server, url) -> str:
    return with_rights(server, url)


def appended(releaser: str, body: str) -> None:
    """Add a row at the end, as whoever may insert can without dpframe."""
    import psycopg

    last = store_at(releaser).all_rows()[-1]
    digest = sha256(f"{last.hash}\n{body}".encode()).hexdigest()
    with psycopg.connect(releaser.partition("?")[0], autocommit=True) as connection:
        statement = f"INSERT INTO {table_of(releaser)} VALUES (%s, %s, %s)"  # noqa: S608
        connection.execute(statement, [last.number + 1, body, digest])


def entry_with(url: str, **changed: object) -> str:
    """Write the last entry anew, with other values."""
    read = json.loads(store_at(url).all_rows()[-1].body)
    for name, value in changed.items():
        whole, _, part = name.partition("__")
        (read[whole] if part else read)[part or whole] = value
    return json.dumps(read)


TOLD = {"release_id": "z", "epoch": 0, "nonce": "n", "digests": [], "who": "", "why": ""}
OF_RUNS = {
    "half an epoch": {"again": {**TOLD, "epoch": 1.5}},
    "an epoch below 0": {"noise": {**TOLD, "epoch": -1}},
    "an epoch beyond integers": {"noise": {**TOLD, "epoch": 10**400}},
    "digests in a text": {"written": {**TOLD, "digests": "abc"}},
    "a digest that is a number": {"written": {**TOLD, "digests": [1]}},
    "no digest of what was drawn": {"drawn": TOLD},
    "more than a run has": {"lost": {**TOLD, "more": ""}},
    "less than a run has": {"lost": {"release_id": "z"}},
    "nobody": {"lost": {**TOLD, "who": None}},
}
CLOSING = {
    **{f"a run with {what}": json.dumps(body) for what, body in OF_RUNS.items()},
    "no JSON": "x",
    "a list": "[1]",
    "none": "null",
    "a number": "1",
    "another key": '{"zz": 1}',
    "a move": '{"left": "postgresql://elsewhere/database"}',
    "a move that ended": '{"arrived": "here"}',
    "a void row": '{"void": "1"}',
    "two marks": '{"again": "a", "noise": "b"}',
    "a mark of a text": '{"noise": "z"}',
    "a mark of a number": '{"noise": 1}',
    "whom it protects, twice": '{"protected":{"neighboring":"add_remove","unit":null}}',
    "whom it protects, and more": '{"protected":{"neighboring":"add_remove","unit":null},"z":1}',
    "too long": '{"noise": "' + 1_000_000 * "x" + '"}',
}
ENTRIES = {
    "no amount": {"loss__epsilon": "x"},
    "no amount at all": {"loss__epsilon": None},
    "an amount beyond floats": {"loss__epsilon": "1" + 400 * "0"},
    "an amount that is negative": {"loss__epsilon": "-1/4"},
    "a division by zero": {"loss__epsilon": "1/0"},
    "more digits than Python reads": {"loss__epsilon": f"1{4400 * '0'}/1{4400 * '0'}"},
    "leading zeros": {"loss__epsilon": "01"},
    "another loss": {"loss__tau": "1"},
    "another kind of amount": {"spend__kind": "zeta"},
    "a delta that is text": {"spend__delta": "0"},
    "a name that is a number": {"name": 1},
    "half a character": {"name": "\ud800"},
    "no time": {"released_at": None},
    "columns in a text": {"columns": "abc"},
    "a column that is a number": {"columns": [1]},
    "a part where there are none": {"part": "47"},
    "another key": {"more": 1},
}


def test_no_releaser_closes_a_ledger(url, releaser):
    import psycopg

    frame = pd.DataFrame({"zone": ["A", "B"]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, ledger=Ledger(releaser))
    frame.dp.count(epsilon=0.25, name="first")
    new = {"release_id": "z", "name": "z"}
    bodies = CLOSING | {
        f"an entry with {what}": entry_with(url, **{**new, **changed})
        for what, changed in ENTRIES.items()
    }
    accepted = []
    for what, body in bodies.items():
        try:
            appended(releaser, body)
            accepted.append(what)
        except psycopg.Error as error:
            assert error.sqlstate in {"22000", "22P02", "22P05", "42501", "22003", "22023"}, what
    assert not accepted
    appended(releaser, entry_with(url, **new))
    appended(releaser, json.dumps({"noise": TOLD}))
    Ledger(releaser).charge(entry(pure(0.1)))
    assert len(Ledger(url).entries) == 3


def test_a_release_of_parts_is_accepted_of_who_may_only_insert(server):
    url = server.url()
    Ledger.create(url, budget=ONE, part="week")
    releaser = with_rights(server, url)
    Ledger(releaser).charge(replace(entry(pure(0.25)), part="47", note='a \\ and " in é'))
    assert Ledger(url).status(part=47).spent == pure(0.25)


def test_the_keeper_voids_a_row_that_nobody_can_read(url, releaser, capsys):
    ledger = Ledger(url)
    ledger.charge(entry(pure(0.25)))
    appended(url, '{"zz": 1}')
    with raises(LedgerError, "--void 2"):
        Ledger(releaser)
    assert main(["ledger", releaser, "--void", "2"]) == 2
    assert main(["ledger", url, "--void", "2"]) == 0
    assert "Void       entry 2" in capsys.readouterr().out
    assert ledger.status().spent == Ledger(releaser).status().spent == pure(0.25)
    Ledger(releaser).charge(entry(pure(0.1)))
    assert len(ledger.to_frame()) == 2


def test_what_may_be_a_charge_is_never_void(url):
    Ledger(url).charge(entry(pure(0.25)))
    appended(url, entry_with(url, release_id="z", loss__epsilon="x"))
    with raises(LedgerError, "entry 2") as caught:
        Ledger(url)
    assert "--void" not in str(caught.value)
    appended(url, '{"void": "2"}')
    with raises(LedgerError, "entry 2"):
        Ledger(url)
