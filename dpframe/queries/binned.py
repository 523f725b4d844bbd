"""Queries about bins of a column: rows in each of them, in any range of them, or quantiles.

Bins are of numbers or times: increasing edges, or intervals without overlaps.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias, assert_never, cast

import numpy as np
import pandas as pd

from dpframe.arguments import MOST_GROUPS, check_flag, check_size
from dpframe.errors import QueryError, quote
from dpframe.frozen import frozen
from dpframe.options import By, ChosenRows, GivenBounds, Keys, Other
from dpframe.privacy.amounts import as_float, as_number, exact
from dpframe.privacy.half_widths import check_level
from dpframe.public import public_call
from dpframe.queries.edges import (
    Moment,
    bins_between,
    check_bins,
    index_of,
    microseconds,
    whole_bins,
)
from dpframe.queries.query import Bins, OutputSpec, Query, ReadOff, weighted_words
from dpframe.queries.reading import binned_groups_of, bounds_of, check_whole, weights_of
from dpframe.queries.tasks import BinAxis
from dpframe.strategies.ordered import Window

BINS = 1024
"""How many bins there are, where nothing is said of them."""

_HUGE = 1e290  # bounds below it stay floats when they are multiplied by a number of bins
_FAR = 2**53  # whole numbers up to here are floats
_Bounds: TypeAlias = tuple[float, float] | tuple[Moment, Moment]


@public_call
def histogram(
    column: Hashable, bins: object, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, weights: Hashable = None,
) -> Query:  # fmt: skip
    """Describe the number of rows per bin of a numeric column, by group.

    Parameters
    ----------
    column
        Column whose values fall into the bins. Values in none of them are left out.
    bins
        Increasing edges, with `-inf` and `inf` allowed at the ends, for bins closed on the right;
        the first edge belongs to the first bin, whose label begins a little below it, as in
        `pandas.cut(..., include_lowest=True)`. Or a `pandas.IntervalIndex` without overlaps; or how
        many bins of equal width lie between the declared bounds, as in `ranges`.
    by, where, keys, weights, max_rows, max_groups, max_rows_per_group, weight, other
        As in `count`; with weights, bins hold weighted totals.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"fare": [9.5, 20.0, 7.5]})
    >>> released = dpf.release(trips, histogram("fare", [0, 10, 100]), epsilon=1e6)
    >>> [(str(bin), count) for bin, count in released["count"].items()]  # hardly any noise
    [('(-0.001, 10.0]', 2), ('(10.0, 100.0]', 1)]
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups = binned_groups_of(column, by, rows)
    binned = Bins(column, check_number_or_bins(column, bins))
    weights = weights_of(weights)
    outputs = (OutputSpec("count", "count", weights=weights),)
    subject = weighted_words(f"histogram of {column}", weights)
    return Query(**groups, outputs=outputs, subject=subject, bins=binned)


def bins_of(bins: Bins, bounds: _Bounds | None, *, integer: bool) -> BinAxis | None:
    """Return the groups that bins are; `None` where bounds are needed, and there are none.

    Where a column of integers has no more of them than there would be bins of equal widths, k is in
    the bin (k - 1, k]. Edges are whole numbers only if values are.

    Parameters
    ----------
    bins
        What was asked.
    bounds, integer
        The bounds of the column, if they are known, and whether it is declared to hold integers.

    Raises
    ------
    QueryError
        If the bins do not fit the bounds.
    """
    edges, column = bins.edges, bins.column
    if isinstance(edges, int):
        if bounds is None:
            return None
        edges = intervals_between(column, bounds, edges, integer=integer)
    elif bins.clipped:
        _check_covered(column, edges, bounds)
        edges = whole_bins(edges) if integer else _in_floats(edges)
    elif integer:
        edges = whole_bins(edges)
    return BinAxis(column, edges.rename(column), bins.clipped)


