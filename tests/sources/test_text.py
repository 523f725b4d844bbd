"""Text files as a door: what is said of them, their headers, and what is told of odd ones."""

import gzip
import pickle
import zipfile
from dataclasses import fields

import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pytest
from support.planning import Overrides, planned, read_plan
from support.raising import raises

import dpframe as dpf
from dpframe.errors import (
    DeclarationError,
    PlanFileError,
    QueryError,
    ReleaseError,
    UnknownColumnError,
)
from dpframe.jobs.plan_models import plan_schema
from dpframe.sources.cells import Dialect

TYPES = {"id": "id", "zone": "string", "fare": "float64"}
ROWS = "id,zone,fare\n1,A,5\n2,B,6\n3,NA,many\n"


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "rows.csv"
    place.write_text(ROWS)
    return place


def cells(scan, label):
    return [cell for table in scan.tables([label]) for cell in table.column(label).to_pylist()]


def test_columns_are_read_as_what_is_said(path):
    scan = dpf.scan(path, types=TYPES)
    assert cells(scan, "id") == [b"1", b"2", b"3"]
    assert cells(scan, "zone") == ["A", "B", "NA"]
    assert cells(scan, "fare") == [5.0, 6.0, None]
    assert dpf.scan(str(path), types={"fare": "int64"}).columns == ["fare"]
    assert cells(dpf.scan([path], types=TYPES, na_values="NA"), "zone") == ["A", "B", None]


def test_a_schema_of_pandera_says_what_columns_hold(path):
    schema = pandera.DataFrameSchema(
        {
            "id": pandera.Column(str),
            "fare": pandera.Column(float, pandera.Check.in_range(0, 9)),
            "zone": pandera.Column(pd.CategoricalDtype(["A", "B"])),
        }
    )
    scan = dpf.scan(path, types=schema)
    assert scan.types == {"id": pa.string(), "fare": pa.float64(), "zone": pa.string()}
    scan.dp.declare(schema, privacy_unit="id", max_rows=1)
    assert scan.dp.count("zone", epsilon=1e9)["count"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("types", "word"),
    [
        ("float64", "must be a dict"),
        (["x"], "must be a dict"),
        ({}, "must name a column"),
        (
            pandera.DataFrameSchema({"fare": pandera.Column(checks=pandera.Check.isin([1, 2]))}),
            "no dtype",
        ),
        (pandera.DataFrameSchema({"fa.*": pandera.Column(int, regex=True)}), "is a regex"),
    ],
    ids=["text", "list", "empty", "no dtype", "regex"],
)
def test_what_does_not_say_what_columns_hold_is_refused(path, types, word):
    with raises(DeclarationError, word, parameter="types"):
        dpf.scan(path, types=types)


def test_columns_that_a_schema_does_not_require_may_be_absent(path):
    other = pandera.Column(str, required=False)
    columns = {"fare": pandera.Column(float), "zone": other, "absent": other}
    assert dpf.scan(path, types=pandera.DataFrameSchema(columns)).columns == ["fare", "zone"]


def test_files_in_utf_16_are_to_be_converted(path):
    path.write_bytes(ROWS.encode("utf-16"))
    with raises(DeclarationError, "convert it to UTF-8", parameter="source"):
        dpf.scan(path, types=TYPES)


def test_compressed_files_are_read(path):
    packed, archive = path.with_suffix(".csv.gz"), path.with_suffix(".csv.zip")
    packed.write_bytes(gzip.compress(ROWS.encode()) + gzip.compress(b"4,C,7\n"))
    assert cells(dpf.scan(packed, types=TYPES), "fare") == [5.0, 6.0, None, 7.0]
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.csv", ROWS)
    assert cells(dpf.scan(archive, types=TYPES), "fare") == [5.0, 6.0, None]
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("b.csv", ROWS)
    with raises(DeclarationError, "holds 2 files"):
        dpf.scan(archive, types=TYPES)


def test_a_damaged_file_ends_a_release_and_quotes_nothing(path):
    packed = path.with_suffix(".csv.gz")
    rows = "".join(f"person {number},A,5\n" for number in range(300_000))
    packed.write_bytes(gzip.compress(f"id,zone,fare\n{rows}".encode(), 1)[:-2000])
    scan = dpf.scan(packed, types=TYPES)
    scan.dp.declare(privacy_unit=dpf.EACH_ROW)
    with raises(ReleaseError) as caught:
        scan.dp.count(epsilon=1)
    assert "person" not in str(caught.value)


