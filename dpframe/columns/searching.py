"""Searches for declared keys in arrays of numbers and times.

A number matches a key when the two are equal as in a dict. Keys whose dtype is that of the numbers
are taken as they are; any others are converted one by one, and those that no such number can equal
are left out.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from dpframe.columns.remembered import Remembered
from dpframe.forks import cached_property

Search = Callable[[np.ndarray], np.ndarray]
"""From an array to the int64 positions of its values among the keys; `len(keys)`: not a key."""

SMALL_TABLE = 1 << 20
"""A table of this many positions is always worth its memory."""

SPARSE = 8
"""A larger table is worth it with at most this many positions per key."""

_Places = tuple[np.ndarray, np.ndarray]
"""Keys, unique, in the dtype of a search, and their places."""

_FEW_LISTS = 16  # of keys, that searches are kept of
_FEW_CATEGORIES = 4  # lists of them that positions are kept of, for one list of keys
_TIMES = frozenset((np.datetime64, np.timedelta64))
_WORD = 8  # bytes of the widest numbers that NumPy compares exactly


class AxisKeys:
    """The keys of an axis, with the searches for them that were prepared.

    Parameters
    ----------
    index
        The keys; as Python objects only where these are needed.
    """

    def __init__(self, index: pd.Index) -> None:
        self._index = index
        self.finders: dict[Any, Callable[[pd.Series], np.ndarray]] = {}
        """Searches of columns, by dtype."""
        self.tables: Remembered[pd.Index, np.ndarray] = Remembered(_FEW_CATEGORIES)
        """The positions of categories."""

    def __len__(self) -> int:
        return len(self._index)

    @cached_property
    def boxed(self) -> list[Any]:
        """The keys as Python objects, as pandas boxes them."""
        items: list[Any] = np.asarray(self._index, dtype=object).tolist()
        if _TIMES.isdisjoint(map(type, items)):
            return items
        return [_standard(key) for key in items]

    def numbers(self, kinds: str) -> np.ndarray | None:
        """Return the keys as an array, if their dtype is one of NumPy's, of one of these kinds."""
        dtype = self._index.dtype
        if isinstance(dtype, np.dtype) and dtype.kind in kinds and dtype.itemsize <= _WORD:
            return np.asarray(self._index)
        return None


_KNOWN: Remembered[pd.Index, AxisKeys] = Remembered(_FEW_LISTS)


def axis_keys(index: pd.Index) -> AxisKeys:
    """Return the keys of an index; the same for the same index, so that searches are kept.

    Keys are public and never change. What is kept goes with the index: it holds a view of it.
    """
    return _KNOWN.of(index, lambda: AxisKeys(index.view()))


def _standard(key: Any) -> Any:
    """Box a key as pandas boxes such values: NumPy's times do not hash like Python's."""
    if isinstance(key, np.datetime64):
        return pd.Timestamp(key)
    return pd.Timedelta(key) if isinstance(key, np.timedelta64) else key


def search_of(keys: AxisKeys, dtype: np.dtype[Any], aware: bool) -> Search:
    """Choose the quickest search of an array of numbers or times."""
    kind = dtype.kind
    if kind in "biu":
        return _integer_search(_integers(keys, np.uint64 if kind == "u" else np.int64), len(keys))
    if kind == "f":
        return _hash_search(_floats(keys), len(keys))
    unit = np.datetime_data(dtype)[0]
    ticks = _exact(keys.boxed, lambda key: _as_ticks(key, kind, unit, aware), np.int64)
    return _integer_search(ticks, len(keys))


def _integers(keys: AxisKeys, dtype: type[np.integer[Any]]) -> _Places:
    """Find the keys that are integers of a dtype."""
    numbers = keys.numbers("iu")
    if numbers is None:
        return _exact(keys.boxed, _as_integer, dtype)
    held = numbers.astype(dtype, copy=False)
    if (held.min(initial=0) >= 0) and (numbers.min(initial=0) >= 0):
        return held, np.arange(len(held))
    usable = (held >= 0) == (numbers >= 0)  # the others have wrapped
    return held[usable], np.flatnonzero(usable)


def _floats(keys: AxisKeys) -> _Places:
    """Find the keys that are equal to a float."""
    numbers = keys.numbers("f")
    if numbers is None:
        return _exact(keys.boxed, _as_float, np.float64)
    return numbers.astype(np.float64), np.arange(len(numbers))


def _exact(keys: list[Any], convert: Callable[[Any], Any], dtype: type[np.number[Any]]) -> _Places:
    """Find the keys that a dtype can hold, one by one."""
    found: dict[Any, int] = {}
    for place, key in enumerate(keys):
        try:
            value = convert(key)
            if value is not None:
                found.setdefault(dtype(value).item(), place)
        except (AttributeError, TypeError, ValueError, ArithmeticError):
            continue  # not a number or a time, or out of range
    return np.array(list(found), dtype), np.fromiter(found.values(), np.int64, len(found))


def _same(value: Any, key: Any) -> bool:
    """Whether a dict takes the two for one key."""
    return bool(value == key) and hash(value) == hash(key)


def _as_integer(key: Any) -> int | None:
    """Integer equal to a key (an int, a float, a Decimal, a bool...), if any."""
    value = int(key.real)
    return value if _same(value, key) else None


def _as_float(key: Any) -> float | None:
    """Float equal to a key, if any."""
    value = float(key.real)
    return value if _same(value, key) else None


def _as_ticks(key: Any, kind: str, unit: str, aware: bool) -> int | None:
    """Time equal to a key, as the integer that a column of this unit keeps, if any."""
    if kind == "M" and isinstance(key, datetime) and (key.tzinfo is not None) == aware:
        value = pd.Timestamp(key).as_unit(unit)
    elif kind == "m" and isinstance(key, timedelta):
        value = pd.Timedelta(key).as_unit(unit)
    else:
        return None
    return int(value.asm8.astype(np.int64)) if _same(value, key) else None


def _integer_search(places: _Places, size: int) -> Search:
    """Search 64-bit integers: in a table if the keys are close together, by hashing otherwise."""
    keys, positions = places
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    span = high - low + 1
    if span > max(SMALL_TABLE, SPARSE * size):
        return _hash_search(places, size)
    origin, last = np.uint64(low % 2**64), np.uint64(span)

    def offsets(numbers: np.ndarray) -> np.ndarray:
        found = numbers.astype(keys.dtype, copy=False).view(np.uint64) - origin  # modulo 2**64
        places: np.ndarray = np.minimum(found, last, out=found).view(np.int64)
        return places

    if span == size and np.array_equal(keys.view(np.uint64) - origin, np.arange(size)):
        return offsets  # keys that follow one another
    table = np.full(span + 1, size)
    table[offsets(keys)] = positions
    return lambda numbers: table.take(offsets(numbers))


def hashed(keys: np.ndarray) -> pd.Index:
    """Build an index and its hash table now: pandas would do it at the first search, in a race."""
    index = pd.Index(keys)
    index.get_indexer(keys[:1])
    return index


def _hash_search(places: _Places, size: int) -> Search:
    """Search numbers of one NumPy dtype by hashing."""
    keys, positions = places
    index = hashed(keys)
    table = np.append(positions, size)

    def search(numbers: np.ndarray) -> np.ndarray:
        found: np.ndarray = index.get_indexer(numbers.astype(keys.dtype, copy=False))
        return table.take(found)  # -1 is the last

    return search
