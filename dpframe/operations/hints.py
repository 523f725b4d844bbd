"""What may be the cause of a line of a diagnosis: private, for the eyes of the curator alone."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.columns import values
from dpframe.columns.values import contain_errors
from dpframe.declaration.kinds import OTHER, kind_of_value
from dpframe.engines.steps import RowTrace, Step, Trace
from dpframe.queries.tasks import Axis, BinAxis, LabelAxis
from dpframe.queries.where import Condition
from dpframe.sources.match import constants_compared, may_match

_MOST_TEXT = 40  # characters


def _kinds_of(items: Iterable[object]) -> set[str]:
    """Say of what kinds some objects are; one may lie about its class."""
    return {contain_errors(kind_of_value, item, otherwise=OTHER) for item in items}


def _listed(kinds: Iterable[str]) -> str:
    return " and ".join(sorted(kinds))


def in_short(value: object) -> str:
    """Show a private value on one line."""
    text: str = contain_errors(repr, value, otherwise="?")
    return visible(text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "...")


def where_hint(condition: Condition, step: Step, left: np.ndarray, found: Trace) -> str:
    """Say why no row is left by a condition, where some were.

    Parameters
    ----------
    condition
        The condition.
    step
        The rows that do not meet it.
    left
        Mask of the rows that are left after it.
    found
        All rows.
    """
    if step.kind != "where" or left.any() or not step.rows.any():
        return ""
    for label, constant in constants_compared(condition):
        held = _sample(found.column(label), step.rows)
        if len(held) and not may_match(held, constant):
            kind = "a text" if isinstance(constant, str) else "a number"
            written = f"{constant:.6g}" if kind == "a number" else in_short(constant)
            kinds = _listed(_kinds_of(values.objects(held)))
            holds = f"the column {label} holds {kinds}, and these are not compared"
            return f"no row satisfies it: {written} is {kind}, {holds}"
    return "no row satisfies it"


_MOST_OFTEN = 3  # values that are named
_SAMPLE = 1000  # values of a column that say of what kind they are


def key_hint(found: Trace, step: Step) -> str:
    """Say which keys are not declared, and as what they count if they do."""
    if step.axis is None or not isinstance(found, RowTrace):
        return ""
    if isinstance(step.axis, LabelAxis):
        return ""
    if step.kind == "missing key":
        return _read_as_missing(found, step, step.axis)
    seen = _seen_instead(found, step, step.axis) if step.rows.any() else ""
    if step.kind != "moved key":
        return seen
    counted = f"counted {_instead(step.axis)}"
    return "; ".join(filter(None, (counted, seen, _read_as_missing(found, step, step.axis))))


_READ_AS_MISSING = frozenset(
    "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|"
    "nan|null".split("|")
)
"""Texts that `pandas.read_csv` reads as missing by default, as its `na_values` says."""


def _read_as_missing(found: RowTrace, step: Step, axis: Axis) -> str:
    """Say so where rows lack a key, and pandas reads a declared one as missing."""
    if isinstance(axis, BinAxis):
        return ""
    column = values.dense(found.column(axis.column))
    if not (values.missing(column) & step.rows).any():
        return ""
    texts = [key for key in axis.keys.tolist() if isinstance(key, str)]
    lost = _READ_AS_MISSING.intersection(texts).difference(values.texts(column))
    if not lost:
        return ""
    named = " and ".join(map(in_short, sorted(lost)))
    way = "pass it keep_default_na=False, na_values=['']"
    return f"pd.read_csv reads declared keys as missing, {named}: {way}"


def _instead(axis: Axis) -> str:
    """Say where rows count that have none of the keys, or are in no bin."""
    if isinstance(axis, BinAxis):
        return "in the first bin or the last"
    (key,) = axis.keys[-1:].tolist()  # 1998, not np.int64(1998)
    return f"as {in_short(key)}"


def _seen_instead(found: RowTrace, step: Step, axis: Axis) -> str:
    """Say which keys are not declared, or why no row can have one that is."""
    if not found.has_rows_on(axis):
        keys = axis.keys.left if isinstance(axis, BinAxis) else axis.keys
        what = "bins" if isinstance(axis, BinAxis) else "keys"
        wanted = keys[:_SAMPLE].astype(object)
        unlike = _unlike(what, wanted, "row", found.column(axis.column), step.rows)
        if unlike:
            return unlike
    often = found.most_often(axis.column, step.rows, _MOST_OFTEN)
    listed = ", ".join(f"{in_short(value)} ({rows:,})" for value, rows in often)
    return f"most often {listed}" if listed else ""


def _sample(column: pd.Series, rows: np.ndarray) -> pd.Series:
    """Take some values of a column in some rows, and none that is missing."""
    some = values.dense(column).iloc[np.flatnonzero(rows)[:_SAMPLE]]
    return some[~values.missing(some)]


def _unlike(
    what: str, wanted: Iterable[object], none: str, column: pd.Series, rows: np.ndarray
) -> str:
    """Say so where none of the values of a column in some rows is of a kind that is wanted."""
    held = _kinds_of(values.objects(_sample(column, rows)))
    known = _kinds_of(wanted)
    if not held or held & known:
        return ""
    said = f"{what} are {_listed(known)}, the column holds {_listed(held)}"
    return f"{said}: no {none} can match"


def bounds_hint(
    found: RowTrace, label: Hashable, bounds: Iterable[object], rows: np.ndarray
) -> str:
    """Say so where a column holds nothing that its bounds are of."""
    return _unlike("bounds", bounds, "value", found.column(label), rows)


def ids_hint(found: Trace, unit: Sequence[Hashable]) -> str:
    """Say so where ids are numbers in some rows and texts in others: their texts are compared."""
    for label in unit:
        column = found.column(label)
        if values.split_categories(column) is not None or column.dtype != object:
            continue
        texts = sum(text is not None for text in values.texts(column))
        numbers = int((~np.isnan(values.numbers(column))).sum())
        if texts and numbers:
            held = f"{label} is a number in {numbers:,} rows and a text in {texts:,}"
            return f"{held}: 7 and '7' are one unit, '07' is another. Read ids as texts"
    return ""
