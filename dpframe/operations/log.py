"""What is logged of releases: public facts, and never a value."""

import logging
from collections.abc import Callable

from dpframe.arguments import visible
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.ledger.status import describe

_LOGGER = logging.getLogger("dpframe")


def log_charge(entry: Entry, ledger: Ledger) -> None:
    """Log what a ledger was charged with, and what is left."""
    _log(entry, lambda loss: (f"charged {loss}", f"left: {ledger.last_status().left}"))


def log_release(entry: Entry) -> None:
    """Log that a release was made."""
    _log(entry, lambda loss: ("released", f"cost: {loss}"))


def _log(entry: Entry, words: Callable[[str], tuple[str, str]]) -> None:
    """Log a sentence; whatever listens and fails, the release was charged and goes on."""
    try:
        if _LOGGER.isEnabledFor(logging.INFO):
            done, more = words(describe(entry.loss))
            name = "" if entry.name is None else f"{entry.name!r}, "
            sentence = visible(f"{done}: {name}{entry.what}; {entry.mechanism}; {more}")
            _LOGGER.info("%s", sentence, extra={"release_id": entry.release_id})
    except Exception:  # noqa: S110  # of a filter or a handler that is not ours
        pass
