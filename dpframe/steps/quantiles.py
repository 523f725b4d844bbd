"""What is read off a released distribution: quantiles, and numbers of rows in ranges."""

import math
from collections.abc import Hashable
from typing import Any, get_args, overload

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag
from dpframe.cells.record import ATTRIBUTE, attach, salt_of
from dpframe.cells.verify import look, whole_release
from dpframe.certificates.certificate import Release
from dpframe.certificates.definitions import End, QuantileDefinition
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.errors import QueryError, quote
from dpframe.inference.intervals import ENDS
from dpframe.inference.ranges import (
    ENDS_OF_ROUNDING,
    Distribution,
    Read,
    below_edges,
    distribution_of,
    exact_half_width,
    quantiles_read,
)
from dpframe.options import By, ChosenRows, GivenBounds, Keys, Other
from dpframe.privacy.half_widths import check_level
from dpframe.privacy.law import Law
from dpframe.public import public_call, takes_no_frame
from dpframe.queries.binned import (
    LEVEL,
    QUARTILES,
    Quantile,
    Quantiles,
    describe_quantiles,
    is_scalar,
    read_quantiles,
)
from dpframe.queries.edges import as_moment


@overload
def quantile(
    column: pd.DataFrame,
    q: Quantiles = QUARTILES,
    /,
    *,
    level: float = 0.95,
    simultaneous: bool = False,
) -> pd.DataFrame: ...


@overload
def quantile(
    column: Hashable, q: Quantiles = QUARTILES, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None,
    bounds: GivenBounds = None, level: float = 0.95, simultaneous: bool = False,
    bins: object = None, candidates: object = None,
) -> Quantile: ...  # fmt: skip


@public_call
def quantile(
    column: Any, q: Quantiles = QUARTILES, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None,
    bounds: GivenBounds = None, level: float = 0.95, simultaneous: bool = False,
    bins: object = None, candidates: object = None,
) -> Any:  # fmt: skip
    """Describe quantiles of one bounded column per group, or read them off a released distribution.

    The q quantile is where a part q of the rows is below. With a column, this describes a query: by
    default quantiles are read off the number of rows in ranges, with intervals for the noise. With
    a release of `ranges`, this reads them off that, and costs no privacy.

    With c_e the number of rows below edge e and N all rows, the quantile q is where c, made
    increasing by least squares, crosses q N, straight inside a bin. Its interval reaches from the
    edge before the first one where ``c_e - q N >= -z s_e``, to the edge after the last one where
    ``c_e - q N <= z s_e``, with s_e the standard error and z the quantile of the law of the noise.
    It misses the quantile only if the edge next to it is rejected, so it holds with the level or
    more, in groups of any size. From 128 bins on, every 64th edge is looked at first, and then
    those next to it, so that no early crossing of noise decides: it holds with the level as far as
    measured, and misses at most twice as often by proof.

    With `mechanism="select"` a quantile is selected exactly among bins between the bounds, by
    permute-and-flip (McKenna and Sheldon 2020): the bin with the largest `u + G`, u being minus its
    distance from the quantile in rows and G geometric noise. Several quantiles are selected in
    rounds, the middle one first, each in the rows on its side of those before (Kaplan, Schnapp and
    Stemmer 2022): k of them need `log2(k + 1)` rounds, which share epsilon. One alone is far more
    accurate so, but there are no error bars: no noise is added to what is released.

    Parameters
    ----------
    column
        Column with bounds. Values outside of them count in the first and last bin, missing ones
        nowhere. Or a release of `ranges`, with only `q`, `level` and `simultaneous`.
    q
        A quantile above 0 and below 1, 0.5 is the median; or several in increasing order, as a
        list, which adds a level `quantile`. With "select", up to nine with at most six decimals.
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        As in `count`.
    bounds
        `(lower, upper)`, if not declared.
    bins
        As in `ranges`. With "select": how many bins of equal width lie between the bounds, 16,384,
        or one for each integer of a column of integers if these are fewer; or edges. The value
        released is the middle of a bin.
    candidates
        With "select", in place of `bins`: the public values that may be released, in increasing
        order, such as prices or `range(0, 500_001, 1000)`. A row counts at the nearest one, the
        lower of two.
    level
        Probability that the interval of a quantile holds that of the rows before noise, each
        clipped to the bounds, in (0, 1).
    simultaneous
        Whether all intervals hold at once with this probability.

    Returns
    -------
    Query or DataFrame
        For a release, one row per group, and quantile of a list, with a certificate: the value
        under the label of the column, and its interval under `<column>_low` and `<column>_high`.
        Values are whole for a column of integers with a bin for each.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If it is no release of ranges, rows were left out since, or an argument is not usable.

    References
    ----------
    H. Kaplan, S. Schnapp and U. Stemmer, "Differentially private approximate quantiles", ICML 2022.
    R. McKenna and D. Sheldon, "Permute-and-flip: a new mechanism for differentially private
    selection", NeurIPS 2020.

    Examples
    --------
    >>> import dpframe as dpf
    >>> ages = pd.DataFrame({"age": [31, 33, 40, 52, 64] * 100})
    >>> dpf.declare(ages, bounds={"age": (18, 99)}, privacy_unit=dpf.EACH_ROW)
    >>> query = quantile("age", [0.1, 0.5])
    >>> dpf.release(ages, query, epsilon=100, mechanism="select")["age"].round().tolist()
    [31.0, 40.0]
    >>> list(dpf.release(ages, query, epsilon=100).columns)
    ['age', 'age_low', 'age_high']
    >>> released = dpf.release(ages, dpf.ranges("age", 81), epsilon=1e6)
    >>> quantile(released, 0.5)["age"].tolist()
    [39.5]
    """
    if not hasattr(column, "dp"):
        rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
        return describe_quantiles(
            column, q, by, rows, bounds,
            level=level, simultaneous=simultaneous, bins=bins, candidates=candidates,
        )  # fmt: skip
    if not isinstance(column, pd.DataFrame) or ATTRIBUTE not in column.attrs:
        raise takes_no_frame("quantile")
    arguments = {
        "by": by, "where": where, "keys": keys, "max_rows": max_rows, "max_groups": max_groups,
        "max_rows_per_group": max_rows_per_group, "bounds": bounds, "bins": bins,
        "candidates": candidates,
    }  # fmt: skip
    for name, value in arguments.items():
        if value is not None:
            rule = f"this frame was released: quantiles are read off it for nothing, not by {name}="
            raise QueryError(f"{rule}, as in .dp.quantile([0.25, 0.75]).", parameter=name)
    return quantiles_of(column, q, level, simultaneous=simultaneous)


