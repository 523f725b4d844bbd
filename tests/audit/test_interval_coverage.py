"""Intervals hold what they say: 10,000 releases of each mechanism.

A coverage of 95 % is seen with a standard error of 0.22 % in 10,000 releases: it lies outside of
94 % to 96 % with chance 5e-6. Scales are large enough that whole numbers, which make intervals a
little wider, do not show.
"""

import numpy as np
import pandas as pd
import pytest
from support.quotients import changes, quotients_of

import dpframe as dpf

pytestmark = pytest.mark.audit

RELEASES, LEVEL = 10_000, 0.95
ZONES = ["A", "B", "C"]
FARES = {"A": 4.0, "B": 9.0, "C": 1.0}
ROWS = 4_000
QUERY = dpf.aggregate(
    "zone",
    n=dpf.count(),
    total=dpf.sum("fare"),
    mean=dpf.mean("fare"),
    rows=dpf.count(where="fare > 2"),
)
SPENDS = {
    "gaussian": {"epsilon": 0.3, "delta": 1e-6},
    "correlated": {"epsilon": 0.3, "delta": 1e-6},
    "classical": {"epsilon": 0.3, "delta": 1e-6},
    "laplace": {"epsilon": 0.3},
}


def trips():
    zone = np.repeat(ZONES, ROWS)
    frame = pd.DataFrame({"zone": zone, "fare": pd.Series(zone).map(FARES)})
    frame.dp.declare(keys={"zone": ZONES}, bounds={"fare": (0, 10)})
    return frame


def truth():
    fares = np.array([FARES[zone] for zone in ZONES])
    rows = np.where(fares > 2, ROWS, 0)
    return np.column_stack([np.full(3, ROWS), ROWS * fares, fares, rows])


def held(made, *, simultaneous, factor=1.0):
    """Whether each interval holds the truth, if its width is multiplied by a factor."""
    bars = made.dp.interval(LEVEL, simultaneous=simultaneous).to_numpy(np.float64)
    middle, half = (bars[:, 1::2] + bars[:, ::2]) / 2, (bars[:, 1::2] - bars[:, ::2]) / 2
    return np.abs(truth() - middle) <= half * factor + 1e-9


@pytest.mark.parametrize("mechanism", SPENDS)
def test_intervals_cover_as_often_as_they_say(mechanism):
    frame = trips()
    single, narrow, all_at_once = np.zeros((3, 4)), np.zeros((3, 4)), 0
    for _ in range(RELEASES):
        made = frame.dp.release(QUERY, mechanism=mechanism, **SPENDS[mechanism])
        single += held(made, simultaneous=False)
        narrow += held(made, simultaneous=False, factor=0.85)
        all_at_once += held(made, simultaneous=True).all()
    assert (single / RELEASES > 0.94).all()
    cut = truth() == 0  # ends below 0 are cut off: 0 is held wherever noise is negative
    # counts of several noises may be half an integer wider to each side, of a deviation of 18
    most = 0.97 if mechanism == "correlated" else 0.96
    assert (single[~cut] / RELEASES < most).all()
    assert (narrow / RELEASES < 0.94).all()  # a seventh too narrow is found
    # 4 standard errors below: chance 3e-5 where it is exactly 95 %
    assert all_at_once / RELEASES >= 0.95 - 4 * 0.0022


GROUPS = 8_000


@pytest.mark.parametrize("epsilon", [2, 3, 6])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_of_staircase_noise_hold_as_often_as_they_say(epsilon, level):
    # of so many groups, 95 % is seen with a standard error of 0.25 %, 80 % with 0.45 %: five of
    # that are reached with chance 6e-7, and a half-width a fifth too narrow is found
    frame = pd.DataFrame({"g": np.repeat(np.arange(GROUPS), 4), "h": np.tile(np.arange(4), GROUPS)})
    frame["x"] = 7.0
    frame.dp.declare(keys={"g": range(GROUPS), "h": range(4)}, bounds={"x": (0, 10)})
    before, now = (frame.dp.sum("x", by=["g", "h"], epsilon=epsilon) for _ in range(2))
    assert before.dp.certificate.mechanism.law == "staircase"
    first = [h == 0 for _, h in before.index]  # shares of a group go together
    found = {
        "a sum": (before.dp.interval(level), 7.0),
        "a change": (changes(now.dp.change(before, level))[["low", "high"]], 0.0),
        "a share": (quotients_of(before.dp.percent(level=level, by="g"))[["low", "high"]], 25.0),
    }
    error = 5 * np.sqrt(level * (1 - level) / GROUPS)
    for name, (bars, true) in found.items():
        low, high = bars.to_numpy(np.float64)[first].T
        middle, half = (low + high) / 2, (high - low) / 2
        off = np.abs(true - middle)
        covered, narrow = np.mean(off <= half + 1e-9), np.mean(off <= 0.8 * half)
        print(f"epsilon {epsilon}, {level}: {name} {covered:.4f}, a fifth narrower {narrow:.4f}")
        assert covered >= level - error
        assert covered <= level + 0.03 + error or name == "a share"
        assert narrow < level - (0 if name == "a share" else error)
