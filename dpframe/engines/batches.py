"""Batches of Arrow, bounded by the bytes that they take when they are decoded.

A Parquet file says how many bytes its columns have, and not how many they become: a text that is
stored once in a dictionary takes its place in every row. Such columns are read with their
dictionaries, and decoded a few rows at a time.
"""

import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np

from dpframe.columns import compute, ipc, pa
from dpframe.engines.capping import order_rows
from dpframe.frozen import frozen
from dpframe.ledger import platform

_NAME = re.compile(r"\.?dpframe-(rows|trial|ledger)-[a-z0-9_]{8}")
_KEEPER = "in-use"
_ATTEMPTS = 100  # at a name that nobody has taken
_ENDING = ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGBREAK")
_BY_SIGNAL = 128  # what shells add to the number of a signal


@contextmanager
def temporary_folder(prefix: str, place: str | Path | None = None) -> Iterator[Path]:
    """Make a folder that only its owner may open, and remove it with all it holds.

    Parameters
    ----------
    prefix
        What its name begins with: one of those that `remove_leftovers` looks for.
    place
        The folder in which it is made; `None`: where the system keeps temporary files.
    """
    with ExitStack() as stack:
        stack.enter_context(_ended_afterwards())
        for _ in range(_ATTEMPTS):
            name = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True)
            )
            keeper = _lock_file(Path(name, _KEEPER))
            if keeper is not None:
                stack.enter_context(keeper)
                break
        yield Path(name)


class _Ended(SystemExit):
    """A signal ends the process, as soon as its folders are removed."""


@contextmanager
def _ended_afterwards() -> Iterator[None]:
    """Let signals that would end the process at once unwind it first, then do so.

    Only the main thread can say what signals do; what others leave is removed at the next start.
    """
    came: list[int] = []

    def unwind(number: int, _: FrameType | None) -> None:
        came.append(number)
        if came[1:]:
            return  # what was begun goes on
        raise _Ended(_BY_SIGNAL + number)

    in_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in _ENDING if in_main and hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in heard:
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])


def _lock_file(path: Path) -> FileIO | None:
    """Lock a file in a new folder; `None` where another process takes it for a leftover."""
    try:
        keeper = open(path, "xb", buffering=0)
    except FileNotFoundError:
        return None
    try:
        if platform.HERE.try_to_lock(keeper.fileno()) and path.exists():
            return keeper
    except OSError:  # no locks here: without the file, nobody takes the folder for a leftover
        with suppress(OSError):
            path.unlink()
        return keeper
    keeper.close()
    return None


def remove_leftovers(place: str | Path | None = None) -> None:
    """Remove what killed processes of this user left in a folder; nothing that is in use.

    Parameters
    ----------
    place
        The folder; `None`: where the system keeps temporary files.
    """
    with suppress(OSError), os.scandir(place or tempfile.gettempdir()) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and _is_own(entry):
                _remove(Path(entry.path))


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, not a link to one, of the user who asks."""
    if not entry.is_dir(follow_symlinks=False):
        return False
    return platform.HERE.name == "win32" or entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _remove(folder: Path) -> None:
    """Remove a folder that nobody keeps any more."""
    # what may be no file is opened without following links, or waiting for pipes
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with suppress(OSError):
        # if its process was killed before it made anything
        folder.rmdir()
    try:
        with open(os.open(folder / _KEEPER, os.O_RDONLY | careful), "rb", buffering=0) as keeper:
            if not platform.HERE.try_to_lock(keeper.fileno()):
                return
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # no leftover, or no locks here
        return
    # Windows removes no file that is open
    shutil.rmtree(folder, ignore_errors=True)


_INTEGER_WIDTHS = (8, 16, 32)
_WORD = 64
"""Bits of the widest numbers."""


def plain_type(kind: Any) -> Any:
    """Choose the type that a column is read as: few functions know views and extensions."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    for is_of, make in _NESTED.items():
        if getattr(pa.types, f"is_{is_of}")(kind):
            return make(kind)
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return views.get(kind, kind)


