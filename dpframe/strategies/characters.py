"""Tables measured by sums of signs, which share the noise of a box.

A table by a column of k keys has k cells. Measure k sums of signs in place of them: the first one
counts every row, the others add 1 or -1 for a row, by its key. Let M be the matrix of these signs,
one row for each sum and one column for each key, of entries in [-1, 1], invertible, and its first
row of ones. The cells are `M^-1` times the sums. A cell has variance v times

    c = sum_r (M^-1)_xr^2 ,

v being that of the noise of a sum. It is at least 1 / k (Hotelling 1944, on weighing with a
balance), which Hadamard matrices reach: c = 1/2, 5/12, 1/4, 2/9, 1/5 for k = 2, 3, 4, 5, 6, in the
mean over the cells.

For tables by several columns, signs are multiplied: a sum belongs to a set S of columns, with one
row of M other than the first for each of them, and tables share the sums that belong to columns of
both. So a row moves each of the D sums of all tables by at most 1, and noise in one box costs the
largest of these movements, where Laplace noise on cells costs the number of tables.

Rows without any of the keys of a column have a cell of their own, which is not released; or, where
that is better, a sum of 1 for rows with a key and -1 for others, and no sign in the other sums.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import ClassVar, NamedTuple, assert_never

import numpy as np

from dpframe.context import cached_property
from dpframe.frozen import frozen
from dpframe.privacy.box import spread
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Scale
from dpframe.strategies.base import Estimate, Need, Prediction, Workload
from dpframe.strategies.box import boxes_of
from dpframe.strategies.contrasts import place
from dpframe.strategies.domain import Dimension, Domain
from dpframe.strategies.layout import lift_totals, weights
from dpframe.strategies.linear import (
    ROUNDED,
    AnyReading,
    Block,
    QuotientReading,
    Reading,
    corners,
    round_whole,
)
from dpframe.strategies.margins import Lattice, Layer, lattice_of, subsets

MOST_SUMS = 2_500
"""More sums than this are not planned: one box of so many is never best."""

MOST_KEYS = 32
"""Nor are signs of more keys than this."""

_FINEST = 10_000  # denominator of a weight; finer ones gain nothing
_SMALL_STEPS, _NEAR = np.arange(1, 65), 1e-9  # found faster


@frozen(eq=False)
class Signs:
    """The signs of a column, and how its cells are read off their sums.

    Parameters
    ----------
    matrix
        One row for each sum, one column for each key; the last one may be for rows without a key.
    inverse
        One row for each key that is released.
    """

    matrix: np.ndarray
    inverse: np.ndarray

    @property
    def spread(self) -> float:
        """The mean over the cells of c, the variance of a cell at variance 1 of every sum."""
        return float((self.inverse**2).sum() / len(self.inverse))


def signs_of(keys: int, *, hidden: bool = False) -> Signs:
    """Choose the signs of a column.

    Parameters
    ----------
    keys
        The number of keys that are released.
    hidden
        Whether rows may have none of them.

    Examples
    --------
    >>> signs_of(3).matrix.tolist()
    [[1, 1, 1], [1, -1, 0], [1, 1, -1]]
    >>> signs_of(4).matrix.tolist()
    [[1, 1, 1, 1], [-1, -1, 1, 1], [-1, 1, -1, 1], [-1, 1, 1, -1]]
    >>> [round(signs_of(k).spread, 4) for k in (2, 3, 4, 5, 6, 7, 8)]
    [0.5, 0.4167, 0.25, 0.2222, 0.2, 0.22, 0.125]
    """
    return _signs_of(keys, hidden)


@lru_cache(64)
def _signs_of(keys: int, hidden: bool) -> Signs:
    matrices = [_square(keys + hidden), *([_beside(_square(keys))] if hidden else [])]
    pairs = zip(matrices, np.linalg.inv(matrices)[:, :keys], strict=True)
    # rounded, so that the last digits do not decide between matrices that are as good
    return min(itertools.starmap(Signs, pairs), key=lambda signs: round(signs.spread, 12))


@lru_cache(64)
def _square(n: int) -> np.ndarray:
    """Return n sums of n signs, from which cells have small variances; the first is of ones."""
    if n <= 2:  # noqa: PLR2004
        return np.array([[1, 1], [1, -1]])[:n, :n]
    matrices = [_all_but_one(n), _beside(_square(n - 1))]
    matrices += [_kron(_square(p), _square(n // p)) for p in range(2, n) if n % p == 0]
    if n % 2 == 0:
        half, ones = _all_but_one(n // 2), np.ones((n // 2, n // 2), np.int64)
        matrices.append(np.block([[half, ones], [-ones, half]]))
    # all have an inverse: that of J - 2 I has the eigenvalues 1 / (n - 2) and -1 / 2
    best = matrices[(np.linalg.inv(matrices) ** 2).sum(axis=(1, 2)).round(9).argmin()]
    matrix: np.ndarray = best * best[0]  # a column of the other sign is as good
    return matrix


def _beside(matrix: np.ndarray) -> np.ndarray:
    """Add a key of which the other sums know nothing, and a sum of all keys against it."""
    extended = np.zeros([n + 1 for n in matrix.shape], np.int64)
    extended[:-1, :-1] = matrix
    extended[[0, -1]] = 1
    extended[-1, -1] = -1
    return extended


def _kron(matrix: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the Kronecker product of two matrices; that of numpy takes ten times as long."""
    rows, columns = np.multiply(matrix.shape, other.shape)
    product: np.ndarray = matrix[:, None, :, None] * other[:, None]
    return product.reshape(rows, columns)


