"""Private values in words, for the eyes of the curator alone: of what kinds they are."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.columns.contained import contained
from dpframe.columns.values import COMPLEX

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
    text: str = contained(repr, value, otherwise="?")
    return visible(text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "...")
