"""Nothing is dropped silently: closed sets of classes are taken apart case by case, all of them."""

import ast
from pathlib import Path

import pytest

import dpframe

HOUSE = Path(dpframe.__file__).parent
ROOMS = ("certificates", "plan", "privacy", "strategies")
LOOPS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def filters(source):
    """Classes of the house by which comprehensions filter, with their lines.

    Whatever is of none of them is left out there without a word. A `match` that ends in
    `assert_never` is checked by mypy, which names the class that has no case.
    """
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpframe"):
            own |= {alias.asname or alias.name for alias in node.names}
    calls = {
        (call.lineno, ast.unparse(call))
        for loop in ast.walk(tree)
        if isinstance(loop, LOOPS)
        for call in ast.walk(loop)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) in ("isinstance", "type")
        and own & {name.id for part in call.args[1:] for name in ast.walk(part) if _is_name(name)}
    }
    return sorted(calls)


def _is_name(node):
    return isinstance(node, ast.Name)


@pytest.mark.parametrize("room", ROOMS)
def test_no_comprehension_keeps_one_class_and_forgets_the_others(room):
    found = {
        path.name: filters(path.read_text(encoding="utf-8")) for path in (HOUSE / room).glob("*.py")
    }
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_such_a_filter_is_found():
    source = (
        "from dpframe.privacy.sensitivity import Footprint\n"
        "from dpframe.privacy import sensitivity\n"
        "one = [part for part in parts if isinstance(part, Footprint)]\n"
        "two = any(isinstance(part, sensitivity.Sparse | int) for part in parts)\n"
        "far = [part for part in parts if isinstance(part, str)]\n"
    )
    assert [line for line, _ in filters(source)] == [3, 4]
