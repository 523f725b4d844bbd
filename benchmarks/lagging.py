"""Measure what was slow, beside its goal: medians of seven, both sides in turn where there are two.

Run with `python benchmarks/lagging.py [ROW ...]` on an idle machine.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd

import dpframe as dpf
from dpframe.context import SYSTEM
from dpframe.privacy.gaussian import GAUSSIAN_CURVE
from dpframe.privacy.laplace import LAPLACE_CURVE
from dpframe.privacy.noise import integer_noise

ROUNDS = 7
ROWS = 100_000
BUDGET = dpf.Budget(epsilon=10, delta=1e-6)
PEERS = Path(__file__).parent / "peers"
KEYS = 1_000
FILED_ROWS = 100_000_000
DEALT_ROWS = 20_000_000


class Line(NamedTuple):
    """What was measured of some work: seconds, or a ratio; and the most that it should be."""

    work: str
    found: float
    goal: float
    unit: str = "s"


def spent(call: Callable[[], object]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def seconds(call: Callable[[], object], times: int = 1) -> float:
    """Return the median time of a call, of rounds of so many calls each."""
    call()
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            call()
        found.append((time.perf_counter() - start) / times)
    return statistics.median(found)


def rows_of_values() -> pd.DataFrame:
    """Make a declared frame of one column."""
    frame = pd.DataFrame({"v": np.random.default_rng(1).exponential(20, ROWS)})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, bounds={"v": (0, 50)})
    return frame


def bins() -> Iterator[Line]:
    """Time a histogram of a million bins."""
    frame, edges = rows_of_values(), np.linspace(0, 50, 1_000_001)
    yield Line("1,000,000 bins", seconds(lambda: frame.dp.histogram("v", edges, epsilon=1)), 1)


def conditions() -> Iterator[Line]:
    """Time 2,000 counts with conditions in one release."""
    frame = rows_of_values()
    asked = {f"over {i}": dpf.count(where=f"v > {i / 40}") for i in range(2_000)}
    spent = seconds(lambda: frame.dp.aggregate(**asked, epsilon=1, delta=1e-6))
    yield Line("2,000 count(where=)", spent, 1)


def small_frame(ledger: dpf.Ledger | None = None) -> pd.DataFrame:
    """Make a declared frame of a thousand rows in ten groups."""
    rng = np.random.default_rng(2)
    zones = [f"zone {i}" for i in range(10)]
    frame = pd.DataFrame({"zone": rng.choice(zones, 1_000), "fare": rng.gamma(2, 10, 1_000)})
    frame.dp.declare(
        privacy_unit=dpf.EACH_ROW, bounds={"fare": (0, 100)}, keys={"zone": zones}, ledger=ledger
    )
    return frame


def small() -> Iterator[Line]:
    """Time a small release, without a ledger and with one in a file."""
    frame = small_frame()
    spent = seconds(lambda: frame.dp.count(by="zone", epsilon=1), 20)
    yield Line("small count, no ledger", 1e3 * spent, 1.5, "ms")
    for entries in (1, 100):
        with TemporaryDirectory() as folder:
            spent = with_ledger(Path(folder) / "small.ledger", entries)
        yield Line(f"small count and mean, {entries} entries", 1e3 * spent, 4, "ms")


def with_ledger(path: Path, entries: int) -> float:
    """Time a small release of a count and a mean, beside so many entries in a file."""
    frame = small_frame(dpf.Ledger.create(path, budget=BUDGET))
    for _ in range(entries):
        frame.dp.count(by="zone", epsilon=1e-3)
    return seconds(
        lambda: frame.dp.aggregate("zone", n=dpf.count(), mean=dpf.mean("fare"), epsilon=1e-3)
    )


def few_draws() -> Iterator[Line]:
    """Time a thousand exact draws, and one."""
    for name, curve in (("Gaussian", GAUSSIAN_CURVE), ("Laplace", LAPLACE_CURVE)):
        for size, goal in ((1_000, 40), (1, 20)):
            spent = seconds(lambda c=curve, n=size: integer_noise(c, 30.0, n, SYSTEM), 200)
            yield Line(f"{name} noise, {size:,} draws", 1e6 * spent, goal, "us")


def million_draws() -> Iterator[Line]:
    """Compare ten thousand to a million exact draws with numpy's draws of floats."""
    normal = np.random.default_rng(3).normal
    curves = (("Gaussian", GAUSSIAN_CURVE), ("Laplace", LAPLACE_CURVE))
    sizes = (10_000, 30_000, 100_000, 300_000, 1_000_000)
    for (name, curve), scale, size in product(curves, (30.0, 2.0**20, 2.0**45), sizes):
        found = ratio(
            partial(integer_noise, curve, scale, size),
            partial(normal, 0.0, scale, size),
            max(1, 1_000_000 // size),
        )
        yield Line(f"{name} noise, {size:,} draws, scale {scale:.3g}", found, 1.2, "x")


def ratio(ours: Callable[[], object], theirs: Callable[[], object], times: int = 1) -> float:
    """Return the ratio of the median times of two calls, measured in turn, so many times more."""
    ours()  # what is prepared once is prepared
    found = [(spent(ours), spent(theirs)) for _ in range(ROUNDS * times)]
    mine, others = map(statistics.median, zip(*found, strict=True))
    return mine / others


def grouped(frame: pd.DataFrame) -> pd.DataFrame:
    """Clip, count and add up with plain pandas."""
    clipped = frame.assign(value=frame["value"].clip(0, 50))
    return clipped.groupby("key", observed=False)["value"].agg(["size", "sum"])


def beside_pandas(rows: int, groups: int, kind: str, **unit: object) -> float:
    """Compare counts and sums by group with plain pandas."""
    rng = np.random.default_rng(1)
    codes, names = rng.integers(0, groups, rows), [f"key_{place:06d}" for place in range(groups)]
    made: dict[str, Callable[[], object]] = {
        "integers": lambda: codes,
        "texts": lambda: pd.Series(np.array(names, object)[codes], dtype="str"),
        "categories": lambda: pd.Categorical.from_codes(codes, pd.Index(names)),
    }
    frame = pd.DataFrame({"key": made[kind](), "value": rng.exponential(20, rows)})
    frame["unit"] = rng.integers(0, rows // 10, rows)
    keys = {"key": range(groups) if kind == "integers" else names}
    frame.dp.declare(bounds={"value": (0, 50)}, keys=keys, **unit)
    asked = {"n": dpf.count(), "total": dpf.sum("value"), "epsilon": 1, "delta": 1e-6}
    return ratio(lambda: frame.dp.aggregate("key", **asked), lambda: grouped(frame))


def many_keys() -> Iterator[Line]:
    """Compare 100,000 keys with plain pandas, each row a unit of its own."""
    for rows, kind in product((1_000_000, 10_000_000), ("integers", "texts", "categories")):
        found = beside_pandas(rows, 100_000, kind, privacy_unit=dpf.EACH_ROW)
        yield Line(f"100,000 keys, {rows:,} rows, {kind}", found, 1.5, "x")


def caps() -> Iterator[Line]:
    """Compare caps of 3 groups with 5 rows each with plain pandas, that has none."""
    unit = {"privacy_unit": "unit", "max_groups": 3, "max_rows_per_group": 5}
    for rows, kind in product((1_000_000, 10_000_000), ("integers", "texts", "categories")):
        found = beside_pandas(rows, 1_000, kind, **unit)
        yield Line(f"3 x 5 rows, {rows:,} rows, {kind}", found, 3 if rows < 1e7 else 2.5, "x")


def peer(script: str, *arguments: object) -> str:
    """Run a script of the comparison with other libraries in a process of its own."""
    command = [sys.executable, str(PEERS / script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files() -> Iterator[Line]:
    """Time a scan of files with caps of 5 groups with 2 rows each, and its memory."""
    with TemporaryDirectory() as made:
        folder = Path(made) / "rows"
        peer("peer_data.py", folder, FILED_ROWS, KEYS)
        os.sync()  # or the disk is still busy with them
        case = {"part": "files", "variant": "scan", "task": "unit", "keys": KEYS}
        asked = json.dumps({**case, "folder": str(folder)})
        # each is the median of three
        found = [json.loads(peer("run_dpframe.py", asked).splitlines()[-1]) for _ in range(3)]
    work = f"5 x 2 rows, files of {FILED_ROWS:,} rows"
    yield Line(work, statistics.median(one["seconds"] for one in found), 8)
    yield Line(f"{work}, memory", max(one["peak_mb"] for one in found), 500, "MB")


def cluster() -> Iterator[Line]:
    """Compare two worker processes of Dask with one, each with one thread, with the same caps."""
    with TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made) / "rows"
        peer("peer_data.py", folder, DEALT_ROWS, KEYS)
        one, two = (dealt(folder, workers, stack) for workers in (1, 2))
        found = ratio(two, one)
    yield Line(f"2 workers beside 1, {DEALT_ROWS:,} rows", found, 1 / 1.6, "x")


def dealt(folder: Path, workers: int, stack: ExitStack) -> Callable[[], object]:
    """Start worker processes of Dask, and return a release by them."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import dpframe.dask  # noqa: F401  # registers the accessor

    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    client = stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))
    caps = {"privacy_unit": "unit", "max_groups": 5, "max_rows_per_group": 2}
    frame = dd.read_parquet(folder)
    frame.dp.declare(bounds={"value": (0, 50)}, keys={"key": range(KEYS)}, **caps)

    def release() -> object:
        with client.as_current():
            return frame.dp.aggregate(
                "key", n=dpf.count(), total=dpf.sum("value"), epsilon=1, delta=1e-6
            )

    return release


TABLE = {
    "bins": bins,
    "conditions": conditions,
    "small": small,
    "few_draws": few_draws,
    "million_draws": million_draws,
    "many_keys": many_keys,
    "caps": caps,
    "files": files,
    "cluster": cluster,
}
"""The rows by name."""


def main(names: list[str]) -> None:
    """Print the table."""
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    for name in names or TABLE:
        for line in TABLE[name]():
            met = "met" if line.found <= line.goal else "not met"
            print(f"{line.work:40} {line.found:10.3g} {line.unit:3} goal {line.goal:g}: {met}")


if __name__ == "__main__":
    main(sys.argv[1:])
