"""Measure one kind of work at one size; run in a process of its own.

What is made before it is not timed, and not in the memory above the start.
"""

import contextlib
import ctypes
import gc
import itertools
import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import numpy as np
import pandas as pd
from peers.measuring import forget_peak, main, megabytes

import dpframe as dpf

Case = dict[str, object]
Call = Callable[[], object]
BOUNDS = {"value": (0, 50)}
CAPS = {"max_groups": 5, "max_rows_per_group": 2}
KEYS, ROWS_PER_UNIT = 100, 10
IN_MEMORY = Path("/dev/shm")  # noqa: S108
FILES, PIECE, ROW_GROUP = 10, 1_000_000, 1 << 17
BUDGET = dpf.Budget(epsilon=10, delta=1e-6)
ENTRIES = [1e-4 * (1 + part / 7) for part in range(7)]  # what they cost, in turn
OFTEN, SOME = 0.3, 5.0  # seconds of a first run that is repeated six times, and twice


def rows(number: int, keys: int = KEYS, units: int = 0, seed: int = 1) -> pd.DataFrame:
    """Make rows; a unit column only if there are units."""
    rng = np.random.default_rng(seed)
    columns = {"key": rng.integers(0, keys, number), "value": rng.exponential(20, number)}
    if units:
        columns["unit"] = rng.integers(0, units, number)
    return pd.DataFrame(columns)


def texts(codes: np.ndarray, number: int) -> pd.Series:
    """Write numbers below so many as texts."""
    return pd.Series(np.array(names(number), object)[codes], dtype="str")


def names(number: int) -> list[str]:
    return [f"name {place:08d}" for place in range(number)]


def grouped(frame: pd.DataFrame) -> pd.DataFrame:
    """Clip, count and add up with plain pandas."""
    clipped = frame.assign(value=frame["value"].clip(*BOUNDS["value"]))
    return clipped.groupby("key")["value"].agg(["size", "sum"])


def release(frame: object) -> pd.DataFrame:
    """Count and add up a declared frame."""
    asked = {"n": dpf.count(), "total": dpf.sum("value")}
    return frame.dp.aggregate("key", **asked, epsilon=1, delta=1e-6)


