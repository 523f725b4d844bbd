"""Changes from one release to another, with the errors of both."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag
from dpframe.cells.verify import Shown, look, whole_release
from dpframe.certificates.certificate import Release, check_alike
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.certificates.mechanism_parts import LayersPart
from dpframe.certificates.words import unit_in_lines
from dpframe.errors import QueryError, quote
from dpframe.forks import cached_property
from dpframe.html import bounds_text
from dpframe.inference.intervals import all_intervals, check_not_selected, possible_of
from dpframe.inference.joint_errors import Side, check_no_given_rows, shared_noise
from dpframe.inference.quotients import Quotients, estimate_quotients, part_of, span_of_signs
from dpframe.inference.sampling import WithSampling, check_sampled, sampling_variance
from dpframe.inference.sums import IndependentSum
from dpframe.privacy.half_widths import Rows, check_level
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import NoiseSum, Value, norm
from dpframe.public import public_call
from dpframe.queries.timescale import in_seconds

_ALL = slice(None)
_COLUMNS = ["estimate", "std_error", "low", "high"]


@public_call
def change(
    released: pd.DataFrame,
    before: pd.DataFrame,
    level: float = 0.95,
    *,
    percent: bool = False,
    sampling: bool = False,
) -> pd.DataFrame:
    """Return the change of every cell from one release to another, with error and interval.

    The change is `y - x`, for x before and y now; in percent it is `100 (y / x - 1)`. The two
    releases have independent noise. For counts and sums, the half-width is that of the sum of both
    noises; in percent, the interval holds every r for which `|Y - r X|` is at most the half-width
    for the noise of `y - r x`, as in `ratio`. For means, rates and variances, the distances from a
    value to the ends of its own interval are added as squares, times the half-width for the sum of
    both first-order errors over the root of the sum of their squared half-widths. Where an interval
    ends at what is possible, distances are added as they are.

    Parameters
    ----------
    released
        A released frame, now.
    before
        Another release with the same columns, levels, privacy unit, caps and bounds.
    level
        Confidence level of each interval, in (0, 1).
    percent
        Whether changes are in percent of the cells before. In estimates, a cell before is at least
        its standard error, and a count at least 1; a cell kept within bounds is at most the middle
        of them.
    sampling
        Whether the rows of both are independent random samples, and the changes are those of the
        populations, as for `interval`. Nobody may be in both.

    Returns
    -------
    DataFrame
        One row per key that both releases have; for several columns one per key and column, with
        `column` as the last level. Columns are `estimate`, `std_error` (of first order in percent),
        `low` and `high`; times count in seconds. Rows of one release only have no numbers; a column
        `only_in`, present if there are such rows, says "released" or "before".

    Raises
    ------
    CertificateError
        If a frame is not what was released.
    QueryError
        If both are one release; if they differ in columns, levels, privacy unit, caps or bounds, or
        have no row in common; if cells were changed since, come from several releases, or were
        published for their size; in percent, if cells are points in time; with `sampling`, if the
        sampling error is not known.

    References
    ----------
    E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society
    B 16(2), 1954. G. Y. Zou and A. Donner, "Construction of confidence limits about effect
    measures: a general approach", Statistics in Medicine 27(10), 2008.

    Examples
    --------
    >>> import dpframe as dpf
    >>> query = dpf.count(by="zone", keys=["A", "B"])
    >>> years = [pd.DataFrame({"zone": ["A", "B"] * n + ["A"]}) for n in (4, 5)]
    >>> before, now = (dpf.release(trips, query, epsilon=1e6) for trips in years)
    >>> change(now, before)
          estimate  std_error  low  high
    zone
    A          1.0        0.0  1.0   1.0
    B          1.0        0.0  1.0   1.0
    >>> change(now, before, percent=True)["estimate"].round(6).tolist()
    [20.0, 25.0]
    """
    level = check_level(level)
    flags = {"percent": percent, "sampling": sampling}
    for name, flag in flags.items():
        check_flag(name, flag)
    return change_of(look(released), look(before), level, **flags)


def change_of(
    released: Shown, before: Shown, level: float, *, percent: bool, sampling: bool = False
) -> pd.DataFrame:
    """Return the changes between tables that were verified; see `change`."""
    now, then = _table(released), _table(before)
    _check_comparable(now, then)
    for table in (now, then) if sampling else ():
        check_sampled(table.release, list(table.release.columns))
    known = {key: place for place, key in enumerate(then.index)}
    places = np.array([known.get(key, -1) for key in now.index], np.intp)
    rows = np.flatnonzero(places >= 0), places[places >= 0]
    if not len(rows[0]) and known:
        one, other = (next(iter(table.index), None) for table in (now, then))
        rule = f"before has no row in common with the other release: {quote(one)}, {quote(other)}"
        way_out = "Keys are matched by value: 47 is not '47'."
        raise QueryError(f"{rule}. {way_out}", parameter="before")
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        mine = now.cells(now.rows[rows[0]], level, sampling=sampling)
        pairs = zip(mine, then.cells(then.rows[rows[1]], level, sampling=sampling), strict=True)
        tables = [
            _percent(_Both(*pair, level)) if percent else _difference(_Both(*pair, level))
            for pair in pairs
        ]
    alone = np.setdiff1d(np.arange(len(known)), rows[1])
    changes = _in_rows(tables, now, then.index[alone], rows[0])
    return mark_diagnosis(changes, [now.release, then.release], "change")


@dataclass(frozen=True, eq=False)
class _Cells:
    """Some cells of a released column; numbers in its units, times in seconds.

    Parameters
    ----------
    part, release
        What is said about them.
    values
        The numbers.
    deviations
        By block, what its noise does to them.
    ends
        The ends of their intervals, where these are not those of the noise.
    variance
        What sampling adds to their variance, if rows are a sample.
    """

    part: ColumnPart
    release: Release
    values: np.ndarray
    deviations: Mapping[str, Value]
    ends: tuple[np.ndarray, np.ndarray] | None
    variance: np.ndarray | None = None

    def noise(self, weight: Value, rows: Rows = _ALL) -> tuple[Law, NoiseSum]:
        """Return the noise of so many times some cells, and its law."""
        source = self.release.noise
        own = {block: part_of(self.deviations, block, rows) for block in self.deviations}
        parts = {block: np.abs(weight * part) for block, part in own.items()}
        scales, groups = source.scale_by_block, source.drawn_together(self.release.query.cells)
        if isinstance(source, LayersPart):  # its noise is itself a sum
            return source.distribution, NoiseSum(parts, scales, groups, largest=parts)
        alike = all(np.ndim(part) == 0 for part in parts.values())
        terms = {block: np.ravel(part) for block, part in parts.items()} if alike else None
        return source.distribution, NoiseSum(parts, scales, groups, terms=terms)

    @property
    def span(self) -> tuple[float, float]:
        """What is possible for one of them."""
        return possible_of(self.part)

    def distances(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return how far the ends are below and above, and which are those of what is possible."""
        low, high = self.ends or (self.values, self.values)
        first, last = self.span
        off = np.maximum(self.values - low, 0.0), np.maximum(high - self.values, 0.0)
        return *off, low <= first, high >= last


