"""What the numbers along an axis stand for: numbers, durations in a unit, or points in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd

from dpframe.plotting.look import inches, tune
from dpframe.queries.timescale import Moment, microseconds

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
_FEWEST, _MOST = 3, 8  # ticks of dates
_PER_TICK = 0.3  # inches


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

    def named(self, name: str) -> str:
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
        most = int(np.clip(inches(axis) / _PER_TICK, _FEWEST, _MOST))
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
