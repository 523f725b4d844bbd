"""Means and rates whose errors add up: one step of their measured parts from a pooled value.

A quotient of noisy totals is biased where it is small, and cut off at its bounds, so that sums of
many are off by far more than their noise. `t + D(t) / N*` is not: `D(t) = A.T - t B.T` has the mean
`N (r - t)`, and `N* = N - beta D` is uncorrelated with it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dpframe.certificates.column_parts import ColumnPart
from dpframe.privacy.noise_sum import Value, norm

_SPREAD_OF_SQUARES = 5.0
"""Largest variance of a squared noise, in squared variances: that of Laplace; of a normal, 2."""


_RESOLVED = 3.0
"""Standard errors by which squared numbers of rows exceed noise, where cells say their own means:
of 50 cells of one row at epsilon 1, intervals of rates of .5 miss 12 % at 0."""


class Linear(NamedTuple):
    """Values that are linear in the noise, and what it does to them, by block."""

    values: np.ndarray  # in the units of the column; of times, in seconds from the origin
    deviations: Mapping[str, Value]  # one number, or one for each value
    steps: Value = 0.0  # of means: the part of each value that is divided by a number of rows
    doubt: float = 0.0  # relative standard error of all these numbers of rows together
    bend: float = 0.0  # beta: the mean of N* is N (1 - beta (r - t))


def linear_mean(column: ColumnPart, used: np.ndarray) -> Linear:
    """Return means, or rates, that may be added up.

    t is the mean of all cells together, moved toward that of a cell as far as the squares of D
    exceed their noise by a standard error. Numbers of rows shrink toward each other by their spread
    beyond noise, and their inverses are nearly unbiased, to the second order.
    """
    statistic, totals = column.statistic, column.totals
    quotient = statistic.quotient(totals)
    top, rows = np.broadcast_arrays(totals.weigh(quotient.top), totals.weigh(quotient.bottom))
    noise_of_rows = totals.noise(quotient.bottom)
    first, last = statistic.ends
    pooled = np.clip(top[used].sum() / max(float(rows[used].sum()), 1.0), first, last)

    def apart(t: Value) -> tuple[np.ndarray, dict[str, Value], np.ndarray]:
        moved = totals.noise(quotient.apart(t))
        return top - t * rows, moved, np.square(norm(moved.values()))

    off, _, variance = apart(pooled)
    squares = _at_least(rows**2 - np.square(norm(noise_of_rows.values())), noise_of_rows)
    alike = np.broadcast_to(variance, top.shape)
    noise = np.broadcast_to(np.square(norm(noise_of_rows.values())), top.shape)
    spread = _spread(off[used] ** 2, alike[used]) / float(squares[used].sum())
    if not _spread(rows[used] ** 2, noise[used], _RESOLVED):
        spread = 0.0
    own = _share(spread * squares, variance)
    t = np.clip(pooled + own * off / np.sqrt(squares), first, last)
    off, moved, variance = apart(t)
    inverse, doubt, beta = _inverse_of_rows(rows, noise_of_rows, off, moved, used)
    values = statistic.place(t + inverse * off)
    deviations = {b: inverse * statistic.unit * part for b, part in moved.items()}
    unit = statistic.unit
    return Linear(values, deviations, inverse * unit * off, doubt, beta / unit if unit else 0.0)


def _spread(squares: np.ndarray, variances: np.ndarray, errors: float = 1.0) -> float:
    """Return how far a sum of squares is beyond that of noise and some standard errors of it."""
    clear = errors * np.sqrt(_SPREAD_OF_SQUARES * np.square(variances).sum())
    return max(float((squares - variances).sum() - clear), 0.0)


def _at_least(squares: np.ndarray, noise: dict[str, Value]) -> np.ndarray:
    """Return squared numbers of rows, at least half the variance of their noise, and 1."""
    return np.asarray(np.maximum(squares, np.maximum(np.square(norm(noise.values())) / 2, 1.0)))


def _share(one: Value, other: Value) -> np.ndarray:
    """Return the part of the first in both; 1 where there is none of the other."""
    both = np.asarray(one + other, np.float64)
    return np.divide(one, both, out=np.ones(both.shape), where=both > 0)


def _inverse_of_rows(
    rows: np.ndarray,
    noise: dict[str, Value],
    off: np.ndarray,
    moved: dict[str, Value],
    used: np.ndarray,
) -> tuple[np.ndarray, float, float]:
    """Return inverses of numbers of rows, uncorrelated with D, how far all may be off, and beta."""
    shared = sum((noise[block] * moved[block] for block in noise), start=np.zeros(1))
    own = np.square(norm(moved.values()))
    beta = np.divide(shared, own, out=np.zeros(np.broadcast(shared, own).shape), where=own > 0)
    numbers = rows - beta * off
    variance = np.maximum(np.square(norm(noise.values())) - beta * shared, 0.0)
    variance = np.broadcast_to(variance, numbers.shape)
    middle = numbers[used].mean()
    error_of_middle = np.sqrt(variance[used].sum()) / np.count_nonzero(used)
    doubt = float(error_of_middle / middle) if middle > 0 else np.inf
    spread = _spread(np.square(numbers - middle)[used], variance[used]) / np.count_nonzero(used)
    share = _share(np.full(numbers.shape, spread), variance)
    variance = share * variance
    numbers = np.maximum(middle + share * (numbers - middle), np.maximum(np.sqrt(variance), 1.0))
    error = variance / numbers**2
    inverse = (1 - error / (1 + 2 * error)) / numbers
    return inverse, doubt, float(np.broadcast_to(beta, numbers.shape)[used].mean())
