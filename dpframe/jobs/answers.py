"""What a command answers: words for a person, facts for a program, and an exit code."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, TextIO
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import numpy as np

from dpframe import errors
from dpframe.arguments import visible
from dpframe.frozen import frozen
from dpframe.ledger.file import NO_ROOM
from dpframe.ledger.store import is_url

SOUND, ALTERED, UNREADABLE = 0, 1, 2  # exit codes of files that are checked
TOO_MUCH, DONE_BEFORE, LEFT_OVER = 3, 4, 5  # exit codes of releases that are not made
TESTED = 78  # EX_CONFIG: the program that runs the command has a testing block open
LATER = 75  # EX_TEMPFAIL of sysexits.h, by which schedulers know that they may try again

_CONNECTING = ("dbname", "host", "hostaddr", "password", "port", "user")  # also by ?host=
_STREAMS = 3  # standard input, output and error


_hidden: dict[str, str] = {}  # what is shown in place of texts
_hidden_words: dict[str, str] = {}  # and in place of words, which may be as short as others


def hide(value: str, shown: str) -> None:
    """Show something else wherever a text would be printed, or logged, from now on.

    Of a URL, its parts are hidden, too: what a server says names its host, and the database.
    """
    _hidden.update(dict.fromkeys(_written(value), shown))
    for part in _parts_of_url(value):
        _hidden_words.update(dict.fromkeys(_written(part), shown))


def _written(text: str) -> list[str]:
    """List the ways in which messages write a text: in one line, without what moves a cursor."""
    quoted = repr(text)[1:-1], json.dumps(text)[1:-1], quote(text), quote_plus(text)
    lines = " ".join(text.split()), visible(text), os.path.normpath(text)
    return list(filter(None, (text, *quoted, *lines)))


def _parts_of_url(value: str) -> list[str]:
    """List who is to connect to which server and database, by a URL.

    Examples
    --------
    >>> _parts_of_url("postgresql://anna:secret@db.clinic.example:5432/ledgers?ledger=visits")
    ['anna', 'secret', 'db.clinic.example', 'ledgers']
    """
    if not is_url(value):
        return []
    try:
        read = urlsplit(value)
    except ValueError:
        return []
    user, _, hosts = read.netloc.rpartition("@")
    names = [host.rpartition(":")[0] or host for host in hosts.split(",")]
    options = [text for name, text in parse_qsl(read.query) if name in _CONNECTING]
    parts = [*user.split(":"), *names, *read.path.split("/"), *options]
    return [unquote(part) for part in parts if len(part) > 1]


def without_hidden(text: str) -> str:
    """Put what is shown in place of what is hidden; of two, the longer one first."""
    for value in sorted(_hidden, key=len, reverse=True):
        text = text.replace(value, _hidden[value])
    for word in sorted(_hidden_words, key=len, reverse=True):
        # no part of a word, nor a key of JSON
        text = re.sub(rf'(?<!\w){re.escape(word)}(?!\w|":)', _hidden_words[word], text)
    return text


def forget_hidden() -> None:
    """Hide nothing that another command has hidden."""
    _hidden.clear()
    _hidden_words.clear()


def say(text: str, stream: TextIO | None, *, in_full: bool = False) -> bool:
    """Print what may hold names from a file, and return whether it could be."""
    lines = "\n".join(map(visible, without_hidden(text).split("\n")))
    return is_written(f"{lines}\n", stream, in_full=in_full)


def one_line(text: object) -> str:
    """Return what is wrong in one line."""
    return " ".join(without_hidden(str(text)).split())


def is_written(text: str, stream: TextIO | None, *, in_full: bool = False) -> bool:
    """Write to a stream, and say whether that went well; `None` stands for one that is closed.

    A reader who has seen enough may stop reading, unless the text is needed `in_full`.
    """
    if stream is None:
        return False
    try:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (OSError, ValueError) as error:  # the latter of a stream that was closed meanwhile
        # lead it nowhere: Python would flush once more when it ends, and complain
        with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        return isinstance(error, BrokenPipeError) and not in_full
    return True


def reserve_streams() -> None:
    """Let standard streams that are closed lead nowhere: the next file would take their number.

    What a library then writes to standard error would be written into that file.
    """
    for handle in range(_STREAMS):
        try:
            os.fstat(handle)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # takes the lowest number


def let_go() -> None:
    """Flush the standard streams for the last time: Python's own attempt would change the code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not is_written("", stream, in_full=True):
            setattr(sys, name, None)


