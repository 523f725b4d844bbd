"""What a run leaves in a log: a line at its start and at its end."""

from support.planning import planned
from support.terminal import SOUND, main

MARCH = ("--set", "month=2024-03")


def test_a_run_says_when_it_begins_and_ends(tmp_path, capsys):
    assert main(["release", str(planned(tmp_path)), *MARCH, "--json"]) == SOUND
    began, ended = capsys.readouterr().err.splitlines()
    assert "'trips 2024-03': begins" in began and began[4] == "-"
    assert "'trips 2024-03': ends after" in ended
