"""From released frames to standard errors and intervals. Cannot reach private data."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, TypeAlias, assert_never

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.cells.rounding import outward
from dpframe.cells.verify import Shown, check_parts, look
from dpframe.certificates import column_parts
from dpframe.certificates.certificate import Release, has_rows
from dpframe.certificates.definitions import CutPart, IntervalDefinition, QuantileDefinition
from dpframe.certificates.diagnosis import NOTE, Noted, mark_diagnosis
from dpframe.certificates.mechanism_parts import NoiseRecord, ThresholdPart, TreePart
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.inference import joint_errors as samples
from dpframe.inference.quotients import (
    ErrorOfSum,
    Quotients,
    StraightTest,
    part_of,
    quotient_interval,
    span_of_signs,
)
from dpframe.inference.selection import (
    ChosenCells,
    OwnNoise,
    Sides,
    choices_of,
    chosen_ends,
    level_of_chosen,
)
from dpframe.inference.sums import Ends, IndependentSum, known_numbers
from dpframe.privacy.half_widths import Rows, narrow
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import BlockGroups, Groups, NoiseSum, Value, norm
from dpframe.public import public_call
from dpframe.queries.edges import seconds, times_around, times_between
from dpframe.statistics.form import SamplingSpread, Statistic, Totals

ENDS = ("_low", "_high")


def check_not_selected(release: Release, call: str) -> None:
    """Refuse what takes errors for unbiased, where groups were published for their counts."""
    mechanism = release.mechanism
    if isinstance(mechanism, ThresholdPart):
        reason = f"a group was published because its count reached {mechanism.threshold:g}"
        way_out = "Use released counts of the groups found, .dp.count(by=..., keys=found.index)."
        raise QueryError(f"{call} takes counts that are right on average: {reason}. {way_out}")


_DIGITS_ALIKE = 9  # of noise, which solvers of equations find to about 12
_NODES = 1025  # between them, the half-width is as good as linear
_KNOWN_AT = 0.95  # level at which a value must be known to be shown
_FARTHEST = 4.5  # deviations that noise passes with chance .05 at most (Chebyshev), 20^(1/2)


@frozen(eq=False)
class TableNoise:
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
    """
    statistic, totals = column.statistic, column.totals
    spread = statistic.spread(totals) if sampling else None
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        match statistic.interval:
            case "test":
                ends = _ends_by_tests(statistic, totals, noise, sampling=sampling)
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
    return np.fmin(low, value), np.fmax(high, value)  # missing where nothing is known


@frozen(eq=False)
class SharedNoise(TableNoise):
    """The noise of tables of so many cells that were measured together: many are alike in it."""

    groups: BlockGroups
    cells: int
    widths: dict[Hashable, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, release: Release, other: "SharedNoise | None") -> "SharedNoise":
        """Return the noise of a table, by which its quotients are known: another, if it is that."""
        mechanism, cells = release.noise, release.query.cells
        if other is not None and other.mechanism is mechanism and other.cells == cells:
            return other
        groups = BlockGroups(mechanism.drawn_together(cells), mechanism.scale_by_block)
        return cls(mechanism, groups, _KNOWN_AT, cells)

    def half_width(self, noise: NoiseSum) -> Value:
        """Return the half-width of a sum, found once for all whose blocks are alike."""
        alike = tuple(
            (self.groups.kind_of(block), noise.scales.get(block), np.asarray(part).tobytes())
            for block, part in noise.loadings.items()
        )
        if alike not in self.widths:
            self.widths[alike] = super().half_width(noise)
        return self.widths[alike]


def unknown_cells(column: column_parts.ColumnPart, noise: SharedNoise) -> np.ndarray:
    """Tell which quotients nothing is known of: their 95 % interval is all that is possible."""
    statistic, totals = column.statistic, column.totals
    first, last = column.span
    if first == last:  # by what is declared
        return np.zeros(1, bool)
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        if statistic.interval != "test":
            near = _FARTHEST * error_of(column) >= (last - first) / 2
            if np.isfinite(last - first) and not near.any():
                return np.zeros(1, bool)
            low, high = quotient_ends(column, noise)
            return np.asarray((low <= first) & (high >= last))
        unknown = np.empty(np.shape(next(iter(totals.values.values()))), bool)
        for rows, part in _with_equal_noise(totals):
            unknown[rows] = _unknown_by_test(statistic, part, noise)
        return unknown