_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.UnreadableCertificateError, UNREADABLE),
    (errors.TemporaryError, LATER),
    (errors.BudgetExceededError, TOO_MUCH),
    (errors.AlreadyReleasedError, DONE_BEFORE),
    (errors.ReleaseError, LEFT_OVER),
    (errors.CertificateError, ALTERED),
    (errors.LedgerAlteredError, ALTERED),
    (errors.DPFrameError, UNREADABLE),
)


@frozen(slots=True)
class Answer:
    """What came of a command on one file."""

    subject: str  # the file
    words: str = ""  # what to print of it
    # the same for a program: what JSON can hold
    facts: Mapping[str, Any] = field(default_factory=dict)
    code: int = SOUND  # the exit code
    problems: tuple[str, ...] = ()  # what is wrong, each to be printed in one line
    # releases that are in no file: printed whatever is asked for
    unsaved: Mapping[str, Any] = field(default_factory=dict)


def answer_of(subject: str, ask: Callable[[], Answer]) -> Answer:
    """Ask, and make an answer of any error, too."""
    try:
        return ask()
    except errors.DPFrameError as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        return Answer(subject, code=code, problems=(str(error),))
    except Exception as error:  # a file from anywhere makes its reader raise anything
        code = UNREADABLE
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            code = LATER
        return Answer(subject, code=code, problems=(f"cannot be read: {_plainly(error)}",))


def _plainly(error: Exception) -> str:
    """Say an error of the system without its number, with the file if that is known."""
    if isinstance(error, PermissionError) and error.filename is not None:
        return f"{error.filename}: permission denied; run it as a user who may read it."
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}."
    return str(error) or type(error).__name__


def print_answers(answers: list[Answer], *, as_json: bool, quiet: bool, as_list: bool) -> int:
    """Print answers, and return the exit code: the largest, that of a failure to print included."""
    codes = [answer.code for answer in answers]
    for answer in answers:
        for problem in answer.problems:
            if not say(one_line(f"{answer.subject}: {problem}"), sys.stderr):
                codes.append(UNREADABLE)
    text, unsaved = _texts(answers, as_json=as_json, quiet=quiet, as_list=as_list)
    if text and not say(text, sys.stdout, in_full=bool(unsaved)):
        codes.append(UNREADABLE)
        say("standard output is closed or full, so that this is all that is printed.", sys.stderr)
        # what is in no file would be lost
        if unsaved:
            say(unsaved, sys.stderr)
    return max(codes)


def _texts(answers: list[Answer], *, as_json: bool, quiet: bool, as_list: bool) -> tuple[str, str]:
    """Return what is to be printed, and the part of it that is nowhere else."""
    unsaved = "\n".join(json.dumps(answer.unsaved) for answer in answers if answer.unsaved)
    if as_json:
        facts: Any = [_facts(answer) for answer in answers]
        if not as_list:
            (facts,) = facts
        return json.dumps(facts, indent=1, default=_plain), unsaved
    words = [] if quiet else [answer.words for answer in answers]
    return "\n".join(filter(None, [*words, unsaved])), unsaved


def _facts(answer: Answer) -> Any:
    facts = {"file": answer.subject, "code": answer.code, **answer.facts}
    if answer.problems:
        facts["problems"] = list(map(one_line, answer.problems))
    return _finite(facts)


def _finite(value: Any) -> Any:
    """Replace what JSON has no number for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return value


def _plain(value: object) -> object:
    """Return a number of NumPy as one of Python, and anything else as a text."""
    return value.item() if isinstance(value, np.generic) else str(value)
