"""Projections against a convex solver, optimality conditions, and the errors that they realize."""

import functools
import math

import clarabel
import numpy as np
import pytest
from scipy import sparse
from support.raising import raises

from dpframe.denoising.projection import consistent, monotone, nonnegative, onto_simplex, whole
from dpframe.errors import QueryError

SIZE = 7.5
PROJECTIONS = {
    "increasing": monotone,
    "decreasing": lambda y, s: monotone(y, s, increasing=False),
    "consistent": lambda y, s: consistent(y, s, parents=forest(len(y))),
}
EACH = pytest.mark.parametrize("name", PROJECTIONS)


@functools.cache
def forest(n):
    """Parents of a forest of irregular trees whose nodes come in no order."""
    rng = np.random.default_rng(5)
    above = np.array([max(-1, i - 1 - int(rng.integers(0, 4))) for i in range(n)])
    place = rng.permutation(n)
    parents = np.empty(n, int)
    parents[place] = np.where(above < 0, -1, place[above]) if n else above
    return parents


def noisy_values(n):
    rng = np.random.default_rng(n)
    return 4 * rng.standard_normal(n) + 2 + np.arange(n) / 9


def solved(noisy, equal, below):
    """Minimize |x - y|^2 where rows of (matrix, right side) are equal to it or below it."""
    n = len(noisy)
    quadratic = sparse.diags([1.0] * n, format="csc")
    matrix = sparse.csc_matrix(np.vstack([equal[0], below[0]]))
    right = np.concatenate([equal[1], below[1]])
    cones = [clarabel.ZeroConeT(len(equal[1])), clarabel.NonnegativeConeT(len(below[1]))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(quadratic, -noisy, matrix, right, cones, settings)
    return np.array(solver.solve().x)[:n]


def nearest(name, y):
    """Solve for the projection with no use of its structure."""
    n = len(y)
    one, free = np.eye(n), (np.empty((0, n)), np.empty(0))
    if name in ("increasing", "decreasing"):
        steps = (one[:-1] - one[1:]) * (1 if name == "increasing" else -1)
        return solved(y, free, (steps, np.zeros(n - 1)))
    parents = forest(n)
    inner = np.unique(parents[parents >= 0])
    sums = one[inner] - (parents == inner[:, None])
    return solved(y, (sums, np.zeros(len(inner))), free)


@EACH
@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
def test_projections_are_what_a_convex_solver_finds(name, n):
    y = noisy_values(n)
    assert PROJECTIONS[name](y, 1.0).values == pytest.approx(nearest(name, y), abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 50, 2_000])
@pytest.mark.parametrize("total", [1e-9, 0.3, SIZE, 1e4])
def test_the_simplex_is_met_where_it_is_nearest(n, total):
    y = noisy_values(n)
    x = onto_simplex(y, total)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(total, rel=1e-12)
    moved, tolerance = (y - x)[x > 0], 1e-11 * max(1, total)
    assert moved == pytest.approx(moved[0], abs=tolerance)
    assert (y[x == 0] <= moved[0] + tolerance).all()


def test_a_total_is_kept_next_to_huge_values():
    assert onto_simplex(np.array([1e300, 3, -1e300]), 1).tolist() == [1, 0, 0]


@pytest.mark.parametrize(("k", "height"), [(2, 2), (2, 5), (3, 4), (7, 3)])
def test_regular_trees_follow_the_closed_formula(k, height):
    n = (k**height - 1) // (k - 1)
    parents, y = (np.arange(n) - 1) // k, noisy_values(n)
    z, x = y.copy(), np.empty(n)
    firsts = [(k**depth - 1) // (k - 1) for depth in range(height + 1)]
    for depth in reversed(range(height - 1)):
        p = k ** (height - depth)
        for node in range(firsts[depth], firsts[depth + 1]):
            children = z[k * node + 1 : k * node + k + 1].sum()
            z[node] = ((p - p // k) * y[node] + (p // k - 1) * children) / (p - 1)
    x[0] = z[0]
    for node in range(1, n):
        above = parents[node]
        x[node] = z[node] + (x[above] - z[parents == above].sum()) / k
    assert consistent(y, 1.0, parents=parents).values == pytest.approx(x, abs=1e-11)


def test_chains_are_averaged_and_roots_alone_stay():
    y = noisy_values(500)
    chain = consistent(y, 1.0, parents=np.arange(500) - 1).values
    assert chain == pytest.approx(y.mean(), rel=1e-11)
    assert np.array_equal(consistent(y, 1.0, parents=np.full(500, -1)).values, y)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([0, 0, 0], r"from \[0, 1, 2\] they lead around"),
        ([-1, 2, 1], r"from \[1, 2\] they lead around"),
        ([-1, 0, 3], r"got parents=\[-1, 0, 3\]"),
        ([-2, 0, 0], r"got parents=\[-2, 0, 0\]"),
        ([-1, 0], "parents must be 3 integers"),
        ([-1.0, 0.0, 0.0], r"integers.* got parents=\[-1.0"),
        ([True, False, False], r"integers.* got parents=\[True"),
        (None, "parents must be 3 integers"),
    ],
)
def test_parents_make_a_forest(parents, message):
    with pytest.raises(QueryError, match=message):
        consistent([1, 2, 3], 1.0, parents=parents)


def test_no_values_have_no_total():
    assert len(whole([], total=0).values) == 0
    with raises(QueryError, "from 0 to 0", parameter="total"):
        whole([], total=1)


def test_options_are_checked():
    with raises(QueryError, "sigma must be", parameter="sigma"):
        nonnegative([1.0], 0)
    with raises(QueryError, "False", parameter="increasing"):
        monotone([1.0], 1.0, increasing="down")
    with raises(QueryError, "values to denoise", parameter="values"):
        whole([math.inf])
