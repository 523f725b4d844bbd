"""Trees over bins as plain matrices."""

import math
from fractions import Fraction

import numpy as np

from dpframe.privacy.laws import LAPLACE
from dpframe.strategies.ordered import plan_levels
from dpframe.strategies.tree import MatrixTree, NodeTree

SHARES = (0.1, 0.35, 0.05, 0.5)


def matrix_tree(sizes, bins=None, groups=1, window=None):
    return MatrixTree(plan_levels(sizes or (1,), window), bins or math.prod(sizes), groups, window)


def node_tree(sizes, bins=None, groups=1, shares=None):
    own = shares or SHARES[-len(sizes) - 1 :]
    return NodeTree(sizes, own, bins or math.prod(sizes), groups, LAPLACE)


def measuring(tree):
    """The matrix of what is measured, one column per cell."""
    cells = tree.bins * tree.groups
    return np.stack([tree.encode(one) for one in np.eye(cells, dtype=np.int64)], axis=1)


def kernel_of(tree, norm, scale=1.0):
    """What every pair of cells shares, in fractions of the scales that are drawn with."""
    matrix = measuring(tree)
    own = np.array([Fraction(one) for one in scale * tree.profile], dtype=object)
    if norm == 2:
        whole = matrix.astype(object)
        return (whole * (1 / own**2)[:, None]).T @ whole
    assert set(np.unique(matrix)) <= {0, 1}  # counts of disjoint nodes
    whole = matrix.astype(object)
    return (whole * (1 / own)[:, None]).T @ whole
