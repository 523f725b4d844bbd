"""Data of jobs: what is read of them, and that no cell decides how others are read."""

import gzip
import zipfile
from datetime import date

import pandas as pd
import pytest
from support.planning import TRIPS, Overrides, planned, preview_job, read_plan, release_job
from support.raising import raises
from support.terminal import UNREADABLE, main

import dpframe as dpf
from dpframe.engines.parquet_files import ParquetFiles
from dpframe.errors import DPFrameError, PlanFileError

MARCH = Overrides({"month": "2024-03"})
NO_NOISE = ('share = "1/12"', "epsilon = 1e7\ndelta = 0")


def exact(tmp_path, *changes):
    """Plan a release with hardly any noise, in which no row is dropped."""
    caps = ("max_rows = 3", "max_rows = 100")
    plan = planned(tmp_path, NO_NOISE, caps, ("trips.ledger", "large.ledger"), *changes)
    dpf.Ledger.create(tmp_path / "large.ledger", budget=dpf.Budget(epsilon=1e8, delta=1e-9))
    return plan


def released(plan):
    return release_job(read_plan(plan, MARCH)).frames["by_zone"]


def written(path):
    """Write the data in the form that the name says."""
    if path.name.endswith(".parquet"):
        TRIPS.to_parquet(path)
    elif path.name.endswith(".feather"):
        TRIPS.to_feather(path)
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(TRIPS.to_csv(index=False).encode()))
    elif path.name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("trips.csv", TRIPS.to_csv(index=False))
    else:
        TRIPS.to_csv(path, index=False)


FORMS = ["csv", "csv.gz", "csv.zip", "feather", "parquet"]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_data_give_the_same(tmp_path, form):
    plan = exact(tmp_path, ('"trips-{month}.csv"', f'"trips-{{month}}.{form}"'))
    written(tmp_path / f"trips-2024-03.{form}")
    table = released(plan)
    assert table["trips"].tolist() == [60, 20, 20]
    assert table["fare"].round(2).tolist()[:2] == [38.83, 20.0]


def test_an_archive_of_several_files_is_refused_and_what_macos_adds_is_not_one(tmp_path):
    plan = exact(tmp_path, ('"trips-{month}.csv"', '"trips-{month}.csv.zip"'))
    path = tmp_path / "trips-2024-03.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__MACOSX/._trips.csv", b"\0")
        archive.writestr("trips.csv", TRIPS.to_csv(index=False))
    assert released(plan)["trips"].tolist() == [60, 20, 20]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.csv", TRIPS.to_csv(index=False))
    with raises(PlanFileError, "unpack", parameter="data.path"):
        preview_job(read_plan(plan, MARCH))


def several(tmp_path, form):
    """Plan a release from two files of a form, the second of which is yet to be written."""
    plan = exact(tmp_path, ('"trips-{month}.csv"', f'["a.{form}", "b.{form}"]'))
    written(tmp_path / f"a.{form}")
    return plan, tmp_path / f"b.{form}"


WRITE = {
    "csv": lambda frame, place: frame.to_csv(place, index=False),
    "feather": lambda frame, place: frame.to_feather(place),
    "parquet": lambda frame, place: frame.to_parquet(place),
}


@pytest.mark.parametrize("column", ["driver", "zone", "fare"])
@pytest.mark.parametrize("run", [preview_job, release_job])
def test_a_csv_file_that_has_a_needed_column_twice_is_refused(tmp_path, column, run):
    plan, place = several(tmp_path, "csv")
    WRITE["csv"](pd.concat([TRIPS, TRIPS[[column]]], axis=1), place)
    rule = rf"b.csv has '{column}' more than once"
    with pytest.raises(PlanFileError, match=rule):
        run(read_plan(plan, MARCH))
    assert dpf.Ledger(tmp_path / "large.ledger").entries == ()


@pytest.mark.parametrize("lost", ["driver", "zone", "fare"])
@pytest.mark.parametrize("form", WRITE)
@pytest.mark.parametrize("run", [preview_job, release_job])
def test_a_file_that_lacks_a_needed_column_is_named_with_it(tmp_path, form, lost, run):
    plan, place = several(tmp_path, form)
    WRITE[form](TRIPS.drop(columns=lost), place)
    with pytest.raises(PlanFileError, match=rf"b.{form} has no column '{lost}'"):
        run(read_plan(plan, MARCH))
    assert dpf.Ledger(tmp_path / "large.ledger").entries == ()


