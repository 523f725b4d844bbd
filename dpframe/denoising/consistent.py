"""Tables of one frame, by sets of its attributes, without negative cells: they still add up.

A table is an array with one axis per attribute of its set. `()` is the set of the total, `(2,)`
that of a one-way table, `(0, 2)` that of a two-way table. Tables *agree* where each is the sum of
any larger one over the attributes that it does not have.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from dpframe.denoising.projection import onto_simplex, whole
from dpframe.errors import QueryError

ROUNDS = 100  # real tables need up to 10
RIDGE = 2.0**-24  # of the average row, in Newton steps
TRIES = 30  # of step lengths, each half or twice the one before
SCALINGS = 2  # at the end
CLOSE = 2.0**-40  # of the total: what sums may lack when the search ends
NOTHING = 2.0**-24  # a cell as close to a whole number is that number


def nearest_table(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the nearest table that has no negative cell, and given sums.

    It minimizes `sum_ij (x_ij - y_ij)^2` over `x >= 0` with `sum_j x_ij = r_i` and `sum_i x_ij =
    c_j`, and is `x_ij = max(y_ij + a_i + b_j, 0)` with levels a and b that give these sums. Given
    a, every b_j is that of a projection on a simplex. What is left is a concave function of a,
    whose gradient is what the rows lack; damped Newton steps climb it. What sums lack at the end
    is spread in proportion: sums always hold, and where cells are noise thousands of times larger,
    rounds can run out before the distance is the least one.
    """
    # a Newton step solves as many equations as there are rows: take the shorter side
    if table.shape[0] > table.shape[1]:
        return nearest_table(table.T, columns, rows).T
    nearest = np.zeros(table.shape)
    filled = np.ix_(rows > 0, columns > 0)  # elsewhere, levels would have no limit
    if nearest[filled].size:
        r, c = rows[rows > 0], columns[columns > 0]
        nearest[filled] = _complete_sums(_climb(table[filled], r, c), r, c)
    return nearest


class _Point(NamedTuple):
    """Levels of rows, the table that they make with the best levels of columns, what rows lack."""

    levels: np.ndarray
    table: np.ndarray
    missing: np.ndarray


