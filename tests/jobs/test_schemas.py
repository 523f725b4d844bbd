"""Schemas of plans: YAML is data, a module is code."""

import sys

import pandera.pandas as pa
import pytest
from support.planning import Overrides, planned, preview_job, read_plan
from support.raising import raises
from support.terminal import main

from dpframe.errors import PlanFileError

SCHEMA = pa.DataFrameSchema(
    {
        "zone": pa.Column(str, pa.Check.isin(["A", "B"])),
        "fare": pa.Column(float, pa.Check.in_range(0, 50), nullable=True),
    }
)


def in_yaml(path):
    """Write the schema as pandera does, if it can."""
    pytest.importorskip("pandera.io.pandas_io", exc_type=ImportError)
    SCHEMA.to_yaml(path)


def with_schema(folder, named):
    return planned(
        folder,
        ('keys.zone = ["A", "B", "C"]', f'schema = "{named}"'),
        ("bounds.fare = [0, 100]\n", ""),
    )


def given(**more):
    return Overrides({"month": "2024-03"}, **more)


def test_a_schema_in_yaml_is_read(tmp_path):
    plan = with_schema(tmp_path, "trips.yaml")
    in_yaml(tmp_path / "trips.yaml")
    tried = preview_job(read_plan(plan, given()), rows=10)
    assert tried.fits
    assert tried.needed == {"zone": "string", "fare": "float64", "driver": "id"}


@pytest.mark.parametrize(
    "text",
    ["", "[", "a: 1", "!!python/object/apply:os.system ['touch made']", "columns: 3", "[1, 2]"],
)
def test_texts_that_are_no_schema_run_nothing(tmp_path, capsys, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    plan = with_schema(tmp_path, "trips.yaml")
    (tmp_path / "trips.yaml").write_text(text)
    assert main(["preview", str(plan), "--set", "month=2024-03"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "made").exists()


def test_yaml_needs_a_package_that_is_named(tmp_path, monkeypatch):
    plan = with_schema(tmp_path, "trips.yaml")
    (tmp_path / "trips.yaml").write_text("columns: {}")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with raises(PlanFileError, "pip install 'pandera", parameter="declare.schema"):
        read_plan(plan, given())


def test_a_module_is_imported_if_that_is_allowed(tmp_path, monkeypatch):
    plan = with_schema(tmp_path, "schemas_of_trips:Trips")
    (tmp_path / "schemas_of_trips.py").write_text(
        "import pandera.pandas as pa\n"
        "from pathlib import Path\n"
        "Path(__file__).with_suffix('.ran').touch()\n"
        "Trips = pa.DataFrameSchema({'zone': pa.Column(str, pa.Check.isin(['A'])),"
        " 'fare': pa.Column(float, pa.Check.in_range(0, 9))})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with raises(PlanFileError, "--allow-imports", parameter="declare.schema"):
        read_plan(plan, given())
    assert not (tmp_path / "schemas_of_trips.ran").exists()
    assert preview_job(read_plan(plan, given(allow_imports=True))).fits
    plan.write_text(plan.read_text().replace(":Trips", ":Tripps"))
    with raises(PlanFileError, "AttributeError", parameter="declare.schema"):
        read_plan(plan, given(allow_imports=True))


@pytest.mark.parametrize("named", ["trips", "a b:c", "os:system('x')", ":x", "none.yaml"])
def test_what_names_no_schema_is_refused(tmp_path, named):
    plan = with_schema(tmp_path, named)
    with raises(PlanFileError, "schema", parameter="declare.schema"):
        read_plan(plan, given(allow_imports=True))
