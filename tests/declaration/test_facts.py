"""What can be declared about a frame, what is refused, and where a declaration is found again."""

import copy
import io
import math
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe import declare
from dpframe.declaration.kinds import check_bounds, check_keys, check_missing
from dpframe.errors import (
    CalibrationError,
    DeclarationError,
    LedgerError,
    QueryError,
    UnknownColumnError,
)
from dpframe.privacy.neighbors import Caps

BUDGET = dpf.Budget(epsilon=1, delta=1e-6)


@pytest.fixture
def trips() -> pd.DataFrame:
    return pd.DataFrame(
        {"zone": ["A", "B", "A", "secret"], "fare": [1.5, 2.5, math.nan, 9e99], "who": [1, 1, 2, 3]}
    )


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ((1, 0), "lower <= upper"),
        ((0, math.inf), "must be finite"),
        ((-math.inf, 0), "must be finite"),
        ((0, math.nan), "must be finite"),
        ((0, np.float32("nan")), "must be finite"),
        ((0, pd.NaT), "two finite numbers"),
        ((0, pd.NA), "two finite numbers"),
        ((0, None), "two finite numbers"),
        ((0, "100"), "two finite numbers"),
        ((0, 10**150), "must be at most 1e+100"),
        ((False, True), "two finite numbers"),
        ((np.False_, np.True_), "two finite numbers"),
        ((0, 1j), "two finite numbers"),
        ((0, np.timedelta64(1, "s")), "two finite numbers"),
        ((pd.Timestamp(0), 1), "two finite numbers"),
        ((0,), "two finite numbers"),
        ((0, 1, 2), "two finite numbers"),
        (5, "two finite numbers"),
        (None, "two finite numbers"),
        ("01", "two finite numbers"),
        ([(0, 1), (0, 2)], "two finite numbers"),
        (pd.Interval(0, 1), "two finite numbers"),
        ({0, 100}, "must have an order"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(value, rule):
    with raises(DeclarationError, "fare", parameter="bounds", label="fare") as caught:
        check_bounds("fare", value)
    assert rule in str(caught.value)
    assert repr(value) in str(caught.value)


def test_a_missing_value_is_replaced_by_a_finite_number():
    replacements = (0, 0.5, np.int8(3), True, np.False_)
    assert [check_missing("x", value) for value in replacements] == [0, 0.5, 3, 1, 0]
    for value in (math.nan, math.inf, None, "0", pd.NA, [0], 10**400, 1j):
        with raises(DeclarationError, "finite", parameter="missing"):
            check_missing("x", value)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("AB", "must be a list of groups"),
        (b"AB", "must be a list of groups"),
        (5, "must be a list of groups"),
        (None, "must be a list of groups"),
        ({"A", "B"}, "must have an order"),
        (frozenset("AB"), "must have an order"),
        (pd.DataFrame({"zone": ["A"]}), "must be one list of groups"),
        (pd.MultiIndex.from_product([["A"], ["B"]]), "must be one list of groups"),
        ([], "must name at least one group"),
        (["A", None], "must not be missing"),
        ([1.0, math.nan], "must not be missing"),
        ([pd.NaT], "must not be missing"),
        (pd.array([1, None], dtype="Int64"), "must not be missing"),
        (pd.Categorical(["A", None]), "must not be missing"),
        (["A", "B", "A"], "must be unique"),
        ([1, True], "must be unique"),
        ([0, 0.0], "must be unique"),
        ([[1], [2]], "must be hashable"),
        (np.zeros((2, 2)), "must be hashable"),
        ([(1, [2])], "must be hashable"),
        ([Decimal("sNaN")], "must be hashable"),
        (["\ud800"], "must be valid Unicode"),
    ],
)
def test_keys_that_name_no_groups_are_refused(value, rule):
    with pytest.raises(DeclarationError, match=r"^keys of 'zone' " + rule):
        check_keys("zone", value)


