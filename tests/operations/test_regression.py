"""Regressions, released by every door; missing where noise hides that covariates vary."""

import math

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.terminal import main

import dpframe as dpf
from dpframe.errors import QueryError

LITTLE = {"epsilon": 1e7}
BOUNDS = {"age": (20, 90), "dose": (-5, 5), "cost": (0, 400)}


PLAN = """
[data]
path = "visits.csv"

[declare]
each_row = true
bounds = { age = [20, 90], dose = [-5, 5], cost = [0, 400] }

[queries.fit]
kind = "regression"
y = "cost"
x = ["age", "dose"]

[release]
epsilon = 100
name = "fit"
files = "fit.csv"

[ledger]
path = "visits.ledger"
"""


def frame_of(rows=3_000, **facts):
    rng = np.random.default_rng(3)
    age, dose = rng.integers(20, 91, rows), rng.normal(1, 1.5, rows).clip(-5, 5)
    frame = pd.DataFrame({"age": age, "dose": dose, "ward": np.array(["a", "b"])[age % 2]})
    frame["cost"] = (30 + 2.5 * age - 12 * dose + rng.normal(0, 15, rows)).clip(0, 400)
    known = {"bounds": BOUNDS, "keys": {"ward": ["a", "b"]}, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**(known | facts))
    return frame


def fit_of(frame):
    known = np.stack([np.ones(len(frame)), frame["age"], frame["dose"]], axis=1)
    found, *_ = np.linalg.lstsq(known, frame["cost"])
    explained = 1 - (frame["cost"] - known @ found).var(ddof=0) / frame["cost"].var(ddof=0)
    return [*found, explained]


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["box", "laplace", "gaussian"])
def test_with_little_noise_the_fit_is_that_of_least_squares(mechanism, neighboring):
    frame = frame_of(neighboring=neighboring)
    delta = {"delta": 1e-6} if mechanism == "gaussian" else {}
    made = frame.dp.regression(
        "cost", ["age", "dose"], by="ward", mechanism=mechanism, **LITTLE, **delta
    )
    assert [*made] == ["intercept", "age", "dose", "r_squared"]
    for ward, own in frame.groupby("ward"):
        assert made.loc[ward].tolist() == pytest.approx(fit_of(own), rel=3e-3)
    again = dpf.release(frame, dpf.regression("cost", ["age", "dose"], "ward"), **LITTLE)
    assert again.to_numpy() == pytest.approx(made.to_numpy(), rel=3e-3)


def test_rows_without_one_of_the_values_are_left_out():
    frame = frame_of()
    frame.loc[::7, "dose"] = np.nan
    frame.loc[::5, "cost"] = np.nan
    made = frame.dp.regression("cost", ["age", "dose"], where="age > 30", **LITTLE)
    there = frame[frame["age"] > 30].dropna()
    assert made.iloc[0].tolist() == pytest.approx(fit_of(there), rel=3e-3)


def test_units_are_capped_and_certificates_read_back(tmp_path):
    frame = frame_of().assign(who=np.arange(3_000) // 2)
    facts = {"bounds": BOUNDS, "keys": {"ward": ["a", "b"]}}
    frame.dp.declare(privacy_unit="who", max_rows=2, max_rows_per_group=1, **facts)
    plan = frame.dp.plan(dpf.regression("cost", ["age", "dose"], "ward"), epsilon=3)
    assert (plan.table["mechanism"] == "box").all()
    made = plan.release()
    dpf.verify(made)
    dpf.write_csv(made, tmp_path / "fit.csv")
    back = dpf.read_csv(tmp_path / "fit.csv")
    assert back.dp.interval().to_numpy() == pytest.approx(made.dp.interval().to_numpy())
    assert "regression of cost on age, dose by ward" in str(made.dp.certificate)


def test_plan_files_name_covariates(tmp_path):
    frame_of().to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "plan.toml").write_text(PLAN)
    plan, trial = str(tmp_path / "plan.toml"), str(tmp_path / "trial")
    dpf.Ledger.create(tmp_path / "visits.ledger", budget=dpf.Budget(epsilon=100))
    assert main(["rehearse", plan, "--output", trial]) == 0
    assert main(["release", plan]) == 0
    made = dpf.read_csv(tmp_path / "fit.csv")
    assert made["age"].item() == pytest.approx(2.5, abs=0.2)
    assert [*made] == ["intercept", "age", "dose", "r_squared"]


def test_where_noise_hides_all_nothing_is_shown():
    frame = frame_of(rows=40)
    made = frame.dp.regression("cost", ["age", "dose"], epsilon=0.01)
    assert made.isna().all(axis=None)
    bars = made.dp.interval().iloc[0]
    assert bars[["age_low", "age_high"]].tolist() == [-np.inf, np.inf]
    assert bars[["r_squared_low", "r_squared_high"]].tolist() == [0, 1]


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("spend", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}])
def test_intervals_hold(level, spend):
    groups, rows = 400, 1_500
    frame = frame_of(rows)
    truth = fit_of(frame)
    many = pd.concat([frame.assign(g=at) for at in range(groups)])
    many.dp.declare(keys={"g": range(groups)}, bounds=BOUNDS, privacy_unit=dpf.EACH_ROW)
    mechanism = {"mechanism": "gaussian"} if "delta" in spend else {}
    made = many.dp.regression("cost", ["age", "dose"], by="g", **spend, **mechanism)
    bars = made.dp.interval(level)
    for name, value in zip(made, truth, strict=True):
        known = made[name].notna()
        held = (bars[f"{name}_low"] <= value + 0.05) & (value - 0.05 <= bars[f"{name}_high"])
        # of 400 intervals, or those shown: five standard errors, below 1e-6
        few = known.sum()
        assert few > groups / 2
        assert held[known].mean() > level - 5 * math.sqrt(level * (1 - level) / few)


@pytest.mark.parametrize(
    ("x", "words", "name"),
    [
        ([], "1 to 5 columns", "x"),
        (list("abcdef"), "1 to 5 columns", "x"),
        (["age", "cost"], "must not name y", "x"),
        (["intercept"], "as the regression names its own", "x"),
        ({"age"}, "column label or a list", "x"),
    ],
)
def test_what_is_no_covariate_is_refused(x, words, name):
    with raises(QueryError, words, parameter=name):
        dpf.regression("cost", x)


def test_a_regression_is_a_query_of_its_own():
    with raises(QueryError, "go through release", parameter="r"):
        dpf.aggregate("ward", r=dpf.regression("cost", "age"))
    both = {"n": dpf.count("ward"), "fit": dpf.regression("cost", "age", "ward")}
    made = frame_of().dp.release(both, epsilon=2)
    assert made["n"].shape == (2, 1) and made["fit"].shape == (2, 3)
