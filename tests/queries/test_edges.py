"""One rule for all bins: the first edge belongs to the first bin, and labels say what counts."""

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dpf
from dpframe.columns.lookup import finder
from dpframe.queries.binned import bins_of
from dpframe.queries.edges import edges_of

DAY = pd.Timestamp("2024-01-01")


def places(axis, values):
    """The bins of some values, the number of bins where there is none."""
    column = pd.Series(values)
    return finder(axis, column)(column).tolist()


@given(st.lists(st.integers(-60, 60), min_size=2, max_size=6, unique=True))
def test_whole_numbers_have_whole_labels_where_they_are_declared(edges):
    edges = sorted(edges)
    queries = dpf.histogram("x", edges), dpf.ranges("x", edges)
    axes = [bins_of(one.bins, (edges[0], edges[-1]), integer=True) for one in queries]
    assert axes[0].keys.equals(axes[1].keys) and axes[0].keys.left.dtype == np.int64
    every = list(range(edges[0], edges[-1] + 1))
    assert places(axes[0], every) == np.searchsorted(edges[1:], every).tolist()
    assert places(axes[0], [edges[0] - 1, edges[-1] + 1]) == [len(axes[0])] * 2


@given(st.lists(st.integers(0, 90_000), min_size=2, max_size=5, unique=True), st.booleans())
def test_times_and_durations_follow_the_same_rule(minutes, points):
    origin = DAY if points else pd.Timedelta(0)
    edges = [origin + pd.Timedelta(number, "min") for number in sorted(minutes)]
    (axis,) = dpf.histogram("x", edges).bin_axes
    values = [*edges, *(edge - pd.Timedelta(1, "us") for edge in edges)]
    inside = [[at for at, label in enumerate(axis.keys) if value in label] for value in values]
    assert places(axis, values) == [held[0] if held else len(axis) for held in inside]
    assert places(axis, edges)[:2] == [0, 0]
    assert edges_of(axis.keys).tolist() == edges
    ranged = bins_of(dpf.ranges("x", edges).bins, (edges[0], edges[-1]), integer=False)
    assert ranged.keys.equals(axis.keys)


def test_labels_are_those_of_pandas_with_the_lowest_value():
    for edges in ([0, 18, 65], [0.5, 2.5], [-3, 0, 10], [2.25, 3]):
        labels = pd.cut([], edges, include_lowest=True).categories
        assert dpf.histogram("x", edges).bins.edges.equals(pd.IntervalIndex(labels))


@pytest.mark.parametrize("declared", [False, True])
def test_histogram_and_ranges_count_the_same_and_files_keep_it(declared, tmp_path):
    frame = pd.DataFrame({"x": [0] * 40 + [1] * 30 + [2] * 5})
    schema = pa.DataFrameSchema({"x": pa.Column(int)} if declared else {})
    frame.dp.declare(schema, privacy_unit=dpf.EACH_ROW)
    released = frame.dp.histogram("x", [0, 1, 2], epsilon=1e5)
    ranged = frame.dp.ranges("x", [0, 1, 2], epsilon=1e5)
    assert released["count"].tolist() == ranged["count"].round().tolist() == [70, 5]
    assert released.index.equals(ranged.index)
    for table in (released, ranged):
        dpf.write_csv(table, tmp_path / "x.csv")
        assert dpf.read_csv(tmp_path / "x.csv").index.equals(table.index)
        table.to_parquet(tmp_path / "x.parquet")
        assert dpf.verify(pd.read_parquet(tmp_path / "x.parquet"))
    assert ranged.dp.between(0, 1)["estimate"].round().item() == 70
    assert ranged.dp.quantile(0.01)["x_low"].item() == 0


def test_bins_that_do_not_hold_a_bound_are_refused_for_ranges():
    for closed in ("right", "left"):
        bins = pd.IntervalIndex.from_breaks([0, 1, 2], closed=closed)
        with pytest.raises(dpf.errors.QueryError, match="must hold all from bound to bound"):
            bins_of(dpf.ranges("x", bins).bins, (0.0, 2.0), integer=False)
        assert bins_of(dpf.ranges("x", bins).bins, (0.5, 1.5), integer=False).keys.closed == closed
