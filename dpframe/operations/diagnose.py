"""What a declaration does to a frame, in exact private numbers: a second door, without protection.

Nothing is charged and no noise is added. What comes out is marked, and refused wherever a released
frame is wanted.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.calls import with_keywords
from dpframe.certificates.diagnosis import Diagnosis
from dpframe.columns import values
from dpframe.columns.suppress_warnings import silent
from dpframe.columns.values import COMPLEX, contain_errors
from dpframe.declaration.checks import Bounds
from dpframe.declaration.facts import Declaration
from dpframe.engines import Engine, Frame, engine_for
from dpframe.engines.declared import SINGLE, check_matches, check_queries, declaration_of
from dpframe.engines.steps import RowTrace, Step
from dpframe.errors import STOPS, DPFrameError, QueryError
from dpframe.operations.release import in_part
from dpframe.plan.columns import OutputColumn
from dpframe.plan.tables import Table, table_of
from dpframe.queries import counts, sums_and_means
from dpframe.queries.grid import Grid
from dpframe.queries.query import Query
from dpframe.queries.tasks import Axis, BinAxis, Cells, RowWeights
from dpframe.queries.where import Condition
from dpframe.steps.matching import constants_compared, may_match

_MOST_TEXT = 40

_KINDS: tuple[tuple[tuple[type, ...], str, str], ...] = (  # types, in words, what they can equal
    ((bool, np.bool_), "booleans", "number"),
    ((int, np.integer), "integers", "number"),
    ((float, np.floating, Decimal, Fraction, *COMPLEX), "numbers", "number"),
    ((str,), "texts", "text"),
    ((datetime, np.datetime64), "points in time", "time"),
    ((date,), "dates", "date"),
    ((timedelta, np.timedelta64), "durations", "duration"),
    ((pd.Period,), "periods", "period"),
)


def kinds_of(items: Sequence[object]) -> tuple[str, set[str]]:
    """Say of what kinds some objects are, and return the classes that can be equal."""
    kinds = dict.fromkeys(map(_kind, items))
    return " and ".join(words for words, _ in kinds), {found for _, found in kinds}


def _kind(item: object) -> tuple[str, str]:
    kind = type(item)  # an object may lie about its class
    for types, words, found in _KINDS:
        if issubclass(kind, types):
            zoned = found == "time" and getattr(item, "tzinfo", None) is not None
            return (f"{words} with a time zone", "zoned time") if zoned else (words, found)
    return f"objects of type {kind.__name__}", kind.__name__


def in_short(value: object) -> str:
    """Show a private value on one line."""
    text: str = contain_errors(repr, value, otherwise="?")
    return visible(text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "...")


def where_hint(
    condition: Condition | None,
    before: np.ndarray,
    after: np.ndarray,
    column: Callable[[Hashable], pd.Series],
) -> str:
    """Say why no row is left by a condition, where some were.

    Parameters
    ----------
    condition
        The condition.
    before, after
        Masks of the rows that were left before it, and after it.
    column
        Returns the values of a column.
    """
    if condition is None or after.any() or not before.any():
        return ""
    for label, constant in constants_compared(condition):
        held = _sample(column(label), before)
        if len(held) and not may_match(held, constant):
            kind = "a text" if isinstance(constant, str) else "a number"
            written = f"{constant:.6g}" if kind == "a number" else in_short(constant)
            return (
                f"no row satisfies it: {written} is {kind}, the column {label} holds "
                f"{kinds_of(values.objects(held).tolist())[0]}, and these are not compared"
            )
    return "no row satisfies it"


_MOST_OFTEN = 3
_SAMPLE = 1000  # values of a column that say of what kind they are


def not_found(kind: str, axis: Axis | None) -> str:
    """Say what keys are that are not declared, or values that are not there."""
    binned = isinstance(axis, BinAxis)
    match kind:
        case "missing key" | "missing value":
            return "missing"
        case "moved key":
            return "below or above all bins" if binned else "missing, or not a declared key"
    return "in no bin" if binned else "not a declared key"


def key_hint(found: RowTrace, step: Step) -> str:
    """Say which keys are not declared, and as what they count if they do."""
    if step.kind == "missing key" or step.axis is None:
        return ""
    seen = _seen_instead(found, step, step.axis) if step.rows.any() else ""
    if step.kind != "moved key":
        return seen
    counted = f"counted {_instead(step.axis)}"
    return f"{counted}; {seen}" if seen else counted


def _instead(axis: Axis) -> str:
    """Say where rows count that have none of the keys, or are in no bin."""
    if isinstance(axis, BinAxis):
        return "in the first bin or the last"
    (key,) = axis.keys[-1:].tolist()  # 1998, not np.int64(1998)
    return f"as {in_short(key)}"


def _seen_instead(found: RowTrace, step: Step, axis: Axis) -> str:
    """Say which keys are not declared, or why no row can have one that is."""
    if not found.has_rows_on(axis):
        held, classes = _kinds_in(found.column(axis.column), step.rows)
        wanted, known = kinds_of(_keys(axis))
        if classes and not classes & known:
            what = "bins are of" if isinstance(axis, BinAxis) else "keys are"
            return f"{what} {wanted}, the column holds {held}: no row can match"
    often = found.most_often(axis.column, step.rows, _MOST_OFTEN)
    listed = ", ".join(f"{in_short(value)} ({rows:,})" for value, rows in often)
    return f"most often {listed}" if listed else ""


def _sample(column: pd.Series, rows: np.ndarray) -> pd.Series:
    """Take some values of a column in some rows, and none that is missing."""
    some = values.dense(column).iloc[np.flatnonzero(rows)[:_SAMPLE]]
    return some[~values.missing(some)]


def _kinds_in(column: pd.Series, rows: np.ndarray) -> tuple[str, set[str]]:
    """Say of what kinds the values of a column are, and which classes these are."""
    return kinds_of(values.objects(_sample(column, rows)).tolist())


def _keys(axis: Axis) -> list[object]:
    keys = axis.keys.left if isinstance(axis, BinAxis) else axis.keys
    listed: list[object] = keys[:_SAMPLE].astype(object).tolist()
    return listed


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a diagnosis: how many rows it is about, of how many, and what is left then."""

    part: str
    step: str
    rows: int
    of: int
    left: int
    units_left: int | None = None
    hint: str = ""


