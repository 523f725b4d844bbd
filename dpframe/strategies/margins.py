"""Margins that agree, from orthogonal contrasts with Gaussian noise.

In layer S, of contrasts along the axes of S, row r is measured with noise of scale `tau_S |r|`. One
row of the data moves the layer by `p_S / tau_S^2` whatever its cell, with `p_S = prod_{i in S} (1 -
1 / n_i)`, the diagonal of a projection. A cell of the table by A has the variance

    sum_{S in A} tau_S^2 p_S prod_{i in A - S} n_i^-2 .

- **Equal**: with `tau_S^2 = prod_{i in S} (1 + 1 / n_i)` that is 1 for every cell of every table,
  since all terms add up to `prod_{i in A} (1 - n_i^-2 + n_i^-2)`.
- **Weighted**: for weights w_A of the variance of a cell, it is best to have `tau_S^2` proportional
  to `1 / sqrt(q_S)`, with `q_S = sum_{A > S} w_A prod_{i in A - S} n_i^-2` (Cauchy and Schwarz).

Rows in two cells that differ along the axes D share `K_D = sum_S tau_S^-2 prod_{S - D} (1 - 1 / n)
prod_{S and D} (-1 / n)`: for all D at once, a transform along one axis after the other.
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
from dpframe.strategies.contrasts import product_lengths
from dpframe.strategies.domain import Domain
from dpframe.strategies.lattice import Lattice, Layer, subsets
from dpframe.strategies.layered import LayeredDesign, plan_margins
from dpframe.strategies.structure import Structure

_ROUNDING = 1 / 12
_ABOVE = 1 + 2.0**-46  # of some dozens of roundings, each by 2**-53 at most
_MOST_EXACT = 16  # axes whose patterns of differences are compared in whole numbers
_MOST_AXES = 20  # and those whose patterns are compared at all


def apart(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan margins of totals that are measured on their own; `None` if no margins are wanted."""
    return plan_margins(workload, law, independent.design, lambda: _layers(workload.domain))


def plan_paired(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan margins of one column that is measured from both of its bounds, if that is possible."""
    return plan_margins(workload, law, pair.design, lambda: _layers(workload.domain))


@dataclass(frozen=True, eq=False)
class ContrastLayers:
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
        whole = sum(moved, start=Fraction(0))
        return Kernel(whole, self._least(whole))

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
        own = zip(self.lattice.layers, parts, shapes, strict=True)
        found = {layer: part.reshape(shape) for layer, part, shape in own}
        return self.lattice.restore_cells(found)

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of the cells of every table, the largest by rounding."""
        parts = self._variances
        return [math.sqrt(variance * scale**2 + _ROUNDING * rounded) for variance, rounded in parts]

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the same."""
        return self.deviations(scale)

    def describe(self, table: int, scale: float) -> Structure:
        """Say what the covariance of the cells of a table is."""
        return self.lattice.describe(table, self._taus, scale, _ROUNDING)

    @cached_property
    def _taus(self) -> dict[Layer, float]:
        own = zip(self.lattice.layers, self.precisions, strict=True)
        return {layer: math.sqrt(1 / precision) for layer, precision in own}

    @cached_property
    def _variances(self) -> list[tuple[float, float]]:
        """By table, the variance of a cell at scale 1, and what rounding adds to it at most."""
        squares = {layer: tau**2 for layer, tau in self._taus.items()}
        return [
            (self.lattice.variance(table, squares), self.lattice.rounding_variance(table))
            for table in self.lattice.tables
        ]

    def _least(self, whole: Fraction) -> Fraction:
        """Return the least that two rows share, or a little less, where there are many axes."""
        axes = sorted({axis for layer in self.lattice.layers for axis in layer})
        if len(axes) > _MOST_AXES:
            return -whole
        one = math.lcm(*(precision.denominator for precision in self.precisions))
        exact = len(axes) <= _MOST_EXACT
        found = np.zeros((2,) * len(axes), dtype=object if exact else np.float64)
        for layer, precision in zip(self.lattice.layers, self.precisions, strict=True):
            place = tuple(int(axis in layer) for axis in axes)
            found[place] = int(precision * one) if exact else float(precision)
        sizes = self.lattice.shape(tuple(axes))
        for at, n in enumerate(sizes):
            along = np.moveaxis(found, at, 0)  # a view: without this axis in a layer, and with it
            apart = n * along[:1] - along[1:]
            along[:1] = n * along[:1] + (n - 1) * along[1:]
            along[1:] = apart
        unit = math.prod(sizes)
        if exact:
            return Fraction(found.min(), one * unit)
        # each of the steps errs by a few parts in 2**53 of what a row shares with itself
        return Fraction(float(found.min())) / unit - whole / 2**44


@lru_cache(16)
def _layers(domain: Domain) -> ContrastLayers:
    """Choose the noise of the layers."""
    lattice = Lattice(domain)
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
