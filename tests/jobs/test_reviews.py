"""Plans that are reviewed where neither data nor folders are."""

import os
import shutil

from support.planning import Overrides, planned, preview_job, read_plan
from support.raising import raises
from support.terminal import SOUND, UNREADABLE, main

from dpframe.errors import PlanFileError
from dpframe.jobs import output_paths

MARCH = ("--set", "month=2024-03")
ELSEWHERE = ('"{query}-{month}.csv"', '"published/{query}-{month}.csv"')


def test_a_review_needs_no_folder(tmp_path, capsys):
    plan = planned(tmp_path, ELSEWHERE)
    (tmp_path / "trips-2024-03.csv").unlink()
    assert main(["preview", str(plan), *MARCH, "--without-data"]) == SOUND
    assert "warning: there is no folder" in capsys.readouterr().err
    assert not (tmp_path / "published").exists()
    plan.write_text(plan.read_text().replace("{query}-{month}.csv", "{query}.xls"))
    assert main(["preview", str(plan), *MARCH, "--without-data"]) == UNREADABLE
    assert "must end in" in capsys.readouterr().err


def test_a_preview_where_the_job_runs_needs_the_folder(tmp_path, capsys):
    assert main(["preview", str(planned(tmp_path, ELSEWHERE)), *MARCH]) == UNREADABLE
    assert "there is no folder" in capsys.readouterr().err


def test_a_review_writes_to_no_ledger(tmp_path, monkeypatch):
    plan = planned(tmp_path)
    may = os.access
    mine = str(tmp_path)
    monkeypatch.setattr(
        output_paths.os,
        "access",
        lambda path, mode: not str(path).startswith(mine + "/trips") and may(path, mode),
    )
    before = (tmp_path / "trips.ledger").read_bytes()
    job = read_plan(plan, Overrides({"month": "2024-03"}))
    with raises(PlanFileError, "must be readable and writable", parameter="ledger.path"):
        preview_job(job)
    tried = preview_job(job, with_data=False)
    assert tried.fits
    assert tried.ledger.budget.epsilon == 2
    assert (tmp_path / "trips.ledger").read_bytes() == before
    shutil.copy(plan, tmp_path / "trips.ledger")
    with raises(PlanFileError, "is not a ledger", parameter="ledger.path"):
        preview_job(job, with_data=False)
