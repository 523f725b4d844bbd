"""What a declaration does to a frame, in exact private numbers: a second door, without protection.

Nothing is charged and no noise is added. What comes out is marked, and refused wherever a released
frame is wanted.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dpframe.certificates.diagnosis import Diagnosis
from dpframe.columns.identity import silent
from dpframe.context import Context, at_the_door
from dpframe.declaration.facts import Declaration
from dpframe.engines import Engine, Frame, engine_for
from dpframe.engines.base import UNREAD
from dpframe.engines.declared import SINGLE, check_matches, check_queries, declaration_of
from dpframe.engines.steps import LabelTrace, RowTrace
from dpframe.errors import STOPS, DPFrameError, QueryError
from dpframe.frozen import frozen
from dpframe.operations.discover import label_task
from dpframe.operations.lines import (
    Line,
    Words,
    lines_of_chain,
    lines_of_output,
    lines_of_rows,
    lines_of_table,
    rows_there,
    share_of,
)
from dpframe.operations.planning import in_part
from dpframe.operations.suggest import query_of_search
from dpframe.plan.tables import Table, table_of
from dpframe.public import public_call
from dpframe.queries import of_columns
from dpframe.queries.query import Query, Request, Search
from dpframe.queries.searches import BoundSearch, CapSearch, Discovery
from dpframe.queries.tasks import Axis, Cells

_Result = TypeVar("_Result")


@public_call
def diagnose(
    frame: Frame, queries: Request | None = None, *, groups: bool = False, part: object = None
) -> Any:
    """Show what a release would leave out and change: exact numbers, not for publication.

    It follows a release up to where noise would be added. Each row is counted at the first line
    that drops it, or as counted: in every part, these lines add up to all rows. It charges nothing
    and adds no noise: whoever may not see the private frame may not see this. Caps and bounds
    chosen by it are chosen by the data.

    Parameters
    ----------
    frame
        The private frame, declared. For Parquet files and Dask collections, the needed columns are
        read into memory.
    queries
        A query such as `dpf.count(by="zone")`, or a dict of them by name; or a search by
        `dpf.discover`, `dpf.suggest_caps` or `dpf.suggest_bounds`. `None`: everything that is
        declared, each grouping column by itself.
    groups
        Whether to show groups in place of steps: one row per declared group, with `rows` and
        `units` before caps, `counted` (units, for a query of units), `lost` to caps, and
        `share_lost`, its part of the group. For margins, a dict of such frames, by columns.
    part
        The part of the data to look at, if the ledger has a budget for every part; a line counts
        the rows of others. `None`: all parts.

    Returns
    -------
    DataFrame or dict of DataFrame
        One row per line, indexed by `part` and `step`: the rows, and then each output that has
        rules of its own. `rows`: how many the line is about; `share`: of all rows, or of those
        counted, for the lines "of these"; `left` and `units_left`: rows and units still there after
        it; `hint`, which says of text files what of them was not read. A dict for a dict. Caps drop
        rows at random: it is one such choice. The frame, and most of what pandas makes of it, is
        marked in `attrs`, and refused by everything that takes a released or a private frame.

    Raises
    ------
    DPFrameError
        If the frame cannot be read, or has too many rows to be in memory at once.
    DeclarationError, QueryError, UnknownColumnError
        As `release`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A", "Z"], "rider": [1, 1, 1, 2]})
    >>> _ = trips.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit="rider", max_rows=2)
    >>> trips.dp.diagnose(dpf.count(by="zone"))[["rows", "left"]]
    Not for publication: exact numbers of the private frame, without noise. Nothing was charged.
                                        rows  left
    part step
    rows in all                            4     4
         no unit (rider)                   0     4
         zone is missing                   0     4
         zone is not a declared key        1     3
         beyond max_rows=2                 1     2
         counted                           2     2
    """
    if not isinstance(groups, bool):
        raise QueryError.about("groups", "must be True or False", groups)
    if groups and (queries is None or isinstance(queries, Search)):
        reason = "groups=True needs a query that says which:"
        remedy = ".dp.diagnose(dpf.count(by=...), groups=True)."
        raise QueryError(f"{reason} {remedy}", parameter="query")
    context = at_the_door(looking=True)
    engine = engine_for(frame)
    types = engine.manifest(frame).types
    declaration = declaration_of(frame, context).in_part(part).with_truths(types)
    query: Any = None if queries is None else in_part(declaration, queries)
    looks = _looks(frame, declaration, query, groups=groups)
    labels = list(dict.fromkeys(label for look in looks.values() for label in look.columns))
    engine.check(frame, labels)
    manifest = engine.manifest(frame)  # files were listed again
    for name, look in looks.items():
        for claims, axes in look.claims:
            check_matches(manifest, declaration, {name: claims}, {name: axes})
    shown = _read(engine, frame, labels, looks, context)
    return shown if isinstance(queries, Mapping) else shown[SINGLE]


@frozen
class _Look:
    """What is read, what is made of it, and what is asked of which groups."""

    columns: tuple[Hashable, ...]
    make: Callable[[pd.DataFrame, Context], Any]
    claims: Sequence[tuple[Any, Sequence[Axis]]]


def _looks(
    frame: Frame, declaration: Declaration, request: Any, *, groups: bool
) -> Mapping[Hashable, _Look]:
    """Say what to read for each query, from public facts alone."""
    match request:
        case None:
            return {SINGLE: _everything(frame, declaration)}
        case Discovery():
            engine_for(frame).check(frame, request.labels)
            return {SINGLE: _labels(request, declaration)}
        case CapSearch() | BoundSearch():
            engine = engine_for(frame)
            engine.check(frame, request.labels)
            check_matches(engine.manifest(frame), declaration, {SINGLE: request}, {})
            request = query_of_search(declaration, request)
    _, queries = check_queries(frame, request)
    tables = {name: table_of(query, declaration) for name, query in queries.items()}
    return {name: _of_table(table, declaration, groups) for name, table in tables.items()}


def _of_table(table: Table, declaration: Declaration, groups: bool) -> _Look:
    def make(rows: pd.DataFrame, context: Context) -> Any:
        trace = _follow_rows(rows, table, context)
        if groups:
            return _by_group(trace, table)
        return _as_frame(lines_of_table(trace, table, declaration))

    return _Look(table.columns, make, [(table.query, table.groups.axes)])


def _labels(search: Discovery, declaration: Declaration) -> _Look:
    task = label_task(declaration, search)
    beyond = {
        "max_groups": f"beyond max_groups={task.most}",
        "further rows": "further rows of a unit with its label",
    }
    words = Words(task.unit, task.where, beyond)

    def make(rows: pd.DataFrame, context: Context) -> Diagnosis:
        trace = LabelTrace(rows, task, context)
        return _as_frame(lines_of_rows(trace, words, f"labels: {trace.labels:,}"))

    return _Look(tuple(dict.fromkeys(task.columns)), make, [(search, ())])


def _everything(frame: Frame, declaration: Declaration) -> _Look:
    """Show what is declared, each grouping column by itself."""
    columns_held = engine_for(frame).columns(frame)
    labels = [label for label in declaration.columns if label in columns_held]
    keyed = [label for label in labels if declaration.column(label).keys is not None]
    bounded = [label for label in labels if declaration.column(label).bounds is not None]

    def table(query: Query) -> Table:
        asked_of: Any = in_part(declaration, query)
        return table_of(asked_of, declaration)

    tables = {f"rows by {label}": table(of_columns.count([label])) for label in keyed}
    tables = tables or {"rows": table(of_columns.count())}
    sums = [table(of_columns.sum([label])) for label in bounded]

    def make(rows: pd.DataFrame, context: Context) -> Diagnosis:
        lines: list[Line] = []
        for part, table in tables.items():
            chain = lines_of_chain(_follow_rows(rows, table, context), table, declaration)
            lines += [replace(line, part=part) for line in chain]
        for table in sums:  # caps differ with the groups
            trace, (out,) = _follow_rows(rows, table, context), table.outputs
            lines += lines_of_output(trace, out, declaration, trace.grouped)
        return _as_frame(lines)

    looked = [*tables.values(), *sums]
    columns = tuple(dict.fromkeys(label for table in looked for label in table.columns))
    return _Look(columns, make, [(table.query, table.groups.axes) for table in looked])


def _read(
    engine: Engine,
    frame: Frame,
    labels: list[Hashable],
    looks: Mapping[Hashable, _Look],
    context: Context,
) -> dict[Hashable, Any]:
    """Look at the rows; an error shows nothing that could quote private values."""

    @silent
    def quietly() -> dict[Hashable, Any]:
        with np.errstate(all="ignore"):
            rows = engine.gather(frame, labels)
            unread = rows.attrs.pop(UNREAD, "")
            shown = {name: look.make(rows, context) for name, look in looks.items()}
        for diagnosis in shown.values():
            if unread and isinstance(diagnosis, Diagnosis) and "hint" in diagnosis:
                diagnosis.loc[diagnosis.index[:1], "hint"] = unread
        return shown

    try:
        return quietly()
    except DPFrameError:
        raise
    except STOPS as stop:
        stop.__context__ = None
        raise stop from None
    except BaseException as error:  # a cell can raise anything, and an error lie about its class
        memory = issubclass(type(error), MemoryError)
    # outside of the handler, the new error has no context
    reason = "there was too little memory" if memory else "the frame could not be read"
    rule = "The cause is not shown, because it may quote private values:"
    remedy = "read the frame by itself to see it. Nothing was charged."
    raise DPFrameError(f"diagnose failed: {reason}. {rule} {remedy}")


def _follow_rows(rows: pd.DataFrame, table: Table, context: Context) -> RowTrace:
    return RowTrace(rows, table.task(sorted(table.terms)), context)


def _as_frame(lines: Iterable[Line]) -> Diagnosis:
    lines = list(lines)
    pairs = [(line.part, line.step) for line in lines]
    index = pd.MultiIndex.from_tuples(pairs, names=["part", "step"])
    columns = {
        "rows": np.array([line.rows for line in lines], np.int64),
        "share": [line.rows / line.of if line.of else 0.0 for line in lines],
        "left": np.array([line.left for line in lines], np.int64),
        "units_left": pd.array([line.units_left for line in lines], "Int64"),
        "hint": [line.hint for line in lines],
    }
    return Diagnosis.of(pd.DataFrame(columns, index=index))


def _by_group(trace: RowTrace, table: Table) -> Diagnosis | dict[tuple[Hashable, ...], Diagnosis]:
    """One row per declared group; of margins, by columns."""
    if not table.query.margins:
        return _groups(trace, table.query, table.cells)
    return {
        columns: _groups(trace, part, table.cells.by_columns(columns))
        for columns, part in table.query.margins.items()
    }


def _groups(trace: RowTrace, query: Query, cells: Cells) -> Diagnosis:
    rows, counted = rows_there(trace, query, cells), trace.rows_by_cell(trace.kept, cells)
    columns = {
        "rows": trace.rows_by_cell(trace.grouped, cells),
        "units": trace.units_by_cell(trace.grouped, cells),
        "counted": counted,
        "lost": rows - counted,
        "share_lost": share_of(rows - counted, rows),
    }
    return Diagnosis.of(pd.DataFrame(columns, index=cells.index))
