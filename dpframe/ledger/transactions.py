"""What one transaction appends to a ledger, in view of all rows before it, or why it is refused."""

import os
from typing import assert_never

from dpframe import errors
from dpframe.context import at_the_door
from dpframe.errors import BudgetExceededError, DeclarationError, LedgerError, ReleaseError, quote
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.leases import (
    MOST_AGAIN,
    Lease,
    Life,
    RowRefusal,
    RunPausedError,
    RunState,
    allowed,
    life_of,
)
from dpframe.ledger.log import Entry, Protected, RunMark, SourceFacts
from dpframe.ledger.parts import Part, check_part
from dpframe.ledger.status import BudgetStatus, refusal
from dpframe.ledger.store import Store, store_at
from dpframe.privacy.amounts import check_loss


def refuse_repeated(name: str | None, seen: Chain) -> None:
    """Refuse a name that an earlier release has."""
    first = None if name is None else seen.log.with_name(name)
    if first is not None:
        reason = f"name={name!r} was released already, at {first.released_at}, as"
        raise _name_is_taken(name, f"{reason} {first.release_id}")


def _name_is_taken(name: str | None, reason: str) -> errors.AlreadyReleasedError:
    remedy = "nothing was charged. If this is another release, give it another name."
    return errors.AlreadyReleasedError(f"{reason}: {remedy}", parameter="name", value=name)


def refuse_moved(seen: Chain, where: str) -> None:
    """Refuse to append where a ledger was before it was moved."""
    if seen.moved_to is not None:
        reason = f"{where} was moved to {seen.moved_to}: nothing was charged."
        raise LedgerError(f"{reason} Open that one.", parameter="path")


def _refused(  # noqa: PLR0911  # a case a line
    why_not: RowRefusal, entry: Entry
) -> errors.DPFrameError:
    """Say why a row about a run was not appended."""
    name = f"name={quote(entry.name)}"
    match why_not:
        case RowRefusal.TAKEN_OVER | RowRefusal.HAD_NOISE:
            reason = f"another start of {name} took this run over, and goes on with its charge"
            return RunPausedError(f"{reason}: nothing is lost. Try again, for its files.")
        case RowRefusal.TOO_OFTEN:
            reason = f"ended before its noise {MOST_AGAIN + 1} times, and begins no more"
            return _name_is_taken(entry.name, f"{name} {reason}")
        case RowRefusal.LOST:
            return ReleaseError(f"{name} was given up, and nothing of it is published")
        case RowRefusal.NO_NOISE:
            rule = f"{name} drew no noise yet: run it again as it is, for nothing."
            return LedgerError(f"{rule} There is nothing to give up.", parameter="name")
        case RowRefusal.DRAWN:
            rule = f"what {name} drew is kept: run it again as it is, which writes the files."
            return LedgerError(f"{rule} There is nothing to give up.", parameter="name")
        case RowRefusal.WRITTEN:
            return LedgerError(f"the files of {name} were written: there is nothing to give up.")
        case RowRefusal.NOT_DRAWN:
            return LedgerError(f"the files of {name} are of no draw.")
        case _:
            assert_never(why_not)


def _refuse_recorded(release_id: str, seen: Chain) -> None:
    """Refuse the identifier of an earlier release: certificates are looked up by it."""
    first = seen.log.with_id(release_id)
    if first is not None:
        reason = f"release_id={release_id!r} was charged already, at {first.released_at}: nothing"
        remedy = "was charged. Give each release an identifier of its own, as uuid.uuid4().hex."
        text = f"{reason} {remedy}"
        raise errors.AlreadyReleasedError(text, parameter="release_id", value=release_id)


def _refuse_outdated(entry: Entry, left: BudgetStatus) -> None:
    """Refuse a share that others made smaller after it was planned."""
    amount = entry.spend.amount
    left.share(amount)  # which is refused if shares would be above 1
    if not left.pots.allows_part(entry.loss, left.part_of_rest(amount)):
        reason = f"what share={float(amount):.6g} stands for became less while this release was"
        remedy = "planned, for another one was charged: nothing was charged. Ask again."
        raise BudgetExceededError(f"{reason} {remedy}", parameter="share", value=amount)


def refuse_part(part: Part | None, seen: Chain) -> None:
    """Refuse a part where all of the data have one budget."""
    if part is not None and seen.part is None:
        rule = "needs a ledger by part"
        remedy = 'Make one: dpf.Ledger.create(path, budget=..., part="week").'
        raise DeclarationError.about("part", rule, part, remedy)
    if part is not None and part != check_part(part):
        rule = "of an entry must be the one form of a part"
        raise DeclarationError.about("part", rule, part, f"That is {check_part(part)!r}.")


