"""Starts of one run as steps of a scheduler, over the real code of starts, spool and ledgers.

Each start is a thread that stops wherever others could see what it did: before every transaction,
before what it keeps in the spool, publishes or draws, and whenever it sleeps. Who goes on, and what
fails there, is a choice; a run is the list of its choices, so that all can be enumerated. Real are
`Start`, the spool on a disk, `Ledger`, its chain, and `LedgerFile` or `LedgerTable` down to their
statements. Simulated are clocks, processes and what answers the statements: SQLite in memory, or a
table that answers those of `LedgerTable`.
"""

import errno
import os
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from support.charging import entry as entry_of
from support.charging import pure

from dpframe import Ledger
from dpframe.errors import LedgerBusyError, LedgerError
from dpframe.jobs import answers, starts
from dpframe.jobs.starts import Start, WrittenFiles
from dpframe.ledger import file, leases, ledger, platform, postgres
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.file import LedgerFile
from dpframe.ledger.leases import Owner
from dpframe.ledger.postgres import LedgerTable
from dpframe.privacy.amounts import Budget

PLAN, NAME = "a" * 64, "march"
PATIENCE, PAUSE = 100.0, 60.0  # seconds; so a start looks three times
JUMP = 1000.0


class Killed(BaseException):
    """The process is gone: whatever it still tries has no effect."""


@dataclass(frozen=True)
class Bounds:
    """How much may happen in one interleaving, at most, beside the starts themselves."""

    starts: int = 2
    switches: int = 2  # to another start, though the one before could go on
    kills: int = 0
    cuts: int = 0
    full: int = 0  # disks
    jumps: int = 0  # of clocks
    beats: int = 0
    faults: int = 1  # of all these together
    person: bool = False  # somebody says once that the run is lost
    hosts: int = 1  # computers; on one, deaths are proved


@dataclass
class Actor:
    """One start, or a person."""

    number: int
    act: Callable[[], int]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    code: int | None = None
    pays: bool = False  # it was told that what was charged is lost
    killed: bool = False
    ended: bool = False
    beats: leases.Beats | None = None
    beat_at: float = 0.0
    window: bool = False  # noise is noted, and nothing kept yet


