"""Releases that a ledger refuses for what is in it already, whatever is left of the budget."""

from dpframe.errors import AlreadyReleasedError, BudgetExceededError
from dpframe.ledger.chain import Chain
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import PrivacyLoss


def refuse_repeated(name: str | None, seen: Chain) -> None:
    """Refuse a name that an earlier release has."""
    first = None if name is None else seen.log.named(name)
    if first is not None:
        raise AlreadyReleasedError(
            f"name={name!r} was released already, at {first.released_at}, as {first.release_id}: "
            "nothing was charged. If this is another release, give it another name."
        )


def refuse_recorded(release_id: str, seen: Chain) -> None:
    """Refuse the identifier of an earlier release: certificates are looked up by it."""
    first = seen.log.with_id(release_id)
    if first is not None:
        raise AlreadyReleasedError(
            f"release_id={release_id!r} was charged already, at {first.released_at}: nothing was "
            "charged. Give each release an identifier of its own, uuid.uuid4().hex for instance."
        )


def refuse_outdated(entry: Entry, share: PrivacyLoss) -> None:
    """Refuse a share that others made smaller after it was planned."""
    if entry.loss.epsilon > share.epsilon or entry.loss.mu_squared > share.mu_squared:
        raise BudgetExceededError(
            f"what share={float(entry.spend.amount):.6g} stands for became less while this release "
            "was planned, for another one was charged: nothing was charged. Ask again."
        )
