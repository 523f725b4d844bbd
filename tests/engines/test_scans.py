"""Scans of Parquet files: which files and columns they read, and what is refused."""

from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from support.raising import raises
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines import engine_for, scans
from dpframe.engines.scans import ScanEngine
from dpframe.errors import DeclarationError, QueryError, UnknownColumnError
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition


def totals(frame, tasks):
    return engine_for(frame).totals(frame, tasks, SYSTEM)


def counts(files, column, keys, unit=()):
    axis = KeyAxis(column, pd.Index(keys, dtype=object))
    task = Task(Cells((axis,)), (Term("rows"),), unit=unit, caps=Caps(rows=1))
    return totals(files, [task])[0][0].tolist()


@pytest.mark.parametrize("unit", [(), ("u",)])
def test_folders_become_columns_whose_values_are_read_one_by_one(unit, tmp_path, monkeypatch):
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 2)
    sizes = {"year=2020": 3, "year=007": 2, "year=a%20b": 4, "year=__HIVE_DEFAULT_PARTITION__": 5}
    first = 0
    for name, n in sizes.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"u": range(first, first + n)}), tmp_path / name / "x.parquet")
        first += n
    pq.write_table(pa.table({"u": [-1]}), tmp_path / "x.parquet")
    files = dpf.scan_parquet(tmp_path)
    assert files.columns == ["u", "year"]
    keys = [2020, 7, "a b", "2020", "007"]
    assert counts(files, "year", keys, unit) == [3, 2, 4, 0, 0]
    terms = (Term("rows"),)
    recent = Task(Cells(), terms, where=Condition.parse("year >= 2000"), unit=unit, caps=Caps(1))
    assert totals(files, [recent])[0] == 3


def test_a_column_that_folders_and_files_name_is_refused(tmp_path):
    """Readers follow one or the other: a part would have two names."""
    (tmp_path / "year=2020").mkdir()
    pq.write_table(
        pa.table({"year": pa.array([1, 2020], pa.int32()), "x": [1, 1]}),
        tmp_path / "year=2020" / "x.parquet",
    )
    dataset = pytest.importorskip("pyarrow.dataset").dataset(tmp_path, partitioning="hive")
    for scan in (dpf.scan_parquet(tmp_path), dpf.scan(dataset)):
        with raises(DeclarationError, "readers follow one or the other", label="year"):
            counts(scan, "year", [1, 2020])
        assert counts(scan, "x", [1]) == [2]


def test_a_column_that_a_file_does_not_have_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1, 1], "b": ["x", "y"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1, 2, 3], "b": pa.nulls(3)}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"c": [2.5], "a": [2]}), tmp_path / "3.parquet")
    files = dpf.scan_parquet(tmp_path)
    assert files.columns == ["a", "b", "c"]
    assert counts(files, "a", [1, 2, 3]) == [3, 2, 1]
    with raises(UnknownColumnError, "3.parquet has no column 'b'"):
        counts(files, "b", ["x", "y"])
    with raises(UnknownColumnError, "1.parquet has no column 'c'"):
        ScanEngine().check(files, ["a", "c"])


