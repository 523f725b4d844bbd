"""What is the same in every testing block: ids, time, ledgers in memory, and a folder for files."""

import atexit
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpframe.context import SYSTEM, Context, set_lookup
from dpframe.errors import DPFrameWarning, PrivacyTestError
from dpframe.ledger.ledger import Ledger, emptied_in_memory, place_of
from dpframe.ledger.log import Entry
from dpframe.ledger.store import is_url
from dpframe.operations.pipeline import Operation

_NOON = datetime(2000, 1, 1, 12, tzinfo=UTC)
_RUNNERS = frozenset({"_pytest", "behave", "doctest", "nose2", "unittest"})
_OWN = __name__.partition(".")[0]
_PREFIX, _INFIX = "TEST-", ".test"
_OUTSIDE = "outside"


class TestBlock:
    """A block in which releases are marked as tests, and charge ledgers in memory alone.

    It belongs to the thread or task that opened it, and to copies of its context while it is open.
    All other code of the process is refused a release meanwhile: it would be a real one, by
    accident.

    Parameters
    ----------
    folder
        Where files are written, in place of their paths; those in it stay where they are. `None`: a
        temporary folder, which ends with the block.
    word
        Stands in for random words by which rows are chosen.
    """

    __test__ = False  # pytest collects classes of such names

    def __init__(self, folder: str | os.PathLike[str] | None = None, word: int = 0) -> None:
        self.word = word
        self.context = Context(
            bits=self.bits,
            now=self.now,
            new_id=self.new_id,
            place=self.place,
            row_word=word,
            block=self,
        )
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._token: Token[TestBlock | None] | None = None
        self._opened = self._ended = False
        self._ids = 0
        self._ledgers: dict[object, Ledger] = {}
        self._known: list[Ledger] = []  # the ids of objects that end are given out again
        self._files: dict[str, object] = {}  # of ledgers, as they were
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._given = self._folder = None if folder is None else Path(os.path.realpath(folder))
        self._places: set[Path] = set()
        self._fault: PrivacyTestError | None = None

    def draw(self, operation: Operation, exact: Any, entry: Entry) -> Any:
        """Draw noise as a release does."""
        return operation.draw(exact, self.context)

    def bits(self, n: int) -> bytes:
        """Return random bytes."""
        return SYSTEM.bits(n)

    def new_id(self) -> str:
        """Count identifiers."""
        with self._lock:
            self._ids += 1
            return f"{self._ids:032x}"

    def now(self) -> datetime:
        """Stop the clock."""
        return _NOON

    @property
    def folder(self) -> Path:
        """Where files are written."""
        if self._folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="dpframe-testing-")
            self._folder = Path(os.path.realpath(self._temporary.name))
        return self._folder

    def place(self, path: Path) -> Path:
        """Return the place in the folder that stands for a path."""
        full = self._within(path)
        full.parent.mkdir(parents=True, exist_ok=True)
        self._places.add(full)
        return full

    def _within(self, path: Path) -> Path:
        full = _named_as_test(Path(os.path.realpath(path)))
        inside = full.is_relative_to(self.folder)
        return full if inside else self.folder / full.relative_to(full.anchor)

    def written(self, path: Path) -> Path:
        """Return the place of a file that was written in this block; of others, their path."""
        full = self._within(path)
        return full if full in self._places else path

    def files(self) -> dict[str, bytes]:
        """Return what was written, and what was written beside it."""
        beside = {file for place in self._places for file in place.parent.glob(f"{place.name}*")}
        return {
            str(file.relative_to(self.folder)): file.read_bytes()
            for file in sorted(beside)
            if file.is_file()
        }

    def stand_in(self, ledger: Ledger) -> Ledger:
        """Return the ledger in memory that stands in for another, one for each file."""
        place = place_of(ledger)
        if place is None:
            return self._ledger(id(ledger), lambda: emptied_in_memory(ledger), ledger)
        key = _key(place)
        self._files.setdefault(key, _state(key))
        return self._ledger(key, lambda: emptied_in_memory(ledger))

    def ledger_at(self, place: str) -> Ledger | None:
        """Return the ledger in memory that stands in for a file, if there is one."""
        return self._ledgers.get(_key(place))

    def make_ledger(self, place: str, ledger: Ledger) -> None:
        """Keep a ledger in memory that is to be at a place."""
        self._ledger(_key(place), lambda: ledger)

    def _ledger(self, key: object, make: Callable[[], Ledger], *kept: Ledger) -> Ledger:
        with self._lock:
            if key in self._ledgers:
                return self._ledgers[key]
        ledger = make()
        with self._lock:
            self._known.extend(kept)
            return self._ledgers.setdefault(key, ledger)

    def fail(self, fault: PrivacyTestError) -> PrivacyTestError:
        """Keep a fault, so that it is raised even where a pipeline catches it, and return it."""
        if self._fault is None:
            self._fault = fault
        return fault

    def finish(self) -> None:
        """Look at what happened once the block ends without an error."""

    def open(self) -> None:
        """Open the block in this context."""
        around = _BLOCK.get()
        if around is not None and around.is_here:
            remedy = "Close the first one, or leave the second one out."
            raise PrivacyTestError(f"a testing block cannot be opened inside of another. {remedy}")
        if around is not None:
            around.refuse()
        with self._lock:
            if self._opened:
                raise PrivacyTestError("a testing block can be opened once: make another one.")
            self._opened = True
        self._token = _BLOCK.set(self)
        _OPEN.append(self)

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
            reason = "this process was forked inside a testing block, whose test does not see it."
            raise PrivacyTestError(f"{reason} Release in the process of the test.", rule=_OUTSIDE)
        if self._ended and not self._forget():
            reason = "this thread or task was started inside a testing block, which has ended."
            raise PrivacyTestError(f"{reason} Wait for it inside of the block.", rule=_OUTSIDE)

    def __enter__(self) -> Self:
        self.open()
        _warn_outside_of_tests()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        for path, before in self._files.items():
            if _state(path) in (None, before):  # trials are made with copies, which are removed
                continue
            reason = f"the file of the ledger {path} was charged while a testing block was open."
            rule = "No test sees other processes: what they release is real."
            remedy = "If the pipeline starts some, let it use threads; or test with another file."
            self.fail(PrivacyTestError(f"{reason} {rule} {remedy}", rule=_OUTSIDE))
        if self._fault is not None and error is not self._fault:
            raise self._fault
        if error is None:
            self.finish()

    def close(self) -> None:
        """End the block everywhere, and remove its temporary folder.

        Only the context that opened the block can forget it.
        """
        self._ended = True
        if self in _OPEN:
            _OPEN.remove(self)
        self._forget()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __reduce__(self) -> Any:
        """Stay in this process."""
        reason = "a testing block cannot be pickled:"
        raise PrivacyTestError(f"{reason} what another process releases is not seen. Use threads.")


