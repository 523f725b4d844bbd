"""Kinds of values, of which none equals one of another: numbers, texts, dates and times.

A type says which kind a column holds, and so do the values that it is compared with. Types and
values are public here; no row is looked at.
"""

from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from pandas.api import types

NUMBER, TEXT, DATE, TIME = "numbers", "texts", "dates", "times"
ZONED = "times with an offset"
DURATION = "durations"
LOCAL = frozenset([DATE, TIME])  # a date is its midnight, but where keys are compared
POINTS = LOCAL | {ZONED}
Kinds: TypeAlias = frozenset[str]
"""Some kinds, of which values may be."""

FOLDERS = "names of folders"
"""The type of a column that names of folders alone say: integers where they are, and else texts."""

_NUMERIC = ("int", "uint", "float", "double", "halffloat", "decimal", "bool")
_TEXTUAL = ("string", "large_string", "string_view", "str", "id")
_TEMPORAL = ("date", "timestamp")
_DURATIONS = ("timedelta", "duration")


@lru_cache(512)
def kind_of_type(name: str) -> str | None:
    """Say what a type holds, as Arrow, pandas or a plan calls it; `None`: something else.

    Examples
    --------
    >>> [kind_of_type(name) for name in ("bool", "datetime64[us, UTC]", "date32[day]", "binary")]
    ['numbers', 'times with an offset', 'dates', None]
    """
    if name in _TEXTUAL:
        return TEXT
    if name.startswith(_NUMERIC):
        return None if name.startswith("interval") else NUMBER
    if name.startswith(_DURATIONS):
        return DURATION
    if not name.startswith(_TEMPORAL):
        return None
    if name == "datetime-utc" or "tz=" in name or (name.startswith("datetime64") and "," in name):
        return ZONED
    return DATE if name == "date" or name.startswith(("date32", "date64")) else TIME


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
    >>> [can_hold("uint8", np.array([number])) for number in (47, 47.5, 300)]
    [True, False, False]
    """
    if name.startswith("decimal"):
        return True
    dtype = np.dtype(name)
    with np.errstate(all="ignore"):
        held = numbers.astype(dtype) == numbers
    if dtype.kind in "iu":  # a float beyond its range becomes any integer
        limits = np.iinfo(dtype)
        held &= (numbers >= limits.min) & (numbers <= limits.max)
    return bool(held.all())


def kind_of_value(value: object) -> str | None:
    """Say of which kind a value is; `None`: of none that is known here."""
    if isinstance(value, str):
        return TEXT
    if isinstance(value, datetime):
        return TIME if value.tzinfo is None else ZONED
    if isinstance(value, date):
        return DATE
    if isinstance(value, timedelta | np.timedelta64):
        return DURATION
    if isinstance(value, np.datetime64):
        return TIME
    number = isinstance(value, int | float | np.integer | np.floating | np.bool_)
    return NUMBER if number else None


def moment_of(text: str) -> datetime | None:
    """Read the point in time that a text in ISO form may stand for."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
