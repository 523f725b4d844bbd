"""Commands on plans: what they print, what they leave behind, and their exit codes."""

import gzip
import json
import stat

import pytest
from support.planning import BUDGET, TRIPS, planned
from support.terminal import ALTERED, DONE_BEFORE, LEFT_OVER, SOUND, TOO_MUCH, UNREADABLE, main

import dpframe as dpf

MARCH = ("--set", "month=2024-03")


def run(command, plan, *more):
    return main([command, str(plan), *MARCH, *more])


def releases(plan):
    return len(dpf.Ledger(plan.parent / "trips.ledger").entries)


def test_a_plan_is_released_in_one_charge(plan, capsys):
    assert run("release", plan) == SOUND
    out, err = capsys.readouterr()
    begins, ends = err.splitlines()  # for a log: there is no terminal
    assert "begins" in begins
    assert "ends" in ends
    ledger = dpf.Ledger(plan.parent / "trips.ledger")
    (entry,) = ledger.entries
    assert entry.name == "trips 2024-03"
    for name, columns in (("by_zone", ["trips", "fare"]), ("fares", ["count"])):
        path = plan.parent / f"{name}-2024-03.csv"
        assert f"{path}: written" in out
        released = dpf.read_csv(path)
        assert list(released.columns) == columns
        assert dpf.verify(released, ledger=ledger).release_id == entry.release_id
    assert main(["verify", *map(str, plan.parent.glob("*-2024-03.csv"))]) == ALTERED  # the data


def test_what_is_released_is_what_the_call_releases(plan):
    text = plan.read_text().replace('share = "1/12"', "epsilon = 1e6\ndelta = 0")
    plan.write_text(text.replace("max_rows = 3", "max_rows = 60"))
    place = plan.parent / "trips.ledger"
    place.unlink()
    dpf.Ledger.create(place, budget=dpf.Budget(epsilon=1e6, delta=1e-9))
    assert run("release", plan, "--quiet") == SOUND
    released = dpf.read_csv(plan.parent / "by_zone-2024-03.csv")
    assert released["trips"].tolist() == [60, 20, 20]
    clipped = TRIPS["fare"].clip(0, 100).groupby(TRIPS["zone"]).mean()
    assert released["fare"].round(1).tolist()[:2] == clipped.round(1).tolist()[:2]
    fares = dpf.read_csv(plan.parent / "fares-2024-03.csv")
    assert fares["count"].tolist() == [40, 20, 0, 0, 0, 0, 0, 0, 0, 0]


def test_a_preview_reads_no_rows_and_changes_nothing(plan, capsys):
    (plan.parent / "trips-2024-03.csv.gz").write_bytes(
        gzip.compress(b"driver,zone,fare\n") + gzip.compress(b"1,A,5\n" * 20_000)[:-9]
    )
    plan.write_text(plan.read_text().replace('{month}.csv"\n\n[decl', '{month}.csv.gz"\n\n[decl'))
    before = {path: path.read_bytes() for path in plan.parent.iterdir()}
    assert run("preview", plan) == SOUND
    out, _ = capsys.readouterr()
    assert "'trips 2024-03'" in out
    assert "fits" in out
    assert {path: path.read_bytes() for path in plan.parent.iterdir()} == before
    assert dpf.Ledger(plan.parent / "trips.ledger").protected is None
    assert run("release", plan) == UNREADABLE
    assert releases(plan) == 0


def test_a_preview_needs_neither_data_nor_ledger(plan, capsys):
    for name in ("trips.ledger", "trips-2024-03.csv"):
        (plan.parent / name).unlink()
    assert run("preview", plan) == UNREADABLE
    assert "there is no" in capsys.readouterr().err
    plan.write_text(plan.read_text() + "budget = { epsilon = 2, delta = 1e-6 }\n")
    assert run("preview", plan, "--without-data", "--json") == SOUND
    facts = json.loads(capsys.readouterr().out)
    assert facts["fits"]
    assert facts["columns"] == ["driver", "fare", "zone"]
    assert [row["column"] for row in facts["outputs"]] == ["trips", "fare", "count"]
    assert not (plan.parent / "trips.ledger").exists()


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_preview_of_what_will_be_refused_is_no_success(plan, capsys, quiet):
    place = plan.parent / "trips.ledger"
    place.unlink()
    plan.write_text(plan.read_text() + "budget = { epsilon = 2, delta = 1e-6 }\n")
    way_out = f"dpframe ledger {place} --create --epsilon 2.0 --delta 1e-06."
    for more, code in (((), UNREADABLE), (("--without-data",), SOUND)):
        assert run("preview", plan, *more, *quiet) == code
        out, err = capsys.readouterr()
        assert ("half_width_95" in out) != bool(quiet)
        (line,) = err.splitlines()
        assert f"the ledger {place} is not made yet: a release is refused" in line
        assert line.endswith(way_out)
        assert ("warning: " in line) == bool(more)
    assert run("release", plan) == UNREADABLE
    assert capsys.readouterr().err.endswith(f"{way_out}\n")
    assert main(way_out.rstrip(".").split()[1:]) == SOUND
    assert run("preview", plan, *quiet) == SOUND


