"""Working on units in groups and threads changes nothing."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.randomness import SYSTEM

from dpframe.engines import units as grouping
from dpframe.engines.units import Units
from dpframe.privacy import noise
from dpframe.privacy.neighbors import Caps

WORD = 0x9E3779B97F4A7C15
COLUMNS = {
    "close together": lambda units: pd.Series(units, dtype="int16"),
    "far apart": lambda units: pd.Series(units, dtype="int64") * 2**55 - 7,
    "unsigned": lambda units: pd.Series(units, dtype="uint64") * 2**59,
    "nullable": lambda units: pd.Series(units, dtype="Int64").replace(3, pd.NA) * 2**40,
    "floats": lambda units: pd.Series(units, dtype="float64").replace({3: np.nan, 1: -0.0}) * 1e300,
    "halves": lambda units: pd.Series(units, dtype="float16").replace(3, np.nan) / 2,
    "times": lambda units: pd.to_datetime(pd.Series(units, dtype="int64") * 10**17),
    "texts": lambda units: pd.Series(units).map(str).replace("3", None),
    "objects": lambda units: pd.Series(
        [[None, 1, 1.0, True, "a", (1,)][u] for u in units], dtype=object
    ),
    "categories": lambda units: pd.Series(units).astype("category"),
    "sparse": lambda units: pd.Series(units).astype("Sparse[int]"),
}
PAIRS = {
    "close together": ("close together", "texts"),
    "numbered in two rounds": ("texts", "floats", "objects"),
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kinds", [*((kind,) for kind in COLUMNS), *PAIRS.values()], ids=str)
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=70),
    caps=st.sampled_from([Caps(rows=2), Caps(groups=1, rows_per_group=2), Caps(3, 2, 2), Caps()]),
    threads=st.sampled_from([1, 3]),
    most=st.sampled_from([1 << 62, 1]),
)
@settings(max_examples=40)
def test_groups_of_units_keep_what_all_units_together_keep(kinds, rows, caps, threads, most):
    """With the same random word for everyone: a unit is in one group, with its rows in order."""
    columns = [
        COLUMNS[kind]([unit // (at + 1) for unit, _ in rows]) for at, kind in enumerate(kinds)
    ]
    cells = np.array([cell for _, cell in rows], np.uint8)
    words = mock.patch.object(noise, "random_words", lambda n, _: np.full(n, WORD, np.uint64))
    with words, mock.patch.object(grouping, "_MOST", most):
        whole = Units(columns)
        expected = whole.choose(cells, 3, caps, SYSTEM)
        with mock.patch.object(grouping, "_GROUP", 5):
            parted = Units(columns, threads)
            found = parted.choose(cells, 3, caps, SYSTEM)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(parted.first(found), whole.first(found))


@pytest.mark.parametrize("kind", ["far apart", "floats", "texts"])
def test_groups_are_about_as_large_as_they_should_be(kind):
    units = np.random.default_rng(1).integers(0, 40_000, 100_000)
    column = pd.Series(units) * (2**40 + 8) if kind == "far apart" else pd.Series(units)
    column = column.astype("float64") / 3 if kind == "floats" else column
    column = column.map(str) if kind == "texts" else column
    with mock.patch.object(grouping, "_GROUP", 10_000):
        sizes = [len(rows) for rows, _ in Units([column])._groups]
    assert sum(sizes) == 100_000
    assert 5 <= len(sizes) <= 20
    assert max(sizes) < 25_000
