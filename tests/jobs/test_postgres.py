"""Plans and commands with a ledger in PostgreSQL, whose password is never shown."""

import json

import pandas as pd
import pytest
from support.databases import KEEPERS_PASSWORD, URL_OF_KEEPER, table_of
from support.planning import SMALL_PLAN

import dpframe as dpf
from dpframe.jobs.commands import main

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
