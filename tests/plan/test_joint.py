"""Queries of one release that are measured as one."""

import numpy as np
import pandas as pd
import pytest
from support.plans import parts_of

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.engines import capping
from dpframe.errors import QueryError
from dpframe.plan.joining import Joining
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend
from dpframe.privacy.law import Law
from dpframe.privacy.laws import LAWS
from dpframe.privacy.neighbors import Caps

COLUMNS = {
    "g": Column(keys=pd.Index(["A", "B", "C"], name="g")),
    "h": Column(keys=pd.Index([1, 2], name="h")),
    "x": Column(bounds=(-2.0, 3.0)),
    "k": Column(bounds=(0, 9), integer=True),
}
UNITS = Declaration(COLUMNS, privacy_unit=("who",), caps=Caps(rows=3))
ROWS = Declaration(COLUMNS)


def plan(queries, declaration=ROWS, mechanism="auto", **spend):
    return plan_release(declaration, queries, Spend.of(**(spend or {"epsilon": 1})), mechanism)


def together(queries, declaration=ROWS):
    """Return the names of the queries that are measured as one, with noise on every cell."""
    made = plan(queries, declaration, "laplace")
    return [
        [name for name, table in made.tables.items() if table.measured is measured]
        for measured in made.designs
    ]


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "gaussian", "correlated", "box"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_dict_of_counts_is_as_accurate_as_one_aggregate(mechanism, delta):
    if mechanism in ("gaussian", "correlated") and not delta:
        return
    counts = {f"n{k}": dpf.count(by="g", where=f"x > {k / 10}") for k in range(20)}
    spend = {"epsilon": 1, "delta": delta}
    apart = plan(counts, mechanism=mechanism, **spend)
    parts = {name: dpf.count(where=query.where.text) for name, query in counts.items()}
    one = plan({None: dpf.aggregate(by="g", **parts)}, mechanism=mechanism, **spend)
    expected = [prediction.std_error for prediction in one.predictions(one.tables[None])[:20]]
    found = [apart.predictions(table)[0].std_error for table in apart.tables.values()]
    assert found == pytest.approx(expected)
    assert (apart.loss, apart.mechanism) == (one.loss, one.mechanism)
    assert all(len(apart.predictions(own)) == len(own.outputs) for own in apart.tables.values())


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("weights", [None, "w"])
def test_a_rate_and_that_of_its_opposite_are_measured_once_and_add_up_to_1(mechanism, weights):
    frame = pd.DataFrame({"y": [0, 1, 2, None] * 50, "w": [1.0, 2.0] * 100})
    frame.dp.declare(bounds={"w": (0, 2)}, privacy_unit=dpf.EACH_ROW)
    rates = {text: dpf.rate(text, weights=weights) for text in ("y != 0", "not y == 0", "y == 0")}
    spend = {"epsilon": 1, "delta": 1e-6, "mechanism": mechanism}
    released = frame.dp.release(dpf.aggregate(None, **rates), **spend)
    alone = frame.dp.plan(rates["y == 0"], **spend).table
    together = frame.dp.plan(dpf.aggregate(None, **rates), **spend).table
    assert together["std_error"].tolist() == [alone["std_error"].iloc[0]] * 3
    share, same, other = released.iloc[0]
    assert share + other == pytest.approx(1) and share == same != other
    low, high = released.dp.interval().iloc[0, :2]
    assert released.dp.interval().iloc[0, 4:6].tolist() == pytest.approx([1 - high, 1 - low])


