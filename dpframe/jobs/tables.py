"""The tables of a job: one of a query, or several of a query for tables that agree."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpframe.queries.kinds import Query

_ALL = "all"
_NOT_IN_FILES = frozenset('/\\:*?"<>|.')


def table_names(name: str, query: Query) -> dict[str, str | None]:
    """Return what the tables of a query are called, and what `{table}` stands for in their paths.

    The table of all rows is `all`, with as many `_` behind it as keep it apart from the others.

    Examples
    --------
    >>> import dpframe as dpf
    >>> table_names("survey", dpf.margins(["sex", "age"], ways=1))
    {'survey: all': 'all', 'survey: sex': 'sex', 'survey: age': 'age'}
    >>> table_names("by_sex", dpf.count("sex"))
    {'by_sex': None}
    """
    return dict(_names(name, query))


def called_alike(queries: Mapping[str, Query]) -> list[tuple[str, str]]:
    """Return names that several tables have, each with a query that asks for one of them."""
    asked = [(table, name) for name, query in queries.items() for table, _ in _names(name, query)]
    often = Counter(table for table, _ in asked)
    return [(table, name) for table, name in reversed(asked) if often[table] > 1]


def by_table(released: Mapping[str, Any], queries: Mapping[str, Query]) -> dict[str, pd.DataFrame]:
    """Return released frames by the names of their tables."""
    found: dict[str, pd.DataFrame] = {}
    for name, frame in released.items():
        frames = frame.values() if queries[name].margins else [frame]
        found |= dict(zip(table_names(name, queries[name]), frames, strict=True))
    return found


def _names(name: str, query: Query) -> list[tuple[str, str | None]]:
    """List the names of tables, and what `{table}` stands for."""
    if not query.margins:
        return [(name, None)]
    words = [", ".join(map(str, columns)) for columns in query.margins]
    files = [_in_path("-".join(map(str, columns))) for columns in query.margins]
    total = _ALL
    while total.casefold() in {text.casefold() for text in (*words, *files)}:
        total += "_"
    return [
        (f"{name}: {text or total}", file or total) for text, file in zip(words, files, strict=True)
    ]


def _in_path(text: str) -> str:
    """Replace what has a meaning of its own in a path, here or elsewhere."""
    return "".join("_" if c in _NOT_IN_FILES or not c.isprintable() else c for c in text)
