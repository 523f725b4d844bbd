"""Locks of ledgers: what other threads, processes, names and signals can do to them."""

import os
import signal
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from support.charging import PURE, entry, in_processes, pure
from support.interrupting import Traced, places
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import BudgetExceededError, LedgerError
from dpframe.ledger import locks, platform
from dpframe.ledger.chain import Chain
from dpframe.ledger.file import LedgerFile

forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # NumPy's threads are idle
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
SHARES = 40
SHARE = pure(Fraction(1, SHARES))
REFUSED = 60  # what a process returns that got nothing


def forking(test):
    for mark in forks:
        test = mark(test)
    return test


@pytest.fixture
def path(tmp_path) -> Path:
    return Ledger.create(tmp_path / "x.ledger", budget=PURE).path


def spending(path: Path, *, watched: bool = False):
    """Spend until nothing is left, and tell how often; a thread may read the file all the time."""
    done = threading.Event()

    def read():
        while not done.is_set():
            path.read_bytes()

    def spend():
        if watched:
            threading.Thread(target=read, daemon=True).start()
        ledger, spent = Ledger(path), 0
        try:
            while True:
                ledger.charge(entry(SHARE))
                spent += 1
        except BudgetExceededError:
            return spent
        finally:
            done.set()

    return spend


def quickly_refused(path: Path):
    """Try to spend, and wait no longer than an instant."""

    def spend():
        platform.USUAL_PATIENCE = 0.1
        try:
            Ledger(path).charge(entry(SHARE))
        except LedgerError as error:
            assert "it is locked" in str(error)
            return REFUSED
        return 0

    return spend


@forking
def test_a_thread_that_reads_the_file_does_not_unlock_it(path):
    assert sum(in_processes([spending(path, watched=True)] * 2)) == SHARES
    assert len(Ledger(path).entries) == SHARES


@forking
def test_nobody_spends_meanwhile_though_the_file_was_opened_and_closed(path):
    ledger = Ledger(path)

    def meanwhile(*_):
        path.read_bytes()
        return in_processes([quickly_refused(path)]), None

    assert LedgerFile(path).append(0, ledger.head, meanwhile) == [REFUSED]
    assert in_processes([quickly_refused(path)]) == [0]


def test_another_thread_may_use_the_file_at_any_step_of_giving_it_back(path):
    ledger, other, spent = Ledger(path), Ledger(path), []

    def use():
        other.status()
        spent.append(True)

    def meanwhile():
        thread = threading.Thread(target=use)
        thread.start()
        thread.join(0.02)  # before the file is free it waits
        threads.append(thread)

    steps = [
        place
        for place in places(ledger.status, ("/dpframe/ledger/locks.py",))
        if place[0] is locks._Opening.close.__code__
    ]
    threads: list[threading.Thread] = []
    for step in steps:
        Traced(("/dpframe/ledger/locks.py",), step, meanwhile).run(ledger.status)
    for thread in threads:
        thread.join()
    assert len(spent) == len(steps) > 20
    assert not locks.KEEPERS


@forking
@pytest.mark.parametrize("linked", ["the file", "its folder"])
def test_symbolic_links_lead_to_one_budget(path, linked):
    if linked == "the file":
        other = path.with_name("other.ledger")
        other.symlink_to(path)
    else:
        folder = path.parent / "folder"
        folder.symlink_to(path.parent)
        other = folder / path.name
    assert sum(in_processes([spending(path), spending(other)])) == SHARES


def test_a_second_name_is_refused(path):
    ledger, other = Ledger(path), path.with_name("other.ledger")
    os.link(path, other)
    for use in (ledger.status, lambda: ledger.charge(entry(SHARE)), lambda: Ledger(other)):
        with raises(LedgerError, "nothing was charged"):
            use()
    path.unlink()
    Ledger(other).charge(entry(SHARE))
    assert len(Ledger(other).entries) == 1


def test_a_name_left_while_creating_is_removed(path):
    draft = path.with_name("0123456789abcdef.new")
    os.link(path, draft)
    Ledger(path).charge(entry(SHARE))
    assert not draft.exists()


