"""Time what surrounds the rows of a release, beside other libraries and another checkout.

    python benchmarks/bench_speed.py
    python benchmarks/bench_speed.py --before ANOTHER_CHECKOUT --only read quantile
    python benchmarks/bench_speed.py --before ANOTHER_CHECKOUT --write

Checkouts take turns; each turn of each row is a process of its own, which runs both sides of a
ratio in turn. Figures are medians, of CPU time unless the row says so. A row that needs a library
which is missing says so. With `--write`, `speed.json` and the table of `speed.md` in
`benchmarks/results` are made anew; rows that were not measured stay as they were.
"""

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from peers.machines import described

ROOT = Path(__file__).resolve().parents[1]
WORK = Path(__file__).with_name("speed_work.py")
RESULTS = ROOT / "benchmarks" / "results" / "speed.json"
PAGE = RESULTS.with_suffix(".md")
BEGIN, END = "<!-- table of speeds -->", "<!-- end of the table of speeds -->"
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # waiting threads count as CPU time
LIMIT = 900  # seconds of a process
X, NS, S, MS, SLOPE = "x", "ns a row", "s", "ms", "slope"


class Row(NamedTuple):
    """A figure: words, unit, goal, and the function of `speed_work.py` with its arguments."""

    words: str
    unit: str
    goal: float
    work: str
    needs: str | None = None


ROWS = {
    "read": Row("`read_csv`, 100,000 groups, beside pandas", X, 4, "reads_csv 100000"),
    "read more": Row("`read_csv`, 200,000 groups, beside pandas", X, 4, "reads_csv 200000"),
    "write csv": Row("`write_csv` beside pandas", X, 1.5, "writes csv"),
    "write parquet": Row("`write_parquet` beside pandas", X, 3, "writes parquet", "pyarrow"),
    "interval": Row("`interval` of 100,000 means beside their release", X, 2, "intervals"),
    "quantile": Row("quantile of 2,000,000 rows", NS, 20, "binned quantile"),
    "ranges": Row("ranges of 257 edges", NS, 16, "binned ranges"),
    "histogram": Row("histogram of 10 equal bins", NS, 15, "binned histogram"),
    "geometric": Row("histogram of 10 geometric bins", NS, 15, "binned geometric"),
    "uneven": Row("histogram of 10 uneven bins", NS, 15, "binned uneven"),
    "times": Row("declare and count 100,000 times", S, 0.1, "times_as_keys None"),
    "zone": Row("the same in a time zone", S, 0.1, "times_as_keys Europe/Berlin"),
    "histograms": Row("a release of 1,000 histograms", S, 0.8, "many histogram 1000 seconds"),
    "histograms grow": Row("the same, from 250", SLOPE, 1.1, "many histogram 1000 slope"),
    "means": Row("a release of 2,000 means", S, 0.8, "many mean 2000 seconds"),
    "means grow": Row("the same, from 500", SLOPE, 1.1, "many mean 2000 slope"),
    "parquet rows": Row("5,000,000 rows after `read_parquet`", NS, 8, "after_parquet", "pyarrow"),
    "parquet scan": Row("a scan of the same file", NS, 9, "engine_after_parquet", "pyarrow"),
    "category": Row(
        "1,000 categories beside Polars", X, 1.2, "beside_polars category pandas", "polars"
    ),
    "time": Row("1,000 times beside Polars", X, 1.2, "beside_polars time pandas", "polars"),
    "text": Row("1,000 texts beside Polars", X, 1.2, "beside_polars text pandas", "polars"),
    "polars category": Row(
        "1,000 categories of a Polars frame", X, 1.2, "beside_polars category polars", "polars"
    ),
    "polars time": Row(
        "1,000 times of a Polars frame", X, 1.2, "beside_polars time polars", "polars"
    ),
    "polars text": Row(
        "1,000 texts of a Polars frame", X, 1.2, "beside_polars text polars", "polars"
    ),
    "text units": Row("text units with caps beside pandas without", X, 2.5, "text_units"),
    "object units": Row("object units beside DuckDB", X, 1, "object_units", "duckdb"),
    "where": Row("20 means with `where`, in passes of count and sum", X, 8, "passes where"),
    "margins": Row("margins of 6 columns, in the same passes", X, 5, "passes margins"),
    "discover": Row("`discover`, in the same passes", X, 5, "passes discover"),
    "corr": Row("`corr`, in the same passes", X, 4, "passes corr"),
    "import": Row("importing dpframe beside pandas alone", S, 0.12, "imported"),
    "first": Row("first release in a process", MS, 40, "of_process"),
    "repeated": Row("a repeated release", MS, 2.5, "repeated"),
    "dask": Row("Dask, two workers, caps, 8,000,000 rows", S, 1.3, "dask_with_caps", "distributed"),
    "scan": Row("a scan of the same in one process", S, 0.61, "scan_with_caps", "pyarrow"),
    "spark": Row("Spark without a unit beside `groupBy`, elapsed", X, 1.3, "spark", "pyspark"),
    "spark unit": Row(
        "Spark with units beside `groupBy`, elapsed", X, 3.5, "spark capped", "pyspark"
    ),
    "files grow": Row("rows of files, 10 to 100 million", SLOPE, 1.1, "growth files", "pyarrow"),
    "groups grow": Row("groups, 100,000 to 1,000,000", SLOPE, 1.1, "growth groups"),
    "entries grow": Row("entries of a ledger, 10,000 to 100,000", SLOPE, 1.1, "growth entries"),
    "parts grow": Row("parts of a ledger, 1,000 to 10,000", SLOPE, 1.1, "growth parts"),
    "margins grow": Row("pairs of margins, 15 to 276", SLOPE, 1.1, "growth margins"),
}


