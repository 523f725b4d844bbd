"""Ranges of ordered bins: how sums over bins vary, and which tree is taken."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.trees import kernel_of, matrix_tree, measuring, node_tree

from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.sensitivity import reach_of
from dpframe.strategies.base import Output, Source, Workload
from dpframe.strategies.domain import Dimension, Domain
from dpframe.strategies.ordered import count_sums, sizes_of
from dpframe.strategies.prefixes import mean_products
from dpframe.strategies.tree import MatrixTree, NodeTree, design, node_weights, plan_nodes

SHAPES = [(3, 2, 4), (2, 2), (5,), (4, 3), ()]
WINDOWS = [None, "expanding", 1, 5]


def planned(make, bins, groups=1, window=None):
    if make is NodeTree:
        return NodeTree(*plan_nodes(bins, window), bins, groups, LAPLACE, window)
    return matrix_tree(sizes_of(bins), bins, groups, window)


def workload(bins, groups=3, neighboring="add_remove", caps=None):
    axes = Dimension(groups, ordered=False), Dimension(bins, ordered=True)
    reach = reach_of(caps or Caps(1, 1, 1), groups, always=False)
    everyone, output = Source(0, 0, optional=False), Output("count", 0)
    return Workload((everyone,), (output,), Domain(axes), reach, neighboring, ranges=True)


@pytest.mark.parametrize("make, norm", [(matrix_tree, 2), (node_tree, 1)])
@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3, 25.77, 3e7])
def test_scales_are_rounded_up_whatever_they_are_multiplied_with(make, norm, scale):
    tree = make((3, 2, 4))
    moved = kernel_of(tree, norm, scale)
    assert max(moved[k, k] for k in range(len(moved))) <= tree.kernel.most / Fraction(scale) ** norm


@pytest.mark.parametrize("bins", [1, 2, 5, 24, 23, 101, 401])
@pytest.mark.parametrize("make", [MatrixTree, NodeTree])
@pytest.mark.parametrize("scale", [1e-9, 0.3, 40.0])
def test_without_noise_the_bins_come_back(make, bins, scale):
    tree = planned(make, bins, groups=3)
    rows = np.random.default_rng(bins).integers(0, 900, 3 * bins)
    measured = tree.encode(rows)
    assert measured.dtype == np.int64
    assert len(measured) == len(tree.profile)
    (found,) = tree.decode(measured, scale)
    np.testing.assert_allclose(found, rows, atol=1e-8)
    assert len(measured) >= 3 * bins or make is NodeTree


@pytest.mark.parametrize("sizes, bins", [((3, 2, 4), 24), ((3, 2, 4), 19), ((2, 5), 10)])
@pytest.mark.parametrize("make", [matrix_tree, node_tree])
def test_decoding_and_covariance_are_those_of_least_squares(make, sizes, bins):
    tree, scale = make(sizes, bins), 3.5
    leaves = math.prod(sizes)
    # empty leaves are decoded, too, and then left out
    matrix = measuring(make(sizes, leaves)).astype(float)
    if make is matrix_tree:
        variances = np.full(len(matrix), scale**2 + 1 / 12)
    else:
        variances = np.array([LAPLACE.standard_deviation(scale * s) ** 2 for s in tree.profile])
    inverse = np.linalg.inv(matrix.T @ (matrix / variances[:, None]))
    solve = inverse @ matrix.T / variances
    measured = np.random.default_rng(5).integers(-50, 900, len(matrix))
    np.testing.assert_allclose(
        tree.decode(measured, scale)[0], (solve @ measured)[:bins], rtol=1e-9, atol=1e-8
    )
    covariance = (solve * variances) @ solve.T
    known = tree.describe(0, scale)
    weights = np.random.default_rng(6).normal(size=bins)
    expected = weights @ covariance[:bins, :bins] @ weights
    # what is said is of the matrix before it is rounded to whole numbers
    near = 1e-3 if make is matrix_tree else 1e-9
    assert known.variance(weights) == pytest.approx(expected, rel=near)
    assert tree.deviations(scale)[0] ** 2 == pytest.approx(np.diag(covariance).max(), rel=near)


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
@pytest.mark.parametrize("make", [matrix_tree, node_tree])
def test_covariances_of_edges_are_those_of_sums_below_them(make, sizes):
    leaves = math.prod(sizes)
    known = make(sizes).describe(0, 2.0)
    below = np.tril(np.ones((leaves + 1, leaves)), -1)
    low, high = np.triu_indices(leaves + 1)
    found = known.edge_covariances(low, high)
    for one, other, covariance in zip(below[low], below[high], found, strict=True):
        expected = known.variance(one + other) - known.variance(one) - known.variance(other)
        assert covariance == pytest.approx(expected / 2, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sizes, bins", [((3, 2, 4), 19), ((20,), 20)])
def test_the_mean_product_is_that_over_all_sums_wanted(sizes, bins, window):
    known, leaves = matrix_tree(sizes, bins).describe(0, 2.0), math.prod(sizes)
    if window is None:
        rows = [(np.arange(leaves) < e) - e / leaves for e in range(bins)]
    elif window == "expanding":
        rows = [(np.arange(leaves) < e) * 1.0 for e in range(1, bins + 1)]
    else:
        chosen = [low % (bins - window + 1) for low in range(bins)]
        rows = [np.isin(np.arange(leaves), np.arange(low, low + window)) for low in chosen]
    expected = np.mean([known.variance(row.astype(float)) for row in rows])
    if window is None:
        expected += known.variance(np.ones(leaves)) / 12
    mean = mean_products(known.edge_products, leaves, bins, window) @ np.square(known.tau)
    assert mean == pytest.approx(expected, rel=1e-9)


def bound_of(wanted):
    """The least error of any matrix of columns of length 1, by the dual of Haar's eigenvalues."""
    weights = np.ones(wanted.shape[1])
    for _ in range(60):
        _, values, vectors = np.linalg.svd(wanted * np.sqrt(weights), full_matrices=False)
        weights = weights * ((vectors.T**2) @ values / weights) ** 1.5
        weights /= weights.max()
    values = np.linalg.svd(wanted * np.sqrt(weights), compute_uv=False)
    return values.sum() / math.sqrt(weights.sum() * len(wanted))


