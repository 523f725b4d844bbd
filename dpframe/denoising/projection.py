"""Euclidean projections of noisy values on what is known of the true ones.

Moving to the nearest point of a convex set that holds the truth never moves away from the truth.
Risks are those of `stein_risk`.
"""

import itertools
import math
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpframe.arguments import check_flag
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_float
from dpframe.privacy.law import Law


class Denoised(NamedTuple):
    """Denoised values, and how good they are expected to be."""

    values: np.ndarray  # estimates in the order of the values given, float64
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


def nonnegative(values: object, sigma: float) -> Denoised:
    """Clip values at zero, `x_i = max(y_i, 0)`.

    No value gets worse where the truth is not negative, but their total comes out too high. An
    empty cell gains `0.4 sigma`; at sigma = 100, the total of cells that hold 40 each gains 58 %,
    and of 20 each 153 %.

    Examples
    --------
    >>> nonnegative([3, -2, 1], 1.0).values.tolist()
    [3.0, 0.0, 1.0]
    """
    noisy, _ = check_values(values), check_sigma(sigma)
    return Denoised(np.maximum(noisy, 0.0), math.nan, {})


@np.errstate(over="ignore", invalid="ignore")
def monotone(values: object, sigma: float, *, increasing: bool = True) -> Denoised:
    """Return the nearest values that never decrease, or never increase, along their order.

    This is isotonic regression by pooling adjacent violators: neighbors in the wrong order are
    replaced by their mean until there are none. The divergence is the number of blocks of equal
    values (Meyer and Woodroofe 2000).

    Examples
    --------
    >>> monotone([1, 4, 2, 5], 1.0).values.tolist()
    [1.0, 3.0, 3.0, 5.0]
    """
    noisy, sigma = check_values(values), check_sigma(sigma)
    check_flag("increasing", increasing)
    if not noisy.size:
        return Denoised(noisy.copy(), math.nan, {})
    from scipy import optimize  # slow to import, and few releases need it

    pooled = np.array(optimize.isotonic_regression(noisy, increasing=bool(increasing)).x)
    df = 1 + int(np.count_nonzero(np.diff(pooled)))
    return Denoised(pooled, stein_risk(pooled - noisy, sigma, df / noisy.size), {})


@np.errstate(over="ignore", invalid="ignore")
def consistent(values: object, sigma: float, *, parents: object) -> Denoised:
    """Return the nearest values of a tree in which every inner node is the sum of its children.

    From the leaves up, a value and the sum of its children are combined by their variances; from
    the roots down, what is missing in the sum of the children is spread over them by their
    variances. With variances in units of `sigma^2`, V_i the sum of the v_c over the children c of
    node i, and S_i that of the z_c,

        z_i = v_i y_i + (1 - v_i) S_i,  v_i = V_i / (V_i + 1)  at inner nodes, and y_i, 1 at leaves
        x_c = z_c + (v_c / V_i) (x_i - S_i)                    below inner nodes, and z_i at roots

    which is least squares for any tree. Where all inner nodes have k children and all leaves one
    depth it is the closed formula of Hay et al. (2010, Theorem 3). Parents are positions, -1 for a
    root. The divergence is the number of leaves; as the projection is linear, the risk is unbiased
    for any law of the noise.

    Examples
    --------
    >>> consistent([10, 3, 4], 1.0, parents=[-1, 0, 0]).values.tolist()
    [9.0, 4.0, 5.0]
    """
    noisy, sigma = check_values(values), check_sigma(sigma)
    above = check_parents(parents, noisy.size)
    if not noisy.size:
        return Denoised(noisy.copy(), math.nan, {})
    levels = _levels(above)
    estimates, variances = noisy.copy(), np.ones(noisy.size)
    sums, pooled = np.zeros(noisy.size), np.zeros(noisy.size)
    for nodes, children in reversed(list(itertools.pairwise(levels))):
        np.add.at(sums, above[children], estimates[children])
        np.add.at(pooled, above[children], variances[children])
        inner = nodes[pooled[nodes] > 0]
        variances[inner] = pooled[inner] / (pooled[inner] + 1)
        estimates[inner] = sums[inner] + variances[inner] * (noisy[inner] - sums[inner])
    for children in levels[1:]:
        parent = above[children]
        missing = estimates[parent] - sums[parent]
        estimates[children] += variances[children] / pooled[parent] * missing
    leaves = int(np.count_nonzero(pooled == 0))
    return Denoised(estimates, stein_risk(estimates - noisy, sigma, leaves / noisy.size), {})