@pytest.mark.parametrize("form", WRITE)
def test_columns_that_are_not_needed_do_not_lose_rows(tmp_path, form):
    plan, place = several(tmp_path, form)
    WRITE[form](TRIPS.assign(tip=1), place)
    assert released(plan)["trips"].tolist() == [120, 40, 40]


@pytest.mark.parametrize("form", ["feather", "parquet"])
def test_files_of_other_types_are_named_with_the_column(tmp_path, form):
    plan, place = several(tmp_path, form)
    WRITE[form](TRIPS.assign(driver=TRIPS["driver"] + 0.5), place)
    where = "declare.privacy_unit"
    with raises(PlanFileError, "same types of columns: 'driver'", parameter=where) as said:
        preview_job(read_plan(plan, MARCH))
    assert f"b.{form}, and int64 in " in str(said.value)


def test_footers_are_read_once_where_a_plan_is_tried(tmp_path, monkeypatch):
    plan, place = several(tmp_path, "parquet")
    written(place)
    read = []
    footer = ParquetFiles._read_footer
    monkeypatch.setattr(
        ParquetFiles, "_read_footer", lambda *given: read.append(given) or footer(*given)
    )
    preview_job(read_plan(plan, MARCH))
    assert len(read) == 2


@pytest.mark.parametrize("odd", ["x", "A,B", '"', "é", "1e999", "", "2024-01-01", "9" * 400])
def test_one_odd_cell_changes_no_other(tmp_path, odd):
    trips = pd.DataFrame({"driver": range(9), "zone": [1, 2, 2] * 3, "fare": [5.0] * 9})
    trips = trips.astype({"zone": object, "fare": object, "driver": object})
    plan = exact(tmp_path, ('["A", "B", "C"]', "[1, 2]"))
    place = tmp_path / "trips-2024-03.csv"
    trips.to_csv(place, index=False)
    before = released(plan)
    trips.loc[9] = [odd, odd, odd]
    trips.to_csv(place, index=False)
    for path in tmp_path.glob("*-2024-03.csv*"):
        if path != place:
            path.unlink()
    plan.write_text(plan.read_text().replace("trips {month}", "again {month}"))
    after = released(plan)
    assert before["trips"].tolist() == after["trips"].tolist() == [3, 6]
    assert after["fare"].round(1).tolist() == [5.0, 5.0]


def with_condition(tmp_path, condition):
    """Plan a release in which only a condition names some columns."""
    long = TRIPS.assign(miles=range(len(TRIPS)), day="2024-03-01", paid=["yes", "no"] * 50)
    plan = exact(tmp_path, ('by = "zone"', f'by = "zone"\nwhere = "{condition}"'))
    long.to_csv(tmp_path / "trips-2024-03.csv", index=False)
    return plan


@pytest.mark.parametrize(
    ("condition", "kinds"),
    [
        ("miles < 50", {"miles": "float64"}),
        ("not (-5 < miles) or 3 <= miles / 2 < 4", {"miles": "float64"}),
        ("-miles > paid", {"miles": "float64", "paid": "float64"}),
        ("paid == 'yes' and miles in [1, 2]", {"paid": "string", "miles": "float64"}),
        ("paid not in ['no', 'maybe']", {"paid": "string"}),
        ("fare > 3 or zone == 'A'", {"fare": "float64", "zone": "string"}),
    ],
)
def test_conditions_say_what_columns_hold(tmp_path, condition, kinds):
    tried = preview_job(read_plan(with_condition(tmp_path, condition), MARCH))
    assert {column: tried.needed[column] for column in kinds} == kinds


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("paid", "paid"),
        ("paid == miles", "paid"),
        ("paid == paid", "paid"),
        ("day >= '2024-03-01'", "day"),
        ("paid == 'yes' or paid == 1", "paid"),
        ("paid in ['yes', 1]", "paid"),
    ],
)
def test_columns_of_other_conditions_need_a_type(tmp_path, condition, column):
    plan = with_condition(tmp_path, condition)
    with pytest.raises(PlanFileError, match=rf"data.types.{column} = "):
        preview_job(read_plan(plan, MARCH))


