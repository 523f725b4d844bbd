"""How much a file of a table would take, from what it says of itself, before it is read.

A few kilobytes can stand for any number of equal values: of noise, they cannot.
"""

import struct
from pathlib import Path
from typing import Any

from dpframe.results.certificate import ATTRIBUTE
from dpframe.results.excess import ExcessError, check_json

__all__ = ["check_feather", "check_parquet"]

_METADATA = (b"PANDAS_ATTRS", b"pandas")
_MOST_BYTES = 1 << 28  # below, a file may be packed as tightly as it likes
_MOST_RATIO = 100  # of a table in memory to its file
_WIDTH = 8  # bytes of a value
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages of Arrow


def check_parquet(path: Path) -> bool:
    """Read the end of a Parquet file: refuse one of too many values; say if it is certified.

    Raises
    ------
    ExcessError
        If it would take far more memory than a release of its size.
    """
    import pyarrow.parquet as pq  # comes with the extra that reads such files

    found = pq.read_metadata(path)
    _check_bytes(path, _WIDTH * found.num_rows * found.num_columns)
    return _is_certified(found.metadata)


def check_feather(path: Path) -> bool:
    """Do the same for a Feather file, by what the parts of it say of themselves."""
    from pyarrow import OSFile, ipc  # comes with the extra that reads such files

    with OSFile(str(path)) as file:
        schema = ipc.open_file(file).schema
        file.seek(_WIDTH)  # behind the mark of such files
        _check_bytes(path, sum(map(_size, ipc.MessageReader.open_stream(file))))
    return _is_certified(schema.metadata)


def _is_certified(metadata: dict[bytes, bytes] | None) -> bool:
    """Whether what pandas reads beside the table may hold a certificate."""
    texts = [(metadata or {}).get(name, b"") for name in _METADATA]
    for text in texts:
        check_json(text)
    return any(f'"{ATTRIBUTE}"'.encode() in text for text in texts)


def _check_bytes(path: Path, size: int) -> None:
    if size > max(_MOST_BYTES, _MOST_RATIO * path.stat().st_size):
        raise ExcessError("it holds more values than a release in a file of its size.")


def _size(message: Any) -> int:
    """Return how many bytes a part of a Feather file takes once it is unpacked."""
    # a table of FlatBuffers: see Message.fbs in the sources of Arrow
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
        _unpacked(body, *struct.unpack_from("<qq", data, buffers + 4 + 16 * at), packed=packed)
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


def _unpacked(body: memoryview, start: int, length: int, *, packed: bool) -> int:
    """Return the size of a buffer; one that is packed begins with it, or with -1."""
    if not packed or length < _WIDTH:
        return length
    size: int = struct.unpack_from("<q", body, start)[0]
    return max(size, length)