def whole(values: object, *, total: int | None = None) -> Denoised:
    """Round values up or down to integers that keep the total, or have a given one.

    All are rounded down, then as many as the total needs are rounded up: those with the largest
    remainders, and of equal ones the first (Hamilton's method). No value moves by 1 or more, and
    none that is not negative becomes negative. The total of the values is rounded, halves to even.

    Examples
    --------
    >>> whole([0.4, 1.4, 2.4, 0.8]).values.tolist()
    [1.0, 1.0, 2.0, 1.0]
    """
    exact = check_values(values)
    floors = np.floor(exact)
    remainders = exact - floors
    least = sum(map(int, floors.tolist()))  # of any size: a sum of floats could lose ones
    most = least + int(np.count_nonzero(remainders))
    if total is None:  # may be beyond the range of floats
        total = round(least + Fraction(math.fsum(remainders.tolist())))
    elif not as_float(total).is_integer() or not least <= total <= most:
        rule = f"must be an integer that rounding up or down can reach, from {least} to {most}"
        raise QueryError.about("total", rule, total)
    raised = np.argsort(-remainders, kind="stable")[: int(total) - least]
    floors[raised] += 1
    return Denoised(floors + 0.0, math.nan, {})  # adding 0.0 turns -0.0 into 0.0


def onto_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """Return the nearest values that are not negative and have a total.

    It is `x_i = max(y_i - t, 0)` with the threshold t that makes `sum_i x_i = total`, found by
    sorting (Held, Wolfe and Crowder 1974; Duchi et al. 2008).

    Examples
    --------
    >>> onto_simplex(np.array([5.0, 3.0, -2.0]), 6.0).tolist()
    [4.0, 2.0, 0.0]
    """
    if total == 0 or not values.size:
        return np.zeros(values.size)
    if values.min() >= 0 and values.sum() == total:
        return values.copy()
    # moving all values changes nothing, and keeps a total that is small next to the values
    below = values - values.max()
    ordered = np.sort(below)[::-1]
    ranks = np.arange(1, values.size + 1)
    k = np.count_nonzero(ranks * ordered > np.cumsum(ordered) - total)
    # pairwise sums are more accurate than running ones
    threshold = (ordered[:k].sum() - total) / k
    return np.asarray(np.maximum(below - threshold, 0.0))


@np.errstate(over="ignore", under="ignore")
def stein_risk(changes: np.ndarray, sigma: float, slope: float) -> float:
    """Return Stein's unbiased estimate of the mean squared error of denoised values.

    It is `|h(y) - y|^2 / d + s^2 (2 q - 1)` (Stein 1981), where h maps the d values y to denoised
    ones, the changes are `h(y) - y`, of either sign, s is `sigma`, of independent noise, and q the
    slope, the mean of the derivatives `d h_i / d y_i`. No step on the way overflows.

    Examples
    --------
    >>> stein_risk(np.array([-1.0, 1.0]), 2.0, 0.75)
    3.0
    """
    unit = max(float(np.abs(changes).max()), sigma)
    if math.isinf(unit):
        return math.inf
    relative = float(np.mean(np.square(changes / unit))) + (sigma / unit) ** 2 * (2 * slope - 1)
    return unit * (unit * relative)


def _levels(parents: np.ndarray) -> list[np.ndarray]:
    n = parents.size
    ancestor = np.append(parents, -1)  # -1 reads the last element: roots stay where they are
    depths = (ancestor >= 0).astype(np.intp)
    for _ in range(n.bit_length()):  # a round doubles the step
        if (ancestor < 0).all():
            break
        depths += depths[ancestor]
        ancestor = ancestor[ancestor]
    circular = np.flatnonzero(ancestor >= 0)
    if circular.size:
        reason = f"and from {circular[:5].tolist()} they lead around in a circle"
        way_out = "Give the root of every tree the parent -1."
        text = f"parents must lead from every node to a root, {reason}. {way_out}"
        raise QueryError(text, parameter="parents")
    order = np.argsort(depths[:n], kind="stable")
    return np.split(order, np.cumsum(np.bincount(depths[:n]))[:-1])
