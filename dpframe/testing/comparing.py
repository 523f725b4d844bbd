"""What one run of a pipeline lets out, and where two runs differ, to the last bit."""

import contextlib
import functools
import inspect
import io
import logging
import math
import os
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from itertools import zip_longest
from pathlib import Path
from types import CellType
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.errors import PrivacyTestError, a_type
from dpframe.frozen import frozen
from dpframe.ledger.ledger import Ledger
from dpframe.testing.recorder import Run, beside

_ALL = 1
"""The level of logging below all others."""


@frozen(eq=False)
class RunOutcome:
    """What one run of a pipeline lets out.

    Parameters
    ----------
    result
        What it returned.
    error
        Type and text of what it raised.
    raised
        What it raised.
    ledgers
        The entries of every ledger.
    warned, logged, printed, files
        Warnings, log records of all levels, output, and files written.
    """

    result: Any
    error: str | None
    raised: BaseException | None
    ledgers: list[Any]
    files: dict[str, bytes]
    warned: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


def watch(pipeline: Callable[[Any], Any], frame: pd.DataFrame, block: Run) -> RunOutcome:
    """Run a pipeline in a block, and keep all that it lets out."""
    logged: list[str] = []
    result, raised = None, None
    with (
        warnings.catch_warnings(record=True) as caught, _logs(logged), _output() as printed,
        _figures(), _writes() as written,
    ):  # fmt: skip
        warnings.simplefilter("always")
        with block:
            try:
                result = _complete(pipeline(frame.copy()))
            except (KeyboardInterrupt, PrivacyTestError):
                raise
            except BaseException as error:  # `sys.exit()` and what pytest raises, too
                raised = error
            files = _contents(written, block.folder) | block.files()
            ledgers = block.ledgers()
    return RunOutcome(
        result,
        None if raised is None else f"{type(raised).__name__}: {_text(raised)}",
        raised,
        ledgers,
        files,
        [_of_warning(item) for item in caught],
        logged,
        [item.getvalue() for item in printed],
    )


