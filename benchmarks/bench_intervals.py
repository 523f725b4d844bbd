"""Time what is computed from a release of many groups, beside the release itself.

Run as `python benchmarks/bench_intervals.py`. Times are the least of three, in seconds, of
100,000 groups by three columns, in one process; read them beside that of the release.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

import dpframe as dpf

GROUPS = 100_000
TIMES = 3


def trips() -> pd.DataFrame:
    """One row per group."""
    frame = pd.DataFrame({"zone": np.arange(GROUPS), "fare": np.ones(GROUPS)})
    facts = {"keys": {"zone": range(GROUPS)}, "bounds": {"fare": (0, 2)}}
    frame.dp.declare(**facts, privacy_unit=dpf.EACH_ROW)
    return frame


def calls(released: pd.DataFrame) -> Mapping[str, Callable[[], Any]]:
    """Calls on a release of a count, a sum and a mean."""
    weights = pd.DataFrame(1.0, released.index, released.columns)
    return {
        "verify": lambda: dpf.verify(released),
        "interval": lambda: dpf.interval(released),
        "std_error": lambda: released.dp.std_error,
        "covariance": lambda: released.dp.covariance,
        "combine": lambda: dpf.combine(released, weights),
        "ratio": lambda: dpf.ratio(released, "total", "n"),
        "percent": lambda: released.dp.percent("n"),
        "round": lambda: dpf.round(released, {"total": -1, "fare": 2}),
    }


def least(call: Callable[[], Any]) -> float:
    """The least of several times."""
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    """Print a table of times."""
    frame = trips()
    outputs = {"n": dpf.count(), "total": dpf.sum("fare"), "fare": dpf.mean("fare")}
    query = dpf.aggregate("zone", **outputs)
    for mechanism in ("gaussian", "laplace"):
        how = {"epsilon": 1, "delta": 1e-6, "mechanism": mechanism}
        released = dpf.release(frame, query, **how)
        times = {"release": least(lambda how=how: dpf.release(frame, query, **how))}
        times |= {name: least(call) for name, call in calls(released).items()}
        print(pd.Series(times, name=mechanism).round(3).to_string(), "\n")


if __name__ == "__main__":
    main()
