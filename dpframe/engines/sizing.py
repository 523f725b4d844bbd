"""How much of some groups each privacy unit fills: rows, groups, or rows in its fullest group."""

import numpy as np

from dpframe.engines.capping import in_order, larger_where, pair_bounds
from dpframe.queries.tasks import SizeKind


def unit_sizes(
    units: np.ndarray, unit_count: int, groups: np.ndarray, group_count: int, kind: SizeKind
) -> np.ndarray:
    """Count what every unit has, without any cap.

    Parameters
    ----------
    units
        Privacy units of the rows, below `unit_count`; rows of unit `unit_count` do not count.
    groups
        Groups of the rows, below `group_count`; rows of group `group_count` do not count.
    kind
        What is counted.

    Returns
    -------
    numpy.ndarray
        int64, one number for each unit; 0 for one without rows.

    Examples
    --------
    >>> rows = np.array([0, 0, 0, 1, 2]), 3, np.array([0, 0, 1, 1, 2]), 2
    >>> [unit_sizes(*rows, kind).tolist() for kind in ("rows", "groups", "rows_per_group")]
    [[3, 1, 0], [2, 1, 0], [2, 1, 0]]
    """
    counted = (units != unit_count) & (groups != group_count)
    if kind == "rows" or group_count == 1:
        rows = np.bincount(units[counted], minlength=unit_count)
        return np.minimum(rows, 1) if kind == "groups" else rows
    units = larger_where(~counted, units, unit_count)
    _, bounds, along = in_order(units, unit_count, groups, group_count)
    pairs, ends, _ = pair_bounds(bounds, along)
    if kind == "groups":
        return np.diff(ends).astype(np.int64)
    found = np.zeros(unit_count, np.int64)
    there = np.diff(bounds) > 0
    if there.any():
        found[there] = np.maximum.reduceat(np.diff(pairs), ends[:-1][there])
    return found
