"""What all denoisers share: what they return, and the checks of what they are given."""

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_float
from dpframe.privacy.law import Law


class Denoised(NamedTuple):
    """Denoised values, and how good they are expected to be."""

    values: np.ndarray
    """Estimates in the order of the values given, float64."""
    risk: float
    """Estimated mean squared error of a value, in squared units; `nan` where no estimate exists."""
    chosen: dict[str, float]
    """What was chosen by looking at the values, such as a threshold, by name."""
    gain: float = math.nan
    """Part of the mean absolute error that is expected to go; `nan` where no estimate exists."""


def check_values(values: object) -> np.ndarray:
    """Return finite values as a one-dimensional array of float64, which may be empty."""
    with suppress(TypeError, ValueError):
        array = np.asarray(values, dtype=np.float64)
        if array.ndim == 1 and np.isfinite(array).all():
            return array
    rule = "values to denoise must be finite numbers in a one-dimensional array"
    way_out = "Denoise one column, or row, at a time, before it is joined with other tables."
    raise QueryError(f"{rule}. {way_out}", parameter="values")


def check_sigma(sigma: object) -> float:
    """Return the standard deviation of the noise as a positive float."""
    number = as_float(sigma)
    if 0 < number < math.inf:
        return number
    rule = "must be the standard deviation of the noise, a positive number"
    raise QueryError.about("sigma", rule, sigma)


def check_law(law: object) -> Law:
    """Return the law of the noise."""
    if isinstance(law, Law):
        return law
    raise QueryError.about("law", "must be GAUSSIAN or LAPLACE of dpframe.privacy.laws", law)


def noise_unit(values: np.ndarray, sigma: float, law: Law, *, integer: bool) -> float:
    """Return the standard deviation of the continuous noise that the noise in values goes by.

    It is sigma. Where truths and all values are whole, it is that of the continuous law with the
    scale of the discrete one, which says exactly how likely whole numbers are relative to others.
    """
    is_whole = integer and bool((values == np.rint(values)).all())
    return law.continuous_deviation(sigma) if is_whole else sigma


def check_amount(name: str, value: object) -> float:
    """Return a number that is finite and not negative."""
    number = as_float(value)
    if 0 <= number < math.inf:
        return number
    raise QueryError.about(name, "must be a finite number, not negative", value)


def check_edges(edges: object, n: int) -> np.ndarray:
    """Return the edges of a simple graph on n nodes as an (m, 2) array of positions.

    Rows are sorted, no edge comes twice, and an edge from a node to itself is left out.
    """
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), np.intp)
    usable = array.shape[1:] == (2,) and array.dtype.kind in "iu"
    if not usable or array.min() < 0 or array.max() >= n:
        rule = f"must be an array of shape (m, 2) of positions of nodes, from 0 to {n - 1}"
        raise QueryError.about("edges", rule, edges)
    pairs = np.sort(array.astype(np.intp), axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(pairs, axis=0)


def check_parents(parents: object, n: int) -> np.ndarray:
    """Return positions of parents of n nodes, -1 for roots."""
    array = np.asarray(parents)
    if array.size == 0 == n:
        return np.empty(0, np.intp)
    usable = array.shape == (n,) and array.dtype.kind in "iu"
    if not usable or array.min() < -1 or array.max() >= n:
        rule = f"must be {n} integers, the position of each node's parent or -1 for a root"
        raise QueryError.about("parents", rule, parents)
    return array.astype(np.intp)
