"""Two-way tables with given sums of rows and columns: the nearest one, and a whole one near it.

Such tables without negative cells are a transport polytope. It holds a table wherever the sums of
rows and those of columns have one total, and its corners are whole where all sums are.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ROUNDS = 100  # real tables need up to 10
RIDGE = 2.0**-24  # of the average row, in Newton steps
TRIES = 30  # of step lengths, each half or twice the one before
SCALINGS = 2  # at the end
CLOSE = 2.0**-40  # of the total: what sums may lack when the search ends
FEW = 2000  # cells, for one program
OPEN = 4  # cells of a larger table to decide on first, for each of its sums
LEANINGS = 20
NOTHING = 2.0**-24  # a cell as close to a whole number is that number


def nearest_table(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the nearest table that has no negative cell, and given sums.

    It minimizes `sum_ij (x_ij - y_ij)^2` over `x >= 0` with `sum_j x_ij = r_i` and
    `sum_i x_ij = c_j`, and is `x_ij = max(y_ij + a_i + b_j, 0)` with levels a and b that give these
    sums. Given a, every b_j is that of a projection on a simplex, by sorting. What is left is a
    concave function of a, whose gradient is what the rows lack, and which is quadratic where the
    set of positive cells stays. Damped Newton steps climb it; they end at the top where that set is
    found. What sums lack then is spread in proportion.

    Sums always hold. Where cells are noise thousands of times larger than the sums, rounds can run
    out before the distance is the least one.

    Parameters
    ----------
    table
        The table y, of shape (m, n).
    rows, columns
        Sums r of its rows and c of its columns, not negative and of one total.
    """
    if table.shape[0] > table.shape[1]:
        return nearest_table(table.T, columns, rows).T
    nearest = np.zeros(table.shape)
    filled = np.ix_(rows > 0, columns > 0)  # elsewhere, levels would have no limit
    if nearest[filled].size:
        r, c = rows[rows > 0], columns[columns > 0]
        nearest[filled] = _completed(_climbed(table[filled], r, c), r, c)
    return nearest


class _Point(NamedTuple):
    """Levels of rows, the table that they make with the best levels of columns, what rows lack."""

    levels: np.ndarray
    table: np.ndarray
    missing: np.ndarray


