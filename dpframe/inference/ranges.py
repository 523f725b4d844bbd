"""Quantiles of a released distribution: the table, and what is said about it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, cast

import numpy as np
import pandas as pd

from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import quantile_part, values_part
from dpframe.certificates.mechanism_parts import TreePart
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.inference.intervals import ENDS
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import NoiseSum
from dpframe.queries.binned import LEVEL
from dpframe.queries.edges import edges_of, microseconds
from dpframe.strategies.domain import TreeStructure
from dpframe.strategies.tree import node_weights

_MOST_EXACT = 30  # quantiles of a table, each of which takes some thousandths of a second


@frozen(eq=False)
class Distribution:
    """Released numbers of rows per bin, by group."""

    groups: pd.Index | None  # None: there is one, of all rows
    bins: pd.IntervalIndex  # adjacent and increasing
    rows: np.ndarray  # one row per group, one column per bin
    known: TreeStructure  # the covariance of those of a group

    @property
    def edges(self) -> pd.Index:
        """The edges of the bins."""
        return edges_of(self.bins)

    @property
    def is_whole(self) -> bool:
        """Whether each bin holds a single whole number: edges are whole for such alone."""
        left, right = self.bins.left, self.bins.right
        return left.dtype.kind == "i" and bool((right - left == 1).all())

    @property
    def upward(self) -> bool:
        """Whether bins hold their right edge."""
        return bool(self.bins.closed == "right")


def distribution_of(frame: pd.DataFrame, release: Release, call: str) -> Distribution:
    """Take a release of ranges apart."""
    structure = release.mechanism
    if not isinstance(structure, TreePart):
        rule = f"{call} takes numbers of rows in ranges, and this release has none"
        raise QueryError(f'{rule}: release them, as dpf.ranges("fare", by="zone").')
    if not release.columns[0].features:
        ranges = f"{call} is for the numbers of rows, which dpf.ranges releases"
        raise QueryError(f"{ranges}, and not for quantiles: their intervals are in the table.")
    index = frame.index
    number = release.query.by[-1].groups
    bins = cast(pd.IntervalIndex, index[:number].get_level_values(-1))
    groups = index[::number].droplevel(-1) if isinstance(index, pd.MultiIndex) else None
    rows = frame.iloc[:, 0].to_numpy(np.float64).reshape(-1, number)
    return Distribution(groups, bins, rows, structure.by_block["0"])


@frozen
class Read:
    """Which quantiles are read off a distribution, the level of their intervals, and how shown."""

    quantiles: tuple[float, ...]
    level: float
    simultaneous: bool
    scalar: bool


def quantiles_read(
    frame: pd.DataFrame, release: Release, read: Read
) -> tuple[pd.DataFrame, Release]:
    """Return the table of quantiles with the ends of their intervals, and what is promised."""
    distribution = distribution_of(frame, release, "quantile")
    label = frame.index.names[-1]
    values = _values(distribution, read, release)
    table = pd.DataFrame(dict(enumerate(values)), index=_index(distribution.groups, read))
    table.columns = pd.Index([label, *(f"{label}{end}" for end in ENDS)], tupleize_cols=False)
    first, last = distribution.edges[[0, -1]].tolist()
    column = quantile_part(str(label), values_part(str(label), (first, last)))
    return table, replace(release, columns=(column,))


def _values(distribution: Distribution, read: Read, release: Release) -> list[Any]:
    """Return values, lower and upper ends, group by group and quantile by quantile."""
    law = release.noise.distribution
    below, quantiles = below_edges(distribution.rows), read.quantiles
    cells = len(below) * len(quantiles)
    level = law.level_of_each(read.level, cells) if read.simultaneous else read.level
    errors = deviations(distribution.known, len(distribution.bins), quantiles)
    widths = law.quantile(level) * errors + ENDS_OF_ROUNDING
    bins = np.arange(len(distribution.bins))

    @cache
    def exact(at: int, edge: int) -> float:
        weights = (bins < edge) - quantiles[at]
        width = exact_half_width(distribution.known, weights, law, level)
        bound = float(widths[at, edge])
        return bound if width is None else min(width, bound)

    few = exact if cells <= _MOST_EXACT else None
    low, high = (ends.ravel() for ends in limits(below, quantiles, widths, few))
    edges = distribution.edges
    along = _numbers(edges)
    middle = crossings(below, quantiles, along).ravel()
    middle = np.clip(middle, along[low], along[high])
    if not distribution.is_whole:
        return [_like(edges, middle), edges[low], edges[high]]
    first = edges.to_numpy()
    if distribution.upward:  # a bin holds its right edge, and the last one the quantile `high`
        integers = np.maximum(np.ceil(middle).astype(np.int64), first[1])
        return [integers, first[low + 1], first[high]]
    integers = np.minimum(np.floor(middle).astype(np.int64), first[-2])
    return [integers, first[low], first[high - 1]]


def _numbers(edges: pd.Index) -> np.ndarray:
    if edges.dtype.kind not in "mM":
        return np.asarray(edges, np.float64)
    # from the first edge on, to which `_like` adds them
    counted = np.array([microseconds(edge) for edge in edges])
    return np.asarray(counted - counted[0], np.float64)


def _like(edges: pd.Index, numbers: np.ndarray) -> Any:
    if edges.dtype.kind not in "mM":
        return numbers
    return edges[0] + pd.to_timedelta(np.rint(numbers).astype(np.int64), unit="us").as_unit("us")


def _index(groups: pd.Index | None, read: Read) -> pd.Index:
    if read.scalar:
        return pd.RangeIndex(1) if groups is None else groups
    if groups is None:
        return pd.Index(read.quantiles, name=LEVEL, dtype=np.float64)
    number = len(read.quantiles)
    levels = [groups.get_level_values(at).repeat(number) for at in range(groups.nlevels)]
    quantiles = np.tile(read.quantiles, len(groups))
    return pd.MultiIndex.from_arrays([*levels, quantiles], names=[*groups.names, LEVEL])


ENDS_OF_ROUNDING = 0.5
"""By how much a sum of rounded noises may be off its continuous law: half of its largest step."""

_MOST_BINS = 2**12  # beyond, sums over all pairs of bins take too long
# Edges in a step. In 300 lognormal values at epsilon 1, .9 quantiles have intervals of width 132 at
# 32, 122 at 64, 83 at 128, 322 in one step, and all hold in 98 to 99 %
_COARSE = 64
_LEAST_TAU = 1e-100  # of the largest: floats tell scales apart


def below_edges(rows: np.ndarray) -> np.ndarray:
    """Return the numbers of rows below each edge, from numbers of rows per bin: one more of them.

    Examples
    --------
    >>> below_edges(np.array([[3.0, 1.0]])).tolist()
    [[0.0, 3.0, 4.0]]
    """
    return np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0)))


def deviations(structure: TreeStructure, bins: int, quantiles: Sequence[float]) -> np.ndarray:
    """Return the standard deviations of `c_e - q N`: one row per quantile, one column per edge."""
    edges, last = np.arange(bins + 1), np.full(bins + 1, bins)
    pairs = ((edges, edges), (edges, last), (last, last))
    of_edges, both, all_rows = (structure.edge_covariances(*pair) for pair in pairs)
    variances = [of_edges - 2 * q * both + q * q * all_rows for q in quantiles]
    return np.sqrt(np.maximum(variances, 0.0))


def exact_half_width(
    structure: TreeStructure, weights: np.ndarray, law: Law, level: float
) -> float | None:
    """Return the half-width of a weighted sum of bins by the law of the noise of all nodes.

    `None`: that of a normal law is as good, or this takes too long.
    """
    noisy = min(structure.tau) > _LEAST_TAU * max(structure.tau)
    if law.norm != 1 or structure.leaves > _MOST_BINS or not noisy:
        return None
    scales, terms = {}, {}
    for at, (deviation, loadings) in enumerate(node_weights(structure, weights)):
        scale = law.continuous_deviation(deviation) / math.sqrt(2)  # of a Laplace law
        scales[str(at)] = scale
        # what rounding alone tells apart is one term
        terms[str(at)] = np.round(loadings, 12) * law.standard_deviation(scale)
    sums = {block: float(np.linalg.norm(part)) for block, part in terms.items()}
    largest = {block: float(np.abs(part).max()) for block, part in terms.items()}
    noise = NoiseSum(sums, scales, largest=largest, smooth=True, terms=terms)
    return float(law.sum_half_width(noise, level))


def limits(
    below: np.ndarray,
    quantiles: Sequence[float],
    widths: np.ndarray,
    exact: Callable[[int, int], float] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last edge between which quantiles may lie, by group and quantile.

    The lower one is before the first edge that a one-sided test of `c_e - q N >= 0` does not
    reject. It is wrong only if the edge after the quantile is rejected, so that the level of a test
    is that of the interval. From 128 bins on, every 64th edge is tested first, so that no early
    crossing of noise counts, and then those before the first that is not rejected. It is wrong only
    if one of two edges is rejected, that after the quantile and the 64th next to it: nearly the
    same test, though no more is proved than twice its level.

    Widths say how far noise may move `c_e - q N`, by quantile and edge; `exact` says the same, or
    less, for the position of a quantile and an edge: looked at where it decides.

    Examples
    --------
    >>> below = np.array([[0.0, 1.0, 8.0, 10.0]])
    >>> limits(below, [0.5], np.full((1, 4), 1.0))
    (array([[1]]), array([[2]]))
    """
    last = below.shape[1] - 1
    low = np.empty((len(below), len(quantiles)), np.intp)
    high = np.empty_like(low)
    for at, (q, width) in enumerate(zip(quantiles, widths, strict=True)):
        off = below - q * below[:, -1:]
        of_edge = None if exact is None else partial(exact, at)
        first = _first_between(off, width, of_edge)
        backwards = None if of_edge is None else lambda edge, of=of_edge: of(last - edge)
        final = last - _first_between(-off[:, ::-1], width[::-1], backwards)
        low[:, at] = np.maximum(first - 1, 0)
        high[:, at] = np.minimum(final + 1, last)
    return low, high


