"""From released frames to standard errors and intervals. Cannot reach private data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, assert_never

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.accuracy import sampling as samples
from dpframe.accuracy.outward import Ends, known_numbers, rounding, shown_ends
from dpframe.accuracy.quotients import ErrorOfSum, Quotients, border, part_of, quotient_interval
from dpframe.accuracy.sums import IndependentSum
from dpframe.certificates import column_parts, companion_columns
from dpframe.certificates.certificate import Certificate, Release, check_before
from dpframe.certificates.companion_columns import ENDS, quantile_intervals
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.certificates.mechanism_parts import NoiseRecord, ThresholdPart
from dpframe.certificates.steps import ROW_BY_ROW
from dpframe.certificates.unstacked import spread, stack_table
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import Groups, NoiseSum, Value, norm
from dpframe.public import public_call
from dpframe.queries.timescale import seconds, times_around, times_between
from dpframe.statistics.form import SamplingSpread, Statistic, Totals

Sides: TypeAlias = tuple[np.ndarray, np.ndarray]


def check_not_selected(release: Release, what: str) -> None:
    """Refuse what takes errors for unbiased, where groups were published for their counts.

    Raises
    ------
    QueryError
        If they were.
    """
    found = release.mechanism
    if isinstance(found, ThresholdPart):
        why = f"a group was published because its count reached {found.threshold}"
        way_out = "Use released counts of the groups found, .dp.count(by=..., keys=found.index)."
        raise QueryError(f"{what} takes counts that are right on average: {why}. {way_out}")


def selected_ends(
    noisy: np.ndarray, law: Law, scale: float, least: int, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals for the numbers of units n that noisy ones stand for.

    All n >= 1 are in it for which neither ``P(n + Y >= y | n + Y >= T)`` nor
    ``P(n + Y <= y | n + Y >= T)`` is at most ``(1 - level) / 2``, and all from there to y: next to
    T, y may be rare for each n.

    Parameters
    ----------
    noisy
        Noisy numbers y, each T or more.
    law, scale
        The noise Y.
    least
        The threshold T.
    level
        Confidence level.

    Returns
    -------
    low, high : numpy.ndarray
        int64.

    Examples
    --------
    >>> from dpframe.privacy.laws import LAPLACE
    >>> selected_ends(np.array([15, 17, 40]), LAPLACE, 1.0, 15, 0.95)
    (array([ 1,  1, 37]), array([17, 20, 43]))
    """
    y, places = np.unique(noisy, return_inverse=True)
    most = y + law.half_width(scale, level)  # without selection; fewer with it
    tail = (1 - level) / 2

    def too_small(n: np.ndarray) -> np.ndarray:
        return law.at_least(scale, y - n) <= tail * law.at_least(scale, least - n)

    def too_large(n: np.ndarray) -> np.ndarray:
        return law.at_least(scale, y + 1 - n) >= (1 - tail) * law.at_least(scale, least - n)

    low = _first(lambda n: ~too_small(n), np.ones_like(y), y)
    above = _first(too_large, np.ones_like(y), most + 1)
    return low[places], np.maximum(above - 1, y)[places]