@dataclass(frozen=True, eq=False)
class _Table:
    """A released table: all its rows, and which of them are shown."""

    shown: Shown
    release: Release

    @property
    def frame(self) -> pd.DataFrame:
        """All its rows, as released."""
        return self.shown.frame

    @property
    def rows(self) -> np.ndarray:
        """The rows that are shown."""
        return self.shown.rows

    @cached_property
    def index(self) -> pd.Index:
        """Their keys."""
        return self.frame.index.take(self.rows)

    def cells(self, rows: np.ndarray, level: float, *, sampling: bool) -> list[_Cells]:
        """Return some rows of all columns."""
        parts = self.release.columns
        noisy = all(part.form.is_total for part in parts)
        bars = None if noisy else all_intervals(self.shown, level, sampling=sampling)
        places = range(len(parts))
        return [self._cells_of(place, rows, bars, sampling=sampling) for place in places]

    def _cells_of(
        self, place: int, rows: np.ndarray, bars: pd.DataFrame | None, *, sampling: bool
    ) -> _Cells:
        part = self.release.columns[place]
        ends = None
        if bars is not None and not part.form.is_total:
            sides = (in_seconds(bars.iloc[:, 2 * place + side], part.origin) for side in (0, 1))
            low, high = (side[rows] for side in sides)
            ends = low, high
        loadings = part.deviations
        deviations = {block: part_of(loadings, block, rows) for block in loadings}
        values = in_seconds(self.frame.iloc[:, place], part.origin)
        variance = sampling_variance(part, values)[rows] if sampling else None
        return _Cells(part, self.release, values[rows], deviations, ends, variance)


