"""What one transaction appends to a ledger, in view of all rows before it, or why it is refused."""

from typing import NamedTuple

from dpframe import errors
from dpframe.errors import BudgetExceededError, DeclarationError, LedgerError, ReleaseError, quote
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.log import Entry, SourceFacts
from dpframe.ledger.parts import Part, check_part
from dpframe.ledger.protected import Protected
from dpframe.ledger.status import BudgetStatus, refusal
from dpframe.ledger.store import Store
from dpframe.privacy.amounts import PrivacyLoss, check_loss

MOST_AGAIN = 3
"""How often a run that was charged may begin again: each time, a crash may tell of the data."""


class ChargedRun(NamedTuple):
    """What became of a release that was charged."""

    entry: Entry  # its charge
    again: int  # how often it was begun again
    had_noise: bool  # whether its noise was drawn, or may have been

    @property
    def may_begin_again(self) -> bool:
        """Whether it is charged nothing if it begins again."""
        return not self.had_noise and self.again < MOST_AGAIN


def refuse_repeated(name: str | None, seen: Chain) -> None:
    """Refuse a name that an earlier release has."""
    first = None if name is None else seen.log.with_name(name)
    if first is not None:
        wrong = f"name={name!r} was released already, at {first.released_at}, as {first.release_id}"
        way = "nothing was charged. If this is another release, give it another name."
        raise errors.AlreadyReleasedError(f"{wrong}: {way}", parameter="name", value=name)


def refuse_moved(seen: Chain, where: str) -> None:
    """Refuse to append where a ledger was before it was moved."""
    if seen.moved_to is not None:
        why = f"{where} was moved to {seen.moved_to}: nothing was charged."
        raise LedgerError(f"{why} Open that one.", parameter="path")


def _refuse_again(entry: Entry, seen: Chain) -> None:
    """Refuse to begin a run again that is another one, or whose noise may have been drawn."""
    name = quote(entry.name)
    if seen.log.with_id(entry.release_id) != entry:
        why = f"name={name} was charged for a release that was planned otherwise:"
    elif seen.log.times_marked("noise", entry.release_id):
        why = f"name={name} was released already, at {entry.released_at}, as {entry.release_id}:"
    elif seen.log.times_marked("again", entry.release_id) >= MOST_AGAIN:
        why = f"name={name} ended before its noise {MOST_AGAIN + 1} times, and begins no more:"
    else:
        return
    way = "nothing was charged. If this is another release, give it another name."
    raise errors.AlreadyReleasedError(f"{why} {way}", parameter="name", value=entry.name)


def _refuse_second_noise(entry: Entry, seen: Chain) -> None:
    """Refuse to draw noise where another run of the same charge did, or may have."""
    if seen.log.times_marked("noise", entry.release_id):
        why = f"another run of name={quote(entry.name)} drew the noise of this charge meanwhile"
        raise ReleaseError(why)


def _refuse_recorded(release_id: str, seen: Chain) -> None:
    """Refuse the identifier of an earlier release: certificates are looked up by it."""
    first = seen.log.with_id(release_id)
    if first is not None:
        wrong = f"release_id={release_id!r} was charged already, at {first.released_at}:"
        rule = "nothing was charged. Give each release an identifier of its own,"
        way = f"{rule} uuid.uuid4().hex for instance."
        raise errors.AlreadyReleasedError(
            f"{wrong} {way}", parameter="release_id", value=release_id
        )


def _refuse_outdated(entry: Entry, share: PrivacyLoss) -> None:
    """Refuse a share that others made smaller after it was planned."""
    if entry.loss.epsilon > share.epsilon or entry.loss.mu_squared > share.mu_squared:
        amount = float(entry.spend.amount)
        why = f"what share={amount:.6g} stands for became less while this release was planned,"
        way = "for another one was charged: nothing was charged. Ask again."
        raise BudgetExceededError(f"{why} {way}", parameter="share", value=entry.spend.amount)


