"""Spanning-tree wavelets against dense matrices, brute force, and derivatives of the estimate."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dpframe.denoising.graphs import spanning_tree_wavelets, tree_wavelets
from dpframe.denoising.projection import check_edges
from dpframe.errors import QueryError


def line(n):
    return np.column_stack([np.arange(n - 1), np.arange(1, n)])


def star(n):
    return np.column_stack([np.zeros(n - 1, int), np.arange(1, n)])


def grid(rows, columns):
    at = np.arange(rows * columns).reshape(rows, columns)
    across = [at[:, :-1].ravel(), at[:, 1:].ravel()], [at[:-1].ravel(), at[1:].ravel()]
    return np.hstack(across).T


def random_tree(n):
    rng = np.random.default_rng(5)
    return np.array([(int(rng.integers(0, i)), i) for i in range(1, n)])


# the last has three components of several nodes and two nodes that nothing is joined to
GRAPHS = {
    "one edge": (2, line(2)),
    "line": (13, line(13)),
    "star": (9, star(9)),
    "tree": (40, random_tree(40)),
    "grid": (30, grid(5, 6)),
    "apart": (21, np.vstack([line(4), grid(2, 3) + 5, random_tree(9) + 11])),
}
EACH = pytest.mark.parametrize("name", GRAPHS)


def components(n, edges):
    joined = sparse.coo_array((np.ones(len(edges)), edges.T), shape=(n, n))
    return connected_components(joined, directed=False)


def wavelets_of(name, seed=0):
    n, edges = GRAPHS[name]
    return spanning_tree_wavelets(n, check_edges(edges, n), np.random.default_rng(seed))


def rows_of(wavelets):
    return np.array([wavelets.analyze(unit) for unit in np.eye(len(wavelets.order))]).T


def noisy(n, sigma=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(np.arange(n) < 0.6 * n, 3.0, -4.5) + sigma * rng.normal(size=n)


@EACH
def test_with_the_means_of_components_they_are_an_orthonormal_basis(name):
    n, edges = GRAPHS[name]
    count, labels = components(n, edges)
    wavelets = rows_of(wavelets_of(name))
    means = (labels == np.arange(count)[:, None]) / np.sqrt(np.bincount(labels))[:, None]
    basis = np.vstack([wavelets, means])
    assert basis.shape == (n, n)
    assert np.allclose(basis @ basis.T, np.eye(n), atol=1e-14)


@pytest.mark.parametrize("name", ["line", "star", "tree"])
def test_no_other_edge_of_the_tree_cuts_more_evenly(name):
    n, edges = GRAPHS[name]
    wavelets = wavelets_of(name)
    for first, middle, last in zip(*wavelets[1:], strict=True):
        part = wavelets.order[first:last]
        inside = edges[np.isin(edges, part).all(axis=1)]
        uneven = []
        for i in range(len(inside)):
            labels = components(n, np.delete(inside, i, axis=0))[1][part]
            uneven.append(abs(2 * int((labels == labels[0]).sum()) - len(part)))
        assert abs((middle - first) - (last - middle)) == min(uneven)


def test_on_a_line_of_a_power_of_two_they_are_those_of_haar():
    wavelets = spanning_tree_wavelets(8, line(8), np.random.default_rng(0))
    levels = [
        np.kron(np.eye(8 // width), np.repeat([1.0, -1.0], width // 2)) / np.sqrt(width)
        for width in (8, 4, 2)
    ]
    found = np.abs(rows_of(wavelets) @ np.vstack(levels).T)
    assert np.allclose(np.sort(found.sum(axis=0)), 1)
    assert np.allclose(np.sort(found.max(axis=1)), 1)


@EACH
def test_synthesis_undoes_analysis_up_to_the_means_of_components(name):
    n, edges = GRAPHS[name]
    labels = components(n, edges)[1]
    y = noisy(n)
    wavelets = wavelets_of(name)
    means = (np.bincount(labels, y) / np.bincount(labels))[labels]
    assert np.allclose(wavelets.synthesize(wavelets.analyze(y)), y - means, atol=1e-13)


@EACH
@pytest.mark.parametrize("trees", [1, 3])
def test_it_averages_what_universal_thresholds_leave_of_each_tree(name, trees):
    n, edges = GRAPHS[name]
    y, sigma = noisy(n, 0.8), 0.8
    rng = np.random.default_rng(4)
    expected, losses = np.zeros(n), []
    for _ in range(trees):
        rows = rows_of(spanning_tree_wavelets(n, check_edges(edges, n), rng))
        t = sigma * np.sqrt(2 * np.log(len(rows)))
        details = rows @ y
        shrunk = np.sign(details) * np.maximum(np.abs(details) - t, 0)
        expected += (y - rows.T @ (details - shrunk)) / trees
        losses.append(np.mean(np.square(details - shrunk)))
    found = tree_wavelets(y, sigma, edges, trees=trees, threshold="universal", seed=4)
    assert np.allclose(found.values, expected, atol=1e-13)
    assert found.chosen == {"threshold": pytest.approx(t, abs=1e-15)}


def divergence(estimate, y, step=1e-5):
    units = step * np.eye(len(y))
    return sum(
        (estimate(y + unit)[i] - estimate(y - unit)[i]) / (2 * step) for i, unit in enumerate(units)
    )


@pytest.mark.sampled(every=5)
@EACH
@pytest.mark.parametrize("trees", [1, 4])
def test_the_risk_is_that_of_stein_with_the_derivative_of_the_average(name, trees):
    n, edges = GRAPHS[name]
    y, sigma = noisy(n, 1.3), 1.3

    def estimate(values):
        options = {"trees": trees, "threshold": "universal"}
        return tree_wavelets(values, sigma, edges, **options)

    found = estimate(y)
    slope = divergence(lambda values: estimate(values).values, y) / n
    expected = np.mean(np.square(found.values - y)) + sigma**2 * (2 * slope - 1)
    assert found.risk == pytest.approx(expected, abs=1e-6)


def realized(trees, threshold="sure"):
    """Squared errors and estimated risks on a map of 1,200 places with two levels."""
    truth = np.where((np.arange(1200) % 40 < 13) & (np.arange(1200) > 500), 40.0, 4.0)
    rng = np.random.default_rng(8)
    errors, risks = [], []
    for _ in range(12):
        y = truth + 6 * rng.normal(size=1200)
        found = tree_wavelets(y, 6.0, grid(30, 40), trees=trees, threshold=threshold)
        errors.append(np.mean(np.square(found.values - truth)) / 36)
        risks.append(found.risk / 36)
    return np.mean(errors), np.mean(risks)


def test_more_trees_are_more_accurate_and_the_risk_says_how_accurate():
    one, five = realized(1), realized(5)
    assert five[0] < 0.85 * one[0] < 0.5
    assert one[1] == pytest.approx(one[0], abs=0.03)
    assert five[1] == pytest.approx(five[0], abs=0.03)


def test_thresholds_that_are_chosen_never_cost_what_universal_ones_cost():
    rng = np.random.default_rng(2)
    truth = 30 * rng.exponential(size=600)  # nothing that neighbors share
    y = truth + rng.normal(size=600)
    costs = {
        rule: np.mean(np.square(tree_wavelets(y, 1.0, grid(20, 30), threshold=rule).values - truth))
        for rule in ("sure", "universal")
    }
    assert costs["universal"] > 5
    assert costs["sure"] < 1.1


@pytest.mark.parametrize("threshold", ["sure", "universal"])
def test_a_node_without_neighbors_and_the_mean_of_a_component_are_left_as_they_are(threshold):
    n, edges = GRAPHS["apart"]
    y = noisy(n)
    labels = components(n, edges)[1]
    found = tree_wavelets(y, 1.0, edges, threshold=threshold).values
    assert np.allclose(np.bincount(labels, found), np.bincount(labels, y), atol=1e-12)
    assert found[[4, 20]] == pytest.approx(y[[4, 20]], abs=1e-14)
    assert np.abs(found - y).max() > 0.3


@pytest.mark.parametrize("n", [0, 1, 3])
def test_without_edges_nothing_changes(n):
    y = np.arange(n) * 2.5
    found = tree_wavelets(y, 1.5, [])
    assert found.values.tolist() == y.tolist()
    assert found.values is not y
    assert found.risk == 2.25
    assert found.chosen == {"threshold": 0.0}


@pytest.mark.parametrize("y", [np.zeros(6), np.full(6, -7.25), np.array([0, 0, 1e15, 0, 0, 0])])
def test_constant_and_huge_values_are_nothing_special(y):
    found = tree_wavelets(y, 2.0, line(6))
    assert found.values == pytest.approx(y, rel=1e-12, abs=3)
    assert np.isfinite(found.risk)


def test_noise_that_rounding_hides_is_left():
    y = np.array([1e308, -1e308, 1e308])
    found = tree_wavelets(y, 1.0, line(3))
    assert found.values.tolist() == y.tolist()
    assert found.risk == 1


def test_the_seed_alone_determines_the_trees():
    n, edges = GRAPHS["grid"]
    y = noisy(n)
    first, again = (tree_wavelets(y, 1.0, edges, seed=3).values for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != tree_wavelets(y, 1.0, edges, seed=4).values.tolist()
    # an edge that is named twice, from the other side, and to itself is the same graph
    doubled = np.vstack([edges[::-1, ::-1], edges, [[5, 5]]])
    assert first.tolist() == tree_wavelets(y, 1.0, doubled, seed=3).values.tolist()


def test_units_and_a_common_level_do_not_matter():
    n, edges = GRAPHS["tree"]
    y = noisy(n)
    plain = tree_wavelets(y, 1.0, edges)
    moved = tree_wavelets(1e9 - 1e3 * y, 1e3, edges)
    assert moved.values == pytest.approx(1e9 - 1e3 * plain.values, abs=1e-4)
    assert moved.risk == pytest.approx(1e6 * plain.risk, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trees": 0}, "trees must be a whole number >= 1, got trees=0"),
        ({"trees": 2.5}, "trees=2.5"),
        ({"trees": True}, "trees=True"),
        ({"seed": -1}, "seed must be a whole number >= 0, got seed=-1"),
        ({"seed": None}, "seed=None"),
        ({"threshold": "hard"}, 'must be "sure" or "universal", got threshold=.hard'),
        ({"threshold": 2.0}, "threshold=2.0"),
        ({"sigma": 0}, "sigma=0"),
        ({"edges": [(0, 3)]}, "from 0 to 2"),
        ({"values": [1, np.nan, 2]}, "finite"),
    ],
)
def test_unusable_arguments(options, message):
    arguments = {"values": [1.0, 2.0, 4.0], "sigma": 1.0, "edges": line(3), **options}
    with pytest.raises(QueryError, match=message):
        tree_wavelets(**arguments)
