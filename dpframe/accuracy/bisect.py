"""Where a test that is inverted for an interval begins to reject."""

from collections.abc import Callable

import numpy as np

_HALVINGS = 50


def border(
    holds: Callable[[np.ndarray], np.ndarray], rejected: np.ndarray, kept: np.ndarray
) -> np.ndarray:
    """Return the last place that is rejected on the way to one that is kept.

    The way is halved 50 times; where both places are the same, it is that one.

    Parameters
    ----------
    holds
        The test, which keeps places or rejects them.
    rejected, kept
        Where the ways begin and end, one of each for every interval.

    Examples
    --------
    >>> round(float(border(lambda x: x >= 0.25, np.zeros(1), np.ones(1))[0]), 12)
    0.25
    """
    for _ in range(_HALVINGS):
        middle = (rejected + kept) / 2
        within = holds(middle)
        rejected, kept = np.where(within, rejected, middle), np.where(within, middle, kept)
    return rejected
