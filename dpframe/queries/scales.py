"""Public bins of values that nobody knows: powers of two on both sides of zero, or equal widths."""

import math

import numpy as np

from dpframe.errors import QueryError, shown
from dpframe.privacy.exact import as_number

_MOST_EXPONENT = 100
_MOST_BINS = 128

Ends = np.ndarray
"""Finite ends of bins, increasing; they are the candidates for bounds."""


def power_ends(smallest: object, largest: object) -> Ends:
    """Return zero, and powers of two from a smallest to a largest size, of both signs.

    Raises
    ------
    QueryError
        If the sizes are not usable.

    Examples
    --------
    >>> power_ends(1, 6).tolist()
    [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0]
    """
    least, most = _size("smallest", smallest), _size("largest", largest)
    first, last = math.floor(math.log2(least)), math.ceil(math.log2(most))
    if first > last:
        raise QueryError(
            f"smallest must be no larger than largest, got smallest={shown(smallest)} and "
            f"largest={shown(largest)}."
        )
    sizes = np.ldexp(1.0, np.arange(first, last + 1))
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def linear_ends(within: object, bins: object) -> Ends:
    """Return the ends of bins of equal widths.

    Raises
    ------
    QueryError
        If the ends or the number of bins are not usable.

    Examples
    --------
    >>> linear_ends((0, 8), 4).tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    if not isinstance(bins, int) or isinstance(bins, bool) or not 1 <= bins <= _MOST_BINS:
        raise QueryError(
            f"bins must be a whole number from 1 to {_MOST_BINS}, got bins={shown(bins)}."
        )
    try:
        low, high = (float(as_number(end)) for end in within)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not (-math.inf < low < high < math.inf) or max(-low, high) > 2.0**_MOST_EXPONENT:
        raise QueryError(
            "within must be two numbers of at most 2**100 in size, the first below the second, "
            f"got within={shown(within)}."
        )
    return np.linspace(low, high, bins + 1)


def _size(called: str, given: object) -> float:
    try:
        size = float(as_number(given))
    except (TypeError, ValueError, OverflowError):
        size = math.nan
    if not 2.0**-_MOST_EXPONENT <= size <= 2.0**_MOST_EXPONENT:
        raise QueryError(
            f"{called} must be a number from 2**-100 to 2**100, got {called}={shown(given)}."
        )
    return size
