"""What a report shows of released numbers: digits that the noise leaves, intervals and bars."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpframe.queries.timescale import in_seconds

MOST_ROWS = 200
"""Rows of a table that are shown."""

_PLACES = 6  # digits after the point, at most
_HUGE = 1e15  # numbers from here on are shown with an exponent
_WIDTH = 100.0  # of a drawing, in units of its own
_ALL = 100  # an interval of percentages that says nothing


@dataclass(frozen=True)
class Bar:
    """A value and its interval as places on a line of width 100.

    Parameters
    ----------
    zero, value, low, high
        The places.
    inner_low, inner_high
        Those of the interval for the noise alone, where the other one holds the error of a sample.
    """

    zero: float
    value: float
    low: float
    high: float
    inner_low: float | None = None
    inner_high: float | None = None

    @property
    def start(self) -> float:
        """Where the bar begins."""
        return min(self.zero, self.value)

    @property
    def width(self) -> float:
        """How wide the bar is."""
        return abs(self.value - self.zero)


@dataclass(frozen=True)
class CellView:
    """One released number.

    Parameters
    ----------
    value
        The number; empty where it is missing.
    interval
        Its interval; empty where there is none.
    bar
        Both as a drawing, if there is an interval.
    drowned
        Whether the noise may be as large as the number.
    percent
        Its percentage of the total, with an interval; empty where that was not asked for.
    """

    value: str
    interval: str = ""
    bar: Bar | None = None
    drowned: bool = False
    percent: str = ""


def cells_of(
    values: pd.Series,
    ends: pd.DataFrame | None,
    origin: int | None,
    percents: Sequence[str] | None,
    inner: pd.DataFrame | None = None,
) -> list[CellView]:
    """Return the cells of a released column; inner ends are those for the noise alone."""
    shown = values.iloc[:MOST_ROWS]
    percents = [""] * len(shown) if percents is None else percents
    if ends is None:
        pairs = zip(shown, percents, strict=True)
        return [CellView(number_text(value, None), percent=share) for value, share in pairs]
    low, high = (ends.iloc[:MOST_ROWS, side] for side in (0, 1))
    alone = [] if inner is None else [inner.iloc[:MOST_ROWS, side] for side in (0, 1)]
    parts = (shown, low, high, *alone)
    numbers = np.array([in_seconds(part, origin) for part in parts], np.float64)
    cells = []
    rows = zip(shown, low, high, strict=True)
    for texts, number, bar, share in zip(rows, numbers.T, _bars(numbers), percents, strict=True):
        width = (number[2] - number[1]) / 2
        value, lowest, highest = (number_text(text, width) for text in texts)
        within = f"{lowest} to {highest}" if value and lowest else ""
        drowned = origin is None and bool(width >= abs(number[0]))
        cells.append(CellView(value, within, bar, drowned, share))
    return cells


def percent_texts(of_total: pd.DataFrame) -> list[str]:
    """Show percentages with their intervals; nothing where a cell is left out."""
    shown = of_total.iloc[:MOST_ROWS].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    return [_percent_text(*row) for row in shown[:, -3:]]


def _percent_text(estimate: float, low: float, high: float) -> str:
    if math.isnan(estimate):
        return ""
    if not high - low < _ALL:
        return "unknown"
    return f"{estimate:.1f} % ({low:.1f} to {high:.1f})"


def _bars(numbers: np.ndarray) -> list[Bar | None]:
    """Return drawings of values and intervals on one scale, which holds 0."""
    finite = numbers[np.isfinite(numbers)]
    least, most = min(finite.min(initial=0.0), 0.0), max(finite.max(initial=0.0), 0.0)
    if not 0 < most - least < math.inf:
        return [None] * numbers.shape[1]
    places = _WIDTH * (numbers - least) / (most - least)
    zero = _WIDTH * -least / (most - least)
    return [Bar(zero, *place.round(2)) if np.isfinite(place).all() else None for place in places.T]


def number_text(value: object, half_width: float | None) -> str:
    """Show a number with as many digits as its error leaves, or whatever else it is."""
    if value is None or value is pd.NaT or value is pd.NA or value != value:  # noqa: PLR0124
        return ""
    if not isinstance(value, int | float | np.number):
        return str(value)
    number = float(value)
    if not math.isfinite(number) or abs(number) >= _HUGE:
        return f"{number:.6g}"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if half_width is None or not 0 < half_width < math.inf:
        return f"{number:,.6g}"
    places = min(max(1 - math.floor(math.log10(half_width)), 0), _PLACES)
    return f"{number:,.{places}f}"
