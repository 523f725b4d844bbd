"""Linear combinations of released cells, with the error that their covariance gives them."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag
from dpframe.cells.record import ATTRIBUTE
from dpframe.cells.verify import check_whole, look
from dpframe.certificates.certificate import Release
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.certificates.mechanism_parts import LayersPart, SignsPart
from dpframe.errors import QueryError, quote
from dpframe.inference.intervals import TableNoise, check_not_selected, possible_of, quotient_ends
from dpframe.inference.joint_errors import (
    NoiseSource,
    Side,
    Weighed,
    check_sampled,
    independent_sources,
    sampling_variance,
    widen,
)
from dpframe.inference.quotients import part_of
from dpframe.inference.sums import IndependentSum, Linear, linear_mean
from dpframe.privacy.amounts import as_float
from dpframe.privacy.half_widths import check_level
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise_sum import NoiseSum, Value, norm
from dpframe.public import public_call
from dpframe.queries.edges import in_seconds

Weights: TypeAlias = pd.DataFrame | pd.Series | Mapping[object, float]


@public_call
def combine(
    released: pd.DataFrame | Mapping[Any, pd.DataFrame],
    weights: Weights | Mapping[Any, Weights],
    level: float = 0.95,
    *,
    sampling: bool = False,
) -> pd.DataFrame:
    """Return a linear combination of released cells with its standard error and interval.

    The estimate is `sum_c w_c x_c` over the cells c. Its variance is `sum_b v_b` over the measured
    blocks b, with `v_b = sum_i (sum_j w_ij L_b(i, j))^2` over rows i and columns j, where
    `L_b(i, j)` is what the noise of the block does to a cell; for a block that all rows share,
    `v_b = (sum_ij w_ij L_b(i, j))^2`. For cells measured together, such as margins and ranges, it
    is the variance by `dpframe.strategies.domain.Structure`; for others but counts and
    sums, that of the first-order error. Variances of different releases add up.

    Means and rates are read off their noisy parts anew: from t, the mean of all cells in the
    combination, moved toward that of a cell as far as their differences exceed their noise, it is
    one step `D / N*`, where D is the sum less t times the number of rows, and `N*` that number,
    uncorrelated with D. So biases do not add up. The interval ends at what is possible; where that
    is all of it, nothing is known, and the row has no numbers. Intervals with correlations or
    slopes are put together from those of the cells, as by `change` for means: they may be infinite.

    Parameters
    ----------
    released
        A released frame, or one made by `concat`; or a dict of released frames, such as two years,
        or margins that were released together.
    weights
        A frame of weights by row and column, or, for a single released column, a series or a dict
        by row. Other cells have weight 0. For a dict of frames, a dict of these by table. Name
        margins by their columns in any order; the one of all rows, `()`, has one row, 0. A release
        is no weight.
    level
        Confidence level of the interval, in (0, 1).
    sampling
        Whether the rows of each release are a random sample, and the combination is that of the
        populations: for every cell, `w_c^2` times its sampling variance by `interval` is added.
        Weights are then for one column of each release.

    Returns
    -------
    DataFrame
        One row with columns `estimate`, `std_error`, `low` and `high`.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If weights name no cells, or unknown ones, are not finite, or are a release; if the
        combination is beyond the range of floats; or if it is not known how errors go together:
        tables that share noise but are no margins of one query, or several sampled columns.

    References
    ----------
    G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures: a general
    approach", Statistics in Medicine 27(10), 2008.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> combine(released, {"A": 1, "B": -1})["std_error"].round(3).tolist()
    [1.919]
    >>> later = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> years = {2025: released, 2026: later}
    >>> combine(years, {2025: {"A": -1}, 2026: {"A": 1}})["std_error"].round(3).tolist()
    [1.919]
    """
    level = check_level(level)
    check_flag("sampling", sampling)
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        if isinstance(released, Mapping):
            tables = _weigh_tables(released, weights)
        else:
            tables = _weigh(released, cast(Weights, weights))
        combined = _combined(tables, level, sampling=sampling)
    row = pd.DataFrame([combined])
    return mark_diagnosis(row, [table.release for table in tables], "combine")


class _Combination(NamedTuple):
    estimate: float
    std_error: float
    low: float
    high: float


_UNKNOWN = _Combination(math.nan, math.nan, math.nan, math.nan)


def _combined(tables: list[Weighed], level: float, *, sampling: bool) -> _Combination:
    estimate = sum(_sum_of_cells(table) for table in tables)
    sampled = _variance_of_sample(tables) if sampling else 0.0
    cells = []
    if any(_has_quotients(table) for table in tables):
        for table in tables:
            cells.extend(_ends_of_cells(table, level, sampling=sampling))
    combined = _estimated(independent_sources(tables), estimate, level, sampled, cells)
    if any(map(_has_unknown, tables)):
        return _UNKNOWN
    if not np.isfinite([combined.estimate, combined.std_error]).all():
        rule = "weights are so large that the result is beyond the range of floats"
        raise QueryError(f"{rule}. Divide them by a power of ten.", parameter="weights")
    first, last = np.sum([_possible(table) for table in tables], axis=0).tolist()
    low, high = (
        min(max(end, first), last) for end in _ends_of_doubtful_rows(tables, combined, level)
    )
    if first < last and np.isclose([low, high], [first, last], rtol=1e-9, atol=0).all():
        return _UNKNOWN
    if np.isfinite([first, last]).all():
        # counts and sums stay as released; means of few rows can be anything before
        estimate = min(max(estimate, first), last)
    return combined._replace(estimate=estimate, low=low, high=high)


def combined_rows(
    table: pd.DataFrame,
    releases: Sequence[Release],
    place: int,
    weights: Sequence[tuple[np.ndarray, np.ndarray]],
    level: float,
) -> np.ndarray:
    """Return linear combinations of the cells of a column, one in each row: number and both ends.

    For each, `weights` holds the rows of its cells, in order, and their weights.
    """
    combinations = np.zeros((len(weights), 3))
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        for at, (rows, weights_of_cells) in enumerate(weights):
            tables = _weigh_rows(table, releases, place, rows, weights_of_cells)
            combined = _combined(tables, level, sampling=False)
            combinations[at] = combined.estimate, combined.low, combined.high
    return combinations


def _weigh_rows(
    table: pd.DataFrame,
    releases: Sequence[Release],
    place: int,
    rows: np.ndarray,
    weights: np.ndarray,
) -> list[Weighed]:
    """Weigh a few cells of a column; what is said about other rows is left out where it can be."""
    tables = []
    for release in releases:
        places = np.arange(len(table))[release.places]
        is_weighed = np.isin(places, rows)
        if not is_weighed.any():
            continue
        kept = np.flatnonzero(is_weighed)
        if isinstance(release.noise, LayersPart):  # these weigh all cells together
            kept = np.arange(len(is_weighed))
        some, places, is_weighed = release.with_rows(kept), places[kept], is_weighed[kept]
        of_cells = np.zeros((len(places), len(release.columns)))
        of_cells[is_weighed, place] = weights[np.searchsorted(rows, places[is_weighed])]
        alone = replace(some, rows=None)
        tables.append(_weigh_release(table.iloc[places], alone, of_cells))
    return tables


_LEAST_BEND = 0.1  # of numbers of rows that a step leaves


def _ends_of_doubtful_rows(
    tables: list[Weighed], combined: _Combination, level: float
) -> list[float]:
    """Return the ends of a combination where numbers of rows may be wrong by a factor.

    With S the part of the estimate that is divided by them, W its half-width and h that of the
    factor, all x are kept for which `|S - x| <= sqrt(W^2 + h^2 x^2)` (Fieller 1954): all that is
    possible, if h is 1 or more. The parts of several columns are taken for independent.
    """
    shift, spread, largest, stepped, bend = 0.0, 0.0, 0.0, 0.0, 0.0
    for table in tables:
        law = table.release.noise.distribution
        quantile = max(GAUSSIAN.quantile(level), law.quantile(level))
        for weights, column in table.parts():
            step = float(np.sum(weights * column.steps))
            doubt = quantile * column.doubt if np.any(weights) else 0.0
            if doubt >= 1:
                return [-math.inf, math.inf]
            shift += step * doubt**2 / (1 - doubt**2)
            spread = math.hypot(spread, step * doubt / (1 - doubt**2))
            if doubt > largest:
                largest, total_weight = doubt, float(np.sum(weights))
                # of a difference, a step of all cells together is none
                alike = abs(total_weight) > np.sum(np.abs(weights)) / 2
                bend = column.bend / total_weight if alike else 0.0
            stepped += step
    estimate, low, high = combined.estimate, combined.low, combined.high
    fixed, ends = estimate - stepped, []
    for sign, off in ((-1, estimate - low), (1, high - estimate)):
        moved = sign * np.hypot(spread, off / math.sqrt(1 - largest**2))
        end = stepped + shift + moved
        ends.append(float(fixed + end / np.maximum(1 + bend * end, _LEAST_BEND)))
    return ends


def _sum_of_cells(table: Weighed) -> float:
    # a cell without weight may be unknown, and 0 times that is no number
    return float(sum(np.where(w == 0, 0.0, w * column.values).sum() for w, column in table.parts()))


def _has_unknown(table: Weighed) -> bool:
    """Whether nothing is known of a cell that has weight; too large weights are no such cell."""
    return any(np.isnan(np.where(w == 0, 0.0, column.values)).any() for w, column in table.parts())


def _possible(table: Weighed) -> np.ndarray:
    possible = np.zeros(2)
    for weights, column in zip(table.weights.T, table.release.columns, strict=True):
        some = weights[weights != 0]
        first, last = (some * end for end in possible_of(column))
        possible += np.minimum(first, last).sum(), np.maximum(first, last).sum()
    return possible


def _weigh_tables(released: Mapping[Any, pd.DataFrame], weights: Any) -> list[Weighed]:
    if not isinstance(weights, Mapping) or not weights:
        raise _no_tables(released, weights)
    names = [_table_named(released, name) for name in weights]
    if len(set(names)) < len(names):
        raise QueryError.about("weights", "must not name a table twice", list(weights))
    pairs = zip(names, weights.values(), strict=True)
    tables = [table for name, by_cell in pairs for table in _weigh(released[name], by_cell)]
    times = [column.times for table in tables for column in table.release.columns]
    if len({time.origin for time in times if time and time.counted != "in seconds"}) > 1:
        rule = "points in time count from different lower bounds in these tables"
        way_out = "Declare the same bounds, or combine the cells of each by itself."
        raise QueryError(f"{rule}. {way_out}", parameter="released")
    return tables


def _table_named(released: Mapping[Any, pd.DataFrame], label: object) -> object:
    """Find a table by its name, or by its columns in any order."""
    if label in released:
        return label
    columns = frozenset(label if isinstance(label, tuple) else (label,))
    for name in released:
        if isinstance(name, tuple) and frozenset(name) == columns:
            return name
    raise _no_tables(released, label)


def _no_tables(released: Mapping[Any, pd.DataFrame], value: object) -> QueryError:
    rule = f"must be a dict by table, as the tables released, {list(released)[:5]!r}"
    way_out = "Margins are named by their columns, in any order."
    return QueryError.about("weights", rule, value, way_out)


def _weigh(released: pd.DataFrame, weights: Weights) -> list[Weighed]:
    shown = look(released)
    shown.certificate.require_numbers()
    check_whole(shown, "combine")
    releases, released = shown.certificate.releases, shown.frame
    for release in releases:
        check_not_selected(release, "combine")
    numbers = _align_weights(released, weights)
    return [_weigh_release(released, release, numbers[release.places]) for release in releases]


def _weigh_release(released: pd.DataFrame, release: Release, weights: np.ndarray) -> Weighed:
    """Weigh the cells of a release; means and rates are read off their parts anew."""
    columns = []
    for place, column in enumerate(release.columns):
        if column.form.interval == "test" and weights[:, place].any():
            columns.append(linear_mean(column, weights[:, place]))
            continue
        cells = in_seconds(released.iloc[:, place], column.origin)[release.places]
        columns.append(Linear(cells, column.deviations))
    return Weighed(release, weights, columns)


def _variance_of_sample(tables: list[Weighed]) -> float:
    """Return the variance that sampling gives a weighted sum."""
    ids = [table.release.release_id for table in tables]
    variance = 0.0
    for table in tables:
        used = np.flatnonzero((table.weights != 0).any(axis=0))
        if len(used) > 1 or ids.count(table.release.release_id) > 1:
            rule = "is for cells of one column, and the same rows are in several that are combined"
            way_out = "Leave sampling out, or combine cells of one column of each release."
            raise QueryError.about("sampling", rule, True, way_out)
        for place in used.tolist():
            column, several = table.release.columns[place], np.sum(table.weights != 0) > 1
            check_sampled(table.release, [column], across=bool(several))
            weights, cells = table.weights[:, place], table.columns[place].values
            variances = np.where(weights == 0, 0.0, weights**2 * sampling_variance(column, cells))
            variance += max(float(variances.sum()), 0.0)
    return variance


def _has_quotients(table: Weighed) -> bool:
    """Whether correlations or slopes, whose intervals are uneven, have weight."""
    used = np.flatnonzero((table.weights != 0).any(axis=0))
    return any(table.release.columns[place].form.interval == "test by row" for place in used)


def _ends_of_cells(table: Weighed, level: float, *, sampling: bool) -> list[np.ndarray]:
    """Return by cell of weight, times its weight, how far it may be off: see `_uneven`.

    These are the half-width of its first-order error, how far the true value may be below and above
    the cell, and whether that is all that is possible.
    """
    ends_by_column, release = [], table.release
    source = release.noise
    groups = source.drawn_together(release.query.cells)
    for place in np.flatnonzero((table.weights != 0).any(axis=0)).tolist():
        column, rows = release.columns[place], np.flatnonzero(table.weights[:, place])
        weights, linear = table.weights[rows, place], table.columns[place]
        values, loadings = linear.values[rows], linear.deviations
        noise_by_row = [
            {block: np.ravel(part_of(loadings, block, row)) for block in loadings}
            for row in np.split(rows, len(rows))
        ]
        sums = [_sum_of((source, 1, parts)) for parts in noise_by_row]
        alone = np.array([float(law.sum_half_width(noise, level)) for law, noise in sums])
        if sampling:
            variance = sampling_variance(column, linear.values)[rows]
            errors = np.array([float(noise.deviation) for _, noise in sums])
            alone = widen(alone, errors, variance, level)
        below = above = alone
        full = np.zeros((2, len(rows)))
        if column.form.interval == "test by row":
            ends = quotient_ends(column, TableNoise(source, groups, level), sampling=sampling)
            low, high = (end[rows] for end in ends)
            below, above = values - low, high - values
            full = np.array([low, high]) == np.array(column.span)[:, None]
        turned = weights < 0
        below, above = np.where(turned, above, below), np.where(turned, below, above)
        full = np.where(turned, full[::-1], full)
        distances = np.abs(weights) * np.array([alone, below, above])
        ends_by_column.append(np.concatenate([distances, full]))
    return ends_by_column


def _uneven(cells: list[np.ndarray], width: Value) -> list[float]:
    """Return how far a sum may be below and above its estimate, from the cells in it; see `Side`.

    Of cells with even intervals, that is the half-width.
    """
    alone, below, above, *full = np.concatenate(cells, axis=1)
    pairs = zip((below, above), full, strict=True)
    sides = [Side.of(list(off), at_end > 0) for off, at_end in pairs]
    return [float(side.width(width, norm(alone))) for side in sides]


def _estimated(
    sources: list[NoiseSource],
    estimate: float,
    level: float,
    variance: float,
    cells: list[np.ndarray],
) -> _Combination:
    """Return the estimate with its error and interval; the variance is of sampling."""
    sums = [_sum_of(source) for source in sources]
    error = math.hypot(*(float(noise.deviation) for _, noise in sums))
    width = IndependentSum.of(sums).half_width(level)
    if variance:
        width = widen(width, error, variance, level)
        error = math.hypot(error, math.sqrt(variance))
    down, up = _uneven(cells, width) if cells else (width, width)
    return _Combination(estimate, error, float(estimate - down), float(estimate + up))


def _sum_of(source: NoiseSource) -> tuple[Law, NoiseSum]:
    noise, rows, parts = source
    errors = {block: math.hypot(*part) for block, part in parts.items()}
    largest = {block: float(np.abs(part).max(initial=0.0)) for block, part in parts.items()}
    # noises that several tables share are weighed as wholes
    terms = None if isinstance(noise, LayersPart | SignsPart) else parts
    groups, scales = noise.drawn_together(rows), noise.scale_by_block
    total = NoiseSum(errors, scales, groups, largest, smooth=True, terms=terms)
    return noise.distribution, total


def _align_weights(released: pd.DataFrame, weights: Weights) -> np.ndarray:
    if isinstance(weights, pd.DataFrame | pd.Series) and ATTRIBUTE in weights.attrs:
        rule = "weights must be numbers by cell, {'A': 1, 'B': -1}, got a released frame"
        way_out = (
            "To compare two releases, use .dp.change(before), or dpf.combine of a dict of both."
        )
        raise QueryError(f"{rule}. {way_out}", parameter="weights")
    table = weights if isinstance(weights, pd.DataFrame) else _column(released, weights)
    if table.index.nlevels != released.index.nlevels:
        rule = f"weights must name rows by all of {list(released.index.names)!r}"
        way_out = "For all rows of a group, give each of them its weight."
        text = f"{rule}, got keys of {table.index.nlevels} parts. {way_out}"
        raise QueryError(text, parameter="weights")
    if table.empty:
        rule = "weights must name at least one cell of the release, got none."
        raise QueryError(rule, parameter="weights")
    unknown = [*table.columns.difference(released.columns, sort=False)]
    unknown += [*table.index.difference(released.index, sort=False)]
    again = [*table.columns[table.columns.duplicated()], *table.index[table.index.duplicated()]]
    if unknown or again:
        wrong = "is not in it" if unknown else "comes twice"
        shown = (unknown or again)[:5] if isinstance(weights, Mapping) else []
        cell = quote(shown) if shown else "a label"
        rule = f"weights must name cells of the release, each once; {cell} {wrong}"
        way_out = "Rows are named by its keys, and columns by its columns."
        first = next(iter(shown), None)
        raise QueryError(f"{rule}. {way_out}", parameter="weights", label=first)
    plain = all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in table.dtypes)
    numbers = (table if plain else table.map(as_float)).to_numpy(np.float64)
    if not np.isfinite(numbers).all():
        rule = "weights must be finite numbers, none missing; leave out cells that do not count."
        raise QueryError(rule, parameter="weights")
    cells = pd.DataFrame(numbers, table.index, table.columns)
    aligned = cells.reindex(index=released.index, columns=released.columns, fill_value=0.0)
    weights_of_cells: np.ndarray = aligned.to_numpy(np.float64)
    return weights_of_cells


def _column(released: pd.DataFrame, weights: pd.Series | Mapping[object, float]) -> pd.DataFrame:
    if released.shape[1] != 1 or not isinstance(weights, pd.Series | Mapping):
        rule = (
            f"weights must be a frame by row and column: {list(released.columns)!r} were released"
        )
        way_out = "For a dict or series by row, choose one: released[[...]]"
        raise QueryError(f"{rule}. {way_out}.", parameter="weights")
    if not isinstance(weights, pd.Series):
        rows = _index(released.index, list(weights))
        weights = pd.Series(list(weights.values()), index=rows, dtype=object)
    return weights.to_frame(released.columns[0])


def _index(index: pd.Index, keys: list[object]) -> pd.Index:
    is_complete = all(isinstance(key, tuple) and len(key) == index.nlevels for key in keys)
    if isinstance(index, pd.MultiIndex) and is_complete:
        return pd.MultiIndex.from_tuples(cast(list[tuple[Hashable, ...]], keys), names=index.names)
    return pd.Index(keys, tupleize_cols=False)
