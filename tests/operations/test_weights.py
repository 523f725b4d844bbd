"""Weights of a survey: totals, means and rates of rows that count for more or less than one."""

import math
import warnings
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.engines.blocks import weigh_integers
from dpframe.errors import DeclarationError, QueryError
from dpframe.privacy.laws import LAPLACE

mpl.use("Agg")

KEYS = {"region": ["N", "S"], "sex": ["f", "m"]}
BOUNDS = {"income": (-20, 80), "age": (18, 90), "w": (0, 3.7), "whole": (0, 9)}
EXACT = {"epsilon": 1e9, "mechanism": "laplace"}
OUTPUTS = {
    "total": dpf.count(weights="w"),
    "income": dpf.mean("income", weights="w"),
    "age": dpf.sum("age", weights="w"),
    "rich": dpf.rate("income > 30", weights="w"),
}


def people(rows=400, **facts):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["N", "S"], rows),
            "sex": rng.choice(["f", "m"], rows, p=[0.7, 0.3]),
            "income": rng.normal(25, 30, rows),
            "age": rng.gamma(5, 9, rows),
            "w": rng.lognormal(0, 1, rows),
            "whole": rng.integers(0, 12, rows),
        }
    )
    frame.loc[::11, "income"] = np.nan
    frame.loc[::13, "w"] = np.nan
    frame.loc[1, "w"], frame.loc[2, "w"] = -5.0, math.inf
    given = {"keys": KEYS, "bounds": BOUNDS, "privacy_unit": dpf.EACH_ROW, **facts}
    dpf.declare(frame, **given)
    return frame


def clipped(frame):
    """What is counted, computed apart: values and weights clipped, a missing weight as 0."""
    return frame.assign(
        w=frame["w"].clip(*BOUNDS["w"]).fillna(0),
        income=frame["income"].clip(*BOUNDS["income"]),
        age=frame["age"].clip(*BOUNDS["age"]),
    )


def test_totals_means_and_rates_are_those_of_numpy():
    frame = people()
    found = frame.dp.aggregate("region", **OUTPUTS, **EXACT)
    for region, rows in clipped(frame).groupby("region"):
        known = rows.dropna(subset=["income"])
        expected = [
            rows["w"].sum(),
            np.average(known["income"], weights=known["w"]),
            (rows["w"] * rows["age"]).sum(),
            np.average(known["income"] > 30, weights=known["w"]),
        ]
        assert found.loc[region].tolist() == pytest.approx(expected, rel=1e-6)
    each = {
        "total": frame.dp.count("region", weights="w", **EXACT)["count"],
        "income": frame.dp.mean("income", "region", weights="w", **EXACT)["income"],
        "age": frame.dp.sum("age", "region", weights="w", **EXACT)["age"],
        "rich": frame.dp.rate("income > 30", "region", weights="w", **EXACT)["rate"],
    }
    pd.testing.assert_frame_equal(pd.DataFrame(each), found, rtol=1e-6)
    bins = frame.dp.histogram("age", [0, 40, 200], weights="w", **EXACT)
    assert bins["count"].sum() == pytest.approx(found["total"].sum(), rel=1e-6)
    tables = frame.dp.margins(["region", "sex"], **OUTPUTS, **EXACT)
    pd.testing.assert_frame_equal(tables["region",], found, rtol=1e-5)


def test_missing_weights_can_count_or_leave_rows_out():
    for missing, total in (({"w": 2.0}, 2.0), ({"w": "drop"}, 0.0), ({"w": 99}, 3.7)):
        frame = people(missing=missing)
        w = frame["w"].clip(*BOUNDS["w"]).fillna(total)
        found = frame.dp.count(weights="w", **EXACT)
        assert found["count"].item() == pytest.approx(w.sum(), rel=1e-6)
        dropped = missing["w"] == "drop"
        assert (found.dp.certificate.query.where == "w == w") == dropped


@pytest.mark.parametrize(("origin", "span"), [(0, 7), (-3, 10), (0, 2**32), (-(2**32), 2**33)])
def test_parts_of_a_weight_are_the_nearest_integers(origin, span):
    rng = np.random.default_rng(1)
    x = np.append(rng.integers(origin, origin + span + 1, 200), [origin, origin + span])
    w = np.append(rng.integers(0, 2**30 + 1, 200), [2**30, 2**30])
    found = weigh_integers(w, x, origin, span)
    for part, weight, value in zip(found.tolist(), w.tolist(), x.tolist(), strict=True):
        assert abs(part - Fraction(weight * (value - origin), span)) <= Fraction(1, 2)
        assert 0 <= part <= weight
    assert (weigh_integers(w, 2 * origin - x, origin, span) == -found).all()
    assert not weigh_integers(w, x, origin, 0).any()


