"""Margins of the cells alone that can hold rows: tables with noise, reconciled by least squares.

A table A is measured with noise of scale f_A in every cell, so that a row moves all of them by
`sum_A f_A^-p`, with p = 1 for pure and 2 for Gaussian noise. Tables with the same cells are one.
The table of all possible cells is measured, too, so that all others are sums of it.

The scales minimize the weighted sum of the mean variances of the cells of each table. Without
weights, Gaussian noise gives every table the same mean variance, the least there is: with nested
groups, and in a product of which all margins are wanted, no other measurement does better.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.context import cached_property
from dpframe.frozen import frozen
from dpframe.privacy.law import Law
from dpframe.privacy.sensitivity import Kernel, Norm
from dpframe.strategies.base import Layers
from dpframe.strategies.domain import Domain, MarginStructure
from dpframe.strategies.least_squares import CellSums, LeastSquares, PossibleCells
from dpframe.strategies.shares import as_shares, best_shares

_ABOVE = 1 + 2.0**-48  # puts a product above the real number
_LEAST_PRECISION = 1e-5  # of an even one: with less, floats do not restore exact cells
_LEAST_DEVIATION = 1e-100  # noise so narrow is none, and all tables are alike
_LEAST_LOG = -9.0  # of a share that is tried
_LARGER = 3.0  # logarithm of how much more the table of all cells has where it starts
_MOST_ROUNDS = 200  # for equal errors; most take 40
_EVEN = 1e-3  # by which the largest variance is above the mean by weight, the least there can be


@frozen(eq=False)
class SumLayers(Layers):
    """Cells of tables, table by table.

    Parameters
    ----------
    domain
        The axes, and the possible cells.
    sums
        The tables that are measured, the last one with all possible cells.
    axes
        By which axes they are.
    places
        Where each table wanted is among them: tables with the same cells are one.
    scales
        The noise scale of their cells.
    law
        Law of the noise.
    """

    domain: Domain
    sums: CellSums
    axes: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    scales: tuple[float, ...]
    law: Law

    @cached_property
    def kernel(self) -> Kernel:
        """What rows of different cells share: at the least, tables of a single cell."""
        shares = [1 / Fraction(scale) ** self.law.norm for scale in self.scales]
        pairs = zip(shares, self.sums.sizes, strict=True)
        alone = (share for share, size in pairs if size == 1)
        return Kernel(sum(shares, start=Fraction(0)), sum(alone, start=Fraction(0)))

    @cached_property
    def profile(self) -> np.ndarray:
        """The noise scale of every measured cell, rounded up."""
        return np.repeat([scale * _ABOVE for scale in self.scales], self.sums.sizes)

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the cells of all measured tables."""
        return np.concatenate(self.sums.add_up(np.asarray(totals, np.int64)))

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return the cells of every table."""
        parts = np.split(measured.astype(np.float64), np.cumsum(self.sums.sizes)[:-1])
        cells = _solver(self, scale).restore_cells(parts)
        tables = [table + 0.0 for table in self.sums.add_up(cells)]  # no zero is negative
        return [tables[at] for at in self.places]

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of a cell of every table, the largest there is."""
        return [float(table.max()) for table in self.deviations_of_cells(scale)]

    def deviations_of_cells(self, scale: float) -> list[np.ndarray]:
        """Return the standard deviations of the cells of every table."""
        variances = _solver(self, scale).variances
        return [np.sqrt(variances[at]) for at in self.places]

    def errors_to_compare(self, scale: float) -> list[float]:
        """Return the root of the mean variance of a cell of every table."""
        means = _solver(self, scale).means
        return [math.sqrt(means[at]) for at in self.places]

    def describe(self, table: int, scale: float) -> MarginStructure:
        """Say what the covariance of the cells of a table is."""
        cells = tuple(_positions(self.domain).tolist())
        tau, table = tuple(self.taus(scale)), self.places[table]
        return MarginStructure(
            "sums", self.domain.sizes, self.axes, tau, 0.0, cells=cells, table=table
        )

    def taus(self, scale: float) -> list[float]:
        """Return the standard deviations of the noise of all tables."""
        deviations = (self.law.standard_deviation(scale * (tau * _ABOVE)) for tau in self.scales)
        return [max(tau, _LEAST_DEVIATION) for tau in deviations]