def figure(row: Row, checkout: Path) -> float | str:
    """Measure a row by a checkout; words where that is not possible."""
    python = sys.executable
    if row.needs is not None:
        has = f"import importlib.util as i, sys; sys.exit(i.find_spec('{row.needs}') is None)"
        if subprocess.run([python, "-c", has], check=False).returncode:
            return "not installed"
    command = [python, str(WORK), *row.work.split()]
    environment = {**os.environ, **ALONE, "PYTHONPATH": str(checkout)}
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return f"more than {LIMIT} s"
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return "failed"
    print(done.stderr, end="", file=sys.stderr)
    return float(json.loads(done.stdout.splitlines()[-1])["figure"])


def median(figures: list[float | str]) -> float | str:
    """The median of the rounds, or the words of one that was not measured."""
    words = [value for value in figures if isinstance(value, str)]
    return words[0] if words else statistics.median(figures)  # type: ignore[type-var]


def written(value: float | str | None) -> str:
    """A figure with three digits."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.3g}"


def lines(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The table, in the order of the rows."""
    yield "| measured | unit | before | now | goal |"
    yield "|---|---|---|---|---|"
    for name, row in ROWS.items():
        if name in results:
            found = results[name]
            before, now = written(found.get("before")), written(found["now"])
            yield f"| {row.words} | {row.unit} | {before} | {now} | {row.goal:g} |"


def write(results: dict[str, dict[str, Any]], machine: str) -> None:
    """Keep the figures, and make the table of the page anew."""
    kept = {"machine": machine, "rows": results}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    first, _, rest = text.partition(BEGIN)
    _, _, last = rest.partition(END)
    table = "\n".join(lines(results))
    PAGE.write_text(f"{first}{BEGIN}\n\n{table}\n\n{END}{last}", encoding="utf-8")


def earlier() -> dict[str, dict[str, Any]]:
    """The figures that are kept."""
    if not RESULTS.exists():
        return {}
    return json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout of the package")
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="keep the figures")
    options = parser.parse_args()
    checkouts = {"now": ROOT}
    if options.before is not None:
        checkouts = {"before": options.before.resolve(), "now": ROOT}
    for checkout in checkouts.values():  # as it is when it was installed
        compileall.compile_dir(checkout / "dpframe", quiet=1)
    here = described()
    machine = (
        f"on {here['date']}, {here['cores']} cores ({here['processor']}), {here['memory_gb']} GB "
        f"of memory, Python {here['python']}; other work kept {here['busy']} cores busy"
    )
    results = {}
    for name in options.only:
        figures: dict[str, list[float | str]] = {side: [] for side in checkouts}
        for _ in range(options.rounds):
            for side, checkout in checkouts.items():
                if side == "now" or not ROWS[name].work.startswith("growth"):  # of one side alone
                    figures[side].append(figure(ROWS[name], checkout))
        results[name] = {side: median(found) for side, found in figures.items() if found}
        print(f"{name}: {results[name]}", file=sys.stderr, flush=True)
    print(f"Measured {machine}\n", *lines(results), sep="\n")
    if options.write:
        write({**earlier(), **results}, machine)


if __name__ == "__main__":
    main()
