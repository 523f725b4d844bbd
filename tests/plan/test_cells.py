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
from dpframe.queries.edges import Grid

DECLARED = Declaration(
    columns={"count": Column(bounds=(0, 7), integer=True), "tip": Column(bounds=(0.0, 1.0))}
).with_facts(
    bounds={"fare": (0, 100)}, keys={"zone": ["B", "A"], "day": [3, 1]}, missing={"tip": 0.5}
)
BY = ["zone", "day"]


def index_of(query, declaration=DECLARED) -> pd.Index:
    return cells_of(query, declaration).index


def test_without_groups_there_is_one_cell():
    cells = cells_of(dpf.count(), DECLARED)
    assert (cells.size, cells.axes) == (1, ())
    assert len(cells.index) == 1


def test_declared_keys_come_in_declared_order():
    assert index_of(dpf.count(by="zone")).tolist() == ["B", "A"]
    product = index_of(dpf.count(by=["day", "zone"]))
    assert product.tolist() == [(3, "B"), (3, "A"), (1, "B"), (1, "A")]
    assert list(product.names) == ["day", "zone"]


@pytest.mark.parametrize(
    "keys",
    [
        ["C"],
        {"zone": ["C"]},
        pd.Index(["C"]),
        ("C",),
        np.array(["C"]),
        pd.Series(["C"]),
        pd.DataFrame({"zone": ["C"]}),
    ],
)
def test_keys_of_the_call_take_the_place_of_declared_ones(keys):
    index = index_of(dpf.count(by="zone", keys=keys))
    assert index.tolist() == ["C"]
    assert index.name == "zone"
    assert DECLARED.column("zone").keys.tolist() == ["B", "A"]


def test_a_dict_overrides_some_columns_only():
    index = index_of(dpf.count(by=BY, keys={"day": [2]}))
    assert index.tolist() == [("B", 2), ("A", 2)]


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


def outputs(query, declaration=DECLARED) -> list[tuple]:
    return [(out.name, out.statistic, out.column) for out in table_of(query, declaration).outputs]


def test_tables_name_their_columns():
    assert outputs(dpf.count()) == outputs(dpf.histogram("x", [0, 1])) == [("count", "count", None)]
    assert outputs(dpf.sum(["fare", "tip"])) == [("fare", "sum", "fare"), ("tip", "sum", "tip")]
    parts = {"n": dpf.count(), "a": dpf.sum("fare"), "b": dpf.mean("fare")}
    expected = [("n", "count", None), ("a", "sum", "fare"), ("b", "mean", "fare")]
    assert outputs(dpf.aggregate(**parts)) == expected


def test_bounds_of_the_call_take_the_place_of_declared_ones():
    def bounds(query):
        return [out.values[0][2] for out in table_of(query, DECLARED).outputs]

    assert bounds(dpf.sum("fare")) == [(0, 100)]
    assert bounds(dpf.sum("fare", bounds=[0, 5])) == [(0, 5)]
    assert bounds(dpf.sum(["fare", "tip"], bounds=(0, 5))) == [(0, 5), (0, 5)]
    assert bounds(dpf.mean(["fare", "tip"], bounds={"tip": (0, 3)})) == [(0, 100), (0, 3)]


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


def test_grids_follow_what_is_declared():
    grids = {out.name: out for out in table_of(dpf.sum(["count", "tip"]), DECLARED).outputs}
    assert grids["count"].grid == Grid(0, 0, 7)
    assert grids["count"].integer
    assert grids["tip"].grid == Grid(-32, 0, 2**32, fill=2**31)
    assert not grids["tip"].integer


def test_tables_know_the_private_columns_they_read():
    unit = Declaration(DECLARED.columns, privacy_unit=("who",), caps=Caps(rows=2))
    query = dpf.aggregate(
        by="zone", where="age > 1", n=dpf.count(where="tip < 1"), s=dpf.sum("fare")
    )
    assert set(table_of(query, unit).columns) == {"zone", "age", "tip", "fare", "who"}
    assert table_of(dpf.count(), DECLARED).columns == ()


def test_a_condition_of_all_parts_leaves_rows_out_of_the_table():
    shared = dpf.aggregate(where="b > 0", n=dpf.count(where="a > 0"), m=dpf.count(where="a > 0"))
    table = table_of(shared, DECLARED)
    assert table.where.text == "b > 0 and a > 0"
    assert [out.where for out in table.outputs] == [None, None]
    mixed = table_of(dpf.aggregate(n=dpf.count(where="a > 0"), m=dpf.count()), DECLARED)
    assert mixed.where is None
    assert [out.where and out.where.text for out in mixed.outputs] == ["a > 0", None]


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


PAIRS = {"a": [1, 2, 2], "b": ["y", "z", "x"]}  # of the product: 0, 4 and 5


@pytest.mark.parametrize(
    ("query", "dimensions", "chosen"),
    [
        (dpf.count(), [], None),
        (dpf.count("zone"), [(2, False)], None),
        (dpf.histogram("age", [0, 1, 5], "zone"), [(2, False), (2, True)], None),
        (
            dpf.histogram("age", [0, 1, 5], ["a", "b"], keys=pd.DataFrame(PAIRS)),
            [(2, False), (3, False), (2, True)],
            6,
        ),
    ],
)
def test_strategies_are_told_where_the_cells_lie(query, dimensions, chosen):
    work = table_of(query, DECLARED).workload
    assert [(one.size, one.ordered) for one in work.domain.dimensions] == dimensions
    assert work.domain.chosen == chosen
    assert work.cells == table_of(query, DECLARED).cells.size
