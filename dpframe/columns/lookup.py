"""From rows to cells: positions of a column's values among declared keys or bins, block by block.

A row matches a key when Python's `==` and `hash` say that the two are equal, as in a dict: 1, 1.0
and True are one key, and the text "1" is another. Whatever matches nothing (missing, undeclared,
unhashable) gets the extra position `len(axis)`. The quick ways for some dtypes give the answers of
that dict: the position of a row depends on its own value, neither on the dtype of the column nor on
other rows.
"""

import weakref
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import reduce
from itertools import count, repeat
from typing import Any, Generic, TypeVar, cast

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from dpframe.arguments import is_unicode, nests_deeply
from dpframe.columns import compute, pa, values
from dpframe.columns.bins import Finder, bin_finder
from dpframe.context import cached_property
from dpframe.errors import STOPS
from dpframe.queries.tasks import Axis, BinAxis, Cells, KeyAxis

_Source = TypeVar("_Source")
_Made = TypeVar("_Made")


class Remembered(Generic[_Source, _Made]):
    """Values made of objects, by their identity: of the last few that are still there.

    A value must not refer to its object, which could not go otherwise. Threads may share it: at
    worst, a value is made twice.

    Parameters
    ----------
    most
        How many values are kept.

    Examples
    --------
    >>> lengths = Remembered(2)
    >>> some = {1, 2, 3}
    >>> lengths.of(some, lambda: len(some)), lengths.of(some, lambda: -1), len(lengths)
    (3, 3, 1)
    >>> del some
    >>> len(lengths)
    0
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, tuple[weakref.ref[_Source], _Made]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, source: _Source, make: Callable[[], _Made]) -> _Made:
        """Return what was made of an object before, or make it."""
        name = id(source)
        kept = self._known.get(name)
        if kept is not None and kept[0]() is source:
            return kept[1]
        value = make()
        # of an object that has gone: the new one is the last
        self._known.pop(name, None)
        self._known[name] = weakref.ref(source, lambda gone: self._forget(name, gone)), value
        for old in list(self._known)[: -self._most]:
            self._known.pop(old, None)
        return value

    def _forget(self, name: int, gone: "weakref.ref[_Source]") -> None:
        """Drop what was made of an object, unless another one has its place by now."""
        kept = self._known.get(name)
        if kept is not None and kept[0] is gone:
            # another thread may have dropped it just now
            self._known.pop(name, None)


Search = Callable[[np.ndarray], np.ndarray]
"""From an array to the int64 positions of its values among the keys; `len(keys)`: not a key."""

SMALL_TABLE = 1 << 20
"""A table of this many positions is always worth its memory."""

SPARSE = 8
"""A larger table is worth it with at most this many positions per key."""

_Places = tuple[np.ndarray, np.ndarray]
"""Keys, unique, in the dtype of a search, and their places."""

# of keys, that searches are kept of
_FEW_LISTS = 16
# lists of them that positions are kept of, for one list of keys
_FEW_CATEGORIES = 4
_TIMES = {np.datetime64: pd.Timestamp, np.timedelta64: pd.Timedelta}
"""How pandas boxes NumPy's times, which do not hash like Python's."""


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
    def boxed_keys(self) -> list[Any]:
        """The keys as Python objects, as pandas boxes them."""
        items: list[Any] = np.asarray(self._index, dtype=object).tolist()
        if _TIMES.keys().isdisjoint(map(type, items)):
            return items
        return [_TIMES[type(key)](key) if type(key) in _TIMES else key for key in items]

    def numbers(self, kinds: str) -> np.ndarray | None:
        """Return the keys as an array, if their dtype is one of NumPy's, of one of these kinds."""
        dtype = self._index.dtype
        if isinstance(dtype, np.dtype) and dtype.kind in kinds and dtype.itemsize <= _WORD:
            return np.asarray(self._index)
        return None

    def times(self, kind: str) -> Any:
        """Return the keys as an index of times or durations, if their dtype is one of these."""
        of_times = isinstance(self._index, pd.DatetimeIndex | pd.TimedeltaIndex)
        return self._index if of_times and self._index.dtype.kind == kind else None


_KNOWN: Remembered[pd.Index, AxisKeys] = Remembered(_FEW_LISTS)


def axis_keys(index: pd.Index) -> AxisKeys:
    """Return the keys of an index; the same for the same index, so that searches are kept.

    Keys are public and never change. What is kept goes with the index: it holds a view of it.
    """
    return _KNOWN.of(index, lambda: AxisKeys(index.view()))


