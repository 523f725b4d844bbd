"""Names of files that mean another thing on some system are refused on all: a plan travels."""

import pytest
from support.planning import planned
from support.terminal import SOUND, UNREADABLE, main

from dpframe.jobs.output_paths import why_not_portable

MARCH = ("--set", "month=2024-03", "--quiet")
REFUSED = [
    *("con", "CON.csv", "out/nul.csv", "Aux", "prn.tar.gz", "com1.csv", "LPT9", "com\u00b9.csv"),
    *("conin$", "CONOUT$.csv", "nul .csv", "con/zones.csv", "com0.parquet"),
    *("a:b.csv", "C:/out/zones.csv", "zones.csv:stream", "a?.csv", "a*.csv", 'a".csv', "a<b.csv"),
    *("a|b.csv", "a\\b.csv", "zones.", "out./zones.csv", "zones.csv ", "tab\t.csv", "\x01.csv"),
]


@pytest.mark.parametrize("path", REFUSED)
def test_names_that_some_system_reads_otherwise_are_refused(path):
    assert why_not_portable(path)


@pytest.mark.parametrize("name", ["nul-{query}.csv", "a:{query}-{month}.csv", "nul.{query}.csv"])
def test_plans_with_such_files_are_refused(tmp_path, capsys, name):
    plan = planned(tmp_path, ("{query}-{month}.csv", name))
    code = main(["preview", str(plan), *MARCH])
    told = capsys.readouterr().err
    if name.startswith("nul-"):
        assert code == SOUND
    else:
        assert code == UNREADABLE and "release.files" in told and "Windows" in told


def test_a_query_and_a_ledger_cannot_be_called_as_a_device(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    plan = planned(
        tmp_path / "a", ("queries.fares]", "queries.Con]"), ("{query}-{month}", "{query}")
    )
    assert main(["preview", str(plan), "--set", "month=2024-03"]) == UNREADABLE
    assert "'Con.csv' is the name of a device" in capsys.readouterr().err
    (tmp_path / "b").mkdir()
    plan = planned(tmp_path / "b", ('"trips.ledger"', '"aux.ledger"'))
    assert main(["preview", str(plan), *MARCH]) == UNREADABLE
    assert "ledger.path" in capsys.readouterr().err


def test_names_that_differ_by_case_alone_are_one(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    plan = planned(tmp_path / "a", ("queries.fares]", "queries.By_Zone]"))
    assert main(["preview", str(plan), *MARCH]) == UNREADABLE
    assert "two tables would be called" in capsys.readouterr().err
    (tmp_path / "b").mkdir()
    plan = planned(
        tmp_path / "b",
        ('files = "{query}-{month}.csv"', 'files = ["A-{query}.csv", "a-{query}.csv"]'),
    )
    assert main(["preview", str(plan), *MARCH]) == UNREADABLE
    assert "would be written twice" in capsys.readouterr().err
    (tmp_path / "c").mkdir()
    plan = planned(tmp_path / "c", ("queries.fares]", "queries.Trips]"))
    assert main(["preview", str(plan), *MARCH]) == UNREADABLE
    assert "is a file or a folder that this job reads" in capsys.readouterr().err
