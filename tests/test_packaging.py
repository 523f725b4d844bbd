"""What is published: files that say the same version, and hints on how to install extras."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from unittest import mock

import pytest
import yaml

from dpframe.errors import pip_install

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_all_files_say_the_same_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == PROJECT["version"] and cited["license"] == PROJECT["license"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{PROJECT['version']}]" in changes
    bill = json.loads((ROOT / "sbom.cdx.json").read_text(encoding="utf-8"))
    assert bill["metadata"]["component"]["version"] == PROJECT["version"]


def test_the_bill_of_materials_lists_what_is_needed():
    bill = json.loads((ROOT / "sbom.cdx.json").read_text(encoding="utf-8"))
    wanted = {one["properties"][0]["value"] for one in bill["components"]}
    assert wanted == set(PROJECT["dependencies"])
    (itself, *others) = bill["dependencies"]
    references = [one["bom-ref"] for one in bill["components"]]
    assert itself["dependsOn"] == references == [one["ref"] for one in others]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "pip install 'dpframe[plot]'"),
        ('{"dir_info": {"editable": true}, "url": "file:///x"}', "pip install '.[plot]'"),
        ('{"archive_info": {}, "url": "https://x/y.whl"}', "pip install 'dpframe[plot]'"),
    ],
)
def test_hints_are_right_where_a_folder_was_installed(origin, expected):
    found = mock.Mock(read_text=lambda _: origin)
    with mock.patch("importlib.metadata.distribution", return_value=found):
        assert pip_install("plot") == expected


def test_a_source_tree_that_is_not_installed_is_a_folder():
    with mock.patch("importlib.metadata.distribution", side_effect=PackageNotFoundError):
        assert pip_install("plot") == "pip install '.[plot]'"


def test_the_extra_of_the_examples_brings_what_they_import():
    needs = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["examples"]]
    brought = {re.split(r"[^\w-]", need)[0] for need in needs}
    imported = set()
    for script in (ROOT / "examples").glob("*.py"):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    imported |= {one.name.partition(".")[0] for one in names}
                case ast.ImportFrom(module=str(module)):
                    imported.add(module.partition(".")[0])
    imported -= sys.stdlib_module_names | {
        "dpframe",
        "papers",
        "pyspark",
    }  # the engine of Spark names it
    assert "mpmath" in imported and imported <= brought


def test_public_runners_try_every_python_that_is_named():
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: Python :: 3." in one]
    runners = ROOT / ".github" / "workflows" / "tests.yml"
    matrix = yaml.safe_load(runners.read_text())["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == named == sorted(named)
    assert PROJECT["requires-python"] == f">={named[0]}"
    given = [sys.executable, ROOT / ".ci" / "floors.py", "--pythons"]
    listed = subprocess.run(given, capture_output=True, text=True, check=True).stdout.split()
    assert listed == named[::-1]
