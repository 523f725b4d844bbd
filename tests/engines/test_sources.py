"""A scan reads any source of Arrow batches anew, the same rows each time, or refuses it."""

import os
import pickle
import threading

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, orc
from support.raising import raises
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines import batches, engine_for, scans
from dpframe.errors import DeclarationError, ReleaseError, UnknownColumnError
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition

TABLE = pa.table(
    {
        "zone": ["A", "B", None, "A", "C"] * 9,
        "rider": [n // 4 for n in range(45)],
        "fare": [float(n) for n in range(45)],
        'odd "name"': [1] * 45,
    }
)
COLUMNS = TABLE.column_names
DUCKDB = duckdb.connect()


class Stream:
    """An object that another library might have."""

    def __init__(self, table=TABLE):
        self.table, self.given = table, 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.given += 1
        return self.table.to_reader(max_chunksize=7).__arrow_c_stream__(requested_schema)


def files_of(write):
    def made(folder):
        for part in range(3):
            write(TABLE.slice(15 * part, 15), folder / f"{part}")
        return folder

    return made


def orc_dataset(folder):
    return ds.dataset(files_of(orc.write_table)(folder), format="orc")


def csv_dataset(folder, types=None, **options):
    types = dict(zip(COLUMNS, TABLE.schema.types, strict=True)) if types is None else types
    given = pa.csv.ConvertOptions(column_types=types, **options)
    return ds.dataset(
        files_of(pa.csv.write_csv)(folder), format=ds.CsvFileFormat(convert_options=given)
    )


SOURCES = {
    "table": lambda _: TABLE,
    "batch": lambda _: TABLE.to_batches()[0],
    "stream": lambda _: Stream(),
    "function": lambda _: lambda: TABLE.to_reader(max_chunksize=4),
    "function of frames": lambda _: lambda: pl.from_arrow(TABLE),
    "memory": lambda _: ds.dataset(TABLE),
    "parquet": lambda folder: ds.dataset(files_of(pq.write_table)(folder)),
    "feather": lambda f: ds.dataset(files_of(feather.write_feather)(f), format="feather"),
    "orc": orc_dataset,
    "csv": csv_dataset,
    "union": lambda f: ds.dataset([ds.dataset(TABLE), orc_dataset(f)]).replace_schema(TABLE.schema),
    "polars": lambda _: pl.from_arrow(TABLE),
    "lazy": lambda _: pl.from_arrow(TABLE).lazy().filter(pl.col("rider") >= 0),
    "duckdb": lambda _: DUCKDB.from_arrow(TABLE).filter("rider >= 0"),
}


def counts(frame, column="zone", keys=("A", "B", "C"), unit=()):
    axis = KeyAxis(column, pd.Index(keys, dtype=object))
    return engine_for(frame).totals(
        frame, [Task(Cells((axis,)), (Term("rows"),), unit=unit)], SYSTEM
    )[0][0]


@pytest.mark.parametrize("form", SOURCES)
def test_a_source_is_read_again_and_again(form, tmp_path, monkeypatch):
    scan = dpf.scan(SOURCES[form](tmp_path), batch_rows=8)
    times = 2 if form == "union" else 1
    assert scan.columns == COLUMNS
    for _ in range(2):
        assert counts(scan).tolist() == [18 * times, 9 * times, 9 * times]
        assert counts(scan, 'odd "name"', [1]) == 45 * times
    scan.dp.declare(keys={"zone": ["A"]}, privacy_unit="rider", max_rows=4, budget=dpf.Budget(9))
    for small in (False, True):
        if small:
            monkeypatch.setattr(scans, "_BUCKET_ROWS", 5)
        released = scan.dp.count("zone", where="fare < 40", epsilon=1e-6, denoise=None)
        assert list(released.index) == ["A"]
    everything = scan.dp.diagnose()
    assert everything is not None
    assert scan.dp.count(epsilon=4).dp.certificate is not None


def test_only_columns_that_are_needed_are_computed():
    asked = []

    def note(frame):
        asked.append(frame.columns)
        return frame

    lazy = pl.from_arrow(TABLE).lazy().map_batches(note, schema=None, projection_pushdown=True)
    assert counts(dpf.scan(lazy)).sum() == 36
    assert asked == [["zone"]]


def test_a_scan_shows_its_kind_and_columns_alone():
    assert repr(dpf.scan(TABLE.select(["zone"]))) == "Scan(pyarrow.lib.Table, columns=['zone'])"


def test_pickles_are_not_declared():
    scan = dpf.scan(TABLE, batch_rows=7)
    scan.dp.declare(budget=dpf.Budget(1))
    other = pickle.loads(pickle.dumps(scan))  # noqa: S301
    assert (other.columns, other.batch_rows) == (COLUMNS, 7)
    assert other.dp.declaration.ledger is None


# What is refused ------------------------------------------------------------------------------


MADE = TABLE.to_reader()
REFUSED = {
    "reader": (TABLE.to_reader(), "only once"),
    "iterator": (iter(TABLE.to_batches()), "only once"),
    "function that keeps its reader": (lambda: MADE, "a new reader"),
    "function that makes no reader": (lambda: 7, "that returns a"),
    "function that fails": (lambda: 1 / 0, "must be readable"),
    "pandas": (pd.DataFrame({"a": [1]}), "has .dp of its own"),
    "path": ("trips.parquet", "dpf.scan_parquet"),
    "column": (pl.Series([1]), "must be readable"),
    "number": (7, "got an int"),
    "filtered": (ds.dataset(TABLE).filter(ds.field("rider") > 3), "where="),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_again_is_refused(what):
    given, words = REFUSED[what]
    with raises(DeclarationError, words, parameter="source"):
        dpf.scan(given)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_types_that_a_cell_decides_on_are_refused(form, tmp_path):
    (tmp_path / "a").write_text({"csv": "a,b\n1,2\n", "json": '{"a": 1}\n'}[form])
    with raises(DeclarationError, "cell", parameter="source"):
        dpf.scan(ds.dataset(tmp_path / "a", format=form))
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    with raises(DeclarationError, "cell", parameter="source"):
        dpf.scan(ds.dataset(tmp_path / "a", format=form, schema=schema))


def test_derived_tables_are_refused_until_they_are_declared():
    frame = pd.DataFrame({"zone": ["A", "B"]})
    frame.dp.declare(budget=dpf.Budget(9))
    scan = dpf.scan(pa.Table.from_pandas(frame))
    with raises(DeclarationError, "derived from a declared frame"):
        scan.dp.count(epsilon=1)
    scan.dp.declare(ledger=frame.dp.ledger)
    scan.dp.count(epsilon=1)
    assert frame.dp.budget.spent.epsilon == 1
    released = frame.dp.count("zone", keys=["A"], epsilon=1)
    with raises(DeclarationError, "certificate"):
        dpf.scan(pa.Table.from_pandas(released)).dp.count(epsilon=1)


def test_a_column_that_a_file_lacks_is_refused_by_preview(tmp_path):
    for part, columns in enumerate((COLUMNS, ["rider", "zone"])):
        feather.write_feather(TABLE.select(columns), tmp_path / f"{part}.feather")
    data = ds.dataset(tmp_path, format="feather", schema=TABLE.schema)
    scan = dpf.scan(data)
    scan.dp.declare(keys={"zone": ["A"]}, bounds={"zone": (0, 1)})
    assert counts(scan)[0] == 36
    with raises(UnknownColumnError, "1.feather has no column 'fare'"):
        scan.dp.plan(dpf.sum("fare", bounds=(0, 9)), epsilon=1)


@pytest.mark.parametrize("form", ["parquet", "feather", "orc"])
@pytest.mark.parametrize("change", ["other rows", "same size", "no file"])
def test_files_that_changed_since_a_scan_are_refused_before_the_charge(form, change, tmp_path):
    scan = dpf.scan(SOURCES[form](tmp_path))
    scan.dp.declare(keys={"zone": ["A"]}, budget=dpf.Budget(1))
    scan.dp.count(by="zone", share="1/2")
    (path, *_) = sorted(one for one in tmp_path.rglob("*") if one.is_file())
    if change == "no file":
        path.unlink()
    elif change == "other rows":
        path.write_bytes(path.read_bytes() * 2)
    else:
        os.utime(path, ns=(1, 1))
    with raises(DeclarationError, "Make the dataset and the scan anew"):
        scan.dp.count(by="zone", share="1/2")
    assert len(scan.dp.ledger.entries) == 1


def test_types_of_files_that_a_dataset_would_change_are_refused(tmp_path):
    feather.write_feather(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1")
    schema = pa.schema([("a", pa.float64()), ("b", pa.large_string())])
    scan = dpf.scan(ds.dataset(tmp_path / "1", format="feather", schema=schema))
    assert counts(scan, "b", ["x"]) == [1]
    with raises(DeclarationError, "'a' is int64 in"):
        counts(scan, "a", [1])


def test_errors_of_a_source_after_the_charge_quote_nothing():
    ready = iter([TABLE.to_reader() for _ in range(20)])
    late = []

    def reader():
        if late:
            raise ValueError("patient 42 has flu")
        return next(ready)

    scan = dpf.scan(reader)
    scan.dp.declare(keys={"zone": ["A"]}, budget=dpf.Budget(1))
    refresh = scans.ScannedFrame.tables

    def tables(self, *given):
        late.append(1)
        return refresh(self, *given)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ReleaseError) as caught:
        patch.setattr(scans.ScannedFrame, "tables", tables)
        scan.dp.count("zone", epsilon=0.5)
    assert "flu" not in str(caught.value)
    assert scan.dp.budget.spent.epsilon == 0.5


# Cells and batches ----------------------------------------------------------------------------


def test_lines_of_csv_files_with_other_numbers_of_cells_are_left_out(tmp_path):
    lines = ["a,b", "1,x", "2,x,private", "3", *["4,x"] * 200_000, "5,x,private,too"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    data = ds.dataset(
        tmp_path,
        kinds := pa.schema({"a": pa.int64(), "b": pa.string()}),
        ds.CsvFileFormat(convert_options=pa.csv.ConvertOptions(column_types=kinds)),
    )
    scan = dpf.scan(data)
    scan.dp.declare(keys={"b": ["x"]}, privacy_unit=dpf.EACH_ROW)
    assert scan.dp.count("b", epsilon=1e6)["count"].tolist() == [200_001]


def test_a_thread_of_polars_that_crashes_is_not_the_end_of_the_rows(tmp_path):
    def write(rows):
        frame = pl.DataFrame({"a": range(rows)})
        frame.write_parquet(tmp_path / "a.parquet", compression="uncompressed", row_group_size=1000)

    write(2000)
    lazy = pl.scan_parquet(tmp_path / "a.parquet")
    scan = dpf.scan(lazy)
    scan.dp.declare(privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(9))
    lazy.collect_schema()
    write(1000)
    with raises(ReleaseError, "nothing was released"):
        scan.dp.count(epsilon=1)


def test_cells_of_csv_files_count_by_themselves(tmp_path):
    path = tmp_path / "a.csv"
    kinds = {"n": pa.int64(), "x": pa.float64(), "b": pa.bool_(), "t": pa.string()}
    kinds |= {"d": pa.date32(), "k": pa.large_binary()}
    given = pa.csv.ConvertOptions(column_types=kinds)
    schema = pa.schema(list(kinds.items()))
    rows = ["1,0.5,true,NA,2020-01-02,a", " 2 ,nan,0,x,2020-01-03,b"]
    odd = ["x,y,z,,99,", "9" * 40 + ',1e999,TRUE,"q",2020-13-01,', ",,,,,"]
    for cells in (rows, rows + odd, odd + rows):
        path.write_text("\n".join([",".join(kinds), *cells, ""]), encoding="utf-8")
        kind = ds.CsvFileFormat(convert_options=given)
        scan = dpf.scan(ds.dataset(tmp_path, schema, kind))
        assert counts(scan, "n", [1, 2]).tolist() == [1, 1]
        assert counts(scan, "x", [0.5]) == 1
        assert counts(scan, "b", [False]) == 1
        assert counts(scan, "t", ["NA", "x"]).tolist() == [1, 1]
        assert counts(scan, "k", [b"a", b"b"]).tolist() == [1, 1]
    path.write_bytes(b"n,x,b,t,d,k\n1,1,1,\xff,2020-01-02,\xfe\n1,1,1,x,2020-01-02,a\n")
    assert counts(scan, "t", ["x"]) == 1


def test_folders_of_a_dataset_are_columns(tmp_path):
    part = ds.partitioning(pa.schema([("year", pa.int32())]), flavor="hive")
    ds.write_dataset(
        pa.table({"a": [1, 2, 3], "year": pa.array([1, 1, 2], pa.int32())}),
        tmp_path,
        format="feather",
        partitioning=part,
    )
    scan = dpf.scan(ds.dataset(tmp_path, format="feather", partitioning=part))
    assert counts(scan, "year", [1, 2, 3]).tolist() == [2, 1, 0]


WHERES = {  # the rows that satisfy it, and how many files have to be read
    "year == 2024": (2, 1),
    "year >= 2024 and n > 1": (3, 2),
    "year > 2000 or n > 1": (8, 4),
    "not year == 2024": (6, 3),
    "year == 1999": (0, 0),
}


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("inferred", [False, True])
def test_folders_that_no_row_can_be_of_are_not_read(form, inferred, tmp_path):
    for place, year in enumerate((2023, 2024, 2025, "__HIVE_DEFAULT_PARTITION__")):
        (tmp_path / f"year={year}").mkdir()
        write = pq.write_table if form == "parquet" else pa.csv.write_csv
        write(pa.table({"n": [place, place + 1]}), tmp_path / f"year={year}" / "rows")
    kinds = pa.schema([("n", pa.int64()), ("year", pa.int32())])
    part = ds.partitioning(None if inferred else kinds.remove(0), flavor="hive")
    given = pa.csv.ConvertOptions(column_types=kinds)
    kind = "parquet" if form == "parquet" else ds.CsvFileFormat(convert_options=given)
    scan = dpf.scan(ds.dataset(tmp_path, kinds, kind, partitioning=part))
    scan.dp.declare(privacy_unit=dpf.EACH_ROW)
    for where, (rows, files) in WHERES.items():
        assert scan.dp.count(where=where, epsilon=1e15).iloc[0, 0] == rows
        assert len(scan.source.where([Condition.parse(where)]).parts) == files
    assert scan.dp.count(epsilon=1e15).iloc[0, 0] == 8


def test_pages_that_were_damaged_are_not_read(tmp_path):
    path = tmp_path / "sums.parquet"
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    numbers = pa.array([2**40 + n for n in range(100)])
    pq.write_table(pa.table({"x": numbers}), path, column_encoding="PLAIN", **options)
    given = ds.dataset(path)
    scan = dpf.scan(given)
    scan.dp.declare(bounds={"x": (0, 2**41)}, budget=dpf.Budget(1))
    whole = path.read_bytes()
    at = whole.index((2**40 + 50).to_bytes(8, "little"))
    written = path.stat().st_mtime_ns
    path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    os.utime(path, ns=(written, written))  # as if a disk had done it
    with pytest.raises(ReleaseError, match="a file could not be read"):
        scan.dp.sum("x", share=1)
    assert given.to_table().num_rows == 100  # the dataset itself is read as it was asked for


def test_batches_of_long_texts_are_split(monkeypatch):
    monkeypatch.setattr(batches, "_MOST_BYTES", 1 << 20)
    table = pa.table({"t": ["x" * 100_000] * 99})
    coded = pa.table({"t": table["t"].dictionary_encode()})
    for given in (table, coded, table.to_reader, pl.from_arrow(table)):
        sizes = [part.num_rows for part in dpf.scan(given).source.batches(["t"], 50)]
        assert sum(sizes) == 99
        assert max(sizes) <= 11


def test_another_query_on_a_connection_does_not_end_a_release(monkeypatch):
    """DuckDB has one open result a connection from 2.0 on: what reads after the charge waits."""
    connection = duckdb.connect()
    connection.execute("CREATE TEMP TABLE t AS SELECT 'A' AS zone FROM range(1000)")
    frame = dpf.scan(connection.sql("SELECT * FROM t"))
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1))
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, ledger=ledger)
    charge, opened = dpf.Ledger.charge, []

    def charged(self, entry):
        charge(self, entry)
        opened.append(connection.sql("SELECT * FROM range(10000000)"))
        reader = pa.RecordBatchReader.from_stream(opened[0])
        reader.read_next_batch()
        threading.Timer(1, reader.close).start()

    monkeypatch.setattr(dpf.Ledger, "charge", charged)
    released = frame.dp.count("zone", keys=["A"], epsilon=1)
    assert opened and abs(released["count"]["A"] - 1000) < 100  # noise exceeds it below 1e-40
