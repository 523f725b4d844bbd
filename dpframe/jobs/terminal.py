"""What a command says, on streams that may be closed or of any encoding, and its exit codes."""

import os
from typing import TextIO

from dpframe.arguments import visible

__all__ = [
    "ALTERED",
    "DONE_BEFORE",
    "INTERRUPTED",
    "LEFT_OVER",
    "SOUND",
    "TERMINATED",
    "TOO_MUCH",
    "UNREADABLE",
    "is_written",
    "one_line",
    "say",
]

SOUND, ALTERED, UNREADABLE = 0, 1, 2
TOO_MUCH, DONE_BEFORE, LEFT_OVER = 3, 4, 5
INTERRUPTED, TERMINATED = 130, 143  # as shells say it


def say(text: str, stream: TextIO | None) -> bool:
    """Print what may hold names from a file, and return whether it could be."""
    return is_written("\n".join(map(visible, text.split("\n"))) + "\n", stream)


def one_line(text: object) -> str:
    """Return what is wrong in one line."""
    return " ".join(str(text).split())


def is_written(text: str, stream: TextIO | None) -> bool:
    """Write to a stream, and say whether that went well; `None` stands for one that is closed.

    A reader who has seen enough may stop reading.
    """
    if stream is None:
        return False
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        # Python would flush once more when it ends, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return isinstance(error, BrokenPipeError)
    return True
