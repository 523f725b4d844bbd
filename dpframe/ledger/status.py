"""What is spent of a budget and what is left, as numbers, a table and words."""

from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from fractions import Fraction

import pandas as pd

from dpframe.html import budget_html
from dpframe.ledger.chain import Entry
from dpframe.privacy.amounts import Budget, PrivacyLoss, exact
from dpframe.privacy.calibration import gaussian_mu
from dpframe.privacy.composition import Composition, Split
from dpframe.privacy.rounding import above, below, root_above, root_below

__all__ = ["BudgetStatus", "describe", "refusal"]

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """What is spent of a budget and what is left.

    Parameters
    ----------
    budget
        The total.
    entries
        The releases charged to it.
    composition
        Their losses added up; computed where it is not given.
    """

    budget: Budget
    entries: tuple[Entry, ...]
    composition: Composition = field(default_factory=Composition, compare=False)

    def __post_init__(self) -> None:
        if self.entries and self.composition == Composition():
            object.__setattr__(self, "composition", Composition().plus(*self.losses))

    @property
    def losses(self) -> tuple[PrivacyLoss, ...]:
        """Losses of the releases."""
        return tuple(entry.loss for entry in self.entries)

    @property
    def spent(self) -> PrivacyLoss:
        """Everything spent, composed."""
        return self.composition.total

    @property
    def spent_epsilon(self) -> float:
        """Smallest epsilon at which everything spent is (epsilon, delta)-DP, delta the budget's."""
        return self.composition.epsilon_at(_delta_left(self.budget, self.spent))

    @property
    def spent_mu(self) -> float:
        """Mu such that everything spent, but for the extra deltas, is mu-GDP together."""
        return root_above(self._all_moved().mu_squared)

    @property
    def spent_rho(self) -> float:
        """Rho such that everything spent, but for the extra deltas, is rho-zCDP together."""
        return above(self._all_moved().rho_doubled / 2)

    @property
    def spent_delta(self) -> float:
        """Sum of the extra deltas; the one of the budget is spent by none of the noise alone."""
        return above(self.spent.delta)

    @property
    def remaining_mu(self) -> float:
        """Largest mu of a further Gaussian release."""
        return root_below(self._remaining_mu_squared())

    @property
    def remaining_rho(self) -> float:
        """Largest rho of a further Gaussian release, mu^2 / 2."""
        return below(self._remaining_mu_squared() / 2)

    @property
    def remaining_epsilon(self) -> float:
        """Largest epsilon of a further Laplace release."""
        return self.composition.spare_epsilon(self.budget)

    @property
    def remaining_delta(self) -> float:
        """What the extra deltas leave of the budget's delta."""
        return _delta_left(self.budget, self.spent)

    @property
    def remaining_share(self) -> float:
        """What is left of the shares: of epsilon if only Laplace was spent or fits, else of mu^2.

        A share of the other kind is another amount, which need not fit.
        """
        whole = Fraction(gaussian_mu(self.budget.epsilon, self.budget.delta)) ** 2
        if whole and (self.spent.mu_squared or not self.spent.epsilon):
            return below(self._remaining_mu_squared() / whole)
        epsilon = exact(self.budget.epsilon)
        return below(max(1 - self.spent.epsilon / epsilon, Fraction(0))) if epsilon else 0.0

    def _all_moved(self) -> Split:
        return list(self.composition.splits())[-1]

    def _remaining_mu_squared(self) -> Fraction:
        return self.composition.spare_mu_squared(self.budget)

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

    def running_epsilon(self) -> list[float]:
        """Give what was spent after each release, as `spent_epsilon`."""
        composed, running = Composition(), []
        for loss in self.losses:
            composed = composed.plus(loss)
            running.append(composed.epsilon_at(_delta_left(self.budget, composed.total)))
        return running

    def _repr_html_(self) -> str:
        """Show the budget in a notebook."""
        return budget_html(self)

    def __repr__(self) -> str:
        """Show the budget as a short table."""
        lines = [
            f"Budget     epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}",
            f"Spent      epsilon={self.spent_epsilon:.4g} at that delta, mu={self.spent_mu:.4g}, "
            f"rho={self.spent_rho:.4g} ({describe(self.spent)})",
            f"Remaining  mu={_floor(self.remaining_mu, 4)} (Gaussian) or "
            f"epsilon={_floor(self.remaining_epsilon, 4)} (Laplace), "
            f"rho={_floor(self.remaining_rho, 4)}, share={_floor(self.remaining_share, 4)}",
        ]
        hidden = len(self.entries) - _MOST_SHOWN
        if hidden > 0:
            lines.append(f"  {hidden} earlier releases; .releases lists all")
        for entry in self.entries[-_MOST_SHOWN:]:
            lines.append(
                f"  {entry.released_at}  {entry.what}: {entry.mechanism}, {describe(entry.loss)}"
            )
        return "\n".join(lines)


def refusal(left: BudgetStatus, loss: PrivacyLoss) -> str:
    """Say that a release does not fit, and what would."""
    return (
        f"this release needs {describe(loss)}, which does not fit in what is left of "
        f"{left.budget}: mu={_floor(left.remaining_mu, 6)} for Gaussian noise, or "
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


def _delta_left(budget: Budget, spent: PrivacyLoss) -> float:
    return below(max(exact(budget.delta) - spent.delta, Fraction(0)))