_BLOCK: ContextVar[TestBlock | None] = ContextVar("dpframe_testing", default=None)
_OPEN: list[TestBlock] = []
"""All blocks that are open in the process, or were when it was forked."""


def _find_context(*, looking: bool) -> Context:
    """Return the context of the block that a public call is in, or the real one.

    Raises
    ------
    PrivacyTestError
        If a block is open that this thread does not see, or this code has outlived its block, and
        it does more than look.
    """
    block = _BLOCK.get()
    if block is not None and block.is_here:
        return block.context
    if looking or (block is None and not _OPEN):
        return SYSTEM
    if block is not None:
        block.refuse()
    for other in [*_OPEN]:
        other.refuse()
        reason = "a testing block is open, and this thread was started without its context:"
        rule = "what it releases would be real."
        remedy = "Run it with contextvars.copy_context().run, asyncio.to_thread, or outside of it."
        fault = PrivacyTestError(f"{reason} {rule} {remedy}", rule=_OUTSIDE)
        for opened in [*_OPEN]:
            opened.fail(fault)
        raise fault
    return SYSTEM


set_lookup(_find_context)


def _named_as_test(path: Path) -> Path:
    """Give a file a name that says what it is, unless it has one.

    Examples
    --------
    >>> print(_named_as_test(Path("zones.csv")), _named_as_test(Path("TEST-zones.csv")))
    zones.test.csv TEST-zones.csv
    """
    if path.name.startswith(_PREFIX) or path.stem.endswith(_INFIX):
        return path
    return path.with_name(f"{path.stem}{_INFIX}{path.suffix}")


def _warn_outside_of_tests() -> None:
    """Warn of a block that no test opens, nor a command or a check of this package."""
    caller = sys._getframe(2)  # who entered the block
    if str(caller.f_globals.get("__name__")).partition(".")[0] == _OWN or _is_in_test():
        return
    warnings.warn(
        "a testing block is open outside of a test: what is released in it is marked TEST, "
        "protects nobody, and is charged to no ledger. Leave dpframe.testing to tests.",
        DPFrameWarning,
        stacklevel=3,
    )


def _is_in_test() -> bool:
    """Whether a known runner of tests is what runs this code, in this thread or the main one."""
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    for start in (sys._getframe(1), main):
        frame = start
        while frame is not None:
            if str(frame.f_globals.get("__name__")).partition(".")[0] in _RUNNERS:
                return True
            frame = frame.f_back
    return False


@atexit.register
def _warn_of_open_blocks() -> None:
    """Warn where a process ends inside a block: all that it released since was a test."""
    if any(block.is_here for block in _OPEN):
        warnings.warn(
            "a testing block was never closed: all that was released since it was opened is "
            "marked TEST, and protects nobody. Open it by `with`.",
            DPFrameWarning,
            stacklevel=1,
        )


def _state(path: str) -> object:
    """Say what shows that a file was written."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _key(place: str) -> str:
    return place if is_url(place) else os.path.realpath(place)
