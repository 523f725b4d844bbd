"""Disks that fail, and small ones, where the system lets one make them."""

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

try:
    import resource
except ImportError:  # Windows
    RLIMIT = False
else:
    RLIMIT = hasattr(resource, "RLIMIT_FSIZE")


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    """Mount a disk in memory, as root on Linux can; skip the test elsewhere."""
    place.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
    try:
        mounted = subprocess.run(line, check=False, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def failing(monkeypatch, code, *, after, forever=False):
    """Let the next commit of a spend fail, before or after it is made; or all that follows, too."""
    connect, failed = sqlite3.connect, []

    def error():
        made = sqlite3.OperationalError("disk I/O error")
        made.sqlite_errorcode = code
        return made

    class Failing(sqlite3.Connection):
        def execute(self, statement, *more):
            ends = statement == "COMMIT" and self.total_changes
            if (ends and not failed) or (failed and forever):
                failed.append(statement)
                if after and ends:
                    super().execute("COMMIT")
                raise error()
            return super().execute(statement, *more)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Failing))
