"""The integers nearest to scale * Z, in floats: right wherever a float is clear of a border.

Z is (strip + (place + [0, 1)) / 2**64) / 64. The proofs are in `noise`, which asks integers where
what is left over comes near to 1/2.
"""

from typing import NamedTuple

import numpy as np

from dpframe.errors import CalibrationError
from dpframe.privacy.noise_tables import STRIP_BITS

MAX_SCALE = 2.0**60
"""Largest scale: beyond, a draw would often not fit in an int64."""


def check_size(size: int) -> None:
    """Validate a number of draws."""
    if size < 0:
        raise CalibrationError.about("size", "must be >= 0", size)


def check_scale(scale: float | np.ndarray) -> np.ndarray:
    """Validate a scale or scales; return them as float64."""
    if type(scale) is float and 0 <= scale <= MAX_SCALE:
        return np.asarray(scale + 0.0)[()]  # faster than an array of no axes
    scales = np.asarray(np.add(scale, 0.0), np.float64)  # -0.0 is 0.0, whose inverse is positive
    valid = (scales >= 0) & (scales <= MAX_SCALE)
    if not valid.all():
        way_out = "Wider noise does not fit in 64 bits: give a larger epsilon or narrower bounds."
        value = scales[~valid].flat[0].item()
        raise CalibrationError.about("scale", "must be between 0 and 2**60", value, way_out)
    return scales


WORD = 64
"""Bits are drawn by the word."""

KNOWN_BITS = WORD + STRIP_BITS
"""Bits of Z after the point that are drawn at once."""

# arrays of no axes: faster than numbers where there are few draws
_UNUSED_BITS = np.array(WORD - 52, np.uint64)  # of a place: the fraction of a float has 52
_ONE = np.array(1.0).view(np.uint64)
_ONE_STRIP = np.array(1, np.int16)

_HIGH_BITS = 30  # of Z after the point in the first product

LOW_BITS = KNOWN_BITS - _HIGH_BITS
"""Of a 64-bit place, left for the second product."""

NARROW = 2.0**26
"""Up to this scale, one product of floats is close enough."""


def in_strips(strip: np.ndarray, place: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write 64 Z to `out`, in floats, with the first 52 bits of the place; return `out`."""
    bits = out.view(np.uint64)
    np.right_shift(place, _UNUSED_BITS, out=bits)
    bits |= _ONE  # now the bits of the float 1 + place / 2**64
    out += strip - _ONE_STRIP
    return out


class Points(NamedTuple):
    """Z of a block: strips, places, and 64 Z in floats, or `None` if floats do not say enough."""

    strip: np.ndarray
    place: np.ndarray
    floats: np.ndarray | None

    def near(self, chosen: np.ndarray) -> np.ndarray:
        """Return 64 Z of some of them in floats."""
        if self.floats is not None:
            return self.floats.take(chosen)
        return in_strips(self.strip[chosen], self.place[chosen], np.empty(chosen.size))


def round_whole(
    scales: np.ndarray, left: np.ndarray, out: np.ndarray, pull: np.ndarray | None, room: np.ndarray
) -> np.ndarray:
    """Write the integers nearest to scale * Z to `out`, for scales of at most `NARROW`.

    Takes 64 Z in floats. Works in their memory, and in `room` of the same size.

    Returns
    -------
    numpy.ndarray
        What is left over, in floats between -1/2 and 1/2.
    """
    left *= scales * 2.0**-STRIP_BITS
    if pull is not None:
        left -= left.clip(-pull, pull, out=room)
    nearest = np.rint(left, out=room)
    out[:] = nearest
    left -= nearest
    return left


def halves(
    strip: np.ndarray, place: np.ndarray, room: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Split Z into (high + (low + [0, 1)) / 2**40) / 2**30; works in `room`, of two rows."""
    high, low = np.empty((2, place.size), np.int64) if room is None else room.view(np.int64)
    np.right_shift(place, LOW_BITS, out=high.view(np.uint64))
    high += np.multiply(strip, 1 << _HIGH_BITS - STRIP_BITS, out=low, dtype=np.int64)
    np.bitwise_and(place, (1 << LOW_BITS) - 1, out=low.view(np.uint64))
    return high, low


def round_halves(
    scales: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    out: np.ndarray,
    *,
    pull: np.ndarray | None = None,
    room: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Write the integers nearest to scale * Z to `out`, for Z = (high + low / 2**40) / 2**30.

    Works in the memory of `low`, and in `room`, of two rows.

    Returns
    -------
    tuple
        In floats: what is left over, between -1/2 and 1/2, and the product it is left over of,
        scale * Z less the whole part of scale / 2**30 times `high`, and less the pull.
    """
    product, nearest = np.empty((2, *high.shape)) if room is None else room
    unit = scales * 2.0**-_HIGH_BITS
    whole = np.floor(unit)
    np.multiply(high, unit - whole, out=product)
    product += np.multiply(low, unit * 2.0**-LOW_BITS, out=nearest)
    if pull is not None:
        product -= product.clip(-pull, pull, out=nearest)
    np.rint(product, out=nearest)
    out[:] = nearest
    if whole.any():
        out += np.multiply(high, whole.astype(np.int64), out=low)
    return np.subtract(product, nearest, out=nearest), product
