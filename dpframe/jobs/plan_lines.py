"""On which lines of a TOML text its keys stand, in one pass; and what is too much to be read."""

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

_MOST_KEYS = 10_000
_MOST_PARTS = 20  # of a key such as a.b.c: the time to read it grows with their square
_LONGEST_WORD = 500  # a number, or a key without quotes
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\(?:.|\Z)|"{1,2}(?!"))*+(?:"{3,5}|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+"
    r"|[\n\[\]{}=.,]"
    r"|[^\s\"'#\[\]{}=.,]++",
    re.DOTALL,
)
"""A text, a comment, a mark or a word. A text that is never closed ends with its line, or all."""

_OPENING, _CLOSING, _MARKS = frozenset("[{"), frozenset("]}"), frozenset("\n[]{}=,")


class _Statement(NamedTuple):
    """A line with a key or a header, the header that it stands under, and what it says."""

    line: int
    under: tuple[str, ...]
    table: dict[str, Any]


def too_much(text: str) -> str | None:
    """Say what in a text would take a reader of TOML minutes, whether it is TOML or not.

    Examples
    --------
    >>> too_much("a.b = [1.5, 'x.y']") is None, too_much("x = " + "9" * 501)
    (True, 'line 1: a number, or a key without quotes, has at most 500 characters.')
    """
    keys, dots, line = 0, 0, 1
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if piece in _MARKS:
            keys += piece == "="
            dots = 0
        elif piece == ".":
            dots += 1
        elif len(piece) > _LONGEST_WORD and piece[0] not in "\"'#":
            return (
                f"line {line}: a number, or a key without quotes, has at most {_LONGEST_WORD} "
                "characters."
            )
        if dots >= _MOST_PARTS:
            return f"line {line}: a key has at most {_MOST_PARTS} parts with dots between them."
        if keys > _MOST_KEYS:
            return f"line {line}: a plan has at most {_MOST_KEYS:,} keys."
        line += piece.count("\n")
    return None


def line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """Find the number of the first line on which a key of a TOML text is given, if it is."""
    for statement in _statements(text):
        first = len(statement.under)
        if statement.under[: len(keys)] == keys or (
            keys[:first] == statement.under and holds(statement.table, keys[first:])
        ):
            return statement.line
    return None


def holds(table: object, keys: tuple[str, ...]) -> bool:
    """Whether a table has a key within its tables."""
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            return False
        table = table[key]
    return True


@lru_cache(maxsize=1)  # an error looks for its key, and for the tables around it
def _statements(text: str) -> list[_Statement]:
    """Read a TOML text statement by statement."""
    found: list[_Statement] = []
    under: tuple[str, ...] = ()
    for line, alone in _apart(text):
        table = tomllib.loads(alone)
        if alone.startswith("["):
            under, table = _path(table), {}
        found.append(_Statement(line, under, table))
    return found


def _apart(text: str) -> Iterator[tuple[int, str]]:
    """Take a TOML text apart into statements, each with the number of its first line."""
    line, depth, start = 1, 0, None
    for match in _TOKEN.finditer(text):
        piece = match[0]
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if piece == "\n" and depth == 0 and start is not None:
            yield start[1], text[start[0] : match.start()]
            start = None
        elif start is None and piece[0] not in "\n#":
            start = match.start(), line
        line += piece.count("\n")
    if start is not None:
        yield start[1], text[start[0] :]


def _path(table: Any) -> tuple[str, ...]:
    """Return the keys that lead to the table of a header; an array of tables has one of them."""
    keys: tuple[str, ...] = ()
    while table:
        if isinstance(table, list):
            table = table[0]
            continue
        ((key, table),) = table.items()
        keys = (*keys, key)
    return keys
