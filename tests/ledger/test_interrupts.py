"""Interrupts before any step of a charge: the ledger stays usable, and nothing is spent twice.

The interrupt is kept, as notebooks keep it, and with it all that its traceback names.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import wraps
from itertools import count
from pathlib import Path

import pytest
from support.charging import ONE, entry, in_processes, pure
from support.interrupting import interrupted, places

from dpframe import Ledger
from dpframe.errors import BudgetExceededError
from dpframe.ledger import locks, platform

FILES = ("/dpframe/ledger/", "/contextlib.py", "/threading.py", "/weakref.py")
STRIDES = 128
TINY = pure(Fraction(1, 10**6))
OTHER = """
import sys
from fractions import Fraction
from support.charging import entry, pure
from dpframe.ledger import platform
from dpframe.ledger.ledger import Ledger

platform.USUAL_PATIENCE = 1
ledger = Ledger(sys.argv[1])
for name in sys.stdin:
    try:
        ledger.charge(entry(pure(Fraction(1, 10**6)), name=name.strip()))
        print("done", flush=True)
    except Exception as error:
        print(error, flush=True)
"""
NAMES = map("charge {}".format, count())

# what is interrupted as it opens a file or a connection leaves it to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(platform, "USUAL_PATIENCE", 1)
    return Ledger.create(tmp_path / "x.ledger", budget=ONE).path


@pytest.fixture
def other(path):
    """Charge in another process."""
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests")])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def charge(name: str) -> str:
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    yield charge
    process.communicate()


def charging(ledger: Ledger, done: list[str]):
    """Give a charge of a new name, which is noted when it is done."""

    def charge():
        name = next(NAMES)
        ledger.charge(entry(TINY, name=name))
        done.append(name)

    return charge


def in_a_thread(act) -> bool:
    """Whether something ends, in a thread of its own."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


def apart(test):
    """Run a test in a thread of its own.

    Python may keep the exception that was handled at a place where no real interrupt can come, and
    would show it beside all errors of that thread.
    """

    @wraps(test)
    def run(*args, **kwargs):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(test, *args, **kwargs).result()

    return run


def strides(every: int):
    """Split a test of all places into cases: the default lane runs one, the gate two."""
    case = pytest.mark.parametrize("stride", range(every))
    return lambda test: pytest.mark.sampled(every=every, full=3 * every // 2)(case(test))


@strides(STRIDES)
@apart
def test_an_interrupt_anywhere_in_a_charge_leaves_the_file_free(path, other, stride):
    ledger, done, kept = Ledger(path), [], []
    charge = charging(ledger, done)
    charge()  # what is imported or remembered on first use
    seen = places(charge, FILES)
    assert len(seen) > 1500  # about as many on every Python
    for place in seen[stride::STRIDES]:
        kept.append(interrupted(charge, place))
        assert not locks.KEEPERS, place
        name = next(NAMES)
        assert other(name) == "done", place
        done.append(name)
        charge()
        assert in_a_thread(charge), place
    assert sum(each is not None for each in kept) > 10
    recorded = Counter(each.name for each in Ledger(path).entries)
    assert set(recorded.values()) == {1}
    assert set(done) <= set(recorded)
    assert ledger.status().spent == pure(Fraction(len(recorded), 10**6))
    assert Ledger(path).head == ledger.head


@strides(4)
@apart
def test_an_interrupt_anywhere_in_a_charge_leaves_a_ledger_in_memory_free(stride):
    ledger, done, kept = Ledger(budget=ONE), [], []
    charge = charging(ledger, done)
    charge()
    for place in places(charge, FILES)[stride::4]:
        kept.append(interrupted(charge, place))
        charge()
        assert in_a_thread(charge), place
    assert sum(each is not None for each in kept) > 100
    recorded = [each.name for each in ledger.entries]
    assert len(set(recorded)) == len(recorded)
    assert set(done) <= set(recorded)


@strides(STRIDES)
@apart
def test_an_interrupt_anywhere_while_a_ledger_is_read_leaves_it_free(path, other, stride):
    ledger = Ledger(path)
    ledger.charge(entry(TINY, name=next(NAMES)))
    kept = []
    for place in places(ledger.status, FILES)[stride::STRIDES]:
        kept.append(interrupted(ledger.status, place))
        assert not locks.KEEPERS, place
        assert other(next(NAMES)) == "done", place
        assert in_a_thread(ledger.status), place
    assert all(kept)


@strides(STRIDES)
@apart
def test_an_interrupt_anywhere_while_a_ledger_is_made_leaves_it_whole_or_absent(path, stride):
    def make():
        Ledger.create(path.with_name(f"{next(NAMES)}.ledger"), budget=ONE)

    kept = [interrupted(make, place) for place in places(make, FILES)[stride::STRIDES]]
    assert all(kept)
    assert not locks.KEEPERS
    for made in path.parent.glob("*.ledger"):
        Ledger(made).charge(entry(TINY))
        assert made.stat().st_nlink == 1
    assert not list(path.parent.glob("*-journal"))


@apart
def test_the_last_of_a_budget_is_not_spent_twice_by_interrupted_charges(path):
    ledger, kept, whole = Ledger(path), [], pure(Fraction(1, 4))

    def charge():
        with contextlib.suppress(BudgetExceededError):
            ledger.charge(entry(whole, name=next(NAMES)))

    found = places(charge, FILES)
    for place in found[-120::3]:  # after the row is written, and before
        kept.append(interrupted(charge, place))
    while ledger.allows(whole):
        charge()
    assert any(kept)
    assert len(Ledger(path).entries) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_interrupt_as_a_process_forks_leaves_ledgers_free():
    ledger = Ledger(budget=ONE)
    charge, kept = charging(ledger, []), []

    def fork():
        assert in_processes([lambda: 0]) == [0]

    for place in places(fork, ("/dpframe/ledger/",)):
        kept.append(interrupted(fork, place))  # hooks of a fork raise nothing
        assert in_a_thread(charge), place
    assert kept
