"""Commands that look at what was released: files and ledgers."""

import argparse
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dpframe.arguments import visible
from dpframe.context import at_the_door
from dpframe.errors import DPFrameError, DPFrameWarning, quote
from dpframe.files.excel import read_excel
from dpframe.jobs.answers import UNREADABLE, Answer, answer_of
from dpframe.jobs.output_paths import WORKBOOK, LedgerPlace, opened_ledger, read_released
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.status import BudgetStatus
from dpframe.ledger.transactions import void_row
from dpframe.operations.pipeline import user_name
from dpframe.privacy.amounts import Budget
from dpframe.reporting.report import report
from dpframe.steps.verify import verify

_MOST_ROWS = 20  # of a table that a terminal shows
_MOST_PARTS = 5  # of a budget that a terminal shows


def show(_: argparse.Namespace, path: Path) -> Answer:
    """Print certificate and table of a released file."""
    frame = read_released(path)
    certificate = verify(frame)
    facts = {
        "state": certificate.state,
        "certificate": certificate.to_dict(),
        "table": frame.reset_index().to_dict("records"),
    }
    words = f"{certificate}\n\n{frame.to_string(max_rows=_MOST_ROWS)}"
    return Answer(str(path), words, facts)


def verify_file(given: argparse.Namespace, path: Path) -> Answer:
    """Check a released file, and whether a ledger was charged for it."""
    if path.suffix.lower() == WORKBOOK:
        sheets = read_excel(path, None)
    else:
        sheets = {"": read_released(path)}
    # what is wrong with the file itself is said first
    certificates = {name: verify(frame) for name, frame in sheets.items()}
    facts: dict[str, Any] = {
        name: {"state": one.state, "digest": one.digest} for name, one in certificates.items()
    }
    facts = facts.get("", {"tables": facts})
    where = ""
    if given.ledger is not None:
        ledger = _ledger_of(given.ledger)
        for frame in sheets.values():
            verify(frame, ledger=ledger)
        where = f", in ledger {ledger.ledger_id}"
        facts |= {"ledger_id": ledger.ledger_id}
    said = [
        f"{path}{f', sheet {quote(name)}' * bool(name)}: {one.state}, {one.digest}{where}"
        for name, one in certificates.items()
    ]
    return Answer(str(path), "\n".join(said), facts)


def _ledger_of(path: LedgerPlace) -> Ledger:
    """Open a ledger that is looked at beside other files."""
    try:
        return opened_ledger(path)
    except OSError as error:
        raise OSError(f"the ledger {path}: {error}") from error


def report_files(given: argparse.Namespace, paths: list[Path]) -> Answer:
    """Write a page about released files, by which a person decides whether to publish."""
    output: Path = given.output
    own = () if given.ledger is None else given.ledger.files
    if output.resolve() in {path.resolve() for path in (*paths, *own)}:
        return _refusal(output, "--output must be another file than those that are read.")
    if output.exists() and not given.overwrite:
        return _refusal(
            output, f"there is a file {output} already: give --overwrite to replace it."
        )
    ledger = None if given.ledger is None else _ledger_of(given.ledger)
    frames = {str(path): _named_read(path) for path in paths}
    options = {name: getattr(given, name) for name in ("title", "level", "percent", "changes")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPFrameWarning)  # each table that is altered is told below
        page = report(frames, ledger=ledger, **options)
    at_the_door(looking=True).place(output).write_text(page, encoding="utf-8", newline="\n")
    checks = [answer_of(path, partial(_sound, path, one, ledger)) for path, one in frames.items()]
    wrong = [f"{check.about}: {check.problems[0]}" for check in checks if check.code]
    facts = {"tables": list(frames), "sound": not wrong}
    code = max(check.code for check in checks)
    return Answer(str(output), f"{output}: written", facts, code, tuple(wrong))


def _named_read(path: Path) -> pd.DataFrame:
    """Read one of several released files; what is wrong is said with its name."""
    try:
        return read_released(path)
    except DPFrameError as error:
        raise type(error)(f"{path}: {error}") from None
    except Exception as error:  # a file from anywhere makes its reader raise anything
        raise OSError(f"{path}: {error or type(error).__name__}") from None