@with_keywords
def diagnose(
    frame: Frame,
    queries: Query | Mapping[str, Query] | None = None,
    *,
    groups: bool = False,
    part: object = None,
) -> Any:
    """Show what a release would leave out and change: exact numbers, not for publication.

    It follows a release up to where noise would be added, and counts the rows left out at every
    step. It charges nothing and adds no noise: whoever may not see the private frame may not see
    this. Caps and bounds chosen by it are chosen by the data.

    Parameters
    ----------
    frame
        The private frame, declared. For Parquet files and Dask collections, the needed columns are
        read into memory.
    queries
        A query such as `dpf.count(by="zone")`, or a dict of them by name. `None`: everything that
        is declared, each grouping column by itself.
    groups
        Whether to show groups in place of steps: one row per declared group, with `rows` and
        `units` before caps, `counted` (units, for a query of units), `lost` to caps, and
        `share_lost`, its part of the group. For margins, a dict of such frames, by columns.
    part
        The part of the data to look at, if the ledger has a budget for every part; the step `where`
        leaves out others. `None`: all parts.

    Returns
    -------
    DataFrame or dict of DataFrame
        One row per step, indexed by `part` and `step`. `rows`: how many the step leaves out or
        changes; `share`: of all rows, or of those counted, for values; `left` and `units_left`:
        rows and units still there after it; `hint`. A dict for a dict. Caps drop rows at random: it
        is one such choice. The frame, and most of what pandas makes of it, is marked in `attrs`,
        and refused by everything that takes a released or a private frame.

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
    declaration = declaration_of(frame).in_part(part)
    if queries is None:
        return _overview(frame, declaration, groups=groups)
    engine, asked = check_queries(frame, in_part(declaration, queries))
    tables = {name: table_of(query, declaration) for name, query in asked.items()}

    def look(rows: pd.DataFrame) -> dict[Hashable, Any]:
        return {
            name: _by_group(_follow_rows(rows, table), table)
            if groups
            else _by_step(_follow_rows(rows, table), table, declaration)
            for name, table in tables.items()
        }

    found = _look_at_rows(engine, frame, declaration, list(tables.values()), look)
    return found if isinstance(queries, Mapping) else found[SINGLE]


def _overview(frame: Frame, declaration: Declaration, *, groups: bool) -> Diagnosis:
    """Show what is declared, each grouping column by itself."""
    if groups:
        why = "groups=True needs a query that says which:"
        way = ".dp.diagnose(dpf.count(by=...), groups=True)."
        raise QueryError(f"{why} {way}", parameter="query")
    engine = engine_for(frame)
    labels = [label for label in declaration.columns if label in engine.columns(frame)]
    keyed = [label for label in labels if declaration.column(label).keys is not None]
    bounded = [label for label in labels if declaration.column(label).bounds is not None]
    everything = sums_and_means.sum(bounded) if bounded else counts.count()

    def table(query: Query) -> Table:
        asked: Any = in_part(declaration, query)
        return table_of(asked, declaration)

    whole = table(everything)
    tables = {label: table(counts.count([label])) for label in keyed}
    before = 1 + bool(whole.unit) + (whole.where is not None)  # lines that do not differ

    def look(rows: pd.DataFrame) -> Diagnosis:
        found = _follow_rows(rows, whole)
        lines = list(_lines_of_rows(found, whole, declaration))
        lines = lines[:before] if tables else lines
        for label, table in tables.items():
            own = list(_lines_of_rows(_follow_rows(rows, table), table, declaration))
            lines += [replace(line, part=f"rows by {label}") for line in own[before:]]
        for out in whole.outputs:  # caps differ with the groups
            lines += _lines_of_source(found, out, declaration, found.grouped)
        return _as_frame(lines)

    return _look_at_rows(engine, frame, declaration, [whole, *tables.values()], look)


def _look_at_rows(
    engine: Engine,
    frame: Frame,
    declaration: Declaration,
    tables: Sequence[Table],
    look: Callable[[pd.DataFrame], _Result],
) -> _Result:
    """Look at the rows; an error shows nothing that could quote private values."""
    labels = list(dict.fromkeys(label for table in tables for label in table.columns))
    engine.check(frame, labels)
    manifest = engine.manifest(frame)
    for table in tables:
        asked, axes = {SINGLE: table.query}, {SINGLE: table.groups.axes}
        check_matches(manifest, declaration, asked, axes)

    @silent
    def quietly() -> _Result:
        with np.errstate(all="ignore"):
            return look(engine.gather(frame, labels))

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
    why = f"diagnose failed: {reason}. The cause is not shown, because it may quote private values:"
    way = "read the frame by itself to see it. Nothing was charged."
    raise DPFrameError(f"{why} {way}")


def _follow_rows(rows: pd.DataFrame, table: Table) -> RowTrace:
    return RowTrace(rows, table.task(sorted(table.terms)))


def _by_step(found: RowTrace, table: Table, declaration: Declaration) -> Diagnosis:
    of_rows = _lines_of_rows(found, table, declaration)
    return _as_frame([*of_rows, *_lines_of_values(found, table, declaration)])


def _as_frame(lines: Sequence[_Line]) -> Diagnosis:
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


def _by_group(found: RowTrace, table: Table) -> Diagnosis | dict[tuple[Hashable, ...], Diagnosis]:
    """One row per declared group; of margins, by columns."""
    if not table.query.margins:
        return _groups(found, table.query, table.cells)
    axes = {axis.column: axis for axis in table.cells.axes}
    return {
        columns: _groups(found, part, Cells(tuple(map(axes.__getitem__, columns))))
        for columns, part in table.query.margins.items()
    }


def _groups(found: RowTrace, query: Query, cells: Cells) -> Diagnosis:
    there, counted = _there(found, query, cells), found.rows_by_cell(found.kept, cells)
    columns = {
        "rows": found.rows_by_cell(found.grouped, cells),
        "units": found.units_by_cell(found.grouped, cells),
        "counted": counted,
        "lost": there - counted,
        "share_lost": _share(there - counted, there),
    }
    return Diagnosis.of(pd.DataFrame(columns, index=cells.index))


def _there(found: RowTrace, query: Query, cells: Cells) -> np.ndarray:
    """Return what a query would count in every group without caps."""
    if query.counts_units:
        return found.units_by_cell(found.grouped, cells)
    return found.rows_by_cell(found.grouped, cells)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide; nothing of nothing is 0."""
    share: np.ndarray = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return share


