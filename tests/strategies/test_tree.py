"""Ranges of ordered bins: what moves, how sums over bins vary, and which tree is taken."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from support.randomness import SYSTEM
from support.trees import contrast_tree, kernel_of, measuring, node_tree, units

from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.sensitivity import Footprint, movement, reach_of
from dpframe.strategies.base import Output, Source, Workload
from dpframe.strategies.domain import Dimension, Domain
from dpframe.strategies.prefixes import mean_products, prefix_products
from dpframe.strategies.tree import (
    ContrastTree,
    NodeTree,
    design,
    node_weights,
    plan_contrasts,
    plan_nodes,
)

SHAPES = [(3, 2, 4), (2, 2), (5,), (4, 3), ()]
COUNT = [Footprint((0,), ((1,),))]


def planned(make, bins, groups=1, law=None):
    if make is NodeTree:
        return NodeTree(*plan_nodes(bins), bins, groups, law or LAPLACE)
    return ContrastTree(*plan_contrasts(bins), bins, groups)


def workload(bins, groups=3, neighboring="add_remove", caps=None):
    axes = Dimension(groups, ordered=False), Dimension(bins, ordered=True)
    reach = reach_of(caps or Caps(1, 1, 1), groups, always=False)
    everyone, output = Source(0, 0, optional=False), Output("count", 0)
    return Workload((everyone,), (output,), Domain(axes), reach, neighboring, ranges=True)


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("make, norm", [(contrast_tree, 2), (node_tree, 1)])
def test_pairs_of_bins_share_what_is_said_and_no_row_moves_more(sizes, make, norm):
    tree = make(sizes)
    shared = kernel_of(tree, norm)
    whole, least = tree.kernel.whole, tree.kernel.least
    own = [shared[k, k] for k in range(len(shared))]
    assert max(own) <= whole  # fractions of the floats that are drawn with
    assert float(min(own) / whole) > 1 - 1e-12
    assert float(shared.min()) == pytest.approx(float(least), abs=1e-12)
    apart = max(
        shared[j, j] + shared[k, k] - 2 * shared[j, k]
        for j in range(len(shared))
        for k in range(len(shared))
    )
    assert apart <= 2 * (whole - least)
    assert float(apart) == pytest.approx(float(2 * (whole - least)), rel=1e-12)


@pytest.mark.parametrize("make, norm", [(contrast_tree, 2), (node_tree, 1)])
@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3, 25.77, 3e7])
def test_scales_are_rounded_up_whatever_they_are_multiplied_with(make, norm, scale):
    tree = make((3, 2, 4))
    moved = kernel_of(tree, norm, scale)
    assert (
        max(moved[k, k] for k in range(len(moved))) <= tree.kernel.whole / Fraction(scale) ** norm
    )


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 24, 29])
@pytest.mark.parametrize("make, norm", [(ContrastTree, 2), (NodeTree, 1)])
def test_trees_that_are_planned_move_no_more_than_they_say(make, norm, bins):
    tree = planned(make, bins)
    shared = kernel_of(tree, norm)
    assert max(shared[k, k] for k in range(bins)) <= tree.kernel.whole
    assert float(shared.min()) >= float(tree.kernel.least) - 1e-12


@pytest.mark.sampled(every=3, full=2)
@pytest.mark.parametrize("make, norm", [(contrast_tree, 2), (node_tree, 1)])
@pytest.mark.parametrize("caps", [(3, 2, 2), (2, 1, 2), (3, 2, 3), (2, 2, 1)])
def test_units_under_caps_of_groups_move_what_is_said(make, norm, caps):
    tree = make((2, 2))
    rows, groups, each = caps
    reach = reach_of(Caps(rows, groups, each), 2, always=False)
    # at the scales without the rounding up, what is claimed is reached exactly
    far = {
        how: movement(COUNT, [Fraction(1)], norm, reach, how, kernel=tree.kernel)
        for how in ("add_remove", "replace")
    }
    both = np.array([*units(2, 4, caps)])
    alone, apart = (of_squares if norm == 2 else of_counts)(tree, both)
    assert alone == far["add_remove"]
    assert apart == far["replace"]


def of_squares(tree, both):
    """The farthest that a unit, and a pair of units, moves two groups of Gaussian contrasts."""
    own = np.kron(np.eye(2, dtype=int), exact_kernel(tree))
    products = both @ own @ both.T
    squares = np.diag(products)
    return squares.max(), (squares[:, None] + squares[None, :] - 2 * products).max()


def of_counts(tree, both):
    """The same for counts of nodes, by absolute values."""
    matrix = np.kron(np.eye(2, dtype=int), measuring(tree)).astype(object)
    levels = [math.prod(tree.sizes[:level]) for level in range(len(tree.shares))]
    inverse = np.repeat([Fraction(share) for share in tree.shares], levels)
    moved = both @ matrix.T * np.tile(inverse, 2)
    pairs = max(np.abs(moved - one).sum(axis=1).max() for one in moved)
    return np.abs(moved).sum(axis=1).max(), pairs


def exact_kernel(tree):
    """K of one group at the real scales, as fractions."""
    matrix = measuring(tree).astype(object)
    scales, nodes_above = [Fraction(tree.tau[0]) ** 2], 1
    for size, tau in zip(tree.sizes, tree.tau[1:], strict=True):
        scales += [j * (j + 1) * Fraction(tau) ** 2 for j in range(1, size)] * nodes_above
        nodes_above *= size
    inverse = np.array([1 / scale for scale in scales], dtype=object)
    return (matrix * inverse[:, None]).T @ matrix


def test_a_layer_that_costs_nothing_would_be_found():
    tree = contrast_tree((3, 2, 4))
    forgotten = tree.kernel.whole - Fraction(3, 4) / Fraction(tree.tau[3]) ** 2
    shared = kernel_of(tree, 2)
    assert max(shared[k, k] for k in range(24)) > forgotten


@pytest.mark.parametrize("bins", [1, 2, 5, 24, 23, 101])
@pytest.mark.parametrize("make", [ContrastTree, NodeTree])
@pytest.mark.parametrize("scale", [1e-9, 0.3, 40.0])
def test_without_noise_the_bins_come_back(make, bins, scale):
    tree = planned(make, bins, groups=3)
    rows = np.random.default_rng(bins).integers(0, 900, 3 * bins)
    measured = tree.encode(rows)
    assert measured.dtype == np.int64
    assert len(measured) == len(tree.profile)
    (found,) = tree.decode(measured, scale)
    np.testing.assert_allclose(found, rows, atol=1e-8)


@pytest.mark.parametrize("sizes, bins", [((3, 2, 4), 24), ((3, 2, 4), 19), ((2, 5), 10)])
@pytest.mark.parametrize("make", [contrast_tree, node_tree])
def test_decoding_and_covariance_are_those_of_least_squares(make, sizes, bins):
    tree, scale = make(sizes, bins), 3.5
    leaves = math.prod(sizes)
    # empty leaves are decoded, too, and then left out
    matrix = measuring(make(sizes, leaves)).astype(float)
    if make is contrast_tree:
        variances = (scale * tree.profile) ** 2 + 1 / 12
        weights = 1 / (scale * tree.profile) ** 2
    else:
        variances = np.array([LAPLACE.standard_deviation(scale * s) ** 2 for s in tree.profile])
        weights = 1 / variances
    inverse = np.linalg.inv(matrix.T @ (matrix * weights[:, None]))
    solve = inverse @ matrix.T * weights
    measured = np.random.default_rng(5).integers(-50, 900, len(matrix))
    np.testing.assert_allclose(
        tree.decode(measured, scale)[0], (solve @ measured)[:bins], rtol=1e-9, atol=1e-8
    )
    covariance = (solve * variances) @ solve.T
    known = tree.describe(0, scale)
    weights = np.random.default_rng(6).normal(size=bins)
    expected = weights @ covariance[:bins, :bins] @ weights
    assert known.variance(weights) == pytest.approx(expected, rel=1e-9)
    assert tree.deviations(scale)[0] ** 2 == pytest.approx(np.diag(covariance).max(), rel=1e-9)


@pytest.mark.parametrize("sizes, bins", [((3, 2, 4), 24), ((3, 2, 4), 19), ((2, 5), 10), ((), 1)])
@pytest.mark.parametrize("counted", [slice(None), slice(1, None), slice(None, None, 2)])
def test_noise_of_nodes_adds_to_sums_of_bins_as_it_is_decoded(sizes, bins, counted):
    shares = np.zeros(len(sizes) + 1)
    shares[counted] = np.linspace(0.1, 0.5, len(shares))[counted]
    shares[-1] = max(shares[-1], 0.1)  # some level under the root has to be counted
    tree, scale = node_tree(sizes, bins, shares=tuple(shares)), 3.5
    one = np.eye(len(tree.profile), dtype=np.int64)
    decoded = np.stack([tree.decode(own, scale)[0] for own in one])
    leaves = np.random.default_rng(6).normal(size=bins)
    found = node_weights(tree.describe(0, scale), leaves)
    deviations = [np.full(len(own), deviation) for deviation, own in found]
    expected = [LAPLACE.standard_deviation(scale * own) for own in tree.profile]
    np.testing.assert_allclose(np.concatenate(deviations), expected, rtol=1e-9)
    weights = np.concatenate([own for _, own in found])
    np.testing.assert_allclose(weights, decoded @ leaves, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sizes", SHAPES)
def test_products_of_numbers_below_edges_are_those_of_the_matrix(sizes):
    leaves, tree = math.prod(sizes), contrast_tree(sizes)
    known = tree.describe(0, 2.0)
    below = np.tril(np.ones((leaves + 1, leaves)), -1)
    for low in range(leaves + 1):
        for high in range(low, leaves + 1):
            own, other = known.coefficients(below[low]), known.coefficients(below[high])
            rows = zip(own, other, known.variances(), strict=True)
            expected = sum(float((a * b * v).sum()) for a, b, v in rows)
            found = prefix_products(sizes, np.array([low]), np.array([high]))
            assert found.variances(known.tau, known.rounding)[0] == pytest.approx(
                expected, rel=1e-9, abs=1e-9
            )


def test_the_mean_product_is_that_over_all_edges():
    sizes, bins = (3, 2, 4), 19
    known = contrast_tree(sizes, bins).describe(0, 2.0)
    edges = [np.arange(bins) < e for e in range(bins)]
    found = [known.variance(e * 1.0 - k / bins) for k, e in enumerate(edges)]
    total = (bins / 24) ** 2
    expected = np.mean(found) + total * (known.tau[0] ** 2 + known.rounding) / 12
    # what is left of the total in c_e - (e / B) N, for empty leaves
    expected -= np.mean(
        [known.coefficients(e * 1.0 - k / bins)[0][0, 0] ** 2 for k, e in enumerate(edges)]
    ) * (known.tau[0] ** 2 + known.rounding)
    mean = mean_products(sizes, bins).variances(known.tau, known.rounding)[0]
    assert mean == pytest.approx(expected, rel=1e-9)


def test_errors_are_those_of_the_best_trees_known():
    gaussian, laplace = planned(ContrastTree, 1024), planned(NodeTree, 1024)
    assert gaussian.sizes == (2,) * 10
    assert float(gaussian.kernel.whole) == pytest.approx(1)
    assert gaussian.errors_to_compare(1e6)[0] / 1e6 == pytest.approx(3.264, rel=1e-3)
    assert laplace.sizes == (8, 8, 16)
    assert laplace.errors_to_compare(1e6)[0] / 1e6 == pytest.approx(9.59, rel=1e-3)


def test_shares_of_levels_are_the_best_there_are():
    tree = planned(NodeTree, 1000)
    best = tree.errors_to_compare(1e6)[0]
    for level in range(len(tree.shares)):
        for factor in (0.97, 1.03):
            shares = list(tree.shares)
            shares[level] = (shares[level] or 0.01) * factor
            total = sum(shares)
            other = NodeTree(tree.sizes, tuple(s / total for s in shares), 1000, 1, LAPLACE)
            assert other.errors_to_compare(1e6)[0] > best * (1 - 1e-9)


def test_every_law_has_the_tree_that_is_best_for_it():
    work = workload(100)
    assert isinstance(design(work, GAUSSIAN).layers, ContrastTree)
    assert isinstance(design(work, LAPLACE).layers, NodeTree)
    assert design(work, BOX) is None
    assert design(replace(work, ranges=False), GAUSSIAN) is None


@pytest.mark.parametrize("law, make", [(GAUSSIAN, ContrastTree), (LAPLACE, NodeTree)])
def test_noise_has_the_covariance_that_is_said(law, make):
    # 4,000 draws: a variance is off by 12 % in fewer than one run in 10^7
    tree, scale, draws = planned(make, 24, groups=4000), 6.0, 4000
    noise = law.draw_each(scale * tree.profile, SYSTEM)
    cells = tree.decode(noise, scale)[0].reshape(draws, 24)
    known = tree.describe(0, scale)
    for weights in np.tril(np.ones((24, 24)))[[0, 4, 11, 12, 23]]:
        expected = known.variance(weights)
        assert np.mean((cells @ weights) ** 2) == pytest.approx(expected, rel=0.13)
        wrong = known.variance(weights) * 1.3
        assert np.mean((cells @ weights) ** 2) != pytest.approx(wrong, rel=0.13)
