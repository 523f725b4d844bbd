"""The command line in this process, and the exit codes that `docs/jobs.md` promises."""

from dpframe.jobs.commands import main

SOUND, ALTERED, UNREADABLE = 0, 1, 2
TOO_MUCH, DONE_BEFORE, LEFT_OVER = 3, 4, 5
LATER = 75  # EX_TEMPFAIL of sysexits.h
TESTED = 78  # EX_CONFIG

__all__ = [
    "ALTERED",
    "DONE_BEFORE",
    "LATER",
    "LEFT_OVER",
    "SOUND",
    "TESTED",
    "TOO_MUCH",
    "UNREADABLE",
    "main",
]
