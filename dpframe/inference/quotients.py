"""Quotients of released cells: of two columns, and of each row in a total."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag, is_one_of
from dpframe.cells.verify import Shown, look, whole_release
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.certificates.mechanism_parts import LayersPart, TreePart
from dpframe.errors import QueryError, quote
from dpframe.inference.joint_errors import check_apart, errors_of_shares
from dpframe.inference.sampling import WithSampling, check_sampled
from dpframe.inference.sums import IndependentSum
from dpframe.options import By
from dpframe.privacy.half_widths import ROUNDING, Rows, check_level, narrow
from dpframe.privacy.noise_sum import NoiseSum, Shares, norm
from dpframe.public import public_call
from dpframe.queries.timescale import in_seconds

Parts: TypeAlias = dict[str, float | np.ndarray]
_Sums: TypeAlias = Callable[[np.ndarray, np.ndarray, Rows], tuple[Parts, Parts | None]]


class ErrorOfSum(Protocol):
    """The error of a sum of two released numbers, in some rows."""

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the sum."""

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say how far it is beyond the level that the sum is that far off: at most 0 if it may be.

        Where these are some rows of a table, `rows` is how many it has.
        """


Noise: TypeAlias = Callable[[np.ndarray, np.ndarray, Rows], ErrorOfSum]
_NoiseOfOne: TypeAlias = Callable[[np.ndarray, np.ndarray, Rows], IndependentSum]

# where a quotient is looked for between what fits best and an end: close to it, then evenly
_BETWEEN = np.concatenate([0.25 ** np.arange(14, 1, -1), np.linspace(0.125, 1, 8)])


@dataclass(frozen=True, eq=False)
class Quotients:
    """Quotients of two released numbers in every row.

    Parameters
    ----------
    top, bottom
        The released numbers.
    least
        What is divided by where the lower number is smaller.
    span
        Where the quotients lie, whatever the data hold.
    unit
        About how large they are.
    noise
        From a and b to the error of `a x - b y` in some rows: in all, unless `by_row`.
    by_row
        Whether the noise in a row depends on a and b of the row alone.
    """

    top: np.ndarray
    bottom: np.ndarray
    least: float | np.ndarray
    span: tuple[float, float]
    unit: float
    noise: Noise
    by_row: bool = False


def estimate_quotients(index: pd.Index, quotient: Quotients, level: float) -> pd.DataFrame:
    """Estimate quotients, with their errors and intervals.

    Parameters
    ----------
    index
        The rows.
    quotient
        What is divided by what.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        With `estimate`, `std_error`, `low` and `high`.
    """
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        low, high = quotient_interval(quotient, level)
        least, bottom = quotient.least, quotient.bottom
        bottom = np.where(np.abs(bottom) < least, np.copysign(least, bottom), bottom)
        first, last = quotient.span
        bottom = np.maximum(bottom, least) if first > -np.inf else bottom
        estimate = np.clip(np.clip(quotient.top / bottom, first, last), low, high)
        one = np.ones(len(estimate))
        error = quotient.noise(one, estimate, slice(None)).deviation / np.abs(bottom)
        error = _kept_error(estimate, error, quotient.span)
    columns = {"estimate": estimate, "std_error": error, "low": low, "high": high}
    return pd.DataFrame(columns, index=index)


def _kept_error(estimate: np.ndarray, error: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """Return the root mean square of an error that is normal, but is cut off at the ends of a span.

    With `a = (first - r) / s`, `b = (last - r) / s`, that is `s^2 (Phi(b) - Phi(a) - b phi(b) +
    a phi(a) + a^2 Phi(a) + b^2 Phi(-b))`.
    """
    from scipy import special  # slow to import, and not always needed

    first, last = span
    error = np.minimum(error, _VAST * (last - first))
    squares = np.zeros(len(estimate))
    for end, sign in ((first, -1), (last, 1)):
        off = sign * (end - estimate) / np.where(error > 0, error, 1.0)
        density = np.exp(-(off**2) / 2) / np.sqrt(2 * np.pi)
        own = special.ndtr(off) - 0.5 - off * density + off**2 * special.ndtr(-off)
        squares += np.where(np.isinf(off), 0.5, own)
    kept: np.ndarray = error * np.sqrt(squares)
    return kept


_VAST = 1e4  # times the span: an error of that size says nothing


def quotient_interval(quotient: Quotients, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of all quotients that are not rejected.

    They are angles, `r = unit tan(t)`, so that an end can be infinite. Between the r that fits best
    and an end of what is possible, those not rejected are nearly always those up to some r: half-
    widths are convex, or nearly so. They are looked for at some places, from the ends inwards, and
    their border is then found between two of these.
    """
    excess = _test(quotient, level)
    first, last = (np.arctan(end / quotient.unit) for end in quotient.span)
    best = np.arctan(quotient.top / (quotient.unit * quotient.bottom))
    best = np.clip(np.where(np.isnan(best), first, best), first, last)
    low = best + (first - best) * _BETWEEN[::-1, None]
    high = best + (last - best) * _BETWEEN[:, None]
    places = np.concatenate([low, best[None], high])
    accepted = np.array([excess(t, slice(None)) <= 0 for t in places])
    none = ~accepted.any(axis=0)
    columns, final = np.arange(len(best)), len(places) - 1
    start, end = accepted.argmax(axis=0), final - accepted[::-1].argmax(axis=0)
    below, above = np.maximum(start - 1, 0), np.minimum(end + 1, final)
    about = {"by_row": quotient.by_row}
    lowest = narrow(excess, places[below, columns], places[start, columns], **about)
    highest = narrow(excess, places[above, columns], places[end, columns], **about)
    low = np.where(none | (start == 0), quotient.span[0], quotient.unit * np.tan(lowest))
    high = np.where(none | (end == final), quotient.span[1], quotient.unit * np.tan(highest))
    return np.maximum(low, quotient.span[0]), np.minimum(high, quotient.span[1])


