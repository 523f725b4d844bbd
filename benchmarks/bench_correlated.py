"""Time what many queries at once cost: totals of boolean columns, planning, decoding.

    python benchmarks/bench_correlated.py --rows 1000000 --columns 1000

Everything runs in one process; medians and ratios are printed beside the bars to pass.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import dpframe as dpf
from dpframe.context import SYSTEM
from dpframe.engines import engine_for
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term

BIT = Grid.for_bounds(0, 1, integer=True, missing=0)
GROUPS = 10
SPEND = {"epsilon": 1.0, "delta": 1e-6}


def medians(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each side, run in turn."""
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, run in sides.items():
            start = time.perf_counter()
            run()
            times[side].append(time.perf_counter() - start)
    return {side: statistics.median(some) for side, some in times.items()}


def compare_totals(name: str, frame: pd.DataFrame, extra: pd.DataFrame, rounds: int) -> None:
    """Print the time of totals beside that of `frame.sum()`."""
    engine = engine_for(frame)
    terms = (Term("rows"), *(Term("sum", label, BIT) for label in frame.columns))
    whole = frame.assign(**extra)
    by = Cells((KeyAxis("k", pd.RangeIndex(GROUPS)),))
    tasks = {
        "one cell": (1.5, frame, Task(Cells(), terms)),
        "5 rows per unit": (None, whole, Task(Cells(), terms, unit=("u",), caps=Caps(rows=5))),
        f"by {GROUPS} groups": (None, whole, Task(by, terms)),
    }
    for what, (bar, data, task) in tasks.items():
        runs = {"ours": lambda d=data, t=task: engine.totals(d, [t], SYSTEM)[0], "sum": frame.sum}
        if task.cells is by:
            runs["groupby"] = whole.groupby("k")[list(frame.columns)].sum
        found = medians(runs, rounds if bar else 1)
        ratio = found["ours"] / found["sum"]
        beside = f"   groupby {found['groupby']:6.3f} s" if "groupby" in found else ""
        print(
            f"{name + ', ' + what:34} ours {found['ours']:6.3f} s   frame.sum() "
            f"{found['sum']:6.3f} s   ratio {ratio:5.2f} (bar {bar or '-'}){beside}"
        )


def few_ones(frame: pd.DataFrame, most: int) -> None:
    """Print the time of totals in which a row has few ones."""
    terms = (Term("rows"), *(Term("sum", label, BIT) for label in frame.columns))
    task = Task(Cells(), terms, most=most)
    (ours,) = medians({"": lambda: engine_for(frame).totals(frame, [task], SYSTEM)[0]}, 1).values()
    print(f"{f'at most {most} ones in a row':34} ours {ours:6.3f} s for {len(frame):,} rows")


def planning(columns: int, rounds: int) -> None:
    """Print the time of `plan`."""
    values, flags = [f"x{j}" for j in range(10)], [f"b{j}" for j in range(columns)]
    frame = pd.DataFrame(0, index=range(3), columns=["k", *values, *flags])
    bounds = {**dict.fromkeys(values, (0.0, 10.0)), **dict.fromkeys(flags, (0, 1))}
    frame.dp.declare(keys={"k": pd.RangeIndex(100_000)}, bounds=bounds)
    queries = {
        "plan 100,000 groups x 10 sums": dpf.sum(values, by="k"),
        "plan 100,000 groups x 10 means": dpf.aggregate(
            by="k", **{label: dpf.mean(label) for label in values}
        ),
        f"plan {columns} sums": dpf.sum(flags, where="k > 0"),
        f"plan {columns} sums, worst": dpf.sum(flags, where="k > 0", objective="worst"),
        f"plan {columns} means": dpf.mean(flags, where="k > 0"),
    }
    for name, query in queries.items():
        (ours,) = medians({"": lambda query=query: frame.dp.plan(query, **SPEND)}, rounds).values()
        print(f"{name:34} ours {ours:6.3f} s (bar 1 s)")


def decoding(rounds: int) -> None:
    """Print the time of a release of a small frame over more and more cells, and its slope."""
    frame = pd.DataFrame(0, index=range(3), columns=["k", "a", "b", "c"])
    bounds = dict.fromkeys("abc", (0.0, 10.0))
    for kind in (dpf.sum, dpf.mean):
        found = []
        for cells in (10_000, 100_000, 1_000_000):
            frame.dp.declare(keys={"k": pd.RangeIndex(cells)}, bounds=bounds)
            query = kind(list("abc"), by="k")
            run = {"": lambda query=query: frame.dp.release(query, **SPEND)}
            found += medians(run, rounds).values()
        name = f"release {kind.__name__} of 3 columns"
        shown = "   ".join(f"{seconds:6.3f} s" for seconds in found)
        slopes = " and ".join(f"{np.log10(b / a):.2f}" for a, b in itertools.pairwise(found))
        print(f"{name:34} 10k, 100k, 1M cells: {shown}   log-log slopes {slopes} (1: linear)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    planning(options.columns, options.rounds)
    decoding(options.rounds)
    rng = np.random.default_rng(1)
    words = rng.integers(0, 256, (options.rows, options.columns), np.uint8)
    flags = words < 77
    del words
    labels = [f"b{j}" for j in range(options.columns)]
    extra = pd.DataFrame(
        {
            "k": rng.integers(0, GROUPS, options.rows),
            "u": rng.integers(0, 1 + options.rows // 10, options.rows),
        }
    )
    by_column = pd.DataFrame(flags, columns=labels)
    compare_totals("columns together", by_column, extra, options.rounds)
    few_ones(by_column.iloc[: options.rows // 10], 20)
    del by_column
    by_row = pd.DataFrame(flags, columns=labels, copy=False)
    compare_totals("rows together", by_row, extra, options.rounds)


if __name__ == "__main__":
    main()
