"""What the commands of a terminal do where nobody can be told, or somebody presses Ctrl-C."""

import signal
import subprocess
import sys

import pytest
from support.terminal import SOUND, UNREADABLE, main

import dpframe as dpf
from dpframe.jobs.commands import COMMANDS, Command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a shell and /dev/full are needed")


@pytest.fixture
def folder(tmp_path):
    dpf.Ledger.create(tmp_path / "good.ledger", budget=dpf.Budget(1))
    return tmp_path


def run(command, folder):
    line = ["/bin/sh", "-c", f'"{sys.executable}" -m dpframe {command}']
    return subprocess.run(line, cwd=folder, capture_output=True, check=False, text=True)


@pytest.mark.parametrize(
    "command",
    [
        "ledger good.ledger > /dev/full",
        *(
            pytest.param(command, marks=pytest.mark.full)
            for command in (
                "ledger good.ledger >&-",
                "verify no.csv 2>&-",
                "verify no.csv 2> /dev/full",
                "--help > /dev/full",
            )
        ),
    ],
)
def test_what_cannot_be_said_is_a_failure(folder, command):
    done = run(command, folder)
    assert done.returncode == UNREADABLE
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.full
def test_a_stream_that_is_not_needed_may_be_closed(folder):
    assert run("ledger good.ledger 2>&-", folder).returncode == SOUND


def test_an_interrupt_is_one_line(folder, capsys, monkeypatch):
    def wait(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setitem(COMMANDS, "ledger", Command("", wait, COMMANDS["ledger"].options))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["ledger", str(folder / "good.ledger")]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "interrupted\n"
