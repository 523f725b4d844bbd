"""What the steps of a certificate do to a table, and to what is said about it.

They see the table alone, so each can be done again from what it was done to.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd

from dpframe.accuracy.intervals import error_of, interval
from dpframe.accuracy.outward import known, outward
from dpframe.accuracy.quotients import percent
from dpframe.accuracy.ranges import with_quantiles
from dpframe.arguments import is_one_of, shown
from dpframe.certificates.added_steps import IntervalsStep, PercentStep
from dpframe.certificates.certificate import Certified, first_of
from dpframe.certificates.companion_columns import ENDS, PERCENT, ends_of, followers, put_beside
from dpframe.certificates.noise_parts import ColumnPart, RoundedPart
from dpframe.certificates.packed import Packed, places_of
from dpframe.certificates.quantile_parts import QuantilesStep
from dpframe.certificates.steps import (
    HeadStep,
    RenameStep,
    RoundStep,
    SelectStep,
    SortStep,
    StepPart,
    SuppressStep,
    UnstackedPart,
    UnstackStep,
)
from dpframe.certificates.subsets import with_columns, with_each, with_rows, without_cells
from dpframe.certificates.unstacked import is_wide, places_in, spread, stacked, widened
from dpframe.certificates.verify import attach
from dpframe.errors import QueryError
from dpframe.queries.timescale import in_seconds

__all__ = ["after", "label_place", "place_of"]

_SHOWN = 200  # characters of names, which may come from a file
_Made: TypeAlias = tuple[pd.DataFrame, Certified]


def after(frame: pd.DataFrame, certificate: Certified, step: StepPart) -> pd.DataFrame:
    """Return the table that a step makes of another, with its certificate.

    Raises
    ------
    QueryError
        If the step cannot be done with this table.
    """
    action = _ACTIONS[type(step)]
    if isinstance(step, RoundStep | SuppressStep):  # cell by cell
        long, described = action(stacked(frame, certificate), certificate, step)
        made = spread(long, frame, certificate)
    else:
        made, described = action(frame, certificate, step)
    made.attrs = {}
    attach(made, replace(described, steps=(*certificate.steps, step)))
    return made


def label_place(frame: pd.DataFrame, name: str) -> int:
    """Return the position of the column that a step names."""
    places = [place for place, label in enumerate(frame.columns) if str(label) == name]
    if len(places) != 1:
        raise QueryError(
            f"{name[:_SHOWN]!r} names {len(places)} columns of this table. Release them under "
            "other names."
        )
    return places[0]


def place_of(released: pd.DataFrame, label: Hashable, called: str) -> int:
    """Find a column by its label."""
    if not is_one_of(label, released.columns):
        raise QueryError(
            f"{called} must name columns of this table, {list(released.columns)!r}, got "
            f"{shown(label)}."
        )
    return label_place(released, str(label))


def _sorted(frame: pd.DataFrame, certificate: Certified, step: SortStep) -> _Made:
    columns = {at: _column_or_level(frame, name) for at, name in enumerate(step.by)}
    table = pd.DataFrame(columns, index=range(len(frame)))
    try:
        order = table.sort_values(list(columns), ascending=list(step.ascending), kind="stable")
    except (TypeError, ValueError):
        names = ", ".join(map(repr, step.by))[:_SHOWN]
        raise QueryError(
            f"by names {names}, whose values have no order: they are of several kinds. Sort by "
            "another column or level."
        ) from None
    return _rows(frame, certificate, order.index.to_numpy())


def _column_or_level(frame: pd.DataFrame, name: str) -> Any:
    """Return the values that rows are sorted by."""
    levels = [at for at, level in enumerate(frame.index.names) if str(level) == name]
    if not levels or any(str(label) == name for label in frame.columns):
        return frame.iloc[:, label_place(frame, name)].array
    return frame.index.get_level_values(levels[0]).array


def _ends(frame: pd.DataFrame, certificate: Certified, step: HeadStep) -> _Made:
    places = np.arange(len(frame))
    kept = places[: step.rows] if step.step == "head" else places[max(len(frame) - step.rows, 0) :]
    return _rows(frame, certificate, kept)


def _selected(frame: pd.DataFrame, certificate: Certified, step: SelectStep) -> _Made:
    if step.rows is not None:
        frame, certificate = _rows(frame, certificate, places_of(step.rows))
    if step.columns is None:
        return frame, certificate
    kept = [label_place(frame, name) for name in step.columns]
    if is_wide(certificate):
        return _cells(frame, certificate, np.arange(len(frame)), np.array(kept, np.intp))
    first = len(first_of(certificate).columns)
    released = [place for place in kept if place < first]
    later = [place for place in kept if place >= first]
    return frame.iloc[:, released + later], with_columns(certificate, released)


def _rows(frame: pd.DataFrame, certificate: Certified, places: np.ndarray) -> _Made:
    if is_wide(certificate):
        return _cells(frame, certificate, places, np.arange(frame.shape[1]))
    return frame.iloc[places], with_rows(certificate, places)


def _cells(
    frame: pd.DataFrame, certificate: Certified, rows: np.ndarray, columns: np.ndarray
) -> _Made:
    """Keep some rows and columns of a wide table."""
    known = np.full(frame.size, -1, np.intp)
    part = cast(UnstackedPart, certificate.unstacked)
    places = places_in(frame, part)
    known[places] = np.arange(len(places))
    order = known.reshape(frame.shape)[np.ix_(rows, columns)].ravel()
    return frame.iloc[rows, columns], _unstacked_as(certificate, order, part.level, part.column)


def _unstacked(frame: pd.DataFrame, certificate: Certified, step: UnstackStep) -> _Made:
    """Make columns of the keys of a level."""
    level = [str(name) for name in frame.index.names].index(step.level)
    place = label_place(frame, step.column)
    wide, order = widened(frame, level, place)
    return wide, _unstacked_as(with_columns(certificate, [place]), order, step.level, step.column)


def _unstacked_as(certificate: Certified, order: np.ndarray, level: str, column: str) -> Certified:
    """Return the certificate of cells in some order, with -1 for those that are missing."""
    there = np.flatnonzero(order >= 0)
    places = None if len(there) == len(order) else Packed.of(there)
    part = UnstackedPart(level, column, places)
    return replace(with_rows(certificate, order[there]), unstacked=part)


def _rounded(frame: pd.DataFrame, certificate: Certified, step: RoundStep) -> _Made:
    decimals = {label_place(frame, name): count for name, count in step.decimals.items()}
    columns = {at: frame.iloc[:, at].round(count) for at, count in decimals.items()}
    for at, count in decimals.items():
        for end, suffix in ends_of(frame, certificate, at).items():
            columns[end] = _outward(frame.iloc[:, end], count, up=suffix == ENDS[1])
    described = with_each(
        certificate,
        lambda at, column, _: _described_as_rounded(
            column, frame.dtypes.iloc[at], decimals.get(at)
        ),
    )
    return _with(frame, columns), described


def _outward(column: pd.Series, decimals: int, *, up: bool) -> pd.Series:
    """Round ends of intervals; whole numbers stay whole, and missing ones missing."""
    rounded = pd.Series(outward(known(column), decimals, up=up), index=column.index)
    return rounded.astype(column.dtype).mask(column.isna())


def _described_as_rounded(column: ColumnPart, dtype: Any, decimals: int | None) -> ColumnPart:
    """Say how a column was rounded, this time and before."""
    before = column.rounded
    if decimals is None or (dtype.kind == "i" and decimals >= 0):
        return column
    if before is not None and before.decimals <= decimals:
        return column
    most = 0.5 * 10.0**-decimals + (0.0 if before is None else before.most)
    return replace(column, rounded=RoundedPart(decimals, most))


def _suppressed(frame: pd.DataFrame, certificate: Certified, step: SuppressStep) -> _Made:
    count = len(first_of(certificate).columns)
    if step.by is None:
        hidden = [_says_little(frame, certificate, at, step) for at in range(count)]
    else:
        hidden = [_says_little(frame, certificate, label_place(frame, step.by), step)] * count
    columns = {}
    for at, cells in enumerate(hidden):
        columns[at] = _without(frame.iloc[:, at], cells)
        for place in followers(frame, certificate, at):
            columns[place] = _without(frame.iloc[:, place], cells)
    described = with_each(
        certificate, lambda at, column, rows: without_cells(column, hidden[at][rows])
    )
    return _with(frame, columns), described


def _says_little(
    frame: pd.DataFrame, certificate: Certified, place: int, step: SuppressStep
) -> np.ndarray:
    """Tell which cells of a column are too small, or too far off."""
    values = in_seconds(frame.iloc[:, place], None)
    hidden: np.ndarray = np.isnan(values)
    if step.below is not None:
        hidden |= values < step.below
    if step.relative_error is not None:
        error = np.full(len(values), np.nan)

        def noted(at: int, column: ColumnPart, rows: Any) -> ColumnPart:
            if at == place:
                error[rows] = error_of(column)
            return column

        with_each(certificate, noted)
        hidden |= ~(error <= step.relative_error * np.abs(values))
    return hidden


def _without(column: pd.Series, cells: np.ndarray) -> pd.Series:
    """Make cells missing; whole numbers stay whole."""
    if column.dtype.kind == "i":
        column = column.astype("Int64")
    return column.mask(cells)


def _renamed(frame: pd.DataFrame, certificate: Certified, step: RenameStep) -> _Made:
    labels: list[Any] = list(frame.columns)
    names = {}
    for old, new in step.columns.items():
        place = label_place(frame, old)
        names[place] = new
        labels[place] = new
        for later, suffix in followers(frame, certificate, place).items():
            labels[later] = f"{new}{suffix}"
    levels = [step.levels.get(str(name), name) for name in frame.index.names]
    taken = [label for label in labels + levels if (labels + levels).count(label) > 1]
    if taken:
        raise QueryError(f"{taken[0]!r} would be the name of two columns or levels. Take another.")
    renamed = frame.set_axis(pd.Index(labels, tupleize_cols=False, name=frame.columns.name), axis=1)
    renamed.index = frame.index.set_names(levels)
    if is_wide(certificate):
        return renamed, certificate
    described = with_each(
        certificate, lambda at, column, _: replace(column, name=names.get(at, column.name))
    )
    return renamed, described


def _with_intervals(frame: pd.DataFrame, certificate: Certified, step: IntervalsStep) -> _Made:
    flags = {"simultaneous": step.simultaneous, "sampling": step.sampling}
    return put_beside(frame, interval(frame, step.level, **flags), step.step), certificate


def _with_percent(frame: pd.DataFrame, certificate: Certified, step: PercentStep) -> _Made:
    """Add percentages and their intervals."""
    label = frame.columns[label_place(frame, step.column)]
    levels = [name for name in frame.index.names if str(name) in (step.by or ())]
    shares = percent(frame, label, step.level, by=levels or None)[["estimate", "low", "high"]]
    shares.columns = pd.Index([f"{label}{PERCENT}{end}" for end in ("", *ENDS)])
    return put_beside(frame, shares, step.step), certificate


def _with(frame: pd.DataFrame, columns: Mapping[int, pd.Series]) -> pd.DataFrame:
    """Return a frame with some columns exchanged, by position."""
    parts = {at: columns.get(at, frame.iloc[:, at]) for at in range(frame.shape[1])}
    made = pd.DataFrame(parts, index=frame.index)
    made.columns = frame.columns
    return made


_ACTIONS: dict[type[Any], Callable[..., _Made]] = {
    SortStep: _sorted,
    HeadStep: _ends,
    SelectStep: _selected,
    RoundStep: _rounded,
    SuppressStep: _suppressed,
    RenameStep: _renamed,
    UnstackStep: _unstacked,
    IntervalsStep: _with_intervals,
    PercentStep: _with_percent,
    QuantilesStep: with_quantiles,
}
