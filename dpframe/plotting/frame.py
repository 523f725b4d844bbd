"""The tidy frame of a figure: released cells with the ends of their intervals, and their places."""

from collections.abc import Hashable, Sequence
from datetime import date, datetime, tzinfo
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of, visible
from dpframe.cells.verify import Shown, whole_release
from dpframe.certificates.definitions import DenoiseDefinition, Link, PercentLink, RatioLink
from dpframe.certificates.mechanism_parts import TreePart
from dpframe.derived.columns import no_total
from dpframe.derived.table import check_people, numbers_shown
from dpframe.errors import DPFrameError, QueryError, UnknownColumnError, pip_install
from dpframe.frozen import frozen
from dpframe.inference.intervals import intervals_of
from dpframe.inference.joint_errors import check_sampled, widen
from dpframe.inference.ranges import (
    ENDS_OF_ROUNDING,
    below_edges,
    deviations,
    distribution_of,
    risen,
)
from dpframe.privacy.half_widths import check_level
from dpframe.public import did_you_mean
from dpframe.queries.edges import as_moment, first_edge, in_use, index_of

MOST_PANELS = 64  # of a figure, an inch or two each

_SECONDS = dict(days=86_400, hours=3_600, minutes=60, seconds=1, milliseconds=1e-3)
_FEWEST_UNITS = 3  # of the largest duration: a unit of which there are fewer is too long
_BAR = 0.8  # of the room between two keys, as in pandas
_BEYOND = 0.15  # of the span of all ends: how far an arrow reaches where an interval has no end
_LONGEST = 40  # characters of a label