def _lines_of_rows(found: RowTrace, table: Table, declaration: Declaration) -> Iterator[_Line]:
    """Say what becomes of the rows."""
    left = np.ones(found.rows, bool)
    yield _Line("rows", "in all", found.rows, found.rows, found.rows, found.units(left))
    for step in found.steps:
        before, left = left, left & ~step.left_out
        by_where = table.where if step.kind == "where" else None
        yield _Line(
            "rows",
            _words(step, table, declaration),
            int(np.count_nonzero(step.rows)),
            found.rows,
            int(np.count_nonzero(left)),
            found.units(left),
            key_hint(found, step) or where_hint(by_where, before, left, found.column),
        )
    counted = int(np.count_nonzero(left))
    hint = _group_hint(found, table)
    yield _Line("rows", "counted", counted, found.rows, counted, found.units(left), hint)


def _words(step: Step, table: Table, declaration: Declaration) -> str:
    """Say what leaves rows out."""
    if step.column is not None:
        return f"{step.column} is {not_found(step.kind, step.axis)}"
    match step.kind:
        case "where":
            return f"where {table.where.text}" if table.where else ""
        case "unit":
            return f"no unit ({', '.join(map(str, table.unit))})"
        case "combination":
            return "combination of keys is not wanted"
    if table.query.counts_units:
        groups, declared = table.caps.groups, declaration.caps
        by_rows = groups != declared.groups and groups == declared.rows
        named = f"max_rows={groups}" if by_rows else f"max_groups={groups}"
        further = "further rows of a unit in its group, where it counts once"
        return f"beyond {named}" if step.kind == "max_groups" else further
    cap = getattr(table.caps, step.kind.removeprefix("max_"))
    return f"beyond {step.kind}={cap}"


