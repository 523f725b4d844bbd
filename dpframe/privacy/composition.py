"""Losses added up, and what of a budget they leave: exact sums, bounds on the private side.

Losses of all releases are added up to pure epsilon `e_0`, Gaussian `mu` and extra delta `d_0`. They
are (epsilon, delta)-DP together when `delta(epsilon - e_0, mu) + d_0 <= delta`, the Gaussian
trade-off function of Dong, Roth and Su (2022). Any pure loss may be moved out of `e_0` first, in
one of two ways: as the mu-GDP that it implies, or, with all Gaussian losses, as concentrated
privacy. The best of these valid bounds counts, over all ways to move the smallest pure losses.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dpframe.privacy.amounts import Budget, PrivacyLoss, exact
from dpframe.privacy.calibration import gaussian_epsilon, gaussian_mu, mu_of_pure, pure_of_mu
from dpframe.privacy.rounding import above, below, root_above, root_below

__all__ = [
    "Composition",
    "Split",
    "concentrated_epsilon",
    "concentrated_rho",
]

_WAY_BACK = Fraction(1, 2**38)  # conversions keep margins of 2**-40 each
_MARGIN = 2.0**-40  # the orders tried below are certified up to this part of each term
_MOST_SPLITS = 32
_FEW = 64  # so many losses are sorted in one by one, more all at once
_GOLDEN = (math.sqrt(5) - 1) / 2
_LOG_ORDERS = (-80.0, 690.0)  # log(alpha - 1); the best order never lies beyond
_STEPS = 48  # of golden section: the order is then found to half of the digits of a float


def concentrated_rho(epsilon: float, delta: float) -> float:
    """Find the largest rho such that rho-zCDP implies (epsilon, delta)-DP.

    ``rho = max over alpha > 1 of (epsilon - log(1 - 1/alpha) + log(alpha delta) / (alpha - 1)) /
    alpha``, rounded down: each order alpha of Renyi divergence gives a valid bound (Canonne,
    Kamath and Steinke 2020, Proposition 12).

    Parameters
    ----------
    epsilon, delta
        Finite and >= 0; in [0, 1). With delta = 0, rho is 0.

    Examples
    --------
    >>> round(concentrated_rho(1, 1e-6), 7)
    0.024356
    """
    return _largest_rho(float(epsilon), float(delta))


@lru_cache(maxsize=4096)
def _largest_rho(epsilon: float, delta: float) -> float:
    if delta <= 0:
        return 0.0

    def rho(log_order: float) -> float:
        order, rest, slack = _terms(log_order, delta)
        return (epsilon * (1 - _MARGIN) + rest - slack) / order

    return max(0.0, _maximum(rho))


def concentrated_epsilon(delta: float, rho: float) -> float:
    """Find the smallest epsilon >= 0 such that rho-zCDP implies (epsilon, delta)-DP.

    ``epsilon = min over alpha > 1 of alpha rho + log(1 - 1/alpha) - log(alpha delta) /
    (alpha - 1)``, rounded up (Canonne, Kamath and Steinke 2020, Proposition 12). Infinite if delta
    is 0 and rho is not.

    Parameters
    ----------
    delta
        In [0, 1).
    rho
        Parameter of zero-concentrated differential privacy, finite and >= 0.

    Examples
    --------
    >>> round(concentrated_epsilon(1e-6, 0.125), 6)
    2.419093
    """
    if delta <= 0:
        return math.inf if rho else 0.0

    def minus_epsilon(log_order: float) -> float:
        order, rest, slack = _terms(log_order, delta)
        return rest - slack - order * rho * (1 + _MARGIN)

    return max(0.0, -_maximum(minus_epsilon)) if rho else 0.0


def _terms(log_order: float, delta: float) -> tuple[float, float, float]:
    """Give alpha, what follows alpha rho or epsilon with its sign, and a bound of its error."""
    beyond = math.exp(log_order)
    log_alpha, log_delta = math.log1p(beyond), math.log(delta)
    first = math.log1p(1 / beyond)  # -log(1 - 1/alpha)
    slack = _MARGIN * (first + (1 + log_alpha - log_delta) / beyond)
    return 1 + beyond, first + (log_delta + log_alpha) / beyond, slack


def _maximum(function: Callable[[float], float]) -> float:
    """Largest value met by golden section over the orders: any value met is a valid bound."""
    low, high = _LOG_ORDERS
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    best = max(at_left, at_right)
    for _ in range(_STEPS):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        best = max(best, at_left, at_right)
    return best


class _Moved(NamedTuple):
    """Sums over the smallest pure losses: of epsilon, of the mu^2 they imply, of epsilon^2."""

    epsilon: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    epsilon_squared: Fraction = Fraction(0)

    def plus(self, epsilon: Fraction, sign: int = 1) -> "_Moved":
        return _Moved(
            self.epsilon + sign * epsilon,
            self.mu_squared + sign * _mu_squared(epsilon),
            self.epsilon_squared + sign * epsilon**2,
        )


@lru_cache(maxsize=2**16)
def _mu_squared(epsilon: Fraction) -> Fraction:
    return Fraction(mu_of_pure(epsilon)) ** 2


class Split(NamedTuple):
    """One way to move the smallest pure losses.

    `kept` stays pure. What is moved makes, with the Gaussian losses, a mu-GDP of `mu_squared`, or a
    zCDP of `rho_doubled / 2`: epsilon-DP implies zCDP of `epsilon^2 / 2` (Bun and Steinke 2016,
    Proposition 1.4), and mu-GDP that of `mu^2 / 2`.
    """

    number: int
    kept: Fraction
    mu_squared: Fraction
    rho_doubled: Fraction

    def spares(self, budget: Budget, spent_delta: Fraction) -> Iterator[Fraction]:
        """Give what further mu^2 fits, and what 2 rho; negative if not even nothing does."""
        epsilon = exact(budget.epsilon) - self.kept
        delta = exact(budget.delta) - spent_delta
        if epsilon < 0 or delta < 0:
            yield Fraction(-1)
            return
        left = below(epsilon), below(delta)
        yield Fraction(gaussian_mu(*left)) ** 2 - self.mu_squared
        if self.number:  # Gaussian losses alone compose as GDP without any slack
            yield 2 * Fraction(concentrated_rho(*left)) - self.rho_doubled

    def epsilon_at(self, delta: float, margin: Fraction = Fraction(0)) -> Fraction | None:
        """Give an epsilon that all of it keeps at a delta; `None` if there is none."""
        more = 1 + margin
        beside = _gaussian_epsilon(delta, self.mu_squared * more)
        if self.number:
            rho = above(self.rho_doubled * more / 2)
            beside = min(beside, concentrated_epsilon(delta, rho))
        return self.kept + Fraction(beside) if math.isfinite(beside) else None


def _gaussian_epsilon(delta: float, mu_squared: Fraction) -> float:
    return gaussian_epsilon(delta, root_above(mu_squared)) if mu_squared else 0.0


@dataclass(frozen=True, slots=True)
class Composition:
    """Losses added up, in a form to which another can be added quickly.

    Parameters
    ----------
    total
        Sum of all losses.
    pure
        Their pure epsilons, sorted.
    moved
        Sums over the smallest pure epsilons: over each number of them, or of very many, over some
        numbers that are evenly apart.

    Examples
    --------
    >>> spent = Composition().plus(PrivacyLoss(epsilon=Fraction(1, 4)))
    >>> spent.fits(Budget(epsilon=1)), spent.epsilon_at(0.0)
    (True, 0.25)
    """

    total: PrivacyLoss = field(default_factory=PrivacyLoss)
    pure: tuple[Fraction, ...] = ()
    moved: tuple[_Moved, ...] = (_Moved(),)

    def plus(self, *losses: PrivacyLoss) -> "Composition":
        """Add losses."""
        total = sum(losses, start=self.total)
        new = [loss.epsilon for loss in losses if loss.epsilon]
        pure, moved = self.pure, self.moved
        if len(new) > _FEW:
            pure = tuple(sorted([*pure, *new]))
            return Composition(total, pure, _sums(pure))
        for epsilon in new:
            pure, moved = _inserted(pure, moved, epsilon)
        return Composition(total, pure, moved)

    def splits(self) -> Iterator[Split]:
        """Give ways to move the smallest pure losses, from none to all."""
        for number, moved in zip(_numbers(len(self.pure)), self.moved, strict=True):
            yield Split(
                number,
                self.total.epsilon - moved.epsilon,
                self.total.mu_squared + moved.mu_squared,
                self.total.mu_squared + moved.epsilon_squared,
            )

    def fits(self, budget: Budget) -> bool:
        """Whether all losses stay within a budget, decided exactly and on the safe side."""
        return any(spare >= 0 for spare in self._spares(budget))

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon found at which all losses together are (epsilon, delta)-DP.

        `delta` is what is there beside the extra deltas. Infinite if there is no such epsilon.
        """
        best: Fraction | None = None
        for split in reversed(list(self.splits())):
            if best is not None and split.kept >= best:
                break  # what stays pure alone is more already, here and in all that follow
            found = split.epsilon_at(delta)
            best = min((value for value in (best, found) if value is not None), default=None)
        return math.inf if best is None else above(best)

    def spare_mu_squared(self, budget: Budget) -> Fraction:
        """Largest mu^2 of a further Gaussian loss that fits."""
        return max(Fraction(0), *self._spares(budget))

    def _spares(self, budget: Budget) -> Iterator[Fraction]:
        return (
            spare for split in self.splits() for spare in split.spares(budget, self.total.delta)
        )

    def spare_epsilon(self, budget: Budget) -> float:
        """Largest epsilon of a further pure loss that fits."""
        for epsilon in sorted(self._candidates(budget), reverse=True):
            if self.plus(PrivacyLoss(epsilon=exact(epsilon))).fits(budget):
                return epsilon
        return 0.0

    def _candidates(self, budget: Budget) -> Iterator[float]:
        """Give epsilons of a further pure loss, kept or moved in each of the splits."""
        delta = below(max(exact(budget.delta) - self.total.delta, Fraction(0)))
        # a last loss stays pure in all splits but the last, a first one is moved in all but one
        last = self._beside(self.total.epsilon + 1)
        for split in list(last.splits())[:-1]:
            # what is left must fit when the way back is taken, with its margins
            found = split.epsilon_at(delta, _WAY_BACK)
            least = last.pure[split.number - 1] if split.number else Fraction(0)
            if found is not None and exact(budget.epsilon) - found >= least:
                yield below(exact(budget.epsilon) - found)
        first = self._beside(Fraction(0))
        for split in list(first.splits())[1:]:
            most = below(first.pure[split.number]) if split.number < len(first.pure) else math.inf
            for way, square in enumerate(split.spares(budget, self.total.delta)):
                if square > 0:
                    root = root_below(square * (1 - _WAY_BACK))
                    yield min(most, root if way else pure_of_mu(root))

    def _beside(self, epsilon: Fraction) -> "Composition":
        """Sort in a pure loss that costs nothing yet."""
        return Composition(self.total, *_inserted(self.pure, self.moved, epsilon))


