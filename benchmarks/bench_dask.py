"""Time a capped release of a Dask collection on a cluster of one process and of two.

    python benchmarks/bench_dask.py --rows 32000000 --partitions 32

Both clusters run in turn, several times; medians, and the median of the ratios of a round, are
printed beside the goal. On a machine that does other work, or has one core, the ratio of all the
time that passes says little; that of the time of processors does not count what others take, nor
what processes wait for each other.
"""

import argparse
import logging
import os
import time
from contextlib import ExitStack

import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd

import dpframe.dask  # noqa: F401, registers the engine
from dpframe.context import SYSTEM
from dpframe.engines import engine_for
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
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


def cluster(processes: int) -> distributed.LocalCluster:
    """Start processes of one thread each."""
    settings = {"n_workers": processes, "threads_per_worker": 1, "host": "127.0.0.1"}
    return distributed.LocalCluster(**settings, dashboard_address=None, silence_logs=logging.ERROR)


def seconds(client: distributed.Client, rows: int, partitions: int) -> tuple[float, float]:
    """Time one release: in all, and in the processor of the process that works most."""
    each, units = rows // partitions, max(rows // 10, 1)
    private = dd.from_map(make, range(partitions), rows=each, units=units, meta=make(0, 0, 1))
    with client.as_current():
        before = client.run(time.process_time)
        start = time.perf_counter()
        engine_for(private).totals(private, [TASK], SYSTEM)
        took = time.perf_counter() - start
        after = client.run(time.process_time)
    return took, max(after[worker] - before[worker] for worker in before)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=32_000_000)
    parser.add_argument("--partitions", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        clients = [
            stack.enter_context(distributed.Client(stack.enter_context(cluster(processes))))
            for processes in (1, 2)
        ]
        for client in clients:
            seconds(client, 1_000, 4)
        times = np.array(
            [
                [seconds(client, given.rows, given.partitions) for client in clients]
                for _ in range(given.rounds)
            ]
        )
    names = ("in all", "in the processor of the process that works most")
    for name, (one, two), ratio in zip(
        names, np.median(times, axis=0).T, np.median(times[:, 0] / times[:, 1], axis=0), strict=True
    ):
        print(f"one process {one:.1f} s, two {two:.1f} s: {ratio:.2f} times, {name} (goal {GOAL})")
    print(f"by round: {', '.join(f'{ratio:.2f}' for ratio in times[:, 0, 0] / times[:, 1, 0])}")
    print(f"others had {load:.1f} processes at work before, on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
