"""Losses, entries and states of ledgers, for tests of what fits in a budget."""

import os
import traceback
from collections.abc import Callable, Iterable
from fractions import Fraction
from uuid import uuid4

from dpframe import BudgetStatus, Ledger
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, exact
from dpframe.privacy.pots import settle_pots

ONE = Budget(1, 1e-6)
PURE = Budget(1)


def pure(epsilon: float | Fraction) -> PrivacyLoss:
    return PrivacyLoss(epsilon=exact(epsilon))


def gaussian(mu: float) -> PrivacyLoss:
    return PrivacyLoss(mu_squared=Fraction(mu) ** 2)


def affords(budget: Budget, losses: Iterable[PrivacyLoss]) -> bool:
    """Whether losses fit in a budget one after the other."""
    pots = settle_pots(budget)
    for loss in losses:
        if not pots.fits(loss):
            return False
        pots = pots.plus(loss)
    return True


def entry(loss: PrivacyLoss, name: str | None = None, share: Fraction | None = None) -> Entry:
    """Make an entry with an identifier of its own."""
    spend = Spend.of(mu=1) if share is None else Spend("share", share)
    return Entry(
        uuid4().hex, "2026-01-01T00:00:00+00:00", "count", "mechanism", spend, loss, name=name
    )


def status(budget: Budget, *losses: PrivacyLoss) -> BudgetStatus:
    """Give the status of a ledger after some losses, all of which fit."""
    ledger = Ledger(budget=budget)
    for loss in losses:
        ledger.charge(entry(loss))
    return ledger.status()


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
