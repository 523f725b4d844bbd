"""What macOS and Windows do otherwise, played on Linux by fakes of their answers."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, pure
from support.planning import planned
from support.terminal import main
from support.windows import rules_of_windows

import dpframe as dpf
from dpframe import Ledger
from dpframe.engines.batches import remove_leftovers, temporary_folder
from dpframe.ledger import platform
from dpframe.ledger.platform import Platform

linux = pytest.mark.skipif(sys.platform != "linux", reason="open files are listed on Linux")


@linux
def test_no_file_is_removed_or_replaced_while_it_is_open(tmp_path):
    path = tmp_path / "x.ledger"
    (tmp_path / "left").mkdir()
    plan = planned(tmp_path / "left")
    with rules_of_windows() as refused:
        ledger = Ledger.create(path, budget=ONE)
        ledger.charge(entry(pure(0.1)))
        os.link(path, tmp_path / "0123456789abcdef.new")  # of a process that was killed
        ledger.charge(entry(pure(0.1)))
        assert [one.name for one in tmp_path.glob("*.new")] == []
        ledger.copy_to(tmp_path / "y.ledger")
        with temporary_folder("dpframe-rows-", tmp_path) as made:
            (made / "0.arrow").write_text("private")
        remove_leftovers(tmp_path)
        for number in range(2):
            line = ["release", str(plan), "--set", "month=2024-03", "--name", f"n {number}"]
            assert main([*line, "--overwrite", "--quiet"]) == 0
    assert refused == []


@linux
def test_the_fake_refuses_what_windows_does(tmp_path):
    with rules_of_windows() as refused, open(tmp_path / "a", "w"):
        for act in (os.unlink, lambda path: os.replace(path, tmp_path / "b")):
            with pytest.raises(PermissionError):
                act(tmp_path / "a")
    assert len(refused) == 2


class MacOS:
    """Locks of a Mac, played by those of this system, and its way to flush a disk."""

    F_FULLFSYNC = 51

    def __init__(self, *, refuses: bool) -> None:
        self.asked: list[int] = []
        self.refuses = refuses

    def __getattr__(self, name: str):
        return getattr(platform.fcntl, name)

    def fcntl(self, handle: int, what: int) -> None:
        self.asked.append(what)
        if self.refuses:
            raise OSError(45, "Operation not supported")


@linux
@pytest.mark.parametrize("refuses", [False, True])
def test_a_disk_of_macos_is_told_to_flush(tmp_path, monkeypatch, refuses):
    mac, flushed, fsync = MacOS(refuses=refuses), [], os.fsync
    monkeypatch.setattr(platform, "HERE", Platform("darwin", posix_locks=mac))
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(fsync(handle)))
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    assert mac.asked == [51] and len(flushed) == refuses
    monkeypatch.setattr(platform, "HERE", Platform())
    ledger.charge(entry(pure(0.1)))
    assert len(Ledger(tmp_path / "x.ledger").entries) == 1


FEW_FILES = """
import resource, sys
import numpy as np, pandas as pd, pyarrow as pa
import dpframe as dpf
from dpframe.engines import scans

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
scans._BUCKET_ROWS, scans._SLICE_ROWS = 20, 1
table = pa.table({"u": np.arange(12000) % 6000, "x": np.ones(12000)})
frame = dpf.scan(table)
ledger = dpf.Ledger(budget=dpf.Budget(epsilon=100))
frame.dp.declare(privacy_unit="u", max_rows=1, ledger=ledger)
print(round(float(frame.dp.count(epsilon=50)["count"].iloc[0]), -2))
"""


@pytest.mark.full
@pytest.mark.skipif(platform.resource is None, reason="files have no limit there")
def test_a_release_fits_under_256_open_files():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FEW_FILES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "6000.0\n", done.stderr[-2000:]


def charge(path: str, number: int) -> None:
    Ledger(path).charge(entry(pure(0.1), name=f"charge {number}"))


@pytest.mark.full
def test_processes_that_are_started_anew_spend_one_budget(tmp_path):
    path = str(tmp_path / "x.ledger")
    Ledger.create(path, budget=PURE)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=charge, args=(path, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3
    assert len(Ledger(path).entries) == 3


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(e, marks=pytest.mark.full) for e in ("cp1252", "utf-8"))]
)
def test_what_a_console_cannot_print_is_escaped(tmp_path, encoding):
    plan = planned(tmp_path, ("trips {month}", "trips \u2192 \u0161 {month}"))
    line = [sys.executable, "-m", "dpframe", "preview", str(plan), "--set", "month=2024-03"]
    env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(line, capture_output=True, check=False, env=env, cwd=root)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode(encoding)
    assert ("\u2192" in shown) == (encoding == "utf-8")
    assert ("\\u2192" in shown) == (encoding != "utf-8")
    assert ("\u0161" in shown) == (encoding != "ascii")


@pytest.mark.full
def test_no_file_is_read_in_the_encoding_of_the_system(tmp_path):
    plan = planned(tmp_path)
    script = f"""
import sys, warnings
import pandas, pandera, pyarrow.parquet
from dpframe.jobs.commands import main
warnings.filterwarnings("error", category=EncodingWarning, module="dpframe")
sys.exit(main(["release", {str(plan)!r}, "--set", "month=2024-03", "--quiet"]))
"""
    root = Path(__file__).resolve().parents[2]
    options = ["-X", "warn_default_encoding", "-W", "ignore"]
    done = subprocess.run(
        [sys.executable, *options, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    assert isinstance(dpf.read_csv(tmp_path / "by_zone-2024-03.csv"), pd.DataFrame)


@pytest.mark.parametrize(
    ("name", "known"), [("linux", "pid:"), ("darwin", "darwin"), ("win32", "")]
)
def test_numbers_of_processes_are_of_a_space_that_is_known_or_none(name, known):
    """Nobody proves a death by the number of a process that may be of another space."""
    space = Platform(name).process_space
    assert space.startswith(known) and bool(space) == bool(known)