def _plain_field(field: Any) -> Any:
    return field.with_type(plain_type(field.type))


_NESTED: dict[str, Callable[[Any], Any]] = {
    "dictionary": lambda kind: pa.dictionary(
        kind.index_type, plain_type(kind.value_type), kind.ordered
    ),
    "struct": lambda kind: pa.struct(list(map(_plain_field, kind))),
    "map": lambda kind: pa.map_(
        plain_type(kind.key_type), plain_type(kind.item_type), kind.keys_sorted
    ),
    "list": lambda kind: pa.list_(_plain_field(kind.value_field)),
    "large_list": lambda kind: pa.large_list(_plain_field(kind.value_field)),
    "fixed_size_list": lambda kind: pa.list_(_plain_field(kind.value_field), kind.list_size),
}
"""How types that hold others are made of plain ones, by name."""


def plain_array(column: Any, kind: Any) -> Any:
    """View an array as one of a plain type; what is of type null has no value at all."""
    while isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_run_end_encoded(column.type):
        column = compute.run_end_decode(column)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    return column if column.type == kind else column.cast(kind)


def common_type(first: Any, second: Any) -> Any:
    """Return a type that keeps every value of two plain types; `None` where there is none.

    Texts are texts, however they are stored.

    Examples
    --------
    >>> common_type(pa.int32(), pa.float64()), common_type(pa.int64(), pa.float64())
    (DataType(double), None)
    >>> common_type(pa.string(), pa.dictionary(pa.int8(), pa.string()))
    DataType(large_string)
    """
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    wide, other = _wide_type(first), _wide_type(second)
    if wide == other:
        return wide
    if pa.types.is_decimal(wide) and pa.types.is_decimal(other):
        return (
            max(wide, other, key=lambda kind: kind.precision) if wide.scale == other.scale else None
        )
    wider = (wide, other, pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
    return next((kind for kind in wider if _holds(kind, wide) and _holds(kind, other)), None)


def is_kept(held: Any, kept: Any) -> bool:
    """Whether a type keeps every value of another one."""
    common = common_type(held, kept)
    return common is not None and _wide_type(common) == _wide_type(kept)


def _wide_type(kind: Any) -> Any:
    held = kind.value_type if pa.types.is_dictionary(kind) else kind
    return _WIDE.get(held, held)


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether a type of numbers holds every number of another one."""
    if not (_is_number(wide) and _is_number(narrow)):
        return False
    if pa.types.is_floating(narrow):
        return bool(pa.types.is_floating(wide) and wide.bit_width >= narrow.bit_width)
    # NumPy calls it safe to round integers of 64 bits
    rounds = pa.types.is_floating(wide) and narrow.bit_width == _WORD
    return not rounds and np.can_cast(narrow.to_pandas_dtype(), wide.to_pandas_dtype())


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


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
    # of none: None
    low, high = (end or 0 for end in compute.min_max(column).as_py().values())
    needed = max(~low if low < 0 else low, high).bit_length() + 1
    width = next((width for width in _INTEGER_WIDTHS if needed <= width), column.type.bit_width)
    return column.cast(f"int{width}") if width < column.type.bit_width else column


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
    with temporary_folder("dpframe-rows-", folder) as inside:
        files = [inside / f"{bucket}.arrow" for bucket in range(count)]
        schema = _write(parts, files)
        yield _read(files, schema)


def _write(parts: Iterable[tuple[Any, np.ndarray]], files: list[Path]) -> Any:
    """Write the rows of every bucket to its file, and return the types that their columns had.

    A table whose narrow types of integers are others begins other streams.
    """
    schema, count = None, len(files)
    with ExitStack() as stack:
        sinks: dict[int, Any] = {}
        streams: dict[int, Any] = {}
        types: dict[int, Any] = {}
        for table, buckets in parts:
            schema = pa.schema([(field.name, _decoded_type(field.type)) for field in table.schema])
            last = np.where(buckets < 0, count, buckets).astype(np.min_scalar_type(count))
            rows, bounds, _ = order_rows(last, count + 1)
            places = pa.array(rows[: bounds[count]])
            # one after the other, for the sake of memory
            columns = [
                narrow_integers(_decode_dictionary(column)).take(places) for column in table.columns
            ]
            in_order = pa.table(columns, names=table.column_names)
            for bucket in np.flatnonzero(np.diff(bounds[:-1])).tolist():
                if bucket not in sinks:
                    sinks[bucket] = stack.enter_context(pa.OSFile(str(files[bucket]), "wb"))
                if types.get(bucket) != in_order.schema:
                    if bucket in streams:
                        streams[bucket].close()
                    streams[bucket] = ipc.new_stream(sinks[bucket], in_order.schema)
                    types[bucket] = in_order.schema
                start, stop = bounds[bucket : bucket + 2].tolist()
                streams[bucket].write_table(in_order.slice(start, stop - start))
        for stream in streams.values():
            stream.close()
    return schema


def _read(files: list[Path], schema: Any) -> Iterator[Any]:
    """Read the buckets; a file is deleted as soon as it is read, to free the disk."""
    for file in files:
        if file.exists():
            tables = []
            with pa.OSFile(str(file)) as source:
                while source.tell() < source.size():
                    with ipc.open_stream(source) as reader:
                        tables.append(reader.read_all().cast(schema))
            file.unlink()
            yield pa.concat_tables(tables)


def _decode_dictionary(column: Any) -> Any:
    """Decode a dictionary, those of several batches need not fit in the codes of one; in one piece.

    Several pieces take much longer to take rows of.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(_decoded_type(column.type))
    return column.combine_chunks()


def _decoded_type(kind: Any) -> Any:
    """Return the type of a decoded column."""
    return _wide_type(kind) if pa.types.is_dictionary(kind) else kind


# of a batch, about
_MOST_BYTES = 1 << 26
# rows, where it is not known how long their texts are
_VIEWS = 1 << 12
# rows, of which columns are not worth a thread each
_SMALL_FILE = 1 << 18
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}
# of other numbers, and of what tells where a text begins
_WIDTH = 8
# bytes of a row in a column of codes alone, at most
_CODED = 3
# bytes that writers let a dictionary have, about
_DICTIONARY = 1 << 21


