"""The privacy units of a frame: rows by unit, in groups that fit in a processor's cache.

All rows of a unit are in one group, in their order, so that groups can be worked on one by one and
several at once. Which units share a group does not matter to any of them.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import count, repeat
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from dpframe.columns import lookup, pa, values
from dpframe.columns.identity import key_of, own_keys
from dpframe.columns.values import is_plain
from dpframe.context import Context
from dpframe.engines.capping import Codes, index_dtype, kept_rows, order_rows, unit_sizes
from dpframe.engines.threads import in_threads
from dpframe.frozen import frozen
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import Sizes

# units: what is made of them stays in cache
_BLOCK = 1 << 16
# rows of a group, about: in smaller ones threads wait for each other more often
_GROUP = 1 << 19
# that are dealt out on their own
_MOST_PARTS = 8
# groups, so that threads have as much to do
_FEWEST = 8
# integers this close together are their own codes, however few rows there are
_FEW = 1024
# odd; the high bits of a product depend on all bits
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
# bits, and bytes of a word
_WORD, _BYTE, _WORD_BYTES = 64, 8, 8
# of a text whose length is its own, and is that of all
_FEW_WORDS, _MOST_WORDS = 2, 4
_MASKS = np.array([(1 << _BYTE * size) - 1 for size in range(_WORD_BYTES + 1)], np.uint64)
"""By a number of bytes, the word of which these are set: the first ones in memory."""
# combinations that are numbered without looking at which there are
_MOST = 1 << 62

_Rows = slice | np.ndarray


class Units:
    """Rows by privacy unit.

    Parameters
    ----------
    columns
        What together says whose row it is.
    threads
        How many groups are worked on at once.
    """

    def __init__(self, columns: Sequence[pd.Series], threads: int = 1) -> None:
        self._length = len(columns[0])
        self._threads = threads
        if self._length <= _GROUP:
            self._groups: list[tuple[_Rows, Codes]] = [(slice(None), unit_codes(columns))]
            return
        deal = _dealer(columns, max(self._length // _GROUP, _FEWEST), threads)
        parts = in_threads(deal.part, _parts(self._length), threads)
        groups = in_threads(lambda group: deal.group(parts, group), range(deal.groups), threads)
        self._groups = [(rows, codes) for rows, codes in groups if len(rows)]

    def choose(
        self, cells: np.ndarray, cell_count: int, caps: Caps, context: Context, inner: int = 1
    ) -> np.ndarray:
        """Choose the rows to keep of every unit, where so many cells are one; see `kept_rows`."""

        def keep(rows: _Rows, units: Codes) -> np.ndarray:
            groups = cells[rows] if inner == 1 else cells[rows] // inner
            return kept_rows(units, Codes(groups, cell_count // inner), caps, context=context)

        return self._fill(bool, keep)

    def cells_of_sizes(self, groups: np.ndarray, sizes: Sizes) -> np.ndarray:
        """Give one row of every unit the cell of its size, and all others the cell for none.

        Parameters
        ----------
        groups
            Groups of the rows, the number of groups for those in none.
        sizes
            What is counted, and the cells.
        """
        outside, most = len(sizes.axis), np.asarray(sizes.axis.keys)

        def place(rows: _Rows, units: Codes) -> np.ndarray:
            inside = Codes(groups[rows], sizes.groups.size)
            filled = unit_sizes(units, inside, sizes.kind, others=sizes.others)
            # no unit is the last one
            counted = np.append(filled > 0, False)[units.numbers]
            first = _first(units, counted & inside.present)
            placed = np.full(len(counted), outside)
            placed[first] = np.searchsorted(most[:-1], filled[units.numbers[first]])
            return placed

        return self._fill(np.min_scalar_type(outside), place)

    def first(self, kept: np.ndarray) -> np.ndarray:
        """Mark the first kept row of every unit, so that units can be counted."""
        return self._fill(bool, lambda rows, units: _first(units, kept[rows]))

    def kept_of_unit(self, kept: np.ndarray) -> np.ndarray:
        """Return for every row how many rows of its unit are kept."""

        def number(rows: _Rows, units: Codes) -> np.ndarray:
            by_unit = np.bincount(units.numbers[kept[rows]], minlength=units.none + 1)
            return np.asarray(by_unit[units.numbers])

        return self._fill(np.int64, number)

    def _fill(self, dtype: DTypeLike, function: Callable[[_Rows, Codes], np.ndarray]) -> np.ndarray:
        """Call a function for the rows of every group and their units, several at once."""
        filled = np.empty(self._length, dtype)

        def fill(group: tuple[_Rows, Codes]) -> None:
            rows, codes = group
            if not isinstance(rows, slice):
                # as NumPy counts places: it is slow to look at others
                rows = rows.astype(np.intp, copy=False)
            filled[rows] = function(rows, codes)

        in_threads(fill, self._groups, self._threads)
        return filled


def _first(units: Codes, kept: np.ndarray) -> np.ndarray:
    """Mark the first kept row of every unit."""
    rows = np.flatnonzero(kept)[::-1]
    first = np.full(units.none + 1, -1)
    # the last one written is the first row
    first[units.numbers[rows]] = rows
    marked = np.zeros(len(kept), bool)
    marked[first[first >= 0]] = True
    return marked


def _parts(length: int) -> list[slice]:
    """Cut rows into parts that are dealt out on their own."""
    size = max(_GROUP, length // _MOST_PARTS)
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


class _Part(NamedTuple):
    """Rows of a part in order of their groups, the bounds of the groups, and marks of the rows."""

    rows: np.ndarray
    bounds: list[int]
    marks: np.ndarray


@frozen
class _Dealer:
    """Deals rows out to groups; all rows of a unit go to one.

    Parameters
    ----------
    length
        The number of rows.
    groups
        The number of groups.
    labeled
        From some rows to their groups, and to numbers by which units are told apart.
    coded
        Makes codes of the rows of one group and their numbers.
    """

    length: int
    groups: int
    labeled: Callable[[slice], tuple[np.ndarray, np.ndarray]]
    coded: Callable[[np.ndarray, np.ndarray], Codes]

    def part(self, rows: slice) -> _Part:
        """Deal out the rows of a part."""
        labels, marks = self.labeled(rows)
        order, bounds, marks = order_rows(labels, self.groups, marks)
        order = order.astype(index_dtype(self.length), copy=False)
        order += order.dtype.type(rows.start)
        return _Part(order, bounds.tolist(), marks)

    def group(self, parts: list[_Part], group: int) -> tuple[np.ndarray, Codes]:
        """Gather the rows of a group, in their order, and code them."""
        pairs = [(part, slice(*part.bounds[group : group + 2])) for part in parts]
        rows = np.concatenate([part.rows[inside] for part, inside in pairs])
        marks = np.concatenate([part.marks[inside] for part, inside in pairs])
        return rows, self.coded(rows, marks) if len(rows) else Codes(rows, 0)


def _dealer(columns: Sequence[pd.Series], groups: int, threads: int) -> _Dealer:
    """Prepare rows to be dealt out to so many groups, about."""
    column, *others = columns
    if others:
        return _numbers_dealer(*_combinations(columns, threads), groups, threads)
    packed = _pack_texts(column)
    if packed is not None:
        return _numbers_dealer(packed, values.missing(column), groups, threads)
    dtype = None if isinstance(column.dtype, pd.SparseDtype) else lookup.native_dtype(column.dtype)
    if dtype is None:
        codes, units = _column_codes(column)
        return _in_ranges(len(column), groups, codes.__getitem__, units)
    return _numbers_dealer(*lookup.native(column, dtype), groups, threads)


def _numbers_dealer(
    numbers: np.ndarray, missing: np.ndarray | None, groups: int, threads: int
) -> _Dealer:
    """Prepare rows whose units are numbers or times: close together, or by a hash of them."""
    ends = _range(numbers, threads)
    if ends is not None:

        def shifted(rows: slice) -> np.ndarray:
            codes = _subtract_minimum(numbers[rows], *ends)
            return _none_as_last(*codes, None if missing is None else missing[rows])[0]

        return _in_ranges(len(numbers), groups, shifted, ends[1] - ends[0] + 1)
    bits = groups.bit_length()

    def hashed(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        return _hash_numbers(numbers[rows], bits), _storable(numbers[rows])

    return _Dealer(len(numbers), 1 << bits, hashed, partial(_numbers_at, numbers.dtype, missing))


def _in_ranges(
    length: int, groups: int, codes_of: Callable[[slice], np.ndarray], units: int
) -> _Dealer:
    """Deal out rows with codes below a number of units, which stands for none, by ranges of it."""
    shift = (units // groups).bit_length()

    def labeled(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        codes = codes_of(rows)
        return codes >> shift, codes

    def coded(_: np.ndarray, marks: np.ndarray) -> Codes:
        low = int(marks[0]) >> shift << shift
        return Codes(marks - low, min(units - low, 1 << shift))

    return _Dealer(length, (units >> shift) + 1, labeled, coded)


def _storable(numbers: np.ndarray) -> np.ndarray:
    """View numbers or times as numbers that a sparse matrix can hold."""
    if numbers.dtype.kind in "mM":
        return numbers.view(np.int64)
    return numbers.astype(np.float64) if numbers.dtype == np.float16 else numbers


def _numbers_at(
    dtype: np.dtype[Any], missing: np.ndarray | None, rows: np.ndarray, marks: np.ndarray
) -> Codes:
    """Code the numbers or times of some rows."""
    codes, units = _numbers_coded(marks.view(dtype) if dtype.kind in "mM" else marks)
    return _none_as_last(codes, units, None if missing is None else missing[rows])


def _hash_numbers(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Spread numbers over 2**bits groups: equal ones are together."""
    labels = np.empty(len(numbers), np.int32)
    for start in range(0, len(numbers), _BLOCK):
        words = _words(numbers[start : start + _BLOCK])
        labels[start : start + _BLOCK] = words * _SPREAD >> np.uint64(_WORD - bits)
    return labels


