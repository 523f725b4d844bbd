"""Sums of independent noises of several laws, and how wide they are."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from dpframe.certificates.column_parts import ColumnPart
from dpframe.frozen import frozen
from dpframe.privacy import box
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise_sum import NoiseSum, Value, covariance, join_sums, norm


@frozen(slots=True, eq=False)
class IndependentSum:
    """A sum of independent noises, of one law or of several."""

    parts: Sequence[tuple[Law, NoiseSum]]

    @classmethod
    def of(cls, sums: Sequence[tuple[Law, NoiseSum]]) -> "IndependentSum":
        """Put sums of the same law together: they are independent.

        Those that no noise moves are left out: with fewer noises, more is known of the law.
        """
        by_law: dict[Law, list[NoiseSum]] = {}
        moving = [(law, noise) for law, noise in sums if noise.moves]
        for law, noise in moving or sums[:1]:
            by_law.setdefault(law, []).append(noise)
        return cls([(law, join_sums(noises)) for law, noises in by_law.items()])

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the sum."""
        return norm(noise.deviation for _, noise in self.parts)

    def half_width(self, level: float) -> float | np.ndarray:
        """Return the half-width for the sum.

        Of several laws, it is the largest of their half-widths and of that of a normal law, each in
        its standard deviations, times the standard deviation of the sum. By convolution, that is
        enough for a normal and a Laplace noise at every ratio of their scales; where noises of a
        box are among them, it is raised as for several boxes.
        """
        if len(self.parts) == 1:
            ((law, noise),) = self.parts
            return law.sum_half_width(noise, level)
        factor: Any = GAUSSIAN.quantile(level)
        for law, noise in self.parts:
            if law.limit is not law:  # its shape is not known from a quantile
                factor = np.maximum(factor, law.quantile(level))
            deviation, wide = noise.deviation, law.sum_half_width(noise, level)
            shape = np.broadcast_shapes(np.shape(deviation), np.shape(wide))
            times = np.divide(wide, deviation, out=np.zeros(shape), where=deviation > 0)
            factor = np.maximum(factor, times)
        boxes = [n for _, noise in self.parts for n in noise.drawn_together().values()]
        raised = box.raise_quantile(level, max(boxes)) if boxes else 1.0
        width: np.ndarray = factor * raised * self.deviation
        return width

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say how far it is beyond the level that the sum is that far off, as a law does."""
        if len(self.parts) == 1:
            ((law, noise),) = self.parts
            return law.sum_excess(distance, noise, level, rows)
        return np.asarray(distance - self.half_width(level))


Ends: TypeAlias = tuple[np.ndarray | ExtensionArray, np.ndarray | ExtensionArray]


def known_numbers(column: pd.Series) -> np.ndarray:
    """Return the numbers of a column, with 0 in place of those that are missing."""
    if column.isna().any():
        column = column.fillna(0)
    numbers: np.ndarray = column.to_numpy()
    return numbers if numbers.dtype.kind != "O" else numbers.astype(np.int64)


_SPREAD_OF_SQUARES = 5.0
"""Largest variance of a squared noise, in squared variances: that of Laplace; of a normal, 2."""


_RESOLVED = 3.0
"""Standard errors by which squared numbers of rows exceed noise, where cells say their own means:
of 50 cells of one row at epsilon 1, intervals of rates of .5 miss 12 % at 0."""


class Linear(NamedTuple):
    """Values that are linear in the noise, and what it does to them, by block."""

    values: np.ndarray  # in the units of the column; of times, in seconds from the origin
    deviations: Mapping[str, Value]  # one number, or one for each value
    steps: Value = 0.0  # of means: the part of each value that is divided by a number of rows
    doubt: float = 0.0  # relative standard error of all these numbers of rows together
    bend: float = 0.0  # beta: the mean of N* is N (1 - beta (r - t))


def linear_mean(column: ColumnPart, weights: np.ndarray) -> Linear:
    """Return means, or rates, that may be added up.

    t is the mean of all cells together, moved toward that of a cell as far as the squares of D
    exceed their noise by a standard error. Numbers of rows shrink toward each other by their spread
    beyond noise, and their inverses are nearly unbiased, to the second order. So is the product of
    the noise in t, which a cell moved, and in its number of rows. Where these inverses are too
    small, as those of few rows beside many, values lean on t, and have its noise, too.
    """
    used = weights != 0
    statistic, totals = column.statistic, column.totals
    quotient = statistic.quotient(totals)
    top, rows = np.broadcast_arrays(totals.weigh(quotient.top), totals.weigh(quotient.bottom))
    noise_of_rows = totals.noise(quotient.bottom)
    first, last = statistic.ends
    all_rows = max(float(rows[used].sum()), 1.0)
    pooled = np.clip(top[used].sum() / all_rows, first, last)

    def apart(t: Value) -> tuple[np.ndarray, dict[str, Value], np.ndarray]:
        moved = totals.noise(quotient.apart(t))
        return top - t * rows, moved, np.square(norm(moved.values()))

    off, moved_t, variance = apart(pooled)
    shared = covariance(noise_of_rows, moved_t)
    alike = np.broadcast_to(variance, top.shape)
    noise = np.broadcast_to(np.square(norm(noise_of_rows.values())), top.shape)
    # noise can make them 0 or less, and they divide
    squares = np.maximum(rows**2 - noise, np.maximum(noise / 2, 1.0))
    spread = _spread(off[used] ** 2, alike[used]) / float(squares[used].sum())
    if not _spread(rows[used] ** 2, noise[used], _RESOLVED):
        spread = 0.0
    pull = _share(spread * squares, variance)
    reached = pooled + pull * off / np.sqrt(squares)
    t = np.clip(reached, first, last)
    off, moved, variance = apart(t)
    inverse, share, doubt, beta, lean = _inverse_of_rows(rows, noise_of_rows, off, moved, used)
    pull = np.where(t == reached, pull, 0.0)
    bias = pull * (1 - share * pull) * shared * inverse / np.sqrt(squares)
    values = statistic.place(t + inverse * off + bias)
    unit = statistic.unit
    leaning = float(np.sum((weights * lean * (1 - pull))[used])) / all_rows
    of_t = np.divide(leaning, weights, out=np.zeros(top.shape), where=used)
    of_cell = inverse + lean * pull / np.sqrt(squares)
    deviations = {b: unit * (of_cell * part + of_t * moved_t[b]) for b, part in moved.items()}
    return Linear(values, deviations, inverse * unit * off, doubt, beta / unit if unit else 0.0)


def _spread(squares: np.ndarray, variances: np.ndarray, errors: float = 1.0) -> float:
    """Return how far a sum of squares is beyond that of noise and some standard errors of it."""
    clear = errors * np.sqrt(_SPREAD_OF_SQUARES * np.square(variances).sum())
    return max(float((squares - variances).sum() - clear), 0.0)


def _share(part: Value, other: Value) -> np.ndarray:
    """Return the part of the first in both; 1 where there is none of the other."""
    both = np.asarray(part + other, np.float64)
    return np.divide(part, both, out=np.ones(both.shape), where=both > 0)


def _inverse_of_rows(
    rows: np.ndarray,
    noise: dict[str, Value],
    off: np.ndarray,
    moved: dict[str, Value],
    used: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float, float, np.ndarray]:
    """Return inverses of numbers of rows, uncorrelated with D; which part of each is its own.

    Then how far all may be off, beta, and by how much the inverses are too small.
    """
    shared = covariance(noise, moved)
    moved_variance = np.square(norm(moved.values()))
    shape = np.broadcast(shared, moved_variance).shape
    beta = np.divide(shared, moved_variance, out=np.zeros(shape), where=moved_variance > 0)
    measured = numbers = rows - beta * off
    variance = np.maximum(np.square(norm(noise.values())) - beta * shared, 0.0)
    variance = np.broadcast_to(variance, numbers.shape)
    middle = numbers[used].mean()
    error_of_middle = np.sqrt(variance[used].sum()) / np.count_nonzero(used)
    doubt = float(error_of_middle / middle) if middle > 0 else np.inf
    spread = _spread(np.square(numbers - middle)[used], variance[used]) / np.count_nonzero(used)
    share = _share(np.full(numbers.shape, spread), variance)
    variance = share * variance
    numbers = np.maximum(middle + share * (numbers - middle), np.maximum(np.sqrt(variance), 1.0))
    error = variance / numbers**2
    inverse = (1 - error / (1 + 2 * error)) / numbers
    mean_of_beta = float(np.broadcast_to(beta, numbers.shape)[used].mean())
    return inverse, share, doubt, mean_of_beta, 1 - inverse * measured
