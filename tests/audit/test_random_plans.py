"""The check of a charge on random plans: it refuses none, and no neighbor costs more than it says.

Plans and neighbors are drawn anew from a seed; nothing is estimated, so that there are no false
alarms. Where a measurement says that units were sampled, because squares or products are added up
or columns compared, a neighbor may cost a hundredth more: no proof is claimed there. A charge of a
thousandth less than what a unit loses is refused.
"""

from dataclasses import replace
from fractions import Fraction

import pytest
from support.plans import noises_of
from support.random_plans import neighbors_of, random_plan, seeded

from dpframe.checker.check import check_charge
from dpframe.errors import PlanCheckError
from dpframe.operations.tables import PlannedTables
from dpframe.privacy.amounts import PrivacyLoss

pytestmark = pytest.mark.audit
SHARDS, PLANS = 20, 500
NEAR, SAMPLED = 1 + Fraction(1, 2**30), 1 + Fraction(1, 100)


def plans(seed):
    dice = seeded(seed)
    made = 0
    while made < PLANS:
        plan = random_plan(dice)
        if plan is not None:
            made += 1
            yield dice, *plan


@pytest.mark.parametrize("seed", range(SHARDS))
def test_no_valid_plan_is_refused_and_no_neighbor_costs_more(seed):
    least = []
    for number, (dice, frame, operation) in enumerate(plans(seed)):
        witness = check_charge(operation, operation.loss)
        lost, paid = (sum(loss.parts[:2]) for loss in (witness.loss, operation.loss))
        # moments under replacement have a bound that no row may reach
        least.append(not paid or lost / paid > 1 / 3)
        if number % 5 == 0 and isinstance(operation, PlannedTables):
            _check_neighbors(dice, frame, operation, witness)
    assert all(least)


def _check_neighbors(dice, frame, operation, witness):
    for one, other in neighbors_of(frame, operation, dice):
        measured = zip(noises_of(operation.plan), witness.found, one, other, strict=True)
        for noise, found, first, second in measured:
            near = SAMPLED if found.sampled else NEAR
            assert noise.cost(first, second) <= found.cost * near, operation.words


def test_charges_of_too_little_are_refused():
    refused = 0
    for _, _, operation in plans(SHARDS):
        loss = operation.loss
        witness = check_charge(operation, loss)
        own = [amount * Fraction(999, 1000) for amount in witness.loss.parts]
        less = replace(PrivacyLoss(*own), delta=loss.delta)
        if any(own[:2]):
            with pytest.raises(PlanCheckError):
                check_charge(operation, less)
            refused += 1
    assert refused > PLANS // 2
