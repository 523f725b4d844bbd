"""The pages name every room of the package, on the floor that the import contract gives it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reviewers" / "design.md"
ROW = re.compile(r"^\| (\d+) \| `([\w.]+/?)` \| \S", re.MULTILINE)


def rows():
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_the_page_names_every_folder_and_file():
    folders = {f"{init.parent.name}/" for init in (ROOT / "dpframe").glob("*/__init__.py")}
    files = {file.name for file in (ROOT / "dpframe").glob("*.py")} - {"__init__.py"}
    assert sorted(room for _, room in rows()) == sorted(folders | files)


def test_the_page_has_the_floors_of_the_import_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    floors = enumerate(reversed(layers), start=1)
    contract = {room: floor for floor, layer in floors for room in layer.split(" | ")}
    named = {room.removesuffix("/").removesuffix(".py"): int(floor) for floor, room in rows()}
    assert named == contract
