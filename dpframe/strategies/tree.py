"""Ordered bins as leaves of a tree: numbers of rows in any range.

With Gaussian noise (`ContrastTree`)
    All children of a node of layer l are compared by contrasts h of integers, with noise of scale
    `tau_l |h|`. One row moves the layer by `(1 - 1 / b_l) / tau_l^2`, with b_l the number of
    children, and the total by `1 / tau_0^2`. If the layer adds `Q_l tau_l^2` to the mean variance
    of numbers of rows below an edge, `tau_l^2 ~ sqrt((1 - 1 / b_l) / Q_l)` is best (Cauchy and
    Schwarz).

    Rows in two bins whose nodes part at layer l share what the total and the layers before move,
    less `1 / (b_l tau_l^2)`.

With Laplace noise (`NodeTree`)
    The rows under every node are counted, with noise of one scale for each level of the tree, and
    decoded by least squares. That is diagonal in the contrasts: with p_k the precision of a count
    of level k and n_k the leaves under a node of it, contrasts between nodes of level l have the
    precision `sum_{k >= l} p_k n_k / n_l`. Two rows in bins that part at the root share its count.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from dpframe.forks import cached_property
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Kernel
from dpframe.strategies import independent
from dpframe.strategies.base import Layers, Workload
from dpframe.strategies.contrasts import (
    contrasts,
    restore_totals,
    squared_lengths,
    sums_and_contrasts,
)
from dpframe.strategies.layered import LayeredDesign, measure_in_layers
from dpframe.strategies.prefixes import mean_products
from dpframe.strategies.structure import Structure

_ABOVE = 1 + 2.0**-46  # puts a product of a few roundings above the real number
_ROUNDING = 1 / 12
_MOST_PADDED = 2**18  # of more bins, only one tree is looked at

_LEAST_SHARE = 1e-3  # levels with less are not counted
_LEAST_DEVIATION = 1e-100  # noise so narrow is none, and counts of all levels are alike
_MOST_LEVELS = 6
_LEAST_PART = 1e-9  # of a precision, which a level that is counted adds
_ROUNDS = 200

_Rated = tuple[float, tuple[int, ...], tuple[float, ...]]  # error, sizes and noise of a tree


def design(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan ranges with contrasts, or with pure noise by nodes; `None` where none are wanted."""
    if not workload.ranges or law.inside == "max":
        return None
    bins = workload.domain.dimensions[-1].size
    groups = workload.cells // bins
    tree: Layers
    if law.norm == 1:
        tree = NodeTree(*plan_nodes(bins), bins, groups, law)
    else:
        tree = ContrastTree(*plan_contrasts(bins), bins, groups)
    return measure_in_layers(workload, independent.design(workload, law), tree)


class _Tree(Layers, Protocol):
    """A tree for each group: its errors follow from what is said of its covariance."""

    sizes: tuple[int, ...]
    bins: int

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of a bin, the largest by rounding."""
        return [self.describe(0, scale).deviation]

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the root of the mean variance of numbers of rows below an edge."""
        found, noise = mean_products(self.sizes, self.bins), self.describe(0, scale)
        return [math.sqrt(found.variances(noise.tau, noise.rounding)[0])]


