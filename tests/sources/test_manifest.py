"""A source reads each file once, and a ledger keeps what is public about it."""

import os
import re

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import DeclarationError

pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")
ds = pytest.importorskip("pyarrow.dataset")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dpframe.dask")

ROWS = pd.DataFrame({"g": ["a", "b", "a"]})
EACH = {"privacy_unit": dpf.EACH_ROW}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ending in ("parquet", "feather", "orc"):
        getattr(ROWS, f"to_{ending}")(f"t.{ending}")
    os.symlink("t.parquet", "soft.parquet")
    os.link("t.parquet", "hard.parquet")
    (tmp_path / "JOIN").mkdir()
    ROWS.to_parquet("JOIN/x, y.parquet")
    (tmp_path / "lake").mkdir()
    ROWS.to_parquet("lake/t.parquet")
    os.symlink(".", "lake/latest")
    return tmp_path


def subtree(folder):
    return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())


def in_polars(make):
    def scan(_):
        return dpf.scan(make(pytest.importorskip("polars")))

    return scan


def union(folder, *others):
    one = ds.dataset("t.parquet")
    return dpf.scan(ds.dataset([one, *others]))


TWICE = {
    "list": lambda _: dpf.scan_parquet(["t.parquet", "t.parquet"]),
    "dot": lambda _: dpf.scan_parquet(["t.parquet", "./t.parquet"]),
    "soft link": lambda _: dpf.scan_parquet(["t.parquet", "soft.parquet"]),
    "hard link": lambda _: dpf.scan_parquet(["t.parquet", "hard.parquet"]),
    "dataset": lambda _: dpf.scan(ds.dataset(["t.parquet", "t.parquet"])),
    "feather": lambda _: dpf.scan(ds.dataset(["t.feather", "./t.feather"], format="feather")),
    "orc": lambda _: dpf.scan(ds.dataset(["t.orc", "t.orc"], format="orc")),
    "union": lambda folder: union(folder, ds.dataset("t.parquet")),
    "union of file systems": lambda folder: union(
        folder, ds.dataset(["t.parquet"], filesystem=subtree(folder))
    ),
    "polars list": in_polars(lambda pl: pl.scan_parquet(["t.parquet", "t.parquet"])),
    "polars union of a name with a comma": in_polars(
        lambda pl: pl.concat([pl.scan_parquet("JOIN/x, y.parquet")] * 2)
    ),
    "polars union beside a long list": in_polars(
        lambda pl: pl.concat(
            map(pl.scan_parquet, (["t.parquet", "lake/t.parquet", "hard.parquet"], "t.parquet"))
        )
    ),
    "polars union beside a join": in_polars(
        lambda pl: pl.concat(
            [pl.scan_parquet("t.parquet"), pl.scan_parquet("./soft.parquet")]
        ).join(pl.scan_parquet("t.parquet").unique(), on="g")
    ),
    "polars union of three in a union": in_polars(
        lambda pl: pl.scan_parquet("t.parquet").pipe(
            lambda one: one.join(pl.concat([pl.scan_parquet("lake/t.parquet"), one, one]), on="g")
        )
    ),
    "polars union": in_polars(
        lambda pl: pl.concat([pl.scan_parquet("t.parquet"), pl.scan_parquet("./soft.parquet")])
    ),
}


@pytest.mark.parametrize("way", TWICE)
def test_a_file_that_is_read_twice_is_refused(way, folder):
    with raises(DeclarationError, "each file once") as said:
        TWICE[way](folder)
    names = len(re.findall(r"\w+\.(?:parquet|feather|orc)", str(said.value)))
    assert names == 2 - ("is listed twice" in str(said.value))


def test_one_path_twice_is_no_other_file(folder):
    with raises(DeclarationError, "t.parquet is listed twice"):
        TWICE["list"](folder)