def search_of(keys: AxisKeys, dtype: np.dtype[Any], aware: bool) -> Search:
    """Choose the quickest search of an array of numbers or times."""
    kind = dtype.kind
    if kind in "biu":
        return _integer_search(_integers(keys, np.uint64 if kind == "u" else np.int64), len(keys))
    if kind == "f":
        return _hash_search(_floats(keys), len(keys))
    unit = np.datetime_data(dtype)[0]
    return _integer_search(_ticks(keys, kind, unit, aware), len(keys))


def _integers(keys: AxisKeys, dtype: type[np.integer[Any]]) -> _Places:
    """Find the keys that are integers of a dtype."""
    numbers = keys.numbers("iu")
    if numbers is None:
        return _exact(keys.boxed_keys, lambda key: _as_number(int, key), dtype)
    held = numbers.astype(dtype, copy=False)
    if (held.min(initial=0) >= 0) and (numbers.min(initial=0) >= 0):
        return held, np.arange(len(held))
    # the others have wrapped
    usable = (held >= 0) == (numbers >= 0)
    return held[usable], np.flatnonzero(usable)


def _floats(keys: AxisKeys) -> _Places:
    """Find the keys that are equal to a float."""
    numbers = keys.numbers("f")
    if numbers is None:
        return _exact(keys.boxed_keys, lambda key: _as_number(float, key), np.float64)
    return numbers.astype(np.float64), np.arange(len(numbers))


def _ticks(keys: AxisKeys, kind: str, unit: Any, aware: bool) -> _Places:
    """Find the keys that are times, as the integers that a column of this unit keeps."""
    times = keys.times(kind)
    if times is not None and (kind == "m" or (times.tz is not None) == aware):
        try:
            held = times.as_unit(unit)
        except ValueError:  # one of them is out of range
            pass
        else:
            # the others are between two ticks
            same = np.asarray(held == times)
            return held.asi8[same], np.flatnonzero(same)
    return _exact(keys.boxed_keys, lambda key: _as_ticks(key, kind, unit, aware), np.int64)


def _exact(keys: list[Any], convert: Callable[[Any], Any], dtype: type[np.number[Any]]) -> _Places:
    """Find the keys that a dtype can hold, one by one."""
    places: dict[Any, int] = {}
    for place, key in enumerate(keys):
        try:
            value = convert(key)
            if value is not None:
                places.setdefault(dtype(value).item(), place)
        except (AttributeError, TypeError, ValueError, ArithmeticError):
            continue  # not a number or a time, or out of range
    return np.array(list(places), dtype), np.fromiter(places.values(), np.int64, len(places))


def _same(value: Any, key: Any) -> bool:
    """Whether a dict takes the two for one key."""
    return bool(value == key) and hash(value) == hash(key)


def _as_number(kind: type[int | float], key: Any) -> float | None:
    """Integer or float equal to a key (an int, a float, a Decimal, a bool...), if any."""
    value = kind(key.real)
    return value if _same(value, key) else None


def _as_ticks(key: Any, kind: str, unit: Any, aware: bool) -> int | None:
    """Time equal to a key, as the integer that a column of this unit keeps, if any."""
    if kind == "M" and isinstance(key, datetime) and (key.tzinfo is not None) == aware:
        value: pd.Timestamp | pd.Timedelta = pd.Timestamp(key).as_unit(unit)
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
        differences = (
            numbers.astype(keys.dtype, copy=False).view(np.uint64) - origin
        )  # modulo 2**64
        return np.asarray(np.minimum(differences, last, out=differences).view(np.int64))

    if span == size and np.array_equal(keys.view(np.uint64) - origin, np.arange(size)):
        return offsets  # keys that follow one another
    table = np.full(span + 1, size)
    table[offsets(keys)] = positions
    return lambda numbers: table.take(offsets(numbers))


def _hash_search(places: _Places, size: int) -> Search:
    """Search numbers of one NumPy dtype by hashing."""
    keys, positions = places
    index: pd.Index = pd.Index(keys)
    # now: pandas would hash at the first search, in a race of threads
    index.get_indexer(index[:1])
    # -1, not a key, is the last
    table = np.append(positions, size)
    return lambda numbers: table.take(
        index.get_indexer(pd.Index(numbers.astype(keys.dtype, copy=False), copy=False))
    )


# keys; above, a dict is quicker: Arrow hashes its keys anew for every block
_MOST_TEXTS = 1 << 18
# keys; above, large blocks are quicker, for the same reason
_MANY_TEXTS = 1 << 12
_NOT_A_TIME = np.iinfo(np.int64).min
# bytes of the widest numbers that NumPy compares exactly
_WORD = 8
_SIMPLE = frozenset("string integer boolean decimal bytes date datetime empty".split())
"""Kinds of objects, as pandas tells them, that a dict can be asked for."""
_PLAIN = frozenset(map(id, (str, int, float, bool, type(None), pd.Timestamp)))
_NOWHERE = object()  # no key


