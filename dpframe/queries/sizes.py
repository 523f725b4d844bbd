"""How much of the groups of a query each unit fills, as a query of its own: a released histogram.

A unit falls in exactly one cell, whatever number of rows it has, and no cap is applied.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dpframe.errors import QueryError, quote
from dpframe.privacy.amounts import as_float, as_number
from dpframe.privacy.neighbors import Caps
from dpframe.queries.query import OutputSpec, Query
from dpframe.queries.reading import check_whole
from dpframe.queries.tasks import BinAxis, Cells, KeyAxis, SizeKind, Sizes

_MOST_EXPONENT = 100  # of two: squares of bounds stay floats
_MOST_BINS = 128  # bins that a search counts in

Ends = np.ndarray
"""Finite ends of bins, increasing; they are the candidates for bounds."""


def power_ends(smallest: object, largest: object) -> Ends:
    """Return zero, and powers of two from a smallest to a largest size, of both signs.

    Raises
    ------
    QueryError
        If the sizes are not usable.

    Examples
    --------
    >>> power_ends(1, 6).tolist()
    [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0]
    """
    least, most = _size("smallest", smallest), _size("largest", largest)
    first, last = math.floor(math.log2(least)), math.ceil(math.log2(most))
    if first > last:
        rule = f"must be no larger than largest={quote(largest)}"
        raise QueryError.about("smallest", rule, smallest)
    sizes = np.ldexp(1.0, np.arange(first, last + 1))
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def linear_ends(within: object, bins: object) -> Ends:
    """Return the ends of bins of equal widths.

    Raises
    ------
    QueryError
        If the ends or the number of bins are not usable.

    Examples
    --------
    >>> linear_ends((0, 8), 4).tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    number = check_whole("bins", bins, _MOST_BINS)
    try:
        low, high = (float(as_number(end)) for end in within)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not (-math.inf < low < high < math.inf) or max(-low, high) > 2.0**_MOST_EXPONENT:
        rule = "must be two numbers of at most 2**100 in size, the first below the second"
        raise QueryError.about("within", rule, within)
    return np.linspace(low, high, number + 1)


def _size(called: str, value: object) -> float:
    size = as_float(value)
    if not 2.0**-_MOST_EXPONENT <= size <= 2.0**_MOST_EXPONENT:
        raise QueryError.about(called, "must be a number from 2**-100 to 2**100", value)
    return size


LARGEST = 2**20
"""The largest cap that is looked at, unless a call names another."""

_MOST_LARGEST = 2**40  # rows of one unit


@dataclass(frozen=True, eq=False)
class UnitSizes(Query):
    """The number of units by how much of the groups of a query they fill.

    Parameters
    ----------
    of
        The query whose groups these are.
    kind
        What is counted of a unit.
    most
        The cells: the largest number in each, increasing. The last one also holds all above.
    """

    of: Query = field(kw_only=True)
    kind: SizeKind = field(kw_only=True)
    most: pd.Index = field(kw_only=True)

    outputs = (OutputSpec("units", "count"),)

    @property
    def subject(self) -> str:
        """What is computed."""
        bins = "".join(f", binned by {label}" for label in self.binned)
        return f"units by the {self.cap} that they need{bins}"

    @property
    def cap(self) -> str:
        """The cap that is looked for, as it is written in a call."""
        return f"max_{self.kind}"

    @property
    def bin_axis(self) -> BinAxis | None:
        """Groups that the query makes itself."""
        return self.of.bin_axis

    def sizes(self, groups: Cells) -> Sizes:
        """Return the cells that units fall in."""
        return Sizes(groups, self.kind, KeyAxis(self.cap, self.most))

    @property
    def levels(self) -> set[Hashable]:
        """The levels of the index."""
        return {self.cap}

    def caps(self, declared: Caps) -> Caps:
        """Return what of a unit counts: once, in one cell."""
        return Caps(groups=1, rows_per_group=1)


def sizes_of(query: Query, kind: SizeKind, most: pd.Index) -> UnitSizes:
    """Ask how much of the groups of a query each unit fills, of the rows that it would look at.

    Examples
    --------
    >>> import dpframe as dpf
    >>> sizes_of(dpf.count(by="zone", where="fare > 0"), "rows", candidate_caps("rows", 8)).words
    'units by the max_rows that they need by zone where fare > 0'
    """
    return UnitSizes(query.by, query.condition, query.keys, of=query, kind=kind, most=most)


def candidate_caps(kind: SizeKind, largest: object) -> pd.Index:
    """Return the caps to look at: 1, 2, 3, 4, 6, 8, 12, 16, and so on up to a largest one.

    Raises
    ------
    QueryError
        If the largest one is no whole number from 1 to 2**40.

    Examples
    --------
    >>> candidate_caps("rows", 20).tolist()
    [1, 2, 3, 4, 6, 8, 12, 16, 20]
    """
    end = check_whole("largest", largest, _MOST_LARGEST, "It is the largest cap to look at.")
    return pd.Index([*_below(end), end], dtype="int64", name=f"max_{kind}")


def _below(end: int) -> Iterator[int]:
    """Yield powers of two, and numbers halfway to the next, up to an end."""
    power = 1
    while power < end:
        yield power
        if power > 1 and power + power // 2 < end:
            yield power + power // 2
        power *= 2