def _group_hint(found: RowTrace, table: Table) -> str:
    """Name the group of which caps leave out most; of margins, all rows are one."""
    cells, inner = table.cells, found.inner
    if not cells.axes or not cells.size or cells.margins or inner == cells.size:
        return ""
    there, kept = (
        by_cell.reshape(-1, inner).sum(axis=1)
        for by_cell in (_there(found, table.query, cells), found.rows_by_cell(found.kept, cells))
    )
    lost = _share(there - kept, there)
    worst = int(np.argmax(lost))
    if lost[worst] <= 0:
        return ""
    (key,) = cells.index[worst * inner : worst * inner + 1].tolist()  # 1998, not np.int64(1998)
    if inner > 1:
        *own, _ = key  # all but the bin
        key = tuple(own) if own[1:] else own[0]
    named = in_short(key)
    return f"caps leave out {lost[worst]:.1%} of group {named}, the most; see groups=True"


def _lines_of_values(found: RowTrace, table: Table, declaration: Declaration) -> Iterator[_Line]:
    """Say what becomes of the values in the rows that are counted."""
    for out in {out.source: out for out in table.outputs}.values():
        yield from _lines_of_source(found, out, declaration, found.kept)
    weights = table.outputs[0].weights
    if weights is not None:
        yield from _lines_of_weights(found, weights, declaration)
    most = table.workload.most
    if most is not None:
        true, kept = found.dropped_true(most)
        yield _Line("true values", f"beyond max_true={most}", true - kept, true, kept)


