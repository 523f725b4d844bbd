"""Ledgers in PostgreSQL: the same chain and promises as in files, whatever is cut or killed."""

import json
import os
import re
import signal
import threading
import time
from fractions import Fraction
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, gaussian, in_processes, pure
from support.databases import KEEPER, KEEPERS_PASSWORD, URL_OF_KEEPER, Proxy, table_of
from support.raising import raises
from support.terminal import main

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import (
    AlreadyReleasedError,
    BudgetExceededError,
    DeclarationError,
    DPFrameError,
    LedgerAlteredError,
    LedgerBusyError,
    LedgerError,
    ReleaseError,
)
from dpframe.ledger.chain import Row
from dpframe.ledger.ledger import open_patiently
from dpframe.ledger.postgres import LedgerTable
from dpframe.ledger.store import store_at
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.law import Law
from dpframe.testing import record

pytestmark = [
    pytest.mark.full,
    pytest.mark.server,
    # NumPy's threads are idle
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture
def url(server) -> str:
    made = server.url()
    Ledger.create(made, budget=ONE)
    return made


def trips(ledger: Ledger) -> pd.DataFrame:
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, bounds={"fare": (0, 9)}, ledger=ledger)
    return frame


def test_rows_are_those_of_a_file(tmp_path, server):
    path, url = tmp_path / "x.ledger", server.url()
    Ledger.create(path, budget=ONE, part="week")
    header = store_at(path).all_rows()
    store_at(url).create(header)
    file, table = Ledger(path), Ledger(url)
    charges = [entry(pure(0.1), name="é"), entry(gaussian(0.01)), entry(pure(0.2))]
    for one in charges:
        file.charge(one)
        table.charge(one)
    assert store_at(url).all_rows() == store_at(path).all_rows()
    assert table.head == file.head == Ledger(url).head
    assert table.status() == file.status()
    assert table.ledger_id == file.ledger_id
    assert table.to_frame().equals(file.to_frame())


def test_objects_on_one_table_spend_one_budget(server, url):
    first, second = Ledger(url), Ledger(server.by_socket(url), budget=ONE)
    first.charge(entry(pure(0.6)))
    assert second.glance().spent == second.status().spent == pure(0.6)
    with raises(BudgetExceededError, "epsilon=0.4 of Laplace", parameter="mu"):
        second.charge(entry(pure(0.5)))
    second.charge(entry(pure(0.4), name="last"))
    with pytest.raises(AlreadyReleasedError):
        first.charge(entry(pure(0.1), name="last"))
    assert first.status().remaining_epsilon < 1e-5
    with raises(DeclarationError, "must be that of the ledger postgresql://"):
        Ledger(url, budget=PURE)


def test_frames_are_released_on_it(server, url):
    ledger = Ledger(url)
    frame = trips(ledger)
    released = frame.dp.count(by="zone", epsilon=0.25, mechanism="laplace", name="zones")
    assert dpf.verify(released, ledger=Ledger(url)).ledger.id == ledger.ledger_id
    assert not frame.dp.plan(dpf.count(), epsilon=0.9).table["fits"].any()
    with raises(DeclarationError, "protects each row"):
        frame.dp.declare(privacy_unit="zone", max_rows=2, ledger=Ledger(url))
    shown = [
        repr(ledger),
        str(released.dp.certificate),
        json.dumps(released.attrs),
        str(vars(ledger)),
    ]
    for text in shown:
        assert KEEPERS_PASSWORD not in text and URL_OF_KEEPER.split(":")[1] not in text
    assert repr(ledger).startswith(f"<Ledger in postgresql://127.0.0.1:{server.port}/postgres?")


def test_in_a_test_nothing_is_charged_to_it(server, url):
    frame, made = trips(Ledger(url)), server.url()
    with record() as run:
        frame.dp.count(epsilon=0.25)
        Ledger.create(made, budget=ONE).charge(entry(pure(0.25)))
        assert len(Ledger(url).entries) == len(Ledger(made).entries) == 1
    assert len(run.measured) == 1
    assert Ledger(url).entries == ()
    with raises(LedgerError, "there is no ledger"):
        Ledger(made)


def test_one_is_made_once(server, url):
    with raises(LedgerError, "already"):
        Ledger.create(url, budget=ONE)
    other = server.url()

    def create():
        try:
            Ledger.create(other, budget=ONE)
        except LedgerError as error:
            return 1 if "already" in str(error) else 2
        return 0

    assert sorted(in_processes([create] * 4)) == [0, 1, 1, 1]
    assert Ledger(other).entries == ()
    server.run("CREATE TABLE dpframe.foreign_one (number int, body text, hash text)")
    with raises(LedgerError, "is not a ledger"):
        Ledger(server.url("foreign_one"))