def quantiles_of(
    released: pd.DataFrame, q: Quantiles, level: float = 0.95, *, simultaneous: bool = False
) -> pd.DataFrame:
    """Read quantiles off a released distribution, with intervals; it costs no privacy."""
    quantiles = tuple(map(float, read_quantiles(q)))
    level = check_level(level)
    check_flag("simultaneous", simultaneous)
    shown = look(released)
    release, released = whole_release(shown, "quantile"), shown.frame
    distribution_of(released, release, "quantile")
    column, others = str(released.index.names[-1]), list(released.index.names[:-1])
    ends = {f"{column}{end}" for end in ENDS}
    if ends.intersection(map(str, others)):
        rule = f"a level is called as ends of an interval would be, {min(ends)!r} or {max(ends)!r}"
        raise QueryError(f"{rule}. Use .dp.rename(levels={{...}}) before.", label=column)
    if LEVEL in others:
        rule = f"a level is called {LEVEL!r}, as the one that says which quantile a row is about"
        raise QueryError(f"{rule}. Use .dp.rename(levels={{...}}) before.", label=LEVEL)
    at_once, origin = bool(simultaneous), shown.opened.certificate.table.origin
    read = Read(quantiles, level, at_once, is_scalar(q))
    table, described = quantiles_read(released, release, read)
    low, high = (
        QuantileDefinition("quantile", column, quantiles, level, at_once, read.scalar, end, origin)
        for end in get_args(End)
    )
    attach(table, [described], [None, low, high], salt=salt_of([shown.opened]))
    return table


@public_call
def between(
    released: pd.DataFrame, low: object = None, high: object = None, level: float = 0.95
) -> pd.DataFrame:
    """Return the number of rows with values in a range, by group; it costs no privacy.

    Parameters
    ----------
    released
        A release of `ranges`.
    low, high
        Values above `low` and up to `high` count, as in bins closed on the right; for bins closed
        on the left, values from `low` on and below `high`. An end inside a bin takes its part of
        the rows there, as if they were spread evenly. If every bin holds one whole number, ends are
        whole, and both count. `None`: all values on that side.
    level
        Confidence level of the interval, in (0, 1).

    Returns
    -------
    DataFrame
        One row per group, with columns `estimate`, `std_error`, `low` and `high`. The interval
        reaches from the lower end for all bins inside the range to the upper end for all bins that
        it touches, so it does not depend on how rows are spread inside a bin.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If it is no release of ranges, rows were left out since, or an end is beyond the bins.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"fare": [9.5, 20.0, 7.5, 30.0] * 50})
    >>> released = dpf.release(trips, dpf.ranges("fare", 40, bounds=(0, 40)), epsilon=1e6)
    >>> between(released, 10, 30)["estimate"].round(3).tolist()
    [100.0]
    """
    level = check_level(level)
    shown = look(released)
    release = whole_release(shown, "between")
    ranges = distribution_of(shown.frame, release, "between")
    sums = _sums(ranges, release, _places(ranges, low, high), level)
    return mark_diagnosis(sums, [release], "between")


