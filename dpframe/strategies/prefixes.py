"""Numbers of leaves of a tree below an edge: what the layers of the tree add to their covariances.

Let e leaves be below an edge, all of k children of a node among them and a part f of the next one.
The contrasts of the children then add `k + f - (k + f) (k' + f') / b` and the like to the
covariance of the numbers below two edges under one node of b children, and nothing under two.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_MOST_EDGES = 2**12
_GOLDEN = (math.sqrt(5) - 1) / 2


class Products(NamedTuple):
    """What each layer adds to covariances: times its tau^2, and times the variance of rounding.

    Both have one column per layer, the total first.
    """

    of_noise: np.ndarray
    of_rounding: np.ndarray

    def variances(self, tau: Sequence[float], rounding: float) -> np.ndarray:
        """Return the covariances, for the scales and the rounding of a table."""
        of_rounding = rounding * self.of_rounding.sum(axis=1)
        return np.asarray(self.of_noise @ np.square(tau) + of_rounding)


def prefix_products(sizes: Sequence[int], below: np.ndarray, above: np.ndarray) -> Products:
    """Return the products of the numbers of rows below two edges, for pairs of edges.

    Parameters
    ----------
    sizes
        How many children nodes have, from the root down.
    below, above
        How many leaves are below the edges of each pair, the first at most as many as the second.

    Examples
    --------
    >>> half = np.array([2])
    >>> prefix_products((2, 2), half, half).of_noise.tolist()
    [[0.25, 0.5, 0.0]]
    """
    leaves = math.prod(sizes)
    whole = below / leaves * (above / leaves)
    layers, width = [(whole, whole)], leaves
    for size in sizes:
        layers.append(_of_layer(size, width, below, above))
        width //= size
    return Products(*(np.stack(part, axis=1) for part in zip(*layers, strict=True)))


def _of_layer(
    size: int, width: int, below: np.ndarray, above: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the products for the children of nodes that have so many leaves."""
    child = width // size
    same = below // width == above // width
    k, j = below % width // child, above % width // child
    f, g = below % child / child, above % child / child
    mine, theirs = k + f, j + g
    one = k == j
    noise = k + f * np.where(one, g, 1.0) - mine * theirs / size
    tails = _tails(size)
    # the contrast that ends at child j has (1 - g) / (j + 1), those after it (j + g) / (i (i + 1))
    at_end = np.where(one, 1 - f, mine / np.maximum(j, 1)) * (1 - g) / (j + 1.0) ** 2
    rounding = np.where(j > 0, at_end, 0.0) + mine * theirs * tails[j]
    return np.where(same, noise, 0.0), np.where(same, rounding, 0.0)


def _tails(size: int) -> np.ndarray:
    """Return the sums of `1 / (j (j + 1))^2` over j above k, for k = 0, ..., size - 1."""
    j = np.arange(1, size, dtype=np.float64)
    return np.append(np.cumsum(((j * (j + 1)) ** -2.0)[::-1])[::-1], 0.0)


def mean_products(sizes: Sequence[int], bins: int) -> Products:
    """Return the mean products of `c_e - (e / B) N` over the edges e of B bins, as one row.

    N is the number of rows in all bins, and c_e that of those below an edge. The total adds 1 / 12,
    what it adds on average to `c_e - q N` for all q.

    Examples
    --------
    >>> mean_products((2, 2), 4).of_noise.round(4).tolist()
    [[0.0833, 0.1875, 0.25]]
    """
    edges = np.arange(bins)
    if bins > _MOST_EDGES:  # as many that are spread evenly, whatever the sizes
        edges = (bins * (np.arange(_MOST_EDGES) * _GOLDEN % 1)).astype(np.int64)
    last = np.full(len(edges), bins)
    part = (edges / bins)[:, None]
    own, cross = (prefix_products(sizes, edges, other) for other in (edges, last))
    end = prefix_products(sizes, last[:1], last[:1])
    means = []
    for mine, both, all_bins in zip(own, cross, end, strict=True):
        mean = (mine - 2 * part * both + part * part * all_bins).mean(axis=0)
        mean[0] = all_bins[0, 0] / 12
        means.append(mean[None, :])
    return Products(*means)
