"""From released frames to standard errors and intervals. Cannot reach private data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.accuracy import sampling as samples
from dpframe.accuracy.outward import Ends, known_numbers, rounding, shown_ends
from dpframe.accuracy.quotients import ErrorOfSum, Quotients, border, quotient_interval
from dpframe.accuracy.sums import IndependentSum
from dpframe.certificates import column_parts, companion_columns
from dpframe.certificates.certificate import Certificate, Release, check_before
from dpframe.certificates.companion_columns import ENDS, quantile_intervals
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.certificates.json_records import pack, unpack
from dpframe.certificates.mechanism_parts import NoiseRecord, ThresholdPart
from dpframe.certificates.steps import ROW_BY_ROW
from dpframe.certificates.unstacked import spread, stack_table
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import Groups, NoiseSum, norm
from dpframe.public import public_call
from dpframe.queries.timescale import seconds, times_around
from dpframe.strategies.association import Tested, center, parts_of_quotient, read, unit_of
from dpframe.strategies.base import JointMoments
from dpframe.strategies.dispersion import loadings_at, variances
from dpframe.strategies.dispersion import ratio as mean_of


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


_NODES = np.linspace(0, 1, 1025)  # between them, the half-width is as good as linear


def rate_interval(
    ratio: column_parts.RatioPart,
    rows: int,
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
    *,
    sampled: samples.ErrorAt | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals of rates: all rates r that a test does not reject.

    With A the noisy number of rows that count and N that of all, a rate is rejected where `|A - r
    N| > q_r`, with q_r the half-width of the noise of `A - r N` (Fieller 1954). Where every rate
    from 0 to 1 is rejected, the interval is all of them. It always
    holds the rate released.

    Parameters
    ----------
    ratio
        What the rates were read off: `A - N / 2` and N, with their noise.
    rows
        Number of rates.
    mechanism
        Where the noise comes from.
    groups
        Blocks that are drawn together.
    level
        Confidence level.
    sampled
        What sampling adds to the error of `A - r N`, if the rows are a sample; the half-width is
        then that of both, see `widen`.
    """
    centered = np.broadcast_to(unpack(ratio.centered), rows).astype(np.float64)
    total = np.broadcast_to(unpack(ratio.rows), rows).astype(np.float64)
    widths, deviations = _half_widths(ratio, mechanism, groups, level)

    def holds(rate: np.ndarray) -> np.ndarray:
        width = np.interp(rate, _NODES, widths)
        if sampled is not None:
            (variance, error), deviation = sampled(rate), np.interp(rate, _NODES, deviations)
            width = samples.widen(width, deviation, variance, level, error)
        near: np.ndarray = np.abs(centered - (rate - 0.5) * total) <= width
        return near

    ends = np.zeros(rows), np.ones(rows)
    low_kept, high_kept = (holds(end) for end in ends)
    met = np.divide(centered, total, out=np.full(rows, -1.0), where=total != 0) + 0.5
    # the quotient itself is never rejected; elsewhere an end may not be, or every rate is
    inside = (met >= 0) & (met <= 1)
    kept = np.where(inside, met, np.where(low_kept, 0.0, 1.0))
    all_rejected = ~(inside | low_kept | high_kept)
    low = np.where(low_kept | all_rejected, 0.0, border(holds, ends[0], kept))
    high = np.where(high_kept | all_rejected, 1.0, border(holds, ends[1], kept))
    released = mean_of(centered, total, _loadings(ratio), (0, 1)).values
    return np.minimum(low, released), np.maximum(high, released)


def _loadings(ratio: column_parts.RatioPart) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return what the noise of the blocks does to A - N / 2 and to N."""
    return (
        {block: unpack(part) for block, part in ratio.of_centered.items()},
        {block: unpack(part) for block, part in ratio.of_rows.items()},
    )


def _half_widths(
    ratio: column_parts.RatioPart, mechanism: NoiseRecord, groups: Groups, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Half-widths and deviations of the noise of A - r N, at the nodes r."""
    of_centered, of_rows = _loadings(ratio)
    loadings = {
        block: of_centered.get(block, 0.0) - (_NODES - 0.5) * of_rows.get(block, 0.0)
        for block in {**of_centered, **of_rows}
    }
    noise = NoiseSum(loadings, mechanism.scale_by_block, groups)
    width = mechanism.distribution.sum_half_width(noise, level)
    return np.broadcast_to(width, _NODES.shape), np.broadcast_to(noise.deviation, _NODES.shape)


