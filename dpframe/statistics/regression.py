"""Regressions by least squares, read off the moments of several columns.

With N rows, deviations `x_j - m_j` of covariates and `y - m_y` of the response, all in half widths,
and S the covariance of the covariates, the coefficients are `b = S^-1 c`, where c are the
covariances with y. Let `e = y - m_y - b . (x - m)` be the residual, and `u_j` what is left of
`x_j - m_j` by the other covariates. Then `sum u_j x_k` is 0 for all k but j, and

    b_j = sum u_j (y - b_others . x_others) / sum u_j x_j,
    the value at a point o = sum w (y - b . (x - o)) / sum w,    w = 1 + (o - m) . S^-1 (x - m),
    R^2 = sum ((y - m_y)^2 - e^2) / sum (y - m_y)^2 .

To first order, noise moves them by that of `u_j e`, of `w e`, and of `(1 - R^2) (y - m_y)^2 - e^2`:
errors of the other numbers that are read off cancel. The intercept is the value where all
covariates are 0. Where coefficients are close to 0, the error of R^2 is of second order: intervals
add that of `2 e (s . (x - m))`, which is 0 in total, where s are the standard errors of b.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpframe.frozen import frozen
from dpframe.privacy.noise_sum import norm
from dpframe.statistics.form import ClippedColumn, IntervalMethod, Quotient, Totals, add_weights
from dpframe.statistics.moments import OfMoments, Polynomial, add, moments, multiply, weigh

MOST_COVARIATES = 5  # moments grow with their square
_SHAPE = 0.5  # R^2 of the rows by which errors are foreseen
_LEAST = 1e-9  # of an eigenvalue of the covariance, in squared half widths


class _Fit(NamedTuple):
    """Coefficients, and what they were read off.

    Parameters
    ----------
    invertible
        Where the covariance has an inverse for all that noise may have done.
    rows, means
        Numbers of rows, and means of all columns.
    inverse
        The inverse covariance of the covariates, or what stands for it.
    coefficients
        One row for each cell.
    off
        How far the value of each column is off its mean.
    residual
        What is left of the response.
    """

    invertible: np.ndarray
    rows: np.ndarray
    means: list[np.ndarray]
    inverse: np.ndarray
    coefficients: np.ndarray
    off: list[dict[tuple[int, ...], Any]]
    residual: Polynomial

    def left_of(self, place: int) -> Polynomial:
        """Return what is left of a covariate by the others."""
        weights = self.inverse[:, place, :] / self.inverse[:, place, place, None]
        return _combine(self.off, weights)


def _combine(polynomials: list[dict[tuple[int, ...], Any]], weights: np.ndarray) -> Polynomial:
    total: dict[tuple[int, ...], Any] = {}
    for polynomial, weight in zip(polynomials, weights.T, strict=False):
        total = add(total, polynomial, weight)
    return total


@frozen
class OfRegression(OfMoments):
    """A number of the regression of the last column on all others."""

    name = "regression"
    called = "regression"
    to_sample = "Release coefficients as dpf.slope(..., sampling=True), of one covariate each."

    @classmethod
    def is_about(cls, columns: int) -> bool:
        """Whether it can be about so many columns."""
        return cls.arity <= columns <= MOST_COVARIATES + 1

    @property
    def knows_sampling(self) -> bool:
        """Its sampling error is not known."""
        return False

    @property
    def degree(self) -> int:
        """Fourth moments are not measured."""
        return 2

    @property
    def shapes(self) -> Mapping[str, np.ndarray]:
        """Values half a half width off, of covariates that each explain as much as the others."""
        number = self.number - 1
        together = 0.25 * math.sqrt(_SHAPE / number)

        def total(powers: tuple[int, ...]) -> float:
            if sum(powers) == 0:
                return 1.0
            if max(powers) > 1:
                return 0.25
            return together if sum(powers) > 1 and powers[-1] else 0.0

        by_name = moments(self.number, self.degree)
        return {name: np.array([total(powers)]) for name, powers in by_name.items()}

    @property
    def halves(self) -> tuple[float, ...]:
        """Half the widths of the bounds."""
        return tuple(column.half for column in self.columns)

    def fit(self, totals: Totals[Any]) -> _Fit:
        """Fit the coefficients, and find where they are known."""
        rows, means = self.centered(totals)
        number = self.number - 1
        cross_products = np.empty((len(rows), number, number + 1))
        for i in range(number):
            for j in range(number + 1):
                cross_products[:, i, j] = totals.weigh(weigh(self.off(means, i, j))) / rows
        cross_products[~np.isfinite(cross_products).all(axis=(1, 2))] = 0.0
        covariance, products = cross_products[:, :, :-1], cross_products[:, :, -1]
        smallest, largest = np.linalg.eigvalsh(covariance)[:, [0, -1]].T
        invertible = smallest > _LEAST * np.maximum(largest, 1.0)
        inverse = np.linalg.inv(np.where(invertible[:, None, None], covariance, np.eye(number)))
        coefficients = np.einsum("cij,cj->ci", inverse, products)
        off = [self.off(means, at) for at in range(number + 1)]
        residual = add(off[-1], _combine(off, coefficients), -1.0)
        fit = _Fit(invertible, rows, means, inverse, coefficients, off, residual)
        for place in range(number):
            left = fit.left_of(place)
            variance = 1 / inverse[:, place, place]
            moved = totals.noise(weigh(add(multiply(left, left), self._row, -variance)))
            invertible = invertible & (norm(moved.values()) < variance * rows)
        return fit._replace(invertible=invertible)

    @property
    def _row(self) -> Polynomial:
        return {(0,) * self.number: 1.0}

    def divided(
        self, fit: _Fit, top: Polynomial, bottom: Polynomial, divisor: Any, low: float = -math.inf
    ) -> Quotient:
        """Return a quotient, unknown where the fit is."""
        high = -low if math.isinf(low) else 1.0
        denominator = np.where(fit.invertible, divisor, np.nan)
        return Quotient(weigh(top), weigh(bottom), denominator, low, high)

    def tested(self, totals: Totals[Any]) -> tuple[Quotient, np.ndarray]:
        """Return the two weightings, and where what is divided by is known to be positive."""
        quotient = self.quotient(totals)
        return quotient, np.asarray(np.asarray(quotient.divisor) > 0)

    @property
    def ends(self) -> tuple[float, float]:
        """There are none, unless it is bounded."""
        return self.span

    @classmethod
    def words(cls, labels: Iterable[object]) -> str:
        """Say of which column on which."""
        *covariates, response = map(str, labels)
        return f"{cls.called} of {response} on {', '.join(covariates)}"


@frozen
class RegressionCoefficient(OfRegression):
    """The coefficient of one of the covariates."""

    interval: ClassVar[IntervalMethod] = "test by row"
    at: ClassVar[int]

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return what is left of the covariate, times the response and times itself."""
        fit = self.fit(totals)
        left, covariate = fit.left_of(self.at), fit.off[self.at]
        alone = add(fit.residual, covariate, fit.coefficients[:, self.at])
        divisor = fit.rows / fit.inverse[:, self.at, self.at]
        return self.divided(fit, multiply(left, alone), multiply(left, covariate), divisor)

    @property
    def unit(self) -> float:
        """The ratio of the widths."""
        return self.halves[-1] / self.halves[self.at] if self.halves[self.at] else 0.0


