"""Read public facts from a pandera schema for frames of pandas, Polars or Ibis.

Checks of all kinds have the same names and statistics, so pandera is never imported.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_scalar

from dpframe.declaration.facts import Column
from dpframe.declaration.kinds import (
    MOST,
    cells_of_dtype,
    check_bounds,
    check_keys,
    check_missing,
    hold_integer,
)
from dpframe.errors import DeclarationError, quote
from dpframe.privacy.amounts import as_number
from dpframe.public import refuse_private
from dpframe.queries.edges import Moment, as_moment

_METADATA = "dpframe"
_OVERRIDES = ("bounds", "keys", "missing")
ORDERED = frozenset(
    {"greater_than", "greater_than_or_equal_to", "less_than", "less_than_or_equal_to", "in_range"}
)
"""The checks of pandera that give ends."""

_STATISTICS = {
    "isin": ["allowed_values"],
    "equal_to": ["value"],
    "greater_than": ["min_value"],
    "greater_than_or_equal_to": ["min_value"],
    "less_than": ["max_value"],
    "less_than_or_equal_to": ["max_value"],
    "in_range": ["min_value", "max_value"],
}
"""What is known of the checks that facts are made of."""


def facts(schema: object) -> Mapping[Hashable, Column]:
    """Derive bounds, keys and integer columns from a pandera schema.

    Bounds come from `ge`, `gt`, `le`, `lt`, `in_range` and from numeric `isin`; keys from `isin`,
    categorical and boolean dtypes; a set of them is sorted, and missing ones are left out. Several
    checks on a column are intersected. A column's
    `metadata={"dpframe": {"bounds": ..., "keys": ..., "missing": ...}}` overrides them.

    Parameters
    ----------
    schema
        A `DataFrameModel` class or a `DataFrameSchema` of pandera.

    Raises
    ------
    DeclarationError
        If it is neither, or what it declares is contradictory.
    """
    named = columns_of(schema).items()
    return MappingProxyType({label: _column(label, column) for label, column in named})


def columns_of(schema: object) -> Mapping[Hashable, Any]:
    """Return the columns that a pandera schema names, by label, and levels of the index with names.

    Levels are the columns that `reset_index` makes of them.
    """
    schema_object = _dataframe_schema(schema)
    levels = {level.name: level for level in _levels(schema_object) if level.name is not None}
    # a regex names no column by itself
    columns = {
        label: column for label, column in schema_object.columns.items() if not _is_regex(column)
    }
    return levels | columns


def _levels(schema: Any) -> Sequence[Any]:
    """List the levels of the index that a schema has."""
    index = getattr(schema, "index", None)
    if index is None:
        return []
    levels: Sequence[Any] = getattr(index, "indexes", [index])
    return levels


def _is_regex(column: Any) -> bool:
    return bool(getattr(column, "regex", False))


def unused(schema: object) -> tuple[str, ...]:
    """List what a schema says that no fact is made of."""
    schema_object = _dataframe_schema(schema)
    ignored = []
    for label, column in schema_object.columns.items():
        if _is_regex(column):
            ignored.append(f"{label!r}: a regex names no column")
    for label, column in columns_of(schema).items():
        checks = [check for check in column.checks if not _is_fact(check)]
        ignored += [f"{label!r}: {check.name or 'a check of its own'}" for check in checks]
    if any(level.name is None and level.checks for level in _levels(schema_object)):
        ignored.append("the index: it has no name. Declare schema.reset_index(), and the frame's")
    ignored += [check.name or "a check of the whole frame" for check in schema_object.checks]
    return tuple(ignored)


def _is_fact(check: Any) -> bool:
    """Whether a check says which values there are; one merely named so has no statistics."""
    return check.name in _STATISTICS and {*_STATISTICS[check.name]} <= {*(check.statistics or {})}


def has_unique(schema: object, labels: Sequence[Hashable]) -> bool:
    """Whether a schema says that no two rows are alike in some columns."""
    schema_object = _dataframe_schema(schema)
    together = schema_object.unique or []
    together = [together] if isinstance(together, str) else together
    alone = [label for label, column in columns_of(schema).items() if column.unique]
    return any(label in labels for label in alone) or (bool(together) and {*together} <= {*labels})


def looks_inferred(schema: object) -> bool:
    """Whether a schema has the form of what `pandera.infer_schema` makes of private values.

    All is coerced, every number has its least and its largest value as checks and no other, and the
    index has no name.
    """
    schema_object = _dataframe_schema(schema)
    (level, *others) = _levels(schema_object) or [None]
    if level is None or level.name is not None or others or not schema_object.coerce:
        return False
    columns = [*schema_object.columns.values()]
    ranged = [column for column in columns if column.checks]
    ends = {"greater_than_or_equal_to", "less_than_or_equal_to"}
    alike = all({check.name for check in column.checks} == ends for column in ranged)
    numeric = [column for column in columns if cells_of_dtype(dtype_of(column)) in _INFERRED]
    return bool(ranged) and alike and ranged == numeric


_INFERRED = ("int64", "float64", "datetime", "datetime-utc", "timedelta")
"""Kinds of cells of which extremes are taken."""


def changes_rows(schema: object) -> str:
    """Name what makes `validate` of a schema return other rows; empty if nothing does."""
    schema_object = _dataframe_schema(schema)
    parts = [*schema_object.columns.values(), *_levels(schema_object)]
    for name in ("coerce", "parsers", "drop_invalid_rows", "add_missing_columns"):
        if any(getattr(part, name, None) for part in (schema_object, *parts)):
            return name
    if any(getattr(part, "default", None) is not None for part in parts):
        return "default"
    return "strict" if schema_object.strict == "filter" else ""


def kinds_of_cells(schema: object) -> dict[Hashable, str]:
    """Say what a schema says of cells, by label.

    Raises
    ------
    DeclarationError
        If a column has no dtype, or is named by a regex.
    """
    kinds: dict[Hashable, str] = {}
    for label, column in _dataframe_schema(schema).columns.items():
        if _is_regex(column):
            rule = f"must name each column that is read: {label!r} is a regex"
            raise DeclarationError(f"types {rule}. Write a column for each.", parameter="types")
    for label, column in columns_of(schema).items():
        dtype = dtype_of(column)
        if column.dtype is None:
            rule = f"must say what {label!r} holds, which has no dtype in the schema"
            remedy = "Write it there, such as Column(int, ...)."
            raise DeclarationError(f"types {rule}. {remedy}", parameter="types", label=label)
        categories = getattr(dtype, "categories", None)
        kinds[label] = cells_of_dtype(dtype if categories is None else categories.dtype)
    return kinds


def optional_columns(schema: object) -> frozenset[Hashable]:
    """Name the columns that a frame may lack."""
    named = columns_of(schema).items()
    return frozenset(label for label, column in named if not getattr(column, "required", True))


def validate(schema: object, frame: pd.DataFrame) -> None:
    """Run the schema on a frame as pandera would; its errors show private values to the curator."""
    _dataframe_schema(schema).validate(frame, lazy=True)


def is_schema(value: object) -> bool:
    """Tell whether an object is a schema of pandera, or a class of one."""
    return _made_of(value) is not None


def _made_of(schema: object) -> Any:
    """Return the schema that a class of one makes, or itself; `None`: it is no schema."""
    schema_object: Any = schema
    if isinstance(schema, type) and hasattr(schema, "to_schema"):
        schema_object = schema.to_schema()
    modules = {kind.__module__.partition(".")[0] for kind in type(schema_object).__mro__}
    return schema_object if "pandera" in modules and hasattr(schema_object, "columns") else None


def _dataframe_schema(schema: object) -> Any:
    schema_object = _made_of(schema)
    if schema_object is not None:
        return schema_object
    rule = "schema must be a pandera DataFrameModel class or DataFrameSchema"
    remedy = "Without one, use bounds=, keys=, missing=."
    raise DeclarationError(f"{rule}, got {type(schema).__name__}. {remedy}", parameter="schema")


def _column(label: Hashable, column: Any) -> Column:
    """Public facts about one column of a schema."""
    dtype = dtype_of(column)
    integer = bool(is_integer_dtype(dtype) or is_bool_dtype(dtype))
    is_text = getattr(dtype, "kind", None) == "U"  # as NumPy calls them
    overrides = _overrides(label, column.metadata)
    refuse_private(
        f"the schema of {label!r}", [overrides, *(check.statistics for check in column.checks)]
    )
    keys: pd.Index | None
    lower, upper, keys = _of_dtype(dtype)
    for check in column.checks:
        low, high, allowed = _of_check(check, integer=integer)
        lower, upper = max(lower, low), min(upper, high)
        if allowed is not None:
            listed = check_keys(label, allowed)
            keys = listed if keys is None else keys[keys.isin(listed)]
    numbers = _numbers(keys)
    if numbers:
        lower, upper = max(lower, min(numbers)), min(upper, max(numbers))
    empty = lower > upper or (integer and not hold_integer(lower, upper))
    if empty and "bounds" not in overrides:
        reason = f"checks of {label!r} contradict each other:"
        remedy = f"none of its values can be >= {lower} and <= {upper}. Correct the schema."
        raise DeclarationError(f"{reason} {remedy}", parameter="schema", label=label)
    # a check may say no more than that a number is finite
    usable = abs(lower) <= MOST and abs(upper) <= MOST
    bounds = overrides.get("bounds", (lower, upper) if usable else _moments(column.checks))
    keys = overrides.get("keys", keys)
    return Column(
        bounds=None if bounds is None else check_bounds(label, bounds, integer=integer),
        keys=None if keys is None else check_keys(label, keys),
        integer=integer,
        missing=check_missing(label, overrides["missing"]) if "missing" in overrides else None,
        source="schema",
        type="string" if isinstance(dtype, pd.StringDtype) or is_text else None,
    )


def dtype_of(column: Any) -> Any:
    """Return the dtype of a column of a schema, as one of pandas; `None`: any."""
    dtype = getattr(column.dtype, "type", None)
    if dtype is None or isinstance(dtype, np.dtype | ExtensionDtype):
        return dtype
    name = str(dtype).lower()
    return next((pandas for prefix, pandas in _DTYPES.items() if name.startswith(prefix)), None)


_DTYPES = {
    "interval": None,
    "int": np.dtype("int64"),
    "uint": np.dtype("int64"),
    "bool": np.dtype("bool"),
    "float": np.dtype("float64"),
    "str": pd.StringDtype(),
    "utf8": pd.StringDtype(),
    "datetime": np.dtype("M8[us]"),
    "timestamp": np.dtype("M8[us]"),
    "duration": np.dtype("m8[us]"),
}
"""Dtypes of pandas for those of Polars and Ibis, by how their names begin."""


def _overrides(label: Hashable, metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return what a column's metadata say instead of its checks."""
    overrides = (metadata or {}).get(_METADATA, {})
    if not isinstance(overrides, Mapping) or not set(overrides) <= set(_OVERRIDES):
        rule = f"must be a dict with some of the keys {', '.join(map(repr, _OVERRIDES))}"
        text = f"metadata[{_METADATA!r}] of {label!r} {rule}; got {quote(overrides)}."
        raise DeclarationError(text, parameter="schema", label=label, value=overrides)
    return overrides


