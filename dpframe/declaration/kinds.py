"""Kinds of values, of which none equals one of another: numbers, texts, dates and times.

A type says which kind a column holds, and so do the values that it is compared with. Types and
values are public here; no row is looked at.
"""

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any, TypeAlias

import numpy as np
from pandas.api import types

NUMBER, TEXT, DATE, TIME = "numbers", "texts", "dates", "times"
ZONED = "times with an offset"
LOCAL = frozenset([DATE, TIME])  # a date is its midnight, but where keys are compared
POINTS = LOCAL | {ZONED}
Kinds: TypeAlias = frozenset[str]
"""Some kinds, of which values may be."""

FOLDERS = "names of folders"
"""The type of a column that names of folders alone say: integers where they are, and else texts."""

_NUMERIC = ("int", "uint", "float", "double", "halffloat", "decimal", "bool")
_TEXTUAL = ("string", "large_string", "string_view", "str")
_TEMPORAL = ("date", "timestamp")


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


def can_hold(name: str, text: str, number: float | None) -> bool:
    """Say whether a column of a type can hold a text, or the number that the text is the form of.

    Examples
    --------
    >>> [can_hold("uint8", text, float(text)) for text in ("47", "47.5", "300")]
    [True, False, False]
    >>> can_hold("string", "2024-03", None), can_hold("float64", "2024-03", None)
    (True, False)
    """
    if name == FOLDERS:  # where 03 is 3
        return number is not None or not text.lstrip("-").isdecimal()
    kind = kind_of_type(name)
    if kind != NUMBER or number is None:
        return kind == TEXT
    if name.startswith("decimal"):
        return True
    with np.errstate(over="ignore"):
        limits = np.iinfo(name) if np.dtype(name).kind in "iu" else None
        in_range = limits is None or limits.min <= number <= limits.max
        return in_range and float(np.dtype(name).type(number)) == number


def kind_of_value(value: object) -> str | None:
    """Say of which kind a value is; `None`: of none that is known here."""
    if isinstance(value, str):
        return TEXT
    if isinstance(value, datetime):
        return TIME if value.tzinfo is None else ZONED
    if isinstance(value, date):
        return DATE
    if isinstance(value, np.datetime64):
        return TIME
    number = isinstance(value, int | float | np.integer | np.floating | np.bool_)
    return NUMBER if number and not isinstance(value, np.timedelta64) else None


def kinds_of(values: Iterable[object]) -> Kinds:
    """Say of which kinds some values are; of none, where that of one is not known."""
    kinds = frozenset(map(kind_of_value, values))
    known = frozenset(kind for kind in kinds if kind is not None)
    return known if known == kinds else frozenset()


def moment_of(text: str) -> datetime | None:
    """Read the point in time that a text in ISO form may stand for."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
