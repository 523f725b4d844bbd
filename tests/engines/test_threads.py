"""Work in threads keeps its order, shows its errors, and warns of nothing."""

import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dpframe.engines import threads
from dpframe.engines.threads import (
    dealt_to_threads,
    handed_over,
    in_threads,
    one_ahead,
    thread_count,
)


@pytest.mark.parametrize("threads", [1, 3])
def test_numbers_warn_of_nothing_and_errors_are_raised(threads):
    zeros = np.zeros(3)
    found = in_threads(lambda x: np.divide(x, zeros), [zeros, zeros - 1], threads)
    assert np.isnan(found[0]).all()
    assert np.isneginf(found[1]).all()
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda x: 1 // x, [1, 0, 1], threads)


def test_few_rows_are_worth_one_thread_and_many_rows_no_more_than_there_are_processors(monkeypatch):
    assert thread_count(0) == thread_count(1000) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)), raising=False)
    assert thread_count(10**9) == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(300)))
    assert thread_count(10**9) == 8
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert thread_count(10**9) == 1


def test_items_that_threads_share_go_to_one_each():
    found = dealt_to_threads(list, iter(range(200)), 3)
    assert len(found) == 3
    assert sorted(item for items in found for item in items) == list(range(200))


def test_the_next_item_is_made_while_the_last_one_is_worked_on():
    both = threading.Barrier(2, timeout=20)

    def items():
        yield "first"
        both.wait()
        yield "second"

    for item in one_ahead(items()):
        if item == "first":
            both.wait()
    assert item == "second"


def test_items_made_ahead_are_closed_and_raise_where_they_are_due():
    ended = []

    def items():
        try:
            yield 1
            yield 2
            yield 1 // 0
        finally:
            ended.append(threading.get_ident())

    found = []
    with pytest.raises(ZeroDivisionError):
        found.extend(one_ahead(items()))
    ahead = one_ahead(items())
    assert (next(ahead), len(ended)) == (1, 1)
    ahead.close()
    assert len(ended) == 2


def test_items_that_are_handed_over_come_in_order_with_their_error():
    def run(take):
        for item in range(5):
            take(item)
        raise ZeroDivisionError

    found = []
    with pytest.raises(ZeroDivisionError):
        found.extend(handed_over(run))
    assert found == [0, 1, 2, 3, 4]


def test_nobody_waits_for_a_function_that_hands_over_nothing():
    free, answers = threading.Event(), []

    def run(take):
        take("first")
        free.wait(60)
        answers.append(take("second"))

    items = handed_over(run)
    assert next(items) == "first"
    begun = time.monotonic()
    items.close()
    assert time.monotonic() - begun < 10
    free.set()
    for _ in range(100):
        if answers:
            break
        time.sleep(0.1)
    assert answers == [True]


def test_no_wait_for_a_queue_is_without_end():
    source = inspect.getsource(threads)
    assert re.findall(r"\.get\(\)|\.put\([^,()]*\)$", source, re.MULTILINE) == []


SLOW = {
    "polars": """
import polars as pl
source = pl.LazyFrame({"zone": ["A"]}).map_batches(
    lambda frame: (print("reads", flush=True), time.sleep(30), frame)[2],
    schema={"zone": pl.String}, streamable=True,
)
""",
    "duckdb": """
import duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
source = connection.sql(
    "SELECT 'A' AS zone FROM range(400000) t(i), range(400000) u(j) WHERE hash(i * j) = 5"
)
threading.Timer(3, lambda: print("reads", flush=True)).start()
""",
}


LONGEST = 60  # seconds, of a source that nothing stops


@pytest.mark.full
@pytest.mark.parametrize("kind", SLOW)
def test_ctrl_c_stops_a_slow_source(kind):
    pytest.importorskip(kind)
    script = f"""
import os, signal, threading, time
import dpframe as dpf
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
threading.Timer({LONGEST}, os._exit, [1]).start()
{SLOW[kind]}
frame = dpf.scan(source)
try:
    dpf.release(
        frame, dpf.count("zone", keys=["A"]), epsilon=1, privacy_unit=dpf.EACH_ROW
    )
except (KeyboardInterrupt, dpf.errors.ReleaseError) as error:
    print(type(error).__name__, flush=True)
    os._exit(0)
"""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert any("reads" in line for line in process.stdout)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        said = next((line for line in process.stdout if line.strip()), "")  # DuckDB ends its line
        seconds = time.monotonic() - begun
        process.kill()
    assert said in ("KeyboardInterrupt\n", "ReleaseError\n")
    assert seconds < 2
