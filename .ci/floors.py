"""Print the oldest supported version of every dependency and extra, as requirements for pip.

The floors are read from ``pyproject.toml``: ``numpy>=2.0`` becomes ``numpy==2.0``. Tools that only
check the code are left out: their newest versions judge all environments alike. So is the extra
``docs``: the site is built with the newest versions alone. With ``--pythons``, print the versions
of Python that are supported instead, the newest first.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
TOOLS = {
    "hypothesis",
    "import-linter",
    "mypy",
    "pandas-stubs",
    "pyright",
    "pytest",
    "pytest-xdist",
    "ruff",
}
CLASSIFIER = "Programming Language :: Python :: 3."
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w,.-]+\])?>=(?P<floor>[\w.]+)")


def floor_of(requirement: str) -> str | None:
    """Return the requirement pinned to its floor, or None for a tool."""
    parts = REQUIREMENT.fullmatch(requirement)
    if parts is None:
        sys.exit(f"pyproject.toml: every requirement reads name>=floor, got {requirement!r}")
    if parts["name"] in TOOLS:
        return None
    return f"{parts['name']}{parts['extras'] or ''}=={parts['floor']}"


def main() -> None:
    """Print one requirement a line, or one version of Python."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    if sys.argv[1:] == ["--pythons"]:
        named = [one for one in project["classifiers"] if one.startswith(CLASSIFIER)]
        minors = sorted((int(one.removeprefix(CLASSIFIER)) for one in named), reverse=True)
        print(*(f"3.{minor}" for minor in minors), sep="\n")
        return
    extras = {**project["optional-dependencies"]}
    extras.pop("docs")
    groups = [project["dependencies"], *extras.values()]
    print(*sorted({pin for group in groups for line in group if (pin := floor_of(line))}), sep="\n")


if __name__ == "__main__":
    main()
