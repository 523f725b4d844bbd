"""Released frames in Parquet files, with their certificate: written only if they read back."""

import io
import json
import os
from typing import Any

import pandas as pd

from dpframe.arguments import check_place
from dpframe.cells.keys import are_mixed
from dpframe.cells.record import ATTRIBUTE, RECORD, Opened
from dpframe.cells.reduce import reduced
from dpframe.cells.verify import look, look_with
from dpframe.columns import require_arrow
from dpframe.context import at_the_door
from dpframe.errors import CertificateError, quote
from dpframe.public import public_call


@public_call
def write_parquet(released: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write what a table shows to a Parquet file, its certificate in it.

    `pandas.read_parquet` reads it back. The certificate holds what the table shows, see `publish`;
    the pandas method `to_parquet` writes all of it.

    Parameters
    ----------
    released
        A released frame, in any layout, whose keys Parquet can hold.
    path
        The file. One that is there is replaced.

    Raises
    ------
    CertificateError
        If the frame is not what was released, or does not read back from Parquet as it is; no file
        is written then.
    DPFrameError
        If pyarrow is not installed.
    OSError
        If the file cannot be written.
    QueryError
        If the path is none, ends in neither .parquet nor .pq, or is in no folder that is there.

    Examples
    --------
    >>> import tempfile
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(released, f"{folder}/zones.parquet")
    ...     back = pd.read_parquet(f"{folder}/zones.parquet")
    >>> dpf.verify(back) == released.dp.certificate
    True
    """
    place = check_place(path, "a Parquet file", (".parquet", ".pq"))
    shown = look(released)
    written = _bytes_of(shown.source, reduced(shown))
    at_the_door(looking=True).place(place).write_bytes(written)


def _with_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Write keys as texts where Parquet has no others: in columns, and of several kinds."""
    frame = pd.DataFrame(table).copy(deep=False)
    frame.attrs = {}
    labels = frame.columns
    if labels.nlevels == 1 and not all(type(label) in (str, int, float) for label in labels):
        labels = pd.Index([str(label) for label in labels], dtype=object, name=labels.name)
    frame.columns = _texts_of_mixed(labels)
    frame.index = _texts_of_mixed(frame.index)
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        if are_mixed(column):
            frame.isetitem(at, column.map(str, na_action="ignore").array)
    return frame


def _texts_of_mixed(keys: pd.Index) -> pd.Index:
    if not isinstance(keys, pd.MultiIndex):
        return pd.Index(map(str, keys), dtype=object, name=keys.name) if are_mixed(keys) else keys
    for at, level in enumerate(keys.levels):
        if are_mixed(level):
            keys = keys.set_levels([str(key) for key in level], level=at)
    return keys


def _bytes_of(table: pd.DataFrame, opened: Opened) -> bytes:
    """Return what the file holds, once it is known to read back."""
    require_arrow("writing Parquet files", ".dp.write_csv needs no extra.")
    import pyarrow as pa  # comes with an extra
    from pyarrow.parquet import ParquetWriter

    data = io.BytesIO()
    carried = {ATTRIBUTE: {RECORD: opened.text}}
    try:
        arrow_table = pa.Table.from_pandas(_with_texts(table))
        plain = all(map(_is_of_parquet, arrow_table.schema.types))
        # a schema of Arrow is all that is read of what stands beside it, and holds it once more
        metadata = {**arrow_table.schema.metadata, b"PANDAS_ATTRS": json.dumps(carried).encode()}
        schema = arrow_table.schema.with_metadata(None if plain else metadata)
        with ParquetWriter(data, schema, store_schema=not plain) as writer:
            writer.write_table(arrow_table.replace_schema_metadata(schema.metadata))
            if plain:
                writer.add_key_value_metadata(metadata)
        back = pd.read_parquet(data, engine="pyarrow")
        _require_record(back, carried)
        look_with(back, opened)
    except (ValueError, TypeError, NotImplementedError, CertificateError):
        levels = quote(list(table.index.names))
        rule = f"a label, or a key of {levels}, does not read back from Parquet as it is"
        way_out = "Use .dp.write_csv or pickle, or rename it in the frame before it is released."
        raise CertificateError(f"{rule}. {way_out}") from None
    return data.getvalue()


def _require_record(back: pd.DataFrame, carried: object) -> None:
    if back.attrs != carried:
        raise ValueError("another certificate")


def _is_of_parquet(kind: Any) -> bool:
    """Whether Parquet itself keeps a type of Arrow, so that pandas reads back what was written."""
    from pyarrow import types  # comes with an extra

    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_timestamp)
    texts = (types.is_string, types.is_large_string)
    return any(check(kind) for check in (*checks, *texts))
