"""Units of several columns: every call answers as for one column that numbers the combinations."""

from html import unescape

import numpy as np
import pandas as pd
import pytest
from support.dasking import assert_same, exactly, split
from support.raising import raises

import dpframe as dpf
from dpframe.engines import scans
from dpframe.errors import DeclarationError

BUDGET = dpf.Budget(epsilon=1, delta=1e-6)
PAIR = ["aircraft", "week"]
ORIGINS = ["EWR", "JFK", "LGA"]
PUBLIC = {"keys": {"origin": ORIGINS, "week": range(8)}, "bounds": {"delay": (0, 100)}}


def flights():
    """Two thousand flights; texts and weeks that glue to one text are not one unit."""
    rng = np.random.default_rng(4)
    size = 2000
    tails = np.array(["N1", "N11", "N1 1", "N2", "n1", ""], object)
    frame = pd.DataFrame(
        {
            "aircraft": pd.Series(rng.choice(tails, size)).where(rng.random(size) < 0.9),
            "week": pd.array(rng.integers(0, 12, size), "Int64"),
            "origin": rng.choice([*ORIGINS, "BOS"], size, p=[0.5, 0.3, 0.1, 0.1]),
            "delay": rng.exponential(30, size).round(),
        }
    )
    frame.loc[::13, "week"] = pd.NA
    pairs = list(zip(frame["aircraft"], frame["week"], strict=True))
    known = {}
    frame["number"] = [
        None if pd.isna(one) or pd.isna(week) else known.setdefault((one, week), len(known))
        for one, week in pairs
    ]
    return frame


def in_files(frame, folder):
    for at, half in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[half].to_parquet(folder / f"{at}.parquet")
    return dpf.scan_parquet(folder, batch_rows=300)


@pytest.fixture(params=["pandas", "parquet", "spilled", "dask"])
def made(request, tmp_path, monkeypatch):
    """Make frames of one kind, declared with some privacy unit."""
    if request.param == "spilled":
        monkeypatch.setattr(scans, "_BUCKET_ROWS", 200)

    def make(unit, **facts):
        frame = flights()
        if request.param == "dask":
            frame = split(frame, 5)
        elif request.param != "pandas":
            frame = in_files(frame, tmp_path)
        frame.dp.declare(**PUBLIC, privacy_unit=unit, **{"max_rows": 500} | facts)
        return frame

    return make


CALLS = {
    "count": lambda f: f.dp.count("origin", epsilon=1),
    "capped": lambda f: f.dp.count(max_rows=3, epsilon=1),
    "by a part": lambda f: f.dp.sum("delay", "week", where="week > 2", epsilon=1),
    "mean": lambda f: f.dp.mean("delay", "origin", epsilon=1),
    "units": lambda f: f.dp.units(["origin", "week"], epsilon=1),
    "discover": lambda f: f.dp.discover("origin", max_groups=4, epsilon=5, delta=1e-6),
    "select": lambda f: f.dp.quantile("delay", 0.5, mechanism="select", epsilon=10**7),
    "suggest caps": lambda f: f.dp.suggest_caps("origin", largest=200, epsilon=1),
    "suggest bounds": lambda f: f.dp.suggest_bounds("delay", largest=200, epsilon=1),
    "diagnose": lambda f: f.dp.diagnose(dpf.count("origin"), groups=True),
}


@pytest.mark.sampled(every=7, full=3)
@pytest.mark.parametrize("name", CALLS)
def test_every_call_answers_as_for_numbers_of_the_combinations(made, name):
    found, expected = (exactly(CALLS[name], made(unit)) for unit in (PAIR, "number"))
    assert_same(pd.DataFrame(found), pd.DataFrame(expected))
    assert len(found) > 0


def test_certificate_and_ledger_say_one_aircraft_in_one_week():
    frame = flights()
    frame.dp.declare(**PUBLIC, privacy_unit=PAIR, max_rows=2, budget=BUDGET)
    preview = frame.dp.plan(dpf.count("origin"), epsilon=0.1).table
    assert len(preview) == 1
    released = frame.dp.count("origin", epsilon=0.1)
    certificate = dpf.verify(released)
    assert certificate.privacy_unit.columns == ("aircraft", "week")
    said = "all rows of one 'aircraft' in one 'week'"
    for shown in (str(certificate), repr(frame.dp.declaration)):
        assert f"{said}, max_rows=2, a person in k such units is protected as k units" in shown
    assert said in unescape(certificate._repr_html_())
    assert frame.dp.ledger.protected.unit == "aircraft in one week"
    assert frame.dp.ledger.entries[0].unit == "aircraft in one week"


def test_the_order_of_the_columns_is_part_of_the_name():
    ledger = dpf.Ledger(budget=BUDGET)
    flights().dp.declare(privacy_unit=PAIR, max_rows=2, ledger=ledger)
    with raises(DeclarationError, "week in one aircraft", parameter="privacy_unit"):
        flights().dp.declare(privacy_unit=PAIR[::-1], max_rows=2, ledger=ledger)
    flights().dp.declare(
        privacy_unit=PAIR[::-1], max_rows=2, ledger=ledger, unit="aircraft in one week"
    )


def test_a_diagnosis_names_the_columns_of_rows_without_a_unit():
    frame = flights()
    frame.dp.declare(**PUBLIC, privacy_unit=PAIR, max_rows=3)
    found = frame.dp.diagnose(dpf.count())
    without = frame["aircraft"].isna() | frame["week"].isna()
    row = found.loc[("rows", "no unit (aircraft, week)")]
    assert row["rows"] == without.sum() > 0
    assert row["units_left"] == frame["number"].nunique()


def test_each_row_is_refused_beside_a_list():
    frame = flights()
    frame.dp.declare(privacy_unit=PAIR, max_rows=2)
    with raises(DeclarationError, "privacy_unit=['aircraft', 'week']", parameter="privacy_unit"):
        frame.dp.count(epsilon=1, privacy_unit=dpf.EACH_ROW)
