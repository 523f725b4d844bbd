"""One name, one meaning: no two public classes or types of the package share a name."""

import ast
from collections import Counter
from pathlib import Path

import dpframe


def _public_types(module: ast.Module) -> list[str]:
    """Names of the classes and type aliases that a module makes at its top."""
    names = [node.name for node in module.body if isinstance(node, ast.ClassDef)]
    for node in module.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names += [node.target.id] if ast.unparse(node.annotation) == "TypeAlias" else []
    return [name for name in names if not name.startswith("_")]


def test_types_have_names_of_their_own():
    files = Path(dpframe.__file__).parent.rglob("*.py")
    names = Counter(name for file in files for name in _public_types(ast.parse(file.read_text())))
    assert len(names) > 50
    assert [name for name, times in names.items() if times > 1] == []
