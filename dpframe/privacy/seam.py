"""The seam of tests: the one place that says whether a release is tried or real.

Releases look here where integers meet noise, where rows are chosen at random, and where ids, times
and places of files come from. Outside of `dpframe.testing` every look is a look at an empty list.

A block belongs to the context that opened it, and to copies of that context while it is open. All
other code of the process is refused a release meanwhile: it would be a real one, by accident.
"""

import os
import threading
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import ref

from dpframe.errors import PrivacyTestError

_OUTSIDE = "outside"


class OpenBlock:
    """A test that is open. What it does to releases is said in `dpframe.testing`.

    Parameters
    ----------
    word
        Stands in for every random word by which rows are chosen.
    """

    def __init__(self, word: int = 0) -> None:
        self.word = word
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._token: Token[OpenBlock | None] | None = None
        self._opened = self._ended = False

    def draw(self, operation: Any, exact: Any, entry: Any) -> Any:
        """Draw noise as a release does."""
        return operation.draw(exact)

    def random_bytes(self, n: int) -> bytes | None:
        """Return bytes that stand in for random ones; `None`: there are none."""
        return None

    def new_id(self) -> str:
        """Return an identifier."""
        return uuid4().hex

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now(UTC)

    def place(self, path: Path) -> Path:
        """Return where a file is written that is to be at a path."""
        return path

    def written(self, path: Path) -> Path:
        """Return where a file is that was to be at a path."""
        return path

    def stand_in(self, ledger: Any) -> Any:
        """Return what is charged in place of a ledger that was there before, or is a file."""
        return ledger

    def ledger_at(self, place: str) -> Any:
        """Return the ledger that was made for a place, if one was."""
        return None

    def make_ledger(self, place: str, ledger: Any) -> None:
        """Keep a ledger that is to be at a place."""

    def warnings_of(self, frame: object) -> set[str]:
        """Return what was warned of about a frame object in this block, to be added to."""
        return set()

    def fail(self, fault: PrivacyTestError) -> PrivacyTestError:
        """Note a fault, and return it to be raised."""
        return fault

    def open(self) -> None:
        """Open the block in this context."""
        if _held() is not None:
            raise PrivacyTestError("a testing block cannot be opened inside of a release.")
        around = _BLOCK.get()
        if around is not None and around.is_here:
            way = "Close the first one, or leave the second one out."
            raise PrivacyTestError(f"a testing block cannot be opened inside of another. {way}")
        if around is not None:
            around.refuse()
        with self._lock:
            if self._opened:
                raise PrivacyTestError("a testing block can be opened once: make another one.")
            self._opened = True
        self._token = _BLOCK.set(self)
        _OPEN.append(self)

    def close(self) -> None:
        """End the block everywhere; only the context that opened it can forget it."""
        self._ended = True
        if self in _OPEN:
            _OPEN.remove(self)
        self._forget()

    def _forget(self) -> bool:
        """Leave this context to what is outside, if it opened the block; a copy of it did not."""
        token = self._token
        if token is None:
            return False
        try:
            _BLOCK.reset(token)
        except ValueError:  # a generator, or a task, that another context closes
            return False
        _BLOCK.set(None)  # an older one may have ended since
        self._token = None
        return True

    @property
    def is_here(self) -> bool:
        """Whether it is open, and in this process."""
        return not self._ended and self._process == os.getpid()

    def refuse(self) -> None:
        """Refuse what a block left behind: a process, a thread or a task that outlived it.

        The context that opened it may go on, whoever closed it.
        """
        if self._process != os.getpid():
            why = "this process was forked inside a testing block, whose test does not see it."
            raise PrivacyTestError(f"{why} Release in the process of the test.", rule=_OUTSIDE)
        if self._ended and not self._forget():
            why = "this thread or task was started inside a testing block, which has ended."
            raise PrivacyTestError(f"{why} Wait for it inside of the block.", rule=_OUTSIDE)


_BLOCK: ContextVar[OpenBlock | None] = ContextVar("dpframe_testing", default=None)
_OPEN: list[OpenBlock] = []
"""All blocks that are open in the process, or were when it was forked."""


class Hold:
    """Charge and draw in one block, or outside of all, whatever opens or ends meanwhile.

    A release that is interrupted anywhere lets go of it: the context knows it weakly.
    """

    __slots__ = ("__weakref__", "_before", "block", "ended")

    def __init__(self, block: OpenBlock | None) -> None:
        self.block, self.ended = block, False

    def __enter__(self) -> None:
        self._before = _HELD.get()
        _HELD.set(ref(self))

    def __exit__(self, *_: object) -> None:
        self.ended = True  # for copies of this context
        _HELD.set(self._before)


_HELD: ContextVar["ref[Hold] | None"] = ContextVar("dpframe_releasing", default=None)


def _held() -> Hold | None:
    known = _HELD.get()
    held = None if known is None else known()
    return None if held is None or held.ended else held


def current() -> OpenBlock | None:
    """Return the block that this code is in; to be asked before anything is charged.

    Raises
    ------
    PrivacyTestError
        If a block is open that this thread does not see, or this code has outlived its block.
    """
    held = _held()
    if held is not None:
        return held.block
    block = _BLOCK.get()
    if block is None and not _OPEN:
        return None
    if block is not None:
        if block.is_here:
            return block
        block.refuse()
    for other in [*_OPEN]:
        other.refuse()
        why = "a testing block is open, and this thread was started without its context:"
        what = "what it releases would be real."
        way = "Run it with contextvars.copy_context().run or asyncio.to_thread, or outside of it."
        fault = PrivacyTestError(f"{why} {what} {way}", rule=_OUTSIDE)
        for each in [*_OPEN]:
            each.fail(fault)
        raise fault
    return None


def seen() -> OpenBlock | None:
    """Return the block that this code is in; never raises, so that it may be asked at any time."""
    held = _held()
    if held is not None:
        return held.block
    block = _BLOCK.get()
    return block if block is not None and block.is_here else None


def row_word() -> int | None:
    """Return what stands in for random words by which rows are chosen, in threads of others, too.

    Which rows of its own a unit keeps moves no total by more than its caps: a release that was
    begun elsewhere before the block was opened stays private.
    """
    held = _held()
    if held is None and not _OPEN:
        return None
    block = (seen() or _OPEN[-1]) if held is None else held.block
    return None if block is None else block.word


def new_id() -> str:
    """Return a fresh identifier, or that of a test."""
    block = seen()
    return uuid4().hex if block is None else block.new_id()


def now() -> datetime:
    """Return the time in UTC, or that of a test."""
    block = seen()
    return datetime.now(UTC) if block is None else block.now()


def place(path: Path) -> Path:
    """Return where a file goes: to its path, or into the folder of a test."""
    block = seen()
    return path if block is None else block.place(path)


def written(path: Path) -> Path:
    """Return where a file is that is read: at its path, or where a test has written it."""
    block = seen()
    return path if block is None else block.written(path)
