"""dpframe: a frame in memory, a scan of files, and Dask in three ways."""

import contextlib
import os

from measuring import BOUNDS, DELTA, EPSILON, MAX_GROUPS, MAX_ROWS_PER_GROUP, main, measured
from peer_data import names


def declaration(case, column):
    """Say what is public."""
    groups = range(case["keys"]) if column == "key" else names(case["keys"])
    caps = {
        "privacy_unit": "unit",
        "max_groups": MAX_GROUPS,
        "max_rows_per_group": MAX_ROWS_PER_GROUP,
    }
    public = {"bounds": {"value": BOUNDS}, "keys": {column: groups}}
    return {**public, **caps} if case["task"] == "unit" else public


def release(frame, column, public):
    """Declare and release."""
    import dpframe as dpf

    frame.dp.declare(**public)
    return frame.dp.aggregate(
        by=column, n=dpf.count(), total=dpf.sum("value"), epsilon=EPSILON, delta=DELTA
    )


def in_memory(case):
    import pandas as pd

    column = case["variant"]
    frame = pd.read_parquet(case["folder"], columns=[column, "unit", "value"])
    public = declaration(case, column)
    return measured(lambda: release(frame, column, public))


@contextlib.contextmanager
def scheduler(variant):
    """Set how Dask computes, and give the processes that do."""
    import dask
    from distributed import Client, LocalCluster

    if variant != "dask-cluster":
        with dask.config.set(scheduler="threads" if variant == "dask-threads" else "synchronous"):
            yield [os.getpid()]
        return
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield [os.getpid(), *client.run(os.getpid).values()]


def from_files(case):
    import dpframe as dpf

    folder, public = case["folder"], declaration(case, "key")
    if case["variant"] == "scan":
        return measured(lambda: release(dpf.scan_parquet(folder), "key", public))
    import dask.dataframe as dd

    import dpframe.dask

    with scheduler(case["variant"]) as processes:
        return measured(lambda: release(dd.read_parquet(folder), "key", public), processes)


def run(case):
    import dpframe  # noqa: F401  # registers the accessor

    return in_memory(case) if case["part"] == "memory" else from_files(case)


if __name__ == "__main__":
    main(run)
