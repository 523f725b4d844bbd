"""The commands of `dpframe`: look at released files and ledgers, and run plans."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from dpframe.jobs import answers
from dpframe.jobs.file_commands import look_at_ledger, report_files, show, verify_file
from dpframe.jobs.plan_commands import preview_plan, release_plan
from dpframe.jobs.released_files import without_certificates
from dpframe.jobs.stopping import Stage, Stops, stoppable

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
  75   not now: others keep the ledger, or a disk is full; nothing was spent, try again
  129  hung up, by SIGHUP; 130 interrupted, by Ctrl-C; 143 terminated, by SIGTERM; 152 out of
       processor time, by SIGXCPU: nothing was spent, or a line says that all files are written
"""


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    about: str  # what it does, in a line
    # does it for one file, or for all together
    run: Callable[[argparse.Namespace, Any], answers.Answer]
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None  # adds its own options
    several: bool = False  # whether it takes several files, one by one
    together: bool = False  # whether it takes several files at once


def main(arguments: Sequence[str] | None = None, *, leaving: bool = False) -> int:
    """Run a command and return its exit code.

    0: sound, or done. 1: a file is not what was released, there is no certificate, or the release
    is not in the ledger given. 2: something cannot be read or used, or what is said cannot be
    written. 3: a release does not fit in the budget. 4: it was made before. 5: it was charged, now
    or before, but not written or said as it should be. 75: others keep the ledger, or a disk is
    full. 128 and the number of a signal: it was stopped by that.
    """
    with stoppable(leaving=leaving) as stops:
        try:
            code = _ran(arguments)
            stops.over = True
        except KeyboardInterrupt:
            stops.over = True
            answers.say(stops.words, sys.stderr)
            return stops.code
        except Exception as error:  # too little memory, for instance, while answers are printed
            stops.over = True
            answers.say(f"dpframe: {type(error).__name__}", sys.stderr)
            code = answers.UNREADABLE
        return _settle_code(code, stops)


def _settle_code(code: int, stops: Stops) -> int:
    """Choose an exit code that does not deny what was spent, nor that somebody ended the job."""
    if stops.stage is Stage.UNSPENT or code == answers.LEFT_OVER:
        return code
    if stops.stage is Stage.WRITTEN and code == answers.SOUND:
        if stops.number is None:
            return code
        answers.say(stops.words, sys.stderr)
        return stops.code
    files = "all files are written" if stops.stage is Stage.WRITTEN else "files may be missing"
    answers.say(f"the amount is spent, and {files}.", sys.stderr)
    return answers.LEFT_OVER


def _ran(arguments: Sequence[str] | None) -> int:
    """Run a command and say what came of it."""
    given = _parse_command(arguments)
    command = COMMANDS[given.command]
    if command.together:
        found = [answers.answer_of(str(given.output), partial(command.run, given, given.files))]
    else:
        files = without_certificates(given.files) if command.several else [given.file]
        found = [answers.answer_of(str(one), partial(command.run, given, one)) for one in files]
    options = {"as_json": given.json, "quiet": given.quiet, "as_list": command.several}
    return answers.print_answers(found, **options)


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        wrong = f"{self.prog}: {answers.one_line(message)}; see {self.prog} --help\n"
        self.exit(answers.UNREADABLE, wrong)


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
        else:
            one.add_argument("file", type=_path, metavar="FILE")
        one.add_argument("--json", action="store_true", help="print facts for a program")
        one.add_argument("--quiet", action="store_true", help="print nothing but what is wrong")
        command.options(one)
    try:
        return parser.parse_args(arguments)
    except SystemExit as done:
        written = answers.is_written("", sys.stderr if done.code else sys.stdout)
        sys.exit(done.code if written else answers.UNREADABLE)


def _path(text: str) -> Path:
    """Read an argument; an empty one would name the folder one is in."""
    if not text:
        raise argparse.ArgumentTypeError("must be the path of a file, got ''")
    return Path(text)


def _setting(text: str) -> tuple[str, str]:
    name, equal, value = text.partition("=")
    if not (equal and value and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def _check_options(parser: argparse.ArgumentParser) -> None:
    also = "check also that this ledger was charged for the releases"
    parser.add_argument("--ledger", type=_path, metavar="PATH", help=also)


def _report_options(parser: argparse.ArgumentParser) -> None:
    _check_options(parser)
    parser.add_argument(
        "--output", type=_path, required=True, metavar="PATH", help="the page to write"
    )
    parser.add_argument("--title", default="Release report", help="what stands above the page")
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals; 0.95")
    parser.add_argument("--percent", action="store_true", help="show percentages, too")
    parser.add_argument("--overwrite", action="store_true", help="replace a page that is there")


def _ledger_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--create", action="store_true", help="make a ledger in a new file")
    for name, about in (
        ("epsilon", "of the whole budget, with --create"),
        ("delta", "of the whole budget, with --create; 0 where it is not given"),
        ("discovery", "part of delta that is kept for groups that are not known"),
    ):
        parser.add_argument(f"--{name}", metavar="AMOUNT", help=about)


def _plan_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    several: dict[str, Any] = {"action": "append", "default": []}
    value = "what {NAME} stands for in the plan"
    add("--set", type=_setting, metavar="NAME=VALUE", help=value, **several)
    add("--data", type=_path, metavar="PATH", help="in place of data.path", **several)
    add("--name", help="in place of release.name")
    add("--note", help="in place of release.note")
    add("--overwrite", action="store_true", help="replace files that are there")
    allowed = "let the plan import a schema from a module, which runs its code"
    add("--allow-imports", action="store_true", help=allowed)


def _preview_options(parser: argparse.ArgumentParser) -> None:
    _plan_options(parser)
    shown = "show errors of means in groups of so many rows"
    parser.add_argument("--rows", type=float, metavar="N", help=shown)
    absent = "open no file of the data: take the columns that the plan names for granted"
    parser.add_argument("--without-data", action="store_true", help=absent)


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
    "release": Command(
        "release what a plan asks for, and write the files", release_plan, _plan_options
    ),
}
"""All commands, by name."""
