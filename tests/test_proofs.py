"""The proofs have their five parts, and what they name in the code and in the tests is there."""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROOFS = ROOT / "docs" / "proofs"
PAGES = sorted(page.stem for page in PROOFS.glob("*.md") if page.stem != "index")
HEADINGS = ["Statement", "Assumptions", "Proof", "Code", "Tests"]


def parts_of(page):
    """Return the text under each heading of a page."""
    text = (PROOFS / f"{page}.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {heading: body for heading, _, body in (part.partition("\n") for part in parts)}


def names_in(text):
    """Return what items of a list name first, in backticks: `::b` after `a.py::c` is `a.py::b`."""
    names = []
    for start in re.findall(r"^- ((?:`[^`]+`(?:,\s+)?)+)", text, flags=re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", start)
        file = first.partition("::")[0]
        names += [first, *(file + name if name.startswith("::") else name for name in others)]
    return names


def found(name):
    """Import the longest module of a dotted name, and look up the rest."""
    words = name.split(".")
    for end in range(len(words), 0, -1):
        try:
            one = importlib.import_module(".".join(words[:end]))
        except ModuleNotFoundError:
            continue
        for word in words[end:]:
            one = inspect.getattr_static(one, word)
        return one
    raise ModuleNotFoundError(name)


@cache
def functions_of(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    return set(re.findall(r"^def (test_\w+)", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_the_five_parts(page):
    assert list(parts_of(page)) == HEADINGS


@pytest.mark.parametrize("page", PAGES)
def test_code_that_pages_name_is_there(page):
    names = names_in(parts_of(page)["Code"])
    assert names
    for name in names:
        assert name.startswith("dpframe.")
        found(name)


@pytest.mark.parametrize("page", PAGES)
def test_tests_that_pages_name_are_there(page):
    names = names_in(parts_of(page)["Tests"])
    assert names
    for name in names:
        path, _, function = name.partition("::")
        assert path.startswith("tests/")
        assert function in functions_of(path), name


def test_names_that_are_not_there_are_missed():
    with pytest.raises(AttributeError):
        found("dpframe.privacy.laws.CAUCHY")
    assert "test_nothing" not in functions_of("tests/test_proofs.py")


def test_every_page_is_listed():
    index = (PROOFS / "index.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^<!-- made: listed (.*) -->$", index, flags=re.MULTILINE)
    assert sorted(listed.split()) == [f"/proofs/{page}" for page in PAGES]
    reviewers = (PROOFS.parent / "reviewers" / "index.md").read_text(encoding="utf-8")
    assert "/proofs/index" in reviewers


@pytest.mark.parametrize(
    "page",
    [
        "threats.md",
        *sorted(f"reviewers/{p.name}" for p in (PROOFS.parent / "reviewers").glob("*.md")),
    ],
)
def test_files_of_tests_that_reviewers_read_of_are_there(page):
    text = (PROOFS.parent / page).read_text(encoding="utf-8")
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(re.findall(r"\btest_\w+\.py", text)) <= there
