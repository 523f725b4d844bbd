"""Quantiles of a released distribution: the table, and what is said about it."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

import numpy as np
import pandas as pd

from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import ColumnPart, quantile_part, values_part
from dpframe.certificates.mechanism_parts import TreePart
from dpframe.errors import QueryError
from dpframe.inference import distribution
from dpframe.inference.intervals import ENDS
from dpframe.queries.edges import edges_of
from dpframe.queries.quantiles import LEVEL
from dpframe.queries.timescale import microseconds
from dpframe.strategies.structure import TreeStructure

_MOST_EXACT = 30  # quantiles of a table, each of which takes some thousandths of a second


@dataclass(frozen=True, eq=False)
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
    def whole(self) -> bool:
        """Whether each bin holds a single whole number: edges are whole for such alone."""
        left, right = self.bins.left, self.bins.right
        return left.dtype.kind == "i" and bool((right - left == 1).all())

    @property
    def upward(self) -> bool:
        """Whether bins hold their right edge."""
        return bool(self.bins.closed == "right")


def distribution_of(frame: pd.DataFrame, release: Release, what: str) -> Distribution:
    """Take a release of ranges apart."""
    structure = release.mechanism
    if not isinstance(structure, TreePart):
        rule = f"{what} takes numbers of rows in ranges, and this release has none"
        raise QueryError(f'{rule}: release them, as dpf.ranges("fare", by="zone").')
    if not release.columns[0].features:
        ranges = f"{what} is for the numbers of rows, which dpf.ranges releases"
        raise QueryError(f"{ranges}, and not for quantiles: their intervals are in the table.")
    index = frame.index
    number = release.query.by[-1].groups
    bins = cast(pd.IntervalIndex, index[:number].get_level_values(-1))
    groups = index[::number].droplevel(-1) if isinstance(index, pd.MultiIndex) else None
    rows = frame.iloc[:, 0].to_numpy(np.float64).reshape(-1, number)
    return Distribution(groups, bins, rows, structure.by_block["0"])


@dataclass(frozen=True)
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
    found = distribution_of(frame, release, "quantile")
    label = frame.index.names[-1]
    values = _values(found, read, release)
    table = pd.DataFrame(dict(enumerate(values)), index=_index(found.groups, read))
    table.columns = pd.Index([label, *(f"{label}{end}" for end in ENDS)], tupleize_cols=False)
    return table, replace(release, columns=(_describe_quantiles(found, str(label)),))


def _values(found: Distribution, read: Read, release: Release) -> list[Any]:
    """Return values, lower and upper ends, group by group and quantile by quantile."""
    law = release.noise.distribution
    below, quantiles = distribution.below_edges(found.rows), read.quantiles
    cells = len(below) * len(quantiles)
    level = law.level_of_each(read.level, cells) if read.simultaneous else read.level
    errors = distribution.deviations(found.known, len(found.bins), quantiles)
    widths = law.quantile(level) * errors + distribution.ENDS_OF_ROUNDING
    bins = np.arange(len(found.bins))

    @cache
    def exact(at: int, edge: int) -> float:
        weights = (bins < edge) - quantiles[at]
        width = distribution.exact_half_width(found.known, weights, law, level)
        bound = float(widths[at, edge])
        return bound if width is None else min(width, bound)

    few = exact if cells <= _MOST_EXACT else None
    low, high = (ends.ravel() for ends in distribution.limits(below, quantiles, widths, few))
    edges = found.edges
    along = _numbers(edges)
    middle = distribution.crossings(below, quantiles, along).ravel()
    middle = np.clip(middle, along[low], along[high])
    if not found.whole:
        return [_like(edges, middle), edges[low], edges[high]]
    first = edges.to_numpy()
    if found.upward:  # a bin holds its right edge, the last one that may hold the quantile `high`
        whole = np.maximum(np.ceil(middle).astype(np.int64), first[1])
        return [whole, first[low + 1], first[high]]
    whole = np.minimum(np.floor(middle).astype(np.int64), first[-2])
    return [whole, first[low], first[high - 1]]


def _numbers(edges: pd.Index) -> np.ndarray:
    """Return edges as numbers: times in microseconds from the first one."""
    if edges.dtype.kind not in "mM":
        return np.asarray(edges, np.float64)
    counted = np.array([microseconds(edge) for edge in edges])
    return np.asarray(counted - counted[0], np.float64)


def _like(edges: pd.Index, numbers: np.ndarray) -> Any:
    """Return numbers as what edges are."""
    if edges.dtype.kind not in "mM":
        return numbers
    return edges[0] + pd.to_timedelta(np.rint(numbers).astype(np.int64), unit="us").as_unit("us")


def _index(groups: pd.Index | None, read: Read) -> pd.Index:
    """Return the index: the quantiles in every group; of a single one, the groups."""
    if read.scalar:
        return pd.RangeIndex(1) if groups is None else groups
    if groups is None:
        return pd.Index(read.quantiles, name=LEVEL, dtype=np.float64)
    own = len(read.quantiles)
    levels = [groups.get_level_values(at).repeat(own) for at in range(groups.nlevels)]
    every = np.tile(read.quantiles, len(groups))
    return pd.MultiIndex.from_arrays([*levels, every], names=[*groups.names, LEVEL])


def _describe_quantiles(found: Distribution, label: str) -> ColumnPart:
    """Say what the column of quantiles is."""
    first, last = found.edges[[0, -1]].tolist()
    return quantile_part(label, values_part(label, (first, last)))
