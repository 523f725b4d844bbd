"""A plan is rehearsed on made-up rows: into one folder, marked as a test, at no cost."""

import os
import sys

import pandas as pd
import pytest
from support.planning import planned
from support.terminal import ALTERED, SOUND, TOO_MUCH, UNREADABLE, main

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.errors import CertificateError
from dpframe.jobs.stopping import Stage, stoppable
from dpframe.testing.rehearsal import MOST_ROWS

MARCH = ("--set", "month=2024-03")
WITH_BUDGET = ("[ledger]", "[ledger]\nbudget = { epsilon = 2, delta = 1e-6 }")
TABLES = ["TEST-by_zone-2024-03.csv", "TEST-fares-2024-03.csv"]


def rehearse(plan, *more, folder="tried"):
    return main(["rehearse", str(plan), "--output", str(plan.parent / folder), *MARCH, *more])


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "tried" not in path.parts
    }


def test_a_plan_runs_where_neither_data_nor_ledger_are(tmp_path, capsys):
    plan = planned(tmp_path, WITH_BUDGET)
    (tmp_path / "trips-2024-03.csv").unlink()
    (tmp_path / "trips.ledger").unlink()
    assert rehearse(plan) == SOUND
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("TEST ")
    made = tmp_path / "tried"
    for name in (*TABLES, "TEST-report.html"):
        assert (made / name).is_file()
        assert f"{made / name}: written" in out
    assert list(contents(tmp_path)) == [plan.relative_to(tmp_path)]


def test_all_that_is_written_is_a_test(plan, capsys):
    assert rehearse(plan, "--quiet") == SOUND
    made = plan.parent / "tried"
    with pytest.raises(CertificateError, match="testing block"):
        dpf.read_csv(made / TABLES[0])
    assert main(["verify", str(made / TABLES[0])]) == ALTERED
    assert "testing block" in capsys.readouterr().err
    with dpt.record(folder=made):
        released = dpf.read_csv(made / TABLES[0])
        assert released.dp.certificate.releases[0].testing
        assert released["trips"].sum() > 200
    assert "TEST" in (made / "TEST-report.html").read_text("utf-8")


def test_data_ledger_and_files_of_the_plan_stay_as_they_are(plan):
    assert main(["release", str(plan), *MARCH]) == SOUND
    before = contents(plan.parent)
    assert rehearse(plan) == SOUND  # although its name is taken, and a part is spent
    assert contents(plan.parent) == before
    assert len(dpf.Ledger(plan.parent / "trips.ledger").entries) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files here")
def test_data_are_not_opened(plan):
    data = plan.parent / "trips-2024-03.csv"
    data.unlink()
    os.mkfifo(data)  # to open it would wait forever
    assert rehearse(plan, "--quiet") == SOUND


def test_the_seed_decides_on_rows_and_noise(plan):
    tables = {}
    for folder, *more in (("tried", "--seed=3"), ("tried2", "--seed=3"), ("tried3", "--seed=4")):
        assert rehearse(plan, *more, folder=folder) == SOUND
        tables[folder] = [(plan.parent / folder / name).read_bytes() for name in TABLES]
    assert tables["tried"] == tables["tried2"]
    assert all(
        one != other for one, other in zip(*map(tables.get, ("tried", "tried3")), strict=True)
    )


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("nasty", [(), ("--nasty",)])
def test_rows_are_read_as_the_data_of_the_plan_are(ending, nasty, tmp_path):
    more = [
        ('path = "trips-{month}.csv"', f'path = "trips-{{month}}.{ending}"'),
        (
            "outputs.trips",
            "where = \"paid == 'yes' and 2 < miles and day < '2024-03-01'\"\noutputs.trips",
        ),
    ]
    if ending == "csv":
        more.append(("[declare]", 'types.day = "datetime"\n[declare]'))
    plan = planned(tmp_path, *more)
    assert rehearse(plan, *nasty) == SOUND
    with dpt.record(folder=tmp_path / "tried"):
        trips = dpf.read_csv(tmp_path / "tried" / TABLES[0])["trips"]
    assert trips.sum() > 0  # conditions hold of some rows


