"""Wavelets on a graph, from random spanning trees that are cut in halves again and again."""

from typing import Literal, NamedTuple, get_args

import numpy as np

from dpframe.denoising.projection import (
    Denoised,
    check_edges,
    check_sigma,
    check_values,
    stein_risk,
)
from dpframe.denoising.shrinkage import soft_threshold
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_number

Rule = Literal["sure", "universal"]

_FINEST = 1e15  # noise that is a smaller part of a float64 is lost in its rounding


def tree_wavelets(
    values: object,
    sigma: float,
    edges: object,
    *,
    trees: int = 5,
    threshold: Rule = "sure",
    seed: int = 0,
) -> Denoised:
    """Threshold the wavelets of random spanning trees, and average over the trees.

    With y the n values, s = `sigma` and `W_t` the orthonormal wavelets of spanning tree t as rows,
    the estimate is the mean over t of `M y + W_t' h(W_t y)`: M takes the mean of every connected
    component, which is left as it is, and h is `soft_threshold`, with a "sure" threshold per tree,
    or the "universal" one. Edges are pairs of positions, shape (m, 2); a node without any keeps its
    value. The trees are minimum spanning trees of random weights, by a seed that is no secret.

    `risk` is Stein's estimate for the average x, for Gaussian noise and given thresholds: `|x -
    y|^2 / n + s^2 (2 q - 1)`, with q n the mean number of wavelets kept plus that of components.
    `chosen` holds "threshold", the mean over the trees. Where noise is lost in the rounding of
    values (below 1e-15 of the largest), all come back unchanged.

    Time and memory grow as n times the depth of the cuts: a few times log n where nodes have few
    neighbors, and k for a node with k neighbors in a tree.

    References
    ----------
    J. Sharpnack, A. Krishnamurthy and A. Singh, "Detecting activations over graphs using spanning
    tree wavelet bases", AISTATS 2013.

    Examples
    --------
    >>> line = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    >>> found = tree_wavelets([4.0, 5.0, 6.0, 11.0, 10.0, 9.0], 1.0, line, threshold="universal")
    >>> found.values.round(2)
    array([5.73, 5.73, 5.73, 9.27, 9.27, 9.27])
    """
    y, s = check_values(values), check_sigma(sigma)
    pairs = check_edges(edges, y.size)
    count, start = _whole("trees", trees, 1), _whole("seed", seed, 0)
    if not isinstance(threshold, str) or threshold not in get_args(Rule):
        raise QueryError.about("threshold", 'must be "sure" or "universal"', threshold)
    if pairs.size == 0 or np.abs(y).max() > _FINEST * s:
        return Denoised(y.copy(), s * s, {"threshold": 0.0})
    rng = np.random.default_rng(start)
    draws = [_denoise(y / s, pairs, threshold, rng) for _ in range(count)]
    changes = s * np.mean([draw.changes for draw in draws], axis=0)
    slope = 1 - float(np.mean([draw.lost for draw in draws])) / y.size
    chosen = {"threshold": s * float(np.mean([draw.threshold for draw in draws]))}
    return Denoised(y - changes, stein_risk(changes, s, slope), chosen)


def _whole(name: str, value: object, least: int) -> int:
    try:
        number = as_number(value)
    except (TypeError, ValueError):
        number = least - 1
    if isinstance(number, int) and number >= least:
        return number
    raise QueryError.about(name, f"must be a whole number >= {least}", value)


class _Removed(NamedTuple):
    """What thresholding takes away on one tree."""

    changes: np.ndarray
    lost: int  # wavelets that are set to zero
    threshold: float


def _denoise(z: np.ndarray, pairs: np.ndarray, rule: Rule, rng: np.random.Generator) -> _Removed:
    wavelets = spanning_tree_wavelets(z.size, pairs, rng)
    details = wavelets.analyze(z - z.mean())  # prefix sums of a large mean would lose digits
    shrunk = soft_threshold(details, 1.0, rule)
    threshold = shrunk.chosen["threshold"]
    lost = np.count_nonzero(np.abs(details) <= threshold) if threshold else 0
    return _Removed(wavelets.synthesize(details - shrunk.values), int(lost), threshold)


