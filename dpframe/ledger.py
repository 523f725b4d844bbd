"""Budget spent and left.

A release that does not fit is refused before anything is drawn. Losses of all releases are added up
to pure epsilon `e_0`, Gaussian `mu` and extra delta `d_0`. They are (epsilon, delta)-DP together
when `delta(epsilon - e_0, mu) + d_0 <= delta`, the Gaussian trade-off function of Dong, Roth and Su
(2022). An eps-DP release is also mu-GDP, so any pure loss may be moved into mu first: the best of
these valid bounds counts, over all ways to move the smallest pure losses.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from uuid import uuid4

import pandas as pd

from dpframe.calibration import gaussian_epsilon, gaussian_mu, mu_of_pure, pure_of_mu
from dpframe.errors import BudgetExceededError, DeclarationError
from dpframe.privacy import Budget, PrivacyLoss, Spend, exact

__all__ = ["BudgetStatus", "Entry", "Ledger", "affords"]

_WAY_BACK = Fraction(1, 2**38)  # conversions keep margins of 2**-40 each


_MOST_SPLITS = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """One release in a ledger.

    Parameters
    ----------
    release_id
        Identifier, also in the certificate of what was released.
    released_at
        When, as an ISO 8601 time in UTC.
    what
        The queries in words.
    mechanism
        Name of the mechanism.
    spend
        How the amount was given.
    loss
        What it costs.
    """

    release_id: str
    released_at: str
    what: str
    mechanism: str
    spend: Spend
    loss: PrivacyLoss


class Ledger:
    """A budget and what has been spent of it, kept in memory and safe to share between threads.

    Parameters
    ----------
    budget
        The total budget of everything charged to this ledger.

    Raises
    ------
    DeclarationError
        If the budget is not a `Budget`.

    Examples
    --------
    >>> Ledger(budget=Budget(epsilon=1, delta=1e-6)).status().remaining_share
    1.0
    """

    def __init__(self, *, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise DeclarationError(
                f"budget must be a dpf.Budget, got {type(budget).__name__}; for instance "
                "dpf.Budget(epsilon=1, delta=1e-6)."
            )
        self.budget = budget
        self.ledger_id = uuid4().hex
        self._entries: tuple[Entry, ...] = ()
        self._lock = threading.Lock()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything charged so far, in order."""
        return self._entries

    def allows(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits beside what is spent."""
        return affords(self.budget, [*(entry.loss for entry in self._entries), loss])

    def charge(self, entry: Entry) -> None:
        """Record a release; what is recorded counts as spent whatever happens after.

        Raises
        ------
        BudgetExceededError
            If the total would exceed the budget; nothing is recorded then.
        """
        with self._lock:
            if not self.allows(entry.loss):
                raise BudgetExceededError(self._refusal(entry.loss))
            self._entries = (*self._entries, entry)

    def status(self) -> "BudgetStatus":
        """Return what is spent and what is left."""
        return BudgetStatus(self.budget, self._entries)

    def _refusal(self, loss: PrivacyLoss) -> str:
        left = self.status()
        return (
            f"this release needs {describe(loss)}, which does not fit in what is left of "
            f"{self.budget}: mu={_floor(left.remaining_mu, 6)} for Gaussian noise, or "
            f"epsilon={_floor(left.remaining_epsilon, 6)} for Laplace noise. Spend less, or "
            "declare a larger budget."
        )


def describe(loss: PrivacyLoss) -> str:
    """Say a loss in words."""
    parts = [f"epsilon={float(loss.epsilon):.6g}"] if loss.epsilon else []
    parts += [f"mu={loss.mu:.6g}"] if loss.mu_squared else []
    parts += [f"delta={float(loss.delta):.6g}"] if loss.delta else []
    return ", ".join(parts) or "nothing"


def _floor(value: float, digits: int) -> str:
    """Show what is left with a few digits, rounded down: as much as is shown can be spent."""
    # exact, so that 0.1 is not shown as 0.09999
    shown = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(value))
    return f"{float(shown):g}"


def _total(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
    return sum(losses, start=PrivacyLoss())


def _splits(losses: Sequence[PrivacyLoss]) -> Iterator[tuple[Fraction, Fraction]]:
    """Give valid totals (pure epsilon, mu^2), the smallest pure losses moved into mu^2.

    Every number of moved losses gives one; of very many, some are tried that are evenly apart.
    """
    pure = sorted(loss.epsilon for loss in losses if loss.epsilon)
    moved = list(accumulate(pure, initial=Fraction(0)))
    mu_squared = sum((loss.mu_squared for loss in losses), start=Fraction(0))
    squares = list(accumulate(map(_mu_squared, pure), initial=mu_squared))
    tries = min(len(pure), _MOST_SPLITS)
    for at in range(tries + 1):
        number = at * len(pure) // max(tries, 1)
        yield moved[-1] - moved[number], squares[number]


@lru_cache(maxsize=1024)
def _mu_squared(epsilon: Fraction) -> Fraction:
    return Fraction(mu_of_pure(epsilon)) ** 2


def _left(budget: Budget, losses: Sequence[PrivacyLoss], pure: Fraction) -> Fraction:
    """Largest mu^2 that fits beside a pure loss; negative if not even 0 does."""
    epsilon = exact(budget.epsilon) - pure
    delta = exact(budget.delta) - _total(losses).delta
    if epsilon < 0 or delta < 0:
        return Fraction(-1)
    return Fraction(gaussian_mu(_below(epsilon), _below(delta))) ** 2


def _below(value: Fraction) -> float:
    """Largest float that stands for no more than a fraction."""
    number = float(value)
    while exact(number) > value:
        number = math.nextafter(number, -math.inf)
    return number


def _above(value: Fraction) -> float:
    """Smallest float that stands for no less than a fraction."""
    number = float(value)
    while exact(number) < value:
        number = math.nextafter(number, math.inf)
    return number


def affords(budget: Budget, losses: Sequence[PrivacyLoss]) -> bool:
    """Whether losses together stay within a budget, decided exactly and on the safe side."""
    return any(mu_squared <= _left(budget, losses, pure) for pure, mu_squared in _splits(losses))


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """What is spent of a budget and what is left.

    Parameters
    ----------
    budget
        The total.
    entries
        The releases charged to it.
    """

    budget: Budget
    entries: tuple[Entry, ...]

    @property
    def losses(self) -> tuple[PrivacyLoss, ...]:
        """Losses of the releases."""
        return tuple(entry.loss for entry in self.entries)

    @property
    def spent(self) -> PrivacyLoss:
        """Everything spent, composed."""
        return _total(self.losses)

    @property
    def spent_epsilon(self) -> float:
        """Smallest epsilon at which everything spent is (epsilon, delta)-DP at that delta."""
        delta = self._delta_left()
        finite = (
            _above(pure + Fraction(beside))
            for pure, mu_squared in _splits(self.losses)
            if math.isfinite(beside := _epsilon_of(delta, mu_squared))
        )
        return min(finite, default=math.inf)

    @property
    def remaining_mu(self) -> float:
        """Largest mu of a further Gaussian release."""
        return _root_down(self._remaining_mu_squared())

    @property
    def remaining_epsilon(self) -> float:
        """Largest epsilon of a further Laplace release."""
        delta, epsilon = self._delta_left(), exact(self.budget.epsilon)
        # what is left must fit when the way back is taken, from epsilon to mu and its margin
        largest = [pure_of_mu(self.remaining_mu * float(1 - _WAY_BACK))]
        for pure, mu_squared in _splits(self.losses):
            beside = _epsilon_of(delta, mu_squared * (1 + _WAY_BACK))
            if math.isfinite(beside) and pure + Fraction(beside) < epsilon:
                largest.append(_below(epsilon - pure - Fraction(beside)))
        fitting = (left for left in sorted(largest, reverse=True) if self._fits(exact(left)))
        return next(fitting, 0.0)

    @property
    def remaining_share(self) -> float:
        """What is left of the shares: of epsilon if only Laplace was spent or fits, else of mu^2.

        A share of the other kind is another amount, which need not fit.
        """
        whole = Fraction(gaussian_mu(self.budget.epsilon, self.budget.delta)) ** 2
        if whole and (self.spent.mu_squared or not self.spent.epsilon):
            return _below(self._remaining_mu_squared() / whole)
        epsilon = exact(self.budget.epsilon)
        return _below(max(1 - self.spent.epsilon / epsilon, Fraction(0))) if epsilon else 0.0

    def _remaining_mu_squared(self) -> Fraction:
        spare = (
            _left(self.budget, self.losses, pure) - used for pure, used in _splits(self.losses)
        )
        return max(Fraction(0), *spare)

    def _fits(self, epsilon: Fraction) -> bool:
        """Whether a further pure loss fits."""
        return affords(self.budget, [*self.losses, PrivacyLoss(epsilon=epsilon)])

    def _delta_left(self) -> float:
        return _below(max(exact(self.budget.delta) - self.spent.delta, Fraction(0)))

    @property
    def releases(self) -> pd.DataFrame:
        """One row per release: when, what, mechanism and cost."""
        rows = [
            {
                "released_at": entry.released_at,
                "what": entry.what,
                "mechanism": entry.mechanism,
                "epsilon": float(entry.loss.epsilon),
                "mu": entry.loss.mu,
                "delta": float(entry.loss.delta),
            }
            for entry in self.entries
        ]
        columns = ["released_at", "what", "mechanism", "epsilon", "mu", "delta"]
        index = pd.Index(
            [entry.release_id for entry in self.entries], name="release_id", dtype=object
        )
        return pd.DataFrame(rows, index=index, columns=columns)

    def __repr__(self) -> str:
        """Show the budget as a short table."""
        lines = [
            f"Budget     epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}",
            f"Spent      epsilon={self.spent_epsilon:.4g} at that delta ({describe(self.spent)})",
            f"Remaining  mu={_floor(self.remaining_mu, 4)} (Gaussian) or "
            f"epsilon={_floor(self.remaining_epsilon, 4)} (Laplace)",
        ]
        for entry in self.entries:
            lines.append(
                f"  {entry.released_at}  {entry.what}: {entry.mechanism}, {describe(entry.loss)}"
            )
        return "\n".join(lines)


def _epsilon_of(delta: float, mu_squared: Fraction) -> float:
    return gaussian_epsilon(delta, _root_up(mu_squared)) if mu_squared else 0.0


def _root_up(value: Fraction) -> float:
    return PrivacyLoss(mu_squared=value).mu


def _root_down(value: Fraction) -> float:
    root = _root_up(value)
    while Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return root
