"""Shares of a budget: equal, exact, in any order, and never of a state that is gone."""

import random
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, gaussian, pure
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import BudgetExceededError, CalibrationError
from dpframe.privacy.amounts import Budget, PrivacyLoss, exact
from dpframe.privacy.gaussian import gaussian_mu

BUDGETS = [ONE, Budget(3, 1e-6), Budget(1, 1e-9), Budget(0.5, 1e-5), Budget(8, 1e-6)]
KINDS = ["gaussian", "laplace"]


def loss_of(ledger: Ledger, kind: str, share: Fraction) -> PrivacyLoss:
    now = ledger.status().share(share)
    if kind == "laplace":
        return PrivacyLoss(epsilon=now.epsilon)
    return PrivacyLoss(mu_squared=now.mu_squared)


def charge(ledger: Ledger, kind: str, share: Fraction) -> PrivacyLoss:
    loss = loss_of(ledger, kind, share)
    ledger.charge(entry(loss, share=share))
    return loss


def trips(**declared) -> pd.DataFrame:
    frame = pd.DataFrame({"zone": ["A", "B", "A"]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, **declared)
    return frame


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [7, 12, 100])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_shares_of_one_kind_are_equal_and_fill_their_pot_exactly(budget, n, kind):
    ledger = Ledger(budget=budget)
    losses = {charge(ledger, kind, Fraction(1, n)) for _ in range(n)}
    assert len(losses) == 1
    pots = ledger.status().pots
    position = KINDS[::-1].index(kind)
    assert pots.sums[position] == pots.pots[position].limit
    if kind == "gaussian":
        assert not ledger.allows(PrivacyLoss(mu_squared=Fraction(1, 10**30)))
    with raises(BudgetExceededError, "share=1e-09", parameter="share"):
        ledger.status().share(Fraction(1, 10**9))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_shares_of_some_twelfths_of_any_kinds_fit_in_any_order_up_to_one(budget):
    source = random.Random(1)
    for _ in range(20):
        ledger, left = Ledger(budget=budget), Fraction(1)
        while left:
            share = min(left, Fraction(source.randint(1, 4), 12))
            charge(ledger, source.choice(KINDS), share)
            left -= share
        assert ledger.status().shares == 1
        assert ledger.status().remaining_share == 0


@pytest.mark.parametrize("budget", BUDGETS[:2], ids=str)
def test_spends_in_between_leave_smaller_shares_that_still_fit(budget):
    ledger = Ledger(budget=budget)
    first = charge(ledger, "gaussian", Fraction(1, 4))
    ledger.charge(entry(gaussian(float(first.mu) / 2)))
    second = charge(ledger, "gaussian", Fraction(1, 4))
    assert second.mu_squared < first.mu_squared
    ledger.charge(entry(pure(budget.epsilon / 20)))
    for kind in ("laplace", "gaussian"):
        charge(ledger, kind, Fraction(1, 4))
    assert ledger.status().remaining_share == 0


def test_alternating_shares_have_the_sizes_that_were_computed_apart():
    ledger = Ledger(budget=ONE)
    sizes = []
    for number in range(12):
        loss = charge(ledger, KINDS[number % 2], Fraction(1, 12))
        sizes.append(loss.mu or float(loss.epsilon))
    assert sizes[0::2] == pytest.approx([0.0676, 0.0666, 0.0666, 0.0675, 0.0707, 0.0803], abs=5e-5)
    assert sizes[1::2] == pytest.approx([0.0611, 0.0532, 0.0490, 0.0419, 0.0366, 0.0640], abs=5e-5)


def test_where_nothing_is_left_a_share_is_nothing():
    ledger = Ledger(budget=ONE)
    ledger.charge(entry(gaussian(gaussian_mu(1, 1e-6))))
    assert ledger.status().remaining_share == 0
    with raises(BudgetExceededError, "Left: 0.0%", parameter="share"):
        ledger.status().share(Fraction(1, 10**6))
    pure_alone = Ledger(budget=PURE)
    pure_alone.charge(entry(pure(1)))
    with raises(BudgetExceededError, "Left: 0.0%", parameter="share"):
        pure_alone.status().share(Fraction(1, 2))


def test_shares_of_odd_denominators_stay_short():
    ledger = Ledger(budget=ONE)
    for number in range(60):
        share = Fraction(1, 1009 + 6 * number)
        loss = charge(ledger, KINDS[number % 2], share)
        assert max(loss.epsilon, loss.mu_squared).denominator.bit_length() <= 1024
    assert ledger.status().remaining_share > 0.9


