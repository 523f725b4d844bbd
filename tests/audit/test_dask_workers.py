"""Workers of a cluster are killed, short of memory, added, removed: same integers, one charge."""

import os
import random
import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.privacy.law import Law

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytest.importorskip("dpframe.dask")

pytestmark = [
    pytest.mark.audit,
    # sockets of what was killed
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PARTITIONS, ROWS = 12, 4000
SETTINGS = {
    "distributed.scheduler.allowed-failures": 30,
    "distributed.worker.memory.target": 0.001,  # what is kept is written to disk
    "distributed.logging.distributed": "critical",
}


def make(place):
    """Make a partition in a worker; it takes as long as workers live."""
    time.sleep(0.4)
    rows = np.arange(ROWS)
    zones = np.array(["A", "B", "C"])[rows % 3]
    return pd.DataFrame({"rider": rows, "zone": zones, "fare": rows % 40 / 2, "note": "x" * 100})


@contextmanager
def killed(cluster):
    """Kill a worker at random every few seconds; count how many."""
    done, kills = threading.Event(), []

    def kill():
        while not done.wait(random.uniform(1.0, 3.0)):
            alive = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
            if alive and len(kills) < 6:
                os.kill(random.choice(alive), signal.SIGKILL)
                kills.append(alive)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield kills
    finally:
        done.set()
        thread.join()


@contextmanager
def adaptive(cluster):
    """Let the cluster choose how many workers it has."""
    cluster.adapt(minimum=1, maximum=3, interval="500ms", wait_count=1)
    yield [True]


@contextmanager
def spilled(cluster):
    """The memory of the workers is small."""
    yield [True]


def released(frame):
    """Release without noise; what is kept of a unit is the same whatever is drawn."""
    frame.dp.declare(
        privacy_unit="rider",
        max_groups=1,
        max_rows_per_group=5,
        keys={"zone": ["A", "B", "C"]},
        bounds={"fare": (0, 20)},
        budget=dpf.Budget(epsilon=9, delta=1e-5),
    )
    silent = mock.patch.object(
        Law, "draw", lambda law, scales, n, *_: [np.zeros(n, np.int64) for _ in scales]
    )
    asked = {
        "rows": dpf.aggregate("zone", n=dpf.count(), s=dpf.sum("fare")),
        "units": dpf.units("zone"),
    }
    with silent:
        tables = frame.dp.release(asked, epsilon=1, delta=1e-6)
    assert len(frame.dp.ledger.entries) == 1
    return tables


@pytest.mark.parametrize("trouble", [killed, adaptive, spilled])
def test_integers_are_the_same_and_charged_once(trouble):
    memory = "400MB" if trouble is spilled else "2GB"
    with ExitStack() as stack:
        stack.enter_context(dask.config.set({**SETTINGS, "dataframe.convert-string": False}))
        cluster = stack.enter_context(
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                memory_limit=memory,
            )
        )
        stack.enter_context(distributed.Client(cluster))
        happened = stack.enter_context(trouble(cluster))
        with mock.patch.object(time, "sleep"):
            meta = make(0).iloc[:0]
        found = released(dd.from_map(make, range(PARTITIONS), meta=meta))
        assert happened
    rows = [make(place) for place in range(PARTITIONS)]
    expected = released(pd.concat(rows, ignore_index=True))
    for name, table in expected.items():
        pd.testing.assert_frame_equal(found[name], table, check_exact=True)
    assert found["units"]["units"].sum() == ROWS
