"""Runs of plans as states: which row may follow, and what a second start of one name does.

A run is one name and one plan. It is `charged`, totals its rows, notes `noise`, draws, keeps what
it drew in a spool, notes `drawn`, publishes the files, and notes `written`. A run that ends before
its noise may be taken over: `again`, for nothing. One that ends between noise and spool is `lost`.

1. `noise` is appended once, by the last epoch, and only who appended it draws: there is one draw
   for one charge, whatever clocks and leases say.
2. Before `noise` nothing is drawn: to begin again is free.
3. After it nobody draws again: that would be a selection among draws. The spool is one draw, which
   anybody may publish any number of times.
4. `lost` and `drawn` exclude each other, and nothing is published before `drawn`.
"""

from enum import Enum, auto
from typing import NamedTuple

from dpframe.errors import TemporaryError
from dpframe.ledger.leases import Life
from dpframe.ledger.log import Entry, Log

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