WRONG = {
    "another password": ("keeper:secret1@127.0.0.1:{port}/postgres", "password authentication"),
    "no such database": (URL_OF_KEEPER + "@127.0.0.1:{port}/secret1", "does not exist"),
    "no such ledger": (
        URL_OF_KEEPER + "@127.0.0.1:{port}/postgres?ledger=no",
        "there is no ledger",
    ),
    "no such option": (URL_OF_KEEPER + "@127.0.0.1:{port}/postgres?x=secret1", "cannot be used"),
    "no such name": (
        URL_OF_KEEPER + "@127.0.0.1:{port}/postgres?ledger=A-secret1",
        "small letters",
    ),
    "a password with a mark": ("keeper:of@secret1@127.0.0.1/postgres", "not shown"),
    "no at": ("keeper:secret1/postgres", "not shown"),
}


@pytest.mark.sampled(every=7, full=99)
@pytest.mark.parametrize("what", WRONG)
def test_no_error_shows_a_password(server, what):
    url, words = WRONG[what]
    for use in (Ledger, lambda given: Ledger.create(given, budget=ONE)):
        if what == "no such ledger" and use is not Ledger:
            continue
        with raises(LedgerError, words) as caught:
            use(f"postgresql://{url.format(port=server.port)}")
        chain, error = [], caught.value
        while error is not None:
            chain.append(f"{error} {error.args} {getattr(error, 'value', '')}")
            error = None if error.__suppress_context__ else error.__cause__ or error.__context__
        seen = " ".join(chain)
        assert KEEPERS_PASSWORD not in seen and URL_OF_KEEPER not in seen
        if what not in ("no such database", "no such option"):
            assert "secret1" not in seen


@pytest.mark.audit
def test_a_server_that_is_away_may_be_asked_again(server, url):
    proxy = Proxy(server.port)
    ledger = Ledger(url.replace(str(server.port), str(proxy.port)))
    proxy.close()
    with raises(LedgerBusyError, "nothing was charged"):
        ledger._store.append(0, ledger.last_status().log.head, lambda _: pytest.fail("was asked"))
    with pytest.raises(LedgerBusyError):
        Ledger.create(server.url(port=proxy.port), budget=ONE)


# Who may only read and insert


@pytest.fixture
def releaser(server, url) -> str:
    name = f"releaser_{os.urandom(4).hex()}"
    server.run(
        f"CREATE ROLE {name} LOGIN PASSWORD 'weak'",
        f"GRANT USAGE ON SCHEMA dpframe TO {name}",
        f"GRANT SELECT, INSERT ON {table_of(url)} TO {name}",
    )
    return url.replace(URL_OF_KEEPER, f"{name}:weak")


def test_who_may_only_insert_can_release(releaser):
    ledger = Ledger(releaser)
    released = trips(ledger).dp.count(by="zone", epsilon=0.25)
    dpf.verify(released, ledger=ledger)
    assert len(Ledger(releaser).entries) == 1


def test_the_page_sets_it_up(server):
    import psycopg

    page = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text(encoding="utf-8")
    before, grants, people = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    passwords = "ALTER ROLE {} PASSWORD 'weak'"
    server.run(*before.strip().splitlines(), passwords.format("ledger_keeper"))
    given = re.search(r"^dpframe ledger '(\S+)' (--create .*)$", page, re.MULTILINE)
    at = f":weak@127.0.0.1:{server.port}/"
    url = given[1].replace("@db.clinic.example/", at)
    assert main(["ledger", url, *given[2].split()]) == 0
    keeper = {"user": "ledger_keeper", "password": "weak", "dbname": "ledgers"}
    server.run(*grants.strip().splitlines(), **keeper)
    server.run(people, passwords.format("anna"))
    trips(Ledger(url.replace("ledger_keeper", "anna"))).dp.count(by="zone", epsilon=0.25)
    for edit in EDITS:
        with pytest.raises(psycopg.Error):
            server.run(edit.format(table="dpframe.visits"), **{**keeper, "user": "anna"})
    assert len(Ledger(url).entries) == 1


