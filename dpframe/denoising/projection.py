"""Euclidean projections of noisy values on what is known of the true ones.

Moving to the nearest point of a convex set that holds the truth never moves away from the truth.
Risks are estimated by `|x - y|^2 / d + sigma^2 (2 df / d - 1)` for d values y, projected to x; df
is the divergence `sum_i dx_i / dy_i` (Stein 1981). This is unbiased where the noise is independent
and Gaussian.
"""

import itertools
import math
from fractions import Fraction

import numpy as np

from dpframe.arguments import check_flag
from dpframe.denoising import base
from dpframe.denoising.base import Denoised, check_law, check_sigma, check_values, passing
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_float
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN


@np.errstate(over="ignore", invalid="ignore")  # a warning could depend on what was released
def nonnegative(
    values: object, sigma: float, *, law: Law = GAUSSIAN, integer: bool = False
) -> Denoised:
    """Clip values at zero, `x_i = max(y_i, 0)`.

    No value gets worse where the truth is not negative, but their total comes out too high: of
    Gaussian noise, the mean of x_i is `m P(Z < m / sigma) + sigma f(m / sigma)` for a truth m, Z
    standard normal of density f. An empty cell gains `0.4 sigma`; at sigma = 100, the total of
    cells that hold 40 each gains 58 %, and of 20 each 153 %. Use `simplex` where totals matter.

    Parameters
    ----------
    values
        d noisy values y.
    sigma
        Standard deviation of their noise.
    law
        The law of the noise. The divergence is the number of positive values if it is Gaussian, a
        0, which only rounding makes, being half of one; and `sum_i P(y_i + W > 0)` if it is
        Laplace, with W another draw of the noise. Both make the risk unbiased.
    integer
        Whether the truth is whole: the risk is then unbiased for discrete Laplace noise, too.

    Returns
    -------
    Denoised
        The clipped values and their risk.

    Raises
    ------
    QueryError
        If the values are not finite, sigma is not positive, or the law is not known.

    Notes
    -----
    For Laplace noise W of scale b, `E[W h(m + W)] = 2 b^2 E[h'(m + W + W')]` with W' another draw:
    the integral of u times the density of W at u, from w up, is `(b + |w|) exp(-|w| / b) / 2`,
    which is `2 b^2` times the density of `W + W'` at w. Notes of `soft_threshold` say what it is on
    integers.

    Examples
    --------
    >>> nonnegative([3, -2, 1], 1.0).values.tolist()
    [3.0, 0.0, 1.0]
    """
    noisy, sigma, law = check_values(values), check_sigma(sigma), check_law(law)
    df = passing(noisy, 0.0, sigma, law, integer=integer)
    clipped = np.maximum(noisy, 0.0)
    return Denoised(clipped, _risk(noisy, clipped, sigma, df), {})


@np.errstate(over="ignore", invalid="ignore")
def simplex(
    values: object,
    sigma: float,
    *,
    total: float | None = None,
    law: Law = GAUSSIAN,
    integer: bool = False,
) -> Denoised:
    """Return the nearest non-negative values with a given total.

    It is `x_i = max(y_i - t, 0)` with the threshold t that makes `sum_i x_i = total`, found by
    sorting (Held, Wolfe and Crowder 1974; Duchi et al. 2008). With k of the x positive the
    divergence is `k - 1` for a given total, and k where the total follows the values. Under Laplace
    noise, `sum_i P(y_i + W > t)` takes the place of k, as for `nonnegative`, as if t were given.

    Parameters
    ----------
    values
        d noisy values y.
    sigma
        Standard deviation of their noise.
    total
        The total, not negative; `None`: that of the values, or 0 if it is negative.
    law, integer
        As for `nonnegative`.

    Returns
    -------
    Denoised
        The projected values, their risk, and the total if it was chosen.

    Raises
    ------
    QueryError
        If the values are not finite, sigma is not positive, the total is negative or not finite,
        or there are no values to share it.

    Examples
    --------
    >>> simplex([5, 3, -2], 1.0).values.tolist()
    [4.0, 2.0, 0.0]
    >>> simplex([5, 3, -2], 1.0, total=1).values.tolist()
    [1.0, 0.0, 0.0]
    """
    noisy, sigma, law = check_values(values), check_sigma(sigma), check_law(law)
    amount = None if total is None else _amount("total", total)
    if amount and not noisy.size:
        raise QueryError.about("total", "must be 0 where there are no values", amount)
    total = max(float(noisy.sum()), 0.0) if amount is None else amount
    shared = _share(noisy, total)
    k = int(np.count_nonzero(shared))
    df = float(k)
    if law.companion and k:
        df = passing(noisy, float(noisy.max() - shared.max()), sigma, law, integer=integer)
    if amount is not None:
        df *= 1 - 1 / max(k, 1)
    chosen = {"total": total} if amount is None else {}
    return Denoised(shared, _risk(noisy, shared, sigma, df), chosen)