@lru_cache(64)  # every table is described from the same
def _solver(layers: SumLayers, scale: float) -> LeastSquares:
    return LeastSquares(layers.sums, [tau**-2.0 for tau in layers.taus(scale)])


def _positions(domain: Domain) -> np.ndarray:
    return np.frombuffer(domain.possible or b"", np.int64)


@lru_cache(16)
def sum_layers(domain: Domain, law: Law) -> SumLayers:
    """Choose the noise of the tables."""
    all_axes = tuple(range(len(domain.dimensions)))
    cells = PossibleCells(domain.sizes, _positions(domain))
    tables = {axes: cells.in_table(axes) for axes in (*domain.margins, all_axes)}
    names = {axes: table.tobytes() for axes, table in tables.items()}
    axes_of = {
        names[axes]: axes for axes in (*domain.margins, all_axes) if names[axes] != names[all_axes]
    }
    axes_of[names[all_axes]] = all_axes  # last: least squares take the last table for the cells
    order = list(axes_of)
    places = tuple(order.index(names[axes]) for axes in domain.margins)
    weights = np.bincount(places, domain.weights or None, len(order)).astype(np.float64)
    sums = CellSums([tables[axes] for axes in axes_of.values()])
    even = law.norm != 1 and not domain.weights
    best = _with_even_errors(sums, weights) if even else _least_sum(sums, weights, law.norm)
    shares = np.maximum(best, _LEAST_PRECISION ** (law.norm / 2) / len(best))
    scales = tuple(float(share ** (-1 / law.norm)) for share in shares)
    return SumLayers(domain, sums, tuple(axes_of.values()), places, scales, law)


def _least_sum(sums: CellSums, weights: np.ndarray, norm: Norm) -> np.ndarray:
    """Return the shares of tables for which the weighted sum of their variances is least."""

    def improve(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        steps = [_improve(sums, weights, start, norm) for start in logs]
        return np.array([value for value, _, _ in steps]), np.array([new for _, new, _ in steps])

    usual = np.log(np.maximum(weights, weights.max() * np.exp(_LEAST_LOG))) / 3
    largest = usual + _LARGER * (np.arange(len(usual)) == len(usual) - 1)
    starts = [largest, usual] if norm == 1 else [usual]  # squares of scales are convex
    return best_shares(improve, np.array(starts))


def _with_even_errors(sums: CellSums, weights: np.ndarray) -> np.ndarray:
    """Return the shares for which the largest variance of a table, with Gaussian noise, is least.

    Tables that err more than others count more, until all err alike.
    """
    mask = weights > 0
    counted, logs = mask / np.count_nonzero(mask), np.full(len(weights), -np.log(len(weights)))
    for _ in range(_MOST_ROUNDS):
        mean, logs, variances = _improve(sums, counted, logs, 2)
        if variances[mask].max() <= (1 + _EVEN) * mean:
            break
        counted = counted * np.sqrt(variances)
        counted /= counted.sum()
    return np.asarray(np.exp(logs))


def _improve(
    sums: CellSums, weights: np.ndarray, logs: np.ndarray, norm: Norm
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the sum of variances, better shares and the variances, from logarithms of shares.

    With `g_A = sum_B w_B |A X^-1 B'|^2 / n_B`, the sum of variances for other precisions is at most
    `sum_A s_A^2 g_A / other_A`, since the inverse of a matrix is convex.
    """
    logs = np.maximum(logs, _LEAST_LOG)
    precisions = np.exp(logs * (3 - norm))  # of Laplace noise, the square of a share
    variances, squares = LeastSquares(sums, precisions.tolist()).of_tables()
    slopes = np.log(squares @ (weights / np.array(sums.sizes)))
    new = logs + ((logs + slopes) / 3 if norm == 1 else slopes / 2)
    return float(weights @ variances), as_shares(new[None])[0], variances
