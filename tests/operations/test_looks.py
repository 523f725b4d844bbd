"""First looks: noise that spares what follows, and what a preview says is left."""

import pandas as pd
import pytest

import dpframe as dpf
from dpframe.privacy.pots import Pots

COLUMNS = [f"q{k}" for k in range(30)]
LOOKS = {
    "suggest_caps": dpf.suggest_caps("zone"),
    "suggest_bounds": dpf.suggest_bounds("fare", query="sum", largest=8),
    "units": dpf.units(),
    "discover": dpf.discover("place", max_groups=1),
}
PURE = list(LOOKS)[:3]
LATER = {
    "total": dpf.count(max_rows=1),
    "groups": dpf.count("zone", max_groups=40, max_rows_per_group=1),
    "thirty": dpf.sum(COLUMNS, max_rows=1),
}


def rides(epsilon=1, delta=1e-6, **facts):
    frame = pd.DataFrame({"who": [1], "zone": [0], "place": ["a"], "fare": 1.0})
    frame[COLUMNS] = 1.0
    frame.dp.declare(
        budget=dpf.Budget(epsilon, delta, discovery=delta / 10),
        privacy_unit="who",
        keys={"zone": range(100)},
        bounds={"fare": (0, 1), **dict.fromkeys(COLUMNS, (0, 1))},
        **{"max_rows": 40, **facts},
    )
    return frame


def errors(frame, share):
    return {
        name: frame.dp.plan(query, share=share).table["std_error"].max()
        for name, query in LATER.items()
    }


@pytest.mark.parametrize(("epsilon", "share"), [(1, 0.05), (1, 0.1), (8, 0.1)])
@pytest.mark.parametrize("look", PURE)
def test_a_look_does_not_spoil_what_follows(look, epsilon, share):
    before = errors(rides(epsilon), 0.45)
    looked = rides(epsilon)
    looked.dp.release(LOOKS[look], share=share)
    after = errors(looked, 0.45)
    assert all(after[name] <= 1.08 * before[name] for name in LATER)


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_after_labels_were_found_pure_noise_is_little_larger(share):
    before, looked = errors(rides(), 1 - share), rides()
    looked.dp.release(LOOKS["discover"], share=share)
    assert looked.dp.ledger.entries[0].mechanism == "gaussian"
    after = errors(looked, 1 - share)
    assert all(after[name] <= 1.3 * before[name] for name in LATER)


def mechanism_of(frame, query, **spend):
    return frame.dp.plan(query, **spend).table["mechanism"].iloc[0]


def test_looks_are_small_shares_of_auto_before_gaussian_noise():
    frame, count = rides(), dpf.units()
    assert mechanism_of(frame, count, share=0.1) == "laplace"
    assert mechanism_of(frame, count, share=0.1, mechanism="gaussian") == "gaussian"
    assert mechanism_of(frame, {"one": count}, share=0.1) == "gaussian"
    assert mechanism_of(frame, dpf.units("zone", max_groups=1), share=0.1) == "gaussian"
    whole = frame.dp.plan(count, share=0.13, mechanism="laplace").table["epsilon"].item()
    assert whole == 0.13
    assert frame.dp.plan(count, share=0.1).table["epsilon"].item() < 0.1
    frame.dp.count(share=0.01, mechanism="gaussian")
    assert mechanism_of(frame, count, share=0.1) == "gaussian"


def test_pure_noise_that_more_than_doubles_the_error_is_not_taken():
    frame = rides(max_rows=None, max_groups=40, max_rows_per_group=1)
    frame.dp.release(LOOKS["suggest_bounds"], share=0.1)  # a unit may be in 40 bins
    assert frame.dp.ledger.entries[0].mechanism == "correlated"
    share = rides().dp.ledger.glance().share(0.1)
    assert 0 < frame.dp.ledger.entries[0].loss.mu_squared < share.mu_squared


@pytest.mark.parametrize("query", [*LOOKS.values(), LATER["groups"], {"a": dpf.count()}])
@pytest.mark.parametrize("spend", [{"share": 0.1}, {"epsilon": 0.2}])
def test_a_preview_says_what_is_left_of_both_kinds_afterwards(query, spend):
    frame = rides()
    shown = frame.dp.plan(query, **spend).table
    frame.dp.release(query, **spend)
    assert shown["remaining_epsilon"].iloc[0] == frame.dp.budget.remaining_epsilon
    assert shown["remaining_mu"].iloc[0] == frame.dp.budget.remaining_mu


def test_a_look_that_costs_more_than_its_share_is_refused(monkeypatch):
    frame, sized = rides(), Pots.for_look
    # the fault that is planted: twice of what a share is
    monkeypatch.setattr(
        Pots, "for_look", lambda pots, part: pots.for_shares._replace(epsilon=2 * part)
    )
    with pytest.raises(dpf.errors.BudgetExceededError, match="became less"):
        frame.dp.units(share=0.1)
    assert not frame.dp.ledger.entries
    monkeypatch.setattr(Pots, "for_look", sized)
    frame.dp.units(share=0.1)
    assert len(frame.dp.ledger.entries) == 1
