"""Confidence levels, and the half-width for the sum of two Laplace noises."""

import math

import numpy as np

from dpframe.errors import QueryError

__all__ = ["check_level", "pair_half_width"]

_HALVINGS = 60  # of an interval as long as its upper end: to the last bit


def check_level(level: object) -> float:
    """Validate a confidence level: a number in (0, 1).

    Raises
    ------
    QueryError
        If it is not.
    """
    if isinstance(level, int | float | np.floating) and 0 < level < 1:
        return float(level)
    raise QueryError(f"level must be a number in (0, 1), got level={level!r}; 0.95 is usual.")


def pair_half_width(
    first: float | np.ndarray, second: float | np.ndarray, level: float
) -> np.ndarray:
    """Return the half-width for the sum of two independent, continuous Laplace noises.

    With scales `a > b` it is the t that solves
    `P(|a X + b Y| > t) = (a^2 e^(-t/a) - b^2 e^(-t/b)) / (a^2 - b^2) = 1 - level`, found by
    bisection and rounded up; the limit `(1 + t / (2 a)) e^(-t/a)` counts where `a = b`.

    Parameters
    ----------
    first, second
        Standard deviations of the two noises, of shapes that fit together.
    level
        Confidence level.

    Examples
    --------
    >>> pair_half_width(np.array([2**0.5]), 0.0, 0.95).round(4)  # a single Laplace: ln 20
    array([2.9957])
    """
    tops = np.maximum(np.abs(first), np.abs(second)) / math.sqrt(2)
    lows = np.minimum(np.abs(first), np.abs(second)) / math.sqrt(2)
    ratio = np.divide(lows, tops, out=np.zeros(np.shape(tops)), where=tops > 0)
    ratio = np.clip(ratio, 1e-8, 1 - 1e-8)  # both ends are limits
    low, high = np.zeros_like(ratio), np.full_like(ratio, 2 * (1 - math.log1p(-level)))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = _pair_beyond(middle, ratio) > 1 - level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    width: np.ndarray = high * tops
    return width


def _pair_beyond(t: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return P(|X + r Y| > t) for independent Laplace X, Y of scale 1 and 0 < r < 1."""
    apart = np.log(ratio) * 2
    part: np.ndarray = np.exp(-t) * np.expm1(apart - t * (1 - ratio) / ratio) / np.expm1(apart)
    return part
