"""Made-up rows, from public facts alone: what a pipeline can be tried with where no data are."""

from collections.abc import Hashable, Mapping
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from dpframe.declaration import from_pandera
from dpframe.declaration.facts import Column, Declaration
from dpframe.declaration.kinds import cells_of_dtype
from dpframe.errors import DeclarationError
from dpframe.frozen import frozen
from dpframe.ledger.ledger import Ledger
from dpframe.operations.declare import check_schema, facts_of
from dpframe.privacy.amounts import Budget
from dpframe.privacy.neighbors import Caps, EachRow, Neighboring
from dpframe.provenance import MADE_UP
from dpframe.public import public_call
from dpframe.queries.edges import as_moment
from dpframe.sources.match import cells_of_facts

MOST_ROWS = 10_000_000
"""More made-up rows than this are not made."""

_MISSING = 0.05  # share of the cells that are missing, where a schema allows it
_FAR = 2**61  # integers that are made up are not farther from 0
_SHARING = 4  # units of several columns share the values of one
_TEXTS = 20  # different texts of a column of which nothing else is known
_TEXT_KINDS = ("string", "id")
_DAY = pd.Timedelta(days=1).as_unit("us")
_FIRST = pd.Timestamp("2024-01-01").as_unit("us")
_DEFAULTS: dict[str, tuple[Any, Any]] = {
    "int64": (0, 100),
    "float64": (0, 100),
    "date": (_FIRST, _FIRST + 365 * _DAY),
    "datetime": (_FIRST, _FIRST + 365 * _DAY),
    "datetime-utc": (_FIRST.tz_localize("UTC"), _FIRST.tz_localize("UTC") + 365 * _DAY),
    "timedelta": (0 * _DAY, _DAY),
}
"""Between what values are made up where no bounds say it, by kind."""
_MOMENTS = (pd.Timestamp, pd.Timedelta)
_WITH_MISSING: dict[str, Any] = {"int64": "Int64", "float64": "float64", "bool": "boolean"}
"""The dtypes of columns where a value may be missing, by kind; those of others are inferred."""


@frozen(slots=True)
class CellFacts:
    """What cells of a column hold, beside what is declared."""

    kind: (
        str  # "string", "int64", "float64", "bool", "date", "datetime", "datetime-utc"; "timedelta"
    )
    dtype: Any = None  # the dtype that a schema says; `None`: that of the values
    ends: tuple[Any, Any] = (None, None)  # the ends that checks of a schema give
    nullable: bool = False  # whether a schema allows missing values
    unique: bool = False  # whether a schema wants all values to differ


