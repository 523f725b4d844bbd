"""The form of a statistic: a quotient of two weightings of totals of what rows add.

A row adds *features*; T are their totals in a cell, with noise. A statistic is `A.T / B.T`, where
the weights A and B may depend on means that are read off T. To first order, noise moves the
quotient r by `(A - r B).noise / (B.T)`, as long as A and B carry the terms by which estimated means
act. Value, error, largest error before there are data, and record follow from A and B here, once
for all statistics. A value in [l, u] counts as y in [-1, 1]: the part of half the width that it is
off the center.

A statistic is a class of its own in this room, and a line in `table`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.noise_sum import Value, norm

FeatureWeights: TypeAlias = Mapping[str, Any]
"""By feature, what its total counts for: a number, or one for every cell."""

Block = TypeVar("Block", int, str)
IntervalMethod: TypeAlias = Literal["total", "test", "first order", "test by row", "none"]
"""How intervals are found: around a total; by a test whose noise depends on the value alone, or on
the cell, too; from the error to first order; or not at all."""

_TIE = 1e-12  # relative: errors that close are one, so that the last digits do not decide

ROWS, VALUE, Y, SQUARES = "rows", "value", "y", "squares"


@frozen(slots=True)
class ClippedColumn:
    """What values of a private column were clipped to."""

    lower: float
    upper: float

    @property
    def half(self) -> float:
        """Half the width of the bounds."""
        return (self.upper - self.lower) / 2

    @property
    def center(self) -> float:
        """The middle of the bounds."""
        return (self.upper + self.lower) / 2


@frozen(slots=True, eq=False)
class Totals(Generic[Block]):
    """Noisy totals of features.

    Parameters
    ----------
    values
        By feature, the totals: one per cell.
    loadings
        By feature and block, the standard deviation that the noise of the block gives the total,
        with a sign. Blocks are uncorrelated.
    """

    values: Mapping[str, np.ndarray]
    loadings: Mapping[str, Mapping[Block, Value]]

    def weigh(self, weights: FeatureWeights) -> np.ndarray:
        """Return the weighted sum of the totals."""
        parts = (weight * self.values[name] for name, weight in weights.items())
        return np.asarray(sum(parts, start=np.zeros(1)))

    def noise(self, weights: FeatureWeights) -> dict[Block, Value]:
        """Return what the noise of the blocks does to the weighted sum."""
        moved: dict[Block, Value] = {}
        for name, weight in weights.items():
            for block, loading in self.loadings[name].items():
                moved[block] = moved.get(block, 0.0) + weight * loading
        return moved


@frozen(slots=True, eq=False)
class Quotient:
    """The quotient `A.T / B.T`.

    Parameters
    ----------
    top, bottom
        The weights A and B.
    divisor
        B.T, or what is divided by where it is too small to be told from nothing.
    low, high
        What the quotient is kept between.
    offset
        What is added to A.T, where totals cannot be those of any rows.
    """

    top: FeatureWeights
    bottom: FeatureWeights
    divisor: Value = 1.0
    low: Value = -math.inf
    high: Value = math.inf
    offset: Value = 0.0

    def value(self, totals: Totals[Any]) -> np.ndarray:
        """Return the quotient of the totals."""
        raw = (totals.weigh(self.top) + self.offset) / self.divisor
        return np.asarray(np.clip(raw, self.low, self.high))

    def apart(self, value: Value) -> dict[str, Any]:
        """Return the weights `A - r B`, whose total is noise alone where r is the true quotient."""
        bottom = {name: -value * weight for name, weight in self.bottom.items()}
        return add_weights(self.top, bottom)


class SampledError(NamedTuple):
    """The variance that sampling gives a sum, and the standard error that noise gives to it."""

    variance: np.ndarray
    error: Value = 0.0


SamplingSpread: TypeAlias = Callable[[Value, Value, Rows], SampledError]
"""From a and b to the error that a random sample gives `a A.T - b B.T`, in some rows."""


@frozen
class Statistic(ABC):
    """A statistic of some columns.

    Parameters
    ----------
    columns
        The columns that it is about, clipped.
    sampled
        Whether what its sampling error takes is measured, too.
    """

    columns: tuple[ClippedColumn, ...] = ()
    sampled: bool = False

    name: ClassVar[str]
    family: ClassVar[tuple[str, ...]]
    """The features that it is read off."""
    called: ClassVar[str]
    """In words."""
    arity: ClassVar[int] = 1
    """How many columns it is about, or the fewest."""
    interval: ClassVar[IntervalMethod] = "first order"
    is_total: ClassVar[bool] = False
    """Whether it is published as it was measured."""
    is_mean: ClassVar[bool] = False
    """Whether it is a mean: of values, or of whether a condition is met."""
    is_whole: ClassVar[bool] = False
    """Whether it counts, so that it is a whole number."""
    of_several: ClassVar[bool] = False
    """Whether it is about several columns together."""
    is_symmetric: ClassVar[bool] = False
    """Whether it says the same of a pair in either order."""
    is_fine: ClassVar[bool] = False
    """Whether whole numbers are too coarse: squares are rounded up to a part of the width."""
    of_numbers: ClassVar[bool] = True
    """Whether its columns hold numbers, not times."""
    of_values: ClassVar[bool] = True
    """Whether it is about values of columns, not about rows and conditions."""
    largest_error: ClassVar[float] = math.inf
    """In half widths: an error above says nothing."""
    to_sample: ClassVar[str] = "It is known of counts, rates, means, correlations and slopes."
    """What to do for a sampling error that is not known."""

    @property
    def features(self) -> tuple[str, ...]:
        """What a row adds: all that is measured."""
        return self.family

    @abstractmethod
    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the two weightings, with what they need to know read off the totals."""

    @classmethod
    def is_about(cls, columns: int) -> bool:
        """Whether it can be about so many columns."""
        return columns == cls.arity

    @property
    def in_half_widths(self) -> "Statistic":
        """The same of columns whose half widths are 1, which the bounds do not matter to."""
        return type(self)((ClippedColumn(-1.0, 1.0),) * len(self.columns), self.sampled)

    @property
    @abstractmethod
    def shapes(self) -> Mapping[str, np.ndarray]:
        """Totals of one row, by feature, among which the error to expect is the largest."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """What 1 in half widths is in the units of the columns."""

    @property
    @abstractmethod
    def span(self) -> tuple[float, float]:
        """What is possible; of totals, what one row can add."""

    @property
    def knows_sampling(self) -> bool:
        """Whether its sampling error can be read off."""
        return self.sampled

    @property
    def width(self) -> float:
        """The range of its values, to which its error is compared."""
        return self.unit or 1.0

    @property
    def importance(self) -> Mapping[str, float]:
        """By feature, the weight of the variance of its total in that of the statistic."""
        return {ROWS: 0.25, Y: 0.25, SQUARES: 1.0}

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of all quotients that are possible, in half widths."""
        return -1.0, 1.0

    def show(self, value: np.ndarray) -> tuple[np.ndarray, Value]:
        """Turn quotients into what is published, in half widths; return also the slope."""
        return value, 1.0

    def place(self, value: np.ndarray) -> np.ndarray:
        """Turn what is published from half widths into the units of the columns."""
        return value * self.unit

    def limit(self, error: np.ndarray) -> Value:
        """Return by what errors are multiplied, so that none is too large."""
        if self.largest_error == math.inf:
            return 1.0
        return np.asarray(self.largest_error / np.maximum(error, self.largest_error))

    def tested(self, totals: Totals[Any]) -> tuple[Quotient, np.ndarray]:
        """Return the quotient that is tested row by row, and where B.T is positive."""
        raise NotImplementedError(f"{self.name} is not tested row by row")

    def spread(self, totals: Totals[Any]) -> SamplingSpread:
        """Return the error that a random sample of rows gives `a A.T - b B.T`."""
        raise NotImplementedError(f"{self.name} has no sampling error")

    def sampling_variance(self, totals: Totals[Any], values: np.ndarray) -> np.ndarray:
        """Return the variance that sampling gives the values, to first order."""
        raise NotImplementedError(f"{self.name} has no sampling error")

    def estimate(self, totals: Totals[Block]) -> tuple[np.ndarray, dict[Block, Value]]:
        """Return values and what the noise of the blocks does to them, to first order."""
        quotient = self.quotient(totals)
        raw = quotient.value(totals)
        value, slope = self.show(raw)
        apart = totals.noise(quotient.apart(raw))
        moved = {block: part / quotient.divisor * slope for block, part in apart.items()}
        limit = self.limit(norm(moved.values()))
        scaled = {block: part * limit * self.unit for block, part in moved.items()}
        return self.place(value), scaled

    def predict(self, loadings: Mapping[str, Mapping[Block, Value]]) -> dict[Block, float]:
        """Return what noise does to the statistic of one row, where that is the most.

        Of a standard deviation, it is the most where it is a quarter of the width.
        """
        worst: _Worst = _worst(self.in_half_widths)
        blocks: dict[Block, None] = {}
        for name in [*worst.features, *loadings]:
            blocks |= dict.fromkeys(loadings[name])
        of_features: list[list[Value]] = []
        for name in worst.features:
            by_block = loadings[name]
            of_features.append([by_block.get(block, 0.0) for block in blocks])
        # not a product of matrices, which need not round alike what cancels
        moved = (worst.weights[:, :, None] * np.array(of_features, np.float64)).sum(axis=1)
        errors = np.hypot.reduce(moved, axis=1)
        first = (errors >= (1 - _TIE) * errors.max()).argmax()
        largest = moved[first] * self.unit
        return dict(zip(blocks, largest.tolist(), strict=True))

    @classmethod
    def words(cls, labels: Iterable[object]) -> str:
        """Say what it is, of columns of these labels."""
        return f"{cls.called} of {', '.join(map(str, labels))}"


class _Worst(NamedTuple):
    """The features of a statistic, and `(A - r B) / B.T` by shape and feature."""

    features: list[str]
    weights: np.ndarray


@lru_cache
def _worst(statistic: Statistic) -> _Worst:
    """Return what noise does at the shapes."""
    shapes = statistic.shapes
    totals: Totals[int] = Totals(shapes, {name: {} for name in shapes})
    quotient = statistic.quotient(totals)
    apart = quotient.apart(quotient.value(totals))
    weights = np.broadcast_arrays(*(weight / quotient.divisor for weight in apart.values()))
    return _Worst(list(apart), np.stack(weights, axis=-1).reshape(-1, len(apart)))


def add_weights(weights: FeatureWeights, other: FeatureWeights) -> dict[str, Any]:
    """Return the sum of two weightings."""
    return {name: weights.get(name, 0.0) + other.get(name, 0.0) for name in {**weights, **other}}


def rows_of(totals: Totals[Any], weights: FeatureWeights) -> np.ndarray:
    """Return numbers of rows; those below 1 count as 1."""
    return np.asarray(np.maximum(totals.weigh(weights), 1.0))
