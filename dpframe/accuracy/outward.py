"""Ends of intervals of cells that were rounded or suppressed after the release."""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.certificates.column_parts import ColumnPart

Ends: TypeAlias = tuple[np.ndarray | ExtensionArray, np.ndarray | ExtensionArray]


def known_numbers(column: pd.Series) -> np.ndarray:
    """Return the numbers of a column, with 0 in place of those that were suppressed."""
    if column.isna().any():
        column = column.fillna(0)
    numbers: np.ndarray = column.to_numpy()
    return numbers if numbers.dtype.kind != "O" else numbers.astype(np.int64)


def rounding(described: ColumnPart) -> float:
    """Return by how much the values of a column may differ from those released."""
    return 0.0 if described.rounded is None else described.rounded.most


def shown_ends(ends: Ends, values: pd.Series, described: ColumnPart) -> Ends:
    """Round ends as the values are, to the outside, and leave out those of suppressed cells.

    Parameters
    ----------
    ends
        The ends of the intervals.
    values
        The values as they are now.
    described
        What is said about the column.
    """
    low, high = ends
    if described.rounded is not None:
        decimals = described.rounded.decimals
        low, high = outward(low, decimals, up=False), outward(high, decimals, up=True)
        if described.form.is_mean:
            low, high = np.maximum(low, described.span[0]), np.minimum(high, described.span[1])
    missing = values.isna().to_numpy()
    return (_without(low, missing), _without(high, missing)) if missing.any() else (low, high)


def outward(ends: Any, decimals: int, *, up: bool) -> np.ndarray:
    """Round numbers to so many decimals, none of them down where they go up, or the other way.

    Examples
    --------
    >>> outward(np.array([1491, 1500]), -1, up=False), outward(np.array([0.29, 0.291]), 2, up=True)
    (array([1490, 1500]), array([0.29, 0.3 ]))
    """
    if not up:
        return -outward(-ends, decimals, up=True)
    if ends.dtype.kind == "i":
        unit = 10 ** max(-decimals, 0)
        return np.asarray(-(-ends // unit) * unit)
    near = np.round(ends, decimals)
    above: np.ndarray = np.where(near < ends, np.round(near + 10.0**-decimals, decimals), near)
    return above


def _without(ends: Any, missing: np.ndarray) -> ExtensionArray:
    """Leave out the ends of cells that were suppressed."""
    column = pd.Series(ends)
    column = column.astype("Int64") if column.dtype.kind == "i" else column
    return column.mask(missing).array
