"""One start of a run: it begins, takes over, waits for another one, or publishes what is kept.

What it does is decided by `dpframe.ledger.leases.next_step` in view of rows, lease and spool; what
it appends, by `dpframe.ledger.leases.allowed`. Nothing else decides.
"""

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, TypeAlias, assert_never

from dpframe.engines.batches import remove_leftovers, temporary_folder
from dpframe.errors import (
    AlreadyReleasedError,
    DPFrameError,
    LedgerError,
    ReleaseError,
    TemporaryError,
    quote,
)
from dpframe.frozen import frozen
from dpframe.ledger import platform
from dpframe.ledger.file import NO_ROOM
from dpframe.ledger.leases import (
    ChargedRun,
    Lease,
    Owner,
    RunClaim,
    RunPausedError,
    Spool,
    StartStep,
    life_of,
    next_step,
)
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.ledger.platform import Deadline

DrawnFiles: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""Files by name of the table and by what their names end in: a CSV table has a certificate, too."""

_MARGIN = 1 << 12  # bytes for names and lengths in the file
_GROWS = 2  # values take at most so many times the room of those of a trial without rows
_DRAFT = "spool"
_ROOM = "room"


def place_of_spool(folder: Path, release_id: str) -> Path:
    """Say where what a release drew is kept."""
    return folder / f"{release_id}.zip"


def look_for_spool(folders: list[Path], release_id: str) -> tuple[Spool, Path | None]:
    """Say whether what a release drew is in one of some folders, and where."""
    unseen = False
    for folder in folders:
        place = place_of_spool(folder, release_id)
        try:
            os.stat(place)
        except FileNotFoundError:
            continue
        except OSError:  # others may not look into it
            unseen = True
        else:
            return Spool.THERE, place
    return (Spool.UNSEEN if unseen else Spool.ABSENT), None


class Draft:
    """A file that is open, with room on the disk, before anything is charged."""

    def __init__(self, folder: Path, inside: Path, size: int) -> None:
        self.folder, self.inside = folder, inside
        self._room = _GROWS * size + _MARGIN
        _reserve(inside / _DRAFT, self._room)
        _reserve(inside / _ROOM, self._room)

    def make_room(self) -> None:
        """Give back what was reserved for files that are made on the way into the spool."""
        os.unlink(self.inside / _ROOM)

    def keep(self, tables: DrawnFiles, release_id: str) -> str:
        """Keep what was drawn, and return the SHA-256 of the file, in hexadecimal.

        Raises
        ------
        OSError
            If it cannot be kept, though there was room.
        """
        packed = pack(tables)
        draft, place = self.inside / _DRAFT, place_of_spool(self.folder, release_id)
        handle = os.open(draft, os.O_WRONLY)
        try:
            _write(handle, packed)
            os.ftruncate(handle, len(packed))
            platform.HERE.flush(handle)
        finally:
            os.close(handle)
        os.replace(draft, place)
        platform.HERE.flush_folder(self.folder)
        return digest_of(packed)


@contextmanager
def opened_draft(folder: Path, size: int) -> Iterator[Draft]:
    """Open a draft of a spool in a folder, which is made if need be, for tables of some bytes.

    Raises
    ------
    TemporaryError
        If there is no room on the disk.
    OSError
        If the folder cannot be used.
    """
    folder.mkdir(exist_ok=True)
    remove_leftovers(folder)
    try:
        with temporary_folder(".dpframe-trial-", folder) as inside:
            try:
                draft = Draft(folder, inside, size)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                reason = f"{folder} has no room for what is drawn ({error.strerror}):"
                remedy = "nothing was charged. Make room on the disk, and try again."
                raise TemporaryError(f"{reason} {remedy}") from None
            yield draft
    finally:
        remove_empty(folder)


def remove_empty(folder: Path) -> None:
    """Remove a folder of spools that has none."""
    with suppress(OSError):
        os.rmdir(folder)


def remove_spool(place: Path) -> None:
    """Remove what is published by now."""
    with suppress(OSError):
        os.unlink(place)
    remove_empty(place.parent)


def pack(tables: DrawnFiles) -> bytes:
    """Put tables into one archive, which is the same for the same tables."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, (table, files) in enumerate(tables.items(), start=1):
            for ending, content in files.items():
                member = zipfile.ZipInfo(f"{number}/table{ending}")
                member.comment = table.encode()
                archive.writestr(member, content)
    return packed.getvalue()


