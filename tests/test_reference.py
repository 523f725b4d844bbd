"""The reference names everything public: calls with a line each, keywords, extras."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest
from test_site import CATCH_ALLS, METHODS, parts

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
TABLE = parts.filled(PAGE)
CALLABLE = [name for name in METHODS if callable(getattr(dpf.DPAccessor, name))]


def keywords(function):
    """Return the names of the arguments of a function, except for the catch-alls."""
    taken = inspect.signature(function).parameters.values()
    return {one.name for one in taken if one.kind not in CATCH_ALLS and one.name != "self"}


def named(signature):
    """Return the keywords that a signature names, and those that it puts together."""
    together = (set(group) for name, group in parts.SHARED.items() if name in signature)
    return set(re.findall(r"(?<!\*)\b\w+", re.sub(r"=(\(.*?\)|[^,)]*)", "", signature))).union(
        *together
    )


@pytest.mark.parametrize("name", sorted({*dir(dpf)} - {"errors", "__doc__"}))
def test_every_public_name_is_in_the_reference(name):
    if name in ("EACH_ROW", "DPAccessor", "DataFrame", "__version__"):
        assert re.search(
            rf"\b{name}\b", "".join(map(Path.read_text, (ROOT / "docs/reference").glob("*.md")))
        )
    else:
        assert re.search(rf"^\| {{py:obj}}`{name} <dpframe.{name}>` \| \w.* \|$", TABLE, re.M)


def test_all_pages_of_the_reference_are_listed():
    pages = {page.stem for page in (ROOT / "docs" / "reference").glob("*.md")} - {"index"}
    assert set(re.findall(r"^(\w+)$", PAGE, re.M)) >= pages


@pytest.mark.parametrize("name", CALLABLE)
def test_short_signatures_name_all_keywords(name):
    method = getattr(dpf.DPAccessor, name)
    assert named(parts.short_signature(method)) == keywords(method)


def test_shared_keywords_are_put_together():
    shown = "(by=None, *, weights=None, **selection, **release)"
    assert parts.short_signature(dpf.DPAccessor.count) == shown
    assert keywords(dpf.DPAccessor.count) - named(shown.replace("**release", "")) == {
        *parts.SHARED["**release"]
    }
    assert parts.short_signature(dpf.DPAccessor.aggregate).endswith("**release, **named)")
    table = parts.shared()
    assert all(f"`{one}`" in table for group in parts.SHARED.values() for one in group)


def test_every_extra_is_in_the_reference():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    unnamed = [extra for extra in extras if f"pip install '.[{extra}]'" not in PAGE]
    assert unnamed == []


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dpf.__version__ == project["version"]
