"""Files that stand for far more values than they hold: refused before their rows are read."""

import json
import time

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")

from pyarrow import parquet  # noqa: E402
from support.terminal import UNREADABLE, main  # noqa: E402

import dpframe as dpf  # noqa: E402
from dpframe.jobs.output_paths import read_released  # noqa: E402

ROWS = 50_000_000
SECONDS = 2
ATTRS = {b"PANDAS_ATTRS": json.dumps({"dpframe": {"format": 4}}).encode()}


def zeros(rows):
    return pa.array(np.zeros(rows, np.int8))


MANY = {
    "zeros": zeros,
    "nothing": pa.nulls,
    "one key": lambda rows: pa.DictionaryArray.from_arrays(zeros(rows), ["x"]),
}


def table(column, rows):
    made = MANY[column](rows)
    return pa.table([made], schema=pa.schema([pa.field("n", made.type)], metadata=ATTRS))


def parquet_of(path, column):
    part = table(column, ROWS // 10)
    with parquet.ParquetWriter(path, part.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(part)


@pytest.mark.parametrize("column", MANY)
def test_few_bytes_of_many_values_are_not_read(tmp_path, capsys, column):
    path = tmp_path / "x.parquet"
    parquet_of(path, column)
    assert path.stat().st_size < 10**6
    begun = time.process_time()
    for command in ("show", "verify"):
        assert main([command, str(path)]) == UNREADABLE
        assert "more values" in capsys.readouterr().err
    assert time.process_time() - begun < SECONDS


def test_certificates_of_very_many_values_are_not_parsed(tmp_path, capsys):
    path = tmp_path / "x.parquet"
    attrs = {b"PANDAS_ATTRS": b'{"dpframe": [' + b"{}," * 2 * 10**6 + b"{}]}"}
    made = pa.table({"n": [1]}).replace_schema_metadata(attrs)
    parquet.write_table(made, path)
    assert main(["show", str(path)]) == UNREADABLE
    assert "2,000,000 values" in capsys.readouterr().err


@pytest.mark.parametrize("groups", [1, 300_000])
def test_releases_are_read_as_they_are(tmp_path, groups):
    frame = pd.DataFrame({"zone": [1, 2]})
    query = dpf.count("zone", keys=range(groups))
    released = dpf.release(frame, query, epsilon=3, privacy_unit=dpf.EACH_ROW)
    path = tmp_path / "x.parquet"
    released.to_parquet(path, compression="brotli")
    back = read_released(path)
    assert dpf.verify(back) == released.dp.certificate