def _table(shown: Shown) -> _Table:
    """Return a table of one release, as it was released."""
    release = whole_release(shown, "change")
    check_not_selected(release, "change")
    _ = release.noise  # quantiles that were selected have none
    return _Table(shown, release)


def _check_comparable(now: _Table, then: _Table) -> None:
    """Refuse tables of one release, and such as measure something else."""
    if now.release.release_id == then.release.release_id:
        raise shared_noise(now.release)
    for table in (now, then):
        check_no_given_rows(table.release)
    check_alike(now.frame, now.release, then.frame, then.release, "before")
    units = [table.release.privacy_unit for table in (then, now)]
    way_out = "dpf.combine compares cells as they are."
    if units[0] != units[1]:
        shown = " and ".join(", ".join(unit_in_lines(unit)) for unit in units)
        rule = "before must be about the same privacy unit with the same caps, or a change may be"
        raise QueryError(f"{rule} theirs: {shown}. {way_out}", parameter="before")
    for one, other in zip(then.release.columns, now.release.columns, strict=True):
        if one.declared != other.declared:
            rule = (
                f"before must have the same bounds, or a change of {quote(one.name)} may be theirs"
            )
            shown = f"{bounds_text(one.declared)} and {bounds_text(other.declared)}"
            raise QueryError(f"{rule}: {shown}. {way_out}", parameter="before", label=one.name)


@dataclass(frozen=True, eq=False)
class _Both:
    """Cells of a column, now and before, and the level of their intervals."""

    now: _Cells
    then: _Cells
    level: float

    @cached_property
    def alone(self) -> list[Value]:
        """The half-widths of the errors of each."""
        sums = [(IndependentSum([one.noise(1.0)]), one.variance) for one in (self.now, self.then)]
        return [
            (noise if variance is None else WithSampling(noise, variance)).half_width(self.level)
            for noise, variance in sums
        ]

    def error(self, a: Value, b: Value, rows: Rows = _ALL) -> "_ErrorOfBoth":
        """Return the error of `a y - b x`, with y now and x before; in some rows of noise alone."""
        return _ErrorOfBoth(self, a, b, rows)


@dataclass(frozen=True, eq=False)
class _ErrorOfBoth:
    """The error of `a y - b x`, with y of the cells now, x of those before, and a not negative."""

    both: _Both
    a: Value
    b: Value
    rows: Rows

    @property
    def noise(self) -> IndependentSum | WithSampling:
        """The errors of both, to first order."""
        now, then = self.both.now, self.both.then
        sums = [now.noise(self.a, self.rows), then.noise(self.b, self.rows)]
        noise = IndependentSum.of(sums)
        if now.variance is None or then.variance is None:
            return noise
        variances = now.variance[self.rows], then.variance[self.rows]
        variance = np.square(self.a) * variances[0] + np.square(self.b) * variances[1]
        return WithSampling(noise, variance)

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the sum."""
        return self.noise.deviation

    @property
    def _alike(self) -> np.ndarray:
        """What the half-widths of both add up to, as squares."""
        one, other = self.both.alone
        return norm([np.abs(self.a * one), np.abs(self.b * other)])

    def _sides(self) -> tuple[Side, Side]:
        """Return distances to ends for true sums below and above the estimate."""
        (down, up, first, last), (fall, rise, lowest, highest) = (
            one.distances() for one in (self.both.now, self.both.then)
        )
        a, b, turned = self.a, np.abs(self.b), np.asarray(self.b) < 0
        fall, rise = np.where(turned, rise, fall), np.where(turned, fall, rise)
        lowest, highest = np.where(turned, highest, lowest), np.where(turned, lowest, highest)
        return (
            Side.of([a * down, b * rise], [first, highest]),
            Side.of([a * up, b * fall], [last, lowest]),
        )

    def widths(self) -> tuple[Value, Value]:
        """Return how far the true sum may be below and above the estimate."""
        width = self.noise.half_width(self.both.level)
        if self.both.now.ends is None:
            return width, width
        below, above = (side.width(width, self._alike) for side in self._sides())
        return below, above

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say how far it is beyond the level that the sum is that far off."""
        if self.both.now.ends is None:
            return self.noise.excess(distance, level, rows)
        high = self.a * self.both.now.values > self.b * self.both.then.values
        sides = zip(*self._sides(), strict=True)
        part, full, ends = (np.where(high, below, above) for below, above in sides)
        # how far off it is where errors are those of the noise alone
        far = np.where(distance > 0, np.inf, 0.0)
        off = np.divide(distance * self._alike, part, out=far, where=part > 0)
        return np.where(ends, distance - full, self.noise.excess(off, level, rows))


