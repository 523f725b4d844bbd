"""What a second start of a run does, by what the first one left: nothing is paid or drawn twice."""

import json
import os
import signal
import sys
import threading
from dataclasses import replace

import pytest
from support.planning import TRIPS
from support.terminal import DONE_BEFORE, LATER, LEFT_OVER, SOUND, UNREADABLE, main

import dpframe as dpf
from dpframe.jobs import run_job, starts
from dpframe.ledger import leases
from dpframe.ledger.leases import (
    Lease,
    Life,
    Owner,
    RowRefusal,
    Spool,
    StartStep,
    allowed,
    next_step,
)
from dpframe.ledger.leases import RunState as State
from dpframe.operations.tables import PlannedTables

MARCH = ("--set", "month=2024-03")
AT_ONCE = ("--patience", "0")
ELSEWHERE = replace(Owner.here(), node="elsewhere")


def run(plan, *more):
    return main(["release", str(plan), *MARCH, *more])


def ledger_of(plan):
    return dpf.Ledger(plan.parent / "trips.ledger")


def files(plan):
    return sorted(
        path.name for path in plan.parent.glob("*-2024-03.csv") if "trips" not in path.name
    )


def died(plan, patch, at, name="draw"):
    """Run in a process that is killed as it begins something, once it is charged."""
    child = os.fork()
    if child == 0:
        act = getattr(at, name)

        def killed(*arguments, **options):
            if ledger_of(plan).entries:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*arguments, **options)

        setattr(at, name, killed)
        run(plan, "--quiet")
        os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