def test_dask_lists_the_files_that_it_is_given(folder):
    frame = dd.read_parquet(["t.parquet", "soft.parquet"])
    with raises(DeclarationError, "each file once"):
        frame.dp.count(epsilon=1, **EACH)
    one = dd.read_parquet(["t.parquet"])
    assert one.dp.count(epsilon=1e9, **EACH)["count"].tolist() == [3]
    both = dd.concat([one, one])
    with raises(DeclarationError, "each file once"):
        both.dp.count(epsilon=1, **EACH)


def test_what_is_no_second_reading_is_read(folder):
    pl = pytest.importorskip("polars")
    file = pl.scan_parquet("t.parquet")
    rows = {
        "a comma in a name": dpf.scan(pl.scan_parquet("JOIN/x, y.parquet")),
        "links to other files": dpf.scan_parquet(["t.parquet", "lake/t.parquet"]),
        "a join with itself": dpf.scan(file.join(file.unique(), on="g")),
        "a join with itself, put together with another": dpf.scan(
            pl.concat([file.join(file.unique(), on="g"), pl.scan_parquet("lake/t.parquet")])
        ),
        "dataset": dpf.scan(ds.dataset(["t.parquet", "lake/t.parquet"])),
    }
    counts = [scan.dp.count(epsilon=1e9, **EACH)["count"].item() for scan in rows.values()]
    assert counts == [3, 6, 3, 6, 6]


def test_files_that_change_while_a_release_is_planned_are_refused(folder, monkeypatch):
    scan = dpf.scan_parquet("lake/t.parquet")
    (folder / "new").mkdir()
    os.replace("lake/t.parquet", "new/t.parquet")
    scan = dpf.scan_parquet("new")
    scan.dp.declare(budget=dpf.Budget(epsilon=1), **EACH)
    from dpframe.operations import pipeline

    warn = pipeline.warn_of_release

    def link(*given):
        warn(*given)
        ROWS.to_parquet("new/u.parquet")

    monkeypatch.setattr(pipeline, "warn_of_release", link)
    with raises(DeclarationError, "nothing was charged"):
        scan.dp.count(epsilon=0.5)
    assert not scan.dp.ledger.entries
    monkeypatch.undo()
    os.chdir(folder)
    scan.dp.count(epsilon=0.5)


# What a ledger keeps -----------------------------------------------------------------------------


def by_month():
    return Ledger(budget=dpf.Budget(epsilon=10), part="month")


def lake(folder, months=("01", "02")):
    for month in months:
        (folder / "months" / f"month={month}").mkdir(parents=True)
        path = folder / "months" / f"month={month}" / "x.parquet"
        pa.parquet.write_table(pa.table({"u": [1, 2]}), path)
    return folder / "months"


