"""Names and values in paths: whatever they are, files stay where the plan puts them."""

import os

import pytest
from support.planning import Overrides, planned, read_plan
from support.raising import raises
from support.terminal import SOUND, UNREADABLE, main

import dpframe as dpf
from dpframe.errors import PlanFileError

MARCH = {"month": "2024-03"}
ELSEWHERE = ["../escaped", "/escaped", "a/b", "..", "a\\b", "..\\b", "a\0b", "x" * 90 + "/../y"]
ALIKE = [
    "a\u2215b",
    "a\uff0fb",
    "\u2024\u2024\u2215b",
    "\uff0e\uff0e",
    "\u2025",
    "a\u29f5b",
    "~",
    "$HOME",
]


def with_files(folder, files, *changes):
    return planned(folder, ("{query}-{month}.csv", files), *changes)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_given_in_the_call_lead_to_no_other_folder(tmp_path, name):
    plan = with_files(tmp_path, "{query}-{name}.csv")
    with raises(PlanFileError, "elsewhere", parameter="release.files"):
        read_plan(plan, Overrides(MARCH, name=name))


def test_an_empty_name_is_no_name_of_the_plan(tmp_path, capsys):
    plan = with_files(tmp_path, "{query}.csv")
    line = ["release", str(plan), "--set", "month=2024-03", "--name", ""]
    assert main(line) == UNREADABLE
    assert "name" in capsys.readouterr().err
    assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()


@pytest.mark.parametrize("name", ELSEWHERE[:-1])
def test_names_in_the_plan_lead_to_no_other_folder(tmp_path, name):
    text = name.replace("\\", "\\\\").replace("\0", "\\u0000")
    plan = with_files(tmp_path, "{name}-{query}.csv", ("trips {month}", f"{text} {{month}}"))
    with pytest.raises(PlanFileError, match=r"name. is"):
        read_plan(plan, Overrides(MARCH))


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_queries_lead_to_no_other_folder(tmp_path, name):
    text = name.replace("\\", "\\\\").replace("\0", "\\u0000")
    plan = planned(tmp_path, ("[queries.fares]", f'[queries."{text}"]'))
    with pytest.raises(PlanFileError, match=r"query. is"):
        read_plan(plan, Overrides(MARCH))


@pytest.mark.parametrize(
    ("files", "values"),
    [
        ("{query}/{month}.csv", {}),  # of a query without a name
        ("{month}{month}/{query}.csv", {"month": "."}),
        (".{month}/{query}.csv", {"month": "."}),
    ],
)
def test_what_is_filled_in_leads_nowhere_together(tmp_path, files, values):
    empty = ("[queries.fares]", '[queries.""]')
    plan = with_files(tmp_path, files, *([] if values else [empty]))
    with raises(PlanFileError, "elsewhere", parameter="release.files"):
        read_plan(plan, Overrides(MARCH | values))


def test_folders_of_the_plan_are_its_own_matter(tmp_path):
    for place in (str(tmp_path / "out"), "out", "../" + tmp_path.name + "/out", "."):
        folder = tmp_path / "again"
        folder.mkdir()
        plan = with_files(folder, "{place}/{query}.csv")
        plan.write_text(f'{plan.read_text()}\n[values]\nplace = "{place}"\n')
        job = read_plan(plan, Overrides(MARCH))
        (path,) = job.files["fares"]
        assert path == folder / place / "fares.csv"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


@pytest.mark.parametrize("name", ALIKE)
def test_what_looks_like_a_separator_is_none(tmp_path, name):
    plan = with_files(tmp_path, "{query}-{name}.csv")
    job = read_plan(plan, Overrides(MARCH, name=name))
    for paths in job.files.values():
        assert [path.parent.resolve() for path in paths] == [tmp_path.resolve()]
        assert os.path.normpath(paths[0]) == str(paths[0])
    (tmp_path / "elsewhere").mkdir()
    line = ["release", str(plan), "--set", "month=2024-03", "--name", name, "--quiet"]
    assert main(line) == SOUND
    assert (tmp_path / f"fares-{name}.csv").is_file()


@pytest.mark.parametrize("length", [100, 200, 10_000])
def test_names_of_any_length_are_written_or_refused_before_the_charge(tmp_path, capsys, length):
    plan = with_files(tmp_path, "{name}-{query}-{name}.csv")
    line = ["release", str(plan), "--set", "month=2024-03", "--name", "x" * length, "--quiet"]
    expected = UNREADABLE if length > 100 else SOUND
    assert main(line) == expected
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == (expected == SOUND)


@pytest.mark.parametrize("column", ["..", "/", "a/b", "../../x", "\\", "zone"])
def test_tables_of_margins_stay_in_their_folder(tmp_path, column):
    text = column.replace("\\", "\\\\")
    plan = with_files(
        tmp_path,
        "{query}-{table}.csv",
        ("keys.zone =", f'keys."{text}" ='),
        (
            'kind = "aggregate"\nby = "zone"\noutputs.trips = { kind = "count" }\n'
            'outputs.fare = { kind = "mean", columns = "fare" }',
            f'kind = "margins"\nways = 1\ncolumns = ["{text}"]\n'
            'outputs.trips = { kind = "count" }',
        ),
        ("[queries.fares]", '[queries.fares]\nfiles = "fares.csv"'),
    )
    job = read_plan(plan, Overrides(MARCH))
    assert {path.parent for paths in job.files.values() for path in paths} == {tmp_path}


def test_a_link_in_the_place_of_a_file_is_not_written_through(tmp_path):
    (tmp_path / "in").mkdir()
    plan = with_files(tmp_path / "in", "{query}-{name}.csv")
    (tmp_path / "in" / "fares-x.csv").symlink_to(tmp_path / "escaped.csv")
    line = ["release", str(plan), "--set", "month=2024-03", "--name", "x", "--overwrite"]
    assert main(line) == UNREADABLE
    assert not (tmp_path / "escaped.csv").exists()
