"""Numbers of leaves of a tree below an edge: what the layers of the tree add to their covariances.

Let e leaves be below an edge, all of k children of a node among them and a part f of the next one.
Where children are all alike, what they differ by adds `k + f - (k + f) (k' + f') / b` and the like
to the covariance of the numbers below two edges under one node of b children, and nothing under
two. Else it is as for edges between children, straight between them.
"""

import math
from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np

from dpframe.strategies.ordered import Window

_MOST_EDGES = 2**12  # at which errors are looked at
_GOLDEN = (math.sqrt(5) - 1) / 2


def prefix_products(
    sizes: Sequence[int], below: np.ndarray, above: np.ndarray, tables: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """Return what each layer adds to the covariance of the rows below two edges, times its tau^2.

    Parameters
    ----------
    sizes
        How many children nodes have, from the root down.
    below, above
        How many leaves are below the edges of each pair, the first at most as many as the second.
    tables
        By layer, the covariances of the numbers below the edges between children, where these are
        not all alike; the first one has those of all leaves in it. None: a layer of the total comes
        first.

    Returns
    -------
    ndarray
        One row per pair of edges, one column per layer.

    Examples
    --------
    >>> half = np.array([2])
    >>> prefix_products((2, 2), half, half).tolist()
    [[0.25, 0.5, 0.0]]
    """
    leaves = width = math.prod(sizes)
    layers = [] if len(tables) else [below / leaves * (above / leaves)]
    for level, size in enumerate(sizes):
        table = tables[level] if len(tables) else None
        layers.append(_of_layer(size, width, below, above, table))
        width //= size
    return np.stack(layers, axis=1)


def _of_layer(
    size: int, width: int, below: np.ndarray, above: np.ndarray, table: np.ndarray | None
) -> np.ndarray:
    """Return the products for the children of nodes that have so many leaves."""
    child = width // size
    same = below // width == above // width
    k, j = below % width // child, above % width // child
    f, g = below % child / child, above % child / child
    if table is None:
        products = k + f * np.where(k == j, g, 1.0) - (k + f) * (j + g) / size
        return np.where(same, products, 0.0)
    if table[-1, -1]:  # of all leaves: the last edge is that of the root
        same, k, j = np.True_, below // child, above // child
    after_k, after_j = np.minimum(k + 1, size), np.minimum(j + 1, size)
    at_k = (1 - g) * table[k, j] + g * table[k, after_j]
    after = (1 - g) * table[after_k, j] + g * table[after_k, after_j]
    return np.where(same, (1 - f) * at_k + f * after, 0.0)


def mean_products(
    products: Callable[[np.ndarray, np.ndarray], np.ndarray], leaves: int, bins: int, window: Window
) -> np.ndarray:
    """Return the mean products of the sums wanted.

    Of all ranges, they are those of `c_e - q N` over the edges e, with N the number of rows in all
    bins and c_e that of those below an edge, and q the part of the leaves that is below it. The
    total adds 1 / 12, what it adds on average for all q.

    Parameters
    ----------
    products
        Returns those of pairs of edges.
    leaves, bins
        How many leaves there are, and how many of them are bins.
    window
        Which sums are wanted.

    Examples
    --------
    >>> def products(below, above):
    ...     return prefix_products((2, 2), below, above)
    >>> mean_products(products, 4, 4, None).round(4).tolist()
    [0.0833, 0.1875, 0.25]
    """
    edges = np.arange(bins)
    if bins > _MOST_EDGES:  # as many that are spread evenly, whatever the sizes
        edges = (bins * (np.arange(_MOST_EDGES) * _GOLDEN % 1)).astype(np.int64)
    match window:
        case None:
            last = np.full(len(edges), leaves)
            part = (edges / leaves)[:, None]
            of_edges, of_total = products(edges, edges), products(last, last)
            apart = of_edges - 2 * part * products(edges, last) + part**2 * of_total
            return np.asarray(apart.mean(axis=0) + of_total[0] / 12)
        case "expanding":
            return np.asarray(products(edges + 1, edges + 1).mean(axis=0))
        case int():
            low = edges % (bins - window + 1)
            high = low + window
            squares = products(low, low) + products(high, high)
            return np.asarray((squares - 2 * products(low, high)).mean(axis=0))
        case _:
            assert_never(window)
