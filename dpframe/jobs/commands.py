"""The commands of `dpframe`: look at released files and ledgers, and run plans."""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pandas as pd

from dpframe.arguments import visible
from dpframe.cells.record import certificate_of
from dpframe.certificates.certificate import TEST
from dpframe.context import at_the_door
from dpframe.engines.batches import remove_leftovers
from dpframe.errors import (
    BudgetExceededError,
    DPFrameError,
    PlanFileError,
    QueryError,
    ReleaseError,
)
from dpframe.frozen import frozen
from dpframe.jobs import answers
from dpframe.jobs.answers import LEFT_OVER, SOUND, TESTED, TOO_MUCH, UNREADABLE, Answer
from dpframe.jobs.file_commands import look_at_ledger, report_files, show, state_of, verify_file
from dpframe.jobs.job import Job, Overrides, read_plan
from dpframe.jobs.output_files import any_file_is_there
from dpframe.jobs.output_paths import LedgerPlace, ledger_place, without_certificates
from dpframe.jobs.run_job import (
    PATIENCE,
    Done,
    Tried,
    diagnose_job,
    is_used_up,
    not_made,
    preview_job,
    release_job,
    start_of,
)
from dpframe.jobs.stopping import Stage, Stops, stoppable
from dpframe.ledger.leases import MOST_AGAIN, StartStep
from dpframe.ledger.ledger import Ledger
from dpframe.operations.tables import PER_ROWS

_LEAST = 10.0  # seconds that a ledger has to answer: without any, none could be read
_LONGEST = 86_400.0  # seconds: a day, after which a schedule starts it anew
_CODES = """\
exit codes:
  0    sound: files are what was released, the ledger is intact, the job is done
  1    altered, without certificate, or not in the ledger
  2    not readable or not usable: a file, a plan, an option; nowhere to print; a preview
       where the ledger is not made yet; nothing was spent
  3    the release does not fit in what is left of the budget; nothing was spent
  4    a release of this name is in the ledger; nothing was spent
  5    the amount is spent, now or by an earlier run of this name, but a file, or what was to
       be printed, is not where it should be
  75   not now: another start of this run is at work, others keep the ledger, or a disk is
       full; nothing is lost, try again
  78   done inside a testing block of dpframe.testing: nothing of it is real
  129  hung up, by SIGHUP; 130 interrupted, by Ctrl-C; 143 terminated, by SIGTERM; 152 out of
       processor time, by SIGXCPU: nothing was spent, or a line says that all files are written,
       or that the same run begins again for nothing
"""


@frozen(slots=True)
class Command:
    """One command."""

    about: str  # what it does, in a line
    # does it for one file, or for all together
    run: Callable[[argparse.Namespace, Any], Answer]
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None  # adds its own options
    several: bool = False  # whether it takes several files, one by one
    together: bool = False  # whether it takes several files at once
    alone: bool = False  # whether it takes none


def main(arguments: Sequence[str] | None = None, *, leaving: bool = False) -> int:
    """Run a command and return its exit code.

    0: sound, or done. 1: a file is not what was released, there is no certificate, or the release
    is not in the ledger given. 2: something cannot be read or used, or what is said cannot be
    written. 3: a release does not fit in the budget. 4: it was made before. 5: it was charged, now
    or before, but not written or said as it should be. 75: another start is at work, others keep
    the ledger, or a disk is full. 78: it was done, inside a testing block. 128 and the number of a
    signal: it was stopped by that.
    """
    answers.forget_hidden()
    with stoppable(leaving=leaving) as stops:
        try:
            code = _ran(arguments)
            stops.over = True
            if code == SOUND and at_the_door(looking=True).is_test:
                answers.say(TEST, sys.stderr)
                return TESTED
        except KeyboardInterrupt:
            stops.over = True
            answers.say(stops.words, sys.stderr)
            return stops.code
        except Exception as error:  # too little memory, for instance, while answers are printed
            stops.over = True
            answers.say(f"dpframe: {type(error).__name__}", sys.stderr)
            code = UNREADABLE
        return _settle_code(code, stops)


