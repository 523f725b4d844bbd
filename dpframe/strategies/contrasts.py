"""Integer Helmert contrasts: sums along an axis, and differences that are orthogonal to them.

Along an axis of n cells, the rows are `(1, ..., 1)` and `h_j = (1, ..., 1, -j, 0, ..., 0)` with j
ones, for j = 1, ..., n - 1. They are orthogonal, with squared lengths n and `j (j + 1)`, so that
`C' diag(1 / |r|^2)` is the inverse of C. Along several axes, rows are Kronecker products. All three
maps take O(n) steps per axis, by cumulative sums.
"""

from collections.abc import Collection, Iterable
from functools import reduce

import numpy as np


def squared_lengths(n: int) -> np.ndarray:
    """Return the squared lengths of the rows, as int64: n, and `j (j + 1)`.

    Examples
    --------
    >>> squared_lengths(4)
    array([ 4,  2,  6, 12])
    """
    j = np.arange(1, n, dtype=np.int64)
    return np.concatenate([[n], j * (j + 1)])


def product_lengths(sizes: Iterable[int]) -> np.ndarray:
    """Return the squared lengths of the contrasts along all axes of these sizes, as floats."""
    lengths = [squared_lengths(n)[1:].astype(np.float64) for n in sizes]
    return reduce(np.multiply.outer, lengths, np.ones(()))


def contrasts(totals: np.ndarray, axes: Iterable[int]) -> np.ndarray:
    """Return C times totals along some axes, exactly: int64 of the same shape, modulo 2**64.

    Examples
    --------
    >>> contrasts(np.array([5, 2, 4]), [0])
    array([11,  3, -1])
    """
    return reduce(sums_and_contrasts, axes, np.asarray(totals, np.int64))


def restore_totals(measured: np.ndarray, axes: Iterable[int]) -> np.ndarray:
    """Return `C' diag(1 / |r|^2)` times contrasts along some axes: the totals they are of.

    Examples
    --------
    >>> restore_totals(np.array([11, 3, -1]), [0]).round(9)
    array([5., 2., 4.])
    """
    return reduce(_inverse, axes, np.asarray(measured, np.float64))


def adjoint(weights: np.ndarray, axes: Iterable[int]) -> np.ndarray:
    """Return `diag(1 / |r|^2) C` times weights: what every contrast adds to `sum weights totals`.

    Examples
    --------
    >>> adjoint(np.array([1.0, 0.0, 0.0]), [0]).round(3)
    array([0.333, 0.5  , 0.167])
    """
    coefficients: np.ndarray = np.asarray(weights, np.float64)
    for axis in axes:
        coefficients = _over_lengths(sums_and_contrasts(coefficients, axis), axis)
    return coefficients


def sums_and_contrasts(totals: np.ndarray, axis: int) -> np.ndarray:
    """Return sums and contrasts along one axis, in the dtype of the totals.

    Examples
    --------
    >>> sums_and_contrasts(np.array([0.5, 2.0, 4.0]), 0)
    array([ 6.5, -1.5, -5.5])
    """
    last = totals.swapaxes(axis, -1)  # all other axes are alike
    sums = np.cumsum(last, axis=-1)
    steps = np.arange(1, last.shape[-1], dtype=last.dtype)
    rows = np.concatenate([sums[..., -1:], sums[..., :-1] - steps * last[..., 1:]], axis=-1)
    return rows.swapaxes(-1, axis)


def _inverse(measured: np.ndarray, axis: int) -> np.ndarray:
    last = _over_lengths(measured, axis).swapaxes(axis, -1)
    totals = np.repeat(last[..., :1], last.shape[-1], axis=-1)
    # cell x counts as 1 in all rows j > x, and as -x in row x
    totals[..., :-1] += np.cumsum(last[..., :0:-1], axis=-1)[..., ::-1]
    totals[..., 1:] -= np.arange(1, last.shape[-1]) * last[..., 1:]
    return totals.swapaxes(-1, axis)


def _over_lengths(rows: np.ndarray, axis: int) -> np.ndarray:
    """Divide each row by its squared length."""
    shape = [1] * rows.ndim
    shape[axis] = -1
    return np.asarray(rows / squared_lengths(rows.shape[axis]).reshape(shape))


def place(axes: Iterable[int], layer: Collection[int]) -> tuple[slice | int, ...]:
    """Return where the contrasts along the axes of a layer are among those along all axes."""
    return tuple(slice(1, None) if axis in layer else 0 for axis in axes)
