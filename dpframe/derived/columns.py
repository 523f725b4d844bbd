"""Columns computed from released ones: their numbers, and the ends of their intervals."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np

from dpframe.certificates.column_parts import ColumnPart
from dpframe.derived.linear import Bottom, JointNoise, LinearSums, Matrix, Shared
from dpframe.errors import QueryError, quote
from dpframe.frozen import frozen
from dpframe.inference.joint_errors import Side, WithSampling
from dpframe.inference.quotients import (
    ErrorOfSum,
    Quotients,
    estimate_quotients,
    quotient_interval,
    span_of_signs,
    unit_of,
)
from dpframe.inference.sums import IndependentSum
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.noise_sum import Value, norm
from dpframe.statistics.form import Statistic, Totals

EndPair: TypeAlias = tuple[np.ndarray, np.ndarray]
NumberKind: TypeAlias = Literal["number", "whole", "duration", "like"]
"""What numbers stand for: themselves, whole ones, seconds, or what those of the column do."""
_ALL = slice(None)


class CellEstimates(NamedTuple):
    """Numbers with the ends of their intervals, and what they stand for."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    kind: NumberKind = "number"

    def within(self, first: float, last: float) -> "CellEstimates":
        """Return them, those missing that may be all from one end to the other."""
        unknown = (self.low <= first) & (self.high >= last)
        return self._replace(value=np.where(unknown, np.nan, self.value))


@frozen(eq=False)
class ColumnSums:
    """Weighted sums of the cells of a column, or a statistic read off sums of what was measured.

    Parameters
    ----------
    part
        What is said about the column.
    features
        What it is read off, by name.
    intervals
        From a level to the intervals of the released cells, if the sums are these cells.
    scaled
        Whether weights are other than 1 and -1: the numbers count no rows.
    variance
        What sampling adds to the variance of the cells themselves; `None`: it is not asked for.
    combined
        From weights of the released cells and a level to their sums, if these are all cells.
    """

    part: ColumnPart
    features: Mapping[str, LinearSums]
    intervals: "Callable[[float], EndPair] | None" = None
    scaled: bool = False
    variance: np.ndarray | None = None
    combined: "Callable[[Matrix, float], np.ndarray] | None" = None

    @property
    def statistic(self) -> Statistic:
        """What is read off the sums."""
        return self.part.statistic

    @property
    def is_total(self) -> bool:
        """Whether it is a sum of totals."""
        return self.part.form.is_total

    @property
    def total(self) -> LinearSums:
        """The only feature of a total."""
        (total,) = self.features.values()
        return total

    @property
    def signs(self) -> tuple[float, float]:
        """What is possible for one of them."""
        low, high = self.part.span
        if self.is_total:
            return (0.0 if low >= 0 else -np.inf), (0.0 if high <= 0 else np.inf)
        return low, high

    def map(
        self, change: Callable[[LinearSums], LinearSums], *, scaled: bool = False
    ) -> "ColumnSums":
        """Return sums of which each feature is changed alike."""
        features = {name: change(feature) for name, feature in self.features.items()}
        scaled = scaled or self.scaled
        # intervals and variances of the cells themselves do not hold for other sums of them
        changed = replace(self, features=features, intervals=None, variance=None, scaled=scaled)
        return replace(changed, combined=None)

    def take(self, rows: np.ndarray) -> "ColumnSums":
        """Return some rows, which are what they were."""
        intervals, variance = self.intervals, self.variance
        sums = self.map(lambda feature: feature.take(rows))
        ends = None if intervals is None else lambda level: _taken(intervals(level), rows)
        return replace(sums, intervals=ends, variance=None if variance is None else variance[rows])

    def read(self) -> "StatisticReading":
        """Return the values, and their errors to first order."""
        statistic = self.statistic
        if self.is_total:
            return StatisticReading(self.total.values, self.total, None)
        values = {name: feature.values for name, feature in self.features.items()}
        totals: Totals[str] = Totals(values, {name: {} for name in values})
        quotient = statistic.quotient(totals)
        raw = quotient.value(totals)
        shown, slope = statistic.show(raw)
        apart = _weighed(self.features, quotient.apart(raw))
        error = JointNoise(apart)(1.0, 0.0).deviation / quotient.divisor * slope
        limit = statistic.limit(error)
        moved = apart.scaled(limit * slope * statistic.unit / quotient.divisor * np.ones(len(raw)))
        top, bottom = (_weighed(self.features, side) for side in (quotient.top, quotient.bottom))
        return StatisticReading(statistic.place(shown), moved, (top, bottom))

    def estimates(self, level: float) -> CellEstimates:
        """Return the values with their intervals."""
        reading = self.read()
        low, high = self.ends(reading, level)
        if self.is_total:
            return CellEstimates(reading.value, low, high, self.kind)
        low, high = np.minimum(low, reading.value), np.maximum(high, reading.value)
        return CellEstimates(reading.value, low, high, self.kind).within(*self.part.span)

    @property
    def kind(self) -> NumberKind:
        """What its numbers stand for."""
        if self.part.times is not None:
            return "like"
        integral = self.is_total and self.part.integer and not self.scaled
        return "whole" if integral else "number"

    def ends(self, reading: "StatisticReading", level: float) -> EndPair:
        """Return the ends of intervals."""
        if self.intervals is not None and not self.is_total:
            return self.intervals(level)
        value, statistic = reading.value, self.statistic
        if reading.parts is None:
            sampled = self.variance is not None
            if self.variance is None:
                width = half_width(self.total, level)
            else:
                noise = JointNoise(self.total)(1.0, 0.0)
                width = WithSampling(noise, self.variance).half_width(level)
            if self.kind == "whole":
                # whole noise within a width is within its floor; errors of sampling are not whole
                width = np.ceil(width) if sampled else np.floor(width)
            return value - width, value + width
        match statistic.interval:
            case "test":
                top, bottom = reading.parts
                joint, span = JointNoise(top, bottom), statistic.ends
                quotients = Quotients(top.values, bottom.values, 1.0, span, 1.0, joint, by_row=True)
                ends = quotient_interval(quotients, level)
            case "first order":
                moved = JointNoise(reading.moved)(1.0, 0.0).half_width(level)
                first, last = self.part.span
                return np.clip(value - moved, first, last), np.clip(value + moved, first, last)
            case _:
                raise not_read_off(self.part)
        low, high = (statistic.place(statistic.show(end)[0]) for end in ends)
        return low, high


