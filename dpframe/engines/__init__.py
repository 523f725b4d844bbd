"""Engines: exact integer totals of private frames, by type of frame."""

from dpframe.engines.base import Engine, Frame
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parquet import ScanEngine
from dpframe.errors import DeclarationError

__all__ = ["ENGINES", "Engine", "Frame", "engine_for"]

ENGINES: list[Engine] = [PandasEngine(), ScanEngine()]
"""All engines; the first that handles a frame is used. `import dpframe.dask` adds that of Dask."""


def engine_for(frame: object) -> Engine:
    """Return the engine that can read a frame.

    Raises
    ------
    DeclarationError
        If none can.
    """
    for engine in ENGINES:
        if engine.handles(frame):
            return engine
    kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
    raise DeclarationError(
        f"frame must be a pandas.DataFrame, got a {kind}. dpf.scan reads tables of Arrow, "
        "Polars and DuckDB, dpf.scan_parquet opens Parquet files; "
        "a dask.dataframe.DataFrame is read after `import dpframe.dask`.",
        parameter="frame",
    )