def test_the_same_query_twice_is_measured_once():
    one = plan({"a": dpf.count(by="g")})
    two = plan({"a": dpf.count(by="g"), "b": dpf.count(by="g")})
    assert len(parts_of(two)) == 1
    for table in two.tables.values():
        assert two.predictions(table) == one.predictions(one.tables["a"])


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        ({"a": dpf.count("g"), "b": dpf.sum("x", by="g")}, [["a", "b"]]),
        (
            {"a": dpf.count("g"), "b": dpf.count("h"), "c": dpf.mean("k", by="g")},
            [["a", "c"], ["b"]],
        ),
        ({"a": dpf.count("g"), "b": dpf.count()}, [["a"], ["b"]]),
        ({"a": dpf.count(["g", "h"]), "b": dpf.count(["h", "g"])}, [["a"], ["b"]]),
        ({"a": dpf.count("g"), "b": dpf.count("g", keys=["A", "B"])}, [["a"], ["b"]]),
        ({"a": dpf.count("g"), "b": dpf.count("g", keys=["A", "B", "C"])}, [["a", "b"]]),
        ({"a": dpf.count("g"), "b": dpf.count("g", keys=["A", "C", "B"])}, [["a"], ["b"]]),
        (
            {
                "a": dpf.histogram("x", bins=[-2, 0, 3]),
                "b": dpf.histogram("x", bins=[-2, 0, 3], where="k > 1"),
            },
            [["a", "b"]],
        ),
        (
            {"a": dpf.histogram("x", bins=[-2, 0, 3]), "b": dpf.histogram("x", bins=[-2, 1, 3])},
            [["a"], ["b"]],
        ),
        # options speak of all outputs of a query
        ({"a": dpf.count("g"), "b": dpf.sum("x", by="g", n_weight=2)}, [["a"], ["b"]]),
    ],
)
def test_queries_of_the_same_groups_are_measured_as_one(queries, expected):
    assert together(queries) == expected


def test_rows_of_a_unit_are_capped_after_the_condition_of_a_table():
    queries = {"a": dpf.count("g", where="x > 0"), "b": dpf.count("g", where="x > 0 and x < 9")}
    assert together(queries) == [["a", "b"]]
    assert together(queries, UNITS) == [["a"], ["b"]]
    same = {"a": dpf.count("g", where="x > 0"), "b": dpf.sum("x", by="g", where="x > 0")}
    assert together(same, UNITS) == [["a", "b"]]
    # units are counted once in a group, under caps of their own
    assert together({"a": dpf.count("g"), "b": dpf.units("g")}, UNITS) == [["a"], ["b"]]
    assert together({"a": dpf.count("g"), "b": dpf.units("g")}) == [["a", "b"]]


@pytest.fixture
def frame():
    made = pd.DataFrame({"g": list("AABBA"), "x": [1.0, 2, -1, 0.5, 9], "who": [1, 1, 2, 3, 4]})
    made.dp.declare(keys={"g": ["A", "B", "C"]}, bounds={"x": (-2, 3)}, privacy_unit=dpf.EACH_ROW)
    return made


def test_rows_are_kept_once_for_tables_of_the_same_groups_and_caps(monkeypatch):
    calls = []
    monkeypatch.setattr(
        capping, "_sample", lambda *args, real=capping._sample: calls.append(1) or real(*args)
    )
    many = pd.DataFrame({"g": list("ABC") * 40, "x": 1.0, "y": 1.0, "who": 7})
    many.dp.declare(
        keys={"g": ["A", "B", "C"]},
        bounds={"x": (0, 1), "y": (0, 1)},
        privacy_unit="who",
        max_rows=30,
    )
    found = many.dp.release(
        {"plain": dpf.sum("x", by="g"), "weighted": dpf.sum("y", by="g", n_weight=2)},
        epsilon=1e9,
        mechanism="laplace",
    )
    assert len(calls) == 1
    one, other = (part.iloc[:, 0].round() for part in found.values())
    assert one.sum() == 30
    assert one.tolist() == other.tolist()


BY_COLUMNS = {
    "g": dpf.count(by="g"),
    "h": dpf.count(by="h", keys=[0, 1]),
    "bins": dpf.histogram("x", bins=[-2, 0, 3]),
    "both": dpf.count(by=["g", "h"], keys={"h": [0, 1]}),
    "n": dpf.count(),
}