def half_width(sums: LinearSums, level: float) -> np.ndarray:
    """Return the half-widths of sums: of equal weights, by the law of so many noises.

    Rows with as many weights, all of one size, are alike but for that size.
    """
    sizes = sums.sizes()
    if sizes is None:
        return np.asarray(JointNoise(sums)(1.0, 0.0).half_width(level))
    lengths, size = sizes
    widths = np.zeros(len(lengths))
    for length in np.unique(lengths[lengths > 0]):
        rows = np.flatnonzero(lengths == length)
        example = sums.take(rows[:1]).scaled(1 / size[rows[0]])
        widths[rows] = float(np.max(JointNoise(example)(1.0, 0.0).half_width(level))) * size[rows]
    return widths


class StatisticReading(NamedTuple):
    """Values, what noise does to them to first order, and the two parts of quotients."""

    value: np.ndarray
    moved: LinearSums
    parts: tuple[LinearSums, LinearSums] | None


def not_read_off(part: ColumnPart) -> QueryError:
    """Make the error about what is not known to add up."""
    rule = f"{part.kind} {quote(part.name)} of joined groups is not known"
    return QueryError(f"{rule}. Choose other columns, released[[...]].", label=part.name)


def _taken(ends: EndPair, rows: np.ndarray) -> EndPair:
    low, high = ends
    return low[rows], high[rows]


def _weighed(features: Mapping[str, LinearSums], weights: Mapping[str, Value]) -> LinearSums:
    """Return the weighted sum of features."""
    first, *others = [features[name].scaled(weight) for name, weight in weights.items()]
    total = first
    for other in others:
        total = total.plus(other)
    return total


@frozen(eq=False)
class ColumnQuotient:
    """Quotients of sums, times a scale, plus a shift.

    Parameters
    ----------
    top, bottom
        What is divided by what.
    span
        Where quotients lie, whatever the data hold.
    least
        What is divided by where the lower number is smaller.
    scale, shift
        What quotients are multiplied by, and what is added.
    shares
        How many cells the total of each row has, where top is a cell of it.
    variance
        From a and b to what sampling adds to the variance of `a top - b bottom`.
    same
        The rows that are divided by themselves.
    """

    top: LinearSums
    bottom: LinearSums | Shared
    span: tuple[float, float]
    least: Value
    scale: float = 1.0
    shift: float = 0.0
    shares: np.ndarray | None = None
    variance: "Callable[[Value, Value, Rows], np.ndarray] | None" = None
    same: np.ndarray | None = None

    def estimates(self, level: float) -> CellEstimates:
        """Return the quotients with their intervals."""
        joint = JointNoise(self.top, self.bottom, shares=self.shares)

        def noise(a: np.ndarray, b: np.ndarray, rows: Rows) -> ErrorOfSum:
            alone = joint(a, b, rows)
            if self.variance is None:
                return alone
            return WithSampling(alone, self.variance(a, b, rows))

        top, bottom = self.top.values, self.bottom.values
        unit = unit_of(self.span, error_of(self.top), error_of(self.bottom))
        by_row = self.shares is None
        quotients = Quotients(top, bottom, self.least, self.span, unit, noise, by_row=by_row)
        estimates = estimate_quotients(quotients, level)
        if self.same is not None:
            estimates = (
                np.where(self.same, 1.0, estimates[0]),
                np.where(self.same, 1.0, estimates[1]),
                np.where(self.same, 1.0, estimates[2]),
            )
        value, low, high = (self.scale * part + self.shift for part in estimates)
        first, last = (self.scale * end + self.shift for end in self.span)
        return CellEstimates(value, low, high).within(first, last)