def _unknown_by_test(statistic: Statistic, totals: Totals[str], noise: TableNoise) -> np.ndarray:
    """Tell the same of means and rates whose noise is the same in all rows."""
    quotient, ends = statistic.quotient(totals), np.array(statistic.ends)
    top, rows = totals.weigh(quotient.top), totals.weigh(quotient.bottom)
    moved = noise.sum(totals.noise(quotient.apart(ends)))
    # distances from both ends add up to 2 N at least
    if (rows > _FARTHEST * np.max(moved.deviation)).all():
        return np.zeros(1, bool)
    widths = dict(zip(ends, np.broadcast_to(noise.half_width(moved), 2), strict=True))

    def excess(total: np.ndarray, end: float) -> np.ndarray:
        return np.asarray(np.abs(total - end * rows) - widths[end])

    _, low, high = _test_ends(top, rows, excess, statistic.ends)
    value = quotient.value(totals)
    return np.asarray((low | (value <= ends[0])) & (high | (value >= ends[1])))


def _with_equal_noise(totals: Totals[str]) -> list[tuple[np.ndarray | slice, Totals[str]]]:
    """Part rows whose noise differs; a single part, all of them, where it does not."""
    loadings = [loading for blocks in totals.loadings.values() for loading in blocks.values()]
    if all(np.ndim(loading) == 0 for loading in loadings):
        return [(slice(None), totals)]
    table = np.array(np.broadcast_arrays(*loadings)).T
    alike = np.round(table / (np.abs(table).max() or 1), _DIGITS_ALIKE)
    _, firsts, kinds = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    parts: list[tuple[np.ndarray | slice, Totals[str]]] = []
    count = len(table)
    for kind, first in enumerate(firsts.tolist()):
        rows = np.flatnonzero(kinds.ravel() == kind)
        moved = {
            name: {block: np.broadcast_to(part, count)[first] for block, part in blocks.items()}
            for name, blocks in totals.loadings.items()
        }
        values = {name: numbers[rows] for name, numbers in totals.values.items()}
        parts.append((rows, Totals(values, moved)))
    return parts


