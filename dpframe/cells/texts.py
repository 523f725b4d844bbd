"""How people read released numbers: the digits that the noise leaves, and units of time."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np
import pandas as pd

from dpframe.certificates.definitions import End

_PLACES = 6  # digits after the point, at most
_HUGE = 1e15  # numbers from here on are shown with an exponent
_UNITS_OF_TIME = {"days": 86_400.0, "h": 3_600.0, "min": 60.0, "s": 1.0}
_FEWEST = 2  # of a unit, or the next smaller one is shown
_EXACT = 15  # digits of a decimal number that a float keeps
_SHORT = 6  # digits of a number without an error
_OUTWARD = {"low": ROUND_FLOOR, "high": ROUND_CEILING}


def decimals(half_width: float) -> int:
    """Return how many digits after the point an error of a number leaves: two that it moves.

    Examples
    --------
    >>> [decimals(width) for width in (0.03, 4, 250)]
    [3, 1, 0]
    """
    if not 0 < half_width < math.inf:
        return 0
    return min(max(1 - math.floor(math.log10(half_width)), 0), _PLACES)


def unit_of_time(seconds: float) -> tuple[str, float]:
    """Return a unit that a person reads durations of a size in, and how many seconds it has.

    Examples
    --------
    >>> unit_of_time(4_511.8), unit_of_time(6_661_526)
    (('min', 60.0), ('days', 86400.0))
    """
    units = (unit for unit in _UNITS_OF_TIME.items() if abs(seconds) >= _FEWEST * unit[1])
    return next(units, ("ms", 1e-3))


def number_text(
    value: object, half_width: float | None, largest: float = 0.0, end: End | None = None
) -> str:
    """Show a number with as many digits as its error leaves, or whatever else it is.

    Durations, and the error of one, count in seconds; all up to a largest one are shown alike.
    Ends of intervals are rounded to the outside.

    Examples
    --------
    >>> number_text(316.845425, 12.5), number_text(pd.Timedelta(4_511.8, "s"), 91)
    ('317', '75.2 min')
    >>> number_text(316.2, 12.5, end="high")
    '317'
    """
    if value is None or value is pd.NaT or value is pd.NA or value != value:  # noqa: PLR0124
        return ""
    if isinstance(value, pd.Timedelta):
        name, unit = unit_of_time(largest or value.total_seconds())
        width = None if half_width is None else half_width / unit
        return f"{number_text(value.total_seconds() / unit, width, end=end)} {name}"
    if not isinstance(value, int | float | np.number):
        return str(value)
    number = float(value)
    if abs(number) < _HUGE and isinstance(value, int | np.integer):
        return f"{value:,}"
    has_error = half_width is not None and 0 < half_width < math.inf
    if has_error and abs(number) < _HUGE:
        places = decimals(half_width or 0)
        return f"{_outward(number, end, places):,.{places}f}"
    number = _outward(number, end)
    return f"{number:,.6g}" if abs(number) < _HUGE else f"{number:.6g}"


def _outward(number: float, end: End | None, places: int | None = None) -> float:
    """Round an end of an interval to the outside, to places after the point or to six digits."""
    if end is None or not math.isfinite(number):
        return number
    exact, rounding = Decimal(f"{number:.{_EXACT}g}"), _OUTWARD[end]
    if places is None:
        return float(Context(prec=_SHORT, rounding=rounding).plus(exact))
    return float(exact.quantize(Decimal(1).scaleb(-places), rounding=rounding)) + 0.0  # no -0
