"""When a wait ends: one patience for every lock, connection, answer and queue of a ledger.

What takes long, such as a scan of the data, is no wait: each wait has a deadline of its own.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self

USUAL_PATIENCE = 60.0
"""Seconds that a wait may last where nobody says how many."""

_asked: ContextVar[float | None] = ContextVar("dpframe_patience", default=None)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Let every wait in this context last so many seconds at most.

    Examples
    --------
    >>> with patience(5):
    ...     Deadline.begin().seconds
    5
    """
    outer = _asked.set(seconds)
    try:
        yield
    finally:
        _asked.reset(outer)


class Deadline:
    """The end of one wait.

    Parameters
    ----------
    seconds
        How long the wait may last.
    """

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @classmethod
    def begin(cls) -> Self:
        """Begin a wait of the patience that this context asks for."""
        asked = _asked.get()
        return cls(USUAL_PATIENCE if asked is None else asked)

    @property
    def left(self) -> float:
        """Seconds that are left; 0 once it is over."""
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the wait has to end."""
        return self.left == 0

    def pause(self, seconds: float) -> None:
        """Sleep for a while, but not beyond the end."""
        time.sleep(min(seconds, self.left))

    def __str__(self) -> str:
        """Say how long the wait lasted."""
        return f"{self.seconds:g} s"
