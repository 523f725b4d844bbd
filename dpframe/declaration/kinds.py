"""Kinds of values, of which none equals one of another: numbers, texts, dates and times.

A type says which kind a column holds, and so do the values that it is compared with. Types and
values are public here; no row is looked at.
"""

from datetime import date, datetime, timedelta
from functools import lru_cache
from numbers import Number
from typing import Any, TypeAlias

import numpy as np
from pandas.api import types

NUMBER, TEXT, DATE, TIME = "numbers", "texts", "dates", "times"
ZONED = "times with an offset"
DURATION = "durations"
BYTES, MONTHS = "bytes", "intervals in months and days"
OTHER = "other values"
LOCAL = frozenset([DATE, TIME])  # a date is its midnight, but where keys are compared
POINTS = LOCAL | {ZONED}
Kinds: TypeAlias = frozenset[str]
"""Some kinds, of which values may be."""

FOLDERS = "names of folders"
"""The type of a column that names of folders alone say: integers where they are, and else texts."""

_KINDS = {
    "interval": None,
    **dict.fromkeys(("int", "uint", "float", "double", "halffloat", "decimal", "bool"), NUMBER),
    "struct": None,
    **dict.fromkeys(("str", "large_string"), TEXT),
    **dict.fromkeys(("timedelta", "duration"), DURATION),
    **dict.fromkeys(("binary", "large_binary", "fixed_size_binary", "id"), BYTES),
    **dict.fromkeys(("datetime", "timestamp"), TIME),
    "date": DATE,
}
"""The kinds of types, by how their names begin."""


@lru_cache(512)
def kind_of_type(name: str) -> str | None:
    """Say what a type holds, as Arrow, pandas or a plan calls it; `None`: something else.

    Examples
    --------
    >>> [kind_of_type(name) for name in ("bool", "datetime64[us, UTC]", "date32[day]", "struct")]
    ['numbers', 'times with an offset', 'dates', None]
    """
    if name == "datetime-utc" or "tz=" in name or (name.startswith("datetime64") and "," in name):
        return ZONED
    kinds = (kind for start, kind in _KINDS.items() if name.startswith(start))
    return MONTHS if name.endswith("_interval") else next(kinds, None)


def cells_of_dtype(dtype: Any) -> str:
    """Say what cells of a dtype of pandas are called, "timedelta" or as in `[data.types]`."""
    if types.is_bool_dtype(dtype):
        return "bool"
    if types.is_integer_dtype(dtype):
        return "int64"
    if types.is_float_dtype(dtype):
        return "float64"
    if types.is_timedelta64_dtype(dtype):
        return "timedelta"
    if types.is_datetime64_any_dtype(dtype):
        return "datetime-utc" if getattr(dtype, "tz", None) is not None else "datetime"
    return "string"


def can_hold(name: str, numbers: np.ndarray) -> bool:
    """Say whether a type of numbers can hold each of some numbers.

    Examples
    --------
    >>> [can_hold("uint8", np.array([number])) for number in (47, 47.5, 300, 10**30)]
    [True, False, False, False]
    """
    if name.startswith("decimal"):
        return True
    dtype = np.dtype(name)
    try:
        with np.errstate(all="ignore"):
            held = numbers.astype(dtype) == numbers
            if dtype.kind in "iu":  # a float beyond its range becomes any integer
                limits = np.iinfo(dtype)
                held &= (numbers >= limits.min) & (numbers <= limits.max)
    except (OverflowError, TypeError, ValueError):  # objects: a long integer, a complex number
        return False
    return bool(np.all(held))


def kind_of_value(value: object) -> str:
    """Say of which kind a value is."""
    match value:
        case str():
            kind = TEXT
        case bytes():
            kind = BYTES
        case datetime():
            kind = TIME if value.tzinfo is None else ZONED
        case date():
            kind = DATE
        case timedelta() | np.timedelta64():
            kind = DURATION
        case np.datetime64():
            kind = TIME
        case Number() | np.bool_():
            kind = NUMBER
        case _:
            kind = OTHER
    return kind