@frozen(eq=False)
class FileLayout:
    """How files store their columns.

    Parameters
    ----------
    schema
        The Arrow types of the columns.
    leaves
        The places of what is stored of each label; of a nested one there may be several, or none.
    """

    schema: Any
    leaves: Mapping[str, Sequence[int]]

    @classmethod
    def of_footer(cls, metadata: Any, schema: Any) -> Self:
        """Look where a file stores its columns; dots may be part of a label."""
        leaves: dict[str, list[int]] = {label: [] for label in schema.names}
        for at in range(len(metadata.schema)):
            parts = metadata.schema.column(at).path.split(".")
            for label in accumulate(parts, "{}.{}".format):
                if label in leaves:
                    leaves[label].append(at)
        return cls(schema, leaves)

    def coded_columns(self, metadata: Any, labels: Iterable[str]) -> list[str]:
        """List the columns of texts that a file stores as codes of a dictionary, in most rows."""
        return [
            label
            for label in labels
            if label in self.leaves
            and _is_text(self.schema.field(label).type)
            and all(_is_coded(metadata, at) for at in self.leaves[label])
        ]


def batches_of(
    source: Any,
    metadata: Any,
    layout: FileLayout,
    labels: Sequence[str],
    rows: int,
    *,
    distant: bool,
) -> Iterator[Any]:
    """Read columns of a file, in batches of some rows, or of fewer where these are large.

    Parameters
    ----------
    source
        The file, open.
    metadata, layout
        What its footer says, and how it stores its columns.
    labels
        The columns.
    rows
        How many rows are read at once.
    distant
        Whether to ask for all that is needed of a row group at once, and keep it until it is read.
    """
    # slow to import, and not always needed
    import pyarrow.parquet as pq

    leaves = [(label, at) for label in labels for at in layout.leaves[label]]
    coded = layout.coded_columns(metadata, labels)
    options = {"pre_buffer": distant, "page_checksum_verification": True}
    reader = pq.ParquetFile(source, metadata=metadata, read_dictionary=coded, **options)
    size = _fitting(_row_bytes(metadata, leaves, coded), rows)
    # else other files are read meanwhile
    threads = metadata.num_rows > _SMALL_FILE
    for groups in _row_groups(metadata):
        for batch in reader.iter_batches(size, groups, labels, use_threads=threads):
            longest = sum(_longest_text(batch.column(label)) for label in coded)
            step = _fitting(longest, rows)
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)