@contextmanager
def _lines(given: argparse.Namespace, name: str) -> Iterator[Callable[[], None]]:
    """Write a line when a run begins and one when it ends, for a log: a terminal shows bars."""
    began: list[float] = []

    def begin() -> None:
        began.append(time.monotonic())
        write("begins")

    def write(words: str) -> None:
        if given.quiet or _is_terminal(sys.stderr):
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = visible(answers.without_hidden(f"{now} {given.file}, {name!r}: {words}"))
        # a stream may be closed or none, and what is wrong with the run be written nevertheless
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    try:
        yield begin
    finally:
        if began:
            write(f"ends after {time.monotonic() - began[0]:.1f} s")


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def _settle_code(code: int, stops: Stops) -> int:
    """Choose an exit code that does not deny what was spent, nor that somebody ended the job."""
    if stops.stage is Stage.UNSPENT or code == LEFT_OVER:
        return code
    if stops.stage is Stage.WRITTEN and code == SOUND:
        if stops.number is None:
            return code
        answers.say(stops.words, sys.stderr)
        return stops.code
    files = "all files are written" if stops.stage is Stage.WRITTEN else "files may be missing"
    answers.say(f"the amount is spent, and {files}.", sys.stderr)
    return LEFT_OVER


def _ran(arguments: Sequence[str] | None) -> int:
    """Run a command and say what came of it."""
    given = _parse_command(arguments)
    command = COMMANDS[given.command]
    if command.alone:
        found = [answers.answer_of(given.command, partial(command.run, given, None))]
    elif command.together:
        found = [answers.answer_of(str(given.output), partial(command.run, given, given.files))]
    else:
        files = without_certificates(given.files) if command.several else [given.file]
        found = [answers.answer_of(str(file), partial(command.run, given, file)) for file in files]
    options = {"as_json": given.json, "quiet": given.quiet, "as_list": command.several}
    return answers.print_answers(found, **options)


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        wrong = f"{self.prog}: {answers.one_line(message)}; see {self.prog} --help\n"
        self.exit(UNREADABLE, wrong)


