"""What is public about a frame: bounds, keys, privacy unit, caps and neighboring relation."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import check_size, is_data, shown
from dpframe.errors import DeclarationError
from dpframe.html import declaration_html
from dpframe.ledger.ledger import Ledger
from dpframe.privacy.amounts import NO_CAPS, Caps, Neighboring, as_number
from dpframe.queries.timescale import Moment, as_moment, in_use

__all__ = [
    "Bounds",
    "Column",
    "Declaration",
    "check_bounds",
    "check_keys",
    "check_missing",
    "declaration_of",
    "keep_declaration",
    "kept_declaration",
]


Bounds: TypeAlias = tuple[float, float] | tuple[Moment, Moment]
"""Two numbers, two points in time or two durations."""

_ATTRIBUTE = "_dpframe_declaration"
_MARK = "dpframe_declared"
_DECLARED: set[str] = set()  # names of the expressions that declared collections of Dask stand for


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Public facts about one column.

    Parameters
    ----------
    bounds
        `(lower, upper)`: values are clipped to it before they are summed. `None`: not declared.
    keys
        The groups there are, in order. `None`: not declared.
    integer
        Whether the column is declared to hold integers or booleans.
    missing
        Number, point in time or duration that replaces a missing one; `None`: missing values
        contribute nothing.
    source
        Where bounds and keys come from: "schema", "declared" or "call".
    """

    bounds: Bounds | None = None
    keys: pd.Index | None = None
    integer: bool = False
    missing: float | Moment | None = None
    source: str = "declared"


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """Public facts about one frame.

    Parameters
    ----------
    columns
        Facts by column label.
    privacy_unit
        Column that says whom a row belongs to; `None`: each row is a unit.
    caps
        How much of the frame one unit may fill.
    neighboring
        The neighboring relation between units.
    ledger
        Where spends are recorded; `None`: no budget was declared.
    """

    columns: Mapping[Hashable, Column] = field(default_factory=lambda: MappingProxyType({}))
    privacy_unit: Hashable | None = None
    caps: Caps = NO_CAPS
    neighboring: Neighboring = "add_remove"
    ledger: Ledger | None = None

    def column(self, label: Hashable) -> Column:
        """Return what is declared about a column, which may be nothing."""
        return self.columns.get(label, Column())

    def with_facts(
        self,
        *,
        bounds: Mapping[Hashable, object] | None = None,
        keys: Mapping[Hashable, object] | None = None,
        missing: Mapping[Hashable, object] | None = None,
        source: str = "declared",
    ) -> "Declaration":
        """Return a declaration in which the given facts take the place of earlier ones.

        Raises
        ------
        DeclarationError
            If bounds, keys or replacements are not usable.
        """
        columns = dict(self.columns)
        for label, value in _items("bounds", bounds):
            columns[label] = replace(
                columns.get(label, Column()), bounds=check_bounds(label, value), source=source
            )
        for label, value in _items("keys", keys):
            columns[label] = replace(
                columns.get(label, Column()), keys=check_keys(label, value), source=source
            )
        for label, value in _items("missing", missing):
            columns[label] = replace(
                columns.get(label, Column()), missing=check_missing(label, value)
            )
        return replace(self, columns=MappingProxyType(columns))

    def _repr_html_(self) -> str:
        """Show what is declared as tables in a notebook; all of it is public."""
        return declaration_html(self)


def _items(name: str, given: Mapping[Hashable, object] | None) -> Iterable[tuple[Hashable, object]]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise DeclarationError(
            f"{name} must be a dict from column to value, got {type(given).__name__}; "
            f"for instance {name}={{'column': ...}}."
        )
    return given.items()


def check_bounds(label: Hashable, value: object) -> Bounds:
    """Validate the bounds of a column: two finite numbers, times or durations, lower <= upper."""
    if isinstance(value, set | frozenset):
        raise DeclarationError(
            f"bounds of {label!r} must have an order, and a set has none; got {shown(value)}. "
            "Give (lower, upper)."
        )
    try:
        ends = list(value)  # type: ignore[call-overload]
        if any(as_moment(bound) is not None for bound in ends):
            return _check_moments(label, value, ends)
        numbers = [_as_number(bound) for bound in ends]
        lower, upper = numbers
    except (TypeError, ValueError, OverflowError):
        raise DeclarationError(
            f"bounds of {label!r} must be two finite numbers, or two times or durations of one "
            f"kind, as (lower, upper), got {shown(value)}."
        ) from None
    if not all(math.isfinite(bound) for bound in numbers):
        raise DeclarationError(
            f"bounds of {label!r} must be finite, got {shown(value)}. Choose what a value can "
            "reasonably be: values beyond the bounds are clipped."
        )
    return _increasing(label, value, lower, upper)