def _row_groups(metadata: Any) -> list[list[int]]:
    """Put row groups together up to some bytes: what is asked for at once is kept until read."""
    groups: list[list[int]] = []
    size = _MOST_BYTES
    for place in range(metadata.num_row_groups):
        group_bytes = metadata.row_group(place).total_byte_size
        if size + group_bytes > _MOST_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(place)
        size += group_bytes
    return groups


def fitted_tables(
    batches: Iterable[Any], schema: Any, rows: int, read: Callable[[Any, Any], Any] = plain_array
) -> Iterator[Any]:
    """Make tables of batches that have all columns of a schema, of no more rows or bytes than fit.

    Parameters
    ----------
    batches
        `pyarrow.RecordBatch`es.
    schema
        Labels and plain types of the columns.
    rows
        How many rows a table has at most.
    read
        Makes an array of a plain type from one of a batch, each value by itself.
    """
    # of texts that may be there once for many rows
    views = (pa.string_view(), pa.binary_view())
    for batch in batches:
        few = min(rows, _VIEWS) if any(kind in views for kind in batch.schema.types) else rows
        for start in range(0, batch.num_rows, few):
            part = batch.slice(start, few)
            named = dict(zip(part.schema.names, part.columns, strict=True))
            columns = [read(named[field.name], field.type) for field in schema]
            table = pa.Table.from_arrays(columns, schema=schema)
            step = _fitting(decoded_bytes(table) / table.num_rows, few)
            for place in range(0, table.num_rows, step):
                yield table.slice(place, step)


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
    most_bytes, most_rows
        How many bytes and rows are read before more than them is known to be there.
    """

    def __init__(self, tables: Iterator[Any], most_bytes: int, most_rows: int) -> None:
        self.read: list[Any] = []
        self.whole = True
        self.rows = 0
        """How many rows are read so far."""
        self._rest = tables
        size = 0
        for table in tables:
            self.read.append(table)
            size += table.nbytes
            self.rows += table.num_rows
            if size > most_bytes or self.rows > most_rows:
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
        for table in self._rest:
            self.rows += table.num_rows
            yield table


def decoded_bytes(table: Any) -> int:
    """Say how many bytes a table takes at most once its dictionaries are decoded."""
    size = table.nbytes
    for column in table.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            size += sum(len(chunk) * _longest_text(chunk) for chunk in column.chunks)
    return int(size)


def _is_coded(metadata: Any, at: int) -> bool:
    """Whether a column is stored as codes of a dictionary, in all rows or in most."""
    groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
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


def stored_bytes(metadata: Any, layout: FileLayout, labels: Iterable[str]) -> int:
    """Add up the bytes of some columns of a file, as they are stored."""
    places = [at for label in labels for at in layout.leaves.get(label, ())]
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return sum(group.column(at).total_compressed_size for group in groups for at in places)


def _fitting(row_bytes: float, rows: int) -> int:
    """Say how many rows of some bytes are read at once."""
    return max(1, min(rows, int(_MOST_BYTES / max(row_bytes, 1))))


def _longest_text(coded: Any) -> int:
    """Return the bytes of the longest text in a dictionary."""
    return compute.max(compute.binary_length(coded.dictionary)).as_py() or 0


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