EDITS = [
    "UPDATE {table} SET body = replace(body, '1/4', '1/9')",
    "DELETE FROM {table} WHERE number > 0",
    "TRUNCATE {table}",
    "DROP TABLE {table}",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "DROP TRIGGER only_grows ON {table}",
    "ALTER TABLE {table} OWNER TO CURRENT_USER",
    "SET session_replication_role = replica",
    "CREATE RULE away AS ON INSERT TO {table} DO INSTEAD NOTHING",
    "CREATE OR REPLACE FUNCTION {table}_grows() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN RETURN NEW; END'",
    "INSERT INTO {table} SELECT number + 1, body, hash FROM {table}",
    "INSERT INTO {table} SELECT * FROM {table} ON CONFLICT (number) DO UPDATE SET body = 'x'",
    "INSERT INTO {table} VALUES (-1, '{{}}', 'x')",
    "INSERT INTO {table} VALUES (99, '{{}}', 'x')",
    "CREATE TABLE dpframe.more (number int)",
]


@pytest.mark.sampled(every=7, full=99)
@pytest.mark.parametrize("edit", EDITS)
def test_who_may_only_insert_cannot_edit(server, url, releaser, edit):
    import psycopg

    Ledger(url).charge(entry(pure(0.25)))
    rows = store_at(url).all_rows()
    who, password = releaser.partition("//")[2].partition("@")[0].split(":")
    given = {"host": "127.0.0.1", "port": server.port, "dbname": "postgres"}
    with psycopg.connect(user=who, password=password, **given) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute(edit.format(table=table_of(url)))
    assert store_at(releaser).all_rows() == rows


@pytest.mark.audit
def test_not_even_its_owner_edits_by_mistake(server, url):
    import psycopg

    for edit in ("UPDATE {} SET hash = ''", "DELETE FROM {}", "TRUNCATE {}"):
        with pytest.raises(psycopg.Error, match="only grow"):
            server.run(edit.format(table_of(url)))


@pytest.mark.audit
def test_who_may_only_read_sees_and_charges_nothing(server, url):
    server.run(
        "CREATE ROLE reader LOGIN PASSWORD 'weak'",
        "GRANT USAGE ON SCHEMA dpframe TO reader",
        f"GRANT SELECT ON {table_of(url)} TO reader",
    )
    Ledger(url).charge(entry(pure(0.25)))
    ledger = Ledger(url.replace(URL_OF_KEEPER, "reader:weak"))
    assert ledger.status().spent == pure(0.25)
    with raises(LedgerError, "SELECT and INSERT") as caught:
        ledger.charge(entry(pure(0.25)))
    assert type(caught.value) is LedgerError
    assert len(Ledger(url).entries) == 1


# Damage

DAMAGES = {
    "an amount": "UPDATE {} SET body = replace(body, '1/4', '1/9') WHERE number = 1",
    "a hash": "UPDATE {} SET hash = repeat('0', 64) WHERE number = 2",
    "a row in the middle": "DELETE FROM {} WHERE number = 1",
    "the header": "DELETE FROM {} WHERE number = 0",
    "the budget": 'UPDATE {} SET body = replace(body, \'"epsilon":"1"\', \'"epsilon":"9"\') '
    "WHERE number = 0",
    "all entries": "DELETE FROM {} WHERE number > 0",
    "numbers": "UPDATE {} SET number = number + 1 WHERE number = 3",
}


@pytest.mark.sampled(every=7, full=99)
@pytest.mark.parametrize("damage", [one for one in DAMAGES if one != "all entries"])
def test_edits_with_all_rights_are_noticed(server, url, damage):
    ledger = Ledger(url)
    for _ in range(3):
        ledger.charge(entry(pure(0.25)))
    at_work = Ledger(url)
    server.run("SET session_replication_role = replica", DAMAGES[damage].format(table_of(url)))
    with pytest.raises(LedgerAlteredError):
        Ledger(url)
    if damage == "numbers":
        with raises(LedgerAlteredError, "Nothing is charged"):
            at_work.charge(entry(pure(0.25)))


@pytest.mark.audit
def test_entries_that_are_gone_are_missed_by_who_saw_them(server, url):
    ledger = Ledger(url)
    ledger.charge(entry(pure(0.25)))
    server.run(
        "SET session_replication_role = replica", DAMAGES["all entries"].format(table_of(url))
    )
    for use in (ledger.status, lambda: ledger.charge(entry(pure(0.25)))):
        with raises(LedgerAlteredError, "entry 1 is missing"):
            use()