def _of_dtype(dtype: Any) -> tuple[float, float, Any]:
    """Bounds and keys that a dtype alone implies."""
    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
        return -math.inf, math.inf, pd.CategoricalIndex(dtype.categories, dtype=dtype)
    if is_bool_dtype(dtype):
        return 0, 1, pd.Index([False, True])
    return -math.inf, math.inf, None


def _of_check(check: Any, *, integer: bool) -> tuple[float, float, list[Any] | None]:
    """Bounds and keys that one check implies; an open end of integers moves by one."""
    if not _is_fact(check):
        return -math.inf, math.inf, None
    statistics = check.statistics
    if check.name == "isin":
        return -math.inf, math.inf, _present(statistics["allowed_values"])
    if check.name == "equal_to":
        return -math.inf, math.inf, [statistics["value"]]
    low = _number(statistics.get("min_value", -math.inf))
    high = _number(statistics.get("max_value", math.inf))
    if low is None or high is None:
        return -math.inf, math.inf, None
    closed_low = statistics.get("include_min", check.name != "greater_than")
    closed_high = statistics.get("include_max", check.name != "less_than")
    if integer:
        low = low if closed_low or math.isinf(low) else math.floor(low) + 1
        high = high if closed_high or math.isinf(high) else math.ceil(high) - 1
    return low, high, None


