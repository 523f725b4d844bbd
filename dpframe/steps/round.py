"""Round released numbers, and the ends of their intervals outward."""

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.cells.locate import Located
from dpframe.cells.verify import Shown, look
from dpframe.errors import QueryError, quote
from dpframe.inference.outward import known_numbers, outward, rounded
from dpframe.privacy.amounts import as_float
from dpframe.public import public_call

_MOST_DECIMALS = 15  # floats have no more


@public_call
def round(
    released: pd.DataFrame, decimals: int | Mapping[Hashable, int] = 0, *, to: float | None = None
) -> pd.DataFrame:
    """Round the numbers of a release, halves to even, and keep its certificate.

    Rounding by pandas keeps it, too; this rounds ends of intervals to the outside with their
    numbers. Intervals of rounded cells are those of the released ones, rounded outwards.

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
    units = _units(shown, decimals, to)
    opened = shown.opened
    if to is not None:
        opened = opened.changed(units={**opened.table.units, **units})

    def edit(cells: Located, column: pd.Series) -> pd.Series:
        unit = units.get(str(cells.label))
        return column if unit is None else _round(column, unit, _end(shown, str(cells.label)))

    return shown.change(opened, edit)


def _end(shown: Shown, label: str) -> str | None:
    return getattr(shown.opened.columns[label].part.definition, "end", None)


def _units(shown: Shown, decimals: object, to: object) -> dict[str, float]:
    """Return the unit of each column, by its label as JSON; ends go with their numbers."""
    numbers = [label for label in shown.seen if not shown.opened.columns[label].kind]
    sources = {label: source for label in numbers for source in [_source(shown, label)]}
    if isinstance(decimals, Mapping):
        if to is not None:
            raise QueryError.about("to", "is in place of decimals", to, "Give one of them.")
        units = {_named(shown, name, numbers): _unit(count) for name, count in decimals.items()}
    else:
        unit = _unit(decimals) if to is None else _unit_given(to)
        units = dict.fromkeys(numbers, unit)
    if not units:
        why = "there are no numbers to round in this release, or decimals name none"
        way_out = "Times are not rounded: leave the step out, or name columns of numbers."
        raise QueryError(f"{why}. {way_out}", parameter="decimals")
    for label, unit in units.items():
        _check_unit(shown, label, unit)
    return units | {label: units[source] for label, source in sources.items() if source in units}


def _check_unit(shown: Shown, label: str, unit: float) -> None:
    """Refuse a unit by which nothing would be left of a column."""
    column = shown.opened.columns[label]
    largest = np.abs(column.numbers.values[~column.numbers.missing]).max(initial=0)
    if 0 < 2 * largest < unit:
        name = shown.opened.shown_label(label)
        rule = f"decimals would round all of {name!r} to 0"
        raise QueryError(f"{rule}. Give them by column.", parameter="decimals", label=name)


def _source(shown: Shown, label: str) -> str | None:
    """Return the column whose ends of intervals a column holds."""
    own = shown.opened.columns[label].part.definition
    if getattr(own, "end", None) is None:
        return None
    if (
        own is not None and own.call == "derive"
    ):  # beside what was computed, not the released number
        return shown.opened.middle_of(own, shown.opened.columns)
    source = shown.opened.labels_by_name.get(getattr(own, "column", ""), "")
    return source if source in shown.labels else None


def _named(shown: Shown, name: object, numbers: list[str]) -> str:
    """Find a column that decimals name."""
    labels = {shown.opened.shown_label(label): label for label in shown.seen}
    if not is_one_of(name, labels):
        rule = f"must name columns of this table, {quote(list(labels))}"
        raise QueryError.about("decimals", rule, name)
    label = labels[name]
    source = _source(shown, label)
    if source is not None:
        why = f"which is rounded to the outside with {shown.opened.shown_label(source)!r}"
    elif label not in numbers:
        why = "no column of numbers"
    else:
        return label
    rule = f"decimals name {name!r}, {why}. Leave it out."
    raise QueryError(rule, parameter="decimals", label=name)


def _unit(count: object) -> float:
    if type(count) is not int or abs(count) > _MOST_DECIMALS:
        rule = f"must be whole numbers from -{_MOST_DECIMALS} to {_MOST_DECIMALS}"
        raise QueryError.about("decimals", rule, count)
    return float(f"1e{-count}")


def _unit_given(to: object) -> float:
    try:
        unit = as_float(to)
    except (TypeError, ValueError, OverflowError):
        unit = 0.0
    if not 0 < unit < np.inf:
        raise QueryError.about("to", "must be a unit above 0, such as 5", to)
    return unit


def _round(column: pd.Series, unit: float, end: str | None) -> pd.Series:
    """Round cells; whole numbers stay whole, and missing ones missing."""
    missing = column.isna()
    numbers = known_numbers(column)
    if end is None:
        made = rounded(numbers, unit)
    else:
        made = outward(numbers, unit, up=end == "high")
    whole = column.dtype.kind in "iu" and float(unit).is_integer()
    if column.dtype.kind in "iu" and unit < 1:
        return column
    made = np.asarray(made).astype(np.int64) if whole else made
    series = pd.Series(made, index=column.index)
    if missing.any():
        series = series.astype("Int64" if whole else "Float64").mask(missing)
    return series.astype(column.dtype) if whole or column.dtype.kind == "f" else series