def _complete(result: Any) -> Any:
    """Run what was returned and not run yet."""
    if inspect.isawaitable(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        remedy = "Wrap it: lambda frame: asyncio.run(pipeline(frame))."
        raise PrivacyTestError(f"the pipeline is asynchronous, and was not run. {remedy}")
    return list(result) if isinstance(result, Iterator) else result


def _of_warning(warning: warnings.WarningMessage) -> str:
    where = f"line {warning.lineno} of {os.path.basename(warning.filename)}"
    return f"{warning.category.__name__}: {_text(warning.message)} ({where})"


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # of a class that is not ours
        return type(value).__name__


@contextlib.contextmanager
def _logs(logged: list[str]) -> Iterator[None]:
    """Keep all log records, of every level and logger, also of those that pass nothing on."""
    make, root = logging.getLogRecordFactory(), logging.getLogger()
    level, off = root.level, root.manager.disable

    def keep(*args: Any, **keywords: Any) -> logging.LogRecord:
        record = make(*args, **keywords)
        try:
            words = record.getMessage()
        except Exception:  # a message that does not fit its arguments
            words = f"{record.msg!r} {record.args!r}"
        logged.append(f"{record.name} {record.levelname}: {words}")
        return record

    handlers, root.handlers = root.handlers, [logging.NullHandler()]
    logging.setLogRecordFactory(keep)
    root.setLevel(_ALL)
    logging.disable(logging.NOTSET)
    try:
        yield
    finally:
        logging.disable(off)
        root.setLevel(level)
        logging.setLogRecordFactory(make)
        root.handlers = handlers


@contextlib.contextmanager
def _output() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Keep what is printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


_WRITING = os.O_WRONLY | os.O_RDWR
_written: list[set[str]] = []
"""Files that are opened while a pipeline runs, of the runs that are watched now."""


@contextlib.contextmanager
def _writes() -> Iterator[set[str]]:
    """Keep the paths of all files that Python opens for writing, and of databases of SQLite."""
    _hear_of_files()
    paths: set[str] = set()
    _written.append(paths)
    try:
        yield paths
    finally:
        # equal ones may be there
        _written[:] = [listed for listed in _written if listed is not paths]


@functools.cache
def _hear_of_files() -> None:
    sys.addaudithook(_note_file)  # it stays as long as the process, and does nothing outside


def _note_file(event: str, arguments: tuple[Any, ...]) -> None:
    if not _written or event not in ("open", "os.rename", "sqlite3.connect"):
        return
    if event == "open" and not arguments[2] & _WRITING:
        return
    path = arguments[1] if event == "os.rename" else arguments[0]
    with contextlib.suppress(Exception):  # what it raises would be raised by `open`
        if not isinstance(path, int):  # a file that is open already
            _written[-1].add(os.path.realpath(os.fsdecode(path)))


def _contents(paths: set[str], folder: Path) -> dict[str, bytes]:
    """Read files as they are at the end of a run, those in its folder by their names there."""
    contents = {}
    for path in sorted(map(Path, paths)):
        with contextlib.suppress(OSError, sqlite3.Error):  # it is gone, or not to be read
            if path.is_file():
                inside = path.is_relative_to(folder)
                contents[str(path.relative_to(folder) if inside else path)] = _content(path)
    return contents


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if not content.startswith(b"SQLite format 3"):
        return content
    with contextlib.closing(sqlite3.connect(path)) as database:  # the file counts its changes
        return "\n".join(database.iterdump()).encode()


@contextlib.contextmanager
def _figures() -> Iterator[None]:
    """Close the figures of pyplot that a run leaves open; it warns of many."""
    before = _open_figures()
    try:
        yield
    finally:
        for number in _open_figures() - before:
            sys.modules["matplotlib.pyplot"].close(number)


def _open_figures() -> set[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set() if pyplot is None else {*pyplot.get_fignums()}


_PARTS = {
    "error": "what is raised",
    "result": "what is returned",
    "warned": "what is warned of",
    "logged": "what is logged",
    "printed": "what is printed",
    "files": "what is in files",
    "ledgers": "what is charged",
}


def difference(base: RunOutcome, other: RunOutcome) -> tuple[str, str] | None:
    """Return where two outcomes differ first: in which part, and in words; `None`: nowhere."""
    for part, words in _PARTS.items():
        place = next(_differences(getattr(base, part), getattr(other, part), "", {}), None)
        if place is not None:
            path, first, second = place
            where = f", at {path.strip()}" if path else ""
            return part, f"{words} is not the same{where}: {beside(_show(first), _show(second))}"
    return None


class _Nothing:
    """What is in place of what one run lacks."""

    def __repr__(self) -> str:
        return "nothing"


def _show(value: object) -> str:
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index | np.ndarray):
        return a_type(value)
    if type(value).__repr__ is object.__repr__:  # shows an address
        return a_type(value)
    try:
        return repr(value)
    except Exception:  # of a class that is not ours
        return a_type(value)


_Found = Iterator[tuple[str, object, object]]
_Seen = dict[tuple[int, int], object]


def _differences(base: Any, other: Any, path: str, seen: _Seen) -> _Found:
    """Say where two values differ, with both of them there.

    `seen` holds objects that are compared already, or being compared: these may hold each other.
    """
    if not _have_one_type(base, other):
        yield path, base, other
    elif isinstance(base, np.ndarray):
        yield from _of_array(base, other, path, seen)
    elif isinstance(base, float):
        if not (base == other and math.copysign(1, base) == math.copysign(1, other)) and not (
            math.isnan(base) and math.isnan(other)
        ):
            yield path, base, other
    elif isinstance(base, Mapping | list | tuple) or _held(base) is not None:
        if (id(base), id(other)) not in seen:
            seen[id(base), id(other)] = base, other  # ids of what ends are given out again
            yield from _of_parts(base, other, path, seen)
    elif not _equal(base, other):
        yield path, base, other


def _have_one_type(base: object, other: object) -> bool:
    """Whether types are the same, or made anew by each run."""
    kinds = type(base), type(other)
    return kinds[0] is kinds[1] or (
        len({(kind.__module__, kind.__qualname__) for kind in kinds}) == 1
        and "<locals>" in kinds[0].__qualname__
    )


def _of_parts(base: Any, other: Any, path: str, seen: _Seen) -> _Found:
    if isinstance(base, list | tuple):
        if len(base) != len(other):
            pairs = list(zip_longest(base, other, fillvalue=_Nothing()))
            at = next(at for at, pair in enumerate(pairs) if not _same(*pair))
            yield f"{path}[{at}]", *pairs[at]
        else:
            for at, (a, b) in enumerate(zip(base, other, strict=True)):
                yield from _differences(a, b, f"{path}[{at}]" if len(base) > 1 else path, seen)
        return
    first: Mapping[Any, Any] = base if isinstance(base, Mapping) else _held(base) or {}
    second: Mapping[Any, Any] = other if isinstance(base, Mapping) else _held(other) or {}
    if isinstance(base, Mapping) and list(first) != list(second):
        yield f"{path}keys", list(first), list(second)
        return
    for name in {**first, **second}:
        a, b = first.get(name, _Nothing()), second.get(name, _Nothing())
        place = f"[{name!r:.120}]" if isinstance(base, Mapping) else f".{name}"
        yield from _differences(a, b, f"{path}{place}", seen)


def _held(value: Any) -> Mapping[str, Any] | None:
    """Return what an object holds; `None` where its class says when two are equal."""
    if isinstance(value, type):
        return {"name": value.__qualname__}
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index | ExtensionArray):
        return _of_pandas(value)
    if callable(value) and (parts := _of_function(value)):
        return parts
    if is_dataclass(value):
        return {part.name: getattr(value, part.name, None) for part in fields(value)}
    equality: Any = type(value).__eq__
    if equality is not object.__eq__ or isinstance(value, Iterator):
        return None
    return _of_object(value)


