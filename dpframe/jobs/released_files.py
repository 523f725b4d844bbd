"""Released files and ledgers from anywhere, opened with care."""

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages of Arrow
_END = struct.Struct("<i6s")  # the length of what describes a Feather file, and its mark


def check_parquet(path: Path) -> None:
    """Read the end of a Parquet file, and refuse one of too many values."""
    import pyarrow.parquet as pq  # comes with the extra that reads such files

    found = pq.read_metadata(path)
    _check_bytes(path, _WIDTH * found.num_rows * found.num_columns)
    _check_metadata(found.metadata)


def check_feather(path: Path) -> None:
    """Do the same for a Feather file, by what the parts of it say of themselves."""
    from pyarrow import OSFile, ipc  # comes with the extra that reads such files

    with OSFile(str(path)) as file:
        _check_metadata(ipc.open_file(file).schema.metadata)
        size = 0
        for place in _places(file):
            file.seek(place)
            size += _size(ipc.read_message(file))
            _check_bytes(path, size)


def _check_metadata(metadata: dict[bytes, bytes] | None) -> None:
    """Refuse certificates that would take much memory: pandas parses all that is there."""
    for name in _METADATA:
        check_json((metadata or {}).get(name, b""))


def _check_bytes(path: Path, size: int) -> None:
    if size > max(_MOST_BYTES, _MOST_RATIO * path.stat().st_size):
        raise ExcessError("it holds more values than a release in a file of its size.")


# What follows reads tables of FlatBuffers, as Message.fbs and File.fbs of Arrow describe them.


def _places(file: Any) -> Iterator[int]:
    """Go through the places of the parts of a Feather file, which are listed at its end."""
    file.seek(file.size() - _END.size)
    length, _ = _END.unpack(file.read(_END.size))
    file.seek(file.size() - _END.size - length)
    data = file.read(length)
    end = _below(data, 0)
    for number in (2, 3):  # dictionaries, and rows
        field = _field(data, end, number)
        places = _below(data, field) if field else 0
        for at in range(_read(data, "i", places)):
            yield _read(data, "q", places + 4 + 24 * at)


def _size(message: Any) -> int:
    """Return how many bytes a part of a Feather file takes once it is unpacked."""
    data, body = bytes(message.metadata), memoryview(message.body or b"")
    part = _below(data, 0)
    kind = _read(data, "B", _field(data, part, 1))
    if kind not in (_DICTIONARY, _RECORDS):
        return 0
    batch = _below(data, _field(data, part, 2))
    if kind == _DICTIONARY:
        batch = _below(data, _field(data, batch, 1))
    rows = _read(data, "q", _field(data, batch, 0))
    fields, buffers = (_below(data, _field(data, batch, number)) for number in (1, 2))
    packed = _field(data, batch, 3) > 0
    sizes = (
        _unpacked_size(body, *struct.unpack_from("<qq", data, buffers + 4 + 16 * at), packed=packed)
        for at in range(_read(data, "i", buffers))
    )
    return max(_WIDTH * rows * _read(data, "i", fields), sum(sizes))


def _read(data: bytes, kind: str, place: int) -> int:
    number: int = struct.unpack_from(f"<{kind}", data, place)[0] if place else 0
    return number


def _below(data: bytes, place: int) -> int:
    """Follow an offset to a table or a list."""
    return place + int(struct.unpack_from("<i", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Find a field of a table; 0 where it has its default."""
    fields = table - _read(data, "i", table)
    place = 4 + 2 * number
    known = place < _read(data, "H", fields)
    found = _read(data, "H", fields + place) if known else 0
    return table + found if found else 0


def _unpacked_size(body: memoryview, start: int, length: int, *, packed: bool) -> int:
    """Return the size of a buffer; one that is packed begins with it, or with -1."""
    if not packed or length < _WIDTH:
        return length
    size: int = struct.unpack_from("<q", body, start)[0]
    return max(size, length)


def _quietly(reader: Callable[[Path], pd.DataFrame]) -> Callable[[Path], pd.DataFrame]:
    """Say in plain words that a file is damaged, not in those of the insides of its reader."""

    def read(path: Path) -> pd.DataFrame:
        kind = path.suffix[1:].lower()
        try:
            return reader(path)
        except (PermissionError, ExcessError):  # say what is wrong
            raise
        except ImportError:  # what pandas says of it depends on its version
            needed = f"reading {kind} files needs pyarrow: {pip_install('parquet')}."
            raise ImportError(needed) from None
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
        why = "it is not a ledger of dpframe in the format of this version"
        raise OSError(f"{why}, or its beginning is lost.")
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
