"""Released frames as CSV files: what is read is what was released, or nothing is."""

import csv
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from support.publishing import sidecar_of
from support.raising import raises

import dpframe as dpf
from dpframe import read_csv, write_csv
from dpframe.errors import CertificateError, QueryError

ODD = ["a,b", 'say "hi"', "two\nlines", "return\r", "both\r\n", "NA", "nan", "", " x ", "007", "é"]
FLOATS = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -2.5, 1e16, np.inf, -np.inf]
DAYS = pd.date_range("2020-01-31 23:59:59", periods=3, freq="31h")
KEYS = {
    "texts": ODD,
    "texts in an object index": pd.Index(["a", "b"], dtype=object),
    "texts of the extension type": pd.Index(["a", "NA"], dtype="string"),
    "one empty text": [""],
    "texts of digits": ["007", "7", "-0", "1e3"],
    "texts of truths": ["True", "False"],
    "integers": [7, -2, 0],
    "small integers": pd.Index([7, -2], dtype="int8"),
    "large integers": pd.Index([2**64 - 1, 0], dtype="uint64"),
    "nullable integers": pd.array([3, 1], dtype="Int64"),
    "floats": FLOATS,
    "short floats": pd.Index([0.1, 1 / 3], dtype="float32"),
    "nullable floats": pd.array([0.1, 2.5], dtype="Float64"),
    "booleans": [True, False],
    "nullable booleans": pd.array([True, False], dtype="boolean"),
    "times": DAYS,
    "times of other units": DAYS.as_unit("s"),
    "times to the nanosecond": DAYS.as_unit("ns") + pd.Timedelta(1, "ns"),
    "times with and without fractions": pd.to_datetime(
        ["2020-01-01", "2020-01-01 00:00:00.5"], format="ISO8601"
    ),
    "zoned times": DAYS.tz_localize("Asia/Tokyo"),
    "zoned times in a clock change": pd.date_range(
        "2020-10-24 23:30", periods=4, freq="h", tz="UTC"
    ).tz_convert("Europe/Berlin"),
    "times of a fixed offset": DAYS.tz_localize("UTC+05:30"),
    "durations": pd.to_timedelta(["1D", "-3h", "00:00:00.000000001"]),
    "months": pd.period_range("2020-11", periods=3, freq="M"),
    "weeks": pd.period_range("2020-01-06", periods=3, freq="W"),
    "quarters": pd.period_range("2020Q4", periods=3, freq="Q-MAR"),
    "hours": pd.period_range("2020-01-01 22:00", periods=3, freq="h"),
    "intervals of integers": pd.interval_range(0, 30, 3),
    "infinite intervals": pd.IntervalIndex.from_breaks([-np.inf, 0.1, np.inf]),
    "intervals closed on the left": pd.IntervalIndex.from_breaks([0.5, 1, 2], closed="left"),
    "open intervals": pd.IntervalIndex.from_breaks([0.5, 1, 2], closed="neither"),
    "intervals of times": pd.interval_range(DAYS[0], DAYS[2], 2),
    "intervals of zoned times": pd.interval_range(
        DAYS[0].tz_localize("Asia/Tokyo"), DAYS[2].tz_localize("Asia/Tokyo"), 2
    ),
    "categories": pd.Categorical(["b", "a"]),
    "ordered categories": pd.Categorical(["low", "high"], ["low", "mid", "high"], ordered=True),
    "categories of numbers": pd.Categorical([2.5, 0.1], [0.1, 7.0, 2.5]),
    "categories of times": pd.Categorical(DAYS[::-1], DAYS),
    "categories of intervals": pd.Categorical(pd.interval_range(DAYS[0], DAYS[2], 2)),
}
MIXED = {
    "dates": [day.date() for day in DAYS],
    "texts and numbers": ["a", 1],
    "decimals": [Decimal("1.0"), Decimal("2.5")],
    "pairs": [("a", 1), ("b", 2)],
    "bytes": [b"a", b"b"],
    "integers beyond 64 bits": pd.Index([10**30, 1], dtype=object),
    "complex numbers": [1j, 2j],
}


def released(keys, label="key"):
    private = pd.DataFrame({label: [0, 1, 2], "paid": [True, False, True]})
    return dpf.release(private, dpf.count(label, keys={label: keys}), epsilon=1)