def _lines_of_source(
    found: RowTrace, out: OutputColumn, declaration: Declaration, among: np.ndarray
) -> Iterator[_Line]:
    """Say what becomes of the values of an output among some rows."""
    rows = found.satisfying(out.where, among)
    counted, left = int(np.count_nonzero(among)), int(np.count_nonzero(rows))
    part = "rows of an output" if out.grid is None else f"values of {out.column}"
    if out.where is not None:
        part = f"{part} where {out.where.text}"
        hint = where_hint(out.where, among, rows, found.column)
        yield _Line(part, "condition not met", counted - left, counted, left, hint=hint)
    sides = [(out.column, out.grid, out.bounds)]
    sides += [(out.other, out.other_grid, out.other_bounds)]
    for column, grid, bounds in sides:
        if grid is not None and bounds is not None:
            said = part if column == out.column else f"values of {column}"
            yield from _lines_of_column(
                found, (column, grid, bounds), declaration, (among, rows), said
            )


def _lines_of_column(
    found: RowTrace,
    about: tuple[Hashable, Grid, Bounds],
    declaration: Declaration,
    masks: tuple[np.ndarray, np.ndarray],
    part: str,
) -> Iterator[_Line]:
    """Say what becomes of the values of a column; masks are of all rows, and of those counted."""
    column, grid, bounds = about
    _, rows = masks
    counted, left = map(int, map(np.count_nonzero, masks))
    valued = found.look_at_values(column, grid, rows)
    replaced = declaration.column(column).missing
    hint = "" if replaced in (None, "drop") else f"counted as {replaced}"
    lower, upper = bounds
    unlike = _unlike_bounds(found, column, bounds, rows) or hint
    for step, number in (("missing", valued.missing), (_unlike(lower), valued.unusable)):
        left -= number if replaced is None else 0
        why = hint if step == "missing" else unlike
        yield _Line(part, step, number, counted, left, hint=why)
    for step, number in ((f"below {lower}", valued.below), (f"above {upper}", valued.above)):
        yield _Line(part, step, number, counted, left, hint="clipped")


def _lines_of_weights(
    found: RowTrace, weights: RowWeights, declaration: Declaration
) -> Iterator[_Line]:
    """Say what becomes of the weights of the rows that are counted, and of their total."""
    rows, (lower, upper) = found.kept, weights.bounds
    counted, part = int(np.count_nonzero(rows)), f"weights {weights.column}"
    valued = found.look_at_values(weights.column, weights.grid, rows)
    replaced = declaration.column(weights.column).missing
    hint = f"counted as {replaced if isinstance(replaced, int | float) else 0}"
    unlike = _unlike_bounds(found, weights.column, weights.bounds, rows) or hint
    added, taken = found.clipped_weight(weights, rows)
    up = f"clipped: {added:.2%} more of the weighted total"
    down = f"clipped: {taken:.2%} less of the weighted total"
    for step, number, why in (
        ("missing", valued.missing, hint),
        (_unlike(lower), valued.unusable, unlike),
        (f"below {lower}", valued.below, up),
        (f"above {upper}", valued.above, down),
    ):
        yield _Line(part, step, number, counted, counted, hint=why)


def _unlike_bounds(
    found: RowTrace, label: Hashable, bounds: Sequence[object], rows: np.ndarray
) -> str:
    """Say so where a column holds nothing that its bounds are of."""
    held, classes = _kinds_in(found.column(label), rows)
    wanted, known = kinds_of(bounds)
    if not classes or classes & known:
        return ""
    return f"bounds are of {wanted}, the column holds {held}: no value can match"


def _unlike(lower: object) -> str:
    """Say what the values of a column with such bounds are not, if they are of another kind."""
    if isinstance(lower, pd.Timedelta):
        return "not a duration"
    if not isinstance(lower, pd.Timestamp):
        return "not a number"
    zone = "out" if lower.tzinfo is None else ""
    return f"not a point in time with{zone} a time zone"
