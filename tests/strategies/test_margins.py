"""Margins from Gaussian contrasts: how cells vary, and the plan in closed form."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from support.marginal import decoding, domain_of, measuring, sigmas, table_of, up_to

from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.strategies import margins
from dpframe.strategies.domain import Dimension, Domain
from dpframe.strategies.margins import Lattice, table_layers

SOME = [(), (0,), (2,), (0, 1), (1, 2), (2, 3), (0, 1, 3)]
SIZES = (2, 3, 4, 3)
ADULT = (11, 9, 16, 7, 15, 6, 5, 2, 8, 42, 2)


def gaussian(domain):
    return margins.contrast_layers(domain)


def laplace(domain):
    return margins.table_layers(domain, LAPLACE)


@pytest.mark.parametrize("scale", [1.0, 0.1, 25.77, 3e7, 1 / 3])
def test_scales_are_rounded_up_whatever_they_are_multiplied_with(scale):
    domain = domain_of((3, 7, 19), up_to(3, 2))
    layers = gaussian(domain)
    squares = (measuring(layers, domain).astype(object)) ** 2
    inverse = [1 / sigma**2 for sigma in sigmas(layers, scale)]
    moved = max(sum(a * b for a, b in zip(row, inverse, strict=True)) for row in squares.T[:40])
    assert moved <= layers.kernel.most / Fraction(scale) ** 2


def test_where_patterns_are_compared_in_floats_the_least_is_never_above_the_exact_one(monkeypatch):
    domain = domain_of((2, 3, 5, 2, 4), up_to(5, 3))
    exact = margins.ContrastLayers(Lattice(domain), gaussian(domain).precisions).kernel
    monkeypatch.setattr(margins, "_MOST_EXACT", 0)
    floats = margins.ContrastLayers(Lattice(domain), gaussian(domain).precisions).kernel
    assert exact.least - exact.most / 2**43 < floats.least <= exact.least
    monkeypatch.setattr(margins, "_MOST_AXES", 4)
    most = margins.ContrastLayers(Lattice(domain), gaussian(domain).precisions).kernel
    assert most.least == -exact.most


@pytest.mark.parametrize("made", [gaussian, laplace])
def test_tables_agree_however_noisy(made):
    sizes, tables = (4, 5, 3), up_to(3, 2)
    layers = made(domain_of(sizes, tables))
    noisy = np.random.default_rng(5).integers(-(10**6), 10**6, len(layers.profile))
    found = dict(zip(tables, layers.decode(noisy, 1.0), strict=True))
    for at, n in enumerate(sizes):
        other = (at + 1) % 3
        pair = tuple(sorted((at, other)))
        table = found[pair].reshape([sizes[k] for k in pair])
        np.testing.assert_allclose(table.sum(1 - pair.index(at)), found[at,], atol=1e-9)
        assert len(found[at,]) == n
        assert found[at,].sum() == pytest.approx(found[()].item(), abs=1e-9)


def test_every_cell_of_every_table_has_the_same_error_in_the_equal_plan():
    tables = up_to(4, 3)
    layers = gaussian(domain_of(SIZES, tables))
    for part in decoding(layers):
        np.testing.assert_allclose((part**2) @ layers.profile**2, 1, rtol=1e-12)
    assert layers.deviations(1e6) == pytest.approx([1e6] * len(tables), rel=1e-12)


@pytest.mark.parametrize(
    ("sizes", "ways", "error"),
    [(ADULT, 2, 6.100), ((2,) * 10, 2, 3.055), ((2, 3, 5, 10, 20, 50, 100), 2, 4.172)],
)
def test_the_equal_error_has_a_closed_form(sizes, ways, error):
    tables = up_to(len(sizes), ways)
    whole = gaussian(domain_of(sizes, tables)).kernel.most
    parts = (math.prod(Fraction(sizes[k] - 1, sizes[k] + 1) for k in one) for one in tables)
    assert whole == sum(parts)
    assert math.sqrt(whole) == pytest.approx(error, rel=1e-3)


def test_weights_give_the_least_weighted_variance():
    rng = np.random.default_rng(2)
    weights = (1, 2, 0.5, 7, 1, 3, 0.1)
    layers = gaussian(domain_of(SIZES, SOME, weights))

    def cost(one):
        errors = np.square(one.deviations(1e9)) / 1e18
        return float(one.kernel.most) * (errors @ weights)

    best = cost(layers)
    closed = sum(  # (sum p sqrt q)^2
        float(a) * math.prod(1 - 1 / SIZES[k] for k in layer)
        for layer, a in zip(layers.lattice.layers, layers.precisions, strict=True)
    )
    assert closed == pytest.approx(float(layers.kernel.most), rel=1e-12)
    for _ in range(50):
        near = [a * Fraction(math.exp(rng.normal(0, 0.2))) for a in layers.precisions]
        assert cost(margins.ContrastLayers(layers.lattice, tuple(near))) > best
    assert cost(gaussian(domain_of(SIZES, SOME))) > best


@pytest.mark.parametrize("made", [gaussian, laplace])
@pytest.mark.parametrize("scale", [3.0, 40.0])
def test_a_certificate_can_describe_all_covariances(made, scale):
    tables = [(1,), (0, 2), (0, 1, 3)]
    layers = made(domain_of((2, 3, 4, 1), tables))
    law = GAUSSIAN if made is gaussian else LAPLACE
    noise = np.square([law.standard_deviation(scale * one) for one in layers.profile])
    for at, part in enumerate(decoding(layers)):
        described = layers.describe(at, scale)
        for weights in (np.eye(len(part))[-1], np.arange(1.0, len(part) + 1) ** 2):
            expected = ((weights @ part) ** 2) @ noise
            assert described.variance(weights) == pytest.approx(expected, rel=1e-6)
        largest = math.sqrt(((part**2) @ noise).max())
        assert described.deviation == pytest.approx(largest, rel=1e-6)
        assert layers.deviations(scale)[at] == pytest.approx(largest, rel=1e-6)


def test_separate_tables_are_reconciled_by_the_least_squares_of_all_cells():
    tables = up_to(3, 2)
    domain = domain_of((2, 3, 4), tables, [1, 5, 1, 1, 0.2, 1, 9])
    layers = laplace(domain)
    noisy = np.random.default_rng(1).integers(-500, 500, len(layers.profile))
    matrix = measuring(layers, domain) / layers.profile[:, None]
    cells = np.linalg.lstsq(matrix, noisy / layers.profile, rcond=None)[0].reshape(2, 3, 4)
    for axes, own in zip(tables, layers.decode(noisy, 1.0), strict=True):
        np.testing.assert_allclose(own, table_of(cells, axes).ravel(), atol=1e-9)


@pytest.mark.parametrize(
    ("sizes", "ways", "error"), [((2,) * 10, 2, 33.40), (ADULT, 2, 64.06), ((2, 2, 5, 7), 2, 7.470)]
)
def test_the_best_split_of_separate_tables(sizes, ways, error):
    layers = laplace(domain_of(sizes, up_to(len(sizes), ways)))
    moved = float(layers.kernel.most)
    errors = np.array(layers.deviations(1000 * moved)) / 1000
    assert math.sqrt((errors**2).mean()) == pytest.approx(error, rel=2e-3)


SHAPES = [((12, 10, 8), 3), ((5, 6, 7), 3), ((2, 20, 30), 3), ((2, 2, 3, 100), 2)]
SHAPES += [((3, 3, 3, 60), 2), ((2, 2, 2, 2, 2), 2)]


def subsets_of(table):
    return [s for k in range(len(table) + 1) for s in itertools.combinations(table, k)]


def lowered(sizes, tables, most, start):
    """How far the geometric mean of variances falls from some shares, none above `most`.

    With share t_A of table A, layer S has the precision `P_S = sum_A e_AS t_A^2 / 2`, and a cell of
    table A the variance `sum_S e_AS^2 p_S / P_S`, with e_AS one over the sizes of the axes of A
    that are not in S.
    """
    layers = sorted({s for table in tables for s in subsets_of(table)})
    spread = np.array(
        [
            [
                math.prod(1 / sizes[axis] for axis in {*table} - {*s}) if {*s} <= {*table} else 0
                for s in layers
            ]
            for table in tables
        ]
    )
    moved = np.array([math.prod(1 - 1 / sizes[axis] for axis in s) for s in layers])

    def logs(raw):
        shares = np.exp(raw - raw.max())
        shares /= shares.sum()
        precisions = shares**2 @ spread / 2
        parts = spread**2 * moved / precisions
        variances = parts.sum(1)
        slopes = -(parts / precisions) @ (spread * shares[:, None] ** 2).T / variances[:, None]
        return np.log(variances), slopes - np.outer(slopes.sum(1), shares)

    def loss(raw, price):
        found, slopes = logs(raw)
        over = np.maximum(found - most, 0)
        weights = 1 / len(found) + 2 * price * over
        return found.mean() + price * (over**2).sum(), weights @ slopes

    for price in (3, 30, 300, 3000, 30000):
        start = minimize(loss, start, (price,), jac=True, method="L-BFGS-B").x
    found, _ = logs(start)
    return most.mean() - found.mean() if (found < most + 2e-3).all() else 0.0


@pytest.mark.parametrize(("sizes", "ways"), SHAPES, ids=str)
def test_no_plan_of_pure_margins_is_dominated(sizes, ways):
    """No table above the plan while the geometric mean falls by 1 %; base cells were 8.8 once."""
    tables = [t for k in range(ways + 1) for t in itertools.combinations(range(len(sizes)), k)]
    domain = Domain(tuple(Dimension(n, ordered=False) for n in sizes), None, tuple(tables))
    layers = table_layers(domain, LAPLACE)
    errors = np.array(layers.deviations(2.0**30)) / 2.0**30
    usual, cells = np.log(layers.shares), np.array([domain.size_of(table) for table in tables])
    largest = 3.0 * (cells == cells.max())
    dice = np.random.default_rng(5)
    starts = [usual, 0 * usual, largest, np.log(cells) / 3, -np.log(cells) / 3]
    starts += [usual + dice.normal(0, 1.5, len(tables)) for _ in range(4)]
    falls = [lowered(sizes, tables, 2 * np.log(errors), start) for start in starts]
    assert max(falls) / 2 < 0.01  # of variances; that of errors is half of it
    if sizes == (12, 10, 8):
        assert errors[-1] < 3.1


def test_a_dominated_plan_is_seen():
    """Equal shares of 12 x 10 x 8: others lower the geometric mean by 24 %, with none above."""
    tables = [t for k in range(4) for t in itertools.combinations(range(3), k)]
    above = np.full(len(tables), np.log(2 * len(tables) ** 2))  # of tables on their own
    largest = 3.0 * (np.arange(len(tables)) == len(tables) - 1)
    assert lowered((12, 10, 8), tables, above, largest) / 2 > 0.2
