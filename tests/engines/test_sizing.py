"""How much units fill of groups: as pandas counts it, in groups of units and in threads."""

import itertools
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.engines import units as grouping
from dpframe.engines.units import Codes, Units, unit_sizes
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.tasks import Cells, KeyAxis, Sizes

KINDS = ["rows", "groups", "rows_per_group"]
GROUPS = 3
BESIDE = [Caps(), Caps(groups=2, rows_per_group=2), Caps(rows=3), Caps(rows=4, groups=1)]


def by_pandas(units, groups, kind, others=NO_CAPS):
    """Sizes of the units that have some, by unit."""
    rows = pd.DataFrame({"u": units, "g": groups})
    rows = rows[rows["g"] < GROUPS].dropna()
    if kind == "groups":
        return rows.groupby("u")["g"].nunique()
    if kind == "rows_per_group":
        return rows.groupby(["u", "g"]).size().groupby("u").max()
    sizes = rows.groupby("u").size()
    left = pd.Series(
        {u: rows_left(own["g"].value_counts().tolist(), others) for u, own in rows.groupby("u")},
        dtype="int64",
    )
    dropped = sizes - left
    return left if kind == "rows" else dropped[dropped > 0]


def rows_left(sizes, caps):
    """Mean number of rows that a unit keeps, over all choices of its groups, rounded up."""
    sizes = [min(size, caps.rows_per_group or size) for size in sizes]
    choices = list(itertools.combinations(sizes, min(caps.groups or GROUPS, len(sizes))))
    mean = Fraction(sum(map(sum, choices)), len(choices))
    return min(math.ceil(mean), caps.rows or math.ceil(mean))


ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, GROUPS)), max_size=60)


@pytest.mark.parametrize("kind", [*KINDS, "dropped"])
@given(rows=ROWS, others=st.sampled_from(BESIDE))
@settings(max_examples=60)
def test_sizes_are_those_of_pandas(kind, rows, others):
    units, groups = np.array(rows, np.int64).reshape(-1, 2).T
    people = Codes(units, 5)  # unit 5 stands for none
    found = unit_sizes(people, Codes(groups, GROUPS), kind, others=others)
    known = units < 5
    expected = by_pandas(units[known], groups[known], kind, others)
    assert found.tolist() == expected.reindex(range(5), fill_value=0).tolist()


@pytest.mark.parametrize("kind", [*KINDS, "dropped"])
@pytest.mark.parametrize("threads", [1, 3])
@given(rows=ROWS, others=st.sampled_from(BESIDE))
@settings(max_examples=40)
def test_one_row_of_every_unit_is_in_the_bin_of_its_size(kind, threads, rows, others):
    units, groups = np.array(rows, np.int64).reshape(-1, 2).T
    column = pd.Series(units * 2**40, dtype="float64").where(units != 3)
    keys = pd.Index([1, 2, 4], name="max_rows")
    cells = Cells((KeyAxis("g", pd.RangeIndex(GROUPS)),))
    sizes = Sizes(cells, kind, KeyAxis("max_rows", keys), others)
    expected = by_pandas(column, groups, kind, others)
    bins = np.searchsorted([1, 2], expected.to_numpy())
    with mock.patch.object(grouping, "_GROUP", 4):
        cells = Units([column], threads).cells_of_sizes(groups.astype(np.uint8), sizes)
    placed = cells < 3
    assert sorted(column[placed]) == sorted(expected.index)
    assert dict(zip(column[placed], cells[placed], strict=True)) == dict(
        zip(expected.index, bins, strict=True)
    )
