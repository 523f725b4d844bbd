"""What the best adaptive adversary makes of a ledger: a dynamic program over its real decisions."""

from fractions import Fraction

import pytest
from support.adversary import (
    BUDGETS,
    AfterASmallOne,
    AfterTheFirst,
    AnySplit,
    DeltaOnTheFly,
    FreeLooks,
    FullDelta,
    GaussianAlone,
    MoreForMany,
    Reviving,
    Settled,
    even_steps,
    looking_steps,
    mixed_steps,
    whole,
    worst_delta,
)

from dpframe.privacy.amounts import Budget, exact

ALL = pytest.mark.parametrize("budget", BUDGETS, ids=str)
GRID = 3e-3  # bias of the grid, always upwards: a part 4/5 of delta is found as 0.801 or 0.802
PARTS = 4 / 5
EVALUATION = 1e-9  # of delta: floats add up terms near 1e-16


@pytest.fixture(params=[Budget(1, 1e-6)])
def budget(request):
    return request.param


def check_that_the_grid_finds_what_is_known(budget, steps, fine):
    found = worst_delta(GaussianAlone(budget), even_steps(budget, steps), fine=fine)
    assert PARTS <= found <= PARTS * (1 + GRID)


def check_that_nobody_reaches_delta(budget, steps, fine=24):
    assert worst_delta(AfterTheFirst(budget), even_steps(budget, steps), fine=fine) < 0.9
    assert worst_delta(Settled(budget), even_steps(budget, steps), fine=fine) <= 1 + EVALUATION


def check_that_a_small_first_charge_does_not_help(budget, *steps):
    assert worst_delta(AfterASmallOne(budget), *steps) < 0.75
    assert worst_delta(MoreForMany(budget), *steps) > 1 + GRID


def check_that_broken_rules_are_caught(budget, steps):
    assert worst_delta(AnySplit(budget), even_steps(budget, steps)) > 4
    assert worst_delta(DeltaOnTheFly(budget), even_steps(budget, steps)) > 1.9
    assert worst_delta(Reviving(budget), even_steps(budget, steps)) > 1000
    assert worst_delta(FullDelta(budget), even_steps(budget, steps)) > 2


def test_an_adaptive_adversary_in_short(budget):
    check_that_the_grid_finds_what_is_known(budget, 20, fine=24)
    check_that_nobody_reaches_delta(budget, 20)
    check_that_a_small_first_charge_does_not_help(budget, even_steps(budget, 20))
    check_that_broken_rules_are_caught(budget, 20)


@pytest.mark.audit
@ALL
def test_steps_of_one_size(budget):
    check_that_the_grid_finds_what_is_known(budget, 40, fine=24)
    check_that_nobody_reaches_delta(budget, 40)
    check_that_broken_rules_are_caught(budget, 40)


@pytest.mark.audit
@ALL
def test_steps_of_both_kinds_and_several_sizes(budget):
    assert worst_delta(AfterTheFirst(budget), *mixed_steps(budget)) < 0.9
    assert worst_delta(Settled(budget), *mixed_steps(budget)) <= 1 + EVALUATION
    check_that_a_small_first_charge_does_not_help(budget, *mixed_steps(budget))


@pytest.mark.parametrize("budget", [BUDGETS[0], BUDGETS[-1]], ids=str)
def test_looks_before_other_steps(budget):
    assert worst_delta(AfterTheFirst(budget), *looking_steps(budget)) < 0.9
    assert worst_delta(FreeLooks(budget), *looking_steps(budget)) > 1.5


@pytest.mark.audit
@pytest.mark.parametrize("budget", [BUDGETS[0], BUDGETS[-1]], ids=str)
def test_very_many_steps(budget):
    assert worst_delta(AfterTheFirst(budget), even_steps(budget, 120), fine=8) < 0.95


@pytest.mark.audit
@pytest.mark.parametrize("small, large", [(4, 2), (7, 2), (11, 3), (5, 3)])
@pytest.mark.parametrize("unit", [5, 9, 14])
def test_steps_of_other_sizes(small, large, unit):
    for budget in (Budget(0.2, 1e-3), Budget(2, 1e-8), Budget(4, 1e-5)):
        square, pure = whole(budget), exact(budget.epsilon) / unit
        steps = [square / small, square / large], [pure, pure * Fraction(large)]
        assert worst_delta(AfterTheFirst(budget), *steps) < 0.9


@pytest.mark.audit
def test_what_is_kept_for_discovery_is_not_reached_by_noise():
    budget = Budget(1, 1e-6, discovery=4e-7)
    reached = worst_delta(AfterTheFirst(budget), even_steps(budget, 40))
    # an extra delta of 4e-7 may come on top of less than nine tenths of the rest
    assert reached < 0.4 + 0.9 * 0.6