def _climb(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    def at(levels: np.ndarray) -> _Point:
        raised = table + levels[:, None]
        cells = np.maximum(raised + _levels(raised.T, columns), 0.0)
        missing = rows - cells.sum(axis=1)
        # together, rounding is all they miss
        return _Point(levels, cells, missing - missing.mean())

    point = at(np.zeros(rows.size))
    spread = float(np.ptp(table) + rows.max())
    for _ in range(ROUNDS):
        if np.abs(point.missing).max() <= CLOSE * rows.sum():
            break
        further = _along(at, point, _newton(point, spread))
        if further is None:  # as close as floats come
            break
        point = further
    return point.table


def _newton(point: _Point, spread: float) -> np.ndarray:
    """Return the step of levels that closes what is missing, if no cell changes sign.

    A ridge, which vanishes with what is missing, keeps it within the spread of the table: equal
    levels of rows that share no column with others would have to move without limit.
    """
    cells = (point.table > 0).astype(np.float64)
    moved = np.diag(cells.sum(axis=1)) - (cells / np.maximum(cells.sum(axis=0), 1.0)) @ cells.T
    ridge = float(np.abs(point.missing).max()) / spread + RIDGE * (1 + moved.trace() / len(moved))
    return np.linalg.solve(moved + ridge * np.eye(len(moved)), point.missing)


def _along(at: Callable[[np.ndarray], _Point], point: _Point, step: np.ndarray) -> _Point | None:
    """Go along a step until the slope is half of what it was, or less."""
    length, low, high = 1.0, 0.0, np.inf
    slope = float(point.missing @ step)
    for _ in range(TRIES):
        tried = at(point.levels + length * step)
        left = float(tried.missing @ step)
        if abs(left) <= slope / 2:
            return tried
        low, high = (length, high) if left > 0 else (low, length)
        length = 2 * length if np.isinf(high) else (low + high) / 2
    return None


def _levels(table: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return levels t, one per row, such that `sum_j max(y_ij + t_i, 0)` is a given sum above 0."""
    ordered = -np.sort(-table, axis=1)
    levels = (sums[:, None] - np.cumsum(ordered, axis=1)) / np.arange(1, table.shape[1] + 1)
    positive = np.count_nonzero(ordered + levels > 0, axis=1)
    return np.asarray(levels[np.arange(sums.size), np.maximum(positive, 1) - 1])


def _complete_sums(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Scale rows and columns to their sums, which keeps cells at 0, and spread what is missing.

    Where the search came close, nothing is. Altschuler, Weed and Rigollet (2017, Algorithm 2)
    spread in this way.
    """
    scaled = table
    for _ in range(SCALINGS):
        scaled = scaled * _factors(scaled.sum(axis=1), rows)[:, None]
        scaled = scaled * _factors(scaled.sum(axis=0), columns)
    if np.abs(rows - scaled.sum(axis=1)).max() <= CLOSE * rows.sum():
        return scaled
    scaled = scaled * np.minimum(_factors(scaled.sum(axis=1), rows), 1.0)[:, None]
    down = np.maximum(rows - scaled.sum(axis=1), 0.0)
    across = np.maximum(columns - scaled.sum(axis=0), 0.0)
    return np.asarray(scaled + np.outer(down, across / (across.sum() or 1.0)))


def _factors(sums: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return np.asarray(targets / np.where(sums > NOTHING * targets, sums, targets))


def rounded_table(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Round a table to whole numbers that have given whole sums.

    Every cell is rounded up or down where sums allow that, with the least sum of squared changes of
    all such tables: this is a linear program, whose corners are whole (controlled rounding, Cox and
    Ernst 1982). Where sums do not allow it, cells may go further, at the price of squared changes
    up to one step, and at the price of that step from there on. No cell is negative.
    """
    floors = np.floor(table + NOTHING)
    if not floors.size:
        return floors
    shares = np.clip(table - floors, 0.0, 1.0)
    missing = rows - floors.sum(axis=1), columns - floors.sum(axis=0)
    for further in (False, True):
        rounded = floors + _cheapest_steps(floors, shares, *missing, further=further)
        sums = (rounded.sum(axis=1), rows), (rounded.sum(axis=0), columns)
        if rounded.min(initial=0.0) >= 0 and all(np.array_equal(*pair) for pair in sums):
            return np.asarray(rounded)
    return _fill_corner(floors, rows, columns)  # whatever the solver did


def _cheapest_steps(
    floors: np.ndarray, shares: np.ndarray, rows: np.ndarray, columns: np.ndarray, *, further: bool
) -> np.ndarray:
    """Return the cheapest whole steps of cells that change sums as given, or none.

    A cell with the share f costs `(1 - f)^2 - f^2 = 1 - 2 f` one step up. Further, it may go any
    number of steps up, and down to 0.
    """
    from scipy import optimize, sparse  # slow to import, and few releases need them

    (m, n), f = floors.shape, shares.ravel()
    ones, cells = np.ones(f.size), np.arange(f.size)
    sums = np.append(cells // n, m + cells % n)  # each cell is in one of a row, one of a column
    once = sparse.csr_array(
        (np.append(ones, ones), (sums, np.append(cells, cells))), (m + n, f.size)
    )
    kinds = [(1, 1 - 2 * f, ones if further else f > NOTHING)]  # sign, price, most of the steps
    if further:
        kinds += [(1, 3 - 2 * f, np.inf * ones), (-1, 1 + 2 * f, floors.ravel())]
    signs, prices, most = zip(*kinds, strict=True)
    solution = optimize.linprog(
        np.concatenate(prices),
        A_eq=sparse.hstack([sign * once for sign in signs]),
        b_eq=np.append(rows, columns),
        bounds=np.column_stack([np.zeros(f.size * len(kinds)), np.concatenate(most)]),
        method="highs-ds",
    )
    if solution.status != 0:
        return np.zeros(floors.shape)
    steps = np.rint(solution.x).reshape(-1, m, n)
    return np.asarray(np.tensordot(signs, steps, axes=1))


def _fill_corner(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Take whole numbers off rows and columns with too large sums, and fill up from one corner."""
    table = np.diff(np.minimum(table.cumsum(axis=1), rows[:, None]), axis=1, prepend=0.0)
    table = np.diff(np.minimum(table.cumsum(axis=0), columns), axis=0, prepend=0.0)
    down, across = rows - table.sum(axis=1), columns - table.sum(axis=0)
    low, left = down.cumsum()[:, None], across.cumsum()
    corner = np.minimum(low, left) - np.maximum(low - down[:, None], left - across)
    return np.asarray(table + np.maximum(corner, 0.0))


Axes: TypeAlias = tuple[int, ...]
"""A set of attributes by their positions, each once."""
Tables: TypeAlias = dict[Axes, np.ndarray]

# Axes of a table: two-way tables without negative cells that agree need not come from any three-way
# table: of three binary attributes, all pairs may have the cells [[0, 1], [1, 0]]
MOST_WAYS = 2
PRECISE = 40  # binary digits of whole totals: sums of all cells are exact in floats


def consistent_tables(estimates: Mapping[Axes, object], tables: Iterable[Axes]) -> Tables:
    """Return tables without negative cells that agree, from larger ones down.

    The total is kept, or 0 if it is negative. One-way tables are the nearest ones with that total,
    and two-way tables the nearest ones with the one-way tables as their sums. So cells of a large
    table that are raised to 0 do not change the tables above it. What `estimates` does not hold is
    the sum of a larger table.

    Examples
    --------
    >>> made = consistent_tables({(0, 1): [[5.0, -1.0], [2.0, 4.0]]}, [(), (0,), (0, 1)])
    >>> made[()].item(), made[(0,)].tolist(), made[(0, 1)].round(9).tolist()
    (10.0, [4.0, 6.0], [[4.0, 0.0], [3.0, 3.0]])
    """
    sets = list(tables)
    checked = {axes: _check_estimate(axes, table) for axes, table in estimates.items()}
    exponent = max((_exponent(table) for table in checked.values()), default=0)
    small = {axes: np.ldexp(table, -exponent) for axes, table in checked.items()}
    total = max(float(_sum_for((), small)), 0.0)
    if any(table.size == 0 for table in checked.values()):
        total = 0.0
    total = min(total, float(np.ldexp(1.0, min(1022 - exponent, 1022))))  # sums stay finite
    raised = _from_above(small, sets, total, onto_simplex, nearest_table)
    return {axes: np.asarray(np.ldexp(table, exponent)) for axes, table in raised.items()}


def whole_tables(tables: Mapping[Axes, np.ndarray]) -> Tables:
    """Round consistent tables to whole numbers that agree to the last bit.

    The total is rounded to the nearest whole number, one-way tables up or down by the largest
    remainders, and two-way tables up or down where the sums of rows and columns allow it, with the
    least change. Totals from 2^40 on, and all below them, are multiples of a power of 2.

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
    rounded = _from_above(in_units, tables, n, _apportion, rounded_table)
    return {axes: np.asarray(table * unit) for axes, table in rounded.items()}


def _from_above(
    tables: Mapping[Axes, np.ndarray],
    sets: Collection[Axes],
    total: float,
    one_way: Callable[[np.ndarray, float], np.ndarray],
    two_way: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
) -> Tables:
    """Change one-way tables given the total, and two-way tables given one-way tables."""
    finished: Tables = {(): np.asarray(total)}
    for axis in sorted({axis for axes in sets for axis in axes}):
        finished[axis,] = one_way(_sum_for((axis,), tables), total)
    for axes in (axes for axes in sets if len(axes) == MOST_WAYS):
        first, second = axes
        finished[axes] = two_way(_sum_for(axes, tables), finished[first,], finished[second,])
    return {axes: finished[axes] for axes in sets}


def _apportion(table: np.ndarray, total: float) -> np.ndarray:
    return whole(table, total=int(total)).values


def _sum_for(axes: Axes, tables: Mapping[Axes, np.ndarray]) -> np.ndarray:
    """Return the table of a set, or the sum of the smallest one that holds it."""
    holding = [held for held in tables if set(axes) <= set(held)]
    if not holding:
        raise QueryError(f"the table of the attributes {axes!r} follows from no estimate.")
    source = min(holding, key=lambda held: (len(held), tables[held].size, held))
    others = tuple(place for place, axis in enumerate(source) if axis not in axes)
    left = [axis for axis in source if axis in axes]
    summed = np.asarray(tables[source].sum(axis=others))
    return summed.transpose([left.index(axis) for axis in axes])


def _check_estimate(axes: Axes, table: object) -> np.ndarray:
    """Return an estimate as an array of finite floats, with an axis for each attribute."""
    array = np.asarray(table, dtype=np.float64)
    if len(axes) > MOST_WAYS or array.ndim != len(axes) or not np.isfinite(array).all():
        raise QueryError(
            "tables can be made consistent if they have at most two attributes and finite values; "
            f"got the attributes {axes!r} and an array of shape {array.shape}. Ask for ways=2."
        )
    return array


def _exponent(table: np.ndarray) -> int:
    return int(np.frexp(np.abs(table).max(initial=0.0))[1])
