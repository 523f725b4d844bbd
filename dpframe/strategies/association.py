"""Covariances, correlations and slopes from the noisy parts of a pair of columns.

Values in [l, u] count as x and y in [-1, 1], the part of half the width that they are off the
center. With N rows, means `m_x` and `m_y`, and variances `V_x` and `V_y`, they are

    C = sum (x - m_x) (y - m_y) / N,    r = C / sqrt(V_x V_y),    b = C / V_x .

To first order, a part of a row that counts `v_x = (x - m_x)^2`, `v_y` and `c = (x - m_x) (y - m_y)`
moves them, times N, by

    c - C,    c / sqrt(V_x V_y) - r (v_x / V_x + v_y / V_y) / 2,    (c - b v_x) / V_x

(the delta method). So a random sample of rows gives r and b, times N, the variance of the sum of
the last two, which is read off fourth moments.
"""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dpframe.strategies.base import Estimate, JointMoments

Association: TypeAlias = Literal["covariance", "correlation", "slope"]
Tested: TypeAlias = Literal["correlation", "slope"]
"""Those that are quotients, whose intervals are found by a test."""

_Loadings = dict[int, np.ndarray]
Powers: TypeAlias = tuple[int, int]
"""Of x and of y, in a product."""
NoisyMoment: TypeAlias = tuple[np.ndarray, _Loadings]
"""A noisy sum of products of powers, and what the noise of the blocks does to it."""

_LEAST = 1e-12  # of a variance, in squared half widths
FOURTH = 4
"""The degree of parts off which fourth moments are read."""


class Centered(NamedTuple):
    """Moments around the means, and N times what the noise of the blocks does to them."""

    rows: np.ndarray
    covariance: np.ndarray
    variances: tuple[np.ndarray, np.ndarray]
    of_covariance: _Loadings
    of_variances: tuple[_Loadings, _Loadings]


def moment(joint: JointMoments, powers: Powers, means: tuple[np.ndarray, ...]) -> NoisyMoment:
    """Return the noisy sum of `(x - m_x)^a (y - m_y)^b`, and what noise does to it.

    A polynomial is the sum of its Bernstein coefficients times the parts, where that of `(x - m)^a`
    at i is the sum over s of `C(i, s) C(d - i, a - s) / C(d, a) (1 - m)^s (-1 - m)^(a - s)`.

    Examples
    --------
    >>> parts = {k: np.array([float(k == 8)]) for k in range(9)}  # of a row at both upper bounds
    >>> joint = JointMoments(parts, dict.fromkeys(range(9), 1.0), (1.0, 1.0))
    >>> moment(joint, (1, 2), (np.array([0.5]), np.array([-0.5])))[0].tolist()
    [1.125]
    """
    first, second = (
        [_coefficient(at, power, joint.degree, mean) for at in range(joint.degree + 1)]
        for power, mean in zip(powers, means, strict=True)
    )
    each = [of_x * of_y for of_x in first for of_y in second]
    weights = dict(zip(joint.parts, each, strict=True))
    value = sum((weights[block] * part for block, part in joint.parts.items()), start=np.zeros(1))
    return value, {block: weights[block] * one for block, one in joint.noise.items()}


def _coefficient(at: int, power: int, degree: int, mean: np.ndarray) -> np.ndarray:
    """Return a Bernstein coefficient of a power of x less a mean."""
    terms = [
        math.comb(at, s)
        * math.comb(degree - at, power - s)
        * (1 - mean) ** s
        * (-1 - mean) ** (power - s)
        for s in range(power + 1)
    ]
    found: np.ndarray = sum(terms, start=np.zeros(1)) / math.comb(degree, power)
    return found


def _middle(joint: JointMoments) -> tuple[np.ndarray, _Loadings, tuple[np.ndarray, np.ndarray]]:
    """Return the number of rows, at least 1, with its noise, and the means."""
    zero = np.zeros(1), np.zeros(1)
    count, of_rows = moment(joint, (0, 0), zero)
    rows = np.maximum(count, 1.0)
    x, y = (np.clip(moment(joint, one, zero)[0] / rows, -1, 1) for one in ((1, 0), (0, 1)))
    return rows, of_rows, (x, y)


def center(joint: JointMoments) -> Centered:
    """Return the moments around the means; variances are at least one standard error."""
    rows, of_rows, means = _middle(joint)
    found: list[NoisyMoment] = []
    for mean, powers in zip(means, ((2, 0), (0, 2)), strict=True):
        squares, of_squares = moment(joint, powers, means)
        value = np.clip(squares / rows, 0, 1 - mean**2)
        moved = {block: part - value * of_rows[block] for block, part in of_squares.items()}
        error = np.minimum(_deviation(moved) / rows, 1.0)
        found.append((np.maximum(value, np.maximum(error, _LEAST)), moved))
    (v_x, of_x), (v_y, of_y) = found
    products, of_products = moment(joint, (1, 1), means)
    bound = np.sqrt(v_x * v_y)
    covariance = np.clip(products / rows, -bound, bound)
    moved = {block: part - covariance * of_rows[block] for block, part in of_products.items()}
    return Centered(rows, covariance, (v_x, v_y), moved, (of_x, of_y))


def fourth_moments(joint: JointMoments) -> dict[Powers, NoisyMoment]:
    """Return the moments around the means of four factors in all, by the powers of x and y."""
    *_, means = _middle(joint)
    return {(a, FOURTH - a): moment(joint, (a, FOURTH - a), means) for a in range(FOURTH + 1)}


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


def parts_of_quotient(
    kind: Tested, joint: JointMoments
) -> tuple[np.ndarray, np.ndarray, _Loadings, _Loadings]:
    """Return `N C` and `N D`, whose quotient is the correlation or the slope, and what noise does.

    D is `sqrt(V_x V_y)`, which noise moves by `(k V_x + V_y / k) / 2` with `k^2 = V_y / V_x`, or
    `V_x`. It is 0 where a variance is not positive. Means count as exact, which is right to first
    order if the quotient is the true one.
    """
    *_, means = _middle(joint)
    (top, of_top), (x, of_x) = (moment(joint, one, means) for one in ((1, 1), (2, 0)))
    if kind == "slope":
        return top, np.maximum(x, 0), of_top, of_x
    y, of_y = moment(joint, (0, 2), means)
    bottom = np.sqrt(np.maximum(x, 0) * np.maximum(y, 0))
    divisor = 2 * np.where(bottom > 0, bottom, 1.0)
    of_bottom = {block: (part * y + of_y[block] * x) / divisor for block, part in of_x.items()}
    return top, bottom, of_top, of_bottom


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
