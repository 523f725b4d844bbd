"""Numbers of rows, sums, means, rates, variances and standard deviations.

With N rows, and S and Q the sums of y and of `y^2 - 1 / 2`, a mean is `m = S / N` and a variance
`V = Q / N + 1 / 2 - m^2`, between 0 and `1 - m^2` (Bhatia and Davis 2000). Off the true mean, noise
moves N V by that of `Q - 2 m S + (m^2 + 1 / 2 - V) N`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.noise_sum import Value, norm
from dpframe.statistics.form import (
    ROWS,
    SQUARES,
    VALUE,
    ClippedColumn,
    IntervalMethod,
    Quotient,
    SampledError,
    SamplingSpread,
    Statistic,
    Totals,
    Y,
    rows_of,
)

_LEAST_ROOT = 1e-6  # of a standard deviation, in half widths, where its slope is taken
_M = np.linspace(-1, 1, 41)
_MEANS = np.concatenate([[-1.0, 1.0], _M])
_VARIANCES = np.concatenate([[0.0, 0.0], 1 - _M**2])


@frozen
class _Total(Statistic):
    """A total, published as it was measured."""

    interval: ClassVar[IntervalMethod] = "total"
    is_total = True
    of_numbers: ClassVar[bool] = False

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the total, over 1."""
        (feature,) = self.features
        return Quotient({feature: 1.0}, {})

    @property
    def shapes(self) -> Mapping[str, np.ndarray]:
        """A row; noise moves a total the same whatever it is."""
        (feature,) = self.features
        return {feature: np.ones(1)}

    @property
    def unit(self) -> float:
        """Totals are in the units of the column."""
        return 1.0


@frozen
class RowCount(_Total):
    """The number of rows, or of units."""

    name = "count"
    called = "count"
    arity = 0
    is_whole = True
    of_values = False
    family = (ROWS,)

    @property
    def span(self) -> tuple[float, float]:
        """A row is there, or not."""
        return 0.0, 1.0

    @property
    def knows_sampling(self) -> bool:
        """Whether its sampling error can be read off: the law of Poisson has one."""
        return True

    def sampling_variance(self, totals: Totals[Any], values: np.ndarray) -> np.ndarray:
        """Return n; it may be below 0, as noise is, so that it is right on average."""
        return values

    @classmethod
    def words(cls, labels: Iterable[object]) -> str:
        """Say what it is: there is no column."""
        return cls.called


@frozen
class ValueSum(_Total):
    """The sum of values."""

    name = "sum"
    called = "sum"
    family = (VALUE,)
    to_sample = "Release the mean, as dpf.mean(..., sampling=True), and the count."

    @property
    def span(self) -> tuple[float, float]:
        """The bounds."""
        (column,) = self.columns
        return column.lower, column.upper