def _first_between(
    off: np.ndarray, width: np.ndarray, exact: Callable[[int], float] | None
) -> np.ndarray:
    """Return the first edges where `off >= -width`, within the first coarse step that has one."""
    edges = np.arange(off.shape[1])
    if len(edges) <= 2 * _COARSE:
        return _first_kept(off, width, exact)
    coarse = (edges % _COARSE == 0) | (edges == edges[-1])
    first = _first_kept(off, width, exact, coarse)[:, None]
    return _first_kept(off, width, exact, (edges > first - _COARSE) & (edges <= first))


def _first_kept(
    off: np.ndarray,
    width: np.ndarray,
    exact: Callable[[int], float] | None,
    among: np.ndarray | bool = True,
) -> np.ndarray:
    """Return the first edges where `off >= -width`, among some, or 0 where there is none."""
    kept = (off >= -width) & among
    first: np.ndarray = kept.argmax(axis=1)
    left = np.flatnonzero(kept.any(axis=1))
    while exact is not None and len(left):
        edges = first[left].tolist()
        least = {edge: -exact(edge) for edge in set(edges)}
        left = left[off[left, edges] < [least[edge] for edge in edges]]
        kept[left, first[left]] = False
        first[left] = kept[left].argmax(axis=1)
        left = left[kept[left].any(axis=1)]
    return first


