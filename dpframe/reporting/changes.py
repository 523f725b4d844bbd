"""What a report shows of released tables side by side, and of the changes between two of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dpframe.cells.verify import Shown, look
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.column_parts import ColumnPart
from dpframe.errors import QueryError
from dpframe.inference.intervals import intervals_of
from dpframe.reporting.cells import MOST_ROWS, CellView, cells_of, number_text
from dpframe.reporting.tables import level_and_keys
from dpframe.steps.derive import change

_MOST_PAIRS = MOST_ROWS // 2
_PARTS = ["estimate", "low", "high"]


@dataclass(frozen=True)
class ChangeCell:
    """One released number in both tables.

    Parameters
    ----------
    before, now
        The numbers with intervals, drawn on one scale.
    change
        How they differ, with an interval; empty where one is missing.
    percent
        The same in percent; empty where that has no meaning.
    drowned
        Whether the interval of the change holds 0.
    """

    before: CellView
    now: CellView
    change: str
    percent: str
    drowned: bool


@dataclass(frozen=True)
class ChangeView:
    """Two tables side by side.

    Parameters
    ----------
    before, now
        What they are called on the page.
    level
        Of which level intervals are.
    keys
        Names of the labels of rows.
    columns
        Labels of the columns.
    rows
        Labels of each row, and a cell for each column.
    hidden
        How many rows are not shown.
    note
        Why there are no changes; empty where there are.
    """

    before: str
    now: str
    level: str
    keys: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[tuple[Sequence[str], Sequence[ChangeCell]]] = ()
    hidden: int = 0
    note: str = ""


def compare_tables(
    names: tuple[str, str], before: pd.DataFrame, now: pd.DataFrame, level: float
) -> ChangeView:
    """Gather what is shown of the changes between two tables that were verified.

    Parameters
    ----------
    names
        What the tables are called.
    before, now
        The tables.
    level
        Confidence level of intervals.
    """
    said = f"{100 * level:g} %"
    ours, theirs = look(now), look(before)
    try:
        changes = change(now, before, level)
    except QueryError as error:
        return ChangeView(*names, said, note=str(error))
    try:
        percents = change(now, before, level, percent=True)
    except QueryError:  # points in time have none
        percents = pd.DataFrame(index=changes.index, columns=changes.columns, dtype=float)
    parts = ours.certificate.columns
    index = changes.index
    shown = index[:_MOST_PAIRS]
    tables = [(one.table, _bars(one, level)) for one in (theirs, ours)]
    columns = []
    for place, part in enumerate(parts):
        pair = [_column(*table, place, shown) for table in tables]
        values = pd.concat([value for value, _ in pair], ignore_index=True)
        ends = pd.concat([end for _, end in pair], ignore_index=True)
        cells = cells_of(values, ends, part.origin, None)
        of_column = [_of_column(one, place, len(shown)) for one in (changes, percents)]
        columns.append(_cells(cells[: len(shown)], cells[len(shown) :], part, of_column))
    labels = [map(str, shown.get_level_values(at)) for at in range(shown.nlevels)]
    return ChangeView(
        *names,
        said,
        ["" if key is None else str(key) for key in shown.names],
        [str(label) for label in ours.frame.columns],
        [*zip(zip(*labels, strict=True), zip(*columns, strict=True), strict=True)],
        len(index) - len(shown),
    )


def _of_column(changes: pd.DataFrame, place: int, rows: int) -> pd.DataFrame:
    """Return the first changes of a column, as numbers; times in seconds."""
    made = changes.iloc[:rows, 3 * place : 3 * place + 3].set_axis(_PARTS, axis=1)
    lengths = made.dtypes.iloc[0].kind == "m"
    return made.apply(lambda one: one.dt.total_seconds()) if lengths else made.astype(float)


def _bars(shown: Shown, level: float) -> pd.DataFrame:
    """Return intervals by the keys of their rows."""
    return intervals_of(shown, level).set_axis(shown.table.index, axis=0)


@dataclass(frozen=True)
class SideView:
    """Releases of one table side by side.

    Parameters
    ----------
    releases
        What they are called.
    level
        Of which level intervals are.
    keys, columns
        Names of the labels of rows, and of the columns.
    rows
        Labels of each row, and for each column a cell of each release.
    hidden
        How many rows are not shown.
    """

    releases: Sequence[str]
    level: str
    keys: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[Sequence[CellView]]]]
    hidden: int


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
    frames = [one.table for one in tables]
    first, described = frames[0], tables[0].certificate.columns
    if keyed is None or first.index.nlevels == 1:
        return None
    if any(frame.shape[1] != len(described) or not len(frame) for frame in frames):
        return None
    level_name = keyed[0]
    if any(level_name not in frame.index.names for frame in frames):
        return None
    try:
        bars = [_bars(one, level).droplevel(level_name) for one in tables]
    except QueryError:
        return None
    parts = [(frame.droplevel(level_name), of) for frame, of in zip(frames, bars, strict=True)]
    index = parts[0][0].index
    for frame, _ in parts[1:]:
        index = index.append(frame.index.difference(index, sort=False))
    shown = index[: MOST_ROWS // len(parts)]
    size = len(shown)
    columns = []
    for place, part in enumerate(described):
        pairs = [_column(*table, place, shown) for table in parts]
        values = pd.concat([value for value, _ in pairs], ignore_index=True)
        ends = pd.concat([end for _, end in pairs], ignore_index=True)
        cells = cells_of(values, ends, part.origin, None)
        columns.append([cells[at : at + size] for at in range(0, len(cells), size)])
    by_row = zip(*(zip(*of_column, strict=True) for of_column in columns), strict=True)
    labels = [map(str, shown.get_level_values(at)) for at in range(shown.nlevels)]
    return SideView(
        [str(frame.index.get_level_values(level_name)[0]) for frame in frames],
        f"{100 * level:g} %",
        ["" if key is None else str(key) for key in shown.names],
        [str(label) for label in first.columns],
        [*zip(zip(*labels, strict=True), by_row, strict=True)],
        len(index) - size,
    )


def _column(
    released: pd.DataFrame, ends: pd.DataFrame, place: int, rows: pd.Index
) -> tuple[pd.Series, pd.DataFrame]:
    """Return the numbers of some rows and the ends of their intervals, missing where none are."""
    values = released.iloc[:, place]
    alike = rows.isin(released.index).all()
    values = values if alike or values.dtype.kind != "i" else values.astype("Int64")
    bars = ends.iloc[:, 2 * place : 2 * place + 2].set_axis(["low", "high"], axis=1)
    return values.reindex(rows), bars.reindex(rows)


def _cells(
    before: list[CellView],
    now: list[CellView],
    part: ColumnPart,
    differences: Sequence[pd.DataFrame],
) -> list[ChangeCell]:
    """Put the cells of a column beside their changes, and those in percent."""
    changes, percents = differences
    unit = "" if part.times is None else " s"
    is_whole = part.integer
    texts = zip(_texts(changes, unit, is_whole=is_whole), _texts(percents, " %"), strict=True)
    drowned = (changes["low"] <= 0) & (changes["high"] >= 0)
    rows = zip(before, now, texts, drowned, strict=True)
    return [ChangeCell(first, second, *text, bool(noise)) for first, second, text, noise in rows]


def _texts(changes: pd.DataFrame, unit: str, *, is_whole: bool = False) -> list[str]:
    """Show changes with their intervals; nothing where one is missing."""
    texts = []
    for estimate, low, high in zip(
        changes["estimate"], changes["low"], changes["high"], strict=True
    ):
        width = (high - low) / 2 if math.isfinite(high - low) else estimate - low
        ends = (int(end) if is_whole and end.is_integer() else end for end in (estimate, low, high))
        value, first, last = (number_text(end, width) for end in ends)
        texts.append(f"{value}{unit} ({first} to {last})" if value else "")
    return texts