def error_of(sums: Bottom) -> np.ndarray:
    """Return the standard error of sums."""
    match sums:
        case None:
            return np.zeros(1)
        case Shared(inner, groups):
            errors: np.ndarray = error_of(inner)[groups]
            return errors
        case _:
            deviation = JointNoise(sums)(1.0, 0.0).deviation
            return np.broadcast_to(deviation, sums.rows)


def least_of(sums: ColumnSums, bottom: Bottom) -> Value:
    """Return what is divided by where sums are smaller: 1 of rows, or the standard error."""
    if sums.part.counts_rows and not sums.scaled:
        return 1.0
    errors = error_of(bottom)
    return np.where(errors > 0, errors, 1.0)


@frozen(eq=False)
class ColumnPair:
    """Changes of a column that is itself a quotient: now, and then.

    Parameters
    ----------
    now, then
        The column, row by row.
    percent
        Whether changes are in percent.
    """

    now: ColumnSums
    then: ColumnSums
    percent: bool

    def estimates(self, level: float) -> CellEstimates:
        """Return the changes with their intervals; see `_Uneven`."""
        now, then = (_KnownCells.of(column, level) for column in (self.now, self.then))
        error = _Uneven(now, then, JointNoise(now.moved, then.moved), (1.0, 1.0), _ALL)
        ends = self._relative if self.percent else self._difference
        value, low, high = ends(now, then, error, level)
        unknown = (now.lowest & now.highest) | (then.lowest & then.highest)
        timed = self.now.part.times is not None and not self.percent
        kind: NumberKind = "duration" if timed else "number"
        return CellEstimates(np.where(unknown, np.nan, value), low, high, kind)

    def _difference(
        self, now: "_KnownCells", then: "_KnownCells", error: "_Uneven", level: float
    ) -> list[np.ndarray]:
        change = now.value - then.value
        width = error.noise.half_width(level)
        below, above = (side.width(width, error.alike) for side in error.sides())
        first, last = self.now.part.span
        low = np.maximum(change - below, first - last)
        high = np.minimum(change + above, last - first)
        return [change, low, high]

    def _relative(
        self, now: "_KnownCells", then: "_KnownCells", error: "_Uneven", level: float
    ) -> list[np.ndarray]:
        low, high = self.now.part.span
        span = span_of_signs((low, high), (low, high))
        errors = [error_of(cells.moved) for cells in (now, then)]
        half = (high - low) / 2  # of no rows, it is in the middle of what is possible
        least = np.where(errors[1] > 0, errors[1], 1.0)
        least = np.minimum(least, min(half, abs(low + high) / 2) or half or 1.0)
        unit = unit_of((-np.inf, np.inf), *errors)
        quotients = Quotients(now.value, then.value, least, span, unit, error, by_row=False)
        return [100 * (part - 1) for part in estimate_quotients(quotients, level)]


class _KnownCells(NamedTuple):
    """A column at a level: its cells, and how far the truth may be from them.

    These are what noise and sampling do to first order, and by itself; distances to the ends of
    intervals; and whether these are all that is possible.
    """

    value: np.ndarray
    moved: LinearSums
    variance: np.ndarray | None
    alone: Value
    down: np.ndarray
    up: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    @classmethod
    def of(cls, column: ColumnSums, level: float) -> "_KnownCells":
        """Read a column off."""
        reading = column.read()
        value, moved, variance = reading.value, reading.moved, column.variance
        low, high = column.ends(reading, level)
        first, last = column.part.span
        noise = JointNoise(moved)(1.0, 0.0)
        error = noise if variance is None else WithSampling(noise, variance)
        down, up = np.maximum(value - low, 0), np.maximum(high - value, 0)
        alone = error.half_width(level)
        return cls(value, moved, variance, alone, down, up, low <= first, high >= last)


