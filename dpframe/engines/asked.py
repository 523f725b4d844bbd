"""What is asked of a private frame of any kind, and the engine that can read it."""

from collections.abc import Hashable, Mapping
from typing import Any

from dpframe.arguments import is_unicode
from dpframe.engines import Engine, Frame, engine_for
from dpframe.errors import QueryError
from dpframe.queries.kinds import Query
from dpframe.queries.quantiles import measured
from dpframe.queries.reading import check_query

SINGLE = None
"""The name of a query that was given by itself."""


def checked(
    frame: Frame, queries: Query | Mapping[str, Query]
) -> tuple[Engine, Mapping[Hashable, Query]]:
    """Check what is asked of a frame, whatever it may cost.

    Returns
    -------
    engine, queries
        The engine that can read the frame, and what is measured for each query, by name.
    """
    engine = engine_for(frame)
    asked = _named(queries)
    # a misspelled label would otherwise be taken for one without keys or bounds
    engine.check(frame, [label for query in asked.values() for label in query.labels])
    return engine, {name: measured(query) for name, query in asked.items()}


def _named(queries: Query | Mapping[str, Query]) -> Mapping[Hashable, Query]:
    """Give a single query the name `None`."""
    named: Mapping[Any, Query] = queries if isinstance(queries, Mapping) else {SINGLE: queries}
    if not named:
        raise QueryError("there is nothing to release: the dict of queries is empty.")
    for name, query in named.items():
        check_query(query, "" if name is SINGLE else f" under {name!r}")
        if not is_unicode(name):
            raise QueryError(f"{name!a} must be a valid Unicode text to name a query.")
    return named