def test_a_column_that_a_file_has_twice_is_refused_before_the_charge(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    twice = pa.table([[1], [2], [3]], names=["a", "b", "b"])
    pq.write_table(twice, tmp_path / "2.parquet")
    for scan in (dpf.scan_parquet(tmp_path), dpf.scan(ds.dataset(tmp_path, format="parquet"))):
        scan.dp.declare(privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(9))
        scan.dp.count(where="a == 1", epsilon=1)
        with raises(UnknownColumnError, "2.parquet has 'b' more than once"):
            scan.dp.sum("b", bounds=(0, 9), epsilon=1)
        assert len(scan.dp.ledger.entries) == 1


@pytest.mark.parametrize("lost", ["zone", "who", "fare", "paid"])
def test_nothing_is_charged_where_a_file_lacks_what_is_needed(lost, tmp_path):
    rows = pd.DataFrame({"zone": ["A"], "who": [1], "fare": [2.5], "paid": [1]})
    for part in range(4):
        kept = rows.drop(columns=lost if part == 3 else [])
        kept.to_parquet(tmp_path / f"{part}.parquet")
    scan = dpf.scan_parquet(tmp_path)
    ledger = dpf.Ledger(budget=dpf.Budget(1))

    def declare():
        scan.dp.declare(
            keys={"zone": ["A"]},
            bounds={"fare": (0, 5)},
            privacy_unit="who",
            max_rows=1,
            ledger=ledger,
        )

    if lost != "paid":
        with pytest.raises(UnknownColumnError, match=rf"3.parquet has no column '{lost}'"):
            declare()
    late = dpf.scan_parquet(tmp_path / "0.parquet")
    scan = late  # a file that is there, and is exchanged after it was declared
    declare()
    rows.drop(columns=lost).to_parquet(tmp_path / "0.parquet")
    query = dpf.mean("fare", by="zone", where="paid == 1")
    for ask in (late.dp.plan, late.dp.release):
        with pytest.raises(UnknownColumnError, match=f"no column '{lost}'"):
            ask(query, share=0.5)
    assert not ledger.entries


def test_what_folders_say_of_some_files_is_theirs(tmp_path):
    for name, column in (("z=A", None), ("b", ["C"]), ("z=__HIVE_DEFAULT_PARTITION__", None)):
        (tmp_path / name).mkdir()
        table = pa.table({"u": [1]} | ({} if column is None else {"z": column}))
        pq.write_table(table, tmp_path / name / "x.parquet")
    assert counts(dpf.scan_parquet(tmp_path), "z", ["A", "B", "C"]) == [1, 0, 1]
    pq.write_table(pa.table({"u": [1], "z": [7]}), tmp_path / "b" / "x.parquet")
    with pytest.raises(UnknownColumnError, match=r"z=A.x.parquet has no column 'z'"):
        counts(dpf.scan_parquet(tmp_path), "z", [7])


def test_types_that_differ_are_refused_where_they_are_needed(tmp_path):
    pq.write_table(pa.table({"a": pa.nulls(1), "b": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [0.5], "b": [2]}), tmp_path / "2.parquet")
    files = dpf.scan_parquet(tmp_path)
    assert counts(files, "b", [1, 2]) == [1, 2]
    with raises(DeclarationError, "same types of columns") as caught:
        counts(files, "a", [1])
    assert "2.parquet, and int64 in others" in str(caught.value)


DRIFTS = [
    ([1, -1], pa.int8(), pa.int64()),
    ([1, 2], pa.uint8(), pa.int16()),
    ([1, 2], pa.int32(), pa.float64()),
    ([1.5, 2], pa.float32(), pa.float64()),
    (["A", "é"], pa.string(), pa.large_string()),
    (["A", "é"], pa.string(), pa.string_view()),
    (["A", "é"], pa.string(), pa.dictionary(pa.int8(), pa.string())),
    (["A", "é"], pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string())),
    ([b"A", b"B"], pa.binary(), pa.large_binary()),
    ([Decimal("1.5"), Decimal("2.5")], pa.decimal128(3, 1), pa.decimal128(9, 1)),
]


@pytest.mark.parametrize("place", range(len(DRIFTS)))
@pytest.mark.parametrize("turned", [False, True])
def test_types_are_joined_where_all_values_are_kept(place, turned, tmp_path, monkeypatch):
    keys, *kinds = DRIFTS[place]
    for part, kind in enumerate(reversed(kinds) if turned else kinds):
        values = pa.array([*keys, None, keys[0]], kind)
        pq.write_table(pa.table({"a": values, "u": [part] * 4}), tmp_path / f"{part}.parquet")
    files = dpf.scan_parquet(tmp_path)
    assert counts(files, "a", keys) == [4, 2]
    assert counts(files, "a", keys, unit=("a",)) == [1, 1]
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 2)
    assert counts(files, "a", keys, unit=("a",)) == [1, 1]


