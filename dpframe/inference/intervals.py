"""From released frames to standard errors and intervals. Cannot reach private data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, assert_never

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.cells.verify import Shown, check_parts, look
from dpframe.certificates import column_parts
from dpframe.certificates.certificate import Release, has_rows
from dpframe.certificates.definitions import IntervalDefinition, QuantileDefinition
from dpframe.certificates.diagnosis import NOTE, Noted, mark_diagnosis
from dpframe.certificates.mechanism_parts import NoiseRecord, ThresholdPart, TreePart
from dpframe.errors import QueryError
from dpframe.inference import sampling as samples
from dpframe.inference.outward import Ends, known_numbers, outward
from dpframe.inference.quotients import ErrorOfSum, Quotients, border, part_of, quotient_interval
from dpframe.inference.sums import IndependentSum
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import Groups, NoiseSum, Value, norm
from dpframe.public import public_call
from dpframe.queries.timescale import seconds, times_around, times_between
from dpframe.statistics.form import SamplingSpread, Statistic, Totals

ENDS = ("_low", "_high")

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
    width = half_width(column.noise, column.deviations, *noise, integer=column.integer)
    if sampling:
        return _sampled_count(values, column, width, noise.level)
    with np.errstate(over="ignore", invalid="ignore"):  # values can be near the largest float
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
    values = known_numbers(column).astype(np.float64)
    low, high = samples.count_ends((values, values), width, error_of(count), level)
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
        if not column.features and isinstance(release.mechanism, TreePart):
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
    if column.times is None and not column.form.is_total:
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
            if not one.columns[0].features:
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
        noise = TableNoise(mechanism, groups, level)
        values = released.iloc[:, position]
        ends: Ends
        if isinstance(mechanism, ThresholdPart):
            ends = _ends_of_selected(values, mechanism, level)
        elif column.form.is_total:
            ends = _ends_of_total(values, column, noise, sampling=sampling)
        else:
            ends = quotient_ends(column, noise, sampling=sampling)
            if column.times is not None:
                ends = times_between(values, ends, column.times.origin, column.times.bounds)
        columns += ends
        names += [f"{released.columns[position]}{end}" for end in ENDS]
    return _like(released, columns, names)


def _ends_of_selected(column: pd.Series, found: ThresholdPart, level: float) -> Ends:
    """Return the ends of the intervals of counts that were published for their size."""
    (scale,), least = found.scales.values(), found.threshold
    noisy = np.maximum(known_numbers(column), least)  # rounded ones may be below
    return selected_ends(noisy, found.distribution, scale, least, level)


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
