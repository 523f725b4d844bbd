"""Time the embedded engine beside plain pandas on the same frame, and measure its memory.

    python benchmarks/bench_engine.py --rows 10000000

Both sides run in turn in one process; medians and their ratio are printed beside the bar to pass.
"""

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd

from dpframe.context import SYSTEM
from dpframe.engines import engine_for
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term

KEYS = 1_000
ROWS_PER_UNIT = 10
HIGHEST = 50.0
TERMS = (Term("rows"), Term("sum", "x", Grid.for_bounds(0.0, HIGHEST)))


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peak_bytes(run: Callable[[], object]) -> int:
    """Most memory that NumPy, pandas and Python hold above what there was; Arrow's is not seen."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def grouped(frame: pd.DataFrame, clip: bool) -> pd.DataFrame:
    """Count and sum with plain pandas."""
    clipped = frame.assign(x=frame["x"].clip(0, HIGHEST)) if clip else frame
    return clipped.groupby("k", observed=False)["x"].agg(["count", "sum"])


def make_frame(rows: int, units: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "k": rng.integers(0, KEYS, rows),
            "x": rng.normal(20, 30, rows),
            "u": rng.integers(0, units, rows),
        }
    )


def compare(name: str, bar: float | None, frame: pd.DataFrame, task: Task, rounds: int) -> None:
    """Print times of both sides, their ratio and the peak memory of ours."""
    engine = engine_for(frame)
    sides = {
        "ours": lambda: engine.totals(frame, [task], SYSTEM),
        "clip": lambda: grouped(frame, clip=True),
        "bare": lambda: grouped(frame, clip=False),
    }
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, run in sides.items():
            times[side].append(seconds(run))
    ours, clip, bare = (statistics.median(times[side]) for side in sides)
    memory = peak_bytes(sides["ours"]) / len(frame)
    print(
        f"{name:34} ours {ours:6.3f} s   pandas {clip:6.3f} s   ratio {ours / clip:5.2f}"
        f" (bar {bar or '-'})   without clip {ours / bare:5.2f}   peak {memory:5.1f} B/row"
    )


def small_capped(rounds: int) -> None:
    """Time one million rows of 100,000 users, 5 groups of 2 rows each."""
    frame = make_frame(1_000_000, 100_000)
    cells = Cells((KeyAxis("k", pd.RangeIndex(KEYS)),))
    task = Task(cells, TERMS, unit=("u",), caps=Caps(groups=5, rows_per_group=2))
    engine = engine_for(frame)
    ours = statistics.median(
        seconds(lambda: engine.totals(frame, [task], SYSTEM)) for _ in range(rounds)
    )
    memory = peak_bytes(lambda: engine.totals(frame, [task], SYSTEM)) / len(frame)
    print(f"1M rows, 5 groups x 2 rows: ours {ours:.3f} s (bar 1 s)   peak {memory:5.1f} B/row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    frame = make_frame(options.rows, options.rows // ROWS_PER_UNIT)
    names = pd.Index([f"zone_{i:04d}" for i in range(KEYS)], dtype=object)
    integer = Cells((KeyAxis("k", pd.RangeIndex(KEYS)),))
    text = Cells((KeyAxis("k", names),))

    def run(name: str, bar: float | None, data: pd.DataFrame, cells: Cells, **unit: object) -> None:
        compare(name, bar, data, Task(cells, TERMS, **unit), options.rounds)

    run("int keys", 1.0, frame, integer)
    run("int keys, 5 rows per unit", 3.0, frame, integer, unit=("u",), caps=Caps(rows=5))
    every = Caps(rows=9, groups=5, rows_per_group=2)
    run("int keys, all three caps", None, frame, integer, unit=("u",), caps=every)
    spread = frame.assign(u=frame["u"] * 7_919_000_000_007)
    run("int keys, spread units", 3.0, spread, integer, unit=("u",), caps=Caps(rows=5))
    labels = pd.Series(names.to_numpy()[frame["k"]], dtype=object)
    for dtype in ("category", "str", "object"):
        data = frame.assign(k=labels.astype(dtype))
        run(f"{data['k'].dtype} keys", 1.5, data, text)
    small_capped(options.rounds)


if __name__ == "__main__":
    main()
