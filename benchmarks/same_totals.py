"""Compare the exact totals of all engines with each other and with those of another checkout.

    python benchmarks/same_totals.py --before ANOTHER_CHECKOUT

Seeded rows with missing values, infinities, values on edges and next to them are totaled by keys
of several types and by bins, with conditions, and with units under caps that drop nothing. Totals
are integers; any difference is printed, and makes the exit code 1.
"""

import argparse
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
ROWS = 60_000
UNITS = 5_000
EQUAL, GEOMETRIC = np.linspace(0, 50, 65), np.geomspace(0.05, 1e4, 33)
TYPES = {"k": "int64", "t": "string", "x": "float64", "n": "int64", "u": "int64"}


def frame() -> pd.DataFrame:
    """Seeded rows."""
    rng = np.random.default_rng(5)
    edges = np.concatenate([EQUAL, GEOMETRIC])
    ends = np.array([np.inf, -np.inf])[:, None]
    near = np.concatenate([edges, np.nextafter(edges, ends).ravel(), [0, -0.0, np.inf, -np.inf]])
    x = rng.normal(20, 30, ROWS)
    x[rng.random(ROWS) < 0.2] = np.nan
    odd = rng.random(ROWS) < 0.3
    x[odd] = rng.choice(near, odd.sum())
    codes = rng.integers(0, 120, ROWS)
    return pd.DataFrame(
        {
            "k": codes,
            "t": pd.Series([f"name {code}" for code in codes], dtype="str"),
            "x": x,
            "n": rng.integers(-(2**53), 2**53, ROWS),
            "u": rng.integers(0, UNITS, ROWS),
            "d": pd.Timestamp("2026-01-01") + pd.to_timedelta(codes, unit="h"),
        }
    )


def tasks(only: set[str]) -> dict[str, Any]:
    """What is totaled, of these columns."""
    from dpframe.privacy.neighbors import Caps
    from dpframe.queries.edges import Grid
    from dpframe.queries.tasks import BinAxis, Cells, KeyAxis, Task, Term
    from dpframe.queries.where import Condition

    grid = Grid.for_bounds(0.0, 50.0)
    terms = (Term("rows"), Term("sum", "x", grid), Term("sum", "n", Grid.for_bounds(-1e9, 1e9)))
    every = Caps(rows=ROWS, groups=ROWS, rows_per_group=ROWS)
    keys = {
        "k": pd.RangeIndex(100),
        "t": pd.Index([f"name {code}" for code in range(100)], dtype=object),
        "d": pd.date_range("2026-01-01", periods=100, freq="h"),
    }
    made = {"all": Task(Cells(()), terms)}
    for name, index in keys.items():
        if name in only:
            cells = Cells((KeyAxis(name, index),))
            made[name] = Task(cells, terms)
            made[f"{name} of units"] = Task(cells, terms, unit=("u",), caps=every)
            where = Condition.parse("x > 3 and n < 100000")
            made[f"{name} where"] = Task(cells, terms, where=where)
    for name, edges in {"equal": EQUAL, "geometric": GEOMETRIC, "some": EQUAL[[0, 1, 30]]}.items():
        for closed in ("left", "right", "neither"):
            bins = pd.IntervalIndex.from_breaks(edges, closed=closed)
            for clipped in (False, True):
                cells = Cells((BinAxis("x", bins, clipped=clipped),))
                made[f"{name}, {closed}, {clipped}"] = Task(cells, terms)
    return made


def sources(folder: Path) -> Iterator[tuple[str, Any]]:
    """The same rows as each engine reads them."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow import csv

    import dpframe as dpf

    rows = frame()
    yield "pandas", rows
    yield "pandas, Arrow types", rows.convert_dtypes(dtype_backend="pyarrow")
    yield "pandas, coded", rows.assign(t=rows["t"].astype("category"), x=rows["x"].astype(object))
    for place in range(3):
        rows.iloc[place::3].to_parquet(folder / f"{place}.parquet", row_group_size=4_000)
    yield "Parquet", dpf.scan_parquet(folder, progress=False)
    yield "Arrow", dpf.scan(pa.Table.from_pandas(rows), progress=False)
    rows[list(TYPES)].to_csv(folder / "rows.csv", index=False, float_format="%.17g")
    if "types" in inspect.signature(dpf.scan).parameters:  # an older package reads datasets alone
        yield "CSV", dpf.scan(folder / "rows.csv", types=TYPES, progress=False)
    arrow = {name: pa.type_for_alias(kind) for name, kind in TYPES.items()}
    options = csv.ConvertOptions(column_types=arrow)
    files = ds.dataset(folder / "rows.csv", format=ds.CsvFileFormat(convert_options=options))
    yield "CSV dataset", dpf.scan(files, progress=False)
    if importlib.util.find_spec("polars") is not None:
        import polars as pl

        yield "Polars", dpf.scan(pl.from_pandas(rows), progress=False)
    if importlib.util.find_spec("duckdb") is not None:
        import duckdb

        yield "DuckDB", dpf.scan(duckdb.sql("SELECT * FROM rows"), progress=False)
    if importlib.util.find_spec("dask") is not None:
        import dask.dataframe as dd

        import dpframe.dask  # noqa: F401, registers the engine

        yield "Dask", dd.from_pandas(rows, npartitions=5)


def serve() -> None:
    """Print hashes of all totals of the package that is imported."""
    from dpframe.engines import engine_for

    more = []  # an older package takes no source of randomness
    if importlib.util.find_spec("dpframe.context") is not None:
        more = [importlib.import_module("dpframe.context").SYSTEM]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, source in sources(Path(folder)):
            engine = engine_for(source)
            for what, task in tasks({*TYPES} if "CSV" in name else {*TYPES, "d"}).items():
                (totals,) = engine.totals(source, [task], *more)
                array = np.ascontiguousarray(totals, np.int64)
                found[f"{name}: {what}"] = hashlib.sha256(array.tobytes()).hexdigest()
    print(json.dumps(found))


def hashes(checkout: Path) -> dict[str, str]:
    """Hashes of totals of a checkout."""
    command = [sys.executable, __file__, "--serve"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        command, cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    now = hashes(ROOT)
    different = [
        name for name, total in now.items() if total != now["pandas: " + name.partition(": ")[2]]
    ]
    print(f"{len(now)} totals; unlike those of pandas: {different}")
    if options.before is not None:
        before = hashes(options.before.resolve())
        changed = [name for name in before if before[name] != now[name]]
        print(f"{len(before)} before; unlike those: {changed}")
        different += changed
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
