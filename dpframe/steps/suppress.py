"""Round released numbers, leave out those that say little, and choose rows, as is written down."""

import sys
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.cells.locate import Located
from dpframe.cells.rounding import outward, rounded
from dpframe.cells.verify import Shown, check_parts, look, without_cells
from dpframe.certificates.definitions import CutPart
from dpframe.declaration.facts import warn
from dpframe.errors import QueryError, quote
from dpframe.inference.intervals import check_no_intervals_beside, total_half_width
from dpframe.inference.selection import passes
from dpframe.privacy.amounts import WRITTEN
from dpframe.public import public_call
from dpframe.queries.edges import in_seconds
from dpframe.queries.reading import check_number


@public_call
def suppress(
    released: pd.DataFrame,
    *,
    below: float | None = None,
    relative_error: float | None = None,
    by: Hashable | None = None,
) -> pd.DataFrame:
    """Make uninformative cells of a release missing, and keep its certificate.

    This is for readers; nobody's privacy needs it. Columns of whole numbers become `Int64`, which
    has missing values. Computed values, such as denoised ones and percentages, intervals and errors
    go with the cell. Released cells decide, rounded or not.

    Parameters
    ----------
    released
        A released frame, in any layout.
    below
        Suppress smaller values.
    relative_error
        Suppress where the standard error is a larger part of the value than this: 0.3 for 30 %.
    by
        The column that decides for all cells of a row; by default, each cell decides for itself.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If neither limit is given, or one is not a number; or if means, rates or times would be
        judged by their own size, in place of a count's.

    Warns
    -----
    DPFrameWarning
        If relative_error is above 1, that is 100 %, or below is less than the half width of 95 %
        intervals, and stands alone.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A"] * 147 + ["B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
    >>> suppress(released, below=10)["count"].tolist()
    [147, <NA>]
    """
    shown = look(released)
    shown.certificate.require_numbers()
    least = None if below is None else _limit("below", below)
    most = None if relative_error is None else _limit("relative_error", relative_error)
    if least is None and most is None:
        rule = "suppress needs below= or relative_error=, and got none of them."
        raise QueryError(rule, parameter="below")
    if most is not None:
        check_no_intervals_beside(shown, "relative_error=")
        check_parts(shown, "relative_error=")
    if most is not None and most <= 0:
        raise QueryError.about("relative_error", "must be above 0", relative_error)
    if most is not None and most > 1:
        warn(
            f"suppress: relative_error={most:g} is {100 * most:,.6g} % of the value, and keeps "
            f"what may be noise alone; {most / 100:g} is {most:g} %."
        )
    judge = None if by is None else _label_of(shown, by)
    _check_judges(shown, judge, least, most)
    if least is not None and most is None:
        _warn_of_noise(shown, judge, least)
    cut = CutPart("suppress", judge, least, most)
    judges = {label: label if judge is None else judge for label in shown.labels}
    says_little = {judged: ~passes(shown.opened, judged, cut) for judged in {*judges.values()}}
    hidden = {label: says_little[judged] for label, judged in judges.items()}
    sources = _sources(shown)

    def edit(cells: Located, column: pd.Series) -> pd.Series:
        away = hidden.get(sources.get(str(cells.label), ""))
        if away is None:
            return column
        gone = (cells.rows >= 0) & away[np.maximum(cells.rows, 0)]
        return without_cells(column, gone)

    return shown.change(shown.opened.changed(cuts=(*shown.opened.table.cuts, cut)), edit)


def _sources(shown: Shown) -> dict[str, str]:
    """Return for each column that is shown the released one it belongs to, as JSON."""
    by_name = shown.opened.labels_by_name
    columns = {label: definition.column for label, definition in shown.computed.items()}
    computed = {label: by_name[name] for label, name in columns.items() if name in by_name}
    return {**{label: label for label in shown.labels}, **computed}


def _label_of(shown: Shown, label: object) -> str:
    """Find a column, released or computed, by its label."""
    tokens = (*shown.labels, *shown.computed)
    labels = {shown.opened.shown_label(token): token for token in tokens}
    if not is_one_of(label, labels):
        raise QueryError.about("by", f"must name a column, {quote(list(labels))}", label)
    return labels[label]


def _check_judges(shown: Shown, judge: str | None, low: float | None, most: float | None) -> None:
    """Check that the columns that decide which cells are suppressed can."""
    columns = shown.certificate.releases[0].columns
    if judge in shown.computed:
        if most is not None:
            way_out = "Take the released column."
            rule = "was computed, and has no standard error"
            raise QueryError.about("by", rule, shown.opened.shown_label(str(judge)), way_out)
        return
    for place in range(len(columns)) if judge is None else [shown.labels.index(judge)]:
        by_size = low is not None and judge is None and not columns[place].form.is_total
        if by_size or columns[place].times is not None:
            label = shown.frame.columns[place]
            rule = f"column {label!r} cannot say by its size which cells are to be suppressed"
            way_out = "Give the column that can, a count: by=..."
            raise QueryError(f"{rule}. {way_out}", parameter="by", label=label)


