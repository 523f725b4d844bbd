"""Functions whose frames are declared: what they return, what they are given, and pandera's."""

import inspect
import pickle

import pandas as pd
import pandera.pandas as pa
import pytest
from pandera.typing import DataFrame
from support.raising import raises

import dpframe as dpf
from dpframe.errors import BudgetExceededError, CallError, DeclarationError

FACTS = {"keys": {"zone": ["A", "B"]}, "bounds": {"fare": (0, 30)}}
UNIT = {"privacy_unit": "who", "max_rows": 2}


class Trips(pa.DataFrameModel):
    who: int
    zone: str = pa.Field(isin=["A", "B"])
    fare: float = pa.Field(ge=0, le=30)


def made(rows=3):
    return pd.DataFrame({"who": range(rows), "zone": "A", "fare": 2.5})


@dpf.declares(**FACTS, **UNIT)
def load(rows=3):
    """Load trips."""
    return made(rows)


def test_what_is_given_is_declared_before_the_call():
    @dpf.declares(argument="frame", **FACTS, **UNIT)
    def count(word, frame=None, *, epsilon):
        return word, frame.dp.count("zone", epsilon=epsilon)

    for call in (
        lambda: count("n", made(), epsilon=1),
        lambda: count("n", epsilon=1, frame=made()),
        lambda: count(frame=made(), word="n", epsilon=1),
    ):
        word, released = call()
        assert word == "n" and list(released.index) == ["A", "B"]
    with raises(DeclarationError, "must be a pandas.DataFrame"):
        count("n", epsilon=1)
    with pytest.raises(TypeError, match="epsilon"):
        count("n", made())


def test_all_frames_of_a_function_have_one_budget():
    @dpf.declares(**FACTS, **UNIT, budget=dpf.Budget(epsilon=1))
    def load():
        return made()

    load().dp.count(epsilon=0.75)
    assert load().dp.budget.remaining_epsilon == 0.25
    with pytest.raises(BudgetExceededError):
        load().dp.count(epsilon=0.5)


def test_a_frame_that_has_a_ledger_keeps_it():
    frame = made()
    frame.dp.declare(**FACTS, **UNIT, budget=dpf.Budget(epsilon=1))
    frame.dp.count(epsilon=0.75)
    for budget in (None, dpf.Budget(epsilon=1)):
        dpf.declares(**FACTS, **UNIT, budget=budget)(lambda: frame)()
        assert frame.dp.budget.remaining_epsilon == 0.25
    with raises(DeclarationError, "has a ledger of", parameter="budget"):
        dpf.declares(**FACTS, **UNIT, budget=dpf.Budget(epsilon=9))(lambda: frame)()


def test_a_ledger_is_shared():
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1))
    first = dpf.declares(**FACTS, **UNIT, ledger=ledger)(made)
    second = dpf.declares(**FACTS, **UNIT, ledger=ledger, argument="frame")(lambda frame: frame)
    first().dp.count(epsilon=0.75)
    assert second(made()).dp.budget.remaining_epsilon == 0.25
    both = dpf.declares(**UNIT, ledger=ledger, budget=dpf.Budget(epsilon=1))(made)
    with raises(DeclarationError, "a budget of its own", parameter="budget"):
        both()


def test_a_function_stays_what_it_was():
    assert load.__name__ == "load" and load.__doc__ == "Load trips."
    assert list(inspect.signature(load).parameters) == ["rows"]
    assert pickle.loads(pickle.dumps(load)) is load  # noqa: S301


def test_it_takes_what_declare_takes():
    function, decorator = (inspect.signature(one).parameters for one in (dpf.declare, dpf.declares))
    assert {*decorator} - {"argument"} == {*function} - {"frame"}
    same = {name: decorator[name].default for name in decorator if name != "argument"}
    assert same == {name: one.default for name, one in function.items() if name != "frame"}


def test_mistakes_are_named():
    with raises(
        DeclarationError, "a parameter of made(), which has rows, got", parameter="argument"
    ):
        dpf.declares(argument="frame", **UNIT)(made)
    with raises(CallError, "did you mean 'budget'"):
        dpf.declares(budgets=1)
    released = load().dp.count("zone", epsilon=1)
    with pytest.raises(DeclarationError, match="was released by dpframe"):
        dpf.declares(**UNIT)(lambda: released)()


def test_what_pandera_makes_is_declared_last():
    @dpf.declares(Trips, **UNIT)
    @pa.check_types
    def load() -> DataFrame[Trips]:
        frame = made()
        frame.dp.declare(Trips, **UNIT)
        return frame

    assert len(load().dp.mean("fare", "zone", epsilon=1)) == 2


def test_what_pandera_checks_is_declared_next_to_where_it_is_used():
    @pa.check_types
    @dpf.declares(Trips, argument="trips", **UNIT)
    def publish(trips: DataFrame[Trips]) -> pd.DataFrame:
        return trips.dp.count("zone", epsilon=1)

    assert list(publish(made()).index) == ["A", "B"]
    declared = made()
    declared.dp.declare(Trips, **UNIT)
    assert list(publish(declared).index) == ["A", "B"]
    with pytest.raises(pa.errors.SchemaError):
        publish(made().assign(zone="Z"))