def _test(quotient: Quotients, level: float) -> Callable[[np.ndarray, Rows], np.ndarray]:
    """Return the test of quotients, given as angles: those up to 0 are not rejected."""

    def excess(t: np.ndarray, rows: Rows) -> np.ndarray:
        a, b = np.cos(t), quotient.unit * np.sin(t)
        top, bottom = a * quotient.top[rows], b * quotient.bottom[rows]
        off = np.abs(top - bottom)
        off = np.where(off > ROUNDING * (np.abs(top) + np.abs(bottom)), off, 0.0)
        beyond = quotient.noise(a, b, rows).excess(off, level, len(quotient.top))
        return np.where(np.isnan(beyond), np.inf, beyond)

    return excess


def _within(
    release: Release, sums: _Sums, shares: Callable[[np.ndarray, np.ndarray], Shares] | None = None
) -> _NoiseOfOne:
    """Return the error of `a x - b y` from what the blocks of one release do to it.

    Parameters
    ----------
    release
        Where the noise comes from.
    sums
        From a and b to what the noise of the blocks does in some rows, and the largest parts.
    shares
        From a and b to the sum of cells that this is, if it is known.
    """
    source = release.noise
    groups, scales = source.drawn_together(release.query.cells), source.scale_by_block

    def noise(a: np.ndarray, b: np.ndarray, rows: Rows) -> IndependentSum:
        parts, largest = sums(a, b, rows)
        own = None if shares is None else shares(a, b)
        total = NoiseSum(parts, scales, groups, largest, shares=own)
        return IndependentSum([(source.distribution, total)])

    return noise


_HALVINGS = 40  # so that an end is off by no more than 1 part in 10^12


def border(
    holds: Callable[[np.ndarray], np.ndarray], rejected: np.ndarray, kept: np.ndarray
) -> np.ndarray:
    """Return the last place that is rejected on the way to one that is kept.

    The way is halved 40 times; where both places are the same, it is that one.

    Parameters
    ----------
    holds
        The test, which keeps places or rejects them.
    rejected, kept
        Where the ways begin and end, one of each for every interval.

    Examples
    --------
    >>> round(float(border(lambda x: x >= 0.25, np.zeros(1), np.ones(1))[0]), 8)
    0.25
    """
    for _ in range(_HALVINGS):
        middle = (rejected + kept) / 2
        within = holds(middle)
        rejected, kept = np.where(within, rejected, middle), np.where(within, middle, kept)
    return rejected