def _climbed(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return a table whose columns have their sums, and whose rows nearly do."""

    def at(levels: np.ndarray) -> _Point:
        raised = table + levels[:, None]
        made = np.maximum(raised + _levels(raised.T, columns), 0.0)
        missing = rows - made.sum(axis=1)
        return _Point(levels, made, missing - missing.mean())  # together, rounding is all they miss

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
    best: np.ndarray = levels[np.arange(sums.size), np.maximum(positive, 1) - 1]
    return best


def _completed(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
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


def _factors(sums: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return what sums are to be multiplied with: 1 where they are next to nothing."""
    return np.asarray(wanted / np.where(sums > NOTHING * wanted, sums, wanted))


def rounded_table(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Round a table to whole numbers that have given whole sums.

    Every cell is rounded up or down where sums allow that, with the least sum of squared changes of
    all such tables: this is a linear program, whose corners are whole (controlled rounding, Cox and
    Ernst 1982). Where sums do not allow it, cells may go further, at the price of squared changes
    up to one step, and at the price of that step from there on. No cell is negative.

    Parameters
    ----------
    table
        The table, of shape (m, n), without negative cells. Its sums are near the given ones.
    rows, columns
        Whole sums of its rows and columns, not negative and of one total, below 2^52.
    """
    floors = np.floor(table + NOTHING)
    shares = np.clip(table - floors, 0.0, 1.0)
    missing = rows - floors.sum(axis=1), columns - floors.sum(axis=0)
    rounded = floors + _raised(shares, *missing)
    if not _has_sums(rounded, rows, columns):
        rounded = floors + _cheapest(_beyond(floors, shares), *missing).moved
    if not _has_sums(rounded, rows, columns):  # whatever the solver did
        rounded = _filled(floors, rows, columns)
    return np.asarray(rounded)


class _Steps(NamedTuple):
    """Whole steps that cells may go: which cells, up or down, at what price and how many."""

    row: np.ndarray
    column: np.ndarray
    signs: np.ndarray
    prices: np.ndarray
    most: np.ndarray


class _Moves(NamedTuple):
    """The cheapest changes of cells, and what one more in a sum would cost; nan: not known."""

    moved: np.ndarray
    of_rows: np.ndarray
    of_columns: np.ndarray


def _raised(shares: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ones for the cells to round up. If none are allowed, sums are not the given ones.

    A cell with the share f costs `(1 - f)^2 - f^2 = 1 - 2 f`. In a large table, the program decides
    on the cells that lean neither way, and its prices of sums tell whether the others lean right.
    """
    free = np.flatnonzero(shares > NOTHING)
    if not free.size:
        return np.zeros(shares.shape)
    decided = max(FEW, OPEN * sum(shares.shape))
    lean = _leaning(shares, rows, columns) if free.size > decided else shares
    price = 1 - 2 * shares
    order = free[np.argsort(np.abs(lean.flat[free]), kind="stable")]
    while True:
        row, column = np.divmod(order[:decided], shares.shape[1])
        left = np.divmod(order[decided:], shares.shape[1])
        raised = np.zeros(shares.shape)
        raised[left] = lean[left] > 0
        one = np.ones(row.size)
        steps = _Steps(row, column, one, price[row, column], one)
        found = _cheapest(steps, rows - raised.sum(axis=1), columns - raised.sum(axis=0))
        gain = np.where(raised > 0, 1, -1) * (found.of_rows[:, None] + found.of_columns - price)
        if (gain[left] >= -NOTHING).all():
            return np.asarray(raised + found.moved)
        decided *= 4


def _leaning(shares: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return shares plus levels of rows and columns: about as many as needed are above 0."""
    lean = shares
    for _ in range(LEANINGS):
        lean = lean - _middle(lean, rows)[:, None]
        lean = lean - _middle(lean.T, columns)
    return lean


def _middle(table: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return for each row what so many of its cells are above."""
    ordered = -np.sort(-table, axis=1)
    ordered = np.hstack([ordered[:, :1] + 1, ordered, ordered[:, -1:] - 1])
    above = np.clip(counts, 0, table.shape[1]).astype(np.intp)
    rows = np.arange(above.size)
    return np.asarray((ordered[rows, above] + ordered[rows, above + 1]) / 2)


def _beyond(floors: np.ndarray, shares: np.ndarray) -> _Steps:
    """Return steps of all cells: one up, any number further up, and down to 0."""
    row, column = np.divmod(np.arange(floors.size), floors.shape[1])
    f, one = shares.ravel(), np.ones(shares.size)
    return _Steps(
        np.tile(row, 3),
        np.tile(column, 3),
        np.concatenate([one, one, -one]),
        np.concatenate([1 - 2 * f, 3 - 2 * f, 1 + 2 * f]),
        np.concatenate([one, np.full(f.size, np.inf), floors.ravel()]),
    )


def _cheapest(steps: _Steps, rows: np.ndarray, columns: np.ndarray) -> _Moves:
    """Return the cheapest changes of cells that change sums as given, or none where none do."""
    from scipy import sparse  # slow to import, and few releases need them
    from scipy.optimize import linprog

    m, variables = rows.size, np.arange(steps.row.size)
    places = np.append(steps.row, m + steps.column), np.tile(variables, 2)
    sums = sparse.csr_array(
        (np.tile(steps.signs, 2), places), shape=(m + columns.size, variables.size)
    )
    found = linprog(
        steps.prices,
        A_eq=sums,
        b_eq=np.append(rows, columns),
        bounds=np.column_stack([np.zeros(variables.size), steps.most]),
        method="highs-ds",
    )
    moved = np.zeros((m, columns.size))
    if found.status != 0:
        return _Moves(moved, np.full(m, np.nan), np.full(columns.size, np.nan))
    np.add.at(moved, (steps.row, steps.column), steps.signs * np.rint(found.x))
    return _Moves(moved, found.eqlin.marginals[:m], found.eqlin.marginals[m:])


def _has_sums(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> bool:
    return bool(
        table.min(initial=0.0) >= 0
        and np.array_equal(table.sum(axis=1), rows)
        and np.array_equal(table.sum(axis=0), columns)
    )


def _filled(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Take whole numbers off rows and columns with too large sums, and fill up from one corner."""
    table = np.diff(np.minimum(table.cumsum(axis=1), rows[:, None]), axis=1, prepend=0.0)
    table = np.diff(np.minimum(table.cumsum(axis=0), columns), axis=0, prepend=0.0)
    down, across = rows - table.sum(axis=1), columns - table.sum(axis=0)
    low, left = down.cumsum()[:, None], across.cumsum()
    corner = np.minimum(low, left) - np.maximum(low - down[:, None], left - across)
    return np.asarray(table + np.maximum(corner, 0.0))