def _sampled_mean(
    mean: column_parts.MeanPart, alone: Ends, mechanism: NoiseRecord, groups: Groups, level: float
) -> Ends:
    """Return the ends of intervals of means of a population, which hold those of noise alone."""
    low, high = alone
    first, last = mean.span
    width = last - first
    if mean.moments is None or width == 0:
        return low, high
    # in widths of the bounds it is a rate
    ratio = column_parts.RatioPart(
        pack(np.divide(unpack(mean.ratio.centered), width)),
        mean.ratio.rows,
        {block: pack(unpack(part) / width) for block, part in mean.ratio.of_centered.items()},
        mean.ratio.of_rows,
    )
    sampled = samples.error_of_mean(mean.moments)
    ends = rate_interval(ratio, len(low), mechanism, groups, level, sampled=sampled)
    below, above = (first + width * end for end in ends)
    return np.minimum(np.asarray(low), below), np.maximum(np.asarray(high), above)


def _sampled_count(
    column: pd.Series,
    count: column_parts.CountPart,
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
) -> Ends:
    """Return the ends of intervals of expected counts."""
    noise = count.noise, count.deviations, mechanism, groups, level
    width, off = half_width(*noise, integer=count.integer), rounding(count)
    values = known_numbers(column).astype(np.float64)
    low, high = samples.count_ends((values - off, values + off), width, error_of(count), level)
    if not count.integer:
        return low, high
    most = 2.0**62
    whole = (np.clip(end, -most, most) for end in (np.floor(low), np.ceil(high)))
    below, above = (end.astype(np.int64) for end in whole)
    return below, above