@public_call
def ratio(
    released: pd.DataFrame,
    numerator: Hashable,
    denominator: Hashable,
    level: float = 0.95,
    *,
    sampling: bool = False,
) -> pd.DataFrame:
    """Return the quotient of two released columns in every row, with error and interval.

    The interval holds every r for which `|X - r Y|` is at most the half-width for the noise of
    `x - r y`, with the covariance of the two columns; for two Laplace noises by the exact law of
    their sum. It stays within public limits: a count of some rows is at most the count of all, a
    sum at most so many times the upper bound. It covers at least as often as it says in groups of
    any size, and is never missing: where Y may be 0, it may be infinite.

    Parameters
    ----------
    released
        A released frame.
    numerator, denominator
        Labels of two of its columns, counts or sums.
    level
        Confidence level of each interval, in (0, 1).
    sampling
        Whether the rows are a random sample, and the quotient is that of the population: `y r (1 -
        r)` is added to the variance of `x - r y`. Both are then counts, and Y counts all rows that
        X does.

    Returns
    -------
    DataFrame
        The released rows, with `estimate`, `std_error` (of first order), `low` and `high`. In
        estimates, a denominator is at least 1, or at least its standard error for sums. Times count
        in seconds.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the labels are not those of two counts or sums, or the level is not in (0, 1). With
        `sampling`, if they are no such counts, or a unit may have several rows.

    References
    ----------
    E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society
    B 16(2), 1954.

    Examples
    --------
    >>> import dpframe as dpf
    >>> flights = pd.DataFrame({"delay": [5, 40, 0, 90]})
    >>> query = dpf.aggregate(late=dpf.count(where="delay > 15"), flights=dpf.count())
    >>> released = dpf.release(flights, query, epsilon=1e6)
    >>> ratio(released, "late", "flights").round(3)
       estimate  std_error  low  high
    0       0.5        0.0  0.5   0.5
    """
    level = check_level(level)
    check_flag("sampling", sampling)
    return ratio_of(look(released), numerator, denominator, level, sampling=sampling)


def ratio_of(
    shown: Shown,
    numerator: Hashable,
    denominator: Hashable,
    level: float,
    *,
    called: tuple[str, str] = ("numerator", "denominator"),
    sampling: bool = False,
) -> pd.DataFrame:
    """Return quotients of a table that was verified, whatever the two are called; see `ratio`."""
    release, released = whole_release(shown, "ratio"), shown.frame
    above = _place(released, release, numerator, called[0])
    below = _place(released, release, denominator, called[1])
    if above == below:
        raise QueryError.about(
            called[1], f"must be another column than in {called[0]}=", denominator
        )
    x, y = release.columns[above], release.columns[below]
    if sampling:
        check_sampled(release, [x, y])
        if not y.counts_rows or y.where not in (None, x.where):
            rule = f"is for shares, and {quote(y.name)} does not count all rows of {quote(x.name)}"
            way_out = f"Release dpf.rate(...), or leave {called[1]} without a condition of its own."
            raise QueryError.about("sampling", rule, True, way_out)
    upper, lower = x.deviations, y.deviations

    def sums(a: np.ndarray, b: np.ndarray, rows: Rows) -> tuple[Parts, None]:
        return {
            block: np.abs(a * part_of(upper, block, rows) - b * part_of(lower, block, rows))
            for block in {**upper, **lower}
        }, None

    span = _span(x, y)
    own = [norm(one.deviations.values()) for one in (x, y)]
    least = 1.0 if y.counts_rows else float(np.max(own[1])) or 1.0
    top, bottom = (_numbers(released, release, place) for place in (above, below))
    alone = _within(release, sums)
    noise = _sampled(alone, bottom) if sampling else alone
    quotient = Quotients(top, bottom, least, span, unit_of(span, *own), noise, by_row=True)
    estimates = estimate_quotients(released.index, quotient, level)
    picked = shown.pick(estimates, [shown.labels[above]] * estimates.shape[1])
    return mark_diagnosis(picked, [release], "ratio")


def _sampled(alone: _NoiseOfOne, sampled: np.ndarray) -> Noise:
    """Add to the noise of `a x - b n` the error of x, of n sampled rows: `n b (a - b)`."""
    some = np.maximum(sampled, 0.0)

    def noise(a: np.ndarray, b: np.ndarray, rows: Rows) -> WithSampling:
        return WithSampling(alone(a, b, rows), some[rows] * np.maximum(b * (a - b), 0))

    return noise


