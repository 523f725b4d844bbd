"""Time files of a release beside those that pandas writes and reads, and keys that are times.

Run as `python benchmarks/bench_files.py`. Both sides take turns in one process: medians of CPU
time, in milliseconds, of 100,000 groups by three columns, as released and rounded.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpframe as dpf
from dpframe.cells import record

GROUPS = 100_000
ROWS = 200_000
TURNS = 7
MS = 1_000
MB = 1e6

KEYS: Mapping[str, pd.Index] = {
    "numbers": pd.RangeIndex(GROUPS),
    "texts": pd.Index([f"id-{number:07}" for number in range(GROUPS)]),
    "times": pd.date_range("2000-01-01", periods=GROUPS, freq="h"),
    "times in a zone": pd.date_range("2000-01-01", periods=GROUPS, freq="h", tz="Europe/Berlin"),
}


def cpu(call: Callable[[], Any]) -> float:
    """The CPU time of a call in milliseconds."""
    start = time.process_time()
    call()
    return MS * (time.process_time() - start)


def medians(*calls: Callable[[], Any]) -> list[float]:
    """The medians of the times of several calls, which take turns."""
    turns = [[cpu(call) for call in calls] for _ in range(TURNS)]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


def release(keys: pd.Index) -> pd.DataFrame:
    """A count, a sum and a mean; says how long keys take before the first and second release."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"k": keys[rng.integers(0, GROUPS, ROWS)], "fare": rng.uniform(0, 50, ROWS)}
    )
    facts = {"keys": {"k": keys}, "bounds": {"fare": (0, 50)}}
    declared = cpu(lambda: frame.dp.declare(**facts, privacy_unit=dpf.EACH_ROW))
    outputs = {"n": dpf.count(), "total": dpf.sum("fare"), "fare": dpf.mean("fare")}
    query = dpf.aggregate("k", **outputs)
    first, later = (cpu(lambda: dpf.release(frame, query, epsilon=1)) for _ in range(2))
    print(f"  declared {declared:.1f}, first release {first:.1f}, second {later:.1f}")
    return dpf.release(frame, query, epsilon=1)


def read_anew(path: Path) -> pd.DataFrame:
    """Read a file whose certificate was not read before."""
    record._OPENED.clear()
    return dpf.read_csv(path)


def compare(table: pd.DataFrame, folder: Path) -> None:
    """Write and read a table on both sides."""
    bare = pd.DataFrame(table).copy()
    bare.attrs = {}
    ours, theirs = folder / "ours", folder / "theirs"
    pairs = {
        "write_csv": (
            lambda: dpf.write_csv(table, f"{ours}.csv"),
            lambda: bare.to_csv(f"{theirs}.csv"),
        ),
        "read_csv": (
            lambda: read_anew(Path(f"{ours}.csv")),
            lambda: pd.read_csv(f"{theirs}.csv", index_col=0),
        ),
        "write_parquet": (
            lambda: dpf.write_parquet(table, f"{ours}.parquet"),
            lambda: bare.to_parquet(f"{theirs}.parquet"),
        ),
    }
    for name, (call, plain) in pairs.items():
        call()
        plain()
        took, pandas_took = medians(call, plain)
        print(f"  {name:14}{took:8.1f} {pandas_took:8.1f}   {took / pandas_took:.2f}x")
    (verified,) = medians(lambda: dpf.verify(table))
    print(f"  verify, warm  {verified:8.1f}")
    print(f"  Parquet file  {os.path.getsize(f'{ours}.parquet') / MB:8.2f} MB")


def main() -> None:
    """Print times of both sides."""
    with tempfile.TemporaryDirectory() as folder:
        for name, keys in KEYS.items():
            print(f"keys are {name}")
            released = release(keys)
            for how, table in (
                ("as released", released),
                ("rounded", dpf.round(released, {"total": 1, "fare": 2})),
            ):
                print(f" {how}: dpframe, pandas")
                compare(table, Path(folder))


if __name__ == "__main__":
    main()
