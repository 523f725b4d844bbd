"""Runs that are started again: done is done, and what was lost is told."""

import pytest
from support.planning import TRIPS, planned

import dpframe as dpf
from dpframe.jobs.commands import main
from dpframe.jobs.terminal import DONE_BEFORE, LEFT_OVER, SOUND

MARCH = ("--set", "month=2024-03")


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
    from dpframe.engines.parquet import ParquetEngine

    plan = planned(tmp_path, ("trips-{month}.csv", "trips-{month}.parquet"))
    TRIPS.to_parquet(tmp_path / "trips-2024-03.parquet")

    def lost(*_):
        raise OSError("private text")

    with monkeypatch.context() as patch:
        patch.setattr(ParquetEngine, "totals", lost)
        assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    assert "--name 'trips 2024-03 b'" in capsys.readouterr().err
    assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    assert "by_zone-2024-03.csv is not there" in capsys.readouterr().err
