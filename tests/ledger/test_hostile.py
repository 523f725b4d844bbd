"""Files of ledgers that somebody made to do harm: refused soon, in words of our own."""

import time
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

import pytest
from support.charging import ONE, entry, pure
from support.crafting import ledger_of, opened, rewrite
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import CalibrationError, LedgerError
from dpframe.ledger import chain
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.file import LedgerFile
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import PrivacyLoss, Spend

SECONDS = 2
LONG = f"{3 ** (10**6):#x}/{7 ** (10**6):#x}"


def changed(row, *names, value):
    """Change something in a row."""

    def change(bodies):
        part = bodies[row]
        for name in names[:-1]:
            part = part[name]
        part[names[-1]] = value

    return change


CHANGED = {
    "a loss of a million digits": changed(1, "loss", "epsilon", value=LONG),
    "a share of a million digits": changed(1, "spend", "amount", value=LONG),
    "a budget of a million digits": changed(0, "budget", "epsilon", value=LONG),
    "a name that is a list": changed(1, "name", value=["a"]),
    "a name that is a number": changed(1, "name", value=1),
    "an identifier that is an object": changed(1, "release_id", value={}),
    "a column that is a number": changed(1, "columns", value=[1]),
    "columns that are a number": changed(1, "columns", value=1),
    "no identifier": changed(1, "release_id", value=None),
    "a note that is a list": changed(1, "note", value=[1]),
    "an order of one": changed(0, "pots", 2, "order", value="1"),
    "an order below one": changed(0, "pots", 2, "order", value="1/2"),
    "a huge order": changed(0, "pots", 2, "order", value="1" + "0" * 400),
    "a limit below zero": changed(0, "pots", 1, "limit", value="-1"),
    "very many pots": lambda bodies: bodies[0]["pots"].extend(bodies[0]["pots"][-1:] * 10**4),
}


@pytest.mark.parametrize("name", CHANGED)
def test_rows_that_mean_nothing_are_refused(tmp_path, name):
    path = ledger_of(tmp_path / "x.ledger", CHANGED[name])
    begun = time.perf_counter()
    with raises(LedgerError, "written"):
        Ledger(path)
    assert time.perf_counter() - begun < SECONDS


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE VIEW other AS {ENDLESS.format('i')}",
        "CREATE TABLE other (x DEFAULT (randomblob(1000000000)))",
        "CREATE TRIGGER other AFTER INSERT ON chain BEGIN SELECT randomblob(1000000000); END",
    ],
)
def test_other_parts_of_the_file_are_refused(tmp_path, statement):
    path = Ledger.create(tmp_path / "x.ledger", budget=ONE).path
    with opened(path) as connection:
        connection.execute(statement)
    with raises(LedgerError, "was changed"):
        Ledger(path)


def test_a_view_in_place_of_what_sqlite_keeps_is_refused(tmp_path):
    path = Ledger.create(tmp_path / "x.ledger", budget=ONE).path
    view = f"CREATE VIEW sqlite_sequence AS {ENDLESS.format('i AS seq, i AS name')} WHERE i < 0"
    with opened(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET type = 'view', rootpage = 0, sql = ? "
            "WHERE name = 'sqlite_sequence'",
            (view,),
        )
    begun = time.perf_counter()
    with pytest.raises(LedgerError):
        Ledger(path)
    assert time.perf_counter() - begun < SECONDS


def test_a_row_that_is_too_long_is_refused(tmp_path):
    path = Ledger.create(tmp_path / "x.ledger", budget=ONE).path
    with opened(path) as connection:
        (body,) = connection.execute("SELECT body FROM chain").fetchone()
        rewrite(connection, [body, "[" + "{}," * 4_000_000 + "{}]"])
    begun = time.perf_counter()
    with raises(LedgerError, "cannot be read"):
        Ledger(path)
    assert time.perf_counter() - begun < SECONDS


class Reading(NamedTuple):
    """A connection that has nothing but rows."""

    rows: Iterator[tuple[int, str, str]]

    def execute(self, *_):
        return self.rows


def test_rows_are_read_up_to_the_first_that_is_out_of_order(tmp_path):
    path = Ledger.create(tmp_path / "x.ledger", budget=ONE).path
    with opened(path) as connection:
        for number in range(5, 50):
            connection.execute("INSERT INTO chain VALUES (?, '{}', 'x')", (number,))
        read = iter(connection.execute("SELECT number, body, hash FROM chain"))
        with raises(LedgerError, "entry 1"):
            LedgerFile(path)._rows(Reading(read), 0)
        assert next(read)[0] < 10
    with raises(LedgerError, "entry 1"):
        Ledger(path)


def test_an_amount_that_could_not_be_read_again_is_not_charged():
    ledger = Ledger(budget=ONE)
    with raises(CalibrationError, "digits", parameter="epsilon"):
        ledger.charge(entry(PrivacyLoss(epsilon=Fraction(1, 3**300_000))))
    assert ledger.entries == ()
    ledger.charge(entry(pure(Fraction(1, 3**30_000))))


@pytest.mark.parametrize(
    "change",
    [
        ('"note":', '"protected":{},"note":'),
        ('{"columns"', '{,"columns"'),
        ('"user":null', '"user":1'),
        ('"what":"c"}', '"what":"c"} '),
        ('"delta":"0"', '"delta":"-1"'),
        ('"part":"7"', '"part":""'),
    ],
)
def test_a_row_that_no_release_wrote_is_not_read(change) -> None:
    """Whatever its hash says: whoever can write the file can compute that."""
    start, header = Chain.start("x", ONE, "week")
    entry = chain._json_of(Entry("a", "b", "c", "d", Spend.of(epsilon=1), PrivacyLoss(), part="7"))
    body = chain._canonical(entry)
    assert start.extend([_row(header, body)], "x").log.releases == 1
    assert body.replace(*change) != body
    with raises(LedgerError, "entry 1"):
        start.extend([_row(header, body.replace(*change))], "x")


def _row(before, body):
    return Row(1, body, sha256(f"{before.hash}\n{body}".encode()).hexdigest())