def _moments(checks: Any) -> tuple[Moment, Moment] | None:
    """Bounds that are points in time or durations, if checks give both ends."""
    statistics = [check.statistics or {} for check in checks]
    lows, highs = (
        [end for limits in statistics if (end := as_moment(limits.get(name))) is not None]
        for name in ("min_value", "max_value")
    )
    return (max(lows), min(highs)) if lows and highs else None


def _present(values: Any) -> list[Any]:
    """List allowed values but missing ones, of which pandera lets `nullable` decide alone."""
    present = [value for value in values if not (is_scalar(value) and pd.isna(value))]
    return sorted(present, key=_order) if isinstance(values, set | frozenset) else present


def _order(value: object) -> tuple[bool, float, str]:
    """Sort numbers first, then texts; sets have an order of their own in every process."""
    number = _number(value)
    return number is None, number or 0, str(value)


def _numbers(keys: pd.Index | None) -> list[float]:
    """Keys, if they are all numbers."""
    numbers = [] if keys is None else [_number(key) for key in keys]
    return [] if None in numbers else [number for number in numbers if number is not None]


def _number(value: object) -> float | None:
    """Read a number, True as 1; `None` for anything else."""
    try:
        number = as_number(int(value) if isinstance(value, bool | np.bool_) else value)
    except (TypeError, ValueError):
        return None
    return number if isinstance(number, int) else float(number)
