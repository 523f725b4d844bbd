"""Releases: what comes back, in which order things happen, and what happens when all goes wrong."""

import datetime
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support.designing import keep_no_plans
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import (
    BudgetExceededError,
    DPFrameError,
    QueryError,
    ReleaseError,
    UnknownColumnError,
)
from dpframe.privacy.law import Law
from dpframe.strategies.linear import LinearDesign

ENOUGH = {"epsilon": 1e6}  # noise of scale 1e-6 or so: what is released is what was totaled


def trips(n=400):
    rows = np.arange(n)
    return pd.DataFrame(
        {
            "zone": np.array(["A", "B", "C"])[rows % 3],
            "day": pd.Categorical(np.array(["mo", "tu", "we"])[rows % 5 % 3]),
            "paid": rows % 4 == 0,
            "fare": rows % 37 * 0.75,
            "tips": rows % 11,
            7: rows % 2,
            ("t", 1): rows % 4,
            "who": rows // 4,
        }
    )


KEYS = {
    "zone": ["A", "B", "C"],
    "day": pd.Categorical(["mo", "tu", "we"]),
    "paid": [False, True],
    7: [0, 1],
    ("t", 1): [0, 1, 2, 3],
}
BOUNDS = {"fare": (0, 30), "tips": (0, 10), 7: (0, 1), ("t", 1): (0, 3)}


@pytest.fixture
def declared():
    frame = trips()
    frame.dp.declare(keys=KEYS, bounds=BOUNDS, budget=dpf.Budget(1, 1e-6))
    return frame


@pytest.mark.parametrize(
    "by", [["zone"], ["day"], ["paid"], [7], [("t", 1)], ["zone", "paid"], ["day", 7, "zone"]]
)
def test_a_release_looks_like_a_pandas_groupby(by):
    frame = trips()
    keys = {label: KEYS[label] for label in by}
    groups = frame.groupby(by, observed=False)
    columns = ["fare", "tips"]
    bounds = {label: BOUNDS[label] for label in columns}
    counted = frame.dp.count(by, keys=keys, **ENOUGH)
    summed = frame.dp.sum(columns, by, keys=keys, bounds=bounds, **ENOUGH)
    means = frame.dp.mean(columns, by, keys=keys, bounds=bounds, **ENOUGH)
    alike = {"atol": 0.01, "check_dtype": False, "check_column_type": False}
    pd.testing.assert_frame_equal(counted, groups.size().to_frame("count"), **alike)
    pd.testing.assert_frame_equal(summed, groups[columns].sum(), **alike)
    pd.testing.assert_frame_equal(means, groups[columns].mean(), **alike)
    assert counted["count"].dtype == np.int64


@pytest.mark.parametrize("label", ["fare", 7, ("t", 1)])
def test_columns_keep_their_labels(label):
    frame = trips()
    summed = frame.dp.sum([label], bounds=BOUNDS[label], **ENOUGH)
    assert list(summed.columns) == [label]
    assert summed.iloc[0, 0] == pytest.approx(frame[label].sum(), abs=0.01)
    assert list(summed.dp.std_error.columns) == [label]
    assert list(summed.dp.interval().columns) == [f"{label}_low", f"{label}_high"]


def test_a_dict_of_queries_gives_a_dict_of_frames(declared):
    queries = {"by zone": dpf.count("zone"), "fares": dpf.sum("fare", "paid")}
    released = declared.dp.release(queries, share=0.5)
    assert list(released) == ["by zone", "fares"]
    assert released["by zone"].index.name == "zone"
    assert list(released["fares"].columns) == ["fare"]
    (entry,) = declared.dp.ledger.entries
    assert entry.loss.epsilon + entry.loss.mu_squared > 0
    assert {part.dp.certificate.release_id for part in released.values()} == {entry.release_id}
    assert all(part.dp.certificate.privacy_loss.joint for part in released.values())


def test_rows_without_one_of_two_values_leave_all_outputs_where_they_are_dropped():
    frame = pd.DataFrame({"x": [1.0, None, 3, 4] * 100, "y": [2.0, 3, None, 1] * 100})
    frame.dp.declare(bounds={"x": (0, 5), "y": (0, 5)}, missing={"x": "drop", "y": "drop"})
    released = frame.dp.aggregate(n=dpf.count(), c=dpf.cov("x", "y"), **ENOUGH)
    assert released["n"].tolist() == [200]


