"""Ordered bins as leaves of a tree: numbers of rows in any range.

With Gaussian noise (`MatrixTree`)
    The children of the root are measured by a matrix of integers, and those of every other node by
    one that tells what they differ by: the best ones for the sums wanted, see `ordered`. Up to 128
    bins there is the root alone. With `V_l` the mean square error that level l adds for columns of
    length 1, these lengths are best as the fourth root of `V_l` (Cauchy and Schwarz).

With Laplace noise (`NodeTree`)
    The rows under every node are counted, with noise of one scale for each level of the tree, and
    decoded by least squares. That is diagonal in the contrasts: with p_k the precision of a count
    of level k and n_k the leaves under a node of it, contrasts between nodes of level l have the
    precision `sum_{k >= l} p_k n_k / n_l`. Two rows in bins that part at the root share its count.
"""

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol

import numpy as np

from dpframe.context import cached_property
from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Kernel
from dpframe.strategies import independent
from dpframe.strategies.base import Layers, Workload
from dpframe.strategies.contrasts import restore_totals, sums_and_contrasts
from dpframe.strategies.domain import TreeStructure
from dpframe.strategies.layered import LayeredDesign, measure_in_layers
from dpframe.strategies.ordered import TreeLevel, Window, plan_levels, sizes_of
from dpframe.strategies.prefixes import mean_products, prefix_products

_ABOVE = 1 + 2.0**-46  # puts a product of a few roundings above the real number
_ROUNDING = 1 / 12  # variance of rounding to whole numbers

_LEAST_SHARE = 1e-3  # levels with less are not counted
_LEAST_DEVIATION = 1e-100  # noise so narrow is none, and counts of all levels are alike
_MOST_LEVELS = 6  # that are tried; more never won
_LEAST_PART = 1e-9  # of a precision, which a level that is counted adds
_ROUNDS = 200  # of the fixed point, at most
_SAME = 1e-4  # by how much no share changes at its end: errors change by less than its square

_Rated = tuple[float, tuple[int, ...], tuple[float, ...]]  # error, sizes and noise of a tree


def design(workload: Workload, law: Law) -> LayeredDesign | None:
    """Plan ranges by matrices, or with pure noise by nodes; `None` where none are wanted."""
    if not workload.ranges or law.inside == "max":
        return None
    bins = workload.domain.dimensions[-1].size
    window = workload.window
    if isinstance(window, int):
        window = min(window, bins)
    groups = workload.cells // bins
    tree: Layers
    if law.norm == 1:
        tree = NodeTree(*plan_nodes(bins, window), bins, groups, law, window)
    else:
        tree = MatrixTree(plan_levels(sizes_of(bins), window), bins, groups, window)
    return measure_in_layers(workload, independent.design(workload, law), tree)


