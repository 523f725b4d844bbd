"""Collections of Dask are totaled by the workers of a cluster, of two processes here."""

import warnings

import numpy as np
import pandas as pd
import pytest
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines import engine_for
from dpframe.errors import ReleaseError
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytest.importorskip("dpframe.dask")


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(**settings, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def make(place):
    """Make a partition in a worker: text and numbers for units, of a dtype of its own."""
    rows = np.arange(36)
    units = rows // 3
    kinds = [units, units.astype(float), units.astype(object), pd.Categorical(units)]
    frame = pd.DataFrame({"unit": kinds[place % 4], "zone": np.array(["A", "B"])[rows % 2]})
    return frame.assign(i=units, fare=rows / 4)


def collection(partitions):
    with dask.config.set({"dataframe.convert-string": False}):  # would make texts of objects
        return dd.from_map(make, range(partitions), meta=make(0).iloc[:0])


def frame(partitions):
    parts = [make(place).astype(object) for place in range(partitions)]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.full
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("partitions", [2, 70])
def test_no_unit_adds_more_than_its_caps(client, partitions):
    cells = Cells((KeyAxis("i", pd.RangeIndex(12)),))
    task = Task(cells, (Term("rows"), Term("units")), unit=("unit",), caps=Caps(rows=5))
    private = collection(partitions)
    (found,) = engine_for(private).totals(private, [task], SYSTEM)
    assert found.tolist() == [[5] * 12, [1] * 12]


@pytest.mark.full
def test_many_keys_are_sent_once(client):
    keys = pd.RangeIndex(300_000)
    task = Task(Cells((KeyAxis("i", keys),)), (Term("rows"),))
    private = collection(8)
    with warnings.catch_warnings(record=True) as shown:
        (found,) = engine_for(private).totals(private, [task], SYSTEM)
    assert not shown
    assert found.shape == (1, 300_000)
    assert found[0, :12].tolist() == [24] * 12
    assert found.sum() == 8 * 36


@pytest.mark.full
def test_errors_of_workers_quote_nothing(client):
    def fail(part):
        raise LookupError("the disk is gone")

    private = collection(2).map_partitions(fail, meta=make(0).iloc[:0])
    private.dp.declare(budget=dpf.Budget(epsilon=1))
    with pytest.raises(ReleaseError, match=r"^(?!.*the disk is gone)"):
        private.dp.count(epsilon=1)
    assert private.dp.budget.spent.epsilon == 1


@pytest.mark.full
def test_persisted_collections_are_used_where_they_are(client):
    private = collection(4).persist()
    private.dp.declare(privacy_unit="unit", max_rows=1, budget=dpf.Budget(epsilon=100))
    assert abs(private.dp.count(epsilon=60)["count"].item() - 12) < 2  # above: below 1e-20