def declared(frame: object, keys: object, *, caps: bool = False) -> object:
    """Say what is public, anew."""
    unit = {"privacy_unit": "unit", **CAPS} if caps else {"privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(bounds=BOUNDS, keys={"key": keys}, **unit)
    return frame


def of_rows(line: str, size: int, _: Path) -> Call:
    """Work on rows in memory."""
    capped = line == "unit"
    frame = rows(size, units=size // ROWS_PER_UNIT if capped else 0)
    if line == "pandas":
        return lambda: grouped(frame)
    return lambda: release(declared(frame, range(KEYS), caps=capped))


def of_files(line: str, size: int, folder: Path) -> Call:
    """Work on rows in files."""
    if line == "pandas":
        return lambda: grouped(pd.read_parquet(folder, columns=["key", "value"]))
    return lambda: release(declared(dpf.scan_parquet(folder), range(KEYS), caps=line == "unit"))


def write_files(size: int, folder: Path) -> None:
    """Write Parquet files, in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    for place in range(FILES):
        schema, writer = None, None
        for first in range(0, size // FILES, PIECE):
            number = min(PIECE, size // FILES - first)
            made = rows(number, units=size // ROWS_PER_UNIT, seed=[size, place, first])
            table = pa.Table.from_pandas(made, schema, preserve_index=False)
            schema = table.schema
            writer = writer or pq.ParquetWriter(folder / f"part-{place}.parquet", schema)
            writer.write_table(table, row_group_size=ROW_GROUP)
        writer.close()


def of_keys(line: str, size: int, _: Path) -> Call:
    """Work on a million rows by so many keys."""
    frame = rows(1_000_000, keys=size)
    keys: object = range(size)
    if line == "pandas":
        return lambda: grouped(frame)
    if line == "texts":
        frame["key"], keys = texts(frame["key"].to_numpy(), size), names(size)
    if line == "first":
        return lambda: release(declared(frame, keys))
    release(declared(frame, keys))
    return lambda: release(frame)


def of_units(line: str, size: int, _: Path) -> Call:
    """Work on ten million rows of so many units."""
    frame = rows(10_000_000, units=size)
    if line == "pandas":
        return lambda: grouped(frame)
    if line == "texts":
        frame["unit"] = texts(frame["unit"].to_numpy(), size)
    return lambda: release(declared(frame, range(KEYS), caps=True))


def of_queries(line: str, size: int, _: Path) -> Call:
    """Ask so many counts at once."""
    frame = rows(100_000, keys=10)
    if line == "pandas":
        return lambda: [(frame["value"] > 50 * place / size).sum() for place in range(size)]
    declared(frame, range(10))
    where = {f"count {place}": f"value > {50 * place / size}" for place in range(size)}
    if line == "outputs":
        asked = {name: dpf.count(where=text) for name, text in where.items()}
        return lambda: frame.dp.aggregate(**asked, epsilon=1, delta=1e-6)
    tables = {name: dpf.count("key", where=text) for name, text in where.items()}
    return lambda: frame.dp.release(tables, epsilon=1, delta=1e-6)


def small(ledger: dpf.Ledger) -> pd.DataFrame:
    """Make a small frame that charges a ledger."""
    frame = rows(1_000, keys=10)
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, keys={"key": range(10)}, ledger=ledger)
    return frame


def one_more(frame: pd.DataFrame, epsilon: float = ENTRIES[0]) -> pd.DataFrame:
    return frame.dp.count("key", epsilon=epsilon)


def filled(ledger: dpf.Ledger, size: int) -> pd.DataFrame:
    """Charge so many releases; beyond the first few it is said again what they cost."""
    frame = small(ledger)
    for epsilon in ENTRIES[:size]:
        one_more(frame, epsilon)
    for entry in itertools.islice(itertools.cycle(ledger.entries), max(size - len(ENTRIES), 0)):
        ledger.charge(replace(entry, release_id=uuid4().hex))
    return frame


def of_entries(line: str, size: int, path: Path) -> Call:
    """Charge a ledger of so many entries once more, or look at it."""
    if line == "open":
        return lambda: dpf.Ledger(path).status()
    frame = filled(dpf.Ledger(budget=BUDGET), size) if line == "memory" else small(dpf.Ledger(path))
    return lambda: one_more(frame)


def write_ledger(size: int, path: Path) -> None:
    """Make a file of so many entries, in memory where there is a folder for that, and move it."""
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        made = Path(folder) / path.name
        filled(dpf.Ledger.create(made, budget=BUDGET), size)
        shutil.move(made, path)


WORK = {
    "rows": of_rows,
    "files": of_files,
    "keys": of_keys,
    "units": of_units,
    "queries": of_queries,
    "entries": of_entries,
}
WRITTEN = {"files": write_files, "entries": write_ledger}
"""What is on the disk before, once for each size."""


def warm() -> None:
    """Load what is loaded on first use, as imports are not timed."""
    frame = declared(rows(10, units=2), range(2), caps=True)
    release(frame)
    frame.dp.release(dpf.count(where="value > 1"), mu=1)


def settle() -> None:
    """Give back what making the data left free, or it would be used again unseen."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def measured(call: Call) -> Case:
    """Return the median time of several runs, and the highest memory."""
    own = [os.getpid()]
    settle()
    forget_peak(own)
    before = megabytes("VmRSS", own)
    seconds: list[float] = []
    wanted = 1
    while len(seconds) < wanted:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
        if len(seconds) == 1:
            wanted = 7 if seconds[0] <= OFTEN else 3 if seconds[0] <= SOME else 1
    return {
        "seconds": statistics.median(seconds),
        "runs": len(seconds),
        "before_mb": before,
        "peak_mb": megabytes("VmHWM", own),
    }


def run(case: Case) -> Case:
    """Write what is needed, or measure one case."""
    axis, size, place = str(case["axis"]), int(str(case["size"])), Path(str(case["place"]))
    if case["line"] == "write":
        WRITTEN[axis](size, place)
        return {}
    warm()
    return measured(WORK[axis](str(case["line"]), size, place))


if __name__ == "__main__":
    main(run)
