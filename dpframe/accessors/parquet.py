"""Scans: private frames in files, released without ever being in memory as a whole."""

import os
from typing import Any

from dpframe.accessors.private import PrivateAccessor
from dpframe.calls import with_keywords
from dpframe.engines.parquet_files import BATCH_ROWS, ParquetFiles, Paths


class ParquetScan(ParquetFiles):
    """Parquet files as one private frame: declare it, and release from it, through `.dp`.

    It holds no rows. What is declared is kept on this object, not on copies.
    """

    @property
    def dp(self) -> PrivateAccessor:
        """Differentially private releases of these files."""
        return PrivateAccessor(self)


@with_keywords
def scan_parquet(
    path: Paths,
    *,
    filesystem: Any = None,
    batch_rows: int = BATCH_ROWS,
    spill_folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> ParquetScan:
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
    ParquetScan
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
    return ParquetScan(
        path,
        filesystem=filesystem,
        batch_rows=batch_rows,
        spill_folder=spill_folder,
        progress=progress,
    )
