"""Work in threads keeps its order, shows its errors, and warns of nothing."""

import os
import threading
import time

import numpy as np
import pytest

from dpframe.engines.threads import dealt_to_threads, in_threads, one_ahead, thread_count


@pytest.mark.parametrize("threads", [1, 3])
def test_results_keep_the_order_of_the_items(threads):
    assert in_threads(lambda x: x * x, range(20), threads) == [x * x for x in range(20)]
    assert in_threads(abs, [], threads) == []


def test_calls_run_at_the_same_time():
    both = threading.Barrier(2, timeout=20)
    assert len(in_threads(lambda _: both.wait(), range(2), 2)) == 2


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


def test_no_items_are_made_after_a_failure():
    made = []

    def items():
        for item in range(10_000):
            made.append(item)
            yield item

    def failing(shared):
        for item in shared:
            1 // (item - 5)
            time.sleep(1e-4)

    with pytest.raises(ZeroDivisionError):
        dealt_to_threads(failing, items(), 3)
    assert len(made) < 100


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
