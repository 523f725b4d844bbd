"""Runs of plans killed at random instants: no share lost before noise, none drawn or spent twice.

The short version runs with the `full` tests, the long ones with `-m audit`: 300 kills, and the same
with a planted fault, which must be found.
"""

import os
import random
import signal
import time
import traceback
from collections import Counter

import numpy as np
import pytest
from support.planning import PLAN, TRIPS, planned

import dpframe as dpf
from dpframe.jobs import commands as jobs
from dpframe.jobs.answers import DONE_BEFORE, LEFT_OVER, SOUND
from dpframe.jobs.commands import main
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.transactions import MOST_AGAIN
from dpframe.operations.tables import PlannedTables

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # NumPy's threads are idle
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
LONGEST = 1.2  # times as long as a run takes, until it is killed
AIMED = 0.6  # how many are killed while rows are totaled, noise is drawn, or files are written
PAUSE = 0.05  # seconds that each stage after the charge takes longer
GOES_ON = 0.6  # how often the next run of the same name is killed, too


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Slow down what follows a charge, and note every draw of noise for rows, before it is made."""
    place, draw, measure = tmp_path / "drawn", PlannedTables.draw, PlannedTables.measure
    place.touch()

    def noted(plan, exact):
        if any(np.any(array) for block in exact for array in block):  # a trial has no rows
            with place.open("ab", buffering=0) as file:
                file.write(f"{os.environ['AUDITED']}\n".encode())
            noisy = draw(plan, exact)
            time.sleep(PAUSE)
            return noisy
        return draw(plan, exact)

    def slow(plan, frame):
        if len(frame):
            (tmp_path / "charged").touch()
            time.sleep(PAUSE)
        return measure(plan, frame)

    monkeypatch.setattr(jobs, "_PATIENCE", 0.0)
    monkeypatch.setattr(PlannedTables, "draw", noted)
    monkeypatch.setattr(PlannedTables, "measure", slow)
    return place


BY_ZONE = PLAN[PLAN.index("[queries.by_zone]") : PLAN.index("[queries.fares]")]


class Runs:
    """Runs of one plan, by months, of which some are killed."""

    def __init__(self, folder, monkeypatch):
        changes = ('share = "1/12"', "epsilon = 0.001"), (BY_ZONE, ""), ("bins = 10", "bins = 2")
        self.plan, self.patch = planned(folder, *changes), monkeypatch
        self.ledger, self.month, self.killed, self.ended = folder / "trips.ledger", 0, 0, Counter()
        self.charged = folder / "charged"
        self.begin()
        assert self.start() == SOUND  # imports what runs need
        self.begin()
        began = time.monotonic()
        assert self.start() == SOUND
        self.longest = LONGEST * (time.monotonic() - began)
        self.begin()

    def begin(self):
        """Go on to the next month."""
        self.month += 1
        self.name = f"trips {self.month}"
        self.patch.setenv("AUDITED", str(self.month))
        TRIPS.to_csv(self.plan.parent / f"trips-{self.month}.csv", index=False)
        self.line = ["release", str(self.plan), "--set", f"month={self.month}", "--quiet"]
        self.line.append("--overwrite")  # so that nothing else stops a second draw

    def start(self, part=None, *, aimed=False):
        """Run in a process, and kill it after a part of its time, or of that after the charge."""
        self.charged.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            try:
                os._exit(main(self.line))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(99)
        if part is not None:
            ends = time.monotonic() + self.longest
            while aimed and not self.charged.exists() and time.monotonic() < ends:
                time.sleep(0.001)
            time.sleep(part * (3 * PAUSE if aimed else self.longest))
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (-signal.SIGKILL, SOUND, DONE_BEFORE, LEFT_OVER)
        self.killed += code == -signal.SIGKILL
        return code

    def end(self):
        """Run once more, and compare how that ends with what the ledger says of the runs before."""
        run = Ledger(self.ledger).run_of(self.name)
        if run is None or run.may_begin_again:
            allowed = {SOUND}
        elif run.had_noise:
            allowed = {DONE_BEFORE, LEFT_OVER}
        else:
            assert run.again == MOST_AGAIN
            allowed = {LEFT_OVER}
        code = main(self.line)
        assert code in allowed, f"a run ended with {code} in place of {allowed}"
        self.ended["free" if run and code == SOUND else code] += 1
        if code != LEFT_OVER:
            self.verify()
        self.begin()

    def verify(self):
        """Compare the files with the ledger."""
        ledger = Ledger(self.ledger)
        frame = dpf.read_csv(self.plan.parent / f"fares-{self.month}.csv")
        certificate = dpf.verify(frame, ledger=ledger)
        assert certificate.release_id == ledger.run_of(self.name).entry.release_id

    def check(self, drawn):
        """Compare what was drawn with what was charged, when all is over."""
        log = Ledger(self.ledger)._seen.log
        charged = Counter(entry.name for entry in log.entries)
        noise = Counter(mark.release_id for mark in log.marks if mark.what == "noise")
        again = Counter(mark.release_id for mark in log.marks if mark.what == "again")
        assert set(charged.values()) <= {1}
        assert set(noise.values()) <= {1}
        assert max(again.values(), default=0) <= MOST_AGAIN
        draws = Counter(f"trips {month}" for month in drawn.read_text().split())
        assert set(draws) <= set(charged)
        assert set(draws.values()) <= {1}, "noise was drawn twice for one charge"


def killed(tmp_path, monkeypatch, drawn, kills):
    """Kill so many runs, and check what all came to."""
    source, runs = random.Random(33), Runs(tmp_path, monkeypatch)
    while runs.killed < kills:
        runs.start(source.random(), aimed=source.random() < AIMED)
        if source.random() > GOES_ON:
            runs.end()
    runs.end()
    runs.check(drawn)
    return runs


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.full), pytest.param(300, marks=pytest.mark.audit)]
)
def test_killed_runs_lose_no_share_and_draw_once(tmp_path, monkeypatch, drawn, kills):
    runs = killed(tmp_path, monkeypatch, drawn, kills)
    assert runs.killed >= kills
    print(f"{runs.killed} killed in {runs.month} months, which then ended so: {dict(runs.ended)}")
    if kills >= 300:  # what the runs were to be compared in came about
        assert runs.ended["free"] > 10 and runs.ended[LEFT_OVER] > 10, runs.ended


@pytest.mark.audit
def test_a_charge_that_does_not_note_its_noise_is_found(tmp_path, monkeypatch, drawn):
    monkeypatch.setattr(Ledger, "note_noise", lambda *_: None)
    with pytest.raises(AssertionError, match="twice"):
        killed(tmp_path, monkeypatch, drawn, 100)


@pytest.mark.audit
def test_a_share_that_is_lost_before_noise_is_found(tmp_path, monkeypatch, drawn):
    of_plan = Ledger.of_plan
    monkeypatch.setattr(Ledger, "of_plan", lambda ledger, plan, _: of_plan(ledger, plan, "none"))
    with pytest.raises(AssertionError, match="ended with"):
        killed(tmp_path, monkeypatch, drawn, 60)