class FirstCoefficient(RegressionCoefficient):
    """The coefficient of the first covariate."""

    at = 0


class SecondCoefficient(RegressionCoefficient):
    """The coefficient of the second covariate."""

    at = 1


class ThirdCoefficient(RegressionCoefficient):
    """The coefficient of the third covariate."""

    at = 2


class FourthCoefficient(RegressionCoefficient):
    """The coefficient of the fourth covariate."""

    at = 3


class FifthCoefficient(RegressionCoefficient):
    """The coefficient of the fifth covariate."""

    at = 4


@frozen
class RegressionIntercept(OfRegression):
    """The value where all covariates are 0."""

    interval: ClassVar[IntervalMethod] = "test by row"

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the weighted mean of responses, less what covariates add to them."""
        fit = self.fit(totals)
        zeros = [-column.center / column.half if column.half else 0.0 for column in self.columns]
        far = np.array([zero - mean for zero, mean in zip(zeros[:-1], fit.means, strict=False)])
        weights = add(self._row, _combine(fit.off, np.einsum("jc,cji->ci", far, fit.inverse)))
        at_zero = fit.means[-1] + (far.T * fit.coefficients).sum(axis=1)
        value = add(fit.residual, self._row, at_zero)
        return self.divided(fit, multiply(weights, value), weights, fit.rows)

    @property
    def in_half_widths(self) -> "RegressionIntercept":
        """The same of columns whose half widths are 1."""
        shifts = [column.center / column.half if column.half else 0.0 for column in self.columns]
        return RegressionIntercept(tuple(ClippedColumn(at - 1, at + 1) for at in shifts))

    @property
    def unit(self) -> float:
        """Half the width of the response."""
        return self.halves[-1]

    def place(self, value: np.ndarray) -> np.ndarray:
        """Go from the center of the response."""
        return self.columns[-1].center + self.unit * value


@frozen
class RegressionFit(OfRegression):
    """R^2: the part of the variance of the response that covariates explain."""

    interval: ClassVar[IntervalMethod] = "test by row"

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the squares of responses less those of residuals, over the former."""
        fit = self.fit(totals)
        squares = multiply(fit.off[-1], fit.off[-1])
        explained = add(squares, multiply(fit.residual, fit.residual), -1.0)
        bottom = totals.weigh(weigh(squares))
        moved = totals.noise(weigh(squares))
        fit = fit._replace(invertible=fit.invertible & (bottom > norm(moved.values())))
        return self.divided(fit, explained, squares, bottom, low=0.0)

    def tested(self, totals: Totals[Any]) -> tuple[Quotient, np.ndarray]:
        """Return the two weightings, with the error of second order."""
        quotient, positive = super().tested(totals)
        fit = self.fit(totals)
        errors = []
        for place, coefficient in enumerate(fit.coefficients.T):
            left = fit.left_of(place)
            moved = totals.noise(weigh(multiply(left, fit.residual)))
            error = norm(moved.values()) * fit.inverse[:, place, place] / fit.rows
            errors.append(np.where(coefficient < 0, -error, error))
        doubtful = _combine(fit.off, np.array(errors).T)
        more = weigh(multiply(fit.residual, doubtful))
        top = add_weights(quotient.top, {name: 2 * weight for name, weight in more.items()})
        return replace(quotient, top=top), positive

    @property
    def span(self) -> tuple[float, float]:
        """From none of it to all."""
        return 0.0, 1.0

    @property
    def unit(self) -> float:
        """A part has no unit."""
        return 1.0
