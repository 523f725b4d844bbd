"""Ctrl-C and SIGTERM: a job stops where it is, but writes first what it has released.

A scheduler ends a job with SIGTERM, by which Python would leave without removing anything. Here it
is raised as Ctrl-C is.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from dpframe.jobs.terminal import INTERRUPTED, TERMINATED

__all__ = ["Stopped", "Stops", "hold", "stoppable"]

_SIGNALS = {signal.SIGINT: ("interrupted", INTERRUPTED), signal.SIGTERM: ("terminated", TERMINATED)}


class Stopped(KeyboardInterrupt):
    """Somebody asks the program to end."""


@dataclass(slots=True)
class Stops:
    """Signals that came, and whether they wait.

    Parameters
    ----------
    number
        The last signal that came; `None`: none did.
    waiting
        Whether the first does not stop anything, but is kept for later.
    """

    number: int | None = None
    waiting: bool = False

    @property
    def words(self) -> str:
        """What the signal does to a job; Ctrl-C where it came in another way."""
        return _SIGNALS[signal.Signals(self.number or signal.SIGINT)][0]

    @property
    def code(self) -> int:
        """The exit code of a program that the signal ended."""
        return _SIGNALS[signal.Signals(self.number or signal.SIGINT)][1]

    def take(self, number: int, _: FrameType | None) -> None:
        """Handle a signal; one that is sent twice stops what waits, too."""
        first, self.number = self.number is None, number
        if not (self.waiting and first):
            raise Stopped(_SIGNALS[signal.Signals(number)][0])


_in_force: list[Stops] = []  # one process has one set of signals


def hold() -> None:
    """Let signals wait from now on, so that what was paid for is written."""
    for stops in _in_force[-1:]:
        stops.waiting = True


@contextmanager
def stoppable() -> Iterator[Stops]:
    """Raise `Stopped` for Ctrl-C and SIGTERM, unless whoever started the program ignores them."""
    stops = Stops()
    heard = [one for one in _SIGNALS if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread():
        heard = []  # no other may say what signals do
    before = {one: signal.signal(one, stops.take) for one in heard}
    _in_force.append(stops)
    try:
        yield stops
    finally:
        _in_force.pop()
        for one, handler in before.items():
            signal.signal(one, handler)
