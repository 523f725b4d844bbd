"""Records and replays: what was measured, what a neighbor moves, and what was charged for it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support.plans import noises_of

import dpframe as dpf
import dpframe.testing as dpt
from dpframe import Ledger
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.testing.recorder import NEVER, Draw

RNG = np.random.default_rng(5)
TRIPS = pd.DataFrame(
    {
        "zone": RNG.choice(["A", "B", "C"], 60),
        "rider": RNG.integers(0, 20, 60),
        "fare": RNG.integers(0, 30, 60).astype(float),
    }
)
FACTS = {
    "keys": {"zone": ["A", "B"]},
    "bounds": {"fare": (0, 20)},
    "privacy_unit": "rider",
    "max_rows": 2,
}


def declared(frame, **changed):
    frame = frame.copy()
    frame.dp.declare(**(FACTS | {"budget": dpf.Budget(epsilon=9, delta=1e-4)} | changed))
    return frame


def without(unit):
    return TRIPS[TRIPS["rider"] != unit]


ASKED = {
    "laplace": lambda frame: frame.dp.count("zone", epsilon=0.5),
    "gaussian": lambda frame: frame.dp.sum("fare", by="zone", epsilon=0.5, mechanism="gaussian"),
    "box": lambda frame: frame.dp.aggregate(
        "zone", n=dpf.count(), fares=dpf.sum("fare"), epsilon=1, mechanism="box"
    ),
    "margins": lambda frame: dpf.release(frame, dpf.margins(["zone"], ways=1), epsilon=1),
    "tree": lambda frame: frame.dp.ranges("fare", epsilon=1),
    "select": lambda frame: frame.dp.quantile("fare", [0.25, 0.5], mechanism="select", epsilon=1),
    "sizes": lambda frame: frame.dp.suggest_caps(epsilon=0.5),
}


@pytest.mark.parametrize("name", ASKED)
def test_neighbors_get_the_same_noisy_numbers_and_cost_what_is_charged_at_most(name):
    ask = ASKED[name]
    with dpt.record() as run:
        first = ask(declared(TRIPS))
    costs = []
    for unit in range(6):
        with run.replay() as again:
            second = ask(declared(without(unit)))
        if isinstance(first, dict):
            assert all(first[key].equals(second[key]) for key in first)
            assert all(first[key].attrs == second[key].attrs for key in first)
        else:
            assert first.equals(second) and first.attrs == second.attrs
        ((one,), (other,)) = run.measured, again.measured
        assert one.claimed == one.charged and one.allowed > 0
        assert one.cost(one) == 0 and not one.differs_from(one)
        costs.append(one.cost(other) / one.allowed)
        assert (costs[-1] > 0) == one.differs_from(other)
    assert 0 < max(costs) <= 1


def test_discovered_labels_are_handed_out_in_another_order():
    frame = pd.DataFrame({"zone": list("ABCDEFGH") * 30, "rider": range(240)})
    facts = {"privacy_unit": "rider", "max_rows": 1}
    budget = dpf.Budget(epsilon=9, delta=1e-4, discovery=5e-5)
    orders = []

    def ask(frame):
        frame = frame.copy()
        frame.dp.declare(**facts, budget=budget)
        return frame.dp.discover("zone", epsilon=4, max_groups=1)

    with dpt.record() as run:
        first = ask(frame)
    with run.replay() as again:
        draw = again.draw
        again.draw = lambda *args: orders.append(draw(*args)) or orders[-1]
        assert ask(frame[1:]).equals(first)
    assert list(orders[0].labels[0]) != list(first.index)
    one, other = run.measured[0], again.measured[0]
    assert (one.integers["A",], other.integers["A",]) == (30, 29)
    assert one.cost(other) == Fraction(1) / Fraction(one.scales[0])


def test_a_label_of_many_units_in_one_frame_alone_is_not_hidden():
    frame = pd.DataFrame({"zone": ["A"] * 50 + ["B"] * 5, "rider": range(55)})

    def ask(frame):
        frame = frame.copy()
        budget = dpf.Budget(epsilon=9, delta=1e-4, discovery=5e-5)
        frame.dp.declare(privacy_unit="rider", max_rows=1, budget=budget)
        return frame.dp.discover("zone", epsilon=4, max_groups=1)

    with dpt.record() as run:
        ask(frame)
    with pytest.raises(dpt.PrivacyTestError, match="more than any noise hides"), run.replay():
        ask(frame[:50])


def test_more_than_one_unit_moves_more_than_is_charged():
    with dpt.record() as run:
        ASKED["laplace"](declared(TRIPS))
    with pytest.raises(dpt.PrivacyTestError, match="moves by epsilon") as caught, run.replay():
        ASKED["laplace"](declared(TRIPS[:20]))
    assert (caught.value.rule, caught.value.draw) == ("charge", 0)


def test_another_number_of_releases_is_an_error():
    def twice(frame):
        return [ASKED["laplace"](frame), ASKED["laplace"](frame)]

    with dpt.record() as run:
        twice(declared(TRIPS))
    with pytest.raises(dpt.PrivacyTestError, match="2 releases were recorded, and 1 were made"):
        with run.replay():
            ASKED["laplace"](declared(TRIPS))
    with pytest.raises(dpt.PrivacyTestError, match="one more release"), run.replay():
        [*twice(declared(TRIPS)), ASKED["laplace"](declared(TRIPS))]


@pytest.mark.parametrize(
    "changed", [{"max_rows": 3}, {"bounds": {"fare": (0, 21)}}, {"keys": {"zone": ["A", "C", "B"]}}]
)
def test_other_public_facts_are_an_error(changed):
    with dpt.record() as run:
        ASKED["gaussian"](declared(TRIPS))
    with pytest.raises(dpt.PrivacyTestError, match="differ") as caught, run.replay():
        ASKED["gaussian"](declared(TRIPS, **changed))
    assert caught.value.rule == "invariance"


def test_a_charge_that_is_too_small_or_missing_is_an_error(monkeypatch):
    charge = Ledger.charge
    halved = lambda self, entry: charge(  # noqa: E731
        self, replace(entry, loss=PrivacyLoss(epsilon=entry.loss.epsilon / 2))
    )
    monkeypatch.setattr(Ledger, "charge", halved)
    with pytest.raises(dpt.PrivacyTestError, match="less epsilon was charged"), dpt.record():
        ASKED["laplace"](declared(TRIPS))
    monkeypatch.setattr(Ledger, "charge", lambda self, entry: None)
    with pytest.raises(dpt.PrivacyTestError, match="charged 0 times"), dpt.record():
        ASKED["laplace"](declared(TRIPS))


def test_a_scale_without_noise_hides_nothing():
    with dpt.record() as run:
        ASKED["laplace"](declared(TRIPS))
    (draw,) = run.measured
    moved = replace(draw, _exact=[[block + 1 for block in draw._exact[0]]])
    assert draw.cost(moved) == len(draw.integers[0]) / Fraction(draw.scales[0])
    (noise,) = noises_of(draw._operation.plan)
    quiet = replace(noise, scales=(0.0,))
    costs = [quiet.cost(draw._exact[0], one._exact[0]) for one in (draw, moved)]
    assert costs[0] == 0 and costs[1] >= NEVER


def test_rows_that_are_kept_of_a_unit_are_its_own():
    def measured(frame):
        with dpt.record() as run:
            ASKED["box"](declared(frame, max_rows=1))
        return run.measured[0]

    whole, nothing = measured(TRIPS), measured(TRIPS[:0])
    for unit in range(5):
        alone = measured(TRIPS[TRIPS["rider"] == unit])
        terms = [(1, whole), (-1, measured(without(unit))), (-1, alone), (1, nothing)]
        assert Draw.excess(terms) == []
        assert Draw.excess(terms[:2]) or not whole.differs_from(terms[1][1])


def test_seeds_give_the_same_numbers_and_other_seeds_others():
    def drawn(seed):
        with dpt.seeded_noise(seed):
            return [ask(declared(TRIPS)) for ask in ASKED.values()]

    def same(one, other):
        pairs = zip(one, other, strict=True)
        return [a.equals(b) for a, b in pairs if not isinstance(a, dict)]

    first = drawn(7)
    assert all(same(first, drawn(7)))
    assert not all(same(first, drawn(8)))
    with pytest.raises(dpf.errors.DPFrameError, match="seed must be a whole number"):
        dpt.seeded_noise(1.5)


def test_noise_in_a_record_is_real():
    found = []
    for _ in range(4):
        with dpt.record():
            found.append(tuple(ASKED["gaussian"](declared(TRIPS)).iloc[:, 0]))
    assert len(set(found)) > 1  # equal by chance: less than once in 1e6 runs
