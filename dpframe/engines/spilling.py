"""Tables too large for memory, split into buckets in temporary files."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpframe.engines.capping import ordered

try:
    import pyarrow as pa
    from pyarrow import ipc
except ImportError:  # pyarrow is optional; without it there are no tables
    pa = None

__all__ = ["split_tables"]

# types that hold more than 2 GiB at once, as decoded texts may
_WIDE = {} if pa is None else {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@contextmanager
def split_tables(
    parts: Iterable[tuple[Any, np.ndarray]], count: int, folder: str | None
) -> Iterator[Iterator[Any]]:
    """Split the rows of tables into buckets, by way of a temporary folder.

    Parameters
    ----------
    parts
        `pyarrow.Table`s with the same columns, and the buckets of their rows: int64 below
        `count`, or -1 for rows that are left out.
    count
        Number of buckets. As many files are open at once.
    folder
        Where the temporary folder is made, which only its owner may open; `None`: where the
        system keeps such. It is deleted with all it holds on leaving the context.

    Yields
    ------
    Iterator of pyarrow.Table
        The rows of every bucket that has some, in the order they came in. Dictionaries are decoded.
    """
    with tempfile.TemporaryDirectory(prefix="dpframe-", dir=folder) as made:
        files = [Path(made, f"{bucket}.arrow") for bucket in range(count)]
        _write(parts, files)
        yield _read(files)


def _write(parts: Iterable[tuple[Any, np.ndarray]], files: list[Path]) -> None:
    """Write the rows of every bucket to its file."""
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        for table, buckets in parts:
            rows, bounds = _in_order(buckets, len(files))
            sorted_rows = _taken(table, rows)
            for bucket in np.flatnonzero(np.diff(bounds)).tolist():
                if bucket not in writers:
                    sink = stack.enter_context(pa.OSFile(str(files[bucket]), "wb"))
                    writers[bucket] = stack.enter_context(ipc.new_stream(sink, sorted_rows.schema))
                start, stop = bounds[bucket : bucket + 2].tolist()
                writers[bucket].write_table(sorted_rows.slice(start, stop - start))


def _in_order(buckets: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Order the rows that have a bucket by it, with the bounds of the buckets."""
    last = np.where(buckets < 0, count, buckets).astype(np.min_scalar_type(count))
    rows, bounds, _ = ordered(last, count + 1)
    return rows[: bounds[count]], bounds[:-1]


def _taken(table: Any, rows: np.ndarray) -> Any:
    """Take rows of a table; column by column, for the sake of memory."""
    places = pa.array(rows)
    columns = [_decoded(column).take(places) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _read(files: list[Path]) -> Iterator[Any]:
    """Read the buckets; a file is deleted as soon as it is read, to free the disk."""
    for file in files:
        if file.exists():
            with pa.OSFile(str(file)) as source, ipc.open_stream(source) as reader:
                table = reader.read_all()
            file.unlink()
            yield table


def _decoded(column: Any) -> Any:
    """Decode a dictionary, those of several batches need not fit in the codes of one; in one piece.

    Several pieces take much longer to take rows of.
    """
    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
        column = column.cast(_WIDE.get(kind, kind))
    return column.combine_chunks()