def _all_but_one(n: int) -> np.ndarray:
    return np.ones((n, n), np.int64) - 2 * np.eye(n, dtype=np.int64)


@frozen(eq=False)
class Characters:
    """The sums of signs of some tables, in the order in which they are measured.

    Parameters
    ----------
    lattice
        The tables and their columns. The sums of a layer have the signs of its columns.
    """

    lattice: Lattice

    @cached_property
    def _sizes(self) -> dict[Layer, int]:
        """How many sums every layer has."""
        return {layer: math.prod(self.lattice.shape_of(layer)) for layer in self.lattice.layers}

    @cached_property
    def number(self) -> int:
        """How many sums there are."""
        return sum(self._sizes.values())

    @cached_property
    def _signs(self) -> list[Signs]:
        return [_of_dimension(dimension) for dimension in self.lattice.domain.dimensions]

    @cached_property
    def _places(self) -> dict[Layer, np.ndarray]:
        """The positions of the sums of every layer."""
        ends = itertools.accumulate(self._sizes.values())
        return {
            layer: np.arange(end - size, end).reshape(self.lattice.shape_of(layer))
            for (layer, size), end in zip(self._sizes.items(), ends, strict=True)
        }

    def add_up(self, totals: np.ndarray) -> np.ndarray:
        """Return the sums of the totals of all cells in which rows are counted, modulo 2**64."""
        sums = np.zeros(self.number, np.int64)
        for table, cells in self.lattice.split(totals).items():
            along = reduce(self._along, zip(range(len(table)), table, strict=True), cells)
            for layer in subsets(table):
                sums[self._places[layer]] = along[place(table, layer)]
        return sums

    def _along(self, cells: np.ndarray, axis: tuple[int, int]) -> np.ndarray:
        at, column = axis
        last: np.ndarray = cells.swapaxes(at, -1) @ self._signs[column].matrix.T
        return last.swapaxes(-1, at)

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """The least and the largest that a row adds to each sum: signs have both 1 and -1."""
        return [(-1, 1) if layer else (1, 1) for layer, n in self._sizes.items() for _ in range(n)]

    @cached_property
    def positions(self) -> list[np.ndarray]:
        """By table, which sums its cells are read off."""
        return list(map(self._find_sums, self.lattice.tables))

    def _find_sums(self, table: Layer) -> np.ndarray:
        positions = np.empty(self.lattice.shape(table), np.intp)
        for layer in subsets(table):
            positions[place(table, layer)] = self._places[layer]
        return positions.ravel()

    @cached_property
    def weights(self) -> list[np.ndarray]:
        """By table, with which weights its cells are read off these sums, cell by cell."""
        return [
            reduce(_kron, (self._signs[axis].inverse for axis in table), np.ones((1, 1)))
            for table in self.lattice.tables
        ]

    @cached_property
    def steps(self) -> list[int]:
        """By table, the s for which all weights are multiples of 1 / s."""
        return list(map(_step, self.weights))

    @cached_property
    def _mean_squares(self) -> list[np.ndarray]:
        """By table, the mean over its cells of the squares of these weights."""
        by_axis = [(signs.inverse**2).mean(axis=0) for signs in self._signs]
        start = np.ones(1)
        return [
            reduce(np.multiply.outer, (by_axis[axis] for axis in table), start).ravel()
            for table in self.lattice.tables
        ]

    def mean_variances(self, variances: np.ndarray) -> list[float]:
        """Return the mean variance of the cells of every table, from those of all sums."""
        pairs = zip(self.positions, self._mean_squares, strict=True)
        return [float(squares @ variances[positions]) for positions, squares in pairs]

    @cached_property
    def demands(self) -> list[float]:
        """For every sum, the weight of its variance in the mean variance of all tables."""
        importance = self.lattice.domain.weights or (1.0,) * len(self.positions)
        by_sum = np.zeros(self.number)
        tables = zip(self.positions, self._mean_squares, importance, strict=True)
        for positions, squares, weight in tables:
            by_sum[positions] += weight * squares
        demands: list[float] = (by_sum / math.fsum(importance)).tolist()
        return demands


