"""What is known of the errors of cells that were measured in layers: all covariances."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, assert_never

import numpy as np

from dpframe.strategies.contrasts import adjoint, place, product_lengths, squared_lengths
from dpframe.strategies.least_squares import CellSums, LeastSquares, PossibleCells

StructureKind: TypeAlias = Literal["margins", "tree", "sums"]


@dataclass(frozen=True, slots=True)
class Structure:
    """The covariance of all cells of a table, layer by layer.

    With the rows r of a layer as in `contrasts`, the cells are `sum_r C_r z_r / |r|^2`, where the
    z_r are uncorrelated, with variances `tau^2 |h|^2 + rounding`. Tau is that of the layer, and |h|
    the length of the contrasts in the row, without the sums along other axes. So

        Var(sum_x l_x cell_x) = sum_r (tau^2 |h|^2 + rounding) (sum_x l_x C_rx / |r|^2)^2 .

    Parameters
    ----------
    kind
        "margins": a layer has contrasts along some axes, and sums along all others. "tree": a layer
        has contrasts of the children of every node of a level; cells are leaves, perhaps of several
        trees that are alike, one after the other. "sums": a layer has the sums of possible cells
        over all axes but its own, and cells are read off them by least squares.
    sizes
        How many cells there are along each axis; of a tree, how many children a node has, from the
        root down; of sums, those of all axes of all tables.
    layers
        For margins: along which axes there are contrasts. For a tree: the level of the nodes, from
        1 for the children of the root; none for the total.
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
    >>> table = Structure("margins", (2, 3), ((), (0,), (1,), (0, 1)), (3.0, 4.0, 4.0, 5.0), 0.0)
    >>> weights = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])  # the first group of the first axis
    >>> round(table.variance(weights), 3)
    10.25
    """

    kind: StructureKind
    sizes: tuple[int, ...]
    layers: tuple[tuple[int, ...], ...]
    tau: tuple[float, ...]
    rounding: float
    cells: tuple[int, ...] = ()
    table: int = 0

    @property
    def leaves(self) -> int:
        """Number of cells of a table, or of one tree; some leaves may be there to fill it up."""
        return math.prod(self.sizes)

    @property
    def deviation(self) -> float:
        """Standard deviation of a cell; they differ by rounding alone, and this is the largest."""
        first = np.zeros(self.leaves)
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
            One per cell of the table, row-major; for trees, of shape (trees, cells of one).
        """
        rows = zip(self.coefficients(weights), self.variances(), strict=True)
        return math.fsum(float((part * part * own).sum()) for part, own in rows)

    def variances(self) -> list[np.ndarray]:
        """Return the variances of the noise of the rows of every layer, as they are shaped."""
        if self.kind == "sums":
            return [np.square([tau]) for tau in self.tau]
        layers = zip(self.layers, self.tau, strict=True)
        return [np.square(tau) * self._lengths(layer) + self.rounding for layer, tau in layers]

    def coefficients(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return what each row adds to a weighted sum of cells: `sum_x l_x C_rx / |r|^2`."""
        match self.kind:
            case "margins":
                return self._of_margins(weights)
            case "tree":
                return self._of_tree(weights)
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

    def _of_tree(self, weights: np.ndarray) -> list[np.ndarray]:
        """Go up from the leaves: a parent has the mean of its children."""
        cells = np.atleast_2d(weights)
        filled = np.zeros((len(cells), self.leaves))
        filled[:, : cells.shape[1]] = cells
        found: list[np.ndarray] = []
        for size in reversed(self.sizes):
            along = adjoint(filled.reshape(len(cells), -1, size), [2])
            found.append(along[:, :, 1:])
            filled = along[:, :, 0]
        return [filled, *reversed(found)]

    def _lengths(self, layer: tuple[int, ...]) -> np.ndarray:
        """Return the squared lengths of the contrasts of the rows of a layer."""
        if self.kind == "tree":
            (level,) = layer or (0,)
            return squared_lengths(self.sizes[level - 1])[1:] if level else np.ones(1)
        return product_lengths(self.sizes[k] for k in layer)


@lru_cache(16)  # many sums of the same cells are weighed
def _solved(structure: Structure) -> tuple[LeastSquares, np.ndarray]:
    """Return how cells of sums are estimated, and by possible cell that of the table."""
    cells = PossibleCells(structure.sizes, np.array(structure.cells, np.int64))
    tables = list(map(cells.in_table, structure.layers))
    solver = LeastSquares(CellSums(tables), [tau**-2.0 for tau in structure.tau])
    return solver, tables[structure.table]
