"""Half-widths of confidence intervals from the known law of the noise."""

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri

from dpframe.errors import QueryError
from dpframe.privacy.laws import half_width, standard_deviation
from dpframe.privacy.noise import Law

__all__ = [
    "approximate_half_width",
    "check_level",
    "exact_half_width",
    "laplace_half_width",
    "level_of_each",
    "pair_half_width",
]

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


def level_of_each(law: Law, level: float, cells: int) -> float:
    """Return the level of single intervals that hold together with the level given.

    It is `level^(1 / d)` for d cells with Gaussian noise, under any correlation (Sidak 1967), and
    `1 - (1 - level) / d` with Laplace noise (Bonferroni).

    Parameters
    ----------
    law
        The law of the noise measured.
    level
        Probability that all intervals hold at once, in (0, 1).
    cells
        Number of intervals, d.

    Examples
    --------
    >>> round(level_of_each("gaussian", 0.95, 10), 6), round(level_of_each("laplace", 0.95, 10), 6)
    (0.994884, 0.995)
    """
    if cells <= 1:
        return level
    beside = -math.expm1(math.log(level) / cells) if law == "gaussian" else (1 - level) / cells
    return min(1 - beside, math.nextafter(1, 0))


def exact_half_width(law: Law, scale: float, step: float, level: float) -> float:
    """Return the half-width for a total that was measured as it is.

    It is `step a` for the smallest integer `a` with `P(|Y| <= a) >= level`, where Y is the noise on
    the measured integer. Coverage is therefore at least `level`.

    Parameters
    ----------
    law, scale
        The noise on the measured integer.
    step
        Size of one integer, in the units of the column.
    level
        Confidence level.

    Examples
    --------
    >>> exact_half_width("gaussian", 4.224679, 1.0, 0.95)
    8.0
    """
    return step * half_width(law, scale, level)


def approximate_half_width(
    law: Law, std_error: float | np.ndarray, level: float
) -> float | np.ndarray:
    """Return the half-width for an estimate decoded from several measurements.

    It is `q sd` with `q = Phi^-1((1 + level) / 2)`. With Laplace noise the law lies between a
    Laplace and a normal of the same standard deviation, so `q` is the larger of the two quantiles.

    Parameters
    ----------
    law
        The law of the noise measured.
    std_error
        Standard errors, of any shape.
    level
        Confidence level.

    Examples
    --------
    >>> round(approximate_half_width("gaussian", 1.0, 0.95), 4)
    1.96
    """
    quantile = float(ndtri((1 + level) / 2))
    if law == "laplace":
        quantile = max(quantile, -math.log1p(-level) / math.sqrt(2))
    return quantile * std_error


def laplace_half_width(
    loadings: Mapping[str, float | np.ndarray],
    scales: Mapping[str, float],
    level: float,
    largest: Mapping[str, float | np.ndarray] | None = None,
) -> np.ndarray:
    """Return the half-width for a sum of discrete Laplace noises.

    The sum is `sum_b c_b Y_b`, with Y_b of scale s_b. A continuous Laplace noise of the same scale
    is Y_b plus independent noise of size below 1, so the half-width is that of `sum_b c_b s_b Z_b`,
    plus half of the largest `|c_b|`: by so much the sum moves with one integer.

    Parameters
    ----------
    loadings
        By block: what its noise adds to the standard deviation of the sum, `|c_b| sd(Y_b)`, or the
        root of the sum of the squares of several such parts.
    scales
        s_b; a block without one has a noise that is not of integers.
    level
        Confidence level.
    largest
        The largest part of each block, where loadings are made of several; `None`: they are not.

    Examples
    --------
    >>> laplace_half_width({"0": standard_deviation("laplace", 1)}, {"0": 1}, 0.95).round(4)
    np.float64(3.4957)
    """
    wide, step = [], np.zeros(())
    for block, loading in loadings.items():
        scale = scales.get(block, 0.0)
        deviation = standard_deviation("laplace", scale)
        if deviation == 0:
            wide.append(np.abs(loading))
            continue
        wide.append(np.abs(loading) / deviation * (math.sqrt(2) * scale))
        part = loading if largest is None else largest[block]
        step = np.maximum(step, np.abs(part) / deviation)
    width: float | np.ndarray
    if len(wide) == 2 and largest is None:  # noqa: PLR2004
        width = pair_half_width(wide[0], wide[1], level)
    else:
        total = np.zeros(())
        for error in wide:
            total = np.hypot(total, error)  # squares could leave the range of floats
        width = approximate_half_width("laplace", total, level)
    return step / 2 + width


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
