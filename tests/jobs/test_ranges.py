"""Plan files that ask for distributions and quantiles."""

import numpy as np
import pandas as pd
import pytest
from support.planning import Overrides, read_plan
from support.terminal import SOUND, main

import dpframe as dpf
from dpframe.errors import PlanFileError

PLAN = """
[data]
path = "trips.csv"

[declare]
each_row = true
keys.zone = ["A", "B"]
bounds.fare = [0, 40]

[queries.fares]
kind = "ranges"
column = "fare"
bins = 64
by = "zone"

[queries.half]
kind = "quantile"
column = "fare"
q = [0.25, 0.5]
by = "zone"
level = 0.9
simultaneous = true

[queries.tip]
kind = "quantile"
column = "tip"
q = 0.5
bounds = [0, 10]
bins = { from = 0, to = 10, bins = 20 }

[release]
epsilon = 1
name = "trips"
files = ["{query}.csv", "{query}.parquet"]

[ledger]
path = "trips.ledger"
"""


@pytest.fixture
def plan(tmp_path):
    rows = range(400)
    frame = {"zone": ["AB"[k % 2] for k in rows], "fare": [k % 40 + 0.5 for k in rows]}
    pd.DataFrame({**frame, "tip": [k % 9 + 0.5 for k in rows]}).to_csv(
        tmp_path / "trips.csv", index=False
    )
    dpf.Ledger.create(tmp_path / "trips.ledger", budget=dpf.Budget(epsilon=3, delta=1e-6))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_a_plan_is_previewed_and_released(plan, capsys):
    assert main(["preview", str(plan)]) == 0
    assert main(["release", str(plan)]) == 0, capsys.readouterr()
    folder = plan.parent
    assert dpf.read_csv(folder / "fares.csv").shape == (128, 1)
    half = dpf.read_csv(folder / "half.csv")
    assert list(half.columns) == ["fare", "fare_low", "fare_high"]
    assert list(half.index.get_level_values("quantile").unique()) == [0.25, 0.5]
    steps = half.dp.certificate.table.definitions
    assert [step.end for step in steps] == ["low", "high"]
    assert all(step.level == 0.9 and step.simultaneous for step in steps)
    assert dpf.verify(pd.read_parquet(folder / "tip.parquet")).table.definitions


@pytest.mark.parametrize("window", ["4", '"expanding"'])
def test_sums_that_matter_are_rehearsed_and_released(plan, window, capsys):
    given = PLAN.replace("bins = 64", f"bins = 64\nwindow = {window}", 1)
    gaussian = 'epsilon = 1\ndelta = 1e-7\nmechanism = "gaussian"'
    plan.write_text(given.replace("epsilon = 1", gaussian))
    tried = ["rehearse", str(plan), "--output", str(plan.parent / "tried")]
    assert main(tried) == SOUND, capsys.readouterr()
    assert main(["release", str(plan)]) == 0, capsys.readouterr()
    assert main(["verify", str(plan.parent / "fares.csv")]) == 0
    fares = dpf.read_csv(plan.parent / "fares.csv")
    assert str(fares.dp.certificate.mechanism.window) == window.strip('"')
    (error,) = fares.dp.between(0, 10)["std_error"].unique()
    known = fares.dp.certificate.mechanism.by_block["0"]
    assert error == pytest.approx(known.variance(np.repeat([1.0, 0.0], [16, 48])) ** 0.5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bins = 64", 'bins = "many"', "bins"),
        ("bins = 64", "bins = 0", "must be from 1"),
        ("bins = 64", 'bins = 64\nwindow = "rolling"', "window"),
        ("bins = 64", "bins = 64\nwindow = 65", "window must be a whole number from 1 to 64"),
        ("q = 0.5", "q = 50", "above 0 and below 1"),
        ("level = 0.9", "level = 9", "level"),
        ("simultaneous = true", "simultaneous = 1", "simultaneous"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(plan, old, new, words):
    plan.write_text(PLAN.replace(old, new, 1))
    with pytest.raises(PlanFileError, match=words):
        read_plan(plan, Overrides())
