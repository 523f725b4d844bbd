"""The layers that tables by some of the same axes share, and the way from tables to them and back.

A layer S holds the contrasts along the axes of S of the sums over all other axes. The cells of a
table by A are made of the layers of all subsets of A, so that tables by A and B share those of the
axes that they share.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.forks import cached_property
from dpframe.strategies.contrasts import contrasts, place, restore_totals, squared_lengths
from dpframe.strategies.domain import Domain, largest_sets
from dpframe.strategies.structure import Structure

Layer = tuple[int, ...]
"""The axes of a table, or those along which there are contrasts, in increasing order."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Tables by sets of axes, and their layers; axes of one cell have no contrasts.

    Parameters
    ----------
    domain
        The axes, and the tables wanted.
    """

    domain: Domain

    @cached_property
    def tables(self) -> tuple[Layer, ...]:
        """The tables wanted, by their axes of more than one cell."""
        return tuple(map(self._apart, self.domain.margins))

    @cached_property
    def count_tables(self) -> tuple[Layer, ...]:
        """The tables in which rows are counted, of which all others are sums."""
        return tuple(map(self._apart, largest_sets(self.domain.margins)))

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """All layers of all tables, the smallest sets first."""
        found = {layer for table in self.count_tables for layer in subsets(table)}
        return tuple(sorted(found, key=lambda layer: (len(layer), layer)))

    def shape(self, table: Layer) -> tuple[int, ...]:
        """Return the sizes of the axes of a table."""
        return tuple(self.domain.dimensions[axis].size for axis in table)

    def shape_of(self, layer: Layer) -> tuple[int, ...]:
        """Return how many contrasts there are along the axes of a layer."""
        return tuple(n - 1 for n in self.shape(layer))

    def spread(self, table: Layer, layer: Layer) -> float:
        """Return what a contrast of a layer adds to a cell, beside its own coefficient."""
        return 1 / self.domain.size_of([axis for axis in table if axis not in layer])

    def variance(self, table: Layer, squares: Mapping[Layer, float]) -> float:
        """Return the variance of a cell, from `tau^2` of the layers."""
        return math.fsum(
            squares[layer]
            * math.prod(1 - 1 / n for n in self.shape(layer))
            * self.spread(table, layer) ** 2
            for layer in subsets(table)
        )

    def rounding_variance(self, table: Layer) -> float:
        """Return the most that variance 1 of every contrast, and of the total, adds to a cell.

        It is the product over the axes of `n^-2 + sum_j 1 / (j (j + 1))^2`, for the first two cells
        of each.
        """
        return math.prod(float((1 / squared_lengths(n) ** 2).sum()) for n in self.shape(table))

    def describe(
        self, table: int, taus: Mapping[Layer, float], scale: float, rounding: float
    ) -> Structure:
        """Say what the covariance of the cells of a table is, by the position of the table."""
        axes = self.domain.margins[table]
        own = list(subsets(self.tables[table]))
        layers = tuple(tuple(axes.index(axis) for axis in layer) for layer in own)
        tau = tuple(scale * taus[layer] for layer in own)
        return Structure("margins", self.shape(axes), layers, tau, rounding)

    def split(self, totals: np.ndarray) -> dict[Layer, np.ndarray]:
        """Take the tables in which rows are counted out of all cells, one after the other."""
        ends = np.cumsum([*map(self.domain.size_of, self.count_tables)])
        parts = np.split(totals, ends[:-1])
        tables = zip(self.count_tables, parts, strict=True)
        return {table: part.reshape(self.shape(table)) for table, part in tables}

    def sum_tables(self, totals: np.ndarray) -> list[np.ndarray]:
        """Return all tables wanted, from the cells in which rows are counted."""
        counted = self.split(totals)
        found = []
        for table in self.tables:
            whole = min((one for one in counted if {*table} <= {*one}), key=self.domain.size_of)
            others = tuple(k for k, axis in enumerate(whole) if axis not in table)
            found.append(counted[whole].sum(others))
        return found

    def contrasts(self, totals: np.ndarray) -> list[np.ndarray]:
        """Return the exact contrasts of all layers, from the cells in which rows are counted."""
        counted = self.split(totals)
        found: dict[Layer, np.ndarray] = {}
        for table, cells in counted.items():
            new = [layer for layer in subsets(table) if layer not in found]
            along = contrasts(cells, range(len(table))) if new else cells
            found |= {layer: along[place(table, layer)] for layer in new}
        return [found[layer] for layer in self.layers]

    def restore_cells(self, measured: Mapping[Layer, np.ndarray]) -> list[np.ndarray]:
        """Return the cells of all tables wanted, from the contrasts of their layers."""
        return [self._restore_table(table, measured).ravel() for table in self.tables]

    def _restore_table(self, table: Layer, measured: Mapping[Layer, np.ndarray]) -> np.ndarray:
        along = np.empty(self.shape(table))
        for layer in subsets(table):
            along[place(table, layer)] = measured[layer]
        return np.asarray(restore_totals(along, range(len(table))) + 0.0)  # no zero is negative

    def _apart(self, axes: Sequence[int]) -> Layer:
        return tuple(axis for axis in axes if self.domain.dimensions[axis].size > 1)


def subsets(table: Layer) -> Iterator[Layer]:
    """Yield all sets of some of the axes of a table, the smallest first."""
    return (layer for k in range(len(table) + 1) for layer in itertools.combinations(table, k))
