"""Plans and commands with a ledger in PostgreSQL, whose password is never shown."""

import json
import os
from dataclasses import replace

import pandas as pd
import pytest
from support.databases import KEEPERS_PASSWORD, URL_OF_KEEPER, table_of
from support.planning import SMALL_PLAN
from support.terminal import main

import dpframe as dpf
from dpframe.ledger.leases import Beats, Owner
from dpframe.operations.tables import PlannedTables

pytestmark = [pytest.mark.full, pytest.mark.server]
LEDGER = """\
path = "postgresql://keeper:${LEDGER_PASSWORD}@127.0.0.1:PORT/postgres?ledger=NAME"
budget = { epsilon = 1 }
"""
PLAN = SMALL_PLAN.replace('path = "trips.ledger"\n', LEDGER)


def test_a_plan_from_its_ledger_to_its_report(server, tmp_path, monkeypatch, capsys):
    url = server.url()
    name = table_of(url).partition(".")[2]
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("PORT", str(server.port)).replace("NAME", name))
    pd.DataFrame({"zone": ["A", "B", "A"]}).to_csv(tmp_path / "private.csv", index=False)
    monkeypatch.setenv("LEDGER_PASSWORD", URL_OF_KEEPER.partition(":")[2])
    out = str(tmp_path / "out.csv")
    for code, *command in [
        (0, "preview", str(plan), "--without-data"),
        (2, "release", str(plan)),  # there is no ledger yet
        (0, "ledger", url, "--create", "--epsilon", "1"),
        (2, "ledger", url, "--create", "--epsilon", "2"),
        (0, "preview", str(plan)),
        (0, "release", str(plan)),
        (0, "release", str(plan), "--name", "two", "--overwrite"),
        (0, "ledger", url),
        (0, "verify", out, "--ledger", url),
        (0, "report", out, "--ledger", url, "--output", str(tmp_path / "page.html")),
        (0, "rehearse", str(plan), "--output", str(tmp_path / "trial")),
        (2, "ledger", url.replace(URL_OF_KEEPER, "keeper:secret1")),
        (75, "ledger", url.replace(str(server.port), "1")),
        (2, "ledger", "postgresql://keeper:se@cret1@host/x"),
        (2, "ledger", "mysql://keeper:secret1@host/x"),
    ]:
        assert main(command) == code, (command, capsys.readouterr())
    shown = capsys.readouterr()
    printed = f"{shown.out} {shown.err} {(tmp_path / 'page.html').read_text()}"
    for secret in (KEEPERS_PASSWORD, URL_OF_KEEPER.partition(":")[2], "cret1"):
        assert secret not in printed
    assert main(["release", str(plan), "--name", "two", "--overwrite"]) == 4
    assert main(["ledger", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["used"] > 0
    assert len(dpf.Ledger(url).entries) == 2


@pytest.fixture
def released(server, tmp_path, monkeypatch):
    """A plan of someone who has the rights of the page, and what releases it."""
    url, name = server.url(), f"job_{os.urandom(4).hex()}"
    table = table_of(url)
    dpf.Ledger.create(url, budget=dpf.Budget(1))
    server.run(
        f"CREATE ROLE {name} LOGIN PASSWORD 'weak-one'",
        f"GRANT USAGE ON SCHEMA dpframe TO {name}",
        f"GRANT SELECT, INSERT ON {table} TO {name}",
    )
    plan = tmp_path / "plan.toml"
    text = PLAN.replace("PORT", str(server.port)).replace("NAME", table.partition(".")[2])
    plan.write_text(text.replace("keeper:", f"{name}:"))
    pd.DataFrame({"zone": ["A", "B", "A"]}).to_csv(tmp_path / "private.csv", index=False)
    monkeypatch.setenv("LEDGER_PASSWORD", "weak-one")

    def release(*more):
        return main(["release", str(plan), *more])

    release.grant = lambda: server.run(f"GRANT SELECT, INSERT, UPDATE ON {table}_leases TO {name}")
    release.url = url
    return release


def test_runs_of_plans_need_rights_to_leases(released, capsys):
    assert released() == 2
    assert "UPDATE on its leases" in capsys.readouterr().err
    assert dpf.Ledger(released.url).entries == ()
    released.grant()
    assert released() == 0
    assert released() == 4


def test_a_second_start_waits_for_a_run_that_is_alive(released, capsys, monkeypatch):
    codes, measure = [], PlannedTables.measure

    def slow(*arguments):
        if dpf.Ledger(released.url).entries and not codes:
            codes.append(None)  # the second start tries its plan, too
            codes.append(released("--patience", "1"))
        return measure(*arguments)

    released.grant()
    monkeypatch.setattr(PlannedTables, "measure", slow)
    assert released("--overwrite") == 0
    assert codes == [None, 75]
    assert "nothing is lost" in capsys.readouterr().err
    assert dpf.Ledger(released.url).run_of("one").state.written


def test_a_lease_of_another_machine_expires_by_the_clock_of_the_server(
    server, released, monkeypatch
):
    released.grant()
    with monkeypatch.context() as patch:
        elsewhere = replace(Owner.here(), node="elsewhere")
        patch.setattr(Owner, "here", lambda spool="": elsewhere)
        patch.setattr(Beats, "end", Beats.stop)  # as if it was killed
        patch.setattr(PlannedTables, "measure", once_charged(released.url, PlannedTables.measure))
        assert released() == 5
    assert released("--patience", "0") == 75
    table = f"{table_of(released.url)}_leases"
    server.run(f"UPDATE {table} SET expires = expires - 61")  # noqa: S608
    assert released("--patience", "0") == 0
    assert dpf.Ledger(released.url).run_of("one").state.epoch == 1


def once_charged(url, act):
    def failing(*arguments):
        if dpf.Ledger(url).entries:
            raise MemoryError
        return act(*arguments)

    return failing
