"""The public cells of a release, and their numbers of rows where these are public."""

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeGuard

import numpy as np
import pandas as pd

from dpframe.arguments import MOST_GROUPS
from dpframe.cells.record import ATTRIBUTE
from dpframe.declaration.facts import Declaration
from dpframe.declaration.kinds import check_keys, check_nesting, wrong_keys
from dpframe.errors import DeclarationError, QueryError, a_type, quote
from dpframe.plan.columns import no_bounds
from dpframe.privacy.amounts import as_float
from dpframe.queries.binned import bins_of
from dpframe.queries.query import Bins, Query
from dpframe.queries.tasks import Axis, BinAxis, Cells, KeyAxis
from dpframe.strategies.base import PublicRows
from dpframe.strategies.domain import largest_sets


def cells_of(query: Query, declaration: Declaration) -> Cells:
    """Build the cells of a query, exactly the declared groups in declared order.

    Several columns give the product of their keys, the last one varying fastest, unless the call
    names combinations by a frame. The bins of a histogram come last.

    Raises
    ------
    DeclarationError
        If a grouping column has no keys, or they are not usable.
    QueryError
        If the keys given in the call do not fit, or there are too many cells.
    """
    keys = query.keys
    if _is_indexed(keys, query.by):
        keys = keys.index
    if isinstance(keys, pd.MultiIndex):
        keys = _frame_of(keys, query.by)
    if isinstance(keys, pd.DataFrame):
        cells = _combinations(query, keys)
    else:
        call_declaration = _override(query, keys, declaration)
        cells = Cells(tuple(_axis(query, label, call_declaration) for label in query.by))
        cells = _declared_combinations(query, cells, call_declaration)
    if query.margins:
        cells = _in_margins(query, cells)
    if query.bins is not None:
        cells = with_inner(cells, _bins_of(query.bins, declaration))
    if cells.size > MOST_GROUPS:
        rule = f"must make at most {MOST_GROUPS:,} cells, and makes {cells.size:,}"
        remedy = "Name the combinations wanted: keys=frame with one column per name in by."
        raise QueryError.about("by", rule, list(query.by), remedy)
    return cells


def _is_indexed(keys: object, by: Sequence[Hashable]) -> TypeGuard[pd.DataFrame]:
    """Whether a frame names groups by its index, as a released one does."""
    if not isinstance(keys, pd.DataFrame) or set(keys.columns) == set(by):
        return False
    return set(keys.index.names) == set(by)


def _override(query: Query, keys: object, declaration: Declaration) -> Declaration:
    """Replace declared keys by those given in the call."""
    by = query.by
    if keys is None:
        return declaration
    if isinstance(keys, Mapping):
        unknown = [label for label in keys if label not in by]
        if unknown:
            reason = f"keys names {quote(unknown)}, which by={quote(list(by))} does not group by."
            raise QueryError(reason, parameter="keys", label=unknown[0])
        _check_uncut(query, keys)
        return declaration.with_facts(keys=keys, source="call")
    if len(by) != 1:
        rule = "keys must be a dict from column to groups, or a frame of combinations,"
        reason = f"where by={quote(list(by))} does not name a single column."
        raise QueryError(f"{rule} {reason}", parameter="keys")
    _check_uncut(query, by)
    return declaration.with_facts(keys={by[0]: keys}, source="call")


def _check_uncut(query: Query, labels: Iterable[Hashable]) -> None:
    """Refuse keys of a column that brings its own."""
    for label in labels:
        if label in query.cuts:
            reason = f"keys names {label!r}, and by= cuts it: its bins or periods are the keys."
            raise QueryError(f"{reason} Leave it out of keys=.", parameter="keys", label=label)


def _axis(query: Query, label: Hashable, declaration: Declaration) -> Axis:
    axis = query.axis(label, declaration.column(label).keys)
    if axis is None:
        reason = f"no public keys for {label!r}: the groups present in the data would leak."
        remedy = f"Declare them (isin=... in the schema, or keys={{{label!r}: [...]}})."
        cut = "Numbers and times can be cut in the call: by=dpf.cut(...), by=dpf.period(...)."
        if label in declaration.unit_columns:
            cut = "It is of the privacy unit: .dp.units(by=...) counts units, and does not name it."
        raise DeclarationError(f"{reason} {remedy} {cut}", parameter="keys", label=label)
    return axis


