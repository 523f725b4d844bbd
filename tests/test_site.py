"""The site lists all that is public; what Sphinx makes of the pages is looked at by `.ci/site`."""

import ast
import importlib.util
import inspect
import re
from collections import Counter
from pathlib import Path
from pydoc import locate

import pytest

import dpframe as dpf
import dpframe.engines
import dpframe.testing as dpt
from dpframe.accessors.private import PrivateAccessor
from dpframe.jobs.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CATCH_ALLS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
CAPS = {"max_rows", "max_groups", "max_rows_per_group"}  # called `**caps`
METHODS = sorted(name for name in dir(dpf.DPAccessor) if not name.startswith("_"))
PUBLIC = {name for name in dir(dpf) if not name.startswith("_")}
DESCRIBED = [name for name in sorted(PUBLIC) if inspect.isfunction(getattr(dpf, name))]
DESCRIBED += ["Budget", "Ledger"]


def module_at(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


parts = module_at(DOCS / "_site" / "parts.py")
inventories = module_at(DOCS / "inventories" / "make.py")


def listed(*kinds):
    """Return what the pages of the reference list by directives of some kinds."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    return re.findall(rf"^\.\. (?:{'|'.join(kinds)}):: ([\w.]+)", text, re.MULTILINE)


def arguments(docstring):
    """Return the names under `Parameters` of a docstring."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", docstring, re.M | re.S)
    lines = found[1].splitlines() if found else []
    return {name.strip() for line in lines if line[:1].strip() for name in line.split(",")}


def undescribed(function):
    """Return the keywords of a function, or a class, that its docstring does not describe."""
    taken = inspect.signature(function).parameters.values()
    known = {("**" if one.kind in CATCH_ALLS else "") + one.name for one in taken}
    named = arguments(inspect.getdoc(function))
    return known - named - (CAPS if "**caps" in named else set())


def test_every_public_name_has_one_place_in_the_reference():
    found = Counter(listed("autofunction", "autoclass", "py:data"))
    assert {name for name, times in found.items() if times > 1} == set()
    tests = {*dpt.__all__, "dpframe.testing.recorder.Draw", "dpframe.testing.recorder.Run"}
    public = PUBLIC - {"errors"} | tests - {"PrivacyTestError"}
    engines = set(dpframe.engines.__all__) - {"ENGINES", "Frame", "engine_for"}
    answered = {
        name for name in found if re.match(r"dpframe\.(options|queries|privacy|engines)\.", name)
    }
    assert answered and all(isinstance(locate(name), type) for name in answered)
    assert set(found) == public | engines | answered


def test_every_method_and_property_of_the_accessor_has_one_place():
    found = Counter(listed("automethod", "autoproperty"))
    assert sorted(found) == [f"DPAccessor.{name}" for name in METHODS]
    assert set(found.values()) == {1}
    properties = {name for name in METHODS if isinstance(getattr(dpf.DPAccessor, name), property)}
    assert set(listed("autoproperty")) == {f"DPAccessor.{name}" for name in properties}


def test_scans_and_dask_have_what_is_listed_for_private_frames():
    page = (DOCS / "reference" / "accessor.md").read_text(encoding="utf-8")
    (private,) = re.findall(r"^## On private frames\n(.*?)^## ", page, re.M | re.S)
    names = {name for name in dir(PrivateAccessor) if not name.startswith("_")}
    assert set(re.findall(r"DPAccessor\.(\w+)", private)) == names


@pytest.mark.parametrize("name", DESCRIBED)
def test_docstrings_describe_every_keyword(name):
    assert undescribed(getattr(dpf, name)) == set()


def test_a_keyword_without_description_is_found():
    def one(a, *, b=None, **caps):
        """Do.

        Parameters
        ----------
        a, **caps
            As elsewhere, b too.

        Raises
        ------
        b
        """

    assert undescribed(one) == {"b"}


