"""Work in threads keeps its order, shows its errors, and warns of nothing."""

import os
import threading

import numpy as np
import pytest

from dpframe.engines.threads import in_threads, thread_count


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
