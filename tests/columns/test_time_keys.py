"""Keys that are an index of times are found as the same keys one by one are."""

import numpy as np
import pandas as pd
import pytest

from dpframe.columns.lookup import AxisKeys, search_of

HALF_SECONDS = pd.to_datetime(np.arange(-3, 9) * 500, unit="ms")
INDEXES = {
    "halves": HALF_SECONDS,
    "nanoseconds": HALF_SECONDS.as_unit("ns") + pd.Timedelta(1, "ns") * 7,
    "seconds": pd.date_range("1999-12-31", periods=9, freq="h", unit="s"),
    "beyond nanoseconds": pd.DatetimeIndex(np.array([0, 2**36, 2**37], "datetime64[s]")),
    "zoned": pd.date_range("2026-10-25", periods=9, freq="30min", tz="Europe/Berlin"),
    "durations": pd.to_timedelta(np.arange(-3, 9) * 500, unit="ms"),
}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("name", INDEXES)
def test_an_index_of_times_is_searched_as_its_keys_are(name, aware, unit):
    index = INDEXES[name]
    listed = pd.Index(index.astype(object), dtype=object)
    around = index.asi8[:, None] // max(1, 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[index.unit])
    numbers = np.concatenate(
        [
            np.arange(-9, 9),
            index.asi8,
            np.ravel(around * 10 ** {"s": 0, "ms": 3, "us": 6}.get(unit, 0)),
        ]
    )
    for kind in "mM":
        dtype = np.dtype(f"{kind}8[{unit}]")
        found = search_of(AxisKeys(index), dtype, aware)(numbers)
        one_by_one = search_of(AxisKeys(listed), dtype, aware)(numbers)
        assert np.array_equal(found, one_by_one)
        held = kind == index.dtype.kind and (kind == "m" or aware == (index.tz is not None))
        assert held or (found == len(index)).all()