def test_replacing_rows_leaves_their_number_public():
    frame = trips()
    frame.dp.declare(neighboring="replace", budget=dpf.Budget(1, 1e-6))
    assert frame.dp.count(epsilon=0.01)["count"].tolist() == [400]
    assert frame.dp.budget.spent.epsilon == 0
    assert frame.dp.budget.remaining_share == 1


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_spread_of_releases_is_what_the_certificate_says(mechanism):
    # 20,000 cells, each a release of its own: a standard deviation is known to 0.8 % at most
    # (Laplace), so 5 % is more than 6 of its deviations and chance fails once in 10^9 runs
    n, rows = 20_000, 6
    zone = np.repeat(np.arange(n), rows)
    frame = pd.DataFrame({"zone": zone, "fare": np.tile([0.0, 3, 9.5, 10, np.nan, 1], n)})
    query = dpf.aggregate("zone", keys=range(n), n=dpf.count(), s=dpf.sum("fare", bounds=(-5, 10)))
    released = dpf.release(frame, query, epsilon=3, delta=1e-6, mechanism=mechanism)
    errors = released.dp.std_error.iloc[0]
    certified = [column.std_error for column in released.dp.certificate.columns]
    assert errors.tolist() == pytest.approx(certified)
    for column, answer in (("n", rows), ("s", 23.5)):
        realized = np.sqrt(np.mean((released[column] - answer) ** 2))
        assert realized == pytest.approx(errors[column], rel=0.05)
        assert realized != pytest.approx(1.1 * errors[column], rel=0.05)
        # unbiased: the mean of all cells is off by less than 5.5 of its standard errors
        assert abs(np.mean(released[column] - answer)) < 5.5 * errors[column] / np.sqrt(n)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_errors_of_means_are_those_predicted(mechanism):
    # 10,000 means over 40 rows with noise of a few rows: 5 % is 4 deviations of a Laplace's spread,
    # and what first order leaves out is below 3 %
    n, rows = 10_000, 40
    frame = pd.DataFrame(
        {"zone": np.repeat(np.arange(n), rows), "fare": np.tile([2.0, 3, 8, 9], n * 10)}
    )
    released = frame.dp.mean(
        "fare", "zone", keys=range(n), bounds=(0, 20), epsilon=4, delta=1e-2, mechanism=mechanism
    )
    errors = released["fare"] - 5.5
    predicted = np.sqrt(np.mean(released.dp.std_error["fare"] ** 2))
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(predicted, rel=0.08)
    assert predicted < 1
    assert released.dp.certificate.columns[0].std_error is None


WRONG = {
    "unknown column": (dpf.sum("price"), {"epsilon": 0.1}),
    "unknown grouping column": (dpf.count("city", keys=["A"]), {"epsilon": 0.1}),
    "unknown column in a condition": (dpf.count(where="price > 0"), {"epsilon": 0.1}),
    "unknown column in a part": (dpf.aggregate(n=dpf.count(where="price > 0")), {"epsilon": 0.1}),
    "no keys": (dpf.count("who"), {"epsilon": 0.1}),
    "no bounds": (dpf.sum("who"), {"epsilon": 0.1}),
    "not a query": ("count", {"epsilon": 0.1}),
    "no query": ({}, {"epsilon": 0.1}),
    "one of two not a query": ({"a": dpf.count(), "b": None}, {"epsilon": 0.1}),
    "one of two wrong": ({"a": dpf.count(), "b": dpf.sum("who")}, {"epsilon": 0.1}),
    "no spend": (dpf.count(), {}),
    "two spends": (dpf.count(), {"epsilon": 0.1, "mu": 0.1}),
    "a negative epsilon": (dpf.count(), {"epsilon": -0.1}),
    "an unknown mechanism": (dpf.count(), {"epsilon": 0.1, "mechanism": "cauchy"}),
    "too little to spend": (dpf.count(), {"mu": 1e-30}),
    "too much to spend": (dpf.count(), {"epsilon": 1.01}),
    "more than the budget": (dpf.count(), {"mu": 30}),
}


@pytest.mark.parametrize("name", WRONG)
def test_nothing_is_charged_read_or_drawn_when_something_is_wrong(declared, monkeypatch, name):
    query, spend = WRONG[name]

    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr("dpframe.context._system_bytes", never)
    monkeypatch.setattr(PandasEngine, "totals", never)
    with pytest.raises(DPFrameError):
        declared.dp.release(query, **spend)
    assert declared.dp.ledger.entries == ()


