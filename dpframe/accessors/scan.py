"""Scans: private frames in files, released without ever being in memory as a whole."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from dpframe.accessors.private import PrivateAccessor
from dpframe.engines.parquet_files import ParquetFiles, Paths
from dpframe.engines.scans import BATCH_ROWS, ScannedFrame
from dpframe.engines.sources import source_of
from dpframe.engines.text_files import text_files
from dpframe.errors import DeclarationError, a_type
from dpframe.public import public_call
from dpframe.sources.cells import UTF8, Dialect


class Scan(ScannedFrame):
    """Rows of files, tables or queries as one private frame: declare it, and release through `.dp`.

    It holds no rows. What is declared is kept on this object, not on copies.
    """

    @property
    def dp(self) -> PrivateAccessor:
        """Differentially private releases of these rows."""
        return PrivateAccessor(self)


@public_call
def scan(
    source: Any, *, types: Mapping[str, str] | object = None, batch_rows: int = BATCH_ROWS,
    spill_folder: str | os.PathLike[str] | None = None, progress: bool | None = None,
    separator: str = ",", encoding: str = UTF8, na_values: str | Sequence[str] = (),
    thousands: str | None = None, decimal: str = ".", percent: bool = False,
    true: str | Sequence[str] = ("true", "1"), false: str | Sequence[str] = ("false", "0"),
    dates: str | Sequence[str] = (), newlines: bool = False,
) -> Scan:  # fmt: skip
    """Open text files, or a source of Arrow batches, as a private frame larger than memory.

    Rows are read anew whenever something is released: only columns that are needed, batch by batch.

    Parameters
    ----------
    source
        A path or a list of paths of text files, such as `.csv` or `.csv.gz`, together with `types`;
        a `pyarrow.dataset.Dataset` of Parquet, Feather or ORC files, or of CSV files with a type
        for every column (`ConvertOptions(column_types=...)`); a `pyarrow.Table`; a frame or a lazy
        frame of Polars, which its streaming engine collects in batches; a relation of DuckDB; a
        function that makes a new `pyarrow.RecordBatchReader` at each call; or any other object with
        `__arrow_c_stream__` that can be read again.
    types
        What columns of text files hold: "string", "int64", "float64", "bool", "date", "datetime",
        "datetime-utc" (with an offset) or "id" by label, or a pandera schema. A cell that is not of
        its type is missing, and changes no other cell. Ids are the bytes of their cells. Columns
        without a type are not read.
    batch_rows
        How many rows are read at once, or fewer where they are large.
    spill_folder
        An existing folder for temporary files with private rows, made if there is a
        `privacy_unit` and more than about 2 million rows; `None`: where the system keeps such.
    progress
        Whether to show a bar while rows are read, where their number is known: a part and a time,
        no numbers. `None`: in a terminal or a notebook, once it takes more than two seconds, if
        tqdm is installed.
    separator
        The character between the cells of text files.
    encoding
        The encoding of text files. Cells that are not of it are missing, unless they are ids.
    na_values
        Cells that are missing, beside empty ones: `["NA"]`. None are by default, so that "NA" can
        be a key.
    thousands, decimal
        Marks within numbers: `"."` and `","` for 1.234,5. Those of thousands stand between groups
        of three digits alone.
    percent
        Whether a number may end in a percent sign: 12.5% is 0.125.
    true, false
        The words for true and false, in letters of any case.
    dates
        Forms of dates and times as `strptime` has them, such as `"%d.%m.%Y"`, in place of ISO 8601.
    newlines
        Whether cells in quotes may hold line ends. By default, a line that is no row by itself is
        left out, and changes no other row. With `True` you trust the writer of the files: a quote
        that is not closed hides all rows up to the next quote.

    Returns
    -------
    Scan
        With `.dp`, as a frame has.

    Raises
    ------
    DeclarationError
        If the source cannot be read, or only once, or one cell decides on the types of others.
    DPFrameError
        If pyarrow is not installed, or tqdm for `progress=True`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import dpframe as dpf
    >>> trips = dpf.scan(pa.table({"zone": ["A", "B", "A"]}))
    >>> zones = ["A", "B", "C"]
    >>> released = trips.dp.count("zone", keys=zones, epsilon=0.5, privacy_unit=dpf.EACH_ROW)
    >>> list(released.index), list(released.columns)
    (['A', 'B', 'C'], ['count'])
    """
    dialect = Dialect.of(
        separator=separator, encoding=encoding, na_values=na_values, thousands=thousands,
        decimal=decimal, percent=percent, true=true, false=false, dates=dates, newlines=newlines,
    )  # fmt: skip
    if isinstance(source, str | os.PathLike | list | tuple):
        rows: Any = text_files(source, types, dialect)
    else:
        _refuse_text_options(source, types, dialect)
        rows = source_of(source)
    return Scan(rows, batch_rows=batch_rows, spill_folder=spill_folder, progress=progress)


def _refuse_text_options(source: Any, types: object, dialect: Dialect) -> None:
    """Refuse what says how text files are read where there are none."""
    changed = [
        option.name for option in fields(dialect) if getattr(dialect, option.name) != option.default
    ]
    if types is not None:
        changed.insert(0, "types")
    for name in changed:
        rule = f"{name} says how text files are read, and source is {a_type(source)}"
        raise DeclarationError(f"{rule}. Give the paths of the files.", parameter=name)


@public_call
def scan_parquet(
    path: Paths, *, filesystem: Any = None, batch_rows: int = BATCH_ROWS,
    spill_folder: str | os.PathLike[str] | None = None, progress: bool | None = None,
) -> Scan:  # fmt: skip
    """Open Parquet files as a private frame that may be larger than memory.

    Rows are read anew whenever something is released.

    Parameters
    ----------
    path
        A file, a folder with files, or a list of files. Folders in it named `name=value` become a
        column.
    filesystem
        A file system of pyarrow or fsspec; `None`: the one that the path implies.
    batch_rows, spill_folder, progress
        As in `scan`.

    Returns
    -------
    Scan
        With `.dp`, as a frame has.

    Raises
    ------
    DeclarationError
        If there are no such files, or their columns cannot be read or differ in type.
    DPFrameError
        If pyarrow is not installed, or tqdm for `progress=True`.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"zone": ["A", "B", "A"]}).to_parquet(f"{folder}/trips.parquet")
    ...     trips = scan_parquet(folder)
    ...     zones = ["A", "B", "C"]
    ...     released = trips.dp.count("zone", keys=zones, epsilon=0.5, privacy_unit=dpf.EACH_ROW)
    >>> list(released.index), list(released.columns)
    (['A', 'B', 'C'], ['count'])
    """
    return Scan(
        ParquetFiles(path, filesystem),
        batch_rows=batch_rows,
        spill_folder=spill_folder,
        progress=progress,
    )
