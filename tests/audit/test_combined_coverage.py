"""Combinations of rates of small groups hold as often as they say, and are right on average.

Of 500 combinations, 95 % are seen with a standard error of 1 %: less than 92 % are seen with chance
1e-3 where 95 % are true, and by the seeds here they are not.
"""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf

pytestmark = pytest.mark.audit

GROUPS = 25
GAUSSIAN = {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"}
ages = np.geomspace(1, 0.1, 18)
CASES = {
    "50 cells of 50 rows": (2_000, np.full(50, 50), np.full(50, 0.02), None, GAUSSIAN),
    "18 cells of 40 rows": (500, np.full(18, 40), np.full(18, 0.01), None, GAUSSIAN),
    "50 cells of 15 rows": (
        500,
        np.full(50, 15),
        np.full(50, 0.1),
        None,
        {"epsilon": 0.5, "mechanism": "laplace"},
    ),
    "50 cells, a rate of .3": (500, np.full(50, 50), np.full(50, 0.3), None, GAUSSIAN),
    "a difference": (
        500,
        np.full(50, 50),
        np.repeat([0.02, 0.06], 25),
        np.repeat([-1, 1], 25) / 25,
        GAUSSIAN,
    ),
    "a standardized rate": (
        500,
        np.geomspace(400, 40, 18).astype(int),
        np.geomspace(0.005, 0.3, 18),
        ages / ages.sum(),
        {"epsilon": 1, "mechanism": "laplace"},
    ),
    "few rows beside many": (500, np.repeat([3, 100], [30, 5]), np.full(35, 0.3), None, GAUSSIAN),
    "cells of one row": (
        500,
        np.ones(50, int),
        np.full(50, 0.3),
        None,
        {"epsilon": 3, "mechanism": "laplace"},
    ),
    "three cells": (500, np.array([30, 60, 90]), np.array([0.5, 0.2, 0.05]), None, GAUSSIAN),
}


@pytest.mark.parametrize("case", CASES)
def test_combinations_of_rates_hold_as_often_as_they_say(case):
    number, rows, rates, weights, spend = CASES[case]
    rng, cells = np.random.default_rng(len(case)), len(rows)
    weights = np.full(cells, 1 / cells) if weights is None else weights
    truth, found = [], []
    for _ in range(number // GROUPS):
        met = rng.binomial(rows, rates, (GROUPS, cells))
        index = pd.MultiIndex.from_product([range(GROUPS), range(cells)], names=["g", "cell"])
        counts = pd.DataFrame({"n": np.tile(rows, GROUPS), "met": met.ravel()}, index)
        frame = counts.loc[index.repeat(counts["n"])].reset_index()
        frame["met"] = frame.groupby(["g", "cell"]).cumcount() < frame["met"]
        frame.dp.declare(keys={"g": range(GROUPS), "cell": range(cells)}, privacy_unit=dpf.EACH_ROW)
        made = frame.dp.release(dpf.aggregate(["g", "cell"], rate=dpf.rate("met")), **spend)
        truth += (met / rows @ weights).tolist()
        for g in range(GROUPS):
            own = pd.Series(weights, made.loc[[g]].index)
            found.append(made.dp.combine(own).iloc[0].to_numpy())
    truth = np.array(truth)
    estimate, _, low, high = np.array(found, float).T
    unknown = np.isnan(low)  # nothing is printed, and nothing missed
    held = np.mean(unknown | (low <= truth) & (truth <= high))
    print(
        f"{case}: {held:.4f} held, mean {truth.mean():.4f}, estimate {np.nanmean(estimate):.4f}, "
        f"error {np.nanstd(estimate - truth):.4f}, width {np.nanmedian(high - low):.4f}"
    )
    assert held >= 0.92
    if number == 2_000:
        assert 0.935 <= held <= 0.97
        assert 0.019 <= estimate.mean() <= 0.021