def _step(weights: np.ndarray) -> int:
    different = np.unique(weights)
    times = np.multiply.outer(_SMALL_STEPS, different)
    (small,) = (np.abs(times - np.rint(times)) < _NEAR).all(axis=1).nonzero()
    if len(small):
        return int(_SMALL_STEPS[small[0]])
    parts = (Fraction(float(weight)).limit_denominator(_FINEST) for weight in different)
    return math.lcm(*(part.denominator for part in parts))


def _of_dimension(dimension: Dimension) -> Signs:
    return signs_of(dimension.size - dimension.hidden, hidden=dimension.hidden)


@frozen(eq=False)
class CharacterDesign:
    """Every block is a single integer: a sum of signs of a total over all cells.

    The sums of the first total come first, then those of the next.

    Parameters
    ----------
    workload
        The tables wanted, and the outputs of each.
    totals
        What is added up in a cell, before signs.
    outputs
        How each output is read off these totals.
    characters
        The signs.
    scales
        Relative noise scale of every sum.
    together
        Sums whose noise is drawn together.
    """

    workload: Workload
    totals: tuple[Block, ...]
    outputs: tuple[Reading, ...]
    characters: Characters
    scales: tuple[float, ...]
    together: tuple[tuple[int, ...], ...]
    joined: ClassVar[bool] = False  # a group is one of single integers
    layers: ClassVar[None] = None
    extra: ClassVar[int] = 0  # no output comes for free

    @cached_property
    def common(self) -> frozenset[int]:
        """All blocks: every cell may read every one."""
        return frozenset(range(len(self.scales)))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Sums that are drawn together, and those that are drawn on their own."""
        shared = {k for group in self.together for k in group}
        return (*self.together, *((k,) for k in range(len(self.scales)) if k not in shared))

    @property
    def needs(self) -> frozenset[Need]:
        """Totals to compute."""
        return frozenset(need for block in self.totals for need, _ in block.parts)

    def movement(self, scales: Sequence[Scale], law: Law) -> Scale:
        """Return the largest weighted distance between neighbors, exact for fractions."""
        far = 0 * scales[0]
        for steps in self._steps:
            least = ((step, _least([scales[k] for k in sums])) for step, sums in steps)
            far += max(step / scale for step, scale in least)
        return far

    @cached_property
    def _steps(self) -> list[list[tuple[int, list[int]]]]:
        """By group, how far sums move that move, and which move so far."""
        reach = _reach(self.workload, self.totals, self.characters)
        steps = []
        for group in self.groups:
            alike: dict[int, list[int]] = {}
            if len({reach[k] for k in group}) == 1:  # as counts, and much faster
                alike[reach[group[0]]] = [*group]
            else:
                for k in group:
                    alike.setdefault(reach[k], []).append(k)
            alike.pop(0, None)
            if alike:
                steps.append(list(alike.items()))
        return steps

    def encode(self, totals: Mapping[Need, np.ndarray]) -> list[np.ndarray]:
        """Combine totals into the integers to measure."""
        sums = [self.characters.add_up(block.of(totals)) for block in self.totals]
        return list(np.concatenate(sums)[:, None])

    def predict(self, deviations: Sequence[float]) -> list[Prediction]:
        """Return the errors of the outputs of every table."""
        return [
            self._predict(column, ROUNDED - at, np.asarray(deviations))
            for at, column in enumerate(self._columns)
        ]

    def _predict(self, column: "_Column", rounded: int, deviations: np.ndarray) -> Prediction:
        positions, weights, reading = column
        noise = deviations[positions]
        variances = weights**2 @ noise**2 + reading.rounding**2
        worst = variances.argmax()
        loadings = dict(zip(positions.tolist(), (weights[worst] * noise).tolist(), strict=True))
        if reading.rounding:
            loadings[rounded] = reading.rounding
        return Prediction(math.sqrt(variances[worst]), loadings=loadings)

    def errors(self, deviations: Sequence[float]) -> list[float]:
        """Return the roots of the mean variances of the cells of every table."""
        squares = np.square(deviations).reshape(-1, self.characters.number)
        by_total = [self.characters.mean_variances(variances) for variances in squares]
        return [
            math.sqrt(
                sum(weight**2 * by_total[k][table] for k, weight in reading.weights.items())
                + reading.rounding**2
            )
            for table, readings in enumerate(self._wholes)
            for reading in readings
        ]

    def decode(self, measured: Sequence[np.ndarray], deviations: Sequence[float]) -> list[Estimate]:
        """Read the outputs of every table off the measured sums."""
        numbers, noise = np.concatenate(measured), np.asarray(deviations)
        return [
            self._decode(column, ROUNDED - at, numbers, noise)
            for at, column in enumerate(self._columns)
        ]

    def _decode(
        self, column: "_Column", rounded: int, measured: np.ndarray, deviations: np.ndarray
    ) -> Estimate:
        positions, weights, reading = column
        noise = weights * deviations[positions]
        loadings: dict[int, float | np.ndarray] = dict(
            zip(positions.tolist(), noise.T, strict=True)
        )
        if reading.rounding:
            loadings[rounded] = reading.rounding
        values = weights @ measured[positions].astype(np.float64) + 0.0  # no zero is negative
        return Estimate(round_whole(values) if reading.step else values, loadings)

    @cached_property
    def _columns(self) -> list["_Column"]:
        """The released columns, table by table."""
        return [
            self._column(table, reading)
            for table, readings in enumerate(self._wholes)
            for reading in readings
        ]

    @cached_property
    def _wholes(self) -> list[list[Reading]]:
        """How outputs are read off totals, by table."""
        # numbers are rounded, but where they are to add up to those of other tables
        tables = self.workload.domain.margins
        steps = self.characters.steps if self.workload.domain.apart else [0] * len(tables)
        return [[output.with_step(output.step * step) for output in self.outputs] for step in steps]

    def _column(self, table: int, reading: Reading) -> "_Column":
        positions, weights = self.characters.positions[table], self.characters.weights[table]
        parts = reading.weights.items()
        if [*parts] == [(0, 1)]:
            return _Column(positions, weights, reading)
        return _Column(
            np.concatenate([positions + k * self.characters.number for k, _ in parts]),
            np.concatenate([factor * weights for _, factor in parts], axis=1),
            reading,
        )


def _least(scales: Sequence[Scale]) -> Scale:
    """Return the smallest scale; many are one object, so that few fractions are compared."""
    return min(dict(zip(map(id, scales), scales, strict=True)).values())


class _Column(NamedTuple):
    """Which sums the cells of a column are read off, with which weights cell by cell, and how."""

    positions: np.ndarray
    weights: np.ndarray
    reading: Reading


def design(workload: Workload, law: Law) -> CharacterDesign | None:
    """Plan tables by sums of signs; `None` where there are too many, or a quotient is wanted.

    Parameters
    ----------
    workload
        The outputs wanted of every table.
    law
        Law of the noise, drawn together in boxes.
    """
    domain = workload.domain
    if not domain.margins or domain.possible is not None:
        return None
    if max(domain.sizes, default=1) > MOST_KEYS:
        return None
    characters = _characters_of(domain)
    layout = lift_totals(workload, as_asked=True)
    readings = _sums_read(layout.readings)
    if readings is None:
        return None
    read = {k for reading in readings for k in reading.weights}
    if characters.number * len(read) > MOST_SUMS or min(read) < 0:
        return None
    order = sorted(read)
    totals = tuple(layout.blocks[k] for k in order)
    outputs = tuple(
        Reading({order.index(k): weight for k, weight in output.weights.items()}, output.step or 1)
        for output in readings
    )
    reach = _reach(workload, totals, characters)
    block_weights = weights(workload, layout)
    squares = [block_weights[k] * demand for k in order for demand in characters.demands]
    together, scales = boxes_of(reach, squares)
    if not together:
        return None
    return CharacterDesign(workload, totals, outputs, characters, scales, together)


def _sums_read(readings: Sequence[AnyReading]) -> list[Reading] | None:
    """Return how outputs are read off totals; `None` where one is no sum of them."""
    sums: list[Reading] = []
    for reading in readings:
        match reading:
            case Reading():
                sums.append(reading)
            case QuotientReading():
                return None
            case _:
                assert_never(reading)
    return sums


@lru_cache(16)
def _characters_of(domain: Domain) -> Characters:
    return Characters(lattice_of(domain))


def worth_joining(domains: Sequence[Domain]) -> list[int]:
    """Say which tables of counts to measure together, by their positions in order.

    They are the smallest ones, so many that the sum of all variances is least, if every table has a
    sum of signs for each of its cells and a box holds all of these. Let `V_t = 2` be the variance
    of a cell with Laplace noise, and `V` the sum of those of tables in the box, all at epsilon 1:
    with the best parts of epsilon it is `(V^(1/3) + sum_t V_t^(1/3))^3`, t being the others.

    Parameters
    ----------
    domains
        Where the cells of every table lie.

    Examples
    --------
    >>> binary, large = (Domain((Dimension(n, ordered=False),)) for n in (2, 100))
    >>> worth_joining([binary, large, binary]), worth_joining([large, large])
    ([0, 2], [])
    """
    small = [k for k, domain in enumerate(domains) if max(domain.sizes, default=1) <= MOST_KEYS]
    sums = {k: math.prod(n + 1 for n in domains[k].sizes) - 1 for k in small}
    order = sorted((k for k in small if sums[k] < MOST_SUMS), key=lambda k: sums[k])

    def best(spread_of: Callable[[int], float]) -> int:
        number, members, least, demand = 0, 1, float(len(domains)), 0.0
        for joined, k in enumerate(order, 1):
            members += sums[k]
            demand += math.prod(map(spread_of, domains[k].sizes))
            alone = math.cbrt(demand * spread(members) / 2)
            if members <= MOST_SUMS and alone + len(domains) - joined < least:
                number, least = joined, alone + len(domains) - joined
        return number

    if not best(lambda n: 1 / (n + 1)):  # what no signs are below, and much faster
        return []
    return sorted(order[: best(lambda n: signs_of(n, hidden=True).spread)])


def _reach(workload: Workload, totals: Sequence[Block], characters: Characters) -> list[int]:
    """Return how far a neighbor can move every sum, at most.

    A row adds a corner v of its total times a sign; one that is not there adds 0.
    """
    most = workload.reach.total
    replaced = workload.neighboring == "replace"
    farthest = []
    for block in totals:
        (low, high) = _ends(workload, block)
        of_range = {}
        for least, largest in set(characters.ranges):
            ends = [a * b for a in (low, high) for b in (least, largest)]
            if not (replaced and workload.reach.always):
                ends.append(0)
            far = max(ends) - min(ends) if replaced else max(map(abs, ends))
            of_range[least, largest] = most * far
        farthest += [of_range[limits] for limits in characters.ranges]
    return farthest


def _ends(workload: Workload, block: Block) -> tuple[int, int]:
    """Return the least and the largest that a row adds to a total."""
    values = [corner for (corner,) in corners(workload.sources[block.source], [block])]
    return min(values), max(values)
