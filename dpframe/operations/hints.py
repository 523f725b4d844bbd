"""What may be the cause of a line of a diagnosis: private, for the eyes of the curator alone."""

from collections.abc import Hashable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.columns import values
from dpframe.columns.values import COMPLEX, contain_errors
from dpframe.engines.steps import RowTrace, Step, Trace
from dpframe.queries.tasks import Axis, BinAxis
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


def key_hint(found: Trace, step: Step) -> str:
    """Say which keys are not declared, and as what they count if they do."""
    if step.kind == "missing key" or step.axis is None or not isinstance(found, RowTrace):
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


def bounds_hint(
    found: RowTrace, label: Hashable, bounds: Sequence[object], rows: np.ndarray
) -> str:
    """Say so where a column holds nothing that its bounds are of."""
    held, classes = _kinds_in(found.column(label), rows)
    wanted, known = kinds_of(bounds)
    if not classes or classes & known:
        return ""
    return f"bounds are of {wanted}, the column holds {held}: no value can match"


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
