"""Tests of quotients, inverted for intervals that hold however small the numbers are.

A quotient `r = x / y` is what makes `x - r y` zero. So r is in the interval when the released
`X - r Y` is no further from 0 than the noise of that very combination reaches: the test is inverted
(Fieller 1954), in place of a first-order error, which fails where Y is not far from 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpframe.accuracy.bisect import border
from dpframe.certificates.certificate import Certificate
from dpframe.privacy.sums import norm

Parts: TypeAlias = dict[str, float | np.ndarray]
Noise: TypeAlias = Callable[[np.ndarray, np.ndarray], tuple[Parts, Parts | None]]

# where a quotient is looked for between what fits best and an end: close to it, then evenly
_BETWEEN = np.concatenate([0.25 ** np.arange(14, 1, -1), np.linspace(0.125, 1, 8)])


@dataclass(frozen=True, eq=False)
class Quotients:
    """Quotients of two released numbers in every row.

    Parameters
    ----------
    top, bottom
        The released numbers.
    least
        What is divided by where the lower number is smaller.
    span
        Where the quotients lie, whatever the data hold.
    unit
        About how large they are.
    noise
        From a and b to what the noise of the blocks does to `a x - b y`, and the largest parts.
    """

    top: np.ndarray
    bottom: np.ndarray
    least: float | np.ndarray
    span: tuple[float, float]
    unit: float
    noise: Noise


def estimated(
    released: pd.DataFrame, certificate: Certificate, quotient: Quotients, level: float
) -> pd.DataFrame:
    """Estimate quotients, with their errors and intervals.

    Parameters
    ----------
    released
        The table, for its rows.
    certificate
        Where the noise comes from.
    quotient
        What is divided by what.
    level
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        With `estimate`, `std_error`, `low` and `high`.
    """
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        low, high = _interval(certificate, quotient, level)
        bottom = np.where(
            np.abs(quotient.bottom) < quotient.least,
            np.copysign(quotient.least, quotient.bottom),
            quotient.bottom,
        )
        first, last = quotient.span
        bottom = np.maximum(bottom, quotient.least) if first > -np.inf else bottom
        estimate = np.clip(np.clip(quotient.top / bottom, first, last), low, high)
        one = np.ones(len(estimate))
        parts, _ = quotient.noise(one, estimate)
        error = np.minimum(norm(parts.values()) / np.abs(bottom), last - first)
    columns = {"estimate": estimate, "std_error": error, "low": low, "high": high}
    return pd.DataFrame(columns, index=released.index)


def _interval(
    certificate: Certificate, quotient: Quotients, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of all quotients that are not rejected.

    They are angles, `r = unit tan(t)`, so that an end can be infinite. Between the r that fits best
    and an end of what is possible, those not rejected are nearly always those up to some r: half-
    widths are convex, or nearly so. They are looked for at some places, from the ends inwards, and
    their border is then halved in.
    """
    accepts = _test(certificate, quotient, level)
    first, last = (np.arctan(end / quotient.unit) for end in quotient.span)
    best = np.arctan(quotient.top / (quotient.unit * quotient.bottom))
    best = np.clip(np.where(np.isnan(best), first, best), first, last)
    low = best + (first - best) * _BETWEEN[::-1, None]
    high = best + (last - best) * _BETWEEN[:, None]
    places = np.concatenate([low, best[None], high])
    accepted = np.array([accepts(t) for t in places])
    none = ~accepted.any(axis=0)
    columns = np.arange(len(best))
    start = accepted.argmax(axis=0)
    end = len(places) - 1 - accepted[::-1].argmax(axis=0)
    below, above = np.maximum(start - 1, 0), np.minimum(end + 1, len(places) - 1)
    ends = [
        border(accepts, places[outside, columns], places[inside, columns])
        for outside, inside in ((below, start), (above, end))
    ]
    low = np.where(none | (start == 0), quotient.span[0], quotient.unit * np.tan(ends[0]))
    high = np.where(
        none | (end == len(places) - 1), quotient.span[1], quotient.unit * np.tan(ends[1])
    )
    return np.maximum(low, quotient.span[0]), np.minimum(high, quotient.span[1])


def _test(
    certificate: Certificate, quotient: Quotients, level: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the test of quotients, given as angles."""
    mechanism = certificate.mechanism
    groups = mechanism.drawn_together(certificate.query.cells, certificate.common_blocks)
    law = mechanism.distribution

    def accepts(t: np.ndarray) -> np.ndarray:
        a, b = np.cos(t), quotient.unit * np.sin(t)
        parts, largest = quotient.noise(a, b)
        off = np.abs(a * quotient.top - b * quotient.bottom)
        return law.sum_holds(off, parts, mechanism.scales, level, largest=largest, groups=groups)

    return accepts
