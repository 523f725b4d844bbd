"""After the charge every error is a ReleaseError that quotes nothing, in whatever it is wrapped."""

import asyncio
import traceback
from unittest import mock

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hostile import objects

import dpframe as dpf
from dpframe.engines import batches, scans, threads
from dpframe.engines import pandas as engine
from dpframe.engines.scans import ScannedFrame
from dpframe.errors import STOPS, ReleaseError
from dpframe.privacy.law import Law

SECRET = "patient 42 has flu"  # noqa: S105
BUDGET = dpf.Budget(epsilon=1, delta=1e-6)


class Panic(BaseException):
    """As those of libraries in Rust, it does not derive from Exception."""


class LyingError(Exception):
    """An error that lies about its class, and raises when it is shown."""

    @property
    def __class__(self):
        raise RuntimeError(SECRET)

    def __str__(self):
        raise RuntimeError(SECRET)


def noted():
    error = ValueError(SECRET)
    error.add_note(SECRET)
    return error


ERRORS = {
    "value": lambda: ValueError(SECRET),
    "noted": noted,
    "memory": lambda: MemoryError(SECRET),
    "disk": lambda: OSError(28, SECRET),
    "key": lambda: KeyError(SECRET),
    "panic": lambda: Panic(SECRET),
    "cancelled": lambda: asyncio.CancelledError(SECRET),
    "liar": LyingError,
    "of dpframe": lambda: dpf.errors.QueryError(SECRET),
    "group": lambda: BaseExceptionGroup(SECRET, [Panic(SECRET)]),
}


def raising(make):
    """A function that raises an error while another is handled."""

    def first():
        raise RuntimeError(SECRET)

    def fail(*_, **__):
        try:
            first()
        except RuntimeError as error:
            raise make() from error

    return fail


def linked(error):
    """All errors that can be reached from one."""
    found, ahead = [], [error]
    while ahead:
        one = ahead.pop()
        found.append(one)
        ahead += [other for other in (one.__cause__, one.__context__) if other is not None]
    return found


def check_quiet(caught, *secrets):
    """Nothing that can be reached from an error quotes a secret."""
    error = caught.value
    assert type(error) is ReleaseError
    assert linked(error) == [error]
    assert error.__suppress_context__
    assert not getattr(error, "__notes__", [])
    shown = "".join(traceback.format_exception(error)) + repr(error)
    assert not [secret for secret in secrets if secret in shown]
    assert "stays charged" in str(error)