def test_types_of_the_plan_go_first(tmp_path):
    plan = with_condition(tmp_path, "miles < 50")
    text = plan.read_text().replace("[declare]", '[data.types]\nmiles = "int64"\n\n[declare]')
    plan.write_text(text)
    assert preview_job(read_plan(plan, MARCH)).needed["miles"] == "int64"
    assert released(plan)["trips"].tolist() == [30, 10, 10]
    plan.write_text(text.replace('"int64"', '"integer"'))
    with raises(PlanFileError, "string", parameter="data.types.miles"):
        read_plan(plan, MARCH)


def test_separators_and_missing_cells(tmp_path):
    written_so = '"trips-{month}.csv"\nseparator = ";"\nna_values = ["NA"]'
    plan = exact(tmp_path, ('"trips-{month}.csv"', written_so))
    TRIPS.replace({"zone": {"C": "NA"}}).to_csv(tmp_path / "trips-2024-03.csv", sep=";")
    assert released(plan)["trips"].tolist() == [60, 20, 0]


def test_groups_are_read_from_a_file(tmp_path):
    plan = exact(tmp_path, ('["A", "B", "C"]', '{ file = "zones.txt" }'))
    (tmp_path / "zones.txt").write_text("B\n\nA\n")
    assert list(released(plan).index) == ["B", "A"]
    (tmp_path / "zones.txt").unlink()
    with raises(PlanFileError, "there is no file", parameter="declare.keys.zone.file"):
        read_plan(plan, MARCH)


def test_groups_of_a_file_have_a_type(tmp_path):
    groups = '{ file = "hours.txt", type = "int64" }'
    plan = exact(tmp_path, ('["A", "B", "C"]', groups))
    (tmp_path / "hours.txt").write_text("1\n2\n")
    assert read_plan(plan, MARCH).declared["keys"]["zone"] == [1, 2]
    (tmp_path / "hours.txt").write_text("1\nx\n")
    with raises(PlanFileError, "line 2 of", parameter="declare.keys.zone.file"):
        read_plan(plan, MARCH)


def test_days_are_groups(tmp_path):
    days = pd.date_range("2024-03-01", periods=5).astype(str)
    groups = ('["A", "B", "C"]', "[2024-03-02, 2024-03-01, 2024-04-01]")
    plan = exact(tmp_path, groups, ("{query}-{month}.csv", "{query}-{month}.parquet"))
    TRIPS.assign(zone=list(days) * 20).to_csv(tmp_path / "trips-2024-03.csv", index=False)
    assert released(plan)["trips"].tolist() == [20, 20, 0]
    plan.write_text(plan.read_text().replace("{query}-{month}.parquet", "{query}-{month}.csv"))
    release_job(read_plan(plan, Overrides({"month": "2024-03"}, name="again")))
    found = dpf.read_csv(tmp_path / "by_zone-2024-03.csv")
    assert set(map(type, found.index)) == {date}


@pytest.mark.parametrize("row", ['7,"A', "7", "7,A,5,5,5", '7,"A"x,5', "\x00", "é" * 200_000])
def test_an_odd_row_stops_nothing(tmp_path, row):
    plan = exact(tmp_path)
    place = tmp_path / "trips-2024-03.csv"
    place.write_bytes(place.read_bytes() + row.encode("latin-1"))
    assert abs(released(plan)["trips"] - [60, 20, 20]).sum() <= 1


@pytest.mark.parametrize("form", ["csv.gz", "feather", "parquet"])
def test_damaged_data_are_told(tmp_path, form):
    plan = exact(tmp_path, ('"trips-{month}.csv"', f'"trips-{{month}}.{form}"'))
    path = tmp_path / f"trips-2024-03.{form}"
    written(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with raises(DPFrameError, "path", parameter="data.path"):
        release_job(read_plan(plan, MARCH))
    assert dpf.Ledger(tmp_path / "large.ledger").entries == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [("none.csv", "there is no"), ("x.xls", "must name Parquet"), ("empty.csv", "is empty")],
)
def test_data_of_the_command_line_are_told_as_such(tmp_path, capsys, name, said):
    plan = planned(tmp_path)
    (tmp_path / "empty.csv").touch()
    place = str(tmp_path / name)
    assert main(["release", str(plan), "--set", "month=2024-03", "--data", place]) == UNREADABLE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{plan}: --data: ")
    assert said in line
    assert place in line