def check_number_or_bins(column: Hashable, bins: object) -> pd.IntervalIndex | int:
    """Validate bins, or how many are to lie between the bounds of their column."""
    if not isinstance(bins, int | np.integer) or isinstance(bins, bool):
        return check_bins(column, bins)
    if not 0 < bins <= MOST_GROUPS:
        raise QueryError.about("bins", f"must be from 1 to {MOST_GROUPS:,}", bins, label=column)
    return int(bins)


def check_range_bins(column: Hashable, bins: object) -> pd.IntervalIndex | int:
    """Validate bins that are to cover all values: their number, edges, or adjacent intervals."""
    intervals = check_number_or_bins(column, BINS if bins is None else bins)
    if isinstance(intervals, int):
        return intervals
    adjacent = bool((intervals.left[1:] == intervals.right[:-1]).all())
    if not adjacent or intervals.closed not in ("left", "right"):
        rule = "must be adjacent, all closed on the same side, so that each value is in one of them"
        raise QueryError.about("bins", rule, bins, label=column)
    ends = [intervals.left[0], intervals.right[-1]]
    if intervals.left.dtype.kind == "f" and not np.isfinite(ends).all():
        remedy = "What lies beyond counts in the first and in the last bin."
        raise QueryError.about("bins", "must have finite edges", bins, remedy, label=column)
    return intervals


def intervals_between(
    column: Hashable, bounds: _Bounds, number: int, *, integer: bool
) -> pd.IntervalIndex:
    """Divide what lies between two bounds; there are fewer bins where floats are fewer.

    Raises
    ------
    QueryError
        If the bounds are equal, or floats cannot tell them apart.
    """
    lower, upper = bounds
    edges: np.ndarray | pd.Index
    if isinstance(lower, pd.Timestamp | pd.Timedelta):
        edges = _times_between(lower, cast(Moment, upper), number)
    else:
        edges = _numbers_between(float(lower), float(cast(float, upper)), number, integer=integer)
    if len(edges) < 2:  # noqa: PLR2004 - the edges of one bin
        if lower == upper:
            remedy = "Bins lie between them: give wider ones."
            raise QueryError.about("bounds", "must differ", bounds, remedy, label=column)
        rule = "must not be the same float, for bins to lie between them"
        remedy = (
            "Before it is declared, subtract a number from the column, so that bounds are smaller."
        )
        raise QueryError.about("bounds", rule, bounds, remedy, label=column)
    one_each = isinstance(edges, np.ndarray) and edges.dtype.kind == "i"
    return pd.IntervalIndex.from_breaks(edges) if one_each else bins_between(edges)


def _numbers_between(lower: float, upper: float, number: int, *, integer: bool) -> np.ndarray:
    """Return edges: one below each integer and one at the last, or of equal widths."""
    if integer and -_FAR < lower <= upper < _FAR:
        first, last = math.ceil(lower), math.floor(upper)
        if last - first < number:
            return np.arange(first - 1, last + 1, dtype=np.int64)
    # products first, so that round numbers stay round; but none beyond the range of floats
    part = 1.0 if max(abs(lower), abs(upper)) < _HUGE else 1.0 / number
    steps = np.arange(number + 1)
    edges = (lower * part * (number - steps) + upper * part * steps) / (number * part)
    edges[[0, -1]] = lower, upper
    return np.unique(edges)


