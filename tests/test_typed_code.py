"""Type checkers see what calls take and return: a small project, with mypy and with pyright."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from dpframe.denoising.methods import METHODS, DenoiserName
from dpframe.privacy.selection import SELECT
from dpframe.strategies import MECHANISMS, MechanismName

ROOT = Path(__file__).resolve().parents[1]
PROJECT = Path(__file__).parent / "support" / "typed"
EXAMPLE = ROOT / "examples" / "tested_pipeline" / "rides"
SEES_PACKAGE = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(EXAMPLE.parent)])}


def lines(name):
    return (PROJECT / name).read_text(encoding="utf-8").splitlines()


def run(*command):
    """Run a checker on copies of the project, which are in no package."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env=SEES_PACKAGE,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def with_mypy(folder):
    """Return where mypy finds something wrong, as pairs of a file and a line."""
    options = ["--strict", "--ignore-missing-imports", "--config-file=", "--output=json"]
    cache = f"--cache-dir={folder / 'cache'}"
    out = run("mypy", *options, cache, folder / "right.py", folder / "wrong.py", EXAMPLE)
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {(Path(one["file"]).name, one["line"]) for one in found if one["severity"] == "error"}


def with_pyright(folder):
    """Return where pyright finds something wrong, as pairs of a file and a line."""
    out = run("pyright", "--outputjson", "--pythonpath", sys.executable, folder)
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in json.loads(out)["generalDiagnostics"]
        if one["severity"] == "error"
    }


CHECKERS = {"mypy": with_mypy, "pyright": with_pyright}


@pytest.mark.full  # a checker takes some ten seconds
@pytest.mark.parametrize("name", CHECKERS)
def test_a_project_is_checked(name, tmp_path):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    for file in ("right.py", "wrong.py"):
        (tmp_path / file).write_text("\n".join(lines(file)), encoding="utf-8")
    marked = {
        ("wrong.py", at) for at, line in enumerate(lines("wrong.py"), 1) if "# wrong:" in line
    }
    assert len(marked) > 10
    assert CHECKERS[name](tmp_path) == marked


@pytest.mark.full
def test_what_is_right_runs():
    compile("\n".join(lines("right.py")), "right.py", "exec")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROJECT / "right.py")],
        capture_output=True,
        text=True,
        check=False,
        env=SEES_PACKAGE,
    )
    assert done.returncode == 0, done.stderr


def test_names_that_checkers_know_are_those_there_are():
    assert {*get_args(MechanismName)} == {"auto", SELECT, *MECHANISMS}
    assert {*get_args(DenoiserName)} == {"auto", *METHODS}