def _test_ends(
    top: np.ndarray,
    bottom: np.ndarray,
    excess: Callable[[np.ndarray, Any], np.ndarray],
    ends: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A.T, the largest or least for B.T where it is beyond, and which ends are kept.

    Where even no rows are rejected, both are.
    """
    low, high = (excess(top, end) <= 0 for end in ends)
    beyond = ~low & ~high & (np.abs(top) > bottom)
    top = np.where(beyond, np.sign(top) * np.maximum(bottom, 0), top)
    low, high = ((excess(top, end) <= 0) | (beyond & (bottom <= 0)) for end in ends)
    return top, low, high


def _ends_to_first_order(statistic: Statistic, totals: Totals[str], noise: TableNoise) -> Sides:
    """Return the ends of intervals from the error to first order, in half widths."""
    quotient = statistic.quotient(totals)
    value = quotient.value(totals)
    apart = totals.noise(quotient.apart(value))
    moved = {block: np.asarray(part) / quotient.divisor for block, part in apart.items()}
    width = noise.half_width(noise.sum(moved))
    low, high = (np.clip(value + side * width, *statistic.ends) for side in (-1, 1))
    return statistic.show(low)[0], statistic.show(high)[0]


def _ends_by_tests(
    statistic: Statistic, totals: Totals[str], noise: TableNoise, *, sampling: bool
) -> Sides:
    """Return the ends of all means that are not rejected, for rows of equal noise together."""
    low, high = np.empty((2, *np.shape(next(iter(totals.values.values())))))
    for rows, part in _with_equal_noise(totals):
        spread = statistic.spread(part) if sampling else None
        low[rows], high[rows] = _ends_by_test(statistic, part, noise, spread)
    return low, high


def _ends_by_test(
    statistic: Statistic, totals: Totals[str], noise: TableNoise, spread: SamplingSpread | None
) -> Sides:
    """Return the ends of all means that are not rejected, in half widths.

    Where even the nearest end is rejected, as A.T is that much larger than B.T, it counts as that.
    """
    quotient, (first, last) = statistic.quotient(totals), statistic.ends
    top, bottom = np.broadcast_arrays(totals.weigh(quotient.top), totals.weigh(quotient.bottom))
    nodes = np.linspace(first, last, _NODES)
    moved = noise.sum(totals.noise(quotient.apart(nodes)))
    widths = np.broadcast_to(noise.half_width(moved), nodes.shape)
    deviations = np.broadcast_to(moved.deviation, nodes.shape)

    def excess(total: np.ndarray, mean: np.ndarray) -> np.ndarray:
        width = np.interp(mean, nodes, widths)
        if spread is not None:
            variance, error = spread(1.0, mean, slice(None))
            deviation = np.interp(mean, nodes, deviations)
            width = samples.widen(width, deviation, variance, noise.level, error)
        return np.asarray(np.abs(total - mean * bottom) - width)

    top, low_kept, high_kept = _test_ends(top, bottom, excess, (first, last))
    best = np.divide(top, bottom, out=np.full(top.shape, np.inf), where=bottom != 0)
    # the quotient itself is never rejected; elsewhere one end is not
    inside = (best >= first) & (best <= last)
    kept = np.where(inside, best, np.where(low_kept, first, last))
    low, high = np.full(top.shape, float(first)), np.full(top.shape, float(last))
    if spread is None:
        below, above = np.flatnonzero(~low_kept), np.flatnonzero(~high_kept)
        low[below] = StraightTest(top[below], bottom[below], nodes, widths).border(kept[below], -1)
        high[above] = StraightTest(top[above], bottom[above], nodes, widths).border(kept[above], 1)
        return low, high
    low, high = (narrow(lambda mean, _: excess(top, mean), end, kept) for end in (low, high))
    return np.where(low_kept, first, low), np.where(high_kept, last, high)


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
    width = half_width(
        column.noise,
        column.deviations,
        noise.mechanism,
        noise.groups,
        noise.level,
        integer=column.integer,
    )
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
    values = known_numbers(column).astype(np.float64)
    low, high = samples.count_ends((values, values), width, error_of(count), level)
    if not count.integer:
        return low, high
    ends = np.clip([np.floor(low), np.ceil(high)], -_MOST_COUNTED, _MOST_COUNTED)
    below, above = ends.astype(np.int64)
    return below, above


_MOST_COUNTED = 2.0**62  # ends of counts are integers of 64 bits
_ROUNDED = -2  # blocks from here down stand for rounding to whole numbers


@public_call
def std_error(released: pd.DataFrame) -> pd.DataFrame:
    """Return the standard error of every released cell."""
    shown = look(released)
    check_no_intervals_beside(shown, "std_error")
    check_parts(shown, "std_error")
    errors = shown.certificate.by_release(shown.frame, _errors)
    return mark_diagnosis(shown.pick(errors, shown.labels), shown.certificate.releases, "std_error")


def check_no_intervals_beside(shown: Shown, call: str) -> None:
    """Refuse what asks for errors of quantiles that were read off: they have intervals alone."""
    shown.certificate.require_numbers()
    for release in shown.certificate.releases:
        column = release.columns[0]
        if not column.features and isinstance(release.mechanism, TreePart):
            ends = " to ".join(repr(f"{column.name}{end}") for end in ENDS)
            rule = f"{call} is not for quantiles that were read off a distribution"
            reason = f"they have no standard error, and their intervals are beside them, {ends}"
            raise QueryError(f"{rule}: {reason}.", label=column.name)


def _errors(released: pd.DataFrame, release: Release) -> pd.DataFrame:
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
    choices = None if simultaneous else choices_of(shown, chosen, sampling=sampling)
    ends = all_intervals(shown, level, **flags, choices=choices)
    labels = [label for label in shown.labels for _ in ENDS]
    for at, label in enumerate(labels):
        unit = shown.unit(label)
        if unit:
            ends.isetitem(at, _rounded_outward(shown, ends.iloc[:, at], label, unit, at % 2))
    intervals = mark_diagnosis(shown.pick(ends, labels), shown.certificate.releases, "interval")
    intervals.attrs[NOTE] = _note(shown, choices, level)
    intervals.__class__ = Noted
    return intervals


def _rounded_outward(shown: Shown, ends: pd.Series, label: str, unit: float, up: int) -> Any:
    """Round ends as the cells are, within what is possible."""
    column = shown.certificate.releases[0].columns[shown.labels.index(label)]
    rounded = outward(ends.to_numpy() if ends.dtype.kind in "if" else ends, unit, up=bool(up))
    if column.times is None and not column.form.is_total:
        return np.clip(rounded, *column.span)
    return rounded


def _note(shown: Shown, choices: Mapping[str, ChosenCells] | None, level: float) -> str:
    """Say in a line under which choice of cells intervals hold; of several columns, in several."""
    sentences: dict[str, list[str]] = {}
    for label in shown.labels:
        said = _about_choice(shown, label, None if choices is None else choices[label], level)
        sentences.setdefault(said, []).append(str(shown.opened.shown_label(label)))
    if len(sentences) == 1:
        return next(iter(sentences))
    return "\n".join(f"{', '.join(labels)}: {said}" for said, labels in sentences.items())


def _about_choice(shown: Shown, label: str, choice: ChosenCells | None, level: float) -> str:
    cells, released = shown.counts(label)
    percent = f"{100 * level:.6g} %"
    some = f"{cells:,} of {released:,} cells"
    if choice is None:
        return f"All {released:,} hold at once in {percent} of releases, however cells are picked."
    if choice.cuts:
        calls = ", ".join(dict.fromkeys(cut.call for cut in choice.cuts))
        return f"Holds for {percent} of the {some} shown, given their choice by {calls}."
    if choice.cells is not None:
        level_of_each = level_of_chosen(level, cells, released)
        return (
            f"Level {level_of_each:.6g} for {some}, so that {percent} of those shown hold "
            'however they were chosen; chosen by keys: interval(chosen="keys").'
        )
    if cells < released:
        return f"Holds for {percent} of the {some} shown: their noise had no part in the choice."
    is_discovered = isinstance(shown.certificate.releases[0].mechanism, ThresholdPart)
    which = f"the {released:,} groups found" if is_discovered else f"all {released:,} cells"
    return f"Holds for {percent} of {which}. To pick some by size later: simultaneous=True."


def all_intervals(
    shown: Shown,
    level: float,
    *,
    simultaneous: bool = False,
    sampling: bool = False,
    choices: Mapping[str, ChosenCells] | None = None,
) -> pd.DataFrame:
    """Return the intervals of all released rows, by how the cells of each column were chosen."""
    certificate, opened = shown.certificate, shown.opened
    certificate.require_numbers()
    for release in certificate.releases if sampling else ():
        samples.check_sampled(release, list(release.columns))
    # rows and columns may have been left out since
    cells = sum(table.query.cells * table.query.outputs for table in certificate.releases)

    def level_of(label: str, law: Law) -> ColumnLevel:
        if simultaneous:
            return ColumnLevel(law.level_of_each(level, cells))
        few, cuts = ChosenCells() if choices is None else choices[label]
        if few is None:
            return ColumnLevel(level)
        released = opened.cells_of(label)
        if cuts:
            return ColumnLevel(level, cuts, few / released)
        return ColumnLevel(level_of_chosen(level, few, released))

    def bars(part: Shown, cells: pd.DataFrame) -> pd.DataFrame:
        def of_release(long: pd.DataFrame, table: Release) -> pd.DataFrame:
            if not table.columns[0].features:
                return _quantile_intervals(shown, table, level, simultaneous=simultaneous)
            levels = [level_of(label, table.noise.distribution) for label in part.labels]
            return _bars_of(long, table, levels, sampling=sampling)

        return part.certificate.by_release(cells, of_release)

    published_ends = _published_intervals(shown, (level, simultaneous, sampling))
    published = opened.table.published
    units = {} if published is None else published.units
    if published_ends or any(units.values()):
        return _intervals_of_published(shown, published_ends, units, bars)
    check_parts(shown, "interval")
    return bars(shown, shown.frame)


EndsByColumn: TypeAlias = Mapping[str, pd.DataFrame]


def _intervals_of_published(
    shown: Shown,
    published: EndsByColumn,
    units: Mapping[str, float],
    bars: Callable[[Shown, pd.DataFrame], pd.DataFrame],
) -> pd.DataFrame:
    """Return those that were published, and others from cells that may have been rounded."""
    others = [label for label in shown.labels if label not in published]
    ends_by_label = dict(published)
    if others:
        some = replace(shown, seen={label: shown.seen[label] for label in others})
        check_parts(some, "interval")
        low, high = (bars(some, _moved(some, units, sign)) for sign in (-1, 1))
        for at, label in enumerate(others):
            ends = [low.iloc[:, 2 * at], high.iloc[:, 2 * at + 1]]
            ends_by_label[label] = pd.concat(ends, axis=1)
    return pd.concat([ends_by_label[label] for label in shown.labels], axis=1)


def _moved(shown: Shown, units: Mapping[str, float], sign: int) -> pd.DataFrame:
    """Return cells by half a unit lower or higher: as far as they may have been rounded."""
    frame = shown.frame.copy()
    for at, label in enumerate(shown.labels):
        half: Any = units.get(label, 0.0) / 2
        kind = frame.iloc[:, at].dtype.kind
        # whole cells are off by whole numbers
        half = math.floor(half) if kind == "i" else half
        half = pd.Timedelta(int(half), "us") if kind in "mM" else half
        frame.isetitem(at, (frame.iloc[:, at] + sign * half).array)
    return frame


def _published_intervals(shown: Shown, settings: tuple[float, bool, bool]) -> EndsByColumn:
    """Return the intervals of means that a published table has, where it left their parts out."""
    intervals = {}
    for label, column in zip(shown.labels, shown.certificate.releases[0].columns, strict=True):
        if has_rows(column):
            continue
        ends = {
            definition.end: place
            for place, definition in shown.computed.items()
            if isinstance(definition, IntervalDefinition)
            and definition.column == column.name
            and (definition.level, definition.simultaneous, definition.sampling) == settings
        }
        if len(ends) == len(ENDS):
            frame = shown.opened.frame_of([ends["low"], ends["high"]])
            names = [f"{shown.opened.shown_label(label)}{end}" for end in ENDS]
            intervals[label] = frame.set_axis(names, axis=1)
    return intervals


def _quantile_intervals(
    shown: Shown, release: Release, level: float, *, simultaneous: bool
) -> pd.DataFrame:
    """Return the ends of the intervals of quantiles, which stand beside them."""
    _ = release.noise  # quantiles that were selected have none
    ends = {
        definition.end: (label, definition)
        for label, definition in shown.computed.items()
        if isinstance(definition, QuantileDefinition)
    }
    if len(ends) < len(ENDS):
        raise QueryError("the intervals of these quantiles were left out: call it on those before.")
    read = ends["low"][1]
    if level != read.level or (simultaneous and not read.simultaneous):
        at_once = ", simultaneous=True" if simultaneous else ""
        rule = f"must be that of these intervals, {read.level:g}"
        way_out = f"Or read them off the release, .dp.quantile(q, level={level:g}{at_once})."
        raise QueryError.about("level", rule, level, way_out)
    intervals = shown.opened.frame_of([ends["low"][0], ends["high"][0]]).iloc[release.places]
    return intervals.set_axis([f"{shown.frame.columns[0]}{end}" for end in ENDS], axis=1)


class ColumnLevel(NamedTuple):
    """The level of the intervals of a column; given cuts, which part of its cells is shown."""

    level: float
    cuts: tuple[CutPart, ...] = ()
    part: float = 1.0


def _bars_of(
    released: pd.DataFrame, release: Release, levels: Sequence[ColumnLevel], *, sampling: bool
) -> pd.DataFrame:
    mechanism = release.noise
    groups = mechanism.drawn_together(release.query.cells)
    columns: list[np.ndarray | ExtensionArray] = []
    names: list[str] = []
    for position, (column, of_column) in enumerate(zip(release.columns, levels, strict=True)):
        noise = TableNoise(mechanism, groups, of_column.level)
        values = released.iloc[:, position]
        ends: Ends
        if isinstance(mechanism, ThresholdPart) or of_column.cuts:
            ends = _ends_of_chosen(values, column, mechanism, of_column)
        elif column.form.is_total:
            ends = _ends_of_total(values, column, noise, sampling=sampling)
        else:
            ends = quotient_ends(column, noise, sampling=sampling)
            if column.times is not None:
                ends = times_between(values, ends, column.times.origin, column.times.bounds)
        columns += _possible(ends, column)
        names += [f"{released.columns[position]}{end}" for end in ENDS]
    return _like(released, columns, names)


def _ends_of_chosen(
    values: pd.Series, column: column_parts.ColumnPart, mechanism: NoiseRecord, level: ColumnLevel
) -> Sides:
    numbers, noise = known_numbers(values), column.noise
    if noise is None:
        raise TypeError(f"{column.name} was not measured cell by cell")
    threshold = mechanism.least if isinstance(mechanism, ThresholdPart) else None
    cell = OwnNoise(mechanism.distribution, noise.scale, noise.step, threshold)
    if numbers.dtype.kind == "i" and noise.step == 1:
        return chosen_ends(numbers, cell, *level)
    y = np.rint(numbers / noise.step).astype(np.int64)
    low, high = chosen_ends(y, cell, *level)
    return low * noise.step, high * noise.step


def possible_of(column: column_parts.ColumnPart) -> tuple[float, float]:
    """Return what is possible for a cell: a total may be any number of one sign, or of both."""
    if not column.form.is_total:
        return column.span
    return span_of_signs(column.span, (0.0, np.inf))  # as over a positive number


def _possible(ends: tuple[Any, Any], column: column_parts.ColumnPart) -> Ends:
    if not column.form.is_total or possible_of(column)[0] < 0:
        return ends
    if column.times is None:
        return np.maximum(ends[0], 0), np.maximum(ends[1], 0)
    none: Any = pd.Timedelta(0)
    low, high = (pd.Series(end).clip(lower=none).array for end in ends)
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
    for i, loading in enumerate(loadings):
        for j, other in enumerate(loadings):
            for block in loading.keys() & other.keys():
                with np.errstate(over="ignore"):  # no warning may depend on private values
                    products[:, i, j] += np.multiply(loading[block], other[block])
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


def total_half_width(
    release: Release, column: column_parts.ColumnPart, level: float
) -> float | None:
    """Return the least half-width of the noise of counts or sums; `None` of what is no such column.

    Of groups that were found, none is empty.
    """
    if not column.form.is_total or isinstance(release.mechanism, ThresholdPart):
        return None
    source = release.noise
    groups = source.drawn_together(release.query.cells)
    loadings = column.deviations
    width = half_width(column.noise, loadings, source, groups, level, integer=column.integer)
    return float(np.min(width, initial=np.inf))


def half_width(
    noise: column_parts.NoisePart | None,
    loadings: Mapping[str, float | np.ndarray],
    mechanism: NoiseRecord,
    groups: Groups,
    level: float,
    *,
    integer: bool,
) -> float | np.ndarray:
    """Return the half-width of an interval for a column."""
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