def root_mean_square(bins, window, wanted):
    """The error of sums, for noise of the scale that a row of the worst bin needs."""
    tree = planned(MatrixTree, bins, window=window)
    matrix = measuring(tree).astype(float)
    far = np.square(matrix).sum(axis=0).max()
    return math.sqrt(far * np.square(wanted @ np.linalg.inv(matrix)).sum() / len(wanted))


def ranges_of(bins):
    edges = np.tri(bins + 1, bins, -1)
    low, high = np.triu_indices(bins + 1, 1)
    return edges[high] - edges[low]


def sums_of(bins, window):
    if window is None:
        return ranges_of(bins)
    if window == "expanding":
        return np.tri(bins)
    first = np.arange(bins - window + 1)[:, None]
    return ((np.arange(bins) >= first) & (np.arange(bins) < first + window)).astype(float)


@pytest.mark.parametrize("window", [4, 13, 26])
def test_windows_of_52_weeks_err_hardly_more_than_the_optimum(window):
    wanted = sums_of(52, window)
    assert root_mean_square(52, window, wanted) <= 1.02 * bound_of(wanted)
    # matrices for all ranges err more
    assert root_mean_square(52, None, wanted) > 1.05 * bound_of(wanted)


def test_windows_gain_what_the_page_says():
    page = (Path(__file__).parents[2] / "docs" / "quantiles.md").read_text()
    (said,) = re.findall(r"over 26 of\s+them then err (\d+) % less.* sums (\d+) % less", page)
    for window, percent in zip((26, "expanding"), said, strict=True):
        wanted = sums_of(52, window)
        gain = 1 - root_mean_square(52, window, wanted) / root_mean_square(52, None, wanted)
        assert round(100 * gain) == int(percent)


@pytest.mark.parametrize("window, most", [(None, 1.055), ("expanding", 1.06)])
def test_sums_of_1024_bins_err_little_more_than_a_lower_bound(window, most):
    bins = 1024
    tree = planned(MatrixTree, bins, window=window)
    known = tree.describe(0, 1e9)
    moved = 1e-9 * math.sqrt(tree.kernel.most)
    values = np.linalg.eigvalsh(count_sums(bins, window))  # the mean square of all sums
    bound = np.sqrt(np.maximum(values, 0)).sum() / math.sqrt(bins)
    low, high = np.triu_indices(bins + 1, 1)
    if window == "expanding":
        low, high = np.zeros(bins, np.int64), np.arange(1, bins + 1)
    own = known.edge_covariances(np.arange(bins + 1), np.arange(bins + 1))
    squares = own[low] + own[high] - 2 * known.edge_covariances(low, high)
    assert moved * math.sqrt(squares.mean()) <= most * bound


@pytest.mark.parametrize("bins, window", [(7, None), (7, "expanding"), (7, 3), (7, 7), (1, None)])
def test_sums_wanted_are_counted_by_two_bins(bins, window):
    wanted = sums_of(bins, window)
    expected = wanted.T @ wanted / len(wanted)
    np.testing.assert_allclose(count_sums(bins, window), expected, rtol=1e-12)


def test_laplace_trees_are_the_best_ones_known():
    tree = planned(NodeTree, 1024)
    assert tree.sizes == (8, 8, 16)
    assert tree.errors_to_compare(1e6)[0] / 1e6 == pytest.approx(9.59, rel=1e-3)
    # of single bins, no sums are counted
    assert planned(NodeTree, 64, window=1).shares[:-1] == (0.0,)
    assert planned(NodeTree, 52, window="expanding").errors_to_compare(1e6)[0] / 1e6 < 5.9


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
    assert isinstance(design(work, GAUSSIAN).layers, MatrixTree)
    assert isinstance(design(work, LAPLACE).layers, NodeTree)
    assert design(work, BOX) is None
    assert design(replace(work, ranges=False), GAUSSIAN) is None
