"""Ledgers in files, shared: by processes, threads, copies and frames."""

import copy
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, in_processes, pure
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import BudgetExceededError, LedgerError, ReleaseError
from dpframe.ledger.file import LedgerFile
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.law import Law
from dpframe.privacy.pots import settle_pots

forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # NumPy's threads are idle
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
WHOLE = settle_pots(ONE).pots[1].limit


def forking(test):
    for mark in forks:
        test = mark(test)
    return test


@pytest.fixture
def path(tmp_path) -> Path:
    Ledger.create(tmp_path / "shared.ledger", budget=ONE)
    return tmp_path / "shared.ledger"


def trips(ledger: Ledger) -> pd.DataFrame:
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, bounds={"fare": (0, 9)}, ledger=ledger)
    return frame


def test_objects_on_one_file_spend_one_budget(path):
    first, second = Ledger(path), Ledger(str(path), budget=ONE)
    first.charge(entry(pure(0.6)))
    assert second.status().spent == pure(0.6)
    assert second.status() == first.status()
    assert second.head == first.head
    assert not second.allows(pure(0.5))
    with raises(BudgetExceededError, "epsilon=0.4 of Laplace", parameter="mu"):
        second.charge(entry(pure(0.5)))
    second.charge(entry(pure(0.4)))
    assert first.status().remaining_epsilon < 1e-5


def test_a_refusal_knows_what_others_spent_since_the_last_look(path):
    first, second = Ledger(path), Ledger(path)
    first.charge(entry(pure(0.6)))
    with raises(BudgetExceededError, "epsilon=0.4 of Laplace", parameter="mu"):
        second.charge(entry(pure(0.5)))


def test_what_is_charged_stays_charged_when_the_release_fails(path, monkeypatch):
    def fails(*_):
        raise MemoryError

    frame = trips(Ledger(path))
    monkeypatch.setattr(Law, "draw", fails)
    with pytest.raises(ReleaseError):
        frame.dp.count(epsilon=0.25, mechanism="laplace")
    assert Ledger(path).status().spent.epsilon == 0.25


def test_nothing_is_read_between_charge_and_release(path, monkeypatch):
    frame, charge = trips(Ledger(path)), Ledger.charge

    def then_lost(ledger, made):
        charge(ledger, made)
        path.rename(path.with_name("lost"))

    monkeypatch.setattr(Ledger, "charge", then_lost)
    assert frame.dp.count(epsilon=0.25).shape == (1, 1)


def test_nothing_is_drawn_before_the_charge_is_on_disk(path, monkeypatch):
    def unwritable(*_):
        raise LedgerError("no")

    def drawn(*_):
        pytest.fail("noise was drawn")

    frame = trips(Ledger(path))
    monkeypatch.setattr(LedgerFile, "append", unwritable)
    monkeypatch.setattr(Law, "draw", drawn)
    with pytest.raises(LedgerError):
        frame.dp.count(epsilon=0.25)


def unpickled(ledger: Ledger) -> Ledger:
    return pickle.loads(pickle.dumps(ledger))  # noqa: S301


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, unpickled])
def test_a_copy_spends_the_same_budget(path, way):
    ledger = Ledger(path)
    ledger.charge(entry(pure(0.5)))
    copied = way(ledger)
    copied.charge(entry(pure(0.25)))
    assert copied.path == ledger.path == path
    assert ledger.status().spent.epsilon == 0.75
    assert ledger.entries == copied.entries


def test_a_pickle_does_not_open_another_ledger(path):
    kept = pickle.dumps(Ledger(path))
    path.unlink()
    with raises(LedgerError, "there is no ledger at"):
        pickle.loads(kept)  # noqa: S301
    Ledger.create(path, budget=ONE)
    with raises(LedgerError, "another"):
        pickle.loads(kept)  # noqa: S301


def test_threads_share_one_object(path):
    ledger, gate = Ledger(path), threading.Barrier(4)
    outcomes = []

    def spend():
        gate.wait()
        for _ in range(10):
            try:
                ledger.charge(entry(PrivacyLoss(mu_squared=WHOLE / 30)))
                outcomes.append("spent")
            except BudgetExceededError:
                outcomes.append("refused")

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("spent"), outcomes.count("refused")) == (30, 10)
    assert Ledger(path).status().spent.mu_squared == WHOLE


def test_threads_have_an_object_each():
    with tempfile.TemporaryDirectory() as folder:
        path = Ledger.create(f"{folder}/x.ledger", budget=ONE).path
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: trips(Ledger(path)).dp.count(epsilon=0.01), range(48)))
        finally:
            sys.setswitchinterval(before)
        assert len(Ledger(path).entries) == 48