class CellLookup:
    """Finds the cells of rows, the extra cell `cells.places` for rows in none.

    Parameters
    ----------
    cells
        The public cells.
    """

    def __init__(self, cells: Cells) -> None:
        self._axes = cells.axes
        self._together = bool(cells.margins)
        self._product = cells.product
        self._choose = None if cells.chosen is None else _chooser(cells.chosen, cells.product)

    def __call__(self, position: Callable[[Axis], np.ndarray], length: int) -> np.ndarray:
        """Return the cells of some rows: int64, not to be written to.

        Parameters
        ----------
        position
            From an axis to the positions of the rows on it.
        length
            Number of rows.
        """
        if self._together:
            return self._outside(position, length)
        if len(self._axes) == 1:
            codes = position(self._axes[0])
        else:
            codes = self._combine(position, length)
        return codes if self._choose is None else self._choose(codes)

    def _outside(self, position: Callable[[Axis], np.ndarray], length: int) -> np.ndarray:
        """Give the rows 1 that have no place on some axis, and all others 0."""
        outside = (position(axis) == len(axis) for axis in self._axes)
        return reduce(np.bitwise_or, outside, np.zeros(length, np.int64))

    def _combine(self, position: Callable[[Axis], np.ndarray], length: int) -> np.ndarray:
        """Positions in the product of the axes, row-major."""
        codes = np.zeros(length, np.int64)
        dropped = np.zeros(length, bool)
        for axis in self._axes:
            place = position(axis)
            dropped |= place == len(axis)
            codes *= len(axis)
            codes += place
        codes[dropped] = self._product
        return codes


def finder(axis: Axis, column: pd.Series) -> Finder:
    """Prepare the search of a column's rows on an axis; used on blocks of that column."""
    if isinstance(axis, BinAxis):
        return bin_finder(axis.keys, clipped=axis.clipped)
    find = _key_finder(axis_keys(axis.keys), values.dense(column.iloc[:0]))
    if axis.rest:
        find = _with_rest(find, len(axis) - 1)
    if isinstance(column.dtype, pd.SparseDtype):
        return lambda block: find(values.dense(block))
    return find


def _with_rest(find: Finder, last: int) -> Finder:
    """Find all that is none of the keys at the last of them."""
    return lambda block: np.minimum(find(block), last)


def wants_many_rows(axis: Axis, dtype: object) -> bool:
    """Whether a search is quicker in blocks larger than the processor's cache."""
    return isinstance(axis, KeyAxis) and len(axis) > _MANY_TEXTS and is_arrow_text(dtype)


def native_dtype(dtype: Any) -> np.dtype[Any] | None:
    """Find the NumPy dtype that holds a column's numbers, of up to 64 bits, or times exactly."""
    if isinstance(dtype, pd.DatetimeTZDtype):
        return np.dtype(f"M8[{dtype.unit}]")
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind in "mM" and not _is_time(dtype):
        return None
    # masked numbers, Arrow numbers and times have one
    native = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", None)
    usable = isinstance(native, np.dtype) and native.kind in "biufmM" and native.itemsize <= _WORD
    return native if usable else None


def native(column: pd.Series, dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """View a column as an array of its native dtype, with a mask of what is missing.

    The mask is `None` where the array itself says what is missing, by NaN and NaT.
    """
    if not hasattr(column.dtype, "numpy_dtype"):
        return np.asarray(column.array, dtype), None
    array: Any = column.array
    # Arrow says in integers what no Timestamp can hold
    if dtype.kind in "mM":
        ticks = array.__arrow_array__().cast("int64").fill_null(_NOT_A_TIME)
        return ticks.to_numpy().view(dtype), None
    # Arrow fills booleans with False alone
    zero = dtype.type(0).item()
    return array.to_numpy(dtype=dtype, na_value=zero), column.isna().to_numpy()


def _is_time(dtype: Any) -> bool:
    """Whether Arrow counts the units of time that NumPy counts, too, and not days."""
    kind = dtype.pyarrow_dtype
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _has_zone(dtype: Any) -> bool:
    """Whether a column is made of points in time with a time zone."""
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None) is not None


def box_values(block: pd.Series) -> list[Any]:
    """List the values of a block as Python objects that can be looked for in a dict."""
    items_of_block = values.objects(block)
    items: list[Any] = items_of_block.tolist()
    if values.contain_errors(infer_dtype, items_of_block, otherwise="mixed") in _SIMPLE:
        return items
    return [item if id(type(item)) in _PLAIN else _sought(item) for item in items]


