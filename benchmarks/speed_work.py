"""Measure one row of the table of speeds by the package that is imported, in a process of its own.

Public calls alone, so that an older checkout of the package can be measured, too. Both sides of a
row take turns; a figure is a median of turns, of CPU time of all threads. Imports are not timed
unless the row is about them.
"""

import importlib
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpframe as dpf

TURNS = 5
COMPILED = 10  # turns until Java has compiled what it runs
MS, NS = 1e3, 1e9
BOUNDS = {"value": (0, 50)}
TOTALS = {"n": dpf.count(), "total": dpf.sum("value")}
CAPS = {"privacy_unit": "unit", "max_groups": 5, "max_rows_per_group": 2}
EACH = {"privacy_unit": dpf.EACH_ROW}
Call = Callable[[], Any]


def cpu(call: Call) -> float:
    """The seconds of CPU time that a call takes."""
    start = time.process_time()
    call()
    return time.process_time() - start


def medians(*calls: Call, turns: int = TURNS, warm: bool = True) -> list[float]:
    """The median seconds of calls that take turns, after one that is not timed."""
    if warm:
        for call in calls:
            call()
    times = [[cpu(call) for call in calls] for _ in range(turns)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def ratio(ours: Call, other: Call, turns: int = TURNS) -> float:
    """The time of a call over that of another."""
    one, two = medians(ours, other, turns=turns)
    return one / two


def slope(times: dict[int, float]) -> float:
    """The exponent with which times grow, from the smallest to the largest size."""
    (least, first), *_, (most, last) = sorted(times.items())
    return math.log(last / first) / math.log(most / least)


def rows(number: int, keys: int = 1_000) -> pd.DataFrame:
    """Rows with a key, a value and a unit of ten rows."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "key": rng.integers(0, keys, number),
            "value": rng.normal(20, 30, number),
            "unit": rng.integers(0, max(number // 10, 1), number),
        }
    )


def released(frame: Any, keys: object, queries: object = None, **unit: object) -> pd.DataFrame:
    """Declare a frame and release a count and a sum by key, or other queries."""
    frame.dp.declare(keys={"key": keys}, bounds=BOUNDS, **(unit or EACH))
    return dpf.release(frame, queries or dpf.aggregate("key", **TOTALS), epsilon=1, delta=1e-6)


def texts(codes: np.ndarray, number: int, dtype: str) -> pd.Series:
    """Numbers below so many, as texts."""
    names = np.array([f"name {place:07}" for place in range(number)], dtype=object)
    return pd.Series(names[codes], dtype=dtype)


# files


def three_columns(groups: int) -> pd.DataFrame:
    """A count, a sum and a mean by integer keys."""
    queries = dpf.aggregate("key", **TOTALS, fare=dpf.mean("value"))
    return released(rows(2 * groups, groups), range(groups), queries)


def bare(table: pd.DataFrame) -> pd.DataFrame:
    """The same numbers as a frame of pandas alone."""
    return pd.DataFrame(table.to_numpy(), table.index, table.columns)


def write_csvs(folder: str, groups: str) -> None:
    """Write files for `read_csv`; run in another process than the one that reads them."""
    for place in range(TURNS + 1):
        dpf.write_csv(three_columns(int(groups)), Path(folder, f"{place}.csv"))


def reads_csv(groups: int) -> float:
    """Files that were never read before."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "write_csvs", folder, str(groups)]
        subprocess.run(command, check=True)
        ours, other = (iter(sorted(Path(folder).glob("?.csv"))) for _ in range(2))
        return ratio(lambda: dpf.read_csv(next(ours)), lambda: pd.read_csv(next(other)))


def writes(kind: str, groups: int = 100_000) -> float:
    """Write files as pandas does; each turn writes the same release."""
    table = three_columns(groups)
    plain = bare(table)
    write = {"csv": dpf.write_csv, "parquet": dpf.write_parquet}[kind]
    with tempfile.TemporaryDirectory() as folder:
        ours, other = Path(folder, f"ours.{kind}"), Path(folder, f"other.{kind}")
        return ratio(lambda: write(table, ours), lambda: getattr(plain, f"to_{kind}")(other))


# what follows a release


def intervals() -> float:
    """Intervals of 100,000 means, each of a release of its own, beside that release."""
    groups = 100_000
    frame = rows(2 * groups, groups)
    frame.dp.declare(keys={"key": range(groups)}, bounds=BOUNDS, **EACH)
    tables: list[pd.DataFrame] = []

    def release() -> None:
        query = dpf.mean("value", "key")
        tables.append(dpf.release(frame, query, epsilon=1, delta=1e-6))

    return 1 / ratio(release, lambda: dpf.interval(tables[-1]))


def binned(name: str) -> float:
    """Nanoseconds a row of a release of 2,000,000 values in bins."""
    number = 2_000_000
    frame = rows(number)
    frame.dp.declare(bounds=BOUNDS, **EACH)
    query = {
        "quantile": dpf.quantile("value", 0.5),
        "ranges": dpf.ranges("value", np.linspace(0, 50, 257)),
        "histogram": dpf.histogram("value", np.linspace(0, 50, 11)),
        "geometric": dpf.histogram("value", np.geomspace(0.05, 50, 11)),
        "uneven": dpf.histogram("value", [0, 1, 2, 5, 7, 12, 18, 25, 31, 40, 50]),
    }[name]
    (took,) = medians(lambda: dpf.release(frame, query, epsilon=1, delta=1e-6))
    return NS * took / number


def times_as_keys(zone: str | None) -> float:
    """Declare 100,000 times as keys and count by them, both for the first time."""
    number = 100_000
    turns = []
    for turn in range(TURNS + 1):
        start = f"{2000 + turn}-01-01"
        keys = pd.date_range(start, periods=number, freq="h", tz=zone)
        codes = np.random.default_rng(0).integers(0, number, 2 * number)
        frame = pd.DataFrame({"key": keys[codes], "value": 1.0})
        turns.append(cpu(lambda f=frame, k=keys: released(f, k, dpf.count("key"))))
    return statistics.median(turns[1:])


# many queries


def many_queries(kind: str, number: int) -> float:
    """The seconds of one release of so many queries."""
    values = np.random.default_rng(0).uniform(0, 100, (500, number))
    frame = pd.DataFrame(values, columns=[f"c{place}" for place in range(number)])
    frame.dp.declare(**EACH)
    bins = range(0, 101, 10)
    if kind == "histogram":
        queries = {name: dpf.histogram(name, bins=bins) for name in frame.columns}
    else:
        queries = {name: dpf.mean(name, bounds=(0, 100)) for name in frame.columns}
    return cpu(lambda: dpf.release(frame, queries, epsilon=1))


def many(kind: str, number: int, figure: str) -> float:
    """The seconds of many queries, or how they grow from a quarter of them."""
    many_queries(kind, 10)
    last = many_queries(kind, number)
    if figure == "seconds":
        return last
    return slope({number // 4: many_queries(kind, number // 4), number: last})


# rows


def after_parquet(keys: int = 1_000) -> float:
    """Nanoseconds a row of a release of 5,000,000 rows that were read from Parquet."""
    number = 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        rows(number, keys).to_parquet(path)
        frame = pd.read_parquet(path)
    frame.dp.declare(keys={"key": range(keys)}, bounds=BOUNDS, **EACH)
    query = dpf.aggregate("key", **TOTALS)
    (took,) = medians(lambda: dpf.release(frame, query, epsilon=1, delta=1e-6))
    return NS * took / number


def engine_after_parquet() -> float:
    """The same by the engine of scans, over the file itself."""
    number = 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        rows(number).to_parquet(path)
        scan = dpf.scan_parquet(path, progress=False)
        (took,) = medians(lambda: released(scan, range(1_000)))
    return NS * took / number


def beside_polars(kind: str, holder: str) -> float:
    """A million rows by 1,000 keys, in a frame of pandas or Polars, beside plain Polars."""
    import polars as pl

    frame = rows(1_000_000)
    start = pd.Timestamp("2026-01-01")
    names = pd.Index([f"name {place:07}" for place in range(1_000)])
    keys: pd.Index = {
        "category": names,
        "text": names,
        "time": pd.date_range(start, periods=1_000, freq="h"),
    }[kind]
    column = pd.Series(keys.to_numpy()[frame["key"].to_numpy()])
    if kind == "category":
        column = column.astype(pd.CategoricalDtype(keys))
    frame["key"] = column
    other = pl.from_pandas(frame)
    ours = dpf.scan(other, progress=False) if holder == "polars" else frame
    query = dpf.aggregate("key", **TOTALS)
    ours.dp.declare(keys={"key": keys}, bounds=BOUNDS, **EACH)

    def plain() -> object:
        clipped = pl.col("value").clip(0, 50)
        return other.group_by("key").agg(pl.len(), clipped.sum())

    return ratio(lambda: dpf.release(ours, query, epsilon=1, delta=1e-6), plain, 2 * TURNS)


def text_units() -> float:
    """Two million rows of 200,000 text units with caps, beside pandas without caps."""
    number = 2_000_000
    frame = rows(number, 100)
    frame["unit"] = texts(frame["unit"].to_numpy(), number // 10, "str")
    frame.dp.declare(keys={"key": range(100)}, bounds=BOUNDS, **CAPS)

    def plain() -> object:
        clipped = frame.assign(value=frame["value"].clip(0, 50))
        return clipped.groupby("key")["value"].agg(["size", "sum"])

    query = dpf.aggregate("key", **TOTALS)
    return ratio(lambda: dpf.release(frame, query, epsilon=1, delta=1e-6), plain)


CAPPED = """
SELECT key, count(*), sum(least(greatest(value, 0), 50)) FROM
  (SELECT unit, key, value, dense_rank() OVER (PARTITION BY unit ORDER BY hash(key)) AS g,
    row_number() OVER (PARTITION BY unit, key ORDER BY hash(value)) AS r FROM frame)
WHERE g <= 5 AND r <= 2 GROUP BY key
"""


def object_units() -> float:
    """Two million rows of 200,000 units that are objects, beside DuckDB with the same caps."""
    import duckdb

    number = 2_000_000
    frame = rows(number, 100)
    frame["unit"] = texts(frame["unit"].to_numpy(), number // 10, "object")
    frame.dp.declare(keys={"key": range(100)}, bounds=BOUNDS, **CAPS)
    query = dpf.aggregate("key", **TOTALS)
    return ratio(
        lambda: dpf.release(frame, query, epsilon=1, delta=1e-6),
        lambda: duckdb.sql(CAPPED).fetchall() if len(frame) else None,
    )


def passes(name: str) -> float:
    """A release of a million rows beside one of a count and a sum of the same rows by 10 keys."""
    number = 1_000_000
    frame = rows(number, 10)
    rng = np.random.default_rng(2)
    names = [f"a{place}" for place in range(6)]
    for column in names:
        frame[column] = rng.integers(0, 4, number)
    frame["other"] = rng.normal(20, 30, number)
    frame["word"] = texts(rng.integers(0, 1_000, number), 1_000, "str")
    keys = {"key": range(10), **{column: range(4) for column in names}}
    bounds = {"value": (0, 50), "other": (0, 50)}
    frame.dp.declare(keys=keys, bounds=bounds, **EACH)
    means = {f"m{k}": dpf.mean("value", where=f"other > {2 * k}") for k in range(20)}
    query = {
        "where": dpf.aggregate("key", **means),
        "margins": dpf.margins(names, 2),
        "discover": dpf.discover("word"),
        "corr": dpf.corr("value", "other", by="key"),
    }[name]
    totals = dpf.aggregate("key", **TOTALS)
    return ratio(
        lambda: dpf.release(frame, query, epsilon=1, delta=1e-6),
        lambda: dpf.release(frame, totals, epsilon=1, delta=1e-6),
    )


# processes


def output_of(code: str) -> float:
    """What a new process prints."""
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def imported() -> float:
    """Seconds that importing dpframe adds to importing pandas."""
    code = "import time\nimport {}\nprint(time.process_time())"
    pairs = [[output_of(code.format(name)) for name in ("dpframe", "pandas")] for _ in range(9)]
    return statistics.median(one - two for one, two in pairs)


def small_frame() -> pd.DataFrame:
    """A thousand rows of 300 units, declared."""
    rng = np.random.default_rng(1)
    zones = [f"zone {place}" for place in range(8)]
    frame = pd.DataFrame(
        {
            "key": rng.choice(zones, 1_000),
            "value": rng.gamma(2, 10, 1_000),
            "unit": rng.integers(0, 300, 1_000),
        }
    )
    facts = {"keys": {"key": zones}, "bounds": BOUNDS}
    frame.dp.declare(**facts, privacy_unit="unit", max_rows=3)
    return frame


def first_release() -> None:
    """Print the milliseconds of the first release of this process: a count, a sum and a mean."""
    frame = small_frame()
    query = dpf.aggregate("key", **TOTALS, fare=dpf.mean("value"))
    print(MS * cpu(lambda: dpf.release(frame, query, epsilon=1, delta=1e-6)))


def of_process() -> float:
    """Milliseconds of first releases."""
    command = [sys.executable, __file__, "first_release"]

    def one() -> float:
        return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    return statistics.median(one() for _ in range(7))


def repeated() -> float:
    """Milliseconds of a release that was made before."""
    frame = small_frame()
    query = dpf.aggregate("key", **TOTALS, fare=dpf.mean("value"))
    (took,) = medians(lambda: dpf.release(frame, query, epsilon=1, delta=1e-6), turns=101)
    return MS * took


# clusters


def parquet_files(folder: Path, files: int, number: int) -> None:
    """Write files of rows; most units have all their rows in one of them."""
    for place in range(files):
        frame = rows(number)
        frame["unit"] += place * number // 10
        frame.to_parquet(folder / f"{place}.parquet")


def dask_with_caps() -> float:
    """Seconds of all processes of a capped release of 8,000,000 rows on two workers of Dask."""
    import dask.dataframe as dd
    import distributed

    import dpframe.dask  # noqa: F401, registers the engine

    settings = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
    with (
        tempfile.TemporaryDirectory() as made,
        distributed.LocalCluster(**settings, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        parquet_files(Path(made), 8, 1_000_000)

        def one() -> float:
            before = sum(client.run(time.process_time).values())
            mine = cpu(lambda: released(dd.read_parquet(made), range(1_000), **CAPS))
            return mine + sum(client.run(time.process_time).values()) - before

        one()
        return statistics.median(one() for _ in range(3))


def scan_with_caps() -> float:
    """Seconds of the same by a scan in one process."""
    with tempfile.TemporaryDirectory() as made:
        parquet_files(Path(made), 8, 1_000_000)
        scan = dpf.scan_parquet(made, progress=False)
        (took,) = medians(lambda: released(scan, range(1_000), **CAPS), turns=3)
    return took


def spark(unit: str = "each") -> float:
    """The engine of `examples/spark_engine.py` beside a plain `groupBy`, in elapsed time."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sf

    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the workers, else a python3 without dpframe
    settings = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    place = Path(dpf.__file__).parents[1] / "examples" / "spark_engine.py"
    session.sparkContext.addPyFile(str(place))  # workers import it by its name
    importlib.import_module("spark_engine")
    facts = CAPS if unit == "capped" else EACH
    with tempfile.TemporaryDirectory() as made:
        rows(4_000_000).to_parquet(Path(made, "rows.parquet"))
        frame = session.read.parquet(made)
        clipped = sf.least(sf.greatest(frame["value"], sf.lit(0)), sf.lit(50))

        def elapsed(call: Call) -> float:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start

        def ours() -> None:
            released(frame, range(1_000), **facts)

        def plain() -> None:
            frame.groupBy("key").agg(sf.count("*"), sf.sum(clipped)).collect()

        pairs = [(elapsed(ours), elapsed(plain)) for _ in range(COMPILED + TURNS)][COMPILED:]
    session.stop()
    return statistics.median(one / two for one, two in pairs)


# growth


def files_grow() -> dict[int, float]:
    """Seconds of rows in ten Parquet files, each row its own unit."""
    times = {}
    for number in (10_000_000, 100_000_000):
        with tempfile.TemporaryDirectory() as made:
            chunk = rows(number // 10)
            for place in range(10):
                chunk.to_parquet(Path(made, f"{place}.parquet"), row_group_size=1 << 17)
            del chunk
            scan = dpf.scan_parquet(made, progress=False)
            (times[number],) = medians(lambda scan=scan: released(scan, range(1_000)), turns=3)
    return times


def groups_grow() -> dict[int, float]:
    """Seconds of a release by so many groups of rows of which each group has two."""
    times = {}
    for groups in (100_000, 1_000_000):
        frame = rows(2 * groups, groups)
        (times[groups],) = medians(lambda g=groups, f=frame: released(f, range(g)), turns=3)
    return times


def opened(number: int, parts: int = 0) -> float:
    """Seconds to open a ledger file of so many entries, and to charge one more."""
    from bench_ledger_parts import entries, write

    with tempfile.TemporaryDirectory() as made:
        path = Path(made, "ledger")
        *written, first, second, third, last = entries(number + 4, parts)
        write(path, written, "week" if parts else None)
        later = iter((first, second, third, last))
        (took,) = medians(lambda: dpf.Ledger(path).charge(next(later)), turns=3)
    return took


def entries_grow() -> dict[int, float]:
    """Seconds to open a ledger of so many entries, and to charge one more."""
    return {number: opened(number) for number in (10_000, 100_000)}


def parts_grow() -> dict[int, float]:
    """The same with a budget for each of so many parts, ten entries a part."""
    return {parts: opened(10 * parts, parts) for parts in (1_000, 10_000)}


def margins_grow() -> dict[int, float]:
    """Seconds of all pairs of so many columns."""
    times = {}
    for columns in (6, 24):
        rng = np.random.default_rng(2)
        names = [f"a{place}" for place in range(columns)]
        frame = pd.DataFrame({name: rng.integers(0, 4, 200_000) for name in names})
        frame.dp.declare(keys={name: range(4) for name in names}, **EACH)
        query = dpf.margins(names, 2)
        pairs = math.comb(columns, 2)
        (times[pairs],) = medians(
            lambda f=frame, q=query: dpf.release(f, q, epsilon=1, delta=1e-6), turns=3
        )
    return times


def growth(name: str) -> float:
    """The exponent of a growth."""
    grows = {
        "files": files_grow,
        "groups": groups_grow,
        "entries": entries_grow,
        "parts": parts_grow,
        "margins": margins_grow,
    }
    times = grows[name]()
    print({size: round(seconds, 4) for size, seconds in times.items()}, file=sys.stderr)
    return slope(times)


def main() -> None:
    """Call a function by its name and arguments; the figure is the last line of the output."""
    name, *arguments = sys.argv[1:]
    figure = globals()[name](*map(read, arguments))
    if figure is not None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"figure": figure, "peak_mb": round(peak)}))


def read(argument: str) -> object:
    """Numbers are numbers, and other words are texts."""
    if argument == "None":
        return None
    return int(argument) if argument.isdecimal() else argument


if __name__ == "__main__":
    main()
