"""Scans: private frames in files, released without ever being in memory as a whole."""

import os
from typing import Any

from dpframe.accessors.private import PrivateAccessor
from dpframe.calls import with_keywords
from dpframe.engines.parquet_files import ParquetFiles, Paths
from dpframe.engines.scans import BATCH_ROWS, ScannedFrame
from dpframe.engines.sources import source_of


class Scan(ScannedFrame):
    """Rows of files, tables or queries as one private frame: declare it, and release through `.dp`.

    It holds no rows. What is declared is kept on this object, not on copies.
    """

    @property
    def dp(self) -> PrivateAccessor:
        """Differentially private releases of these rows."""
        return PrivateAccessor(self)


@with_keywords
def scan(
    source: Any,
    *,
    batch_rows: int = BATCH_ROWS,
    spill_folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Scan:
    """Open a source of Arrow batches as a private frame that may be larger than memory.

    Rows are read anew whenever something is released: only columns that are needed, batch by batch.

    Parameters
    ----------
    source
        A `pyarrow.dataset.Dataset` of Parquet, Feather or ORC files, or of CSV files with a type
        for every column (`ConvertOptions(column_types=...)`); a `pyarrow.Table`; a frame or a lazy
        frame of Polars, which its streaming engine collects in batches; a relation of DuckDB; a
        function that makes a new `pyarrow.RecordBatchReader` at each call; or any other object with
        `__arrow_c_stream__` that can be read again.
    batch_rows
        How many rows are read at once, or fewer where they are large.
    spill_folder
        An existing folder for temporary files with private rows, made if there is a
        `privacy_unit` and more than about 2 million rows; `None`: where the system keeps such.
    progress
        Whether to show a bar while rows are read, where their number is known: a part and a time,
        no numbers. `None`: in a terminal or a notebook, once it takes more than two seconds, if
        tqdm is installed.

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
    return Scan(
        source_of(source), batch_rows=batch_rows, spill_folder=spill_folder, progress=progress
    )


@with_keywords
def scan_parquet(
    path: Paths,
    *,
    filesystem: Any = None,
    batch_rows: int = BATCH_ROWS,
    spill_folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Scan:
    """Open Parquet files as a private frame that may be larger than memory.

    Rows are read anew whenever something is released.

    Parameters
    ----------
    path
        A file, a folder with files, or a list of files. Folders in it named `name=value` become a
        column.
    filesystem
        A file system of pyarrow or fsspec; `None`: the one that the path implies.
    batch_rows
        How many rows are read at once.
    spill_folder
        An existing folder for temporary files with private rows, made if there is a
        `privacy_unit` and more than about 2 million rows; `None`: where the system keeps such.
    progress
        Whether to show a bar while rows are read: a part and a time, no numbers. `None`: in a
        terminal or a notebook, once it takes more than two seconds, if tqdm is installed.

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
