"""No row of Parquet files counts twice, and none counts that was damaged on the disk."""

import os

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from support.raising import raises

import dpframe as dpf
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
    with raises(DeclarationError, "names", parameter="path"):
        dpf.scan_parquet(path, filesystem=filesystem)
    with raises(DeclarationError, "remove links", parameter="path"):
        scan.dp.count(share=1)
    assert not scan.dp.ledger.entries


def test_links_to_files_elsewhere_are_read(folder, tmp_path):
    pq.write_table(pa.table({"x": range(7)}), tmp_path / "elsewhere.parquet")
    (folder / "two.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    assert dpf.scan_parquet(folder).dp.count(epsilon=1e15).iloc[0, 0] == 107


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
