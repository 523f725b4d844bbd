"""From rows to cells: positions of a column's values among declared keys or bins, block by block.

A row matches a key when Python's `==` and `hash` say that the two are equal, as in a dict: 1, 1.0
and True are one key, and the text "1" is another. Whatever matches nothing (missing, undeclared,
unhashable) gets the extra position `len(axis)`. The quick ways for some dtypes give the answers of
that dict: the position of a row depends on its own value, neither on the dtype of the column nor on
other rows.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpframe.engines import times, values
from dpframe.totals import BinAxis, Cells, KeyAxis

try:
    import pyarrow as pa
    from pyarrow import compute
except ImportError:  # an optional dependency of pandas
    pa = None

__all__ = ["CellLookup", "boxed", "each", "finder", "is_arrow_text", "native", "native_dtype"]

Finder = Callable[[pd.Series], np.ndarray]
"""From a block of a column to the int64 position of each of its rows, in a new array."""

Search = Callable[[np.ndarray], np.ndarray]
"""The same, from an array of the native dtype of the column."""

_SMALL_TABLE = 1 << 20  # a table of this many positions is always worth its memory
_SPARSE = 8  # beyond, a table may have this many places for each used one
_MOST_TEXTS = 1 << 18  # Arrow hashes its keys anew for each block: beyond, a dict is quicker
_NOT_A_TIME = np.iinfo(np.int64).min
_WORD = 8  # bytes of the widest numbers that NumPy compares exactly


class CellLookup:
    """Finds the cell of each row, the extra cell `cells.size` for rows in none.

    Parameters
    ----------
    cells
        The public cells.
    columns
        The private column of each axis.
    """

    def __init__(self, cells: Cells, columns: Sequence[pd.Series]) -> None:
        pairs = list(zip(cells.axes, columns, strict=True))
        self._axes = [(len(axis), column, finder(axis, column)) for axis, column in pairs]
        self._product = cells.product
        self._choose = None if cells.chosen is None else _chooser(cells.chosen, cells.product)

    def __call__(self, rows: slice) -> np.ndarray:
        """Return the cells of some rows: int64, of the length of the slice."""
        if len(self._axes) == 1:
            ((_, column, find),) = self._axes
            codes = find(column.iloc[rows])
        else:
            codes = self._combined(rows)
        return codes if self._choose is None else self._choose(codes)

    def _combined(self, rows: slice) -> np.ndarray:
        """Positions in the product of the axes, row-major."""
        codes = np.zeros(rows.stop - rows.start, np.int64)
        dropped = np.zeros(len(codes), bool)
        for size, column, find in self._axes:
            position = find(column.iloc[rows])
            dropped |= position == size
            codes *= size
            codes += position
        codes[dropped] = self._product
        return codes


def finder(axis: KeyAxis | BinAxis, column: pd.Series) -> Finder:
    """Prepare the search of a column's rows on an axis; used on blocks of that column."""
    if isinstance(axis, BinAxis):
        return _bin_finder(axis.keys)
    find = _key_finder(
        [_standard(key) for key in axis.keys.tolist()], values.dense(column.iloc[:0])
    )
    if isinstance(column.dtype, pd.SparseDtype):
        return lambda block: find(values.dense(block))
    return find


def native_dtype(dtype: Any) -> np.dtype[Any] | None:
    """Find the NumPy dtype that holds a column's numbers, of up to 64 bits, or times exactly."""
    if isinstance(dtype, pd.DatetimeTZDtype):
        return np.dtype(f"M8[{dtype.unit}]")
    found = dtype
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind in "mM" and not _is_time(dtype):
        return None
    if not isinstance(found, np.dtype):  # masked numbers, Arrow numbers and times
        found = getattr(dtype, "numpy_dtype", None)
    usable = isinstance(found, np.dtype) and found.kind in "biufmM" and found.itemsize <= _WORD
    return found if usable else None


