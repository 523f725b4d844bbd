"""Without any extra all else works, and what needs an extra names it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.planning import SMALL_PLAN

from dpframe.errors import pip_install

ROOT = Path(__file__).resolve().parents[1]
HIDDEN = ["pyarrow", "fastparquet", "matplotlib", "dask", "tqdm", "dp_accounting", "yaml", "jinja2"]
HIDDEN += ["sqlalchemy", "psycopg", "openpyxl"]
SCRIPT = """
import importlib.abc, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import pandas as pd
import dpframe as dpf
from dpframe.jobs.commands import main
from dpframe.errors import DPFrameError, pip_install

trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.0]})
trips.dp.declare(
    keys={"zone": ["A", "B"]},
    bounds={"fare": (0, 100)},
    privacy_unit=dpf.EACH_ROW,
    ledger=dpf.Ledger.create("trips.ledger", budget=dpf.Budget(2, 1e-6)),
)
released = trips.dp.aggregate("zone", n=dpf.count(), fare=dpf.mean("fare"), epsilon=0.5)
"""
WORKS = """
query = dpf.aggregate("zone", n=dpf.count(), fare=dpf.mean("fare"))
assert trips.dp.plan(query, share=0.5).fits
assert trips.dp.diagnose(query) is not None
trips.dp.release({"a": query, "b": dpf.histogram("fare", [0, 10, 100])}, share=0.1, denoise="auto")
released.dp.interval(0.9), released.dp.std_error, released.dp.covariance, released.dp.percent("n")
trips.dp.count('zone', epsilon=0.1).dp.combine({'A': 1, 'B': -1})
repr(released.dp.certificate), repr(trips.dp.budget)
dpf.schema(released)
released.dp.write_csv("trips.csv")
dpf.verify(dpf.read_csv("trips.csv"), ledger=dpf.Ledger("trips.ledger"))
assert main(["verify", "trips.csv", "--ledger", "trips.ledger"]) == 0
assert main(["show", "trips.csv"]) == 0
assert main(["ledger", "trips.ledger"]) == 0
"""
NEEDS = {
    "write_parquet": ("released.dp.write_parquet('x.parquet')", "parquet"),
    "write_excel": ("released.dp.write_excel('x.xlsx')", "excel"),
    "scan_parquet": ("dpf.scan_parquet('x.parquet')", "parquet"),
    "scan": ("dpf.scan(trips.dtypes)", "parquet"),
    "plot": ("released.dp.plot(column='n')", "plot"),
    "plot_map": ("released.dp.plot_map({'A': (0, 1), 'B': (1, 0)}, column='n')", "plot"),
    "style": ("released.dp.style()", "report"),
    "report": ("released.dp.report('x.html')", "report"),
    "to_dp_event": ("dpf.Ledger('trips.ledger').to_dp_event()", "accounting"),
    "postgres": ("dpf.Ledger('postgresql://host/trips')", "postgres"),
    "dask": ("import dpframe.dask", "dask"),
}
COMMANDS = [
    ["verify", "x.parquet"],
    ["preview", "csv-in.toml"],
    ["preview", "csv-in.toml", "--without-data"],
    ["preview", "parquet-in.toml", "--without-data"],
    ["release", "parquet-out.toml"],
    ["preview", "parquet-out.toml"],
    ["release", "parquet-in.toml"],
    ["preview", "feather-in.toml"],
]


def run(script, folder):
    """Run a script where no extra is installed."""
    source = f"HIDDEN = {HIDDEN}\n{SCRIPT}\n{script}"
    return subprocess.run(
        [sys.executable, "-c", source],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.full
def test_everything_else_works_without_extras(tmp_path):
    done = run(WORKS, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_what_needs_an_extra_names_it(tmp_path):
    calls = [
        f"""
try:
    {call}
except (DPFrameError, ImportError) as error:
    assert isinstance(error, DPFrameError) or {name!r} == "dask", type(error)
    assert pip_install({extra!r}) in str(error), str(error)
else:
    raise AssertionError({name!r})
"""
        for name, (call, extra) in NEEDS.items()
    ]
    done = run("\n".join(calls), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_commands_name_the_extra(tmp_path):
    for name in ("x.parquet", "x.feather"):
        (tmp_path / name).write_bytes(b"PAR1")
    (tmp_path / "private.csv").write_text("zone\nA\n")
    for name, old, new in (
        ("csv-in", "out.csv", "out.csv"),
        ("parquet-out", "out.csv", "out.parquet"),
        ("parquet-in", "private.csv", "x.parquet"),
        ("feather-in", "private.csv", "x.feather"),
    ):
        (tmp_path / f"{name}.toml").write_text(SMALL_PLAN.replace(old, new))
    done = run("\n".join(f"assert main({command}) == 2" for command in COMMANDS), tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(COMMANDS)
    assert [line for line in lines if pip_install("parquet") not in line] == []


def test_extras_that_are_named_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {extra for _, extra in NEEDS.values()} <= set(project["optional-dependencies"])


def test_the_extra_of_dask_has_its_scheduler_for_many_machines():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    distributed = [one for one in extras["dev"] if one.startswith("distributed")]
    assert set(distributed) < set(extras["dask"])