def test_a_copy_of_a_scan_reads_the_same_and_keeps_no_row(path):
    scan = dpf.scan(path, types=TYPES)
    assert scan.in_memory(scan.columns).source.rows == 3
    other = pickle.loads(pickle.dumps(scan))  # noqa: S301
    assert other.source.rows is None
    assert cells(other, "fare") == [5.0, 6.0, None]
    assert str(path) in repr(scan)


def test_what_is_left_out_is_counted_for_the_curator(path):
    path.write_text(ROWS + '4,"C,7\n5,D\n6,,8\n')
    for scan in (dpf.scan(path, types=TYPES), dpf.scan(dataset(path))):
        scan.dp.declare(privacy_unit=dpf.EACH_ROW)
        found = scan.dp.diagnose(dpf.mean("fare", bounds=(0, 9)))
        said = found["hint"].iloc[0]
        assert said == "2 lines are no rows and left out; cells not of their type: 1 of 'fare'"
        assert found["rows"].iloc[0] == 4


HEADERS = {
    b"": "is empty",
    b"\n\n": "is empty",
    b'id,"zone,fare\n1,A,5\n': "not closed",
    b"id,zone,fare\r1,secret,5\r": "no header",
    b"id,zone,f\xffre\n": "encoding = ",
    b"1,secret,5\n2,B,6\n": "has no column 'id'",
    b"id,zone,fare,fare\n": "more than once",
}


@pytest.mark.parametrize("content", HEADERS, ids=range(len(HEADERS)))
def test_first_lines_that_are_no_header_are_told_and_not_shown(path, content):
    path.write_bytes(content)
    with pytest.raises((DeclarationError, UnknownColumnError), match=HEADERS[content]) as caught:
        dpf.scan(path, types=TYPES)
    assert "secret" not in str(caught.value)


def test_a_mark_of_utf8_is_no_part_of_the_first_name_but_of_the_first_cell(path):
    path.write_bytes(b"\xef\xbb\xbfid,zone,fare\n\xef\xbb\xbfx,A,5\n")
    assert cells(dpf.scan(path, types=TYPES), "id") == [b"\xef\xbb\xbfx"]


