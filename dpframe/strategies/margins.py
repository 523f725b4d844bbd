"""Margins that agree: from contrasts with Gaussian noise, or from tables with pure noise.

Layers
    A layer S holds the contrasts along the axes of S of the sums over all other axes. The cells of
    a table by A are made of the layers of all subsets of A, so that tables by A and B share those
    of the axes that they share.

Contrasts
    In layer S, of contrasts along the axes of S, row r is measured with noise of scale `tau_S |r|`.
    One row of the data moves the layer by `p_S / tau_S^2` whatever its cell, with `p_S = prod_{i in
    S} (1 - 1 / n_i)`, the diagonal of a projection. A cell of the table by A has the variance

        sum_{S in A} tau_S^2 p_S prod_{i in A - S} n_i^-2 .

    - **Equal**: with `tau_S^2 = prod_{i in S} (1 + 1 / n_i)` that is 1 for every cell of every
      table, since all terms add up to `prod_{i in A} (1 - n_i^-2 + n_i^-2)`.
    - **Weighted**: for weights w_A of the variance of a cell, it is best to have `tau_S^2`
      proportional to `1 / sqrt(q_S)`, with `q_S = sum_{A > S} w_A prod_{i in A - S} n_i^-2` (Cauchy
      and Schwarz).

    Rows in two cells that differ along the axes D share `K_D = sum_S tau_S^-2 prod_{S - D} (1 - 1 /
    n) prod_{S and D} (-1 / n)`: for all D at once, a transform along one axis after the other.

Tables
    A table by A is measured with noise of scale b_A in every cell: a row moves all of them by
    `sum_A 1 / b_A`. Its contrasts along the axes of S say as much about layer S as contrasts with
    noise of variance `b_A^2 prod_{i in A - S} n_i`, so that the means of what all tables say,
    weighted by the inverse of these variances, are the least squares of all cells. Layer by layer,
    no cell is solved for. The scales are those for which the weighted sum of the variances of a
    cell is least.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.context import cached_property
from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Kernel
from dpframe.strategies import independent, pair
from dpframe.strategies.base import Layers, Workload
from dpframe.strategies.contrasts import (
    contrasts,
    place,
    product_lengths,
    restore_totals,
    squared_lengths,
)
from dpframe.strategies.domain import Domain, MarginStructure, largest_sets
from dpframe.strategies.layered import LayeredDesign, measure_in_layers
from dpframe.strategies.linear import LinearDesign
from dpframe.strategies.possible import sum_layers
from dpframe.strategies.shares import as_shares, best_shares, starts_of

_ROUNDING = 1 / 12  # variance of rounding to whole numbers
_ABOVE = 1 + 2.0**-46  # of some dozens of roundings, each by 2**-53 at most
_MOST_EXACT = 16  # axes whose patterns of differences are compared in whole numbers
_MOST_AXES = 20  # and those whose patterns are compared at all

_ABOVE_SHARE = 1 + 2.0**-48  # puts a quotient above the real number
_LEAST_SHARE = 1e-4  # of an even one, so that no noise is out of range


def apart(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan margins of totals that are measured on their own; `None` if no margins are wanted."""
    return _in_layers(workload, independent.design(workload, law), law)