def test_messages_name_what_is_wrong(declared):
    with raises(UnknownColumnError, "no column 'fares'. Did you mean 'fare'"):
        declared.dp.sum("fares", bounds=(0, 1), epsilon=0.1)
    with raises(QueryError, "got a str under 'b'", parameter="queries", label="b"):
        declared.dp.release({"a": dpf.count(), "b": "count"}, epsilon=0.1)
    declared.dp.count(epsilon=0.7)
    with raises(BudgetExceededError, "epsilon=0.7 does not fit"):
        declared.dp.count(epsilon=0.7)
    assert len(declared.dp.ledger.entries) == 1


def test_the_ledger_is_charged_before_data_are_read_and_noise_is_drawn(declared, monkeypatch):
    events = []

    def logged(name, function):
        def call(*arguments, **options):
            events.append(name)
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(Ledger, "charge", logged("charge", Ledger.charge))
    monkeypatch.setattr(PandasEngine, "totals", logged("totals", PandasEngine.totals))
    monkeypatch.setattr(Law, "draw", logged("noise", Law.draw))
    declared.dp.release({"n": dpf.count("zone"), "s": dpf.sum("fare")}, epsilon=0.1)
    assert events == ["charge", "totals", "noise", "noise"]


def test_the_noise_of_a_group_is_drawn_together(declared, monkeypatch):
    query = dpf.aggregate("zone", n=dpf.count(), fare=dpf.sum("fare"), tips=dpf.sum("tips"))
    half, drawn = {"mu": 0.1, "mechanism": "gaussian"}, []
    keep_no_plans(monkeypatch)

    def silent(law, scales, size, _):
        return [np.zeros(size, np.int64) for _ in scales]

    def together(law, scales, size, _):
        drawn.append(scales)
        return [np.arange(size) + 100 * place for place in range(len(scales))]

    monkeypatch.setattr(Law, "draw", silent)
    exact = declared.dp.release(query, **half)
    monkeypatch.setattr(Law, "draw", together)
    monkeypatch.setattr(Law, "deviation_among", lambda law, scale, members: float(members))
    monkeypatch.setattr(LinearDesign, "groups", ((2, 0), (1,)))
    released = declared.dp.release(query, **half)
    scales = released.dp.certificate.mechanism.scales
    assert drawn == [[scales["2"], scales["0"]], [scales["1"]]]
    noise = released - exact
    steps = released.dp.std_error.iloc[0] / [2, 1, 2]  # deviations are those of the group
    assert (noise["n"] / steps["n"]).tolist() == [100, 101, 102]
    assert (noise["fare"] / steps["fare"]).tolist() == [0, 1, 2]
    assert (noise["tips"] / steps["tips"]).tolist() == [0, 1, 2]


def test_what_was_charged_stays_charged_when_the_engine_fails(declared, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(PandasEngine, "totals", fail)
    with raises(ReleaseError, "too little memory"):
        declared.dp.count(epsilon=0.25)
    assert declared.dp.ledger.status().spent.epsilon == Fraction(1, 4)


ODD_KEYS = {
    "huge integers": [2**64, -(2**63)],
    "unsigned integers": [2**63 + 5, 2**63],
    "floats": [0.1, -0.0, np.inf],
    "mixed": ["A", 1, 2.5, b"b", ("t", 1), print],
    "decimals": [Decimal(1), Decimal("0.1")],
    "dates": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
    "times": pd.date_range("2020", periods=2, tz="Europe/Berlin"),
    "durations": pd.to_timedelta([1, 2], unit="h"),
    "periods": pd.period_range("2020", periods=2, freq="M"),
    "intervals": pd.interval_range(0, 2),
    "nullable": pd.array([1, 2], dtype="Int64"),
    "ordered": pd.Categorical([3, 1], categories=[3, 1, 2], ordered=True),
    "a generator": (key for key in "AB"),
}


@pytest.mark.parametrize("name", ODD_KEYS)
def test_nothing_public_fails_once_the_ledger_is_charged(name):
    declared = trips().astype({"zone": object})  # which any key may match
    declared.dp.declare(budget=dpf.Budget(1, 1e-6))
    released = declared.dp.count("zone", keys=ODD_KEYS[name], epsilon=0.1)
    assert len(declared.dp.ledger.entries) == 1
    assert dpf.verify(released) == released.dp.certificate
    json.dumps(released.dp.certificate.to_dict())
    assert str(released.dp.certificate)
    assert released.dp.interval().shape == (len(released), 2)
