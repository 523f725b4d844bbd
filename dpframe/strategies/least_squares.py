"""Cells from noisy sums of them, by least squares: one table is the cells, others are sums."""

import itertools
from collections.abc import Sequence

import numpy as np

from dpframe.context import cached_property

_REFINED = 3  # times; precisions that are far apart lose half of the digits of a float


def number_values(values: np.ndarray) -> np.ndarray:
    """Return the numbers of values, in the order in which they come first.

    Examples
    --------
    >>> number_values(np.array([7, 2, 7, 5]))
    array([0, 1, 0, 2])
    """
    _, firsts, numbers = np.unique(values, return_index=True, return_inverse=True)
    # sorting twice ranks the values by where they come first
    return np.asarray(np.argsort(np.argsort(firsts))[numbers])


class PossibleCells:
    """Some cells of a product, and of which cells of tables by some of its axes they are part.

    Parameters
    ----------
    sizes
        The numbers of groups of the axes.
    cells
        Positions in the product, row-major.
    """

    def __init__(self, sizes: Sequence[int], cells: np.ndarray) -> None:
        self._sizes = sizes
        self._places = np.unravel_index(cells, sizes)
        self._number = len(cells)

    def positions(self, axes: Sequence[int]) -> np.ndarray:
        """Return by cell the position of that of a table, row-major."""
        positions = np.zeros(self._number, np.int64)
        for axis in axes:
            positions = positions * self._sizes[axis] + self._places[axis]
        return positions

    def in_table(self, axes: Sequence[int]) -> np.ndarray:
        """Return by cell that of a table, numbered by when it comes first."""
        return number_values(self.positions(axes))


class CellSums:
    """Sums of cells, table by table; in the last table, every cell is a sum of its own.

    Parameters
    ----------
    tables
        By table, of which of its sums each cell is part.
    """

    def __init__(self, tables: Sequence[np.ndarray]) -> None:
        self.tables = tables
        self.sizes = [int(table.max()) + 1 for table in tables]
        self.cells = self.sizes[-1]
        self.ends = np.cumsum([0, *self.sizes[:-1]])
        pairs = zip(tables[:-1], self.ends, strict=False)
        self.rows = [table + start for table, start in pairs]

    def add_up(self, values: np.ndarray) -> list[np.ndarray]:
        """Return the sums of all tables; of integers, modulo 2**64."""
        sums = [np.zeros(size, values.dtype) for size in self.sizes]
        for table, totals in zip(self.tables, sums, strict=True):
            np.add.at(totals, table, values)
        return sums

    @cached_property
    def parents(self) -> list[np.ndarray] | None:
        """By table but the last, of which of its sums each one of the next table is part.

        `None` unless each table adds up sums of the next one.
        """
        parents = []
        for table, part, size in zip(self.tables, self.tables[1:], self.sizes[1:], strict=False):
            parent = np.zeros(size, np.int64)
            parent[part] = table
            if (parent[part] != table).any():
                return None
            parents.append(parent)
        return parents

    @cached_property
    def shared(self) -> np.ndarray:
        """How many cells any two sums share, but for those of the last table."""
        shared = np.zeros((int(self.ends[-1]),) * 2)
        for rows, other in itertools.product(self.rows, repeat=2):
            np.add.at(shared, (rows, other), 1)
        return shared


