"""Half-widths of confidence intervals from the known law of the noise."""

import math

import numpy as np
from scipy.special import ndtri

from dpframe.errors import QueryError
from dpframe.noise import Law, half_width

__all__ = ["approximate_half_width", "check_level", "exact_half_width"]


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


def exact_half_width(law: Law, scale: float, step: float, level: float) -> float:
    """Return the half-width for a total that was measured as it is.

    It is `step a` for the smallest integer `a` with `P(|Y| <= a) >= level`, where `Y = round(scale
    Z)` is the noise on the measured integer. Coverage is therefore at least `level`.

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
