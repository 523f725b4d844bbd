"""Plans that can match no row, by what is public, are refused before anything is spent."""

from datetime import date
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.planning import TRIPS, Overrides, planned, preview_job, read_plan, release_job
from support.raising import raises
from support.terminal import SOUND, main

import dpframe as dpf
from dpframe.errors import PlanFileError, QueryError
from dpframe.privacy.law import Law

MARCH = Overrides({"month": "2024-03"})
BY = 'by = "zone"'
KEYS_OF_ZONES = 'keys.zone = ["A", "B", "C"]'
TYPES = '"trips-{month}.csv"\n'

WRONG = {
    "bounds and a text": (
        (BY, f"{BY}\nwhere = \"fare == 'high'\""),
        "'fare' holds numbers",
        "'high'",
    ),
    "bounds and texts": (
        (BY, f"{BY}\nwhere = \"fare in ['a', 'b']\""),
        "'fare' holds numbers",
        "the text 'a'",
    ),
    "keys and a number": ((BY, f'{BY}\nwhere = "not zone == 3"'), "'zone' holds texts", "number 3"),
    "keys and a sum": (
        ('columns = "fare"', 'columns = "zone", bounds = [0, 1]'),
        "'zone' holds texts",
        "mean",
    ),
    "keys and bins": (
        ('column = "fare"', 'column = "zone"'),
        "'zone' holds texts",
        "bins are numbers",
    ),
    "types and keys": ((TYPES, f'{TYPES}types.zone = "int64"\n'), "'zone' holds numbers", "texts"),
    "types and bounds": (
        (TYPES, f'{TYPES}types.fare = "string"\n'),
        "'fare' holds texts",
        "numbers",
    ),
    "keys of a query": (
        (BY, f"{BY}\nkeys.zone = [1, 2]"),
        "'zone' holds texts",
        "its keys are numbers",
    ),
    "arithmetic": ((BY, f'{BY}\nwhere = "zone + 1 > 2"'), "'zone' holds texts", "computes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_matches_no_row_is_refused(tmp_path, what):
    change, known, asked = WRONG[what]
    job = read_plan(planned(tmp_path, change), MARCH)
    with raises(PlanFileError, "Nothing was charged") as said:
        release_job(job)
    assert known in str(said.value)
    assert asked in str(said.value)
    assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_types_of_files_are_looked_at(tmp_path, capsys, form):
    plan = planned(tmp_path, ('{month}.csv"\n\n[decl', f'{{month}}.{form}"\n\n[decl'))
    place = tmp_path / f"trips-2024-03.{form}"
    write = getattr(TRIPS.__class__, f"to_{form}")
    write(TRIPS.astype({"zone": "category"}), place)
    assert main(["preview", str(plan), "--set", "month=2024-03"]) == SOUND
    assert "driver (int64), fare (float64), zone (" in capsys.readouterr().out
    write(TRIPS.assign(zone=1), place)
    with raises(PlanFileError, "'zone' holds numbers", parameter="declare.keys.zone"):
        preview_job(read_plan(plan, MARCH))


@pytest.mark.parametrize(
    "where",
    [
        "zone in ['A', '3'] and fare > 3",
        "zone != 'A' or fare == True",
        "-fare < 0 and fare == fare",
        "day >= '2024-03-01' and tip != 'none'",
    ],
)
def test_what_may_match_is_not_refused(tmp_path, where):
    types = 'types = { day = "date", tip = "string" }'
    plan = planned(tmp_path, (BY, f'{BY}\nwhere = "{where}"'), (TYPES, f"{TYPES}{types}\n"))
    TRIPS.assign(day="2024-03-01", tip="x").to_csv(tmp_path / "trips-2024-03.csv", index=False)
    assert preview_job(read_plan(plan, MARCH)).fits


UNIT = 'privacy_unit = "driver"', 'privacy_unit = ["driver", "week"]'


@pytest.mark.parametrize("by", ["", "\nkeys.week = { range = [0, 2] }"])
def test_parts_of_a_unit_are_read_as_their_keys_are_and_as_texts_without(tmp_path, by):
    declared = (KEYS_OF_ZONES, f"{KEYS_OF_ZONES}{by}")
    query = (BY, 'by = "week"') if by else (BY, BY)
    plan = planned(tmp_path, UNIT, declared, query, ("max_rows = 3", "max_rows = 99"))
    trips = TRIPS.assign(week=pd.array([0, 0, 1, 1, None] * 20, "Int64"))
    trips.to_csv(tmp_path / "trips-2024-03.csv", index=False)
    with mock.patch.object(
        Law, "draw", lambda law, scales, n, *_: [np.zeros(n, np.int64)] * len(scales)
    ):
        release_job(read_plan(plan, MARCH))
    found = pd.read_csv(tmp_path / "by_zone-2024-03.csv")
    assert found["trips"].tolist() == ([40, 40] if by else [40, 20, 20])
    entry = dpf.Ledger(tmp_path / "trips.ledger").entries[0]
    assert entry.unit == "driver in one week"
    assert set(entry.columns) >= {"driver", "week"}


DAY, CLOCK, ZONED = "1997-01-01", "1997-01-01T00:00:00", "1997-01-01T00:00:00Z"
POINTS = {
    "date": (pd.Series([date(1997, 1, 1)] * 100, dtype=object), "dates (date32[day])"),
    "datetime": (pd.Series(pd.to_datetime([DAY] * 100)), "times (timestamp["),
    "datetime-utc": (
        pd.Series(pd.to_datetime([DAY] * 100).tz_localize("UTC")),
        "times with an offset (timestamp[",
    ),
}
KEYS = {"date": DAY, "datetime": CLOCK, "datetime-utc": ZONED}


def of_points(folder, stored, *changes):
    """Plan a release from a Parquet file in which zones are points in time."""
    files = ("{query}-{month}.csv", "{query}-{month}.parquet")
    plan = planned(folder, ('{month}.csv"\n\n[decl', '{month}.parquet"\n\n[decl'), files, *changes)
    TRIPS.assign(zone=POINTS[stored][0]).to_parquet(folder / "trips-2024-03.parquet")
    return plan


@pytest.mark.parametrize("stored", POINTS)
@pytest.mark.parametrize("key", [*KEYS.values(), f'"{DAY}"'])
def test_keys_of_another_kind_of_times_are_refused(tmp_path, stored, key):
    plan = of_points(tmp_path, stored, (KEYS_OF_ZONES, f"keys.zone = [{key}]"))
    job = read_plan(plan, MARCH)
    if key == KEYS[stored]:
        assert preview_job(job).fits
        return
    with pytest.raises(PlanFileError) as said:
        release_job(job)
    text = str(said.value)
    assert text.startswith(f"line 7, declare.keys.zone: 'zone' holds {POINTS[stored][1]}")
    assert f"in a plan {KEYS[stored].replace('1997-01-01', '2026-01-31')})" in text
    assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()


@pytest.mark.parametrize(("kind", "key"), [("date", CLOCK), ("datetime", DAY)])
def test_types_of_csv_files_and_keys_are_both_dates_or_both_times(tmp_path, kind, key):
    changes = ((TYPES, f'{TYPES}types.zone = "{kind}"\n'), (KEYS_OF_ZONES, f"keys.zone = [{key}]"))
    with pytest.raises(PlanFileError, match=r"declare.keys.zone: .* \(in a plan "):
        preview_job(read_plan(planned(tmp_path, *changes), MARCH))


@pytest.mark.parametrize("stored", POINTS)
@pytest.mark.parametrize("edge", KEYS)
def test_bins_of_dates_hold_times_without_offset(tmp_path, stored, edge):
    edges = ", ".join([KEYS[edge], KEYS[edge].replace("1997", "1998")])
    asked = ('column = "fare"\nbins = { from = 0, to = 100, bins = 10 }', 'column = "zone"')
    plan = of_points(tmp_path, stored, (KEYS_OF_ZONES, ""), ('by = "zone"\n', ""), asked)
    plan.write_text(
        plan.read_text().replace('column = "zone"', f'column = "zone"\nbins = [{edges}]')
    )
    job = read_plan(plan, MARCH)
    if stored == edge == "datetime-utc" and pd.__version__.startswith("2."):
        with pytest.raises(
            PlanFileError, match=r"does not read .* as it is. Let files end in .csv"
        ):
            preview_job(job)  # pandas 2 reads such bins in another way than it wrote them
        return
    if (stored == "datetime-utc") == (edge == "datetime-utc"):
        assert preview_job(job).fits
        return
    with raises(PlanFileError, "no row can match", parameter="queries.fares.bins"):
        preview_job(job)


@pytest.mark.parametrize("stored", POINTS)
@pytest.mark.parametrize("text", [DAY, CLOCK, ZONED, "1997-1-1"])
def test_texts_in_conditions_are_compared_with_times_as_they_are(tmp_path, stored, text):
    where = ('by = "zone"', f"where = \"zone == '{text}'\"")
    plan = of_points(tmp_path, stored, (KEYS_OF_ZONES, ""), where)
    job = read_plan(plan, MARCH)
    if text in {DAY, CLOCK} or (text, stored) == (ZONED, "datetime-utc"):
        assert preview_job(job).fits
        return
    with raises(PlanFileError, "line 12, ", parameter="queries.by_zone.where"):
        preview_job(job)


@pytest.mark.parametrize(
    ("condition", "constant"),
    [
        ("zone == 3", "the number 3"),
        ("fare > 0 and (not zone in ['A', 2])", "the number 2"),
        ("code == 'A'", "the text 'A'"),
    ],
)
def test_conditions_that_no_declared_key_can_meet_are_refused_before_a_charge(
    condition: str, constant: str
) -> None:
    frame = pd.DataFrame({"zone": ["A", "B"], "code": [1, 2], "fare": [1.0, 2.0]})
    keys = {"zone": ["A", "B"], "code": [1, 2]}
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1))
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, keys=keys, ledger=ledger)
    for query in (dpf.count(where=condition), {"a": dpf.count(), "b": dpf.count(where=condition)}):
        with pytest.raises(
            QueryError, match=f"{constant}: it is the same for every value"
        ) as caught:
            dpf.release(frame, query, share=0.5)
        assert caught.value.parameter == "where"
    assert not ledger.entries


def test_conditions_that_some_declared_key_can_meet_are_not_refused() -> None:
    frame = pd.DataFrame({"zone": ["A", 1], "flag": [True, False], "fare": [1.0, 2.0]})
    keys = {"zone": ["A", 1], "flag": [True, False]}
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, keys=keys)
    for condition in ("zone == 1", "zone == 'A'", "flag == 1", "fare == 'A'"):
        assert frame.dp.plan(dpf.count(where=condition), epsilon=1).table is not None
