"""Caps on what one privacy unit may add: rows beyond a cap are dropped uniformly at random.

Rows are ordered by unit in linear time, then a unit that exceeds a cap keeps a random sample of
what it has, drawn without replacement. A sample depends on how many rows the unit has and on fresh
random words, never on other units: adding a unit does not change the law of what others keep. No
cap is exceeded, whatever the words are.
"""

from typing import NamedTuple, assert_never

import numpy as np

from dpframe.context import Context
from dpframe.privacy import noise
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.tasks import Sized

# of the rows in units that may exceed a cap, to put these in order alone
_MOST_LARGE = 0.5
# sorted in .1 ms; SciPy takes 20 ms to import, and is quicker beyond
_FEW_ROWS = 1 << 12
# beyond, a unit over the cap has enough rows for a call of its own
_MOST_ROUNDS = 1024


class Codes(NamedTuple):
    """Rows by number: their units, or their cells.

    Parameters
    ----------
    numbers
        One for each row.
    none
        The number above all others, of rows that have no unit, or no cell: they are dropped.
    """

    numbers: np.ndarray
    none: int

    @property
    def present(self) -> np.ndarray:
        """Mask of the rows that have a number."""
        return np.asarray(self.numbers != self.none)

    def without(self, mask: np.ndarray) -> "Codes":
        """Return the same where the rows of a mask have none."""
        return Codes(larger_where(mask, self.numbers, self.none), self.none)

    def take(self, rows: np.ndarray) -> "Codes":
        """Return some rows."""
        return Codes(self.numbers.take(rows), self.none)


def kept_rows(units: Codes, cells: Codes, caps: Caps, *, context: Context) -> np.ndarray:
    """Choose the rows to keep of every privacy unit.

    First at most `caps.rows_per_group` rows per cell, then at most `caps.groups` cells, then at
    most `caps.rows` rows, each time a uniformly random choice among what is left of the unit. A
    stage that the others imply is skipped.

    Parameters
    ----------
    units, cells
        Privacy units of the rows, and their cells.
    caps
        How many rows and cells of a unit are kept.
    context
        Where random words come from.

    Returns
    -------
    numpy.ndarray
        Boolean mask of the rows.
    """
    kept: np.ndarray = units.present & cells.present
    caps = binding(caps, cells.none)
    if caps == Caps():
        return kept
    counted = int(np.count_nonzero(kept))
    if counted < len(kept):
        units = units.without(~kept)
    rows = _in_large_units(units, counted, caps)
    if rows is not None:
        if not len(rows):
            return kept
        units, cells = units.take(rows), cells.take(rows)
    order, chosen = _choose_rows(units, cells, caps, context)
    kept[order if rows is None else rows.take(order)] = chosen
    return kept


def larger_where(mask: np.ndarray, numbers: np.ndarray, largest: int) -> np.ndarray:
    """Put a number that none exceeds where a mask says so; quicker than to ask row by row."""
    return np.asarray(np.maximum(numbers, np.multiply(mask, largest, dtype=numbers.dtype)))


def _in_large_units(units: Codes, counted: int, caps: Caps) -> np.ndarray | None:
    """Find the rows of the units that have enough of them to exceed a cap; `None` for most rows."""
    least = min(cap for cap in (caps.rows, caps.groups, caps.rows_per_group) if cap is not None)
    many = len(units.numbers) * _MOST_LARGE
    # whatever the units are, few rows are in small ones
    if counted - least * units.none > many:
        return None
    sizes = np.bincount(units.numbers, minlength=units.none + 1)
    large = sizes > least
    large[units.none] = False
    if sizes.compress(large).sum() > many:
        return None
    return np.flatnonzero(large.take(units.numbers)) if large.any() else units.numbers[:0]


def _choose_rows(
    units: Codes, cells: Codes, caps: Caps, context: Context
) -> tuple[np.ndarray, np.ndarray]:
    """Choose the rows of units that are within the caps: the rows in some order, and a mask."""
    if caps.rows is not None and caps.groups is None and caps.rows_per_group is None:
        order, bounds, _ = order_rows(units.numbers, units.none + 1)
        bounds = bounds[:-1]  # the last group is of rows to drop
        return _writable(order[: bounds[-1]]), _sample(bounds, caps.rows, context)
    order, bounds, along = in_order(units, cells)
    kept = _in_groups(bounds, along, caps, context)
    if caps.rows is not None:
        left = np.flatnonzero(kept)
        before = np.append(0, np.cumsum(kept, dtype=bounds.dtype))
        kept[left] = _sample(before.take(bounds), caps.rows, context)
    return _writable(order), kept


