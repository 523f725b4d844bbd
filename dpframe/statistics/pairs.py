"""Covariances, correlations and slopes, read off the moments of a pair of columns.

With N rows, means `m_x` and `m_y`, and variances `V_x` and `V_y`, all in half widths,

    C = sum (x - m_x) (y - m_y) / N,    r = C / sqrt(V_x V_y),    b = C / V_x .

To first order, a part of a row that counts `v_x = (x - m_x)^2`, `v_y` and `c = (x - m_x) (y - m_y)`
moves them, times N, by

    c - C,    c / sqrt(V_x V_y) - r (v_x / V_x + v_y / V_y) / 2,    (c - b v_x) / V_x

(the delta method): so r is the quotient of c and `(k v_x + v_y / k) / 2`, with `k^2 = V_y / V_x`.
To second order, noise is in r on average, too. With `c`, `x` and `y` the noise in the sums of
products and squares around the true means, `x_1` and `y_1` that of the values, `g = (k x + y / k) /
2` that of what is divided by, and `M = N sqrt(V_x V_y)`, the mean of r is off by

    (3 r var(g) / 2 - cov(c, g) - r cov(x, y) / 2) / M^2
    + (r (k var(x_1) + var(y_1) / k) / 2 - cov(x_1, y_1)) / (N M) ,

and r is released without it.

A random sample of rows gives r and b, times N, the variance of the sum of the last two, which is
read off fourth moments.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.noise_sum import Value, covariance, norm
from dpframe.statistics.form import IntervalMethod, Quotient, SampledError, SamplingSpread, Totals
from dpframe.statistics.moments import (
    OfMoments,
    Polynomial,
    Powers,
    add,
    moments,
    multiply,
    powers_off,
    weigh,
)

_LEAST = 1e-12  # of a variance, in squared half widths
_LARGE = 0.06  # standard error of a correlation at which half of its bias is taken away
_TINY = 1e-30  # what is divided by, where all values are the same
_ROW: Polynomial = {(0, 0): 1.0}


class _Centered(NamedTuple):
    """Moments around the means.

    Parameters
    ----------
    rows
        Numbers of rows, at least 1.
    means
        The means.
    products, squares
        Products and squares of how far a row is off.
    variances
        Variances, at least one standard error.
    raised
        By how much that raised them.
    """

    rows: np.ndarray
    means: list[np.ndarray]
    products: Polynomial
    squares: tuple[Polynomial, Polynomial]
    variances: list[np.ndarray]
    raised: list[np.ndarray]

    @property
    def bound(self) -> np.ndarray:
        """The largest covariance."""
        return np.asarray(np.sqrt(self.variances[0] * self.variances[1]))


@frozen
class _Pair(OfMoments):
    """A statistic of two columns; variances are at least one standard error."""

    largest_error = 1.0

    @property
    def shapes(self) -> Mapping[str, np.ndarray]:
        """Half a row in each of the two places half a half width off, in both columns."""
        return {
            name: np.array([0.0 if a % 2 or b % 2 else 0.5 ** (a + b)])
            for name, (a, b) in moments(2, self.degree).items()
        }

    @property
    def half_widths(self) -> tuple[float, float]:
        """Half the widths of the bounds."""
        x, y = self.columns
        return x.half, y.half

    @property
    def span(self) -> tuple[float, float]:
        """All that is possible."""
        return -self.unit, self.unit

    def center(self, totals: Totals[Any]) -> _Centered:
        """Read the means off the totals, and weigh them around these."""
        rows, means = self.centered(totals)
        squares = self.off(means, 0, 0), self.off(means, 1, 1)
        variances, raised = [], []
        for mean, square in zip(means, squares, strict=True):
            value = np.asarray(np.clip(totals.weigh(weigh(square)) / rows, 0, 1 - mean**2))
            moved = totals.noise(weigh(add(square, _ROW, -value)))
            error = np.minimum(norm(moved.values()) / rows, 1.0)
            variances.append(np.maximum(value, np.maximum(error, _LEAST)))
            raised.append(variances[-1] - value)
        return _Centered(rows, means, self.off(means, 0, 1), squares, variances, raised)

    def raised_squares(self, at: _Centered) -> tuple[Polynomial, Polynomial]:
        """Return squares whose total is N times the variance, if it was raised."""
        (x, y), (above_x, above_y) = at.squares, at.raised
        return add(x, _ROW, above_x), add(y, _ROW, above_y)

    def divide(self, x: Polynomial, y: Polynomial, k: Value) -> Polynomial:
        """Return what is divided by, from both squares and the ratio of the deviations."""
        raise NotImplementedError(f"{self.name} is no quotient of squares")

    def tested(self, totals: Totals[Any]) -> tuple[Quotient, np.ndarray]:
        """Return the two weightings without raised variances, and where both are positive.

        Means count as exact, which is right to first order if the quotient is the true one.
        """
        at = self.center(totals)
        x, y = (np.maximum(totals.weigh(weigh(square)), 0) for square in at.squares)
        positive = (x > 0) & (y > 0)
        k = np.sqrt(np.where(positive, y, 1.0) / np.where(positive, x, 1.0))
        return Quotient(weigh(at.products), weigh(self.divide(*at.squares, k))), positive

    def spread(self, totals: Totals[Any]) -> SamplingSpread:
        """Return the variance of `a A.T - b B.T`: a sum of squares of rows, of fourth moments.

        Noise gives it a standard error e. That of normal values of the same variances and
        covariance is `v_0`: the variance is taken for `2 v_0`, give or take as much, before it is
        measured, and so for `w v + (1 - w) 2 v_0` afterwards, where `w = 4 v_0^2 / (4 v_0^2 +
        e^2)`; for half of its standard error at least.

        References
        ----------
        L. Isserlis, "On a formula for the product-moment coefficient of any order of a normal
        frequency distribution in any number of variables", Biometrika 12(1/2), 1918, gives the
        fourth moments of normal values.
        """
        at = self.center(totals)
        (x, y), both = at.variances, PairCovariance(self.columns, self.sampled).quotient(totals)
        covariance = both.value(totals)
        normal: dict[Powers, np.ndarray] = {
            (4, 0): 3 * x**2,
            (3, 1): 3 * x * covariance,
            (2, 2): x * y + 2 * covariance**2,
            (1, 3): 3 * y * covariance,
            (0, 4): 3 * y**2,
        }
        measured = {powers: weigh(powers_off(at.means, powers)) for powers in normal}
        values = {powers: totals.weigh(weights) for powers, weights in measured.items()}
        noise = {powers: totals.noise(weights) for powers, weights in measured.items()}
        blocks = {block for moved in noise.values() for block in moved}
        zero = np.zeros(len(at.rows))

        def error(a: Value, b: Value, rows: Rows) -> SampledError:
            k = np.sqrt(y / x)[rows]
            terms = add({(1, 1): a}, self.divide({(2, 0): 1.0}, {(0, 2): 1.0}, k), -b)
            squared = multiply(terms, terms)

            def total(of: Polynomial) -> np.ndarray:
                return sum((w * of[p][rows] for p, w in squared.items()), start=np.zeros(()))

            expected = 2 * at.rows[rows] * total(normal)
            noises = ({p: noise[p].get(block, zero) for p in squared} for block in blocks)
            deviation = norm(map(total, noises))
            share = 1 / (1 + np.square(deviation / np.maximum(expected, _TINY)))
            variance = share * total(values) + (1 - share) * np.maximum(expected, 0)
            return SampledError(np.maximum(variance, share * deviation / 2), share * deviation)

        return error

    def sampling_variance(self, totals: Totals[Any], values: np.ndarray) -> np.ndarray:
        """Return the variance of the first-order errors of rows."""
        quotient = self.quotient(totals)
        sampling = self.spread(totals)(1.0, quotient.value(totals), slice(None))
        return np.asarray(sampling.variance * (self.unit / quotient.divisor) ** 2)


@frozen
class PairCovariance(_Pair):
    """The covariance of two columns."""

    is_symmetric = True
    name = "cov"
    called = "covariance"
    interval: ClassVar[IntervalMethod] = "first order"

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the products of both values, over rows."""
        at = self.center(totals)
        return Quotient(weigh(at.products), weigh(_ROW), at.rows, -at.bound, at.bound)

    @property
    def knows_sampling(self) -> bool:
        """Its sampling error is not known."""
        return False

    @property
    def unit(self) -> float:
        """The product of half the widths."""
        x, y = self.half_widths
        return x * y