def _of_pandas(value: Any) -> dict[str, Any]:
    """Return what a table holds, or a part of one; the types of cells before these."""
    if isinstance(value, pd.MultiIndex):
        levels = [value.get_level_values(at) for at in range(value.nlevels)]
        return {"names": [*value.names], "levels": levels}
    if isinstance(value, pd.Index):
        return {"names": [*value.names], "values": _cells_of(value)}
    if isinstance(value, ExtensionArray):
        return {"dtype": str(value.dtype), "cells": value.tolist()}
    if isinstance(value, pd.Series):
        held = {"index": value.index, "name": value.name, "values": _cells_of(value)}
    else:
        held = {"index": value.index, "columns": value.columns}
        for at, label in enumerate(value.columns):
            held[f"column {label!r:.60}, number {at}"] = _cells_of(value.iloc[:, at])
    return held | {"attrs": {**value.attrs}}


def _cells_of(column: pd.Series | pd.Index) -> Any:
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _of_function(value: Any) -> dict[str, Any]:
    """Return what a function holds: numbers in its closure are let out, too."""
    if inspect.isfunction(value):
        cells = [_in_cell(cell) for cell in value.__closure__ or ()]
        defaults = value.__defaults__, value.__kwdefaults__
        return {"code": value.__code__, "defaults": defaults, "closure": cells}
    if inspect.ismethod(value):
        return {"function": value.__func__, "self": value.__self__}
    if isinstance(value, functools.partial):
        return {"function": value.func, "arguments": [value.args, value.keywords]}
    return {}


def _of_object(value: Any) -> dict[str, Any]:
    if isinstance(value, Ledger):  # entries of ledgers are compared by themselves
        return {"budget": value.budget}
    if type(value).__module__.startswith("matplotlib.") and hasattr(value, "findobj"):
        return {"drawn": [_drawn(artist) for artist in value.findobj()]}
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
    held: dict[str, Any] = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})


def _in_cell(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


_DRAWN = (
    "get_text", "get_label", "get_xydata", "get_offsets", "get_array", "get_segments", "get_xy",
    "get_width", "get_height", "get_xlim", "get_ylim", "get_facecolor", "get_visible",
)  # fmt: skip


def _drawn(artist: Any) -> list[Any]:
    """Return what a part of a plot shows; it holds ids and counters, too."""
    shown = [getattr(artist, name)() for name in _DRAWN if hasattr(artist, name)]
    return [type(artist).__qualname__, *shown]


def _same(base: Any, other: Any) -> bool:
    return next(_differences(base, other, "", {}), None) is None


def _equal(base: Any, other: Any) -> bool:
    if base is other:
        return True
    try:
        return bool(base == other) or bool(pd.isna(base) and pd.isna(other))
    except Exception:  # of a class that cannot be compared
        return _show(base) == _show(other)


def _of_array(base: np.ndarray, other: np.ndarray, path: str, seen: _Seen) -> _Found:
    if base.dtype != other.dtype or base.shape != other.shape:
        yield path, f"{base.dtype} {base.shape}", f"{other.dtype} {other.shape}"
    elif base.dtype.kind == "O":
        yield from _differences(base.ravel().tolist(), other.ravel().tolist(), path, seen)
    elif base.tobytes() != other.tobytes():
        arrays = map(np.ascontiguousarray, (base, other))
        bits = (array.view(f"V{array.dtype.itemsize}") for array in arrays)
        first = next(i for i, (a, b) in enumerate(zip(*map(np.ravel, bits), strict=True)) if a != b)
        yield f"{path}[{first}]", base.ravel()[first], other.ravel()[first]
