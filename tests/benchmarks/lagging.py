"""Measure what was slow, beside its goal: medians of seven, both sides in turn where there are two.

Run with `python tests/benchmarks/lagging.py [ROW ...]` on an idle machine.
"""

import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd

import dpframe as dpf
from dpframe.privacy.noise import integer_noise
from dpframe.privacy.noise_tables import GAUSSIAN_CURVE, LAPLACE_CURVE

ROUNDS = 7
ROWS = 100_000
BUDGET = dpf.Budget(epsilon=10, delta=1e-6)


class Line(NamedTuple):
    """What was measured of some work: seconds, or a ratio; and the most that it should be."""

    work: str
    found: float
    goal: float
    unit: str = "s"


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
            spent = seconds(lambda c=curve, n=size: integer_noise(c, 30.0, n), 200)
            yield Line(f"{name} noise, {size:,} draws", 1e6 * spent, goal, "us")


TABLE = {"bins": bins, "conditions": conditions, "small": small, "few_draws": few_draws}
"""The rows by name."""


def processor() -> str:
    """Name the processor."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def main(names: list[str]) -> None:
    """Print the table."""
    print(f"{processor()}, Python {platform.python_version()}")
    for name in names or TABLE:
        for line in TABLE[name]():
            met = "met" if line.found <= line.goal else "not met"
            print(f"{line.work:40} {line.found:10.3g} {line.unit:3} goal {line.goal:g}: {met}")


if __name__ == "__main__":
    main(sys.argv[1:])
