"""Releases in Excel files: what is read is what was released, and texts are never formulas."""

import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from support.publishing import KINDS
from support.publishing import released as of_kind
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CertificateError, DPFrameError, QueryError

openpyxl = pytest.importorskip("openpyxl")

DAYS = pd.date_range("2020-01-31 23:59:59", periods=3, freq="31h")
FORMULAS = ["=1+1", "+A1", "-2", "@SUM(A1)", "'=1", "#N/A", '=HYPERLINK("http://a")', "\tx"]
KEYS = {
    "formulas": FORMULAS,
    "odd texts": ["a,b", 'say "hi"', "two\nlines", "NA", "nan", "", " x ", "007", "True", "é"],
    "integers": [7, -2, 0],
    "large integers": pd.Index([2**64 - 1, 2**53 + 1, 0], dtype="uint64"),
    "nullable integers": pd.array([3, 1], dtype="Int64"),
    "floats": [0.1, 1 / 3, 2.0, np.inf, -np.inf, 1e300],
    "short floats": pd.Index([0.1, 1 / 3], dtype="float32"),
    "booleans": [True, False],
    "nullable booleans": pd.array([True, False], dtype="boolean"),
    "times": DAYS,
    "days": DAYS.normalize(),
    "early times": pd.to_datetime(["1900-01-01", "1677-10-01"]),
    "times to the nanosecond": DAYS.as_unit("ns") + pd.Timedelta(1, "ns"),
    "zoned times": DAYS.tz_localize("Asia/Tokyo"),
    "durations": pd.to_timedelta(["1D", "-3h", "00:00:00.000000001"]),
    "months": pd.period_range("2020-11", periods=3, freq="M"),
    "intervals": pd.IntervalIndex.from_breaks([-np.inf, 0.1, np.inf]),
    "categories": pd.Categorical(["low", "high"], ["low", "mid", "high"], ordered=True),
    "texts and numbers": ["a", 1, "1.0"],
}


def counted(keys, label="key"):
    private = pd.DataFrame({label: [0, 1, 2], "paid": [True, False, True]})
    return dpf.release(private, dpf.count(label, keys={label: keys}), epsilon=1)


def changed(path, edit):
    """Change a file as somebody does in a spreadsheet."""
    book = openpyxl.load_workbook(path)
    edit(book)
    book.save(path)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_all_kinds_come_back(name, tmp_path):
    table = counted(KEYS[name])
    table.dp.write_excel(tmp_path / "a.xlsx")
    back = dpf.read_excel(tmp_path / "a.xlsx")
    assert back.equals(table) and list(back.index) == list(table.index)
    assert dpf.verify(back, against=table) == table.dp.certificate
    wide = dpf.release(
        pd.DataFrame({"key": [0], "late": [True]}),
        dpf.count(["key", "late"], keys={"key": KEYS[name], "late": [True, False]}),
        epsilon=1,
    ).unstack("key")
    wide.dp.write_excel(tmp_path / "a.xlsx")
    assert dpf.read_excel(tmp_path / "a.xlsx").equals(wide)


