"""Counts of units: whatever number of rows a unit has, and as pandas counts them."""

import numpy as np
import pandas as pd
import pytest

KEYS = list("ABCD")


def test_in_which_groups_a_unit_counts_does_not_depend_on_its_numbers_of_rows():
    # A and B are kept equally often, though A has nine rows of ten: the number of A among 1,000
    # units is binomial, and 500 +- 80 has a false-alarm rate of 5e-7; by rows it would be 900
    rows = [(group, unit % 40, unit // 40) for unit in range(1000) for group in "A" * 9 + "B"]
    frame = pd.DataFrame(rows, columns=["g", "u", "v"])
    frame.dp.declare(keys={"g": KEYS}, privacy_unit=["u", "v"], max_rows=1)
    found = frame.dp.units("g", epsilon=1e6)["units"]
    assert found.sum() == 1000
    assert abs(found["A"] - 500) < 80


@pytest.mark.parametrize("unit", ["u", ["u", "v"]], ids=str)
@pytest.mark.parametrize("where", [None, "x > 0"])
@pytest.mark.parametrize("by", [[], ["g"], ["g", "h"]])
def test_units_are_counted_as_pandas_counts_distinct_ones(by, where, unit):
    rng = np.random.default_rng(7)
    size = 3000
    frame = pd.DataFrame(
        {
            "g": rng.choice([*KEYS, "Z"], size),
            "h": rng.integers(0, 3, size),
            "u": rng.integers(0, 40, size).astype(float),
            "v": pd.Series(rng.choice(["a", "b", "c"], size)).where(rng.random(size) < 0.9),
            "x": rng.normal(size=size) - 1,
        }
    )
    frame.loc[::17, "u"] = np.nan
    frame.dp.declare(
        keys={"g": KEYS, "h": [0, 1, 2]}, privacy_unit=unit, max_rows_per_group=1, max_groups=12
    )
    found = frame.dp.units(by, where=where, epsilon=1e6)["units"]
    kept = frame if where is None else frame.query(where)
    distinct = kept.dropna(subset=unit).drop_duplicates([*by, *unit])
    if not by:
        assert found.tolist() == [len(distinct)]
        return
    expected = distinct.groupby(by).size().reindex(found.index, fill_value=0)
    assert found.tolist() == expected.tolist()