@pytest.fixture
def mounted(path):
    """The file, seen once more as a mount of its own."""
    (path.parent / "elsewhere").mkdir()
    other = path.parent / "elsewhere" / path.name
    other.touch()
    made = subprocess.run(["mount", "--bind", path, other], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("this user may not mount")
    try:
        yield other
    finally:
        subprocess.run(["umount", other], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="single files are mounted on Linux")
def test_a_file_mounted_without_its_folder_is_refused(path, mounted):
    with raises(LedgerError, "Mount the folder"):
        Ledger(mounted)
    Ledger(path).charge(entry(SHARE))


@forking
@pytest.mark.skipif(sys.platform != "linux", reason="single files are mounted on Linux")
def test_the_lock_holds_under_names_that_nothing_tells(path, mounted, monkeypatch):
    monkeypatch.setattr(locks, "check_names", lambda *_: None)
    other = path.with_name("other.ledger")
    os.link(path, other)
    acts = [spending(name) for name in (path, other, mounted)]
    assert sum(in_processes(acts)) == SHARES
    assert len(Ledger(path).entries) == SHARES


def test_a_file_replaced_while_one_waits_for_it_is_refused(path, monkeypatch):
    ledger, wait = Ledger(path), locks._wait
    other = Ledger.create(path.with_name("other.ledger"), budget=PURE)

    def wait_too_long(*given):
        wait(*given)
        os.replace(other.path, path)

    monkeypatch.setattr(locks, "_wait", wait_too_long)
    with raises(LedgerError, "replaced"):
        ledger.charge(entry(SHARE))


@pytest.fixture(params=["in memory", "in a file"])
def ledger(request, path) -> Ledger:
    return Ledger(budget=PURE) if request.param == "in memory" else Ledger(path)


@pytest.fixture
def interrupting(monkeypatch):
    """Run something in a signal handler, in the middle of the next charge."""
    kept = []

    def interrupt(act):
        def handle(*_):
            try:
                kept.append(act())
            except LedgerError as error:
                kept.append(str(error))

        monkeypatch.setattr(Chain, "with_entry", then_signal)
        before.append(signal.signal(signal.SIGINT, handle))
        return kept

    def then_signal(*given):
        monkeypatch.setattr(Chain, "with_entry", with_entry)
        signal.raise_signal(signal.SIGINT)
        return with_entry(*given)

    before, with_entry = [], Chain.with_entry
    yield interrupt
    for handler in before:
        signal.signal(signal.SIGINT, handler)


def test_a_signal_handler_is_told_the_status_of_a_ledger_that_charges(ledger, interrupting):
    ledger.charge(entry(SHARE))
    kept = interrupting(lambda: len(ledger.status().entries))
    ledger.charge(entry(SHARE))
    assert kept == [1]
    assert len(ledger.status().entries) == 2


def test_a_signal_handler_does_not_spend_between_decision_and_charge(ledger, interrupting):
    kept = interrupting(lambda: ledger.charge(entry(SHARE)))
    ledger.charge(entry(SHARE))
    assert "in use by this very thread" in kept[0]
    assert "nothing was charged" in kept[0]
    assert len(ledger.entries) == 1
    ledger.charge(entry(SHARE))


def test_a_signal_handler_that_opens_the_file_anew_does_not_wait(path, interrupting):
    ledger = Ledger(path)
    kept = interrupting(lambda: Ledger(path))
    ledger.charge(entry(SHARE))
    assert "in use by this very thread" in kept[0]


def test_a_ledger_does_not_wait_for_another_one(path, monkeypatch):
    busy, free = Ledger(path), Ledger.create(path.with_name("y.ledger"), budget=PURE)
    monkeypatch.setattr(platform, "USUAL_PATIENCE", 10)

    def meanwhile(*_):
        waiting = threading.Thread(target=busy.status)
        waiting.start()
        free.charge(entry(SHARE))
        assert waiting.is_alive()
        return waiting, None

    LedgerFile(path).append(0, busy.head, meanwhile).join()


def run(script: str) -> str:
    """Run Python with the tests' own paths."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests")])},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_system_without_locks_has_ledgers_in_memory(tmp_path):
    told = run(
        "import sys; sys.modules['fcntl'] = None\n"
        "import dpframe as dpf\n"
        "print(dpf.Ledger(budget=dpf.Budget(1)))\n"
        f"try: dpf.Ledger.create({str(tmp_path / 'x')!r}, budget=dpf.Budget(1))\n"
        "except dpf.errors.LedgerError as error: print(error)\n"
    )
    assert "Ledger in memory" in told
    assert "this system has no locks on files. Keep the ledger in memory" in told
    assert not os.listdir(tmp_path)


class Windows:
    """Locks of Windows, played by those of this system."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def locking(self, handle: int, mode: int, count: int) -> None:
        import fcntl

        assert count == 1
        assert os.lseek(handle, 0, os.SEEK_CUR) > 2**32
        try:
            fcntl.flock(handle, fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error


@forking
def test_the_locks_of_windows_do_the_same(path, monkeypatch):
    windows = platform.Platform("win32", posix_locks=None, windows_locks=Windows())
    monkeypatch.setattr(platform, "HERE", windows)
    meanwhile = LedgerFile(path).append(
        0, Ledger(path).head, lambda *_: (in_processes([quickly_refused(path)]), None)
    )
    assert meanwhile == [REFUSED]
    assert sum(in_processes([spending(path)] * 2)) == SHARES
