"""Memory that blocks of noise are drawn in: kept from call to call, as fresh memory costs time.

A room has one user at a time: `lend` takes it off the shelf in one step that no thread and no
signal handler can divide, so that a draw inside another one finds another room. A draw that is
interrupted may lose its room, which is memory freed. A forked process has copies of its own.

Rooms are cleared before they go back: what lies on the shelf is zero. Nothing that is drawn depends
on what was in a room, as all that is read there was written in the same block.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

BLOCK = 1 << 16
"""Draws of a block: many enough for few calls, few enough for the processor's cache."""

ROWS = 4
"""Of a room: as many arrays of 64-bit numbers are needed at once."""

_MOST = 4  # rooms of two megabytes that are kept
_shelf: deque[np.ndarray] = deque(maxlen=_MOST)


@contextmanager
def lend(size: int) -> Iterator[np.ndarray]:
    """Lend rows of so many floats, at most `BLOCK`; clear them afterwards."""
    try:
        room = _shelf.pop()
    except IndexError:
        room = np.empty((ROWS, BLOCK))
        room[:] = 0
    try:
        yield room[:, :size]
    finally:
        room[:, :size] = 0
        _shelf.append(room)
