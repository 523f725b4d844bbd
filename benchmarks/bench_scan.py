"""Time scans beside plain pyarrow and DuckDB on the same files, both sides in turn in one run.

    python benchmarks/bench_scan.py --rounds 5

- *store*: 300 files in a store that takes 20 ms for a request, from opening it to the release,
  beside pyarrow's scan of the same columns; bar 1.2, of wall time.
- *small*: 2,000 small files without a privacy unit, beside pyarrow's scan; bar 1.5, of processor
  time.
- *rows*: 20 million rows without a privacy unit, beside DuckDB's SQL; bar 1.5, of wall time.
- *texts*: the same by a text key.
- *caps*: 20 million rows, two rows in each of five groups of a unit, beside DuckDB's SQL with the
  same caps.

Medians and the median of the ratios of neighboring runs are printed. Only what both sides need is
imported before the clock starts; files are in the page cache.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

import dpframe as dpf

KEYS = 1_000
NAMES = np.array([f"zone {key:04}" for key in range(KEYS)])
DELAY = 0.02
NEEDED = ["key", "value"]


class DistantFiles(fs.FileSystemHandler):
    """A local folder in which every request takes a while."""

    def __init__(self) -> None:
        self._local = fs.LocalFileSystem()

    def get_type_name(self) -> str:
        return "distant"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        time.sleep(DELAY)
        return self._local.get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        time.sleep(DELAY)
        return self._local.get_file_info(selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        time.sleep(DELAY)
        return pa.PythonFile(_DistantFile(self._local.open_input_file(path)), mode="r")

    def _no(self, *_: object) -> None:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_file = move = copy_file = _no
    delete_root_dir_contents = open_input_stream = open_output_stream = open_append_stream = _no


class _DistantFile:
    """A file of which every read is a request."""

    closed = False

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        time.sleep(DELAY)
        return bytes(self._file.read(size))

    def seek(self, place: int, whence: int = 0) -> int:
        return int(self._file.seek(place, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def size(self) -> int:
        return int(self._file.size())

    def close(self) -> None:
        self._file.close()


def write_files(folder: Path, files: int, rows: int, *, texts: bool) -> None:
    """Write files of random rows, ten of each unit, with a column that nobody needs."""
    rng = np.random.default_rng(1)
    for place in range(files):
        keys = rng.integers(0, KEYS, rows)
        table = pa.table(
            {
                "unit": rng.integers(0, files * rows // 10 + 1, rows),
                "key": NAMES[keys] if texts else keys,
                "value": rng.normal(20, 30, rows),
                "more": rng.integers(0, 1 << 40, rows),
            }
        )
        pq.write_table(table, folder / f"{place:05}.parquet", row_group_size=1 << 20)


def release(
    folder: Path, filesystem: object = None, *, texts: bool = False, **unit: object
) -> None:
    """Open files and release a count and a sum by key."""
    keys = list(NAMES) if texts else range(KEYS)
    scan = dpf.scan_parquet(str(folder), filesystem=filesystem, progress=False)
    unit = unit or {"privacy_unit": dpf.EACH_ROW}
    scan.dp.declare(keys={"key": keys}, bounds={"value": (0, 50)}, **unit)
    scan.dp.release(dpf.aggregate("key", n=dpf.count(), s=dpf.sum("value")), mu=1)


def scanned(folder: Path, filesystem: object = None) -> None:
    """Scan the same columns by pyarrow, and throw them away."""
    for _ in ds.dataset(str(folder), filesystem=filesystem).to_batches(columns=NEEDED):
        pass


SQL = "SELECT key, count(*), sum(least(greatest(value, 0), 50)) FROM {rows} GROUP BY key"
CAPPED = """
(SELECT key, value FROM
  (SELECT unit, key, value, dense_rank() OVER (PARTITION BY unit ORDER BY hash(key)) AS g,
    row_number() OVER (PARTITION BY unit, key ORDER BY hash(value)) AS r
   FROM '{files}/*.parquet') WHERE g <= 5 AND r <= 2)
"""


def in_sql(folder: Path, rows: str = "'{files}/*.parquet'") -> None:
    """Do the same in DuckDB, without noise."""
    duckdb.connect().execute(SQL.format(rows=rows.format(files=folder))).fetchall()


CAPS = {"privacy_unit": "unit", "max_groups": 5, "max_rows_per_group": 2}
Sides = tuple[Callable[[Path], None], Callable[[Path], None]]
_CASES: dict[str, tuple[int, int, float | None, Callable[[], float], Sides]] = {
    "store": (
        300,
        2_000,
        1.2,
        time.perf_counter,
        (
            lambda folder: release(folder, fs.PyFileSystem(DistantFiles())),
            lambda folder: scanned(folder, fs.PyFileSystem(DistantFiles())),
        ),
    ),
    "small": (2_000, 1_000, 1.5, time.process_time, (release, scanned)),
    "rows": (20, 1_000_000, 1.5, time.perf_counter, (release, in_sql)),
    "texts": (
        20,
        1_000_000,
        1.5,
        time.perf_counter,
        (lambda folder: release(folder, texts=True), in_sql),
    ),
    "caps": (
        20,
        1_000_000,
        1.0,
        time.perf_counter,
        (lambda folder: release(folder, **CAPS), lambda folder: in_sql(folder, CAPPED)),
    ),
}


def measure(clock: Callable[[], float], run: Callable[[Path], None], folder: Path) -> float:
    """Time one run."""
    start = clock()
    run(folder)
    return clock() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=_CASES, nargs="*", default=list(_CASES))
    options = parser.parse_args()
    for name in options.only:
        files, rows, bar, clock, sides = _CASES[name]
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            write_files(folder, files, rows, texts=name == "texts")
            for run in sides:
                run(folder)
            times = [[measure(clock, run, folder) for run in sides] for _ in range(options.rounds)]
        ours, other = map(statistics.median, zip(*times, strict=True))
        ratio = statistics.median(one / two for one, two in times)
        print(f"{name:6} ours {ours:6.2f} s   other {other:6.2f} s   ratio {ratio:.2f} (bar {bar})")


if __name__ == "__main__":
    main()
