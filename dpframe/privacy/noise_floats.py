"""The integers nearest to scale * Z, in floats: right wherever a float is clear of a border.

Z is (strip + (place + [0, 1)) / 2**64) / 64. The proofs are in `noise`, which asks integers where
what is left over comes near to 1/2.
"""

import numpy as np

from dpframe.privacy.noise_tables import STRIP_BITS

__all__ = ["KNOWN_BITS", "LOW_BITS", "NARROW", "WORD", "halves", "round_halves", "round_whole"]

WORD = 64
"""Bits are drawn by the word."""

KNOWN_BITS = WORD + STRIP_BITS
"""Bits of Z after the point that are drawn at once."""

_HIGH_BITS = 30  # of Z after the point in the first product

LOW_BITS = KNOWN_BITS - _HIGH_BITS
"""Of a 64-bit place, left for the second product."""

NARROW = 2.0**26
"""Up to this scale, one product of floats is close enough."""


def round_whole(
    scales: np.ndarray,
    strip: np.ndarray,
    place: np.ndarray,
    out: np.ndarray,
    pull: np.ndarray | None = None,
) -> np.ndarray:
    """Write the integers nearest to scale * Z to `out`, for scales of at most `NARROW`.

    Returns
    -------
    numpy.ndarray
        What is left over, in floats between -1/2 and 1/2.
    """
    product: np.ndarray = place * 2.0**-WORD
    product += strip
    product *= scales * 2.0**-STRIP_BITS
    if pull is not None:
        product -= _within(product, pull)
    nearest = np.rint(product)
    out[:] = nearest
    product -= nearest
    return product


def halves(strip: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split Z into (high + (low + [0, 1)) / 2**40) / 2**30."""
    high = (strip << _HIGH_BITS - STRIP_BITS) + (place >> LOW_BITS).view(np.int64)
    return high, (place & (1 << LOW_BITS) - 1).view(np.int64)


def round_halves(
    scales: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    out: np.ndarray,
    pull: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Write the integers nearest to scale * Z to `out`, for Z = (high + low / 2**40) / 2**30.

    Returns
    -------
    tuple
        In floats: what is left over, between -1/2 and 1/2, and the product it is left over of,
        scale * Z less the whole part of scale / 2**30 times `high`, and less the pull.
    """
    unit = scales * 2.0**-_HIGH_BITS
    whole = np.floor(unit)
    product = (unit - whole) * high
    product += unit * 2.0**-LOW_BITS * low
    if pull is not None:
        product -= _within(product, pull)
    nearest = np.rint(product)
    out[:] = nearest
    if whole.any():
        out += whole.astype(np.int64) * high
    return product - nearest, product


def _within(values: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Clip values to [-most, most]; `numpy.clip` takes longer where there are few."""
    found: np.ndarray = np.maximum(np.minimum(values, most), -most)
    return found
