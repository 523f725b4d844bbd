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
from typing import Any, Literal, NoReturn, TextIO, assert_never

import pandas as pd

from dpframe import errors
from dpframe.arguments import visible
from dpframe.cells.record import certificate_of
from dpframe.certificates.certificate import TEST
from dpframe.context import at_the_door
from dpframe.engines.batches import remove_leftovers
from dpframe.frozen import frozen
from dpframe.jobs import answers, run_job
from dpframe.jobs.answers import LEFT_OVER, SOUND, TESTED, TOO_MUCH, UNREADABLE, Answer
from dpframe.jobs.file_commands import look_at_ledger, report_files, show, state_of, verify_file
from dpframe.jobs.job import Job, Overrides, read_plan
from dpframe.jobs.output_files import any_file_is_there
from dpframe.jobs.output_paths import LedgerPlace, ledger_place, without_certificates
from dpframe.jobs.stopping import RUN_AGAIN, Stage, Stops, stoppable
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

    summary: str  # what it does, in a line
    run: Callable[[argparse.Namespace, Any], Answer]
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None  # adds its own options
    takes: Literal["a file", "files one by one", "files at once", "nothing"] = "a file"


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
            code = _run_command(arguments)
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
def _lines(options: argparse.Namespace, name: str) -> Iterator[Callable[[], None]]:
    """Write a line when a run begins and one when it ends, for a log: a terminal shows bars."""
    began: list[float] = []

    def begin() -> None:
        began.append(time.monotonic())
        write("begins")

    def write(words: str) -> None:
        if options.quiet or _is_terminal(sys.stderr):
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = visible(answers.without_hidden(f"{now} {options.file}, {name!r}: {words}"))
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
    files = "files may be missing"
    if stops.stage is Stage.WRITTEN:
        if code == SOUND and stops.number is None:
            return code
        if code == SOUND:
            answers.say(stops.words, sys.stderr)
            return stops.code
        files = "all files are written"
    answers.say(f"the amount is spent, and {files}.", sys.stderr)
    return LEFT_OVER


def _run_command(arguments: Sequence[str] | None) -> int:
    """Run a command and say what came of it."""
    options = _parse_command(arguments)
    command = COMMANDS[options.command]
    subjects: list[tuple[object, Any]]
    match command.takes:
        case "a file":
            subjects = [(options.file, options.file)]
        case "files one by one":
            subjects = [(file, file) for file in without_certificates(options.files)]
        case "files at once":
            subjects = [(options.output, options.files)]
        case "nothing":
            subjects = [(options.command, None)]
        case _:
            assert_never(command.takes)
    answered = [
        answers.answer_of(str(subject), partial(command.run, options, files))
        for subject, files in subjects
    ]
    as_list = command.takes == "files one by one"
    return answers.print_answers(
        answered, as_json=options.json, quiet=options.quiet, as_list=as_list
    )


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        wrong = f"{self.prog}: {answers.one_line(message)}; see {self.prog} --help\n"
        self.exit(UNREADABLE, wrong)


