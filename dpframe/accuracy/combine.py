"""Linear combinations of released cells, with the error that their covariance gives them."""

import math
from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd

from dpframe.accuracy.intervals import check_not_selected
from dpframe.accuracy.joint_errors import errors_over_tables, steps_before, weights_of_blocks
from dpframe.calls import with_keywords
from dpframe.certificates.certificate import Release, check_before
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.certificates.parts import LayersPart, NoiseRecord, SignsPart
from dpframe.certificates.verify import ATTRIBUTE, verify
from dpframe.errors import QueryError, quote
from dpframe.privacy.accuracy import check_level
from dpframe.privacy.amounts import as_number
from dpframe.privacy.noise_sum import Groups, NoiseSum
from dpframe.queries.timescale import in_seconds

Weights: TypeAlias = pd.DataFrame | pd.Series | Mapping[object, float]


@with_keywords
def combine(
    released: pd.DataFrame | Mapping[Any, pd.DataFrame],
    weights: Weights | Mapping[Any, Weights],
    level: float = 0.95,
) -> pd.DataFrame:
    """Return a linear combination of released cells with its standard error and interval.

    The estimate is `sum_c w_c x_c` over the cells c. Its variance is `sum_b v_b` over the measured
    blocks b, with `v_b = sum_i (sum_j w_ij L_b(i, j))^2` over rows i and columns j, where
    `L_b(i, j)` is what the noise of the block does to a cell; for a block that all rows share,
    `v_b = (sum_ij w_ij L_b(i, j))^2`. Where cells were measured together, as those of margins and
    ranges, it is what `dpframe.strategies.structure.Structure` says. For means it is that of their
    first-order error.

    Parameters
    ----------
    released
        A released frame; or a dict of margins that were released together.
    weights
        A frame of weights by row and column; or, for a single released column, a series or a dict
        by row; not another release. Cells that are not named have weight 0. For margins, a dict of
        these by table, named by its columns in any order; that of all rows, `()`, has one row, 0.
    level
        Confidence level of the interval, in (0, 1).

    Returns
    -------
    DataFrame
        One row with columns `estimate`, `std_error`, `low` and `high`.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If weights name no cells, or some that there are not, if they are not finite numbers, or are
        a release, or if the combination is beyond the range of floats.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> combine(released, {"A": 1, "B": -1})["std_error"].round(3).tolist()
    [1.919]
    """
    level = check_level(level)
    with np.errstate(all="ignore"):  # a warning could depend on what was released
        if isinstance(released, Mapping):
            release, noise, estimate, parts = _of_tables(released, weights)
        else:
            release, numbers, estimate = _weigh(released, cast(Weights, weights))
            noise, parts = release.noise, _parts(release, numbers)
        groups = noise.drawn_together(release.query.cells)
        combined = _estimate_frame(noise, groups, estimate, parts, level)
    if not np.isfinite(combined.to_numpy()).all():
        rule = "weights are so large that the result is beyond the range of floats"
        raise QueryError(f"{rule}. Divide them by a power of ten.", parameter="weights")
    return mark_diagnosis(combined, [release], "combine")


def _of_tables(
    released: Mapping[Any, pd.DataFrame], weights: Any
) -> tuple[Release, NoiseRecord, float, dict[str, np.ndarray]]:
    """Combine the cells of tables that were measured together."""
    if not isinstance(weights, Mapping) or not weights:
        raise _no_tables(released, weights)
    names = [_table_named(released, name) for name in weights]
    if len(set(names)) < len(names):
        raise QueryError.about("weights", "must not name a table twice", list(weights))
    tables = zip(names, weights.values(), strict=True)
    weighed = [_weigh(released[name], own) for name, own in tables]
    noise, parts = errors_over_tables([(release, numbers) for release, numbers, _ in weighed])
    return weighed[0][0], noise, sum(estimate for _, _, estimate in weighed), parts


def _table_named(released: Mapping[Any, pd.DataFrame], given: object) -> object:
    """Find a table by its name, or by its columns in any order."""
    if given in released:
        return given
    columns = frozenset(given if isinstance(given, tuple) else (given,))
    for name in released:
        if isinstance(name, tuple) and frozenset(name) == columns:
            return name
    raise _no_tables(released, given)


def _no_tables(released: Mapping[Any, pd.DataFrame], given: object) -> QueryError:
    rule = f"must be a dict by table, as the tables released, {list(released)[:5]!r}"
    way_out = "A table is named by its columns, in any order."
    return QueryError.about("weights", rule, given, way_out)