def _words(numbers: np.ndarray) -> np.ndarray:
    """View numbers or times as words of 64 bits, equal ones as equal words."""
    if numbers.dtype.kind == "f":
        numbers = numbers.astype(np.float64) + 0.0  # -0.0 is 0.0
    elif numbers.dtype.itemsize < _WORD // 8:
        numbers = numbers.astype(np.int64)
    return numbers.view(np.uint64)


def _range(numbers: np.ndarray, threads: int = 1) -> tuple[int, int] | None:
    """Least and largest of numbers, if they are integers so close that a shift codes them."""
    if numbers.dtype.kind not in "biu" or not len(numbers):
        return None
    parts = [numbers[rows] for rows in _parts(len(numbers))]
    ends = in_threads(lambda part: (int(part.min()), int(part.max())), parts, threads)
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return (low, high) if high - low < max(len(numbers), _FEW) else None


def unit_codes(columns: Sequence[pd.Series]) -> Codes:
    """Give a number to every privacy unit.

    Rows are of one unit when the keys of their values are equal in a dict, column by column; see
    `identity`.

    Returns
    -------
    Codes
        Units of the rows, int32 where that is enough; none for rows where a value is missing or
        cannot be hashed.
    """
    column, *others = columns
    if not others:
        return _column_codes(column)
    numbers, missing = _combinations(columns)
    return _none_as_last(*_numbers_coded(numbers), missing)


