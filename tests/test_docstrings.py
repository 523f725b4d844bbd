"""Docstrings describe the parameters that there are: those of functions, methods and classes."""

import ast
import itertools
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "dpframe"
MODULES = sorted(PACKAGE.rglob("*.py"))
_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)
_NAMES = re.compile(r"^(?=\S)(.+)$", re.MULTILINE)
_OWNERS = {"self", "cls"}


def described(docstring):
    """Return the names that a docstring describes as parameters, in order."""
    section = _SECTION.search(docstring or "")
    lines = _NAMES.findall(section[1]) if section else []
    return [name.strip(" *") for line in lines for name in line.split(" : ")[0].split(",")]


def taken(node):
    """Return the names of the parameters of a function."""
    of = node.args
    named = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
    return {one.arg for one in named if one is not None} - _OWNERS


def fields(cls):
    """Return the names that instances of a class are made of: fields, or what `__init__` takes."""
    names = set()
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__new__"):
            names |= taken(node)
    return names


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def classes_in(trees):
    """Return all classes by name."""
    nodes = itertools.chain.from_iterable(map(ast.walk, trees))
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


@cache
def all_classes():
    return classes_in(map(tree_of, MODULES))


def with_inherited(cls, classes):
    """Return the names that instances of a class, and of those that it is made of, have."""
    bases = [base.id for base in cls.bases if isinstance(base, ast.Name)]
    return fields(cls).union(*(with_inherited(classes[b], classes) for b in bases if b in classes))


def complaints(tree, classes):
    """List what docstrings describe that is not there, and what is left out beside others."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                there, complete = taken(node), True
            case ast.ClassDef():
                there, complete = with_inherited(node, classes), False
            case _:
                continue
        names = described(ast.get_docstring(node))
        gone = [name for name in names if name not in there]
        if gone:
            yield f"{node.name} describes {', '.join(gone)}"
        left = sorted(there - {*names})
        if names and complete and left:
            yield f"{node.name} leaves out {', '.join(left)}"
        if len(names) > len({*names}):
            yield f"{node.name} describes a parameter twice"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_described_is_there(path):
    assert list(complaints(tree_of(path), all_classes())) == []


TEXT = '''    """What it is.

    Parameters
    ----------
    {}
        Something.
    """'''


@pytest.mark.parametrize(
    ("head", "names", "said"),
    [
        ("def f(a, *, b):", "a, b", []),
        ("def f(a):", "a, b", ["f describes b"]),
        ("def f(a, b):", "a", ["f leaves out b"]),
        ("class C:", "a", ["C describes a"]),
        ("class C:\n    a: int", "a", []),
    ],
)
def test_a_description_of_what_is_gone_is_found(head, names, said):
    first, *fields = head.splitlines()
    tree = ast.parse("\n".join([first, TEXT.format(names), *fields]))
    assert list(complaints(tree, classes_in([tree]))) == said
