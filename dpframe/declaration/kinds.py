"""Kinds of values, of which none equals one of another: numbers, texts, dates and times.

A type says which kind a column holds, and so do the values that it is compared with. Types and
values are public here; no row is looked at.
"""

import math
from collections.abc import Hashable, Iterable
from datetime import date, datetime, timedelta
from functools import lru_cache
from numbers import Number
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types

from dpframe.arguments import check_size, nests_deeply
from dpframe.errors import DeclarationError, a_type, quote
from dpframe.privacy.amounts import as_number
from dpframe.queries.edges import Moment, as_moment, in_use

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


MOST = 1e100
"""Largest size of a bound: sums, their noise and the squares of both stay finite floats."""

Bounds: TypeAlias = tuple[float, float] | tuple[Moment, Moment]
"""Two numbers, two points in time or two durations."""


def _wrong_bounds(label: Hashable, value: object, rule: str, way_out: str = "") -> DeclarationError:
    return DeclarationError.about("bounds", rule, value, way_out, label=label)


def wrong_keys(label: Hashable, rule: str) -> DeclarationError:
    """Make the error about the keys of a column."""
    return DeclarationError(f"keys of {label!r} {rule}", parameter="keys", label=label)


def check_bounds(label: Hashable, value: object, *, integer: bool = False) -> Bounds:
    """Validate the bounds of a column: two finite numbers, times or durations, lower <= upper.

    Those of a column of integers hold one, since values are counted in whole numbers.
    """
    if isinstance(value, set | frozenset):
        raise _wrong_bounds(
            label, value, "must have an order, and a set has none", "Give (lower, upper)."
        )
    try:
        ends = list(value)  # type: ignore[call-overload]
        if any(as_moment(bound) is not None for bound in ends):
            return _check_moments(label, value, ends)
        numbers = [_as_number(bound) for bound in ends]
        lower, upper = numbers
    except (TypeError, ValueError, OverflowError):
        kinds = "two finite numbers, or two times or durations of one kind"
        remedy = "For instance (0, 100)."
        if isinstance(value, list | tuple) and any(isinstance(end, str) for end in value):
            remedy = "Write a time as pd.Timestamp(...)."
        rule = f"must be {kinds}, as (lower, upper)"
        raise _wrong_bounds(label, value, rule, remedy) from None
    if not all(math.isfinite(bound) for bound in numbers):
        remedy = "Choose what a value can reasonably be: values beyond the bounds are clipped."
        raise _wrong_bounds(label, value, "must be finite", remedy)
    if max(map(abs, numbers)) > MOST:
        rule = f"must be at most {MOST:g} in size, so that sums and their noise stay finite"
        remedy = "Choose what a value can reasonably be, or measure the column in a larger unit."
        raise _wrong_bounds(label, value, rule, remedy)
    _increasing(label, value, lower, upper)
    if integer and not hold_integer(lower, upper):
        rule = "must hold a whole number, since the schema declares integers"
        remedy = "Declare the column as float, or give bounds that are whole numbers."
        raise _wrong_bounds(label, value, rule, remedy)
    return lower, upper


def hold_integer(lower: float, upper: float) -> bool:
    """Whether a whole number lies between two ends, which may be infinite."""
    return math.isinf(lower) or math.isinf(upper) or math.ceil(lower) <= upper


