"""The reference names everything public: names, methods of the accessor, keywords, extras."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import dpframe as dpf
from dpframe.queries.reading import CapOptions

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
SECTIONS = re.split(r"^## ", PROSE, flags=re.MULTILINE)
CAPS = {*CapOptions.__annotations__}  # called `**caps` on the page
CATCH_ALLS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

FUNCTIONS = sorted(
    [name for name in dpf.__all__ if inspect.isfunction(getattr(dpf, name))]
    + ["Budget", "Ledger", "round", "sum"]
)
METHODS = sorted(name for name in dir(dpf.DPAccessor) if not name.startswith("_"))


def code(text):
    """Return the words in code spans of a text."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))


def keywords(function):
    """Return the names of the arguments of a function, except for the catch-alls."""
    taken = inspect.signature(function).parameters.values()
    return {one.name for one in taken if one.kind not in CATCH_ALLS and one.name != "self"}


def missing(function, called, page):
    """Return the arguments of a function that no call of it on a page names."""
    calls = re.findall(rf"`(?:dpf\.)?{called}\(([^`]*)", page)
    named = set(re.findall(r"\w+", " ".join(calls)))
    return sorted(keywords(function) - named - (CAPS if "caps" in named else set()))


@pytest.mark.parametrize("name", dpf.__all__)
def test_every_public_name_is_in_the_reference(name):
    assert name in code(PROSE)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_accessor_is_in_its_table(name):
    (section,) = [section for section in SECTIONS if section.startswith("The accessor")]
    assert re.search(rf"`\.dp\.{name}\b", section)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_of_public_functions_name_all_their_arguments(name):
    assert missing(getattr(dpf, name), name, PROSE) == []


def test_keywords_of_a_method_are_those_of_its_function():
    named = code(PROSE)
    unnamed = {
        (name, keyword)
        for name in METHODS
        if callable(method := getattr(dpf.DPAccessor, name))
        for keyword in keywords(method) - named
    }
    assert unnamed == set()


def test_every_extra_is_in_the_reference():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    unnamed = [extra for extra in extras if f"pip install '.[{extra}]'" not in PROSE]
    assert unnamed == []


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dpf.__version__ == project["version"]


def test_a_keyword_that_is_left_out_is_found():
    assert (
        missing(
            dpf.interval,
            "interval",
            "`dpf.interval(released, level, simultaneous, sampling, join)`",
        )
        == []
    )
    page = "`interval(released, level, sampling, join)`, and `simultaneous` elsewhere"
    assert missing(dpf.interval, "interval", page) == ["simultaneous"]
    assert missing(dpf.verify, "verify", page) == ["frame", "ledger"]