class _Tree(Layers, Protocol):
    """A tree for each group: its errors follow from what is said of its covariance."""

    bins: int
    window: Window

    def deviations(self, scale: float) -> list[float]:
        """Return the largest standard deviation of a bin."""
        return [self.describe(0, scale).deviation]

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the root of the mean variance of the sums wanted, or for all ranges of ends."""
        structure = self.describe(0, scale)
        mean = mean_products(structure.edge_products, structure.leaves, self.bins, self.window)
        return [math.sqrt(float(mean @ np.square(structure.tau)))]

    def describe(self, table: int, scale: float) -> TreeStructure:
        """Say what the covariance of the bins is, the same in all groups."""


@frozen(eq=False)
class MatrixTree(_Tree):
    """Integer combinations of the children of every node, for each group.

    Parameters
    ----------
    levels
        How children are measured, from the root down. Leaves beyond the last bin are empty.
    bins
        Number of bins.
    groups
        Number of groups, with a tree each.
    window
        Which sums are wanted.
    """

    levels: tuple[TreeLevel, ...]
    bins: int
    groups: int
    window: Window = None

    @cached_property
    def kernel(self) -> Kernel:
        """What rows of different bins share."""
        total, above, least = 0, 0, []
        for level in self.levels:
            matrix = level.matrix.astype(np.float64)
            shared = matrix.T @ matrix  # exact: no sum leaves 2**53
            diagonal = np.diag(shared)
            others = shared[~np.eye(level.size, dtype=bool)]
            # rows that part at this level are under the same nodes above
            if len(others):
                least.append(above + int(others.min()))
            total += int(diagonal.max())
            above += int(diagonal.min())
        return Kernel(Fraction(total), Fraction(min(least, default=total)))

    @cached_property
    def profile(self) -> np.ndarray:
        """All integers have noise of one scale."""
        return np.ones(self.groups * sum(self._rows))

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return what is measured of each tree, from the root down."""
        sums, parts = fill_leaves(totals, self.bins, self._leaves), []
        for level in reversed(self.levels):
            children = sums.reshape(self.groups, -1, level.size)
            parts.append((children @ level.matrix.T).reshape(self.groups, -1))
            sums = children.sum(axis=2)
        return np.concatenate(parts[::-1], axis=1).ravel()

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the numbers in all bins; no scale changes how matrices are read."""
        ends = np.cumsum(self._rows)[:-1]
        parts = np.split(measured.reshape(self.groups, -1), ends, axis=1)
        sums = np.zeros((self.groups, 1))
        for level, part in zip(self.levels, parts, strict=True):
            apart = part.reshape(self.groups, sums.shape[1], -1) @ level.reading.T
            sums = (sums[:, :, None] / level.size + apart).reshape(self.groups, -1)
        return [sums[:, : self.bins].ravel()]

    def describe(self, table: int, scale: float) -> TreeStructure:
        """Say what the covariance of the bins is, the same in all groups."""
        deviation = math.hypot(scale, math.sqrt(_ROUNDING))
        tau = tuple(deviation * level.tau for level in self.levels)
        weights = tuple(level.weights for level in self.levels)
        return TreeStructure(tuple(level.size for level in self.levels), tau, weights, self.window)

    @property
    def _leaves(self) -> int:
        return math.prod(level.size for level in self.levels)

    @property
    def _rows(self) -> list[int]:
        """How many integers are measured at each level."""
        nodes = itertools.accumulate((level.size for level in self.levels), operator.mul, initial=1)
        return [n * len(level.matrix) for n, level in zip(nodes, self.levels, strict=False)]


def fill_leaves(totals: np.ndarray, bins: int, leaves: int) -> np.ndarray:
    """Return totals with one row per tree, and empty leaves at the end."""
    table = totals.reshape(-1, bins)
    return np.pad(table, ((0, 0), (0, leaves - bins))) if leaves > bins else table


@frozen(eq=False)
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
    window
        Which sums are wanted.
    """

    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    bins: int
    groups: int
    law: Law
    window: Window = None

    @cached_property
    def kernel(self) -> Kernel:
        """What rows of different bins share."""
        shares = [Fraction(share) for share in self.shares]
        total = sum(shares, start=Fraction(0))
        least = shares[0] if self.sizes else total  # rows that part at the root share its count
        return Kernel(total, least)

    @cached_property
    def profile(self) -> np.ndarray:
        """The noise scales `1 / share` of a tree, rounded up, for one tree after the other."""
        scales = [1 / self.shares[level] * _ABOVE for level in self._counted_levels]
        nodes = [self._nodes[level] for level in self._counted_levels]
        return np.tile(np.repeat(scales, nodes), self.groups)

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the counts of each tree, from the root down."""
        sums = fill_leaves(totals, self.bins, self._nodes[-1])
        counts = [sums]
        for size in reversed(self.sizes):
            sums = sums.reshape(self.groups, -1, size).sum(axis=2)
            counts.append(sums)
        counts.reverse()
        return np.concatenate([counts[level] for level in self._counted_levels], axis=1).ravel()

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the numbers in all bins, by least squares.

        From the leaves up, every node gets the best estimate that its subtree gives; from the root
        down, children are moved to add up to their parent.
        """
        noisy, precisions = self._levels(measured), self._precisions(scale)
        sums, precision, levels = noisy[-1], precisions[-1], []
        for level in range(len(self.sizes), 0, -1):
            size = self.sizes[level - 1]
            both = sums_and_contrasts(sums.reshape(self.groups, -1, size), 2)
            levels.append(both)
            below, here = precision / size, precisions[level - 1]
            sums = (below * both[:, :, 0] + here * noisy[level - 1]) / (below + here)
            precision = below + here
        for both in reversed(levels):
            both[:, :, 0] = sums
            sums = restore_totals(both, [2]).reshape(self.groups, -1)
        return [sums[:, : self.bins].ravel()]

    def describe(self, table: int, scale: float) -> TreeStructure:
        """Say what the covariance of the bins is, the same in all groups."""
        precisions = _of_layers(self.sizes) @ self._precisions(scale)
        return TreeStructure(self.sizes, tuple(map(float, precisions**-0.5)))

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
        counts = [np.zeros((self.groups, nodes)) for nodes in self._nodes]
        for level, part in zip(self._counted_levels, parts, strict=True):
            counts[level] = part.astype(np.float64)
        return counts

    def _precisions(self, scale: float) -> np.ndarray:
        """Return the precision of a count of each level."""
        precisions = np.zeros(len(self.shares))
        for level in self._counted_levels:
            deviation = self.law.standard_deviation(scale / self.shares[level] * _ABOVE)
            precisions[level] = max(deviation, _LEAST_DEVIATION) ** -2.0
        return precisions