def outputs(**spend):
    private = pd.DataFrame({"zone": ["A", "B", "A"] * 9, "fare": np.arange(27) * 0.7})
    query = dpf.aggregate(
        "zone",
        keys=["A", "B", "C"],
        n=dpf.count(),
        total=dpf.sum("fare", bounds=(0, 20)),
        fare=dpf.mean("fare", bounds=(0, 20)),
    )
    return dpf.release(private, query, **(spend or {"epsilon": 1}))


def assert_comes_back(frame, folder):
    place = folder / "released.csv"
    write_csv(frame, place)
    back = read_csv(place)
    assert back.reset_index(drop=True).equals(frame.reset_index(drop=True))
    assert list(back.dtypes) == list(frame.dtypes)
    assert back.index.names == frame.index.names
    for level in range(frame.index.nlevels):  # a frequency is no part of a dtype
        ours, theirs = (f.index.get_level_values(level) for f in (back, frame))
        assert list(ours) == list(theirs)
        assert theirs.dtype in (ours.dtype, "category")
    assert back.attrs == frame.attrs
    assert dpf.verify(back) == frame.dp.certificate
    return back


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_all_kinds_come_back(name, tmp_path):
    assert_comes_back(released(KEYS[name]), tmp_path)


@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"mu": 0.3}, {"epsilon": 1e-6}, {"rho": 9}])
def test_values_come_back_to_the_bit(spend, tmp_path):
    frame = outputs(**spend)
    back = assert_comes_back(frame, tmp_path)
    for column in frame:
        assert back[column].to_numpy().tobytes() == frame[column].to_numpy().tobytes()


def test_a_release_without_groups_comes_back(tmp_path):
    assert_comes_back(dpf.release(pd.DataFrame({"x": [1]}), dpf.count(), epsilon=1), tmp_path)