class LeastSquares:
    """Cells whose sums were measured: `X^-1 sum_A s_A A' y_A`, with `X = sum_A s_A A'A`.

    With s of the last table, U the sums of all others, and D the precisions of these,

        X^-1 = (I - U' R U) / s ,  R = (s D^-1 + U U')^-1 .

    Parameters
    ----------
    sums
        What was measured.
    precisions
        By table, the inverse of the variance of a measured sum.
    """

    def __init__(self, sums: CellSums, precisions: Sequence[float]) -> None:
        self._sums = sums
        self.precisions = precisions
        self._precision = precisions[-1]
        self._others = np.repeat(np.asarray(precisions[:-1], np.float64), sums.sizes[:-1])

    @cached_property
    def _inverse(self) -> np.ndarray:
        """The matrix R."""
        return np.asarray(np.linalg.inv(np.diag(self._ratios) + self._sums.shared))

    @property
    def _ratios(self) -> np.ndarray:
        return np.asarray(self._precision / self._others)

    def restore_cells(self, measured: Sequence[np.ndarray]) -> np.ndarray:
        """Return estimates of the cells."""
        weighted = np.zeros(self._sums.cells)
        parts = zip(self._sums.tables, self.precisions, measured, strict=True)
        for table, precision, sums in parts:
            weighted += precision * sums[table]
        return self.solve(weighted)

    def coefficients(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return what each measured sum adds to a weighted sum of cells, table by table."""
        parts = zip(self.precisions, self._sums.add_up(self.solve(weights)), strict=True)
        return [precision * part for precision, part in parts]

    def solve(self, weights: np.ndarray) -> np.ndarray:
        """Return `X^-1` times weights of the cells; what is left over is solved for once more."""
        solved = np.zeros(self._sums.cells)
        left = np.asarray(weights, np.float64)
        for _ in range(_REFINED):
            solved = solved + self._solve_once(left)
            added = zip(self._sums.tables, self.precisions, self._sums.add_up(solved), strict=True)
            left = weights - sum(precision * sums[table] for table, precision, sums in added)
        return solved

    def _solve_once(self, weights: np.ndarray) -> np.ndarray:
        parts = self._sums.add_up(weights)[:-1]
        moved = self._inverse @ np.concatenate([np.zeros(0), *parts])
        back = np.zeros(self._sums.cells)
        for rows in self._sums.rows:
            back += moved[rows]
        return np.asarray((weights - back) / self._precision)

    @cached_property
    def variances(self) -> list[np.ndarray]:
        """The variances of the estimated sums, table by table."""
        of_cells = np.ones(self._sums.cells)
        for rows, other in itertools.product(self._sums.rows, repeat=2):
            of_cells -= self._inverse[rows, other]
        of_sums = np.split(np.diag(self._product) / self._others, self._sums.ends[1:])
        return [*of_sums[:-1], of_cells[np.argsort(self._sums.tables[-1])] / self._precision]

    @cached_property
    def means(self) -> np.ndarray:
        """The mean variance of an estimated sum, by table."""
        if self._sums.parents is not None:
            return self.of_tables()[0]
        return np.array([variances.mean() for variances in self.variances])

    @cached_property
    def _product(self) -> np.ndarray:
        """The matrix `R U U'`, without the differences of large numbers that make it up."""
        return np.asarray(np.eye(len(self._inverse)) - self._inverse * self._ratios)

    def of_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean variance of a sum, by table, and how much the tables move each other.

        That is ``|A X^-1 B'|^2`` for tables A and B, the sum of the squares of all entries.
        """
        parents = self._sums.parents
        if parents is not None:
            return self._of_levels(parents)
        sums, last, inverse = self._sums, self._precision, self._inverse
        product = self._product
        covariances = product.T / self._others  # U X^-1 U'
        beyond = np.diag(inverse) - (inverse**2) @ self._ratios  # of R U U' R
        squares = np.zeros((len(sums.sizes),) * 2)
        if len(inverse):
            starts = sums.ends[:-1]
            rows = np.add.reduceat(covariances**2, starts, axis=0)
            squares[:-1, :-1] = np.add.reduceat(rows, starts, axis=1)
            squares[:-1, -1] = np.add.reduceat(beyond / self._others**2, starts)
            squares[-1, :-1] = squares[:-1, -1]
        of_cells = sums.cells - 2 * np.trace(product) + (product * product.T).sum()
        squares[-1, -1] = of_cells / last**2
        return self.means, squares

    def _of_levels(self, parents: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of nested tables, in one pass up and one down.

        Up, u is the variance of a sum from what is measured of it and below, and w that of the sum
        of its parts; down, v is that from everything. The squares are the slopes of the sums of v
        by precisions, times -1.
        """
        tables = len(self.precisions)
        up, below = [(np.full(self._sums.cells, 1 / self._precision), np.zeros((tables, 1)))], []
        up[0][1][-1] = -(self._precision**-2.0)
        for table in reversed(range(tables - 1)):
            u, slopes = up[-1]
            parent, size = parents[table], self._sums.sizes[table]
            w = np.bincount(parent, u, size)
            by_part = np.broadcast_to(slopes, (tables, len(u)))
            w_slopes = np.array([np.bincount(parent, slope, size) for slope in by_part])
            below.append((w, w_slopes))
            variance = 1 / (self.precisions[table] + 1 / w)
            variance_slopes = w_slopes * (variance / w) ** 2
            variance_slopes[table] -= variance**2
            up.append((variance, variance_slopes))
        v, slopes = up[-1]
        down = [(v, slopes)]
        for parent, (u, u_slopes), (w, w_slopes) in zip(
            parents, up[-2::-1], below[::-1], strict=True
        ):
            part = u / w[parent]
            part_slopes = (u_slopes - part * w_slopes[:, parent]) / w[parent]
            left, left_slopes = (w - v)[parent], (w_slopes - slopes)[:, parent]
            v = u - part**2 * left
            slopes = u_slopes - 2 * part * part_slopes * left - part**2 * left_slopes
            down.append((v, slopes))
        variances = np.array([level.mean() for level, _ in down])
        return variances, -np.array([level.sum(axis=1) for _, level in down])
