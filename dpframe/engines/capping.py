"""Caps on what one privacy unit may add: rows beyond a cap are dropped uniformly at random.

Rows are ordered by unit in linear time, then a unit that exceeds a cap keeps a random sample of
what it has, drawn without replacement. A sample depends on how many rows the unit has and on fresh
random words, never on other units: adding a unit does not change the law of what others keep. No
cap is exceeded, whatever the words are.
"""

import numpy as np

from dpframe.privacy import noise
from dpframe.privacy.neighbors import Caps

__all__ = ["binding", "in_order", "index_dtype", "kept_rows", "ordered", "pair_bounds"]

_MOST_LARGE = 0.5  # of the rows in units that may exceed a cap, to put these in order alone
_MOST_ROUNDS = 1024  # beyond, a unit over the cap has enough rows for a call of its own


def kept_rows(
    units: np.ndarray, unit_count: int, cells: np.ndarray, cell_count: int, caps: Caps
) -> np.ndarray:
    """Choose the rows to keep of every privacy unit.

    First at most `caps.rows_per_group` rows per cell, then at most `caps.groups` cells, then at
    most `caps.rows` rows, each time a uniformly random choice among what is left of the unit. A
    stage that the others imply is skipped.

    Parameters
    ----------
    units
        Privacy units of the rows, below `unit_count`; rows of unit `unit_count` are dropped.
    cells
        Cells of the rows, below `cell_count`; rows of cell `cell_count` are dropped.

    Returns
    -------
    numpy.ndarray
        Boolean mask of the rows.
    """
    kept: np.ndarray = (units != unit_count) & (cells != cell_count)
    caps = binding(caps, cell_count)
    if caps == Caps():
        return kept
    if not kept.all():
        units = np.where(kept, units, unit_count)
    large = _in_large_units(units, unit_count, caps)
    found = np.count_nonzero(large)
    if found > len(units) * _MOST_LARGE:
        kept[_dropped(units, unit_count, cells, cell_count, caps)] = False
    elif found:
        rows = np.flatnonzero(large)
        dropped = _dropped(units.take(rows), unit_count, cells.take(rows), cell_count, caps)
        kept[rows[dropped]] = False
    return kept


def _in_large_units(units: np.ndarray, unit_count: int, caps: Caps) -> np.ndarray:
    """Mask the rows of the units that have enough of them to exceed a cap."""
    least = min(cap for cap in (caps.rows, caps.groups, caps.rows_per_group) if cap is not None)
    large = np.bincount(units, minlength=unit_count + 1) > least
    large[unit_count] = False
    return large.take(units)


def _dropped(
    units: np.ndarray, unit_count: int, cells: np.ndarray, cell_count: int, caps: Caps
) -> np.ndarray:
    """Choose the rows of units that are beyond a cap."""
    by_cell = caps.groups is not None or caps.rows_per_group is not None
    order, bounds = in_order(units, unit_count, cells if by_cell else None, cell_count)
    if caps.rows is not None and not by_cell:
        return order.compress(~_sample(bounds, caps.rows))
    kept = _in_groups(order, bounds, cells, caps)
    if caps.rows is not None:
        left = np.flatnonzero(kept)
        kept[left] = _sample(np.searchsorted(left, bounds), caps.rows)
    return order.compress(~kept)  # quicker than a mask as an index


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


def in_order(
    units: np.ndarray, unit_count: int, cells: np.ndarray | None, cell_count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Order rows by unit, and by cell inside if cells are given; with the bounds of the units."""
    if cells is None:
        order, bounds, _ = ordered(units, unit_count + 1)
    else:
        by_cell, _, along = ordered(cells, cell_count + 1, units)
        _, bounds, order = ordered(along, unit_count + 1, by_cell)
    bounds = bounds[:-1]  # the last group is of rows to drop
    return order[: bounds[-1]], bounds


def _in_groups(order: np.ndarray, bounds: np.ndarray, cells: np.ndarray, caps: Caps) -> np.ndarray:
    """Apply the caps on groups and on rows in a group to rows in order of unit and cell."""
    pairs, ends, pair = pair_bounds(order, bounds, cells)
    kept = np.ones(len(order), bool)
    if caps.rows_per_group is not None:
        kept = _sample(pairs, caps.rows_per_group)
    if caps.groups is not None:
        kept &= _sample(ends, caps.groups).take(pair)
    return kept


def pair_bounds(
    order: np.ndarray, bounds: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find pairs of a unit and a cell, for rows in order of unit and cell.

    Returns
    -------
    pairs, ends, pair
        The bounds of the rows of a pair, those of the pairs of a unit, and the pair of every row.
    """
    ordered = cells.take(order)
    first = np.ones(len(order) + 1, bool)  # the end counts as one
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:-1])
    first[bounds] = True
    pair = np.cumsum(first, dtype=bounds.dtype)
    pair -= 1
    return np.flatnonzero(first).astype(bounds.dtype), pair[bounds], pair[:-1]


def _sample(bounds: np.ndarray, most: int) -> np.ndarray:
    """Keep at most some random places per segment [bounds[i], bounds[i + 1]), as a mask."""
    sizes = np.diff(bounds)
    under = sizes <= most
    if under.all():
        return np.ones(bounds[-1], bool)
    kept = np.repeat(under, sizes)
    over = np.flatnonzero(~under)
    draw = _draw_by_rounds if most <= _MOST_ROUNDS else _draw_by_segment
    draw(kept, bounds[over].astype(np.int64), sizes[over].astype(np.uint64), most)
    return kept


def _draw_by_rounds(kept: np.ndarray, starts: np.ndarray, sizes: np.ndarray, most: int) -> None:
    """Draw one place of every segment at a time: the first steps of a Fisher-Yates shuffle.

    The remainder of a 64-bit word is uniform except for a part in 2**64 / size.
    """
    places = np.arange(len(kept), dtype=index_dtype(len(kept)))
    for done in range(most):
        words = noise.random_words(len(starts), np.uint64)
        drawn = starts + done + (words % (sizes - np.uint64(done))).astype(np.int64)
        kept[places[drawn]] = True
        places[drawn] = places[starts + done]


def _draw_by_segment(kept: np.ndarray, starts: np.ndarray, sizes: np.ndarray, most: int) -> None:
    """Draw the places with the smallest random words, one segment after the other."""
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        words = noise.random_words(size, np.uint64)
        kept[start + np.argpartition(words, most)[:most]] = True


def ordered(
    labels: np.ndarray, label_count: int, along: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order rows by label, equal ones as they come.

    A counting sort, written as the transposition of a sparse matrix with one entry per row.

    Parameters
    ----------
    labels
        Labels of the rows, below `label_count`.
    along
        Numbers, one per row, that are wanted in the same order.

    Returns
    -------
    order, bounds, along
        The rows, where those of a label begin and end, and the numbers.
    """
    from scipy import sparse  # slow to import, and not always needed

    n = len(labels)
    dtype = index_dtype(max(n, label_count))
    labels = labels.astype(dtype, copy=False)  # SciPy would first look for the largest one
    bounds = np.arange(n + 1, dtype=dtype)
    entries = np.zeros(n, np.int8) if along is None else along
    columns = sparse.csr_array((entries, labels, bounds), shape=(n, label_count)).tocsc()
    return columns.indices, columns.indptr, columns.data


def index_dtype(largest: int) -> type[np.signedinteger]:
    """Narrow dtype for numbers up to a largest one."""
    return np.int32 if largest < np.iinfo(np.int32).max else np.int64
