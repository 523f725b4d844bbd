"""Trend filtering against another solver, its closed form on regions, and its derivative."""

import sys

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.sparse.csgraph import connected_components

from dpframe import progress
from dpframe.denoising.graphs import trend_filter
from dpframe.errors import QueryError

ORDERS = pytest.mark.parametrize("order", [0, 1])


def line(n):
    return np.column_stack([np.arange(n - 1), np.arange(1, n)])


def grid(rows, columns):
    at = np.arange(rows * columns).reshape(rows, columns)
    across = [at[:, :-1].ravel(), at[:, 1:].ravel()], [at[:-1].ravel(), at[1:].ravel()]
    return np.hstack(across).T


def city(rows, columns):
    """A grid of which a fifth of the edges are missing."""
    edges = grid(rows, columns)
    return edges[np.random.default_rng(9).random(len(edges)) > 0.2]


def random_graph(n, m):
    return np.random.default_rng(n).integers(0, n, (m, 2))


GRAPHS = {
    "one edge": (2, line(2)),
    "line": (14, line(14)),
    "ring": (12, np.vstack([line(12), [[11, 0]]])),
    "star": (15, np.column_stack([np.zeros(14, int), np.arange(1, 15)])),
    "grid": (30, grid(5, 6)),
    "random": (22, random_graph(22, 40)),
    "apart": (24, np.vstack([line(5), grid(2, 4) + 6, random_graph(9, 12) + 14])),
}
EACH = pytest.mark.parametrize("name", GRAPHS)


def operator(n, edges, order):
    """D or L, built without the package."""
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    d = np.eye(n)[edges[:, 0]] - np.eye(n)[edges[:, 1]]
    return d if order == 0 else d.T @ d


def components(n, edges):
    joined = sparse.coo_array((np.ones(len(edges)), edges.T), shape=(n, n))
    return connected_components(joined, directed=False)


def component_means(y, edges):
    labels = components(len(y), edges)[1]
    return (np.bincount(labels, y) / np.bincount(labels))[labels]


