"""Runs that are started again: done is done, and what was lost is told."""

import shlex

import pytest
from support.planning import TRIPS, planned
from support.terminal import DONE_BEFORE, LEFT_OVER, SOUND, TOO_MUCH, UNREADABLE, main

import dpframe as dpf
from dpframe.operations.tables import PlannedTables

MARCH = ("--set", "month=2024-03")


@pytest.mark.parametrize("lost", ["fares-2024-03.csv", "by_zone-2024-03.csv.certificate.json"])
def test_a_run_whose_files_are_lost_is_not_done(tmp_path, capsys, lost):
    plan = planned(tmp_path)
    run = ["release", str(plan), *MARCH]
    assert main(run) == SOUND
    assert main(run) == DONE_BEFORE
    archived = (tmp_path / lost).rename(tmp_path / "archived")
    capsys.readouterr()
    assert main(run) == LEFT_OVER
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{lost} is not there: put back what was moved." in said
    archived.rename(tmp_path / lost)
    assert main(run) == DONE_BEFORE
    (tmp_path / lost).unlink()
    advice = said.partition("give another name: ")[2].rstrip(".")
    assert main(["preview", *run[1:]]) == DONE_BEFORE
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 1
    assert main([*run, *shlex.split(advice)]) == SOUND
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 2


def test_a_run_that_failed_after_the_charge_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    from dpframe.engines.scans import ScanEngine

    plan = planned(tmp_path, ("trips-{month}.csv", "trips-{month}.parquet"))
    TRIPS.to_parquet(tmp_path / "trips-2024-03.parquet")

    totals = ScanEngine.totals

    def lost(engine, frame, tasks, context):
        if frame.source.rows:  # a trial has none
            raise OSError("private text")
        return totals(engine, frame, tasks, context)

    with monkeypatch.context() as patch:
        patch.setattr(ScanEngine, "totals", lost)
        assert main(["release", str(plan), *MARCH]) == LEFT_OVER
        for left in ("3 more times", "2 more times", "1 more time."):
            assert left in capsys.readouterr().err
            assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    err = capsys.readouterr().err
    assert "ended before its noise 4 times" in err and "--name 'trips 2024-03 b'" in err


def test_a_run_that_failed_before_its_noise_begins_again(tmp_path, capsys, monkeypatch):
    plan = planned(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(PlannedTables, "measure", once_charged(plan, PlannedTables.measure))
        assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    capsys.readouterr()
    assert main(["preview", str(plan), *MARCH]) == SOUND
    assert "begins again, and is charged nothing" in capsys.readouterr().err
    assert main(["release", str(plan), *MARCH]) == SOUND
    assert "begins again, and is charged nothing" in capsys.readouterr().err
    assert main(["release", str(plan), *MARCH]) == DONE_BEFORE
    ledger = dpf.Ledger(tmp_path / "trips.ledger")
    assert len(ledger.entries) == 1
    assert dpf.verify(dpf.read_csv(tmp_path / "fares-2024-03.csv"), ledger=ledger)


def once_charged(plan, measure):
    """Fail as soon as the ledger is charged."""

    def failing(*arguments):
        if dpf.Ledger(plan.parent / "trips.ledger").entries:
            raise OSError("private text")
        return measure(*arguments)

    return failing


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "change",
    [
        ("max_rows = 3", "max_rows = 2"),
        ('share = "1/12"', 'share = "1/13"'),
        ("keys.zone = [", 'missing.fare = "drop"\nkeys.zone = ['),
        ("bins = 10", "bins = 11"),
        ("trips-{month}.csv", "./trips-{month}.csv"),
    ],
)
def test_another_plan_of_the_same_name_is_not_done(tmp_path, capsys, change):
    plan = planned(tmp_path)
    run = ["release", str(plan), *MARCH, "--quiet"]
    assert main(run) == SOUND
    plan.write_text(plan.read_text().replace(*change))
    assert main(run) == UNREADABLE
    err = capsys.readouterr().err
    assert "by another plan" in err and "release.name" in err
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 1


def test_a_release_of_python_is_not_the_run_of_a_plan(tmp_path, capsys):
    plan = planned(tmp_path)
    frame = TRIPS.astype({"driver": str})
    ledger = dpf.Ledger(tmp_path / "trips.ledger")
    frame.dp.declare(privacy_unit="driver", max_rows=3, ledger=ledger)
    frame.dp.count(name="trips 2024-03", epsilon=0.1)
    assert main(["release", str(plan), *MARCH]) == UNREADABLE
    assert "without a plan" in capsys.readouterr().err


def test_what_does_not_decide_on_a_release_is_the_same_plan(tmp_path):
    plan = planned(tmp_path)
    run = ["release", str(plan), *MARCH, "--quiet"]
    assert main(run) == SOUND
    text = plan.read_text().replace('files = "{query}', 'note = "late"\nfiles = "./{query}')
    plan.write_text(f"# a comment\n{text}\n")
    assert main(run) == DONE_BEFORE


def test_groups_of_another_file_make_another_plan(tmp_path):
    plan = planned(tmp_path, ('["A", "B", "C"]', '{ file = "zones.txt" }'))
    zones = tmp_path / "zones.txt"
    zones.write_text("A\nB\n")
    run = ["release", str(plan), *MARCH, "--quiet"]
    assert main(run) == SOUND
    assert main(run) == DONE_BEFORE
    zones.write_text("A\nC\n")
    assert main(run) == UNREADABLE


def test_a_file_that_is_cut_is_not_that_of_a_run(tmp_path, capsys):
    plan = planned(tmp_path)
    run = ["release", str(plan), *MARCH, "--quiet"]
    assert main(run) == SOUND
    place, other = tmp_path / "fares-2024-03.csv", tmp_path / "by_zone-2024-03.csv"
    whole = place.read_text()
    place.write_text(whole[: len(whole) // 2])
    assert main(run) == LEFT_OVER
    assert "fares-2024-03.csv is cut" in capsys.readouterr().err
    place.write_text(whole)
    assert main(run) == DONE_BEFORE
    assert main([*run, "--name", "trips 2024-03 b", "--overwrite"]) == SOUND
    assert main(run) == LEFT_OVER
    assert f"{other} is of another release" in capsys.readouterr().err


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
    assert '"1 / rows": divide by the rows of a group, or give --rows N.' in out
    assert "no interval shows; dpframe diagnose does" in out
    assert main(["preview", plan, *MARCH, "--rows", "100"]) == SOUND
    assert "divide by the rows" not in capsys.readouterr().out


def test_errors_of_weighted_shares_are_explained(tmp_path, capsys):
    share = '{ kind = "rate", condition = "fare > 10", weights = "fare" }'
    changes = [
        ('{ kind = "mean", columns = "fare" }', share),
        ('{ kind = "count" }', '{ kind = "count", weights = "fare" }'),
    ]
    assert main(["preview", str(planned(tmp_path, *changes)), *MARCH]) == SOUND
    assert "divide by the weighted total of a group" in capsys.readouterr().out
