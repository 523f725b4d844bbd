"""Where the cells of a workload lie: along which axes, and in which tables."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias, assert_never

import numpy as np

from dpframe.frozen import frozen
from dpframe.strategies.contrasts import adjoint, place, product_lengths
from dpframe.strategies.least_squares import CellSums, LeastSquares, PossibleCells
from dpframe.strategies.ordered import Window, factors
from dpframe.strategies.prefixes import prefix_products


@frozen(slots=True)
class Dimension:
    """One grouping column, in numbers.

    Parameters
    ----------
    size
        Number of its groups.
    ordered
        Whether they are bins in increasing order, so that adjacent positions are neighbors.
        The groups of a column of keys are all alike.
    hidden
        Whether the last one is of all rows that are in none of the others, and is not released.
    """

    size: int
    ordered: bool
    hidden: bool = False


@frozen(slots=True)
class Domain:
    """Where the cells lie: a product of dimensions, or some cells of it.

    Without dimensions there is one cell.

    Parameters
    ----------
    dimensions
        The grouping columns, the last one varying fastest.
    chosen
        How many cells of the product there are; `None`: all of them.
    margins
        Tables wanted in place of all cells: by which dimensions each is, in increasing order.
    weights
        How much the variance of a cell of each of these tables counts; none: all the same.
    possible
        Positions of the cells of margins that can hold rows, row-major, as int64; `None`: all.

    Examples
    --------
    >>> Domain((Dimension(3, ordered=False), Dimension(4, ordered=True))).size
    12
    """

    dimensions: tuple[Dimension, ...] = ()
    chosen: int | None = None
    margins: tuple[tuple[int, ...], ...] = ()
    weights: tuple[float, ...] = ()
    possible: bytes | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def apart(self) -> bool:
        """Whether margins are tables of several queries, which need not add up."""
        return any(dimension.hidden for dimension in self.dimensions)

    @property
    def size(self) -> int:
        """Number of cells; of margins, that of all cells that rows are counted in."""
        if self.margins and self.possible is None:
            return sum(map(self.size_of, largest_sets(self.margins)))
        if self.chosen is not None:
            return self.chosen
        return math.prod(self.sizes)

    def size_of(self, margin: Sequence[int]) -> int:
        """Return the number of cells of a table by some dimensions."""
        return math.prod(self.dimensions[at].size for at in margin)


@lru_cache(64)  # sizes of domains ask again and again
def largest_sets(sets: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Return the sets that are in no other one, in their order: all others are sums of them.

    Examples
    --------
    >>> largest_sets(((), (0,), (1,), (0, 2)))
    ((1,), (0, 2))
    """
    as_sets = [frozenset(axes) for axes in sets]
    pairs = zip(sets, as_sets, strict=True)
    return tuple(axes for axes, members in pairs if not any(members < other for other in as_sets))


@frozen(slots=True)
class MarginStructure:
    """The covariance of all cells of a margin, layer by layer.

    With the rows r of a layer as in `contrasts`, the cells are `sum_r C_r z_r / |r|^2`, where the
    z_r are uncorrelated, with variances `tau^2 |h|^2 + rounding`. Tau is that of the layer, and |h|
    the length of the contrasts in the row, without the sums along other axes. So

        Var(sum_x l_x cell_x) = sum_r (tau^2 |h|^2 + rounding) (sum_x l_x C_rx / |r|^2)^2 .

    Parameters
    ----------
    kind
        "margins": a layer has contrasts along some axes, and sums along all others. "sums": a layer
        has the sums of possible cells over all axes but its own, and cells are read off them by
        least squares.
    sizes
        How many cells there are along each axis; of sums, those of all axes of all tables.
    layers
        Along which axes there are contrasts.
    tau
        By layer, the scale of the noise of a row whose contrasts have length 1.
    rounding
        Variance that rounding adds to the noise of a row.
    cells
        Of sums, positions of the possible cells in the product of all axes, row-major.
    table
        Of sums, the position of the layer that is the table.

    Examples
    --------
    >>> layers = (), (0,), (1,), (0, 1)
    >>> table = MarginStructure("margins", (2, 3), layers, (3.0, 4.0, 4.0, 5.0), 0.0)
    >>> weights = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])  # the first group of the first axis
    >>> round(table.variance(weights), 3)
    10.25
    """

    kind: Literal["margins", "sums"]
    sizes: tuple[int, ...]
    layers: tuple[tuple[int, ...], ...]
    tau: tuple[float, ...]
    rounding: float
    cells: tuple[int, ...] = ()
    table: int = 0

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell; they differ by rounding alone, and this is the largest."""
        first = np.zeros(math.prod(self.sizes))
        first[0] = 1
        return math.sqrt(self.variance(first))

    @property
    def deviations(self) -> float | np.ndarray:
        """Standard deviations of all cells; of sums, each has its own."""
        if self.kind != "sums":
            return self.deviation
        return np.asarray(np.sqrt(_solved(self)[0].variances[self.table]))

    def variance(self, weights: np.ndarray) -> float:
        """Return the variance of a weighted sum of cells.

        Parameters
        ----------
        weights
            One per cell of the table, row-major.
        """
        rows = zip(self.coefficients(weights), self.variances(), strict=True)
        return math.fsum(float((part * part * variances).sum()) for part, variances in rows)

    def variances(self) -> list[np.ndarray]:
        """Return the variances of the noise of the rows of every layer, as they are shaped."""
        if self.kind == "sums":
            return [np.square([tau]) for tau in self.tau]
        layers = zip(self.layers, self.tau, strict=True)
        return [
            np.square(tau) * product_lengths(self.sizes[k] for k in layer) + self.rounding
            for layer, tau in layers
        ]

    def coefficients(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return what each row adds to a weighted sum of cells: `sum_x l_x C_rx / |r|^2`."""
        match self.kind:
            case "margins":
                return self._of_margins(weights)
            case "sums":
                solver, table = _solved(self)
                return solver.coefficients(np.asarray(weights, np.float64)[table])
            case _:
                assert_never(self.kind)

    def _of_margins(self, weights: np.ndarray) -> list[np.ndarray]:
        """Take the contrasts along the axes of each layer, and the sums along the others."""
        axes = range(len(self.sizes))
        along = adjoint(np.reshape(weights, self.sizes), axes)
        return [along[place(axes, layer)] for layer in self.layers]