def test_counts_by_several_columns_share_noise_where_that_is_best():
    few = {f"c{k}": Column(keys=pd.Index([0, 1], name=f"c{k}")) for k in range(10)}
    tables = {name: dpf.count(by=name) for name in few}
    made = plan(tables, Declaration(few | COLUMNS))
    assert (made.mechanism, len(parts_of(made))) == ("box", 1)
    errors = [made.predictions(table)[0].std_error for table in made.tables.values()]
    assert errors == pytest.approx([7.81] * 10, rel=1e-3)
    beside = tables | {"k": dpf.histogram("k", bins=range(10)), "s": dpf.sum("x", by="g")}
    made = plan(beside, Declaration(few | COLUMNS))
    assert len(parts_of(made)) == 3
    assert made.of(made.tables["c0"]) is made.of(made.tables["c9"])
    # other rows, options, and orders of columns
    some = {name: dpf.count(by=name, where="x > 0" if name < "c5" else None) for name in few}
    made = plan(some, Declaration(few))
    assert sorted(
        len([own for own in made.tables.values() if own.measured is one]) for one in made.designs
    ) == [1, 1, 1, 1, 1, 5]


@pytest.mark.parametrize(("where", "public"), [(None, True), ("x > 0", False)])
def test_only_the_number_of_all_rows_is_public(where, public):
    """That of rows that meet a condition is not: a row that is replaced may move it."""
    few = {name: Column(keys=pd.Index([0, 1], name=name)) for name in "abc"}
    tables = {name: dpf.count(by=name, where=where) for name in few}
    made = plan(tables, Declaration(few, neighboring="replace"), "box")
    (measured,) = parts_of(made)
    assert [scale == 0 for scale in measured.scales] == [public] + [False] * 6
    # and of units that may have several rows, tables are measured apart
    units = Declaration(few, privacy_unit=("who",), caps=Caps(rows=1))
    assert len(parts_of(plan(tables, units, "laplace"))) == 3
    pools = Joining.of(units, tables, apart=False).pools
    assert not any(pool.across for pool in pools)


def test_counts_that_share_noise_are_right(monkeypatch):
    rows = pd.DataFrame(
        {
            "g": ["A", "B", "A", "Z", None, "C", 1],
            "h": [0, 1, 1, 0, 7, None, True],
            "x": [-1.0, 2, np.nan, 9, -2, 0, 3],
        }
    )
    rows.dp.declare(keys={"g": ["A", "B", "C"]}, privacy_unit=dpf.EACH_ROW)
    apart = {name: rows.dp.release(query, epsilon=1e9) for name, query in BY_COLUMNS.items()}
    for law in (Law, *map(type, LAWS.values())):
        monkeypatch.setattr(
            law, "draw", lambda _, scales, size, *rest: [np.zeros(size, np.int64) for _ in scales]
        )
    shared = rows.dp.release(BY_COLUMNS, epsilon=1, mechanism="box")
    kinds = {name: one.dp.certificate.release.mechanism.kind for name, one in shared.items()}
    assert "signs" in kinds.values()
    for name, one in apart.items():
        pd.testing.assert_frame_equal(
            pd.DataFrame(shared[name]), pd.DataFrame(one), check_flags=False
        )


def test_counts_to_be_denoised_stay_apart():
    rows = pd.DataFrame({"g": ["A", "B"] * 9, "h": [0, 1] * 9})
    rows.dp.declare(keys={"g": ["A", "B"], "h": [0, 1]}, privacy_unit=dpf.EACH_ROW)
    tables = {name: dpf.count(by=name) for name in ("g", "h")}
    shared = rows.dp.release(tables, epsilon=1)["g"]
    assert shared.dp.certificate.release.mechanism.kind == "signs"
    with pytest.raises(QueryError, match="measured apart with denoise="):
        shared.dp.denoise("nonnegative")
    apart = rows.dp.release(tables, epsilon=1, denoise="nonnegative")["g"]
    assert apart.dp.certificate.release.mechanism.kind == "noise"
    assert list(apart) == ["count", "count_denoised"]