@frozen(eq=False)
class _Uneven:
    """The error of `a now - b then`, where intervals of both are uneven.

    Distances to the ends of both are added as squares, times the half-width for the sum of the
    errors to first order over the root of the sum of their squared half-widths (Zou and Donner
    2008); as they are where one of these ends is all that is possible.
    """

    now: _KnownCells
    then: _KnownCells
    joint: JointNoise
    weights: tuple[Value, Value]
    rows: Rows

    def __call__(self, a: Value, b: Value, rows: Rows) -> "_Uneven":
        """Return it for some weights, in some rows."""
        return replace(self, weights=(a, b), rows=rows)

    @property
    def noise(self) -> IndependentSum | WithSampling:
        """The errors to first order."""
        a, b = self.weights
        noise = self.joint(a, b, self.rows)
        now, then = self.now.variance, self.then.variance
        if now is None or then is None:
            return noise
        return WithSampling(noise, np.square(a) * now[self.rows] + np.square(b) * then[self.rows])

    @property
    def alike(self) -> np.ndarray:
        """What the half-widths of both add up to, as squares."""
        sizes = []
        for weight, cells in zip(self.weights, (self.now, self.then), strict=True):
            width = np.broadcast_to(cells.alone, cells.value.shape)[self.rows]
            sizes.append(np.abs(weight * width))
        return norm(sizes)

    def sides(self) -> tuple[Side, Side]:
        """Return distances to ends for true sums below and above the estimate."""
        down, up, first, last = (part[self.rows] for part in self.now[-4:])
        fall, rise, lowest, highest = (part[self.rows] for part in self.then[-4:])
        a, b = self.weights
        # a negative weight turns the sides of `then` around
        turned, b = np.asarray(b) < 0, np.abs(b)
        fall, rise = np.where(turned, rise, fall), np.where(turned, fall, rise)
        lowest, highest = np.where(turned, highest, lowest), np.where(turned, lowest, highest)
        return (
            Side.of([a * down, b * rise], [first, highest]),
            Side.of([a * up, b * fall], [last, lowest]),
        )

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say how far it is beyond the level that the sum is that far off."""
        a, b = self.weights
        high = a * self.now.value[self.rows] > b * self.then.value[self.rows]
        sides = zip(*self.sides(), strict=True)
        part, full, ends = (np.where(high, below, above) for below, above in sides)
        # how far off it is where errors are those of the noise alone
        far = np.where(distance > 0, np.inf, 0.0)
        off = np.divide(distance * self.alike, part, out=far, where=part > 0)
        return np.where(ends, distance - full, self.noise.excess(off, level, rows))


@frozen(eq=False)
class ColumnCombinations:
    """Weighted sums of cells that are quotients, as `combine` reads them off.

    Parameters
    ----------
    part
        What is said about the column.
    cells
        From the weights of cells, row by row, and a level to numbers and both ends.
    weights
        Weights, by row and cell.
    difference
        Whether they are changes.
    """

    part: ColumnPart
    cells: "Callable[[Matrix, float], np.ndarray]"
    weights: Matrix
    difference: bool = False

    def less(self, now: np.ndarray, then: np.ndarray) -> "ColumnCombinations":
        """Return the changes from some rows to others."""
        weights = self.weights[now] - self.weights[then]
        return replace(self, weights=weights, difference=True)

    def estimates(self, level: float) -> CellEstimates:
        """Return the sums with their intervals."""
        value, low, high = self.cells(self.weights, level).T
        kind: NumberKind = "number"
        if self.part.times is not None:
            kind = "duration" if self.difference else "like"
        return CellEstimates(value, low, high, kind)


ComputedColumn: TypeAlias = ColumnSums | ColumnQuotient | ColumnPair | ColumnCombinations


def sums_of(column: ComputedColumn, call: str) -> ColumnSums:
    """Return a column of sums, which more can be computed from.

    Raises
    ------
    QueryError
        If it is a quotient already.
    """
    if isinstance(column, ColumnSums):
        return column
    rule = f"{call} is for counts, sums and what was released, not for quotients computed of them"
    raise QueryError(f"{rule}. Take the percentage or quotient last.")


def of_total(column: ComputedColumn, call: str) -> ColumnSums:
    """Return a column of counts or sums.

    Raises
    ------
    QueryError
        If it is none.
    """
    sums = sums_of(column, call)
    if not sums.is_total:
        raise no_total("column", sums.part.name)
    return sums


def no_total(called: str, label: Hashable) -> QueryError:
    """Make the error about a column that is no count or sum."""
    way_out = (
        "It is a quotient already, with an interval in .dp.interval(). For another one, release "
        "its sum and count: dpf.aggregate(total=dpf.sum(...), n=dpf.count())."
    )
    return QueryError.about(called, "must be a count or a sum", label, way_out)


def poisson(rows: np.ndarray) -> Callable[[Value, Value, Rows], np.ndarray]:
    """Return what sampling adds to the variance of `a x - b n`, of x among n sampled rows."""
    some = np.maximum(rows, 0.0)
    return lambda a, b, places: cast(np.ndarray, some[places] * np.maximum(b * (a - b), 0))