@np.errstate(over="ignore", invalid="ignore")
def l1_ball(values: object, sigma: float, *, radius: float) -> Denoised:
    """Return the nearest values whose absolute values add up to no more than a radius.

    Values already there stay. Others become `x_i = sign(y_i) max(|y_i| - t, 0)` with the threshold
    t that makes `sum_i |x_i| = radius` (Duchi et al. 2008); with k of the x not 0 the divergence is
    `k - 1` (Kato 2009).

    Parameters
    ----------
    values
        d noisy values y.
    sigma
        Standard deviation of their noise.
    radius
        Largest sum of absolute values, not negative.

    Returns
    -------
    Denoised
        The projected values and their risk.

    Raises
    ------
    QueryError
        If the values are not finite, sigma is not positive, or the radius is negative or not
        finite.

    Examples
    --------
    >>> l1_ball([5, -3, 1], 1.0, radius=4).values.tolist()
    [3.0, -1.0, 0.0]
    """
    noisy, sigma = check_values(values), check_sigma(sigma)
    radius = _amount("radius", radius)
    sizes = np.abs(noisy)
    if sizes.sum() <= radius:
        return Denoised(noisy.copy(), _risk(noisy, noisy, sigma, noisy.size), {})
    shrunk = _share(sizes, radius)
    df = max(int(np.count_nonzero(shrunk)) - 1, 0)
    signed = np.where(noisy < 0, -shrunk, shrunk) + 0.0  # adding 0.0 turns -0.0 into 0.0
    return Denoised(signed, _risk(noisy, signed, sigma, df), {})


@np.errstate(over="ignore", invalid="ignore")
def monotone(values: object, sigma: float, *, increasing: bool = True) -> Denoised:
    """Return the nearest values that never decrease, or never increase, along their order.

    This is isotonic regression by pooling adjacent violators: neighbors in the wrong order are
    replaced by their mean until there are none. The divergence is the number of blocks of equal
    values (Meyer and Woodroofe 2000).

    Parameters
    ----------
    values
        d noisy values y, in the order in which the truth is monotone.
    sigma
        Standard deviation of their noise.
    increasing
        Whether the truth never decreases; otherwise it never increases.

    Returns
    -------
    Denoised
        The monotone values and their risk.

    Raises
    ------
    QueryError
        If the values are not finite, sigma is not positive, or `increasing` is not true or false.

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
    return Denoised(pooled, _risk(noisy, pooled, sigma, df), {})


@np.errstate(over="ignore", invalid="ignore")
def consistent(values: object, sigma: float, *, parents: object) -> Denoised:
    """Return the nearest values of a tree in which every inner node is the sum of its children.

    From the leaves up, a value and the sum of its children are combined by their variances; from
    the roots down, what is missing in the sum of the children is spread over them by their
    variances. With variances in units of `sigma^2`, V_i the sum of the v_c over the children c of
    node i, and S_i that of the z_c,

        z_i = v_i y_i + (1 - v_i) S_i,  v_i = V_i / (V_i + 1)  at inner nodes, and y_i, 1 at leaves
        x_c = z_c + (v_c / V_i) (x_i - S_i)                    below inner nodes, and z_i at roots

    which is least squares for any number of children and any depth. Where all inner nodes have k
    children and all leaves one depth it is the closed formula of Hay et al. (2010, Theorem 3).

    Parameters
    ----------
    values
        n noisy values y, one per node.
    sigma
        Standard deviation of their noise.
    parents
        The positions of the nodes' parents, -1 for a root; of shape (n,). There may be several
        roots.

    Returns
    -------
    Denoised
        Consistent values and their risk. The divergence is the number of leaves; as the projection
        is linear, the risk is unbiased for any law of the noise. It is `sigma^2` times leaves over
        nodes on average where the true values are consistent.

    Raises
    ------
    QueryError
        If the values are not finite, sigma is not positive, a parent is not a position or -1, or a
        node is its own ancestor.

    Examples
    --------
    >>> consistent([10, 3, 4], 1.0, parents=[-1, 0, 0]).values.tolist()
    [9.0, 4.0, 5.0]
    """
    noisy, sigma = check_values(values), check_sigma(sigma)
    above = base.check_parents(parents, noisy.size)
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
    return Denoised(estimates, _risk(noisy, estimates, sigma, leaves), {})


def whole(values: object, *, total: int | None = None) -> Denoised:
    """Round values up or down to integers that keep the total.

    All are rounded down, then as many as the total needs are rounded up: those with the largest
    remainders, and of equal ones the first (Hamilton's method). No value moves by 1 or more, and
    none that is not negative becomes negative.

    Parameters
    ----------
    values
        The values.
    total
        The total of the integers; `None`: that of the values, rounded, halves to the even integer.

    Returns
    -------
    Denoised
        Integers, as float64. Their risk is `nan`.

    Raises
    ------
    QueryError
        If the values are not finite, or the total is not an integer or not within reach of
        rounding.

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
        way_out = "Project the values on the simplex with this total first."
        raise QueryError.about("total", rule, total, way_out)
    raised = np.argsort(-remainders, kind="stable")[: int(total) - least]
    floors[raised] += 1
    return Denoised(floors + 0.0, math.nan, {})  # adding 0.0 turns -0.0 into 0.0


def _risk(noisy: np.ndarray, estimates: np.ndarray, sigma: float, df: float) -> float:
    """Stein's unbiased estimate of the mean squared error."""
    if not noisy.size:
        return math.nan
    moved = float(np.square(estimates - noisy).mean())
    return moved + sigma * sigma * (2 * df / noisy.size - 1)


def _share(values: np.ndarray, total: float) -> np.ndarray:
    """Project on the simplex of a total."""
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


def _amount(name: str, value: object) -> float:
    """Validate a non-negative finite number."""
    number = as_float(value)
    if 0 <= number < math.inf:
        return number
    raise QueryError.about(name, "must be a finite number, not negative", value)


def _levels(parents: np.ndarray) -> list[np.ndarray]:
    """Nodes by their depth, roots first."""
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
