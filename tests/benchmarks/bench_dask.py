"""Time a capped release of a Dask collection on a cluster of one process and of two.

    python tests/benchmarks/bench_dask.py --rows 4000000 --partitions 16

Both clusters run in turn, several times; medians and their ratio are printed beside the goal. On a
machine that does other work, or has one core, the ratio says nothing.
"""

import argparse
import statistics
import time

import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd

import dpframe.dask  # noqa: F401, registers the engine
from dpframe.engines import engine_for
from dpframe.privacy.neighbors import Caps
from dpframe.queries.grid import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term

KEYS = 1_000
GOAL = 1.5
TERMS = (Term("rows"), Term("sum", "x", Grid.for_bounds(0.0, 50.0)))
TASK = Task(Cells((KeyAxis("k", pd.RangeIndex(KEYS)),)), TERMS, unit=("u",), caps=Caps(None, 5, 2))


def make(place: int, rows: int, units: int) -> pd.DataFrame:
    """Make a partition where it is needed."""
    rng = np.random.default_rng(place)
    return pd.DataFrame(
        {
            "k": rng.integers(0, KEYS, rows),
            "x": rng.normal(20, 30, rows),
            "u": rng.integers(0, units, rows),
        }
    )


def seconds(processes: int, rows: int, partitions: int) -> float:
    """Time one release, on a cluster of its own that has done one before."""
    each, units = rows // partitions, max(rows // 10, 1)
    private = dd.from_map(make, range(partitions), rows=each, units=units, meta=make(0, 0, 1))
    settings = {"n_workers": processes, "threads_per_worker": 1, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(**settings, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        small = dd.from_map(make, range(2), rows=9, units=3, meta=make(0, 0, 1))
        engine_for(small).totals(small, [TASK])
        start = time.perf_counter()
        engine_for(private).totals(private, [TASK])
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(given.rounds):
        for processes, own in times.items():
            own.append(seconds(processes, given.rows, given.partitions))
    one, two = (statistics.median(own) for own in times.values())
    print(f"one process {one:.1f} s, two {two:.1f} s: {one / two:.2f} times (goal {GOAL})")


if __name__ == "__main__":
    main()