def gone(tree):
    """Name the arguments that docstrings of functions describe, and the functions do not have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            taken = node.args
            known = {one.arg for one in taken.posonlyargs + taken.args + taken.kwonlyargs}
            known |= {f"**{taken.kwarg.arg}"} if taken.kwarg else set()
            known |= {f"*{taken.vararg.arg}"} if taken.vararg else set()
            yield from sorted(arguments(ast.get_docstring(node) or "") - known)


def test_docstrings_describe_no_argument_that_is_gone():
    files = (ROOT / "dpframe").rglob("*.py")
    found = {file.name: [*gone(ast.parse(file.read_text("utf-8")))] for file in files}
    assert {name: names for name, names in found.items() if names} == {}
    described = "Do.\n\n    Parameters\n    ----------\n    a, b, **rest"
    stale = f'def f(a, **rest):\n    """{described}"""'
    assert [*gone(ast.parse(stale))] == ["b"]


def test_errors_alone_are_listed():
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    assert ".. automodule:: dpframe.errors\n   :members:" in page
    left_out = re.search(r":exclude-members: (.*)", page)[1].split(", ")
    own = [
        name
        for name, one in vars(dpf.errors).items()
        if inspect.isfunction(one) and one.__module__ == "dpframe.errors" and name[0] != "_"
    ]
    assert sorted(left_out) == sorted([*own, "STOPS", "is_column"])


def test_commands_are_shown_with_their_options():
    shown = re.split(r"^## ", parts.commands(), flags=re.MULTILINE)[1:]
    assert [one.partition("\n")[0] for one in shown] == [
        "`dpframe`",
        *(f"`dpframe {name}`" for name in COMMANDS),
    ]
    assert "exit codes:" in shown[0]
    report = next(one for one in shown if one.startswith("`dpframe report`"))
    assert {"--ledger", "--output", "--title", "--level", "--percent", "--overwrite"} <= set(
        re.findall(r"--[a-z]+", report)
    )


def test_every_field_of_a_certificate_is_described():
    shown = re.split(r"^## ", parts.certificate_schema(), flags=re.MULTILINE)
    tables = {one.partition("\n")[0]: one for one in shown}
    schema = dpf.certificate_schema()
    for part, one in {"Certificate": schema, **schema["$defs"]}.items():
        for field in one.get("properties", {}):
            assert re.search(rf"^\| `{field}` \| .+ \| .+ \|$", tables[part], re.MULTILINE), field


def test_parts_are_put_where_pages_ask_for_them():
    assert "dpframe verify" in parts.filled("# In a terminal\n\n<!-- made: commands -->\n")
    assert parts.filled("<!-- made: pages nowhere -->") == ""
    assert parts.filled("<!-- made: listed /nowhere /audit -->").splitlines()[3:-1] == ["/audit"]
    assert parts.filled("`<!-- made: commands -->`") == "`<!-- made: commands -->`"
    entries = parts.pages("reference", "queries").splitlines()[3:-1]
    assert entries[0] == "/reference/queries"
    assert entries[1:] == sorted(entries[1:])


def test_pages_that_are_there_first_are_named_first(tmp_path, monkeypatch):
    for name in ("b", "a", "index", "c"):
        (tmp_path / "start").mkdir(exist_ok=True)
        (tmp_path / "start" / f"{name}.md").write_text("# A page\n")
    monkeypatch.setattr(parts, "DOCS", tmp_path)
    assert parts.pages("start", "c", "missing").splitlines()[3:-1] == [
        "/start/c",
        "/start/a",
        "/start/b",
    ]
    assert "start/index" in parts.cards()
    assert "gallery" not in parts.cards() + parts.sections()


@pytest.mark.parametrize("project", inventories.NAMES)
def test_inventories_are_as_the_script_writes_them(project):
    kept = (DOCS / "inventories" / f"{project}.inv").read_bytes()
    assert kept.startswith(b"# Sphinx inventory version 2\n")
    made = inventories.inventory(project)
    assert [inventories.names_in(one) for one in (kept, made)] == [
        list(inventories.NAMES[project])
    ] * 2


def test_every_page_has_one_title():
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        prose = re.sub(r"^(```+).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
        titles = len(re.findall(r"^# \S", prose, re.MULTILINE))
        assert titles == 1 or "{include}" in text, page
