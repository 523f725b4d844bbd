"""Released files and ledgers from anywhere, opened with care."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpframe.certificates.json_records import ExcessError, check_json
from dpframe.errors import DPFrameError, pip_install
from dpframe.files.csv import read_csv, sidecar_of
from dpframe.ledger.file import is_ledger
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.store import is_url, store_at

_METADATA = (b"PANDAS_ATTRS", b"pandas")
_MOST_BYTES = 1 << 26  # below, a file may be packed as tightly as it likes
_MOST_RATIO = 256  # of a table in memory to its file
_WIDTH = 8  # bytes of a value


def _check_parquet(path: Path) -> None:
    """Read the end of a Parquet file, and refuse one of too many values."""
    import pyarrow.parquet as pq  # comes with the extra that reads such files

    described = pq.read_metadata(path)
    size = _WIDTH * described.num_rows * described.num_columns
    if size > max(_MOST_BYTES, _MOST_RATIO * path.stat().st_size):
        raise ExcessError("it holds more values than a release in a file of its size.")
    for name in _METADATA:  # pandas parses all that is there
        check_json((described.metadata or {}).get(name, b"").decode("latin-1"))


def _read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file, once it is known to take little memory."""
    try:
        _check_parquet(path)
        return pd.read_parquet(path)
    except (PermissionError, ExcessError):  # say what is wrong
        raise
    except ImportError:  # what pandas says of it depends on its version
        needed = f"reading parquet files needs pyarrow: {pip_install('parquet')}."
        raise ImportError(needed) from None
    except Exception:  # a file from anywhere makes its reader raise anything
        raise ValueError("it is damaged, or no parquet file of a table.") from None


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {".parquet": _read_parquet, ".csv": read_csv}
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
        pickles = "Pickle files are not opened, because they can run code."
        kind = path.suffix or "no suffix"
        raise ValueError(f"{kind!r} is not one of {', '.join(_READERS)}. {pickles}")
    return reader(path)


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """Where a ledger is: a file, or, as a text, the URL of a database, which is not shown whole."""

    given: Path | str

    @property
    def files(self) -> tuple[Path, ...]:
        """The file, if it is one."""
        return (self.given,) if isinstance(self.given, Path) else ()

    def exists(self) -> bool:
        """Whether it was made."""
        given = self.given
        return given.exists() if isinstance(given, Path) else store_at(given).exists()

    def __str__(self) -> str:
        """Show it without a password."""
        try:
            return str(self.given) if isinstance(self.given, Path) else store_at(self.given).place
        except DPFrameError:  # whoever opens it is told
            return "the ledger"


def ledger_place(text: str) -> LedgerPlace:
    """Read where a ledger is."""
    return LedgerPlace(text if is_url(text) else Path(text))


def opened_ledger(place: LedgerPlace) -> Ledger:
    """Open a ledger that is there."""
    path = place.given
    if not isinstance(path, Path):
        return Ledger(path)
    _check_is_there(path)
    if not is_ledger(path):
        reason = "it is not a ledger of dpframe in the format of this version"
        raise OSError(f"{reason}, or its beginning is lost.")
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
