"""Processes that are forked while threads of their parent work: each does its own work and ends."""

import functools
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import threading
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import pytest

import dpframe as dpf
from dpframe import progress
from dpframe.context import cached_property
from dpframe.progress import show_progress

SECONDS = 60  # a child that takes longer is stuck

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def forked(act) -> int | None:
    """Run something in a forked process; `None` where it is stuck."""
    child = get_context("fork").Process(target=act)
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
        return None
    return child.exitcode


def test_no_property_of_the_package_holds_a_lock():
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(dpf.__path__, "dpframe.")
        if not module.name.endswith("__main__")
    ]
    kept = [
        (module.__name__, name, value)
        for module in modules
        for _, owner in inspect.getmembers(module, inspect.isclass)
        if owner.__module__ == module.__name__
        for name, value in vars(owner).items()
        if isinstance(value, functools.cached_property)
    ]
    assert len(kept) > 20
    assert [place for *place, value in kept if not isinstance(value, cached_property)] == []


IMPORTING = """
import os, sys, threading, time
from dpframe.progress import check_progress

thread = threading.Thread(target=check_progress, args=(True,))
thread.start()
while "tqdm" not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    check_progress(True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.full
def test_a_process_forks_once_the_package_has_imported_what_it_needs(tmp_path):
    (tmp_path / "tqdm.py").write_text("import time\ntime.sleep(0.5)\n")
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IMPORTING],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    assert done.stdout == "0\n"


@pytest.mark.parametrize("own", [True, False])
def test_a_child_does_not_wait_for_a_bar_that_a_thread_of_its_parent_draws(own):
    tqdm = pytest.importorskip("tqdm.auto").tqdm
    list(show_progress("ab", "letters", 2))
    held, go = threading.Event(), threading.Event()

    def draw():
        with (progress._bars() if own else tqdm).get_lock():
            held.set()
            go.wait()

    thread = threading.Thread(target=draw)
    thread.start()
    held.wait()
    code = forked(lambda: list(show_progress("ab", "letters", 2)))
    go.set()
    thread.join()
    assert code == 0


def releasing():
    """Make a release of several kinds of outputs."""
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, bounds={"fare": (0, 9)}, privacy_unit=dpf.EACH_ROW)

    def release():
        released = frame.dp.aggregate("zone", n=dpf.count(), mean=dpf.mean("fare"), epsilon=1)
        dpf.verify(released)
        frame.dp.release(dpf.margins(["zone"]), mu=1)

    return release


@pytest.mark.parametrize("times", [8, pytest.param(300, marks=pytest.mark.audit)])
def test_children_of_a_process_whose_threads_release_do_so_too(times):
    release, done = releasing(), threading.Event()

    def work():
        while not done.is_set():
            release()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert [forked(release) for _ in range(times)] == [0] * times
    finally:
        done.set()
        for thread in threads:
            thread.join()