class Wavelets(NamedTuple):
    """Orthonormal wavelets of a spanning forest, one per edge.

    Nodes stand in an order in which a wavelet is about neighboring places. It cuts those from
    `start` to `stop` in two parts, A with the a places before `middle` and B with the other b, and
    is `sqrt(a b / (a + b)) (1_A / a - 1_B / b)`.
    """

    order: np.ndarray
    """The nodes at the places, shape (n,)."""
    start: np.ndarray
    """First places of the wavelets, shape (w,)."""
    middle: np.ndarray
    """First place of its second part."""
    stop: np.ndarray
    """The place after its last."""

    def analyze(self, values: np.ndarray) -> np.ndarray:
        """Return the inner products of values of the nodes with the wavelets, shape (w,)."""
        sums = np.concatenate([[0.0], np.cumsum(values[self.order])])
        first, second = self._heights()
        before, after = sums[self.middle] - sums[self.start], sums[self.stop] - sums[self.middle]
        return np.asarray(first * before - second * after)

    def synthesize(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the values of the nodes that the wavelets have with these coefficients."""
        first, second = (height * coefficients for height in self._heights())
        places = np.concatenate([self.start, self.middle, self.stop])
        jumps = np.concatenate([first, -first - second, second])
        values = np.empty(len(self.order))
        values[self.order] = np.cumsum(np.bincount(places, jumps, len(self.order) + 1)[:-1])
        return values

    def _heights(self) -> tuple[np.ndarray, np.ndarray]:
        a, b = self.middle - self.start, self.stop - self.middle
        return np.sqrt(b / (a * (a + b))), np.sqrt(a / (b * (a + b)))


def spanning_tree_wavelets(n: int, pairs: np.ndarray, rng: np.random.Generator) -> Wavelets:
    """Return the wavelets of a random spanning forest, cut at its most balanced edge every time."""
    order, sizes, start, stop = _preorder(n, pairs, rng)
    cuts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    while True:
        large = stop - start > 1
        start, stop = start[large], stop[large]
        if start.size == 0:
            break
        middle = _cut(order, sizes, start, stop)
        cuts.append((start, middle, stop))
        start, stop = np.concatenate([start, middle]), np.concatenate([middle, stop])
    none = [np.empty(0, np.intp)]
    columns = list(zip(*cuts, strict=True)) or [none, none, none]
    return Wavelets(order, *(np.concatenate(column) for column in columns))


def _preorder(
    n: int, pairs: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw a spanning forest, and lay it out so that every subtree takes neighboring places.

    Returns the nodes by place, the sizes of their subtrees, and where the trees start and stop.
    """
    parents, visited = _forest(n, pairs, rng)
    sizes = [1] * (n + 1)
    for node in reversed(visited[1:]):
        sizes[parents[node]] += sizes[node]
    places = [0] * (n + 1)
    free = [0] * (n + 1)  # the first place of a subtree that no child has taken yet
    for node in visited[1:]:
        parent = parents[node]
        places[node] = free[parent]
        free[parent] += sizes[node]
        free[node] = places[node] + 1
    order = np.argsort(places[:n])
    roots = [node for node in visited[1:] if parents[node] == n]
    start = np.array([places[node] for node in roots], np.intp)
    stop = start + np.array([sizes[node] for node in roots], np.intp)
    return order, np.array(sizes)[order], start, stop


def _forest(n: int, pairs: np.ndarray, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return parents and nodes from the root, which is an additional node n above all trees."""
    from scipy.sparse import csgraph, csr_array  # slow to import, and few denoisers need them

    m = len(pairs)
    # the edges to the root weigh most, so that it gets one of them per component
    weights = np.concatenate([rng.permutation(m) + 1.0, np.full(n, m + 1.0)])
    lower = np.concatenate([pairs[:, 0], np.arange(n)])
    upper = np.concatenate([pairs[:, 1], np.full(n, n)])
    edges = np.stack([lower, upper]).astype(np.int32)  # all that older versions of scipy can read
    graph = csr_array((weights, (edges[0], edges[1])), shape=(n + 1, n + 1))
    tree = csgraph.minimum_spanning_tree(graph)
    visited, parents = csgraph.breadth_first_order(tree, n, directed=False)
    return parents.tolist(), visited.tolist()


def _cut(order: np.ndarray, sizes: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Cut every range of places at its most balanced edge, and return the middles.

    A range is a tree in preorder. A subtree of it is moved to its front, in place.
    """
    lengths = stop - start
    first = np.cumsum(lengths) - lengths
    range_of_place = np.repeat(np.arange(len(start)), lengths)  # the range that a place is in
    offset = np.arange(lengths.sum()) - first[range_of_place]
    place = start[range_of_place] + offset
    size, node = sizes[place], order[place]
    # of the edges above all nodes but the first, the one whose halves differ least; then the first
    base = len(order)
    best = (
        np.minimum.reduceat(np.abs(lengths[range_of_place] - 2 * size) * base + offset, first)
        % base
    )
    taken = size[first + best]
    best_own, taken_own = best[range_of_place], taken[range_of_place]
    above = (offset < best_own) & (offset + size > best_own)
    inside = (offset >= best_own) & (offset < best_own + taken_own)
    target = place + np.where(inside, -best_own, np.where(offset < best_own, taken_own, 0))
    order[target] = node
    sizes[target] = size - above * taken_own
    return np.asarray(start + taken)
