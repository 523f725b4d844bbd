"""Features of releases, two at a time and three, asked together and tried with the worst units.

Every case is released without noise, and every number that some units move in it is priced by the
formulas of the laws, beside what was charged. Faults between features hid from tests of each.
"""

import random

import pytest
from support.covering import cases_of, combinations_of, cover, wanted_of
from support.feature_runs import ask, refusal_of
from support.features import ARRAYS, FEATURES, RULES, possible

SEED = 1
_CHARGED = 0.999  # of what is charged, by the worst units found
_MOST_OF_ALL = 0.6  # of all cases, in which that much is reached


def check_array(name):
    """Run an array; nothing may cost more than is charged, and no combination be left out."""
    found = cover(*ARRAYS[name], ask, SEED)
    wrong = [(case, tried.ratio, tried.faults) for case, tried in found.cases if tried.is_wrong]
    assert wrong == []
    assert found.left_out == []
    reached = [tried.ratio > _CHARGED for _, tried in found.cases]
    assert sum(reached) > _MOST_OF_ALL * len(reached)


def test_no_pair_of_features_costs_more_than_is_charged():
    check_array("pairs")


@pytest.mark.full
def test_no_triple_with_caps_costs_more_than_is_charged():
    check_array("triples")


@pytest.mark.full
def test_no_row_that_may_be_left_out_in_one_cell_costs_more_than_is_charged():
    check_array("one cell")


@pytest.mark.full
def test_no_staircase_costs_more_than_is_charged():
    check_array("stairs")


@pytest.mark.parametrize("name", ["pairs", pytest.param("triples", marks=pytest.mark.full)])
def test_an_array_covers_all_that_no_rule_forbids(name):
    sets, fixed = ARRAYS[name]
    cases = cases_of(sets, fixed, SEED)
    covered = {one for case in cases for one in combinations_of(case, sets)}
    assert set(wanted_of(sets, fixed)) == covered
    assert all(possible(case) for case in cases)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.is_said], ids=str)
def test_what_a_rule_forbids_is_refused(rule):
    others = [one for one in RULES if one is not rule]
    dice = random.Random(SEED)
    for _ in range(3):
        while True:
            case = {name: dice.choice(own) for name, own in FEATURES.items()}
            case |= {name: dice.choice(own) for name, own in rule.values.items()}
            if not any(one.forbids(case) for one in others):
                break
        assert rule.why in refusal_of(case)
