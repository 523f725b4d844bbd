"""Covariances, correlations and slopes, read off the parts of a pair of columns.

With x and y how far values are off the centers of their bounds, in half widths, and d the degree,
`part i j` is the sum of `B_i(x) B_j(y)`, where `B_i(x) = C(d, i) ((1 + x) / 2)^i ((1 - x) / 2)^(d -
i)`. With N rows, means `m_x` and `m_y`, and variances `V_x` and `V_y`,

    C = sum (x - m_x) (y - m_y) / N,    r = C / sqrt(V_x V_y),    b = C / V_x .

To first order, a part of a row that counts `v_x = (x - m_x)^2`, `v_y` and `c = (x - m_x) (y - m_y)`
moves them, times N, by

    c - C,    c / sqrt(V_x V_y) - r (v_x / V_x + v_y / V_y) / 2,    (c - b v_x) / V_x

(the delta method): so r is the quotient of c and `(k v_x + v_y / k) / 2`, with `k^2 = V_y / V_x`.
A random sample of rows gives r and b, times N, the variance of the sum of the last two, which is
read off fourth moments: those of parts of degree 4.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from dpframe.privacy.half_widths import Rows
from dpframe.privacy.noise_sum import Value, norm
from dpframe.statistics.form import (
    FeatureWeights,
    IntervalMethod,
    Quotient,
    SampledError,
    SamplingSpread,
    Statistic,
    Totals,
    add_weights,
    rows_of,
)

Powers: TypeAlias = tuple[int, int]
"""Of x and of y, in a product."""

_LEAST = 1e-12  # of a variance, in squared half widths
_TINY = 1e-30  # what is divided by, where all values are the same
_SECOND, _FOURTH = 2, 4


def parts_of_pair(degree: int) -> dict[str, Powers]:
    """Return which part of the first column and which of the second one each part of a pair is.

    Examples
    --------
    >>> [*parts_of_pair(1)]
    ['part 0 0', 'part 0 1', 'part 1 0', 'part 1 1']
    """
    each = range(degree + 1)
    return {f"part {i} {j}": (i, j) for i, j in product(each, each)}


def moment(powers: Powers, means: tuple[Value, Value], degree: int) -> dict[str, Value]:
    """Return the weights of the sum of `(x - m_x)^a (y - m_y)^b`.

    A polynomial is the sum of its Bernstein coefficients times the parts, where that of `(x - m)^a`
    at i is the sum over s of `C(i, s) C(d - i, a - s) / C(d, a) (1 - m)^s (-1 - m)^(a - s)`.

    Examples
    --------
    >>> weights = moment((1, 2), (0.5, -0.5), 2)  # of a row at both upper bounds
    >>> float(weights["part 2 2"])
    1.125
    """
    first, second = (
        [_coefficient(at, power, degree, mean) for at in range(degree + 1)]
        for power, mean in zip(powers, means, strict=True)
    )
    return {name: first[i] * second[j] for name, (i, j) in parts_of_pair(degree).items()}


def _coefficient(at: int, power: int, degree: int, mean: Value) -> Value:
    """Return a Bernstein coefficient of a power of x less a mean."""
    terms: Iterable[Value] = (
        math.comb(at, s)
        * math.comb(degree - at, power - s)
        * (1 - mean) ** s
        * (-1 - mean) ** (power - s)
        for s in range(power + 1)
    )
    return sum(terms, start=0.0) / math.comb(degree, power)


class _Centered(NamedTuple):
    """Moments around the means.

    Parameters
    ----------
    rows
        Numbers of rows, at least 1.
    means
        The means.
    whole, products, squares
        The weights of rows, products and squares.
    variances
        Variances, at least one standard error.
    raised
        By how much that raised them.
    """

    rows: np.ndarray
    means: tuple[np.ndarray, np.ndarray]
    whole: FeatureWeights
    products: FeatureWeights
    squares: tuple[FeatureWeights, FeatureWeights]
    variances: tuple[np.ndarray, np.ndarray]
    raised: tuple[np.ndarray, np.ndarray]

    @property
    def bound(self) -> np.ndarray:
        """The largest covariance."""
        return np.asarray(np.sqrt(self.variances[0] * self.variances[1]))


@dataclass(frozen=True)
class _Pair(Statistic):
    """A statistic of two columns; variances are at least one standard error."""

    arity = 2
    of_pair = True
    largest_error = 1.0
    family = tuple(parts_of_pair(_SECOND))

    @property
    def degree(self) -> int:
        """The degree of the parts."""
        return _FOURTH if self.sampled else _SECOND

    @property
    def features(self) -> tuple[str, ...]:
        """The parts."""
        return tuple(parts_of_pair(self.degree))

    @property
    def importance(self) -> Mapping[str, float]:
        """Together the parts cost what one of them does: each counts for all."""
        return dict.fromkeys(self.features, float(len(self.features)))

    @property
    def shapes(self) -> Mapping[str, np.ndarray]:
        """Half a row in each of the two places half a half width off, in both columns."""
        degree = self.degree
        ends = [0.25**i * 0.75 ** (degree - i) for i in range(degree + 1)]
        each = [math.comb(degree, i) * (ends[i] + ends[-1 - i]) / 2 for i in range(degree + 1)]
        return {k: np.array([each[i] * each[j]]) for k, (i, j) in parts_of_pair(degree).items()}

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
        of = self.degree
        rows = rows_of(totals, moment((0, 0), (0.0, 0.0), of))
        x, y = (
            np.clip(totals.weigh(moment(powers, (0.0, 0.0), of)) / rows, -1, 1)
            for powers in ((1, 0), (0, 1))
        )
        whole, products, *squares = (
            moment(powers, (x, y), of) for powers in ((0, 0), (1, 1), (2, 0), (0, 2))
        )
        variances, raised = [], []
        for mean, weights in zip((x, y), squares, strict=True):
            value = np.asarray(np.clip(totals.weigh(weights) / rows, 0, 1 - mean**2))
            moved = totals.noise(_plus(weights, whole, -value))
            error = np.minimum(norm(moved.values()) / rows, 1.0)
            variances.append(np.maximum(value, np.maximum(error, _LEAST)))
            raised.append(variances[-1] - value)
        (of_x, of_y), (v_x, v_y), (above_x, above_y) = squares, variances, raised
        return _Centered(
            rows, (x, y), whole, products, (of_x, of_y), (v_x, v_y), (above_x, above_y)
        )

    def raised_squares(self, at: _Centered) -> list[FeatureWeights]:
        """Return the weights of squares whose total is N times the variance, if it was raised."""
        return [
            _plus(squares, at.whole, above)
            for squares, above in zip(at.squares, at.raised, strict=True)
        ]

    def divide(self, x: FeatureWeights, y: FeatureWeights, k: Value) -> FeatureWeights:
        """Return the weights B, from those of both squares and the ratio of the deviations."""
        raise NotImplementedError(f"{self.name} is no quotient of squares")

    def tested(self, totals: Totals[Any]) -> tuple[Quotient, np.ndarray]:
        """Return the two weightings without raised variances, and where both are positive.

        Means count as exact, which is right to first order if the quotient is the true one.
        """
        at = self.center(totals)
        x, y = (np.maximum(totals.weigh(squares), 0) for squares in at.squares)
        positive = (x > 0) & (y > 0)
        k = np.sqrt(np.where(positive, y, 1.0) / np.where(positive, x, 1.0))
        return Quotient(at.products, self.divide(*at.squares, k)), positive

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
        normal = {
            (4, 0): 3 * x**2,
            (3, 1): 3 * x * covariance,
            (2, 2): x * y + 2 * covariance**2,
            (1, 3): 3 * y * covariance,
            (0, 4): 3 * y**2,
        }
        measured = {powers: moment(powers, at.means, self.degree) for powers in normal}
        values = {powers: totals.weigh(weights) for powers, weights in measured.items()}
        noise = {powers: totals.noise(weights) for powers, weights in measured.items()}
        blocks = {block for moved in noise.values() for block in moved}

        def error(a: Value, b: Value, rows: Rows) -> SampledError:
            k = np.sqrt(y / x)[rows]
            divided = self.divide({"x": 1.0}, {"y": 1.0}, k)
            powers = {"x": (2, 0), "y": (0, 2)}
            terms = {(1, 1): a} | {powers[name]: -b * weight for name, weight in divided.items()}
            squared = _square(terms)

            def total(of: Mapping[Powers, Any]) -> np.ndarray:
                return sum((w * of[p][rows] for p, w in squared.items()), start=np.zeros(()))

            expected = 2 * at.rows[rows] * total(normal)
            own = norm(total({p: noise[p][block] for p in squared}) for block in blocks)
            share = 1 / (1 + np.square(own / np.maximum(expected, _TINY)))
            variance = share * total(values) + (1 - share) * np.maximum(expected, 0)
            return SampledError(np.maximum(variance, share * own / 2), share * own)

        return error

    def sampling_variance(self, totals: Totals[Any], values: np.ndarray) -> np.ndarray:
        """Return the variance of the first-order errors of rows."""
        quotient = self.quotient(totals)
        own = self.spread(totals)(1.0, quotient.value(totals), slice(None))
        return np.asarray(own.variance * (self.unit / quotient.divisor) ** 2)

    @classmethod
    def words(cls, labels: Iterable[object]) -> str:
        """Say what it is, of both columns."""
        return f"{cls.called} of {' and '.join(map(str, labels))}"


def _plus(weights: FeatureWeights, others: FeatureWeights, times: Value) -> dict[str, Any]:
    return add_weights(weights, {name: times * weight for name, weight in others.items()})


def _square(terms: Mapping[Powers, Any]) -> dict[Powers, Any]:
    """Return the square of a polynomial, by powers of x and y."""
    found: dict[Powers, Any] = {}
    for ((a, b), one), ((c, d), other) in product(terms.items(), terms.items()):
        found[a + c, b + d] = found.get((a + c, b + d), 0.0) + one * other
    return found


@dataclass(frozen=True)
class PairCovariance(_Pair):
    """The covariance of two columns."""

    is_symmetric = True
    name = "cov"
    called = "covariance"
    interval: ClassVar[IntervalMethod] = "first order"

    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the products of both values, over rows."""
        at = self.center(totals)
        return Quotient(at.products, at.whole, at.rows, -at.bound, at.bound)

    @property
    def knows_sampling(self) -> bool:
        """Its sampling error is not known."""
        return False

    @property
    def unit(self) -> float:
        """The product of half the widths."""
        x, y = self.half_widths
        return x * y


@dataclass(frozen=True)
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
        x, y = self.raised_squares(at)
        bottom = self.divide(x, y, k)
        return Quotient(at.products, bottom, at.rows * at.bound, -1.0, 1.0)

    def divide(self, x: FeatureWeights, y: FeatureWeights, k: Value) -> FeatureWeights:
        """Return `(k x^2 + y^2 / k) / 2`."""
        return add_weights(
            {name: k / 2 * weight for name, weight in x.items()},
            {name: weight / k / 2 for name, weight in y.items()},
        )

    @property
    def unit(self) -> float:
        """A correlation has no unit."""
        return 1.0


@dataclass(frozen=True)
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
        return Quotient(at.products, bottom, at.rows * at.variances[0], -bound, bound)

    def divide(self, x: FeatureWeights, y: FeatureWeights, k: Value) -> FeatureWeights:
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
