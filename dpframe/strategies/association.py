"""Covariances, correlations and slopes from the noisy moments of a pair of columns.

Values in [l, u] count as x and y in [-1, 1], the part of half the width that they are off the
center. With N rows, means `m_x` and `m_y`, and variances `V_x` and `V_y`, they are

    C = sum x y / N - m_x m_y,    r = C / sqrt(V_x V_y),    b = C / V_x .

To first order, a part of a row that counts x, y, x^2, y^2 and x y moves them, times N, by

    c = x y - m_y x - m_x y + 2 m_x m_y - sum x y / N,
    c / sqrt(V_x V_y) - r (v_x / V_x + v_y / V_y) / 2,    (c - b v_x) / V_x,

with `v_x = x^2 - 2 m_x x + m_x^2 - V_x`, and the same for y (the delta method).
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dpframe.strategies.base import Estimate, JointMoments

Association: TypeAlias = Literal["covariance", "correlation", "slope"]

_Loadings = dict[int, np.ndarray]

_LEAST = 1e-12  # of a variance, in squared half widths


class Centered(NamedTuple):
    """Moments around the means, and N times what the noise of the blocks does to them."""

    rows: np.ndarray
    covariance: np.ndarray
    variances: tuple[np.ndarray, np.ndarray]
    of_covariance: _Loadings
    of_variances: tuple[_Loadings, _Loadings]


def center(joint: JointMoments) -> Centered:
    """Return the moments around the means; variances are at least one standard error."""
    rows = np.maximum(joint.rows, 1.0)
    x, y = (np.clip(first / rows, -1, 1) for first in (joint.x, joint.y))
    product = joint.xy / rows
    blocks = (*joint.of_rows, *joint.of_x, *joint.of_y, *joint.of_xx, *joint.of_yy, *joint.of_xy)
    of_covariance = {
        block: joint.of_xy.get(block, 0.0)
        - y * joint.of_x.get(block, 0.0)
        - x * joint.of_y.get(block, 0.0)
        + (2 * x * y - product) * joint.of_rows.get(block, 0.0)
        for block in dict.fromkeys(blocks)
    }
    variances, of_variances = [], []
    both = ((x, joint.xx, joint.of_x, joint.of_xx), (y, joint.yy, joint.of_y, joint.of_yy))
    for mean, squares, of_first, of_squares in both:
        value = np.clip(squares / rows - mean**2, 0, 1 - mean**2)
        moved = {
            block: of_squares.get(block, 0.0)
            - 2 * mean * of_first.get(block, 0.0)
            + (mean**2 - value) * joint.of_rows.get(block, 0.0)
            for block in dict.fromkeys(blocks)
        }
        error = _deviation(moved) / rows
        variances.append(np.maximum(value, np.maximum(np.minimum(error, 1.0), _LEAST)))
        of_variances.append(moved)
    bound = np.sqrt(variances[0] * variances[1])
    covariance = np.clip(product - x * y, -bound, bound)
    of = (of_variances[0], of_variances[1])
    return Centered(rows, covariance, (variances[0], variances[1]), of_covariance, of)


def _deviation(loadings: Mapping[int, np.ndarray]) -> np.ndarray:
    return np.sqrt(sum((np.square(part) for part in loadings.values()), start=np.zeros(())))


def read(kind: Association, at: Centered) -> tuple[np.ndarray, _Loadings]:
    """Return values in half widths, and what the noise of the blocks does to them."""
    covariance, (v_x, v_y) = at.covariance, at.variances
    of_x, of_y = at.of_variances
    if kind == "covariance":
        return covariance, {block: part / at.rows for block, part in at.of_covariance.items()}
    if kind == "slope":
        slope = covariance / v_x
        return slope, {
            block: (part - slope * of_x[block]) / v_x / at.rows
            for block, part in at.of_covariance.items()
        }
    root = np.sqrt(v_x * v_y)
    correlation = np.clip(covariance / root, -1, 1)
    return correlation, {
        block: (part / root - correlation / 2 * (of_x[block] / v_x + of_y[block] / v_y)) / at.rows
        for block, part in at.of_covariance.items()
    }


def parts_of_slope(joint: JointMoments) -> tuple[np.ndarray, np.ndarray, _Loadings, _Loadings]:
    """Return `N C` and `N V_x`, whose quotient is the slope, and what noise does to them.

    Nothing is cut off. To first order, with means that count as exact, a part of a row moves `N C -
    b N V_x` by `x y - m_y x - m_x y + m_x m_y - b (x^2 - 2 m_x x + m_x^2)`, if b is the slope.
    """
    rows = np.maximum(joint.rows, 1.0)
    x, y = (np.clip(first / rows, -1, 1) for first in (joint.x, joint.y))
    of_covariance, of_variance = {}, {}
    for block in {**joint.of_rows, **joint.of_x, **joint.of_y, **joint.of_xx, **joint.of_xy}:
        row, one = joint.of_rows.get(block, 0.0), joint.of_x.get(block, 0.0)
        of_covariance[block] = (
            joint.of_xy.get(block, 0.0) - y * one - x * joint.of_y.get(block, 0.0) + x * y * row
        )
        of_variance[block] = joint.of_xx.get(block, 0.0) - 2 * x * one + x**2 * row
    return joint.xy - x * y * rows, joint.xx - x**2 * rows, of_covariance, of_variance


def unit_of(kind: Association, half_widths: tuple[float, float]) -> float:
    """Return what 1 in half widths is in the units of the columns."""
    x, y = half_widths
    if kind == "covariance":
        return x * y
    return 1.0 if kind == "correlation" else (y / x if x else 0.0)


def associate(joint: JointMoments, kind: Association) -> Estimate:
    """Estimate covariances, correlations or slopes of y on x, with their error to first order.

    The error of a covariance or a correlation is never more than the largest value there can be.
    """
    values, raw = read(kind, center(joint))
    unit = unit_of(kind, joint.half_widths)
    error = _deviation(raw)
    limit = 1 / np.maximum(error, 1.0) if kind != "slope" else np.ones(np.shape(error))
    loadings = {block: part * limit * unit for block, part in raw.items()}
    return Estimate(values * unit, loadings, joint=joint)
