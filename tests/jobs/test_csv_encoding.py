"""Cells of CSV files in some encoding: bytes that are no text concern their own cell alone."""

import itertools

import pandas as pd
import pytest
from support.planning import Overrides, planned, preview_job, read_plan, release_job
from support.raising import raises

import dpframe as dpf
from dpframe.errors import PlanFileError
from dpframe.sources.cells import Dialect
from dpframe.sources.text import TYPES

MARCH = Overrides({"month": "2024-03"})
CYRILLIC = [bytes(letters) for letters in itertools.product(range(0xE0, 0xEA), repeat=3)]
BEFORE = '"trips-{month}.csv"'


def plan_in(folder, *changes):
    """Plan a release with hardly any noise, of at most two rows of a person."""
    exact = ('share = "1/12"', "epsilon = 1e7\ndelta = 0")
    caps = ("max_rows = 3", "max_rows = 2")
    plan = planned(folder, exact, caps, ("trips.ledger", "large.ledger"), *changes)
    dpf.Ledger.create(folder / "large.ledger", budget=dpf.Budget(epsilon=1e8, delta=1e-9))
    return plan


def written(folder, rows, header=b"driver,zone,fare"):
    (folder / "trips-2024-03.csv").write_bytes(b"\n".join([header, *rows, b""]))


def in_encoding(name):
    return BEFORE, f'{BEFORE}\nencoding = "{name}"'


def trips(plan):
    return release_job(read_plan(plan, MARCH)).frames["by_zone"]["trips"].tolist()


def column(plan, name, kind="string"):
    scan = read_plan(plan, MARCH).data.scan({name: kind}, ())
    return [cell for table in scan.tables([name]) for cell in table.column(name).to_pylist()]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1251"])
def test_people_with_ids_that_are_no_utf8_are_told_apart(tmp_path, encoding):
    plan = plan_in(tmp_path, in_encoding(encoding))
    written(tmp_path, [person + b",A,5" for person in CYRILLIC] * 3)
    assert trips(plan) == [2000, 0, 0]  # two rows of each


def test_a_person_more_moves_no_row_of_another(tmp_path):
    plan = plan_in(tmp_path)
    alike = [b"Jos\xe8,A,5"] * 2
    written(tmp_path, alike)
    units = column(plan, "driver", "id")
    written(tmp_path, [b"Jos\xe9,B,5"] * 2 + alike)
    assert column(plan, "driver", "id")[2:] == units == [b"Jos\xe8"] * 2
    assert trips(plan) == [2, 2, 0]


ODD = b"\xc3\x28"  # half a character of UTF-8, and a bracket


@pytest.mark.parametrize("kind", TYPES)
def test_a_cell_that_is_no_text_is_none_of_any_kind(tmp_path, kind):
    plan = plan_in(tmp_path)
    written(tmp_path, [b"1,A,%s" % ODD, b"2,A,1"])
    odd, plain = column(plan, "fare", kind)
    assert odd == (ODD if kind == "id" else None)
    if not kind.startswith("date"):
        assert plain == {"string": "1", "id": b"1"}.get(kind, 1)


def test_a_condition_sees_a_cell_that_equals_no_text(tmp_path):
    plan = plan_in(tmp_path, ('by = "zone"', 'by = "zone"\nwhere = "paid != \'no\'"'))
    written(tmp_path, [b"1,A,5,%s" % ODD, b"2,A,5,no", b"3,A,5,yes"], b"driver,zone,fare,paid")
    assert trips(plan) == [2, 0, 0]


