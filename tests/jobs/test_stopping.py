"""Signals that end a job: one line, an exit code, nothing left behind, and nothing lost."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.planning import planned
from support.terminal import DONE_BEFORE, LEFT_OVER, SOUND, main

import dpframe as dpf
from dpframe.jobs import commands, output_files, run_job, starts, stopping
from dpframe.jobs.stopping import Stage, Stopped, set_stage, stoppable
from dpframe.ledger.leases import MOST_AGAIN
from dpframe.operations.tables import PlannedTables

MARCH = ("--set", "month=2024-03")
SIGNALS = [
    (getattr(signal, name), code, words)
    for name, code, words in [
        ("SIGINT", 130, "interrupted"),
        ("SIGTERM", 143, "terminated"),
        ("SIGHUP", 129, "hung up"),
        ("SIGXCPU", 152, "out of processor time"),
    ]
    if hasattr(signal, name)
]
each_signal = pytest.mark.parametrize("sent", SIGNALS)


def raising(number, before):
    """Send a signal to this process before something is done."""

    def act(*arguments, **options):
        signal.raise_signal(number)
        return before(*arguments, **options)

    return act


@pytest.fixture
def heard():
    """Handlers as they are in a terminal, and as they were afterwards."""
    before = [(one, signal.getsignal(one)) for one, *_ in SIGNALS]
    for one, _ in before:
        signal.signal(one, signal.SIG_DFL)  # a run in the background may ignore some
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for one, handler in before:
        signal.signal(one, handler)


@each_signal
@pytest.mark.usefixtures("heard")
def test_a_run_that_is_stopped_before_the_charge_spends_nothing(
    tmp_path, capsys, monkeypatch, sent
):
    number, code, word = sent
    plan = planned(tmp_path)
    before = sorted(tmp_path.iterdir())
    with monkeypatch.context() as patch:
        patch.setitem(output_files.WRITERS, ".csv", raising(number, output_files.WRITERS[".csv"]))
        assert main(["release", str(plan), *MARCH]) == code
    assert capsys.readouterr() == ("", f"{word}\n")
    assert sorted(tmp_path.iterdir()) == before
    assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert main(["release", str(plan), *MARCH]) == SOUND


def stopping_once_charged(patch, name, number, times=1):
    """Send a signal in a step of a run; its trial without rows comes first, and has it, too."""
    released, act = run_job._released, getattr(PlannedTables, name)
    runs = []

    def noted(*arguments):
        runs.append(arguments)
        return released(*arguments)

    def stopped(*arguments):
        for _ in range(times * (len(runs) > 1)):
            signal.raise_signal(number)
        return act(*arguments)

    patch.setattr(run_job, "_released", noted)
    patch.setattr(PlannedTables, name, stopped)


@each_signal
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("starts", [1, 2])
def test_a_run_that_is_stopped_before_its_noise_begins_again(
    tmp_path, capsys, monkeypatch, sent, starts
):
    number, code, word = sent
    plan = planned(tmp_path)
    for _ in range(starts):
        with monkeypatch.context() as patch:
            stopping_once_charged(patch, "measure", number)
            assert main(["release", str(plan), *MARCH, "--quiet"]) == code
        assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 1
        way = "charged, before its noise: run it again as it is"
        assert f"{word}: {way}, for which nothing is charged" in capsys.readouterr().err
    assert main(["release", str(plan), *MARCH]) == SOUND
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 1


@pytest.mark.usefixtures("heard")
def test_a_run_that_is_stopped_for_the_last_time_is_lost(tmp_path, capsys, monkeypatch):
    plan = planned(tmp_path)
    codes = []
    for _ in range(MOST_AGAIN + 2):
        with monkeypatch.context() as patch:
            stopping_once_charged(patch, "measure", signal.SIGTERM)
            codes.append(main(["release", str(plan), *MARCH, "--quiet"]))
    assert codes == [143] * MOST_AGAIN + [LEFT_OVER, LEFT_OVER]
    assert "give another name" in capsys.readouterr().err


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("starts", [1, 2])
def test_a_run_that_is_stopped_after_its_noise_has_spent(tmp_path, monkeypatch, starts):
    """Two signals, as the first one waits; also where an earlier start was charged."""
    plan = planned(tmp_path)
    monkeypatch.setattr(stopping, "_TOGETHER", 0.0)
    line = ["release", str(plan), *MARCH, "--quiet"]
    for _ in range(starts - 1):
        with monkeypatch.context() as patch:
            stopping_once_charged(patch, "measure", signal.SIGTERM)
            assert main(line) == 143
    with monkeypatch.context() as patch:
        stopping_once_charged(patch, "draw", signal.SIGTERM, times=2)
        assert main(line) == LEFT_OVER
    assert main(line) == LEFT_OVER


@each_signal
@pytest.mark.usefixtures("heard")
def test_what_was_released_is_written_before_a_run_stops(tmp_path, capsys, monkeypatch, sent):
    number, code, word = sent
    plan = planned(tmp_path)
    monkeypatch.setattr(run_job, "write_all", raising(number, run_job.write_all))
    assert main(["release", str(plan), *MARCH, "--quiet"]) == code
    assert capsys.readouterr().err == f"released, and all files written, then {word}\n"
    ledger = dpf.Ledger(tmp_path / "trips.ledger")
    for name in ("by_zone", "fares"):
        dpf.verify(dpf.read_csv(tmp_path / f"{name}-2024-03.csv"), ledger=ledger)
    assert main(["release", str(plan), *MARCH]) == DONE_BEFORE


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize(
    ("module", "step"), [(dpf.Ledger, "note_written"), (starts, "remove_spool")]
)
def test_a_signal_once_all_files_are_written_leaves_nothing_kept(
    tmp_path, capsys, monkeypatch, module, step
):
    plan = planned(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, step, raising(signal.SIGTERM, getattr(module, step)))
        assert main(["release", str(plan), *MARCH, "--quiet"]) == 143
    assert "all files written, then terminated" in capsys.readouterr().err
    assert not list(tmp_path.glob("**/*.zip"))
    assert main(["release", str(plan), *MARCH]) == DONE_BEFORE


@pytest.mark.usefixtures("heard")
def test_a_signal_after_the_last_line_changes_nothing(tmp_path, monkeypatch):
    settle = commands._settle_code
    monkeypatch.setattr(commands, "_settle_code", raising(signal.SIGTERM, settle))
    assert main(["release", str(planned(tmp_path)), *MARCH, "--quiet"]) == SOUND


def test_a_second_signal_does_not_wait(tmp_path, capsys, monkeypatch, heard):
    plan = planned(tmp_path)
    write = output_files._write
    with monkeypatch.context() as patch:
        patch.setattr(stopping, "_TOGETHER", 0.0)
        patch.setattr(output_files, "_write", raising(signal.SIGTERM, write))
        assert main(["release", str(plan), *MARCH]) == LEFT_OVER
    assert "terminated" in capsys.readouterr().err
    assert len(list(tmp_path.glob("trips.ledger.runs/*.zip"))) == 1
    assert main(["release", str(plan), *MARCH]) == SOUND


@each_signal
@pytest.mark.usefixtures("heard")
def test_signals_that_are_ignored_stay_so(tmp_path, sent):
    """As `nohup` has it for SIGHUP."""
    number = sent[0]
    signal.signal(number, signal.SIG_IGN)
    with stoppable() as stops:
        signal.raise_signal(number)
    assert stops.number is None
    assert signal.getsignal(number) is signal.SIG_IGN
    plan = planned(tmp_path)
    line = ["release", str(plan), *MARCH, "--quiet"]
    assert main(line, leaving=True) == SOUND


def test_what_waits_does_so_only_within(heard):
    set_stage(Stage.SPENT)
    with stoppable(), pytest.raises(Stopped):
        signal.raise_signal(signal.SIGTERM)


def test_other_threads_leave_signals_alone(tmp_path, heard):
    dpf.Ledger.create(tmp_path / "a.ledger", budget=dpf.Budget(1))
    codes = []
    line = ["ledger", str(tmp_path / "a.ledger"), "--quiet"]
    thread = threading.Thread(target=lambda: codes.append(main(line)))
    thread.start()
    thread.join()
    assert codes == [SOUND]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_a_process_leaves_as_schedulers_expect(tmp_path):
    plan = planned(tmp_path, ("trips-{month}.csv", "rows.csv"), ("trips {month}", "trips"))
    plan.write_text(plan.read_text().replace("{query}-{month}", "{query}"))
    code = (
        "import sys, os, signal, dpframe.sources.text as text\n"
        "from dpframe.jobs.commands import main\n"
        "text.csv.reader = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)\n"
        f"sys.exit(main(['preview', {str(plan)!r}]))\n"
    )
    (tmp_path / "rows.csv").write_text("driver,zone,fare\n")
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "terminated\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize(
    "spins",
    [
        "sum(itertools.repeat(0))",
        pytest.param("while True:\n try: time.sleep(9)\n except: pass", marks=pytest.mark.full),
    ],
)
def test_an_import_that_never_ends_answers_signals(tmp_path, spins):
    """In C, no handler of Python is ever called; and code may catch whatever a handler raises."""
    plan = planned(tmp_path, ("[declare]", '[declare]\nschema = "spinning:Trips"'))
    lines = f"import itertools, time\nprint('spins', flush=True)\n{spins}\n"
    (tmp_path / "spinning.py").write_text(lines)
    line = [sys.executable, "-m", "dpframe", "preview", str(plan), *MARCH, "--allow-imports"]
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([root, str(tmp_path)])
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, text=True
    ) as process:
        assert process.stdout.readline() == "spins\n"
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(10)
        finally:
            process.kill()
    assert code == -signal.SIGTERM


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="there it is what it is")
def test_ctrl_break_of_windows_is_heard_as_ctrl_c():
    script = (
        "import signal; signal.SIGBREAK = signal.SIGUSR1\n"
        "from dpframe.jobs.stopping import Stopped, stoppable\n"
        "from dpframe.engines import batches\n"
        "assert 'SIGBREAK' in batches._ENDING\n"
        "with stoppable() as stops:\n"
        "  try: signal.raise_signal(signal.SIGBREAK)\n"
        "  except Stopped: print(stops.words, stops.code - 128 == signal.SIGBREAK)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "interrupted True\n"
