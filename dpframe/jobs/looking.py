"""Commands that look at what was released: files and ledgers."""

import argparse
import json
from pathlib import Path
from typing import Any

from dpframe.jobs.answers import Answer
from dpframe.jobs.released_files import opened_ledger, read_released
from dpframe.jobs.terminal import UNREADABLE
from dpframe.ledger.ledger import Ledger
from dpframe.privacy.amounts import Budget
from dpframe.results.certificate import verify

__all__ = ["look_at_ledger", "show", "state_of", "verified"]

_MOST_ROWS = 20


def show(_: argparse.Namespace, path: Path) -> Answer:
    """Print certificate and table of a released file."""
    frame = read_released(path)
    certificate = verify(frame)
    facts = {
        "state": certificate.state,
        "certificate": certificate.to_dict(),
        "table": json.loads(frame.to_json(orient="table", index=True, date_format="iso"))["data"],
    }
    words = f"{certificate}\n\n{frame.to_string(max_rows=_MOST_ROWS)}"
    return Answer(str(path), words, facts)


def verified(given: argparse.Namespace, path: Path) -> Answer:
    """Check a released file, and whether a ledger was charged for it."""
    released = read_released(path)
    certificate = verify(released)  # what is wrong with the file itself is said first
    facts = {"state": certificate.state, "digest": certificate.digest}
    said = f"{path}: {certificate.state}, {certificate.digest}"
    if given.ledger is None:
        return Answer(str(path), said, facts)
    try:
        ledger = opened_ledger(given.ledger)
    except OSError as error:
        raise OSError(f"the ledger {given.ledger}: {error}") from error
    verify(released, ledger=ledger)
    said = f"{said}, in ledger {ledger.ledger_id}"
    return Answer(str(path), said, facts | {"ledger_id": ledger.ledger_id})


def look_at_ledger(given: argparse.Namespace, path: Path) -> Answer:
    """Check a ledger and say what is spent; or make one."""
    amounts = {
        name: getattr(given, name)
        for name in ("epsilon", "delta", "discovery")
        if getattr(given, name) is not None
    }
    if given.create != ("epsilon" in amounts) or (amounts and not given.create):
        wrong = "--create goes with --epsilon, and with --delta for Gaussian noise."
        return Answer(str(path), code=UNREADABLE, problems=(wrong,))
    if given.create and path.exists():
        there = "there is a file already: a ledger is made once, and opened by every run."
        return Answer(str(path), code=UNREADABLE, problems=(there,))
    ledger = Ledger.create(path, budget=Budget(**amounts)) if given.create else opened_ledger(path)
    return Answer(str(path), f"{ledger.status()}\n\nhead {ledger.head}", state_of(ledger))


def state_of(ledger: Ledger) -> dict[str, Any]:
    """Say for a program what is spent and what is left."""
    status, budget = ledger.status(), ledger.budget
    return {
        "ledger_id": ledger.ledger_id,
        "head": ledger.head,
        "budget": {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "discovery": budget.discovery,
        },
        "used": status.used,
        "remaining_share": status.remaining_share,
        "remaining_epsilon": status.remaining_epsilon,
        "remaining_mu": status.remaining_mu,
        "releases": [
            {"release_id": entry.release_id, "released_at": entry.released_at, "name": entry.name}
            for entry in ledger.entries
        ],
    }
