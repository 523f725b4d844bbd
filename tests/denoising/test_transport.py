"""Tables with given sums against a convex solver and brute force."""

import itertools
import types

import clarabel
import numpy as np
import pytest
from scipy import optimize, sparse

from dpframe.denoising.consistent import nearest_table, rounded_table

SHAPES = [(1, 1), (1, 4), (5, 1), (2, 3), (4, 3), (3, 7), (9, 8)]


def problem(shape, seed, noise=4.0):
    """Return a skewed table with negative cells, and sums that are not its own, some of them 0."""
    rng = np.random.default_rng(seed)
    truth = rng.exponential(3.0, shape) ** 2 * (rng.random(shape) < 0.7)
    truth[0] *= rng.random() < 0.5
    truth[-1, -1] += 2.0
    rows = truth.sum(axis=1) * rng.uniform(0.5, 1.5, shape[0])
    columns = truth.sum(axis=0)
    return truth + noise * rng.standard_normal(shape), rows * (columns.sum() / rows.sum()), columns


def solved(y, rows, columns):
    """Return the nearest table by an interior point method."""
    m, n = y.shape
    sums = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))[:-1]])
    matrix = sparse.csc_matrix(np.vstack([sums, -np.eye(m * n)]))
    right = np.concatenate([rows, columns[:-1], np.zeros(m * n)])
    cones = [clarabel.ZeroConeT(m + n - 1), clarabel.NonnegativeConeT(m * n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    identity = sparse.eye(m * n, format="csc")
    solver = clarabel.DefaultSolver(identity, -y.ravel(), matrix, right, cones, settings)
    return np.array(solver.solve().x).reshape(m, n)


def assert_sums(x, rows, columns, relative=1e-12):
    assert x.min() >= 0
    assert np.abs(x.sum(axis=1) - rows).max() <= relative * rows.sum()
    assert np.abs(x.sum(axis=0) - columns).max() <= relative * rows.sum()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", [0.5, 4.0, 60.0])
def test_the_nearest_table_is_that_of_a_convex_solver(shape, noise):
    for seed in range(3):
        y, rows, columns = problem(shape, seed, noise)
        x = nearest_table(y, rows, columns)
        assert_sums(x, rows, columns)
        assert np.allclose(x, solved(y, rows, columns), rtol=0, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_cells_follow_from_levels_of_rows_and_columns(seed):
    y, rows, columns = problem((12, 17), seed)
    x = nearest_table(y, rows, columns)
    sums = np.vstack([np.kron(np.eye(12), np.ones(17)), np.kron(np.ones(12), np.eye(17))])
    positive = (x > 0).ravel()
    levels, *_ = np.linalg.lstsq(sums.T[positive], (x - y).ravel()[positive])
    assert np.allclose(levels @ sums[:, positive], (x - y).ravel()[positive], atol=1e-8)
    assert np.count_nonzero(positive) < positive.size


def test_a_table_with_these_sums_stays():
    y, rows, columns = problem((6, 4), 1)
    x = nearest_table(y, rows, columns)
    assert np.allclose(nearest_table(x, rows, columns), x, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", [3, 40])
def test_chains_of_cells_are_solved(n):
    """Every row shares one column with the next: levels pass along all of them."""
    y = np.full((n, n), -100.0)
    y[np.arange(n), np.arange(n)] = np.linspace(1, 50, n)
    y[np.arange(n - 1), np.arange(1, n)] = np.linspace(9, 3, n - 1)
    rows, columns = np.maximum(y, 0).sum(axis=1), np.maximum(y, 0).sum(axis=0)
    rows[0] += 1
    columns[-1] += 1
    x = nearest_table(y, rows, columns)
    assert_sums(x, rows, columns)
    assert np.allclose(x, solved(y, rows, columns), rtol=0, atol=1e-4)


@pytest.mark.parametrize("noise", [1e6, 1e12, 1e100])
def test_sums_hold_under_any_noise(noise):
    y, rows, columns = problem((7, 9), 5, noise)
    assert_sums(nearest_table(y, rows, columns), rows, columns)
    assert_sums(nearest_table(y, rows * 1e-20, columns * 1e-20), rows * 1e-20, columns * 1e-20)


def whole_problem(shape, seed):
    """Return a table and whole sums near its own."""
    rng = np.random.default_rng(seed)
    table = rng.exponential(1.0, shape) * (rng.random(shape) < 0.6)
    rounded = np.floor(table + rng.random(shape))
    return table, rounded.sum(axis=1), rounded.sum(axis=0)


def cheapest(table, rows, columns, further):
    """Return the least sum of squared changes of whole tables, or None if there is none."""
    sets = [
        range(max(int(np.floor(x)) - further, 0), int(np.ceil(x)) + further + 1)
        for x in table.ravel()
    ]
    cells = np.array(list(itertools.product(*sets))).reshape(-1, *table.shape)
    fits = (cells.sum(axis=2) == rows).all(axis=1) & (cells.sum(axis=1) == columns).all(axis=1)
    return np.square(cells[fits] - table).sum(axis=(1, 2)).min() if fits.any() else None


@pytest.mark.parametrize("seed", range(20))
def test_rounding_up_or_down_is_the_nearest(seed):
    table, rows, columns = whole_problem((3, 4), seed)
    rounded = rounded_table(table, rows, columns)
    expected = cheapest(table, rows, columns, further=0)
    assert np.square(rounded - table).sum() == pytest.approx(expected, abs=1e-9)
    assert np.abs(rounded - table).max() < 1
    assert np.array_equal(rounded.sum(axis=1), rows)
    assert np.array_equal(rounded.sum(axis=0), columns)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "shift", [([2, 0], [0, 1, 1]), ([-2, 2], [1, -1, 0]), ([0, -1], [-1, 0, 0])]
)
def test_cells_go_further_where_sums_do_not_allow_rounding(seed, shift):
    table, rows, columns = whole_problem((2, 3), seed)
    table, rows, columns = table + 0.75, rows + shift[0] + 3, columns + shift[1] + 2
    rounded = rounded_table(table, rows, columns)
    assert np.array_equal(rounded.sum(axis=1), rows)
    assert np.array_equal(rounded.sum(axis=0), columns)
    assert rounded.min() >= 0
    nearest = cheapest(table, rows, columns, further=0)
    if nearest is None and np.abs(rounded - table).max() < 1.5:  # further steps cost too little
        nearest = cheapest(table, rows, columns, further=1)
    if nearest is not None:
        assert np.square(rounded - table).sum() == pytest.approx(nearest, abs=1e-9)


@pytest.mark.parametrize("shape", [(50, 60), (300, 3), (1, 30), (25, 25)])
@pytest.mark.parametrize("skew", [1, 3])
def test_large_tables_have_sums_at_the_price_of_fractions(shape, skew):
    """Parts of steps are no cheaper: the least price of them is that of whole ones."""
    rng = np.random.default_rng(skew)
    table = rng.exponential(2.0, shape) ** skew
    rounded = np.floor(table + rng.random(shape))
    rows, columns = rounded.sum(axis=1), rounded.sum(axis=0)
    sums = sparse.vstack(
        [
            sparse.kron(sparse.eye_array(shape[0]), np.ones((1, shape[1]))),
            sparse.kron(np.ones((1, shape[0])), sparse.eye_array(shape[1])),
        ]
    )
    floors = np.floor(table)
    prices = np.square(floors + 1 - table) - np.square(floors - table)
    missing = np.append(rows - floors.sum(axis=1), columns - floors.sum(axis=0))
    best = optimize.linprog(
        prices.ravel(), A_eq=sums, b_eq=missing, bounds=(0, 1), method="highs-ipm"
    )
    found = rounded_table(table, rows, columns)
    assert np.array_equal(found.sum(axis=1), rows)
    assert np.array_equal(found.sum(axis=0), columns)
    assert np.square(found - table).sum() == pytest.approx(
        np.square(floors - table).sum() + best.fun, abs=1e-6
    )


@pytest.mark.parametrize("answer", [None, "halves", "zeros"])
def test_sums_hold_whatever_the_solver_answers(monkeypatch, answer):
    def linprog(prices, *, b_eq, **_):
        x = {None: None, "halves": np.full(len(prices), 0.5), "zeros": np.zeros(len(prices))}
        sums = types.SimpleNamespace(marginals=np.zeros(len(b_eq)))
        return types.SimpleNamespace(x=x[answer], status=int(answer is None), eqlin=sums)

    table, rows, columns = whole_problem((6, 9), 3)
    assert not np.array_equal(np.floor(table).sum(axis=0), columns)
    monkeypatch.setattr("scipy.optimize.linprog", linprog)
    rounded = rounded_table(table, rows, columns)
    assert rounded.min() >= 0
    assert np.array_equal(rounded.sum(axis=1), rows)
    assert np.array_equal(rounded.sum(axis=0), columns)