def test_a_file_that_is_none_of_parquet_is_named(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_text("private")
    with raises(DeclarationError, "2.parquet", parameter="path"):
        dpf.scan_parquet(tmp_path)


def test_hidden_files_are_left_out_and_empty_ones_are_named(tmp_path):
    for name in (".1.parquet.crc", "_SUCCESS", "_log/1.json", ".tmp/1.parquet", "year=1/.x.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("none of Parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "year=1" / "2.parquet")
    assert counts(dpf.scan_parquet(tmp_path), "a", [1]) == [2]
    (tmp_path / "3.parquet").touch()
    with raises(DeclarationError, "3.parquet, which is empty", parameter="path"):
        dpf.scan_parquet(tmp_path)


def test_labels_are_taken_as_they_are(tmp_path):
    path = tmp_path / "dots.parquet"
    arrays = [pa.array([1, 2]), pa.array([{"b": 3}, {"b": 4}]), pa.array([5, 6]), pa.array([7, 8])]
    pq.write_table(pa.Table.from_arrays(arrays, names=["a.b", "a", "x", "x"]), path)
    files = dpf.scan_parquet(path)
    assert ScanEngine().columns(files) == ["a.b", "a", "x", "x"]
    assert counts(files, "a.b", [1, 3, 4]) == [1, 0, 0]
    with raises(QueryError, "duplicate", label="x"):
        counts(files, "x", [5])
    with raises(UnknownColumnError, "no column 'a.c'"):
        counts(files, "a.c", [5])


def test_types_that_extend_others_count_as_those(tmp_path):
    path = tmp_path / "periods.parquet"
    months = pd.period_range("1970-02", periods=3, freq="M")
    pd.DataFrame({"p": months, "u": [1, 2, 3]}).to_parquet(path)
    assert counts(dpf.scan_parquet(path), "p", [1, 3]) == [1, 1]


def test_texts_that_are_no_utf_8(tmp_path, monkeypatch):
    path = tmp_path / "bytes.parquet"
    texts = pa.array([b"A", b"\xff", None, b"A", b"B"]).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"a": texts, "u": [b"1", b"1", b"2", b"2", b"3"]}), path)
    files = dpf.scan_parquet(path)
    assert counts(files, "a", ["A", "B", "\ufffd"]) == [2, 1, 0]
    assert counts(files, "a", ["A", "B"], unit=("u",)) == [2, 1]
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 2)
    assert counts(files, "a", ["A", "B"], unit=("a",)) == [1, 1]
    some = Task(
        Cells(), (Term("rows"),), where=Condition.parse("a > 'A'"), unit=("u",), caps=Caps(1)
    )
    assert totals(files, [some])[0] == 2


def test_tables_are_put_together_up_to_a_size(tmp_path, monkeypatch):
    for part in range(9):
        pq.write_table(pa.table({"a": range(10)}), tmp_path / f"{part}.parquet")
    files = dpf.scan_parquet(tmp_path)
    assert [table.num_rows for table in files.tables(["a"], 25)] == [30, 30, 30]
    monkeypatch.setattr(scans, "MOST_BYTES", 170)
    assert [table.num_rows for table in files.tables(["a"], 25)] == [20, 20, 20, 20, 10]


def test_dictionaries_that_differ_between_files(tmp_path, monkeypatch):
    """Together they have more texts than their codes can tell apart."""
    kind = pa.dictionary(pa.int8(), pa.string())
    for part in range(3):
        texts = [f"{100 * part + number}" for number in range(100)]
        pq.write_table(pa.table({"a": pa.array(texts, kind)}), tmp_path / f"{part}.parquet")
    keys = [str(number) for number in range(400)]
    expected = [1] * 300 + [0] * 100
    assert counts(dpf.scan_parquet(tmp_path), "a", keys) == expected
    assert counts(dpf.scan_parquet(tmp_path), "a", keys, unit=("a",)) == expected
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 50)
    assert counts(dpf.scan_parquet(tmp_path), "a", keys, unit=("a",)) == expected


def test_a_file_is_read_anew(tmp_path):
    path = tmp_path / "changing.parquet"
    pq.write_table(pa.table({"a": [1, 1]}), path)
    files = dpf.scan_parquet(path)
    assert counts(files, "a", [1]) == [2]
    pq.write_table(pa.table({"b": ["x"], "a": [1]}), path)
    assert counts(files, "a", [1]) == [1]
    assert files.columns == ["b", "a"]
    path.unlink()
    with raises(DeclarationError, "Parquet", parameter="path"):
        files.refresh()


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("absent.parquet", {}, "no such file"),
        ("empty", {}, "where there are none"),
        ([], {}, "where there are none"),
        ("text.parquet", {}, "cannot be read"),
        (None, {}, "path must be a file, a folder or a list of files, got a NoneType"),
        ([1], {}, "got a list"),
        ("good.parquet", {"batch_rows": 0}, "batch_rows must be an integer from 1 to"),
        ("good.parquet", {"batch_rows": True}, "got batch_rows=True"),
        ("good.parquet", {"spill_folder": "absent"}, "spill_folder must be a folder that exists"),
    ],
)
def test_what_cannot_be_opened_is_refused(path, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("text.parquet").write_text("private")
    pq.write_table(pa.table({"a": [1]}), "good.parquet")
    with pytest.raises(DeclarationError, match=message) as caught:
        dpf.scan_parquet(path, **options)
    assert "private" not in str(caught.value)


def test_passwords_in_a_path_are_not_shown():
    with raises(DeclarationError, "got 'ftp://...@host/x'", parameter="path") as caught:
        dpf.scan_parquet("ftp://me:secret@host/x")
    assert "secret" not in str(caught.value)
