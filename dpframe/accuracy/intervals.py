"""From released frames to standard errors and intervals. Cannot reach private data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.accuracy import sampling as samples
from dpframe.accuracy.outward import Ends, known_numbers, outward
from dpframe.accuracy.quotients import ErrorOfSum, Quotients, border, quotient_interval
from dpframe.cells.needs import check_parts
from dpframe.cells.verify import Shown, look
from dpframe.certificates import column_parts
from dpframe.certificates.certificate import Release, has_rows
from dpframe.certificates.definitions import IntervalDefinition, QuantileDefinition
from dpframe.certificates.diagnosis import NOTE, Noted, mark_diagnosis
from dpframe.certificates.json_records import pack, unpack
from dpframe.certificates.mechanism_parts import NoiseRecord, ThresholdPart, TreePart
from dpframe.errors import QueryError
from dpframe.privacy.accuracy import Rows
from dpframe.privacy.independent_sum import IndependentSum
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import Groups, NoiseSum, norm
from dpframe.public import public_call
from dpframe.queries.timescale import seconds, times_around
from dpframe.strategies.association import Tested, center, parts_of_quotient, read, unit_of
from dpframe.strategies.base import JointMoments
from dpframe.strategies.dispersion import loadings_at, variances
from dpframe.strategies.dispersion import ratio as mean_of

ENDS = ("_low", "_high")


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
    width = half_width(*noise, integer=count.integer)
    values = known_numbers(column).astype(np.float64)
    low, high = samples.count_ends((values, values), width, error_of(count), level)
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
    shown = look(released)
    check_no_intervals_beside(shown, "std_error")
    check_parts(shown, "std_error")
    errors = shown.certificate.by_release(shown.frame, _errors)
    return mark_diagnosis(shown.pick(errors, shown.labels), shown.certificate.releases, "std_error")


def check_no_intervals_beside(shown: Shown, what: str) -> None:
    """Refuse what asks for errors of quantiles that were read off: they have intervals alone.

    Raises
    ------
    QueryError
        If they were, or there are no numbers.
    """
    shown.certificate.require_numbers()
    for release in shown.certificate.releases:
        column = release.columns[0]
        if isinstance(column, column_parts.QuantilePart) and isinstance(
            release.mechanism, TreePart
        ):
            ends = " to ".join(repr(f"{column.name}{end}") for end in ENDS)
            rule = f"{what} is not for quantiles that were read off a distribution"
            why = f"they have no standard error, and their intervals are beside them, {ends}"
            raise QueryError(f"{rule}: {why}.", label=column.name)


def _errors(released: pd.DataFrame, release: Release) -> pd.DataFrame:
    """Return the standard errors of the cells of one release."""
    columns = []
    for column in release.columns:
        errors = np.broadcast_to(error_of(column), len(released))
        columns.append(errors if column.times is None else seconds(errors))
    return _like(released, columns, list(released.columns[: len(columns)]))


def intervals_of(
    shown: Shown,
    level: float,
    *,
    simultaneous: bool = False,
    sampling: bool = False,
    chosen: str | None = None,
) -> pd.DataFrame:
    """Return the intervals of the cells that a table shows; see `interval`."""
    flags = {"simultaneous": simultaneous, "sampling": sampling}
    ends = all_intervals(shown, level, **flags, chosen=cells_chosen(shown, chosen))
    labels = [label for label in shown.labels for _ in ENDS]
    for at, label in enumerate(labels):
        unit = shown.unit(label)
        if unit:
            ends.isetitem(at, _rounded_outward(shown, ends.iloc[:, at], label, unit, at % 2))
    made = mark_diagnosis(shown.pick(ends, labels), shown.certificate.releases, "interval")
    few = [] if simultaneous or chosen == "keys" else _few(shown)
    if few:
        made.attrs[NOTE] = _note(level, *few[0])
        made.__class__ = Noted
    return made


def _rounded_outward(shown: Shown, ends: pd.Series, label: str, unit: float, up: int) -> Any:
    """Round ends as the cells are, within what is possible."""
    column = shown.certificate.releases[0].columns[shown.labels.index(label)]
    made = outward(ends.to_numpy() if ends.dtype.kind in "if" else ends, unit, up=bool(up))
    if column.times is None and not isinstance(column, column_parts.TotalPart):
        return np.clip(made, *column.span)
    return made


def cells_chosen(shown: Shown, chosen: str | None) -> dict[str, int | None]:
    """Return by column how many cells are shown, if they were chosen in a way that is not known."""
    known = {}
    for label in shown.labels:
        cells, released = shown.counts(label)
        whole = chosen == "keys" or cells == released or not cells
        known[label] = None if whole else cells
    return known


def _few(shown: Shown) -> list[tuple[int, int]]:
    counts = [shown.counts(label) for label in shown.labels]
    return [(cells, released) for cells, released in counts if 0 < cells < released]


def _note(level: float, cells: int, released: int) -> str:
    """Say at which level the intervals of chosen cells are."""
    own = level_of_chosen(level, cells, released)
    return (
        f"Level {own:.6g} for {cells:,} of {released:,} cells, so that {100 * level:g} % of those "
        'shown hold however they were chosen; chosen by keys: interval(chosen="keys").'
    )


def level_of_chosen(level: float, cells: int, released: int) -> float:
    """Return the level of each of some intervals, of which a part `level` is to hold on average.

    It is `1 - (1 - level) R / m` for R of m cells, however they were chosen (Benjamini and
    Yekutieli 2005).

    Examples
    --------
    >>> round(level_of_chosen(0.95, 3, 12), 4)
    0.9875
    """
    return 1 - (1 - level) * cells / released


def all_intervals(
    shown: Shown,
    level: float,
    *,
    simultaneous: bool = False,
    sampling: bool = False,
    chosen: Mapping[str, int | None] | None = None,
) -> pd.DataFrame:
    """Return the intervals of all released rows; `chosen` is as `cells_chosen` returns it."""
    certificate, opened = shown.certificate, shown.opened
    certificate.require_numbers()
    for release in certificate.releases if sampling else ():
        samples.check_sampled(release, list(release.columns))
    # rows and columns may have been left out since
    cells = sum(one.query.cells * one.query.outputs for one in certificate.releases)

    def each(label: str, law: Law) -> float:
        if simultaneous:
            return law.level_of_each(level, cells)
        few = None if chosen is None else chosen[label]
        return level if few is None else level_of_chosen(level, few, opened.cells_of(label))

    def bars(part: Shown, cells: pd.DataFrame) -> pd.DataFrame:
        def of_release(long: pd.DataFrame, one: Release) -> pd.DataFrame:
            if isinstance(one.columns[0], column_parts.QuantilePart):
                return _quantile_intervals(shown, one, level, simultaneous=simultaneous)
            levels = [each(label, one.noise.distribution) for label in part.labels]
            return _bars_of(long, one, levels, sampling=sampling)

        return part.certificate.by_release(cells, of_release)

    known = _published_intervals(shown, (level, simultaneous, sampling))
    published = opened.table.published
    units = {} if published is None else published.units
    if known or any(units.values()):
        return _intervals_of_published(shown, known, units, bars)
    check_parts(shown, "interval")
    return bars(shown, shown.frame)


EndsByColumn: TypeAlias = Mapping[str, pd.DataFrame]


def _intervals_of_published(
    shown: Shown,
    known: EndsByColumn,
    units: Mapping[str, float],
    bars: Callable[[Shown, pd.DataFrame], pd.DataFrame],
) -> pd.DataFrame:
    """Return those that were published, and others from cells that may have been rounded."""
    rest = [label for label in shown.labels if label not in known]
    found = dict(known)
    if rest:
        some = replace(shown, seen={label: shown.seen[label] for label in rest})
        check_parts(some, "interval")
        low, high = (bars(some, _moved(some, units, sign)) for sign in (-1, 1))
        for at, label in enumerate(rest):
            ends = [low.iloc[:, 2 * at], high.iloc[:, 2 * at + 1]]
            found[label] = pd.concat(ends, axis=1)
    return pd.concat([found[label] for label in shown.labels], axis=1)


def _moved(shown: Shown, units: Mapping[str, float], sign: int) -> pd.DataFrame:
    """Return cells by half a unit lower or higher: as far as they may have been rounded."""
    frame = shown.frame.copy()
    for at, label in enumerate(shown.labels):
        half: Any = units.get(label, 0.0) / 2
        kind = frame.iloc[:, at].dtype.kind
        half = math.floor(half) if kind == "i" else half
        half = pd.Timedelta(int(half), "us") if kind in "mM" else half
        frame.isetitem(at, (frame.iloc[:, at] + sign * half).array)
    return frame


def _published_intervals(shown: Shown, asked: tuple[float, bool, bool]) -> EndsByColumn:
    """Return the intervals of means that a published table has, where it left their parts out."""
    found = {}
    for label, column in zip(shown.labels, shown.certificate.releases[0].columns, strict=True):
        if has_rows(column):
            continue
        ends = {
            one.end: place
            for place, one in shown.computed.items()
            if isinstance(one, IntervalDefinition)
            and one.column == column.name
            and (one.level, one.simultaneous, one.sampling) == asked
        }
        if len(ends) == len(ENDS):
            frame = shown.opened.frame_of([ends["low"], ends["high"]])
            names = [f"{shown.opened.shown_label(label)}{end}" for end in ENDS]
            found[label] = frame.set_axis(names, axis=1)
    return found


def _quantile_intervals(
    shown: Shown, release: Release, level: float, *, simultaneous: bool
) -> pd.DataFrame:
    """Return the ends of the intervals of quantiles, which stand beside them since they were read.

    Raises
    ------
    QueryError
        If they are of another level, or were left out.
    """
    _ = release.noise  # quantiles that were selected have none
    ends = {
        one.end: (label, one)
        for label, one in shown.computed.items()
        if isinstance(one, QuantileDefinition)
    }
    if len(ends) < len(ENDS):
        raise QueryError("the intervals of these quantiles were left out: call it on those before.")
    read = ends["low"][1]
    if level != read.level or (simultaneous and not read.simultaneous):
        at_once = ", simultaneous=True" if simultaneous else ""
        rule = f"must be that of these intervals, {read.level:g}"
        way_out = f"Or read them off the release, .dp.quantile(q, level={level:g}{at_once})."
        raise QueryError.about("level", rule, level, way_out)
    found = shown.opened.frame_of([ends["low"][0], ends["high"][0]]).iloc[release.places]
    return found.set_axis([f"{shown.frame.columns[0]}{end}" for end in ENDS], axis=1)


def _bars_of(
    released: pd.DataFrame, release: Release, levels: Sequence[float], *, sampling: bool
) -> pd.DataFrame:
    """Return the intervals of the cells of one release, by column at a level."""
    mechanism = release.noise
    groups = mechanism.drawn_together(release.query.cells)
    columns: list[np.ndarray | ExtensionArray] = []
    names: list[str] = []
    for position, (column, level) in enumerate(zip(release.columns, levels, strict=True)):
        noise = mechanism, groups, level
        values = released.iloc[:, position]
        ends: Ends
        if isinstance(mechanism, ThresholdPart):
            ends = _ends_of_selected(values, mechanism, level)
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
        columns += ends
        names += [f"{released.columns[position]}{end}" for end in ENDS]
    return _like(released, columns, names)


def _ends_of_selected(column: pd.Series, found: ThresholdPart, level: float) -> Ends:
    """Return the ends of the intervals of counts that were published for their size."""
    (scale,), least = found.scales.values(), found.threshold
    noisy = np.maximum(known_numbers(column), least)  # rounded ones may be below
    return selected_ends(noisy, found.distribution, scale, least, level)


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
    shown = look(released)
    check_no_intervals_beside(shown, "covariance")
    release = shown.certificate.release
    check_parts(shown, "covariance")
    loadings = [column.deviations for column in release.columns]
    n, width = shown.opened.rows, len(loadings)
    products = np.zeros((n, width, width))
    for i, one in enumerate(loadings):
        for j, other in enumerate(loadings):
            for block in one.keys() & other.keys():
                with np.errstate(over="ignore"):  # no warning may depend on private values
                    products[:, i, j] += np.multiply(one[block], other[block])
    index, labels = shown.index, shown.frame.columns
    products = products[shown.rows]
    levels = [index.get_level_values(level).repeat(width) for level in range(index.nlevels)]
    columns = pd.Index(list(labels) * len(index), tupleize_cols=False)
    rows = pd.MultiIndex.from_arrays([*levels, columns], names=[*index.names, "column"])
    table = pd.DataFrame(products.reshape(-1, width), index=rows, columns=labels)
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
