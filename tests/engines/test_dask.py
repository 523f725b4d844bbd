"""Collections of Dask add up to what one frame of pandas adds up to, however they are split."""

import decimal
import math

import numpy as np
import pandas as pd
import pytest
from support.dasking import ALL, GRID, KEYS, by_key, dask, of_parts, series, split, totals
from support.randomness import SYSTEM

from dpframe.engines import dask as engine_module
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, Task, Term
from dpframe.queries.where import Condition


@pytest.fixture(autouse=True)
def one_thread():
    """Threads are asked for where they matter."""
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def test_partitions_may_differ_in_dtype():
    """What a row adds does not depend on rows elsewhere, though metadata promise another dtype."""
    parts = [
        pd.DataFrame({"k": [2**53 + 1, 1], "u": [2**53 + 1, 1], "x": [1, 2]}),
        pd.DataFrame({"k": [2.0**53, 1.0], "u": [2.0**53, 1.0], "x": [0.5, math.nan]}),
        pd.DataFrame({"k": ["a", True], "u": ["a", True], "x": [None, "x"]}),
        pd.DataFrame({"k": [], "u": [], "x": []}),
        pd.DataFrame({"k": ["a"], "u": ["a"], "x": [1]}, dtype="category"),
    ]
    objects = pd.concat([part.astype(object) for part in parts], ignore_index=True)
    tasks = [
        by_key(Term("rows"), Term("valid", "x", GRID), Term("sum", "x", GRID)),
        by_key(Term("rows"), Term("sum", "x", GRID), unit=("u",), caps=ALL),
        Task(Cells(), (Term("units"),), unit=("u",), caps=ALL),
    ]
    found = totals(of_parts(parts), *tasks)
    for total, expected in zip(found, totals(objects, *tasks), strict=True):
        np.testing.assert_array_equal(total, expected)
    assert found[2].item() == 4  # 2**53 + 1, 2**53, 1 and "a"


@pytest.mark.parametrize("other", [1.5, None, "a", pd.Timestamp("2024-01-02"), 2.5])
def test_values_stay_as_they_are_beside_those_of_another_dtype(other):
    parts = [pd.DataFrame({"k": [key], "u": [7]}) for key in (2**53 + 1, other)]
    task = by_key(Term("rows"), Term("sum", "k", Grid(0, 0, 2**60)), unit=("u",), caps=ALL)
    rows, sums = totals(of_parts(parts), task)[0]
    assert rows[KEYS.index(2**53 + 1)] == 1
    assert sums[KEYS.index(2**53 + 1)] == 2**53  # numbers are added as floats
    assert rows.sum() == 1 + (other in KEYS)


def test_zeros_of_either_sign_stay_as_they_are():
    parts = [pd.DataFrame({"u": [1, 1], "x": series([zero] * 2, "category")}) for zero in (0, -0.0)]
    task = Task(Cells(), (Term("rows"),), Condition.parse("1 / x < 0"), unit=("u",), caps=ALL)
    assert totals(of_parts(parts), task)[0].item() == 2


WEIGHTS = 32 ** np.arange(12)  # digits of a sum tell what each unit adds
DIGITS = Grid(0, 0, 2**60)


def digits(total):
    return total[..., None] // WEIGHTS % 32


def crowd(units=range(12)):
    """Unit i has 3 + i rows, spread over all of a frame, whose weight is 32**i."""
    units = list(units)
    of = np.concatenate([np.arange(12)[3 + np.arange(12) > turn] for turn in range(14)])
    return pd.DataFrame(
        {"u": series([units[i] for i in of], "object"), "i": of, "x": WEIGHTS[of]}
    ).assign(k=lambda frame: frame.index // 5 % 3)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("partitions", [1, 3, 20, 90])
def test_no_unit_adds_more_than_its_rows(partitions):
    frame = crowd().infer_objects()
    collection = split(frame, min(partitions, len(frame)), empty=True)
    task = Task(Cells(), (Term("sum", "x", DIGITS), Term("units")), unit=("u",), caps=Caps(rows=5))
    for _ in range(2):
        found, units = totals(collection, task)[0][:, 0]
        assert digits(found).tolist() == [3, 4] + [5] * 10
        assert units == 12


LARGE = [pytest.param(partitions, marks=pytest.mark.full) for partitions in (1_000, 2_500)]


@pytest.mark.parametrize("clustered", [False, True], ids=["here", "cluster"])
@pytest.mark.parametrize("partitions", [64, 256, *LARGE])
def test_tasks_of_large_collections_are_a_few_for_each_partition(
    partitions, clustered, monkeypatch
):
    """Graphs are built and not computed."""
    if clustered:
        pytest.importorskip("distributed")
    buckets = min(partitions, max(8, (1 << 13) // partitions))
    keys = []

    def count(graphs):
        """Return pieces where they are asked for, and else totals."""
        (graph,) = graphs
        if isinstance(graph, list):
            keys.extend(graph[0].dask)  # all are of one graph
            return [[[b""] * buckets] * partitions]
        keys.extend(graph.dask)
        return [[0]]

    monkeypatch.setattr(engine_module, "_compute_graphs", count)
    monkeypatch.setattr(engine_module, "_is_of_cluster", lambda _: clustered)
    rows = pd.DataFrame({"u": np.arange(3)})
    collection = dask.dataframe.from_map(lambda _: rows, range(partitions), meta=rows.iloc[:0])
    task = Task(Cells(), (Term("rows"), Term("units")), unit=("u",), caps=Caps(rows=2))
    engine_module._added_up(collection, [[task]], engine_module.totals_of, SYSTEM)
    assert partitions < len(set(keys)) <= 12 * partitions
    transfers = [key for key in keys if "shuffle-transfer" in str(key)]
    assert len(transfers) == clustered * partitions


def test_equal_units_are_one_in_partitions_of_any_dtype():
    """Dask alone would hash 1, 1.0, True and Decimal(1) to partitions of their own."""
    ones = [1, 1.0, True, decimal.Decimal(1), 1 + 0j, np.float32(1)]
    moments = [pd.Timestamp("2024-01-01"), np.datetime64("2024-01-01", "s")]
    alike = [
        *(pd.Series([one] * 3) for one in ones[:3]),
        *(series([one] * 3, "object") for one in ones),
        *(series([1] * 3, dtype) for dtype in ("Int64", "category", "double[pyarrow]", "uint8")),
    ]
    times = [pd.Series([moments[1]] * 3), *(series([one] * 3, "object") for one in moments[:1])]
    for columns in (alike, times):
        parts = [pd.DataFrame({"u": column}) for column in columns]
        task = Task(Cells(), (Term("rows"), Term("units")), unit=("u",), caps=Caps(rows=4))
        assert totals(of_parts(parts), task)[0].ravel().tolist() == [4, 1]
