"""What a real pair of neighbors costs is never above a charge, nor above what its check found.

Cases of features and units are drawn anew; half of the units are chosen for their case, half are
any. What pairs of them cost is added up by the formulas of the laws, measurement by measurement.
Nothing is estimated, so that there are no false alarms.
"""

import random

import pytest
from support.feature_runs import SLACK, NoNoise, are_bounded, pairs_of, refusal_of
from support.feature_tables import declared, options_of, request_of
from support.feature_units import adversaries, frame_of, random_unit
from support.features import random_case
from support.law_costs import charged_of, costs_of
from support.randomness import SYSTEM

import dpframe as dpf

pytestmark = pytest.mark.audit
SHARDS, PAIRS = 20, 5000  # 100,000 pairs in all
_UNITS = 8  # of either sort, of one plan


def asked(dice):
    """A case that can be asked, in pandas."""
    while True:
        case = random_case(dice) | {"engine": "pandas"}
        if not refusal_of(case):
            return case


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.filterwarnings("ignore")
def test_no_pair_of_neighbors_costs_more_than_the_check_found(shard):
    dice, tried, plans = random.Random(shard), 0, 0
    while tried < PAIRS:
        case = asked(dice)
        chosen = adversaries(case)
        units = dice.sample(chosen, min(_UNITS, len(chosen)))
        units += [random_unit(case, dice) for _ in range(_UNITS)]
        with NoNoise() as block:
            dpf.release(declared(case, frame_of([])), request_of(case), **options_of(case))
        operation = block.operation
        measured = [operation.measure(frame_of(unit), SYSTEM) for unit in ([], *units)]
        pairs = pairs_of(case, len(measured))
        costs = costs_of(operation.plan, measured, pairs)
        assert sum(costs).max() <= charged_of(operation.plan.loss) * (1 + SLACK), case
        assert are_bounded(costs, operation.witness()), case
        tried, plans = tried + len(pairs[0]), plans + 1
    print(f"{tried} pairs of {plans} plans")
