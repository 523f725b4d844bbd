"""What is declared about a private frame of any kind, as its engine knows the frame."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from dpframe.arguments import is_unicode
from dpframe.cells.record import ATTRIBUTE
from dpframe.context import Context
from dpframe.declaration.facts import Declaration, is_copied, is_of_another_test, kept_declaration
from dpframe.engines import Engine, Frame, engine_for
from dpframe.errors import DeclarationError, QueryError, of_query
from dpframe.ledger.log import SourceFacts
from dpframe.provenance import is_made_up, is_private
from dpframe.queries.query import Query, Request
from dpframe.queries.reading import check_query
from dpframe.queries.tasks import Axis
from dpframe.sources.manifest import Manifest
from dpframe.sources.match import check_match

SINGLE = None
"""The name of a query that was given by itself."""


def check_queries(frame: Frame, queries: Request) -> tuple[Engine, Mapping[Hashable, Query]]:
    """Check what is asked of a frame, whatever it may cost.

    Returns
    -------
    engine, queries
        The engine that can read the frame, and what is measured for each query, by name.
    """
    engine = engine_for(frame)
    named: Mapping[Any, object] = queries if isinstance(queries, Mapping) else {SINGLE: queries}
    if not named:
        way_out = "Write queries={name: dpf.count(...)}."
        raise QueryError.about("queries", "must be one query or more", queries, way_out)
    queried: dict[Hashable, Query] = {}
    for name, query in named.items():
        if not is_unicode(name):
            text = f"queries must be named by valid Unicode texts, got {name!a}."
            raise QueryError(text, parameter="queries", label=name)
        with of_query(name):
            queried[name] = check_query(query, name)
    _check_labels(engine, frame, queried)
    return engine, {name: query.to_measure for name, query in queried.items()}


def _check_labels(engine: Engine, frame: Frame, queries: Mapping[Hashable, Query]) -> None:
    """Refuse a misspelled label, which would be taken for one without keys or bounds."""
    labels = [label for query in queries.values() for label in query.labels]
    try:
        # at once: a frame may have as many columns as queries
        engine.check(frame, labels)
    except QueryError:
        for name, query in queries.items():
            with of_query(name):
                engine.check(frame, query.labels)
        raise


def check_matches(
    manifest: Manifest,
    declaration: Declaration,
    queries: Mapping[Any, Any],
    axes: Mapping[Any, Iterable[Axis]],
) -> SourceFacts:
    """Check that arguments can match values, and units and parts are named as in the ledger.

    Parameters
    ----------
    manifest, declaration
        What is public about the source, and what was declared.
    queries
        Queries, or what is looked for, by name.
    axes
        The groups that are planned for each.

    Returns
    -------
    SourceFacts
        What a ledger keeps of the source.
    """
    source = manifest.source(declaration)
    if declaration.ledger is not None:
        declaration.ledger.check_source(source)
    for name, query in queries.items():
        with of_query(name):
            check_match(manifest.types.get, declaration, query, axes.get(name, ()))
    return source


def check_private(frame: Frame, context: Context) -> None:
    """Check that a frame was not released, and is no diagnosis.

    Raises
    ------
    DeclarationError
        If it carries a certificate, the mark of a diagnosis or that of made-up rows outside of
        tests, or no engine can read it.
    """
    attrs = engine_for(frame).attrs(frame)
    if is_private(attrs):
        raise DeclarationError(
            "this frame is a diagnosis, or was made of one: exact numbers about a private frame. "
            "Declare and release the private frame itself."
        )
    if is_made_up(attrs) and not context.is_test:
        raise DeclarationError(
            "the rows of this frame are made up, or some are: a release would look real. Declare "
            "and release it inside a testing block, such as dpframe.testing.seeded_noise(1)."
        )
    if ATTRIBUTE in attrs:
        raise DeclarationError(
            "this frame carries a certificate: it was released by dpframe, no row is private. "
            "Work on it with .dp.interval, .dp.combine and other calls, at no cost. If "
            f"it is private and got that in a join, del frame.attrs[{ATTRIBUTE!r}], and declare it."
        )


def declaration_of(frame: Frame, context: Context) -> Declaration:
    """Return the declaration of a frame, an empty one where nothing was declared.

    Raises
    ------
    DeclarationError
        If the frame was released, or derived from a declared one, or no engine can read it.
    """
    check_private(frame, context)
    if is_of_another_test(frame, context):
        text = "this frame was declared inside a testing block, and is used outside of it:"
        raise DeclarationError(f"{text} declare it here. .dp.declare(...)")
    declaration = kept_declaration(frame)
    if declaration is None and (is_copied(frame) or engine_for(frame).is_derived(frame)):
        raise DeclarationError(
            "this frame was derived from a declared frame (a filter, a copy, a merge, a file), and "
            "its rows may differ. Query the declared frame, with where='...' for some rows; or "
            "declare this one anew: .dp.declare(..., ledger=...), with the first one's ledger to "
            "share its budget."
        )
    return Declaration() if declaration is None else declaration
