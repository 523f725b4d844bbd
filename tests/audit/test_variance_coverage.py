"""Intervals of variances and standard deviations hold what they say, from 1 to 10,000 rows.

One release has many groups alike: 20,000 intervals a case, with a standard error of 0.15 % where 95
% hold. They are first-order, so that 93 % is asked for in small groups; of 10,000 rows, 94.2 %.
"""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf

pytestmark = pytest.mark.audit

INTERVALS = 20_000
SPENDS = {
    "laplace": {"epsilon": 1.0},
    "box": {"epsilon": 1.0},
    "gaussian": {"epsilon": 1.0, "delta": 1e-6},
}
SHAPES = {"middle": (0.5, 0.1), "ends": (0.5, 0.5), "off": (0.8, 0.05)}
QUERY = dpf.aggregate("g", n=dpf.count(), v=dpf.var("x"), s=dpf.std("x"))


def frame_of(rows, center, half):
    """Groups alike: half of the rows lie above the center, half below."""
    groups = min(INTERVALS, 2_000_000 // rows)
    x = np.where(np.arange(rows) % 2 == 0, center - half, center + half)
    frame = pd.DataFrame({"g": np.repeat(np.arange(groups), rows), "x": np.tile(x, groups)})
    facts = {"keys": {"g": range(groups)}, "bounds": {"x": (0, 1)}}
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, **facts)
    return frame, x.var(), INTERVALS // groups


def covered(made, variance, factor=1.0):
    """Parts of the intervals of variances and deviations that hold the truth."""
    bars = made.dp.interval()
    value = made["v"].to_numpy()
    low, high = (value + factor * (bars[end].to_numpy() - value) for end in ("v_low", "v_high"))
    # where nothing is known, cells are missing
    inside = (low - 1e-9 <= variance) & (variance <= high + 1e-9) | np.isnan(value)
    root = np.sqrt(variance)
    roots = (bars["s_low"] - 1e-9 <= root) & (root <= bars["s_high"] + 1e-9) | made["s"].isna()
    return inside.mean(), roots.mean()


@pytest.mark.parametrize("mechanism", SPENDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", [1, 10, 100, 1_000, 10_000])
def test_intervals_cover_as_often_as_they_say(rows, shape, mechanism):
    frame, variance, times = frame_of(rows, *SHAPES[shape])
    found = [
        covered(frame.dp.release(QUERY, mechanism=mechanism, **SPENDS[mechanism]), variance)
        for _ in range(times)
    ]
    assert (np.mean(found, axis=0) >= (0.942 if rows == 10_000 else 0.93)).all()


@pytest.mark.parametrize("mechanism", SPENDS)
def test_intervals_that_are_too_narrow_are_found(mechanism):
    frame, variance, times = frame_of(10_000, *SHAPES["middle"])
    found = [
        covered(frame.dp.release(QUERY, mechanism=mechanism, **SPENDS[mechanism]), variance, 0.7)
        for _ in range(times)
    ]
    assert np.mean(found, axis=0)[0] < 0.93
