"""From queries and declarations to public cells, and to the tables built on them."""

import math

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import DeclarationError, QueryError
from dpframe.plan.cells import cells_of
from dpframe.plan.tables import table_of
from dpframe.privacy.neighbors import ROW_CAPS, Caps

DECLARED = Declaration(
    columns={"count": Column(bounds=(0, 7), integer=True), "tip": Column(bounds=(0.0, 1.0))}
).with_facts(
    bounds={"fare": (0, 100)}, keys={"zone": ["B", "A"], "day": [3, 1]}, missing={"tip": 0.5}
)
BY = ["zone", "day"]


def index_of(query, declaration=DECLARED) -> pd.Index:
    return cells_of(query, declaration).index


@pytest.mark.parametrize(
    "keys",
    [
        pd.DataFrame({"day": [5, 4, 5], "zone": ["A", "A", "C"]}),
        pd.MultiIndex.from_tuples([("A", 5), ("A", 4), ("C", 5)], names=BY),
        pd.MultiIndex.from_tuples([(5, "A"), (4, "A"), (5, "C")], names=BY[::-1]),
        pd.MultiIndex.from_tuples([("A", 5), ("A", 4), ("C", 5)]),
        pd.DataFrame({"zone": pd.Categorical(["A", "A", "C"]), "day": [5, 4, 5]}),
    ],
)
def test_a_frame_names_exactly_the_combinations_wanted(keys):
    cells = cells_of(dpf.count(by=BY, keys=keys), DECLARED)
    assert cells.size == 3
    assert cells.index.tolist() == [("A", 5), ("A", 4), ("C", 5)]
    assert list(cells.index.names) == BY


@pytest.mark.parametrize(
    ("by", "keys", "error", "message"),
    [
        (
            "hour",
            None,
            DeclarationError,
            "no public keys for 'hour': the groups present in the data",
        ),
        ("hour", {}, DeclarationError, "isin=... in the schema, or keys={'hour': [...]}"),
        ("zone", "AB", DeclarationError, "keys of 'zone' must be a list of groups, got keys='AB'"),
        ("zone", 5, DeclarationError, "keys of 'zone' must be a list of groups, got keys=5"),
        ("zone", {"A", "B"}, DeclarationError, "must have an order"),
        ("zone", [], DeclarationError, "at least one group"),
        ("zone", ["A", None], DeclarationError, "must not be missing"),
        ("zone", [1, True], DeclarationError, "must be unique"),
        ("zone", [["A"]], DeclarationError, "must be hashable"),
        ("zone", {"zone": "AB"}, DeclarationError, "must be a list of groups"),
        (
            "zone",
            {"day": [1]},
            QueryError,
            "keys names ['day'], which by=['zone'] does not group by",
        ),
        (None, ["A"], QueryError, "by=[] does not name a single column"),
        (None, {"zone": ["A"]}, QueryError, "keys names ['zone'], which by=[] does not group by"),
        (None, pd.DataFrame({"zone": ["A"]}), QueryError, "keys must have exactly the columns of"),
        (BY, ["A"], QueryError, "keys must be a dict from column to groups, or a frame"),
        (
            BY,
            pd.DataFrame({"zone": ["A"]}),
            QueryError,
            "exactly the columns of by=['zone', 'day']",
        ),
        (
            BY,
            pd.DataFrame({"zone": ["A"], "day": [1], "x": [1]}),
            QueryError,
            "exactly the columns",
        ),
        (BY, pd.DataFrame([["A", 1]], columns=["zone", "zone"]), QueryError, "exactly the columns"),
        (
            BY,
            pd.MultiIndex.from_tuples([("A", 1)], names=["zone", None]),
            QueryError,
            "exactly the",
        ),
        (BY, pd.MultiIndex.from_tuples([("A", 1)], names=["zone"] * 2), QueryError, "exactly the"),
        (BY, pd.MultiIndex.from_tuples([("A", 1, 2)]), QueryError, "exactly the columns"),
        (
            BY,
            pd.DataFrame({"zone": ["A", "A"], "day": [1, 1]}),
            QueryError,
            "a combination of groups",
        ),
        (
            BY,
            pd.DataFrame({"zone": ["A", "A"], "day": [1, True]}, dtype=object),
            QueryError,
            "twice",
        ),
        (BY, pd.DataFrame({"zone": ["A", None], "day": [1, 1]}), DeclarationError, "be missing"),
        (BY, pd.DataFrame({"zone": ["A"], "day": [math.nan]}), DeclarationError, "be missing"),
        (BY, pd.DataFrame({"zone": [["A"]], "day": [1]}), DeclarationError, "must be hashable"),
        (BY, pd.DataFrame({"zone": [], "day": []}), DeclarationError, "at least one group"),
    ],
)
def test_keys_that_do_not_fit_are_refused(by, keys, error, message):
    with pytest.raises(error) as caught:
        cells_of(dpf.count(by=by, keys=keys), DECLARED)
    assert message in str(caught.value)