def part_of(loadings: Mapping[str, float | np.ndarray], block: str, rows: Rows) -> Any:
    """Return what the noise of a block does to some rows."""
    part = loadings.get(block, 0.0)
    return part[rows] if isinstance(part, np.ndarray) and part.ndim else part


def percent_of(
    shown: Shown, column: Hashable, level: float, by: By = None, *, sampling: bool = False
) -> pd.DataFrame:
    """Return percentages of the rows that a table shows; see `percent`."""
    release, place = column_of_shares(shown, column, "percent", sampling=sampling)
    whole = all_percentages(shown, column, level, by, sampling=sampling)
    picked = shown.pick(whole, [shown.labels[place]] * whole.shape[1])
    return mark_diagnosis(picked, [release], "percent")


def all_percentages(
    shown: Shown, column: Hashable, level: float, by: By = None, *, sampling: bool = False
) -> pd.DataFrame:
    """Return percentages of all released rows; see `percent`."""
    release, place = column_of_shares(shown, column, "percent", sampling=sampling)
    released = shown.frame
    levels = levels_of(shown, by)
    together = _rows_together(released.index, levels)
    described = release.columns[place]
    values = _numbers(released, release, place)
    sums = _noise_of_shares(release, described, together, levels)
    every = np.ones(len(values))
    errors = norm(sums(0 * every, every, slice(None))[0].values())
    least = 1.0 if described.counts_rows else np.where(errors > 0, errors, 1.0)
    span = (0.0, 1.0) if described.span[0] >= 0 else (-np.inf, np.inf)
    total = _in_all(values, together)
    shares = _shares(release, described, together) if span[0] == 0 else None
    alone = _within(release, sums, shares)
    noise = _sampled(alone, total) if sampling else alone
    quotient = Quotients(values, total, least, span, 1.0, noise)
    return 100 * estimate_quotients(released.index, quotient, level)


def levels_of(shown: Shown, by: By) -> list[int]:
    """Return the positions of the levels whose keys make groups of rows; none for all rows.

    Parameters
    ----------
    shown
        A table.
    by
        As for `percent`.

    Raises
    ------
    QueryError
        If there is no such level, or all are named.
    """
    if by is None:
        return []
    names = list(shown.opened.index.names)
    given = list(by) if isinstance(by, list) else [by]
    places = {at for one in given for at, name in enumerate(names) if is_one_of(one, [name])}
    if any(one is None for one in given) or not 0 < len(places) == len(given) < len(names):
        rule = f"must name some of the levels of the index, {names!r}, each once, and not all"
        raise QueryError.about("by", rule, by, "Name several as a list.")
    return sorted(places)


def column_of_shares(
    shown: Shown, column: Hashable | None, what: str, *, sampling: bool = False
) -> tuple[Release, int]:
    """Check that a release has shares of the total of a column, and find it; see `percent`.

    Parameters
    ----------
    shown
        The table.
    column
        As for `percent`.
    what
        What is to be done with them.
    sampling
        Whether rows are to be a sample.
    """
    release, released = whole_release(shown, what), shown.frame
    if isinstance(release.mechanism, TreePart):
        check_apart(release, what, "For parts of a distribution, use .dp.between(...).")
    place = _place(released, release, _only(released, release, column), "column")
    if sampling:
        check_sampled(release, [release.columns[place]], across=True)
    return release, place


def _rows_together(index: pd.Index, levels: list[int]) -> np.ndarray:
    """Return for every row the number of its group: rows with the same keys."""
    groups = np.zeros(len(index), np.intp)
    for level in levels:
        keys, known = index.get_level_values(level).factorize()
        _, groups = np.unique(groups * len(known) + keys, return_inverse=True)
    return groups


def _in_all(parts: float | np.ndarray, together: np.ndarray) -> np.ndarray:
    """Return for every row the sum over its group."""
    sums: np.ndarray = np.bincount(together, np.broadcast_to(parts, together.shape))[together]
    return sums