def _increasing(label: Hashable, value: object, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Check the order of bounds; a TypeError for times with and without a zone, or durations."""
    if lower > upper:
        raise _wrong_bounds(label, value, "must have lower <= upper", "Swap them.")
    return lower, upper


def _check_moments(label: Hashable, value: object, ends: list[object]) -> Bounds:
    """Validate bounds that are points in time or durations; raise a TypeError if one is not."""
    lower, upper = map(as_moment, ends)
    if lower is None or upper is None:
        raise TypeError
    _increasing(label, value, lower, upper)
    if not in_use(lower) or not in_use(upper):
        raise _wrong_bounds(label, value, "must lie in the years 1 to 9999")
    return lower, upper


def _as_number(value: object) -> float:
    """Read a bound: integers stay exact, everything else becomes a float."""
    number = as_number(value)
    rounded = float(number)  # raises for an integer beyond all floats, which cannot be a bound
    return number if isinstance(number, int) else rounded


def check_missing(label: Hashable, value: object) -> float | Moment | Literal["drop"]:
    """Validate what replaces missing values of a column, or that it is to drop rows with one."""
    if isinstance(value, str) and value == "drop":
        return "drop"
    moment = as_moment(value)
    if moment is not None and in_use(moment):
        return moment
    try:
        number = _as_number(int(value) if isinstance(value, bool | np.bool_) else value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        rule = 'must be a finite number, a time or a duration, or "drop"'
        raise DeclarationError.about("missing", rule, value, label=label)
    return number


TYPES = ("string", "int64", "float64", "bool", "date", "datetime", "datetime-utc", "timedelta")
"""What columns can be declared to hold."""


def check_type(label: Hashable, value: object) -> str:
    """Validate what a column is declared to hold."""
    if not isinstance(value, str) or value not in TYPES:
        rule = f"must be one of {', '.join(TYPES)}"
        raise DeclarationError.about("types", rule, value, label=label)
    return value


def check_keys(label: Hashable, value: object) -> pd.Index:
    """Validate the keys of a column: unique, hashable, not missing, at least one, ordered."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        remedy = f"For instance keys={{{label!r}: ['A', 'B']}}."
        raise DeclarationError.about("keys", "must be a list of groups", value, remedy, label=label)
    if isinstance(value, set | frozenset):
        raise wrong_keys(label, "must have an order, and a set has none. Pass sorted(...) of it.")
    check_size(f"keys of {label!r}", value)
    if isinstance(value, pd.DataFrame | pd.MultiIndex):
        rule = f"must be one list of groups, got {a_type(value)}. Of a released table, give the"
        remedy = "index. Combinations of several columns are given in the call: keys=frame."
        raise wrong_keys(label, f"{rule} {remedy}")
    try:
        keys = _as_index(value, label)
        times = keys.dtype.kind in "mM"  # of which pandas makes objects slowly
        "".join(() if times else (key for key in keys if isinstance(key, str))).encode()
    except UnicodeEncodeError:
        raise wrong_keys(label, "must be valid Unicode texts.") from None
    except OverflowError:
        raise wrong_keys(label, "must fit in 64 bits where they are numbers.") from None
    check_nesting(label, keys)
    if not len(keys):
        raise wrong_keys(label, "must name at least one group, got none.")
    try:
        distinct = keys.nunique(dropna=False) if times else len(set(keys))
    except TypeError:
        raise wrong_keys(label, "must be hashable.") from None
    if keys.isna().any():
        rule = "must not be missing; rows with a missing key are left out."
        remedy = (
            "Write the groups down, and do not take them from the data. To count rows without "
            "one, fill the column in the frame first, and name what you filled in."
        )
        raise wrong_keys(label, f"{rule} {remedy}")
    if distinct != len(keys):
        again = keys[keys.duplicated()].unique().tolist() or keys.tolist()
        plain = isinstance(value, list | tuple)
        got = f"{quote(again[:5])} more than once" if plain else quote(value)
        rule = f"must be unique (1, 1.0 and True are the same key), got {got}."
        remedy = "Name every group there can be once, whatever the data hold."
        raise wrong_keys(label, f"{rule} {remedy}")
    return keys


def check_combinations(label: Hashable, value: pd.DataFrame) -> pd.DataFrame:
    """Validate combinations of groups of some columns: a frame with these, no row twice."""
    columns = label if isinstance(label, tuple) else (label,)
    if len(columns) == 1 or not value.columns.is_unique or {*columns} != {*value.columns}:
        example = "keys={('country', 'region'): frame}"
        rule = "must be a list of groups, or a frame with the columns named"
        got = f"got columns {quote(list(value.columns))}. Of a released table, give the index."
        raise wrong_keys(label, f"{rule}: {example}, {got}")
    for column, keys in value.items():
        check_nesting(column, keys)
    try:
        twice = value.duplicated().any()
    except TypeError:
        raise wrong_keys(label, "must be hashable.") from None
    if twice:
        raise wrong_keys(label, "must not name a combination twice; drop duplicates first.")
    return value[list(columns)].reset_index(drop=True)


def check_nesting(label: Hashable, keys: pd.Index | pd.Series) -> None:
    """Refuse keys that Python cannot hash without an end of the process."""
    if keys.dtype != object:
        return
    if any(not isinstance(key, str | int | float) and nests_deeply(key) for key in keys):
        raise wrong_keys(
            label,
            "must not be nested in more than 16 layers, nor hold more than "
            "65,536 values in one of them. Number the groups, and declare the numbers.",
        )


def _as_index(value: Iterable[object], label: Hashable) -> pd.Index:
    """Build an index of keys as pandas would, with the column's name."""
    if isinstance(value, pd.Index):
        return value.rename(label)
    if isinstance(value, pd.Series | pd.Categorical):
        return pd.Index(value, dtype=value.dtype, name=label)  # pandas 2 would infer, and warn
    return pd.Index(list(value), name=label, tupleize_cols=False)
