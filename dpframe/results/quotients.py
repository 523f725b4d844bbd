"""Quotients of released cells, with intervals that hold however small the numbers are.

A quotient `r = x / y` is what makes `x - r y` zero. So r is in the interval when the released
`X - r Y` is no further from 0 than the noise of that very combination reaches: the test is inverted
(Fieller 1954), in place of a first-order error, which fails where Y is not far from 0.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of, shown
from dpframe.calls import with_keywords
from dpframe.errors import QueryError
from dpframe.privacy.accuracy import check_level
from dpframe.privacy.sums import norm
from dpframe.queries.timescale import in_seconds
from dpframe.results.border import border
from dpframe.results.certificate import Certificate, verify
from dpframe.results.computed import noted
from dpframe.results.measured_together import check_apart, errors_of_shares
from dpframe.results.record_noise import ColumnPart
from dpframe.results.taken import CELLS_AS_RELEASED, FEWER_ROWS, check_before

__all__ = ["column_of_shares", "percent", "ratio"]

_Parts: TypeAlias = dict[str, float | np.ndarray]
_Noise: TypeAlias = Callable[[np.ndarray, np.ndarray], tuple[_Parts, _Parts | None]]

# where a quotient is looked for between what fits best and an end: close to it, then evenly
_BETWEEN = np.concatenate([0.25 ** np.arange(14, 1, -1), np.linspace(0.125, 1, 8)])


@dataclass(frozen=True, eq=False)
class _Quotient:
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
    least: float
    span: tuple[float, float]
    unit: float
    noise: _Noise


@with_keywords
def ratio(
    released: pd.DataFrame, numerator: Hashable, denominator: Hashable, level: float = 0.95
) -> pd.DataFrame:
    """Return the quotient of two released columns in every row, with error and interval.

    The interval holds every r for which `|X - r Y|` is at most the half-width for the noise of
    `x - r y`, with the covariance of the two columns: of two Laplace noises by the exact law of
    their sum. It is kept within what is public of the quotient: a count of some rows is at most the
    count of all, a sum at most so many times the upper bound. It covers at least as often as it
    says in groups of any size, and is never missing: where Y may be 0, it says so by its width,
    which may be infinite.

    Parameters
    ----------
    released
        A released frame.
    numerator, denominator
        Labels of two of its columns, counts or sums.
    level
        Confidence level of the intervals, in (0, 1), each by itself.

    Returns
    -------
    DataFrame
        The released rows, with `estimate`, `std_error` (of first order, and at most the width of
        what is possible), `low` and `high`. A denominator below 1, or below its standard error for
        sums, is taken for that in estimates. Columns of times count in seconds.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the labels are not those of two counts or sums, or the level is not in (0, 1).

    References
    ----------
    E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society
    B 16(2), 1954.

    Examples
    --------
    >>> import dpframe as dpf
    >>> flights = pd.DataFrame({"delay": [5, 40, 0, 90]})
    >>> query = dpf.aggregate(late=dpf.count(where="delay > 15"), flights=dpf.count())
    >>> released = dpf.release(flights, query, epsilon=1e6)
    >>> ratio(released, "late", "flights").round(3)
       estimate  std_error  low  high
    0       0.5        0.0  0.5   0.5
    """
    level = check_level(level)
    certificate = check_before(verify(released), "ratio", allowed=CELLS_AS_RELEASED)
    above, below = (
        _place(released, certificate, label, called)
        for label, called in ((numerator, "numerator"), (denominator, "denominator"))
    )
    if above == below:
        raise QueryError(
            f"numerator and denominator must be two columns, got {shown(numerator)} for both."
        )
    x, y = certificate.columns[above], certificate.columns[below]
    loadings = x.deviations, y.deviations

    def noise(a: np.ndarray, b: np.ndarray) -> tuple[_Parts, None]:
        blocks = dict.fromkeys([*loadings[0], *loadings[1]])
        return {
            block: np.abs(a * loadings[0].get(block, 0.0) - b * loadings[1].get(block, 0.0))
            for block in blocks
        }, None

    span = _span(x, y)
    own = [norm(one.deviations.values()) for one in (x, y)]
    quotient = _Quotient(
        _numbers(released, certificate, above),
        _numbers(released, certificate, below),
        least=1.0 if y.kind == "count" else float(np.max(own[1])) or 1.0,
        span=span,
        unit=_unit(span, *own),
        noise=noise,
    )
    return noted(_table(released, certificate, quotient, level), certificate, "ratio")


@with_keywords
def percent(
    released: pd.DataFrame, column: Hashable | None = None, level: float = 0.95
) -> pd.DataFrame:
    """Return every row's percentage of the total of a released column, with error and interval.

    The total is the sum over the rows of the table, whose noise goes into both: the combination
    `(1 - s) X_i - s sum_(j != i) X_j` is tested for every share s, as `ratio` does. Percentages
    within a group are the `ratio` of a count with a condition to the count of the group.

    Parameters
    ----------
    released
        A released frame.
    column
        The column, a count or a sum; `None`: the only one there is.
    level
        Confidence level of the intervals, in (0, 1), each by itself.

    Returns
    -------
    DataFrame
        The released rows, with `estimate`, `std_error`, `low` and `high`, in percent. A total below
        1, or below its standard error for sums, is taken for that in estimates.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column, or it is no count or sum, or the level is not in (0, 1).

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
    >>> percent(released)["estimate"].to_dict()
    {'A': 75.0, 'B': 25.0}
    """
    level = check_level(level)
    certificate, place = column_of_shares(released, column, "percent")
    described = certificate.columns[place]
    values = _numbers(released, certificate, place)
    noise = _noise_of_shares(certificate, described, len(values))
    zero, one = np.zeros(len(values)), np.ones(len(values))
    total = float(np.max(norm(noise(zero, one)[0].values()), initial=0.0))
    quotient = _Quotient(
        values,
        np.full(len(values), values.sum()),
        least=1.0 if described.kind == "count" else total or 1.0,
        span=(0.0, 1.0) if described.span[0] >= 0 else (-np.inf, np.inf),
        unit=1.0,
        noise=noise,
    )
    return noted(100 * _table(released, certificate, quotient, level), certificate, "percent")


def column_of_shares(
    released: pd.DataFrame, column: Hashable | None, what: str
) -> tuple[Certificate, int]:
    """Check that a release has shares of the total of a column, and find it; see `percent`.

    Parameters
    ----------
    released, column
        As for `percent`.
    what
        What is to be done with them.
    """
    allowed = CELLS_AS_RELEASED - FEWER_ROWS
    certificate = check_before(verify(released), what, allowed=allowed, instead=_WITHIN)
    structure = certificate.mechanism.structure
    if structure is not None and structure.kind == "tree":
        check_apart(certificate, what, "For parts of a distribution, use .dp.between(...).")
    return certificate, _place(
        released, certificate, _only(released, certificate, column), "column"
    )


_WITHIN = (
    " For percentages within a year, say, release .dp.aggregate(by='year', n=dpf.count(), "
    "late=dpf.count(where=...)) and take its .dp.ratio('late', 'n')."
)


def _noise_of_shares(certificate: Certificate, column: ColumnPart, rows: int) -> _Noise:
    """Return what noise does to `a x_i - b sum_j x_j`, from that of the cells."""
    structure = certificate.mechanism.structure
    if structure is not None:
        return lambda a, b: (errors_of_shares(column, structure, a, b), None)
    common = set(certificate.common_blocks)
    cells = {
        block: np.broadcast_to(np.abs(loading), rows)
        for block, loading in column.deviations.items()
        if block not in common
    }
    shared = {block: part for block, part in column.deviations.items() if block in common}

    def noise(a: np.ndarray, b: np.ndarray) -> tuple[_Parts, _Parts]:
        parts: _Parts = {}
        largest: _Parts = {}
        for block, own in cells.items():
            others = np.sqrt(np.maximum(np.square(own).sum() - np.square(own), 0))
            parts[block] = np.hypot((a - b) * own, b * others)
            largest[block] = np.maximum(np.abs(a - b) * own, np.abs(b) * own.max(initial=0.0))
        for block, loading in shared.items():
            total = np.broadcast_to(loading, rows).sum()
            parts[block] = largest[block] = np.abs(a * loading - b * total)
        return parts, largest

    return noise


def _only(released: pd.DataFrame, certificate: Certificate, column: Hashable | None) -> Hashable:
    """Return the column asked for, or the only one."""
    if column is not None:
        return column
    if len(certificate.columns) > 1:
        labels = list(released.columns[: len(certificate.columns)])
        raise QueryError(
            f"column must be one of the columns released, {labels!r}, got column=None."
        )
    only: Hashable = released.columns[0]
    return only


def _place(released: pd.DataFrame, certificate: Certificate, label: Hashable, called: str) -> int:
    """Find a released count or sum by its label."""
    certificate.mechanism.check_noise()
    labels = list(released.columns[: len(certificate.columns)])
    places = [place for place, known in enumerate(labels) if is_one_of(label, [known])]
    if len(places) != 1:
        raise QueryError(
            f"{called} must be the label of one of the columns released, {labels!r}, got "
            f"{called}={shown(label)}."
        )
    if certificate.columns[places[0]].kind not in ("count", "sum"):
        raise QueryError(
            f"{called} must be a count or a sum, got {called}={shown(label)}, which is a quotient "
            "already. Its own interval is in .dp.interval(); for another one, release its sum and "
            "count: dpf.aggregate(total=dpf.sum(...), n=dpf.count())."
        )
    return places[0]


def _numbers(released: pd.DataFrame, certificate: Certificate, place: int) -> np.ndarray:
    return in_seconds(released.iloc[:, place], certificate.columns[place].origin)


def _span(x: ColumnPart, y: ColumnPart) -> tuple[float, float]:
    """Return where a quotient lies, from public facts: what a row adds to both columns."""
    low, high = (end / 1e6 if x.times is not None else end for end in x.span)
    if y.kind == "count" and y.where in (None, x.where):  # x is about rows that y counts
        return min(low, 0.0), max(high, 0.0)
    if y.span[0] < 0:
        return -np.inf, np.inf
    return (0.0 if low >= 0 else -np.inf), (0.0 if high <= 0 else np.inf)


def _unit(span: tuple[float, float], above: np.ndarray, below: np.ndarray) -> float:
    """Say how large a quotient may be, or that of the errors where it has no end."""
    largest = max(map(abs, span))
    if 0 < largest < np.inf:
        return largest
    errors = float(np.max(above)), float(np.max(below))
    return errors[0] / errors[1] if all(errors) else 1.0


def _table(
    released: pd.DataFrame, certificate: Certificate, quotient: _Quotient, level: float
) -> pd.DataFrame:
    """Estimate quotients, with their errors and intervals."""
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
    certificate: Certificate, quotient: _Quotient, level: float
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
    certificate: Certificate, quotient: _Quotient, level: float
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
