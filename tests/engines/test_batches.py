"""Batches of Parquet files are bounded by bytes: long texts take no more memory than short ones."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpframe as dpf
from dpframe.engines import batches, scans

LONG = "x" * 100_000
ROWS = 15_000  # of which the texts take 1.5 GB
WAYS = {
    "one text": [LONG] * 300,
    "few texts": [f"{row % 7}{LONG}" for row in range(300)],
    "few texts after many short ones": ["A"] * 3_000 + [LONG] * 300,
    "missing": [LONG, None] * 150,
    "nothing": [None] * 300,
}
SCRIPT = """
import resource, sys
import dpframe as dpf
import dpframe.engines.scans
from pyarrow import parquet, dataset, compute
path, unit, most = sys.argv[1:]
scan = dpf.scan_parquet(path, progress=False)
facts = {"privacy_unit": "u", "max_rows": 1} if unit == "u" else {"privacy_unit": dpf.EACH_ROW}
scan.dp.declare(budget=dpf.Budget(1e9), keys={"t": ["A", "x" * 100_000]}, **facts)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(float(most) * 1e9),) * 2)
print(scan.dp.count("t", epsilon=1e8)["count"].tolist())
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_batches_are_bounded_by_bytes_however_texts_are_stored(way, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "_MOST_BYTES", 1 << 22)
    texts = pa.array(WAYS[way], kind)
    pq.write_table(pa.table({"t": texts}), tmp_path / "x.parquet")
    read = list(dpf.scan_parquet(tmp_path / "x.parquet")._batches(["t"]))
    assert max(table.nbytes for table in read) < 1.1 * (1 << 22)
    assert pa.concat_tables(read)["t"].cast(kind).combine_chunks().equals(texts)


@pytest.mark.parametrize("stored", [{}, {"use_dictionary": False}])
def test_texts_that_all_differ_are_bounded(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "_MOST_BYTES", 1 << 22)
    texts = [f"{row}{LONG}" for row in range(300)]
    table = pa.table({"t": texts, "n": range(300), "l": [[text[:9]] for text in texts]})
    pq.write_table(table, tmp_path / "x.parquet", **stored)
    read = list(dpf.scan_parquet(tmp_path / "x.parquet")._batches(["t", "n", "l"]))
    assert max(part.nbytes for part in read) < 1.2 * (1 << 22)
    assert pa.concat_tables(read).combine_chunks().equals(table.combine_chunks())


def test_usual_files_are_read_in_as_many_rows_as_asked(tmp_path):
    rows = range(600_000)
    labels = [f"label {row % 99}" for row in rows]
    table = pa.table({"t": labels, "u": rows, "x": [0.5] * len(rows)})
    pq.write_table(table, tmp_path / "x.parquet")
    read = [
        len(part) for part in dpf.scan_parquet(tmp_path / "x.parquet")._batches(["t", "u", "x"])
    ]
    assert read == [scans.BATCH_ROWS, 600_000 - scans.BATCH_ROWS]


@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("column", ["plain", "dictionary"])
def test_totals_are_the_same_in_batches_of_few_bytes(unit, column, tmp_path, monkeypatch):
    texts = [None if row % 11 == 0 else "AB"[row % 2] * (row % 50 + 1) for row in range(2_000)]
    table = pa.table({"t": texts, "u": [row // 4 for row in range(2_000)]})
    if column == "dictionary":
        table = table.set_column(0, "t", table["t"].dictionary_encode())
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=700)
    scan = dpf.scan_parquet(tmp_path / "x.parquet")
    facts = {} if unit is None else {"privacy_unit": unit, "max_rows": 4}
    scan.dp.declare(keys={"t": ["A" * 7, "B" * 8, "B"]}, **facts)
    expected = scan.dp.count("t", epsilon=1e15)["count"].tolist()
    assert sum(expected) > 0
    monkeypatch.setattr(scans, "MOST_BYTES", 1_000)
    monkeypatch.setattr(batches, "_MOST_BYTES", 1_000)
    monkeypatch.setattr(scans, "_BYTES_IN_MEMORY", 2_000)
    assert scan.dp.count("t", epsilon=1e15)["count"].tolist() == expected


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited on Linux")
@pytest.mark.full
@pytest.mark.parametrize(
    ("way", "unit", "most"),
    [
        ("one text", "none", 1),
        ("dictionary", "u", 1),
        ("dictionary", "none", 1),
        ("one text", "u", 1.4),
    ],
)
def test_long_texts_fit_in_little_memory(way, unit, most, tmp_path):
    coded = pa.array([0] * 1_000, pa.int32())
    part = pa.DictionaryArray.from_arrays(coded, pa.array([LONG]))
    schema = pa.schema([("t", part.type), ("u", pa.int64())])
    kept = way == "dictionary"  # else it is read as texts
    with pq.ParquetWriter(tmp_path / "x.parquet", schema, store_schema=kept) as file:
        for start in range(0, ROWS, len(part)):
            units = pa.array(range(start, start + len(part)))
            file.write_table(pa.table([part, units], schema=schema))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "x.parquet"), unit, str(most)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"[0, {ROWS}]", done.stderr[-2_000:]
