"""Batches of Parquet files, bounded by the bytes that they take when they are decoded.

A file says how many bytes its columns have, and not how many they become: a text that is stored
once in a dictionary takes its place in every row. Such columns are read with their dictionaries,
and decoded a few rows at a time.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

try:
    import pyarrow as pa
    from pyarrow import compute
except ImportError:  # an optional dependency
    pa = None

_MOST_BYTES = 1 << 26  # of a batch, about
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}
_WIDTH = 8  # of other numbers, and of what tells where a text begins
_CODED = 3  # bytes of a row in a column of codes alone, at most
_DICTIONARY = 1 << 21  # bytes that writers let a dictionary have, about


def batches_of(source: Any, reader: Any, labels: Sequence[str], rows: int) -> Iterator[Any]:
    """Read columns of a file, in batches of some rows, or of fewer where these are large.

    Parameters
    ----------
    source
        The file, open.
    reader
        A `pyarrow.parquet.ParquetFile` of it.
    labels
        The columns.
    rows
        How many rows are read at once.
    """
    import pyarrow.parquet as pq  # slow to import, and not always needed

    leaves = _leaves(reader, labels)
    coded = [label for label, at in leaves if _is_coded(reader, label, at)]
    options = {"pre_buffer": False, "page_checksum_verification": True}
    if coded:
        reader = pq.ParquetFile(source, metadata=reader.metadata, read_dictionary=coded, **options)
    largest = _row_bytes(reader.metadata, [(label, at) for label, at in leaves], coded)
    for batch in reader.iter_batches(_fitting(largest, rows), columns=labels):
        step = _fitting(_longest(batch, coded), rows)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def put_together(batches: Iterable[Any], rows: int, most_bytes: int) -> Iterator[Any]:
    """Put tables together until they have some rows, or as many bytes as they may have."""
    pending: list[Any] = []
    size = length = 0
    for table in batches:
        if pending and size + table.nbytes > most_bytes:
            yield pa.concat_tables(pending)
            pending, size, length = [], 0, 0
        pending.append(table)
        size += table.nbytes
        length += table.num_rows
        if length >= rows:
            yield pa.concat_tables(pending)
            pending, size, length = [], 0, 0
    if pending:
        yield pa.concat_tables(pending)


class Begun:
    """Tables of which the first are read, up to some bytes.

    Parameters
    ----------
    tables
        The tables.
    most_bytes
        How many bytes are read before more than them is known to be there.
    """

    def __init__(self, tables: Iterator[Any], most_bytes: int) -> None:
        self.read: list[Any] = []
        self.whole = True
        self._rest = tables
        size = 0
        for table in tables:
            self.read.append(table)
            size += table.nbytes
            if size > most_bytes:
                self.whole = False
                break

    @property
    def row_bytes(self) -> float:
        """How many bytes a row takes in what is read, once it is decoded."""
        rows = sum(table.num_rows for table in self.read)
        return float(sum(map(decoded_bytes, self.read)) / max(rows, 1))

    def tables(self) -> Iterator[Any]:
        """Yield what is read, and let it go, and then all others."""
        while self.read:
            yield self.read.pop(0)
        yield from self._rest


def decoded_bytes(table: Any) -> int:
    """Say how many bytes a table takes at most once its dictionaries are decoded."""
    size = table.nbytes
    for column in table.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            size += sum(len(chunk) * _longest_text(chunk) for chunk in column.chunks)
    return int(size)


def _leaves(reader: Any, labels: Collection[str]) -> list[tuple[str, int]]:
    """List the columns that are stored, a label may have several, with their places."""
    paths = [reader.schema.column(at).path for at in range(len(reader.schema))]
    return [
        (label, at)
        for label in labels
        for at, path in enumerate(paths)
        if path == label or path.startswith(f"{label}.")
    ]


def _is_coded(reader: Any, label: str, at: int) -> bool:
    """Whether a column of texts is stored as codes of a dictionary, in all rows or in most."""
    place = reader.schema_arrow.get_field_index(label)
    if place < 0 or not _is_text(reader.schema_arrow.field(place).type):
        return False
    groups = (reader.metadata.row_group(group) for group in range(reader.metadata.num_row_groups))
    return all(
        group.column(at).has_dictionary_page
        and group.column(at).total_uncompressed_size <= _CODED * group.num_rows + _DICTIONARY
        for group in groups
    )


def _row_bytes(metadata: Any, leaves: Sequence[tuple[str, int]], coded: Collection[str]) -> float:
    """Estimate the bytes of a decoded row, in the row group where rows are largest."""
    largest = 0.0
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        size = 0.0
        for label, at in leaves:
            column = group.column(at)
            size += _WIDTHS.get(column.physical_type, _WIDTH) * column.num_values
            if column.physical_type.endswith("ARRAY") and label not in coded:
                size += column.total_uncompressed_size
        largest = max(largest, size / max(group.num_rows, 1))
    return largest


def _fitting(row_bytes: float, rows: int) -> int:
    """Say how many rows of some bytes are read at once."""
    return max(1, min(rows, int(_MOST_BYTES / max(row_bytes, 1))))


def _longest(batch: Any, coded: Collection[str]) -> int:
    """Return the bytes of the longest texts of some columns, one of each."""
    return sum(_longest_text(batch.column(label)) for label in coded)


def _longest_text(coded: Any) -> int:
    """Return the bytes of the longest text in a dictionary."""
    return compute.max(compute.binary_length(coded.dictionary)).as_py() or 0


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
