"""Cells of CSV files in some encoding: bytes that are no text concern their own cell alone."""

import itertools

import pandas as pd
import pytest
from support.planning import planned

import dpframe as dpf
from dpframe.errors import PlanFileError
from dpframe.jobs.csv_encoding import UTF8, Encoding
from dpframe.jobs.plan_file import Overrides, read_plan
from dpframe.jobs.running import preview_job, release_job

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
    return read_plan(plan, MARCH).data.frame({name: kind})[name].tolist()


@pytest.mark.parametrize("encoding", ["utf-8", "cp1251"])
def test_people_with_ids_that_are_no_utf8_are_told_apart(tmp_path, encoding):
    plan = plan_in(tmp_path, in_encoding(encoding))
    written(tmp_path, [person + b",A,5" for person in CYRILLIC] * 3)
    assert trips(plan) == [2000, 0, 0]  # two rows of each


def test_a_person_more_moves_no_row_of_another(tmp_path):
    plan = plan_in(tmp_path)
    alike = [b"Jos\xe8,A,5"] * 2
    written(tmp_path, alike)
    units = column(plan, "driver")
    written(tmp_path, [b"Jos\xe9,B,5"] * 2 + alike)
    assert column(plan, "driver")[2:] == units == [b"Jos\xe8"] * 2
    assert trips(plan) == [2, 2, 0]


ODD = b"\xc3\x28"  # half a character of UTF-8, and a bracket


@pytest.mark.parametrize("kind", ["string", "int64", "float64", "bool", "date", "datetime"])
def test_a_cell_that_is_no_text_is_none_of_any_kind(tmp_path, kind):
    plan = plan_in(tmp_path)
    written(tmp_path, [b"1,A,%s" % ODD, b"2,A,1"])
    odd, plain = column(plan, "fare", kind)
    assert odd == ODD if kind == "string" else pd.isna(odd)
    if kind in ("string", "int64", "float64", "bool"):
        assert plain == {"string": "1"}.get(kind, 1)


def test_a_label_that_is_no_text_is_no_group(tmp_path):
    plan = plan_in(tmp_path, ('["A", "B", "C"]', '["A", "\\uFFFD", "Ã("]'))
    written(tmp_path, [b"1,%s,5" % ODD, b"2,A,5", b"3,\xef\xbf\xbd,5", "4,Ã(,5".encode()])
    assert trips(plan) == [1, 1, 1]


def test_a_condition_sees_a_text_that_equals_no_other(tmp_path):
    plan = plan_in(tmp_path, ('by = "zone"', 'by = "zone"\nwhere = "paid != \'no\'"'))
    written(
        tmp_path,
        [b"1,A,5,%s" % ODD, b"2,A,5,no", b"3,A,5,yes"],
        b"driver,zone,fare,paid",
    )
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


@pytest.mark.parametrize("name", SAMPLES)
def test_files_are_read_in_the_encoding_that_is_said(tmp_path, name):
    texts = SAMPLES[name]
    plan = plan_in(tmp_path, in_encoding(name), ('["A", "B", "C"]', str(texts).replace("'", '"')))
    text = "driver,zone,fare\n" + "".join(f'{n},"{one}",5\n' for n, one in enumerate(texts))
    (tmp_path / "trips-2024-03.csv").write_bytes(text.encode(name))
    assert trips(plan) == [1] * len(texts)


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
    encoding = Encoding.of(name)
    for cell, zone in zip(odd, zones[::2], strict=True):
        try:
            assert zone == cell.decode(encoding.name)
        except UnicodeDecodeError:
            assert zone == cell


@pytest.mark.parametrize(
    "name",
    [
        *("utf-16", "utf-16-le", "utf_32", "utf-7", "hz", "iso2022_jp", "iso2022_kr", "cp037"),
        *("punycode", "unicode_escape", "raw_unicode_escape", "base64", "rot13", "zip", "hex"),
        *("undefined", "none", "", " ", "a\\u0000b", "x" * 10_000, "../utf-8", "shift_jisx0213"),
    ],
)
def test_other_encodings_are_refused(tmp_path, name):
    plan = plan_in(tmp_path, in_encoding(name))
    with pytest.raises(PlanFileError, match=r"line 3, data.encoding: must be an encoding"):
        read_plan(plan, MARCH)


@pytest.mark.parametrize(
    ("name", "separator", "fits"),
    [
        ("utf-8", "§", True),
        ("cp1252", "§", True),
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
        with pytest.raises(PlanFileError, match=r"data.separator: must be one byte"):
            read_plan(plan, MARCH)
        return
    text = "driver,zone,fare\n1,A,5\n".replace(",", separator.replace("\\t", "\t"))
    (tmp_path / "trips-2024-03.csv").write_bytes(text.encode(name))
    assert trips(plan) == [1, 0, 0]


def test_missing_cells_are_said_in_the_encoding(tmp_path):
    both = (BEFORE, f'{BEFORE}\nencoding = "cp1252"\nmissing = ["—"]')
    plan = plan_in(tmp_path, both)
    written(tmp_path, [b"1,\x97,5", b"2,A,5"])
    assert column(plan, "zone") == [None, "A"]


def test_a_mark_of_the_encoding_is_no_part_of_the_header(tmp_path):
    plan = plan_in(tmp_path)
    written(tmp_path, [b"1,A,5"], b"\xef\xbb\xbfdriver,zone,fare")
    assert trips(plan) == [1, 0, 0]


def test_a_header_that_is_no_text_is_told_and_not_shown(tmp_path):
    plan = plan_in(tmp_path)
    written(tmp_path, [b"1,A,5"], b"driver,zone,fare,dur\xe9e")
    with pytest.raises(PlanFileError, match=r"is no utf-8: .* data.encoding = ") as caught:
        preview_job(read_plan(plan, MARCH))
    assert "dur" not in str(caught.value)
    plan.write_text(plan.read_text().replace(BEFORE, f'{BEFORE}\nencoding = "cp1252"'))
    assert trips(plan) == [1, 0, 0]


def test_cells_of_utf8_that_are_text_are_never_bytes():
    assert UTF8.text("é\ufffd\uffff") == "é\ufffd\uffff"
    assert UTF8.text("\udced\udca0\udc80") == b"\xed\xa0\x80"  # half a surrogate pair


@pytest.mark.parametrize("form", ["csv", "two files"])
def test_a_count_of_all_rows_needs_no_column(tmp_path, form):
    (tmp_path / "a.csv").write_text("who,x\n" + "1,2\n" * 700)
    paths = '["a.csv", "a.csv"]' if form == "two files" else '"a.csv"'
    (tmp_path / "all.toml").write_text(
        f"[data]\npath = {paths}\n[declare]\neach_row = true\n[queries.all]\nkind = 'count'\n"
        "[release]\nepsilon = 1e6\nname = 'all'\nfiles = '{query}.csv'\n[ledger]\npath = 'l'\n"
    )
    dpf.Ledger.create(tmp_path / "l", budget=dpf.Budget(1e7))
    (table,) = release_job(read_plan(tmp_path / "all.toml", Overrides())).frames.values()
    assert table["count"].tolist() == [1400 if form == "two files" else 700]