@pytest.mark.parametrize(
    "odd",
    [
        ["7", 1, 2.5, None, b"1", (1,), pd.NaT, 10**400, 1j, True],
        [math.nan] * 10,
        [-math.inf, math.inf] * 5,
    ],
    ids=["objects", "nothing", "infinities"],
)
def test_no_weight_raises_warns_or_changes_the_shape(odd):
    frame = people(10)
    frame["w"] = odd
    dpf.declare(frame, keys=KEYS, bounds=BOUNDS, privacy_unit=dpf.EACH_ROW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = frame.dp.aggregate("region", **OUTPUTS, epsilon=1)
    assert found.shape == (2, 4)
    assert [str(dtype) for dtype in found.dtypes] == ["float64"] * 4


def test_noise_is_that_of_a_count_times_the_largest_weight():
    frame = people()
    for mechanism in ("laplace", "gaussian"):
        spend = {"epsilon": 0.5, "delta": 1e-6, "mechanism": mechanism}
        asked = {"a": dpf.count("region"), "b": dpf.count("region", weights="w")}
        alone = [frame.dp.plan(one, **spend).table["std_error"].item() for one in asked.values()]
        assert alone[1] / alone[0] == pytest.approx(3.7, rel=0.02)  # that of rows is rounded
        both = frame.dp.plan(asked, **spend).table["std_error"]
        assert both.iloc[1] / both.iloc[0] == pytest.approx(3.7, rel=0.02)
    mean, total = (
        frame.dp.plan(one, epsilon=0.5, mechanism="laplace").table["std_error"].item()
        for one in (dpf.mean("age", weights="w"), dpf.mean("age"))
    )
    assert mean / total == pytest.approx(3.7, rel=0.02)
    shown = frame.dp.plan(OUTPUTS["income"], epsilon=1, rows=1000).table
    assert shown["per"].item() == "cell of weighted total 1,000"
    certificate = frame.dp.count(weights="w", epsilon=0.5, mechanism="laplace").dp.certificate
    noise = certificate.columns[0].noise
    assert noise.scale * noise.step == pytest.approx(3.7 / 0.5, rel=1e-6)
    assert LAPLACE.standard_deviation(noise.scale) * noise.step == pytest.approx(
        certificate.columns[0].std_error
    )


def test_parts_cost_what_the_weighted_total_costs():
    """A mean with its weighted total costs what the total alone does, with Laplace noise."""
    frame = people(missing={"income": 1.0})
    spend = {"epsilon": 0.5, "mechanism": "laplace"}
    both = dpf.aggregate(n=dpf.count(weights="w"), m=dpf.mean("income", weights="w"))
    total = frame.dp.plan(both, **spend).table.loc["n", "std_error"]
    alone = frame.dp.plan(dpf.count(weights="w"), **spend).table["std_error"].item()
    assert total == pytest.approx(math.sqrt(2) * alone, rel=1e-3)  # the sum of two parts


def test_certificates_intervals_plots_and_files_know_the_weights(tmp_path):
    frame = people()
    found = frame.dp.aggregate("region", **OUTPUTS, epsilon=5)
    text = str(dpf.verify(found))
    assert "weighted mean of income, bounds -20 to 80; w 0 to 3.7" in text
    assert "total: weighted total, bounds w 0 to 3.7" in text
    page = dpf.report(found)
    assert "w, what each row counts for" in page and "weighted rate of income" in page
    bars = found.dp.interval(1 - 1e-7)  # 8 of them: one run in a million fails
    exact = frame.dp.aggregate("region", **OUTPUTS, **EXACT)
    for name in OUTPUTS:
        assert (bars[f"{name}_low"] <= exact[name]).all()
        assert (exact[name] <= bars[f"{name}_high"]).all()
    assert found.dp.plot(column="income").get_xlim()
    dpf.write_csv(found, tmp_path / "a.csv")
    dpf.write_parquet(found, tmp_path / "a.parquet")
    for again in (dpf.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "a.parquet")):
        assert dpf.verify(again) == dpf.verify(found)
    means = found.dp.ratio("age", "total")
    assert means["age_per_total_low"].between(0, 90).all()
    changed = found.dp.change(frame.dp.aggregate("region", **OUTPUTS, epsilon=5))
    assert changed.shape == (2, 3 * len(OUTPUTS))


def test_what_weights_cannot_do_is_refused_with_the_way_out():
    frame = people()
    total = frame.dp.count(["region", "sex"], weights="w", epsilon=1)
    mean = frame.dp.mean("age", weights="w", epsilon=1)
    for call, telling in (
        (lambda: dpf.mean("age", weights="w", sampling=True), "Leave out"),
        (lambda: total.dp.interval(sampling=True), "weighted sample"),
        (total.dp.independence, "each row to count 1, and 'count' is weighted"),
        (lambda: dpf.sum("age", weights="w", n=3), "cannot go with n="),
        (lambda: dpf.margins(["sex"], weights="w"), "count=dpf.count(weights=...)"),
        (lambda: dpf.aggregate(a=dpf.count(), b=dpf.count(weights="w")), "must be the same"),
        (lambda: dpf.count(weights=["w"]), "one column"),
        (lambda: frame.dp.mean("age", weights="w", denoise="auto", epsilon=1), "without weights"),
        (lambda: mean.dp.denoise(columns="age"), "columns must name counts, sums, and means"),
    ):
        with pytest.raises(QueryError, match=telling.replace("(", r"\(").replace(")", r"\)")):
            call()
    rows = frame.dp.count(["region", "sex"], epsilon=1)
    with pytest.raises(QueryError, match="different weights"):
        total.dp.change(rows)
    for bounds in ((-1, 3), (0, 0), (pd.Timestamp(0), pd.Timestamp("2026-01-01"))):
        dpf.declare(frame, keys=KEYS, bounds={**BOUNDS, "w": bounds}, privacy_unit=dpf.EACH_ROW)
        with pytest.raises((DeclarationError, QueryError), match="weight"):
            frame.dp.count(weights="w", epsilon=1)
    dpf.declare(frame, keys=KEYS, privacy_unit=dpf.EACH_ROW)
    with pytest.raises(DeclarationError, match="no public bounds for 'w'"):
        frame.dp.count(weights="w", epsilon=1)


