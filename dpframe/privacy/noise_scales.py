"""What is asked of exact noise: scales and numbers of draws, validated."""

import numpy as np

from dpframe.errors import CalibrationError, shown

MAX_SCALE = 2.0**60
"""Largest scale: beyond, a draw would often not fit in an int64."""


def check_size(size: int) -> None:
    """Validate a number of draws."""
    if size < 0:
        raise CalibrationError(f"size must be >= 0, got size={shown(size)}.")


def check_scale(scale: float | np.ndarray) -> np.ndarray:
    """Validate a scale or scales; return them as float64."""
    if type(scale) is float and 0 <= scale <= MAX_SCALE:
        single: np.ndarray = np.asarray(scale + 0.0)[()]  # faster than an array of no axes
        return single
    scales = np.asarray(np.add(scale, 0.0), np.float64)  # -0.0 is 0.0, whose inverse is positive
    valid = (scales >= 0) & (scales <= MAX_SCALE)
    if not valid.all():
        raise CalibrationError(
            f"scale must be between 0 and 2**60, got scale={scales[~valid].flat[0]}. "
            "Wider noise does not fit in 64 bits: ask for a larger epsilon or for narrower bounds."
        )
    return scales