def _warn_of_noise(shown: Shown, judge: str | None, least: float) -> None:
    """Warn where noise alone is often beyond a limit, as public facts say."""
    judges = shown.labels if judge is None else [judge]
    for label in judges:
        if label in shown.computed:
            continue
        place = shown.labels.index(label)
        releases = shown.certificate.releases
        widths = [total_half_width(part, part.columns[place], _LEVEL) for part in releases]
        width = min((width for width in widths if width is not None), default=0.0)
        if width > least:
            name = shown.opened.shown_label(label)
            warn(
                f"suppress: below={least:g} hides little of {name!r}: the noise of an empty group "
                f"is up to \u00b1{width:,.4g}, with {_LEVEL:.0%} probability. Take a larger limit."
            )


def _limit(name: str, value: object) -> float:
    """Read a limit."""
    least = -sys.float_info.max
    return check_number(name, value, "must be a finite number", least=least)


def nlargest(released: pd.DataFrame, n: int, column: Hashable | None = None) -> pd.DataFrame:
    """Keep the rows with the largest values of a released column, and write that down.

    Parameters
    ----------
    released
        A frame that was released.
    n
        How many.
    column
        The column; `None`: the only one. Released values decide, rounded or not.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If n is not a whole number, or there is no such released column.

    Examples
    --------
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
    >>> released.dp.nlargest(1).index.tolist()
    ['B']
    """
    return _keep_extreme(released, "nlargest", n, column)


def nsmallest(released: pd.DataFrame, n: int, column: Hashable | None = None) -> pd.DataFrame:
    """Keep the rows with the smallest values of a released column; see `.dp.nlargest`.

    Parameters
    ----------
    released
        A frame that was released.
    n
        How many.
    column
        The column; `None`: the only one.
    """
    return _keep_extreme(released, "nsmallest", n, column)


def _keep_extreme(
    released: pd.DataFrame, call: Literal["nlargest", "nsmallest"], n: Any, column: Hashable
) -> pd.DataFrame:
    """Keep rows by the released values of a column; the cut is the first one that is hidden."""
    shown = look(released)
    shown.certificate.require_numbers()
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n < WRITTEN:
        raise QueryError.about("n", "must be a whole number of rows, 0 or more", n)
    labels = list(shown.frame.columns)
    if column is None and len(labels) > 1:
        raise QueryError.about("column", f"must be one of the columns released, {labels!r}", None)
    column = labels[0] if column is None else column
    if not is_one_of(column, labels):
        raise QueryError.about("column", f"must be one of the columns released, {labels!r}", column)
    place = [label == column for label in labels].index(True)
    if shown.layout.rows is None or (shown.rows < 0).any():
        rule = f"{call} takes rows, and this table shows cells of a row side by side"
        raise QueryError(f"{rule}. Call it before that.", parameter="released")
    values = in_seconds(shown.frame.iloc[:, place], None)[shown.rows]
    present = np.flatnonzero(shown.seen[shown.labels[place]][shown.rows])
    sign = -1 if call == "nlargest" else 1
    order = present[np.argsort(sign * values[present], kind="stable")]
    cut = CutPart(
        call=call,
        column=shown.labels[place],
        at=float(values[order[n]]) if n < len(order) else None,
        relative_error=None,
    )
    opened = shown.opened.changed(cuts=(*shown.opened.table.cuts, cut))
    return shown.sealed(released.iloc[order[:n]], opened)


_LEVEL = 0.95  # at which the noise is compared with a limit
_MOST_DECIMALS = 15  # floats have no more
_UNIT_ABOVE_0 = "must be a unit above 0, such as 5"


@public_call
def round(
    released: pd.DataFrame, decimals: int | Mapping[Hashable, int] = 0, *, to: float | None = None
) -> pd.DataFrame:
    """Round the numbers of a release, halves to even, and keep its certificate.

    Rounding by pandas keeps it, too; this rounds ends of intervals to the outside with their
    numbers. Cells that were rounded more before stay so. Intervals of rounded cells are those of
    the released ones, rounded outwards.

    Parameters
    ----------
    released
        A released frame, in any layout.
    decimals
        Number of decimals, -2 for hundreds; or a dict by column. Whole numbers stay whole, and
        times are not rounded.
    to
        A unit in place of decimals, for all columns of numbers: 5 for multiples of five.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If decimals are not whole numbers from -15 to 15, or name no column of numbers; if a unit is
        not above 0; or groups were found without numbers.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A"] * 147})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A"]), epsilon=1e6)
    >>> tens = round(released, -1)
    >>> tens.join(tens.dp.interval()).loc["A"].tolist()
    [150, 140, 150]
    """
    shown = look(released)
    if not shown.opened.promise.is_derived:
        shown.certificate.require_numbers()
    return _round_to(shown, _units(shown, decimals, to))