def plan_paired(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan margins of one column that is measured from both of its bounds, if that is possible."""
    return _in_layers(workload, pair.design(workload, law), law)


def _in_layers(workload: Workload, totals: LinearDesign | None, law: Law) -> LayeredDesign | None:
    """Measure margins of totals that are to add up: by contrasts, or with pure noise by tables."""
    domain = workload.domain
    if totals is None or not domain.margins or domain.apart:
        return None
    layers: Layers
    if domain.possible is not None:
        layers = sum_layers(domain, law)
    else:
        layers = table_layers(domain, law) if law.norm == 1 else contrast_layers(domain)
    return measure_in_layers(workload, totals, layers)


Layer = tuple[int, ...]
"""The axes of a table, or those along which there are contrasts, in increasing order."""


@frozen(eq=False)
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
        layers = {layer for table in self.count_tables for layer in subsets(table)}
        return tuple(sorted(layers, key=lambda layer: (len(layer), layer)))

    def shape(self, table: Layer) -> tuple[int, ...]:
        """Return the sizes of the axes of a table."""
        return tuple(map(self._sizes.__getitem__, table))

    def shape_of(self, layer: Layer) -> tuple[int, ...]:
        """Return how many contrasts there are along the axes of a layer."""
        return tuple(n - 1 for n in self.shape(layer))

    def spread(self, table: Layer, layer: Layer) -> float:
        """Return what a contrast of a layer adds to a cell, beside its own coefficient."""
        return self._spreads[table, layer]

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return self.domain.sizes

    @cached_property
    def _spreads(self) -> dict[tuple[Layer, Layer], float]:
        """Spreads of all layers of all tables, which are asked for again and again."""
        size = self._sizes
        return {
            (table, layer): 1 / math.prod([size[axis] for axis in table if axis not in layer])
            for table in dict.fromkeys(self.tables)
            for layer in subsets(table)
        }

    def variance(self, table: Layer, squares: Mapping[Layer, float]) -> float:
        """Return the variance of a cell, from `tau^2` of the layers."""
        parts = self._parts[table]
        return math.fsum(squares[layer] * moved * spread for layer, moved, spread in parts)

    @cached_property
    def _parts(self) -> dict[Layer, list[tuple[Layer, float, float]]]:
        """By table, its layers, with what the variance of a cell takes of each."""
        return {
            table: [
                (
                    layer,
                    math.prod([1 - 1 / n for n in self.shape(layer)]),
                    self.spread(table, layer) ** 2,
                )
                for layer in subsets(table)
            ]
            for table in self.tables
        }

    def rounding_variance(self, table: Layer) -> float:
        """Return the most that variance 1 of every contrast, and of the total, adds to a cell.

        It is the product over the axes of `n^-2 + sum_j 1 / (j (j + 1))^2`, for the first two cells
        of each.
        """
        return math.prod(float((1 / squared_lengths(n) ** 2).sum()) for n in self.shape(table))

    def describe(
        self, table: int, taus: Mapping[Layer, float], scale: float, rounding: float
    ) -> MarginStructure:
        """Say what the covariance of the cells of a table is, by the position of the table."""
        axes = self.domain.margins[table]
        sets = list(subsets(self.tables[table]))
        layers = tuple(tuple(axes.index(axis) for axis in layer) for layer in sets)
        tau = tuple(scale * taus[layer] for layer in sets)
        return MarginStructure("margins", self.shape(axes), layers, tau, rounding)

    def split(self, totals: np.ndarray) -> dict[Layer, np.ndarray]:
        """Take the tables in which rows are counted out of all cells, one after the other."""
        return {
            table: totals[start:end].reshape(self.shape(table))
            for table, (start, end) in self._places.items()
        }

    @cached_property
    def _places(self) -> dict[Layer, tuple[int, int]]:
        """Where the cells of each table in which rows are counted begin and end."""
        sizes = map(self.domain.size_of, self.count_tables)
        ends = itertools.accumulate(sizes, initial=0)
        return dict(zip(self.count_tables, itertools.pairwise(ends), strict=True))

    def sum_tables(self, totals: np.ndarray) -> list[np.ndarray]:
        """Return all tables wanted, from the cells in which rows are counted."""
        counted = self.split(totals)
        tables = []
        for table in self.tables:
            parent = min((axes for axes in counted if {*table} <= {*axes}), key=self.domain.size_of)
            others = tuple(k for k, axis in enumerate(parent) if axis not in table)
            tables.append(counted[parent].sum(others))
        return tables

    def contrasts(self, totals: np.ndarray) -> list[np.ndarray]:
        """Return the exact contrasts of all layers, from the cells in which rows are counted."""
        counted = self.split(totals)
        by_layer: dict[Layer, np.ndarray] = {}
        for table, cells in counted.items():
            new = [layer for layer in subsets(table) if layer not in by_layer]
            along = contrasts(cells, range(len(table))) if new else cells
            by_layer |= {layer: along[place(table, layer)] for layer in new}
        return [by_layer[layer] for layer in self.layers]

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


@lru_cache(16)  # all designs that are compared ask for the same
def lattice_of(domain: Domain) -> Lattice:
    """Return the tables of a domain, and their layers."""
    return Lattice(domain)


def subsets(table: Layer) -> Iterator[Layer]:
    """Yield all sets of some of the axes of a table, the smallest first."""
    return (layer for k in range(len(table) + 1) for layer in itertools.combinations(table, k))


@frozen(eq=False)
class ContrastLayers(Layers):
    """Contrasts of all layers, by layer.

    Parameters
    ----------
    lattice
        The tables wanted and their layers.
    precisions
        `1 / tau^2` of every layer.
    """

    lattice: Lattice
    precisions: tuple[Fraction, ...]

    @cached_property
    def kernel(self) -> Kernel:
        """What rows of different cells share."""
        shapes = map(self.lattice.shape, self.lattice.layers)
        moved = (
            precision * math.prod((Fraction(n - 1, n) for n in shape), start=Fraction(1))
            for precision, shape in zip(self.precisions, shapes, strict=True)
        )
        total = sum(moved, start=Fraction(0))
        return Kernel(total, self._least(total))

    @cached_property
    def profile(self) -> np.ndarray:
        """The noise scales `tau |r|`, rounded up."""
        parts = [
            tau * np.sqrt(product_lengths(self.lattice.shape(layer))).ravel() * _ABOVE
            for layer, tau in self._taus.items()
        ]
        return np.concatenate(parts)

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the contrasts of totals."""
        return np.concatenate([part.ravel() for part in self.lattice.contrasts(totals)])

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the cells of every table; no scale changes how contrasts are read."""
        shapes = [self.lattice.shape_of(layer) for layer in self.lattice.layers]
        parts = np.split(measured, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        triples = zip(self.lattice.layers, parts, shapes, strict=True)
        by_layer = {layer: part.reshape(shape) for layer, part, shape in triples}
        return self.lattice.restore_cells(by_layer)

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of the cells of every table, the largest by rounding."""
        parts = self._variances
        return [math.sqrt(variance * scale**2 + _ROUNDING * rounded) for variance, rounded in parts]

    def describe(self, table: int, scale: float) -> MarginStructure:
        """Say what the covariance of the cells of a table is."""
        return self.lattice.describe(table, self._taus, scale, _ROUNDING)

    @cached_property
    def _taus(self) -> dict[Layer, float]:
        pairs = zip(self.lattice.layers, self.precisions, strict=True)
        return {layer: math.sqrt(1 / precision) for layer, precision in pairs}

    @cached_property
    def _variances(self) -> list[tuple[float, float]]:
        """By table, the variance of a cell at scale 1, and what rounding adds to it at most."""
        squares = {layer: tau**2 for layer, tau in self._taus.items()}
        return [
            (self.lattice.variance(table, squares), self.lattice.rounding_variance(table))
            for table in self.lattice.tables
        ]

    def _least(self, total: Fraction) -> Fraction:
        """Return the least that two rows share, or a little less, where there are many axes."""
        axes = sorted({axis for layer in self.lattice.layers for axis in layer})
        if len(axes) > _MOST_AXES:
            return -total
        denominator = math.lcm(*(precision.denominator for precision in self.precisions))
        exact = len(axes) <= _MOST_EXACT
        shared = np.zeros((2,) * len(axes), dtype=object if exact else np.float64)
        for layer, precision in zip(self.lattice.layers, self.precisions, strict=True):
            place = tuple(int(axis in layer) for axis in axes)
            shared[place] = int(precision * denominator) if exact else float(precision)
        sizes = self.lattice.shape(tuple(axes))
        for at, n in enumerate(sizes):
            along = np.moveaxis(shared, at, 0)  # a view: without this axis in a layer, and with it
            apart = n * along[:1] - along[1:]
            along[:1] = n * along[:1] + (n - 1) * along[1:]
            along[1:] = apart
        unit = math.prod(sizes)
        if exact:
            return Fraction(shared.min(), denominator * unit)
        # each of the steps errs by a few parts in 2**53 of what a row shares with itself
        return Fraction(float(shared.min())) / unit - total / 2**44


@lru_cache(16)
def contrast_layers(domain: Domain) -> ContrastLayers:
    """Choose the noise of the layers."""
    lattice = lattice_of(domain)
    precisions = _weight_layers(lattice) if domain.weights else _equal(lattice)
    return ContrastLayers(lattice, precisions)


def _equal(lattice: Lattice) -> tuple[Fraction, ...]:
    """Give every cell of every table the same variance."""
    return tuple(
        math.prod((Fraction(n, n + 1) for n in lattice.shape(layer)), start=Fraction(1))
        for layer in lattice.layers
    )


def _weight_layers(lattice: Lattice) -> tuple[Fraction, ...]:
    """Minimize the weighted sum of the variances of a cell of every table."""
    charged = dict.fromkeys(lattice.layers, 0.0)
    for table, weight in zip(lattice.tables, lattice.domain.weights, strict=True):
        for layer in subsets(table):
            charged[layer] += weight * lattice.spread(table, layer) ** 2
    most = max(charged.values())
    return tuple(Fraction(math.sqrt(charge / most)) for charge in charged.values())


@frozen(eq=False)
class TableLayers(Layers):
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
        pairs = list(zip(self.lattice.tables, map(Fraction, self.shares), strict=True))
        least = sum((share for table, share in pairs if not table), start=Fraction(0))
        return Kernel(sum((share for _, share in pairs), start=Fraction(0)), least)

    @cached_property
    def profile(self) -> np.ndarray:
        """The noise scale of every cell, rounded up."""
        return np.repeat([_ABOVE_SHARE / share for share in self.shares], self._sizes)

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the cells of all tables."""
        return np.concatenate([table.ravel() for table in self.lattice.sum_tables(totals)])

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the cells of every table, by the weights that are best for wide noise."""
        by_layer = {layer: np.zeros(self.lattice.shape_of(layer)) for layer in self.lattice.layers}
        parts = np.split(measured, np.cumsum(self._sizes)[:-1])
        for table, part, weights in zip(self.lattice.tables, parts, self._weights, strict=True):
            along = contrasts(part.reshape(self.lattice.shape(table)), range(len(table)))
            for layer, weight in weights.items():
                by_layer[layer] += weight * along[place(table, layer)]
        return self.lattice.restore_cells(by_layer)

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of the cells of every table."""
        squares = {layer: tau**2 for layer, tau in _taus(self, scale).items()}
        return [math.sqrt(self.lattice.variance(table, squares)) for table in self.lattice.tables]

    def describe(self, table: int, scale: float) -> MarginStructure:
        """Say what the covariance of the cells of a table is."""
        return self.lattice.describe(table, _taus(self, scale), 1.0, 0.0)

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.lattice.domain.size_of(table) for table in self.lattice.tables]

    @cached_property
    def spreads(self) -> list[dict[Layer, float]]:
        """By table, what variance 1 of its cells adds to that of contrasts of length 1."""
        return [
            {layer: part**2 / self.lattice.spread(table, layer) for layer, part in weights.items()}
            for table, weights in zip(self.lattice.tables, self._weights, strict=True)
        ]

    @cached_property
    def _weights(self) -> list[dict[Layer, float]]:
        """By table, the part it has in what is said about its layers."""
        parts = [
            {layer: share**2 * self.lattice.spread(table, layer) for layer in subsets(table)}
            for table, share in zip(self.lattice.tables, self.shares, strict=True)
        ]
        totals = dict.fromkeys(self.lattice.layers, 0.0)
        for layers in parts:
            for layer, precision in layers.items():
                totals[layer] += precision
        return [{layer: part / totals[layer] for layer, part in layers.items()} for layers in parts]


@lru_cache(64)  # every table is described from the same
def _taus(layers: TableLayers, scale: float) -> dict[Layer, float]:
    """Return by layer the standard deviation of contrasts of length 1."""
    squares = dict.fromkeys(layers.lattice.layers, 0.0)
    for share, spreads in zip(layers.shares, layers.spreads, strict=True):
        variance = layers.law.standard_deviation(scale * (_ABOVE_SHARE / share)) ** 2
        for layer, spread in spreads.items():
            squares[layer] += spread * variance
    return {layer: math.sqrt(square) for layer, square in squares.items()}


@lru_cache(16)
def table_layers(domain: Domain, law: Law) -> TableLayers:
    """Choose the noise of the tables."""
    lattice = lattice_of(domain)
    weights = np.array(domain.weights or [1.0] * len(lattice.tables))
    sizes = np.array([domain.size_of(table) for table in lattice.tables])
    improve = _Precisions.of(lattice, weights).improve
    best = best_shares(improve, np.array(starts_of(sizes, weights)))
    shares = np.maximum(best, _LEAST_SHARE / len(weights))
    return TableLayers(lattice, law, tuple(float(share) for share in shares))


@frozen(eq=False)
class _Precisions:
    """What tables say about layers, in pairs of a table and a layer.

    Parameters
    ----------
    of_table, of_layer
        The positions of both.
    spread
        ``e = prod_{i in A - S} 1 / n_i``: layer S has the precision `P_S = sum_A e share_A^2 / 2`.
    charged
        By layer, the weight of `2 / P_S` in the weighted sum of the variances of a cell.
    """

    of_table: np.ndarray
    of_layer: np.ndarray
    spread: np.ndarray
    charged: np.ndarray

    @classmethod
    def of(cls, lattice: Lattice, weights: np.ndarray) -> "_Precisions":
        """Read them off tables and weights of their variances."""
        at = {layer: k for k, layer in enumerate(lattice.layers)}
        pairs = [
            (k, at[layer], lattice.spread(table, layer))
            for k, table in enumerate(lattice.tables)
            for layer in subsets(table)
        ]
        of_table, of_layer, spread = (np.array(part) for part in zip(*pairs, strict=True))
        moved = np.array([math.prod(1 - 1 / n for n in lattice.shape(s)) for s in lattice.layers])
        charged = moved * np.bincount(of_layer, weights[of_table] * spread**2)
        return cls(of_table, of_layer, spread, charged)

    def improve(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of variances, and better shares, from logarithms of shares in each row.

        By Jensen, other shares have ``1 / P_S <= sum_A (e share_A^2 / P_S)^2 / (e other_A^2)``. The
        bound is least where `other_A` is a multiple of ``share_A (share_A g_A)^(1/3)``, with
        ``g_A = sum_S e charged_S / P_S^2``.
        """
        rows, layers = np.arange(len(logs))[:, None], len(self.charged)
        parts = self.spread * np.exp(2 * logs[:, self.of_table])
        precisions = _sums(rows * layers + self.of_layer, parts, (len(logs), layers))
        pulled = self.spread * (self.charged / precisions**2)[:, self.of_layer]
        slopes = _sums(rows * logs.shape[1] + self.of_table, pulled, logs.shape)
        return (self.charged / precisions).sum(1), as_shares(logs + (logs + np.log(slopes)) / 3)


def _sums(places: np.ndarray, parts: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.bincount(places.ravel(), parts.ravel(), math.prod(shape)).reshape(shape)
