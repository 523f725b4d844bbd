"""What travels with a published table: nothing that it does not show."""

import base64
import json
import re
import warnings
import zlib

import numpy as np
import pandas as pd
import pytest
from support.certifying import record_of, recorded

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

ZONES = [f"z{at:02}" for at in range(12)]


def trips():
    rng = np.random.default_rng(5)
    # no number of rows is near a power of ten: a mean would have the digits of its sum
    rows = np.repeat(ZONES, 41 * np.arange(1, 13) ** 2)
    frame = pd.DataFrame({"zone": rows, "fare": rng.uniform(0, 50, len(rows))})
    frame["late"] = frame["fare"] > 30
    return frame


@pytest.fixture(scope="module")
def released():
    query = dpf.aggregate(
        "zone",
        keys=ZONES,
        n=dpf.count(),
        total=dpf.sum("fare", bounds=(0, 50)),
        fare=dpf.mean("fare", bounds=(0, 50)),
        late=dpf.rate("late"),
        spread=dpf.var("fare", bounds=(0, 50)),
    )
    return dpf.release(trips(), query, epsilon=1, privacy_unit=dpf.EACH_ROW)


def numbers_in(found):
    """List all numbers of plain JSON, packed ones, too."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "float64":
                yield from np.frombuffer(base64.b64decode(value), "<f8")
            elif name == "zlib":
                plain = zlib.decompress(base64.b64decode(value))
                for dtype in ("<f8", "<i8"):
                    if len(plain) % 8 == 0:
                        yield from np.frombuffer(plain, dtype).astype(float)
            else:
                yield from numbers_in(value)
    elif isinstance(found, list):
        for value in found:
            yield from numbers_in(value)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield float(found)


def digits_of(cell):
    return re.sub(r"\D", "", f"{cell:.17g}")[:6]


def rounded(frame):
    return frame.dp.round({"n": -1, "total": -1, "fare": 1, "late": 2, "spread": 0})


TABLES = {
    "some rows": lambda r: r.sort_values("n").tail(5),
    "some cells": lambda r: r.dp.suppress(below=800, by="n"),
    "one column": lambda r: r[["fare"]].head(6),
    "rounded": rounded,
    "all": lambda r: rounded(r.dp.interval(join=True).dp.suppress(below=800, by="n")).tail(7),
    "wide": lambda r: r[["n", "late"]].head(7).T,
}


@pytest.mark.parametrize("name", TABLES)
def test_no_hidden_and_no_unrounded_cell_travels(released, name, tmp_path):
    table = TABLES[name](released)
    table.dp.write_csv(tmp_path / "t.csv")
    table.dp.write_parquet(tmp_path / "t.parquet")
    back = dpf.read_csv(tmp_path / "t.csv")
    dpf.verify(back, against=released)
    shown = {float(cell) for cell in back.to_numpy(float, na_value=np.nan).ravel()}
    cells = {float(cell) for cell in released.to_numpy(float).ravel()}
    hidden = {cell for cell in cells - shown if abs(cell) > 1e-3}
    records = [json.loads((tmp_path / "t.csv.certificate.json").read_text())]
    records.append(record_of(pd.read_parquet(tmp_path / "t.parquet")))
    for record in records:
        assert hidden.isdisjoint(numbers_in(record))
    texts = [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    alike = {digits_of(cell) for cell in shown}  # one of a hundred releases has such
    digits = {digits_of(cell) for cell in hidden if cell != round(cell)} - alike
    told = {one for text in texts for one in re.findall(r"\d+\.\d{3,}", text)}
    assert digits.isdisjoint(re.sub(r"\D", "", one)[:6] for one in told)


def test_a_planted_leak_is_found(released, tmp_path):
    table = released.head(5)
    table.to_parquet(tmp_path / "t.parquet")  # pandas writes the whole record
    record = record_of(pd.read_parquet(tmp_path / "t.parquet"))
    assert set(released["n"].iloc[5:].astype(float)) <= set(numbers_in(record))


def test_digests_of_hidden_cells_cannot_be_guessed(released):
    table = released[["n"]].head(11)
    public = table.dp.publish().dp.certificate.table
    assert public.salt is None and public.origin == released.dp.certificate.table.origin
    guessed = set()
    for _ in range(3):  # even the right guess of the hidden cell has another salt
        again = pd.DataFrame(released)
        again.attrs = {}
        recorded(again, released.dp.certificate.releases)
        guessed.add(again.dp.certificate.table.origin)
    assert len(guessed) == 3 and public.origin not in guessed


def test_what_is_whole_keeps_its_record(released):
    for table in (released, released.sort_values("n"), released.T):
        made = dpf.certify(table, of=released)
        assert made.dp.publish().dp.certificate == released.dp.certificate


def test_counts_keep_intervals_and_means_those_that_were_published(released, tmp_path):
    table = rounded(released.dp.interval(0.9, join=True))
    table.dp.write_csv(tmp_path / "t.csv")
    back = dpf.read_csv(tmp_path / "t.csv")
    whole, bars = released.dp.interval(), back[["n"]].dp.interval()
    assert (bars["n_low"] <= whole["n_low"]).all() and (bars["n_high"] >= whole["n_high"]).all()
    assert (whole["n_low"] - bars["n_low"]).max() <= 10 + 2 * 5
    assert back.dp.interval(0.9)["fare_low"].equals(table["fare_low"])
    with pytest.raises(QueryError, match="'fare' was read off, which a published table leaves out"):
        back[["fare"]].dp.interval(0.8)
    for call in ("percent", "denoise"):
        with pytest.raises(QueryError, match="needs"):
            getattr(back.dp, call)(**({"column": "n"} if call == "percent" else {}))


def test_an_interval_of_a_hidden_cell_is_not_written(released):
    full = released.dp.interval(join=True)
    hidden = full.assign(n=full["n"].where(full["n"] > 1_000))
    with pytest.raises(QueryError, match=r"'n' is hidden where 'n_low' tells it.*suppress"):
        hidden.dp.publish()
    with pytest.raises(QueryError, match=r"'n' is rounded, and 'n_low' tells .*\.dp\.round"):
        full.round({"n": -1}).dp.publish()
    percent = released[["n"]].dp.percent("n")
    assert percent.dp.round({"n": -1, "n_percent": 1}).dp.publish().shape == (len(ZONES), 4)
    with pytest.raises(QueryError, match="'n_percent' is rounded, and 'n_percent_low' tells"):
        percent.round({"n": -1, "n_percent": 1}).dp.publish()


def test_it_is_cut_and_published_again(released):
    once = released[["n"]].tail(6).dp.publish(note="the last six")
    twice = once.head(2).dp.round(to=30).dp.publish().dp.certificate.table.published
    assert twice.cells == {'"n"': (2, 12)} and twice.units['"n"'] > 0
    assert "the last six" in repr(once.dp.certificate)
    assert dpf.verify(once.head(2), against=released)


def test_only_its_own_release_is_compared(released):
    other = dpf.release(
        trips(),
        dpf.aggregate("zone", keys=ZONES, n=dpf.count()),
        epsilon=1,
        privacy_unit=dpf.EACH_ROW,
    )
    with pytest.raises(CertificateError, match="not made from that release"):
        dpf.verify(released, against=other)
    with pytest.raises(CertificateError, match="not made from that release"):
        dpf.verify(released, against=released.head(3).dp.publish())


def test_a_false_definition_is_found_by_the_release(released):
    full = released.dp.interval(join=True)
    table = full.dp.certificate.table
    false = pd.DataFrame(full).assign(n_low=full["n_low"] - 1)
    false.attrs = {}
    definitions = [column.definition for column in table.columns]
    recorded(false, full.dp.certificate.releases, definitions, table.salt)
    assert dpf.verify(false) and dpf.verify(full, against=released)
    with pytest.raises(CertificateError):
        dpf.verify(false, against=released)


def test_choices_by_value_are_written_down(released):
    top = released.dp.nlargest(3, "n")
    assert list(top.index) == ZONES[:-4:-1]
    (cut,) = top.dp.certificate.table.cuts
    assert (cut.call, cut.at) == ("nlargest", float(released["n"].nlargest(4).iloc[-1]))
    (public,) = top.dp.publish().dp.certificate.table.cuts
    assert public.at is None
    few = released[["n"]].round(-2).dp.nsmallest(2)
    assert list(few.index) == list(released["n"].nsmallest(2).index)
    few = top.dp.interval()
    level = 1 - 0.05 * 3 / 12
    shared = ["fare_low", "fare_high", "late_low", "late_high"]
    assert few[shared].equals(released.dp.interval(level).loc[few.index, shared])
    assert "Level 0.9875 for 3 of 12 cells" in repr(few)
    by_pandas = released.loc[few.index].dp.interval(chosen="keys")
    assert by_pandas.equals(released.dp.interval().loc[few.index])
    at_once = top.dp.interval(simultaneous=True)
    assert at_once.equals(released.dp.interval(simultaneous=True).loc[few.index])
    beside = top.dp.interval(join=True)
    assert beside["n_low"].equals(few["n_low"]) and dpf.verify(beside, against=released)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.dp.nlargest(-1, "n"), "n must be a whole number"),
        (lambda r: r.dp.nlargest(True, "n"), "n must be a whole number"),
        (lambda r: r.dp.nlargest(2), "column must be one of the columns"),
        (lambda r: r.dp.nlargest(2, "fee"), "column must be one of the columns"),
        (lambda r: r.T.dp.nlargest(2, "n"), "side by side"),
        (lambda r: r.dp.interval(chosen="size"), 'chosen must be "keys"'),
        (lambda r: r.dp.round(to=0), "to must be a unit above 0"),
        (lambda r: r.dp.round({"n": 0}, to=5), "to is in place of decimals"),
        (lambda r: r.dp.round({"late": -1}), "round all of 'late' to 0"),
    ],
)
def test_arguments_are_checked(released, call, message):
    with pytest.raises(QueryError, match=message):
        call(released)


def test_units_of_any_size_are_written_down(released):
    made = released[["n"]].dp.interval(join=True).dp.round(to=25)
    assert (made % 25 == 0).all(axis=None) and dpf.verify(made, against=released)
    assert (made["n_low"] <= made["n"]).all() and (made["n"] <= made["n_high"]).all()
    with pytest.raises(CertificateError, match="neither the released one"):
        dpf.verify(released.assign(n=(released["n"] / 25).round() * 25))


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"below": 29}, "up to \u00b130"),
        ({"below": 20, "by": "n"}, "up to \u00b130"),
        ({"below": 31}, None),
        ({"below": 20, "relative_error": 0.3}, None),
    ],
)
def test_limits_within_the_noise_hide_little(limits, said):
    for rows in (0, 500):  # public facts alone decide
        frame = pd.DataFrame({"zone": ["A"] * rows})
        query = dpf.aggregate("zone", n=dpf.count())
        facts = {"keys": {"zone": list("ABC")}, "privacy_unit": dpf.EACH_ROW}
        frame.dp.declare(**facts)
        released = frame.dp.release(query, epsilon=0.1)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            released.dp.suppress(**limits)
        assert [said in str(one.message) for one in seen] == ([] if said is None else [True])