def _difference(both: _Both) -> np.ndarray:
    """Return differences, their errors and both ends of their intervals."""
    now, then = both.now, both.then
    estimate, error = now.values - then.values, both.error(1.0, 1.0)
    down, up = error.widths()
    if now.part.integer:  # and so is the change
        down, up = (np.floor(end) if now.variance is None else np.ceil(end) for end in (down, up))
    low, high = estimate - down, estimate + up
    if now.ends is not None:
        low = np.maximum(low, now.span[0] - then.span[1])
        high = np.minimum(high, now.span[1] - then.span[0])
    return np.stack(np.broadcast_arrays(estimate, error.deviation, low, high), axis=1)


def _percent(both: _Both) -> np.ndarray:
    """Return relative changes in percent, their errors and both ends of their intervals."""
    now, then = both.now, both.then
    if then.part.times is not None and then.part.times.counted != "in seconds":
        rule = "is for numbers and durations, and points in time have no zero"
        raise QueryError.about("percent", rule, True, "Leave it out.")
    span = span_of_signs(now.span, then.span)
    errors = [norm([np.zeros(len(now.values)), *one.deviations.values()]) for one in (now, then)]
    least = 1.0 if then.part.counts_rows else np.where(errors[1] > 0, errors[1], 1.0)
    if not then.part.form.is_total:  # of no rows, it is in the middle of what is possible
        low, high = then.span
        half = (high - low) / 2
        least = np.minimum(least, min(half, abs(low + high) / 2) or half or 1.0)
    size = [float(np.max(one, initial=0.0)) for one in errors]
    unit = size[0] / size[1] if all(size) else 1.0
    alone = now.ends is None
    quotient = Quotients(now.values, then.values, least, span, unit, both.error, by_row=alone)
    found = estimate_quotients(pd.RangeIndex(len(now.values)), quotient, both.level)
    return 100 * (found.to_numpy() - [1.0, 0.0, 1.0, 1.0])


def _in_rows(
    tables: list[np.ndarray], now: _Table, alone: pd.Index, rows: np.ndarray
) -> pd.DataFrame:
    """Put changes on the rows of both releases; where several columns were released, by column."""
    index = now.index.append(alone) if len(alone) else now.index
    numbers = np.full((len(index), len(tables), len(_COLUMNS)), np.nan)
    numbers[rows] = np.stack(tables, axis=1)
    only_in = np.full(len(index), None, object)
    only_in[: len(now.index)] = "released"
    only_in[len(now.index) :] = "before"
    only_in[rows] = None
    width = len(tables)
    if width > 1:
        levels = [index.get_level_values(level).repeat(width) for level in range(index.nlevels)]
        columns = pd.Index(list(now.frame.columns) * len(index), tupleize_cols=False)
        index = pd.MultiIndex.from_arrays([*levels, columns], names=[*index.names, "column"])
    found = pd.DataFrame(numbers.reshape(-1, len(_COLUMNS)), index=index, columns=_COLUMNS)
    if len(rows) < len(only_in):
        found["only_in"] = np.repeat(only_in, width)
    return found