def pyplot() -> Any:
    """Import what draws figures.

    Raises
    ------
    DPFrameError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt  # optional, and slow to import
    except ImportError:
        raise DPFrameError(f"drawing needs matplotlib: {pip_install('plot')}.") from None
    return plt


def _dates() -> Any:
    from matplotlib import dates  # optional, and slow to import

    return dates


@frozen
class Scale:
    """The meaning of the numbers along an axis: `unit` of durations, `zone` of dates."""

    unit: str = ""
    dates: bool = False
    zone: tzinfo | None = None

    def name(self, label: str) -> str:
        """Put the unit or the time zone behind the name of an axis."""
        unit = self.unit if self.zone is None else str(self.zone)
        return f"{label} ({unit})".strip() if unit else label

    def dress(self, axis: Any) -> None:
        """Give an axis of matplotlib the ticks of dates."""
        if not self.dates:
            return
        dates = _dates()
        first, last = dates.date2num([datetime.min, datetime.max])
        view = axis.get_view_interval()
        if view.min() < first + 1 or last - 1 < view.max():  # margins reach beyond all dates
            getattr(axis.axes, f"set_{axis.axis_name}lim")(np.clip(view, first + 1, last - 1))
        # with more of the fewest, some spans would have no interval, and a warning
        locator = dates.AutoDateLocator(tz=self.zone, minticks=2, maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=self.zone))


NUMBERS = Scale()


def to_numbers(columns: Sequence[pd.Series | pd.Index]) -> tuple[list[np.ndarray], Scale]:
    """Turn columns of one kind into numbers that matplotlib can place, on one scale."""
    dtype = columns[0].dtype
    if dtype.kind == "M":
        zone = getattr(dtype, "tz", None)
        times = [pd.DatetimeIndex(column) for column in columns]
        naive = [time if zone is None else time.tz_convert(None) for time in times]
        return [_dates().date2num(time.to_numpy()) for time in naive], Scale(dates=True, zone=zone)
    if dtype.kind == "m":
        seconds = [pd.TimedeltaIndex(column).total_seconds().to_numpy() for column in columns]
        longest = np.nan_to_num(np.abs(np.concatenate(seconds))).max(initial=0) or 1
        fitting = [name for name, unit in _SECONDS.items() if longest >= _FEWEST_UNITS * unit]
        unit = [*fitting, "milliseconds"][0]
        return [part / _SECONDS[unit] for part in seconds], Scale(unit)
    return [np.asarray(c.to_numpy(np.float64, na_value=np.nan)) for c in columns], NUMBERS


@frozen(eq=False)
class Drawn:
    """One column, ready to be drawn.

    Parameters
    ----------
    label
        Its label.
    name
        What is written beside the axis of its values.
    cells
        On the index of the release, numbers `value`, `low` and `high`; perhaps `sampled_low` and
        `sampled_high`, the ends with the error of sampled rows, `denoised`, and `below` and
        `above`, the places of arrows at ends that are infinite.
    scale
        What the numbers stand for.
    effect
        Whether it says how two columns go together, with 0 for not at all.
    from_zero
        Whether 0 is within the bounds of what it is about.
    quantiles
        Whether they are quantiles.
    """

    label: Hashable
    name: str
    cells: pd.DataFrame
    scale: Scale = NUMBERS
    effect: bool = False
    from_zero: bool = True
    quantiles: bool = False


def gather(
    shown: Shown,
    column: Any,
    level: float,
    *,
    per: Hashable | None = None,
    percent: bool = False,
    sampling: bool = False,
) -> list[Drawn]:
    """Gather released columns, by default all, with their intervals; or quotients of two.

    Raises
    ------
    QueryError
        If there is no such column, or there are too many.
    """
    if per is not None and percent:
        way_out = "These are two kinds of quotients: give one of them."
        raise QueryError.about("per", "does not go with percent=True", per, way_out)
    if per is not None or percent:
        if isinstance(column, list):
            rule = "must be a single one beside per= or percent=True"
            raise QueryError.about("column", rule, column)
        return _gather_quotients(shown, column, level, per, sampling=sampling)
    level = check_level(level)
    tones = {"": intervals_of(shown, level)}
    if sampling:
        tones["sampled_"] = intervals_of(shown, level, sampling=True)
    table, labels = shown.table, list(shown.frame.columns)
    chosen = column if isinstance(column, list) else [column]
    if column is None:
        chosen = labels
    if not 0 < len(chosen) <= MOST_PANELS:
        rule = f"must be 1 to {MOST_PANELS} columns"
        raise QueryError.about("column", rule, column, "Choose some with column=[...].")
    drawn = []
    for label in chosen:
        _check_column(label, labels)
        place = labels.index(label)
        described = shown.certificate.releases[0].columns[place]
        parts: dict[str, Any] = {"value": table.iloc[:, place]}
        for tone, ends in tones.items():
            parts[f"{tone}low"] = ends.iloc[:, 2 * place]
            parts[f"{tone}high"] = ends.iloc[:, 2 * place + 1]
        for at, definition in enumerate(shown.computed.values(), len(labels)):
            if isinstance(definition, DenoiseDefinition) and definition.column == described.name:
                parts["denoised"] = table.iloc[:, at]
        numbers, scale = to_numbers(list(parts.values()))
        cells = pd.DataFrame(dict(zip(parts, numbers, strict=True)), index=table.index)
        drawn.append(
            Drawn(
                label,
                scale.name(text(label)),
                _with_arrows(cells),
                scale,
                effect=described.form.of_several,
                from_zero=not described.base,
                quantiles=not described.form.family,
            )
        )
    return drawn


def _check_column(column: Hashable, labels: Sequence[Hashable]) -> None:
    """Refuse what is no released column, and say which may be meant."""
    if not is_one_of(column, labels):
        rule = f"must be one of the released columns {list(labels)}"
        base = str(column).removesuffix("_percent")
        way_out = did_you_mean(column, labels).strip()
        if base != str(column) and base in labels:
            way_out = f"Percentages are drawn by column={base!r}, percent=True, before rows go."
        raise UnknownColumnError.about("column", rule, column, way_out)


def _gather_quotients(
    shown: Shown, column: Hashable | None, level: float, per: Hashable | None, *, sampling: bool
) -> list[Drawn]:
    """Gather quotients of two released columns; without the second, percentages of the total."""
    level, labels = check_level(level), list(shown.frame.columns)
    label = labels[0] if column is None and (per is not None or len(labels) == 1) else column
    if label is not None:
        _check_column(label, labels)
    link: Link = PercentLink("percent", (), None, None)
    if per is None:
        check_people(shown, "percent")
    else:
        if not is_one_of(per, labels):
            rule = f"must be the label of one of the columns released, {labels!r}"
            raise QueryError.about("per", rule, per)
        parts = shown.certificate.releases[0].columns
        names = [part.name for part in parts]
        if not parts[[shown_label == per for shown_label in labels].index(True)].form.is_total:
            raise no_total("per", per)
        link = RatioLink("ratio", names[[shown_label == per for shown_label in labels].index(True)])
        if per == label:
            raise QueryError.about("per", "must be another column than in column=", per)
    tables = [
        numbers_shown(shown, link, label, level, sampling=sampled)
        for sampled in [False, True][: 1 + sampling]
    ]
    ends = [table[["low", "high"]].to_numpy(np.float64).T for table in tables]
    value, (low, high) = tables[0]["estimate"].to_numpy(np.float64), ends[0]
    cells = pd.DataFrame({"value": value, "low": low, "high": high}, shown.table.index)
    for outer_low, outer_high in ends[1:]:
        cells["sampled_low"] = np.minimum(outer_low, low)
        cells["sampled_high"] = np.maximum(outer_high, high)
    behind = " (% of the total)" if per is None else f" / {text(per)}"
    return [Drawn(label, f"{text(label)}{behind}", _with_arrows(cells))]


def is_distribution(shown: Shown) -> bool:
    """Whether a table holds all numbers of rows in ranges, in rows."""
    first, *others = shown.certificate.releases
    read = not first.columns[0].features
    complete = shown.layout.rows is not None and len(shown.rows) == shown.opened.rows
    return isinstance(first.mechanism, TreePart) and not others and not read and complete


def gather_distribution(shown: Shown, level: float, *, sampling: bool) -> list[Drawn]:
    """Gather the numbers of rows below the edges of ranges, made increasing, with intervals."""
    release, released = whole_release(shown, "plot"), shown.frame
    ranges = distribution_of(released, release, "plot")
    below = below_edges(ranges.rows)
    value = risen(below)
    errors = deviations(ranges.known, len(ranges.bins), [0.0])
    width = release.noise.distribution.quantile(check_level(level)) * errors + ENDS_OF_ROUNDING
    low, high = np.minimum(below - width, value), np.maximum(below + width, value)
    parts = {"value": value, "low": low, "high": high}
    if sampling:
        check_sampled(release, list(release.columns))
        wide = widen(width, errors, below, level)
        parts["sampled_low"] = np.minimum(np.maximum(below - wide, 0), low)
        parts["sampled_high"] = np.maximum(below + wide, high)
    edges, groups = ranges.edges, ranges.groups
    levels = [edges[np.tile(np.arange(len(edges)), len(below))]]
    if groups is not None:
        above = [groups.get_level_values(at) for at in range(groups.nlevels)]
        levels = [*(keys.repeat(len(edges)) for keys in above), *levels]
    index: pd.Index = pd.MultiIndex.from_arrays(levels, names=released.index.names)
    if groups is None:
        index = index.get_level_values(0)
    cells = pd.DataFrame({part: np.ravel(ends) for part, ends in parts.items()}, index=index)
    label: Hashable = released.columns[0]
    return [Drawn(label, f"{text(label)} below", cells)]


def together(drawn: list[Drawn], name: Hashable) -> Drawn:
    """Make one column of several: their labels become the outermost keys.

    Raises
    ------
    QueryError
        If they are not on one scale.
    """
    first = drawn[0]
    if len({column.scale for column in drawn}) > 1:
        rule = "draws numbers, or times of one length, on one axis, and these are several kinds"
        way_out = "Leave it out, or choose others with column=."
        raise QueryError.about("subplots", rule, False, way_out)
    tables = [column.cells.drop(columns="denoised", errors="ignore") for column in drawn]
    names = [name, *first.cells.index.names]
    labels = pd.Index([column.label for column in drawn], tupleize_cols=False)
    cells = pd.concat(tables, keys=labels, names=names)
    flags = {
        name: all(getattr(column, name) for column in drawn)
        for name in ("effect", "from_zero", "quantiles")
    }
    return Drawn(None, first.scale.name(""), cells, first.scale, **flags)


def _with_arrows(cells: pd.DataFrame) -> pd.DataFrame:
    """Where an interval has no end, give it one beyond all others, and an arrow."""
    shown = [name for name in cells if name != "denoised"]
    numbers = cells[shown].to_numpy()
    finite = numbers[np.isfinite(numbers)]
    if not np.isinf(numbers).any():
        return cells
    first, last = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    beyond = _BEYOND * (last - first) or max(abs(last), 1.0) / 2
    low, high = cells[shown[-2]], cells[shown[-1]]  # of noise alone, or with sampled rows
    arrows = {
        "below": np.where(np.isneginf(low), first - beyond, np.nan),
        "above": np.where(np.isposinf(high), last + beyond, np.nan),
    }
    return cells.assign(**cells[shown].clip(first - beyond, last + beyond), **arrows)


@frozen(eq=False)
class Places:
    """Where keys stand along an axis.

    Parameters
    ----------
    at
        A place per key.
    room
        How wide a bar may be, one number or one per key.
    scale
        What the places stand for.
    labels
        A text per key, where they stand one by one.
    bins
        Left and right ends of keys that are bins.
    """

    at: np.ndarray
    room: float | np.ndarray = _BAR
    scale: Scale = NUMBERS
    labels: list[str] | None = None
    bins: tuple[np.ndarray, np.ndarray] | None = None


def place(keys: Sequence[Any], *, numbers: bool = False) -> Places:
    """Let keys that are times stand on a scale, others in their order with labels.

    Bins that do not overlap stand at their middles, a period at its start, a date at its midnight.
    Numbers, and bins of them, stand on a scale if that is asked for.
    """
    labels = [text(key) for key in keys]
    if all(isinstance(key, pd.Interval) for key in keys):
        placed = _on_scale([end for key in keys for end in (first_edge(key), key.right)])
        if (
            placed is not None
            and np.isfinite(placed[0]).all()
            and len({k.closed for k in keys}) == 1
        ):
            left, right = placed[0].reshape(-1, 2).T
            bins = pd.IntervalIndex.from_arrays(left, right, closed="neither")
            if (
                not bins.is_overlapping
                and (left < right).all()
                and (numbers or placed[1] != NUMBERS)
            ):
                room = _BAR * (right - left)
                return Places((left + right) / 2, room, placed[1], bins=(left, right))
    placed = _on_scale(keys)
    if placed is None or not (numbers or placed[1] != NUMBERS):
        return Places(np.arange(len(keys)), labels=labels)
    gaps = np.diff(np.unique(placed[0]))
    return Places(
        placed[0], _BAR * float(gaps.min(initial=np.inf)) if len(gaps) else _BAR, placed[1]
    )


def _on_scale(keys: Sequence[Any]) -> tuple[np.ndarray, Scale] | None:
    """Turn keys into places, if all are points in time of one kind, durations, or numbers."""
    try:
        starts = [key.start_time if isinstance(key, pd.Period) else key for key in keys]
    except ValueError:  # a period out of range
        return None
    moments = [as_moment(start) for start in starts]
    times = [moment for moment in moments if moment is not None and in_use(moment)]
    kinds = {(type(time), getattr(time, "tzinfo", None) is None) for time in times}
    if keys and len(times) == len(keys) and len(kinds) == 1:
        (at,), scale = to_numbers([index_of(times)])
        return at, scale
    are_numbers = all(
        isinstance(key, Real | np.integer) and not isinstance(key, bool | np.bool_) for key in keys
    )
    at = np.array(keys if are_numbers else [], np.float64)
    return (at, NUMBERS) if len(at) and not np.isnan(at).any() else None


def text(key: object) -> str:
    """Show a key: times without what is zero, and nothing that a renderer would obey.

    Examples
    --------
    >>> text((pd.Timestamp("2020-01-01"), "A")), text(pd.Interval(pd.Timestamp(0), pd.Timestamp(1)))
    ('2020-01-01, A', '(1970-01-01, 1970-01-01 00:00:00.000000001]')
    """
    if isinstance(key, tuple):
        return ", ".join(map(text, key))
    if isinstance(key, pd.Interval):
        opening, closing = "[("[not key.closed_left], "])"[not key.closed_right]
        return f"{opening}{text(key.left)}, {text(key.right)}{closing}"
    shown = visible(str(key))
    if isinstance(key, date | pd.Timedelta):
        shown = shown.removesuffix(" 00:00:00")
    if isinstance(key, pd.Timedelta):
        shown = shown.removeprefix("0 days ")
    return shorten(shown, _LONGEST)


def shorten(label: str, most: int) -> str:
    """Leave out the middle of a label that is longer than so many characters: ends often differ."""
    end = most // 3
    cut = f"{label[: most - 1 - end].rstrip()}\N{HORIZONTAL ELLIPSIS}{label[-end:].lstrip()}"
    return label if len(label) <= most else cut