on_linux = [
    pytest.mark.skipif(sys.platform != "linux", reason="deaths are proved on Linux"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def test_a_slow_run_keeps_its_name_and_its_result(plan, capsys, monkeypatch):
    """It once was taken for dead after 20 seconds, and told to pay once more."""
    codes, measure = [], PlannedTables.measure

    def slow(*arguments):
        if ledger_of(plan).entries and not codes:
            codes.append(None)  # the second start tries its plan, too
            codes.append(run(plan, *AT_ONCE))
        return measure(*arguments)

    monkeypatch.setattr(PlannedTables, "measure", slow)
    assert run(plan) == SOUND
    assert codes == [None, LATER]
    err = capsys.readouterr().err
    assert "last beat 0 s ago: nothing is lost" in err and "--name" not in err
    assert run(plan) == DONE_BEFORE
    assert len(ledger_of(plan).entries) == 1


def test_a_second_start_waits_for_the_files(plan, monkeypatch):
    charged, codes, measure = threading.Event(), [], PlannedTables.measure
    second = threading.Thread(target=lambda: codes.append(run(plan, "--patience", "60")))

    def slow(*arguments):
        if ledger_of(plan).entries and not charged.is_set():
            charged.set()
            second.start()
        return measure(*arguments)

    monkeypatch.setattr(PlannedTables, "measure", slow)
    assert run(plan) == SOUND
    second.join()
    assert codes[0] in (SOUND, DONE_BEFORE)  # what is kept may be written by both


def test_a_run_that_was_taken_over_waits_for_the_files_of_the_other(plan, monkeypatch):
    """Its lease expired, as that of a computer that slept."""
    codes, measure = [], PlannedTables.measure

    def slept(*arguments):
        if ledger_of(plan).entries and not codes:
            codes.append(None)
            monkeypatch.setattr(Lease, "life", Life.EXPIRED)
            codes.append(run(plan, *AT_ONCE))
        return measure(*arguments)

    monkeypatch.setattr(PlannedTables, "measure", slept)
    assert run(plan, *AT_ONCE) == LATER
    assert codes == [None, SOUND]
    assert run(plan) == DONE_BEFORE
    assert ledger_of(plan).run_of("trips 2024-03").state.epoch == 1


@pytest.mark.parametrize(
    ("at", "name", "code"),
    [
        pytest.param(PlannedTables, "measure", SOUND, marks=on_linux),
        pytest.param(PlannedTables, "draw", LEFT_OVER, marks=on_linux),
        pytest.param(starts.Start, "_finish", SOUND, marks=on_linux),
        pytest.param(run_job, "write_all", SOUND, marks=on_linux),
        pytest.param(starts, "remove_spool", DONE_BEFORE, marks=on_linux),
    ],
)
def test_a_run_that_was_killed_is_known_to_be_dead(plan, monkeypatch, at, name, code):
    died(plan, monkeypatch, at, name)
    assert run(plan, *AT_ONCE) == code
    lost = code == LEFT_OVER
    assert list(plan.parent.glob("trips.ledger.runs/*.zip")) == []
    assert files(plan) == ([] if lost else ["by_zone-2024-03.csv", "fares-2024-03.csv"])
    assert bool(ledger_of(plan).run_of("trips 2024-03").state.lost) is lost
    assert run(plan) == (LEFT_OVER if lost else DONE_BEFORE)
    assert len(ledger_of(plan).entries) == 1


def test_a_death_that_nobody_can_prove_is_told_by_a_person(plan, capsys, monkeypatch):
    monkeypatch.setattr(Owner, "here", lambda spool="": ELSEWHERE)
    monkeypatch.setattr(leases.Beats, "end", leases.Beats.stop)  # as if it was killed
    with monkeypatch.context() as patch:
        patch.setattr(PlannedTables, "draw", once_charged(plan, PlannedTables.draw))
        assert run(plan, *AT_ONCE) == LEFT_OVER
    monkeypatch.undo()
    capsys.readouterr()
    assert run(plan, *AT_ONCE) == LATER
    assert "--lost 'trips 2024-03' closes the name" in capsys.readouterr().err
    ledger = str(plan.parent / "trips.ledger")
    assert main(["ledger", ledger, "--lost", "april"]) == UNREADABLE
    assert main(["ledger", ledger, "--lost", "trips 2024-03"]) == SOUND
    capsys.readouterr()
    assert main(["ledger", ledger]) == SOUND
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "'trips 2024-03'" in line)
    assert line.endswith(", lost")
    assert main(["ledger", ledger, "--json"]) == SOUND
    (entry,) = json.loads(capsys.readouterr().out)["releases"]
    assert entry["lost"] is True
    assert run(plan) == LEFT_OVER
    err = capsys.readouterr().err
    assert "said to be dead" in err and "--name 'trips 2024-03 b'" in err
    assert len(ledger_of(plan).entries) == 1
    other = TRIPS.copy()
    ledger = ledger_of(plan)
    other.dp.declare(keys={"zone": ["A"]}, privacy_unit="driver", max_rows=3, ledger=ledger)
    page = dpf.report(other.dp.count("zone", share=0.1), ledger=ledger)
    assert page.count("lost: spent, and never published") == 1


def once_charged(plan, act):
    def failing(*arguments):
        if ledger_of(plan).entries:
            raise MemoryError
        return act(*arguments)

    return failing


def test_what_is_kept_cannot_be_given_up(plan, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(run_job, "write_all", lambda *_, **__: 1 / 0)
        assert run(plan) == LEFT_OVER
    ledger = str(plan.parent / "trips.ledger")
    assert main(["ledger", ledger, "--lost", "trips 2024-03"]) == UNREADABLE
    assert "is kept" in capsys.readouterr().err
    assert run(plan) == SOUND


def test_a_run_that_was_given_up_publishes_nothing(plan, capsys, monkeypatch):
    keep = starts.Draft.keep

    def slow(draft, *arguments):
        kept = keep(draft, *arguments)
        (entry,) = ledger_of(plan).entries
        ledger_of(plan).note_lost(entry, "anna", "said to be dead")
        return kept

    monkeypatch.setattr(starts.Draft, "keep", slow)
    assert run(plan) == LEFT_OVER
    assert files(plan) == [] and not (plan.parent / "trips.ledger.runs").exists()
    assert "given up" in capsys.readouterr().err


def test_a_spool_that_was_changed_is_not_published(plan, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(run_job, "write_all", lambda *_, **__: 1 / 0)
        assert run(plan) == LEFT_OVER
    (place,) = (plan.parent / "trips.ledger.runs").iterdir()
    place.write_bytes(starts.pack({"fares": {".csv": b"a"}}))
    assert run(plan) == LEFT_OVER
    assert "it was changed" in capsys.readouterr().err
    assert files(plan) == []


def test_what_was_drawn_is_written_in_the_form_that_the_plan_names_now(plan, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(run_job, "write_all", lambda *_, **__: 1 / 0)
        assert run(plan) == LEFT_OVER
    plan.write_text(plan.read_text().replace("{query}-{month}.csv", "{query}-{month}.parquet"))
    assert run(plan) == SOUND
    from dpframe.jobs.output_paths import read_released

    read = read_released(plan.parent / "fares-2024-03.parquet")
    assert dpf.verify(read, ledger=ledger_of(plan))


CHARGED, NOISE = State(), State(noise=True)
DRAWN, WRITTEN = NOISE._replace(drawn="a"), NOISE._replace(drawn="a", written=True)
TABLE = [
    (None, Life.EXPIRED, Spool.ABSENT, StartStep.BEGIN),
    (CHARGED, Life.ALIVE, Spool.ABSENT, StartStep.WAIT),
    (CHARGED, Life.EXPIRED, Spool.ABSENT, StartStep.TAKE_OVER),
    (CHARGED, Life.DEAD, Spool.ABSENT, StartStep.TAKE_OVER),
    (State(epoch=3), Life.DEAD, Spool.ABSENT, StartStep.TOO_OFTEN),
    (State(epoch=3), Life.ALIVE, Spool.ABSENT, StartStep.WAIT),
    (NOISE, Life.ALIVE, Spool.ABSENT, StartStep.WAIT),
    (NOISE, Life.EXPIRED, Spool.ABSENT, StartStep.WAIT),
    (NOISE, Life.DEAD, Spool.UNSEEN, StartStep.WAIT),
    (NOISE, Life.DEAD, Spool.ABSENT, StartStep.GIVE_UP),
    (NOISE, Life.ALIVE, Spool.THERE, StartStep.PUBLISH),
    (DRAWN, Life.DEAD, Spool.THERE, StartStep.PUBLISH),
    (DRAWN, Life.EXPIRED, Spool.ABSENT, StartStep.WAIT),
    (DRAWN, Life.DEAD, Spool.ABSENT, StartStep.LOST),
    (WRITTEN, Life.DEAD, Spool.THERE, StartStep.DONE),
    (NOISE._replace(lost="anna: dead"), Life.DEAD, Spool.ABSENT, StartStep.LOST),
]


@pytest.mark.parametrize(("state", "life", "spool", "step"), TABLE)
def test_the_table_of_the_second_start(state, life, spool, step):
    assert next_step(state, life, spool) is step


def test_what_a_lease_tells(monkeypatch):
    me = Owner.here()
    assert Owner.of_text(me.text) == me and not me.is_gone
    lease = Lease("a", 0, me.text, 100.0, 160.0, 159.0)
    assert lease.life is Life.ALIVE
    assert lease._replace(now=161.0).life is Life.EXPIRED
    assert lease._replace(now=10.0).life is Life.EXPIRED  # a clock was set back
    assert lease._replace(expires=0.0).life is Life.DEAD
    assert lease._replace(owner="[]").life is Life.ALIVE  # of whom nothing is known
    unknown = [
        replace(me, node="elsewhere", pid=1 << 22),
        replace(me, space="another", pid=1 << 22),
        replace(me, space="", pid=1 << 22),
        replace(me, boot="", pid=1 << 22),
        replace(me, started=""),
    ]
    assert not any(one.is_gone for one in unknown)


@pytest.mark.skipif(sys.platform != "linux", reason="deaths are proved on Linux")
def test_what_proves_a_death():
    me = Owner.here()
    gone = [replace(me, pid=1 << 22), replace(me, started="1"), replace(me, boot="before")]
    assert all(one.is_gone for one in gone)


def test_what_was_written_cannot_be_given_up_and_may_be_noted_as_drawn_again(plan, capsys):
    assert run(plan) == SOUND
    ledger = str(plan.parent / "trips.ledger")
    assert main(["ledger", ledger, "--lost", "trips 2024-03"]) == UNREADABLE
    assert "were written" in capsys.readouterr().err
    assert allowed("lost", WRITTEN, epoch=0) is RowRefusal.WRITTEN
    assert allowed("drawn", WRITTEN, epoch=0) is RowRefusal.DRAWN  # which two starts may note
