"""Time common calls by this checkout beside another one, each in a process of its own, in turn.

    python benchmarks/bench_beside.py ANOTHER_CHECKOUT
    python benchmarks/bench_beside.py ANOTHER_CHECKOUT --only "count of units" interval

Figures are CPU time of all threads. The ratio is the median of those of neighboring turns; where
other work keeps the machine busy, that of the least times beside it says more.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # waiting threads count as CPU time
GROUPS, FILES = 100_000, 4
SHORT, LONG = 0.02, 1.0  # seconds: a turn repeats a call as long as the first, rounds end at many
BAR = 1.02
SPENT = {"epsilon": 1, "delta": 1e-6}


def rows(number: int, keys: int) -> pd.DataFrame:
    """Rows with a key, two values, a text and a unit of ten rows."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, keys, number)
    names = np.array([f"zone {key:05}" for key in range(keys)], dtype=object)
    return pd.DataFrame(
        {
            "key": codes,
            "zone": pd.Series(names[codes], dtype="str"),
            "value": rng.normal(20, 30, number),
            "other": rng.gamma(2, 10, number),
            "unit": rng.integers(0, max(number // 10, 1), number),
        }
    )


def declared(frame: Any, keys: int, **unit: Any) -> Any:
    """Declare a frame of rows."""
    names = [f"zone {key:05}" for key in range(keys)]
    facts = {"keys": {"key": range(keys), "zone": names}, "bounds": {"value": (0, 50)}}
    facts["bounds"] |= {"other": (0, 90)}
    frame.dp.declare(**facts, **unit)
    return frame


def cases(folder: str) -> Mapping[str, Callable[[], Any]]:
    """Calls by name; what they need is made for the first."""
    import dpframe as dpf

    each = {"privacy_unit": dpf.EACH_ROW}
    caps = {"privacy_unit": "unit", "max_groups": 5, "max_rows_per_group": 2}
    outputs = {"n": dpf.count(), "total": dpf.sum("value"), "fare": dpf.mean("value")}
    small, small_units = declared(rows(1_000, 8), 8, **each), declared(rows(1_000, 8), 8, **caps)
    large, large_units = (
        declared(rows(10**6, 999), 999, **each),
        declared(rows(10**6, 99), 99, **caps),
    )
    scanned = declared(dpf.scan_parquet(folder, progress=False), 999, **each)
    scanned_units = declared(dpf.scan_parquet(folder, progress=False), 999, **caps)
    groups = declared(rows(2 * GROUPS, GROUPS), GROUPS, **each)
    made = {
        f"count, {words}": lambda frame=frame, by=by: dpf.release(frame, dpf.count(by=by), **SPENT)
        for words, frame, by in (
            ("1,000 rows", small, "zone"),
            ("1,000 rows, units", small_units, "zone"),
            ("1,000,000 rows", large, "key"),
            ("1,000,000 rows, texts", large, "zone"),
            ("1,000,000 rows, units", large_units, "key"),
            ("4,000,000 rows of files", scanned, "key"),
            ("4,000,000 rows of files, texts", scanned, "zone"),
            ("4,000,000 rows of files, units", scanned_units, "key"),
        )
    }
    queries = {
        "three outputs": dpf.aggregate("zone", **outputs),
        "where": dpf.mean("value", "zone", where="other > 10"),
        "histogram": dpf.histogram("value", range(0, 51, 5), by="zone"),
        "quantiles": dpf.quantile("value", [0.25, 0.5, 0.75]),
        "ranges": dpf.ranges("value", np.linspace(0, 50, 65)),
        "variance": dpf.var("value", "zone"),
        "correlation": dpf.corr("value", "other"),
        "margins": dpf.margins(["key", "zone"], 1),
        "several": {"a": dpf.count(by="key"), "b": dpf.mean("value", "zone")},
    }
    for words, query in queries.items():
        made[f"{words}, 1,000 rows"] = lambda q=query: dpf.release(small, q, **SPENT)
        made[f"{words}, 1,000,000 rows"] = lambda q=query: dpf.release(large, q, **SPENT)
    for mechanism in ("gaussian", "laplace"):
        query = dpf.aggregate("key", **outputs)
        spent = {**SPENT, "mechanism": mechanism}
        table = dpf.release(groups, query, **spent)
        weights = pd.DataFrame(1.0, table.index, table.columns)
        afterwards = {
            "release": lambda q=query, s=spent: dpf.release(groups, q, **s),
            "verify": lambda t=table: dpf.verify(t),
            "interval": lambda t=table: dpf.interval(t),
            "standard error": lambda t=table: t.dp.std_error,
            "covariance": lambda t=table: t.dp.covariance,
            "combine": lambda t=table, w=weights: dpf.combine(t, w),
            "ratio": lambda t=table: dpf.ratio(t, "total", "n"),
            "percent": lambda t=table: t.dp.percent("n"),
            "round": lambda t=table: dpf.round(t, {"total": -1, "fare": 2}),
        }
        made |= {
            f"{words}, 100,000 groups, {mechanism}": call for words, call in afterwards.items()
        }
    return made


def serve(folder: str) -> None:
    """Answer each name that is read with the seconds of a call."""
    calls = cases(folder)
    print(*calls, sep="\t", flush=True)
    repeats: dict[str, int] = {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        number = repeats.get(name, 1)
        start = time.process_time()
        for _ in range(number):
            calls[name]()
        took = (time.process_time() - start) / number
        repeats[name] = max(1, int(SHORT / max(took, 1e-6)))
        print(took, flush=True)


def ask(side: subprocess.Popen[str], name: str) -> float:
    """Time a call in another process."""
    print(name, file=side.stdin, flush=True)
    return float(side.stdout.readline())  # type: ignore[union-attr]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="another checkout of the package")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for place in range(FILES):
            rows(10**6, 999).to_parquet(Path(folder, f"{place}.parquet"))
        sides = []
        for checkout in (ROOT, options.other.resolve()):
            environment = {**os.environ, **ALONE, "PYTHONPATH": str(checkout)}
            command = [sys.executable, __file__, "--serve", folder]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            sides.append(subprocess.Popen(command, cwd=checkout, env=environment, **pipes))
        names, _ = (side.stdout.readline().rstrip("\n").split("\t") for side in sides)
        for name in names:
            if not any(part in name for part in options.only):
                continue
            first = [ask(side, name) for side in sides]
            number = max(3, min(options.rounds, int(LONG / max(first)) or 3))
            turns = [[ask(side, name) for side in sides] for _ in range(number)]
            ratio = statistics.median(ours / other for ours, other in turns)
            ours, other = map(min, zip(*turns, strict=True))
            above = "above the bar" if min(ratio, ours / other) > BAR else ""
            print(
                f"{name:50} {1e3 * ours:8.2f} {1e3 * other:8.2f} ms   "
                f"{ratio:5.2f} least {ours / other:5.2f} {above}",
                flush=True,
            )
        for side in sides:
            side.communicate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main()