def noisy(n, sigma=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(np.arange(n) < 0.6 * n, 3.0, -4.5) + sigma * rng.normal(size=n)


def by_active_sets(y, edges, order, penalty):
    """The estimate from its dual, `min |y - A' u|` over `|u_i| <= l`."""
    a = operator(len(y), edges, order)
    bounds = (-penalty, penalty)
    dual = optimize.lsq_linear(a.T, y, bounds, method="bvls", tol=1e-15, max_iter=9999)
    return y - a.T @ dual.x


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("penalty", [0.03, 0.9, 5.0])
@ORDERS
@EACH
def test_it_is_what_an_active_set_method_finds(name, order, penalty):
    n, edges = GRAPHS[name]
    for y in (noisy(n), np.round(noisy(n)), 1e4 + 300 * noisy(n) ** 3):
        found = trend_filter(y, 1.0, edges, order=order, penalty=penalty)
        assert found.values == pytest.approx(by_active_sets(y, edges, order, penalty), abs=1e-6)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("penalty", [0.4, 3.0])
@ORDERS
@pytest.mark.parametrize("name", ["line", "random", "apart"])
def test_degrees_of_freedom_are_the_derivative_and_the_risk_is_that_of_stein(name, order, penalty):
    n, edges = GRAPHS[name]
    y, sigma, step = noisy(n), 1.3, 1e-4

    def estimate(values):
        return trend_filter(values, sigma, edges, order=order, penalty=penalty)

    found = estimate(y)
    slope = 0.0  # the estimate is piecewise linear: a short step is as good as an endless one
    for i, unit in enumerate(step * np.eye(n)):
        slope += (estimate(y + unit).values[i] - found.values[i]) / step
    freedom = found.chosen["degrees_of_freedom"]
    assert freedom == pytest.approx(slope, abs=1e-3)
    expected = np.mean(np.square(found.values - y)) + sigma**2 * (2 * freedom / n - 1)
    assert found.risk == pytest.approx(expected, abs=1e-12)


@ORDERS
@EACH
def test_penalties_between_nothing_and_all(name, order):
    n, edges = GRAPHS[name]
    y = noisy(n)
    nothing = trend_filter(y, 1.5, edges, order=order, penalty=0)
    assert nothing.values.tolist() == y.tolist()
    assert nothing.risk == 2.25
    assert nothing.chosen == {"penalty": 0.0, "degrees_of_freedom": n}
    for penalty in (1e4, 1e9, 1e300):
        alike = trend_filter(y, 1.5, edges, order=order, penalty=penalty)
        assert alike.values == pytest.approx(component_means(y, edges), abs=1e-8)
        assert alike.chosen == {"penalty": penalty, "degrees_of_freedom": components(n, edges)[0]}


@pytest.mark.full
@pytest.mark.sampled(every=3)
@ORDERS
@pytest.mark.parametrize("sigma", [0.8, 5.0])
def test_the_penalty_chosen_has_the_smallest_estimated_risk_and_is_near_the_best(order, sigma):
    n, edges = 180, city(9, 20)
    truth = 12 * np.sin(np.arange(n) / 45) + np.where(np.arange(n) % 20 < 7, 9.0, 2.0)
    y = truth + sigma * np.random.default_rng(6).normal(size=n)
    found = trend_filter(y, sigma, edges, order=order)
    tried = [
        trend_filter(y, sigma, edges, order=order, penalty=penalty)
        for penalty in sigma * np.geomspace(0.05, 30, 24)
    ]
    assert found.risk <= min(one.risk for one in tried) + 0.01 * sigma**2
    errors = [np.mean(np.square(one.values - truth)) for one in tried]
    mine = np.mean(np.square(found.values - truth))
    assert mine < 1.2 * min(errors)
    assert mine < sigma**2


def test_smooth_lines_get_penalties_beyond_the_usual_ones():
    n = 500
    truth = np.arange(n) * 0.02 + np.where(np.arange(n) > 320, 0.03, 0) * (np.arange(n) - 320)
    y = truth + 2 * np.random.default_rng(3).normal(size=n)
    found = trend_filter(y, 2.0, line(n), order=1)
    usual = trend_filter(y, 2.0, line(n), order=1, penalty=60.0)
    assert found.chosen["penalty"] > 100
    errors = [np.mean(np.square(one.values - truth)) for one in (found, usual)]
    assert errors[0] < 0.7 * errors[1]


def test_where_nothing_helps_nothing_changes():
    y = np.arange(30) * 1.0
    found = trend_filter(y, 1e-6, line(30))
    assert found.values.tolist() == y.tolist()
    assert found.risk == 1e-12
    assert found.chosen == {"penalty": 0.0, "degrees_of_freedom": 30.0}


@ORDERS
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("penalty", ["sure", 2.0])
def test_without_edges_nothing_changes(n, order, penalty):
    y = np.arange(n) * 2.5
    found = trend_filter(y, 1.5, [], order=order, penalty=penalty)
    assert found.values.tolist() == y.tolist()
    assert found.values is not y
    assert found.risk == 2.25
    assert found.chosen == {"penalty": 0.0, "degrees_of_freedom": n}


@ORDERS
def test_sigma_matters_to_the_risk_alone_where_the_penalty_is_given(order):
    n, edges = GRAPHS["grid"]
    y = noisy(n)
    plain = trend_filter(y, 1.0, edges, order=order, penalty=0.8)
    for sigma in (1e-9, 1e9):
        other = trend_filter(y, sigma, edges, order=order, penalty=0.8)
        assert other.values == pytest.approx(plain.values, abs=1e-12)
        assert other.chosen == plain.chosen
        assert other.risk != plain.risk


@ORDERS
def test_units_a_common_level_and_names_of_nodes_do_not_matter(order):
    n, edges = GRAPHS["random"]
    y = noisy(n)
    plain = trend_filter(y, 1.0, edges, order=order)
    places = np.random.default_rng(0).permutation(n)
    moved = np.empty(n)
    moved[places] = 1e8 - 1e3 * y
    doubled = np.vstack([places[edges][::-1, ::-1], places[edges]])
    found = trend_filter(moved, 1e3, doubled, order=order)
    assert found.values[places] == pytest.approx(1e8 - 1e3 * plain.values, abs=1e-4)
    assert found.risk == pytest.approx(1e6 * plain.risk, rel=1e-9)
    assert found.chosen["penalty"] == pytest.approx(1e3 * plain.chosen["penalty"], rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 2}, "order must be 0 or 1, got order=2"),
        ({"order": True}, "order=True"),
        ({"penalty": -1}, 'penalty must be "sure" or a finite number >= 0, got penalty=-1'),
        ({"penalty": np.inf}, "penalty=inf"),
        ({"penalty": "cv"}, "penalty='cv'"),
        ({"penalty": None}, "penalty=None"),
        ({"sigma": -2}, "sigma=-2"),
        ({"edges": [(0, 3)]}, "from 0 to 2"),
        ({"values": [1, np.inf, 2]}, "finite"),
    ],
)
def test_unusable_arguments(options, message):
    arguments = {"values": [1.0, 2.0, 4.0], "sigma": 1.0, "edges": line(3), **options}
    with pytest.raises(QueryError, match=message):
        trend_filter(**arguments)


def test_a_bar_appears_only_where_it_takes_long_and_is_wanted(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    trend_filter(noisy(9), 1.0, line(9))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    trend_filter(noisy(9), 1.0, line(9), progress=False)
    assert capsys.readouterr().err == ""
    shown = trend_filter(noisy(9), 1.0, line(9))
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    trend_filter(noisy(9), 1.0, line(9))
    assert "trend filtering" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # as if it was not installed
    progress._bars.cache_clear()
    assert trend_filter(noisy(9), 1.0, line(9)).values.tolist() == shown.values.tolist()
    assert capsys.readouterr().err == ""
