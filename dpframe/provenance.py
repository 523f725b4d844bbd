"""The marks of private frames, by which what pandas made of them can be told."""

import datetime
from collections.abc import Iterator, Mapping, MutableMapping
from numbers import Number
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd

DIAGNOSED = "dpframe_private"
"""The name in `attrs` that marks exact numbers of a private frame."""

MADE_UP = "dpframe_made_up"
"""The name in `attrs` that marks rows that were made up."""

_DECLARED = "dpframe_declared"
_FRAMES: WeakValueDictionary[int, pd.DataFrame] = WeakValueDictionary()  # an index has no attrs
_SCALARS = frozenset({type(None), bool, int, float, str})  # quicker
_LIKE_SCALARS = (Number, str, bytes, np.generic, datetime.date, datetime.time, datetime.timedelta)


_FOUND: WeakValueDictionary[int, pd.Index] = WeakValueDictionary()


def mark_found(groups: pd.Index) -> None:
    """Remember an index of groups that were found under a guarantee."""
    _FOUND[id(groups)] = groups


def is_found(groups: object) -> bool:
    """Tell whether groups are such an index."""
    return groups is not None and _FOUND.get(id(groups)) is groups


def mark_frame(frame: pd.DataFrame) -> None:
    """Mark a declared frame of pandas in its `attrs`.

    pandas carries the mark along, also to files, but not when frames with and without it are merged
    or concatenated: what comes out is as if nothing had ever been declared.
    """
    attrs: MutableMapping[Any, Any] = frame.attrs
    attrs[_DECLARED] = True
    _FRAMES[id(frame)] = frame


def is_marked(attrs: Mapping[Any, Any]) -> bool:
    """Tell whether `attrs` are those of a declared frame, or of what was made of one."""
    return bool(attrs.get(_DECLARED))


def is_made_up(attrs: Mapping[Any, Any]) -> bool:
    """Tell whether `attrs` are those of rows that were made up, or of what was made of them."""
    return MADE_UP in attrs


def is_private(attrs: Mapping[Any, Any]) -> bool:
    """Tell whether `attrs` are those of a diagnosis, whose numbers are private."""
    return DIAGNOSED in attrs


def origin_of(value: object) -> str | None:
    """Say what private thing a value is, or holds, as far as it is marked; `None` if nothing is.

    Lists, arrays and iterators of cells do not say what they were made of.

    Parameters
    ----------
    value
        Anything; lists, tuples, sets and dicts are looked into.
    """
    return next(filter(None, map(_origin, parts_of(value))), None)


def parts_of(value: object, depth: int = 5) -> Iterator[object]:
    """List what is no scalar in a value: the value itself, or what plain containers hold."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if not isinstance(value, list | tuple | set | frozenset):
        yield value
        return
    odd = {kind for kind in set(map(type, value)) - _SCALARS if not issubclass(kind, _LIKE_SCALARS)}
    if odd and depth:
        for part in value:
            if type(part) in odd:
                yield from parts_of(part, depth - 1)


def _origin(value: object) -> str | None:
    if isinstance(value, pd.DataFrame | pd.Series):
        if is_private(value.attrs):
            return "a diagnosis"
        return "a declared frame" if is_marked(value.attrs) or id(value) in _FRAMES else None
    if isinstance(value, pd.Index):
        frames = [reference() for reference in _FRAMES.valuerefs()]  # while others declare frames
        is_declared = any(frame is not None and frame.index.is_(value) for frame in frames)
        return "a declared frame" if is_declared else None
    return "a collection of Dask" if hasattr(type(value), "__dask_graph__") else None
