"""The best adaptive adversary of an accounting rule, found by backward induction.

The adversary sees its privacy loss L so far and what the rule has left. At each state it may stop,
jump with all that is left of one kind, or take a step of a given size. What it reaches is the
largest mean of ``(1 - exp(epsilon - L))+``: the delta of everything together at the budget's
epsilon. Steps are the dominating pairs: a normal distribution, and randomized response.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpframe.privacy.amounts import Budget, PrivacyLoss, exact
from dpframe.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, pure_of_mu
from dpframe.privacy.pots import GaussianPot, Pots, RenyiPot, Spare, settle_pots
from dpframe.privacy.renyi import renyi_limit

BUDGETS = [Budget(1, 1e-6), Budget(3, 1e-6), Budget(1, 1e-9), Budget(0.5, 1e-5), Budget(8, 1e-6)]
_FINE = 24  # grid points in the standard deviation of the smallest step
_REACH = 9  # standard deviations of a step that are kept


def whole(budget: Budget) -> Fraction:
    """Largest mu^2 that keeps a budget by itself."""
    return Fraction(gaussian_mu(budget.epsilon, budget.delta)) ** 2


class Rule(Protocol):
    """An accounting rule: its states, what they allow, and what they have left."""

    budget: Budget

    def start(self) -> Any: ...

    def charge(self, state: Any, loss: PrivacyLoss) -> Hashable | None: ...

    def spare(self, state: Any) -> Spare: ...

    def spare_delta(self, state: Any) -> float: ...


@dataclass
class Settled:
    """The rule of a ledger."""

    budget: Budget

    def start(self) -> Pots:
        return settle_pots(self.budget)

    def charge(self, state: Pots, loss: PrivacyLoss) -> Pots | None:
        return state.plus(loss) if state.fits(loss) else None

    def spare(self, state: Pots) -> Spare:
        return state.largest

    def spare_delta(self, state: Pots) -> float:
        return float(state.spare_delta)


class GaussianAlone(Settled):
    """The Gaussian pot by itself, to see how well the grid finds what is known."""

    def start(self) -> Pots:
        pots = tuple(pot for pot in super().start().pots if isinstance(pot, GaussianPot))
        return Pots(pots, Fraction(0), Fraction(0))


class Reviving(Settled):
    """Not valid: a pot skips a loss that does not fit, and goes on with later ones."""

    def charge(self, state: Pots, loss: PrivacyLoss) -> Pots | None:
        if not state.fits(loss):
            return None
        after = state.plus(loss)
        sums = tuple(
            had if new is None else new for had, new in zip(state.sums, after.sums, strict=True)
        )
        return replace(after, sums=sums)


class FullDelta(Settled):
    """Not valid: each pot has all of delta."""

    def start(self) -> Pots:
        pots = settle_pots(Budget(self.budget.epsilon, self.budget.delta * 30)).pots
        everything = GaussianPot(Fraction(1), whole(self.budget))
        return Pots((everything, *pots[2:]), Fraction(0), Fraction(0))


class FreeLooks(Settled):
    """Not valid: a look is charged to the pure pot alone, so that it spares all others."""

    def charge(self, state: Pots, loss: PrivacyLoss) -> Pots | None:
        if loss.mu_squared or loss.epsilon > state.for_shares.epsilon / 8:
            return super().charge(state, loss)
        if not state.fits(loss):
            return None
        after = state.plus(loss)
        return replace(after, sums=(after.sums[0], *state.sums[1:]))


@dataclass
class AnySplit:
    """Not valid: any split of the losses into kept and moved ones, chosen in hindsight.

    It was the rule of the first ledgers. States are the Gaussian losses added up; pure losses come
    last, as jumps.
    """

    budget: Budget

    def start(self) -> Fraction:
        return Fraction(0)

    def charge(self, state: Fraction, loss: PrivacyLoss) -> Fraction | None:
        after = state + loss.mu_squared
        return after if after <= whole(self.budget) else None

    def spare(self, state: Fraction) -> Spare:
        left = whole(self.budget) - state
        kept = self.budget.epsilon - gaussian_epsilon(self.budget.delta, math.sqrt(state))
        return Spare(left, Fraction(max(kept, pure_of_mu(math.sqrt(left)), 0)))

    def spare_delta(self, state: Fraction) -> float:
        return 0.0


class DeltaOnTheFly(AnySplit):
    """Not valid: extra deltas are taken off what Gaussian losses happen to leave."""

    def spare(self, state: Fraction) -> Spare:
        return Spare(whole(self.budget) - state, Fraction(0))

    def spare_delta(self, state: Fraction) -> float:
        used = gaussian_delta(self.budget.epsilon, math.sqrt(state))
        return max(0.0, self.budget.delta - used)


def worst_delta(
    rule: Rule,
    gaussian_steps: Sequence[Fraction] = (),
    pure_steps: Sequence[Fraction] = (),
    *,
    fine: float = _FINE,
) -> float:
    """Return the delta that the best adversary reaches, in parts of the budget's.

    Parameters
    ----------
    rule
        Decides what is allowed.
    gaussian_steps, pure_steps
        Sizes of steps, as mu^2 and as epsilon; the latter multiples of the smallest.
    fine
        Grid points in the standard deviation of the smallest Gaussian step.
    """
    game = _Game(rule, gaussian_steps, pure_steps, fine)
    return float(game.value(rule.start())[game.zero]) / rule.budget.delta


Values = np.ndarray


class _Game:
    """Values of all states that are reached, on a grid of the privacy loss."""

    def __init__(
        self,
        rule: Rule,
        gaussian_steps: Sequence[Fraction],
        pure_steps: Sequence[Fraction],
        fine: float,
    ) -> None:
        self.rule, self.epsilon = rule, rule.budget.epsilon
        most = math.sqrt(whole(rule.budget))
        self.spacing = min([math.sqrt(step) for step in gaussian_steps] or [most]) / fine
        if pure_steps:
            unit = float(min(pure_steps))
            self.spacing = unit / math.ceil(unit / self.spacing)
        self.zero = int((10 * most + self.epsilon + 1) / self.spacing)
        high = int((self.epsilon + 2) / self.spacing) + 1
        self.losses = np.arange(-self.zero, high + 1) * self.spacing
        self.stopped = self._pay(self.losses)
        self.steps = [
            (PrivacyLoss(mu_squared=step), self._gaussian_step(math.sqrt(step)))
            for step in gaussian_steps
        ] + [(PrivacyLoss(epsilon=step), self._pure_step(float(step))) for step in pure_steps]
        self.known: dict[Hashable, Values] = {}

    def value(self, state: Hashable) -> Values:
        """Give the mean of what the best adversary reaches from each loss."""
        if state not in self.known:
            self.known[state] = np.maximum.reduce(list(self._ways(state)))
        return self.known[state]

    def _ways(self, state: Hashable) -> list[Values]:
        spare, extra = self.rule.spare(state), self.rule.spare_delta(state)
        ways = [self.stopped, extra + (1 - extra) * self.stopped]
        if spare.mu_squared > 0:
            ways.append(self._gaussian_jump(math.sqrt(spare.mu_squared)))
        if spare.epsilon > 0:
            ways.append(self._pure_jump(float(spare.epsilon)))
        for loss, back in self.steps:
            after = self.rule.charge(state, loss)
            if after is not None:
                ways.append(back(self.value(after)))
        return ways

    def _pay(self, losses: Values) -> Values:
        return np.maximum(0, -np.expm1(np.minimum(self.epsilon - losses, 0)))

    def _gaussian_jump(self, mu: float) -> Values:
        left = self.epsilon - self.losses
        return ndtr(mu / 2 - left / mu) - np.exp(left + log_ndtr(-mu / 2 - left / mu))

    def _pure_jump(self, epsilon: float) -> Values:
        likely = 1 / (1 + math.exp(-epsilon))
        up, down = self._pay(self.losses + epsilon), self._pay(self.losses - epsilon)
        return likely * up + (1 - likely) * down

    def _gaussian_step(self, mu: float) -> Callable[[Values], Values]:
        reach = int(_REACH * mu / self.spacing) + 2
        at = np.arange(-reach, reach + 1) * self.spacing
        upper = (at + self.spacing / 2 - mu**2 / 2) / mu
        lower = (at - self.spacing / 2 - mu**2 / 2) / mu
        mass = np.where(at > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
        flipped = mass[::-1]
        return lambda values: np.convolve(np.pad(values, reach, mode="edge"), flipped, "valid")

    def _pure_step(self, epsilon: float) -> Callable[[Values], Values]:
        likely, cells = 1 / (1 + math.exp(-epsilon)), round(epsilon / self.spacing)
        assert math.isclose(cells * self.spacing, epsilon, rel_tol=1e-9)

        def back(values: Values) -> Values:
            wide = np.pad(values, cells, mode="edge")
            return likely * wide[2 * cells :] + (1 - likely) * wide[: len(values)]

        return back


def even_steps(budget: Budget, number: int) -> list[Fraction]:
    """Give the one Gaussian step of which so many are the whole budget."""
    return [whole(budget) / number]


def mixed_steps(budget: Budget) -> tuple[list[Fraction], list[Fraction]]:
    """Give two Gaussian steps and two of randomized response."""
    m, e = whole(budget), exact(budget.epsilon)
    return [m / 12, m / 3], [e / 16, e / 4]


def looking_steps(budget: Budget) -> tuple[list[Fraction], list[Fraction]]:
    """Give a Gaussian step beside the pure noise of a look, at a tenth of the budget."""
    look = settle_pots(budget).for_look(Fraction(1, 10))
    assert look is not None
    return [whole(budget) / 4], [look.epsilon]


class AfterASmallOne(Settled):
    """The rule of a ledger once a first charge, small and pure, settled its pots."""

    def start(self) -> Pots:
        pots = super().start()
        return replace(
            pots.begun_with(PrivacyLoss(epsilon=pots.small)), largest_mu_squared=Fraction(0)
        )


class MoreForMany(AfterASmallOne):
    """Not valid: the order for many small releases has all of delta, beside the other pots."""

    def start(self) -> Pots:
        first, gaussian, most, *others = super().start().pots
        order = most.order
        limit = renyi_limit(self.budget.epsilon, self.budget.delta, order)
        pots = (first, gaussian, RenyiPot(Fraction(1), order, limit), *others)
        return Pots(pots, Fraction(0), Fraction(0))


class AfterTheFirst(Settled):
    """The rule of a ledger, except for its first charge, which may take the whole budget."""

    def start(self) -> Pots:
        return replace(super().start(), largest_mu_squared=Fraction(0))
