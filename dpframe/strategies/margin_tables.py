"""Margins that agree, from separate tables with pure noise, by least squares.

A table by A is measured with noise of scale b_A in every cell: a row moves all of them by `sum_A 1
/ b_A`. Its contrasts along the axes of S say as much about layer S as contrasts with noise of
variance `b_A^2 prod_{i in A - S} n_i`, so that the means of what all tables say, weighted by the
inverse of these variances, are the least squares of all cells. Layer by layer, no cell is solved
for. The scales are those for which the weighted sum of the variances of a cell is least.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.forks import cached_property
from dpframe.privacy.laws import Law
from dpframe.privacy.shared_movement import Kernel
from dpframe.strategies import independent, pair
from dpframe.strategies.base import Workload
from dpframe.strategies.contrasts import contrasts
from dpframe.strategies.domain import Domain
from dpframe.strategies.lattice import Lattice, Layer, place, subsets
from dpframe.strategies.layered import LayeredDesign, plan_margins
from dpframe.strategies.structure import Structure

_ABOVE = 1 + 2.0**-48
_LEAST_SHARE = 1e-4  # of an even one, so that no noise is out of range


def apart(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan margins of totals that are measured on their own; `None` if no margins are wanted."""
    return plan_margins(workload, law, independent.design, lambda: _layers(workload.domain, law))


def plan_paired(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan margins of one column that is measured from both of its bounds, if that is possible."""
    return plan_margins(workload, law, pair.design, lambda: _layers(workload.domain, law))


@dataclass(frozen=True, eq=False)
class TableLayers:
    """Cells of all tables wanted, table by table.

    Parameters
    ----------
    lattice
        The tables wanted and their layers.
    law
        Law of the noise.
    shares
        `1 / b` of every table.
    """

    lattice: Lattice
    law: Law
    shares: tuple[float, ...]

    @cached_property
    def kernel(self) -> Kernel:
        """What rows of different cells share: tables of a single cell."""
        own = list(zip(self.lattice.tables, map(Fraction, self.shares), strict=True))
        least = sum((share for table, share in own if not table), start=Fraction(0))
        return Kernel(sum((share for _, share in own), start=Fraction(0)), least)

    @cached_property
    def profile(self) -> np.ndarray:
        """The noise scale of every cell, rounded up."""
        return np.repeat([_ABOVE / share for share in self.shares], self._sizes)

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the cells of all tables."""
        return np.concatenate([table.ravel() for table in self.lattice.sum_tables(totals)])

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the cells of every table, by the weights that are best for wide noise."""
        found = {layer: np.zeros(self.lattice.shape_of(layer)) for layer in self.lattice.layers}
        parts = np.split(measured, np.cumsum(self._sizes)[:-1])
        for table, part, own in zip(self.lattice.tables, parts, self._weights, strict=True):
            along = contrasts(part.reshape(self.lattice.shape(table)), range(len(table)))
            for layer, weight in own.items():
                found[layer] += weight * along[place(table, layer)]
        return self.lattice.restore_cells(found)

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of the cells of every table."""
        squares = {layer: tau**2 for layer, tau in _taus(self, scale).items()}
        return [math.sqrt(self.lattice.variance(table, squares)) for table in self.lattice.tables]

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the same."""
        return self.deviations(scale)

    def describe(self, table: int, scale: float) -> Structure:
        """Say what the covariance of the cells of a table is."""
        return self.lattice.describe(table, _taus(self, scale), 1.0, 0.0)

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.lattice.size(table) for table in self.lattice.tables]

    @cached_property
    def spreads(self) -> list[dict[Layer, float]]:
        """By table, what variance 1 of its cells adds to that of contrasts of length 1."""
        return [
            {layer: weight**2 / self.lattice.spread(table, layer) for layer, weight in own.items()}
            for table, own in zip(self.lattice.tables, self._weights, strict=True)
        ]

    @cached_property
    def _weights(self) -> list[dict[Layer, float]]:
        """By table, the part it has in what is said about its layers."""
        told = [
            {layer: share**2 * self.lattice.spread(table, layer) for layer in subsets(table)}
            for table, share in zip(self.lattice.tables, self.shares, strict=True)
        ]
        whole = dict.fromkeys(self.lattice.layers, 0.0)
        for own in told:
            for layer, precision in own.items():
                whole[layer] += precision
        return [{layer: one / whole[layer] for layer, one in own.items()} for own in told]


@lru_cache(64)  # every table is described from the same
def _taus(layers: TableLayers, scale: float) -> dict[Layer, float]:
    """Return by layer the standard deviation of contrasts of length 1."""
    found = dict.fromkeys(layers.lattice.layers, 0.0)
    for share, own in zip(layers.shares, layers.spreads, strict=True):
        variance = layers.law.standard_deviation(scale * (_ABOVE / share)) ** 2
        for layer, spread in own.items():
            found[layer] += spread * variance
    return {layer: math.sqrt(square) for layer, square in found.items()}


@lru_cache(16)
def _layers(domain: Domain, law: Law) -> TableLayers:
    """Choose the noise of the tables."""
    lattice = Lattice(domain)
    weights = np.array(domain.weights or [1.0] * len(lattice.tables))
    shares = np.maximum(_best_shares(lattice, weights), _LEAST_SHARE / len(weights))
    return TableLayers(lattice, law, tuple(float(share) for share in shares))


def _best_shares(lattice: Lattice, weights: np.ndarray) -> np.ndarray:
    """Minimize the weighted sum of the variances of a cell, for shares that add up to 1.

    With spreads `e = prod_{i in A - S} 1 / n_i`, layer S has the precision `P_S = sum_A e share_A^2
    / 2`, and a cell of table A the variance `sum_S e^2 p_S / P_S`.
    """
    from scipy.optimize import minimize  # slow to import, and not always needed

    at = {layer: k for k, layer in enumerate(lattice.layers)}
    pairs = [
        (k, at[layer], lattice.spread(table, layer))
        for k, table in enumerate(lattice.tables)
        for layer in subsets(table)
    ]
    of_table, of_layer, spread = (np.array(part) for part in zip(*pairs, strict=True))
    moved = np.array([math.prod(1 - 1 / n for n in lattice.shape(s)) for s in lattice.layers])
    charged = moved * np.bincount(of_layer, weights[of_table] * spread**2)

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        raised = np.exp(logs - logs.max())
        shares = raised / raised.sum()
        precisions = np.bincount(of_layer, spread * shares[of_table] ** 2)
        value = (charged / precisions).sum()
        per_layer = -charged / precisions**2
        slopes = 2 * shares * np.bincount(of_table, spread * per_layer[of_layer])
        return math.log(value), shares * (slopes - shares @ slopes) / value

    start = np.log(weights) / 3
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    raised = np.exp(found - found.max())
    return np.asarray(raised / raised.sum())