def frame_of(rows=6):
    frame = pd.DataFrame({"k": ["a", "b"] * (rows // 2), "u": range(rows)})
    frame.dp.declare(keys={"k": ["a", "b"]}, privacy_unit="u", max_rows=1, budget=BUDGET)
    return frame


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("place", ["totals", "noise", "threads"])
def test_errors_of_the_engine_are_replaced(error, place, monkeypatch):
    frame = frame_of()
    fail = raising(ERRORS[error])
    if place == "threads":
        monkeypatch.setattr(engine, "thread_count", lambda _: 2)
        monkeypatch.setattr(engine._Pass, "_some", fail)
    elif place == "noise":
        monkeypatch.setattr(Law, "draw", fail)
    else:
        monkeypatch.setattr(engine, "totals_of", fail)
    with pytest.raises(ReleaseError) as caught:
        frame.dp.count("k", share=0.5)
    check_quiet(caught, SECRET)
    assert len(frame.dp.ledger.entries) == 1
    with pytest.raises(ReleaseError):
        dpf.release(frame, dpf.count("k"), share=0.5)
    assert len(frame.dp.ledger.entries) == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("memory", "too little memory"),
        ("disk", "a disk is full"),
        ("value", "could not be read"),
        ("of dpframe", "could not be read"),
    ],
)
def test_the_reason_is_one_of_a_few(error, words, monkeypatch):
    monkeypatch.setattr(engine.PandasEngine, "totals", raising(ERRORS[error]))
    with pytest.raises(ReleaseError, match=words):
        frame_of().dp.count("k", share=1)


@pytest.mark.parametrize("stop", STOPS)
def test_what_stops_a_program_passes_without_its_context(stop, monkeypatch):
    monkeypatch.setattr(engine.PandasEngine, "totals", raising(lambda: stop(7)))
    with pytest.raises(stop) as caught:
        frame_of().dp.count("k", share=1)
    assert caught.value.args == (7,)
    assert linked(caught.value) == [caught.value]
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_errors_before_the_charge_are_as_they_were():
    frame = frame_of()
    with pytest.raises(dpf.errors.UnknownColumnError, match="'zone'"):
        frame.dp.count("zone", share=1)
    assert not frame.dp.ledger.entries


class Cell:
    """A value each method of which raises something of a kind."""

    def __init__(self, make):
        self._make = make

    def _fail(self, *_):
        raise self._make()

    __eq__ = __ne__ = __hash__ = __bool__ = __float__ = __int__ = __index__ = _fail
    __len__ = __iter__ = __array__ = __lt__ = __str__ = _fail


class Number(float):
    def _fail(self, *_):
        raise Panic(SECRET)

    __eq__ = __hash__ = __float__ = __mul__ = _fail


@pytest.mark.parametrize("error", ERRORS)
def test_what_cells_raise_is_contained(error):
    odd = Cell(ERRORS[error])
    made = pd.DataFrame(
        {name: objects([odd, 1, "a", 2, Number(3), "a"]) for name in ("k", "u", "x", "w")}
    )
    made.dp.declare(keys={"k": [1, "a"]}, bounds={"x": (0, 4)}, privacy_unit="u", max_rows=5)
    exact = {"epsilon": 1e15}
    released = made.dp.aggregate("k", n=dpf.count(), s=dpf.sum("x"), **exact)
    assert released["n"].tolist() == [1, 2]
    assert made.dp.count(where="w > 0 or w == 'a'", **exact).iloc[0, 0] == 4
    made.dp.declare(keys={"k": [1, "a"]}, bounds={"x": (0, 4)})
    assert made.dp.sum("x", **exact).iloc[0, 0] == pytest.approx(6, abs=1e-6)


@pytest.fixture
def scan(tmp_path):
    pq.write_table(pa.table({"k": ["a", "b"] * 50, "u": range(100)}), tmp_path / "t.parquet")
    scan = dpf.scan_parquet(tmp_path)
    scan.dp.declare(keys={"k": ["a", "b"]}, privacy_unit="u", max_rows=1, budget=BUDGET)
    return scan


CHANGES = {
    "another type": lambda path: pq.write_table(pa.table({"k": [SECRET], "u": [SECRET]}), path),
    "fewer columns": lambda path: pq.write_table(pa.table({"k": [SECRET]}), path),
    "more rows": lambda path: pq.write_table(pa.table({"k": ["a"] * 101, "u": range(101)}), path),
    "no file": lambda path: path.unlink(),
    "no Parquet": lambda path: path.write_text(SECRET),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:200]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("buckets", [False, True])
def test_files_that_change_while_they_are_read(change, buckets, scan, tmp_path, monkeypatch):
    if buckets:
        monkeypatch.setattr(scans, "_BUCKET_ROWS", 10)
    ready = ScannedFrame.tables

    def tables(files, *arguments):
        CHANGES[change](tmp_path / "t.parquet")
        return ready(files, *arguments)

    monkeypatch.setattr(ScannedFrame, "tables", tables)
    with pytest.raises(ReleaseError) as caught:
        scan.dp.count("k", share=1)
    check_quiet(caught, SECRET, "t.parquet")
    assert len(scan.dp.ledger.entries) == 1
    if change in ("another type", "fewer columns", "more rows"):
        assert "a file changed while it was read" in str(caught.value)


def test_a_full_disk(scan, monkeypatch):
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 10)
    full = mock.Mock(side_effect=OSError(28, SECRET))
    monkeypatch.setattr(batches.ipc, "new_stream", full)
    with pytest.raises(ReleaseError, match="a disk is full") as caught:
        scan.dp.count("k", share=1)
    check_quiet(caught, SECRET)


@pytest.mark.parametrize("error", ["value", "panic", "liar"])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_errors_of_partitions_are_replaced(error, scheduler):
    dask = pytest.importorskip("dask")
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("dpframe.dask")
    whole = pd.DataFrame({"k": ["a", "b"] * 3, "u": range(6)})
    collection = dd.from_pandas(whole, npartitions=2)
    collection = collection.map_partitions(raising(ERRORS[error]), meta=whole.iloc[:0])
    collection.dp.declare(keys={"k": ["a", "b"]}, privacy_unit="u", max_rows=1, budget=BUDGET)
    with dask.config.set(scheduler=scheduler), pytest.raises(ReleaseError) as caught:
        collection.dp.count("k", share=1)
    check_quiet(caught, SECRET)
    assert len(collection.dp.ledger.entries) == 1


def test_threads_raise_what_a_release_replaces():
    with pytest.raises(Panic):
        threads.in_threads(raising(lambda: Panic(SECRET)), range(3), 2)
