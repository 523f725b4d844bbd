"""`help` says in lines what there is, with an example that runs."""

import ast
import inspect
import pydoc
import re
from pathlib import Path

import pandas as pd
import pytest

import dpframe as dpf

MAKERS = ("__init__", "__new__")
CATCH_ALLS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
METHODS = {
    name: method
    for name in dir(dpf.DPAccessor)
    if inspect.isfunction(method := getattr(dpf.DPAccessor, name)) and name[0] != "_"
}
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)


def shown(thing):
    return pydoc.render_doc(thing, renderer=pydoc.plaintext)


def keywords_of(function):
    taken = inspect.signature(function).parameters.values()
    return {one.name for one in taken if one.kind not in CATCH_ALLS and one.name != "self"}


def described(docstring):
    """Return what is said of each parameter."""
    section = SECTION.search(docstring)
    lines = {}
    for paragraph in re.split(r"^(?=\S)", section[1] if section else "", flags=re.MULTILINE):
        names, _, body = paragraph.partition("\n")
        lines |= {name.strip(" *"): body.strip() for name in names.split(",")}
    return lines


def test_help_of_the_package_is_a_page_that_names_all_that_is_public():
    text = shown(dpf)
    assert len(text.split()) <= 3_000
    assert all(
        re.search(rf"^ *{name} +\w", text, re.MULTILINE) for name in dir(dpf) if "_" != name[0]
    )


@pytest.mark.parametrize("name", METHODS)
def test_help_of_a_method_says_what_each_keyword_is(name):
    lines = described(inspect.getdoc(METHODS[name]))
    names = keywords_of(METHODS[name]) - {"path"}
    unsaid = {one for one in names if not lines.get(one) or lines[one].startswith("As ")}
    assert unsaid == set()


def defined(tree):
    """Pair docstrings of functions and classes with the names of their parameters or fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name, ast.get_docstring(node) or "", taken_by(node)
        elif isinstance(node, ast.ClassDef) and not node.bases:
            fields = {one.target.id for one in node.body if isinstance(one, ast.AnnAssign)}
            makers = [one for one in node.body if getattr(one, "name", "") in MAKERS]
            yield node.name, ast.get_docstring(node) or "", fields.union(*map(taken_by, makers))


def taken_by(node):
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return {one.arg for one in (*named, node.args.vararg, node.args.kwarg) if one is not None}


def stale(source):
    """List what docstrings describe and signatures do not have."""
    every = (
        (name, described(text).keys() - taken) for name, text, taken in defined(ast.parse(source))
    )
    return [(name, names - {""}) for name, names in every if names - {""}]


def test_docstrings_describe_no_parameter_that_is_not_there():
    files = sorted(Path(dpf.__file__).parent.rglob("*.py"))
    assert [(file.name, *one) for file in files for one in stale(file.read_text("utf-8"))] == []
    planted = (
        'def f(a):\n    """Do.\n\n    Parameters\n    ----------\n    a, b\n        Two.\n    """'
    )
    assert stale(planted) == [("f", {"b"})]


@pytest.mark.parametrize("name", METHODS)
def test_the_example_of_a_method_runs(name):
    found = re.search(r"^Example: `(.*)`\.$", inspect.getdoc(METHODS[name]), re.MULTILINE)
    if found is None:
        assert re.search(">>>|see `(dpframe|[.]dp)[.]", inspect.getdoc(METHODS[name]))
        return
    rows = {"rider": [*range(20)], "zone": ["A", "B"] * 10, "day": [1, 2] * 10}
    df = pd.DataFrame({**rows, "fare": [9.5] * 20, "tip": [1.5] * 20})
    facts = {
        "keys": {"zone": ["A", "B"], "day": [1, 2]},
        "bounds": {"fare": (0, 50), "tip": (0, 9)},
    }
    df.dp.declare(privacy_unit="rider", max_rows=3, **facts)
    names = {"df": df, "dpf": dpf, "released": df.dp.count("zone", epsilon=1)}
    assert eval(found[1], names) is not None  # noqa: S307  # it is one of ours
