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


def test_summaries_show_what_was_measured():
    results = ROOT / "benchmarks" / "results"
    measured = (results / "scaling.md").read_text(encoding="utf-8").splitlines()
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) > 12 and set(rows) <= set(measured)
    suggested = (results / "suggestions.md").read_text(encoding="utf-8")
    bold = [re.findall(r"\*\*([\d.]+)\*\*", line) for line in suggested.splitlines()]
    medians = [row for row in bold if row]  # a median and a worst of caps, then of bounds
    page = (ROOT / "docs" / "caps-and-bounds.md").read_text(encoding="utf-8")
    caps, bounds = zip(*medians[:2], strict=True), [*zip(*medians[2:], strict=True)]
    for line, rows in (("counts", [*caps]), ("sums", bounds[:2]), ("means", bounds[2:])):
        shown = re.search(rf"^\| {line} with .*?\| (.*) \|$", page, re.MULTILINE)[1]
        assert shown.split(" | ") == [number for pair in rows for number in pair]
    audit = " ".join((results / "audit.md").read_text(encoding="utf-8").split())
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    for number in re.findall(r"(?<![\d.])\d+(?:\.\d+%?|e-\d+)|\b62\b", page):
        assert number in audit, number
    replays = (results / "replays.md").read_text(encoding="utf-8")
    pairs = re.search(r"([\d,]+) pairs of neighbors", page)[1]
    assert re.search(rf"^\| \*\*all\*\* \|.*\| {pairs} \|.*\| 0 \|$", replays, re.MULTILINE)
    assert "| no |" not in replays
    broken = audit.split("## Broken on purpose")[1].split("##")[0]
    caught = broken.count("| caught |")
    assert f"{caught} of {caught} caught" in page and "| missed |" not in broken