@dataclass(frozen=True, eq=False)
class ContrastTree(_Tree):
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
        parts, nodes = [np.array([self.tau[0] * _ABOVE])], 1
        for size, tau in zip(self.sizes, self.tau[1:], strict=True):
            parts.append(np.tile(tau * np.sqrt(squared_lengths(size)[1:]) * _ABOVE, nodes))
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
def plan_contrasts(bins: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the tree of the least error, and the scales of its layers."""
    found = (_scale_layers(_factors(leaves), bins) for leaves in _sizes(bins))
    return min(found, key=lambda one: one[0])[1:]


def _scale_layers(sizes: tuple[int, ...], bins: int) -> _Rated:
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


@dataclass(frozen=True, eq=False)
class NodeTree(_Tree):
    """Counts of the nodes of some levels, for each group.

    Parameters
    ----------
    sizes
        How many children nodes have, from the root down. Leaves beyond the last bin are empty.
    shares
        What a row moves each level by, at scale 1; 0 for levels that are not counted.
    bins
        Number of bins.
    groups
        Number of groups, with a tree each.
    law
        Law of the noise.
    """

    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    bins: int
    groups: int
    law: Law

    @cached_property
    def kernel(self) -> Kernel:
        """What rows of different bins share."""
        own = [Fraction(share) for share in self.shares]
        whole = sum(own, start=Fraction(0))
        return Kernel(whole, own[0] if self.sizes else whole)

    @cached_property
    def profile(self) -> np.ndarray:
        """The noise scales `1 / share` of a tree, rounded up, for one tree after the other."""
        scales = [1 / self.shares[level] * _ABOVE for level in self._counted_levels]
        nodes = [self._nodes[level] for level in self._counted_levels]
        return np.tile(np.repeat(scales, nodes), self.groups)

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the counts of each tree, from the root down."""
        sums = fill_leaves(totals, self.bins, self._nodes[-1])
        found = [sums]
        for size in reversed(self.sizes):
            sums = sums.reshape(self.groups, -1, size).sum(axis=2)
            found.append(sums)
        found.reverse()
        return np.concatenate([found[level] for level in self._counted_levels], axis=1).ravel()

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the numbers in all bins, by least squares.

        From the leaves up, every node gets the best estimate that its subtree gives; from the root
        down, children are moved to add up to their parent.
        """
        noisy, known = self._levels(measured), self._precisions(scale)
        sums, precision, found = noisy[-1], known[-1], []
        for level in range(len(self.sizes), 0, -1):
            size = self.sizes[level - 1]
            both = sums_and_contrasts(sums.reshape(self.groups, -1, size), 2)
            found.append(both)
            below, here = precision / size, known[level - 1]
            sums = (below * both[:, :, 0] + here * noisy[level - 1]) / (below + here)
            precision = below + here
        for both in reversed(found):
            both[:, :, 0] = sums
            sums = restore_totals(both, [2]).reshape(self.groups, -1)
        return [sums[:, : self.bins].ravel()]

    def describe(self, table: int, scale: float) -> Structure:
        """Say what the covariance of the bins is, the same in all groups."""
        precisions = _of_layers(self.sizes) @ self._precisions(scale)
        tau = tuple(float(one) for one in precisions**-0.5)
        return Structure("tree", self.sizes, layers_of(self.sizes), tau, 0.0)

    @cached_property
    def _nodes(self) -> list[int]:
        """How many nodes there are at each level."""
        return [math.prod(self.sizes[:level]) for level in range(len(self.sizes) + 1)]

    @cached_property
    def _counted_levels(self) -> list[int]:
        return [level for level, share in enumerate(self.shares) if share]

    def _levels(self, measured: np.ndarray) -> list[np.ndarray]:
        """Return the noisy counts of all levels, zeros for those that are not counted."""
        sizes = [self._nodes[level] for level in self._counted_levels]
        parts = np.split(measured.reshape(self.groups, -1), np.cumsum(sizes)[:-1], axis=1)
        found = [np.zeros((self.groups, nodes)) for nodes in self._nodes]
        for level, part in zip(self._counted_levels, parts, strict=True):
            found[level] = part.astype(np.float64)
        return found

    def _precisions(self, scale: float) -> np.ndarray:
        """Return the precision of a count of each level."""
        found = np.zeros(len(self.shares))
        for level in self._counted_levels:
            own = self.law.standard_deviation(scale / self.shares[level] * _ABOVE)
            found[level] = max(own, _LEAST_DEVIATION) ** -2.0
        return found


def _of_layers(sizes: Sequence[int]) -> np.ndarray:
    """Return what the precision of a count adds to that of a layer: layers by levels."""
    leaves = np.array([math.prod(sizes[level:]) for level in range(len(sizes) + 1)], np.float64)
    return np.triu(leaves[None, :] / leaves[:, None])


def node_weights(structure: Structure, leaves: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Return what the noise of the counts of each level adds to a weighted sum of leaves.

    That is the transpose of decoding by least squares. The precisions of the counts follow from
    those of the contrasts.

    Parameters
    ----------
    structure
        What `NodeTree.describe` says.
    leaves
        The weights, one per bin.

    Returns
    -------
    list
        By level that is counted: the standard deviation of a count, and one weight per node.

    Examples
    --------
    >>> from dpframe.privacy.laws import LAPLACE
    >>> known = NodeTree((2,), (0.5, 0.5), 2, 1, LAPLACE).describe(0, 1)
    >>> [own.round(3).tolist() for _, own in node_weights(known, np.array([1.0, 0.0]))]
    [[0.333], [0.667, -0.333]]
    """
    sizes, widest = structure.sizes, max(structure.tau)
    of_contrasts = (np.asarray(structure.tau) / widest) ** -2.0
    own = np.linalg.solve(_of_layers(sizes), of_contrasts) / of_contrasts
    own[own < _LEAST_PART] = 0  # of levels that are not counted: rounding alone
    means, apart = fill_leaves(leaves, len(leaves), structure.leaves)[0], []
    for size in reversed(sizes):
        children = means.reshape(-1, size)
        means = children.mean(axis=1)
        apart.append((children - means[:, None]).ravel())
    found, left = [], means
    for level, part in enumerate(own.tolist()):
        if part:
            deviation = widest * float((part * of_contrasts[level]) ** -0.5)
            found.append((deviation, part * left))
        if level < len(sizes):
            left = apart[-1 - level] + np.repeat((1 - part) * left, sizes[level])
    return found


@lru_cache
def plan_nodes(bins: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the tree of the least error, and the shares of its levels."""
    found = (_share_levels(sizes, bins) for sizes in dict.fromkeys(_trees(bins)))
    return min(found, key=lambda one: one[0])[1:]


def _trees(bins: int) -> Iterator[tuple[int, ...]]:
    """Return trees to compare: of each height, with nearly as many children in all levels."""
    bits = (bins - 1).bit_length()
    yield (bins,) if bins > 1 else ()
    for levels in range(2, min(bits, _MOST_LEVELS) + 1):
        for sizes in (_even(bins, levels), _powers(bits, levels)):
            yield sizes
            yield sizes[::-1]


def _even(bins: int, levels: int) -> tuple[int, ...]:
    """Return sizes whose product is hardly above the number of bins."""
    sizes = [math.ceil(bins ** (1 / levels))] * levels
    for at in range(levels):
        others = math.prod(sizes) // sizes[at]
        sizes[at] = min(sizes[at], max(-(-bins // others), 2))
    return tuple(sizes)


def _powers(bits: int, levels: int) -> tuple[int, ...]:
    """Return powers of two with a given product."""
    more = bits % levels
    return (2 ** (bits // levels + 1),) * more + (2 ** (bits // levels),) * (levels - more)


def _share_levels(sizes: tuple[int, ...], bins: int) -> _Rated:
    """Return the mean variance of a tree at epsilon 1, and what its levels may move by.

    With continuous noise, a count has the precision `s^2 / 2`. Where shares are best, all have the
    same slope, or a smaller one and vanish: those with a larger one grow, until nothing changes.
    """
    counted, of_layers = mean_products(sizes, bins).of_noise[0], _of_layers(sizes)
    shares = np.full(len(sizes) + 1, 1 / (len(sizes) + 1))
    for _ in range(_ROUNDS):
        slopes = of_layers.T @ (counted / (of_layers @ (shares**2 / 2)) ** 2) * shares
        shares = shares * np.cbrt(slopes)
        shares /= shares.sum()
    shares[shares < _LEAST_SHARE] = 0
    shares /= shares.sum()
    value = (counted / (of_layers @ (shares**2 / 2))).sum()
    return float(value), sizes, tuple(shares.tolist())
