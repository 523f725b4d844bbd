"""A ledger is tried in memory: what is spent there is not spent in the file."""

from fractions import Fraction
from functools import partial

import pandas as pd
import pytest
from support.charging import entry, pure
from support.interrupting import Traced, places

import dpframe as dpf
from dpframe.errors import AlreadyReleasedError, BudgetExceededError
from dpframe.ledger.ledger import copy_in_memory

FILES = ("/dpframe/ledger/log.py",)
TINY = pure(Fraction(1, 10**6))


@pytest.fixture
def ledger(tmp_path):
    made = dpf.Ledger.create(tmp_path / "trips.ledger", budget=dpf.Budget(1))
    trips(made).dp.count(epsilon=0.75, name="march")
    return made


def trips(ledger):
    frame = pd.DataFrame({"x": [1, 2]})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=ledger)
    return frame


def test_what_is_tried_is_judged_as_the_ledger_would(ledger):
    frame = trips(copy_in_memory(ledger))
    with pytest.raises(BudgetExceededError):
        frame.dp.count(epsilon=0.5)
    with pytest.raises(AlreadyReleasedError):
        frame.dp.count(epsilon=0.1, name="march")
    frame.dp.count(epsilon=0.25)
    assert frame.dp.budget.remaining_epsilon == 0


def test_what_is_tried_does_not_reach_the_file(ledger):
    before = ledger.path.read_bytes()
    trips(copy_in_memory(ledger)).dp.count(epsilon=0.25, name="april")
    assert ledger.path.read_bytes() == before
    assert ledger.status().remaining_epsilon == 0.25
    assert dpf.Ledger(ledger.path).head == ledger.head


def test_whom_a_trial_protects_is_not_settled(tmp_path):
    ledger = dpf.Ledger.create(tmp_path / "new.ledger", budget=dpf.Budget(1))
    tried = copy_in_memory(ledger)
    trips(tried)
    assert tried.protected is not None
    assert dpf.Ledger(ledger.path).protected is None


def test_a_trial_at_any_step_of_a_charge_leaves_the_ledger_as_it_is(ledger):
    charge = partial(ledger.charge, entry(TINY))
    steps = [place for place in places(charge, FILES) if place[2] == 0]
    for step in steps:
        tried = copy_in_memory(ledger)
        Traced(FILES, step, lambda tried=tried: tried.charge(entry(TINY))).run(
            partial(ledger.charge, entry(TINY))
        )
    assert len(ledger.entries) == len(steps) + 2 > 50
    assert dpf.Ledger(ledger.path).status() == ledger.status()
