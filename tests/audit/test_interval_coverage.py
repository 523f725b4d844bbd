"""Intervals hold what they say: 10,000 releases of each mechanism.

A coverage of 95 % is seen with a standard error of 0.22 % in 10,000 releases: it lies outside of
94 % to 96 % with chance 5e-6. Scales are large enough that whole numbers, which make intervals a
little wider, do not show.
"""

import numpy as np
import pandas as pd
import pytest

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
    assert (single / RELEASES < 0.96).all()
    assert (narrow / RELEASES < 0.94).all()  # a seventh too narrow is found
    # 4 standard errors below: chance 3e-5 where it is exactly 95 %
    assert all_at_once / RELEASES >= 0.95 - 4 * 0.0022