def test_means_are_shown_for_groups_of_a_size(plan, capsys):
    assert run("preview", plan, "--rows", "2000") == SOUND
    assert "cell of 2,000 rows" in capsys.readouterr().out


def test_twelve_runs_fill_a_budget_and_a_thirteenth_is_refused(plan, capsys):
    data = str(plan.parent / "trips-2024-03.csv")
    for month in range(1, 13):
        again = ["release", str(plan), "--set", f"month={month}", "--data", data, "--quiet"]
        assert main(again) == SOUND
    assert capsys.readouterr().out == ""
    status = dpf.Ledger(plan.parent / "trips.ledger").status()
    assert len(status.entries) == 12
    assert status.largest_share == 0
    assert len({entry.loss for entry in status.entries}) == 1
    assert main(["release", str(plan), "--set", "month=13", "--data", data]) == TOO_MUCH
    assert "does not fit" in capsys.readouterr().err
    assert len(list(plan.parent.glob("*-13.csv"))) == 0


def test_a_preview_says_that_a_release_does_not_fit(plan, capsys):
    plan.write_text(plan.read_text().replace('share = "1/12"', "epsilon = 3"))
    for command in ("preview", "release"):
        assert run(command, plan) == TOO_MUCH
        assert "does not fit" in capsys.readouterr().err
    assert releases(plan) == 0


@pytest.mark.parametrize("command", ["preview", "release"])
def test_a_job_that_was_done_is_not_done_again(plan, capsys, command):
    assert run("release", plan) == SOUND
    capsys.readouterr()
    assert run(command, plan, "--overwrite") == DONE_BEFORE
    assert "was released already" in capsys.readouterr().err
    assert releases(plan) == 1


def test_files_that_are_there_stay(plan, capsys):
    place = plan.parent / "fares-2024-03.csv.certificate.json"
    place.write_text("mine")
    assert run("release", plan) == UNREADABLE
    assert "there is a file" in capsys.readouterr().err
    assert (place.read_text(), releases(plan)) == ("mine", 0)
    assert run("release", plan, "--overwrite", "--quiet") == SOUND
    assert place.read_text() != "mine"


def test_releases_that_cannot_be_written_are_kept(plan, capsys, monkeypatch):
    from dpframe.jobs import output_files

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(output_files, "_write", full)
        assert run("release", plan) == LEFT_OVER
    err = capsys.readouterr().err
    (spool,) = plan.parent.glob("trips.ledger.runs/*")
    assert str(spool) in err and "--name" not in err
    assert stat.S_IMODE(spool.stat().st_mode) == 0o600
    assert run("release", plan) == SOUND
    assert "charged nothing" in capsys.readouterr().err
    assert not spool.parent.exists()
    ledger = dpf.Ledger(plan.parent / "trips.ledger")
    assert len(ledger.entries) == 1
    for name in ("by_zone", "fares"):
        dpf.verify(dpf.read_csv(plan.parent / f"{name}-2024-03.csv"), ledger=ledger)


def test_an_interrupt_while_files_are_written_loses_nothing(plan, capsys, monkeypatch):
    from dpframe.jobs import output_files

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(output_files, "_write", stop)
        assert run("release", plan) == LEFT_OVER
    assert len(list(plan.parent.glob("trips.ledger.runs/*"))) == 1
    assert run("release", plan) == SOUND


