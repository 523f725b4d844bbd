"""What was spent is never denied by an exit code, whatever fails after the charge."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.disks import failing, small_disk
from support.planning import planned
from support.terminal import DONE_BEFORE, LATER, LEFT_OVER, SOUND, main

import dpframe as dpf
from dpframe.errors import LedgerBusyError
from dpframe.jobs import answers, file_commands, output_files, run_job, starts
from dpframe.jobs import commands as jobs
from dpframe.ledger import file as ledger_file
from dpframe.ledger.log import Protected
from dpframe.operations import pipeline
from dpframe.operations.tables import PlannedTables

MARCH = ("--set", "month=2024-03")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="a shell and /dev/full are needed")


def run(plan, *more):
    return main(["release", str(plan), *MARCH, *more])


def releases(plan):
    return len(dpf.Ledger(plan.parent / "trips.ledger").entries)


def in_a_shell(plan, more):
    line = f'"{sys.executable}" -m dpframe release {plan} {" ".join(MARCH)} {more}'
    path = {"PYTHONPATH": str(Path(dpf.__file__).parents[1])}
    return subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, check=False, env=os.environ | path
    )


def full(*_, **__):
    raise OSError(28, "No space left on device")


@on_linux
@pytest.mark.parametrize(
    "streams",
    [
        ">/dev/full",
        pytest.param(">&-", marks=pytest.mark.full),
        pytest.param("--json >/dev/full 2>/dev/full", marks=pytest.mark.full),
        pytest.param(">&- 2>&- <&-", marks=pytest.mark.full),
    ],
)
def test_what_cannot_be_printed_was_spent_nevertheless(plan, streams):
    done = in_a_shell(plan, streams)
    assert done.returncode == LEFT_OVER
    assert b"Traceback" not in done.stderr
    assert releases(plan) == 1
    assert dpf.read_csv(plan.parent / "fares-2024-03.csv").dp.certificate
    assert in_a_shell(plan, streams).returncode == DONE_BEFORE
    assert releases(plan) == 1


@pytest.mark.full
@on_linux
def test_what_was_printed_by_others_does_not_change_the_code(plan):
    """Python would flush it when it ends, and leave with 120."""
    code = (
        "import sys; print('printed by a schema, for instance')\n"
        f"sys.argv[1:] = ['release', {str(plan)!r}, '--set', 'month=2024-03', '--quiet']\n"
        "from dpframe.__main__ import main; sys.exit(main())\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as nowhere:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=nowhere,
            stderr=subprocess.PIPE,
            check=False,
            env=environment | {"PYTHONPATH": str(Path(dpf.__file__).parents[1])},
        )
    assert (done.returncode, done.stderr) == (SOUND, b"")


def test_a_ledger_that_is_gone_after_the_charge_does_not_change_the_code(plan, monkeypatch):
    write = run_job.write_all

    def late(*arguments, **options):
        (plan.parent / "trips.ledger").rename(plan.parent / "moved.ledger")
        return write(*arguments, **options)

    monkeypatch.setattr(run_job, "write_all", late)
    assert run(plan, "--json") == SOUND
    assert len(dpf.Ledger(plan.parent / "moved.ledger").entries) == 1


def once_charged(plan, act, then):
    """Do something else as soon as the ledger is charged."""

    def acts(*arguments, **options):
        return (then if releases(plan) else act)(*arguments, **options)

    return acts


def out_of_memory(*_, **__):
    raise MemoryError


@pytest.mark.parametrize(
    ("place", "then"),
    [
        ((run_job, "by_table"), LEFT_OVER),
        ((run_job, "write_all"), SOUND),  # from the spool
        ((run_job, "render_tables"), LEFT_OVER),
        ((starts, "pack"), LEFT_OVER),
        ((jobs, "certificate_of"), DONE_BEFORE),
        ((jobs, "_lost"), DONE_BEFORE),
        ((pipeline, "ledger_of"), LEFT_OVER),
        ((answers, "_texts"), DONE_BEFORE),
    ],
)
def test_too_little_memory_after_the_charge_is_told(plan, capsys, monkeypatch, place, then):
    module, name = place
    act = getattr(module, name)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, once_charged(plan, act, out_of_memory))
        assert run(plan, "--quiet") == LEFT_OVER
    assert capsys.readouterr().err
    assert releases(plan) == 1
    assert run(plan) == then


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_data_are_totaled_says_that_they_are_paid_for(
    plan, capsys, monkeypatch, sent
):
    def stop(*_):
        signal.raise_signal(sent)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    measure = once_charged(plan, PlannedTables.measure, stop)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(PlannedTables, "measure", measure)
            assert run(plan) == 128 + sent
    finally:
        signal.signal(signal.SIGINT, before)
    assert "charged, before its noise: run it again as it is" in capsys.readouterr().err
    assert releases(plan) == 1
    assert run(plan) == SOUND
    assert releases(plan) == 1


def test_two_signals_at_once_are_one(plan, capsys, monkeypatch):
    """As service managers send them: one waits until the files are written, so do both."""

    def stop(*arguments, **options):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        return write(*arguments, **options)

    write = run_job.write_all
    monkeypatch.setattr(run_job, "write_all", stop)
    assert run(plan, "--quiet") == 143
    assert capsys.readouterr().err == "released, and all files written, then terminated\n"


@pytest.mark.parametrize("more", [(), ("--quiet",), ("--json",)])
@pytest.mark.parametrize("closed", [False, True])
def test_what_is_in_no_file_is_printed_somewhere(plan, capsys, monkeypatch, more, closed):
    monkeypatch.setattr(output_files, "_write", full)
    monkeypatch.setattr(starts.Draft, "keep", full)
    if closed:
        monkeypatch.setattr(sys, "stdout", None)
    assert run(plan, *more) == LEFT_OVER
    out, err = capsys.readouterr()
    said = err.splitlines()[-1] if closed else out if "--json" in more else out.splitlines()[-1]
    tables = json.loads(said)
    tables = tables.get("tables", tables)
    assert set(tables) == {"by_zone", "fares"}
    assert tables["fares"]["csv"].count("\n") == 11


def test_a_ledger_that_is_busy_may_be_asked_again(plan, capsys, monkeypatch):
    monkeypatch.setattr(jobs, "_LEAST", 0.05)
    code = "import sys, pathlib; from dpframe.ledger.locks import with_locked_file as held\n"
    code += "held(pathlib.Path(sys.argv[1]), lambda _: [print(flush=True), sys.stdin.read()])"
    line = [sys.executable, "-c", code, str(plan.parent / "trips.ledger")]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        assert run(plan, "--patience", "0") == LATER
        other.stdin.close()
    assert "it is locked" in capsys.readouterr().err
    assert run(plan) == SOUND


@pytest.mark.parametrize("place", ["files", "ledger"])
def test_a_full_disk_before_the_charge_may_be_tried_again(tmp_path, capsys, place):
    with small_disk(tmp_path / "disk", "size=512k") as disk:
        to_disk = (
            ("trips.ledger", "disk/trips.ledger")
            if place == "ledger"
            else ("{query}-{month}.csv", "disk/{query}-{month}.csv")
        )
        plan = planned(tmp_path, to_disk)
        if place == "ledger":
            shutil.move(tmp_path / "trips.ledger", disk)
        with (disk / "filled").open("wb", buffering=0) as filled, suppress(OSError):
            while filled.write(b"x" * 512):
                pass
        assert run(plan) == LATER
        assert "o" in capsys.readouterr().err
        (disk / "filled").unlink()
        assert run(plan) == SOUND


@pytest.mark.parametrize("command", ["preview", "release"])
def test_no_room_for_the_files_may_be_tried_again(plan, capsys, monkeypatch, command):
    with monkeypatch.context() as patch:
        patch.setitem(output_files.WRITERS, ".csv", full)
        assert main([command, str(plan), *MARCH]) == LATER
    assert "No space left" in capsys.readouterr().err
    assert releases(plan) == 0
    assert run(plan) == SOUND


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR])
@pytest.mark.parametrize("after", [False, True])
def test_a_ledger_on_a_failing_disk_is_not_altered(plan, capsys, monkeypatch, code, after):
    dpf.Ledger(plan.parent / "trips.ledger").protect(Protected("driver", "add_remove"))
    monkeypatch.setattr(ledger_file, "LASTS", 1.0)  # the process that charged lives on
    with monkeypatch.context() as patch:
        failing(patch, code, after=after)
        assert run(plan) == (LEFT_OVER if after else LATER)
    assert releases(plan) == after
    assert run(plan) == SOUND
    assert releases(plan) == 1


def test_a_page_about_releases_is_not_altered_where_its_ledger_is_busy(plan, monkeypatch, capsys):
    assert run(plan, "--quiet") == SOUND

    def busy(*_, **__):
        raise LedgerBusyError("others keep it")

    table, page = str(plan.parent / "fares-2024-03.csv"), str(plan.parent / "page.html")
    monkeypatch.setattr(file_commands, "_sound", busy)
    assert main(["report", table, "--output", page]) == LATER


def test_signals_change_nothing_once_the_code_is_known(plan, monkeypatch):
    """The process may take a while to end."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["release", str(plan), *MARCH, "--quiet"], leaving=True) == SOUND
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name in ("SIGHUP", "SIGXCPU"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
