"""Ends of intervals of cells that are shown rounded."""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

Ends: TypeAlias = tuple[np.ndarray | ExtensionArray, np.ndarray | ExtensionArray]


def known_numbers(column: pd.Series) -> np.ndarray:
    """Return the numbers of a column, with 0 in place of those that are missing."""
    if column.isna().any():
        column = column.fillna(0)
    numbers: np.ndarray = column.to_numpy()
    return numbers if numbers.dtype.kind != "O" else numbers.astype(np.int64)


def outward(ends: Any, unit: float, *, up: bool) -> Any:
    """Round numbers, or times, to a unit: none of them down where they go up, or the other way.

    Examples
    --------
    >>> outward(np.array([1491, 1500]), 10, up=False)
    array([1490, 1500])
    >>> outward(np.array([0.29, 0.291]), 0.01, up=True)
    array([0.29, 0.3 ])
    """
    kind = getattr(ends.dtype, "kind", "O")
    if kind in "mM":
        column = pd.Series(ends)
        every = f"{int(unit)}us"
        return (column.dt.ceil(every) if up else column.dt.floor(every)).array
    if kind == "i" and unit == int(unit):
        step = int(unit)
        return -(-ends // step) * step if up else ends // step * step
    near = rounded(ends, unit)
    slack = np.maximum(np.abs(ends), unit) * _EXACT
    beyond = near < ends - slack if up else near > ends + slack
    return np.where(beyond, rounded(near + (unit if up else -unit), unit), near)


def rounded(numbers: Any, unit: float) -> Any:
    """Round numbers to the nearest multiple of a unit, as decimal numbers.

    Examples
    --------
    >>> rounded(np.array([0.333, 12.0]), 0.05)
    array([ 0.35, 12.  ])
    """
    decimals = max(int(np.ceil(-np.log10(unit) - _FUZZ)) + 1, 0)
    with np.errstate(over="ignore", invalid="ignore"):  # values can be near the largest float
        return np.round(np.rint(np.asarray(numbers, np.float64) / unit) * unit, decimals)


_FUZZ = 1e-9  # of a logarithm
_EXACT = 1e-14  # how far a float is from the multiple that it stands for, relatively