class World:
    """One interleaving: what all starts share, and the choices."""

    def __init__(self, kind: str, bounds: Bounds, choose: Callable[[int], int]) -> None:
        self.bounds, self.choose, self.now = bounds, choose, 1e6
        self.left = Counter(
            switch=bounds.switches,
            kill=bounds.kills,
            cut=bounds.cuts,
            full=bounds.full,
            jump=bounds.jumps,
            beat=bounds.beats,
        )
        self.faults = bounds.faults
        self.folder = Path(tempfile.mkdtemp(prefix="dpframe-simulated-", dir=_MEMORY))
        self.kind, self.rows, self.leases = kind, [], {}
        self.connection = _database() if kind == "file" else None
        _, header = Chain.start("x", Budget(1))
        if self.connection is None:
            self.rows.append(header)
        else:
            file._write_form(self.connection, [header])
        self.files: bytes | None = None
        self.draws: list[bytes] = []
        self.excused = ""  # why a run may be lost
        self.unkept = False  # the disk failed as the spool was filled
        self.trace: list[str] = []
        self.broken = ""
        self.actors: list[Actor] = []
        self.quiet = 0  # points within are none
        self.over = threading.Semaphore(0)
        self.local = threading.local()

    # what the scheduler does

    def run(self) -> None:
        self.actors += [Actor(number, self.start) for number in range(self.bounds.starts)]
        if self.bounds.person:
            self.actors.append(Actor(len(self.actors), self.give_up))
        threads = [threading.Thread(target=self._life, args=[one]) for one in self.actors]
        for thread in threads:
            thread.start()
        self._pass_on(self._waiting())
        self.over.acquire()
        for thread in threads:
            thread.join()
        self._finish()

    def _life(self, actor: Actor) -> None:
        actor.turn.acquire()
        self.local.actor = actor
        try:
            actor.code = actor.act()
        except Killed:
            pass
        except BaseException as error:
            self.broken = self.broken or f"{type(error).__name__}: {error}"
        actor.ended = True
        self._pass_on(self._waiting())

    def _waiting(self) -> list[Actor]:
        return [one for one in self.actors if not one.ended]

    def _pass_on(self, others: list[Actor]) -> None:
        if not others:
            self.over.release()
            return
        chosen = others[self.choose(len(others)) if len(others) > 1 else 0]
        self.trace.append(f"{chosen.number} goes on")
        chosen.turn.release()

    @property
    def actor(self) -> Actor:
        return self.local.actor

    def point(self, what: str, *faults: str) -> str:
        """Let others go on here, or something fail; the fault that the caller acts out."""
        actor = self.actor
        if actor.killed:
            raise Killed
        if self.quiet:
            return ""
        options = ["", *self._switches(), *self._faults(faults)]
        chosen = options[self.choose(len(options)) if len(options) > 1 else 0]
        self.trace.append(f"{actor.number} {what}{chosen and f': {chosen}'}")
        match chosen.split():
            case ["switch", number]:
                self.left["switch"] -= 1
                self._give_turn(self.actors[int(number)])
            case [] | None:
                pass
            case [kind, *_]:
                self.left[kind] -= 1
                self.faults -= 1
                return self._fail(chosen)
        return ""

    def _switches(self) -> list[str]:
        others = [one for one in self._waiting() if one is not self.actor]
        return [f"switch {one.number}" for one in others] if self.left["switch"] else []

    def _faults(self, faults: tuple[str, ...]) -> list[str]:
        if not self.faults:
            return []
        usual = ["kill", "jump", *(f"beat {one.number}" for one in self.actors if one.beats)]
        return [one for one in (*usual, *faults) if self.left[one.split()[0]]]

    def _fail(self, fault: str) -> str:
        match fault.split():
            case ["kill"]:
                self.actor.killed = True
                if self.actor.window:
                    self.excused = "killed between noise and spool"
                raise Killed
            case ["jump"]:
                self.now += JUMP
            case ["beat", number]:
                self._beat(self.actors[int(number)])
            case _:
                if self.unkept:
                    self.excused = "the disk failed, and then something else"
                return fault
        return ""

    def _beat(self, beating: Actor) -> None:
        """Renew a lease, in a thread of its own as it is."""

        def beat() -> None:
            self.local.actor = Actor(-1, self.start)
            if beating.beats is not None and beating.beats.beat():
                beating.beat_at = self.now

        with self.silence():
            thread = threading.Thread(target=beat)
            thread.start()
            thread.join()

    def _give_turn(self, other: Actor) -> None:
        me = self.actor
        other.turn.release()
        me.turn.acquire()

    def sleep(self, seconds: float) -> None:
        """Sleep; anybody goes on."""
        if self.actor.killed:
            raise Killed
        self.now += seconds
        others = [self.actor, *(one for one in self._waiting() if one is not self.actor)]
        chosen = others[0 if self.quiet or len(others) == 1 else self.choose(len(others))]
        self.trace.append(f"{self.actor.number} sleeps, {chosen.number} goes on")
        if chosen is not self.actor:
            self._give_turn(chosen)

    # what the starts do

    def opened(self) -> Ledger:
        return ledger.open_patiently("simulated.ledger", PATIENCE)

    def start(self) -> int:
        """Start the run, and say with which exit code it ends, by the codes of commands."""
        made: list[Start] = []

        def ended() -> answers.Answer:
            work = SimulatedWork(self)
            folder = self.folder / "runs"
            made.append(Start(self.opened(), PLAN, NAME, folder, work, PATIENCE))
            published = made[0].run()
            code = answers.SOUND if published.files.all_there else answers.LEFT_OVER
            return answers.Answer("run", code=code)

        answer = answers.answer_of("run", ended)
        self.trace.append(f"{self.actor.number} ends with {answer.code} {answer.problems}")
        self.require(answer.code in (0, 4, 5, 75), f"exit code {answer.code}: {answer.problems}")
        if answer.code in (0, 4):
            self.require(self.files in self.draws, f"{answer.code}, and no files")
        if answer.code == answers.LATER:
            self.require(not self.state().lost or bool(self.excused), "75, and it is lost")
        if answer.code == answers.LEFT_OVER:
            self.require(bool(self.log().entries), "5, and nothing was charged")
            with suppress(LedgerError):
                self.actor.pays = made[0].is_lost(made[0].look())
            if self.actor.pays:
                self.require(bool(self.excused), "a living run is told to pay again")
        return answer.code

    def give_up(self) -> int:
        """Say that the run is lost, as a person may at any time, rightly or not."""
        self.point("is asked whether it is lost")
        with suppress(LedgerError):
            mine = self.opened()
            run = mine.run_of(NAME)
            if run is not None:
                mine.note_lost(run.entry, "anna", "said to be dead")
                self.excused = "a person said so"
        return 0

    # what is true

    def log(self):
        with self.silence():
            return self._chain().log

    def _chain(self) -> Chain:
        if self.connection is None:
            rows = self.rows
        else:
            rows = list(map(Row._make, self.connection.execute("SELECT * FROM chain")))
        return Chain.of_rows(rows, "simulated")

    def state(self):
        log = self.log()
        release_id = log.entries[0].release_id if log.entries else ""
        return ledger.RunState.of(log, release_id)

    def require(self, true: bool, what: str) -> None:
        if not true and not self.broken:
            self.broken = what

    def committed(self, row: Row | None) -> None:
        """Look at every row that is appended."""
        if row is None or row.number == 0:
            return
        log, actor = self.log(), self.actor
        marks = [mark for mark in log.marks if mark.number == row.number]
        if not marks:
            actor.beat_at = self.now
            return
        what = marks[0].what
        if what == "again":
            for other in self.actors:
                lives = other.beats is not None and not (other.killed or other.ended)
                if other is not actor and lives and self.now < other.beat_at + leases.LASTS:
                    self.require(False, "a living run is taken over")
            actor.beat_at = self.now
        if what == "noise":
            actor.window = True
        if what == "lost" and marks[0].who != "anna":
            self.require(bool(self.excused), "a run is given up that nobody killed")

    def drew(self) -> bytes:
        log = self.log()
        self.require(len(log.entries) == 1, "charged twice, or drawn without a charge")
        self.require(self.state().noise, "drawn without a note")
        self.draws.append(b"draw %d" % len(self.draws))
        self.require(len(self.draws) == 1, "two draws for one charge")
        return self.draws[-1]

    def publish(self, content: bytes) -> None:
        state = self.state()
        self.require(not state.lost, "published, and given up")
        self.require(self.files in (None, content), "two results published for one charge")
        self.files = content

    def _finish(self) -> None:
        """Start once more, long after, without faults: it ends well, or is excused."""
        if self.broken:
            return
        self.faults, self.left = 0, Counter()
        self.now += JUMP
        last = Actor(len(self.actors), self.start)
        self.actors.append(last)
        self.local.actor = last
        last.code = self.start()
        ends = (0, 4, 5, 75) if self.excused else (0, 4)
        self.require(last.code in ends, f"a fresh start ends with {last.code}")

    @contextmanager
    def silence(self) -> Iterator[None]:
        self.quiet += 1
        try:
            yield
        finally:
            self.quiet -= 1

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.connection is not None:
            self.connection.close()