@public_call
def rehearsal(
    declaration: object = None,
    rows: int = 1000,
    seed: int = 0,
    *,
    nasty: bool = False,
    bounds: Mapping[Hashable, object] | None = None, keys: Mapping[Hashable, object] | None = None,
    privacy_unit: Hashable | list[Hashable] | EachRow | None = None, unit: str | None = None,
    max_rows: int | None = None, max_groups: int | None = None,
    max_rows_per_group: int | None = None, neighboring: Neighboring = "add_remove",
    missing: Mapping[Hashable, object] | None = None, budget: Budget | None = None,
    ledger: Ledger | str | PathLike[str] | None = None, name: str | None = None,
    validate: bool = False, confirmed_public: bool = False,
    types: Mapping[Hashable, str] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Make up rows of a private frame from public facts alone.

    Keys, bounds, caps and types are all that is looked at, so that the rows may be made where no
    data are: on a laptop, in continuous integration. Some units have as many rows as the caps
    allow, and some have more. Equal arguments make equal rows.

    `attrs` of the frame say that its rows are made up: outside a block of `dpframe.testing` it
    is neither declared nor released. Whatever makes a new frame loses that mark, such as a
    `merge`, a `concat` with other frames, named aggregation, `get_dummies` and CSV files: rely on
    the block. With a unit of several columns, units share the values of one.

    Parameters
    ----------
    declaration
        A pandera `DataFrameModel` or `DataFrameSchema`, or what was declared about a frame:
        `frame.dp.declaration`. `None`: the keywords say all.
    rows
        How many rows are made, at most 10,000,000.
    seed
        Another seed makes other rows.
    nasty
        Add what real data have and a declaration does not: missing values, infinite ones, values
        beyond the bounds, groups that are not declared, odd units, all as far as the type of
        the column can hold them. Such rows break the checks of a schema.
    bounds, keys, missing, types, privacy_unit, max_rows, max_groups, max_rows_per_group
        As in `dpframe.declare`, in addition to a schema.
    unit, neighboring, name, budget, ledger, validate, confirmed_public
        May be given as to `dpframe.declare`; they change no row.

    Returns
    -------
    pandas.DataFrame
        The columns of the schema, those that have keys or bounds, and the privacy unit. Checks of
        a schema that are no bounds or keys, such as patterns of texts, are not looked at.

    Raises
    ------
    DeclarationError
        If the facts are not usable, or the number of rows or the seed is no whole number >= 0.

    Examples
    --------
    >>> rides = rehearsal(
    ...     rows=500,
    ...     keys={"zone": ["A", "B"]},
    ...     bounds={"fare": (0, 100)},
    ...     privacy_unit="rider",
    ...     max_rows=10,
    ... )
    >>> sorted(rides.columns), int(rides["rider"].value_counts().max())
    (['fare', 'rider', 'zone'], 20)
    """
    facts = locals()
    declared = getattr(declaration, "declaration", declaration)  # an accessor has one
    if isinstance(declared, Declaration):
        if beside := [name for name in _FACTS if facts.get(name) is not None]:
            remedy = "Declare it, or give a schema and keywords."
            text = f"{beside[0]} is given beside a declaration, which says all. {remedy}"
            raise DeclarationError(text, parameter=beside[0])
        return make_rows(declared, {}, rows, seed, nasty=nasty)
    if declaration is not None:
        check_schema(declaration, validate=validate, confirmed_public=confirmed_public)
    cells = cells_of_schema(declaration)
    return make_rows(facts_of(declaration, facts), cells, rows, seed, nasty=nasty)


_BY_LABEL = ("keys", "bounds", "missing")
_FACTS = (*_BY_LABEL, "privacy_unit", "max_rows", "max_groups", "max_rows_per_group")


def cells_of_schema(schema: object) -> dict[Hashable, CellFacts]:
    """Say what a schema, if there is one, says of the cells of its columns."""
    cells: dict[Hashable, CellFacts] = {}
    if schema is None:
        return cells
    for label, column in from_pandera.columns_of(schema).items():
        kind = cells_of_dtype(from_pandera.dtype_of(column))
        ends = _ends_of_checks(column.checks, kind)
        flags = {"nullable": bool(column.nullable), "unique": bool(column.unique)}
        cells[label] = CellFacts(kind, column.dtype, ends, **flags)
    return cells


def _ends_of_checks(checks: Any, kind: str) -> tuple[Any, Any]:
    """Return the highest lower and the lowest upper end of some checks, moved in where open."""
    lows, highs = [], []
    for check in checks:
        statistics = check.statistics or {}
        if check.name in from_pandera.ORDERED:
            ends = [statistics.get("min_value"), statistics.get("max_value")]
            low, high = (_as_end(end, kind) for end in ends)
            lows += [] if low is None else [low + _open(low, check.name, statistics, "min")]
            highs += [] if high is None else [high - _open(high, check.name, statistics, "max")]
    return max(lows, default=None), min(highs, default=None)


def _as_end(value: Any, kind: str) -> Any:
    """Read an end of values of a kind; `None` for anything else."""
    if kind in ("int64", "float64"):
        finite = isinstance(value, int | float | np.number) and np.isfinite(value)
        return (int if kind == "int64" else float)(value) if finite else None
    return as_moment(value)


def _open(end: Any, name: str, statistics: Mapping[str, Any], which: str) -> Any:
    """Say how far values keep from an end: not at all if it may be reached."""
    is_open = name in ("greater_than", "less_than") or not statistics.get(f"include_{which}", True)
    if isinstance(end, int | float):
        far = 1 if isinstance(end, int) else max(abs(end), 1) / 2**20  # which 32 bits can hold
        return far if is_open else 0
    return pd.Timedelta(microseconds=1 if is_open else 0)


def make_rows(
    declaration: Declaration,
    cells: Mapping[Hashable, CellFacts],
    rows: int,
    seed: int,
    *,
    nasty: bool,
) -> pd.DataFrame:
    """Make up rows of declared columns; what their cells hold is known, or is read off the facts.

    A column of which nothing is known is left out.
    """
    for name, value, most in (("rows", rows, MOST_ROWS), ("seed", seed, 2**63)):
        if type(value) is not int or not 0 <= value <= most:
            rule = f"must be a whole number from 0 to {most:,}"
            raise DeclarationError.about(name, rule, value)
    rng = np.random.default_rng(seed)
    unit = declaration.unit_columns
    labels = dict.fromkeys([*declaration.columns, *unit])
    units = _units(rows, declaration.caps, rng)
    parts = _parts_of_units(declaration, units.number)
    columns = {}
    for label in labels:
        facts = declaration.column(label)
        kind = cells_of_facts(facts) or ("string" if label in unit else None)
        nullable = facts.missing is not None
        held = cells.get(label) or (None if kind is None else CellFacts(kind, nullable=nullable))
        if held is not None:
            values = _column(facts, held, units, rng, parts.get(label))
            values = _with_odd(values, facts, held, rng, nasty=nasty)
            columns[label] = (
                values if held.dtype is None else _with_dtype(values, label, held.dtype)
            )
    for possible in declaration.combinations:  # most rows have one, and the others odd ones
        usual = rng.random(rows) < _POSSIBLE
        drawn = possible.take(rng.integers(len(possible), size=rows))
        for label in [column for column in possible.columns if column in columns]:
            columns[label] = columns[label].mask(usual, drawn[label].array)
    frame = pd.DataFrame(columns, index=pd.RangeIndex(rows))
    frame.attrs[MADE_UP] = True
    return frame


_POSSIBLE = 0.9  # part of rows
_AS_IT_COMES, _IN_ONE, _IN_MANY = range(3)  # how a unit fills groups


@frozen(slots=True)
class _Units:
    """Whom rows belong to, and where their groups are."""

    number: np.ndarray  # of the unit of each row
    place: np.ndarray  # of the row among those of its unit
    spread: np.ndarray  # how the unit fills groups


def _units(rows: int, caps: Caps, rng: np.random.Generator) -> _Units:
    """Make up how many rows units have: some as many as a cap allows, some more, most a few."""
    full = [(caps.rows, _AS_IT_COMES), (caps.rows_per_group, _IN_ONE), (caps.groups, _IN_MANY)]
    sizes = [(cap + more, filling) for cap, filling in full if cap for more in (0, 1)]
    sizes += [(2 * cap, filling) for cap, filling in full if cap]
    most = max([cap for cap, _ in full if cap], default=1)
    kept, left = [], rows
    for size, filling in sizes:
        if size <= left // 2:  # others are to have rows, too
            kept.append((size, filling))
            left -= size
    few = 1 + np.floor(min(most, 10) * rng.random(left) ** 3).astype(np.int64)
    few = few[: int(np.searchsorted(np.cumsum(few), left)) + 1] if left else few
    lengths = np.array([*(size for size, _ in kept), *few], np.int64)
    spread = np.array([*(filling for _, filling in kept), *[_AS_IT_COMES] * len(few)], np.int64)
    number = np.repeat(np.arange(len(lengths)), lengths)[:rows]
    place = (np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths))[:rows]
    order = rng.permutation(rows)
    return _Units(number[order], place[order], spread[number][order])


def _parts_of_units(declaration: Declaration, numbers: np.ndarray) -> dict[Hashable, np.ndarray]:
    """Split the numbers of units into one for each of their columns, like digits.

    Columns that have keys come first, and the last one without them takes what is left.
    """
    keys = {label: declaration.column(label).keys for label in declaration.unit_columns}
    parts = {}
    for label in sorted(keys, key=lambda label: keys[label] is None)[: len(keys) - 1]:
        digits = keys[label]
        numbers, parts[label] = np.divmod(numbers, _SHARING if digits is None else len(digits))
    return parts | {label: numbers for label in keys if label not in parts}


def _column(
    facts: Column,
    cells: CellFacts,
    units: _Units,
    rng: np.random.Generator,
    part: np.ndarray | None,
) -> pd.Series:
    """Make up the values of a column, of the privacy unit if there is a part of its number."""
    rows = len(units.number)
    if cells.unique:
        return _different(cells, facts, np.arange(rows))
    if part is not None and facts.keys is None:
        return _different(cells, facts, part)
    if facts.keys is None:
        return _between(cells.kind, _ends(cells, facts), rows, rng)
    n = len(facts.keys)
    drawn = np.floor(n * rng.random(rows) ** 2).astype(np.int64)  # the first keys more often
    alone, many = units.spread == _IN_ONE, units.spread == _IN_MANY
    at = np.select([alone, many], [units.number, units.place], drawn)
    taken = facts.keys.take((at if part is None else part) % n)
    return pd.Series(taken.array, index=pd.RangeIndex(rows))


def _ends(cells: CellFacts, facts: Column) -> tuple[Any, Any]:
    """Choose between what values are made up: the ends of a schema, of bounds, or the usual."""
    usual = _DEFAULTS.get(cells.kind, (0, 100))
    low, high = cells.ends
    if facts.bounds is not None and isinstance(facts.bounds[0], _MOMENTS) == isinstance(
        usual[0], _MOMENTS
    ):
        low = facts.bounds[0] if low is None else low
        high = facts.bounds[1] if high is None else high
    span = usual[1] - usual[0]
    if low is None:
        low = usual[0] if high is None else min(usual[0], high - span)
    return low, max(usual[1], low + span) if high is None else high


def _different(cells: CellFacts, facts: Column, numbers: np.ndarray) -> pd.Series:
    """Make up a value for each number, another one for another number."""
    kind = cells.kind
    if kind in _TEXT_KINDS:
        return pd.Series([f"made-up {number}" for number in numbers])
    if kind == "bool":
        return pd.Series(numbers % 2 == 1)
    first = _ends(cells, facts)[0]
    if kind in ("int64", "float64"):
        values = numbers + np.ceil(first)
        return pd.Series(values.astype(np.int64 if kind == "int64" else np.float64))
    return _moments(kind, first, numbers.astype(np.int64) * 1_000_000)


def _between(kind: str, ends: tuple[Any, Any], rows: int, rng: np.random.Generator) -> pd.Series:
    """Make up values between two ends, and both ends."""
    share = rng.random(rows)
    share[:2] = (0, 1)[:rows]  # rows of units are in no order
    lower, upper = ends
    if kind in _TEXT_KINDS:
        return pd.Series([f"text {min(1 + int(_TEXTS * u), _TEXTS)}" for u in share])
    if kind == "bool":
        return pd.Series(np.rint(share).astype(bool))
    if kind == "float64":
        return pd.Series(np.clip(lower + (upper - lower) * share, lower, upper).astype(np.float64))
    if kind == "int64":
        low, high = (min(max(int(end), -_FAR), _FAR) for end in (np.ceil(lower), upper))
        steps = max(high - low, 0)
        return pd.Series(low + np.minimum(np.floor((steps + 1) * share), steps).astype(np.int64))
    span = (upper - lower) // pd.Timedelta(microseconds=1)
    return _moments(kind, lower, np.floor(span * share).astype(np.int64))


def _moments(kind: str, first: Any, microseconds: np.ndarray) -> pd.Series:
    """Return points in time or durations so much later than the first."""
    values = pd.Series(first.as_unit("us") + pd.to_timedelta(microseconds.astype("m8[us]")))
    return pd.Series([value.date() for value in values], dtype=object) if kind == "date" else values


def _with_odd(
    values: pd.Series, facts: Column, cells: CellFacts, rng: np.random.Generator, *, nasty: bool
) -> pd.Series:
    """Put odd values, and missing ones, in the place of some."""
    rows = len(values)
    dtype = getattr(cells.dtype, "type", None)
    has_none = not (isinstance(dtype, np.dtype) and dtype.kind in "iub")
    odd = [value for value in _odd(facts, cells) if _fits(value, dtype)] if nasty else []
    if (nasty or cells.nullable) and has_none and not cells.unique:
        odd = [None] * (1 if nasty else rows) + odd
        count = max(len(odd), rows // 10) if nasty else round(_MISSING * rows)
    else:
        count = max(len(odd), rows // 10) if odd else 0
    places = rng.permutation(rows)[: min(count, rows // 2)]
    if len(places):
        kept = values.tolist()
        for at, place in enumerate(places):
            kept[place] = odd[at % len(odd)]
        values = pd.Series(kept, dtype=_WITH_MISSING.get(cells.kind))
    return values


def _with_dtype(values: pd.Series, label: Hashable, dtype: Any) -> pd.Series:
    """Give a column the dtype of its schema."""
    try:
        converted: pd.Series = dtype.coerce(values)
    except Exception as error:  # pandera and dtypes of others raise anything
        text = f"no values of {label!r} can be made up as {dtype}. Declare keys of it."
        raise DeclarationError(text, parameter="declaration", label=label) from error
    return converted


def _fits(value: object, dtype: Any) -> bool:
    """Whether a dtype of a schema can hold a value."""
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories is None or value in dtype.categories
    kind = getattr(dtype, "numpy_dtype", dtype)
    if isinstance(kind, np.dtype) and kind.kind in "iu" and isinstance(value, int):
        return np.iinfo(kind).min <= value <= np.iinfo(kind).max
    return True


def _odd(facts: Column, cells: CellFacts) -> list[Any]:
    """List values that nothing declares, of the kind of a column."""
    if cells.unique or cells.kind == "bool":
        return []
    if cells.kind == "string":
        first = "made-up 0" if facts.keys is None else str(facts.keys[0])
        return ["", " ", "undeclared", f"{first} ", first.swapcase(), "nan", "e\u0301", "\u200b"]
    lower, upper = _ends(cells, facts)
    if facts.keys is not None and cells.kind in ("int64", "float64"):
        lower, upper = min(facts.keys), max(facts.keys)
    if cells.kind == "int64":
        ends = (int(np.floor(lower)) - 1, int(np.ceil(upper)) + 1, -(2**63), 2**63 - 1)
        return [min(max(end, -(2**63)), 2**63 - 1) for end in ends]
    if cells.kind == "float64":
        below, above = lower - 1 - abs(lower), upper + 1 + abs(upper)
        return [below, above, np.inf, -np.inf, -0.0, 1e308, 5e-324]
    moments = [lower.as_unit("us") - _DAY, upper.as_unit("us") + _DAY]
    return [moment.date() for moment in moments] if cells.kind == "date" else moments
