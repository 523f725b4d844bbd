"""Engines: exact integer totals of private frames, by type of frame."""

from dpframe.engines.base import Engine, Frame
from dpframe.engines.dask import DaskEngine
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parquet import ParquetEngine
from dpframe.errors import DeclarationError

__all__ = ["ENGINES", "Engine", "Frame", "engine_for"]

ENGINES: tuple[Engine, ...] = (PandasEngine(), DaskEngine(), ParquetEngine())
"""All engines; the first that handles a frame is used."""


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
        f"frame must be a pandas.DataFrame, got a {kind}. A dask.dataframe.DataFrame will do, too, "
        "and dpf.scan_parquet opens Parquet files."
    )
