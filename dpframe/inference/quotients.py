"""Quotients of noisy numbers: all that a test does not reject."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.half_widths import ROUNDING, Rows, narrow


class ErrorOfSum(Protocol):
    """The error of a sum of two released numbers, in some rows."""

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say how far it is beyond the level that the sum is that far off: at most 0 if it may be.

        Where these are some rows of a table, `rows` is how many it has.
        """


Noise: TypeAlias = Callable[[np.ndarray, np.ndarray, Rows], ErrorOfSum]

# where a quotient is looked for between what fits best and an end: close to it, then evenly
_BETWEEN = np.concatenate([0.25 ** np.arange(14, 1, -1), np.linspace(0.125, 1, 8)])


@frozen(eq=False)
class Quotients:
    """Quotients of two released numbers in every row."""

    top: np.ndarray
    bottom: np.ndarray
    least: float | np.ndarray  # what is divided by where the lower number is smaller
    span: tuple[float, float]  # where the quotients lie, whatever the data hold
    unit: float  # about how large they are
    noise: Noise  # from a and b to the error of `a x - b y`, in some rows
    by_row: bool = False  # whether the noise in a row depends on a and b of the row alone


def estimate_quotients(
    quotient: Quotients, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return quotients, and the ends of their intervals at a level."""
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        low, high = quotient_interval(quotient, level)
        least, bottom = quotient.least, quotient.bottom
        bottom = np.where(np.abs(bottom) < least, np.copysign(least, bottom), bottom)
        first, last = quotient.span
        bottom = np.maximum(bottom, least) if first > -np.inf else bottom
        estimate = np.clip(np.clip(quotient.top / bottom, first, last), low, high)
    return estimate, low, high


def quotient_interval(quotient: Quotients, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of all quotients that are not rejected.

    Where all are, as the upper number is beyond what is possible for the lower one, it counts as
    the nearest that is possible. Quotients are angles, `r = unit tan(t)`, so that an end can be
    infinite. Between the r that fits best and an end of what is possible, those not rejected are
    nearly always those up to some r: half-widths are convex, or nearly so. They are looked for at
    some places, from the ends inwards, and their border is then found between two of these.
    """
    excess = _test(quotient, level)
    places, accepted = _places(quotient, excess, slice(None))
    beyond = ~accepted.any(axis=0) & (quotient.bottom > 0)
    nearest = np.clip(quotient.top, *(end * quotient.bottom for end in quotient.span))
    rows = np.flatnonzero(beyond & (nearest != quotient.top))
    if len(rows):
        quotient = replace(quotient, top=np.where(beyond, nearest, quotient.top))
        excess = _test(quotient, level)
        places[:, rows], accepted[:, rows] = _places(quotient, excess, rows)
    none = ~accepted.any(axis=0)
    columns, final = np.arange(places.shape[1]), len(places) - 1
    start, end = accepted.argmax(axis=0), final - accepted[::-1].argmax(axis=0)
    below, above = np.maximum(start - 1, 0), np.minimum(end + 1, final)
    by_row = quotient.by_row
    lowest = narrow(excess, places[below, columns], places[start, columns], by_row=by_row)
    highest = narrow(excess, places[above, columns], places[end, columns], by_row=by_row)
    low = np.where(none | (start == 0), quotient.span[0], quotient.unit * np.tan(lowest))
    high = np.where(none | (end == final), quotient.span[1], quotient.unit * np.tan(highest))
    return np.maximum(low, quotient.span[0]), np.minimum(high, quotient.span[1])


def _places(
    quotient: Quotients, excess: Callable[[np.ndarray, Rows], np.ndarray], rows: Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Return places from end to end, as angles, and where they are not rejected."""
    first, last = (np.arctan(end / quotient.unit) for end in quotient.span)
    best = np.arctan(quotient.top[rows] / (quotient.unit * quotient.bottom[rows]))
    best = np.clip(np.where(np.isnan(best), first, best), first, last)
    low = best + (first - best) * _BETWEEN[::-1, None]
    high = best + (last - best) * _BETWEEN[:, None]
    places = np.concatenate([low, best[None], high])
    return places, np.array([excess(t, rows) <= 0 for t in places])


def _test(quotient: Quotients, level: float) -> Callable[[np.ndarray, Rows], np.ndarray]:
    def excess(t: np.ndarray, rows: Rows) -> np.ndarray:
        a, b = np.cos(t), quotient.unit * np.sin(t)
        top, bottom = a * quotient.top[rows], b * quotient.bottom[rows]
        off = np.abs(top - bottom)
        off = np.where(off > ROUNDING * (np.abs(top) + np.abs(bottom)), off, 0.0)
        beyond = quotient.noise(a, b, rows).excess(off, level, len(quotient.top))
        return np.where(np.isnan(beyond), np.inf, beyond)

    return excess


_HALVINGS = 40  # so that an end is off by no more than 1 part in 10^12


class StraightTest(NamedTuple):
    """A test of quotients, which keeps those for which |top - r bottom| is at most a width."""

    top: np.ndarray
    bottom: np.ndarray
    nodes: np.ndarray
    widths: np.ndarray

    def border(self, kept: np.ndarray, side: Literal[-1, 1]) -> np.ndarray:
        """Return the last place that is rejected on the way from one that is kept to an end.

        The nodes around it are found by halving; there, the test is a line.
        """
        last = len(self.nodes) - 1
        place = np.searchsorted(self.nodes, kept, "right" if side > 0 else "left")
        inner = np.clip(place - (side > 0), 0, last)
        outer = np.full_like(inner, last if side > 0 else 0)
        while (apart := np.abs(outer - inner) > 1).any():
            middle = (inner + outer) // 2
            distance = np.abs(self.top - self.nodes[middle] * self.bottom)
            rejected = distance > self.widths[middle]
            outer = np.where(apart & rejected, middle, outer)
            inner = np.where(apart & ~rejected, middle, inner)
        start, end = self.nodes[inner], self.nodes[outer]
        distance = self.top - end * self.bottom
        far = np.abs(distance) - self.widths[outer]
        near = np.sign(distance) * (self.top - start * self.bottom) - self.widths[inner]
        span = self.nodes[-1] - self.nodes[0]
        step = side * span * 2.0**-_HALVINGS  # outwards, as digits are few
        at = end - far / (far - near) * (end - start) + step
        at = np.where(np.isfinite(at), at, end)
        return np.clip(at, np.minimum(kept, end), np.maximum(kept, end))


def part_of(loadings: Mapping[str, float | np.ndarray], block: str, rows: Rows) -> Any:
    """Return what the noise of a block does to some rows."""
    part = loadings.get(block, 0.0)
    return part[rows] if isinstance(part, np.ndarray) and part.ndim else part


def span_of_signs(top: tuple[float, float], bottom: tuple[float, float]) -> tuple[float, float]:
    """Return where a quotient lies, from the signs that its two numbers may have."""
    if bottom[0] < 0:
        return -np.inf, np.inf
    return (0.0 if top[0] >= 0 else -np.inf), (0.0 if top[1] <= 0 else np.inf)


def unit_of(span: tuple[float, float], above: np.ndarray, below: np.ndarray) -> float:
    """Say how large a quotient may be, or that of the errors where it has no end."""
    largest = max(map(abs, span))
    if 0 < largest < np.inf:
        return largest
    errors = float(np.max(above)), float(np.max(below))
    return errors[0] / errors[1] if all(errors) else 1.0
