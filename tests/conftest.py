"""How hypothesis runs, and which cases of tests with very many run by default.

Hypothesis runs without deadlines, and in the gate with the same examples every time.
A run of all cases draws 100 examples of every property that does not say how many, another one 50;
`--hypothesis-profile=long` draws 10,000.

Each run takes every test once and a third of its other cases, by the number of commits, also of
those that are `full`; with `--all-cases`, without git, or where a file is named, it takes all.

Noise is the same in every run of a test that is no audit: it follows from the test's name.
`--noise=WORD` draws other noise, `--noise=random` the real one.
"""

import gc
import os
import random
import shlex
from collections import Counter
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import settings
from support import rotation
from support.databases import server_of_tests

GATED = bool(os.environ.get("CI"))
settings.register_profile("some", deadline=None, max_examples=50, derandomize=GATED)
settings.register_profile("all", deadline=None, max_examples=100, derandomize=GATED)
settings.register_profile("long", deadline=None, max_examples=10_000)
settings.load_profile("some")

TURN = pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption("--all-cases", action="store_true", help="run all cases of every test")
    parser.addoption("--noise", default="", help="`random`, or a word that noise follows from")


def pytest_configure(config):
    if config.option.all_cases and not config.option.hypothesis_profile:
        settings.load_profile("all")
    config.stash[TURN] = rotation.turn_of(config)
    if (word := config.getoption("noise")) != "random":
        config.pluginmanager.register(FixedNoise(word))


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_configure_node(node):
    node.workerinput["turn"] = node.config.stash[TURN]


def pytest_report_header(config):
    turn = config.stash[TURN]
    if turn is None:
        return "cases: all"
    return f"cases: turn {turn} of {rotation.TURNS}, or all of them with --all-cases"


def pytest_terminal_summary(terminalreporter):
    """Say how to run failures again: a name in a command runs in every turn."""
    failed = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
    for report in failed:
        terminalreporter.write_line(f"again: python -m pytest {shlex.quote(report.nodeid)}")


def pytest_ignore_collect(collection_path, config):
    """Leave out files of audits alone where none are wanted: to import them takes seconds."""
    if collection_path.suffix != ".py" or "not audit" not in config.option.markexpr:
        return None
    text = collection_path.read_text(encoding="utf-8")
    return True if "\npytestmark = pytest.mark.audit" in text else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(parent):
    """Look for no examples in tests, which have none: that takes a fifth of a collection."""
    option = parent.config.option
    modules = option.doctestmodules
    option.doctestmodules = False
    try:
        return (yield)
    finally:
        option.doctestmodules = modules


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    """Leave one case in so many of a `sampled` test in the default lane, mark the others `full`.

    With `full=3`, one case in three is, and what is left are audits; `offset=1` counts from the
    second case.
    """
    cases = Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None or item.get_closest_marker("audit"):
            continue
        test = item.nodeid.partition("[")[0]
        at = cases[test] - mark.kwargs.get("offset", 0)
        if at % mark.kwargs["every"]:
            audit = at % mark.kwargs.get("full", 1)
            item.add_marker(pytest.mark.audit if audit else pytest.mark.full)
        cases[test] += 1
    if (turn := config.stash[TURN]) is not None:
        items[:], left = rotation.part_cases(items, turn)
        config.hook.pytest_deselected(items=left)


def pytest_collection_finish():
    """Keep what was imported and collected out of every later search for garbage."""
    gc.collect()
    gc.freeze()


class FixedNoise:
    """Noise that follows from the name of a test, or of a fixture that several tests share.

    A process that is forked from this one draws other noise.
    """

    def __init__(self, word):
        self.word = word
        self.random = random.Random()
        os.register_at_fork(after_in_child=lambda: self.random.seed(os.urandom(32)))

    @contextmanager
    def of(self, name):
        before, self.random = self.random, random.Random(f"{self.word} {name}")
        try:
            with mock.patch("dpframe.context._generator", self.random.randbytes):
                yield
        finally:
            self.random = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        if item.get_closest_marker("audit"):
            return (yield)
        with self.of(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function" or request.node.get_closest_marker("audit"):
            return (yield)
        with self.of(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}"):
            return (yield)


@pytest.fixture(scope="session")
def server():
    """Start a PostgreSQL server, which stops with the tests."""
    with server_of_tests() as started:
        yield started
