"""Released files and ledgers from anywhere, opened with care."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from dpframe.certificates.excess import ExcessError
from dpframe.files.csv import read_csv, sidecar_of
from dpframe.jobs.released_sizes import check_feather, check_parquet
from dpframe.ledger.file import is_ledger
from dpframe.ledger.ledger import Ledger


def _quietly(reader: Callable[[Path], pd.DataFrame]) -> Callable[[Path], pd.DataFrame]:
    """Say in plain words that a file is damaged, not in those of the insides of its reader."""

    def read(path: Path) -> pd.DataFrame:
        kind = path.suffix[1:].lower()
        try:
            return reader(path)
        except (PermissionError, ExcessError):  # say what is wrong
            raise
        except ImportError:  # what pandas says of it depends on its version
            raise ImportError(
                f"reading {kind} files needs pyarrow: pip install 'dpframe[parquet]'."
            ) from None
        except Exception:  # a file from anywhere makes its reader raise anything
            raise ValueError(f"it is damaged, or no {kind} file of a table.") from None

    return read


def _checked_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file, once it is known to take little memory."""
    check_parquet(path)
    return pd.read_parquet(path)


def _checked_feather(path: Path) -> pd.DataFrame:
    """Do the same for a Feather file, once what it says of its own memory is known to be true."""
    from pyarrow import feather  # comes with the extra that reads such files

    check_feather(path)
    feather.read_table(path, memory_map=False).validate(full=True)
    return pd.read_feather(path)


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".parquet": _quietly(_checked_parquet),
    ".feather": _quietly(_checked_feather),
    ".csv": read_csv,
}


_BESIDE = sidecar_of("").name


def without_certificates(paths: Sequence[Path]) -> list[Path]:
    """Leave out certificates of files that are among the paths: they are read with these."""
    beside = {sidecar_of(path) for path in paths}
    return [path for path in paths if path not in beside]


def read_released(path: Path) -> pd.DataFrame:
    """Read the file of a released frame; its certificate is not checked but in CSV files."""
    _check_is_there(path)
    if path.name.endswith(_BESIDE):
        table = path.with_name(path.name.removesuffix(_BESIDE))
        raise ValueError(f"give {table}: its certificate is read with it.")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(
            f"{path.suffix or 'no suffix'!r} is not one of {', '.join(_READERS)}. Pickle files are "
            "not opened, because they can run code."
        )
    return reader(path)


def opened_ledger(path: Path) -> Ledger:
    """Open a ledger that is there."""
    _check_is_there(path)
    if not is_ledger(path):
        raise OSError(
            "it is not a ledger of dpframe in the format of this version, or its beginning is lost."
        )
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise PermissionError("a ledger is locked while it is read: copy it to a folder of yours.")
    return Ledger(path)


def _check_is_there(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError("it is a folder, not a file.")
    if not path.exists():
        raise FileNotFoundError("there is no such file.")
    if not path.is_file():
        raise OSError("it is a device or a pipe, not a file.")
