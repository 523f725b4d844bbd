"""Signals that end a job: it stops where it is, but writes first what it has released.

A scheduler ends a job with SIGTERM, a terminal that is closed with SIGHUP, a limit on time with
SIGXCPU; by these Python would leave without removing anything. Here they are raised as Ctrl-C is.
Others, such as SIGQUIT and SIGALRM, end the process at once.
"""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from types import FrameType

from dpframe.jobs.answers import LEFT_OVER

_WORDS = {
    getattr(signal, name): words
    for name, words in (
        ("SIGINT", "interrupted"),
        ("SIGTERM", "terminated"),
        ("SIGHUP", "hung up"),
        ("SIGXCPU", "out of processor time"),
        ("SIGBREAK", "interrupted"),  # Ctrl-Break, the one that other processes can send there
    )
    if hasattr(signal, name)  # Windows has the first two and the last
}
RUN_AGAIN = "run it again as it is, for which nothing is charged"
_BY_SIGNAL = 128  # what shells add to the number of a signal
_TOGETHER = 1.0
"""Seconds in which signals count as one: service managers send SIGTERM and SIGHUP at once."""


class Stopped(KeyboardInterrupt):
    """Somebody asks the program to end."""


class Stage(Enum):
    """How far a command has come."""

    UNSPENT = auto()
    """It has spent nothing."""
    CHARGED = auto()
    """It has spent, and drawn nothing: the same run begins again for nothing."""
    SPENT = auto()
    """It has spent, or may have, and what it released is not all written."""
    WRITTEN = auto()
    """It has spent, and all files are written."""


@dataclass(slots=True)
class Stops:
    """Signals that came, and what they do."""

    number: int | None = None  # the last signal that came; `None`: none did
    at: float = -math.inf  # when it came
    # how far the command has come: once it has spent, the first signal waits
    stage: Stage = Stage.UNSPENT
    over: bool = False  # whether the exit code is known, and no signal changes it

    @property
    def words(self) -> str:
        """What the signal did to a job; Ctrl-C where it came in another way."""
        word = _WORDS[signal.Signals(self.number or signal.SIGINT)]
        return {
            Stage.UNSPENT: word,
            Stage.CHARGED: f"{word}: charged, before its noise: {RUN_AGAIN}",
            Stage.SPENT: f"{word}: the amount is spent, and what was released may be lost",
            Stage.WRITTEN: f"released, and all files written, then {word}",
        }[self.stage]

    @property
    def code(self) -> int:
        """The exit code of a program that the signal ended."""
        by_signal = _BY_SIGNAL + (self.number or signal.SIGINT)
        return LEFT_OVER if self.stage is Stage.SPENT else by_signal

    def take(self, number: int, _: FrameType | None) -> None:
        """Handle a signal; one that is sent again stops what waits, too."""
        now = time.monotonic()
        if self.over or now - self.at < _TOGETHER:
            return
        # files that are written have yet to be noted, and what kept them to be removed
        waits = self.number is None and self.stage in (Stage.SPENT, Stage.WRITTEN)
        self.number, self.at = number, now
        if not waits:
            raise Stopped(_WORDS[signal.Signals(number)])


_in_force: ContextVar[Stops | None] = ContextVar("_in_force", default=None)  # one in each thread


def set_stage(stage: Stage) -> None:
    """Say how far the command has come, by which signals wait, and its exit code is chosen."""
    stops = _in_force.get()
    if stops is not None:
        stops.stage = stage


def set_spent(spent: bool) -> None:
    """Say whether a command has spent, and not all is written."""
    set_stage(Stage.SPENT if spent else Stage.UNSPENT)


@contextmanager
def unspent() -> Iterator[None]:
    """Spend nothing that counts: a command is stopped as if it spent nothing, wherever it is."""
    outer = _in_force.set(None)
    try:
        yield
    finally:
        _in_force.reset(outer)


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Let signals end the process while code of others runs, which may never come back to Python.

    To be used where nothing was spent, and nothing is left behind.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in _WORDS}
    ours = {n: h for n, h in before.items() if isinstance(getattr(h, "__self__", None), Stops)}
    for number in ours:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextmanager
def stoppable(*, leaving: bool = False) -> Iterator[Stops]:
    """Raise `Stopped` for signals that end a job, unless the program's caller ignores them."""
    stops = Stops()
    numbers = [n for n in _WORDS if signal.getsignal(n) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # no other may say what signals do
    before = {number: signal.signal(number, stops.take) for number in numbers}
    outer = _in_force.set(stops)
    try:
        yield stops
    finally:
        _in_force.reset(outer)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if leaving else handler)
