"""No interleaving of starts, kills, cut connections, full disks and clocks breaks a promise.

Every one within small bounds runs in the gate, more and 2,000 at random with `-m audit`. Planted
faults are found, each by the promise that it breaks.
"""

import random
from collections import Counter
from contextlib import contextmanager
from unittest import mock

import pytest
from ledger.simulated import NAME, Bounds, explore, play, simulation
from support.charging import entry, pure

from dpframe import Ledger
from dpframe.jobs.starts import Seen, Start, look_for_spool
from dpframe.ledger import leases, ledger, transactions
from dpframe.ledger.leases import Lease, Life, life_of
from dpframe.ledger.postgres import LedgerTable

KINDS = ("file", "table")
FAULTS = {"kills": 1, "cuts": 1, "full": 1, "jumps": 1, "beats": 1}
MANY = {name: 2 for name in FAULTS} | {"starts": 3, "switches": 4, "faults": 4}
QUIET = 0.8  # how often a start simply goes on, where choices are random


def explored(kind, bounds, most=None):
    """Run interleavings until one breaks a promise, and count how they end."""
    ends = Counter()
    with simulation():
        for number, outcome in enumerate(explore(kind, bounds), start=1):
            assert not outcome.broken, "\n".join([outcome.broken, *outcome.trace])
            ends[outcome.codes] += 1
            if number == most:
                break
    return ends


@pytest.mark.parametrize("kind", KINDS)
def test_two_starts_without_faults_release_once(kind):
    ends = explored(kind, Bounds(switches=1, faults=0))
    assert {code for codes in ends for code in codes} <= {0, 4, 75}
    assert all(0 in codes for codes in ends)


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("file", Bounds(switches=1, kills=1)),
        ("table", Bounds(switches=1, kills=1, hosts=2)),
        ("file", Bounds(switches=1, faults=0, person=True)),
    ],
)
def test_one_death_or_one_word_of_a_person_breaks_no_promise(kind, bounds):
    ends = explored(kind, bounds)
    assert any(5 in codes for codes in ends)  # lost between noise and spool, as it must be


@pytest.mark.audit
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bounds", [Bounds(switches=1, **FAULTS), Bounds(switches=2, kills=1)])
def test_no_interleaving_breaks_a_promise(kind, bounds):
    number = sum(explored(kind, bounds).values())
    print(f"{number:,} interleavings of {kind}, {bounds}")
    assert number > 2000


@pytest.mark.audit
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, {"person": True}, {"hosts": 2}])
def test_no_random_interleaving_of_many_faults_breaks_a_promise(kind, more):
    source, seen = random.Random(47), Counter()

    def choose(options):
        return 0 if source.random() < QUIET else source.randrange(options)

    with simulation():
        for _ in range(700):
            outcome = play(kind, Bounds(**MANY, **more), choose)
            assert not outcome.broken, "\n".join([outcome.broken, *outcome.trace])
            seen.update(outcome.codes)
    assert {0, 4, 5, 75, None} <= set(seen), seen


@contextmanager
def no_fence():
    """Whoever totals draws, though it was taken over."""

    def anybody(row, run, epoch):
        return None if row == "noise" else leases.allowed(row, run, epoch)

    with mock.patch.object(transactions, "allowed", anybody):
        yield


@contextmanager
def no_second_look():
    """A start whose answer is lost takes its row for lost, too."""
    with mock.patch.object(LedgerTable, "_holds", lambda *_: False):
        yield


@contextmanager
def no_row_drawn():
    """What is kept is published at once, whatever a person said meanwhile."""
    with mock.patch.object(Ledger, "note_drawn", lambda *_: None):
        yield


@contextmanager
def no_leases():
    """A run that is slow is taken for dead, as it once was."""
    with mock.patch.object(Lease, "life", Life.EXPIRED):
        yield


@contextmanager
def spool_before_life():
    """A run may keep what it drew, and die, between the two looks."""

    def look(start):
        run = start.ledger.run_of(start.name)
        if run is None:
            return Seen(None, None, None, leases.StartStep.BEGIN)
        found, place = look_for_spool([start.folder], run.entry.release_id)
        lease = start.ledger.lease_of(run.entry.release_id)
        return Seen(run, lease, place, leases.next_step(run.state, life_of(lease), found))

    with mock.patch.object(Start, "look", look):
        yield


PLANTED = [
    (no_fence, "table", Bounds(switches=1, jumps=1), "two draws"),
    (no_second_look, "table", Bounds(starts=1, switches=0, cuts=1), "that nobody killed"),
    (no_row_drawn, "file", Bounds(starts=1, switches=2, faults=0, person=True), "given up"),
    (no_leases, "file", Bounds(switches=1, faults=0), "taken over"),
    (spool_before_life, "file", Bounds(switches=2, kills=1), "that nobody killed"),
]


@pytest.mark.full
@pytest.mark.parametrize(("fault", "kind", "bounds", "words"), PLANTED)
def test_a_planted_fault_is_found(fault, kind, bounds, words):
    with fault(), pytest.raises(AssertionError, match=words):
        explored(kind, bounds)


def test_rows_of_rivals_are_never_alike():
    """Who lost an answer would else take the row of a rival for its own."""
    made = entry(pure(0.25), NAME)
    one, other = (ledger._mark("again", made, 0) for _ in range(2))
    assert one[:4] == other[:4] and one != other
