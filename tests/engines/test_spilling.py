"""Rows that are split by unit go to temporary files, that are gone when the release is done."""

import os
import pickle
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import compute
from support.raising import raises
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines import batches, engine_for, parquet_files, scans
from dpframe.engines.scans import ScannedFrame
from dpframe.errors import DeclarationError, TemporaryError
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import Cells, Task, Term
from dpframe.queries.where import Condition

UNITS = 60
TABLE = pa.table(
    {
        "u": pa.array([None if row % UNITS < 2 else row % UNITS for row in range(5 * UNITS)]),
        "c": [row % UNITS % 3 == 0 for row in range(5 * UNITS)],
        "x": [row % UNITS - 30 for row in range(5 * UNITS)],
    }
)


def totals(frame, tasks):
    return engine_for(frame).totals(frame, tasks, SYSTEM)


@pytest.fixture
def units(tmp_path, monkeypatch):
    """Files that are split into buckets, with a folder for these."""
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 20)
    monkeypatch.setattr(scans, "_SLICE_ROWS", 1)
    (tmp_path / "spill").mkdir()
    pq.write_table(TABLE, tmp_path / "all.parquet")
    return dpf.scan_parquet(
        tmp_path / "all.parquet", batch_rows=64, spill_folder=tmp_path / "spill"
    )


def capped(where=None):
    return Task(
        Cells(),
        (Term("rows"),),
        unit=("u",),
        caps=Caps(rows=2),
        where=None if where is None else Condition.parse(where),
    )


def test_rows_are_kept_in_a_folder_that_only_its_owner_may_open_and_then_deleted(units, tmp_path):
    seen = []
    read = batches._read

    def spied(files, schema):
        (folder,) = (tmp_path / "spill").iterdir()
        seen.append((folder.stat().st_mode & 0o777, len(list(folder.iterdir()))))
        yield from read(files, schema)
        seen.append(len(list(folder.iterdir())))

    with mock.patch.object(batches, "_read", spied):
        totals(units, [capped()])
    assert seen == [(0o700, 16), 1]  # with the file that keeps the folder
    assert not list((tmp_path / "spill").iterdir())


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["unit_buckets", "totals_of"])
def test_nothing_is_left_behind_when_something_raises(where, error, units, tmp_path):
    function, calls = getattr(scans, where), []

    def failing(*arguments):
        calls.append(len(list((tmp_path / "spill").glob("*/*.arrow"))))
        if where == "unit_buckets" and len(calls) == 1:
            return function(*arguments)
        if where == "totals_of":
            next(iter(arguments[0]))
        raise error

    with mock.patch.object(scans, where, failing), pytest.raises(error):
        totals(units, [capped()])
    assert calls[-1] > 10
    assert not list((tmp_path / "spill").iterdir())


def written_rows(files, tasks):
    """How many rows go to the disk, and with which columns."""
    rows, columns = 0, set()

    @contextmanager
    def spied(parts, count, folder):
        nonlocal rows

        def watched():
            nonlocal rows
            for table, buckets in parts:
                rows += int((buckets >= 0).sum())
                columns.add(tuple(table.column_names))
                yield table, buckets

        with batches.split_tables(watched(), count, folder) as tables:
            yield tables

    with mock.patch.object(scans, "split_tables", spied):
        found = totals(files, tasks)
    return rows, columns, found


def test_only_rows_and_columns_that_are_needed_are_written(units):
    of_someone = int(compute.is_valid(TABLE["u"]).to_numpy().sum())
    assert written_rows(units, [capped(), capped()])[:2] == (of_someone, {("u",)})
    true = compute.and_(TABLE["c"], compute.is_valid(TABLE["u"]))
    rows, columns, shared = written_rows(units, [capped("c"), capped("c")])
    assert (rows, columns) == (int(compute.sum(true).as_py()), {("u",)})
    assert rows < of_someone
    rows, columns, apart = written_rows(units, [capped("c"), capped()])
    assert (rows, columns) == (of_someone, {("c", "u")})
    np.testing.assert_array_equal(shared, [apart[0], apart[0]])


def test_a_folder_that_is_gone_is_refused_however_many_rows_there_are(units, tmp_path):
    (tmp_path / "spill").rmdir()
    with raises(DeclarationError, "folder", parameter="spill_folder"):
        totals(units, [capped()])


def test_tasks_with_and_without_a_unit_can_be_mixed(units):
    rows = Task(Cells(), (Term("rows"),))
    found = totals(units, [rows, capped(), rows])
    assert [int(total[0, 0]) for total in found] == [5 * UNITS, 2 * (UNITS - 2), 5 * UNITS]


def test_one_pass_serves_all_tasks(units):
    with mock.patch.object(
        ScannedFrame, "tables", autospec=True, side_effect=ScannedFrame.tables
    ) as read:
        totals(units, [capped(), capped("c"), capped("x > 0")])
    assert read.call_count == 1


def test_pickling_opens_the_files_again(units):
    again = pickle.loads(pickle.dumps(units))  # noqa: S301
    assert (again.batch_rows, again.spill_folder) == (units.batch_rows, units.spill_folder)
    np.testing.assert_array_equal(totals(again, [capped()]), totals(units, [capped()]))


@pytest.mark.parametrize("tasks", [[capped()], [capped("c"), capped()], [capped("u > 9")]])
def test_threads_that_have_buckets_of_their_own_add_up_the_same(tasks, units, monkeypatch):
    expected = totals(units, tasks)
    monkeypatch.setattr(scans, "thread_count", lambda _: 3)
    for found, total in zip(totals(units, tasks), expected, strict=True):
        np.testing.assert_array_equal(found, total)
    monkeypatch.setattr(scans, "_SMALL_BUCKET_ROWS", 0)  # all threads work on one
    for found, total in zip(totals(units, tasks), expected, strict=True):
        np.testing.assert_array_equal(found, total)


@pytest.mark.parametrize("footer", [1 << 20, 0])
def test_room_is_asked_for_what_is_read(units, monkeypatch, footer):
    """An estimate: of one file, the columns as they are stored, or their part of it."""
    monkeypatch.setattr(parquet_files, "_FOOTER_BYTES", footer)
    frame = dpf.scan_parquet(units.source._path)
    size = frame.source.stored_bytes(["u", "x"])
    whole = frame.source.stored_bytes(["u", "c", "x"])
    assert 0 < size < whole <= os.path.getsize(units.source.files[0].path)

    def room(free):
        disk = mock.Mock(return_value=mock.Mock(free=free))
        with mock.patch.object(scans.shutil, "disk_usage", disk):
            frame.check_room(["u", "x"], [None])
        return disk.call_count

    assert room(size) == 1
    with raises(TemporaryError, "too little room"):
        room(size // 2 - 1)
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 1000)  # no rows are written
    assert room(0) == 0


def test_room_is_asked_for_files_that_are_read(units, tmp_path):
    for week in (1, 2, 3):
        (tmp_path / f"weeks/week={week}").mkdir(parents=True)
        pq.write_table(TABLE, tmp_path / f"weeks/week={week}/rows.parquet")
    frame = dpf.scan_parquet(tmp_path / "weeks")
    chosen = frame.source.where([Condition.parse("week == 2")])
    assert chosen.stored_bytes(["u"]) * 3 == frame.source.stored_bytes(["u"])