def refuse_source(source: SourceFacts | None, seen: Chain) -> None:
    """Refuse a source in which a unit or a part has another name than in those before it."""
    earlier = seen.source
    if earlier is None or source is None:
        return
    kinds = [("units", *pair) for pair in zip(earlier.unit, source.unit, strict=False)]
    for subject, before, now in (*kinds, (f"parts of {seen.part}", earlier.part, source.part)):
        if None not in (before, now) and before != now:
            reason = f"{subject} are {before} in this ledger, and the source holds {now}:"
            remedy = "one could be two, as 1 and '01' are. Cast the column, or use another ledger."
            raise DeclarationError(f"{reason} {remedy}", parameter="ledger")
    if seen.part is not None and earlier.door != source.door:
        before, now = (side.door or "listed files or rows in memory" for side in (earlier, source))
        reason = f"this ledger is by {seen.part}, and was charged for {before}, got {now}:"
        remedy = "readers may disagree about parts. Read all through one of them."
        raise DeclarationError(f"{reason} {remedy}", parameter="ledger")


def charge(seen: Chain, entry: Entry) -> tuple[Chain, Row]:
    """Append an entry to what was seen, or refuse it."""
    check_loss(entry.loss)
    refuse_part(entry.part, seen)
    refuse_source(entry.source, seen)
    refuse_repeated(entry.name, seen)
    _refuse_recorded(entry.release_id, seen)
    left = BudgetStatus.of(seen, entry.part)
    if entry.spend.kind == "share":
        _refuse_outdated(entry, left)
    if not left.pots.fits(entry.loss):
        raise refusal(left, entry)
    return seen.with_entry(entry)


def protect(seen: Chain, protected: Protected) -> tuple[Chain, Row | None]:
    """Say whom a ledger protects, unless another process was quicker."""
    return (seen, None) if seen.protected is not None else seen.with_protected(protected)


def leave(seen: Chain, place: str, where: str) -> tuple[Chain, Row | None]:
    """Close a ledger that goes to a place; one that was closed may go on to the same."""
    if seen.moved_to is None:
        return seen.with_text("leaving", place)
    if seen.moved_to != place:
        refuse_moved(seen, where)
    return seen, None


def hand_over(seen: Chain, target: Store, rows: list[Row]) -> tuple[Chain, Row | None]:
    """Copy what a ledger was when it was closed, once: what has left is never copied again."""
    assert seen.moved is not None  # noqa: S101  # it is closed
    if seen.moved.what == "left":
        return seen, None
    try:
        target.create(rows)
    except LedgerError:
        if not _is_copied(target, rows):
            raise
    return seen.with_text("left", target.place)


def _is_copied(target: Store, rows: list[Row]) -> bool:
    """Whether a copy that was cut short had made the new place."""
    try:
        return target.all_rows() == rows
    except LedgerError:
        return False


def arrive(seen: Chain, place: str, last: Row) -> tuple[Chain, Row | None]:
    """Open a ledger at its new place, unless that was done before."""
    if seen.log.hashes[last.number : last.number + 1] != (last.hash,):
        raise LedgerError(f"it is another ledger than that of {place}: nothing was moved there.")
    here = seen.log.rows - 1 > last.number
    return (seen, None) if here else seen.with_text("arrived", place)


def begin_again(
    seen: Chain, entry: Entry, mark: RunMark, held: Lease | None
) -> tuple[Chain, Row | None]:
    """Note that a run begins again; refuse one that was another, or that is at work."""
    if seen.log.with_id(entry.release_id) != entry:
        reason = "was charged for a release that was planned otherwise"
        raise _name_is_taken(entry.name, f"name={quote(entry.name)} {reason}")
    if life_of(held) is Life.ALIVE:
        raise RunPausedError(f"a run of name={quote(entry.name)} is at work {held}: try again.")
    return note(seen, entry, mark)


def note(seen: Chain, entry: Entry, mark: RunMark) -> tuple[Chain, Row | None]:
    """Note what became of a run, or refuse it; what two starts publish is noted once."""
    why_not = allowed(mark.what, RunState.of(seen.log, entry.release_id), mark.epoch)
    if why_not is None:
        return seen.with_mark(mark)
    if (mark.what, why_not) in _NOTED:
        return seen, None
    raise _refused(why_not, entry)


_NOTED = (("drawn", RowRefusal.DRAWN), ("written", RowRefusal.WRITTEN), ("lost", RowRefusal.LOST))


def void_row(path: str | os.PathLike[str], number: int) -> None:
    """Let a row that cannot be read count for nothing; that it was voided is kept for ever.

    Parameters
    ----------
    path
        The file or the URL of the ledger.
    number
        The number of the row.

    Raises
    ------
    DeclarationError
        If the row can be read, or may be a charge.
    LedgerError
        If the ledger cannot be used, or the table is of another owner.
    """
    if at_the_door().is_test:
        raise LedgerError("a ledger that a test has is kept by nobody.")
    store = store_at(path)
    header, *_ = store.all_rows()

    def decide(news: list[Row], _: object) -> tuple[None, Row | None]:
        seen = Chain.of_rows([header, *news], store.place, voiding=True)
        marks = {mark.what for mark in seen.log.marks_of(str(number))}
        if "voided" not in marks:
            raise DeclarationError.about("void", "must be a row that cannot be read", number)
        if "void" in marks:
            return None, None
        return None, seen.with_text("void", str(number))[1]

    store.append(0, header.hash, decide)
