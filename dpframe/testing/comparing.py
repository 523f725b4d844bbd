"""What one run of a pipeline lets out, and where two runs differ, to the last bit."""

import contextlib
import inspect
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from dpframe.errors import PrivacyTestError
from dpframe.testing.recorder import Run

_DEEPEST = 12
_SHOWN = 100
_ALL = 1
"""The level of logging below all others."""


@dataclass(frozen=True, eq=False)
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
    with warnings.catch_warnings(record=True) as caught, _logs(logged), _output() as printed:
        warnings.simplefilter("always")
        with block:
            try:
                result = _complete(pipeline(frame.copy()))
            except (KeyboardInterrupt, PrivacyTestError):
                raise
            except BaseException as error:  # `sys.exit()` and what pytest raises, too
                raised = error
            files, ledgers = block.files(), block.ledgers()
    return RunOutcome(
        result,
        None if raised is None else f"{type(raised).__name__}: {_text(raised)}",
        raised,
        ledgers,
        files,
        [f"{one.category.__name__}: {_text(one.message)}" for one in caught],
        logged,
        [one.getvalue() for one in printed],
    )


def _complete(result: Any) -> Any:
    """Run what was returned and not run yet."""
    if inspect.isawaitable(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        way = "Wrap it: lambda frame: asyncio.run(pipeline(frame))."
        raise PrivacyTestError(f"the pipeline is asynchronous, and was not run. {way}")
    return list(result) if isinstance(result, Iterator) else result


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


_PARTS = {
    "error": "what is raised",
    "result": "what is returned",
    "warned": "what is warned of",
    "logged": "what is logged",
    "printed": "what is printed",
    "files": "what is in files",
    "ledgers": "what is charged",
}


def difference(one: RunOutcome, other: RunOutcome) -> tuple[str, str] | None:
    """Return where two outcomes differ first: in which part, and in words; `None`: nowhere."""
    for part, words in _PARTS.items():
        found = next(_differences(getattr(one, part), getattr(other, part), "", 0), None)
        if found is not None:
            path, first, second = found
            where = f", at {path.strip()}" if path else ""
            return part, f"{words} is not the same{where}: {_show(first)} and {_show(second)}"
    return None


def _show(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # of a class that is not ours
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_Found = Iterator[tuple[str, object, object]]


def _differences(one: Any, other: Any, path: str, depth: int) -> _Found:  # noqa: PLR0912
    """Say where two values differ, with both of them there."""
    if type(one) is not type(other):
        yield path, one, other
    elif isinstance(one, pd.DataFrame | pd.Series):
        yield from _of_pandas(one, other, path, depth)
    elif isinstance(one, pd.Index):
        yield from _of_index(one, other, path, depth)
    elif isinstance(one, np.ndarray):
        yield from _of_array(one, other, path, depth)
    elif isinstance(one, float):
        if not (one == other and math.copysign(1, one) == math.copysign(1, other)) and not (
            math.isnan(one) and math.isnan(other)
        ):
            yield path, one, other
    elif isinstance(one, Mapping):
        if list(one) != list(other):
            yield f"{path}keys", list(one), list(other)
        else:
            for key in one:
                yield from _differences(one[key], other[key], f"{path}[{key!r:.60}]", depth + 1)
    elif isinstance(one, list | tuple):
        if len(one) != len(other):
            pairs = list(zip_longest(one, other, fillvalue="nothing"))
            at = next(at for at, pair in enumerate(pairs) if not _same(*pair))
            yield f"{path}[{at}]", *pairs[at]
        else:
            for at, (a, b) in enumerate(zip(one, other, strict=True)):
                yield from _differences(a, b, f"{path}[{at}]" if len(one) > 1 else path, depth + 1)
    elif depth < _DEEPEST and is_dataclass(one):
        for part in fields(one):
            a, b = getattr(one, part.name, None), getattr(other, part.name, None)
            yield from _differences(a, b, f"{path}.{part.name}", depth + 1)
    elif depth < _DEEPEST and _has_no_equality(one) and hasattr(one, "__dict__"):
        yield from _differences(vars(one), vars(other), path, depth + 1)
    elif not _equal(one, other):
        yield path, one, other


def _has_no_equality(value: object) -> bool:
    equality: Any = type(value).__eq__
    return equality is object.__eq__


def _same(one: Any, other: Any) -> bool:
    return next(_differences(one, other, "", 0), None) is None


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return bool(one == other) or bool(pd.isna(one) and pd.isna(other))
    except Exception:  # of a class that cannot be compared
        return _show(one) == _show(other)


def _of_pandas(one: Any, other: Any, path: str, depth: int) -> _Found:
    yield from _differences(one.index, other.index, f"{path} index", depth + 1)
    if isinstance(one, pd.Series):
        yield from _differences(one.name, other.name, f"{path} name", depth + 1)
        yield from _of_values(one, other, path, depth)
    else:
        yield from _differences(one.columns, other.columns, f"{path} columns", depth + 1)
        if one.columns.equals(other.columns):
            for at, label in enumerate(one.columns):
                pair = one.iloc[:, at], other.iloc[:, at]
                yield from _of_values(*pair, f"{path} column {label!r:.60}", depth)
    yield from _differences(dict(one.attrs), dict(other.attrs), f"{path} attrs", depth + 1)


def _of_index(one: Any, other: Any, path: str, depth: int) -> _Found:
    yield from _differences(list(one.names), list(other.names), f"{path} names", depth + 1)
    if isinstance(one, pd.MultiIndex):
        if one.nlevels == other.nlevels:
            for at in range(one.nlevels):
                pair = one.get_level_values(at), other.get_level_values(at)
                yield from _of_index(*pair, f"{path} level {at}", depth)
    else:
        yield from _of_values(one, other, path, depth)


def _of_values(one: Any, other: Any, path: str, depth: int) -> _Found:
    if str(one.dtype) != str(other.dtype):
        yield f"{path} dtype", str(one.dtype), str(other.dtype)
    elif len(one) != len(other):
        yield f"{path} length", len(one), len(other)
    elif isinstance(one.dtype, np.dtype) and one.dtype.kind != "O":
        yield from _of_array(one.to_numpy(), other.to_numpy(), path, depth)
    else:
        pairs = zip(one.tolist(), other.tolist(), strict=True)
        for at, (a, b) in enumerate(pairs):
            yield from _differences(a, b, f"{path}[{at}]", depth + 1)


def _of_array(one: np.ndarray, other: np.ndarray, path: str, depth: int) -> _Found:
    if one.dtype != other.dtype or one.shape != other.shape:
        yield path, f"{one.dtype} {one.shape}", f"{other.dtype} {other.shape}"
    elif one.dtype.kind == "O":
        yield from _differences(one.ravel().tolist(), other.ravel().tolist(), path, depth + 1)
    elif one.tobytes() != other.tobytes():
        bits = (np.ascontiguousarray(each).view(f"V{each.dtype.itemsize}") for each in (one, other))
        first = next(i for i, (a, b) in enumerate(zip(*map(np.ravel, bits), strict=True)) if a != b)
        yield f"{path}[{first}]", one.ravel()[first], other.ravel()[first]
