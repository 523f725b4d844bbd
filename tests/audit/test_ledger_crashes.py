"""Processes killed at random instants: a spend is recorded or not, and no release is without one.

They use the file by one name and by two, and beside threads that open and close it all the time; or
a table of PostgreSQL by two ways, where the server is killed as well, and connections are cut. The
short versions run by default, the long ones with `-m audit`.
"""

import os
import random
import signal
import threading
import time
import traceback
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pytest
from support.charging import ONE, entry, in_processes
from support.databases import Proxy, Server

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import BudgetExceededError, LedgerBusyError, ReleaseError, TemporaryError
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import PrivacyLoss, Spend
from dpframe.privacy.pots import settle_pots

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # NumPy's threads are idle
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
WHOLE = settle_pots(ONE).pots[1].limit
SPENT = Fraction(1, 10**14)  # mu^2 of each release
PARTS = ("1", "2", "47")
ALIVE = 2  # workers at work at any time
LONGEST = 0.05  # seconds until the next one is killed
LONGEST_WATCHED = 0.2  # where threads of a process wait for each other
LONGEST_THERE = 0.4  # where a server answers
KILLS_PER_LEDGER = 20  # a longer ledger takes longer to check

Place = Path | str
kills = pytest.mark.parametrize("kills", [20, pytest.param(1000, marks=pytest.mark.audit)])


def plain(path: Path) -> list[Path]:
    """Use the file by its own name."""
    return [path]


def watched(path: Path) -> list[Path]:
    """Let a thread of each process open and close the file all the time, as a backup does."""

    def read():
        while True:
            path.read_bytes()

    threading.Thread(target=read, daemon=True).start()
    return [path]


def two_names(path: Path) -> list[Path]:
    """Use the file through a link to it, and through one to its folder."""
    file, folder = path.with_name("link.ledger"), path.parent / "folder"
    for link, target in ((file, path), (folder, path.parent)):
        if not link.is_symlink():
            link.symlink_to(target)
    return [file, folder / path.name]


def by_server(url: str) -> list[str]:
    """Use a table of PostgreSQL as it is named, and by another way."""
    return [url, url.replace("127.0.0.1", "localhost")]


WAYS = [plain, watched, two_names]


def spend(ledger: Ledger, number: int) -> str:
    """Charge without releasing."""
    made = Entry(
        f"{os.getpid()}-{number}",
        "2026-01-01T00:00:00+00:00",
        "count",
        "gaussian",
        Spend.of(mu=1e-7),
        PrivacyLoss(mu_squared=SPENT),
    )
    ledger.charge(made)
    return made.release_id


