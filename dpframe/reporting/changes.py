"""What a report shows of released tables side by side, and of the changes between two of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import pandas as pd

from dpframe.cells.verify import Shown, look
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.column_parts import ColumnPart
from dpframe.errors import QueryError
from dpframe.inference.change import change_of
from dpframe.inference.intervals import intervals_of
from dpframe.reporting.cells import MOST_ROWS, CellView, cells_of, number_text
from dpframe.reporting.tables import level_and_keys


class ChangeCell(NamedTuple):
    """How a released number changed: with an interval, in percent, and whether that holds 0."""

    change: str
    percent: str
    drowned: bool


@dataclass(frozen=True)
class SideView:
    """Tables side by side, on one scale.

    Parameters
    ----------
    names
        What the tables are called.
    level
        Of which level intervals are.
    keys, columns
        Names of the labels of rows, and of the columns.
    rows
        Labels of each row; for each column a cell of each table; and changes, if there are any.
    hidden
        How many rows are not shown.
    note
        Why there are no changes; empty where there are.
    """

    names: Sequence[str]
    level: str
    keys: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[
        tuple[Sequence[str], Sequence[Sequence[CellView]], Sequence[ChangeCell] | None]
    ] = ()
    hidden: int = 0
    note: str = ""


# the numbers of a table, and the ends of their intervals, by the keys of rows
_Table = tuple[pd.DataFrame, pd.DataFrame]


def _side_by_side(
    names: Sequence[str], level: float, tables: Sequence[_Table], like: Shown, index: pd.Index
) -> SideView:
    """Put the rows of an index in several tables side by side, whose columns are alike."""
    shown = index[: MOST_ROWS // len(tables)]
    columns = []
    for place, part in enumerate(like.certificate.columns):
        pairs = [_column(*table, place, shown) for table in tables]
        values = pd.concat([value for value, _ in pairs], ignore_index=True)
        ends = pd.concat([end for _, end in pairs], ignore_index=True)
        cells = cells_of(values, ends, part.origin, None)
        columns.append([cells[at :: len(shown)] for at in range(len(shown))])
    labels = [map(str, shown.get_level_values(at)) for at in range(shown.nlevels)]
    return SideView(
        names,
        f"{100 * level:g} %",
        ["" if key is None else str(key) for key in shown.names],
        [str(label) for label in like.frame.columns],
        [
            (*row, None)
            for row in zip(zip(*labels, strict=True), zip(*columns, strict=True), strict=True)
        ],
        len(index) - len(shown),
    )


def compare_tables(
    names: tuple[str, str], before: pd.DataFrame, now: pd.DataFrame, level: float
) -> SideView:
    """Gather what is shown of the changes between two tables that were verified."""
    ours, theirs = look(now), look(before)
    try:
        changes = change_of(ours, theirs, level, percent=False)
    except QueryError as error:
        return SideView(names, "", note=str(error))
    try:
        percents = change_of(ours, theirs, level, percent=True)
    except QueryError:  # points in time have none
        percents = pd.DataFrame(index=changes.index, columns=changes.columns, dtype=float)
    parts = ours.certificate.columns
    index = changes.index[:: len(parts)]
    index = index if len(parts) == 1 else cast(pd.MultiIndex, index).droplevel(-1)
    tables = [(table.table, _intervals(table, level)) for table in (theirs, ours)]
    view = _side_by_side(names, level, tables, ours, index)
    by_column = [
        _changes(changes.iloc[place :: len(parts)], percents.iloc[place :: len(parts)], part)
        for place, part in enumerate(parts)
    ]
    rows = zip(view.rows, zip(*by_column, strict=True), strict=False)  # not all are shown
    return replace(view, rows=[(*row[:2], of_row) for row, of_row in rows])


def put_side_by_side(
    carried: Certificate, tables: Sequence[Shown], level: float
) -> SideView | None:
    """Gather releases that were put together by key, on one scale; `None` if they are not alike.

    Parameters
    ----------
    carried
        The certificate of the whole table.
    tables
        The table of each release.
    level
        Confidence level of intervals.
    """
    keyed = level_and_keys(carried)
    frames = [table.table for table in tables]
    first, width = frames[0], len(tables[0].certificate.columns)
    if keyed is None or first.index.nlevels == 1:
        return None
    key = keyed[0]
    alike = (len(frame) and frame.shape[1] == width for frame in frames)
    if not all(alike) or any(key not in frame.index.names for frame in frames):
        return None
    try:
        ends = [_intervals(table, level).droplevel(key) for table in tables]
    except QueryError:
        return None
    names = [str(frame.index.get_level_values(key)[0]) for frame in frames]
    frames = [frame.droplevel(key) for frame in frames]
    index = frames[0].index
    for frame in frames[1:]:
        index = index.append(frame.index.difference(index, sort=False))
    return _side_by_side(names, level, list(zip(frames, ends, strict=True)), tables[0], index)


def _intervals(shown: Shown, level: float) -> pd.DataFrame:
    """Return intervals by the keys of their rows."""
    return intervals_of(shown, level).set_axis(shown.table.index, axis=0)


def _column(
    released: pd.DataFrame, ends: pd.DataFrame, place: int, rows: pd.Index
) -> tuple[pd.Series, pd.DataFrame]:
    """Return the numbers of some rows and the ends of their intervals, missing where none are."""
    values = released.iloc[:, place]
    alike = rows.isin(released.index).all()
    values = values if alike or values.dtype.kind != "i" else values.astype("Int64")
    bars = ends.iloc[:, 2 * place : 2 * place + 2].set_axis(["low", "high"], axis=1)
    return values.reindex(rows), bars.reindex(rows)


def _changes(changes: pd.DataFrame, percents: pd.DataFrame, part: ColumnPart) -> list[ChangeCell]:
    """Show the changes of a column."""
    unit = "" if part.times is None else " s"
    texts = _texts(changes, unit, is_whole=part.integer), _texts(percents, " %")
    drowned = (changes["low"] <= 0) & (changes["high"] >= 0)
    return list(map(ChangeCell, *texts, drowned))


def _texts(changes: pd.DataFrame, unit: str, *, is_whole: bool = False) -> list[str]:
    """Show changes with their intervals; nothing where one is missing."""
    texts = []
    for estimate, low, high in changes[["estimate", "low", "high"]].itertuples(index=False):
        width = (high - low) / 2 if math.isfinite(high - low) else estimate - low
        ends = (int(end) if is_whole and end.is_integer() else end for end in (estimate, low, high))
        value, first, last = (number_text(end, width) for end in ends)
        texts.append(f"{value}{unit} ({first} to {last})" if value else "")
    return texts