def test_a_share_planned_before_another_spend_is_refused_and_not_made_up_for():
    ledger = Ledger(budget=ONE)
    planned = entry(loss_of(ledger, "gaussian", Fraction(1, 2)), share=Fraction(1, 2))
    ledger.charge(entry(gaussian(0.05)))
    head = ledger.head
    with raises(BudgetExceededError, "became less", parameter="share"):
        ledger.charge(planned)
    assert ledger.head == head
    charge(ledger, "gaussian", Fraction(1, 2))


def test_a_share_planned_before_another_share_of_its_kind_is_what_it_was():
    ledger = Ledger(budget=ONE)
    planned = [loss_of(ledger, "laplace", Fraction(1, 3)) for _ in range(3)]
    for loss in planned:
        ledger.charge(entry(loss, share=Fraction(1, 3)))
    assert ledger.status().spent == pure(1)


def test_a_share_of_a_kind_that_is_used_up_names_the_other():
    frame = trips(budget=ONE)
    frame.dp.count("zone", epsilon=0.99, mechanism="laplace")
    assert frame.dp.budget.remaining_mu == 0
    assert frame.dp.budget.remaining_epsilon == pytest.approx(0.01)
    with raises(BudgetExceededError, "no Gaussian noise fits"):
        frame.dp.count("zone", share=0.5, mechanism="gaussian")
    assert frame.dp.count("zone", share=0.5).dp.certificate.mechanism.name == "laplace"


def test_a_preview_costs_what_the_release_then_does():
    frame = trips(budget=ONE)
    frame.dp.count("zone", epsilon=0.2, mechanism="laplace")
    shown = frame.dp.plan(dpf.count("zone"), share=0.4, mechanism="gaussian").table
    released = frame.dp.count("zone", share=0.4, mechanism="gaussian")
    assert shown["mu"].tolist() == [released.dp.certificate.privacy_loss.mu]
    assert shown["fits"].all()


def spent_in(way: str) -> Ledger:
    """Give a ledger of which some was spent, in one way or several."""
    ledger = Ledger(budget=ONE)
    for kind in KINDS:
        if kind in way:
            charge(ledger, kind, Fraction(1, 6))
    if "epsilon" in way:
        ledger.charge(entry(pure(0.25)))
    if "mu" in way:
        ledger.charge(entry(gaussian(0.05)))
    return ledger