def _parse_command(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command; what the parser prints must be written, too."""
    parser = _Parser(
        prog="dpframe",
        description="Look at released files and ledgers, and run plans of releases.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        summary = command.summary
        subparser = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        add = subparser.add_argument
        if command.takes == "a file":
            add("file", type=_ledger if name == "ledger" else _path, metavar="FILE")
        elif command.takes != "nothing":
            add("files", type=_path, nargs="+", metavar="FILE")
        add("--json", action="store_true", help="print facts for a program")
        add("--quiet", action="store_true", help="print nothing but what is wrong")
        command.options(subparser)
    try:
        return parser.parse_args(arguments)
    except SystemExit as end:
        written = answers.is_written("", sys.stderr if end.code else sys.stdout)
        sys.exit(end.code if written else UNREADABLE)


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
    add = parser.add_argument
    _check_options(parser)
    add("--output", type=_path, required=True, metavar="PATH", help="the page to write")
    add("--title", default="Release report", help="what stands above the page")
    add("--level", type=float, default=0.95, help="of the intervals; 0.95")
    add("--percent", action="store_true", help="show percentages, too")
    add("--changes", action="store_true", help="show each table beside the one before it, too")
    add("--overwrite", action="store_true", help="replace a page that is there")


def _ledger_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--create", action="store_true", help="make a ledger in a new file")
    add("--epsilon", metavar="AMOUNT", help="of the whole budget, with --create")
    delta = "of the whole budget, with --create; 0 where it is not given"
    add("--delta", metavar="AMOUNT", help=delta)
    discovery = "part of delta that is kept for groups that are not known"
    add("--discovery", metavar="AMOUNT", help=discovery)
    number = "let entry N, which cannot be read and is no charge, count for nothing"
    add("--void", type=int, metavar="N", help=number)
    column = "with --create: a column whose every value has that budget"
    add("--part", metavar="COLUMN", help=column)
    lost = "give up the release NAME, which drew noise and died before that was kept"
    add("--lost", metavar="NAME", help=lost)


def _release_options(parser: argparse.ArgumentParser) -> None:
    _plan_options(parser)
    waits = f"wait so long for another start of this run, or for its ledger; {run_job.PATIENCE:g}"
    options: dict[str, Any] = {"type": _seconds, "default": run_job.PATIENCE, "help": waits}
    parser.add_argument("--patience", metavar="SECONDS", **options)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        seconds = float(text)
        if 0 <= seconds <= _LONGEST:
            return seconds
    rule = f"must be seconds from 0 to {_LONGEST:,.0f}, got {text!r}"
    raise argparse.ArgumentTypeError(rule)


def _plan_options(parser: argparse.ArgumentParser) -> None:
    _reading_options(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")


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
    rows = "how many rows are made up in all; 1000"
    add("--rows", type=int, default=1000, metavar="N", help=rows)
    add("--seed", type=int, default=0, metavar="N", help="another one makes other rows and noise")
    add("--nasty", action="store_true", help="make up missing and odd values, too")
    _plan_options(parser)


def _preview_options(parser: argparse.ArgumentParser) -> None:
    _plan_options(parser)
    shown = "show errors of means in groups of so many rows each"
    parser.add_argument("--rows", type=float, metavar="N", help=shown)
    absent = "open no file of the data: take the columns that the plan names for granted"
    parser.add_argument("--without-data", action="store_true", help=absent)


def preview_plan(options: argparse.Namespace, path: Path) -> Answer:
    """Check a plan, and say what it would cost and how far off it would be."""
    job = _job(options, path)
    with_data = not options.without_data
    try:
        tried = run_job.preview_job(
            job, overwrite=options.overwrite, rows=options.rows, with_data=with_data
        )
    except errors.BudgetExceededError as error:
        raise errors.BudgetExceededError(_refuse(job, error)) from None
    facts = {
        **_facts(job, tried),
        "files": {name: list(map(str, paths)) for name, paths in job.files.items()},
        "columns": sorted(tried.needed),
        "ledger": state_of(_of_part(job, tried.ledger)),
    }
    problems = _warnings(tried.warned)
    code = SOUND
    if not tried.fits:
        code = TOO_MUCH
        problems.append(_refuse(job, "the release does not fit in what is left of the budget"))
    absent = run_job.not_made(job)
    if absent and with_data:
        code = max(code, UNREADABLE)
        problems.append(absent)
    elif absent:
        problems.append(f"warning: {absent}")
    return Answer(str(path), _words(job, tried, absent), facts, code, tuple(problems))


def _facts(job: Job, tried: run_job.Tried) -> dict[str, Any]:
    outputs = json.loads(tried.table.reset_index().to_json(orient="records"))
    return {"name": job.options["name"], "fits": tried.fits, "outputs": outputs}


def _words(job: Job, tried: run_job.Tried, absent: str) -> str:
    places = [str(path) for paths in job.files.values() for path in paths]
    kinds = sorted(tried.needed.items())
    columns = [f"{name} ({kind})" if kind else name for name, kind in kinds]
    lines = [
        f"Release    {job.options['name']!r}",
        f"Reads      {', '.join(columns)} of {', '.join(map(str, job.data.places))}",
        f"Writes     {', '.join(places)}",
        f"Ledger     {job.ledger}{' (not made yet)' * bool(absent)}",
        repr(_of_part(job, tried.ledger).status()),
        f"\n{_table_text(tried)}\n",
        "Errors are those of noise: rows beyond the caps and clipped values come on top, which",
        "no interval shows; dpframe diagnose does, on the private data.",
    ]
    for per in sorted(PER_ROWS.intersection(tried.table.get("per", ()))):
        size = per.removeprefix("1 / ")
        lines.append(f'Where per is "{per}": divide by the {size} of a group, or give --rows N.')
    return "\n".join(lines)


def _table_text(tried: run_job.Tried) -> str:
    with pd.option_context("display.width", 200, "display.max_columns", 30):
        return tried.table.to_string()


_PRIVATE = "NOT FOR PUBLICATION: exact numbers of the private rows. Nothing was charged."


def diagnose_plan(options: argparse.Namespace, path: Path) -> Answer:
    """Read the rows of a plan, and say in exact numbers what it leaves out."""
    if not (options.private or _is_terminal(sys.stdout)):
        reason = "diagnose prints exact private numbers, and standard output is no terminal."
        raise errors.QueryError(f"{reason} Add --private if nobody else can read what it is.")
    lines = [_PRIVATE]
    tables = {}
    for name, diagnosis in run_job.diagnose_job(_job(options, path)).items():
        lines += ["", name, *_in_lines(diagnosis)]
        tables[name] = json.loads(diagnosis.reset_index().to_json(orient="records"))
    return Answer(str(path), "\n".join(lines), {"private": _PRIVATE, "diagnoses": tables})


def _in_lines(diagnosis: pd.DataFrame) -> list[str]:
    """Show a diagnosis: rows, their share and what they are, hints below."""
    lines = []
    for part, table in diagnosis.reset_index().groupby("part", sort=False):
        lines.append(f"  {part}")
        for row in table.itertuples():
            lines.append(f"  {row.rows:>12,} {row.share:>7.1%}  {row.step}")
            lines += [f"  {'':22}{row.hint}"] * bool(row.hint)
    return lines


def release_plan(options: argparse.Namespace, path: Path) -> Answer:
    """Release what a plan asks for and write the files; say where they are."""
    job = _job(options, path)
    try:
        place = replace(job.ledger, patience=max(options.patience, _LEAST))
        job = replace(job, ledger=place)
        with _lines(options, job.options["name"]) as begin:
            done = run_job.release_job(
                job, overwrite=options.overwrite, begin=begin, patience=options.patience
            )
    except errors.BudgetExceededError as error:
        raise errors.BudgetExceededError(_refuse(job, error)) from None
    except errors.ReleaseError as error:
        raise errors.ReleaseError(f"{error} {_how_to_go_on(job)}".rstrip()) from None
    certificates = {name: certificate_of(frame) for name, frame in done.frames.items()}
    ledger = _of_part(job, done.ledger)
    facts = {
        "name": job.options["name"],
        "release_id": next(iter(certificates.values())).releases[0].release_id,
        "digests": {name: record.digest for name, record in certificates.items()},
        "files": list(map(str, done.published.files.written)),
        "ledger": state_of(ledger),
    }
    words = [*_written(done.published.files.written), str(ledger.last_status())]
    problems = (*_warnings(done.warned), *_lost(done))
    answer = Answer(str(path), "\n".join(words), facts, SOUND, problems)
    if done.published.files.all_there:
        return answer
    if done.published.spool is not None:
        facts["saved"] = str(done.published.spool)
        return replace(answer, code=LEFT_OVER)
    facts["tables"] = _tables(done)
    return replace(answer, code=LEFT_OVER, unsaved=facts["tables"])


def _written(files: Sequence[Path]) -> list[str]:
    return [f"{file}: written" for file in files]


def _of_part(job: Job, ledger: Ledger) -> Ledger:
    """Return a ledger as one part of the data sees it, where a job reads and spends of one."""
    part = job.options["part"]
    return ledger if part is None else ledger.of_part(part)


def _how_to_go_on(job: Job) -> str:
    """Say how a release is made that was charged, and is not where it should be."""
    try:
        start = run_job.start_of(job)
        seen = start.look()
        lost = start.is_lost(seen)
    except (errors.DPFrameError, OSError):
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
    return f"No noise was drawn: {RUN_AGAIN}, {left}."


def _refuse(job: Job, reason: object) -> str:
    """Say why a release does not fit; a ledger of which nothing is left stays as it is."""
    if not run_job.is_used_up(job):
        return str(reason)
    part = job.options["part"]
    whose = "this ledger" if part is None else f"the budget of part={part!r}"
    used_up = f"the release does not fit: {whose} is used up; its budget is fixed"
    another = "another ledger is another promise, and what people in both lose adds up"
    return f"{used_up}. {job.ledger} keeps its promise by allowing nothing more; {another}."


def _warnings(warned: Sequence[str]) -> list[str]:
    return [f"warning: {text}" for text in warned]


def _lost(done: run_job.Done) -> list[str]:
    """Say which files could not be written, and where the releases are."""
    files, spool = done.published.files, done.published.spool
    if files.all_there:
        return []
    if spool is None:
        advice = "the amount is spent: the releases are printed as JSON: keep that."
    else:
        advice = f"the amount is spent, and the releases are kept in {spool}: {RUN_AGAIN}."
    return [*files.problems, advice]


def _tables(done: run_job.Done) -> dict[str, object]:
    """Return releases as CSV texts with their certificates, where no file can be written."""
    return {
        name: {"csv": frame.to_csv(), "certificate": certificate_of(frame).to_dict()}
        for name, frame in done.frames.items()
    }


def _job(options: argparse.Namespace, path: Path) -> Job:
    """Read a plan with what the command line says in its place; first of all, tidy up."""
    remove_leftovers()
    if not path.is_file():
        raise FileNotFoundError("there is no such file, or it is none.")
    values = dict(options.set)
    for name, value in options.set:
        if values[name] != value:
            twice = f"{name} is set twice, {name}={value} and {name}={values[name]}"
            raise errors.PlanFileError(f"--set: {twice}; give it once.")
    return read_plan(
        path,
        Overrides(values, tuple(options.data), options.name, options.note, options.allow_imports),
    )


def rehearse_plan(options: argparse.Namespace, path: Path) -> Answer:
    """Run a plan on made-up rows, and say what was written."""
    from dpframe.jobs.rehearse import MadeUp, rehearse_job  # needs what tests need

    job = _job(options, path)
    made_up = MadeUp(options.rows, options.seed, options.nasty)
    done = rehearse_job(job, options.output, made_up, overwrite=options.overwrite)
    facts = {**_facts(job, done.tried), "test": True, "files": list(map(str, done.written))}
    problems = [*_warnings(done.tried.warned), *done.problems]
    if not done.tried.fits:
        problems.append("the release does not fit in the whole budget of the plan")
        return Answer(str(path), "", facts, TOO_MUCH, tuple(problems))
    words = [
        f"TEST       {options.rows:,} made-up rows; no data were read, and nothing was spent",
        f"Release    {job.options['name']!r}",
        f"\n{_table_text(done.tried)}\n",
        *_written(done.written),
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
        "check released files against their certificates",
        verify_file,
        _check_options,
        "files one by one",
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
        "files at once",
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
    "schema": Command(
        "print the JSON Schema of plan files, for editors", print_schema, takes="nothing"
    ),
}
"""All commands, by name."""