def _increasing(label: Hashable, value: object, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Check the order of bounds; a TypeError for times with and without a zone, or durations."""
    if lower > upper:
        raise DeclarationError(
            f"bounds of {label!r} must have lower <= upper, got {shown(value)}. Swap them."
        )
    return lower, upper


def _check_moments(label: Hashable, value: object, ends: list[object]) -> Bounds:
    """Validate bounds that are points in time or durations; raise a TypeError if one is not."""
    lower, upper = map(as_moment, ends)
    if lower is None or upper is None:
        raise TypeError
    _increasing(label, value, lower, upper)
    if not in_use(lower) or not in_use(upper):
        raise DeclarationError(
            f"bounds of {label!r} must lie in the years 1 to 9999, got {shown(value)}."
        )
    return lower, upper


def _as_number(value: object) -> float:
    """Read a bound: integers stay exact, everything else becomes a float."""
    number = as_number(value)
    rounded = float(number)  # raises for an integer beyond all floats, which is no bound
    return number if isinstance(number, int) else rounded


def check_missing(label: Hashable, value: object) -> float | Moment:
    """Validate the number, point in time or duration that replaces missing values of a column."""
    moment = as_moment(value)
    if moment is not None and in_use(moment):
        return moment
    try:
        number = _as_number(int(value) if isinstance(value, bool | np.bool_) else value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DeclarationError(
            f"missing[{label!r}] must be a finite number, a time or a duration that replaces "
            f"missing values, got {shown(value)}."
        )
    return number


def check_keys(label: Hashable, value: object) -> pd.Index:
    """Validate the keys of a column: unique, hashable, not missing, at least one, ordered."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise DeclarationError(
            f"keys of {label!r} must be a list of groups, got {shown(value)}; for instance "
            f"keys={{{label!r}: ['A', 'B']}}."
        )
    if isinstance(value, set | frozenset):
        raise DeclarationError(
            f"keys of {label!r} must have an order, and a set has none. Pass sorted(...) of it."
        )
    check_size(f"keys of {label!r}", value)
    if isinstance(value, pd.DataFrame | pd.MultiIndex):
        raise DeclarationError(
            f"keys of {label!r} must be one list of groups, got a {type(value).__name__}. "
            "Combinations of several columns are given in the call: keys=frame."
        )
    try:
        keys = _as_index(value, label)
        "".join(key for key in keys if isinstance(key, str)).encode()
    except UnicodeEncodeError:
        raise DeclarationError(f"keys of {label!r} must be valid Unicode texts.") from None
    except OverflowError:
        raise DeclarationError(
            f"keys of {label!r} must fit in 64 bits where they are numbers."
        ) from None
    if not len(keys):
        raise DeclarationError(f"keys of {label!r} must name at least one group, got none.")
    try:
        distinct = len(set(keys))
    except TypeError:
        raise DeclarationError(f"keys of {label!r} must be hashable.") from None
    if keys.isna().any():
        raise DeclarationError(
            f"keys of {label!r} must not be missing; rows with a missing key are left out. "
            "Fill them in the frame first, to count them as a group of their own."
        )
    if distinct != len(keys):
        again = keys[keys.duplicated()].unique().tolist() or keys.tolist()
        got = shown(value) if is_data(value) else f"{again[:5]!r} more than once"
        raise DeclarationError(
            f"keys of {label!r} must be unique (1, 1.0 and True are the same key), got {got}. Name "
            "each group there can be once, whatever the data hold."
        )
    return keys


def _as_index(value: Iterable[object], label: Hashable) -> pd.Index:
    """Build an index of keys as pandas would, with the column's name."""
    if isinstance(value, pd.Index):
        return value.rename(label)
    if isinstance(value, pd.Series | pd.Categorical):
        return pd.Index(value, dtype=value.dtype, name=label)  # pandas 2 would infer, and warn
    return pd.Index(list(value), name=label, tupleize_cols=False)


def keep_declaration(frame: object, declaration: Declaration) -> None:
    """Keep a declaration on the frame object itself.

    It survives edits in place, and is not carried to copies, filters and merges: a derived frame
    may mix rows, so it must be declared again. A mark in `attrs` tells such a frame apart. pandas
    carries it along, but not when frames with and without it are merged or concatenated: what
    comes out is as if nothing had ever been declared.
    """
    object.__setattr__(frame, _ATTRIBUTE, declaration)
    attrs = getattr(frame, "attrs", None)
    if isinstance(attrs, dict):  # only frames of pandas have any
        attrs[_MARK] = True
    _DECLARED.update(_expressions(frame)[:1])


def kept_declaration(frame: object) -> Declaration | None:
    """Return the declaration kept on a frame object, if any."""
    declaration = getattr(frame, "__dict__", {}).get(_ATTRIBUTE)
    return declaration if isinstance(declaration, Declaration) else None


def declaration_of(frame: object) -> Declaration:
    """Return the declaration of a frame, an empty one where nothing was declared.

    Raises
    ------
    DeclarationError
        If the frame was derived from a declared one.
    """
    declaration = kept_declaration(frame)
    if declaration is not None:
        return declaration
    if _is_derived(frame):
        raise DeclarationError(
            "this frame was derived from a declared frame (a filter, a copy, a new column list, "
            "what was written to files; with Dask, also what is read anew), and its rows may no "
            "longer be what was declared. To use only some rows, query the declared frame with "
            "where='...'; or declare this frame anew with .dp.declare(...), passing ledger= of the "
            "first one to share its budget."
        )
    return Declaration()


def _is_derived(frame: object) -> bool:
    """Whether a frame shows that it was made of a declared one."""
    for one in (frame, getattr(frame, "_meta", None)):  # the latter of Dask
        attrs = getattr(one, "attrs", None)
        if isinstance(attrs, dict) and attrs.get(_MARK):
            return True
    return not _DECLARED.isdisjoint(_expressions(frame))


def _expressions(frame: object) -> list[str]:
    """Name the expressions that a collection of Dask is made of, its own first; none for others."""
    if not hasattr(type(frame), "expr"):
        return []
    try:
        return [node._name for node in frame.expr.walk()]  # type: ignore[attr-defined]
    except Exception:  # its message may hold values
        raise DeclarationError(
            "Dask cannot name this collection, for it is made of objects in memory that have no "
            "hash. Make it with dask.dataframe.from_map, of a function that reads them."
        ) from None