def _combinations(columns: Sequence[pd.Series], threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Give numbers to the combinations of several columns, and mask those that lack a value.

    The number is exact, `(a * n_b + b) * n_c + c` of the codes a, b, c of the columns. Where there
    could be too many combinations, those that there are get numbers first.
    """
    numbers, missing = np.zeros(len(columns[0]), np.int64), np.zeros(len(columns[0]), bool)
    size = 1
    for codes, units in in_threads(_column_codes, columns, min(threads, len(columns))):
        if size * (units + 1) > _MOST:
            numbers, distinct = pd.factorize(numbers)
            size = len(distinct)
        size *= units + 1
        numbers *= units + 1
        numbers += codes
        missing |= codes == units
    return numbers, missing


def _column_codes(column: pd.Series) -> Codes:
    """Give a number to every value of a column, the number of them to a missing one."""
    column = values.dense(column)
    dtype = lookup.native_dtype(column.dtype)
    packed = _pack_texts(column)
    missing = None
    if packed is not None:
        codes, units = _numbers_coded(packed)
        missing = values.missing(column)
    elif isinstance(column.dtype, pd.CategoricalDtype):
        codes, units = column.array.codes, len(column.dtype.categories)
    elif values.is_dictionary(column.dtype):
        parts = values.split_dictionary(column)
        # some of which may be equal
        distinct, units = _column_codes(parts.values)
        codes = values.spread(np.where(distinct == units, -1, distinct), parts.codes, -1)
    elif dtype is not None:
        numbers, missing = lookup.native(column, dtype)
        codes, units = _numbers_coded(numbers)
    elif lookup.is_arrow_text(column.dtype):
        codes, uniques = pd.factorize(column)
        units = len(uniques)
    else:
        codes, units = _objects_coded(column)
    return _none_as_last(codes, units, missing)


def _none_as_last(codes: np.ndarray, units: int, missing: np.ndarray | None) -> Codes:
    """Let the number of units stand for none, which codes below zero and a mask mark."""
    codes = codes.astype(index_dtype(max(units, len(codes))), copy=missing is not None)
    absent = codes < 0
    if absent.any():
        codes = np.where(absent, codes.dtype.type(units), codes)
    if missing is not None:
        codes[missing] = units
    return Codes(codes, units)


def _numbers_coded(numbers: np.ndarray) -> Codes:
    """Code numbers and times: integers that are close together by a shift, others by hashing."""
    ends = _range(numbers)
    if ends is not None:
        return _subtract_minimum(numbers, *ends)
    codes, uniques = pd.factorize(numbers)
    return Codes(codes, len(uniques))


def _subtract_minimum(numbers: np.ndarray, low: int, high: int) -> Codes:
    """Subtract the minimum, block by block: the difference may not fit in the integers' dtype."""
    codes = np.empty(len(numbers), index_dtype(high - low + 1))
    origin = np.uint64(low % 2**64)
    for start in range(0, len(numbers), _BLOCK):
        block = numbers[start : start + _BLOCK].astype(np.uint64)
        # modulo 2**64
        codes[start : start + _BLOCK] = (block - origin).view(np.int64)
    return Codes(codes, high - low + 1)


def _pack_texts(column: pd.Series) -> np.ndarray | None:
    """Give numbers to short texts of Arrow, equal to equal ones alone; `None` for other columns.

    They are the bits in which the words of texts, and their lengths, differ. What is missing has
    any number.
    """
    if not len(column) or not lookup.is_arrow_text(column.dtype):
        return None
    array = column.array.__arrow_array__().combine_chunks()
    # offsets of 32 bits cannot hold all
    if isinstance(array, pa.ChunkedArray):
        return None
    _, starts, data = array.buffers()
    offsets = np.frombuffer(starts, np.int64 if pa.types.is_large_string(array.type) else np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    alike = bool((lengths == longest).all())
    if longest > _WORD_BYTES * (_MOST_WORDS if alike else _FEW_WORDS):
        return None
    used = np.frombuffer(b"" if data is None else data, np.uint8)[offsets[0] : offsets[-1]]
    padded = np.concatenate([used, np.zeros(max(longest, 1) + _WORD_BYTES, np.uint8)])
    places = range(0, max(longest, 1), _WORD_BYTES)
    if alike:
        return _join_bits([_words_at(padded, place, longest, len(array)) for place in places])
    words = [np.empty(len(array), np.uint64) for _ in places]
    # the word that begins at each byte
    stored = np.ndarray((len(padded) - _WORD_BYTES + 1,), "<u8", padded, strides=(1,))
    for start in range(0, len(array), _BLOCK):
        rows = slice(start, start + _BLOCK)
        begin, length = offsets[:-1][rows].astype(np.int64) - offsets[0], lengths[rows]
        for place, word in zip(places, words, strict=True):
            word[rows] = stored[begin + place] & _MASKS[np.clip(length - place, 0, _WORD_BYTES)]
    return _join_bits([*words, lengths.astype(np.uint64)])


def _words_at(padded: np.ndarray, place: int, length: int, rows: int) -> np.ndarray:
    """Read the words at a place of texts of so many bytes each."""
    stored = np.ndarray((rows,), "<u8", padded, place, strides=(length,))
    words: np.ndarray = stored & _MASKS[min(length - place, _WORD_BYTES)]
    return words


def _join_bits(words: list[np.ndarray]) -> np.ndarray | None:
    """Join the bits in which rows differ; words with too many of them get numbers first."""
    differing = [_differing_bits(word) for word in words]
    numbered = _FEW_WORDS * len(words[0]).bit_length()
    fits = numbered + sum(map(int.bit_count, differing[_FEW_WORDS:])) < _WORD
    for at, word in enumerate(words):
        if sum(map(int.bit_count, differing)) < _WORD:
            break
        if not fits:
            return None
        words[at] = pd.factorize(word)[0].view(np.uint64)
        differing[at] = _differing_bits(words[at])
    moves: list[tuple[np.ndarray, np.uint64, int]] = []
    used = 0
    for word, bits in zip(words, differing, strict=True):
        for run in _runs(bits):
            moves.append((word, np.uint64(run), used - _lowest(run)))
            used += run.bit_count()
    joined = np.zeros(len(words[0]), np.uint64)
    for start in range(0, len(joined), _BLOCK):
        rows = slice(start, start + _BLOCK)
        for word, mask, up in moves:
            part = word[rows] & mask
            shift = np.left_shift if up > 0 else np.right_shift
            joined[rows] |= shift(part, np.uint64(abs(up)), out=part)
    return joined.view(np.int64)


def _runs(bits: int) -> Iterator[int]:
    """Go through bits that stand side by side, from the lowest."""
    while bits:
        run = bits & ~(bits + (1 << _lowest(bits)))
        yield run
        bits -= run


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _differing_bits(word: np.ndarray) -> int:
    return int(np.bitwise_or.reduce(word) ^ np.bitwise_and.reduce(word))


def _objects_coded(column: pd.Series) -> tuple[np.ndarray, int]:
    """Code Python objects: plain texts by the hash table of pandas for texts, others by a dict.

    Which of the two it is depends on the row alone, and keys of one never equal keys of the other.
    """
    items = values.objects(column)
    starts = range(0, len(items), _BLOCK)
    if all(_all_plain(items[start : start + _BLOCK].tolist()) for start in starts):
        codes, uniques = pd.factorize(items)
        return codes, len(uniques)
    keys, plain = np.empty(len(items), object), np.empty(len(items), bool)
    for start in starts:
        rows = slice(start, start + _BLOCK)
        keys[rows], plain[rows] = _key_objects(items[rows])
    codes = np.empty(len(items), index_dtype(len(items)))
    codes[plain], uniques = pd.factorize(keys[plain])
    numbered: defaultdict[Hashable, int] = defaultdict(count(len(uniques)).__next__, {None: -1})
    codes[~plain] = np.fromiter(map(numbered.__getitem__, keys[~plain]), np.int64)
    return codes, len(uniques) + len(numbered) - 1


def _key_objects(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of some objects, and which of them are plain texts."""
    keys = items.tolist()
    if not own_keys(keys):
        keys = [key if type(key) is str else key_of(key) for key in keys]
        items = np.fromiter(keys, object, len(keys))
    plain = np.fromiter(map(is_, map(type, keys), repeat(str)), bool, len(keys))
    texts = items[plain].tolist()
    if not _all_plain(texts):
        plain[plain] = list(map(is_plain, texts))
    return items, plain


def _all_plain(items: list[Any]) -> bool:
    """Whether some objects are plain texts; quicker than one by one."""
    # types are compared by identity: some raise when they are asked, or hashed
    return all(map(is_, map(type, items), repeat(str))) and is_plain("".join(items))
