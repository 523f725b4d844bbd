"""Time a plan over a CSV file of a million rows and five columns, beside other readers.

    python benchmarks/bench_text.py --rounds 5
    python benchmarks/bench_text.py --rounds 5 --before ANOTHER_CHECKOUT

- *read*: a plan reads its file; *release*: the whole of it, from the plan to the tables.
- *pyarrow*: `pyarrow.csv.read_csv` with types; *pandas*: `pandas.read_csv` with types.
- *messy*: the plan reads the same rows, written as `"1,234.50"` and `2.0`.

With `--before`, each round runs the plan of that checkout, too, in a process of its own. Seconds of
processor time, of all threads; medians of the rounds.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

import dpframe as dpf
from dpframe.jobs.data import Data
from dpframe.jobs.job import Overrides, read_plan
from dpframe.jobs.run_job import release_job

ROWS = 1_000_000
PLAN = """\
[data]
path = "{name}.csv"
types = {{ n = "int64", time = "datetime" }}
{more}
[declare]
privacy_unit = "person"
max_rows = 5
keys.zone = ["A", "B", "C"]
bounds.fare = [0, 100000]
[queries.zones]
kind = "aggregate"
by = "zone"
where = "n >= 10 and time >= '2024-01-03'"
outputs.trips = {{ kind = "count" }}
outputs.fares = {{ kind = "sum", columns = "fare" }}
[release]
epsilon = 0.001
name = "{number}"
files = "{{query}}-{number}.csv"
[ledger]
path = "{ledger}"
"""
ARROW = {"n": pa.int64(), "fare": pa.float64(), "time": pa.timestamp("us")}


def write_files(folder: Path) -> None:
    """Write the rows in two ways."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "person": [f"p{number}" for number in rng.integers(0, 300_000, ROWS)],
            "zone": rng.choice(["A", "B", "C"], ROWS),
            "n": rng.integers(0, 100, ROWS),
            "fare": rng.uniform(0, 1e5, ROWS).round(2),
            "time": pd.date_range("2024", periods=ROWS, freq="s").strftime("%Y-%m-%d %H:%M:%S"),
        }
    )
    frame.to_csv(folder / "plain.csv", index=False)
    amounts = [f"{fare:,.2f}" for fare in frame["fare"]]
    frame.assign(fare=amounts, n=frame["n"].astype(float)).to_csv(folder / "messy.csv", index=False)


def clock(work: Callable[[], object]) -> float:
    """Return the seconds of processor time that some work takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def run_plan(folder: Path, name: str, number: int, ledger: str) -> tuple[float, float]:
    """Run a plan; return seconds of reading, and of all."""
    if not (folder / ledger).exists():
        dpf.Ledger.create(folder / ledger, budget=dpf.Budget(1e3, 1e-6))
    more = 'thousands = ","' if name == "messy" else ""
    (folder / "plan.toml").write_text(
        PLAN.format(name=name, more=more, number=number, ledger=ledger)
    )
    read: list[float] = []
    rows = Data.rows

    def timed(self: Data, *given: object) -> object:
        begun = time.process_time()
        opened = rows(self, *given)  # type: ignore[arg-type]
        read.append(time.process_time() - begun)
        return opened

    Data.rows = timed  # type: ignore[method-assign, assignment]
    try:
        whole = clock(lambda: release_job(read_plan(folder / "plan.toml", Overrides())))
    finally:
        Data.rows = rows  # type: ignore[method-assign]
    return read[0], whole


def run_before(checkout: Path, folder: Path, number: int) -> list[float]:
    """Run the plan of another checkout."""
    script = shutil.copy(__file__, folder)  # so that no file beside it is imported
    done = subprocess.run(
        [sys.executable, script, "--folder", str(folder), "--number", str(number)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is not None:
        run_plan(given.folder, "plain", -2 - given.number, "before.ledger")  # imports
        print(*run_plan(given.folder, "plain", given.number, "before.ledger"))
        return
    typed = csv.ConvertOptions(column_types={**ARROW, "person": pa.string(), "zone": pa.string()})
    texts = {"person": "string", "zone": "string"}
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_files(folder)
        plain = folder / "plain.csv"
        run_plan(folder, "plain", -1, "rows.ledger")  # imports what is needed
        for number in range(given.rounds):
            if given.before is not None:
                read, whole = run_before(given.before, folder, 3 * number)
                seconds.setdefault("read before", []).append(read)
                seconds.setdefault("release before", []).append(whole)
            read, whole = run_plan(folder, "plain", 3 * number + 1, "rows.ledger")
            seconds.setdefault("read", []).append(read)
            seconds.setdefault("release", []).append(whole)
            messy, _ = run_plan(folder, "messy", 3 * number + 2, "rows.ledger")
            seconds.setdefault("messy", []).append(messy)
            arrow = clock(lambda: csv.read_csv(plain, convert_options=typed))
            seconds.setdefault("pyarrow", []).append(arrow)
            pandas = clock(lambda: pd.read_csv(plain, dtype=texts, parse_dates=["time"]))
            seconds.setdefault("pandas", []).append(pandas)
    for name, values in seconds.items():
        print(f"{name:16} {statistics.median(values):6.2f} s")


if __name__ == "__main__":
    main()