def _noise_of_shares(
    release: Release, column: ColumnPart, together: np.ndarray, levels: Sequence[int]
) -> _Sums:
    """Return what noise does to `a x_i - b sum_j x_j`, from that of the cells of a group."""
    source = release.noise
    if isinstance(source, LayersPart):
        return lambda a, b, _: (errors_of_shares(column, source, a, b, levels), None)
    common = set(source.shared_blocks)
    cells = {
        block: np.broadcast_to(np.abs(loading), together.shape)
        for block, loading in column.deviations.items()
        if block not in common
    }
    shared = {block: part for block, part in column.deviations.items() if block in common}

    squares = {block: np.square(own) for block, own in cells.items()}
    others = {
        block: np.sqrt(np.maximum(_in_all(one, together) - one, 0))
        for block, one in squares.items()
    }
    most = {block: _most(own, together) for block, own in cells.items()}

    def sums(a: np.ndarray, b: np.ndarray, _: Rows) -> tuple[Parts, Parts]:
        parts: Parts = {}
        largest: Parts = {}
        for block, own in cells.items():
            parts[block] = np.hypot((a - b) * own, b * others[block])
            largest[block] = np.maximum(np.abs(a - b) * own, np.abs(b) * most[block])
        for block, loading in shared.items():
            parts[block] = largest[block] = np.abs(a * loading - b * _in_all(loading, together))
        return parts, largest

    return sums


def _shares(
    release: Release, column: ColumnPart, together: np.ndarray
) -> Callable[[np.ndarray, np.ndarray], Shares] | None:
    """Return the sum of cells that a share is, where all cells have noise of the same scales."""
    source = release.noise
    if isinstance(source, LayersPart) or any(np.ndim(part) for part in column.deviations.values()):
        return None
    scales = source.scale_by_block
    loadings = {b: abs(float(part)) for b, part in column.deviations.items() if scales.get(b, 0)}
    cells = np.bincount(together)[together]
    return lambda a, b: Shares(a, b, cells, loadings, source.shared_blocks)


def _most(parts: np.ndarray, together: np.ndarray) -> np.ndarray:
    """Return for every row the largest part of its group."""
    most = np.zeros(together.max(initial=-1) + 1)
    np.maximum.at(most, together, parts)
    of_rows: np.ndarray = most[together]
    return of_rows


def _only(released: pd.DataFrame, release: Release, column: Hashable | None) -> Hashable:
    """Return the column asked for, or the only one."""
    labels = list(released.columns[: len(release.columns)])
    if column is None and len(labels) > 1:
        raise QueryError.about("column", f"must be one of the columns released, {labels!r}", None)
    return labels[0] if column is None else column


def _place(released: pd.DataFrame, release: Release, label: Hashable, called: str) -> int:
    """Find a released count or sum by its label."""
    _ = release.noise  # quantiles that were selected have none
    labels = list(released.columns[: len(release.columns)])
    places = [place for place, known in enumerate(labels) if is_one_of(label, [known])]
    if len(places) != 1:
        rule = f"must be the label of one of the columns released, {labels!r}"
        raise QueryError.about(called, rule, label)
    if not release.columns[places[0]].form.is_total:
        way_out = (
            "It is a quotient already, with an interval in .dp.interval(). For another one, "
            "release its sum and count: dpf.aggregate(total=dpf.sum(...), n=dpf.count())."
        )
        raise QueryError.about(called, "must be a count or a sum", label, way_out)
    return places[0]


def _numbers(released: pd.DataFrame, release: Release, place: int) -> np.ndarray:
    return in_seconds(released.iloc[:, place], release.columns[place].origin)


def _span(x: ColumnPart, y: ColumnPart) -> tuple[float, float]:
    """Return where a quotient lies, from public facts: what a row adds to both columns."""
    low, high = x.span
    alike = y.form.is_whole and x.weights == y.weights
    if alike and y.where in (None, x.where):  # x is about rows that y counts
        return min(low, 0.0), max(high, 0.0)
    return span_of_signs((low, high), y.span)


def span_of_signs(top: tuple[float, float], bottom: tuple[float, float]) -> tuple[float, float]:
    """Return where a quotient lies, from the signs that its two numbers may have."""
    if bottom[0] < 0:
        return -np.inf, np.inf
    return (0.0 if top[0] >= 0 else -np.inf), (0.0 if top[1] <= 0 else np.inf)


def unit_of(span: tuple[float, float], above: np.ndarray, below: np.ndarray) -> float:
    """Say how large a quotient may be, or that of the errors where it has no end."""
    largest = max(map(abs, span))
    if 0 < largest < np.inf:
        return largest
    errors = float(np.max(above)), float(np.max(below))
    return errors[0] / errors[1] if all(errors) else 1.0