@pytest.mark.parametrize("name", ["bounds", "keys", "missing"])
@pytest.mark.parametrize("value", [(0, 100), ["A"], "fare", 5])
def test_facts_are_given_by_column(trips, name, value):
    with pytest.raises(DeclarationError, match=rf"^{name} must be a dict from column"):
        declare(trips, **{name: value})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bounds": {"fares": (0, 1)}}, UnknownColumnError, "no column 'fares'. Did you mean"),
        ({"keys": {"zones": ["A"]}}, UnknownColumnError, "no column 'zones'. Did you mean 'zone'"),
        ({"missing": {7: 0}}, UnknownColumnError, "no column 7. It has"),
        ({"privacy_unit": "whom", "max_rows": 1}, UnknownColumnError, "Did you mean 'who'"),
        ({"privacy_unit": [], "max_rows": 1}, DeclarationError, "or a list of labels, got"),
        ({"privacy_unit": [["who"]], "max_rows": 1}, DeclarationError, "privacy_unit must be the"),
        ({"privacy_unit": {"who"}, "max_rows": 1}, DeclarationError, "privacy_unit must be the"),
        ({"privacy_unit": ("who", "zone"), "max_rows": 1}, UnknownColumnError, "['who', 'zone']"),
        ({"privacy_unit": ["who", "who"], "max_rows": 1}, DeclarationError, "not name a column"),
        ({"privacy_unit": ["who", "day"], "max_rows": 1}, UnknownColumnError, "no column 'day'"),
        ({"privacy_unit": ["who", "zone"]}, DeclarationError, "privacy_unit=['who', 'zone']"),
        ({"privacy_unit": "who"}, DeclarationError, "on its rows, got privacy_unit='who'"),
        ({"privacy_unit": "who", "max_groups": 2}, DeclarationError, "needs a cap on its"),
        ({"max_rows": 2}, DeclarationError, "none is declared: name its column with privacy_unit="),
        ({"max_groups": 2}, DeclarationError, "name its column with privacy_unit="),
        ({"max_rows_per_group": 2}, DeclarationError, "name its column with privacy_unit="),
        ({"privacy_unit": "who", "max_rows": 0}, DeclarationError, "max_rows=0"),
        (
            {"privacy_unit": "who", "max_rows": 2, "max_groups": 10**5000},
            DeclarationError,
            "max_groups=an int",
        ),
        ({"missing": {10**5000: 0}}, UnknownColumnError, "no column an int. It has"),
        ({"neighboring": "swap"}, DeclarationError, "neighboring='swap'"),
        ({"budget": (1, 1e-6)}, DeclarationError, "budget must be a dpf.Budget, got tuple"),
        ({"budget": 1.0}, DeclarationError, "budget must be a dpf.Budget, got float"),
        ({"ledger": BUDGET}, DeclarationError, "got a Budget. Give it as budget=."),
        ({"ledger": Path("x.ledger")}, LedgerError, "there is no ledger at "),
        ({"budget": BUDGET, "ledger": dpf.Ledger(budget=BUDGET)}, DeclarationError, "leave budget"),
        ({"validate": True}, DeclarationError, "validate=True needs a schema"),
        ({"schema": {"fare": (0, 1)}}, DeclarationError, "schema must be a pandera DataFrameModel"),
    ],
)  # fmt: skip
def test_declarations_that_do_not_hold_are_refused(trips, arguments, error, message):
    with pytest.raises(error) as caught:
        declare(trips, **arguments)
    assert message in str(caught.value)
    assert trips.dp.declaration.ledger is None
    assert not trips.attrs


def test_only_frames_can_be_declared():
    for thing in (None, [1], pd.Series([1]), {"a": [1]}):
        with raises(DeclarationError, "pandas.DataFrame", parameter="frame"):
            declare(thing)


def test_a_column_that_is_there_twice_cannot_be_declared():
    frame = pd.DataFrame([[1, 2]], columns=["x", "x"])
    with raises(QueryError, "columns", label="x"):
        declare(frame, bounds={"x": (0, 1)})


def test_what_was_declared_is_found_again(trips):
    ledger = dpf.Ledger(budget=BUDGET)
    returned = trips.dp.declare(
        bounds={"fare": (0, 100)},
        keys={"zone": ["B", "A"]},
        privacy_unit="who",
        max_rows=np.int64(3),
        max_groups=2,
        max_rows_per_group=1,
        neighboring="replace",
        missing={"fare": 5},
        ledger=ledger,
    )
    assert isinstance(returned, dpf.DPAccessor)
    found = trips.dp.declaration
    assert (found.privacy_unit, found.caps) == (("who",), Caps(3, 2, 1))
    assert (found.neighboring, found.ledger) == ("replace", ledger)
    assert found.column("fare").bounds == (0, 100)
    assert list(found.column("zone").keys) == ["B", "A"]


