"""A run of a plan that ended before its noise begins again for nothing; none after it does."""

from dataclasses import replace

import pandas as pd
import pytest
from support.charging import entry, pure

import dpframe as dpf
from dpframe.errors import AlreadyReleasedError, ReleaseError
from dpframe.ledger.leases import MOST_AGAIN, RunPausedError, RunState
from dpframe.ledger.ledger import copy_in_memory
from dpframe.operations.tables import PlannedTables

PLAN, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def ledger(tmp_path):
    return dpf.Ledger.create(tmp_path / "trips.ledger", budget=dpf.Budget(1))


def run(ledger, plan=PLAN, name="march", **amount):
    frame = pd.DataFrame({"x": [1, 2]})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=ledger.of_plan(plan, name))
    return frame.dp.count(name=name, **(amount or {"share": "1/2"}))


def broken(ledger, patch, **options):
    """Run until rows are totaled, where it ends."""
    with patch.context() as inner, pytest.raises(ReleaseError):
        inner.setattr(PlannedTables, "measure", lambda *_: 1 / 0)
        run(ledger, **options)


def test_a_run_that_ended_before_its_noise_begins_again_for_nothing(ledger, monkeypatch):
    broken(ledger, monkeypatch)
    (first,) = ledger.entries
    run(ledger, name="april", share="1/4")  # of what is left, which a share is of, too
    released = run(dpf.Ledger(ledger.path))
    assert ledger.entries[0] == first and len(ledger.entries) == 2
    certificate = released.dp.certificate
    assert certificate.release_id == first.release_id
    assert certificate.releases[0].ledger.used == certificate.releases[0].ledger.part == 0.5
    assert dpf.verify(released, ledger=ledger)
    assert len(ledger.to_frame()) == 2
    assert list(ledger.to_frame()["hash"])[1] != ledger.head  # a row says that noise was drawn


def test_a_used_up_budget_does_not_stop_a_run_that_is_paid_for(ledger, monkeypatch):
    broken(ledger, monkeypatch, share="1/1")
    assert ledger.status().remaining_share == 0
    assert len(run(ledger, share="1/1")) == 1


def test_a_run_begins_again_as_often_as_is_said(ledger, monkeypatch):
    for _ in range(1 + MOST_AGAIN):
        broken(ledger, monkeypatch)
    with pytest.raises(AlreadyReleasedError):
        run(ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    "options", [{"plan": OTHER}, {"plan": None}, {"share": "1/3"}, {"epsilon": 0.25}]
)
def test_only_the_same_plan_begins_again(ledger, monkeypatch, options):
    broken(ledger, monkeypatch)
    with pytest.raises(AlreadyReleasedError):
        run(ledger, **options)
    assert len(ledger.entries) == 1
    assert run(ledger).dp.certificate


def test_what_had_noise_is_not_begun_again(ledger, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(ReleaseError):
        patch.setattr(PlannedTables, "draw", lambda *_: 1 / 0)
        run(ledger)
    with pytest.raises(AlreadyReleasedError):
        run(ledger)


def test_of_two_runs_of_one_charge_one_draws(ledger, monkeypatch):
    """The second begins while the first totals rows, and is quicker."""
    released, measure = [], PlannedTables.measure

    def overtaken(*arguments):
        monkeypatch.setattr(PlannedTables, "measure", measure)
        released.append(run(dpf.Ledger(ledger.path)))
        return measure(*arguments)

    monkeypatch.setattr(PlannedTables, "measure", overtaken)
    with pytest.raises(RunPausedError) as e:
        run(ledger)
    assert "took this run over" in str(e.value)
    assert len(released) == len(ledger.entries) == 1


def test_a_ledger_that_is_gone_before_the_noise_ends_the_run(ledger, monkeypatch):
    measure = PlannedTables.measure

    def moved(*arguments):
        ledger.path.rename(ledger.path.with_name("moved.ledger"))
        return measure(*arguments)

    monkeypatch.setattr(PlannedTables, "measure", moved)
    with pytest.raises(ReleaseError) as e:
        run(ledger)
    assert "about to be drawn" in str(e.value)


def test_a_trial_of_a_run_that_begins_again_is_one(ledger, monkeypatch):
    broken(ledger, monkeypatch)
    before = ledger.path.read_bytes()
    assert run(copy_in_memory(ledger)).dp.certificate.release_id == ledger.entries[0].release_id
    assert ledger.path.read_bytes() == before


def test_releases_without_a_plan_have_one_row(ledger):
    frame = pd.DataFrame({"x": [1, 2]})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=ledger)
    frame.dp.count(name="march", epsilon=0.5)
    assert list(ledger.to_frame()["hash"]) == [ledger.head]


def test_plans_and_rows_about_runs_are_read_again(ledger):
    made = replace(entry(pure(0.25), "march"), plan=PLAN)
    ledger.charge(made)
    ledger.note_noise(made)
    read = dpf.Ledger(ledger.path)
    assert read.entries == (made,)
    assert read.head == ledger.head
    assert read.run_of("march").state == RunState(noise=True)
    with pytest.raises(RunPausedError):
        read.note_noise(made)


def test_a_run_of_a_part_is_planned_with_what_the_part_had_left(tmp_path, monkeypatch):
    ledger = dpf.Ledger.create(tmp_path / "weeks.ledger", budget=dpf.Budget(1), part="week")

    def run_of_week(week, name, **amount):
        frame = pd.DataFrame({"week": [1, 2, 2]})
        own = dpf.Ledger(ledger.path).of_plan(PLAN, name)
        frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=own)
        return frame.dp.count(name=name, part=week, **amount)

    run_of_week(1, "before", share="1/2")
    with monkeypatch.context() as patch, pytest.raises(ReleaseError):
        patch.setattr(PlannedTables, "measure", lambda *_: 1 / 0)
        run_of_week(2, "march", share="1/2")
    run_of_week(2, "april", share="1/2")
    released = run_of_week(2, "march", share="1/2")
    assert released.dp.certificate.releases[0].ledger.used == 0.5
    assert dpf.verify(released, ledger=ledger)
    assert ledger.status(2).remaining_share == 0
