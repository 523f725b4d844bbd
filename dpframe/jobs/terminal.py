"""What a command says, on streams that may be closed or of any encoding, and its exit codes."""

import os
import sys
from contextlib import suppress
from typing import TextIO

from dpframe.arguments import visible

SOUND, ALTERED, UNREADABLE = 0, 1, 2
TOO_MUCH, DONE_BEFORE, LEFT_OVER = 3, 4, 5
LATER = 75  # EX_TEMPFAIL of sysexits.h, by which schedulers know that they may try again

_STREAMS = 3  # standard input, output and error


def say(text: str, stream: TextIO | None, *, whole: bool = False) -> bool:
    """Print what may hold names from a file, and return whether it could be."""
    lines = "\n".join(map(visible, text.split("\n")))
    return is_written(f"{lines}\n", stream, whole=whole)


def one_line(text: object) -> str:
    """Return what is wrong in one line."""
    return " ".join(str(text).split())


def is_written(text: str, stream: TextIO | None, *, whole: bool = False) -> bool:
    """Write to a stream, and say whether that went well; `None` stands for one that is closed.

    A reader who has seen enough may stop reading, unless the `whole` text is needed.
    """
    if stream is None:
        return False
    try:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (OSError, ValueError) as error:  # the latter of a stream that was closed meanwhile
        _discard(stream)
        return isinstance(error, BrokenPipeError) and not whole
    return True


def _discard(stream: TextIO) -> None:
    """Let a stream lead nowhere: Python would flush once more when it ends, and complain."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


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
        if stream is not None and not is_written("", stream, whole=True):
            setattr(sys, name, None)
