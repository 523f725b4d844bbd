"""Released groups that were found: what their noisy counts say, given that they were published.

A group is published for its noisy count, which is therefore too large on average, and more so the
smaller the group is. Errors are those of the noise given that it reached the threshold.
"""

from collections.abc import Callable

import numpy as np

from dpframe.certificates.parts import DiscoveryPart
from dpframe.errors import QueryError
from dpframe.privacy.law import Law


def check_not_selected(found: DiscoveryPart | None, what: str) -> None:
    """Refuse what takes errors for unbiased, where groups were published for their counts.

    Raises
    ------
    QueryError
        If they were.
    """
    if found is not None:
        raise QueryError(
            f"{what} takes noisy counts that are right on average, and these are not: a group was "
            f"published because its count reached {found.threshold}. Release counts of the groups "
            "found, .dp.count(by=..., keys=found.index) or .dp.units, and use those."
        )


def selected_ends(
    noisy: np.ndarray, law: Law, scale: float, least: int, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals for the numbers of units n that noisy ones stand for.

    All n >= 1 are in it for which neither ``P(n + Y >= y | n + Y >= T)`` nor
    ``P(n + Y <= y | n + Y >= T)`` is at most ``(1 - level) / 2``, and all from there to y: next to
    T, y may be rare for each n.

    Parameters
    ----------
    noisy
        Noisy numbers y, each T or more.
    law, scale
        The noise Y.
    least
        The threshold T.
    level
        Confidence level.

    Returns
    -------
    low, high : numpy.ndarray
        int64.

    Examples
    --------
    >>> from dpframe.privacy.laws import LAPLACE
    >>> selected_ends(np.array([15, 17, 40]), LAPLACE, 1.0, 15, 0.95)
    (array([ 1,  1, 37]), array([17, 20, 43]))
    """
    y, places = np.unique(noisy, return_inverse=True)
    most = y + law.half_width(scale, level)  # without selection; fewer with it
    tail = (1 - level) / 2

    def too_small(n: np.ndarray) -> np.ndarray:
        return law.at_least(scale, y - n) <= tail * law.at_least(scale, least - n)

    def too_large(n: np.ndarray) -> np.ndarray:
        return law.at_least(scale, y + 1 - n) >= (1 - tail) * law.at_least(scale, least - n)

    low = _first(lambda n: ~too_small(n), np.ones_like(y), y)
    above = _first(too_large, np.ones_like(y), most + 1)
    return low[places], np.maximum(above - 1, y)[places]


def _first(
    holds: Callable[[np.ndarray], np.ndarray], start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Find the first integers at which something holds, as it does for all from there to an end."""
    while (start < end).any():
        middle = (start + end) // 2
        held = holds(middle)
        start, end = np.where(held, start, np.minimum(middle + 1, end)), np.where(held, middle, end)
    return end