def _of_layers(sizes: Sequence[int]) -> np.ndarray:
    """Return what the precision of a count adds to that of a layer: layers by levels."""
    leaves = np.array([math.prod(sizes[level:]) for level in range(len(sizes) + 1)], np.float64)
    return np.triu(leaves[None, :] / leaves[:, None])


def node_weights(structure: TreeStructure, leaves: np.ndarray) -> list[tuple[float, np.ndarray]]:
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
    >>> structure = NodeTree((2,), (0.5, 0.5), 2, 1, LAPLACE).describe(0, 1)
    >>> weights = node_weights(structure, np.array([1.0, 0.0]))
    >>> [nodes.round(3).tolist() for _, nodes in weights]
    [[0.333], [0.667, -0.333]]
    """
    sizes, widest = structure.sizes, max(structure.tau)
    of_contrasts = (np.asarray(structure.tau) / widest) ** -2.0
    parts = np.linalg.solve(_of_layers(sizes), of_contrasts) / of_contrasts
    parts[parts < _LEAST_PART] = 0  # of levels that are not counted: rounding alone
    means, apart = fill_leaves(leaves, len(leaves), structure.leaves)[0], []
    for size in reversed(sizes):
        children = means.reshape(-1, size)
        means = children.mean(axis=1)
        apart.append((children - means[:, None]).ravel())
    weights, left = [], means
    for level, part in enumerate(parts.tolist()):
        if part:
            deviation = widest * float((part * of_contrasts[level]) ** -0.5)
            weights.append((deviation, part * left))
        if level < len(sizes):
            left = apart[-1 - level] + np.repeat((1 - part) * left, sizes[level])
    return weights


@lru_cache
def plan_nodes(bins: int, window: Window = None) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the tree of the least error, and the shares of its levels."""
    trees = (_share_levels(sizes, bins, window) for sizes in dict.fromkeys(_trees(bins)))
    return min(trees, key=lambda tree: tree[0])[1:]


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


def _share_levels(sizes: tuple[int, ...], bins: int, window: Window) -> _Rated:
    """Return the mean variance of a tree at epsilon 1, and what its levels may move by.

    With continuous noise, a count has the precision `s^2 / 2`. Where shares are best, all have the
    same slope, or a smaller one and vanish: those with a larger one grow, until nothing changes.
    """
    products = partial(prefix_products, sizes)
    counted = mean_products(products, math.prod(sizes), bins, window)
    of_layers = _of_layers(sizes)
    shares = np.full(len(sizes) + 1, 1 / (len(sizes) + 1))
    for _ in range(_ROUNDS):
        slopes = of_layers.T @ (counted / (of_layers @ (shares**2 / 2)) ** 2) * shares
        before, shares = shares, shares * np.cbrt(slopes)
        shares /= shares.sum()
        if np.abs(shares - before).max() < _SAME:
            break
    shares[shares < _LEAST_SHARE] = 0
    shares /= shares.sum()
    value = (counted / (of_layers @ (shares**2 / 2))).sum()
    return float(value), sizes, tuple(shares.tolist())