@forking
def test_processes_race_for_the_last_share_and_one_wins(tmp_path):
    ledger = Ledger.create(tmp_path / "race.ledger", budget=PURE)
    for number in range(12):
        last = PrivacyLoss(epsilon=Fraction(2, 3 ** (number + 1)))  # two thirds of what is left

        def race(last=last):
            try:
                Ledger(ledger.path).charge(entry(last))
            except BudgetExceededError:
                return 1
            return 0

        assert sorted(in_processes([race, race])) == [0, 1]
        assert ledger.status().spent.epsilon == 1 - last.epsilon / 2


@forking
def test_a_ledger_used_before_a_fork_is_used_after_it_on_both_sides(path):
    ledger = Ledger(path)
    ledger.charge(entry(pure(0.125)))

    def spend():
        ledger.charge(entry(pure(0.25)))
        return len(ledger.entries)

    assert in_processes([spend]) == [2]
    ledger.charge(entry(pure(0.5)))
    assert in_processes([spend]) != [0]  # does not fit any more
    assert ledger.status().spent == pure(0.875)


@forking
@pytest.mark.parametrize("act", ["spends", "declares"])
@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_a_process_forked_while_a_thread_is_at_work_is_not_stuck(path, kept, act):
    ledger = Ledger(path) if kept == "in a file" else Ledger(budget=ONE)
    frame, done = trips(ledger), threading.Event()

    def work():
        while not done.is_set():
            if act == "spends":
                ledger.charge(entry(PrivacyLoss(epsilon=Fraction(1, 10**9))))
            else:
                frame.dp.declare(keys={"zone": ["A", "B"]})

    def spend_once():
        frame.dp.declare(keys={"zone": ["A"]})
        ledger.charge(entry(PrivacyLoss(epsilon=Fraction(1, 10**9))))
        return 0

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert in_processes([spend_once] * 20) == [0] * 20
    finally:
        done.set()
        thread.join()


@pytest.mark.full
def test_a_new_process_opens_what_another_left(path):
    script = (
        "import sys, pickle; ledger = pickle.loads(bytes.fromhex(sys.argv[1])); "
        "from support.charging import entry, pure; ledger.charge(entry(pure(0.75)))"
    )
    ledger = Ledger(path)
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root), str(root / "tests")])
    subprocess.run(
        [sys.executable, "-c", script, pickle.dumps(ledger).hex()],
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
    )
    assert ledger.status().spent.epsilon == 0.75


@forking
def test_of_processes_that_create_one_ledger_at_once_one_wins(tmp_path):
    path = tmp_path / "new.ledger"

    def create():
        try:
            Ledger.create(path, budget=ONE)
        except LedgerError as error:
            assert "already" in str(error)
            return Ledger(path).charge(entry(pure(0.25))) or 1
        return 0

    assert sorted(in_processes([create] * 4)) == [0, 1, 1, 1]
    assert Ledger(path).status().spent == pure(0.75)
    assert os.listdir(tmp_path) == ["new.ledger"]


@pytest.fixture
def open_folder():
    """A folder that other users can enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def without_privileges(act):
    """Run as nobody where the tests run as root, who may write everything."""

    def run():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        return act()

    return run


@forking
def test_what_cannot_be_written_is_refused_before_anything_is_drawn(open_folder, monkeypatch):
    path = open_folder / "x.ledger"
    Ledger.create(path, budget=ONE).charge(entry(pure(0.5)))
    frame = trips(Ledger(path))
    path.chmod(0o444)
    open_folder.chmod(0o555)
    monkeypatch.setattr(Law, "draw", lambda *_: os._exit(77))

    def release():
        try:
            frame.dp.count(epsilon=0.1)
        except LedgerError as error:
            assert str(path) in str(error)
            assert "nothing was charged" in str(error)
            return 3
        return 0

    def create():
        try:
            Ledger.create(open_folder / "new.ledger", budget=ONE)
        except LedgerError as error:
            assert "disk in which you can write" in str(error)
            return 4
        return 0

    try:
        assert in_processes(map(without_privileges, [release, create])) == [3, 4]
    finally:
        open_folder.chmod(0o755)
    assert Ledger(path).status().spent == pure(0.5)


@forking
def test_a_file_that_is_read_only_in_a_folder_that_is_not(open_folder):
    path = open_folder / "x.ledger"
    Ledger.create(path, budget=ONE).charge(entry(pure(0.5)))
    path.chmod(0o444)
    open_folder.chmod(0o777)

    def charge():
        try:
            ledger = Ledger(path)
            ledger.charge(entry(pure(0.1)))
        except LedgerError as error:
            assert "nothing was charged. Get permission to write" in str(error)
            return 3
        return 0

    assert in_processes([without_privileges(charge)]) == [3]
    assert Ledger(path).status().spent == pure(0.5)
