"""Records of released frames are kept for several threads at once."""

import sys
import threading
from types import SimpleNamespace

import pytest

from dpframe.cells import record


@pytest.fixture
def many_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    record._OPENED.clear()


def test_threads_that_keep_records_do_not_meet(many_switches):
    """A release in one thread failed after its charge when another one kept a record."""
    wrong = []

    def keep(name):
        try:
            for k in range(20_000):
                record._keep(SimpleNamespace(text=f"{name} {k}"))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=keep, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(record._OPENED) == record._KEPT
