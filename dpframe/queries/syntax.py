"""Python expressions with names in backticks, as in `DataFrame.query`: parsed, never run."""

import ast
import re
from keyword import iskeyword
from typing import Literal, TypeAlias

from dpframe.errors import QueryError, a_type

ALLOWED = (
    "Allowed are columns (`with spaces` in backticks), numbers, texts, comparisons, and/or/not, "
    "'in' with a list, and arithmetic."
)

_LONGEST, _SHOWN = 10_000, 60  # characters: of a condition, and of it in an error
_DEEPEST = 100  # levels that are nested

# Longest first, so that what looks like a label within a text is none.
_TOKENS = re.compile(
    r"""
    (?P<text> '{3}(?:\\.|[^\\])*?'{3} | "{3}(?:\\.|[^\\])*?"{3}
            | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" )
    | `(?P<label>[^`]+)`
    | (?P<space>(?:\s|\#[^\n]*)+)
    """,
    re.VERBOSE | re.DOTALL,
)
_HINTS = {
    "@": "'@' names a variable: write its value into the text",
    "<>": "<> is not Python: to differ, write !=",
    r"(?<![=!<>:])=(?![=>])": "= assigns. To compare, write ==",
}
"""What is meant by what Python cannot read."""


def parse_expression(text: str) -> ast.expr:
    """Parse the text of a condition, whatever it may contain.

    Parameters
    ----------
    text
        A Python expression of at most 10,000 characters, nested at most 100 levels deep.

    Returns
    -------
    ast.expr
        Its tree. A name that needs its backticks has them; `ast.unparse` writes it as it was.

    Raises
    ------
    QueryError
        If the text is not such an expression.
    """
    _check(text)
    quoted: dict[str, str] = {}
    prefix = "label"
    while prefix in text:
        prefix += "_"

    def replace(token: re.Match[str]) -> str:
        if token["text"] is not None:
            return token[0]
        if token["space"] is not None:
            return " "
        placeholder = f"{prefix}{len(quoted)}"
        quoted[placeholder] = as_name(token["label"])
        return f" {placeholder} "

    tree = _python(_TOKENS.sub(replace, text).strip(), text)
    _check_depth(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = quoted.get(node.id, node.id)
    return tree


def unquote(name: str) -> str:
    """Return the label that a name in a tree stands for."""
    return name.strip("`")


def labels(tree: ast.expr) -> tuple[str, ...]:
    """Return the columns named, in order of appearance."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(unquote(node.id) for node in names))


Sign: TypeAlias = Literal["+", "-", "*", "/", "//", "%", "**"]

OPERATIONS: dict[type[ast.operator], Sign] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
"""Operations of arithmetic, as they are written."""


def excerpt(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _check(text: object) -> None:
    """Refuse a condition that is not a text of a reasonable size."""
    if not isinstance(text, str):
        rule = f"where must be a text, such as 'fare > 0', got {a_type(text)}:"
        remedy = "masks and functions could look at other rows."
        raise QueryError(f"{rule} {remedy}")
    if not text.strip():
        raise QueryError("where must not be empty. Without where=, all rows count.", value=text)
    if len(text) > _LONGEST:
        rule = f"where must have at most {_LONGEST} characters, got {len(text)}:"
        remedy = "add a column that holds the outcome and name that one."
        raise QueryError(f"{rule} {remedy}")


def as_name(label: str) -> str:
    """Put a label in backticks if it would not be read as the same name without."""
    plain = label.isascii() and label.isidentifier() and not iskeyword(label)
    return label if plain else f"`{label}`"


def _python(source: str, text: str) -> ast.expr:
    """Parse Python syntax; an error says what is wrong, without a traceback of the parser."""
    try:
        return ast.parse(source, mode="eval").body
    except (RecursionError, MemoryError):
        reason = "too deeply nested"
    except (SyntaxError, ValueError) as error:
        reason = getattr(error, "msg", "not text that Python can read")
    bare, shown = _TOKENS.sub(" ", text), excerpt(text)
    hint_text = next(
        (hint for sign, hint in _HINTS.items() if re.search(sign, bare)), f"{reason:.60}"
    )
    hint_text = f"where={shown!r} is not a condition: {hint_text}. {ALLOWED}"
    raise QueryError(hint_text, value=shown) from None


def _check_depth(tree: ast.expr) -> None:
    """Refuse trees so deep that recursion over them could exhaust the stack."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    rule = f"where must be nested at most {_DEEPEST} levels deep:"
    remedy = "chain conditions with 'and' and 'or', and use 'in' for many values."
    raise QueryError(f"{rule} {remedy}")
