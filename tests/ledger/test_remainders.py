"""Less than a billionth of a budget is nothing: it is not shown, and no share is a part of it."""

from fractions import Fraction

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, gaussian, pure
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import BudgetExceededError
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.pots import GaussianPot, PurePot, settle_pots

FOUND = dpf.Budget(1, 1e-6, discovery=1e-7)


def trips(budget):
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "who": [1, 2, 3]})
    frame.dp.declare(
        privacy_unit="who", max_rows=1, max_groups=1, keys={"zone": ["A", "B"]}, budget=budget
    )
    return frame


def filled(budget, kind, left):
    """Fill the pot of a kind but for a part of it; no other pot has room for that kind."""
    ledger = Ledger(budget=budget)
    pots = settle_pots(budget).pots
    limit = next(pot.limit for pot in pots if isinstance(pot, kind))
    amount = limit * (1 - left)
    spent = pure(amount) if kind is PurePot else PrivacyLoss(mu_squared=amount)
    ledger.charge(entry(spent))
    return ledger


CASES = [(PURE, PurePot), (ONE, GaussianPot)]


@pytest.mark.parametrize(("budget", "kind"), CASES)
@pytest.mark.parametrize("left", [Fraction(1, 10**9 + 1), Fraction(1, 2**54), Fraction(1, 10**30)])
def test_less_than_a_billionth_is_nothing(budget, kind, left):
    now = filled(budget, kind, left).status()
    assert now.remaining_share == now.largest_share == 0
    assert now.remaining_epsilon == now.remaining_mu == now.remaining_rho == 0
    assert now.left == "0.0% of the budget"
    assert "Remaining  0.0% of the budget\n" in f"{now}\n"
    for share in (1, "1/2", Fraction(1, 10**12)):
        with raises(BudgetExceededError, "Nothing is left", parameter="share"):
            now.share(share)


@pytest.mark.parametrize(("budget", "kind"), CASES)
def test_a_billionth_is_something(budget, kind):
    now = filled(budget, kind, Fraction(1, 10**9)).status()
    assert any(now.share(1).__getattribute__(part) for part in ("epsilon", "mu_squared"))
    assert now.largest_share == 1
    assert now.remaining_share == 1e-9


@pytest.mark.parametrize(("budget", "kind"), CASES)
def test_what_is_charged_is_still_compared_exactly(budget, kind):
    left = Fraction(1, 10**12)
    ledger = filled(budget, kind, left)
    rest = ledger.status().pots.pots[[PurePot, GaussianPot].index(kind)].limit * left
    fits, more = rest, rest + Fraction(1, 10**60)
    losses = [
        PrivacyLoss(epsilon=one) if kind is PurePot else PrivacyLoss(mu_squared=one)
        for one in (fits, more)
    ]
    assert [ledger.allows(loss) for loss in losses] == [True, False]
    with raises(BudgetExceededError, "Left: 0.0%", parameter="mu"):
        ledger.charge(entry(losses[1]))
    ledger.charge(entry(losses[0]))
    assert not ledger.allows(PrivacyLoss(epsilon=Fraction(1, 10**99)))


def test_three_thirds_as_floats_leave_nothing():
    frame = trips(PURE)
    for _ in range(3):
        frame.dp.count("zone", epsilon=1 / 3)
    assert frame.dp.budget.remaining_epsilon == 0
    for way in (frame.dp.count, lambda *by, **more: frame.dp.plan(dpf.count(*by), **more).table):
        with raises(BudgetExceededError, "Nothing is left", parameter="share"):
            way("zone", share=1)
    assert "5.5" not in frame.dp.budget._repr_html_()


def test_the_ends_of_a_billionth_of_the_extra_deltas():
    ledger = Ledger(budget=FOUND)
    kept = Fraction(1, 10**7)
    ledger.charge(entry(PrivacyLoss(delta=kept * (1 - Fraction(1, 10**12)))))
    assert ledger.status().remaining_delta == 0
    assert ledger.allows(PrivacyLoss(delta=kept / 10**12))
    assert not ledger.allows(PrivacyLoss(delta=kept / 10**12 + Fraction(1, 10**60)))
    with raises(BudgetExceededError, "delta=0 is left", parameter="discovery"):
        ledger.charge(entry(PrivacyLoss(delta=kept / 10**11)))
    with raises(BudgetExceededError, "does not fit", parameter="mu"):
        ledger.charge(entry(PrivacyLoss(epsilon=Fraction(2), delta=kept / 10**13)))


def test_labels_are_not_looked_for_with_less_than_a_billionth_of_the_extra_deltas():
    frame = trips(FOUND)
    frame.dp.ledger.charge(entry(PrivacyLoss(delta=Fraction(1, 10**7) * (1 - Fraction(1, 10**12)))))
    with raises(BudgetExceededError, "nothing is left of the delta to find groups with"):
        frame.dp.release(dpf.discover("zone"), mu=0.1)


def test_a_kind_of_which_a_billionth_is_left_is_apart_from_others():
    ledger = Ledger(budget=ONE)
    ledger.charge(entry(gaussian(0.05)))  # the pure pot is dead, and others are not
    ledger.charge(entry(gaussian(0.1)))
    now = ledger.status()
    assert now.remaining_epsilon > 0
    assert now.remaining_mu > 0
    assert ledger.allows(PrivacyLoss(mu_squared=now.share(1).mu_squared))
