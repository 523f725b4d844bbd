"""From rows to cells: positions of a column's values among declared keys or bins, block by block.

A row matches a key when Python's `==` and `hash` say that the two are equal, as in a dict: 1, 1.0
and True are one key, and the text "1" is another. Whatever matches nothing (missing, undeclared,
unhashable) gets the extra position `len(axis)`. The quick ways for some dtypes give the answers of
that dict: the position of a row depends on its own value, neither on the dtype of the column nor on
other rows.
"""

from collections.abc import Callable
from itertools import count, repeat
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from dpframe.arguments import is_unicode, nests_deeply
from dpframe.columns import times, values
from dpframe.columns.contained import contained
from dpframe.columns.searching import SMALL_TABLE, SPARSE, AxisKeys, axis_keys, hashed, search_of
from dpframe.errors import STOPS
from dpframe.queries.tasks import Axis, BinAxis, Cells, KeyAxis

try:
    import pyarrow as pa
    from pyarrow import compute
except ImportError:  # an optional dependency of pandas
    pa = None

Finder = Callable[[pd.Series], np.ndarray]
"""From a block of a column to the int64 positions of its rows, in a new array."""

_MOST_TEXTS = 1 << 18  # keys; above, a dict is quicker: Arrow hashes its keys anew for every block
_MANY_TEXTS = 1 << 12  # keys; above, large blocks are quicker, for the same reason
_NOT_A_TIME = np.iinfo(np.int64).min
_WORD = 8  # bytes of the widest numbers that NumPy compares exactly
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
            codes = self._combined(position, length)
        return codes if self._choose is None else self._choose(codes)

    def _outside(self, position: Callable[[Axis], np.ndarray], length: int) -> np.ndarray:
        """Give the rows 1 that have no place on some axis, and all others 0."""
        outside = np.zeros(length, np.int64)
        for axis in self._axes:
            outside |= position(axis) == len(axis)
        return outside

    def _combined(self, position: Callable[[Axis], np.ndarray], length: int) -> np.ndarray:
        """Positions in the product of the axes, row-major."""
        codes = np.zeros(length, np.int64)
        dropped = np.zeros(length, bool)
        for axis in self._axes:
            found = position(axis)
            dropped |= found == len(axis)
            codes *= len(axis)
            codes += found
        codes[dropped] = self._product
        return codes


def finder(axis: Axis, column: pd.Series) -> Finder:
    """Prepare the search of a column's rows on an axis; used on blocks of that column."""
    if isinstance(axis, BinAxis):
        return _bin_finder(axis.keys, clipped=axis.clipped)
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
    """List the values of a block as Python objects that can be looked for in a dict."""
    found = values.objects(block)
    items: list[Any] = found.tolist()
    if contained(infer_dtype, found, otherwise="mixed") in _SIMPLE:
        return items
    return [one if id(type(one)) in _PLAIN else _sought(one) for one in items]


def _sought(value: Any) -> Any:
    """Return what a dict is asked for: not all values hash as what equals them."""
    if nests_deeply(value):
        return _NOWHERE
    if type(value) is np.clongdouble and value.imag == 0:
        value = value.real
    return int(value) if type(value) is np.longdouble and value.is_integer() else value


def _apply_to_items(
    function: Callable[..., int], items: list[Any], otherwise: int, *arguments: object
) -> np.ndarray:
    """Apply a function to all items (and the same arguments); where it raises, use `otherwise`."""
    try:
        found = map(function, items, *map(repeat, arguments))
        return np.fromiter(found, np.int64, len(items))
    except STOPS:
        raise
    except BaseException:  # private values may be unhashable, or raise when compared
        answers = (contained(function, item, *arguments, otherwise=otherwise) for item in items)
        return np.fromiter(answers, np.int64, len(items))


def _chooser(chosen: np.ndarray, product: int) -> Callable[[np.ndarray], np.ndarray]:
    """Map positions in a product of axes to positions among chosen ones."""
    size = len(chosen)
    if product <= max(SMALL_TABLE, SPARSE * size):
        table = np.full(product + 1, size)
        table[chosen] = np.arange(size)
        return table.take
    index = hashed(chosen)
    places = np.append(np.arange(size), size)
    return lambda codes: places.take(index.get_indexer(codes))  # -1, not chosen, is the last


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
        return _text_finder(keys.boxed, column)
    kept = native_dtype(dtype)
    if kept is None:
        return _object_finder(keys.boxed)
    search = search_of(keys, kept, aware=_has_zone(dtype))

    def find(block: pd.Series) -> np.ndarray:
        numbers, missing = native(block, kept)
        found = search(numbers)
        if missing is not None:
            found[missing] = size
        return found

    return find


def _object_finder(keys: list[Any]) -> Finder:
    """Search any Python objects: this is what equality with a key means."""
    places = dict(zip(keys, count()))
    return lambda block: _apply_to_items(places.get, boxed(block), len(keys), len(keys))


def _category_finder(keys: AxisKeys, categories: pd.Index) -> Finder:
    """Search the categories once, then read codes; code -1, missing, is the last place."""

    def look_up() -> np.ndarray:
        return np.append(_key_finder(keys, pd.Series(categories))(pd.Series(categories)), len(keys))

    table = keys.tables.of(categories, look_up)
    return lambda block: table.take(block.array.codes)


def _dictionary_finder(keys: AxisKeys, sample: pd.Series) -> Finder:
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
    places = {key: place for place, key in enumerate(keys) if isinstance(key, str)}
    if not is_unicode("".join(places)):  # a lone surrogate cannot be in an Arrow column
        places = {key: place for key, place in places.items() if is_unicode(key)}
    wanted = pa.array(list(places), sample.array.__arrow_array__().type)
    table = np.append(np.fromiter(places.values(), np.int64), len(keys))

    def find(block: pd.Series) -> np.ndarray:
        found = compute.index_in(block.array.__arrow_array__(), value_set=wanted)
        positions: np.ndarray = found.fill_null(len(wanted)).to_numpy()
        return table.take(positions)

    return find


def _bin_finder(bins: pd.IntervalIndex, *, clipped: bool) -> Finder:
    """Search the one interval that can hold a number: the first whose right edge is not passed."""
    if bins.left.dtype.kind in "mM":
        return _bin_finder_of_times(bins, clipped=clipped)
    left = np.append(bins.left.to_numpy(np.float64), np.nan)  # comparisons with NaN are false
    right: np.ndarray = bins.right.to_numpy(np.float64)
    side: Literal["left", "right"] = "left" if bins.closed_right else "right"
    above = np.less_equal if bins.closed_left else np.less

    def find(block: pd.Series) -> np.ndarray:
        numbers = values.numbers(block)
        place: np.ndarray = np.searchsorted(right, numbers, side=side)
        inside = above(left[place], numbers)
        if clipped:
            _clip(place, inside, ~np.isnan(numbers), len(right))
        place[~inside] = len(right)
        return place

    return find


def _clip(place: np.ndarray, inside: np.ndarray, valid: np.ndarray, size: int) -> None:
    """Put what is below all bins into the first, and what is above into the last, in place."""
    inside |= valid & ((place == 0) | (place == size))
    np.minimum(place, size - 1, out=place)


def _bin_finder_of_times(bins: pd.IntervalIndex, *, clipped: bool) -> Finder:
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
        inside = above(left[place], found) & valid
        if clipped:
            _clip(place, inside, valid, len(right))
        place[~inside] = len(right)
        return place

    return find
