"""The rules of runs as a model, of which every state is seen: clocks, crashes, cuts, a person.

`allowed` and `next_step` are those of the code. The model knows no more of a start than that it may
stop anywhere for any time, that its clock is off, and that an answer of the ledger may be lost.
"""

from collections import deque
from typing import NamedTuple

import pytest

from dpframe.ledger import leases
from dpframe.ledger.leases import Life, RowRefusal, RunState, Spool, StartStep, next_step

LASTS, SKEWS = 2, (0, 3, -3)  # ticks of a lease; how much the clocks of starts are off
ENDS = ("done", "busy", "gone", "lost", "given up", "dead")
STEPS = {
    StartStep.WAIT: "busy",
    StartStep.DONE: "gone",
    StartStep.LOST: "lost",
    StartStep.TOO_OFTEN: "lost",
    StartStep.PUBLISH: "notes drawn",
}


class Run(NamedTuple):
    """One start: where it is, the epoch that it has, and what it would publish."""

    at: str = "new"
    epoch: int = 0
    draw: int = 0


class State(NamedTuple):
    """All that starts share."""

    starts: tuple[Run, ...]
    now: int = 0
    charged: bool = False
    rows: RunState = RunState()
    holder: int = 0  # of the lease
    expires: int = 0
    spool: int = 0  # number of the draw that is kept; 0: none
    draws: int = 0
    published: frozenset[int] = frozenset()
    crashes: int = 0
    cuts: int = 0
    person: bool = False


class Rules(NamedTuple):
    """What may append a row, and what a start does after a lost answer; faults are planted here."""

    allowed: object = leases.allowed
    looks_again: bool = True
    notes_drawn: bool = True
    last: int = 4  # tick
    crashes: int = 1
    cuts: int = 1


def moves(state, rules):
    """Give all that may happen next."""
    rows = state.rows
    if state.now < rules.last:
        yield state._replace(now=state.now + 1)
    if rules.allowed("lost", rows, 0) is None:
        yield state._replace(rows=rows._replace(lost="anna: dead"), person=True)
    for number, run in enumerate(state.starts):
        if run.at in ENDS:
            continue
        if state.crashes < rules.crashes and run.at != "new":
            yield moved(state._replace(crashes=state.crashes + 1), number, at="dead")
        yield from steps(state, rules, number, run)


def moved(state, number, **changed):
    starts = list(state.starts)
    starts[number] = starts[number]._replace(**changed)
    return state._replace(starts=tuple(starts))


def steps(state, rules, number, run):
    rows = state.rows
    match run.at:
        case "new":
            yield begun(state, rules, number)
        case "totals":
            yield from noted(state, rules, number, run)
        case "draws":
            draw = state.draws + 1
            yield moved(state._replace(draws=draw), number, at="keeps", draw=draw)
        case "keeps":
            yield moved(state._replace(spool=run.draw), number, at="notes drawn")
        case "notes drawn":
            why_not = rules.allowed("drawn", rows, run.epoch) if rules.notes_drawn else None
            if why_not is RowRefusal.LOST:
                yield moved(state._replace(spool=0), number, at="given up")
            else:
                drawn = rows._replace(drawn="digest") if rules.notes_drawn else rows
                yield moved(state._replace(rows=drawn), number, at="publishes")
        case "publishes":
            published = state.published | {run.draw}
            yield moved(state._replace(published=published), number, at="notes written")
        case "notes written":
            written = state._replace(rows=rows._replace(written=True), spool=0)
            yield moved(written, number, at="done")


def begun(state, rules, number):
    """Look at a run, and append what the first row of a start is, in one transaction."""
    rows, clock = state.rows, state.now + SKEWS[number % len(SKEWS)]
    lease = {"holder": number, "expires": clock + LASTS}
    life = Life.ALIVE if state.expires > clock else Life.EXPIRED
    if state.starts[state.holder].at == "dead":
        life = Life.DEAD
    spool = Spool.THERE if state.spool else Spool.ABSENT
    step = next_step(rows if state.charged else None, life, spool)
    if step is StartStep.BEGIN:
        return moved(state._replace(charged=True, **lease), number, at="totals")
    if step is StartStep.TAKE_OVER:
        again = rows._replace(epoch=rows.epoch + 1)
        return moved(state._replace(rows=again, **lease), number, at="totals", epoch=again.epoch)
    if step is StartStep.GIVE_UP:
        if rules.allowed("lost", rows, 0) is not None:
            return state
        return state._replace(rows=rows._replace(lost="a later start"))
    return moved(state, number, at=STEPS[step], draw=state.spool)


def noted(state, rules, number, run):
    """Note the noise, unless it is refused; the answer may be lost, before or after."""
    if rules.allowed("noise", state.rows, run.epoch) is not None:
        yield moved(state, number, at="busy")
        return
    noise = state._replace(rows=state.rows._replace(noise=True), holder=number)
    yield moved(noise, number, at="draws")
    if state.cuts < rules.cuts:
        found = "draws" if rules.looks_again else "lost"
        yield moved(noise._replace(cuts=state.cuts + 1), number, at=found)
        yield state._replace(cuts=state.cuts + 1)  # it tries again


def broken(state):
    """Say which promise a state breaks."""
    if state.draws > 1:
        return "two draws"
    if len(state.published) > 1:
        return "two results"
    if state.rows.lost and state.published:
        return "lost, and published"
    innocent = not (state.crashes or state.person)
    if innocent and any(run.at in ("lost", "given up") for run in state.starts):
        return "a living run is told to pay again"
    return ""


def seen(rules, starts=2):
    """Look at every state that can be reached; return how many, and what breaks first."""
    first = State((Run(),) * starts)
    known, waiting = {first}, deque([first])
    while waiting:
        state = waiting.popleft()
        if why := broken(state):
            return len(known), why
        for after in moves(state, rules):
            if after not in known:
                known.add(after)
                waiting.append(after)
    return len(known), ""


@pytest.mark.parametrize(
    ("starts", "crashes"), [(2, 1), pytest.param(3, 2, marks=pytest.mark.audit)]
)
def test_no_state_breaks_a_promise(starts, crashes):
    states, why = seen(Rules(crashes=crashes), starts)
    assert why == "" and states > 1000


def no_fence(row, run, epoch):
    return None if row == "noise" else leases.allowed(row, run, epoch)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (Rules(allowed=no_fence), "two draws"),
        (Rules(looks_again=False), "a living run is told to pay again"),
        (Rules(notes_drawn=False), "lost, and published"),
    ],
)
def test_a_rule_that_is_left_out_is_missed(rules, why):
    assert seen(rules)[1] == why
