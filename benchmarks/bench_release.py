"""Time a whole release of a small frame, plans of many kinds, and what importing dpframe adds.

Run with `python benchmarks/bench_release.py`. All numbers are medians of one run; with
`--beside TREE`, plans are also made by the package in another directory, in turn, and compared.
"""

import compileall
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpframe as dpf
from dpframe import Query
from dpframe.engines import engine_for
from dpframe.operations import planning
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend

ROWS, GROUPS, UNITS = 1_000, 8, 300
MANY, OUTPUTS = 100_000, 10
ROUNDS, CALLS = 31, 5
DOORS = 400
WARM = 20  # releases that are not timed
ALONE = {"OPENBLAS_NUM_THREADS": "1"}  # threads that wait for work count as time


def milliseconds(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def small_frame() -> pd.DataFrame:
    """Make a declared frame of a thousand rows."""
    rng = np.random.default_rng(20260101)
    zones = [f"zone {i}" for i in range(GROUPS)]
    frame = pd.DataFrame(
        {
            "zone": rng.choice(zones, ROWS),
            "fare": rng.gamma(2, 10, ROWS),
            "driver": rng.integers(0, UNITS, ROWS),
        }
    )
    frame.dp.declare(
        keys={"zone": zones},
        bounds={"fare": (0, 100)},
        privacy_unit="driver",
        max_rows=3,
        ledger=dpf.Ledger(budget=dpf.Budget(epsilon=1e6, delta=1e-6)),
    )
    return frame


def releases() -> None:
    """Print the time of a few kinds of release beside the plain groupby."""
    frame = small_frame()
    grouped = frame.groupby("zone")["fare"]
    plain = milliseconds(lambda: grouped.agg(["count", "sum", "mean"]))
    queries = {
        "count": dpf.count(by="zone"),
        "sum": dpf.sum("fare", by="zone"),
        "histogram": dpf.histogram("fare", bins=range(0, 101, 10), by="zone"),
        "aggregate": dpf.aggregate(
            by="zone", n=dpf.count(), total=dpf.sum("fare"), fare=dpf.mean("fare")
        ),
    }
    print(f"whole release, {ROWS:,} rows, {GROUPS} groups (bar: 20 ms); plain {plain:.2f} ms")
    for name, query in queries.items():
        for mechanism in ("laplace", "gaussian"):
            took = milliseconds(
                lambda query=query, mechanism=mechanism: frame.dp.release(
                    query, epsilon=0.5, mechanism=mechanism
                )
            )
            print(f"  {name:10} {mechanism:9} {took:6.2f} ms")


def doors() -> None:
    """Print what it costs a release to look at its source, and at what can match in it.

    Both kinds of releases are made in turn: as they are, and with a manifest that is made before.
    """
    frame = small_frame()
    engine = engine_for(frame)
    manifest = engine.manifest(frame)
    facts = manifest.source(frame.dp.declaration)
    is_planned = False

    def switch(holder: Any, name: str, result: object) -> None:
        call = getattr(holder, name)
        setattr(holder, name, lambda *args: result if is_planned else call(*args))

    switch(type(engine), "manifest", manifest)
    switch(planning, "check_matches", facts)
    query, times = dpf.count(by="zone"), np.empty((DOORS, 2))
    for turn in range(-WARM, DOORS):
        for place, is_planned in enumerate((False, True)):  # noqa: B007  # `switch` reads it
            start = time.process_time()
            frame.dp.release(query, epsilon=0.5)
            if turn >= 0:
                times[turn, place] = time.process_time() - start
    for name, (whole, rest) in {"least": times.min(axis=0), "median": np.median(times, 0)}.items():
        part = whole / rest - 1
        print(f"doors add {part:.1%} to {1000 * rest:.2f} ms, {name} of {DOORS} (bar: 2 %)")


def plans() -> None:
    """Print the time of planning ten outputs of many groups, made anew and kept."""
    from dpframe.plan import designs  # trees of old have another file

    columns = [f"x{k}" for k in range(OUTPUTS)]
    frame = pd.DataFrame({"g": range(MANY), **dict.fromkeys(columns, 1.0)})
    bounds = {column: (0, 1 + k) for k, column in enumerate(columns)}
    frame.dp.declare(keys={"g": range(MANY)}, bounds=bounds, privacy_unit=dpf.EACH_ROW)
    declaration = frame.dp.declaration
    queries = {
        "sums": {column: dpf.sum(column) for column in columns},
        "means": {column: dpf.mean(column) for column in columns},
        "counts": {column: dpf.count(where=f"{column} > 1") for column in columns},
    }
    spend = Spend("epsilon", Fraction(1, 2), 1e-6)
    print(f"auto plans {MANY:,} groups x {OUTPUTS} outputs (bar: 50 ms)")
    for name, outputs in queries.items():
        query = dpf.aggregate("g", **outputs)

        def plan(query: Query = query) -> object:
            return plan_release(declaration, {None: query}, spend)

        def anew(plan: Callable[[], object] = plan) -> object:
            designs._keep_many.cache_clear()
            designs._keep_few.cache_clear()
            return plan()

        print(f"  {name:10} anew {milliseconds(anew):6.2f} ms, kept {milliseconds(plan):6.2f} ms")


def frame_and_queries(**facts: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Make a declared frame of one row, and queries of many kinds."""
    columns = {f"b{k}": list(range(2 + k)) for k in range(10)}
    answers = {f"q{k}": [0, 1] for k in range(10)}
    columns |= answers
    frame = pd.DataFrame({"x": [1.0], **{name: keys[:1] for name, keys in columns.items()}})
    frame.dp.declare(keys=columns, bounds={"x": (0, 100)}, privacy_unit=dpf.EACH_ROW, **facts)
    names = list(columns)[:10]
    conditions = {f"n{k}": dpf.count(where=f"x > {k}") for k in range(100)}
    queries = {
        "count": dpf.count(by="b6"),
        "margins": dpf.margins(names[:6], 2),
        "of three": dpf.margins(names[:6], 3),
        "of one": dpf.margins(list(answers), 1),
        "of two": dpf.margins(list(answers), 2),
        "tables": {name: dpf.count(by=name) for name in names},
        "six": {name: dpf.count(by=name) for name in names[:6]},
        "yes, no": {name: dpf.count(by=name) for name in answers},
        "conditions": dpf.aggregate("b6", **conditions),
        "sum": dpf.sum("x"),
        "stairs": dpf.sum("x"),  # from epsilon 1.5 on, staircase noise is compared, too
    }
    return frame, queries


def kinds_of_plans() -> dict[str, Callable[[], object]]:
    """Make calls that plan, each time with another epsilon, so that nothing kept fits."""
    frame, queries = frame_and_queries()
    later = (k / 2**30 for k in itertools.count())

    def planned(name: str) -> Callable[[], object]:
        least = 2.0 if name == "stairs" else 0.5
        # an older package, to compare with, has `preview` in place of `plan`
        plan = getattr(frame.dp, "plan", None) or frame.dp.preview
        return lambda: plan(queries[name], epsilon=least + next(later), delta=1e-6)

    return {name: planned(name) for name in queries}


def forget() -> None:
    """Forget all that the package keeps of plans, as in a process that planned nothing yet."""
    modules = [module for name, module in sys.modules.items() if name.startswith("dpframe")]
    for value in [value for module in modules for value in vars(module).values()]:
        if hasattr(value, "cache_clear") and not isinstance(value, type):
            value.cache_clear()


def serve() -> None:
    """Answer on standard output how long a plan takes that standard input names."""
    calls = kinds_of_plans()
    for call in calls.values():  # what is imported only then
        call()
    for line in sys.stdin:
        when, name = line.strip().split(": ")
        took = 0.0
        for _ in range(CALLS):
            if when == "first":
                forget()
            start = time.process_time()
            calls[name]()
            took += time.process_time() - start
        print(1000 * took / CALLS, flush=True)


def compare_plans(tree: str) -> None:
    """Print the times of plans here and by another package, and the median of their ratios.

    They are times of the processor: of a plan of which nothing is kept, and of one that differs in
    epsilon from the one before.
    """
    run = [sys.executable, __file__, "--serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    roots = (str(Path(dpf.__file__).parents[1]), tree)
    sides = [
        subprocess.Popen(run, env={**os.environ, **ALONE, "PYTHONPATH": root}, cwd=root, **pipes)
        for root in roots
    ]

    def ask(side: subprocess.Popen[str], name: str) -> float:
        print(name, file=side.stdin, flush=True)
        return float(side.stdout.readline())

    print(f"plans here and in {tree} (bar: 1.05)")
    for when, name in itertools.product(("first", "again"), kinds_of_plans()):
        pairs = [[ask(side, f"{when}: {name}") for side in sides] for _ in range(ROUNDS)][1:]
        mine, theirs = (statistics.median(one) for one in zip(*pairs, strict=True))
        part = statistics.median(one / other for one, other in pairs)
        print(f"  {when} {name:10} {mine:6.2f} ms and {theirs:6.2f} ms, {part:.2f}", flush=True)
    for side in sides:
        side.communicate()


def imports() -> None:
    """Print what importing dpframe adds, interleaved with importing pandas alone.

    The package is compiled first, as it is when it was installed.
    """
    compileall.compile_dir(Path(dpf.__file__).parent, quiet=1)
    code = "import time, pandas\nt = time.perf_counter()\n{}\nprint(time.perf_counter() - t)"

    def added(statement: str) -> float:
        run = [sys.executable, "-c", code.format(statement)]
        return float(subprocess.run(run, capture_output=True, check=True, text=True).stdout)

    times = [(added("import dpframe"), added("pass")) for _ in range(7)]
    took = statistics.median(one - other for one, other in times)
    print(f"import dpframe adds {took:.3f} s to importing pandas (bar: 0.22 s)")


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
        raise SystemExit
    if sys.argv[1:2] == ["--beside"]:
        compare_plans(sys.argv[2])
        raise SystemExit
    releases()
    doors()
    plans()
    imports()
