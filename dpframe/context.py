"""Randomness, time, identifiers and places: taken at the door of a public call, and handed down.

`SYSTEM` is the real one. `dpframe.testing` has others, and a release made with any of these is
marked as a test.
"""

import functools
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib import _bootstrap
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, overload
from uuid import uuid4

from dpframe.frozen import frozen

try:
    # OpenSSL's generator: ten times the speed of os.urandom, and it seeds itself anew after a fork
    from _ssl import RAND_bytes as _generator  # `ssl` takes longer than all its users here
except ImportError:  # Python may be built without it
    from os import urandom as _generator

_LARGEST_REQUEST = 1 << 30  # bytes; OpenSSL counts them in a C int


class OpenBlock(Protocol):
    """What a block of `dpframe.testing` does in place of a release, of ledgers and of files."""

    def draw(self, operation: Any, exact: Any, entry: Any) -> Any:
        """Draw noise as a release does."""

    def written(self, path: Path) -> Path:
        """Return where a file is that was to be at a path."""

    def stand_in(self, ledger: Any) -> Any:
        """Return what is charged in place of a ledger that was there before, or is a file."""

    def ledger_at(self, place: str) -> Any:
        """Return the ledger that was made for a place; `None`: there is none."""

    def make_ledger(self, place: str, ledger: Any) -> None:
        """Keep a ledger that is to be at a place."""


def _system_bytes(n: int) -> bytes:
    """Return n bytes of a cryptographic generator: the one source of randomness of the package."""
    if n <= _LARGEST_REQUEST:
        return _generator(n)
    sizes = (min(_LARGEST_REQUEST, n - done) for done in range(0, n, _LARGEST_REQUEST))
    return b"".join(map(_generator, sizes))


@frozen(eq=False, kw_only=True)
class Context:
    """Where a call has randomness, time, identifiers and places from.

    Parameters
    ----------
    bits
        Returns so many uniform random bytes.
    now
        Returns the time in UTC.
    new_id
        Returns a fresh identifier.
    place
        Returns where a file is written that is to be at a path.
    row_word
        Stands in for every random word by which rows are chosen; `None`: these are random.
    block
        The testing block that the context belongs to.
    """

    bits: Callable[[int], bytes] = lambda n: _system_bytes(n)  # noqa: PLW0108  # tests patch it
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], str] = lambda: uuid4().hex
    place: Callable[[Path], Path] = lambda path: path
    row_word: int | None = None
    block: OpenBlock | None = None

    @property
    def is_test(self) -> bool:
        """Whether nothing is real: any context but `SYSTEM`."""
        return self is not SYSTEM

    def written(self, path: Path) -> Path:
        """Return where a file is that is read: at its path, or where a test has written it."""
        return path if self.block is None else self.block.written(path)

    def __reduce__(self) -> Any:
        """Go to another process, where rows are chosen and nothing else is done."""
        if self is SYSTEM:
            return "SYSTEM"
        return partial(Context, row_word=self.row_word), ()


SYSTEM = Context()
"""The real one."""


def _real(*, looking: bool) -> Context:
    return SYSTEM


_find: Callable[..., Context] = _real


def at_the_door(*, looking: bool = False) -> Context:
    """Return the context of a public call, to be handed down.

    Parameters
    ----------
    looking
        Whether the call spends, draws and writes nothing: such a call is never refused.

    Raises
    ------
    PrivacyTestError
        If a testing block is open that this thread does not see, or this code has outlived its
        block.
    """
    return _find(looking=looking)


def set_lookup(find: Callable[..., Context]) -> None:
    """Let a function find the context of public calls; `dpframe.testing` does so."""
    global _find  # noqa: PLW0603
    _find = find


T = TypeVar("T")

_PAUSE = 0.001  # seconds between two looks
_LONGEST = 10.0  # seconds that a fork waits

MAKING = threading.RLock()  # held while something is made that holds locks of other packages
_held: list[bool] = []  # whether each fork under way got that lock


class cached_property(functools.cached_property[T]):  # noqa: N801  # called as that of Python
    """A property that is computed once, without the lock of Python 3.11, which a fork may catch.

    At worst, two threads compute it; both get the same object.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        """Return what was computed first."""
        if instance is None:
            return self
        value: T = vars(instance).setdefault(str(self.attrname), self.func(instance))
        return value


def _finish_work() -> None:
    """Wait until no other thread imports something, or makes what holds locks for as long."""
    deadline = time.monotonic() + _LONGEST
    _held.append(MAKING.acquire(timeout=_LONGEST))
    while _others_import() and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _go_on() -> None:
    """Let other threads make such things again."""
    if _held.pop():
        MAKING.release()


def _others_import() -> bool:
    """Whether another thread holds the lock of a module.

    Frames of other threads would tell who asked for it, but reading them while those threads run
    is not safe in Python 3.11.
    """
    this_thread = threading.get_ident()
    locks = [reference() for reference in list(vars(_bootstrap)["_module_locks"].values())]
    return any(getattr(lock, "owner", None) not in {None, this_thread} for lock in locks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_work, after_in_parent=_go_on, after_in_child=_go_on)
