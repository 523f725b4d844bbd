"""Engines: exact integer totals of private frames, by type of frame.

What an engine is made of: `Engine`, the functions that total parts of a frame in memory
(`totals_of`, `label_counts`), and those that split rows so that a unit is in one part
(`group_by_unit`, `labels_of`, `unit_buckets`).
"""

from collections.abc import Callable
from typing import Any

from dpframe.columns.buckets import unit_buckets
from dpframe.engines.base import Engine, Frame
from dpframe.engines.labels import label_counts
from dpframe.engines.pandas import PandasEngine, group_by_unit, labels_of, totals_of
from dpframe.engines.scans import ScanEngine
from dpframe.errors import DeclarationError
from dpframe.public import public_call
from dpframe.sources.manifest import Manifest

__all__ = [
    "ENGINES",
    "Engine",
    "Frame",
    "Manifest",
    "engine_for",
    "group_by_unit",
    "label_counts",
    "labels_of",
    "register",
    "totals_of",
    "unit_buckets",
]

ENGINES: list[Engine] = [PandasEngine(), ScanEngine()]
"""All engines; the first that handles a frame is used. `import dpframe.dask` adds that of Dask."""

ACCESSORS: list[Callable[[Frame], Any]] = []
"""Makes the `.dp` of a private frame: `accessors/` stands above this room, and fills it."""

_INSTALLED = "dpframe.engines"  # the group of entry points
_REGISTERED: set[str] = set()
_MEMBERS = [name for name in vars(Engine) if not name.startswith("_")]


@public_call
def register(engine: Engine, *, accessor: type | None = None) -> None:
    """Make an engine known: releases read the frames that it handles.

    A package that has one names it as an entry point of the group `dpframe.engines`; it is
    registered where a frame is met that no engine known so far handles.

    Parameters
    ----------
    engine
        What reads the frames. An engine of the same class, and of the same name and module, is
        replaced: a cell of a notebook may be run again. Those that were there before come first.
    accessor
        A class of frames that gets `.dp`; `None`: functions such as `dpframe.release` take them.

    Raises
    ------
    DeclarationError
        If a method is missing, or the class has another `.dp`.

    Examples
    --------
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> from dpframe.engines import ENGINES, Engine, label_counts, register, totals_of
    >>> class Rows:
    ...     def __init__(self, **columns):
    ...         self.columns = columns
    >>> class RowsEngine(Engine):
    ...     def handles(self, frame):
    ...         return isinstance(frame, Rows)
    ...     def columns(self, frame):
    ...         return list(frame.columns)
    ...     def totals(self, frame, tasks, context):
    ...         return totals_of([pd.DataFrame(frame.columns)], tasks, context)
    ...     def labels(self, frame, task, context):
    ...         return label_counts([pd.DataFrame(frame.columns)], [task], context)[0]
    >>> register(RowsEngine(), accessor=Rows)
    >>> released = Rows(zone=["A", "B", "A"]).dp.count(epsilon=1, privacy_unit=dpf.EACH_ROW)
    >>> list(released.columns)
    ['count']
    >>> engine = ENGINES.pop()  # no longer known
    """
    missing = [name for name in _MEMBERS if not callable(getattr(engine, name, None))]
    if missing or isinstance(engine, type):
        way_out = "Make an object of a subclass of dpframe.engines.Engine."
        rule = f"must have the method {missing[0]}" if missing else "must be an object, no class"
        raise DeclarationError.about("engine", rule, engine, way_out)
    if accessor is not None:
        _give_accessor(accessor)
    name = _name_of(engine)
    for place, other in enumerate(ENGINES):
        if _name_of(other) == name:
            ENGINES[place] = engine
            return
    ENGINES.append(engine)


def _name_of(engine: Engine) -> tuple[str, str]:
    return type(engine).__module__, type(engine).__qualname__


class _Accessor:
    """Makes `.dp` of a frame; on the class it is the class of the accessor, as pandas does."""

    def __get__(self, frame: Frame, owner: type) -> Any:
        return ACCESSORS[-1] if frame is None else ACCESSORS[-1](frame)


def _give_accessor(frames: type) -> None:
    """Give a class of frames its `.dp`."""
    if not isinstance(frames, type):
        raise DeclarationError.about("accessor", "must be a class of frames", frames)
    if not isinstance(vars(frames).get("dp", _Accessor()), _Accessor):
        raise DeclarationError.about("accessor", "must have no other attribute dp", frames)
    frames.dp = _Accessor()  # type: ignore[attr-defined]


def engine_for(frame: object) -> Engine:
    """Return the engine that can read a frame.

    Where none is known, those that installed packages name are registered first.

    Raises
    ------
    DeclarationError
        If none can.
    """
    engine = _known_engine(frame)
    if engine is not None:
        return engine
    failed = _register_installed()
    engine = _known_engine(frame)
    if engine is not None:
        return engine
    kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
    more = f" These engines cannot be imported: {', '.join(failed)}." if failed else ""
    raise DeclarationError(
        f"frame must be a pandas.DataFrame, got a {kind}. dpf.scan reads tables of Arrow, Polars "
        "and DuckDB, dpf.scan_parquet opens Parquet files; a dask.dataframe.DataFrame is read "
        f"after `import dpframe.dask`.{more}",
        parameter="frame",
    )


def _known_engine(frame: object) -> Engine | None:
    return next((engine for engine in ENGINES if engine.handles(frame)), None)


def _register_installed() -> list[str]:
    """Register what installed packages name, once; return the names of what cannot be."""
    # slow, and rarely needed
    from importlib.metadata import entry_points

    failed = []
    for point in entry_points(group=_INSTALLED):
        if point.value not in _REGISTERED:
            try:
                register(point.load())
            except Exception as error:  # one broken package must not hide the others
                failed.append(f"{point.name} ({type(error).__name__})")
            else:
                _REGISTERED.add(point.value)
    return failed
