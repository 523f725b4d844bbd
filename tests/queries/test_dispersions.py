"""Variances and standard deviations: released, previewed, certified and shown like the others."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from support.plans import parts_of, plan_of
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ZONES = ["A", "B", "C"]
EXACT = {"epsilon": 1e9}


def trips(**facts):
    """Fares of two zones, some of them missing, and none of zone C."""
    rows = np.arange(300)
    fare = np.where(rows % 10 == 0, np.nan, rows * 37 % 50 + 5.5)
    zone = np.array(["A", "B", "A"])[rows % 3]
    frame = pd.DataFrame({"zone": zone, "fare": fare, "seats": rows % 7, "late": rows % 5 == 0})
    bounds = {"fare": (0, 60), "seats": (0, 6)}
    frame.dp.declare(keys={"zone": ZONES}, bounds=bounds, **facts)
    return frame


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto"])
def test_they_are_those_of_the_population(mechanism):
    frame, spend = trips(), {**EXACT, "delta": 1e-6, "mechanism": mechanism}
    fares = frame.groupby("zone")["fare"]
    var, std = frame.dp.var("fare", "zone", **spend), frame.dp.std("fare", "zone", **spend)
    assert list(var.columns) == list(std.columns) == ["fare"]
    assert var["fare"].tolist()[:2] == pytest.approx(fares.var(ddof=0), abs=1e-2)
    assert std["fare"].tolist()[:2] == pytest.approx(fares.std(ddof=0), abs=1e-3)
    assert 0 <= var.loc["C", "fare"] <= 900
    assert 0 <= std.loc["C", "fare"] <= 30


def planned(query, mechanism, frame=None):
    frame = trips() if frame is None else frame
    return plan_of(frame, query, mechanism, epsilon=1, delta=1e-6)


def test_mean_sum_and_count_of_the_column_are_read_off_the_same_integers():
    parts = {
        "v": dpf.var("fare"),
        "s": dpf.std("fare"),
        "m": dpf.mean("fare"),
        "t": dpf.sum("fare"),
    }
    (alone,) = parts_of(planned(dpf.var("fare", "zone"), "laplace"))
    (together,) = parts_of(planned(dpf.aggregate("zone", **parts), "laplace"))
    assert together.scales == alone.scales
    both = {"v": dpf.var("fare", "zone"), "m": dpf.mean("fare", "zone")}
    (one,) = parts_of(planned(both, "laplace"))
    assert one.scales == alone.scales
    (counted,) = parts_of(planned(dpf.aggregate("zone", n=dpf.count(), **parts), "laplace"))
    assert counted.scales[:3] == alone.scales  # rows without a fare cost nothing, either
    made = trips().dp.aggregate("zone", n=dpf.count(), **parts, **EXACT)
    assert made["n"].tolist() == [200, 100, 0]
    assert made["n"].dtype == np.int64
    assert (made["s"] ** 2).tolist() == pytest.approx(made["v"])


def test_they_are_drawn_and_combined():
    made = trips().dp.var("fare", "zone", epsilon=5)
    assert made.dp.plot().get_ylabel() == "fare"
    plt.close("all")
    gap = dpf.combine(made, {"A": 1, "B": -1})
    errors = made.dp.std_error["fare"]
    assert gap["std_error"].item() == pytest.approx(np.hypot(errors["A"], errors["B"]))


def test_they_are_left_as_they_are_by_denoisers():
    frame = trips()
    query = dpf.aggregate("zone", n=dpf.count(), v=dpf.var("fare"))
    made = frame.dp.release(query, epsilon=1, denoise="auto")
    assert list(made.columns) == ["n", "v", "n_denoised"]
    with raises(QueryError, "counts, sums, and means and rates"):
        dpf.denoise(frame.dp.release(query, epsilon=1), columns=["v"])
    with raises(QueryError, "there are none"):
        frame.dp.var("fare", "zone", epsilon=1, denoise="auto")


@pytest.mark.parametrize("make", [dpf.var, dpf.std])
def test_what_they_are_not_for_is_refused(make):
    times = (pd.Timestamp("2020"), pd.Timestamp("2021"))
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-05-01"])})
    frame.dp.declare(bounds={"day": times})
    with raises(QueryError, f"{make.__name__} is of numbers"):
        frame.dp.release(make("day"), epsilon=1)
    with raises(QueryError, "least", parameter="columns"):
        make([])
    with raises(QueryError, "bounds names", parameter="bounds", label="tip"):
        make("fare", bounds={"tip": (0, 1)})
    with raises(TypeError, "no keyword 'ddof'"):
        make("fare", ddof=1)


def test_a_constant_column_has_no_variance():
    frame = pd.DataFrame({"x": [2.0, 2.0]})
    frame.dp.declare(bounds={"x": (2, 2)})
    made = frame.dp.aggregate(v=dpf.var("x"), s=dpf.std("x"), epsilon=1)
    assert made.to_numpy().tolist() == [[0.0, 0.0]]
    assert made.dp.interval().to_numpy().tolist() == [[0.0] * 4]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "box"])
def test_whole_numbers_in_narrow_bounds_have_their_own_variance(mechanism):
    class Seats(pa.DataFrameModel):
        seats: int = pa.Field(ge=0, le=3)

    frame = pd.DataFrame({"seats": [1, 2, 2, 2] * 100})
    frame.dp.declare(Seats, privacy_unit=dpf.EACH_ROW)
    query = dpf.aggregate(n=dpf.count(), mean=dpf.mean("seats"), var=dpf.var("seats"))
    spend = {**EXACT, "delta": 1e-6, "mechanism": mechanism}
    n, mean, var = frame.dp.release(query, **spend).loc[0].tolist()
    # squares of whole numbers, rounded up to thirds of the largest, would give 1.19
    assert (n, mean, var) == pytest.approx((400, 1.75, 0.1875), abs=1e-3)
    total = dpf.aggregate(total=dpf.sum("seats"), std=dpf.std("seats"))
    assert frame.dp.release(total, **spend)["total"].tolist() == [700]


def test_a_mean_beside_a_variance_of_whole_numbers_costs_nothing():
    facts = {"bounds": {"x": (0, 100)}, "privacy_unit": dpf.EACH_ROW}
    schema = pa.DataFrameSchema({"x": pa.Column(int)})
    errors = []
    for given in (schema, None):
        frame = pd.DataFrame({"x": [1]})
        frame.dp.declare(given, **facts)
        query = dpf.aggregate(n=dpf.count(), mean=dpf.mean("x"), std=dpf.std("x"))
        errors.append(frame.dp.plan(query, epsilon=1, rows=100).table["std_error"].tolist())
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
