"""Runs of plans as states, and who is at work on one: leases beside the rows of a ledger.

A lease is advice to rivals. What is safe rests on rows alone: whoever takes a run over appends a
row of the next epoch, and a run of an earlier one draws no noise. So clocks may jump.
"""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from platform import node
from typing import NamedTuple, Protocol, Self

from dpframe.errors import LedgerError, TemporaryError
from dpframe.frozen import frozen
from dpframe.ledger import platform
from dpframe.ledger.locks import OneAtATime
from dpframe.ledger.log import Entry, Log

LASTS = 60.0
"""Seconds after which a lease expires: what no waiting for a lock or for a server reaches."""
EVERY = 10.0
"""Seconds between two beats, so that five may fail."""

_ENDED = 0.0  # when a lease expires whose run said itself that it ended
_START = 19  # place of the start time in /proc/PID/stat, behind the name of the program
_DEAD = ("Z", "X")  # states of a process that only its parent still knows


class Life(Enum):
    """What a lease tells of the run that has it."""

    ALIVE = auto()
    EXPIRED = auto()
    """It did not beat for long, or nobody can tell."""
    DEAD = auto()
    """That is proved: its process is gone, or it said itself that it ended."""


@frozen(slots=True)
class Owner:
    """A process that is at work on a run.

    Parameters
    ----------
    node, machine
        The name of the computer, and the identifier that its system was given.
    boot
        Identifier of the system's start; empty where there is none.
    space
        The space that numbers of processes and names of files are of: each container has its own.
        Empty where nobody knows.
    pid, started
        Number of the process, and when it started, as the system counts.
    spool
        The folder that keeps what it draws.
    """

    node: str
    machine: str
    boot: str
    space: str
    pid: int
    started: str
    spool: str

    @classmethod
    def here(cls, spool: str = "") -> Self:
        """Describe this process."""
        return cls(*_system(), os.getpid(), _started(os.getpid()), spool)

    @classmethod
    def of_text(cls, text: str) -> Self | None:
        """Read an owner; `None` if it is none, as somebody else may have written it."""
        try:
            read = cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return None
        texts = (read.node, read.machine, read.boot, read.space, read.started, read.spool)
        if type(read.pid) is not int or not all(type(text) is str for text in texts):
            return None
        return read if read.pid > 0 else None

    @property
    def text(self) -> str:
        """The owner as a text."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def is_gone(self) -> bool:
        """Whether this process is proved to have ended, which can be seen on its own computer."""
        here = Owner.here()
        if (self.node, self.machine) != (here.node, here.machine):
            return False
        if self.boot != here.boot:
            return bool(self.boot and here.boot)
        if not self.space or self.space != here.space:
            return False
        if not _exists(self.pid):
            return True
        started = _started(self.pid)  # empty where others may not see it
        return bool(started and self.started) and started != self.started


class Lease(NamedTuple):
    """A claim to a run, and until when it holds by the clock of its store.

    Parameters
    ----------
    release_id, epoch
        Of which release, and of its how manieth beginning.
    owner
        Whose it is, as the text of an `Owner`.
    beat, expires
        When it was renewed last, and when it expires; the store sets both.
    now
        The time of the store when it was read.
    """

    release_id: str
    epoch: int
    owner: str
    beat: float = 0.0
    expires: float = 0.0
    now: float = 0.0

    @property
    def life(self) -> Life:
        """What it tells of its run."""
        owner = Owner.of_text(self.owner)
        if self.expires == _ENDED or (owner is not None and owner.is_gone):
            return Life.DEAD
        # what expires later than any lease can was written before a clock was set back
        lasts = self.now < self.expires <= self.now + LASTS
        return Life.ALIVE if lasts else Life.EXPIRED

    def __str__(self) -> str:
        """Say where its run is, and when it last beat."""
        owner = Owner.of_text(self.owner)
        where = "an unknown host" if owner is None else f"{owner.node} as process {owner.pid}"
        if self.expires == _ENDED:
            return f"on {where}, which ended it"
        return f"on {where}, last beat {max(0.0, self.now - self.beat):.0f} s ago"


def life_of(lease: Lease | None) -> Life:
    """Tell what is known of a run; without a lease, nobody can tell."""
    return Life.EXPIRED if lease is None else lease.life


class Leases(Protocol):
    """Where leases are kept: in a store of a ledger."""

    def renew(self, lease: Lease, seconds: float) -> bool:
        """Let a lease last so many seconds from now; 0: it has ended. `False`: it was taken."""


class Beats:
    """A thread that renews a lease until it ends; it does not outlive its process.

    Parameters
    ----------
    leases
        A store that no other thread uses.
    lease
        What is renewed.
    """

    def __init__(self, leases: Leases, lease: Lease) -> None:
        self._leases, self._lease, self._process = leases, lease, os.getpid()
        self._over = threading.Event()
        self._lock = OneAtATime()  # a fork waits until no thread holds one
        threading.Thread(target=self._run, name="dpframe-beats", daemon=True).start()

    def _run(self) -> None:
        while not self._over.wait(EVERY):
            if not self.beat():
                return

    def beat(self) -> bool:
        """Renew the lease once; a ledger that cannot be reached now may be so at the next beat."""
        return self._renew(LASTS)

    def _renew(self, seconds: float) -> bool:
        with suppress(LedgerError):
            return self._lock.hold(lambda _: self._leases.renew(self._lease, seconds))
        return True

    def stop(self) -> None:
        """Beat no more."""
        self._over.set()

    def end(self) -> None:
        """Say that the run ended; a child of a fork has no say in it."""
        self.stop()
        if os.getpid() == self._process:
            self._renew(_ENDED)


class RunClaim:
    """What one start has of a run: its lease, which beats from the charge until the start ends.

    Parameters
    ----------
    spool
        The folder that is to keep what is drawn.
    before_noise
        Called before noise is noted: from then on, what is drawn must not be lost.
    """

    def __init__(self, spool: str = "", before_noise: Callable[[], object] = lambda: None) -> None:
        self.before_noise = before_noise
        self.entry: Entry | None = None
        """What was charged."""
        self._owner = Owner.here(spool).text
        self._beats: Beats | None = None

    def lease(self, entry: Entry, epoch: int) -> Lease:
        """Return the lease that goes with a charge."""
        return Lease(entry.release_id, epoch, self._owner)

    def begin(self, entry: Entry, leases: Leases | None, lease: Lease) -> None:
        """Beat, now that the run is charged; a ledger in memory has no rivals."""
        self.entry = entry
        if leases is not None:
            self._beats = Beats(leases, lease)

    def end(self) -> None:
        """Say that the start ended, so that another one need not wait."""
        if self._beats is not None:
            self._beats.end()

    def abandon(self) -> None:
        """Beat no more, and leave open whether the start ended."""
        if self._beats is not None:
            self._beats.stop()
            self._beats = None


@lru_cache(maxsize=1)
def _system() -> tuple[str, str, str, str]:
    """Name the computer, its identifier, the system's start, and the space that it is in."""
    machine = _text_of("/etc/machine-id")
    boot = _text_of("/proc/sys/kernel/random/boot_id")
    return node(), machine, boot, platform.HERE.process_space


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _exists(pid: int) -> bool:
    """Whether there is such a process; whoever may not see it is told that there is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return _stat(pid)[:1] not in [[state] for state in _DEAD]


def _started(pid: int) -> str:
    """Give the time at which a process started; empty where that is not told."""
    return "".join(_stat(pid)[_START : _START + 1])


def _stat(pid: int) -> list[str]:
    """Read what Linux tells of a process, behind its name."""
    return _text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()


MOST_AGAIN = 3
"""How often a run that was charged may begin again: each time, a crash may tell of the data."""


class RunPausedError(TemporaryError):
    """A start of a run ends before its noise, or before it knows of files: another one goes on."""


class RowRefusal(Enum):
    """Why a row may not follow."""

    TAKEN_OVER = auto()
    """Another start began the run again, or did so first."""
    HAD_NOISE = auto()
    """The noise of the charge was drawn, or may have been."""
    TOO_OFTEN = auto()
    NO_NOISE = auto()
    """There is nothing yet to keep, or to lose."""
    DRAWN = auto()
    """What was drawn is kept, and can be published."""
    NOT_DRAWN = auto()
    WRITTEN = auto()
    LOST = auto()
    """The run was given up: its name is closed."""


class RunState(NamedTuple):
    """What rows say of one run that was charged.

    Parameters
    ----------
    epoch
        How often it was begun again.
    noise
        Whether its noise was drawn, or may have been.
    drawn
        SHA-256 of its spool, in hexadecimal; empty: it has none that counts.
    written
        Whether its files were written.
    lost
        Who gave it up, and why; empty: nobody did.
    """

    epoch: int = 0
    noise: bool = False
    drawn: str = ""
    written: bool = False
    lost: str = ""

    @classmethod
    def of(cls, log: Log, release_id: str) -> "RunState":
        """Read the rows of a release."""
        state = cls()
        for mark in log.marks_of(release_id):
            match mark.what:
                case "again":
                    state = state._replace(epoch=state.epoch + 1)
                case "noise":
                    state = state._replace(noise=True)
                case "drawn":
                    state = state._replace(drawn=mark.digests[0])
                case "written":
                    state = state._replace(written=True)
                case "lost":
                    state = state._replace(lost=f"{mark.who}: {mark.why}")
                case _:  # a place that a ledger was moved to
                    pass
        return state


class ChargedRun(NamedTuple):
    """What became of a release that was charged."""

    entry: Entry  # its charge
    state: RunState

    @property
    def may_begin_again(self) -> bool:
        """Whether it is charged nothing if it begins again; without a plan, it never does."""
        again = allowed("again", self.state, self.state.epoch)
        return self.entry.plan is not None and again is None


def allowed(row: str, run: RunState, epoch: int) -> RowRefusal | None:  # noqa: PLR0911  # a table
    """Say why a row may not be appended to a run; `None`: it may.

    Parameters
    ----------
    row
        One of `RUN_ROWS`.
    run
        What the rows before say of the run.
    epoch
        The epoch of the start that appends it; of "again", the one that is taken over.

    Examples
    --------
    >>> allowed("noise", RunState(epoch=1), epoch=0)  # it was taken over meanwhile
    <RowRefusal.TAKEN_OVER: 1>
    >>> allowed("noise", RunState(epoch=1), epoch=1) is None
    True
    """
    match row:
        case "again" | "noise":
            if run.noise:
                return RowRefusal.HAD_NOISE
            if run.epoch != epoch:
                return RowRefusal.TAKEN_OVER
            return RowRefusal.TOO_OFTEN if row == "again" and epoch >= MOST_AGAIN else None
        case "drawn" | "lost":
            if not run.noise:
                return RowRefusal.NO_NOISE
            if run.lost:
                return RowRefusal.LOST
            if run.written and row == "lost":
                return RowRefusal.WRITTEN
            return RowRefusal.DRAWN if run.drawn else None
        case "written":
            if not run.drawn:
                return RowRefusal.NOT_DRAWN
            return RowRefusal.WRITTEN if run.written else None
        case _:
            raise ValueError(row)


class StartStep(Enum):
    """What a start does next."""

    BEGIN = auto()
    TAKE_OVER = auto()
    """It begins a run again, which is charged nothing."""
    WAIT = auto()
    PUBLISH = auto()
    """It writes the files from the spool."""
    GIVE_UP = auto()
    """It notes that the run is lost."""
    LOST = auto()
    TOO_OFTEN = auto()
    DONE = auto()


class Spool(Enum):
    """Whether what a run drew is kept where a start looks."""

    THERE = auto()
    ABSENT = auto()
    UNSEEN = auto()
    """It may be where nobody can look from here."""


def next_step(run: RunState | None, life: Life, spool: Spool) -> StartStep:  # noqa: PLR0911  # a table
    """Say what a start does; `life` must have been looked up before `spool`.

    A run that is proved dead makes no spool after that, so that one that is absent then stays so.

    Parameters
    ----------
    run
        What the ledger says of the run; `None`: nothing was charged.
    life
        What the lease says of it.
    spool
        Whether what it drew is kept.
    """
    if run is None:
        return StartStep.BEGIN
    if run.written:
        return StartStep.DONE
    if run.lost:
        return StartStep.LOST
    if not run.noise:
        if life is Life.ALIVE:
            return StartStep.WAIT
        again = allowed("again", run, run.epoch)
        return StartStep.TAKE_OVER if again is None else StartStep.TOO_OFTEN
    if spool is Spool.THERE:
        return StartStep.PUBLISH
    if life is Life.DEAD and spool is Spool.ABSENT:
        return StartStep.LOST if run.drawn else StartStep.GIVE_UP
    return StartStep.WAIT
