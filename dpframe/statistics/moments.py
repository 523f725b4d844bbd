"""Moments of several columns, and what statistics of several columns share.

With `x_i` how far values of column i are off the center of their bounds, in half widths, the moment
p is the total of `x_1^p_1 x_2^p_2 ...`. Statistics are read off moments up to degree 2. Degree 4 of
two columns says how far a sample may be off, too.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from dpframe.frozen import frozen
from dpframe.statistics.form import Quotient, Statistic, Totals, rows_of

Powers: TypeAlias = tuple[int, ...]
"""Of each column, in a product."""

Polynomial: TypeAlias = Mapping[Powers, Any]
"""By powers, a coefficient: a number, or one for every cell."""

SECOND, FOURTH = 2, 4  # orders of moments: what a value and its square need
PAIR = 2  # columns of a pair


@lru_cache
def moments(columns: int, degree: int) -> dict[str, Powers]:
    """Return all moments of some columns up to a degree, by name.

    Examples
    --------
    >>> [*moments(2, 1)]
    ['moment 0 0', 'moment 0 1', 'moment 1 0']
    """
    all_powers = product(range(degree + 1), repeat=columns)
    return {name_of(powers): powers for powers in all_powers if sum(powers) <= degree}


def name_of(powers: Powers) -> str:
    """Name a moment."""
    return f"moment {' '.join(map(str, powers))}"


def weigh(polynomial: Polynomial) -> dict[str, Any]:
    """Return the weights of the total of a polynomial of a row."""
    return {name_of(powers): weight for powers, weight in polynomial.items()}


def add(polynomial: Polynomial, other: Polynomial, times: Any = 1.0) -> dict[Powers, Any]:
    """Return a polynomial, with a multiple of another one.

    Examples
    --------
    >>> add({(1, 0): 2.0}, {(1, 0): 1.0, (0, 0): 3.0}, -1.0)
    {(1, 0): 1.0, (0, 0): -3.0}
    """
    total = dict(polynomial)
    for powers, weight in other.items():
        total[powers] = total.get(powers, 0.0) + times * weight
    return total


def multiply(polynomial: Polynomial, other: Polynomial) -> dict[Powers, Any]:
    """Return the product of two polynomials.

    Examples
    --------
    >>> multiply({(1, 0): 1.0, (0, 0): 2.0}, {(0, 1): 3.0})
    {(1, 1): 3.0, (0, 1): 6.0}
    """
    total: dict[Powers, Any] = {}
    for (mine, first), (theirs, second) in product(polynomial.items(), other.items()):
        powers = tuple(a + b for a, b in zip(mine, theirs, strict=True))
        total[powers] = total.get(powers, 0.0) + first * second
    return total


def powers_off(means: Sequence[Any], powers: Powers) -> dict[Powers, Any]:
    """Return the polynomial `(x_1 - m_1)^p_1 (x_2 - m_2)^p_2 ...`.

    Examples
    --------
    >>> powers_off((0.5, 0.0), (2, 0))
    {(0, 0): 0.25, (1, 0): -1.0, (2, 0): 1.0}
    """
    total: dict[Powers, Any] = {(0,) * len(powers): 1.0}
    for at, (mean, power) in enumerate(zip(means, powers, strict=True)):
        factor = {
            _single(at, s, len(powers)): math.comb(power, s) * (-mean) ** (power - s)
            for s in range(power + 1)
        }
        total = multiply(total, factor)
    return total


def _single(at: int, power: int, columns: int) -> Powers:
    return (*(0,) * at, power, *(0,) * (columns - at - 1))


@lru_cache
def parts_of_pair(degree: int) -> dict[str, Powers]:
    """Return which part of the first column and which of the second one each part of a pair is.

    Part `i j` is the total of `B_i(x) B_j(y)`, where `B_i(x) = C(d, i) ((1 + x) / 2)^i ((1 - x) /
    2)^(d - i)` and d is the degree: all are at least 0, and add up to 1.

    Examples
    --------
    >>> [*parts_of_pair(1)]
    ['part 0 0', 'part 0 1', 'part 1 0', 'part 1 1']
    """
    orders = range(degree + 1)
    return {f"part {i} {j}": (i, j) for i, j in product(orders, orders)}


@lru_cache
def of_parts(powers: Powers, degree: int) -> tuple[float, ...]:
    """Return the weights of the parts of a pair that add up to a moment.

    A polynomial is the sum of its Bernstein coefficients times the parts, where that of `x^a` at i
    is the sum over s of `C(i, s) C(d - i, a - s) / C(d, a) (-1)^(a - s)`.

    Examples
    --------
    >>> of_parts((1, 0), 1)
    (-1.0, -1.0, 1.0, 1.0)
    """
    first, second = (
        [_coefficient(at, power, degree) for at in range(degree + 1)] for power in powers
    )
    return tuple(x * y for x, y in product(first, second))


def _coefficient(at: int, power: int, degree: int) -> float:
    terms = [
        math.comb(at, s) * math.comb(degree - at, power - s) * (-1.0) ** (power - s)
        for s in range(power + 1)
    ]
    return math.fsum(terms) / math.comb(degree, power)


@frozen
class OfMoments(Statistic):
    """A statistic of several columns together."""

    arity = 2
    of_several = True
    family = tuple(moments(2, SECOND))

    @property
    def number(self) -> int:
        """How many columns it is about."""
        return len(self.columns)

    @property
    def degree(self) -> int:
        """That of the moments."""
        return FOURTH if self.sampled else SECOND

    @property
    def features(self) -> tuple[str, ...]:
        """The moments."""
        return tuple(moments(self.number, self.degree))

    @property
    def importance(self) -> Mapping[str, float]:
        """Products with the last column count most: errors of the others cancel in part."""
        by_name = moments(self.number, self.degree)
        return {
            name: 1.0 if sum(powers) == SECOND and powers[-1] == 1 else 0.25
            for name, powers in by_name.items()
        }

    @property
    def span(self) -> tuple[float, float]:
        """All numbers, unless it is bounded."""
        return -math.inf, math.inf

    def centered(self, totals: Totals[Any]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the numbers of rows, and the means, kept within their bounds."""
        none = (0,) * self.number
        rows = rows_of(totals, weigh({none: 1.0}))
        firsts = (_single(at, 1, self.number) for at in range(self.number))
        totaled = (totals.weigh(weigh({powers: 1.0})) for powers in firsts)
        return rows, [np.clip(total / rows, -1, 1) for total in totaled]

    def off(self, means: Sequence[Any], *columns: int) -> dict[Powers, Any]:
        """Return the product of how far the values of some columns are off their means."""
        powers = tuple(columns.count(at) for at in range(self.number))
        return powers_off(means, powers)

    @classmethod
    def words(cls, labels: Iterable[object]) -> str:
        """Say what it is, of both columns."""
        return f"{cls.called} of {' and '.join(map(str, labels))}"

    @abstractmethod
    def quotient(self, totals: Totals[Any]) -> Quotient:
        """Return the two weightings."""
