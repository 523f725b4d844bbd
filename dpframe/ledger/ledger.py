"""Budget spent and left, in memory or in a file.

A release that does not fit is refused before anything is drawn: it is charged first, in one
transaction, and what is charged counts as spent whatever happens after. What fits, however amounts
were chosen, is said in `dpframe.privacy.pots`.
"""

import gc
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd

from dpframe import errors
from dpframe.arguments import check_release_name, is_unicode
from dpframe.context import Context, at_the_door
from dpframe.errors import DeclarationError, LedgerBusyError, LedgerError, a_type, quote
from dpframe.ledger import transactions
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.file import charged_perhaps, noise_not_noted
from dpframe.ledger.leases import EVERY, ChargedRun, Lease, RunClaim, RunPausedError, RunState
from dpframe.ledger.locks import OneAtATime, in_use_here
from dpframe.ledger.log import Entry, Protected, RunMark, SourceFacts, dp_event
from dpframe.ledger.parts import Part, check_part
from dpframe.ledger.platform import Deadline
from dpframe.ledger.status import BudgetStatus
from dpframe.ledger.store import Store, store_at
from dpframe.privacy.amounts import Budget, PrivacyLoss, check_loss
from dpframe.public import public_call

_LOGGER = logging.getLogger("dpframe")
_PAUSE = 0.3  # seconds between two attempts to note what became of a run
_OF_FIRST_RUN = ("release_id", "released_at", "user", "note", "source")
"""What the entry of a run has from its first beginning."""


