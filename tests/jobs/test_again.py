"""Runs that are started again: done is done, and what was lost is told."""

import pytest
from support.planning import TRIPS, planned

import dpframe as dpf
from dpframe.jobs import commands as jobs
from dpframe.jobs.answers import DONE_BEFORE, LEFT_OVER, SOUND, TOO_MUCH
from dpframe.jobs.commands import main

MARCH = ("--set", "month=2024-03")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Take files that are not there for lost at once."""
    monkeypatch.setattr(jobs, "_PATIENCE", 0.0)


@pytest.mark.parametrize("lost", ["fares-2024-03.csv", "by_zone-2024-03.csv.certificate.json"])
def test_a_run_whose_files_are_lost_is_not_done(tmp_path, capsys, lost):
    plan = planned(tmp_path)
    run = ["release", str(plan), *MARCH]
    assert main(run) == SOUND
    assert main(run) == DONE_BEFORE
    (tmp_path / lost).unlink()
    capsys.readouterr()
    assert main(run) == LEFT_OVER
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{lost} is not there" in said
    assert "--name 'trips 2024-03 b'" in said
    assert main(["preview", *run[1:]]) == DONE_BEFORE
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 1
    assert main([*run, "--name", "trips 2024-03 b", "--overwrite"]) == SOUND
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 2


def test_a_run_that_failed_after_the_charge_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    from dpframe.engines.scans import ScanEngine

    plan = planned(tmp_path, ("trips-{month}.csv", "trips-{month}.parquet"))
    TRIPS.to_parquet(tmp_path / "trips-2024-03.parquet")

    def lost(*_):
        raise OSError("private text")

    with monkeypatch.context() as patch:
        patch.setattr(ScanEngine, "totals", lost)
        assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    assert "--name 'trips 2024-03 b'" in capsys.readouterr().err
    assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    assert "by_zone-2024-03.csv is not there" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["preview", "release"])
@pytest.mark.parametrize(
    "amount", ["share = 1", "epsilon = 2\ndelta = 1e-6\nmechanism = 'gaussian'"]
)
def test_a_ledger_that_is_used_up_is_called_so(tmp_path, capsys, command, amount):
    plan = planned(tmp_path, ('share = "1/12"', amount))
    assert main(["release", str(plan), *MARCH, "--quiet"]) == SOUND
    again = ["--set", "month=4", "--data", str(tmp_path / "trips-2024-03.csv")]
    assert main([command, str(plan), *again]) == TOO_MUCH
    err = capsys.readouterr().err
    assert "this ledger is used up; its budget is fixed" in err
    assert "declare a larger budget" not in err


def test_errors_of_means_are_explained(tmp_path, capsys):
    plan = str(planned(tmp_path))
    assert main(["preview", plan, *MARCH]) == SOUND
    out = capsys.readouterr().out
    assert "Means and rates: divide by the rows of a group, or give --rows N." in out
    assert "no interval shows; dpf.diagnose does" in out
    assert main(["preview", plan, *MARCH, "--rows", "100"]) == SOUND
    assert "divide by the rows" not in capsys.readouterr().out


def started_while_another_writes(tmp_path, monkeypatch, seconds):
    """Release, and look for the files of a second run while those of the first come late."""
    plan = planned(tmp_path)
    run = ["release", str(plan), *MARCH]
    assert main(run) == SOUND
    place = tmp_path / "fares-2024-03.csv"
    late = place.rename(tmp_path / "late.csv")
    slept = []

    def sleep(pause):
        slept.append(pause)
        if len(slept) == 2:
            late.rename(place)

    monkeypatch.setattr(jobs.time, "sleep", sleep)
    monkeypatch.setattr(jobs, "_PATIENCE", seconds)
    return main(run), len(slept)


def test_of_two_runs_at_once_one_waits_for_the_files(tmp_path, monkeypatch):
    assert started_while_another_writes(tmp_path, monkeypatch, 600.0) == (DONE_BEFORE, 2)


def test_files_of_a_run_that_ended_long_ago_are_not_waited_for(tmp_path, monkeypatch):
    assert started_while_another_writes(tmp_path, monkeypatch, 0.0) == (LEFT_OVER, 0)