def dispersion_interval(
    moments: column_parts.MomentsPart,
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
    *,
    root: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals of variances, or the roots of these ends.

    They are those of the first-order error, kept between 0 and the largest variance there can be.

    Parameters
    ----------
    moments
        What the variances were read off.
    mechanism
        Where the noise comes from.
    groups
        Blocks that are drawn together.
    level
        Confidence level.
    root
        Whether standard deviations are asked for.
    """
    numbers = moments.numbers
    count, mean, value = variances(numbers)
    of = numbers.of_rows, numbers.of_first, numbers.of_rest
    parts = loadings_at(mean, mean**2 - value, of).items()
    loadings = {str(block): np.asarray(part) / count for block, part in parts}
    noise = NoiseSum(loadings, mechanism.scale_by_block, groups)
    width = mechanism.distribution.sum_half_width(noise, level)
    ends = np.clip(value - width, 0, 1), np.clip(value + width, 0, 1)
    low, high = (np.sqrt(end) if root else end * moments.half_width for end in ends)
    return low * moments.half_width, high * moments.half_width


def association_interval(
    column: column_parts.AssociationPart,
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
    *,
    sampling: bool = False,
) -> Ends:
    """Return the ends of the intervals of covariances, correlations or slopes.

    Those of covariances are those of the first-order error, for the noise alone; the others are all
    that a test does not reject, see `fieller_interval`.

    Parameters
    ----------
    column
        What is said about them.
    mechanism
        Where the noise comes from.
    groups
        Blocks that are drawn together.
    level
        Confidence level.
    sampling
        Whether rows are a sample, and what is asked is about the population.
    """
    joint = column.joint.numbers
    value, loadings = read(column.measure, center(joint))
    unit = unit_of(column.measure, joint.half_widths)
    if column.measure == "covariance":
        noise = _sum_of(loadings, mechanism, groups)
        width = np.asarray(mechanism.distribution.sum_half_width(noise, level))
        first, last = column.span
        return np.maximum((value - width) * unit, first), np.minimum((value + width) * unit, last)
    low, high = fieller_interval(column.measure, joint, mechanism, groups, level, sampling=sampling)
    ends = np.minimum(low, value), np.maximum(high, value)
    # infinite ends stay so where y has one value alone, and the unit is 0
    low, high = (np.where(np.isinf(end), end, np.nan_to_num(end) * unit) for end in ends)
    return low, high


def fieller_interval(
    kind: Tested,
    joint: JointMoments,
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
    *,
    sampling: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals of correlations or slopes: all that a test does not reject.

    With N rows, C the covariance and D the product of the standard deviations, or the variance of
    x, a value r is rejected where `|N C - r N D|` is more than the half-width of its noise (Fieller
    1954). Where D may be 0, no r is far enough away, and the ends are all that is possible. Where
    even a correlation of 1 is rejected, as C is that much larger than D, C counts as D.

    Parameters
    ----------
    kind
        What is asked; slopes are in half widths.
    joint
        What was measured.
    mechanism
        Where the noise comes from.
    groups
        Blocks that are drawn together.
    level
        Confidence level.
    sampling
        Whether the half-width is that of noise and sample, the latter as it would be were r true.
    """
    top, bottom, of_top, of_bottom = parts_of_quotient(kind, joint)
    sampled = samples.error_of_association(kind, joint) if sampling else None

    def noise(a: np.ndarray, b: np.ndarray, rows: Rows) -> ErrorOfSum:
        moved = {k: a * part[rows] - b * of_bottom[k][rows] for k, part in of_top.items()}
        alone = IndependentSum([(mechanism.distribution, _sum_of(moved, mechanism, groups))])
        return alone if sampled is None else samples.WithSampling(alone, *sampled(a, b, rows))

    span = (-1.0, 1.0) if kind == "correlation" else (-np.inf, np.inf)
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        if kind == "correlation":
            most = np.sign(top) * bottom
            far = noise(np.ones_like(top), np.sign(top), slice(None)).excess(
                np.abs(top - most), level, len(top)
            )
            top = np.where((np.abs(top) > bottom) & (far > 0), most, top)
        quotients = Quotients(top, bottom, 0.0, span, 1.0, noise, by_row=True)
        low, high = quotient_interval(quotients, level)
    positive = bottom > 0  # no variance is below 0: there, it may be close to it
    return np.where(positive, low, span[0]), np.where(positive, high, span[1])


def _sum_of(loadings: Mapping[int, np.ndarray], mechanism: NoiseRecord, groups: Groups) -> NoiseSum:
    by_block = {str(block): part for block, part in loadings.items()}
    return NoiseSum(by_block, mechanism.scale_by_block, groups)


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
        if isinstance(one.columns[0], column_parts.QuantilePart):
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
    noise = mechanism, mechanism.drawn_together(release.query.cells), level
    columns: list[np.ndarray | ExtensionArray] = []
    names: list[str] = []
    for position, column in enumerate(release.columns):
        values = released.iloc[:, position]
        ends: Ends
        if isinstance(mechanism, ThresholdPart):
            ends = _ends_of_selected(values, column, mechanism, level)
        elif isinstance(column, column_parts.RatePart):
            rows = np.asarray(unpack(column.ratio.rows))
            sampled = samples.error_of_rate(rows) if sampling else None
            ends = rate_interval(column.ratio, len(values), *noise, sampled=sampled)
        elif isinstance(column, column_parts.DispersionPart):
            ends = dispersion_interval(column.moments, *noise, root=column.root)
        elif sampling and isinstance(column, column_parts.CountPart):
            ends = _sampled_count(values, column, *noise)
        elif isinstance(column, column_parts.AssociationPart):
            ends = association_interval(column, *noise, sampling=sampling)
        else:
            ends = _bars(values, column, *noise)
        if sampling and isinstance(column, column_parts.MeanPart):
            ends = _sampled_mean(column, ends, *noise)
        columns += shown_ends(ends, values, column)
        names += [f"{released.columns[position]}{end}" for end in ENDS]
    return _like(released, columns, names)


def _ends_of_selected(
    column: pd.Series, described: column_parts.ReleasedColumn, found: ThresholdPart, level: float
) -> Ends:
    """Return the ends of the intervals of counts that were published for their size."""
    (scale,), least = found.scales.values(), found.threshold
    law, noisy, off = found.distribution, known_numbers(column), int(rounding(described))
    low, _ = selected_ends(np.maximum(noisy - off, least), law, scale, least, level)
    _, high = selected_ends(np.maximum(noisy + off, least), law, scale, least, level)
    return low, high


def _bars(
    column: pd.Series,
    described: column_parts.ReleasedColumn,
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
) -> Ends:
    """Return the ends of the intervals of one released column."""
    with np.errstate(over="ignore", invalid="ignore"):  # values can be near the largest float
        total = described if isinstance(described, column_parts.TotalPart) else None
        noise, whole = (total.noise, total.integer) if total else (None, False)
        width = half_width(noise, described.deviations, mechanism, groups, level, integer=whole)
        width = width + rounding(described)
        if isinstance(width, float) and whole and width.is_integer():
            width = int(width)
        if described.times is not None:
            span = None if total else described.times.bounds
            return times_around(column, width, span)
        values = known_numbers(column)
        low, high = values - width, values + width
    if isinstance(described, column_parts.QuotientPart):
        low, high = np.clip(low, *described.span), np.clip(high, *described.span)
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
