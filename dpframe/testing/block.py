"""What is the same in every testing block: ids, time, ledgers in memory, and a folder for files."""

import atexit
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpframe.errors import DPFrameWarning, PrivacyTestError
from dpframe.ledger.ledger import Ledger, emptied_in_memory, place_of
from dpframe.ledger.store import is_url
from dpframe.privacy import seam

_NOON = datetime(2000, 1, 1, 12, tzinfo=UTC)
_RUNNERS = frozenset({"_pytest", "behave", "doctest", "nose2", "unittest"})
_OWN = __name__.partition(".")[0]
_PREFIX, _INFIX = "TEST-", ".test"


class TestBlock(seam.OpenBlock):
    """A block in which releases are marked as tests, and charge ledgers in memory alone.

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
        super().__init__(word)
        self._ids = 0
        self._ledgers: dict[object, Ledger] = {}
        self._known: list[Ledger] = []  # the ids of objects that end are given out again
        self._warnings: dict[int, tuple[object, set[str]]] = {}
        self._files: dict[str, object] = {}  # of ledgers, as they were
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._given = self._folder = None if folder is None else Path(os.path.realpath(folder))
        self._places: set[Path] = set()
        self._fault: PrivacyTestError | None = None

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
        beside = {one for place in self._places for one in place.parent.glob(f"{place.name}*")}
        return {
            str(one.relative_to(self.folder)): one.read_bytes()
            for one in sorted(beside)
            if one.is_file()
        }

    def warnings_of(self, frame: object) -> set[str]:
        """Keep what was warned of in this block apart."""
        with self._lock:
            return self._warnings.setdefault(id(frame), (frame, set()))[1]

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

    def _ledger(self, key: object, make: Callable[[], Ledger], *known: Ledger) -> Ledger:
        with self._lock:
            if key in self._ledgers:
                return self._ledgers[key]
        made = make()
        with self._lock:
            self._known.extend(known)
            return self._ledgers.setdefault(key, made)

    def fail(self, fault: PrivacyTestError) -> PrivacyTestError:
        """Keep a fault, so that it is raised even where a pipeline catches it, and return it."""
        if self._fault is None:
            self._fault = fault
        return fault

    def finish(self) -> None:
        """Look at what happened once the block ends without an error."""

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
            why = f"the file of the ledger {path} was charged while a testing block was open."
            what = "No test sees other processes: what they release is real."
            way = "If the pipeline starts some, let it use threads; if not, test with another file."
            self.fail(PrivacyTestError(f"{why} {what} {way}", rule="outside"))
        if self._fault is not None and error is not self._fault:
            raise self._fault
        if error is None:
            self.finish()

    def close(self) -> None:
        """End the block, and remove its temporary folder."""
        super().close()
        self._warnings.clear()  # it holds frames
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __reduce__(self) -> Any:
        """Stay in this process."""
        why = "a testing block cannot be pickled:"
        raise PrivacyTestError(f"{why} what another process releases is not seen. Use threads.")


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
    if any(block.is_here for block in seam._OPEN):
        warnings.warn(
            "a testing block was never closed: all that was released since it was opened is "
            "marked TEST, and protects nobody. Open it by `with`.",
            DPFrameWarning,
            stacklevel=1,
        )


def _state(path: str) -> object:
    """Say what shows that a file was written."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _key(place: str) -> str:
    return place if is_url(place) else os.path.realpath(place)
