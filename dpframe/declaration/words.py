"""What is declared about a frame in words, for a terminal; all of it is public."""

from collections.abc import Iterable, Sequence
from typing import Any

from dpframe.arguments import visible
from dpframe.html import FACTS, declared_columns, declared_facts

_MOST_COLUMNS = 50


def declaration_text(declaration: Any, most: int = _MOST_COLUMNS) -> str:
    """Return what is declared about a frame as lines of text.

    Parameters
    ----------
    declaration
        A `dpframe.declaration.facts.Declaration`.
    most
        How many columns are shown.
    """
    facts = [
        (name, ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in declared_facts(declaration)
    ]
    columns = [list(map(str, row)) for row in declared_columns(declaration)]
    rows = [list(FACTS), *columns[:most]] if columns else []
    left_out = [f"and {len(columns) - most:,} more"] if len(columns) > most else []
    lines = [*_aligned(facts), *_aligned(rows), *left_out]
    return "\n".join(f"  {visible(line)}" for line in lines)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Put the cells of a table under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
