"""Margins of the cells that can hold rows: what they move, what they err by, how they are read."""

import itertools

import numpy as np
import pytest
from support.marginal import sigmas, up_to

from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.strategies.domain import Dimension, Domain
from dpframe.strategies.least_squares import CellSums, LeastSquares, PossibleCells, number_values
from dpframe.strategies.possible import sum_layers

LAWS = [GAUSSIAN, LAPLACE]
SIZES = (3, 4, 2)
CELLS = [0, 1, 3, 9, 8, 15, 16, 19, 22, 7]
"""Ten of 24 cells, in no order; two of them differ along all axes."""
WIDE = 2.0**30


def domain_of(sizes, tables, cells, weights=()):
    axes = tuple(Dimension(n, ordered=False) for n in sizes)
    return Domain(axes, len(cells), tuple(tables), weights, np.array(cells, np.int64).tobytes())


def nested(*sizes):
    """Groups with as many parts each, level by level, and tables of all levels."""
    cells = np.arange(sizes[-1])
    places = [cells // (sizes[-1] // size) for size in sizes]
    tables = [tuple(range(k)) for k in range(1, len(sizes) + 1)]
    return domain_of(sizes, tables, np.ravel_multi_index(places, sizes))


def matrices(cells, sizes, tables):
    """The sums of each table over the cells, as dense matrices, in the order of the cells."""
    places = np.array(np.unravel_index(cells, sizes)).T
    found = []
    for table in tables:
        keys = [tuple(place[list(table)]) for place in places]
        rows = list(dict.fromkeys(keys))
        found.append(np.array([[key == row for key in keys] for row in rows], float))
    return found


def expected_covariances(dense, precisions):
    """Covariances of all tables of least squares, by a pseudoinverse."""
    inverse = np.linalg.pinv(
        sum(p * a.T @ a for p, a in zip(precisions, dense, strict=True)), rcond=1e-13
    )
    return inverse, [a @ inverse @ a.T for a in dense]


PRECISIONS = [0.3, 2.0, 0.01, 1.7, 0.4, 0.9, 3.0, 0.02]


@pytest.fixture
def solved():
    tables = up_to(3, 3)
    cells = PossibleCells(SIZES, np.array(CELLS))
    sums = CellSums(list(map(cells.in_table, tables)))
    return LeastSquares(sums, PRECISIONS), matrices(CELLS, SIZES, tables)


def test_cells_and_their_variances_are_those_of_least_squares(solved):
    solver, dense = solved
    inverse, covariances = expected_covariances(dense, PRECISIONS)
    dice = np.random.default_rng(3)
    measured = [dice.normal(0, 9, len(matrix)) for matrix in dense]
    parts = zip(PRECISIONS, dense, measured, strict=True)
    weighted = sum(p * a.T @ y for p, a, y in parts)
    np.testing.assert_allclose(solver.restore_cells(measured), inverse @ weighted, rtol=1e-10)
    for own, covariance in zip(solver.variances, covariances, strict=True):
        np.testing.assert_allclose(own, np.diag(covariance), rtol=1e-9)
    weights = dice.normal(0, 1, len(CELLS))
    coefficients = solver.coefficients(weights)
    variance = sum((c * c).sum() / p for c, p in zip(coefficients, PRECISIONS, strict=True))
    assert variance == pytest.approx(weights @ inverse @ weights)


def test_tables_move_each_other_by_the_slopes_of_their_variances(solved):
    solver, dense = solved
    variances, squares = solver.of_tables()
    step = 1e-6
    for at, precision in enumerate(PRECISIONS):
        moved = [*PRECISIONS]
        moved[at] += step * precision
        _, covariances = expected_covariances(dense, moved)
        slopes = [
            (np.trace(own) / len(own) - variance) / (step * precision)
            for own, variance in zip(covariances, variances, strict=True)
        ]
        sizes = np.array([len(own) for own in covariances])
        np.testing.assert_allclose(squares[at] / sizes, np.negative(slopes), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_what_a_certificate_describes_are_the_covariances_of_decoding(law):
    tables = [(), (1,), (0, 2), (0, 1, 2)]
    layers = sum_layers(domain_of(SIZES, tables, CELLS), law)
    scale = 40.0
    noise = [law.standard_deviation(float(one)) ** 2 for one in sigmas(layers, scale)]
    each = np.eye(len(noise), dtype=np.int64) * 2**20
    columns = [np.concatenate(layers.decode(one, scale)) / 2**20 for one in each]
    decoding = np.array(columns).T
    covariance = (decoding * noise) @ decoding.T
    ends = np.cumsum([0, *(len(own) for own in layers.deviations_of_cells(scale))])
    dice = np.random.default_rng(2)
    for at, (start, end) in enumerate(itertools.pairwise(ends)):
        own, known = covariance[start:end, start:end], layers.describe(at, scale)
        np.testing.assert_allclose(known.deviations, np.sqrt(np.diag(own)), rtol=1e-6)
        weights = dice.normal(0, 1, end - start)
        assert known.variance(weights) == pytest.approx(weights @ own @ weights, rel=1e-6)


def test_nested_levels_have_the_least_equal_error():
    """With precisions P of its layers, a level errs by sums of 1 / P that are all one number."""
    layers = sum_layers(nested(1, 10, 100), GAUSSIAN)
    errors = layers.deviations(WIDE) / np.float64(WIDE)
    whole = float(layers.kernel.most)
    np.testing.assert_allclose(errors * whole**0.5, 1.6237, rtol=1e-3)


@pytest.mark.parametrize("tables", [2, 3, 4])
def test_nested_levels_of_unequal_parts_are_those_of_all_sums(tables):
    dice = np.random.default_rng(tables)
    region, country = dice.integers(0, 12, 40), dice.integers(0, 5, 12)
    levels = [np.zeros(40, np.int64), country[region], region, np.arange(40)]
    sums = CellSums([number_values(level) for level in levels[-tables:]])
    precisions = PRECISIONS[:tables]
    assert sums.parents is not None
    variances, squares = LeastSquares(sums, precisions).of_tables()
    dense = [
        np.arange(size)[:, None] == own for own, size in zip(sums.tables, sums.sizes, strict=True)
    ]
    inverse, covariances = expected_covariances(dense, precisions)
    np.testing.assert_allclose(variances, [np.diag(own).mean() for own in covariances])
    moved = [[((a @ inverse @ b.T) ** 2).sum() for b in dense] for a in dense]
    np.testing.assert_allclose(squares, moved, rtol=1e-9)


def test_pure_noise_of_nested_levels_is_better_than_apart():
    layers = sum_layers(nested(1, 10, 100), LAPLACE)
    errors = np.array(layers.deviations(WIDE)) / WIDE
    assert max(errors) * float(layers.kernel.most) < 4.2  # apart: 4.24


def test_equal_errors_are_the_least_that_the_worst_table_can_have():
    """But for .2 %: no other scales tried do better."""
    domain = domain_of(SIZES, up_to(3, 3), CELLS)
    layers = sum_layers(domain, GAUSSIAN)
    dense = matrices(CELLS, SIZES, layers.axes)

    def worst(shares):
        _, covariances = expected_covariances(dense, shares / shares.sum())
        return max(np.trace(own) / len(own) for own in covariances)

    shares = np.array(layers.scales) ** -2.0
    least = worst(shares)
    dice = np.random.default_rng(8)
    for step in (0.003, 0.03, 0.3):
        for _ in range(100):
            other = shares * np.exp(step * dice.standard_normal(len(shares)))
            assert worst(other) > least * (1 - 2e-3)


def test_nothing_else_is_possible_in_259_cells():
    """As many of 11 x 9 x 7 cells; adding up cells measured alone, the total errs by 22.8."""
    dice = np.random.default_rng(31)
    there = dice.random((11, 9)) < 0.33
    there[:, 4] = True
    cells = np.flatnonzero(np.repeat(there.ravel(), 7))
    assert len(cells) == 259
    layers = sum_layers(domain_of((11, 9, 7), up_to(3, 3), cells), LAPLACE)
    errors = np.array(layers.deviations(WIDE)) / WIDE * float(layers.kernel.most)
    assert errors[0] < 8.2
    assert errors[-1] < 1.8