class Ledger:
    """A budget and what has been spent of it, in memory or in a file that processes share.

    `Ledger.create(path, budget=...)` makes a file, `Ledger(path)` opens it. `Ledger(budget=...)` is
    in memory, for the threads of one process. The file is an SQLite database: all threads,
    processes and notebooks that open it spend one budget. Each spend is one transaction, on disk
    before noise is drawn, so a process killed at any instant leaves it recorded or not at all.

    A ledger protects one privacy unit under one neighboring relation: those of the first frame
    declared with it.

    Entries are chained: the hash of each covers the one before, and the first covers the budget.
    The file is checked when it is opened, new entries whenever it is read. That shows accidents and
    edits. It does not show a chain that was rewritten as a whole, or an older copy that was put
    back: write `head` down elsewhere, and look it up in `to_frame()`. The file must be on a disk of
    this computer, not on a network share.

    For several machines, `postgresql://host/database?ledger=visits` in place of a path names a
    table in PostgreSQL, with the same promises; it needs the extra `postgres`.

    Parameters
    ----------
    path
        The file, or the URL of a database; it must exist. `None`: in memory.
    budget
        The total budget of everything charged to this ledger. With a path it may be left out, and
        must be that of the file.
    part
        A column whose every value has this budget of its own, such as "week"; see `create`. With a
        path, as `budget`.

    Raises
    ------
    DeclarationError
        If budget or part are not usable, or not those of the file.
    LedgerError
        If the file is missing, cannot be used, is not a ledger, or was changed.

    Examples
    --------
    >>> Ledger(budget=Budget(epsilon=1, delta=1e-6)).status().remaining_share
    1.0
    """

    @public_call
    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        budget: Budget | None = None,
        part: str | None = None,
    ) -> None:
        if path is None or budget is not None:
            check_budget(budget)
        _check_column(part)
        self._open(None if path is None else store_at(path), budget, part)

    def _open(self, store: Store | None, budget: Budget | None, part: str | None) -> None:
        self._whole: Ledger | None = None
        self._of_part: Part | None = None
        self.plan: str | None = None
        self._earlier: Entry | None = None
        self._as_planned: Chain | None = None
        self._epoch = 0
        self._claim: RunClaim | None = None
        self._lock = OneAtATime()
        self._left: object = None
        self._made_in = context = at_the_door(looking=True)
        self._context: Context | None = None
        self._store = store
        stand_in: Ledger | None = None
        if store is not None and context.block is not None:
            stand_in = context.block.ledger_at(store.place)
        if stand_in is not None:
            self._seen: Chain = stand_in._seen
        elif store is not None:
            with _no_garbage():
                rows = self._lock.hold(lambda _: store.all_rows())
                self._seen = Chain.of_rows(rows, store.place)
            self._left = store.left
        elif budget is not None:
            self._seen, _ = Chain.start(context.new_id(), budget, part)
        if part is not None and part != self.part:
            rule = f"must be that of {self._where()}, {quote(self.part)}"
            raise DeclarationError.about("part", rule, part, "Leave part= out.")
        if budget is not None and budget != self.budget:
            rule = f"must be that of {self._where()}, {self.budget}"
            shown = f"budget {rule}, got {budget}. Leave budget= out, or choose another path."
            raise DeclarationError(shown, parameter="budget", value=budget)

    @classmethod
    @public_call
    def create(
        cls, path: str | os.PathLike[str], *, budget: Budget, part: str | None = None
    ) -> "Ledger":
        """Make a ledger in a new file: all at once, or not at all.

        Parameters
        ----------
        path
            The file, in a folder that is there; or the URL of a database.
        budget
            The total budget of everything charged to it.
        part
            A column whose every value has this budget of its own: a release with `part=47` reads
            the rows of week 47 alone, and spends of their budget alone; a release without `part=`
            spends of every part. The column must be one of the `privacy_unit`, so that no unit is
            in two parts, or every row a unit.

        Raises
        ------
        DeclarationError
            If the budget is not a `Budget`, or the part no label that is a text.
        LedgerError
            If there is a file already, or it cannot be made.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = Ledger.create(f"{folder}/trips.ledger", budget=Budget(epsilon=1))
        ...     Ledger(f"{folder}/trips.ledger").budget == made.budget
        True
        """
        check_budget(budget)
        _check_column(part)
        context = at_the_door()
        _, header = Chain.start(context.new_id(), budget, part)
        store, block = store_at(path), context.block
        if block is not None:
            store.check_new(taken=block.ledger_at(store.place) is not None)
            block.make_ledger(store.place, cls(budget=budget, part=part))
        else:
            OneAtATime().hold(lambda _: store.create([header]))
        return cls(path, budget=budget, part=part)

    @property
    def path(self) -> Path | None:
        """Where the file is; `None` for a ledger in memory, or in a database."""
        return None if self._store is None else self._store.path

    @property
    def budget(self) -> Budget:
        """The total."""
        return self._seen.budget

    @property
    def part(self) -> str | None:
        """The column whose every value has a budget of its own; `None`: there is one for all."""
        return self._seen.part

    @property
    def ledger_id(self) -> str:
        """Identifier of the ledger, the same in all processes and copies."""
        return self._seen.ledger_id

    @property
    def protected(self) -> Protected | None:
        """Whom the ledger protects, or `None` if no frame was declared with it yet."""
        return self._in_use()._seen.protected

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything charged so far, in order."""
        return self._look().log.entries

    @property
    def head(self) -> str:
        """SHA-256 of the last entry, in hexadecimal, which covers all before."""
        return self._look().log.head

    def allows(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits beside what is spent.

        Raises
        ------
        CalibrationError
            If it is not a `PrivacyLoss` of exact parts >= 0.
        """
        check_loss(loss)
        return self._status(self._look()).pots.fits(loss)

    def check_name(self, name: str | None) -> None:
        """Refuse a name that a release in the ledger has; `charge` does so once more.

        Raises
        ------
        AlreadyReleasedError
            If there is one.
        DeclarationError
            If it is no name.
        """
        if self._earlier is None or self._earlier.name != check_release_name(name):
            transactions.refuse_repeated(check_release_name(name), self._look())

    def check_source(self, source: SourceFacts) -> None:
        """Refuse a source whose units or parts have other names; `charge` does so once more.

        Raises
        ------
        DeclarationError
            If they are of another kind than those before it, or another reader tells parts apart.
        """
        transactions.refuse_source(source, self._in_use()._seen)

    def charge(self, entry: Entry) -> None:
        """Record a release; what is recorded counts as spent whatever happens after.

        A release that is refused leaves the ledger as it was.

        Raises
        ------
        AlreadyReleasedError
            If a release of this name, or of this identifier, is recorded already.
        BudgetExceededError
            If it does not fit in what is left of the budget.
        CalibrationError
            If its loss has parts that are not exact, or below 0.
        DeclarationError
            If it is not an `Entry`.
        LedgerError
            If the file cannot be written, or was changed.
        ReleaseError
            If the disk failed, or a connection ended, when the entry was there, or may have been:
            it counts as spent.
        """
        if not isinstance(entry, Entry):
            reason = f"entry must be a dpframe.ledger.ledger.Entry, got {a_type(entry)}."
            remedy = "Releases charge the ledger of their frame by themselves."
            raise DeclarationError(f"{reason} {remedy}", parameter="entry")
        claim = self._claim
        lease = None if claim is None else claim.lease(entry, self._epoch)
        if self._as_planned is not None:
            mark = _mark("again", entry, self._epoch - 1)
            self._append(
                lambda seen, held: transactions.begin_again(seen, entry, mark, held), lease
            )
            self._as_planned, _ = self._as_planned.with_entry(entry)
        else:
            try:
                self._append(lambda seen, _: transactions.charge(seen, entry), lease)
            except errors.LedgerDiskError as error:
                if not self._may_hold(entry):
                    raise
                raise charged_perhaps(self._where()) from error
        store = self._in_use()._store
        if claim is not None and lease is not None:
            # a store of the thread that beats: short waits do, as it beats again soon
            claim.begin(entry, store and store_at(store.address, EVERY), lease)

    @property
    def begins_again(self) -> bool:
        """Whether it is charged for a run that was charged before."""
        return self._earlier is not None

    def as_charged(self, entry: Entry) -> Entry:
        """Return an entry as it was charged, if it is that of a run that begins again."""
        if self._earlier is None:
            return entry
        recorded = {name: getattr(self._earlier, name) for name in _OF_FIRST_RUN}
        return replace(entry, **recorded)

    def note_noise(self, entry: Entry) -> None:
        """Record that noise for an entry is about to be drawn, if a plan asked for it: once.

        A run that ended before this row can begin again; none can after it.

        Raises
        ------
        ReleaseError
            If nobody can tell whether the row was written.
        RunPausedError
            If another start of this run took it over, or the ledger cannot be reached: nothing was
            drawn, and nothing is lost.
        """
        if entry.plan is None:
            return
        if self._claim is not None:
            self._claim.before_noise()
        try:
            self._note(entry, _mark("noise", entry, self._epoch))
        except LedgerBusyError as error:
            reason = f"{self._where()} cannot be reached to note that noise is about to be drawn:"
            remedy = "nothing is lost. Run it again as it is, for which nothing is charged."
            raise RunPausedError(f"{reason} {remedy}") from error
        except LedgerError as error:
            raise noise_not_noted(self._where()) from error

    def note_drawn(self, entry: Entry, digest: str) -> None:
        """Record that what was drawn for an entry is kept, by the SHA-256 of its spool.

        Raises
        ------
        ReleaseError
            If somebody gave the run up before: then nothing of it may be published.
        LedgerError
            If the row cannot be written.
        """
        self._note(entry, _mark("drawn", entry, self._epoch, digests=(digest,)))

    def note_written(self, entry: Entry, digests: Sequence[str]) -> None:
        """Record that the files of an entry are written, by their SHA-256.

        Raises
        ------
        LedgerError
            If the row cannot be written.
        """
        self._note(entry, _mark("written", entry, self._epoch, digests=tuple(digests)))

    def note_lost(self, entry: Entry, who: str, why: str) -> None:
        """Record that what was drawn for an entry is lost, which closes its name.

        Raises
        ------
        LedgerError
            If it drew nothing, or what it drew is kept; or the row cannot be written.
        """
        self._note(entry, _mark("lost", entry, self._epoch, who=who, why=why))

    def _note(self, entry: Entry, mark: RunMark) -> None:
        """Append a row about a run; one that was surely not written is tried again for a while."""
        deadline = Deadline.begin(None if self._store is None else self._store.patience)
        while True:
            try:
                self._append(lambda seen, _: transactions.note(seen, entry, mark))
            except LedgerBusyError:
                if deadline.is_over:
                    raise
            else:
                return
            deadline.pause(_PAUSE)

    def lease_of(self, release_id: str) -> Lease | None:
        """Return who is at work on a release, or was last; `None`: nobody knows.

        Raises
        ------
        LedgerError
            If the ledger cannot be read.
        """
        store = self._in_use()._store
        return None if store is None else self._lock.hold(lambda _: store.lease_of(release_id))

    def _may_hold(self, entry: Entry) -> bool:
        """Whether an entry is in the file, or nobody can tell."""
        try:
            return self._look().log.with_id(entry.release_id) is not None
        except LedgerError:
            return True

    def protect(self, protected: Protected) -> None:
        """Settle whom the ledger protects, or check that it is the same as before.

        Raises
        ------
        DeclarationError
            If it protects another unit, or under another relation.
        LedgerError
            If the file cannot be written, or was changed.
        """
        if not isinstance(protected, Protected):
            rule = "must be a dpframe.ledger.log.Protected"
            raise DeclarationError.about("protected", rule, protected)
        if self.protected is None:
            self._append(lambda seen, _: transactions.protect(seen, protected))
        if self.protected != protected:
            raise DeclarationError(
                f"{self._where()} protects {self.protected}, got {protected}: their losses do not "
                "add up. A declaration replaces the one before: repeat what still holds, give the "
                "unit its name with unit=, or pass another ledger.",
                parameter="privacy_unit",
                value=protected.unit,
            )

    def copy_to(self, path: str | os.PathLike[str]) -> "Ledger":
        """Move a ledger: copy all its rows to a new place, and close it here.

        It is moved once: a row here says where it went, and nothing more is charged here; what was
        released is still found. A copy that was cut short charges nothing at either place: call it
        again with the same path, and it goes on.

        Parameters
        ----------
        path
            A new file, or the URL of a new table, as `Ledger.create` takes it.

        Returns
        -------
        Ledger
            The ledger at its new place.

        Raises
        ------
        LedgerError
            If it was moved elsewhere, is in memory, or the new place cannot be used.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     old = Ledger.create(f"{folder}/old.ledger", budget=Budget(epsilon=1))
        ...     new = old.copy_to(f"{folder}/new.ledger")
        ...     new.ledger_id == old.ledger_id
        True
        """
        source = self if self._whole is None else self._whole
        if source._store is None or at_the_door().is_test:
            rule = "a ledger that is in memory, or that a test has, cannot be moved."
            raise LedgerError(f"{rule} Make one: dpf.Ledger.create(path, budget=...).")
        here, target = source._store, store_at(path)
        if source._look().moved_to is None:
            target.check_new()
        where = source._where()
        source._append(lambda seen, _: transactions.leave(seen, target.place, where), closed=True)
        rows = here.all_rows()[: source._seen.rows_that_left]
        # while nobody else appends: two that copy at once make one copy
        source._append(lambda seen, _: transactions.hand_over(seen, target, rows), closed=True)
        moved = Ledger(path)
        moved._append(lambda seen, _: transactions.arrive(seen, here.place, rows[-1]), closed=True)
        return moved

    def _append(
        self,
        decide: Callable[[Chain, Lease | None], tuple[Chain, Row | None]],
        claim: Lease | None = None,
        *,
        closed: bool = False,
    ) -> None:
        """Append the row that is decided on in view of all others, while nobody else appends.

        Where the ledger was moved away, that is refused, unless it may be `closed`.
        """
        ledger = self._in_use(self._context or at_the_door())
        store = ledger._store

        def decide_here(seen: Chain, held: Lease | None) -> tuple[Chain, Row | None]:
            if not closed:
                transactions.refuse_moved(seen, ledger._where())
            return decide(seen, held)

        def append(again: bool) -> None:
            if again:
                raise in_use_here(ledger._where())
            if store is None:
                ledger._seen, _ = decide_here(ledger._seen, None)
                return
            ledger._seen = store.append(  # now that it is on disk
                *ledger._last_row(),
                lambda news, held: decide_here(ledger._seen.extend(news, store.place), held),
                claim,
            )
            ledger._left = store.left

        ledger._lock.hold(append)

    def _look(self, *, glancing: bool = False) -> Chain:
        """Read what is new in the file; at a glance, if others spent since the last look."""
        ledger = self._in_use()
        store = ledger._store

        def read(again: bool) -> None:
            # a signal handler is told what was last seen
            if store is None or again or (glancing and store.looks_like(ledger._left)):
                return
            news = store.rows_after(*ledger._last_row())
            ledger._seen = ledger._seen.extend(news, store.place)
            ledger._left = store.left

        if store is not None:
            ledger._lock.hold(read)
        return ledger._seen

    def _view(self, **attributes: object) -> "Ledger":
        """Return the same ledger, whose rows are kept where they are, seen in another way."""
        view = object.__new__(Ledger)
        vars(view).update(vars(self), _whole=self._whole or self, **attributes)
        return view

    def within(self, context: Context) -> "Ledger":
        """Return the same ledger as a call has it, whatever block opens or ends meanwhile."""
        return self._view(_context=context)

    def _in_use(self, context: Context | None = None) -> "Ledger":
        """Return itself, or what stands in for it in a test, where no file is ever charged."""
        context = self._context or context or at_the_door(looking=True)
        if self._whole is not None:
            return self._whole._in_use(context)
        if self._made_in.is_test and self._made_in is not context:
            reason = f"{self._where()} was made inside a testing block that has ended:"
            raise LedgerError(f"{reason} nothing was charged. Make one where it is used.")
        if context.block is None or (self._made_in.is_test and self._store is None):
            return self
        stand_in: Ledger = context.block.stand_in(self)
        return stand_in

    def _last_row(self) -> tuple[int, str]:
        """Give number and hash of the last row seen."""
        return self._seen.log.rows - 1, self._seen.log.head

    def status(self, part: object = None) -> BudgetStatus:
        """Return what is spent and what is left.

        Parameters
        ----------
        part
            Of the budget of which part of the data; `None`: for releases over all parts, of which
            each counts against every part. `.parts` of the status is a table of all parts.

        Raises
        ------
        DeclarationError
            If there can be no such part.
        """
        return self._status(self._look()) if part is None else self.of_part(part).status()

    def _status(self, seen: Chain) -> BudgetStatus:
        return BudgetStatus.of(self._as_planned or seen, self._of_part)

    def of_part(self, part: object) -> "Ledger":
        """Return the same ledger, whose status is that of one part of the data.

        Raises
        ------
        DeclarationError
            If there can be no such part.
        """
        transactions.refuse_part(check_part(part), self._seen)
        return self._view(_of_part=check_part(part))

    def run_of(self, name: str) -> ChargedRun | None:
        """Return what became of the release of a name."""
        log = self._look().log
        first = log.with_name(name)
        return None if first is None else ChargedRun(first, RunState.of(log, first.release_id))

    def of_plan(self, plan: str, name: str, claim: RunClaim | None = None) -> "Ledger":
        """Return the same ledger, charged for a plan: its run begins again if it had no noise yet.

        A run is charged once. If it ended before `note_noise`, then one of the same name and plan
        is charged nothing, and is planned with what was left when the first one was charged; so
        `MOST_AGAIN` times.

        Parameters
        ----------
        plan
            SHA-256 of the plan.
        name
            Name of the release.
        claim
            What tells other starts that this one is at work.
        """
        view = self._view(plan=plan, _claim=claim)
        run = self.run_of(name)
        if run is not None and run.entry.plan == plan and run.may_begin_again:
            view._earlier, view._epoch = run.entry, run.state.epoch + 1
            view._as_planned = self._look().before(run.entry.release_id)
        return view

    def glance(self) -> BudgetStatus:
        """Return the status to plan with: the file is read if others spent since the last look.

        What else happened to the file is found by `charge`, before anything is drawn.

        Raises
        ------
        LedgerError
            If the file was found to be changed, or cannot be used.
        """
        return self._status(self._look(glancing=True))

    def last_status(self) -> BudgetStatus:
        """Return the status as of the last look or spend, without reading a file."""
        return self._status(self._in_use()._seen)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per release, in order.

        Returns
        -------
        DataFrame
            By release id: `released_at`, `what` and `mechanism`; `share`, the share asked for, or
            else `part`, the part of the budget; the cost as `epsilon`, `mu` and `delta`, not a
            number where there is none; `name`, `frame`, `unit`, `columns`, `user` and `note`;
            `of_part`, the part of the data, where each has a budget; and `hash`, the head of the
            ledger then.
        """
        seen = self._look()
        releases = BudgetStatus.of(seen).releases
        return releases.assign(hash=pd.Series(seen.entry_hashes, releases.index, object))

    def to_dp_event(self) -> Any:
        """Return everything charged as an event for the accountants of dp_accounting.

        A Gaussian loss of mu is a `GaussianDpEvent(1 / mu)`, a pure epsilon a
        `DiscreteLaplaceDpEvent(epsilon, 1)`, which the accountant of privacy loss distributions
        takes. An extra delta is an event that accountants refuse, where the installed
        dp_accounting has none for it. What accountants say holds for amounts that were settled
        beforehand.

        Raises
        ------
        DPFrameError
            If dp_accounting is not installed.
        """
        return dp_event(entry.loss for entry in self.entries)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy as another view of the same file; a copy in memory would double the budget."""
        if at_the_door(looking=True).is_test:
            reason = "a ledger cannot be pickled or copied inside a testing block:"
            raise LedgerError(f"{reason} another process would charge its file.")
        if self._store is None:
            raise LedgerError(
                "a ledger in memory cannot be copied or pickled: the copy would spend the budget "
                "again. Keep it in a file, dpf.Ledger.create(path, budget=...), to share it."
            )
        return _reopen, (self._store.address, self.ledger_id)

    def __repr__(self) -> str:
        """Show what it is, as of the last look."""
        place = place_of(self)
        where = "in memory" if place is None else f"in {place}"
        return f"<Ledger {where}: {self.budget}, {self._seen.log.releases} releases>"

    def _where(self) -> str:
        place = place_of(self)
        return "the ledger of this frame" if place is None else f"the ledger {place}"


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Make many objects that stay: to look again and again which are garbage takes a fifth more."""
    looked = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if looked:
            gc.enable()


def _mark(event: str, entry: Entry, epoch: int, **details: Any) -> RunMark:
    """Write a row about a run, which is like no other: who lost its answer can look it up."""
    return RunMark(0, event, entry.release_id, epoch, uuid4().hex, **details)


def open_patiently(path: str | os.PathLike[str], patience: float | None) -> Ledger:
    """Open a ledger whose calls wait for others so many seconds at most."""
    opened = Ledger.__new__(Ledger)
    opened._open(store_at(path, patience), budget=None, part=None)
    return opened


def open_or_create(path: str | os.PathLike[str], budget: Budget | None) -> Ledger:
    """Open a ledger, or make it where it is missing and a budget is given.

    Where something was spent before, a line is logged as a warning: a notebook that runs again
    spends again.

    Raises
    ------
    DeclarationError
        If the budget is not that of the file.
    LedgerError
        If the file cannot be used, or is missing and there is no budget.
    """
    store, block = store_at(path), at_the_door().block
    has_stand_in = block is not None and block.ledger_at(store.place) is not None
    if budget is not None and not has_stand_in and not store.exists():
        try:
            return Ledger.create(path, budget=budget)
        except LedgerError:  # another process may have made it since
            if not store.exists():
                raise
    ledger = Ledger(path, budget=budget)
    status = ledger.status()
    if status.entries:
        before = f"spent before: {status.used_words}, releases: {len(status.entries):,}"
        _LOGGER.warning("%s goes on; %s; left: %s", place_of(ledger), before, status.left)
    return ledger


def place_of(ledger: Ledger) -> str | None:
    """Return where the rows of a ledger are, as messages say it; `None`: in memory."""
    return None if ledger._store is None else ledger._store.place


def copy_in_memory(ledger: Ledger) -> Ledger:
    """Return what a ledger is now, in memory: to try a release without data, and to be dropped."""
    tried = Ledger(budget=ledger.budget)
    seen = ledger._look()
    tried._seen = replace(seen, log=seen.log.apart())
    return tried


def emptied_in_memory(ledger: Ledger) -> Ledger:
    """Return a ledger in memory with budget, identifier and unit of another, and nothing spent."""
    emptied = Ledger(budget=ledger.budget)
    emptied._seen, _ = Chain.start(ledger.ledger_id, ledger.budget, ledger.part)
    protected = ledger._seen.protected
    if protected is not None:
        emptied._seen, _ = emptied._seen.with_protected(protected)
    return emptied


def check_budget(budget: object) -> None:
    """Refuse what is no budget."""
    if not isinstance(budget, Budget):
        reason = f"budget must be a dpf.Budget, got {type(budget).__name__};"
        remedy = "for instance dpf.Budget(epsilon=1, delta=1e-6)."
        raise DeclarationError(f"{reason} {remedy}", parameter="budget")


def _check_column(part: object) -> None:
    if part is not None and (not isinstance(part, str) or not part or not is_unicode(part)):
        rule = "must be the label of a column, as a text"
        raise DeclarationError.about("part", rule, part, 'For instance, part="week".')


def _reopen(path: str, ledger_id: str) -> Ledger:
    """Open the file of a copied ledger."""
    ledger = Ledger(path)
    if ledger.ledger_id != ledger_id:
        reason = f"{place_of(ledger)} is another ledger than the one that was copied:"
        remedy = f"{ledger.ledger_id} instead of {ledger_id}. Put back the file of the latter."
        raise LedgerError(f"{reason} {remedy}")
    return ledger
