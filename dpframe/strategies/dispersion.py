"""Variances and standard deviations from three noisy numbers: rows, and sums of y and of y^2.

A value in [l, u] counts as y in [-1, 1], the part of half the width that it is off the center.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpframe.strategies.base import Estimate, Moments, Ratio

_SPAN = 2.5  # standard errors: a 95 % interval around a bound, of any law, ends before that


def ratio(
    centered: np.ndarray,
    rows: np.ndarray,
    loadings: tuple[Mapping[Any, float], Mapping[Any, float]],
    bounds: tuple[int, int],
) -> Estimate:
    """Estimate means by `c + T / N`, inside the bounds.

    Here `T` is the noisy sum of values minus the center `c = (l + u) / 2` and `N` the noisy number
    of rows, taken as at least 1. To first order the error is `(dT - (m - c) dN) / N`, and the
    standard error is that of this expression.

    Where 2.5 standard errors span the bounds, a 95 % interval around either bound reaches the other
    one: any mean is possible, and `T / N` is noise, mostly beyond a bound. The estimate is then the
    center c, and its error the width `u - l`.

    Parameters
    ----------
    centered, rows
        Measured `T` and `N`, one per cell.
    loadings
        What the noise of the blocks does to `T` and to `N`.
    bounds
        `(l, u)`, what a value can be.
    """
    lower, upper = bounds
    center = (lower + upper) / 2
    count = np.maximum(rows, 1.0)
    offset = np.clip(centered / count, lower - center, upper - center)
    of_sum, of_rows = loadings
    raw = {
        block: (of_sum.get(block, 0.0) - offset * of_rows.get(block, 0.0)) / count
        for block in {**of_sum, **of_rows}
    }
    error = np.sqrt(sum(np.square(part) for part in raw.values()))
    width = upper - lower
    unknown = (_SPAN * error >= width) & (error > 0)
    limit = np.where(unknown, width / np.where(unknown, error, 1.0), 1.0)
    scaled = {block: part * limit for block, part in raw.items()}
    means = center + np.where(unknown, 0.0, offset)
    return Estimate(means, scaled, Ratio(centered, rows, of_sum, of_rows))


Loadings = Mapping[int, float]

_M = np.linspace(-1, 1, 41)
WORST = (np.concatenate([[-1.0, 1.0], _M]), np.concatenate([[1.0, 1.0], 2 * _M**2 - 1]))
"""Means m, and `m^2 - V` for the variances V, among which the error is largest."""


def variances(moments: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, taken as at least 1, and means and population variances of y.

    With N, S and R the noisy number of rows, sum of y and sum of `y^2 - 1 / 2`, they are
    `m = S / N` in [-1, 1] and `V = R / N + 1 / 2 - m^2`, between 0 and `1 - m^2` (Bhatia and Davis
    2000).
    """
    count = np.maximum(moments.rows, 1.0)
    mean = np.clip(moments.first / count, -1, 1)
    value = np.clip(moments.rest / count + 0.5 - mean**2, 0, 1 - mean**2)
    return count, mean, value


def loadings_at(
    mean: np.ndarray | float, apart: np.ndarray | float, of: tuple[Loadings, Loadings, Loadings]
) -> dict[int, np.ndarray | float]:
    """Return what the noise of the blocks does to the variance of one row, to first order.

    Parameters
    ----------
    mean
        The mean m of y.
    apart
        `m^2 - V`.
    of
        What the noise of the blocks does to rows, to the sum of y, and to that of `y^2 - 1 / 2`.
    """
    of_rows, of_first, of_rest = of
    return {
        block: (apart + 0.5) * of_rows.get(block, 0.0)
        - 2 * mean * of_first.get(block, 0.0)
        + of_rest.get(block, 0.0)
        for block in {**of_rows, **of_first, **of_rest}
    }


def deviations(
    value: np.ndarray, loadings: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Return standard deviations of y for variances, with the loadings of these to first order."""
    root = np.sqrt(value)
    slope = 1 / (2 * np.maximum(root, 1e-6))
    return root, {block: part * slope for block, part in loadings.items()}


def dispersion(moments: Moments, *, root: bool) -> Estimate:
    """Estimate variances, or standard deviations, inside what the bounds allow.

    The standard error is that to first order, and never more than the largest value there can be.

    Parameters
    ----------
    moments
        The noisy numbers.
    root
        Whether standard deviations are asked for.
    """
    count, mean, value = variances(moments)
    of = moments.of_rows, moments.of_first, moments.of_rest
    of_one = loadings_at(mean, mean**2 - value, of)
    raw = {block: np.asarray(part) / count for block, part in of_one.items()}
    if root:
        value, raw = deviations(value, raw)
    error = np.sqrt(sum(np.square(part) for part in raw.values()))
    most = moments.half_width if root else moments.half_width**2
    limit = most / np.maximum(error, 1.0)
    loadings = {block: part * limit for block, part in raw.items()}
    return Estimate(value * most, loadings, moments=moments)
