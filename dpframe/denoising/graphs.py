"""Denoisers on a graph: trend filtering, and wavelets.

Trends are constant or smooth over regions that they choose. Wavelets are those of random spanning
trees, which are cut in halves again and again.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

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
from dpframe.frozen import frozen
from dpframe.privacy.amounts import as_float, as_number
from dpframe.progress import show_progress

_FINEST = 1e15  # noise, or a penalty, that is a smaller part of a float64 is lost in its rounding

_SMALLEST, _LARGEST, _POINTS = 0.05, 30.0, 24  # penalties in units of sigma, evenly by ratio
_RATIO = (_LARGEST / _SMALLEST) ** (1 / (_POINTS - 1))  # from one penalty to the next

_LOOSE, _TIGHT = 1e-6, 1e-16  # duality gaps per value
_BEYOND = 10  # multiples of the best penalty are tried up to this one, after all points
_MOST = 100  # penalties: the last of them is above 1e10
_STEPS, _PATIENCE = 60, 3  # steps: all, and those in a row that gain nothing
_DAMPING = 1e-13  # for duals that many solutions share, in cycles
_SHORTER = 0.99  # steps stay inside the bounds
_SIGNS = np.array([[1.0], [-1.0]])  # of what bounds from above, and from below

_Direction: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def trend_filter(
    values: object,
    sigma: float,
    edges: object,
    *,
    order: Literal[0, 1] = 0,
    penalty: Literal["sure"] | float = "sure",
    progress: bool = True,
) -> Denoised:
    """Denoise values on a graph so that neighbors are alike except where they clearly are not.

    With y the n values, D the oriented incidence matrix of the edges (a row has 1 at one end and -1
    at the other), `L = D' D` the Laplacian and l the penalty, the estimate minimizes

        1/2 |y - x|^2 + l |D x|_1        order 0: constant on regions, with jumps between them
        1/2 |y - x|^2 + l |L x|_1        order 1: x_i is the mean of its neighbors, except at knots

    Edges are pairs of positions, shape (m, 2); a node without any keeps its value. The penalty is
    in the units of the values, or "sure": the one with the smallest estimate of the risk among
    none, 24 from 0.05 to 30 sigma, and larger ones up to ten times the best.

    `risk` is Stein's estimate, unbiased for Gaussian noise and a given penalty, with k degrees of
    freedom: for order 0 the number of regions, for order 1 that of the knots, `(L x)_i != 0`, or 1
    in a component without any. `chosen` holds "penalty" and "degrees_of_freedom". Where no penalty
    has a risk below sigma^2, and where noise or penalty are lost in the rounding of values (below
    1e-15 of the largest), all come back unchanged.

    References
    ----------
    Y.-X. Wang, J. Sharpnack, A. J. Smola and R. J. Tibshirani, "Trend filtering on graphs", Journal
    of Machine Learning Research 17, 2016. R. J. Tibshirani and J. Taylor, "Degrees of freedom in
    lasso problems", Annals of Statistics 40, 2012. S. Mehrotra, "On the implementation of a
    primal-dual interior point method", SIAM Journal on Optimization 2, 1992 (here on the dual).

    Examples
    --------
    >>> line = [(0, 1), (1, 2), (2, 3), (3, 4)]
    >>> found = trend_filter([1.0, 2.0, 3.0, 9.0, 7.0], 1.0, line, penalty=1.5)
    >>> found.values.round(6), found.chosen
    (array([2.25, 2.25, 3.  , 7.25, 7.25]), {'penalty': 1.5, 'degrees_of_freedom': 3.0})
    """
    y, s = check_values(values), check_sigma(sigma)
    pairs = check_edges(edges, y.size)
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order not in (0, 1):
        raise QueryError.about("order", "must be 0 or 1", order)
    chosen_penalty = _penalty(penalty)
    nothing = {"penalty": 0.0, "degrees_of_freedom": float(y.size)}
    smallest = s if chosen_penalty is None else chosen_penalty
    if pairs.size == 0 or chosen_penalty == 0 or np.abs(y).max() > _FINEST * smallest:
        return Denoised(y.copy(), s * s, nothing)
    graph = _graph(y.size, pairs, order)
    center = _means(y, graph.labels)  # penalties do not see the mean of a component
    offsets = y - center
    if chosen_penalty is None:
        unit = s
        strength = _best_penalty(offsets / unit, graph, shown=progress)
        used = s * strength
    else:
        # a unit above all offsets would leave them small beside the tolerance of the fit
        unit = min(chosen_penalty, float(np.abs(offsets).max()) or chosen_penalty)
        strength, used = chosen_penalty / unit, chosen_penalty
    if strength == 0:
        return Denoised(y.copy(), s * s, nothing)
    fit = _fit(offsets / unit, graph, strength, _TIGHT)
    x = center + unit * fit.x
    chosen = {"penalty": used, "degrees_of_freedom": float(fit.freedom)}
    return Denoised(x, stein_risk(x - y, s, fit.freedom / y.size), chosen)


def _penalty(penalty: object) -> float | None:
    if isinstance(penalty, str) and penalty == "sure":
        return None
    number = as_float(penalty)
    if 0 <= number < math.inf:
        return number
    raise QueryError.about("penalty", 'must be "sure" or a finite number >= 0', penalty)


def _best_penalty(z: np.ndarray, graph: "_Graph", *, shown: bool) -> float:
    best, least = 0.0, 1.0
    bar = None if shown else False
    for i in show_progress(range(_MOST), "trend filtering", _POINTS, shown=bar):
        penalty = _SMALLEST * _RATIO**i
        fit = _fit(z, graph, penalty, _LOOSE)
        risk = stein_risk(fit.x - z, 1.0, fit.freedom / z.size)
        if risk < least:
            best, least = penalty, risk
        # x only moves away from z, and this is the risk if it lost all freedom on the spot
        bound = stein_risk(fit.x - z, 1.0, graph.components / z.size)
        if bound >= least or (i + 1 >= _POINTS and penalty > _BEYOND * best):
            break
    return best


@frozen(slots=True)
class _Graph:
    """A graph with the operator A whose absolute values are penalized: D or L."""

    order: int
    pairs: np.ndarray
    components: int
    labels: np.ndarray  # the components of the nodes
    matrix: Any


def _graph(n: int, pairs: np.ndarray, order: int) -> _Graph:
    from scipy import sparse  # slow to import, and few denoisers need it

    m = len(pairs)
    starts = np.arange(0, 2 * m + 1, 2)
    incidence = sparse.csr_array((np.tile([1.0, -1.0], m), pairs.ravel(), starts), shape=(m, n))
    matrix = incidence if order == 0 else (incidence.T @ incidence).tocsr()
    return _Graph(order, pairs, *_components(n, pairs), matrix)


def _components(n: int, pairs: np.ndarray) -> tuple[int, np.ndarray]:
    from scipy.sparse import coo_array, csgraph  # slow to import

    joined = coo_array((np.ones(len(pairs)), pairs.T), shape=(n, n))
    count, labels = csgraph.connected_components(joined, directed=False)
    return int(count), labels


def _means(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.asarray((np.bincount(labels, x) / np.bincount(labels))[labels])


class _Fit(NamedTuple):
    x: np.ndarray
    freedom: int


def _fit(z: np.ndarray, graph: _Graph, penalty: float, tolerance: float) -> _Fit:
    x, flat = _solve(z, graph, penalty, tolerance)
    if graph.order == 0:
        regions, labels = _components(z.size, graph.pairs[flat])
        return _Fit(_means(x, labels), regions)
    knots = np.bincount(graph.labels, ~flat)
    return _Fit(x, int(np.maximum(knots, 1).sum()))


def _solve(
    z: np.ndarray, graph: _Graph, penalty: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimate x, and which penalized differences A x are zero.

    The dual is to minimize `1/2 |z - A' u|^2` over `|u_i| <= l`; then `x = z - A' u`. The slacks
    `l - u` and `l + u` and their prices, whose difference is A x, are positive, and their products
    go to zero. As 1/2 |x|^2 is strongly convex, half of `|x - x*|^2` is at most the duality gap.
    """
    # no dual exceeds the first term, so that larger penalties would change nothing
    penalty = min(penalty, z.size**2 * float(np.abs(z).sum()) + 1)
    differences = graph.matrix @ z
    slacks = np.full((2, differences.size), penalty)
    prices = _first_prices(differences)
    dual = np.zeros(differences.size)
    best, least, stalled = z, math.inf, 0
    flat = np.ones(differences.size, bool)
    x = z
    for _ in range(_STEPS):
        gap = float((np.maximum(_SIGNS * differences, 0) * slacks).sum())
        stalled = 0 if gap < least else stalled + 1
        if gap < least:
            best, least = x, gap
            flat = np.abs(differences) * penalty < slacks.min(axis=0)
        if gap <= tolerance * z.size or stalled == _PATIENCE:
            break
        step, slacks, prices = _advance(graph, differences, slacks, prices)
        dual = dual + step
        x = z - graph.matrix.T @ dual
        differences = graph.matrix @ x
    return best, flat