def test_made_up_rows_are_written_as_the_plan_says_that_files_are(tmp_path):
    written = """"trips-{month}.csv"
separator = ";"
decimal = ","
true = "yes"
false = "no"
dates = "%d.%m.%Y"
types = { paid = "bool", day = "date", hour = "datetime" }"""
    days = "bounds.day = [2024-01-01, 2024-02-01]"
    days += "\nbounds.hour = [2024-01-01T00:00:00, 2024-02-01T00:00:00]"
    rows = "paid and day >= '2024-01-01' and hour >= '2024-01-01' and fare > 0.5"
    plan = planned(
        tmp_path,
        ('"trips-{month}.csv"', written),
        ("bounds.fare", f"{days}\nbounds.fare"),
        ('kind = "histogram"', f'kind = "histogram"\nwhere = "{rows}"'),
        WITH_BUDGET,
        ('share = "1/12"', "share = 1"),
    )
    assert rehearse(plan, "--rows", "100000") == SOUND
    table = pd.read_csv(tmp_path / "tried" / TABLES[1])
    assert table["count"].sum() > 10_000


def test_queries_say_what_is_declared_nowhere(tmp_path):
    plan = planned(
        tmp_path,
        ('keys.zone = ["A", "B", "C"]\nbounds.fare = [0, 100]\n', ""),
        ('by = "zone"', 'by = "zone"\nkeys = ["A", "B"]'),
        ('columns = "fare"', 'columns = "fare", bounds = [0, 100]'),
        ("share", "epsilon = 1e6\n#"),
        ("[ledger]", "[ledger]\nbudget = { epsilon = 1e7, delta = 1e-6 }"),
        ("bins = 10", "bins = 2"),
    )
    (tmp_path / "trips.ledger").unlink()
    assert rehearse(plan, "--rows", "500") == SOUND
    with dpt.record(folder=tmp_path / "tried"):
        by_zone, fares = (dpf.read_csv(tmp_path / "tried" / name) for name in TABLES)
    assert 350 < by_zone["trips"].sum() <= 500  # all but what is beyond the caps
    assert fares["count"].min() > 100


def test_files_that_are_called_alike_are_numbered(tmp_path):
    places = ("files = ", 'files = ["a/{query}-{month}.csv", "b/{query}-{month}.csv"] # ')
    plan = planned(tmp_path, places)
    assert rehearse(plan) == SOUND
    made = {path.name for path in (tmp_path / "tried").glob("*.csv")}
    assert made == {
        f"TEST-{number}-{query}-2024-03.csv"
        for number, query in ((1, "by_zone"), (2, "by_zone"), (3, "fares"), (4, "fares"))
    }


def test_numbers_make_no_names_alike(tmp_path):
    places = ("files = ", 'files = ["x/a-{query}.csv", "y/a-{query}.csv", "x/1-a-{query}.csv"] # ')
    assert rehearse(planned(tmp_path, places)) == SOUND
    made = {path.name for path in (tmp_path / "tried").glob("*.csv")}
    assert len(made) == 6
    assert {"TEST-1-a-by_zone.csv", "TEST-3-1-a-by_zone.csv"} <= made


def test_another_name_of_the_page_keeps_what_it_has(plan):
    other = plan.parent / "own.html"
    other.write_text("mine")
    (plan.parent / "tried").mkdir()
    os.link(other, plan.parent / "tried" / "TEST-report.html")
    assert rehearse(plan, "--overwrite") == SOUND
    assert other.read_text() == "mine"


def test_a_rehearsal_inside_of_a_block_leaves_no_folder(plan):
    with dpt.record(), pytest.raises(dpt.PrivacyTestError, match="inside of another"):
        rehearse(plan)
    assert not (plan.parent / "tried").exists()


def test_files_that_are_there_are_replaced_only_if_told(plan, capsys):
    assert rehearse(plan) == SOUND
    before = (plan.parent / "tried" / TABLES[0]).read_bytes()
    capsys.readouterr()
    assert rehearse(plan, "--seed=2") == UNREADABLE
    assert "--overwrite" in capsys.readouterr().err
    assert (plan.parent / "tried" / TABLES[0]).read_bytes() == before
    assert rehearse(plan, "--seed=2", "--overwrite") == SOUND
    assert (plan.parent / "tried" / TABLES[0]).read_bytes() != before


