"""Linear combinations of released cells, with the error that their covariance gives them."""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpframe.accuracy.intervals import check_not_selected
from dpframe.accuracy.joint_errors import errors_over_tables, steps_before, weights_of_blocks
from dpframe.calls import with_keywords
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.diagnosis import mark_diagnosis
from dpframe.certificates.subsets import check_before
from dpframe.certificates.verify import ATTRIBUTE, verify
from dpframe.errors import QueryError, quote
from dpframe.privacy.accuracy import check_level
from dpframe.privacy.amounts import as_number
from dpframe.privacy.noise_sum import NoiseSum
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
            certificate, estimate, parts = _of_tables(released, weights)
        else:
            certificate, numbers, estimate = _weigh(released, weights)
            parts = _parts(certificate, numbers)
        combined = _estimate_frame(certificate, estimate, parts, level)
    if not np.isfinite(combined.to_numpy()).all():
        raise QueryError(
            "weights are so large that the combination, or its error, is beyond the range of "
            "floats. Divide them by a power of ten, which scales all that is returned."
        )
    return mark_diagnosis(combined, certificate, "combine")


def _of_tables(
    released: Mapping[Any, pd.DataFrame], weights: Any
) -> tuple[Certificate, float, dict[str, np.ndarray]]:
    """Combine the cells of tables that were measured together."""
    if not isinstance(weights, Mapping) or not weights:
        raise _no_tables(released, weights)
    names = [_table_named(released, name) for name in weights]
    if len(set(names)) < len(names):
        raise QueryError(f"weights must not name a table twice, got {quote(list(weights))}.")
    tables = zip(names, weights.values(), strict=True)
    weighed = [_weigh(released[name], own) for name, own in tables]
    parts = errors_over_tables([(certificate, numbers) for certificate, numbers, _ in weighed])
    return weighed[0][0], sum(estimate for _, _, estimate in weighed), parts


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
    return QueryError(
        f"weights must be a dict by table, as the tables released, {list(released)[:5]!r}; got "
        f"{quote(given)}. A table is named by its columns, in any order."
    )


def _weigh(released: pd.DataFrame, weights: Weights) -> tuple[Certificate, np.ndarray, float]:
    """Return the certificate of a table, the weights of its cells, and what they add up to."""
    verified = verify(released)
    certificate = check_before(verified, "combine", allowed=steps_before(verified))
    check_not_selected(certificate.discovery, "combine")
    released = released.iloc[:, : len(certificate.columns)]  # what was denoised has no known error
    numbers = _align_weights(released, weights)
    columns = zip(released.items(), certificate.columns, strict=True)
    cells = np.stack([in_seconds(col, about.origin) for (_, col), about in columns], axis=1)
    return certificate, numbers, np.where(numbers == 0, 0.0, numbers * cells).sum()


def _estimate_frame(
    certificate: Certificate, estimate: float, parts: Mapping[str, np.ndarray], level: float
) -> pd.DataFrame:
    """Return the estimate with its error and interval, as a row."""
    errors = {block: _norm(part) for block, part in parts.items()}
    error = _norm(np.array(list(errors.values()), np.float64))
    largest = {block: float(np.abs(part).max(initial=0.0)) for block, part in parts.items()}
    mechanism = certificate.mechanism
    groups = mechanism.drawn_together(certificate.query.cells, certificate.common_blocks)
    noise = NoiseSum(errors, mechanism.scales, groups, largest, smooth=True)
    width = mechanism.distribution.sum_half_width(noise, level)
    low, high = estimate - width, estimate + width
    row = {"estimate": [estimate], "std_error": [error], "low": [low], "high": [high]}
    return pd.DataFrame(row)


def _align_weights(released: pd.DataFrame, weights: Weights) -> np.ndarray:
    """Weights in the shape of the released frame."""
    if isinstance(weights, pd.DataFrame | pd.Series) and ATTRIBUTE in weights.attrs:
        raise QueryError(
            "weights must be plain numbers by cell, such as {'A': 1, 'B': -1}, got a released "
            "frame or a part of one. To compare two releases, subtract them; the variance of the "
            "difference is the sum of the squares of their .dp.std_error."
        )
    table = weights if isinstance(weights, pd.DataFrame) else _column(released, weights)
    if table.index.nlevels != released.index.nlevels:
        raise QueryError(
            f"weights must name rows by all of {list(released.index.names)!r}, got keys of "
            f"{table.index.nlevels} parts. For all rows of a group, give each of them its weight."
        )
    if table.empty:
        raise QueryError("weights must name at least one cell of the release, got none.")
    unknown = [*table.columns.difference(released.columns, sort=False)]
    unknown += [*table.index.difference(released.index, sort=False)]
    again = [*table.columns[table.columns.duplicated()], *table.index[table.index.duplicated()]]
    if unknown or again:
        wrong = "is not in it" if unknown else "comes twice"
        cell = quote((unknown or again)[:5]) if isinstance(weights, Mapping) else "a label"
        raise QueryError(
            f"weights must name cells of the release, each once; {cell} {wrong}. Rows are named by "
            "the keys of the release, and columns by its columns."
        )
    numbers = table.map(_number).to_numpy(np.float64)
    if not np.isfinite(numbers).all():
        raise QueryError(
            "weights must be finite numbers, none missing; leave out cells that do not count."
        )
    known = pd.DataFrame(numbers, table.index, table.columns)
    aligned = known.reindex(index=released.index, columns=released.columns, fill_value=0.0)
    return aligned.to_numpy(np.float64)  # type: ignore[no-any-return]


def _number(value: object) -> float:
    try:
        return float(as_number(value))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _column(released: pd.DataFrame, weights: pd.Series | Mapping[object, float]) -> pd.DataFrame:
    """Weights of the only released column."""
    if released.shape[1] != 1 or not isinstance(weights, pd.Series | Mapping):
        raise QueryError(
            f"weights must be a frame by row and column, since {list(released.columns)!r} were "
            "released; or a series or dict by row, where a single column was. For one of several, "
            "choose it first: dpf.select(released, columns=[...])."
        )
    if not isinstance(weights, pd.Series):
        rows = _index(released.index, list(weights))
        weights = pd.Series(list(weights.values()), index=rows, dtype=object)
    return weights.to_frame(released.columns[0])


def _index(index: pd.Index, keys: list[object]) -> pd.Index:
    if isinstance(index, pd.MultiIndex):
        if not all(isinstance(key, tuple) and len(key) == index.nlevels for key in keys):
            return pd.Index(keys, tupleize_cols=False)
        return pd.MultiIndex.from_tuples(keys, names=index.names)
    return pd.Index(keys, tupleize_cols=False)


def _parts(certificate: Certificate, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the independent noises of the blocks add to a combination, as deviations."""
    structure = certificate.mechanism.structure
    if structure is not None:
        return {
            block: np.sqrt([structure.by_block[block].variance(part)])
            for block, part in weights_of_blocks(certificate, structure, weights).items()
        }
    common = set(certificate.common_blocks)
    moved: dict[str, np.ndarray] = {}
    for weight, column in zip(weights.T, certificate.columns, strict=True):
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