def _sound(path: str, frame: pd.DataFrame, ledger: Ledger | None) -> Answer:
    verify(frame, ledger=ledger)
    return Answer(path)


def look_at_ledger(given: argparse.Namespace, path: LedgerPlace) -> Answer:
    """Check a ledger and say what is spent; or make one."""
    named = {name: getattr(given, name) for name in ("epsilon", "delta", "discovery")}
    amounts = {name: amount for name, amount in named.items() if amount is not None}
    if wrong := _wrong_options(given, path, amounts):
        return _refusal(path, wrong)
    if given.lost is not None:
        return _give_up(given.lost, path)
    if given.void is not None:
        void_row(path.given, given.void)
    if given.create:
        ledger = Ledger.create(path.given, budget=Budget(**amounts), part=given.part)
    else:
        ledger = opened_ledger(path)
    status = ledger.last_status()
    lines = [str(status), *_fullest(status), *_voided(status), f"\nhead {status.log.head}"]
    return Answer(str(path), "\n".join(lines), state_of(ledger))


def _wrong_options(given: argparse.Namespace, path: LedgerPlace, amounts: Mapping[str, str]) -> str:
    """Say what is wrong with the options of a ledger; empty: nothing is."""
    acts = (given.create, given.void is not None, given.lost is not None)
    homeless = [file.parent for file in path.files if not file.parent.is_dir()]
    if sum(acts) > 1:
        return "give one of --create, --void and --lost."
    if given.create != ("epsilon" in amounts) or (amounts and not given.create):
        return "--create goes with --epsilon, and with --delta for Gaussian noise."
    if given.create and path.exists():
        return "there is a file already: a ledger is made once, and opened by every run."
    if given.create and homeless:
        return f"there is no folder {homeless[0]}: make it first."
    return "--part goes with --create." if given.part is not None and not given.create else ""


def _give_up(name: str, path: LedgerPlace) -> Answer:
    """Note that a run is lost, because a person says so."""
    ledger = opened_ledger(path)
    run = ledger.run_of(name)
    if run is None:
        return _refusal(path, f"there is no release {name!r}: nothing was noted.")
    ledger.note_lost(run.entry, who=user_name() or "somebody", why="said to be dead")
    closed = f"{name!r} is given up: its amount stays spent, and its name is closed"
    return Answer(str(path), f"{closed}.", state_of(ledger))


def _fullest(status: BudgetStatus) -> list[str]:
    """Say which parts of the data have spent most, where each has a budget."""
    used = status.parts["used"].head(_MOST_PARTS)
    parts = [f"{visible(str(part))} {share:.1%}" for part, share in used.items()]
    return [f"Fullest    {', '.join(parts)}"] if parts else []


def _voided(status: BudgetStatus) -> list[str]:
    """Name the rows that nobody can read, and that count for nothing."""
    numbers = [mark.release_id for mark in status.log.marks if mark.what == "voided"]
    return [f"Void       entry {', '.join(numbers)}: cannot be read"] if numbers else []


def _refusal(path: Path | LedgerPlace, why: str) -> Answer:
    return Answer(str(path), code=UNREADABLE, problems=(why,))


def state_of(ledger: Ledger) -> dict[str, Any]:
    """Say for a program what is spent and what is left, as of the last look at the file."""
    status, budget = ledger.last_status(), ledger.budget
    lost = status.lost
    return {
        "ledger_id": ledger.ledger_id,
        "head": status.log.head,
        "part": ledger.part,
        "of_part": status.of_part,
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "discovery": budget.discovery},
        "used": status.used,
        "remaining_share": status.remaining_share,
        "remaining_epsilon": status.remaining_epsilon,
        "remaining_mu": status.remaining_mu,
        "releases": [
            {
                "release_id": entry.release_id,
                "released_at": entry.released_at,
                "name": entry.name,
                "lost": entry.release_id in lost,
            }
            for entry in status.entries
        ],
    }