@pytest.mark.parametrize("name", ["TEST-report.html", *TABLES])
def test_links_in_the_folder_are_not_followed(name, plan, capsys):
    (plan.parent / "tried").mkdir()
    (plan.parent / "tried" / name).symlink_to(plan.parent / "real")
    assert rehearse(plan, "--overwrite") == UNREADABLE
    assert "is a link" in capsys.readouterr().err
    assert not (plan.parent / "real").exists()


@pytest.mark.parametrize("folder", [".", "..", "linked", "file", "trips-2024-03.csv"])
def test_folders_of_the_plan_are_refused(folder, tmp_path, capsys):
    (tmp_path / "plans").mkdir()
    plan = planned(tmp_path / "plans")
    (plan.parent / "linked").symlink_to(plan.parent)
    (plan.parent / "file").touch()
    before = contents(tmp_path)
    assert rehearse(plan, folder=folder) == UNREADABLE
    assert "--output" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_a_folder_of_data_is_refused(tmp_path, capsys):
    plan = planned(tmp_path, ("trips-{month}.csv", "trips-{month}"))
    (tmp_path / "trips-2024-03").mkdir()
    assert rehearse(plan, folder="trips-2024-03/tried") == UNREADABLE
    assert "in the data" in capsys.readouterr().err


def test_more_than_the_whole_budget_does_not_fit(plan, capsys):
    plan.write_text(plan.read_text().replace('share = "1/12"', "epsilon = 3\ndelta = 0"))
    assert rehearse(plan) == TOO_MUCH
    assert "does not fit" in capsys.readouterr().err
    assert not list((plan.parent / "tried").iterdir())


@pytest.mark.parametrize(
    ("changes", "more", "words"),
    [
        ([('by = "zone"', 'by = "zonee"')], (), "zonee"),
        ([("max_rows = 3", "max_rows = 0")], (), "max_rows"),
        ([("[declare]", "[declare]\nschema = 'missing.yaml'")], (), "schema"),
        ([("{query}-{month}.csv", "{query}-{month}.txt")], (), ".txt"),
        ([], ("--rows", "-1"), "rows"),
        ([], ("--rows", str(MOST_ROWS + 1)), "rows"),
        ([], ("--seed", "-1"), "seed"),
    ],
)
def test_what_is_wrong_is_said(changes, more, words, tmp_path, capsys):
    plan = planned(tmp_path, *changes)
    assert rehearse(plan, *more) == UNREADABLE
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_a_plan_without_any_budget_cannot_be_rehearsed(plan, capsys):
    (plan.parent / "trips.ledger").unlink()
    assert rehearse(plan) == UNREADABLE
    assert "budget" in capsys.readouterr().err


def test_a_report_is_left_out_where_its_package_is_missing(plan, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert rehearse(plan) == SOUND
    err = capsys.readouterr().err
    assert err.startswith(f"{plan}: warning: ")
    assert "[report]" in err
    assert {path.name for path in (plan.parent / "tried").glob("*.csv")} == set(TABLES)


def test_files_that_cannot_be_written_are_named(plan, capsys, monkeypatch):
    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("dpframe.jobs.output_files.os.replace", fail)
    assert rehearse(plan) == UNREADABLE
    assert "the disk is full" in capsys.readouterr().err
    made = [path for path in (plan.parent / "tried").rglob("*") if path.is_file()]
    assert [path.name for path in made] == ["TEST-report.html"]  # nothing was paid for: no rescue
    assert not list(plan.parent.glob("dpframe-released-*"))


def test_nothing_is_spent_whenever_it_is_stopped(plan):
    with stoppable() as stops:
        assert rehearse(plan) == SOUND
        assert stops.stage is Stage.UNSPENT


def test_ids_of_files_are_made_up_as_texts(tmp_path):
    plan = planned(tmp_path, WITH_BUDGET, ("[declare]", '[data.types]\ndriver = "id"\n\n[declare]'))
    assert rehearse(plan) == SOUND