def refuse_part(part: Part | None, seen: Chain) -> None:
    """Refuse a part where all of the data have one budget."""
    if part is not None and seen.part is None:
        rule = "needs a ledger by part"
        way = 'Make one: dpf.Ledger.create(path, budget=..., part="week").'
        raise DeclarationError.about("part", rule, part, way)
    if part is not None and part != check_part(part):
        rule = "of an entry must be the one form of a part"
        raise DeclarationError.about("part", rule, part, f"That is {check_part(part)!r}.")


def refuse_source(source: SourceFacts | None, seen: Chain) -> None:
    """Refuse a source in which a unit or a part has another name than in those before it."""
    known = seen.source
    if known is None or source is None:
        return
    for called, before, now in (
        *(("units", *pair) for pair in zip(known.unit, source.unit, strict=False)),
        (f"parts of {seen.part}", known.part, source.part),
    ):
        if None not in (before, now) and before != now:
            why = f"{called} are {before} in this ledger, and the source holds {now}:"
            way = "one could be two, as 1 and '01' are. Cast the column, or use another ledger."
            raise DeclarationError(f"{why} {way}", parameter="ledger")
    if seen.part is not None and known.door != source.door:
        doors = [door or "listed files or rows in memory" for door in (known.door, source.door)]
        why = f"this ledger is by {seen.part}, and was charged for {doors[0]}, got {doors[1]}:"
        way = "readers may disagree about parts. Read all through one of them."
        raise DeclarationError(f"{why} {way}", parameter="ledger")


def charge(seen: Chain, entry: Entry) -> tuple[Chain, Row]:
    """Append an entry to what was seen, or refuse it."""
    check_loss(entry.loss)
    refuse_part(entry.part, seen)
    refuse_source(entry.source, seen)
    refuse_repeated(entry.name, seen)
    _refuse_recorded(entry.release_id, seen)
    left = BudgetStatus.of(seen, entry.part)
    if entry.spend.kind == "share":
        _refuse_outdated(entry, left.share(entry.spend.amount))
    if not left.pots.fits(entry.loss):
        raise refusal(left, entry)
    return seen.with_entry(entry)


def protect(seen: Chain, protected: Protected) -> tuple[Chain, Row | None]:
    """Say whom a ledger protects, unless another process was quicker."""
    return (seen, None) if seen.protected is not None else seen.with_protected(protected)


def leave(seen: Chain, place: str, where: str) -> tuple[Chain, Row | None]:
    """Close a ledger that goes to a place; one that was closed may go on to the same."""
    if seen.moved_to is None:
        return seen.with_mark("leaving", place)
    if seen.moved_to != place:
        refuse_moved(seen, where)
    return seen, None


def hand_over(seen: Chain, there: Store, rows: list[Row]) -> tuple[Chain, Row | None]:
    """Copy what a ledger was when it was closed, once: what has left is never copied again."""
    assert seen.moved is not None  # noqa: S101  # it is closed
    if seen.moved.what == "left":
        return seen, None
    try:
        there.create(rows)
    except LedgerError:
        if not _is_copied(there, rows):
            raise
    return seen.with_mark("left", there.place)


def _is_copied(there: Store, rows: list[Row]) -> bool:
    """Whether a copy that was cut short had made the new place."""
    try:
        return there.all_rows() == rows
    except LedgerError:
        return False


def arrive(seen: Chain, place: str, last: Row) -> tuple[Chain, Row | None]:
    """Open a ledger at its new place, unless that was done before."""
    if seen.log.hashes[last.number : last.number + 1] != (last.hash,):
        raise LedgerError(f"it is another ledger than that of {place}: nothing was moved there.")
    here = seen.log.rows - 1 > last.number
    return (seen, None) if here else seen.with_mark("arrived", place)


def begin_again(seen: Chain, entry: Entry) -> tuple[Chain, Row]:
    """Note that a run that was charged begins again, or refuse it."""
    _refuse_again(entry, seen)
    return seen.with_mark("again", entry.release_id)


def note_noise(seen: Chain, entry: Entry) -> tuple[Chain, Row]:
    """Note that noise for an entry is about to be drawn, or refuse it."""
    _refuse_second_noise(entry, seen)
    return seen.with_mark("noise", entry.release_id)