def _first(
    holds: Callable[[np.ndarray], np.ndarray], start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Find the first integers at which something holds, as it does for all from there to an end."""
    while (start < end).any():
        middle = (start + end) // 2
        held = holds(middle)
        start, end = np.where(held, start, np.minimum(middle + 1, end)), np.where(held, middle, end)
    return end


_NODES = 1025  # between them, the half-width is as good as linear


class TableNoise(NamedTuple):
    """Where the noise of a table comes from, the blocks drawn together, and a level."""

    mechanism: NoiseRecord
    groups: Groups
    level: float

    def sum(self, loadings: Mapping[str, Value], *, smooth: bool = False) -> NoiseSum:
        """Return a sum of noises, from what that of every block does to it."""
        return NoiseSum(loadings, self.mechanism.scale_by_block, self.groups, smooth=smooth)

    def half_width(self, noise: NoiseSum) -> Value:
        """Return the half-width of a sum."""
        return self.mechanism.distribution.sum_half_width(noise, self.level)


def quotient_ends(
    column: column_parts.ColumnPart, noise: TableNoise, *, sampling: bool = False
) -> Sides:
    """Return the ends of the intervals of quotients, in their units; of times, in seconds.

    Where the noise of `A.T - r B.T` depends on r alone, and for correlations and slopes, they hold
    all r that a test does not reject: those for which that is at most its half-width (Fieller
    1954). Others are those of the error to first order, kept within what is possible. An interval
    always holds the value released.

    Parameters
    ----------
    column
        What is said about the column.
    noise
        Its noise.
    sampling
        Whether rows are a sample, and what is asked is about the population.
    """
    statistic, totals = column.statistic, column.totals
    spread = statistic.spread(totals) if sampling else None
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        match statistic.interval:
            case "test":
                ends = _ends_by_test(statistic, totals, noise, spread)
            case "test by row":
                ends = _ends_by_row(statistic, totals, noise, spread)
            case "first order":
                ends = _ends_to_first_order(statistic, totals, noise)
            case "total" | "none":
                raise TypeError(f"{statistic.name} is no quotient")
            case _:
                assert_never(statistic.interval)
        low, high = (np.where(np.isinf(end), end, statistic.place(end)) for end in ends)
    value, _ = statistic.estimate(totals)
    return np.minimum(low, value), np.maximum(high, value)


def _ends_to_first_order(statistic: Statistic, totals: Totals[str], noise: TableNoise) -> Sides:
    """Return the ends of intervals from the error to first order, in half widths."""
    quotient = statistic.quotient(totals)
    value = quotient.value(totals)
    apart = totals.noise(quotient.apart(value))
    moved = {block: np.asarray(part) / quotient.divisor for block, part in apart.items()}
    width = noise.half_width(noise.sum(moved))
    low, high = (np.clip(value + side * width, *statistic.ends) for side in (-1, 1))
    return statistic.show(low)[0], statistic.show(high)[0]


def _ends_by_test(
    statistic: Statistic, totals: Totals[str], noise: TableNoise, spread: SamplingSpread | None
) -> Sides:
    """Return the ends of all means that are not rejected, in half widths.

    Where all from end to end are rejected, the interval is all of them.
    """
    quotient, (first, last) = statistic.quotient(totals), statistic.ends
    top, bottom = np.broadcast_arrays(totals.weigh(quotient.top), totals.weigh(quotient.bottom))
    nodes = np.linspace(first, last, _NODES)
    moved = noise.sum(totals.noise(quotient.apart(nodes)))
    widths = np.broadcast_to(noise.half_width(moved), nodes.shape)
    deviations = np.broadcast_to(moved.deviation, nodes.shape)

    def holds(mean: np.ndarray) -> np.ndarray:
        width = np.interp(mean, nodes, widths)
        if spread is not None:
            variance, error = spread(1.0, mean, slice(None))
            deviation = np.interp(mean, nodes, deviations)
            width = samples.widen(width, deviation, variance, noise.level, error)
        return np.asarray(np.abs(top - mean * bottom) <= width)

    ends = np.full(top.shape, first), np.full(top.shape, last)
    low_kept, high_kept = map(holds, ends)
    best = np.divide(top, bottom, out=np.full(top.shape, np.inf), where=bottom != 0)
    # the quotient itself is never rejected; elsewhere an end may not be, or every mean is
    inside = (best >= first) & (best <= last)
    kept = np.where(inside, best, np.where(low_kept, first, last))
    all_rejected = ~(inside | low_kept | high_kept)
    low = np.where(low_kept | all_rejected, first, border(holds, ends[0], kept))
    high = np.where(high_kept | all_rejected, last, border(holds, ends[1], kept))
    return low, high


def _ends_by_row(
    statistic: Statistic, totals: Totals[str], noise: TableNoise, spread: SamplingSpread | None
) -> Sides:
    """Return the ends of all quotients that are not rejected, in half widths.

    Where B.T may be 0, no r is far enough away, and the ends are all that is possible. Where even a
    correlation of 1 is rejected, as A.T is that much larger than B.T, it counts as B.T.
    """
    quotient, positive = statistic.tested(totals)
    top, bottom = totals.weigh(quotient.top), np.where(positive, totals.weigh(quotient.bottom), 0)
    of_top, of_bottom = totals.noise(quotient.top), totals.noise(quotient.bottom)

    def error(a: np.ndarray, b: np.ndarray, rows: Rows) -> ErrorOfSum:
        moved = {
            block: a * part_of(of_top, block, rows) - b * part_of(of_bottom, block, rows)
            for block in {**of_top, **of_bottom}
        }
        alone = IndependentSum([(noise.mechanism.distribution, noise.sum(moved))])
        return alone if spread is None else samples.WithSampling(alone, *spread(a, b, rows))

    first, last = statistic.ends
    if last < np.inf:
        most = np.sign(top) * bottom
        distance, side = np.abs(top - most), np.sign(top)
        far = error(np.ones_like(top), side, slice(None)).excess(distance, noise.level, len(top))
        top = np.where((np.abs(top) > bottom) & (far > 0), most, top)
    quotients = Quotients(top, bottom, 0.0, statistic.ends, 1.0, error, by_row=True)
    low, high = quotient_interval(quotients, noise.level)
    # no variance is below 0: there, it may be close to it
    return np.where(positive, low, first), np.where(positive, high, last)


def _ends_of_total(
    values: pd.Series, column: column_parts.ColumnPart, noise: TableNoise, *, sampling: bool
) -> Ends:
    """Return the ends of the intervals of counts or sums."""
    off = rounding(column)
    width = half_width(column.noise, column.deviations, *noise, integer=column.integer)
    if sampling:
        return _sampled_count(values, column, width, noise.level)
    with np.errstate(over="ignore", invalid="ignore"):  # values can be near the largest float
        width = width + off
        if isinstance(width, float) and column.integer and width.is_integer():
            width = int(width)
        if column.times is not None:
            return times_around(values, width)
        numbers = known_numbers(values)
        return numbers - width, numbers + width


def _sampled_count(
    column: pd.Series, count: column_parts.ColumnPart, width: Value, level: float
) -> Ends:
    """Return the ends of intervals of expected counts."""
    values, off = known_numbers(column).astype(np.float64), rounding(count)
    low, high = samples.count_ends((values - off, values + off), width, error_of(count), level)
    if not count.integer:
        return low, high
    whole = (np.clip(end, -_MOST_COUNTED, _MOST_COUNTED) for end in (np.floor(low), np.ceil(high)))
    below, above = (end.astype(np.int64) for end in whole)
    return below, above


_MOST_COUNTED = 2.0**62
_ROUNDED = -2  # blocks from here down stand for rounding to whole numbers


@public_call
def std_error(released: pd.DataFrame) -> pd.DataFrame:
    """Return the standard error of every released cell."""
    certificate = verify(released)
    companion_columns.check_no_intervals_beside(certificate, "std_error")
    errors = certificate.by_release(stack_table(released, certificate), _errors)
    return mark_diagnosis(spread(errors, released, certificate), certificate.releases, "std_error")


def _errors(released: pd.DataFrame, release: Release) -> pd.DataFrame:
    """Return the standard errors of the cells of one release."""
    columns = []
    for at, column in enumerate(release.columns):
        errors = np.where(released.iloc[:, at].isna(), np.nan, error_of(column))
        columns.append(errors if column.times is None else seconds(errors))
    return _like(released, columns, list(released.columns[: len(columns)]))


def intervals_of(
    released: pd.DataFrame,
    certificate: Certificate,
    level: float,
    *,
    simultaneous: bool = False,
    sampling: bool = False,
) -> pd.DataFrame:
    """Return the intervals of a table that was verified; see `interval`."""
    releases = certificate.releases
    for release in releases if sampling else ():
        samples.check_sampled(release, list(release.columns))
    # rows and columns may have been left out since
    cells = sum(one.query.cells * one.query.outputs for one in releases) if simultaneous else 1

    def bars(long: pd.DataFrame, one: Release) -> pd.DataFrame:
        law = one.noise.distribution
        if not one.columns[0].features:
            return quantile_intervals(long, certificate, one, level, simultaneous=simultaneous)
        each = law.level_of_each(level, cells) if simultaneous else level
        return _bars_of(long, one, each, sampling=sampling)

    long = certificate.by_release(stack_table(released, certificate), bars)
    return mark_diagnosis(spread(long, released, certificate, ENDS), releases, "interval")


def _bars_of(
    released: pd.DataFrame, release: Release, level: float, *, sampling: bool
) -> pd.DataFrame:
    """Return the intervals of the cells of one release."""
    mechanism = release.noise
    noise = TableNoise(mechanism, mechanism.drawn_together(release.query.cells), level)
    columns: list[np.ndarray | ExtensionArray] = []
    names: list[str] = []
    for position, column in enumerate(release.columns):
        values = released.iloc[:, position]
        ends: Ends
        if isinstance(mechanism, ThresholdPart):
            ends = _ends_of_selected(values, column, mechanism, level)
        elif column.form.is_total:
            ends = _ends_of_total(values, column, noise, sampling=sampling)
        else:
            ends = quotient_ends(column, noise, sampling=sampling)
            if column.times is not None:
                ends = times_between(values, ends, column.times.origin, column.times.bounds)
        columns += shown_ends(ends, values, column)
        names += [f"{released.columns[position]}{end}" for end in ENDS]
    return _like(released, columns, names)


def _ends_of_selected(
    column: pd.Series, described: column_parts.ColumnPart, found: ThresholdPart, level: float
) -> Ends:
    """Return the ends of the intervals of counts that were published for their size."""
    (scale,), least = found.scales.values(), found.threshold
    law, noisy, off = found.distribution, known_numbers(column), int(rounding(described))
    low, _ = selected_ends(np.maximum(noisy - off, least), law, scale, least, level)
    _, high = selected_ends(np.maximum(noisy + off, least), law, scale, least, level)
    return low, high


@public_call
def covariance(released: pd.DataFrame) -> pd.DataFrame:
    """Return the covariance of the columns within a row."""
    release = check_before(verify(released), "covariance", allowed=ROW_BY_ROW)
    loadings = [column.deviations for column in release.columns]
    n, width = len(released), len(loadings)
    products = np.zeros((n, width, width))
    for i, one in enumerate(loadings):
        for j, other in enumerate(loadings):
            for block in one.keys() & other.keys():
                with np.errstate(over="ignore"):  # no warning may depend on private values
                    products[:, i, j] += np.multiply(one[block], other[block])
    index, labels = released.index, released.columns[:width]
    levels = [index.get_level_values(level).repeat(width) for level in range(index.nlevels)]
    columns = pd.Index(list(labels) * n, tupleize_cols=False)
    rows = pd.MultiIndex.from_arrays([*levels, columns], names=[*index.names, "column"])
    table = pd.DataFrame(products.reshape(n * width, width), index=rows, columns=labels)
    return mark_diagnosis(table, [release], "covariance")


def error_of(column: column_parts.ColumnPart) -> np.ndarray:
    """Return the standard error of a column, one number or one per row."""
    with np.errstate(over="ignore"):  # bounds can be near the largest float
        return norm(column.deviations.values())


def half_width(
    noise: column_parts.NoisePart | None,
    loadings: Mapping[str, float | np.ndarray],
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
    *,
    integer: bool,
) -> float | np.ndarray:
    """Return the half-width of an interval for a column.

    Parameters
    ----------
    noise
        Its noise, if it is a measured block.
    loadings
        What the noise of each block does to it.
    mechanism
        Where the noise comes from.
    groups
        Blocks that are drawn together.
    level
        Confidence level.
    integer
        Whether the column holds whole numbers, in place of multiples of some step.
    """
    law = mechanism.distribution
    if noise is not None:
        return noise.step * law.half_width(noise.scale, level, noise.members)
    measured = {block: part for block, part in loadings.items() if int(block) > _ROUNDED}
    rounded = len(measured) < len(loadings)
    # a whole number is one of a lattice, and the level may lie between two of its points
    smooth = not (rounded and integer)
    total = NoiseSum(measured, mechanism.scale_by_block, groups, smooth=smooth)
    width = law.sum_half_width(total, level)
    if not rounded:
        return float(width) if np.ndim(width) == 0 else width
    if not integer:
        # half a step is at most twice the deviation that rounding to steps adds
        to_steps = sum(part for block, part in loadings.items() if block not in measured)
        return float(np.max(width) + 2 * np.max(to_steps))
    # a whole number is off by a or less where what was rounded is off by less than a + 1/2
    return max(float(np.ceil(np.max(width) - 0.5)), 0.0)


def _like(
    released: pd.DataFrame, columns: Sequence[np.ndarray | ExtensionArray], names: list[Any]
) -> pd.DataFrame:
    """Build a frame of derived columns on the index of a released one, which may repeat a name."""
    frame = pd.DataFrame(dict(enumerate(columns)), index=released.index)
    frame.columns = pd.Index(names, tupleize_cols=False)
    return frame
