"""Where the keys of a released frame stand along an axis: one by one, or on a scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.plotting.look import inches, tune
from dpframe.queries.edges import first_edge
from dpframe.queries.timescale import Moment, as_moment, in_use, microseconds

_DAY = 86_400
_UNITS = {
    "days": _DAY,
    "hours": 3_600,
    "minutes": 60,
    "seconds": 1,
    "milliseconds": 1e-3,
    "microseconds": 1e-6,
}
_FEW = 3  # units of which there are fewer are too long
_FEWEST, _MOST = (3, 5), 8  # ticks of dates, beside and above each other
_PER_TICK = 0.3, 0.2  # inches


@dataclass(frozen=True)
class Scale:
    """The meaning of the numbers along an axis.

    Parameters
    ----------
    unit
        The unit of durations; empty for others.
    points
        Whether they are points in time, as matplotlib counts them.
    zone
        The time zone in which points in time are shown.
    whole
        Whether they are whole numbers.
    """

    unit: str = ""
    points: bool = False
    zone: tzinfo | None = None
    whole: bool = False

    @property
    def seconds(self) -> float:
        """How many seconds one is, of durations and of points in time."""
        return _UNITS[self.unit] if self.unit else _DAY

    def with_unit(self, name: str) -> str:
        """Put the unit or the time zone behind the name of an axis."""
        beside = str(self.zone) if self.zone is not None else self.unit
        return f"{name} ({beside})".strip() if beside else name

    def dress(self, axis: Any) -> None:
        """Give an axis of matplotlib the ticks of dates or of whole numbers."""
        if self.whole:
            tune(axis, integer=True)
        if not self.points:
            return
        dates = _dates()
        first, last = dates.date2num([datetime.min, datetime.max])
        shown = np.clip(view := axis.get_view_interval(), first + 1, last - 1)  # in any zone
        if (shown != view).any():  # margins reach beyond all dates
            getattr(axis.axes, f"set_{axis.axis_name}lim")(shown)
        above = axis.axis_name == "y"  # where each takes a line
        most = int(np.clip(inches(axis) / _PER_TICK[above], _FEWEST[above], _MOST))
        fewest = (most - 1) // 2  # with more, some spans would have no interval, and a warning
        locator = dates.AutoDateLocator(tz=self.zone, minticks=fewest, maxticks=most)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=self.zone))


NUMBERS = Scale()
"""Numbers as they are."""


def duration_scale(durations: np.ndarray) -> Scale:
    """Choose the unit of durations in seconds: the longest that the largest holds some times."""
    largest = np.abs(durations[np.isfinite(durations)]).max(initial=0)
    fitting = [unit for unit, length in _UNITS.items() if largest >= _FEW * length]
    return Scale(unit=fitting[0] if fitting else "seconds" if not largest else [*_UNITS][-1])


def seconds_along(seconds: np.ndarray, origin: int, scale: Scale) -> np.ndarray:
    """Turn seconds, from an origin in microseconds since 1970 for points in time, into places."""
    if not scale.points:
        return np.asarray(seconds / scale.seconds)
    since = float(_dates().date2num(np.datetime64(0, "s")))
    return np.asarray(since + (origin / 1e6 + seconds) / _DAY)


def moments_along(found: Sequence[Moment]) -> tuple[np.ndarray, Scale]:
    """Turn moments of one kind into places, points in time in the zone of the first."""
    counted = np.array([microseconds(moment) for moment in found], np.int64)
    if isinstance(found[0], pd.Timedelta):
        scale = duration_scale(counted / 1e6)
        return counted / 1e6 / scale.seconds, scale
    return _dates().date2num(counted.view("M8[us]")), Scale(points=True, zone=found[0].tzinfo)


def _dates() -> Any:
    """Import what matplotlib knows of dates."""
    from matplotlib import dates  # optional, and slow to import

    return dates


_MOST_CHARACTERS = 40
_BAR = 0.8  # of the room of a key


@dataclass(frozen=True, eq=False)
class Places:
    """Where keys stand.

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
    left, right
        The ends of keys that are bins.
    """

    at: np.ndarray
    room: float | np.ndarray
    scale: Scale
    labels: Sequence[str] | None = None
    left: np.ndarray | None = None
    right: np.ndarray | None = None


def one_by_one(keys: Sequence[Any]) -> Places:
    """Let keys stand in their order, each with its label."""
    return Places(np.arange(len(keys)), _BAR, NUMBERS, labels=[text(key) for key in keys])


def scale_of_times(keys: Sequence[Any], *, numbers: bool = False) -> Places | None:
    """Let keys that are times stand on an axis of time; `None` for others.

    Bins that do not overlap stand at their middles, a period at its start, and a date at its
    midnight. Numbers stand on an axis of numbers if that is asked for.
    """
    bins = bins_along(keys)
    if bins is not None:
        on_scale = bins.scale is not NUMBERS or (numbers and bool(np.isfinite(bins.at).all()))
        return bins if on_scale else None
    along = _times_along([_start(key) for key in keys])
    if along is None and numbers:
        along = _numbers_along(keys)
        if along is not None and (along[0] % 1 == 0).all():
            along = along[0], Scale(whole=True)
    if along is None:
        return None
    at, scale = along
    gaps = np.diff(np.unique(at))
    return Places(at, _BAR * float(gaps.min(initial=np.inf)) if len(gaps) else _BAR, scale)


def bins_along(keys: Sequence[Any]) -> Places | None:
    """Let intervals stand on their axis, if they have a finite end and do not overlap."""
    if not keys or not all(isinstance(key, pd.Interval) for key in keys):
        return None
    if len({key.closed for key in keys}) != 1:
        return None
    ends = [end for key in keys for end in (first_edge(key), key.right)]
    along = _times_along(ends) or _numbers_along(ends)
    if along is None:
        return None
    left, right = along[0][::2], along[0][1::2]
    bins = pd.IntervalIndex.from_arrays(left, right, closed="neither")
    if bins.is_overlapping or not (left < right).all():
        return None
    if not np.isfinite([left, right]).any(axis=0).all():
        return None
    with np.errstate(invalid="ignore"):
        return Places((left + right) / 2, _BAR * (right - left), along[1], left=left, right=right)


def _start(key: object) -> object:
    """Return when a period begins, and other keys as they are."""
    if not isinstance(key, pd.Period):
        return key
    try:
        return key.start_time
    except ValueError:  # out of range
        return None


def _times_along(keys: Sequence[object]) -> tuple[np.ndarray, Scale] | None:
    """Turn keys into places in time, if all are points in time of one kind, or durations."""
    found: list[Moment] = []
    for key in keys:
        moment = as_moment(key)
        if moment is None or not in_use(moment):
            return None
        found.append(moment)
    kinds = {
        (isinstance(moment, pd.Timedelta), getattr(moment, "tzinfo", None) is None)
        for moment in found
    }
    return moments_along(found) if len(kinds) == 1 else None


def _numbers_along(keys: Sequence[object]) -> tuple[np.ndarray, Scale] | None:
    """Turn keys into numbers, if all are."""
    if not keys or not all(
        isinstance(key, Real | np.integer) and not isinstance(key, bool | np.bool_) for key in keys
    ):
        return None
    numbers = np.array([float(key) for key in keys])  # type: ignore[arg-type]
    return None if np.isnan(numbers).any() else (numbers, NUMBERS)


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
    if isinstance(key, date) and shown.endswith(" 00:00:00"):
        shown = shown.removesuffix(" 00:00:00")
    if isinstance(key, pd.Timedelta):
        shown = shown.removesuffix(" 00:00:00").removeprefix("0 days ")
    return shorten_label(shown, _MOST_CHARACTERS)


def shorten_label(label: str, most: int) -> str:
    """Leave out the middle of a label that is longer than so many characters: ends often differ."""
    end = most // 3
    cut = f"{label[: most - 1 - end].rstrip()}\N{HORIZONTAL ELLIPSIS}{label[-end:].lstrip()}"
    return label if len(label) <= most else cut


def names_of(names: Sequence[Any]) -> str:
    """Show the names of keys."""
    return ", ".join(text(name) for name in names if name is not None)