def _sums(
    ranges: Distribution, release: Release, ends: tuple[float, float], level: float
) -> pd.DataFrame:
    """Return sums over bins with their errors."""
    inner = math.ceil(ends[0]), math.floor(ends[1])
    outer = math.floor(ends[0]), math.ceil(ends[1])
    estimates, error = _sum(ranges, ends)
    law = release.noise.distribution
    sums = {pair: _whole_bins(ranges, pair, law, level) for pair in {inner, outer}}
    (inside, below), (touched, above) = sums[inner], sums[outer]
    columns = {
        "estimate": estimates,
        "std_error": np.full(len(estimates), error),
        "low": np.minimum(inside - below, estimates),
        "high": np.maximum(touched + above, estimates),
    }
    return pd.DataFrame(columns, index=ranges.groups)


def _whole_bins(
    ranges: Distribution, ends: tuple[int, int], law: Law, level: float
) -> tuple[np.ndarray, float]:
    """Return the rows in whole bins by group, and the half-width of their intervals."""
    first, final = ends
    if first >= final:
        return np.zeros(len(ranges.rows)), 0.0
    rows, error = _sum(ranges, ends)
    weights = np.zeros(len(ranges.bins))
    weights[first:final] = 1.0
    width = exact_half_width(ranges.known, weights, law, level)
    bound = law.quantile(level) * error + ENDS_OF_ROUNDING
    return rows, bound if width is None else min(width, bound)


def _sum(ranges: Distribution, ends: tuple[float, float]) -> tuple[np.ndarray, float]:
    """Return the rows between two places by group, and their standard error."""
    weights: dict[int, float] = {}
    for sign, end in zip((-1, 1), ends, strict=True):
        edge, part = math.floor(end), end - math.floor(end)
        weights[edge] = weights.get(edge, 0.0) + sign * (1 - part)
        if part:
            weights[edge + 1] = weights.get(edge + 1, 0.0) + sign * part
    edges = np.array(sorted(weights))
    by_edge = np.array([weights[edge] for edge in sorted(weights)])
    at, other = np.triu_indices(len(edges))
    covariances = ranges.known.edge_covariances(edges[at], edges[other])
    twice = np.where(at == other, 1.0, 2.0)
    variance = float((twice * by_edge[at] * by_edge[other] * covariances).sum())
    return below_edges(ranges.rows)[:, edges] @ by_edge, math.sqrt(max(variance, 0.0))


def _places(ranges: Distribution, low: object, high: object) -> tuple[float, float]:
    """Return the places of two ends among the edges."""
    first, final = 0.0, float(len(ranges.bins))
    if low is not None:
        first = _place(ranges, low, "low", -1 if ranges.is_whole and ranges.upward else 0)
    if high is not None:
        final = _place(ranges, high, "high", 1 if ranges.is_whole and not ranges.upward else 0)
    if not first < final:
        rule = f"must be below high={quote(high)}, and both in the bins"
        raise QueryError.about("low", rule, low)
    return first, final


def _place(ranges: Distribution, end: object, name: str, beside: int) -> float:
    """Return the place of an end: that of an edge, or of one beside it, or between two."""
    edges = ranges.edges
    moment = as_moment(end)
    value: Any = end if moment is None else moment
    try:
        edge = value + beside if beside else value
        place = int(edges.searchsorted(edge))
        comparable = not isinstance(end, bool | np.bool_)  # which would count as 1
        if comparable and place < len(edges) and edges[place] == edge:
            return place
        if comparable and 0 < place < len(edges) and not ranges.is_whole:
            below, above = edges[place - 1], edges[place]
            return place - 1 + float((edge - below) / (above - below))
    except (TypeError, ValueError):  # another kind than the edges
        pass
    kind = "a whole number" if ranges.is_whole else "a value"
    span = f"{edges[0] - min(beside, 0)} to {edges[-1] - max(beside, 0)}, where the bins are"
    raise QueryError.about(name, f"must be {kind} from {span}", end)