def crossings(below: np.ndarray, quantiles: Sequence[float], edges: np.ndarray) -> np.ndarray:
    """Return where distributions cross their quantiles, straight between edges.

    The numbers of rows below each edge are first made increasing, between 0 and all rows, by least
    squares. Where one is q N all along, the middle of that is returned.

    Examples
    --------
    >>> crossings(np.array([[0.0, 3.0, 1.0, 8.0]]), [0.25, 0.5], np.array([0.0, 1.0, 2.0, 3.0]))
    array([[1.5       , 2.33333333]])
    """
    crossed = np.empty((len(below), len(quantiles)))
    for row, line in zip(crossed, risen(below), strict=True):
        heights = np.multiply(quantiles, line[-1])
        last = np.interp(heights, line, edges)
        first = np.interp(-heights, -line[::-1], edges[::-1])
        row[:] = first / 2 + last / 2  # halves first: edges can be near the largest float
    return crossed


def least_squares() -> Callable[..., Any]:
    """Return the function that makes numbers increase; nothing is imported after a charge."""
    # slow to import, and not always needed
    from scipy.optimize import isotonic_regression

    return isotonic_regression  # type: ignore[no-any-return]


def risen(below: np.ndarray) -> np.ndarray:
    """Return the nearest numbers of rows that increase from 0 to all rows, by least squares.

    Examples
    --------
    >>> risen(np.array([[0.0, 3.0, 1.0, 8.0], [0.0, -1.0, 1.0, -3.0]])).tolist()
    [[0.0, 2.0, 2.0, 8.0], [0.0, 0.0, 0.0, 0.0]]
    """
    isotonic_regression = least_squares()
    lines = np.zeros(below.shape)
    for line, estimated in zip(lines, below, strict=True):
        line[-1] = max(estimated[-1], 0.0)
        if len(line) > 2:  # noqa: PLR2004 - edges between the ends
            line[1:-1] = np.clip(isotonic_regression(estimated[1:-1]).x, 0.0, line[-1])
    return lines