def unpack(packed: bytes) -> DrawnFiles:
    """Take tables out of an archive."""
    tables: dict[str, dict[str, bytes]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            for member in archive.infolist():
                ending = member.filename.partition("table")[2]
                tables.setdefault(member.comment.decode(), {})[ending] = archive.read(member)
    except (zipfile.BadZipFile, UnicodeDecodeError, EOFError) as error:
        raise ValueError("it is damaged") from error
    return tables


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return sha256(content).hexdigest()


def _write(handle: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(handle, content[written:])


def _reserve(path: Path, size: int) -> None:
    """Make a file that takes so much room on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:
            _write(handle, bytes(size))
    finally:
        os.close(handle)


_PAUSE = 0.2  # seconds between two looks at a run that another start has


class WrittenFiles(NamedTuple):
    """What became of the files of a run."""

    written: Sequence[Path] = ()  # those that are what was drawn
    problems: Sequence[str] = ()  # which are not, and why

    @property
    def all_there(self) -> bool:
        """Whether all files are what was drawn."""
        return bool(self.written) and not self.problems


class Work(Protocol):
    """What a run is to do; a plan says it, or a test."""

    def prepare(self) -> int:
        """Do all that can fail before the charge, and give the bytes of tables without rows."""

    def release(self, charged: Ledger) -> None:
        """Charge a ledger, total, note the noise, and draw."""

    def render(self, inside: Path | None) -> DrawnFiles:
        """Make files of what was drawn, in a folder that has room; `None`: where they will be."""

    def write(self, tables: DrawnFiles) -> WrittenFiles:
        """Write the files of a run to where they are published."""

    def missing(self, entry: Entry) -> str:
        """Say which file of a run is not what was released; empty: all are."""


class Seen(NamedTuple):
    """What a start sees of a run."""

    run: ChargedRun | None
    lease: Lease | None
    place: Path | None  # of the spool
    step: StartStep


@frozen(slots=True)
class Published:
    """A run whose tables were drawn, and are known; perhaps not all files are written."""

    tables: DrawnFiles
    files: WrittenFiles
    spool: Path | None = None  # what keeps the tables; `None`: nothing need, or could


@frozen(slots=True)
class Start:
    """One start of a run.

    Parameters
    ----------
    ledger
        The ledger that it is charged to.
    plan, name
        SHA-256 of its plan, and its name.
    folder
        Where what it draws is kept.
    work
        What it does.
    patience
        Seconds that it waits for another start.
    at_stake
        Called with `True` before its noise is noted, or its spool published; with `False` where
        another start has written all files.
    """

    ledger: Ledger
    plan: str
    name: str
    folder: Path
    work: Work
    patience: float
    at_stake: Callable[[bool], object] = lambda _: None

    def run(self) -> Published:
        """Release or publish, or wait for another start that does so, for a while.

        Raises
        ------
        AlreadyReleasedError
            If the files are written.
        ReleaseError
            If what was charged is lost, or is not where it should be.
        RunPausedError
            If another start is still at work.
        """
        try:
            return self._run()
        except ReleaseError:
            self._refuse_done()
            raise

    def _run(self) -> Published:
        deadline = Deadline(self.patience)
        while True:
            seen, published = self.look(), None
            match seen.step:
                case StartStep.BEGIN | StartStep.TAKE_OVER:
                    published = self._begin(seen, deadline)
                case StartStep.PUBLISH:
                    published = self._publish(seen)
                case StartStep.GIVE_UP:
                    self._give_up(seen)
                case StartStep.LOST | StartStep.TOO_OFTEN | StartStep.DONE:
                    self._refuse(seen)
                case StartStep.WAIT:
                    if deadline.is_over:
                        raise RunPausedError(self._still(seen))
                case _:
                    assert_never(seen.step)
            if published is not None:
                return published
            deadline.pause(_PAUSE)

    def _refuse_done(self) -> None:
        """Say that a run is done which another start ended, whatever this one failed at."""
        try:
            seen = self.look()
        except DPFrameError:  # whoever tells what failed tells this, too
            return
        if seen.step is StartStep.DONE and not self.is_lost(seen):
            self.at_stake(False)
            self._refuse(seen)

    def is_lost(self, seen: Seen) -> bool:
        """Whether no start will ever write what was charged, or write it once more."""
        match seen.step:
            case StartStep.BEGIN | StartStep.TAKE_OVER | StartStep.WAIT | StartStep.PUBLISH:
                return False
            case StartStep.GIVE_UP | StartStep.LOST | StartStep.TOO_OFTEN:
                return True
            case StartStep.DONE:
                assert seen.run is not None  # noqa: S101  # of the step
                return bool(self.work.missing(seen.run.entry))
            case _:
                assert_never(seen.step)

    def look(self) -> Seen:
        """Look at rows, then at the lease, then at the spool: a dead run makes none after that."""
        run = self.ledger.run_of(self.name)
        if run is None or run.entry.plan != self.plan:
            return Seen(run, None, None, StartStep.BEGIN)  # which is refused if the name is taken
        lease = None if run.state.written else self.ledger.lease_of(run.entry.release_id)
        life = life_of(lease)
        spool, place = look_for_spool(self._folders(lease), run.entry.release_id)
        step = next_step(run.state, life, spool)
        if run.state.drawn and step in (StartStep.WAIT, StartStep.LOST):
            # it may have ended after it wrote the files, and before it noted that
            step = step if self.work.missing(run.entry) else StartStep.DONE
        return Seen(run, lease, place, step)

    def _folders(self, lease: Lease | None) -> list[Path]:
        """List where a spool may be: here, or where the one who drew would keep it."""
        owner = lease and Owner.of_text(lease.owner)
        if owner is None or not owner.spool:
            return [self.folder]
        return [self.folder, Path(owner.spool)]

    def _begin(self, seen: Seen, deadline: Deadline) -> Published | None:
        """Charge and release; `None`: another start is at work, which is waited for."""
        try:
            return self._release()
        except RunPausedError:
            if deadline.is_over:
                raise
        except AlreadyReleasedError as error:
            if self.look().step is not seen.step:
                return None
            if seen.step is StartStep.BEGIN:
                raise
            raise ReleaseError(str(error)) from None  # charged, and planned otherwise now
        return None

    def _release(self) -> Published:
        size = self.work.prepare()
        with opened_draft(self.folder, size) as draft:
            claim = RunClaim(str(self.folder), lambda: self.at_stake(True))
            try:
                self.work.release(self.ledger.of_plan(self.plan, self.name, claim))
                assert claim.entry is not None  # noqa: S101  # it was charged
                return self._keep(claim, claim.entry, draft)
            finally:
                claim.end()

    def _keep(self, claim: RunClaim, entry: Entry, draft: Draft) -> Published:
        """Keep what was drawn, and publish it."""
        place: Path | None = place_of_spool(self.folder, entry.release_id)
        try:
            draft.make_room()
            tables = self.work.render(draft.inside)
            digest = draft.keep(tables, entry.release_id)
        except (Exception, KeyboardInterrupt):  # a disk fails though it had room: go on without
            place = None
            tables = self.work.render(None)
            digest = digest_of(pack(tables))
        try:
            return self._finish(entry, tables, digest, place)
        except LedgerError as error:
            claim.abandon()  # as somebody may find the spool, it is not said that the run ended
            if place is None:
                return Published(tables, WrittenFiles())
            raise ReleaseError(_kept(entry, place, error)) from None

    def _publish(self, seen: Seen) -> Published | None:
        """Write the files from a spool that is there; `None`: another start did so meanwhile."""
        assert seen.run is not None and seen.place is not None  # noqa: S101  # of the step
        entry, drawn = seen.run.entry, seen.run.state.drawn
        try:
            packed = seen.place.read_bytes()
            tables = unpack(packed)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            cause = getattr(error, "strerror", None) or error
            reason = f"what name={quote(entry.name)} drew is in {seen.place}, which cannot be read"
            raise ReleaseError(f"{reason} ({cause}): start it as the user whose it is.") from None
        digest = digest_of(packed)
        if drawn and drawn != digest:
            reason = f"{seen.place} is not what name={quote(entry.name)} drew: it was changed."
            raise ReleaseError(f"{reason} Put it back from a copy, and run it again.")
        self.at_stake(True)
        try:
            return self._finish(entry, tables, digest, seen.place)
        except LedgerError as error:
            raise ReleaseError(_kept(entry, seen.place, error)) from None

    def _finish(
        self, entry: Entry, tables: DrawnFiles, digest: str, place: Path | None
    ) -> Published:
        """Note what is kept, publish it, and note that."""
        try:
            self.ledger.note_drawn(entry, digest)
        except ReleaseError:  # somebody gave it up before
            if place is not None:
                remove_spool(place)
            raise
        files = self.work.write(tables)
        if not files.all_there:
            return Published(tables, files, place)
        contents = [content for table in tables.values() for content in table.values()]
        with suppress(LedgerError):  # the next start does it
            self.ledger.note_written(entry, list(map(digest_of, contents)))
            if place is not None:
                remove_spool(place)
        return Published(tables, files)

    def _give_up(self, seen: Seen) -> None:
        """Note that what was drawn is lost, unless it was kept meanwhile."""
        assert seen.run is not None  # noqa: S101  # of the step
        reason = f"it drew noise and ended before that was kept, {seen.lease}"
        with suppress(LedgerError):
            self.ledger.note_lost(seen.run.entry, "a later start", reason)

    def _refuse(self, seen: Seen) -> NoReturn:
        assert seen.run is not None  # noqa: S101  # of the step
        entry, state = seen.run
        name = quote(entry.name)
        if seen.step is StartStep.TOO_OFTEN:
            ended = f"name={name} ended before its noise {state.epoch + 1} times"
            raise ReleaseError(f"{ended}, and begins no more: crashes may tell of the data.")
        if seen.step is StartStep.LOST and state.lost:
            raise ReleaseError(f"name={name} is closed, given up by {state.lost}.")
        release = f"name={name} was released already, at {entry.released_at}, as {entry.release_id}"
        refusal = f"{release}: nothing was charged."
        if missing := self.work.missing(entry):
            raise ReleaseError(f"{refusal} But {missing}: put back what was moved.")
        if seen.place is not None:  # a start was killed as it was about to do so
            remove_spool(seen.place)
        remedy = "If this is another release, give it another name."
        raise AlreadyReleasedError(f"{refusal} {remedy}", parameter="name")

    def _still(self, seen: Seen) -> str:
        """Say who is at work, and what can be done where nobody knows."""
        assert seen.run is not None  # noqa: S101  # of the step
        entry, state = seen.run
        who = f"a run of name={quote(entry.name)} began at {entry.released_at}"
        lease = str(seen.lease or "who has it is not known")
        if not state.noise:
            return f"{who} {lease}: nothing is lost. Try again."
        place = f"and keeps what it drew in {self.folder}, or another folder"
        still = f"{who} {lease}, {place}: try again, for its files."
        if state.drawn:
            return still
        remedy = f"If it is dead for sure, dpframe ledger LEDGER --lost {quote(entry.name)}"
        return f"{still} {remedy} closes the name."


def _kept(entry: Entry, place: Path, error: DPFrameError) -> str:
    kept = f"what name={quote(entry.name)} drew is kept in {place}, and was not published"
    return f"{kept}: {error} Run it again as it is, for which nothing is charged."
