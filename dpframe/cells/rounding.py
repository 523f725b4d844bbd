"""Cells that are rounded to a unit: how they are, and to which one shown cells were."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpframe.cells.keys import alter, label_of
from dpframe.cells.record import CellColumn
from dpframe.errors import CertificateError

_ULPS = 4  # by how much readers of CSV files may be off: pandas 2.3 is by one
_HALF = 0.5  # of a unit: how far a rounding is off
_NEAR = 1e-9  # how far computed columns may differ between machines, relatively
_FINE = {np.dtype(np.float32): 1e-7}
_EXACT = 1e-14  # how far a float is from the multiple of a unit that it stands for, relatively
_UNITS = tuple(sorted(step * 10.0**power for power in range(-15, 16) for step in (1, 5)))
_UNITS_OF_TIME = (1e3, 1e6, 6e7, 3.6e9, 8.64e10)  # ms, s, min, h, D in microseconds
_FUZZ = 1e-9  # of a logarithm


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
        frequency = f"{int(unit)}us"
        return (column.dt.ceil(frequency) if up else column.dt.floor(frequency)).array
    if kind == "i" and unit == int(unit):
        step = int(unit)
        # no float in between: the last digits of large numbers stay; -(-n // k) rounds up
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
        multiples = np.round(np.rint(np.asarray(numbers, np.float64) / unit) * unit, decimals)
    return np.where(np.isfinite(multiples), multiples, numbers)


def unit_of(
    shown: np.ndarray, column: CellColumn, rows: np.ndarray, declared: float | None = None
) -> float:
    """Return the unit that shown cells are rounded to, 0 for cells as released.

    The unit is the one that was written down, or the finest one of which all of them are multiples.
    Ends of intervals are rounded to the outside.

    Parameters
    ----------
    shown
        The cells.
    column
        The released ones.
    rows
        Their rows.
    declared
        A unit that `.dp.round` wrote down.

    Raises
    ------
    CertificateError
        If they are neither.
    """
    released = column.numbers.values[rows]
    if np.float32 in (shown.dtype, released.dtype):
        if np.array_equal(shown.astype(np.float32), released.astype(np.float32)):
            return 0.0
    elif np.array_equal(shown, released):
        return 0.0
    numbers, real = shown.astype(np.float64), released.astype(np.float64)
    with np.errstate(all="ignore"):  # values can be near the largest float
        same = numbers == real
        if not shown.dtype.kind == released.dtype.kind == "i":
            same |= np.abs(numbers - real) <= _ULPS * np.spacing(np.abs(real))
        if column.part.definition is not None:
            same |= np.abs(numbers - real) <= _NEAR * np.abs(real)
        if same.all():
            return 0.0
        finite = np.isfinite(real) & np.isfinite(numbers)
        if not (same | finite).all():
            raise _other(column)
        fine = _FINE.get(shown.dtype, _EXACT)
        end = getattr(column.part.definition, "end", None)
        units = _UNITS_OF_TIME if column.kind else _UNITS
        numbers, real = numbers[finite], real[finite]
        most = 2 * float(np.abs(real).max())  # beyond, all would be 0
        tried = [*filter(None, [declared]), *(unit for unit in units if unit <= most)]
        unit = _rounded_to(numbers, real, tried, fine, end)
        if unit is None:
            raise _other(column)
        return unit


def _other(column: CellColumn) -> CertificateError:
    """Make the error about a cell that was not released."""
    name = label_of(column.part.label)
    return alter(f"a cell of {name!r} is neither the released one nor a rounding of it")


def _rounded_to(
    shown: np.ndarray, real: np.ndarray, units: Sequence[float], fine: float, end: str | None
) -> float | None:
    """Return the first unit to which numbers were rounded, if they were."""
    off = float(np.abs(shown - real).max())
    # an end that was searched for may be next to a multiple, and is then a whole unit away
    reach = (_HALF if end is None else 1) * (1 + _NEAR)
    for unit in units:
        if off > unit * reach:
            continue
        slack = np.maximum(np.abs(shown), unit) * fine
        multiples = np.rint(shown / unit) * unit
        if (np.abs(multiples - shown) > slack).any():
            continue
        close = np.maximum(np.abs(real), unit) * _EXACT * _HALF  # `outward` leaves such ends
        stays = np.abs(np.rint(real / unit) * unit - real) <= close
        if end is not None and (stays & (np.abs(shown - real) > slack)).any():
            continue
        inside = shown > real + slack if end == "low" else shown < real - slack
        if end is not None and inside.any():
            raise alter("ends of intervals are rounded to the outside, by .dp.round")
        return unit
    return None