def native(column: pd.Series, dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """View a column as an array of its native dtype, with a mask of what is missing.

    The mask is `None` where the array itself says what is missing, by NaN and NaT.
    """
    if not hasattr(column.dtype, "numpy_dtype"):
        return np.asarray(column.array, dtype), None
    array: Any = column.array
    if dtype.kind in "mM":  # Arrow says in integers what no Timestamp can hold
        ticks = array.__arrow_array__().cast("int64").fill_null(_NOT_A_TIME)
        return ticks.to_numpy().view(dtype), None
    zero = dtype.type(0).item()  # Arrow fills booleans with False alone
    return array.to_numpy(dtype=dtype, na_value=zero), column.isna().to_numpy()


def _is_time(dtype: Any) -> bool:
    """Whether Arrow counts the units of time that NumPy counts, too, and not days."""
    kind = dtype.pyarrow_dtype
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _has_zone(dtype: Any) -> bool:
    """Whether a column is made of points in time with a time zone."""
    if isinstance(dtype, pd.ArrowDtype):
        return getattr(dtype.pyarrow_dtype, "tz", None) is not None
    return isinstance(dtype, pd.DatetimeTZDtype)


def boxed(block: pd.Series) -> list[Any]:
    """List the values of a block as Python objects, None for what cannot be one."""
    try:
        objects: list[Any] = block.to_numpy(dtype=object).tolist()
    except Exception:  # one value out of the range of its Python type spoils a block
        return [_item(block.array, i) for i in range(len(block))]
    return objects


def each(
    function: Callable[..., int], items: list[Any], otherwise: int, *arguments: object
) -> np.ndarray:
    """Apply a function to each item (and the same arguments); where it raises, use `otherwise`."""
    try:
        found = map(function, items, *map(repeat, arguments))
        return np.fromiter(found, np.int64, len(items))
    except Exception:  # private values may be unhashable, or raise when compared
        answers = (_one(function, item, otherwise, arguments) for item in items)
        return np.fromiter(answers, np.int64, len(items))


def _one(
    function: Callable[..., int], item: object, otherwise: int, arguments: tuple[object, ...]
) -> int:
    try:
        return function(item, *arguments)
    except Exception:
        return otherwise


def _item(array: Any, i: int) -> Any:
    """One value of an extension array as a Python object."""
    try:
        return array[i]
    except Exception:
        return None


def _standard(key: Any) -> Any:
    """Box a key as pandas boxes such values: NumPy's times do not hash like Python's."""
    if isinstance(key, np.datetime64):
        return pd.Timestamp(key)
    return pd.Timedelta(key) if isinstance(key, np.timedelta64) else key


def _chooser(chosen: np.ndarray, product: int) -> Callable[[np.ndarray], np.ndarray]:
    """Map positions in a product of axes to positions among chosen ones."""
    size = len(chosen)
    if product <= max(_SMALL_TABLE, _SPARSE * size):
        table = np.full(product + 1, size)
        table[chosen] = np.arange(size)
        return table.take
    index = pd.Index(chosen)
    places = np.append(np.arange(size), size)
    return lambda codes: places.take(index.get_indexer(codes))  # -1, not chosen, is the last


def _key_finder(keys: list[Any], column: pd.Series) -> Finder:
    """Choose the quickest search for the dtype of a column."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _category_finder(keys, pd.Series(dtype.categories))
    if values.is_dictionary(dtype):
        return _dictionary_finder(keys, column.iloc[:0])
    if is_arrow_text(dtype) and len(keys) <= _MOST_TEXTS:
        return _text_finder(keys, column.iloc[:0])
    kept = native_dtype(dtype)
    if kept is None:
        return _object_finder(keys)
    search = _search(keys, kept, aware=_has_zone(dtype))

    def find(block: pd.Series) -> np.ndarray:
        numbers, missing = native(block, kept)
        found = search(numbers)
        if missing is not None:
            found[missing] = len(keys)
        return found

    return find


def _object_finder(keys: list[Any]) -> Finder:
    """Search any Python objects: this is what equality with a key means."""
    places: dict[Any, int] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, place)
    return lambda block: each(places.get, boxed(block), len(keys), len(keys))


def _category_finder(keys: list[Any], categories: pd.Series) -> Finder:
    """Search the categories once, then read codes; code -1, missing, is the last place."""
    table = np.append(_key_finder(keys, categories)(categories), len(keys))
    return lambda block: table.take(block.array.codes)


def _dictionary_finder(keys: list[Any], sample: pd.Series) -> Finder:
    """Search the dictionaries of a block, then read codes."""
    search = _key_finder(keys, values.decoded(sample).values)

    def find(block: pd.Series) -> np.ndarray:
        parts = values.decoded(block)
        return values.spread(search(parts.values), parts.codes, len(keys))

    return find


def is_arrow_text(dtype: object) -> bool:
    """Whether a column is made of Arrow strings."""
    if pa is None:
        return False
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return isinstance(dtype, pd.StringDtype) and dtype.storage != "python"


def _text_finder(keys: list[Any], sample: pd.Series) -> Finder:
    """Search Arrow strings in C++."""
    places = {key: place for place, key in enumerate(keys) if _is_text(key)}
    wanted = pa.array(list(places), sample.array.__arrow_array__().type)
    table = np.append(np.fromiter(places.values(), np.int64), len(keys))

    def find(block: pd.Series) -> np.ndarray:
        found = compute.index_in(block.array.__arrow_array__(), value_set=wanted)
        positions: np.ndarray = found.fill_null(len(wanted)).to_numpy()
        return table.take(positions)

    return find


def _is_text(key: object) -> bool:
    """Whether a key is text that UTF-8 can hold: a lone surrogate cannot be in an Arrow column."""
    return isinstance(key, str) and key.encode(errors="replace").decode() == key


def _search(keys: list[Any], dtype: np.dtype[Any], aware: bool) -> Search:
    """Choose the quickest search of an array of numbers or times."""
    size, kind = len(keys), dtype.kind
    if kind in "biu":
        return _integer_search(_exact(keys, _as_integer), size, unsigned=kind == "u")
    if kind == "f":
        return _hash_search(_exact(keys, _as_float), size, np.float64)
    unit = np.datetime_data(dtype)[0]
    ticks = _exact(keys, lambda key: _as_ticks(key, kind, unit, aware))
    return _integer_search(ticks, size, unsigned=False)


def _exact(keys: list[Any], convert: Callable[[Any], Any]) -> dict[Any, int]:
    """Places of the keys that a dtype can hold, under the value that stands for them there."""
    places: dict[Any, int] = {}
    for place, key in enumerate(keys):
        try:
            value = convert(key)
        except (AttributeError, TypeError, ValueError, ArithmeticError):
            continue  # not a number or a time, or out of range
        if value is not None:
            places.setdefault(value, place)
    return places


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


def _integer_search(places: dict[int, int], size: int, unsigned: bool) -> Search:
    """Search 64-bit integers: in a table if the keys are close together, by hashing otherwise."""
    dtype = np.uint64 if unsigned else np.int64
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    places = {key: place for key, place in places.items() if least <= key <= most}
    low, high = min(places, default=0), max(places, default=0)
    span = high - low + 1
    if span > max(_SMALL_TABLE, _SPARSE * size):
        return _hash_search(places, size, dtype)
    table = np.full(span + 1, size)
    table[[key - low for key in places]] = list(places.values())
    origin, last = np.uint64(low % 2**64), np.uint64(span)

    def search(numbers: np.ndarray) -> np.ndarray:
        offsets = numbers.astype(dtype, copy=False).view(np.uint64) - origin  # modulo 2**64
        positions: np.ndarray = np.minimum(offsets, last).view(np.int64)
        return table.take(positions)

    return search


def _hash_search(places: dict[Any, int], size: int, dtype: type[np.number[Any]]) -> Search:
    """Search numbers of one NumPy dtype by hashing."""
    index = pd.Index(np.array(list(places), dtype))
    table = np.append(np.fromiter(places.values(), np.int64), size)

    def search(numbers: np.ndarray) -> np.ndarray:
        positions: np.ndarray = index.get_indexer(numbers.astype(dtype, copy=False))
        return table.take(positions)  # -1 is the last

    return search


def _bin_finder(bins: pd.IntervalIndex) -> Finder:
    """Search the one interval that can hold a number: the first whose right edge is not passed."""
    if bins.left.dtype.kind in "mM":
        return _bin_finder_of_times(bins)
    left = np.append(bins.left.to_numpy(np.float64), np.nan)  # comparisons with NaN are false
    right: np.ndarray = bins.right.to_numpy(np.float64)
    side: Literal["left", "right"] = "left" if bins.closed_right else "right"
    above = np.less_equal if bins.closed_left else np.less

    def find(block: pd.Series) -> np.ndarray:
        numbers = values.numbers(block)
        place: np.ndarray = np.searchsorted(right, numbers, side=side)
        place[~above(left[place], numbers)] = len(right)
        return place

    return find


def _bin_finder_of_times(bins: pd.IntervalIndex) -> Finder:
    """Search the interval that can hold a point in time, or a duration."""
    left, right = (pd.Index(ends).as_unit("us").asi8 for ends in (bins.left, bins.right))
    left = np.append(left, np.iinfo(np.int64).max)  # above all times
    side: Literal["left", "right"] = "left" if bins.closed_right else "right"
    above = np.less_equal if bins.closed_left else np.less
    naive = times.naive_times if bins.left.dtype.kind == "M" else times.durations
    view = times.instants if isinstance(bins.left.dtype, pd.DatetimeTZDtype) else naive

    def find(block: pd.Series) -> np.ndarray:
        found, valid = view(block)
        place: np.ndarray = np.searchsorted(right, found, side=side)
        place[~(above(left[place], found) & valid)] = len(right)
        return place

    return find