def _declared_combinations(query: Query, cells: Cells, declaration: Declaration) -> Cells:
    """Keep the cells that declared combinations leave, in the order of the keys of columns."""
    axes = {axis.column: axis for axis in cells.axes}
    free = [column for column in axes if column not in query.cuts]
    sets = [[name for name in frame.columns if name in free] for frame in declaration.combinations]
    if not any(columns[1:] for columns in sets):
        return cells
    _check_product(cells.axes)
    strides = {column: 1 for column in axes}
    for before, after in itertools.pairwise(reversed(axes)):
        strides[after] = strides[before] * len(axes[before])
    parts, listed = [], set()
    for columns, frame in zip(sets, declaration.combinations, strict=True):
        if columns[1:]:
            _refuse_other({name: query.other[name] for name in columns if name in query.other})
            places = (strides[name] * _positions(frame[name], axes[name].keys) for name in columns)
            parts.append(np.unique(reduce(np.add, places)))
            listed |= {*columns}
    parts += [strides[name] * np.arange(len(axes[name])) for name in axes if name not in listed]
    if math.prod(map(len, parts)) > MOST_GROUPS:  # too many to list; the caller counts them
        return cells
    return Cells(cells.axes, np.sort(reduce(np.add.outer, parts).ravel()))


def _check_product(axes: Sequence[Axis]) -> None:
    """Refuse more combinations than 64 bits number."""
    if math.prod(len(axis) for axis in axes) >= 2**62:
        reason = "keys has too many distinct values to be combined; use fewer columns in by=."
        raise QueryError(reason, parameter="keys")


def _refuse_other(other: Mapping[Hashable, object]) -> None:
    """Refuse a key of all other rows where combinations of keys are named."""
    if other:
        rule = "needs keys by column, and keys= names combinations of them"
        remedy = "Give keys={column: [...]}, or leave other= out."
        raise QueryError.about("other", rule, dict(other), remedy)


def _frame_of(index: pd.MultiIndex, by: Sequence[Hashable]) -> pd.DataFrame:
    """Spread an index of combinations over columns; levels without names follow `by`."""
    nameless = all(name is None for name in index.names) and index.nlevels == len(by)
    frame = index.to_frame(index=False, allow_duplicates=True)
    return frame.set_axis(list(by), axis=1) if nameless else frame


def _combinations(query: Query, frame: pd.DataFrame) -> Cells:
    """Cells for the rows of a frame of keys."""
    by = query.by
    _refuse_other(query.other)
    if not by or not frame.columns.is_unique or set(frame.columns) != set(by):
        rule = f"keys must have exactly the columns of by={quote(list(by))}"
        levels = [name for name in frame.index.names if name is not None]
        beside = f", and {quote(levels)} in the index" if levels else ""
        raise QueryError(f"{rule}, got {quote(list(frame.columns))}{beside}.", parameter="keys")
    axes = tuple(_axis_of(query, frame[label]) for label in by)
    codes = [_positions(frame[axis.column], axis.shown) for axis in axes]
    unknown = [axis.column for axis, code in zip(axes, codes, strict=True) if (code < 0).any()]
    if unknown:
        reason = f"keys has values of {unknown[0]!r} that are none of its bins or periods."
        raise QueryError(reason, parameter="keys", label=unknown[0])
    _check_product(axes)
    chosen = np.ravel_multi_index(codes, [len(axis) for axis in axes]).astype(np.int64)
    if len(np.unique(chosen)) != len(chosen):
        reason = "keys must not name a combination of groups twice; drop duplicates first."
        raise QueryError(reason, parameter="keys")
    return Cells(axes, chosen)


def _axis_of(query: Query, column: pd.Series) -> Axis:
    """Return the groups of a column of a frame of keys."""
    if column.name in query.cuts:
        return query.cuts[column.name].axis
    return KeyAxis(column.name, check_keys(column.name, _distinct(column)))


def _distinct(column: pd.Series) -> pd.Index:
    """Distinct keys in order of appearance."""
    check_nesting(column.name, column)
    try:
        distinct: pd.Index = pd.Index(column.drop_duplicates(), dtype=column.dtype)
    except TypeError:
        raise wrong_keys(column.name, "must be hashable.") from None
    return distinct


def _positions(column: pd.Series, keys: pd.Index) -> np.ndarray:
    positions: np.ndarray = keys.get_indexer(pd.Index(column, dtype=column.dtype))
    return positions


def _in_margins(query: Query, cells: Cells) -> Cells:
    """Count rows in the largest tables, of which all others are sums, or in the possible cells."""
    if cells.chosen is not None and len(cells.chosen) < cells.product:
        return _check_possible(query, cells)
    cells = replace(cells, chosen=None)
    places = {axis.column: at for at, axis in enumerate(cells.axes)}
    margins = tuple(tuple(places[column] for column in columns) for columns in query.margins)
    return replace(cells, margins=largest_sets(margins))


def _check_possible(query: Query, cells: Cells) -> Cells:
    """Refuse tables of so many possible cells that planning them would take very long."""
    sizes = {columns: cells.by_columns(columns).size for columns in query.margins}
    several = sum(size for size in sizes.values() if size < cells.size)
    if cells.size > _MOST_POSSIBLE or several > _MOST_SUMS:
        rule = f"must leave at most {_MOST_POSSIBLE:,} cells and {_MOST_SUMS:,} sums of them"
        reason = f"keys {rule}, and leaves {cells.size:,} and {several:,}."
        remedy = "List fewer tables in columns=, or give keys by column: keys={column: [...]}."
        raise QueryError(f"{reason} {remedy}", parameter="keys")
    return cells


