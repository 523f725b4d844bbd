"""The page about jobs: its plan and its commands run as they are written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.terminal import main

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the data and the plan of the page."""
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[0], {})  # noqa: S102
    (plan,) = blocks("toml")
    Path("trips.toml").write_text(plan)
    return tmp_path


@pytest.mark.full
def test_the_plan_of_the_page_can_be_previewed_and_released(folder):
    first, *_ = blocks("sh")
    words = shlex.split(first)
    assert words[:3] == ["dpframe", "preview", "trips.toml"]
    assert main(words[1:]) == 0
    (looked,) = blocks("sh")[1].splitlines()
    assert main([*shlex.split(looked)[1:], "--private"]) == 0  # as it is no terminal here
    made, *_ = blocks("sh")[2].splitlines()
    assert main(shlex.split(made)[1:]) == 0
    assert main(["release", "trips.toml", "--set", "month=2024-01"]) == 0


@pytest.mark.audit  # some thirty processes
@pytest.mark.skipif(sys.platform == "win32", reason="a shell is needed")
def test_the_commands_of_the_page_run_as_they_are_written(folder):
    script = "\n".join(
        ["set -e", f'dpframe() {{ "{sys.executable}" -m dpframe "$@"; }}', *blocks("sh")]
    ).replace("dpframe diagnose", "dpframe diagnose --private")  # as it is no terminal here
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        ["bash", "-c", script], check=False, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "trips 2024-12" in done.stdout
    ledger = dpf.Ledger("trips.ledger")
    assert len(ledger.entries) == 12
    assert ledger.status().largest_share == 0
    assert len(list(Path("published").glob("*.csv"))) == 24


def test_the_page_names_every_kind_of_query_and_every_key():
    from dpframe.jobs import answers, job
    from dpframe.jobs.plan_models import plan_schema
    from dpframe.sources.text import TYPES

    prose = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`]+)`", prose))))
    schema = plan_schema()
    tables = [schema, *(schema["$defs"][name] for name in ("data", "declare", "release"))]
    known = {key for table in tables for key in table["properties"]} | {*job.QUERIES}
    assert known | set(TYPES) <= named
    codes = {answers.TOO_MUCH, answers.DONE_BEFORE, answers.LEFT_OVER, answers.LATER}
    assert all(f"\n| {code} |" in PAGE for code in codes)
