"""Losses, entries and states of ledgers, for tests of what fits in a budget."""

import os
import traceback
from collections.abc import Callable, Iterable
from fractions import Fraction

from dpframe.ledger.ledger import BudgetStatus, Entry
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, exact
from dpframe.privacy.composition import Composition

ONE = Budget(1, 1e-6)
PURE = Budget(1)


def pure(epsilon: float | Fraction) -> PrivacyLoss:
    return PrivacyLoss(epsilon=exact(epsilon))


def gaussian(mu: float) -> PrivacyLoss:
    return PrivacyLoss(mu_squared=Fraction(mu) ** 2)


def affords(budget: Budget, losses: list[PrivacyLoss]) -> bool:
    return Composition().plus(*losses).fits(budget)


def entry(loss: PrivacyLoss) -> Entry:
    return Entry("id", "2026-01-01T00:00:00+00:00", "count", "name", Spend.of(mu=1), loss)


def status(budget: Budget, *losses: PrivacyLoss) -> BudgetStatus:
    return BudgetStatus(budget, tuple(map(entry, losses)))


def in_processes(acts: Iterable[Callable[[], int]]) -> list[int]:
    """Run functions in processes forked from this one; 99 stands for an error."""
    children = []
    for act in acts:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = act()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