def test_data_that_fail_after_the_charge_are_told(tmp_path, capsys, monkeypatch):
    from dpframe.engines.scans import ScanEngine

    plan = planned(tmp_path, ("trips-{month}.csv", "trips-{month}.parquet"))
    TRIPS.to_parquet(tmp_path / "trips-2024-03.parquet")

    totals = ScanEngine.totals

    def lost(engine, frame, tasks, context):
        if frame.source.rows:  # a trial has none
            raise OSError("private text")
        return totals(engine, frame, tasks, context)

    monkeypatch.setattr(ScanEngine, "totals", lost)
    assert run("release", plan) == LEFT_OVER
    err = capsys.readouterr().err
    assert "stays charged" in err
    assert "private text" not in err
    assert releases(plan) == 1


def test_facts_for_programs(plan, capsys):
    assert run("release", plan, "--json") == SOUND
    facts = json.loads(capsys.readouterr().out)
    assert facts["code"] == 0
    assert set(facts["digests"]) == {"by_zone", "fares"}
    assert len(facts["files"]) == 2
    assert facts["ledger"]["releases"][0]["name"] == "trips 2024-03"
    assert main(["verify", *facts["files"], str(plan), "--json"]) == UNREADABLE
    out, err = capsys.readouterr()
    assert [one["code"] for one in json.loads(out)] == [0, 0, 2]
    assert len(err.splitlines()) == 1
    assert main(["show", facts["files"][0], "--json"]) == SOUND
    shown = json.loads(capsys.readouterr().out)
    assert [row["zone"] for row in shown["table"]] == ["A", "B", "C"]
    assert main(["show", facts["files"][1], "--json"]) == SOUND
    bins = [row["fare"] for row in json.loads(capsys.readouterr().out)["table"]]
    assert bins[:2] == ["(-0.001, 10.0]", "(10.0, 20.0]"]
    assert main(["ledger", str(plan.parent / "trips.ledger"), "--json"]) == SOUND
    assert json.loads(capsys.readouterr().out)["budget"]["epsilon"] == 2


def test_quiet_says_what_is_wrong_alone(plan, capsys):
    assert run("release", plan, "--quiet") == SOUND
    files = list(map(str, sorted(plan.parent.glob("*s-2024-03.csv"))))  # and the data
    assert main(["verify", *files, "--quiet"]) == ALTERED
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_a_ledger_is_made_once(tmp_path, capsys):
    path = tmp_path / "new.ledger"
    make = ["ledger", str(path), "--create", "--epsilon", "2", "--delta", "1e-6"]
    assert main(make) == SOUND
    assert dpf.Ledger(path).budget == BUDGET
    assert main(make) == UNREADABLE
    assert "made once" in capsys.readouterr().err
    assert main(["ledger", str(tmp_path / "other.ledger"), "--create"]) == UNREADABLE
    assert main(["ledger", str(path), "--epsilon", "3"]) == UNREADABLE
    assert main([*make[:1], str(tmp_path / "no" / "n.ledger"), *make[2:]]) == UNREADABLE
    assert "there is no folder" in capsys.readouterr().err
    assert main([*make[:1], str(tmp_path / "bad"), *make[2:4], "-1"]) == UNREADABLE
    assert dpf.Ledger(path).budget == BUDGET


@pytest.mark.parametrize("setting", ["month", "=3", "a b=3", "1=2", "month="])
def test_settings_have_a_name_and_a_value(plan, capsys, setting):
    with pytest.raises(SystemExit) as stopped:
        main(["release", str(plan), "--set", setting])
    assert stopped.value.code == UNREADABLE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dpframe release: argument --set: must be NAME=VALUE, got ")
    assert line.endswith("; see dpframe release --help")


def test_a_placeholder_that_is_set_twice_is_refused(plan, capsys):
    asked = ["release", str(plan), "--set", "month=A", "--set", "other=1", "--set", "month=B"]
    assert main(asked) == UNREADABLE
    words = "--set: month is set twice, month=A and month=B; give it once"
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("given", [[], ["relase"], ["release"], ["release", "a", "--dta", "b"]])
def test_what_is_wrong_with_a_command_is_one_line(capsys, given):
    with pytest.raises(SystemExit) as stopped:
        main(given)
    assert stopped.value.code == UNREADABLE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_weakens_protection_is_said(plan, capsys):
    plan.write_text(plan.read_text().replace('share = "1/12"', "epsilon = 20"))
    place = plan.parent / "trips.ledger"
    place.unlink()
    dpf.Ledger.create(place, budget=dpf.Budget(epsilon=30))
    assert run("release", plan, "--quiet") == SOUND
    assert "warning: " in capsys.readouterr().err


def test_the_script_is_the_module():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["dpframe"].partition(":")
    assert f"from {module} import {name}" == "from dpframe.__main__ import main"