def _writable(rows: np.ndarray) -> np.ndarray:
    """View rows as NumPy counts places: it is slow to write at others."""
    return rows.astype(np.intp, copy=False)


def binding(caps: Caps, cell_count: int) -> Caps:
    """Drop the caps that the others imply."""
    rows, groups, rows_per_group = caps.rows, caps.groups, caps.rows_per_group
    if cell_count == 1 and rows_per_group is not None:
        rows = rows_per_group if rows is None else min(rows, rows_per_group)
    if rows is not None and rows_per_group is not None and rows_per_group >= rows:
        rows_per_group = None
    if groups is not None and groups >= min(cell_count, cell_count if rows is None else rows):
        groups = None
    most_groups = cell_count if groups is None else groups
    if rows is not None and rows_per_group is not None and most_groups * rows_per_group <= rows:
        rows = None
    return Caps(rows, groups, rows_per_group)


def in_order(units: Codes, cells: Codes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order rows by unit, and by cell inside.

    Returns
    -------
    order, bounds, along
        The rows, where those of a unit begin and end, and the cells of the rows in that order.
    """
    numbers, size = cells.numbers, cells.none + 1
    by_cell, ends, along = order_rows(numbers, size, units.numbers)
    if size <= len(numbers):
        numbers = np.repeat(np.arange(size, dtype=numbers.dtype), np.diff(ends))
    else:
        numbers = numbers.take(by_cell)
    order, bounds, numbers = order_rows(along, units.none + 1, numbers, by_cell)
    bounds = bounds[:-1]  # the last group is of rows to drop
    return order[: bounds[-1]], bounds, numbers[: bounds[-1]]


def _in_groups(bounds: np.ndarray, cells: np.ndarray, caps: Caps, context: Context) -> np.ndarray:
    """Apply the caps on groups and on rows in a group to rows in order of unit and cell."""
    pairs, ends, pair = pair_bounds(bounds, cells)
    kept = np.ones(len(cells), bool)
    if caps.rows_per_group is not None:
        kept = _sample(pairs, caps.rows_per_group, context)
    if caps.groups is not None:
        kept &= _sample(ends, caps.groups, context).take(pair)
    return kept


def pair_bounds(bounds: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find pairs of a unit and a cell.

    Parameters
    ----------
    bounds, cells
        Where the rows of a unit begin and end, and cells, for rows in order of unit and cell.

    Returns
    -------
    pairs, ends, pair
        The bounds of the rows of a pair, those of the pairs of a unit, and the pair of every row.
    """
    first = np.ones(len(cells) + 1, bool)  # the end counts as one
    np.not_equal(cells[1:], cells[:-1], out=first[1:-1])
    first[bounds] = True
    pair = np.cumsum(first, dtype=bounds.dtype)
    pair -= 1
    return np.flatnonzero(first), pair.take(bounds), pair[:-1]


def unit_sizes(units: Codes, groups: Codes, kind: Sized, *, others: Caps = NO_CAPS) -> np.ndarray:
    """Count what every unit has, without the cap that is looked for.

    Of a unit in more groups than a cap allows, the mean of what it may keep counts, rounded up: a
    number that depends on its own rows alone.

    Parameters
    ----------
    units, groups
        Privacy units of the rows, and their groups.
    kind
        What is counted.
    others
        The other caps: of "rows", what they leave counts, and of "dropped", what they do not.

    Returns
    -------
    numpy.ndarray
        int64, one number for each unit; 0 for one without rows.

    Examples
    --------
    >>> rows = Codes(np.array([0, 0, 0, 1, 2]), 3), Codes(np.array([0, 0, 1, 1, 2]), 2)
    >>> [unit_sizes(*rows, kind).tolist() for kind in ("rows", "groups", "rows_per_group")]
    [[3, 1, 0], [2, 1, 0], [2, 1, 0]]
    """
    counted = units.present & groups.present
    alone = kind != "dropped" and (others == NO_CAPS or kind != "rows")
    if alone and (kind == "rows" or groups.none == 1):
        rows = np.bincount(units.numbers[counted], minlength=units.none)
        return np.minimum(rows, 1) if kind == "groups" else rows
    _, bounds, along = in_order(units.without(~counted), groups)
    pairs, ends, _ = pair_bounds(bounds, along)
    sizes: np.ndarray = np.diff(pairs)
    match kind:
        case "groups":
            return np.diff(ends).astype(np.int64)
        case "rows_per_group":
            return _of_units(np.maximum, sizes, ends)
        case "rows":
            return _rows_left(sizes, ends, others)
        case "dropped":
            return np.asarray(_of_units(np.add, sizes, ends) - _rows_left(sizes, ends, others))
        case _:
            assert_never(kind)


def _of_units(function: np.ufunc, sizes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Reduce the sizes of the pairs of every unit to one number; 0 for a unit without pairs."""
    reduced: np.ndarray = np.zeros(len(ends) - 1, np.int64)
    has_pairs = np.diff(ends) > 0
    if has_pairs.any():
        reduced[has_pairs] = function.reduceat(sizes, ends[:-1][has_pairs])
    return reduced


def _rows_left(sizes: np.ndarray, ends: np.ndarray, caps: Caps) -> np.ndarray:
    """Return how many rows caps leave of every unit, on average over the groups that are kept."""
    if caps.rows_per_group is not None:
        sizes = np.minimum(sizes, caps.rows_per_group)
    left: np.ndarray = _of_units(np.add, sizes, ends)
    if caps.groups is not None:
        groups = np.maximum(np.diff(ends), 1)
        left = -(-left * np.minimum(groups, caps.groups) // groups)
    if caps.rows is not None:
        left = np.minimum(left, caps.rows)
    return left


def _sample(bounds: np.ndarray, most: int, context: Context) -> np.ndarray:
    """Keep at most some random places per segment [bounds[i], bounds[i + 1]), as a mask."""
    sizes = np.diff(bounds)
    under = sizes <= most
    if under.all():
        return np.ones(bounds[-1], bool)
    kept = np.repeat(under, sizes)
    over = np.flatnonzero(~under)
    draw = _draw_by_rounds if most <= _MOST_ROUNDS else _draw_by_segment
    starts, lengths = bounds.take(over).astype(np.int64), sizes.take(over).astype(np.int64)
    draw(kept, starts, lengths, most, context)
    return kept


def _draw_by_rounds(
    kept: np.ndarray, starts: np.ndarray, sizes: np.ndarray, most: int, context: Context
) -> None:
    """Draw one place of every segment at a time (Floyd's sampling; Bentley and Floyd 1987).

    Of the first `last + 1` places one is drawn, the last of these if it was drawn before. The
    remainder of a 64-bit word is uniform except for a part in 2**64 / size.
    """
    for left in range(most, 0, -1):
        last = sizes - left
        words = noise.row_words(len(starts), context)
        drawn = (words % (last + 1).view(np.uint64)).view(np.int64)
        before = kept.take(starts + drawn)
        kept[starts + np.maximum(drawn, last * before)] = True


def _draw_by_segment(
    kept: np.ndarray, starts: np.ndarray, sizes: np.ndarray, most: int, context: Context
) -> None:
    """Draw the places with the smallest random words, one segment after the other."""
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        words = noise.row_words(size, context)
        kept[start + np.argpartition(words, most)[:most]] = True


def order_rows(
    labels: np.ndarray, count: int, along: np.ndarray | None = None, rows: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order rows by label, equal ones as they come.

    A counting sort, written as the conversion of a sparse matrix with one entry per row.

    Parameters
    ----------
    labels, count
        Labels of the rows, below `count`.
    along
        Numbers, one per row, that are wanted in the same order.
    rows
        The rows, each once, in the order in which they come; `None` if that is their own.

    Returns
    -------
    order, bounds, along
        The rows, where those of a label begin and end, and the numbers.
    """
    n = len(labels)
    dtype = index_dtype(max(n, count))
    rows = np.arange(n, dtype=dtype) if rows is None else rows
    along = np.zeros(n, np.int8) if along is None else along
    if n <= _FEW_ROWS:
        order = labels.argsort(kind="stable")
        bounds = np.zeros(count + 1, dtype)
        np.cumsum(np.bincount(labels, minlength=count), out=bounds[1:])
        return rows[order].astype(dtype, copy=False), bounds, along[order]
    # slow to import, and not always needed
    from scipy import sparse

    # SciPy would first look for the largest one
    labels = labels.astype(dtype, copy=False)
    entries = sparse.coo_array((along, (labels, rows)), shape=(count, n))
    # no row is there twice: nothing is to be added up
    entries.has_canonical_format = True
    lines = entries.tocsr()
    return lines.indices, lines.indptr, lines.data


def index_dtype(largest: int) -> type[np.signedinteger]:
    """Narrow dtype for numbers up to a largest one."""
    return np.int32 if largest < np.iinfo(np.int32).max else np.int64
