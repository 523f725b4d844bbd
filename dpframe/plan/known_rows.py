"""Numbers of rows that are public: one for each group, with a variance where it is an estimate."""

from collections.abc import Hashable

import numpy as np
import pandas as pd

from dpframe.cells.record import ATTRIBUTE
from dpframe.errors import QueryError, a_type
from dpframe.privacy.amounts import as_float
from dpframe.queries.tasks import Cells
from dpframe.strategies.base import PublicRows

_MOST = 1e100  # with bounds of as much, products and squares stay in the range of floats


def known_rows(given: object, cells: Cells) -> PublicRows | None:
    """Resolve a public number of rows to one number per cell, and its variance.

    Parameters
    ----------
    given
        A number, a series by group, or a pair of one of them and its variance; `None`: not known.
    cells
        The groups.

    Raises
    ------
    QueryError
        If it is something else, misses a group, is too large, or is negative or of a release
        without a variance.
    """
    if given is None:
        return None
    if isinstance(given, pd.Series) and ATTRIBUTE in given.attrs:
        raise _wrong_n(
            "must be exact, and a column of a release has noise. Give its variance, too, the "
            "square of its .dp.std_error: n=(released['n'], variance)."
        )
    rows, spread = given if isinstance(given, tuple) and len(given) == 2 else (given, 0)  # noqa: PLR2004
    variance = _number("the variance of n", spread)
    if isinstance(rows, pd.Series):
        numbers = _by_group(rows, cells)
    else:
        if variance and cells.size > 1:
            raise _wrong_n(
                "with a variance must be a series by group, since the estimates of several "
                f"groups are not the same one; got a single number for {cells.size:,} groups."
            )
        numbers = np.full(cells.size, _number("n", rows))
    # what is not a number is not at most anything
    if not (np.abs(numbers) <= _MOST).all() or (not variance and (numbers < 0).any()):
        way = "and >= 0 unless it is an estimate with a variance: n=(series, variance)."
        raise _wrong_n(f"must be at most {_MOST:g} in size, {way}")
    return PublicRows(numbers, variance)


def _wrong_n(rule: str) -> QueryError:
    return QueryError(f"n {rule}", parameter="n")


def _number(what: str, value: object) -> float:
    """Read a number that is not too large; the variance must not be negative."""
    number = as_float(value)
    if not abs(number) <= _MOST or (what != "n" and number < 0):
        rule = f"must be a number of at most {_MOST:g} in size, not negative for a variance;"
        way = "n= takes a number, a series by group, or a pair of it and its variance."
        raise QueryError(f"{what} {rule} {way} Got {a_type(value)}.", parameter="n")
    return number


def _by_group(rows: pd.Series, cells: Cells) -> np.ndarray:
    """Read a series with one number per group, its levels in any order if they are named."""
    dtype = rows.dtype
    if getattr(dtype, "kind", "O") not in "iuf":
        raise _wrong_n(f"must be a series of numbers, got dtype {dtype}.")
    by = [axis.column for axis in cells.axes]
    index = _order_levels(rows.index, by)
    numbers = rows.set_axis(index)
    try:
        missing = cells.index.difference(index, sort=False)
    except (TypeError, ValueError):
        missing = cells.index
    if len(missing) or not index.is_unique:
        why = f"it misses {missing[:3].tolist()!r}." if len(missing) else "some come twice."
        raise _wrong_n(f"must be a series with every group of by={by!r} once in its index; {why}")
    found: np.ndarray = numbers.reindex(cells.index).to_numpy(np.float64, na_value=np.nan)
    return found


def _order_levels(index: pd.Index, by: list[Hashable]) -> pd.Index:
    """Put the levels of an index in the order of the grouping columns."""
    if index.nlevels != max(len(by), 1):
        raise _wrong_n(f"must be a series indexed by {by!r}, got {index.nlevels} levels.")
    names = list(index.names)
    if isinstance(index, pd.MultiIndex) and len(names) > 1 and None not in names:
        if set(names) != set(by):
            raise _wrong_n(f"must be a series indexed by {by!r}, got levels {names!r}.")
        return index.reorder_levels([names.index(label) for label in by])
    return index
