"""What sums of signs lose, bounded from below by experiment, and a fault that is caught."""

import numpy as np
import pandas as pd
import pytest
from support.auditing import LEAST_RATIO, lower_bounds
from support.designing import keep_no_plans
from support.plans import noises_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.operations.tables import plan_tables
from dpframe.privacy.amounts import Spend
from dpframe.privacy.laws import BOX, LAPLACE
from dpframe.strategies import characters

pytestmark = pytest.mark.audit

DRAWS = 400_000
EPSILON = 2.0
COLUMNS = ["a", "b", "c"]
ROW = {
    "add_remove": ({"a": 0, "b": 0, "c": 0}, None),
    "replace": ({"a": 0, "b": 0, "c": 0}, {"a": 1, "b": 1, "c": 1}),
}


def released(neighboring, frame, query):
    """What many releases would publish: the noisy sums, which all cells are read off."""
    frame = frame.reset_index(drop=True)
    frame.dp.declare(
        keys={name: [0, 1] for name in COLUMNS}, privacy_unit=dpf.EACH_ROW, neighboring=neighboring
    )
    made = plan_tables(frame, frame.dp.declaration, query, Spend.of(epsilon=EPSILON), "box")
    (exact,) = made.measure(frame, SYSTEM)
    noise = noises_of(made.plan)[0].draw([DRAWS] * len(exact), SYSTEM)
    return np.stack([block + drawn for block, drawn in zip(exact, noise, strict=True)], axis=1)


QUERIES = {"dict": {name: dpf.count(by=name) for name in COLUMNS}, "margins": dpf.margins(COLUMNS)}


def bound(neighboring, query):
    others = pd.DataFrame({"a": [0, 1], "b": [1, 1], "c": [0, 1]})
    own, instead = ROW[neighboring]
    with_own = pd.concat([others, pd.DataFrame([own])])
    without = others if instead is None else pd.concat([others, pd.DataFrame([instead])])
    samples = [released(neighboring, frame, QUERIES[query]) for frame in (with_own, without)]
    return lower_bounds(*(sample.astype(np.float64) for sample in samples), 0.0).epsilon


@pytest.mark.parametrize("neighboring", ROW)
@pytest.mark.parametrize("query", QUERIES)
def test_no_more_is_lost_than_claimed(query, neighboring):
    found = bound(neighboring, query)  # above the loss in one run of 1e6
    assert found <= EPSILON
    assert found >= LEAST_RATIO * EPSILON or neighboring == "replace"


@pytest.mark.parametrize("query", QUERIES)
def test_sums_that_are_taken_to_move_less_are_caught(query, monkeypatch):
    reach = characters._reach
    monkeypatch.setattr(characters, "_reach", lambda *given: [far / 2 for far in reach(*given)])
    keep_no_plans(monkeypatch)
    assert bound("add_remove", query) > EPSILON


def test_noise_that_each_sum_has_to_itself_is_caught(monkeypatch):
    """Laplace noise at the scales of a box: it must cost the sum of all movements."""
    monkeypatch.setattr(
        type(BOX),
        "_draw",
        lambda _, scales, size, *rest: [LAPLACE.draw([s], size, SYSTEM)[0] for s in scales],
    )
    assert bound("add_remove", "margins") > EPSILON
