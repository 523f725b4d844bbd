"""Plans of what is released on its own: groups that are found, and quantiles that are selected."""

import pandas as pd
import pytest
from support.planning import QUERIES, TRIPS, planned
from support.terminal import DONE_BEFORE, SOUND, TOO_MUCH, UNREADABLE, main

import dpframe as dpf

MARCH = ("--set", "month=2024-03")
FOUND = """\
[queries.zones]
kind = "discover"
by = "zone"
max_groups = 2
where = "fare > 5"
"""
SELECTED = """\
[queries.fares]
kind = "quantile"
column = "fare"
q = [0.25, 0.5]
bins = 32
"""
BUDGET = "budget = { epsilon = 2, delta = 1e-6, discovery = 1e-7 }\n"


def plan_of(folder, query, amount):
    budget = dpf.Budget(epsilon=2, delta=1e-6, discovery=1e-7)
    dpf.Ledger.create(folder / "labels.ledger", budget=budget)
    changes = ('share = "1/12"', amount), ("trips.ledger", "labels.ledger")
    return planned(folder, (QUERIES, query), *changes)


@pytest.mark.parametrize(
    ("query", "amount", "columns"),
    [
        (FOUND, "epsilon = 1\ndelta = 1e-6", ["units"]),
        (f"{FOUND}counts = false\n", "epsilon = 1\ndelta = 1e-6", []),
        (SELECTED, 'epsilon = 1\nmechanism = "select"', ["fare"]),
    ],
)
def test_what_is_released_on_its_own_is_a_job(tmp_path, capsys, query, amount, columns):
    plan = plan_of(tmp_path, query, amount)
    for more in ((), ("--without-data",)):
        assert main(["preview", str(plan), *MARCH, *more]) == SOUND
    rehearsed = ["rehearse", str(plan), *MARCH, "--output", str(tmp_path / "rehearsed")]
    plan.write_text(plan.read_text() + BUDGET)
    assert main(rehearsed) == SOUND
    assert main(["release", str(plan), *MARCH]) == SOUND, capsys.readouterr().err
    assert main(["release", str(plan), *MARCH]) == DONE_BEFORE
    name = "zones" if "discover" in query else "fares"
    frame = dpf.read_csv(tmp_path / f"{name}-2024-03.csv")
    assert list(frame.columns) == columns
    ledger = dpf.Ledger(tmp_path / "labels.ledger")
    assert dpf.verify(frame, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("counts", ["true", "false"])
def test_dates_that_are_found_are_read_from_a_csv_file(tmp_path, capsys, counts):
    query = f'{FOUND}counts = {counts}\ndtype = "date"\n'
    plan = plan_of(tmp_path, query, "epsilon = 1\ndelta = 1e-6")
    plan.write_text(plan.read_text().replace('keys.zone = ["A", "B", "C"]\n', ""))
    for command in ("preview", "release"):
        assert main([command, str(plan), *MARCH]) == SOUND, capsys.readouterr().err
    found = dpf.read_csv(tmp_path / "zones-2024-03.csv")
    assert dpf.verify(found, ledger=dpf.Ledger(tmp_path / "labels.ledger"))


@pytest.mark.parametrize(
    ("asked", "way"),
    [
        ('by = "day"\ndtype = "date"', 'dtype="datetime"'),
        (
            'by = ["day", "fare"]\ndtype = { day = "datetime", fare = "string" }',
            "dtype.fare: 'fare' holds",
        ),
        ('by = "fare"', 'dtype="int64"'),
        ('by = "fare"\ndtype = "bool"', ""),  # 1.0 is True
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_labels_that_no_cell_can_be_are_refused_before_the_charge(
    tmp_path, capsys, form, asked, way
):
    types = 'csv"\ntypes = { day = "datetime", fare = "float64" }\n\n[decl'
    changes = ('csv"\n\n[decl', types if form == "csv" else 'parquet"\n\n[decl')
    query = FOUND.replace('by = "zone"', asked)
    plan = plan_of(tmp_path, query, "epsilon = 1\ndelta = 1e-6")
    plan.write_text(plan.read_text().replace(*changes))
    trips = TRIPS.assign(day=pd.Timestamp("2024-03-01"))
    getattr(trips, f"to_{form}")(tmp_path / f"trips-2024-03.{form}", index=False)
    assert main(["release", str(plan), *MARCH]) == (UNREADABLE if way else SOUND)
    err = capsys.readouterr().err
    assert way in err and ("no row can match" in err) == bool(way)
    assert len(dpf.Ledger(tmp_path / "labels.ledger").entries) == (not way)


def test_groups_are_found_in_a_plan_of_their_own(tmp_path, capsys):
    plan = planned(tmp_path, (QUERIES, QUERIES + FOUND))
    assert main(["preview", str(plan), *MARCH]) == UNREADABLE
    assert "queries.zones.kind: is charged and released on its own" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('by = "zone"\nmax', 'bye = "zone"\nmax'), "Did you mean 'by'?"),
        (('by = "zone"\n', ""), "by is missing"),
        (("max_groups = 2", 'dtype = "texts"'), "dtype must be one of"),
        (("max_groups = 2", "max_groups = 2\ndiscovery = 2"), "discovery must be"),
        (("max_groups = 2", 'mechanism = "laplace"'), "Put it into [release]"),
    ],
)
def test_what_is_wrong_with_a_search_is_told_with_its_line(tmp_path, capsys, change, words):
    plan = plan_of(tmp_path, FOUND.replace(*change), "epsilon = 1\ndelta = 1e-6")
    assert main(["preview", str(plan), *MARCH]) == UNREADABLE
    err = capsys.readouterr().err
    assert words in err and "queries.zones" in err


def test_a_column_is_searched_that_is_called_like_an_output(tmp_path):
    query = FOUND.replace('by = "zone"', 'by = "count"\ncounts = false')
    plan = plan_of(tmp_path, query, "epsilon = 1\ndelta = 1e-6")
    TRIPS.assign(count="A").to_csv(tmp_path / "trips-2024-03.csv", index=False)
    assert main(["preview", str(plan), *MARCH]) == SOUND


def test_a_search_that_does_not_fit_is_refused(tmp_path, capsys):
    plan = plan_of(tmp_path, FOUND, "epsilon = 3\ndelta = 1e-6")
    for command in ("preview", "release"):
        assert main([command, str(plan), *MARCH]) == TOO_MUCH