WAYS = ["epsilon", "mu", "epsilon and mu", "gaussian", "laplace and mu", "gaussian and laplace"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_the_part_that_remains_fits_as_a_share_and_the_largest_takes_all(way, kind):
    ledger = spent_in(way)
    charge(ledger, kind, exact(ledger.status().remaining_share))
    ledger = spent_in(way)
    charge(ledger, kind, 1 - ledger.status().shares)
    assert ledger.status().remaining_share == ledger.status().largest_share == 0


def test_late_in_a_budget_shares_may_fit_for_one_kind_alone():
    ledger = Ledger(budget=ONE)
    charge(ledger, "laplace", Fraction(97, 100))
    left = ledger.status()
    assert (left.remaining_mu, left.largest_share) == (0, 0.03)
    assert left.share(0.03).mu_squared == 0 < left.share(0.03).epsilon
    words = "3.0% of the budget: epsilon=0.03 of Laplace noise; share=0.03 takes all of it"
    assert words in repr(left)
    assert "share=0.03 takes all of it" in left._repr_html_()
    assert "Gaussian" not in left._repr_html_()
    charge(ledger, "laplace", Fraction(3, 100))
    assert repr(ledger.status()).splitlines()[2] == "Remaining  0.0% of the budget"


@pytest.mark.parametrize("share", [2, 0, "2", None, True])
def test_what_is_no_share_is_refused(share):
    with raises(CalibrationError, "share must be"):
        Ledger(budget=ONE).status().share(share)


def test_a_share_that_is_shown_rounded_down_says_so():
    ledger = Ledger(budget=PURE)
    charge(ledger, "laplace", Fraction(1, 3))
    with raises(BudgetExceededError, "takes nearly all", parameter="share"):
        ledger.status().share(0.9)


def test_a_cell_that_was_run_twice_is_asked_about():
    frame = trips(budget=ONE)
    frame.dp.count(by="zone", keys=["A", "B"], share=0.6)
    last = frame.dp.ledger.entries[-1]
    with raises(BudgetExceededError, "Run twice? Released last: count by zone", parameter="share"):
        frame.dp.count(by="zone", keys=["A", "B"], share=0.6)
    with raises(BudgetExceededError, last.released_at, parameter="epsilon"):
        frame.dp.count(by="zone", keys=["A", "B"], epsilon=0.9)
    frame.dp.count(epsilon=0.01, name="zones")
    frame.dp.count(epsilon=0.01)
    frame.dp.count(where="zone == 'A'", epsilon=0.01)
    with raises(BudgetExceededError, "Spend less", parameter="share") as other:
        frame.dp.count(share=0.7)
    assert str(other.value).endswith(", after zones, count.")
    assert "by zone" not in str(other.value)


def test_what_is_said_to_fit_fits():
    frame = trips(budget=ONE)
    frame.dp.count(share=0.6)
    with raises(BudgetExceededError, "share=0.4 takes all of it") as caught:
        frame.dp.count(share=0.5)
    assert "larger budget" not in str(caught.value)
    frame.dp.count(share=0.4)


@pytest.mark.parametrize(("share", "meant"), [(50, "0.5"), (100, "1"), (12.5, "0.125")])
def test_a_share_in_percent_is_answered_with_the_share(share, meant):
    frame = trips(budget=ONE)
    with raises(CalibrationError, f"Did you mean {meant}?", parameter="share", value=share):
        frame.dp.count(share=share)


def test_a_release_is_shown_with_the_share_that_it_asked_for():
    frame = trips(budget=ONE)
    first = frame.dp.count(share=0.3)
    frame.dp.count(share=0.25, mechanism="gaussian")  # the other kind of noise
    frame.dp.count(epsilon=0.05)
    third = frame.dp.count(share="0.1")
    status = frame.dp.budget
    shown = repr(status).splitlines()
    asked = [line.split(", ")[1] for line in shown[3:]]
    assert [*asked[:2], asked[3]] == ["share 30%", "share 25%", "share 10%"]
    part = status.releases["part"].iloc[2]
    assert asked[2] == f"{100 * part:.3g}% of the budget"
    in_all = f"65% of the budget in shares, and {asked[2]} otherwise"
    assert shown[1].startswith(f"Spent      {in_all}: ")
    assert f">{in_all}<" in status._repr_html_()
    assert status.releases["share"].dropna().tolist() == [0.3, 0.25, 0.1]
    assert status.releases["part"].isna().tolist() == [True, True, False, True]
    for released, *texts in (
        (first, "a share of 30% of epsilon=1, delta=1e-06", "30% in shares by then"),
        (third, "a share of 10% of epsilon=1, delta=1e-06", "65% in shares by then"),
    ):
        words = str(released.dp.certificate)
        assert all(text in words for text in texts)


@pytest.mark.parametrize("kinds", [KINDS, KINDS[::-1]], ids=" then ".join)
def test_shares_alone_add_up_to_what_is_used_and_the_rest_is_left(kinds):
    ledger = Ledger(budget=ONE)
    for kind in kinds:
        charge(ledger, kind, Fraction(3, 10))
    now = ledger.status()
    assert float(now.pots.used) != pytest.approx(0.6, abs=0.01)  # noise of both kinds
    assert now.used == now.releases["share"].sum() == 0.6
    assert now.remaining_share == now.largest_share == 0.4
    lines = repr(now).splitlines()
    assert lines[1].startswith("Spent      60% of the budget in shares: epsilon=")
    assert lines[2].startswith("Remaining  40.0% of the budget: ")
    assert "share=0.4 takes all of it" in lines[2]


def test_shares_of_parts_add_up_where_these_asked_for_nothing_else():
    ledger = Ledger(budget=ONE, part="week")
    for kind, week in (("gaussian", 1), ("laplace", 1), ("laplace", 2)):
        loss = loss_of(ledger.of_part(week), kind, Fraction(3, 10))
        ledger.charge(replace(entry(loss, share=Fraction(3, 10)), part=str(week)))
    ledger.charge(replace(entry(pure(0.1)), part="2"))
    used = ledger.status().parts["used"]
    assert used["1"] == ledger.status(part=1).used == 0.6
    assert used["2"] == ledger.status(part=2).used == pytest.approx(0.4)
