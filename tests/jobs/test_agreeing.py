"""Queries that can match no row, by what is public, are refused before anything is spent."""

import pytest
from support.planning import TRIPS, planned

import dpframe as dpf
from dpframe.errors import PlanFileError
from dpframe.jobs.commands import main
from dpframe.jobs.plan_file import Overrides, read_plan
from dpframe.jobs.running import preview_job, release_job
from dpframe.jobs.terminal import SOUND

MARCH = Overrides({"month": "2024-03"})
BY = 'by = "zone"'
KEYS = 'keys.zone = ["A", "B", "C"]'
TYPES = '"trips-{month}.csv"\n'

WRONG = {
    "bounds and a text": (
        (BY, f"{BY}\nwhere = \"fare == 'high'\""),
        "'fare' is declared",
        "'high'",
    ),
    "bounds and texts": (
        (BY, f"{BY}\nwhere = \"fare in ['a', 'b']\""),
        "'fare' is",
        "the text 'b'",
    ),
    "keys and a number": ((BY, f'{BY}\nwhere = "not zone == 3"'), "'zone' has texts", "number 3"),
    "keys and a sum": (
        ('columns = "fare"', 'columns = "zone", bounds = [0, 1]'),
        "'zone' has texts",
        "mean",
    ),
    "keys and bins": (
        ('column = "fare"', 'column = "zone"'),
        "'zone' has texts",
        "bins are of numbers",
    ),
    "types and keys": ((TYPES, f'{TYPES}types.zone = "int64"\n'), "'zone' holds numbers", "texts"),
    "types and bounds": (
        (TYPES, f'{TYPES}types.fare = "string"\n'),
        "'fare' holds texts",
        "numbers",
    ),
    "keys of a query": ((BY, f"{BY}\nkeys.zone = [1, 2]"), "'zone' has texts", "keys in the query"),
    "arithmetic": ((BY, f'{BY}\nwhere = "zone + 1 > 2"'), "'zone' has texts", "computes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_matches_no_row_is_refused(tmp_path, what):
    change, known, asked = WRONG[what]
    job = read_plan(planned(tmp_path, change), MARCH)
    with pytest.raises(PlanFileError, match=r"^line \d+, .*no row can match") as said:
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
    with pytest.raises(PlanFileError, match=r"'zone' holds numbers \(int64\), but has texts"):
        preview_job(read_plan(plan, MARCH))


@pytest.mark.parametrize(
    "where",
    [
        "zone in ['A', 3] and fare > 3",
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
