"""Ordered bins as leaves of a tree: numbers of rows in any range, with Gaussian noise.

All children of a node of layer l are compared by contrasts h of integers, with noise of scale
`tau_l |h|`. One row moves the layer by `(1 - 1 / b_l) / tau_l^2`, with b_l the number of children,
and the total by `1 / tau_0^2`. If the layer adds `Q_l tau_l^2` to the mean variance of numbers of
rows below an edge, `tau_l^2 ~ sqrt((1 - 1 / b_l) / Q_l)` is best (Cauchy and Schwarz).

Rows in two bins whose nodes part at layer l share what the total and the layers before move, less
`1 / (b_l tau_l^2)`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.forks import cached_property
from dpframe.privacy.laws import Law
from dpframe.privacy.shared_movement import Kernel
from dpframe.strategies import independent
from dpframe.strategies.base import Workload
from dpframe.strategies.contrasts import contrasts, restore_totals, squared_lengths
from dpframe.strategies.layered import LayeredDesign, measure_in_layers
from dpframe.strategies.prefixes import mean_products
from dpframe.strategies.structure import Structure

ABOVE = 1 + 2.0**-46
"""Puts a product of a few roundings above the real number."""

_ROUNDING = 1 / 12
_MOST_PADDED = 2**18  # of more bins, only one tree is looked at


def design(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan ranges with contrasts; `None` where no ranges are wanted, or for other noise."""
    if not workload.ranges or law.norm == 1:
        return None
    bins = workload.domain.dimensions[-1].size
    tree = ContrastTree(*_plan_tree(bins), bins, workload.cells // bins)
    return measure_in_layers(workload, independent.design(workload, law), tree)


@dataclass(frozen=True, eq=False)
class ContrastTree:
    """The total of all bins, and contrasts of the children of every node, for each group.

    Parameters
    ----------
    sizes
        How many children nodes have, from the root down. Leaves beyond the last bin are empty.
    tau
        The scale of the noise of each layer, for contrasts of length 1; the total first.
    bins
        Number of bins.
    groups
        Number of groups, with a tree each.
    """

    sizes: tuple[int, ...]
    tau: tuple[float, ...]
    bins: int
    groups: int

    @cached_property
    def kernel(self) -> Kernel:
        """What rows of different bins share."""
        precisions = [1 / Fraction(tau) ** 2 for tau in self.tau]
        shared, least = precisions[0], precisions[0]
        for size, precision in zip(self.sizes, precisions[1:], strict=True):
            least = min(least, shared - precision / size)
            shared += precision * Fraction(size - 1, size)
        return Kernel(shared, least)

    @cached_property
    def profile(self) -> np.ndarray:
        """The noise scales `tau |h|` of a tree, rounded up, for one tree after the other."""
        parts, nodes = [np.array([self.tau[0]])], 1
        for size, tau in zip(self.sizes, self.tau[1:], strict=True):
            parts.append(np.tile(tau * np.sqrt(squared_lengths(size)[1:]) * ABOVE, nodes))
            nodes *= size
        return np.tile(np.concatenate(parts), self.groups)

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the total and the contrasts of each tree, from the root down."""
        sums, found = fill_leaves(totals, self.bins, math.prod(self.sizes)), []
        for size in reversed(self.sizes):
            along = contrasts(sums.reshape(self.groups, -1, size), [2])
            found.append(along[:, :, 1:].reshape(self.groups, -1))
            sums = along[:, :, 0]
        return np.concatenate([sums, *reversed(found)], axis=1).ravel()

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the numbers in all bins; no scale changes how contrasts are read."""
        left = measured.reshape(self.groups, -1)
        sums, left = left[:, :1].astype(np.float64), left[:, 1:]
        for size in self.sizes:
            shape = self.groups, sums.shape[1], size - 1
            own, left = left[:, : shape[1] * shape[2]], left[:, shape[1] * shape[2] :]
            both = np.concatenate([sums[:, :, None], own.reshape(shape)], axis=2)
            sums = restore_totals(both, [2]).reshape(self.groups, -1)
        return [sums[:, : self.bins].ravel()]

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of a bin, the largest by rounding."""
        return [self.describe(0, scale).deviation]

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the root of the mean variance of numbers of rows below an edge."""
        found = mean_products(self.sizes, self.bins)
        return [math.sqrt(found.variances([scale * tau for tau in self.tau], _ROUNDING)[0])]

    def describe(self, table: int, scale: float) -> Structure:
        """Say what the covariance of the bins is, the same in all groups."""
        tau = tuple(scale * one for one in self.tau)
        return Structure("tree", self.sizes, layers_of(self.sizes), tau, _ROUNDING)


def layers_of(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Name the layers of a tree: none for the total, then the levels of the nodes."""
    return ((), *((level,) for level in range(1, len(sizes) + 1)))


def fill_leaves(totals: np.ndarray, bins: int, leaves: int) -> np.ndarray:
    """Return totals with one row per tree, and empty leaves at the end."""
    table = totals.reshape(-1, bins)
    return np.pad(table, ((0, 0), (0, leaves - bins))) if leaves > bins else table


@lru_cache
def _plan_tree(bins: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the tree of the least error, and the scales of its layers."""
    found = (_scale_layers(_factors(leaves), bins) for leaves in _sizes(bins))
    return min(found, key=lambda one: one[0])[1:]


def _scale_layers(
    sizes: tuple[int, ...], bins: int
) -> tuple[float, tuple[int, ...], tuple[float, ...]]:
    """Return the mean variance of a tree where a row moves it by 1, and its scales."""
    counted = mean_products(sizes, bins).of_noise[0]
    moved = np.array([1.0, *(1 - 1 / size for size in sizes)])
    roots = np.sqrt(moved * counted)
    tau = np.sqrt(roots.sum() * moved / roots)
    return float(roots.sum() ** 2), sizes, tuple(tau.tolist())


def _sizes(bins: int) -> Iterator[int]:
    """Return the numbers of leaves to compare: all bins, or some more, in small factors alone."""
    yield bins
    most = 1 << (bins - 1).bit_length()
    power = 1
    while power <= most and bins <= _MOST_PADDED:
        leaves = power << max(-(-bins // power) - 1, 0).bit_length()
        if bins < leaves <= most:
            yield leaves
        power *= 3
    if bins > _MOST_PADDED:
        yield most


def _factors(number: int) -> tuple[int, ...]:
    """Return the prime factors, the smallest first."""
    found, prime = [], 2
    while prime * prime <= number:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1
    return (*found, number) if number > 1 else tuple(found)
