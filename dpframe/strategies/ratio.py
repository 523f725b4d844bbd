"""Means from a centered sum and a number of rows, both noisy."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpframe.strategies.base import Estimate, Ratio

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