def test_files_read_as_plain_csv(tmp_path):
    frame, place = outputs(), tmp_path / "plain.csv"
    write_csv(frame, place)
    with open(place, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["zone", "n", "total", "fare"]
    assert rows[1] == ["A", *(repr(frame[column].tolist()[0]) for column in frame)]
    pd.testing.assert_frame_equal(pd.read_csv(place, index_col="zone"), frame)


def replaced(old, new):
    def change(text):
        assert old in text
        return text.replace(old, new, 1)

    return change


def lines(change):
    return lambda text: "".join(change(text.splitlines(keepends=True)))


ALTERED = {
    "a digit": lines(lambda all_: [*all_[:2], all_[2].replace(",", ",1", 1), *all_[3:]]),
    "another form of a number": lines(lambda all_: [all_[0], all_[1].replace(",", ",+", 1)]),
    "a key": replaced('"B"', '"b"'),
    "a text for a number": lines(lambda all_: [*all_[:3], '"C",x,1.0,2.0\n']),
    "a cell emptied": lines(lambda all_: [*all_[:3], '"C",,1.0,2.0\n']),
    "a row dropped": lines(lambda all_: all_[:-1]),
    "all rows dropped": lines(lambda all_: all_[:1]),
    "a row repeated": lines(lambda all_: [*all_, all_[-1]]),
    "an empty row": lines(lambda all_: [*all_[:2], "\n", *all_[2:]]),
    "an empty cell": lambda text: text + '""\n',
    "a column added": lines(lambda all_: [line.rstrip("\n") + ",1\n" for line in all_]),
    "a column dropped": lines(lambda all_: [line.rpartition(",")[0] + "\n" for line in all_]),
    "a row cut": lines(
        lambda all_: [*all_[:3], all_[3].rpartition(",")[0].rpartition(",")[0] + "\n"]
    ),
    "a header": replaced('"total"', '"sum"'),
    "headers swapped": replaced('"n","total"', '"total","n"'),
    "the name of the index": replaced('"zone"', '"city"'),
    "no header": lines(lambda all_: all_[1:]),
    "a quote opened": lambda text: text + '"',
    "nothing left": lambda _: "",
    "semicolons": lambda text: text.replace(",", ";"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_tables_are_not_read(name, tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(outputs(), place)
    before = place.read_text()
    after = ALTERED[name](before)
    assert after != before
    place.write_text(after)
    with pytest.raises(CertificateError, match=r"Go back to the released frame|dpf\.write_csv"):
        read_csv(place)


SAID = {
    "a digit": "row 2 of column 'n' was changed",
    "a key": "a key of level 'zone' was not released",
    "a text for a number": "row 3 of column 1 is no whole number",
    "a cell emptied": "row 3 of column 1 is no whole number",
    "a row dropped": "more or fewer than 3 rows",
    "a row repeated": "more or fewer than 3 rows",
    "a header": "keys or labels were changed",
    "headers swapped": "row 1 of column 'total' was changed",
    "the name of the index": "its header was changed",
    "a quote opened": "a row has more or fewer values",
}


@pytest.mark.parametrize("name", SAID)
def test_refusals_say_what_was_changed(name, tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(outputs(), place)
    place.write_text(ALTERED[name](place.read_text()))
    with raises(CertificateError, SAID[name]):
        read_csv(place)


def test_refusals_hold_no_value_of_the_file(tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(outputs(), place)
    header, *_ = place.read_text().splitlines()
    for line in ('"secret",77123,1.0,2.0', '"A",secret,1.0,2.0', '"A",77123,1.0,2.0', "secret"):
        place.write_text(f"{header}\n{line}\n{line}\n{line}\n")
        with pytest.raises(CertificateError) as refused:
            read_csv(place)
        assert "secret" not in str(refused.value) and "77123" not in str(refused.value)


def test_a_bracket_of_an_interval_is_part_of_the_table(tmp_path):
    place = tmp_path / "bins.csv"
    write_csv(released(KEYS["infinite intervals"]), place)
    place.write_text(replaced('"(0.1, inf]"', '"[0.1, inf]"')(place.read_text()))
    with pytest.raises(CertificateError, match=r"'bins\.csv' is not what was written"):
        read_csv(place)


def test_bytes_that_are_no_text_are_not_read(tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(outputs(), place)
    place.write_bytes(b"\xff" + place.read_bytes())
    with pytest.raises(CertificateError, match="is not what was written"):
        read_csv(place)


def test_other_quotes_and_line_ends_change_nothing(tmp_path):
    place = tmp_path / "zones.csv"
    frame = outputs()
    write_csv(frame, place)
    with open(place, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    with open(place, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\r\n").writerows(rows)
    assert read_csv(place).equals(frame)


RECORDS = {
    "a smaller epsilon": lambda s: s["certificate"]["releases"][0]["privacy_loss"].update(
        epsilon=0.01
    ),
    "another dtype": lambda s: s["dtypes"].__setitem__(0, "timedelta64[us]"),
    "an unknown dtype": lambda s: s["dtypes"].__setitem__(0, "datetime64[ns, Nowhere]"),
    "a dtype that takes memory": lambda s: s["dtypes"].__setitem__(0, "S1000000000"),
    "a dtype that is none": lambda s: s["dtypes"].__setitem__(0, [1]),
    "another name": lambda s: s["index"].__setitem__(0, '"city"'),
    "more rows": lambda s: s.update(rows=4),
    "more cells": lambda s: s.update(cells=10),
    "no dtypes": lambda s: s.pop("dtypes"),
    "dtypes of another form": lambda s: s.update(dtypes=3),
    "no certificate": lambda s: s.pop("certificate"),
    "a certificate of another form": lambda s: s.update(certificate="released"),
    "a certificate of another format": lambda s: s["certificate"].update(format=99),
}


@pytest.mark.parametrize("name", RECORDS)
def test_altered_sidecars_are_refused(name, tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(outputs(), place)
    shape = json.loads(sidecar_of(place).read_text())
    RECORDS[name](shape)
    sidecar_of(place).write_text(json.dumps(shape))
    with pytest.raises(CertificateError):
        read_csv(place)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"format": 99}', "99"),
        ("{}", "None"),
        ("[1]", "None"),
        ('{"format": true}', "True"),
        ('{"format": 1.0}', "1.0"),
        ('{"format": "' + "x" * 10**7 + '"}', "'x{39}"),
    ],
    ids=["99", "none", "a list", "a truth", "a float", "a long text"],
)
def test_sidecars_of_other_formats_are_refused(text, found, tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(outputs(), place)
    sidecar_of(place).write_text(text)
    with pytest.raises(CertificateError, match=f"its format is {found}. Write both files anew"):
        read_csv(place)


def test_a_certificate_of_another_release_is_refused(tmp_path):
    for name in "ab":
        write_csv(outputs(), tmp_path / f"{name}.csv")
    sidecar_of(tmp_path / "a.csv").rename(sidecar_of(tmp_path / "b.csv"))
    with pytest.raises(CertificateError, match="certificate"):
        read_csv(tmp_path / "b.csv")


def test_files_that_are_missing_are_named(tmp_path):
    place = tmp_path / "zones.csv"
    with pytest.raises(FileNotFoundError, match=r"zones\.csv'"):
        read_csv(place)
    outputs().to_csv(place)
    with pytest.raises(CertificateError, match=r"Keep the two files that dpf\.write_csv makes"):
        read_csv(place)
    place.unlink()
    sidecar_of(place).write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"zones\.csv'"):
        read_csv(place)


@pytest.mark.parametrize("name", MIXED)
def test_keys_of_other_kinds_are_found_again(name, tmp_path):
    frame = released(pd.Index(MIXED[name], dtype=object, tupleize_cols=False))
    write_csv(frame, tmp_path / "zones.csv")
    back = read_csv(tmp_path / "zones.csv")
    assert dpf.verify(back, against=frame) == frame.dp.certificate
    assert list(back.index) == list(frame.index) or name == "complex numbers"


@pytest.mark.parametrize("keys", [[1, "1"], [True, "True"], ["a\0", "b"]], ids=str)
def test_keys_that_read_alike_are_refused_before_a_file_is_written(keys, tmp_path):
    with pytest.raises(CertificateError, match=r"Write Parquet or pickle"):
        write_csv(released(pd.Index(keys, dtype=object)), tmp_path / "zones.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("label", [("a", 1), pd.Timestamp("2020"), np.inf, np.nan], ids=str)
def test_labels_of_any_kind_are_found_again(label, tmp_path):
    private = pd.DataFrame({"x": [1.0]})
    private.columns = pd.Index([label], dtype=object, tupleize_cols=False)
    frame = dpf.release(private, dpf.sum([label], bounds=(0, 1)), epsilon=1)
    write_csv(frame, tmp_path / "zones.csv")
    assert dpf.verify(read_csv(tmp_path / "zones.csv")) == frame.dp.certificate


def test_texts_too_long_for_a_reader_are_refused_before_a_file_is_written(tmp_path):
    with pytest.raises(CertificateError, match="has no form in a CSV file"):
        write_csv(released(["x" * (csv.field_size_limit() + 1)]), tmp_path / "zones.csv")
    assert not list(tmp_path.iterdir())


def test_frames_that_were_changed_are_not_written(tmp_path):
    for frame in (outputs() + 1, pd.DataFrame({"n": [1]})):
        with pytest.raises(CertificateError):
            write_csv(frame, tmp_path / "zones.csv")
    assert not list(tmp_path.iterdir())


ODD_KEYS = ["=HYPERLINK(1)", "+1", "-1", "@x", "'=1", "''", "'", "a=b", "\ttab", "plain"]


@pytest.mark.parametrize("escape", [True, False])
def test_texts_that_spreadsheets_run_are_escaped_on_demand(tmp_path, escape):
    frame = pd.DataFrame({"=zone": ODD_KEYS, "n": [-1] * len(ODD_KEYS)})
    query = dpf.aggregate(
        by=["=zone", "n"], keys={"=zone": ODD_KEYS, "n": [-1, 2]}, **{"sum": dpf.count()}
    )
    released = dpf.release(frame, query, epsilon=1, privacy_unit=dpf.EACH_ROW)
    released.dp.write_csv(tmp_path / "a.csv", escape_formulas=escape)
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    shown = [header[0], *dict.fromkeys(row[0] for row in rows)]
    expected = ["=zone", *ODD_KEYS]
    runs = [text for text in expected if text.lstrip("'")[:1] in tuple("=+-@\t")]
    assert shown == [f"'{text}" if escape and text in runs else text for text in expected]
    assert {row[1] for row in rows} == {"-1", "2"}
    assert dpf.read_csv(tmp_path / "a.csv").equals(released)


def test_whether_texts_are_escaped_is_a_truth(tmp_path):
    released = dpf.release(
        pd.DataFrame({"z": ["A"]}), dpf.count("z", keys=["A"]), epsilon=1, privacy_unit=dpf.EACH_ROW
    )
    with raises(QueryError, "must be True or False", parameter="escape_formulas"):
        dpf.write_csv(released, tmp_path / "a.csv", escape_formulas="yes")