@pytest.mark.sampled(every=7, full=99)
@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER only_grows ON {}",
        "ALTER TABLE {} DISABLE TRIGGER is_never_emptied",
        "ALTER TABLE {} ENABLE REPLICA TRIGGER only_grows",
        "CREATE OR REPLACE FUNCTION {}_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RETURN NEW; END'",
        "CREATE RULE away AS ON DELETE TO {} DO INSTEAD NOTHING",
        "ALTER TABLE {} ENABLE ROW LEVEL SECURITY",
    ],
)
def test_what_protects_it_is_looked_at_when_it_is_opened(server, url, change):
    server.run(change.format(table_of(url)))
    with raises(LedgerAlteredError, "not as they were made"):
        Ledger(url)


# Connections that are cut


@pytest.mark.sampled(every=3, full=99, offset=1)
@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("cut", ["before", "after", "late"])
def test_a_commit_that_is_cut_is_looked_up(server, url, cut, forever, monkeypatch):
    monkeypatch.setattr("dpframe.ledger.postgres._LOOK", 1.0)
    monkeypatch.setattr("dpframe.ledger.platform.USUAL_PATIENCE", 1.5)
    proxy = Proxy(server.port, cut, forever=forever)
    ledger = Ledger(url.replace(str(server.port), str(proxy.port)))
    if forever:
        with raises(ReleaseError, "Take the amount as spent"):
            ledger.charge(entry(pure(0.25)))
    elif cut == "before":
        with raises(LedgerBusyError, "nothing was charged"):
            ledger.charge(entry(pure(0.25)))
    else:
        ledger.charge(entry(pure(0.25)))
    if cut == "late":
        threading.Event().wait(1.2)
    assert len(Ledger(url).entries) == (cut != "before")
    if not forever:
        ledger.charge(entry(pure(0.25)))
        assert len(ledger.entries) == 1 + (cut != "before")


@pytest.mark.audit
def test_a_commit_that_is_not_looked_up_is_not_known(server, url, monkeypatch):
    """What the test above would miss: without the look, a spend that is recorded is denied."""
    monkeypatch.setattr("dpframe.ledger.postgres.LedgerTable._holds", lambda *_: False)
    monkeypatch.setattr(Ledger, "_may_hold", lambda *_: False)
    proxy = Proxy(server.port, "after")
    ledger = Ledger(url.replace(str(server.port), str(proxy.port)))
    with raises(LedgerBusyError, "nothing was charged"):
        ledger.charge(entry(pure(0.25)))
    assert len(Ledger(url).entries) == 1


def test_nothing_is_drawn_for_a_charge_that_is_not_known(server, url, monkeypatch):
    monkeypatch.setattr("dpframe.ledger.postgres._LOOK", 0.1)
    monkeypatch.setattr("dpframe.ledger.platform.USUAL_PATIENCE", 1.0)
    proxy = Proxy(server.port)
    frame = trips(Ledger(url.replace(str(server.port), str(proxy.port))))
    proxy.cut, proxy._forever = "after", True
    monkeypatch.setattr(Law, "draw", lambda *_: pytest.fail("noise was drawn"))
    with raises(ReleaseError, "nothing was released"):
        frame.dp.count(epsilon=0.25)
    assert len(Ledger(url).entries) == 1


@pytest.mark.audit
def test_the_lock_of_a_client_that_is_gone_ends(server, url, monkeypatch):
    monkeypatch.setattr("dpframe.ledger.postgres._BEGIN", _begin_with("1500"))
    store, ledger = store_at(url), Ledger(url)

    def decide(*_):
        threading.Event().wait(3)
        return None, Row(1, "{}", "")

    gone = []
    thread = threading.Thread(target=lambda: gone.append(_error(store, ledger, decide)))
    thread.start()
    threading.Event().wait(0.3)
    ledger.charge(entry(pure(0.25)))
    thread.join()
    assert isinstance(gone[0], LedgerError)
    assert len(Ledger(url).entries) == 1


def _begin_with(milliseconds: str):
    from sqlalchemy import text

    from dpframe.ledger import postgres

    assert "'30000'" in str(postgres._BEGIN)
    return text(str(postgres._BEGIN).replace("'30000'", f"'{milliseconds}'"))


def _error(store, ledger, decide) -> DPFrameError | None:
    try:
        store.append(0, ledger.last_status().log.hashes[0], decide)
    except DPFrameError as error:
        return error
    return None


@pytest.mark.audit
def test_a_ledger_that_others_keep_is_busy(url):
    ledger, other = Ledger(url), []

    def meanwhile(*_):
        thread = threading.Thread(target=lambda: other.append(_charge_error(url)))
        thread.start()
        thread.join()
        return None, None

    store_at(url).append(0, ledger.head, meanwhile)
    assert isinstance(other[0], LedgerBusyError)
    assert "nothing was charged" in str(other[0])


