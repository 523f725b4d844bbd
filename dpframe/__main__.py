"""Look at released files and ledgers in a terminal: `python -m dpframe show|verify|ledger FILE`."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import pandas as pd

from dpframe.arguments import visible
from dpframe.errors import DPFrameError, LedgerBusyError, UnreadableCertificateError
from dpframe.ledger.file import is_ledger
from dpframe.ledger.ledger import Ledger
from dpframe.results.certificate import verify
from dpframe.results.csv_files import read_csv

__all__ = ["main"]

SOUND, ALTERED, UNREADABLE = 0, 1, 2
INTERRUPTED = 130  # as shells say it


def _quietly(reader: Callable[[Path], pd.DataFrame]) -> Callable[[Path], pd.DataFrame]:
    """Say in plain words that a file is damaged, not in those of the insides of its reader."""

    def read(path: Path) -> pd.DataFrame:
        try:
            return reader(path)
        except (ImportError, PermissionError):  # these say what to do
            raise
        except Exception:  # a file from anywhere makes its reader raise anything
            raise ValueError(
                f"it is damaged, or no {path.suffix[1:].lower()} file of a table."
            ) from None

    return read


def _checked_feather(path: Path) -> pd.DataFrame:
    """Read a Feather file, once what it says of its own memory is known to be true."""
    from pyarrow import feather  # comes with the extra that reads such files

    feather.read_table(path, memory_map=False).validate(full=True)
    return pd.read_feather(path)


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".parquet": _quietly(pd.read_parquet),
    ".feather": _quietly(_checked_feather),
    ".csv": read_csv,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0: the file is what was released, or the ledger is intact. 1: it is not, there is no
    certificate, or the release is not in the ledger given. 2: a file cannot be read, others keep
    the ledger locked, the command is not usable, or what it says cannot be written. 130: somebody
    pressed Ctrl-C.
    """
    try:
        return _run(_parsed(arguments))
    except KeyboardInterrupt:
        _say("interrupted", sys.stderr)
        return INTERRUPTED


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command; what the parser prints must be written, too."""
    parser = argparse.ArgumentParser(
        prog="python -m dpframe",
        description="Look at released files and ledgers.",
        epilog="exit codes: 0 sound, 1 altered, without certificate or not in the ledger, "
        "2 not readable, busy, or nowhere to print, 130 interrupted",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (_, about) in _COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("file", type=_path)
        if name == "verify":
            also = "check also that this ledger was charged for the release"
            command.add_argument("--ledger", type=_path, metavar="PATH", help=also)
    try:
        return parser.parse_args(arguments)
    except SystemExit as done:
        written = _is_written("", sys.stderr if done.code else sys.stdout)
        sys.exit(done.code if written else UNREADABLE)


def _run(given: argparse.Namespace) -> int:
    try:
        said = _COMMANDS[given.command][0](given)
    except (UnreadableCertificateError, LedgerBusyError) as error:
        return _refuse(given.file, error, UNREADABLE)
    except DPFrameError as error:
        return _refuse(given.file, error, ALTERED)
    except Exception as error:  # a file from anywhere makes its reader raise anything
        return _refuse(given.file, f"cannot be read: {error or type(error).__name__}", UNREADABLE)
    return SOUND if _say(said, sys.stdout) else UNREADABLE


def _refuse(path: Path, why: object, code: int) -> int:
    """Say in one line what is wrong with a file."""
    return code if _say(" ".join(f"{path}: {why}".split()), sys.stderr) else UNREADABLE


def _say(text: str, stream: TextIO | None) -> bool:
    """Print what may hold names from a file, and return whether it could be."""
    return _is_written("\n".join(map(visible, text.split("\n"))) + "\n", stream)


def _is_written(text: str, stream: TextIO | None) -> bool:
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


def _path(text: str) -> Path:
    """Read an argument; an empty one would name the folder one is in."""
    if not text:
        raise argparse.ArgumentTypeError("must be the path of a file, got ''")
    return Path(text)


def _read(path: Path) -> pd.DataFrame:
    _check_is_there(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(
            f"{path.suffix or 'no suffix'!r} is not one of {', '.join(_READERS)}. Pickle files are "
            "not opened, because they can run code."
        )
    return reader(path)


def _check_is_there(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError("it is a folder, not a file.")
    if not path.exists():
        raise FileNotFoundError("there is no such file.")
    if not path.is_file():
        raise OSError("it is a device or a pipe, not a file.")


def _show(given: argparse.Namespace) -> str:
    frame = _read(given.file)
    certificate = verify(frame)
    return f"{certificate}\n\n{frame.to_string(max_rows=20)}"


def _verify(given: argparse.Namespace) -> str:
    released = _read(given.file)
    certificate = verify(released)  # what is wrong with the file itself is said first
    said = f"{given.file}: {certificate.state}, {certificate.digest}"
    if given.ledger is None:
        return said
    try:
        ledger = _opened(given.ledger)
    except OSError as error:
        raise OSError(f"the ledger {given.ledger}: {error}") from error
    verify(released, ledger=ledger)
    return f"{said}, in ledger {ledger.ledger_id}"


def _opened(path: Path) -> Ledger:
    _check_is_there(path)
    if not is_ledger(path):
        raise OSError(
            "it is not a ledger of dpframe in the format of this version, or its beginning is lost."
        )
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise PermissionError("a ledger is locked while it is read: copy it to a folder of yours.")
    return Ledger(path)


def _ledger(given: argparse.Namespace) -> str:
    ledger = _opened(given.file)
    return f"{ledger.status()}\n\nhead {ledger.head}"


_COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], str], str]] = {
    "show": (_show, "print certificate and table of a released file"),
    "verify": (_verify, "check a released file against its certificate"),
    "ledger": (_ledger, "check a ledger and print what is spent and left"),
}


if __name__ == "__main__":
    sys.exit(main())