def test_keys_that_may_be_a_private_column_are_not_shown():
    private = pd.Series(["secret", "secret"])
    with raises(DeclarationError, "keys of 'zone' must be unique") as caught:
        cells_of(dpf.count(by="zone", keys=private), DECLARED)
    assert "secret" not in str(caught.value)


def test_too_many_cells_are_refused_before_any_is_made():
    many = {label: range(10**4) for label in "abc"}
    with raises(QueryError, "makes 1,000,000,000,000", parameter="by"):
        cells_of(dpf.count(by=list("abc"), keys=many), DECLARED)
    columns = {label: np.arange(2000) for label in "abcdef"}
    with pytest.raises(QueryError, match="too many distinct values to be combined"):
        cells_of(dpf.count(by=list("abcdef"), keys=pd.DataFrame(columns)), DECLARED)


def test_bins_vary_fastest():
    query = dpf.histogram("fare", [0, 1, 2], by="zone")
    low, high = pd.Interval(-0.001, 1), pd.Interval(1, 2)
    assert index_of(query).tolist() == [("B", low), ("B", high), ("A", low), ("A", high)]
    assert list(index_of(query).names) == ["zone", "fare"]
    assert index_of(dpf.histogram("fare", [0, 1, 2])).tolist() == [low, high]
    chosen = pd.DataFrame({"day": [3, 1], "zone": ["A", "B"]})
    index = index_of(dpf.histogram("fare", [0, 1, 2], by=BY, keys=chosen))
    assert index.tolist() == [("A", 3, low), ("A", 3, high), ("B", 1, low), ("B", 1, high)]


def test_released_rows_are_the_keys_whatever_the_data_hold():
    frames = [pd.DataFrame({"zone": rows}, dtype=object) for rows in ([], ["A"], ["Z", None, 5])]
    for frame in frames:
        released = frame.dp.count(by="zone", keys=["C", "A"], epsilon=1)
        assert released.index.tolist() == ["C", "A"]
        assert released.dtypes.to_dict() == {"count": np.dtype(np.int64)}


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (dpf.sum("rides"), DeclarationError, "no public bounds for 'rides': bounds taken from the"),
        (dpf.mean("rides"), DeclarationError, "bounds={'rides': (lower, upper)}"),
        (dpf.sum(["fare", "rides"]), DeclarationError, "no public bounds for 'rides'"),
        (dpf.aggregate(x=dpf.sum("rides")), DeclarationError, "no public bounds for 'rides'"),
        (dpf.sum("fare", bounds=(1, 0)), DeclarationError, "lower <= upper, got bounds=(1, 0)"),
        (dpf.sum("fare", bounds=(0, math.inf)), DeclarationError, "must be finite"),
        (dpf.sum("fare", bounds=(0, "9")), DeclarationError, "must be two finite numbers"),
        (dpf.sum("fare", bounds=5), DeclarationError, "must be two finite numbers"),
        (dpf.sum("fare", by="hour"), DeclarationError, "no public keys for 'hour'"),
    ],
)
def test_tables_without_public_facts_are_refused(query, error, message):
    with pytest.raises(error) as caught:
        table_of(query, DECLARED)
    assert message in str(caught.value)


def test_rows_are_capped_only_with_a_unit():
    assert table_of(dpf.count(), DECLARED).caps == ROW_CAPS
    unit = Declaration(DECLARED.columns, privacy_unit=("who",), caps=Caps(rows=2))
    assert table_of(dpf.count(), unit).caps == Caps(rows=2)
    uncapped = Declaration(DECLARED.columns, privacy_unit=("who",), caps=Caps(groups=2))
    with raises(
        DeclarationError, "privacy_unit='who' needs a cap", parameter="max_rows", label="who"
    ):
        table_of(dpf.count(), uncapped)


def test_a_row_that_nothing_leaves_out_is_always_there():
    assert table_of(dpf.count(), DECLARED).workload.reach.always
    assert not table_of(dpf.count(where="a > 0"), DECLARED).workload.reach.always
    assert not table_of(dpf.count(by="zone"), DECLARED).workload.reach.always
    unit = Declaration(DECLARED.columns, privacy_unit=("who",), caps=Caps(rows=1))
    assert not table_of(dpf.count(), unit).workload.reach.always
