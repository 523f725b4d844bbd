"""The tables of a job: one of a query, or several of a query for tables that agree."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from dpframe.queries.kinds import Query

__all__ = ["by_table", "table_names"]


def table_names(name: str, query: Query) -> dict[str, str | None]:
    """Return what the tables of a query are called, and what `{table}` stands for in their paths.

    Examples
    --------
    >>> import dpframe as dpf
    >>> table_names("survey", dpf.margins(["sex", "age"], ways=1))
    {'survey: all': 'all', 'survey: sex': 'sex', 'survey: age': 'age'}
    >>> table_names("by_sex", dpf.count("sex"))
    {'by_sex': None}
    """
    if not query.margins:
        return {name: None}
    return {f"{name}: {_listed(columns, ', ')}": _listed(columns, "-") for columns in query.margins}


def by_table(released: Mapping[str, Any], queries: Mapping[str, Query]) -> dict[str, pd.DataFrame]:
    """Return released frames by the names of their tables."""
    found: dict[str, pd.DataFrame] = {}
    for name, frame in released.items():
        frames = frame.values() if queries[name].margins else [frame]
        found |= dict(zip(table_names(name, queries[name]), frames, strict=True))
    return found


def _listed(columns: tuple[Hashable, ...], between: str) -> str:
    return between.join(map(str, columns)) or "all"