def release(ledger: Ledger, _: int) -> str:
    """Release a noisy count."""
    frame = pd.DataFrame({"zone": ["A", "B", "A"]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, ledger=ledger)
    released = frame.dp.release(dpf.count(by="zone"), rho=float(SPENT / 2), mechanism="gaussian")
    return released.dp.certificate.release_id


def spend_of_parts(ledger: Ledger, number: int) -> str:
    """Charge a part of the data, or all of them."""
    made = replace(entry(PrivacyLoss(mu_squared=SPENT)), part=(None, *PARTS)[number % 4])
    ledger.charge(made)
    return made.release_id


class Worker:
    """A process that spends without end, and tells what it has got in a file."""

    def __init__(self, folder: Path, place: Place, act, way):
        self.told = folder / f"told-{uuid4().hex}"
        self.told.touch()
        self.alive, parent = True, os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._work(place, act, way, parent)

    def _work(self, place: Place, act, way, parent: int):
        try:
            with self.told.open("ab", buffering=0) as told:
                ledger, number = Ledger(random.SystemRandom().choice(way(place))), 0
                while os.getppid() == parent:
                    told.write(f"{act(ledger, number)}\n".encode())
                    number += 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(99)

    def kill(self) -> int:
        """Kill it, and return what it ended with."""
        if self.alive:
            self.alive = False
            os.kill(self.pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return -signal.SIGKILL


def told_in(folder: Path) -> set[str]:
    """Releases that workers have got."""
    return {name for each in folder.glob("told-*") for name in each.read_text().split()}


def check(folder: Path, place: Place, killed: int) -> int:
    """Compare what was told with what is recorded, and charge once more."""
    before = told_in(folder)
    ledger = Ledger(place)  # checks the chain
    state = ledger.last_status()
    recorded = Counter(each.release_id for each in state.entries)
    assert before <= set(recorded)
    assert set(recorded.values()) <= {1}
    # a process has at most one release on its way, and this one has charged after each kill
    assert len(set(recorded) - told_in(folder)) <= 2 * killed + ALIVE
    for part in PARTS if ledger.part else [None]:
        own = state if part is None else ledger.of_part(part).last_status()
        counted = [one.loss for one in state.entries if part is None or one.part in (None, part)]
        assert own.spent == sum(counted, start=PrivacyLoss())
    spend(ledger, killed)
    return len(before)


def made_in(folder: Path, way, request) -> Place:
    """Name a new ledger: a file in a folder, or a table of the server."""
    if way is by_server:
        return request.getfixturevalue("server").url()
    return folder / "x.ledger"


ACTS = [spend, release, spend_of_parts]
on_server = [pytest.mark.server, pytest.mark.audit]


@pytest.mark.full
@pytest.mark.sampled(every=7, full=5)
@pytest.mark.parametrize(
    ("kills", "way", "act"),
    [
        *((12, plain, act) for act in ACTS[:2]),
        *((6, way, act) for way in WAYS[1:] for act in ACTS[:2]),
        (6, plain, spend_of_parts),
        *(pytest.param(1000, way, act, marks=pytest.mark.audit) for way in WAYS for act in ACTS),
        *(pytest.param(20, by_server, act, marks=on_server) for act in ACTS),
        *(pytest.param(100, by_server, act, marks=on_server) for act in ACTS),
    ],
)
def test_killed_processes_leave_every_release_recorded(tmp_path, request, kills, act, way):
    source, told, part = random.Random(9), 0, "week" if act is spend_of_parts else None
    act(Ledger(budget=ONE, part=part), 0)  # imports what workers need
    longest = {watched: LONGEST_WATCHED, by_server: LONGEST_THERE}.get(way, LONGEST)
    for start in range(0, kills, KILLS_PER_LEDGER):
        folder = tmp_path / str(start)
        folder.mkdir()
        place = made_in(folder, way, request)
        Ledger.create(place, budget=ONE, part=part)
        if way is two_names:
            two_names(place)
        workers = [Worker(folder, place, act, way) for _ in range(ALIVE)]
        try:
            for killed in range(1, min(KILLS_PER_LEDGER, kills - start) + 1):
                time.sleep(source.random() * longest)
                victim = source.randrange(ALIVE)
                assert workers[victim].kill() == -signal.SIGKILL
                found = check(folder, place, killed)
                workers[victim] = Worker(folder, place, act, way)
        finally:
            for worker in workers:
                worker.kill()
        told += found
    assert told > kills / 4  # the workers were at work


@kills
def test_a_ledger_is_created_whole_or_not_at_all(tmp_path, kills):
    source, created = random.Random(10), 0
    for killed in range(kills // 2):
        folder = tmp_path / str(killed)
        folder.mkdir()
        child = os.fork()
        if child == 0:
            for number in range(1000):
                Ledger.create(folder / f"{number}.ledger", budget=ONE)
            os._exit(0)
        time.sleep(source.random() * 5 * LONGEST)  # a file takes longer to create
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for path in folder.glob("*.ledger"):
            assert Ledger(path, budget=ONE).entries == ()
            created += 1
    assert created > 0


def _charge_patiently(ledger, share):
    """Charge until the ledger is free: where it was busy, nothing was charged."""
    while True:
        try:
            return ledger.charge(entry(share))
        except LedgerBusyError:
            continue


@pytest.mark.sampled(every=3, full=4)
@pytest.mark.parametrize(
    ("processes", "shares", "way"),
    [
        *((2, 100, way) for way in WAYS),
        *(pytest.param(8, 10_000, way, marks=pytest.mark.audit) for way in WAYS),
        pytest.param(8, 800, by_server, marks=on_server),
    ],
)
def test_many_processes_spend_exactly_the_whole(tmp_path, request, processes, shares, way):
    path = made_in(tmp_path, way, request)
    Ledger.create(path, budget=ONE)
    share = PrivacyLoss(mu_squared=WHOLE / shares)

    def spend_some(number):
        names = way(path)
        ledger = Ledger(names[number % len(names)])
        for _ in range(shares // processes):
            _charge_patiently(ledger, share)
        return 0

    if way is two_names:
        two_names(path)
    acts = [partial(spend_some, number) for number in range(processes)]
    assert in_processes(acts) == [0] * processes
    ledger = Ledger(path)
    assert len(ledger.entries) == shares
    assert ledger.status().spent.mu_squared == WHOLE
    assert ledger.status().remaining_share == 0
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(share))
    assert len(Ledger(path).entries) == shares


def end_connections(server: Server, _: Proxy) -> None:
    server.terminate()


def cut_connections(_: Server, proxy: Proxy) -> None:
    proxy.cut_all()


def kill_server(server: Server, _: Proxy) -> None:
    server.kill()


@pytest.mark.server
@pytest.mark.audit
@pytest.mark.parametrize(
    ("accidents", "accident"), [(100, end_connections), (100, cut_connections), (15, kill_server)]
)
def test_what_is_told_of_a_spend_holds_whatever_the_server_does(
    tmp_path, server, accidents, accident
):
    source, proxy = random.Random(11), Proxy(server.port)
    url = server.url()
    Ledger.create(url, budget=ONE)
    through = url.replace(str(server.port), str(proxy.port))
    workers = [Worker(tmp_path, through, spend_or_say, plain) for _ in range(3)]
    try:
        while not all(worker.told.read_text() for worker in workers):
            time.sleep(0.1)
        for _ in range(accidents):
            time.sleep(source.random() * LONGEST_THERE)
            accident(server, proxy)
        time.sleep(3)
    finally:
        for worker in workers:
            assert worker.kill() == -signal.SIGKILL
    recorded = Counter(one.release_id for one in Ledger(url).entries)
    told = {word: set() for word in ("spent", "unspent", "perhaps")}
    for name in told_in(tmp_path):
        word, _, release_id = name.partition(":")
        told[word].add(release_id)
    assert set(recorded.values()) <= {1}
    assert told["spent"] <= set(recorded)
    assert not told["unspent"] & set(recorded)
    assert len(set(recorded) - told["spent"] - told["perhaps"]) <= len(workers)
    assert len(told["spent"]) > accidents / 4
    assert told["unspent"]  # accidents happened to spends


def spend_or_say(ledger: Ledger, _: int) -> str:
    """Charge without releasing, and say what is known of it."""
    made = entry(PrivacyLoss(mu_squared=SPENT))
    try:
        ledger.charge(made)
    except TemporaryError:
        time.sleep(0.05)
        return f"unspent:{made.release_id}"
    except ReleaseError:
        return f"perhaps:{made.release_id}"
    return f"spent:{made.release_id}"