def _times_between(lower: Moment, upper: Moment, number: int) -> pd.Index:
    """Return edges of whole microseconds, as equal in width as can be."""
    first, last = microseconds(lower), microseconds(upper)
    ticks = sorted({first + (last - first) * k // number for k in range(number + 1)})
    step = pd.to_timedelta(np.array(ticks) - first, unit="us")
    return index_of([lower + offset for offset in step])


def _check_covered(column: Hashable, bins: pd.IntervalIndex, bounds: _Bounds | None) -> None:
    """Refuse bins that end inside the bounds, or are of something else."""
    if bounds is None:
        return
    try:
        first, last = bins[0], bins[-1]
        below = first.left < bounds[0] or bounds[0] in first
        covered = below and (bounds[1] < last.right or bounds[1] in last)
    except TypeError:
        covered = False
    if not covered:
        rule = f"must hold all from bound to bound, {quote(bounds)}"
        remedy = "Give edges, of which the first belongs to the first bin, or bounds= in the call."
        raise QueryError.about("bins", rule, bins, remedy, label=column)


def _in_floats(bins: pd.IntervalIndex) -> pd.IntervalIndex:
    """Return bins of numbers with edges that are floats."""
    if bins.left.dtype.kind not in "iu":
        return bins
    left, right = bins.left.astype(np.float64), bins.right.astype(np.float64)
    return pd.IntervalIndex.from_arrays(left, right, closed=bins.closed)


@public_call
def ranges(
    column: Hashable, bins: object = None, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None, window: Window = None,
) -> Query:  # fmt: skip
    """Describe the number of rows in ranges of a bounded column, by group.

    The release has one number per group and bin, as `histogram`, measured so that sums over
    adjacent bins are accurate: with B bins, the variance of a sum grows as `log(B)^2` or
    `log(B)^3`, not as the number of bins in it. Numbers are not rounded, so they add up. `quantile`
    and `between` read quantiles and ranges off the release at no further cost.

    Parameters
    ----------
    column
        Column whose values fall into the bins. Values beyond the first and the last edge count in
        the first and the last bin; rows where it is missing are left out.
    bins
        How many bins of equal width lie between the bounds of the column, 1,024 by default. A
        column that is declared to hold integers, and no more than that, has one for each: k is in
        `(k - 1, k]`. Or increasing finite edges, as in `histogram`, or a `pandas.IntervalIndex`
        without gaps; they hold all from bound to bound if bounds are declared.
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        As in `count`. Bins are no groups for the caps: caps limit the rows of a unit in each group
        of `by`, whatever their values.
    bounds
        `(lower, upper)`, if not declared, or in place of declared ones.
    window
        The sums that matter most, in the words of pandas: over so many adjacent bins, as in
        `rolling(window)`, or `"expanding"`, from the first bin to every other one, as in `cumsum`.
        `None`: over all ranges. It changes errors, and not what is released. The error shown for
        single bins is that of the one that errs most.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Notes
    -----
    With Gaussian noise, combinations of the bins are measured that are nearly the best ones for the
    sums that matter: errors of ranges are 1.01 times a lower bound for 64 bins, 1.05 times for
    1,024. With Laplace noise, bins are the leaves of a tree, and the counts of some of its levels
    are measured and reconciled by least squares (Hay, Rastogi, Miklau and Suciu 2010).

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"fare": [9.5, 20.0, 7.5, 30.0]})
    >>> query = ranges("fare", 4, bounds=(0, 40))
    >>> released = dpf.release(trips, query, epsilon=1e6)  # hardly any noise
    >>> [(str(bin), round(count)) for bin, count in released["count"].items()]
    [('(-0.001, 10.0]', 2), ('(10.0, 20.0]', 1), ('(20.0, 30.0]', 1), ('(30.0, 40.0]', 0)]
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups = binned_groups_of(column, by, rows)
    edges = check_range_bins(column, bins)
    binned = Bins(column, edges, bounds_of((column,), bounds), clipped=True)
    window = _window_of(window, edges)
    match window:
        case None:
            subject = f"ranges of {column}"
        case "expanding":
            subject = f"cumulative ranges of {column}"
        case int():
            subject = f"ranges of {column} over {window:,} bins"
        case _:
            assert_never(window)
    outputs = (OutputSpec("count", "count"),)
    return Query(**groups, outputs=outputs, subject=subject, bins=binned, window=window)


def _window_of(window: object, bins: pd.IntervalIndex | int) -> Window:
    """Read which sums matter."""
    if window is None or window == "expanding":
        return cast(Window, window)
    number = bins if isinstance(bins, int) else len(bins)
    remedy = "It is a number of bins; or 'expanding', for sums from the first bin on."
    return check_whole("window", window, number, remedy)


Quantiles: TypeAlias = float | Fraction | Sequence[float | Fraction]
"""One quantile between 0 and 1, or several in increasing order."""

LEVEL = "quantile"
"""The level of the index that says which quantile a row is about."""

QUARTILES = (0.25, 0.5, 0.75)

MOST_BINS = 16_384
"""Bins between the bounds, where the call does not say how many."""

_LARGEST_BINS = 2**20  # bins to select among
_MOST_QUANTILES = 9  # quantiles to select, in four rounds
_MOST_PARTS = 10**6  # quantiles are whole multiples of 1 over this or less, so integers stay small


@frozen(eq=False)
class Quantile(Query):
    """Quantiles of one column per group, over the rows where it is present."""

    column: Hashable = field(kw_only=True)
    quantiles: tuple[Fraction, ...] = field(kw_only=True)
    bounds: Mapping[Hashable, object] = field(default_factory=dict, kw_only=True)
    edges: pd.IntervalIndex | int | None = field(default=None, kw_only=True)
    candidates: tuple[float, ...] | None = field(default=None, kw_only=True)
    level: float = field(default=0.95, kw_only=True)
    simultaneous: bool = field(default=False, kw_only=True)
    scalar: bool = field(default=False, kw_only=True)

    @property
    def levels(self) -> set[Hashable]:
        """The levels of the index: the last one says which quantile it is, if q is a list."""
        return super().levels if self.scalar else {*super().levels, LEVEL}

    @property
    def to_measure(self) -> Query:
        """Numbers of rows in ranges, which quantiles are read off.

        They are selected instead where the mechanism says so.
        """
        edges = BINS if self.edges is None else self.edges
        quantiles = tuple(map(float, self.quantiles))
        name = "count"  # which previews alone show
        while name in (*self.by, self.column):
            name = f"{name}_"
        return Query(
            self.by,
            self.where,
            self.keys,
            outputs=(OutputSpec(name, "count"),),
            subject=self.subject,
            bins=Bins(self.column, edges, self.bounds, clipped=True),
            read=ReadOff(quantiles, self.level, self.simultaneous, self.scalar),
            limits=self.limits,
            weight=self.weight,
            cuts=self.cuts,
            other=self.other,
        )


def check_selectable(query: Quantile) -> None:
    """Refuse what cannot be selected: many quantiles, others than of few whole parts, or one bin.

    Raises
    ------
    QueryError
        If it is so.
    """
    if len(query.quantiles) > _MOST_QUANTILES:
        rule = f"must be at most {_MOST_QUANTILES} quantiles to be selected"
        remedy = "leave mechanism out, or release dpf.ranges(...) and read them off that."
        raise QueryError(f"q {rule}, got {len(query.quantiles):,}: {remedy}", parameter="q")
    if math.lcm(*(number.denominator for number in query.quantiles)) > _MOST_PARTS:
        rule = "must have at most six decimals to be selected, or be fractions of few parts"
        raise QueryError.about("q", rule, list(map(float, query.quantiles)))
    number = _number(query.edges)
    if number is not None and not 2 <= number <= _LARGEST_BINS:  # noqa: PLR2004
        rule = f"must be from 2 to {_LARGEST_BINS:,} to select among"
        raise QueryError.about("bins", rule, number, "They lie between the bounds.")


def describe_quantiles(
    column: Hashable, q: Quantiles, by: By, rows: ChosenRows, bounds: GivenBounds,
    *, level: float, simultaneous: bool, bins: object, candidates: object,
) -> Quantile:  # fmt: skip
    """Describe quantiles of one bounded column per group."""
    groups = binned_groups_of(column, by, rows, "have quantiles and be")
    labels = groups["by"]
    if LEVEL in labels:
        raise _taken_label(LEVEL, "the level of the index that says which quantile a row is about")
    for label in labels:
        if str(label) in (f"{column}_low", f"{column}_high"):
            raise _taken_label(label, "the end of an interval")
    check_flag("simultaneous", simultaneous)
    if bins is not None and candidates is not None:
        reason = "candidates= are the values to select among, and bins= are ranges of values:"
        raise QueryError(f"{reason} give one of the two.", parameter="candidates")
    quantiles, by_column = read_quantiles(q), bounds_of((column,), bounds)
    edges = None if bins is None else check_range_bins(column, bins)
    values = None if candidates is None else _read_candidates(column, candidates)
    return Quantile(
        **groups,
        outputs=(OutputSpec(column, "quantile", column, bounds=by_column),),
        subject=_subject(column, quantiles, edges, values),
        column=column,
        quantiles=quantiles,
        bounds=by_column,
        edges=edges,
        candidates=values,
        level=check_level(level),
        simultaneous=bool(simultaneous),
        scalar=is_scalar(q),
    )


def _subject(
    column: Hashable,
    quantiles: Sequence[Fraction],
    edges: pd.IntervalIndex | int | None,
    values: Sequence[float] | None,
) -> str:
    """Say which quantiles are asked for, and among what."""
    several = "quantile" if len(quantiles) == 1 else "quantiles"
    number = _number(edges)
    among = "" if number is None else f" in {number:,} bins"
    if values is not None:
        among = f" among {len(values):,} values"
    levels = ", ".join(f"{float(quantile):.6g}" for quantile in quantiles)
    return f"{several} {levels} of {column}{among}"


def _number(edges: pd.IntervalIndex | int | None) -> int | None:
    """Return how many bins there are, if that was said."""
    return edges if isinstance(edges, int | None) else len(edges)


def _read_candidates(column: Hashable, candidates: object) -> tuple[float, ...]:
    """Read the values that quantiles are selected among."""
    rule = "must be a list of two numbers or more, finite and increasing"
    remedy = (
        "Multiples of 1,000 are range(0, 500_001, 1000). Values taken from the data would leak."
    )
    wrong = QueryError.about("candidates", rule, candidates, remedy, label=column)
    # sets have no order
    if isinstance(candidates, set | frozenset | str | bytes | Mapping) or not isinstance(
        candidates, Iterable
    ):
        raise wrong
    check_size("candidates", candidates)
    values = tuple(map(as_float, candidates))
    if len(values) < 2 or not all(map(math.isfinite, values)):  # noqa: PLR2004
        raise wrong
    if any(low >= high for low, high in pairwise(values)):
        raise wrong
    if len(values) > _LARGEST_BINS:
        raise QueryError.about("candidates", f"must be at most {_LARGEST_BINS:,}", len(values))
    return values


def _taken_label(label: Hashable, use: str) -> QueryError:
    reason = f"by names a column {label!r}, which is what {use} is called. Rename it in the frame."
    return QueryError(reason, parameter="by", label=label)


def is_scalar(q: object) -> bool:
    """Whether q is one quantile: a list of one makes a level that says which it is."""
    return not isinstance(q, Iterable)


def read_quantiles(quantiles: object) -> tuple[Fraction, ...]:
    """Read one quantile or several.

    Raises
    ------
    QueryError
        If they are not between 0 and 1, or do not increase.
    """
    # sets have no order, and a column of the frame is private
    if isinstance(quantiles, pd.Series | pd.DataFrame | set | frozenset | str | bytes | Mapping):
        raise _wrong(quantiles)
    listed = list(quantiles) if isinstance(quantiles, Iterable) else [quantiles]
    try:
        numbers = tuple(exact(as_number(number)) for number in listed)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(quantiles) from None
    inside = bool(numbers) and all(0 < number < 1 for number in numbers)
    if not inside or any(low >= high for low, high in pairwise(numbers)):
        raise _wrong(quantiles)
    return numbers


def _wrong(quantiles: object) -> QueryError:
    rule = "must be a number above 0 and below 1, or a list of such in increasing order"
    return QueryError.about("q", rule, quantiles, "0.5 is the median, [0.25, 0.75] are quartiles.")
