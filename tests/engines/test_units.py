"""Units are told apart as in a dict, and working on them in groups and threads changes nothing."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.randomness import SYSTEM

from dpframe.engines import units as grouping
from dpframe.engines.units import Units, unit_codes
from dpframe.privacy import noise
from dpframe.privacy.neighbors import Caps


class Unhashable:
    def __hash__(self):
        raise RuntimeError("private")


STAMPS = [
    pd.Timestamp("2024-01-01"),
    pd.NaT,
    pd.Timestamp("2262-01-01"),
    pd.Timestamp("2024-01-01"),
]
MISSING = (None, np.nan)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([-128, 127, -128, 0], "int8"),
        ([2**63 - 1, -(2**63), 0, 0], "int64"),
        ([2**64 - 1, 0, 2**64 - 1], "uint64"),
        ([2**64 - 1, 2**64 - 2, 2**64 - 1], "uint64"),
        ([True, False, True], "bool"),
        ([0.0, -0.0, np.nan, 1.5, np.inf], "float64"),
        ([1, 1 + 1j, 1], "complex128"),
        ([1, None, 2**53 + 1, 2**53, 1], "Int64"),
        ([True, None, True], "boolean"),
        ([2**40, None, 1, 2**40], "int64[pyarrow]"),
        ([0.5, None, 0.5], "double[pyarrow]"),
        (["a", None, "b", "a", ""], "str"),
        (["a", None, "b", "a", ""], "string[pyarrow]"),
        (["a", None, "b", "a"], "string[python]"),
        (["a", None, "b", "a", "\ud800"], "object"),
        ([1, True, 1.0, "1", 2, "1", None, pd.NA, np.nan, pd.NaT, (1, 2), (1, 2)], "object"),
        (["a", None, "b", "a"], "category"),
        (STAMPS, "datetime64[ns]"),
        (STAMPS, "datetime64[s, UTC]"),
        (STAMPS, "period[D]"),
        ([0, 0, 1, 1], "Sparse[int]"),
        ([], "int64"),
        ([], "object"),
        ([None, None], "float64"),
    ],
)
def test_units_are_told_apart_as_in_a_dict(values, dtype):
    column = pd.Series(values, dtype=dtype)
    known = {}
    boxed = [None if gone else value for value, gone in zip(column, column.isna(), strict=True)]
    expected = [None if unit is None else known.setdefault(unit, len(known)) for unit in boxed]
    codes, count = unit_codes([column])
    assert all(
        (code == count) == (unit is None) for code, unit in zip(codes, expected, strict=True)
    )
    assert len(set(zip(codes.tolist(), expected, strict=True))) == len(set(expected))
    assert codes.min(initial=0) >= 0
    assert codes.max(initial=0) <= count


def test_units_that_cannot_be_hashed_are_dropped():
    column = pd.Series([Unhashable(), [1], "a", {}, 2, "a"], dtype=object)
    codes, count = unit_codes([column])
    assert (codes == count).tolist() == [True, True, False, True, False, False]
    assert codes[2] == codes[5] != codes[4]
    mask = Units([column]).choose(np.zeros(6, np.uint8), 1, Caps(rows=5), SYSTEM)
    assert mask.tolist() == [False, False, True, False, True, True]


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
