"""Cells as arrays of numbers, whatever their dtype: times are microseconds."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_TIMES = "mM"
_A_SECOND = 1e6  # in microseconds


class Numbers(NamedTuple):
    """Numbers, and where they are missing."""

    values: np.ndarray
    missing: np.ndarray


def numbers_of(column: pd.Series, kind: str = "") -> Numbers:
    """Return the numbers of a column: of NumPy, nullable, of Arrow, or objects.

    Parameters
    ----------
    column
        The column.
    kind
        "m" or "M": texts in it stand for durations, or points in time.
    """
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(np.asarray(column))
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        column = _of_objects(column, kind)
    missing = column.isna().to_numpy()
    found = getattr(column.dtype, "kind", "O")
    if found in _TIMES:
        return Numbers(_microseconds(column, found), missing)
    if found in "iu" and not missing.any():
        return Numbers(column.to_numpy(np.int64), missing)
    if column.dtype == np.float32:
        return Numbers(column.to_numpy(), missing)
    return Numbers(column.to_numpy(np.float64, na_value=np.nan), missing)


def _of_objects(column: pd.Series, kind: str) -> pd.Series:
    if pd.api.types.infer_dtype(column, skipna=True) in ("datetime", "timedelta"):
        return column.infer_objects()
    if kind == "m":
        return pd.to_timedelta(column)
    if kind == "M":
        return pd.to_datetime(column, format="ISO8601")
    return pd.to_numeric(column)


def _microseconds(column: pd.Series, kind: str) -> np.ndarray:
    if kind == "m":
        try:
            return column.astype("timedelta64[us]").astype("int64").to_numpy()
        except pd.errors.OutOfBoundsTimedelta:  # sums of long ones are in seconds
            return np.asarray(column.dt.total_seconds(), np.float64) * _A_SECOND
    if not isinstance(column.dtype, np.dtype):  # of Arrow, or zoned
        column = pd.Series(pd.DatetimeIndex(pd.to_datetime(column, utc=True)).tz_localize(None))
    return column.astype("datetime64[us]").astype("int64").to_numpy()


def series_of(numbers: Numbers, dtype: Any) -> pd.Series:
    """Return numbers as a column of a dtype, or of the nullable one where whole ones are missing.

    Raises
    ------
    ValueError, TypeError
        If they cannot be; dtype and numbers may come from a file.
    """
    values, missing = numbers
    base = dtype.partition("[")[0]
    made: Any
    if base == "timedelta64" and values.dtype.kind == "f":
        whole = np.rint(values / _A_SECOND).astype(np.int64)
        made = pd.Series(whole.view("timedelta64[s]")).astype(dtype)
    elif base == "timedelta64":
        made = pd.Series(values.view("timedelta64[us]")).astype(dtype)
    elif base == "datetime64":
        made = pd.Series(values.view("datetime64[us]"))
        zone = dtype.partition(", ")[2].rstrip("]")
        made = made.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else made
        made = made.astype(dtype)
    elif missing.any() and values.dtype.kind == "i":
        made = pd.Series(values).astype("Int64")
    else:
        made = pd.Series(values).astype(dtype)
    nothing = pd.NA if str(made.dtype) == "Int64" else None
    cells: pd.Series = made.mask(missing, nothing) if missing.any() else made
    return cells