def _charge_error(url):
    try:
        open_patiently(url, 0.5).charge(entry(pure(0.25)))
    except LedgerError as error:
        return error
    return None


@pytest.mark.audit
def test_a_thread_does_not_wait_for_itself(url):
    ledger = Ledger(url)

    def meanwhile(*_):
        with raises(LedgerError, "this very thread"):
            Ledger(url)
        return None, None

    store_at(url).append(0, ledger.head, meanwhile)
    assert Ledger(url).entries == ()


def test_without_the_lock_spends_are_serializable(url, monkeypatch):
    """The lock spares attempts; that nothing is overspent does not depend on it."""
    from sqlalchemy import text

    monkeypatch.setattr("dpframe.ledger.postgres._BEGIN", text("SELECT true, :name"))
    share = PrivacyLoss(epsilon=Fraction(1, 12))

    def spend():
        ledger = Ledger(url)
        for _ in range(4):
            ledger.charge(entry(share))
        return 0

    assert in_processes([spend] * 3) == [0] * 3
    assert Ledger(url).status().spent.epsilon == 1


@pytest.mark.audit
def test_a_commit_is_on_disk_whatever_the_session_says(server, url):
    server.run("ALTER ROLE keeper SET synchronous_commit = off")
    try:
        seen = []
        ledger, store = Ledger(url), store_at(url)
        insert = type(store)._insert

        def watched(self, connection, rows):
            seen.append(connection.exec_driver_sql("SHOW synchronous_commit").scalar_one())
            insert(self, connection, rows)

        store._insert = watched.__get__(store)
        ledger._store = store
        ledger.charge(entry(pure(0.25)))
        assert seen == ["on"]
    finally:
        server.run("ALTER ROLE keeper RESET synchronous_commit")


# Waits have an end


def took(act, *words: str) -> float:
    """Refuse for now, and say after how many seconds."""
    begun = time.monotonic()
    patient = mock.patch("dpframe.ledger.platform.USUAL_PATIENCE", 2)
    with raises(LedgerBusyError, *words), patient:
        act()
    return time.monotonic() - begun


def test_a_table_that_an_administrator_keeps_is_busy(server, url):
    import psycopg

    ledger = Ledger(url)
    at = {"host": "127.0.0.1", "port": server.port, "dbname": "postgres"}
    with psycopg.connect(**at, user=KEEPER, password=KEEPERS_PASSWORD) as keeper:
        keeper.execute(f"LOCK TABLE {table_of(url)} IN ACCESS EXCLUSIVE MODE")
        assert took(lambda: ledger.charge(entry(pure(0.25))), "nothing was charged") < 7
        assert took(ledger.status) < 7
        keeper.rollback()
    ledger.charge(entry(pure(0.25)))


def test_a_server_that_stands_still_is_busy(server, url):
    ledger, standing = Ledger(url), []

    def decide(*_):
        (standing[:],) = server.run(
            "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = 'dpframe'"
        )
        for process in standing[0]:
            os.kill(process, signal.SIGSTOP)
        return None, Row(1, "{}", "")

    try:
        seconds = took(lambda: store_at(url).append(0, ledger.head, decide), "no answer in 2 s")
    finally:
        for process in standing[0]:
            os.kill(process, signal.SIGCONT)
    assert seconds < 7
    ledger.charge(entry(pure(0.25)))


def test_a_server_that_answers_nobody_is_busy(server, url):
    ledger = Ledger(url)
    first = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(first, signal.SIGSTOP)
    try:
        assert took(ledger.status, "nothing was charged") < 7
    finally:
        os.kill(first, signal.SIGCONT)


def test_a_commit_waits_for_a_standby_without_the_limit_of_the_server(server, url, monkeypatch):
    """A limit on the statement would end the wait, and the commit return as if all were well."""
    limits = []
    insert = LedgerTable._insert

    def inserted(self, connection, rows):
        before = connection.exec_driver_sql("SHOW statement_timeout").scalar_one()
        insert(self, connection, rows)
        limits.append((before, connection.exec_driver_sql("SHOW statement_timeout").scalar_one()))

    monkeypatch.setattr(LedgerTable, "_insert", inserted)
    Ledger(url).charge(entry(pure(0.25)))
    ((before, at_commit),) = limits
    assert before != "0" and at_commit == "0"