def _sought(value: Any) -> Any:
    """Return what a dict is asked for: not all values hash as what equals them."""
    if nests_deeply(value) or _counts_months(value):
        return _NOWHERE
    if type(value) is np.clongdouble and value.imag == 0:
        value = value.real
    return int(value) if type(value) is np.longdouble and value.is_integer() else value


def _counts_months(value: Any) -> bool:
    """Whether a value is, or holds, a duration that hashes as an integer: NumPy may warn of it."""
    if type(value) is tuple:
        return any(map(_counts_months, value))
    return type(value) is np.timedelta64 and np.datetime_data(value.dtype)[0] in ("Y", "M")


def _chooser(chosen: np.ndarray, product: int) -> Callable[[np.ndarray], np.ndarray]:
    """Map positions in a product of axes to positions among chosen ones."""
    size = len(chosen)
    if product <= max(SMALL_TABLE, SPARSE * size):
        table = np.full(product + 1, size)
        table[chosen] = np.arange(size)
        return table.take
    return _hash_search((chosen, np.arange(size)), size)


def _key_finder(keys: AxisKeys, column: pd.Series) -> Finder:
    """Choose the quickest search for the dtype of a column."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _category_finder(keys, dtype.categories)
    if values.is_dictionary(dtype):
        return _dictionary_finder(keys, column.iloc[:0])
    if dtype not in keys.finders:
        keys.finders[dtype] = _plain_finder(keys, column.iloc[:0])
    return keys.finders[dtype]


def _plain_finder(keys: AxisKeys, column: pd.Series) -> Finder:
    """Choose the quickest search for a dtype that holds no values itself."""
    dtype, size = column.dtype, len(keys)
    if is_arrow_text(dtype) and len(keys) <= _MOST_TEXTS:
        return _text_finder(keys.boxed_keys, column)
    kept = native_dtype(dtype)
    if kept is None:
        return _object_finder(keys.boxed_keys)
    search = search_of(keys, kept, aware=_has_zone(dtype))

    def find(block: pd.Series) -> np.ndarray:
        numbers, missing = native(block, kept)
        places = search(numbers)
        if missing is not None:
            places[missing] = size
        return places

    return find


def _object_finder(keys: list[Any]) -> Finder:
    """Search any Python objects: this is what equality with a key means."""
    find, nowhere = dict(zip(keys, count())).get, len(keys)

    def find_all(block: pd.Series) -> np.ndarray:
        items = box_values(block)
        try:
            return np.fromiter(map(find, items, repeat(nowhere)), np.int64, len(items))
        except STOPS:
            raise
        except BaseException:  # private values may be unhashable, or raise when compared
            places = (
                values.contain_errors(find, item, nowhere, otherwise=nowhere) for item in items
            )
            return np.fromiter(places, np.int64, len(items))

    return find_all


def _category_finder(keys: AxisKeys, categories: pd.Index) -> Finder:
    """Search the categories once, then read codes; code -1, missing, is the last place."""

    def look_up() -> np.ndarray:
        return np.append(_key_finder(keys, pd.Series(categories))(pd.Series(categories)), len(keys))

    table = keys.tables.of(categories, look_up)
    return lambda block: table.take(cast(pd.Categorical, block.array).codes)


def _dictionary_finder(keys: AxisKeys, sample: pd.Series) -> Finder:
    """Search the dictionaries of a block, then read codes."""
    search = _key_finder(keys, values.split_dictionary(sample).values)

    def find(block: pd.Series) -> np.ndarray:
        parts = values.split_dictionary(block)
        return values.spread(search(parts.values), parts.codes, len(keys))

    return find


def is_arrow_text(dtype: object) -> bool:
    """Whether a column is made of Arrow strings."""
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return isinstance(dtype, pd.StringDtype) and dtype.storage != "python"


def _text_finder(keys: list[Any], sample: pd.Series) -> Finder:
    """Search Arrow strings in C++."""
    places = {key: place for place, key in enumerate(keys) if isinstance(key, str)}
    # a lone surrogate cannot be in an Arrow column
    if not is_unicode("".join(places)):
        places = {key: place for key, place in places.items() if is_unicode(key)}
    key_array = pa.array(list(places), sample.array.__arrow_array__().type)
    table = np.append(np.fromiter(places.values(), np.int64), len(keys))

    def find(block: pd.Series) -> np.ndarray:
        places_found = compute.index_in(block.array.__arrow_array__(), value_set=key_array)
        positions: np.ndarray = places_found.fill_null(len(key_array)).to_numpy()
        return table.take(positions)

    return find
