"""Tables of one frame, by sets of its attributes, without negative cells: they still add up.

A table is an array with one axis per attribute of its set. `()` is the set of the total, `(2,)`
that of a one-way table, `(0, 2)` that of a two-way table. Tables *agree* where each is the sum of
any larger one over the attributes that it does not have.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from dpframe.denoise.projection import simplex, whole
from dpframe.denoise.transport import nearest_table, rounded_table
from dpframe.errors import QueryError

Axes: TypeAlias = tuple[int, ...]
"""A set of attributes by their positions, each once."""
Tables: TypeAlias = dict[Axes, np.ndarray]

MOST_WAYS = 2
PRECISE = 40  # binary digits of whole totals: sums of all cells are exact in floats


def can_be_consistent(sets: Iterable[Axes]) -> bool:
    """Whether tables of these sets can be made consistent: none has more than two attributes.

    Two-way tables without negative cells that agree in their sums need not come from any three-way
    table: of three binary attributes, all pairs may have the cells [[0, 1], [1, 0]].

    Examples
    --------
    >>> can_be_consistent([(), (0,), (0, 2)]), can_be_consistent([(0, 1, 2)])
    (True, False)
    """
    return all(len(axes) <= MOST_WAYS for axes in sets)


def consistent_tables(estimates: Mapping[Axes, object], wanted: Iterable[Axes]) -> Tables:
    """Return tables without negative cells that agree, from larger ones down.

    The total is kept, or 0 if it is negative. One-way tables are the nearest ones with that total,
    and two-way tables the nearest ones with the one-way tables as their sums. So cells of a large
    table that are raised to 0 do not change the tables above it. What `estimates` does not hold is
    the sum of a larger table.

    Parameters
    ----------
    estimates
        Tables by sets of at most two attributes. Where they do not agree, as after rounding, the
        smaller ones count.
    wanted
        Sets of the tables to return. Of each, or of a larger one, there is an estimate.

    Returns
    -------
    Tables
        Wanted tables, float64. Sums agree to a part in 10^12 of the total.

    Raises
    ------
    QueryError
        If a set has more than two attributes, there is no estimate for it, or estimates are not
        finite.

    Examples
    --------
    >>> made = consistent_tables({(0, 1): [[5.0, -1.0], [2.0, 4.0]]}, [(), (0,), (0, 1)])
    >>> made[()].item(), made[(0,)].tolist(), made[(0, 1)].round(9).tolist()
    (10.0, [4.0, 6.0], [[4.0, 0.0], [3.0, 3.0]])
    """
    sets = list(wanted)
    given = {axes: _checked(axes, table) for axes, table in estimates.items()}
    exponent = max((_exponent(table) for table in given.values()), default=0)
    small = {axes: np.ldexp(table, -exponent) for axes, table in given.items()}
    total = max(float(_sum_for((), small)), 0.0)
    if any(table.size == 0 for table in given.values()):
        total = 0.0
    total = min(total, float(np.ldexp(1.0, min(1022 - exponent, 1022))))  # sums stay finite
    made = _from_above(small, sets, total, _with_total, nearest_table)
    return {axes: np.asarray(np.ldexp(table, exponent)) for axes, table in made.items()}


def whole_tables(tables: Mapping[Axes, np.ndarray]) -> Tables:
    """Round consistent tables to whole numbers that agree to the last bit.

    The total is rounded to the nearest whole number, one-way tables up or down by the largest
    remainders, and two-way tables up or down where the sums of rows and columns allow it, with the
    least change. Totals from 2^40 on, and all below them, are multiples of a power of 2.

    Parameters
    ----------
    tables
        Tables as `consistent_tables` returns them.

    Returns
    -------
    Tables
        The same sets: whole numbers, not negative, as float64.

    Examples
    --------
    >>> made = whole_tables({(): np.array(2.0), (0, 1): np.array([[0.6, 0.7], [0.5, 0.2]])})
    >>> made[()].item(), made[(0, 1)].tolist()
    (2.0, [[0.0, 1.0], [1.0, 0.0]])
    """
    total = float(_sum_for((), tables))
    unit = np.ldexp(1.0, max(_exponent(np.asarray(total)) - PRECISE, 0))
    in_units = {axes: table / unit for axes, table in tables.items()}
    n = float(np.rint(total / unit))
    made = _from_above(in_units, tables, n, _apportioned, rounded_table)
    return {axes: np.asarray(table * unit) for axes, table in made.items()}


def _from_above(
    tables: Mapping[Axes, np.ndarray],
    sets: Collection[Axes],
    total: float,
    one_way: Callable[[np.ndarray, float], np.ndarray],
    two_way: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
) -> Tables:
    """Change one-way tables given the total, and two-way tables given one-way tables."""
    made: Tables = {(): np.asarray(total)}
    for axis in sorted({axis for axes in sets for axis in axes}):
        made[axis,] = one_way(_sum_for((axis,), tables), total)
    for axes in (axes for axes in sets if len(axes) == MOST_WAYS):
        first, second = axes
        made[axes] = two_way(_sum_for(axes, tables), made[first,], made[second,])
    return {axes: made[axes] for axes in sets}


def _with_total(one: np.ndarray, total: float) -> np.ndarray:
    return simplex(one, 1.0, total=total).values  # the deviation matters for the risk alone


def _apportioned(one: np.ndarray, total: float) -> np.ndarray:
    return whole(one, total=int(total)).values


def _sum_for(axes: Axes, tables: Mapping[Axes, np.ndarray]) -> np.ndarray:
    """Return the table of a set, or the sum of the smallest one that holds it."""
    holding = [held for held in tables if set(axes) <= set(held)]
    if not holding:
        raise QueryError(
            f"there is no estimate from which the table of the attributes {axes!r} follows."
        )
    source = min(holding, key=lambda held: (len(held), tables[held].size, held))
    others = tuple(place for place, axis in enumerate(source) if axis not in axes)
    left = [axis for axis in source if axis in axes]
    summed = np.asarray(tables[source].sum(axis=others))
    return summed.transpose([left.index(axis) for axis in axes])


def _checked(axes: Axes, table: object) -> np.ndarray:
    """Return an estimate as an array of finite floats, with an axis for each attribute."""
    array = np.asarray(table, dtype=np.float64)
    if len(axes) > MOST_WAYS or array.ndim != len(axes) or not np.isfinite(array).all():
        raise QueryError(
            "tables can be made consistent if they have at most two attributes and finite values; "
            f"got the attributes {axes!r} and an array of shape {array.shape}. Ask for ways=2."
        )
    return array


def _exponent(table: np.ndarray) -> int:
    """Return the smallest power of 2 above all absolute values."""
    return int(np.frexp(np.abs(table).max(initial=0.0))[1])
