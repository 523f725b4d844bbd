"""What a report shows of released numbers: digits that the noise leaves, intervals and bars."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpframe.cells.rounding import outward
from dpframe.cells.texts import number_text
from dpframe.cells.verify import Shown, look
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.definitions import End
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.inference.intervals import intervals_of
from dpframe.queries.edges import in_seconds
from dpframe.steps.derive import change

MOST_ROWS = 200
"""Rows of a table that are shown."""

_WIDTH = 100.0  # of a drawing, in units of its own
_PERCENT = 0.1  # unit of percentages
UNKNOWN = "unknown"
"""Stands for a number whose interval is all that is possible."""


@frozen
class Bar:
    """A value and its interval as places on a line of width 100.

    Parameters
    ----------
    zero, value, low, high
        The places; zero is where bars start, at 0 or at the bound of a mean that is next to 0.
    inner_low, inner_high
        Those of the interval for the noise alone, where the other one holds the error of a sample.
    """

    zero: float
    value: float
    low: float
    high: float
    inner_low: float | None = None
    inner_high: float | None = None

    @property
    def start(self) -> float:
        """Where the bar begins."""
        return min(self.zero, self.value)

    @property
    def width(self) -> float:
        """How wide the bar is."""
        return abs(self.value - self.zero)


@frozen
class CellView:
    """One released number.

    Parameters
    ----------
    value
        The number; empty where it is missing.
    interval
        Its interval; empty where there is none.
    bar
        Both as a drawing, if there is an interval.
    drowned
        Whether the noise may be as large as the number.
    percent
        Its percentage of the total, with an interval; empty where that was not asked for.
    """

    value: str
    interval: str = ""
    bar: Bar | None = None
    drowned: bool = False
    percent: str = ""


def cells_of(
    values: pd.Series,
    ends: pd.DataFrame | None,
    origin: int | None,
    percents: Sequence[str] | None,
    inner: pd.DataFrame | None = None,
    *,
    base: float,
    most: int = MOST_ROWS,
) -> list[CellView]:
    """Return the cells of a released column; inner ends are those for the noise alone.

    Bars start at a base.
    """
    shown = values.iloc[:most]
    percents = [""] * len(shown) if percents is None else percents
    if ends is None:
        pairs = zip(shown, percents, strict=True)
        return [CellView(number_text(value, None), percent=share) for value, share in pairs]
    low, high = (ends.iloc[:most, side] for side in (0, 1))
    alone = [] if inner is None else [inner.iloc[:most, side] for side in (0, 1)]
    parts = (shown, low, high, *alone)
    numbers = np.array([in_seconds(part, origin) for part in parts], np.float64)
    cells = []
    rows, bars = zip(shown, low, high, strict=True), _bars(numbers, base)
    for texts, number, bar, share in zip(rows, numbers.T, bars, percents, strict=True):
        width = (number[2] - number[1]) / 2
        size = float(np.abs(number[np.isfinite(number)]).max(initial=0))
        value = number_text(texts[0], width, size)
        lowest = number_text(texts[1], width, size, "low")
        highest = number_text(texts[2], width, size, "high")
        value = value or (UNKNOWN if lowest else "")
        within = f"{lowest} to {highest}" if value and lowest else ""
        reach = max(width, number[2] - number[0])  # a count below 0 is outside
        drowned = origin is None and bool(reach >= abs(number[0]))
        cells.append(CellView(value, within, bar, drowned, share))
    return cells


def percent_texts(of_total: pd.DataFrame) -> list[str]:
    """Show percentages with their intervals; nothing where a cell is left out."""
    shown = of_total.iloc[:MOST_ROWS].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    return [_percent_text(*row) for row in shown[:, -3:]]


def _percent_text(estimate: float, low: float, high: float) -> str:
    if math.isnan(estimate):
        return "" if math.isnan(low) else UNKNOWN
    least = outward(np.array(low), _PERCENT, up=False)
    most = outward(np.array(high), _PERCENT, up=True)
    return f"{estimate:.1f} % ({least:.1f} to {most:.1f})"


def _bars(numbers: np.ndarray, base: float) -> list[Bar | None]:
    """Return drawings of values and intervals on one scale, which holds the base of bars."""
    finite = numbers[np.isfinite(numbers)]
    least, most = finite.min(initial=base), finite.max(initial=base)
    if not 0 < most - least < math.inf:
        return [None] * numbers.shape[1]
    places = _WIDTH * (numbers - least) / (most - least)
    zero = _WIDTH * (base - least) / (most - least)
    return [Bar(zero, *place.round(2)) if np.isfinite(place).all() else None for place in places.T]


class ChangeCell(NamedTuple):
    """How a released number changed: with an interval, in percent, and whether that holds 0."""

    change: str
    percent: str
    drowned: bool


@frozen
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
        cells = cells_of(values, ends, part.origin, None, base=part.base)
        columns.append([cells[at :: len(shown)] for at in range(len(shown))])
    labels = [map(str, shown.get_level_values(at)) for at in range(shown.nlevels)]
    by_row = zip(zip(*labels, strict=True), zip(*columns, strict=True), strict=True)
    return SideView(
        names,
        f"{100 * level:g} %",
        names_of_levels(shown),
        list(map(str, like.frame.columns)),
        [(*row, None) for row in by_row],
        len(index) - len(shown),
    )


def names_of_levels(index: pd.Index) -> list[str]:
    """Show the names of keys; nothing for one without."""
    return ["" if name is None else str(name) for name in index.names]


def compare_tables(
    names: tuple[str, str], before: pd.DataFrame, now: pd.DataFrame, level: float
) -> SideView:
    """Gather what is shown of the changes between two tables that were verified."""
    ours, theirs = look(now), look(before)
    try:
        changes = change(now, before, level)
    except QueryError as error:
        return SideView(names, "", note=str(error))
    try:
        percents = change(now, before, level, percent=True)
    except QueryError:  # points in time have none
        percents = pd.DataFrame(index=changes.index, columns=changes.columns, dtype=float)
    parts = ours.certificate.columns
    tables = [(table.table, _intervals(table, level)) for table in (theirs, ours)]
    view = _side_by_side(names, level, tables, ours, changes.index)
    by_column = [
        _changes(_of_column(changes, place), _of_column(percents, place), part)
        for place, part in enumerate(parts)
    ]
    rows = zip(view.rows, zip(*by_column, strict=True), strict=False)  # not all are shown
    return replace(view, rows=[(*row[:2], of_row) for row, of_row in rows])


def _of_column(changes: pd.DataFrame, place: int) -> pd.DataFrame:
    """Return the changes of a column, as numbers; times in seconds."""
    columns = changes.iloc[:, 3 * place : 3 * place + 3]
    columns = columns.set_axis(["estimate", "low", "high"], axis=1)
    if columns.dtypes.iloc[0].kind == "m":
        columns = columns.apply(lambda column: column.dt.total_seconds())
    return columns.astype(float)


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
    joined = carried.table.joined
    frames = [table.table for table in tables]
    if joined is None or frames[0].index.nlevels == 1:
        return None
    key, width = joined.name, len(tables[0].certificate.columns)
    alike = (len(frame) and frame.shape[1] == width for frame in frames)
    if not all(alike) or any(key not in frame.index.names for frame in frames):
        return None
    names = [str(frame.index.get_level_values(key)[0]) for frame in frames]
    parts = []
    for table, frame in zip(tables, frames, strict=True):
        ends = ends_of(table, level)
        if ends is None:
            return None
        parts.append((frame.droplevel(key), ends.droplevel(key)))
    index = parts[0][0].index
    for frame, _ in parts[1:]:
        index = index.append(frame.index.difference(index, sort=False))
    return _side_by_side(names, level, parts, tables[0], index)


def _intervals(shown: Shown, level: float) -> pd.DataFrame:
    """Return intervals by the keys of their rows."""
    return intervals_of(shown, level).set_axis(shown.table.index, axis=0)


def ends_of(shown: Shown, level: float) -> pd.DataFrame | None:
    """Return the same; `None` where intervals mean nothing."""
    try:
        return _intervals(shown, level)
    except QueryError:
        return None


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
        sides: tuple[End | None, ...] = (None, "low", "high")
        pairs = zip(ends, sides, strict=True)
        value, first, last = (number_text(end, width, end=side) for end, side in pairs)
        text = f"{value}{unit} ({first} to {last})" if value else UNKNOWN
        texts.append(text if first else "")
    return texts
