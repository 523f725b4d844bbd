"""Tables too large for memory, split into buckets in temporary files."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpframe.engines.capping import order_rows
from dpframe.engines.temporary import remove_leftovers, temporary_folder

try:
    import pyarrow as pa
    from pyarrow import compute
except ImportError:  # pyarrow is optional; without it there are no columns
    pa = None

_WIDTHS = (8, 16, 32)


def narrow_integers(column: Any) -> Any:
    """Hold the integers of a column of Arrow in the narrowest type with a sign that holds them.

    A cast to the type that it had gives the column back.

    Examples
    --------
    >>> narrow_integers(pa.chunked_array([[3, None, -200]])).type
    DataType(int16)
    """
    if not pa.types.is_integer(column.type):
        return column
    low, high = (end or 0 for end in compute.min_max(column).as_py().values())  # of none: None
    needed = max(~low if low < 0 else low, high).bit_length() + 1
    width = next((width for width in _WIDTHS if needed <= width), column.type.bit_width)
    return column.cast(f"int{width}") if width < column.type.bit_width else column


try:
    import pyarrow as pa
    from pyarrow import ipc
except ImportError:  # pyarrow is optional; without it there are no tables
    pa = None

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
        system keeps such. It is deleted with all it holds on leaving the context; if the process
        is killed, when the next table is split.

    Yields
    ------
    Iterator of pyarrow.Table
        The rows of every bucket that has some, in the order they came in. Dictionaries are decoded.
    """
    remove_leftovers(folder)
    with temporary_folder("dpframe-rows-", folder) as made:
        files = [made / f"{bucket}.arrow" for bucket in range(count)]
        schema = _write(parts, files)
        yield _read(files, schema)


class _Writer:
    """Writes rows to a file, as streams of which each has its own types of integers."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._stream: Any = None
        self._schema: Any = None

    def write(self, rows: Any) -> None:
        """Write rows after those that are there."""
        if rows.schema != self._schema:
            self.end()
            self._stream, self._schema = ipc.new_stream(self._sink, rows.schema), rows.schema
        self._stream.write_table(rows)

    def end(self) -> None:
        """End the stream."""
        if self._stream is not None:
            self._stream.close()


def _write(parts: Iterable[tuple[Any, np.ndarray]], files: list[Path]) -> Any:
    """Write the rows of every bucket to its file, and return the types that their columns had."""
    schema = None
    with ExitStack() as stack:
        writers: dict[int, _Writer] = {}
        for table, buckets in parts:
            schema = pa.schema([(field.name, _decoded_type(field.type)) for field in table.schema])
            rows, bounds = _in_order(buckets, len(files))
            sorted_rows = _take_rows(table, rows)
            for bucket in np.flatnonzero(np.diff(bounds)).tolist():
                if bucket not in writers:
                    sink = stack.enter_context(pa.OSFile(str(files[bucket]), "wb"))
                    writers[bucket] = _Writer(sink)
                start, stop = bounds[bucket : bucket + 2].tolist()
                writers[bucket].write(sorted_rows.slice(start, stop - start))
        for writer in writers.values():
            writer.end()
    return schema


def _in_order(buckets: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Order the rows that have a bucket by it, with the bounds of the buckets."""
    last = np.where(buckets < 0, count, buckets).astype(np.min_scalar_type(count))
    rows, bounds, _ = order_rows(last, count + 1)
    return rows[: bounds[count]], bounds[:-1]


def _take_rows(table: Any, rows: np.ndarray) -> Any:
    """Take rows of a table; column by column, for the sake of memory."""
    places = pa.array(rows)
    columns = [narrow_integers(_decode_dictionary(column)).take(places) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _read(files: list[Path], schema: Any) -> Iterator[Any]:
    """Read the buckets; a file is deleted as soon as it is read, to free the disk."""
    for file in files:
        if file.exists():
            with pa.OSFile(str(file)) as source:
                tables = list(_streams(source, schema))
            file.unlink()
            yield pa.concat_tables(tables)


def _streams(source: Any, schema: Any) -> Iterator[Any]:
    """Read the streams of a file."""
    while source.tell() < source.size():
        with ipc.open_stream(source) as reader:
            yield _widen_integers(reader.read_all(), schema)


def _widen_integers(table: Any, schema: Any) -> Any:
    """Give integers the types that they had; others were written as they are."""
    typed = zip(table.columns, schema.types, strict=True)
    columns = [one.cast(kind) if pa.types.is_integer(kind) else one for one, kind in typed]
    return pa.table(columns, names=schema.names)


def _decode_dictionary(column: Any) -> Any:
    """Decode a dictionary, those of several batches need not fit in the codes of one; in one piece.

    Several pieces take much longer to take rows of.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(_decoded_type(column.type))
    return column.combine_chunks()


def _decoded_type(kind: Any) -> Any:
    """Return the type of a decoded column."""
    if not pa.types.is_dictionary(kind):
        return kind
    return _WIDE.get(kind.value_type, kind.value_type)