@frozen
class PairCorrelation(_Pair):
    """The correlation of two columns."""

    is_symmetric = True
    name = "corr"
    called = "correlation"
    interval: ClassVar[IntervalMethod] = "test by row"
    to_sample = "Release it as dpf.corr(..., sampling=True)."

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the products, over the geometric mean of the squares."""
        at = self.center(totals)
        k = np.sqrt(at.variances[1] / at.variances[0])
        bottom = self.divide(*self.raised_squares(at), k)
        quotient = Quotient(weigh(at.products), weigh(bottom), at.rows * at.bound, -1.0, 1.0)
        if not any(totals.loadings.values()):
            return quotient
        return replace(quotient, offset=-self._bias(totals, at, k, quotient))

    def _bias(
        self, totals: Totals[Any], at: _Centered, k: np.ndarray, quotient: Quotient
    ) -> np.ndarray:
        """Return the bias of second order times what is divided by.

        It counts less where errors are so large that ends of what is possible cut them off.
        """
        value, divisor = quotient.value(totals), quotient.divisor
        x_alone, y_alone = self.off(at.means, 0), self.off(at.means, 1)
        read = at.products, *at.squares, self.divide(*at.squares, k), x_alone, y_alone
        top, x, y, bottom, x_alone, y_alone = (totals.noise(weigh(terms)) for terms in read)
        squares, both = covariance(bottom, bottom), covariance(top, bottom)
        alone = k * covariance(x_alone, x_alone) + covariance(y_alone, y_alone) / k
        of_means = value * alone / 2 - covariance(x_alone, y_alone)
        of_squares = value * (3 * squares - covariance(x, y)) / 2 - both
        variance = covariance(top, top) - 2 * value * both + value**2 * squares
        small = 1 / (1 + np.square(variance / (_LARGE * divisor) ** 2))
        return np.asarray(small * (of_squares / divisor + of_means / at.rows))

    def divide(self, x: Polynomial, y: Polynomial, k: Value) -> Polynomial:
        """Return `(k x^2 + y^2 / k) / 2`."""
        return add(add({}, x, k / 2), y, 1 / k / 2)

    @property
    def unit(self) -> float:
        """A correlation has no unit."""
        return 1.0


@frozen
class PairSlope(_Pair):
    """The slope of the second column on the first one."""

    name = "slope"
    called = "slope"
    interval: ClassVar[IntervalMethod] = "test by row"
    largest_error = math.inf
    to_sample = "Release it as dpf.slope(..., sampling=True)."

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the products, over the squares of the first column."""
        at = self.center(totals)
        bound = np.sqrt(at.variances[1] / at.variances[0])
        bottom, _ = self.raised_squares(at)
        divisor = at.rows * at.variances[0]
        return Quotient(weigh(at.products), weigh(bottom), divisor, -bound, bound)

    def divide(self, x: Polynomial, y: Polynomial, k: Value) -> Polynomial:
        """Return `x^2`."""
        return x

    def tested(self, totals: Totals[Any]) -> tuple[Quotient, np.ndarray]:
        """Return the two weightings; the second variance does not matter."""
        quotient, _ = super().tested(totals)
        return quotient, totals.weigh(quotient.bottom) > 0

    @property
    def ends(self) -> tuple[float, float]:
        """There are none."""
        return -math.inf, math.inf

    @property
    def unit(self) -> float:
        """The ratio of the widths."""
        x, y = self.half_widths
        return y / x if x else 0.0

    @property
    def span(self) -> tuple[float, float]:
        """All numbers."""
        return self.ends

    @classmethod
    def words(cls, labels: Iterable[object]) -> str:
        """Say of which column on which."""
        x, y = labels
        return f"slope of {y} on {x}"