@frozen
class ValueMean(Statistic):
    """The mean of values, `S / N`."""

    name = "mean"
    family = (ROWS, Y)
    called = "mean"
    interval: ClassVar[IntervalMethod] = "test"
    largest_error = 2.0
    is_mean = True
    of_numbers = False
    to_sample = "Release it as dpf.mean(..., sampling=True)."

    @property
    def features(self) -> tuple[str, ...]:
        """Rows and values; the squares for a sampling error."""
        return (*self.family, SQUARES) if self.sampled else self.family

    @property
    def column(self) -> ClippedColumn:
        """The column; of a condition, a row counts for 0 or 1."""
        return self.columns[0] if self.columns else ClippedColumn(0.0, 1.0)

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return y over rows."""
        return Quotient({Y: 1.0}, {ROWS: 1.0}, rows_of(totals, {ROWS: 1.0}), -1.0, 1.0)

    @property
    def shapes(self) -> Mapping[str, np.ndarray]:
        """A row at either bound."""
        ends = np.array([-1.0, 1.0])
        return {ROWS: np.ones(2), Y: ends, SQUARES: ends**2 - 0.5}

    @property
    def importance(self) -> Mapping[str, float]:
        """Squares count so little that with Gaussian noise, the error is 1 / 8 larger."""
        return {ROWS: 0.25, Y: 0.25, SQUARES: 1 / 16}

    @property
    def unit(self) -> float:
        """Half the width of the bounds."""
        return self.column.half

    @property
    def span(self) -> tuple[float, float]:
        """The bounds."""
        return self.column.lower, self.column.upper

    @property
    def width(self) -> float:
        """The width of the bounds, or the value where there is only one."""
        lower, upper = self.span
        return upper - lower or abs(upper) or 1.0

    def place(self, value: np.ndarray) -> np.ndarray:
        """Go from the center of the bounds."""
        return self.column.center + self.unit * value

    def spread(self, totals: Totals[Any]) -> SamplingSpread:
        """Return the variance of `a S - b N`: the sum of `(a y - b)^2`.

        It is that about a quotient, which gives intervals nearly those of Student in small groups.
        It counts as half of its own standard error at least: what is less cannot be told from 0,
        and half of it is then mostly too much, so that it has no error of its own.
        """

        def at(a: Value, b: Value, rows: Rows) -> SampledError:
            weights = {SQUARES: a * a, Y: -2 * a * b, ROWS: b * b + 0.5 * a * a}
            variance = totals.weigh(weights)
            error = norm(totals.noise(weights).values())
            hidden = variance < error / 2
            return SampledError(np.where(hidden, error / 2, variance), np.where(hidden, 0, error))

        return at

    def sampling_variance(self, totals: Totals[Any], values: np.ndarray) -> np.ndarray:
        """Return `V / (n - 1)`, by the variance of the values."""
        quotient = PopulationVariance(self.columns).quotient(totals)
        variance = np.clip(quotient.value(totals), 0, quotient.high)
        rows = np.maximum(np.asarray(quotient.divisor) - 1, 1.0)
        return np.asarray(self.unit**2 * variance / rows)


@frozen
class ConditionRate(ValueMean):
    """The share of rows that meet a condition: the mean of 0 and 1."""

    name = "rate"
    called = "rate"
    arity = 0
    of_values = False

    @property
    def features(self) -> tuple[str, ...]:
        """Rows and values, of which the squares are known."""
        return self.family

    @property
    def knows_sampling(self) -> bool:
        """Whether its sampling error can be read off: always."""
        return True

    def spread(self, totals: Totals[Any]) -> SamplingSpread:
        """Return the variance of shares of n rows, in half widths `n (1 - r^2)`."""
        some = np.maximum(totals.values[ROWS], 0.0)
        return lambda a, b, rows: SampledError(some * (a * a - b * b))

    def sampling_variance(self, totals: Totals[Any], values: np.ndarray) -> np.ndarray:
        """Return `r (1 - r) / n`."""
        return np.asarray(values * (1 - values) / rows_of(totals, {ROWS: 1.0}))


@frozen
class PopulationVariance(Statistic):
    """The population variance of values."""

    name = "var"
    called = "variance"
    is_fine = True
    largest_error = 1.0
    family = (ROWS, Y, SQUARES)

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the squares of values less their mean, over rows, at least 1 of that mean."""
        rows, y = totals.values[ROWS], totals.values[Y]
        count = np.maximum(rows, 1.0)
        mean = np.clip(y / count, -1, 1)
        top = {ROWS: mean**2 + 0.5, Y: -2 * mean, SQUARES: 1.0}
        offset = top[ROWS] * (count - rows) + top[Y] * (mean * count - y)
        return Quotient(top, {ROWS: 1.0}, count, 0.0, 1 - mean**2, offset)

    @property
    def shapes(self) -> Mapping[str, np.ndarray]:
        """All means, with the largest variance that each may have, and none at the bounds."""
        squares = _VARIANCES + _MEANS**2 - 0.5
        return {ROWS: np.ones(len(_MEANS)), Y: _MEANS, SQUARES: squares}

    @property
    def ends(self) -> tuple[float, float]:
        """From 0 to the largest variance there can be."""
        return 0.0, 1.0

    @property
    def unit(self) -> float:
        """The square of half the width."""
        (column,) = self.columns
        return column.half**2

    @property
    def span(self) -> tuple[float, float]:
        """From 0 to the largest there can be."""
        return 0.0, self.unit


@frozen
class PopulationDeviation(PopulationVariance):
    """The standard deviation of values: the root of their variance."""

    name = "std"
    called = "standard deviation"

    def show(self, value: np.ndarray) -> tuple[np.ndarray, Value]:
        """Take the root."""
        root = np.sqrt(value)
        return root, 1 / (2 * np.maximum(root, _LEAST_ROOT))

    @property
    def unit(self) -> float:
        """Half the width."""
        (column,) = self.columns
        return column.half


@frozen
class SelectedQuantile(Statistic):
    """A quantile: selected, or read off numbers of rows in ranges, which are another release."""

    name = "quantile"
    called = "quantile"
    interval: ClassVar[IntervalMethod] = "none"
    of_numbers = False
    family = ()
    shapes: ClassVar[Mapping[str, np.ndarray]] = {}

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Refuse: it is no quotient."""
        raise NotImplementedError("a quantile is no quotient of totals")

    @property
    def unit(self) -> float:
        """Half the width."""
        (column,) = self.columns
        return column.half

    @property
    def span(self) -> tuple[float, float]:
        """The bounds."""
        (column,) = self.columns
        return column.lower, column.upper