def _numbers(n: int) -> Iterator[int]:
    """How many of n pure losses to move: every number, or of very many, some."""
    tries = min(n, _MOST_SPLITS)
    return (at * n // max(tries, 1) for at in range(tries + 1))


def _sums(pure: Sequence[Fraction]) -> tuple[_Moved, ...]:
    """Add up the smallest of sorted pure losses."""
    sums = [_Moved()]
    for start, end in pairwise(_numbers(len(pure))):
        moved = sums[-1]
        for epsilon in pure[start:end]:
            moved = moved.plus(epsilon)
        sums.append(moved)
    return tuple(sums)


def _inserted(
    pure: tuple[Fraction, ...], moved: tuple[_Moved, ...], epsilon: Fraction
) -> tuple[tuple[Fraction, ...], tuple[_Moved, ...]]:
    """Sort in one pure loss; each sum then gains one loss, trades one for another, or stays."""
    rank = bisect_right(pure, epsilon)
    grown = (*pure[:rank], epsilon, *pure[rank:])
    if len(grown) <= _MOST_SPLITS:
        return grown, _sums(grown)
    sums = []
    for before, after, old in zip(_numbers(len(pure)), _numbers(len(grown)), moved, strict=True):
        new = old.plus(epsilon) if rank < before else old
        # the sum is now over `before + 1` losses, or over `before`; `after` is one of the two
        if rank < before and after == before:
            new = new.plus(grown[before], sign=-1)
        elif rank >= before and after > before:
            new = new.plus(grown[before])
        sums.append(new)
    return grown, tuple(sums)
