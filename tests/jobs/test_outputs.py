"""Where jobs write: never over what they read, over links, or half a file."""

import multiprocessing
import os
import sys
from pathlib import Path

import pandas as pd
import pytest
from support.planning import TRIPS, Overrides, planned, preview_job, read_plan, release_job
from support.raising import raises
from support.terminal import main

import dpframe as dpf
from dpframe.errors import AlreadyReleasedError, PlanFileError, ReleaseError, TemporaryError
from dpframe.jobs import output_files
from dpframe.jobs.starts import digest_of, pack

MARCH = Overrides({"month": "2024-03"})


def job_writing(folder, path):
    """Plan a release of which one query is written to some path."""
    plan = planned(folder, ('kind = "histogram"', f'kind = "histogram"\nfiles = "{path}"'))
    return read_plan(plan, MARCH)


def test_the_data_are_not_replaced(tmp_path):
    job = job_writing(tmp_path, "trips-2024-03.csv")
    before = (tmp_path / "trips-2024-03.csv").read_bytes()
    with raises(PlanFileError, "that this job reads", parameter="queries.fares.files"):
        release_job(job, overwrite=True)
    assert (tmp_path / "trips-2024-03.csv").read_bytes() == before
    assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()


def test_folders_of_data_get_no_other_files(tmp_path):
    (tmp_path / "rows").mkdir()
    job = job_writing(tmp_path, "rows/fares.parquet")
    data = Overrides({"month": "2024-03"}, (str(tmp_path / "rows"),))
    (tmp_path / "trips-2024-03.csv").unlink()
    TRIPS.to_parquet(tmp_path / "rows" / "trips.parquet")
    with raises(PlanFileError, "reads", parameter="queries.fares.files"):
        preview_job(read_plan(job.source.path, data))


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_and_devices_are_not_written_through(tmp_path):
    (tmp_path / "fares.csv").symlink_to(tmp_path / "elsewhere.csv")
    job = job_writing(tmp_path, "fares.csv")
    with raises(PlanFileError, "is a link", parameter="queries.fares.files"):
        preview_job(job, overwrite=True)
    os.mkfifo(tmp_path / "pipe.csv")
    job.source.path.write_text(job.source.text.replace("fares.csv", "pipe.csv"))
    with raises(PlanFileError, "is a link", parameter="queries.fares.files"):
        preview_job(read_plan(job.source.path, MARCH), overwrite=True)


