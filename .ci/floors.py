"""Print the oldest supported version of every dependency and extra, as requirements for pip.

The floors are read from ``pyproject.toml``: ``numpy>=2.0`` becomes ``numpy==2.0``. Tools that only
check the code are left out: their newest versions judge all environments alike. So is the extra
``docs``: the site is built with the newest versions alone. With ``--python``, print the name of the
oldest Python instead.
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
    """Print one requirement a line, or the name of the oldest Python."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    if sys.argv[1:] == ["--python"]:
        print("python" + project["requires-python"].removeprefix(">="))
        return
    extras = {**project["optional-dependencies"]}
    extras.pop("docs")
    groups = [project["dependencies"], *extras.values()]
    print(*sorted({pin for group in groups for line in group if (pin := floor_of(line))}), sep="\n")


if __name__ == "__main__":
    main()