def _parse_command(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command; what the parser prints must be written, too."""
    about = "Look at released files and ledgers, and run plans of releases."
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="dpframe", description=about, epilog=_CODES, formatter_class=raw, allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        one = commands.add_parser(
            name, help=command.about, description=command.about, allow_abbrev=False
        )
        if command.several or command.together:
            one.add_argument("files", type=_path, nargs="+", metavar="FILE")
        elif not command.alone:
            kind = _ledger if name == "ledger" else _path
            one.add_argument("file", type=kind, metavar="FILE")
        one.add_argument("--json", action="store_true", help="print facts for a program")
        one.add_argument("--quiet", action="store_true", help="print nothing but what is wrong")
        command.options(one)
    try:
        return parser.parse_args(arguments)
    except SystemExit as done:
        written = answers.is_written("", sys.stderr if done.code else sys.stdout)
        sys.exit(done.code if written else UNREADABLE)


def _nonempty(text: str) -> str:
    """Read an argument; an empty one would name the folder one is in."""
    if not text:
        raise argparse.ArgumentTypeError("must be the path of a file, got ''")
    return text


def _path(text: str) -> Path:
    return Path(_nonempty(text))


def _ledger(text: str) -> LedgerPlace:
    return ledger_place(_nonempty(text))


def _setting(text: str) -> tuple[str, str]:
    name, equal, value = text.partition("=")
    if not (equal and value and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def _check_options(parser: argparse.ArgumentParser) -> None:
    also = "check also that this ledger was charged for the releases"
    parser.add_argument("--ledger", type=_ledger, metavar="PATH", help=also)


def _report_options(parser: argparse.ArgumentParser) -> None:
    _check_options(parser)
    parser.add_argument(
        "--output", type=_path, required=True, metavar="PATH", help="the page to write"
    )
    parser.add_argument("--title", default="Release report", help="what stands above the page")
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals; 0.95")
    parser.add_argument("--percent", action="store_true", help="show percentages, too")
    changes = "show each table beside the one before it, too"
    parser.add_argument("--changes", action="store_true", help=changes)
    parser.add_argument("--overwrite", action="store_true", help="replace a page that is there")


def _ledger_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--create", action="store_true", help="make a ledger in a new file")
    for name, about in (
        ("epsilon", "of the whole budget, with --create"),
        ("delta", "of the whole budget, with --create; 0 where it is not given"),
        ("discovery", "part of delta that is kept for groups that are not known"),
    ):
        parser.add_argument(f"--{name}", metavar="AMOUNT", help=about)
    number = "let entry N, which cannot be read and is no charge, count for nothing"
    parser.add_argument("--void", type=int, metavar="N", help=number)
    of_part = "with --create: a column whose every value has that budget"
    parser.add_argument("--part", metavar="COLUMN", help=of_part)
    lost = "give up the release NAME, which drew noise and died before that was kept"
    parser.add_argument("--lost", metavar="NAME", help=lost)


def _release_options(parser: argparse.ArgumentParser) -> None:
    _plan_options(parser)
    waits = f"wait so long for another start of this run, or for its ledger; {PATIENCE:g}"
    parser.add_argument(
        "--patience", type=_seconds, default=PATIENCE, metavar="SECONDS", help=waits
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST:
        rule = f"must be seconds from 0 to {_LONGEST:,.0f}, got {text!r}"
        raise argparse.ArgumentTypeError(rule)
    return seconds


def _plan_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _reading_options(parser)
    add("--overwrite", action="store_true", help="replace files that are there")


def _diagnose_options(parser: argparse.ArgumentParser) -> None:
    _reading_options(parser)
    private = "print exact private numbers to a file or a pipe, which nobody else can read"
    parser.add_argument("--private", action="store_true", help=private)


def _reading_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    several: dict[str, Any] = {"action": "append", "default": []}
    value = "what {NAME} stands for in the plan"
    add("--set", type=_setting, metavar="NAME=VALUE", help=value, **several)
    add("--data", type=_nonempty, metavar="PATH", help="in place of data.path", **several)
    add("--name", help="in place of release.name")
    add("--note", help="in place of release.note")
    allowed = "let the plan import a schema from a module, which runs its code"
    add("--allow-imports", action="store_true", help=allowed)


def _rehearse_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    folder = "the folder that all is written into, which has nothing of the plan"
    add("--output", type=_path, required=True, metavar="FOLDER", help=folder)
    add(
        "--rows", type=int, default=1000, metavar="N", help="how many rows are made up in all; 1000"
    )
    add("--seed", type=int, default=0, metavar="N", help="another one makes other rows and noise")
    add("--nasty", action="store_true", help="make up missing and odd values, too")
    _plan_options(parser)


def _preview_options(parser: argparse.ArgumentParser) -> None:
    _plan_options(parser)
    shown = "show errors of means in groups of so many rows each"
    parser.add_argument("--rows", type=float, metavar="N", help=shown)
    absent = "open no file of the data: take the columns that the plan names for granted"
    parser.add_argument("--without-data", action="store_true", help=absent)


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
        "ledger": state_of(_of_part(job, tried.ledger)),
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
    there = "" if job.ledger.exists() else " (not made yet)"
    kinds = sorted(tried.needed.items())
    columns = [f"{name} ({kind})" if kind else name for name, kind in kinds]
    lines = [
        f"Release    {job.options['name']!r}",
        f"Reads      {', '.join(columns)} of {', '.join(map(str, job.data.places))}",
        f"Writes     {', '.join(places)}",
        f"Ledger     {job.ledger}{there}",
        repr(_of_part(job, tried.ledger).status()),
        f"\n{_table_text(tried)}\n",
        "Errors are those of noise: rows beyond the caps and clipped values come on top, which",
        "no interval shows; dpframe diagnose does, on the private data.",
    ]
    for per in sorted(PER_ROWS.intersection(tried.table.get("per", ()))):
        size = per.removeprefix("1 / ")
        lines.append(f'Where per is "{per}": divide by the {size} of a group, or give --rows N.')
    return "\n".join(lines)


def _table_text(tried: Tried) -> str:
    with pd.option_context("display.width", 200, "display.max_columns", 30):
        return tried.table.to_string()


_PRIVATE = "NOT FOR PUBLICATION: exact numbers of the private rows. Nothing was charged."


def diagnose_plan(given: argparse.Namespace, path: Path) -> Answer:
    """Read the rows of a plan, and say in exact numbers what it leaves out."""
    if not (given.private or _is_terminal(sys.stdout)):
        reason = "diagnose prints exact private numbers, and standard output is no terminal."
        raise QueryError(f"{reason} Add --private if nobody else can read what it is.")
    found = diagnose_job(_job(given, path))
    lines = [_PRIVATE]
    for name, diagnosis in found.items():
        lines += ["", name, *_in_lines(diagnosis)]
    tables = {
        name: json.loads(one.reset_index().to_json(orient="records")) for name, one in found.items()
    }
    return Answer(str(path), "\n".join(lines), {"private": _PRIVATE, "diagnoses": tables})


def _in_lines(diagnosis: pd.DataFrame) -> list[str]:
    """Show a diagnosis: rows, their share and what they are, hints below."""
    lines = []
    above = None
    for line in diagnosis.reset_index().to_dict("records"):
        if line["part"] != above:
            above = line["part"]
            lines.append(f"  {above}")
        lines.append(f"  {line['rows']:>12,} {line['share']:>7.1%}  {line['step']}")
        if line["hint"]:
            lines.append(f"  {'':22}{line['hint']}")
    return lines


def release_plan(given: argparse.Namespace, path: Path) -> Answer:
    """Release what a plan asks for and write the files; say where they are."""
    job = _job(given, path)
    try:
        place = replace(job.ledger, patience=max(given.patience, _LEAST))
        job = replace(job, ledger=place)
        with _lines(given, job.options["name"]) as begin:
            options = {"overwrite": given.overwrite, "patience": given.patience}
            done = release_job(job, begin=begin, **options)
    except BudgetExceededError as error:
        raise BudgetExceededError(_refuse(job, error)) from None
    except ReleaseError as error:
        raise ReleaseError(f"{error} {_how_to_go_on(job)}".rstrip()) from None
    certificates = {name: certificate_of(frame) for name, frame in done.frames.items()}
    ledger = _of_part(job, done.ledger)
    facts = {
        "name": job.options["name"],
        "release_id": next(iter(certificates.values())).releases[0].release_id,
        "digests": {name: one.digest for name, one in certificates.items()},
        "files": list(map(str, done.files.written)),
        "ledger": state_of(ledger),
    }
    words = [*(f"{file}: written" for file in done.files.written), str(ledger.last_status())]
    all_there, kept = done.published.written.all_there, done.published.spool
    code = SOUND if all_there else LEFT_OVER
    problems = (*_warnings(done.warned), *_lost(done))
    unsaved = {} if all_there or kept else _tables(done)
    if not all_there:
        facts |= {"tables": unsaved} if unsaved else {"saved": str(kept)}
    return Answer(str(path), "\n".join(words), facts, code, problems, unsaved)


def _of_part(job: Job, ledger: Ledger) -> Ledger:
    """Return a ledger as one part of the data sees it, where a job reads and spends of one."""
    part = job.options["part"]
    return ledger if part is None else ledger.of_part(part)


def _how_to_go_on(job: Job) -> str:
    """Say how a release is made that was charged, and is not where it should be."""
    try:
        start = start_of(job)
        seen = start.look()
        lost = start.is_lost(seen)
    except (DPFrameError, OSError):
        again = "Once the ledger can be read, run it again as it is"
        return f"{again}: if no noise was drawn, nothing is charged."
    if lost:
        name = f"{job.options['name']} b"
        advice = f"--name {shlex.quote(name)}"
        if any_file_is_there(job):
            advice = f"{advice} --overwrite"
        return f"To spend once more and release again, give another name: {advice}."
    if seen.step not in (StartStep.BEGIN, StartStep.TAKE_OVER):
        return ""
    epoch = 0 if seen.run is None else seen.run.state.epoch
    left = f"{MOST_AGAIN - epoch} more time{'s' * (epoch + 1 < MOST_AGAIN)}"
    again = "run it again as it is, for which nothing is charged"
    return f"No noise was drawn: {again}, {left}."


def _refuse(job: Job, why: object) -> str:
    """Say why a release does not fit; a ledger of which nothing is left stays as it is."""
    if not is_used_up(job):
        return str(why)
    part = job.options["part"]
    whose = "this ledger" if part is None else f"the budget of part={part!r}"
    used_up = f"the release does not fit: {whose} is used up; its budget is fixed"
    another = "another ledger is another promise, and what people in both lose adds up"
    return f"{used_up}. {job.ledger} keeps its promise by allowing nothing more; {another}."


def _warnings(warned: Sequence[str]) -> list[str]:
    return [f"warning: {one}" for one in warned]


def _lost(done: Done) -> list[str]:
    """Say which files could not be written, and where the releases are."""
    if done.published.written.all_there:
        return []
    problems = [f"{path} was not written: {reason}" for _, path, reason in done.files.failed]
    kept = done.published.spool
    if kept is None:
        return [*problems, "the amount is spent: the releases are printed as JSON: keep that."]
    remedy = "run it again as it is, for which nothing is charged"
    return [*problems, f"the amount is spent, and the releases are kept in {kept}: {remedy}."]


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
    values = dict(given.set)
    for name, value in given.set:
        if values[name] != value:
            twice = f"{name} is set twice, {name}={value} and {name}={values[name]}"
            raise PlanFileError(f"--set: {twice}; give it once.")
    return read_plan(
        path, Overrides(values, tuple(given.data), given.name, given.note, given.allow_imports)
    )


def rehearse_plan(given: argparse.Namespace, path: Path) -> Answer:
    """Run a plan on made-up rows, and say what was written."""
    from dpframe.jobs.rehearse import MadeUp, rehearse_job  # needs what tests need

    job = _job(given, path)
    made = MadeUp(given.rows, given.seed, given.nasty)
    done = rehearse_job(job, given.output, made, overwrite=given.overwrite)
    facts = {
        "name": job.options["name"],
        "test": True,
        "fits": done.tried.fits,
        "outputs": json.loads(done.tried.table.reset_index().to_json(orient="records")),
        "files": list(map(str, done.written)),
    }
    problems = [*_warnings(done.tried.warned), *done.problems]
    if not done.tried.fits:
        problems.append("the release does not fit in the whole budget of the plan")
        return Answer(str(path), "", facts, TOO_MUCH, tuple(problems))
    words = [
        f"TEST       {given.rows:,} made-up rows; no data were read, and nothing was spent",
        f"Release    {job.options['name']!r}",
        f"\n{_table_text(done.tried)}\n",
        *(f"{file}: written" for file in done.written),
    ]
    code = UNREADABLE if done.problems else SOUND
    return Answer(str(path), "\n".join(words), facts, code, tuple(problems))


def print_schema(_: argparse.Namespace, __: object) -> Answer:
    """Print the JSON Schema of plans, for editors."""
    from dpframe.jobs.plan_models import plan_schema  # pydantic is slow to import

    schema = plan_schema()
    return Answer("schema", json.dumps(schema, indent=1), {"schema": schema})


COMMANDS: dict[str, Command] = {
    "show": Command("print certificate and table of a released file", show),
    "verify": Command(
        "check released files against their certificates", verify_file, _check_options, several=True
    ),
    "ledger": Command(
        "check a ledger and print what is spent and left; or make one",
        look_at_ledger,
        _ledger_options,
    ),
    "report": Command(
        "write a page about released files, to decide by",
        report_files,
        _report_options,
        together=True,
    ),
    "preview": Command(
        "check a plan and print cost and errors; reads no rows and spends nothing",
        preview_plan,
        _preview_options,
    ),
    "diagnose": Command(
        "print where a plan leaves private rows out, for the curator alone; spends nothing",
        diagnose_plan,
        _diagnose_options,
    ),
    "rehearse": Command(
        "run a plan on made-up rows and write all into a folder, marked TEST; spends nothing",
        rehearse_plan,
        _rehearse_options,
    ),
    "release": Command(
        "release what a plan asks for, and write the files", release_plan, _release_options
    ),
    "schema": Command("print the JSON Schema of plan files, for editors", print_schema, alone=True),
}
"""All commands, by name."""