class SimulatedWork:
    """Work of which only its order counts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tables: dict[str, dict[str, bytes]] = {}

    def prepare(self) -> int:
        return 1

    def release(self, charged: Ledger) -> None:
        entry = charged.as_charged(replace(entry_of(pure(0.25), NAME), plan=PLAN))
        charged.charge(entry)
        self.world.point("totals")
        charged.note_noise(entry)
        self.world.point("draws")
        self.tables = {"table": {".csv": self.world.drew()}}

    def render(self, inside: Path | None) -> starts.DrawnFiles:
        return self.tables

    def write(self, tables: starts.DrawnFiles) -> WrittenFiles:
        self.world.point("publishes")
        self.world.publish(tables["table"][".csv"])
        self.world.actor.window = False
        self.world.point("published")
        return WrittenFiles([Path("published")])

    def missing(self, _: object) -> str:
        return "" if self.world.files in self.world.draws else "the file is not there"


class SimulatedFile(LedgerFile):
    """The statements of a ledger's file, on SQLite in memory, which has no locks or journals."""

    def __init__(self, world: World) -> None:
        super().__init__(Path("/simulated.ledger"))
        self.world = world

    def _transact(self, kind, act):
        connection, writes = self.world.connection, kind == "EXCLUSIVE"
        fault = self.world.point("writes", "full") if writes else self.world.point("reads")
        if fault == "full":
            raise file.of_system(self.path, OSError(errno.ENOSPC, "No space left on device"))
        before = connection.execute("SELECT max(number) FROM chain").fetchone()[0]
        connection.execute(f"BEGIN {kind}")
        try:
            done = act(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        query = "SELECT number, body, hash FROM chain WHERE number > ?"
        for row in connection.execute(query, (before,)).fetchall():
            self.world.committed(Row(*row))
        return done


class SimulatedTable(LedgerTable):
    """All of a ledger's table but the server, whose answers may be lost."""

    def __init__(self, world: World) -> None:
        self.world, self.path, self.left = world, None, None
        self.address = self.place = "simulated.ledger"
        self._table, self._name, self._leases = '"dpframe"."x"', "x", '"dpframe"."x_leases"'

    def _attempt(self, kind, act, _):
        world = self.world
        faults = ("cut before", "cut after") if kind.writes else ("cut read",)
        fault = world.point("writes" if kind.writes else "reads", *faults)
        if fault == "cut read":
            raise LedgerBusyError("the server does not answer")
        answering = Answering(world)
        done = act(answering)
        if not kind.writes:
            return done
        if fault == "cut before":
            raise postgres._Cut("cut")
        world.rows += answering.rows
        world.leases |= answering.leases
        for row in answering.rows:
            world.committed(row)
        if fault == "cut after":
            raise postgres._Cut("cut")
        return done


class Answering:
    """A connection that answers the statements of `LedgerTable`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rows: list[Row] = []
        self.leases: dict[str, leases.Lease] = {}

    def execute(self, statement, given):  # noqa: PLR0911  # a table
        words = statement.text
        match words.split()[:2]:
            case ["INSERT", "INTO"] if "_leases" in words:
                lasts = self.world.now + given["seconds"]
                lease = leases.Lease(*(given[name] for name in leases.Lease._fields[:3]))
                lease = lease._replace(beat=self.world.now, expires=lasts)
                self.leases[lease.release_id] = lease
                return None
            case ["INSERT", "INTO"]:
                self.rows += [Row(**row) for row in given]
                return None
            case ["UPDATE", _]:
                return SimpleNamespace(rowcount=self._renew(**given))
            case ["SELECT", "release_id,"]:
                lease = self.world.leases.get(given["release_id"])
                row = lease and lease._replace(now=self.world.now)
                return SimpleNamespace(one_or_none=lambda: row)
            case ["SELECT", "number,"]:
                return [row for row in self.world.rows if row.number >= given["first"]]
            case ["SELECT", "hash"]:
                rows = [(row.hash,) for row in self.world.rows if row.number == given["number"]]
                return SimpleNamespace(all=lambda: rows)
            case _ if "pg_try_advisory_xact_lock" in words:
                return SimpleNamespace(scalar_one=lambda: True)
            case _ if "obj_description" in words:
                return SimpleNamespace(one=lambda: (True, True))
        raise AssertionError(words)

    def _renew(self, release_id, epoch, seconds, **_):
        lease = self.world.leases.get(release_id)
        if lease is None or lease.epoch != epoch:
            return 0
        expires = self.world.now + seconds if seconds else 0.0
        self.leases[release_id] = lease._replace(beat=self.world.now, expires=expires)
        return 1


class SimulatedBeats(leases.Beats):
    """Beats that come when the scheduler says so."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self._actor = _CURRENT[0].actor
        self._actor.beats = self

    def stop(self) -> None:
        self._actor.beats = None
        super().stop()


class _NoThread:
    def __init__(self, **_) -> None: ...

    def start(self) -> None: ...


class SimulatedSystem:
    """`os`, as the spool uses it: files are real, and disks may be full."""

    def __getattr__(self, name):
        return getattr(os, name)

    def write(self, handle, content):
        if _CURRENT[0].point("fills the spool", "full") == "full":
            _CURRENT[0].unkept = True
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(handle, content)

    def replace(self, source, place):
        world = _CURRENT[0]
        world.point("names the spool")
        os.replace(source, place)
        world.actor.window = False

    def unlink(self, path):
        if str(path).endswith(".zip"):
            _CURRENT[0].point("removes the spool")
        os.unlink(path)


_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108  # no disk
_CURRENT: list[World] = []


def _database() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _store(_: object, patience: float | None = None) -> SimulatedFile | SimulatedTable:
    world = _CURRENT[0]
    store = (SimulatedFile if world.kind == "file" else SimulatedTable)(world)
    store.patience = patience
    return store


def _here(spool: str = "") -> Owner:
    world = _CURRENT[0]
    number = world.actor.number
    node = f"host {number % world.bounds.hosts}"
    return Owner(node, "machine", "boot", "space", 1000 + number, "1", spool)


def _exists(pid: int) -> bool:
    actor = _CURRENT[0].actors[pid - 1000]
    return not (actor.killed or actor.ended)


def _sleep(seconds: float) -> None:
    _CURRENT[0].sleep(seconds)


@contextmanager
def simulation() -> Iterator[None]:
    """Put what is simulated in the place of what is real."""
    clock = SimpleNamespace(
        time=lambda: _CURRENT[0].now, monotonic=lambda: _CURRENT[0].now, sleep=_sleep
    )
    threads = SimpleNamespace(Event=threading.Event, Thread=_NoThread)
    with ExitStack() as stack:
        for place, name, made in (
            (ledger, "store_at", _store),
            (platform, "time", clock),
            (file, "time", clock),
            (leases, "threading", threads),
            (leases, "Beats", SimulatedBeats),
            (leases, "_exists", _exists),
            (leases, "_started", lambda _: "1"),
            (Owner, "here", staticmethod(_here)),
            (starts, "os", SimulatedSystem()),
            (starts, "_PAUSE", PAUSE),
        ):
            stack.enter_context(mock.patch.object(place, name, made))
        yield


@dataclass
class Outcome:
    """How one interleaving ended."""

    broken: str
    trace: list[str]
    codes: tuple[int | None, ...]
    choices: list[tuple[int, int]]  # what was chosen, of how many


def play(kind: str, bounds: Bounds, choose: Callable[[int], int]) -> Outcome:
    """Run one interleaving."""
    choices: list[tuple[int, int]] = []

    def chosen(options: int) -> int:
        choices.append((choose(options), options))
        return choices[-1][0]

    world = World(kind, bounds, chosen)
    _CURRENT[:] = [world]
    try:
        world.run()
    finally:
        world.close()
    codes = tuple(actor.code for actor in world.actors)
    return Outcome(world.broken, world.trace, codes, choices)


def explore(kind: str, bounds: Bounds) -> Iterator[Outcome]:
    """Run every interleaving within bounds, each once."""
    script: list[int] = []
    while True:
        steps = iter(script)
        outcome = play(kind, bounds, lambda _, steps=steps: next(steps, 0))
        yield outcome
        choices = outcome.choices
        while choices and choices[-1][0] + 1 == choices[-1][1]:
            choices.pop()
        if not choices:
            return
        script = [choice for choice, _ in choices]
        script[-1] += 1