def _first_prices(differences: np.ndarray) -> np.ndarray:
    """Return positive prices with the given differences and equal products."""
    sizes = np.abs(differences)
    middle = sizes.mean() / 2 or 1.0
    larger = sizes / 2 + np.hypot(sizes / 2, middle)
    pair = np.array([larger, middle**2 / larger])
    return np.where(differences > 0, pair, pair[::-1])


def _advance(
    graph: _Graph, differences: np.ndarray, slacks: np.ndarray, prices: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take a predictor-corrector step, and return how far the dual moves."""
    direction = _directions(graph, differences, slacks, prices)
    products = prices * slacks
    slack, price = direction(-products)
    length = _longest(slack / slacks, price / prices)
    after = ((slacks + length * slack) * (prices + length * price)).mean()
    target = products.mean() * (after / products.mean()) ** 3
    slack, price = direction(target - products - slack * price)
    length = min(1.0, _SHORTER * _longest(slack / slacks, price / prices))
    return length * slack[1], slacks + length * slack, prices + length * price


def _longest(*relative: np.ndarray) -> float:
    """Return how far changes can be followed, up to all the way, until one is down at zero."""
    return 1 / max(1.0, *(float(-change.min()) for change in relative))


def _directions(
    graph: _Graph, differences: np.ndarray, slacks: np.ndarray, prices: np.ndarray
) -> _Direction:
    """Return the function from changes of the products to changes of slacks and prices.

    With B = diag(prices / slacks, summed), the dual moves by u with `(A A' + B) u = r`, which is
    solved as `v + A' u = 0, A v - B u = -r`: B goes to zero, and both A A' and B^-1 would lose
    digits where regions are large.
    """
    from scipy.sparse import block_array, diags_array, eye_array, linalg  # slow to import

    m, n = graph.matrix.shape
    corner = diags_array(-(prices / slacks).sum(axis=0) - _DAMPING)
    blocks = [[eye_array(n), graph.matrix.T], [graph.matrix, corner]]
    system = block_array(blocks, format="csc")
    # quasi-definite: it can be factored without exchanging rows, whatever the order
    options = {"SymmetricMode": True}
    factor = linalg.splu(system, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)

    def direction(changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        right = np.zeros(n + m)
        right[n:] = (_SIGNS * (prices + changes / slacks)).sum(axis=0) - differences
        step = factor.solve(right)
        step += factor.solve(right - system @ step)  # what rounding left
        u = step[n:]
        return -_SIGNS * u, (changes + _SIGNS * prices * u) / slacks

    return direction


Rule = Literal["sure", "universal"]


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

    order: np.ndarray  # the nodes at the places, shape (n,)
    start: np.ndarray  # first places of the wavelets, shape (w,)
    middle: np.ndarray  # first place of its second part
    stop: np.ndarray  # the place after its last

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