def _weigh(released: pd.DataFrame, weights: Weights) -> tuple[Release, np.ndarray, float]:
    """Return the release of a table, the weights of its cells, and what they add up to."""
    verified = verify(released)
    release = check_before(verified, "combine", allowed=steps_before(verified))
    check_not_selected(release, "combine")
    released = released.iloc[:, : len(release.columns)]  # what was denoised has no known error
    numbers = _align_weights(released, weights)
    columns = zip(released.items(), release.columns, strict=True)
    cells = np.stack([in_seconds(col, about.origin) for (_, col), about in columns], axis=1)
    return release, numbers, np.where(numbers == 0, 0.0, numbers * cells).sum()


def _estimate_frame(
    noise: NoiseRecord,
    groups: Groups,
    estimate: float,
    parts: Mapping[str, np.ndarray],
    level: float,
) -> pd.DataFrame:
    """Return the estimate with its error and interval, as a row."""
    errors = {block: _norm(part) for block, part in parts.items()}
    error = _norm(np.array(list(errors.values()), np.float64))
    largest = {block: float(np.abs(part).max(initial=0.0)) for block, part in parts.items()}
    # noises that several tables share are weighed as wholes
    terms = None if isinstance(noise, LayersPart | SignsPart) else parts
    total = NoiseSum(errors, noise.scale_by_block, groups, largest, smooth=True, terms=terms)
    width = noise.distribution.sum_half_width(total, level)
    low, high = estimate - width, estimate + width
    row = {"estimate": [estimate], "std_error": [error], "low": [low], "high": [high]}
    return pd.DataFrame(row)


def _align_weights(released: pd.DataFrame, weights: Weights) -> np.ndarray:
    """Weights in the shape of the released frame."""
    if isinstance(weights, pd.DataFrame | pd.Series) and ATTRIBUTE in weights.attrs:
        rule = "weights must be numbers by cell, {'A': 1, 'B': -1}, got a released frame"
        way_out = "To compare releases, subtract them; the squares of .dp.std_error add up."
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
    numbers = (table if plain else table.map(_number)).to_numpy(np.float64)
    if not np.isfinite(numbers).all():
        rule = "weights must be finite numbers, none missing; leave out cells that do not count."
        raise QueryError(rule, parameter="weights")
    known = pd.DataFrame(numbers, table.index, table.columns)
    aligned = known.reindex(index=released.index, columns=released.columns, fill_value=0.0)
    weights_of_cells: np.ndarray = aligned.to_numpy(np.float64)
    return weights_of_cells


def _number(value: object) -> float:
    try:
        return float(as_number(value))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _column(released: pd.DataFrame, weights: pd.Series | Mapping[object, float]) -> pd.DataFrame:
    """Weights of the only released column."""
    if released.shape[1] != 1 or not isinstance(weights, pd.Series | Mapping):
        rule = (
            f"weights must be a frame by row and column: {list(released.columns)!r} were released"
        )
        way_out = "For a dict or series by row, choose one: dpf.select(released, columns=[...])"
        raise QueryError(f"{rule}. {way_out}.", parameter="weights")
    if not isinstance(weights, pd.Series):
        rows = _index(released.index, list(weights))
        weights = pd.Series(list(weights.values()), index=rows, dtype=object)
    return weights.to_frame(released.columns[0])


def _index(index: pd.Index, keys: list[object]) -> pd.Index:
    whole = all(isinstance(key, tuple) and len(key) == index.nlevels for key in keys)
    if isinstance(index, pd.MultiIndex) and whole:
        return pd.MultiIndex.from_tuples(cast(list[tuple[Hashable, ...]], keys), names=index.names)
    return pd.Index(keys, tupleize_cols=False)


def _parts(release: Release, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the independent noises of the blocks add to a combination, as deviations."""
    noise = release.noise
    if isinstance(noise, LayersPart):
        return {
            block: np.sqrt([noise.by_block[block].variance(part)])
            for block, part in weights_of_blocks(release, noise, weights).items()
        }
    common = set(noise.shared_blocks)
    moved: dict[str, np.ndarray] = {}
    for weight, column in zip(weights.T, release.columns, strict=True):
        for block, loading in column.deviations.items():
            moved[block] = moved.get(block, np.zeros(1)) + weight * loading
    return {
        block: part.sum(keepdims=True) if block in common else part for block, part in moved.items()
    }


def _norm(parts: np.ndarray) -> float:
    """Root of the sum of squares, which may leave the range of floats where the root does not."""
    largest = float(np.abs(parts).max(initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(parts / largest))