@lru_cache(16)  # many sums of the same cells are weighed
def _solved(structure: MarginStructure) -> tuple[LeastSquares, np.ndarray]:
    """Return how cells of sums are estimated, and by possible cell that of the table."""
    cells = PossibleCells(structure.sizes, np.array(structure.cells, np.int64))
    tables = list(map(cells.in_table, structure.layers))
    solver = LeastSquares(CellSums(tables), [tau**-2.0 for tau in structure.tau])
    return solver, tables[structure.table]


@frozen(slots=True)
class TreeStructure:
    """The covariance of the leaves of a tree, or of several that are alike, layer by layer.

    Children of a node are its mean, and what they differ by. That has the covariance `tau^2 L D (D
    G D)^(-1/2) D L`, with D^2 the weights of the layer, G as `ordered.gram_of` says, and L as
    `ordered.factors` does, where the children are ordered; where all are alike, `tau^2` times the
    identity, on what adds up to 0.

    Parameters
    ----------
    sizes
        How many children a node has, from the root down.
    tau
        The scale of the noise of each layer. Where children are alike, the total comes first.
    weights
        By layer, a weight for each child, where they are ordered. The first layer then has the
        total in it.
    window
        Which sums of leaves were wanted.

    Examples
    --------
    >>> tree = TreeStructure((2, 2), (2.0, 1.0, 3.0))
    >>> tree.variance(np.array([1.0, 0.0, 0.0, 0.0]))
    4.875
    """

    sizes: tuple[int, ...]
    tau: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...] = ()
    window: Window = None

    @property
    def leaves(self) -> int:
        """Number of leaves; some may be there to fill the tree up."""
        return math.prod(self.sizes)

    @property
    def deviation(self) -> float:
        """The largest standard deviation of a leaf."""
        if not self.weights:
            return math.sqrt(self.variance(np.eye(1, self.leaves)))
        variance = 0.0
        for level, tau in enumerate(self.tau):
            inverse = _inverse(self.sizes, level, self.window, self.weights[level])
            largest = float(np.square(inverse).sum(axis=1).max())
            # a child is an equal part of its parent, and what it differs by from the others
            variance = variance / self.sizes[level] ** 2 + tau**2 * largest
        return math.sqrt(variance)

    @property
    def deviations(self) -> float:
        """The deviation that is said of every leaf: the largest."""
        return self.deviation

    def variance(self, weights: np.ndarray) -> float:
        """Return the variance of a weighted sum of leaves.

        Parameters
        ----------
        weights
            One per leaf, of shape (trees, leaves of one); they may end before the last leaf.
        """
        cells = np.atleast_2d(weights)
        means = np.pad(cells, ((0, 0), (0, self.leaves - cells.shape[1])))
        total = 0.0
        for level in reversed(range(len(self.sizes))):
            children = means.reshape(len(cells), -1, self.sizes[level])
            means = children.mean(axis=2)
            if level or not self.weights:
                children = children - means[:, :, None]
            if self.weights:
                inverse = _inverse(self.sizes, level, self.window, self.weights[level])
                children = children @ inverse
            tau = self.tau[level - len(self.sizes)]
            total += tau**2 * float(np.square(children).sum())
        if not self.weights:
            total += self.tau[0] ** 2 * float(np.square(means).sum())
        return total

    def edge_products(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Return what each layer adds to the covariances of `edge_covariances`, times tau^2."""
        tables = [
            _edges(self.sizes, level, self.window, weights)
            for level, weights in enumerate(self.weights)
        ]
        return prefix_products(self.sizes, below, above, tables)

    def edge_covariances(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Return the covariances of the numbers of rows below two edges, for pairs of edges."""
        return np.asarray(self.edge_products(below, above) @ np.square(self.tau))


@lru_cache(16)
def _inverse(
    sizes: tuple[int, ...], level: int, window: Window, weights: tuple[float, ...]
) -> np.ndarray:
    """Return a root of the covariance of the children of a node, for tau of 1."""
    _, inverse = factors(sizes, level, window, weights)
    if level:
        inverse = inverse - inverse.mean(axis=0)
    return inverse


@lru_cache(16)
def _edges(
    sizes: tuple[int, ...], level: int, window: Window, weights: tuple[float, ...]
) -> np.ndarray:
    """Return the covariances of the numbers of rows below the edges between children."""
    inverse = _inverse(sizes, level, window, weights)
    below = np.pad(np.cumsum(inverse, axis=0), ((1, 0), (0, 0)))
    if level:
        below[-1] = 0.0  # exactly
    return np.asarray(below @ below.T)


Structure: TypeAlias = MarginStructure | TreeStructure
"""What is known of the cells of a table that were measured together."""