def test_each_budget_starts_a_ledger_and_one_ledger_serves_several_frames(trips):
    other = trips.copy()
    trips.dp.declare(budget=BUDGET)
    assert trips.dp.ledger.budget == BUDGET
    other.dp.declare(ledger=trips.dp.ledger)
    assert other.dp.ledger is trips.dp.ledger
    with raises(DeclarationError, "no budget is declared for this frame"):
        _ = pd.DataFrame().dp.ledger


def test_a_declaration_survives_edits_in_place(trips):
    trips.dp.declare(bounds={"fare": (0, 100)}, budget=BUDGET)
    before = trips.dp.declaration
    trips["tip"] = trips["fare"] / 10
    trips.loc[0, "fare"] = 3.0
    trips.insert(0, "one", 1)
    del trips["one"]
    trips.pop("tip")
    trips.columns = ["borough", "fare", "rider"]
    trips.index = [4, 3, 2, 1]
    trips.loc[5] = ["A", 2.0, 4]
    trips.attrs["source"] = "survey"
    assert trips.dp.declaration is before


DERIVATIONS = {
    "filter": lambda frame: frame[frame["fare"] > 1],
    "query": lambda frame: frame.query("fare > 1"),
    "head": lambda frame: frame.head(2),
    "copy": lambda frame: frame.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "column list": lambda frame: frame[["fare"]],
    "assign": lambda frame: frame.assign(tip=1),
    "reset_index": lambda frame: frame.reset_index(),
    "concat with itself": lambda frame: pd.concat([frame, frame]),
    "group": lambda frame: frame.groupby("who").sum(numeric_only=True),
    "pickle": lambda frame: pickle.loads(pickle.dumps(frame)),  # noqa: S301
}


@pytest.mark.parametrize("how", DERIVATIONS)
def test_derived_frames_must_be_declared_anew(trips, how):
    trips.dp.declare(bounds={"fare": (0, 100)}, budget=BUDGET)
    derived = DERIVATIONS[how](trips)
    with raises(DeclarationError, "derived from a declared frame") as caught:
        derived.dp.sum("fare", epsilon=0.1)
    assert "where='...'" in str(caught.value)
    assert ".dp.declare(" in str(caught.value)
    assert "ledger=" in str(caught.value)
    derived.dp.declare(ledger=trips.dp.ledger)
    assert derived.dp.ledger is trips.dp.ledger
    assert not trips.dp.ledger.entries


def test_the_mark_of_a_declared_frame_can_be_written_to_files(trips):
    pytest.importorskip("pyarrow")
    trips.dp.declare(budget=BUDGET)
    file = io.BytesIO()
    trips.to_parquet(file)
    file.seek(0)
    with raises(DeclarationError, "derived from a declared frame"):
        pd.read_parquet(file).dp.declaration  # noqa: B018


def test_declaring_again_replaces_everything_but_the_ledger(trips):
    trips.dp.declare(bounds={"fare": (0, 100)}, budget=BUDGET)
    trips.dp.count(share=0.5)
    spent = trips.dp.ledger
    for again in ({}, {"budget": BUDGET}):
        trips.dp.declare(keys={"zone": ["A"]}, **again)
        found = trips.dp.declaration
        assert found.column("fare").bounds is None
        assert found.ledger is spent
    assert len(spent.entries) == 1


def test_a_new_budget_is_never_started_by_accident(trips):
    trips.dp.declare(budget=BUDGET)
    with raises(DeclarationError, "pass ledger="):
        trips.dp.declare(budget=dpf.Budget(epsilon=99))
    fresh = dpf.Ledger(budget=dpf.Budget(epsilon=99))
    assert trips.dp.declare(ledger=fresh).ledger is fresh


def test_messages_hold_no_private_value(trips):
    for arguments in ({"bounds": {"x": (0, 1)}}, {"privacy_unit": "x", "max_rows": 1}):
        with pytest.raises(UnknownColumnError) as caught:
            declare(trips, **arguments)
        assert "secret" not in str(caught.value)


def test_errors_are_also_the_builtin_ones(trips):
    with raises(ValueError, "lower <= upper", parameter="bounds", label="fare"):
        declare(trips, bounds={"fare": (1, 0)})
    with pytest.raises(KeyError):
        declare(trips, bounds={"fares": (0, 1)})
    with raises(ValueError, "epsilon must be", parameter="epsilon"):
        dpf.Budget(-1)
    assert issubclass(CalibrationError, dpf.errors.DPFrameError)