def test_texts_are_no_formulas_nor_errors(tmp_path):
    table = counted(FORMULAS, label="=key")
    table.dp.write_excel(tmp_path / "a.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["Table"]
    cells = [row[0] for row in sheet.iter_rows()]
    assert [cell.value for cell in cells] == ["=key", *FORMULAS]
    assert {cell.data_type for cell in cells} == {"s"}
    assert sheet["A2"].quotePrefix and not sheet["A7"].quotePrefix
    with zipfile.ZipFile(tmp_path / "a.xlsx") as file:
        assert not any(b"<f>" in file.read(name) for name in file.namelist())


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("kind", KINDS)
def test_releases_of_all_kinds_come_back_with_intervals_beside_numbers(kind, tmp_path):
    table = of_kind(kind)
    table.dp.write_excel(tmp_path / "a.xlsx")
    assert dpf.read_excel(tmp_path / "a.xlsx").equals(table)
    if kind == "denoised":
        return
    table = table.dp.interval(join=True)
    table.dp.write_excel(tmp_path / "a.xlsx")
    back = dpf.read_excel(tmp_path / "a.xlsx")
    assert back[table.columns].equals(table)
    pairs = [name for name in table.columns if f"{name}_low" in table.columns]
    places = [list(back.columns).index(name) for name in pairs]
    assert pairs and [[*back.columns[at + 1 : at + 3]] for at in places] == [
        [f"{name}_low", f"{name}_high"] for name in pairs
    ]


def several():
    table = of_kind("two keys")
    return {
        "Wide": table.dp.total(["zone", "day"], margins=True).unstack("day"),
        "Percent": table.dp.percent(by="zone").dp.round(1).reset_index(),
        "Few": table.dp.suppress(below=380).dp.round(to=5),
    }


def test_several_tables_are_in_one_file_with_notes(tmp_path):
    first, *others = several().items()
    first[1].dp.write_excel(tmp_path / "a.xlsx", sheet_name=first[0], tables=dict(others))
    back = dpf.read_excel(tmp_path / "a.xlsx", None)
    assert list(back) == list(several())
    assert [dpf.verify(table).state for table in back.values()] == ["post-processed"] * 3
    assert dpf.read_excel(tmp_path / "a.xlsx", "Few").equals(back["Few"])
    assert dpf.read_excel(tmp_path / "a.xlsx", 1).equals(back["Percent"])
    for unknown in ("few", 3, -1, True, 1.0):
        with raises(QueryError, parameter="sheet_name"):
            dpf.read_excel(tmp_path / "a.xlsx", unknown)
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert book["dpframe"].sheet_state == "veryHidden"
    notes = [row for row in book["Notes"].iter_rows(values_only=True)]
    assert any(row[1] == "privacy loss" and row[2].startswith("(2, 0)-") for row in notes)
    assert any("of 12 cells, rounded to 5" in str(row[2]) for row in notes)
    assert book["Percent"]["E2"].number_format == "#,##0.0"


def test_hidden_and_unrounded_cells_are_not_in_the_file(tmp_path):
    private = pd.DataFrame({"zone": ["A"] * 9_000 + ["B"] * 70, "cost": 7.0})
    query = dpf.aggregate(
        "zone", keys=["A", "B"], n=dpf.count(), cost=dpf.sum("cost", bounds=(0, 9))
    )
    table = dpf.release(private, query, epsilon=2)
    table.dp.suppress(below=1_000, by="n").dp.round(-3).dp.write_excel(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as file:
        content = b"".join(map(file.read, file.namelist())).decode("latin-1")
    record = str(dpf.read_excel(tmp_path / "a.xlsx").attrs["dpframe"]["record"])
    for cell in map(str, table.to_numpy().ravel().tolist()):
        assert cell not in content and cell not in record
    assert "B" not in dpf.read_excel(tmp_path / "a.xlsx").dropna().index


def _add_row(book):
    book["Table"].append(["E", 7])


def _set(cell, value):
    return lambda book: book["Table"].__setitem__(cell, value)


@pytest.mark.parametrize(
    "edit",
    [
        _set("B2", 10**6),
        _set("A2", "B"),
        _set("A2", None),
        _set("B2", None),
        _set("B2", "=1+1"),
        _set("B1", "rows"),
        _set("C2", 3),
        _add_row,
        lambda book: book["Table"].delete_rows(3),
        lambda book: book.remove(book["Table"]),
        lambda book: book["dpframe"].__setitem__("A1", "eJwAAAD"),
        lambda book: book.remove(book["dpframe"]),
    ],
)
def test_changes_of_the_table_are_refused(edit, tmp_path):
    of_kind("one key").dp.write_excel(tmp_path / "a.xlsx")
    changed(tmp_path / "a.xlsx", edit)
    with pytest.raises(CertificateError):
        dpf.read_excel(tmp_path / "a.xlsx")


def test_tables_may_be_sorted_formatted_and_written_beside(tmp_path):
    table = of_kind("several")
    table.dp.write_excel(tmp_path / "a.xlsx")

    def edit(book):
        sheet = book["Table"]
        rows = [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)]
        for row, values in zip(sheet.iter_rows(min_row=2), rows[::-1], strict=True):
            for cell, value in zip(row, values, strict=True):
                cell.value, cell.number_format = value, "0"
        book["Notes"]["A1"] = "Our notes"
        book.create_sheet("Mine")["A1"] = 3

    changed(tmp_path / "a.xlsx", edit)
    back = dpf.read_excel(tmp_path / "a.xlsx")  # what saved it keeps 16 digits
    pd.testing.assert_frame_equal(back, table.iloc[::-1], rtol=1e-15)
    assert dpf.verify(back, against=table)


def test_an_empty_table_is_written(tmp_path):
    table = of_kind("one key").iloc[:0]
    table.dp.write_excel(tmp_path / "a.xlsx")
    assert len(dpf.read_excel(tmp_path / "a.xlsx")) == 0


@pytest.mark.parametrize(
    "keys", [["a\x00b"], ["a\x0bb"], ["_x0041_"], ["x" * 32_768], ["carriage\rreturn"]]
)
def test_what_excel_cannot_hold_is_not_written(keys, tmp_path):
    with pytest.raises(CertificateError, match="no form in an Excel file"):
        counted(keys).dp.write_excel(tmp_path / "a.xlsx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["", "Notes", "DPFRAME", "x" * 32, "a/b", "a[b", "'a", "History", 7, None, "\x01"]
)
def test_names_of_sheets_are_those_of_excel(name, tmp_path):
    with raises(QueryError, parameter="sheet_name"):
        of_kind("one key").dp.write_excel(tmp_path / "a.xlsx", sheet_name=name)
    with raises(QueryError, parameter="sheet_name"):
        of_kind("one key").dp.write_excel(tmp_path / "a.xlsx", tables={"table": of_kind("total")})


def test_paths_and_tables_are_checked_before_anything_is_written(tmp_path):
    table = of_kind("one key")
    for path in ("", None, 3, tmp_path / "a.xls", tmp_path / "no" / "a.xlsx"):
        with raises(QueryError, parameter="path"):
            table.dp.write_excel(path)
    with raises(QueryError, parameter="tables"):
        table.dp.write_excel(tmp_path / "a.xlsx", tables=[table])
    with pytest.raises(CertificateError):
        table.dp.write_excel(tmp_path / "a.xlsx", tables={"Wrong": table + 1})
    with pytest.raises(QueryError, match="rounded"):
        joined = table.dp.interval(join=True)
        joined.assign(count=joined["count"].round(-2)).dp.write_excel(tmp_path / "a.xlsx")
    assert not list(tmp_path.iterdir())
    (tmp_path / "b.xlsx").write_bytes(b"PK")
    with pytest.raises(CertificateError):
        dpf.read_excel(tmp_path / "b.xlsx")
    with pytest.raises(FileNotFoundError):
        dpf.read_excel(tmp_path / "c.xlsx")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    for call in (of_kind("total").dp.write_excel, dpf.read_excel):
        (tmp_path / "a.xlsx").write_bytes(b"")
        with pytest.raises(DPFrameError, match=r"pip install '(dpframe|\.)\[excel\]'"):
            call(tmp_path / "a.xlsx")


def test_the_file_opens_with_pandas(tmp_path):
    table = of_kind("several")
    table.dp.write_excel(tmp_path / "a.xlsx")
    content = io.BytesIO((tmp_path / "a.xlsx").read_bytes())
    assert pd.read_excel(content, index_col=0).equals(pd.DataFrame(table))
