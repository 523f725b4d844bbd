"""Warnings are hidden in the threads that look at private values, and nowhere else."""

import itertools
import linecache
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.columns import identity as silence
from dpframe.columns.identity import silent

PATIENCE = 60  # seconds


@pytest.fixture(autouse=True, scope="module")
def threads_were_seen():
    """The filter that stays is added once in a process, here before the tests."""
    silence._keep_filter()


def warn(text="the cell holds 42"):
    warnings.warn(text, UserWarning, stacklevel=2)


def others():
    """The filters, without ours."""
    return [one for one in warnings.filters if one not in (silence._FILTER, silence._CALL_FILTER)]


def in_thread(function):
    """Run a function in a thread, and return what it raised."""
    raised = []

    def run():
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    return raised


@silent
def loud():
    warn()
    return 5


def test_the_filters_stay_as_they_are():
    for category in (BytesWarning, UserWarning):
        warnings.simplefilter("error", category)
        before = list(warnings.filters)
        loud()
        assert warnings.filters == before


def test_warnings_of_another_thread_are_shown_meanwhile():
    @silent
    def meanwhile():
        return in_thread(warn)

    assert [str(one) for one in meanwhile()] == ["the cell holds 42"]


def test_two_that_end_in_another_order_than_they_began_leave_no_trace():
    before = list(warnings.filters)
    began, ended = threading.Event(), threading.Event()

    @silent
    def first():
        began.set()
        assert ended.wait(PATIENCE)
        warn()  # the other one has left

    thread = threading.Thread(target=first)
    thread.start()
    assert began.wait(PATIENCE)
    loud()
    with pytest.raises(UserWarning, match="42"):  # this thread is not silent, though the other is
        warn()
    ended.set()
    thread.join(PATIENCE)
    assert warnings.filters == before


def test_a_thread_that_restores_the_filters_shows_no_cell(monkeypatch):
    """`catch_warnings` of another thread begins before a release, and ends within it."""
    entered, inside, left = threading.Event(), threading.Event(), threading.Event()

    def meddle():
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            entered.set()
            assert inside.wait(PATIENCE)
        left.set()

    @silent
    def slow():
        inside.set()
        assert left.wait(PATIENCE)
        warn()

    heard = []
    monkeypatch.setattr(warnings, "showwarning", lambda *told, **_: heard.append(told))
    warnings.filters.insert(0, silence._FILTER)
    thread = threading.Thread(target=meddle)
    thread.start()
    assert entered.wait(PATIENCE)
    slow()
    thread.join(PATIENCE)
    assert not heard


def interrupted(work, stop):
    """Run something, with an interrupt at a step of `silence.py`; tell whether it came so far."""
    steps, tracing = itertools.count(1), sys.gettrace()

    def trace(frame, event, _):
        code = frame.f_code
        # a `with` that ends is a step for tracers, but Python takes no signals there
        leaving = linecache.getline(code.co_filename, frame.f_lineno).strip().startswith("with ")
        if code.co_filename == silence.__file__ and not leaving and next(steps) == stop:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(tracing)
    return False


def test_ctrl_c_is_safe_at_any_moment():
    before, stop = others(), 1
    while interrupted(silent(int), stop):
        stop += 1
        with pytest.raises(UserWarning, match="42"):
            warn()
        assert others() == before
    assert stop > 10


class Loud(str):
    """A cell that quotes itself, whenever it is compared."""

    __slots__ = ()

    def __eq__(self, other):
        warnings.warn(f"private: {str.__str__(self)}", UserWarning, stacklevel=1)
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_releases_in_threads_beside_one_that_swaps_filters():
    """No cell is shown, and no warning of others is lost."""
    cells = np.empty(50, object)
    cells[:] = [Loud("A"), Loud("B")] * 25
    frame = pd.DataFrame({"zone": pd.Series(cells, dtype=object)})
    done = threading.Event()
    heard = []

    def release():
        for _ in range(20):
            frame.dp.count(by="zone", keys=["A", "B"], where="zone == 'A'", epsilon=1)

    def swap():
        while not done.is_set():
            with warnings.catch_warnings():
                heard.extend(in_thread_warnings())

    def in_thread_warnings():
        try:
            warn("not private")
        except UserWarning as error:
            return [str(error)]
        return ["lost"]

    release()  # what is imported on the way may add filters of its own
    before = list(warnings.filters)
    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        assert [in_thread(release) for _ in range(2)] == [[], []]
    finally:
        done.set()
        swapping.join(PATIENCE)
    assert set(heard) == {"not private"}
    assert warnings.filters == before


INTERRUPTED = """
import signal, sys, threading, time, warnings
import pandas as pd
import dpframe as dpf

class Slow(str):
    def __eq__(self, other):
        warnings.warn("private", UserWarning, stacklevel=1)
        signal.raise_signal(signal.SIGINT)
        return str.__eq__(self, other)
    __hash__ = str.__hash__

from scipy import special  # adds a filter of its own when it is loaded

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
frame = pd.DataFrame({"zone": pd.Series([Slow("A")] * 9, dtype=object)})
before = list(warnings.filters)
try:
    frame.dp.count(by="zone", keys=["A"], where="zone == 'A'", epsilon=1)
except KeyboardInterrupt:
    print("interrupted")
assert warnings.filters == before
warnings.warn("heard after all", UserWarning)
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="no signals")
def test_after_ctrl_c_in_a_release_warnings_are_shown_again():
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "interrupted\n"
    assert "heard after all" in done.stderr
    assert "private" not in done.stderr


def test_a_release_warns_of_nothing(recwarn):
    frame = pd.DataFrame({"zone": pd.Series([Loud("A")], dtype=object)})
    dpf.release(
        frame,
        dpf.count(by="zone", keys=["A"], where="zone == 'A'"),
        epsilon=1,
        privacy_unit=dpf.EACH_ROW,
    )
    assert not recwarn
