"""Commands that run a plan: preview and release."""

import argparse
import json
import shlex
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd

from dpframe.certificates.verify import certificate_of
from dpframe.engines.temporary import remove_leftovers
from dpframe.errors import AlreadyReleasedError, BudgetExceededError, DPFrameError, ReleaseError
from dpframe.jobs.answers import LEFT_OVER, SOUND, TOO_MUCH, UNREADABLE, Answer
from dpframe.jobs.file_commands import state_of
from dpframe.jobs.job import Job, Overrides, read_plan
from dpframe.jobs.output_files import not_there
from dpframe.jobs.released_files import opened_ledger
from dpframe.jobs.run_job import Done, Tried, is_used_up, not_made, preview_job, release_job

_PATIENCE = 20.0  # seconds in which a run that was started at the same time writes its files
_PAUSE = 0.1


def preview_plan(given: argparse.Namespace, path: Path) -> Answer:
    """Check a plan, and say what it would cost and how far off it would be."""
    job = _job(given, path)
    try:
        tried = preview_job(
            job, overwrite=given.overwrite, rows=given.rows, with_data=not given.without_data
        )
    except BudgetExceededError as error:
        raise BudgetExceededError(_refuse(job, error)) from None
    facts = {
        "name": job.options["name"],
        "fits": tried.fits,
        "outputs": json.loads(tried.table.reset_index().to_json(orient="records")),
        "files": {name: list(map(str, paths)) for name, paths in job.files.items()},
        "columns": sorted(tried.needed),
        "ledger": state_of(tried.ledger),
    }
    problems = _warnings(tried.warned)
    if not tried.fits:
        problems.append(_refuse(job, "the release does not fit in what is left of the budget"))
    code = SOUND if tried.fits else TOO_MUCH
    if absent := not_made(job):
        problems.append(f"warning: {absent}" if given.without_data else absent)
        code = code if given.without_data else max(code, UNREADABLE)
    return Answer(str(path), _words(job, tried), facts, code, tuple(problems))


def _words(job: Job, tried: Tried) -> str:
    places = [str(path) for paths in job.files.values() for path in paths]
    with pd.option_context("display.width", 200, "display.max_columns", 30):
        table = tried.table.to_string()
    there = "" if job.ledger.exists() else " (not made yet)"
    lines = [
        f"Release    {job.options['name']!r}",
        f"Reads      {_columns(tried)} of {_list_places(job.data.paths)}",
        f"Writes     {_list_places(places)}",
        f"Ledger     {job.ledger}{there}",
        repr(tried.ledger.status()),
        f"\n{table}\n",
        "Errors are those of noise: rows beyond the caps and clipped values come on top, which",
        "no interval shows; dpf.diagnose does, on the private data.",
    ]
    if "1 / rows" in set(tried.table["per"]):
        lines.append("Means and rates: divide by the rows of a group, or give --rows N.")
    return "\n".join(lines)


def _columns(tried: Tried) -> str:
    """Name the columns that are read, and what they hold."""
    kinds = {name: kind or tried.types.get(name) for name, kind in tried.needed.items()}
    return ", ".join(f"{name} ({kind})" if kind else name for name, kind in sorted(kinds.items()))


def release_plan(given: argparse.Namespace, path: Path) -> Answer:
    """Release what a plan asks for and write the files; say where they are."""
    job = _job(given, path)
    try:
        done = release_job(job, overwrite=given.overwrite)
    except AlreadyReleasedError as error:
        lost = _lost_for_good(job)
        if not lost:
            raise
        left = "left it in a folder dpframe-released-... or .dpframe-..., or still writes"
        why = f"{error} But {lost[0]} is not there: that run lost its result, {left}."
        raise ReleaseError(f"{why} {_under_another_name(job)}") from None
    except BudgetExceededError as error:
        raise BudgetExceededError(_refuse(job, error)) from None
    except ReleaseError as error:
        raise ReleaseError(f"{error} {_under_another_name(job)}") from None
    certificates = {name: certificate_of(frame) for name, frame in done.frames.items()}
    facts = {
        "name": job.options["name"],
        "release_id": next(iter(certificates.values())).releases[0].release_id,
        "digests": {name: one.digest for name, one in certificates.items()},
        "files": list(map(str, done.written)),
        "ledger": state_of(done.ledger),
    }
    words = [*(f"{file}: written" for file in done.written), str(done.ledger.last_status())]
    code = LEFT_OVER if done.failed else SOUND
    problems = (*_warnings(done.warned), *_lost(done))
    unsaved = _tables(done) if done.failed and done.saved is None else {}
    if done.failed:
        facts |= {"tables": unsaved} if unsaved else {"saved": str(done.saved)}
    return Answer(str(path), "\n".join(words), facts, code, problems, unsaved)


def _lost_for_good(job: Job) -> list[Path]:
    """List files that an earlier run did not write; one that started just now may still do so."""
    ends = time.monotonic() + (_PATIENCE if _was_charged_lately(job) else 0)
    while (lost := not_there(job)) and time.monotonic() < ends:
        time.sleep(_PAUSE)
    return lost


def _was_charged_lately(job: Job) -> bool:
    """Whether anything was released so lately that its files may not be written yet."""
    try:
        last = max(entry.released_at for entry in opened_ledger(job.ledger).last_status().entries)
    except (DPFrameError, OSError):  # what is known already is not to be forgotten
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(last)
    return age < timedelta(seconds=_PATIENCE)


def _refuse(job: Job, why: object) -> str:
    """Say why a release does not fit; a ledger of which nothing is left stays as it is."""
    if not is_used_up(job):
        return str(why)
    used_up = "the release does not fit: this ledger is used up; its budget is fixed"
    another = "another ledger is another promise, and what people in both lose adds up"
    return f"{used_up}. {job.ledger} keeps its promise by allowing nothing more; {another}."


def _under_another_name(job: Job) -> str:
    """Say how a release is made although its name is taken."""
    name = shlex.quote(f"{job.options['name']} b")
    return f"To spend once more and release again, give another name: --name {name}."


def _warnings(warned: Sequence[str]) -> list[str]:
    return [f"warning: {one}" for one in warned]


def _lost(done: Done) -> list[str]:
    """Say which files could not be written, and where the releases are."""
    if not done.failed:
        return []
    problems = [f"{path} was not written: {why}" for _, path, why in done.failed]
    where = f"in {done.saved}" if done.saved else "printed as JSON: keep that"
    again = "the amount is spent, and a second run would spend again"
    return [*problems, f"{again}: the releases are {where}."]


def _tables(done: Done) -> dict[str, object]:
    """Return releases as CSV texts with their certificates, where no file can be written."""
    return {
        name: {"csv": frame.to_csv(), "certificate": certificate_of(frame).to_dict()}
        for name, frame in done.frames.items()
    }


def _job(given: argparse.Namespace, path: Path) -> Job:
    """Read a plan with what the command line says in its place; first of all, tidy up."""
    remove_leftovers()
    if not path.is_file():
        raise FileNotFoundError("there is no such file, or it is none.")
    replaced = (dict(given.set), tuple(given.data), given.name, given.note)
    return read_plan(path, Overrides(*replaced, given.allow_imports))


def _list_places(places: object) -> str:
    return ", ".join(map(str, places))  # type: ignore[call-overload]
