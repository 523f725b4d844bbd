"""Which cases of a test run: the first of each, and a third of the others by turns."""

import os
import subprocess
from collections import Counter
from pathlib import Path
from zlib import crc32

TURNS = 3
"""Runs in a row, a commit apart, that take every case: each costs about half of all of them."""

ROOT = Path(__file__).parents[2]
VARIABLE = "DPFRAME_TURN"
"""Number of commits of a copy without git, such as the gate makes; or "first", see below."""

FIRST = -1
"""The turn that takes no case but the first of each test: what it finds, every turn finds."""


def turn_of(config):
    """Return the turn of this run, or None where all cases run."""
    if hasattr(config, "workerinput"):  # a commit between two workers would part their cases
        return config.workerinput["turn"]
    told = os.environ.get(VARIABLE)
    if told == "first":
        return FIRST
    if config.option.all_cases or _names_files(config):
        return None
    commits = told or count_commits(ROOT)
    return None if commits is None else int(commits) % TURNS


def _names_files(config):
    paths = (argument.partition("::")[0] for argument in config.args)
    return any((config.invocation_params.dir / path).is_file() for path in paths)


def count_commits(folder):
    """Count the commits of a checkout, also of a shallow one; return None where there are none."""
    git = ["git", "-C", str(folder)]
    try:
        inside = _output([*git, "rev-parse", "--show-toplevel"])
        commits = _output([*git, "rev-list", "--count", "HEAD"])
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(commits) if Path(inside).resolve() == folder.resolve() else None


def _output(command):
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def part_cases(items, turn):
    """Return the items of a turn and the others; audits belong to every turn.

    The cases of a test that are `full` take turns by themselves.
    """
    counted = Counter()
    taken, left = [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        full, audit = (item.get_closest_marker(lane) is not None for lane in ("full", "audit"))
        case = counted[test, full, audit]
        counted[test, full, audit] += 1
        here = audit or case == 0 or _turn_of(test, case) == turn
        (taken if here else left).append(item)
    return taken, left


def _turn_of(test, case):
    """Return the turn of a case; tests begin at different ones, so that turns last as long."""
    return (case + crc32(test.encode())) % TURNS
