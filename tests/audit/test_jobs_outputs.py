"""Jobs with broken outputs, stopped at random instants: exit codes agree with the ledger.

No code denies a spend, a second run says no less than was spent, what is lost has a code that says
so, and no private row stays on the disk after the next run. The short version runs by default.
"""

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter

import pytest
from support.interrupting import Traced, places
from support.planning import TRIPS, planned
from support.publishing import sidecar_of
from support.terminal import main

import dpframe as dpf
from dpframe import __main__ as process
from dpframe.engines import scans
from dpframe.jobs import commands as jobs

pytestmark = [
    pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no such outputs"),
    # threads of NumPy and Arrow are idle
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
DONE, AGAIN, LOST = 0, 4, 5
STOPS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGXCPU", "SIGKILL")
STOPPED = {129, 130, 143, 152}  # exit codes of all but the last
OUTPUTS = ("file", "/dev/full", "closed", "pipe")  # a pipe that nobody reads
TO_PARQUET = ("trips-{month}.csv", "trips-{month}.parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Data that are split by driver into temporary files, and a folder for these."""
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 20)
    monkeypatch.setattr(scans, "thread_count", lambda _: 1)  # a child of a fork has one
    monkeypatch.setattr(jobs.run_job, "PATIENCE", 0.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path


def started(plan, month, out, err, *more):
    """Run a job in a process of its own, whose outputs are any of `OUTPUTS`."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        for name in STOPS[:-1]:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdout, sys.stderr = opened(1, out, plan), opened(2, err, plan)
        data = ("--data", str(plan.parent / "trips-2024-03.parquet"))
        sys.argv[1:] = ["release", str(plan), "--set", f"month={month}", *data, *more]
        code = process.main()
    finally:
        os._exit(code)


def opened(number, kind, plan):
    """Open a standard stream as it is asked for; `None` if it is closed, as Python has it."""
    if kind == "closed":
        os.close(number)
        return None
    if kind == "pipe":
        read, write = os.pipe()
        os.close(read)
    else:
        place = plan.with_name(f"output-{number}") if kind == "file" else kind
        write = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(write, number)
    os.close(write)
    return open(number, "w", closefd=False)


def ended(child):
    """Return the exit code of a process; that of a killed one is negative."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state(plan, month):
    """Say whether a release was charged, and whether its files are there."""
    ledger = dpf.Ledger(plan.parent / "trips.ledger")
    charged = [entry.name for entry in ledger.entries].count(f"trips {month}")
    assert charged <= 1
    there = True
    for name in ("by_zone", "fares"):
        path = plan.parent / f"{name}-{month}.csv"
        if path.exists() and sidecar_of(path).exists():
            dpf.verify(dpf.read_csv(path), ledger=ledger)
        else:
            there = False
    return bool(charged), there


def check(code, charged, there):
    """Compare what an exit code says with what is so."""
    allowed = {
        (False, False): {2, 3, 75, *STOPPED, -signal.SIGKILL},
        (True, False): {LOST, *STOPPED, -signal.SIGKILL},  # before its noise: it begins again
        (True, True): {DONE, LOST, *STOPPED, -signal.SIGKILL},
    }
    assert code in allowed[charged, there]


def leftovers(folder):
    return [path.name for path in (*folder.glob("temporary/*"), *folder.glob(".dpframe-trial-*"))]


def has_private_rows(folder):
    """Whether a temporary folder has a file of rows; it may be removed meanwhile."""
    walked = os.walk(folder / "temporary")
    return any(file.endswith(".arrow") for _, _, files in walked for file in files)


def stopped_job(plan, month, source, longest):
    """Start a job with any outputs, stop it at any time, and return how it ended."""
    out, err = source.choice(OUTPUTS), source.choice(OUTPUTS)
    more = source.choice([(), ("--quiet",), ("--json",)])
    child = started(plan, month, out, err, *more)
    name = source.choice((*STOPS, None))
    if name is not None:
        time.sleep(source.random() * longest)
        for _ in range(source.choice([1, 1, 2])):
            os.kill(child, getattr(signal, name))
    return ended(child)


def check_next_run(plan, month, before, code):
    """Run a job again: it says what was spent, and removes what was left.

    What was charged and has no files is lost, or released for that charge. Files that were written
    are done, or noted as done.
    """
    again = ended(started(plan, month, "file", "file"))
    said = {(False, False): {DONE}, (True, False): {LOST, DONE}, (True, True): {AGAIN, DONE}}
    assert again in said[before]
    assert again != LOST or code not in STOPPED
    assert state(plan, month) == ((True, True) if again == DONE else before)
    assert leftovers(plan.parent) == []


@pytest.mark.full
@pytest.mark.parametrize("runs", [5, pytest.param(200, marks=pytest.mark.audit)])
def test_exit_codes_agree_with_the_ledger(folder, runs):
    source, seen = random.Random(11), Counter()
    plan = planned(folder, TO_PARQUET, ('share = "1/12"', "rho = 1e-6"))
    TRIPS.to_parquet(folder / "trips-2024-03.parquet")
    begin = time.monotonic()
    assert ended(started(plan, "first", "file", "file")) == DONE
    longest = 1.2 * (time.monotonic() - begin)
    for number in range(runs):
        month = f"m{number}"
        code = stopped_job(plan, month, source, longest)
        before = state(plan, month)
        check(code, *before)
        check_next_run(plan, month, before, code)
        seen[code, before] += 1
    if runs > 100:  # all that can happen did
        assert {before for _, before in seen} == {(False, False), (True, False), (True, True)}
        assert {DONE, LOST, *STOPPED, -signal.SIGKILL} <= {code for code, _ in seen}


class Signaled(Traced):
    """Sends Ctrl-C at a step, in place of raising what it does."""

    def stop(self):
        signal.raise_signal(signal.SIGINT)


CODE = tuple(f"dpframe/jobs/{name}.py" for name in ("answers", "commands", "output_files"))
CODE += tuple(f"dpframe/jobs/{name}.py" for name in ("run_job", "starts", "stopping"))


@pytest.mark.full
@pytest.mark.parametrize("part", [10, pytest.param(500, marks=pytest.mark.audit)])
def test_a_signal_at_any_step_denies_no_spend(tmp_path, monkeypatch, capsys, part):
    monkeypatch.setattr(jobs.run_job, "PATIENCE", 0.0)
    plan = planned(tmp_path, ('share = "1/12"', "rho = 1e-6"))
    data = ("--data", str(plan.parent / "trips-2024-03.csv"), "--quiet")
    before = {name: signal.getsignal(getattr(signal, name)) for name in STOPS[:-1]}

    def run(month):
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return main(["release", str(plan), "--set", f"month={month}", *data], leaving=True)

    try:
        passed = places(lambda: run("first"), CODE)
        steps = random.Random(12).sample(passed, min(part, len(passed)))
        codes = Counter()
        for number, place in enumerate(steps):
            month = f"m{number}"
            found = []
            try:
                Signaled(CODE, place).run(lambda month=month, found=found: found.append(run(month)))
            except KeyboardInterrupt:  # before the command took over, or after it was over
                found.append(130)
            check(found[0], *state(plan, month))
            codes[found[0]] += 1
        assert codes[130] > 0
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


@pytest.mark.full
@pytest.mark.parametrize("name", ["SIGHUP", "SIGKILL"])
@pytest.mark.parametrize("runs", [2, pytest.param(30, marks=pytest.mark.audit)])
def test_no_private_row_stays_on_the_disk(folder, runs, name):
    """Stopped as soon as there are rows on the disk."""
    plan = planned(folder, TO_PARQUET, ('share = "1/12"', "rho = 1e-6"))
    TRIPS.to_parquet(folder / "trips-2024-03.parquet")
    spilled = 0
    for number in range(runs):
        child = started(plan, f"m{number}", "file", "file")
        while os.waitpid(child, os.WNOHANG | os.WUNTRACED) == (0, 0):
            if has_private_rows(folder):
                os.kill(child, getattr(signal, name))
                code = ended(child)
                check(code, *state(plan, f"m{number}"))
                spilled += has_private_rows(folder) if name == "SIGKILL" else code != DONE
                break
        assert name == "SIGKILL" or leftovers(folder) == []
        assert ended(started(plan, f"n{number}", "file", "file")) == DONE
        assert leftovers(folder) == []
    assert spilled > 0