def test_a_folder_that_is_full_is_known_before_the_charge(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    plan = planned(tmp_path)
    monkeypatch.setitem(output_files.WRITERS, ".csv", full)
    with raises(TemporaryError, "No space left"):
        release_job(read_plan(plan, MARCH))
    assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()


def test_a_folder_of_others_is_called_so(tmp_path, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    plan = planned(tmp_path)
    monkeypatch.setitem(output_files.WRITERS, ".csv", denied)
    with raises(PlanFileError, "must be writable; name", parameter="release.files"):
        preview_job(read_plan(plan, MARCH))


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, capsys, monkeypatch):
    plan = planned(tmp_path)
    place = tmp_path / "fares-2024-03.csv"
    write = output_files.write_all

    def late(job, tables, *, overwrite):
        place.write_text("mine")
        return write(job, tables, overwrite=overwrite)

    with monkeypatch.context() as patch:
        patch.setattr("dpframe.jobs.run_job.write_all", late)
        assert main(["release", str(plan), "--set", "month=2024-03"]) == 5
    for again in (5, 5):  # which spends nothing, and changes nothing
        assert place.read_text() == "mine"
        assert "was made by something else meanwhile" in capsys.readouterr().err
        assert main(["release", str(plan), "--set", "month=2024-03"]) == again
    assert main(["release", str(plan), "--set", "month=2024-03", "--overwrite"]) == 0
    assert place.read_text() != "mine"


@pytest.mark.parametrize("looks", range(4))
def test_another_start_may_write_the_same_meanwhile(tmp_path, monkeypatch, looks):
    """It does so after any of the looks at a file that is not there yet."""
    plan = planned(tmp_path)
    job = read_plan(plan, MARCH)
    tables = release_job(job).published.tables
    place, seen = tmp_path / "fares-2024-03.csv", []
    content = place.read_bytes()
    place.unlink()
    for name in ("exists", "is_file"):
        look = getattr(Path, name)

        def look_and_write(path, look=look):
            answer = look(path)
            if path == place:
                seen.append(path)
                if len(seen) > looks:
                    path.write_bytes(content)
            return answer

        monkeypatch.setattr(Path, name, look_and_write)
    made = output_files.write_all(job, tables, overwrite=False)
    assert made.all_there
    assert place in made.written and place.read_bytes() == content


def test_a_table_appears_after_its_certificate(tmp_path, monkeypatch):
    plan, moved, replace = planned(tmp_path), [], os.replace

    def watch(made, place):
        moved.append(Path(place).name)
        replace(made, place)

    monkeypatch.setattr(os, "replace", watch)
    release_job(read_plan(plan, MARCH))
    for table in ("by_zone-2024-03.csv", "fares-2024-03.csv"):
        assert moved.index(f"{table}.certificate.json") < moved.index(table)


def _released(plan, answers):
    try:
        done = release_job(read_plan(plan, MARCH))
    except (AlreadyReleasedError, PlanFileError, ReleaseError) as error:
        answers.put((type(error).__name__, None))  # of a release, where the other one drew first
    else:
        answers.put(("done", digest_of(pack(done.published.tables))))


@pytest.mark.skipif(sys.platform == "win32", reason="processes start otherwise there")
def test_of_two_runs_at_once_one_releases(tmp_path):
    plan = planned(tmp_path)
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    runs = [processes.Process(target=_released, args=(plan, answers)) for _ in range(2)]
    for run in runs:
        run.start()
    said = [answers.get(timeout=120) for _ in runs]
    for run in runs:
        run.join()
    # both may write what one drew: the second finds it kept
    assert len({drawn for how, drawn in said if how == "done"}) == 1
    assert len(dpf.Ledger(tmp_path / "trips.ledger").entries) == 1


def published(folder, steps):
    """Plan a release of which one query is hidden, rounded or shown with intervals first."""
    way = f'kind = "histogram"\nfiles = "fares.csv"\npublish = {{ {steps} }}'
    return read_plan(planned(folder, ('kind = "histogram"', way)), MARCH)


def test_tables_are_written_as_the_plan_publishes_them(tmp_path):
    release_job(published(tmp_path, "suppress = {below = 1}, interval = 0.9, round = -1"))
    made = dpf.read_csv(tmp_path / "fares.csv")
    dpf.verify(made, ledger=dpf.Ledger(tmp_path / "trips.ledger"))
    names = [str(name) for name in made.columns]
    assert any(name.endswith("_low") for name in names)
    assert (made.stack().dropna() % 10 == 0).all()


def test_a_file_with_intervals_becomes_an_excel_file(tmp_path):
    release_job(published(tmp_path, "interval = 0.95"))
    made = dpf.read_csv(tmp_path / "fares.csv")
    made.dp.write_excel(tmp_path / "fares.xlsx")
    assert dpf.read_excel(tmp_path / "fares.xlsx").equals(made)
    files = [tmp_path / "fares.xlsx", "--ledger", tmp_path / "trips.ledger"]
    assert main(["verify", *map(str, files)]) == 0


def test_a_count_decides_for_a_mean_beside_it_in_a_plan_as_in_the_call(tmp_path):
    outputs = 'kind = "aggregate"'
    steps = "suppress = { below = 400, by = 'trips' }, interval = 0.95, round = 1"
    way = f'{outputs}\nfiles = "zones.csv"\npublish = {{ {steps} }}'
    job = read_plan(planned(tmp_path, (outputs, way)), MARCH)
    many = pd.DataFrame({"driver": range(4_000), "zone": ["A"] * 4_000, "fare": [7.0] * 4_000})
    many.to_csv(tmp_path / "trips-2024-03.csv", index=False)
    with raises(PlanFileError, "cannot say by its size"):
        plan = tmp_path / "trips.toml"
        plan.with_name("without.toml").write_text(plan.read_text().replace(", by = 'trips'", ""))
        release_job(read_plan(plan.with_name("without.toml"), MARCH))
    release_job(job)
    made = dpf.read_csv(tmp_path / "zones.csv")
    assert made["trips"].notna().tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        ("suppress = {below = 1, by = 'n'}", "by must name a column, ['count']"),
        ("interval = 2", "level must be a number in (0, 1)"),
        ("round = {other = 1}", "other"),
        ("suppress = {relative_error = -1}", "relative_error"),
        ("intervall = 0.9", "interval"),
    ],
)
def test_what_cannot_be_published_so_is_refused_before_the_charge(tmp_path, steps, match):
    with raises(PlanFileError, match):
        release_job(published(tmp_path, steps))
    if (tmp_path / "trips.ledger").exists():
        assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()


@pytest.mark.parametrize("rows", [0, 1, 400])
def test_missing_means_are_published_with_intervals_and_rounded(rows, tmp_path):
    steps = "interval = 0.95, round = 1"
    way = f'kind = "aggregate"\nfiles = ["zones.csv", "zones.parquet"]\npublish = {{ {steps} }}'
    job = read_plan(planned(tmp_path, ('kind = "aggregate"', way)), MARCH)
    few = {"driver": range(rows), "zone": ["A"] * rows, "fare": [7.0] * rows}
    pd.DataFrame(few).to_csv(tmp_path / "trips-2024-03.csv", index=False)
    preview_job(job)
    release_job(job)
    made = dpf.read_csv(tmp_path / "zones.csv")
    assert pd.read_parquet(tmp_path / "zones.parquet").equals(made)