def test_diagnose_shows_what_clipping_does_to_weights():
    frame = people()
    found = frame.dp.diagnose(OUTPUTS["income"]).loc["weights w"]
    w = frame["w"]
    finite = w[np.isfinite(w) & (w > 0)]
    less = (finite - 3.7).clip(0).sum() / finite.sum()
    clipped = [w.isna().sum(), 0, (w < 0).sum(), (w > 3.7).sum()]
    counted = found.loc["counted", "rows"]
    assert found["rows"].tolist() == [len(frame) - counted, counted, *clipped]
    assert found.loc["of these, w is missing", "hint"] == "counted as 0"
    assert found["hint"].iloc[-1] == f"clipped: {less:.2%} less of the weighted total"
    frame["w"] = pd.Series("heavy", index=frame.index, dtype=object)
    dpf.declare(frame, keys=KEYS, bounds=BOUNDS, privacy_unit=dpf.EACH_ROW)
    hints = frame.dp.diagnose(OUTPUTS["total"]).loc["weights w"]["hint"]
    assert "no value can match" in hints.loc["of these, w is not a number"]


def test_a_unit_counts_with_the_weights_of_the_rows_that_caps_leave():
    frame = people(privacy_unit="sex", max_rows=2)
    found = frame.dp.aggregate(n=dpf.count(weights="w"), epsilon=1, mechanism="laplace")
    noise = found.dp.certificate.columns[0].noise
    assert noise.scale * noise.step == pytest.approx(2 * 3.7)


def test_certificates_of_the_smallest_totals_can_be_read():
    frame = people(budget=dpf.Budget(9))
    assert dpf.verify(frame.dp.sum("age", bounds=(0, 0), weights="w", epsilon=1))
    frame.dp.declare(bounds={**BOUNDS, "w": (0, 1e-200)})
    with pytest.raises(DeclarationError, match="smaller unit"):
        frame.dp.sum("age", bounds=(0, 1e-200), weights="w", epsilon=1)
    assert len(frame.dp.ledger.entries) == 1


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "box", "correlated"])
def test_a_total_beside_its_mean_is_read_off_the_same_parts(mechanism):
    frame = people(missing={"income": 30, "age": 40})
    both = dpf.aggregate(
        "region",
        total=dpf.sum("age", weights="w"),
        mean=dpf.mean("age", weights="w"),
        rest=dpf.sum("income", weights="w"),
        n=dpf.count(weights="w"),
    )
    alone = {"s": dpf.sum("age", "region", weights="w"), "b": both}
    spend = {"epsilon": 1e9, "delta": 1e-6}
    if mechanism == "correlated":  # which means have no strategy for
        both = alone = dpf.sum(["age", "income"], "region", weights="w")
    found = frame.dp.release(alone, mechanism=mechanism, **spend)
    table = found if mechanism == "correlated" else found["b"]
    rows = clipped(frame).assign(income=frame["income"].fillna(30).clip(*BOUNDS["income"]))
    for region, own in rows.groupby("region"):
        total, income = (own["w"] * own["age"]).sum(), (own["w"] * own["income"]).sum()
        expected = {"total": total, "age": total, "rest": income, "income": income}
        expected |= {"mean": total / own["w"].sum(), "n": own["w"].sum()}
        for name, values in table.items():
            if name in expected:
                assert values[region] == pytest.approx(expected[name], rel=1e-4)
        if mechanism != "correlated":
            assert found["s"].loc[region, "age"] == pytest.approx(total, rel=1e-4)


def test_a_total_beside_its_mean_costs_no_more_than_the_mean():
    frame = people(missing={"age": 40})
    parts = {"total": dpf.sum("age", weights="w"), "mean": dpf.mean("age", weights="w")}
    how = {"epsilon": 1, "mechanism": "laplace"}
    both = frame.dp.plan(dpf.aggregate(**parts), **how).table["std_error"]
    assert both["mean"] == pytest.approx(
        frame.dp.plan(parts["mean"], **how).table["std_error"].item()
    )
    scale = math.sqrt(2) * 3.7
    assert both["total"] == pytest.approx(scale * math.hypot(18, 90), rel=1e-3)
