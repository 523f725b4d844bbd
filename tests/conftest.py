"""How hypothesis runs, and which cases of tests with very many run by default.

Hypothesis runs without deadlines, and in the gate with the same examples every time.
`--hypothesis-profile=long` draws 10,000 examples of every property that does not say how many.
"""

import os
from collections import Counter

import pytest
from hypothesis import settings
from support.databases import server_of_tests

settings.register_profile("explore", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=10_000)
settings.load_profile("gate" if os.environ.get("CI") else "explore")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
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


@pytest.fixture(scope="session")
def server():
    """Start a PostgreSQL server, which stops with the tests."""
    with server_of_tests() as started:
        yield started