def round_ends(frame: pd.DataFrame) -> pd.DataFrame:
    """Round ends of intervals to the outside where their numbers are rounded."""
    shown = look(frame)
    units = {
        label: shown.unit(middle)
        for label in shown.seen
        for middle in [shown.middle_of(label)]
        if middle is not None and middle in shown.seen and shown.unit(middle)
    }
    return _round_to(shown, units)


def _round_to(shown: Shown, units: Mapping[str, float]) -> pd.DataFrame:
    """Round released cells to units, by their labels as JSON, and write these down."""
    opened = shown.opened.changed(units={**shown.opened.table.units, **units})

    def edit(cells: Located, column: pd.Series) -> pd.Series:
        label = str(cells.label)
        if label not in units or not shown.opened.rows:
            return column
        released = shown.opened.columns[label]
        if released.kind:
            numbers = column
        else:
            numbers = released.numbers.values[np.maximum(cells.rows, 0)]
        return _round(column, numbers, units[label], getattr(released.part.definition, "end", None))

    return shown.change(opened, edit)


def _units(shown: Shown, decimals: object, to: object) -> dict[str, float]:
    """Return the unit of each column, by its label as JSON; ends go with their numbers."""
    numbers = [label for label in shown.seen if not shown.opened.columns[label].kind]
    sources = {label: source for label in numbers for source in [shown.middle_of(label)]}
    if isinstance(decimals, Mapping):
        if to is not None:
            raise QueryError.about("to", "is in place of decimals", to, "Give one of them.")
        units = {_named(shown, name, numbers): _unit(count) for name, count in decimals.items()}
    else:
        unit = _unit(decimals) if to is None else check_number("to", to, _UNIT_ABOVE_0)
        units = dict.fromkeys(numbers, unit)
    if not units:
        reason = "there are no numbers to round in this release, or decimals name none"
        way_out = "Times are not rounded: leave the step out, or name columns of numbers."
        raise QueryError(f"{reason}. {way_out}", parameter="decimals")
    for label, unit in units.items():
        _check_unit(shown, label, unit)
    units |= {label: units[source] for label, source in sources.items() if source in units}
    # cells that were rounded more before stay as they are
    before = shown.opened.table.units
    return {
        label: max(unit, shown.units[label], before.get(label, 0.0))
        for label, unit in units.items()
        if unit >= 1 or shown.opened.columns[label].numbers.values.dtype.kind != "i"
    }


def _check_unit(shown: Shown, label: str, unit: float) -> None:
    """Refuse a unit by which nothing can be left of a column, whatever its cells are."""
    if label not in shown.labels:
        return
    part = shown.certificate.releases[0].columns[shown.labels.index(label)]
    if not part.form.is_total and 2 * np.abs(part.span).max() < unit:
        name = shown.opened.shown_label(label)
        rule = f"decimals would round all of {name!r} to 0"
        raise QueryError(f"{rule}. Give them by column.", parameter="decimals", label=name)


def _named(shown: Shown, name: object, numbers: list[str]) -> str:
    """Find a column that decimals name."""
    labels = {shown.opened.shown_label(label): label for label in shown.seen}
    if not is_one_of(name, labels):
        rule = f"must name columns of this table, {quote(list(labels))}"
        raise QueryError.about("decimals", rule, name)
    label = labels[name]
    source = shown.middle_of(label)
    if source is not None:
        reason = f"which is rounded to the outside with {shown.opened.shown_label(source)!r}"
    elif label not in numbers:
        reason = "no column of numbers"
    else:
        return label
    rule = f"decimals name {name!r}, {reason}. Leave it out."
    raise QueryError(rule, parameter="decimals", label=name)


def _unit(count: object) -> float:
    if type(count) is not int or abs(count) > _MOST_DECIMALS:
        rule = f"must be whole numbers from -{_MOST_DECIMALS} to {_MOST_DECIMALS}"
        raise QueryError.about("decimals", rule, count)
    return float(f"1e{-count}")


def _round(column: pd.Series, numbers: Any, unit: float, end: str | None) -> pd.Series:
    """Round the numbers of cells; whole ones stay whole, and missing ones missing."""
    missing = column.isna()
    if end is None:
        numbers_rounded = rounded(numbers, unit)
    else:
        numbers_rounded = outward(numbers, unit, up=end == "high")
    if column.dtype.kind in "mM":
        return pd.Series(numbers_rounded, index=column.index)
    integers = numbers.dtype.kind == "i" and float(unit).is_integer()
    numbers_rounded = np.asarray(numbers_rounded).astype(np.int64) if integers else numbers_rounded
    series = pd.Series(numbers_rounded, index=column.index)
    if missing.any():
        series = series.astype("Int64" if integers else "Float64").mask(missing)
    return series.astype(column.dtype) if integers or column.dtype.kind == "f" else series