def _bins_of(bins: Bins, declaration: Declaration) -> BinAxis:
    """Return the bins that a query makes, perhaps between the bounds of their column."""
    facts = declaration.with_facts(bounds=bins.bounds, source="call").column(bins.column)
    axis = bins_of(bins, facts.bounds, integer=facts.integer)
    if axis is None:
        raise no_bounds(bins.column, ", or give edges: bins=[...]")
    return axis


def with_inner(cells: Cells, axis: Axis) -> Cells:
    """Split every cell along one more axis."""
    if cells.chosen is None:
        return Cells((*cells.axes, axis))
    n = len(axis)
    chosen = (cells.chosen[:, None] * n + np.arange(n)).ravel()
    return Cells((*cells.axes, axis), chosen)


_MOST_POSSIBLE, _MOST_SUMS = 2**16, 2**10  # a certificate lists cells, and sums are a matrix
_MOST = 1e100  # with bounds of as much, products and squares stay in the range of floats


def known_rows(number: object, cells: Cells) -> PublicRows:
    """Resolve a public number of rows to one number per cell, and its variance.

    Parameters
    ----------
    number
        A number, a series by group, or a pair of one of them and its variance.
    cells
        The groups.

    Raises
    ------
    QueryError
        If it is something else, misses a group, is too large, or is negative or of a release
        without a variance.
    """
    if isinstance(number, pd.Series) and ATTRIBUTE in number.attrs:
        raise _wrong_n(
            "must be exact, and a column of a release has noise. Give its variance, too, the "
            "square of its .dp.std_error: n=(released['n'], variance)."
        )
    rows, spread = number if isinstance(number, tuple) and len(number) == 2 else (number, 0)  # noqa: PLR2004
    variance = _number("the variance of n", spread)
    if isinstance(rows, pd.Series):
        numbers = _by_group(rows, cells)
    else:
        if variance and cells.size > 1:
            raise _wrong_n(
                "with a variance must be a series by group, since the estimates of several "
                f"groups are not the same one; got a single number for {cells.size:,} groups."
            )
        numbers = np.full(cells.size, _number("n", rows))
    # what is not a number is not at most anything
    if not (np.abs(numbers) <= _MOST).all() or (not variance and (numbers < 0).any()):
        remedy = "and >= 0 unless it is an estimate with a variance: n=(series, variance)."
        raise _wrong_n(f"must be at most {_MOST:g} in size, {remedy}")
    return PublicRows(numbers, variance)


def _wrong_n(rule: str) -> QueryError:
    return QueryError(f"n {rule}", parameter="n")


def _number(name: str, value: object) -> float:
    """Read a number that is not too large; the variance must not be negative."""
    number = as_float(value)
    if not abs(number) <= _MOST or (name != "n" and number < 0):
        rule = f"must be a number of at most {_MOST:g} in size, not negative for a variance;"
        remedy = "n= takes a number, a series by group, or a pair of it and its variance."
        raise QueryError(f"{name} {rule} {remedy} Got {a_type(value)}.", parameter="n")
    return number


def _by_group(rows: pd.Series, cells: Cells) -> np.ndarray:
    """Read a series with one number per group, its levels in any order if they are named."""
    dtype = rows.dtype
    if getattr(dtype, "kind", "O") not in "iuf":
        raise _wrong_n(f"must be a series of numbers, got dtype {dtype}.")
    by = [axis.column for axis in cells.axes]
    index = _order_levels(rows.index, by)
    numbers = rows.set_axis(index)
    try:
        missing = cells.index.difference(index, sort=False)
    except (TypeError, ValueError):  # keys of other kinds: none is equal to a group
        missing = cells.index
    if len(missing) or not index.is_unique:
        fault = f"it misses {missing[:3].tolist()!r}." if len(missing) else "some come twice."
        raise _wrong_n(f"must be a series with every group of by={by!r} once in its index; {fault}")
    counts: np.ndarray = numbers.reindex(cells.index).to_numpy(np.float64, na_value=np.nan)
    return counts


def _order_levels(index: pd.Index, by: list[Hashable]) -> pd.Index:
    """Put the levels of an index in the order of the grouping columns."""
    if index.nlevels != max(len(by), 1):
        raise _wrong_n(f"must be a series indexed by {by!r}, got {index.nlevels} levels.")
    names = list(index.names)
    if isinstance(index, pd.MultiIndex) and len(names) > 1 and None not in names:
        if set(names) != set(by):
            raise _wrong_n(f"must be a series indexed by {by!r}, got levels {names!r}.")
        return index.reorder_levels([names.index(label) for label in by])
    return index
