"""What a run leaves in logs: previews and refusals, and a line at its start and at its end."""

import io
import logging
import sys

import pytest
from support.planning import planned

from dpframe.jobs.answers import SOUND, TOO_MUCH, UNREADABLE
from dpframe.jobs.commands import main

MARCH = ("--set", "month=2024-03")


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    "given",
    [
        ("preview", None, SOUND, "previewed: 'trips 2024-03'; exit code 0"),
        ("preview", ('share = "1/12"', "epsilon = 3"), TOO_MUCH, "'; exit code 3"),
        ("release", ('share = "1/12"', "epsilon = 3"), TOO_MUCH, "refused; exit code 3"),
        ("release", ("max_rows = 3", "max_row = 3"), UNREADABLE, "no key of declare"),
    ],
)
def test_previews_and_refusals_are_logged(tmp_path, caplog, given):
    command, change, code, words = given
    plan = planned(tmp_path, *([change] if change else []))
    with caplog.at_level(logging.INFO, "dpframe"):
        assert main([command, str(plan), *MARCH]) == code
    (said,) = [one for one in caplog.messages if one.startswith(str(plan))]
    assert words in said


def test_a_handler_that_fails_changes_nothing(tmp_path, monkeypatch):
    class Failing(logging.Handler):
        def emit(self, _):
            raise OSError

    handler, logger = Failing(), logging.getLogger("dpframe")
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "level", logging.INFO)
    assert main(["preview", str(planned(tmp_path)), *MARCH]) == SOUND


def test_a_run_says_when_it_begins_and_ends(tmp_path, capsys):
    assert main(["release", str(planned(tmp_path)), *MARCH, "--json"]) == SOUND
    began, ended = capsys.readouterr().err.splitlines()
    assert "'trips 2024-03': begins" in began and began[4] == "-"
    assert "'trips 2024-03': ends after" in ended


def test_nothing_more_is_said_in_a_terminal(tmp_path, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["release", str(planned(tmp_path)), *MARCH]) == SOUND
    assert stream.getvalue() == ""
