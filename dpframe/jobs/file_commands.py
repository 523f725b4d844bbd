"""Commands that look at what was released: files and ledgers."""

import argparse
import warnings
from collections.abc import Collection, Mapping
from dataclasses import asdict
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
from dpframe.ledger.log import Entry
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


def verify_file(options: argparse.Namespace, path: Path) -> Answer:
    """Check a released file, and whether a ledger was charged for it."""
    if path.suffix.lower() == WORKBOOK:
        sheets = read_excel(path, None)
    else:
        sheets = {"": read_released(path)}
    # what is wrong with the file itself is said first
    certificates = {name: verify(frame) for name, frame in sheets.items()}
    charged, facts = "", {}
    if options.ledger is not None:
        ledger = _ledger_of(options.ledger)
        for frame in sheets.values():
            verify(frame, ledger=ledger)
        charged, facts = f", in ledger {ledger.ledger_id}", {"ledger_id": ledger.ledger_id}
    lines = []
    tables: dict[str, Any] = {}
    for name, record in certificates.items():
        sheet = f", sheet {quote(name)}" * bool(name)
        lines.append(f"{path}{sheet}: {record.state}, {record.digest}{charged}")
        tables[name] = {"state": record.state, "digest": record.digest}
    return Answer(str(path), "\n".join(lines), tables.get("", {"tables": tables}) | facts)


def _ledger_of(path: LedgerPlace) -> Ledger:
    """Open a ledger that is looked at beside other files."""
    try:
        return opened_ledger(path)
    except OSError as error:
        raise OSError(f"the ledger {path}: {error}") from error


def report_files(options: argparse.Namespace, paths: list[Path]) -> Answer:
    """Write a page about released files, by which a person decides whether to publish."""
    output: Path = options.output
    read = [*paths, *(options.ledger.files if options.ledger else ())]
    if output.resolve() in {path.resolve() for path in read}:
        return _refusal(output, "--output must be another file than those that are read.")
    if output.exists() and not options.overwrite:
        reason = f"there is a file {output} already: give --overwrite to replace it."
        return _refusal(output, reason)
    ledger = options.ledger and _ledger_of(options.ledger)
    frames = {str(path): _named_read(path) for path in paths}
    shown = {name: getattr(options, name) for name in ("title", "level", "percent", "changes")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPFrameWarning)  # each table that is altered is told below
        page = report(frames, ledger=ledger, **shown)
    at_the_door(looking=True).place(output).write_text(page, encoding="utf-8", newline="\n")
    checks = [
        answer_of(path, partial(_sound, path, frame, ledger)) for path, frame in frames.items()
    ]
    problems = tuple(f"{check.subject}: {check.problems[0]}" for check in checks if check.code)
    facts = {"tables": list(frames), "sound": not problems}
    code = max(check.code for check in checks)
    return Answer(str(output), f"{output}: written", facts, code, problems)


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


def look_at_ledger(options: argparse.Namespace, path: LedgerPlace) -> Answer:
    """Check a ledger and say what is spent; or make one."""
    names = ("epsilon", "delta", "discovery")
    amounts = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if reason := _wrong_options(options, path, amounts):
        return _refusal(path, reason)
    if options.lost is not None:
        return _give_up(options.lost, path)
    if options.void is not None:
        void_row(path.address, options.void)
    if options.create:
        ledger = Ledger.create(path.address, budget=Budget(**amounts), part=options.part)
    else:
        ledger = opened_ledger(path)
    status = ledger.last_status()
    lines = [str(status), *_fullest(status), *_voided(status), f"\nhead {status.log.head}"]
    return Answer(str(path), "\n".join(lines), state_of(ledger))


def _wrong_options(
    options: argparse.Namespace, path: LedgerPlace, amounts: Mapping[str, str]
) -> str:
    """Say what is wrong with the options of a ledger; empty: nothing is."""
    acts = (options.create, options.void is not None, options.lost is not None)
    homeless = [file.parent for file in path.files if not file.parent.is_dir()]
    if sum(acts) > 1:
        return "give one of --create, --void and --lost."
    if options.create != ("epsilon" in amounts) or (amounts and not options.create):
        return "--create goes with --epsilon, and with --delta for Gaussian noise."
    if options.create and path.exists():
        return "there is a file already: a ledger is made once, and opened by every run."
    if options.create and homeless:
        return f"there is no folder {homeless[0]}: make it first."
    if options.part is not None and not options.create:
        return "--part goes with --create."
    return ""


def _give_up(name: str, path: LedgerPlace) -> Answer:
    """Note that a run is lost, because a person says so."""
    ledger = opened_ledger(path)
    run = ledger.run_of(name)
    if run is None:
        return _refusal(path, f"there is no release {name!r}: nothing was noted.")
    ledger.note_lost(run.entry, who=user_name() or "somebody", why="said to be dead")
    words = f"{name!r} is given up: its amount stays spent, and its name is closed."
    return Answer(str(path), words, state_of(ledger))


def _fullest(status: BudgetStatus) -> list[str]:
    """Say which parts of the data have spent most, where each has a budget."""
    used = status.parts["used"].head(_MOST_PARTS)
    parts = [f"{visible(str(part))} {share:.1%}" for part, share in used.items()]
    return [f"Fullest    {', '.join(parts)}"] if parts else []


def _voided(status: BudgetStatus) -> list[str]:
    """Name the rows that nobody can read, and that count for nothing."""
    numbers = [mark.release_id for mark in status.log.marks if mark.what == "voided"]
    return [f"Void       entry {', '.join(numbers)}: cannot be read"] if numbers else []


def _refusal(path: Path | LedgerPlace, reason: str) -> Answer:
    return Answer(str(path), code=UNREADABLE, problems=(reason,))


def state_of(ledger: Ledger) -> dict[str, Any]:
    """Say for a program what is spent and what is left, as of the last look at the file."""
    status = ledger.last_status()
    names = ("used", "remaining_share", "remaining_epsilon", "remaining_mu")
    return {
        "ledger_id": ledger.ledger_id,
        "head": status.log.head,
        "part": ledger.part,
        "of_part": status.of_part,
        "budget": asdict(ledger.budget),
        **{name: getattr(status, name) for name in names},
        "releases": [_facts_of(entry, status.lost) for entry in status.entries],
    }


def _facts_of(entry: Entry, lost: Collection[str]) -> dict[str, Any]:
    facts = {name: getattr(entry, name) for name in ("release_id", "released_at", "name")}
    return {**facts, "lost": entry.release_id in lost}
