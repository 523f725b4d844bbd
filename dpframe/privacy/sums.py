"""Sums of independent noises of integers: by how much they move, and how far they reach."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce

import numpy as np

from dpframe.privacy.accuracy import pair_half_width

_ROOT2 = math.sqrt(2)
_WIDE = 2.0  # from this scale on, rounding a normal adds 1/12 to its variance, to the last bit

Loadings = Mapping[str, float | np.ndarray]  # by block: what its deviation adds to a sum
_Scales = Mapping[str, float]
_Steps = tuple[float | np.ndarray, float | np.ndarray]


def deviation(scale: float) -> float:
    """Return the standard deviation `1 / (sqrt(2) sinh(h))`, with `h = 1 / (2 scale)`; 0 at 0.

    Examples
    --------
    >>> round(deviation(1.0), 4)
    1.357
    """
    if scale == 0:
        return 0.0
    return _ROOT2 * math.exp(-0.5 / scale) / -math.expm1(-1 / scale)  # no overflow


def rounded_normal_deviation(scale: float) -> float:
    """Return the root of `sum_k (2 k - 1) P(|Z| > (k - 1/2) / scale)`, k = 1, 2, ...

    From scale 2 on, that sum is `scale**2 + 1/12` to more digits than a float has: by Poisson
    summation, the difference is of the order of `4 scale**2 exp(-2 pi**2 scale**2)`.
    """
    if scale >= _WIDE:
        return math.sqrt(scale**2 + 1 / 12)
    return math.sqrt(sum((2 * k - 1) * math.erfc((k - 0.5) / scale / _ROOT2) for k in range(1, 40)))


def normal_quantile(level: float) -> float:
    """Return `Phi^-1((1 + level) / 2)`: within so many deviations a normal lies so often."""
    from scipy import special  # slow to import, and not always needed

    return float(special.ndtri((1 + level) / 2))


def norm(parts: Iterable[float | np.ndarray]) -> np.ndarray:
    """Root of the sum of squares, which may leave the range of floats where the root does not."""
    return reduce(np.hypot, parts, np.zeros(()))


def half_step(
    parts: Loadings, scales: _Scales, deviation_of: Callable[[float], float]
) -> np.ndarray:
    """Return half of the most that one integer of noise moves a sum.

    Parameters
    ----------
    parts
        By block: by how much one standard deviation of its noise moves the sum.
    scales
        Scales of the blocks; a block without one has noise that is not of integers.
    deviation_of
        Standard deviation of noise, by its scale.
    """
    step: np.ndarray = np.zeros(())
    for block, part in parts.items():
        own = deviation_of(scales.get(block, 0.0))
        if own:
            step = np.maximum(step, np.abs(part) / own)
    return step / 2


def pair_of(loadings: Loadings, scales: _Scales) -> tuple[_Steps, tuple[float, float]] | None:
    """Return by how much a sum of two noises moves with an integer of each, and their scales.

    `None` where they are not two noises of integers.
    """
    if len(loadings) != 2:  # noqa: PLR2004
        return None
    (one, first), (other, second) = loadings.items()
    own = scales.get(one, 0.0), scales.get(other, 0.0)
    wide = deviation(own[0]), deviation(own[1])
    return ((first / wide[0], second / wide[1]), own) if all(wide) else None


def independent_half_width(
    loadings: Loadings, scales: _Scales, level: float, quantile: float, largest: Loadings | None
) -> np.ndarray:
    """Return the half-width of the continuous noises, plus half of the largest single step.

    Parameters
    ----------
    loadings, scales, level, largest
        As in `Law.sum_half_width`.
    quantile
        By how many deviations a sum of more than two noises is off at most, or one that is not of
        integers.
    """
    own = {block: deviation(scales.get(block, 0.0)) for block in loadings}
    wide = [  # noise that is not of integers is as it is
        np.abs(loading) / own[block] * (_ROOT2 * scales[block]) if own[block] else np.abs(loading)
        for block, loading in loadings.items()
    ]
    alone = len(wide) == 1 and any(own.values())
    if largest is None and (alone or len(wide) == 2):  # noqa: PLR2004
        width: np.ndarray = pair_half_width(wide[0], 0.0 if alone else wide[1], level)
    else:
        width = quantile * norm(wide)
    parts = loadings if largest is None else largest
    found: np.ndarray = half_step(parts, scales, deviation) + width
    return found