REFUSED = {
    "no types": ({"types": None}, "types", "one cell decides"),
    "no column": ({"types": {}}, "types", "must name a column"),
    "type": ({"types": {"id": "text"}}, "types", "must be one of string, "),
    "label": ({"types": {1: "string"}}, "types", "texts as labels"),
    "separator": ({"separator": ",,"}, "separator", "one character"),
    "quote": ({"separator": '"'}, "separator", "one character"),
    "encoding": ({"encoding": "utf-16"}, "encoding", "ASCII as it is"),
    "no encoding": ({"encoding": 5}, "encoding", "ASCII as it is"),
    "words": ({"na_values": 5}, "na_values", "a list of texts"),
    "thousands": ({"thousands": "00"}, "thousands", "one character"),
    "digit": ({"thousands": "0"}, "thousands", "one character"),
    "marks": ({"thousands": "."}, "thousands", "must differ"),
    "decimal": ({"decimal": "e"}, "decimal", "one character"),
    "no decimal": ({"decimal": None}, "decimal", "one character"),
    "percent": ({"percent": 1}, "percent", "True or False"),
    "newlines": ({"newlines": "yes"}, "newlines", "True or False"),
    "both": ({"true": ["Y", "1"], "false": ["y"]}, "true", "no word of false"),
    "no word": ({"false": []}, "false", "must have a word"),
    "dates": ({"dates": "%d.%m."}, "dates", "with a year"),
    "no date": ({"dates": ["day"]}, "dates", "with a year"),
    "not written": ({"encoding": "cp1252", "true": "да"}, "true", "cp1252 can write"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_said_of_files_is_refused(path, case):
    options, parameter, words = REFUSED[case]
    with raises(DeclarationError, words, parameter=parameter):
        dpf.scan(path, **({"types": TYPES} | options))


def test_other_paths_and_sources_are_told_of(tmp_path, path):
    with raises(DeclarationError, "scan_parquet", parameter="source"):
        dpf.scan(tmp_path)
    with raises(DeclarationError, "must name a file", parameter="source"):
        dpf.scan(tmp_path / "none.csv", types=TYPES)
    with raises(DeclarationError, "list of paths", parameter="source"):
        dpf.scan([path, 5], types=TYPES)
    table = pa.table({"a": [1]})
    with raises(DeclarationError, "text files", parameter="types"):
        dpf.scan(table, types={"a": "int64"})
    with raises(DeclarationError, "text files", parameter="decimal"):
        dpf.scan(table, decimal=",")


def test_plans_say_it_with_the_same_keys(tmp_path):
    known = {"path", "filesystem", "spill_folder", "types"}
    known |= {field.name for field in fields(Dialect)}
    assert set(plan_schema()["$defs"]["data"]["properties"]) == known
    plan = planned(tmp_path, ('"trips-{month}.csv"', '"trips-{month}.csv"\npercent = 1'))
    with raises(PlanFileError, "line 3, ", parameter="data.percent"):
        read_plan(plan, Overrides({"month": "2024-03"}))


def test_a_plan_reads_what_it_says(tmp_path):
    said = '"rows.csv"\nseparator = ";"\nthousands = "."\ndecimal = ","\nna_values = "-"'
    plan = planned(
        tmp_path, ('"trips-{month}.csv"', said), ('share = "1/12"', "epsilon = 1e9\ndelta = 0")
    )
    (tmp_path / "rows.csv").write_text("driver;zone;fare\n1;A;1.234,5\n2;B;7,5\n3;-;1\n4;C;-\n")
    types = {"zone": "string", "fare": "float64"}
    scan = read_plan(plan, Overrides({"month": "2024-03"})).data.scan(types, ())
    assert cells(scan, "fare") == [1234.5, 7.5, 1.0, None]
    assert cells(scan, "zone") == ["A", "B", None, "C"]


def test_ids_equal_no_text(path):
    scan = dpf.scan(path, types=TYPES)
    scan.dp.declare(privacy_unit="id", max_rows=1, budget=dpf.Budget(1))
    with raises(QueryError, "'id' holds bytes", parameter="keys"):
        scan.dp.count("id", keys=["1", "2"], epsilon=1)
    with raises(QueryError, "'id' holds bytes", parameter="where"):
        scan.dp.count(where="id == '1'", epsilon=1)
    assert scan.dp.ledger.entries == ()


# Datasets of pyarrow ---------------------------------------------------------------------------

SCHEMA = pa.schema({"id": pa.int8(), "zone": pa.large_string(), "fare": pa.float32()})


def dataset(path, schema=SCHEMA, read=None, parse=None, **convert):
    options = pyarrow.csv.ConvertOptions(column_types=schema, **convert)
    form = ds.CsvFileFormat(
        parse, ds.CsvFragmentScanOptions(convert_options=options, read_options=read)
    )
    return ds.dataset(path, schema=schema, format=form)


def test_options_of_a_dataset_are_kept(path):
    path.write_text("id;zone;fare\n1;A;1,5\n300;-;x\n2;Ja;2\n")
    convert = {"decimal_point": ",", "null_values": ["-"], "strings_can_be_null": True}
    given = dataset(path, parse=pyarrow.csv.ParseOptions(delimiter=";"), **convert)
    scan = dpf.scan(given)
    assert cells(scan, "id") == [1, None, 2]
    assert cells(scan, "zone") == ["A", None, "Ja"]
    assert cells(scan, "fare") == [1.5, None, 2.0]
    schema = pa.schema({"zone": pa.bool_(), "id": pa.date32()})
    path.write_text("id,zone\n02.01.2024,Ja\n")
    convert = {"timestamp_parsers": ["%d.%m.%Y"], "true_values": ["ja"], "false_values": ["nein"]}
    scan = dpf.scan(dataset(path, schema, **convert))
    assert cells(scan, "zone") == [True]
    assert cells(scan, "id") == [pd.Timestamp("2024-01-02").date()]


UNKNOWN = {
    "quote_char": {"parse": pyarrow.csv.ParseOptions(quote_char="'")},
    "double_quote": {"parse": pyarrow.csv.ParseOptions(double_quote=False)},
    "escape_char": {"parse": pyarrow.csv.ParseOptions(escape_char="\\")},
    "ignore_empty_lines": {"parse": pyarrow.csv.ParseOptions(ignore_empty_lines=False)},
    "skip_rows": {"read": pyarrow.csv.ReadOptions(skip_rows=1)},
    "column_names": {"read": pyarrow.csv.ReadOptions(column_names=["id", "zone", "fare"])},
    "quoted_strings_can_be_null": {"quoted_strings_can_be_null": False},
    "strings_can_be_null": {"null_values": ["-"]},
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_options_that_the_reader_has_not_are_refused(path, name):
    with raises(DeclarationError, name, parameter="source"):
        dpf.scan(dataset(path, **UNKNOWN[name]))


@pytest.mark.parametrize(
    "kind", [pa.uint64(), pa.decimal128(9, 2), pa.time32("s"), pa.duration("s")], ids=str
)
def test_types_that_are_not_read_from_text_are_refused(path, kind):
    schema = SCHEMA.set(2, pa.field("fare", kind))
    with raises(DeclarationError, "not read from text", parameter="source"):
        dpf.scan(dataset(path, schema))