def test_a_part_has_one_name(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    ledger, files = by_month(), lake(tmp_path)
    scan = dpf.scan_parquet(files)
    scan.dp.declare(ledger=ledger, **EACH)
    scan.dp.count(part=1, epsilon=1)
    texts = ds.partitioning(pa.schema([("month", pa.string())]), flavor="hive")
    other = dpf.scan(ds.dataset(files, partitioning=texts))
    other.dp.declare(ledger=ledger, **EACH)
    for ask in (other.dp.count, lambda **spend: other.dp.plan(dpf.count(), **spend).table):
        with raises(DeclarationError, "parts of month are", parameter="ledger"):
            ask(part="01", epsilon=1)
    assert len(ledger.entries) == 1


def test_a_ledger_by_part_keeps_a_door_that_shows_no_files(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    ledger, table = by_month(), pa.table({"month": [1, 2], "u": [1, 2]})
    first = dpf.scan(duckdb.from_arrow(table))
    first.dp.declare(ledger=ledger, **EACH)
    first.dp.count(part=1, epsilon=1)
    again = dpf.scan(duckdb.from_arrow(table))
    again.dp.declare(ledger=ledger, **EACH)
    again.dp.count(part=2, epsilon=1)
    other = dpf.scan(table)
    other.dp.declare(ledger=ledger, **EACH)
    with raises(DeclarationError, "readers may disagree about parts", parameter="ledger"):
        other.dp.count(part=1, epsilon=1)
    assert len(ledger.entries) == 2


@pytest.mark.parametrize("where", ["memory", "file"])
def test_units_have_one_kind_in_a_ledger(where, tmp_path):
    budget = dpf.Budget(epsilon=10)
    path = tmp_path / "a.ledger"
    ledger = Ledger(budget=budget) if where == "memory" else Ledger.create(path, budget=budget)
    numbers = pd.DataFrame({"u": pd.array([7, 8], dtype="Int64")})
    unknown = pd.DataFrame({"u": [7, 8]})
    texts = pd.DataFrame({"u": pd.array(["007", "8"], dtype="string")})
    for frame in (unknown, numbers, unknown, numbers):
        frame.dp.declare(privacy_unit="u", max_rows=1, ledger=ledger)
        frame.dp.count(epsilon=1)
    kept = ledger if where == "memory" else Ledger(path)
    texts.dp.declare(privacy_unit="u", max_rows=1, ledger=kept)
    with raises(DeclarationError, "units are numbers in this ledger", parameter="ledger"):
        texts.dp.count(epsilon=1)
    assert len(kept.entries) == 4
    facts = [entry.source for entry in kept.entries]
    assert [one.unit for one in facts] == [(None,), ("numbers",)] * 2
    assert facts[0] == facts[2] != facts[1] == facts[3]


def test_ledger_and_certificate_have_the_hash_of_what_is_public():
    frame = pd.DataFrame({"g": pd.array(["a", "b"], dtype="string"), "x": [1, 2]})
    released, ledger = [], Ledger(budget=dpf.Budget(epsilon=10))
    for made in (
        frame.copy(),
        frame.iloc[:1].copy(),  # other rows, of which nothing is told
        frame.assign(x=[0.5, 1]),  # a dtype that one cell may have decided on
        frame.assign(g=frame["g"].astype("category")),
        frame.assign(y=pd.array([1, 2], dtype="Int8")),
    ):
        made.dp.declare(ledger=ledger, **EACH)
        released.append(made.dp.count(epsilon=1).dp.certificate.releases[0].manifest)
    assert released == [entry.source.manifest for entry in ledger.entries]
    assert len(set(released[:4])) == 1
    assert released[4] != released[0]
    assert re.fullmatch("[0-9a-f]{64}", released[0])


def test_ids_as_bytes_and_as_texts_are_one_kind_of_unit(tmp_path):
    rows = pd.DataFrame({"id": pd.array(["1", "2"], dtype="string")})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=2))
    scan = dpf.scan(tmp_path / "rows.csv", types={"id": "id"})
    for frame in (scan, rows):
        frame.dp.declare(privacy_unit="id", max_rows=1, ledger=ledger)
        frame.dp.count(epsilon=1)
    assert len(ledger.entries) == 2


@pytest.mark.parametrize("cell", ["a", pd.Timestamp("2024"), pd.Period("2024"), pd.Timedelta(1)])
def test_no_certificate_tells_a_type_that_pandas_guessed(cell):
    def manifest(cells):
        released = pd.DataFrame({"g": cells}).dp.count(epsilon=1, **EACH)
        return released.dp.certificate.releases[0].manifest

    assert manifest([cell, cell]) == manifest([cell, 1])
    assert manifest(pd.array([1, 2], "Int64")) != manifest([cell, 1])


def test_a_ledger_keeps_no_kind_of_units_that_pandas_guessed():
    def kept(cells):
        frame = pd.DataFrame({"u": cells})
        frame.dp.declare(privacy_unit="u", max_rows=1, ledger=dpf.Ledger(budget=dpf.Budget(9)))
        frame.dp.count(epsilon=1)
        return frame.dp.ledger.entries[0].source

    assert kept(["a", "b"]) == kept(["a", 7])
    assert kept(pd.array(["a", "b"], "string")).unit == ("texts",)
