"""No row of Parquet files counts twice, and none counts that was damaged on the disk."""

import os
import time

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.engines.parquet_files import ParquetFiles
from dpframe.errors import DeclarationError, ReleaseError


def hard_link(path, target):
    os.link(target, path)


def link_to_folder(path, target):
    path.symlink_to(target.parent, target_is_directory=True)


LINKS = {
    "hard link": hard_link,
    "link": lambda path, target: path.symlink_to(target),
    "link to a link": lambda path, target: (
        path.with_suffix(".other").symlink_to(target),
        path.symlink_to(path.with_suffix(".other")),
    ),
    "link to a folder": link_to_folder,
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "a").mkdir(parents=True)
    pq.write_table(pa.table({"x": range(100)}), tmp_path / "data" / "a" / "one.parquet")
    return tmp_path / "data"


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("opened", ["path", "arrow", "subtree", "fsspec"])
def test_links_to_files_that_are_read_anyway_are_refused(link, opened, folder):
    filesystem, path = None, folder
    if opened == "arrow":
        filesystem = pyarrow.fs.LocalFileSystem()
    elif opened == "subtree":
        local = pyarrow.fs.LocalFileSystem()
        filesystem, path = pyarrow.fs.SubTreeFileSystem(str(folder.parent), local), "data"
    elif opened == "fsspec":
        filesystem = pytest.importorskip("fsspec").filesystem("file")
    scan = dpf.scan_parquet(path, filesystem=filesystem)
    scan.dp.declare(budget=dpf.Budget(1))
    LINKS[link](folder / "two.parquet", folder / "a" / "one.parquet")
    with raises(DeclarationError, "each file once", parameter="path"):
        dpf.scan_parquet(path, filesystem=filesystem)
    with raises(DeclarationError, "remove the link", parameter="path"):
        scan.dp.count(share=1)
    assert not scan.dp.ledger.entries


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "x", "max_rows": 1}])
def test_pages_that_were_damaged_are_not_read(unit, tmp_path):
    path = tmp_path / "sums.parquet"
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    numbers = pa.array([2**40 + n for n in range(100)])
    pq.write_table(pa.table({"x": numbers}), path, column_encoding="PLAIN", **options)
    scan = dpf.scan_parquet(path)
    scan.dp.declare(bounds={"x": (0, 2**41)}, budget=dpf.Budget(1), **unit)
    whole = path.read_bytes()
    at = whole.index((2**40 + 50).to_bytes(8, "little"))
    path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    with pytest.raises(ReleaseError, match="a file could not be read"):
        scan.dp.sum("x", share=1)
    path.write_bytes(whole)
    assert dpf.scan_parquet(path).dp.count(epsilon=1e15).iloc[0, 0] == 100


@pytest.mark.parametrize(
    "attrs", [b"null", b"[1]", b"7", b"{", b"\xff", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_damaged_attrs_are_refused_when_files_are_opened(attrs, tmp_path):
    table = pa.table({"x": [1]}).replace_schema_metadata({b"PANDAS_ATTRS": attrs})
    pq.write_table(table, tmp_path / "one.parquet")
    with raises(DeclarationError, "Parquet", parameter="path"):
        dpf.scan_parquet(tmp_path / "one.parquet")


def count_reads(monkeypatch, name):
    """Note the paths that a method of files is called with, if any."""
    seen = []
    method = getattr(ParquetFiles, name)

    def noted(self, *given):
        seen.append(given[0].path if given else None)
        return method(self, *given)

    monkeypatch.setattr(ParquetFiles, name, noted)
    return seen


def in_the_past(path):
    os.utime(path, (1e9, 1e9))


def test_footers_are_read_once_until_a_file_changes(folder, monkeypatch):
    in_the_past(folder / "a" / "one.parquet")
    seen = count_reads(monkeypatch, "_read_footer")
    scan = dpf.scan_parquet(folder)
    scan.dp.declare(keys={"x": [1]}, budget=dpf.Budget(9))
    scan.dp.release({"a": dpf.count("x"), "b": dpf.count()}, epsilon=1)
    assert len(seen) == 1
    pq.write_table(pa.table({"x": [7]}), folder / "two.parquet")
    in_the_past(folder / "two.parquet")
    for _ in range(2):
        assert scan.dp.count(epsilon=1).dp.certificate
    assert seen[1:] == [str(folder / "two.parquet")]


def test_a_release_of_a_part_lists_files_no_more_often(folder, monkeypatch):
    listed = count_reads(monkeypatch, "refresh")
    scan = dpf.scan_parquet(folder)
    scan.dp.declare(ledger=dpf.Ledger(budget=dpf.Budget(9), part="x"))
    often = []
    for part in ({}, {"part": 7}):
        listed.clear()
        scan.dp.count(privacy_unit=dpf.EACH_ROW, epsilon=1, **part)
        often.append(len(listed))
    assert often[0] == often[1] > 0


WHERES = {
    "year == 2024": (10, ["2024"]),
    "year >= 2000 and x > 4": (10, ["2023", "2024"]),
    "not (year == 2023 or year == 2024) and k == 1": (20, ["__HIVE", "old"]),
    "year == 2023 or x > 4": (25, ["2023", "2024", "__HIVE", "old"]),
    "year == 1999": (0, []),
}


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "u", "max_rows": 1}])
def test_folders_that_no_row_can_be_of_are_not_read(unit, tmp_path, monkeypatch):
    for place, year in enumerate(("2023", "2024", "old", "__HIVE_DEFAULT_PARTITION__")):
        (tmp_path / f"year={year}" / "k=1").mkdir(parents=True)
        table = pa.table({"x": range(10), "u": [10 * place + n for n in range(10)]})
        pq.write_table(table, tmp_path / f"year={year}" / "k=1" / "part.parquet")
    scan = dpf.scan_parquet(tmp_path)
    scan.dp.declare(bounds={"x": (0, 9)}, keys={"year": [2023, 2024]}, **unit)
    exact = {"epsilon": 1e15}
    seen = count_reads(monkeypatch, "_read")
    for where, (rows, years) in WHERES.items():
        seen.clear()
        assert scan.dp.count(where=where, **exact).iloc[0, 0] == rows
        read = [path.split("year=")[1] for path in seen]
        assert len(read) == len(years)
        assert all(path.startswith(year) for path, year in zip(read, years, strict=True))
    seen.clear()
    both = {"a": dpf.count(where="year == 2023"), "b": dpf.count(where="year == 2024 and x > 4")}
    released = scan.dp.release(both, **exact)
    assert [table.iloc[0, 0] for table in released.values()] == [10, 5]
    assert len(seen) == 2


@pytest.mark.full
def test_a_store_is_read_several_files_ahead(tmp_path):
    for part in range(40):
        pq.write_table(pa.table({"x": [part], "t": ["a" * part]}), tmp_path / f"{part:02}.parquet")
    open_now, most = [], []

    class Handler(pyarrow.fs.FSSpecHandler):
        def open_input_file(self, path):
            open_now.append(path)
            most.append(len(open_now))
            time.sleep(0.01)
            open_now.remove(path)
            return super().open_input_file(path)

    local = pytest.importorskip("fsspec").filesystem("file")
    store = pyarrow.fs.PyFileSystem(Handler(local))
    scan = dpf.scan_parquet(str(tmp_path), filesystem=store)
    scan.source._is_distant = True
    most.clear()
    tables = list(scan.source.batches(["x", "t"], 100))
    assert [table["x"][0].as_py() for table in tables] == list(range(40))
    assert max(most) >= 4
    assert scan.dp.count(epsilon=1e15).iloc[0, 0] == 40