SAMPLES = {
    "utf-8": ["é", "日本", "😀"],
    "utf-8-sig": ["é", "日本"],
    "latin-1": ["é", "þ"],
    "cp1252": ["é", "€"],
    "cp1251": ["Да", "ё"],
    "koi8-r": ["Да", "ё"],
    "iso8859-7": ["Ελλ"],
    "mac-roman": ["é"],
    "cp437": ["é", "░"],
    "gb18030": ["中文", "😀", "€"],
    "gbk": ["中文"],
    "gb2312": ["中文"],
    "big5": ["功", "許"],  # their second bytes are \ and | of ASCII
    "cp950": ["功", "許"],
    "shift_jis": ["表", "ソ"],
    "cp932": ["表", "ソ", "ｱ"],
    "euc_jp": ["表", "ｱ"],
    "euc_kr": ["한국"],
    "cp949": ["똠"],
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", SAMPLES)
def test_files_are_read_in_the_encoding_that_is_said(tmp_path, name):
    texts = SAMPLES[name]
    plan = plan_in(tmp_path, in_encoding(name), ('["A", "B", "C"]', str(texts).replace("'", '"')))
    text = "driver,zone,fare\n" + "".join(f'{n},"{one}",5\n' for n, one in enumerate(texts))
    (tmp_path / "trips-2024-03.csv").write_bytes(text.encode(name))
    assert trips(plan) == [1] * len(texts)


@pytest.mark.sampled(every=5, full=3)
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("quoted", [b"%s", b'"%s"'])
def test_no_bytes_of_a_cell_change_another(tmp_path, name, quoted):
    plan = plan_in(tmp_path, in_encoding(name))
    odd = [bytes([byte]) for byte in range(128, 256)]
    odd += [bytes([byte, 0x30, byte]) for byte in range(128, 256)]
    rows = [b"1,%s,2\n3,B,4" % (quoted % cell) for cell in odd]
    written(tmp_path, rows)
    assert column(plan, "driver") == ["1", "3"] * len(odd)
    assert column(plan, "fare", "int64") == [2, 4] * len(odd)
    zones = column(plan, "zone")
    assert zones[1::2] == ["B"] * len(odd)
    dialect = Dialect.of(encoding=name)
    assert zones[::2] == [dialect.decode(cell) for cell in odd]


@pytest.mark.parametrize(
    "name",
    [
        *("utf-16", "utf-16-le", "utf_32", "utf-7", "hz", "iso2022_jp", "iso2022_kr", "cp037"),
        *(
            "punycode",
            "idna",
            "unicode_escape",
            "raw_unicode_escape",
            "base64",
            "rot13",
            "zip",
            "hex",
        ),
        *("undefined", "none", "", " ", "a\\u0000b", "x" * 10_000, "../utf-8", "shift_jisx0213"),
    ],
)
def test_other_encodings_are_refused(tmp_path, name):
    plan = plan_in(tmp_path, in_encoding(name))
    with raises(PlanFileError, "line 3, ", parameter="data.encoding"):
        read_plan(plan, MARCH)


@pytest.mark.parametrize(
    ("name", "separator", "fits"),
    [
        ("utf-8", "§", False),
        ("cp1252", "§", False),
        ("cp1251", "|", True),
        ("gb18030", "\\t", True),
        ("gb18030", ";", True),
        ("euc_jp", "|", True),
        ("gb18030", "|", False),
        ("cp932", "|", False),
        ("big5", "^", False),
        ("gb18030", "§", False),
        ("cp1251", "é", False),
    ],
)
def test_separators_are_no_part_of_a_character(tmp_path, name, separator, fits):
    both = (BEFORE, f'{BEFORE}\nencoding = "{name}"\nseparator = "{separator}"')
    plan = plan_in(tmp_path, both)
    if not fits:
        with raises(PlanFileError, "must be ASCII", parameter="data.separator"):
            read_plan(plan, MARCH)
        return
    text = "driver,zone,fare\n1,A,5\n".replace(",", separator.replace("\\t", "\t"))
    (tmp_path / "trips-2024-03.csv").write_bytes(text.encode(name))
    assert trips(plan) == [1, 0, 0]


def test_a_header_that_is_no_text_is_told_and_not_shown(tmp_path):
    plan = plan_in(tmp_path)
    written(tmp_path, [b"1,A,5,6"], b"driver,zone,fare,dur\xe9e")
    with raises(PlanFileError, "encoding = ", parameter="data.path") as caught:
        preview_job(read_plan(plan, MARCH))
    assert "dur" not in str(caught.value)
    plan.write_text(plan.read_text().replace(BEFORE, f'{BEFORE}\nencoding = "cp1252"'))
    assert trips(plan) == [1, 0, 0]


@pytest.mark.parametrize("form", ["csv", "two files"])
def test_a_count_of_all_rows_needs_no_column(tmp_path, form):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("who,x\n" + "1,2\n" * 700)
    paths = '["a.csv", "b.csv"]' if form == "two files" else '"a.csv"'
    (tmp_path / "all.toml").write_text(
        f"[data]\npath = {paths}\n[declare]\neach_row = true\n[queries.all]\nkind = 'count'\n"
        "[release]\nepsilon = 1e6\nname = 'all'\nfiles = '{query}.csv'\n[ledger]\npath = 'l'\n"
    )
    dpf.Ledger.create(tmp_path / "l", budget=dpf.Budget(1e7))
    (table,) = release_job(read_plan(tmp_path / "all.toml", Overrides())).frames.values()
    assert table["count"].tolist() == [1400 if form == "two files" else 700]


def odd_frame(kind):
    """Return people and zones of which many are no text, in some form that Python has for it."""
    drivers = [b"Jos%c" % byte for byte in range(128, 256)] * 2
    zones = [b"A" if byte % 2 else b"Z%c" % byte for byte in range(128, 256)] * 2
    frame = pd.DataFrame({"driver": drivers, "zone": zones, "fare": 5.0}, dtype=object)
    if kind == "bytes":
        return frame.assign(zone=["A" if zone == b"A" else zone for zone in zones])
    dtype = object if kind == "surrogates" else pd.StringDtype("python")
    texts = {
        name: pd.Series([cell.decode("utf-8", "surrogateescape") for cell in cells], dtype=dtype)
        for name, cells in {"driver": drivers, "zone": zones}.items()
    }
    return frame.assign(**texts)


@pytest.mark.filterwarnings("ignore::dpframe.errors.DPFrameWarning")
@pytest.mark.parametrize("kind", ["bytes", "surrogates", "texts of Python"])
def test_labels_that_are_no_text_are_never_published(tmp_path, kind):
    frame = odd_frame(kind)
    assert len(set(frame["driver"])) == 128
    frame.dp.declare(
        privacy_unit="driver",
        max_rows=1,
        max_groups=1,
        keys={"zone": ["A", "B"]},
        bounds={"fare": (0, 9)},
        budget=dpf.Budget(1e6, 1e-4, 1e-5),
    )
    assert frame.dp.units(epsilon=1e4)["units"].tolist() == [128]
    assert frame.dp.discover("zone", epsilon=1e4, delta=1e-6).index.tolist() == ["A"]
    chosen = frame.dp.quantile("fare", 0.5, by="zone", epsilon=1e4)
    assert chosen.index.unique("zone").tolist() == ["A", "B"]
    counted = frame.dp.count(by="zone", epsilon=1e4)
    assert counted["count"].tolist() == [64, 0]
    counted.dp.write_parquet(tmp_path / "counted.parquet")
    counted.dp.write_csv(tmp_path / "counted.csv")
    said = frame.dp.diagnose(dpf.count(by="zone")).to_string() + repr(frame.dp)
    assert said.isprintable() or said.replace("\n", "").isprintable()
    assert "Jos" not in said


@pytest.mark.parametrize(
    "odd",
    [
        *(b"9,\x00,5", b"\x00", b'9,A"B,5', b'9,"A"B"C",5', b'"9"",""A",A,5', b"9,A,5\r9,A,5"),
        *(b"9," + b"x" * 10**6 + b",5", b"9,A," + b"9" * 10**6, b"\xff" * 9, b'9,"A\n\r\nB",5'),
    ],
    ids=range(10),
)
def test_an_odd_row_leaves_all_others_as_they_are(tmp_path, odd):
    plan = plan_in(tmp_path)
    written(tmp_path, [b"1,A,5", odd, b"2,B,6", b"3,C,7"])
    fares = dict(zip(column(plan, "driver"), column(plan, "fare", "float64"), strict=True))
    zones = dict(zip(column(plan, "driver"), column(plan, "zone"), strict=True))
    assert {person: fares[person] for person in "123"} == {"1": 5, "2": 6, "3": 7}
    assert {person: zones[person] for person in "123"} == {"1": "A", "2": "B", "3": "C"}
