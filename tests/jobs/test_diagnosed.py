"""`dpframe diagnose` prints exact numbers to the curator, and to nobody else."""

import json
import sys

import pandas as pd
import pytest
from support.planning import TRIPS
from support.terminal import SOUND, UNREADABLE, main

import dpframe as dpf

MARCH = ("--set", "month=2024-03")
HEADING = "NOT FOR PUBLICATION"


def diagnosed(plan, *more):
    return main(["diagnose", str(plan), *MARCH, *more])


def test_it_prints_what_the_call_says_and_spends_nothing(plan, capsys):
    before = {path: path.read_bytes() for path in plan.parent.iterdir() if path.is_file()}
    assert diagnosed(plan, "--private", "--json") == SOUND
    said = json.loads(capsys.readouterr().out)
    assert said["private"].startswith(HEADING)
    found = pd.DataFrame(said["diagnoses"]["by_zone"]).set_index(["part", "step"])["rows"]
    assert found["rows"]["in all"] == len(TRIPS)
    rows = found["rows"].drop("in all")
    assert rows.sum() == len(TRIPS)
    assert rows["counted"] < len(TRIPS)
    assert list(said["diagnoses"]) == ["by_zone", "fares"]
    assert {path: path.read_bytes() for path in before} == before
    assert not dpf.Ledger(plan.parent / "trips.ledger").entries
    assert diagnosed(plan, "--private") == SOUND
    shown = capsys.readouterr().out
    assert shown.startswith(HEADING)
    assert f"{len(TRIPS):>12,}  100.0%  in all" in shown


@pytest.mark.parametrize("more", [(), ("--json",), ("--quiet",)])
def test_without_a_terminal_it_prints_no_number(plan, capsys, more):
    assert diagnosed(plan, *more) == UNREADABLE
    out, err = capsys.readouterr()
    assert "Add --private" in out + err
    assert "in all" not in out + err


def test_a_terminal_needs_no_option(plan, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert diagnosed(plan) == SOUND
    assert capsys.readouterr().out.startswith(HEADING)


def test_what_is_wrong_with_a_plan_is_said_with_its_place(plan, capsys):
    plan.write_text(plan.read_text().replace('columns = "fare"', 'columns = "fair"'))
    assert diagnosed(plan, "--private") == UNREADABLE
    out, err = capsys.readouterr()
    assert "'fair'" in err
    assert HEADING not in out


def test_labels_that_are_looked_for_are_diagnosed(plan, capsys):
    text = plan.read_text()
    begin, end = text.index("[queries.by_zone]"), text.index("[release]")
    wanted = '[queries.zones]\nkind = "discover"\nby = "zone"\nmax_groups = 1\n\n'
    text = text[:begin] + wanted + text[end:]
    plan.write_text(text)
    assert diagnosed(plan, "--private") == SOUND
    assert "labels: " in capsys.readouterr().out
