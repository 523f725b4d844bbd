"""Linear combinations of released cells, with the error that their covariance gives them."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpframe.accuracy import approximate_half_width, check_level
from dpframe.certificate import Certificate, unpack, verify
from dpframe.errors import QueryError

__all__ = ["Weights", "combine"]

Weights: TypeAlias = pd.DataFrame | pd.Series | Mapping[object, float]


def combine(released: pd.DataFrame, weights: Weights, level: float = 0.95) -> pd.DataFrame:
    """Return a linear combination of released cells with its standard error and interval.

    The estimate is `sum_c w_c x_c` over the cells c. Its variance is `sum_b v_b` over the measured
    blocks b, with `v_b = sum_i (sum_j w_ij L_b(i, j))^2` over rows i and columns j, where
    `L_b(i, j)` is what the noise of the block does to a cell; for a block that all rows share,
    `v_b = (sum_ij w_ij L_b(i, j))^2`. For means it is that of their first-order error.

    Parameters
    ----------
    released
        A released frame.
    weights
        A frame of weights by row and column; or, for a single released column, a series or a dict
        by row. Cells that are not named have weight 0.
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
        If weights name cells that there are not, or are not finite numbers.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> combine(released, {"A": 1, "B": -1})["std_error"].round(3).tolist()
    [2.038]
    """
    level = check_level(level)
    certificate = verify(released)
    numbers = _aligned(released, weights)
    estimate = float(np.sum(numbers * released.to_numpy(np.float64), where=numbers != 0))
    error = _std_error(certificate, numbers)
    width = approximate_half_width(certificate["mechanism"]["law"], error, level)
    row = {
        "estimate": [estimate],
        "std_error": [error],
        "low": [estimate - width],
        "high": [estimate + width],
    }
    return pd.DataFrame(row)


def _aligned(released: pd.DataFrame, weights: Weights) -> np.ndarray:
    """Weights in the shape of the released frame."""
    table = weights if isinstance(weights, pd.DataFrame) else _column(released, weights)
    unknown = [*table.columns.difference(released.columns, sort=False)]
    unknown += [*table.index.difference(released.index, sort=False)]
    if unknown or not (table.index.is_unique and table.columns.is_unique):
        raise QueryError(
            f"weights must name cells of the release, each once; got {unknown[:5]!r} beside them. "
            "Rows are named by the keys of the release and columns by its columns."
        )
    try:
        numbers = table.reindex(index=released.index, columns=released.columns).to_numpy(np.float64)
    except (TypeError, ValueError):
        raise QueryError("weights must be numbers.") from None
    if np.isinf(numbers).any() or table.isna().to_numpy().any():
        raise QueryError("weights must be finite numbers, none missing.")
    return np.where(np.isnan(numbers), 0.0, numbers)


def _column(released: pd.DataFrame, weights: pd.Series | Mapping[object, float]) -> pd.DataFrame:
    """Weights of the only released column."""
    if released.shape[1] != 1 or not isinstance(weights, pd.Series | Mapping):
        raise QueryError(
            f"weights must be a frame by row and column, since {list(released.columns)!r} were "
            "released; or a series or dict by row, where a single column was."
        )
    if not isinstance(weights, pd.Series):
        weights = pd.Series(list(weights.values()), index=_index(released.index, list(weights)))
    return weights.to_frame(released.columns[0])


def _index(index: pd.Index, keys: list[object]) -> pd.Index:
    if isinstance(index, pd.MultiIndex):
        return pd.MultiIndex.from_tuples(keys, names=index.names)
    return pd.Index(keys, tupleize_cols=False)


def _std_error(certificate: Certificate, weights: np.ndarray) -> float:
    """Return the standard error of a combination."""
    common = set(certificate["common_blocks"])
    moved: dict[str, np.ndarray] = {}
    for weight, column in zip(weights.T, certificate.columns, strict=True):
        for block, loading in column["loadings"].items():
            moved[block] = moved.get(block, np.zeros(1)) + weight * unpack(loading)
    parts = [
        abs(part.sum()) if block in common else float(np.linalg.norm(part))
        for block, part in moved.items()
    ]
    return float(np.linalg.norm(parts))
